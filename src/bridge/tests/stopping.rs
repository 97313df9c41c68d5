//! Stopping: a cancel at every moment of a turn, an engine that does not stop, closing and leaving.

use super::*;

/// How long after a cancel its prompt may be open, whatever the engine does.
const PROMISE: Duration = Duration::from_secs(3);

/// Whether the engine was told to stop, by either channel.
fn stops(desk: &Desk) -> usize {
    let v4 =
        (0..desk.player.started()).flat_map(|n| desk.player.lines(n)).filter(|(dir, frame)| {
            dir == "out"
                && frame["method"].as_str().is_some_and(|m| m.starts_with("v4/"))
                && frame["params"].to_string().contains("stop")
        });
    desk.calls("session/stop") + v4.count()
}

#[tokio::test(start_paused = true)]
async fn a_cancel_at_every_millisecond_stops_once_and_leaves_the_next_prompt_clean() {
    for after in 0..=50 {
        let mut desk = Desk::new(paced()).await;
        let session = desk.open().await;
        if after % 2 == 1 {
            // Every other time the session is warm.
            assert_eq!(desk.turn(&session, "echo warm").await, "end_turn");
        }
        let id = desk.prompt(&session, "slow");
        desk.pass(Duration::from_millis(after)).await;
        desk.cancel(&session);
        let began = Instant::now();
        assert_eq!(desk.stop_reason(id).await, "cancelled", "after {after} ms");
        assert!(began.elapsed() <= PROMISE, "after {after} ms: {:?}", began.elapsed());
        let said = desk.updates.len();
        // A second cancel harms nothing.
        desk.cancel(&session);
        let next = desk.prompt(&session, "echo the next one");
        assert_eq!(desk.stop_reason(next).await, "end_turn", "after {after} ms");
        let text: String = desk.updates[said..]
            .iter()
            .filter(|(_, u)| u["sessionUpdate"] == "agent_message_chunk")
            .filter_map(|(_, u)| u["content"]["text"].as_str())
            .collect();
        assert!(text.contains("the next one"), "after {after} ms: {text:?}");
        assert!(!text.contains("Step"), "after {after} ms: {text:?}");
        let sent = desk.calls("session/send");
        let mine = if after % 2 == 1 { sent - 2 } else { sent - 1 };
        if mine > 0 {
            assert!(stops(&desk) > 0, "after {after} ms the engine was not told to stop");
        }
        assert!(desk.open_cards(&session).is_empty(), "after {after} ms");
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_the_same_breath_as_the_prompt_overtakes_everything() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo warm").await, "end_turn");
    let first = desk.prompt(&session, "slow");
    desk.cancel(&session);
    let second = desk.prompt(&session, "echo second");
    assert_eq!(desk.stop_reason(first).await, "cancelled");
    assert_eq!(desk.stop_reason(second).await, "end_turn");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_ignores_every_stop_is_still_stopped_in_bounded_time() {
    for faults in [&["ignore-stop"][..], &["ignore-v4-stop"], &["ignore-stop", "ignore-v4-stop"]] {
        let mut desk = Desk::new(with_faults(faults)).await;
        let session = desk.open().await;
        let id = desk.prompt(&session, "slow");
        desk.until(&session, |u| u["sessionUpdate"] == "tool_call").await;
        desk.cancel(&session);
        let began = Instant::now();
        assert_eq!(desk.stop_reason(id).await, "cancelled", "{faults:?}");
        assert!(began.elapsed() <= PROMISE, "{faults:?}: {:?}", began.elapsed());
        let id = desk.prompt(&session, "echo afterwards");
        assert_eq!(desk.stop_reason(id).await, "end_turn", "{faults:?}");
        assert!(desk.text(&session).contains("afterwards"), "{faults:?}");
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_permission_open_at_the_cancel_is_declined_and_runs_nothing() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "permission");
    let ask = desk.ask().await;
    assert_eq!(ask.session(), session);
    desk.cancel(&session);
    assert_eq!(desk.stop_reason(id).await, "cancelled");
    // An answer that comes late approves nothing.
    let allow = ask.option("allow_once");
    ask.select(&allow);
    desk.pass(Duration::from_secs(30)).await;
    assert!(desk.open_cards(&session).is_empty());
    let answers = desk
        .player
        .lines(0)
        .into_iter()
        .filter(|(dir, frame)| dir == "out" && frame["result"]["decision"] == "allow");
    assert_eq!(answers.count(), 0);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn closing_during_a_turn_answers_the_prompt_and_ends_the_session() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "slow");
    desk.until(&session, |u| u["sessionUpdate"] == "tool_call").await;
    let close = desk.post("session/close", json!({"sessionId": session}));
    assert_eq!(desk.stop_reason(id).await, "cancelled");
    desk.answer(close).await.unwrap();
    let said = desk.updates.len();
    desk.pass(Duration::from_mins(2)).await;
    let late: Vec<_> =
        desk.updates[said..].iter().filter(|(_, u)| u["sessionUpdate"] != "usage_update").collect();
    assert!(late.is_empty(), "{late:?}");
    // The id still opens it again.
    desk.ok("session/resume", json!({"sessionId": session, "cwd": desk.cwd(), "mcpServers": []}))
        .await;
    assert_eq!(desk.turn(&session, "echo again").await, "end_turn");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_with_a_permission_open_approves_nothing() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    desk.prompt(&session, "permission");
    let ask = desk.ask().await;
    desk.leave().await;
    drop(ask);
    let replies: Vec<Value> = desk
        .player
        .lines(0)
        .into_iter()
        .filter(|(dir, frame)| dir == "out" && frame.get("method").is_none())
        .map(|(_, frame)| frame)
        .collect();
    assert!(replies.iter().all(|r| r["result"]["decision"] != "allow"), "{replies:?}");
    assert!(replies.iter().any(|r| r["result"]["decision"] == "deny"), "{replies:?}");
    desk.end().await;
}
