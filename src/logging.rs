//! The log: one rotated file in the state directory, written through [`crate::redact`].
//!
//! Never writes to standard output or standard error: the first belongs to the protocol, the
//! second to messages for people. The file is opened by the first event that passes the filter, so
//! a start without anything to say touches no disk. Called once by `main`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Config, Env};
use crate::redact;

/// What is logged when nobody asked: our own notable events, and the warnings of others. The
/// SDK's per-message events stay off, so that the hot path pays one load and no formatting; what it
/// warns of (a request that it cannot read) is the client's fault, and the client is told.
const DEFAULT_FILTER: &str = "warn,agent_client_protocol=error,zcode_acp=info";
/// Files kept, one a day.
const MAX_FILES: usize = 7;
/// What one process may write in a day; a runaway loop must not fill the disk.
const MAX_BYTES_A_DAY: u64 = 64 * 1024 * 1024;
/// Longest line: one event must not crowd out a day of others.
const MAX_LINE: usize = 8 * 1024;
/// What of a longer one is looked at: a secret must be whole to be seen.
const MAX_READ: usize = 64 * 1024;
/// File names are `zcode-acp.<date>.log`.
const PREFIX: &str = "zcode-acp";

/// Starts logging for the whole process and records panics.
///
/// Returns what was wrong with `ZCODE_ACP_LOG`, if anything; the default filter is used then.
pub fn init(config: &Config) -> Option<String> {
    let (filter, problem) = filter(&config.env, config.debug);
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(LogFile::new(log_dir(&config.state_dir)));
    // A second call (tests) keeps the first subscriber.
    if tracing_subscriber::registry().with(layer).with(filter).try_init().is_ok() {
        record_panics();
    }
    problem
}

/// Returns where the log files are.
pub fn log_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("log")
}

/// What is wrong with `ZCODE_ACP_LOG`, if anything.
pub fn problem(env: &Env) -> Option<String> {
    filter(env, false).1
}

fn filter(env: &Env, debug: bool) -> (Targets, Option<String>) {
    let default = || DEFAULT_FILTER.parse::<Targets>().unwrap_or_default();
    match env.str("ZCODE_ACP_LOG") {
        // The TypeScript bridge's switch means the same here.
        None if debug => (default().with_target("zcode_acp", tracing::Level::DEBUG), None),
        None => (default(), None),
        // A bare level speaks of us, not of every library.
        Some(word) => match word.parse::<tracing::metadata::LevelFilter>() {
            Ok(level) => (default().with_target("zcode_acp", level), None),
            Err(_) => match word.parse::<Targets>() {
                Ok(targets) => (targets, None),
                Err(err) => (default(), Some(format!("ZCODE_ACP_LOG={word}: {err}"))),
            },
        },
    }
}

/// Writes every panic to the log before the hook that was there (which tells the user).
fn record_panics() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let location = info.location().map(ToString::to_string).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("no message");
        tracing::error!(%location, message, "panic");
        previous(info);
    }));
}

/// The rotated file. Opened late, private, bounded, and every line is redacted on its way in.
#[derive(Debug)]
struct LogFile {
    dir: PathBuf,
    file: OnceLock<Option<RollingFileAppender>>,
    /// Day (since the epoch) of the last write: on a new day a new file appears.
    day: AtomicU64,
    written: AtomicU64,
}

impl LogFile {
    fn new(dir: PathBuf) -> Self {
        Self { dir, file: OnceLock::new(), day: AtomicU64::new(0), written: AtomicU64::new(0) }
    }

    fn open(&self) -> Option<RollingFileAppender> {
        private_dir(&self.dir).ok()?;
        // Whoever else can write there could lead the log into another file.
        if !is_ours_alone(&self.dir) {
            return None;
        }
        RollingFileAppender::builder()
            .rotation(Rotation::DAILY)
            .filename_prefix(PREFIX)
            .filename_suffix("log")
            .max_log_files(MAX_FILES)
            .build(&self.dir)
            .ok()
    }

    fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let Some(mut file) =
            self.file.get_or_init(|| self.open()).as_ref().map(MakeWriter::make_writer)
        else {
            return Ok(()); // no log is no reason to stop
        };
        let today = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_secs() / 86_400);
        let new_day = self.day.swap(today, Ordering::Relaxed) != today;
        if new_day {
            self.written.store(0, Ordering::Relaxed);
        }
        let text = safe_line(line);
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let before = self.written.fetch_add(length, Ordering::Relaxed);
        if before > MAX_BYTES_A_DAY {
            return Ok(());
        }
        if before + length > MAX_BYTES_A_DAY {
            file.write_all(b"the log of this process is full for today\n")?;
        } else {
            file.write_all(text.as_bytes())?;
        }
        if new_day {
            make_private(&self.dir);
        }
        Ok(())
    }
}

/// The line without secrets, and not longer than [`MAX_LINE`].
fn safe_line(line: &[u8]) -> String {
    let read = line.get(..MAX_READ).unwrap_or(line);
    let text = String::from_utf8_lossy(read);
    let mut text = redact::text(text.trim_end_matches('\n')).into_owned();
    let end = text.floor_char_boundary(MAX_LINE);
    if end < text.len() || read.len() < line.len() {
        text.truncate(end);
        text.extend([" … (cut, ", &line.len().to_string(), " bytes)"]);
    }
    text.push('\n');
    text
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter(self)
    }
}

/// One event's writer: the formatter hands it the whole line at once.
#[derive(Debug)]
struct LineWriter<'a>(&'a LogFile);

impl Write for LineWriter<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write_line(buf)?;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates a directory (and what is missing above it) that only the user can enter.
pub fn private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Whether the directory is the user's and nobody else can write to it.
pub fn is_ours_alone(dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let ours = rustix::process::geteuid().as_raw();
    std::fs::metadata(dir)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == ours && meta.mode() & 0o022 == 0)
}

/// Takes the log files away from everybody else: the appender creates them by the umask.
fn make_private(dir: &Path) {
    #[cfg(unix)]
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        use std::os::unix::fs::PermissionsExt;
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // A symbolic link is not ours, wherever it leads.
        if ours && entry.file_type().is_ok_and(|t| t.is_file()) {
            let private = std::fs::Permissions::from_mode(0o600);
            // The directory is 0700 already: a failure here opens nothing.
            drop(std::fs::set_permissions(entry.path(), private));
        }
    }
    #[cfg(not(unix))]
    let _: &Path = dir;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(dir: &Path) -> String {
        std::fs::read_dir(dir)
            .unwrap()
            .map(|e| std::fs::read_to_string(e.unwrap().path()).unwrap())
            .collect()
    }

    fn log_with(spec: &[(&str, &str)], state: &Path, f: impl FnOnce()) {
        let env: Env = spec.iter().copied().collect();
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(LogFile::new(log_dir(state)));
        let subscriber = tracing_subscriber::registry().with(layer).with(filter(&env, false).0);
        tracing::subscriber::with_default(subscriber, f);
    }

    #[test]
    fn where_others_can_write_nothing_is_logged() {
        use std::os::unix::fs::PermissionsExt as _;
        let state = tempfile::tempdir().unwrap();
        let dir = log_dir(state.path());
        std::fs::create_dir(&dir).unwrap();
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
        log_with(&[], state.path(), || tracing::warn!(target: "zcode_acp", "hello"));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    }

    #[test]
    fn a_silent_start_touches_no_disk() {
        let state = tempfile::tempdir().unwrap();
        log_with(&[], state.path(), || tracing::debug!("too fine"));
        assert!(!log_dir(state.path()).exists());
    }

    #[test]
    fn secrets_never_reach_the_log() {
        let state = tempfile::tempdir().unwrap();
        log_with(&[("ZCODE_ACP_LOG", "trace")], state.path(), || {
            tracing::info!(api_key = "sk-ant-0123456789abcdefABCDEF", "set");
            tracing::warn!("line {}", r#"{"options":{"apiKey":"k-secret-1"},"n":1}"#);
            tracing::error!("Authorization: Bearer tok-secret-2");
            tracing::trace!(value = ?Some("enc:v1:c2VjcmV0LTM="), "credentials");
        });
        let text = text_of(&log_dir(state.path()));
        for secret in ["0123456789abcdef", "k-secret-1", "tok-secret-2", "c2VjcmV0"] {
            assert!(!text.contains(secret), "{secret} is in:\n{text}");
        }
        assert!(text.contains("\"n\":1"), "what is no secret stays:\n{text}");
    }

    #[test]
    fn a_line_without_end_is_cut_and_what_comes_after_it_is_there() {
        let state = tempfile::tempdir().unwrap();
        log_with(&[], state.path(), || {
            let secret =
                format!("{}\"apiKey\":\"k-secret-{}\"", "é ".repeat(2_700), "9".repeat(50));
            tracing::warn!("{secret}");
            tracing::warn!("{}", "word ".repeat(200_000));
            tracing::warn!("after");
        });
        let text = text_of(&log_dir(state.path()));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() < MAX_LINE + 64), "{}", text.len());
        assert!(lines[1].ends_with(" bytes)") && lines[2].ends_with("after"), "{}", lines[2]);
        assert!(!text.contains("k-secret"));
    }

    #[test]
    fn what_the_sdk_says_of_a_clients_bad_request_is_not_kept() {
        let state = tempfile::tempdir().unwrap();
        log_with(&[], state.path(), || {
            tracing::warn!(target: "agent_client_protocol::jsonrpc", "cannot read a request");
            tracing::error!(target: "agent_client_protocol::jsonrpc", "broken");
        });
        let text = text_of(&log_dir(state.path()));
        assert!(text.contains("broken") && !text.contains("cannot read"), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_can_read_the_log() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().unwrap();
        log_with(&[], state.path(), || tracing::warn!("hello"));
        let dir = log_dir(state.path());
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        for entry in std::fs::read_dir(&dir).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_bare_level_means_this_program_and_nonsense_is_reported() {
        let of = |value: &str| filter(&[("ZCODE_ACP_LOG", value)].into_iter().collect(), false);
        let (targets, problem) = of("debug");
        assert!(problem.is_none());
        assert!(targets.would_enable("zcode_acp::bridge", &tracing::Level::DEBUG));
        assert!(!targets.would_enable("agent_client_protocol", &tracing::Level::DEBUG));
        let (targets, _) = of("agent_client_protocol=trace");
        assert!(targets.would_enable("agent_client_protocol", &tracing::Level::TRACE));
        assert!(of("zcode_acp=loud").1.is_some());
    }
}
