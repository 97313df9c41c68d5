//! Files that a prompt speaks of: the `@` menu, which files fit what is typed, and what was taken
//! into the draft. Data and pure functions; the list itself is read by the application's jobs,
//! `update::mention` has the keys, `view::composer` draws the menu.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows that the menu can be scrolled through.
const ROWS: usize = 50;
/// Files that were taken in this run and are still known.
const TAKEN: usize = 500;

/// The files below the session's directory, shallow ones first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileList {
    /// Paths relative to the directory.
    pub paths: Vec<String>,
    /// The same in lower case.
    pub lower: Vec<String>,
    /// A bound was met: there are more.
    pub is_cut: bool,
}

impl FileList {
    /// Adds a file.
    pub fn push(&mut self, path: String) {
        self.lower.push(path.to_lowercase());
        self.paths.push(path);
    }
}

/// A file that goes with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// What stands for it in the text that is sent.
    pub token: String,
    /// Where it is.
    pub path: PathBuf,
    /// It was given as a picture; it may lie anywhere, because the user put it there by its path.
    pub is_picture: bool,
}

impl Attachment {
    /// The file that `@path` stands for.
    pub fn of_file(path: &str, cwd: &Path) -> Self {
        Self { token: format!("@{path}"), path: cwd.join(path), is_picture: false }
    }
}

/// The open menu.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mention {
    /// Where its `@` stands in the draft.
    pub at: usize,
    /// What is typed behind it.
    pub query: String,
    /// The files that fit, best first.
    pub rows: Vec<String>,
    /// The row that is selected.
    pub selected: usize,
    /// Places in the list of all files that fit.
    matched: Vec<usize>,
}

/// Everything about mentions.
#[derive(Debug, Clone, Default)]
pub struct Mentions {
    /// The menu.
    pub open: Option<Mention>,
    /// The `@` at which it was closed by hand.
    pub closed_at: Option<usize>,
    /// The files, once they were read.
    pub files: Option<Arc<FileList>>,
    /// They are being read.
    pub loading: bool,
    taken: Vec<Attachment>,
}

/// The `@` word that ends at the caret: where it begins, and what follows the `@`.
pub fn word_at(text: &str, caret: usize) -> Option<(usize, &str)> {
    let before = text.get(..caret)?;
    let start = before
        .char_indices()
        .rev()
        .find(|(_, c)| c.is_whitespace())
        .map_or(0, |(at, c)| at + c.len_utf8());
    before.get(start..)?.strip_prefix('@').map(|query| (start, query))
}

/// How well a file fits, higher is better. Both in lower case.
fn fit(query: &str, path: &str) -> Option<i64> {
    let length = i64::try_from(path.len()).unwrap_or(i64::MAX / 4);
    let name = path.rsplit('/').next().unwrap_or(path);
    if path == query || name == query {
        return Some(20_000 - length);
    }
    if name.starts_with(query) {
        return Some(10_000 - length);
    }
    if path.starts_with(query) {
        return Some(9_000 - length);
    }
    if name.contains(query) {
        return Some(7_000 - length);
    }
    if path.contains(query) {
        return Some(5_000 - length);
    }
    let mut letters = path.chars().enumerate();
    let (mut total, mut last) = (1_000 - length, None);
    for c in query.chars() {
        let (at, _) = letters.find(|(_, letter)| *letter == c)?;
        let gap = last.map_or(0, |last: usize| at - last - 1);
        total -= i64::try_from(gap).unwrap_or(0) * 10;
        last = Some(at);
    }
    Some(total)
}

impl Mentions {
    /// Whether the menu has rows to choose from.
    pub fn is_open(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.rows.is_empty())
    }

    /// Rows that the menu would like: one says that the files are being read.
    pub fn height(&self) -> usize {
        match &self.open {
            Some(open) if open.rows.is_empty() => usize::from(self.loading),
            Some(open) => open.rows.len(),
            None => 0,
        }
    }

    /// Finds the files for what is typed. A longer query looks only at what fitted the shorter one.
    pub fn look(&mut self, at: usize, query: &str) {
        let earlier = self.open.take();
        let Some(files) = &self.files else {
            self.open = Some(Mention { at, query: query.to_owned(), ..Mention::default() });
            return;
        };
        if let Some(open) = &earlier
            && (open.at, open.query.as_str()) == (at, query)
            && !open.matched.is_empty()
        {
            self.open = earlier;
            return;
        }
        let wanted = query.to_lowercase();
        let score = |place: usize| Some((fit(&wanted, files.lower.get(place)?)?, place));
        let narrower = earlier
            .filter(|e| e.at == at && query.starts_with(e.query.as_str()) && !e.matched.is_empty());
        let mut fitting: Vec<(i64, usize)> = match narrower {
            Some(earlier) => earlier.matched.into_iter().filter_map(score).collect(),
            None => (0..files.paths.len()).filter_map(score).collect(),
        };
        if !wanted.is_empty() {
            fitting.sort_by_key(|(score, place)| (std::cmp::Reverse(*score), *place));
        }
        let matched: Vec<usize> = fitting.into_iter().map(|(_, place)| place).collect();
        let rows = matched.iter().take(ROWS).filter_map(|p| files.paths.get(*p).cloned()).collect();
        self.open = Some(Mention { at, query: query.to_owned(), rows, selected: 0, matched });
    }

    /// The files were read.
    pub fn listed(&mut self, files: Arc<FileList>) {
        self.loading = false;
        if self.files.as_ref() == Some(&files) {
            return;
        }
        self.files = Some(files);
        if let Some(open) = self.open.take() {
            self.look(open.at, &open.query);
        }
    }

    /// This file goes with the prompts that name it.
    pub fn take(&mut self, attachment: Attachment) {
        self.taken.retain(|known| known.token != attachment.token);
        if self.taken.len() >= TAKEN {
            self.taken.remove(0);
        }
        self.taken.push(attachment);
    }

    /// What a text takes along: everything taken that it still names as a word of its own.
    pub fn in_text(&self, text: &str) -> Vec<Attachment> {
        let mut found: Vec<(usize, &Attachment)> =
            self.taken.iter().filter_map(|it| Some((stands_in(text, &it.token)?, it))).collect();
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, it)| it.clone()).collect()
    }
}

/// The words of a text that are whole paths of pictures.
pub fn picture_paths(text: &str) -> Vec<String> {
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    words.filter(|word| is_picture_name(Path::new(word))).map(str::to_owned).collect()
}

/// Where a token stands as a word; marks of punctuation may follow it.
fn stands_in(text: &str, token: &str) -> Option<usize> {
    text.match_indices(token).map(|(at, _)| at).find(|at| {
        let before = text.get(..*at).and_then(|t| t.chars().next_back());
        let after = text.get(at + token.len()..).unwrap_or_default();
        let after = after.trim_start_matches([',', '.', ';', ':', '!', '?', ')', '"', '\'']);
        before.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '"' | '\''))
            && after.chars().next().is_none_or(char::is_whitespace)
    })
}

/// The name at the end of a path.
pub fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The paths of pictures that a pasted or dropped text consists of, with how each stands in it:
/// quoted, with escaped spaces, or as a `file:` address. None when it holds anything else.
pub fn pictures(text: &str, home: &Path, cwd: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for word in words(text.trim()) {
        match path_of(&word, home, cwd) {
            Some(path) if is_picture_name(&path) => found.push((word, path)),
            _ => return Vec::new(),
        }
    }
    found
}

fn is_picture_name(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    ["png", "jpg", "jpeg", "gif", "webp"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Words as they stand, separated by white space that is neither quoted nor escaped.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quote, mut escaped) = (None, false);
    for c in text.chars() {
        let breaks = c.is_whitespace() && quote.is_none() && !escaped;
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
        match words.last_mut() {
            Some(word) if !breaks => word.push(c),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The path that a word stands for.
fn path_of(word: &str, home: &Path, cwd: &Path) -> Option<PathBuf> {
    let quoted = |q: char| word.strip_prefix(q).and_then(|w| w.strip_suffix(q));
    let path = if let Some(rest) = word.strip_prefix("file://") {
        percent_decoded(rest.strip_prefix("localhost").unwrap_or(rest))?
    } else if let Some(inside) = quoted('\'') {
        inside.to_owned()
    } else {
        let mut out = String::new();
        let mut chars = quoted('"').unwrap_or(word).chars();
        while let Some(c) = chars.next() {
            out.push(if c == '\\' { chars.next()? } else { c });
        }
        out
    };
    Some(match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => cwd.join(path),
    })
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let hex = |b: Option<u8>| char::from(b?).to_digit(16).and_then(|d| u8::try_from(d).ok());
        out.push(if byte == b'%' { hex(bytes.next())? * 16 + hex(bytes.next())? } else { byte });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentions(paths: &[&str]) -> Mentions {
        let mut files = FileList::default();
        for path in paths {
            files.push((*path).to_owned());
        }
        Mentions { files: Some(Arc::new(files)), ..Mentions::default() }
    }

    fn rows(mentions: &Mentions) -> Vec<&str> {
        mentions.open.iter().flat_map(|open| open.rows.iter().map(String::as_str)).collect()
    }

    #[test]
    fn a_mention_begins_at_a_word_and_ends_with_it() {
        assert_eq!(word_at("look at @src/m", 14), Some((8, "src/m")));
        assert_eq!(word_at("模型 @模", "模型 @模".len()), Some((7, "模")));
        assert_eq!(word_at("@", 1), Some((0, "")));
        for (text, caret) in [("me@home", 7), ("@a b", 4), ("plain", 5), ("@a", 0)] {
            assert_eq!(word_at(text, caret), None, "{text}");
        }
    }

    #[test]
    fn the_name_counts_more_than_the_way_to_it_and_case_does_not_matter() {
        let mut m =
            mentions(&["Main.md", "src/domain.rs", "src/main.rs", "main/other.txt", "mxaxixn"]);
        m.look(0, "main");
        assert_eq!(
            rows(&m),
            ["Main.md", "src/main.rs", "main/other.txt", "src/domain.rs", "mxaxixn"]
        );
        m.look(0, "main.r");
        assert_eq!(rows(&m), ["src/main.rs", "src/domain.rs"]);
        m.look(0, "main");
        assert_eq!(rows(&m).len(), 5, "a shorter query looks at everything again");
        m.look(0, "zzz");
        assert!(!m.is_open());
    }

    #[test]
    fn only_what_was_taken_and_still_stands_as_a_word_goes_along() {
        let mut m = mentions(&[]);
        let file = |name: &str| Attachment {
            token: format!("@{name}"),
            path: name.into(),
            is_picture: false,
        };
        m.take(file("a.rs"));
        m.take(file("b.rs"));
        let names = |text: &str| -> Vec<String> {
            m.in_text(text).iter().map(|it| name_of(&it.path)).collect()
        };
        assert_eq!(names("see @b.rs, and (@a.rs)."), ["b.rs", "a.rs"]);
        assert_eq!(names("@a.rs.bak x@b.rs @c.rs"), Vec::<String>::new());
    }

    #[test]
    fn a_dropped_picture_is_known_however_the_terminal_writes_its_path() {
        let (home, cwd) = (Path::new("/h"), Path::new("/w"));
        let paths = |text: &str| -> Vec<PathBuf> {
            pictures(text, home, cwd).into_iter().map(|(_, path)| path).collect()
        };
        for text in [
            "/t/a b.png".replace(' ', "\\ "),
            "'/t/a b.png' ".into(),
            "\"/t/a b.png\"".into(),
            "file:///t/a%20b.png".into(),
        ] {
            assert_eq!(paths(&text), [PathBuf::from("/t/a b.png")], "{text}");
        }
        assert_eq!(paths("~/x.JPG y.webp"), [PathBuf::from("/h/x.JPG"), "/w/y.webp".into()]);
        for text in ["look at /t/a.png", "/t/a.txt", "", "png", "file:///a%zz.png"] {
            assert!(paths(text).is_empty(), "{text}");
        }
    }
}
