use serde_json::json;

use super::*;
use crate::bridge::engine::v4::state::{Delivery, SteerState};

fn begin(persisted: bool) -> (Guide, Step) {
    Guide::new(Limits::default(), persisted, "c0".to_owned(), 0)
}

fn accepted() -> Guide {
    let (mut guide, step) = begin(true);
    assert_eq!(step, Step::Send { command_id: "c0".to_owned() });
    assert_eq!(guide.on_reply(&Reply::Accepted { started: false, input_id: None }, 0), Step::Wait);
    guide
}

fn item(state: &str, admitted: &str, reason: Option<&str>) -> QueueItem {
    QueueItem {
        queue_item_id: Some("q1".to_owned()),
        source_command_id: Some("c0".to_owned()),
        delivery: Some(Delivery {
            requested: Some("guide".to_owned()),
            admitted: Some(admitted.to_owned()),
            fallback_reason_code: None,
        }),
        steer: Some(SteerState {
            state: Some(state.to_owned()),
            reason_code: reason.map(str::to_owned),
        }),
        ..QueueItem::default()
    }
}

fn outcome(step: Step) -> (Outcome, Option<String>) {
    let Step::Settled(verdict) = step else { panic!("{step:?}") };
    (verdict.outcome, verdict.reason_code)
}

fn fk() -> Reply {
    Reply::Refused(Refusal {
        reason_code: Some("fault.command.executionFailed".to_owned()),
        message: Some("FOREIGN KEY constraint failed".to_owned()),
        foreign_key: true,
    })
}

#[test]
fn the_commands_own_reply_is_never_the_verdict() {
    let guide = accepted();
    assert_eq!(guide.phase, Phase::Accepted);
}

#[test]
fn a_drained_event_that_names_the_command_means_injected() {
    let mut guide = accepted();
    let event = SteerDrained {
        pending_input_ids: vec!["q1".to_owned()],
        drained_inputs: Some(vec![
            json!({"pendingInputId": "q1", "intent": {"sourceCommandId": "c0"}}),
        ]),
        ..SteerDrained::default()
    };
    let Step::Settled(verdict) = guide.on_steer_drained(&event) else { panic!() };
    assert_eq!(verdict.outcome, Outcome::Injected);
    assert_eq!(verdict.pending_input_id.as_deref(), Some("q1"));
    assert_eq!(verdict.delivery.as_deref(), Some("guide"));
    assert_eq!(
        guide.on_queue(&[item("fellBack", "queue", None)]),
        Step::Wait,
        "a verdict is given once"
    );
}

#[test]
fn a_drained_event_that_names_the_entry_only_is_matched_by_the_queued_one() {
    let mut guide = accepted();
    let queued = SteerQueued {
        pending_input_id: Some("q7".to_owned()),
        delivery: Some("guide".to_owned()),
        intent: Some(json!({"sourceCommandId": "c0"})),
        ..SteerQueued::default()
    };
    assert_eq!(guide.on_steer_queued(&queued), Step::Wait);
    let other =
        SteerDrained { pending_input_ids: vec!["q8".to_owned()], ..SteerDrained::default() };
    assert_eq!(guide.on_steer_drained(&other), Step::Wait);
    let mine = SteerDrained { pending_input_ids: vec!["q7".to_owned()], ..SteerDrained::default() };
    assert_eq!(outcome(guide.on_steer_drained(&mine)), (Outcome::Injected, None));
}

#[test]
fn an_input_in_the_queue_lane_is_queued_with_the_reason() {
    let mut guide = accepted();
    let event = SteerQueued {
        intent: Some(
            json!({"sourceCommandId": "c0", "delivery": {"admitted": "queue", "fallbackReasonCode": "guide.attachmentsUnsupported"}}),
        ),
        ..SteerQueued::default()
    };
    assert_eq!(
        outcome(guide.on_steer_queued(&event)),
        (Outcome::Queued, Some("guide.attachmentsUnsupported".to_owned()))
    );
}

#[test]
fn the_v4_queue_gives_each_verdict() {
    let cases = [
        (item("submitting", "guide", None), None),
        (item("steering", "guide", None), None),
        (item("guided", "guide", None), Some((Outcome::Injected, None))),
        (
            item("fellBack", "queue", Some("guide.noToolBoundary")),
            Some((Outcome::Queued, Some("guide.noToolBoundary".to_owned()))),
        ),
        (
            item("notRequested", "queue", None),
            Some((Outcome::Queued, Some("guide.notAdmitted".to_owned()))),
        ),
    ];
    for (item, want) in cases {
        let step = accepted().on_queue(std::slice::from_ref(&item));
        assert_eq!((step != Step::Wait).then(|| outcome(step)), want, "{item:?}");
    }
    let other =
        QueueItem { source_command_id: Some("c9".to_owned()), ..item("guided", "guide", None) };
    assert_eq!(accepted().on_queue(&[other]), Step::Wait);
}

#[test]
fn a_verdict_that_overtakes_the_reply_counts() {
    let (mut guide, _) = begin(true);
    assert_eq!(
        outcome(guide.on_queue(&[item("guided", "guide", None)])),
        (Outcome::Injected, None)
    );
    assert_eq!(guide.on_reply(&Reply::Accepted { started: false, input_id: None }, 5), Step::Wait);
}

#[test]
fn a_new_session_waits_for_its_first_event_but_not_for_ever() {
    let (mut guide, step) = begin(false);
    assert_eq!((step, guide.deadline_ms()), (Step::Wait, Some(3000)));
    assert_eq!(
        guide.on_session_event(|| "c1".to_owned()),
        Step::Send { command_id: "c1".to_owned() }
    );
    let (mut guide, _) = begin(false);
    assert_eq!(guide.on_timer(2999, || "early".to_owned()), Step::Wait);
    assert_eq!(
        guide.on_timer(3000, || "c1".to_owned()),
        Step::Send { command_id: "c1".to_owned() }
    );
}

#[test]
fn a_missing_row_is_tried_again_under_new_ids_until_the_budget_is_spent() {
    let (mut guide, _) = begin(true);
    let mut now = 0;
    let mut pauses = Vec::new();
    for round in 1..=4 {
        assert_eq!(guide.on_reply(&fk(), now), Step::Wait);
        let due = guide.deadline_ms().unwrap();
        pauses.push(due - now);
        now = due;
        let id = format!("c{round}");
        assert_eq!(guide.on_timer(now, || id.clone()), Step::Send { command_id: id });
    }
    assert_eq!(pauses, [100, 200, 400, 800]);
    let Step::Settled(verdict) = guide.on_reply(&fk(), now) else { panic!() };
    assert_eq!(verdict.outcome, Outcome::Failed);
    assert_eq!(verdict.reason_code.as_deref(), Some("fault.command.executionFailed"));
    assert!(verdict.message.unwrap().contains("FOREIGN KEY"));
    let narrow = Limits { fk_retry_ms: 250, ..Limits::default() };
    let (mut guide, _) = Guide::new(narrow, true, "c0".to_owned(), 0);
    assert_eq!(guide.on_reply(&fk(), 0), Step::Wait);
    guide.on_timer(100, || "c1".to_owned());
    assert_eq!(outcome(guide.on_reply(&fk(), 100)).0, Outcome::Failed);
}

#[test]
fn another_refusal_fails_at_once() {
    let (mut guide, _) = begin(true);
    let refused =
        Reply::Refused(Refusal { reason_code: Some("guard.x".to_owned()), ..Refusal::default() });
    assert_eq!(outcome(guide.on_reply(&refused, 0)), (Outcome::Failed, Some("guard.x".to_owned())));
}

#[test]
fn a_turn_that_ends_first_leaves_the_text_with_us_or_in_the_queue() {
    let (mut waiting, _) = begin(false);
    assert_eq!(
        outcome(waiting.on_turn_ended(0)),
        (Outcome::PromptRequired, Some("noRunningTurn".to_owned()))
    );
    let mut guide = accepted();
    assert_eq!(guide.on_turn_ended(10), Step::Wait, "the queue may still say why");
    let due = guide.deadline_ms().unwrap();
    assert!(due < 1_000);
    assert_eq!(
        outcome(guide.on_timer(due, String::new)),
        (Outcome::Queued, Some("guide.noToolBoundary".to_owned()))
    );
    let (mut sent, _) = begin(true);
    assert_eq!(sent.on_turn_ended(0), Step::Wait, "its reply decides");
    assert_eq!(
        outcome(sent.on_reply(&Reply::Accepted { started: true, input_id: None }, 0)).0,
        Outcome::StartedNewTurn
    );
}

#[test]
fn a_cancel_takes_back_what_was_not_sent() {
    let (mut waiting, _) = begin(false);
    assert_eq!(
        outcome(waiting.on_cancel()),
        (Outcome::Failed, Some("guide.turnInterrupted".to_owned()))
    );
    assert_eq!(accepted().on_cancel(), Step::Wait);
}

#[test]
fn a_guide_without_a_verdict_ends_as_queued() {
    let mut guide = accepted();
    let due = guide.deadline_ms().unwrap();
    assert_eq!(
        outcome(guide.on_timer(due, String::new)),
        (Outcome::Queued, Some("guide.noVerdict".to_owned()))
    );
}
