//! Editing the draft: every action of the keymap that touches the composer and nothing else.

use super::mention;
use crate::tui::keymap::{Action, Key};
use crate::tui::model::Model;
use crate::tui::model::composer::Composer;
use crate::tui::msg::Cmd;

/// Does an editing action on the draft; with history on its first and last row.
pub(super) fn edit(model: &mut Model, action: Action, key: Key, cmds: &mut Vec<Cmd>) {
    let width = model.composer_width.max(2);
    match action {
        Action::Up => {
            if !model.composer.up(width) {
                older(model, cmds);
            }
        }
        Action::Down => {
            if !model.composer.down(width) {
                newer(model, cmds);
            }
        }
        Action::HistoryPrevious => older(model, cmds),
        Action::HistoryNext => newer(model, cmds),
        Action::ExpandPaste => {
            if !model.composer.expand_chip() {
                model.say("no chip at the caret, or it is too large to edit here");
            }
        }
        other => {
            if !edit_text(&mut model.composer, other)
                && let Some(c) = key.text()
            {
                model.composer.insert(c.encode_utf8(&mut [0; 4]));
            }
        }
    }
}

fn older(model: &mut Model, cmds: &mut Vec<Cmd>) {
    // A queued prompt is the newest of all: it comes back first.
    if model.composer.is_empty()
        && !model.history.is_browsing()
        && let Some(text) = model.queue.take_last()
    {
        model.composer.set_text(&text);
        mention::recalled(model, cmds);
        model.say("queued prompt taken back for editing");
        return;
    }
    if let Some(text) = model.history.older(model.composer.text()) {
        model.composer.set_text(&text);
        mention::recalled(model, cmds);
    }
}

fn newer(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if let Some(text) = model.history.newer() {
        model.composer.set_text(&text);
        mention::recalled(model, cmds);
    }
}

/// Does an action that any text being edited understands; returns false for others.
pub(super) fn edit_text(text: &mut Composer, action: Action) -> bool {
    match action {
        Action::NewLine => text.insert("\n"),
        Action::Left => text.left(),
        Action::Right => text.right(),
        Action::WordLeft => text.word_left(),
        Action::WordRight => text.word_right(),
        Action::LineStart => text.line_start(),
        Action::LineEnd => text.line_end(),
        Action::DraftStart => text.draft_start(),
        Action::DraftEnd => text.draft_end(),
        Action::DeleteBack => text.delete_back(),
        Action::DeleteForward | Action::EndOfInput => text.delete_forward(),
        Action::DeleteWordBack => text.delete_word_back(),
        Action::DeleteWordForward => text.delete_word_forward(),
        Action::CutToStart => text.cut_to_start(),
        Action::CutToEnd => text.cut_to_end(),
        Action::Yank => text.yank(),
        Action::Undo => {
            text.undo();
        }
        Action::Redo => {
            text.redo();
        }
        _ => return false,
    }
    true
}
