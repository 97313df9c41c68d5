//! What the agent says: its start, sessions, updates, the end of turns, its death.

use super::acp;
use super::{ask, login, overlay, queue, turn};
use crate::tui::model::transcript::Transcript;
use crate::tui::model::transcript::block::{Notice, Severity};
use crate::tui::model::transcript::tool::Exit;
use crate::tui::model::{
    Ability, AgentFacts, FirstSession, Model, Overlay, Phase, Session, Trouble, Turn,
};
use crate::tui::msg::{AgentCmd, AgentMsg, Cmd, Failure, Opening, Scroll, SessionFact};
use serde_json::Value;

/// Lines of the agent's last words that are shown.
const LAST_WORDS: usize = 12;

/// Takes in what the client task tells.
pub(super) fn agent(model: &mut Model, msg: AgentMsg, cmds: &mut Vec<Cmd>) {
    match msg {
        AgentMsg::Initialized(answer) => initialized(model, &answer, cmds),
        AgentMsg::Opened { opening, session_id, answer, how } => {
            if opening == model.opened {
                opened(model, session_id, &answer, &how, cmds);
            }
        }
        AgentMsg::OpenFailed { opening, how, failure } => {
            if opening == model.opened {
                open_failed(model, &how, &failure, cmds);
            }
        }
        AgentMsg::Updated { session_id, update } => {
            let now = model.now_ms;
            match owner(model, &session_id) {
                Owner::Shown => acp::apply(&mut model.transcript, &update, now),
                Owner::Child => acp::apply_child(&mut model.transcript, &session_id, &update, now),
                Owner::Other => return,
            };
        }
        AgentMsg::Learned { session_id, fact } => {
            match owner(model, &session_id) {
                Owner::Shown => learned(model, fact),
                // A child's own child; what else a child says of itself is not the session's.
                Owner::Child if matches!(fact, SessionFact::Child { .. }) => learned(model, fact),
                Owner::Child | Owner::Other => {}
            }
        }
        AgentMsg::UnknownUpdate { session_id, update } => unknown(model, &session_id, &update),
        AgentMsg::TurnEnded { session_id, result } => turn_ended(model, &session_id, result, cmds),
        AgentMsg::PermissionAsked { ask, params } => {
            ask::permission_asked(model, ask, &params, cmds);
        }
        AgentMsg::FormAsked { ask, params } => ask::form_asked(model, ask, &params, cmds),
        AgentMsg::AskWithdrawn { ask } => ask::withdrawn(model, ask),
        AgentMsg::OptionSet { what, result } => match result {
            Ok(answer) => {
                if let Some(options) = answer.get("configOptions").and_then(Value::as_array) {
                    model.session.settings.set_options(options);
                }
            }
            Err(failure) => model.say(format!("{what} was not set: {}", failure.message)),
        },
        AgentMsg::ModeSet { mode, result } => match result {
            Ok(()) => model.session.settings.set_mode(&mode),
            Err(failure) => model.say(format!("mode was not set: {}", failure.message)),
        },
        AgentMsg::Sessions(result) if model.start.first == FirstSession::NewestOfList => {
            model.start.first = FirstSession::New;
            newest_listed(model, &result.unwrap_or_default(), cmds);
        }
        AgentMsg::Sessions(Ok(answer)) => overlay::sessions_listed(model, &answer, cmds),
        AgentMsg::Sessions(Err(failure)) => overlay::sessions_failed(model, &failure.message),
        AgentMsg::LoggedIn(result) => login::answered(model, result, cmds),
        AgentMsg::QueueChanged { change, result } => queue::changed(model, change, &result),
        AgentMsg::Steered { text, result } => steered(model, text, &result, cmds),
        AgentMsg::NotAttached(why) => model.say(format!("sent without {}", why.join(", "))),
        AgentMsg::TerminalOutput { terminal_id, text } => {
            model.transcript.terminal_output(&terminal_id, &text);
        }
        AgentMsg::TerminalExited { terminal_id, code, signal } => {
            model.transcript.terminal_exit(&terminal_id, &Exit { code, signal });
        }
        AgentMsg::Gone(failure) => gone(model, &failure, cmds),
    }
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn initialized(model: &mut Model, answer: &Value, cmds: &mut Vec<Cmd>) {
    let at = |path: &str| answer.pointer(path);
    let yes = |path: &str| at(path).is_some_and(|v| v.as_bool().unwrap_or(!v.is_null()));
    let info = answer.get("agentInfo").cloned().unwrap_or_default();
    let name = [text(&info, "title"), text(&info, "name"), model.start.agent_label.clone()];
    model.agent = AgentFacts {
        name: name.into_iter().find(|n| !n.is_empty()).unwrap_or_default(),
        version: text(&info, "version"),
        abilities: [
            (Ability::Load, "/agentCapabilities/loadSession"),
            (Ability::Resume, "/agentCapabilities/sessionCapabilities/resume"),
            (Ability::List, "/agentCapabilities/sessionCapabilities/list"),
            (Ability::Image, "/agentCapabilities/promptCapabilities/image"),
            (Ability::Steer, "/_meta/steering/supported"),
            (Ability::Queue, "/_meta/zcode/queue"),
        ]
        .into_iter()
        .filter(|(_, path)| yes(path))
        .map(|(ability, _)| ability)
        .collect(),
        auth_methods: login::methods_of(answer),
    };
    if model.start.first == FirstSession::Newest && model.agent.can(Ability::List) {
        model.phase = Phase::Opening;
        model.start.first = FirstSession::NewestOfList;
        cmds.push(Cmd::Agent(AgentCmd::ListSessions { cursor: None }));
        return;
    }
    go_on(model, cmds);
}

/// `--continue`: the newest session of the directory, or a new one when there is none.
fn newest_listed(model: &mut Model, answer: &Value, cmds: &mut Vec<Cmd>) {
    let sessions = answer.get("sessions").and_then(Value::as_array);
    let newest = sessions.into_iter().flatten().max_by_key(|s| text(s, "updatedAt"));
    match newest.map(|s| text(s, "sessionId")).filter(|id| !id.is_empty()) {
        Some(id) => model.start.first = FirstSession::Named(id),
        None => model.say("no earlier session here: this is a new one"),
    }
    go_on(model, cmds);
}

pub(super) fn go_on(model: &mut Model, cmds: &mut Vec<Cmd>) {
    // An agent that was started again goes on with the session it had.
    let first = match std::mem::take(&mut model.start.first) {
        FirstSession::Named(id) => Some(id),
        _ => None,
    };
    let earlier = model.session.id.clone().or(first);
    let how = match earlier {
        Some(id) if model.transcript.is_empty() && model.agent.can(Ability::Load) => {
            Opening::Load(id)
        }
        Some(id) if model.agent.can(Ability::Resume) => Opening::Resume(id),
        Some(id) if model.agent.can(Ability::Load) => Opening::Load(id),
        earlier => {
            if earlier.is_some() {
                cannot_go_on(model);
            }
            Opening::New
        }
    };
    open(model, how, cmds);
}

/// The session is lost with the agent that had it: what is on the screen is not known to the new one.
fn cannot_go_on(model: &mut Model) {
    model.session = Session::default();
    let title = "this agent cannot go on with the session: a new one was started";
    let notice = Notice {
        severity: Severity::Warning,
        title: title.to_owned(),
        detail: String::new(),
        hint: Some("it knows nothing of what stands above".to_owned()),
        running: false,
    };
    if model.transcript.is_empty() {
        model.say(title);
    } else {
        model.transcript.notice(None, notice, model.now_ms);
    }
}

fn open(model: &mut Model, how: Opening, cmds: &mut Vec<Cmd>) {
    model.opened += 1;
    model.phase = Phase::Opening;
    if matches!(how, Opening::Load(_)) {
        model.path.clear();
        model.transcript = Transcript::held_in(&model.start.cwd);
        model.transcript.begin_replay();
        cmds.push(Cmd::Scroll(Scroll::Reset));
    }
    if let Opening::Load(id) | Opening::Resume(id) = &how {
        // Updates of the session may come before the answer; they belong to it.
        model.session.id = Some(id.clone());
    }
    cmds.push(Cmd::Agent(AgentCmd::Open { opening: model.opened, how }));
}

/// `/new`: another session in place of this one. The draft and the queue stay.
pub(super) fn open_new(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if !leave(model, cmds) {
        return;
    }
    model.path.clear();
    model.transcript = Transcript::held_in(&model.start.cwd);
    model.session = Session::default();
    cmds.push(Cmd::Scroll(Scroll::Reset));
    open(model, Opening::New, cmds);
}

/// Goes on with an old session.
pub(super) fn open_old(model: &mut Model, id: &str, cmds: &mut Vec<Cmd>) {
    if model.session.id.as_deref() == Some(id) && model.phase == Phase::Ready {
        model.say("that is this session");
        return;
    }
    if !leave(model, cmds) {
        return;
    }
    model.session = Session::default();
    let how = if model.agent.can(Ability::Load) {
        Opening::Load(id.to_owned())
    } else if model.agent.can(Ability::Resume) {
        Opening::Resume(id.to_owned())
    } else {
        model.say("this agent cannot go on with earlier sessions");
        Opening::New
    };
    open(model, how, cmds);
}

/// Whether the session can be left now.
fn leave(model: &mut Model, cmds: &mut Vec<Cmd>) -> bool {
    if !matches!(model.phase, Phase::Ready) {
        model.say("the agent is not ready yet");
        return false;
    }
    if model.turn != Turn::Idle {
        model.say("a turn is running: stop it first (Esc)");
        return false;
    }
    ask::cancel_all(model, cmds);
    true
}

fn opened(
    model: &mut Model,
    session_id: String,
    answer: &Value,
    how: &Opening,
    cmds: &mut Vec<Cmd>,
) {
    if model.session.id.as_deref() != Some(session_id.as_str()) {
        model.session.id = Some(session_id);
    }
    model.session.settings.read_answer(answer);
    if matches!(how, Opening::Load(_)) {
        model.transcript.end_replay(model.now_ms);
        cmds.push(Cmd::Scroll(Scroll::Tail));
    }
    model.phase = Phase::Ready;
    // What was typed before the agent was ready waited in the queue.
    turn::send_next(model, cmds);
}

fn open_failed(model: &mut Model, how: &Opening, failure: &Failure, cmds: &mut Vec<Cmd>) {
    if failure.code == -32000 {
        model.phase = Phase::NeedsLogin(failure.message.clone());
        if let Opening::Load(id) | Opening::Resume(id) = how {
            // It is what the login goes on with.
            model.session = Session::default();
            model.start.first = FirstSession::Named(id.clone());
        }
        return;
    }
    match how {
        Opening::New => {
            model.phase = Phase::Down(trouble("no session could be started", failure));
        }
        Opening::Load(id) | Opening::Resume(id) => {
            // Never silently: what was asked for is not what one gets.
            model.transcript.end_replay(model.now_ms);
            model.transcript.error(
                format!("session {id} could not be opened"),
                detail_of(failure),
                Some("a new session was started; /resume lists the others".to_owned()),
                model.now_ms,
            );
            model.session = Session::default();
            open(model, Opening::New, cmds);
        }
    }
}

fn detail_of(failure: &Failure) -> String {
    let mut lines = vec![failure.message.clone()];
    lines.extend(failure.detail.iter().rev().take(LAST_WORDS).rev().cloned());
    lines.join("\n")
}

/// Reads why the agent cannot be used; an engine that was not found says where it was looked for.
fn trouble(title: &str, failure: &Failure) -> Trouble {
    let list = |keys: [&str; 2]| -> Vec<String> {
        keys.iter()
            .find_map(|k| failure.data.get(k).and_then(Value::as_array))
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let looked_for = list(["lookedFor", "looked_for"]);
    let mut hints = list(["hints", "hint"]);
    let no_engine = !looked_for.is_empty();
    if no_engine {
        return Trouble {
            title: failure.message.lines().next().unwrap_or("no engine was found").to_owned(),
            lines: looked_for,
            hints,
            no_engine,
        };
    }
    let mut message = failure.message.lines();
    let first = message.next().unwrap_or_default();
    let mut lines: Vec<String> = message.map(str::to_owned).collect();
    lines.extend(failure.detail.iter().rev().take(LAST_WORDS).rev().cloned());
    if hints.is_empty() {
        hints.push("Enter on an empty draft starts the agent again".to_owned());
    }
    Trouble { title: format!("{title}: {first}"), lines, hints, no_engine }
}

/// `/demo`.
pub(super) fn start_demo(model: &mut Model, cmds: &mut Vec<Cmd>) {
    if !model.start.can_demo {
        model.say("no demo agent here");
        return;
    }
    if model.turn != Turn::Idle {
        model.say("a turn is running: stop it first (Esc)");
        return;
    }
    model.session = Session::default();
    model.phase = Phase::Starting;
    cmds.push(Cmd::StartDemo);
}

fn steered(model: &mut Model, text: String, result: &Result<String, Failure>, cmds: &mut Vec<Cmd>) {
    match result.as_ref().map(String::as_str) {
        Ok("injected") => {
            // It stands in the transcript where it was taken in: the client puts it there.
            model.say("taken in: the running turn was guided");
        }
        // The agent has it and will run it: queued here too, it would run twice.
        Ok("queued") => model.say("the agent queued it: it runs after this turn"),
        Ok("startedNewTurn") => model.say("the turn was over: it runs as a new one"),
        other => {
            // Not taken: it is an ordinary prompt then.
            let why = match other {
                Err(failure) => failure.message.clone(),
                Ok("promptRequired") => "the turn was over".to_owned(),
                Ok(_) => "the agent refused it".to_owned(),
            };
            model.say(format!("not taken as a guide ({why}): queued"));
            model.queue.push_front(text);
            turn::send_next(model, cmds);
        }
    }
}

/// Whose update it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Of the session that is shown (or being opened: updates may come before the answer).
    Shown,
    /// Of one of its child sessions.
    Child,
    /// Of a session that was left.
    Other,
}

fn owner(model: &Model, session_id: &str) -> Owner {
    match model.session.id.as_deref() {
        None => Owner::Shown,
        Some(own) if own == session_id => Owner::Shown,
        Some(_) if model.session.children.contains_key(session_id) => Owner::Child,
        Some(_) => Owner::Other,
    }
}

fn unknown(model: &mut Model, session_id: &str, update: &Value) {
    if owner(model, session_id) != Owner::Other {
        acp::apply_unknown(&mut model.transcript, update, model.now_ms);
    }
}

fn learned(model: &mut Model, fact: SessionFact) {
    if let SessionFact::Queue(told) = fact {
        return queue::told(model, told);
    }
    let session = &mut model.session;
    match fact {
        SessionFact::Commands(commands) => session.commands = commands,
        SessionFact::Options(options) => session.settings.set_options(&options),
        SessionFact::Mode(mode) => session.settings.set_mode(&mode),
        SessionFact::Title(title) => session.title = title,
        SessionFact::Usage(usage) => session.usage = Some(usage),
        SessionFact::Queue(_) => {}
        SessionFact::Child { session_id, title } => {
            session.children.insert(session_id, title);
        }
    }
}

fn turn_ended(
    model: &mut Model,
    session_id: &str,
    result: Result<Value, Failure>,
    cmds: &mut Vec<Cmd>,
) {
    if model.session.id.as_deref() != Some(session_id) {
        return;
    }
    let was = std::mem::take(&mut model.turn);
    let sent = model.in_flight.take();
    let cancelled = matches!(was, Turn::Cancelling { .. });
    // The agent closed its turn: what it asked and nobody answered needs no answer any more.
    let own: Vec<u64> =
        model.asks.iter().filter(|a| a.session_id == session_id).map(|a| a.id).collect();
    if !own.is_empty() {
        ask::cancel_all(model, cmds);
    }
    let now = model.now_ms;
    match result {
        Ok(answer) => {
            let tokens = answer.pointer("/usage/totalTokens").and_then(Value::as_u64);
            let reason = end_reason(answer.get("stopReason").and_then(Value::as_str), cancelled);
            model.transcript.end_turn(reason, tokens, now);
        }
        Err(failure) => turn_failed(model, &failure, sent, cmds),
    }
    if cancelled && !model.queue.is_empty() {
        model.queue.hold();
        model.say("stopped; queued prompts wait: Enter sends the next, ↑ edits the last");
    }
    if !model.focused {
        let elapsed = was.since_ms().map_or(0, |s| now.saturating_sub(s));
        if elapsed > 3_000 || model.queue.is_empty() {
            cmds.push(Cmd::Notify("the turn is over".to_owned()));
        }
    }
    turn::send_next(model, cmds);
}

fn turn_failed(model: &mut Model, failure: &Failure, sent: Option<String>, cmds: &mut Vec<Cmd>) {
    let now = model.now_ms;
    model.transcript.end_turn(Some("failed".to_owned()), None, now);
    model.transcript.error(
        "the turn failed",
        detail_of(failure),
        overlay::hint_for(failure.code)
            .or_else(|| Some("to send it again: ↑ brings the prompt back".to_owned())),
        now,
    );
    // A prompt that the agent refused goes back to where it can be sent again.
    match (sent, failure.code) {
        (Some(text), -32000) => model.queue.push_front(text),
        (Some(text), -32002) if model.composer.is_empty() => model.composer.set_text(&text),
        _ => {}
    }
    if failure.code == -32000 {
        model.phase = Phase::NeedsLogin(failure.message.clone());
    }
    model.queue.hold();
    cmds.push(Cmd::Scroll(Scroll::Tail));
}

/// What to say of a turn's end, when it is not the plain one.
fn end_reason(stop: Option<&str>, cancelled: bool) -> Option<String> {
    if cancelled {
        // It was asked for, so it is told so whatever the agent calls it.
        return Some("stopped".to_owned());
    }
    match stop {
        Some("end_turn") => None,
        Some("cancelled") => Some("cancelled by the agent".to_owned()),
        Some("max_tokens") => Some("stopped: the answer is at its length limit".to_owned()),
        Some("max_turn_requests") => Some("stopped: too many steps in one turn".to_owned()),
        Some("refusal") => Some("the model refused".to_owned()),
        Some(other) => Some(format!("ended: {other}")),
        None => Some("ended without a reason".to_owned()),
    }
}

fn gone(model: &mut Model, failure: &Failure, cmds: &mut Vec<Cmd>) {
    let now = model.now_ms;
    model.asks.clear();
    if let Some(Overlay::Picker(_)) = model.overlay {
        model.overlay = None;
    }
    let running = std::mem::take(&mut model.turn) != Turn::Idle;
    model.transcript.settle(now);
    if running {
        model.transcript.end_turn(Some("the agent ended".to_owned()), None, now);
    }
    model.in_flight = None;
    model.queue.hold();
    let title = if model.phase == Phase::Starting {
        "the agent could not be started"
    } else {
        "the agent ended"
    };
    let trouble = trouble(title, failure);
    if !model.transcript.is_empty() {
        let hint = trouble.hints.first().cloned();
        model.transcript.error(trouble.title.clone(), trouble.lines.join("\n"), hint, now);
        cmds.push(Cmd::Scroll(Scroll::Tail));
    }
    model.phase = Phase::Down(trouble);
}
