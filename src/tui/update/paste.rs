//! Tells a paste without brackets from typing.
//!
//! Text is never held back, so its order cannot change (input methods send backspaces and letters
//! faster than fingers). Only an Enter right after fast text waits a moment: when more text follows
//! it was a line of a paste, when nothing does it was the Enter key.

use super::keys;
use crate::tui::keymap::{Action, Context, Key, KeyCode};
use crate::tui::model::Model;
use crate::tui::msg::Cmd;

/// Characters that follow each other faster than this belong to one run.
const RUN_GAP_MS: u64 = 10;
/// A run of so many characters may be a paste.
const RUN_LENGTH: u32 = 4;
/// How long an Enter after a run waits for what follows.
const HOLD_MS: u64 = 25;
/// An Enter this soon after a paste of several lines is the end of its last line.
const TAIL_MS: u64 = 60;

/// Notes the key's time, and settles an Enter that waited.
pub(super) fn before_key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) {
    let now = model.now_ms;
    if model.burst.held_enter_until.is_some() {
        if key.text().is_some() || key.code == KeyCode::Enter || key.code == KeyCode::Tab {
            // More text follows: it was a line end of a paste.
            model.burst.held_enter_until = None;
            model.burst.multi_line = true;
            put(model, "\n");
        } else {
            release_enter(model, cmds);
        }
    }
    // The rest of a piece that no hands wrote may come late on a busy machine.
    let gap = if model.burst.pasted { TAIL_MS } else { RUN_GAP_MS };
    let follows = now.saturating_sub(model.burst.last_ms) <= gap;
    model.burst.pasted &= follows;
    if key.text().is_some() {
        model.burst.run = if follows { model.burst.run + 1 } else { 1 };
        model.burst.multi_line &= follows;
        model.burst.last_ms = now;
    } else if key.code != KeyCode::Enter {
        model.burst.run = 0;
        model.burst.multi_line = false;
    }
}

/// Holds an Enter that may belong to a paste; returns true when the key is dealt with.
pub(super) fn holds_enter(model: &mut Model, key: Key) -> bool {
    if key != Key::plain(KeyCode::Enter) || model.focus() != Context::Composer {
        return false;
    }
    let since = model.now_ms.saturating_sub(model.burst.last_ms);
    if model.burst.multi_line && since <= TAIL_MS {
        put(model, "\n");
        model.burst.last_ms = model.now_ms;
        model.last_input_ms = model.now_ms;
        return true;
    }
    if model.burst.run >= RUN_LENGTH && since <= RUN_GAP_MS {
        model.burst.held_enter_until = Some(model.now_ms + HOLD_MS);
        model.burst.last_ms = model.now_ms;
        return true;
    }
    false
}

/// Puts a piece of a paste into the draft: to the rest of it where that is a chip.
fn put(model: &mut Model, text: &str) {
    if !(model.burst.run >= RUN_LENGTH && model.composer.paste_on(text)) {
        model.composer.insert(text);
    }
}

/// Takes in text that came at once and without brackets. It is a paste in pieces: a line end before
/// it was one of its own, and the pieces are one.
pub(super) fn burst(model: &mut Model, mut text: String, cmds: &mut Vec<Cmd>) {
    if model.burst.held_enter_until.take().is_some() {
        text.insert(0, '\n');
    }
    let goes_on = model.burst.run >= RUN_LENGTH && model.focus() == Context::Composer;
    if !(goes_on && model.composer.paste_on(&text)) {
        keys::pasted(model, &text, cmds);
    }
    model.burst.multi_line = text.contains('\n') || (goes_on && model.burst.multi_line);
    model.burst.run = RUN_LENGTH;
    model.burst.pasted = true;
    model.burst.last_ms = model.now_ms;
    model.last_input_ms = model.now_ms;
}

/// A few characters that came with a burst belong to its chip; returns whether they do.
pub(super) fn goes_on(model: &mut Model, key: Key) -> bool {
    // The run is longer than a burst leaves it only when the key followed at once.
    if model.burst.run <= RUN_LENGTH || model.focus() != Context::Composer {
        return false;
    }
    key.text().is_some_and(|c| model.composer.paste_on(c.encode_utf8(&mut [0; 4])))
}

/// Nothing followed: it was the Enter key.
pub(super) fn release_enter(model: &mut Model, cmds: &mut Vec<Cmd>) {
    model.burst.held_enter_until = None;
    model.burst.run = 0;
    keys::act(model, Action::Send, Key::plain(KeyCode::Enter), cmds);
}
