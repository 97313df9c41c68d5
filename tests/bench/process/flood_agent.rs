//! An ACP agent that answers every prompt with text, for measuring the terminal: `flood N` as fast
//! as the pipe takes it, `pace N MS` one chunk every so many milliseconds, `wait` until cancelled.
//! The text is markdown; it ends with the line `DONE-<prompt>`, or `STOPPED-<prompt>` when cancelled.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

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
    let mut prompts = 0;
    while let Ok(message) = messages.recv() {
        let id = &message["id"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                json!({"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})
            }
            "session/new" => json!({"sessionId": "flood"}),
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

fn say(message: &Value) {
    let mut line = message.to_string();
    line.push('\n');
    let mut out = std::io::stdout().lock();
    // A client that is gone reads nothing more; the end of our input follows.
    drop(out.write_all(line.as_bytes()).and_then(|()| out.flush()));
}

fn chunk(text: &str) {
    let update =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    let params = json!({"sessionId": "flood", "update": update});
    say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
}

/// Writes the chunks; `cancelled` when the client says so.
fn turn(text: &str, prompt: u32, messages: &Receiver<Value>) -> &'static str {
    let mut words = text.split(' ');
    let kind = words.next().unwrap_or_default();
    let number = |word: Option<&str>| word.and_then(|w| w.parse::<u64>().ok()).unwrap_or_default();
    let (count, pace) = match kind {
        "flood" => (number(words.next()), Duration::ZERO),
        "pace" => (number(words.next()), Duration::from_millis(number(words.next()))),
        "wait" => (u64::MAX, Duration::from_hours(1)),
        _ => (1, Duration::ZERO),
    };
    let began = Instant::now();
    for n in 0..count {
        let due = began + pace.saturating_mul(u32::try_from(n).unwrap_or(u32::MAX));
        if is_cancelled(messages, due) {
            chunk(&format!("\n\nSTOPPED-{prompt}\n"));
            return "cancelled";
        }
        chunk(PIECES[(n % 16) as usize]);
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
