//! Any other ACP agent as a value: the command that starts it, spoken to over its standard input
//! and output. Used by `tui --agent` and `run --agent`, through [`crate::agents`].
//!
//! Starts the program itself, never through a shell, in a process group of its own that ends with
//! the connection. A line that is no message is skipped, so an agent that logs to standard output
//! does no harm. Reading stops while the client is behind (when it told so, see
//! [`ForeignAgent::gauge`]), so a fast agent waits in its own pipe. When the agent dies, the
//! connection fails with its status and its last words.

mod pieces;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent_client_protocol::{
    Client, ConnectTo, Error as AcpError, RawJsonRpcMessage, RawJsonRpcNotification,
    RawJsonRpcParams, RawJsonRpcResponse, Role, TransportFrame,
};
use futures::StreamExt as _;
use futures::channel::mpsc::UnboundedSender;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, watch};

use pieces::{Pieces, Whole};

use crate::bridge::engine::lines::{Line, LineBuffer};
use crate::process::{Child, ChildSpec, StderrTail, TERM_GRACE};
use crate::tui::agent_source::AgentCommand;

/// Longest line an agent may send; what is longer is skipped.
const MAX_LINE: usize = 128 * 1024 * 1024;
/// Notifications read and not yet taken above which reading stops.
const AHEAD: usize = 512;
/// Bytes of their lines above which it stops as well. One message may be longer than that.
const AHEAD_BYTES: usize = 2 * 1024 * 1024;
/// Messages that are handed over before others have their turn.
const IN_TURN: usize = 32;
/// Lines of standard error that are quoted when the agent dies.
const LAST_WORDS: usize = 20;
/// How long an agent that closed its output may take to end and tell its status.
const ENDING: Duration = Duration::from_millis(500);

/// An agent that is started when it is connected; cloned, it can be started again.
#[derive(Debug, Clone)]
pub struct ForeignAgent {
    program: OsString,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    last_words: watch::Sender<Option<String>>,
    stderr: watch::Sender<Option<StderrTail>>,
    backlog: Option<Arc<Backlog>>,
    joins: bool,
}

/// What the client tells the reader.
#[derive(Debug, Default)]
struct Backlog {
    /// Notifications taken since the reader last looked.
    taken: AtomicUsize,
    eased: Notify,
}

impl Backlog {
    fn taken(&self, frames: usize) {
        self.taken.fetch_add(frames, Ordering::Relaxed);
        self.eased.notify_one();
    }
}

/// What was read and is not taken, as the reader knows it. Messages are taken in the order in which
/// they were read, so whoever takes one need not say how long it was.
#[derive(Debug)]
struct Ahead {
    backlog: Arc<Backlog>,
    lines: VecDeque<usize>,
    bytes: usize,
}

impl Ahead {
    fn new(backlog: Arc<Backlog>) -> Self {
        Self { backlog, lines: VecDeque::new(), bytes: 0 }
    }

    /// One more of so many bytes was read.
    fn read_one(&mut self, bytes: usize) {
        self.lines.push_back(bytes);
        self.bytes += bytes;
    }

    /// Waits while that is too much.
    async fn ease(&mut self) {
        while self.lines.len() >= AHEAD || self.bytes >= AHEAD_BYTES {
            let taken = self.backlog.taken.swap(0, Ordering::Relaxed).min(self.lines.len());
            let bytes: usize = self.lines.drain(..taken).sum();
            self.bytes -= bytes;
            if taken == 0 {
                self.backlog.eased.notified().await;
            }
        }
    }
}

impl ForeignAgent {
    /// Takes the command line as the user wrote it. Quotes and backslashes group words as in a
    /// shell; nothing else of a shell is meant or done.
    pub fn parse(command: &str, cwd: Option<PathBuf>) -> Result<Self, String> {
        let mut words = split_words(command)?.into_iter();
        let program = words.next().ok_or("the agent's command is empty")?;
        Ok(Self {
            program: program.into(),
            args: words.map(OsString::from).collect(),
            cwd,
            last_words: watch::Sender::new(None),
            stderr: watch::Sender::new(None),
            backlog: None,
            joins: false,
        })
    }

    /// How the agent ended by itself (its status and the end of its standard error), once it has.
    /// By the time the connection is closed for that reason, the words are there.
    pub fn last_words(&self) -> watch::Receiver<Option<String>> {
        self.last_words.subscribe()
    }

    /// The newest lines of the running agent's standard error; of any clone that was started last.
    pub fn said(&self) -> impl Fn() -> Vec<String> + Send + Sync + 'static {
        let stderr = self.stderr.subscribe();
        move || stderr.borrow().as_ref().map(|tail| tail.lines(LAST_WORDS)).unwrap_or_default()
    }

    /// The program's name, for messages.
    pub fn name(&self) -> String {
        PathBuf::from(&self.program)
            .file_name()
            .unwrap_or(&self.program)
            .to_string_lossy()
            .into_owned()
    }

    /// The command that starts it.
    pub fn command(&self) -> AgentCommand {
        AgentCommand {
            program: self.program.clone(),
            args: self.args.clone(),
            cwd: self.cwd.clone(),
        }
    }

    /// Holds the agent back while the client is behind. The function must be told how many
    /// notifications were taken.
    pub fn gauge(&mut self) -> impl Fn(usize) + Send + Sync + 'static {
        let backlog = Arc::new(Backlog::default());
        self.backlog = Some(backlog.clone());
        move |frames| backlog.taken(frames)
    }

    /// Pieces of text that come faster than they are read are handed over joined.
    #[must_use]
    pub fn joined(self) -> Self {
        Self { joins: true, ..self }
    }

    /// Hands every message of the agent to the client, until either ends.
    async fn read(&self, mut stdout: pipe::Receiver, to_client: &UnboundedSender<TransportFrame>) {
        let mut lines = LineBuffer::default();
        let mut out = Out { ahead: self.backlog.clone().map(Ahead::new), passed: 0, to_client };
        let mut pieces = Pieces::default();
        loop {
            let ended = !matches!(stdout.read_buf(lines.space()).await, Ok(1..));
            loop {
                let line = match lines.next_line(MAX_LINE) {
                    None => break,
                    Some(Line::Bytes(line)) => line,
                    Some(Line::TooLong) => {
                        tracing::warn!("a line of the agent is too long and was skipped");
                        continue;
                    }
                };
                let (before, next) = match self.joins.then(|| pieces.take(line)) {
                    Some(Ok(before)) => (before, None),
                    Some(Err(())) => (pieces.end(), message_of(line)),
                    None => (None, message_of(line)),
                };
                let next = next.map(|message| (message, line.len()));
                for message in before.into_iter().chain(next) {
                    if !out.pass(message).await {
                        return;
                    }
                }
            }
            // What came together is joined; nothing waits for what comes next.
            if let Some(message) = pieces.end()
                && !out.pass(message).await
            {
                return;
            }
            if ended {
                // Nothing is read after it, so nothing waits for it to be taken.
                out.ahead = None;
                if let Some(last) = lines.last_line().as_deref().and_then(message_of) {
                    let _done = out.pass((last, 0)).await;
                }
                return;
            }
        }
    }

    /// Ends what is left of a dead agent; publishes and returns how it went.
    async fn died(&self, mut child: Child) -> AcpError {
        let name = self.name();
        let mut stderr = child.stderr();
        let what = match tokio::time::timeout(ENDING, child.wait()).await {
            Ok(Ok(status)) => format!("the agent {name} ended with {status}"),
            Ok(Err(_)) | Err(_) => format!("the agent {name} closed its output"),
        };
        // A descendant may hold standard error open.
        let _what_came_is_enough = tokio::time::timeout(ENDING, stderr.closed()).await;
        let _status = child.terminate(TERM_GRACE).await;
        let lines = stderr.lines(LAST_WORDS);
        let words = if lines.is_empty() {
            what.clone()
        } else {
            format!("{what}; its last words:\n{}", lines.join("\n"))
        };
        drop(self.last_words.send_replace(Some(words)));
        failure(what, &lines)
    }
}

/// Where the agent's messages go.
#[derive(Debug)]
struct Out<'a> {
    ahead: Option<Ahead>,
    /// How many were handed over since others had their turn.
    passed: usize,
    to_client: &'a UnboundedSender<TransportFrame>,
}

impl Out<'_> {
    /// Hands over a message whose lines had so many bytes; waits when that is too far ahead. False
    /// when nobody listens any more.
    async fn pass(&mut self, (message, bytes): Whole) -> bool {
        let counts = matches!(message, RawJsonRpcMessage::Notification(_));
        if self.to_client.unbounded_send(TransportFrame::Single(message)).is_err() {
            return false;
        }
        if let (true, Some(ahead)) = (counts, &mut self.ahead) {
            ahead.read_one(bytes);
            ahead.ease().await;
        }
        self.passed += 1;
        if self.passed == IN_TURN {
            // What the client has to say must not wait until all of this is read.
            self.passed = 0;
            tokio::task::yield_now().await;
        }
        true
    }
}

impl ConnectTo<Client> for ForeignAgent {
    async fn connect_to(
        self,
        client: impl ConnectTo<<Client as Role>::Counterpart>,
    ) -> Result<(), AcpError> {
        let name = self.name();
        let spec = ChildSpec {
            args: self.args.clone(),
            cwd: self.cwd.clone(),
            ..ChildSpec::new(self.program.clone())
        };
        let mut child = Child::spawn(&spec)
            .map_err(|err| failure(format!("the agent {name} could not be started: {err}"), &[]))?;
        drop(self.stderr.send_replace(Some(child.stderr())));
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failure(format!("the agent {name} has no pipes"), &[]));
        };
        let (channel, driver) = client.into_channel_and_future();
        // Both ends outlive reading and writing: who is told of the end finds the last words.
        let (mut from_client, to_client) = channel.into_parts();
        let from_client = &mut from_client;
        let writing = async move {
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
            let mut driving = pin!(driving);
            let mut reading = pin!(self.read(stdout, &to_client));
            let mut writing = pin!(writing);
            let mut writes = true;
            loop {
                tokio::select! {
                    done = &mut driving => break Some(done),
                    () = &mut reading => break None,
                    // A broken pipe shows as the end of its output as well, and that side knows why.
                    outcome = &mut writing, if writes => {
                        writes = false;
                        log_write(outcome);
                    }
                }
            }
        };
        match outcome {
            // We are leaving: what it wants is over.
            Some(done) => {
                let _status = child.terminate(TERM_GRACE).await;
                done
            }
            None => Err(self.died(child).await),
        }
    }
}

fn log_write(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        tracing::debug!(%error, "the agent no longer reads");
    }
}

fn failure(message: String, last_words: &[String]) -> AcpError {
    AcpError::new(-32603, message).data(json!({"stderr": last_words}))
}

/// Reads a line as a message. What is no JSON-RPC is no message; a byte order mark is no part of
/// one.
fn message_of(line: &[u8]) -> Option<RawJsonRpcMessage> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    match serde_json::from_slice(line).and_then(message_from) {
        Ok(message) => Some(message),
        Err(error) => {
            tracing::debug!(%error, bytes = line.len(), "a line of the agent is no message");
            None
        }
    }
}

/// Reads a value as a message. Nearly all are notifications and results; those are taken apart
/// here, since the general way copies all that is in them twice.
fn message_from(value: Value) -> Result<RawJsonRpcMessage, serde_json::Error> {
    let Value::Object(mut fields) = value else { return serde_json::from_value(value) };
    let has = |name: &str| fields.contains_key(name);
    let is_ours = fields.get("jsonrpc").and_then(Value::as_str) == Some("2.0");
    if is_ours && has("id") && has("result") && !has("method") && !has("error") {
        let mut take = |name: &str| fields.swap_remove(name).unwrap_or_default();
        let id = serde_json::from_value(take("id"))?;
        let result = take("result");
        return Ok(RawJsonRpcMessage::Response(RawJsonRpcResponse::Result { id, result }));
    }
    let method = fields.get("method").and_then(Value::as_str).map(Arc::from);
    let takes = matches!(fields.get("params"), None | Some(Value::Object(_)));
    match method {
        Some(method) if is_ours && takes && !has("id") && !has("result") && !has("error") => {
            let params = match fields.swap_remove("params") {
                Some(Value::Object(params)) => Some(RawJsonRpcParams::Object(params)),
                _ => None,
            };
            Ok(RawJsonRpcMessage::Notification(RawJsonRpcNotification { method, params }))
        }
        _ => serde_json::from_value(Value::Object(fields)),
    }
}

/// Splits a command line into words by spaces, quotes and backslashes.
fn split_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err("a ' is not closed".to_owned()),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                            None => return Err("a \" is not closed".to_owned()),
                        },
                        Some(c) => word.push(c),
                        None => return Err("a \" is not closed".to_owned()),
                    }
                }
            }
            '\\' => match chars.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => return Err("nothing follows the last \\".to_owned()),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::schema::ProtocolVersion;
    use agent_client_protocol::v1::schema as acp;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt as _;

    use super::*;

    /// How many messages each turn of the reader hands over, and what they say.
    async fn turns(agent: ForeignAgent, lines: String) -> (Vec<usize>, String) {
        let (mut to, from) = pipe::pipe().unwrap();
        assert!(lines.len() < 64 * 1024, "a pipe holds it");
        to.write_all(lines.as_bytes()).await.unwrap();
        drop(to);
        let (to_client, mut handed) = futures::channel::mpsc::unbounded();
        let mut reading = pin!(agent.read(from, &to_client));
        let (mut turns, mut text, mut is_done) = (Vec::new(), String::new(), false);
        while !is_done {
            is_done = tokio::select! {
                biased;
                () = &mut reading => true,
                () = tokio::task::yield_now() => false,
            };
            let mut count = 0;
            while let Some(Some(TransportFrame::Single(message))) = handed.next().now_or_never() {
                count += 1;
                let message = serde_json::to_value(message).unwrap();
                let piece = message.pointer("/params/update/content/text").and_then(Value::as_str);
                text.push_str(piece.unwrap_or_default());
            }
            turns.push(count);
        }
        (turns, text)
    }

    fn pieces_of_text() -> (String, String) {
        let line = |n: usize| {
            let content = json!({"type": "text", "text": format!("{n} ")});
            let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
            let params = json!({"sessionId": "s", "update": update});
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
        };
        let words: Vec<String> = (0..400).map(|n| format!("{n} ")).collect();
        ((0..400).map(|n| line(n) + "\n").collect(), words.concat())
    }

    #[tokio::test]
    async fn whoever_has_something_to_say_gets_a_turn_while_a_flood_is_read() {
        let agent = ForeignAgent::parse("agent", None).unwrap();
        let (lines, text) = pieces_of_text();
        let (turns, said) = turns(agent, lines).await;
        assert_eq!(turns.iter().sum::<usize>(), 400, "one by one unless it is asked for");
        // Each of ours comes after one or two of the reader's.
        assert!(turns.iter().all(|count| *count <= 2 * IN_TURN), "{turns:?}");
        assert_eq!(said, text);
    }

    #[tokio::test]
    async fn what_came_together_is_handed_over_joined_and_whole() {
        let agent = ForeignAgent::parse("agent", None).unwrap().joined();
        let (lines, text) = pieces_of_text();
        let (turns, said) = turns(agent, lines).await;
        assert!(turns.iter().sum::<usize>() < 10, "{turns:?}");
        assert_eq!(said, text);
    }

    #[test]
    fn messages_are_read_as_the_protocol_says() {
        for message in [
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"a": [1, {"b": "c"}]}}),
            json!({"jsonrpc": "2.0", "method": "m"}),
            json!({"jsonrpc": "2.0", "method": "m", "params": [1, 2]}),
            json!({"jsonrpc": "2.0", "method": "m", "params": null, "more": 1}),
            json!({"jsonrpc": "2.0", "method": "m", "params": 1}),
            json!({"jsonrpc": "2.0", "method": 1}),
            json!({"jsonrpc": "1.0", "method": "m"}),
            json!({"method": "m"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "m", "result": {}}),
            json!({"jsonrpc": "2.0", "id": "x", "result": {"sessions": [{"a": 1}]}}),
            json!({"jsonrpc": "2.0", "id": null, "result": null}),
            json!({"jsonrpc": "2.0", "id": [], "result": 1}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": "m"}}),
            json!({"jsonrpc": "2.0", "result": 1}),
            json!([]),
            json!("text"),
        ] {
            let expected = serde_json::from_value(message.clone()).ok();
            assert_eq!(message_of(message.to_string().as_bytes()), expected, "{message}");
        }
    }

    #[test]
    fn a_command_line_is_split_as_people_expect_and_no_more() {
        let words = |line: &str| split_words(line).unwrap();
        assert_eq!(words("  a 'b c' \"d \\\" e\" f\\ g '' "), ["a", "b c", "d \" e", "f g", ""]);
        assert_eq!(words("echo $HOME;rm *"), ["echo", "$HOME;rm", "*"]);
        assert_eq!(words(r#""C:\dir""#), [r"C:\dir"]);
        for broken in ["a 'b", "a \"b", "a\\"] {
            assert!(split_words(broken).is_err(), "{broken}");
        }
        assert!(ForeignAgent::parse("  ", None).is_err());
    }

    /// Reads a request and answers it as an agent named x.
    const ANSWER: &str = r#"read line; id=$(echo "$line" | sed "s/.*\"id\":\([^,}]*\).*/\1/"); printf "%s\n" "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":1,\"agentInfo\":{\"name\":\"x\",\"version\":\"1\"}}}""#;

    /// A notification as the shell writes it.
    const NOTE: &str = r#""{\"jsonrpc\":\"2.0\",\"method\":\"x\"}""#;

    fn agent(script: &str) -> ForeignAgent {
        ForeignAgent::parse(&format!("sh -c '{script}'"), None).unwrap()
    }

    async fn talk(agent: ForeignAgent) -> Result<String, AcpError> {
        let name = Client.v1().connect_with(agent, async |connection| {
            let request = acp::InitializeRequest::new(ProtocolVersion::V1);
            let answer = connection.send_request(request).block_task().await?;
            Ok(answer.agent_info.map(|info| info.name).unwrap_or_default())
        });
        tokio::time::timeout(Duration::from_secs(20), name).await.expect("no answer, no end")
    }

    #[test]
    fn what_is_no_message_is_skipped() {
        assert!(message_of(b"this is not JSON").is_none());
        assert!(message_of(b"[1,2]").is_none());
        let ok = b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\r";
        assert!(message_of(ok).is_some());
    }

    #[tokio::test]
    async fn an_agent_that_logs_to_its_output_is_understood() {
        assert_eq!(talk(agent(&format!("echo starting; {ANSWER}; cat"))).await.unwrap(), "x");
    }

    #[tokio::test]
    async fn a_fast_agent_waits_in_its_own_pipe_until_its_messages_are_taken() {
        let script = format!(
            "{ANSWER}; i=0; while test $i -lt 3000; do i=$((i+1)); echo {NOTE}; done; echo over >&2; exec cat"
        );
        let mut agent = agent(&script);
        let taken = agent.gauge();
        let seen = Arc::new(AtomicUsize::new(0));
        let (counter, (all, done)) = (seen.clone(), tokio::sync::oneshot::channel());
        let mut all = Some(all);
        let run = Client
            .v1()
            .on_receive_notification(
                async move |_note: agent_client_protocol::UntypedMessage, _cx| {
                    if counter.fetch_add(1, Ordering::Relaxed) + 1 == 3000 {
                        all.take().unwrap().send(()).unwrap();
                    }
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .connect_with(agent, async |connection| {
                let request = acp::InitializeRequest::new(ProtocolVersion::V1);
                let _answer = connection.send_request(request).block_task().await?;
                // Nothing is taken: reading stops at the limit, far from the end.
                while seen.load(Ordering::Relaxed) < AHEAD {
                    tokio::task::yield_now().await;
                }
                let mut told = 0;
                while told < 3000 - AHEAD {
                    let ahead = seen.load(Ordering::Relaxed) - told;
                    assert!(ahead <= AHEAD, "{ahead}");
                    taken(ahead);
                    told += ahead;
                    tokio::task::yield_now().await;
                }
                done.await.unwrap();
                Ok(())
            });
        tokio::time::timeout(Duration::from_secs(20), run).await.expect("it stands still").unwrap();
    }

    #[tokio::test]
    async fn long_messages_wait_in_the_pipe_by_their_bytes_and_not_by_their_number() {
        let backlog = Arc::new(Backlog::default());
        let mut ahead = Ahead::new(backlog.clone());
        ahead.read_one(10);
        assert!(ahead.ease().now_or_never().is_some(), "little is ahead");
        ahead.read_one(AHEAD_BYTES);
        assert!(ahead.ease().now_or_never().is_none(), "too much is");
        backlog.taken(1);
        assert!(ahead.ease().now_or_never().is_none(), "the short one makes no room");
        assert_eq!(ahead.bytes, AHEAD_BYTES);
        // More than were read cannot be taken.
        backlog.taken(5);
        assert!(ahead.ease().now_or_never().is_some());
        assert_eq!((ahead.bytes, ahead.lines.len()), (0, 0));
    }

    #[tokio::test]
    async fn an_agent_is_talked_to() {
        assert_eq!(talk(agent(&format!("{ANSWER}; cat"))).await.unwrap(), "x");
    }

    #[tokio::test]
    async fn a_dead_agent_is_quoted() {
        let agent = agent("echo no key in the lock >&2; exit 3");
        let words = agent.last_words();
        talk(agent).await.unwrap_err();
        let words = words.borrow().clone().unwrap();
        assert!(
            words.contains("no key in the lock") && words.contains("exit status: 3"),
            "{words}"
        );
    }

    #[tokio::test]
    async fn an_agent_that_lives_and_does_not_answer_can_be_quoted() {
        let agent = agent("echo waiting for the licence >&2; exec cat >/dev/null");
        let said = agent.said();
        let mut stderr = agent.stderr.subscribe();
        let connected = tokio::spawn(talk(agent));
        let heard = async {
            let mut tail = stderr.wait_for(Option::is_some).await.unwrap().clone().unwrap();
            tail.next_line().await;
        };
        tokio::time::timeout(Duration::from_secs(20), heard).await.expect("a line in time");
        assert_eq!(said(), ["waiting for the licence"]);
        connected.abort();
    }

    #[tokio::test]
    async fn an_agent_that_ignores_the_end_is_ended() {
        let agent = agent(&format!("trap \"\" TERM; {ANSWER}; while :; do sleep 1; done"));
        let words = agent.last_words();
        assert_eq!(talk(agent).await.unwrap(), "x");
        assert_eq!(*words.borrow(), None);
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_said_so() {
        let agent = ForeignAgent::parse("/nowhere/agent", None).unwrap();
        let outcome: Result<(), AcpError> =
            Client.v1().connect_with(agent, async |_| std::future::pending().await).await;
        assert!(outcome.unwrap_err().to_string().contains("could not be started"));
    }
}
