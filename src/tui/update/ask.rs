//! Permission requests and forms: arriving, being answered, being taken back.
//!
//! Every request gets exactly one answer. Leaving in any way is "cancelled"; nothing but an armed
//! number key, or Enter on a row that the user moved to, ever picks an option.

use super::edit;
use crate::tui::keymap::{self, Action, Context, Key, KeyCode};
use crate::tui::model::composer::Composer;
use crate::tui::model::form::{Form, FormRow};
use crate::tui::model::permission::Permission;
use crate::tui::model::plan::{PlanFocus, PlanReview};
use crate::tui::model::{Ask, AskKind, Model, Overlay, Page, PageContent};
use crate::tui::msg::{AgentCmd, Cmd, FormAnswer};
use serde_json::Value;

/// Rows that a key scrolls the text above a form.
const FORM_ROWS: isize = 5;

/// A permission request has come.
pub(super) fn permission_asked(model: &mut Model, id: u64, params: &Value, cmds: &mut Vec<Cmd>) {
    arrived(model, id, params, AskKind::Permission(Permission::read(params)), cmds);
}

/// A form has come.
pub(super) fn form_asked(model: &mut Model, id: u64, params: &Value, cmds: &mut Vec<Cmd>) {
    let kind = match PlanReview::read(params) {
        Some(plan) => AskKind::Plan(Box::new(plan)),
        None => AskKind::Form(Box::new(Form::read(params))),
    };
    arrived(model, id, params, kind, cmds);
}

fn arrived(model: &mut Model, id: u64, params: &Value, kind: AskKind, cmds: &mut Vec<Cmd>) {
    let session_id = ["sessionId", "session_id"]
        .iter()
        .find_map(|k| params.get(k).and_then(Value::as_str))
        .unwrap_or_default()
        .to_owned();
    let what = match &kind {
        AskKind::Permission(p) => format!("permission asked: {}", p.title),
        AskKind::Form(_) => "the agent asks something".to_owned(),
        AskKind::Plan(_) => "a plan waits for your approval".to_owned(),
    };
    model.asks.push(Ask { id, session_id, kind, drawn_ms: None, scroll: 0 });
    // A page or list that lies over the dialog would hide it.
    if matches!(model.overlay, Some(Overlay::Picker(_))) {
        model.overlay = None;
    }
    if let Some(Overlay::Page(page)) = &mut model.overlay {
        page.focused = false;
    }
    if !model.focused {
        cmds.push(Cmd::Notify(what));
    }
}

/// A frame is on the screen: the front ask has been seen.
pub(super) fn drawn(model: &mut Model) {
    let now = model.now_ms;
    let covered = model.overlay.is_some();
    if let Some(ask) = model.asks.first_mut()
        && !covered
    {
        ask.drawn_ms.get_or_insert(now);
    }
}

/// The agent needs no answer any more.
pub(super) fn withdrawn(model: &mut Model, id: u64) {
    let front = model.asks.first().is_some_and(|a| a.id == id);
    model.asks.retain(|a| a.id != id);
    if front {
        model.say("the agent took its question back");
    }
}

/// Answers everything that is open with "cancelled".
pub(super) fn cancel_all(model: &mut Model, cmds: &mut Vec<Cmd>) {
    for ask in std::mem::take(&mut model.asks) {
        cmds.push(cancelled(&ask));
    }
}

fn cancelled(ask: &Ask) -> Cmd {
    Cmd::Agent(match ask.kind {
        AskKind::Permission(_) => AgentCmd::AnswerPermission { ask: ask.id, option_id: None },
        AskKind::Form(_) | AskKind::Plan(_) => {
            AgentCmd::AnswerForm { ask: ask.id, answer: FormAnswer::Cancel }
        }
    })
}

fn answer_front(model: &mut Model, cmds: &mut Vec<Cmd>, answer: impl FnOnce(&Ask) -> Cmd) {
    if model.asks.is_empty() {
        return;
    }
    let ask = model.asks.remove(0);
    cmds.push(answer(&ask));
    // The next one must be seen and left alone for a moment before its keys count.
    model.last_input_ms = model.now_ms;
}

/// Takes a key in while a permission request is armed. Keys that are not its own go to the draft.
pub(super) fn permission_key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) -> bool {
    let body = model.body;
    let Some(ask) = model.asks.first_mut() else { return false };
    let AskKind::Permission(permission) = &mut ask.kind else { return false };
    if let Some(option) = key.text().and_then(|c| permission.numbered(c)) {
        let option_id = option.id.clone();
        answer_front(model, cmds, |ask| {
            Cmd::Agent(AgentCmd::AnswerPermission { ask: ask.id, option_id: Some(option_id) })
        });
        return true;
    }
    match own_action(Context::Permission, key) {
        Some(Action::SelectUp) => permission.move_by(-1),
        Some(Action::SelectDown) => permission.move_by(1),
        Some(Action::BodyUp) => ask.scroll = body.scrolled(ask.scroll, -1),
        Some(Action::BodyDown) => ask.scroll = body.scrolled(ask.scroll, 1),
        Some(Action::Detail) => {
            let page = Page {
                title: permission.title.clone(),
                content: PageContent::Text(full_text(permission).into()),
                scroll: 0,
                focused: true,
                find: None,
            };
            model.overlay = Some(Overlay::Page(page));
        }
        Some(Action::Accept) => match permission.accepted().map(|o| o.id.clone()) {
            Some(option_id) => answer_front(model, cmds, |ask| {
                Cmd::Agent(AgentCmd::AnswerPermission { ask: ask.id, option_id: Some(option_id) })
            }),
            None => {
                model.say("press a number, or move with ↑ ↓ first; Enter alone answers nothing");
            }
        },
        Some(Action::Close) => answer_front(model, cmds, cancelled),
        _ => return key == Key::plain(KeyCode::Char(' ')) && model.composer.is_empty(),
    }
    true
}

/// Everything that a permission request is about, for the full view.
fn full_text(permission: &Permission) -> String {
    use crate::tui::model::permission::{BodyPart, reveal};
    let mut parts: Vec<String> = permission
        .body
        .iter()
        .map(|part| match part {
            BodyPart::Command(text) => format!("$ {}", reveal(text)),
            BodyPart::Text(text) | BodyPart::Code(text) | BodyPart::Fields(text) => reveal(text),
            BodyPart::Path(path) => reveal(path),
            BodyPart::Diff { path, old, new } => format!(
                "{}\n--- before\n{}\n+++ after\n{}",
                reveal(path),
                reveal(old.as_deref().unwrap_or("(new file)")),
                reveal(new)
            ),
        })
        .collect();
    if !permission.input.is_empty() {
        parts.push(format!("The whole input:\n{}", reveal(&permission.input)));
    }
    parts.join("\n\n")
}

/// Takes a key in while a form is armed: the form has the whole keyboard.
pub(super) fn form_key(model: &mut Model, key: Key, cmds: &mut Vec<Cmd>) -> bool {
    let body = model.body;
    let Some(ask) = model.asks.first_mut() else { return false };
    let AskKind::Form(form) = &mut ask.kind else { return false };
    let action = own_action(Context::Form, key);
    let writing = form.draft_mut().is_some();
    match action {
        Some(Action::SelectUp) => move_row(form, -1),
        Some(Action::SelectDown) => move_row(form, 1),
        Some(Action::NextField) => form.move_field(true),
        Some(Action::PreviousField) => form.move_field(false),
        Some(Action::BodyUp) => ask.scroll = body.scrolled(ask.scroll, -FORM_ROWS),
        Some(Action::BodyDown) => ask.scroll = body.scrolled(ask.scroll, FORM_ROWS),
        Some(Action::Close) => answer_front(model, cmds, cancelled),
        Some(Action::Accept) => accept_row(model, cmds),
        Some(Action::Toggle) if !writing => form.toggle(),
        _ => return form_text_key(form, key),
    }
    true
}

/// Takes a key in while a plan is armed: the plan has the whole keyboard.
pub(super) fn plan_key(model: &mut Model, context: Context, key: Key, cmds: &mut Vec<Cmd>) -> bool {
    let body = model.body;
    let Some(ask) = model.asks.first_mut() else { return false };
    let AskKind::Plan(plan) = &mut ask.kind else { return false };
    let writing = context == Context::PlanNote;
    match own_action(context, key) {
        Some(Action::BodyUp) => ask.scroll = body.scrolled(ask.scroll, -1),
        Some(Action::BodyDown) => ask.scroll = body.scrolled(ask.scroll, 1),
        Some(Action::PageUp) => ask.scroll = body.scrolled(ask.scroll, -body.page()),
        Some(Action::PageDown) => ask.scroll = body.scrolled(ask.scroll, body.page()),
        Some(Action::Top) => ask.scroll = 0,
        Some(Action::Tail) => ask.scroll = body.most,
        Some(Action::Approve) => plan.focus_on(PlanFocus::Approve),
        Some(Action::Reject) => plan.focus_on(PlanFocus::Reject),
        Some(Action::Note) => plan.focus_on(PlanFocus::Note),
        Some(Action::NextField) => plan.move_focus(true),
        Some(Action::PreviousField) => plan.move_focus(false),
        Some(Action::Accept) => match plan.answer() {
            Some(answers) => answer_front(model, cmds, |ask| {
                let answer = FormAnswer::Accept(answers);
                Cmd::Agent(AgentCmd::AnswerForm { ask: ask.id, answer })
            }),
            None if !writing => model.say("choose an answer first: a, r or f, then Enter"),
            None => {}
        },
        Some(Action::Close) if writing => plan.focus_on(PlanFocus::Text),
        Some(Action::Close) => answer_front(model, cmds, cancelled),
        _ => {
            let Some(note) = plan.note_mut() else { return key.text().is_some() };
            let edited = text_key(note, key);
            plan.note_missing &= !edited;
            return edited;
        }
    }
    true
}

/// Takes a key into a text that a dialog asks for.
fn text_key(draft: &mut Composer, key: Key) -> bool {
    if let Some(c) = key.text() {
        draft.insert(c.encode_utf8(&mut [0; 4]));
        return true;
    }
    match keymap::action(Context::Composer, key) {
        Some(Action::Up) => draft.up(FORM_TEXT_WIDTH),
        Some(Action::Down) => draft.down(FORM_TEXT_WIDTH),
        Some(action) => edit::edit_text(draft, action),
        None => false,
    }
}

fn accept_row(model: &mut Model, cmds: &mut Vec<Cmd>) {
    let Some(AskKind::Form(form)) = model.asks.first_mut().map(|a| &mut a.kind) else { return };
    match form.focused() {
        FormRow::Submit => {
            let Some(answers) = form.submit() else { return };
            answer_front(model, cmds, |ask| {
                Cmd::Agent(AgentCmd::AnswerForm {
                    ask: ask.id,
                    answer: FormAnswer::Accept(answers),
                })
            });
        }
        FormRow::Decline => answer_front(model, cmds, |ask| {
            Cmd::Agent(AgentCmd::AnswerForm { ask: ask.id, answer: FormAnswer::Decline })
        }),
        _ => form.choose_and_go_on(),
    }
}

/// In a text of several rows the arrows move inside it first.
fn move_row(form: &mut Form, by: isize) {
    if let Some(draft) = form.draft_mut() {
        let inside = if by < 0 { draft.up(FORM_TEXT_WIDTH) } else { draft.down(FORM_TEXT_WIDTH) };
        if inside {
            return;
        }
    }
    form.problem = None;
    form.move_by(by);
}

/// Arrows inside a form's text go by its lines; it is wrapped wider than any pane.
const FORM_TEXT_WIDTH: usize = 10_000;

fn form_text_key(form: &mut Form, key: Key) -> bool {
    let Some(draft) = form.draft_mut() else {
        if let Some(c) = key.text() {
            form.choose_number(c);
            return true;
        }
        return false;
    };
    let edited = text_key(draft, key);
    if edited {
        form.problem = None;
    }
    edited
}

/// Puts pasted text into the focused text of the form; returns false when none has the focus.
pub(super) fn paste_into_form(model: &mut Model, text: &str) -> bool {
    let draft = match model.asks.first_mut().map(|a| &mut a.kind) {
        Some(AskKind::Form(form)) => form.draft_mut(),
        Some(AskKind::Plan(plan)) => plan.note_mut(),
        _ => None,
    };
    let Some(draft) = draft else { return false };
    draft.paste(text);
    true
}

/// What a key means in the dialog itself, not elsewhere.
fn own_action(context: Context, key: Key) -> Option<Action> {
    let action = keymap::action(context, key)?;
    let own = keymap::BINDINGS.iter().any(|b| {
        b.context == context
            && b.action == action
            && b.keys.split(' ').filter_map(Key::parse).any(|k| k == key)
    });
    own.then_some(action)
}
