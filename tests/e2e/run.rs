//! `run` as a script uses it: every documented exit code, the formats, the rules, the signals.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::world::{Run, World};

const DEMO: [&str; 4] = ["run", "--demo", "--demo-pace", "0"];

fn demo(world: &World, args: &[&str]) -> Run {
    world.run(&[&DEMO, args].concat())
}

#[test]
fn a_reply_is_code_0_and_alone_on_stdout() {
    let world = World::new();
    let run = demo(&world, &["hello"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.ends_with('\n') && run.stdout.len() > 20, "{}", run.stdout);
    world.assert_no_orphans();
}

#[test]
fn ndjson_is_json_on_every_line_and_json_is_one_object() {
    let world = World::new();
    let run = demo(&world, &["--format", "ndjson", "hello"]);
    let lines: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() > 3);
    let result = &lines[lines.len() - 1]["result"];
    assert_eq!((&result["exitCode"], &result["stopReason"]), (&0.into(), &"end_turn".into()));
    let run = demo(&world, &["--format", "json", "hello"]);
    let object: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(object["text"], result["text"]);
}

#[test]
fn a_failed_turn_is_code_1() {
    let world = World::new();
    let run = demo(&world, &["fail"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("zcode-acp: "), "{}", run.stderr);
}

#[test]
fn wrong_arguments_are_code_2() {
    let world = World::new();
    for args in [
        &["--allow", "Bash(", "x"][..],
        &["--cwd", "/no/such/place", "x"],
        &["--timeout", "0", "x"],
        &["--session", "a", "--continue", "x"],
        &["--format", "xml", "x"],
        &[], // standard input is empty
    ] {
        assert_eq!(demo(&world, args).code, Some(2), "{args:?}");
    }
}

#[test]
fn a_model_or_mode_that_is_not_there_is_code_2_and_the_choice_is_told() {
    let world = World::new();
    for (flag, known) in [("--model", "/sim-large"), ("--mode", "plan")] {
        let run = demo(&world, &[flag, "nonesuch", "hello"]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{flag}: {}", run.stderr);
        assert!(
            run.stderr.contains("nonesuch") && run.stderr.contains("choose one of"),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains(known), "{}", run.stderr);
    }
    assert_eq!(demo(&world, &["--mode", "plan", "hello"]).code, Some(0));
}

#[test]
fn a_permission_needs_a_rule_and_a_denial_is_code_4_and_said() {
    let world = World::new();
    let run = demo(&world, &["permission"]);
    assert_eq!(run.code, Some(4));
    assert!(run.stderr.contains("--allow 'Bash("), "{}", run.stderr);
    let run = demo(&world, &["--allow", "Bash", "permission"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let run = demo(&world, &["--allow", "*", "--deny", "Bash(rm *)", "permission"]);
    assert_eq!(run.code, Some(4));
    assert!(run.stderr.contains("denied by a rule"), "{}", run.stderr);
}

#[test]
fn no_engine_is_code_5_and_says_where_it_looked() {
    let world = World::new();
    let run = world.run(&["run", "hello"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(5), ""));
    assert!(run.stderr.contains("ZCODE_CJS") && run.stderr.contains("doctor"), "{}", run.stderr);
}

#[test]
fn time_up_is_code_124_and_nothing_is_left_behind() {
    let world = World::new();
    let run = world.run(&["run", "--demo", "--timeout", "0.7", "flood"]);
    assert_eq!(run.code, Some(124));
    world.assert_no_orphans();
}

#[test]
fn an_interrupt_cancels_the_turn_and_is_code_130() {
    let world = World::new();
    let mut child = world
        .command(&["run", "--demo", "--format", "ndjson", "flood"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line says that the turn is on its way.
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(last["result"]["stopReason"], "cancelled", "the turn itself was cancelled");
    world.assert_no_orphans();
}

#[test]
fn a_killed_run_leaves_no_engine_behind() {
    let world = World::new();
    let mut child = world
        .command(&["run", "--demo", "--format", "ndjson", "flood"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    world.assert_no_orphans();
}

#[test]
fn a_prompt_can_be_piped_and_a_session_continued() {
    let world = World::new();
    let mut child = world
        .command(&[&DEMO[..], &["--format", "json"]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello").unwrap();
    let first: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    let continued = demo(&world, &["--format", "json", "--continue", "hello"]);
    assert_eq!(continued.code, Some(0), "{}", continued.stderr);
    let id = first["sessionId"].as_str().unwrap();
    let by_id = demo(&world, &["--format", "json", "--session", id, "hello"]);
    assert_eq!(by_id.code, Some(0), "{}", by_id.stderr);
    let none = World::new();
    assert_eq!(demo(&none, &["--continue", "hello"]).code, Some(1));
}

#[test]
fn another_agent_is_driven_the_same_and_its_death_is_told() {
    let world = World::new();
    let script = world.cwd().join("agent.sh");
    fs::write(&script, "echo out of coffee >&2; exit 9").unwrap();
    let command = format!("sh '{}'", script.display());
    let run = world.run(&["run", "--agent", &command, "hello"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.stderr.contains("out of coffee") && run.stderr.contains("exit status: 9"),
        "{}",
        run.stderr
    );
    // Our own agent, as a stranger's.
    let command = format!("'{}' serve --demo --demo-pace 0", crate::world::BINARY);
    let run = world.run(&["run", "--agent", &command, "hello"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    world.assert_no_orphans();
}

/// An agent that answers the prompt with this, played from a trace made by hand.
fn agent_that_answers(world: &World, answer: &Value) -> String {
    let file = world.cwd().join("agent.jsonl");
    let line = |dir: &str, frame: Value| {
        json!({"t": 0, "wire": "acp", "dir": dir, "frame": frame}).to_string() + "\n"
    };
    let mut prompt_answer = json!({"jsonrpc": "2.0", "id": 3});
    prompt_answer.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
    let text = [
        line("in", json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})),
        line("out", json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}})),
        line("in", json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {}})),
        line("out", json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}})),
        line("in", json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {}})),
        line("out", prompt_answer),
    ]
    .concat();
    fs::write(&file, text).unwrap();
    format!("'{}' replay --as agent '{}'", crate::world::BINARY, file.display())
}

#[test]
fn a_turn_that_the_other_side_cancels_is_code_3() {
    let world = World::new();
    let agent = agent_that_answers(&world, &json!({"result": {"stopReason": "cancelled"}}));
    let run = world.run(&["run", "--agent", &agent, "hello"]);
    assert_eq!((run.code, run.stdout.trim()), (Some(3), ""), "{}", run.stderr);
    assert!(run.stderr.contains("cancelled"), "{}", run.stderr);
}

#[test]
fn a_sign_in_that_is_needed_is_code_6_and_says_how() {
    let world = World::new();
    let error = json!({"error": {"code": -32000, "message": "Authentication required"}});
    let agent = agent_that_answers(&world, &error);
    let run = world.run(&["run", "--agent", &agent, "hello"]);
    assert_eq!(run.code, Some(6), "{}", run.stderr);
    assert!(run.stderr.contains("that agent's own command"), "{}", run.stderr);
    assert_eq!(world.run(&["login"]).code, Some(6), "and login says the same of an empty home");
}

#[test]
fn more_model_requests_than_allowed_cancel_the_turn_and_are_code_1() {
    let world = World::new();
    let run = demo(&world, &["--max-turns", "1", "--allow", "*", "bash"]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stderr.contains("--max-turns"), "{}", run.stderr);
    assert_eq!(demo(&world, &["--max-turns", "9", "--allow", "*", "bash"]).code, Some(0));
    assert_eq!(demo(&world, &["--max-turns", "0", "bash"]).code, Some(2));
    world.assert_no_orphans();
}
