//! The lines around the composer: what is going on, hints, the status line.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use super::theme::Theme;
use super::transcript::TranscriptView;
use super::{hints, widgets, width};
use crate::tui::keymap::{self, Action, Context};
use crate::tui::model::status::{ConfigOption, Usage};
use crate::tui::model::{AskKind, Model, Phase, Turn};

/// The rule above the composer: what the agent is doing; what is new below.
pub(super) fn top_rule(
    model: &Model,
    view: &TranscriptView,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) {
    let left = activity(model, theme);
    let mut right = Vec::new();
    let below = view.new_below();
    if !view.is_following() {
        let what = if below > 0 {
            format!("{} {below} new", theme.glyphs.down)
        } else {
            "scrolled up".to_owned()
        };
        right.push(Span::styled(what, theme.accent));
        right.push(Span::styled(" · Ctrl-End follows", theme.dim));
    } else if !model.session.title.is_empty() {
        let room = usize::from(area.width) / 2;
        right.push(Span::styled(width::truncate(&model.session.title, room, "…"), theme.dim));
    }
    widgets::rule(area, left, right, theme, buf);
}

fn activity(model: &Model, theme: &Theme) -> Vec<Span<'static>> {
    if let Some(search) = &model.search {
        let found = match search.position {
            Some((at, of)) if of > 0 => format!("{at}/{of}"),
            _ if search.query.is_empty() => "type to search".to_owned(),
            _ => "nothing found".to_owned(),
        };
        // What lies on disk is read beside; a card in full (Ctrl-T) shows and searches it.
        let found = match search.on_disk {
            Some(more) if more > 0 => format!("{found} + {more} in long outputs on disk"),
            _ => found,
        };
        return vec![
            Span::styled(format!("search: {}", search.query), theme.accent),
            Span::styled(format!("  {found} · Enter next · Esc ends"), theme.dim),
        ];
    }
    if model.editing.is_some() {
        return vec![
            Span::styled("in the agent's queue", theme.accent),
            Span::styled(" · Enter saves · Esc no", theme.dim),
        ];
    }
    let spin = |text: String, style: Style| {
        let frame = if model.start.reduced_motion {
            theme.glyphs.doing
        } else {
            theme.spinner(model.now_ms)
        };
        vec![Span::styled(format!("{frame} "), theme.running), Span::styled(text, style)]
    };
    let elapsed = |since: u64| clock(model.now_ms.saturating_sub(since));
    match (&model.phase, model.turn) {
        (Phase::Starting, _) => spin(format!("starting {}", model.start.agent_label), theme.dim),
        (Phase::Opening, _) => spin("opening the session".to_owned(), theme.dim),
        (Phase::Down(trouble), _) => vec![Span::styled(trouble.title.clone(), theme.error)],
        (Phase::NeedsLogin(message), _) => {
            vec![Span::styled(format!("log in first: {message}"), theme.warning)]
        }
        (Phase::Ready, Turn::Running { since_ms }) => {
            if let Some(ask) = model.asks.first() {
                let what = match ask.kind {
                    AskKind::Permission(_) => "waiting for your permission",
                    AskKind::Form(_) => "waiting for your answer",
                    AskKind::Plan(_) => "a plan waits for your approval",
                };
                return vec![Span::styled(format!("{} {what}", theme.glyphs.doing), theme.warning)];
            }
            let mut spans = spin(format!("working {}", elapsed(since_ms)), theme.text);
            spans.extend(subagents(model, theme));
            if model.would_stop() {
                spans.push(Span::styled(" · Esc stops", theme.dim));
            }
            spans
        }
        (Phase::Ready, Turn::Cancelling { asked_ms, .. }) => {
            let late = model.now_ms.saturating_sub(asked_ms) > 5_000;
            let more = if late { " · /restart ends the agent" } else { "" };
            spin(format!("cancelling… {}{more}", elapsed(asked_ms)), theme.warning)
        }
        // Work that goes on beside the turns.
        (Phase::Ready, Turn::Idle) => subagents(model, theme),
    }
}

/// How many subagents work, and the key that lists them.
fn subagents(model: &Model, theme: &Theme) -> Vec<Span<'static>> {
    let count = model.transcript.running_subagents();
    if count == 0 {
        return Vec::new();
    }
    let gap = if model.turn == Turn::Idle { "" } else { " · " };
    let s = if count == 1 { "" } else { "s" };
    let key = keymap::hint(Context::Global, Action::Agents).map(|key| key.to_string());
    vec![
        Span::styled(format!("{gap}{count} subagent{s}"), theme.running),
        Span::styled(format!(" {}", key.unwrap_or_default()), theme.dim),
    ]
}

/// Seconds as `7s`, `1m 05s`, `1h 02m`.
pub(super) fn clock(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m {:02}s", s / 60, s % 60),
        _ => format!("{}h {:02}m", s / 3600, s / 60 % 60),
    }
}

/// The rule below the composer: a message, or what can be pressed now.
pub(super) fn bottom_rule(model: &Model, theme: &Theme, area: Rect, buf: &mut Buffer) {
    let room = usize::from(area.width.saturating_sub(6));
    widgets::rule(area, message_or_hints(model, room, theme), Vec::new(), theme, buf);
}

fn message_or_hints(model: &Model, room: usize, theme: &Theme) -> Vec<Span<'static>> {
    if let Some(message) = message(model) {
        return vec![Span::styled(message, theme.warning)];
    }
    vec![Span::styled(hints::now(model, room), theme.dim)]
}

/// What is to be read for a moment.
pub(super) fn message(model: &Model) -> Option<String> {
    if model.quit_until.is_some() {
        return Some("Ctrl-C again quits".to_owned());
    }
    model.toast.as_ref().map(|(text, _)| text.clone())
}

/// The status line: model, mode, directory; how full the context is.
pub(super) fn line(model: &Model, theme: &Theme, area: Rect, buf: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let right = usage(model.session.usage.as_ref(), theme);
    let right_width: usize = right.iter().map(|s| width::cell_width(&s.content)).sum();
    let apart = if right_width > 0 { 3 } else { 2 };
    let mut room = usize::from(area.width).saturating_sub(right_width + apart);
    let mut x = area.x + 1;
    // On a low screen there is no rule for messages.
    let roomy = buf.area.height >= 16;
    if !roomy && let Some(message) = message(model) {
        widgets::put(buf, x, area.y, &message, u16::try_from(room).unwrap_or(0), theme.warning);
    } else {
        let settings = &model.session.settings;
        let value = |category: &str| settings.of_category(category).map(ConfigOption::current_name);
        let parts = [
            value("model").map(|v| (v, theme.accent)),
            Some(settings.mode_name()).map(|v| (v, theme.text)),
            value("thought_level").map(|v| (v, theme.dim)),
            Some(cwd(model)).map(|v| (v, theme.dim)),
            Some(model.agent.name.clone()).map(|v| (v, theme.dim)),
        ];
        let mut first = true;
        for (text, style) in parts.into_iter().flatten().filter(|(t, _)| !t.is_empty()) {
            let gap = if first { 0 } else { 3 };
            let cells = width::cell_width(&text);
            // The directory is cut at its start, the rest is shown whole or not at all.
            let text = if cells + gap <= room {
                text
            } else if room > gap + 8 {
                width::truncate_start(&text, room - gap, "…")
            } else {
                break;
            };
            if !first {
                x += widgets::put(buf, x, area.y, " · ", 3, theme.dim);
            }
            let used = widgets::put(buf, x, area.y, &text, u16::try_from(room).unwrap_or(0), style);
            x += used;
            room = room.saturating_sub(usize::from(used) + gap);
            first = false;
        }
    }
    let mut x = area.right().saturating_sub(u16::try_from(right_width + 1).unwrap_or(0));
    for span in right {
        x +=
            widgets::put(buf, x, area.y, &span.content, area.right().saturating_sub(x), span.style);
    }
}

fn cwd(model: &Model) -> String {
    let cwd = &model.start.cwd;
    match cwd.strip_prefix(&model.start.home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) if !model.start.home.as_os_str().is_empty() => format!("~/{}", rest.display()),
        _ => cwd.display().to_string(),
    }
}

/// The ring: filled by used over size, coloured by level. Nothing until there is a reading.
fn usage(usage: Option<&Usage>, theme: &Theme) -> Vec<Span<'static>> {
    let Some(percent) = usage.and_then(Usage::percent) else { return Vec::new() };
    let style = match percent {
        0..60 => theme.success,
        60..85 => theme.warning,
        _ => theme.error,
    };
    let ring = if theme.spec.utf8 {
        match percent {
            0..13 => "○",
            13..38 => "◔",
            38..63 => "◑",
            63..88 => "◕",
            _ => "●",
        }
    } else {
        "ctx"
    };
    vec![Span::styled(format!("{ring} "), style), Span::styled(format!("{percent}%"), style)]
}
