//! TESTS. The simulated engine in this process instead of a child: its pipes are in memory and its
//! clock is tokio's, so that a paused clock makes a whole conversation deterministic. Started by
//! [`Player::start`], which has the shape of [`super::Engine::start`].

use std::collections::HashSet;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::event::EngineEvent;
use super::program::{Input, Output, Program};
use super::{Engine, EngineError, EngineHandle, policy, sim};
use crate::trace::Trace;

/// Bytes that fit in one pipe.
const PIPE: usize = 64 * 1024;

/// Writes that wait to be handed on.
const WRITES: usize = 64;

/// The engine as the actor has it.
pub(super) struct Played {
    ends: Option<(PlayedInput, DuplexStream)>,
    engine: JoinHandle<io::Result<i32>>,
    status: Option<ExitStatus>,
}

/// Its input; a task hands it on.
pub(super) struct PlayedInput(mpsc::Sender<Vec<u8>>);

impl PlayedInput {
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.try_send(bytes.to_vec()) {
            Ok(()) => Ok(bytes.len()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(io::ErrorKind::WouldBlock.into()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        // A closed one is told by the next write.
        self.0.reserve().await.map(drop).ok();
        Ok(())
    }
}

impl Played {
    pub(super) fn take_ends(&mut self) -> (Option<Input>, Option<Output>) {
        let ends = self.ends.take();
        ends.map(|(i, o)| (Input::Played(i), Output::Played(o))).unzip()
    }

    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let status = match (&mut self.engine).await {
            Ok(Ok(code)) => ExitStatus::from_raw(code << 8),
            Ok(Err(_)) => ExitStatus::from_raw(1 << 8),
            // Aborted, which is how a test kills it.
            Err(_) => ExitStatus::from_raw(9),
        };
        self.status = Some(status);
        Ok(status)
    }

    pub(super) async fn end(&mut self) {
        self.engine.abort();
        self.wait().await.ok();
    }
}

/// Starts played engines, one after the other, and can kill the newest one.
#[derive(Clone)]
pub(crate) struct Player {
    options: Arc<dyn Fn(usize) -> sim::Options + Send + Sync>,
    traces: PathBuf,
    state: watch::Sender<State>,
}

#[derive(Default)]
struct State {
    engines: Vec<AbortHandle>,
    killed: HashSet<usize>,
}

impl Player {
    /// Every engine gets the options that `options` has for its number, from 0, and writes what it
    /// says and is told to a file of its own below `traces`.
    pub(crate) fn new(
        options: impl Fn(usize) -> sim::Options + Send + Sync + 'static,
        traces: PathBuf,
    ) -> Self {
        Self { options: Arc::new(options), traces, state: watch::channel(State::default()).0 }
    }

    /// How many engines were started.
    pub(crate) fn started(&self) -> usize {
        self.state.borrow().engines.len()
    }

    /// Kills the newest engine as SIGKILL does: no word more comes out of it.
    pub(crate) fn kill(&self) {
        self.state.send_modify(|state| {
            if let Some(engine) = state.engines.last() {
                engine.abort();
                state.killed.insert(state.engines.len() - 1);
            }
        });
    }

    /// Whether this one was killed.
    pub(crate) fn was_killed(&self, number: usize) -> bool {
        self.state.borrow().killed.contains(&number)
    }

    /// The messages from (`in`) and to (`out`) an engine so far.
    pub(crate) fn lines(&self, number: usize) -> Vec<(String, Value)> {
        let text = std::fs::read_to_string(self.trace_of(number)).unwrap_or_default();
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries
            .map(|mut entry| (entry["dir"].as_str().unwrap().to_owned(), entry["frame"].take()))
            .collect()
    }

    fn trace_of(&self, number: usize) -> PathBuf {
        self.traces.join(format!("engine-{number}.jsonl"))
    }

    /// Starts one.
    pub(crate) fn start(
        &self,
        default_events: mpsc::Sender<EngineEvent>,
    ) -> Result<EngineHandle, EngineError> {
        let number = self.started();
        let options = (self.options)(number);
        let (mut to_engine, stdin) = tokio::io::duplex(PIPE);
        let (stdout, from_engine) = tokio::io::duplex(PIPE);
        let engine = tokio::spawn(async move { sim::run(stdin, stdout, options).await });
        self.state.send_modify(|state| state.engines.push(engine.abort_handle()));
        let (input, mut lines) = mpsc::channel::<Vec<u8>>(WRITES);
        tokio::spawn(async move {
            while let Some(bytes) = lines.recv().await {
                if to_engine.write_all(&bytes).await.is_err() {
                    break;
                }
            }
        });
        let ends = Some((PlayedInput(input), from_engine));
        let program = Program::Played(Played { ends, engine, status: None });
        let trace = Trace::open(&self.trace_of(number)).map_err(|error| EngineError::Spawn {
            program: "a played engine".to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Engine::own(program, policy::Policy::default(), trace, default_events))
    }
}
