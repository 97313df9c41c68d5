//! What can be pressed now, in the rule below the composer. Each hint is a key of the table that does
//! here what the hint says; dialogs, lists and pages show their own in their frames.

use super::widgets;
use crate::tui::keymap::{self, Action, Context};
use crate::tui::model::{Ability, Model, Turn};

/// The hints for where the focus is: as many as fit, the most needed first.
pub(super) fn now(model: &Model, room: usize) -> String {
    widgets::fitting(&all(model), room)
}

fn all(model: &Model) -> Vec<String> {
    match model.focus() {
        Context::Picker | Context::Agents | Context::Queue => {
            vec!["the list above has the keys".to_owned()]
        }
        Context::Page => vec!["the page has the keys".to_owned()],
        Context::Permission | Context::Form | Context::Plan | Context::PlanNote => {
            vec!["the question above has the keys".to_owned(), help()]
        }
        _ if !model.asks.is_empty() => vec!["what you type goes into the draft".to_owned()],
        Context::Search => {
            let key = |action, what| hint(Context::Search, action, what);
            vec![
                key(Action::SelectDown, "next"),
                key(Action::SelectUp, "before"),
                key(Action::Close, "ends the search"),
            ]
        }
        Context::Menu => {
            let key = |action, what| hint(Context::Menu, action, what);
            vec![
                key(Action::Accept, "runs it"),
                key(Action::Complete, "completes"),
                key(Action::SelectDown, "chooses"),
                key(Action::Close, "closes the menu"),
            ]
        }
        Context::Mention => {
            let key = |action, what| hint(Context::Mention, action, what);
            vec![
                key(Action::Accept, "takes the file"),
                key(Action::SelectDown, "chooses"),
                key(Action::Close, "closes the menu"),
            ]
        }
        Context::Composer | Context::Global => writing(model),
    }
}

/// Those of the draft.
fn writing(model: &Model) -> Vec<String> {
    let composer = |action, what| hint(Context::Composer, action, what);
    let global = |action, what| hint(Context::Global, action, what);
    if model.editing.is_some() {
        return vec![
            composer(Action::Send, "saves it"),
            composer(Action::NewLine, "new line"),
            global(Action::Interrupt, "leaves it as it was"),
        ];
    }
    let send = if model.turn == Turn::Idle { "send" } else { "queue" };
    let mut hints = Vec::new();
    if model.selected.is_some() {
        hints.extend([
            global(Action::Copy, "copy"),
            global(Action::ToggleBlock, "fold"),
            global(Action::Detail, "in full"),
        ]);
        if model.turn == Turn::Idle && model.would_stop() {
            hints.push(global(Action::Interrupt, "unselect"));
        }
    }
    hints.push(composer(Action::Send, send));
    hints.push(composer(Action::NewLine, "new line"));
    if matches!(model.turn, Turn::Running { .. }) {
        if model.would_stop() {
            hints.push(global(Action::Interrupt, "stop"));
        }
        if model.agent.can(Ability::Steer) {
            hints.push(composer(Action::Steer, "guide"));
        }
    }
    if !model.path.is_empty() {
        hints.push(global(Action::Interrupt, "back"));
    } else if model.history.is_browsing() {
        hints.push(global(Action::Interrupt, "your draft"));
    }
    if model.waiting() > 0 {
        hints.push(global(Action::Queue, "the queue"));
    }
    hints.push(help());
    if !model.session.settings.mode_name().is_empty() {
        hints.push(global(Action::NextMode, "mode"));
    }
    hints
}

fn help() -> String {
    hint(Context::Global, Action::Help, "help")
}

fn hint(context: Context, action: Action, what: &str) -> String {
    let key = keymap::hint(context, action).map(|key| key.to_string()).unwrap_or_default();
    format!("{key} {what}")
}
