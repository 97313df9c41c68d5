//! Guests of the terminal: programs that have it for a while (the user's editor, an agent's own
//! login) and the shell after Ctrl-Z. The agent's side goes on meanwhile; nothing is drawn, and the
//! terminal's signals are the guest's.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::{App, Dirty};
use crate::process::{self, ChildSpec};
use crate::small_file;
use crate::tui::editor;
use crate::tui::model::login::LoginProgram;
use crate::tui::model::transcript::source;
use crate::tui::msg::Msg;
use crate::tui::terminal::reader::Reader;

/// Largest text that is taken back from an editor.
const MAX_EDITED: u64 = 64 * 1024 * 1024;

/// How much later than the program it ended a Ctrl-C may reach us, on a machine that is busy.
const LATE: Duration = Duration::from_secs(5);

/// Who has the terminal.
pub(super) enum Guest {
    /// The user's editor.
    Editor {
        child: tokio::process::Child,
        file: PathBuf,
        /// The text is the draft: what was made of it comes back.
        is_draft: bool,
    },
    /// An agent's own login.
    Login {
        child: tokio::process::Child,
        /// A Ctrl-C came meanwhile, to it and to us.
        interrupted: bool,
    },
    /// A login that failed and has ended: what it said is read until a key says go on.
    Leaving {
        why: String,
        /// The Ctrl-C that ended it is still on its way to us. It is no key that says go on.
        interrupt_due: bool,
    },
}

/// Waits for the guest's end; for ever when there is none.
pub(super) async fn wait(guest: &mut Option<Guest>) -> io::Result<ExitStatus> {
    match guest {
        Some(Guest::Editor { child, .. } | Guest::Login { child, .. }) => child.wait().await,
        Some(Guest::Leaving { .. }) | None => std::future::pending().await,
    }
}

/// Whether a program ended of a Ctrl-C, by itself or as a shell says it.
fn was_interrupted(status: ExitStatus) -> bool {
    let int = Signal::INT.as_raw();
    status.signal() == Some(int) || status.code() == Some(128 + int)
}

impl App {
    /// Leaves the terminal to the shell, stops the whole process group, and comes back on `fg`.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        if self.guest.is_some() {
            // The guest has the terminal, and is stopped with us.
            rustix::process::kill_current_process_group(Signal::STOP)?;
            return Ok(());
        }
        self.hand_over();
        // The group, not only this process: a wrapper that started us must stop with us.
        rustix::process::kill_current_process_group(Signal::STOP)?;
        self.take_back()
    }

    /// Ctrl-C on a terminal that a guest has is for the guest.
    pub(super) fn interrupted(&mut self) {
        if self.late_interrupt.take().is_some_and(|since| since.elapsed() < LATE) {
            return;
        }
        match &mut self.guest {
            None => self.hangup(),
            Some(Guest::Leaving { interrupt_due, .. }) if *interrupt_due => *interrupt_due = false,
            Some(Guest::Leaving { .. }) => self.taken_leave(),
            Some(Guest::Login { interrupted, .. }) => *interrupted = true,
            Some(Guest::Editor { .. }) => {}
        }
    }

    /// What a failed login said is being read.
    pub(super) fn is_leaving(&self) -> bool {
        matches!(self.guest, Some(Guest::Leaving { .. }))
    }

    /// We are told to end. An editor may hold what only its user can save; a login ends with us.
    pub(super) fn dismiss_guest(&mut self) {
        let Some(Guest::Login { child, .. }) = &self.guest else { return };
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid
            && let Err(error) = rustix::process::kill_process(pid, Signal::TERM)
        {
            tracing::debug!(%error, "the login could not be told to end");
        }
    }

    /// Hands the terminal to the user's editor.
    pub(super) fn edit(&mut self, text: &str, is_draft: bool) {
        if self.guest.is_some() {
            return;
        }
        let file = match editor::write(&self.state_dir.join("tui"), text) {
            Ok(file) => file,
            Err(error) => return self.report(&format!("the text could not be written: {error}")),
        };
        self.hand_over();
        match editor::start(&self.editor, &file) {
            Ok(child) => self.guest = Some(Guest::Editor { child, file, is_draft }),
            Err(error) => {
                std::fs::remove_file(&file).ok();
                self.return_at_once();
                self.report(&format!("{} could not be started: {error}", self.editor));
            }
        }
    }

    /// Opens the text of the page in the editor; what is changed there changes nothing here.
    pub(super) fn edit_page(&mut self) {
        match self.page_text() {
            Some(chunks) => {
                let reader = self.spills.reader();
                let text = source::assemble(&chunks, &mut |key| reader.read(key));
                self.edit(&text, false);
            }
            None => self.report("this page has no text of its own"),
        }
    }

    /// Hands the terminal to an agent's own login: the command that started the agent, with what
    /// the agent wants added to its arguments.
    pub(super) fn log_in(&mut self, login: &LoginProgram) {
        if self.guest.is_some() {
            return;
        }
        let Some(spec) = self.login_spec(login) else {
            return self
                .report("the command that starts this agent is not known: log in elsewhere");
        };
        self.hand_over();
        let words = std::iter::once(&spec.program).chain(&spec.args);
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        say_outside(&format!("zcode-acp runs: {}", words.join(" ")));
        match process::foreground(&spec) {
            Ok(child) => self.guest = Some(Guest::Login { child, interrupted: false }),
            Err(error) => {
                self.return_at_once();
                let program = spec.program.to_string_lossy();
                let why = format!("{program} could not be started: {error}");
                self.carry(Msg::LoginEnded(Err(why)), Dirty::Now);
            }
        }
    }

    fn login_spec(&self, login: &LoginProgram) -> Option<ChildSpec> {
        let (program, mut args, cwd) = match (&login.command, &self.agent) {
            (Some(command), agent) => {
                (command.into(), Vec::new(), agent.as_ref().and_then(|agent| agent.cwd.clone()))
            }
            (None, Some(agent)) => (agent.program.clone(), agent.args.clone(), agent.cwd.clone()),
            (None, None) => return None,
        };
        args.extend(login.args.iter().map(OsString::from));
        let mut env = self.env.clone();
        for (name, value) in &login.env {
            env.retain(|(known, _)| known != name.as_str());
            env.push((name.into(), value.into()));
        }
        Some(ChildSpec { args, cwd, env: Some(env), ..ChildSpec::new(program) })
    }

    /// The program that had the terminal has ended.
    pub(super) fn guest_ended(&mut self, status: io::Result<ExitStatus>) -> io::Result<()> {
        match self.guest.take() {
            Some(Guest::Editor { file, is_draft, .. }) => self.edited(status, &file, is_draft),
            Some(Guest::Login { interrupted, .. }) => self.login_ended(status, interrupted),
            Some(Guest::Leaving { .. }) | None => Ok(()),
        }
    }

    fn edited(
        &mut self,
        status: io::Result<ExitStatus>,
        file: &std::path::Path,
        is_draft: bool,
    ) -> io::Result<()> {
        self.take_back()?;
        let text = small_file::read(file, MAX_EDITED);
        std::fs::remove_file(file).ok();
        match (status, text) {
            (Ok(status), Ok(text)) if status.success() => {
                if is_draft {
                    self.carry(Msg::Edited(text), Dirty::Now);
                }
            }
            (Ok(status), Ok(_)) => {
                self.report(&format!("the editor ended with {status}: nothing is changed"));
            }
            (Err(error), _) | (_, Err(error)) => {
                self.report(&format!("the edited text could not be read: {error}"));
            }
        }
        Ok(())
    }

    /// What a failed login said is on the screen that we are about to take: it is left there until
    /// it has been read.
    fn login_ended(&mut self, status: io::Result<ExitStatus>, interrupted: bool) -> io::Result<()> {
        let interrupt_due = !interrupted && status.as_ref().is_ok_and(|it| was_interrupted(*it));
        let why = match status {
            Ok(status) if status.success() => {
                self.take_back()?;
                self.carry(Msg::LoginEnded(Ok(())), Dirty::Now);
                return Ok(());
            }
            Ok(status) => format!("the login ended with {status}"),
            Err(error) => format!("the login got lost: {error}"),
        };
        say_outside(&format!("\nzcode-acp: {why}. Press Enter to go back to the chat."));
        self.guest = Some(Guest::Leaving { why, interrupt_due });
        if let Some(input) = &self.input {
            // In the shell's own line mode: what is typed comes with Enter.
            self.reader = Some(Reader::start(input.clone())?);
        }
        Ok(())
    }

    /// The user has read what a failed login said.
    pub(super) fn taken_leave(&mut self) {
        if let Some(Guest::Leaving { why, interrupt_due }) =
            self.guest.take_if(|guest| matches!(guest, Guest::Leaving { .. }))
        {
            self.late_interrupt = interrupt_due.then(Instant::now);
            self.return_at_once();
            self.carry(Msg::LoginEnded(Err(why)), Dirty::Now);
        }
    }

    /// Gives the terminal away: nobody else's input is read, and its modes are the shell's.
    fn hand_over(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.stop();
        }
        self.guard.suspend();
    }

    fn return_at_once(&mut self) {
        if let Err(error) = self.take_back() {
            tracing::error!(%error, "the terminal could not be taken back");
        }
    }

    /// Takes the terminal again after a program had it.
    fn take_back(&mut self) -> io::Result<()> {
        if let Some(reader) = self.reader.take() {
            reader.stop();
        }
        let modes = self.guard.resume()?;
        self.screen.send_ahead(&modes);
        self.synchronized = false;
        if let Some(input) = &self.input {
            self.reader = Some(Reader::start(input.clone())?);
        }
        self.resized();
        Ok(())
    }
}

/// A line on the shell's screen.
fn say_outside(text: &str) {
    let mut out = io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}").and_then(|()| out.flush()) {
        tracing::debug!(%error, "the terminal takes no text");
    }
}
