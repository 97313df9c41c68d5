//! Which plans the engine is told of, with the real program and an engine of its own: the simulated
//! one, started by a script as a stranger's engine would be, with a provider table and an account.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::serve::Editor;
use crate::world::{BINARY, World};

const KEY: &str = "0123456789abcdef0123456789abcdef.AbCdEfGhIjKlMnOp";
const PLAN: &str = "account:zai-individual-coding-plan";

/// A world with an engine that is found by `ZCODE_BIN` and needs to be told of plans.
pub(crate) fn world_with_engine() -> World {
    let mut world = World::new();
    let engine = world.home().join("engine");
    fs::write(&engine, format!("#!/bin/sh\nexec '{BINARY}' sim-engine --pace 0 \"$@\"\n")).unwrap();
    fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
    world.set("ZCODE_BIN", engine.to_str().unwrap());
    let table = world.home().join("zcode-builtin.json");
    let rule = json!({"providerId": PLAN, "config": {"access":
        {"type": "zhipu-account", "accountType": "zai", "mode": "individual-coding-plan"}}});
    let table_text =
        json!({"revision": 3, "config": {"providerConfigRules": {"providerRules": [rule]}}});
    fs::write(&table, table_text.to_string()).unwrap();
    world.set("ZCODE_BUILTIN_PROVIDER_CONFIG_FILE", table.to_str().unwrap());
    fs::create_dir_all(world.home().join(".zcode/v2")).unwrap();
    world
}

fn sign_in(world: &World) {
    let v2 = world.home().join(".zcode/v2");
    let config = json!({"provider": {"builtin:zai-coding-plan":
        {"enabled": true, "options": {"apiKey": KEY}, "models": {"m": {}}}}});
    fs::write(v2.join("config.json"), config.to_string()).unwrap();
    fs::write(
        v2.join("credentials.json"),
        json!({"oauth:zai:access_token": "token-in-the-clear"}).to_string(),
    )
    .unwrap();
}

/// What the engine was sent, by method; of plans, whether they are entitled.
fn sent(trace: &Path) -> Vec<String> {
    let text = fs::read_to_string(trace).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let sent = lines.filter(|line| line["wire"] == "engine" && line["dir"] == "out");
    sent.filter_map(|line| {
        let method = line["frame"]["method"].as_str()?.to_owned();
        let entitled = &line["frame"]["params"]["states"][PLAN]["entitled"];
        Some(if entitled.is_boolean() { format!("{method} {entitled}") } else { method })
    })
    .collect()
}

#[test]
fn the_engine_is_told_of_plans_before_its_first_session_and_when_the_files_change() {
    let world = world_with_engine();
    let trace = world.state().join("trace.jsonl");
    let mut editor = Editor::start(&world, &["serve", "--trace", trace.to_str().unwrap()]);
    let id = editor.open(&world);
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "hello"}]});
    let (answer, _) = editor.ask("session/prompt", &prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    sign_in(&world);
    for _ in 0..2 {
        let (answer, _) = editor.ask("session/prompt", &prompt);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
    assert_eq!(editor.end().code(), Some(0));
    let sent = sent(&trace);
    let at = |what: &str| sent.iter().position(|sent| sent == what);
    let told = |entitled: bool| at(&format!("provider/updateAccountConfig {entitled}"));
    assert!(told(false).unwrap() < at("session/create").unwrap(), "{sent:?}");
    let prompts: Vec<usize> =
        sent.iter().enumerate().filter(|(_, s)| *s == "session/send").map(|(i, _)| i).collect();
    let again = told(true).unwrap();
    assert!(prompts[0] < again && again < prompts[1], "{sent:?}");
    let count = sent.iter().filter(|s| s.starts_with("provider/")).count();
    assert_eq!(count, 2, "only what changed is told: {sent:?}");
    assert!(!fs::read_to_string(&trace).unwrap().contains(KEY), "a key is in the trace");
    world.assert_no_orphans();
}

/// The services, where every plan has ended.
fn services() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let _server = std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut request = String::new();
            while reader.read_line(&mut request).unwrap() > 2 {}
            let body = if request.contains("quota/limit") {
                json!({"data": {"level": "pro", "limits": [{"type": "TOKENS_LIMIT", "number": 5, "percentage": 45}]}})
            } else {
                json!({"code": 200, "data": []})
            };
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    base
}

#[test]
fn with_the_live_check_on_the_services_word_beats_the_files_and_quota_has_figures() {
    let mut world = world_with_engine();
    sign_in(&world);
    let off = world.run(&["quota"]);
    assert_eq!(off.code, Some(0), "{}", off.stderr);
    assert!(off.stdout.contains("zai individual coding plan"), "{}", off.stdout);
    assert!(off.stdout.contains("until then nothing goes\nto the network"), "{}", off.stdout);
    let base = services();
    world.set("ZAI_BUSINESS_BASE_URL", &base);
    world.set("ZCODE_ACP_LIVE_ENTITLEMENT", "1");
    let on = world.run(&["quota"]);
    assert!(on.stdout.contains("No plan is known to be usable"), "{}", on.stdout);
    assert!(on.stdout.contains("5h     █████████░░░░░░░░░░░  45%"), "{}", on.stdout);
    let trace = world.state().join("trace.jsonl");
    let run = world.run(&["run", "--trace", trace.to_str().unwrap(), "hello"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let told = sent(&trace);
    assert!(told.contains(&"provider/updateAccountConfig false".to_owned()), "{told:?}");
    let doctor = world.run(&["doctor", "--no-probe"]);
    assert!(doctor.stdout.contains("on: 1 plan(s) answered for"), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("not valid (its service says so"), "{}", doctor.stdout);
    let login = world.run(&["login"]);
    assert!(login.stdout.contains("The live check is on"), "{}", login.stdout);
    for text in [&on.stdout, &run.stdout, &doctor.stdout, &login.stdout, &world.log()] {
        assert!(!text.contains("token-in-the-clear") && !text.contains(KEY), "{text}");
    }
}

#[test]
fn the_quota_command_answers_in_a_session_without_a_turn() {
    let world = world_with_engine();
    sign_in(&world);
    let trace = world.state().join("trace.jsonl");
    let run = world.run(&["run", "--trace", trace.to_str().unwrap(), "/quota"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("zai individual coding plan"), "{}", run.stdout);
    assert!(!sent(&trace).iter().any(|sent| sent == "session/send"), "{:?}", sent(&trace));
    let demo = world.run(&["run", "--demo", "--demo-pace", "0", "/quota"]);
    assert!(demo.stdout.contains("needs no plan"), "{}", demo.stdout);
}

#[test]
fn a_client_that_asks_is_told_the_plans_by_name() {
    let world = world_with_engine();
    sign_in(&world);
    let mut editor = Editor::start(&world, &["serve"]);
    let _id = editor.open(&world);
    let (answer, _) = editor.ask("account/usage_stats", &json!({}));
    let plans = &answer["result"]["_meta"]["zcode"]["plans"];
    assert_eq!(plans[0]["id"], PLAN, "{answer}");
    assert!(!answer.to_string().contains(KEY));
    assert_eq!(editor.end().code(), Some(0));
}
