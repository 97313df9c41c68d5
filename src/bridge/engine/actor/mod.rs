//! The owner of one engine process: one task that alone reads its output, writes its input, keeps
//! the requests in flight and the routes, and notices its end. Started by [`super::Engine`],
//! spoken to through [`super::EngineHandle`].
//!
//! Writing never waits for reading: a full mailbox of a session stops the reading (nothing is
//! dropped), while commands are still taken and written. Everything queued goes out in one write.
//! Pieces of one text that one read brought become one event: the mailbox, the machine and the
//! translation then cost per read, not per piece.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::codec::{self, Frame};
use super::decode::{self, StreamingLine};
use super::error::{EngineError, RpcError};
use super::event::{EngineEvent, EngineExit, EngineRequest, SessionBody, SessionEvent, WireId};
use super::halves::{self, Joiner};
use super::handle::Command;
use super::interactions::{Announced, Interactions};
use super::lines::{Line, LineBuffer};
use super::policy::Policy;
use super::program::{Input, Output, Program};
use super::timeouts::Clocks;
use super::wire;
use crate::process::TERM_GRACE;
use crate::trace::{Direction, Trace, Wire};

/// Commands taken before what they wrote is sent.
const BURST: usize = 256;
/// How long output may still come after the process has ended (a descendant can hold the pipe).
const LAST_OUTPUT: Duration = Duration::from_millis(250);
/// How long the exit status and the last of standard error may take after the output ended.
const LAST_STATUS: Duration = Duration::from_millis(250);
/// Lines of standard error in an error.
const LAST_WORDS: usize = 12;
/// Text above which no more is gathered in one event, in bytes.
const MAX_GATHERED: usize = 16 * 1024;
/// Unsent input above which an engine counts as stuck and further requests fail.
const MAX_UNSENT: usize = 256 * 1024 * 1024;

type ReplySender = oneshot::Sender<Result<Box<RawValue>, EngineError>>;

/// What the actor begins with.
pub(super) struct Setup {
    pub(super) program: Program,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) exit: watch::Sender<Option<Arc<EngineExit>>>,
    pub(super) default_events: mpsc::Sender<EngineEvent>,
    pub(super) policy: Policy,
    pub(super) trace: Trace,
}

struct Pending {
    method: &'static str,
    reply: ReplySender,
    /// Kept for the requests that may be sent a second time.
    again: Option<String>,
}

/// Why the loop ended.
enum End {
    /// The engine went by itself.
    Gone(Option<ExitStatus>),
    /// We were asked to end it, or nobody holds a handle any more.
    Closed(Option<oneshot::Sender<()>>),
}

struct Actor {
    out: Outgoing,
    trace: Trace,
    pending: HashMap<u64, Pending>,
    clocks: Clocks,
    routes: HashMap<String, mpsc::Sender<EngineEvent>>,
    default_events: mpsc::Sender<EngineEvent>,
    /// Events whose mailbox is full, in order (two at most: what was gathered, and what came behind
    /// it); nothing is read while they wait.
    stuck: VecDeque<(mpsc::Sender<EngineEvent>, EngineEvent)>,
    /// A piece of text whose next pieces have come already: they join it. Never kept beyond the
    /// lines that are there, so nothing is late for it.
    gathered: Option<Box<SessionEvent>>,
    interactions: Interactions,
    policy: Policy,
    /// The engine refused the three keys: answer with the first alone.
    short_preferences: bool,
    /// The id of the last answer with three keys.
    last_preferences: Option<WireId>,
    next_retry_id: u64,
    halves: Joiner,
}

/// Runs until the engine has ended, one way or the other.
pub(super) async fn run(setup: Setup) {
    let Setup { mut program, mut commands, exit, default_events, policy, trace } = setup;
    let (stdin, Some(mut stdout)) = program.take_ends() else { return };
    let mut actor = Actor {
        out: Outgoing { stdin, bytes: Vec::new(), sent: 0, trace: trace.clone() },
        trace,
        pending: HashMap::new(),
        clocks: Clocks::default(),
        routes: HashMap::new(),
        default_events,
        stuck: VecDeque::new(),
        gathered: None,
        interactions: Interactions::default(),
        policy,
        short_preferences: false,
        last_preferences: None,
        next_retry_id: 1,
        halves: Joiner::default(),
    };
    let end = actor.serve(&mut program, &mut stdout, &mut commands).await;
    actor.out.stdin = None;
    drop(stdout);
    actor.finish(end, program, commands, exit).await;
}

impl Actor {
    async fn serve(
        &mut self,
        program: &mut Program,
        stdout: &mut Output,
        commands: &mut mpsc::Receiver<Command>,
    ) -> End {
        let mut lines = LineBuffer::default();
        let mut exited: Option<(Option<ExitStatus>, Instant)> = None;
        loop {
            self.take_lines(&mut lines);
            self.out.flush();
            let reading = self.stuck.is_empty();
            let give_up = exited.as_ref().filter(|_| reading).map(|(_, at)| *at + LAST_OUTPUT);
            let wake = give_up.into_iter().chain(self.clocks.next()).min();
            tokio::select! {
                biased;
                command = commands.recv() => {
                    let mut next = command;
                    for _ in 0..BURST {
                        match next {
                            None => return End::Closed(None),
                            Some(Command::Shutdown { done }) => return End::Closed(Some(done)),
                            Some(command) => self.command(command),
                        }
                        match commands.try_recv() {
                            Ok(command) => next = Some(command),
                            Err(mpsc::error::TryRecvError::Empty) => break,
                            Err(mpsc::error::TryRecvError::Disconnected) => next = None,
                        }
                    }
                }
                () = self.out.writable(), if self.out.waiting() => {}
                () = delivered(&self.stuck), if !reading => self.delivered(),
                read = async { stdout.read_buf(lines.space()).await }, if reading => {
                    if !matches!(read, Ok(1..)) {
                        if let Some(rest) = lines.last_line() {
                            self.line(&rest);
                            self.release();
                        }
                        return End::Gone(exited.and_then(|(status, _)| status));
                    }
                }
                status = program.wait(), if exited.is_none() => exited = Some((status.ok(), Instant::now())),
                () = sleep_until(wake), if wake.is_some() => {
                    if give_up.is_some_and(|at| at <= Instant::now()) {
                        return End::Gone(exited.and_then(|(status, _)| status));
                    }
                    self.expire();
                }
            }
        }
    }

    /// Handles the whole lines that have come, until one cannot be delivered.
    fn take_lines(&mut self, lines: &mut LineBuffer) {
        while self.stuck.is_empty() {
            match lines.next_line(codec::MAX_LINE) {
                None => break,
                Some(Line::Bytes(line)) => self.line(line),
                Some(Line::TooLong) => {
                    let reason =
                        format!("a line of more than {} MiB was skipped", codec::MAX_LINE >> 20);
                    self.release();
                    self.route(None, EngineEvent::Malformed { reason });
                }
            }
        }
        self.release();
    }

    /// Sends on what was gathered.
    fn release(&mut self) {
        if let Some(event) = self.gathered.take() {
            let session = event.session_id.clone();
            self.route(Some(&session), EngineEvent::Session(event));
        }
    }

    fn line(&mut self, line: &[u8]) {
        let line = super::lines::text(line);
        self.trace.record(Wire::Engine, Direction::In, &line);
        if let Some(line) = decode::streaming_line(&line) {
            return self.stream(line);
        }
        self.release();
        let line = halves::mend(&line);
        match codec::parse(&line) {
            Frame::Notification { method, params } => {
                let mut event = decode::notification(&method, params);
                self.halves.join(&mut event);
                self.notice(&event);
                let session = session_of(&event).map(str::to_owned);
                self.route(session.as_deref(), event);
            }
            Frame::Response { id, outcome } => self.response(&id, outcome),
            Frame::Request { id, method, params } => {
                let params =
                    params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                self.request(id, &method, params);
            }
            Frame::Malformed { reason } => {
                let reason = crate::redact::text(&reason).into_owned();
                tracing::warn!(%reason, "the engine wrote a line that is not a message");
                self.route(None, EngineEvent::Malformed { reason });
            }
        }
    }

    /// Takes a line of the stream in.
    fn stream(&mut self, line: StreamingLine<'_>) {
        // Half a character waits for what comes next, and is joined with it event by event.
        let joins = self.gathered.as_mut().filter(|_| self.halves.is_idle());
        if joins.is_some_and(|event| line.continues(event, MAX_GATHERED)) {
            return;
        }
        self.release();
        let mut event = EngineEvent::Session(Box::new(line.into_event()));
        self.halves.join(&mut event);
        if let EngineEvent::Session(event) = event {
            self.gathered = Some(event);
        }
    }

    /// What the engine side itself learns from an event.
    fn notice(&mut self, event: &EngineEvent) {
        match event {
            EngineEvent::Storage(_) => self.clocks.held_up(Instant::now()),
            EngineEvent::Session(event) => {
                if let SessionBody::Interaction(mirror) = &event.body
                    && mirror.resolved
                    && let Some(request_id) = &mirror.request_id
                {
                    self.interactions.resolved(request_id);
                }
            }
            _ => {}
        }
    }

    fn response(&mut self, id: &WireId, outcome: Result<&RawValue, RpcError>) {
        let known = id.as_u64().and_then(|id| Some((id, self.pending.remove(&id)?)));
        let Some((id, pending)) = known else {
            self.stray(id, outcome.err());
            return;
        };
        self.clocks.done(id, Instant::now());
        match outcome {
            Err(error) if self.preferences_refused(&error) && pending.again.is_some() => {
                self.send_again(pending);
            }
            outcome => {
                // Nobody waits any more: a reply that was dropped is no fault.
                pending.reply.send(outcome.map(RawValue::to_owned).map_err(EngineError::Rpc)).ok();
            }
        }
    }

    /// A response to nothing: late, or the engine's word that a line of ours was not accepted.
    fn stray(&mut self, id: &WireId, error: Option<RpcError>) {
        let Some(error) = error else {
            tracing::debug!(%id, "a late response was dropped");
            return;
        };
        tracing::warn!(%id, code = error.code, message = %crate::redact::text(&error.message), "the engine refused a message");
        // Our replies carry no id of ours: a refusal right after one is about it.
        let about_us = self.last_preferences.as_ref() == Some(id) || id == "invalid-message";
        if about_us
            && !self.short_preferences
            && let Some(id) = self.last_preferences.take()
        {
            self.short_preferences = true;
            self.out.push(&wire::reply(&id, &Ok(self.preferences())));
        }
    }

    fn request(&mut self, id: WireId, method: &str, params: Value) {
        match method {
            "session/requestRuntimePreferences" => {
                self.out.push(&wire::reply(&id, &Ok(self.preferences())));
                self.last_preferences = Some(id);
            }
            "interaction/requestProviderRuntimeHeaders" => {
                let answer = self.policy.provider_headers(&params);
                self.out.push(&wire::reply(&id, &Ok(answer)));
            }
            "interaction/requestPermission" | "interaction/requestUserInput" => {
                self.question(id, method, params);
            }
            // Official MCP identities too: we hold none, and this answer is safe on every version.
            _ => {
                tracing::debug!(method, "the engine asked for something that is not served");
                self.out.push(&wire::reply(&id, &Err(RpcError::unknown_method(method))));
            }
        }
    }

    fn question(&mut self, id: WireId, method: &str, params: Value) {
        let field = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
        let (session_id, request_id) = (field("sessionId"), field("requestId"));
        let announced = request_id.as_deref().map(|request_id| {
            self.interactions.announced(
                request_id,
                session_id.as_deref().unwrap_or_default(),
                &id,
                Instant::now(),
            )
        });
        match announced {
            Some(Announced::Again) => {}
            Some(Announced::Answered(answer)) => self.out.push(&wire::reply(&id, &answer)),
            None | Some(Announced::New) => {
                let request = EngineRequest {
                    id,
                    method: method.to_owned(),
                    session_id: session_id.clone(),
                    request_id,
                    params,
                };
                self.route(session_id.as_deref(), EngineEvent::Request(Box::new(request)));
            }
        }
    }

    fn preferences(&self) -> Value {
        if self.short_preferences {
            return json!({ "nativeSearchEnhancementsEnabled": false });
        }
        json!({
            "nativeSearchEnhancementsEnabled": false,
            "memoryEnabled": false,
            "askUserQuestionAutoResolutionEnabled": false,
        })
    }

    /// Whether a create or resume failed because of our three keys. Remembers it.
    fn preferences_refused(&mut self, error: &RpcError) -> bool {
        let text = error.message.to_lowercase();
        let refused = self.last_preferences.is_some()
            && !self.short_preferences
            && (text.contains("runtime preferences")
                || text.contains("runtimepreferences")
                || text.contains("memoryenabled")
                || text.contains("autoresolutionenabled"));
        self.short_preferences |= refused;
        refused
    }

    fn send_again(&mut self, pending: Pending) {
        let Some(line) = pending.again else { return };
        // The ids below ours are free; the line begins with `{"id":<number>,`.
        let id = self.next_retry_id;
        self.next_retry_id += 1;
        let rest = line.split_once(',').map_or("}", |(_, rest)| rest);
        self.out.push(&format!("{{\"id\":{id},{rest}"));
        self.clocks.sent(id, pending.method, Instant::now());
        self.pending.insert(id, Pending { again: None, ..pending });
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Request { id, method, line, reply } => {
                if self.out.is_stuck() {
                    reply.send(Err(EngineError::Closed)).ok();
                    return;
                }
                self.out.push(&line);
                self.clocks.sent(id, method, Instant::now());
                let again = matches!(method, "session/create" | "session/resume").then_some(line);
                self.pending.insert(id, Pending { method, reply, again });
            }
            Command::Send(line) => self.out.push(&line),
            Command::Respond { id, outcome } => {
                for id in self.interactions.answered(&id, &outcome, Instant::now()) {
                    self.out.push(&wire::reply(&id, &outcome));
                }
            }
            Command::Attach { session_id, events } => {
                self.interactions.forget_session(&session_id);
                self.routes.insert(session_id, events);
            }
            Command::Detach { session_id } => {
                self.interactions.forget_session(&session_id);
                self.routes.remove(&session_id);
            }
            Command::Plans(live) => self.policy.live = live,
            Command::Shutdown { done } => drop(done),
        }
    }

    /// Delivers an event, or leaves it in `stuck` when its mailbox is full.
    fn route(&mut self, session: Option<&str>, event: EngineEvent) {
        let target = session.and_then(|id| self.routes.get(id)).unwrap_or(&self.default_events);
        if !self.stuck.is_empty() {
            return self.stuck.push_back((target.clone(), event));
        }
        match target.try_send(event) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(event)) => {
                self.stuck.push_back((target.clone(), event));
            }
            Err(mpsc::error::TrySendError::Closed(event)) => self.orphan(session, event),
        }
    }

    /// The session that owned the mailbox is gone: the default owner takes over.
    fn orphan(&mut self, session: Option<&str>, event: EngineEvent) {
        if let Some(id) = session
            && self.routes.remove(id).is_some()
        {
            self.interactions.forget_session(id);
            self.route(None, event);
        } else if let EngineEvent::Request(request) = event {
            // Nobody is left to ask: never an approval.
            let error = RpcError::new(-32020, "No client is attached");
            self.out.push(&wire::reply(&request.id, &Err(error)));
        }
    }

    /// The mailbox of the first stuck event has room (or is closed).
    fn delivered(&mut self) {
        for (target, event) in std::mem::take(&mut self.stuck) {
            if !self.stuck.is_empty() {
                self.stuck.push_back((target, event));
                continue;
            }
            match target.try_send(event) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(event)) => {
                    self.stuck.push_back((target, event));
                }
                Err(mpsc::error::TrySendError::Closed(event)) => {
                    let session = session_of(&event).map(str::to_owned);
                    self.orphan(session.as_deref(), event);
                }
            }
        }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        for id in self.clocks.expired(now) {
            self.clocks.done(id, now);
            if let Some(Pending { method, reply, .. }) = self.pending.remove(&id) {
                tracing::warn!(method, id, "the engine did not answer in time");
                reply
                    .send(Err(EngineError::Timeout {
                        method,
                        after: super::timeouts::limit(method),
                    }))
                    .ok();
            }
        }
    }

    /// Tells everybody, and makes sure that nothing of the engine is left.
    async fn finish(
        mut self,
        end: End,
        mut program: Program,
        mut commands: mpsc::Receiver<Command>,
        exit: watch::Sender<Option<Arc<EngineExit>>>,
    ) {
        let (known, mut done, closed) = match end {
            End::Gone(status) => (status, None, false),
            End::Closed(done) => (None, done, true),
        };
        let status = match known {
            None if !closed => {
                tokio::time::timeout(LAST_STATUS, program.wait()).await.ok().and_then(Result::ok)
            }
            known => known,
        };
        let patience = if closed { Duration::ZERO } else { LAST_STATUS };
        let words = program.last_words(LAST_WORDS, patience).await;
        let exit_value = EngineExit {
            status: match status {
                Some(status) => status.to_string(),
                None if closed => "shut down".to_owned(),
                None => "it closed its output".to_owned(),
            },
            stderr_tail: words.iter().map(|line| crate::redact::text(line).into_owned()).collect(),
        };
        tracing::info!(status = %exit_value.status, "the engine ended");
        let error = if closed {
            EngineError::Closed
        } else {
            EngineError::Exited(Box::new(exit_value.clone()))
        };
        if !closed {
            exit.send_replace(Some(Arc::new(exit_value.clone())));
        }
        for (_, pending) in self.pending.drain() {
            pending.reply.send(Err(error.clone())).ok();
        }
        commands.close();
        while let Some(command) = commands.recv().await {
            match command {
                Command::Request { reply, .. } => drop(reply.send(Err(error.clone()))),
                Command::Shutdown { done: another } => done = Some(done.take().unwrap_or(another)),
                _ => {}
            }
        }
        let tell = self.tell_everybody(&exit_value);
        let end = program.terminate(TERM_GRACE);
        let ((), ()) = tokio::join!(end, async {
            // A session that never drains must not keep the rest from ending.
            tokio::time::timeout(TERM_GRACE, tell).await.ok();
        });
        if let Some(done) = done {
            done.send(()).ok();
        }
    }

    /// Delivers what was stuck, then `Exited`, once to each mailbox.
    async fn tell_everybody(mut self, exit: &EngineExit) {
        for (target, event) in std::mem::take(&mut self.stuck) {
            target.send(event).await.ok();
        }
        let mut told: Vec<mpsc::Sender<EngineEvent>> = Vec::new();
        for events in self.routes.into_values().chain([self.default_events]) {
            if !told.iter().any(|other| other.same_channel(&events)) {
                told.push(events);
            }
        }
        let send =
            told.iter().map(|events| events.send(EngineEvent::Exited(Box::new(exit.clone()))));
        futures::future::join_all(send).await;
    }
}

/// The session that an event belongs to, or its topic when that is not a conversation.
fn session_of(event: &EngineEvent) -> Option<&str> {
    match event {
        EngineEvent::Session(event) => Some(&event.session_id),
        EngineEvent::State(state) => state.session_id.as_deref(),
        EngineEvent::Frame { topic, .. } => {
            Some(topic.strip_prefix("conversation/").unwrap_or(topic))
        }
        EngineEvent::Request(request) => request.session_id.as_deref(),
        _ => None,
    }
}

/// Resolves when the first stuck event's mailbox has room or is closed. Cancel safe.
async fn delivered(stuck: &VecDeque<(mpsc::Sender<EngineEvent>, EngineEvent)>) {
    if let Some((target, _)) = stuck.front() {
        // The permit is given back at once; this task is the one that uses it next.
        target.reserve().await.map(drop).ok();
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

/// The engine's input: lines queued and not yet written.
struct Outgoing {
    stdin: Option<Input>,
    bytes: Vec<u8>,
    sent: usize,
    trace: Trace,
}

impl Outgoing {
    fn push(&mut self, line: &str) {
        if self.stdin.is_some() {
            self.trace.record(Wire::Engine, Direction::Out, line);
            self.bytes.extend_from_slice(line.as_bytes());
            self.bytes.push(b'\n');
        }
    }

    /// Whether something waits for the engine to read.
    fn waiting(&self) -> bool {
        self.stdin.is_some() && self.sent < self.bytes.len()
    }

    fn is_stuck(&self) -> bool {
        self.stdin.is_none() || self.bytes.len() - self.sent > MAX_UNSENT
    }

    /// Writes as much as the pipe takes. An engine that closed its input is dying: the reading
    /// side notices, and what could not be written fails with it.
    fn flush(&mut self) {
        while let Some(stdin) = &self.stdin
            && let Some(rest) = self.bytes.get(self.sent..).filter(|rest| !rest.is_empty())
        {
            match stdin.try_write(rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::debug!(%error, "the engine closed its input");
                    self.stdin = None;
                }
            }
        }
        if self.stdin.is_none() || self.sent == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(1 << 20);
            self.sent = 0;
        }
    }

    async fn writable(&self) {
        match &self.stdin {
            Some(stdin) => stdin.writable().await.unwrap_or_default(),
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
