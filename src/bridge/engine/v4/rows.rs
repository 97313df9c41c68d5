//! PURE. What is remembered of a topic's rows, and what each operation changes about them, as [`Fact`]s in order.
//!
//! A row keeps lengths and check sums of its texts, never the texts: a piece costs the work of that piece, and a whole row
//! that comes again (every change of state sends one) yields the part that is new. Called by [`super::topic`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::super::halves::Waiting;
use super::state::StatePatch;
use super::wire::{Row, RowId};

/// Most rows that are remembered; changes of older ones are passed over.
const MAX_ROWS: usize = 4096;
/// Of the rows that will not change any more, only so many of the newest: twice the window of a picture.
const MAX_SETTLED: usize = 128;

/// The kinds of row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// One per turn: its state.
    TurnHeader,
    /// What was said to the agent.
    UserInput,
    /// Message text.
    AssistantText,
    /// Thought text.
    Reasoning,
    /// A tool call.
    ToolCall,
    /// A subagent, under the call that started it.
    Subagent,
    /// A mark: compaction, model change, retry notice, …
    Timeline,
    /// A hook of the user's that ran.
    Hook,
    /// Something that the agent made.
    Artifact,
    /// A kind this bridge has no use for.
    Other,
}

impl RowKind {
    /// True for rows that a client is shown something of.
    pub fn speaks(self) -> bool {
        !matches!(
            self,
            Self::TurnHeader | Self::UserInput | Self::Subagent | Self::Timeline | Self::Other
        )
    }

    fn from_wire(kind: &str) -> Self {
        match kind {
            "turnHeader" => Self::TurnHeader,
            "userInput" => Self::UserInput,
            "assistantText" => Self::AssistantText,
            "reasoning" => Self::Reasoning,
            "toolCall" => Self::ToolCall,
            "subagent" => Self::Subagent,
            "timelineMarker" => Self::Timeline,
            "hookInvocation" => Self::Hook,
            "artifact" => Self::Artifact,
            _ => Self::Other,
        }
    }
}

/// What a fact needs to know of its row; shared, so that a piece of text costs no copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowHead {
    /// The row.
    pub row_id: RowId,
    /// Its kind.
    pub kind: RowKind,
    /// The turn it stands in.
    pub turn_id: Option<String>,
    /// The assistant message, for the text kinds.
    pub message_id: Option<String>,
    /// The call, for `toolCall`.
    pub tool_call_id: Option<String>,
    /// The tool.
    pub tool_name: Option<String>,
    /// The call that started a subagent, or that this call runs inside.
    pub parent_tool_call_id: Option<String>,
    /// A subagent's session.
    pub child_session_id: Option<String>,
}

/// A piece of a row's text, and where in that text it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    /// Bytes before it. Not 0 for a row's first piece means that its beginning is history.
    pub at: usize,
    /// The piece.
    pub text: String,
}

/// One thing that changed in a topic.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A picture of the whole topic follows: the first one, or one after a gap.
    Snapshot {
        /// The first one of this topic, or one of a new log: its rows are history.
        initial: bool,
        /// Rows are missing between what was known and the picture, or nothing is known of them but the picture.
        hole: bool,
        /// A turn was running: something of it may be in the picture that the legacy channel has still to say.
        running: bool,
        /// The turns of its rows, when these are not said: the rows miss the beginning of those turns.
        unsaid: Vec<String>,
        /// The newest row names no turn (and is not said).
        nameless: bool,
    },
    /// A row that was not there before; details follow as facts of their own.
    Opened(Arc<RowHead>),
    /// Message or thought text, the next piece.
    Text(Arc<RowHead>, Piece),
    /// Text that does not continue what was there: the row was written anew.
    Rewritten(Arc<RowHead>, String),
    /// A text row is complete, interrupted or failed.
    Closed(Arc<RowHead>, String),
    /// A tool's input, the next piece (JSON text).
    InputText(Arc<RowHead>, Piece),
    /// A tool's whole input.
    Input(Arc<RowHead>, Value),
    /// A tool's output, the next piece.
    Output(Arc<RowHead>, Piece),
    /// A tool's output that does not continue what was there.
    OutputWhole(Arc<RowHead>, String),
    /// A tool call changed its state.
    Tool(Arc<RowHead>, ToolChange),
    /// A turn changed its state.
    Turn(Arc<RowHead>, TurnChange),
    /// Something was said to the agent.
    UserInput(Arc<RowHead>, Said),
    /// A subagent appeared or changed its state.
    Subagent(Arc<RowHead>, SubagentChange),
    /// A subagent's own summary, the next piece.
    Summary(Arc<RowHead>, Piece),
    /// A mark.
    Marker(Arc<RowHead>, Value),
    /// A hook or an artifact appeared or changed its state.
    Extra(Arc<RowHead>, Box<Extra>),
    /// Rows that are no longer there.
    Removed(Vec<Arc<RowHead>>),
    /// State keys that changed.
    State(Box<StatePatch>),
}

impl Fact {
    /// The row it is about, where it is about one.
    pub fn head(&self) -> Option<&Arc<RowHead>> {
        match self {
            Self::Opened(head)
            | Self::Text(head, _)
            | Self::Rewritten(head, _)
            | Self::Closed(head, _)
            | Self::InputText(head, _)
            | Self::Input(head, _)
            | Self::Output(head, _)
            | Self::OutputWhole(head, _)
            | Self::Tool(head, _)
            | Self::Turn(head, _)
            | Self::UserInput(head, _)
            | Self::Subagent(head, _)
            | Self::Summary(head, _)
            | Self::Marker(head, _)
            | Self::Extra(head, _) => Some(head),
            Self::Snapshot { .. } | Self::Removed(_) | Self::State(_) => None,
        }
    }
}

/// State of a tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolChange {
    /// `inputStreaming`, `pendingApproval`, `running`, `success`, `error` or `cancelled`.
    pub status: String,
    /// Why it failed.
    pub error: Option<Value>,
    /// Its whole output, with an end state.
    pub output: Option<Value>,
    /// A preview of output that has no text.
    pub output_preview: Option<Value>,
    /// It goes on in the background …
    pub backgrounded: bool,
    /// … as this work.
    pub work_id: Option<String>,
}

/// State of a turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnChange {
    /// `running`, `completedSuccess`, `completedInterrupted` or `failed`.
    pub state: String,
    /// `realUser`, `backgroundResult`, `goalContinuation`, …
    pub origin: Option<String>,
    /// What it changed.
    pub file_changes: Option<Value>,
}

/// A user's input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// What was said.
    pub text: String,
    /// `realUser`, `backgroundResult`, …
    pub origin: Option<String>,
    /// It was taken into a running turn.
    pub guided: bool,
    /// The command it came with.
    pub source_command_id: Option<String>,
}

/// State of a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubagentChange {
    /// `running`, `waiting`, `blocked`, `success`, `failed`, `cancelled` or `lost`.
    pub status: String,
    /// Its type.
    pub subagent_type: Option<String>,
    /// What it is to do.
    pub title: Option<String>,
}

/// State of a hook or an artifact. No source gives their fields: the usual ones are read, each of them optional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// `running`, `success`, `error`, …; empty where it has none.
    pub state: String,
    /// What it is called.
    pub title: Option<String>,
    /// A file or an address.
    pub place: Option<String>,
    /// What it has to say.
    pub text: Option<String>,
    /// Why it failed.
    pub error: Option<Value>,
}

/// How much of a text is known, without the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Grown {
    len: usize,
    crc: u32,
    half: Waiting,
}

enum Whole {
    Same,
    Longer(Piece),
    Other,
}

impl Grown {
    fn append(&mut self, text: String) -> Piece {
        let text = self.half.join(text);
        let mut hasher = crc32fast::Hasher::new_with_initial_len(self.crc, self.len as u64);
        hasher.update(text.as_bytes());
        let piece = Piece { at: self.len, text };
        self.len += piece.text.len();
        self.crc = hasher.finalize();
        piece
    }

    /// Compares with a whole text and takes it over.
    fn replace(&mut self, text: &str) -> Whole {
        let known = text.get(..self.len).filter(|it| crc32fast::hash(it.as_bytes()) == self.crc);
        let whole = match known.and_then(|_| text.get(self.len..)) {
            Some("") => Whole::Same,
            Some(suffix) => Whole::Longer(Piece { at: self.len, text: suffix.to_owned() }),
            None => Whole::Other,
        };
        let crc = crc32fast::hash(text.as_bytes());
        *self = Self { len: text.len(), crc, half: Waiting::default() };
        whole
    }
}

#[derive(Debug)]
struct Kept {
    head: Arc<RowHead>,
    text: Grown,
    summary: Grown,
    input: Grown,
    output: Grown,
    /// `state` or `status`, whichever the kind has.
    state: String,
    input_known: bool,
}

/// The rows of one topic.
#[derive(Debug, Default)]
pub(super) struct Rows {
    known: HashMap<RowId, Kept>,
    order: VecDeque<RowId>,
    /// The number of the newest row that was forgotten: what comes of an older one is no news.
    forgotten: Option<u64>,
}

impl Rows {
    /// Takes a whole row. Rows that are `quiet` are history: they are remembered and yield no facts.
    pub(super) fn upsert(&mut self, row: Row, quiet: bool, out: &mut Vec<Fact>) {
        let start = out.len();
        if !self.known.contains_key(&row.row_id) {
            if self.is_forgotten(&row.row_id) {
                return;
            }
            let head = Arc::new(head_of(&row));
            out.push(Fact::Opened(head.clone()));
            self.order.push_back(row.row_id.clone());
            let kept = Kept {
                head,
                text: Grown::default(),
                summary: Grown::default(),
                input: Grown::default(),
                output: Grown::default(),
                state: String::new(),
                input_known: false,
            };
            self.known.insert(row.row_id.clone(), kept);
            self.forget_old();
        }
        if let Some(kept) = self.known.get_mut(&row.row_id) {
            kept.merge(row, out);
        }
        if quiet {
            out.truncate(start);
        }
    }

    /// Adds a piece to a row's text; false when the row is newer than every known one (its beginning was lost).
    pub(super) fn delta(
        &mut self,
        row_id: &RowId,
        path: &str,
        piece: String,
        out: &mut Vec<Fact>,
    ) -> bool {
        let Some(kept) = self.known.get_mut(row_id) else {
            return self.order.back().is_some_and(|newest| row_id < newest);
        };
        if piece.is_empty() {
            return true;
        }
        let head = kept.head.clone();
        match path {
            "text" => {
                out.push(Fact::Text(head, kept.text.append(piece)));
            }
            "inputText" => {
                out.push(Fact::InputText(head, kept.input.append(piece)));
            }
            "output.text" => {
                out.push(Fact::Output(head, kept.output.append(piece)));
            }
            "summaryText" => {
                out.push(Fact::Summary(head, kept.summary.append(piece)));
            }
            _ => {}
        }
        true
    }

    /// Removes that row and all later ones.
    pub(super) fn remove_from(&mut self, row_id: &RowId, out: &mut Vec<Fact>) {
        let known = self.order.iter().rposition(|it| it == row_id);
        // Of those that were forgotten there is nothing to say; those behind them are told.
        let behind =
            self.is_forgotten(row_id).then(|| self.order.iter().position(|it| it > row_id));
        self.ends_before(row_id);
        let Some(position) = known.or(behind.flatten()) else { return };
        let removed = self.order.split_off(position);
        let heads =
            removed.iter().filter_map(|it| self.known.remove(it)).map(|it| it.head).collect();
        out.push(Fact::Removed(heads));
    }

    /// Numbers from this one on may be given to other rows.
    fn ends_before(&mut self, row_id: &RowId) {
        if let (RowId::Number(first), Some(newest)) = (row_id, &mut self.forgotten) {
            *newest = (*newest).min(first.saturating_sub(1));
        }
    }

    fn is_forgotten(&self, row_id: &RowId) -> bool {
        matches!((row_id, self.forgotten), (RowId::Number(id), Some(newest)) if *id <= newest)
    }

    /// Takes the rows of a picture; returns true when some are missing between it and what was known.
    pub(super) fn replace(
        &mut self,
        window: Vec<Row>,
        has_more: bool,
        quiet: bool,
        out: &mut Vec<Fact>,
    ) -> bool {
        let hole = self.misses(&window, has_more);
        let gone = match window.first().map(|it| &it.row_id) {
            Some(first) => self
                .order
                .iter()
                .find(|it| *it >= first && !window.iter().any(|row| row.row_id == **it)),
            None => self.order.front(),
        };
        if let Some(gone) = gone.cloned() {
            // Rows after a removed one that are still there come again with the window, so they open again.
            self.remove_from(&gone, out);
        }
        match window.last() {
            Some(Row { row_id: RowId::Number(last), .. }) => {
                self.forgotten = self.forgotten.map(|newest| newest.min(*last));
            }
            _ => self.forgotten = None,
        }
        for row in window {
            self.upsert(row, quiet, out);
        }
        hole
    }

    /// True when there are rows between what is known and this window.
    pub(super) fn misses(&self, window: &[Row], has_more: bool) -> bool {
        let overlaps = window.first().is_none_or(|it| self.known.contains_key(&it.row_id));
        has_more && !overlaps
    }

    /// How many rows are remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.known.len(), self.order.len());
        self.order.len()
    }

    /// True when no row is known.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Forgets everything (another log began).
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.order.clear();
        self.forgotten = None;
    }

    /// Keeps what may still change and the newest of the rest, so that a long session needs no more
    /// than a short one.
    fn forget_old(&mut self) {
        // The work is put off until it is worth it: a row that was added costs a constant share of it.
        if self.order.len() < 2 * MAX_SETTLED {
            return;
        }
        let mut surplus = self.order.len() - MAX_SETTLED;
        let mut excess = self.order.len().saturating_sub(MAX_ROWS);
        let (known, forgotten) = (&mut self.known, &mut self.forgotten);
        self.order.retain(|id| {
            // Only numbers tell which of two rows is the older one.
            let number = if let RowId::Number(number) = id { Some(*number) } else { None };
            let is_settled = known.get(id).is_none_or(Kept::is_settled) && number.is_some();
            let goes = surplus > 0 && (is_settled || excess > 0);
            surplus = surplus.saturating_sub(1);
            if goes {
                excess = excess.saturating_sub(1);
                known.remove(id);
                *forgotten = (*forgotten).max(number);
            }
            !goes
        });
        self.known.shrink_to(2 * MAX_SETTLED);
    }
}

impl Kept {
    /// True when nothing more is to come of it.
    fn is_settled(&self) -> bool {
        match self.head.kind {
            RowKind::AssistantText | RowKind::Reasoning => {
                !matches!(self.state.as_str(), "" | "streaming")
            }
            RowKind::TurnHeader => !matches!(self.state.as_str(), "" | "running"),
            RowKind::ToolCall => matches!(self.state.as_str(), "success" | "error" | "cancelled"),
            RowKind::Subagent => {
                matches!(self.state.as_str(), "success" | "failed" | "cancelled" | "lost")
            }
            RowKind::Hook => !matches!(self.state.as_str(), "" | "running"),
            RowKind::UserInput | RowKind::Timeline | RowKind::Artifact | RowKind::Other => true,
        }
    }

    fn merge(&mut self, mut row: Row, out: &mut Vec<Fact>) {
        let fresh = self.state.is_empty();
        self.merge_head(&row);
        let head = &self.head;
        if let Some(text) = row
            .text
            .as_deref()
            .filter(|_| matches!(head.kind, RowKind::AssistantText | RowKind::Reasoning))
        {
            match self.text.replace(text) {
                Whole::Same => {}
                Whole::Longer(piece) => out.push(Fact::Text(head.clone(), piece)),
                Whole::Other => out.push(Fact::Rewritten(head.clone(), text.to_owned())),
            }
        }
        match head.kind {
            RowKind::AssistantText | RowKind::Reasoning => self.merge_text_state(row, out),
            RowKind::ToolCall => self.merge_tool(row, out),
            RowKind::TurnHeader => {
                let state = row.state.unwrap_or_default();
                if state != self.state {
                    self.state.clone_from(&state);
                    let change =
                        TurnChange { state, origin: row.origin, file_changes: row.file_changes };
                    out.push(Fact::Turn(head.clone(), change));
                }
            }
            RowKind::UserInput if fresh => {
                "said".clone_into(&mut self.state);
                let said = Said {
                    text: row.text.take().unwrap_or_default(),
                    origin: row.origin,
                    guided: row.guided == Some(true),
                    source_command_id: row.source_command_id,
                };
                out.push(Fact::UserInput(head.clone(), said));
            }
            RowKind::Subagent => self.merge_subagent(row, out),
            RowKind::Timeline => {
                if let Some(marker) = row.marker.filter(|_| fresh) {
                    "marked".clone_into(&mut self.state);
                    out.push(Fact::Marker(head.clone(), marker));
                }
            }
            RowKind::Hook | RowKind::Artifact => self.merge_extra(row, fresh, out),
            RowKind::UserInput | RowKind::Other => {}
        }
    }

    /// Fills in what a row did not say at first; nothing that was said is unsaid.
    fn merge_head(&mut self, row: &Row) {
        let new = head_of(row);
        let head = &self.head;
        let adds = |old: &Option<String>, new: &Option<String>| new.is_some() && old != new;
        if adds(&head.message_id, &new.message_id)
            || adds(&head.tool_call_id, &new.tool_call_id)
            || adds(&head.tool_name, &new.tool_name)
            || adds(&head.parent_tool_call_id, &new.parent_tool_call_id)
            || adds(&head.child_session_id, &new.child_session_id)
        {
            let head = Arc::make_mut(&mut self.head);
            head.message_id = new.message_id.or(head.message_id.take());
            head.tool_call_id = new.tool_call_id.or(head.tool_call_id.take());
            head.tool_name = new.tool_name.or(head.tool_name.take());
            head.parent_tool_call_id = new.parent_tool_call_id.or(head.parent_tool_call_id.take());
            head.child_session_id = new.child_session_id.or(head.child_session_id.take());
        }
    }

    fn merge_text_state(&mut self, row: Row, out: &mut Vec<Fact>) {
        let state = row.state.unwrap_or_default();
        if state != self.state {
            self.state.clone_from(&state);
            if !matches!(state.as_str(), "" | "streaming") {
                out.push(Fact::Closed(self.head.clone(), state));
            }
        }
    }

    fn merge_tool(&mut self, row: Row, out: &mut Vec<Fact>) {
        let head = &self.head;
        if let Some(text) = row.input_text.as_deref()
            && let Whole::Longer(piece) = self.input.replace(text)
        {
            out.push(Fact::InputText(head.clone(), piece));
        }
        if let Some(text) = row.output_text() {
            match self.output.replace(text) {
                Whole::Same => {}
                Whole::Longer(piece) => out.push(Fact::Output(head.clone(), piece)),
                Whole::Other => out.push(Fact::OutputWhole(head.clone(), text.to_owned())),
            }
        }
        if let Some(input) = row.input.filter(|_| !self.input_known) {
            self.input_known = true;
            out.push(Fact::Input(head.clone(), input));
        }
        let status = row.status.unwrap_or_default();
        if status != self.state {
            self.state.clone_from(&status);
            let change = ToolChange {
                status,
                error: row.error,
                output: row.output,
                output_preview: row.output_preview,
                backgrounded: row.backgrounded == Some(true),
                work_id: row.work_id,
            };
            out.push(Fact::Tool(head.clone(), change));
        }
    }

    fn merge_extra(&mut self, row: Row, fresh: bool, out: &mut Vec<Fact>) {
        let state = row.status.or(row.state).unwrap_or_default();
        // One without a state counts as known once it was seen.
        let kept = if state.is_empty() { "there".to_owned() } else { state.clone() };
        if !fresh && kept == self.state {
            return;
        }
        self.state = kept;
        let said = row.text.or(row.message).or(row.summary_text);
        let output = row.output.as_ref().and_then(|it| it.as_str().or(it.get("text")?.as_str()));
        let extra = Extra {
            state,
            title: row.title.or(row.name),
            place: row.path.or(row.url),
            text: said.or_else(|| output.map(str::to_owned)).filter(|it| !it.is_empty()),
            error: row.error,
        };
        out.push(Fact::Extra(self.head.clone(), Box::new(extra)));
    }

    fn merge_subagent(&mut self, row: Row, out: &mut Vec<Fact>) {
        let head = &self.head;
        let status = row.status.unwrap_or_default();
        if status != self.state {
            self.state.clone_from(&status);
            let change =
                SubagentChange { status, subagent_type: row.subagent_type, title: row.title };
            out.push(Fact::Subagent(head.clone(), change));
        }
        if let Some(text) = row.summary_text.as_deref()
            && let Whole::Longer(piece) = self.summary.replace(text)
        {
            out.push(Fact::Summary(head.clone(), piece));
        }
    }
}

fn head_of(row: &Row) -> RowHead {
    RowHead {
        row_id: row.row_id.clone(),
        kind: RowKind::from_wire(&row.kind),
        turn_id: row.turn_id.clone(),
        message_id: row.message_id().map(str::to_owned),
        tool_call_id: row.tool_call_id.clone(),
        tool_name: row.tool_name.clone(),
        parent_tool_call_id: row.parent_tool_call_id.clone(),
        child_session_id: row.child_session_id.clone(),
    }
}
