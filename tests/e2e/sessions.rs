//! Many sessions in one process: prompts, questions, cancels and dying engines all at once, and
//! not one request is left without its answer.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::World;

const SESSIONS: usize = 50;
const PROMPTS: usize = 3;
/// Longer than anything may take without a message; a silence this long is a lost answer.
const PATIENCE: Duration = Duration::from_mins(1);

const TEXTS: [&str; 12] = [
    "hello",
    "bash",
    "permission",
    "questions",
    "plan",
    "todos",
    "flood 20k",
    "slow",
    "fail",
    "transient",
    "subagent",
    "background",
];

/// A small generator, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

struct Client {
    child: Child,
    stdin: ChildStdin,
    messages: Receiver<Value>,
    dice: Dice,
    sessions: Vec<String>,
    sent: HashMap<String, (String, usize)>,
    answered: HashSet<String>,
    engine_deaths: usize,
}

impl Client {
    fn start(world: &World, seed: u64) -> Self {
        let mut child = world
            .command(&["serve", "--demo", "--demo-pace", "0.02"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let Ok(line) = line else { break };
                let message = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            stdin,
            messages,
            dice: Dice(seed),
            sessions: Vec::new(),
            sent: HashMap::new(),
            answered: HashSet::new(),
            engine_deaths: 0,
        }
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn begin(&mut self, world: &World) {
        let caps = json!({"elicitation": {"form": {}}});
        self.send(json!({"id": "i", "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": caps}}));
        self.messages.recv_timeout(PATIENCE).unwrap();
        for n in 0..SESSIONS {
            let params = json!({"cwd": world.cwd(), "mcpServers": []});
            self.send(json!({"id": format!("new-{n}"), "method": "session/new", "params": params}));
        }
    }

    fn prompt(&mut self, session: &str, round: usize) {
        let text = if self.engine_deaths < 2 && self.dice.roll(40) == 0 {
            self.engine_deaths += 1;
            "die"
        } else {
            TEXTS[self.dice.roll(TEXTS.len())]
        };
        let id = format!("p-{round}-{session}");
        self.sent.insert(id.clone(), (session.to_owned(), round));
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.send(json!({"id": id, "method": "session/prompt", "params": params}));
    }

    /// Answers a question of the agent's in one of the ways that clients do.
    fn decide(&mut self, message: &Value) {
        let id = message["id"].clone();
        let asks_permission = message["method"] == "session/request_permission";
        let reply = match (asks_permission, self.dice.roll(3)) {
            (true, 0) => json!({"id": id, "result": {"outcome": {"outcome": "cancelled"}}}),
            (true, _) => {
                let options = message["params"]["options"].as_array().unwrap();
                let option = &options[self.dice.roll(options.len())]["optionId"];
                json!({"id": id, "result": {"outcome": {"outcome": "selected", "optionId": option}}})
            }
            (false, 0) => json!({"id": id, "error": {"code": -32603, "message": "no form today"}}),
            (false, _) => json!({"id": id, "result": {"action": "decline"}}),
        };
        self.send(reply);
    }

    fn handle(&mut self, message: &Value) {
        if message.get("method").is_some() {
            if message.get("id").is_some() {
                self.decide(message);
            }
            if self.dice.roll(60) == 0 && !self.sessions.is_empty() {
                let session = self.sessions[self.dice.roll(self.sessions.len())].clone();
                self.send(json!({"method": "session/cancel", "params": {"sessionId": session}}));
            }
            return;
        }
        let id = message["id"].as_str().unwrap().to_owned();
        if id.starts_with("new-") {
            let session = message["result"]["sessionId"]
                .as_str()
                .unwrap_or_else(|| panic!("{message}"))
                .to_owned();
            self.sessions.push(session.clone());
            return self.prompt(&session, 1);
        }
        let Some((session, round)) = self.sent.get(&id).cloned() else { return };
        assert!(self.answered.insert(id.clone()), "{id} was answered twice");
        let reason = message["result"]["stopReason"].as_str();
        let known = matches!(reason, Some("end_turn" | "cancelled" | "max_turn_requests"));
        assert!(known || message["error"]["message"].is_string(), "{message}");
        if round < PROMPTS {
            self.prompt(&session, round + 1);
        }
    }
}

#[test]
fn fifty_sessions_at_once_leave_no_prompt_unanswered() {
    let world = World::new();
    let mut client = Client::start(&world, 20_261_130);
    client.begin(&world);
    while client.answered.len() < SESSIONS * PROMPTS {
        let message = client.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            let open: Vec<_> =
                client.sent.keys().filter(|id| !client.answered.contains(*id)).collect();
            panic!("unanswered: {open:?}\n{}", world.log())
        });
        client.handle(&message);
    }
    let Client { mut child, stdin, .. } = client;
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    world.assert_no_orphans();
}

#[test]
fn a_client_that_vanishes_in_the_middle_leaves_nothing_behind() {
    let world = World::new();
    let mut client = Client::start(&world, 7);
    client.begin(&world);
    for _ in 0..400 {
        let message = client.messages.recv_timeout(PATIENCE).unwrap();
        client.handle(&message);
    }
    let Client { mut child, stdin, messages, .. } = client;
    drop(stdin);
    drop(messages);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    world.assert_no_orphans();
}
