//! PURE. The session machine: what one ACP session does, as a function from inputs to effects.
//!
//! It owns every decision about a session (which turn an event belongs to, when a prompt ends, what
//! is retried, what is asked of whom) and no I/O, clock or runtime: time comes in with each input,
//! work goes out as [`Effect`]s that the actor carries out in order. Nothing waits inside: a reply
//! of the engine's, an answer of the client's and a deadline are inputs like any other, matched by
//! [`Token`]. One file per concern; each adds methods to [`Machine`].

mod background;
mod children;
mod commands;
mod compact;
mod continuation;
mod extensions;
mod foreign_watch;
mod goal;
mod history;
mod interactions;
mod link;
mod opening;
mod pick;
mod queue;
mod recovery;
mod revoked;
mod settings;
mod signals;
mod steer;
mod steer_queue;
mod stop;
mod stream;
mod turn;
mod turn_rows;
mod usage;
mod v4;
mod workflows;
mod workspace;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use agent_client_protocol::Error as AcpError;
use agent_client_protocol::v1::schema as acp;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::{EngineEvent, WireId};
use crate::bridge::engine::v4::steer::Limits;
use crate::bridge::session::listing::Listed;
use crate::bridge::translate::prompt::SendInput;
use crate::bridge::translate::{ClientTraits, Output, Target, Translator, Want, config_options};

pub(crate) use self::continuation::Cont;
pub(crate) use self::link::Link;
pub(crate) use self::settings::Settings;
pub(crate) use self::steer::advert as steering_advert;
pub(crate) use self::turn::Turn;

/// Names one outstanding call, question or timer of a machine. Never used twice.
pub(crate) type Token = u64;

/// Names one request of the client's whose responder the actor keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ReqId(pub(crate) u64);

/// The time of an input.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Now {
    /// Milliseconds on a clock that never goes back.
    pub(crate) ms: u64,
    /// Milliseconds since 1970, for what is written into messages.
    pub(crate) unix_ms: u64,
}

/// What a session is made from.
#[derive(Debug, Clone)]
pub(crate) struct Seed {
    /// The id the client knows.
    pub(crate) acp_id: String,
    /// Random text, unique to this machine: ids that go to the engine are made from it.
    pub(crate) nonce: String,
    /// The working directory the client named.
    pub(crate) cwd: PathBuf,
    /// The engine's session, when there is one already.
    pub(crate) engine_sid: Option<String>,
    /// The workspace object that `session/list` reports for it.
    pub(crate) workspace: Option<Value>,
    /// MCP servers in the engine's shape.
    pub(crate) mcp: Vec<Value>,
    /// What the client can show.
    pub(crate) traits: ClientTraits,
    /// Settings before the engine has said anything.
    pub(crate) settings: Settings,
    /// What the client should know about its request, told after the answer.
    pub(crate) remark: Option<String>,
    /// How long a question may stay open.
    pub(crate) ask_timeout: Option<Duration>,
    /// How long a guide waits for the session's row.
    pub(crate) steer_limits: Limits,
    /// Compact by itself above this many tokens.
    pub(crate) compact_above: Option<u64>,
    /// Say at the end of each turn what it took.
    pub(crate) completion_status: bool,
    /// Permissions are asked for outside of the client first.
    pub(crate) external_approvals: bool,
    /// Made for an empty thread that goes on with this session (`/resume`).
    pub(crate) adopts: bool,
}

/// What a client asks of a session.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    /// `session/new`: answered at once.
    New,
    /// `session/load` (with the history) or `session/resume` (without).
    Open {
        /// Replay the history before the answer.
        replay: bool,
        /// Servers to use from now on; an empty list changes nothing.
        mcp: Vec<Value>,
        /// What was wrong with some of them.
        remark: Option<String>,
        /// Only the last messages (`_meta.zcode.limit`).
        limit: Option<usize>,
    },
    /// The answer to `session/fork`, given by the new session.
    Forked,
    /// The second half of `/resume`: this session is gone on with under the id that asks.
    Adopted {
        /// As the engine lists it.
        title: Option<String>,
    },
    /// `session/prompt`
    Prompt(Vec<acp::ContentBlock>),
    /// A prompt that waited in a thread whose id went to this session.
    Queued(SendInput),
    /// `session/set_mode`
    SetMode(String),
    /// `session/set_config_option`
    SetOption {
        /// Which option.
        id: String,
        /// The value asked for.
        value: acp::SessionConfigOptionValue,
    },
    /// `session/fork`
    Fork {
        /// Servers of the fork; none means its parent's.
        mcp: Vec<Value>,
        /// What was wrong with some of them.
        remark: Option<String>,
    },
    /// `session/close`
    Close,
    /// An extension method, by its name without any prefix.
    Extension {
        /// For example `cancelBackgroundTask`.
        name: &'static str,
        /// As sent.
        params: Value,
    },
}

/// The client's answer to a question.
#[derive(Debug, Clone)]
pub(crate) enum ClientAnswer {
    /// To `session/request_permission`.
    Permission(acp::RequestPermissionResponse),
    /// To `elicitation/create`.
    Form(acp::CreateElicitationResponse),
}

/// An engine that is ready, as far as a machine needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineUp {
    /// New for every engine process.
    pub(crate) generation: u64,
    /// Whether it has the V4 channel.
    pub(crate) v4: V4Word,
}

/// What is known of an engine process: whether it has the V4 channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum V4Word {
    /// Nothing: this session finds out ([`Effect::TellV4`]).
    FindOut,
    /// Another session is finding out; comes as [`Input::V4Known`].
    Awaited,
    /// It has it, or has not.
    Known(bool),
}

/// What happens to a session.
#[derive(Debug)]
pub(crate) enum Input {
    /// The client asks.
    Request(ReqId, Request),
    /// `session/cancel`
    Cancel,
    /// `$/cancel_request` for one request.
    CancelRequest(ReqId),
    /// The engine says something.
    Engine(EngineEvent),
    /// The engine's answer to [`Effect::Call`].
    Reply(Token, Result<Box<RawValue>, EngineError>),
    /// The outcome of [`Effect::EnsureEngine`].
    EngineReady(Token, Result<EngineUp, EngineError>),
    /// The client's answer to a question.
    Answer(Token, Result<ClientAnswer, AcpError>),
    /// A verdict from outside; `None` leaves it to the client's dialog.
    External(Token, Option<crate::approvals::Verdict>),
    /// What [`Effect::FindSessions`] found, newest first.
    SessionsFound(Token, Result<Vec<Listed>, AcpError>),
    /// What [`Effect::ReadQuota`] found.
    Quota(ReqId, String),
    /// A deadline is over.
    Timer(Token),
    /// Another session found out whether that engine has the V4 channel.
    V4Known {
        /// Which engine.
        generation: u64,
        /// Whether it has it.
        there: bool,
    },
    /// The client lags (true) or has caught up.
    Pressure(bool),
    /// `session/cancel` for a child of this session's.
    CancelChild(String),
    /// The bridge ends.
    Shutdown,
}

/// What the actor has to do, in order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Send `session/update`.
    Update(Box<acp::SessionUpdate>),
    /// Send `session/update` of a replayed history, to the id that asked for it alone.
    Replay {
        /// Who asked.
        req: ReqId,
        /// The update.
        update: Box<acp::SessionUpdate>,
    },
    /// Send `session/update` for a child that has a session of its own.
    ChildUpdate {
        /// The child's session.
        session: String,
        /// The update.
        update: Box<acp::SessionUpdate>,
    },
    /// Send a notification that is none of the standard's; its params are given the session's id.
    Signal {
        /// The method.
        method: &'static str,
        /// What it says beside the id.
        params: Value,
    },
    /// Call the engine; the answer comes as [`Input::Reply`].
    Call {
        /// Of the reply.
        token: Token,
        /// The engine's method.
        method: &'static str,
        /// Exactly the keys that the method takes.
        params: Value,
    },
    /// Make sure that an engine runs; comes back as [`Input::EngineReady`].
    EnsureEngine {
        /// Of the outcome.
        token: Token,
    },
    /// What this session found out for all: whether the engine has the V4 channel; `None` leaves the
    /// question to another one.
    TellV4(Option<bool>),
    /// End the engine process: it no longer answers.
    KillEngine,
    /// Have the engine's messages about this session delivered here.
    Attach(String),
    /// No longer.
    Detach(String),
    /// Answer a request of the engine's.
    Answer {
        /// The engine's id.
        id: WireId,
        /// The result.
        result: Value,
    },
    /// Refuse a request of the engine's.
    Refuse {
        /// The engine's id.
        id: WireId,
        /// JSON-RPC code.
        code: i64,
        /// Why.
        message: String,
    },
    /// Answer a request of the client's.
    Respond {
        /// Which.
        req: ReqId,
        /// The result or the error.
        result: Result<Value, AcpError>,
    },
    /// Ask the client; comes back as [`Input::Answer`].
    AskPermission {
        /// Of the answer.
        token: Token,
        /// The question.
        request: Box<acp::RequestPermissionRequest>,
    },
    /// Ask the client; comes back as [`Input::Answer`].
    AskForm {
        /// Of the answer.
        token: Token,
        /// The question.
        request: Box<acp::CreateElicitationRequest>,
    },
    /// Ask outside of the client; comes back as [`Input::External`].
    AskExternally {
        /// Of the verdict.
        token: Token,
        /// The engine's request.
        payload: Value,
    },
    /// Take a question back (`$/cancel_request`); an answer that comes all the same is dropped.
    CancelAsk(Token),
    /// Come back as [`Input::Timer`].
    Timer {
        /// Of the input.
        token: Token,
        /// How long from now.
        after: Duration,
    },
    /// The deadline no longer matters.
    CancelTimer(Token),
    /// The session got (or lost) something that must survive this process.
    Record(Record),
    /// The engine made a fork: open it as a session of its own and let that answer.
    Adopt {
        /// The request to answer.
        req: ReqId,
        /// What was made.
        made: Forked,
    },
    /// Come back as [`Input::Timer`] as soon as the client has taken most of what it was sent.
    Room {
        /// Of the input.
        token: Token,
    },
    /// Look up the user's sessions; comes back as [`Input::SessionsFound`].
    FindSessions {
        /// Of the outcome.
        token: Token,
    },
    /// Give this session's id to another session.
    TakeOver(Box<TakeOver>),
    /// Read what is known of plans and quota; comes back as [`Input::Quota`].
    ReadQuota {
        /// The command to answer.
        req: ReqId,
    },
    /// Nothing more comes from this session.
    Ended,
}

/// What the client is told about its request, all of it.
pub(crate) fn join_remarks(one: Option<String>, other: Option<String>) -> Option<String> {
    let both: Vec<String> = one.into_iter().chain(other).collect();
    (!both.is_empty()).then(|| both.join("\n"))
}

/// A fork as the engine made it and its client wants it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Forked {
    /// The new engine session.
    pub(crate) engine_sid: String,
    /// Its workspace.
    pub(crate) workspace: Option<Value>,
    /// Its own servers.
    pub(crate) mcp: Vec<Value>,
    /// What was wrong with some of them.
    pub(crate) remark: Option<String>,
}

/// An empty thread that goes on with another session.
#[derive(Debug)]
pub(crate) struct TakeOver {
    /// The command to answer.
    pub(crate) req: ReqId,
    /// The session.
    pub(crate) session: Listed,
    /// The thread's servers, for a session that nobody has open.
    pub(crate) mcp: Vec<Value>,
    /// What else waits for an answer.
    pub(crate) waiting: Vec<(ReqId, Request)>,
}

/// What is remembered about a session beyond this process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Record {
    /// The engine's session.
    pub(crate) engine_sid: Option<String>,
    /// The user's choice of model.
    pub(crate) model: Option<String>,
    /// The user's choice of thought level.
    pub(crate) thought: Option<String>,
    /// The id of this request stands for another session than before: nothing of what was remembered
    /// counts.
    pub(crate) anew: Option<ReqId>,
}

/// One ACP session. See the module's head.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) seed: Seed,
    now: Now,
    next: Token,
    pending: HashMap<Token, Cont>,
    out: Vec<Effect>,
    scratch: Output,

    link: Link,
    stream: stream::StreamState,
    turn: Option<Turn>,
    queue: VecDeque<turn::Queued>,
    asks: interactions::Asks,
    translator: Translator,
    target: Target,
    settings: Settings,
    shown_settings: Option<config_options::Settings>,
    usage: usage::UsageBook,
    tasks: background::Tasks,
    follow: history::FollowUps,
    commands: commands::CommandList,
    /// A new session takes its title from its first prompt.
    names_itself: bool,
    /// No turn has begun yet.
    is_blank: bool,
    picking: Option<pick::Picking>,
    /// Commands `/resume` whose session is being loaded.
    adopting: Vec<(ReqId, Option<String>)>,
    /// Those that were cancelled while their history was told.
    unwanted: Vec<ReqId>,
    compact: compact::CompactState,
    job: Option<extensions::RunningJob>,
    v4: v4::V4,
    steers: steer::Steers,
    /// What the user took back.
    revoked: revoked::RevokedList,
    foreign_watch: foreign_watch::ForeignWatch,
    /// The engine's state revision, for commands that are decided on it.
    revision: Option<u64>,
    signals: signals::Signals,
    ended: bool,
}

impl Machine {
    /// Makes the session; nothing happens before the first input.
    pub(crate) fn new(seed: Seed) -> Self {
        Self {
            now: Now::default(),
            next: 1,
            pending: HashMap::new(),
            out: Vec::new(),
            scratch: Output::default(),
            link: Link::new(seed.engine_sid.clone(), seed.workspace.clone()),
            stream: stream::StreamState::default(),
            turn: None,
            queue: VecDeque::new(),
            asks: interactions::Asks::default(),
            translator: Translator::new(seed.traits.clone())
                .in_directory(seed.cwd.to_string_lossy()),
            target: Target {
                traits: seed.traits.clone(),
                cwd: Some(seed.cwd.to_string_lossy().into_owned()),
                parent_tool_call: None,
            },
            settings: seed.settings.clone(),
            shown_settings: None,
            usage: usage::UsageBook::new(seed.engine_sid.is_none()),
            tasks: background::Tasks::default(),
            follow: history::FollowUps::default(),
            commands: commands::CommandList::default(),
            names_itself: seed.engine_sid.is_none(),
            is_blank: seed.engine_sid.is_none(),
            picking: None,
            adopting: Vec::new(),
            unwanted: Vec::new(),
            compact: compact::CompactState::default(),
            job: None,
            v4: v4::V4::new(&seed.nonce),
            revoked: revoked::RevokedList::default(),
            foreign_watch: foreign_watch::ForeignWatch::default(),
            steers: steer::Steers::new(seed.steer_limits, seed.engine_sid.is_some()),
            revision: None,
            signals: signals::Signals::default(),
            ended: false,
            seed,
        }
    }

    /// Takes one input; `out` is cleared and filled with what has to be done, in order.
    pub(crate) fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        out.clear();
        self.now = now;
        std::mem::swap(&mut self.out, out);
        match input {
            Input::Engine(event) => self.on_engine(event),
            Input::Reply(token, reply) => self.on_reply(token, reply),
            Input::Request(req, request) => self.on_request(req, request),
            Input::Cancel => self.on_cancel(),
            Input::CancelRequest(req) => self.on_cancel_request(req),
            Input::EngineReady(token, outcome) => self.on_engine_ready(token, outcome),
            Input::Answer(token, answer) => self.on_answer(token, &answer),
            Input::External(token, verdict) => self.on_external(token, verdict),
            Input::SessionsFound(token, found) => self.on_sessions_found(token, found),
            Input::Quota(req, page) => self.finish_quota(req, &page),
            Input::Timer(token) => self.on_timer(token),
            Input::V4Known { generation, there } => self.on_v4_known(generation, there),
            Input::Pressure(pressed) => self.on_pressure(pressed),
            Input::CancelChild(child) => self.cancel_child(&child),
            Input::Shutdown => self.on_shutdown(),
        }
        self.tell_turn_state();
        std::mem::swap(&mut self.out, out);
    }

    /// True while a prompt is being worked on or waits.
    #[cfg(test)]
    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some() || !self.queue.is_empty()
    }

    fn token(&mut self, cont: Cont) -> Token {
        let token = self.next;
        self.next += 1;
        self.pending.insert(token, cont);
        token
    }

    fn emit(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    fn update(&mut self, update: acp::SessionUpdate) {
        self.emit(Effect::Update(Box::new(update)));
    }

    fn call(&mut self, method: &'static str, params: Value, cont: Cont) -> Token {
        let token = self.token(cont);
        self.emit(Effect::Call { token, method, params });
        token
    }

    fn timer(&mut self, after: Duration, cont: Cont) -> Token {
        let token = self.token(cont);
        self.emit(Effect::Timer { token, after });
        token
    }

    fn cancel_timer(&mut self, token: &mut Option<Token>) {
        if let Some(token) = token.take()
            && self.pending.remove(&token).is_some()
        {
            self.emit(Effect::CancelTimer(token));
        }
    }

    /// Forgets a call: its reply will be dropped.
    fn forget(&mut self, token: Token) {
        self.pending.remove(&token);
    }

    fn respond(&mut self, req: ReqId, result: Result<Value, AcpError>) {
        self.emit(Effect::Respond { req, result });
    }

    fn respond_with<T: serde::Serialize>(&mut self, req: ReqId, value: &T) {
        let result = serde_json::to_value(value).map_err(AcpError::into_internal_error);
        self.respond(req, result);
    }

    fn engine_sid(&self) -> Option<&str> {
        self.link.sid()
    }

    /// Runs `f` on the translator and carries out what it produced.
    fn translate<R>(&mut self, f: impl FnOnce(&mut Translator, &mut Output) -> R) -> R {
        let mut output = std::mem::take(&mut self.scratch);
        let result = f(&mut self.translator, &mut output);
        for update in output.updates.drain(..) {
            self.out.push(Effect::Update(Box::new(update)));
        }
        let wants: Vec<Want> =
            if output.wants.is_empty() { Vec::new() } else { std::mem::take(&mut output.wants) };
        self.scratch = output;
        for want in wants {
            self.on_want(want);
        }
        result
    }

    fn on_request(&mut self, req: ReqId, request: Request) {
        if self.ended {
            let gone = session_not_found(&self.seed.acp_id);
            return self.respond(req, Err(gone));
        }
        match request {
            Request::New => self.answer_new(req),
            Request::Open { replay, mcp, remark, limit } => {
                self.seed.remark = join_remarks(self.seed.remark.take(), remark);
                self.open_session(req, replay, mcp, limit);
            }
            Request::Forked => self.open_fork(req),
            Request::Adopted { title } => self.adopt(req, title),
            Request::Prompt(blocks) => self.on_prompt(req, &blocks),
            Request::Queued(input) => self.take_prompt(req, input),
            Request::SetMode(mode) => self.set_mode(req, &mode),
            Request::SetOption { id, value } => self.set_option(req, &id, &value),
            Request::Fork { mcp, remark } => self.fork(req, mcp, remark),
            Request::Close => self.close(req),
            Request::Extension { name, params } => self.on_extension(req, name, &params),
        }
    }

    fn on_timer(&mut self, token: Token) {
        if let Some(cont) = self.pending.remove(&token) {
            self.resume_timer(cont);
        }
    }

    fn on_reply(&mut self, token: Token, reply: Result<Box<RawValue>, EngineError>) {
        if let Some(cont) = self.pending.remove(&token) {
            self.resume_reply(cont, reply);
        }
    }

    fn on_shutdown(&mut self) {
        self.ended = true;
        self.end_tasks_at_shutdown();
        self.settle_turn_asks();
        self.cancel_job();
        self.cancel_adoptions();
        self.cancel_everything_queued();
        self.end_steers();
        if let Some(turn) = self.turn.take()
            && let Some(req) = turn.req
        {
            self.respond_with(req, &acp::PromptResponse::new(acp::StopReason::Cancelled));
        }
        self.emit(Effect::Ended);
    }
}

/// The standard error for a session id that nobody knows.
pub(crate) fn session_not_found(id: &str) -> AcpError {
    AcpError::new(
        agent_client_protocol::ErrorCode::RESOURCE_NOT_FOUND,
        format!("unknown session {id}: start a new one, or list the sessions that can be resumed"),
    )
    .data(serde_json::json!({"sessionId": id}))
}

/// `-32602` with a reason.
pub(crate) fn invalid_params(reason: impl Into<String>) -> AcpError {
    AcpError::new(agent_client_protocol::ErrorCode::INVALID_PARAMS, reason)
}
