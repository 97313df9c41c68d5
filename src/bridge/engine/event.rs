//! PURE. What the engine says, as typed values: [`EngineEvent`] and its parts.
//!
//! The border between the engine side (which makes these from frames, see `codec`) and the session
//! side (which translates them). Every field that some engine build leaves out is optional; what
//! is not known is kept as [`SessionBody::Unknown`] or ignored, and never an error. Source of each
//! type: engine protocol sections 4, 5 and 6.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON-RPC id as the engine wrote it: a string or an integer, echoed with the same JSON type.
pub type WireId = Value;

/// One thing that came from the engine, other than a response to a request of ours.
#[derive(Debug, Clone)]
pub enum EngineEvent {
    /// `session/event`: an event of one session's legacy channel.
    Session(Box<SessionEvent>),
    /// `state.updated`: settings and life-cycle broadcast, without a sequence number.
    State(Box<StateUpdated>),
    /// `v4/conversation/frame`: its params as text, for the V4 assembler.
    Frame {
        /// `params.topic`, by which it was routed.
        topic: String,
        /// The params as sent.
        params: Box<RawValue>,
    },
    /// `startup/storageState`: progress of the engine's database migration.
    Storage(StorageState),
    /// A request of the engine's that a session has to answer (permission, user input).
    Request(Box<EngineRequest>),
    /// A notification this bridge has no use for; kept for the trace.
    Other {
        /// The method it came under.
        method: String,
    },
    /// A line that is not a message; the text is cut and redacted.
    Malformed {
        /// Why it was refused.
        reason: String,
    },
    /// The engine is gone. Always the last event.
    Exited(Box<EngineExit>),
}

/// How an engine ended.
#[derive(Debug, Clone, Default)]
pub struct EngineExit {
    /// The exit status in words (`exit status: 1`, `signal: 9`).
    pub status: String,
    /// The last lines of its standard error, oldest first, already redacted.
    pub stderr_tail: Vec<String>,
}

/// Params of `startup/storageState` (section 2).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageState {
    /// `checking`, `waiting_for_lock`, `migrating`, `committing`, `ready` or `failed`.
    pub phase: String,
    /// Milliseconds since the migration began.
    pub elapsed_ms: Option<u64>,
    /// Steps done.
    pub completed: Option<u64>,
    /// Steps in all.
    pub total: Option<u64>,
    /// Set when `phase` is `failed`.
    pub error_code: Option<String>,
}

/// A request of the engine's, to be answered with `EngineHandle::respond`.
#[derive(Debug, Clone)]
pub struct EngineRequest {
    /// The protocol id to answer on (the newest one when it was re-announced).
    pub id: WireId,
    /// The method, for example `interaction/requestPermission`.
    pub method: String,
    /// `params.sessionId`, when there is one.
    pub session_id: Option<String>,
    /// `params.requestId`: stays the same over re-announcements.
    pub request_id: Option<String>,
    /// The params as sent.
    pub params: Value,
}

/// Params of `state.updated`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StateUpdated {
    /// The session it is about; absent for workspace scope.
    pub session_id: Option<String>,
    /// For example `prompt_completed`, `mode_changed`, `session_compacted`.
    pub reason: Option<String>,
    /// Only the fields that changed: `mode.current`, `model.current`, `thoughtLevel.current`, …
    pub patch: Value,
    /// The session's state revision after the change.
    pub revision: Option<Value>,
}

/// Envelope of `session/event`.
#[derive(Debug, Clone)]
pub struct SessionEvent {
    /// The session it belongs to (a child's own id for subagent sessions).
    pub session_id: String,
    /// Counts from 1 without gaps for one delivery kind; 0 when absent.
    pub seq: u64,
    /// From the envelope, else from the payload (older engines).
    pub turn_id: Option<String>,
    /// The event itself.
    pub body: SessionBody,
}

impl SessionEvent {
    /// The number of the first event in this one; differs from `seq` when several were joined.
    pub fn first_seq(&self) -> u64 {
        let more = match &self.body {
            SessionBody::Streaming(streaming) => streaming.joins.len(),
            _ => 0,
        };
        self.seq.saturating_sub(more.try_into().unwrap_or_default())
    }

    /// Cuts off what belongs to events up to number `seen`, which is less than `seq`.
    pub fn skip_seen(&mut self, seen: u64) {
        let old = usize::try_from((seen + 1).saturating_sub(self.first_seq())).unwrap_or_default();
        if let SessionBody::Streaming(streaming) = &mut self.body
            && let Some(begin) = old.checked_sub(1).and_then(|at| streaming.joins.get(at)).copied()
        {
            streaming.delta.drain(..begin.min(streaming.delta.len()));
            streaming.joins.drain(..old);
            streaming.joins.iter_mut().for_each(|at| *at -= begin);
        }
    }
}

/// The events a session knows (section 4).
#[derive(Debug, Clone)]
pub enum SessionBody {
    /// `turn.started`
    TurnStarted(TurnStarted),
    /// `turn.completed`
    TurnCompleted(TurnCompleted),
    /// `turn.failed`
    TurnFailed(TurnFailed),
    /// `turn.terminal`: informational beside completed and failed.
    TurnTerminal(Value),
    /// `turn.steerQueued`
    SteerQueued(SteerQueued),
    /// `turn.steerDrained`
    SteerDrained(SteerDrained),
    /// `model.streaming`
    Streaming(Streaming),
    /// `part.delta`: the text path of some builds.
    PartDelta(PartDelta),
    /// `tool.updated`
    Tool(ToolUpdated),
    /// `session.updated`: several unrelated payloads, told apart by their keys.
    Updated(SessionUpdated),
    /// `session.titleUpdated`
    Title(TitleUpdated),
    /// `permission.requested` / `.resolved`, `userInput.requested` / `.resolved`
    Interaction(InteractionMirror),
    /// `rewind.triggered`: shown history after its target is no longer true.
    Rewind(Value),
    /// Anything else, by its type.
    Unknown {
        /// The event's `type`.
        kind: String,
    },
}

/// Payload of `turn.started`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnStarted {
    /// Absent for a real prompt; else `background_task`, `goal-continuation`, …
    pub input_source: Option<String>,
    /// `user-visible` or `model-only`.
    pub input_visibility: Option<String>,
    /// The `inputId` given with `session/send`.
    pub input_id: Option<String>,
    /// Needed to aim a V4 stop.
    pub foreground_execution_id: Option<String>,
    /// The user message's id.
    pub message_id: Option<String>,
    /// The turn's input text.
    pub input: Option<Value>,
}

/// Payload of `turn.completed`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnCompleted {
    /// `success`, `cancelled`, `error_max_turns`, `error_max_budget`, `error_max_tool_calls`, …
    pub result_type: Option<String>,
    /// The whole reply, when the engine sends it.
    pub response: Option<Value>,
    /// Sum over every model request of the turn; never the context ring.
    pub usage: Option<Value>,
    /// Cache counters.
    pub cache_stats: Option<Value>,
    /// The `inputId` given with `session/send`.
    pub input_id: Option<String>,
}

/// Payload of `turn.failed`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnFailed {
    /// `{type, message, code?, detail?, cause?, retryable?, …}`; nested causes are common.
    pub error: Value,
    /// `cancelled` on some builds.
    pub result_type: Option<String>,
    /// The `inputId` given with `session/send`.
    pub input_id: Option<String>,
}

/// Payload of `turn.steerQueued`; empty on older engines.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SteerQueued {
    /// The queue entry.
    pub pending_input_id: Option<String>,
    /// The `inputId` given with `session/send`, or one of the engine's own making.
    pub input_id: Option<String>,
    /// What it says.
    pub input: Option<Value>,
    /// `queue` or `guide`.
    pub delivery: Option<String>,
    /// The turn it waits behind.
    pub target_turn_id: Option<String>,
    /// `{sourceCommandId, delivery: {requested, admitted, …}, …}`
    pub intent: Option<Value>,
}

impl SteerQueued {
    /// True when a V4 command of somebody's brought it, so that it is no prompt that was sent.
    pub fn is_command(&self) -> bool {
        let command = self.intent.as_ref().and_then(|intent| intent.get("sourceCommandId"));
        command.is_some_and(Value::is_string)
    }
}

/// Payload of `turn.steerDrained`; empty on older engines.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SteerDrained {
    /// The queue entries that were merged into the turn.
    pub pending_input_ids: Vec<String>,
    /// The turn they were merged into.
    pub target_turn_id: Option<String>,
    /// `[{pendingInputId, messageId, text, delivery?, intent?}]`
    pub drained_inputs: Option<Vec<Value>>,
}

/// What a `model.streaming` event carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// A model request begins.
    Start,
    /// A model request ended.
    Finish,
    /// A model request failed (the engine may retry).
    Error,
    /// Message text.
    TextStart,
    /// Message text, the next piece.
    TextDelta,
    /// Message text is complete.
    TextEnd,
    /// Thought text.
    ReasoningStart,
    /// Thought text, the next piece.
    ReasoningDelta,
    /// Thought text is complete.
    ReasoningEnd,
    /// A tool call's input begins.
    ToolInputStart,
    /// A piece of a tool call's input (JSON text).
    ToolInputDelta,
    /// A tool call's input is complete.
    ToolInputEnd,
    /// A tool call with its whole input.
    ToolCall,
    /// A kind this bridge does not know.
    Unknown,
}

/// Payload of `model.streaming`. The hot path: made without an intermediate JSON value.
#[derive(Debug, Clone)]
pub struct Streaming {
    /// Which of the kinds.
    pub kind: StreamKind,
    /// The piece of text.
    pub delta: String,
    /// The assistant message it belongs to.
    pub message_id: Option<String>,
    /// The part within the message.
    pub part_id: Option<String>,
    /// For the tool kinds.
    pub tool_call_id: Option<String>,
    /// For the tool kinds.
    pub tool_name: Option<String>,
    /// For [`StreamKind::ToolCall`].
    pub input: Option<Value>,
    /// For [`StreamKind::Error`].
    pub error: Option<Value>,
    /// Where in `delta` each event but the first begins, when several with numbers in a row were
    /// joined to one; then the event's `seq` is that of the last.
    pub joins: Vec<usize>,
}

/// Payload of `part.delta`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PartDelta {
    /// The message.
    pub message_id: Option<String>,
    /// The part.
    pub part_id: Option<String>,
    /// `text` (default), `reasoning`, `input` or `output`.
    pub field: Option<String>,
    /// The piece of text.
    pub delta: String,
}

/// Payload of `tool.updated`.
#[derive(Debug, Clone)]
pub struct ToolUpdated {
    /// The call it is about (`toolCallId`, `callId` or `callID`); empty for [`ToolPhase::Batch`].
    pub tool_call_id: String,
    /// Often missing on results: remember it per call.
    pub tool_name: Option<String>,
    /// The call this one runs inside.
    pub parent_tool_call_id: Option<String>,
    /// `subagent` when it belongs to one.
    pub source: Option<String>,
    /// The subagent's session.
    pub child_session_id: Option<String>,
    /// The same call's id in the subagent's own session.
    pub child_tool_call_id: Option<String>,
    /// The subagent.
    pub agent_id: Option<String>,
    /// The subagent's type.
    pub agent_type: Option<String>,
    /// A short description of the call.
    pub description: Option<String>,
    /// The call goes on in the background.
    pub background: bool,
    /// Which stage.
    pub phase: ToolPhase,
}

/// The stages of a tool call (`tool.updated.kind`).
#[derive(Debug, Clone)]
pub enum ToolPhase {
    /// The call is known; `input` may be omitted (it came with the model stream).
    Scheduled {
        /// The call's input.
        input: Option<Value>,
    },
    /// It runs.
    Started,
    /// Cumulative tails of its output.
    Progress(ToolProgress),
    /// A piece of its output (V4 rows only).
    Output {
        /// Bytes of the whole output before it.
        at: usize,
        /// The piece.
        text: String,
    },
    /// It ended with a result. `success` stays true for a failing command on some builds.
    Result {
        /// A string, or `{success?, content?, error?, display?, perf?, …}`.
        result: Value,
        /// Milliseconds.
        duration: Option<u64>,
    },
    /// It failed.
    Error {
        /// A string or an object with `message`.
        error: Value,
    },
    /// Several calls ended; never touches one that is final already.
    Batch {
        /// The calls.
        tool_call_ids: Vec<String>,
        /// How many of them failed.
        error_count: u64,
    },
    /// `raw` or a kind this bridge does not know.
    Other,
}

/// Payload of a `progress` stage. Tails are cumulative snapshots, not pieces.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolProgress {
    /// Milliseconds since the start.
    pub elapsed_ms: Option<u64>,
    /// The process.
    pub pid: Option<u64>,
    /// Standard output so far.
    pub stdout_tail: Option<String>,
    /// Standard error so far.
    pub stderr_tail: Option<String>,
    /// A preview of other tools' output.
    pub output_preview: Option<Value>,
}

/// Payload of `session.updated`: look at the parts that are there.
#[derive(Debug, Clone, Default)]
pub struct SessionUpdated {
    /// A background task's life cycle (section 6), when `taskId` is there.
    pub task: Option<BackgroundTask>,
    /// `usage.inputTokens`, when it is a number: what the context holds now.
    pub context_used: Option<u64>,
    /// `contextWindow`, when it is a number.
    pub context_window: Option<u64>,
    /// Retry status, when `kind` is `api_retry`: `{attempt, maxRetries, retryDelayMs, …}`.
    pub api_retry: Option<Value>,
    /// `mode`, when it is a string.
    pub mode: Option<String>,
    /// Plan mode that the agent entered or left by itself.
    pub plan_enabled: Option<bool>,
    /// The payload as sent, for enrichment (`contextUsageBreakdown`, `cacheHit`, …).
    pub raw: Value,
}

/// Payload of a background task's life cycle (section 6).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackgroundTask {
    /// The task.
    pub task_id: String,
    /// The call that launched it.
    pub tool_call_id: Option<String>,
    /// The tool that launched it.
    pub tool_name: Option<String>,
    /// `bash`, `subagent`, `workflow`.
    pub task_kind: Option<String>,
    /// `running`, `completed`, `failed`, `timed_out`, `cancelled`, `spawn_error`, `lost`, …
    pub status: String,
    /// What it does.
    pub description: Option<String>,
    /// The command line.
    pub command: Option<String>,
    /// Where its whole output lies.
    pub output_path: Option<String>,
    /// The end of its output so far.
    pub output_tail: Option<String>,
    /// The end of its standard output so far.
    pub stdout_tail: Option<String>,
    /// The end of its standard error so far.
    pub stderr_tail: Option<String>,
    /// Whether `session/cancelBackgroundTask` can end it.
    pub cancellable: Option<bool>,
    /// The terminal (or agent) it runs in.
    pub terminal_id: Option<String>,
    /// The subagent's session.
    pub child_session_id: Option<String>,
}

/// Payload of `session.titleUpdated`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TitleUpdated {
    /// The new title.
    pub title: String,
    /// `default`, `first_input`, `generated` or `custom`.
    pub source: Option<String>,
}

/// A mirror of an interaction on the event channel.
#[derive(Debug, Clone, Default)]
pub struct InteractionMirror {
    /// True for `.resolved`: another client answered, close the dialog.
    pub resolved: bool,
    /// True for `userInput.*`, false for `permission.*`.
    pub user_input: bool,
    /// The interaction.
    pub request_id: Option<String>,
    /// The tool call it is about.
    pub tool_call_id: Option<String>,
}
