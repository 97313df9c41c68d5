//! The registry: one task per connection that owns the map of ACP session ids, the alias file and
//! the engine. It starts the engine when somebody needs one and again when it died, starts session
//! actors, and never waits for either: what takes time comes back to it as a message.
//! Started by `bridge::agent`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error as AcpError, ErrorCode};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::accounts::{self, Told};
use super::actor::{self, Asked, Surroundings, ToSession};
use super::alias::{Alias, AliasFile, ModelChoice};
use super::listing::{self, Cursor, Directory, Listed};
use super::machine::{
    Forked, Record, Request, Seed, Settings, invalid_params, join_remarks, session_not_found,
};
pub(crate) use super::succession::Succession;
use super::{failure, providers, succession};
use crate::accounts::{AccountFiles, sign_in};
use crate::approvals::ApprovalBridge;
use crate::bridge::engine::event::{EngineEvent, EngineRequest};
use crate::bridge::engine::sim;
use crate::bridge::engine::v4::steer::Limits;
use crate::bridge::engine::{EngineError, EngineHandle, discovery};
use crate::bridge::servers::WithServers;
use crate::bridge::stdio::Outflow;
use crate::bridge::translate::mcp::McpProblem;
use crate::bridge::translate::{ClientTraits, mcp};
use crate::config::Config;

/// Requests that may wait for one session.
const MAILBOX: usize = 256;
/// Messages that may wait for the registry.
pub(crate) const INBOX: usize = 1024;
/// How long sessions get to end when the client is gone.
const GRACE: Duration = Duration::from_secs(1);

/// A message to the registry.
pub(crate) enum ToRegistry {
    /// The client introduced itself.
    Client(Box<ClientTraits>),
    /// `authenticate`
    Authenticate(acp::AuthenticateRequest, Responder<Value>),
    /// `session/new`
    New(WithServers<acp::NewSessionRequest>, Responder<Value>),
    /// `session/load` or `session/resume`
    Open(OpenRequest, Responder<Value>),
    /// `session/list`
    List(acp::ListSessionsRequest, Responder<Value>),
    /// `session/fork`
    Fork(WithServers<acp::ForkSessionRequest>, Responder<Value>),
    /// `session/cancel`. In the one queue with the prompts, so that it stops what was asked before
    /// it and nothing that comes after.
    Cancel(String),
    /// `account/usage_stats`
    UsageStats(Responder<Value>),
    /// Anything else that names a session.
    Session(String, Request, Responder<Value>),
    /// A session needs the engine.
    Engine {
        /// Where to start it, if it has to be started.
        cwd: PathBuf,
        /// Where it goes.
        reply: oneshot::Sender<Result<EngineHandle, EngineError>>,
    },
    /// A session got something that must survive.
    Record {
        /// Its id.
        acp_id: String,
        /// What it got.
        record: Record,
    },
    /// A fork was made.
    Adopt(Box<Fork>),
    /// A thread wants to know which sessions there are.
    Find {
        /// Its directory.
        cwd: PathBuf,
        /// Where the list goes.
        reply: oneshot::Sender<Result<Vec<Listed>, AcpError>>,
    },
    /// A thread goes on with another session.
    TakeOver(Box<Succession>),
    /// The engine that was being started is there and knows the accounts' plans, or is not.
    Started(Result<(EngineHandle, Told), EngineError>),
    /// An engine that runs was told of plans anew.
    Told(Told),
}

/// A fork that the engine made.
pub(crate) struct Fork {
    /// Of `session/fork`.
    pub(crate) responder: Responder<Value>,
    /// The session it was forked from.
    pub(crate) parent: String,
    /// What the engine made.
    pub(crate) made: Forked,
}

/// `session/load` and `session/resume` in one form.
pub(crate) struct OpenRequest {
    pub(crate) id: String,
    pub(crate) cwd: PathBuf,
    pub(crate) mcp: Vec<acp::McpServer>,
    /// What was wrong with other servers.
    pub(crate) problems: Vec<McpProblem>,
    pub(crate) replay: bool,
    pub(crate) limit: Option<usize>,
}

/// An open session.
pub(super) struct Entry {
    pub(super) mailbox: mpsc::Sender<ToSession>,
    pub(super) engine_sid: Option<String>,
    pub(super) mcp: Vec<Value>,
    pub(super) cwd: PathBuf,
}

enum EngineState {
    None,
    Starting(Vec<oneshot::Sender<Result<EngineHandle, EngineError>>>),
    Up(EngineHandle),
}

/// How an engine is started, in this directory, with this mailbox for what no session wants.
pub(crate) type Starter = Arc<
    dyn Fn(
            Arc<Config>,
            PathBuf,
            mpsc::Sender<EngineEvent>,
        ) -> BoxFuture<'static, Result<EngineHandle, EngineError>>
        + Send
        + Sync,
>;

pub(crate) struct Registry {
    config: Arc<Config>,
    starter: Starter,
    client: ConnectionTo<Client>,
    pub(super) itself: mpsc::Sender<ToRegistry>,
    pub(super) aliases: AliasFile,
    pub(super) sessions: HashMap<String, Entry>,
    /// Ids that the client closed and has not opened again, with what was closed.
    pub(super) closed: HashMap<String, mpsc::WeakSender<ToSession>>,
    actors: JoinSet<()>,
    engine: EngineState,
    events: mpsc::Sender<EngineEvent>,
    /// What the engine knows of the accounts' plans.
    told: Told,
    traits: ClientTraits,
    approvals: Option<ApprovalBridge>,
    outflow: Outflow,
}

/// The registry's ends of its channels.
pub(crate) struct Channels {
    pub(crate) itself: mpsc::Sender<ToRegistry>,
    pub(crate) inbox: mpsc::Receiver<ToRegistry>,
    /// Becomes true when the program has to end.
    pub(crate) stop: watch::Receiver<bool>,
    /// How far the client lags.
    pub(crate) outflow: Outflow,
    /// How engines are started.
    pub(crate) starter: Starter,
}

/// Runs until the client is gone, then ends the sessions and the engine.
pub(crate) async fn run(config: Arc<Config>, client: ConnectionTo<Client>, channels: Channels) {
    let Channels { itself, mut inbox, mut stop, outflow, starter } = channels;
    let (events, mut event_rx) = mpsc::channel(INBOX);
    let approvals = config.approval_dir.as_deref().and_then(|dir| match ApprovalBridge::open(dir) {
        Ok(bridge) => Some(bridge),
        Err(error) => {
            tracing::warn!(%error, "permissions are asked for in the client: the approval directory cannot be used");
            None
        }
    });
    let mut registry = Registry {
        aliases: AliasFile::new(&config.alias_dir()),
        config,
        starter,
        client: client.clone(),
        itself,
        sessions: HashMap::new(),
        closed: HashMap::new(),
        actors: JoinSet::new(),
        engine: EngineState::None,
        events,
        told: Told::default(),
        traits: ClientTraits::default(),
        approvals,
        outflow,
    };
    loop {
        if inbox.is_empty() {
            registry.save_aliases();
        }
        tokio::select! {
            biased;
            Some(message) = inbox.recv() => registry.handle(message),
            Some(event) = event_rx.recv() => registry.on_stray_event(event),
            Some(ended) = registry.actors.join_next(), if !registry.actors.is_empty() => {
                registry.session_ended(ended.is_ok());
            }
            () = client.incoming_closed() => break,
            () = asked_to_stop(&mut stop) => break,
        }
    }
    registry.shutdown(event_rx).await;
}

impl Registry {
    fn handle(&mut self, message: ToRegistry) {
        match message {
            ToRegistry::Client(traits) => self.traits = *traits,
            ToRegistry::Authenticate(request, responder) => self.authenticate(&request, responder),
            ToRegistry::New(request, responder) => self.new_session(request, responder),
            ToRegistry::Open(request, responder) => self.open(request, responder),
            ToRegistry::List(request, responder) => self.list(&request, responder),
            ToRegistry::Fork(request, responder) => self.fork(request, responder),
            ToRegistry::Cancel(id) => self.cancel(&id),
            ToRegistry::UsageStats(responder) => {
                let config = self.config.clone();
                tokio::spawn(async move {
                    let table = discovery::provider_table(&config);
                    let stats = crate::accounts::usage_stats(&config, table.as_deref()).await;
                    answer(responder, &stats);
                });
            }
            ToRegistry::Session(id, request, responder) => {
                self.hand_to_session(&id, request, responder);
            }
            ToRegistry::Engine { cwd, reply } => self.with_engine(&cwd, reply),
            ToRegistry::Record { acp_id, record } => self.record(&acp_id, record),
            ToRegistry::Adopt(fork) => self.adopt(*fork),
            ToRegistry::Find { cwd, reply } => self.find_sessions(cwd, reply),
            ToRegistry::TakeOver(succession) => self.succeed(*succession),
            ToRegistry::Started(outcome) => self.started(outcome),
            ToRegistry::Told(told) => self.told = told,
        }
    }

    fn cancel(&self, id: &str) {
        if let Some(entry) = self.sessions.get(id) {
            return tell(&entry.mailbox, ToSession::Cancel);
        }
        for entry in self.sessions.values() {
            tell(&entry.mailbox, ToSession::CancelChild(id.to_owned()));
        }
    }

    /// Nothing to do but to say whether ZCode is set up: its sign-in is ZCode's own.
    fn authenticate(&self, request: &acp::AuthenticateRequest, responder: Responder<Value>) {
        if &*request.method_id.0 != crate::bridge::agent::AUTH_AGENT {
            let text = format!("unknown authentication method {}", request.method_id.0);
            return reject(responder, invalid_params(text));
        }
        let state = sign_in(&AccountFiles::read(&self.config.zcode_home, None));
        if self.config.engine.demo.is_some() || state.is_usable() {
            return answer(responder, &acp::AuthenticateResponse::new());
        }
        let mut text = "ZCode has no account and no provider that can be used yet: run `zcode-acp login` in a terminal, or set a provider up in ZCode".to_owned();
        for complaint in state.complaints() {
            text.push_str("; ");
            text.push_str(&complaint);
        }
        reject(responder, AcpError::new(ErrorCode::AUTH_REQUIRED, text));
    }

    fn new_session(
        &mut self,
        request: WithServers<acp::NewSessionRequest>,
        responder: Responder<Value>,
    ) {
        let WithServers { request, problems } = request;
        if let Err(error) = check_directory(&request.cwd) {
            return reject(responder, error);
        }
        let servers = mcp::to_engine(&request.mcp_servers, problems);
        let id = uuid::Uuid::new_v4().to_string();
        let cwd = usable_directory(&request.cwd);
        let alias = Alias {
            cwd: cwd.to_string_lossy().into_owned(),
            created_at: unix_ms(),
            ..Alias::default()
        };
        self.remember(&id, alias);
        let mut seed = self.seed(&id, cwd);
        seed.remark = join_remarks(seed.remark, servers.remark());
        seed.mcp = servers.entries;
        self.start_session(seed);
        self.hand_to_session(&id, Request::New, responder);
    }

    fn open(&mut self, request: OpenRequest, responder: Responder<Value>) {
        if let Err(error) = check_directory(&request.cwd) {
            return reject(responder, error);
        }
        let Some((request, responder)) = self.reopens(request, responder) else { return };
        let servers = mcp::to_engine(&request.mcp, request.problems);
        let OpenRequest { id, cwd, replay, limit, .. } = request;
        if !self.sessions.contains_key(&id) {
            self.start_known(&id, &cwd);
        }
        self.hand_to_session(
            &id,
            Request::Open { replay, remark: servers.remark(), mcp: servers.entries, limit },
            responder,
        );
    }

    /// The fork's own servers are its client's; without any it has its parent's.
    fn fork(&mut self, request: WithServers<acp::ForkSessionRequest>, responder: Responder<Value>) {
        let WithServers { request, problems } = request;
        if let Err(error) = check_directory(&request.cwd) {
            return reject(responder, error);
        }
        let servers = mcp::to_engine(&request.mcp_servers, problems);
        let what = Request::Fork { remark: servers.remark(), mcp: servers.entries };
        let id: &str = &request.session_id.0;
        if !self.sessions.contains_key(id) {
            self.start_known(id, &request.cwd);
        }
        self.hand_to_session(id, what, responder);
    }

    /// Starts the actor of an id from before: one of the alias file, else the engine's own id.
    fn start_known(&mut self, id: &str, cwd: &Path) {
        let alias = self.aliases.find(id, unix_ms());
        let engine_sid = match &alias {
            Some(alias) => alias.zcode_sid.clone(),
            None => Some(id.to_owned()),
        };
        if let Some(other) = engine_sid.as_deref().and_then(|sid| self.open_as(sid)) {
            return self.share(&other, id);
        }
        let cwd = alias.as_ref().map_or_else(|| usable_directory(cwd), |a| PathBuf::from(&a.cwd));
        let mut seed = self.seed(id, cwd);
        let of_session =
            engine_sid.as_deref().and_then(|sid| self.aliases.choice_of(sid, unix_ms()));
        if let Some(choice) = of_session.or(alias.and_then(|a| a.model_choice)) {
            seed.settings.remember(choice.model, choice.thought);
        }
        seed.engine_sid = engine_sid;
        self.start_session(seed);
    }

    pub(super) fn seed(&self, id: &str, cwd: PathBuf) -> Seed {
        let files = providers::read(&self.config.zcode_home);
        let mut settings = Settings::before_engine(&files);
        if let Some(demo) = &self.config.engine.demo {
            settings.expect_snapshot(&sim::installation(demo.profile.as_deref()));
        }
        let remark = settings.prefer(&self.config.session);
        Seed {
            acp_id: id.to_owned(),
            nonce: uuid::Uuid::new_v4().simple().to_string(),
            cwd,
            engine_sid: None,
            workspace: None,
            mcp: Vec::new(),
            traits: self.traits.clone(),
            settings,
            remark,
            ask_timeout: self.config.interaction_timeout,
            completion_status: self.config.session.show_completion_status == Some(true),
            external_approvals: self.approvals.is_some(),
            adopts: false,
            steer_limits: Limits {
                persist_ms: actor::millis(self.config.steer_persist),
                fk_retry_ms: actor::millis(self.config.steer_fk_retry),
            },
            compact_above: self.config.session.auto_compact_threshold.filter(|n| *n > 0),
        }
    }

    pub(super) fn start_session(&mut self, seed: Seed) {
        let (mailbox, mailbox_rx) = mpsc::channel(MAILBOX);
        let entry = Entry {
            mailbox,
            engine_sid: seed.engine_sid.clone(),
            mcp: seed.mcp.clone(),
            cwd: seed.cwd.clone(),
        };
        self.sessions.insert(seed.acp_id.clone(), entry);
        let around = Surroundings {
            client: self.client.clone(),
            registry: self.itself.clone(),
            mailbox: mailbox_rx,
            approvals: self.approvals.clone(),
            outflow: self.outflow.clone(),
            config: self.config.clone(),
        };
        self.actors.spawn(actor::run(seed, around));
    }

    /// A session that ended (or whose task failed: its open requests were refused by their drop).
    fn session_ended(&mut self, well: bool) {
        if !well {
            tracing::error!("a session's task failed");
        }
        // Its id may be another session's by now.
        self.sessions.retain(|_, entry| !entry.mailbox.is_closed());
    }

    pub(super) fn hand_to_session(
        &mut self,
        id: &str,
        request: Request,
        responder: Responder<Value>,
    ) {
        if self.is_refused(id, &request) {
            return succession::refuse_closed(id, &request, responder);
        }
        let closed = self.sessions.get(id).is_none_or(|entry| entry.mailbox.is_closed());
        if closed {
            self.sessions.remove(id);
            if self.aliases.find(id, unix_ms()).is_some() {
                self.start_known(id, Path::new("/"));
            }
        }
        if matches!(request, Request::Prompt(_)) {
            self.tell_of_changed_accounts();
        }
        let Some(entry) = self.sessions.get(id) else {
            return reject(responder, session_not_found(id));
        };
        let closes = matches!(request, Request::Close);
        let name = acp::SessionId::new(Arc::<str>::from(id));
        let message = ToSession::Request(Box::new(Asked { id: name, request, responder }));
        if let Err(error) = entry.mailbox.try_send(message) {
            if let ToSession::Request(asked) = error.into_inner() {
                let text = "too many requests wait for this session";
                reject(asked.responder, AcpError::new(ErrorCode::INTERNAL_ERROR, text));
            }
        } else if closes {
            self.note_closed(id);
        }
    }

    fn adopt(&mut self, fork: Fork) {
        let Fork { responder, parent, made } = fork;
        let Forked { engine_sid, workspace, mcp, remark } = made;
        let (inherited, cwd) = match self.sessions.get(&parent) {
            Some(entry) => (entry.mcp.clone(), entry.cwd.clone()),
            None => (Vec::new(), usable_directory(Path::new("/"))),
        };
        let alias = Alias {
            cwd: cwd.to_string_lossy().into_owned(),
            zcode_sid: Some(engine_sid.clone()),
            created_at: unix_ms(),
            ..Alias::default()
        };
        self.remember(&engine_sid, alias);
        let mut seed = self.seed(&engine_sid, cwd);
        seed.engine_sid = Some(engine_sid.clone());
        seed.workspace = workspace;
        seed.mcp = if mcp.is_empty() { inherited } else { mcp };
        seed.remark = join_remarks(seed.remark, remark);
        self.start_session(seed);
        self.hand_to_session(&engine_sid, Request::Forked, responder);
    }

    fn record(&mut self, acp_id: &str, record: Record) {
        if let Some(entry) = self.sessions.get_mut(acp_id) {
            entry.engine_sid.clone_from(&record.engine_sid);
        }
        let now = unix_ms();
        let cwd = self
            .sessions
            .get(acp_id)
            .map(|e| e.cwd.to_string_lossy().into_owned())
            .unwrap_or_default();
        let mut alias = self.aliases.find(acp_id, now).unwrap_or_else(|| Alias {
            cwd,
            created_at: now,
            ..Alias::default()
        });
        if record.anew.is_some() {
            (alias.zcode_sid, alias.model_choice) = (None, None);
        }
        if record.engine_sid.is_some() {
            alias.zcode_sid = record.engine_sid;
        }
        if record.model.is_some() || record.thought.is_some() {
            alias.model_choice =
                Some(ModelChoice { model: record.model, thought: record.thought, at: now });
        }
        self.remember(acp_id, alias);
    }

    fn remember(&mut self, acp_id: &str, alias: Alias) {
        self.aliases.set(acp_id, alias);
    }

    /// Writes down the ids, once for all that came together.
    fn save_aliases(&mut self) {
        if let Err(error) = self.aliases.save(unix_ms()) {
            tracing::warn!(%error, "the alias file cannot be written; new ids will not survive a restart");
        }
    }

    /// Hands out the engine, starting it when there is none or it died.
    pub(super) fn with_engine(
        &mut self,
        cwd: &Path,
        reply: oneshot::Sender<Result<EngineHandle, EngineError>>,
    ) {
        match &mut self.engine {
            EngineState::Up(engine) if engine.is_alive() => {
                let engine = engine.clone();
                self.tell_of_changed_accounts();
                reply.send(Ok(engine)).ok();
            }
            EngineState::Starting(waiting) => waiting.push(reply),
            _ => {
                self.engine = EngineState::Starting(vec![reply]);
                let (config, itself) = (self.config.clone(), self.itself.clone());
                let start =
                    (self.starter)(config.clone(), engine_directory(cwd), self.events.clone());
                let before = self.told.live();
                tokio::spawn(async move {
                    let live = accounts::live_answers(&config, before);
                    let outcome = match futures::future::join(start, live).await {
                        (Ok(engine), live) => {
                            Ok((engine.clone(), accounts::tell(config, engine, live).await))
                        }
                        (Err(error), _) => Err(error),
                    };
                    itself.send(ToRegistry::Started(outcome)).await.ok();
                });
            }
        }
    }

    fn started(&mut self, outcome: Result<(EngineHandle, Told), EngineError>) {
        let outcome = outcome.map(|(engine, told)| {
            self.told = told;
            engine
        });
        let state = match &outcome {
            Ok(engine) => EngineState::Up(engine.clone()),
            Err(_) => EngineState::None,
        };
        let EngineState::Starting(waiting) = std::mem::replace(&mut self.engine, state) else {
            return;
        };
        for reply in waiting {
            reply.send(outcome.clone()).ok();
        }
    }

    /// Tells the engine again when ZCode's account files have changed: at once by the files, and
    /// once more if the services, where they are asked, say otherwise.
    fn tell_of_changed_accounts(&mut self) {
        let EngineState::Up(engine) = &self.engine else { return };
        if !self.told.is_stale(&self.config) {
            return;
        }
        self.told.refresh_stamp(&self.config);
        let (config, engine, itself) = (self.config.clone(), engine.clone(), self.itself.clone());
        let (told, sent) = accounts::send(&config, &engine, self.told.live());
        tokio::spawn(async move {
            let mut told = accounts::finish(told, sent).await;
            let live = accounts::live_answers(&config, told.live()).await;
            if !told.needs_none && live != told.live() {
                told = accounts::tell(config, engine, live).await;
            }
            itself.send(ToRegistry::Told(told)).await.ok();
        });
    }

    /// The ids that clients know the engine's sessions by.
    pub(super) fn ids_of_sessions(&mut self) -> BTreeMap<String, String> {
        self.aliases.ids_of(unix_ms())
    }

    fn list(&mut self, request: &acp::ListSessionsRequest, responder: Responder<Value>) {
        let cursor = match request.cursor.as_deref().map(Cursor::parse) {
            Some(None) => {
                return reject(
                    responder,
                    invalid_params("this cursor is not one of session/list's"),
                );
            }
            Some(Some(cursor)) => Some(cursor),
            None => None,
        };
        let ids = self.ids_of_sessions();
        let wanted = request.cwd.as_deref().map(Directory::new);
        let (reply, engine) = oneshot::channel();
        let cwd = request.cwd.clone().unwrap_or_default();
        self.with_engine(&cwd, reply);
        tokio::spawn(async move {
            let engine = engine.await.unwrap_or(Err(EngineError::Closed));
            let listed = match engine {
                Ok(engine) => engine.request_value("session/list", json!({})).await,
                Err(error) => Err(error),
            };
            let all = match listed {
                Ok(answer) => {
                    answer.get("sessions").and_then(Value::as_array).cloned().unwrap_or_default()
                }
                Err(error) => return reject(responder, failure::to_acp(&error)),
            };
            let keep = |cwd: &str| wanted.as_ref().is_none_or(|wanted| wanted.is(cwd));
            let page = listing::page(&all, &ids, keep, cursor.as_ref());
            answer(
                responder,
                &acp::ListSessionsResponse::new(page.sessions).next_cursor(page.next),
            );
        });
    }

    /// What belongs to no attached session. A question must get its one outcome all the same.
    fn on_stray_event(&mut self, event: EngineEvent) {
        match event {
            EngineEvent::Request(request) => self.stray_request(request),
            EngineEvent::Storage(storage) => {
                for entry in self.sessions.values() {
                    let news = ToSession::Stray(Box::new(EngineEvent::Storage(storage.clone())));
                    // Progress: a session too busy to take it misses nothing.
                    entry.mailbox.try_send(news).ok();
                }
            }
            EngineEvent::Frame { topic, params } if topic.starts_with("workspace-config/") => {
                for entry in self.sessions.values().filter(|it| it.engine_sid.is_some()) {
                    let frame = EngineEvent::Frame { topic: topic.clone(), params: params.clone() };
                    // A session that has no room for it sees the gap and asks again.
                    entry.mailbox.try_send(ToSession::Stray(Box::new(frame))).ok();
                }
            }
            EngineEvent::Exited(exit) => {
                tracing::warn!(status = %exit.status, "the engine ended");
                if let EngineState::Up(engine) = &self.engine
                    && !engine.is_alive()
                {
                    self.engine = EngineState::None;
                }
            }
            _ => {}
        }
    }

    /// A question of a session nobody attached (a subagent's, mostly) goes to its parent, else to the
    /// only session there is; with several it cannot be attributed and is refused.
    fn stray_request(&self, request: Box<EngineRequest>) {
        let parent = ["/parentSessionId", "/origin/parentSessionId", "/sessionId"]
            .iter()
            .filter_map(|at| request.params.pointer(at).and_then(Value::as_str))
            .find_map(|sid| self.sessions.values().find(|e| e.engine_sid.as_deref() == Some(sid)));
        let mut live = self.sessions.values().filter(|e| e.engine_sid.is_some());
        let owner = parent.or_else(|| live.next().filter(|_| live.next().is_none()));
        match owner {
            Some(owner) => {
                let stray = ToSession::Stray(Box::new(EngineEvent::Request(request)));
                if let Err(error) = owner.mailbox.try_send(stray)
                    && let ToSession::Stray(event) = error.into_inner()
                    && let EngineEvent::Request(request) = *event
                {
                    self.refuse_stray(&request);
                }
            }
            None => self.refuse_stray(&request),
        }
    }

    fn refuse_stray(&self, request: &EngineRequest) {
        let EngineState::Up(engine) = &self.engine else { return };
        let result = match request.method.as_str() {
            "interaction/requestPermission" => {
                json!({"decision": "deny", "reason": "no client session to ask"})
            }
            "interaction/requestUserInput" => json!({"action": "decline"}),
            other => {
                return engine.respond(
                    request.id.clone(),
                    Err(crate::bridge::engine::RpcError::unknown_method(other)),
                );
            }
        };
        engine.respond(request.id.clone(), Ok(result));
    }

    async fn shutdown(mut self, mut events: mpsc::Receiver<EngineEvent>) {
        self.save_aliases();
        // Dropping the mailboxes is the message: every actor ends its session and then itself.
        self.sessions.clear();
        let all_ended = async { while self.actors.join_next().await.is_some() {} };
        tokio::time::timeout(GRACE, all_ended).await.ok();
        self.actors.abort_all();
        if let EngineState::Up(engine) = &self.engine {
            // The engine's reader must not hang on events that nobody reads any more.
            let drain = async { while events.recv().await.is_some() {} };
            tokio::select! {
                () = engine.shutdown() => {}
                () = drain => {}
            }
        }
    }
}

/// Tells a session something that must not be lost. Its mailbox is hardly ever full, and then it
/// is told as soon as there is room.
pub(super) fn tell(mailbox: &mpsc::Sender<ToSession>, message: ToSession) {
    if let Err(mpsc::error::TrySendError::Full(message)) = mailbox.try_send(message) {
        let mailbox = mailbox.clone();
        tokio::spawn(async move { mailbox.send(message).await.ok() });
    }
}

/// Waits for the word to end; for ever when nobody can say it.
async fn asked_to_stop(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// ACP's directories are absolute; an empty one means that the editor has none.
fn check_directory(cwd: &Path) -> Result<(), AcpError> {
    if cwd.is_absolute() || cwd.as_os_str().is_empty() {
        return Ok(());
    }
    Err(invalid_params(format!("cwd must be an absolute path, not {}", cwd.display())))
}

/// Where an engine is started: a directory that is there.
fn engine_directory(wanted: &Path) -> PathBuf {
    if wanted.is_dir() {
        return wanted.to_owned();
    }
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

/// A client's directory; editors that know none send `/` or nothing.
fn usable_directory(cwd: &Path) -> PathBuf {
    if cwd.as_os_str().is_empty() || cwd == Path::new("/") {
        return std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    }
    cwd.to_owned()
}

pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Refuses a request; a client that is gone needs no answer.
pub(crate) fn reject(responder: Responder<Value>, error: AcpError) {
    responder.respond_with_error(error).ok();
}

/// Answers a request; a client that is gone needs no answer.
pub(crate) fn answer<T: serde::Serialize>(responder: Responder<Value>, value: &T) {
    let result = serde_json::to_value(value).map_err(AcpError::into_internal_error);
    responder.respond_with_result(result).ok();
}
