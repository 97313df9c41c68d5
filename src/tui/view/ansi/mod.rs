//! What programs print → rows that are safe to draw.
//!
//! Owns the reading of terminal output: colours are kept, overwritten text is folded as a terminal
//! would, and every other control sequence is swallowed. Nothing is ever executed, and no control
//! byte leaves this module. Feeding costs time proportional to what is fed.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Write as _;

use ratatui::style::{Modifier, Style};
use unicode_segmentation::UnicodeSegmentation;

use super::theme::terminal_color;
use super::width::{cell_width, grapheme_width};
use crate::printable::{self, Unseen};

/// Rows above the last one that cursor movements may still reach.
const REACH: usize = 64;
/// Bytes of an unfinished control string before it is taken for text that forgot its end.
const MAX_STRING: usize = 4096;
/// Bytes of one row; what follows goes to the next.
const MAX_ROW: usize = 1024 * 1024;
const TAB: usize = 8;

/// A row of output with its colours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Its text, free of control characters.
    pub text: String,
    /// Styles, each up to a byte of `text`. Plain text has none.
    pub runs: Vec<(usize, Style)>,
}

impl Row {
    fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        if self.runs.is_empty() && style != Style::new() && !self.text.is_empty() {
            self.runs.push((self.text.len(), Style::new()));
        }
        self.text.push_str(text);
        if self.runs.is_empty() && style == Style::new() {
            return;
        }
        match self.runs.last_mut() {
            Some((end, last)) if *last == style => *end = self.text.len(),
            _ => self.runs.push((self.text.len(), style)),
        }
    }

    /// Appends what `other` holds from byte `from` on.
    fn append(&mut self, other: &Self, from: usize) {
        let mut at = from;
        for (end, style) in &other.runs {
            if *end > at {
                self.push(other.text.get(at..*end).unwrap_or_default(), *style);
                at = *end;
            }
        }
        self.push(other.text.get(at..).unwrap_or_default(), Style::new());
    }
}

/// The row the cursor is on: what is left of it, and what is at and right of it.
#[derive(Debug, Clone, Default)]
struct Line {
    left: Row,
    column: usize,
    right: Row,
    /// First byte of `right` that is not yet overwritten.
    from: usize,
    /// Cells before `from` that half of a wide glyph left blank.
    blank: usize,
}

impl Line {
    fn write(&mut self, text: &str, cells: usize, style: Style) {
        self.left.push(text, style);
        self.column += cells;
        self.overwrite(cells);
    }

    /// Takes `cells` cells from the front of what was at the cursor.
    fn overwrite(&mut self, cells: usize) {
        if self.from >= self.right.text.len() {
            return;
        }
        let mut left = cells.saturating_sub(self.blank);
        self.blank = self.blank.saturating_sub(cells);
        let rest = self.right.text.get(self.from..).unwrap_or_default();
        let mut used = 0;
        for grapheme in rest.graphemes(true) {
            if left == 0 {
                break;
            }
            used += grapheme.len();
            let wide = grapheme_width(grapheme).max(1);
            self.blank += wide.saturating_sub(left);
            left = left.saturating_sub(wide);
        }
        self.from += used;
    }

    fn whole(&self) -> Row {
        let mut row = self.left.clone();
        if self.from < self.right.text.len() {
            row.push(&" ".repeat(self.blank), Style::new());
        }
        row.append(&self.right, self.from);
        row
    }

    /// Puts the cursor at a column; blanks fill what was never written.
    fn go(&mut self, column: usize) {
        if column == self.column {
            return;
        }
        let whole = if self.from >= self.right.text.len() {
            std::mem::take(&mut self.left)
        } else {
            self.whole()
        };
        *self = Self::default();
        if column == 0 {
            self.right = whole;
            return;
        }
        let mut at = 0;
        let mut cells = 0;
        for grapheme in whole.text.graphemes(true) {
            let wide = grapheme_width(grapheme);
            if cells + wide > column {
                break;
            }
            cells += wide;
            at += grapheme.len();
        }
        let mut done = 0;
        for (end, style) in &whole.runs {
            let until = (*end).min(at);
            if until > done {
                let text = whole.text.get(done..until).unwrap_or_default();
                self.left.push(text, *style);
                done = until;
            }
        }
        let text = whole.text.get(done..at).unwrap_or_default();
        self.left.push(text, Style::new());
        let blanks = column.min(cells + 1000) - cells.min(column);
        if at >= whole.text.len() && blanks > 0 {
            self.left.push(&" ".repeat(blanks), Style::new());
            cells += blanks;
        }
        self.column = cells;
        self.right = whole;
        self.from = at;
    }
}

#[derive(Debug, Clone, Default)]
enum State {
    #[default]
    Text,
    Escape,
    /// `ESC (` and the like: one more byte follows.
    Charset,
    Csi(String),
    /// OSC, DCS, APC, PM, SOS: bytes so far, and whether the last was ESC.
    Text7(usize, bool),
}

/// Output as a terminal would show it, read piece by piece.
#[derive(Debug, Clone)]
pub struct Output {
    rows: VecDeque<Row>,
    line: Line,
    /// Which row the cursor is on, counted from the first kept one.
    at: usize,
    state: State,
    style: Style,
    max_rows: usize,
    dropped: u64,
    /// The first row that may have changed since somebody asked.
    touched: usize,
    /// The last piece ended in a carriage return that may belong to a line feed.
    carriage: bool,
}

impl Output {
    /// Keeps at most `max_rows` rows, the last ones.
    pub fn new(max_rows: usize) -> Self {
        Self {
            rows: VecDeque::new(),
            line: Line::default(),
            at: 0,
            state: State::Text,
            style: Style::new(),
            max_rows: max_rows.max(REACH + 1),
            dropped: 0,
            touched: 0,
            carriage: false,
        }
    }

    /// Reads a piece.
    pub fn feed(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            if matches!(self.state, State::Text) {
                let plain = shown_len(rest);
                if plain > 0 {
                    let (run, after) = rest.split_at_checked(plain).unwrap_or((rest, ""));
                    self.print(run);
                    rest = after;
                    continue;
                }
            }
            let Some(c) = rest.chars().next() else {
                return;
            };
            self.step(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }

    /// The rows, oldest first. A last row that is empty is not counted.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = Cow<'_, Row>> + Clone {
        let current = self.line.whole();
        let at = self.at;
        let len = self.len();
        let stored = self.rows.len();
        (0..len).map(move |n| {
            if n == at {
                Cow::Owned(current.clone())
            } else if n < stored {
                self.rows.get(n).map_or(Cow::Owned(Row::default()), Cow::Borrowed)
            } else {
                Cow::Owned(Row::default())
            }
        })
    }

    /// A row, as [`Self::rows`] has it.
    pub fn row(&self, n: usize) -> Cow<'_, Row> {
        if n == self.at {
            return Cow::Owned(self.line.whole());
        }
        self.rows.get(n).map_or_else(Cow::default, Cow::Borrowed)
    }

    /// The first row that is not as it was when this was asked before. Rows that are no longer kept
    /// are not counted with.
    pub fn take_touched(&mut self) -> usize {
        std::mem::replace(&mut self.touched, self.at)
    }

    /// How many rows are kept.
    pub fn len(&self) -> usize {
        let current = self.line.left.text.len() + self.line.right.text.len() - self.line.from;
        let last = usize::from(current > 0 && self.at >= self.rows.len());
        self.rows.len().max(self.at) + last
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows that were printed and are no longer kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn print(&mut self, text: &str) {
        self.finish_carriage();
        if self.line.left.text.len() > MAX_ROW {
            self.line_feed();
        }
        let style = self.style;
        if self.line.from >= self.line.right.text.len() {
            self.line.left.push(text, style);
            self.line.column += cell_width(text);
            return;
        }
        for grapheme in text.graphemes(true) {
            self.line.write(grapheme, grapheme_width(grapheme), style);
        }
    }

    fn finish_carriage(&mut self) {
        if std::mem::take(&mut self.carriage) {
            self.line.go(0);
        }
    }

    fn step(&mut self, c: char) {
        match std::mem::take(&mut self.state) {
            State::Text => self.control(c),
            State::Escape => match c {
                '[' => self.state = State::Csi(String::new()),
                ']' | 'P' | '_' | '^' | 'X' => self.state = State::Text7(0, false),
                '(' | ')' | '*' | '+' | '-' | '.' | '/' | '#' | '%' | ' ' => {
                    self.state = State::Charset;
                }
                '\n' => self.control(c),
                _ => {}
            },
            State::Charset => {
                if c == '\n' || c == '\u{1b}' {
                    self.control(c);
                }
            }
            State::Csi(mut params) => match c {
                '@'..='~' => self.csi(c, &params),
                ' '..='?' if params.len() < 128 => {
                    params.push(c);
                    self.state = State::Csi(params);
                }
                '\u{1b}' | '\n' | '\r' => self.control(c),
                _ => {}
            },
            State::Text7(len, escape) => match c {
                '\u{7}' | '\u{9c}' => {}
                '\\' if escape => {}
                '\n' => self.control(c),
                _ if len >= MAX_STRING => {}
                _ => self.state = State::Text7(len + c.len_utf8(), c == '\u{1b}'),
            },
        }
    }

    fn control(&mut self, c: char) {
        match c {
            '\n' | '\u{b}' | '\u{c}' | '\u{85}' => self.line_feed(),
            '\r' => self.carriage = true,
            '\t' => {
                self.finish_carriage();
                let blanks = TAB - self.line.column % TAB;
                let style = self.style;
                self.line.write(&" ".repeat(blanks), blanks, style);
            }
            '\u{8}' => {
                self.finish_carriage();
                let column = self.line.column.saturating_sub(1);
                self.line.go(column);
            }
            '\u{1b}' => self.state = State::Escape,
            '\u{9b}' => self.state = State::Csi(String::new()),
            '\u{90}' | '\u{9d}' | '\u{9e}' | '\u{9f}' | '\u{98}' => {
                self.state = State::Text7(0, false);
            }
            c if is_hidden(c) => {
                let shown = escape_of(c);
                self.finish_carriage();
                let style = self.style.add_modifier(Modifier::REVERSED);
                self.line.write(&shown, shown.len(), style);
            }
            _ => {}
        }
    }

    /// Ends the row. Rows further down may exist when the cursor had moved up.
    fn line_feed(&mut self) {
        self.carriage = false;
        self.store();
        self.at += 1;
        self.load();
        while self.rows.len() > self.max_rows && self.at > 0 {
            self.rows.pop_front();
            self.at -= 1;
            self.dropped += 1;
        }
    }

    fn store(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        let row = if line.from >= line.right.text.len() {
            std::mem::take(&mut line.left)
        } else {
            line.whole()
        };
        while self.rows.len() <= self.at {
            self.rows.push_back(Row::default());
        }
        if let Some(slot) = self.rows.get_mut(self.at) {
            *slot = row;
        }
    }

    fn load(&mut self) {
        self.line =
            Line { right: self.rows.get(self.at).cloned().unwrap_or_default(), ..Line::default() };
    }

    fn csi(&mut self, last: char, params: &str) {
        if params.starts_with(['<', '=', '>', '?']) {
            return;
        }
        let number = |default: usize| -> usize {
            params
                .split(';')
                .next()
                .and_then(|text| text.parse().ok())
                .unwrap_or(default)
                .min(10_000)
        };
        match last {
            'm' => self.sgr(params),
            'K' => {
                self.finish_carriage();
                match number(0) {
                    0 => {
                        self.line.right = Row::default();
                        self.line.from = 0;
                    }
                    1 => {
                        let column = self.line.column;
                        self.line.left = Row::default();
                        self.line.left.push(&" ".repeat(column), Style::new());
                    }
                    _ => {
                        let column = self.line.column;
                        self.line = Line::default();
                        self.line.go(column);
                    }
                }
            }
            'G' => {
                self.carriage = false;
                self.line.go(number(1).saturating_sub(1));
            }
            'C' => {
                self.finish_carriage();
                self.line.go(self.line.column + number(1).max(1));
            }
            'D' => {
                self.finish_carriage();
                let column = self.line.column.saturating_sub(number(1).max(1));
                self.line.go(column);
            }
            'A' | 'F' => {
                self.finish_carriage();
                let floor = self.rows.len().saturating_sub(REACH);
                let target = self.at.saturating_sub(number(1).max(1)).max(floor);
                self.move_to_row(target, if last == 'F' { Some(0) } else { None });
            }
            'B' | 'E' => {
                self.finish_carriage();
                let ceiling = self.rows.len().saturating_sub(1).max(self.at);
                let target = (self.at + number(1).max(1)).min(ceiling);
                self.move_to_row(target, if last == 'E' { Some(0) } else { None });
            }
            'J' if number(0) == 0 => {
                self.finish_carriage();
                self.line.right = Row::default();
                self.line.from = 0;
                self.rows.truncate(self.at);
            }
            _ => {}
        }
    }

    fn move_to_row(&mut self, row: usize, column: Option<usize>) {
        if row == self.at {
            return;
        }
        let column = column.unwrap_or(self.line.column);
        let empty = self.line.whole().text.is_empty() && self.at >= self.rows.len();
        if empty {
            self.line = Line::default();
        } else {
            self.store();
        }
        self.at = row;
        self.touched = self.touched.min(row);
        self.load();
        self.line.go(column);
    }

    fn sgr(&mut self, params: &str) {
        let codes: Vec<u16> =
            params.split([';', ':']).map(|text| text.parse().unwrap_or(0)).collect();
        let mut codes = codes.into_iter();
        while let Some(code) = codes.next() {
            let style = self.style;
            self.style = match code {
                0 => Style::new(),
                1 => style.add_modifier(Modifier::BOLD),
                2 => style.add_modifier(Modifier::DIM),
                3 => style.add_modifier(Modifier::ITALIC),
                4 => style.add_modifier(Modifier::UNDERLINED),
                7 => style.add_modifier(Modifier::REVERSED),
                9 => style.add_modifier(Modifier::CROSSED_OUT),
                22 => without(style, Modifier::BOLD | Modifier::DIM),
                23 => without(style, Modifier::ITALIC),
                24 => without(style, Modifier::UNDERLINED),
                27 => without(style, Modifier::REVERSED),
                29 => without(style, Modifier::CROSSED_OUT),
                30..=37 => fore(style, code - 30),
                90..=97 => fore(style, code - 90 + 8),
                40..=47 => back(style, code - 40),
                100..=107 => back(style, code - 100 + 8),
                39 => Style { fg: None, ..style },
                49 => Style { bg: None, ..style },
                38 | 48 => {
                    let color = extended(&mut codes);
                    match (code, color) {
                        (38, Some(color)) => style.fg(color),
                        (_, Some(color)) => style.bg(color),
                        _ => style,
                    }
                }
                _ => style,
            };
        }
    }
}

fn without(style: Style, modifier: Modifier) -> Style {
    Style { add_modifier: style.add_modifier.difference(modifier), ..style }
}

fn fore(style: Style, index: u16) -> Style {
    style.fg(terminal_color(&[index]))
}

fn back(style: Style, index: u16) -> Style {
    style.bg(terminal_color(&[index]))
}

fn extended(codes: &mut impl Iterator<Item = u16>) -> Option<ratatui::style::Color> {
    match codes.next()? {
        5 => Some(terminal_color(&[codes.next()?])),
        2 => Some(terminal_color(&[codes.next()?, codes.next()?, codes.next()?])),
        _ => None,
    }
}

/// What output and prose show spelt out. Soft hyphens and shapes of letters are left alone there.
const WRITTEN_OUT: [Unseen; 5] =
    [Unseen::Separator, Unseen::Bidi, Unseen::ZeroWidth, Unseen::Filler, Unseen::Tag];

/// What a command shows spelt out besides, which is read before it is approved.
const IN_COMMANDS: [Unseen; 4] =
    [Unseen::Control, Unseen::Selector, Unseen::SoftHyphen, Unseen::Blank];

/// Characters that change or hide what surrounds them without being seen.
pub fn is_hidden(c: char) -> bool {
    Unseen::is_in(c, &WRITTEN_OUT)
}

/// A character made visible: `^[` for controls, `<U+202E>` for the rest.
fn escape_of(c: char) -> String {
    let code = u32::from(c);
    match code {
        0..0x20 => format!("^{}", char::from_u32(code + 0x40).unwrap_or('?')),
        0x7f => "^?".to_owned(),
        _ => format!("<U+{code:04X}>"),
    }
}

/// `text` with tabs expanded and everything unseen made visible. Line feeds are made visible too:
/// give it one line.
pub fn visible(text: &str) -> Cow<'_, str> {
    visible_from(text, &mut 0)
}

/// As [`visible`], for a part of a line that begins at `column`, which moves on: tabs end at the
/// same places however a line is cut.
pub fn visible_from<'a>(text: &'a str, column: &mut usize) -> Cow<'a, str> {
    let clean = |c: char| !c.is_control() && !is_hidden(c);
    if text.chars().all(clean) {
        *column += text.chars().count();
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c == '\t' {
            let blanks = 4 - *column % 4;
            out.extend(std::iter::repeat_n(' ', blanks));
            *column += blanks;
        } else if clean(c) {
            out.push(c);
            *column += 1;
        } else {
            let shown = escape_of(c);
            *column += shown.len();
            out.push_str(&shown);
        }
    }
    Cow::Owned(out)
}

/// How much of the front of a text is shown as it is. Mostly it is plain, and bytes are quicker to
/// look at than characters.
fn shown_len(text: &str) -> usize {
    let is_plain = |byte: &u8| (0x20..0x7f).contains(byte);
    let plain = text.bytes().position(|byte| !is_plain(&byte)).unwrap_or(text.len());
    let rest = text.get(plain..).unwrap_or_default();
    if rest.as_bytes().first().is_none_or(u8::is_ascii) {
        return plain;
    }
    plain + rest.find(|c: char| c.is_control() || is_hidden(c)).unwrap_or(rest.len())
}

/// Markdown and other prose: line feeds stay, `\r\n` is one, everything unseen is made visible.
pub fn prose(text: &str) -> Cow<'_, str> {
    let clean = |c: char| (c == '\n' || c == '\t' || !c.is_control()) && !is_hidden(c);
    let is_plain = |byte: u8| matches!(byte, 0x20..0x7f | b'\n' | b'\t');
    if text.bytes().all(is_plain) || text.chars().all(clean) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if clean(c) {
            out.push(c);
        } else if c == '\r' && chars.peek() == Some(&'\n') {
        } else {
            out.push_str(&escape_of(c));
        }
    }
    Cow::Owned(out)
}

/// A piece of a text that is to be approved, and whether it stands for something unseen.
pub type Shown = (String, bool);

/// A command, line by line, so that nothing in it can hide: controls, bidirectional marks, joiners
/// outside emoji and long runs of blanks are spelt out.
pub fn reveal(text: &str) -> Vec<Vec<Shown>> {
    text.split('\n').map(reveal_line).collect()
}

fn reveal_line(line: &str) -> Vec<Shown> {
    let mut out: Vec<Shown> = Vec::new();
    let mut add = |text: &str, marked: bool| match out.last_mut() {
        Some((last, was)) if *was == marked => last.push_str(text),
        _ => out.push((text.to_owned(), marked)),
    };
    let mut blanks = 0;
    for grapheme in line.graphemes(true) {
        if grapheme == " " {
            blanks += 1;
            continue;
        }
        flush_blanks(&mut blanks, &mut add);
        let joined = grapheme.chars().count() > 1 && cell_width(grapheme) == 2;
        let mut last = None;
        for c in grapheme.chars() {
            let before = last.replace(c);
            let alone = match Unseen::of(c) {
                Some(Unseen::Joiner) => !joined,
                Some(Unseen::Picture) => !before.is_some_and(|b| printable::can_be_joined(b, c)),
                _ => false,
            };
            if alone || is_hidden(c) || Unseen::is_in(c, &IN_COMMANDS) {
                add(&escape_of(c), true);
            } else {
                add(c.encode_utf8(&mut [0; 4]), false);
            }
        }
    }
    flush_blanks(&mut blanks, &mut add);
    out
}

/// Blanks that could push the rest of a line out of sight.
const MANY_BLANKS: usize = 16;

fn flush_blanks(blanks: &mut usize, add: &mut impl FnMut(&str, bool)) {
    let count = std::mem::take(blanks);
    if count > MANY_BLANKS {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _infallible = write!(text, "<{count} blanks>");
        add(&text, true);
    } else if count > 0 {
        add(&" ".repeat(count), false);
    }
}

#[cfg(test)]
#[allow(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::string_slice,
    reason = "test texts are built plainly"
)]
mod tests;
