//! The kinds of block a conversation is made of, each with its source.
//!
//! Owns plain values only. Must not hold lines, colours or widths: those are made by the view.
//! Called by the transcript model, by `update::acp` and by the view.

use super::tool::ToolCall;

/// Names a block for as long as the transcript lives. Ids grow in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// One block of the conversation.
#[derive(Debug)]
pub struct Block {
    /// Its name.
    pub id: BlockId,
    /// The tool call or subagent that it belongs to.
    pub parent: Option<BlockId>,
    /// How many parents are above it.
    pub depth: u8,
    /// The turn it came in, counted from 1; 0 before the first prompt.
    pub turn: u32,
    /// When it came, in milliseconds of the caller's clock.
    pub created_ms: u64,
    /// Grows with every change of the block or of a child's header.
    pub rev: u32,
    /// What it is.
    pub kind: BlockKind,
    /// Blocks that belong to it, in order of arrival.
    pub children: Vec<BlockId>,
}

/// What a block is.
#[derive(Debug)]
pub enum BlockKind {
    /// What the person sent.
    User(Message),
    /// What the agent says, as markdown.
    Assistant(Message),
    /// What the agent thinks.
    Thought(Message),
    /// A tool call.
    Tool(Box<ToolCall>),
    /// The agent's plan.
    Plan(Plan),
    /// Something to know that is no failure.
    Notice(Notice),
    /// The end of a turn.
    TurnEnd(TurnEnd),
    /// A child session of the agent.
    Subagent(Subagent),
    /// An update that this client does not know, shown as it came.
    Unknown(Unknown),
}

/// A text that grows while it streams.
#[derive(Debug, Default)]
pub struct Message {
    /// The source.
    pub text: String,
    /// Whether more may come.
    pub streaming: bool,
    /// The id the agent gave it.
    pub message_id: Option<String>,
    /// Things that are not text, each as one label.
    pub attachments: Vec<String>,
    /// Words of the text that are paths of pictures, with what is shown for each.
    pub pictures: Vec<(String, String)>,
    /// When the last of it came.
    pub ended_ms: u64,
    /// Grows when `text` is replaced rather than continued.
    pub epoch: u32,
    pub(super) lines: LineCount,
}

impl Message {
    /// Continues the text, in time proportional to `text`.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.lines.push(text);
    }

    /// Lines of the text without the white space at its end; at least one. Counted when text comes,
    /// because a header that shows it is drawn many times a second.
    pub fn lines(&self) -> u64 {
        self.lines.within + 1
    }
}

/// Counts line feeds of a text that grows.
#[derive(Debug, Default)]
pub(super) struct LineCount {
    all: u64,
    /// Those before the last character that is no white space.
    within: u64,
}

impl LineCount {
    fn push(&mut self, text: &str) {
        let feeds = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        let visible = text.trim_end();
        if !visible.is_empty() {
            self.within = self.all + feeds(visible);
        }
        self.all += feeds(text);
    }
}

/// A plan: entries, or a text that the agent wrote.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The id the agent gave it; empty for the one plan of stable ACP.
    pub id: String,
    /// The steps.
    pub entries: Vec<PlanEntry>,
    /// A plan written as markdown.
    pub markdown: Option<String>,
    /// A plan kept in a file.
    pub uri: Option<String>,
    /// Whether the agent took it back.
    pub removed: bool,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanEntry {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: StepStatus,
    /// How much it matters.
    pub priority: Priority,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
}

/// How much a step matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// High.
    High,
    /// The usual.
    Medium,
    /// Low.
    Low,
}

/// How loud a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Good to know.
    Info,
    /// May need care.
    Warning,
    /// Something failed.
    Error,
}

/// A notice or an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How loud it is.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// More of it.
    pub detail: String,
    /// What the person can do about it.
    pub hint: Option<String>,
    /// Whether it is still going on (a compaction that runs).
    pub running: bool,
}

/// How a turn ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnEnd {
    /// Why, unless it ended of itself: `cancelled`, `refused`, `token limit`.
    pub reason: Option<String>,
    /// How long the turn took.
    pub elapsed_ms: u64,
    /// Tokens used by the turn.
    pub tokens: Option<u64>,
}

/// A child session.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Subagent {
    /// Its session id.
    pub session_id: String,
    /// Its name.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Whether it works.
    pub running: bool,
    /// It was said to run: it ends when it is said to, not with the turn.
    pub told: bool,
    /// It can be cancelled alone.
    pub cancellable: bool,
    /// How it ended, when not well.
    pub failure: Option<String>,
    /// When it began.
    pub started_ms: u64,
    /// When it last became idle.
    pub ended_ms: Option<u64>,
}

/// An update of a kind that this client does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its `sessionUpdate` value.
    pub name: String,
    /// Its JSON, indented.
    pub json: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_are_counted_as_the_text_comes_and_agree_with_the_whole(
            pieces in proptest::collection::vec("[a\\n \u{2003}]{0,6}", 0..12),
        ) {
            let mut message = Message::default();
            for piece in &pieces {
                message.push(piece);
                let whole = message.text.trim_end().matches('\n').count() as u64 + 1;
                prop_assert_eq!(message.lines(), whole, "{:?}", message.text);
            }
            prop_assert_eq!(message.text, pieces.concat());
        }
    }
}
