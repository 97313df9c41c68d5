//! Logging in: which ways an agent offers, choosing one, and going on with what it was for.

use serde_json::Value;

use super::{session, turn};
use crate::tui::model::login::{AuthMethod, LoginProgram};
use crate::tui::model::picker::{Item, Picker, PickerKind};
use crate::tui::model::{Model, Overlay, Phase, Turn};
use crate::tui::msg::{AgentCmd, Cmd, Failure};

/// Reads `authMethods` of the answer to `initialize`.
pub(super) fn methods_of(answer: &Value) -> Vec<AuthMethod> {
    let methods = answer.get("authMethods").and_then(Value::as_array);
    methods.into_iter().flatten().filter_map(method_of).collect()
}

fn method_of(method: &Value) -> Option<AuthMethod> {
    let text = |key: &str| method.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = text("id");
    if id.is_empty() {
        return None;
    }
    let program = if text("type") == "terminal" {
        Some(program_of(method, None))
    } else {
        // The form of before `type: terminal`: a whole command of its own.
        let meta = method.pointer("/_meta/terminal-auth");
        let command = meta.and_then(|m| m.get("command")).and_then(Value::as_str);
        meta.zip(command).map(|(meta, command)| program_of(meta, Some(command.to_owned())))
    };
    let name = Some(text("name")).filter(|name| !name.is_empty());
    let about = Some(text("description")).filter(|about| !about.is_empty());
    let about = about.or_else(|| program.as_ref().map(words_of)).unwrap_or_default();
    Some(AuthMethod { name: name.unwrap_or_else(|| id.clone()), id, about, program })
}

fn program_of(from: &Value, command: Option<String>) -> LoginProgram {
    let args = from.get("args").and_then(Value::as_array);
    let env = from.get("env").and_then(Value::as_object);
    let owned = |value: &Value| value.as_str().map(str::to_owned);
    LoginProgram {
        command,
        args: args.into_iter().flatten().filter_map(owned).collect(),
        env: env
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), owned(value)?)))
            .collect(),
    }
}

fn words_of(program: &LoginProgram) -> String {
    let command = program.command.as_deref().unwrap_or("the agent's own program");
    let words: Vec<&str> =
        std::iter::once(command).chain(program.args.iter().map(String::as_str)).collect();
    format!("runs {}", words.join(" "))
}

/// Opens the list of ways to log in, or takes the only one.
pub(super) fn open(model: &mut Model, cmds: &mut Vec<Cmd>) {
    let methods = &model.agent.auth_methods;
    match methods.as_slice() {
        [] => model.say("this agent offers no way to log in here"),
        [only] => {
            let id = only.id.clone();
            by(model, &id, cmds);
        }
        several => {
            let items = several.iter().map(|method| Item {
                id: method.id.clone(),
                label: method.name.clone(),
                detail: method.about.clone(),
                current: false,
            });
            let items = items.collect();
            model.overlay =
                Some(Overlay::Picker(Picker::new(PickerKind::Auth, "log in with", items)));
        }
    }
}

/// Logs in by this method.
pub(super) fn by(model: &mut Model, id: &str, cmds: &mut Vec<Cmd>) {
    let Some(method) = model.agent.auth_methods.iter().find(|method| method.id == id) else {
        return;
    };
    match &method.program {
        None => cmds.push(Cmd::Agent(AgentCmd::Authenticate { method: id.to_owned() })),
        // The agent is started again afterwards.
        Some(_) if model.turn != Turn::Idle => {
            model.say("a turn is running: stop it first (Esc)");
        }
        Some(program) => cmds.push(Cmd::LogIn(program.clone())),
    }
}

/// The agent answered `authenticate`.
pub(super) fn answered(model: &mut Model, result: Result<(), Failure>, cmds: &mut Vec<Cmd>) {
    if let Err(failure) = result {
        model.say(format!("login failed: {}", failure.message));
        return;
    }
    model.say("logged in");
    if !matches!(model.phase, Phase::NeedsLogin(_)) {
        return;
    }
    // What was refused, and what was written since, waited for this.
    model.queue.release();
    if model.session.id.is_some() {
        model.phase = Phase::Ready;
        turn::send_next(model, cmds);
    } else {
        session::go_on(model, cmds);
    }
}

/// The program that logs in has ended. An agent looks at its login when it starts.
pub(super) fn ended(model: &mut Model, result: Result<(), String>, cmds: &mut Vec<Cmd>) {
    if let Err(why) = result {
        model.say(format!("not logged in: {why}"));
        return;
    }
    model.say("logged in: the agent starts again");
    if matches!(model.phase, Phase::NeedsLogin(_)) {
        model.queue.release();
    }
    turn::restart(model, cmds);
}
