//! How many cells a text takes: the one function for it, and wrapping and cutting built on it.
//!
//! Owns the width rule of the whole terminal interface. It is ratatui's own rule for a grapheme
//! cluster, so that what is measured here is what a buffer later holds. Nothing else may measure.

use std::num::NonZeroU16;

use ratatui::buffer::{Cell, CellDiffOption};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Cells that `text` takes.
pub fn cell_width(text: &str) -> usize {
    if is_plain(text) {
        return text.len();
    }
    text.graphemes(true).map(grapheme_width).sum()
}

/// Cells that one grapheme cluster takes. Control characters take none: they are never drawn.
pub fn grapheme_width(grapheme: &str) -> usize {
    if let [byte] = grapheme.as_bytes() {
        return usize::from((0x20..0x7f).contains(byte));
    }
    if grapheme.chars().all(char::is_control) {
        return 0;
    }
    // A cluster is one glyph: no sequence is wider than two cells.
    grapheme.width().min(2)
}

/// Whether every byte is one printable ASCII cell.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// Cuts `text` to at most `width` cells, ending in `ellipsis` when something is left out.
pub fn truncate(text: &str, width: usize, ellipsis: &str) -> String {
    let (kept, rest) = split_at_width(text, width);
    if rest.is_empty() {
        return text.to_owned();
    }
    let room = width.saturating_sub(cell_width(ellipsis));
    if room == 0 {
        return kept.to_owned();
    }
    let (kept, _) = split_at_width(text, room);
    format!("{kept}{ellipsis}")
}

/// Cuts the middle out of `text` to fit `width` cells: for paths, whose end matters most.
pub fn truncate_start(text: &str, width: usize, ellipsis: &str) -> String {
    if cell_width(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(cell_width(ellipsis));
    let mut used = 0;
    let mut from = text.len();
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += grapheme_width(grapheme);
        if used > room {
            break;
        }
        from = at;
    }
    format!("{ellipsis}{}", text.get(from..).unwrap_or_default())
}

/// Splits after the last whole grapheme that fits `width` cells.
pub fn split_at_width(text: &str, width: usize) -> (&str, &str) {
    // Only the bytes that can matter are looked at, so a long line costs no more than a short one.
    let plain = text.bytes().take(width + 1).take_while(|byte| (0x20..0x7f).contains(byte)).count();
    if plain == text.len() && plain <= width {
        return (text, "");
    }
    if plain > width {
        // The last plain byte may carry a combining mark, so it is not decided on its own.
        return text.split_at_checked(width).unwrap_or((text, ""));
    }
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let cells = grapheme_width(grapheme);
        if used + cells > width {
            return text.split_at_checked(at).unwrap_or((text, ""));
        }
        used += cells;
    }
    (text, "")
}

/// Pads `text` with spaces to `width` cells, or cuts it.
pub fn fit(text: &str, width: usize, ellipsis: &str) -> String {
    let mut out = truncate(text, width, ellipsis);
    let cells = cell_width(&out);
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(cells)));
    out
}

/// Breaks `text` into rows of at most `width` cells: at spaces where it can, within words that
/// are longer than a row. Line feeds begin a new row. The rows are slices of `text`.
pub fn wrap(text: &str, width: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        wrap_line(line, width.max(1), &mut rows);
    }
    rows
}

fn wrap_line<'a>(line: &'a str, width: usize, rows: &mut Vec<&'a str>) {
    let mut rest = line;
    loop {
        let (row, after) = split_at_width(rest, width);
        if after.is_empty() {
            rows.push(row);
            return;
        }
        if row.is_empty() {
            // A glyph wider than the row: it is given a row of its own rather than lost.
            let first = after.graphemes(true).next().map_or(after.len(), str::len);
            let (row, after) = after.split_at_checked(first).unwrap_or((after, ""));
            rows.push(row);
            rest = after;
            if rest.is_empty() {
                return;
            }
            continue;
        }
        let cut = break_at(row, after);
        let (row, after) = rest.split_at_checked(cut).unwrap_or((rest, ""));
        rows.push(row.trim_end_matches(' '));
        rest = after.trim_start_matches(' ');
        if rest.is_empty() {
            return;
        }
    }
}

/// Where to break so that no word is cut: the length of the row, in bytes.
pub(crate) fn break_at(row: &str, after: &str) -> usize {
    if after.starts_with(' ') {
        return row.len();
    }
    // What closes never begins a row: the character before it goes along.
    let mut next = after.chars().next();
    for (at, c) in row.char_indices().rev() {
        if c == ' ' && at > 0 {
            return at + 1;
        }
        // CJK may break after every ideograph.
        let end = at + c.len_utf8();
        if is_wide_text(c) && !next.is_some_and(closes) {
            return end.min(row.len());
        }
        next = Some(c);
    }
    row.len()
}

/// Whether a character belongs to what stands before it.
fn closes(c: char) -> bool {
    matches!(
        c,
        '。' | '，'
            | '、'
            | '．'
            | '：'
            | '；'
            | '！'
            | '？'
            | '）'
            | '」'
            | '』'
            | '】'
            | '》'
            | '〉'
            | '〕'
            | '］'
            | '｝'
            | '’'
            | '”'
            | '…'
            | 'ー'
            | '々'
            | ','
            | '.'
            | ':'
            | ';'
            | '!'
            | '?'
            | ')'
            | ']'
            | '}'
    )
}

fn is_wide_text(c: char) -> bool {
    matches!(u32::from(c), 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xff01..=0xff60 | 0x2_0000..=0x3_fffd)
}

/// Whether terminals may disagree about how wide `symbol` is. After such a cell the cursor must
/// be placed anew, so that one wrong width never shifts what follows.
pub fn needs_anchor(symbol: &str) -> bool {
    symbol.len() > 1
}

/// Makes a cell of two columns hold its ground: the diff writes it as two columns wide whatever
/// the terminal believes.
pub fn force_width(cell: &mut Cell, width: u16) {
    if let Some(width) = NonZeroU16::new(width) {
        cell.set_diff_option(CellDiffOption::ForcedWidth(width));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_take_the_cells_that_terminals_give_them() {
        let table = [
            ("a", 1),
            ("中", 2),
            ("한국어", 6),
            ("👩‍🔬", 2),
            ("👩‍👩‍👧‍👦", 2),
            ("🇩🇪", 2),
            ("⚠", 1),
            ("⚠\u{fe0f}", 2),
            ("❤\u{fe0f}", 2),
            ("👍🏽", 2),
            ("🏴\u{200d}☠\u{fe0f}", 2),
            ("Ａｱ", 3),
            ("e\u{301}", 1),
            ("hiển", 4),
            ("\u{200b}", 0),
            ("\u{7}", 0),
            ("✓ ok", 4),
        ];
        for (text, cells) in table {
            assert_eq!(cell_width(text), cells, "{text:?}");
        }
    }

    #[test]
    fn rows_break_at_spaces_and_inside_long_words() {
        assert_eq!(wrap("the quick brown fox", 9), ["the quick", "brown fox"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("a\n\nb", 5), ["a", "", "b"]);
        assert_eq!(wrap("你好世界", 5), ["你好", "世界"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("中", 1), ["中"]);
    }

    #[test]
    fn what_closes_never_begins_a_row_unless_nothing_else_fits() {
        assert_eq!(wrap("到此为止。下", 8), ["到此为", "止。下"]);
        assert_eq!(wrap("你好（世界）！再见", 12), ["你好（世", "界）！再见"]);
        assert_eq!(wrap("中文ok.", 6), ["中文", "ok."]);
        assert_eq!(wrap("。。。。", 4), ["。。", "。。"]);
    }

    #[test]
    fn cutting_counts_cells_and_marks_the_cut() {
        assert_eq!(truncate("模型名称", 5, "…"), "模型…");
        assert_eq!(truncate("short", 5, "…"), "short");
        assert_eq!(truncate("longer", 5, "…"), "long…");
        assert_eq!(truncate_start("/a/long/path.rs", 8, "…"), "…path.rs");
        assert_eq!(fit("中", 4, "…"), "中  ");
    }
}
