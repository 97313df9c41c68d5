//! The `doctor` subcommand: one page that says what works, what does not, and the one thing to do
//! about each. Looks and asks, changes nothing. Each file below is one group of checks; what can
//! be judged from values is a pure function there.

mod bundle;
mod engine;
mod files;
mod report;
mod terminal;

use std::io::{IsTerminal, Write};
use std::path::Path;

use crate::cli::DoctorArgs;
use crate::config::Config;
use crate::error::{AppError, ErrorKind};
use report::{Check, Page};

/// Runs every check and writes the page; fails with code 1 when there is a problem.
pub fn run(config: &Config, args: &DoctorArgs, out: &mut dyn Write) -> Result<(), AppError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| AppError::failed("cannot start the runtime").caused_by(err))?;
    let page = runtime.block_on(page(config, args));
    let written = if args.json {
        writeln!(out, "{}", page.to_json())
    } else {
        write!(out, "{}", page.to_text(colored(config)))
    };
    written.map_err(|err| AppError::failed("cannot write").caused_by(err))?;
    if let Some(path) = &args.bundle {
        write_bundle(config, &page, path, out)?;
    }
    match page.problems() {
        0 => Ok(()),
        1 => Err(AppError::new(ErrorKind::Failed, "there is a problem")),
        n => Err(AppError::new(ErrorKind::Failed, format!("there are {n} problems"))),
    }
}

fn colored(config: &Config) -> bool {
    std::io::stdout().is_terminal() && config.env.get("NO_COLOR").is_none()
}

async fn page(config: &Config, args: &DoctorArgs) -> Page {
    let mut checks = vec![Check::ok("program", "version", crate::cli::VERSION)];
    checks.extend(files::programs_on_path(&config.env, crate::process::own_binary().as_deref()));
    checks.extend(engine::checks(config, !args.no_probe).await);
    checks.extend(engine::accounts(config).await);
    checks.extend(files::checks(config));
    checks.extend(terminal::checks(&config.env).await);
    Page { checks }
}

fn write_bundle(
    config: &Config,
    page: &Page,
    path: &Path,
    out: &mut dyn Write,
) -> Result<(), AppError> {
    let text = bundle::text(config, page);
    bundle::write(path, &text).map_err(|err| AppError::cannot_write_new(path, err))?;
    writeln!(out, "\nwrote {} (secrets removed; read it before you post it)", path.display())
        .map_err(|err| AppError::failed("cannot write").caused_by(err))
}

#[cfg(test)]
mod tests;
