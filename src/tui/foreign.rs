//! A foreign agent: a command that speaks ACP over its standard input and output.
//!
//! Owns the child (through `process`) and the JSON lines. A line that is no JSON is skipped, so an
//! agent that logs to standard output does no harm. Reading stops while the terminal is behind, so
//! a fast agent waits in its own pipe. When the child ends, the error that ends the connection
//! carries its status and its last words.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent_client_protocol::{Client, ConnectTo, Error, RawJsonRpcMessage, Role, TransportFrame};
use futures::StreamExt as _;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;

use super::agent_source::{AgentSource, Taken};
use crate::process::{Child, ChildSpec};

/// Notifications read and not yet taken above which reading stops.
const AHEAD: usize = 512;
/// Longest line an agent may send.
const MAX_LINE: usize = 128 * 1024 * 1024;
/// Lines of standard error that are shown when the agent ends.
const LAST_WORDS: usize = 20;
/// How long an agent may take to end when we leave.
const END_GRACE: Duration = Duration::from_millis(1500);
/// How long the status of a child that closed its output is waited for.
const STATUS_WAIT: Duration = Duration::from_millis(500);

/// How far reading is ahead of the terminal.
#[derive(Debug, Default)]
struct Backlog {
    ahead: AtomicUsize,
    eased: Notify,
}

impl Backlog {
    fn add(&self) {
        self.ahead.fetch_add(1, Ordering::Relaxed);
    }

    fn taken(&self, frames: usize) {
        let before = self.ahead.fetch_sub(frames, Ordering::Relaxed);
        if before >= AHEAD && before.saturating_sub(frames) < AHEAD {
            self.eased.notify_one();
        }
    }

    async fn ready(&self) {
        while self.ahead.load(Ordering::Relaxed) >= AHEAD {
            self.eased.notified().await;
        }
    }
}

/// Makes the source of a foreign agent from the command that starts it, run by `sh -c`.
pub fn agent_command(command: &str, cwd: PathBuf) -> AgentSource {
    let command = command.to_owned();
    AgentSource::metered(move || {
        let backlog = Arc::new(Backlog::default());
        let agent =
            ForeignAgent { command: command.clone(), cwd: cwd.clone(), backlog: backlog.clone() };
        let taken: Taken = Arc::new(move |frames| backlog.taken(frames));
        (agent, taken)
    })
}

/// A command that speaks ACP; started when it is connected to.
#[derive(Debug)]
pub struct ForeignAgent {
    command: String,
    cwd: PathBuf,
    backlog: Arc<Backlog>,
}

impl ConnectTo<Client> for ForeignAgent {
    async fn connect_to(
        self,
        client: impl ConnectTo<<Client as Role>::Counterpart>,
    ) -> Result<(), Error> {
        let mut spec = ChildSpec::new("/bin/sh");
        spec.args = vec!["-c".into(), self.command.clone().into()];
        spec.cwd = Some(self.cwd.clone());
        let mut child = Child::spawn(&spec)
            .map_err(|e| failure(&format!("`{}` cannot be started: {e}", self.command), &[]))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failure("the agent has no pipes", &[]));
        };
        let (channel, driver) = client.into_channel_and_future();
        let (mut from_client, to_client) = channel.into_parts();
        let reading = async {
            let mut lines = LineReader::new(stdout);
            while let Some(line) = lines.next().await? {
                let Some(message) = read_message(&line) else { continue };
                if matches!(message, RawJsonRpcMessage::Notification(_)) {
                    self.backlog.add();
                }
                if to_client.unbounded_send(TransportFrame::Single(message)).is_err() {
                    break;
                }
                self.backlog.ready().await;
            }
            Ok::<(), std::io::Error>(())
        };
        let writing = async {
            let mut stdin = stdin;
            while let Some(frame) = from_client.next().await {
                let TransportFrame::Single(message) = frame else { continue };
                let Ok(mut bytes) = serde_json::to_vec(&message) else { continue };
                bytes.push(b'\n');
                stdin.write_all(&bytes).await?;
            }
            stdin.shutdown().await
        };
        let driving = async {
            match driver {
                Some(driver) => driver.await,
                None => std::future::pending().await,
            }
        };
        let outcome = {
            let mut driving = std::pin::pin!(driving);
            let mut reading = std::pin::pin!(reading);
            let mut writing = std::pin::pin!(writing);
            let mut writes = true;
            loop {
                tokio::select! {
                    done = &mut driving => break Some(done),
                    _ = &mut reading => break None,
                    // A broken pipe shows as the end of its output as well.
                    _ = &mut writing, if writes => writes = false,
                }
            }
        };
        match outcome {
            // We are leaving: what it wants is over.
            Some(done) => {
                child.terminate(END_GRACE).await;
                done
            }
            None => Err(self.last_words(child).await),
        }
    }
}

impl ForeignAgent {
    async fn last_words(&self, mut child: Child) -> Error {
        let status = tokio::time::timeout(STATUS_WAIT, child.wait()).await;
        let mut stderr = child.stderr();
        let what = match status {
            Ok(Ok(status)) => format!("`{}` ended with {status}", self.command),
            _ => format!("`{}` closed its output", self.command),
        };
        child.terminate(END_GRACE).await;
        let _what_came_is_enough = tokio::time::timeout(STATUS_WAIT, stderr.closed()).await;
        failure(&what, &stderr.lines(LAST_WORDS))
    }
}

fn failure(message: &str, last_words: &[String]) -> Error {
    Error::new(-32603, message).data(json!({"stderr": last_words}))
}

/// Reads a line as a message. Blank lines and lines that are no JSON-RPC are no messages; a byte
/// order mark is no part of one.
fn read_message(line: &[u8]) -> Option<RawJsonRpcMessage> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return None;
    }
    match serde_json::from_slice(line) {
        Ok(message) => Some(message),
        Err(error) => {
            tracing::debug!(%error, bytes = line.len(), "a line of the agent is no message");
            None
        }
    }
}

/// Lines of a stream, each at most [`MAX_LINE`] long; what is longer is dropped to its end.
struct LineReader<R> {
    from: R,
    buf: Vec<u8>,
    /// Bytes of `buf` that were searched for a line end.
    searched: usize,
    /// Bytes of `buf` that were handed out.
    used: usize,
    too_long: bool,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(from: R) -> Self {
        Self { from, buf: Vec::new(), searched: 0, used: 0, too_long: false, ended: false }
    }

    async fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            let fresh = self.buf.get(self.searched..).unwrap_or_default();
            if let Some(at) = fresh.iter().position(|b| *b == b'\n') {
                let end = self.searched + at;
                let line = self.buf.get(self.used..end).unwrap_or_default().to_vec();
                self.used = end + 1;
                self.searched = self.used;
                if std::mem::take(&mut self.too_long) {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.buf.len();
            if self.ended {
                let rest = self.buf.split_off(self.used.min(self.buf.len()));
                self.buf.clear();
                (self.searched, self.used) = (0, 0);
                return Ok((!rest.is_empty()).then_some(rest));
            }
            self.buf.drain(..self.used);
            self.searched -= self.used;
            self.used = 0;
            if self.buf.len() > MAX_LINE {
                self.buf.clear();
                self.searched = 0;
                self.too_long = true;
            }
            self.buf.reserve(64 * 1024);
            if self.from.read_buf(&mut self.buf).await? == 0 {
                self.ended = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_split_however_the_bytes_come() {
        let (mut write, read) = tokio::io::duplex(3);
        let writer = tokio::spawn(async move {
            for part in [&b"ab"[..], b"c\nd", b"\n\n", b"last"] {
                write.write_all(part).await.unwrap();
            }
        });
        let mut lines = LineReader::new(read);
        let mut got = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            got.push(String::from_utf8(line).unwrap());
        }
        writer.await.unwrap();
        assert_eq!(got, ["abc", "d", "", "last"]);
    }

    #[test]
    fn what_is_no_message_is_skipped() {
        assert!(read_message(b"this is not JSON").is_none());
        assert!(read_message(b"  \r").is_none());
        assert!(read_message(b"[1,2]").is_none());
        let ok = b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\r";
        assert!(read_message(ok).is_some());
    }
}
