//! The rows of something long, made when they are first looked at.
//!
//! Owns [`Paper`]: a page, or what a dialog asks about. How many rows there are is known at once;
//! a long diff is drawn stretch by stretch, as far as one scrolls, so that it opens at once and no
//! frame draws what it does not show. Must not know where the texts come from.

use std::ops::Range;
use std::rc::Rc;

use ratatui::text::Line;

use super::code::Ink;
use super::diff::{self, Diff, Sides};
use super::highlight::Highlighter;
use super::markdown;
use super::theme::{Theme, ThemeSpec};

/// Rows of a diff that are drawn together.
const STRETCH: usize = 128;

/// A change of a file, with its texts.
#[derive(Debug)]
struct Change {
    path: String,
    old: String,
    new: String,
    diff: Diff,
}

impl Change {
    fn sides(&self) -> Sides<'_> {
        Sides { path: &self.path, old: &self.old, new: &self.new }
    }
}

/// What rows are made from.
#[derive(Debug)]
enum Source {
    /// They are made already.
    Made,
    Markdown(String),
    Change(Rc<Change>, Range<usize>),
}

#[derive(Debug)]
struct Part {
    first: usize,
    count: usize,
    source: Source,
    lines: Option<Vec<Line<'static>>>,
    /// The highlighter's version when colours were still missing.
    awaits: Option<u64>,
    /// The rows in lower case, once they were searched.
    plain: Option<Vec<String>>,
}

/// Rows for one width and theme.
#[derive(Debug, Default)]
pub(super) struct Paper {
    parts: Vec<Part>,
    len: usize,
    width: usize,
    spec: Option<ThemeSpec>,
    /// How often rows were made: what is not looked at must not be.
    #[cfg(test)]
    pub(super) made: usize,
}

impl Paper {
    /// An empty paper of `width` cells.
    pub(super) fn new(width: usize, theme: &Theme) -> Self {
        Self { width, spec: Some(theme.spec), ..Self::default() }
    }

    /// A paper of rows that are there already.
    pub(super) fn of_lines(lines: Vec<Line<'static>>, width: usize, theme: &Theme) -> Self {
        let mut paper = Self::new(width, theme);
        paper.add(lines);
        paper
    }

    /// Whether it was made for this width and theme.
    pub(super) fn fits(&self, width: usize, theme: &Theme) -> bool {
        self.width == width && self.spec == Some(theme.spec)
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds rows.
    pub(super) fn add(&mut self, lines: Vec<Line<'static>>) {
        let count = lines.len();
        self.push(Source::Made, count, Some(lines));
    }

    /// Adds a markdown text.
    pub(super) fn add_markdown(&mut self, text: &str, theme: &Theme, code: &mut Highlighter) {
        let mut ink = Ink::new(code);
        let lines = markdown::render_inked(text, self.width, theme, &mut ink);
        let awaits = ink.pending.then(|| ink.code.version());
        let count = lines.len();
        self.push(Source::Markdown(text.to_owned()), count, Some(lines));
        if let Some(part) = self.parts.last_mut() {
            part.awaits = awaits;
        }
    }

    /// Adds a change of the file `path`; without `old` it is new.
    pub(super) fn add_change(&mut self, path: String, old: Option<&str>, new: &str, theme: &Theme) {
        let note = if old.is_none() { " new file" } else { "" };
        let (old, new) = (old.unwrap_or_default().to_owned(), new.to_owned());
        let diff = Diff::new(Sides { path: &path, old: &old, new: &new });
        self.add(vec![diff::header(&path, &diff, note, self.width, theme)]);
        let change = Rc::new(Change { path, old, new, diff });
        let rows = change.diff.len(self.width);
        for first in (0..rows).step_by(STRETCH) {
            let range = first..(first + STRETCH).min(rows);
            let count = change.diff.height(change.sides(), range.clone(), self.width);
            self.push(Source::Change(Rc::clone(&change), range), count, None);
        }
    }

    fn push(&mut self, source: Source, count: usize, lines: Option<Vec<Line<'static>>>) {
        let part = Part { first: self.len, count, source, lines, awaits: None, plain: None };
        self.len += count;
        self.parts.push(part);
    }

    /// The rows in `range`, made where they were not.
    pub(super) fn rows(
        &mut self,
        range: Range<usize>,
        theme: &Theme,
        code: &mut Highlighter,
    ) -> impl Iterator<Item = &Line<'static>> {
        let first = self.part_of(range.start);
        let mut last = first;
        while self.parts.get(last).is_some_and(|part| part.first < range.end) {
            self.make(last, theme, code);
            last += 1;
        }
        let parts = self.parts.get(first..last).unwrap_or_default();
        let skip = parts.first().map_or(0, |part| range.start.saturating_sub(part.first));
        let lines = parts.iter().filter_map(|part| part.lines.as_ref()).flatten();
        lines.skip(skip).take(range.len())
    }

    /// The part that a row is in.
    fn part_of(&self, row: usize) -> usize {
        self.parts.partition_point(|part| part.first + part.count <= row)
    }

    fn make(&mut self, at: usize, theme: &Theme, code: &mut Highlighter) {
        let Some(part) = self.parts.get_mut(at) else { return };
        let is_stale = part.awaits.is_some_and(|version| version != code.version());
        if part.lines.is_some() && !is_stale {
            return;
        }
        let mut ink = Ink::new(code);
        let lines = match &part.source {
            Source::Made => return,
            Source::Markdown(text) => markdown::render_inked(text, self.width, theme, &mut ink),
            Source::Change(change, range) => {
                change.diff.lines(change.sides(), range.clone(), self.width, theme, &mut ink)
            }
        };
        part.awaits = ink.pending.then(|| ink.code.version());
        #[cfg(test)]
        {
            self.made += lines.len();
        }
        let (before, after) = (part.count, lines.len());
        part.count = after;
        part.lines = Some(lines);
        if before != after {
            // A row that was measured otherwise than it was drawn moves those below it.
            self.len = 0;
            for part in &mut self.parts {
                part.first = self.len;
                self.len += part.count;
            }
        }
    }

    /// The rows that hold `needle`, which is in lower case.
    pub(super) fn hits(&mut self, needle: &str, theme: &Theme) -> Vec<usize> {
        let mut out = Vec::new();
        if needle.is_empty() {
            return out;
        }
        for part in &mut self.parts {
            let (first, width) = (part.first, self.width);
            let plain = part.plain.get_or_insert_with(|| match (&part.lines, &part.source) {
                (Some(lines), _) => lowered(lines),
                (None, Source::Change(change, range)) => {
                    // Colours say nothing here.
                    let mut code = Highlighter::off();
                    let mut ink = Ink::new(&mut code);
                    let sides = change.sides();
                    lowered(&change.diff.lines(sides, range.clone(), width, theme, &mut ink))
                }
                (None, Source::Made | Source::Markdown(_)) => Vec::new(),
            });
            let found = plain.iter().enumerate().filter(|(_, row)| row.contains(needle));
            out.extend(found.map(|(at, _)| first + at));
        }
        out
    }
}

fn lowered(lines: &[Line<'_>]) -> Vec<String> {
    lines.iter().map(|line| line.to_string().to_lowercase()).collect()
}

#[cfg(test)]
#[allow(clippy::format_collect, reason = "test texts are built plainly")]
mod tests {
    use super::*;

    fn long_change(lines: usize) -> (String, String) {
        let old = (0..lines).map(|n| format!("let a{n} = \"one\"; // 注 {n}\n")).collect();
        let new = (0..lines).map(|n| format!("let b{n} = \"two\"; // 注 {}\n", n * 7)).collect();
        (old, new)
    }

    #[test]
    fn a_long_diff_is_drawn_and_coloured_only_where_one_looks() {
        let theme = Theme::default();
        let (old, new) = long_change(10_000);
        for width in [80, 120] {
            let mut code = Highlighter::inline();
            let mut paper = Paper::new(width, &theme);
            paper.add_change("a.rs".to_owned(), Some(&old), &new, &theme);
            assert_eq!((paper.made, code.coloured()), (0, 0));
            assert!(paper.len() > 10_000, "{}", paper.len());
            let tail = paper.len() - 40..paper.len();
            assert_eq!(paper.rows(tail.clone(), &theme, &mut code).count(), 40);
            assert!(paper.made <= 3 * STRETCH, "{} rows were made", paper.made);
            assert!(code.coloured() <= 4_000, "{} lines were coloured", code.coloured());
            // Another frame makes nothing.
            let made = paper.made;
            assert_eq!(paper.rows(tail, &theme, &mut code).count(), 40);
            assert_eq!(paper.made, made);
        }
    }

    #[test]
    fn scrolling_line_by_line_makes_every_row_once() {
        let theme = Theme::default();
        let (old, new) = long_change(400);
        let mut code = Highlighter::off();
        let mut paper = Paper::new(80, &theme);
        paper.add_change("a.rs".to_owned(), Some(&old), &new, &theme);
        for first in (0..paper.len() - 40).rev() {
            assert_eq!(paper.rows(first..first + 40, &theme, &mut code).count(), 40);
        }
        assert_eq!(paper.made, paper.len() - 1, "the header was there at once");
    }

    #[test]
    fn rows_are_where_they_were_counted_and_are_found_undrawn() {
        let theme = Theme::default();
        let mut code = Highlighter::off();
        let wide = "x中".repeat(90);
        let new: String = (0..600).map(|n| format!("{wide} {n}\n")).collect();
        let mut paper = Paper::new(50, &theme);
        paper.add_change("a".to_owned(), None, &new, &theme);
        let hits = paper.hits(" 599", &theme);
        assert_eq!(hits.len(), 1);
        assert_eq!(paper.made, 0, "a search draws nothing");
        let row = paper.rows(hits[0]..hits[0] + 1, &theme, &mut code).next().unwrap();
        assert!(row.to_string().contains(" 599"), "{row}");
        let len = paper.len();
        assert_eq!(paper.rows(0..len, &theme, &mut code).count(), len);
    }
}
