//! A private world for one test: home, state and working directories, a clean environment, and a
//! mark by which every process started in it can be found again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_zcode-acp");
/// The variable that marks this test's processes.
const MARK: &str = "ZCODE_ACP_TEST_MARK";

static COUNTER: AtomicU32 = AtomicU32::new(0);

pub(crate) struct World {
    dir: tempfile::TempDir,
    mark: String,
    pub(crate) env: Vec<(String, String)>,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "cwd", "state", "tmp"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let mark = format!("{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let env = [
            ("HOME", path("home")),
            ("TMPDIR", path("tmp")),
            ("ZCODE_ACP_STATE_DIR", path("state")),
            ("ZCODE_ACP_LOG", "debug".to_owned()),
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("COLORTERM", "truecolor".to_owned()),
            (MARK, mark.clone()),
        ];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { dir, mark, env }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.env.retain(|(n, _)| n != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn cwd(&self) -> PathBuf {
        self.dir.path().join("cwd")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// The binary with this world's environment; its standard input is empty.
    #[expect(clippy::disallowed_methods, reason = "tests start the program as a stranger would")]
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(args).env_clear().envs(self.env.iter().cloned());
        command.current_dir(self.cwd()).stdin(Stdio::null());
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::of(self.command(args).output().unwrap())
    }

    /// What the program logged.
    pub(crate) fn log(&self) -> String {
        files_in(&self.state().join("log"))
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok())
            .collect()
    }

    /// Processes of this world that still run, as "pid command line".
    pub(crate) fn processes(&self) -> Vec<String> {
        let wanted = format!("{MARK}={}", self.mark);
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(pid) = entry.file_name().to_str().unwrap_or_default().parse::<u32>() else {
                continue;
            };
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let marked = environ.split(|b| *b == 0).any(|var| var == wanted.as_bytes());
            // A zombie has neither environment nor command line.
            if marked && !line.is_empty() {
                found.push(format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        found
    }

    /// Waits until no process of this world is left; the promise is five seconds.
    pub(crate) fn assert_no_orphans(&self) {
        let deadline = Instant::now() + Duration::from_secs(6);
        while Instant::now() < deadline {
            if self.processes().is_empty() {
                return;
            }
            std::thread::yield_now();
        }
        panic!("still running: {:#?}", self.processes());
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        }
    }
}

pub(crate) fn files_in(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}
