//! A list to choose from.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::theme::Theme;
use super::{widgets, width};
use crate::tui::model::picker::Picker;

/// Widest list.
const WIDEST: u16 = 90;

/// Draws the list over `body`; returns the cell of the filter's caret.
pub(super) fn draw(
    picker: &Picker,
    theme: &Theme,
    body: Rect,
    buf: &mut Buffer,
) -> Option<(u16, u16)> {
    let count = picker.visible_items().len();
    let wanted = u16::try_from(picker.total().max(1)).unwrap_or(u16::MAX).saturating_add(3);
    let rows = wanted.max(6).min(body.height);
    let columns = WIDEST.min(body.width);
    let area = Rect::new(
        body.x + (body.width - columns) / 2,
        body.bottom().saturating_sub(rows),
        columns,
        rows,
    );
    // There may be more than were read.
    let more = if picker.loading || picker.next_cursor.is_some() { "+" } else { "" };
    let note = match (picker.loading, count) {
        (true, 0) => "loading…".to_owned(),
        (false, 0) if picker.total() == 0 => "none yet · Esc leaves".to_owned(),
        (false, 0) => "nothing fits · Esc leaves".to_owned(),
        _ => format!("{}/{count}{more} · Enter takes · Esc leaves", picker.selected + 1),
    };
    let inside = widgets::frame(area, &picker.title, &note, theme.accent, theme, buf);
    if inside.height < 2 {
        return None;
    }
    let prompt = if picker.filter.is_empty() { "type to filter" } else { picker.filter.as_str() };
    let style = if picker.filter.is_empty() { theme.dim } else { theme.text };
    widgets::put(buf, inside.x, inside.y, prompt, inside.width, style);
    let typed = u16::try_from(width::cell_width(&picker.filter)).unwrap_or(0);
    let caret = (inside.x + typed.min(inside.width.saturating_sub(1)), inside.y);
    let list = Rect { y: inside.y + 1, height: inside.height - 1, ..inside };
    let shown = usize::from(list.height);
    let first = (picker.selected + 1).saturating_sub(shown);
    for (y, (i, item)) in
        (list.y..list.bottom()).zip(picker.visible_items().enumerate().skip(first))
    {
        let selected = i == picker.selected;
        let mark = if item.current { theme.glyphs.done } else { " " };
        let base = if selected { theme.selected } else { theme.text };
        if selected {
            buf.set_string(list.x, y, " ".repeat(usize::from(list.width)), base);
        }
        let style = |s: ratatui::style::Style| if selected { base } else { s };
        widgets::put(buf, list.x, y, mark, 2, style(theme.success));
        let room = list.width.saturating_sub(2);
        let detail_room = if item.detail.is_empty() { 0 } else { room / 2 };
        let label_room = room - detail_room;
        widgets::put(
            buf,
            list.x + 2,
            y,
            &item.label,
            label_room.saturating_sub(1),
            style(theme.text),
        );
        widgets::put(buf, list.x + 2 + label_room, y, &item.detail, detail_room, style(theme.dim));
    }
    Some(caret)
}
