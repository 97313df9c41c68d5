//! The `quota` subcommand: which plans and providers there are and what is known of their quota.
//! Wires parts together and holds no logic of its own.

use std::io::Write;

use crate::accounts::quota;
use crate::bridge::engine::discovery;
use crate::config::Config;
use crate::error::AppError;

/// Writes the page.
pub fn run(config: &Config, out: &mut dyn Write) -> Result<(), AppError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| AppError::failed("cannot start the runtime").caused_by(err))?;
    let table = discovery::provider_table(config);
    let page = runtime.block_on(quota::page(config, table.as_deref()));
    out.write_all(page.as_bytes()).map_err(|err| AppError::failed("cannot write").caused_by(err))
}
