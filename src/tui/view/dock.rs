//! The dock: the steps of the newest plan, in sight above the composer while any is left to do.
//!
//! Folded it is one row: how far, and what is being done. Unfolded it shows the steps around that
//! one. Drawn from the transcript's plan; must not change it.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::transcript::{one_line, step_look};
use super::{widgets, width};
use crate::tui::keymap::{self, Action, Context};
use crate::tui::model::Model;
use crate::tui::model::transcript::block::{PlanEntry, StepStatus};

/// Steps that the dock shows at most.
const MOST_STEPS: usize = 8;

/// The steps of the newest plan, while any is left to do.
fn steps(model: &Model) -> Option<&[PlanEntry]> {
    let (_, plan) = model.transcript.latest_plan()?;
    let open = plan.entries.iter().any(|entry| entry.status != StepStatus::Completed);
    (open && !plan.removed).then_some(plan.entries.as_slice())
}

/// Rows that the dock takes of a screen so high.
pub(super) fn height(model: &Model, screen: Rect) -> u16 {
    let Some(steps) = steps(model) else { return 0 };
    // On a low screen, what is asked needs every row.
    if screen.height < 12 || (screen.height < 16 && !model.asks.is_empty()) {
        return 0;
    }
    let most = MOST_STEPS.min(usize::from(screen.height) / 4);
    let shown = if model.dock_open { steps.len().min(most) } else { 0 };
    u16::try_from(shown).unwrap_or(0) + 1
}

/// Draws the dock.
pub(super) fn draw(model: &Model, theme: &Theme, area: Rect, buf: &mut Buffer) {
    let Some(steps) = steps(model).filter(|_| area.height > 0) else { return };
    let shown = usize::from(area.height - 1);
    // The step under way stays in sight, with one done before it.
    let now = current(steps);
    let first = now.saturating_sub(1).min(steps.len().saturating_sub(shown));
    header(model, steps, first..first + shown, theme, Rect { height: 1, ..area }, buf);
    for (y, entry) in (area.y + 1..area.bottom()).zip(steps.iter().skip(first)) {
        let (sign, sign_style, style) = step_look(entry, theme);
        let mut text = one_line(&entry.content);
        let room = usize::from(area.width).saturating_sub(5);
        text = width::truncate(&text, room, theme.glyphs.ellipsis);
        let line = Line::from_iter([
            Span::styled(format!("  {sign} "), sign_style),
            Span::styled(text, style),
        ]);
        widgets::row(Rect { y, height: 1, ..area }, &line, buf);
    }
}

/// The step under way, else the first that is not done.
fn current(steps: &[PlanEntry]) -> usize {
    let doing = steps.iter().position(|step| step.status == StepStatus::InProgress);
    let next = || steps.iter().position(|step| step.status != StepStatus::Completed);
    doing.or_else(next).unwrap_or_default()
}

/// `▸ Plan 2/5 · what is being done`, and the key that folds and unfolds.
fn header(
    model: &Model,
    steps: &[PlanEntry],
    seen: Range<usize>,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) {
    let done = steps.iter().filter(|step| step.status == StepStatus::Completed).count();
    let (mark, what) = if model.dock_open {
        (theme.glyphs.unfolded, "folds")
    } else {
        (theme.glyphs.folded, "unfolds")
    };
    let key = keymap::hint(Context::Global, Action::ToggleDock).map(|key| key.to_string());
    let hint = format!(" {} {what} ", key.unwrap_or_default());
    let lead = format!("{mark} ");
    let count = format!("Plan {done}/{}", steps.len());
    let mut room = usize::from(area.width).saturating_sub(width::cell_width(&count) + 3);
    // The hint gives way to what is being done.
    let hint = if room >= 40 { hint } else { String::new() };
    room = room.saturating_sub(width::cell_width(&hint));
    let mut spans = vec![Span::styled(lead, theme.accent), Span::styled(count, theme.title)];
    if !model.dock_open
        && let Some(step) = steps.get(current(steps))
    {
        let text = format!(" {} {}", theme.glyphs.dot, one_line(&step.content));
        spans.push(Span::styled(width::truncate(&text, room, theme.glyphs.ellipsis), theme.dim));
    }
    if model.dock_open && seen.len() < steps.len() {
        let text = format!(" {} steps {} to {}", theme.glyphs.dot, seen.start + 1, seen.end);
        spans.push(Span::styled(text, theme.dim));
    }
    let used: usize = spans.iter().map(|span| width::cell_width(&span.content)).sum();
    let gap = usize::from(area.width).saturating_sub(used + width::cell_width(&hint));
    spans.push(Span::styled(" ".repeat(gap), Style::new()));
    spans.push(Span::styled(hint, theme.dim));
    widgets::row(area, &Line::from(spans), buf);
}
