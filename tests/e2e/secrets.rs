//! Secrets planted wherever one can be: in the environment, ZCODE's files, settings, the log of
//! before, prompts, MCP servers. None comes out in a report, a trace, the log or on a screen.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::World;

/// Every planted secret has this in it.
const PLANTED: &str = "xPLANTEDx";

/// The `n`th secret.
fn secret(n: u32) -> String {
    format!("Qz{n:02}{PLANTED}{n:02}Kw9Rt")
}

/// A prompt with secrets as people paste them.
fn prompt() -> String {
    [
        format!("echo Authorization: Bearer {} and api_key={}", secret(1), secret(2)),
        format!("{{\"token\":\"{}\"}} https://u:{}@h/?key={}&x=1", secret(3), secret(4), secret(5)),
        format!(
            "sk-ant-{}0123 hf_{}0123 curl -H \"X-Api-Key: {}\"",
            secret(6),
            secret(7),
            secret(8)
        ),
    ]
    .join(" ")
}

fn write(world: &World, name: &str, text: &str) {
    let path = world.home().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A world full of secrets.
fn planted() -> World {
    let mut world = World::new();
    world.set("ZCODE_ACP_LOG", "trace");
    for (n, name) in
        ["ANTHROPIC_API_KEY", "ZCODE_ACP_REMOTE_TOKEN", "ZCODE_ACP_NEW", "SSH_AUTH_SOCK"]
            .into_iter()
            .enumerate()
    {
        world.set(name, &secret(10 + u32::try_from(n).unwrap()));
    }
    let url = format!("http://u:{}@127.0.0.1:1/?token={}", secret(20), secret(21));
    world.set("ZCODE_PLAN_BALANCE_URL", &url);
    world.set("HTTPS_PROXY", &url);
    let options = json!({"apiKey": secret(30), "baseURL": format!("https://h/?key={}", secret(31)),
        "headers": {"X-Own": secret(32)}});
    let provider = json!({"enabled": true, "options": options, "models": {"m": {}}});
    let config = json!({"provider": {"own": provider}}).to_string();
    write(&world, ".zcode/v2/config.json", &config);
    let credentials = json!({"oauth:zai:access_token": secret(33), "zcodejwttoken": secret(34)});
    write(&world, ".zcode/v2/credentials.json", &credentials.to_string());
    write(&world, ".zcode/v2/telemetry-state.json", &json!({"deviceMid": secret(35)}).to_string());
    let settings = json!({"remote": {"token": secret(36)}, "push": {"corp": secret(37)}});
    write(&world, ".config/zcode-acp/config.json", &settings.to_string());
    let log = world.state().join("log");
    fs::create_dir(&log).unwrap();
    let lines = [
        format!("Authorization: Bearer {}", secret(40)),
        format!("GET https://h/x?sig={}&n=1 Cookie: a={}", secret(41), secret(42)),
        format!(r#"text="{{\"headers\":{{\"x\":\"{}\"}}}}""#, secret(43)),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", secret(44)),
        format!("proxy said Basic {}==; passphrase={}", secret(45), secret(46)),
    ];
    fs::write(log.join("zcode-acp.9999-01-01.log"), lines.join("\n")).unwrap();
    world
}

fn assert_clean(what: &str, text: &str) {
    let leaks: Vec<&str> = text.lines().filter(|line| line.contains(PLANTED)).collect();
    assert!(leaks.is_empty(), "{what}: {leaks:#?}");
}

#[test]
fn the_report_and_every_page_are_free_of_planted_secrets() {
    let world = planted();
    let report = world.cwd().join("report.md");
    let path = report.to_str().unwrap();
    for args in [
        &["doctor", "--demo", "--bundle", path][..],
        &["doctor", "--no-probe", "--json"],
        &["login"],
        &["quota"],
    ] {
        let run = world.run(args);
        assert_clean(&format!("{args:?}"), &(run.stdout + &run.stderr));
    }
    let report = fs::read_to_string(report).unwrap();
    assert!(report.contains("proxy said Basic"), "the end of the log is in it: {report}");
    assert_clean("the report", &report);
}

#[test]
fn a_trace_and_the_log_of_a_turn_are_free_of_planted_secrets() {
    let world = planted();
    let trace = world.cwd().join("trace.jsonl");
    let args = ["run", "--demo", "--demo-pace", "0", "--trace", trace.to_str().unwrap()];
    let run = world.run(&[&args[..], &[&prompt()]].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    let text = fs::read_to_string(&trace).unwrap();
    assert!(text.contains("curl -H"), "the prompt is in it");
    assert_clean("the trace", &text);
    fs::remove_file(world.state().join("log/zcode-acp.9999-01-01.log")).unwrap();
    assert!(!world.log().is_empty());
    assert_clean("the log", &world.log());
}

#[test]
fn what_an_editor_hands_over_is_in_no_trace_and_no_log() {
    let world = planted();
    let trace = world.cwd().join("trace.jsonl");
    let args = ["serve", "--demo", "--demo-pace", "0", "--trace", trace.to_str().unwrap()];
    let mut command = world.command(&args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let servers = json!([
        {"name": "m", "command": "x", "args": [format!("--token={}", secret(50))],
            "env": [{"name": "PLAIN", "value": secret(51)}]},
        {"type": "http", "name": "n", "url": format!("https://u:{}@h/?key={}", secret(52), secret(53)),
            "headers": [{"name": "X-Y", "value": secret(54)}]},
    ]);
    let mut stdin = child.stdin.take().unwrap();
    for (id, method, params) in [
        (1, "initialize", json!({"protocolVersion": 1})),
        (2, "session/new", json!({"cwd": world.cwd(), "mcpServers": servers})),
        (3, "session/new", json!({"cwd": 5, "mcpServers": servers})),
        (4, "nonsense", json!({"apiKey": secret(55)})),
    ] {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{request}").unwrap();
    }
    let mut answered = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        answered += u32::from(message.get("method").is_none());
        if answered == 4 {
            break;
        }
    }
    drop(stdin);
    child.wait().unwrap();
    let text = fs::read_to_string(&trace).unwrap();
    assert!(text.contains("mcpServers"), "{text}");
    assert_clean("the trace", &text);
    fs::remove_file(world.state().join("log/zcode-acp.9999-01-01.log")).unwrap();
    assert_clean("the log", &world.log());
}
