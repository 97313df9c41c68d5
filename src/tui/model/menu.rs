//! The slash menu's content: our commands, the agent's, and which of them fit what is typed.
//! Data only; `update::slash` runs them, `view::composer` and `view::help` show them.

use super::{Ability, Model, fuzzy};

/// A command of our own.
#[derive(Debug, Clone, Copy)]
pub struct LocalCommand {
    /// Its name without the slash.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// Our commands. Every function of a key that a phone keyboard may lack is among them.
pub const LOCAL: &[LocalCommand] = &[
    LocalCommand { name: "help", help: "keys and commands" },
    LocalCommand { name: "model", help: "choose a model" },
    LocalCommand { name: "mode", help: "choose a mode" },
    LocalCommand { name: "thought", help: "choose how much it thinks" },
    LocalCommand { name: "settings", help: "every setting the agent offers" },
    LocalCommand { name: "new", help: "start a new session" },
    LocalCommand { name: "resume", help: "go on with an earlier session" },
    LocalCommand { name: "search", help: "search the transcript" },
    LocalCommand { name: "card", help: "the selected block, last card or answer in full" },
    LocalCommand { name: "expand", help: "expand or collapse cards and thoughts" },
    LocalCommand { name: "select", help: "select the block above (/fold, /card, /copy act on it)" },
    LocalCommand { name: "fold", help: "fold or unfold the selected block" },
    LocalCommand { name: "todos", help: "unfold or fold the steps of the plan" },
    LocalCommand { name: "copy", help: "copy the selection or the last answer (code, turn, file)" },
    LocalCommand { name: "export", help: "the conversation as markdown (to a file when named)" },
    LocalCommand { name: "history", help: "search the prompts of before" },
    LocalCommand { name: "editor", help: "write the next prompt in your editor" },
    LocalCommand { name: "status", help: "session, agent and what it costs" },
    LocalCommand { name: "queue", help: "what is queued: edit, delete, send now" },
    LocalCommand { name: "agents", help: "the subagents: look into one, cancel one" },
    LocalCommand { name: "stop", help: "stop the running turn" },
    LocalCommand { name: "login", help: "log in to the agent" },
    LocalCommand { name: "restart", help: "start the agent again and go on" },
    LocalCommand { name: "demo", help: "try the demo agent (when no engine is found)" },
    LocalCommand { name: "quit", help: "quit" },
];

/// A row of the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MenuRow {
    /// Its name without the slash.
    pub name: String,
    /// What it does.
    pub help: String,
    /// What may follow, or empty.
    pub hint: String,
    /// One of ours.
    pub local: bool,
}

/// The name typed so far, while the draft is a slash and a part of one word.
pub fn typed(model: &Model) -> Option<&str> {
    let name = model.composer.text().strip_prefix('/')?;
    (!name.contains(char::is_whitespace)).then_some(name)
}

/// Whether the menu shows.
pub fn is_open(model: &Model) -> bool {
    typed(model).is_some()
        && model.menu.dismissed.as_deref() != Some(model.composer.text())
        && !rows(model).is_empty()
}

/// Whether our command of this name stands in for the agent's: where the agent lets the terminal choose,
/// a list to choose from is more than a command's text.
pub fn stands_in(model: &Model, name: &str) -> bool {
    let settings = &model.session.settings;
    match name {
        "model" => settings.of_category("model").is_some(),
        "thought" => settings.of_category("thought_level").is_some(),
        "mode" => settings.of_category("mode").is_some() || !settings.modes.is_empty(),
        "resume" => model.agent.can(Ability::List),
        _ => false,
    }
}

/// The rows that fit what was typed, best first; the agent's own commands before ours.
pub fn rows(model: &Model) -> Vec<MenuRow> {
    let Some(name) = typed(model) else { return Vec::new() };
    let theirs = model.session.commands.iter().filter(|c| !stands_in(model, &c.name));
    let agent = theirs.map(|c| MenuRow {
        name: c.name.clone(),
        help: c.description.clone(),
        hint: c.hint.clone(),
        local: false,
    });
    let local = LOCAL.iter().map(|c| MenuRow {
        name: c.name.to_owned(),
        help: c.help.to_owned(),
        hint: String::new(),
        local: true,
    });
    let mut rows: Vec<(i64, MenuRow)> = agent
        .chain(local)
        .filter(|r| r.name != "demo" || model.start.can_demo)
        .filter_map(|r| fuzzy::score(name, &r.name).map(|s| (s, r)))
        .collect();
    // The sort is stable: rows of one score keep the agent's order.
    rows.sort_by_key(|(s, _)| std::cmp::Reverse(*s));
    rows.into_iter().map(|(_, r)| r).collect()
}
