//! The simulated engine: a faithful engine without a model, run as a child process over the real
//! pipe (`zcode-acp sim-engine`). For the demo, the tests and bug reports.

use crate::cli::SimEngineArgs;
use crate::error::AppError;

/// Runs the hidden `sim-engine` subcommand until standard input ends.
pub fn main(_args: &SimEngineArgs) -> Result<(), AppError> {
    Err(AppError::failed("this build has no simulated engine yet"))
}
