//! A prompt from its send to its answer.

use super::*;
use crate::bridge::engine::event::{
    BackgroundTask, SessionUpdated, SteerDrained, SteerQueued, TurnFailed,
};

#[test]
fn a_new_session_asks_the_engine_for_nothing() {
    let mut b = Bench::new();
    let req = b.request(Request::New);
    assert!(b.response(req).unwrap().is_ok());
    assert!(b.calls.is_empty());
}

#[test]
fn the_first_prompt_creates_subscribes_and_sends_in_this_order() {
    let mut b = Bench::new();
    b.prompt("hello");
    let methods: Vec<_> =
        b.calls.iter().map(|(_, m, _)| *m).filter(|m| *m != "workspace/readPresentation").collect();
    let want = [
        "session/create",
        "session/subscribe",
        "v4/connection/flow",
        "v4/conversation/subscribe",
        "session/send",
        // The workspace's topic, which nothing waits for.
        "v4/conversation/subscribe",
    ];
    assert_eq!(methods, want);
    let subscribe = b.params("session/subscribe");
    assert_eq!(subscribe["includeSnapshot"], false);
    assert!(subscribe.get("afterSeq").is_none());
}

#[test]
fn a_prompt_ends_with_its_own_turn_and_after_its_text() {
    let mut b = Bench::new();
    let req = b.running("t1");
    b.text("t1", "one ");
    b.text("t1", "two");
    assert!(b.response(req).is_none());
    b.complete("t1", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
    assert_eq!(b.shown(), "one two");
}

#[test]
fn a_model_that_a_cold_engine_does_not_know_yet_is_waited_for() {
    let mut b = Bench::new();
    let req = b.prompt("hello");
    for _ in 0..3 {
        let send = b.open_call("session/send");
        b.close(send);
        b.reply(send, Err(rpc(-32603, "历史任务使用的模型已不可用")));
        b.pass(500);
    }
    assert_eq!(b.count("session/send"), 4);
    b.accept();
    b.start("t1");
    b.complete("t1", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
}

#[test]
fn a_model_that_stays_unknown_is_told_in_the_engines_words_after_ten_seconds() {
    for cancelled in [false, true] {
        let mut b = Bench::new();
        let req = b.prompt("hello");
        let mut waited = 0;
        while b.response(req).is_none() {
            let send = b.open_call("session/send");
            b.close(send);
            b.reply(send, Err(rpc(-32603, "model lab-large is no longer available")));
            b.pass(500);
            waited += 500;
            if cancelled && waited == 2_000 {
                b.step(Input::Cancel);
            }
        }
        if cancelled {
            assert_eq!(b.stop_reason(req).as_deref(), Some("cancelled"));
            continue;
        }
        assert!((10_000..=11_000).contains(&waited), "{waited}");
        let error = b.response(req).unwrap().as_ref().unwrap_err();
        assert!(error.message.contains("lab-large"), "{error:?}");
    }
}

#[test]
fn a_turn_of_which_no_event_came_is_shown_from_the_store_and_an_older_one_is_not() {
    for (words, created, shown) in
        [("hello", 1_000, "the reply"), ("hello", 999, ""), ("something else", 1_000, "")]
    {
        let mut b = Bench::new();
        b.by_hand.extend(["session/read", "session/messages"]);
        let req = b.prompt("hello");
        b.accept();
        for wait in [15_000, 1_500] {
            b.pass(wait);
            let read = b.open_call("session/read");
            b.close(read);
            b.reply(read, Ok(json!({"projection": {"status": "idle"}})));
        }
        let message = |role: &str, text: &str, at: u64| {
            json!({"info": {"id": format!("{role}{at}"), "role": role, "time": {"created": at}},
                "parts": [{"type": "text", "text": text}]})
        };
        let stored = [
            message("user", "hello", 1),
            message("assistant", "the reply of before", 2),
            message("user", words, created),
            message("assistant", "the reply", created + 1),
        ];
        let store = b.open_call("session/messages");
        b.close(store);
        b.reply(store, Ok(json!({ "messages": stored })));
        assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
        assert_eq!(b.shown(), shown, "{words} {created}");
    }
}

#[test]
fn events_that_overtake_the_answer_to_the_send_count() {
    let mut b = Bench::new();
    let req = b.prompt("hello");
    b.start("t1");
    b.text("t1", "quick");
    b.complete("t1", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
    b.accept();
    assert_eq!(b.shown(), "quick");
}

#[test]
fn a_foreign_turn_is_shown_and_ends_nothing() {
    let mut b = Bench::new();
    let req = b.running("t1");
    let notification =
        TurnStarted { input_source: Some("background_task".into()), ..TurnStarted::default() };
    b.event("t2", SessionBody::TurnStarted(notification));
    b.text("t2", "from the background");
    b.complete("t2", "success");
    assert!(b.response(req).is_none());
    assert_eq!(b.shown(), "from the background");
    b.complete("t1", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
}

#[test]
fn stop_reasons_follow_the_result() {
    for (result, reason) in [
        ("success", "end_turn"),
        ("cancelled", "cancelled"),
        ("error_max_turns", "max_turn_requests"),
    ] {
        let mut b = Bench::new();
        let req = b.running("t1");
        b.complete("t1", result);
        assert_eq!(b.stop_reason(req).as_deref(), Some(reason), "{result}");
    }
}

#[test]
fn two_prompts_run_one_after_the_other() {
    let mut b = Bench::new();
    let first = b.running("t1");
    let second = b.prompt("second");
    assert_eq!(b.count("session/send"), 1);
    b.complete("t1", "success");
    assert!(b.response(first).is_some());
    assert_eq!(b.count("session/send"), 2);
    b.accept();
    b.start("t2");
    b.complete("t2", "success");
    assert_eq!(b.stop_reason(second).as_deref(), Some("end_turn"));
}

#[test]
fn a_busy_engine_is_asked_again_by_either_code() {
    for error in [
        rpc(-32010, "A prompt is already running for this session"),
        rpc(1308, "prompt is running"),
    ] {
        let mut b = Bench::new();
        let req = b.prompt("hello");
        let token = b.open_call("session/send");
        b.reply(token, Err(error));
        assert!(b.response(req).is_none());
        b.pass(400);
        assert_eq!(b.count("session/send"), 2);
        b.accept();
        b.start("t1");
        b.complete("t1", "success");
        assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
    }
}

#[test]
fn a_busy_engine_is_asked_at_once_when_the_foreign_turn_ends() {
    let mut b = Bench::new();
    b.running("t0");
    b.complete("t0", "success");
    b.event(
        "bg",
        SessionBody::TurnStarted(TurnStarted {
            input_source: Some("background_task".into()),
            ..TurnStarted::default()
        }),
    );
    b.prompt("hello");
    let token = b.open_call("session/send");
    b.reply(token, Err(rpc(-32010, "A prompt is already running for this session")));
    let before = b.count("session/send");
    b.complete("bg", "success");
    assert_eq!(b.count("session/send"), before + 1);
}

#[test]
fn a_refusal_that_only_shares_the_code_is_not_retried() {
    let mut b = Bench::new();
    let req = b.prompt("hello");
    let token = b.open_call("session/send");
    b.reply(token, Err(rpc(-32010, "Subagent sessions are read-only")));
    let error = b.response(req).unwrap().as_ref().unwrap_err();
    assert_eq!(error.message, "Subagent sessions are read-only");
}

#[test]
fn an_evicted_session_is_resumed_once_and_the_prompt_sent_again() {
    let mut b = Bench::new();
    let req = b.prompt("hello");
    let token = b.open_call("session/send");
    b.reply(token, Err(rpc(-32004, "Session is not active: sess_1")));
    assert_eq!(b.count("session/resume"), 1);
    assert_eq!(b.count("session/send"), 2);
    let token = b.open_call("session/send");
    b.reply(token, Err(rpc(-32004, "Session is not active: sess_1")));
    assert!(b.response(req).unwrap().is_err());
}

#[test]
fn a_passing_failure_is_tried_again_and_a_lasting_one_is_told() {
    let mut b = Bench::new();
    let req = b.running("t1");
    let error = json!({"message": "429 slow down", "retryable": true, "cause": {"code": "rate_limit", "message": "429 slow down"}});
    b.event("t1", SessionBody::TurnFailed(TurnFailed { error, ..TurnFailed::default() }));
    assert!(b.response(req).is_none());
    b.pass(31_000);
    assert_eq!(b.count("session/send"), 2);
    b.accept();
    b.start("t2");
    let error = json!({"message": "quota exhausted for plan X-17", "retryable": false});
    b.event("t2", SessionBody::TurnFailed(TurnFailed { error, ..TurnFailed::default() }));
    let error = b.response(req).unwrap().as_ref().unwrap_err();
    assert!(error.message.contains("quota exhausted for plan X-17"), "{}", error.message);
}

#[test]
fn a_dead_engine_is_replaced_twice_and_not_more() {
    let mut b = Bench::new();
    let req = b.running("t1");
    for n in 2..=3 {
        b.die();
        assert!(b.response(req).is_none(), "death {n}");
        b.accept();
        b.start(&format!("t{n}"));
    }
    assert_eq!(b.count("session/resume"), 2);
    b.die();
    assert!(b.response(req).unwrap().is_err());
}

#[test]
fn a_dead_engine_heard_of_twice_counts_once() {
    let mut b = Bench::new();
    let req = b.running("t1");
    b.by_hand = vec!["session/resume"];
    b.die();
    b.die();
    let token = b.open_call("session/resume");
    b.reply(token, Ok(json!({"session": {"sessionId": SID}})));
    b.accept();
    b.start("t2");
    b.complete("t2", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
}

#[test]
fn lost_events_are_fetched_and_shown_in_order() {
    let mut b = Bench::new();
    let req = b.running("t1");
    b.text("t1", "a");
    let next = b.seq + 1;
    b.event_at(next + 1, "t1", text_body("c"));
    assert_eq!(b.shown(), "a");
    assert_eq!(b.params("session/events")["afterSeq"], next - 1);
    let token = b.open_call("session/events");
    let lost = json!({"events": [{"sessionId": SID, "seq": next, "turnId": "t1", "type": "model.streaming",
        "payload": {"kind": "text_delta", "delta": "b", "assistantMessageId": "m1"}}]});
    b.reply(token, Ok(lost));
    assert_eq!(b.shown(), "abc");
    b.complete("t1", "success");
    assert!(b.response(req).is_some());
}

/// Events `first..=last`, joined to one; each says its number as a letter.
fn joined(first: u64, last: u64) -> SessionBody {
    let letters = (first..=last).map(|it| char::from(b'a' + u8::try_from(it % 26).unwrap()));
    let SessionBody::Streaming(body) = text_body(&letters.collect::<String>()) else { panic!() };
    let pieces = usize::try_from(last - first).unwrap() + 1;
    SessionBody::Streaming(Streaming { joins: (1..pieces).collect(), ..body })
}

#[test]
fn joined_events_are_shown_once_however_they_overlap_and_a_gap_before_them_is_filled() {
    let letters = |from: u64, to: u64| {
        let SessionBody::Streaming(body) = joined(from, to) else { panic!() };
        body.delta
    };
    // What came joined, which of it was lost, and which numbers the engine gives for the gap.
    for (came, given) in [
        (vec![(1, 3), (2, 5), (5, 5), (4, 6)], None),
        (vec![(1, 2), (5, 6)], Some((3, 4))),
        (vec![(1, 2), (5, 8), (9, 9)], Some((3, 6))),
        (vec![(1, 2), (4, 8)], Some((3, 9))),
        (vec![(1, 1), (6, 7), (7, 9), (2, 4)], Some((5, 5))),
    ] {
        let mut b = Bench::new();
        b.running("t1");
        let base = b.seq;
        for (first, last) in &came {
            b.event_at(base + last, "t1", joined(base + first, base + last));
        }
        if let Some((first, last)) = given {
            let event = |seq: u64| {
                json!({"sessionId": SID, "seq": seq, "turnId": "t1", "type": "model.streaming",
                "payload": {"kind": "text_delta", "delta": letters(seq, seq), "assistantMessageId": "m1"}})
            };
            let lost: Vec<_> = (base + first..=base + last).map(event).collect();
            let token = b.open_call("session/events");
            b.reply(token, Ok(json!({"events": lost})));
        }
        let last = came.iter().chain(&given).map(|it| it.1).max().unwrap();
        assert_eq!(b.shown(), letters(base + 1, base + last), "{came:?} {given:?}");
    }
}

#[test]
fn a_gap_that_cannot_be_filled_does_not_stop_the_stream() {
    let mut b = Bench::new();
    b.running("t1");
    let next = b.seq + 1;
    b.event_at(next + 3, "t1", text_body("late"));
    b.pass(5_000);
    assert_eq!(b.shown(), "late");
}

#[test]
fn an_event_that_comes_twice_is_shown_once() {
    let mut b = Bench::new();
    b.running("t1");
    b.text("t1", "x");
    let seq = b.seq;
    b.event_at(seq, "t1", text_body("x"));
    assert_eq!(b.shown(), "x");
}

#[test]
fn a_lost_end_is_found_by_two_idle_readings_and_not_by_one() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/read", "session/messages"];
    let req = b.running("t1");
    b.text("t1", "all of it");
    b.pass(15_000);
    let token = b.open_call("session/events");
    b.reply(token, Ok(json!({"events": []})));
    let idle = json!({"projection": {"status": "idle"}});
    let token = b.open_call("session/read");
    b.reply(token, Ok(idle.clone()));
    assert!(b.response(req).is_none());
    b.pass(1_500);
    let token = b.open_call("session/read");
    b.reply(token, Ok(idle));
    let token = b.open_call("session/messages");
    b.reply(token, Ok(json!({"messages": []})));
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
}

#[test]
fn an_event_between_the_readings_keeps_the_turn_alive() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/read"];
    let req = b.running("t1");
    b.pass(15_000);
    let token = b.open_call("session/read");
    b.reply(token, Ok(json!({"projection": {"status": "idle"}})));
    b.now += 1;
    b.text("t1", "still here");
    b.pass(1_600);
    assert_eq!(b.count("session/read"), 1);
    assert!(b.response(req).is_none());
}

#[test]
fn a_prompt_taken_as_a_guide_and_dropped_is_sent_again() {
    let mut b = Bench::new();
    b.running("t0");
    b.complete("t0", "success");
    b.event(
        "bg",
        SessionBody::TurnStarted(TurnStarted {
            input_source: Some("background_task".into()),
            ..TurnStarted::default()
        }),
    );
    let req = b.prompt("hello");
    b.accept();
    let input_id = Some(b.input_id());
    b.event("bg", SessionBody::SteerQueued(SteerQueued { input_id, ..SteerQueued::default() }));
    let before = b.count("session/send");
    b.complete("bg", "success");
    assert_eq!(b.count("session/send"), before, "it may still start by itself");
    b.pass(1_000);
    assert_eq!(b.count("session/send"), before + 1);
    b.accept();
    b.start("t1");
    b.complete("t1", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
}

/// The engine takes a second prompt into a queue of its own, and names its input anew.
#[test]
fn a_prompt_that_the_engine_queues_is_known_again_when_it_starts() {
    let mut b = Bench::new();
    b.running("t0");
    b.complete("t0", "success");
    let start = |source: Option<&str>, input_id: Option<&str>| {
        SessionBody::TurnStarted(TurnStarted {
            input_source: source.map(str::to_owned),
            input_id: input_id.map(str::to_owned),
            ..TurnStarted::default()
        })
    };
    b.event("bg", start(Some("background_task"), None));
    let req = b.prompt("hello");
    b.accept();
    let queued = |text: &str, id: &str| {
        SessionBody::SteerQueued(SteerQueued {
            pending_input_id: Some(id.into()),
            input_id: Some(id.into()),
            input: Some(json!(text)),
            ..SteerQueued::default()
        })
    };
    b.event("bg", queued("of another client", "queue_0"));
    b.event("bg", queued("hello", "queue_1"));
    let sent = b.count("session/send");
    b.complete("bg", "success");
    b.event("t0", start(None, Some("queue_0")));
    b.complete("t0", "success");
    b.event("t1", start(None, Some("queue_1")));
    b.pass(10_000);
    b.text("t1", "the answer");
    assert_eq!(b.stop_reason(req), None);
    b.complete("t1", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
    assert_eq!(b.count("session/send"), sent, "it is not sent twice");
}

#[test]
fn a_prompt_merged_into_a_foreign_turn_ends_with_that_turn() {
    let mut b = Bench::new();
    b.running("t0");
    b.complete("t0", "success");
    b.event(
        "bg",
        SessionBody::TurnStarted(TurnStarted {
            input_source: Some("background_task".into()),
            ..TurnStarted::default()
        }),
    );
    let req = b.prompt("hello");
    b.accept();
    let input_id = Some(b.input_id());
    b.event(
        "bg",
        SessionBody::SteerQueued(SteerQueued {
            input_id,
            pending_input_id: Some("p".into()),
            ..SteerQueued::default()
        }),
    );
    let drained = SteerDrained {
        pending_input_ids: vec!["p".into()],
        target_turn_id: Some("bg".into()),
        drained_inputs: None,
    };
    b.event("bg", SessionBody::SteerDrained(drained));
    b.complete("bg", "success");
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
}

#[test]
fn a_command_of_an_evicted_session_loads_it_and_is_tried_once_more() {
    for (name, params, method) in [
        ("goal", json!({"action": "show"}), "session/goal"),
        ("compact", json!({}), "session/compact"),
    ] {
        let mut b = Bench::new();
        b.running("t0");
        b.complete("t0", "success");
        b.by_hand = vec![method];
        let req = b.request(Request::Extension { name, params });
        for tries in 1..=2 {
            assert_eq!((b.count(method), b.count("session/resume")), (tries, tries - 1), "{name}");
            let token = b.open_call(method);
            b.reply(token, Err(rpc(-32004, "Session is not active: s")));
        }
        assert_eq!(b.count(method), 2, "{name}");
        let error = b.response(req).expect(name).as_ref().expect_err(name);
        assert!(error.message.contains("not active"), "{error:?}");
    }
}

#[test]
fn two_first_uses_make_one_session() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/create"];
    b.prompt("one");
    b.request(Request::Extension { name: "goal", params: json!({"action": "show"}) });
    assert_eq!(b.count("session/create"), 1);
    let token = b.open_call("session/create");
    b.reply(token, Ok(json!({"session": {"sessionId": SID}})));
    assert_eq!(b.count("session/send"), 1);
    assert_eq!(b.count("session/goal"), 1);
}

#[test]
fn a_failed_creation_fails_the_prompt_and_the_next_one_tries_again() {
    let mut b = Bench::new();
    b.by_hand = vec!["session/create"];
    let req = b.prompt("one");
    let token = b.open_call("session/create");
    b.reply(token, Err(rpc(-32603, "no model is configured")));
    assert_eq!(b.response(req).unwrap().as_ref().unwrap_err().message, "no model is configured");
    b.prompt("two");
    assert_eq!(b.count("session/create"), 2);
}

#[test]
fn the_title_comes_from_the_first_prompt_until_the_user_sets_one() {
    use crate::bridge::engine::event::TitleUpdated;
    let mut b = Bench::new();
    b.prompt("\n  Fix the login\nplease");
    b.accept();
    b.start("t1");
    for (source, title) in [
        ("first_input", "ignored"),
        ("generated", "Login fix"),
        ("custom", "Mine"),
        ("generated", "Too late"),
    ] {
        b.event(
            "t1",
            SessionBody::Title(TitleUpdated { title: title.into(), source: Some(source.into()) }),
        );
    }
    let titles: Vec<_> = b
        .updates
        .iter()
        .filter_map(|u| match u {
            acp::SessionUpdate::SessionInfoUpdate(info) => {
                serde_json::to_value(info).unwrap()["title"].as_str().map(str::to_owned)
            }
            _ => None,
        })
        .collect();
    assert_eq!(titles, ["Fix the login", "Login fix", "Mine"]);
}

#[test]
fn a_closed_session_answers_everything_and_refuses_more() {
    let mut b = Bench::new();
    let running = b.running("t1");
    let waiting = b.prompt("next");
    let close = b.request(Request::Close);
    assert_eq!(b.stop_reason(running).as_deref(), Some("cancelled"));
    assert_eq!(b.stop_reason(waiting).as_deref(), Some("cancelled"));
    assert!(b.response(close).unwrap().is_ok());
    let late = b.prompt("late");
    assert!(b.response(late).unwrap().is_err());
}

#[test]
fn a_closed_session_leaves_no_background_card_running() {
    let mut b = Bench::new();
    b.running("t1");
    let task = BackgroundTask {
        task_id: "bg-1".into(),
        status: "running".into(),
        description: Some("the long build".into()),
        ..BackgroundTask::default()
    };
    let updated = SessionUpdated { task: Some(task), ..SessionUpdated::default() };
    b.event("t1", SessionBody::Updated(updated));
    b.complete("t1", "done");
    let cards = |b: &Bench| -> Vec<Value> {
        let all = b.updates.iter().map(|update| serde_json::to_value(update).unwrap());
        all.filter(|u| u["_meta"]["backgroundTask"]["taskId"] == "bg-1").collect()
    };
    assert_eq!(cards(&b).last().unwrap()["status"], "in_progress");
    let close = b.request(Request::Close);
    assert!(b.response(close).unwrap().is_ok());
    let last = cards(&b).pop().unwrap();
    assert_eq!(
        (&last["status"], &last["_meta"]["backgroundTask"]["closed"]),
        (&json!("failed"), &json!(true))
    );
}

#[test]
fn a_failure_that_passes_and_never_does_ends_the_turn_with_a_notice_and_its_reason() {
    let mut b = Bench::new();
    let req = b.running("t1");
    let error = json!({"cause": {"code": "model_request_failed", "message": "overloaded today", "context": {"retryable": true}}});
    for attempt in 1..=6 {
        let failed = TurnFailed { error: error.clone(), ..TurnFailed::default() };
        b.event(&format!("t{attempt}"), SessionBody::TurnFailed(failed));
        if attempt < 6 {
            assert!(b.response(req).is_none());
            b.pass(4_000);
            b.accept();
            b.start(&format!("t{}", attempt + 1));
        }
    }
    assert_eq!(b.count("session/send"), 6);
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
    let failure = &b.response(req).unwrap().as_ref().unwrap()["_meta"]["zcode"]["failure"];
    assert!(failure["message"].as_str().unwrap().contains("overloaded today"), "{failure}");
    let told = b.updates.iter().any(|it| {
        let it = serde_json::to_string(it).unwrap();
        it.contains("failed 6 times") && it.contains("overloaded today")
    });
    assert!(told);
    let next = b.running("t9");
    b.complete("t9", "success");
    assert_eq!(b.stop_reason(next).as_deref(), Some("end_turn"));
}

#[test]
fn workflows_are_listed_here_and_do_not_go_to_the_model() {
    let mut b = Bench::new();
    let req = b.prompt("/workflows");
    let token = b.open_call("workflows/list");
    b.reply(
        token,
        Ok(json!({"workflows": [{"name": "tidy", "description": "Tidies up", "scope": "project"}],
        "invalid": [{"path": "/w/x.ts", "reason": "no export"}]})),
    );
    assert_eq!(b.params("workflows/runs")["limit"], 10);
    let token = b.open_call("workflows/runs");
    b.reply(token, Ok(json!({"runs": [{"runId": "r1", "name": "tidy", "status": "completed"}], "truncated": false})));
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
    assert_eq!(
        b.shown(),
        "Workflows:\n- tidy (project): Tidies up\n- /w/x.ts cannot be used: no export\n\nLast runs:\n- tidy: completed"
    );
    let req = b.prompt("/workflows");
    let token = b.open_call("workflows/list");
    b.reply(token, Err(rpc(-32601, "Method not found")));
    assert_eq!(b.stop_reason(req).as_deref(), Some("end_turn"));
    assert_eq!(b.count("session/send"), 0);
}
