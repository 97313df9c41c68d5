//! Colours of code, made away from the drawing thread.
//!
//! Owns the syntax definitions and the parser states. Loading a grammar takes milliseconds, so a
//! worker does it: code is drawn plain until its colours come, and a frame never waits. Lines are
//! coloured once, in order, as they arrive. Must not draw; see `markdown::render` for that.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// What a stretch of code is, independent of any theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Nothing in particular.
    Plain,
    /// A comment.
    Comment,
    /// A keyword.
    Keyword,
    /// A string.
    Text,
    /// A number or constant.
    Constant,
    /// A function's name.
    Function,
    /// A type's name.
    Type,
    /// A tag, attribute, key or macro.
    Entity,
    /// Operators and brackets.
    Punctuation,
}

/// A stretch of a line, up to byte `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// One past its last byte.
    pub end: u32,
    /// What it is.
    pub class: Class,
}

/// Lines of one text that are coloured; the rest stays plain. A longer text is coloured stretch by
/// stretch, see [`Highlighter::stretch`].
pub const MAX_LINES: usize = 3000;
/// Stretches before one looked at that are coloured so that it begins as it should.
const CARRIED: usize = 4;
/// Bytes of a line that are still worth parsing.
const MAX_LINE: usize = 2000;
/// Texts whose colours are kept.
const MAX_TEXTS: usize = 512;
/// Jobs that may wait for the worker; a refused one is offered again with the next frame.
const QUEUE: usize = 64;

/// Colours texts, line by line. Made once and handed to the views.
#[derive(Debug, Default)]
pub struct Highlighter {
    backend: Backend,
    texts: HashMap<u64, Entry>,
    version: u64,
    age: u64,
}

#[derive(Default)]
enum Backend {
    #[default]
    Off,
    Inline(Box<Engine>),
    Worker {
        jobs: SyncSender<Job>,
        done: Receiver<Done>,
    },
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Off => "Off",
            Self::Inline(_) => "Inline",
            Self::Worker { .. } => "Worker",
        })
    }
}

#[derive(Debug, Default)]
struct Entry {
    sent: usize,
    sent_lines: usize,
    lines: Vec<Vec<Run>>,
    /// No more colours will come: the language is unknown or the text too long.
    ended: bool,
    /// Whether its colours go on from those of the stretch before it.
    carried: bool,
    /// Whether it was sent again from its start: until that comes, what is known is shown.
    again: bool,
    used: u64,
}

struct Job {
    key: u64,
    /// Whether the text begins here: what is known of an older one of that name is dropped.
    begins: bool,
    /// The text that it goes on from, when that is known to its end.
    after: Option<u64>,
    lang: String,
    text: String,
}

struct Done {
    key: u64,
    begins: bool,
    lines: Option<Vec<Vec<Run>>>,
}

/// The colours of a text so far.
#[derive(Debug, Clone, Copy)]
pub struct Colours<'a> {
    /// One entry per complete line, as far as they have come.
    pub lines: &'a [Vec<Run>],
    /// Whether more are on their way.
    pub awaited: bool,
}

impl Highlighter {
    /// Colours nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// Colours at once, in the caller's thread: for tests and for printing.
    pub fn inline() -> Self {
        Self { backend: Backend::Inline(Box::default()), ..Self::default() }
    }

    /// Colours in a thread of its own, which ends with this value. `wake` is called when colours
    /// are ready to be drawn; the thread sleeps otherwise.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn spawn(wake: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let (jobs, inbox) = sync_channel::<Job>(QUEUE);
        let (outbox, done) = sync_channel::<Done>(QUEUE);
        std::thread::Builder::new().name("highlight".to_owned()).spawn(move || {
            let mut engine = Engine::default();
            while let Ok(job) = inbox.recv() {
                let (key, begins) = (job.key, job.begins);
                let lines = engine.run(&job);
                if outbox.send(Done { key, begins, lines }).is_err() {
                    return;
                }
                wake();
            }
        })?;
        Ok(Self { backend: Backend::Worker { jobs, done }, ..Self::default() })
    }

    /// Grows when colours have come: what was drawn while waiting is to be drawn again.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How many lines were coloured.
    #[cfg(test)]
    pub fn coloured(&self) -> usize {
        self.texts.values().map(|entry| entry.lines.len()).sum()
    }

    /// Takes in what the worker has finished.
    pub fn poll(&mut self) {
        loop {
            let Backend::Worker { done, .. } = &self.backend else {
                return;
            };
            match done.try_recv() {
                Ok(done) => self.accept(done),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.backend = Backend::Off;
                    return;
                }
            }
        }
    }

    fn accept(&mut self, done: Done) {
        let Some(entry) = self.texts.get_mut(&done.key) else {
            return;
        };
        if done.begins && std::mem::take(&mut entry.again) {
            entry.lines.clear();
        }
        match done.lines {
            Some(lines) => entry.lines.extend(lines),
            None => entry.ended = true,
        }
        self.version += 1;
    }

    /// As [`Self::settled`], for the stretch `n` of a longer text, of which `source` is what was
    /// looked at. `whole` gives all of an earlier stretch. Shown at once as if a text began there;
    /// when the stretches before it are coloured, one after another and only a few, it goes on from
    /// them.
    pub fn stretch<'a>(
        &mut self,
        key: u64,
        lang: &str,
        (n, source): (usize, &'a str),
        whole: impl Fn(usize) -> &'a str,
    ) -> Colours<'_> {
        let name = |n: usize| key.wrapping_add(n as u64);
        if lang.is_empty() || !matches!(self.backend, Backend::Worker { .. }) {
            // Who colours at once does not wait for what is out of sight.
            return self.settled(name(n), lang, source);
        }
        let is_known = |texts: &HashMap<u64, Entry>, n: usize| {
            texts.get(&name(n)).is_some_and(|e| !e.again && e.lines.len() >= MAX_LINES)
        };
        // The first one that is not as it should be, or not known to its end.
        let from = n.saturating_sub(CARRIED);
        let is_right = |texts: &HashMap<u64, Entry>, n: usize| {
            n == from || texts.get(&name(n)).is_some_and(|entry| entry.carried)
        };
        let mut waits = false;
        let unknown =
            (from..n).find(|at| !is_known(&self.texts, *at) || !is_right(&self.texts, *at));
        if let Some(at) = unknown {
            let after = (at > from).then(|| name(at - 1));
            waits = self.carry(name(at), after, lang, whole(at));
        }
        let awaited = if n > from && unknown.is_none() {
            self.carry(name(n), Some(name(n - 1)), lang, source)
        } else {
            self.settled(name(n), lang, source).awaited
        };
        let lines = self.texts.get(&name(n)).map_or(&[][..], |entry| &entry.lines);
        Colours { lines, awaited: awaited || waits }
    }

    /// Colours a text from its start, once more if need be, going on from another. Says whether
    /// colours are on their way.
    fn carry(&mut self, key: u64, after: Option<u64>, lang: &str, text: &str) -> bool {
        let entry = self.texts.entry(key).or_default();
        if after.is_none() || entry.carried && !entry.again {
            return self.settled(key, lang, text).awaited;
        }
        if entry.again || entry.lines.len() < entry.sent_lines {
            return true;
        }
        if entry.ended && entry.lines.len() < MAX_LINES {
            return false;
        }
        let Backend::Worker { jobs, .. } = &self.backend else { return false };
        let job = Job { key, begins: true, after, lang: lang.to_owned(), text: text.to_owned() };
        match jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
        }
        self.age += 1;
        *entry = Entry {
            sent: text.len(),
            sent_lines: text.split_inclusive('\n').count(),
            lines: std::mem::take(&mut entry.lines),
            carried: true,
            again: true,
            ended: false,
            used: self.age,
        };
        true
    }

    /// The colours of the text named `key`, which only ever grows. What is new is handed on; a
    /// last line without its end waits for it.
    pub fn lines(&mut self, key: u64, lang: &str, text: &str) -> Colours<'_> {
        self.lines_of(key, lang, text, |line| line)
    }

    /// The same, of the part of each line that `strip` leaves. Only new lines are stripped.
    pub fn lines_of(
        &mut self,
        key: u64,
        lang: &str,
        text: &str,
        strip: impl for<'a> Fn(&'a str) -> &'a str,
    ) -> Colours<'_> {
        let complete = text.rfind('\n').map_or(0, |at| at + 1);
        self.advance(key, lang, (text, complete), strip)
    }

    /// As [`Self::lines`], for a text whose lines are all complete, the last one too.
    pub fn settled(&mut self, key: u64, lang: &str, text: &str) -> Colours<'_> {
        self.advance(key, lang, (text, text.len()), |line| line)
    }

    fn advance(
        &mut self,
        key: u64,
        lang: &str,
        (text, complete): (&str, usize),
        strip: impl for<'a> Fn(&'a str) -> &'a str,
    ) -> Colours<'_> {
        const NONE: Colours<'static> = Colours { lines: &[], awaited: false };
        if lang.is_empty() || matches!(self.backend, Backend::Off) {
            return NONE;
        }
        self.age += 1;
        self.forget();
        let entry = self.texts.entry(key).or_default();
        entry.used = self.age;
        if !entry.ended && entry.sent < complete {
            let new = text.get(entry.sent..complete).unwrap_or_default();
            let count = new.split_inclusive('\n').count();
            let begins = entry.sent == 0;
            let text = new.split_inclusive('\n').map(strip).collect();
            let job = Job { key, begins, after: None, lang: lang.to_owned(), text };
            match &mut self.backend {
                Backend::Off => {}
                Backend::Inline(engine) => {
                    let lines = engine.run(&job);
                    entry.ended = lines.is_none();
                    entry.lines.extend(lines.unwrap_or_default());
                    entry.sent = complete;
                    entry.sent_lines += count;
                }
                Backend::Worker { jobs, .. } => match jobs.try_send(job) {
                    Ok(()) => {
                        entry.sent = complete;
                        entry.sent_lines += count;
                    }
                    // It is offered again with the next frame.
                    Err(TrySendError::Full(_)) => {
                        return Colours { lines: &entry.lines, awaited: true };
                    }
                    Err(TrySendError::Disconnected(_)) => entry.ended = true,
                },
            }
        }
        entry.ended |= entry.lines.len() >= MAX_LINES;
        Colours {
            lines: &entry.lines,
            awaited: !entry.ended && entry.lines.len() < entry.sent_lines,
        }
    }

    /// Drops the texts that were not asked for lately.
    fn forget(&mut self) {
        if self.texts.len() <= MAX_TEXTS {
            return;
        }
        let mut ages: Vec<u64> = self.texts.values().map(|entry| entry.used).collect();
        ages.sort_unstable();
        let limit = ages.get(ages.len() / 2).copied().unwrap_or_default();
        self.texts.retain(|_, entry| entry.used > limit);
    }
}

/// Syntax definitions, loaded at first use, and a parser state per text.
#[derive(Default)]
struct Engine {
    set: Option<Arc<SyntaxSet>>,
    table: Vec<(Scope, Class)>,
    states: HashMap<u64, State>,
}

struct State {
    parse: ParseState,
    stack: ScopeStack,
    lines: usize,
}

impl Engine {
    fn run(&mut self, job: &Job) -> Option<Vec<Vec<Run>>> {
        if self.set.is_none() {
            self.set = Some(Arc::new(two_face::syntax::extra_newlines()));
            self.table = table();
        }
        let set = self.set.clone()?;
        if job.begins {
            self.states.remove(&job.key);
        }
        if !self.states.contains_key(&job.key) {
            let syntax = syntax_of(&set, &job.lang)?;
            if self.states.len() >= MAX_TEXTS {
                self.states.clear();
            }
            let before = job.after.and_then(|key| self.states.get(&key));
            let state = match before {
                Some(before) => before.next(),
                None => {
                    State { parse: ParseState::new(syntax), stack: ScopeStack::new(), lines: 0 }
                }
            };
            self.states.insert(job.key, state);
        }
        let state = self.states.get_mut(&job.key)?;
        let mut out = Vec::new();
        for line in job.text.split_inclusive('\n') {
            state.lines += 1;
            if state.lines > MAX_LINES {
                break;
            }
            out.push(state.line(line, &set, &self.table));
        }
        Some(out)
    }
}

fn syntax_of<'a>(set: &'a SyntaxSet, lang: &str) -> Option<&'a SyntaxReference> {
    let lang = lang.trim().to_ascii_lowercase();
    let lang = match lang.as_str() {
        "shell" | "console" | "shellsession" | "zsh" => "bash",
        "jsonc" | "json5" => "json",
        "jsx" => "js",
        "golang" => "go",
        "rs" => "rust",
        other => other,
    };
    let found = set.find_syntax_by_token(lang)?;
    (found.name != "Plain Text").then_some(found)
}

impl State {
    /// Where the text that follows begins.
    fn next(&self) -> Self {
        Self { parse: self.parse.clone(), stack: self.stack.clone(), lines: 0 }
    }

    fn line(&mut self, line: &str, set: &SyntaxSet, table: &[(Scope, Class)]) -> Vec<Run> {
        if line.len() > MAX_LINE {
            return Vec::new();
        }
        let Ok(ops) = self.parse.parse_line(line, set) else {
            return Vec::new();
        };
        let mut runs: Vec<Run> = Vec::new();
        let mut at = 0;
        let text = line.trim_end_matches(['\n', '\r']).len();
        for (offset, op) in ops {
            let offset = offset.min(text);
            if offset > at {
                push(&mut runs, offset, classify(&self.stack, table));
                at = offset;
            }
            if self.stack.apply(&op).is_err() {
                return runs;
            }
        }
        if text > at {
            push(&mut runs, text, classify(&self.stack, table));
        }
        runs
    }
}

fn push(runs: &mut Vec<Run>, end: usize, class: Class) {
    let end = u32::try_from(end).unwrap_or(u32::MAX);
    match runs.last_mut() {
        Some(last) if last.class == class => last.end = end,
        _ => runs.push(Run { end, class }),
    }
}

/// The class of the innermost scope that has one; comments win over what is in them.
fn classify(stack: &ScopeStack, table: &[(Scope, Class)]) -> Class {
    let mut found = Class::Plain;
    for scope in stack.as_slice().iter().rev() {
        let class = table
            .iter()
            .find(|(prefix, _)| prefix.is_prefix_of(*scope))
            .map_or(Class::Plain, |(_, class)| *class);
        if class == Class::Comment {
            return class;
        }
        let marks_only = matches!(found, Class::Plain | Class::Punctuation);
        if found == Class::Plain || (marks_only && class == Class::Text) {
            found = class;
        }
    }
    found
}

/// Scope prefixes, the more special before the more general.
fn table() -> Vec<(Scope, Class)> {
    [
        ("comment", Class::Comment),
        ("constant", Class::Constant),
        ("string", Class::Text),
        ("keyword.operator", Class::Punctuation),
        ("keyword", Class::Keyword),
        ("storage", Class::Keyword),
        ("variable.language", Class::Keyword),
        ("variable.function", Class::Function),
        ("support.function", Class::Function),
        ("entity.name.function", Class::Function),
        ("entity.name.tag", Class::Entity),
        ("entity.other.attribute-name", Class::Entity),
        ("entity.name.macro", Class::Entity),
        ("support.macro", Class::Entity),
        ("entity.name.section", Class::Function),
        ("entity.name", Class::Type),
        ("entity.other.inherited-class", Class::Type),
        ("support.type", Class::Type),
        ("support.class", Class::Type),
        ("support.constant", Class::Constant),
        ("meta.annotation", Class::Entity),
        ("markup.inserted", Class::Text),
        ("markup.deleted", Class::Constant),
        ("markup.heading", Class::Function),
        ("punctuation", Class::Punctuation),
    ]
    .into_iter()
    .filter_map(|(name, class)| Some((Scope::new(name).ok()?, class)))
    .collect()
}

#[cfg(test)]
#[allow(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::string_slice,
    reason = "test texts are built plainly"
)]
mod tests {
    use super::*;

    fn classes(lang: &str, text: &str) -> Vec<Vec<(String, Class)>> {
        let mut highlighter = Highlighter::inline();
        let colours = highlighter.lines(1, lang, text);
        text.lines()
            .zip(colours.lines)
            .map(|(line, runs)| {
                let mut at = 0;
                runs.iter()
                    .map(|run| {
                        let piece = line[at..run.end as usize].to_owned();
                        at = run.end as usize;
                        (piece, run.class)
                    })
                    .collect()
            })
            .collect()
    }

    #[test]
    fn rust_gets_its_colours() {
        let lines = classes("rust", "// hi\nfn main() { let x = \"s\"; }\n");
        assert_eq!(lines[0], [("// hi".to_owned(), Class::Comment)]);
        assert!(lines[1].contains(&("fn".to_owned(), Class::Keyword)), "{lines:?}");
        assert!(lines[1].contains(&("main".to_owned(), Class::Function)), "{lines:?}");
        assert!(
            lines[1].iter().any(|(text, class)| text.contains("\"s\"") && *class == Class::Text),
            "{lines:?}"
        );
    }

    #[test]
    fn a_text_that_was_forgotten_is_coloured_again_from_its_start() {
        let text = "/* open\n";
        let mut highlighter = Highlighter::inline();
        highlighter.lines(1, "rust", text);
        for key in 2..MAX_TEXTS as u64 + 4 {
            highlighter.lines(key, "rust", "x\n");
        }
        assert!(!highlighter.texts.contains_key(&1), "it was not forgotten");
        let again = highlighter.lines(1, "rust", "fn f() {}\n").lines.to_vec();
        assert_eq!(again[0][0].class, Class::Keyword, "{again:?}");
    }

    #[test]
    fn far_into_a_file_colours_go_on_from_what_is_above() {
        let (tx, rx) = std::sync::mpsc::channel();
        let mut highlighter = Highlighter::spawn(move || {
            tx.send(()).ok();
        })
        .unwrap();
        // A comment that opens at the top and closes at the end.
        let text = format!("/* open\n{}*/\n", "let a = 1;\n".repeat(MAX_LINES * 2 + 998));
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let whole = |n: usize| -> &str {
            let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
            let from = bytes(&lines[..n * MAX_LINES]);
            let to = bytes(&lines[..((n + 1) * MAX_LINES).min(lines.len())]);
            &text[from..to]
        };
        let source = &whole(2)[..11 * 200];
        let mut seen = Vec::new();
        while highlighter.stretch(7, "rust", (2, source), whole).awaited {
            rx.recv_timeout(std::time::Duration::from_mins(1)).unwrap();
            highlighter.poll();
            let shown = highlighter.stretch(7, "rust", (2, source), whole).lines.first();
            seen.extend(shown.map(|runs| runs[0].class));
        }
        assert_eq!(seen.first(), Some(&Class::Keyword), "shown at once, as if it began there");
        let then = highlighter.stretch(7, "rust", (2, source), whole).lines;
        assert!(then.len() == 200 && then.iter().all(|runs| runs[0].class == Class::Comment));
        assert_eq!(highlighter.coloured(), 2 * MAX_LINES + 200, "no more than it takes");
        // More of it goes on from there.
        while highlighter.stretch(7, "rust", (2, whole(2)), whole).awaited {
            rx.recv_timeout(std::time::Duration::from_mins(1)).unwrap();
            highlighter.poll();
        }
        let more = highlighter.stretch(7, "rust", (2, whole(2)), whole).lines;
        let last = more.last().unwrap()[0].class;
        assert_eq!((more.len(), last), (1000, Class::Comment));
    }

    #[test]
    fn the_last_line_of_a_settled_text_is_coloured_too() {
        let mut highlighter = Highlighter::inline();
        assert!(highlighter.lines(1, "rust", "fn f() {}").lines.is_empty());
        let colours = highlighter.settled(2, "rust", "let a = 1;\nfn f() {}");
        assert_eq!(colours.lines.len(), 2);
        assert_eq!(colours.lines[1][0].class, Class::Keyword);
    }

    #[test]
    fn growing_text_gives_the_same_colours_as_the_whole() {
        let text = "/* a\nb */ let x = 1;\nfn f() {}\n";
        let whole = Highlighter::inline().lines(1, "rust", text).lines.to_vec();
        let mut growing = Highlighter::inline();
        for end in 0..=text.len() {
            growing.lines(7, "rust", &text[..end]);
        }
        assert_eq!(growing.lines(7, "rust", text).lines, whole);
    }

    #[test]
    fn the_worker_wakes_the_loop_and_unknown_languages_end_the_wait() {
        let (tx, rx) = std::sync::mpsc::channel();
        let mut highlighter = Highlighter::spawn(move || {
            tx.send(()).ok();
        })
        .unwrap();
        assert!(highlighter.lines(1, "python", "def f(): pass\n").awaited);
        rx.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
        highlighter.poll();
        assert!(highlighter.version() > 0);
        assert!(!highlighter.lines(1, "python", "def f(): pass\n").awaited);
        assert!(highlighter.lines(2, "nosuch", "x\n").awaited);
        rx.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
        highlighter.poll();
        assert!(!highlighter.lines(2, "nosuch", "x\n").awaited);
    }
}
