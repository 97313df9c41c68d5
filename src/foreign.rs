//! Any other ACP agent as a value: the command that starts it, spoken to over its standard input
//! and output. Used by `tui --agent` and `run --agent`.
//!
//! Starts the program itself, never through a shell, in a process group of its own that ends with
//! the connection. When the agent dies, the connection fails with its last words.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_client_protocol::{Agent, Client, ConnectTo, Error as AcpError, Lines};
use futures::{sink, stream};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use crate::process::{Child, ChildSpec, TERM_GRACE};

/// A line longer than this is no message but a mistake; it ends the connection.
const MAX_LINE: u64 = 256 * 1024 * 1024;
/// Lines of standard error that are quoted when the agent dies.
const LAST_WORDS: usize = 12;
/// How long an agent that closed its output may take to end and tell its status.
const ENDING: Duration = Duration::from_millis(500);

/// An agent that is started when it is connected.
#[derive(Debug, Clone)]
pub struct ForeignAgent {
    program: OsString,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    last_words: watch::Sender<Option<String>>,
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
        })
    }

    /// How the agent ended by itself (its status and the end of its standard error), once it has.
    /// By the time the connection is closed for that reason, the words are there.
    pub fn last_words(&self) -> watch::Receiver<Option<String>> {
        self.last_words.subscribe()
    }

    /// The program's name, for messages.
    pub fn name(&self) -> String {
        PathBuf::from(&self.program)
            .file_name()
            .unwrap_or(&self.program)
            .to_string_lossy()
            .into_owned()
    }
}

impl ConnectTo<Client> for ForeignAgent {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<(), AcpError> {
        let name = self.name();
        let failed = |what: String| AcpError::internal_error().data(what);
        let spec = ChildSpec { args: self.args, cwd: self.cwd, ..ChildSpec::new(self.program) };
        let mut child = Child::spawn(&spec)
            .map_err(|err| failed(format!("the agent {name} could not be started: {err}")))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(format!("the agent {name} has no pipes")));
        };
        // Set when we close our end: what the agent does after that is its own affair.
        let closed = Arc::new(AtomicBool::new(false));
        let writer = (stdin, SetOnDrop(closed.clone()));
        let outgoing = sink::unfold(writer, async |(mut stdin, flag), mut line: String| {
            line.push('\n');
            match stdin.write_all(line.as_bytes()).await {
                // Its output ends as well, and that side can say why.
                Err(err) if err.kind() == io::ErrorKind::BrokenPipe => {}
                other => other?,
            }
            Ok::<_, io::Error>((stdin, flag))
        });
        let output = Output {
            reader: BufReader::with_capacity(64 * 1024, stdout),
            child,
            name,
            closed,
            last_words: self.last_words,
        };
        let incoming = stream::try_unfold(output, async |mut output| {
            Ok(output.next_line().await?.map(|line| (line, output)))
        });
        let lines = Lines::new(Box::pin(outgoing), Box::pin(incoming));
        ConnectTo::<Client>::connect_to(lines, client).await
    }
}

/// The agent's output and the agent itself. The last words are published before the end of the
/// output is passed on, so whoever is told of the end finds them.
struct Output {
    reader: BufReader<pipe::Receiver>,
    child: Child,
    name: String,
    closed: Arc<AtomicBool>,
    last_words: watch::Sender<Option<String>>,
}

impl Output {
    async fn next_line(&mut self) -> io::Result<Option<String>> {
        if let Some(line) = read_line(&mut self.reader).await? {
            return Ok(Some(line));
        }
        if self.closed.load(Ordering::Acquire) {
            let _ = self.child.terminate(TERM_GRACE).await;
            return Ok(None);
        }
        let words = last_words(&self.name, &mut self.child).await;
        drop(self.last_words.send_replace(Some(words.clone())));
        Err(io::Error::other(words))
    }
}

/// Says that something ended, in whatever way it does.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Reads a line without its end. Bytes that are no UTF-8 are replaced: the message around them is
/// worth more than the connection.
async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if reader.take(MAX_LINE).read_until(b'\n', &mut line).await? == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && u64::try_from(line.len()).is_ok_and(|len| len >= MAX_LINE) {
        return Err(io::Error::other("a line without end"));
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        let _ = line.pop();
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// Ends what is left of a dead agent and says how it went.
async fn last_words(name: &str, child: &mut Child) -> String {
    let mut stderr = child.stderr();
    let status = match tokio::time::timeout(ENDING, child.wait()).await {
        Ok(Ok(status)) => format!("the agent {name} ended with {status}"),
        Ok(Err(_)) | Err(_) => format!("the agent {name} closed its output"),
    };
    // A descendant may hold standard error open.
    let _ = tokio::time::timeout(ENDING, stderr.closed()).await;
    let _ = child.terminate(TERM_GRACE).await;
    let lines = stderr.lines(LAST_WORDS);
    if lines.is_empty() {
        status
    } else {
        format!("{status}; its last words:\n{}", lines.join("\n"))
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

    use super::*;

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
