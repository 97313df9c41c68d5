//! PURE. What can go wrong between us and an engine, with the predicates that the session side
//! decides by. Codes: engine protocol section 1, texts: section 10.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::EngineExit;

/// The error member of a response, in either direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// The code; engines send some as text, which becomes a number where it is one.
    pub code: i64,
    /// The engine's own words: pass them on, never replace them.
    pub message: String,
    /// Details: `name`, `stack`, `code`, `reasonCode`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without details.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The answer to a method this bridge does not serve.
    pub fn unknown_method(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }
}

/// The method is unknown in this engine version.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The params were refused by the schema.
pub const INVALID_PARAMS: i64 = -32602;
/// The session is not loaded in this engine process.
pub const NOT_ACTIVE: i64 = -32004;
/// A prompt is running (and other refusals, told apart by their text).
pub const BUSY: i64 = -32010;
/// A prompt is running, as older engines say it.
pub const BUSY_OLD: i64 = 1308;

/// Why a request to the engine, or starting one, failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No engine, or no Node that can run it.
    #[error("{}", not_found_text(looked_for, hints))]
    NotFound {
        /// What was looked for, in order, in words for the user.
        looked_for: Vec<String>,
        /// What the user can do.
        hints: Vec<String>,
    },
    /// The engine was found and could not be started.
    #[error("cannot start the ZCode engine {program}: {reason}")]
    Spawn {
        /// The program that was to be run.
        program: String,
        /// The system's reason.
        reason: String,
    },
    /// The engine ended while (or before) it should have answered.
    #[error("{}", exited_text(.0))]
    Exited(Box<EngineExit>),
    /// The engine was shut down by us.
    #[error("the ZCode engine was shut down")]
    Closed,
    /// No answer in time. The time counts from when the engine could have begun.
    #[error("the ZCode engine did not answer {method} within {} s", after.as_secs_f32())]
    Timeout {
        /// The method.
        method: &'static str,
        /// The limit.
        after: Duration,
    },
    /// The engine refused the request.
    #[error("{}", .0.message)]
    Rpc(RpcError),
    /// The engine's answer does not have the shape it should.
    #[error("the ZCode engine answered {method} in a form this program does not know: {reason}")]
    Unreadable {
        /// The method.
        method: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl EngineError {
    /// The engine's refusal, when that is what it is.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Self::Rpc(error) => Some(error),
            _ => None,
        }
    }

    /// A prompt is running in this session: by code **and** wording, as the code is shared with
    /// refusals that waiting does not cure.
    pub fn is_busy(&self) -> bool {
        self.rpc().is_some_and(|e| {
            let running =
                e.message.contains("already running") || e.message.contains("prompt is running");
            running || e.code == BUSY_OLD || (e.code == BUSY && while_running(&e.message))
        })
    }

    /// The session is not loaded in this process: resume it and try once more.
    pub fn is_not_active(&self) -> bool {
        self.rpc()
            .is_some_and(|e| e.code == NOT_ACTIVE || e.message.contains("Session is not active"))
    }

    /// The session is not stored any more: trying again does not help.
    pub fn is_session_unknown(&self) -> bool {
        self.rpc().is_some_and(|e| {
            // A model that the registry lacks is no session: "Provider Registry 中不存在 Model".
            let of_registry = e.message.contains("Registry") || e.message.contains("Model");
            contains_ignore_case(&e.message, "session not found")
                || (e.message.contains("不存在") && !of_registry)
        }) && !self.is_not_active()
    }

    /// This engine version does not have the method.
    pub fn is_unknown_method(&self) -> bool {
        self.rpc().is_some_and(|e| e.code == METHOD_NOT_FOUND)
    }

    /// The params were refused by the engine's schema.
    pub fn is_invalid_params(&self) -> bool {
        self.rpc()
            .is_some_and(|e| e.code == INVALID_PARAMS || e.message.contains("Unrecognized key"))
    }

    /// The session's row is not written yet; the text may stand anywhere in the answer.
    pub fn is_foreign_key(&self) -> bool {
        const TEXT: &str = "foreign key constraint";
        self.rpc().is_some_and(|e| {
            contains_ignore_case(&e.message, TEXT)
                || e.data.as_ref().is_some_and(|data| contains_ignore_case(&data.to_string(), TEXT))
        })
    }

    /// The model wants a reasoning level with it.
    pub fn is_reasoning_level_required(&self) -> bool {
        self.rpc().is_some_and(|e| e.message.contains("Reasoning level is required"))
    }

    /// The session's model is not available (also for a moment after a cold start).
    pub fn is_model_unavailable(&self) -> bool {
        self.rpc().is_some_and(|e| {
            let text = e.message.to_lowercase();
            text.contains("模型已不可用")
                || (text.contains("model")
                    && (text.contains("unavailable") || text.contains("no longer available")))
        })
    }

    /// The session belongs to a subagent and takes no input.
    pub fn is_read_only(&self) -> bool {
        self.rpc().is_some_and(|e| e.message.contains("read-only"))
    }

    /// No answer in time.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. })
    }

    /// The engine is gone: the next use starts another.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Exited(_) | Self::Closed)
    }
}

/// The other refusals of [`BUSY`] that end when the turn ends.
fn while_running(message: &str) -> bool {
    message.is_empty()
        || message.contains("while a prompt")
        || message.contains("busy")
        || message.contains("Cannot compact")
        || message.contains("Cannot manage goals")
        || message.contains("Cannot fork")
}

fn contains_ignore_case(text: &str, lower: &str) -> bool {
    text.to_lowercase().contains(lower)
}

fn not_found_text(looked_for: &[String], hints: &[String]) -> String {
    let mut text = "The ZCode engine was not found. Looked for:".to_owned();
    for place in looked_for {
        text.push_str("\n  - ");
        text.push_str(place);
    }
    for hint in hints {
        text.push('\n');
        text.push_str(hint);
    }
    text
}

fn exited_text(exit: &EngineExit) -> String {
    let mut text = format!("the ZCode engine ended ({})", exit.status);
    if !exit.stderr_tail.is_empty() {
        text.push_str("; its last words:");
        for line in &exit.stderr_tail {
            text.push_str("\n  ");
            text.push_str(line);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rpc(code: i64, message: &str) -> EngineError {
        EngineError::Rpc(RpcError::new(code, message))
    }

    #[test]
    fn busy_is_told_by_code_and_wording() {
        for busy in [
            rpc(-32010, "A prompt is already running for this session"),
            rpc(1308, "prompt is running"),
            rpc(-32603, "A prompt is already running for this session"),
            rpc(-32010, "Cannot fork while a prompt is running"),
        ] {
            assert!(busy.is_busy(), "{busy}");
        }
        assert!(!rpc(-32010, "Subagent sessions are read-only").is_busy());
        assert!(rpc(-32010, "Subagent sessions are read-only").is_read_only());
        assert!(!EngineError::Closed.is_busy());
    }

    #[test]
    fn a_foreign_key_fault_is_found_wherever_it_stands() {
        let mut error = RpcError::new(-32603, "fault.command.executionFailed");
        assert!(!EngineError::Rpc(error.clone()).is_foreign_key());
        error.data = Some(serde_json::json!({"cause": "FOREIGN KEY constraint failed"}));
        assert!(EngineError::Rpc(error).is_foreign_key());
        assert!(rpc(-32603, "FOREIGN KEY constraint failed").is_foreign_key());
    }

    #[test]
    fn a_model_that_is_not_registered_is_no_unknown_session() {
        assert!(rpc(-32603, "会话不存在").is_session_unknown());
        let model = rpc(-32603, "Provider Registry 中不存在 Model: account:x");
        assert!(!model.is_session_unknown());
    }

    #[test]
    fn not_active_and_not_stored_are_different() {
        let evicted = rpc(-32004, "Session is not active: s1");
        assert!(evicted.is_not_active() && !evicted.is_session_unknown());
        let gone = rpc(-32603, "Session not found: s1");
        assert!(gone.is_session_unknown() && !gone.is_not_active());
    }

    #[test]
    fn a_dead_engine_says_its_last_words() {
        let exit = EngineExit { status: "exit status: 1".into(), stderr_tail: vec!["boom".into()] };
        let text = EngineError::Exited(Box::new(exit)).to_string();
        assert!(text.contains("exit status: 1") && text.contains("boom"), "{text}");
    }

    #[test]
    fn what_was_looked_for_is_listed() {
        let error = EngineError::NotFound {
            looked_for: vec!["zcode on PATH".into()],
            hints: vec!["Set ZCODE_CJS to the path of zcode.cjs.".into()],
        };
        assert!(error.to_string().contains("zcode on PATH"));
        assert!(error.to_string().contains("ZCODE_CJS"));
    }
}
