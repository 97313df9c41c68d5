//! The `@` menu: opens it as one types, its keys, and pictures that are pasted by their path.

use std::path::Path;
use std::sync::Arc;

use crate::tui::keymap::{self, Action, Context, Key};
use crate::tui::model::composer::Chip;
use crate::tui::model::mention::{self, Attachment, FileList};
use crate::tui::model::{Ability, Model};
use crate::tui::msg::Cmd;

/// A run of so many characters faster than fingers is a paste: its `@` is no mention.
const PASTE_RUN: u32 = 4;

/// The draft or the caret may have changed with a key: opens, follows or closes the menu.
pub(super) fn follow(model: &mut Model, edited: bool, cmds: &mut Vec<Cmd>) {
    let word = mention::word_at(model.composer.text(), model.composer.caret());
    let Some((at, query)) = word.map(|(at, query)| (at, query.to_owned())) else {
        model.mentions.open = None;
        model.mentions.closed_at = None;
        return;
    };
    let was_open = model.mentions.open.is_some();
    if model.burst.run >= PASTE_RUN || !(edited || was_open) {
        model.mentions.open = None;
        return;
    }
    if model.mentions.closed_at == Some(at) {
        return;
    }
    if !was_open && !model.mentions.loading {
        // Read anew each time: the files change while the agent works.
        model.mentions.loading = true;
        cmds.push(Cmd::ListFiles);
    }
    model.mentions.look(at, &query);
    take_whole(model);
}

/// The files were read.
pub(super) fn listed(model: &mut Model, files: Arc<FileList>) {
    model.mentions.listed(files);
    take_whole(model);
}

/// A file whose whole path was typed needs no choosing.
fn take_whole(model: &mut Model) {
    let Some(open) = &model.mentions.open else { return };
    if open.rows.contains(&open.query) {
        let path = open.query.clone();
        take(model, &path);
    }
}

fn take(model: &mut Model, path: &str) {
    model.mentions.take(Attachment::of_file(path, &model.start.cwd));
}

/// Takes a key in while the menu is open; returns false for keys that edit the draft.
pub(super) fn menu_key(model: &mut Model, key: Key) -> bool {
    let Some(open) = &mut model.mentions.open else { return false };
    let last = open.rows.len().saturating_sub(1);
    match keymap::action(Context::Mention, key) {
        Some(Action::SelectUp) => open.selected = open.selected.checked_sub(1).unwrap_or(last),
        Some(Action::SelectDown) => {
            open.selected = if open.selected >= last { 0 } else { open.selected + 1 };
        }
        Some(Action::Close) => {
            model.mentions.closed_at = Some(open.at);
            model.mentions.open = None;
        }
        Some(Action::Accept) => {
            let (at, path) = (open.at, open.rows.get(open.selected).cloned());
            model.mentions.open = None;
            if let Some(path) = path {
                let end = model.composer.caret();
                model.composer.replace(at..end, &format!("@{path} "));
                take(model, &path);
            }
        }
        _ => return false,
    }
    true
}

/// A paste that is nothing but paths of pictures: they are looked at, and stand as text until then.
pub(super) fn pasted(model: &mut Model, text: &str, cmds: &mut Vec<Cmd>) {
    // What is pasted is text, whatever it looks like.
    model.mentions.open = None;
    let found = mention::pictures(text, &model.start.home, &model.start.cwd);
    if found.is_empty() {
        return;
    }
    if !model.agent.can(Ability::Image) {
        model.say("this agent takes no pictures: the path stays text");
        return;
    }
    cmds.extend(found.into_iter().map(|(word, path)| Cmd::LookAtPicture { word, path }));
}

/// An earlier prompt is the draft again: its pictures are looked at as if they were pasted.
pub(super) fn recalled(model: &Model, cmds: &mut Vec<Cmd>) {
    if !model.agent.can(Ability::Image) {
        return;
    }
    let mut words = mention::picture_paths(model.composer.text());
    words.dedup();
    cmds.extend(words.into_iter().map(|word| Cmd::LookAtPicture { path: (&word).into(), word }));
}

/// A picture was looked at: its path in the draft becomes a chip, or stays and one is told why.
pub(super) fn looked_at(model: &mut Model, word: &str, path: &Path, result: Result<(), String>) {
    let name = mention::name_of(path);
    if let Err(why) = result {
        model.say(format!("{name} stays text: {why}"));
        return;
    }
    let token = path.display().to_string();
    let label = |n: usize| match n {
        1 => format!("[image {name}]"),
        n => format!("[image {name} {n}]"),
    };
    let known = |label: &String| {
        model.composer.chips().iter().any(|chip| chip.label == *label && chip.content != token)
    };
    let label = (1..100).map(label).find(|label| !known(label)).unwrap_or_default();
    let chip = Chip { label, content: token.clone() };
    if model.composer.put_chip(word, chip) {
        let picture = Attachment { token, path: path.to_owned(), is_picture: true };
        model.mentions.take(picture);
    }
}
