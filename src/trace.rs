//! Records both wires to the file of `--trace`: one JSON object a line, secrets removed, so that a
//! bug report is something to replay. Off it costs a look at a flag. Called by the engine's actor,
//! by the transport of `serve`, and through [`Traced`] where the client is in this process.
//!
//! `{"t":<ms since 1970>,"wire":"engine"|"acp","dir":"in"|"out","frame":<the message>}`; what is no
//! JSON stands as text under `"text"`. `in` is what the agent reads (the bridge, or with `--agent` the
//! other one), `out` what it writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use agent_client_protocol::{ConnectTo, Error as AcpError, Role, TransportFrame};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::AppError;
use crate::join::{Way, join};

/// Which wire a line was on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Between the bridge and the engine.
    Engine,
    /// Between the client and the agent.
    Acp,
}

/// Which way it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the agent: from its engine or its client.
    In,
    /// From the agent.
    Out,
}

/// Where lines are recorded; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Trace(Option<Arc<Recorder>>);

#[derive(Debug)]
struct Recorder {
    file: File,
    /// Whether it was told that the file could not be written.
    failed: AtomicBool,
}

#[derive(Serialize)]
struct Entry<'a> {
    t: u128,
    wire: Wire,
    dir: Direction,
    #[serde(skip_serializing_if = "Option::is_none")]
    frame: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

impl Trace {
    /// Records nothing.
    pub fn off() -> Self {
        Self(None)
    }

    /// Appends to a file that only the user can read. Several traces of one process may share it.
    pub fn open(path: &Path) -> io::Result<Self> {
        // A link could lead to a file that is worth more than a trace.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let opened = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(path);
        let not_regular = || io::Error::other("it is there and no regular file");
        let file = opened.map_err(|err| match std::fs::symlink_metadata(path) {
            // The system's words for a link or a pipe ("no such device") lead astray.
            Ok(meta) if !meta.is_file() => not_regular(),
            _ => err,
        })?;
        if !file.metadata()?.is_file() {
            return Err(not_regular());
        }
        // One that was there before may have been open to others.
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        Ok(Self(Some(Arc::new(Recorder { file, failed: AtomicBool::new(false) }))))
    }

    /// Whether the trace that was asked for can be written, before anything is begun that would
    /// not be recorded.
    ///
    /// # Errors
    /// Usage, with the file and the cause.
    pub fn check(config: &crate::config::Config) -> Result<(), AppError> {
        let Some(path) = &config.trace else { return Ok(()) };
        Self::open(path).map(drop).map_err(|err| {
            AppError::usage(format!("cannot record the wires in {}", path.display())).caused_by(err)
        })
    }

    /// The trace that the settings ask for; a file that cannot be opened is told in the log.
    pub fn of(config: &crate::config::Config) -> Self {
        let Some(path) = &config.trace else { return Self::off() };
        Self::open(path).unwrap_or_else(|error| {
            tracing::error!(%error, path = %path.display(), "cannot record the wires");
            Self::off()
        })
    }

    /// Whether lines are recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Records one line, written before this returns: what happened last is what matters most.
    pub fn record(&self, wire: Wire, dir: Direction, line: &str) {
        let Some(recorder) = &self.0 else { return };
        let line = crate::redact::text(line);
        let frame: Option<&RawValue> = serde_json::from_str(&line).ok();
        let t = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let text = frame.is_none().then_some(&*line);
        let Ok(mut entry) = serde_json::to_vec(&Entry { t, wire, dir, frame, text }) else {
            return;
        };
        entry.push(b'\n');
        // A full disk must not end the session that is being looked into.
        if let Err(error) = (&recorder.file).write_all(&entry)
            && !recorder.failed.swap(true, Ordering::Relaxed)
        {
            tracing::error!(%error, "the trace has gaps: it could not be written");
        }
    }
}

/// An agent whose wire to a client in this process is recorded.
#[derive(Debug)]
pub struct Traced<A> {
    agent: A,
    trace: Trace,
}

impl<A> Traced<A> {
    /// Records everything that passes.
    pub fn new(agent: A, trace: Trace) -> Self {
        Self { agent, trace }
    }
}

impl<C: Role, A: ConnectTo<C>> ConnectTo<C> for Traced<A> {
    async fn connect_to(self, client: impl ConnectTo<C::Counterpart>) -> Result<(), AcpError> {
        let record = |dir: Direction, frame: &TransportFrame| {
            if let TransportFrame::Single(message) = frame
                && let Ok(line) = serde_json::to_string(message)
            {
                self.trace.record(Wire::Acp, dir, &line);
            }
        };
        let outward = |frame: &TransportFrame, _: &Way| {
            record(Direction::Out, frame);
            None::<std::future::Ready<()>>
        };
        join(self.agent, client, outward, |frame| record(Direction::In, frame)).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn lines_are_recorded_with_their_wire_and_without_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        let trace = Trace::open(&path).unwrap();
        trace.record(Wire::Engine, Direction::In, r#"{"id":1,"result":{"apiKey":"sesame"}}"#);
        trace.clone().record(
            Wire::Acp,
            Direction::Out,
            "not json, Authorization: Bearer sesame-sesame-sesame",
        );
        Trace::off().record(Wire::Acp, Direction::Out, "nowhere");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("sesame"), "{text}");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            (&lines[0]["wire"], &lines[0]["dir"], &lines[0]["frame"]["id"]),
            (&"engine".into(), &"in".into(), &1.into())
        );
        assert_eq!((&lines[1]["wire"], &lines[1]["dir"]), (&"acp".into(), &"out".into()));
        assert!(lines[1]["text"].as_str().unwrap().starts_with("not json"));
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(&path).unwrap().permissions(),
        );
        assert_eq!((lines.len(), mode & 0o777), (2, 0o600));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_regular_file_is_written_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        std::fs::write(&precious, "precious").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        let pipe = dir.path().join("pipe");
        crate::small_file::make_pipe(&pipe);
        for path in [link.as_path(), &pipe, Path::new("/dev/null"), dir.path()] {
            let refused = Trace::open(path).unwrap_err().to_string();
            assert_eq!(refused, "it is there and no regular file", "{path:?}");
        }
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    }
}
