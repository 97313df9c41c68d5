//! Subagents: the list of them, looking into one, and cancelling one alone.

use crate::tui::keymap::{self, Action, Context, Key};
use crate::tui::model::agents::{self, AgentList};
use crate::tui::model::transcript::block::BlockId;
use crate::tui::model::{Model, Overlay};
use crate::tui::msg::{AgentCmd, Cmd, Scroll};

/// Rows that a page key moves.
const PAGE_ROWS: isize = 10;

/// Opens the list, with the subagent that is shown selected, else the first that runs.
pub(super) fn open_list(model: &mut Model) {
    let rows = agents::rows(&model.transcript);
    if rows.is_empty() {
        model.say("no subagents yet");
        return;
    }
    let runs = |id: &BlockId| agents::agent_of(&model.transcript, *id).is_some_and(|it| it.running);
    let running = rows.iter().map(|row| row.block).find(runs);
    let selected = model.path.last().copied().or(running);
    model.overlay = Some(Overlay::Agents(AgentList { selected }));
}

/// Takes a key in while the list is open.
pub(super) fn list_key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) -> bool {
    let Some(Overlay::Agents(list)) = &mut model.overlay else { return false };
    let rows = agents::rows(&model.transcript);
    let at = agents::selected(list, &rows);
    let mut go = |by: isize| {
        let to = at.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        list.selected = rows.get(to).map(|row| row.block);
    };
    let chosen = rows.get(at).map(|row| row.block);
    match keymap::action(Context::Agents, key) {
        Some(Action::SelectUp) => go(-1),
        Some(Action::SelectDown) => go(1),
        Some(Action::PageUp) => go(-PAGE_ROWS),
        Some(Action::PageDown) => go(PAGE_ROWS),
        Some(Action::Top) => go(isize::MIN),
        Some(Action::Tail) => go(isize::MAX),
        Some(Action::Accept) => {
            model.overlay = None;
            if let Some(block) = chosen {
                look_into(model, block, cmds);
            }
        }
        Some(Action::CancelAgent) => {
            if let Some(block) = chosen {
                cancel(model, block, cmds);
            }
        }
        Some(Action::Close | Action::Agents | Action::ClearOrQuit) => model.overlay = None,
        Some(Action::Redraw) => cmds.push(Cmd::Redraw),
        Some(Action::Suspend) => cmds.push(Cmd::Suspend),
        _ => {}
    }
    true
}

/// Opens the transcript of the subagent that is selected in the conversation, or of the only one there can be meant.
pub(super) fn open_selected(model: &mut Model, cmds: &mut Vec<Cmd>) {
    let of_selection = model.selected.and_then(|block| agents::meant_by(&model.transcript, block));
    if let Some(block) = of_selection.filter(|block| model.path.last() != Some(block)) {
        return look_into(model, block, cmds);
    }
    let here = model.path.last().copied();
    let rows = agents::rows(&model.transcript);
    let inside: Vec<BlockId> = rows
        .iter()
        .map(|row| row.block)
        .filter(|id| agents::way_to(&model.transcript, *id).iter().rev().nth(1).copied() == here)
        .collect();
    match inside.as_slice() {
        [] if rows.is_empty() => model.say("no subagents yet"),
        [] => model.say("this subagent started none of its own"),
        [only] => look_into(model, *only, cmds),
        _ => open_list(model),
    }
}

fn look_into(model: &mut Model, block: BlockId, cmds: &mut Vec<Cmd>) {
    go_to(model, agents::way_to(&model.transcript, block), cmds);
}

/// Back to where the subagent was started; false in the conversation itself.
pub(super) fn back(model: &mut Model, cmds: &mut Vec<Cmd>) -> bool {
    let mut way = model.path.clone();
    if way.pop().is_none() {
        return false;
    }
    go_to(model, way, cmds);
    true
}

/// Back to the conversation itself.
pub(super) fn leave(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if !model.path.is_empty() {
        go_to(model, Vec::new(), cmds);
    }
}

fn go_to(model: &mut Model, way: Vec<BlockId>, cmds: &mut Vec<Cmd>) {
    if model.search.take().is_some() {
        cmds.push(Cmd::Scroll(Scroll::EndSearch));
    }
    model.selected = None;
    model.path.clone_from(&way);
    cmds.push(Cmd::Scroll(Scroll::Within(way)));
}

/// Cancels the subagent that is shown, else the selected one.
pub(super) fn cancel_shown(model: &mut Model, cmds: &mut Vec<Cmd>) {
    let selected = model.selected.and_then(|block| agents::meant_by(&model.transcript, block));
    match selected.or(model.path.last().copied()) {
        Some(block) => cancel(model, block, cmds),
        None => model.say("no subagent is shown or selected: Alt-A lists them"),
    }
}

fn cancel(model: &mut Model, block: BlockId, cmds: &mut Vec<Cmd>) {
    let Some(agent) = agents::agent_of(&model.transcript, block) else { return };
    let name = if agent.title.is_empty() { "the subagent" } else { &agent.title };
    let said = if !agent.running {
        format!("{name} has ended already")
    } else if !agent.cancellable {
        format!("this agent cannot cancel {name} alone: Esc stops the whole turn")
    } else {
        cmds.push(Cmd::Agent(AgentCmd::Cancel { session_id: agent.session_id.clone() }));
        format!("cancelling {name}…")
    };
    model.say(said);
}
