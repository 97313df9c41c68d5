//! The draft: text, caret, undo, cut buffer and pasted chips. Data and pure edits, no I/O.
//!
//! The caret is a byte index that always lies on a grapheme boundary. A large paste stands in the
//! text as a short chip that moves and is deleted as one; [`Composer::expanded`] puts it back.
//! `update::keys` calls the edits, `view::composer` asks for [`Composer::rows`].

mod motion;
mod rows;

pub use rows::{Caret, Row};

use unicode_segmentation::UnicodeSegmentation;

/// A paste longer than this many lines becomes a chip.
const CHIP_LINES: usize = 10;
/// A paste longer than this many characters becomes a chip.
const CHIP_CHARS: usize = 1000;
/// Undo steps kept.
const UNDO_LIMIT: usize = 200;
/// A chip longer than this is never put into the text by [`Composer::expand_chip`].
const EXPAND_LIMIT: usize = 64 * 1024;

/// A large paste that the text shows as a chip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    /// What stands in the text.
    pub label: String,
    /// What is sent.
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Snapshot {
    text: String,
    caret: usize,
}

/// Which kind of edit came last, so that typing a word is one undo step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LastEdit {
    #[default]
    None,
    Insert,
    Delete,
}

/// The draft that is being written.
#[derive(Debug, Clone, Default)]
pub struct Composer {
    text: String,
    caret: usize,
    goal: Option<usize>,
    chips: Vec<Chip>,
    chips_made: usize,
    /// The size of the chip that was made last: a paste that comes key by key is not counted anew
    /// with each key.
    newest: Size,
    undo: Vec<Snapshot>,
    redo: Vec<Snapshot>,
    last_edit: LastEdit,
    cut: String,
    version: u64,
}

/// How much a chip holds.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    /// Which chip; 0 is none.
    chip: usize,
    line_ends: usize,
    chars: usize,
}

impl Size {
    fn add(&mut self, text: &str) {
        self.line_ends += text.bytes().filter(|b| *b == b'\n').count();
        self.chars += text.chars().count();
    }

    fn lines(&self, content: &str) -> usize {
        self.line_ends + usize::from(!content.is_empty() && !content.ends_with('\n'))
    }
}

/// What stands for a paste in the text.
fn label_of(n: usize, lines: usize, chars: usize) -> String {
    if lines > 1 {
        format!("[pasted #{n}: {lines} lines]")
    } else {
        format!("[pasted #{n}: {chars} characters]")
    }
}

impl Composer {
    /// The text as shown, chips by their labels.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Byte index of the caret.
    pub fn caret(&self) -> usize {
        self.caret
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Counts the edits, so that others can tell whether the draft changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The chips of the draft.
    pub fn chips(&self) -> &[Chip] {
        &self.chips
    }

    /// The text as sent: every chip replaced by what was pasted.
    pub fn expanded(&self) -> String {
        if self.chips.is_empty() {
            return self.text.clone();
        }
        let mut out = String::with_capacity(self.text.len());
        let mut rest = self.text.as_str();
        'text: while let Some(c) = rest.chars().next() {
            if c == '[' {
                for chip in &self.chips {
                    if let Some(after) = rest.strip_prefix(chip.label.as_str()) {
                        out.push_str(&chip.content);
                        rest = after;
                        continue 'text;
                    }
                }
            }
            out.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
        out
    }

    /// Replaces the whole draft; the old one can be brought back with undo.
    pub fn set_text(&mut self, text: &str) {
        self.remember(LastEdit::None);
        text.clone_into(&mut self.text);
        self.caret = self.text.len();
        self.changed();
    }

    /// Takes the draft away to be sent, and starts an empty one.
    pub fn take(&mut self) -> String {
        let text = self.expanded();
        self.text.clear();
        self.caret = 0;
        self.chips.clear();
        self.undo.clear();
        self.redo.clear();
        self.last_edit = LastEdit::None;
        self.changed();
        text
    }

    /// Empties the draft, so that undo brings it back.
    pub fn clear(&mut self) {
        self.set_text("");
    }

    /// Inserts typed text at the caret.
    pub fn insert(&mut self, text: &str) {
        // A space ends the undo step, so that undo goes back word by word.
        let kind =
            if text.chars().all(char::is_whitespace) { LastEdit::None } else { LastEdit::Insert };
        self.remember(kind);
        self.put(text);
    }

    /// Puts a text in the place of a part of the draft; the caret stands behind it.
    pub fn replace(&mut self, range: std::ops::Range<usize>, text: &str) {
        if self.text.get(range.clone()).is_none() {
            return;
        }
        self.remember(LastEdit::None);
        self.caret = range.start + text.len();
        self.text.replace_range(range, text);
        self.caret = self.boundary_at_or_after(self.caret);
        self.changed();
    }

    /// Makes a chip of a word that stands in the text; returns whether it still does. The caret
    /// stays where it is in what is around.
    pub fn put_chip(&mut self, word: &str, chip: Chip) -> bool {
        let spans = self.chip_spans();
        let is_free = |at: &usize| !spans.iter().any(|(span, _)| span.contains(at));
        let Some(at) = self.text.rmatch_indices(word).map(|(at, _)| at).find(is_free) else {
            return false;
        };
        self.remember(LastEdit::None);
        let end = at + word.len();
        self.text.replace_range(at..end, &chip.label);
        if self.caret >= end {
            self.caret = self.caret - word.len() + chip.label.len();
        } else if self.caret > at {
            self.caret = at + chip.label.len();
        }
        self.caret = self.boundary_at_or_after(self.caret);
        self.chips.retain(|known| known.label != chip.label);
        self.chips.push(chip);
        self.changed();
        true
    }

    /// Inserts pasted text: as it is when short, as a chip when large.
    pub fn paste(&mut self, text: &str) {
        self.remember(LastEdit::None);
        let lines = text.lines().count();
        let chars = text.chars().count();
        if lines <= CHIP_LINES && chars <= CHIP_CHARS {
            self.put(text);
            return;
        }
        self.chips_made += 1;
        self.newest = Size::default();
        let label = label_of(self.chips_made, lines, chars);
        self.chips.push(Chip { label: label.clone(), content: text.to_owned() });
        self.put(&label);
    }

    /// Adds a further piece to the paste whose chip was made last and ends at the caret; returns
    /// whether there is one.
    pub fn paste_on(&mut self, text: &str) -> bool {
        let n = self.chips_made;
        let Some(chip) = self.chips.last_mut().filter(|chip| {
            chip.label.starts_with(&format!("[pasted #{n}:"))
                && self.text.get(..self.caret).is_some_and(|before| before.ends_with(&chip.label))
        }) else {
            return false;
        };
        if self.newest.chip != n {
            self.newest = Size { chip: n, ..Size::default() };
            self.newest.add(&chip.content);
        }
        self.newest.add(text);
        chip.content.push_str(text);
        let start = self.caret - chip.label.len();
        chip.label = label_of(n, self.newest.lines(&chip.content), self.newest.chars);
        self.text.replace_range(start..self.caret, &chip.label);
        self.caret = start + chip.label.len();
        self.changed();
        true
    }

    /// Puts the content of the chip at (or before) the caret into the text; returns whether it did.
    pub fn expand_chip(&mut self) -> bool {
        let found = self
            .chip_spans()
            .into_iter()
            .find(|(range, _)| range.contains(&self.caret) || range.end == self.caret);
        let Some((range, index)) = found else { return false };
        let Some(content) = self.chips.get(index).map(|c| c.content.clone()) else { return false };
        if content.len() > EXPAND_LIMIT {
            return false;
        }
        self.remember(LastEdit::None);
        let start = range.start;
        self.text.replace_range(range, &content);
        self.caret = start + content.len();
        self.changed();
        true
    }

    /// Deletes what is before the caret: a grapheme or a whole chip.
    pub fn delete_back(&mut self) {
        let start = self.left_of(self.caret);
        self.delete(start, self.caret, LastEdit::Delete);
    }

    /// Deletes what is under the caret.
    pub fn delete_forward(&mut self) {
        let end = self.right_of(self.caret);
        self.delete(self.caret, end, LastEdit::Delete);
    }

    /// Cuts the word before the caret.
    pub fn delete_word_back(&mut self) {
        let start = self.word_left_of(self.caret);
        self.cut_range(start, self.caret);
    }

    /// Cuts the word after the caret.
    pub fn delete_word_forward(&mut self) {
        let end = self.word_right_of(self.caret);
        self.cut_range(self.caret, end);
    }

    /// Cuts from the start of the line, or the line end before it when already there.
    pub fn cut_to_start(&mut self) {
        let start = self.line_start_of(self.caret);
        let start = if start == self.caret { self.left_of(self.caret) } else { start };
        self.cut_range(start, self.caret);
    }

    /// Cuts to the end of the line, or the line end itself when already there.
    pub fn cut_to_end(&mut self) {
        let end = self.line_end_of(self.caret);
        let end = if end == self.caret { self.right_of(self.caret) } else { end };
        self.cut_range(self.caret, end);
    }

    /// Inserts what was cut last.
    pub fn yank(&mut self) {
        let cut = self.cut.clone();
        if !cut.is_empty() {
            self.remember(LastEdit::None);
            self.put(&cut);
        }
    }

    /// Takes the last edit back; returns whether there was one.
    pub fn undo(&mut self) -> bool {
        let Some(old) = self.undo.pop() else { return false };
        self.redo.push(Snapshot { text: self.text.clone(), caret: self.caret });
        self.restore(old);
        true
    }

    /// Makes the undone edit again; returns whether there was one.
    pub fn redo(&mut self) -> bool {
        let Some(new) = self.redo.pop() else { return false };
        self.undo.push(Snapshot { text: self.text.clone(), caret: self.caret });
        self.restore(new);
        true
    }

    /// Brings a stored draft back: text with its chips.
    pub fn restore_draft(&mut self, text: String, chips: Vec<Chip>) {
        self.chips_made = chips.len();
        self.newest = Size::default();
        self.chips = chips;
        self.text = text;
        self.caret = self.text.len();
        self.changed();
    }

    fn put(&mut self, text: &str) {
        self.text.insert_str(self.caret, text);
        self.caret += text.len();
        // The insertion may join with its neighbours into one grapheme.
        self.caret = self.boundary_at_or_after(self.caret);
        self.changed();
    }

    fn delete(&mut self, start: usize, end: usize, kind: LastEdit) {
        if start >= end {
            return;
        }
        self.remember(kind);
        self.text.replace_range(start..end, "");
        self.caret = self.boundary_at_or_after(start);
        self.changed();
    }

    fn cut_range(&mut self, start: usize, end: usize) {
        if start < end {
            self.cut = self.text.get(start..end).unwrap_or_default().to_owned();
            self.delete(start, end, LastEdit::None);
        }
    }

    fn remember(&mut self, kind: LastEdit) {
        let joins = kind != LastEdit::None && kind == self.last_edit && !self.undo.is_empty();
        self.last_edit = kind;
        self.redo.clear();
        if joins {
            return;
        }
        if self.undo.len() >= UNDO_LIMIT {
            self.undo.remove(0);
        }
        self.undo.push(Snapshot { text: self.text.clone(), caret: self.caret });
    }

    fn restore(&mut self, s: Snapshot) {
        self.text = s.text;
        self.caret = s.caret;
        self.last_edit = LastEdit::None;
        self.changed();
    }

    fn changed(&mut self) {
        self.goal = None;
        self.version += 1;
    }

    /// Where chips stand in the text, with their index.
    fn chip_spans(&self) -> Vec<(std::ops::Range<usize>, usize)> {
        let mut spans = Vec::new();
        for (i, chip) in self.chips.iter().enumerate() {
            for (at, found) in self.text.match_indices(chip.label.as_str()) {
                spans.push((at..at + found.len(), i));
            }
        }
        spans
    }

    fn boundary_at_or_after(&self, at: usize) -> usize {
        self.text
            .grapheme_indices(true)
            .map(|(i, _)| i)
            .find(|i| *i >= at)
            .unwrap_or(self.text.len())
    }
}

#[cfg(test)]
mod tests;
