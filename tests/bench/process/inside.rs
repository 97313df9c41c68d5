//! The bridge in this very process: from the moment that an engine's line is written into its pipe
//! to the moment that the chunk can be read behind the transport, with no other process in between.
//!
//! The engine is a child that answers the few requests of a turn and says nothing by itself; its
//! part is spoken from here, through the same pipe.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use agent_client_protocol::ConnectTo as _;
use clap::Parser as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe;
use zcode_acp::bridge;
use zcode_acp::bridge::stdio::{Outflow, Stdio};
use zcode_acp::cli::{Cli, Command};
use zcode_acp::config::Config;

use crate::probe::now_ns;
use crate::report::{Report, percentile};

/// Where the quiet engine notes its process id; set, it is one.
pub(crate) const QUIET: &str = "ZCODE_ACP_BENCH_QUIET";
const SID: &str = "sess_1";

/// The quiet engine.
pub(crate) fn run_engine(note: &Path) -> ExitCode {
    std::fs::write(note, std::process::id().to_string()).unwrap();
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = line.map(|line| serde_json::from_str::<Value>(&line).unwrap_or_default())
        else {
            break;
        };
        let method = message["method"].as_str().unwrap_or_default();
        let (id, input) = (&message["id"], &message["params"]["inputId"]);
        let mut answer = match method {
            "session/create" => json!({"result": {"session": {"sessionId": SID}, "settings": {}}}),
            "session/subscribe" => {
                json!({"result": {"sessionId": SID, "eventSeq": 0, "events": []}})
            }
            "session/send" => json!({"result": {"sessionId": SID, "accepted": true}}),
            _ if method.starts_with("v4/") => json!({"error": {"code": -32601, "message": "no"}}),
            _ => json!({"result": {}}),
        };
        answer["id"] = id.clone();
        writeln!(out, "{answer}").unwrap();
        if method == "session/send" {
            writeln!(out, "{}", event(1, "turn.started", &json!({"inputId": input}))).unwrap();
            writeln!(out, "{}", piece(2)).unwrap();
        }
    }
    ExitCode::SUCCESS
}

fn event(seq: u64, kind: &str, payload: &Value) -> Value {
    json!({"method": "session/event", "params": {"sessionId": SID, "seq": seq, "timestamp": 1,
        "turnId": "turn_1", "type": kind, "payload": payload}})
}

fn piece(seq: u64) -> Value {
    let piece = json!({"kind": "text_delta", "delta": "the quick brown fox ",
        "assistantMessageId": "msg_1", "partId": "part_1"});
    event(seq, "model.streaming", &piece)
}

pub(crate) fn measure(report: &mut Report) {
    let pieces = report.pick(2000, 400);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let delays = runtime.block_on(delays(pieces));
    runtime.shutdown_background();
    for (name, share, target, gate) in [
        ("engine line in to ACP line out in one process, p50", 0.5, 0.1, 1.0),
        ("the same, p99", 0.99, 0.3, 10.0),
    ] {
        report.add(("inside", name), percentile(&delays, share), "ms", target, gate);
    }
}

fn config(dir: &Path) -> Config {
    let path = |name: &str| {
        let path = dir.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path.into_os_string()
    };
    let env = [
        ("HOME", path("home")),
        ("TMPDIR", path("tmp")),
        ("ZCODE_ACP_STATE_DIR", path("state")),
        ("PATH", "/usr/bin:/bin".into()),
        ("ZCODE_BIN", std::env::current_exe().unwrap().into_os_string()),
        (QUIET, dir.join("engine.pid").into_os_string()),
    ];
    let cli = Cli::parse_from(["zcode-acp", "serve"]);
    let Some(command @ Command::Serve(_)) = &cli.command else { unreachable!() };
    Config::load(env.into_iter().collect(), &cli.global, command).unwrap()
}

/// This process's end of the connection.
struct Ends {
    to: pipe::Sender,
    from: BufReader<pipe::Receiver>,
    next: u64,
}

impl Ends {
    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.from.read_line(&mut line).await.unwrap();
        line
    }

    async fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let mut line =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
                .to_string();
        line.push('\n');
        self.to.write_all(line.as_bytes()).await.unwrap();
        self.next
    }

    async fn chunk(&mut self) {
        while !self.line().await.contains("agent_message_chunk") {}
    }

    async fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params).await;
        loop {
            let message: Value = serde_json::from_str(&self.line().await).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }
}

/// Milliseconds from a line to its chunk, one piece after the other.
async fn delays(pieces: u64) -> Vec<f64> {
    let dir = tempfile::tempdir().unwrap();
    let ((to, input), (output, from)) = (pipe::pipe().unwrap(), pipe::pipe().unwrap());
    let outflow = Outflow::new();
    let agent = bridge::agent(Arc::new(config(dir.path()))).metered(outflow.clone());
    let serving = tokio::spawn(agent.connect_to(Stdio::over(input, output, outflow)));
    let mut ends = Ends { to, from: BufReader::new(from), next: 0 };
    ends.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}})).await;
    let cwd = dir.path();
    let made = ends.call("session/new", &json!({"cwd": cwd, "mcpServers": []})).await;
    let text = json!([{"type": "text", "text": "hello"}]);
    let prompt = json!({"sessionId": made["sessionId"], "prompt": text});
    ends.send("session/prompt", &prompt).await;
    // The engine has begun to speak: from here on it is done for it, in its own pipe.
    ends.chunk().await;
    let pid = std::fs::read_to_string(dir.path().join("engine.pid")).unwrap();
    let pipe = format!("/proc/{pid}/fd/1");
    let mut engine = std::fs::File::options().write(true).open(pipe).unwrap();
    let mut delays = Vec::new();
    for seq in 3..pieces + 3 {
        let line = format!("{}\n", piece(seq));
        let began = now_ns();
        engine.write_all(line.as_bytes()).unwrap();
        ends.chunk().await;
        delays.push((now_ns() - began) as f64 / 1e6);
    }
    drop(ends);
    serving.await.unwrap().ok();
    // The first ones find everything cold.
    delays.split_off(delays.len() / 10)
}
