//! The program on a pseudo-terminal: what it drew, what it wrote, in which modes it left things.

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};

use crate::modes::Modes;
use crate::world::{BINARY, World};

/// How long a test waits for anything before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Terminal<'a> {
    world: &'a World,
    master: Option<Box<dyn MasterPty + Send>>,
    child: Box<dyn Child + Send + Sync>,
    input: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    /// Every byte the program wrote.
    pub(crate) bytes: Vec<u8>,
    termios: String,
    ended: bool,
}

impl<'a> Terminal<'a> {
    /// Starts the binary on a terminal of `columns` x `rows`.
    pub(crate) fn start(world: &'a World, args: &[&str], columns: u16, rows: u16) -> Self {
        Self::start_program(world, BINARY, args, columns, rows)
    }

    /// Starts any program on a terminal.
    pub(crate) fn start_program(
        world: &'a World,
        program: &str,
        args: &[&str],
        columns: u16,
        rows: u16,
    ) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let termios = format!("{:?}", pair.master.get_termios());
        let mut command = CommandBuilder::new(program);
        command.env_clear();
        for (name, value) in &world.env {
            command.env(name, value);
        }
        command.args(args);
        command.cwd(world.cwd());
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let input = pair.master.take_writer().unwrap();
        let (sender, output) = sync_channel::<Vec<u8>>(1024);
        let _reader = std::thread::spawn(move || {
            let mut buffer = [0_u8; 16 * 1024];
            while let Ok(n) = reader.read(&mut buffer) {
                if n == 0 || sender.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            world,
            master: Some(pair.master),
            child,
            input,
            output,
            parser: vt100::Parser::new(rows, columns, 0),
            bytes: Vec::new(),
            termios,
            ended: false,
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        self.parser.process(chunk);
        self.bytes.extend_from_slice(chunk);
    }

    /// The text on the screen, a line per row.
    pub(crate) fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    /// Whether the chat has the screen, not the shell.
    pub(crate) fn is_drawn_by_us(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// Every byte that was written to the terminal so far.
    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the screen has the text now.
    pub(crate) fn shows(&self, text: &str) -> bool {
        self.screen().contains(text)
    }

    /// Waits until the screen satisfies the predicate.
    pub(crate) fn wait_until(&mut self, what: &str, mut is_so: impl FnMut(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(chunk) => self.take(&chunk),
                Err(RecvTimeoutError::Timeout) => self.fail(&format!("no {what} in time")),
                Err(RecvTimeoutError::Disconnected) => {
                    self.ended = true;
                    if is_so(&self.screen()) {
                        return;
                    }
                    self.fail(&format!("the program ended before {what}"));
                }
            }
        }
    }

    /// Waits until the program has written these bytes, seen or not.
    pub(crate) fn wait_written(&mut self, wanted: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !String::from_utf8_lossy(&self.bytes).contains(wanted) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(chunk) => self.take(&chunk),
                Err(_) => self.fail(&format!("{wanted:?} was never written")),
            }
        }
    }

    /// Waits until the text is on the screen.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(&format!("{text:?}"), |screen| screen.contains(text));
    }

    /// Waits until the text has gone from the screen.
    pub(crate) fn wait_gone(&mut self, text: &str) {
        self.wait_until(&format!("end of {text:?}"), |screen| !screen.contains(text));
    }

    /// Takes what the program writes for a while: for dialogs that arm after a quiet moment.
    pub(crate) fn settle(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(chunk) => self.take(&chunk),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => {
                    self.ended = true;
                    return;
                }
            }
        }
    }

    /// Sends keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.input.write_all(keys.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        // A new size is drawn from scratch: nothing of before is counted on, and the model of the
        // terminal cannot write beside a wide character that a cut has left half of.
        let screen = self.parser.screen();
        let modes =
            [(screen.alternate_screen(), "\x1b[?1049h"), (screen.hide_cursor(), "\x1b[?25l")];
        self.parser = vt100::Parser::new(rows, columns, 0);
        for (_, on) in modes.iter().filter(|(is_on, _)| *is_on) {
            self.parser.process(on.as_bytes());
        }
        self.master.as_ref().unwrap().resize(size).unwrap();
    }

    /// The terminal is gone, as when a link breaks; waits until the program has ended. It must be
    /// writing: the thread that reads lets go of the terminal with what comes next.
    pub(crate) fn hang_up(mut self) {
        let deadline = Instant::now() + PATIENCE;
        let (_kept, nothing) = sync_channel(1);
        self.output = nothing;
        self.input = Box::new(std::io::sink());
        self.master = None;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it runs on without a terminal");
            self.settle(Duration::from_millis(10));
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.process_id().expect("it runs")).unwrap()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until the program ends, and takes in what it still wrote.
    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        while !self.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left.min(Duration::from_millis(100))) {
                Ok(chunk) => self.take(&chunk),
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
                Err(RecvTimeoutError::Timeout) if left.is_zero() => self.fail("it did not end"),
                Err(RecvTimeoutError::Timeout) => {
                    // A child that inherited the terminal would keep it open; the program's own
                    // end counts.
                    if let Ok(Some(status)) = self.child.try_wait() {
                        while let Ok(chunk) = self.output.try_recv() {
                            self.take(&chunk);
                        }
                        return status;
                    }
                }
            }
        }
        self.child.wait().unwrap()
    }

    /// Fails unless the terminal is as it was found: every mode off, main screen, cursor shown,
    /// line discipline as before.
    pub(crate) fn assert_restored(&self) {
        let modes = Modes::after(&self.bytes);
        assert!(modes.is_clean(), "left on: {modes:?}\n{}", self.report());
        let screen = self.parser.screen();
        assert!(!screen.alternate_screen(), "still on the alternate screen\n{}", self.report());
        assert!(!screen.hide_cursor(), "the cursor is still hidden\n{}", self.report());
        let termios = format!("{:?}", self.master.as_ref().unwrap().get_termios());
        assert_eq!(termios, self.termios, "the line discipline was not restored");
    }

    fn report(&self) -> String {
        let log = self.world.log();
        let tail: Vec<&str> = log.lines().rev().take(40).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        let last: String =
            String::from_utf8_lossy(&self.bytes[self.bytes.len().saturating_sub(400)..])
                .escape_debug()
                .collect();
        format!(
            "--- screen\n{}\n--- log\n{}\n--- last bytes\n{last}",
            self.screen(),
            tail.join("\n")
        )
    }

    fn fail(&mut self, why: &str) -> ! {
        let report = self.report();
        drop(self.child.kill());
        panic!("{why}\n{report}");
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        drop(self.child.kill()); // has ended already in a test that passed
        drop(self.child.wait());
    }
}

/// Types a prompt and sends it, as hands do: the Enter comes after a pause.
pub(crate) fn say(terminal: &mut Terminal<'_>, prompt: &str) {
    terminal.keys(prompt);
    terminal.wait_for(prompt);
    terminal.settle(Duration::from_millis(80));
    terminal.keys("\r");
}
