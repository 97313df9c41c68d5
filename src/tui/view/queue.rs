//! What is queued: the rows above the composer, and the list in which it is changed. Ours and the
//! agent's are told apart by their words everywhere.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::{widgets, width};
use crate::tui::keymap::{self, Action, Context};
use crate::tui::model::Model;
use crate::tui::model::queue::{Place, QueueList};

/// Widest list.
const WIDEST: u16 = 110;

/// Where a row waits, in a word; and why it does not go on, when it does not.
fn place(model: &Model, row: usize) -> (String, String, bool) {
    match model.queued_at(row) {
        Some(Place::Here(at)) => {
            let held = model.queue.is_held();
            let word = if held { "held" } else { "queued" };
            let text = model.queue.iter().nth(at).unwrap_or_default();
            (format!("{word} {}", at + 1), text.replace('\n', " ⏎ "), held)
        }
        Some(Place::Agent(item)) => {
            let held = model.session.queue.as_ref().is_some_and(|it| !it.auto_drain);
            let word = if held { "held by the agent" } else { "in the agent" };
            let note =
                if item.note.is_empty() { String::new() } else { format!(" ({})", item.note) };
            (format!("{word}{note}"), item.text.replace('\n', " ⏎ "), held)
        }
        None => (String::new(), String::new(), false),
    }
}

/// Draws the rows above the composer, the next one first.
pub(super) fn rows(model: &Model, theme: &Theme, area: Rect, buf: &mut Buffer) {
    let count = model.waiting();
    let more = count.saturating_sub(usize::from(area.height));
    for (row, y) in (area.y..area.bottom()).enumerate() {
        let (what, text, held) = place(model, row);
        let last = y + 1 == area.bottom() && more > 0;
        let text = if last {
            format!("  … and {} more · {}", more + 1, hint("opens the list"))
        } else {
            format!("  {what}: {text}")
        };
        let style = if held { theme.warning } else { theme.dim };
        widgets::put(buf, area.x, y, &text, area.width, style);
    }
}

fn hint(what: &str) -> String {
    let key = keymap::hint(Context::Global, Action::Queue);
    key.map(|key| format!("{key} {what}")).unwrap_or_default()
}

/// Draws the list over `body`.
pub(super) fn draw(model: &Model, list: QueueList, theme: &Theme, body: Rect, buf: &mut Buffer) {
    let count = model.waiting();
    let at = list.selected.min(count.saturating_sub(1));
    let wanted = u16::try_from(count.max(1)).unwrap_or(u16::MAX).saturating_add(2);
    let height = wanted.clamp(4, body.height.max(4)).min(body.height);
    let columns = WIDEST.min(body.width);
    let area = Rect::new(
        body.x + (body.width - columns) / 2,
        body.bottom().saturating_sub(height),
        columns,
        height,
    );
    let mut title = format!("queued: {} here", model.queue.len());
    if let Some(queue) = &model.session.queue {
        let goes = match (&queue.pause, queue.auto_drain) {
            (Some(reason), _) => format!("paused: {reason}"),
            (None, true) => "goes on by itself".to_owned(),
            (None, false) => "waits for you".to_owned(),
        };
        title = format!("{title}, {} in the agent, which {goes}", queue.items.len());
    }
    let inside = widgets::frame(area, &title, "", theme.accent, theme, buf);
    widgets::frame_hints(area, &hints(model, area.width), theme, buf);
    let shown = usize::from(inside.height);
    let first = (at + 1).saturating_sub(shown);
    let places: Vec<_> = (first..count).take(shown).map(|row| (row, place(model, row))).collect();
    let widest = places.iter().map(|(_, (what, ..))| width::cell_width(what)).max().unwrap_or(0);
    let columns = usize::from(inside.width);
    let room = widest.min(if columns < 60 { columns / 2 } else { columns * 3 / 5 }).max(9);
    for (y, (row, (what, text, held))) in (inside.y..inside.bottom()).zip(places) {
        let base = (row == at).then_some(theme.selected);
        if let Some(style) = base {
            buf.set_string(inside.x, y, " ".repeat(usize::from(inside.width)), style);
        }
        let tone = if held { theme.warning } else { theme.dim };
        let line = Line::from(vec![
            Span::styled(width::fit(&what, room, "…"), base.unwrap_or(tone)),
            Span::styled(format!("  {text}"), base.unwrap_or(theme.text)),
        ]);
        widgets::put_line(buf, inside.x, y, inside.width, &line);
    }
    if count == 0 {
        widgets::put(buf, inside.x, inside.y, "nothing waits", inside.width, theme.dim);
    }
}

fn hints(model: &Model, columns: u16) -> Vec<String> {
    if columns < 70 {
        let words: &[&str] = match &model.session.queue {
            Some(queue) if !queue.auto_drain => &["e d s", "a go on", "Esc closes"],
            Some(_) => &["e d s", "a hold", "Esc closes"],
            None => &["e edit", "d del", "s send", "Esc closes"],
        };
        return words.iter().map(|word| (*word).to_owned()).collect();
    }
    let key = |action| {
        keymap::hint(Context::Queue, action).map(|key| key.to_string()).unwrap_or_default()
    };
    let mut hints = vec![
        format!("{} edits", key(Action::EditItem)),
        format!("{} deletes", key(Action::DeleteItem)),
        format!("{} sends now", key(Action::SendNow)),
    ];
    if let Some(queue) = &model.session.queue {
        let to = if queue.auto_drain { "holds the agent's" } else { "lets the agent's go on" };
        hints.push(format!("{} {to}", key(Action::AutoDrain)));
    }
    hints.push(format!("{} closes", key(Action::Close)));
    hints
}
