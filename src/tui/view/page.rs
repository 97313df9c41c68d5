//! A page to read: help, the status, a block in full, the whole conversation.

use std::rc::Rc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::theme::Theme;
use super::transcript::TranscriptView;
use super::transcript::rows::{self, Slot};
use super::{help, markdown, widgets};
use crate::tui::model::{Body, Model, Page, PageContent, PageFind, Seek};
use crate::tui::msg::PageSought;

/// Draws the page. A scroll beyond the end shows the end. Returns where a search came to, when
/// one was waiting for this frame.
pub(super) fn draw(
    model: &Model,
    page: &Page,
    view: &mut TranscriptView,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) -> (Option<PageSought>, Body) {
    let inside = Rect::new(
        area.x + 2,
        area.y + 1,
        area.width.saturating_sub(4),
        area.height.saturating_sub(2),
    );
    let lines = content(model, page, view, inside.width, theme);
    let shown = usize::from(inside.height);
    let most = lines.len().saturating_sub(shown);
    let first = page.scroll.min(most);
    let sought = page.find.as_ref().and_then(|find| seek(find, &lines, first, shown));
    let first = sought.map_or(first, |sought| sought.scroll);
    let note = match &page.find {
        Some(find) => find_note(find, sought),
        None if most > 0 => {
            let end = (first + shown).min(lines.len());
            format!("{end}/{} lines · / finds · y copies · e edits · Esc closes", lines.len())
        }
        None => "/ finds · y copies · e edits · Esc closes".to_owned(),
    };
    let inside = widgets::frame(area, &page.title, &note, theme.border, theme, buf);
    let needle = page.find.as_ref().map(|find| find.query.to_lowercase()).unwrap_or_default();
    let current = match (sought, &page.find) {
        (Some(sought), _) => sought.at,
        (None, find) => find.as_ref().and_then(|find| find.at),
    };
    for (y, (at, line)) in (inside.y..inside.bottom()).zip(lines.iter().enumerate().skip(first)) {
        let slot = Slot { x: inside.x, y, width: inside.width };
        rows::draw(buf, slot, line);
        if !needle.is_empty() {
            let style = if current == Some(at) { theme.found_current } else { theme.found };
            rows::mark(buf, slot, &needle, style);
        }
    }
    (sought, Body { most, rows: usize::from(inside.height) })
}

fn find_note(find: &PageFind, sought: Option<PageSought>) -> String {
    let position = sought.map(|sought| sought.position).or(find.position);
    let found = match position {
        _ if find.query.is_empty() => "type to search".to_owned(),
        Some((_, 0)) => "nothing found".to_owned(),
        Some((at, of)) => format!("line {at} of {of}"),
        None => String::new(),
    };
    let keys = if find.typing { "Enter takes it · Esc ends" } else { "n N go on · Esc ends" };
    format!("/{}  {found} · {keys}", find.query)
}

/// Looks for the rows with a match, only when the search moved.
fn seek(find: &PageFind, lines: &[Line<'_>], first: usize, shown: usize) -> Option<PageSought> {
    let seek = find.seek?;
    let needle = find.query.to_lowercase();
    let has = |line: &Line<'_>| line.to_string().to_lowercase().contains(&needle);
    let hits: Vec<usize> = if needle.is_empty() {
        Vec::new()
    } else {
        lines.iter().enumerate().filter(|(_, line)| has(line)).map(|(at, _)| at).collect()
    };
    let here = find.at.unwrap_or(first);
    let next = match seek {
        Seek::Here => hits.iter().position(|hit| *hit >= first),
        Seek::Next => hits.iter().position(|hit| *hit > here),
        Seek::Previous => {
            hits.iter().rposition(|hit| *hit < here).or_else(|| hits.len().checked_sub(1))
        }
    };
    // Around the end.
    let which = next.unwrap_or(0);
    let at = hits.get(which).copied();
    let most = lines.len().saturating_sub(shown);
    let scroll = match at {
        Some(at) if at < first || at >= first + shown => at.saturating_sub(shown / 3).min(most),
        _ => first,
    };
    let position = if hits.is_empty() { (0, 0) } else { (which + 1, hits.len()) };
    Some(PageSought { scroll, at, position })
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
        PageContent::Text(text) => view.text_lines(text, usize::from(columns), theme),
        PageContent::Block(id) => {
            view.block_lines(&model.transcript, *id, usize::from(columns), theme)
        }
    }
}
