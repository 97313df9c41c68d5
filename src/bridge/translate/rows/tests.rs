use std::sync::Arc;

use agent_client_protocol::v1::schema as acp;
use proptest::prelude::*;

use super::*;
use crate::bridge::engine::event::{ToolProgress, TurnStarted};
use crate::bridge::engine::v4::wire::RowId;
use crate::bridge::translate::{ClientTraits, Output, Translator};

fn head(id: u64, kind: RowKind) -> Arc<RowHead> {
    let is_tool = kind == RowKind::ToolCall;
    Arc::new(RowHead {
        row_id: RowId::Number(id),
        kind,
        turn_id: Some("t1".to_owned()),
        message_id: (!is_tool).then(|| "m1".to_owned()),
        tool_call_id: is_tool.then(|| "call_1".to_owned()),
        tool_name: is_tool.then(|| "Bash".to_owned()),
        parent_tool_call_id: None,
        child_session_id: None,
    })
}

fn legacy(body: SessionBody) -> SessionEvent {
    SessionEvent { session_id: "s".to_owned(), seq: 1, turn_id: Some("t1".to_owned()), body }
}

fn delta(text: &str) -> SessionEvent {
    legacy(text_of(
        TextKind::Message,
        Shown { owner: Some("m1".to_owned()), text: text.to_owned() },
    ))
}

fn legacy_tool(phase: ToolPhase) -> SessionEvent {
    legacy(tool(&head(9, RowKind::ToolCall), phase))
}

fn piece(at: usize, text: &str) -> Piece {
    Piece { at, text: text.to_owned() }
}

/// Both channels into one translator; collects what the client sees.
struct Rig {
    rows: Rows,
    translator: Translator,
    out: Output,
}

impl Rig {
    fn new() -> Self {
        let mut rows = Rows::default();
        rows.set_live(true);
        rows.expect(true);
        Self { rows, translator: Translator::new(ClientTraits::default()), out: Output::default() }
    }

    fn legacy(&mut self, event: &SessionEvent) {
        if let Some(event) = self.rows.on_legacy(event) {
            self.translator.on_event(&event, &mut self.out);
        }
    }

    fn fact(&mut self, fact: &Fact) {
        let mut events = Vec::new();
        self.rows.on_fact("s", fact, &mut events);
        for event in events {
            self.translator.on_event(&event, &mut self.out);
        }
    }

    fn text(&self) -> String {
        let said = self.out.updates.iter().filter_map(|it| match it {
            acp::SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
                acp::ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            },
            _ => None,
        });
        said.collect()
    }

    fn statuses(&self) -> Vec<acp::ToolCallStatus> {
        let told = self.out.updates.iter().filter_map(|it| match it {
            acp::SessionUpdate::ToolCall(call) => Some(call.status),
            acp::SessionUpdate::ToolCallUpdate(update) => update.fields.status,
            _ => None,
        });
        told.collect()
    }
}

#[test]
fn a_text_that_comes_by_both_channels_reaches_the_client_once() {
    let mut rig = Rig::new();
    rig.legacy(&legacy(SessionBody::TurnStarted(TurnStarted::default())));
    rig.legacy(&delta("He"));
    rig.fact(&Fact::Text(head(1, RowKind::AssistantText), piece(0, "Hello wor")));
    rig.legacy(&delta("llo world"));
    rig.fact(&Fact::Text(head(1, RowKind::AssistantText), piece(9, "ld!")));
    assert_eq!(rig.text(), "Hello world!");
}

#[test]
fn a_card_is_made_once_and_its_result_is_the_legacy_one() {
    let mut rig = Rig::new();
    let row = head(1, RowKind::ToolCall);
    rig.fact(&Fact::Opened(row.clone()));
    rig.fact(&Fact::InputText(row.clone(), piece(0, "{\"command\":\"ls\"}")));
    rig.legacy(&legacy_tool(ToolPhase::Scheduled { input: Some(json!({"command": "ls"})) }));
    let done = ToolChange {
        status: "success".to_owned(),
        output: Some(json!({"text": "a"})),
        ..ToolChange::default()
    };
    rig.fact(&Fact::Tool(
        row.clone(),
        ToolChange { status: "running".to_owned(), ..ToolChange::default() },
    ));
    rig.fact(&Fact::Tool(row, done));
    let failed = json!({"success": true, "content": "Exit code 3", "perf": {"exitCode": 3}});
    rig.legacy(&legacy_tool(ToolPhase::Result { result: failed, duration: None }));
    assert!(rig.rows.results(None).is_empty());
    assert_eq!(
        rig.statuses(),
        [
            acp::ToolCallStatus::Pending,
            acp::ToolCallStatus::InProgress,
            acp::ToolCallStatus::Failed
        ]
    );
}

#[test]
fn a_result_that_only_the_rows_had_is_said_at_the_turns_end() {
    let mut rows = Rows::default();
    let mut out = Vec::new();
    let done = ToolChange {
        status: "success".to_owned(),
        output: Some(json!({"text": "a"})),
        ..ToolChange::default()
    };
    rows.on_fact("s", &Fact::Tool(head(1, RowKind::ToolCall), done), &mut out);
    assert!(out.is_empty());
    let [event] = &rows.results(Some("t1"))[..] else { panic!() };
    let SessionBody::Tool(ToolUpdated { phase: ToolPhase::Result { result, .. }, .. }) =
        &event.body
    else {
        panic!()
    };
    assert_eq!(result, &json!({"success": true, "content": "a"}));
    assert!(rows.results(None).is_empty(), "said once");
}

#[test]
fn output_comes_from_the_rows_while_they_flow_and_from_the_tails_when_they_stop() {
    let mut rig = Rig::new();
    let row = head(1, RowKind::ToolCall);
    let tail = |text: &str| {
        legacy_tool(ToolPhase::Progress(ToolProgress {
            stdout_tail: Some(text.to_owned()),
            ..ToolProgress::default()
        }))
    };
    rig.fact(&Fact::Opened(row.clone()));
    rig.legacy(&tail("one\n"));
    rig.fact(&Fact::Output(row.clone(), piece(0, "one\ntwo\n")));
    rig.legacy(&tail("one\ntwo\nthree\n"));
    rig.rows.set_live(false);
    rig.legacy(&tail("one\ntwo\nthree\n"));
    let shown: Vec<String> = rig
        .out
        .updates
        .iter()
        .filter_map(|it| {
            let acp::SessionUpdate::ToolCallUpdate(update) = it else { return None };
            let content = update.fields.content.as_ref()?;
            serde_json::to_value(content)
                .ok()?
                .pointer("/0/content/text")?
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    let plain: Vec<String> = shown
        .iter()
        .map(|it| it.replace("```console\n", "").replace("\n```", "").replace("```\n", ""))
        .collect();
    assert_eq!(plain.len(), 3, "{plain:?}");
    assert!(plain[0].contains("one") && !plain[0].contains("two"), "{plain:?}");
    assert!(plain[1].contains("two") && !plain[1].contains("three"), "{plain:?}");
    assert!(plain[2].contains("three"), "{plain:?}");
}

#[test]
fn a_rows_turn_is_named_only_when_the_legacy_channel_knows_it() {
    let mut rows = Rows::default();
    let mut out = Vec::new();
    rows.on_fact("s", &Fact::Text(head(1, RowKind::AssistantText), piece(0, "a")), &mut out);
    assert!(rows.on_legacy(&legacy(SessionBody::TurnStarted(TurnStarted::default()))).is_some());
    rows.on_fact("s", &Fact::Text(head(1, RowKind::AssistantText), piece(1, "b")), &mut out);
    let turns: Vec<Option<&str>> = out.iter().map(|it| it.turn_id.as_deref()).collect();
    assert_eq!(turns, [None, Some("t1")]);
}

#[test]
fn a_childs_facts_are_marked_with_their_parent() {
    let row = head(1, RowKind::ToolCall);
    let event = child_event("sess_child", Some("call_parent"), &Fact::Opened(row)).unwrap();
    let SessionBody::Tool(tool) = event.body else { panic!() };
    assert_eq!(tool.parent_tool_call_id.as_deref(), Some("call_parent"));
    assert_eq!(tool.source.as_deref(), Some("subagent"));
    let text = Fact::Text(head(2, RowKind::Reasoning), piece(0, "hm"));
    let event = child_event("sess_child", None, &text).unwrap();
    assert!(
        matches!(event.body, SessionBody::Streaming(it) if it.kind == StreamKind::ReasoningDelta && it.delta == "hm")
    );
}

#[test]
fn a_turn_whose_rows_did_not_all_come_is_told_by_the_legacy_channel_and_the_next_one_by_both() {
    let mut rig = Rig::new();
    let started = SessionBody::TurnStarted(TurnStarted::default());
    rig.legacy(&legacy(started));
    rig.rows.miss(&["t1".to_owned()]);
    let mut said = Vec::new();
    let row = head(1, RowKind::AssistantText);
    rig.rows.on_fact("s", &Fact::Text(row, piece(0, "late")), &mut said);
    assert!(said.is_empty(), "rows of it would be out of order: {said:?}");
    assert!(rig.rows.on_legacy(&delta("first ")).is_some());
    // The rows of the next turn are earlier than the event that starts it.
    let mut next = RowHead::clone(&head(2, RowKind::AssistantText));
    next.turn_id = Some("t2".to_owned());
    next.message_id = Some("m2".to_owned());
    rig.rows.on_fact("s", &Fact::Text(Arc::new(next), piece(0, "first of the next")), &mut said);
    let whole = |it: &SessionEvent| matches!(&it.body, SessionBody::Streaming(it) if it.delta == "first of the next");
    assert!(
        said.len() == 1 && said.iter().all(whole),
        "it is another text, however alike: {said:?}"
    );
}

#[test]
fn an_input_that_the_events_told_is_not_told_again() {
    let mut rig = Rig::new();
    let row = head(1, RowKind::ToolCall);
    rig.fact(&Fact::Opened(row.clone()));
    rig.legacy(&legacy_tool(ToolPhase::Scheduled { input: Some(json!({"command": "ls"})) }));
    let mut events = Vec::new();
    rig.rows.on_fact("s", &Fact::Input(row, json!({"command": "ls"})), &mut events);
    assert!(events.is_empty(), "{events:?}");
}

#[test]
fn rows_that_name_turns_in_their_own_way_are_not_heard_after_their_turn() {
    let mut rig = Rig::new();
    let own = |turn: &str, id: u64| {
        let row = RowHead::clone(&head(id, RowKind::AssistantText));
        let name = Some(format!("m{id}"));
        Arc::new(RowHead { turn_id: Some(turn.to_owned()), message_id: name, ..row })
    };
    rig.legacy(&legacy(SessionBody::TurnStarted(TurnStarted::default())));
    assert!(rig.rows.tells_of("x1") && !rig.rows.tells_of("x2"), "the first one is this turn");
    rig.fact(&Fact::Text(own("x1", 1), piece(0, "in time")));
    rig.rows.turn_over(Some("t1"));
    rig.fact(&Fact::Text(own("x1", 2), piece(0, "too late")));
    assert_eq!(rig.text(), "in time");
    assert!(!rig.rows.tells_of("x2"), "no turn runs");
}

/// Which channel says the next thing of a running command.
#[derive(Debug, Clone)]
enum Streamed {
    Rows(String),
    Stdout(String),
    Stderr(String),
    /// The rows fall silent.
    Silence,
}

fn streamed() -> impl Strategy<Value = Streamed> {
    let text = || "[ab\n]{1,6}";
    prop_oneof![
        4 => text().prop_map(Streamed::Rows),
        4 => text().prop_map(Streamed::Stdout),
        2 => text().prop_map(Streamed::Stderr),
        1 => Just(Streamed::Silence),
    ]
}

proptest! {
    #[test]
    fn every_line_of_the_final_output_is_on_the_card_whatever_was_streamed_and_by_whom(
        streamed in proptest::collection::vec(streamed(), 0..8),
        whole in "[ab\n]{0,24}",
        terminal in any::<bool>(),
        by_rows in any::<bool>(),
    ) {
        let traits = ClientTraits { terminal_output: terminal, ..ClientTraits::default() };
        let mut rig = Rig { translator: Translator::new(traits), ..Rig::new() };
        let row = head(1, RowKind::ToolCall);
        rig.fact(&Fact::Opened(row.clone()));
        let (mut at, mut tails) = (0, [String::new(), String::new()]);
        for said in streamed {
            match said {
                Streamed::Rows(text) => {
                    rig.fact(&Fact::Output(row.clone(), piece(at, &text)));
                    at += text.len();
                }
                Streamed::Stdout(text) => tails[0].push_str(&text),
                Streamed::Stderr(text) => tails[1].push_str(&text),
                Streamed::Silence => rig.rows.set_live(false),
            }
            let [stdout, stderr] = tails.clone().map(Some);
            let progress = ToolProgress { stdout_tail: stdout, stderr_tail: stderr, ..ToolProgress::default() };
            rig.legacy(&legacy_tool(ToolPhase::Progress(progress)));
        }
        let output = json!({"text": whole, "exitCode": 0});
        let done = ToolChange { status: "success".into(), output: Some(output), ..ToolChange::default() };
        rig.fact(&Fact::Tool(row, done));
        if !by_rows {
            let result = json!({"success": true, "content": whole});
            rig.legacy(&legacy_tool(ToolPhase::Result { result, duration: None }));
        }
        for event in rig.rows.results(None) {
            rig.translator.on_event(&event, &mut rig.out);
        }
        let updates: Vec<Value> =
            rig.out.updates.iter().map(|it| serde_json::to_value(it).unwrap()).collect();
        let data = updates.iter().filter_map(|it| it.pointer("/_meta/terminal_output/data")?.as_str());
        let content = updates.iter().rev().find_map(|it| it.pointer("/content/0/content/text")?.as_str());
        let shown = if terminal { data.collect() } else { content.unwrap_or_default().to_owned() };
        for line in whole.lines() {
            prop_assert!(shown.contains(line.trim_end()), "{line:?} is not in {shown:?}");
        }
        let ends = rig.statuses().iter().filter(|it| **it == acp::ToolCallStatus::Completed).count();
        prop_assert_eq!(ends, 1);
    }
}
