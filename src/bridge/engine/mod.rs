//! The engine side: finding and starting the engine, its line protocol, and the simulated engine.
//! Knows nothing of ACP. Called by `bridge::session`.
//!
//! Reading order: [`discovery`] and [`environment`] (which program, with which surroundings),
//! `codec` and `decode` (lines to frames to [`event`]s), `actor` (the task that owns the process),
//! [`EngineHandle`] (what the session side holds). [`v4`] assembles the richer channel, [`sim`]
//! plays the engine for the demo and the tests.

mod actor;
mod codec;
mod decode;
pub mod discovery;
pub mod environment;
pub mod error;
pub mod event;
pub(crate) mod halves;
mod handle;
mod interactions;
pub(crate) mod lines;
#[cfg(test)]
pub(crate) mod played;
pub mod policy;
mod program;
pub mod sim;
mod timeouts;
pub mod v4;
pub mod verdict;
mod wire;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, watch};

pub use decode::session_event;
pub use error::{EngineError, RpcError};
pub use handle::{EngineHandle, Reply};

use crate::config::Config;
use crate::process::{Child, ChildSpec};
use crate::trace::Trace;
use event::EngineEvent;
use program::Program;

/// Commands that may wait for an actor; it takes them as they come.
const COMMANDS: usize = 4096;

/// Starts engines.
#[derive(Debug, Clone, Copy)]
pub struct Engine;

/// Reads one line of the engine's output as the actor does, when it is a notification. For the
/// benchmarks and fuzzing; the actor itself also serves requests and responses.
#[doc(hidden)]
pub fn read_notification(line: &str) -> Option<EngineEvent> {
    if let Some(line) = decode::streaming_line(line) {
        return Some(EngineEvent::Session(Box::new(line.into_event())));
    }
    match codec::parse(&halves::mend(line)) {
        codec::Frame::Notification { method, params } => {
            Some(decode::notification(&method, params))
        }
        _ => None,
    }
}

impl Engine {
    /// Finds the engine and starts it in `cwd`. Returns as soon as the process exists; requests
    /// may follow at once. Whatever belongs to no attached session goes to `default_events`, which
    /// has to be read: a full mailbox stops the reading of the engine.
    ///
    /// Needs a tokio runtime with I/O and time.
    pub async fn start(
        config: &Config,
        cwd: &Path,
        default_events: mpsc::Sender<EngineEvent>,
    ) -> Result<EngineHandle, EngineError> {
        let launch = discovery::launch(config, cwd).await?;
        let policy = policy::Policy {
            zcode_home: config.zcode_home.clone(),
            table: launch.table,
            ..policy::Policy::default()
        };
        Self::spawn(&launch.spec, policy, Trace::of(config), default_events)
    }

    /// Starts a given program as an engine. For tests and for [`Self::start`].
    pub fn spawn(
        spec: &ChildSpec,
        policy: policy::Policy,
        trace: Trace,
        default_events: mpsc::Sender<EngineEvent>,
    ) -> Result<EngineHandle, EngineError> {
        let child = Child::spawn(spec).map_err(|error| EngineError::Spawn {
            program: spec.program.to_string_lossy().into_owned(),
            reason: error.to_string(),
        })?;
        let pid = child.pid();
        let handle = Self::own(Program::Child(Box::new(child)), policy, trace, default_events);
        tracing::info!(pid, generation = handle.generation(), "the engine was started");
        Ok(handle)
    }

    /// Starts the actor of a program that runs.
    fn own(
        program: Program,
        policy: policy::Policy,
        trace: Trace,
        default_events: mpsc::Sender<EngineEvent>,
    ) -> EngineHandle {
        static GENERATION: AtomicU64 = AtomicU64::new(1);
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        let (sender, commands) = mpsc::channel(COMMANDS);
        let (exit, exit_view) = watch::channel(None);
        let handle = EngineHandle::new(sender, exit_view, generation, policy.table.clone());
        let setup = actor::Setup { program, commands, exit, default_events, policy, trace };
        tokio::spawn(actor::run(setup));
        handle
    }
}
