//! How the rows of a diff are drawn: numbers, signs, syntax colours, and the words that changed.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use similar::{Algorithm, DiffOp};
use unicode_segmentation::UnicodeSegmentation;

use super::super::code::{self, Ink};
use super::super::highlight::{Class, MAX_LINES, Run};
use super::super::theme::{ColorDepth, Theme};
use super::super::transcript::head;
use super::super::width::fit;
use super::{Diff, LINE_CAP, Row, Sides, line_at};

/// Bytes of a line that are compared by word.
const MAX_WORDS: usize = 1000;
/// Lines that are handed to be coloured together: what is out of sight is not coloured.
const CODE_LINES: usize = 64;

/// Draws the rows of one diff.
pub(super) struct Pen<'a, 'b> {
    diff: &'a Diff,
    sides: Sides<'a>,
    theme: &'a Theme,
    ink: &'a mut Ink<'b>,
    digits: usize,
    lang: String,
}

/// How one kind of row looks.
#[derive(Clone, Copy)]
struct Look {
    sign: &'static str,
    sign_style: Style,
    style: Style,
    word: Style,
}

/// A line of one side, ready to be drawn.
struct Half {
    number: usize,
    look: Look,
    /// Text with the style of each stretch.
    pieces: Vec<(String, Style)>,
}

impl<'a, 'b> Pen<'a, 'b> {
    pub(super) fn new(
        diff: &'a Diff,
        sides: Sides<'a>,
        theme: &'a Theme,
        ink: &'a mut Ink<'b>,
    ) -> Self {
        Self { diff, sides, theme, ink, digits: diff.digits(), lang: language(sides.path) }
    }

    fn look(&self, row: Row) -> Look {
        let theme = self.theme;
        match row {
            Row::Removed(..) => Look {
                sign: "-",
                sign_style: theme.removed.patch(theme.error),
                style: theme.removed,
                word: theme.removed_word,
            },
            Row::Added(..) => Look {
                sign: "+",
                sign_style: theme.added.patch(theme.success),
                style: theme.added,
                word: theme.added_word,
            },
            Row::Fold(_) | Row::Same(..) => {
                Look { sign: " ", sign_style: theme.text, style: theme.text, word: theme.text }
            }
        }
    }

    /// The line that a row shows, on its left side or its right one.
    fn half(&mut self, row: Row, left: bool) -> Half {
        let (diff, sides) = (self.diff, self.sides);
        let old_line = |n: usize| line_at(sides.old, &diff.old, n);
        let new_line = |n: usize| line_at(sides.new, &diff.new, n);
        let (number, line, other, is_old) = match row {
            Row::Fold(_) => (0, "", None, false),
            Row::Same(old, new) => (if left { old } else { new }, new_line(new), None, false),
            Row::Removed(old, new) => (old, old_line(old), new.map(new_line), true),
            Row::Added(new, old) => (new, new_line(new), old.map(old_line), false),
        };
        let at = if let Row::Same(_, new) = row { new } else { number };
        let runs = self.runs(is_old, at);
        let look = self.look(row);
        let theme = self.theme;
        let marks = words(head(line, LINE_CAP), line.len(), other);
        let pieces = code::pieces(line, &runs, &marks, |class, changed| {
            let syntax = code::style_of(class, theme);
            let ground = if changed { look.word } else { look.style };
            on_ground(class, syntax, ground, changed || theme.spec.depth == ColorDepth::Indexed)
        });
        Half { number, look, pieces }
    }

    /// The colours of a line, as far as they have come. Long texts are coloured in stretches, the
    /// one looked at first and only as far as it was.
    fn runs(&mut self, is_old: bool, line: usize) -> Vec<Run> {
        let diff = self.diff;
        let (text, starts, key) = match (is_old, diff.keys) {
            (true, [key, _]) => (self.sides.old, &diff.old, key),
            (false, [_, key]) => (self.sides.new, &diff.new, key),
        };
        let stretch = line / MAX_LINES;
        let first = stretch * MAX_LINES;
        let until = (line / CODE_LINES + 1) * CODE_LINES;
        let until = until.min(first + MAX_LINES);
        let start = |n: usize| starts.get(n).copied().unwrap_or(text.len());
        let source = text.get(start(first)..start(until)).unwrap_or_default();
        let whole = |n: usize| {
            text.get(start(n * MAX_LINES)..start((n + 1) * MAX_LINES)).unwrap_or_default()
        };
        let colours = self.ink.code.stretch(key, &self.lang, (stretch, source), whole);
        let known = colours.lines.get(line - first).cloned();
        self.ink.pending |= known.is_none() && colours.awaited;
        known.unwrap_or_default()
    }

    fn fold(&self, count: usize, width: usize, out: &mut Vec<Line<'static>>) {
        let glyphs = self.theme.glyphs;
        let plural = if count == 1 { "" } else { "s" };
        let text = format!("{} {count} unchanged line{plural}", glyphs.ellipsis);
        let indent = " ".repeat(self.digits + 1);
        let text = fit(&format!("{indent}{text}"), width, "");
        out.push(Line::styled(text.trim_end().to_owned(), self.theme.hunk));
    }

    pub(super) fn unified(&mut self, row: Row, width: usize, out: &mut Vec<Line<'static>>) {
        if let Row::Fold(count) = row {
            return self.fold(count, width, out);
        }
        let half = self.half(row, false);
        out.extend(self.side(&half, width).into_iter().map(Line::from));
    }

    pub(super) fn pair(
        &mut self,
        left: Option<Row>,
        right: Option<Row>,
        width: usize,
        out: &mut Vec<Line<'static>>,
    ) {
        if let Some(Row::Fold(count)) = left {
            return self.fold(count, width, out);
        }
        let room = (width - 1) / 2;
        let mut draw = |row: Option<Row>, left: bool| {
            row.map_or_else(Vec::new, |row| {
                let half = self.half(row, left);
                self.side(&half, room)
            })
        };
        let (left, right) = (draw(left, true), draw(right, false));
        for n in 0..left.len().max(right.len()) {
            let mut spans =
                left.get(n).cloned().unwrap_or_else(|| vec![Span::raw(" ".repeat(room))]);
            spans.push(Span::styled(self.theme.glyphs.bar, self.theme.border));
            spans.extend(right.get(n).cloned().unwrap_or_default());
            out.push(Line::from(spans));
        }
    }

    /// The rows of a line within `width` cells: number, sign, text, filled to the edge.
    fn side(&self, half: &Half, width: usize) -> Vec<Vec<Span<'static>>> {
        let theme = self.theme;
        let digits = self.digits;
        let look = half.look;
        let room = width.saturating_sub(digits + 3).max(1);
        let number = (half.number + 1).to_string();
        let rows = code::rows(&half.pieces, room).into_iter().enumerate();
        rows.map(|(n, (text, used))| {
            let (number, sign) = if n == 0 { (number.as_str(), look.sign) } else { ("", " ") };
            let mut row = vec![
                Span::styled(format!("{number:>digits$} "), theme.line_number),
                Span::styled(format!("{sign} "), look.sign_style),
            ];
            row.extend(text);
            if room > used {
                row.push(Span::styled(" ".repeat(room - used), look.style));
            }
            row
        })
        .collect()
    }
}

/// The style of code on the ground of a change. On a strong ground, that of a changed word or any
/// of the 256 palette's, what is faint elsewhere has the colour of plain text.
fn on_ground(class: Class, syntax: Style, ground: Style, strong: bool) -> Style {
    let faint = matches!(class, Class::Comment | Class::Punctuation);
    if !strong || !faint || ground.bg.is_none() {
        return syntax.patch(ground);
    }
    let add_modifier = syntax.add_modifier.difference(Modifier::DIM);
    Style { fg: None, add_modifier, ..syntax }.patch(ground)
}

/// What a file's name says of its language: its ending, or the whole of a name without one.
fn language(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((_, ending)) => ending.to_owned(),
        None => name.to_owned(),
    }
}

/// Where a line that is shown to `shown` changes from what it was to what is new: the end of each
/// stretch, and whether it differs from `other`.
fn words(shown: &str, len: usize, other: Option<&str>) -> Vec<(usize, bool)> {
    let plain = vec![(shown.len(), false)];
    let Some(other) = other else {
        return plain;
    };
    if len.max(other.len()) > MAX_WORDS {
        return plain;
    }
    let mine: Vec<&str> = shown.split_word_bounds().collect();
    let theirs: Vec<&str> = other.split_word_bounds().collect();
    let ops = similar::capture_diff_slices(Algorithm::Myers, &theirs, &mine);
    let same: usize = ops
        .iter()
        .filter(|op| matches!(op, DiffOp::Equal { .. }))
        .flat_map(|op| mine.get(op.new_range()).unwrap_or_default())
        .map(|word| word.trim().len())
        .sum();
    // Lines that share next to nothing are different lines, not a changed one.
    if same * 4 < shown.trim().len() {
        return plain;
    }
    let mut at = 0;
    ops.iter()
        .filter(|op| !op.new_range().is_empty())
        .map(|op| {
            let words = mine.get(op.new_range()).unwrap_or_default();
            at += words.iter().map(|word| word.len()).sum::<usize>();
            (at, !matches!(op, DiffOp::Equal { .. }))
        })
        .collect()
}
