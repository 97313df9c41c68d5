//! Two texts → the rows of a diff, and rows → lines, only for the rows that are asked for.
//!
//! Owns [`Diff`]: the changed lines with their context, computed once within a time limit, so that
//! ten thousand lines open at once. Words are compared and code is coloured when their row is
//! drawn, never before; see [`pen`](self::pen).

mod pen;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::time::{Duration, Instant};

use ratatui::text::{Line, Span};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::ansi;
use super::code::Ink;
use super::theme::Theme;
use super::transcript::thousands;
use super::width::{cell_width, truncate, truncate_start};
use pen::Pen;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;
/// After this long an approximate diff is taken.
const LIMIT: Duration = Duration::from_millis(20);
/// Texts whose numbers of lines multiplied are no more than this are compared to the end.
const SMALL: usize = 1_000_000;
/// Cells from which both sides are shown beside each other: a card on a screen of 120 columns.
pub const SIDE_BY_SIDE: usize = 112;
/// Cells of a file's name that a note leaves.
const SHORTEST_NAME: usize = 16;
/// Bytes of one line that are drawn; the file has the rest.
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
    /// What the two texts are called where code is coloured: by what they say.
    keys: [u64; 2],
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// What the rows cannot show of how lines end, or that there is nothing to show.
    ends: &'static str,
}

/// The two texts of a [`Diff`].
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// The file, whose name tells the language.
    pub path: &'a str,
    /// Before; empty for a new file.
    pub old: &'a str,
    /// After.
    pub new: &'a str,
}

/// How long two texts of so many lines may be compared. What is soon done is done to its end,
/// however busy the machine is: what is shown of it must not depend on the moment.
fn limit(old: usize, new: usize) -> Option<Duration> {
    (old.saturating_mul(new) > SMALL).then_some(LIMIT)
}

impl Diff {
    /// Compares two texts by line.
    pub fn new(sides: Sides<'_>) -> Self {
        let old: Vec<&str> = sides.old.split_inclusive('\n').collect();
        let new: Vec<&str> = sides.new.split_inclusive('\n').collect();
        let limit = limit(old.len(), new.len());
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
        let keys = [sides.old, sides.new].map(key_of);
        let mut diff = Self { old: starts(&old), new: starts(&new), keys, ..Self::default() };
        diff.collect(&ops, old.len());
        diff.pair();
        diff.ends = ends(sides.old, sides.new);
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

    /// Whether both sides stand beside each other. A file that is new or gone has only one.
    fn is_split(&self, width: usize) -> bool {
        width >= SIDE_BY_SIDE && !self.old.is_empty() && !self.new.is_empty()
    }

    /// How many rows there are at `width`.
    pub fn len(&self, width: usize) -> usize {
        if self.is_split(width) { self.pairs.len() } else { self.rows.len() }
    }

    /// Whether the texts are equal.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many lines the rows in `range` take, without drawing them.
    pub fn height(&self, sides: Sides<'_>, range: Range<usize>, width: usize) -> usize {
        let height = |row: &Row, room: usize| self.row_height(sides, *row, room);
        if self.is_split(width) {
            let room = (width - 1) / 2;
            let rows = self.pairs.get(range).unwrap_or_default().iter();
            rows.map(|(left, right)| {
                let tall = |row: &Option<Row>| row.as_ref().map_or(0, |row| height(row, room));
                tall(left).max(tall(right))
            })
            .sum()
        } else {
            self.rows.get(range).unwrap_or_default().iter().map(|row| height(row, width)).sum()
        }
    }

    fn row_height(&self, sides: Sides<'_>, row: Row, width: usize) -> usize {
        let line = match row {
            Row::Fold(_) => return 1,
            Row::Same(_, new) | Row::Added(new, _) => line_at(sides.new, &self.new, new),
            Row::Removed(old, _) => line_at(sides.old, &self.old, old),
        };
        let room = width.saturating_sub(self.digits() + 3).max(1);
        super::code::count_rows(super::transcript::head(line, LINE_CAP), room)
    }

    fn digits(&self) -> usize {
        self.old.len().max(self.new.len()).max(1).to_string().len()
    }

    /// Draws the rows in `range`. A long row takes several lines.
    pub fn lines(
        &self,
        sides: Sides<'_>,
        range: Range<usize>,
        width: usize,
        theme: &Theme,
        ink: &mut Ink<'_>,
    ) -> Vec<Line<'static>> {
        let mut pen = Pen::new(self, sides, theme, ink);
        let mut out = Vec::new();
        if self.is_split(width) {
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

/// What of a change is not seen in its lines: how they end.
fn ends(old: &str, new: &str) -> &'static str {
    let both = !old.is_empty() && !new.is_empty();
    match (old.contains("\r\n"), new.contains("\r\n")) {
        _ if old == new => " no change",
        (true, false) if both => " line ends: CRLF to LF",
        (false, true) if both => " line ends: LF to CRLF",
        _ if both && old.ends_with('\n') && !new.ends_with('\n') => " no line end at the end now",
        _ if both && !old.ends_with('\n') && new.ends_with('\n') => " a line end at the end now",
        _ => "",
    }
}

/// `path  +3 -1`, the path cut at its front.
pub fn header(path: &str, diff: &Diff, note: &str, width: usize, theme: &Theme) -> Line<'static> {
    let lead = if path.is_empty() { "" } else { " " };
    let added = format!("{lead}+{}", thousands(diff.added as u64));
    let removed = format!(" -{}", thousands(diff.removed as u64));
    let room = width.saturating_sub(added.len() + removed.len());
    // A name that is cut too short tells nothing; what is said of it goes first.
    let note = if note.is_empty() { diff.ends } else { note };
    let name = cell_width(path).min(SHORTEST_NAME);
    let note = truncate(note, room.saturating_sub(name), theme.glyphs.ellipsis);
    let room = room.saturating_sub(cell_width(&note));
    let path = ansi::visible(path);
    let path = truncate_start(&path, room, theme.glyphs.ellipsis);
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

/// A text's name for the highlighter. The same text has the same colours wherever it is shown.
fn key_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    ("diff", text).hash(&mut hasher);
    hasher.finish()
}

fn line_at<'a>(text: &'a str, starts: &[usize], n: usize) -> &'a str {
    let from = starts.get(n).copied().unwrap_or(text.len());
    let to = starts.get(n + 1).copied().unwrap_or(text.len());
    text.get(from..to).unwrap_or_default().trim_end_matches(['\n', '\r'])
}

#[cfg(test)]
#[allow(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::string_slice,
    reason = "test texts are built plainly"
)]
mod tests {
    use ratatui::style::{Color, Style};

    use super::super::highlight::Highlighter;
    use super::super::theme::{Background, ColorDepth, ThemeSpec};
    use super::*;

    fn lines(old: Option<&str>, new: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let sides = Sides { path: "src/a.rs", old: old.unwrap_or_default(), new };
        let diff = Diff::new(sides);
        let mut code = Highlighter::inline();
        let mut lines = vec![header(
            "src/a.rs",
            &diff,
            if old.is_none() { " new file" } else { "" },
            width,
            theme,
        )];
        let rows = 0..diff.len(width);
        lines.extend(diff.lines(sides, rows.clone(), width, theme, &mut Ink::new(&mut code)));
        assert_eq!(lines.len() - 1, diff.height(sides, rows, width), "measured as drawn");
        lines
    }

    fn shown(old: Option<&str>, new: &str, width: usize) -> String {
        let lines = lines(old, new, width, &Theme::default());
        let lines: Vec<String> =
            lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
        lines.join("\n")
    }

    /// The styled stretches of the rows, without numbers and signs.
    fn styled(lines: &[Line<'static>]) -> Vec<(String, Style)> {
        let code = lines.iter().skip(1).flat_map(|line| line.spans.iter().skip(2));
        code.map(|span| (span.content.to_string(), span.style)).collect()
    }

    fn every_theme() -> impl Iterator<Item = Theme> {
        let depths =
            [ColorDepth::TrueColor, ColorDepth::Indexed, ColorDepth::Ansi, ColorDepth::None];
        depths.into_iter().flat_map(|depth| {
            [Background::Dark, Background::Light].map(|background| {
                Theme::new(ThemeSpec { depth, background, ..ThemeSpec::default() })
            })
        })
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
        let changed = |old: &str, new: &str| -> String {
            let made = styled(&lines(Some(old), new, 40, &theme));
            let is_word = |style: &Style| style.bg == theme.added_word.bg;
            made.iter().filter(|(_, style)| is_word(style)).map(|(text, _)| text.as_str()).collect()
        };
        assert_eq!(changed("let a = 1;\n", "let a = 2;\n"), "2");
        assert_eq!(changed("let a = 1;\n", "for x in y {}\n"), "");
    }

    #[test]
    fn code_keeps_its_colours_in_a_diff_under_the_words_that_changed() {
        let (old, new) =
            ("fn a() {\n    let x = 41; // one\n}", "fn a() {\n    let x = 42; // one\n}");
        for theme in every_theme() {
            for width in [60, 120] {
                let made = styled(&lines(Some(old), new, width, &theme));
                let style = |text: &str| {
                    let found = made.iter().filter(|(shown, _)| shown.contains(text));
                    found.map(|(_, style)| *style).collect::<Vec<_>>()
                };
                // The context is coloured as any code is.
                assert!(style("fn").contains(&theme.syntax.keyword), "{:?}", theme.spec);
                // A changed line has the colours of code on the ground of the change.
                let kept = theme.syntax.keyword.patch(theme.added);
                assert!(style("let").contains(&kept), "{:?} {made:?}", theme.spec);
                let word = style("42");
                assert!(word.iter().all(|style| style.bg == theme.added_word.bg), "{word:?}");
                assert!(
                    word.iter().all(|s| s.add_modifier.contains(theme.added_word.add_modifier))
                );
            }
        }
    }

    #[test]
    fn code_can_be_read_on_the_ground_of_every_change() {
        for theme in every_theme().filter(|theme| theme.added.bg.is_some()) {
            let classes = [
                theme.syntax.comment,
                theme.syntax.keyword,
                theme.syntax.string,
                theme.syntax.constant,
                theme.syntax.function,
                theme.syntax.type_name,
                theme.syntax.entity,
                theme.syntax.punctuation,
            ];
            for ground in [theme.added, theme.removed, theme.added_word, theme.removed_word] {
                for class in classes {
                    let faint = [theme.syntax.comment, theme.syntax.punctuation].contains(&class);
                    let is_word = ground == theme.added_word || ground == theme.removed_word;
                    if faint && (is_word || theme.spec.depth == ColorDepth::Indexed) {
                        continue; // It is drawn as plain text there.
                    }
                    let style = class.patch(ground);
                    let seen = contrast(style.fg.unwrap(), style.bg.unwrap());
                    assert!(seen >= 3.0, "{seen:.2} {:?} {style:?}", theme.spec);
                }
            }
        }
    }

    /// How well two colours are told apart, as accessibility guides measure it: 1 to 21.
    fn contrast(a: Color, b: Color) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn luminance(color: Color) -> f64 {
        let (r, g, b) = match color {
            Color::Rgb(r, g, b) => (r, g, b),
            Color::Indexed(index) => super::super::theme::uncube(index),
            other => panic!("{other:?} is the terminal's own"),
        };
        let part = |v: u8| {
            let v = f64::from(v) / 255.0;
            if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
    }

    #[test]
    fn a_file_that_is_new_needs_no_empty_half() {
        let made = lines(None, "fn a() {}\n", 140, &Theme::default());
        assert_eq!(made[1].to_string().trim_end(), "1 + fn a() {}");
    }

    #[test]
    fn only_a_long_change_is_compared_against_the_clock() {
        assert_eq!(limit(40, 39), None);
        assert_eq!(limit(0, 100_000), None);
        assert_eq!(limit(10_000, 10_000), Some(LIMIT));
        // Nothing in common is the worst case, and is still soon done.
        let old: String = (0..1_000).map(|n| format!("a{n}\n")).collect();
        let new: String = (0..1_000).map(|n| format!("b{n}\n")).collect();
        let diff = Diff::new(Sides { path: "x", old: &old, new: &new });
        assert_eq!((diff.added, diff.removed), (1_000, 1_000));
    }

    #[test]
    fn ten_thousand_changed_lines_open_at_once() {
        let old: String = (0..10_000).map(|n| format!("old {n}\n")).collect();
        let new: String = (0..10_000).map(|n| format!("new {}\n", n * 7)).collect();
        let sides = Sides { path: "a.rs", old: &old, new: &new };
        let start = Instant::now();
        let diff = Diff::new(sides);
        let mut code = Highlighter::off();
        let mut ink = Ink::new(&mut code);
        let lines = diff.lines(sides, 9_000..9_050, 80, &Theme::default(), &mut ink);
        assert!(start.elapsed() < Duration::from_secs(2));
        assert_eq!(lines.len(), 50);
        assert_eq!((diff.added, diff.removed), (10_000, 10_000));
    }
}
