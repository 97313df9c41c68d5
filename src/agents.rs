//! Which agent a client in this program talks to: the bridge in this process, or any other agent by
//! the command that starts it. Both come with a gauge, so that a slow client holds them back, and
//! with `--trace` their wire is recorded. Called by `tui`, `run` and `sessions`.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::{Client, DynConnectTo};
use tokio::sync::watch;

use crate::bridge;
use crate::bridge::stdio::{Metered, Outflow};
use crate::config::Config;
use crate::error::AppError;
use crate::foreign::ForeignAgent;
use crate::process;
use crate::trace::{Trace, Traced};
pub use crate::tui::agent_source::{AgentCommand, AgentSource, StartedAgent, TakenBy};

/// The bridge in this process.
pub fn bridge(config: Config) -> AgentSource {
    let config = Arc::new(config);
    // The demo has nothing to log in to.
    let command = process::own_binary().filter(|_| config.engine.demo.is_none());
    let command =
        command.map(|own| AgentCommand { program: own.into(), args: Vec::new(), cwd: None });
    AgentSource::metered(move || {
        let outflow = Outflow::new();
        let agent = bridge::agent(config.clone()).metered(outflow.clone());
        let taken = outflow.clone();
        let agent = traced(Metered::new(agent, outflow), &Trace::of(&config));
        (agent, Arc::new(move |frames| taken.taken(frames)))
    })
    .started_by(command)
}

/// How an agent of a stranger ended, once it has.
pub type LastWords = watch::Receiver<Option<String>>;

/// How pieces of text reach the client that come faster than it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pieces {
    /// One by one: they are counted or recorded.
    AsTheyCome,
    /// Joined: they are only shown. With `--trace` they come one by one nevertheless.
    Joined,
}

/// Any other agent, by the words of its command; no shell reads them.
pub fn foreign(
    command: &str,
    cwd: PathBuf,
    config: &Config,
    pieces: Pieces,
) -> Result<(AgentSource, LastWords), AppError> {
    let mut agent = ForeignAgent::parse(command, Some(cwd)).map_err(|problem| {
        AppError::usage(format!("--agent: {problem}"))
            .hint("a program and its arguments; for a shell's features: --agent \"sh -c '…'\"")
    })?;
    let last_words = agent.last_words();
    let trace = Trace::of(config);
    if pieces == Pieces::Joined && !trace.is_on() {
        agent = agent.joined();
    }
    let said = Arc::new(agent.said());
    let command = agent.command();
    let source = AgentSource::metered(move || {
        let mut agent = agent.clone();
        let taken = Arc::new(agent.gauge());
        (traced(agent, &trace), taken)
    })
    .quoted_by(said)
    .started_by(Some(command));
    Ok((source, last_words))
}

fn traced(
    agent: impl agent_client_protocol::ConnectTo<Client>,
    trace: &Trace,
) -> DynConnectTo<Client> {
    if trace.is_on() {
        DynConnectTo::new(Traced::new(agent, trace.clone()))
    } else {
        DynConnectTo::new(agent)
    }
}
