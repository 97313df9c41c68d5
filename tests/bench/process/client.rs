//! An ACP client on pipes that notes when each line came. Speaks plain JSON, so that nothing of
//! what is measured is used to measure.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::probe::{self, Reading, now_ns};
use crate::relay;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// One line from the program.
pub(crate) struct Line {
    /// When it came (ns).
    pub(crate) at: u64,
    pub(crate) text: String,
}

impl Line {
    fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The text of a message chunk.
    pub(crate) fn chunk(&self) -> Option<String> {
        if !self.text.contains("agent_message_chunk") {
            return None;
        }
        self.value().pointer("/params/update/content/text")?.as_str().map(str::to_owned)
    }
}

/// How the program is started.
#[derive(Default)]
pub(crate) struct Setup {
    /// The least of all agents instead of the program (see `floor`).
    pub(crate) floor: bool,
    /// Arguments of the simulated engine.
    pub(crate) sim: &'static str,
    /// Whether the engine's lines are noted.
    pub(crate) relayed: bool,
}

/// The directories that a program was started in.
pub(crate) struct Home(tempfile::TempDir);

/// A running `serve` and this end of it.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Line>,
    dir: Option<tempfile::TempDir>,
    next: u64,
    /// When the process was started.
    pub(crate) started: Instant,
    /// Answers permission requests with this kind of option.
    pub(crate) allow: bool,
    /// When each permission request came and was answered.
    pub(crate) asked: Vec<(u64, u64)>,
}

impl Client {
    pub(crate) fn start(setup: &Setup) -> Self {
        Self::again(setup, Home(tempfile::tempdir().unwrap()))
    }

    /// Started where another one has been.
    pub(crate) fn again(setup: &Setup, Home(dir): Home) -> Self {
        let path = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let this = std::env::current_exe().unwrap();
        let program = if setup.floor { this.clone() } else { crate::binary().into() };
        let mut command = Command::new(program);
        command.arg("serve").env_clear();
        command.env("PATH", "/usr/bin:/bin").env("HOME", path("home")).env("TMPDIR", path("tmp"));
        command.env("ZCODE_ACP_STATE_DIR", path("state"));
        command.env("ZCODE_BIN", this);
        command.env(relay::ARGS, setup.sim).env(crate::OTHER, crate::binary());
        if setup.relayed {
            command.env(relay::LOG, dir.path().join("engine"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(path("cwd"));
        let started = Instant::now();
        let mut child = command.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        let _reader = std::thread::spawn(move || {
            for text in BufReader::with_capacity(256 * 1024, output).lines() {
                let Ok(text) = text else { break };
                if sender.send(Line { at: now_ns(), text }).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        let dir = Some(dir);
        Self { child, input, lines, dir, next: 1, started, allow: true, asked: Vec::new() }
    }

    /// Started and past `initialize`.
    pub(crate) fn ready(setup: &Setup) -> Self {
        let mut client = Self::start(setup);
        client.initialize();
        client
    }

    pub(crate) fn initialize(&mut self) {
        let caps =
            json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let params = json!({"protocolVersion": 1, "clientCapabilities": caps});
        let id = self.send("initialize", &params);
        self.reply(id);
    }

    pub(crate) fn new_session(&mut self) -> String {
        let params = json!({"cwd": self.cwd(), "mcpServers": []});
        let id = self.send("session/new", &params);
        let reply = self.reply(id).value();
        reply["result"]["sessionId"].as_str().expect("a session").to_owned()
    }

    /// Sends a prompt and returns its id.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let content = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", &json!({"sessionId": session, "prompt": content}))
    }

    /// Sends a prompt and waits for its answer.
    pub(crate) fn turn(&mut self, session: &str, text: &str) -> Vec<Line> {
        let id = self.prompt(session, text);
        self.until_reply(id)
    }

    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn write(&mut self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// The next line; answers questions on the way.
    pub(crate) fn next_line(&mut self) -> Line {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                if line.text.contains("\"session/request_permission\"") {
                    self.answer_permission(&line);
                }
                line
            }
            Err(RecvTimeoutError::Timeout) => panic!("the program is silent"),
            Err(RecvTimeoutError::Disconnected) => panic!("the program ended"),
        }
    }

    fn answer_permission(&mut self, line: &Line) {
        let request = line.value();
        let wanted = if self.allow { "allow_once" } else { "reject_once" };
        let options = request["params"]["options"].as_array().cloned().unwrap_or_default();
        let option = options.iter().find(|o| o["kind"] == wanted).expect("an option of that kind");
        let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
        let at = now_ns();
        self.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}}));
        self.asked.push((line.at, at));
    }

    /// The answer to a request of ours.
    pub(crate) fn reply(&mut self, id: u64) -> Line {
        self.until_reply(id).pop().unwrap()
    }

    /// All lines up to the answer to a request, which is the last.
    pub(crate) fn until_reply(&mut self, id: u64) -> Vec<Line> {
        let mark = format!("\"id\":{id}");
        let mut lines = Vec::new();
        loop {
            let line = self.next_line();
            let is_reply = line.text.contains(&mark) && {
                let message = line.value();
                message["id"] == id && message["method"].is_null()
            };
            if is_reply {
                assert!(!line.text.contains("\"error\":{"), "refused: {}", line.text);
            }
            lines.push(line);
            if is_reply {
                return lines;
            }
        }
    }

    /// Waits for the answer to a request, an error too, and keeps no line.
    pub(crate) fn until_answer(&mut self, id: u64) {
        let mark = format!("\"id\":{id}");
        loop {
            let line = self.next_line();
            if line.text.contains(&mark) && !line.text.contains("\"method\"") {
                return;
            }
        }
    }

    /// Lines up to the first message chunk.
    pub(crate) fn until_chunk(&mut self) -> Line {
        loop {
            let line = self.next_line();
            if line.chunk().is_some() {
                return line;
            }
        }
    }

    /// Takes what comes until nothing has come for so long.
    pub(crate) fn drain(&mut self, quiet: Duration) {
        while let Ok(line) = self.lines.recv_timeout(quiet) {
            if line.text.contains("\"session/request_permission\"") {
                self.answer_permission(&line);
            }
        }
    }

    pub(crate) fn engine_log(&self) -> PathBuf {
        self.path("engine")
    }

    /// The directory that sessions are about.
    pub(crate) fn cwd(&self) -> PathBuf {
        self.path("cwd")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.as_ref().unwrap().path().join(name)
    }

    /// Ends the program and keeps its directories.
    pub(crate) fn leave(mut self) -> Home {
        Home(self.dir.take().unwrap())
    }

    pub(crate) fn probe(&self) -> Reading {
        probe::read(self.child.id())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        // The end of its input is the program's end; it has ended the engine by then.
        self.child.wait().unwrap();
    }
}
