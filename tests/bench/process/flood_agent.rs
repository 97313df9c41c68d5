//! An ACP agent that answers every prompt with text, for measuring the terminal: `flood N` as fast
//! as the pipe takes it, `pace N MS` one chunk every so many milliseconds, `wait` until cancelled,
//! `blocks N` as many short messages, `tools N KB` as many commands of so much output, `change N` a
//! changed file of so many lines, `children N SECONDS` as many subagents at work at once, each with
//! ten pieces of text a second.
//! The text is markdown; it ends with the line `DONE-<prompt>`, or `STOPPED-<prompt> at <ns>` when
//! cancelled, which says when the cancel was read. It knows 10,000 old sessions; loading the one
//! named `big-<MB>` replays as many megabytes, made before.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::probe::now_ns;

/// Markdown in pieces of about sixteen bytes, as a model streams it: prose, a list, code.
const PIECES: [&str; 16] = [
    "## A heading\n\n",
    "Some **bold** ",
    "words and `code` ",
    "in a paragraph ",
    "that goes on for ",
    "longer than one ",
    "row of a screen, ",
    "so it is wrapped ",
    "where it must.\n\n",
    "- an item with ",
    "some more words\n",
    "- and another\n\n",
    "```rust\nlet a = 1;",
    "\nlet b = a + 1;\n",
    "```\n\nThe brown ",
    "fox jumps over.\n\n",
];

pub(crate) fn run() -> ExitCode {
    let (sender, messages) = channel::<Value>();
    let _reader = std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Some(message) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else {
                break;
            };
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    // Made before it is asked for: what that takes is no time of the client's.
    let listed = old_sessions().to_string();
    let mut prompts = 0;
    while let Ok(message) = messages.recv() {
        let id = &message["id"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({"protocolVersion": 1, "authMethods": [], "agentCapabilities":
                {"loadSession": true, "sessionCapabilities": {"list": {}}}}),
            "session/new" => json!({"sessionId": "flood"}),
            "session/list" => {
                put(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{listed}}}\n"));
                continue;
            }
            "session/load" => {
                let session = message.pointer("/params/sessionId").and_then(Value::as_str);
                replay(session.unwrap_or_default());
                json!({})
            }
            "session/prompt" => {
                prompts += 1;
                let text = message.pointer("/params/prompt/0/text").and_then(Value::as_str);
                json!({"stopReason": turn(text.unwrap_or_default(), prompts, &messages)})
            }
            _ if id.is_null() => continue,
            _ => json!({}),
        };
        say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
    ExitCode::SUCCESS
}

/// What the agent takes for a flood of so many chunks when nobody does anything with them.
pub(crate) fn alone(chunks: u32) -> Duration {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("flood-agent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |text: &str, answer: &[u8]| {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": "flood", "prompt": prompt});
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params});
        let began = Instant::now();
        input.write_all(line_of(&ask).as_bytes()).unwrap();
        let mut line = Vec::new();
        while !line.windows(answer.len()).any(|part| part == answer) {
            line.clear();
            assert!(lines.read_until(b'\n', &mut line).unwrap() > 0, "the agent ended");
        }
        began.elapsed()
    };
    ask("ready?", b"DONE-1");
    let time = ask(&format!("flood {chunks}"), b"DONE-2");
    drop(input);
    child.wait().unwrap();
    time
}

fn say(message: &Value) {
    put(&line_of(message));
}

fn line_of(message: &Value) -> String {
    let mut line = message.to_string();
    line.push('\n');
    line
}

fn put(lines: &str) {
    let mut out = std::io::stdout().lock();
    // A client that is gone reads nothing more; the end of our input follows.
    drop(out.write_all(lines.as_bytes()).and_then(|()| out.flush()));
}

fn update(session: &str, update: &Value) -> String {
    let params = json!({"sessionId": session, "update": update});
    line_of(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
}

fn text(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

fn chunk(words: &str) {
    put(&update("flood", &text("agent_message_chunk", words)));
}

/// A short message of its own.
fn block(n: u64) {
    let mut piece = text("agent_message_chunk", &format!("Message {n} with some words in it."));
    piece["messageId"] = format!("m{n}").into();
    put(&update("flood", &piece));
}

/// A command that has printed so many kilobytes, its first and its last line marked.
fn tool(n: u64, kilobytes: u64) {
    let line = format!("{n:>6} {}\n", "output ".repeat(8));
    let lines = (kilobytes * 1024) as usize / line.len();
    let output = format!("FIRST-{n}\n{}LAST-{n}\n", line.repeat(lines));
    let content = json!([{"type": "content", "content": {"type": "text", "text": output}}]);
    put(&update(
        "flood",
        &json!({"sessionUpdate": "tool_call", "toolCallId": format!("t{n}"), "title": format!("command {n}"),
            "kind": "execute", "status": "completed", "content": content}),
    ));
}

/// A file of so many lines, every one of them changed.
fn change(lines: u64) {
    let file = |word: &str| -> String {
        let line = |n: u64| format!("    let {word}_{n} = compute({n}, \"{word}\"); // line {n}\n");
        (0..lines).map(line).collect()
    };
    let content = json!([{"type": "diff", "path": "src/long.rs", "oldText": file("old"), "newText": file("new")}]);
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "change", "title": "Edit src/long.rs",
        "kind": "edit", "status": "completed", "content": content});
    put(&update("flood", &call));
}

/// Subagents that all work at once.
fn children(count: u64, seconds: u64, messages: &Receiver<Value>) {
    for n in 0..count {
        let child = json!({"sessionUpdate": "subagent_update", "sessionId": format!("child{n}"),
            "title": format!("Task {n}"), "state": {"state": "running"}, "capabilities": {}});
        put(&update("flood", &child));
    }
    let began = Instant::now();
    for n in 0..seconds * 10 {
        let due = began + Duration::from_millis(100) * u32::try_from(n).unwrap_or(u32::MAX);
        if is_cancelled(messages, due) {
            return;
        }
        for child in 0..count {
            let words = text("agent_message_chunk", PIECES[(n % 16) as usize]);
            put(&update(&format!("child{child}"), &words));
        }
    }
}

fn old_sessions() -> Value {
    let session = |n: u32| {
        json!({"sessionId": format!("old-{n}"), "cwd": "/", "title": format!("Session number {n}"),
            "updatedAt": "2026-01-01T00:00:00Z"})
    };
    json!({"sessions": (0..10_000).map(session).collect::<Vec<_>>()})
}

/// Replays prompts and answers. The first of them says when the first byte of all was written.
fn replay(session: &str) {
    let megabytes = session.strip_prefix("big-").and_then(|n| n.parse().ok()).unwrap_or(0_usize);
    let mut lines = String::new();
    for n in 0.. {
        if lines.len() >= megabytes << 20 {
            break;
        }
        lines.push_str(&update(session, &text("user_message_chunk", &format!("Prompt {n}"))));
        let answer = format!("{}Answer {n}.\n", PIECES.concat().repeat(20));
        lines.push_str(&update(session, &text("agent_message_chunk", &answer)));
    }
    let began = text("user_message_chunk", &format!("BEGAN at {}.", now_ns()));
    put(&update(session, &began));
    put(&lines);
    put(&update(session, &text("agent_message_chunk", "\n\nLOADED\n")));
}

/// Writes the chunks; `cancelled` when the client says so.
fn turn(text: &str, prompt: u32, messages: &Receiver<Value>) -> &'static str {
    let mut words = text.split(' ');
    let kind = words.next().unwrap_or_default();
    let number = |word: Option<&str>| word.and_then(|w| w.parse::<u64>().ok()).unwrap_or_default();
    let (count, pace) = match kind {
        "flood" | "blocks" | "tools" => (number(words.next()), Duration::ZERO),
        "pace" => (number(words.next()), Duration::from_millis(number(words.next()))),
        "wait" => (u64::MAX, Duration::from_hours(1)),
        "change" | "children" => (0, Duration::ZERO),
        _ => (1, Duration::ZERO),
    };
    let kilobytes = number(words.next());
    let size = number(text.split(' ').nth(1));
    match kind {
        "change" => change(size),
        "children" => children(size, number(text.split(' ').nth(2)), messages),
        _ => {}
    }
    let began = Instant::now();
    for n in 0..count {
        let due = began + pace.saturating_mul(u32::try_from(n).unwrap_or(u32::MAX));
        if is_cancelled(messages, due) {
            chunk(&format!("\n\nSTOPPED-{prompt} at {}.\n", now_ns()));
            return "cancelled";
        }
        match kind {
            "blocks" => block(n),
            "tools" => tool(n, kilobytes),
            _ => chunk(PIECES[(n % 16) as usize]),
        }
    }
    chunk(&format!("\n\nDONE-{prompt}\n"));
    "end_turn"
}

/// Waits until it is time for the next chunk, or the client cancels or goes.
fn is_cancelled(messages: &Receiver<Value>, due: Instant) -> bool {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        match messages.recv_timeout(left) {
            Ok(message) if message["method"] == "session/cancel" => return true,
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => return true,
        }
    }
}
