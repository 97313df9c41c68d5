//! PURE. `(Model, Msg) → Model and commands`. No I/O, no drawing, no clock: the loop sets
//! `Model::now_ms` before each message. Called by `app` alone.

pub mod acp;
mod agents;
mod ask;
mod edit;
mod keys;
mod login;
mod mention;
mod overlay;
mod paste;
mod queue;
mod session;
mod slash;
mod tick;
mod turn;

use crate::tui::model::{Draft, Model};
use crate::tui::msg::{Cmd, Msg, Scroll};
use crate::tui::terminal::input::TermEvent;

/// How long after a change of the draft it is written to disk.
const SAVE_AFTER_MS: u64 = 400;

/// Takes one message in and returns what is to be done.
pub fn update(model: &mut Model, msg: Msg) -> Vec<Cmd> {
    let mut cmds = Vec::new();
    match msg {
        Msg::Term(event) => term(model, event, &mut cmds),
        Msg::Resized(columns, rows) => model.size = (columns, rows),
        Msg::Ticked => tick::ticked(model, &mut cmds),
        Msg::Drawn => ask::drawn(model),
        Msg::Hangup => quit(model, &mut cmds),
        Msg::LoginEnded(result) => login::ended(model, result, &mut cmds),
        Msg::Edited(text) => model.composer.set_text(text.trim_end_matches('\n')),
        Msg::Found(position) => {
            if let Some(search) = &mut model.search {
                search.position = position;
            }
        }
        Msg::Selected(block) => model.selected = block,
        Msg::PageSought(sought) => overlay::page_sought(model, sought),
        Msg::FoundOnDisk { query, matches, blocks } => {
            if let Some(search) = model.search.as_mut().filter(|search| search.query == query) {
                search.on_disk = Some(matches);
                cmds.push(Cmd::Scroll(Scroll::FoundOnDisk(blocks)));
            }
        }
        Msg::Paged { title, text } => overlay::open_text(model, &title, text),
        Msg::FilesListed(files) => mention::listed(model, files),
        Msg::PictureLookedAt { word, path, result } => {
            mention::looked_at(model, &word, &path, result);
        }
        Msg::Reported(text) => model.say(text),
        Msg::Agent(msg) => session::agent(model, msg, &mut cmds),
    }
    note_draft_change(model);
    cmds
}

fn term(model: &mut Model, event: TermEvent, cmds: &mut Vec<Cmd>) {
    match event {
        TermEvent::Key(key) => {
            paste::before_key(model, key, cmds);
            if paste::holds_enter(model, key) || paste::goes_on(model, key) {
                return;
            }
            let version = model.composer.version();
            keys::key(model, key, cmds);
            mention::follow(model, model.composer.version() != version, cmds);
        }
        TermEvent::Burst(text) => paste::burst(model, text, cmds),
        TermEvent::Paste(text) => keys::pasted(model, &text, cmds),
        TermEvent::Mouse(mouse) => keys::mouse(model, mouse, cmds),
        TermEvent::Focus(focused) => model.focused = focused,
        // The terminal's answers are for the terminal's owner, not for the model.
        TermEvent::Reply(_) => {}
    }
}

/// Ends the program. What the agent still waits for is answered as cancelled by the client task,
/// which drops the requests; the draft and the queue are kept.
fn quit(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if model.quitting {
        return;
    }
    model.quitting = true;
    ask::cancel_all(model, cmds);
    cmds.push(Cmd::StoreDraft(draft_of(model)));
    cmds.push(Cmd::Quit);
}

fn draft_of(model: &Model) -> Draft {
    let text = model.composer.text().to_owned();
    let queue: Vec<String> =
        model.in_flight_unsent().into_iter().chain(model.queue.iter()).map(str::to_owned).collect();
    let all = std::iter::once(text.as_str()).chain(queue.iter().map(String::as_str));
    let mut mentions: Vec<String> = all
        .flat_map(|text| model.mentions.in_text(text))
        .filter_map(|file| file.token.strip_prefix('@').map(str::to_owned))
        .collect();
    mentions.sort_unstable();
    mentions.dedup();
    Draft { text, chips: model.composer.chips().to_vec(), queue, mentions }
}

fn note_draft_change(model: &mut Model) {
    let state = (model.composer.version(), model.queue.len());
    if state != model.saved_draft && model.save_due_ms.is_none() {
        model.save_due_ms = Some(model.now_ms + SAVE_AFTER_MS);
    }
}

#[cfg(test)]
mod agent_tests;
#[cfg(test)]
mod login_tests;
#[cfg(test)]
mod mention_tests;
#[cfg(test)]
mod queue_tests;
#[cfg(test)]
mod tests;
