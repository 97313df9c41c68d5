//! PURE. How a session hangs on an engine: which engine session it is, and whether that is loaded
//! in the engine process that runs now. Changed by `opening` and `recovery` only.

use serde_json::{Value, json};
use std::path::Path;

use super::ReqId;

/// Whether the engine session can be used at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// Not loaded: the next use creates or resumes it.
    Down,
    /// Being created or resumed.
    Opening,
    /// Loaded and subscribed.
    Up,
}

/// What waits for the link.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// The prompt with this serial number.
    Turn(u64),
    /// `session/load`, `session/resume` or a fork's first opening.
    Open {
        /// The request to answer.
        req: ReqId,
        /// What to do before the answer.
        how: OpenKind,
    },
    /// A setting to change.
    Setting(super::settings::Change),
    /// `session/fork`
    Fork(ReqId),
    /// A command or an extension method.
    Job(super::extensions::RunningJob),
}

/// How an existing session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenKind {
    /// Nothing is replayed.
    Resume,
    /// The history comes before the answer.
    Load {
        /// Only the last messages.
        limit: Option<usize>,
    },
    /// A fork: answered with the new id.
    Fork,
}

/// The link itself.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) state: LinkState,
    sid: Option<String>,
    pub(crate) workspace: Option<Value>,
    pub(crate) generation: u64,
    pub(crate) waiting: Vec<Waiter>,
}

impl Link {
    pub(crate) fn new(sid: Option<String>, workspace: Option<Value>) -> Self {
        Self { state: LinkState::Down, sid, workspace, generation: 0, waiting: Vec::new() }
    }

    pub(crate) fn sid(&self) -> Option<&str> {
        self.sid.as_deref()
    }

    pub(crate) fn bind(&mut self, sid: String) {
        self.sid = Some(sid);
    }

    /// The workspace reference to send: the engine's own when it is known, else made from the
    /// directory.
    pub(crate) fn workspace_ref(&self, cwd: &Path) -> Value {
        self.workspace.clone().unwrap_or_else(|| workspace_of(cwd))
    }
}

/// The workspace reference of a directory.
pub(crate) fn workspace_of(cwd: &Path) -> Value {
    let path = cwd.to_string_lossy();
    json!({"workspacePath": path, "workspaceKey": path})
}
