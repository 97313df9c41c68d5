//! A form: what the agent says above (a plan, as markdown), the fields below, always in sight.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::highlight::Highlighter;
use super::paper::Paper;
use super::theme::Theme;
use super::transcript::TranscriptView;
use super::{markdown, widgets, width};
use crate::tui::model::form::{Field, FieldKind, Form, FormRow};
use crate::tui::model::permission::BodyPart;
use crate::tui::model::{Ask, Body, Model};

/// Lines of the fields, which of them has the focus, and where the caret is in it.
struct Fields {
    lines: Vec<Line<'static>>,
    focus: usize,
    caret: Option<usize>,
}

/// Rows that a confirmation needs.
pub(super) fn height(
    form: &Form,
    columns: u16,
    is_tiny: bool,
    theme: &Theme,
    view: &mut TranscriptView,
) -> u16 {
    let sides = if is_tiny { 0 } else { 4 };
    let (message, _) = message(form, columns.saturating_sub(sides).max(2), theme, view);
    // An empty row where there is room, two buttons, the frame.
    u16::try_from(message.len() + 4 + usize::from(!is_tiny)).unwrap_or(u16::MAX)
}

fn message<'a>(
    form: &Form,
    columns: u16,
    theme: &Theme,
    view: &'a mut TranscriptView,
) -> (&'a mut Paper, &'a mut Highlighter) {
    let body = [BodyPart::Text(form.message.clone())];
    view.asked(&body, usize::from(columns), theme, |paper, code| {
        paper.add_markdown(&form.message, theme, code);
    })
}

/// Draws the form; returns the caret's cell when a text has the focus.
pub(super) fn draw(
    model: &Model,
    ask: &Ask,
    form: &Form,
    view: &mut TranscriptView,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) -> (Option<(u16, u16)>, Body) {
    let armed = model.is_armed();
    let count = model.asks.len();
    let title = if count > 1 { format!("question 1 of {count}") } else { "question".to_owned() };
    let style = if armed { theme.accent } else { theme.border };
    let inside = widgets::frame(area, &title, "", style, theme, buf);
    let fields = field_lines(form, armed, inside.width, theme);
    let (message, code) = message(form, inside.width, theme, view);
    let wanted = u16::try_from(fields.lines.len()).unwrap_or(u16::MAX);
    let half = (inside.height / 2).max(3).min(inside.height);
    let message_rows = u16::try_from(message.len()).unwrap_or(u16::MAX);
    // Where every row counts nothing sets the fields apart, and one row is the question's.
    let is_tiny = widgets::is_tiny(buf.area);
    let (gap_rows, half) = if is_tiny { (0, inside.height - inside.height / 3) } else { (1, half) };
    let field_rows =
        wanted.min(inside.height.saturating_sub(message_rows.saturating_add(gap_rows)).max(half));
    let text_rows = inside.height.saturating_sub(field_rows + gap_rows).min(message_rows);
    let text_area = Rect { height: text_rows, ..inside };
    let most = message.len().saturating_sub(usize::from(text_rows));
    let first = ask.scroll.min(most);
    let seen = first..first + usize::from(text_rows);
    let below = message.len().saturating_sub(seen.end);
    widgets::rows(text_area, message.rows(seen, theme, code), buf);
    let gap = inside.y + text_rows;
    if is_tiny {
        let note = if below > 0 { format!("PgDn: {below}") } else { String::new() };
        widgets::frame_head(area, &note, theme, buf);
    } else if gap < inside.bottom() {
        let text = if below > 0 { format!("PgDn: {below} more lines") } else { String::new() };
        widgets::put(buf, inside.x, gap, &text, inside.width, theme.dim);
    }
    let top = (gap + gap_rows).min(inside.bottom());
    let field_area = Rect { y: top, height: field_rows.min(inside.bottom() - top), ..inside };
    let shown = usize::from(field_area.height);
    let start =
        (fields.focus + 2).saturating_sub(shown).min(fields.lines.len().saturating_sub(shown));
    let under = widgets::lines(field_area, &fields.lines, start, buf);
    let unseen = widgets::out_of_sight(start, under, theme);
    let hints = hints(area, form, armed, most);
    widgets::frame_foot(area, &hints, &unseen, theme, buf);
    let caret = fields.focus.checked_sub(start).filter(|r| *r < shown).zip(fields.caret).map(
        |(row, column)| {
            let most = field_area.width.saturating_sub(1);
            let column = u16::try_from(column).unwrap_or(0).min(most);
            (field_area.x + column, field_area.y + u16::try_from(row).unwrap_or(0))
        },
    );
    (caret, Body { most, rows: usize::from(text_rows) })
}

/// What can be pressed where the focus is.
fn hints(area: Rect, form: &Form, armed: bool, most: usize) -> Vec<String> {
    let narrow = area.width < 50;
    let mut hints = if armed && area.width < 24 {
        vec![match form.focused() {
            FormRow::Option(f, _)
                if matches!(form.fields.get(f).map(|f| &f.kind), Some(FieldKind::Many { .. })) =>
            {
                "Space"
            }
            _ => "Enter",
        }]
    } else if armed {
        match form.focused() {
            FormRow::Option(f, _) => match form.fields.get(f).map(|f| &f.kind) {
                Some(FieldKind::Many { .. }) => vec!["Space marks", "Enter goes on"],
                _ if narrow => vec!["Enter chooses", "Esc cancels"],
                _ => vec!["Enter or a number chooses"],
            },
            FormRow::Input(f) => match form.fields.get(f).map(|f| &f.kind) {
                Some(FieldKind::Switch(_)) => vec!["Space turns it", "Enter goes on"],
                _ if narrow => vec!["Enter goes on", "Esc cancels"],
                _ => vec!["type", "Enter goes on", "Ctrl-J new line"],
            },
            FormRow::Submit if form.is_confirmation() && narrow => {
                vec!["Enter confirms", "Esc cancels"]
            }
            FormRow::Submit if form.is_confirmation() => vec!["Enter confirms"],
            FormRow::Submit if narrow => vec!["Enter sends", "Esc cancels"],
            FormRow::Submit => vec!["Enter sends the answers"],
            FormRow::Decline if narrow => vec!["Enter declines", "Esc cancels"],
            FormRow::Decline if form.is_confirmation() => vec!["Enter declines"],
            FormRow::Decline => vec!["Enter declines to answer"],
        }
    } else {
        vec!["keys count after a moment without typing…"]
    };
    if armed && !narrow {
        hints.extend(["↑↓ Tab move", "Esc cancels"]);
    }
    if armed && most > 0 {
        hints.push("PgUp PgDn scroll");
    }
    hints.into_iter().map(str::to_owned).collect()
}

fn field_lines(form: &Form, armed: bool, columns: u16, theme: &Theme) -> Fields {
    let mut out = Fields { lines: Vec::new(), focus: 0, caret: None };
    let focused = armed.then(|| form.focused());
    for (i, field) in form.fields.iter().enumerate() {
        heading(form, i, field, columns, theme, &mut out);
        match &field.kind {
            FieldKind::One { options, chosen } => {
                for (o, option) in options.iter().enumerate() {
                    let mark = if *chosen == Some(o) { "(•)" } else { "( )" };
                    let row = focused == Some(FormRow::Option(i, o));
                    option_line(
                        o,
                        mark,
                        &option.title,
                        &option.description,
                        row,
                        columns,
                        theme,
                        &mut out,
                    );
                }
            }
            FieldKind::Many { options, marked, .. } => {
                for (o, option) in options.iter().enumerate() {
                    let mark = if marked.get(o) == Some(&true) { "[x]" } else { "[ ]" };
                    let row = focused == Some(FormRow::Option(i, o));
                    option_line(
                        o,
                        mark,
                        &option.title,
                        &option.description,
                        row,
                        columns,
                        theme,
                        &mut out,
                    );
                }
            }
            FieldKind::Switch(on) => {
                let mark = if on.unwrap_or(false) { "[x] yes" } else { "[ ] no" };
                let row = focused == Some(FormRow::Input(i));
                if row {
                    out.focus = out.lines.len();
                }
                out.lines.push(Line::styled(format!("  {mark}"), row_style(row, theme)));
            }
            FieldKind::Text { draft, .. } | FieldKind::Number { draft, .. } => {
                let row = focused == Some(FormRow::Input(i));
                text_lines(draft, row, columns, theme, &mut out);
            }
        }
    }
    let send = if form.is_confirmation() { "Confirm" } else { "Submit" };
    let buttons =
        [(FormRow::Submit, send, theme.success), (FormRow::Decline, "Decline", theme.error)];
    for (row, label, style) in buttons {
        let has_focus = focused == Some(row);
        if has_focus {
            out.focus = out.lines.len();
        }
        let mark = if has_focus { theme.glyphs.folded } else { " " };
        let style = if has_focus { style.patch(theme.selected) } else { style };
        out.lines.push(Line::styled(format!("{mark} {label}"), style));
    }
    out
}

fn row_style(focused: bool, theme: &Theme) -> Style {
    if focused { theme.selected } else { theme.text }
}

fn heading(form: &Form, i: usize, field: &Field, columns: u16, theme: &Theme, out: &mut Fields) {
    let needed = if field.required { " *" } else { "" };
    let limits = limits(&field.kind);
    let mut spans = vec![
        Span::styled(field.title.clone(), theme.title),
        Span::styled(needed, theme.warning),
        Span::styled(limits, theme.dim),
    ];
    if let Some(problem) = form.problem.as_ref().filter(|p| p.field == i) {
        spans.push(Span::styled(format!("  {}", problem.message), theme.error));
    }
    // The title is often the question itself: all of it is shown.
    out.lines.extend(markdown::wrap_line(&Line::from(spans), usize::from(columns)));
    if !field.description.is_empty() {
        out.lines.extend(widgets::wrapped(&field.description, columns, theme.dim));
    }
}

fn limits(kind: &FieldKind) -> String {
    let range = |min: Option<String>, max: Option<String>| match (min, max) {
        (Some(a), Some(b)) => format!("  {a} to {b}"),
        (Some(a), None) => format!("  at least {a}"),
        (None, Some(b)) => format!("  at most {b}"),
        (None, None) => String::new(),
    };
    let count = |n: &Option<u64>| n.map(|n| n.to_string());
    match kind {
        FieldKind::Many { min, max, .. } => range(count(min), count(max)),
        FieldKind::Number { min, max, .. } => {
            range(min.map(|n| n.to_string()), max.map(|n| n.to_string()))
        }
        FieldKind::Text { max: Some(max), .. } => format!("  at most {max} characters"),
        _ => String::new(),
    }
}

#[expect(clippy::too_many_arguments, reason = "one line of a form, used twice just above")]
fn option_line(
    index: usize,
    mark: &str,
    title: &str,
    description: &str,
    focused: bool,
    columns: u16,
    theme: &Theme,
    out: &mut Fields,
) {
    if focused {
        out.focus = out.lines.len();
    }
    let number = if index < 9 { format!("{}", index + 1) } else { " ".to_owned() };
    let head = format!("  {mark} {number} ");
    let room = usize::from(columns).saturating_sub(width::cell_width(&head)).max(8);
    let mut rows = width::wrap(title, room).into_iter();
    let first = rows.next().unwrap_or_default();
    let style = row_style(focused, theme);
    let indent = " ".repeat(width::cell_width(&head));
    out.lines
        .push(Line::from(vec![Span::styled(head, style), Span::styled(first.to_owned(), style)]));
    for row in rows {
        out.lines.push(Line::styled(format!("{indent}{row}"), style));
    }
    if !description.is_empty() {
        for row in width::wrap(description, room) {
            out.lines.push(Line::styled(format!("{indent}{row}"), theme.dim));
        }
    }
}

fn text_lines(
    draft: &crate::tui::model::composer::Composer,
    focused: bool,
    columns: u16,
    theme: &Theme,
    out: &mut Fields,
) {
    let room = usize::from(columns).saturating_sub(5).max(4);
    let rows = draft.rows(room);
    let caret = draft.caret_in(&rows);
    let mark = if focused { theme.glyphs.folded } else { " " };
    for (i, row) in rows.iter().enumerate() {
        if focused && i == caret.row {
            out.focus = out.lines.len();
            out.caret = Some(4 + caret.column);
        }
        let text = draft.text().get(row.bytes.clone()).unwrap_or_default().replace('\t', "    ");
        let lead = if i == 0 { format!("  {mark} ") } else { "    ".to_owned() };
        let empty = draft.is_empty() && !focused;
        let shown = if empty { "…".to_owned() } else { text };
        out.lines.push(Line::from(vec![
            Span::styled(lead, theme.accent),
            Span::styled(shown, if empty { theme.dim } else { theme.text }),
        ]));
    }
}
