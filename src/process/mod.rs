//! The one place that starts child processes, and the only one with `unsafe` code.
//!
//! Owns: spawning, the pipes, the bounded tail of standard error, ending a child **with everything
//! it started**, and the watchdog that does so when this process is killed outright. Must not know
//! what the children speak. Called by the engine side (engines, `node --version`) and by the
//! terminal (foreign agents, `terminal/create`).
//!
//! Every child leads a session and process group of its own: a Ctrl-C in our terminal does not
//! reach it, it cannot read our terminal, and one signal reaches all its descendants.

mod memory;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cli::WatchdogArgs;
use crate::error::AppError;

pub use memory::{forget_code, hand_back_memory_above};

/// How long a terminated group may take before it is killed.
pub const TERM_GRACE: Duration = Duration::from_secs(3);
/// How much longer descendants may take once the leader has gone.
const STRAGGLER_GRACE: Duration = Duration::from_millis(500);
/// How long the watchdog waits between TERM and KILL.
const WATCHDOG_GRACE: Duration = Duration::from_millis(1500);
/// The pace at which an ending group is looked at; only while something is being ended.
const ENDING_POLL: Duration = Duration::from_millis(10);
/// What the owner writes on the lifeline when it has ended the group itself.
const FAREWELL: u8 = b'.';
/// Lines and bytes kept of a child's standard error.
const STDERR_LINES: usize = 200;
const STDERR_BYTES: usize = 64 * 1024;
/// A single line of standard error is cut here.
const STDERR_LINE: usize = 4 * 1024;

static OWN_BINARY: OnceLock<PathBuf> = OnceLock::new();

/// Declares which executable understands the hidden subcommands (`watchdog`, `sim-engine`). Called
/// once by `main`; a process that never calls it (a unit test) runs its children unwatched.
pub fn register_own_binary(path: PathBuf) {
    // The watchdog is started in another directory.
    if OWN_BINARY.set(std::path::absolute(&path).unwrap_or(path)).is_err() {
        tracing::debug!("the own binary was registered twice");
    }
}

/// Returns the executable given to [`register_own_binary`], in a form that stays valid when the
/// file is replaced during an update.
pub fn own_binary() -> Option<PathBuf> {
    let path = OWN_BINARY.get()?;
    let running = PathBuf::from("/proc/self/exe");
    if path.exists() || !running.exists() { Some(path.clone()) } else { Some(running) }
}

/// Where a child's input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A pipe, see [`Child::stdin`].
    Pipe,
    /// Nothing to read.
    Null,
}

/// Where a child's output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Standard output to a pipe, the tail of standard error is kept.
    Split,
    /// Both to one pipe, in the order they were written.
    Merged,
}

/// What to start and how.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    /// The program: a path, or a name to be found on the child's `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory; `None` is ours.
    pub cwd: Option<PathBuf>,
    /// Its whole environment; `None` is ours.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// Its standard input.
    pub input: Input,
    /// Its standard output and error.
    pub output: Output,
    /// Whether a watchdog ends it when this process is killed.
    pub watched: bool,
}

impl ChildSpec {
    /// Piped input and output, the environment inherited, watched.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            env: None,
            input: Input::Pipe,
            output: Output::Split,
            watched: true,
        }
    }
}

/// A running child and everything it started. Dropping it kills the group at once; prefer
/// [`Child::terminate`].
#[derive(Debug)]
pub struct Child {
    /// The writing end of its standard input; dropping it is an end of file to the child.
    pub stdin: Option<pipe::Sender>,
    /// The reading end of its standard output (and error, when merged).
    pub stdout: Option<pipe::Receiver>,
    stderr: StderrTail,
    inner: tokio::process::Child,
    group: Group,
    lifeline: Option<Lifeline>,
    over: bool,
}

impl Child {
    /// Starts the child. Needs a tokio runtime with I/O.
    pub fn spawn(spec: &ChildSpec) -> io::Result<Self> {
        let mut command = command(spec);
        let stdin = match spec.input {
            Input::Null => {
                command.stdin(Stdio::null());
                None
            }
            Input::Pipe => {
                let (reader, writer) = io::pipe()?;
                command.stdin(reader);
                Some(pipe::Sender::from_owned_fd(writer.into())?)
            }
        };
        let (reader, writer) = io::pipe()?;
        let stderr = match spec.output {
            Output::Merged => {
                command.stderr(writer.try_clone()?);
                None
            }
            Output::Split => {
                let (reader, writer) = io::pipe()?;
                command.stderr(writer);
                Some(reader)
            }
        };
        command.stdout(writer);
        let inner = command.spawn()?;
        // The command holds the child's ends of the pipes: without them gone there is no end of file.
        drop(command);
        let pid = inner.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = Group(pid.ok_or_else(|| io::Error::other("the child has no process id"))?);
        let stderr = match stderr {
            Some(reader) => StderrTail::follow(pipe::Receiver::from_owned_fd(reader.into())?),
            None => StderrTail::empty(),
        };
        Ok(Self {
            stdin,
            stdout: Some(pipe::Receiver::from_owned_fd(reader.into())?),
            stderr,
            inner,
            group,
            lifeline: spec.watched.then(|| Lifeline::tie(group)).flatten(),
            over: false,
        })
    }

    /// The process id, which is also the id of its group.
    pub fn pid(&self) -> u32 {
        self.group.0.as_raw_nonzero().get().unsigned_abs()
    }

    /// The last lines of standard error; stays readable after the end.
    pub fn stderr(&self) -> StderrTail {
        self.stderr.clone()
    }

    /// Waits for the child itself (descendants may go on). Cancel safe.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.inner.wait().await
    }

    /// Sends a signal to the whole group; a group that is gone is no error.
    pub fn signal(&self, signal: Signal) {
        if !self.over {
            self.group.signal(signal);
        }
    }

    /// Ends the child and everything it started: TERM, up to `grace`, KILL. Returns the child's
    /// status, or `None` when the system does not tell it.
    pub async fn terminate(&mut self, grace: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + grace;
        self.signal(Signal::TERM);
        let status = match tokio::time::timeout_at(deadline, self.inner.wait()).await {
            Ok(status) => status.ok(),
            Err(_elapsed) => {
                self.signal(Signal::KILL);
                self.inner.wait().await.ok()
            }
        };
        let stragglers = deadline.min(Instant::now() + STRAGGLER_GRACE);
        while self.group.exists() {
            if Instant::now() >= stragglers {
                self.signal(Signal::KILL);
                break;
            }
            tokio::time::sleep(ENDING_POLL).await;
        }
        self.close();
        status
    }

    fn close(&mut self) {
        self.over = true;
        if let Some(lifeline) = self.lifeline.take() {
            lifeline.farewell();
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.over {
            self.signal(Signal::KILL);
            self.close();
        }
    }
}

/// Runs a short command to its end and returns its standard output; used for probes such as
/// `node --version`. `None` when it cannot run, fails, or takes longer than `limit`.
pub async fn capture(spec: &ChildSpec, limit: Duration) -> Option<String> {
    let mut child =
        Child::spawn(&ChildSpec { input: Input::Null, watched: false, ..spec.clone() }).ok()?;
    let mut out = Vec::new();
    let stdout = child.stdout.take()?;
    let run = async {
        let mut reader = tokio::io::AsyncReadExt::take(stdout, 64 * 1024);
        tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut out).await.ok()?;
        child.wait().await.ok().filter(ExitStatus::success)
    };
    let status = tokio::time::timeout(limit, run).await.ok().flatten();
    status.map(|_| String::from_utf8_lossy(&out).into_owned())
}

/// Runs a command that takes `text` on its standard input, and waits for it. What it leaves
/// running (a program that serves the clipboard) goes on.
///
/// # Errors
/// When it cannot be started, or takes longer than `limit`; then it is killed.
pub async fn feed(spec: &ChildSpec, text: &[u8], limit: Duration) -> io::Result<ExitStatus> {
    let spec = ChildSpec { input: Input::Pipe, watched: false, ..spec.clone() };
    let mut child = Child::spawn(&spec)?;
    let mut stdin = child.stdin.take();
    let run = async {
        if let Some(stdin) = &mut stdin {
            tokio::io::AsyncWriteExt::write_all(stdin, text).await?;
        }
        drop(stdin);
        child.inner.wait().await
    };
    let status = tokio::time::timeout(limit, run)
        .await
        .map_err(|_elapsed| io::Error::new(io::ErrorKind::TimedOut, "it took too long"))??;
    child.close();
    Ok(status)
}

/// Runs a command that takes `text` on its standard input, and returns its status and what it
/// writes, up to `most` bytes.
///
/// # Errors
/// When it cannot be started, or takes longer than `limit`; then it is killed.
pub async fn exchange(
    spec: &ChildSpec,
    text: &[u8],
    limit: Duration,
    most: u64,
) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mut child =
        Child::spawn(&ChildSpec { input: Input::Pipe, watched: false, ..spec.clone() })?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let run = async {
        let write = async {
            let Some(mut stdin) = stdin else { return Ok(()) };
            tokio::io::AsyncWriteExt::write_all(&mut stdin, text).await
        };
        let read = async {
            let mut out = Vec::new();
            if let Some(stdout) = stdout {
                let mut reader = tokio::io::AsyncReadExt::take(stdout, most);
                tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut out).await?;
            }
            io::Result::Ok(out)
        };
        // A command that ends without reading its input says why by its status.
        let (_written, out) = futures::future::join(write, read).await;
        io::Result::Ok((child.wait().await?, out?))
    };
    tokio::time::timeout(limit, run)
        .await
        .map_err(|_elapsed| io::Error::new(io::ErrorKind::TimedOut, "it took too long"))?
}

/// Starts a program that takes over our terminal, such as an editor: it shares our standard
/// streams and our process group, so that the terminal's keys and signals reach it.
///
/// # Errors
/// When it cannot be started.
#[expect(clippy::disallowed_methods, reason = "this is the one place that starts children")]
pub fn foreground(spec: &ChildSpec) -> io::Result<tokio::process::Child> {
    let mut command = tokio::process::Command::new(&spec.program);
    command.args(&spec.args);
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    if let Some(env) = &spec.env {
        command.env_clear().envs(env.iter().map(|(k, v)| (k, v)));
    }
    command.spawn()
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that starts children")]
fn command(spec: &ChildSpec) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(&spec.program);
    command.args(&spec.args).kill_on_drop(true);
    if let Some(cwd) = &spec.cwd {
        command.current_dir(cwd);
    }
    if let Some(env) = &spec.env {
        command.env_clear().envs(env.iter().map(|(k, v)| (k, v)));
    }
    detach(&mut command, on_terminal());
    command
}

/// Whether this process has a controlling terminal.
fn on_terminal() -> bool {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open("/dev/tty", flags, Mode::empty()).is_ok()
}

/// Makes the child lead a process group, so that it is ended with all it starts. On a terminal it
/// gets a session too: nothing it runs may ask for a password over our screen, or be stopped for
/// trying. Without a terminal it stays in our session, because the scheduler of Linux weighs
/// sessions against each other: on a busy machine each piece of text that crosses from one to
/// another waits for a time slice, about 4 ms.
#[expect(unsafe_code, reason = "a session of its own can only be made between fork and exec")]
fn detach(command: &mut tokio::process::Command, on_terminal: bool) {
    if !on_terminal {
        command.process_group(0);
        return;
    }
    // SAFETY: `setsid` is async-signal-safe and touches no memory of the forked process.
    unsafe {
        command.pre_exec(|| rustix::process::setsid().map(drop).map_err(io::Error::from));
    }
}

/// A process group that a child of ours leads.
#[derive(Debug, Clone, Copy)]
struct Group(Pid);

impl Group {
    fn signal(self, signal: Signal) {
        if let Err(error) = rustix::process::kill_process_group(self.0, signal)
            && error != rustix::io::Errno::SRCH
        {
            tracing::debug!(%error, group = self.0.as_raw_nonzero().get(), "cannot signal a group");
        }
    }

    fn exists(self) -> bool {
        rustix::process::test_kill_process_group(self.0) != Err(rustix::io::Errno::SRCH)
    }
}

/// A shared view of the last lines of a child's standard error.
#[derive(Debug, Clone)]
pub struct StderrTail(watch::Receiver<Arc<Ring>>);

#[derive(Debug, Default, Clone)]
struct Ring {
    lines: VecDeque<String>,
    bytes: usize,
}

impl StderrTail {
    fn empty() -> Self {
        Self(watch::channel(Arc::default()).1)
    }

    /// Collects lines until the end of `reader`, in a task of its own.
    fn follow(reader: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let (sender, receiver) = watch::channel(Arc::<Ring>::default());
        tokio::spawn(async move {
            let mut reader = BufReader::new(reader);
            let mut line = Vec::new();
            while read_bounded_line(&mut reader, &mut line).await {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                if !text.is_empty() {
                    sender.send_modify(|ring| Arc::make_mut(ring).push(text));
                }
            }
        });
        Self(receiver)
    }

    /// The newest `limit` lines, oldest first.
    pub fn lines(&self, limit: usize) -> Vec<String> {
        let ring = self.0.borrow();
        ring.lines.iter().skip(ring.lines.len().saturating_sub(limit)).cloned().collect()
    }

    /// Waits for something new, or the end.
    #[cfg(test)]
    pub(crate) async fn next_line(&mut self) {
        if self.0.borrow().lines.is_empty() {
            self.0.changed().await.ok();
        }
    }

    /// Waits until the child's standard error is closed; what came before is in the tail then.
    pub async fn closed(&mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

impl Ring {
    fn push(&mut self, line: String) {
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > STDERR_LINES || self.bytes > STDERR_BYTES {
            let Some(old) = self.lines.pop_front() else { break };
            self.bytes -= old.len();
        }
    }
}

/// Reads one line into `line`, keeping its first [`STDERR_LINE`] bytes. False at the end.
async fn read_bounded_line(
    reader: &mut BufReader<impl AsyncRead + Unpin>,
    line: &mut Vec<u8>,
) -> bool {
    line.clear();
    let mut any = false;
    loop {
        let Ok(chunk) = reader.fill_buf().await else { return any };
        if chunk.is_empty() {
            return any;
        }
        any = true;
        let end = chunk.iter().position(|&b| b == b'\n');
        let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
        let room = STDERR_LINE.saturating_sub(line.len()).min(part.len());
        line.extend_from_slice(part.get(..room).unwrap_or_default());
        let used = end.map_or(chunk.len(), |at| at + 1);
        reader.consume(used);
        if end.is_some() {
            return true;
        }
    }
}

/// Our end of the pipe whose closing tells the watchdog that we are gone.
#[derive(Debug)]
struct Lifeline(io::PipeWriter);

impl Lifeline {
    /// Starts a watchdog for the group. Never delays the caller: forking and reaping happen on a
    /// small thread, which sleeps in `wait` for the rest of the time.
    fn tie(group: Group) -> Option<Self> {
        let program = own_binary()?;
        let (reader, writer) = io::pipe().ok()?;
        let watch = move || {
            let mut command = watchdog_command(&program, group);
            command.stdin(reader);
            let outcome = command.spawn();
            drop(command);
            match outcome.and_then(|mut child| child.wait()) {
                Ok(status) => tracing::debug!(%status, "watchdog ended"),
                Err(error) => {
                    tracing::warn!(%error, "no watchdog: a killed process would leave its engine");
                }
            }
        };
        let thread =
            std::thread::Builder::new().name("watchdog".into()).stack_size(128 * 1024).spawn(watch);
        thread.ok().map(|_detached| Self(writer))
    }

    fn farewell(mut self) {
        // A watchdog that has gone already needs none.
        self.0.write_all(&[FAREWELL]).ok();
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that starts children")]
#[expect(unsafe_code, reason = "a session of its own can only be made between fork and exec")]
fn watchdog_command(program: &std::path::Path, group: Group) -> std::process::Command {
    use std::os::unix::process::CommandExt as _;
    let mut command = std::process::Command::new(program);
    command
        .arg0("zcode-acp")
        .arg("watchdog")
        .arg("--group")
        .arg(group.0.as_raw_nonzero().get().to_string());
    command.stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    // SAFETY: `setsid` is async-signal-safe and touches no memory of the forked process.
    unsafe {
        command.pre_exec(|| rustix::process::setsid().map(drop).map_err(io::Error::from));
    }
    command
}

/// Becomes the watchdog, and never returns, when the arguments ask for it and nothing else. It stays
/// resident beside every engine, so it must not touch the pages that only the others need: parsing
/// the whole command line would cost it a megabyte.
pub fn watch_if_asked(args: impl Iterator<Item = OsString>) {
    if let Some(args) = watchdog_request(args) {
        std::process::exit(i32::from(watchdog_main(&args).is_err()));
    }
}

fn watchdog_request(mut args: impl Iterator<Item = OsString>) -> Option<WatchdogArgs> {
    let is_asked = args.nth(1)? == "watchdog" && args.next()? == "--group";
    let group = args.next()?.to_str()?.parse().ok()?;
    (is_asked && args.next().is_none()).then_some(WatchdogArgs { group })
}

/// The body of the hidden subcommand `watchdog`: sleeps until standard input ends, then ends the
/// group unless the owner said farewell. Everything is gone within [`WATCHDOG_GRACE`].
pub fn watchdog_main(args: &WatchdogArgs) -> Result<(), AppError> {
    match Pid::from_raw(args.group).filter(|pid| pid.as_raw_nonzero().get() > 1) {
        Some(pid) => watch_over(Group(pid)),
        None => return Err(AppError::failed("there is no such process group")),
    }
    Ok(())
}

fn watch_over(group: Group) {
    close_inherited();
    // It sleeps beside every engine for as long as that lives.
    forget_code();
    let mut byte = [0_u8; 1];
    loop {
        match io::stdin().read(&mut byte) {
            Ok(0) => break,
            Ok(_) if byte == [FAREWELL] => return,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
            Ok(_) | Err(_) => {}
        }
    }
    group.signal(Signal::TERM);
    let deadline = std::time::Instant::now() + WATCHDOG_GRACE;
    while group.exists() && std::time::Instant::now() < deadline {
        std::thread::sleep(ENDING_POLL);
    }
    group.signal(Signal::KILL);
}

/// Closes what an editor left open in us and the watchdog inherited: held here, a pipe would not
/// end for its reader when we do.
#[expect(unsafe_code, reason = "closing descriptors that nothing in this process owns")]
fn close_inherited() {
    use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return };
    let open: Vec<RawFd> = entries
        .flatten()
        .filter_map(|e| e.file_name().to_str().and_then(|n| n.parse().ok()))
        .collect();
    for fd in open.into_iter().filter(|&fd| fd > 2) {
        // The listing's own descriptor is in the list and closed by now.
        if std::fs::symlink_metadata(format!("/dev/fd/{fd}")).is_ok() {
            // SAFETY: the subcommand runs alone in its process and has opened nothing itself.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn shell(script: &str) -> ChildSpec {
        ChildSpec { args: vec!["-c".into(), script.into()], ..ChildSpec::new("/bin/sh") }
    }

    #[tokio::test]
    async fn a_child_echoes_and_its_stderr_is_kept() {
        let mut child = Child::spawn(&shell("echo oops >&2; cat")).unwrap();
        child.stdin.take().unwrap().write_all(b"hello\n").await.unwrap();
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
        assert_eq!(out, "hello\n");
        assert!(child.wait().await.unwrap().success());
        let mut tail = child.stderr();
        tail.closed().await;
        assert_eq!(tail.lines(10), ["oops"]);
    }

    #[tokio::test]
    async fn merged_output_keeps_the_order() {
        let spec = ChildSpec { output: Output::Merged, ..shell("echo a; echo b >&2; echo c") };
        let mut child = Child::spawn(&spec).unwrap();
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
        assert_eq!(out, "a\nb\nc\n");
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the child is started as `command` starts it")]
    async fn a_child_has_a_session_of_its_own_only_on_a_terminal() {
        for on_terminal in [false, true] {
            let mut command = tokio::process::Command::new("/bin/cat");
            command.stdin(Stdio::piped()).kill_on_drop(true);
            detach(&mut command, on_terminal);
            let mut child = command.spawn().unwrap();
            let pid = i32::try_from(child.id().unwrap()).unwrap();
            let group = rustix::process::getpgid(Pid::from_raw(pid)).unwrap();
            assert_eq!(Some(group), Pid::from_raw(pid), "it can be ended as a group");
            let session = session_of(pid);
            assert_eq!(session == pid, on_terminal);
            let ours = session_of(i32::try_from(std::process::id()).unwrap());
            assert_eq!(session == ours, !on_terminal);
            child.kill().await.unwrap();
        }
    }

    /// The session of a process. Not by `getsid`: in a container, whose session was begun outside
    /// of it, that is 0 and no process number.
    fn session_of(pid: i32) -> i32 {
        #[cfg(target_os = "linux")]
        {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            let (_, after_name) = stat.rsplit_once(')').unwrap();
            after_name.split_whitespace().nth(3).unwrap().parse().unwrap()
        }
        #[cfg(not(target_os = "linux"))]
        rustix::process::getsid(Pid::from_raw(pid)).unwrap().as_raw_nonzero().get()
    }

    #[tokio::test]
    async fn a_group_that_ignores_term_is_killed_with_its_grandchildren() {
        let script = "trap '' TERM; (trap '' TERM; echo up; while :; do sleep 1; done) & while :; do sleep 1; done";
        let mut child = Child::spawn(&shell(script)).unwrap();
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        let group = child.group;
        assert!(group.exists());
        let status = child.terminate(Duration::from_millis(100)).await.unwrap();
        assert!(!status.success());
        // The last grandchild is reaped by init, not by us.
        tokio::time::timeout(Duration::from_secs(5), async {
            while group.exists() {
                tokio::time::sleep(ENDING_POLL).await;
            }
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn a_dropped_child_is_killed() {
        let mut child = Child::spawn(&shell("echo up; sleep 100")).unwrap();
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).await.unwrap();
        let group = child.group;
        drop(child);
        tokio::time::timeout(Duration::from_secs(5), async {
            while group.exists() {
                tokio::time::sleep(ENDING_POLL).await;
            }
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn a_long_line_of_stderr_is_cut_and_the_ring_is_bounded() {
        let script = "head -c 100000 /dev/zero | tr '\\0' x >&2; echo >&2; for i in $(seq 300); do echo $i >&2; done";
        let mut child = Child::spawn(&shell(script)).unwrap();
        child.wait().await.unwrap();
        let mut tail = child.stderr();
        tail.closed().await;
        let lines = tail.lines(usize::MAX);
        assert_eq!(lines.len(), STDERR_LINES);
        assert_eq!(lines.last().map(String::as_str), Some("300"));
        assert!(lines.iter().all(|line| line.len() <= STDERR_LINE));
    }

    #[tokio::test]
    async fn a_probe_that_hangs_is_given_up() {
        assert_eq!(capture(&shell("sleep 100"), Duration::from_millis(50)).await, None);
        assert_eq!(
            capture(&shell("echo v22.1.0"), Duration::from_secs(5)).await.as_deref(),
            Some("v22.1.0\n")
        );
        assert_eq!(capture(&shell("exit 3"), Duration::from_secs(5)).await, None);
    }

    #[tokio::test]
    async fn a_missing_program_is_an_error() {
        assert!(Child::spawn(&ChildSpec::new("/nonexistent/program")).is_err());
    }
}
