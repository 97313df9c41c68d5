//! What is copied: the source of a block, a fence or a turn, never the drawn lines.
//!
//! Pure functions over the transcript. Called by the application's copy and export keys.

use super::Transcript;
use super::block::{BlockId, BlockKind, Notice, Plan, StepStatus};
use super::body::{Body, SpillKey};
use super::tool::{ToolCall, ToolPart};

/// A stretch of a text, some of which may be on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// Text as it is.
    Text(String),
    /// A text on disk, and what memory holds of it.
    Spilled {
        /// Where it is.
        key: SpillKey,
        /// Its beginning and its end, with a mark between.
        held: String,
    },
    /// What is fenced once it is complete: only then is it known how long the fence must be.
    Fenced(Vec<Self>),
}

/// Puts chunks together. `read` fetches what is on disk; where it cannot, what memory holds is
/// taken.
pub fn assemble(chunks: &[Chunk], read: &mut dyn FnMut(SpillKey) -> Option<String>) -> String {
    let mut out = String::new();
    for chunk in chunks {
        match chunk {
            Chunk::Text(text) => out.push_str(text),
            Chunk::Spilled { key, held } => match read(*key) {
                Some(text) => out.push_str(text.trim_end_matches('\n')),
                None => out.push_str(held),
            },
            Chunk::Fenced(inner) => fence(&mut out, &assemble(inner, read)),
        }
    }
    out
}

/// The source of a block as far as memory holds it: markdown for messages, command and output
/// for tools.
pub fn of_block(transcript: &Transcript, id: BlockId) -> Option<String> {
    Some(assemble(&chunks_of_block(transcript, id)?, &mut |_| None))
}

/// The source of a block in chunks.
pub fn chunks_of_block(transcript: &Transcript, id: BlockId) -> Option<Vec<Chunk>> {
    let block = transcript.block(id)?;
    let text = match &block.kind {
        BlockKind::User(m) | BlockKind::Assistant(m) | BlockKind::Thought(m) => m.text.clone(),
        BlockKind::Tool(call) => return Some(of_tool(transcript, call)),
        BlockKind::Plan(plan) => of_plan(plan),
        BlockKind::Notice(notice) => of_notice(notice),
        BlockKind::TurnEnd(_) => String::new(),
        BlockKind::Subagent(agent) => join(&[&agent.title, &agent.description]),
        BlockKind::Unknown(unknown) => unknown.json.clone(),
    };
    Some(vec![Chunk::Text(text)])
}

/// The texts of a block that lie on disk, and what memory holds of each.
pub fn spilled_of_block(transcript: &Transcript, id: BlockId) -> Vec<(SpillKey, String)> {
    let Some(BlockKind::Tool(call)) = transcript.block(id).map(|block| &block.kind) else {
        return Vec::new();
    };
    let key = |chunk: Chunk| match chunk {
        Chunk::Spilled { key, held } => Some((key, held)),
        Chunk::Text(_) | Chunk::Fenced(_) => None,
    };
    of_tool(transcript, call).into_iter().filter_map(key).collect()
}

/// The whole turn as markdown.
pub fn of_turn(transcript: &Transcript, turn: u32) -> Vec<Chunk> {
    let in_turn = |id: &BlockId| transcript.block(*id).is_some_and(|b| b.turn == turn);
    let ids: Vec<BlockId> = transcript.roots().iter().copied().filter(in_turn).collect();
    markdown(transcript, &ids)
}

/// The whole conversation as markdown, for export.
pub fn of_conversation(transcript: &Transcript) -> Vec<Chunk> {
    markdown(transcript, transcript.roots())
}

/// What is copied when nothing else is said: the selected block, else the last answer.
pub fn marked(transcript: &Transcript, selected: Option<BlockId>) -> Option<Vec<Chunk>> {
    chunks_of_block(transcript, selected.or_else(|| last_answer(transcript))?)
}

/// The last code block of the selected block, else of the last answer that has one.
pub fn code(transcript: &Transcript, selected: Option<BlockId>) -> Option<Vec<Chunk>> {
    let fence = |id: BlockId| last_fence(&of_block(transcript, id)?);
    let found = match selected {
        Some(id) => fence(id),
        None => transcript.roots().iter().rev().find_map(|id| {
            let is_answer = matches!(transcript.block(*id)?.kind, BlockKind::Assistant(_));
            is_answer.then(|| fence(*id)).flatten()
        }),
    };
    Some(vec![Chunk::Text(found?)])
}

/// The turn of the selected block, else the last one.
pub fn turn_of(transcript: &Transcript, selected: Option<BlockId>) -> Option<Vec<Chunk>> {
    let turn =
        selected.and_then(|id| transcript.block(id)).map_or(transcript.turn(), |block| block.turn);
    Some(of_turn(transcript, turn)).filter(|chunks| !chunks.is_empty())
}

fn last_answer(transcript: &Transcript) -> Option<BlockId> {
    let is_answer = |id: &&BlockId| {
        transcript.block(**id).is_some_and(|b| matches!(b.kind, BlockKind::Assistant(_)))
    };
    transcript.roots().iter().rev().find(is_answer).copied()
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

fn markdown(transcript: &Transcript, ids: &[BlockId]) -> Vec<Chunk> {
    let mut out = Vec::new();
    blocks(transcript, ids, &mut out);
    if !out.is_empty() {
        out.push(Chunk::Text("\n".to_owned()));
    }
    out
}

/// Blocks with what is nested in them, a blank line between each two.
fn blocks(transcript: &Transcript, ids: &[BlockId], out: &mut Vec<Chunk>) {
    for id in ids {
        let Some(block) = transcript.block(*id) else {
            continue;
        };
        let chunks = chunks_of_block(transcript, *id).unwrap_or_default();
        let is_blank = |chunk: &Chunk| matches!(chunk, Chunk::Text(text) if text.trim().is_empty());
        if chunks.iter().all(is_blank) && block.children.is_empty() {
            continue;
        }
        let mut text = |text: &str| out.push(Chunk::Text(text.to_owned()));
        text("\n\n");
        match (&block.kind, chunks) {
            (BlockKind::User(message), _) => {
                let mut quoted = String::new();
                quote(&mut quoted, &message.text);
                text(&quoted);
            }
            (BlockKind::Assistant(message), _) => text(message.text.trim_end()),
            (BlockKind::Plan(plan), _) => text(of_plan(plan).trim_end()),
            (BlockKind::Thought(message), _) => {
                text("<details><summary>thought</summary>\n\n");
                text(message.text.trim_end());
                text("\n\n</details>");
            }
            (BlockKind::Tool(call), chunks) => {
                text(&format!("**{}**\n\n", call.title.replace('\n', " ")));
                out.push(Chunk::Fenced(chunks));
            }
            (BlockKind::Subagent(agent), _) => {
                text(&format!("**{}**\n\n{}", agent.title.replace('\n', " "), agent.description));
            }
            (_, chunks) => out.push(Chunk::Fenced(chunks)),
        }
        if !block.children.is_empty() {
            let steps = format!("\n\n<details><summary>{} steps</summary>", block.children.len());
            out.push(Chunk::Text(steps));
            blocks(transcript, &block.children, out);
            out.push(Chunk::Text("\n\n</details>".to_owned()));
        }
    }
    // Nothing is above the first block.
    if let Some(Chunk::Text(first)) = out.first_mut()
        && first == "\n\n"
    {
        first.clear();
    }
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

fn of_tool(transcript: &Transcript, call: &ToolCall) -> Vec<Chunk> {
    let mut parts: Vec<Vec<Chunk>> = Vec::new();
    let text = |text: String| vec![Chunk::Text(text)];
    if let Some(command) = &call.command {
        parts.push(text(format!("$ {command}")));
    }
    for part in &call.parts {
        match part {
            ToolPart::Text(body) => parts.push(vec![chunk_of(body)]),
            ToolPart::Diff(diff) => {
                let old = diff.old.as_ref().map_or(Chunk::Text(String::new()), chunk_of);
                parts.push(vec![
                    Chunk::Text(format!("--- {}\n", diff.path)),
                    old,
                    Chunk::Text(format!("\n+++ {}\n", diff.path)),
                    chunk_of(&diff.new),
                ]);
            }
            ToolPart::Terminal(id) => {
                let terminal = transcript.terminal(id);
                parts.extend(terminal.map(|terminal| vec![chunk_of(&terminal.output)]));
            }
            ToolPart::Label(label) => parts.push(text(label.clone())),
        }
    }
    if !call.has_content() {
        parts.push(vec![chunk_of(&call.output)]);
    }
    parts.retain(|part| part.iter().any(|c| !matches!(c, Chunk::Text(text) if text.is_empty())));
    let mut out = Vec::new();
    for part in parts {
        if !out.is_empty() {
            out.push(Chunk::Text("\n".to_owned()));
        }
        out.extend(part);
    }
    out
}

/// A text: what memory holds of it has a mark where the middle is on disk.
fn chunk_of(body: &Body) -> Chunk {
    if let Some(text) = body.whole() {
        return Chunk::Text(text.to_owned());
    }
    let held = format!("{}\n[… {} bytes …]\n{}", body.head(), body.dropped(), body.tail());
    match body.spill() {
        Some(key) => Chunk::Spilled { key, held },
        None => Chunk::Text(held),
    }
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
