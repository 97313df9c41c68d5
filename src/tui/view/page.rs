//! A page to read: help, the status, a block in full, the whole conversation.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::highlight::Highlighter;
use super::paper::Paper;
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
    let mut short = None;
    let (paper, code) = content(model, page, view, inside.width, theme, &mut short);
    let shown = usize::from(inside.height);
    let is_counted = paper.reach(page.scroll.saturating_add(shown), theme, code);
    let all = paper.len();
    let most = all.saturating_sub(shown);
    let first = page.scroll.min(most);
    let sought = page.find.as_ref().and_then(|find| {
        let view = View { first, shown, theme };
        seek(find, paper, code, view)
    });
    let first = sought.map_or(first, |sought| sought.scroll);
    let note = page.find.as_ref().map(|find| find_note(find, sought)).unwrap_or_default();
    let inside = widgets::frame(area, &page.title, &note, theme.border, theme, buf);
    if page.find.is_none() {
        let end = (first + shown).min(all);
        let about = if is_counted { "" } else { "~" };
        let place = (most > 0).then(|| format!("{end}/{about}{all} lines"));
        widgets::frame_hints(area, &hints(place, area.width), theme, buf);
    }
    let needle = page.find.as_ref().map(|find| find.query.to_lowercase()).unwrap_or_default();
    let current = match (sought, &page.find) {
        (Some(sought), _) => sought.at,
        (None, find) => find.as_ref().and_then(|find| find.at),
    };
    let rows = paper.rows(first..first + shown, theme, code);
    for (y, (at, line)) in (inside.y..inside.bottom()).zip((first..).zip(rows)) {
        let slot = Slot { x: inside.x, y, width: inside.width };
        rows::draw(buf, slot, line);
        if !needle.is_empty() {
            let style = if current == Some(at) { theme.found_current } else { theme.found };
            rows::mark(buf, slot, &needle, style);
        }
    }
    (sought, Body { most, rows: usize::from(inside.height) })
}

/// The place and the keys. Where there is no room for all, the key that closes stays.
fn hints(place: Option<String>, columns: u16) -> Vec<String> {
    let keys: &[&str] = match columns {
        0..50 => &["Esc closes", "/ finds"],
        50..64 => &["/ finds", "y copies", "Esc closes"],
        _ => &["/ finds", "y copies", "e edits", "Esc closes"],
    };
    place.into_iter().chain(keys.iter().map(|key| (*key).to_owned())).collect()
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

/// What of the page is in sight.
struct View<'a> {
    first: usize,
    shown: usize,
    theme: &'a Theme,
}

/// Looks for the rows with a match, only when the search moved.
fn seek(
    find: &PageFind,
    paper: &mut Paper,
    code: &mut Highlighter,
    View { first, shown, theme }: View<'_>,
) -> Option<PageSought> {
    let seek = find.seek?;
    let hits = paper.hits(&find.query.to_lowercase(), theme, code);
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
    let most = paper.len().saturating_sub(shown);
    let scroll = match at {
        Some(at) if at < first || at >= first + shown => at.saturating_sub(shown / 3).min(most),
        _ => first,
    };
    let position = if hits.is_empty() { (0, 0) } else { (which + 1, hits.len()) };
    Some(PageSought { scroll, at, position })
}

/// What the page shows, and what colours its code. A short text is made anew into `short`.
fn content<'a>(
    model: &Model,
    page: &Page,
    view: &'a mut TranscriptView,
    columns: u16,
    theme: &Theme,
    short: &'a mut Option<Paper>,
) -> (&'a mut Paper, &'a mut Highlighter) {
    let width = usize::from(columns);
    let lines = match &page.content {
        PageContent::Help => help::lines(model, columns, theme),
        PageContent::Markdown(text) => markdown::render(text, width, theme),
        PageContent::Text(text) => return view.text_paper(text, width, theme),
        PageContent::Block(id) => return view.block_paper(&model.transcript, *id, width, theme),
    };
    (short.insert(Paper::of_lines(lines, width, theme)), view.code())
}
