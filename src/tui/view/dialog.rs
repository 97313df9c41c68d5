//! The permission dialog: the whole of what is asked, every answer the agent offers, and whether
//! the keys count yet.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::theme::Theme;
use super::{diff, widgets};
use crate::tui::model::permission::{BodyPart, OptionKind, Permission, reveal};
use crate::tui::model::{Ask, Model};

/// Longest body that is laid out to measure it; what is longer is scrolled anyway.
const MEASURED_LINES: usize = 200;

/// Rows that the dialog would like.
pub(super) fn height(permission: &Permission, columns: u16) -> u16 {
    let inside = columns.saturating_sub(4).max(2);
    let body = body_lines(permission, inside, &Theme::default()).len().min(MEASURED_LINES);
    let rows = body + permission.options.len().max(1) + 3;
    u16::try_from(rows).unwrap_or(u16::MAX)
}

/// Draws the dialog.
pub(super) fn draw(
    model: &Model,
    ask: &Ask,
    permission: &Permission,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) {
    let armed = model.is_armed();
    let note = if armed {
        "number answers · ↑↓ Enter · Esc cancels · Ctrl-T in full".to_owned()
    } else {
        "keys count after a moment without typing…".to_owned()
    };
    let inside =
        widgets::frame(area, &title(model, ask, permission), &note, theme.warning, theme, buf);
    let options = u16::try_from(permission.options.len().max(1)).unwrap_or(1);
    let options = options.min(inside.height.saturating_sub(1));
    let body_rows = inside.height.saturating_sub(options + 1);
    let body_area = Rect { height: body_rows, ..inside };
    let lines = body_lines(permission, inside.width, theme);
    let most = lines.len().saturating_sub(usize::from(body_rows));
    let first = usize::from(ask.scroll).min(most);
    let below = widgets::lines(body_area, &lines, first, buf);
    let gap = inside.y + body_rows;
    if most > 0 {
        let text = format!("Shift-↑↓ scrolls · {below} more lines below");
        widgets::put(buf, inside.x, gap, &text, inside.width, theme.dim);
    }
    draw_options(permission, armed, theme, Rect { y: gap + 1, height: options, ..inside }, buf);
}

/// What is asked, by whom, and which of how many.
fn title(model: &Model, ask: &Ask, permission: &Permission) -> String {
    let own = model.session.id.as_deref() == Some(ask.session_id.as_str());
    let from = if own || ask.session_id.is_empty() {
        String::new()
    } else {
        match model.session.children.get(&ask.session_id).filter(|t| !t.is_empty()) {
            Some(title) => format!(" (subagent {title})"),
            None => format!(" (session {})", ask.session_id),
        }
    };
    let count = model.asks.len();
    let place = if count > 1 { format!(" 1 of {count}") } else { String::new() };
    format!("permission{place}{from}: {}", reveal(&permission.title).replace('\n', " "))
}

fn draw_options(permission: &Permission, armed: bool, theme: &Theme, area: Rect, buf: &mut Buffer) {
    if permission.options.is_empty() {
        widgets::put(
            buf,
            area.x,
            area.y,
            "no answer is offered: Esc cancels",
            area.width,
            theme.dim,
        );
    }
    // The selected one stays in sight when there are more than fit.
    let shown = usize::from(area.height);
    let first = (permission.selected + 1)
        .saturating_sub(shown)
        .min(permission.options.len().saturating_sub(shown));
    for (y, (i, option)) in
        (area.y..area.bottom()).zip(permission.options.iter().enumerate().skip(first))
    {
        let selected = i == permission.selected;
        let color = match option.kind {
            OptionKind::AllowOnce | OptionKind::AllowAlways => theme.success,
            OptionKind::RejectOnce | OptionKind::RejectAlways => theme.error,
            OptionKind::Other => theme.text,
        };
        let style = match (armed, selected && permission.moved) {
            (false, _) => theme.dim,
            (true, true) => color.patch(theme.selected),
            (true, false) => color,
        };
        let mark = if selected { theme.glyphs.folded } else { " " };
        let number = if i < 9 { format!("{}", i + 1) } else { " ".to_owned() };
        let text = format!("{mark} {number}  {}", reveal(&option.name).replace('\n', " "));
        widgets::put(buf, area.x, y, &text, area.width, style);
    }
}

fn body_lines(permission: &Permission, columns: u16, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for part in &permission.body {
        match part {
            BodyPart::Command(command) => {
                lines.extend(widgets::wrapped(
                    &format!("$ {}", reveal(command)),
                    columns,
                    theme.code_block,
                ));
            }
            BodyPart::Diff { path, old, new } => {
                lines.extend(diff::render(
                    &reveal(path),
                    old.as_deref(),
                    new,
                    usize::from(columns),
                    theme,
                ));
            }
            BodyPart::Text(text) => {
                // Only the title again says nothing new.
                if permission.body.len() > 1 || text != &permission.title {
                    lines.extend(widgets::wrapped(&reveal(text), columns, Style::new()));
                }
            }
            BodyPart::Path(path) => {
                lines.extend(widgets::wrapped(&reveal(path), columns, theme.dim));
            }
        }
    }
    lines
}
