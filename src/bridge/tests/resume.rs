//! `/resume`: an empty thread goes on with a session from before, whoever has it.

use super::*;

fn forms() -> Value {
    json!({"protocolVersion": 1, "clientCapabilities": {"elicitation": {"form": {}}}})
}

impl Desk {
    /// A session with one turn, whose thread was closed again unless `stays`.
    async fn earlier(&mut self, words: &str, stays: bool) -> String {
        let session = self.open().await;
        assert_eq!(self.turn(&session, words).await, "end_turn");
        if !stays {
            self.ok("session/close", json!({"sessionId": session})).await;
        }
        session
    }

    fn kinds(&self, session: &str) -> Vec<&str> {
        let of = self.updates.iter().filter(|(id, _)| id == session);
        of.filter_map(|(_, update)| update["sessionUpdate"].as_str()).collect()
    }

    /// What the thread shows from here on.
    fn forget(&mut self) {
        self.updates.clear();
    }

    fn choices(ask: &Ask) -> Vec<String> {
        let form = &ask.params["requestedSchema"]["properties"]["session"]["oneOf"];
        let list = form.as_array().or(ask.params["options"].as_array()).unwrap();
        let id = |it: &Value| {
            it.get("const").or(it.get("optionId")).unwrap().as_str().unwrap().to_owned()
        };
        list.iter().map(id).collect()
    }

    fn thread_is_empty(&self, session: &str) -> bool {
        self.chunks(session, "user_message_chunk").is_empty()
    }
}

impl Ask {
    fn accept(self, session: &str) {
        let content = json!({"action": "accept", "content": {"session": session}});
        self.responder.respond(content).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_thread_goes_on_with_the_session_chosen_in_a_form() {
    let mut desk = Desk::greeted(|_| paced(), |_| {}, forms()).await;
    let earlier = desk.earlier("echo from before", false).await;
    let thread = desk.open().await;
    desk.forget();
    let resume = desk.prompt(&thread, "/resume");
    let ask = desk.ask().await;
    assert_eq!((ask.method.as_str(), ask.session()), ("elicitation/create", thread.as_str()));
    assert_eq!(Desk::choices(&ask), std::slice::from_ref(&earlier));
    let created = desk.calls("session/create");
    ask.accept(&earlier);
    assert_eq!(desk.stop_reason(resume).await, "end_turn");
    assert_eq!(
        desk.calls("session/create"),
        created,
        "an empty thread needs no session of its own"
    );
    assert_eq!(desk.chunks(&thread, "user_message_chunk"), ["echo from before"]);
    assert!(desk.text(&thread).contains("from before"), "{}", desk.text(&thread));
    assert!(desk.text(&thread).ends_with("This thread goes on with “echo from before”."));
    let kinds = desk.kinds(&thread);
    for kind in ["session_info_update", "config_option_update", "current_mode_update"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    // Prompts go there from now on, and the history has both.
    assert_eq!(desk.turn(&thread, "echo and now").await, "end_turn");
    desk.ok("session/close", json!({"sessionId": thread})).await;
    desk.forget();
    let load = json!({"sessionId": earlier, "cwd": desk.cwd(), "mcpServers": []});
    desk.ok("session/load", load).await;
    assert_eq!(desk.chunks(&earlier, "user_message_chunk"), ["echo from before", "echo and now"]);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_without_forms_chooses_by_buttons_on_a_card() {
    let mut desk = Desk::new(paced()).await;
    let first = desk.earlier("echo one", false).await;
    let second = desk.earlier("echo two", false).await;
    let thread = desk.open().await;
    let resume = desk.prompt(&thread, "/resume");
    let ask = desk.ask().await;
    assert_eq!(ask.params["toolCall"]["toolCallId"], "resume_pick");
    assert_eq!(Desk::choices(&ask), [second, first.clone(), "cancel".to_owned()]);
    assert!(desk.kinds(&thread).contains(&"tool_call"), "the card comes before the buttons");
    ask.select(&first);
    assert_eq!(desk.stop_reason(resume).await, "end_turn");
    desk.until(&thread, |it| it["toolCallId"] == "resume_pick" && it["status"] == "completed")
        .await;
    assert_eq!(desk.chunks(&thread, "user_message_chunk"), ["echo one"]);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_another_thread_has_open_is_shared() {
    let mut desk = Desk::greeted(|_| paced(), |_| {}, forms()).await;
    let first = desk.earlier("echo one", true).await;
    let thread = desk.open().await;
    desk.forget();
    assert_eq!(desk.turn(&thread, &format!("/resume {first}")).await, "end_turn");
    assert_eq!(desk.chunks(&thread, "user_message_chunk"), ["echo one"]);
    assert!(desk.thread_is_empty(&first), "the first thread has its history already");
    // What happens in one is seen in the other, with its question.
    desk.forget();
    let id = desk.prompt(&thread, "permission");
    let ask = desk.ask().await;
    assert_eq!(ask.session(), thread, "asked where the prompt was typed");
    let allow = ask.option("allow_once");
    ask.select(&allow);
    assert_eq!(desk.stop_reason(id).await, "end_turn");
    assert_eq!(desk.chunks(&first, "user_message_chunk"), ["permission"]);
    assert_eq!(desk.text(&first), desk.text(&thread));
    // Closing one leaves the other.
    desk.ok("session/close", json!({"sessionId": first})).await;
    assert_eq!(desk.calls("session/close"), 0);
    assert_eq!(desk.turn(&thread, "echo still here").await, "end_turn");
    assert_eq!(i32::from(prompt_refused(&mut desk, &first).await.code), -32002);
    // And it can be had back.
    desk.forget();
    let load = json!({"sessionId": first, "cwd": desk.cwd(), "mcpServers": []});
    desk.ok("session/load", load).await;
    assert_eq!(desk.chunks(&first, "user_message_chunk").len(), 3);
    assert!(desk.thread_is_empty(&thread), "a history goes to the id that asks for it");
    desk.end().await;
}

async fn prompt_refused(desk: &mut Desk, session: &str) -> AcpError {
    let prompt = json!([{"type": "text", "text": "hello"}]);
    desk.refused("session/prompt", json!({"sessionId": session, "prompt": prompt})).await
}

#[tokio::test(start_paused = true)]
async fn whatever_is_no_choice_leaves_the_thread_as_it_was() {
    let answers = [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {"session": "no-such-session"}}),
        json!({"action": "accept", "content": {"session": 7}}),
    ];
    let mut desk = Desk::greeted(|_| paced(), |_| {}, forms()).await;
    desk.earlier("echo one", false).await;
    let thread = desk.open().await;
    for answer in answers {
        desk.forget();
        let resume = desk.prompt(&thread, "/resume");
        let ask = desk.ask().await;
        ask.responder.respond(answer.clone()).unwrap();
        assert_eq!(desk.stop_reason(resume).await, "end_turn", "{answer}");
        assert!(desk.text(&thread).contains("stays as it is"), "{answer}: {}", desk.text(&thread));
        assert!(desk.thread_is_empty(&thread), "{answer}");
    }
    assert_eq!(desk.turn(&thread, "echo its own").await, "end_turn");
    assert_eq!(desk.calls("session/create"), 2);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_form_that_cannot_be_shown_becomes_buttons_and_buttons_that_cannot_be_shown_nothing() {
    let mut desk = Desk::greeted(|_| paced(), |_| {}, forms()).await;
    desk.earlier("echo one", false).await;
    let thread = desk.open().await;
    let resume = desk.prompt(&thread, "/resume");
    let form = desk.ask().await;
    form.responder.respond_with_error(AcpError::internal_error()).unwrap();
    let buttons = desk.ask().await;
    assert_eq!(buttons.method, "session/request_permission");
    buttons.responder.respond_with_error(AcpError::internal_error()).unwrap();
    assert_eq!(desk.stop_reason(resume).await, "end_turn");
    assert!(desk.text(&thread).contains("stays as it is"));
    assert_eq!(desk.open_cards(&thread), HashSet::new());
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_takes_the_choice_back() {
    let mut desk = Desk::new(paced()).await;
    desk.earlier("echo one", false).await;
    let thread = desk.open().await;
    let resume = desk.prompt(&thread, "/resume");
    let ask = desk.ask().await;
    let behind = desk.prompt(&thread, "echo behind it");
    desk.cancel(&thread);
    assert_eq!(desk.stop_reason(resume).await, "cancelled");
    assert_eq!(desk.stop_reason(behind).await, "cancelled");
    assert_eq!(desk.open_cards(&thread), HashSet::new());
    // The answer that comes all the same changes nothing.
    let first = Desk::choices(&ask)[0].clone();
    ask.select(&first);
    assert_eq!(desk.turn(&thread, "echo its own").await, "end_turn");
    assert!(desk.thread_is_empty(&thread));
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_nobody_makes_ends_at_the_deadline_of_questions() {
    let limit = Duration::from_mins(1);
    let mut desk = Desk::with(|_| paced(), |config| config.interaction_timeout = Some(limit)).await;
    desk.earlier("echo one", false).await;
    let thread = desk.open().await;
    let began = Instant::now();
    assert_eq!(desk.turn(&thread, "/resume").await, "end_turn");
    assert!(began.elapsed() >= limit, "{:?}", began.elapsed());
    assert!(desk.text(&thread).contains("stays as it is"));
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn prompts_behind_the_command_go_to_the_session_after_its_history() {
    for stays in [false, true] {
        let mut desk = Desk::new(paced()).await;
        let earlier = desk.earlier("echo one", stays).await;
        let thread = desk.open().await;
        desk.forget();
        let resume = desk.prompt(&thread, &format!("/resume {earlier}"));
        let behind = desk.prompt(&thread, "echo behind it");
        assert_eq!(desk.stop_reason(resume).await, "end_turn");
        let told = desk.updates.len();
        assert_eq!(desk.stop_reason(behind).await, "end_turn");
        let text = desk.text(&thread);
        assert!(text.ends_with("behind it") || text.contains("behind it"), "{text}");
        let later = desk.updates.iter().skip(told).any(|(id, update)| {
            *id == thread
                && update["content"]["text"].as_str().is_some_and(|it| it.contains("behind"))
        });
        assert!(later, "stays {stays}: it ran before the history was told");
        assert_eq!(desk.calls("session/create"), 1);
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_gone_on_with_is_said_and_what_to_do() {
    let mut desk = Desk::new(paced()).await;
    let first = desk.earlier("echo one", false).await;
    let elsewhere = desk.dir.path().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let made = desk.ok("session/new", json!({"cwd": elsewhere, "mcpServers": []})).await;
    let foreign = made["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(desk.turn(&foreign, "echo far").await, "end_turn");
    let running = desk.open().await;
    let long = desk.prompt(&running, "story");
    desk.until_text(&running, "Chapter").await;
    let thread = desk.open().await;
    for (id, words) in [
        ("no-such-session", "There is no session `no-such-session`"),
        (foreign.as_str(), "elsewhere. Open a thread in that directory"),
        (running.as_str(), "A turn is running"),
    ] {
        desk.forget();
        assert_eq!(desk.turn(&thread, &format!("/resume {id}")).await, "end_turn");
        assert!(desk.text(&thread).contains(words), "{id}: {}", desk.text(&thread));
    }
    // Neither is offered.
    let resume = desk.prompt(&thread, "/resume");
    let ask = desk.ask().await;
    assert_eq!(Desk::choices(&ask), [first.clone(), "cancel".to_owned()]);
    ask.select("cancel");
    assert_eq!(desk.stop_reason(resume).await, "end_turn");
    // A thread with a conversation stays with it.
    desk.forget();
    let full = desk.earlier("echo mine", true).await;
    for command in ["/resume".to_owned(), format!("/resume {first}")] {
        desk.forget();
        assert_eq!(desk.turn(&full, &command).await, "end_turn");
        let text = desk.text(&full);
        assert!(text.contains("Start a new thread") && text.contains(&first), "{text}");
    }
    desk.cancel(&running);
    desk.stop_reason(long).await;
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn with_nothing_to_go_on_with_that_is_said() {
    let mut desk = Desk::new(paced()).await;
    let thread = desk.open().await;
    assert_eq!(desk.turn(&thread, "/resume").await, "end_turn");
    assert!(desk.text(&thread).contains("There is no other session of this directory"));
    assert_eq!(desk.calls("session/create"), 0, "looking leaves nothing behind");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_was_made_without_a_turn_leaves_its_own_session() {
    let mut desk = Desk::new(paced()).await;
    let earlier = desk.earlier("echo one", false).await;
    let thread = desk.open().await;
    assert_eq!(desk.turn(&thread, "/mcp").await, "end_turn");
    assert_eq!(desk.calls("session/create"), 2);
    let closed = desk.calls("session/close");
    assert_eq!(desk.turn(&thread, &format!("/resume {earlier}")).await, "end_turn");
    assert_eq!(desk.calls("session/close"), closed + 1);
    assert_eq!(desk.chunks(&thread, "user_message_chunk"), ["echo one"]);
    assert_eq!(desk.turn(&thread, "echo two").await, "end_turn");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_be_loaded_leaves_the_thread_empty() {
    let mut desk = Desk::new(with_faults(&["no-method:session/resume"])).await;
    let earlier = desk.earlier("echo one", false).await;
    let thread = desk.open().await;
    desk.forget();
    let prompt = json!([{"type": "text", "text": format!("/resume {earlier}")}]);
    let resume = json!({"sessionId": thread, "prompt": prompt});
    let error = desk.refused("session/prompt", resume).await;
    assert!(error.message.contains("session/resume"), "{error:?}");
    assert!(desk.thread_is_empty(&thread));
    assert_eq!(desk.turn(&thread, "echo its own").await, "end_turn");
    assert!(desk.text(&thread).contains("its own"));
    assert_eq!(desk.calls("session/create"), 2);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_binding_outlives_the_bridge() {
    let mut desk = Desk::new(paced()).await;
    let earlier = desk.earlier("echo one", false).await;
    let thread = desk.open().await;
    assert_eq!(desk.turn(&thread, &format!("/resume {earlier}")).await, "end_turn");
    desk.pass(Duration::from_millis(10)).await;
    let file = desk.dir.path().join("home/.zcode/v2/acp-lazy-sessions.json");
    let text = std::fs::read_to_string(file).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all[&thread]["zcodeSid"], all[&earlier]["zcodeSid"]);
    assert!(all[&thread]["zcodeSid"].is_string());
    desk.end().await;
}
