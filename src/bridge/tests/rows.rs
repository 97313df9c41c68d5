//! Rows that only V4 has: hooks, artifacts, kinds that nobody knows, and rows that are taken back.

use super::*;

/// A script of these steps, found by `demo rows`.
fn scripted(steps: &Value) -> Options {
    let script = json!({"name": "rows", "steps": steps});
    Options { scripts: vec![script.to_string()], ..paced() }
}

/// The cards of a session as they stand at the end, by title.
fn cards(desk: &Desk, session: &str) -> HashMap<String, Value> {
    let mut cards: HashMap<String, Value> = HashMap::new();
    for (_, update) in desk.updates.iter().filter(|(id, _)| id == session) {
        let Some(id) = update["toolCallId"].as_str() else { continue };
        let card = cards.entry(id.to_owned()).or_insert(json!({}));
        for (key, value) in update.as_object().unwrap() {
            card[key] = value.clone();
        }
    }
    cards.into_values().map(|it| (it["title"].as_str().unwrap().to_owned(), it)).collect()
}

#[tokio::test(start_paused = true)]
async fn hooks_and_artifacts_are_shown_as_cards_with_their_ends() {
    let row = |kind: &str, fields: Value| json!({"row": {"kind": kind, "fields": fields}});
    let steps = json!([
        {"say": "Before."},
        row("hookInvocation", json!({"title": "format", "status": "success", "message": "2 files formatted"})),
        row("hookInvocation", json!({"name": "lint", "status": "error", "error": {"message": "1 problem"}})),
        row("hookInvocation", json!({"title": "notify", "status": "running"})),
        row("artifact", json!({"title": "report", "path": "/w/report.html"})),
        row("hologram", json!({"spin": "up"})),
        {"wait": 500},
        {"say": "After."},
    ]);
    let mut desk = Desk::new(scripted(&steps)).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "demo rows").await, "end_turn");
    assert_eq!(desk.text(&session), "Before.After.");
    let cards = cards(&desk, &session);
    let seen: HashMap<&str, &str> =
        cards.iter().map(|(title, it)| (title.as_str(), it["status"].as_str().unwrap())).collect();
    let wanted = [
        ("Hook: format", "completed"),
        ("Hook: lint", "failed"),
        // It ends with its turn at the latest.
        ("Hook: notify", "completed"),
        ("Artifact: report", "completed"),
    ];
    assert_eq!(seen, HashMap::from(wanted));
    assert!(cards["Hook: format"]["content"].to_string().contains("2 files formatted"));
    assert!(cards["Hook: lint"]["content"].to_string().contains("1 problem"));
    assert_eq!(cards["Artifact: report"]["rawInput"]["path"], "/w/report.html");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_row_is_taken_back_ends_and_the_turn_goes_on() {
    let steps = json!([
        {"say": "Before."},
        {"row": {"kind": "toolCall", "fields": {"toolCallId": "ghost", "toolName": "Read", "status": "running", "inputText": "{}"}}},
        {"wait": 300},
        {"rowsRemoved": 1},
        {"wait": 300},
        {"say": "After."},
        {"tool": {"name": "Read", "input": {"file_path": "/w/a"}, "takes": 50, "result": "read"}},
    ]);
    let mut desk = Desk::new(scripted(&steps)).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "demo rows");
    let failed = |u: &Value| u["toolCallId"] == "ghost" && u["status"] == "failed";
    let card = desk.until(&session, failed).await;
    assert!(card.to_string().contains("taken back"), "{card}");
    assert!(!desk.answers.contains_key(&id), "at once, not at the end of the turn");
    assert_eq!(desk.stop_reason(id).await, "end_turn");
    let ends = desk.updates.iter().filter(|(_, u)| {
        u["toolCallId"] == "ghost" && matches!(u["status"].as_str(), Some("completed" | "failed"))
    });
    assert_eq!(ends.count(), 1);
    assert_eq!(desk.text(&session), "Before.After.");
    assert!(desk.open_cards(&session).is_empty());
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn texts_whose_rows_are_taken_back_are_neither_lost_nor_doubled() {
    let steps = json!([
        {"think": "First thought."},
        {"say": "First try."},
        {"tool": {"name": "Read", "input": {"file_path": "/w/a"}, "takes": 50, "result": "read"}},
        {"rowsRemoved": 3},
        {"say": "Second try."},
        {"rowsRemoved": 1},
        {"rowsRemoved": 2},
        {"think": "Second thought."},
        {"say": "Third try."},
    ]);
    let mut desk = Desk::new(scripted(&steps)).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "demo rows").await, "end_turn");
    assert_eq!(desk.text(&session), "First try.Second try.Third try.");
    let thoughts = desk.chunks(&session, "agent_thought_chunk").concat();
    assert_eq!(thoughts, "First thought.Second thought.");
    assert!(desk.open_cards(&session).is_empty());
    assert_eq!(desk.turn(&session, "echo the next turn").await, "end_turn");
    assert!(desk.text(&session).ends_with("the next turn"), "{}", desk.text(&session));
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_engine_did_to_the_conversation_by_itself_is_a_closed_card() {
    let marker = |kind: &str| json!({"row": {"kind": "timelineMarker", "fields": {"marker": {"type": kind}}}});
    let steps = json!([{"say": "Before."}, marker("compact"), marker("checkpointRestored"), marker("modelChange"),
        marker("unheardOf"), {"say": "After."}]);
    let mut desk = Desk::new(scripted(&steps)).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "demo rows").await, "end_turn");
    let mut titles: Vec<String> = cards(&desk, &session).into_keys().collect();
    titles.sort_unstable();
    assert_eq!(titles, ["Conversation compacted", "Files restored from a checkpoint"]);
    assert!(desk.open_cards(&session).is_empty());
    // A compaction that was asked for is answered in words alone.
    assert_eq!(desk.turn(&session, "/compact").await, "end_turn");
    desk.pass(Duration::from_secs(5)).await;
    assert_eq!(cards(&desk, &session).len(), 2);
    desk.end().await;
}
