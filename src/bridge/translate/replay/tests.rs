//! Stored conversations: table tests.
#![allow(clippy::needless_pass_by_value, reason = "test tables read better so")]

use serde_json::{Value, json};

use super::*;

fn user(id: &str, text: &str) -> Value {
    json!({"info": {"id": id, "role": "user"}, "parts": [{"type": "text", "text": text}]})
}

fn assistant(id: &str, parts: Value) -> Value {
    json!({"info": {"messageId": id, "role": "assistant"}, "parts": parts})
}

fn told(messages: Vec<Value>, wanted: Wanted) -> (Vec<Value>, Value) {
    let reply = json!({ "messages": messages }).to_string();
    let target = Target { cwd: Some("/w".into()), ..Target::default() };
    let mut replay = Replay::new(reply.as_str().into(), wanted).unwrap();
    let mut updates = Vec::new();
    while let Some((_, told)) = replay.next(&target) {
        updates.extend(told.into_iter().map(|u| serde_json::to_value(u).unwrap()));
    }
    (updates, replay.meta())
}

fn all(messages: Vec<Value>) -> Vec<Value> {
    told(messages, Wanted::default()).0
}

#[test]
fn a_conversation_is_told_in_its_order_with_its_ids() {
    let got = all(vec![
        user("u1", "Hello"),
        assistant(
            "a1",
            json!([{"type": "step-start"}, {"type": "reasoning", "text": "Hm"}, {"type": "text", "text": "Hi"},
            {"type": "tool", "callID": "c1", "tool": "Read", "state": {"status": "completed", "input": {"file_path": "/w/a"}, "output": "x"}},
            {"type": "text", "text": "hidden", "synthetic": true}, {"type": "text", "text": "Done"}, {"type": "patch", "hash": "h"}]),
        ),
    ]);
    let short: Vec<(&str, &str)> = got
        .iter()
        .map(|u| {
            (
                u["sessionUpdate"].as_str().unwrap(),
                u["messageId"].as_str().or(u["toolCallId"].as_str()).unwrap(),
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            ("user_message_chunk", "u1"),
            ("agent_thought_chunk", "thought_a1"),
            ("agent_message_chunk", "a1"),
            ("tool_call", "c1"),
            ("agent_message_chunk", "a1")
        ]
    );
    assert_eq!(
        got[3],
        json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Read: /w/a", "name": "Read", "kind": "read", "status": "completed",
        "content": [{"type": "content", "content": {"type": "text", "text": "```\nx\n```"}}], "locations": [{"path": "/w/a", "line": 1}],
        "rawInput": {"file_path": "/w/a"}, "_meta": {"claudeCode": {"toolName": "Read"}}})
    );
}

#[test]
fn hidden_and_synthetic_messages_are_left_out() {
    for info in [
        json!({"role": "user", "synthetic": true}),
        json!({"role": "user", "visibility": "model-only"}),
        json!({"role": "user", "semantics": {"kind": "system_reminder"}}),
        json!({"role": "user", "semantics": {"kind": "todo_reminder", "uiVisibility": "visible"}}),
        json!({"role": "user", "semantics": {"kind": "user_prompt", "transcriptVisibility": "hidden"}}),
        json!({"role": "assistant", "semantics": {"kind": "assistant_response", "uiVisibility": "debug"}}),
        json!({"role": "system"}),
        json!({}),
    ] {
        assert_eq!(
            all(vec![json!({"info": info, "parts": [{"type": "text", "text": "x"}]})]),
            Vec::<Value>::new(),
            "{info}"
        );
    }
}

#[test]
fn reminders_are_cut_out_of_the_users_words() {
    for (text, want) in [
        ("fix it <system-reminder>secret</system-reminder> please", Some("fix it  please")),
        ("<system-reminder>only this</system-reminder>", None),
        ("<system-reminder>never closed", None),
        (
            "words\nThe TodoWrite tool hasn't been used recently. Consider it. This is just a gentle reminder - ignore it.",
            Some("words"),
        ),
        (
            "The TodoWrite tool hasn't been used recently. I wonder why",
            Some("The TodoWrite tool hasn't been used recently. I wonder why"),
        ),
        ("  spaces stay ", Some("  spaces stay ")),
    ] {
        let got = all(vec![user("u", text)]);
        assert_eq!(got.first().map(|u| u["content"]["text"].as_str().unwrap()), want, "{text}");
    }
}

#[test]
fn summaries_and_the_like_become_one_closed_card() {
    let compact = json!({"info": {"id": "m", "role": "user", "summary": {"title": "What happened"}, "semantics": {"kind": "compact_summary", "transcriptVisibility": "hidden"}},
        "parts": [{"type": "text", "text": "Long text"}]});
    let handoff = user(
        "m",
        "This session is being continued from a previous conversation that ran out of context.",
    );
    let transcript =
        user("m", "Called the Read tool with the following input: {\"file_path\":\"/a\"}\nmore");
    let task =
        user("m", "<task-notification>\n<summary>Tests &amp; docs</summary></task-notification>");
    for (message, kind, title) in [
        (compact, "compact", "What happened"),
        (handoff, "context-handoff", "Summary of the earlier conversation"),
        (transcript, "tool-transcript", "Read · /a"),
        (task, "task-notification", "Tests & docs"),
    ] {
        let got = all(vec![message]);
        assert_eq!(got.len(), 1);
        assert_eq!(
            (&got[0]["toolCallId"], &got[0]["title"], &got[0]["status"]),
            (&json!("histfold_m"), &json!(title), &json!("completed"))
        );
        assert_eq!(got[0]["_meta"]["zcode"], json!({"collapsed": true, "kind": kind}));
        assert!(got[0]["content"][0]["content"]["text"].is_string());
    }
    let fork = json!({"info": {"id": "t", "role": "user", "semantics": {"kind": "timeline_event"}}, "parts": [{"type": "timeline", "timelineType": "session_fork"}]});
    assert_eq!(all(vec![fork])[0]["title"], "Session forked");
}

#[test]
fn stored_tool_states_are_told_as_they_are_in_the_words_of_the_protocol() {
    for (state, status) in [
        (json!({"status": "completed", "output": "x"}), "completed"),
        (json!({"status": "error", "error": "boom"}), "failed"),
        (json!({"status": "running"}), "in_progress"),
        (json!({"status": "pending"}), "pending"),
        (json!({"status": "completed", "output": "Exit code 2"}), "failed"),
        (json!({"status": "completed", "output": "x", "metadata": {"exitCode": 1}}), "failed"),
        (
            json!({"status": "completed", "output": "x", "metadata": {"perf": {"exitCode": 3}}}),
            "failed",
        ),
        (json!({}), "completed"),
    ] {
        let got = all(vec![assistant(
            "a",
            json!([{"type": "tool", "callId": "c", "tool": "Bash", "state": state}]),
        )]);
        // What is not said is pending.
        assert_eq!(got[0]["status"].as_str().unwrap_or("pending"), status, "{state}");
    }
}

#[test]
fn a_stored_edit_shows_its_diff_and_a_failed_one_the_error_too() {
    let display = json!({"kind": "file_diff", "filePath": "/w/a", "structuredPatch": [{"oldLines": 1, "newStart": 4, "lines": ["-a", "+b"]}]});
    let part = |state: Value| {
        assistant("a", json!([{"type": "tool", "callId": "c", "tool": "Edit", "state": state}]))
    };
    let got = all(vec![part(
        json!({"status": "completed", "input": {"file_path": "/w/a"}, "metadata": {"display": display}}),
    )]);
    assert_eq!(
        got[0]["content"],
        json!([{"type": "diff", "path": "/w/a", "oldText": "a", "newText": "b"}])
    );
    assert_eq!(got[0]["locations"], json!([{"path": "/w/a", "line": 4}]));
    let got = all(vec![part(
        json!({"status": "error", "input": {"file_path": "/w/a", "old_string": "a", "new_string": "b"}, "error": "no match"}),
    )]);
    assert_eq!(
        (&got[0]["content"][0]["type"], &got[0]["content"][1]["content"]["text"]),
        (&json!("diff"), &json!("```\nno match\n```"))
    );
}

#[test]
fn a_message_that_comes_twice_keeps_its_place_and_its_latest_content() {
    let got = all(vec![
        user("u", "old"),
        assistant("a", json!([{"type": "text", "text": "answer"}])),
        user("u", "new"),
    ]);
    assert_eq!(got.len(), 2);
    assert_eq!(got[0]["content"]["text"], "new");
}

#[test]
fn what_cannot_be_read_is_left_out_and_ids_are_made() {
    let got = all(vec![
        json!("x"),
        json!({"info": {"role": "user"}, "parts": [{"type": "text", "text": "a"}]}),
        json!({"info": {"role": "assistant"}, "parts": [{"type": "tool", "tool": "Grep", "state": {}}]}),
    ]);
    assert_eq!(
        (&got[0]["messageId"], &got[1]["toolCallId"]),
        (&json!("hist_0"), &json!("histtool_hist_1_0"))
    );
    assert!(matches!(
        Replay::new("{\"messages\": 1}".into(), Wanted::default()),
        Err(ReplayError::Malformed(_))
    ));
    assert!(Replay::new("{}".into(), Wanted::default()).unwrap().total() == 0);
}

#[test]
fn attachments_are_shown_as_images_or_links() {
    let got = all(vec![json!({"info": {"id": "u", "role": "user"}, "parts": [
        {"type": "file", "mime": "image/png", "url": "data:image/png;base64,QUJD"},
        {"type": "file", "filename": "a.pdf", "mime": "application/pdf", "url": "file:///a.pdf"},
        {"type": "file", "mime": "application/pdf", "url": "data:application/pdf;base64,QUJD"}]})]);
    assert_eq!(
        got.iter().map(|u| u["content"].clone()).collect::<Vec<_>>(),
        [
            json!({"type": "image", "data": "QUJD", "mimeType": "image/png"}),
            json!({"type": "resource_link", "name": "a.pdf", "uri": "file:///a.pdf", "mimeType": "application/pdf"})
        ]
    );
}

/// Five turns of two messages.
fn turns() -> Vec<Value> {
    (0..5)
        .flat_map(|n| {
            [
                user(&format!("u{n}"), "q"),
                assistant(&format!("a{n}"), json!([{"type": "text", "text": "x"}])),
            ]
        })
        .collect()
}

#[test]
fn a_tail_begins_at_a_turn_and_the_pages_before_it_complete_the_history() {
    let (tail, meta) = told(turns(), Wanted { limit: Some(3), ..Wanted::default() });
    assert_eq!(tail[0]["messageId"], "u3");
    assert_eq!(
        (
            &meta["replayedMessages"],
            &meta["replayedTurns"],
            &meta["totalMessages"],
            &meta["totalTurns"],
            &meta["hasMore"]
        ),
        (&json!(4), &json!(2), &json!(10), &json!(5), &json!(true))
    );
    let mut pages = vec![tail];
    let mut cursor = meta["cursor"].as_str().map(str::to_owned);
    while let Some(before) = cursor {
        let (page, meta) =
            told(turns(), Wanted { limit: Some(2), before: Some(before), ..Wanted::default() });
        assert!(page.iter().all(|u| u["_meta"]["zcode"]["earlierPage"] == true));
        pages.insert(0, page);
        cursor = meta["cursor"].as_str().map(str::to_owned);
    }
    let ids: Vec<String> =
        pages.iter().flatten().map(|u| u["messageId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, ["u0", "a0", "u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4"]);
}

#[test]
fn a_limit_of_nothing_gives_the_numbers_alone() {
    let (none, meta) = told(turns(), Wanted { limit: Some(0), ..Wanted::default() });
    assert_eq!((none.len(), &meta["totalTurns"], &meta["hasMore"]), (0, &json!(5), &json!(true)));
    let before = meta["cursor"].as_str().unwrap().to_owned();
    let (page, _) = told(turns(), Wanted { before: Some(before), ..Wanted::default() });
    assert_eq!(page.len(), 10);
}

#[test]
fn a_cursor_that_does_not_fit_is_expired() {
    let (_, meta) = told(turns(), Wanted { limit: Some(2), ..Wanted::default() });
    let cursor = meta["cursor"].as_str().unwrap().to_owned();
    let shrunk = json!({"messages": turns()[..4]}).to_string();
    let changed = json!({"messages": turns().into_iter().skip(1).collect::<Vec<_>>()}).to_string();
    for (reply, cursor) in
        [(&shrunk, cursor.as_str()), (&changed, &cursor), (&changed, "***"), (&changed, "bnVsbA")]
    {
        let wanted = Wanted { before: Some(cursor.to_owned()), ..Wanted::default() };
        assert!(
            matches!(Replay::new(reply.as_str().into(), wanted), Err(ReplayError::CursorExpired)),
            "{cursor}"
        );
    }
}

#[test]
fn what_a_message_is_stands_anywhere_in_it() {
    for (message, id) in [
        (r#"{"info": {"id": "a"}, "parts": [}"#, Some(Some("a"))),
        (r#"{"parts": [{"info": 1}], "info": {"id": "b"}}"#, Some(Some("b"))),
        (r#"{"parts": []}"#, Some(None)),
        (r#"{"info": {}}"#, Some(None)),
        (r#"{"info": 7}"#, None),
        (r#"{"inf\u006f": {"id": "c"}}"#, Some(Some("c"))),
        ("[]", None),
    ] {
        let info = plumbing::info(message);
        assert_eq!(info.as_ref().map(plumbing::Info::id), id, "{message}");
    }
}

fn reply(messages: &[Value]) -> Box<str> {
    json!({ "messages": messages }).to_string().into()
}

/// What is told now: ids and texts.
fn tell(replay: &mut Replay) -> Vec<String> {
    let mut told = Vec::new();
    while let Some((_, updates)) = replay.next(&Target::default()) {
        told.extend(updates.into_iter().map(|u| {
            let u = serde_json::to_value(u).unwrap();
            let id = u["messageId"].as_str().or(u["toolCallId"].as_str()).unwrap();
            let text = u["content"]["text"].as_str().or(u["status"].as_str()).unwrap_or("-");
            format!("{id} {text}")
        }));
    }
    told
}

#[test]
fn a_history_that_grows_is_told_as_far_as_it_is_known_and_nothing_twice() {
    let words = |text: &str| assistant("a1", json!([{"type": "text", "text": text}]));
    let tool = |status: &str| json!({"type": "tool", "callID": "c1", "tool": "Read", "state": {"status": status}});
    let mut replay =
        Replay::new(reply(&[user("u1", "one"), words("be")]), Wanted::default()).unwrap();
    assert_eq!(tell(&mut replay), ["u1 one", "a1 be"]);
    assert_eq!(replay.anchor(), Some("u1"));
    replay.forget_told();
    // The last message was not whole.
    let whole = assistant("a1", json!([{"type": "text", "text": "begun"}, tool("running")]));
    assert_eq!(replay.absorb(reply(&[whole])).unwrap(), Growth::Some);
    assert_eq!(tell(&mut replay), ["a1 gun", "c1 in_progress"]);
    let done = assistant("a1", json!([{"type": "text", "text": "begun"}, tool("completed")]));
    let more = [done.clone(), user("u2", "two")];
    assert_eq!(replay.absorb(reply(&more)).unwrap(), Growth::Some);
    assert_eq!(tell(&mut replay), ["c1 completed", "u2 two"]);
    assert_eq!(replay.anchor(), Some("a1"));
    assert_eq!(replay.absorb(reply(&more[1..])).unwrap(), Growth::None);
    // A store that does not know the anchor hands out everything.
    let all = [user("u1", "one"), done, user("u2", "two")];
    assert_eq!(replay.absorb(reply(&all)).unwrap(), Growth::None);
    assert_eq!(replay.absorb(reply(&[])).unwrap(), Growth::Lost);
    assert_eq!((tell(&mut replay).len(), replay.total(), replay.is_told()), (0, 3, true));
    assert_eq!(replay.meta()["replayedTurns"], 2);
}

#[test]
fn a_history_without_ids_is_read_as_a_whole_again() {
    let message =
        |text: &str| json!({"info": {"role": "user"}, "parts": [{"type": "text", "text": text}]});
    let mut replay = Replay::new(reply(&[message("one")]), Wanted::default()).unwrap();
    assert_eq!((tell(&mut replay), replay.anchor()), (vec!["hist_0 one".to_owned()], None));
    let more = [message("one"), message("two")];
    assert_eq!(replay.absorb(reply(&more)).unwrap(), Growth::Some);
    assert_eq!((tell(&mut replay), replay.anchor()), (vec!["hist_1 two".to_owned()], None));
    assert_eq!(replay.absorb(reply(&more)).unwrap(), Growth::None);
    assert_eq!(replay.absorb(reply(&[])).unwrap(), Growth::Lost);
}

#[test]
fn the_newest_part_of_a_growing_history_ends_where_the_history_does() {
    let wanted = Wanted { limit: Some(2), ..Wanted::default() };
    let mut replay = Replay::new(reply(&turns()[..4]), wanted).unwrap();
    assert_eq!(replay.absorb(reply(&turns()[3..])).unwrap(), Growth::Some);
    assert_eq!(tell(&mut replay).len(), 2);
    assert_eq!(replay.meta()["totalMessages"], turns().len());
    assert_eq!(replay.meta()["hasMore"], true);
}
