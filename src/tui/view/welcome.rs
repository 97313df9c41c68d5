//! The first screen: what this is and what to type; or why there is no agent and what to do.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::{widgets, width};
use crate::tui::model::{Model, Phase, Trouble};

/// Below this height the welcome screen says in a line what it is.
const LOW: u16 = 14;
/// Ways to log in that are shown; the list of `/login` has them all.
const METHODS: usize = 4;
/// Rows between the last line and the composer.
const MARGIN: u16 = 1;

/// Draws the welcome screen at the bottom of the area, near the composer.
pub(super) fn draw(model: &Model, theme: &Theme, area: Rect, buf: &mut Buffer) {
    let columns = area.width.saturating_sub(4).max(2);
    let mut lines = head(model, columns, theme);
    if area.height < LOW {
        // What to type comes before what this is.
        lines.truncate(1);
    }
    if let Phase::NeedsLogin(message) = &model.phase {
        lines.push(Line::default());
        lines.extend(widgets::wrapped(message, columns, theme.warning));
        let methods = || model.agent.auth_methods.iter().take(METHODS);
        let names = methods().map(|method| width::cell_width(&method.name)).max().unwrap_or(0);
        let column = names.min(usize::from(columns) / 2);
        for method in methods() {
            let name = width::fit(&method.name, column, "…");
            lines.push(Line::from(vec![
                Span::styled(format!("  {name}"), theme.accent),
                Span::styled(format!("  {}", method.about), theme.dim),
            ]));
        }
        lines.push(Line::styled("Press Enter or type /login.", theme.text));
    }
    if !model.start.examples.is_empty() {
        lines.push(Line::default());
        lines.push(Line::styled("Try one of these:", theme.dim));
        let fits = lines.len() + model.start.examples.len() <= usize::from(area.height);
        if !fits {
            let names: Vec<&str> = model.start.examples.iter().map(|(p, _)| p.as_str()).collect();
            lines.extend(widgets::wrapped(&names.join(" · "), columns, theme.accent));
            place(&lines, area, buf);
            return;
        }
        let names =
            model.start.examples.iter().map(|(p, _)| width::cell_width(p)).max().unwrap_or(0);
        let column = names.min(usize::from(columns) / 2);
        for (prompt, what) in &model.start.examples {
            lines.push(Line::from(vec![
                Span::styled(format!("  {}", width::fit(prompt, column, "…")), theme.accent),
                Span::styled(format!("  {what}"), theme.dim),
            ]));
        }
    } else if !model.session.commands.is_empty() {
        lines.push(Line::default());
        lines.push(Line::styled("Commands of this agent (type / to choose):", theme.dim));
        let commands = || model.session.commands.iter().take(8);
        let names = commands().map(|command| width::cell_width(&command.name)).max().unwrap_or(0);
        let column = names.min(usize::from(columns) / 2);
        for command in commands() {
            let name = width::fit(&command.name, column, "…");
            lines.push(Line::from(vec![
                Span::styled(format!("  /{name}"), theme.accent),
                Span::styled(format!("  {}", command.description), theme.dim),
            ]));
        }
    }
    place(&lines, area, buf);
}

fn head(model: &Model, columns: u16, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(vec![
        Span::styled("zcode-acp", theme.accent),
        Span::styled(format!(" {}", env!("CARGO_PKG_VERSION")), theme.dim),
    ])];
    let agent = format!("{} {}", model.agent.name, model.agent.version);
    let what = format!(
        "A chat with {}, a coding agent that works in this directory. It asks before it changes anything, unless its mode says otherwise.",
        agent.trim()
    );
    lines.extend(widgets::wrapped(&what, columns, theme.text));
    lines.extend(widgets::wrapped(&model.start.cwd.display().to_string(), columns, theme.dim));
    lines.push(Line::default());
    lines.extend(widgets::wrapped(
        "Write what you want and press Enter. Ctrl-J starts a new line, Esc stops the agent, F1 shows all keys.",
        columns,
        theme.dim,
    ));
    lines
}

/// Draws why there is no agent.
pub(super) fn trouble(
    model: &Model,
    trouble: &Trouble,
    theme: &Theme,
    area: Rect,
    buf: &mut Buffer,
) {
    let columns = area.width.saturating_sub(4).max(2);
    let mut lines = widgets::wrapped(&trouble.title, columns, theme.error);
    if !trouble.lines.is_empty() {
        lines.push(Line::default());
        if trouble.no_engine {
            lines.push(Line::styled("Looked for:", theme.dim));
        }
        for line in &trouble.lines {
            lines.extend(widgets::wrapped(&format!("  {line}"), columns, theme.text));
        }
    }
    lines.push(Line::default());
    for hint in &trouble.hints {
        lines.extend(widgets::wrapped(hint, columns, theme.text));
    }
    if trouble.no_engine && model.start.can_demo {
        lines.extend(widgets::wrapped(
            "No account, no engine? Type /demo and press Enter to try the demo engine.",
            columns,
            theme.accent,
        ));
    }
    place(&lines, area, buf);
}

fn place(lines: &[Line<'_>], area: Rect, buf: &mut Buffer) {
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    // Near the composer, which is where the eye and the hands are, however high the screen is.
    let top = area.height.saturating_sub(rows.saturating_add(MARGIN));
    let inside =
        Rect::new(area.x + 2, area.y + top, area.width.saturating_sub(4), area.height - top);
    widgets::lines(inside, lines, 0, buf);
}
