//! The engine's queue through `_zcode/queue/*`: seen, edited, deleted, sent now, and run by itself or not.

use super::*;

impl Desk {
    async fn queue(&mut self, session: &str) -> Vec<(String, String)> {
        let queue = self.ok("_zcode/queue/list", json!({"sessionId": session})).await;
        let items = queue["items"].as_array().unwrap().clone();
        let word = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
        items.iter().map(|it| (word(it, "itemId"), word(it, "text"))).collect()
    }

    async fn change(&mut self, session: &str, how: &str, mut params: Value) -> Value {
        params["sessionId"] = json!(session);
        self.ok(&format!("_zcode/queue/{how}"), params).await
    }

    /// A running turn with three texts in the engine's queue behind it.
    async fn with_three_queued(&mut self) -> (String, u64) {
        let session = self.open().await;
        let id = self.prompt(&session, "story");
        while !self.text(&session).contains("Chapter") {
            self.step().await;
        }
        for text in ["echo first", "echo second", "echo third"] {
            let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
            let verdict = self.ok("_session/steering", params).await;
            assert_eq!(verdict["outcome"], "queued", "{verdict}");
        }
        (session, id)
    }
}

fn texts(queue: &[(String, String)]) -> Vec<&str> {
    queue.iter().map(|it| it.1.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn queued_texts_are_edited_deleted_and_run_in_order_after_the_turn() {
    let mut desk = Desk::new(with_faults(&["guide-falls-back"])).await;
    let (session, id) = desk.with_three_queued().await;
    let queue = desk.queue(&session).await;
    assert_eq!(texts(&queue), ["echo first", "echo second", "echo third"]);
    // Every change is told to the client.
    let told = |u: &Value| {
        u["_meta"]["zcode"]["queue"]["items"].as_array().is_some_and(|it| it.len() == 3)
    };
    desk.until(&session, told).await;
    desk.change(&session, "edit", json!({"itemId": queue[1].0, "text": "echo changed"})).await;
    desk.change(&session, "delete", json!({"itemId": queue[2].0})).await;
    assert_eq!(texts(&desk.queue(&session).await), ["echo first", "echo changed"]);
    assert_eq!(desk.stop_reason(id).await, "end_turn");
    desk.pass(Duration::from_secs(30)).await;
    let text = desk.text(&session);
    let at = |what: &str| text.rfind(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("first") < at("changed"), "{text}");
    assert!(!text.contains("second") && !text.contains("third"), "{text}");
    assert!(desk.queue(&session).await.is_empty());
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_does_not_drain_by_itself_waits_until_it_is_told_to() {
    let mut desk = Desk::new(with_faults(&["guide-falls-back"])).await;
    let (session, id) = desk.with_three_queued().await;
    desk.change(&session, "auto_drain", json!({"enabled": false})).await;
    let queue = desk.queue(&session).await;
    assert_eq!(desk.stop_reason(id).await, "end_turn");
    desk.pass(Duration::from_mins(2)).await;
    assert!(!desk.text(&session).contains("first"), "the queue waits");
    assert_eq!(desk.queue(&session).await.len(), 3);
    // One of them out of its turn.
    desk.change(&session, "send_now", json!({"itemId": queue[2].0})).await;
    desk.pass(Duration::from_secs(30)).await;
    let text = desk.text(&session);
    assert!(text.contains("third") && !text.contains("first"), "{text}");
    assert_eq!(texts(&desk.queue(&session).await), ["echo first", "echo second"]);
    desk.change(&session, "auto_drain", json!({"enabled": true})).await;
    desk.pass(Duration::from_secs(30)).await;
    let text = desk.text(&session);
    let at = |what: &str| text.rfind(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("third") < at("first") && at("first") < at("second"), "{text}");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn sending_now_while_a_turn_runs_ends_that_turn_and_runs_the_text() {
    let mut desk = Desk::new(with_faults(&["guide-falls-back"])).await;
    let (session, id) = desk.with_three_queued().await;
    let queue = desk.queue(&session).await;
    desk.change(&session, "send_now", json!({"itemId": queue[1].0})).await;
    // The engine breaks the turn off; nobody cancelled it here.
    desk.answer(id).await.unwrap();
    desk.pass(Duration::from_mins(1)).await;
    let text = desk.text(&session);
    let at = |what: &str| text.rfind(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("second") < at("first") && at("first") < at("third"), "{text}");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_what_is_not_in_the_queue_is_refused_with_the_engines_reason() {
    let mut desk = Desk::new(with_faults(&["guide-falls-back"])).await;
    let (session, id) = desk.with_three_queued().await;
    for (how, params) in [
        ("edit", json!({"itemId": "nobody", "text": "x"})),
        ("delete", json!({"itemId": "nobody"})),
        ("send_now", json!({"itemId": "nobody"})),
    ] {
        let mut params = params;
        params["sessionId"] = json!(session);
        let error = desk.refused(&format!("_zcode/queue/{how}"), params).await;
        assert!(format!("{error:?}").contains("guard.queueItemNotFound"), "{how}: {error:?}");
    }
    assert_eq!(desk.queue(&session).await.len(), 3);
    desk.cancel(&session);
    assert_eq!(desk.stop_reason(id).await, "cancelled");
    desk.end().await;
}
