use super::*;

impl Host {
    async fn v4(&mut self, session: &str) -> String {
        self.ok("v4/connection/flow", json!({"connectionId": "c1", "state": "drained"})).await;
        let topic = format!("conversation/{session}");
        let params =
            json!({"topic": topic, "connectionId": "c1", "clientMode": "desktop-continuous"});
        let ack = self.ok("v4/conversation/subscribe", params).await;
        ack["ack"]["subscriptionId"].as_str().unwrap().to_owned()
    }

    async fn command(&mut self, session: &str, id: &str, kind: &str, payload: Value) -> Value {
        let params = json!({
            "commandId": id, "clientId": "test", "sessionId": session, "type": kind, "payload": payload, "issuedAt": 1,
        });
        self.ok("v4/command", params).await
    }

    fn frames(&self, topic: &str) -> Vec<&Value> {
        self.seen
            .iter()
            .filter(|m| m["method"] == "v4/conversation/frame" && m["params"]["topic"] == topic)
            .map(|m| &m["params"]["frame"])
            .collect()
    }

    /// Rows as a host puts them together from all frames of a topic.
    fn rows(&self, session: &str) -> Vec<Value> {
        let mut rows: Vec<Value> = Vec::new();
        let mut seq = None;
        for frame in self.frames(&format!("conversation/{session}")) {
            if frame["payload"]["kind"] == "snapshot" {
                rows = frame["payload"]["snapshot"]["rows"]["window"].as_array().unwrap().clone();
            } else {
                assert_eq!(seq.as_ref(), Some(&frame["fromSeq"]), "frames follow each other");
                for delta in frame["payload"]["deltas"].as_array().unwrap() {
                    apply(&mut rows, delta);
                }
            }
            seq = Some(frame["toSeq"].clone());
        }
        rows
    }
}

fn apply(rows: &mut Vec<Value>, delta: &Value) {
    match delta["op"].as_str().unwrap() {
        "row.appended" => rows.push(delta["row"].clone()),
        "row.upserted" => {
            let at = rows.iter().position(|r| r["rowId"] == delta["row"]["rowId"]).unwrap();
            rows[at] = delta["row"].clone();
        }
        "row.delta" => {
            let row = rows.iter_mut().find(|r| r["rowId"] == delta["rowId"]).unwrap();
            let mut at = row;
            for key in delta["path"].as_str().unwrap().split('.') {
                at = &mut at[key];
            }
            let text =
                at.as_str().unwrap_or_default().to_owned() + delta["append"].as_str().unwrap();
            *at = Value::from(text);
        }
        _ => {}
    }
}

fn texts(rows: &[Value]) -> String {
    rows.iter()
        .filter(|r| r["kind"] == "assistantText")
        .map(|r| r["text"].as_str().unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn rows_join_to_the_same_text_as_the_legacy_channel() {
    for pace in [0.0, 1.0] {
        let mut host = Host::start(Options { pace, ..Options::deterministic() });
        let session = host.session().await;
        host.v4(&session).await;
        host.turn(&session, "bash").await;
        host.ok("session/list", json!({})).await;
        let rows = host.rows(&session);
        assert_eq!(texts(&rows), host.text(), "pace {pace}");
        let kinds: Vec<_> = rows.iter().map(|r| r["kind"].as_str().unwrap()).collect();
        assert_eq!(
            kinds,
            ["turnHeader", "userInput", "reasoning", "assistantText", "toolCall", "assistantText"]
        );
        assert_eq!(rows[4]["status"], "success");
        assert!(rows[4]["output"]["text"].as_str().unwrap().contains("3 passed"));
    }
}

#[tokio::test(start_paused = true)]
async fn frames_come_every_thirty_milliseconds() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.v4(&session).await;
    host.turn(&session, "hello").await;
    let frames = host.frames(&format!("conversation/{session}"));
    let times: Vec<u64> = frames.iter().map(|f| f["sentAt"].as_u64().unwrap()).collect();
    let streaming = &times[times.len() / 2..times.len() - 4];
    assert!(streaming.windows(2).all(|w| (20..=60).contains(&(w[1] - w[0]))), "{streaming:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_frame_follows_the_reply_or_comes_before_it() {
    for frame_first in [false, true] {
        let mut host = Host::start(Options { frame_first, ..Options::deterministic() });
        let session = host.session().await;
        let topic = format!("conversation/{session}");
        let id = host
            .post(
                "v4/conversation/subscribe",
                json!({"topic": topic, "connectionId": "c", "clientMode": "desktop-continuous"}),
            )
            .await;
        let first = host.next().await.unwrap();
        assert_eq!(first["id"] == id, !frame_first, "{first}");
        assert_eq!(host.next().await.unwrap()["id"] == id, frame_first);
    }
}

#[tokio::test(start_paused = true)]
async fn a_guide_before_the_row_exists_breaks_a_foreign_key() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.ok("session/send", json!({"sessionId": session, "content": "long"})).await;
    let guide = json!({"text": "faster", "requestedDelivery": "guide"});
    let early = host.command(&session, "one", "sendText", guide.clone()).await;
    assert_eq!(early["status"], "rejected");
    assert_eq!(early["reasonCode"], "fault.command.executionFailed");
    assert!(early["message"].as_str().unwrap().contains("FOREIGN KEY"));
    host.until("first event", |m| m["method"] == "session/event").await;
    let again = host.command(&session, "one", "sendText", guide.clone()).await;
    assert_eq!(again["status"], "duplicate", "an id is used once");
    assert_eq!(host.command(&session, "two", "sendText", guide).await["status"], "accepted");
}

#[tokio::test(start_paused = true)]
async fn a_guide_is_taken_in_and_shows_in_both_channels() {
    for prompt in ["long", "story"] {
        let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
        let session = host.session().await;
        host.v4(&session).await;
        host.ok("session/send", json!({"sessionId": session, "content": prompt})).await;
        host.until("text", |m| m["params"]["payload"]["kind"] == "text_delta").await;
        let reply = host
            .command(
                &session,
                "g1",
                "sendText",
                json!({"text": "in blue", "requestedDelivery": "guide"}),
            )
            .await;
        assert_eq!(reply["result"]["delivery"], "queue", "the reply is not the verdict");
        host.until("drained", |m| m["params"]["type"] == "turn.steerDrained").await;
        host.until("echo", |m| {
            m["params"]["payload"]["delta"].as_str().is_some_and(|d| d.contains("> in blue"))
        })
        .await;
        let queued = host.events("turn.steerQueued")[0];
        assert_eq!(queued["intent"]["sourceCommandId"], "g1");
        assert_eq!(queued["delivery"], "guide");
        host.command(&session, "s1", "stop", json!({})).await;
        host.turn_over().await;
        host.ok("session/list", json!({})).await;
        let rows = host.rows(&session);
        assert!(rows.iter().any(|r| r["guided"] == true && r["sourceCommandId"] == "g1"));
        assert!(host.text().contains("> in blue"));
        assert_eq!(host.events("turn.completed")[0]["resultType"], "cancelled");
    }
}

#[tokio::test(start_paused = true)]
async fn a_downgraded_guide_shows_in_the_queue_and_runs_afterwards() {
    let faults = vec![Fault::GuideFallsBack("guide.noToolBoundary".into())];
    let mut host = Host::start(Options { pace: 1.0, faults, ..Options::deterministic() });
    let session = host.session().await;
    host.v4(&session).await;
    host.ok("session/send", json!({"sessionId": session, "content": "hello"})).await;
    host.until("text", |m| m["params"]["payload"]["kind"] == "text_delta").await;
    host.command(
        &session,
        "g1",
        "sendText",
        json!({"text": "echo later", "requestedDelivery": "guide"}),
    )
    .await;
    host.turn_over().await;
    host.turn_over().await;
    let item = host
        .frames(&format!("conversation/{session}"))
        .iter()
        .flat_map(|f| f["payload"]["deltas"].as_array().cloned().unwrap_or_default())
        .find_map(|d| d["patch"]["queue"]["items"].get(0).cloned())
        .unwrap();
    assert_eq!(item["sourceCommandId"], "g1");
    assert_eq!(item["steer"]["state"], "fellBack");
    assert_eq!(item["delivery"]["fallbackReasonCode"], "guide.noToolBoundary");
    assert_eq!(host.events("turn.started").len(), 2);
    assert!(host.text().contains("echo later"));
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_held_edited_and_drained() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.v4(&session).await;
    host.ok("session/send", json!({"sessionId": session, "content": "hello"})).await;
    host.until("text", |m| m["params"]["payload"]["kind"] == "text_delta").await;
    for (id, text) in [("q1", "echo one"), ("q2", "echo two")] {
        host.command(&session, id, "sendText", json!({"text": text, "requestedDelivery": "queue"}))
            .await;
    }
    let queued = host.events("turn.steerQueued");
    let (first, second) =
        (queued[0]["pendingInputId"].clone(), queued[1]["pendingInputId"].clone());
    let refused =
        host.command(&session, "e0", "editQueueItem", json!({"itemId": first, "text": "x"})).await;
    assert_eq!(refused["status"], "rejected", "it needs a base revision");
    for (id, kind, payload) in [
        ("e1", "editQueueItem", json!({"itemId": first, "text": "echo edited"})),
        ("e2", "deleteQueueItem", json!({"itemId": second})),
    ] {
        let read = host.ok("session/read", json!({"sessionId": session, "messageLimit": 1})).await;
        let params = json!({
            "commandId": id, "clientId": "test", "sessionId": session, "type": kind, "payload": payload,
            "issuedAt": 1, "baseRevision": read["runtime"]["stateRevision"],
        });
        assert_eq!(host.ok("v4/command", params).await["status"], "accepted");
    }
    host.turn_over().await;
    host.turn_over().await;
    assert!(host.text().ends_with("echo edited"), "{}", host.text());
}

#[tokio::test(start_paused = true)]
async fn a_childs_topic_carries_its_own_text() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.v4(&session).await;
    host.ok("session/send", json!({"sessionId": session, "content": "nested"})).await;
    let child = loop {
        let message = host.next().await.unwrap();
        if let Some(id) = message["params"]["payload"]["childSessionId"].as_str() {
            break id.to_owned();
        }
    };
    let topic = format!("conversation/{child}");
    host.ok(
        "v4/conversation/subscribe",
        json!({"topic": topic, "connectionId": "c1", "clientMode": "desktop-continuous"}),
    )
    .await;
    host.turn_over().await;
    let rows = host.rows(&child);
    assert!(texts(&rows).contains("164 lines"), "{rows:?}");
    let parent = host.rows(&session);
    assert!(parent.iter().any(|r| r["kind"] == "subagent" && r["status"] == "success"));
}

#[tokio::test(start_paused = true)]
async fn older_rows_come_in_pages() {
    let mut host = Host::start(Options::deterministic());
    let session = host.session().await;
    for _ in 0..6 {
        host.turn(&session, "todos").await;
    }
    host.v4(&session).await;
    host.ok("session/list", json!({})).await;
    let window = host.rows(&session);
    assert_eq!(window.len(), 60);
    let before = window[0]["rowId"].clone();
    let page = host
        .ok(
            "v4/conversation/rowsRange",
            json!({"sessionId": session, "beforeRowId": before, "limit": 10}),
        )
        .await;
    assert_eq!(page["rows"].as_array().unwrap().len(), 10);
    assert_eq!(page["rows"][9]["rowId"].as_u64().unwrap() + 1, before.as_u64().unwrap());
    assert_eq!(page["hasMore"], true);
}

#[tokio::test(start_paused = true)]
async fn the_v4_stop_ends_what_the_legacy_stop_cannot() {
    let mut host =
        Host::start(Options { profile: Profile::V0165, pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.ok("session/send", json!({"sessionId": session, "content": "story"})).await;
    host.until("text", |m| m["params"]["payload"]["kind"] == "text_delta").await;
    host.ok("session/stop", json!({"sessionId": session})).await;
    host.until("more text", |m| m["params"]["payload"]["kind"] == "text_delta").await;
    host.until("more text", |m| m["params"]["payload"]["kind"] == "text_delta").await;
    let began = Instant::now();
    host.command(&session, "s", "stop", json!({})).await;
    host.turn_over().await;
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(host.events("turn.completed")[0]["resultType"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_resync_starts_over_after_a_lost_frame() {
    let mut host =
        Host::start(Options { faults: vec![Fault::DropFrames(5)], ..Options::deterministic() });
    let session = host.session().await;
    let subscription = host.v4(&session).await;
    host.turn(&session, "long text").await;
    let topic = format!("conversation/{session}");
    let resync = json!({"subscriptionId": subscription, "topic": topic, "connectionId": "c1", "base": null, "forceSnapshot": true});
    host.ok("v4/conversation/resync", resync).await;
    let frame = host.until("snapshot", |m| m["params"]["deliveryKind"] == "recovery").await;
    assert_eq!(frame["params"]["frame"]["payload"]["kind"], "snapshot");
    let gone = json!({"topic": topic, "subscriptionId": subscription, "connectionId": "c1"});
    host.ok("v4/conversation/unsubscribe", gone).await;
}

#[tokio::test(start_paused = true)]
async fn an_interaction_can_be_answered_by_command() {
    let mut host = Host::start(Options::deterministic());
    host.answers = false;
    let session = host.session().await;
    host.ok("session/send", json!({"sessionId": session, "content": "permission"})).await;
    let asked = host.until("permission", |m| m["method"] == "interaction/requestPermission").await;
    let payload =
        json!({"requestId": asked["params"]["requestId"], "response": {"decision": "allow"}});
    assert_eq!(
        host.command(&session, "r", "resolveInteraction", payload).await["status"],
        "accepted"
    );
    host.turn_over().await;
    assert!(host.events("tool.updated").iter().any(|p| p["kind"] == "result"));
}

#[tokio::test(start_paused = true)]
async fn the_bridges_assembler_reads_every_frame_of_every_script() {
    use crate::bridge::engine::sim::script::Library;
    use crate::bridge::engine::v4::rows::{Fact, RowKind};
    use crate::bridge::engine::v4::topic::{Ack, History, Topic};
    let names: Vec<String> = Library::new(&[]).unwrap().names().map(str::to_owned).collect();
    for (frame_max, old_frames) in [(512, false), (1 << 20, true)] {
        for name in names.iter().filter(|n| *n != "die" && *n != "flood") {
            let mut host =
                Host::start(Options { frame_max, old_frames, ..Options::deterministic() });
            let session = host.session().await;
            let name_of_topic = format!("conversation/{session}");
            let params = json!({"topic": name_of_topic, "connectionId": "c1", "clientMode": "desktop-continuous"});
            let ack = host.ok("v4/conversation/subscribe", params).await;
            let ack: Ack = serde_json::from_value(ack["ack"].clone()).unwrap();
            host.turn(&session, &format!("/demo {name}")).await;
            host.ok("session/list", json!({})).await;
            let mut topic = Topic::new(name_of_topic.clone(), History::Skip);
            let mut facts = Vec::new();
            assert!(topic.subscribed(&ack, 0, &mut facts).is_none());
            for message in host.seen.iter().filter(|m| m["method"] == "v4/conversation/frame") {
                if message["params"]["topic"] == name_of_topic.as_str() {
                    let resync = topic.on_frame(&message["params"].to_string(), 0, &mut facts);
                    assert!(resync.is_none(), "{name}: {resync:?}");
                }
            }
            let said: String = facts
                .iter()
                .filter_map(|fact| match fact {
                    Fact::Text(head, piece) if head.kind == RowKind::AssistantText => {
                        Some(piece.text.as_str())
                    }
                    _ => None,
                })
                .collect();
            assert_eq!(said, host.text(), "{name}");
        }
    }
}
