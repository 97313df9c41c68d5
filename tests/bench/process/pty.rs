//! The program on a pseudo-terminal that counts its bytes and knows what is on the screen.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::probe::{self, Reading, now_ns};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// Where the moment of the exec is noted.
const EXECED: &str = "execed";

/// Becomes the program after noting when: `FILE PROGRAM ARGS…`.
pub(crate) fn timed_exec(args: &[String]) -> ExitCode {
    let mut command = Command::new(&args[1]);
    command.args(&args[2..]);
    std::fs::write(&args[0], now_ns().to_string()).unwrap();
    panic!("{}: {}", args[1], command.exec());
}

/// A running `tui`.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    input: Box<dyn Write + Send>,
    output: Receiver<(Instant, Vec<u8>)>,
    parser: vt100::Parser,
    dir: tempfile::TempDir,
    /// Bytes that the program has written.
    pub(crate) bytes: u64,
    /// In how many pieces they came: a frame is one, or a few.
    pub(crate) pieces: u64,
    /// A moment on the clock of [`Instant`], and the same on the machine's.
    clock: (Instant, u64),
    /// When its first byte came.
    pub(crate) first: Option<Instant>,
}

impl Terminal {
    pub(crate) fn start(args: &[&str], (columns, rows): (u16, u16)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.env_clear();
        let home = dir.path().to_str().unwrap();
        let state = format!("{home}/state");
        for (name, value) in [
            ("HOME", home),
            ("ZCODE_ACP_STATE_DIR", &state),
            ("PATH", "/usr/bin:/bin"),
            ("LANG", "C.UTF-8"),
            ("TERM", "xterm-256color"),
            ("COLORTERM", "truecolor"),
        ] {
            command.env(name, value);
        }
        command.args(["timed-exec", &format!("{home}/{EXECED}"), &crate::binary()]);
        command.args(args);
        command.cwd(home);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let input = pair.master.take_writer().unwrap();
        let (sender, output) = channel();
        let clock = (Instant::now(), now_ns());
        let child = pair.slave.spawn_command(command).unwrap();
        let _reader = std::thread::spawn(move || {
            let mut buffer = vec![0_u8; 64 * 1024];
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                if sender.send((Instant::now(), buffer[..n].to_vec())).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            master: pair.master,
            input,
            output,
            parser: vt100::Parser::new(rows, columns, 0),
            dir,
            bytes: 0,
            pieces: 0,
            clock,
            first: None,
        }
    }

    /// When the program was executed. What forking this large process takes, and closing what it had
    /// open, is no time of the program's.
    pub(crate) fn execed(&self) -> Instant {
        let noted = std::fs::read_to_string(self.dir.path().join(EXECED)).unwrap();
        let since = noted.parse::<u64>().unwrap() - self.clock.1;
        self.clock.0 + Duration::from_nanos(since)
    }

    /// The terminal with the flooding agent, ready for a prompt.
    pub(crate) fn flooded(size: (u16, u16)) -> Self {
        let agent = format!("'{}' flood-agent", std::env::current_exe().unwrap().display());
        let mut terminal = Self::start(&["tui", "--agent", &agent], size);
        terminal.prompt("ready?");
        terminal.until("DONE-1");
        terminal.pass(Duration::from_millis(500));
        terminal
    }

    fn take(&mut self, (at, chunk): (Instant, Vec<u8>)) {
        self.first.get_or_insert(at);
        self.bytes += chunk.len() as u64;
        self.pieces += 1;
        self.parser.process(&chunk);
        // What a terminal answers when it is asked where the cursor is and what it is.
        for (query, answer) in [(&b"\x1b[6n"[..], "\x1b[1;1R"), (b"\x1b[c", "\x1b[?62;c")] {
            if chunk.windows(query.len()).any(|part| part == query) {
                self.send(answer);
            }
        }
    }

    pub(crate) fn send(&mut self, keys: &str) {
        self.input.write_all(keys.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Types a prompt and sends it, once the composer is there and has it.
    pub(crate) fn prompt(&mut self, text: &str) {
        if self.first.is_none() {
            self.until("Enter send");
        }
        self.send(text);
        self.until(text);
        self.send("\r");
    }

    /// Waits until the screen has the text; returns when it came.
    pub(crate) fn until(&mut self, text: &str) -> Instant {
        self.until_true(text, |screen| screen.contains(text))
    }

    pub(crate) fn until_true(&mut self, what: &str, test: impl Fn(&str) -> bool) -> Instant {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(piece) = self.output.recv_timeout(left) else {
                panic!("{what}: never came\n{}", self.parser.screen().contents());
            };
            let at = piece.0;
            self.take(piece);
            // The rest of a burst belongs to the same picture.
            while let Ok(piece) = self.output.try_recv() {
                self.take(piece);
            }
            if test(&self.parser.screen().contents()) {
                return at;
            }
        }
    }

    /// Takes what comes for so long.
    pub(crate) fn pass(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while let Ok(piece) =
            self.output.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            self.take(piece);
        }
    }

    /// Gives the terminal another size, as a person who drags its corner does.
    pub(crate) fn resize(&mut self, (columns, rows): (u16, u16)) {
        self.parser.screen_mut().set_size(rows, columns);
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.master.resize(size).unwrap();
    }

    /// The number that stands after this text on the screen.
    pub(crate) fn number_after(&self, text: &str) -> f64 {
        let screen = self.screen();
        let after = screen.split(text).nth(1).unwrap_or_default();
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(f64::NAN)
    }

    /// The texts that the program keeps on disk for its pager.
    pub(crate) fn kept(&self) -> impl Iterator<Item = String> {
        let entries = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
        let runs = entries(self.dir.path().join("state/tui"))
            .filter(|run| run.file_name().to_string_lossy().starts_with("spill-"));
        runs.flat_map(move |run| entries(run.path()))
            .filter_map(|file| std::fs::read_to_string(file.path()).ok())
    }

    pub(crate) fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    pub(crate) fn probe(&self) -> Reading {
        probe::read(self.child.process_id().unwrap_or_default())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
