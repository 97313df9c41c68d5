//! The `serve` subcommand: the bridge's agent over standard input and output, for one ACP client.
//! Wires parts together and holds no logic of its own. Nothing but protocol goes to stdout.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::ConnectTo as _;
use tokio::sync::watch;

use crate::bridge;
use crate::bridge::stdio::{Outflow, Stdio};
use crate::config::Config;
use crate::error::AppError;
use crate::process;
use crate::trace::Trace;

/// `initialize`, a session, a prompt.
const FIRST_ANSWERS: usize = 3;
/// Not while the second prompt may be on its way already.
const QUIET: Duration = Duration::from_secs(1);

/// Serves until the client closes its end or a signal arrives; both are a clean end.
pub fn run(config: Config) -> Result<(), AppError> {
    // The fragments of a large row are a quarter of a megabyte each.
    process::hand_back_memory_above(1 << 20);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| AppError::failed("cannot start the runtime").caused_by(err))?;
    // As a task of its own: waking it costs a push to a queue, while waking what the runtime blocks
    // on makes it look at the kernel's events in between, two system calls for each streamed piece.
    let outcome = runtime.block_on(async { tokio::spawn(serve(config)).await });
    // A read of standard input that cannot be interrupted must not hold the exit up.
    runtime.shutdown_background();
    outcome.map_err(|err| AppError::failed("the bridge failed").caused_by(err))?
}

async fn serve(config: Config) -> Result<(), AppError> {
    let outflow = Outflow::new();
    let transport = Stdio::new(outflow.clone()).traced(Trace::of(&config));
    tokio::spawn(forget_the_start(outflow.clone()));
    let (stop, stopped) = watch::channel(false);
    let agent = bridge::agent(Arc::new(config)).metered(outflow).stopped_by(stopped);
    let serving = agent.connect_to(transport);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = &mut serving => ended,
        signal = ended_by_signal() => {
            tracing::info!(signal, "asked to end");
            stop.send(true).ok();
            serving.await
        }
    };
    ended.map_err(|err| AppError::failed("the connection to the client failed").caused_by(err))
}

/// Once `initialize`, a session and its first prompt are answered, most of what ran will not run again.
async fn forget_the_start(outflow: Outflow) {
    outflow.answered(FIRST_ANSWERS).await;
    tokio::time::sleep(QUIET).await;
    process::forget_code();
}

/// Waits for a signal that asks us to end; returns its name.
#[cfg(unix)]
pub async fn ended_by_signal() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut hup), Ok(mut int)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
        signal(SignalKind::interrupt()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => "SIGTERM",
        _ = hup.recv() => "SIGHUP",
        _ = int.recv() => "SIGINT",
    }
}

/// Waits for a signal that asks us to end; returns its name.
#[cfg(not(unix))]
pub async fn ended_by_signal() -> &'static str {
    drop(tokio::signal::ctrl_c().await);
    "interrupt"
}
