//! Cancelling, at every point of a prompt's life.

use super::*;

#[test]
fn a_cancel_stops_by_v4_and_ends_with_the_turn() {
    let mut b = Bench::new();
    let req = b.running("t1");
    b.text("t1", "some");
    b.step(Input::Cancel);
    assert_eq!(b.params("v4/command")["type"], "stop");
    assert_eq!(b.count("session/stop"), 0);
    assert!(b.response(req).is_none());
    b.complete("t1", "cancelled");
    assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
}

#[test]
fn an_engine_without_v4_gets_the_older_stop() {
    let mut b = Bench::new();
    b.by_hand = vec!["v4/command"];
    b.running("t1");
    b.step(Input::Cancel);
    let token = b.open_call("v4/command");
    b.reply(token, Err(rpc(-32601, "Method not found")));
    assert_eq!(b.count("session/stop"), 1);
}

#[test]
fn a_slow_v4_stop_is_overtaken() {
    let mut b = Bench::new();
    b.by_hand = vec!["v4/command"];
    b.running("t1");
    b.step(Input::Cancel);
    b.pass(800);
    assert_eq!(b.count("session/stop"), 1);
}

#[test]
fn a_turn_that_ignores_stops_is_answered_soon_and_ended_the_hard_way() {
    let mut b = Bench::new();
    let req = b.running("t1");
    b.step(Input::Cancel);
    b.pass(2_500);
    assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
    let next = b.prompt("next");
    assert_eq!(b.count("session/send"), 1);
    b.pass(3_600);
    assert_eq!(b.count("session/close"), 1);
    assert_eq!(b.count("session/resume"), 1);
    assert_eq!(b.count("session/send"), 2);
    b.accept();
    b.start("t2");
    b.text("t1", "straggler");
    b.text("t2", "mine");
    b.complete("t2", "success");
    assert_eq!(b.shown(), "mine");
    assert_eq!(b.stop_reason(next).as_deref(), Some("end_turn"));
}

#[test]
fn nothing_is_shown_of_a_turn_after_its_answer() {
    let mut b = Bench::new();
    let req = b.running("t1");
    b.step(Input::Cancel);
    b.pass(2_500);
    assert!(b.response(req).is_some());
    b.text("t1", "late");
    b.complete("t1", "cancelled");
    b.text("t1", "later");
    assert_eq!(b.shown(), "");
}

#[test]
fn a_cancel_before_the_send_is_accepted_stops_the_turn_when_it_starts() {
    let mut b = Bench::new();
    let req = b.prompt("hello");
    b.step(Input::Cancel);
    assert_eq!(b.count("v4/command"), 0);
    b.accept();
    assert_eq!(b.count("v4/command"), 1);
    b.start("t1");
    assert_eq!(b.count("v4/command"), 2);
    b.complete("t1", "cancelled");
    assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
}

#[test]
fn a_cancel_while_opening_busy_or_waiting_answers_at_once() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/create"];
    let req = b.prompt("hello");
    b.step(Input::Cancel);
    assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
    let token = b.open_call("session/create");
    b.reply(token, Ok(json!({"session": {"sessionId": SID}})));
    assert_eq!(b.count("session/send"), 0);

    let req = b.prompt("again");
    let token = b.open_call("session/send");
    b.reply(token, Err(rpc(1308, "prompt is running")));
    b.step(Input::Cancel);
    assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
    b.pass(60_000);
    assert_eq!(b.count("session/send"), 1);
}

#[test]
fn a_cancel_ends_every_queued_prompt_and_a_second_one_changes_nothing() {
    let mut b = Bench::new();
    let running = b.running("t1");
    let queued = [b.prompt("two"), b.prompt("three")];
    b.step(Input::Cancel);
    b.step(Input::Cancel);
    for req in queued {
        assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
    }
    b.complete("t1", "cancelled");
    assert_eq!(b.stop_reason(running).as_deref(), Some("cancelled"));
    assert_eq!(b.count("v4/command"), 1);
}

#[test]
fn an_idle_cancel_does_not_poison_the_next_prompt() {
    let mut b = Bench::new();
    b.running("t0");
    b.complete("t0", "success");
    b.step(Input::Cancel);
    let req = b.running("t1");
    b.complete("t1", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
}

#[test]
fn a_cancelled_turn_whose_engine_dies_is_cancelled_and_not_sent_again() {
    let mut b = Bench::new();
    let req = b.running("t1");
    b.step(Input::Cancel);
    b.die();
    assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
    assert_eq!(b.count("session/send"), 1);
}

#[test]
fn cancelling_one_request_leaves_the_others() {
    let mut b = Bench::new();
    let first = b.running("t1");
    let second = b.prompt("two");
    let third = b.prompt("three");
    b.step(Input::CancelRequest(second));
    assert_eq!(b.stop_reason(second).as_deref(), Some("cancelled"));
    b.step(Input::CancelRequest(first));
    b.complete("t1", "cancelled");
    assert_eq!(b.stop_reason(first).as_deref(), Some("cancelled"));
    assert_eq!(b.count("session/send"), 2);
    assert!(b.response(third).is_none());
}

/// A cancelled turn whose stops and close nobody answers.
fn unheard() -> (Bench, ReqId) {
    let mut b = Bench::new();
    b.by_hand = vec!["v4/command", "session/stop", "session/close"];
    let req = b.running("t1");
    b.step(Input::Cancel);
    b.pass(10_000);
    assert_eq!((b.count("session/stop"), b.count("session/close")), (1, 1));
    (b, req)
}

fn late(method: &'static str) -> EngineError {
    EngineError::Timeout { method, after: std::time::Duration::from_secs(10) }
}

#[test]
fn an_engine_that_hears_neither_stop_nor_close_is_ended() {
    let (mut b, req) = unheard();
    assert!(!b.killed);
    let stop = b.open_call("session/stop");
    b.reply(stop, Err(late("session/stop")));
    assert!(b.killed);
    assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
}

#[test]
fn an_engine_that_shows_any_sign_of_life_after_a_cancel_is_not_ended() {
    let (mut b, _) = unheard();
    b.text("t1", "still here");
    let stop = b.open_call("session/stop");
    b.reply(stop, Err(late("session/stop")));
    assert!(!b.killed);
    let (mut b, _) = unheard();
    let stop = b.open_call("v4/command");
    b.reply(stop, Ok(json!({"status": "accepted"})));
    let stop = b.open_call("session/stop");
    b.reply(stop, Err(late("session/stop")));
    assert!(!b.killed);
}

#[test]
fn a_send_without_an_answer_is_told_stopped_and_ends_an_engine_that_hears_nothing() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/stop"];
    let req = b.prompt("hello");
    let sent = b.input_id();
    let token = b.open_call("session/send");
    b.reply(token, Err(late("session/send")));
    assert!(b.response(req).unwrap().is_err());
    assert_eq!(b.count("session/stop"), 1);
    // Should it have taken it, nothing of it is shown.
    let started = TurnStarted { input_id: Some(sent), ..TurnStarted::default() };
    b.event("t1", SessionBody::TurnStarted(started));
    b.text("t1", "late");
    assert_eq!(b.shown(), "");
    let stop = b.open_call("session/stop");
    b.reply(stop, Err(late("session/stop")));
    assert!(b.killed);
}
