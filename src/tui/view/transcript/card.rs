//! Blocks that are drawn as a whole: tool calls, thoughts, prompts, plans, notices, turn ends.
//!
//! Owns how each of them looks, folded and unfolded. The first row of a card is its header, and
//! alone depends on the clock; it is always one row, so that time passing moves nothing.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::code::Ink;
use super::super::theme::Theme;
use super::super::width::{cell_width, truncate, truncate_start};
use super::super::{ansi, markdown};
use super::output;
use crate::tui::model::transcript::Transcript;
use crate::tui::model::transcript::block::{
    Block, BlockKind, Message, Notice, Plan, PlanEntry, Priority, Severity, StepStatus, Subagent,
    TurnEnd, Unknown,
};
use crate::tui::model::transcript::tool::{ToolCall, ToolKind, ToolStatus};

/// What drawing a card takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Desk<'a> {
    pub(super) transcript: &'a Transcript,
    pub(super) theme: &'a Theme,
    pub(super) width: usize,
    pub(super) expanded: bool,
}

/// Cells of a title that facts must leave.
const MIN_TITLE: usize = 12;
/// Rows of a prompt before it is folded.
const PROMPT_ROWS: usize = 20;
/// Rows of a notice before it is folded.
const NOTICE_ROWS: usize = 6;
/// Children named in a folded card.
const CHILD_ROWS: usize = 3;
/// Bytes of a thought that are drawn when it is unfolded; the pager has the rest.
const THOUGHT_CAP: usize = 64 * 1024;

/// The glyph left of a block's first row.
pub(super) fn glyph(block: &Block, theme: &Theme, now_ms: u64) -> (&'static str, Style) {
    let glyphs = theme.glyphs;
    match &block.kind {
        BlockKind::User(_) => (glyphs.user, theme.user_mark),
        BlockKind::Assistant(_) => (glyphs.assistant, theme.accent),
        BlockKind::Thought(_) => (glyphs.thought, theme.thought),
        BlockKind::Tool(call) => match call.status {
            ToolStatus::Pending => (glyphs.todo, theme.dim),
            ToolStatus::Running => (theme.spinner(now_ms), theme.running),
            ToolStatus::Completed => (glyphs.done, theme.success),
            ToolStatus::Failed => (glyphs.failed, theme.error),
            ToolStatus::Cancelled => (glyphs.cancelled, theme.warning),
        },
        BlockKind::Plan(plan) if plan.removed => (glyphs.cancelled, theme.dim),
        BlockKind::Plan(plan) if is_done(plan) => (glyphs.done, theme.success),
        BlockKind::Plan(_) => (glyphs.doing, theme.accent),
        BlockKind::Notice(notice) if notice.running => (theme.spinner(now_ms), theme.running),
        BlockKind::Notice(notice) => match notice.severity {
            Severity::Info => (glyphs.info, theme.accent),
            Severity::Warning => (glyphs.warning, theme.warning),
            Severity::Error => (glyphs.failed, theme.error),
        },
        BlockKind::TurnEnd(_) => (glyphs.rule, theme.border),
        BlockKind::Subagent(agent) if agent.running => (theme.spinner(now_ms), theme.running),
        BlockKind::Subagent(agent) if agent.failure.is_some() => (glyphs.failed, theme.error),
        BlockKind::Subagent(_) => (glyphs.done, theme.success),
        BlockKind::Unknown(_) => ("?", theme.dim),
    }
}

/// Whether every step of a plan is done.
fn is_done(plan: &Plan) -> bool {
    let done = |entry: &PlanEntry| entry.status == StepStatus::Completed;
    !plan.entries.is_empty() && plan.entries.iter().all(done)
}

/// The header row of a card, when the block has one.
pub(super) fn header(block: &Block, desk: &Desk<'_>, now_ms: u64) -> Option<Line<'static>> {
    let theme = desk.theme;
    match &block.kind {
        BlockKind::Tool(call) => Some(tool_header(call, block, desk, now_ms)),
        BlockKind::Subagent(agent) => Some(agent_header(agent, block, desk, now_ms)),
        BlockKind::Thought(message) => Some(thought_header(block, message, desk, now_ms)),
        BlockKind::TurnEnd(end) => Some(turn_end(end, desk.width, theme)),
        _ => None,
    }
}

/// All rows of a block that is drawn as a whole.
pub(super) fn lines(
    block: &Block,
    desk: &Desk<'_>,
    now_ms: u64,
    ink: &mut Ink<'_>,
) -> Vec<Line<'static>> {
    let mut out: Vec<Line<'static>> = header(block, desk, now_ms).into_iter().collect();
    match &block.kind {
        BlockKind::User(message) => prompt(message, desk, &mut out),
        BlockKind::Assistant(message) => reply(message, desk, &mut out),
        BlockKind::Thought(message) => thought(message, desk, &mut out),
        BlockKind::Tool(call) => {
            output::body(call, &block.children, desk, ink, &mut out);
            children(block, desk, &mut out);
        }
        BlockKind::Subagent(agent) => {
            subagent(agent, desk, &mut out);
            children(block, desk, &mut out);
        }
        BlockKind::Plan(content) => plan(content, desk, &mut out),
        BlockKind::Notice(content) => notice(content, desk, &mut out),
        BlockKind::TurnEnd(_) => {}
        BlockKind::Unknown(content) => unknown(content, desk, &mut out),
    }
    out
}

// ---- headers ---------------------------------------------------------------------------------

/// A title and the facts after it, cut so that the facts stay.
fn titled(title: &str, style: Style, facts: &[(String, Style)], desk: &Desk<'_>) -> Line<'static> {
    let theme = desk.theme;
    let dot = format!(" {} ", theme.glyphs.dot);
    let title = one_line(title);
    // The title keeps this much; facts that do not fit beside it are left out, the last first.
    let least = cell_width(&title).min(MIN_TITLE);
    let mut room = desk.width;
    let mut shown = 0;
    for (fact, _) in facts {
        let taken = cell_width(fact) + cell_width(&dot);
        if room < least + taken {
            break;
        }
        room -= taken;
        shown += 1;
    }
    let title = truncate(&title, room, theme.glyphs.ellipsis);
    let mut spans = vec![Span::styled(title, style)];
    for (fact, style) in facts.iter().take(shown) {
        spans.push(Span::styled(dot.clone(), theme.dim));
        spans.push(Span::styled(fact.clone(), *style));
    }
    Line::from(spans)
}

/// The first line of a text, with everything unseen made visible.
pub(in crate::tui::view) fn one_line(text: &str) -> String {
    let text = text.trim();
    let (first, more) = text.split_once('\n').map_or((text, ""), |(first, _)| (first, " …"));
    format!("{}{more}", ansi::visible(first.trim_end()))
}

fn tool_header(call: &ToolCall, block: &Block, desk: &Desk<'_>, now_ms: u64) -> Line<'static> {
    let theme = desk.theme;
    let mut facts: Vec<(String, Style)> = Vec::new();
    if let Some(exit) = &call.exit
        && !exit.is_success()
    {
        let text = match (&exit.signal, exit.code) {
            (Some(signal), _) => format!("signal {signal}"),
            (None, code) => format!("exit {}", code.unwrap_or_default()),
        };
        facts.push((text, theme.error));
    }
    if call.status == ToolStatus::Cancelled {
        facts.push(("cancelled".to_owned(), theme.warning));
    }
    if call.is_in_background() {
        facts.push(("in the background".to_owned(), theme.dim));
    }
    let lines = output::line_count(call, desk.transcript);
    if output::is_quiet(call) && lines > 0 && !desk.expanded {
        facts.push((count(lines, "line"), theme.dim));
    }
    if !block.children.is_empty() {
        facts.push((count(block.children.len() as u64, "step"), theme.dim));
    }
    if call.status != ToolStatus::Pending
        && let Some(took) = call.elapsed_ms(now_ms)
        && took >= 1000
    {
        facts.push((elapsed(took), theme.dim));
    }
    let icon = icon(call.kind, theme);
    let lead = Span::styled(format!("{icon} "), theme.dim);
    let inner = Desk { width: desk.width.saturating_sub(cell_width(icon) + 1), ..*desk };
    let mut line = titled(&named(call, desk.transcript), theme.title, &facts, &inner);
    line.spans.insert(0, lead);
    line
}

/// The title as it is shown: paths from the session's directory on. A command stays as it is run.
fn named(call: &ToolCall, transcript: &Transcript) -> String {
    let title = title(call);
    if call.kind == ToolKind::Execute { title } else { transcript.shortened(&title).into_owned() }
}

/// What the card says it does: the agent's title, else the command, the tool's name or its id.
pub(super) fn title(call: &ToolCall) -> String {
    let title = call.title.trim();
    if !title.is_empty() {
        return title.trim_matches('`').to_owned();
    }
    call.command
        .clone()
        .or_else(|| call.name.clone())
        .unwrap_or_else(|| format!("tool call {}", call.id))
}

fn icon(kind: ToolKind, theme: &Theme) -> &'static str {
    let [read, edit, delete, moved, search, execute, think, fetch, mode, other] =
        theme.glyphs.tools;
    match kind {
        ToolKind::Read => read,
        ToolKind::Edit => edit,
        ToolKind::Delete => delete,
        ToolKind::Move => moved,
        ToolKind::Search => search,
        ToolKind::Execute => execute,
        ToolKind::Think => think,
        ToolKind::Fetch => fetch,
        ToolKind::SwitchMode => mode,
        ToolKind::Other => other,
    }
}

fn agent_header(agent: &Subagent, block: &Block, desk: &Desk<'_>, now_ms: u64) -> Line<'static> {
    let theme = desk.theme;
    let mut facts = Vec::new();
    if !block.children.is_empty() {
        facts.push((count(block.children.len() as u64, "step"), theme.dim));
    }
    let took = agent.ended_ms.unwrap_or(now_ms).saturating_sub(agent.started_ms);
    if took >= 1000 {
        facts.push((elapsed(took), theme.dim));
    }
    let name = if agent.title.is_empty() {
        format!("agent {}", agent.session_id)
    } else {
        agent.title.clone()
    };
    titled(&name, theme.title, &facts, desk)
}

fn thought_header(block: &Block, message: &Message, desk: &Desk<'_>, now_ms: u64) -> Line<'static> {
    let theme = desk.theme;
    let end = if message.streaming { now_ms } else { message.ended_ms };
    let took = end.saturating_sub(block.created_ms);
    let mut facts = Vec::new();
    if took >= 1000 {
        facts.push((elapsed(took), theme.dim));
    }
    facts.push((count(message.lines(), "line"), theme.dim));
    let name = if message.streaming { "thinking" } else { "thought" };
    titled(name, theme.thought, &facts, desk)
}

fn turn_end(end: &TurnEnd, width: usize, theme: &Theme) -> Line<'static> {
    let mut text = elapsed(end.elapsed_ms);
    if let Some(tokens) = end.tokens {
        text = format!("{text} {} {} tokens", theme.glyphs.dot, thousands(tokens));
    }
    if let Some(reason) = &end.reason {
        // A long reason is cut before what the turn took is.
        let facts = format!(" {} {text}", theme.glyphs.dot);
        let room = width.saturating_sub(cell_width(&facts)).max(MIN_TITLE);
        text = format!("{}{facts}", truncate(&one_line(reason), room, theme.glyphs.ellipsis));
    }
    let text = truncate(&text, width, theme.glyphs.ellipsis);
    let style = if end.reason.is_some() { theme.warning } else { theme.dim };
    let rest = width.saturating_sub(cell_width(&text) + 1);
    Line::from_iter([
        Span::styled(text, style),
        Span::styled(" ", theme.dim),
        Span::styled(theme.glyphs.rule.repeat(rest), theme.border),
    ])
}

// ---- bodies ----------------------------------------------------------------------------------

fn prompt(message: &Message, desk: &Desk<'_>, out: &mut Vec<Line<'static>>) {
    let theme = desk.theme;
    let text = message
        .pictures
        .iter()
        .fold(ansi::prose(message.text.trim_end()), |text, (path, label)| {
            text.replace(path, label).into()
        });
    let limit = if desk.expanded { usize::MAX } else { PROMPT_ROWS };
    // Twice the screen's worth of bytes is enough to fill the rows that are shown.
    let shown =
        if desk.expanded { text.as_ref() } else { head(&text, PROMPT_ROWS * desk.width * 4) };
    let mut rows = markdown::plain(shown, desk.width, theme.user);
    if rows.len() > limit || shown.len() < text.len() {
        rows.truncate(limit);
        let lines = text.matches('\n').count() + 1;
        let note = format!("{} {} in all", theme.glyphs.ellipsis, count(lines as u64, "line"));
        rows.push(Line::styled(note, theme.dim));
    }
    if !message.text.is_empty() {
        out.extend(rows.into_iter().map(|row| banded(row, desk)));
    }
    for label in &message.attachments {
        out.push(labelled(label, desk));
    }
    if out.is_empty() {
        out.push(Line::styled("(empty prompt)", theme.dim));
    }
}

/// Something that is no text, by its name. Of a path the end tells most.
pub(super) fn labelled(label: &str, desk: &Desk<'_>) -> Line<'static> {
    let room = desk.width.saturating_sub(2);
    let cut = if label.contains('/') { truncate_start } else { truncate };
    let label = cut(&one_line(label), room, desk.theme.glyphs.ellipsis);
    Line::styled(format!("[{label}]"), desk.theme.link)
}

/// A prompt stands out by a band across the screen, where the theme has one.
fn banded(mut row: Line<'static>, desk: &Desk<'_>) -> Line<'static> {
    if desk.theme.user.bg.is_some() {
        let used: usize = row.spans.iter().map(|span| cell_width(&span.content)).sum();
        let rest = desk.width.saturating_sub(used);
        row.spans.push(Span::styled(" ".repeat(rest), desk.theme.user));
    }
    row
}

/// An answer of a child: markdown when unfolded, its last words otherwise.
fn reply(message: &Message, desk: &Desk<'_>, out: &mut Vec<Line<'static>>) {
    if desk.expanded {
        out.extend(markdown::render(&message.text, desk.width, desk.theme));
    } else {
        let text = ansi::prose(tail(message.text.trim_end(), 400));
        let rows = markdown::plain(&text, desk.width, desk.theme.dim);
        let skip = rows.len().saturating_sub(CHILD_ROWS);
        out.extend(rows.into_iter().skip(skip));
    }
    out.extend(message.attachments.iter().map(|label| labelled(label, desk)));
}

fn thought(message: &Message, desk: &Desk<'_>, out: &mut Vec<Line<'static>>) {
    let theme = desk.theme;
    if desk.expanded {
        let text = message.text.trim_end();
        let shown = tail(text, THOUGHT_CAP);
        if shown.len() < text.len() {
            let note =
                format!("{} {} bytes above", theme.glyphs.ellipsis, text.len() - shown.len());
            out.push(Line::styled(note, theme.dim));
        }
        out.extend(markdown::plain(&ansi::prose(shown), desk.width, theme.thought));
    } else if message.streaming {
        let text = ansi::prose(tail(message.text.trim_end(), desk.width * 6));
        let rows = markdown::plain(&text, desk.width, theme.thought);
        let skip = rows.len().saturating_sub(2);
        out.extend(rows.into_iter().skip(skip));
    }
}

fn subagent(agent: &Subagent, desk: &Desk<'_>, out: &mut Vec<Line<'static>>) {
    if let Some(failure) = &agent.failure {
        let rows = markdown::plain(&ansi::prose(failure.trim_end()), desk.width, desk.theme.error);
        cut_rows(rows, NOTICE_ROWS, desk, out);
    }
    if desk.expanded && !agent.description.is_empty() {
        let text = ansi::prose(&agent.description);
        out.extend(markdown::plain(&text, desk.width, desk.theme.dim));
    }
}

/// The last children of a folded card, one row each.
fn children(block: &Block, desk: &Desk<'_>, out: &mut Vec<Line<'static>>) {
    if desk.expanded || block.children.is_empty() {
        return;
    }
    let theme = desk.theme;
    let hidden = block.children.len().saturating_sub(CHILD_ROWS);
    if hidden > 0 {
        let note = format!("{} {hidden} earlier", theme.glyphs.ellipsis);
        out.push(barred(Line::styled(note, theme.dim), theme));
    }
    for id in block.children.iter().skip(hidden) {
        let Some(child) = desk.transcript.block(*id) else {
            continue;
        };
        let room = desk.width.saturating_sub(4);
        let (mut text, style) = summary(child, desk.transcript, theme);
        if matches!(child.kind, BlockKind::Subagent(_)) {
            // What it does now.
            let last = child.children.last().and_then(|id| desk.transcript.block(*id));
            if let Some(last) = last {
                text = format!(
                    "{text} {} {}",
                    theme.glyphs.dot,
                    summary(last, desk.transcript, theme).0
                );
            }
        }
        // A spinner here would move with the clock; only headers may.
        let (sign, sign_style) = match &child.kind {
            BlockKind::Tool(call) if call.status == ToolStatus::Running => {
                (theme.glyphs.doing, theme.running)
            }
            _ => glyph(child, theme, 0),
        };
        let text = truncate(&text, room, theme.glyphs.ellipsis);
        let line = Line::from_iter([
            Span::styled(format!("{sign} "), sign_style),
            Span::styled(text, style),
        ]);
        out.push(barred(line, theme));
    }
}

pub(super) fn summary(block: &Block, transcript: &Transcript, theme: &Theme) -> (String, Style) {
    match &block.kind {
        BlockKind::Tool(call) => (one_line(&named(call, transcript)), theme.text),
        BlockKind::Subagent(agent) => (one_line(&agent.title), theme.text),
        BlockKind::User(m) | BlockKind::Assistant(m) | BlockKind::Thought(m) => {
            let last = m.text.trim_end().rsplit('\n').next().unwrap_or_default();
            let shown = markdown::render(tail(last, 1_000), usize::from(u16::MAX), theme);
            let text = shown.first().map(ToString::to_string).unwrap_or_default();
            (one_line(&text), theme.dim)
        }
        BlockKind::Notice(notice) => (one_line(&notice.title), theme.dim),
        BlockKind::Plan(_) => ("plan".to_owned(), theme.dim),
        BlockKind::TurnEnd(_) => (String::new(), theme.dim),
        BlockKind::Unknown(unknown) => (unknown.name.clone(), theme.dim),
    }
}

/// A row with a bar at its left.
pub(super) fn barred(mut line: Line<'static>, theme: &Theme) -> Line<'static> {
    let bar = format!("{} ", theme.glyphs.bar);
    line.spans.insert(0, Span::styled(bar, theme.border));
    line
}

/// The mark of a step, its style, and that of its text.
pub(in crate::tui::view) fn step_look(
    entry: &PlanEntry,
    theme: &Theme,
) -> (&'static str, Style, Style) {
    match entry.status {
        StepStatus::Pending => (theme.glyphs.todo, theme.dim, theme.text),
        StepStatus::InProgress => (theme.glyphs.doing, theme.running, theme.title),
        StepStatus::Completed => (theme.glyphs.done, theme.success, theme.dim),
    }
}

/// The rows of a plan.
fn plan(plan: &Plan, desk: &Desk<'_>, out: &mut Vec<Line<'static>>) {
    let theme = desk.theme;
    let done = plan.entries.iter().filter(|entry| entry.status == StepStatus::Completed).count();
    let mut facts = Vec::new();
    if !plan.entries.is_empty() {
        facts.push((format!("{done}/{}", plan.entries.len()), theme.dim));
    }
    if plan.removed {
        facts.push(("withdrawn".to_owned(), theme.dim));
    }
    out.push(titled("Plan", theme.title, &facts, desk));
    if plan.removed && !desk.expanded {
        return;
    }
    if let Some(text) = &plan.markdown {
        out.extend(markdown::render(text, desk.width, theme));
    }
    if let Some(uri) = &plan.uri {
        out.push(Line::styled(one_line(uri), theme.link));
    }
    for entry in &plan.entries {
        let (sign, sign_style, style) = step_look(entry, theme);
        let mut text = ansi::prose(&entry.content).into_owned();
        if entry.priority == Priority::High && entry.status != StepStatus::Completed {
            text.push_str(" !");
        }
        let room = desk.width.saturating_sub(2);
        for (n, mut row) in markdown::plain(&text, room, style).into_iter().enumerate() {
            let lead =
                if n == 0 { Span::styled(format!("{sign} "), sign_style) } else { Span::raw("  ") };
            row.spans.insert(0, lead);
            out.push(row);
        }
    }
}

fn notice(notice: &Notice, desk: &Desk<'_>, out: &mut Vec<Line<'static>>) {
    let theme = desk.theme;
    let style = match notice.severity {
        Severity::Info => theme.text,
        Severity::Warning => theme.warning,
        Severity::Error => theme.error,
    };
    out.extend(markdown::plain(&ansi::prose(&notice.title), desk.width, style));
    if !notice.detail.is_empty() {
        let text = ansi::prose(notice.detail.trim_end());
        let rows = markdown::plain(&text, desk.width, theme.dim);
        cut_rows(rows, NOTICE_ROWS, desk, out);
    }
    if let Some(hint) = &notice.hint {
        let text = format!("{} {hint}", theme.glyphs.arrow);
        out.extend(markdown::plain(&ansi::prose(&text), desk.width, theme.accent));
    }
}

fn unknown(unknown: &Unknown, desk: &Desk<'_>, out: &mut Vec<Line<'static>>) {
    let theme = desk.theme;
    let facts = [("not known to this client".to_owned(), theme.dim)];
    out.push(titled(&unknown.name, theme.title, &facts, desk));
    let limit = if desk.expanded { usize::MAX } else { NOTICE_ROWS };
    let total = unknown.json.lines().count();
    for line in unknown.json.lines().take(limit) {
        let room = desk.width.saturating_sub(2);
        for row in markdown::plain(&ansi::visible(line), room, theme.dim) {
            out.push(barred(row, theme));
        }
    }
    if total > limit {
        out.push(barred(more((total - limit) as u64, "line", theme), theme));
    }
}

/// Rows of a text, the first ones while it is folded. What says that one row is left out would
/// take the room of that row.
pub(super) fn cut_rows(
    rows: Vec<Line<'static>>,
    limit: usize,
    desk: &Desk<'_>,
    out: &mut Vec<Line<'static>>,
) {
    let hidden = rows.len().saturating_sub(limit);
    if desk.expanded || hidden <= 1 {
        out.extend(rows);
        return;
    }
    out.extend(rows.into_iter().take(limit));
    out.push(more(hidden as u64, "row", desk.theme));
}

// ---- words -----------------------------------------------------------------------------------

/// `… 12 more lines`.
pub(super) fn more(n: u64, what: &str, theme: &Theme) -> Line<'static> {
    let plural = if n == 1 { "" } else { "s" };
    let text = format!("{} {} more {what}{plural}", theme.glyphs.ellipsis, thousands(n));
    Line::styled(text, theme.dim)
}

/// `1 line`, `2,000 lines`.
pub(super) fn count(n: u64, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {what}{plural}", thousands(n))
}

pub(in crate::tui::view) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `900ms`, `3.2s`, `41s`, `2m 05s`, `1h 02m`.
pub(super) fn elapsed(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms}ms"),
        1..10 => format!("{}.{}s", seconds, ms % 1000 / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The last `bytes` bytes, from a character's start.
pub(super) fn tail(text: &str, bytes: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..).unwrap_or_default()
}

/// The first `bytes` bytes, to a character's end.
pub(crate) fn head(text: &str, bytes: usize) -> &str {
    let mut to = text.len().min(bytes);
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    text.get(..to).unwrap_or_default()
}
