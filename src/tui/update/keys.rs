//! Keys, pastes and the mouse: finds out where the focus is, asks the keymap what a key means
//! there, and does it.

use super::{agents, ask, edit, mention, overlay, queue, quit, slash, turn};
use crate::tui::keymap::{self, Action, Context, Key, KeyCode};
use crate::tui::model::{Model, Overlay, QUIT_WINDOW_MS, Search, Turn};
use crate::tui::msg::{Cmd, CopyWhat, Scroll};
use crate::tui::terminal::input::{Mouse, MouseKind};

/// Rows of the transcript that one notch of the wheel scrolls.
const WHEEL_ROWS: i32 = 3;

/// Whether something is asked there.
fn is_dialog(context: Context) -> bool {
    matches!(context, Context::Permission | Context::Form | Context::Plan | Context::PlanNote)
}

/// Takes a key in.
pub(super) fn key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) {
    let context = model.focus();
    let armed = model.is_armed();
    let handled = match context {
        Context::Picker => overlay::picker_key(model, key, cmds),
        Context::Page => overlay::page_key(model, key, cmds),
        Context::Agents => agents::list_key(model, key, cmds),
        Context::Queue => queue::list_key(model, key, cmds),
        Context::Permission => ask::permission_key(model, key, cmds),
        Context::Form => ask::form_key(model, key, cmds),
        Context::Plan | Context::PlanNote => ask::plan_key(model, context, key, cmds),
        Context::Search => search_key(model, key, cmds),
        Context::Menu => slash::menu_key(model, key, cmds),
        Context::Mention => mention::menu_key(model, key),
        Context::Composer | Context::Global => false,
    };
    if handled {
        // Answering keys do not disarm; everything else is typing, and waits for a quiet moment.
        if !is_dialog(context) {
            model.last_input_ms = model.now_ms;
        }
        return;
    }
    let writes = is_dialog(context) || context == Context::Mention;
    let base = if writes { Context::Composer } else { context };
    let action = keymap::action(base, key);
    // While something is asked and its keys do not count yet, Enter must not send what was
    // being typed: it may have been meant for the dialog.
    let asked = !model.asks.is_empty();
    if asked && (key.code == KeyCode::Enter && action == Some(Action::Send)) {
        if armed || model.asks.first().is_some_and(|a| a.drawn_ms.is_some()) {
            model.last_input_ms = model.now_ms;
        }
        model.say("something is asked above: answer it first");
        return;
    }
    if !matches!(action, Some(Action::PageUp | Action::PageDown)) {
        model.last_input_ms = model.now_ms;
    }
    match action {
        Some(action) => act(model, action, key, cmds),
        None => {
            if let Some(c) = key.text() {
                model.history.stop_browsing();
                model.composer.insert(c.encode_utf8(&mut [0; 4]));
                slash::draft_changed(model);
            }
        }
    }
}

/// Does what a key means outside of dialogs.
pub(super) fn act(model: &mut Model, action: Action, key: Key, cmds: &mut Vec<Cmd>) {
    if action != Action::ClearOrQuit {
        model.quit_until = None;
    }
    match action {
        Action::Send => turn::send(model, cmds),
        Action::Steer => turn::steer(model, cmds),
        Action::Interrupt => interrupt(model, cmds),
        Action::ClearOrQuit => clear_or_quit(model, cmds),
        Action::EndOfInput if model.composer.is_empty() => quit(model, cmds),
        Action::EndOfInput => model.composer.delete_forward(),
        Action::Suspend => cmds.push(Cmd::Suspend),
        Action::Redraw => cmds.push(Cmd::Redraw),
        Action::Help => overlay::open_help(model),
        Action::PageUp => cmds.push(Cmd::Scroll(Scroll::Pages(-1))),
        Action::PageDown => cmds.push(Cmd::Scroll(Scroll::Pages(1))),
        Action::Top => cmds.push(Cmd::Scroll(Scroll::Top)),
        Action::Tail => cmds.push(Cmd::Scroll(Scroll::Tail)),
        Action::PreviousPrompt => cmds.push(Cmd::Scroll(Scroll::PreviousPrompt)),
        Action::NextPrompt => cmds.push(Cmd::Scroll(Scroll::NextPrompt)),
        Action::ExpandAll => cmds.push(Cmd::Scroll(Scroll::ExpandAll)),
        Action::Detail => overlay::open_last_card(model),
        Action::Search => model.search = Some(Search::default()),
        Action::NextMode => overlay::next_mode(model, cmds),
        Action::PickModel => overlay::open_category(model, "model"),
        Action::PickThought => overlay::open_category(model, "thought_level"),
        Action::PickSession => overlay::open_sessions(model, cmds),
        Action::Queue => queue::open_list(model),
        Action::Agents => agents::open_list(model),
        Action::OpenAgent => agents::open_selected(model, cmds),
        Action::CancelAgent => agents::cancel_shown(model, cmds),
        Action::EditQueued => turn::edit_queued(model),
        Action::Editor => cmds.push(Cmd::Edit(model.composer.expanded())),
        Action::HistorySearch => overlay::open_history(model),
        Action::SelectBlockUp => cmds.push(Cmd::Scroll(Scroll::SelectBlock(false))),
        Action::SelectBlockDown => cmds.push(Cmd::Scroll(Scroll::SelectBlock(true))),
        Action::ToggleBlock => cmds.push(Cmd::Scroll(Scroll::ToggleBlock)),
        Action::ToggleDock => model.dock_open = !model.dock_open,
        Action::Copy => cmds.push(Cmd::Copy { what: CopyWhat::Marked, to_file: false }),
        Action::CopyCode => cmds.push(Cmd::Copy { what: CopyWhat::Code, to_file: false }),
        Action::CopyTurn => cmds.push(Cmd::Copy { what: CopyWhat::Turn, to_file: false }),
        other => edit::edit(model, other, key, cmds),
    }
    slash::draft_changed(model);
}

/// Esc outside of dialogs: stops the turn; without one it only closes what is open.
fn interrupt(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if matches!(model.overlay, Some(Overlay::Page(_))) {
        model.overlay = None;
        return;
    }
    if queue::leave_edit(model) || agents::back(model, cmds) {
        return;
    }
    if model.history.is_browsing() {
        while let Some(text) = model.history.newer() {
            model.composer.set_text(&text);
        }
        return;
    }
    if model.turn == Turn::Idle {
        cmds.push(Cmd::Scroll(Scroll::Unselect));
    }
    turn::cancel(model, cmds);
}

fn clear_or_quit(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if model.quit_until.is_some_and(|until| model.now_ms < until) {
        quit(model, cmds);
        return;
    }
    if model.composer.is_empty() {
        model.quit_until = Some(model.now_ms + QUIT_WINDOW_MS);
    } else {
        // What is cleared stays reachable: undo, and the history.
        let draft = model.composer.expanded();
        if model.history.add(&draft) {
            cmds.push(Cmd::StoreHistory(draft));
        }
        model.composer.clear();
        model.say("draft cleared (↑ brings it back)");
    }
}

fn search_key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) -> bool {
    let Some(search) = &mut model.search else { return false };
    if let Some(c) = key.text() {
        search.query.push(c);
        search.on_disk = None;
        cmds.push(Cmd::Scroll(Scroll::Find(search.query.clone())));
        return true;
    }
    if key.code == KeyCode::Backspace {
        search.query.pop();
        search.on_disk = None;
        cmds.push(Cmd::Scroll(Scroll::Find(search.query.clone())));
        return true;
    }
    match keymap::action(Context::Search, key) {
        Some(Action::SelectDown) => cmds.push(Cmd::Scroll(Scroll::NextMatch(true))),
        Some(Action::SelectUp) => cmds.push(Cmd::Scroll(Scroll::NextMatch(false))),
        Some(Action::Close | Action::ClearOrQuit) => {
            model.search = None;
            cmds.push(Cmd::Scroll(Scroll::EndSearch));
        }
        _ => return false,
    }
    true
}

/// Takes pasted text in, where text can go; it never answers a dialog.
pub(super) fn pasted(model: &mut Model, text: &str, cmds: &mut Vec<Cmd>) {
    if text.is_empty() {
        return;
    }
    let context = model.focus();
    model.last_input_ms = model.now_ms;
    if let Some(Overlay::Picker(picker)) = &mut model.overlay {
        picker.type_text(text.lines().next().unwrap_or_default());
        return;
    }
    if let Some(search) = &mut model.search {
        search.query.push_str(text.lines().next().unwrap_or_default());
        return;
    }
    if matches!(context, Context::Form | Context::PlanNote) && ask::paste_into_form(model, text) {
        return;
    }
    model.history.stop_browsing();
    model.composer.paste(text);
    mention::pasted(model, text, cmds);
}

/// Takes a mouse event in. The wheel scrolls what is under it: the page or the transcript.
pub(super) fn mouse(model: &mut Model, mouse: Mouse, cmds: &mut Vec<Cmd>) {
    let wheel = match mouse.kind {
        MouseKind::WheelUp => -WHEEL_ROWS,
        MouseKind::WheelDown => WHEEL_ROWS,
        MouseKind::Press | MouseKind::Drag | MouseKind::Release if model.overlay.is_some() => {
            return;
        }
        MouseKind::Press => return cmds.push(Cmd::Scroll(Scroll::Press(mouse.x, mouse.y))),
        MouseKind::Drag => return cmds.push(Cmd::Scroll(Scroll::Drag(mouse.x, mouse.y))),
        MouseKind::Release => return cmds.push(Cmd::Scroll(Scroll::Release(mouse.x, mouse.y))),
    };
    let body = model.body;
    match &mut model.overlay {
        Some(Overlay::Picker(picker)) => picker.move_by(wheel.signum() as isize),
        Some(Overlay::Agents(_) | Overlay::Queue(_)) => {}
        Some(Overlay::Page(page)) => page.scroll = body.scrolled(page.scroll, wheel as isize),
        None => match model.asks.first_mut() {
            Some(ask) if ask.stands_at(mouse.x, model.size.0) => {
                ask.scroll = body.scrolled(ask.scroll, wheel as isize);
            }
            _ => cmds.push(Cmd::Scroll(Scroll::Lines(wheel))),
        },
    }
}
