//! The actor against real child processes: small shell scripts that play an engine.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::bridge::engine::event::{EngineEvent, SessionBody};
use crate::bridge::engine::policy::Policy;
use crate::bridge::engine::{Engine, EngineError, EngineHandle};
use crate::process::ChildSpec;
use crate::trace::Trace;

const PATIENCE: Duration = Duration::from_secs(20);

fn engine(script: &str) -> (EngineHandle, mpsc::Receiver<EngineEvent>) {
    engine_with(script, 64)
}

fn engine_with(script: &str, mailbox: usize) -> (EngineHandle, mpsc::Receiver<EngineEvent>) {
    let (sender, events) = mpsc::channel(mailbox);
    let spec = ChildSpec { args: vec!["-c".into(), script.into()], ..ChildSpec::new("/bin/sh") };
    (Engine::spawn(&spec, Policy::default(), Trace::off(), sender).unwrap(), events)
}

async fn next(events: &mut mpsc::Receiver<EngineEvent>) -> EngineEvent {
    timeout(PATIENCE, events.recv()).await.expect("an event in time").expect("an event")
}

async fn value(
    reply: impl Future<Output = Result<Value, EngineError>>,
) -> Result<Value, EngineError> {
    timeout(PATIENCE, reply).await.expect("a reply in time")
}

/// Tells the line that the engine read back as an event's kind.
const ECHO: &str = r#"
    tell() { printf '{"method":"%s"}\n' "$(printf %s "$1" | tr -d '"\\' | tr -c 'a-zA-Z0-9:,{}._-' '_')"; }
"#;

#[tokio::test]
async fn requests_are_sent_in_order_and_answered_by_id() {
    let script = r#"
        read -r a; read -r b
        id() { printf %s "$1" | sed 's/{"id":\([0-9]*\),.*/\1/'; }
        printf '{"id":%s,"result":{"second":true}}\n{"id":%s,"error":{"code":-32010,"message":"busy"}}\n' "$(id "$b")" "$(id "$a")"
        read -r rest
    "#;
    let (engine, _events) = engine(script);
    let first = engine.request_value("session/send", json!({"n": 1}));
    let second = engine.request_value("session/read", json!({"n": 2}));
    assert_eq!(value(second).await.unwrap(), json!({"second": true}));
    let error = value(first).await.unwrap_err();
    assert_eq!(error.rpc().unwrap().message, "busy");
    assert!(engine.is_alive());
    engine.shutdown().await;
    assert!(!engine.is_alive());
}

#[tokio::test]
async fn a_dead_engine_fails_everything_at_once_with_its_last_words() {
    let (engine, mut events) =
        engine("read -r a; echo 'it broke' >&2; printf 'half a line'; exit 7");
    let (sender, mut mine) = mpsc::channel(8);
    engine.attach("s1", sender.clone());
    engine.attach("s2", sender);
    let reply = engine.request_value("session/create", json!({}));
    let error = value(reply).await.unwrap_err();
    let EngineError::Exited(exit) = &error else { panic!("{error:?}") };
    assert_eq!(
        (exit.status.as_str(), exit.stderr_tail.as_slice()),
        ("exit status: 7", ["it broke".to_owned()].as_slice())
    );
    assert!(
        matches!(next(&mut events).await, EngineEvent::Malformed { reason } if reason.contains("half a line"))
    );
    assert!(matches!(next(&mut events).await, EngineEvent::Exited(_)));
    assert!(timeout(PATIENCE, events.recv()).await.unwrap().is_none(), "Exited is the last");
    assert!(matches!(next(&mut mine).await, EngineEvent::Exited(_)));
    assert!(timeout(PATIENCE, mine.recv()).await.unwrap().is_none(), "once for each mailbox");
    assert!(!engine.is_alive());
    assert!(matches!(
        value(engine.request_value("session/read", json!({}))).await,
        Err(EngineError::Exited(_))
    ));
}

#[tokio::test]
async fn what_needs_no_session_is_answered_at_arrival() {
    let script = format!(
        r#"{ECHO}
        printf '{{"id":"server-1","method":"session/requestRuntimePreferences","params":{{"sessionId":"s"}}}}\n'
        read -r a; tell "$a"
        printf '{{"id":"invalid-message","error":{{"code":-32600,"message":"no"}}}}\n'
        read -r a; tell "$a"
        printf '{{"id":8,"method":"automation/list","params":{{}}}}\n'
        read -r a; tell "$a"
        printf '{{"id":9,"method":"interaction/requestProviderRuntimeHeaders","params":{{"providerId":"account:zai-start-plan"}}}}\n'
        read -r a; tell "$a"
        read -r a
        "#
    );
    let (engine, mut events) = engine(&script);
    let mut seen = Vec::new();
    for _ in 0..4 {
        let EngineEvent::Other { method } = next(&mut events).await else { panic!("other") };
        seen.push(method);
    }
    assert_eq!(
        seen[0],
        "{id:server-1,result:{nativeSearchEnhancementsEnabled:false,memoryEnabled:false,askUserQuestionAutoResolutionEnabled:false}}"
    );
    assert_eq!(seen[1], "{id:server-1,result:{nativeSearchEnhancementsEnabled:false}}");
    assert!(seen[2].starts_with("{id:8,error:{code:-32601,"), "{}", seen[2]);
    assert!(seen[3].starts_with("{id:9,result:{headersApplied:false,errorMessage:"), "{}", seen[3]);
    drop(engine);
}

#[tokio::test]
async fn a_create_that_failed_by_our_preferences_is_sent_again_with_the_short_answer() {
    let script = r#"
        ask() { printf '{"id":"server-%s","method":"session/requestRuntimePreferences","params":{}}\n' "$1"; read -r answer; }
        id() { printf %s "$1" | sed 's/{"id":\([0-9]*\),.*/\1/'; }
        read -r a; ask 1
        printf '{"id":%s,"error":{"code":-32603,"message":"Invalid runtime preferences: unknown key"}}\n' "$(id "$a")"
        read -r b; ask 2
        case "$answer" in *memoryEnabled*) ok=false;; *) ok=true;; esac
        printf '{"id":%s,"result":{"ok":%s,"same":%s}}\n' "$(id "$b")" $ok "$(test "${a#*,}" = "${b#*,}" && echo true || echo false)"
        read -r rest
    "#;
    let (engine, _events) = engine(script);
    let reply =
        engine.request_value("session/create", json!({"workspace": {"workspacePath": "/w"}}));
    assert_eq!(value(reply).await.unwrap(), json!({"ok": true, "same": true}));
}

#[tokio::test]
async fn a_question_is_forwarded_once_and_answered_on_every_id() {
    let script = format!(
        r#"{ECHO}
        ask() {{ printf '{{"id":"server-%s","method":"interaction/requestPermission","params":{{"requestId":"r","sessionId":"s"}}}}\n' "$1"; }}
        read -r go; ask 1; ask 2
        read -r a; tell "$a"; read -r a; tell "$a"
        ask 3; read -r a; tell "$a"
        read -r a
        "#
    );
    let (engine, mut events) = engine(&script);
    let (sender, mut mine) = mpsc::channel(8);
    engine.attach("s", sender);
    engine.notify("go", json!({}));
    let EngineEvent::Request(request) = next(&mut mine).await else { panic!("request") };
    assert_eq!((request.id.as_str(), request.request_id.as_deref()), (Some("server-1"), Some("r")));
    engine.respond(request.id.clone(), Ok(json!({"decision": "deny"})));
    engine.respond(request.id, Ok(json!({"decision": "allow"})));
    let mut answers = Vec::new();
    for _ in 0..3 {
        let EngineEvent::Other { method } = next(&mut events).await else { panic!("other") };
        answers.push(method);
    }
    answers[..2].sort();
    let deny = |n: u32| format!("{{id:server-{n},result:{{decision:deny}}}}");
    // The second announcement may come before or after the answer: it is answered either way.
    assert_eq!(answers, [deny(1), deny(2), deny(3)]);
    assert!(mine.try_recv().is_err(), "one dialog for one question");
}

#[tokio::test]
async fn a_full_mailbox_stops_the_reading_and_never_the_writing() {
    let script = r#"
        for i in 1 2 3 4 5 6 7 8; do printf '{"method":"session/event","params":{"sessionId":"s","seq":%s,"type":"x"}}\n' $i; done
        read -r a; echo "got $a" >&2
        printf '{"method":"session/event","params":{"sessionId":"s","seq":9,"type":"x"}}\n'
        read -r b
    "#;
    let (engine, _events) = engine(script);
    let (sender, mut mine) = mpsc::channel(1);
    engine.attach("s", sender);
    // The attach may come late for the first events: those went to the default.
    engine.notify("session/stop", json!({}));
    let mut last = 0;
    while last < 9 {
        let EngineEvent::Session(event) = next(&mut mine).await else { panic!("session event") };
        assert!(event.seq > last, "in order");
        assert!(matches!(event.body, SessionBody::Unknown { .. }));
        last = event.seq;
    }
    engine.shutdown().await;
}

/// A shell function that prints a line of the stream: number, text as JSON, session.
const DELTA: &str = r#"
    delta() { printf '{"method":"session/event","params":{"sessionId":"%s","seq":%s,"type":"model.streaming","payload":{"kind":"text_delta","messageId":"m","delta":"%s"}}}\n' "$3" "$1" "$2"; }
"#;

/// The text of each event up to the engine's end, with the numbers it stands for; another event is
/// its method or kind.
async fn told(mut mine: mpsc::Receiver<EngineEvent>) -> Vec<(u64, u64, String)> {
    let mut told = Vec::new();
    loop {
        match next(&mut mine).await {
            EngineEvent::Session(event) => {
                let text = match &event.body {
                    SessionBody::Streaming(it) => it.delta.clone(),
                    other => format!("{other:?}"),
                };
                told.push((event.first_seq(), event.seq, text));
            }
            EngineEvent::Other { method } => told.push((0, 0, method)),
            EngineEvent::Malformed { .. } => told.push((0, 0, "malformed".to_owned())),
            EngineEvent::Exited(_) => return told,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn pieces_that_came_together_are_one_event_and_keep_their_place_before_everything_else() {
    let script = format!(
        r#"{DELTA}
        all=$(delta 1 a s; delta 2 b s; delta 3 c s; delta 1 x t; delta 4 d s; delta 6 e s; delta 7 f s
            echo '{{"method":"other"}}'; delta 8 g s; echo nonsense; delta 9 'h\ud83d' s; delta 10 '\ude00i' s; delta 11 j s; delta 12 k s)
        printf '%s\n' "$all""#
    );
    for mailbox in [64, 1] {
        let (_engine, events) = engine_with(&script, mailbox);
        let said = told(events).await;
        let said: Vec<_> =
            said.iter().map(|(first, last, text)| (*first, *last, text.as_str())).collect();
        let expected = [
            (1, 3, "abc"),
            (1, 1, "x"),
            (4, 4, "d"),
            (6, 7, "ef"),
            (0, 0, "other"),
            (8, 8, "g"),
            (0, 0, "malformed"),
            (9, 9, "h"),
            (10, 10, "\u{1F600}i"),
            (11, 12, "jk"),
        ];
        assert_eq!(said, expected, "a mailbox of {mailbox}");
    }
}

#[tokio::test]
async fn a_piece_that_comes_alone_is_told_at_once() {
    let script = format!("{DELTA} delta 1 a s; read -r go; delta 2 b s; read -r end");
    let (engine, mut events) = engine(&script);
    for (seq, text) in [(1, "a"), (2, "b")] {
        let EngineEvent::Session(event) = next(&mut events).await else { panic!("an event") };
        let SessionBody::Streaming(streaming) = event.body else { panic!("a piece") };
        assert_eq!((event.seq, streaming.delta.as_str()), (seq, text));
        engine.notify("go", json!({}));
    }
    engine.shutdown().await;
}

#[tokio::test]
async fn noise_is_survived() {
    let script = r#"
        printf '\n   \nnot json\n[1]\n\357\273\277{"method":"after"}\r\n'
        printf '\377\376{"x"\n'
        printf '{"method":"last"}'
    "#;
    let (_engine, mut events) = engine(script);
    let mut kinds = Vec::new();
    loop {
        match next(&mut events).await {
            EngineEvent::Malformed { .. } => kinds.push("malformed".to_owned()),
            EngineEvent::Other { method } => kinds.push(method),
            EngineEvent::Exited(exit) => break assert_eq!(exit.status, "exit status: 0"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(kinds, ["malformed", "malformed", "after", "malformed", "last"]);
}

#[tokio::test]
async fn a_late_answer_to_a_request_that_timed_out_is_dropped() {
    let script = r#"
        id() { printf %s "$1" | sed 's/{"id":\([0-9]*\),.*/\1/'; }
        read -r a; read -r b
        printf '{"id":%s,"result":"late"}\n{"id":%s,"result":"right"}\n' "$(id "$a")" "$(id "$b")"
        read -r rest
    "#;
    let (engine, _events) = engine(script);
    // With nothing else to do the paused clock jumps to the time-out.
    tokio::time::pause();
    let error = engine.request_value("session/read", json!({})).await.unwrap_err();
    assert!(matches!(error, EngineError::Timeout { method: "session/read", .. }), "{error:?}");
    tokio::time::resume();
    assert_eq!(
        value(engine.request_value("session/read", json!({}))).await.unwrap(),
        json!("right")
    );
}

#[tokio::test]
async fn dropping_every_handle_ends_the_engine() {
    let (engine, mut events) =
        engine("trap '' TERM; echo '{\"method\":\"up\"}'; read -r a; sleep 100");
    assert!(matches!(next(&mut events).await, EngineEvent::Other { .. }));
    drop(engine);
    assert!(matches!(next(&mut events).await, EngineEvent::Exited(_)));
}

#[tokio::test]
async fn a_line_of_megabytes_arrives_whole() {
    let script = r#"
        read -r a; id=$(printf %s "$a" | sed 's/{"id":\([0-9]*\),.*/\1/')
        printf '{"id":%s,"result":"' "$id"; head -c 5000000 /dev/zero | tr '\0' x; printf '"}\n'
        read -r rest
    "#;
    let (engine, _events) = engine(script);
    let reply = value(engine.request_value("session/messages", json!({}))).await.unwrap();
    assert_eq!(reply.as_str().map(str::len), Some(5_000_000));
}
