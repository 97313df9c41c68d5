//! The list of what is queued: every key on prompts that wait here and on messages of the agent's.

use super::tests::{agent_cmds, end_turn, keys, prompt, ready, send};
use super::*;
use crate::tui::model::queue::{AgentItem, AgentQueue};
use crate::tui::model::{Ability, Overlay};
use crate::tui::msg::{AgentCmd, AgentMsg, Failure, QueueChange, SessionFact};

fn tell(model: &mut Model, ids: &[&str], auto_drain: bool) {
    let item = |id: &&str| AgentItem {
        id: (*id).into(),
        text: format!("text of {id}"),
        note: String::new(),
    };
    let queue = AgentQueue { items: ids.iter().map(item).collect(), auto_drain, pause: None };
    send(model, AgentMsg::Learned { session_id: "s".into(), fact: SessionFact::Queue(queue) });
}

fn running() -> Model {
    let mut m = ready();
    m.agent.abilities.extend([Ability::Queue, Ability::Steer]);
    keys(&mut m, "go<ret>one<ret>two<ret>");
    tell(&mut m, &["q1", "q2"], true);
    m
}

fn change(change: QueueChange) -> AgentCmd {
    AgentCmd::Queue { session_id: "s".into(), change }
}

#[test]
fn an_empty_queue_opens_no_list() {
    let mut m = ready();
    keys(&mut m, "<alt-q>");
    assert!(m.overlay.is_none() && m.toast.is_some());
}

#[test]
fn a_prompt_that_waits_here_is_edited_by_taking_it_back_into_the_draft() {
    let mut m = running();
    keys(&mut m, "<alt-q><ret>");
    assert_eq!((m.composer.text(), m.queue.len()), ("one", 1));
    assert!(m.overlay.is_none());
}

#[test]
fn a_draft_is_never_overwritten_by_an_edit() {
    let mut m = running();
    keys(&mut m, "mine<alt-q>e");
    assert_eq!((m.composer.text(), m.queue.len()), ("mine", 2));
}

#[test]
fn a_prompt_that_is_deleted_here_can_be_brought_back() {
    let mut m = running();
    keys(&mut m, "<alt-q>d<esc><ctrl-r>one<ret>");
    assert_eq!((m.composer.text(), m.queue.len()), ("one", 1));
}

#[test]
fn a_prompt_that_waits_here_is_sent_now_as_a_guide_and_comes_back_when_it_is_refused() {
    let mut m = running();
    let cmds = agent_cmds(&keys(&mut m, "<alt-q><down>s"));
    assert_eq!(
        cmds,
        [AgentCmd::Steer { session_id: "s".into(), text: "two".into(), files: Vec::new() }]
    );
    assert_eq!(m.queue.len(), 1);
    send(&mut m, AgentMsg::Steered { text: "two".into(), result: Ok("failed".into()) });
    assert_eq!(m.queue.len(), 2);
}

#[test]
fn without_a_turn_sent_now_begins_one() {
    let mut m = ready();
    keys(&mut m, "go<ret>one<ret>two<ret><esc>");
    end_turn(&mut m, "cancelled");
    assert_eq!(agent_cmds(&keys(&mut m, "<alt-q><down>s")), [prompt("two")]);
}

#[test]
fn messages_of_the_agents_are_changed_by_asking_it() {
    let mut m = running();
    let cmds = agent_cmds(&keys(&mut m, "<alt-q><down><down>d<down>sa"));
    let wanted = [
        change(QueueChange::Delete { id: "q1".into() }),
        change(QueueChange::SendNow { id: "q2".into() }),
        change(QueueChange::AutoDrain(false)),
    ];
    assert_eq!(cmds, wanted);
    assert_eq!(m.agent_items().len(), 2, "until the agent says so");
    tell(&mut m, &["q2"], false);
    assert_eq!(agent_cmds(&keys(&mut m, "a")), [change(QueueChange::AutoDrain(true))]);
}

#[test]
fn an_edit_of_the_agents_message_goes_back_to_the_agent_and_esc_leaves_it() {
    let mut m = running();
    keys(&mut m, "<alt-q><down><down>e");
    assert_eq!(m.composer.text(), "text of q1");
    let cmds = agent_cmds(&keys(&mut m, "!<ret>"));
    assert_eq!(cmds, [change(QueueChange::Edit { id: "q1".into(), text: "text of q1!".into() })]);
    assert!(m.composer.is_empty() && m.editing.is_none());
    keys(&mut m, "<alt-q><down><down>e<esc>");
    assert!(m.composer.is_empty() && m.editing.is_none());
    assert!(matches!(m.turn, crate::tui::model::Turn::Running { .. }), "no stop was meant");
}

#[test]
fn an_edit_that_the_agent_refuses_is_not_lost() {
    let mut m = running();
    keys(&mut m, "<alt-q><down><down>e!<ret>");
    let change = QueueChange::Edit { id: "q1".into(), text: "text of q1!".into() };
    let result = Err(Failure { message: "gone".into(), ..Failure::default() });
    send(&mut m, AgentMsg::QueueChanged { change, result });
    assert_eq!(m.composer.text(), "text of q1!");
    assert!(m.toast.as_ref().is_some_and(|it| it.0.contains("not changed: gone")));
}

#[test]
fn a_message_that_begins_to_run_while_it_is_edited_becomes_a_prompt_of_its_own() {
    let mut m = running();
    keys(&mut m, "<alt-q><down><down>e");
    tell(&mut m, &["q2"], true);
    assert!(m.editing.is_none());
    assert_eq!(agent_cmds(&keys(&mut m, "<ret>")), []);
    assert_eq!(m.queue.len(), 3);
}

#[test]
fn an_agent_without_a_queue_of_its_own_is_never_asked_about_one() {
    let mut m = ready();
    keys(&mut m, "go<ret>one<ret>");
    assert_eq!(agent_cmds(&keys(&mut m, "<alt-q>a")), []);
    assert!(matches!(m.overlay, Some(Overlay::Queue(_))));
    assert!(m.toast.as_ref().is_some_and(|it| it.0.contains("no queue of its own")));
}

#[test]
fn the_queue_is_forgotten_with_its_session() {
    let mut m = running();
    end_turn(&mut m, "end_turn");
    end_turn(&mut m, "end_turn");
    end_turn(&mut m, "end_turn");
    keys(&mut m, "/new<ret>");
    assert!(m.agent_items().is_empty());
}
