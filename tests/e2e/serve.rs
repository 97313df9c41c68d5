//! `serve` as an editor starts it: protocol alone on stdout, a clean end whatever happens, and the
//! check that decides whether an agent is listed.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::world::World;

pub(crate) struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Editor {
    pub(crate) fn start(world: &World, args: &[&str]) -> Self {
        let mut child = world
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|err| panic!("{err}: {line:?}"))
    }

    /// Sends a request and returns its answer and what came before it.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> (Value, Vec<Value>) {
        self.send(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
        let mut before = Vec::new();
        loop {
            let message = self.receive();
            if message["id"] == method && message.get("method").is_none() {
                return (message, before);
            }
            before.push(message);
        }
    }

    /// Opens a session; returns its id.
    pub(crate) fn open(&mut self, world: &World) -> String {
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        let (answer, before) = self.ask("initialize", &hello);
        assert_eq!(before, Vec::<Value>::new());
        assert_eq!(answer["result"]["protocolVersion"], 1);
        let (answer, _) = self.ask("session/new", &json!({"cwd": world.cwd(), "mcpServers": []}));
        answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    /// Begins a turn that lasts and waits for its first update.
    fn begin_long_turn(&mut self, world: &World) {
        let id = self.open(world);
        let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "flood"}]});
        self.send(
            &json!({"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": prompt}),
        );
        while self.receive()["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    }

    /// Reads to the end; every line must be JSON.
    pub(crate) fn end(mut self) -> ExitStatus {
        drop(self.stdin.take());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        for line in rest.lines() {
            let _message: Value =
                serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}"));
        }
        self.child.wait().unwrap()
    }
}

const DEMO: [&str; 4] = ["serve", "--demo", "--demo-pace", "0"];

#[test]
fn a_turn_is_served_and_the_end_of_input_is_a_clean_end() {
    let world = World::new();
    let mut editor = Editor::start(&world, &DEMO);
    let id = editor.open(&world);
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "hello"}]});
    let (answer, updates) = editor.ask("session/prompt", &prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert!(
        updates.iter().any(|u| u["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
    );
    assert_eq!(editor.end().code(), Some(0));
    world.assert_no_orphans();
}

/// Waits until a line of the trace has this word.
fn until_traced(trace: &Path, word: &str) {
    let began = Instant::now();
    let mut file = BufReader::new(std::fs::File::open(trace).unwrap());
    let mut line = String::new();
    loop {
        // What is there of a line that is being written is kept for the next look.
        let more = file.read_line(&mut line).unwrap();
        if line.contains(word) {
            return;
        }
        if line.ends_with('\n') {
            line.clear();
        } else if more == 0 {
            assert!(began.elapsed() < Duration::from_mins(5), "{word} never came");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_client_that_stops_reading_holds_the_engines_frames_back_and_loses_nothing() {
    let world = World::new();
    let trace = world.state().join("trace.jsonl");
    let with_trace = ["serve", "--demo", "--demo-pace", "0", "--trace", trace.to_str().unwrap()];
    let mut editor = Editor::start(&world, &with_trace);
    let id = editor.open(&world);
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "flood 4m"}]});
    editor
        .send(&json!({"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": prompt}));
    until_traced(&trace, r#""saturated""#);
    // The client reads again.
    let mut shown = 0;
    loop {
        let message = editor.receive();
        if message["id"] == "p" {
            assert_eq!(message["result"]["stopReason"], "end_turn", "{message}");
            break;
        }
        let update = &message["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            shown += update["content"]["text"].as_str().unwrap().len();
        }
    }
    assert_eq!(editor.end().code(), Some(0));
    let text = std::fs::read_to_string(&trace).unwrap();
    let (mut states, mut said) = (Vec::new(), 0);
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["frame"]["method"] == "v4/connection/flow" {
            states.push(line["frame"]["params"]["state"].as_str().unwrap().to_owned());
        }
        let payload = &line["frame"]["params"]["payload"];
        if line["wire"] == "engine" && payload["kind"] == "text_delta" {
            said += payload["delta"].as_str().unwrap().len();
        }
    }
    let held = states.iter().position(|it| it == "saturated").unwrap();
    assert_eq!(states[0], "drained");
    assert!(states[held..].iter().any(|it| it == "drained"), "{states:?}");
    assert!(said > 4 * 1024 * 1024, "{said}");
    assert_eq!(shown, said, "each byte once");
}

#[test]
fn without_a_subcommand_pipes_mean_serve() {
    let world = World::new();
    let mut editor = Editor::start(&world, &[]);
    let _id = editor.open(&world);
    assert_eq!(editor.end().code(), Some(0));
}

#[test]
fn signals_end_a_running_turn_cleanly() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let world = World::new();
        let mut editor = Editor::start(&world, &["serve", "--demo"]);
        editor.begin_long_turn(&world);
        kill_process(Pid::from_child(&editor.child), signal).unwrap();
        assert_eq!(editor.end().code(), Some(0), "{signal:?}");
        world.assert_no_orphans();
    }
}

#[test]
fn the_end_of_input_ends_a_running_turn_and_its_engine() {
    let world = World::new();
    let mut editor = Editor::start(&world, &["serve", "--demo"]);
    editor.begin_long_turn(&world);
    assert_eq!(editor.end().code(), Some(0));
    world.assert_no_orphans();
}

#[test]
fn a_killed_bridge_leaves_no_engine_behind() {
    let world = World::new();
    let mut editor = Editor::start(&world, &["serve", "--demo"]);
    editor.begin_long_turn(&world);
    editor.child.kill().unwrap();
    let _status = editor.end();
    world.assert_no_orphans();
}

/// What the ACP registry does before it lists an agent: an empty home, a bare environment, one
/// request, one line.
#[test]
fn the_registrys_listing_check_passes_with_an_empty_home() {
    let mut world = World::new();
    world.env.retain(|(name, _)| matches!(name.as_str(), "HOME" | "PATH" | "ZCODE_ACP_TEST_MARK"));
    world.set("TERM", "dumb");
    let mut editor = Editor::start(&world, &["serve"]);
    editor.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": 1,
        "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true,
            "_meta": {"terminal_output": true, "terminal-auth": true}}}}));
    let answer = editor.receive();
    assert_eq!(answer["id"], 1);
    let methods = answer["result"]["authMethods"].as_array().unwrap();
    let listable = |method: &Value| match method.get("type").and_then(Value::as_str) {
        None | Some("agent" | "terminal") => true,
        Some(_) => method["_meta"].get("terminal-auth").is_some(),
    };
    assert!(methods.iter().any(listable), "{methods:?}");
    for method in methods {
        assert!(method["id"].is_string() && method["name"].is_string(), "{method}");
    }
    assert_eq!(editor.end().code(), Some(0));
}

#[test]
fn without_an_engine_the_session_says_what_to_set_and_the_bridge_lives_on() {
    let world = World::new();
    let mut editor = Editor::start(&world, &["serve"]);
    let id = editor.open(&world);
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "hello"}]});
    for _ in 0..2 {
        let (answer, _) = editor.ask("session/prompt", &prompt);
        let error = answer["error"]["message"].as_str().unwrap();
        assert!(error.contains("ZCODE_CJS"), "{error}");
    }
    assert_eq!(editor.end().code(), Some(0));
}

#[test]
fn secrets_of_settings_and_environment_never_reach_log_or_trace() {
    let mut world = World::new();
    let secret = "sk-ant-0123456789abcdefSECRET";
    world.set("ANTHROPIC_API_KEY", secret);
    world.set("ZCODE_ACP_LOG", "trace");
    let trace = world.state().join("trace.jsonl");
    let mut editor =
        Editor::start(&world, &[&DEMO[..], &["--trace", trace.to_str().unwrap()]].concat());
    let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
    let _answer = editor.ask("initialize", &hello);
    let server = json!({"name": "m", "type": "http", "url": "http://localhost/",
        "headers": [{"name": "Authorization", "value": format!("Bearer {secret}")}]});
    let (answer, _) =
        editor.ask("session/new", &json!({"cwd": world.cwd(), "mcpServers": [server]}));
    let id = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    let text = format!("hello, my key is {secret}");
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": text}]});
    let _answer = editor.ask("session/prompt", &prompt);
    assert_eq!(editor.end().code(), Some(0));
    let recorded = std::fs::read_to_string(&trace).unwrap();
    assert!(recorded.contains("session/prompt"), "both wires are recorded");
    assert!(recorded.contains("\"engine\""), "both wires are recorded");
    for (what, text) in [("trace", recorded), ("log", world.log())] {
        assert!(!text.contains("0123456789abcdefSECRET"), "a secret is in the {what}");
    }
}
