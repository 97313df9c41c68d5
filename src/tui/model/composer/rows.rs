//! The draft laid out in rows of a width, and caret movement by rows.

use super::{Composer, LastEdit};
use crate::tui::model::width::grapheme_width;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// One row of the draft: the bytes it shows (without the line end).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Bytes of the text.
    pub bytes: Range<usize>,
    /// Whether a line of the text begins here (not a wrapped one).
    pub first: bool,
}

/// Where the caret is on screen, from the top left of the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caret {
    /// Row.
    pub row: usize,
    /// Cells from the left.
    pub column: usize,
}

impl Composer {
    /// Lays the draft out in rows of at most `width` cells, breaking after spaces where it can.
    pub fn rows(&self, width: usize) -> Vec<Row> {
        let width = width.max(2);
        let mut rows = Vec::new();
        let mut start = 0;
        for line in self.text.split('\n') {
            wrap_line(line, start, width, &mut rows);
            start += line.len() + 1;
        }
        rows
    }

    /// Where the caret stands in those rows.
    pub fn caret_in(&self, rows: &[Row]) -> Caret {
        // At a soft break the caret belongs to the start of the next row.
        let row = rows.iter().rposition(|r| r.bytes.start <= self.caret).unwrap_or(0);
        let start = rows.get(row).map_or(0, |r| r.bytes.start);
        let column = self.text.get(start..self.caret).map_or(0, text_width);
        Caret { row, column }
    }

    /// Moves up a row; returns false on the first one.
    pub fn up(&mut self, width: usize) -> bool {
        self.vertical(width, -1)
    }

    /// Moves down a row; returns false on the last one.
    pub fn down(&mut self, width: usize) -> bool {
        self.vertical(width, 1)
    }

    /// Puts the caret at a cell of the laid-out draft (a click).
    pub fn caret_to_cell(&mut self, width: usize, row: usize, column: usize) {
        let rows = self.rows(width);
        if let Some(row) = rows.get(row.min(rows.len().saturating_sub(1))) {
            self.go(self.byte_at(row, column));
        }
    }

    fn vertical(&mut self, width: usize, by: isize) -> bool {
        let rows = self.rows(width);
        let at = self.caret_in(&rows);
        let Some(target) = at.row.checked_add_signed(by).and_then(|r| rows.get(r)) else {
            return false;
        };
        let goal = self.goal.unwrap_or(at.column);
        self.caret = self.byte_at(target, goal);
        self.goal = Some(goal);
        self.last_edit = LastEdit::None;
        true
    }

    /// The boundary in a row nearest to a column, never right of its last character's end.
    fn byte_at(&self, row: &Row, column: usize) -> usize {
        let text = self.text.get(row.bytes.clone()).unwrap_or_default();
        let mut used = 0;
        for (i, g) in text.grapheme_indices(true) {
            let w = grapheme_width(g);
            if used + w > column {
                return row.bytes.start + i;
            }
            used += w;
        }
        row.bytes.end
    }
}

fn text_width(text: &str) -> usize {
    text.graphemes(true).map(grapheme_width).sum()
}

fn wrap_line(line: &str, offset: usize, width: usize, rows: &mut Vec<Row>) {
    let mut start = 0;
    let mut used = 0;
    let mut last_break = None;
    let mut first = true;
    let mut push = |range: Range<usize>, first: &mut bool| {
        rows.push(Row { bytes: offset + range.start..offset + range.end, first: *first });
        *first = false;
    };
    for (i, g) in line.grapheme_indices(true) {
        let w = grapheme_width(g);
        if used + w > width {
            let cut = last_break.filter(|b| *b > start).unwrap_or(i);
            push(start..cut, &mut first);
            used = text_width(line.get(cut..i).unwrap_or_default());
            start = cut;
            last_break = None;
        }
        used += w;
        if g == " " || g == "\t" {
            last_break = Some(i + g.len());
        }
    }
    push(start..line.len(), &mut first);
}
