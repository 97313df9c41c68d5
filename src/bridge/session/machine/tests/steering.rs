//! Prompts in the engine's queue that are never run, and changes of that queue.

use serde_json::{Value, json};

use super::*;

fn queue_state(b: &mut Bench, from: u64, items: &Value, auto_drain: bool) {
    let patch = json!({"queue": {"items": items, "autoDrain": auto_drain}});
    b.ops(SID, from, &[json!({"op": "state.updated", "patch": patch})]);
}

fn answer_command(b: &mut Bench, answer: Value) {
    let token = b.open_call("v4/command");
    b.close(token);
    b.reply(token, Ok(answer));
}

#[test]
fn a_queued_prompt_that_an_idle_engine_does_not_run_is_taken_back_and_run_from_here() {
    let mut b = Bench::v4();
    let second = queued_behind_an_ended_turn(&mut b);
    b.pass(4_900);
    assert_eq!(b.count("v4/command"), 1, "the engine may still run it");
    b.pass(200);
    let command = b.params("v4/command");
    assert_eq!(
        (&command["type"], &command["payload"]),
        (&json!("deleteQueueItem"), &json!({"queueItemId": "q1"}))
    );
    assert_eq!(b.count("session/send"), 1, "not before it is out of the queue");
    b.accept_command();
    assert_eq!(b.params("session/send")["content"], "also this");
    b.accept();
    b.start("t2");
    b.complete("t2", "success");
    assert_eq!(b.stop_reason(second).as_deref(), Some("end_turn"));
}

#[test]
fn a_prompt_in_a_paused_queue_is_answered_with_that_and_stays_there() {
    let mut b = Bench::v4();
    let second = queued_behind_an_ended_turn(&mut b);
    queue_state(&mut b, 0, &json!([{"queueItemId": "q1", "text": "also this"}]), false);
    b.pass(5_100);
    let answer = b.response(second).unwrap().as_ref().unwrap();
    let receipt = &answer["_meta"]["steering"];
    assert_eq!(
        (&receipt["outcome"], &receipt["reason"]),
        (&json!("queued"), &json!("queue.paused"))
    );
    assert_eq!((b.count("v4/command"), b.count("session/send")), (1, 1));
    b.pass(60_000);
    assert_eq!(b.count("v4/command"), 1, "it is the user's");
}

#[test]
fn a_turn_of_the_engines_own_is_no_idleness() {
    let mut b = Bench::v4();
    let second = queued_behind_an_ended_turn(&mut b);
    let notified =
        TurnStarted { input_source: Some("background_task".into()), ..TurnStarted::default() };
    b.event("n1", SessionBody::TurnStarted(notified));
    b.pass(60_000);
    assert!(b.response(second).is_none() && b.count("v4/command") == 1);
    b.complete("n1", "success");
    b.pass(4_000);
    let started = TurnStarted { input_id: Some("q1".into()), ..TurnStarted::default() };
    b.event("t2", SessionBody::TurnStarted(started));
    b.pass(60_000);
    b.complete("t2", "success");
    assert_eq!(b.stop_reason(second).as_deref(), Some("end_turn"));
    assert_eq!(b.count("v4/command"), 1);
}

#[test]
fn a_prompt_that_begins_while_it_is_taken_out_is_not_run_twice() {
    let mut b = Bench::v4();
    let second = queued_behind_an_ended_turn(&mut b);
    b.pass(5_100);
    let started = TurnStarted { input_id: Some("q1".into()), ..TurnStarted::default() };
    b.event("t2", SessionBody::TurnStarted(started));
    b.accept_command();
    assert_eq!(b.count("session/send"), 1);
    b.complete("t2", "success");
    assert_eq!(b.stop_reason(second).as_deref(), Some("end_turn"));
}

#[test]
fn a_prompt_that_cannot_be_taken_out_ends_with_an_error_that_says_what_to_do() {
    let mut b = Bench::v4();
    let second = queued_behind_an_ended_turn(&mut b);
    b.pass(5_100);
    answer_command(&mut b, json!({"status": "rejected", "reasonCode": "guard.unknownItem"}));
    let error = b.response(second).unwrap().as_ref().unwrap_err();
    assert!(error.message.contains("look at the queue"), "{error:?}");
}

#[test]
fn a_change_that_was_decided_on_an_old_state_is_decided_again_on_the_new_one() {
    let mut b = Bench::v4();
    b.running_v4();
    let edit = b.request(Request::Extension {
        name: "queue/edit",
        params: json!({"itemId": "q1", "text": "new"}),
    });
    let first = b.params("v4/command")["commandId"].clone();
    let stale = json!({"status": "rejected", "reasonCode": "guard.revisionMismatch", "revisionAtDecision": 9});
    answer_command(&mut b, stale);
    let again = b.params("v4/command");
    assert_eq!((&again["type"], &again["baseRevision"]), (&json!("editQueueItem"), &json!(9)));
    assert_ne!(again["commandId"], first);
    assert!(b.response(edit).is_none());
    b.accept_command();
    assert!(b.response(edit).unwrap().is_ok());
}

#[test]
fn a_change_that_stays_refused_is_told_with_its_reason() {
    let mut b = Bench::v4();
    b.running_v4();
    let edit =
        b.request(Request::Extension { name: "queue/send_now", params: json!({"itemId": "q1"}) });
    for _ in 0..3 {
        let stale = json!({"status": "rejected", "reasonCode": "guard.revisionMismatch", "revisionAtDecision": 9});
        answer_command(&mut b, stale);
    }
    let error = b.response(edit).unwrap().as_ref().unwrap_err();
    assert_eq!(error.data.as_ref().unwrap()["reason"], "guard.revisionMismatch");
    assert_eq!(b.count("v4/command"), 3);
}

#[test]
fn automatic_draining_is_told_even_by_an_engine_that_says_nothing_of_it() {
    let mut b = Bench::v4();
    b.running_v4();
    let off = b.request(Request::Extension {
        name: "queue/auto_drain",
        params: json!({"enabled": false}),
    });
    b.accept_command();
    assert!(b.response(off).unwrap().is_ok());
    let told = serde_json::to_value(b.updates.last().unwrap()).unwrap();
    assert_eq!(told["_meta"]["zcode"]["queue"]["autoDrain"], false, "{told}");
}
