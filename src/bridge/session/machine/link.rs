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

/// What came of an engine that does not answer while it should load the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deaf {
    /// It answers, as far as is known.
    No,
    /// It is being ended.
    Ending,
    /// Another one was asked for.
    Replaced,
}

/// What waits for the link.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// The prompt with this serial number.
    Turn(u64),
    /// `session/load`.
    Load {
        /// The request to answer.
        req: ReqId,
        /// Only the last messages.
        limit: Option<usize>,
    },
    /// `session/resume` or a fork's first opening.
    Open {
        /// The request to answer.
        req: ReqId,
        /// What to do before the answer.
        how: OpenKind,
    },
    /// A setting to change.
    Setting(super::settings::Change),
    /// A model to change to that only a running engine may know.
    Model {
        /// The request to answer.
        req: ReqId,
        /// How to answer it.
        by: super::settings::AskedBy,
        /// The model, as it was asked for.
        name: String,
    },
    /// `session/fork`
    Fork(Box<super::extensions::ForkWish>),
    /// `load_earlier`
    Earlier {
        /// The request to answer.
        req: ReqId,
        /// The cursor.
        before: String,
        /// How many messages.
        limit: usize,
    },
    /// A command or an extension method.
    Job(super::extensions::RunningJob),
}

/// How an existing session is answered once it is open.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OpenKind {
    /// Nothing is replayed.
    Resume,
    /// The history came before the answer.
    Load {
        /// What was shown of it.
        meta: Value,
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
    /// The history can be read at once: the session was made here, or has settled since its resume.
    pub(crate) hydrated: bool,
    /// Made here and without a finished turn: an engine that died may never have stored it.
    pub(crate) fresh: bool,
    /// How often the opening tried its last step over.
    pub(crate) resubscribed: u8,
    /// The engine did not answer and was ended; who waits gets another one, once.
    pub(crate) deaf: Deaf,
    /// The user was told that the engine migrates its database.
    pub(crate) told_migration: bool,
    pub(crate) waiting: Vec<Waiter>,
}

impl Link {
    pub(crate) fn new(sid: Option<String>, workspace: Option<Value>) -> Self {
        Self {
            state: LinkState::Down,
            sid,
            workspace,
            generation: 0,
            hydrated: false,
            fresh: false,
            resubscribed: 0,
            deaf: Deaf::No,
            told_migration: false,
            waiting: Vec::new(),
        }
    }

    pub(crate) fn sid(&self) -> Option<&str> {
        self.sid.as_deref()
    }

    /// Forgets an engine session that is gone.
    pub(crate) fn unbind(&mut self) -> Option<String> {
        self.fresh = false;
        self.workspace = None;
        self.sid.take()
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
