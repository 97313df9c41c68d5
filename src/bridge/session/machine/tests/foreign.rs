//! The end of a turn that the engine runs for itself, when it does not come: what waits behind it goes on in bounded time.

use super::*;
use crate::bridge::engine::event::SteerQueued;

fn own_turn(b: &mut Bench, turn: &str) {
    let source = Some("background_task".into());
    let started = TurnStarted { input_source: source, ..TurnStarted::default() };
    b.event(turn, SessionBody::TurnStarted(started));
}

/// A prompt that the engine put into its queue behind a turn of its own.
fn waits_behind_a_foreign_turn(b: &mut Bench) -> ReqId {
    b.running("t0");
    b.complete("t0", "success");
    own_turn(b, "bg");
    let req = b.prompt("hello");
    b.accept();
    let input_id = Some(b.input_id());
    let queued =
        SteerQueued { pending_input_id: Some("q1".into()), input_id, ..SteerQueued::default() };
    b.event("bg", SessionBody::SteerQueued(queued));
    req
}

fn idle() -> Value {
    json!({"projection": {"status": "idle"}})
}

fn answer(b: &mut Bench, method: &str, reply: Result<Value, EngineError>) {
    let token = b.open_call(method);
    b.calls.iter_mut().filter(|it| it.0 == token).for_each(|it| it.0 = 0);
    b.reply(token, reply);
}

#[test]
fn a_foreign_turn_that_lost_its_end_is_over_after_two_idle_readings_and_the_prompt_is_sent_again() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/read"];
    let req = waits_behind_a_foreign_turn(&mut b);
    b.pass(15_000);
    answer(&mut b, "session/events", Ok(json!({"events": []})));
    while b.calls.iter().any(|(token, method, _)| *token != 0 && *method == "session/read") {
        answer(&mut b, "session/read", Ok(idle()));
    }
    assert_eq!(b.count("session/send"), 2, "one reading proves nothing");
    b.pass(1_500);
    while b.calls.iter().any(|(token, method, _)| *token != 0 && *method == "session/read") {
        answer(&mut b, "session/read", Ok(idle()));
    }
    assert!(b.response(req).is_none(), "it has not run yet");
    b.pass(700);
    assert_eq!(b.count("session/send"), 3, "the engine dropped it");
    b.accept();
    b.start("t1");
    b.complete("t1", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
}

#[test]
fn a_foreign_turn_that_shows_an_event_or_runs_is_not_given_up() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/read"];
    b.running("t0");
    b.complete("t0", "success");
    own_turn(&mut b, "bg");
    b.pass(15_000);
    answer(&mut b, "session/read", Ok(idle()));
    b.now += 1;
    b.text("bg", "still here");
    b.pass(1_600);
    assert_eq!(b.count("session/read"), 1, "the event speaks for itself");
    // A reading that says it runs changes nothing either, however often.
    for _ in 0..3 {
        b.pass(61_000);
        answer(&mut b, "session/read", Ok(json!({"projection": {"status": "running"}})));
        b.pass(1_600);
    }
    b.text("bg", " and done");
    b.complete("bg", "success");
    assert_eq!(b.shown(), "still here and done");
    // Over: nothing is looked at any more.
    let reads = b.count("session/read");
    b.pass(600_000);
    assert_eq!(b.count("session/read"), reads);
}

#[test]
fn an_ended_header_of_a_foreign_turn_whose_event_was_lost_ends_it_at_once() {
    let mut b = Bench::v4();
    b.running_v4();
    b.complete("t1", "success");
    own_turn(&mut b, "bg");
    let header = |state: &str| json!({"op": "row.upserted", "row": {"rowId": 1, "turnId": "bg", "kind": "turnHeader", "state": state}});
    b.ops(SID, 0, &[header("running")]);
    b.ops(SID, 1, &[header("completedSuccess")]);
    assert!(b.machine.stream.foreign_runs());
    b.pass(1_000);
    answer(&mut b, "session/events", Ok(json!({"events": []})));
    assert!(!b.machine.stream.foreign_runs());
    assert!(b.now < 5_000, "{}", b.now);
}

#[test]
fn a_session_that_the_engine_dropped_behind_a_foreign_turn_leaves_no_prompt_without_an_answer() {
    let mut b = Bench::v4();
    b.by_hand.push("session/read");
    let second = queued_behind_an_ended_turn(&mut b);
    let started = TurnStarted { input_id: Some("q1".into()), ..TurnStarted::default() };
    b.event("t2", SessionBody::TurnStarted(started));
    b.pass(15_000);
    answer(&mut b, "session/read", Err(rpc(-32004, "Session is not active: sess_1")));
    assert!(b.response(second).is_some(), "its turn is gone");
}

#[test]
fn an_engine_that_hangs_in_a_turn_of_its_own_is_ended() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/read"];
    b.running("t0");
    b.complete("t0", "success");
    own_turn(&mut b, "bg");
    for _ in 0..4 {
        assert!(!b.killed);
        b.pass(61_000);
        let late = EngineError::Timeout {
            method: "session/read",
            after: std::time::Duration::from_secs(5),
        };
        answer(&mut b, "session/read", Err(late));
    }
    assert!(b.killed);
}
