//! `/resume`, on both sides of the hand-over.

use super::*;

impl Bench {
    /// A thread that asked and is shown the choice; the command's request.
    fn choosing(&mut self) -> (ReqId, Token) {
        let req = self.prompt("/resume");
        (req, *self.asks.last().expect("a choice"))
    }

    fn tell(&mut self, messages: &Value) {
        let read = self.open_call("session/messages");
        self.calls.iter_mut().filter(|it| it.0 == read).for_each(|it| it.0 = 0);
        self.reply(read, Ok(json!({ "messages": messages })));
    }

    fn history() -> Value {
        json!([{"info": {"id": "u1", "role": "user", "semantics": {"origin": "real_user", "kind": "user_prompt",
                "uiVisibility": "visible", "transcriptVisibility": "visible"}}, "parts": [{"type": "text", "text": "before"}]}])
    }
}

#[test]
fn the_command_ends_after_the_history_and_writes_the_binding_down() {
    let mut b = Bench::new();
    b.request(Request::New);
    let (req, ask) = b.choosing();
    assert_eq!(b.calls, vec![], "nothing is asked of the engine before the choice");
    b.choose(ask, "acp-0");
    assert_eq!(b.params("session/resume")["sessionId"], SID);
    assert!(b.response(req).is_none() && b.records.is_empty());
    b.tell(&Bench::history());
    b.pass(300);
    b.tell(&Bench::history());
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
    let record = b.records.last().unwrap();
    assert_eq!((record.engine_sid.as_deref(), record.anew), (Some(SID), Some(req)));
    assert!(b.shown().ends_with("This thread goes on with “Before”."));
    assert_eq!(b.count("session/create"), 0);
}

#[test]
fn a_cancel_before_the_session_is_loaded_leaves_an_empty_thread() {
    for method in ["session/resume", "session/subscribe"] {
        let mut b = Bench::new();
        b.request(Request::New);
        b.by_hand.push(method);
        let (req, ask) = b.choosing();
        b.choose(ask, "acp-0");
        let late = b.open_call(method);
        b.step(Input::Cancel);
        assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"), "{method}");
        assert_eq!(b.records.last().unwrap().engine_sid, None);
        assert_eq!(b.detached, [SID]);
        b.reply(late, Ok(json!({"session": {"sessionId": SID}, "eventSeq": 0})));
        assert!(b.machine.is_blank, "{method}: what comes late changes nothing");
        b.by_hand.clear();
        b.prompt("its own");
        assert_eq!(b.count("session/create"), 1, "{method}");
        assert_eq!(b.params("session/send")["content"], "its own");
    }
}

#[test]
fn a_cancel_while_the_history_is_told_ends_the_command_and_keeps_the_session() {
    let mut b = Bench::new();
    b.request(Request::New);
    let (req, ask) = b.choosing();
    b.choose(ask, "acp-0");
    b.step(Input::Cancel);
    assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
    assert_eq!(b.records.last().unwrap().engine_sid.as_deref(), Some(SID));
    b.tell(&Bench::history());
    b.pass(300);
    b.tell(&Bench::history());
    b.prompt("and on");
    assert_eq!(
        (b.count("session/create"), b.params("session/send")["content"].clone()),
        (0, json!("and on"))
    );
}

#[test]
fn taking_the_command_back_ends_it_at_every_stage_and_leaves_what_waits_behind_it() {
    for stage in 0..3 {
        let mut b = Bench::new();
        b.request(Request::New);
        if stage == 1 {
            b.by_hand.push("session/resume");
        }
        let (req, ask) = b.choosing();
        let behind = b.prompt("behind");
        if stage > 0 {
            b.choose(ask, "acp-0");
        }
        b.step(Input::CancelRequest(req));
        assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"), "{stage}");
        assert!(b.response(behind).is_none(), "{stage}");
        b.by_hand.clear();
        assert_eq!(b.params("session/send")["content"], "behind", "{stage}");
        assert_eq!(b.count("session/create"), usize::from(stage < 2), "{stage}");
    }
}

#[test]
fn a_session_that_is_gone_is_said_and_the_thread_lives() {
    let mut b = Bench::new();
    b.request(Request::New);
    b.by_hand.push("session/resume");
    let req = b.prompt("/resume acp-0");
    let token = b.open_call("session/resume");
    b.reply(token, Err(rpc(-32603, "Session not found: sess_1")));
    assert!(b.response(req).unwrap().is_err());
    assert!(!b.machine.ended && b.machine.is_blank);
    b.by_hand.clear();
    b.prompt("its own");
    assert_eq!(b.count("session/create"), 1);
}

#[test]
fn a_turn_that_begins_while_the_choice_is_open_keeps_the_thread_where_it_is() {
    let mut b = Bench::new();
    b.request(Request::New);
    b.prompt("/mcp");
    let list = b.open_call("mcp/list");
    b.reply(list, Ok(json!({"statuses": {}})));
    b.earlier.engine_sid = "sess_0".into();
    let (req, ask) = b.choosing();
    b.event(
        "bg",
        SessionBody::TurnStarted(TurnStarted {
            input_source: Some("goal-continuation".into()),
            ..TurnStarted::default()
        }),
    );
    b.choose(ask, "acp-0");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
    assert!(b.shown().contains("conversation of its own"), "{}", b.shown());
    assert_eq!(b.count("session/resume"), 0);
}
