//! The `serve` subcommand: the bridge's agent over standard input and output, for one ACP client.
//! Wires parts together and holds no logic of its own. Nothing but protocol goes to stdout.

use crate::config::Config;
use crate::error::AppError;

/// Serves until the client closes its end or a signal arrives; both are a clean end.
pub fn run(config: Config) -> Result<(), AppError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| AppError::failed("cannot start the runtime").caused_by(err))?;
    runtime.block_on(serve(config))
}

async fn serve(config: Config) -> Result<(), AppError> {
    drop(config);
    tokio::task::yield_now().await;
    Err(AppError::failed("this build has no agent yet"))
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
