//! The ACP client: connects to an agent, turns what it sends into [`AgentMsg`]s and carries out
//! [`AgentCmd`]s. Runs on a thread of its own; talks to the loop by bounded channels only.
//!
//! - [`wire`]: the messages, received as they came so that nothing unknown is lost.
//! - [`connection`]: one life of an agent, from `initialize` to its end.
//! - [`attach`]: a prompt with its files as content blocks.
//! - [`asks`]: what the agent waits for an answer to.
//! - [`roots`], [`files`], [`terminals`]: what an agent may do here, inside the session's roots.

mod asks;
mod attach;
mod connection;
mod files;
mod relay;
mod roots;
mod terminals;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Notify, mpsc};

use super::agent_source::AgentSource;
use super::msg::{AgentCmd, AgentMsg};
use relay::OnWay;

/// What the client task needs to know.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The session's working directory.
    pub cwd: PathBuf,
    /// The environment of commands that the agent has us run.
    pub env: Vec<(OsString, OsString)>,
}

/// The loop's ends of the channels.
#[derive(Debug)]
pub struct ClientHandle {
    /// Commands, in order.
    pub commands: mpsc::Sender<Order>,
    /// What happened.
    pub messages: mpsc::Receiver<Parcel>,
    /// Told when the messages should not wait for the next frame.
    pub hurry: Arc<Notify>,
    thread: std::thread::JoinHandle<()>,
}

/// What the client task is told.
#[derive(Debug)]
pub enum Order {
    /// Do this.
    Do(AgentCmd),
    /// Go on with this agent instead.
    Replace(AgentSource),
}

/// Messages that may wait for the loop; more than that and the agent waits.
const MESSAGES: usize = 1024;
/// Commands that may wait for the client.
const COMMANDS: usize = 256;

/// A message, which takes room on the way from the agent until it is dropped.
#[derive(Debug)]
pub struct Parcel {
    /// What it is.
    pub message: AgentMsg,
    _way: Option<OnWay>,
}

/// The client's end of the channel to the loop. While text streams, the loop looks at it once a
/// frame: waking it for each piece costs both threads more than the piece itself.
#[derive(Debug, Clone)]
struct Outbox {
    messages: mpsc::Sender<Parcel>,
    hurry: Arc<Notify>,
}

impl Outbox {
    /// Sends a streamed update, or a part of one; the loop is hurried only when much is on its
    /// way. Fails when the loop is gone.
    async fn stream(&self, message: AgentMsg, way: Option<OnWay>) -> Result<(), Gone> {
        let crowded = way.as_ref().is_some_and(OnWay::is_crowded);
        if crowded || self.messages.capacity() < MESSAGES / 2 {
            self.hurry.notify_one();
        }
        let sent = self.messages.send(Parcel { message, _way: way }).await;
        if crowded {
            self.hurry.notify_one();
        }
        sent.map_err(|_returned| Gone)
    }

    /// Sends what the loop is to look at now. Fails when the loop is gone.
    async fn send(&self, message: AgentMsg) -> Result<(), Gone> {
        // Before, since a full channel is waited for, and after, so that this one is seen.
        self.hurry.notify_one();
        let sent = self.messages.send(Parcel { message, _way: None }).await;
        self.hurry.notify_one();
        sent.map_err(|_returned| Gone)
    }
}

/// The loop is gone.
#[derive(Debug)]
struct Gone;

impl ClientHandle {
    /// Starts the client thread and the agent.
    pub fn start(source: AgentSource, options: ClientOptions) -> std::io::Result<Self> {
        let (commands, orders) = mpsc::channel(COMMANDS);
        let (to_loop, messages) = mpsc::channel(MESSAGES);
        let hurry = Arc::new(Notify::new());
        let outbox = Outbox { messages: to_loop, hurry: Arc::clone(&hurry) };
        let thread =
            std::thread::Builder::new().name("acp-client".to_owned()).spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                match runtime {
                    Ok(runtime) => {
                        // A task of its own is woken without a look at the kernel's events.
                        let serving = connection::serve(source, options, orders, outbox);
                        if runtime.block_on(async { tokio::spawn(serving).await }).is_err() {
                            tracing::error!("the client failed");
                        }
                    }
                    Err(error) => tracing::error!(%error, "the client's runtime cannot start"),
                }
            })?;
        Ok(Self { commands, messages, hurry, thread })
    }

    /// Ends the agent and waits until it is gone.
    pub fn end(self) {
        let Self { commands, messages, thread, .. } = self;
        drop((commands, messages));
        if thread.join().is_err() {
            tracing::warn!("the client thread panicked");
        }
    }
}
