//! Caret movement by grapheme, chip, word and line.

use super::{Composer, LastEdit};
use unicode_segmentation::UnicodeSegmentation;

/// What a character is for word motion. CJK text has no spaces: a change of script is a stop.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Class {
    Space,
    Word,
    Han,
    Kana,
    Hangul,
    Punctuation,
}

fn class(c: char) -> Class {
    match c {
        c if c.is_whitespace() => Class::Space,
        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3fffd}' => Class::Han,
        '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' => Class::Kana,
        '\u{ac00}'..='\u{d7af}' | '\u{1100}'..='\u{11ff}' => Class::Hangul,
        c if c.is_alphanumeric() || c == '_' => Class::Word,
        _ => Class::Punctuation,
    }
}

impl Composer {
    /// Moves a grapheme (or a chip) left.
    pub fn left(&mut self) {
        self.go(self.left_of(self.caret));
    }

    /// Moves a grapheme (or a chip) right.
    pub fn right(&mut self) {
        self.go(self.right_of(self.caret));
    }

    /// Moves a word left.
    pub fn word_left(&mut self) {
        self.go(self.word_left_of(self.caret));
    }

    /// Moves a word right.
    pub fn word_right(&mut self) {
        self.go(self.word_right_of(self.caret));
    }

    /// Moves to the start of the line; from there, to the start of the draft.
    pub fn line_start(&mut self) {
        self.go(self.line_start_of(self.caret));
    }

    /// Moves to the end of the line.
    pub fn line_end(&mut self) {
        self.go(self.line_end_of(self.caret));
    }

    /// Moves to the start of the draft.
    pub fn draft_start(&mut self) {
        self.go(0);
    }

    /// Moves to the end of the draft.
    pub fn draft_end(&mut self) {
        self.go(self.text.len());
    }

    /// Puts the caret at a byte index (moved to the next boundary when inside a grapheme).
    pub fn set_caret(&mut self, at: usize) {
        let at = self.boundary_at_or_after(at);
        self.go(at);
    }

    pub(super) fn go(&mut self, at: usize) {
        self.caret = at;
        self.goal = None;
        self.last_edit = LastEdit::None;
    }

    pub(super) fn left_of(&self, at: usize) -> usize {
        if let Some((span, _)) =
            self.chip_spans().into_iter().find(|(s, _)| s.start < at && at <= s.end)
        {
            return span.start;
        }
        let before = self.text.get(..at).unwrap_or_default();
        before.grapheme_indices(true).next_back().map_or(0, |(i, _)| i)
    }

    pub(super) fn right_of(&self, at: usize) -> usize {
        if let Some((span, _)) =
            self.chip_spans().into_iter().find(|(s, _)| s.start <= at && at < s.end)
        {
            return span.end;
        }
        let after = self.text.get(at..).unwrap_or_default();
        at + after.graphemes(true).next().map_or(0, str::len)
    }

    pub(super) fn word_left_of(&self, at: usize) -> usize {
        let mut pos = at;
        let mut run = None;
        while pos > 0 {
            let prev = self.left_of(pos);
            let c = self.text.get(prev..pos).and_then(|g| g.chars().next()).unwrap_or(' ');
            match (run, class(c)) {
                (None, Class::Space) => {}
                (None, k) => run = Some(k),
                (Some(k), found) if k == found => {}
                _ => break,
            }
            pos = prev;
        }
        pos
    }

    pub(super) fn word_right_of(&self, at: usize) -> usize {
        let mut pos = at;
        let mut run = None;
        while pos < self.text.len() {
            let next = self.right_of(pos);
            let c = self.text.get(pos..next).and_then(|g| g.chars().next()).unwrap_or(' ');
            match (run, class(c)) {
                (None, Class::Space) => {}
                (None, k) => run = Some(k),
                (Some(k), found) if k == found => {}
                _ => break,
            }
            pos = next;
        }
        pos
    }

    pub(super) fn line_start_of(&self, at: usize) -> usize {
        self.text.get(..at).and_then(|t| t.rfind('\n')).map_or(0, |i| i + 1)
    }

    pub(super) fn line_end_of(&self, at: usize) -> usize {
        self.text.get(at..).and_then(|t| t.find('\n')).map_or(self.text.len(), |i| at + i)
    }
}
