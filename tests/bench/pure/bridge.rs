//! The bridge's pure parts: engine line → event → ACP update → line, and the V4 assembler.

use std::hint::black_box;

use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};
use zcode_acp::bridge::engine::event::EngineEvent;
use zcode_acp::bridge::engine::read_notification;
use zcode_acp::bridge::engine::v4::topic::{Ack, History, Topic};
use zcode_acp::bridge::translate::{ClientTraits, Output, Translator};

use crate::best;
use crate::report::Report;

const PIECE: &str = "the quick brown fox ";

pub(crate) fn measure(report: &mut Report) {
    if report.wants("line") {
        line(report);
    }
    if report.wants("translate") {
        translate(report);
    }
    if report.wants("rows") {
        rows(report);
    }
}

fn delta_line(seq: u64) -> String {
    let payload = json!({"kind": "text_delta", "delta": PIECE, "assistantMessageId": "msg_1", "partId": "part_1"});
    let event = json!({"sessionId": "sess_1", "seq": seq, "timestamp": 1, "turnId": "turn_1", "type": "model.streaming", "payload": payload});
    json!({"method": "session/event", "params": event}).to_string()
}

fn event(seq: u64) -> zcode_acp::bridge::engine::event::SessionEvent {
    match read_notification(&delta_line(seq)) {
        Some(EngineEvent::Session(event)) => *event,
        other => unreachable!("{other:?}"),
    }
}

fn line(report: &mut Report) {
    let line = delta_line(7);
    let cost = best(3, 20_000, || drop(black_box(read_notification(black_box(&line)))));
    report.add(("line", "engine line to event"), cost, "µs", 1.5, 15.0);
    // A result of 8 MB in a notification's clothes: passed over, not turned into a tree.
    let big = json!({"method": "v4/conversation/frame", "params": {"topic": "conversation/s", "text": "x".repeat(8 << 20)}});
    let big = big.to_string();
    let cost = best(3, 3, || drop(black_box(read_notification(&big))));
    report.add(("line", "a frame of 8 MB, to its topic"), cost / 1e3, "ms", 20.0, 200.0);
    let update = chunk();
    let cost = best(3, 20_000, || {
        let note = acp::SessionNotification::new("session", update.clone());
        drop(black_box(serde_json::to_string(&note).unwrap()));
    });
    report.add(("line", "update to ACP line"), cost, "µs", 1.0, 10.0);
}

fn chunk() -> acp::SessionUpdate {
    let mut output = Output::default();
    Translator::new(ClientTraits::default()).on_event(&event(1), &mut output);
    output.updates.pop().expect("a chunk")
}

fn translate(report: &mut Report) {
    let event = event(1);
    let cost = |pieces: u64| {
        let mut translator = Translator::new(ClientTraits::default());
        let mut output = Output::default();
        let mut one = || {
            translator.on_event(&event, &mut output);
            output.updates.clear();
        };
        for _ in 0..pieces {
            one();
        }
        best(3, 5_000, &mut one)
    };
    let (early, late) = (cost(100), cost(report.pick(1_000_000, 100_000)));
    report.add(("translate", "event to update"), early, "µs", 0.5, 8.0);
    report.add(("translate", "late in a long message, over early"), late / early, "x", 1.1, 2.5);
}

/// One frame with one piece of text for row 1.
fn frame(from: u64, payload: &Value, to: u64) -> String {
    json!({"wireVersion": 3, "kind": "complete", "deliveryKind": "online", "logicalFrameId": "lf", "topic": "conversation/s",
           "subscriptionId": "sub_1",
           "frame": {"topic": "conversation/s", "subscriptionId": "sub_1", "fromSeq": from, "toSeq": to, "payload": payload}})
    .to_string()
}

fn rows(report: &mut Report) {
    let mut topic = Topic::new("conversation/s", History::Skip);
    let mut facts = Vec::new();
    let ack = Ack {
        subscription_id: "sub_1".to_owned(),
        mode: Some("snapshot".to_owned()),
        log_epoch: Some("e1".to_owned()),
    };
    assert_eq!(topic.subscribed(&ack, 1, &mut facts), None);
    let picture = json!({"rows": {"window": [], "hasMore": false}, "meta": {"title": "T"}, "logEpoch": "e1", "seq": 0});
    let picture = json!({"kind": "snapshot", "snapshot": picture});
    assert_eq!(topic.on_frame(&frame(0, &picture, 0), 1, &mut facts), None);
    let row = json!({"rowId": 1, "turnId": "t1", "kind": "assistantText", "text": "", "state": "streaming", "assistantResponseId": "m1", "createdAt": 1});
    let begin = json!({"kind": "deltas", "deltas": [{"op": "row.appended", "row": row}]});
    assert_eq!(topic.on_frame(&frame(0, &begin, 1), 1, &mut facts), None);
    let piece = json!({"kind": "deltas", "deltas": [{"op": "row.delta", "rowId": 1, "path": "text", "append": PIECE}]});
    let mut seq = 1;
    let mut cost = |pieces: u64| {
        let frames: Vec<String> = (seq..seq + pieces).map(|n| frame(n, &piece, n + 1)).collect();
        seq += pieces;
        let began = std::time::Instant::now();
        for text in &frames {
            assert_eq!(topic.on_frame(text, 1, &mut facts), None);
            facts.clear();
        }
        began.elapsed().as_secs_f64() * 1e6 / pieces as f64
    };
    cost(500);
    let early = cost(5_000).min(cost(5_000));
    cost(report.pick(200_000, 40_000));
    let late = cost(5_000).min(cost(5_000));
    report.add(("rows", "V4 frame of one row.delta to facts"), early, "µs", 4.0, 40.0);
    report.add(("rows", "late in a long row, over early"), late / early, "x", 1.1, 2.5);
}
