//! What is copied: the source of a block, a fence or a turn, never the drawn lines.
//!
//! Pure functions over the transcript. Called by the application's copy and export keys.

use super::Transcript;
use super::block::{BlockId, BlockKind, Notice, Plan, StepStatus};
use super::body::Body;
use super::tool::{ToolCall, ToolPart};

/// The source of a block: markdown for messages, command and output for tools.
pub fn of_block(transcript: &Transcript, id: BlockId) -> Option<String> {
    let block = transcript.block(id)?;
    Some(match &block.kind {
        BlockKind::User(m) | BlockKind::Assistant(m) | BlockKind::Thought(m) => m.text.clone(),
        BlockKind::Tool(call) => of_tool(transcript, call),
        BlockKind::Plan(plan) => of_plan(plan),
        BlockKind::Notice(notice) => of_notice(notice),
        BlockKind::TurnEnd(_) => String::new(),
        BlockKind::Subagent(agent) => join(&[&agent.title, &agent.description]),
        BlockKind::Unknown(unknown) => unknown.json.clone(),
    })
}

/// The whole turn as markdown.
pub fn of_turn(transcript: &Transcript, turn: u32) -> String {
    markdown(
        transcript,
        transcript
            .roots()
            .iter()
            .filter(|id| transcript.block(**id).is_some_and(|b| b.turn == turn)),
    )
}

/// The whole conversation as markdown, for export.
pub fn of_conversation(transcript: &Transcript) -> String {
    markdown(transcript, transcript.roots().iter())
}

/// The text of the last fenced code block of `markdown` that is closed or still open.
pub fn last_fence(markdown: &str) -> Option<String> {
    fences(markdown).pop()
}

/// The texts of all fenced code blocks of `markdown`, in order.
pub fn fences(markdown: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(char, usize, String)> = None;
    for line in markdown.split_inclusive('\n') {
        let bare = line.trim_start();
        let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'));
        let count = mark.map_or(0, |mark| bare.chars().take_while(|c| *c == mark).count());
        match open.take() {
            Some((fence, width, text)) => {
                let closes = mark == Some(fence)
                    && count >= width
                    && bare.trim().chars().all(|c| c == fence);
                if closes {
                    found.push(text);
                } else {
                    open = Some((fence, width, text + line));
                }
            }
            None => {
                if let Some(mark) = mark
                    && count >= 3
                {
                    open = Some((mark, count, String::new()));
                }
            }
        }
    }
    found.extend(open.map(|(_, _, text)| text));
    found
}

fn markdown<'a>(transcript: &Transcript, ids: impl Iterator<Item = &'a BlockId>) -> String {
    let mut out = String::new();
    for id in ids {
        let Some(block) = transcript.block(*id) else {
            continue;
        };
        let text = of_block(transcript, *id).unwrap_or_default();
        if text.trim().is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        match &block.kind {
            BlockKind::User(_) => quote(&mut out, &text),
            BlockKind::Assistant(_) | BlockKind::Plan(_) => out.push_str(text.trim_end()),
            BlockKind::Thought(_) => {
                out.push_str("<details><summary>thought</summary>\n\n");
                out.push_str(text.trim_end());
                out.push_str("\n\n</details>");
            }
            BlockKind::Tool(call) => {
                out.push_str("**");
                out.push_str(&call.title);
                out.push_str("**\n\n");
                fence(&mut out, &text);
            }
            _ => fence(&mut out, &text),
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn quote(out: &mut String, text: &str) {
    for (n, line) in text.lines().enumerate() {
        if n > 0 {
            out.push('\n');
        }
        out.push_str("> ");
        out.push_str(line);
    }
}

/// Fences `text` with more backticks than it holds in a row.
fn fence(out: &mut String, text: &str) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let mark = "`".repeat(longest.max(2) + 1);
    for piece in [mark.as_str(), "\n", text.trim_end(), "\n", mark.as_str()] {
        out.push_str(piece);
    }
}

fn of_tool(transcript: &Transcript, call: &ToolCall) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(command) = &call.command {
        parts.push(format!("$ {command}"));
    }
    for part in &call.parts {
        match part {
            ToolPart::Text(body) => parts.push(text_of(body)),
            ToolPart::Diff(diff) => parts.push(format!(
                "--- {path}\n{old}\n+++ {path}\n{new}",
                path = diff.path,
                old = diff.old.as_ref().map(text_of).unwrap_or_default(),
                new = text_of(&diff.new)
            )),
            ToolPart::Terminal(id) => {
                parts.extend(transcript.terminal(id).map(|terminal| text_of(&terminal.output)));
            }
            ToolPart::Label(label) => parts.push(label.clone()),
        }
    }
    if !call.has_content() {
        parts.push(text_of(&call.output));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// What memory holds of a text, with a mark where the middle is on disk.
fn text_of(body: &Body) -> String {
    body.whole().map_or_else(
        || format!("{}\n[… {} bytes …]\n{}", body.head(), body.dropped(), body.tail()),
        str::to_owned,
    )
}

fn of_plan(plan: &Plan) -> String {
    if let Some(text) = &plan.markdown {
        return text.clone();
    }
    let mut lines: Vec<String> = plan
        .entries
        .iter()
        .map(|entry| {
            let mark = if entry.status == StepStatus::Completed { "x" } else { " " };
            format!("- [{mark}] {}", entry.content)
        })
        .collect();
    lines.extend(plan.uri.clone());
    lines.join("\n")
}

fn of_notice(notice: &Notice) -> String {
    join(&[&notice.title, &notice.detail, notice.hint.as_deref().unwrap_or_default()])
}

fn join(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}
