//! What a closed session takes and what brings it back.

use super::*;

impl Desk {
    async fn close(&mut self, session: &str) {
        assert_eq!(self.ok("session/close", json!({"sessionId": session})).await, json!({}));
    }

    /// Every request that needs an open session, each by its code.
    async fn codes_of_a_closed(&mut self, session: &str) -> Vec<i32> {
        let mut codes = Vec::new();
        for (method, params) in [
            ("session/prompt", json!({"prompt": [{"type": "text", "text": "hello"}]})),
            ("session/set_mode", json!({"modeId": "plan"})),
            ("session/set_config_option", json!({"configId": "mode", "value": "plan"})),
            ("_zcode/state", json!({})),
            ("session/goal", json!({"action": "show"})),
        ] {
            let mut params = params;
            params["sessionId"] = json!(session);
            let error = self.refused(method, params).await;
            assert_eq!(error.data.unwrap()["sessionId"], session, "{method}");
            codes.push(i32::from(error.code));
        }
        codes
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_is_unknown_until_it_is_resumed_or_loaded() {
    for method in ["session/resume", "session/load"] {
        let mut desk = Desk::new(paced()).await;
        let session = desk.open().await;
        assert_eq!(desk.turn(&session, "echo one").await, "end_turn");
        desk.close(&session).await;
        assert_eq!(desk.codes_of_a_closed(&session).await, [-32002; 5]);
        assert_eq!(desk.calls("session/resume"), 0, "a refused request does not load it");
        // Closed again it is still closed.
        desk.close(&session).await;
        let open = json!({"sessionId": session, "cwd": desk.cwd(), "mcpServers": []});
        desk.ok(method, open).await;
        assert_eq!(desk.turn(&session, "echo two").await, "end_turn", "{method}");
        assert!(desk.text(&session).contains("two"));
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_never_used_can_be_closed_and_had_back() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    desk.close(&session).await;
    assert_eq!(desk.codes_of_a_closed(&session).await, [-32002; 5]);
    let open = json!({"sessionId": session, "cwd": desk.cwd(), "mcpServers": []});
    desk.ok("session/load", open).await;
    assert_eq!(desk.turn(&session, "echo one").await, "end_turn");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_can_be_opened_while_it_is_still_being_closed() {
    let mut desk = Desk::new(with_faults(&["slow:session/close:500"])).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo one").await, "end_turn");
    let close = desk.post("session/close", json!({"sessionId": session}));
    let open = json!({"sessionId": session, "cwd": desk.cwd(), "mcpServers": []});
    let open = desk.post("session/resume", open);
    desk.answer(close).await.unwrap();
    desk.answer(open).await.unwrap();
    assert_eq!(desk.turn(&session, "echo two").await, "end_turn");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_right_behind_the_close_is_refused() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo one").await, "end_turn");
    let close = desk.post("session/close", json!({"sessionId": session}));
    let prompt = desk.prompt(&session, "echo two");
    desk.answer(close).await.unwrap();
    assert_eq!(i32::from(desk.answer(prompt).await.unwrap_err().code), -32002);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_copy_can_be_made_of_a_closed_session_and_of_one_that_was_only_listed() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "create").await, "end_turn");
    desk.close(&session).await;
    let fork = json!({"sessionId": session, "cwd": desk.cwd(), "mcpServers": []});
    let made = desk.ok("session/fork", fork.clone()).await;
    let copy = made["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(desk.turn(&copy, "echo in the copy").await, "end_turn");
    assert_eq!(desk.codes_of_a_closed(&session).await, [-32002; 5]);
    desk.ok("session/resume", fork).await;
    assert_eq!(desk.turn(&session, "echo one").await, "end_turn");
    let nobody = json!({"sessionId": "nobody", "cwd": desk.cwd(), "mcpServers": []});
    assert_eq!(i32::from(desk.refused("session/fork", nobody).await.code), -32002);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn closing_what_nobody_knows_is_refused() {
    let mut desk = Desk::new(paced()).await;
    let error = desk.refused("session/close", json!({"sessionId": "nobody"})).await;
    assert_eq!(i32::from(error.code), -32002);
    desk.end().await;
}
