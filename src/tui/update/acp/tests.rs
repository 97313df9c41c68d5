use serde_json::json;

use super::*;
use crate::tui::model::transcript::block::BlockKind;
use crate::tui::model::transcript::source;

/// A conversation made from updates as they come over the wire.
fn told(updates: &[Value]) -> Transcript {
    let mut transcript = Transcript::new();
    tell(&mut transcript, updates);
    transcript
}

fn tell(transcript: &mut Transcript, updates: &[Value]) {
    for update in updates {
        match serde_json::from_value::<acp::SessionUpdate>(update.clone()) {
            Ok(update) => apply(transcript, &update, 1000),
            Err(_) => apply_unknown(transcript, update, 1000),
        };
    }
}

/// One line per block: what it is and its source.
fn outline(transcript: &Transcript) -> Vec<String> {
    transcript
        .blocks()
        .iter()
        .map(|block| {
            let name = match &block.kind {
                BlockKind::User(_) => "user".to_owned(),
                BlockKind::Assistant(_) => "agent".to_owned(),
                BlockKind::Thought(_) => "thought".to_owned(),
                BlockKind::Tool(call) => format!("tool[{:?} {}]", call.status, call.title),
                BlockKind::Plan(_) => "plan".to_owned(),
                BlockKind::Notice(notice) => format!("notice[{}]", notice.running),
                BlockKind::TurnEnd(_) => "end".to_owned(),
                BlockKind::Subagent(agent) => format!("agent[{} {}]", agent.title, agent.running),
                BlockKind::Unknown(unknown) => format!("unknown[{}]", unknown.name),
            };
            let text = source::of_block(transcript, block.id).unwrap_or_default();
            let depth = "  ".repeat(usize::from(block.depth));
            format!("{depth}{name} {}", text.replace('\n', "⏎"))
        })
        .collect()
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

#[test]
fn an_empty_plan_is_no_card_unless_it_empties_one() {
    let plan = |entries: Value| json!({"sessionUpdate": "plan", "entries": entries});
    let step = json!([{"content": "read", "priority": "medium", "status": "pending"}]);
    assert_eq!(outline(&told(&[plan(json!([]))])), Vec::<String>::new());
    let emptied = told(&[plan(step), plan(json!([]))]);
    let BlockKind::Plan(left) = &emptied.blocks()[0].kind else { panic!("a plan") };
    assert!(emptied.blocks().len() == 1 && left.entries.is_empty());
}

#[test]
fn what_works_in_the_background_goes_on_when_its_turn_is_over() {
    let task = json!({"status": "in_progress", "_meta": {"backgroundTask": {"taskId": "t"}}});
    let mut t = Transcript::new();
    t.begin_turn("go", vec![], 0);
    let running = json!({"status": "in_progress"});
    tell(&mut t, &[tool("bg", &running), tool("fg", &running), change("bg", &task)]);
    t.end_turn(None, None, 2000);
    assert_eq!(
        outline(&t)[1..3],
        ["tool[Running bg] ".to_owned(), "tool[Cancelled fg] ".to_owned()]
    );
    assert!(t.is_animated());
    tell(&mut t, &[change("bg", &json!({"status": "completed"}))]);
    assert_eq!(outline(&t)[1], "tool[Completed bg] ");
    assert!(!t.is_animated());
    // An agent that is gone works on nothing.
    let mut t = told(&[tool("bg", &running), change("bg", &task)]);
    t.settle(3000);
    assert_eq!(outline(&t), ["tool[Cancelled bg] "]);
}

fn tool(id: &str, more: &Value) -> Value {
    let mut update = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": id});
    merge(&mut update, more);
    update
}

fn change(id: &str, more: &Value) -> Value {
    let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id});
    merge(&mut update, more);
    update
}

fn merge(into: &mut Value, more: &Value) {
    for (name, value) in more.as_object().unwrap() {
        into[name] = value.clone();
    }
}

fn text(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

#[test]
fn pieces_join_and_a_replayed_prompt_closes_the_answer() {
    let t = told(&[
        chunk("user_message_chunk", "one"),
        chunk("agent_message_chunk", "a"),
        chunk("agent_message_chunk", "b"),
        chunk("user_message_chunk", "two"),
        chunk("agent_thought_chunk", "hm"),
        chunk("agent_message_chunk", "c"),
    ]);
    assert_eq!(outline(&t), ["user one", "agent ab", "user two", "thought hm", "agent c"]);
    assert_eq!(t.turn(), 2);
}

#[test]
fn message_ids_tell_messages_apart_and_join_across_a_thought() {
    let with_id = |kind: &str, id: &str, text: &str| {
        let mut update = chunk(kind, text);
        update["messageId"] = json!(id);
        update
    };
    let t = told(&[
        with_id("agent_message_chunk", "m1", "a"),
        with_id("agent_message_chunk", "m2", "b"),
        with_id("agent_thought_chunk", "t1", "hm"),
        with_id("agent_message_chunk", "m2", "c"),
        with_id("agent_message_chunk", "m1", "d"),
    ]);
    assert_eq!(outline(&t), ["agent ad", "agent bc", "thought hm"]);
}

#[test]
fn an_echo_of_the_prompt_is_not_shown_twice() {
    let mut t = Transcript::new();
    t.begin_turn("hello there", vec![], 0);
    tell(
        &mut t,
        &[
            chunk("user_message_chunk", "hello"),
            chunk("user_message_chunk", " there"),
            chunk("agent_message_chunk", "hi"),
        ],
    );
    assert_eq!(outline(&t), ["user hello there", "agent hi"]);
}

#[test]
fn updates_may_come_before_their_call_and_late_ones_do_not_reopen_it() {
    let t = told(&[
        change("x", &json!({"status": "in_progress"})),
        tool("x", &json!({"title": "Run", "kind": "execute", "status": "pending"})),
        change("x", &json!({"status": "completed", "content": [text("ok")]})),
        change("x", &json!({"status": "in_progress", "title": "Run it"})),
        tool("y", &json!({"status": "completed"})),
    ]);
    assert_eq!(outline(&t), ["tool[Completed Run it] ok", "tool[Completed y] "]);
    assert!(!t.is_animated());
}

#[test]
fn content_and_raw_output_are_shown_once() {
    let raw = json!({"output": "from raw\n", "exitCode": 3});
    let t = told(&[
        tool("a", &json!({"content": [text("from content")], "rawOutput": raw})),
        tool("b", &json!({"rawOutput": raw, "status": "failed"})),
        tool("c", &json!({"rawOutput": {"error": "no such file"}, "status": "failed"})),
        tool("d", &json!({"rawInput": {"command": ["ls", "-l"], "cwd": "/"}})),
    ]);
    assert_eq!(
        outline(&t),
        [
            "tool[Pending a] from content",
            "tool[Failed b] from raw⏎",
            "tool[Failed c] ",
            "tool[Pending d] $ ls -l"
        ]
    );
    let BlockKind::Tool(call) = &t.blocks()[1].kind else { panic!() };
    assert_eq!(call.exit.as_ref().and_then(|exit| exit.code), Some(3));
    let BlockKind::Tool(call) = &t.blocks()[2].kind else { panic!() };
    assert_eq!(call.error.as_deref(), Some("no such file"));
}

#[test]
fn terminals_in_metadata_are_joined_to_their_cards() {
    let t = told(&[
        change(
            "x",
            &json!({"_meta": {"terminal_output": {"terminal_id": "w1", "data": "early "}}}),
        ),
        tool(
            "x",
            &json!({
                "content": [{"type": "terminal", "terminalId": "w1"}],
                "_meta": {"terminal_info": {"terminal_id": "w1", "cwd": "/w"}}
            }),
        ),
        change("x", &json!({"_meta": {"terminal_output": {"terminal_id": "w1", "data": "late"}}})),
        change(
            "x",
            &json!({
                "status": "failed",
                "_meta": {"terminal_exit": {"terminal_id": "w1", "exit_code": 2, "signal": null}}
            }),
        ),
    ]);
    assert_eq!(outline(&t), ["tool[Failed x] early late"]);
    let BlockKind::Tool(call) = &t.blocks()[0].kind else { panic!() };
    assert_eq!(call.exit.as_ref().and_then(|exit| exit.code), Some(2));
    assert_eq!(t.terminal("w1").and_then(|w| w.cwd.as_deref()), Some("/w"));
}

#[test]
fn children_go_under_parents_that_may_come_later() {
    let parent = json!({"_meta": {"claudeCode": {"parentToolUseId": "task"}}});
    let t = told(&[
        tool("kid", &parent),
        tool("task", &json!({"title": "Explore"})),
        change("kid", &json!({"status": "completed"})),
        chunk("agent_message_chunk", "on top"),
    ]);
    assert_eq!(outline(&t), ["tool[Pending Explore] ", "  tool[Completed kid] ", "agent on top"]);
    assert_eq!(t.roots().len(), 2);
}

#[test]
fn a_child_session_has_a_card_and_its_tools_keep_their_own_ids() {
    let mut t = told(&[
        json!({"sessionUpdate": "subagent_update", "sessionId": "s2", "title": "Helper", "state": {"state": "running"}}),
        tool("x", &json!({})),
    ]);
    let update: acp::SessionUpdate =
        serde_json::from_value(tool("x", &json!({"title": "inner"}))).unwrap();
    apply_child(&mut t, "s2", &update, 0);
    tell(
        &mut t,
        &[json!({"sessionUpdate": "subagent_update", "sessionId": "s2",
            "state": {"state": "idle", "stopReason": "end_turn"}})],
    );
    let lines = outline(&t);
    assert!(lines[0].starts_with("agent[Helper false]"), "{lines:?}");
    assert_eq!(lines[1..], ["tool[Pending x] ", "  tool[Pending inner] "]);
}

#[test]
fn plans_change_in_place_within_a_turn() {
    let plan = |status: &str| {
        json!({"sessionUpdate": "plan", "entries": [
            {"content": "step", "priority": "high", "status": status}]})
    };
    let mut t = told(&[plan("pending"), plan("completed")]);
    assert_eq!(outline(&t), ["plan - [x] step"]);
    t.begin_turn("again", vec![], 0);
    tell(&mut t, &[plan("pending")]);
    assert_eq!(outline(&t).len(), 3);
    let (_, latest) = t.latest_plan().unwrap();
    assert_eq!(latest.entries.len(), 1);
}

#[test]
fn compaction_is_one_notice_and_unknown_updates_are_plain_cards() {
    let t = told(&[
        json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress"}),
        json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"}),
        json!({"sessionUpdate": "brand_new", "what": [1]}),
        json!({"no": "name"}),
    ]);
    let lines = outline(&t);
    assert_eq!(lines[0], "notice[false] context compacted");
    assert!(lines[1].starts_with("unknown[brand_new]") && lines[1].contains("\"what\""));
    assert!(lines[2].starts_with("unknown[update without a name]"));
}

#[test]
fn what_is_about_the_session_is_left_to_others() {
    let mut t = Transcript::new();
    for update in [
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}),
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": []}),
    ] {
        let update: acp::SessionUpdate = serde_json::from_value(update).unwrap();
        assert_eq!(apply(&mut t, &update, 0), Applied::NotForTranscript);
    }
    assert!(t.is_empty());
}

#[test]
fn two_thousand_outputs_of_a_megabyte_stay_within_memory_and_lose_nothing() {
    let mut t = Transcript::new();
    t.keep_spills();
    let output = "0123456789abcde\n".repeat(65_536);
    let mut spilled = 0;
    for n in 0..300 {
        tell(
            &mut t,
            &[tool(&format!("t{n}"), &json!({"status": "completed", "content": [text(&output)]}))],
        );
        spilled += t.take_spills().iter().map(|write| write.text.len()).sum::<usize>();
    }
    let resident: usize = t
        .blocks()
        .iter()
        .map(|block| match &block.kind {
            BlockKind::Tool(call) => call.resident(),
            _ => 0,
        })
        .sum();
    assert!(resident < 26 * 1024 * 1024, "{resident}");
    assert_eq!(spilled, 300 * output.len());
}

#[test]
fn the_end_of_a_turn_settles_what_still_ran() {
    let mut t = Transcript::new();
    t.begin_turn("go", vec![], 0);
    tell(
        &mut t,
        &[tool("x", &json!({"status": "in_progress"})), chunk("agent_message_chunk", "hm")],
    );
    assert!(t.is_animated());
    t.end_turn(Some("cancelled".to_owned()), None, 5000);
    assert!(!t.is_animated());
    assert_eq!(outline(&t)[1], "tool[Cancelled x] ");
}

#[test]
fn a_card_does_not_name_the_session_of_the_child_that_stands_under_it() {
    let link = json!({"content": [{"type": "session", "sessionId": "sess_subagent_1"}]});
    let both =
        json!({"content": [{"type": "session", "sessionId": "sess_subagent_1"}, text("found it")]});
    let t = told(&[tool("Agent", &link)]);
    assert!(!outline(&t).concat().contains("sess_subagent"), "{:?}", outline(&t));
    let t = told(&[tool("Agent", &link), change("Agent", &both)]);
    let shown = outline(&t).concat();
    assert!(shown.contains("found it") && !shown.contains("sess_subagent"), "{shown}");
}
