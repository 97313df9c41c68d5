//! PURE. Builds the params of the `v4/*` requests, key by key as the engine's strict schemas want them, and reads the
//! answers to commands. Ids and times are given by the caller.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::bridge::engine::v4::topic::Base;
use crate::bridge::engine::v4::wire::RowId;

/// What we call ourselves in commands.
pub const CLIENT_ID: &str = "zcode-acp";
/// Most rows one `rowsRange` may ask for.
pub const MAX_ROWS_RANGE: u32 = 200;

/// Topic of a session.
pub fn conversation_topic(session_id: &str) -> String {
    format!("conversation/{session_id}")
}

/// Topic of a workspace's slash commands.
pub fn workspace_topic(workspace_key: &str) -> String {
    format!("workspace-config/{workspace_key}")
}

/// State of our side of the connection, for `v4/connection/flow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flow {
    /// Send.
    Drained,
    /// Hold back.
    Saturated,
    /// Nobody listens any more.
    Closed,
}

/// Params of `v4/connection/flow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowParams {
    /// An id of ours, the same for all topics of one engine.
    pub connection_id: String,
    /// Our state.
    pub state: Flow,
}

/// Params of `v4/conversation/subscribe`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscribe {
    topic: String,
    connection_id: String,
    client_mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<Base>,
}

impl Subscribe {
    /// A subscription to `topic`, from `base` on when the topic was known before. `workspace` is the session's own, as the
    /// engine reports it.
    pub fn new(
        topic: &str,
        connection_id: &str,
        workspace: Option<Value>,
        base: Option<Base>,
    ) -> Self {
        Self {
            topic: topic.to_owned(),
            connection_id: connection_id.to_owned(),
            client_mode: "desktop-continuous",
            workspace,
            base,
        }
    }
}

/// Params of `v4/conversation/resync`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResyncParams {
    /// The subscription.
    pub subscription_id: String,
    /// The topic.
    pub topic: String,
    /// Our connection.
    pub connection_id: String,
    /// What is known; `null` asks for everything.
    pub base: Option<Base>,
    /// A picture is wanted even where pieces would do (a frame could not be read).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force_snapshot: bool,
}

/// Params of `v4/conversation/unsubscribe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unsubscribe {
    /// The topic.
    pub topic: String,
    /// The subscription.
    pub subscription_id: String,
    /// Our connection.
    pub connection_id: String,
}

/// Params of `v4/conversation/rowsRange`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RowsRangeParams {
    session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    before_row_id: Option<RowId>,
    limit: u32,
}

impl RowsRangeParams {
    /// The `limit` rows (1 to 200) before `before`, or the newest ones.
    pub fn new(session_id: &str, before: Option<RowId>, limit: u32) -> Self {
        Self {
            session_id: session_id.to_owned(),
            before_row_id: before,
            limit: limit.clamp(1, MAX_ROWS_RANGE),
        }
    }
}

/// What a `v4/command` does.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Text into the running turn at its next boundary.
    Guide {
        /// The text.
        text: String,
    },
    /// Text that waits for the running turn's end.
    Enqueue {
        /// The text.
        text: String,
    },
    /// Text that starts a turn.
    StartNow {
        /// The text.
        text: String,
    },
    /// The real stop.
    Stop {
        /// Only this execution, when known.
        expected: Option<String>,
    },
    /// Ends one work beside the turn.
    CancelBackgroundWork {
        /// The work.
        work_id: String,
    },
    /// Takes an input out of the queue.
    DeleteQueueItem {
        /// The input.
        item_id: String,
    },
    /// Changes an input in the queue.
    EditQueueItem {
        /// The input.
        item_id: String,
        /// Its new text.
        text: String,
    },
    /// Runs an input now.
    SendQueuedNow {
        /// The input.
        item_id: String,
    },
    /// Whether inputs run by themselves when the turn ends.
    SetAutoDrain {
        /// They do.
        enabled: bool,
    },
    /// A new title.
    Rename {
        /// The title.
        title: String,
    },
    /// Pauses the goal.
    PauseGoal,
    /// Goes on with the goal.
    ResumeGoal,
}

impl Command {
    /// Returns the command's `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Guide { .. } | Self::Enqueue { .. } | Self::StartNow { .. } => "sendText",
            Self::Stop { .. } => "stop",
            Self::CancelBackgroundWork { .. } => "cancelBackgroundWork",
            Self::DeleteQueueItem { .. } => "deleteQueueItem",
            Self::EditQueueItem { .. } => "editQueueItem",
            Self::SendQueuedNow { .. } => "sendQueuedNow",
            Self::SetAutoDrain { .. } => "setAutoDrain",
            Self::Rename { .. } => "renameSession",
            Self::PauseGoal => "pauseGoal",
            Self::ResumeGoal => "resumeGoal",
        }
    }

    /// True for the commands the engine refuses without the revision they were decided on.
    pub fn needs_base_revision(&self) -> bool {
        !matches!(self.kind(), "sendText" | "stop" | "cancelBackgroundWork" | "renameSession")
    }

    fn payload(&self) -> Value {
        match self {
            Self::Guide { text } => json!({"text": text, "requestedDelivery": "guide"}),
            Self::Enqueue { text } => json!({"text": text, "requestedDelivery": "queue"}),
            Self::StartNow { text } => json!({"text": text, "requestedDelivery": "startNow"}),
            Self::Stop { expected: Some(id) } => json!({"expectedForegroundExecutionId": id}),
            Self::Stop { expected: None } | Self::PauseGoal | Self::ResumeGoal => json!({}),
            Self::CancelBackgroundWork { work_id } => json!({"workId": work_id}),
            Self::DeleteQueueItem { item_id } | Self::SendQueuedNow { item_id } => {
                json!({"queueItemId": item_id})
            }
            Self::EditQueueItem { item_id, text } => json!({"queueItemId": item_id, "text": text}),
            Self::SetAutoDrain { enabled } => json!({"enabled": enabled}),
            Self::Rename { title } => json!({"title": title}),
        }
    }
}

/// Who sends a command, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// A fresh id: a command that is tried again after a fault needs a new one.
    pub command_id: String,
    /// Milliseconds since the epoch.
    pub issued_at: u64,
    /// The session's state revision, for commands that need it.
    pub base_revision: Option<u64>,
}

/// Params of `v4/command`.
pub fn command(session_id: &str, stamp: &Stamp, command: &Command) -> Value {
    let mut params = Map::new();
    params.insert("commandId".to_owned(), json!(stamp.command_id));
    params.insert("clientId".to_owned(), json!(CLIENT_ID));
    params.insert("sessionId".to_owned(), json!(session_id));
    params.insert("type".to_owned(), json!(command.kind()));
    params.insert("payload".to_owned(), command.payload());
    params.insert("issuedAt".to_owned(), json!(stamp.issued_at));
    if command.needs_base_revision()
        && let Some(revision) = stamp.base_revision
    {
        params.insert("baseRevision".to_owned(), json!(revision));
    }
    Value::Object(params)
}

/// What the engine made of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It was taken; for a guide this is no verdict yet.
    Accepted {
        /// `result.delivery` was `startNow`: no turn was running, so the text began one.
        started: bool,
        /// The input the text became.
        input_id: Option<String>,
    },
    /// It was taken before under the same id.
    Duplicate,
    /// It was refused, under whatever word.
    Refused(Refusal),
}

/// Why a command was refused, wherever the answer said it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// For example `fault.command.executionFailed`.
    pub reason_code: Option<String>,
    /// The engine's own words.
    pub message: Option<String>,
    /// The session's row was not written yet: try again.
    pub foreign_key: bool,
}

/// Reads the answer to a command.
pub fn reply(result: &Value) -> Reply {
    match result.get("status").and_then(Value::as_str) {
        Some("accepted") => {
            let delivery = result.pointer("/result/delivery").and_then(Value::as_str);
            let input_id = result.pointer("/result/inputId").and_then(Value::as_str);
            Reply::Accepted {
                started: delivery == Some("startNow"),
                input_id: input_id.map(str::to_owned),
            }
        }
        Some("duplicate") => Reply::Duplicate,
        _ => Reply::Refused(refusal(result)),
    }
}

/// Reads a refusal out of an answer, or out of the `data` of an error.
pub fn refusal(value: &Value) -> Refusal {
    Refusal {
        reason_code: first_text(value, &["reasonCode", "code", "reason"]),
        message: first_text(value, &["message", "detail", "details", "error"]),
        foreign_key: mentions_foreign_key(value),
    }
}

/// True when the text of a missing session row stands anywhere in it.
pub fn mentions_foreign_key(value: &Value) -> bool {
    match value {
        Value::String(text) => text.to_ascii_uppercase().contains("FOREIGN KEY"),
        Value::Array(items) => items.iter().any(mentions_foreign_key),
        Value::Object(members) => members.values().any(mentions_foreign_key),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The first text under one of the keys, at the top or one object down.
fn first_text(value: &Value, keys: &[&str]) -> Option<String> {
    let top = keys.iter().find_map(|key| value.get(key)?.as_str());
    let nested = || {
        let inner = ["result", "error", "data", "fault"];
        inner.iter().find_map(|at| keys.iter().find_map(|key| value.get(at)?.get(key)?.as_str()))
    };
    top.or_else(nested).map(str::to_owned)
}

#[cfg(test)]
mod tests;
