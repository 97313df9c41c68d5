//! Entry point: parse, read the settings, start logging, run the command, print the error.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use zcode_acp::cli::{Cli, Command};
use zcode_acp::config::{Config, Env};
use zcode_acp::error::AppError;
use zcode_acp::{approvals, bridge, chat, doctor, logging, login, manual, process};
use zcode_acp::{quota, replay, run, serve, sessions, trace};

fn main() -> ExitCode {
    process::watch_if_asked(std::env::args_os());
    let mut cli = Cli::parse();
    let on_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let command = cli.command_or_default(on_terminal);
    match dispatch(command, &cli, on_terminal) {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            drop(writeln!(std::io::stderr(), "zcode-acp: {err}")); // unread, the code still says it
            ExitCode::from(err.kind.exit_code())
        }
    }
}

fn dispatch(command: Command, cli: &Cli, on_terminal: bool) -> Result<(), AppError> {
    // These need neither settings nor a log.
    let command = match command {
        Command::SimEngine(args) => return bridge::engine::sim::main(&args),
        Command::Watchdog(args) => return process::watchdog_main(&args),
        Command::Completions { shell } => {
            return manual::completions(shell, &mut std::io::stdout().lock());
        }
        Command::Replay(args) => return replay::run(&args),
        Command::Man => return manual::man(&mut std::io::stdout().lock()),
        other => other,
    };
    // Children are watched over, and the demo played, by this very program.
    std::env::current_exe().map(process::register_own_binary).ok();
    let config = Config::load(Env::from_process(), &cli.global, &command)?;
    trace::Trace::check(&config).and_then(|()| replay::check(&config))?;
    let notes = config.warnings.iter().cloned().chain(logging::init(&config));
    notes.for_each(|note| tracing::warn!("{note}"));
    match command {
        Command::Tui(args) => chat::run(config, args),
        Command::Serve(_) => serve::run(config),
        Command::Run(args) => run::run(config, &args),
        Command::Login => {
            let mut stdin = std::io::stdin().lock();
            let person: Option<&mut dyn BufRead> = on_terminal.then_some(&mut stdin);
            login::run(&config, person, &mut std::io::stdout().lock())
        }
        Command::Doctor(args) => doctor::run(&config, &args, &mut std::io::stdout().lock()),
        Command::Approvals(args) => approvals::run(&config, &args, &mut std::io::stdout().lock()),
        Command::Sessions(args) => sessions::run(config, &args, &mut std::io::stdout().lock()),
        Command::Quota => quota::run(&config, &mut std::io::stdout().lock()),
        _ => Ok(()), // done above
    }
}
