//! Where an agent comes from: something that can start one as often as it is needed. The agent
//! itself is any value that connects to an ACP client; which one it is, nothing else knows.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::{Client, ConnectTo, DynConnectTo};

/// Told how many notifications of the agent have been taken, so that a fast agent can be held back.
pub type Taken = Arc<dyn Fn(usize) + Send + Sync>;

/// A started agent: the value to connect to, and whom to tell what was taken.
#[derive(Debug)]
pub struct StartedAgent {
    /// The agent.
    pub agent: DynConnectTo<Client>,
    /// Its gauge.
    pub taken: TakenBy,
}

impl StartedAgent {
    /// An agent that needs no gauge.
    pub fn new(agent: impl ConnectTo<Client>) -> Self {
        Self { agent: DynConnectTo::new(agent), taken: TakenBy::default() }
    }
}

/// [`Taken`], or nobody.
#[derive(Clone, Default)]
pub struct TakenBy(Option<Taken>);

impl TakenBy {
    /// Tells this function.
    pub fn new(taken: Taken) -> Self {
        Self(Some(taken))
    }

    /// So many notifications were taken.
    pub fn tell(&self, frames: usize) {
        if let Some(taken) = &self.0 {
            taken(frames);
        }
    }
}

impl fmt::Debug for TakenBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TakenBy").field(&self.0.is_some()).finish()
    }
}

/// Starts an agent, again and again if need be.
pub struct AgentSource {
    start: Box<dyn FnMut() -> StartedAgent + Send>,
    said: Option<Said>,
    command: Option<AgentCommand>,
}

/// The command that an agent is started by, so that its own login can be run on the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory; `None` is ours.
    pub cwd: Option<PathBuf>,
}

/// The newest lines that the agent wrote to its standard error, while it lives.
pub type Said = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

impl AgentSource {
    /// An agent that needs no gauge.
    pub fn new<A: ConnectTo<Client>>(mut start: impl FnMut() -> A + Send + 'static) -> Self {
        Self { start: Box::new(move || StartedAgent::new(start())), said: None, command: None }
    }

    /// An agent that wants to be told what was taken.
    pub fn metered<A: ConnectTo<Client>>(
        mut start: impl FnMut() -> (A, Taken) + Send + 'static,
    ) -> Self {
        let start = Box::new(move || {
            let (agent, taken) = start();
            StartedAgent { agent: DynConnectTo::new(agent), taken: TakenBy::new(taken) }
        });
        Self { start, said: None, command: None }
    }

    /// The agent can be quoted while it lives: what it says on standard error is known.
    #[must_use]
    pub fn quoted_by(mut self, said: Said) -> Self {
        self.said = Some(said);
        self
    }

    /// The agent is started by this command.
    #[must_use]
    pub fn started_by(mut self, command: Option<AgentCommand>) -> Self {
        self.command = command;
        self
    }

    /// The command that starts the agent, where there is one.
    pub fn command(&self) -> Option<&AgentCommand> {
        self.command.as_ref()
    }

    /// Tells what the agent says on standard error, as far as anybody knows.
    pub fn said(&self) -> Said {
        self.said.clone().unwrap_or_else(|| Arc::new(Vec::new))
    }

    /// Starts one.
    pub fn start(&mut self) -> StartedAgent {
        (self.start)()
    }
}

impl fmt::Debug for AgentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentSource(..)")
    }
}
