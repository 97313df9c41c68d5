//! A plan to review: the whole pane is the plan, with one row of answers below it and, when
//! something should change, the words that go back.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::transcript::TranscriptView;
use super::{widgets, width};
use crate::tui::model::composer::Composer;
use crate::tui::model::permission::BodyPart;
use crate::tui::model::plan::{PlanFocus, PlanReview};
use crate::tui::model::{Ask, Body, Model};

/// Most rows of the note that are shown.
const NOTE_ROWS: usize = 5;
/// Columns left of the note.
const NOTE_MARK: u16 = 2;

/// Draws the plan; returns the caret's cell while a note is written, and how far the plan scrolls.
pub(super) fn draw(
    model: &Model,
    ask: &Ask,
    plan: &PlanReview,
    view: &mut TranscriptView,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) -> (Option<(u16, u16)>, Body) {
    let armed = model.is_armed();
    let style = if armed { theme.accent } else { theme.border };
    let inside = widgets::frame(area, &title(model, plan), "", style, theme, buf);
    let note = plan.note.as_ref().filter(|_| plan.focus == PlanFocus::Note || plan.has_note());
    let columns = usize::from(inside.width.saturating_sub(NOTE_MARK + 1).max(2));
    let note_rows = note.map_or(0, |n| n.rows(columns).len().clamp(1, NOTE_ROWS));
    // Where every row counts the words have one before the plan has.
    let kept = if widgets::is_tiny(buf.area) { 2 } else { 3 };
    let note_rows = u16::try_from(note_rows).unwrap_or(1).min(inside.height.saturating_sub(kept));
    // Below the plan: a rule, the words, what will happen, the answers.
    let says = u16::from(note.is_some() && inside.height > 6);
    let below = (2 + note_rows + says).min(inside.height);
    let text_rows = inside.height - below;
    let body = [BodyPart::Text(plan.text.clone())];
    let (lines, code) = view.asked(&body, usize::from(inside.width), theme, |paper, code| {
        paper.add_markdown(&plan.text, theme, code);
    });
    let most = lines.len().saturating_sub(usize::from(text_rows));
    let first = ask.scroll.min(most);
    let all = lines.len();
    let seen = first..first + usize::from(text_rows);
    widgets::rows(Rect { height: text_rows, ..inside }, lines.rows(seen, theme, code), buf);
    let mut y = inside.y + text_rows;
    let reading = armed && plan.focus == PlanFocus::Text;
    rule(inside, y, first, usize::from(text_rows), all, reading, theme, buf);
    y += 1;
    if says > 0 {
        let (text, style) = outcome(plan, theme);
        widgets::put(buf, inside.x, y, text, inside.width, style);
        y += 1;
    }
    let mut caret = None;
    if let Some(note) = note {
        let at = Rect { y, height: note_rows, ..inside };
        let cell = draw_note(note, columns, at, theme, buf);
        caret = (plan.focus == PlanFocus::Note).then_some(cell);
        y += note_rows;
    }
    if y < inside.bottom() {
        answers(plan, armed, Rect { y, height: 1, ..inside }, theme, buf);
    }
    widgets::frame_hints(area, &hints(plan, armed, most), theme, buf);
    (caret, Body { most, rows: usize::from(text_rows) })
}

fn title(model: &Model, plan: &PlanReview) -> String {
    let count = model.asks.len();
    let place = if count > 1 { format!(" 1 of {count}") } else { String::new() };
    let heading = if plan.heading.is_empty() { "for approval" } else { plan.heading.as_str() };
    format!("plan{place}: {heading}")
}

/// The rule between the plan and its answers; it says how much of the plan is in sight.
#[expect(clippy::too_many_arguments, reason = "one row of the pane, drawn at one place")]
fn rule(
    inside: Rect,
    y: u16,
    first: usize,
    rows: usize,
    all: usize,
    reading: bool,
    theme: &Theme,
    buf: &mut Buffer,
) {
    let across = if theme.spec.utf8 { "─" } else { "-" };
    let style = if reading { theme.accent } else { theme.border };
    buf.set_string(inside.x, y, across.repeat(usize::from(inside.width)), style);
    let end = (first + rows).min(all);
    let text = if end < all {
        format!(" {} {} more lines ", theme.glyphs.down, all - end)
    } else if first > 0 {
        " end of the plan ".to_owned()
    } else {
        return;
    };
    let cells = u16::try_from(width::cell_width(&text)).unwrap_or(0);
    if cells + 2 < inside.width {
        buf.set_string(inside.right() - cells - 1, y, text, theme.dim);
    }
}

/// What will become of the words.
fn outcome(plan: &PlanReview, theme: &Theme) -> (&'static str, Style) {
    match plan.focus {
        PlanFocus::Note if plan.note_missing => ("write what should change first", theme.warning),
        PlanFocus::Note => ("What should change? The plan goes back with these words:", theme.dim),
        PlanFocus::Approve => ("Approving leaves these words out:", theme.warning),
        PlanFocus::Reject => ("Rejecting without them leaves these words out:", theme.warning),
        PlanFocus::Text => ("Not sent yet (f goes on writing):", theme.dim),
    }
}

fn draw_note(
    note: &Composer,
    columns: usize,
    area: Rect,
    theme: &Theme,
    buf: &mut Buffer,
) -> (u16, u16) {
    let rows = note.rows(columns);
    let caret = note.caret_in(&rows);
    let shown = usize::from(area.height.max(1));
    let first = (caret.row + 1).saturating_sub(shown);
    let mark = if theme.spec.utf8 { "❯" } else { ">" };
    widgets::put(buf, area.x, area.y, mark, NOTE_MARK, theme.accent);
    for (y, row) in (area.y..area.bottom()).zip(rows.iter().skip(first)) {
        let text = note.text().get(row.bytes.clone()).unwrap_or_default().replace('\t', "    ");
        let room = area.width.saturating_sub(NOTE_MARK);
        widgets::put(buf, area.x + NOTE_MARK, y, &text, room, theme.text);
    }
    let row = u16::try_from(caret.row - first).unwrap_or(0);
    let column = u16::try_from(caret.column).unwrap_or(0);
    (area.x + NOTE_MARK + column, area.y + row)
}

/// The row of answers; the key that moves to each stands before it.
fn answers(plan: &PlanReview, armed: bool, area: Rect, theme: &Theme, buf: &mut Buffer) {
    let [approve, reject] = plan.labels.each_ref().map(String::as_str);
    let long = [("a", approve), ("r", reject), ("f", "Reject with feedback")];
    let short = [("a", "Approve"), ("r", "Reject"), ("f", "Feedback")];
    let brief = [("a", "Approve"), ("r", "Reject"), ("f", "Note")];
    let tiny = [("a", "Yes"), ("r", "No"), ("f", "Note")];
    // Every answer is in sight, however narrow the pane is.
    let cells = |all: &[(&str, &str); 3], apart: usize| -> usize {
        all.iter().map(|(_, label)| width::cell_width(label) + 3).sum::<usize>() + 2 * apart
    };
    let sets = [(long, 2), (short, 2), (brief, 1), (tiny, 1)];
    let fits = sets.iter().find(|(set, apart)| cells(set, *apart) <= usize::from(area.width));
    let (labels, apart) = *fits.unwrap_or(&(tiny, 1));
    let places = [
        (PlanFocus::Approve, theme.success),
        (PlanFocus::Reject, theme.error),
        (PlanFocus::Note, theme.accent),
    ];
    let mut spans = Vec::new();
    for ((key, label), (focus, color)) in labels.into_iter().zip(places) {
        if focus == PlanFocus::Note && plan.note.is_none() {
            continue;
        }
        let has_focus = armed && plan.focus == focus;
        let (mark, style) = match (has_focus, armed) {
            (true, _) => (theme.glyphs.folded, color.patch(theme.selected)),
            (false, true) => (" ", color),
            (false, false) => (" ", theme.dim),
        };
        spans
            .push(Span::styled(format!("{mark}{key} "), if has_focus { style } else { theme.dim }));
        spans.push(Span::styled(label.to_owned(), style));
        spans.push(Span::raw(" ".repeat(apart)));
    }
    widgets::put_line(buf, area.x, area.y, area.width, &Line::from(spans));
}

/// What can be pressed where the focus is.
fn hints(plan: &PlanReview, armed: bool, most: usize) -> Vec<String> {
    if !armed {
        return vec!["keys count after a moment without typing…".to_owned()];
    }
    let hints: &[&str] = match plan.focus {
        PlanFocus::Text if most > 0 => &["j k PgDn scroll", "Esc cancels", "Tab to the answers"],
        PlanFocus::Text => &["Tab to the answers", "Esc cancels"],
        PlanFocus::Approve => &["Enter approves", "Esc cancels", "Tab moves on"],
        PlanFocus::Reject => &["Enter rejects", "Esc cancels", "Tab moves on"],
        PlanFocus::Note => &["Enter sends it back", "Esc to the plan", "Ctrl-J new line"],
    };
    hints.iter().map(|h| (*h).to_owned()).collect()
}
