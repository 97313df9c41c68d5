//! Slash commands: the keys of the menu above the composer, and running what was chosen.

use super::{agents, login, overlay, queue, quit, session, turn};
use crate::tui::keymap::{self, Action, Context, Key};
use crate::tui::model::menu::{LOCAL, MenuRow, rows, stands_in, typed};
use crate::tui::model::{Menu, Model};
use crate::tui::msg::{Cmd, CopyWhat, Scroll};

/// The draft changed: the selection starts again at the best row.
pub(super) fn draft_changed(model: &mut Model) {
    if model.menu.selected != 0 || model.menu.moved || model.menu.dismissed.is_some() {
        let keep = model.menu.dismissed.take().filter(|d| d == model.composer.text());
        if keep.is_some() || !model.menu.moved {
            model.menu = Menu { dismissed: keep, ..Menu::default() };
        } else {
            model.menu = Menu::default();
        }
    }
}

/// Takes a key in while the menu is open; returns false for keys that edit the draft.
pub(super) fn menu_key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) -> bool {
    let rows = rows(model);
    let last = rows.len().saturating_sub(1);
    let Some(
        action @ (Action::SelectUp
        | Action::SelectDown
        | Action::Accept
        | Action::Complete
        | Action::Close),
    ) = keymap::action(Context::Menu, key)
    else {
        return edit_key(model, key, cmds);
    };
    match action {
        Action::SelectUp => {
            model.menu.selected = model.menu.selected.checked_sub(1).unwrap_or(last);
            model.menu.moved = true;
        }
        Action::SelectDown => {
            model.menu.selected =
                if model.menu.selected >= last { 0 } else { model.menu.selected + 1 };
            model.menu.moved = true;
        }
        Action::Close => model.menu.dismissed = Some(model.composer.text().to_owned()),
        Action::Complete => {
            if let Some(row) = rows.get(model.menu.selected) {
                model.composer.set_text(&format!("/{} ", row.name));
            }
        }
        _ => accept(model, rows.get(model.menu.selected), cmds),
    }
    true
}

/// With the menu open the other keys still edit the draft.
fn edit_key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) -> bool {
    let Some(action) = keymap::action(Context::Composer, key) else { return false };
    super::keys::act(model, action, key, cmds);
    true
}

/// Enter in the menu. A row that was not moved to counts only when what was typed begins its name:
/// otherwise the draft is sent as it stands, for agents with commands they do not list.
fn accept(model: &mut Model, row: Option<&MenuRow>, cmds: &mut Vec<Cmd>) {
    let name = typed(model).unwrap_or_default().to_owned();
    let exact = row.is_some_and(|r| r.name == name);
    match row {
        Some(row)
            if model.menu.moved
                || (!name.is_empty() && row.name.starts_with(&name))
                || name.is_empty() =>
        {
            if row.local {
                model.composer.take();
                run(model, &row.name, "", cmds);
            } else if !row.hint.is_empty() && !exact {
                model.composer.set_text(&format!("/{} ", row.name));
            } else {
                model.composer.set_text(&format!("/{}", row.name));
                dismiss_and_send(model, cmds);
            }
        }
        _ => dismiss_and_send(model, cmds),
    }
    model.menu = Menu::default();
}

fn dismiss_and_send(model: &mut Model, cmds: &mut Vec<Cmd>) {
    model.menu.dismissed = Some(model.composer.text().to_owned());
    turn::send(model, cmds);
}

/// Runs the draft when it is one of our commands (and not the agent's to run); returns whether.
pub(super) fn run_typed(model: &mut Model, cmds: &mut Vec<Cmd>) -> bool {
    let text = model.composer.text().trim().to_owned();
    let Some(line) = text.strip_prefix('/').filter(|l| !l.contains('\n')) else { return false };
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let agents = model.session.commands.iter().any(|c| c.name == name);
    if agents && !stands_in(model, name) || !LOCAL.iter().any(|c| c.name == name) {
        return false;
    }
    model.composer.take();
    run(model, name, argument.trim(), cmds);
    true
}

fn run(model: &mut Model, name: &str, argument: &str, cmds: &mut Vec<Cmd>) {
    match name {
        "help" => overlay::open_help(model),
        "model" => overlay::choose_category(model, "model", argument, cmds),
        "mode" => overlay::choose_category(model, "mode", argument, cmds),
        "thought" => overlay::choose_category(model, "thought_level", argument, cmds),
        "settings" => overlay::open_settings(model),
        "new" => session::open_new(model, cmds),
        "resume" if argument.is_empty() => overlay::open_sessions(model, cmds),
        "resume" => session::open_old(model, argument, cmds),
        "search" => {
            model.search = Some(crate::tui::model::Search::default());
            if !argument.is_empty()
                && let Some(search) = &mut model.search
            {
                argument.clone_into(&mut search.query);
                cmds.push(Cmd::Scroll(Scroll::Find(argument.to_owned())));
            }
        }
        "card" => overlay::open_last_card(model),
        "expand" => cmds.push(Cmd::Scroll(Scroll::ExpandAll)),
        "select" => cmds.push(Cmd::Scroll(Scroll::SelectBlock(false))),
        "todos" => model.dock_open = !model.dock_open,
        "fold" => cmds.push(Cmd::Scroll(Scroll::ToggleBlock)),
        "copy" => copy(model, argument, cmds),
        "export" => cmds.push(Cmd::Export(argument.to_owned())),
        "history" => overlay::open_history(model),
        "editor" => cmds.push(Cmd::Edit(String::new())),
        "status" => overlay::open_status(model),
        "queue" => queue::open_list(model),
        "agents" => agents::open_list(model),
        "stop" => turn::cancel(model, cmds),
        "login" => login::open(model, cmds),
        "restart" => turn::restart(model, cmds),
        "demo" => session::start_demo(model, cmds),
        "quit" => quit(model, cmds),
        _ => {}
    }
}

/// `/copy [code|turn] [file]`.
fn copy(model: &mut Model, argument: &str, cmds: &mut Vec<Cmd>) {
    let mut what = CopyWhat::Marked;
    let mut to_file = false;
    for word in argument.split_whitespace() {
        match word {
            "code" => what = CopyWhat::Code,
            "turn" => what = CopyWhat::Turn,
            "file" => to_file = true,
            _ => {
                model.say("/copy copies the selection or the last answer; /copy code, turn, file");
                return;
            }
        }
    }
    cmds.push(Cmd::Copy { what, to_file });
}
