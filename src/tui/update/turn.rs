//! Sending, queueing, guiding and stopping. A prompt is in exactly one place at any time: the
//! draft, the queue, or in flight.

use super::{ask, slash};
use crate::tui::model::mention::{self, Attachment};
use crate::tui::model::{Ability, Model, Phase, Turn};
use crate::tui::msg::{AgentCmd, Cmd, Scroll};

/// Enter: sends the draft, or queues it while something runs or the session is not open yet.
pub(super) fn send(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if model.composer.text().trim().is_empty() {
        enter_on_nothing(model, cmds);
        return;
    }
    if super::queue::save_edit(model, cmds) {
        return;
    }
    if slash::run_typed(model, cmds) {
        return;
    }
    panic_when_asked(model.composer.text());
    let text = model.composer.take();
    model.menu = crate::tui::model::Menu::default();
    if model.history.add(&text) {
        cmds.push(Cmd::StoreHistory(text.clone()));
    }
    if model.turn == Turn::Idle && model.phase == Phase::Ready && model.queue.is_empty() {
        start(model, text, cmds);
        return;
    }
    model.queue.push(text);
    if model.turn == Turn::Idle && model.phase == Phase::Ready {
        model.queue.release();
        send_next(model, cmds);
    }
}

/// A development build can be made to panic, so that the tests see the real program put its
/// terminal back; a release build has no such words.
fn panic_when_asked(text: &str) {
    assert!(
        !(cfg!(debug_assertions) && text == "/panic for a test"),
        "a panic was asked for by a test"
    );
}

/// Enter on an empty draft: goes on with what is held, or starts an agent again that is down.
fn enter_on_nothing(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if let Phase::Down(_) = model.phase {
        restart(model, cmds);
    } else if matches!(model.phase, Phase::NeedsLogin(_)) {
        super::login::open(model, cmds);
    } else if model.turn == Turn::Idle && model.phase == Phase::Ready && !model.queue.is_empty() {
        model.queue.release();
        send_next(model, cmds);
    }
}

/// Starts the agent again and goes on with the session, where the agent can.
pub(super) fn restart(model: &mut Model, cmds: &mut Vec<Cmd>) {
    model.phase = Phase::Starting;
    cmds.push(Cmd::Agent(AgentCmd::Restart));
}

/// Hands a prompt to the agent.
pub(super) fn start(model: &mut Model, text: String, cmds: &mut Vec<Cmd>) {
    let Some(session_id) = model.session.id.clone() else {
        model.queue.push_front(text);
        return;
    };
    super::agents::leave(model, cmds);
    let files = model.mentions.in_text(&text);
    let (pictures, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.is_picture);
    let names = others.iter().map(|file| mention::name_of(&file.path)).collect();
    let block = model.transcript.begin_turn(&text, names, model.now_ms);
    let label = |file: &&Attachment| {
        (file.token.clone(), format!("[image {}]", mention::name_of(&file.path)))
    };
    model.transcript.label_pictures(block, pictures.iter().map(label).collect());
    model.turn = Turn::Running { since_ms: model.now_ms };
    model.in_flight = Some(text.clone());
    cmds.push(Cmd::Scroll(Scroll::Tail));
    cmds.push(Cmd::Agent(AgentCmd::Prompt { session_id, text, files }));
}

/// Sends what waits, unless it is held.
pub(super) fn send_next(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if model.turn != Turn::Idle || model.phase != Phase::Ready || model.queue.is_held() {
        return;
    }
    if let Some(text) = model.queue.pop_next() {
        start(model, text, cmds);
    }
}

/// Guides the running turn with the draft. Where the agent cannot, the draft is queued.
pub(super) fn steer(model: &mut Model, cmds: &mut Vec<Cmd>) {
    let running = matches!(model.turn, Turn::Running { .. });
    let Some(session_id) =
        model.session.id.clone().filter(|_| running && model.agent.can(Ability::Steer))
    else {
        if running {
            model.say("this agent cannot be guided: queued instead");
        }
        send(model, cmds);
        return;
    };
    if model.composer.text().trim().is_empty() {
        return;
    }
    let text = model.composer.take();
    if model.history.add(&text) {
        cmds.push(Cmd::StoreHistory(text.clone()));
    }
    let files = model.mentions.in_text(&text);
    cmds.push(Cmd::Agent(AgentCmd::Steer { session_id, text, files }));
    model.say("guiding the running turn…");
}

/// Guides the running turn with a prompt that waited; it comes back to the queue when it is refused.
pub(super) fn steer_with(model: &mut Model, text: String, cmds: &mut Vec<Cmd>) {
    match model.session.id.clone() {
        Some(session_id) => {
            let files = model.mentions.in_text(&text);
            cmds.push(Cmd::Agent(AgentCmd::Steer { session_id, text, files }));
        }
        None => model.queue.push_front(text),
    }
}

/// Esc: asks the agent to stop, once; a second Esc says what is going on.
pub(super) fn cancel(model: &mut Model, cmds: &mut Vec<Cmd>) {
    match model.turn {
        Turn::Idle => {
            if !model.asks.is_empty() {
                ask::cancel_all(model, cmds);
            }
        }
        Turn::Cancelling { .. } => {
            model.say("still waiting for the agent to stop (Ctrl-C twice quits)");
        }
        Turn::Running { since_ms } => {
            let Some(session_id) = model.session.id.clone() else { return };
            // First the cancel, then the answers: an agent must not take the answers for a no.
            cmds.push(Cmd::Agent(AgentCmd::Cancel { session_id }));
            ask::cancel_all(model, cmds);
            model.turn = Turn::Cancelling { since_ms, asked_ms: model.now_ms };
            model.queue.hold();
        }
    }
}

/// Takes the newest queued prompt back into the draft.
pub(super) fn edit_queued(model: &mut Model) {
    if !model.composer.is_empty() {
        model.say("the draft is not empty: send or clear it first");
    } else if let Some(text) = model.queue.take_last() {
        model.composer.set_text(&text);
    }
}

impl Model {
    /// The prompt of the running turn counts as unsent until the turn is over, so that it can be
    /// stored when the agent dies; while it runs normally it is the transcript's.
    pub(super) fn in_flight_unsent(&self) -> Option<&str> {
        self.in_flight.as_deref().filter(|_| matches!(self.phase, Phase::Down(_)))
    }
}
