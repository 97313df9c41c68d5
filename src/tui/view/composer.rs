//! The draft and the slash menu above it.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;

use super::theme::Theme;
use super::{widgets, width};
use crate::tui::model::Model;
use crate::tui::model::menu;

/// Columns of the prompt mark left of the text.
const MARK: u16 = 2;
/// Most rows of the draft that are shown.
const MOST_ROWS: u16 = 12;

/// Columns for the text in the composer's area; one stays free for the caret after the last one.
pub(super) fn text_width(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(MARK + 1).max(2))
}

/// Rows that the draft takes on this screen.
pub(super) fn height(model: &Model, screen: Rect) -> u16 {
    let rows = model.composer.rows(text_width(screen)).len();
    let most = (screen.height / 3).clamp(1, MOST_ROWS);
    u16::try_from(rows).unwrap_or(most).clamp(1, most)
}

/// Draws the draft; returns the caret's cell.
pub(super) fn draw(model: &Model, theme: &Theme, area: Rect, buf: &mut Buffer) -> (u16, u16) {
    let rows = model.composer.rows(text_width(area));
    let caret = model.composer.caret_in(&rows);
    let shown = usize::from(area.height.max(1));
    let first = (caret.row + 1).saturating_sub(shown);
    let mark = if theme.spec.utf8 { "❯" } else { ">" };
    buf.set_string(area.x, area.y, mark, theme.user_mark);
    if first > 0 {
        buf.set_string(area.x, area.y, if theme.spec.utf8 { "↑" } else { "^" }, theme.dim);
    }
    let x = area.x + MARK;
    if model.composer.is_empty() {
        let room = area.width.saturating_sub(MARK);
        widgets::put(buf, x, area.y, &placeholder(model), room, theme.dim);
    }
    for (y, row) in (area.y..area.bottom()).zip(rows.iter().skip(first)) {
        let text = model.composer.text().get(row.bytes.clone()).unwrap_or_default();
        draw_row(model, text, x, y, theme, buf);
    }
    let row = u16::try_from(caret.row - first).unwrap_or(0).min(area.height.saturating_sub(1));
    let column = u16::try_from(caret.column).unwrap_or(0);
    ((x + column).min(area.right().saturating_sub(1)), area.y + row)
}

/// Draws a row of the draft: chips stand out, tabs take four cells.
fn draw_row(model: &Model, text: &str, mut x: u16, y: u16, theme: &Theme, buf: &mut Buffer) {
    let mut rest = text;
    while let Some(g) = rest.graphemes(true).next() {
        let chip = model.composer.chips().iter().find(|c| rest.starts_with(c.label.as_str()));
        let (piece, style) = match chip {
            Some(chip) => (chip.label.as_str(), theme.accent),
            None => (g, theme.text),
        };
        let shown = if piece == "\t" { "    " } else { piece };
        if !piece.chars().all(char::is_control) || piece == "\t" {
            buf.set_string(x, y, shown, style);
            x += u16::try_from(width::cell_width(shown)).unwrap_or(1);
        }
        rest = rest.get(piece.len()..).unwrap_or_default();
    }
}

fn placeholder(model: &Model) -> String {
    use crate::tui::model::{Phase, Turn};
    match (&model.phase, model.turn) {
        (Phase::Down(t), _) if t.no_engine && model.start.can_demo => {
            "/demo tries the demo engine · Enter looks again".to_owned()
        }
        (Phase::Down(_), _) => "Enter starts the agent again".to_owned(),
        (Phase::NeedsLogin(_), _) => "Enter logs in".to_owned(),
        _ if !model.asks.is_empty() => "answer above first".to_owned(),
        (_, Turn::Running { .. }) => "write the next prompt: Enter queues it".to_owned(),
        (_, Turn::Cancelling { .. }) => "stopping…".to_owned(),
        _ if !model.queue.is_empty() => {
            "Enter sends the next queued prompt · ↑ edits the last".to_owned()
        }
        _ => "ask for something · / for commands".to_owned(),
    }
}

/// Draws the slash menu.
pub(super) fn menu(model: &Model, theme: &Theme, area: Rect, buf: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    if !menu::is_open(model) {
        return files(model, theme, area, buf);
    }
    let rows = menu::rows(model);
    let shown = usize::from(area.height);
    let first = (model.menu.selected + 1).saturating_sub(shown);
    let names = rows.iter().map(|r| width::cell_width(&r.name) + 1).max().unwrap_or(0);
    let column = names.min(usize::from(area.width) / 3).max(6);
    for (y, (i, row)) in (area.y..area.bottom()).zip(rows.iter().enumerate().skip(first)) {
        let selected = i == model.menu.selected;
        let style = if selected { theme.selected } else { theme.text };
        let name = width::fit(&format!("/{}", row.name), column + 1, "…");
        let more = if row.hint.is_empty() { String::new() } else { format!("‹{}› ", row.hint) };
        let owner = if row.local { "" } else { "· " };
        let mark = if selected { theme.glyphs.folded } else { " " };
        let line = Line::from(vec![
            Span::styled(format!("{mark} "), theme.accent),
            Span::styled(name, if selected { style } else { theme.accent }),
            Span::styled(
                format!(" {owner}{more}{}", row.help),
                if selected { style } else { theme.dim },
            ),
        ]);
        widgets::put_line(buf, area.x, y, area.width, &line);
    }
    place_in(model.menu.selected, rows.len(), theme, area, buf);
}

/// Says which row of how many is selected, when not all are in sight.
fn place_in(selected: usize, rows: usize, theme: &Theme, area: Rect, buf: &mut Buffer) {
    if rows > usize::from(area.height) {
        let position = format!(" {}/{rows} ", selected + 1);
        let x = area.right().saturating_sub(u16::try_from(position.len()).unwrap_or(0));
        buf.set_string(x, area.y, position, theme.dim);
    }
}

/// Draws the menu of files. A path too long loses its beginning: its name tells it apart.
fn files(model: &Model, theme: &Theme, area: Rect, buf: &mut Buffer) {
    let Some(open) = &model.mentions.open else { return };
    if open.rows.is_empty() {
        let room = area.width.saturating_sub(2);
        widgets::put(buf, area.x + 2, area.y, "reading the files…", room, theme.dim);
        return;
    }
    let first = (open.selected + 1).saturating_sub(usize::from(area.height));
    let room = usize::from(area.width).saturating_sub(3);
    for (y, (i, path)) in (area.y..area.bottom()).zip(open.rows.iter().enumerate().skip(first)) {
        let selected = i == open.selected;
        let mark = if selected { theme.glyphs.folded } else { " " };
        let (way, name) = path.rsplit_once('/').unwrap_or(("", path));
        let name_room = width::cell_width(name);
        let way = if way.is_empty() { String::new() } else { format!("{way}/") };
        let way = end_of(&way, room.saturating_sub(name_room));
        let pick = |style| if selected { theme.selected } else { style };
        let line = Line::from(vec![
            Span::styled(format!("{mark} "), theme.accent),
            Span::styled(way, pick(theme.dim)),
            Span::styled(name.to_owned(), pick(theme.text)),
        ]);
        widgets::put_line(buf, area.x, y, area.width, &line);
    }
    place_in(open.selected, open.rows.len(), theme, area, buf);
}

/// The end of a text that fits into so many cells.
fn end_of(text: &str, room: usize) -> String {
    if width::cell_width(text) <= room {
        return text.to_owned();
    }
    let (mut kept, mut used) = (Vec::new(), 1);
    for g in text.graphemes(true).rev() {
        used += width::cell_width(g);
        if used > room {
            break;
        }
        kept.push(g);
    }
    kept.push("…");
    kept.into_iter().rev().collect()
}
