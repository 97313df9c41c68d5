//! The simulated engine: a faithful engine without a model, run as a child process over the real
//! pipe (`zcode-acp sim-engine`). For the demo, the tests and bug reports.
//!
//! [`engine::Engine`] is pure: it is told lines and the time, and says lines and when it wants to
//! be told the time again. [`run`] is the only loop around it. What a turn does comes from scripts
//! (`assets/sim/`), picked by what the user types; which version is played, at which pace and with
//! which faults, from [`Options`]. Written from the protocol's description alone. Called by the
//! `sim-engine` subcommand and by tests; must not be called by the bridge itself.

mod catalog;
mod engine;
mod events;
mod ids;
mod interactions;
mod legacy;
mod methods;
mod methods_v4;
mod options;
mod play;
mod player;
mod profile;
mod record;
mod schema;
mod script;
mod session;
mod store;
mod turns;
mod v4;
mod wire;

pub use options::{Fault, Options, Startup};
pub use profile::Profile;

use crate::cli::SimEngineArgs;
use crate::error::{AppError, ErrorKind};
use engine::Engine;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

/// Bytes that are played before they are written, so that the host's pipe holds the scripts back.
const WRITE_BYTES: usize = 32 * 1024;

/// The settings that a session of the simulated installation begins with, in a snapshot's shape:
/// for whoever has to show them before an engine runs. An unknown profile counts as the newest.
pub fn installation(profile: Option<&str>) -> serde_json::Value {
    let profile = profile.and_then(|p| p.parse::<Profile>().ok()).unwrap_or_default();
    let models: Vec<_> = catalog::MODELS.iter().map(|m| catalog::available(profile, m)).collect();
    let current = catalog::MODELS.first().map(|m| catalog::selection(profile, m, None));
    serde_json::json!({"settings": {"model": {"current": current, "available": models}}})
}

/// Plays an engine on a pair of pipes until its input ends, or a script ends it.
///
/// Returns the exit status. Uses the tokio clock, so a paused runtime plays in no time. Errors: the
/// store or a script cannot be read, or the pipes fail.
pub async fn run<R, W>(reader: R, writer: W, options: Options) -> io::Result<i32>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    run_with_log(reader, writer, options, |_| {}).await
}

/// Runs the hidden `sim-engine` subcommand on standard input and output until the input ends.
pub fn main(args: &SimEngineArgs) -> Result<(), AppError> {
    let options = Options::from_cli(args).map_err(|e| AppError::new(ErrorKind::Usage, e))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| AppError::failed(format!("cannot start the simulated engine: {e}")))?;
    let played =
        runtime.block_on(run_with_log(tokio::io::stdin(), tokio::io::stdout(), options, |line| {
            use std::io::Write as _;
            // The log is a courtesy: a host that closed it must not stop the engine.
            writeln!(io::stderr(), "[sim] {line}").unwrap_or_default();
        }));
    // A read of standard input cannot be broken off; it must not hold the exit up.
    runtime.shutdown_background();
    match played {
        Ok(0) => Ok(()),
        Ok(status) => std::process::exit(status),
        Err(e) => Err(AppError::failed(format!("the simulated engine ended: {e}"))),
    }
}

async fn run_with_log<R, W>(
    mut reader: R,
    mut writer: W,
    options: Options,
    log: impl Fn(&str),
) -> io::Result<i32>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let epoch_ms = options.epoch_ms.unwrap_or_else(wall_clock);
    let mut engine = Engine::new(options, epoch_ms).map_err(io::Error::other)?;
    let start = Instant::now();
    let now = || u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut input = Lines::default();
    loop {
        while engine.wire.waiting_bytes() < WRITE_BYTES && engine.exit.is_none() {
            match engine.due() {
                Some(at) if at <= now() => engine.tick(now()),
                _ => break,
            }
        }
        engine.wire.take_log().iter().for_each(|line| log(line));
        write(&mut writer, engine.wire.take()).await?;
        if let Some(status) = engine.exit {
            return Ok(status);
        }
        let due = engine.due();
        let overdue = due.is_some_and(|at| at <= now());
        let wake = start + Duration::from_millis(due.unwrap_or(0));
        tokio::select! {
            biased;
            read = input.fill(&mut reader), if !input.ended => {
                read?;
                while let Some(line) = input.next() {
                    engine.line(&line, now());
                }
                if input.ended {
                    engine.end_of_input(now());
                }
            }
            () = std::future::ready(()), if overdue => {}
            () = sleep_until(wake), if due.is_some() => {}
            else => return Ok(0),
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(writer: &mut W, lines: Vec<String>) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(lines.iter().map(|l| l.len() + 1).sum());
    for line in lines {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    writer.write_all(&bytes).await?;
    writer.flush().await
}

fn wall_clock() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Input cut into lines. Reading can be broken off at any time without losing a byte.
#[derive(Debug, Default)]
struct Lines {
    bytes: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Where the search for the next line end goes on.
    searched: usize,
    ended: bool,
}

impl Lines {
    async fn fill<R: AsyncRead + Unpin>(&mut self, reader: &mut R) -> io::Result<()> {
        self.bytes.reserve(8 * 1024);
        // `read_buf` is cancel safe: bytes are in the buffer or still in the pipe.
        self.ended = reader.read_buf(&mut self.bytes).await? == 0;
        Ok(())
    }

    /// Returns the next whole line without its end; at the end of input also the rest.
    fn next(&mut self) -> Option<Vec<u8>> {
        let fresh = self.bytes.get(self.searched..)?;
        if let Some(at) = fresh.iter().position(|b| *b == b'\n') {
            let end = self.searched + at;
            let line = self.bytes.get(self.start..end)?.to_vec();
            self.start = end + 1;
            self.searched = self.start;
            return Some(line);
        }
        // Once for all lines of a read: moving the rest up for each would cost its square.
        self.bytes.drain(..self.start);
        self.start = 0;
        self.searched = self.bytes.len();
        if self.ended && !self.bytes.is_empty() {
            self.searched = 0;
            return Some(std::mem::take(&mut self.bytes));
        }
        None
    }
}

#[cfg(test)]
mod tests;
