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

/// Bytes of a page that a frame reads or looks through: some milliseconds of work.
const FRAME_WORK: usize = 512 * 1024;

/// What a page was drawn with.
pub(super) struct Shown {
    /// Where a search came to, when one goes on or was waiting for this frame.
    pub(super) sought: Option<PageSought>,
    pub(super) body: Body,
    /// What one went to is not read yet.
    pub(super) unfinished: bool,
}

/// Draws the page. A scroll beyond the end shows the end.
pub(super) fn draw(
    model: &Model,
    page: &Page,
    view: &mut TranscriptView,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) -> Shown {
    let inside = widgets::inside(area, buf.area);
    let mut short = None;
    let (paper, code) = content(model, page, view, inside.width, theme, &mut short);
    let shown = usize::from(inside.height);
    let wanted = page.scroll.saturating_add(shown);
    let is_there = paper.reach_within(wanted, FRAME_WORK, theme, code);
    let most = paper.len().saturating_sub(shown);
    // Not there yet, one sees how far it is.
    let first =
        if is_there { page.scroll.min(most) } else { paper.counted().saturating_sub(shown) };
    let sought = page.find.as_ref().and_then(|find| {
        let view = View { first, shown, theme };
        seek(find, paper, code, view)
    });
    let first = sought.and_then(|sought| sought.scroll).unwrap_or(first);
    let (all, is_counted) = (paper.len(), paper.is_counted());
    let most = all.saturating_sub(shown);
    let note = page.find.as_ref().map(|find| find_note(find, sought)).unwrap_or_default();
    let inside = widgets::frame(area, &page.title, &note, theme.border, theme, buf);
    if page.find.is_none() {
        let end = (first + shown).min(all);
        let about = if is_counted { "" } else { "~" };
        let lines = if area.width < 30 { "" } else { " lines" };
        let reading = if is_there { "" } else { " reading…" };
        let place = (most > 0).then(|| format!("{end}/{about}{all}{lines}{reading}"));
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
    let body = Body { most, rows: usize::from(inside.height) };
    Shown { sought, body, unfinished: !is_there }
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
    let progress = sought.map_or(find.progress, |sought| sought.progress);
    let found = match (position, progress) {
        _ if find.query.is_empty() => "type to search".to_owned(),
        (Some((0, of)), Some(percent)) => format!("{of} so far, {percent} % read"),
        (Some((at, of)), Some(percent)) => format!("line {at} of {of}, {percent} % read"),
        (Some((_, 0)), None) => "nothing found".to_owned(),
        (Some((at, of)), None) => format!("line {at} of {of}"),
        (None, _) => String::new(),
    };
    let keys = match (find.typing, progress) {
        (_, Some(_)) => "Esc stops",
        (true, None) => "Enter takes it · Esc ends",
        (false, None) => "n N go on · Esc ends",
    };
    format!("/{}  {found} · {keys}", find.query)
}

/// What of the page is in sight.
struct View<'a> {
    first: usize,
    shown: usize,
    theme: &'a Theme,
}

/// Looks for the rows with a match: a bounded piece of the page a frame, and where to go as soon as
/// that is known.
fn seek(
    find: &PageFind,
    paper: &mut Paper,
    code: &mut Highlighter,
    View { first, shown, theme }: View<'_>,
) -> Option<PageSought> {
    let needle = find.query.to_lowercase();
    let found = paper.search(&needle, FRAME_WORK, theme, code);
    let hits = if needle.is_empty() { &[] } else { found.hits };
    let is_told = find.position.is_none_or(|(_, of)| of == hits.len());
    if find.seek.is_none() && find.progress.is_none() && found.is_done && is_told {
        return None;
    }
    let here = find.at.unwrap_or(first);
    let at_or_after = |row: usize| hits.get(hits.partition_point(|hit| *hit < row)).copied();
    let before =
        || hits.partition_point(|hit| *hit < here).checked_sub(1).and_then(|n| hits.get(n));
    // Around the end only once it is known.
    let ahead = |row: usize| match at_or_after(row) {
        None if found.is_done => hits.first().copied(),
        at => at,
    };
    let goal = match find.seek {
        Some(Seek::Here) => ahead(first),
        Some(Seek::Next) => ahead(here.saturating_add(1)),
        Some(Seek::Previous) if found.is_done => before().or(hits.last()).copied(),
        Some(Seek::Previous) if found.seen > here => before().copied(),
        Some(Seek::Previous) | None => None,
    };
    let seek = find.seek.filter(|_| goal.is_none() && !found.is_done);
    let at = goal.or(find.at).filter(|at| hits.binary_search(at).is_ok());
    let which = at.and_then(|at| hits.binary_search(&at).ok()).map_or(0, |n| n + 1);
    let (count, seen, is_done) = (hits.len(), found.seen, found.is_done);
    let all = paper.len().max(1);
    let progress =
        (!is_done).then(|| u8::try_from((seen.min(all) * 100 / all).min(99)).unwrap_or(99));
    let most = paper.len().saturating_sub(shown);
    let scroll = goal
        .filter(|at| *at < first || *at >= first + shown)
        .map(|at| at.saturating_sub(shown / 3).min(most));
    let position = (which, count);
    Some(PageSought { scroll, at, position, seek, progress })
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
