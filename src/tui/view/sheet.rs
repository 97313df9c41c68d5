//! A long text → rows, read only as far as one looks.
//!
//! Owns [`Sheet`]: what a program printed, or any text as it is. Reading goes from the top and is
//! taken up where it was left, also when the text has grown since. Rows know no width: they are
//! wrapped when they are drawn. Must not know what page it is on; [`super::paper`] does.

use std::borrow::Cow;

use ratatui::text::Line;

use super::ansi::{self, Output, Row};
use super::theme::Theme;
use super::transcript::printed_rows;
use super::width::{cell_width, wrap};

/// A text that grows at its end, and the rows that were read of it.
#[derive(Debug)]
pub(super) struct Sheet {
    /// What is not read yet starts at `read`; what is read is dropped now and then.
    text: String,
    read: usize,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    /// As a terminal would show it; boxed, since it is mostly the other.
    Printed(Box<Output>),
    /// Every line a row, what is unseen spelt out; the last one may still grow.
    Plain(Vec<Row>),
}

impl Sheet {
    /// What a program printed.
    pub(super) fn printed(text: String) -> Self {
        Self { text, read: 0, rows: Rows::Printed(Box::new(Output::new(usize::MAX))) }
    }

    /// A text as it is.
    pub(super) fn plain(text: String) -> Self {
        Self { text, read: 0, rows: Rows::Plain(Vec::new()) }
    }

    /// The text has grown.
    pub(super) fn extend(&mut self, more: &str) {
        self.text.push_str(more);
    }

    /// How much there is to read. Line feeds at the end of what was printed wait for what follows.
    fn end(&self) -> usize {
        match self.rows {
            Rows::Printed(_) => self.text.trim_end_matches('\n').len(),
            Rows::Plain(_) => self.text.len(),
        }
    }

    /// Whether everything is read.
    pub(super) fn is_read(&self) -> bool {
        self.read >= self.end()
    }

    /// Rows that what is not read may take at `width` cells: a guess, right where lines fit.
    pub(super) fn guess(&self, width: usize) -> usize {
        let rest = self.text.get(self.read..self.end()).unwrap_or_default();
        rest.split('\n').map(|line| line.len().div_ceil(width.max(1)).max(1)).sum()
    }

    /// Reads at least `bytes` more, up to the end of a line. Returns the first row that changed.
    pub(super) fn read_on(&mut self, bytes: usize) -> usize {
        let end = self.end();
        let wanted = self.text.floor_char_boundary(self.read.saturating_add(bytes).min(end));
        let line = self.text.get(wanted..end).and_then(|rest| rest.find('\n'));
        let to = line.map_or(end, |at| wanted + at + 1);
        let new = self.text.get(self.read..to).unwrap_or_default();
        let changed = match &mut self.rows {
            Rows::Printed(output) => {
                output.feed(new);
                output.take_touched()
            }
            Rows::Plain(rows) => {
                let from = rows.len().saturating_sub(1);
                let mut known = rows.pop().map(|row| row.text);
                for line in ansi::prose(new).split('\n') {
                    let text = known.take().unwrap_or_default() + line;
                    rows.push(Row { text, runs: Vec::new() });
                }
                from
            }
        };
        self.read = to;
        if self.read > self.text.len() / 2 {
            self.text.drain(..self.read);
            self.text.shrink_to_fit();
            self.read = 0;
        }
        changed
    }

    /// How many rows were read.
    pub(super) fn len(&self) -> usize {
        match &self.rows {
            Rows::Printed(output) => output.len(),
            // A text that ends in a line feed has no row behind it, unless it is all there is.
            Rows::Plain(rows) => rows.len(),
        }
    }

    /// A row that was read.
    pub(super) fn row(&self, n: usize) -> Cow<'_, Row> {
        match &self.rows {
            Rows::Printed(output) => output.row(n),
            Rows::Plain(rows) => rows.get(n).map_or_else(Cow::default, Cow::Borrowed),
        }
    }

    /// How many lines a row takes at `width` cells.
    pub(super) fn height(&self, n: usize, width: usize) -> usize {
        let row = self.row(n);
        if cell_width(&row.text) <= width { 1 } else { wrap(&row.text, width).len() }
    }

    /// A row's lines.
    pub(super) fn lines(&self, n: usize, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        printed_rows(&self.row(n), width, theme)
    }

    /// Which of a row's lines hold `needle`, which is in lower case.
    pub(super) fn hits(&self, n: usize, width: usize, needle: &str) -> Vec<usize> {
        let row = self.row(n);
        let text = row.text.to_lowercase();
        // A match may span no two lines, so a row without one has no line with one.
        if !text.contains(needle) {
            return Vec::new();
        }
        if cell_width(&row.text) <= width {
            return vec![0];
        }
        let lines = wrap(&row.text, width).into_iter().enumerate();
        lines.filter(|(_, line)| line.to_lowercase().contains(needle)).map(|(at, _)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sheet: &Sheet) -> Vec<String> {
        (0..sheet.len()).map(|n| sheet.row(n).text.clone()).collect()
    }

    #[test]
    fn a_text_read_in_pieces_has_the_rows_of_the_whole() {
        let line = |n: usize| match n % 4 {
            0 => format!("\x1b[3{}mcoloured {n}\x1b[0m\n", n % 8),
            1 => format!("progress {n}\rdone {n}    \n"),
            2 => format!("one up\n\x1b[Aover {n}\n"),
            _ => "中文\n\n".to_owned(),
        };
        let text: String = (0..400).map(line).collect();
        for make in [Sheet::printed, Sheet::plain] {
            let mut whole = make(text.clone());
            whole.read_on(usize::MAX);
            assert!(whole.is_read());
            let mut pieces = make(String::new());
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.floor_char_boundary(rest.len().min(97)));
                rest = after;
                pieces.extend(piece);
                while !pieces.is_read() {
                    pieces.read_on(13);
                }
            }
            assert_eq!(rows(&pieces), rows(&whole));
        }
    }

    #[test]
    fn what_further_reading_changed_is_said() {
        let mut sheet = Sheet::printed("one\ntwo\nthree\n".to_owned());
        assert_eq!(sheet.read_on(usize::MAX), 0);
        sheet.extend("four\n");
        assert_eq!(sheet.read_on(usize::MAX), 2, "its line feed had waited");
        sheet.extend("\x1b[3Aover\n");
        assert_eq!(sheet.read_on(usize::MAX), 1);
        assert_eq!(rows(&sheet), ["one", "over", "three", "four"]);
    }
}
