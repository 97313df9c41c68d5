//! The only place that starts child processes. Each child leads a session and process group of its
//! own, and a watchdog ends the whole group when this process goes away in any manner.
//! Called by `bridge::engine` (the engine) and by the terminal (a foreign agent, its commands).

use crate::cli::WatchdogArgs;
use crate::error::AppError;

/// Runs the hidden `watchdog` subcommand: blocks until the parent is gone, then ends the group.
pub fn watchdog_main(_args: &WatchdogArgs) -> Result<(), AppError> {
    Err(AppError::failed("this build has no watchdog yet"))
}
