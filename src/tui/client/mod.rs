//! The ACP client: connects to an agent, turns what it sends into [`AgentMsg`]s and carries out
//! [`AgentCmd`]s. Runs on a thread of its own; talks to the loop by bounded channels only.
//!
//! - [`wire`]: the messages, received as they came so that nothing unknown is lost.
//! - [`connection`]: one life of an agent, from `initialize` to its end.
//! - [`asks`]: what the agent waits for an answer to.
//! - [`roots`], [`files`], [`terminals`]: what an agent may do here, inside the session's roots.

mod asks;
mod connection;
mod files;
mod relay;
mod roots;
mod terminals;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;

use tokio::sync::mpsc;

use super::agent_source::AgentSource;
use super::msg::{AgentCmd, AgentMsg};

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
    pub messages: mpsc::Receiver<AgentMsg>,
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

impl ClientHandle {
    /// Starts the client thread and the agent.
    pub fn start(source: AgentSource, options: ClientOptions) -> std::io::Result<Self> {
        let (commands, orders) = mpsc::channel(COMMANDS);
        let (to_loop, messages) = mpsc::channel(MESSAGES);
        let thread =
            std::thread::Builder::new().name("acp-client".to_owned()).spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                match runtime {
                    Ok(runtime) => {
                        // A task of its own is woken without a look at the kernel's events.
                        let serving = connection::serve(source, options, orders, to_loop);
                        if runtime.block_on(async { tokio::spawn(serving).await }).is_err() {
                            tracing::error!("the client failed");
                        }
                    }
                    Err(error) => tracing::error!(%error, "the client's runtime cannot start"),
                }
            })?;
        Ok(Self { commands, messages, thread })
    }

    /// Ends the agent and waits until it is gone.
    pub fn end(self) {
        let Self { commands, messages, thread } = self;
        drop((commands, messages));
        if thread.join().is_err() {
            tracing::warn!("the client thread panicked");
        }
    }
}
