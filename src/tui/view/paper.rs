//! The rows of something long, made when they are first looked at.
//!
//! Owns [`Paper`]: a page, or what a dialog asks about. A long diff is drawn stretch by stretch, as
//! far as one scrolls, and a long text is read so too: it opens at once and no frame draws what it
//! does not show. Above what one looks at every row is counted, so that nothing above ever moves
//! it; how much is below may be a guess. Must not know where the texts come from.

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
        self.parts.splice(range, [unread]);
        self.place(0);
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
        for part in self.parts.iter_mut().skip(at) {
            part.first = self.len;
            self.len += part.count;
        }
    }

    /// Makes sure that the rows before `row` are counted and those at it are known. Says whether
    /// all there is is counted now.
    pub(super) fn reach(&mut self, row: usize, theme: &Theme, code: &mut Highlighter) -> bool {
        while let Some(part) = self.parts.get(self.sure) {
            if !part.guessed {
                self.sure += 1;
            } else if part.first >= row {
                return false;
            } else if let Source::Unread(number) = part.source {
                self.read_on(self.sure, number);
            } else {
                self.make(self.sure, theme, code);
            }
        }
        true
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

    /// The rows that hold `needle`, which is in lower case.
    pub(super) fn hits(
        &mut self,
        needle: &str,
        theme: &Theme,
        code: &mut Highlighter,
    ) -> Vec<usize> {
        let mut out = Vec::new();
        if needle.is_empty() {
            return out;
        }
        self.reach(usize::MAX, theme, code);
        for part in &mut self.parts {
            if let Source::Read(number, rows) = &part.source {
                let Some(sheet) = self.sheets.get(*number) else { continue };
                let mut first = part.first;
                for n in rows.clone() {
                    out.extend(sheet.hits(n, self.width, needle).iter().map(|at| first + at));
                    first += sheet.height(n, self.width);
                }
                continue;
            }
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
                (None, Source::Unit(number, unit, gap)) => {
                    let mut code = Highlighter::off();
                    let mut brush = Brush { width, theme, code: &mut code };
                    let prose = self.proses.get(*number);
                    prose.map_or_else(Vec::new, |prose| {
                        lowered(&prose.draw(unit, *gap, &mut brush).0)
                    })
                }
                (None, _) => Vec::new(),
            });
            let found = plain.iter().enumerate().filter(|(_, row)| row.contains(needle));
            out.extend(found.map(|(at, _)| first + at));
        }
        out
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

    /// Rows from the top on, as they are drawn.
    fn all_rows(paper: &mut Paper, theme: &Theme) -> Vec<String> {
        let mut code = Highlighter::off();
        paper.reach(usize::MAX, theme, &mut code);
        let len = paper.len();
        paper.rows(0..len, theme, &mut code).map(ToString::to_string).collect()
    }

    #[test]
    fn a_text_of_sixteen_megabytes_is_read_and_drawn_only_as_far_as_one_looks() {
        let theme = Theme::default();
        let mut code = Highlighter::off();
        let line = |n: usize| format!("{n:>7} \x1b[32mok\x1b[0m {}\n", "words ".repeat(n % 30));
        let text: String = (0..160_000).map(line).collect();
        assert!(text.len() > 15 << 20, "{}", text.len());
        let mut paper = Paper::new(100, &theme);
        paper.add_sheet(Sheet::printed(text.clone()));
        let first = paper.rows(0..40, &theme, &mut code).next().unwrap().to_string();
        assert!(first.contains("0 ok"), "{first}");
        assert!(paper.made <= 2 * STRETCH, "{} rows were made", paper.made);
        assert!(paper.sheets[0].len() < 5_000, "{} rows were read", paper.sheets[0].len());
        let guess = paper.len();
        assert!(!paper.reach(40, &theme, &mut code), "the rest is a guess");
        // The end is there when one goes there, and no more is drawn for it.
        assert!(paper.reach(usize::MAX, &theme, &mut code));
        let all = paper.len();
        assert!(all.abs_diff(guess) < all / 3, "guessed {guess}, has {all}");
        let last = paper.rows(all - 40..all, &theme, &mut code).last().unwrap().to_string();
        assert!(last.contains("words"), "{last}");
        assert!(paper.made <= 4 * STRETCH, "{} rows were made", paper.made);
        let hits = paper.hits(" 155555 ok", &theme, &mut code);
        assert_eq!(hits.len(), 1);
        let found = paper.rows(hits[0]..hits[0] + 1, &theme, &mut code).next().unwrap().to_string();
        assert!(found.contains("155555"), "{found}");
        // However far one scrolls, what is drawn is bounded.
        for first in (0..30_000).step_by(90) {
            paper.rows(first..first + 90, &theme, &mut code).for_each(drop);
        }
        let drawn = paper.parts.iter().filter(|part| part.lines.is_some()).count();
        assert!(drawn <= 2 * KEPT, "{drawn} stretches are drawn");
    }

    #[test]
    fn a_text_that_grows_while_it_is_read_has_the_rows_of_the_whole() {
        let theme = Theme::default();
        let mut code = Highlighter::off();
        let line = |n: usize| match n % 5 {
            0 => format!("{}\n", "long words ".repeat(12)),
            1 => format!("progress {n}\r"),
            2 => format!("\x1b[2A\x1b[Kover {n}\n\n\n"),
            3 => format!("中文 {n}\n\n"),
            _ => format!("line {n}"),
        };
        let text: String = (0..2_000).map(line).collect();
        let mut whole = Paper::new(40, &theme);
        whole.add_sheet(Sheet::printed(text.clone()));
        whole.add(vec![Line::from("below")]);
        let mut grown = Paper::new(40, &theme);
        grown.add_sheet(Sheet::printed(String::new()));
        grown.add(vec![Line::from("below")]);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let at = rest.floor_char_boundary(rest.len().min(501));
            let (piece, after) = rest.split_at(at);
            grown.extend_sheet(0, piece);
            let first = grown.len() / 2;
            grown.rows(first..first + 30, &theme, &mut code).for_each(drop);
            rest = after;
        }
        assert_eq!(all_rows(&mut grown, &theme), all_rows(&mut whole, &theme));
    }

    #[test]
    fn a_long_answer_is_drawn_only_where_one_looks_and_as_it_is_in_one_piece() {
        let theme = Theme::default();
        let mut code = Highlighter::off();
        let section = |n: usize| {
            format!(
                "## Part {n}\n\nSome **bold** words {n} and `code`, more than one row of them.\n\n- an item\n- another\n\n```rust\nlet a{n} = 1;\n```\n\n| a | b |\n|---|---|\n| {n} | 中 |\n\n"
            )
        };
        let text: String = (0..300).map(section).collect();
        let mut paper = Paper::new(50, &theme);
        paper.add_long_markdown(&text);
        paper.rows(0..40, &theme, &mut code).for_each(drop);
        assert!(paper.made < 80, "{} rows were made", paper.made);
        let once = markdown::render(&text, 50, &theme);
        let once: Vec<String> = once.iter().map(ToString::to_string).collect();
        assert_eq!(all_rows(&mut paper, &theme), once);
        // The same, as it comes.
        let mut grown = Paper::new(50, &theme);
        grown.add_long_markdown("");
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(rest.len().min(37)));
            grown.extend_markdown(0, piece);
            rest = after;
        }
        assert_eq!(all_rows(&mut grown, &theme), once);
        // What is settled is not drawn again when more comes.
        let made = grown.made;
        grown.extend_markdown(0, "One more paragraph.\n\n");
        assert!(all_rows(&mut grown, &theme).len() > once.len());
        assert!(grown.made - made < 20, "{} rows were made", grown.made - made);
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
        let hits = paper.hits(" 599", &theme, &mut code);
        assert_eq!(hits.len(), 1);
        assert_eq!(paper.made, 0, "a search draws nothing");
        let row = paper.rows(hits[0]..hits[0] + 1, &theme, &mut code).next().unwrap();
        assert!(row.to_string().contains(" 599"), "{row}");
        let len = paper.len();
        assert_eq!(paper.rows(0..len, &theme, &mut code).count(), len);
    }
}
