//! What is told beside the conversation.

use super::*;
use crate::bridge::translate::Signals;

fn knowing(signals: Signals) -> Bench {
    Bench::with(|seed| seed.traits.signals = signals)
}

#[test]
fn turns_and_questions_are_signalled_to_clients_that_know_it_and_to_no_others() {
    for (signals, turn_state, settled) in [
        (Signals::None, None, None),
        (Signals::Standard, Some("_zcode/turn_state"), Some("_zcode/ask_settled")),
        (Signals::Legacy, Some("$/zcode/turnState"), Some("$/zcode/ask_settled")),
    ] {
        let mut b = knowing(signals);
        b.running("t1");
        b.permission("server-1", "r1");
        let ask = b.asks[0];
        b.choose(ask, "yes");
        b.complete("t1", "success");
        let got: Vec<(&str, Value)> = b.signals.clone();
        let want: Vec<(&str, Value)> = [
            turn_state.map(|m| (m, json!({"running": true}))),
            settled.map(|m| (m, json!({"kind": "permission", "toolCallId": "call_1"}))),
            turn_state.map(|m| (m, json!({"running": false}))),
        ]
        .into_iter()
        .flatten()
        .collect();
        assert_eq!(got, want);
    }
}

#[test]
fn a_silent_turn_that_runs_shows_a_sign_of_life_about_once_a_minute() {
    let mut b = Bench::new();
    let req = b.running("t1");
    b.by_hand = vec!["session/read", "session/events"];
    b.updates.clear();
    let reading =
        json!({"projection": {"status": "running", "contextUsed": 5, "contextWindow": 100}});
    let mut signs = Vec::new();
    for second in 1..=300_u64 {
        b.pass(1_000);
        while let Some(token) =
            b.calls.iter().find(|(t, m, _)| *t != 0 && *m == "session/read").map(|c| c.0)
        {
            b.calls.retain(|(t, ..)| *t != token);
            b.reply(token, Ok(reading.clone()));
        }
        if !b.updates.is_empty() {
            signs.push(second);
            b.updates.clear();
        }
    }
    assert!(b.response(req).is_none());
    // Nothing is known of the ring and no call runs: nothing is made up.
    assert_eq!(signs, Vec::<u64>::new());
    b.event("t1", tool_started("c1"));
    b.updates.clear();
    for second in 1..=300_u64 {
        b.pass(1_000);
        while let Some(token) =
            b.calls.iter().find(|(t, m, _)| *t != 0 && *m == "session/read").map(|c| c.0)
        {
            b.calls.retain(|(t, ..)| *t != token);
            b.reply(token, Ok(reading.clone()));
        }
        if !b.updates.is_empty() {
            let shown = serde_json::to_value(&b.updates).unwrap();
            assert_eq!(
                (shown[0]["toolCallId"].as_str(), shown[0]["status"].as_str()),
                (Some("c1"), Some("in_progress"))
            );
            signs.push(second);
            b.updates.clear();
        }
    }
    assert!((3..=5).contains(&signs.len()), "{signs:?}");
    assert!(signs.windows(2).all(|pair| pair[1] - pair[0] <= 120), "{signs:?}");
}

fn tool_started(id: &str) -> SessionBody {
    let raw = json!({"sessionId": SID, "seq": 1, "type": "tool.updated", "payload": {
        "kind": "started", "toolCallId": id, "toolName": "Bash", "input": {"command": "sleep 600"}}});
    let raw = RawValue::from_string(raw.to_string()).unwrap();
    crate::bridge::engine::session_event(&raw).unwrap().body
}

#[test]
fn the_commands_come_once_more_after_the_answer_and_then_never_again() {
    let mut b = Bench::new();
    b.request(Request::New);
    let commands = |b: &Bench| {
        b.updates
            .iter()
            .filter(|u| matches!(u, acp::SessionUpdate::AvailableCommandsUpdate(_)))
            .count()
    };
    assert_eq!(commands(&b), 1);
    b.pass(10_000);
    assert_eq!(commands(&b), 2);
    assert!(b.timers.is_empty());
}

#[test]
fn servers_that_did_not_start_are_named_and_those_that_still_connect_are_looked_at_again() {
    let mut b = Bench::with(|seed| {
        seed.mcp = vec![json!({"name": "files"}), json!({"name": "web"}), json!({"name": "fine"})];
    });
    b.running("t1");
    let token = b.open_call("mcp/list");
    b.reply(token, Ok(json!({"statuses": {"files": {"status": "connecting"}, "web": {"status": "failed", "error": "no route"},
        "other": {"status": "failed"}, "fine": {"status": "connected"}}})));
    assert!(!format!("{:?}", b.updates).contains("MCP"));
    b.pass(4_000);
    let token = b.open_call("mcp/list");
    b.reply(token, Ok(json!({"statuses": {"files": {"status": "failed", "failureKind": "spawn"}, "web": {"status": "failed", "error": "no route"}}})));
    let shown = serde_json::to_string(&b.updates).unwrap();
    assert!(shown.contains("files: spawn") && shown.contains("web: no route"), "{shown}");
    assert!(!shown.contains("other") && !shown.contains("fine"), "{shown}");
    assert_eq!(b.count("mcp/list"), 2);
    b.complete("t1", "success");
    b.running("t2");
    assert_eq!(b.count("mcp/list"), 2);
}
