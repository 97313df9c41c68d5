//! Between the bridge and the simulated engine: passes lines on and notes when each one passed.
//! Without a log file it becomes the simulated engine itself, so that nothing is measured with it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use crate::probe::now_ns;

/// The simulated engine's arguments, separated by spaces.
pub(crate) const ARGS: &str = "ZCODE_ACP_BENCH_SIM";
/// Where the passing lines are noted.
pub(crate) const LOG: &str = "ZCODE_ACP_BENCH_LOG";

pub(crate) fn run() -> ExitCode {
    let args = std::env::var(ARGS).unwrap_or_default();
    let mut command = Command::new(crate::binary());
    command.arg("sim-engine").args(args.split_whitespace()).args(["app-server", "--stdio"]);
    let Ok(log) = std::env::var(LOG) else {
        panic!("cannot become the simulated engine: {}", command.exec());
    };
    let mut engine = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (to_engine, from_engine) = (engine.stdin.take().unwrap(), engine.stdout.take().unwrap());
    let file = |kind: &str| File::create(format!("{log}.{kind}")).unwrap();
    let (in_log, out_log) = (file("in"), file("out"));
    let _inward = std::thread::spawn(move || pass(std::io::stdin(), to_engine, in_log));
    pass(from_engine, std::io::stdout(), out_log);
    engine.wait().map_or(ExitCode::FAILURE, |_| ExitCode::SUCCESS)
}

/// A line that does not fit the pipe has come when its last byte has: its time is taken then.
const LARGE: usize = 1 << 20;

/// The time is taken before the line is written: what the reader does with it comes after.
fn pass(from: impl std::io::Read, mut to: impl Write, mut log: File) {
    let mut from = BufReader::with_capacity(256 * 1024, from);
    let mut line = Vec::new();
    while matches!(from.read_until(b'\n', &mut line), Ok(1..)) {
        let mut at = now_ns();
        if to.write_all(&line).and_then(|()| to.flush()).is_err() {
            return;
        }
        if line.len() > LARGE {
            at = now_ns();
        }
        let mut note = format!("{at} ").into_bytes();
        note.append(&mut line);
        log.write_all(&note).unwrap();
    }
}

/// One line that passed.
pub(crate) struct Passed {
    pub(crate) at: u64,
    pub(crate) line: String,
}

/// Reads what the relay noted: `in` to the engine, `out` from it.
pub(crate) fn passed(log: &std::path::Path, kind: &str) -> Vec<Passed> {
    let path = format!("{}.{kind}", log.display());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(at, line)| Some(Passed { at: at.parse().ok()?, line: line.to_owned() }))
        .collect()
}
