//! Selecting with the mouse, and drawn cells → source text.
//!
//! Owns [`Selection`], two points in content coordinates, so that it stays on its text while the
//! screen scrolls. What is copied is the source: of an answer, the markdown between the points;
//! of other blocks, their text without gutters, bars and line numbers, and without the line ends
//! that only wrapping made. Nothing in the layout knows about sources, so the two are aligned here,
//! when something is copied and never before.

use ratatui::buffer::Buffer;
use ratatui::style::Style;
use ratatui::text::Line;
use unicode_segmentation::UnicodeSegmentation;

use super::super::theme::Theme;
use super::super::width::{cell_width, grapheme_width};
use super::layout::{self, Env};
use super::rows::Slot;
use super::scroll::Place;
use super::{GUTTER, Hit, MARGIN, TranscriptView};
use crate::tui::model::transcript::block::BlockKind;
use crate::tui::model::transcript::{Transcript, source};

/// How far ahead a word is looked for in the source, in bytes.
const NEAR: usize = 240;
/// How far ahead the next character of a word that markup cuts is looked for.
const NEAR_CHAR: usize = 24;
/// A word of so many bytes is looked for in all of the rest.
const DISTINCT: usize = 8;
/// Characters of two rows that must meet in the source to say that one was wrapped.
const SEAM: usize = 24;

/// A cell of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) place: Place,
    /// Cells from the text's left edge.
    pub(super) column: usize,
}

/// What is selected: both points are within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Selection {
    anchor: Point,
    head: Point,
    /// Where the button went down.
    pressed: (u16, u16),
    moved: bool,
}

impl Selection {
    fn ends(&self) -> (Point, Point) {
        (self.anchor.min(self.head), self.anchor.max(self.head))
    }
}

/// What letting the button go means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// The mouse did not move: a click, on this.
    Click(Option<Hit>),
    /// Text is selected.
    Selected,
}

impl TranscriptView {
    /// The button went down.
    pub fn press(&mut self, x: u16, y: u16) {
        self.selection = self.point(x, y).map(|point| Selection {
            anchor: point,
            head: point,
            pressed: (x, y),
            moved: false,
        });
    }

    /// The mouse moved with the button down. At the edge of the screen the text scrolls.
    pub fn drag(&mut self, x: u16, y: u16) {
        let area = self.area;
        if area.height == 0 || self.selection.is_none() {
            return;
        }
        if y <= area.y {
            self.scroll_by(-1);
        } else if y + 1 >= area.bottom() {
            self.scroll_by(1);
        }
        let row = y.clamp(area.y, area.bottom() - 1);
        let head = (area.y..=row).rev().find_map(|y| self.point(x, y));
        if let (Some(selection), Some(head)) = (&mut self.selection, head) {
            selection.moved |= selection.pressed != (x, y);
            selection.head = head;
        }
    }

    /// The button was let go.
    pub fn release(&mut self, x: u16, y: u16) -> Released {
        match &self.selection {
            Some(selection) if selection.moved => Released::Selected,
            _ => {
                self.selection = None;
                Released::Click(self.hit(x, y))
            }
        }
    }

    /// Whether text is selected.
    pub fn has_selection(&self) -> bool {
        self.selection.is_some_and(|selection| selection.moved)
    }

    /// Ends the selection of text.
    pub fn clear_selection(&mut self) {
        self.selection = None;
    }

    fn point(&self, x: u16, y: u16) -> Option<Point> {
        let row = usize::from(y.checked_sub(self.area.y)?);
        let place = (*self.places.get(row)?)?;
        let segment = self.layouts.get(&place.root)?.segments().get(place.segment)?;
        let indent = (u16::from(segment.depth) * 2).min(self.area.width / 2);
        let left = self.area.x + indent + GUTTER;
        Some(Point { place, column: usize::from(x.saturating_sub(left)) })
    }

    /// Marks the selected cells of a row.
    pub(super) fn mark_selection(&self, place: Place, slot: Slot, style: Style, buf: &mut Buffer) {
        let Some(selection) = self.selection.filter(|selection| selection.moved) else {
            return;
        };
        let (first, last) = selection.ends();
        if place < first.place || place > last.place {
            return;
        }
        let from = if place == first.place { first.column } else { 0 };
        let to = if place == last.place { last.column } else { usize::MAX };
        let mut end = slot.x;
        for x in slot.x..slot.x.saturating_add(slot.width) {
            if buf.cell((x, slot.y)).is_some_and(|cell| cell.symbol() != " ") {
                end = x + 1;
            }
        }
        for x in slot.x..end {
            let column = usize::from(x - slot.x);
            if column >= from
                && column <= to
                && let Some(cell) = buf.cell_mut((x, slot.y))
            {
                cell.set_style(style);
            }
        }
    }

    /// The source of what is selected.
    pub fn selected_text(&mut self, transcript: &Transcript, theme: &Theme) -> Option<String> {
        let (first, last) = self.selection.filter(|selection| selection.moved)?.ends();
        let width = usize::from(self.area.width.checked_sub(GUTTER + MARGIN)?);
        let env = Env { transcript, within: self.within, theme, width, now_ms: 0 };
        let mut out = String::new();
        for root in first.place.root..=last.place.root {
            let from = (root == first.place.root).then_some(first);
            let to = (root == last.place.root).then_some(last);
            let Some(block) = env.roots().get(root).and_then(|id| transcript.block(*id)) else {
                continue;
            };
            let text = match &block.kind {
                BlockKind::TurnEnd(_) => continue,
                BlockKind::Assistant(message) => {
                    self.markdown_between(root, &message.text, from, to, &env)
                }
                _ => self.rows_between(root, from, to, &env),
            };
            let text = text.trim_end_matches(['\n', ' ']);
            if !text.is_empty() {
                if !out.is_empty() {
                    out.push_str("\n\n");
                }
                out.push_str(text);
            }
        }
        (!out.is_empty()).then_some(out)
    }

    /// The markdown of an answer between two points.
    fn markdown_between(
        &mut self,
        root: usize,
        message: &str,
        from: Option<Point>,
        to: Option<Point>,
        env: &Env<'_>,
    ) -> String {
        let start = from.map_or(0, |point| self.offset(root, point, message, false, env));
        let end = to.map_or(usize::MAX, |point| self.offset(root, point, message, true, env));
        let Some(layout) = self.layouts.get(&root) else {
            return String::new();
        };
        let source = layout.source(message);
        source.get(start..end.min(source.len())).unwrap_or_default().to_owned()
    }

    /// Which byte of an answer's source a point stands for: the first one at or after it, or one
    /// past the last one at or before it.
    fn offset(
        &mut self,
        root: usize,
        point: Point,
        message: &str,
        is_end: bool,
        env: &Env<'_>,
    ) -> usize {
        self.rows(root, point.place.segment, env);
        let Some(layout) = self.layouts.get(&root) else {
            return 0;
        };
        let Some((segment, range)) = layout.stretch(point.place.segment, message) else {
            return 0;
        };
        let source = layout.source(message).get(range.clone()).unwrap_or_default();
        let lines = segment.lines().map(|lines| &lines[..]).unwrap_or_default();
        let mut drawn: Vec<Drawn> = lines.iter().map(|line| Drawn::of(line, env.theme)).collect();
        if segment.is_code()
            && let (Some(row), Some(line)) = (drawn.first_mut(), lines.first())
            && line.spans.get(1).is_some_and(|span| span.style == env.theme.code_label)
        {
            // The language stands above the code, outside of the range.
            row.cells.iter_mut().for_each(|cell| cell.3 = false);
        }
        let line = point.place.line.checked_sub(u32::from(segment.gap));
        let Some(line) = line.map(|line| line as usize) else {
            return range.start;
        };
        let aligned = align(&drawn, source);
        let here = if is_end {
            end_of(&drawn, &aligned, line, point.column).unwrap_or(0)
        } else {
            start_of(&drawn, &aligned, line, point.column).unwrap_or(source.len())
        };
        let whole = if is_end { is_at_end(&drawn, line, point.column) } else { false };
        let text_begins = drawn.get(line).map_or(0, |row| {
            (0..row.cells.len())
                .find(|at| row.cells.get(*at).is_some_and(|c| c.3) && row.grapheme(*at) != " ")
                .map_or(0, |at| row.cells.get(at).map_or(0, |cell| cell.1))
        });
        let above = source.get(..here).unwrap_or_default();
        let indent = above.len() - above.trim_end_matches([' ', '\t']).len();
        let begins_line = here == indent || above.trim_end_matches([' ', '\t']).ends_with('\n');
        if !is_end && segment.is_code() && begins_line && point.column < text_begins {
            // The line's own indentation comes with it.
            return range.start + here - indent;
        }
        range.start + if whole { source.trim_end().len().max(here) } else { here }
    }

    /// The text of a card's rows between two points.
    fn rows_between(
        &mut self,
        root: usize,
        from: Option<Point>,
        to: Option<Point>,
        env: &Env<'_>,
    ) -> String {
        let count = self.segments(root, env);
        let first = from.map_or(0, |point| point.place.segment);
        let last = to.map_or(count.saturating_sub(1), |point| point.place.segment);
        let mut out = String::new();
        for at in first..=last.min(count.saturating_sub(1)) {
            self.rows(root, at, env);
            let Some(segment) =
                self.layouts.get(&root).and_then(|layout| layout.segments().get(at))
            else {
                continue;
            };
            let gap = u32::from(segment.gap);
            let width = env.width.saturating_sub(usize::from(segment.depth) * 2);
            let source = source::of_block(env.transcript, segment.block).unwrap_or_default();
            let line_of = |point: Point| point.place.line.saturating_sub(gap) as usize;
            let begin = from.filter(|_| at == first).map_or((0, 0), |p| (line_of(p), p.column));
            let end = to
                .filter(|_| at == last)
                .map_or((usize::MAX, usize::MAX), |p| (line_of(p), p.column));
            let mut joiner = Joiner { source: &source, width, last: None };
            let anchored_right = begin.1 * 2 > width;
            if !out.is_empty() {
                out.push_str(if gap > 0 { "\n\n" } else { "\n" });
            }
            for (n, line) in segment.lines().into_iter().flat_map(|l| l.iter()).enumerate() {
                if n < begin.0 || n > end.0 {
                    continue;
                }
                let line = layout::half_of(line, anchored_right, env.theme);
                let drawn = Drawn::of(&line, env.theme);
                let left = if n == begin.0 { begin.1 } else { 0 };
                let right = if n == end.0 { end.1 } else { usize::MAX };
                joiner.push(&drawn, left..=right, &mut out);
            }
        }
        out
    }
}

/// Puts rows together again.
struct Joiner<'a> {
    source: &'a str,
    width: usize,
    /// The text of the row above and the cells it took.
    last: Option<(String, usize)>,
}

impl Joiner<'_> {
    fn push(&mut self, row: &Drawn, columns: std::ops::RangeInclusive<usize>, out: &mut String) {
        let whole = row.text_in(0..=usize::MAX);
        let text = row.text_in(columns);
        if let Some((above, cells)) = &self.last {
            out.push_str(self.seam(above, *cells, &whole));
        }
        out.push_str(&text);
        let cells = row.indent() + cell_width(&whole);
        self.last = Some((whole, cells));
    }

    /// What was between two rows before they were wrapped.
    fn seam(&self, above: &str, cells: usize, below: &str) -> &'static str {
        let word = below.split(' ').next().unwrap_or_default();
        let is_full = cells + cell_width(word) + 1 >= self.width;
        if !is_full || above.is_empty() || below.is_empty() {
            return "\n";
        }
        let tail: String = {
            let mut last: Vec<char> = above.chars().rev().take(SEAM).collect();
            last.reverse();
            last.into_iter().collect()
        };
        let head: String = below.chars().take(SEAM).collect();
        for seam in ["", " "] {
            if self.source.contains(&format!("{tail}{seam}{head}")) {
                return seam;
            }
        }
        "\n"
    }
}

/// A drawn row with what is decoration told apart.
#[derive(Debug, Default)]
struct Drawn {
    text: String,
    /// Byte, column and cells of each grapheme, and whether it stands for text.
    cells: Vec<(usize, usize, usize, bool)>,
}

impl Drawn {
    fn of(line: &Line<'_>, theme: &Theme) -> Self {
        let mut drawn = Self::default();
        let mut column = 0;
        let mut is_sign = false;
        for (at, span) in line.spans.iter().enumerate() {
            let is_bar = span.content.trim_end() == theme.glyphs.bar;
            let is_number = layout::is_line_number(line, at, theme);
            let is_deco = is_bar || is_number || is_sign;
            // After a line number comes the sign of the line, a span of its own.
            is_sign = is_number;
            for grapheme in span.content.graphemes(true) {
                let cells = grapheme_width(grapheme);
                drawn.cells.push((drawn.text.len(), column, cells, !is_deco));
                drawn.text.push_str(grapheme);
                column += cells;
            }
        }
        drawn
    }

    fn grapheme(&self, at: usize) -> &str {
        let from = self.cells.get(at).map_or(self.text.len(), |cell| cell.0);
        let to = self.cells.get(at + 1).map_or(self.text.len(), |cell| cell.0);
        self.text.get(from..to).unwrap_or_default()
    }

    /// Cells of decoration on the left.
    fn indent(&self) -> usize {
        self.cells.iter().take_while(|cell| !cell.3).map(|cell| cell.2).sum()
    }

    /// The text in these columns, decoration and the fill at the end left out.
    fn text_in(&self, columns: std::ops::RangeInclusive<usize>) -> String {
        let mut out = String::new();
        for (at, (_, column, cells, is_text)) in self.cells.iter().enumerate() {
            let last = column + cells.saturating_sub(1);
            if *is_text && last >= *columns.start() && column <= columns.end() {
                out.push_str(self.grapheme(at));
            }
        }
        out.truncate(out.trim_end().len());
        out
    }

    /// One past the last grapheme that is not blank.
    fn used(&self) -> usize {
        (0..self.cells.len())
            .rev()
            .find(|at| !self.grapheme(*at).trim().is_empty())
            .map_or(0, |at| at + 1)
    }
}

/// For every grapheme of every row, where it is in the source.
type Aligned = Vec<Vec<Option<usize>>>;

/// Finds the drawn words in the source, in order. What is drawn but not written stays without.
fn align(rows: &[Drawn], source: &str) -> Aligned {
    let mut at = 0;
    rows.iter()
        .map(|row| {
            let mut places = vec![None; row.cells.len()];
            for word in words(row) {
                at = find_word(row, word, source, at, &mut places);
            }
            places
        })
        .collect()
}

/// The runs of graphemes between blanks, decoration left out.
fn words(row: &Drawn) -> Vec<std::ops::Range<usize>> {
    let mut out = Vec::new();
    let mut from = None;
    for at in 0..=row.cells.len() {
        let is_word =
            row.cells.get(at).is_some_and(|cell| cell.3) && !row.grapheme(at).trim().is_empty();
        match (from, is_word) {
            (None, true) => from = Some(at),
            (Some(start), false) => {
                out.push(start..at);
                from = None;
            }
            _ => {}
        }
    }
    out
}

/// Places one word. Returns where the next one is looked for.
fn find_word(
    row: &Drawn,
    word: std::ops::Range<usize>,
    source: &str,
    at: usize,
    places: &mut [Option<usize>],
) -> usize {
    let byte = |at: usize| row.cells.get(at).map_or(row.text.len(), |cell| cell.0);
    let (from, to) = (byte(word.start), byte(word.end));
    let text = row.text.get(from..to).unwrap_or_default();
    let rest = source.get(at..).unwrap_or_default();
    let found = rest.find(text).filter(|found| *found <= NEAR || text.len() >= DISTINCT);
    if let Some(found) = found {
        for n in word {
            if let Some(place) = places.get_mut(n) {
                *place = Some(at + found + byte(n) - from);
            }
        }
        return at + found + text.len();
    }
    // Markup may stand within the word.
    let mut here = at;
    let mut hits = Vec::new();
    for n in word.clone() {
        let grapheme = row.grapheme(n);
        let reach = if hits.is_empty() { NEAR } else { NEAR_CHAR };
        let rest = source.get(here..).unwrap_or_default();
        if let Some(found) = rest.find(grapheme).filter(|found| *found <= reach) {
            hits.push((n, here + found));
            here += found + grapheme.len();
        }
    }
    // A mark that is drawn only (a bullet, a frame) finds nothing, or next to nothing.
    if hits.len() * 3 < word.len() * 2 {
        return at;
    }
    for (n, found) in hits {
        if let Some(place) = places.get_mut(n) {
            *place = Some(found);
        }
    }
    here
}

fn start_of(rows: &[Drawn], aligned: &Aligned, line: usize, column: usize) -> Option<usize> {
    let first = rows.get(line)?;
    let text_begins = first.cells.iter().find(|cell| cell.3).map_or(0, |cell| cell.1);
    if line == 0 && column <= text_begins {
        return Some(0);
    }
    let within = first.cells.iter().zip(aligned.get(line)?);
    let here = within.filter(|(cell, _)| cell.1 + cell.2 > column).find_map(|(_, place)| *place);
    here.or_else(|| aligned.iter().skip(line + 1).flatten().find_map(|place| *place))
}

fn end_of(rows: &[Drawn], aligned: &Aligned, line: usize, column: usize) -> Option<usize> {
    let past = |row: usize, at: usize, place: usize| {
        place + rows.get(row).map_or(0, |row| row.grapheme(at).len())
    };
    let last = |row: usize, column: usize| {
        let cells = rows.get(row)?.cells.iter().zip(aligned.get(row)?);
        cells
            .enumerate()
            .filter(|(_, (cell, _))| cell.1 <= column)
            .filter_map(|(at, (_, place))| place.map(|place| past(row, at, place)))
            .next_back()
    };
    last(line, column).or_else(|| (0..line).rev().find_map(|row| last(row, usize::MAX)))
}

/// Whether a point is at or past the last character of all rows.
fn is_at_end(rows: &[Drawn], line: usize, column: usize) -> bool {
    let Some(last) = rows.iter().rposition(|row| row.used() > 0) else {
        return true;
    };
    let Some(row) = rows.get(last) else {
        return true;
    };
    let edge = row.cells.get(row.used().saturating_sub(1)).map_or(0, |cell| cell.1);
    line > last || (line == last && column >= edge)
}
