//! Loading, resuming and what a session tells its client beside the turns.

use super::*;
use crate::bridge::engine::event::StateUpdated;

fn message(id: &str, role: &str, text: &str) -> Value {
    json!({"info": {"messageId": id, "role": role}, "parts": [{"type": "text", "text": text}]})
}

fn known() -> Bench {
    Bench::with(|seed| seed.engine_sid = Some(SID.into()))
}

fn open(replay: bool) -> Request {
    Request::Open { replay, mcp: Vec::new(), remark: None, limit: None }
}

#[test]
fn a_load_tells_what_there_is_and_answers_when_the_history_stops_growing() {
    let mut b = known();
    let req = b.request(open(true));
    let token = b.open_call("session/messages");
    b.reply(token, Ok(json!({"messages": [message("m1", "user", "question")]})));
    assert_eq!((b.updates.len(), b.response(req).is_none()), (1, true));
    let both = json!({"messages": [message("m1", "user", "question"), message("m2", "assistant", "answer")]});
    for _ in 0..2 {
        b.pass(300);
        let token = b.open_call("session/messages");
        b.reply(token, Ok(both.clone()));
    }
    assert_eq!(b.shown(), "answer");
    assert!(b.response(req).unwrap().is_ok());
    assert_eq!(b.count("session/messages"), 3);
}

#[test]
fn a_long_history_is_told_in_parts_and_each_waits_for_the_client() {
    let mut b = known();
    let req = b.request(open(true));
    let long = "x".repeat(50_000);
    let messages: Vec<Value> =
        (0..20).map(|n| message(&format!("m{n}"), "assistant", &format!("{n}{long}"))).collect();
    let token = b.open_call("session/messages");
    b.reply(token, Ok(json!({ "messages": messages })));
    let mut parts = 0;
    while let Some(token) = b.rooms.pop() {
        assert!(b.machine.is_replaying());
        assert!(b.response(req).is_none());
        parts += 1;
        assert_eq!(b.updates.len(), parts * 3);
        b.step(Input::Timer(token));
    }
    assert_eq!((parts, b.machine.is_replaying()), (6, false));
    b.pass(300);
    let token = b.open_call("session/messages");
    assert_eq!(b.params("session/messages")["afterMessageId"], "m18");
    b.reply(token, Ok(json!({ "messages": messages[19..] })));
    let told: Vec<String> = b.shown().split(&long).map(str::to_owned).collect();
    let want: Vec<String> = (0..20).map(|n| n.to_string()).chain([String::new()]).collect();
    assert_eq!(told, want);
    assert_eq!(
        b.response(req).unwrap().as_ref().unwrap()["_meta"]["zcode"]["replayMeta"]["replayedMessages"],
        20
    );
}

#[test]
fn a_history_is_told_from_the_answer_to_the_resume_and_only_its_end_is_read_again() {
    let mut b = known();
    b.by_hand = vec!["session/resume"];
    let req = b.request(open(true));
    let token = b.open_call("session/resume");
    let history = [message("m1", "user", "question"), message("m2", "assistant", "answer")];
    b.reply(token, Ok(json!({"session": {"sessionId": SID}, "messages": history})));
    assert_eq!((b.shown().as_str(), b.count("session/messages")), ("answer", 0));
    assert!(b.response(req).is_none());
    b.pass(300);
    let token = b.open_call("session/messages");
    assert_eq!(b.params("session/messages")["afterMessageId"], "m1");
    b.reply(token, Ok(json!({"messages": history[1..]})));
    assert!(b.response(req).unwrap().is_ok());
    assert_eq!((b.shown().as_str(), b.count("session/messages")), ("answer", 1));
}

#[test]
fn a_resume_without_history_in_its_answer_is_followed_by_a_read_at_once() {
    for snapshot in [
        json!({"session": {"sessionId": SID}}),
        json!({"session": {"sessionId": SID}, "messages": []}),
        json!({"session": {"sessionId": SID}, "messages": "none"}),
    ] {
        let mut b = known();
        b.by_hand = vec!["session/resume"];
        b.request(open(true));
        let token = b.open_call("session/resume");
        b.reply(token, Ok(snapshot));
        let token = b.open_call("session/messages");
        b.reply(token, Ok(json!({"messages": [message("m1", "assistant", "answer")]})));
        assert_eq!(b.shown(), "answer");
    }
}

#[test]
fn what_a_turn_adds_while_a_history_settles_is_not_told_as_history() {
    let mut b = known();
    let req = b.request(open(true));
    let token = b.open_call("session/messages");
    let history = [message("m1", "user", "question"), message("m2", "assistant", "answer. ")];
    b.reply(token, Ok(json!({ "messages": history })));
    b.running("t1");
    b.text("t1", "live");
    b.pass(300);
    let token = b.open_call("session/messages");
    let more =
        [history[1].clone(), message("m3", "user", "hello"), message("m4", "assistant", "live")];
    b.reply(token, Ok(json!({ "messages": more })));
    assert_eq!(b.shown(), "answer. live");
    assert!(b.response(req).unwrap().is_ok());
}

#[test]
fn a_read_that_lost_what_was_known_settles_nothing() {
    let mut b = known();
    let req = b.request(open(true));
    let history = [message("m1", "user", "question"), message("m2", "assistant", "answer")];
    for (read, answered) in
        [(&history[..], false), (&[], false), (&[], false), (&history[1..], true)]
    {
        let token = b.open_call("session/messages");
        b.calls.retain(|(t, ..)| *t != token);
        b.reply(token, Ok(json!({ "messages": read })));
        assert_eq!(b.response(req).is_some(), answered, "{read:?}");
        b.pass(300);
    }
    assert_eq!(b.shown(), "answer");
}

#[test]
fn a_failed_read_is_tried_once_more_and_is_no_empty_history() {
    let mut b = known();
    let req = b.request(open(true));
    for _ in 0..2 {
        let token = b.open_call("session/messages");
        b.calls.retain(|(t, ..)| *t != token);
        b.reply(token, Err(rpc(-32603, "storage is closed")));
    }
    assert_eq!(b.response(req).unwrap().as_ref().unwrap_err().message, "storage is closed");
}

#[test]
fn a_resume_replays_nothing() {
    let mut b = known();
    let req = b.request(open(false));
    assert!(b.response(req).unwrap().is_ok());
    assert_eq!(b.count("session/messages"), 0);
}

#[test]
fn a_placeholder_that_was_never_used_opens_without_an_engine() {
    let mut b = Bench::new();
    let req = b.request(open(true));
    assert!(b.response(req).unwrap().is_ok());
    assert!(b.calls.is_empty());
}

#[test]
fn an_id_that_the_engine_does_not_list_is_not_found() {
    let mut b = known();
    b.by_hand = vec!["session/list"];
    let req = b.request(open(false));
    let token = b.open_call("session/list");
    b.reply(token, Ok(json!({"sessions": []})));
    let error = b.response(req).unwrap().as_ref().unwrap_err();
    assert_eq!(error.code.value(), -32002);
    assert_eq!(error.data.as_ref().unwrap()["sessionId"], "acp-1");
}

#[test]
fn a_new_session_that_its_dead_engine_never_stored_is_made_again() {
    let mut b = Bench::new();
    let req = b.running("t1");
    b.by_hand = vec!["session/resume"];
    b.die();
    let token = b.open_call("session/resume");
    b.reply(token, Err(rpc(-32603, "Session not found: sess_1")));
    assert_eq!(b.count("session/create"), 2);
    b.accept();
    b.start("t2");
    b.complete("t2", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
    // With a finished turn there is something to lose: it is told as lost.
    let req = b.running("t3");
    b.die();
    let token = b.open_call("session/resume");
    b.reply(token, Err(rpc(-32603, "Session not found: sess_1")));
    assert_eq!(b.response(req).unwrap().as_ref().unwrap_err().code.value(), -32002);
    assert_eq!(b.count("session/create"), 2);
}

#[test]
fn a_fork_keeps_the_servers_that_its_client_named() {
    let mut b = Bench::new();
    let req = b.running("t1");
    b.complete("t1", "success");
    assert!(b.response(req).is_some());
    let mcp = vec![json!({"name": "files", "command": "x", "args": [], "env": []})];
    b.request(Request::Fork { mcp: mcp.clone(), remark: None });
    let token = b.open_call("session/fork");
    b.reply(token, Ok(json!({"forkedSessionId": "sess_2"})));
    assert_eq!(b.forks.len(), 1);
    assert_eq!((&b.forks[0].engine_sid, &b.forks[0].mcp), (&"sess_2".to_owned(), &mcp));
}

#[test]
fn a_resume_uses_the_workspace_that_the_engine_lists_and_sends_servers_again() {
    let mut b = Bench::with(|seed| {
        seed.engine_sid = Some(SID.into());
        seed.cwd = "/elsewhere".into();
    });
    let mcp = vec![json!({"name": "files", "command": "x", "args": [], "env": []})];
    b.request(Request::Open { replay: false, mcp: mcp.clone(), remark: None, limit: None });
    let resume = b.params("session/resume");
    assert_eq!(resume["workspace"]["workspacePath"], "/w");
    assert_eq!(resume["mcpServers"], json!(mcp));
    b.prompt("hello");
    let token = b.open_call("session/send");
    b.reply(token, Err(rpc(-32004, "Session is not active: sess_1")));
    assert_eq!(b.params("session/resume")["mcpServers"], json!(mcp));
}

#[test]
fn a_lost_resume_is_sent_again_and_an_engine_that_answers_none_is_replaced_once() {
    let mut b = known();
    b.by_hand = vec!["session/resume"];
    let req = b.request(open(false));
    let resume_times_out = |b: &mut Bench, n| {
        assert_eq!(b.count("session/resume"), n);
        let token = b.open_call("session/resume");
        let after = Duration::from_secs(15);
        b.reply(token, Err(EngineError::Timeout { method: "session/resume", after }));
    };
    for n in 1..=6 {
        assert!(!b.killed, "a cold engine drops requests, a long history takes time");
        resume_times_out(&mut b, n);
    }
    assert!(b.killed && b.response(req).is_none());
    b.die();
    for n in 7..=12 {
        assert!(b.response(req).is_none());
        resume_times_out(&mut b, n);
    }
    assert!(b.response(req).unwrap().is_err());
}

#[test]
fn a_choice_made_before_the_first_prompt_goes_into_the_creation() {
    let mut b = Bench::new();
    b.request(Request::New);
    let req = b.request(Request::SetMode("plan".into()));
    assert!(b.response(req).unwrap().is_ok());
    assert!(b.calls.is_empty());
    b.prompt("hello");
    assert_eq!(b.params("session/create")["mode"], "plan");
}

#[test]
fn nothing_is_chosen_for_the_user_in_a_creation() {
    let mut b = Bench::new();
    b.prompt("hello");
    let create = b.params("session/create");
    assert_eq!(create.as_object().unwrap().keys().collect::<Vec<_>>(), ["workspace"]);
}

/// A new session whose settings ask for a model, and the engine's answer to its creation.
fn wanting(model: &str) -> Bench {
    let config = crate::config::SessionConfig {
        model: Some(model.to_owned()),
        ..crate::config::SessionConfig::default()
    };
    let mut b = Bench::with(|seed| assert_eq!(seed.settings.prefer(&config), None));
    b.by_hand = vec!["session/create"];
    let _req = b.prompt("hello");
    let mut snapshot = crate::bridge::engine::sim::installation(None);
    snapshot["session"] = json!({"sessionId": SID});
    let token = b.open_call("session/create");
    b.reply(token, Ok(snapshot));
    b
}

#[test]
fn a_model_that_only_the_engine_knows_is_set_before_the_prompt_is_sent() {
    let b = wanting("sim-flash");
    assert!(b.params("session/create").get("model").is_none(), "it was not known then");
    let order: Vec<&str> = b.calls.iter().map(|(_, method, _)| *method).collect();
    let at = |method: &str| order.iter().position(|m| *m == method).unwrap();
    assert!(at("session/setModel") < at("session/send"), "{order:?}");
    assert!(b.params("session/setModel").to_string().contains("sim-flash"));
}

#[test]
fn a_model_that_nobody_knows_is_told_and_the_turn_goes_on() {
    let b = wanting("nonesuch");
    let told = serde_json::to_string(&b.updates).unwrap();
    assert!(
        told.contains("The model asked for is not used") && told.contains("nonesuch"),
        "{told}"
    );
    assert_eq!((b.count("session/setModel"), b.count("session/send")), (0, 1));
}

/// A change to `model` asked for before there is an engine; then the engine tells what it has.
fn changed_to(model: &str) -> (Bench, ReqId) {
    let mut b = Bench::new();
    b.by_hand = vec!["session/create"];
    let value = acp::SessionConfigOptionValue::value_id(model.to_owned());
    let req = b.request(Request::SetOption { id: "model".into(), value });
    assert!(b.response(req).is_none(), "nobody knows yet");
    let mut snapshot = crate::bridge::engine::sim::installation(None);
    snapshot["session"] = json!({"sessionId": SID});
    let token = b.open_call("session/create");
    b.reply(token, Ok(snapshot));
    (b, req)
}

#[test]
fn a_model_that_the_files_do_not_have_is_judged_by_the_engine() {
    let (b, _) = changed_to("sim-flash");
    assert!(b.params("session/setModel").to_string().contains("sim-flash"));
    let (b, req) = changed_to("nonesuch");
    let refused = b.response(req).unwrap().as_ref().unwrap_err();
    assert_eq!(refused.code.value(), -32602);
    assert!(refused.message.contains("sim-flash"), "{}", refused.message);
    assert_eq!(b.count("session/setModel"), 0);
}

#[test]
fn an_unknown_option_or_value_is_refused() {
    let mut b = Bench::new();
    for (id, value) in [("no-such-option", "x"), ("mode", "no-such-mode")] {
        let value = acp::SessionConfigOptionValue::value_id(value.to_owned());
        let req = b.request(Request::SetOption { id: id.into(), value });
        assert_eq!(b.response(req).unwrap().as_ref().unwrap_err().code.value(), -32602);
    }
}

#[test]
fn a_mode_that_the_agent_enters_by_itself_is_told_once() {
    use crate::bridge::engine::event::SessionUpdated;
    let mut b = Bench::new();
    b.request(Request::New);
    b.running("t1");
    b.updates.clear();
    for _ in 0..2 {
        let updated = SessionUpdated {
            mode: Some("build".into()),
            plan_enabled: Some(true),
            ..SessionUpdated::default()
        };
        b.event("t1", SessionBody::Updated(updated));
    }
    let modes =
        b.updates.iter().filter(|u| matches!(u, acp::SessionUpdate::CurrentModeUpdate(_))).count();
    assert_eq!(modes, 1);
}

#[test]
fn a_compaction_holds_prompts_back_and_ends_with_its_turn() {
    let mut b = Bench::new();
    b.running("t0");
    b.complete("t0", "success");
    let compact = b.prompt("/compact keep the API");
    assert_eq!(b.params("session/compact")["instructions"], "keep the API");
    let token = b.open_call("session/compact");
    b.reply(token, Ok(json!({"response": "", "snapshot": {}, "compact": {"state": "accepted"}})));
    let next = b.prompt("after");
    assert_eq!(b.count("session/send"), 1);
    b.event(
        "c",
        SessionBody::TurnStarted(TurnStarted {
            input_source: Some("compact".into()),
            ..TurnStarted::default()
        }),
    );
    b.complete("c", "success");
    assert_eq!(b.stop_reason(compact).as_deref(), Some("end_turn"));
    assert_eq!(b.count("session/send"), 2);
    assert!(b.response(next).is_none());
}

#[test]
fn a_cancelled_compaction_stops_the_engine_and_lets_prompts_go_on() {
    let mut b = Bench::new();
    b.running("t0");
    b.complete("t0", "success");
    let compact = b.prompt("/compact");
    let token = b.open_call("session/compact");
    b.reply(token, Ok(json!({"response": "", "snapshot": {}, "compact": {"state": "accepted"}})));
    b.event(
        "c",
        SessionBody::TurnStarted(TurnStarted {
            input_source: Some("compact".into()),
            ..TurnStarted::default()
        }),
    );
    b.step(Input::Cancel);
    assert_eq!(b.stop_reason(compact).as_deref(), Some("cancelled"));
    assert!(b.count("v4/command") > 0);
    b.complete("c", "cancelled");
    b.prompt("after");
    assert_eq!(b.count("session/send"), 2);
}

#[test]
fn a_path_is_no_command() {
    let mut b = Bench::new();
    b.prompt("/usr/bin/env is missing");
    assert_eq!(b.params("session/send")["content"], "/usr/bin/env is missing");
}

#[test]
fn usage_is_the_difference_of_two_readings() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/usage"];
    for (n, total) in [(1_u32, 1_000_u64), (2, 2_500)] {
        let turn = format!("t{n}");
        let req = b.running(&turn);
        b.complete(&turn, "success");
        assert!(b.response(req).is_none());
        let token = b.open_call("session/usage");
        let reading =
            json!({"totalTokens": total, "inputTokens": total - 100, "outputTokens": 100});
        b.reply(token, Ok(reading));
        let want = if n == 1 { 1_000 } else { 1_500 };
        assert_eq!(b.response(req).unwrap().as_ref().unwrap()["usage"]["totalTokens"], want);
    }
    assert_eq!(b.count("session/usage"), 2);
}

#[test]
fn who_asked_for_it_is_told_at_the_end_of_each_turn_what_it_took() {
    for wanted in [false, true] {
        let mut b = Bench::with(|seed| seed.completion_status = wanted);
        let _req = b.running("t1");
        b.text("t1", "done");
        b.complete("t1", "success");
        let told = serde_json::to_string(&b.updates).unwrap();
        assert_eq!(told.contains("The turn is done"), wanted, "{told}");
    }
}

#[test]
fn a_usage_reading_that_never_comes_holds_the_answer_for_seconds_only() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/usage"];
    let req = b.running("t1");
    b.complete("t1", "success");
    b.pass(3_000);
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
}

#[test]
fn the_commands_follow_the_answer_of_a_new_session() {
    let mut b = Bench::new();
    let mut effects = Vec::new();
    b.machine.step(Now::default(), Input::Request(ReqId(1), Request::New), &mut effects);
    assert!(matches!(&effects[0], Effect::Respond { result: Ok(_), .. }));
    let commands = effects.iter().skip(1).any(|e| match e {
        Effect::Update(update) => {
            matches!(**update, acp::SessionUpdate::AvailableCommandsUpdate(_))
        }
        _ => false,
    });
    assert!(commands);
}

#[test]
fn a_failed_compaction_is_told_as_failed() {
    let mut b = Bench::new();
    b.running("t0");
    b.complete("t0", "success");
    let compact = b.prompt("/compact");
    let token = b.open_call("session/compact");
    b.reply(token, Ok(json!({"response": "", "snapshot": {}, "compact": {"state": "accepted"}})));
    let state = StateUpdated {
        session_id: Some(SID.into()),
        reason: Some("compact_failed".into()),
        ..StateUpdated::default()
    };
    b.step(Input::Engine(EngineEvent::State(Box::new(state))));
    b.pass(3_000);
    assert!(b.response(compact).unwrap().is_err());
}

#[test]
fn a_load_tells_the_todos_even_when_there_are_none() {
    let mut b = known();
    b.request(open(true));
    for _ in 0..2 {
        let token = b.open_call("session/messages");
        b.reply(token, Ok(json!({"messages": []})));
        b.pass(300);
    }
    let plans = b.updates.iter().filter(|u| matches!(u, acp::SessionUpdate::Plan(_))).count();
    assert_eq!(plans, 1);
}

#[test]
fn every_edge_case_is_held_by_a_test_that_exists() {
    fn collect(dir: &std::path::Path, into: &mut String) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, into);
            } else if path.extension().is_some_and(|e| e == "rs") {
                into.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    collect(&root.join("src"), &mut code);
    collect(&root.join("tests"), &mut code);
    let list = std::fs::read_to_string(root.join("tests/edge-cases.md")).unwrap();
    let rows: Vec<_> = list
        .lines()
        .filter(|l| l.starts_with("| ") && !l.starts_with("| #") && !l.starts_with("| -"))
        .collect();
    assert_eq!(rows.len(), 100);
    for row in rows {
        let held_by = row.rsplit('|').nth(1).unwrap();
        for name in held_by.split('`').skip(1).step_by(2).filter(|n| n.contains('_')) {
            let exists =
                code.contains(&format!("fn {name}(")) || code.contains(&format!(" {name}: \""));
            assert!(exists, "no test {name}: {row}");
        }
    }
}

#[test]
fn a_subscription_that_fails_for_a_passing_reason_is_tried_once_more() {
    let timeout =
        || EngineError::Timeout { method: "session/subscribe", after: Duration::from_secs(10) };
    for (error, resumes) in [(rpc(-32004, "Session is not active: sess_1"), 1), (timeout(), 0)] {
        for again in [false, true] {
            let mut b = Bench::new();
            b.by_hand.push("session/subscribe");
            let req = b.prompt("hello");
            let first = b.open_call("session/subscribe");
            b.close(first);
            b.reply(first, Err(error.clone()));
            assert_eq!(
                (b.count("session/subscribe"), b.count("session/resume")),
                (2, resumes),
                "{error}"
            );
            let second = b.open_call("session/subscribe");
            b.close(second);
            if again {
                b.reply(second, Err(error.clone()));
                assert!(b.response(req).unwrap().is_err(), "{error}");
                assert_eq!(b.count("session/subscribe"), 2);
                // The next prompt begins anew.
                b.prompt("again");
                assert_eq!(b.count("session/subscribe"), 3);
            } else {
                b.reply(second, Ok(json!({"eventSeq": 0})));
                assert_eq!(b.count("session/send"), 1, "{error}");
            }
        }
    }
}
