//! Lists to choose from and pages to read: opening them and their keys.

use super::{keys, login, mention, session};
use crate::tui::keymap::{self, Action, Context, Key, KeyCode};
use crate::tui::model::mention::{name_of, picture_paths};
use crate::tui::model::picker::{Item, Picker, PickerKind};
use crate::tui::model::status::{ConfigOption, Setting};
use crate::tui::model::transcript::block::{Block, BlockKind};
use crate::tui::model::{Ability, Model, Overlay, Page, PageContent, PageFind, Phase, Seek};
use crate::tui::msg::{AgentCmd, Cmd, CopyWhat, PageSought};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

/// Rows that a page key moves in a list or page.
const PAGE_ROWS: isize = 10;
/// Sessions after which a filter that little passes asks for no more by itself.
const MOST_LISTED: usize = 20_000;

fn open_page(model: &mut Model, title: &str, content: PageContent) {
    model.overlay = Some(Overlay::Page(Page {
        title: title.to_owned(),
        content,
        scroll: 0,
        focused: true,
        find: None,
    }));
}

/// Opens a text that was made beside the loop.
pub(super) fn open_text(model: &mut Model, title: &str, text: Arc<str>) {
    open_page(model, title, PageContent::Text(text));
}

/// Opens the keys and commands.
pub(super) fn open_help(model: &mut Model) {
    open_page(model, "help", PageContent::Help);
}

/// Opens the selected block in full, else the last tool card.
pub(super) fn open_last_card(model: &mut Model) {
    let is_card = |b: &&Block| matches!(b.kind, BlockKind::Tool(_) | BlockKind::Unknown(_));
    let is_answer = |b: &&Block| matches!(b.kind, BlockKind::Assistant(_));
    let blocks = || model.transcript.blocks().iter().rev();
    let last = || blocks().find(is_card).or_else(|| blocks().find(is_answer));
    match model.selected.and_then(|id| model.transcript.block(id)).or_else(last) {
        Some(block) => {
            let title = match &block.kind {
                BlockKind::Tool(_) | BlockKind::Unknown(_) => "tool card",
                BlockKind::User(_) => "prompt",
                BlockKind::Assistant(_) => "answer",
                BlockKind::Thought(_) => "thought",
                _ => "block",
            };
            let content = PageContent::Block(block.id);
            open_page(model, title, content);
        }
        None => model.say("nothing to show in full yet"),
    }
}

/// Opens what is known about the session.
pub(super) fn open_status(model: &mut Model) {
    use std::fmt::Write as _;
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            let _infallible = writeln!(text, "- **{name}**: {value}");
        }
    };
    row("agent", format!("{} {}", model.agent.name, model.agent.version).trim());
    row("session", model.session.id.as_deref().unwrap_or("none"));
    row("title", &model.session.title);
    row("directory", &model.start.cwd.display().to_string());
    // An agent whose modes are an option says it there.
    if model.session.settings.of_category("mode").is_none() {
        row("mode", &model.session.settings.mode_name());
    }
    for option in &model.session.settings.options {
        row(&option.name, &option.current_name());
    }
    if let Some(usage) = &model.session.usage {
        row("context", &format!("{} of {} tokens", usage.used, usage.size));
        if let Some((amount, currency)) = &usage.cost {
            row("cost", &format!("{amount:.4} {currency}"));
        }
    }
    row("prompts waiting", &model.queue.len().to_string());
    open_page(model, "status", PageContent::Markdown(text));
}

/// Opens the list of a category's values.
pub(super) fn open_category(model: &mut Model, category: &str) {
    let settings = &model.session.settings;
    if let Some(option) = settings.of_category(category).cloned() {
        open_option(model, &option);
        return;
    }
    if category == "mode" && !settings.modes.is_empty() {
        let items = settings
            .modes
            .iter()
            .map(|m| Item {
                id: m.value.clone(),
                label: m.name.clone(),
                detail: m.description.clone(),
                current: m.value == settings.current_mode,
            })
            .collect();
        model.overlay = Some(Overlay::Picker(Picker::new(PickerKind::Mode, "mode", items)));
        return;
    }
    model.say(format!("this agent offers no choice of {}", category.replace('_', " ")));
}

fn open_option(model: &mut Model, option: &ConfigOption) {
    let items = match &option.setting {
        Setting::Switch(on) => [true, false]
            .map(|v| Item {
                id: v.to_string(),
                label: if v { "on" } else { "off" }.to_owned(),
                detail: option.description.clone(),
                current: v == *on,
            })
            .to_vec(),
        Setting::Select { current, choices } => choices
            .iter()
            .map(|c| Item {
                id: c.value.clone(),
                label: c.name.clone(),
                detail: [c.group.as_str(), c.description.as_str()]
                    .into_iter()
                    .filter(|s| !s.is_empty())
                    .collect::<Vec<_>>()
                    .join(" · "),
                current: c.value == *current,
            })
            .collect(),
    };
    let kind = PickerKind::Option(option.id.clone());
    model.overlay = Some(Overlay::Picker(Picker::new(kind, option.name.clone(), items)));
}

/// `/model NAME`: sets what fits the name, or opens the list when nothing or nothing single does.
pub(super) fn choose_category(model: &mut Model, category: &str, name: &str, cmds: &mut Vec<Cmd>) {
    open_category(model, category);
    let Some(Overlay::Picker(picker)) = &mut model.overlay else { return };
    if name.is_empty() {
        return;
    }
    picker.type_text(name);
    if picker.visible_items().len() == 1 {
        accept(model, cmds);
    }
}

/// Opens the list of all settings.
pub(super) fn open_settings(model: &mut Model) {
    let items: Vec<Item> = model
        .session
        .settings
        .options
        .iter()
        .map(|o| Item {
            id: o.id.clone(),
            label: o.name.clone(),
            detail: o.current_name(),
            current: false,
        })
        .collect();
    if items.is_empty() {
        open_category(model, "mode");
    } else {
        model.overlay = Some(Overlay::Picker(Picker::new(PickerKind::Settings, "settings", items)));
    }
}

/// Shift-Tab: the mode after the one in effect.
pub(super) fn next_mode(model: &mut Model, cmds: &mut Vec<Cmd>) {
    let (choices, current) = model.session.settings.mode_choices();
    if choices.len() < 2 {
        model.say("this agent offers no choice of mode");
        return;
    }
    let at = choices.iter().position(|c| c.value == current).map_or(0, |i| i + 1);
    if let Some(next) = choices.get(at % choices.len()).map(|c| c.value.clone()) {
        set_mode(model, &next, cmds);
    }
}

fn set_mode(model: &mut Model, mode: &str, cmds: &mut Vec<Cmd>) {
    let Some(session_id) = model.session.id.clone() else { return };
    let option = model.session.settings.of_category("mode").map(|o| o.id.clone());
    cmds.push(Cmd::Agent(match option {
        Some(id) => AgentCmd::SetOption { session_id, id, value: Value::String(mode.to_owned()) },
        None => AgentCmd::SetMode { session_id, mode: mode.to_owned() },
    }));
}

/// Opens the list of sessions; the rows come later.
pub(super) fn open_sessions(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if !model.agent.can(Ability::List) {
        model.say("this agent cannot list sessions; /resume ID goes on with one by its id");
        return;
    }
    let mut picker = Picker::new(PickerKind::Session, "sessions here", Vec::new());
    picker.loading = true;
    model.overlay = Some(Overlay::Picker(picker));
    cmds.push(Cmd::Agent(AgentCmd::ListSessions { cursor: None }));
}

/// A prompt in a row, with its pictures by their names.
fn label_of(prompt: &str) -> String {
    let pictures = picture_paths(prompt);
    let named = pictures.iter().fold(prompt.to_owned(), |text, path| {
        text.replace(path.as_str(), &format!("[image {}]", name_of(Path::new(path))))
    });
    named.replace('\n', " ⏎ ")
}

/// Opens the list of prompts of before, newest first.
pub(super) fn open_history(model: &mut Model) {
    let items: Vec<Item> = model
        .history
        .entries()
        .iter()
        .rev()
        .map(|p| Item { id: p.clone(), label: label_of(p), ..Item::default() })
        .collect();
    if items.is_empty() {
        model.say("no prompts of before yet");
    } else {
        model.overlay =
            Some(Overlay::Picker(Picker::new(PickerKind::History, "prompts of before", items)));
    }
}

/// Takes a key in while a list is open.
pub(super) fn picker_key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) -> bool {
    let Some(Overlay::Picker(picker)) = &mut model.overlay else { return false };
    if let Some(c) = key.text() {
        picker.type_text(c.encode_utf8(&mut [0; 4]));
        more_rows(model, cmds);
        return true;
    }
    if key.code == KeyCode::Backspace {
        picker.erase();
        return true;
    }
    match keymap::action(Context::Picker, key) {
        Some(Action::SelectUp) => picker.move_by(-1),
        Some(Action::SelectDown) => picker.move_by(1),
        Some(Action::PageUp) => picker.move_by(-PAGE_ROWS),
        Some(Action::PageDown) => picker.move_by(PAGE_ROWS),
        Some(Action::Close | Action::ClearOrQuit) => model.overlay = None,
        Some(Action::Accept) => accept(model, cmds),
        Some(action @ (Action::Redraw | Action::Suspend)) => keys::act(model, action, key, cmds),
        _ => {}
    }
    more_rows(model, cmds);
    true
}

/// Near the end of a list that has more pages, asks for the next one. So it is with a filter that
/// little passes: what is looked for may be further on.
fn more_rows(model: &mut Model, cmds: &mut Vec<Cmd>) {
    let Some(Overlay::Picker(picker)) = &mut model.overlay else { return };
    let near_end = picker.selected + 20 >= picker.visible_items().len();
    if near_end
        && !picker.loading
        && let Some(cursor) = picker.next_cursor.take()
    {
        picker.loading = true;
        cmds.push(Cmd::Agent(AgentCmd::ListSessions { cursor: Some(cursor) }));
    }
}

fn accept(model: &mut Model, cmds: &mut Vec<Cmd>) {
    let Some(Overlay::Picker(picker)) = &model.overlay else { return };
    let Some(item) = picker.selected_item().cloned() else { return };
    let kind = picker.kind.clone();
    model.overlay = None;
    match kind {
        PickerKind::Option(id) => {
            let Some(session_id) = model.session.id.clone() else { return };
            let option = model.session.settings.options.iter().find(|o| o.id == id);
            let value = match option.map(|o| &o.setting) {
                Some(Setting::Switch(_)) => Value::Bool(item.id == "true"),
                _ => Value::String(item.id),
            };
            cmds.push(Cmd::Agent(AgentCmd::SetOption { session_id, id, value }));
        }
        PickerKind::Mode => set_mode(model, &item.id, cmds),
        PickerKind::Settings => {
            let option = model.session.settings.options.iter().find(|o| o.id == item.id).cloned();
            if let Some(option) = option {
                open_option(model, &option);
            }
        }
        PickerKind::Session => session::open_old(model, &item.id, cmds),
        PickerKind::History => {
            model.composer.set_text(&item.id);
            mention::recalled(model, cmds);
        }
        PickerKind::Auth => login::by(model, &item.id, cmds),
    }
}

/// Takes a key in while a page has the focus.
pub(super) fn page_key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) -> bool {
    let body = model.body;
    let Some(Overlay::Page(page)) = &mut model.overlay else { return false };
    if page.find.as_ref().is_some_and(|find| find.typing) {
        return find_key(page, key);
    }
    let by = |page: &mut Page, rows: isize| page.scroll = body.scrolled(page.scroll, rows);
    match keymap::action(Context::Page, key) {
        Some(Action::Search) => {
            page.find = Some(PageFind { typing: true, ..PageFind::default() });
        }
        Some(Action::NextMatch) => seek(page, Seek::Next),
        Some(Action::PreviousMatch) => seek(page, Seek::Previous),
        Some(Action::Copy) => cmds.push(Cmd::Copy { what: CopyWhat::Page, to_file: false }),
        Some(Action::Editor) => cmds.push(Cmd::EditPage),
        Some(Action::Close) if page.find.is_some() => page.find = None,
        Some(Action::BodyUp) => by(page, -1),
        Some(Action::BodyDown) => by(page, 1),
        Some(Action::PageUp) => by(page, -body.page()),
        Some(Action::PageDown) => by(page, body.page()),
        Some(Action::Top) => page.scroll = 0,
        // Where that is may only be known once it is looked at; what comes later is followed.
        Some(Action::Tail) => page.scroll = usize::MAX,
        Some(Action::Close | Action::Detail | Action::Help | Action::ClearOrQuit) => {
            model.overlay = None;
        }
        Some(Action::Redraw) => cmds.push(Cmd::Redraw),
        Some(Action::Suspend) => cmds.push(Cmd::Suspend),
        _ => {
            // Whoever begins to write has read enough.
            if key.text().is_some() && !matches!(model.phase, Phase::Down(_)) {
                model.overlay = None;
                return false;
            }
        }
    }
    true
}

fn seek(page: &mut Page, to: Seek) {
    if let Some(find) = &mut page.find {
        find.seek = Some(to);
    }
}

/// Takes a key in while the text to look for is written.
fn find_key(page: &mut Page, key: Key) -> bool {
    let Some(find) = &mut page.find else { return false };
    if let Some(c) = key.text() {
        find.query.push(c);
    } else if key.code == KeyCode::Backspace {
        find.query.pop();
    } else {
        match key.code {
            KeyCode::Enter => find.typing = false,
            KeyCode::Esc => page.find = None,
            _ => {}
        }
        return true;
    }
    find.seek = Some(Seek::Here);
    find.at = None;
    find.progress = None;
    true
}

/// The view has looked.
pub(super) fn page_sought(model: &mut Model, sought: PageSought) {
    if let Some(Overlay::Page(page)) = &mut model.overlay
        && let Some(find) = &mut page.find
    {
        find.seek = sought.seek;
        find.at = sought.at;
        find.position = Some(sought.position);
        find.progress = sought.progress;
        page.scroll = sought.scroll.unwrap_or(page.scroll);
    }
}

/// Rows of the session list have come.
pub(super) fn sessions_listed(model: &mut Model, answer: &Value, cmds: &mut Vec<Cmd>) {
    let current = model.session.id.clone();
    let Some(Overlay::Picker(picker)) = &mut model.overlay else { return };
    if picker.kind != PickerKind::Session {
        return;
    }
    picker.loading = false;
    let text = |v: &Value, k: &str| v.get(k).and_then(Value::as_str).unwrap_or_default().to_owned();
    picker.next_cursor = answer.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    let items = answer.get("sessions").and_then(Value::as_array).into_iter().flatten().map(|s| {
        let id = text(s, "sessionId");
        let title = text(s, "title").replace('\n', " ");
        let updated = text(s, "updatedAt").get(..16).unwrap_or_default().replace('T', " ");
        Item {
            label: if title.is_empty() { "(no title)".to_owned() } else { title },
            detail: [updated, id.clone()]
                .into_iter()
                .filter(|s| !s.is_empty())
                .collect::<Vec<_>>()
                .join(" · "),
            current: current.as_deref() == Some(id.as_str()),
            id,
        }
    });
    let before = picker.total();
    picker.extend(items.collect::<Vec<_>>());
    // An agent whose list never ends is not asked on by itself.
    let total = picker.total();
    if total > before && total < MOST_LISTED {
        more_rows(model, cmds);
    }
}

/// The list could not be read.
pub(super) fn sessions_failed(model: &mut Model, message: &str) {
    if matches!(&model.overlay, Some(Overlay::Picker(p)) if p.kind == PickerKind::Session) {
        model.overlay = None;
    }
    model.say(format!("sessions cannot be listed: {message}"));
}

/// What to do about a failed turn, from the agent's error code.
pub(super) fn hint_for(code: i64) -> Option<String> {
    match code {
        -32000 => Some("log in with /login".to_owned()),
        -32002 => Some("the session is gone: /new starts another, /resume lists them".to_owned()),
        0 => Some("Enter on an empty draft starts the agent again".to_owned()),
        _ => None,
    }
}
