//! A trace of one run is played back: as an engine to the bridge, as an agent to a client.

use serde_json::Value;

use crate::terminal::Terminal;
use crate::world::{BINARY, World};

/// Runs a prompt on the demo engine with `--trace`; the trace and the reply.
fn recorded(world: &World, prompt: &str) -> (String, String) {
    let trace = world.cwd().join("trace.jsonl").to_str().unwrap().to_owned();
    let args = ["run", "--demo", "--demo-pace", "0", "--allow", "*", "--trace", &trace, prompt];
    let run = world.run(&args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    (trace, run.stdout)
}

#[test]
fn a_trace_has_both_wires() {
    let world = World::new();
    let (trace, _) = recorded(&world, "hello");
    let text = std::fs::read_to_string(trace).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (wire, dir) in [("engine", "in"), ("engine", "out"), ("acp", "in"), ("acp", "out")] {
        let has = lines.iter().any(|line| line["wire"] == wire && line["dir"] == dir);
        assert!(has, "{wire} {dir}: {text}");
    }
}

#[test]
fn a_recorded_engine_gives_the_same_reply_in_another_directory() {
    for prompt in ["hello", "edit", "permission"] {
        let (then, now) = (World::new(), World::new());
        let (trace, reply) = recorded(&then, prompt);
        let run = now.run(&["run", "--replay", &trace, "--allow", "*", prompt]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{prompt}: {}", now.log());
        assert_eq!(run.stdout, reply, "{prompt}");
        now.assert_no_orphans();
    }
}

#[test]
fn a_recorded_agent_talks_to_the_chat() {
    let world = World::new();
    let (trace, _) = recorded(&world, "hello");
    let agent = format!("'{BINARY}' replay --as agent '{trace}'");
    let mut t = Terminal::start(&world, &["tui", "--agent", &agent], 100, 30);
    t.wait_for("ask for something");
    t.keys("hello\r");
    t.wait_for("take two cells each");
    t.keys("\x03\x03");
    t.wait_exit();
    t.assert_restored();
    world.assert_no_orphans();
}

#[test]
fn what_is_no_trace_is_code_2() {
    let world = World::new();
    let file = world.cwd().join("x");
    std::fs::write(&file, "no trace").unwrap();
    let run = world.run(&["replay", file.to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("line 1"), "{}", run.stderr);
    assert_eq!(world.run(&["replay", "/no/such/file"]).code, Some(2));
}

/// A trace that lies with the tests: what an earlier build recorded must play for ever.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces/an_edit.jsonl");

#[test]
fn the_trace_that_lies_here_plays_as_an_engine_and_as_an_agent() {
    let world = World::new();
    let reply = "The greeting takes a name now";
    let engine = world.run(&["run", "--replay", GOLDEN, "--allow", "*", "edit"]);
    assert_eq!(engine.code, Some(0), "{}", engine.stderr);
    let agent = format!("'{BINARY}' replay --as agent '{GOLDEN}'");
    let agent = world.run(&["run", "--agent", &agent, "--allow", "*", "--format", "json", "edit"]);
    assert_eq!(agent.code, Some(0), "{}", agent.stderr);
    let result: Value = serde_json::from_str(&agent.stdout).unwrap();
    assert_eq!(result["text"].as_str().unwrap().trim(), engine.stdout.trim());
    assert!(engine.stdout.contains(reply), "{}", engine.stdout);
    world.assert_no_orphans();
}

#[test]
fn every_command_with_a_wire_records_it_and_no_secret_is_in_it() {
    let secret = "sk-ant-0123456789abcdefSECRET";
    let prompt = format!("hello, Authorization: Bearer {secret}");
    for args in [
        &["run", "--demo", "--demo-pace", "0", &prompt][..],
        &["sessions", "--demo", "list"],
        &["doctor", "--demo"],
    ] {
        let mut world = World::new();
        world.set("ANTHROPIC_API_KEY", secret);
        let file = world.cwd().join("trace.jsonl");
        let run = world.run(&[args, &["--trace", file.to_str().unwrap()]].concat());
        assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("\"engine\""), "{args:?}: {text}");
        assert!(!text.contains("0123456789abcdefSECRET"), "{args:?}");
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "{args:?}");
    }
    let world = World::new();
    let file = world.cwd().join("trace.jsonl");
    let args = ["tui", "--demo", "--demo-pace", "0", "--trace", file.to_str().unwrap()];
    let mut t = Terminal::start(&world, &args, 100, 30);
    t.wait_for("ask for something");
    t.keys(&format!("hello {secret}\r"));
    t.wait_for("take two cells each");
    t.keys("\x03\x03");
    t.wait_exit();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"acp\"") && text.contains("\"engine\""));
    assert!(!text.contains("0123456789abcdefSECRET"), "a secret is in the chat's trace");
}
