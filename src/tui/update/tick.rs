//! Deadlines of the model that have come.

use super::{draft_of, paste};
use crate::tui::model::Model;
use crate::tui::msg::Cmd;

pub(super) fn ticked(model: &mut Model, cmds: &mut Vec<Cmd>) {
    let now = model.now_ms;
    if model.toast.as_ref().is_some_and(|(_, until)| now >= *until) {
        model.toast = None;
    }
    if model.quit_until.is_some_and(|until| now >= until) {
        model.quit_until = None;
    }
    if model.burst.held_enter_until.is_some_and(|until| now >= until) {
        paste::release_enter(model, cmds);
    }
    if model.save_due_ms.is_some_and(|due| now >= due) {
        model.save_due_ms = None;
        model.saved_draft = (model.composer.version(), model.queue.len());
        cmds.push(Cmd::StoreDraft(draft_of(model)));
    }
}
