//! The list of what is queued: prompts that wait here and messages in the agent's own queue. Ours are
//! changed at once; the agent's by asking it, and the list shows what it then says.

use super::turn;
use crate::tui::keymap::{self, Action, Context, Key};
use crate::tui::model::queue::{AgentItem, AgentQueue, Place, QueueList};
use crate::tui::model::{Ability, Model, Overlay, Phase, Turn};
use crate::tui::msg::{AgentCmd, Cmd, Failure, QueueChange};

/// Opens the list.
pub(super) fn open_list(model: &mut Model) {
    if model.waiting() == 0 && model.session.queue.as_ref().is_none_or(|queue| queue.auto_drain) {
        model.say("nothing is queued");
        return;
    }
    model.overlay = Some(Overlay::Queue(QueueList::default()));
}

/// Takes a key in while the list is open.
pub(super) fn list_key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) -> bool {
    let rows = model.waiting();
    let Some(Overlay::Queue(list)) = &mut model.overlay else { return false };
    list.selected = list.selected.min(rows.saturating_sub(1));
    let row = list.selected;
    match keymap::action(Context::Queue, key) {
        Some(Action::SelectUp) => list.selected = row.saturating_sub(1),
        Some(Action::SelectDown) => list.selected = (row + 1).min(rows.saturating_sub(1)),
        Some(Action::EditItem) => edit(model, row, cmds),
        Some(Action::DeleteItem) => delete(model, row, cmds),
        Some(Action::SendNow) => send_now(model, row, cmds),
        Some(Action::AutoDrain) => auto_drain(model, cmds),
        Some(Action::Close | Action::Queue | Action::ClearOrQuit) => model.overlay = None,
        Some(Action::Redraw) => cmds.push(Cmd::Redraw),
        Some(Action::Suspend) => cmds.push(Cmd::Suspend),
        _ => {}
    }
    true
}

fn edit(model: &mut Model, row: usize, cmds: &mut Vec<Cmd>) {
    if !model.composer.is_empty() {
        model.say("the draft is not empty: send or clear it first");
        return;
    }
    match model.queued_at(row) {
        Some(Place::Here(at)) => {
            if let Some(text) = model.queue.take(at) {
                model.composer.set_text(&text);
                super::mention::recalled(model, cmds);
                model.overlay = None;
                model.say("taken back into the draft: Enter queues it again");
            }
        }
        Some(Place::Agent(item)) if model.agent.can(Ability::Queue) => {
            model.composer.set_text(&item.text);
            model.editing = Some(item);
            model.overlay = None;
        }
        Some(Place::Agent(_)) => model.say("this agent's queue cannot be changed"),
        None => {}
    }
}

fn delete(model: &mut Model, row: usize, cmds: &mut Vec<Cmd>) {
    match model.queued_at(row) {
        Some(Place::Here(at)) => {
            if let Some(text) = model.queue.take(at) {
                // What is deleted stays reachable.
                if model.history.add(&text) {
                    cmds.push(Cmd::StoreHistory(text));
                }
                model.say("deleted (Ctrl-R finds it again)");
            }
        }
        Some(Place::Agent(item)) => ask(model, QueueChange::Delete { id: item.id }, cmds),
        None => {}
    }
    if model.waiting() == 0 {
        model.overlay = None;
    }
}

fn send_now(model: &mut Model, row: usize, cmds: &mut Vec<Cmd>) {
    match model.queued_at(row) {
        Some(Place::Here(at)) => {
            let running = matches!(model.turn, Turn::Running { .. });
            let steer = running && model.agent.can(Ability::Steer);
            if model.phase != Phase::Ready || (model.turn != Turn::Idle && !steer) {
                model.say("it is sent when the turn is over: this agent cannot be guided");
                return;
            }
            let Some(text) = model.queue.take(at) else { return };
            model.overlay = None;
            if steer {
                turn::steer_with(model, text, cmds);
            } else {
                turn::start(model, text, cmds);
            }
        }
        Some(Place::Agent(item)) => ask(model, QueueChange::SendNow { id: item.id }, cmds),
        None => {}
    }
}

fn auto_drain(model: &mut Model, cmds: &mut Vec<Cmd>) {
    match &model.session.queue {
        Some(queue) => {
            let on = !queue.auto_drain;
            ask(model, QueueChange::AutoDrain(on), cmds);
        }
        None if model.agent.can(Ability::Queue) => {
            ask(model, QueueChange::AutoDrain(false), cmds);
        }
        None => model.say("this agent has no queue of its own"),
    }
}

fn ask(model: &mut Model, change: QueueChange, cmds: &mut Vec<Cmd>) {
    let Some(session_id) = model.session.id.clone().filter(|_| model.agent.can(Ability::Queue))
    else {
        model.say("this agent's queue cannot be changed");
        return;
    };
    cmds.push(Cmd::Agent(AgentCmd::Queue { session_id, change }));
}

/// Enter while the draft is a new text for a message of the agent's: true when it was one.
pub(super) fn save_edit(model: &mut Model, cmds: &mut Vec<Cmd>) -> bool {
    let Some(item) = model.editing.take() else { return false };
    let text = model.composer.take();
    ask(model, QueueChange::Edit { id: item.id, text }, cmds);
    true
}

/// Esc while it is: the message stays as it was. True when there was one.
pub(super) fn leave_edit(model: &mut Model) -> bool {
    if model.editing.take().is_none() {
        return false;
    }
    model.composer.clear();
    model.say("left as it was");
    true
}

/// The agent's queue is another one now.
pub(super) fn told(model: &mut Model, queue: AgentQueue) {
    let gone = |item: &AgentItem| !queue.items.iter().any(|it| it.id == item.id);
    if model.editing.as_ref().is_some_and(gone) {
        model.editing = None;
        model.say("the agent has begun with that message: what you wrote is a new prompt now");
    }
    model.session.queue = Some(queue);
}

/// The agent's answer to a change.
pub(super) fn changed(model: &mut Model, change: QueueChange, result: &Result<(), Failure>) {
    let done = match &change {
        QueueChange::Edit { .. } => "the message in the agent's queue was changed",
        QueueChange::Delete { .. } => "deleted from the agent's queue",
        QueueChange::SendNow { .. } => "the agent runs it next",
        QueueChange::AutoDrain(true) => "the agent's queue goes on by itself",
        QueueChange::AutoDrain(false) => "the agent's queue waits for you",
    };
    let Err(failure) = result else { return model.say(done) };
    let what = match change {
        QueueChange::Edit { text, .. } => {
            // What was written must not be lost with the refusal.
            if model.composer.is_empty() {
                model.composer.set_text(&text);
            } else {
                model.queue.push(text);
            }
            "changed"
        }
        QueueChange::Delete { .. } => "deleted",
        QueueChange::SendNow { .. } => "sent",
        QueueChange::AutoDrain(_) => "switched",
    };
    model.say(format!("the agent's queue was not {what}: {}", failure.message));
}
