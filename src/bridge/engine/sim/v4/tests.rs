use super::*;
use crate::bridge::engine::sim::options::Options;

fn wire() -> Wire {
    Wire::new(Options { frame_max: 200, ..Options::deterministic() }, 1_000)
}

fn sent(wire: &mut Wire) -> Vec<Value> {
    wire.take().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn fragments_join_to_the_frame_with_its_length_and_checksum() {
    let mut wire = wire();
    let mut topic = Topic::new("conversation/s".into(), "epoch".into());
    topic.append(0, 0, "assistantText", "t", json!({"text": "你好 ".repeat(200)}));
    topic.subscribe(&mut wire, "c", None);
    topic.flush(&mut wire);
    let sent = sent(&mut wire);
    assert!(sent.len() > 3);
    let mut bytes = Vec::new();
    for (i, message) in sent.iter().enumerate() {
        let params = &message["params"];
        assert_eq!(params["kind"], "fragment");
        assert_eq!(params["fragmentIndex"], i);
        assert_eq!(params["fragmentCount"], sent.len());
        let data = params["dataBase64"].as_str().unwrap();
        bytes.extend(base64::engine::general_purpose::STANDARD.decode(data).unwrap());
    }
    assert_eq!(sent[0]["params"]["logicalBytes"], bytes.len());
    assert_eq!(sent[0]["params"]["checksum"]["value"], crc32fast::hash(&bytes));
    let frame: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(frame["payload"]["snapshot"]["rows"]["window"][0]["text"], "你好 ".repeat(200));
}

#[test]
fn deltas_follow_each_other_without_gaps_and_join_to_the_row() {
    let mut wire = Wire::new(Options::deterministic(), 1_000);
    let mut topic = Topic::new("conversation/s".into(), "epoch".into());
    topic.subscribe(&mut wire, "c", None);
    topic.flush(&mut wire);
    let row = topic.append(0, 0, "assistantText", "t", json!({"text": ""}));
    topic.append_text(0, row, "text", "a");
    topic.append_text(0, row, "text", "b");
    topic.flush(&mut wire);
    topic.append_text(0, row, "text", "c");
    topic.flush(&mut wire);
    let sent = sent(&mut wire);
    let frames: Vec<_> = sent.iter().map(|m| &m["params"]["frame"]).collect();
    assert_eq!(frames[1]["fromSeq"], frames[0]["toSeq"]);
    assert_eq!(frames[2]["fromSeq"], frames[1]["toSeq"]);
    let deltas = frames[1]["payload"]["deltas"].as_array().unwrap();
    assert_eq!(deltas.len(), 2);
    assert_eq!(deltas[1]["append"], "ab");
}

#[test]
fn a_saturated_connection_gets_nothing_until_it_is_drained() {
    let mut wire = Wire::new(Options::deterministic(), 1_000);
    let mut topic = Topic::new("conversation/s".into(), "epoch".into());
    topic.subscribe(&mut wire, "c", None);
    topic.flush(&mut wire);
    wire.take();
    topic.hold("c", true);
    topic.append(0, 0, "assistantText", "t", json!({"text": "x"}));
    assert_eq!(topic.due(true), None);
    topic.flush(&mut wire);
    assert!(wire.take().is_empty());
    topic.hold("c", false);
    topic.flush(&mut wire);
    assert_eq!(sent(&mut wire).len(), 1);
}

#[test]
fn a_true_base_resumes_and_a_false_one_gets_a_snapshot() {
    let mut wire = Wire::new(Options::deterministic(), 1_000);
    let mut topic = Topic::new("conversation/s".into(), "epoch".into());
    topic.append(0, 0, "assistantText", "t", json!({"text": "x"}));
    let base = json!({"logEpoch": "epoch", "seq": topic.seq});
    assert_eq!(topic.subscribe(&mut wire, "c", Some(&base)).1, "resume");
    assert_eq!(
        topic.subscribe(&mut wire, "c", Some(&json!({"logEpoch": "old", "seq": 1}))).1,
        "snapshot"
    );
}
