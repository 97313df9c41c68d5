//! The least that any agent between these two pipes can do: it copies the text of each delta into a
//! line for the client and reads nothing else of it. Speaks just enough of both protocols for one
//! session. What a delta takes through it is what pipes, the scheduler and the two ends take.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

pub(crate) fn run() -> ExitCode {
    let path = |name: &str| std::env::var(name).ok();
    let program = path("ZCODE_BIN").expect("an engine");
    let mut command = Command::new(path("ZCODE_NODE").as_ref().unwrap_or(&program));
    if path("ZCODE_NODE").is_some() {
        command.arg(&program);
    }
    command.args(["app-server", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut engine = command.spawn().unwrap();
    let output = engine.stdout.take().unwrap();
    let input = Arc::new(engine.stdin.take().unwrap());
    let (open, opened) = channel();
    let (named, names) = channel();
    let side = EngineSide { engine: Arc::clone(&input), opened, named, session: String::new() };
    let _reader = std::thread::spawn(move || side.read(output));
    client_side(&input, &open, &names);
    engine.kill().and_then(|()| engine.wait()).map_or(ExitCode::FAILURE, |_| ExitCode::SUCCESS)
}

fn say(mut to: impl Write, message: &Value) {
    to.write_all(format!("{message}\n").as_bytes()).and_then(|()| to.flush()).ok();
}

/// The requests to the engine have the ids 1 (create), 2 (subscribe) and 3 (send).
fn client_side(engine: &ChildStdin, open: &Sender<Value>, names: &Receiver<String>) {
    let mut session = String::new();
    for line in std::io::stdin().lines() {
        let Ok(line) = line else { break };
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let (id, params) = (&message["id"], &message["params"]);
        let request = match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                let result = json!({"protocolVersion": 1, "agentCapabilities": {}});
                say(std::io::stdout(), &json!({"jsonrpc": "2.0", "id": id, "result": result}));
                continue;
            }
            "session/new" => {
                let cwd = &params["cwd"];
                let workspace = json!({"workspacePath": cwd, "workspaceKey": cwd});
                json!({"id": 1, "method": "session/create", "params": {"workspace": workspace}})
            }
            "session/prompt" => {
                if let Ok(name) = names.try_recv() {
                    session = name;
                }
                let text = &params["prompt"][0]["text"];
                let input = format!("in-{id}");
                let params = json!({"sessionId": session, "content": text, "inputId": input});
                json!({"id": 3, "method": "session/send", "params": params})
            }
            _ => continue,
        };
        open.send(id.clone()).ok();
        say(engine, &request);
    }
}

/// What the thread that reads the engine has.
struct EngineSide {
    engine: Arc<ChildStdin>,
    /// The client's requests that wait for an answer, in order.
    opened: Receiver<Value>,
    named: Sender<String>,
    session: String,
}

impl EngineSide {
    fn read(mut self, output: impl Read) {
        let mut output = BufReader::with_capacity(64 * 1024, output);
        let mut stdout = std::io::stdout();
        let (mut line, mut out) = (Vec::new(), Vec::new());
        while matches!(output.read_until(b'\n', &mut line), Ok(1..)) {
            if let Some(text) = delta(&line) {
                out.extend_from_slice(
                    br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#,
                );
                out.extend_from_slice(self.session.as_bytes());
                out.extend_from_slice(br#"","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""#);
                out.extend_from_slice(text);
                out.extend_from_slice(b"\"}}}}\n");
                stdout.write_all(&out).and_then(|()| stdout.flush()).ok();
                out.clear();
            } else {
                self.take(&serde_json::from_slice(&line).unwrap_or_default());
            }
            line.clear();
        }
    }

    fn take(&mut self, message: &Value) {
        let answer = match (message["id"].as_i64(), message["method"].as_str()) {
            (Some(1), None) => {
                let session = message["result"]["session"]["sessionId"].as_str();
                session.unwrap_or_default().clone_into(&mut self.session);
                self.named.send(self.session.clone()).ok();
                let params = json!({"sessionId": self.session, "deliveryKind": "desktop-continuous", "includeSnapshot": false});
                let request = json!({"id": 2, "method": "session/subscribe", "params": params});
                return say(&*self.engine, &request);
            }
            (Some(2), None) => json!({"sessionId": self.session}),
            (None, Some("session/event")) if message["params"]["type"] == "turn.completed" => {
                json!({"stopReason": "end_turn"})
            }
            (None, Some("session/requestRuntimePreferences")) => {
                let result = json!({"nativeSearchEnhancementsEnabled": false, "memoryEnabled": false, "askUserQuestionAutoResolutionEnabled": false});
                return say(&*self.engine, &json!({"id": message["id"], "result": result}));
            }
            _ => return,
        };
        if let Ok(id) = self.opened.try_recv() {
            say(std::io::stdout(), &json!({"jsonrpc": "2.0", "id": id, "result": answer}));
        }
    }
}

/// The text of a delta, as JSON has it.
fn delta(line: &[u8]) -> Option<&[u8]> {
    let begin = memchr::memmem::find(line, br#""kind":"text_delta","#)?;
    let text = line.get(begin + memchr::memmem::find(&line[begin..], br#""delta":""#)? + 9..)?;
    let end = memchr::memchr_iter(b'"', text).find(|at| *at == 0 || text[at - 1] != b'\\')?;
    text.get(..end)
}
