//! The way to an engine: [`EngineHandle`] and the [`Reply`] to a request. Cheap to clone; holds no
//! state of the engine but the way to its actor. Called by the session side.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};

use super::error::{EngineError, RpcError};
use super::event::{EngineEvent, EngineExit, WireId};
use super::verdict::Verdict;
use super::wire;
use crate::accounts::LiveAnswers;

/// Our ids begin here, so that they never meet an engine's own integer ids.
const FIRST_ID: u64 = 10_000_001;

/// A message to the engine's actor.
#[derive(Debug)]
pub(super) enum Command {
    /// Send a request and remember who waits for it.
    Request {
        id: u64,
        method: &'static str,
        line: String,
        reply: oneshot::Sender<Result<Box<RawValue>, EngineError>>,
    },
    /// Send a line that nobody answers.
    Send(String),
    /// Answer a request of the engine's.
    Respond { id: WireId, outcome: Result<Value, RpcError> },
    /// Route a session's events.
    Attach { session_id: String, events: mpsc::Sender<EngineEvent> },
    /// Stop routing them.
    Detach { session_id: String },
    /// What the accounts' services said of plans.
    Plans(LiveAnswers),
    /// End the engine.
    Shutdown { done: oneshot::Sender<()> },
}

/// One running engine process. Clones speak to the same process; when the last one is dropped the
/// process is ended.
#[derive(Debug, Clone)]
pub struct EngineHandle {
    commands: mpsc::Sender<Command>,
    exit: watch::Receiver<Option<Arc<EngineExit>>>,
    ids: Arc<AtomicU64>,
    generation: u64,
    table: Option<Arc<Path>>,
    v4: Verdict,
}

impl EngineHandle {
    pub(super) fn new(
        commands: mpsc::Sender<Command>,
        exit: watch::Receiver<Option<Arc<EngineExit>>>,
        generation: u64,
        table: Option<PathBuf>,
    ) -> Self {
        let ids = Arc::new(AtomicU64::new(FIRST_ID));
        Self {
            commands,
            exit,
            ids,
            generation,
            table: table.map(Arc::from),
            v4: Verdict::default(),
        }
    }

    /// Sends a request; it is on its way when this returns, in the order of the calls, also when
    /// the reply is never awaited. Dropping the reply does not take the request back.
    ///
    /// The reply fails with [`EngineError::Timeout`] after the method's limit, counted from when
    /// the engine could have begun, and at once when the engine ends.
    pub fn request(&self, method: &'static str, params: impl Serialize) -> Reply {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let line = match wire::request(id, method, params) {
            Ok(line) => line,
            Err(error) => {
                return Reply::failed(EngineError::Unreadable {
                    method,
                    reason: error.to_string(),
                });
            }
        };
        let (reply, receiver) = oneshot::channel();
        self.command(Command::Request { id, method, line, reply });
        Reply { method, state: State::Waiting(receiver), exit: self.exit.clone() }
    }

    /// [`Self::request`], with the result as a JSON tree. For results that are small.
    pub fn request_value(
        &self,
        method: &'static str,
        params: impl Serialize,
    ) -> BoxFuture<'static, Result<Value, EngineError>> {
        Box::pin(self.request(method, params).value())
    }

    /// Sends a request whose answer does not matter.
    pub fn request_and_forget(&self, method: &'static str, params: impl Serialize) {
        drop(self.request(method, params));
    }

    /// Sends a notification.
    pub fn notify(&self, method: &'static str, params: impl Serialize) {
        match wire::notification(method, params) {
            Ok(line) => self.command(Command::Send(line)),
            Err(error) => tracing::warn!(method, %error, "params cannot be written"),
        }
    }

    /// Answers a request of the engine's. Goes to every id that was announced for the question;
    /// a second answer to the same question is dropped.
    pub fn respond(&self, id: WireId, outcome: Result<Value, RpcError>) {
        self.command(Command::Respond { id, outcome });
    }

    /// Routes to `events` what belongs to the session (or, for a topic that is not a
    /// conversation, to that topic): its events, state, frames, requests, and `Exited`.
    pub fn attach(&self, session_id: impl Into<String>, events: mpsc::Sender<EngineEvent>) {
        self.command(Command::Attach { session_id: session_id.into(), events });
    }

    /// Has requests for provider headers answered by what the accounts' services said of plans.
    pub fn know_plans(&self, live: LiveAnswers) {
        self.command(Command::Plans(live));
    }

    /// Undoes [`Self::attach`]; the session's events go to the default from now on.
    pub fn detach(&self, session_id: impl Into<String>) {
        self.command(Command::Detach { session_id: session_id.into() });
    }

    /// A number that no other engine process of this program has.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether the engine has the V4 channel.
    pub fn v4(&self) -> &Verdict {
        &self.v4
    }

    /// The provider table that the engine was given, for `provider/updateAccountConfig`.
    pub fn provider_table(&self) -> Option<&Path> {
        self.table.as_deref()
    }

    /// Whether the process still runs, as far as is known.
    pub fn is_alive(&self) -> bool {
        !self.commands.is_closed() && self.exit.borrow().is_none()
    }

    /// Ends the process and everything it started; returns when all of it is gone.
    pub async fn shutdown(&self) {
        let (done, over) = oneshot::channel();
        if self.commands.send(Command::Shutdown { done }).await.is_ok() {
            // An actor that ends without saying so has ended all the same.
            over.await.ok();
        }
    }

    /// Hands the command to the actor, which is always about to take it; the queue is deep, and
    /// should it ever be full the command waits in a task rather than being lost.
    fn command(&self, command: Command) {
        if let Err(mpsc::error::TrySendError::Full(command)) = self.commands.try_send(command) {
            let commands = self.commands.clone();
            tokio::spawn(async move { commands.send(command).await.ok() });
        }
    }
}

/// The reply to a request, to be awaited or dropped.
#[derive(Debug)]
#[must_use = "await the reply, or use `request_and_forget`"]
pub struct Reply {
    method: &'static str,
    state: State,
    exit: watch::Receiver<Option<Arc<EngineExit>>>,
}

#[derive(Debug)]
enum State {
    Waiting(oneshot::Receiver<Result<Box<RawValue>, EngineError>>),
    Failed(EngineError),
}

impl Reply {
    fn failed(error: EngineError) -> Self {
        Self { method: "", state: State::Failed(error), exit: watch::channel(None).1 }
    }

    /// The result as a JSON tree.
    pub async fn value(self) -> Result<Value, EngineError> {
        self.typed().await
    }

    /// The result as a type of its own.
    pub async fn typed<T: DeserializeOwned>(self) -> Result<T, EngineError> {
        let method = self.method;
        let raw = self.await?;
        serde_json::from_str(raw.get())
            .map_err(|error| EngineError::Unreadable { method, reason: error.to_string() })
    }
}

impl Future for Reply {
    type Output = Result<Box<RawValue>, EngineError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            State::Failed(error) => Poll::Ready(Err(error.clone())),
            State::Waiting(receiver) => match Pin::new(receiver).poll(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(outcome)) => Poll::Ready(outcome),
                // The actor is gone and took the question with it.
                Poll::Ready(Err(_closed)) => Poll::Ready(Err(match self.exit.borrow().as_ref() {
                    Some(exit) => EngineError::Exited(Box::new(exit.as_ref().clone())),
                    None => EngineError::Closed,
                })),
            },
        }
    }
}
