//! The `replay` subcommand: plays one side of a trace (`--trace FILE`) on standard input and output,
//! the engine's or the agent's, so that a bug report is a test. The [`player`] is pure; this is its
//! reading and writing.

mod player;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::cli::{ReplayArgs, ReplaySide};
use crate::config::Config;
use crate::error::AppError;
use crate::small_file;
use player::{Player, Side, Step};

/// Longest line that is read; an engine's history may be large.
const MAX_LINE: u64 = 128 * 1024 * 1024;
/// Largest trace that is played; all of it is in memory meanwhile.
const MAX_TRACE: u64 = 256 * 1024 * 1024;
/// No pause of a replay is longer.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Plays until standard input ends.
pub fn run(args: &ReplayArgs) -> Result<(), AppError> {
    let side = match args.side {
        ReplaySide::Engine => Side::Engine,
        ReplaySide::Agent => Side::Agent,
    };
    let player = load(&args.file, side)?;
    play(player, args.pace, &mut std::io::stdin().lock(), &mut std::io::stdout().lock())
        .map_err(|err| AppError::failed("the replay ended").caused_by(err))
}

/// Whether the trace that is to be the engine can be played, before anything is begun. It is looked
/// through, not taken apart: the engine's part is played by another process.
///
/// # Errors
/// Usage, with the file and what is wrong with it.
pub fn check(config: &Config) -> Result<(), AppError> {
    let Some(file) = &config.engine.replay else { return Ok(()) };
    player::check(&read(file)?, Side::Engine).map_err(|problem| no_trace(file, &problem))
}

fn load(file: &Path, side: Side) -> Result<Player, AppError> {
    Player::new(&read(file)?, side).map_err(|problem| no_trace(file, &problem))
}

fn read(file: &Path) -> Result<String, AppError> {
    small_file::read(file, MAX_TRACE)
        .map_err(|err| AppError::usage(format!("cannot read {}", file.display())).caused_by(err))
}

fn no_trace(file: &Path, problem: &str) -> AppError {
    AppError::usage(format!("{}: {problem}", file.display())).hint("record one with --trace FILE")
}

fn play(
    mut player: Player,
    pace: f64,
    input: &mut dyn Read,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut input = BufReader::new(input);
    loop {
        while let Some(Step { after, message }) = player.next_step() {
            let pause = after.min(MAX_PAUSE).mul_f64(pace);
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
            writeln!(out, "{message}")?;
        }
        out.flush()?;
        let mut line = String::new();
        if (&mut input).take(MAX_LINE).read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Ok(message) = serde_json::from_str(&line) {
            for answer in player.take(&message) {
                writeln!(out, "{answer}")?;
            }
        }
    }
}
