//! Engine, client and bridge ended at every step of a scripted turn: nothing hangs, nothing that
//! was begun is left open, nothing is left running.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{BINARY, World};

/// A silence this long is a hang.
const PATIENCE: Duration = Duration::from_mins(1);
/// Asks, runs a command, streams text: every kind of step.
const SCRIPT: &str = "permission";

/// A world whose engine is the simulated one, with this going wrong.
fn world(fault: &str) -> World {
    let mut world = World::new();
    let script = world.home().join("engine");
    let text = format!("#!/bin/sh\nexec {BINARY} sim-engine --pace 0 {fault} \"$@\"\n");
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.set("ZCODE_BIN", script.to_str().unwrap());
    world
}

struct Client {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    /// Messages that came since the session was opened.
    count: usize,
    /// Cards that are not closed.
    open: HashSet<String>,
}

impl Client {
    fn start(world: &World) -> Self {
        let mut child = world
            .command(&["serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        let _reader = std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap();
                if sender.send(message).is_err() {
                    // The pipe closes with this: the client is gone.
                    return;
                }
            }
        });
        let mut client =
            Self { child, stdin, messages, session: String::new(), count: 0, open: HashSet::new() };
        client.send("hello", "initialize", &json!({"protocolVersion": 1}));
        client.until("hello", usize::MAX);
        client.send("new", "session/new", &json!({"cwd": world.cwd(), "mcpServers": []}));
        let answer = client.until("new", usize::MAX).unwrap();
        answer["result"]["sessionId"].as_str().unwrap().clone_into(&mut client.session);
        client.count = 0;
        client
    }

    fn send(&mut self, id: &str, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        // Who writes to a bridge that was killed is told so by its silence.
        drop(writeln!(self.stdin, "{message}"));
    }

    fn prompt(&mut self, id: &str, text: &str) {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send(
            id,
            "session/prompt",
            &json!({"sessionId": self.session.clone(), "prompt": prompt}),
        );
    }

    /// Handles messages until the answer to this request, which is returned, or until so many
    /// messages have come.
    fn until(&mut self, id: &str, most: usize) -> Option<Value> {
        while self.count < most {
            let message = self.messages.recv_timeout(PATIENCE).expect("no answer");
            self.count += 1;
            if message["id"] == id && message.get("method").is_none() {
                return Some(message);
            }
            self.handle(&message);
        }
        None
    }

    fn handle(&mut self, message: &Value) {
        if message["method"] == "session/request_permission" {
            let options = message["params"]["options"].as_array().unwrap();
            let option = options.iter().find(|o| o["kind"] == "allow_once").unwrap();
            let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
            let answer =
                json!({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}});
            drop(writeln!(self.stdin, "{answer}"));
        }
        let update = &message["params"]["update"];
        let Some(card) = update["toolCallId"].as_str() else { return };
        match update["status"].as_str() {
            Some("completed" | "failed") => drop(self.open.remove(card)),
            _ if update["sessionUpdate"] == "tool_call" => drop(self.open.insert(card.to_owned())),
            _ => {}
        }
    }

    /// Ends the input; the bridge ends cleanly.
    fn end(self) {
        let Self { mut child, stdin, messages, .. } = self;
        drop(stdin);
        while messages.recv_timeout(PATIENCE).is_ok() {}
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

/// How many messages the turn has when nothing goes wrong.
fn length_of_the_turn() -> usize {
    let world = world("");
    let mut client = Client::start(&world);
    client.prompt("p", SCRIPT);
    let answer = client.until("p", usize::MAX).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let count = client.count;
    client.end();
    world.assert_no_orphans();
    assert!(count > 5, "a turn of {count} messages is no test");
    count
}

#[test]
fn an_engine_that_dies_at_any_step_ends_the_turn_and_the_next_one_has_a_new_engine() {
    let mut survived = false;
    for step in 1..200 {
        // Every engine dies at that step of its turn, the new one too.
        let world = world(&format!("--fault die:{step}"));
        let mut client = Client::start(&world);
        for turn in ["first", "second"] {
            client.prompt(turn, SCRIPT);
            let answer = client.until(turn, usize::MAX).unwrap();
            assert!(client.open.is_empty(), "step {step}, {turn}: open {:?}", client.open);
            survived = answer["result"]["stopReason"] == "end_turn";
            let told = answer["error"]["message"].as_str().is_some_and(|text| !text.is_empty());
            assert!(survived || told, "step {step}, {turn}: {answer}");
        }
        client.end();
        world.assert_no_orphans();
        if survived {
            assert!(step > 5, "the engine never died");
            break;
        }
    }
    assert!(survived, "the turn has no end");
}

#[test]
fn a_client_that_goes_at_any_step_is_a_clean_end() {
    for step in 1..=length_of_the_turn() {
        let world = world("");
        let mut client = Client::start(&world);
        client.prompt("p", SCRIPT);
        client.until("p", step);
        let Client { mut child, stdin, messages, .. } = client;
        drop((stdin, messages));
        assert_eq!(child.wait().unwrap().code(), Some(0), "step {step}");
        world.assert_no_orphans();
    }
}

#[test]
fn a_bridge_that_is_killed_at_any_step_leaves_nothing_running() {
    for step in 1..=length_of_the_turn() {
        let world = world("");
        let mut client = Client::start(&world);
        client.prompt("p", SCRIPT);
        client.until("p", step);
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        world.assert_no_orphans();
    }
}
