//! A tool call as the transcript keeps it: header facts, content parts, input and output.
//!
//! Owns plain values. Must not know ACP types (see `update::acp`) nor how a card looks.

use super::body::Body;

/// What a tool does, for its icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolKind {
    /// Reads files or data.
    Read,
    /// Changes files.
    Edit,
    /// Removes files.
    Delete,
    /// Moves or renames files.
    Move,
    /// Looks for something.
    Search,
    /// Runs a command.
    Execute,
    /// Thinks or plans.
    Think,
    /// Fetches from the network.
    Fetch,
    /// Changes the session's mode.
    SwitchMode,
    /// Anything else.
    #[default]
    Other,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolStatus {
    /// Announced: its input still streams, or it awaits approval.
    #[default]
    Pending,
    /// Running.
    Running,
    /// Done.
    Completed,
    /// Failed.
    Failed,
    /// Its turn ended before it did.
    Cancelled,
}

impl ToolStatus {
    /// Whether no more is to come.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A place in a file that a tool call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The path as the agent gave it.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// One part of what a tool produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolPart {
    /// Text as a terminal would print it, or markdown.
    Text(Body),
    /// A change of a file.
    Diff(DiffPart),
    /// The output of a terminal, kept in the transcript by its id.
    Terminal(String),
    /// Something that is shown by its name only: an image, a sound, a resource.
    Label(String),
}

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffPart {
    /// The file.
    pub path: String,
    /// What it held; `None` for a new file.
    pub old: Option<Body>,
    /// What it holds now.
    pub new: Body,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exit {
    /// Its exit code.
    pub code: Option<i64>,
    /// The signal that ended it.
    pub signal: Option<String>,
}

impl Exit {
    /// Whether it ended well.
    pub fn is_success(&self) -> bool {
        self.signal.is_none() && self.code.is_none_or(|code| code == 0)
    }
}

/// Output of a terminal that tool calls refer to.
#[derive(Debug, Default)]
pub struct Terminal {
    /// What it printed.
    pub output: Body,
    /// Where it runs.
    pub cwd: Option<String>,
    /// How it ended.
    pub exit: Option<Exit>,
}

/// A tool call.
#[derive(Debug, Default)]
pub struct ToolCall {
    /// Its id.
    pub id: String,
    /// One line that says what it does.
    pub title: String,
    /// The tool's own name.
    pub name: Option<String>,
    /// What it does.
    pub kind: ToolKind,
    /// How far it is.
    pub status: ToolStatus,
    /// What it produced, as ACP content.
    pub parts: Vec<ToolPart>,
    /// The text of `rawOutput`. Shown only where `parts` say nothing.
    pub output: Body,
    /// `rawInput`, as indented JSON.
    pub input: Body,
    /// The command line, when the input holds one.
    pub command: Option<String>,
    /// The failure's reason, when the output names one.
    pub error: Option<String>,
    /// The places it touches.
    pub locations: Vec<Location>,
    /// When it was announced.
    pub started_ms: u64,
    /// When it reached a final status.
    pub ended_ms: Option<u64>,
    /// How its command ended.
    pub exit: Option<Exit>,
    /// Made by an update or a child that came before the call itself.
    pub placeholder: bool,
    /// Came from a replayed history: its times mean nothing.
    pub replayed: bool,
    /// Works in the background: it goes on when its turn is over.
    pub background: bool,
}

impl ToolCall {
    /// Whether it goes on without its turn.
    pub fn is_in_background(&self) -> bool {
        self.background && !self.status.is_final()
    }

    /// Milliseconds it took, or takes so far.
    pub fn elapsed_ms(&self, now_ms: u64) -> Option<u64> {
        if self.replayed {
            return None;
        }
        Some(self.ended_ms.unwrap_or(now_ms).saturating_sub(self.started_ms))
    }

    /// Whether `parts` say anything, so that `output` must not be shown a second time.
    pub fn has_content(&self) -> bool {
        self.parts.iter().any(|part| match part {
            ToolPart::Text(body) => !body.is_empty(),
            ToolPart::Diff(_) | ToolPart::Terminal(_) | ToolPart::Label(_) => true,
        })
    }

    /// Bytes its texts hold in memory.
    pub fn resident(&self) -> usize {
        let parts: usize = self.parts.iter().map(ToolPart::resident).sum();
        parts + self.output.resident() + self.input.resident()
    }
}

impl ToolPart {
    /// Bytes its texts hold in memory.
    pub fn resident(&self) -> usize {
        match self {
            Self::Text(body) => body.resident(),
            Self::Diff(diff) => diff.new.resident() + diff.old.as_ref().map_or(0, Body::resident),
            Self::Terminal(_) | Self::Label(_) => 0,
        }
    }
}
