//! The permission dialog: the whole of what is asked, every answer the agent offers, and whether
//! the keys count yet.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::highlight::Highlighter;
use super::paper::Paper;
use super::theme::Theme;
use super::transcript::TranscriptView;
use super::widgets;
use crate::tui::model::permission::{BodyPart, OptionKind, Permission, reveal};
use crate::tui::model::{Ask, Body, Model};

/// Rows that the dialog would like.
pub(super) fn height(
    permission: &Permission,
    columns: u16,
    is_tiny: bool,
    theme: &Theme,
    view: &mut TranscriptView,
) -> u16 {
    let inside = if is_tiny { columns } else { columns.saturating_sub(4) };
    let (paper, _) = body(permission, inside.max(2), theme, view);
    let rows = paper.len() + permission.options.len().max(1) + 3;
    u16::try_from(rows).unwrap_or(u16::MAX)
}

/// Draws the dialog.
pub(super) fn draw(
    model: &Model,
    ask: &Ask,
    permission: &Permission,
    view: &mut TranscriptView,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) -> Body {
    let armed = model.is_armed();
    let style = if permission.risk == "high" { theme.error } else { theme.warning };
    let inside = widgets::frame(area, &title(model, ask, permission), "", style, theme, buf);
    // What is asked comes before the answers: where there is little room, these scroll.
    let options = u16::try_from(permission.options.len().max(1)).unwrap_or(1);
    let options = options.min(inside.height.saturating_sub(2).max(1));
    let (paper, code) = body(permission, inside.width, theme, view);
    let all = paper.len();
    let room = inside.height.saturating_sub(options);
    let wanted = u16::try_from(all).unwrap_or(u16::MAX);
    // An empty row sets the answers apart, when the body can spare it.
    let gap = u16::from(room > wanted || room > 6);
    let rows = room.saturating_sub(gap);
    let most = all.saturating_sub(usize::from(rows));
    let first = ask.scroll.min(most);
    let seen = first..first + usize::from(rows);
    widgets::rows(Rect { height: rows, ..inside }, paper.rows(seen, theme, code), buf);
    let below = all.saturating_sub(first + usize::from(rows));
    let area_of_options = Rect { y: inside.y + rows + gap, height: options, ..inside };
    let unseen = draw_options(permission, armed, theme, area_of_options, buf);
    let scrolls = (below > 0 || first > 0).then_some(below);
    let hints = hints(permission, armed, scrolls, area.width);
    widgets::frame_foot(area, &hints, &unseen, theme, buf);
    Body { most, rows: usize::from(rows) }
}

/// What can be pressed; `scrolls` is how many rows are below, when not all are in sight.
fn hints(
    permission: &Permission,
    armed: bool,
    scrolls: Option<usize>,
    columns: u16,
) -> Vec<String> {
    if !armed {
        return vec!["keys count after a moment without typing…".to_owned()];
    }
    let mut hints = Vec::new();
    match scrolls {
        // What is asked comes first: nothing is to be answered unseen.
        Some(0) if columns < 40 => hints.push("Ctrl-P: back".to_owned()),
        Some(0) => hints.push("Shift-↑ scrolls back".to_owned()),
        Some(below) if columns < 24 => hints.push(format!("^N: {below} more")),
        Some(below) if columns < 40 => hints.push(format!("Ctrl-N: {below} more")),
        Some(below) => hints.push(format!("Shift-↑↓ scrolls, {below} more")),
        None => {}
    }
    match permission.options.len().min(9) {
        0 => {}
        1 => hints.push("1 answers".to_owned()),
        count if columns < 40 && scrolls.is_some() => hints.push(format!("1-{count}")),
        count => hints.push(format!("1-{count} answer")),
    }
    hints.extend(["Esc cancels", "↑↓ Enter", "Ctrl-T in full"].map(str::to_owned));
    hints
}

/// What is asked, by whom, how risky it is, and which of how many.
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
    let risk = match permission.risk.as_str() {
        "" => String::new(),
        risk => format!(" ({} risk)", reveal(risk)),
    };
    format!("permission{place}{from}{risk}: {}", reveal(&permission.what).replace('\n', " "))
}

/// Draws the answers; returns what says how many of them are out of sight.
fn draw_options(
    permission: &Permission,
    armed: bool,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) -> String {
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
    let below = permission.options.len().saturating_sub(first + shown);
    widgets::out_of_sight(first, below, theme)
}

/// What is asked, made once for a width.
fn body<'a>(
    permission: &Permission,
    columns: u16,
    theme: &Theme,
    view: &'a mut TranscriptView,
) -> (&'a mut Paper, &'a mut Highlighter) {
    view.asked(&permission.body, usize::from(columns), theme, |paper, code| {
        for part in &permission.body {
            match part {
                BodyPart::Command(command) => {
                    let text = format!("$ {}", reveal(command));
                    paper.add(widgets::wrapped(&text, columns, theme.code_block));
                }
                BodyPart::Code(code) => {
                    paper.add(widgets::wrapped(&reveal(code), columns, theme.code_block));
                }
                BodyPart::Diff { path, old, new } => {
                    paper.add_change(reveal(path), old.as_deref(), new, theme);
                }
                BodyPart::Text(text) => prose(&reveal(text), columns, theme, paper, code),
                BodyPart::Fields(text) | BodyPart::Path(text) => {
                    paper.add(widgets::wrapped(&reveal(text), columns, theme.dim));
                }
            }
        }
    })
}

/// What the agent says, as markdown; text with a tag in it stays as it is, since markdown may
/// leave tags and comments out, and nothing that is asked may be hidden.
fn prose(text: &str, columns: u16, theme: &Theme, paper: &mut Paper, code: &mut Highlighter) {
    if text.contains('<') {
        paper.add(widgets::wrapped(text, columns, Style::new()));
    } else {
        paper.add_markdown(text, theme, code);
    }
}
