//! The rows of something long, made when they are first looked at.
//!
//! Owns [`Paper`]: a page, or what a dialog asks about. A long diff is drawn stretch by stretch, as
//! far as one scrolls, and a long text is read so too: it opens at once and no frame draws what it
//! does not show. Above what one looks at every row is counted, so that nothing above ever moves
//! it; how much is below may be a guess. Must not know where the texts come from.

pub(super) mod search;

use std::ops::Range;
use std::rc::Rc;

use ratatui::text::Line;

use super::code::Ink;
use super::diff::{self, Diff, Sides};
use super::highlight::Highlighter;
use super::markdown;
use super::markdown::stream::{Brush, Drawn, Stream, Unit, key_of};
use super::sheet::Sheet;
use super::theme::{Theme, ThemeSpec};

/// Rows of a diff or a text that are drawn together.
const STRETCH: usize = 128;
/// Bytes of a text that are read together.
const READ: usize = 256 * 1024;
/// Stretches that are kept drawn before those out of sight are dropped.
const KEPT: usize = 64;
/// Stretches around what is in sight that are never dropped.
const NEAR: usize = 4;

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
    /// A stretch of a long markdown text, by its number, and whether a blank row goes before it.
    Unit(usize, Unit, bool),
    /// Rows that were read of a sheet, by its number.
    Read(usize, Range<usize>),
    /// What is not read of it.
    Unread(usize),
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
    /// Whether `count` is a guess.
    guessed: bool,
}

/// Rows for one width and theme.
#[derive(Debug, Default)]
pub(super) struct Paper {
    parts: Vec<Part>,
    sheets: Vec<Sheet>,
    proses: Vec<Prose>,
    len: usize,
    /// Parts at the front of which none is guessed.
    sure: usize,
    /// Stretches drawn since some were dropped.
    drawn: usize,
    quest: search::Quest,
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

    /// Whether nothing was added.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How many rows there are; below what one has looked at it may be a guess.
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

    /// Adds a markdown text of any length, whose rows are counted as far as one looks.
    pub(super) fn add_long_markdown(&mut self, text: &str) {
        let number = self.proses.len();
        // A name for the highlighter that no text of the conversation has.
        let name = key_of("page", number);
        self.proses.push(Prose { stream: Stream::new(name), text: String::new(), tail: 0 });
        self.extend_markdown(number, text);
    }

    /// A markdown text has grown. What of it is settled stays as it is.
    pub(super) fn extend_markdown(&mut self, number: usize, more: &str) {
        let Some(prose) = self.proses.get_mut(number) else { return };
        prose.text.push_str(more);
        let mut units = Vec::new();
        prose.stream.advance(&prose.text, &mut units);
        let (_, rest) = prose.stream.tail(&prose.text, false);
        let base = prose.stream.settled();
        let stale = std::mem::replace(&mut prose.tail, rest.len());
        units.extend(rest.into_iter().map(|unit| unit.moved(base)));
        let is_its = |part: &Part| matches!(part.source, Source::Unit(of, ..) if of == number);
        let end = self.parts.iter().rposition(is_its).map_or(self.parts.len(), |at| at + 1);
        let from = end - stale.min(end);
        let is_first = !self.parts.get(..from).is_some_and(|parts| parts.iter().any(is_its));
        let parts = units.into_iter().enumerate().map(|(n, unit)| {
            let gap = unit.gap() && (n > 0 || !is_first);
            let guess = unit.len() / self.width.max(1) + 1 + usize::from(gap);
            Part { guessed: true, ..Part::new(Source::Unit(number, unit, gap), guess) }
        });
        let parts: Vec<Part> = parts.collect();
        self.parts.splice(from..end, parts);
        self.place(from);
    }

    /// Adds a sheet, which is read as far as one looks, and names it.
    pub(super) fn add_sheet(&mut self, sheet: Sheet) {
        let number = self.sheets.len();
        let guess = sheet.guess(self.width);
        let rows = 0..sheet.len();
        self.sheets.push(sheet);
        let parts = self.stretches(number, rows);
        self.parts.extend(parts);
        self.parts.push(Part { guessed: true, ..Part::new(Source::Unread(number), guess) });
        self.place(0);
    }

    /// A sheet's text has grown.
    pub(super) fn extend_sheet(&mut self, number: usize, more: &str) {
        let Some(sheet) = self.sheets.get_mut(number) else { return };
        sheet.extend(more);
        let guess = sheet.guess(self.width);
        let unread = Part { guessed: true, ..Part::new(Source::Unread(number), guess) };
        let is_rest = |part: &Part| matches!(part.source, Source::Unread(of) if of == number);
        let is_read = |part: &Part| matches!(part.source, Source::Read(of, _) if of == number);
        let range = if let Some(at) = self.parts.iter().position(is_rest) {
            at..at + 1
        } else {
            let last = self.parts.iter().rposition(is_read);
            let at = last.map_or(self.parts.len(), |at| at + 1);
            at..at
        };
        let at = range.start;
        self.parts.splice(range, [unread]);
        self.place(at);
    }

    /// Hands over the sheets, to be added to another paper in the same order.
    pub(super) fn take_sheets(&mut self) -> Vec<Sheet> {
        std::mem::take(&mut self.sheets)
    }

    /// Rows that were read, in stretches.
    fn stretches(&self, number: usize, rows: Range<usize>) -> Vec<Part> {
        let Some(sheet) = self.sheets.get(number) else { return Vec::new() };
        let mut out = Vec::new();
        let mut from = rows.start;
        while from < rows.end {
            // Stretches begin at fixed rows, whatever was read together.
            let to = ((from / STRETCH + 1) * STRETCH).min(rows.end);
            let count = (from..to).map(|n| sheet.height(n, self.width)).sum();
            out.push(Part::new(Source::Read(number, from..to), count));
            from = to;
        }
        out
    }

    fn push(&mut self, source: Source, count: usize, lines: Option<Vec<Line<'static>>>) {
        let part = Part { first: self.len, lines, ..Part::new(source, count) };
        self.len += count;
        self.parts.push(part);
    }

    /// Gives the parts from `at` on their places.
    fn place(&mut self, at: usize) {
        self.sure = self.sure.min(at);
        let before = at.checked_sub(1).and_then(|at| self.parts.get(at));
        self.len = before.map_or(0, |part| part.first + part.count);
        self.quest.forget(at, self.len);
        for part in self.parts.iter_mut().skip(at) {
            part.first = self.len;
            self.len += part.count;
        }
    }

    /// Makes sure that the rows before `row` are counted and those at it are known. Says whether
    /// all there is is counted now.
    pub(super) fn reach(&mut self, row: usize, theme: &Theme, code: &mut Highlighter) -> bool {
        self.reach_within(row, usize::MAX, theme, code);
        self.is_counted()
    }

    /// As [`Self::reach`], but reads no more than about `budget` bytes. Says whether it came so far.
    pub(super) fn reach_within(
        &mut self,
        row: usize,
        mut budget: usize,
        theme: &Theme,
        code: &mut Highlighter,
    ) -> bool {
        while let Some(part) = self.parts.get(self.sure) {
            if budget == 0 && part.guessed && part.first < row {
                return false;
            }
            if !part.guessed {
                self.sure += 1;
            } else if part.first >= row {
                return true;
            } else if let Source::Unread(number) = part.source {
                self.read_on(self.sure, number);
                budget = budget.saturating_sub(READ);
            } else {
                self.make(self.sure, theme, code);
                budget = budget.saturating_sub(READ / 64);
            }
        }
        true
    }

    /// Whether every row is counted.
    pub(super) fn is_counted(&self) -> bool {
        self.sure >= self.parts.len()
    }

    /// How many rows at the top are counted.
    pub(super) fn counted(&self) -> usize {
        self.parts.get(self.sure).map_or(self.len, |part| part.first)
    }

    /// Reads on in the sheet whose unread rest is the part `at`.
    fn read_on(&mut self, at: usize, number: usize) {
        let Some(sheet) = self.sheets.get_mut(number) else { return };
        let changed = sheet.read_on(READ);
        let len = sheet.len();
        let rest = (!sheet.is_read()).then(|| sheet.guess(self.width));
        let is_stale = |part: &Part| matches!(&part.source, Source::Read(of, rows) if *of == number && rows.end > changed);
        let mut from = at;
        while from.checked_sub(1).and_then(|n| self.parts.get(n)).is_some_and(is_stale) {
            from -= 1;
        }
        let first = match self.parts.get(from).map(|part| &part.source) {
            Some(Source::Read(_, rows)) => rows.start,
            _ => changed.min(len),
        };
        let mut parts = self.stretches(number, first..len);
        if parts.is_empty() {
            // Where it goes on, should it grow.
            parts.push(Part::new(Source::Read(number, len..len), 0));
        }
        parts.extend(
            rest.map(|guess| Part { guessed: true, ..Part::new(Source::Unread(number), guess) }),
        );
        self.parts.splice(from..=at, parts);
        self.place(from);
    }

    /// The rows in `range`, made where they were not.
    pub(super) fn rows(
        &mut self,
        range: Range<usize>,
        theme: &Theme,
        code: &mut Highlighter,
    ) -> impl Iterator<Item = &Line<'static>> {
        self.reach(range.end, theme, code);
        let first = self.part_of(range.start);
        let mut last = first;
        while self.parts.get(last).is_some_and(|part| part.first < range.end) {
            self.make(last, theme, code);
            last += 1;
        }
        self.drop_far(first..last);
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
            Source::Markdown(text) => markdown::render_inked(text, self.width, theme, &mut ink),
            Source::Change(change, range) => {
                change.diff.lines(change.sides(), range.clone(), self.width, theme, &mut ink)
            }
            Source::Unit(number, unit, gap) => {
                let Some(prose) = self.proses.get(*number) else { return };
                let mut brush = Brush { width: self.width, theme, code: ink.code };
                let (lines, pending) = prose.draw(unit, *gap, &mut brush);
                ink.pending = pending;
                lines
            }
            Source::Read(number, rows) => {
                let sheet = self.sheets.get(*number);
                let lines = |n| sheet.map(|sheet| sheet.lines(n, self.width, theme));
                rows.clone().filter_map(lines).flatten().collect()
            }
            Source::Made | Source::Unread(_) => return,
        };
        part.awaits = ink.pending.then(|| ink.code.version());
        part.guessed = false;
        self.drawn += 1;
        #[cfg(test)]
        {
            self.made += lines.len();
        }
        let (before, after) = (part.count, lines.len());
        part.count = after;
        part.lines = Some(lines);
        if before != after {
            // A row that was measured otherwise than it was drawn moves those below it.
            self.place(at);
        }
    }

    /// Drops stretches that are far from those in sight. What stays may grow as much again before
    /// this is done anew.
    fn drop_far(&mut self, seen: Range<usize>) {
        if self.drawn <= KEPT {
            return;
        }
        self.drawn = 0;
        let near = seen.start.saturating_sub(NEAR)..seen.end + NEAR;
        for (at, part) in self.parts.iter_mut().enumerate() {
            if !near.contains(&at) && !matches!(part.source, Source::Made) {
                part.lines = None;
            }
        }
    }
}

impl Part {
    fn new(source: Source, count: usize) -> Self {
        let plain = None;
        Self { first: 0, count, source, lines: None, awaits: None, plain, guessed: false }
    }
}

/// A long markdown text.
#[derive(Debug)]
struct Prose {
    stream: Stream,
    text: String,
    /// Parts at its end that are not settled.
    tail: usize,
}

impl Prose {
    fn draw(&self, unit: &Unit, gap: bool, brush: &mut Brush<'_>) -> Drawn {
        let (mut lines, pending) = self.stream.draw(&self.text, unit, brush);
        if gap {
            lines.insert(0, Line::default());
        }
        (lines, pending)
    }
}

#[cfg(test)]
#[allow(clippy::format_collect, reason = "test texts are built plainly")]
mod tests;
