//! Every event type, in every spelling, with every field missing.

use serde_json::json;

use super::*;

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

/// Reads an event of session `s` with this payload.
fn read(kind: &str, payload: &Value) -> SessionEvent {
    let params = json!({"eventId": "e", "sessionId": "s", "turnId": "t", "seq": 7, "type": kind, "payload": payload});
    let EngineEvent::Session(event) = notification("session/event", Some(&raw(&params))) else {
        panic!("{kind}")
    };
    assert_eq!(
        (event.session_id.as_str(), event.seq, event.turn_id.as_deref()),
        ("s", 7, Some("t")),
        "{kind}"
    );
    *event
}

fn body_of(kind: &str, payload: &Value) -> SessionBody {
    read(kind, payload).body
}

const KINDS: [&str; 16] = [
    "turn.started",
    "turn.completed",
    "turn.failed",
    "turn.terminal",
    "turn.steerQueued",
    "turn.steerDrained",
    "model.streaming",
    "part.delta",
    "tool.updated",
    "session.updated",
    "session.titleUpdated",
    "permission.requested",
    "permission.resolved",
    "userInput.requested",
    "userInput.resolved",
    "rewind.triggered",
];

#[test]
fn every_event_survives_missing_fields_wrong_types_and_no_payload() {
    let odd = json!({
        "kind": 5, "delta": [1], "toolCallId": {"x": 1}, "result": null, "usage": "none", "title": 3,
        "pendingInputIds": "p", "message": false, "inputId": [], "error": null, "taskId": null, "seq": "x",
        "toolCallIds": [1, "a"], "elapsedMs": "12", "requestId": 9, "input": null, "contextWindow": "big",
    });
    for kind in KINDS {
        for payload in [json!({}), json!(null), json!([]), json!("text"), odd.clone()] {
            assert!(
                !matches!(body_of(kind, &payload), SessionBody::Unknown { .. }),
                "{kind} {payload}"
            );
        }
        let bare = raw(&json!({"type": kind}));
        let EngineEvent::Session(event) = notification("session/event", Some(&bare)) else {
            panic!("{kind}")
        };
        assert_eq!((event.session_id.as_str(), event.seq, event.turn_id), ("", 0, None));
    }
    assert!(
        matches!(body_of("checkpoint.created", &json!({})), SessionBody::Unknown { kind } if kind == "checkpoint.created")
    );
}

#[test]
fn the_turn_id_is_read_from_the_envelope_first_then_from_the_payload() {
    for kind in ["turn.started", "turn.completed", "model.streaming"] {
        let both = json!({"sessionId": "s", "turnId": "outer", "type": kind, "payload": {"turnId": "inner", "kind": "text_delta"}});
        let inner = json!({"sessionId": "s", "type": kind, "payload": {"turnId": "inner", "kind": "text_delta"}});
        for (params, expected) in [(both, "outer"), (inner, "inner")] {
            let EngineEvent::Session(event) = notification("session/event", Some(&raw(&params)))
            else {
                panic!()
            };
            assert_eq!(event.turn_id.as_deref(), Some(expected), "{kind}");
        }
    }
}

#[test]
fn an_envelope_of_odd_types_is_read_all_the_same() {
    let params = json!({"sessionId": "s", "seq": "12", "turnId": 3, "type": "turn.started", "payload": {"inputId": "i"}});
    let EngineEvent::Session(event) = notification("session/event", Some(&raw(&params))) else {
        panic!()
    };
    assert_eq!((event.seq, event.turn_id.as_deref()), (12, Some("3")));
    assert!(
        matches!(event.body, SessionBody::TurnStarted(turn) if turn.input_id.as_deref() == Some("i"))
    );
    assert!(matches!(
        notification("session/event", Some(&raw(&json!({"seq": 1})))),
        EngineEvent::Malformed { .. }
    ));
    assert!(matches!(
        notification("session/event", Some(&raw(&json!([1])))),
        EngineEvent::Malformed { .. }
    ));
    assert!(matches!(notification("session/event", None), EngineEvent::Other { .. }));
}

#[test]
fn turns() {
    let SessionBody::TurnStarted(turn) = body_of(
        "turn.started",
        &json!({
            "turnNumber": 1, "input": "hi", "inputId": "i", "inputSource": "background_task",
            "inputVisibility": "model-only", "foregroundExecutionId": "f", "messageId": "m",
        }),
    ) else {
        panic!()
    };
    assert_eq!(
        (
            turn.input_source.as_deref(),
            turn.input_visibility.as_deref(),
            turn.foreground_execution_id.as_deref()
        ),
        (Some("background_task"), Some("model-only"), Some("f"))
    );
    assert_eq!(
        (turn.input_id.as_deref(), turn.message_id.as_deref(), turn.input),
        (Some("i"), Some("m"), Some(json!("hi")))
    );

    let SessionBody::TurnCompleted(turn) = body_of(
        "turn.completed",
        &json!({
            "response": "done", "resultType": "error_max_turns", "usage": {"inputTokens": 5}, "cacheStats": {}, "inputId": "i",
        }),
    ) else {
        panic!()
    };
    assert_eq!(
        (turn.result_type.as_deref(), turn.usage, turn.response),
        (Some("error_max_turns"), Some(json!({"inputTokens": 5})), Some(json!("done")))
    );

    for error in [json!({"type": "x", "message": "m", "cause": {"code": 1}}), json!("plain")] {
        let SessionBody::TurnFailed(turn) =
            body_of("turn.failed", &json!({"error": error, "resultType": "cancelled"}))
        else {
            panic!()
        };
        assert_eq!((turn.error, turn.result_type.as_deref()), (error, Some("cancelled")));
    }
}

#[test]
fn steering() {
    let SessionBody::SteerQueued(steer) = body_of(
        "turn.steerQueued",
        &json!({
            "pendingInputId": "p", "inputId": "i", "delivery": "guide", "targetTurnId": "t", "intent": {"sourceCommandId": "c"},
        }),
    ) else {
        panic!()
    };
    assert_eq!(
        (steer.pending_input_id.as_deref(), steer.delivery.as_deref()),
        (Some("p"), Some("guide"))
    );
    assert_eq!(steer.intent, Some(json!({"sourceCommandId": "c"})));
    let SessionBody::SteerDrained(steer) = body_of(
        "turn.steerDrained",
        &json!({
            "pendingInputIds": ["p", "q"], "targetTurnId": "t", "drainedInputs": [{"pendingInputId": "p"}],
        }),
    ) else {
        panic!()
    };
    assert_eq!(
        (steer.pending_input_ids, steer.drained_inputs.map(|inputs| inputs.len())),
        (vec!["p".to_owned(), "q".to_owned()], Some(1))
    );
}

#[test]
fn streaming_in_every_spelling() {
    for message in ["assistantMessageId", "messageId", "messageID"] {
        for call in ["toolCallId", "callId", "callID", "toolCallID"] {
            for kind in ["kind", "type"] {
                let payload = json!({kind: "tool_input_delta", "delta": "a\"\u{1F600}", message: "m", call: "c", "partId": "p", "toolName": "Bash"});
                let SessionBody::Streaming(s) = body_of("model.streaming", &payload) else {
                    panic!()
                };
                assert_eq!(
                    (s.kind, s.delta.as_str()),
                    (StreamKind::ToolInputDelta, "a\"\u{1F600}")
                );
                assert_eq!(
                    (s.part_id.as_deref(), s.tool_name.as_deref()),
                    (Some("p"), Some("Bash"))
                );
                assert_eq!(
                    (s.message_id.as_deref(), s.tool_call_id.as_deref()),
                    (Some("m"), Some("c")),
                    "{message} {call}"
                );
            }
        }
    }
    for (kind, expected) in [
        ("start", StreamKind::Start),
        ("finish", StreamKind::Finish),
        ("error", StreamKind::Error),
        ("text_start", StreamKind::TextStart),
        ("text_delta", StreamKind::TextDelta),
        ("text_end", StreamKind::TextEnd),
        ("reasoning_start", StreamKind::ReasoningStart),
        ("reasoning_delta", StreamKind::ReasoningDelta),
        ("reasoning_end", StreamKind::ReasoningEnd),
        ("tool_input_start", StreamKind::ToolInputStart),
        ("tool_input_end", StreamKind::ToolInputEnd),
        ("tool_call", StreamKind::ToolCall),
        ("new_kind", StreamKind::Unknown),
    ] {
        let SessionBody::Streaming(s) =
            body_of("model.streaming", &json!({"kind": kind, "input": {"a": 1}, "error": "e"}))
        else {
            panic!()
        };
        assert_eq!((s.kind, s.input, s.error), (expected, Some(json!({"a": 1})), Some(json!("e"))));
    }
    let SessionBody::Streaming(s) =
        body_of("model.streaming", &json!({"kind": "text_delta", "delta": null, "done": true}))
    else {
        panic!()
    };
    assert_eq!((s.kind, s.delta.as_str()), (StreamKind::TextDelta, ""));
}

#[test]
fn part_deltas() {
    for (message, part) in [("messageId", "partId"), ("messageID", "partID")] {
        let SessionBody::PartDelta(p) = body_of(
            "part.delta",
            &json!({message: "m", part: "p", "field": "reasoning", "delta": "d"}),
        ) else {
            panic!()
        };
        assert_eq!(
            (p.message_id.as_deref(), p.part_id.as_deref(), p.field.as_deref(), p.delta.as_str()),
            (Some("m"), Some("p"), Some("reasoning"), "d")
        );
    }
}

#[test]
fn tool_stages() {
    let tool = |payload: Value| match body_of("tool.updated", &payload) {
        SessionBody::Tool(tool) => tool,
        other => panic!("{other:?}"),
    };
    let t = tool(json!({
        "kind": "scheduled", "toolCallId": "c", "toolName": "Bash", "input": {"command": "ls"}, "source": "subagent",
        "parentToolCallId": "p", "childSessionId": "cs", "agentId": "a", "agentType": "explore", "description": "d", "background": true,
    }));
    assert_eq!(
        (t.tool_call_id.as_str(), t.tool_name.as_deref(), t.background),
        ("c", Some("Bash"), true)
    );
    assert_eq!(
        (t.source.as_deref(), t.parent_tool_call_id.as_deref(), t.child_session_id.as_deref()),
        (Some("subagent"), Some("p"), Some("cs"))
    );
    assert_eq!(
        (t.agent_id.as_deref(), t.agent_type.as_deref(), t.description.as_deref()),
        (Some("a"), Some("explore"), Some("d"))
    );
    assert!(
        matches!(t.phase, ToolPhase::Scheduled { input: Some(input) } if input == json!({"command": "ls"}))
    );
    let t = tool(json!({"kind": "scheduled", "callID": "c", "inputOmitted": true}));
    assert!(matches!(t.phase, ToolPhase::Scheduled { input: None }));
    assert_eq!(t.tool_call_id, "c");
    assert!(matches!(tool(json!({"type": "started", "callId": "c"})).phase, ToolPhase::Started));
    let t = tool(
        json!({"kind": "progress", "toolCallId": "c", "elapsedMs": 5, "pid": 1, "stdoutTail": "o", "stderrTail": "e", "outputPreview": "p"}),
    );
    let ToolPhase::Progress(progress) = t.phase else { panic!() };
    assert_eq!(
        (progress.elapsed_ms, progress.stdout_tail.as_deref(), progress.stderr_tail.as_deref()),
        (Some(5), Some("o"), Some("e"))
    );
    for result in [json!("text"), json!({"success": false, "content": "x"})] {
        let t =
            tool(json!({"kind": "result", "toolCallId": "c", "result": result, "duration": 12.7}));
        assert!(
            matches!(t.phase, ToolPhase::Result { result: r, duration: Some(12) } if r == result)
        );
    }
    assert!(
        matches!(tool(json!({"kind": "error", "error": {"message": "m"}})).phase, ToolPhase::Error { error } if error == json!({"message": "m"}))
    );
    let t = tool(json!({"kind": "batch", "toolCallIds": ["a", 1, "b"], "errorCount": 1}));
    assert!(
        matches!(t.phase, ToolPhase::Batch { tool_call_ids, error_count: 1 } if tool_call_ids == ["a", "b"])
    );
    assert!(matches!(tool(json!({"kind": "raw", "payload": {}})).phase, ToolPhase::Other));
}

#[test]
fn session_updates_are_told_apart_by_their_keys() {
    let updated = |payload: Value| match body_of("session.updated", &payload) {
        SessionBody::Updated(updated) => updated,
        other => panic!("{other:?}"),
    };
    let u = updated(
        json!({"usage": {"inputTokens": 1000}, "contextWindow": 200_000, "cacheHit": true}),
    );
    assert_eq!(
        (u.context_used, u.context_window, u.task.is_none(), u.raw["cacheHit"].clone()),
        (Some(1000), Some(200_000), true, json!(true))
    );
    let u = updated(json!({"usage": {"inputTokens": null}, "contextWindow": "?"}));
    assert_eq!((u.context_used, u.context_window), (None, None));
    let u = updated(
        json!({"taskId": "b1", "toolCallId": "c", "status": "completed", "outputTail": "o", "cancellable": false, "pid": null}),
    );
    let task = u.task.unwrap();
    assert_eq!(
        (
            task.task_id.as_str(),
            task.status.as_str(),
            task.output_tail.as_deref(),
            task.cancellable
        ),
        ("b1", "completed", Some("o"), Some(false))
    );
    let u = updated(json!({"kind": "api_retry", "attempt": 2, "maxRetries": 5}));
    assert_eq!(u.api_retry.unwrap()["attempt"], 2);
    let u = updated(json!({"mode": "plan", "planEnabled": true}));
    assert_eq!((u.mode.as_deref(), u.plan_enabled), (Some("plan"), Some(true)));
}

#[test]
fn titles_and_mirrors() {
    let SessionBody::Title(title) = body_of(
        "session.titleUpdated",
        &json!({"previousTitle": null, "title": "T", "source": "generated"}),
    ) else {
        panic!()
    };
    assert_eq!((title.title.as_str(), title.source.as_deref()), ("T", Some("generated")));
    for (kind, resolved, user_input) in [
        ("permission.requested", false, false),
        ("permission.resolved", true, false),
        ("userInput.requested", false, true),
        ("userInput.resolved", true, true),
    ] {
        let SessionBody::Interaction(mirror) =
            body_of(kind, &json!({"requestId": "r", "callId": "c"}))
        else {
            panic!()
        };
        assert_eq!((mirror.resolved, mirror.user_input), (resolved, user_input));
        assert_eq!(
            (mirror.request_id.as_deref(), mirror.tool_call_id.as_deref()),
            (Some("r"), Some("c"))
        );
    }
}

#[test]
fn notifications_that_are_no_session_events() {
    let state = json!({"type": "state.updated", "scope": "session", "sessionId": "s", "reason": "mode_changed", "revision": 4, "patch": {"mode": {"current": "plan"}}});
    for method in ["state.updated", "session/state", "workspace/state"] {
        let EngineEvent::State(state) = notification(method, Some(&raw(&state))) else {
            panic!("{method}")
        };
        assert_eq!(
            (state.session_id.as_deref(), state.reason.as_deref()),
            (Some("s"), Some("mode_changed"))
        );
        assert_eq!(state.patch["mode"]["current"], "plan");
    }
    let wrapped = json!({"sessionId": "s", "seq": 0, "type": "state.updated", "payload": {"reason": "prompt_failed"}});
    let EngineEvent::State(state) = notification("session/event", Some(&raw(&wrapped))) else {
        panic!()
    };
    assert_eq!(
        (state.session_id.as_deref(), state.reason.as_deref()),
        (Some("s"), Some("prompt_failed"))
    );

    let frame =
        json!({"wireVersion": 3, "topic": "conversation/s", "frame": {"topic": "conversation/s"}});
    let EngineEvent::Frame { topic, params } =
        notification("v4/conversation/frame", Some(&raw(&frame)))
    else {
        panic!()
    };
    assert_eq!((topic.as_str(), params.get()), ("conversation/s", frame.to_string().as_str()));
    let EngineEvent::Frame { topic, .. } =
        notification("v4/conversation/frame", Some(&raw(&json!({"frame": {"topic": "x"}}))))
    else {
        panic!()
    };
    assert_eq!(topic, "x");

    let storage = json!({"schemaVersion": 1, "phase": "migrating", "elapsedMs": 5, "completed": 1, "total": 2, "errorCode": null});
    let EngineEvent::Storage(state) = notification("startup/storageState", Some(&raw(&storage)))
    else {
        panic!()
    };
    assert_eq!(
        (state.phase.as_str(), state.completed, state.total, state.error_code),
        ("migrating", Some(1), Some(2), None)
    );
    for method in ["process/resourceSample", "v4/telemetry/event"] {
        assert!(matches!(
            notification(method, Some(&raw(&json!({"a": 1})))),
            EngineEvent::Other { .. }
        ));
    }
}

#[test]
fn events_inside_a_result_are_read_like_the_others() {
    let event = raw(
        &json!({"sessionId": "s", "seq": 3, "type": "turn.completed", "payload": {"resultType": "success"}}),
    );
    assert!(matches!(
        session_event(&event),
        Some(SessionEvent { seq: 3, body: SessionBody::TurnCompleted(_), .. })
    ));
    assert!(session_event(&raw(&json!({}))).is_none());
}

/// Not a check but a figure: `cargo test --profile quick --lib a_delta_costs -- --nocapture`.
#[test]
fn a_delta_costs_little() {
    let line = r#"{"method":"session/event","params":{"eventId":"evt_0123456789abcdef","sessionId":"sess_6a1f7f6e-1111-4222-8333-444455556666","turnId":"turn_0123456789","seq":123456,"traceId":"tr_0123456789abcdef","timestamp":1790000000000,"deliveryKind":"desktop-continuous","type":"model.streaming","payload":{"kind":"text_delta","delta":"some words of the reply, about as many ","assistantMessageId":"msg_0123456789abcdef","partId":"part_1","done":false}}}"#;
    let rounds: u32 = if cfg!(debug_assertions) { 1_000 } else { 1_000_000 };
    let start = std::time::Instant::now();
    let mut bytes = 0;
    for _ in 0..rounds {
        let crate::bridge::engine::codec::Frame::Notification { method, params } =
            crate::bridge::engine::codec::parse(line)
        else {
            panic!()
        };
        let EngineEvent::Session(event) = notification(&method, params) else { panic!() };
        let SessionBody::Streaming(streaming) = event.body else { panic!() };
        bytes += streaming.delta.len();
    }
    println!("{:?} a line of {} bytes", start.elapsed() / rounds, line.len());
    assert_eq!(bytes, 39 * rounds as usize);
}

/// A line of the stream, with this payload.
fn line(payload: &Value) -> String {
    let params = json!({"eventId": "e", "sessionId": "s", "turnId": "t", "seq": 7, "timestamp": 1, "type": "model.streaming", "payload": payload});
    json!({"method": "session/event", "params": params}).to_string()
}

#[test]
fn a_streamed_line_read_in_one_pass_is_what_the_general_way_makes_of_it() {
    for payload in [
        json!({"kind": "text_delta", "delta": "a \"quoted\" é\n", "assistantMessageId": "m", "partId": "p"}),
        json!({"type": "reasoning_delta", "text": "t", "messageID": "m", "partID": "p", "turnId": "inner"}),
        json!({"kind": "tool_input_delta", "delta": "{", "callID": "c", "toolName": "Bash", "more": {"x": [1]}}),
        json!({"kind": "tool_call", "toolCallId": "c", "toolName": "Bash", "input": {"command": "ls"}}),
        json!({"kind": "error", "error": {"message": "x"}}),
        json!({}),
    ] {
        let line = line(&payload);
        let fast = streaming_line(&line).unwrap_or_else(|| panic!("the slow way: {line}"));
        let fast = EngineEvent::Session(Box::new(fast.into_event()));
        let params: Value = serde_json::from_str(&line).unwrap();
        let slow = notification("session/event", Some(&raw(&params["params"])));
        assert_eq!(format!("{fast:?}"), format!("{slow:?}"), "{line}");
    }
}

#[test]
fn any_other_line_goes_the_general_way() {
    for line in [
        line(&json!({"kind": 5})),
        line(&json!({"kind": "text_delta", "delta": [1]})),
        line(&json!("text")),
        line(&json!({"kind": "text_delta"})).replace("session/event", "session/other"),
        line(&json!({"kind": "text_delta"})).replacen('{', r#"{"id":4,"#, 1),
        line(&json!({"kind": "text_delta", "delta": "x"})).replace("\"x\"", r#""\ud800""#),
        r#"{"method":"session/event","params":{"type":"turn.started","payload":{"input":"model.streaming"}}}"#.to_owned(),
        r#"["model.streaming"]"#.to_owned(),
        r#"{"method":"session/event","params":["model.streaming"]}"#.to_owned(),
    ] {
        assert!(streaming_line(&line).is_none(), "{line}");
    }
}

fn piece(seq: u64, payload: &Value) -> String {
    line(payload).replace("\"seq\":7", &format!("\"seq\":{seq}"))
}

#[test]
fn lines_of_one_text_join_to_one_event_that_can_be_cut_again() {
    let text = |delta: &str| json!({"kind": "text_delta", "delta": delta, "messageId": "m"});
    let first = piece(7, &text("a\n"));
    let mut event = streaming_line(&first).unwrap().into_event();
    for (seq, delta) in [(8, ""), (9, "bé"), (10, "c")] {
        assert!(streaming_line(&piece(seq, &text(delta))).unwrap().continues(&mut event, 100));
    }
    assert_eq!((event.first_seq(), event.seq), (7, 10));
    let all = event.clone();
    for (seen, rest) in [(5, "a\nbéc"), (6, "a\nbéc"), (7, "béc"), (8, "béc"), (9, "c")] {
        let mut event = all.clone();
        event.skip_seen(seen);
        assert_eq!((event.first_seq(), event.seq), (7.max(seen + 1), 10), "{seen}");
        let SessionBody::Streaming(streaming) = &event.body else { panic!("{event:?}") };
        assert_eq!(streaming.delta, rest, "{seen}");
        for (step, rest) in [(seen.max(6) + 1, None), (9, Some("c"))] {
            if step < 10 {
                event.skip_seen(step);
            }
            let SessionBody::Streaming(streaming) = &event.body else { panic!("{event:?}") };
            assert!(rest.is_none_or(|rest| streaming.delta == rest), "{seen} {step} {event:?}");
        }
    }
}

#[test]
fn a_line_of_another_text_or_with_a_number_left_out_does_not_join() {
    let delta = |kind: &str, id: &str, more: &Value| {
        let mut payload = json!({"kind": kind, "delta": "b", "messageId": id, "toolCallId": "c"});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    };
    let same = delta("text_delta", "m", &json!({}));
    let first = piece(7, &same);
    for (seq, payload) in [
        (9, same.clone()),
        (7, same.clone()),
        (0, same.clone()),
        (8, delta("reasoning_delta", "m", &json!({}))),
        (8, delta("text_end", "m", &json!({}))),
        (8, delta("text_delta", "n", &json!({}))),
        (8, delta("text_delta", "m", &json!({"partId": "p"}))),
        (8, delta("text_delta", "m", &json!({"toolCallId": "d"}))),
        (8, delta("text_delta", "m", &json!({"toolName": "t"}))),
        (8, delta("text_delta", "m", &json!({"input": 1}))),
        (8, delta("text_delta", "m", &json!({"error": 1}))),
        (8, delta("text_delta", "m", &json!({"delta": "x".repeat(8)}))),
    ] {
        let mut event = streaming_line(&first).unwrap().into_event();
        let before = format!("{event:?}");
        let next = piece(seq, &payload);
        assert!(!streaming_line(&next).unwrap().continues(&mut event, 8), "{next}");
        assert_eq!(format!("{event:?}"), before, "{next}");
    }
    for (from, to) in
        [("\"sessionId\":\"s\"", "\"sessionId\":\"r\""), ("\"turnId\":\"t\"", "\"turnId\":\"u\"")]
    {
        let mut event = streaming_line(&first).unwrap().into_event();
        let next = piece(8, &same).replace(from, to);
        assert!(!streaming_line(&next).unwrap().continues(&mut event, 8), "{next}");
    }
    let mut ends =
        streaming_line(&piece(7, &delta("text_end", "m", &json!({})))).unwrap().into_event();
    let next = piece(8, &delta("text_end", "m", &json!({})));
    assert!(!streaming_line(&next).unwrap().continues(&mut ends, 8), "only pieces of text join");
}

/// Spellings of the same id, in the order in which they are believed.
const SPELLINGS: [(&str, &[&str]); 3] = [
    ("message", &["messageId", "messageID"]),
    ("part", &["partId", "partID"]),
    ("call", &["toolCallId", "callId", "callID", "toolCallID"]),
];

proptest::proptest! {
    /// Whichever spellings an event has at once, in whatever order, none makes it unreadable.
    #[test]
    fn every_mixture_of_spellings_is_read(
        present in proptest::collection::vec(proptest::prelude::any::<bool>(), 8),
        backwards in proptest::prelude::any::<bool>(),
    ) {
        let keys: Vec<&str> =
            SPELLINGS.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
        let mut chosen: Vec<String> = keys
            .iter()
            .zip(&present)
            .filter(|(_, present)| **present)
            .map(|(key, _)| format!(r#""{key}":"{key}""#))
            .collect();
        if backwards {
            chosen.reverse();
        }
        let first = |family: usize| {
            SPELLINGS[family].1.iter().find(|key| {
                present[keys.iter().position(|k| k == *key).unwrap()]
            }).copied()
        };
        let with = |rest: &str| {
            let mut fields = vec![rest.to_owned()];
            fields.extend(chosen.iter().cloned());
            fields.join(",")
        };
        let event = |kind: &str, payload: &str| {
            let params = format!(
                r#"{{"sessionId":"s","seq":1,"type":"{kind}","payload":{{{payload}}}}}"#);
            let raw = RawValue::from_string(params).unwrap();
            match notification("session/event", Some(&raw)) {
                EngineEvent::Session(event) => event.body,
                other => panic!("{other:?}"),
            }
        };
        let SessionBody::Streaming(s) =
            event("model.streaming", &with(r#""kind":"text_delta","delta":"d""#))
        else { panic!() };
        proptest::prop_assert_eq!(s.delta, "d");
        proptest::prop_assert_eq!(s.message_id.as_deref(), first(0));
        proptest::prop_assert_eq!(s.part_id.as_deref(), first(1));
        proptest::prop_assert_eq!(s.tool_call_id.as_deref(), first(2));
        let SessionBody::PartDelta(p) = event("part.delta", &with(r#""delta":"d""#))
        else { panic!() };
        proptest::prop_assert_eq!(p.delta, "d");
        proptest::prop_assert_eq!(p.message_id.as_deref(), first(0));
        proptest::prop_assert_eq!(p.part_id.as_deref(), first(1));
        let SessionBody::Tool(t) = event("tool.updated", &with(r#""kind":"started""#))
        else { panic!() };
        proptest::prop_assert_eq!(t.tool_call_id.as_str(), first(2).unwrap_or_default());
        let row: crate::bridge::engine::v4::wire::Row =
            serde_json::from_str(&format!("{{{}}}", with(r#""rowId":7,"kind":"toolCall""#))).unwrap();
        proptest::prop_assert_eq!(row.tool_call_id.as_deref(), first(2));
    }
}
