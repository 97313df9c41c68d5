//! Subagents: which one a key means, the way there and back, and cancelling one alone.

use super::tests::{agent_cmds, end_turn, keys, ready, send};
use super::*;
use crate::tui::model::agents;
use crate::tui::model::transcript::block::BlockKind;
use crate::tui::msg::{AgentCmd, AgentMsg, Scroll, SessionFact};
use serde_json::{Value, json};

fn told(model: &mut Model, session: &str, update: &Value) {
    let update = Box::new(serde_json::from_value(update.clone()).unwrap());
    send(model, AgentMsg::Updated { session_id: session.into(), update });
}

fn child(model: &mut Model, above: &str, id: &str, can_cancel: bool) {
    let fact = SessionFact::Child { session_id: id.into(), title: id.into() };
    send(model, AgentMsg::Learned { session_id: above.into(), fact });
    let can = if can_cancel { json!({"cancel": {}}) } else { json!({}) };
    let update = json!({"sessionUpdate": "subagent_update", "sessionId": id, "title": id,
        "state": {"state": "running"}, "capabilities": can});
    told(model, above, &update);
}

fn says(model: &mut Model, session: &str, text: &str) {
    let update =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    told(model, session, &update);
}

fn nested() -> Model {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    child(&mut m, "s", "kid", true);
    child(&mut m, "kid", "grandkid", true);
    says(&mut m, "grandkid", "deep ");
    says(&mut m, "grandkid", "words");
    m
}

fn text_in(model: &Model, agent: &str) -> String {
    let block = model.transcript.subagent_block(agent).unwrap();
    let inside = model.transcript.below(Some(block)).iter();
    let text = |id: &crate::tui::model::transcript::block::BlockId| match &model
        .transcript
        .block(*id)?
        .kind
    {
        BlockKind::Assistant(message) => Some(message.text.clone()),
        _ => None,
    };
    inside.filter_map(text).collect()
}

#[test]
fn what_a_child_of_a_child_says_reaches_its_own_transcript() {
    let m = nested();
    assert_eq!(text_in(&m, "grandkid"), "deep words");
    assert_eq!(text_in(&m, "kid"), "");
}

#[test]
fn a_look_into_a_nested_subagent_knows_the_way_back() {
    let mut m = nested();
    let cmds = keys(&mut m, "<alt-a><down><ret>");
    let kid = m.transcript.subagent_block("kid").unwrap();
    let grandkid = m.transcript.subagent_block("grandkid").unwrap();
    assert!(cmds.contains(&Cmd::Scroll(Scroll::Within(vec![kid, grandkid]))));
    assert_eq!(keys(&mut m, "<esc>"), [Cmd::Scroll(Scroll::Within(vec![kid]))]);
    assert_eq!(keys(&mut m, "<esc>"), [Cmd::Scroll(Scroll::Within(Vec::new()))]);
}

#[test]
fn the_only_subagent_there_is_needs_no_choosing() {
    let mut m = nested();
    keys(&mut m, "<alt-o>");
    assert_eq!(m.path, [m.transcript.subagent_block("kid").unwrap()]);
    keys(&mut m, "<alt-o>");
    assert_eq!(m.path.last().copied(), m.transcript.subagent_block("grandkid"));
    keys(&mut m, "<alt-o>");
    assert_eq!(m.path.len(), 2, "there is nothing deeper");
}

#[test]
fn one_subagent_is_cancelled_by_its_own_session() {
    let mut m = nested();
    let cmds = agent_cmds(&keys(&mut m, "<alt-a><down>x"));
    assert_eq!(cmds, [AgentCmd::Cancel { session_id: "grandkid".into() }]);
    keys(&mut m, "<esc><alt-o>");
    let cmds = agent_cmds(&keys(&mut m, "<alt-w>"));
    assert_eq!(cmds, [AgentCmd::Cancel { session_id: "kid".into() }]);
    assert!(matches!(m.turn, crate::tui::model::Turn::Running { .. }), "the turn goes on");
}

#[test]
fn a_subagent_that_cannot_be_cancelled_alone_says_what_can_be_done() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    child(&mut m, "s", "kid", false);
    assert_eq!(agent_cmds(&keys(&mut m, "<alt-a>x")), []);
    assert!(m.toast.as_ref().is_some_and(|it| it.0.contains("Esc stops the whole turn")));
}

#[test]
fn a_subagent_in_the_background_outlives_the_turn_and_can_still_be_cancelled() {
    let mut m = nested();
    end_turn(&mut m, "end_turn");
    assert_eq!(m.transcript.running_subagents(), 2);
    says(&mut m, "grandkid", " go on");
    assert_eq!(text_in(&m, "grandkid"), "deep words go on");
    let cmds = agent_cmds(&keys(&mut m, "<alt-a>x"));
    assert_eq!(cmds, [AgentCmd::Cancel { session_id: "kid".into() }]);
    let idle = json!({"sessionUpdate": "subagent_update", "sessionId": "kid", "state": {"state": "idle", "stopReason": {"stopReason": "cancelled"}}});
    told(&mut m, "s", &idle);
    assert_eq!(m.transcript.running_subagents(), 1);
}

#[test]
fn a_new_prompt_goes_back_to_the_conversation_it_is_part_of() {
    let mut m = nested();
    keys(&mut m, "<alt-o>");
    end_turn(&mut m, "end_turn");
    let cmds = keys(&mut m, "next<ret>");
    assert!(cmds.contains(&Cmd::Scroll(Scroll::Within(Vec::new()))));
    assert!(m.path.is_empty());
}

#[test]
fn a_hundred_subagents_are_listed_each_under_its_own() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    for n in 0..100 {
        let above = if n % 10 == 0 { "s".to_owned() } else { format!("c{}", n / 10 * 10) };
        child(&mut m, &above, &format!("c{n}"), true);
    }
    let rows = agents::rows(&m.transcript);
    assert_eq!(rows.len(), 100);
    let depths: Vec<usize> = rows.iter().take(12).map(|row| row.depth).collect();
    assert_eq!(depths, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1]);
    keys(&mut m, "<alt-a>G<ret>");
    assert_eq!(m.path.len(), 2);
}
