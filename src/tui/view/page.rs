//! A page to read: help, the status, a tool card in full.

use std::rc::Rc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::theme::Theme;
use super::transcript::TranscriptView;
use super::{help, markdown, widgets};
use crate::tui::model::{Model, Page, PageContent};

/// Draws the page. A scroll beyond the end shows the end.
pub(super) fn draw(
    model: &Model,
    page: &Page,
    view: &mut TranscriptView,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) {
    let inside = Rect::new(
        area.x + 2,
        area.y + 1,
        area.width.saturating_sub(4),
        area.height.saturating_sub(2),
    );
    let lines = content(model, page, view, inside.width, theme);
    let most = lines.len().saturating_sub(usize::from(inside.height));
    let first = page.scroll.min(most);
    let note = if most > 0 {
        let end = (first + usize::from(inside.height)).min(lines.len());
        format!("{end}/{} lines · ↑↓ PgUp PgDn · Esc closes", lines.len())
    } else {
        "Esc closes".to_owned()
    };
    let inside = widgets::frame(area, &page.title, &note, theme.border, theme, buf);
    widgets::lines(inside, &lines, first, buf);
}

fn content(
    model: &Model,
    page: &Page,
    view: &mut TranscriptView,
    columns: u16,
    theme: &Theme,
) -> Rc<[Line<'static>]> {
    match &page.content {
        PageContent::Help => help::lines(model, columns, theme).into(),
        PageContent::Markdown(text) => markdown::render(text, usize::from(columns), theme).into(),
        PageContent::Text(text) => widgets::wrapped(text, columns, theme.text).into(),
        PageContent::Block(id) => {
            view.block_lines(&model.transcript, *id, usize::from(columns), theme)
        }
    }
}
