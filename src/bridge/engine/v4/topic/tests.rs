use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::bridge::engine::v4::rows::RowKind;
use crate::bridge::engine::v4::wire::RowId;

const NOW: u64 = 1_000;

fn ack(epoch: &str) -> Ack {
    Ack {
        subscription_id: "sub_1".to_owned(),
        mode: Some("snapshot".to_owned()),
        log_epoch: Some(epoch.to_owned()),
    }
}

fn frame(from: u64, to: u64, payload: &Value) -> String {
    json!({"wireVersion": 3, "kind": "complete", "deliveryKind": "online", "logicalFrameId": "lf", "topic": "conversation/s",
           "subscriptionId": "sub_1",
           "frame": {"topic": "conversation/s", "subscriptionId": "sub_1", "fromSeq": from, "toSeq": to, "payload": payload}})
    .to_string()
}

fn snapshot(seq: u64, rows: &Value) -> String {
    let picture = json!({"rows": {"window": rows, "hasMore": false}, "meta": {"title": "T"}, "logEpoch": "e1", "seq": seq});
    frame(seq, seq, &json!({"kind": "snapshot", "snapshot": picture}))
}

fn deltas(from: u64, ops: &[Value]) -> String {
    frame(from, from + ops.len() as u64, &json!({"kind": "deltas", "deltas": ops}))
}

fn text_row(id: u64, text: &str, state: &str) -> Value {
    json!({"rowId": id, "turnId": "t1", "kind": "assistantText", "text": text, "state": state, "assistantResponseId": "m1", "createdAt": 1})
}

fn piece(id: u64, append: &str) -> Value {
    json!({"op": "row.delta", "rowId": id, "path": "text", "append": append})
}

/// A topic that has its first, empty picture at sequence 0.
fn live() -> Topic {
    let mut topic = Topic::new("conversation/s", History::Skip);
    let mut out = Vec::new();
    assert_eq!(topic.subscribed(&ack("e1"), NOW, &mut out), None);
    assert_eq!(topic.on_frame(&snapshot(0, &json!([])), NOW, &mut out), None);
    assert!(!topic.is_stale());
    topic
}

fn apply(topic: &mut Topic, params: &str) -> (Vec<Fact>, Option<Resync>) {
    let mut out = Vec::new();
    let resync = topic.on_frame(params, NOW, &mut out);
    (out, resync)
}

/// The text that facts say, and nothing else.
fn text(facts: &[Fact]) -> String {
    let said = facts.iter().filter_map(|it| {
        if let Fact::Text(_, piece) = it { Some(piece.text.as_str()) } else { None }
    });
    said.collect()
}

#[test]
fn a_character_cut_between_two_deltas_is_whole_again() {
    let mut topic = live();
    let row = json!({"op": "row.appended", "row": text_row(1, "", "streaming")});
    assert_eq!(apply(&mut topic, &deltas(0, &[row])).1, None);
    let cut = |from, half: &str| deltas(from, &[piece(1, "HALF")]).replace("HALF", half);
    for (from, half, shown) in [
        (1, r"a\ud83d", "a"),
        (2, r"\ude00b", "\u{1F600}b"),
        (3, r"\ud83d", ""),
        (4, "c", "\u{fffd}c"),
    ] {
        let (facts, resync) = apply(&mut topic, &halves::mend(&cut(from, half)));
        assert_eq!((resync, text(&facts).as_str()), (None, shown), "{half}");
    }
    let whole = text_row(1, "a\u{1F600}b\u{fffd}cd", "complete");
    let (facts, _) = apply(&mut topic, &deltas(5, &[json!({"op": "row.upserted", "row": whole})]));
    assert_eq!(text(&facts), "d", "offsets still agree");
}

#[test]
fn deltas_that_continue_become_facts_in_order() {
    let mut topic = live();
    let row = json!({"op": "row.appended", "row": text_row(1, "", "streaming")});
    let (facts, resync) = apply(&mut topic, &deltas(0, &[row, piece(1, "Hel"), piece(1, "lo")]));
    assert_eq!(resync, None);
    let [Fact::Opened(head), Fact::Text(_, first), Fact::Text(_, second)] = &facts[..] else {
        panic!("{facts:?}")
    };
    assert_eq!(
        (head.kind, head.message_id.as_deref(), head.turn_id.as_deref()),
        (RowKind::AssistantText, Some("m1"), Some("t1"))
    );
    assert_eq!(
        ((first.at, first.text.as_str()), (second.at, second.text.as_str())),
        ((0, "Hel"), (3, "lo"))
    );
    let done = json!({"op": "row.upserted", "row": text_row(1, "Hello", "complete")});
    let (facts, _) = apply(&mut topic, &deltas(3, &[done]));
    assert!(matches!(&facts[..], [Fact::Closed(_, state)] if state == "complete"), "{facts:?}");
}

#[test]
fn the_older_frame_shape_is_read_too() {
    let mut topic = live();
    let ops = json!([{"op": "row.appended", "row": text_row(1, "hi", "streaming")}]);
    let params = json!({"topic": "conversation/s", "frame": {"topic": "conversation/s", "subscriptionId": "sub_1", "fromSeq": 0,
                        "toSeq": 1, "payload": {"kind": "deltas", "deltas": ops}}});
    let (facts, resync) = apply(&mut topic, &params.to_string());
    assert_eq!((text(&facts).as_str(), resync), ("hi", None));
}

#[test]
fn frames_before_the_reply_are_kept_and_those_of_another_subscription_are_dropped() {
    let mut topic = Topic::new("conversation/s", History::Show);
    let mut out = Vec::new();
    topic.on_frame(
        &snapshot(3, &json!([text_row(1, "early", "streaming")])).replace("sub_1", "sub_0"),
        NOW,
        &mut out,
    );
    topic.on_frame(&snapshot(5, &json!([text_row(1, "early", "streaming")])), NOW, &mut out);
    assert!(out.is_empty() && topic.is_stale());
    assert_eq!(topic.subscribed(&ack("e1"), NOW, &mut out), None);
    assert_eq!(text(&out), "early");
    assert_eq!(topic.base(), Some(Base { log_epoch: "e1".to_owned(), seq: 5 }));
    let (facts, resync) = apply(&mut topic, &deltas(5, &[piece(1, "x")]).replace("sub_1", "sub_0"));
    assert!(facts.is_empty() && resync.is_none());
}

#[test]
fn the_first_picture_is_history_unless_it_is_asked_for() {
    for (history, want) in [(History::Skip, ""), (History::Show, "old")] {
        let mut topic = Topic::new("conversation/s", history);
        let mut out = Vec::new();
        topic.subscribed(&ack("e1"), NOW, &mut out);
        topic.on_frame(&snapshot(5, &json!([text_row(1, "old", "streaming")])), NOW, &mut out);
        assert_eq!(text(&out), want);
        let (facts, _) = apply(&mut topic, &deltas(5, &[piece(1, " new")]));
        assert_eq!(text(&facts), " new");
    }
}

#[test]
fn a_gap_asks_once_and_the_picture_that_answers_yields_only_what_is_new() {
    let mut topic = live();
    let row = json!({"op": "row.appended", "row": text_row(1, "", "streaming")});
    apply(&mut topic, &deltas(0, &[row, piece(1, "one ")]));
    let (facts, resync) = apply(&mut topic, &deltas(3, &[piece(1, "three ")]));
    assert_eq!((facts.len(), resync), (0, Some(Resync::Gap { expected: 2, got: 3 })));
    assert!(topic.is_stale());
    let (facts, resync) = apply(&mut topic, &deltas(4, &[piece(1, "four ")]));
    assert_eq!((facts.len(), resync), (0, None), "a resync is under way");
    let (facts, resync) =
        apply(&mut topic, &snapshot(5, &json!([text_row(1, "one two three four ", "streaming")])));
    assert_eq!((text(&facts).as_str(), resync), ("two three four ", None));
    assert!(matches!(facts[0], Fact::Snapshot { initial: false, hole: false, .. }));
    assert_eq!(text(&apply(&mut topic, &deltas(5, &[piece(1, "five")])).0), "five");
}

#[test]
fn a_gap_may_be_answered_by_the_missing_pieces() {
    let mut topic = live();
    let row = json!({"op": "row.appended", "row": text_row(1, "", "streaming")});
    apply(&mut topic, &deltas(0, &[row]));
    assert!(apply(&mut topic, &deltas(2, &[piece(1, "b")])).1.is_some());
    let (facts, resync) = apply(&mut topic, &deltas(1, &[piece(1, "a"), piece(1, "b")]));
    assert_eq!((text(&facts).as_str(), resync), ("ab", None));
    assert!(!topic.is_stale());
}

#[test]
fn a_frame_that_comes_twice_says_nothing_the_second_time() {
    let mut topic = live();
    let one = deltas(0, &[json!({"op": "row.appended", "row": text_row(1, "x", "streaming")})]);
    assert_eq!(text(&apply(&mut topic, &one).0), "x");
    assert_eq!(apply(&mut topic, &one), (Vec::new(), None));
}

#[test]
fn a_piece_of_a_row_that_never_began_asks_for_a_picture() {
    let mut topic = live();
    assert_eq!(apply(&mut topic, &deltas(0, &[piece(9, "?")])).1, Some(Resync::UnknownRow));
}

#[test]
fn what_cannot_be_read_asks_for_a_picture_and_never_panics() {
    for bad in [
        "",
        "{}",
        "[]",
        "{\"frame\":7}",
        "{\"kind\":\"fragment\"}",
        "{\"frame\":{\"payload\":{\"snapshot\":3}}}",
    ] {
        let mut topic = live();
        let (facts, resync) = apply(&mut topic, bad);
        assert!(facts.is_empty() && resync.is_some(), "{bad}");
    }
}

#[test]
fn unknown_operations_kinds_and_odd_rows_cost_nothing_else() {
    let mut topic = live();
    let ops = [
        json!({"op": "workflowRun.updated", "x": 1}),
        json!({"op": "row.appended", "row": 5}),
        json!({"op": "row.appended", "row": {"rowId": 1, "kind": "hologram", "text": "?"}}),
        json!({"op": "state.updated", "patch": {"queue": "odd", "meta": {"title": "New"}, "novel": 1}}),
        json!({"op": "row.appended", "row": text_row(2, "kept", "streaming")}),
    ];
    let (facts, resync) = apply(&mut topic, &deltas(0, &ops));
    assert_eq!((text(&facts).as_str(), resync), ("kept", None));
    let state = facts
        .iter()
        .find_map(|it| if let Fact::State(patch) = it { Some(patch) } else { None })
        .unwrap();
    assert_eq!(state.meta.as_ref().unwrap().title.as_deref(), Some("New"));
    assert!(state.queue.is_none());
}

#[test]
fn removed_rows_are_reported_with_all_later_ones() {
    let mut topic = live();
    let rows: Vec<Value> = (1..=3)
        .map(|it| json!({"op": "row.appended", "row": text_row(it, "x", "complete")}))
        .collect();
    apply(&mut topic, &deltas(0, &rows));
    let (facts, _) = apply(&mut topic, &deltas(3, &[json!({"op": "row.removed", "fromRowId": 2})]));
    let [Fact::Removed(heads)] = &facts[..] else { panic!("{facts:?}") };
    assert_eq!(
        heads.iter().map(|it| it.row_id.clone()).collect::<Vec<_>>(),
        [RowId::Number(2), RowId::Number(3)]
    );
}

/// A topic with a tool that still runs (row 1) and this many finished texts behind it.
fn long(rows: u64) -> Topic {
    let mut topic = live();
    let append = |row: Value| json!({"op": "row.appended", "row": row});
    let tool = json!({"rowId": 1, "turnId": "t1", "kind": "toolCall", "toolCallId": "c1", "status": "running"});
    apply(&mut topic, &deltas(0, &[append(tool)]));
    for id in 2..rows + 2 {
        apply(&mut topic, &deltas(id - 1, &[append(text_row(id, "said", "completed"))]));
    }
    topic
}

#[test]
fn a_long_session_remembers_its_newest_rows_and_those_that_may_still_change() {
    let mut topic = long(5_000);
    assert!(topic.rows.len() < 300, "{}", topic.rows.len());
    let done =
        json!({"op": "row.upserted", "row": {"rowId": 1, "kind": "toolCall", "status": "success"}});
    let (facts, resync) = apply(&mut topic, &deltas(5_001, &[done]));
    assert!(matches!(&facts[..], [Fact::Tool(_, change)] if change.status == "success"));
    // What was forgotten is no news when it comes again, and needs no picture.
    let again = json!({"op": "row.upserted", "row": text_row(2, "said", "completed")});
    let (more, resync_too) = apply(&mut topic, &deltas(5_002, &[again, piece(3, "x")]));
    assert_eq!((more, resync, resync_too), (vec![], None, None));
}

#[test]
fn a_conversation_cut_back_to_rows_that_were_forgotten_goes_on_from_there() {
    let mut topic = long(1_000);
    let cut = json!({"op": "row.removed", "rowId": 10});
    let (facts, _) = apply(&mut topic, &deltas(1_001, &[cut]));
    assert!(matches!(&facts[..], [Fact::Removed(rows)] if rows.len() >= 128));
    let row = json!({"op": "row.appended", "row": text_row(10, "other", "streaming")});
    let (facts, _) = apply(&mut topic, &deltas(1_002, &[row]));
    assert_eq!(text(&facts), "other");
    // The same by a picture.
    let mut topic = long(1_000);
    let window = json!([text_row(8, "said", "completed"), text_row(9, "said", "completed")]);
    apply(&mut topic, &snapshot(1_001, &window));
    let row = json!({"op": "row.appended", "row": text_row(10, "other", "streaming")});
    let (facts, resync) = apply(&mut topic, &deltas(1_001, &[row]));
    assert_eq!((text(&facts).as_str(), resync), ("other", None));
}

#[test]
fn a_tools_life_is_told_by_pieces_and_changes() {
    let mut topic = live();
    let row = |status: &str, more: Value| {
        let mut row = json!({"rowId": 1, "turnId": "t", "kind": "toolCall", "toolCallId": "c", "toolName": "Bash", "status": status, "inputText": "{\"a\":1}"});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row
    };
    let ops = [
        json!({"op": "row.appended", "row": {"rowId": 1, "kind": "toolCall", "toolCallId": "c", "toolName": "Bash", "status": "inputStreaming", "inputText": ""}}),
        json!({"op": "row.delta", "rowId": 1, "path": "inputText", "append": "{\"a\":1}"}),
        json!({"op": "row.upserted", "row": row("running", json!({"input": {"a": 1}}))}),
        json!({"op": "row.delta", "rowId": 1, "path": "output.text", "append": "out"}),
        json!({"op": "row.upserted", "row": row("success", json!({"input": {"a": 1}, "output": {"text": "output"}}))}),
        json!({"op": "row.upserted", "row": row("success", json!({"output": {"text": "other"}}))}),
    ];
    let (facts, _) = apply(&mut topic, &deltas(0, &ops));
    let told: Vec<String> = facts
        .iter()
        .map(|it| match it {
            Fact::Opened(head) => format!("opened {}", head.tool_name.as_deref().unwrap()),
            Fact::Tool(_, change) => change.status.clone(),
            Fact::InputText(_, piece) | Fact::Output(_, piece) => piece.text.clone(),
            Fact::Input(_, input) => format!("input {input}"),
            Fact::OutputWhole(_, text) => format!("whole {text}"),
            other => panic!("{other:?}"),
        })
        .collect();
    let want = [
        "opened Bash",
        "inputStreaming",
        "{\"a\":1}",
        "input {\"a\":1}",
        "running",
        "out",
        "put",
        "success",
        "whole other",
    ];
    assert_eq!(told, want);
}

#[test]
fn another_log_begins_anew_without_showing_its_rows_again() {
    let mut topic = live();
    apply(
        &mut topic,
        &deltas(0, &[json!({"op": "row.appended", "row": text_row(1, "shown", "complete")})]),
    );
    topic.unsubscribed();
    let mut out = Vec::new();
    topic.subscribed(&Ack { subscription_id: "sub_2".to_owned(), ..ack("e2") }, NOW, &mut out);
    let again = snapshot(0, &json!([text_row(7, "shown", "complete")]))
        .replace("sub_1", "sub_2")
        .replace("e1", "e2");
    topic.on_frame(&again, NOW, &mut out);
    assert_eq!(text(&out), "");
    assert!(matches!(out[0], Fact::Snapshot { initial: true, .. }));
}

fn far_picture(topic: &mut Topic) -> Option<Resync> {
    apply(topic, &deltas(0, &[json!({"op": "row.appended", "row": text_row(1, "a", "complete")})]));
    let far = snapshot(99, &json!([text_row(80, "z", "complete")]))
        .replace("\"hasMore\":false", "\"hasMore\":true");
    let (facts, resync) = apply(topic, &far);
    assert!(facts.is_empty(), "nothing of it is said before the rows between: {facts:?}");
    resync
}

fn page(rows: &Value, has_more: bool) -> Option<RowsRange> {
    serde_json::from_value(json!({"rows": rows, "hasMore": has_more, "atSeq": 101})).ok()
}

#[test]
fn the_rows_between_a_picture_and_what_is_known_are_read_page_by_page() {
    let mut topic = live();
    let hole = |before: u64| Some(Resync::Hole { before: RowId::Number(before), picture: 1 });
    assert_eq!(far_picture(&mut topic), hole(80));
    assert!(topic.is_stale());
    // A frame that comes meanwhile waits for its turn; what the page had already is not said again.
    let (facts, resync) = apply(&mut topic, &deltas(99, &[piece(79, "y"), piece(80, "!")]));
    assert_eq!((facts.len(), resync), (0, None));
    let mut out = Vec::new();
    let rows = json!([text_row(79, "xy", "streaming")]);
    assert_eq!(topic.older_rows(1, page(&rows, true), NOW, &mut out), hole(79));
    assert!(out.is_empty());
    let rows = json!([text_row(1, "a", "complete"), text_row(40, "m", "complete")]);
    assert_eq!(topic.older_rows(1, page(&rows, false), NOW, &mut out), None);
    assert_eq!(text(&out), "mxyz!");
    assert!(!topic.is_stale());
}

#[test]
fn rows_that_were_lost_after_an_empty_picture_are_read_page_by_page_too() {
    let mut topic = live();
    let tail = json!({"rows": {"window": [text_row(9, "nine", "complete")], "hasMore": true}, "logEpoch": "e1", "seq": 9});
    let far = frame(9, 9, &json!({"kind": "snapshot", "snapshot": tail}));
    let (facts, resync) = apply(&mut topic, &far);
    assert_eq!(resync, Some(Resync::Hole { before: RowId::Number(9), picture: 1 }));
    assert_eq!(text(&facts), "", "nothing is shown before what stands before it");
    let mut out = Vec::new();
    let first = page(&json!([text_row(8, "eight ", "complete")]), false);
    assert_eq!(topic.older_rows(1, first, NOW, &mut out), None);
    assert_eq!(text(&out), "eight nine");
}

#[test]
fn a_childs_picture_is_shown_even_when_the_rows_before_it_cannot_be_had() {
    let mut topic = Topic::new("conversation/s", History::Show);
    let mut out = Vec::new();
    topic.subscribed(&ack("e1"), NOW, &mut out);
    let tail = json!({"rows": {"window": [text_row(9, "nine", "complete")], "hasMore": true}, "logEpoch": "e1", "seq": 9});
    let far = frame(9, 9, &json!({"kind": "snapshot", "snapshot": tail}));
    assert!(matches!(apply(&mut topic, &far).1, Some(Resync::Hole { .. })));
    topic.older_rows(1, None, NOW, &mut out);
    assert_eq!(text(&out), "nine");
}

#[test]
fn rows_that_cannot_be_had_leave_a_picture_of_which_nothing_is_said() {
    let mut topic = live();
    far_picture(&mut topic);
    let mut out = Vec::new();
    assert_eq!(topic.older_rows(1, None, NOW, &mut out), None);
    assert!(matches!(out[0], Fact::Snapshot { initial: false, hole: true, .. }), "{out:?}");
    assert_eq!(text(&out), "");
}

#[test]
fn a_picture_that_waits_for_pages_is_dropped_when_another_log_begins() {
    let mut topic = live();
    assert!(far_picture(&mut topic).is_some());
    let mut out = Vec::new();
    let ack = Ack { mode: Some("snapshot".to_owned()), ..ack("e2") };
    // The new log's own picture came before the reply to the resync did.
    let anew = snapshot(5, &json!([text_row(1080, "z", "complete")])).replace("e1", "e2");
    assert_eq!(topic.on_frame(&anew, NOW, &mut out), None);
    assert_eq!(topic.resynced(&ack, NOW, &mut out), None);
    assert!(
        matches!(&out[0], Fact::Snapshot { initial: true, unsaid, .. } if *unsaid == ["t1"]),
        "{out:?}"
    );
    let said = page(&json!([text_row(40, "m", "complete")]), false);
    assert_eq!(topic.older_rows(1, said, NOW, &mut out), None);
    assert_eq!(text(&out), "", "neither the old picture nor its pages are said");
    assert!(!topic.is_stale());
}

#[test]
fn a_page_for_a_picture_that_no_longer_waits_is_passed_over() {
    let mut topic = live();
    assert!(far_picture(&mut topic).is_some());
    let mut out = Vec::new();
    topic.unsubscribed();
    topic.subscribed(&ack("e1"), NOW, &mut out);
    let far = snapshot(99, &json!([text_row(80, "z", "complete")]))
        .replace("\"hasMore\":false", "\"hasMore\":true");
    let before = RowId::Number(80);
    assert_eq!(apply(&mut topic, &far).1, Some(Resync::Hole { before, picture: 2 }));
    assert_eq!(topic.older_rows(1, page(&json!([]), false), NOW, &mut out), None);
    assert!(topic.is_stale(), "the second one still waits");
    let rows = json!([text_row(1, "a", "complete"), text_row(79, "y", "complete")]);
    topic.older_rows(2, page(&rows, false), NOW, &mut out);
    assert_eq!(text(&out), "yz");
}

proptest! {
    /// Whatever frames are lost, doubled or swapped: once the last resync is answered, the facts have said the text once.
    #[test]
    fn lost_doubled_and_swapped_frames_never_cost_or_repeat_text(
        pieces in proptest::collection::vec("[a-zé✓ ]{1,6}", 1..40),
        faults in proptest::collection::vec(0_u8..8, 40),
        fragment in 0_usize..3,
    ) {
        let mut topic = live();
        let mut said = String::new();
        let mut so_far = String::new();
        let mut seq = 1;
        let mut held: Option<String> = None;
        let mut take = |topic: &mut Topic, params: &str, picture: &str, at: u64| {
            let mut out = Vec::new();
            for part in cut(params, fragment) {
                if topic.on_frame(&part, NOW, &mut out).is_some() {
                    let answer = snapshot(at, &json!([text_row(1, picture, "streaming")]));
                    assert_eq!(topic.on_frame(&answer, NOW, &mut out), None);
                }
            }
            said.push_str(&text(&out));
        };
        take(&mut topic, &deltas(0, &[json!({"op": "row.appended", "row": text_row(1, "", "streaming")})]), "", 1);
        for (piece_text, fault) in pieces.iter().zip(&faults) {
            let params = deltas(seq, &[piece(1, piece_text)]);
            so_far.push_str(piece_text);
            seq += 1;
            match fault {
                0 => {}
                1 => { take(&mut topic, &params, &so_far, seq); take(&mut topic, &params, &so_far, seq); }
                2 => held = Some(params),
                _ => take(&mut topic, &params, &so_far, seq),
            }
            if *fault != 2 && let Some(late) = held.take() { take(&mut topic, &late, &so_far, seq); }
        }
        let last = deltas(seq, &[piece(1, "END")]);
        so_far.push_str("END");
        take(&mut topic, &last, &so_far, seq + 1);
        prop_assert_eq!(said, so_far);
    }
}

/// Cuts a complete frame into `parts` fragments; 0 leaves it whole.
fn cut(params: &str, parts: usize) -> Vec<String> {
    use base64::Engine as _;
    let value: Value = serde_json::from_str(params).unwrap();
    if parts == 0 {
        return vec![params.to_owned()];
    }
    let text = value["frame"].to_string();
    let chunks: Vec<&[u8]> = text.as_bytes().chunks(text.len().div_ceil(parts)).collect();
    let fragment = |(index, chunk): (usize, &&[u8])| {
        let data = base64::engine::general_purpose::STANDARD.encode(chunk);
        json!({"wireVersion": 3, "kind": "fragment", "topic": "conversation/s", "subscriptionId": "sub_1", "logicalFrameId": "lf",
               "fragmentIndex": index, "fragmentCount": chunks.len(), "logicalBytes": text.len(), "dataBase64": data,
               "checksum": {"algorithm": "crc32", "value": crc32fast::hash(text.as_bytes())}})
        .to_string()
    };
    chunks.iter().enumerate().map(fragment).collect()
}
