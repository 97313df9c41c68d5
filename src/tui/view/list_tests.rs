//! Screens of lists and chips: what is queued, subagents and their own transcripts, the menu of files.

use super::tests::{asked, keys, ready, screen, screens, tell};
use super::*;
use crate::tui::model::login::AuthMethod;
use crate::tui::model::mention::FileList;
use crate::tui::model::queue::{AgentItem, AgentQueue};
use crate::tui::model::{Ability, Overlay, Page, PageContent, Turn};
use crate::tui::msg::{AgentMsg, Msg, SessionFact};
use crate::tui::terminal::input::TermEvent;
use crate::tui::update::update;
use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

fn check(name: &str, make: impl FnMut() -> Model) {
    for (size, text) in screens(name, make) {
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), text);
    }
}

fn told(model: &mut Model, session: &str, update: &Value) {
    let update: acp::SessionUpdate = serde_json::from_value(update.clone()).unwrap();
    tell(model, AgentMsg::Updated { session_id: session.into(), update: Box::new(update) });
}

fn child(model: &mut Model, above: &str, id: &str, title: &str, call: &str, state: &Value) {
    let fact = SessionFact::Child { session_id: id.into(), title: title.into() };
    tell(model, AgentMsg::Learned { session_id: above.into(), fact });
    let update = json!({"sessionUpdate": "subagent_update", "sessionId": id, "title": title, "state": state,
        "capabilities": {"cancel": {}}, "_meta": {"claudeCode": {"parentToolUseId": call}}});
    told(model, above, &update);
}

fn says(model: &mut Model, session: &str, kind: &str, text: &str) {
    let update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
    told(model, session, &update);
}

/// A turn that started two subagents, one of which started another.
pub(super) fn nested() -> Model {
    let mut model = ready();
    keys(&mut model, "look around<ret>");
    let running = json!({"state": "running"});
    for (call, title) in [("a1", "Agent: explore the tests"), ("a2", "Agent: 文档を読む")] {
        let card = json!({"sessionUpdate": "tool_call", "toolCallId": call, "title": title, "kind": "think", "status": "in_progress"});
        told(&mut model, "s", &card);
    }
    child(&mut model, "s", "kid", "explore the tests", "a1", &running);
    child(&mut model, "s", "other", "文档を読む", "a2", &running);
    says(&mut model, "kid", "agent_thought_chunk", "The tests live under tests/.");
    let read = json!({"sessionUpdate": "tool_call", "toolCallId": "r", "title": "Read tests/e2e/main.rs", "kind": "read", "status": "completed"});
    told(&mut model, "kid", &read);
    let card = json!({"sessionUpdate": "tool_call", "toolCallId": "g", "title": "Agent: count them", "kind": "think", "status": "in_progress"});
    told(&mut model, "kid", &card);
    child(&mut model, "kid", "grandkid", "count them", "g", &running);
    says(&mut model, "grandkid", "agent_message_chunk", "Counting: **41** so far");
    let idle = json!({"state": "idle", "stopReason": {"stopReason": "end_turn"}});
    let ended = json!({"sessionUpdate": "subagent_update", "sessionId": "other", "state": idle});
    says(&mut model, "other", "agent_message_chunk", "読みました。");
    told(&mut model, "s", &ended);
    model.now_ms += 65_000;
    model
}

#[test]
fn subagents_are_listed_as_a_tree_with_what_they_do() {
    check("agents", || {
        let mut model = nested();
        keys(&mut model, "<alt-a>");
        model
    });
}

#[test]
fn a_subagents_transcript_is_shown_with_the_way_back() {
    check("agent_inside", || {
        let mut model = nested();
        keys(&mut model, "<alt-a><ret>");
        model
    });
}

#[test]
fn a_subagents_subagent_is_shown_two_deep_as_it_streams() {
    check("agent_two_deep", || {
        let mut model = nested();
        keys(&mut model, "<alt-a><down><ret>");
        says(&mut model, "grandkid", "agent_message_chunk", ", and one more: `tests/e2e/tui.rs`.");
        model
    });
}

#[test]
fn a_card_says_what_its_subagent_does() {
    check("agent_cards", nested);
}

#[test]
fn esc_goes_back_one_level_after_the_other_and_only_then_stops_the_turn() {
    let mut model = nested();
    keys(&mut model, "<alt-a><down><ret>");
    assert_eq!(model.path.len(), 2);
    keys(&mut model, "<esc>");
    assert_eq!(model.path.len(), 1);
    assert!(screen(&mut model, (80, 24)).contains("main › explore the tests"));
    keys(&mut model, "<esc>");
    assert!(model.path.is_empty());
    assert!(matches!(model.turn, crate::tui::model::Turn::Running { .. }));
    keys(&mut model, "<esc>");
    assert!(matches!(model.turn, crate::tui::model::Turn::Cancelling { .. }));
}

fn item(id: &str, text: &str, note: &str) -> AgentItem {
    AgentItem { id: id.into(), text: text.into(), note: note.into() }
}

/// Two prompts that wait here, two in the agent.
pub(super) fn queued(auto_drain: bool) -> Model {
    let mut model = ready();
    model.agent.abilities.extend([Ability::Queue, Ability::Steer]);
    keys(&mut model, "go<ret>first here<ret>第二<ret>");
    let items = vec![
        item("q1", "and mind the edge cases", "too late for the turn"),
        item("q2", "then write it down\nin the README", ""),
    ];
    let fact = SessionFact::Queue(AgentQueue { items, auto_drain, pause: None });
    tell(&mut model, AgentMsg::Learned { session_id: "s".into(), fact });
    model
}

#[test]
fn what_waits_here_and_in_the_agent_is_told_apart() {
    check("queue_rows", || queued(true));
}

#[test]
fn the_queue_is_a_list_with_its_keys() {
    check("queue_list", || {
        let mut model = queued(true);
        keys(&mut model, "<alt-q><down><down>");
        model
    });
}

#[test]
fn a_queue_that_waits_says_so() {
    check("queue_held", || {
        let mut model = queued(false);
        keys(&mut model, "<alt-q>");
        model
    });
}

#[test]
fn editing_a_message_of_the_agents_says_where_it_goes() {
    check("queue_edit", || {
        let mut model = queued(true);
        keys(&mut model, "<alt-q><down><down>e");
        model
    });
}

#[test]
fn no_size_makes_the_lists_panic() {
    for columns in (0..140).step_by(7) {
        for rows in (0..50).step_by(3) {
            for (made, typed) in
                [(nested(), "<alt-a>"), (nested(), "<alt-a><down><ret>"), (queued(true), "<alt-q>")]
            {
                let mut model = made;
                keys(&mut model, typed);
                screen(&mut model, (columns, rows));
            }
        }
    }
}

fn mentioning() -> Model {
    let mut model = ready();
    let mut files = FileList::default();
    for path in ["README.md", "src/main.rs", "src/domain/模型/manifest.rs", "tests/main.rs"] {
        files.push(path.to_owned());
    }
    files.push(format!("{}/main_of_a_deep_place.rs", "a-directory/".repeat(12) + "end"));
    keys(&mut model, "explain<space>@ma");
    update(&mut model, Msg::FilesListed(std::sync::Arc::new(files)));
    keys(&mut model, "<down>");
    model
}

#[test]
fn the_menu_of_files_shows_what_fits() {
    check("mention", mentioning);
}

fn pictured() -> Model {
    let mut model = ready();
    model.agent.abilities.push(crate::tui::model::Ability::Image);
    keys(&mut model, "what<space>is<space>wrong<space>here:<space>");
    update(&mut model, Msg::Term(TermEvent::Paste("/t/屏幕.png".into())));
    let (word, path) = ("/t/屏幕.png".to_owned(), "/t/屏幕.png".into());
    update(&mut model, Msg::PictureLookedAt { word, path, result: Ok(()) });
    model
}

#[test]
fn a_picture_stands_in_the_draft_as_a_chip() {
    check("picture", pictured);
}

fn locked() -> Model {
    let mut model = ready();
    let method = |id: &str, name: &str, about: &str| AuthMethod {
        id: id.into(),
        name: name.into(),
        about: about.into(),
        program: None,
    };
    model.agent.auth_methods = vec![
        method("key", "API key", "from the environment"),
        method("web", "登录", "opens the browser"),
    ];
    model.phase = Phase::NeedsLogin("Authentication required".into());
    model
}

#[test]
fn an_agent_that_wants_a_login_is_shown_with_its_ways_to_log_in() {
    check("login", locked);
}

#[test]
fn a_list_of_sessions_says_that_there_are_more_than_were_read() {
    check("sessions", || {
        let mut model = ready();
        model.agent.abilities.push(Ability::List);
        keys(&mut model, "/resume<ret>");
        let session = |n: usize| json!({"sessionId": format!("id-{n}"), "title": format!("Session {n}"), "updatedAt": "2026-01-02T03:04:05Z"});
        let sessions: Vec<Value> = (0..50).map(session).collect();
        tell(&mut model, AgentMsg::Sessions(Ok(json!({"sessions": sessions, "nextCursor": "c"}))));
        model
    });
}

#[test]
fn a_list_with_nothing_in_it_says_so_and_not_that_nothing_fits() {
    check("no_sessions", || {
        let mut model = ready();
        model.agent.abilities.push(Ability::List);
        keys(&mut model, "/resume<ret>");
        tell(&mut model, AgentMsg::Sessions(Ok(json!({"sessions": []}))));
        model
    });
}

#[test]
fn a_page_of_a_long_output_says_that_its_length_is_a_guess() {
    check("long_output", || {
        let mut model = ready();
        keys(&mut model, "build<ret>");
        let line = |n: usize| format!("{n:>6} compiling a crate with a name of some length\n");
        let output = (0..20_000).map(line).collect::<Vec<_>>().concat();
        // Nobody keeps what is too long for memory here: the page is opened on all of it.
        model.overlay = Some(Overlay::Page(Page {
            title: "cargo build".to_owned(),
            content: PageContent::Text(output.into()),
            scroll: 0,
            focused: true,
            find: None,
        }));
        model
    });
}

#[test]
fn esc_is_said_to_stop_the_turn_only_where_it_does() {
    let typed = |mut model: Model, text: &str| {
        keys(&mut model, text);
        model
    };
    let mut mentioned = typed(ready(), "go<ret>");
    keys(&mut mentioned, "explain<space>@ma");
    let mut files = FileList::default();
    files.push("src/main.rs".to_owned());
    update(&mut mentioned, Msg::FilesListed(std::sync::Arc::new(files)));
    let places: Vec<(&str, Model)> = vec![
        ("list", typed(typed(ready(), "go<ret>"), "<alt-m>")),
        ("page", typed(typed(ready(), "go<ret>"), "<f1>")),
        ("menu", typed(typed(ready(), "go<ret>"), "/m")),
        ("files", mentioned),
        ("search", typed(typed(ready(), "go<ret>"), "<ctrl-s>x")),
        ("older prompt", typed(typed(ready(), "go<ret>"), "<up>")),
        ("subagents", typed(nested(), "<alt-a>")),
        ("a subagent", typed(nested(), "<alt-a><ret>")),
        ("queue", typed(queued(true), "<alt-q>")),
        ("queued message", typed(queued(true), "<alt-q><down><down>e")),
        ("question", asked(3, "rm")),
    ];
    for (place, mut model) in places {
        for size in [(80, 24), (40, 12)] {
            let text = screen(&mut model, size);
            assert!(!text.contains("Esc stop"), "{place}: {text}");
        }
        keys(&mut model, "<esc>");
        assert!(matches!(model.turn, Turn::Running { .. }), "{place}: Esc stopped the turn");
    }
    let mut model = typed(ready(), "go<ret>");
    assert!(screen(&mut model, (80, 24)).contains("Esc stop"));
    keys(&mut model, "<esc>");
    assert!(matches!(model.turn, Turn::Cancelling { .. }));
}

#[test]
fn a_search_without_a_match_says_so() {
    let mut model = ready();
    keys(&mut model, "<ctrl-s>nowhere");
    model.search.as_mut().unwrap().position = Some((0, 0));
    let text = screen(&mut model, (80, 24));
    assert!(text.contains("search: nowhere  nothing found"), "{text}");
}
