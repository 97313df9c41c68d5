//! The list of subagents, and the way to the one whose transcript is shown.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::transcript::summary_of;
use super::{status, widgets, width};
use crate::tui::keymap::{self, Action, Context};
use crate::tui::model::Model;
use crate::tui::model::agents::{self, AgentList};
use crate::tui::model::transcript::block::Subagent;

/// Widest list.
const WIDEST: u16 = 110;

/// Draws the list over `body`.
pub(super) fn draw(model: &Model, list: AgentList, theme: &Theme, body: Rect, buf: &mut Buffer) {
    let rows = agents::rows(&model.transcript);
    let at = agents::selected(&list, &rows);
    let wanted = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(2);
    let height = wanted.clamp(4, body.height.max(4)).min(body.height);
    let columns = WIDEST.min(body.width);
    let area = Rect::new(
        body.x + (body.width - columns) / 2,
        body.bottom().saturating_sub(height),
        columns,
        height,
    );
    let running = model.transcript.running_subagents();
    let title = format!("subagents {}/{} · {running} running", at + 1, rows.len());
    let inside = widgets::frame(area, &title, "", theme.accent, theme, buf);
    widgets::frame_hints(area, &hints(area.width), theme, buf);
    let shown = usize::from(inside.height);
    let first = (at + 1).saturating_sub(shown);
    let clocks: Vec<String> = rows
        .iter()
        .map(|row| agents::agent_of(&model.transcript, row.block))
        .map(|agent| agent.map_or_else(String::new, |agent| clock(model, agent)))
        .collect();
    let clock_room =
        clocks.iter().skip(first).take(shown).map(|c| width::cell_width(c)).max().unwrap_or(0);
    // Names of all depths end at one column, and the clocks behind them.
    let named = (usize::from(inside.width).saturating_sub(2) * 2 / 5).max(10);
    for (y, (i, row)) in (inside.y..inside.bottom()).zip(rows.iter().enumerate().skip(first)) {
        let Some(agent) = agents::agent_of(&model.transcript, row.block) else { continue };
        let base = if i == at { Some(theme.selected) } else { None };
        if let Some(style) = base {
            buf.set_string(inside.x, y, " ".repeat(usize::from(inside.width)), style);
        }
        let style = |own: Style| base.unwrap_or(own);
        let (mark, colour) = mark(agent, theme);
        let indent = "  ".repeat(row.depth.min(4));
        let doing = doing(model, agent, row.block, theme);
        let name = name(agent);
        let name_room = named.saturating_sub(indent.len()).max(6);
        let clock = clocks.get(i).map_or("", String::as_str);
        let line = Line::from(vec![
            Span::styled(format!("{indent}{mark} "), style(colour)),
            Span::styled(width::fit(&name, name_room, "…"), style(theme.text)),
            Span::styled(format!(" {clock:>clock_room$} "), style(theme.dim)),
            Span::styled(doing, style(theme.dim)),
        ]);
        widgets::put_line(buf, inside.x, y, inside.width, &line);
    }
}

fn hints(columns: u16) -> Vec<String> {
    let key = |action| {
        keymap::hint(Context::Agents, action).map(|key| key.to_string()).unwrap_or_default()
    };
    // On a phone the key that closes is worth more than a word for Enter.
    let opens = if columns < 50 { "" } else { " opens" };
    vec![
        format!("{}{opens}", key(Action::Accept)),
        format!("{} cancels", key(Action::CancelAgent)),
        format!("{} closes", key(Action::Close)),
    ]
}

fn mark<'a>(agent: &Subagent, theme: &'a Theme) -> (&'a str, Style) {
    if agent.running {
        (theme.glyphs.doing, theme.running)
    } else if agent.failure.is_some() {
        (theme.glyphs.failed, theme.error)
    } else {
        (theme.glyphs.done, theme.success)
    }
}

fn name(agent: &Subagent) -> String {
    let name = if agent.title.is_empty() { &agent.session_id } else { &agent.title };
    name.replace('\n', " ")
}

fn clock(model: &Model, agent: &Subagent) -> String {
    let until = agent.ended_ms.unwrap_or(model.now_ms);
    status::clock(until.saturating_sub(agent.started_ms))
}

/// What it does now, or how it ended.
fn doing(
    model: &Model,
    agent: &Subagent,
    block: crate::tui::model::transcript::block::BlockId,
    theme: &Theme,
) -> String {
    if let Some(failure) = &agent.failure {
        return failure.replace('\n', " ");
    }
    let last = model.transcript.below(Some(block)).last();
    last.and_then(|id| model.transcript.block(*id))
        .map(|last| summary_of(last, &model.transcript, theme))
        .unwrap_or_default()
}

/// Draws the way from the conversation to the subagent that is shown, and the keys.
pub(super) fn way(model: &Model, theme: &Theme, area: Rect, buf: &mut Buffer) {
    let hints = way_hints(model, usize::from(area.width));
    let inmost = model.path.last().and_then(|id| agents::agent_of(&model.transcript, *id));
    let state = inmost.map_or_else(String::new, |agent| match (&agent.failure, agent.running) {
        (_, true) => format!(" · {}", clock(model, agent)),
        (Some(_), _) => " · failed".to_owned(),
        (None, _) => " · done".to_owned(),
    });
    // The way is cut, not the key that leads back: what the names leave is the rule's own ends,
    // the root, an arrow each, the state and the keys.
    let steps = model.path.len().max(1);
    let ends = width::cell_width(&state) + width::cell_width(&hints);
    let room = |root: usize, steps: usize| {
        usize::from(area.width).saturating_sub(8 + root + 3 * steps + ends) / steps
    };
    // Where not even a word of each name fits, only the inmost is named.
    let (root, skipped) = if room(4, steps) < 6 { ("…", steps - 1) } else { ("main", 0) };
    let each = room(width::cell_width(root), steps - skipped).max(6);
    let mut left = vec![Span::styled(root, theme.dim)];
    for (i, id) in model.path.iter().enumerate().skip(skipped) {
        let Some(agent) = agents::agent_of(&model.transcript, *id) else { continue };
        let style = if i + 1 == steps { theme.accent } else { theme.dim };
        left.push(Span::styled(" › ", theme.dim));
        left.push(Span::styled(width::truncate(&name(agent), each, "…"), style));
    }
    left.push(Span::styled(state, theme.dim));
    widgets::rule(area, left, vec![Span::styled(hints, theme.dim)], theme, buf);
}

fn way_hints(model: &Model, columns: usize) -> String {
    let key = |action| {
        keymap::hint(Context::Global, action).map(|key| key.to_string()).unwrap_or_default()
    };
    let back = format!("{} back", key(Action::Interrupt));
    let shown = model.path.last().and_then(|id| agents::agent_of(&model.transcript, *id));
    if shown.is_some_and(|agent| agent.running && agent.cancellable) {
        let both = format!("{back} · {} cancels it", key(Action::CancelAgent));
        if columns > 60 {
            return both;
        }
    }
    back
}
