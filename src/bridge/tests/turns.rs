//! Turns: several sessions at once, prompts that meet a busy engine or each other, failures that pass.

use super::*;

#[tokio::test(start_paused = true)]
async fn two_sessions_stream_at_the_same_time_and_keep_apart() {
    let mut desk = Desk::new(paced()).await;
    let (one, two) = (desk.open().await, desk.open().await);
    let a = desk.prompt(&one, "hello");
    let b = desk.prompt(&two, "story");
    assert_eq!(desk.stop_reason(a).await, "end_turn");
    assert_eq!(desk.stop_reason(b).await, "end_turn");
    let order: Vec<&str> = desk
        .updates
        .iter()
        .filter(|(_, u)| u["sessionUpdate"] == "agent_message_chunk")
        .map(|(id, _)| id.as_str())
        .collect();
    let switches = order.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(switches > 4, "they ran one after the other: {switches}");
    let alone = |session: &str| desk.text(session);
    let (first, second) = (alone(&one), alone(&two));
    assert!(first.contains('|') && !second.is_empty() && first != second);
    assert_eq!(desk.player.started(), 1);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_busy_engine_is_asked_again_until_its_own_turn_is_over() {
    for (profile, code) in [("0.16.9", -32010), ("0.15", 1308)] {
        busy(profile, code).await;
    }
}

/// The engine's own turns get in the way of prompts, and it says so by this code.
async fn busy(profile: &str, code: i64) {
    let profile = profile.parse().unwrap();
    let mut desk = Desk::new(Options { profile, ..paced() }).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "background").await, "end_turn");
    // The engine's own turn about the background command begins and holds the session.
    let own = |u: &Value| u["sessionUpdate"] == "tool_call_update" && u["status"] == "completed";
    desk.until(&session, own).await;
    for n in 0..40 {
        assert_eq!(desk.turn(&session, &format!("echo number {n}.")).await, "end_turn");
        assert!(desk.text(&session).contains(&format!("number {n}.")));
        desk.pass(Duration::from_millis(250)).await;
    }
    let refusals = desk.player.lines(0).into_iter().filter(|(dir, frame)| {
        dir == "in" && frame["error"].to_string().contains(&code.to_string())
    });
    assert!(refusals.count() > 0, "the engine was never busy: the test shows nothing");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_during_a_turn_waits_for_its_end_and_both_are_answered() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    let first = desk.prompt(&session, "slow");
    desk.until(&session, |u| u["sessionUpdate"] == "tool_call").await;
    let second = desk.prompt(&session, "echo the second");
    let third = desk.prompt(&session, "echo the third");
    for id in [first, second, third] {
        assert_eq!(desk.stop_reason(id).await, "end_turn");
    }
    let text = desk.text(&session);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("the second") < at("the third"));
    assert!(desk.open_cards(&session).is_empty());
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_preempts_the_running_turn_and_those_that_wait_but_not_the_next() {
    for profile in ["0.15", "0.16.5", "0.16.9"] {
        for after in [0, 1, 2, 5, 50, 400] {
            let case = format!("{profile}, cancelled after {after} ms");
            let options = Options { profile: profile.parse().unwrap(), ..paced() };
            let mut desk = Desk::new(options).await;
            let session = desk.open().await;
            let first = desk.prompt(&session, "slow");
            desk.until(&session, |u| u["sessionUpdate"] == "tool_call").await;
            let waiting = desk.prompt(&session, "echo never said");
            if after > 0 {
                desk.pass(Duration::from_millis(after)).await;
            }
            desk.cancel(&session);
            let next = desk.prompt(&session, "echo the next");
            assert_eq!(desk.stop_reason(first).await, "cancelled", "{case}");
            assert_eq!(desk.stop_reason(waiting).await, "cancelled", "{case}");
            assert_eq!(desk.stop_reason(next).await, "end_turn", "{case}");
            desk.pass(Duration::from_mins(1)).await;
            let text = desk.text(&session);
            assert!(text.contains("the next"), "{case}: {text}");
            // Merged before the cancel, it stands in the text of the turn that was cancelled.
            let run = text.replace("> echo never said", "");
            assert!(!run.contains("never said"), "{case}: {text}");
            desk.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_passes_is_tried_again_after_a_pause() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    let began = Instant::now();
    assert_eq!(desk.turn(&session, "transient").await, "end_turn");
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(desk.calls("session/send"), 2);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_during_the_pause_ends_the_prompt_and_sends_nothing_more() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "transient");
    desk.until(&session, |u| u.to_string().contains("again")).await;
    let sent = desk.calls("session/send");
    desk.cancel(&session);
    assert_eq!(desk.stop_reason(id).await, "cancelled");
    desk.pass(Duration::from_mins(2)).await;
    assert_eq!(desk.calls("session/send"), sent);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends_by_its_time_and_approves_nothing() {
    let limit = Duration::from_secs(90);
    let mut desk = Desk::with(|_| paced(), |config| config.interaction_timeout = Some(limit)).await;
    let session = desk.open().await;
    let began = Instant::now();
    let id = desk.prompt(&session, "permission");
    let ask = desk.ask().await;
    desk.stop_reason(id).await;
    assert!(began.elapsed() >= limit, "{:?}", began.elapsed());
    let allowed = desk
        .player
        .lines(0)
        .into_iter()
        .filter(|(dir, frame)| dir == "out" && frame["result"]["decision"] == "allow");
    assert_eq!(allowed.count(), 0);
    assert!(desk.open_cards(&session).is_empty());
    drop(ask);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_permission_that_is_allowed_runs_to_the_end() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "permission");
    let ask = desk.ask().await;
    assert_eq!(ask.method, "session/request_permission");
    // However long a person thinks.
    desk.pass(Duration::from_mins(30)).await;
    let option = ask.option("allow_once");
    ask.select(&option);
    assert_eq!(desk.stop_reason(id).await, "end_turn");
    desk.end().await;
}
