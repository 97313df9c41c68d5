//! A line → cells of a row.
//!
//! Owns the only place where text becomes cells. A wide glyph never straddles the edge, a cell
//! whose width ratatui measures otherwise is pinned to ours, and no control character is written.

use ratatui::buffer::{Buffer, CellWidth};
use ratatui::style::Style;
use ratatui::text::Line;
use unicode_segmentation::UnicodeSegmentation;

use super::super::width::{force_width, grapheme_width};

/// Where a row is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) x: u16,
    pub(crate) y: u16,
    pub(crate) width: u16,
}

/// Draws `line` into `slot`. Returns the first column after it.
pub(crate) fn draw(buf: &mut Buffer, slot: Slot, line: &Line<'_>) -> u16 {
    let mut x = slot.x;
    let end = slot.x.saturating_add(slot.width).min(buf.area.right());
    for span in &line.spans {
        let style = line.style.patch(span.style);
        x = draw_text(buf, (x, slot.y), end, &span.content, style);
        if x >= end {
            break;
        }
    }
    x
}

/// Draws `text` from `(x, y)` on, up to column `end`. Returns the first column after it.
pub(crate) fn draw_text(
    buf: &mut Buffer,
    (x, y): (u16, u16),
    end: u16,
    text: &str,
    style: Style,
) -> u16 {
    let mut x = x;
    let plain = |byte: u8| (0x20..0x7f).contains(&byte);
    if text.bytes().all(plain) {
        for byte in text.bytes() {
            if x >= end {
                return x;
            }
            if let Some(cell) = buf.cell_mut((x, y)) {
                cell.set_char(char::from(byte)).set_style(style);
            }
            x += 1;
        }
        return x;
    }
    for grapheme in text.graphemes(true) {
        let cells = u16::try_from(grapheme_width(grapheme)).unwrap_or(0);
        if cells == 0 {
            continue;
        }
        if x.saturating_add(cells) > end {
            return end;
        }
        if let Some(cell) = buf.cell_mut((x, y)) {
            cell.set_symbol(grapheme).set_style(style);
            if cell.cell_width() != cells {
                force_width(cell, cells);
            }
        }
        for covered in x + 1..x + cells {
            if let Some(cell) = buf.cell_mut((covered, y)) {
                cell.reset();
                cell.set_style(style);
            }
        }
        x += cells;
    }
    x
}

/// Restyles the cells of a row that show `needle`, whatever its case.
pub(crate) fn mark(buf: &mut Buffer, slot: Slot, needle: &str, style: Style) {
    let mut text = String::new();
    let mut columns: Vec<(usize, u16)> = Vec::new();
    let mut x = slot.x;
    while x < slot.x.saturating_add(slot.width) {
        let Some(cell) = buf.cell((x, slot.y)) else {
            break;
        };
        columns.push((text.len(), x));
        text.push_str(&cell.symbol().to_lowercase());
        x += cell.cell_width().max(1);
    }
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(needle)) {
        let start = from + found;
        let end = start + needle.len();
        for (at, x) in &columns {
            if *at >= start
                && *at < end
                && let Some(cell) = buf.cell_mut((*x, slot.y))
            {
                cell.set_style(style);
            }
        }
        from = end.max(start + 1);
        if needle.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    fn row(text: &str, width: u16) -> Buffer {
        let mut buf = Buffer::empty(Rect::new(0, 0, width, 1));
        let slot = Slot { x: 0, y: 0, width };
        draw(&mut buf, slot, &Line::raw(text.to_owned()));
        buf
    }

    #[test]
    fn wide_glyphs_take_their_cells_and_never_straddle_the_edge() {
        let buf = row("a中👩‍🔬⚠\u{fe0f}|", 8);
        assert_eq!(buf[(1, 0)].symbol(), "中");
        assert_eq!(buf[(3, 0)].symbol(), "👩‍🔬");
        assert_eq!(buf[(5, 0)].symbol(), "⚠\u{fe0f}");
        assert_eq!(buf[(7, 0)].symbol(), "|");
        let buf = row("abc中", 4);
        assert_eq!(buf[(3, 0)].symbol(), " ");
    }

    #[test]
    fn every_cell_is_as_wide_as_it_was_measured() {
        for text in ["👩‍👩‍👧‍👦x", "🇩🇪x", "♻️x", "क्षिx", "e\u{301}x"]
        {
            let buf = row(text, 10);
            let cells = u16::try_from(super::super::super::width::cell_width(text)).unwrap();
            assert_eq!(buf[(cells - 1, 0)].symbol(), "x", "{text}");
            assert_eq!(buf[(0, 0)].cell_width(), cells - 1, "{text}");
        }
    }

    #[test]
    fn a_zwj_emoji_then_a_space_is_not_overwritten_by_the_diff() {
        let before = row("xxxxxx", 6);
        let after = row("👩‍🔬 b", 6);
        let changed: Vec<(u16, String)> = before
            .diff(&after)
            .into_iter()
            .map(|(x, _, cell)| (x, cell.symbol().to_owned()))
            .collect();
        assert_eq!(changed[0], (0, "👩‍🔬".to_owned()));
        assert_eq!(changed[1].0, 2);
    }
}
