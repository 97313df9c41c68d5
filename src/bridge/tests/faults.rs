//! An engine that dies, hangs, or loses what it should have said.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_lost_end_of_the_turn_is_found_by_the_watchdog() {
    let mut desk = Desk::new(with_faults(&["lose-completed"])).await;
    let session = desk.open().await;
    let began = Instant::now();
    assert_eq!(desk.turn(&session, "echo anyway").await, "end_turn");
    assert!(desk.text(&session).contains("anyway"));
    assert!(began.elapsed() < Duration::from_mins(2), "{:?}", began.elapsed());
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn lost_events_are_filled_in_by_their_numbers() {
    let whole = {
        let mut desk = Desk::new(paced()).await;
        let session = desk.open().await;
        assert_eq!(desk.turn(&session, "hello").await, "end_turn");
        let text = desk.text(&session);
        desk.end().await;
        text
    };
    for every in [2, 3, 7] {
        let mut desk = Desk::new(with_faults(&[&format!("drop-events:{every}")])).await;
        let session = desk.open().await;
        assert_eq!(desk.turn(&session, "hello").await, "end_turn", "every {every}th");
        assert_eq!(desk.text(&session), whole, "every {every}th");
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_dies_in_a_turn_is_started_again_and_the_text_is_kept() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "story");
    desk.until(&session, |u| u["sessionUpdate"] == "agent_message_chunk").await;
    let before = desk.text(&session);
    desk.player.kill();
    let answer = desk.answer(id).await;
    assert!(desk.text(&session).starts_with(&before));
    assert!(desk.open_cards(&session).is_empty());
    assert_eq!(desk.player.started(), 2, "{answer:?}");
    assert_eq!(desk.turn(&session, "echo alive").await, "end_turn");
    assert!(desk.text(&session).contains("alive"));
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_always_dies_is_given_up_with_its_last_words() {
    let mut desk = Desk::new(with_faults(&["die:3"])).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "hello");
    let error = desk.answer(id).await.expect_err("an engine that always dies");
    assert!(format!("{error:?}").contains("last words"), "{error:?}");
    assert!(desk.player.started() <= 4, "{}", desk.player.started());
    assert!(desk.open_cards(&session).is_empty());
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_death_of_an_idle_engine_is_not_noticed_by_the_next_prompt() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo one").await, "end_turn");
    desk.player.kill();
    desk.pass(Duration::from_secs(5)).await;
    assert_eq!(desk.turn(&session, "echo two").await, "end_turn");
    assert!(desk.text(&session).contains("two"));
    assert_eq!(desk.player.started(), 2);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_hung_engine_is_found_ended_and_replaced() {
    let options = |n| if n == 0 { with_faults(&["hang:6"]) } else { paced() };
    let mut desk = Desk::with(options, |_| {}).await;
    let session = desk.open().await;
    let began = Instant::now();
    let id = desk.prompt(&session, "story");
    desk.answer(id).await.ok();
    assert!(began.elapsed() < Duration::from_mins(15), "{:?}", began.elapsed());
    assert_eq!(desk.player.started(), 2);
    assert_eq!(desk.turn(&session, "echo alive").await, "end_turn");
    assert!(desk.text(&session).contains("alive"));
    // Nothing was answered by an engine that hears nothing: it counts as killed.
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_hung_engine_does_not_hold_a_cancel_up() {
    let options = |n| if n == 0 { with_faults(&["hang:6"]) } else { paced() };
    let mut desk = Desk::with(options, |_| {}).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "story");
    desk.pass(Duration::from_secs(20)).await;
    desk.cancel(&session);
    let began = Instant::now();
    assert_eq!(desk.stop_reason(id).await, "cancelled");
    assert!(began.elapsed() <= Duration::from_secs(3), "{:?}", began.elapsed());
    let began = Instant::now();
    let next = desk.prompt(&session, "echo alive");
    let answer = desk.answer(next).await;
    assert!(answer.is_ok(), "{answer:?}");
    // The hung engine is ended and another one works.
    assert!(began.elapsed() <= Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(desk.text(&session).contains("alive"));
    assert_eq!(desk.player.started(), 2);
    desk.end().await;
}
