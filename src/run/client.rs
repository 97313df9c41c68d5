//! The ACP client of a run: one session, one prompt, then the end. Knows rules, limits and
//! signals; writes through [`Reporter`]. Generic over the agent, like the terminal.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use agent_client_protocol::v1::{ConnectionTo, Dispatch, Responder};
use agent_client_protocol::{
    Agent, Client, Error as AcpError, Handled, UntypedMessage, on_receive_dispatch,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::output::Reporter;
use super::rules::{Action, Decision, Rules};
use super::turn::Turn;
use crate::agents::{StartedAgent, TakenBy};
use crate::error::{AppError, ErrorKind};

/// Messages of the agent that may wait; the connection holds back above this.
const INBOX: usize = 256;
/// How long a cancelled turn may take to end before the run ends without it.
const CANCEL_GRACE: Duration = Duration::from_secs(10);
/// Pages of a session list that are read to find the newest.
const MAX_PAGES: usize = 50;

/// What to do.
#[derive(Debug)]
pub(super) struct Plan {
    /// The prompt.
    pub prompt: String,
    /// The session's working directory, absolute.
    pub cwd: PathBuf,
    /// Which session.
    pub session: Which,
    /// Model to set.
    pub model: Option<String>,
    /// Mode to set.
    pub mode: Option<String>,
    /// What may run.
    pub rules: Rules,
    /// Model requests after which the turn is cancelled.
    pub max_turns: Option<u64>,
    /// Time after which the turn is cancelled.
    pub timeout: Option<Duration>,
}

/// Which session the prompt goes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// A new one.
    New,
    /// This one.
    Id(String),
    /// The newest of the working directory.
    Newest,
}

/// How it went.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// The session's id.
    pub session: String,
    /// ACP's stop reason, if the prompt was answered.
    pub stop_reason: Option<String>,
    /// Why it was not.
    pub error: Option<AppError>,
    /// Why nothing came of it although it ended, as the agent tells it.
    pub failure: Option<String>,
    /// Usage as the agent tells it.
    pub usage: Value,
    /// Everything gathered from the updates.
    pub turn: Turn,
    /// Why the run must not end with 0, if so.
    pub ended_by: Option<EndedBy>,
}

/// Who ended the turn early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// The user or a signal.
    Interrupt,
    /// `--timeout`.
    Timeout,
    /// `--max-turns`.
    MaxTurns,
    /// Nobody reads standard output any more.
    OutputClosed,
}

enum Incoming {
    Notification(UntypedMessage),
    Request(Box<(UntypedMessage, Responder<Value>)>),
}

/// Runs the plan against an agent. `interrupts` yields when the user wants out.
pub(super) async fn drive(
    agent: StartedAgent,
    plan: Plan,
    reporter: &mut Reporter<'_>,
    interrupts: mpsc::Receiver<()>,
) -> Report {
    let (sender, inbox) = mpsc::channel(INBOX);
    let StartedAgent { agent, taken } = agent;
    let mut outcome = None;
    let connected = Client
        .v1()
        .name("zcode-acp run")
        .on_receive_dispatch(
            async move |message: Dispatch<UntypedMessage, UntypedMessage>, _cx| {
                let incoming = match message {
                    Dispatch::Notification(notification) => Incoming::Notification(notification),
                    Dispatch::Request(request, responder) => {
                        Incoming::Request(Box::new((request, responder)))
                    }
                    message @ Dispatch::Response(..) => {
                        return Ok(Handled::No { message, retry: false });
                    }
                };
                // Nobody listens any more only when the run is over; a dropped responder answers.
                sender.send(incoming).await.ok();
                Ok(Handled::Yes)
            },
            on_receive_dispatch!(),
        )
        .connect_with(agent, async |connection: ConnectionTo<Agent>| {
            let now = Instant::now();
            let mut run = Run {
                connection,
                inbox,
                interrupts,
                reporter,
                turn: Turn::default(),
                session: String::new(),
                recording: false,
                deadline: plan.timeout.map(|timeout| now + timeout),
                plan,
                ended_by: None,
                prompted: false,
                taken,
            };
            let answer = run.whole().await;
            outcome = Some(run.report(answer));
            Ok(())
        })
        .await;
    match (outcome, connected) {
        (Some(report), _) => report,
        (None, Err(err)) => Report { error: Some(failure(&err)), ..Report::default() },
        (None, Ok(())) => Report {
            error: Some(AppError::failed("the agent closed the connection")),
            ..Report::default()
        },
    }
}

struct Run<'a, 'b> {
    connection: ConnectionTo<Agent>,
    inbox: mpsc::Receiver<Incoming>,
    interrupts: mpsc::Receiver<()>,
    reporter: &'a mut Reporter<'b>,
    plan: Plan,
    turn: Turn,
    session: String,
    /// Whether updates are of our turn; a loaded session replays its past before.
    recording: bool,
    deadline: Option<Instant>,
    ended_by: Option<EndedBy>,
    prompted: bool,
    /// Whom to tell what was written, so that a fast agent does not run ahead.
    taken: TakenBy,
}

impl Run<'_, '_> {
    /// Everything from `initialize` on; returns the answer to the prompt.
    async fn whole(&mut self) -> Result<Value, AppError> {
        let hello = json!({
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
            "clientInfo": {"name": "zcode-acp run", "version": env!("CARGO_PKG_VERSION")},
        });
        let hello = self.request("initialize", hello).await?;
        let opened = self.open(&hello).await?;
        self.choose(&opened).await?;
        self.recording = true;
        let prompt = json!({
            "sessionId": self.session,
            "prompt": [{"type": "text", "text": self.plan.prompt}],
        });
        self.prompted = true;
        let answer = self.request("session/prompt", prompt).await;
        // What was sent before the answer has been received before it; none of it is lost.
        while let Ok(incoming) = self.inbox.try_recv() {
            self.take(incoming);
        }
        match (answer, self.ended_by) {
            // An agent that dies of a cancel has been cancelled.
            (Err(_), Some(_)) => Ok(json!({"stopReason": "cancelled"})),
            (answer, _) => answer,
        }
    }

    /// What there is to report, whatever became of the prompt.
    fn report(self, answer: Result<Value, AppError>) -> Report {
        let (answer, error) = match answer {
            Ok(answer) => (answer, None),
            Err(error) => (Value::Null, Some(error)),
        };
        let text =
            |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Report {
            session: self.session,
            stop_reason: text("/stopReason"),
            failure: text("/_meta/zcode/failure/message"),
            usage: answer.get("usage").cloned().unwrap_or(Value::Null),
            error,
            turn: self.turn,
            ended_by: self.ended_by,
        }
    }

    /// Opens the session; returns the agent's answer.
    async fn open(&mut self, hello: &Value) -> Result<Value, AppError> {
        let can = |pointer: &str| {
            hello.pointer(pointer).is_some_and(|value| !value.is_null() && value != &json!(false))
        };
        let id = match &self.plan.session {
            Which::New => None,
            Which::Id(id) => Some(id.clone()),
            Which::Newest => Some(self.newest().await?),
        };
        let mut params = json!({"cwd": self.plan.cwd, "mcpServers": []});
        let Some(id) = id else {
            let answer = self.request("session/new", params).await?;
            let id = answer.get("sessionId").and_then(Value::as_str);
            let id = id.ok_or_else(|| AppError::failed("the agent opened no session"))?;
            id.clone_into(&mut self.session);
            return Ok(answer);
        };
        let method = if can("/agentCapabilities/sessionCapabilities/resume") {
            "session/resume"
        } else if can("/agentCapabilities/loadSession") {
            "session/load"
        } else {
            return Err(AppError::failed("this agent cannot go on with a session"));
        };
        if let Some(params) = params.as_object_mut() {
            drop(params.insert("sessionId".to_owned(), json!(id)));
        }
        self.session = id;
        self.request(method, params).await
    }

    async fn newest(&mut self) -> Result<String, AppError> {
        let mut newest: Option<(String, String)> = None;
        let mut cursor = Value::Null;
        for _ in 0..MAX_PAGES {
            let mut params = json!({"cwd": self.plan.cwd});
            if let (Some(params), false) = (params.as_object_mut(), cursor.is_null()) {
                drop(params.insert("cursor".to_owned(), cursor));
            }
            let page = self.request("session/list", params).await?;
            for session in page.get("sessions").and_then(Value::as_array).into_iter().flatten() {
                let text = |key: &str| session.get(key).and_then(Value::as_str).unwrap_or_default();
                let here = same_directory(text("cwd"), &self.plan.cwd);
                let found = (text("updatedAt").to_owned(), text("sessionId").to_owned());
                // Lists come newest first; among equals the first one stays.
                if here && newest.as_ref().is_none_or(|newest| found.0 > newest.0) {
                    newest = Some(found);
                }
            }
            cursor = page.get("nextCursor").cloned().unwrap_or(Value::Null);
            if cursor.is_null() {
                break;
            }
        }
        newest.map(|(_, id)| id).ok_or_else(|| {
            AppError::failed(format!("no session to continue in {}", self.plan.cwd.display()))
                .hint("leave --continue away to begin one")
        })
    }

    /// Sets mode and model where they are asked for and not set already.
    async fn choose(&mut self, opened: &Value) -> Result<(), AppError> {
        for (category, wanted) in
            [("mode", self.plan.mode.clone()), ("model", self.plan.model.clone())]
        {
            let Some(wanted) = wanted else { continue };
            let options = opened.get("configOptions").and_then(Value::as_array);
            let option = options.into_iter().flatten().find(|option| {
                let is = |key: &str| option.get(key).and_then(Value::as_str) == Some(category);
                is("category") || is("id")
            });
            if let Some(option) = option {
                self.set_option(category, option, &wanted).await?;
            } else if let ("mode", Some(modes)) =
                (category, opened.pointer("/modes/availableModes").and_then(Value::as_array))
            {
                let text = |mode: &Value, key: &str| {
                    mode.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                let values: Vec<(String, String)> =
                    modes.iter().map(|mode| (text(mode, "id"), text(mode, "name"))).collect();
                let mode =
                    pick(&values, &wanted).ok_or_else(|| unknown(category, &wanted, &values))?;
                let params = json!({"sessionId": self.session, "modeId": mode});
                let _answer = self.request("session/set_mode", params).await?;
            } else {
                return Err(AppError::usage(format!("this agent lets nobody choose a {category}")));
            }
        }
        Ok(())
    }

    async fn set_option(
        &mut self,
        category: &str,
        option: &Value,
        wanted: &str,
    ) -> Result<(), AppError> {
        let values = values_of(option);
        let found = pick(&values, wanted);
        if found.is_some() && option.get("currentValue").and_then(Value::as_str) == found.as_deref()
        {
            return Ok(());
        }
        // Before the agent has done anything it may not know all its models: it is asked.
        if found.is_none() && category != "model" {
            return Err(unknown(category, wanted, &values));
        }
        let value = found.as_deref().unwrap_or(wanted);
        let params =
            json!({"sessionId": self.session, "configId": option.get("id"), "value": value});
        match self.request("session/set_config_option", params).await {
            Err(err) if found.is_none() && err.kind == ErrorKind::Failed => {
                Err(unknown(category, wanted, &values).caused_by(err))
            }
            answer => answer.map(drop),
        }
    }

    /// Sends a request and attends to everything else until it is answered.
    async fn request(&mut self, method: &str, params: Value) -> Result<Value, AppError> {
        let message = UntypedMessage::new(method, params).map_err(|err| failure(&err))?;
        let mut answer = pin!(self.connection.send_request(message).block_task());
        let mut grace: Option<Instant> = None;
        loop {
            let limit = grace.or(self.deadline);
            tokio::select! {
                biased;
                Some(()) = self.interrupts.recv() => {
                    if !self.end(EndedBy::Interrupt) {
                        return Err(AppError::new(ErrorKind::Interrupted, "interrupted"));
                    }
                    grace = Some(Instant::now() + CANCEL_GRACE);
                }
                Some(incoming) = self.inbox.recv() => {
                    self.take(incoming);
                    if self.ended_by.is_some() && grace.is_none() {
                        grace = Some(Instant::now() + CANCEL_GRACE);
                    }
                }
                answered = answer.as_mut() => return answered.map_err(|err| failure(&err)),
                () = until(limit) => {
                    if grace.is_some() || !self.end(EndedBy::Timeout) {
                        return Err(match self.ended_by {
                            Some(EndedBy::Timeout) | None => {
                                AppError::new(ErrorKind::Timeout, format!("{method} took too long"))
                            }
                            Some(_) => AppError::new(ErrorKind::Interrupted, "the agent did not stop"),
                        });
                    }
                    grace = Some(Instant::now() + CANCEL_GRACE);
                }
            }
        }
    }

    /// Cancels the turn, the first time and once there is one. Returns whether it did.
    fn end(&mut self, by: EndedBy) -> bool {
        if self.ended_by.is_some() || !self.prompted {
            // Before the turn there is nothing to cancel: the run just ends.
            self.ended_by = self.ended_by.or(Some(by));
            return false;
        }
        self.ended_by = Some(by);
        let cancel = UntypedMessage::new("session/cancel", json!({"sessionId": self.session}));
        cancel.and_then(|cancel| self.connection.send_notification(cancel)).is_ok()
    }

    fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Notification(message) => {
                let (method, params) = message.into_parts();
                let ours = params.get("sessionId").and_then(Value::as_str) == Some(&self.session);
                if method == "session/update" && self.recording && ours {
                    self.update(&params);
                }
                self.taken.tell(1);
            }
            Incoming::Request(request) => {
                let (request, responder) = *request;
                let answered = match request.method() {
                    "session/request_permission" => {
                        responder.respond(self.permission(request.params()))
                    }
                    "elicitation/create" => responder.respond(json!({"action": "decline"})),
                    _ => responder.respond_with_error(AcpError::method_not_found()),
                };
                if let Err(err) = answered {
                    tracing::debug!(%err, "the agent no longer waits for an answer");
                }
            }
        }
    }

    fn update(&mut self, params: &Value) {
        let Some(update) = params.get("update") else { return };
        let news = self.turn.take(update);
        if self.reporter.update(params, &news).is_err() {
            let _ended = self.end(EndedBy::OutputClosed);
        }
        let too_many = self.plan.max_turns.is_some_and(|most| self.turn.rounds() > most);
        if too_many && self.ended_by.is_none() {
            let _ended = self.end(EndedBy::MaxTurns);
        }
    }

    /// Answers a permission request by the rules, at once. "Always" is never chosen: a rule is for
    /// this run.
    fn permission(&mut self, params: &Value) -> Value {
        let cancelled = json!({"outcome": {"outcome": "cancelled"}});
        if self.ended_by.is_some() {
            return cancelled;
        }
        let empty = json!({});
        let tool = self.turn.tool_with(params.get("toolCall").unwrap_or(&empty));
        let options = params.get("options").and_then(Value::as_array);
        let is_once = |option: &&Value| option.get("kind").is_some_and(|kind| kind == "allow_once");
        let mut action = Action::of(&tool);
        // Several ways to say yes are a choice, and which one is meant no rule says.
        action.is_question |= options.into_iter().flatten().filter(is_once).count() > 1;
        action.resolve(&self.plan.cwd);
        let decision = self.plan.rules.decide(&action);
        let kind = if decision == Decision::Allow { "allow_once" } else { "reject_once" };
        let option = options
            .into_iter()
            .flatten()
            .find(|option| option.get("kind").and_then(Value::as_str) == Some(kind))
            .and_then(|option| option.get("optionId"));
        if decision != Decision::Allow || option.is_none() {
            self.turn.denied.push(action.title.clone());
            self.reporter.denied(&action, decision);
        }
        match option {
            Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
            None => cancelled,
        }
    }
}

/// Whether a session's directory is this one, by whatever name.
fn same_directory(cwd: &str, here: &std::path::Path) -> bool {
    let cwd = std::path::Path::new(cwd);
    cwd == here || std::fs::canonicalize(cwd).is_ok_and(|cwd| cwd == here)
}

async fn until(limit: Option<Instant>) {
    match limit {
        Some(limit) => tokio::time::sleep_until(limit).await,
        None => std::future::pending().await,
    }
}

/// The values of a select option, groups flattened: value and name.
fn values_of(option: &Value) -> Vec<(String, String)> {
    let mut values = Vec::new();
    let entries = option.get("options").and_then(Value::as_array).into_iter().flatten();
    for entry in entries {
        let inner = entry.get("options").and_then(Value::as_array);
        let entries: Vec<&Value> =
            inner.map_or_else(|| vec![entry], |inner| inner.iter().collect());
        for entry in entries {
            let text =
                |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            values.push((text("value"), text("name")));
        }
    }
    values
}

/// Finds a value by itself, by its name, or by what stands after its last slash, if only one fits.
fn pick(values: &[(String, String)], wanted: &str) -> Option<String> {
    let same = |a: &str| a.eq_ignore_ascii_case(wanted);
    let exact = values.iter().find(|(value, _)| value == wanted);
    if let Some((value, _)) = exact {
        return Some(value.clone());
    }
    let fits = |(value, name): &&(String, String)| {
        same(value) || same(name) || value.rsplit_once('/').is_some_and(|(_, last)| same(last))
    };
    let mut found = values.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some((value, _)), None) => Some(value.clone()),
        _ => None,
    }
}

fn unknown(category: &str, wanted: &str, values: &[(String, String)]) -> AppError {
    let known: Vec<&str> = values.iter().map(|(value, _)| value.as_str()).collect();
    AppError::usage(format!("there is no {category} {wanted:?}"))
        .hint(format!("choose one of: {}", known.join(", ")))
}

/// An agent's error as a failure of ours.
fn failure(err: &AcpError) -> AppError {
    let err = serde_json::to_value(err).unwrap_or_default();
    let message = err.get("message").and_then(Value::as_str).unwrap_or("the agent failed");
    let details = err
        .pointer("/data/details")
        .or_else(|| err.get("data"))
        .and_then(Value::as_str)
        .filter(|details| *details != message);
    let kind = match (err.get("code").and_then(Value::as_i64), err.pointer("/data/kind")) {
        (Some(-32000), _) => ErrorKind::SignInNeeded,
        (_, Some(kind)) if kind == "engine_not_found" || kind == "engine_not_started" => {
            ErrorKind::NoEngine
        }
        _ => ErrorKind::Failed,
    };
    let text =
        details.map_or_else(|| message.to_owned(), |details| format!("{message}: {details}"));
    let error = AppError::new(kind, text);
    match kind {
        ErrorKind::NoEngine => error.hint("find out more with: zcode-acp doctor"),
        _ => error,
    }
}
