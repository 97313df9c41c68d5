//! What a tool produced: its output as a terminal would show it, its diffs, its failure.
//!
//! Owns the body of a tool's card. Folded, it costs the same however much was printed; unfolded,
//! it shows at most a few hundred rows and says where the rest is.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::ansi::{self, Output, Row};
use super::super::code::Ink;
use super::super::diff::{self, Diff, Sides};
use super::super::markdown;
use super::super::theme::Theme;
use super::super::width::{cell_width, truncate, wrap};
use super::card::{self, Desk, barred, count, more, one_line, tail};
use crate::tui::keymap::{self, Action, Context};
use crate::tui::model::transcript::Transcript;
use crate::tui::model::transcript::block::{BlockId, BlockKind};
use crate::tui::model::transcript::body::Body;
use crate::tui::model::transcript::tool::{DiffPart, ToolCall, ToolKind, ToolPart, ToolStatus};

/// Rows of output in a folded card: the last ones.
const FOLDED_ROWS: usize = 5;
/// Rows of a diff in a folded card: the first ones.
const FOLDED_DIFF: usize = 12;
/// Rows of output in an unfolded card: the last ones.
const OPEN_ROWS: usize = 500;
/// Rows of a diff in an unfolded card.
const OPEN_DIFF: usize = 400;
/// Lines of input in an unfolded card.
const OPEN_INPUT: usize = 40;
/// Rows of a failure's reason in a folded card.
const REASON_ROWS: usize = 4;
/// Bytes of output that a folded card looks at.
const FOLDED_BYTES: usize = 8 * 1024;

/// Whether the output is worth a count only, as of files read and places found.
pub(super) fn is_quiet(call: &ToolCall) -> bool {
    matches!(call.kind, ToolKind::Read | ToolKind::Search | ToolKind::Fetch | ToolKind::Think)
        && call.status != ToolStatus::Failed
}

/// Lines of text that the call produced.
pub(super) fn line_count(call: &ToolCall, transcript: &Transcript) -> u64 {
    texts(call, transcript).map(Body::lines).sum()
}

fn texts<'a>(
    call: &'a ToolCall,
    transcript: &'a Transcript,
) -> impl Iterator<Item = &'a Body> + 'a {
    let raw = (!call.has_content()).then_some(&call.output);
    call.parts
        .iter()
        .filter_map(|part| match part {
            ToolPart::Text(body) => Some(body),
            ToolPart::Terminal(id) => transcript.terminal(id).map(|terminal| &terminal.output),
            ToolPart::Diff(_) | ToolPart::Label(_) => None,
        })
        .chain(raw)
}

/// Draws everything under the header of a tool's card.
pub(super) fn body(
    call: &ToolCall,
    children: &[BlockId],
    desk: &Desk<'_>,
    ink: &mut Ink<'_>,
    out: &mut Vec<Line<'static>>,
) {
    let theme = desk.theme;
    let is_agent = |id: &BlockId| {
        let child = desk.transcript.block(*id);
        child.is_some_and(|child| matches!(child.kind, BlockKind::Subagent(_)))
    };
    let has_child = children.iter().any(is_agent);
    let inner = Desk { width: desk.width.saturating_sub(2).max(1), ..*desk };
    let mut rows: Vec<Line<'static>> = Vec::new();
    if desk.expanded {
        details(call, &inner, &mut rows);
    }
    reason(call, &inner, &mut rows);
    for part in &call.parts {
        match part {
            ToolPart::Diff(part) => change(call, part, &inner, ink, &mut rows),
            ToolPart::Text(body) if repeats_command(call, body) => {}
            ToolPart::Text(body) => printed(call, body, &inner, &mut rows),
            ToolPart::Terminal(id) => {
                if let Some(terminal) = desk.transcript.terminal(id) {
                    printed(call, &terminal.output, &inner, &mut rows);
                }
            }
            // A child that is listed below needs no link.
            ToolPart::Label(_) if has_child && !desk.expanded => {}
            ToolPart::Label(label) => {
                rows.push(card::labelled(label, &inner));
            }
        }
    }
    if !call.has_content() {
        printed(call, &call.output, &inner, &mut rows);
    }
    out.extend(rows.into_iter().map(|row| barred(row, theme)));
}

/// The command, the places and the input, for an unfolded card.
fn details(call: &ToolCall, desk: &Desk<'_>, rows: &mut Vec<Line<'static>>) {
    let theme = desk.theme;
    if let Some(command) = &call.command {
        if header_shows(call, command, desk) {
            return places(call, desk, rows);
        }
        for (n, line) in ansi::reveal(command).into_iter().enumerate() {
            let lead = if n == 0 { "$ " } else { "  " };
            let spans = line.into_iter().map(|(text, marked)| {
                Span::styled(text, if marked { theme.escaped } else { theme.code_block })
            });
            let lead = [Span::styled(lead, theme.dim)];
            let line: Line<'static> = lead.into_iter().chain(spans).collect();
            rows.extend(markdown::wrap_line(&line, desk.width));
        }
    } else if !call.input.is_empty() && !shows_change(call) {
        let shown = call.input.head();
        for line in shown.lines().take(OPEN_INPUT) {
            rows.extend(markdown::plain(&ansi::visible(line), desk.width, theme.dim));
        }
        let hidden = call.input.lines().saturating_sub(OPEN_INPUT as u64);
        if hidden > 0 {
            rows.push(more(hidden, "line", theme));
        }
    }
    places(call, desk, rows);
}

/// Whether the body shows a change, which is what the input asked for once more.
fn shows_change(call: &ToolCall) -> bool {
    call.parts.iter().any(|part| matches!(part, ToolPart::Diff(_)))
}

/// The files that a call touches.
fn places(call: &ToolCall, desk: &Desk<'_>, rows: &mut Vec<Line<'static>>) {
    let theme = desk.theme;
    for place in &call.locations {
        let line = place.line.map_or_else(String::new, |line| format!(":{line}"));
        let text = format!("{}{line}", one_line(&desk.transcript.shortened(&place.path)));
        rows.extend(markdown::plain(&text, desk.width, theme.link));
    }
}

/// Why it failed, unless the output says so itself.
fn reason(call: &ToolCall, desk: &Desk<'_>, rows: &mut Vec<Line<'static>>) {
    let Some(reason) = &call.error else {
        return;
    };
    if call.status != ToolStatus::Failed {
        return;
    }
    let said = call.parts.iter().any(|part| match part {
        ToolPart::Text(body) => body.tail().contains(reason.trim()),
        _ => false,
    }) || call.output.tail().contains(reason.trim());
    if said {
        return;
    }
    let text = ansi::prose(reason.trim_end());
    card::cut_rows(markdown::plain(&text, desk.width, desk.theme.error), REASON_ROWS, desk, rows);
}

/// Text as it was printed: the last rows, and how many are above them.
fn printed(call: &ToolCall, body: &Body, desk: &Desk<'_>, rows: &mut Vec<Line<'static>>) {
    if body.is_empty() || (is_quiet(call) && !desk.expanded) {
        return;
    }
    let theme = desk.theme;
    let limit = if desk.expanded { OPEN_ROWS } else { FOLDED_ROWS };
    let text = body.tail();
    let bytes = if desk.expanded { text.len() } else { FOLDED_BYTES };
    let shown = unfenced(whole_lines(tail(text, bytes), text));
    let plain = call.status == ToolStatus::Failed || desk.expanded;
    let style = if plain { theme.text } else { theme.dim };
    let mut output = Output::new(limit * 2);
    output.feed(shown.trim_end_matches('\n'));
    let mut drawn: Vec<Line<'static>> = Vec::new();
    let mut used = 0u64;
    let mut is_cut = false;
    for row in output.rows().rev() {
        let mut lines = row_lines(&row, desk.width, style, theme);
        if drawn.len() + lines.len() > limit {
            // The last part of a row that is too long for the card is better than none of it.
            if drawn.is_empty() {
                lines.drain(..lines.len() - limit);
                drawn = lines.into_iter().rev().collect();
                used += 1;
                is_cut = true;
            }
            break;
        }
        used += 1;
        drawn.extend(lines.into_iter().rev());
    }
    // An empty row at the cut says nothing.
    while used > 1 && drawn.last().is_some_and(|line| line.to_string().trim().is_empty()) {
        drawn.pop();
        used -= 1;
    }
    // Line feeds at the end are no lines that one misses.
    let below = text.len() - text.trim_end_matches('\n').len();
    let below = (below as u64).saturating_sub(1);
    let hidden = body.lines().saturating_sub(used + below).saturating_sub(fences(text, shown));
    if hidden > 0 {
        let text = format!("{} {} above", theme.glyphs.ellipsis, count(hidden, "line"));
        rows.push(Line::styled(text, theme.dim));
    } else if is_cut {
        let text = format!("{} the line begins above", theme.glyphs.ellipsis);
        rows.push(Line::styled(text, theme.dim));
    }
    rows.extend(drawn.into_iter().rev());
}

/// Lines that [`unfenced`] took off.
fn fences(text: &str, shown: &str) -> u64 {
    let lines = |text: &str| text.lines().count() as u64;
    if text.starts_with("```") && text.len() < FOLDED_BYTES {
        lines(text).saturating_sub(lines(shown))
    } else {
        0
    }
}

/// Whether a text is the command once more, in a fence, as agents announce it.
fn repeats_command(call: &ToolCall, body: &Body) -> bool {
    let Some(text) = body.whole().filter(|text| text.starts_with("```")) else { return false };
    let inner = unfenced(text).trim();
    let inner = inner.strip_prefix("$ ").unwrap_or(inner);
    inner.len() < text.len()
        && (call.command.as_deref().map(str::trim) == Some(inner) || card::title(call) == inner)
}

/// Whether the header has room for the whole command, which is its title.
fn header_shows(call: &ToolCall, command: &str, desk: &Desk<'_>) -> bool {
    const FACTS: usize = 24;
    card::title(call) == command
        && !command.contains('\n')
        && cell_width(command) + FACTS <= desk.width
        && ansi::reveal(command).iter().flatten().all(|(_, marked)| !marked)
}

/// Drops the rest of a line that a cut began with.
fn whole_lines<'a>(cut: &'a str, text: &str) -> &'a str {
    if cut.len() == text.len() {
        return cut;
    }
    // A line that is longer than what is looked at is better seen in part than not at all.
    match cut.split_once('\n') {
        Some((_, rest)) if !rest.trim_end_matches('\n').is_empty() => rest,
        _ => after_sequence(cut, text),
    }
}

/// Leaves out the rest of a control sequence that a cut goes through: it would be shown as text.
fn after_sequence<'a>(cut: &'a str, text: &str) -> &'a str {
    /// Longer ones are no colours.
    const LONGEST: usize = 64;
    let at = text.len() - cut.len();
    let before = text.get(text.floor_char_boundary(at.saturating_sub(LONGEST))..at);
    let open = before.and_then(|before| before.rsplit_once('\u{1b}')).map(|(_, begun)| begun);
    let ends = |c: char| ('@'..='~').contains(&c) && c != '[';
    match (open, cut.find(ends)) {
        (Some(begun), Some(end)) if !begun.contains(ends) => cut.get(end + 1..).unwrap_or_default(),
        _ => cut,
    }
}

/// Output that an agent put into a code fence, without the fence.
fn unfenced(text: &str) -> &str {
    let bare = text.trim_end();
    let Some(inner) = bare.strip_suffix("```") else {
        return text;
    };
    if let Some((first, rest)) = inner.split_once('\n')
        && first.starts_with("```")
        && !rest.contains("\n```")
    {
        return rest;
    }
    text
}

/// A printed row, wrapped, in the colours that the terminal can show.
pub(super) fn row_lines(row: &Row, width: usize, base: Style, theme: &Theme) -> Vec<Line<'static>> {
    if row.runs.is_empty() {
        return wrap(&row.text, width)
            .into_iter()
            .map(|text| Line::styled(text.to_owned(), base))
            .collect();
    }
    let mut at = 0;
    let spans = row.runs.iter().map(|(end, style)| {
        let text = row.text.get(at..*end).unwrap_or_default().to_owned();
        at = *end;
        Span::styled(text, base.patch(theme.printed(*style)))
    });
    let line = Line::from_iter(spans.collect::<Vec<_>>());
    markdown::wrap_line(&line, width)
}

fn change(
    call: &ToolCall,
    part: &DiffPart,
    desk: &Desk<'_>,
    ink: &mut Ink<'_>,
    rows: &mut Vec<Line<'static>>,
) {
    let theme = desk.theme;
    let old = part.old.as_ref().map_or(Some(""), Body::whole);
    let (Some(old), Some(new)) = (old, part.new.whole()) else {
        let path = one_line(&desk.transcript.shortened(&part.path));
        let text = truncate(&path, desk.width, theme.glyphs.ellipsis);
        rows.push(Line::styled(text, theme.title));
        let key = keymap::hint(Context::Global, Action::Detail);
        let key = key.map(|key| key.to_string()).unwrap_or_default();
        let text = format!("too large for the card: select it, {key} shows all of it");
        rows.extend(markdown::plain(&text, desk.width, theme.dim));
        return;
    };
    let sides = Sides { path: &part.path, old, new };
    let diff = Diff::new(sides);
    // The card's title mostly names the file already.
    let path = if call.title.contains(&part.path) { "" } else { &part.path };
    let path = desk.transcript.shortened(path);
    let note = match call.status {
        ToolStatus::Failed | ToolStatus::Cancelled => " not applied",
        _ if part.old.is_none() => " new file",
        _ => "",
    };
    rows.push(diff::header(&path, &diff, note, desk.width, theme));
    let limit = if desk.expanded { OPEN_DIFF } else { FOLDED_DIFF };
    let total = diff.len(desk.width);
    let lines = diff.lines(sides, 0..limit.min(total), desk.width, theme, ink);
    if !desk.expanded && lines.len() > limit * 2 {
        // Long lines are many rows: as many of them as fit whole, the first in any case.
        let mut fit = 1;
        while fit < limit.min(total) && diff.height(sides, 0..fit + 1, desk.width) <= limit * 2 {
            fit += 1;
        }
        let shown = diff.height(sides, 0..fit, desk.width).min(limit * 2);
        rows.extend(lines.into_iter().take(shown));
        if total > fit {
            rows.push(more((total - fit) as u64, "line", theme));
        } else {
            let text = format!("{} the line goes on", theme.glyphs.ellipsis);
            rows.push(Line::styled(text, theme.dim));
        }
        return;
    }
    rows.extend(lines);
    if total > limit {
        rows.push(more((total - limit) as u64, "row", theme));
    }
}
