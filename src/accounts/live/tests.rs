//! Against a local server that plays the accounts' services.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::json;

use super::*;

const ZAI: &str = "zai-token-in-the-clear";
const JWT: &str = "zcode-token-in-the-clear";
const KEY: &str = "0123456789abcdef0123456789abcdef.AbCdEfGhIjKlMnOp";

/// A server that answers by path; what it was asked comes through the channel.
fn serve(answers: Vec<(&'static str, u16, Value)>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (sender, asked) = mpsc::channel();
    let _server = std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut request = String::new();
            while reader.read_line(&mut request).unwrap() > 2 {}
            let found = answers.iter().find(|(path, ..)| request.contains(path));
            let (code, body) =
                found.map_or((404, "{}".to_owned()), |(_, code, body)| (*code, body.to_string()));
            let head = format!(
                "HTTP/1.1 {code} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body.as_bytes()).unwrap();
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (base, asked)
}

fn env(base: &str) -> Env {
    let balance = format!("{base}/balance");
    let path = std::env::var("PATH").unwrap();
    [
        ("PATH", path.as_str()),
        ("ZAI_BUSINESS_BASE_URL", base),
        ("BIGMODEL_API_BASE_URL", base),
        ("ZCODE_PLAN_BALANCE_URL", &balance),
    ]
    .into_iter()
    .collect()
}

fn signed_in() -> AccountFiles {
    AccountFiles {
        credentials: Some(json!({"oauth:zai:access_token": ZAI, "zcodejwttoken": JWT})),
        telemetry: Some(json!({"deviceMid": "device-1"})),
        config: Some(json!({"provider": {
            "builtin:zai-coding-plan": {"enabled": true, "options": {"apiKey": KEY}}}})),
        ..AccountFiles::default()
    }
}

fn valid() -> Value {
    json!({"code": 200, "success": true, "data": [
        {"productName": "GLM Coding Pro", "status": "VALID", "inCurrentPeriod": true}]})
}

fn active() -> Value {
    json!({"code": 0, "data": {"plans": [{"status": "active", "plan_id": "zai-start-plan-1"}]}})
}

fn left() -> Value {
    json!({"success": true, "data": {"level": "pro", "limits": [
        {"type": "TOKENS_LIMIT", "number": 5, "percentage": 45}]}})
}

#[tokio::test]
async fn each_service_gets_its_own_token_and_its_word_counts() {
    let (base, asked) = serve(vec![
        ("/api/biz/subscription/list", 200, valid()),
        ("/balance", 200, active()),
        ("/quota/limit", 200, left()),
    ]);
    let live = Live::ask(&signed_in(), &env(&base), true).await;
    assert_eq!(live.problems, Vec::<String>::new());
    let want = [
        ("builtin:bigmodel-start-plan".to_owned(), false),
        ("builtin:zai-coding-plan".to_owned(), true),
        ("builtin:zai-start-plan".to_owned(), true),
    ];
    assert_eq!(live.answers, LiveAnswers::from(want));
    assert_eq!(live.limits.unwrap().windows[0].used_percent, 45);
    let requests: Vec<String> = asked.iter().take(3).collect();
    let of = |path: &str| requests.iter().find(|r| r.contains(path)).unwrap();
    assert!(of("/subscription/").contains(&format!("Authorization: {ZAI}\r\n")));
    assert!(of("/quota/").contains(&format!("Authorization: Bearer {KEY}\r\n")));
    let balance = of("/balance?app_version=");
    assert!(balance.contains(&format!("Authorization: Bearer {JWT}\r\n")), "{balance}");
    assert!(balance.contains("X-Device-Mid: device-1\r\n"), "{balance}");
}

#[tokio::test]
async fn a_plan_that_ended_and_one_that_is_no_coding_plan_do_not_count() {
    let over = json!({"data": [
        {"productId": "coding-pro", "status": "EXPIRED", "inCurrentPeriod": true},
        {"productId": "coding-pro", "status": "VALID", "inCurrentPeriod": false},
        {"productId": "video", "status": "VALID", "inCurrentPeriod": true}]});
    let paused = json!({"data": {"plans": [{"status": "paused", "name": "start-plan"}, {"status": "active", "name": "x"}]}});
    let (base, _asked) = serve(vec![("/subscription/", 200, over), ("/balance", 200, paused)]);
    let live = Live::ask(&signed_in(), &env(&base), false).await;
    assert_eq!(live.answers.values().filter(|valid| **valid).count(), 0);
    assert_eq!((live.answers.len(), live.problems.len()), (3, 0));
}

#[tokio::test]
async fn a_service_that_fails_is_told_without_its_words_and_the_last_good_answer_stays() {
    let echo = json!({"success": false, "code": 500, "msg": format!("bad token {ZAI}")});
    let (base, _asked) = serve(vec![("/subscription/", 200, echo), ("/balance", 401, json!({}))]);
    let live = Live::ask(&signed_in(), &env(&base), true).await;
    let told = live.problems.join("\n");
    assert_eq!(live.problems.len(), 3, "{told}");
    assert!(
        told.contains("code 500") && told.contains("expired") && told.contains("HTTP 404"),
        "{told}"
    );
    assert!(!told.contains(ZAI) && !told.contains(JWT) && !told.contains(KEY), "{told}");
    let before = LiveAnswers::from([
        ("builtin:zai-coding-plan".to_owned(), true),
        ("builtin:bigmodel-coding-plan".to_owned(), true),
    ]);
    // The other family is no longer signed in, so nothing speaks for its plan any more.
    let want = LiveAnswers::from([("builtin:zai-coding-plan".to_owned(), true)]);
    assert_eq!(live.after(&before), want);
}

#[tokio::test]
async fn nobody_listening_is_a_problem_in_words() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let live = Live::ask(&signed_in(), &env(&base), false).await;
    assert!(live.problems.iter().all(|p| p.contains("cannot be reached")), "{:?}", live.problems);
    let with_password = base.replace("http://", "http://user:planted@");
    let live = Live::ask(&signed_in(), &env(&with_password), false).await;
    assert!(!live.problems.is_empty());
    for problem in &live.problems {
        assert!(problem.starts_with("127.0.0.1:") && !problem.contains("planted"), "{problem}");
    }
    let nothing_on_path: Env = [("PATH", "/nowhere")].into_iter().collect();
    let live = Live::ask(&signed_in(), &nothing_on_path, false).await;
    assert!(
        live.problems.iter().all(|p| p.contains("curl is not installed")),
        "{:?}",
        live.problems
    );
}

#[tokio::test]
async fn encrypted_tokens_are_never_sent() {
    let (base, asked) = serve(Vec::new());
    let files = AccountFiles {
        credentials: Some(
            json!({"oauth:zai:access_token": "enc:v1:AAAA", "zcodejwttoken": "enc:v1:BBBB"}),
        ),
        config: Some(
            json!({"provider": {"builtin:zai-coding-plan": {"options": {"apiKey": "enc:v1:CCCC"}}}}),
        ),
        ..AccountFiles::default()
    };
    let live = Live::ask(&files, &env(&base), true).await;
    assert_eq!((live.answers.len(), live.problems.len()), (0, 2));
    assert!(live.problems.iter().all(|p| p.contains("encrypted")), "{:?}", live.problems);
    assert!(asked.try_recv().is_err(), "something was asked");
}

#[cfg(unix)]
#[tokio::test]
async fn no_token_is_in_the_arguments_or_the_environment_of_what_is_started() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let spy = dir.path().join("curl");
    let seen = dir.path().join("seen");
    let script = format!(
        "#!/bin/sh\n(echo \"$@\"; /usr/bin/env) >>'{}'\n/bin/cat >/dev/null\nprintf '{{\"data\":[]}}\\n200'\n",
        seen.display()
    );
    std::fs::write(&spy, script).unwrap();
    std::fs::set_permissions(&spy, std::fs::Permissions::from_mode(0o755)).unwrap();
    let env: Env = [("PATH", dir.path().to_str().unwrap()), ("ANTHROPIC_API_KEY", "sesame")]
        .into_iter()
        .collect();
    let files = AccountFiles {
        credentials: Some(json!({"oauth:zai:access_token": ZAI})),
        ..AccountFiles::default()
    };
    let live = Live::ask(&files, &env, false).await;
    assert_eq!(live.problems, Vec::<String>::new());
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.starts_with("-q --config -"), "the user's own .curlrc is not read: {seen}");
    assert!(!seen.contains(ZAI) && !seen.contains("sesame"), "{seen}");
}

#[tokio::test]
async fn nothing_is_asked_unless_the_user_turned_it_on() {
    let home = tempfile::tempdir().unwrap();
    let mut config = crate::config::test_config(Env::default(), home.path());
    assert_eq!(Live::of(&config, true).await, None);
    config.live_entitlement = true;
    assert!(Live::of(&config, true).await.is_some());
    config.engine.demo = Some(crate::config::DemoConfig::default());
    assert_eq!(Live::of(&config, true).await, None, "the demo has no account");
}

#[test]
fn only_a_body_that_says_nothing_else_is_a_good_one() {
    let understood = |code: u16, body: &str| body_of(code, body.as_bytes()).is_ok();
    for good in [
        r#"{"data": []}"#,
        r#"{"code": 0}"#,
        r#"{"code": 200, "success": true}"#,
        r#"{"code": "200"}"#,
        r#"{"code": null}"#,
    ] {
        assert!(understood(200, good), "{good}");
        assert!(!understood(500, good) && !understood(302, good) && !understood(401, good));
    }
    for bad in [
        r#"{"success": false}"#,
        r#"{"code": 200, "success": false}"#,
        r#"{"code": 1}"#,
        r#"{"code": 401}"#,
        r#"{"code": "x"}"#,
        "<html>",
        "",
    ] {
        assert!(!understood(200, bad), "{bad}");
    }
}

#[test]
fn a_coding_plan_must_be_valid_and_running_and_a_start_plan_active() {
    let plan = |key: &str, name: &str, status: &str, running: bool| {
        is_coding_plan(&json!({key: name, "status": status, "inCurrentPeriod": running}))
    };
    assert!(plan("productName", "GLM Coding Lite", "VALID", true));
    assert!(plan("productId", "glm-CODING-pro", "VALID", true));
    assert!(!plan("productName", "GLM Video", "VALID", true));
    assert!(!plan("productName", "GLM Coding", "EXPIRED", true));
    assert!(!plan("productName", "GLM Coding", "VALID", false));
    let start = |key: &str, name: &str, status: &str| {
        is_start_plan(&json!({key: name, "status": status}), "zai")
    };
    assert!(
        start("plan_id", "start-plan-1", "active") && start("name", "Zai Start-Plan", "active")
    );
    assert!(!start("plan_id", "pro-plan", "active") && !start("plan_id", "start-plan", "ended"));
    assert!(!start("plan_id", "bigmodel-start-plan", "active"), "the other family's");
}

#[tokio::test]
async fn without_a_device_the_start_plan_is_not_asked_about() {
    let (base, asked) = serve(vec![("/subscription/", 200, valid())]);
    let files = AccountFiles { telemetry: None, ..signed_in() };
    let live = Live::ask(&files, &env(&base), false).await;
    assert_eq!(live.problems, ["start plan: telemetry-state.json names no device"]);
    assert_eq!(live.answers, LiveAnswers::from([("builtin:zai-coding-plan".to_owned(), true)]));
    assert!(asked.recv().unwrap().contains("/subscription/") && asked.try_recv().is_err());
}
