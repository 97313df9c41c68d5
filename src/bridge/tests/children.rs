//! Subagents of a whole bridge: nested, many at once, cancelled one by one, for clients that show them as sessions and for those
//! that do not.

use super::*;

/// A client that shows subagents as sessions of their own.
fn shows_subagents() -> Value {
    json!({"protocolVersion": 1, "clientCapabilities": {"subagents": {}}})
}

impl Desk {
    /// What was said of each subagent, in order: session it was said in, subagent, state.
    fn subagents(&self) -> Vec<(String, String, String)> {
        let of = self.updates.iter().filter(|(_, u)| u["sessionUpdate"] == "subagent_update");
        of.map(|(session, u)| {
            let state = u["state"].as_str().or(u["state"]["state"].as_str()).unwrap_or("");
            (session.clone(), u["sessionId"].as_str().unwrap().to_owned(), state.to_owned())
        })
        .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_of_a_child_is_shown_under_its_own_card_and_both_end() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "nested").await, "end_turn");
    desk.pass(Duration::from_secs(5)).await;
    let of = |u: &Value| u["_meta"]["claudeCode"]["parentToolUseId"].as_str().map(str::to_owned);
    let cards: Vec<(String, Option<String>)> = desk
        .updates
        .iter()
        .filter(|(_, u)| u["sessionUpdate"] == "tool_call")
        .map(|(_, u)| (u["toolCallId"].as_str().unwrap().to_owned(), of(u)))
        .collect();
    let outer = cards.iter().find(|it| it.1.is_none()).unwrap();
    let inner = cards.iter().find(|it| it.1.as_deref() == Some(&outer.0)).unwrap();
    let tools = cards.iter().filter(|it| it.1.as_deref() == Some(&inner.0)).count();
    assert_eq!(tools, 2, "the grandchild's tools under the child's card: {cards:?}");
    let text_under = |card: &str| -> String {
        let of_it = desk.updates.iter().filter(|(_, u)| of(u).as_deref() == Some(card));
        of_it.filter_map(|(_, u)| u["content"]["text"].as_str()).collect()
    };
    assert!(text_under(&outer.0).contains("I pass that on."));
    assert!(text_under(&inner.0).contains("Two files, 164 lines."));
    let own: String = desk
        .updates
        .iter()
        .filter(|(_, u)| u["sessionUpdate"] == "agent_message_chunk" && of(u).is_none())
        .filter_map(|(_, u)| u["content"]["text"].as_str())
        .collect();
    assert_eq!(own, "This goes two levels deep.Two levels down and back again.");
    assert!(desk.open_cards(&session).is_empty());
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_shows_subagents_gets_each_as_a_session_linked_to_its_card() {
    let mut desk = Desk::greeted(|_| paced(), |_| {}, shows_subagents()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "nested").await, "end_turn");
    desk.pass(Duration::from_secs(5)).await;
    let told = desk.subagents();
    let child = &told.iter().find(|it| it.0 == session).unwrap().1;
    let grandchild = &told.iter().find(|it| it.0 == *child).unwrap().1;
    for (of, id) in [(&session, child), (child, grandchild)] {
        let states: Vec<&str> =
            told.iter().filter(|it| it.1 == *id).map(|it| it.2.as_str()).collect();
        assert_eq!((states.first(), states.last()), (Some(&"running"), Some(&"idle")), "{told:?}");
        let update = desk.updates.iter().find(|(s, u)| s == of && u["sessionId"] == **id).unwrap();
        let card = update.1["_meta"]["claudeCode"]["parentToolUseId"].as_str().unwrap();
        let linked = desk.updates.iter().any(|(s, u)| {
            s == of && u["toolCallId"] == card && u["content"].to_string().contains(id.as_str())
        });
        assert!(linked, "the card names the session it started");
    }
    assert!(desk.text(child).contains("I pass that on."));
    assert!(desk.text(grandchild).contains("Two files, 164 lines."));
    assert_eq!(desk.text(&session), "This goes two levels deep.Two levels down and back again.");
    for of in [&session, child, grandchild] {
        assert!(desk.open_cards(of).is_empty(), "{of}");
    }
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_subagents_at_once_are_followed_and_cancelled_one_by_one() {
    let steps = json!([
        {"say": "Off they go."},
        {"subagent": {"kind": "Explore", "description": "Look", "prompt": "Look.", "background": true, "count": 100,
            "steps": [{"wait": 1000}, {"say": "I begin."}, {"wait": 600_000}, {"say": "I am done."}], "summary": "done"}},
        {"say": "All of them."},
    ]);
    let script = json!({"name": "hundred", "steps": steps}).to_string();
    let options = move |_| Options { scripts: vec![script.clone()], ..paced() };
    let mut desk = Desk::greeted(options, |_| {}, shows_subagents()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "demo hundred").await, "end_turn");
    desk.pass(Duration::from_secs(20)).await;
    let ids: HashSet<String> = desk.subagents().into_iter().map(|it| it.1).collect();
    assert_eq!(ids.len(), 100);
    for id in &ids {
        assert_eq!(desk.text(id), "I begin.", "each is followed");
    }
    for (n, id) in ids.iter().enumerate() {
        desk.cancel(id);
        desk.pass(Duration::from_secs(2)).await;
        let idle = desk.subagents().into_iter().filter(|it| it.2 == "idle").count();
        assert_eq!(idle, n + 1, "this one alone has ended");
    }
    for id in &ids {
        assert!(desk.open_cards(id).is_empty(), "{id}");
        assert!(!desk.text(id).contains("done"), "{id}");
    }
    assert!(desk.open_cards(&session).is_empty());
    assert_eq!(desk.turn(&session, "echo afterwards").await, "end_turn");
    desk.end().await;
}
