//! The V4 channel in the machine: rows that lead, gaps, engines without it, guides and their verdicts, children, the queue.

use serde_json::{Value, json};

use super::*;
use crate::bridge::engine::event::SteerDrained;

impl Bench {
    /// A bench whose engine answers on V4, with its topic pictured and empty.
    pub(super) fn v4() -> Self {
        Self::v4_with(|_| {})
    }

    pub(super) fn v4_with(change: impl FnOnce(&mut Seed)) -> Self {
        let mut b = Self::with(change);
        b.by_hand.push("v4/command");
        b
    }

    /// Answers flow and subscribe, which went out before the first send.
    pub(super) fn answer_v4(&mut self) {
        let flow = self.open_call("v4/connection/flow");
        self.reply(flow, Ok(json!({})));
        self.answer_subscribe("sub_main");
        self.frame(
            SID,
            0,
            0,
            &json!({"kind": "snapshot", "snapshot": {"rows": {"window": []}, "logEpoch": "e"}}),
        );
    }

    pub(super) fn answer_subscribe(&mut self, id: &str) {
        let subscribe = self.open_call("v4/conversation/subscribe");
        self.close(subscribe);
        self.reply(
            subscribe,
            Ok(json!({"ack": {"subscriptionId": id, "mode": "snapshot", "logEpoch": "e"}})),
        );
    }

    pub(super) fn close(&mut self, token: Token) {
        self.calls.iter_mut().filter(|it| it.0 == token).for_each(|it| it.0 = 0);
    }

    pub(super) fn frame(&mut self, session: &str, from: u64, to: u64, payload: &Value) {
        let sub = if session == SID { "sub_main" } else { "sub_child" };
        let params = json!({"wireVersion": 3, "kind": "complete", "topic": format!("conversation/{session}"), "subscriptionId": sub,
            "frame": {"subscriptionId": sub, "fromSeq": from, "toSeq": to, "payload": payload}});
        let params = RawValue::from_string(params.to_string()).unwrap();
        self.step(Input::Engine(EngineEvent::Frame {
            topic: format!("conversation/{session}"),
            params,
        }));
    }

    pub(super) fn ops(&mut self, session: &str, from: u64, ops: &[Value]) {
        self.frame(
            session,
            from,
            from + ops.len() as u64,
            &json!({"kind": "deltas", "deltas": ops}),
        );
    }

    /// A prompt that runs as `t1`, with V4 live.
    pub(super) fn running_v4(&mut self) -> ReqId {
        let req = self.prompt("hello");
        self.answer_v4();
        self.accept();
        self.start("t1");
        req
    }

    pub(super) fn steer(&mut self, text: &str) -> ReqId {
        let params = json!({"sessionId": "acp-1", "prompt": [{"type": "text", "text": text}],
            "_meta": {"steering": {"idleBehavior": "promptRequired"}}});
        self.request(Request::Extension { name: "steering", params })
    }

    /// Answers the newest command as accepted; returns its id.
    pub(super) fn accept_command(&mut self) -> String {
        let id = self.params("v4/command")["commandId"].as_str().unwrap().to_owned();
        let token = self.open_call("v4/command");
        self.close(token);
        self.reply(
            token,
            Ok(json!({"commandId": id, "status": "accepted", "result": {"delivery": "queue"}})),
        );
        id
    }

    pub(super) fn drained(&mut self, command: &str) {
        let inputs = vec![json!({"pendingInputId": "q1", "intent": {"sourceCommandId": command}})];
        let drained = SteerDrained {
            pending_input_ids: vec!["q1".into()],
            drained_inputs: Some(inputs),
            ..SteerDrained::default()
        };
        self.event("t1", SessionBody::SteerDrained(drained));
    }

    pub(super) fn outcome(&self, req: ReqId) -> Option<String> {
        let result = self.response(req)?.as_ref().expect("an error");
        Some(result["outcome"].as_str().unwrap().to_owned())
    }
}

pub(super) fn text_row(text: &str) -> Value {
    json!({"op": "row.appended", "row": {"rowId": 1, "turnId": "t1", "kind": "assistantText", "text": text, "state": "streaming", "assistantResponseId": "m1"}})
}

pub(super) fn piece(text: &str) -> Value {
    json!({"op": "row.delta", "rowId": 1, "path": "text", "append": text})
}

#[test]
fn rows_lead_the_stream_and_the_legacy_events_add_nothing() {
    let mut b = Bench::v4();
    let req = b.running_v4();
    b.ops(SID, 0, &[text_row(""), piece("Hello "), piece("world")]);
    assert_eq!(b.shown(), "Hello world");
    b.text("t1", "Hello world");
    b.text("t1", "!");
    b.complete("t1", "success");
    assert_eq!(
        (b.shown().as_str(), b.stop_reason(req).as_deref()),
        ("Hello world!", Some("end_turn"))
    );
    b.ops(SID, 3, &[piece("!")]);
    assert_eq!(b.shown(), "Hello world!", "a late frame says nothing twice");
}

#[test]
fn a_gap_is_asked_for_and_the_legacy_channel_goes_on_meanwhile() {
    let mut b = Bench::v4();
    b.running_v4();
    b.ops(SID, 0, &[text_row("one ")]);
    b.ops(SID, 2, &[piece("three ")]);
    assert_eq!(b.params("v4/conversation/resync")["base"], json!({"logEpoch": "e", "seq": 1}));
    b.text("t1", "one two ");
    assert_eq!(b.shown(), "one two ");
    b.ops(SID, 1, &[piece("two "), piece("three ")]);
    assert_eq!(b.shown(), "one two three ");
}

#[test]
fn an_engine_without_v4_is_driven_as_before_and_refuses_a_steer_honestly() {
    let mut b = Bench::v4();
    let req = b.prompt("hello");
    for method in ["v4/connection/flow", "v4/conversation/subscribe"] {
        let token = b.open_call(method);
        b.reply(token, Err(rpc(-32601, "Method not found")));
    }
    b.accept();
    b.start("t1");
    b.text("t1", "text");
    let second = b.prompt("second");
    assert_eq!(b.count("v4/command"), 0, "a second prompt waits");
    let steer = b.steer("left");
    let token = b.open_call("v4/command");
    b.reply(token, Err(rpc(-32601, "Method not found")));
    assert_eq!(b.outcome(steer).as_deref(), Some("failed"));
    b.complete("t1", "success");
    assert_eq!((b.shown().as_str(), b.stop_reason(req).as_deref()), ("text", Some("end_turn")));
    assert_eq!(b.count("session/send"), 2);
    assert!(b.response(second).is_none());
}

#[test]
fn a_subscription_that_never_recovers_is_given_up() {
    let mut b = Bench::v4();
    b.running_v4();
    b.ops(SID, 7, &[piece("x")]);
    b.pass(10_000);
    assert!(!b.machine.v4.is_live() && b.machine.v4.main.is_none());
    b.text("t1", "still here");
    assert_eq!(b.shown(), "still here");
}

#[test]
fn a_steer_is_answered_by_the_verdict_and_not_by_the_reply() {
    let mut b = Bench::v4();
    b.running_v4();
    let steer = b.steer("go left");
    assert_eq!(
        b.params("v4/command")["payload"],
        json!({"text": "go left", "requestedDelivery": "guide"})
    );
    let id = b.accept_command();
    assert_eq!(b.outcome(steer), None);
    b.drained(&id);
    assert_eq!(b.outcome(steer).as_deref(), Some("injected"));
}

#[test]
fn a_downgrade_that_only_the_queue_shows_is_told_with_its_reason() {
    let mut b = Bench::v4();
    b.running_v4();
    let steer = b.steer("later");
    let id = b.accept_command();
    let item = json!({"queueItemId": "q1", "sourceCommandId": id, "text": "later", "delivery": {"requested": "guide", "admitted": "queue"},
        "steer": {"state": "fellBack", "reasonCode": "guide.noToolBoundary"}});
    b.ops(
        SID,
        0,
        &[json!({"op": "state.updated", "patch": {"queue": {"items": [item], "autoDrain": true}}})],
    );
    let receipt = b.response(steer).unwrap().as_ref().unwrap();
    assert_eq!(
        (&receipt["outcome"], &receipt["reason"]),
        (&json!("queued"), &json!("guide.noToolBoundary"))
    );
    let list = b.request(Request::Extension { name: "queue/list", params: json!({}) });
    assert_eq!(b.response(list).unwrap().as_ref().unwrap()["items"][0]["itemId"], json!("q1"));
}

#[test]
fn a_steer_waits_for_the_sessions_first_event_and_the_next_one_for_its_acceptance() {
    let mut b = Bench::v4();
    b.prompt("hello");
    b.answer_v4();
    b.accept();
    let first = b.steer("one");
    let second = b.steer("two");
    assert_eq!(b.count("v4/command"), 0);
    b.start("t1");
    assert_eq!(b.count("v4/command"), 1);
    assert_eq!(b.params("v4/command")["payload"]["text"], "one");
    let id = b.accept_command();
    assert_eq!(b.params("v4/command")["payload"]["text"], "two");
    b.drained(&id);
    assert_eq!((b.outcome(first).as_deref(), b.outcome(second)), (Some("injected"), None));
}

#[test]
fn a_missing_row_is_tried_again_under_a_new_id() {
    let mut b = Bench::v4();
    b.running_v4();
    b.steer("go");
    let first = b.params("v4/command")["commandId"].clone();
    let token = b.open_call("v4/command");
    b.reply(token, Ok(json!({"status": "rejected", "message": "FOREIGN KEY constraint failed"})));
    assert_eq!(b.count("v4/command"), 1);
    b.pass(100);
    assert_eq!(b.count("v4/command"), 2);
    assert_ne!(b.params("v4/command")["commandId"], first);
}

#[test]
fn without_a_turn_a_steer_is_not_consumed_or_starts_one() {
    let mut b = Bench::v4();
    let steer = b.steer("hm");
    assert_eq!(b.outcome(steer).as_deref(), Some("promptRequired"));
    assert_eq!(b.count("session/send"), 0);
    let params = json!({"prompt": [{"type": "text", "text": "go"}]});
    let started = b.request(Request::Extension { name: "steering", params });
    assert_eq!(b.outcome(started).as_deref(), Some("startedNewTurn"));
    assert_eq!(b.params("session/send")["content"], "go");
}

#[test]
fn what_is_not_text_or_not_known_is_refused() {
    let mut b = Bench::v4();
    b.running_v4();
    let image = json!([{"type": "image", "data": "aGk=", "mimeType": "image/png"}]);
    for params in [
        json!({"prompt": []}),
        json!({}),
        json!({"prompt": image}),
        json!({"prompt": [{"type": "text", "text": "x"}], "_meta": {"steering": {"idleBehavior": "explode"}}}),
    ] {
        let req = b.request(Request::Extension { name: "steering", params: params.clone() });
        let error = b.response(req).unwrap().as_ref().unwrap_err();
        assert_eq!(i32::from(error.code), -32602, "{params}");
    }
    assert_eq!(b.count("v4/command"), 0);
}

#[test]
fn a_second_prompt_rides_on_the_turn_and_is_answered_with_its_end() {
    let mut b = Bench::v4();
    let first = b.running_v4();
    let second = b.prompt("also this");
    let id = b.accept_command();
    b.drained(&id);
    assert!(b.response(second).is_none());
    b.complete("t1", "success");
    assert_eq!(
        (b.stop_reason(first).as_deref(), b.stop_reason(second).as_deref()),
        (Some("end_turn"), Some("end_turn"))
    );
    let receipt = &b.response(second).unwrap().as_ref().unwrap()["_meta"]["steering"];
    assert_eq!((&receipt["outcome"], &receipt["delivery"]), (&json!("injected"), &json!("guide")));
    assert_eq!(b.count("session/send"), 1);
}

#[test]
fn a_second_prompt_that_is_refused_runs_after_the_turn() {
    let mut b = Bench::v4();
    b.running_v4();
    let second = b.prompt("also this");
    let token = b.open_call("v4/command");
    b.reply(token, Ok(json!({"status": "rejected", "reasonCode": "guard.x"})));
    b.complete("t1", "success");
    assert!(b.response(second).is_none());
    assert_eq!(b.params("session/send")["content"], "also this");
}

#[test]
fn a_second_prompt_that_was_queued_is_answered_with_the_end_of_its_own_turn() {
    let mut b = Bench::v4();
    let second = queued_behind_an_ended_turn(&mut b);
    let started = TurnStarted { input_id: Some("q1".into()), ..TurnStarted::default() };
    b.event("t2", SessionBody::TurnStarted(started));
    b.text("t2", "did it");
    assert!(b.response(second).is_none());
    b.complete("t2", "success");
    assert_eq!(
        (b.stop_reason(second).as_deref(), b.shown().as_str()),
        (Some("end_turn"), "did it")
    );
    assert_eq!(b.count("session/send"), 1);
}

#[test]
fn a_cancel_answers_the_turn_and_everyone_who_rides_on_it() {
    let mut b = Bench::v4();
    let first = b.running_v4();
    let second = b.prompt("also this");
    let id = b.accept_command();
    b.drained(&id);
    b.step(Input::Cancel);
    b.complete("t1", "cancelled");
    for req in [first, second] {
        assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
    }
}

#[test]
fn no_asker_is_left_without_an_answer_when_the_engine_dies_or_the_bridge_ends() {
    let mut b = Bench::v4();
    b.running_v4();
    let steer = b.steer("go");
    b.accept_command();
    b.die();
    assert_eq!(b.outcome(steer).as_deref(), Some("failed"));
    let mut b = Bench::v4();
    b.running_v4();
    let (steer, prompt) = (b.steer("go"), b.prompt("also"));
    b.step(Input::Shutdown);
    assert_eq!(
        (b.outcome(steer).as_deref(), b.stop_reason(prompt).as_deref()),
        (Some("failed"), Some("cancelled"))
    );
}

#[test]
fn the_clients_lag_saturates_and_drains_the_connection() {
    let mut b = Bench::v4();
    b.running_v4();
    b.step(Input::Pressure(true));
    assert_eq!(b.params("v4/connection/flow")["state"], "saturated");
    b.step(Input::Pressure(true));
    b.step(Input::Pressure(false));
    assert_eq!(b.params("v4/connection/flow")["state"], "drained");
    assert_eq!(b.count("v4/connection/flow"), 3);
}

fn child_starts(b: &mut Bench) {
    let row = json!({"op": "row.appended", "row": {"rowId": 1, "turnId": "t1", "kind": "subagent", "parentToolCallId": "call_a", "status": "running", "childSessionId": "kid"}});
    b.ops(SID, 0, &[row]);
    assert_eq!(b.params("v4/conversation/subscribe")["topic"], "conversation/kid");
    b.answer_subscribe("sub_child");
    let window = json!([{"rowId": 1, "turnId": "k", "kind": "assistantText", "text": "kid ", "state": "streaming", "assistantResponseId": "km"}]);
    b.frame(
        "kid",
        1,
        1,
        &json!({"kind": "snapshot", "snapshot": {"rows": {"window": window}, "logEpoch": "k"}}),
    );
    b.ops("kid", 1, &[piece("speaks")]);
}

#[test]
fn a_child_is_shown_under_its_card() {
    let mut b = Bench::v4();
    b.running_v4();
    child_starts(&mut b);
    let chunks: Vec<Value> = b
        .updates
        .iter()
        .map(|it| serde_json::to_value(it).unwrap())
        .filter(|it| it["sessionUpdate"] == "agent_message_chunk")
        .collect();
    let text: String = chunks.iter().map(|it| it["content"]["text"].as_str().unwrap()).collect();
    assert_eq!(text, "kid speaks");
    assert!(
        chunks.iter().all(|it| it["_meta"]["claudeCode"]["parentToolUseId"] == "call_a"),
        "{chunks:?}"
    );
    let ended = json!({"op": "row.upserted", "row": {"rowId": 1, "kind": "subagent", "status": "success", "childSessionId": "kid"}});
    b.ops(SID, 1, &[ended]);
    b.pass(1_000);
    assert_eq!(b.params("v4/conversation/unsubscribe")["topic"], "conversation/kid");
}

#[test]
fn a_client_with_subagents_gets_the_child_as_a_session_of_its_own() {
    let mut b = Bench::v4_with(|seed| seed.traits.subagents = true);
    b.running_v4();
    child_starts(&mut b);
    let introduced = b.updates.iter().any(
        |it| matches!(it, acp::SessionUpdate::SubagentUpdate(it) if &*it.session_id.0 == "kid"),
    );
    assert!(introduced);
    assert!(b.child_updates.iter().all(|(session, _)| session == "kid"));
    assert_eq!(b.child_updates.len(), 2);
    assert_eq!(b.shown(), "", "nothing of it in the parent's text");
}

#[test]
fn children_of_children_are_followed_and_a_hundred_at_once_but_no_more() {
    let mut b = Bench::v4();
    b.running_v4();
    child_starts(&mut b);
    let grandchild = json!({"op": "row.appended", "row": {"rowId": 2, "turnId": "k", "kind": "subagent", "parentToolCallId": "call_b", "status": "running", "childSessionId": "grandkid"}});
    b.ops("kid", 2, &[grandchild]);
    assert_eq!(b.params("v4/conversation/subscribe")["topic"], "conversation/grandkid");
    let running: Vec<Value> = (0..200).map(|it| json!({"childSessionId": format!("c{it}"), "toolCallId": "x", "status": "running"})).collect();
    b.ops(SID, 1, &[json!({"op": "state.updated", "patch": {"subagents": {"running": running}}})]);
    let topics = b
        .calls
        .iter()
        .filter(|(_, method, params)| {
            *method == "v4/conversation/subscribe" && !is_workspace(params)
        })
        .count();
    assert_eq!(topics, 1 + 100);
}

#[test]
fn a_child_that_ends_takes_what_it_waited_for_with_it() {
    let mut b = Bench::v4_with(|seed| seed.traits.subagents = true);
    b.running_v4();
    child_starts(&mut b);
    let grandchild = json!({"op": "row.appended", "row": {"rowId": 2, "turnId": "k", "kind": "subagent", "parentToolCallId": "call_b", "status": "running", "childSessionId": "grandkid"}});
    b.ops("kid", 2, &[grandchild]);
    let ended = json!({"op": "row.upserted", "row": {"rowId": 1, "kind": "subagent", "status": "success", "childSessionId": "kid"}});
    b.ops(SID, 1, &[ended]);
    b.pass(1_000);
    b.pass(1_000);
    let over = b.child_updates.iter().any(|(session, update)| {
        let acp::SessionUpdate::SubagentUpdate(it) = update else { return false };
        let idle = matches!(it.state.value(), Some(acp::StateUpdate::Idle(_)));
        session == "kid" && &*it.session_id.0 == "grandkid" && idle
    });
    assert!(over, "{:?}", b.child_updates);
}

#[test]
fn a_cancelled_turn_closes_the_cards_of_its_children_with_its_own() {
    let mut b = Bench::v4();
    b.running_v4();
    child_starts(&mut b);
    let tool = json!({"op": "row.appended", "row": {"rowId": 3, "turnId": "k", "kind": "toolCall", "toolCallId": "call_kid", "toolName": "Bash", "status": "running", "input": {"command": "ls"}}});
    b.ops("kid", 2, &[tool]);
    b.complete("t1", "cancelled");
    let states: Vec<Value> = b
        .updates
        .iter()
        .map(|it| json!(it))
        .filter(|it| it["toolCallId"] == "call_kid" && it["status"].is_string())
        .map(|it| it["status"].clone())
        .collect();
    assert_eq!(states.last(), Some(&json!("failed")), "{states:?}");
}

#[test]
fn one_child_can_be_cancelled_alone() {
    let mut b = Bench::v4();
    b.running_v4();
    child_starts(&mut b);
    let works =
        json!([{"workId": "w1", "kind": "subagent", "status": "running", "childSessionId": "kid"}]);
    b.ops(SID, 1, &[json!({"op": "state.updated", "patch": {"backgroundWorks": works}})]);
    b.step(Input::CancelChild("kid".into()));
    let command = b.params("v4/command");
    assert_eq!(
        (&command["type"], &command["payload"]),
        (&json!("cancelBackgroundWork"), &json!({"workId": "w1"}))
    );
    b.step(Input::CancelChild("nobody".into()));
    assert_eq!(b.count("v4/command"), 1);
}

#[test]
fn queue_items_are_changed_on_the_revision_that_was_last_said() {
    let mut b = Bench::v4();
    b.running_v4();
    let state = crate::bridge::engine::event::StateUpdated {
        session_id: Some(SID.into()),
        revision: Some(json!(7)),
        ..Default::default()
    };
    b.step(Input::Engine(EngineEvent::State(Box::new(state))));
    let edit = b.request(Request::Extension {
        name: "queue/edit",
        params: json!({"itemId": "q1", "text": "new"}),
    });
    let command = b.params("v4/command");
    assert_eq!((&command["type"], &command["baseRevision"]), (&json!("editQueueItem"), &json!(7)));
    b.accept_command();
    assert!(b.response(edit).unwrap().is_ok());
    let bad = b.request(Request::Extension { name: "queue/delete", params: json!({}) });
    assert!(b.response(bad).unwrap().is_err());
}

#[test]
fn the_state_beside_the_messages_can_be_asked_for() {
    let mut b = Bench::v4();
    b.running_v4();
    child_starts(&mut b);
    let patch = json!({"goal": {"objective": "win"}, "backgroundWorks": [{"workId": "w1", "kind": "bash", "status": "running"}]});
    b.ops(SID, 1, &[json!({"op": "state.updated", "patch": patch})]);
    let req = b.request(Request::Extension { name: "state", params: json!({}) });
    let state = b.response(req).unwrap().as_ref().unwrap();
    assert_eq!(state["goal"]["objective"], "win");
    assert_eq!(state["backgroundWorks"][0]["workId"], "w1");
    assert_eq!((&state["subagents"], &state["live"]), (&json!(["kid"]), &json!(true)));
}

#[test]
fn a_stop_whose_aim_has_moved_is_sent_again_without_one() {
    let mut b = Bench::v4();
    b.prompt("hello");
    b.answer_v4();
    b.accept();
    let input_id = Some(b.input_id());
    let started = TurnStarted {
        input_id,
        foreground_execution_id: Some("e1".into()),
        ..TurnStarted::default()
    };
    b.event("t1", SessionBody::TurnStarted(started));
    b.step(Input::Cancel);
    assert_eq!(b.params("v4/command")["payload"], json!({"expectedForegroundExecutionId": "e1"}));
    let token = b.open_call("v4/command");
    b.reply(token, Ok(json!({"status": "rejected", "reasonCode": "guard.stopTargetChanged"})));
    assert_eq!(
        (b.params("v4/command")["payload"].clone(), b.count("session/stop")),
        (json!({}), 1)
    );
}

fn header(state: &str) -> Value {
    json!({"op": "row.upserted", "row": {"rowId": 9, "turnId": "t1", "kind": "turnHeader", "state": state}})
}

#[test]
fn an_ended_header_whose_event_was_lost_ends_the_prompt_at_once() {
    let mut b = Bench::v4();
    b.by_hand.push("session/messages");
    let req = b.running_v4();
    b.text("t1", "all of it");
    b.ops(SID, 0, &[header("running"), header("completedSuccess")]);
    b.pass(900);
    assert_eq!(b.count("session/events"), 0, "the event may still be on its way");
    b.pass(200);
    let events = b.open_call("session/events");
    b.reply(events, Ok(json!({"events": []})));
    let messages = b.open_call("session/messages");
    b.reply(messages, Ok(json!({"messages": []})));
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
}

#[test]
fn a_lost_end_that_can_be_fetched_is_taken_from_the_event() {
    let mut b = Bench::v4();
    let req = b.running_v4();
    b.ops(SID, 0, &[header("running"), header("completedSuccess")]);
    b.pass(1_100);
    let events = b.open_call("session/events");
    let done = json!({"sessionId": SID, "seq": 2, "turnId": "t1", "type": "turn.completed", "payload": {"resultType": "error_max_turns", "response": ""}});
    b.reply(events, Ok(json!({ "events": [done] })));
    assert_eq!(b.stop_reason(req).as_deref(), Some("max_turn_requests"));
}

#[test]
fn a_failed_header_gives_the_last_error_of_the_control_key() {
    let mut b = Bench::v4();
    let req = b.running_v4();
    let error = json!({"type": "api", "message": "the model is gone", "retryable": false});
    let control = json!({"op": "state.updated", "patch": {"control": {"phase": "error", "lastError": error}}});
    b.ops(SID, 0, &[header("running"), control, header("failed")]);
    b.pass(1_100);
    let events = b.open_call("session/events");
    b.reply(events, Err(rpc(-32603, "no")));
    let error = b.response(req).unwrap().as_ref().unwrap_err();
    assert!(error.message.contains("the model is gone"), "{error:?}");
}

#[test]
fn a_header_that_ends_in_time_asks_for_nothing() {
    let mut b = Bench::v4();
    b.running_v4();
    b.ops(SID, 0, &[header("running"), header("completedSuccess")]);
    b.complete("t1", "success");
    b.pass(2_000);
    assert_eq!(b.count("session/events"), 0);
}

#[test]
fn a_retry_is_told_once_by_whichever_channel_is_first() {
    let mut b = Bench::v4();
    b.running_v4();
    let retry = |attempt: u64| json!({"kind": "api_retry", "attempt": attempt, "maxRetries": 5, "retryDelayMs": 500});
    let control = |attempt: u64| json!({"op": "state.updated", "patch": {"control": {"apiRetry": retry(attempt)}}});
    let legacy = |b: &mut Bench, attempt: u64| {
        let updated = crate::bridge::engine::event::SessionUpdated {
            api_retry: Some(retry(attempt)),
            ..Default::default()
        };
        b.event("t1", SessionBody::Updated(updated));
    };
    let before = b.updates.len();
    b.ops(SID, 0, &[control(1)]);
    legacy(&mut b, 1);
    assert_eq!(b.updates.len(), before + 1);
    legacy(&mut b, 2);
    b.ops(SID, 1, &[control(2)]);
    assert_eq!(b.updates.len(), before + 2);
}

#[test]
fn a_child_whose_topic_keeps_failing_is_left_to_the_parents_events_and_its_end_is_told() {
    let mut b = Bench::v4_with(|seed| seed.traits.subagents = true);
    b.running_v4();
    child_starts(&mut b);
    for attempt in 1..=3 {
        b.ops("kid", 90, &[piece("far")]);
        let resync = b.open_call("v4/conversation/resync");
        b.close(resync);
        b.reply(resync, Err(rpc(-32602, "unknown subscription")));
        if attempt < 3 {
            b.answer_subscribe("sub_child");
            let window = json!([]);
            b.frame("kid", 1, 1, &json!({"kind": "snapshot", "snapshot": {"rows": {"window": window}, "logEpoch": "k"}}));
        }
    }
    assert_eq!(b.count("v4/conversation/resync"), 3);
    let ended = json!({"op": "row.upserted", "row": {"rowId": 1, "kind": "subagent", "status": "success", "childSessionId": "kid"}});
    b.ops(SID, 1, &[ended]);
    let idle = b.updates.iter().filter(|it| matches!(it, acp::SessionUpdate::SubagentUpdate(_)));
    assert_eq!(idle.count(), 2, "its start and its end");
}

#[test]
fn a_topic_whose_pictures_are_all_broken_is_asked_for_a_few_times_and_left() {
    let mut b = Bench::v4_with(|seed| seed.traits.subagents = true);
    b.running_v4();
    child_starts(&mut b);
    for topic in ["kid", SID] {
        let before = b.count("v4/conversation/resync");
        for _ in 0..50 {
            b.frame(topic, 7, 7, &json!({"kind": "snapshot", "snapshot": "broken"}));
        }
        assert_eq!(b.count("v4/conversation/resync"), before + 8, "{topic}");
        let left = b.params("v4/conversation/unsubscribe");
        assert_eq!(left["topic"], format!("conversation/{topic}"));
    }
}

#[test]
fn a_title_that_only_v4_tells_counts_and_an_older_one_changes_nothing_back() {
    let mut b = Bench::v4();
    b.running_v4();
    let legacy = |b: &mut Bench, title: &str| {
        let source = Some("generated".to_owned());
        let title = crate::bridge::engine::event::TitleUpdated { title: title.to_owned(), source };
        b.event("t1", SessionBody::Title(title));
    };
    let v4 = |title: &str| json!({"op": "state.updated", "patch": {"meta": {"title": title, "titleSource": "generated"}}});
    legacy(&mut b, "One");
    legacy(&mut b, "Two");
    b.ops(SID, 0, &[v4("One")]);
    b.ops(SID, 1, &[v4("Two")]);
    b.ops(SID, 2, &[v4("Three")]);
    let told: Vec<String> = b
        .updates
        .iter()
        .map(|it| json!(it))
        .filter_map(|it| it.get("title")?.as_str().map(str::to_owned))
        .collect();
    assert_eq!(told[told.len() - 3..], ["One", "Two", "Three"], "{told:?}");
}

#[test]
fn a_child_that_the_state_never_named_is_not_ended_by_a_state_without_it() {
    for (ended, ends) in
        [(json!([]), 0), (json!([{"childSessionId": "kid", "status": "success"}]), 1)]
    {
        let mut b = Bench::v4_with(|seed| seed.traits.subagents = true);
        b.running_v4();
        let row = json!({"op": "row.appended", "row": {"rowId": 1, "kind": "subagent", "status": "running", "childSessionId": "kid", "parentToolCallId": "call_1"}});
        b.ops(SID, 0, &[row]);
        b.answer_subscribe("sub_child");
        let before = b.updates.len();
        let state = json!({"op": "state.updated", "patch": {"subagents": {"running": [], "ended": {"items": ended}}}});
        b.ops(SID, 1, &[state]);
        b.pass(3_000);
        let idle = b.updates[before..]
            .iter()
            .filter(|it| matches!(it, acp::SessionUpdate::SubagentUpdate(_)));
        assert_eq!(idle.count(), ends);
    }
}
