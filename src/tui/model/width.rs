//! How many cells a grapheme takes. The measure that the draft is laid out with, because caret
//! movement by rows is part of the model; `view::width` draws with the same one.

use unicode_width::UnicodeWidthStr;

/// Cells of one grapheme: 4 for a tab, 0 for other control characters, at most 2 otherwise.
pub fn grapheme_width(grapheme: &str) -> usize {
    match grapheme {
        "\t" => 4,
        g if g.chars().next().is_some_and(char::is_control) => 0,
        g => g.width().min(2),
    }
}
