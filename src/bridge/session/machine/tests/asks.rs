//! Questions of the engine's: one dialog, one outcome, closed in doubt.

use super::*;
use crate::approvals;

#[test]
fn the_chosen_options_own_response_goes_back() {
    let mut b = Bench::new();
    b.running("t1");
    b.permission("server-1", "r1");
    assert_eq!(b.asks.len(), 1);
    let token = b.asks[0];
    b.choose(token, "yes");
    assert_eq!(b.answers, [(json!("server-1"), json!({"decision": "allow", "reason": "once"}))]);
}

#[test]
fn announcements_of_one_request_make_one_dialog_and_all_ids_are_answered() {
    let mut b = Bench::new();
    b.running("t1");
    for id in ["server-1", "server-2", "server-3"] {
        b.permission(id, "r1");
    }
    assert_eq!(b.asks.len(), 1);
    let token = b.asks[0];
    b.choose(token, "no");
    let ids: Vec<_> = b.answers.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(ids, [json!("server-1"), json!("server-2"), json!("server-3")]);
    b.permission("server-4", "r1");
    assert_eq!(b.answers.len(), 4);
    assert_eq!(b.answers[3].1["decision"], "deny");
    assert_eq!(b.asks.len(), 1);
}

#[test]
fn a_cancel_denies_what_is_open_and_takes_the_dialog_back() {
    let mut b = Bench::new();
    b.running("t1");
    b.permission("server-1", "r1");
    b.step(Input::Cancel);
    assert_eq!(b.answers[0].1["decision"], "deny");
    assert_eq!(b.cancelled_asks, b.asks);
    let token = b.asks[0];
    b.choose(token, "yes");
    assert_eq!(b.answers.len(), 1);
}

#[test]
fn a_request_of_a_turn_that_is_being_stopped_is_denied_unasked() {
    let mut b = Bench::new();
    b.running("t1");
    b.step(Input::Cancel);
    b.permission("server-1", "r1");
    assert!(b.asks.is_empty());
    assert_eq!(b.answers[0].1["decision"], "deny");
}

#[test]
fn a_client_that_fails_or_answers_nonsense_denies() {
    for bad in [None, Some("no-such-option")] {
        let mut b = Bench::new();
        b.running("t1");
        b.permission("server-1", "r1");
        let token = b.asks[0];
        match bad {
            None => b.step(Input::Answer(token, Err(AcpError::internal_error()))),
            Some(option) => b.choose(token, option),
        }
        assert_eq!(b.answers[0].1["decision"], "deny");
    }
}

#[test]
fn a_deadline_denies() {
    let mut b = Bench::with(|seed| seed.ask_timeout = Some(Duration::from_mins(1)));
    b.running("t1");
    b.permission("server-1", "r1");
    b.pass(60_000);
    assert_eq!(b.answers[0].1["decision"], "deny");
    assert_eq!(b.cancelled_asks.len(), 1);
}

#[test]
fn an_answer_from_elsewhere_closes_the_dialog() {
    use crate::bridge::engine::event::InteractionMirror;
    let mut b = Bench::new();
    b.running("t1");
    b.permission("server-1", "r1");
    let mirror = InteractionMirror {
        resolved: true,
        request_id: Some("r1".into()),
        ..InteractionMirror::default()
    };
    b.event("t1", SessionBody::Interaction(mirror));
    assert_eq!(b.cancelled_asks.len(), 1);
    assert!(b.answers.iter().all(|(_, r)| r["decision"] == "deny"));
}

#[test]
fn an_outside_verdict_needs_no_dialog() {
    let mut b = Bench::with(|seed| seed.external_approvals = true);
    b.running("t1");
    b.permission("server-1", "r1");
    assert!(b.asks.is_empty());
    let token = b.machine.next - 1;
    b.step(Input::External(token, Some(approvals::Verdict::Allow)));
    assert_eq!(b.answers[0].1, json!({"decision": "allow"}));
}

#[test]
fn an_outside_no_tells_the_model_why_and_the_client_that_it_was_said() {
    let mut b = Bench::with(|seed| seed.external_approvals = true);
    b.running("t1");
    b.permission("server-1", "r1");
    let token = b.machine.next - 1;
    b.step(Input::External(token, Some(approvals::Verdict::Deny("use make clean".into()))));
    assert_eq!(b.answers[0].1, json!({"decision": "deny", "reason": "use make clean"}));
    let told = serde_json::to_value(&b.updates).unwrap().to_string();
    assert!(
        told.contains(r#""permission":{"decision":"deny","reason":"use make clean"}"#),
        "{told}"
    );
}

#[test]
fn a_dead_engines_dialogs_are_taken_back() {
    let mut b = Bench::new();
    b.running("t1");
    b.permission("server-1", "r1");
    b.die();
    assert_eq!(b.cancelled_asks.len(), 1);
    assert!(b.answers.is_empty());
}

#[test]
fn unknown_requests_are_refused_and_never_left_open() {
    let mut b = Bench::new();
    let request = EngineRequest {
        id: json!("server-9"),
        method: "automation/run".into(),
        session_id: Some(SID.into()),
        request_id: None,
        params: json!({}),
    };
    let mut effects = Vec::new();
    b.machine.step(
        Now::default(),
        Input::Engine(EngineEvent::Request(Box::new(request))),
        &mut effects,
    );
    assert!(matches!(&effects[..], [Effect::Refuse { code: -32601, .. }]));
}

#[test]
fn a_plan_whose_form_cannot_be_shown_is_asked_with_buttons() {
    let mut b = Bench::with(|seed| {
        seed.traits.elicitation_form = true;
        seed.traits.plan_form = true;
    });
    b.running("t1");
    let request = EngineRequest {
        id: json!("server-1"),
        method: "interaction/requestUserInput".into(),
        session_id: Some(SID.into()),
        request_id: Some("r1".into()),
        params: json!({"requestId": "r1", "sessionId": SID, "toolName": "ExitPlanMode",
            "schema": {"interaction": "plan_approval"}, "input": {"plan": "# Plan"}}),
    };
    b.step(Input::Engine(EngineEvent::Request(Box::new(request))));
    let form = b.asks[0];
    b.step(Input::Answer(form, Err(AcpError::method_not_found())));
    assert_eq!(b.asks.len(), 2);
    let buttons = b.asks[1];
    b.choose(buttons, "approve");
    assert_eq!(
        b.answers,
        [(json!("server-1"), json!({"action": "accept", "content": {"answer_0": "approve"}}))]
    );
}
