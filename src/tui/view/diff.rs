//! Two texts → the rows of a diff, and rows → lines, only for the rows that are asked for.
//!
//! Owns [`Diff`]: the changed lines with their context, computed once within a time limit, so that
//! ten thousand lines open at once. Words are compared when their row is drawn, never before.

use std::ops::Range;
use std::time::{Duration, Instant};

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use unicode_segmentation::UnicodeSegmentation;

use super::ansi;
use super::theme::Theme;
use super::width::{cell_width, fit, split_at_width};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;
/// After this long an approximate diff is taken.
const LIMIT: Duration = Duration::from_millis(20);
/// Cells from which both sides are shown beside each other: a card on a screen of 120 columns.
pub const SIDE_BY_SIDE: usize = 112;
/// Bytes of a line that are compared by word.
const MAX_WORDS: usize = 1000;
/// Bytes of one line that are drawn; the pager has the rest.
const LINE_CAP: usize = 8 * 1024;

/// A row of the diff, by line numbers from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    /// Unchanged lines that are left out.
    Fold(usize),
    /// An unchanged line.
    Same(usize, usize),
    /// A removed line, and the added line that it became.
    Removed(usize, Option<usize>),
    /// An added line, and the removed line that it was.
    Added(usize, Option<usize>),
}

/// The difference of two texts. It holds line numbers only; the texts are given again to draw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    rows: Vec<Row>,
    pairs: Vec<(Option<Row>, Option<Row>)>,
    old: Vec<usize>,
    new: Vec<usize>,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
}

/// The two texts of a [`Diff`].
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// Before; empty for a new file.
    pub old: &'a str,
    /// After.
    pub new: &'a str,
}

impl Diff {
    /// Compares two texts by line.
    pub fn new(sides: Sides<'_>) -> Self {
        let old: Vec<&str> = sides.old.split_inclusive('\n').collect();
        let new: Vec<&str> = sides.new.split_inclusive('\n').collect();
        let deadline = Instant::now().checked_add(LIMIT);
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
        let mut diff = Self { old: starts(&old), new: starts(&new), ..Self::default() };
        diff.collect(&ops, old.len());
        diff.pair();
        diff
    }

    fn collect(&mut self, ops: &[DiffOp], old_len: usize) {
        let groups = similar::group_diff_ops(ops.to_vec(), CONTEXT);
        let mut shown = 0;
        for group in groups {
            let start = group.first().map_or(shown, |op| op.old_range().start);
            if start > shown {
                self.rows.push(Row::Fold(start - shown));
            }
            for op in group {
                shown = op.old_range().end;
                self.op(&op);
            }
        }
        if !self.rows.is_empty() && old_len > shown {
            self.rows.push(Row::Fold(old_len - shown));
        }
    }

    fn op(&mut self, op: &DiffOp) {
        let (old, new) = (op.old_range(), op.new_range());
        if let DiffOp::Equal { .. } = op {
            let lines = old.zip(new);
            self.rows.extend(lines.map(|(old, new)| Row::Same(old, new)));
            return;
        }
        self.removed += old.len();
        self.added += new.len();
        let partner = |n: usize, other: &Range<usize>| other.clone().nth(n);
        for (n, line) in old.clone().enumerate() {
            self.rows.push(Row::Removed(line, partner(n, &new)));
        }
        for (n, line) in new.enumerate() {
            self.rows.push(Row::Added(line, partner(n, &old)));
        }
    }

    /// Puts removed and added lines beside each other.
    fn pair(&mut self) {
        let mut rows = self.rows.iter().copied().peekable();
        while let Some(row) = rows.next() {
            match row {
                Row::Removed(..) => {
                    let mut left = vec![row];
                    while let Some(next) = rows.next_if(|row| matches!(row, Row::Removed(..))) {
                        left.push(next);
                    }
                    let mut right = Vec::new();
                    while let Some(next) = rows.next_if(|row| matches!(row, Row::Added(..))) {
                        right.push(next);
                    }
                    for n in 0..left.len().max(right.len()) {
                        self.pairs.push((left.get(n).copied(), right.get(n).copied()));
                    }
                }
                Row::Added(..) => self.pairs.push((None, Some(row))),
                Row::Fold(_) | Row::Same(..) => self.pairs.push((Some(row), Some(row))),
            }
        }
    }

    /// How many rows there are at `width`.
    pub fn len(&self, width: usize) -> usize {
        if width >= SIDE_BY_SIDE { self.pairs.len() } else { self.rows.len() }
    }

    /// Whether the texts are equal.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Draws the rows in `range`. A long row takes several lines.
    pub fn lines(
        &self,
        sides: Sides<'_>,
        range: Range<usize>,
        width: usize,
        theme: &Theme,
    ) -> Vec<Line<'static>> {
        let pen =
            Pen { diff: self, sides, theme, digits: digits(self.old.len().max(self.new.len())) };
        let mut out = Vec::new();
        if width >= SIDE_BY_SIDE {
            for (left, right) in self.pairs.iter().take(range.end).skip(range.start) {
                pen.pair(*left, *right, width, &mut out);
            }
        } else {
            for row in self.rows.iter().take(range.end).skip(range.start) {
                pen.unified(*row, width, &mut out);
            }
        }
        out
    }
}

/// Renders the whole change from `old` to `new` of the file `path` at `width` cells.
pub fn render(
    path: &str,
    old: Option<&str>,
    new: &str,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let sides = Sides { old: old.unwrap_or_default(), new };
    let diff = Diff::new(sides);
    let mut lines = vec![header(path, &diff, old.is_none(), width, theme)];
    lines.extend(diff.lines(sides, 0..diff.len(width), width, theme));
    lines
}

/// `path  +3 -1`, the path cut at its front.
pub fn header(
    path: &str,
    diff: &Diff,
    created: bool,
    width: usize,
    theme: &Theme,
) -> Line<'static> {
    let lead = if path.is_empty() { "" } else { " " };
    let added = format!("{lead}+{}", diff.added);
    let removed = format!(" -{}", diff.removed);
    let note = if created { " new file" } else { "" };
    let room = width.saturating_sub(added.len() + removed.len() + note.len());
    let path = ansi::visible(path);
    let path = super::width::truncate_start(&path, room, theme.glyphs.ellipsis);
    Line::from_iter([
        Span::styled(path, theme.title),
        Span::styled(added, theme.success),
        Span::styled(removed, theme.error),
        Span::styled(note, theme.dim),
    ])
}

fn starts(lines: &[&str]) -> Vec<usize> {
    let mut at = 0;
    lines
        .iter()
        .map(|line| {
            let start = at;
            at += line.len();
            start
        })
        .collect()
}

fn digits(n: usize) -> usize {
    n.max(1).to_string().len()
}

struct Pen<'a> {
    diff: &'a Diff,
    sides: Sides<'a>,
    theme: &'a Theme,
    digits: usize,
}

/// A line of one side, ready to be drawn.
struct Half {
    number: Option<usize>,
    sign: &'static str,
    style: Style,
    /// Text with the style of each stretch.
    spans: Vec<(String, Style)>,
}

impl Pen<'_> {
    fn old_line(&self, n: usize) -> &str {
        line_at(self.sides.old, &self.diff.old, n)
    }

    fn new_line(&self, n: usize) -> &str {
        line_at(self.sides.new, &self.diff.new, n)
    }

    fn half(&self, row: Row) -> Half {
        let theme = self.theme;
        let (number, sign, style, word, line, other) = match row {
            Row::Fold(_) => (None, " ", theme.hunk, theme.hunk, "", None),
            Row::Same(_, new) => {
                let line = self.new_line(new);
                (Some(new), " ", theme.text, theme.text, line, None)
            }
            Row::Removed(old, new) => {
                let other = new.map(|new| self.new_line(new));
                let line = self.old_line(old);
                (Some(old), "-", theme.removed, theme.removed_word, line, other)
            }
            Row::Added(new, old) => {
                let other = old.map(|old| self.old_line(old));
                let line = self.new_line(new);
                (Some(new), "+", theme.added, theme.added_word, line, other)
            }
        };
        Half { number, sign, style, spans: words(line, other, style, word) }
    }

    fn fold(&self, count: usize, width: usize, out: &mut Vec<Line<'static>>) {
        let glyphs = self.theme.glyphs;
        let text = format!("{} {count} unchanged", glyphs.ellipsis);
        let indent = " ".repeat(self.digits + 1);
        let text = fit(&format!("{indent}{text}"), width, "");
        out.push(Line::styled(text.trim_end().to_owned(), self.theme.hunk));
    }

    fn unified(&self, row: Row, width: usize, out: &mut Vec<Line<'static>>) {
        if let Row::Fold(count) = row {
            return self.fold(count, width, out);
        }
        out.extend(self.side(&self.half(row), width).into_iter().map(Line::from));
    }

    fn pair(
        &self,
        left: Option<Row>,
        right: Option<Row>,
        width: usize,
        out: &mut Vec<Line<'static>>,
    ) {
        if let Some(Row::Fold(count)) = left {
            return self.fold(count, width, out);
        }
        let half = (width - 1) / 2;
        let draw = |row: Option<Row>, is_left: bool| {
            row.map_or_else(Vec::new, |row| {
                let mut half_row = self.half(row);
                if let (Row::Same(old, _), true) = (row, is_left) {
                    half_row.number = Some(old);
                }
                self.side(&half_row, half)
            })
        };
        let (left, right) = (draw(left, true), draw(right, false));
        for n in 0..left.len().max(right.len()) {
            let mut spans =
                left.get(n).cloned().unwrap_or_else(|| vec![Span::raw(" ".repeat(half))]);
            spans.push(Span::styled(self.theme.glyphs.bar, self.theme.border));
            spans.extend(right.get(n).cloned().unwrap_or_default());
            out.push(Line::from(spans));
        }
    }

    /// The rows of a line within `width` cells: number, sign, text, filled to the edge.
    fn side(&self, half: &Half, width: usize) -> Vec<Vec<Span<'static>>> {
        let theme = self.theme;
        let lead = self.digits + 3;
        let room = width.saturating_sub(lead).max(1);
        let mut rows: Vec<Vec<Span<'static>>> = Vec::new();
        let mut row: Vec<Span<'static>> = Vec::new();
        let mut used = 0;
        let number = half.number.map_or_else(String::new, |number| (number + 1).to_string());
        let digits = self.digits;
        let begin = |first: bool| {
            let (number, sign) = if first { (number.as_str(), half.sign) } else { ("", " ") };
            vec![
                Span::styled(format!("{number:>digits$} "), theme.line_number),
                Span::styled(format!("{sign} "), half.style),
            ]
        };
        row.extend(begin(true));
        for (text, style) in &half.spans {
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (fits, after) = split_at_width(rest, room - used);
                if fits.is_empty() && used > 0 {
                    pad(&mut row, room - used, half.style);
                    rows.push(std::mem::replace(&mut row, begin(false)));
                    used = 0;
                    continue;
                }
                let (fits, after) = if fits.is_empty() {
                    let first = after.graphemes(true).next().map_or(after.len(), str::len);
                    after.split_at_checked(first).unwrap_or((after, ""))
                } else {
                    (fits, after)
                };
                used = (used + cell_width(fits)).min(room);
                row.push(Span::styled(fits.to_owned(), *style));
                rest = after;
            }
        }
        pad(&mut row, room - used, half.style);
        rows.push(row);
        rows
    }
}

/// Fills a row with its background, where it has one.
fn pad(row: &mut Vec<Span<'static>>, cells: usize, style: Style) {
    if cells > 0 {
        row.push(Span::styled(" ".repeat(cells), style));
    }
}

fn line_at<'a>(text: &'a str, starts: &[usize], n: usize) -> &'a str {
    let from = starts.get(n).copied().unwrap_or(text.len());
    let to = starts.get(n + 1).copied().unwrap_or(text.len());
    text.get(from..to).unwrap_or_default().trim_end_matches(['\n', '\r'])
}

/// The words of a line, those that differ from `other` in their own style.
fn words(line: &str, other: Option<&str>, style: Style, word: Style) -> Vec<(String, Style)> {
    let mut cut = line.len().min(LINE_CAP);
    while !line.is_char_boundary(cut) {
        cut -= 1;
    }
    let whole = line.get(..cut).unwrap_or_default();
    let plain = || vec![(ansi::visible(whole).into_owned(), style)];
    let Some(other) = other else {
        return plain();
    };
    if line.len().max(other.len()) > MAX_WORDS {
        return plain();
    }
    let mine: Vec<&str> = line.split_word_bounds().collect();
    let theirs: Vec<&str> = other.split_word_bounds().collect();
    let ops = similar::capture_diff_slices(Algorithm::Myers, &theirs, &mine);
    let same: usize = ops
        .iter()
        .filter(|op| matches!(op, DiffOp::Equal { .. }))
        .flat_map(|op| mine.get(op.new_range()).unwrap_or_default())
        .map(|word| word.trim().len())
        .sum();
    // Lines that share next to nothing are different lines, not a changed one.
    if same * 4 < line.trim().len() {
        return plain();
    }
    let mut out: Vec<(String, Style)> = Vec::new();
    for op in &ops {
        let text = mine.get(op.new_range()).unwrap_or_default().concat();
        if text.is_empty() {
            continue;
        }
        let style = if matches!(op, DiffOp::Equal { .. }) { style } else { word };
        out.push((ansi::visible(&text).into_owned(), style));
    }
    out
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

    fn shown(old: Option<&str>, new: &str, width: usize) -> String {
        let lines = render("src/a.rs", old, new, width, &Theme::default());
        let lines: Vec<String> =
            lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
        lines.join("\n")
    }

    fn file(changed: &[(usize, &str)]) -> String {
        (1..=40)
            .map(|n| {
                let changed = changed.iter().find(|(line, _)| *line == n);
                changed.map_or_else(|| format!("line {n}\n"), |(_, text)| (*text).to_owned())
            })
            .collect()
    }

    #[test]
    fn unified_shows_context_folds_and_numbers() {
        let new = file(&[(10, "line ten\n"), (30, ""), (31, "line 31 中文 and a long tail\n")]);
        insta::assert_snapshot!(shown(Some(&file(&[])), &new, 24));
    }

    #[test]
    fn side_by_side_from_120_cells() {
        let new = file(&[(10, "line ten\nand more\n"), (30, "")]);
        insta::assert_snapshot!(shown(Some(&file(&[])), &new, 120));
    }

    #[test]
    fn a_new_file_is_all_added() {
        assert_eq!(shown(None, "a\nb", 30), "src/a.rs +2 -0 new file\n1 + a\n2 + b");
    }

    #[test]
    fn only_the_words_that_differ_are_marked() {
        let theme = Theme::default();
        let spans = words("let a = 2;", Some("let a = 1;"), theme.added, theme.added_word);
        let marked: Vec<&str> = spans
            .iter()
            .filter(|(_, style)| *style == theme.added_word)
            .map(|(text, _)| text.as_str())
            .collect();
        assert_eq!(marked, ["2"]);
        assert_eq!(words("abc", Some("xyz"), theme.added, theme.added_word).len(), 1);
    }

    #[test]
    fn ten_thousand_changed_lines_open_at_once() {
        let old: String = (0..10_000).map(|n| format!("old {n}\n")).collect();
        let new: String = (0..10_000).map(|n| format!("new {}\n", n * 7)).collect();
        let sides = Sides { old: &old, new: &new };
        let start = Instant::now();
        let diff = Diff::new(sides);
        let lines = diff.lines(sides, 9_000..9_050, 80, &Theme::default());
        assert!(start.elapsed() < Duration::from_secs(2));
        assert_eq!(lines.len(), 50);
        assert_eq!((diff.added, diff.removed), (10_000, 10_000));
    }
}
