//! The `tui` subcommand: hands the terminal an agent (our bridge, or any other by `--agent`).
//! Wires parts together and holds no logic of its own.

use crate::cli::TuiArgs;
use crate::config::Config;
use crate::error::AppError;

/// Runs the terminal chat until the user leaves.
pub fn run(config: Config, args: TuiArgs) -> Result<(), AppError> {
    drop((config, args));
    Err(AppError::failed("this build has no terminal chat yet"))
}
