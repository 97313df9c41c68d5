//! An hour's worth of mixed turns in one session: what they started is gone when they are over.
//! Memory, files and threads of the whole process are measured by the benchmark's soak.

use super::*;

/// Every kind of turn, and what ends it.
const TURNS: [&str; 10] = [
    "hello",
    "bash",
    "permission",
    "questions",
    "plan",
    "todos",
    "subagent",
    "edit",
    "fail",
    "background",
];

async fn round(desk: &mut Desk, session: &str) {
    for text in TURNS {
        let id = desk.prompt(session, text);
        while !desk.answers.contains_key(&id) {
            desk.step().await;
            desk.agree();
        }
    }
    // Two that are stopped, one of them before it began.
    for wait in [0, 400] {
        let id = desk.prompt(session, "slow");
        desk.pass(Duration::from_millis(wait)).await;
        desk.cancel(session);
        assert_eq!(desk.stop_reason(id).await, "cancelled");
    }
    desk.pass(Duration::from_mins(5)).await;
    desk.updates.clear();
    desk.answers.clear();
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_mixed_turns_leaves_no_task_behind() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    for _ in 0..2 {
        round(&mut desk, &session).await;
    }
    let (before, began) = (alive(), Instant::now());
    while began.elapsed() < Duration::from_hours(1) {
        round(&mut desk, &session).await;
    }
    assert_eq!(alive(), before, "tasks that are left over");
    desk.end().await;
}
