//! What the user cancelled while the engine had it, or might have it, never runs later: every order of the command's reply,
//! the queue, the events and the turn's end.

use serde_json::{Value, json};

use super::*;
use crate::bridge::engine::event::{SteerDrained, SteerQueued};

/// One thing that the engine does after the cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    /// The guide's command is accepted.
    Reply,
    /// `turn.steerQueued`
    Queued,
    /// The V4 queue shows the entry.
    Shows,
    /// The cancelled turn ends.
    Ends,
}

const ALL: [Did; 4] = [Did::Reply, Did::Queued, Did::Shows, Did::Ends];

/// Every order of them.
fn orders() -> Vec<Vec<Did>> {
    let mut all = vec![Vec::new()];
    for _ in 0..ALL.len() {
        all = all
            .into_iter()
            .flat_map(|order: Vec<Did>| {
                let rest: Vec<Did> = ALL.into_iter().filter(|it| !order.contains(it)).collect();
                rest.into_iter().map(move |it| [order.clone(), vec![it]].concat())
            })
            .collect();
    }
    all
}

/// The commands of a type, with whether they are answered.
fn sent(b: &Bench, kind: &str) -> Vec<Value> {
    let all = b.calls.iter().filter(|(_, method, _)| *method == "v4/command");
    all.map(|(_, _, params)| params.clone()).filter(|it| it["type"] == kind).collect()
}

struct Case {
    b: Bench,
    first: ReqId,
    second: ReqId,
    guide: Token,
    command: String,
}

/// A second prompt whose command is not answered yet, at the cancel.
fn cancelled_in_flight() -> Case {
    let mut b = Bench::v4();
    let first = b.running_v4();
    let second = b.prompt("never said");
    let guide = b.open_call("v4/command");
    let command = b.params("v4/command")["commandId"].as_str().unwrap().to_owned();
    b.step(Input::Cancel);
    Case { b, first, second, guide, command }
}

impl Case {
    fn does(&mut self, did: Did) {
        let b = &mut self.b;
        match did {
            Did::Reply => {
                b.close(self.guide);
                let answer = json!({"status": "accepted", "result": {"delivery": "queue"}});
                b.reply(self.guide, Ok(answer));
            }
            Did::Queued => {
                let queued = SteerQueued {
                    pending_input_id: Some("q1".into()),
                    delivery: Some("guide".into()),
                    intent: Some(json!({"sourceCommandId": self.command})),
                    ..SteerQueued::default()
                };
                b.event("t1", SessionBody::SteerQueued(queued));
            }
            Did::Shows => {
                let item = json!({"queueItemId": "q1", "sourceCommandId": self.command, "text": "never said",
                    "steer": {"state": "fellBack", "reasonCode": "guide.turnInterrupted"}});
                let patch = json!({"queue": {"items": [item], "autoDrain": true}});
                b.ops(SID, 0, &[json!({"op": "state.updated", "patch": patch})]);
            }
            Did::Ends => b.complete("t1", "cancelled"),
        }
    }
}

#[test]
fn in_every_order_a_cancelled_prompt_is_taken_out_of_the_queue_once_and_answered_once() {
    for order in orders() {
        let mut case = cancelled_in_flight();
        for did in &order {
            case.does(*did);
        }
        case.b.pass(1_000);
        let deleted = sent(&case.b, "deleteQueueItem");
        assert_eq!(deleted.len(), 1, "{order:?}: {deleted:?}");
        assert_eq!(deleted[0]["payload"]["queueItemId"], "q1", "{order:?}");
        for req in [case.first, case.second] {
            assert_eq!(case.b.stop_reason(req).as_deref(), Some("cancelled"), "{order:?}");
        }
        assert_eq!(case.b.count("session/send"), 1, "{order:?}");
    }
}

#[test]
fn in_every_order_a_turn_that_starts_all_the_same_is_not_shown_and_is_stopped() {
    for order in orders() {
        for named in [true, false] {
            let mut case = cancelled_in_flight();
            for did in &order {
                case.does(*did);
            }
            let b = &mut case.b;
            let next = b.prompt("the next");
            let before = sent(b, "stop").len();
            let started = TurnStarted {
                input_id: named.then(|| "q1".into()),
                input: Some(json!("never said")),
                foreground_execution_id: Some("x2".into()),
                ..TurnStarted::default()
            };
            b.event("t2", SessionBody::TurnStarted(started));
            b.text("t2", "never said");
            assert_eq!(b.shown(), "", "{order:?}, named: {named}");
            let stops = sent(b, "stop");
            assert_eq!(stops.len(), before + 1, "{order:?}, named: {named}");
            assert_eq!(stops[before]["payload"]["expectedForegroundExecutionId"], "x2");
            b.complete("t2", "cancelled");
            b.accept();
            b.start("t3");
            b.text("t3", "mine");
            b.complete("t3", "success");
            assert_eq!(b.shown(), "mine", "{order:?}, named: {named}");
            assert_eq!(b.stop_reason(next).as_deref(), Some("end_turn"), "{order:?}");
        }
    }
}

#[test]
fn a_prompt_that_was_merged_before_the_stop_ends_with_its_turn_and_leaves_no_trace() {
    let mut case = cancelled_in_flight();
    case.does(Did::Reply);
    let command = case.command.clone();
    case.b.drained(&command);
    case.does(Did::Ends);
    assert_eq!(case.b.stop_reason(case.second).as_deref(), Some("cancelled"));
    assert_eq!(sent(&case.b, "deleteQueueItem").len(), 0);
    // The same words again are words of their own.
    let b = &mut case.b;
    let again = b.prompt("never said");
    b.accept();
    b.start("t2");
    b.text("t2", "said");
    b.complete("t2", "success");
    assert_eq!((b.shown().as_str(), b.stop_reason(again).as_deref()), ("said", Some("end_turn")));
}

#[test]
fn a_prompt_that_left_the_queue_to_become_a_turn_is_stopped_even_without_a_name() {
    let mut case = cancelled_in_flight();
    for did in [Did::Reply, Did::Queued, Did::Ends] {
        case.does(did);
    }
    let drained = SteerDrained {
        pending_input_ids: vec!["q1".into()],
        drained_inputs: Some(vec![json!({"pendingInputId": "q1", "delivery": "queue"})]),
        ..SteerDrained::default()
    };
    let b = &mut case.b;
    b.event("t2", SessionBody::SteerDrained(drained));
    let before = sent(b, "stop").len();
    b.event("t2", SessionBody::TurnStarted(TurnStarted::default()));
    b.text("t2", "never said");
    assert_eq!((b.shown().as_str(), sent(b, "stop").len()), ("", before + 1));
}

#[test]
fn the_same_words_sent_again_after_a_cancel_are_not_stopped() {
    let mut case = cancelled_in_flight();
    for did in ALL {
        case.does(did);
    }
    let b = &mut case.b;
    let again = b.prompt("never said");
    b.accept();
    b.start("t2");
    b.text("t2", "said now");
    b.complete("t2", "success");
    assert_eq!(
        (b.shown().as_str(), b.stop_reason(again).as_deref()),
        ("said now", Some("end_turn"))
    );
}

#[test]
fn a_deletion_that_was_decided_on_an_old_state_is_decided_again() {
    let mut case = cancelled_in_flight();
    case.does(Did::Queued);
    let b = &mut case.b;
    let token = b.open_call("v4/command");
    b.close(token);
    b.reply(
        token,
        Ok(json!({"status": "rejected", "reasonCode": "guard.revisionMismatch", "revisionAtDecision": 9})),
    );
    let deleted = sent(b, "deleteQueueItem");
    assert_eq!((deleted.len(), &deleted[1]["baseRevision"]), (2, &json!(9)));
}

#[test]
fn a_cancelled_prompt_whose_command_is_never_answered_does_not_outlast_the_turns_answer() {
    let mut case = cancelled_in_flight();
    case.b.pass(2_600);
    for req in [case.first, case.second] {
        assert_eq!(case.b.stop_reason(req).as_deref(), Some("cancelled"));
    }
    // What is learnt later is acted on all the same.
    case.does(Did::Shows);
    assert_eq!(sent(&case.b, "deleteQueueItem").len(), 1);
}

#[test]
fn cancelling_the_request_of_a_guided_prompt_alone_takes_it_back_and_leaves_the_turn() {
    let mut b = Bench::v4();
    let first = b.running_v4();
    let second = b.prompt("never said");
    let guide = b.open_call("v4/command");
    let command = b.params("v4/command")["commandId"].as_str().unwrap().to_owned();
    b.step(Input::CancelRequest(second));
    assert_eq!(b.stop_reason(second).as_deref(), Some("cancelled"));
    let mut case = Case { b, first, second, guide, command };
    for did in [Did::Reply, Did::Queued] {
        case.does(did);
    }
    assert_eq!(sent(&case.b, "deleteQueueItem").len(), 1);
    case.b.complete("t1", "success");
    assert_eq!(case.b.stop_reason(first).as_deref(), Some("end_turn"));
}
