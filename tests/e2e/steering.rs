//! The waits of an early guide, as the environment of a real `serve` sets them, in front of an engine that writes a new
//! session's row late. What is compared is the order of messages, never their times.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::serve::Editor;
use crate::world::{BINARY, World};

/// What happened on the engine's wire, in order.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Event,
    Guide,
}

/// Steers in the same breath as the first prompt of a new session; returns the verdict and what was on the wire until then.
fn steer_at_once(engine: &str, variables: &[(&str, &str)]) -> (Value, Vec<Seen>) {
    let mut world = World::new();
    let script = world.home().join("engine");
    fs::write(&script, format!("#!/bin/sh\nexec {BINARY} sim-engine {engine} \"$@\"\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    world.set("ZCODE_BIN", script.to_str().unwrap());
    for (name, value) in variables {
        world.set(name, value);
    }
    let trace = world.state().join("trace.jsonl");
    let mut editor = Editor::start(&world, &["serve", "--trace", trace.to_str().unwrap()]);
    let id = editor.open(&world);
    let text = |text: &str| json!({"sessionId": id, "prompt": [{"type": "text", "text": text}]});
    editor.send(
        &json!({"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": text("slow")}),
    );
    let (answer, _) = editor.ask("_session/steering", &text("say banana"));
    editor.end();
    world.assert_no_orphans();
    let lines = fs::read_to_string(&trace).unwrap();
    let mut seen: Vec<Seen> = Vec::new();
    for line in lines.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok()) {
        if line["frame"]["method"] == "session/event" && !seen.contains(&Seen::Event) {
            seen.push(Seen::Event);
        }
        if line["frame"]["params"]["type"] == "sendText" {
            seen.push(Seen::Guide);
        }
    }
    (answer["result"].clone(), seen)
}

#[test]
fn the_environment_sets_how_long_a_guide_waits_for_the_sessions_first_event() {
    // The row is written seconds after the prompt was taken, and the first event comes a second later.
    let engine = "--pace 10";
    let retry = ("ZCODE_ACP_STEER_FK_RETRY_MS", "0");
    let (verdict, seen) = steer_at_once(engine, &[("ZCODE_ACP_STEER_PERSIST_MS", "0"), retry]);
    assert_eq!(verdict["outcome"], "failed", "{verdict}");
    assert_eq!(seen, [Seen::Guide], "nothing is waited for");

    let (verdict, seen) = steer_at_once(engine, &[("ZCODE_ACP_STEER_PERSIST_MS", "600000"), retry]);
    assert_eq!(verdict["outcome"], "injected", "{verdict}");
    assert_eq!(seen, [Seen::Event, Seen::Guide], "one try, once the event has come");
}

#[test]
fn the_environment_sets_how_long_a_guide_is_tried_again() {
    let engine = "--pace 1 --fault late-row:600000";
    for (budget, tries) in [("0", 1), ("250", 2)] {
        let variables =
            [("ZCODE_ACP_STEER_PERSIST_MS", "0"), ("ZCODE_ACP_STEER_FK_RETRY_MS", budget)];
        let (verdict, seen) = steer_at_once(engine, &variables);
        assert_eq!(verdict["outcome"], "failed", "{verdict}");
        assert_eq!(verdict["reason"], "fault.command.executionFailed", "{verdict}");
        let guides = seen.iter().filter(|it| **it == Seen::Guide).count();
        assert_eq!(guides, tries, "{budget}");
    }
}
