//! One task per session: carries out the effects of its machine, in order, and feeds it what comes.
//!
//! Never waits for the engine or the client inline: replies and answers are futures that come back
//! as inputs, so the engine's mailbox is always drained. What the client asks (a cancel among it, in
//! the order asked) is looked at first. Events come before replies, as the engine wrote them.
//! Started by the registry.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error as AcpError, RequestCancellationHandle, UntypedMessage};
use futures::future::{AbortHandle, BoxFuture, FutureExt, abortable};
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::listing;
use super::machine::{
    ClientAnswer, Effect, EngineUp, Forked, Input, Machine, Now, ReqId, Request, Seed, TakeOver,
    Token, V4Word,
};
use super::merge::Held;
use super::registry::{Fork, Succession, ToRegistry, answer};
use crate::accounts::quota;
use crate::approvals::ApprovalBridge;
use crate::bridge::engine::event::EngineEvent;
use crate::bridge::engine::verdict::{Claim, Question};
use crate::bridge::engine::{EngineError, EngineHandle, RpcError, discovery};
use crate::bridge::stdio::Outflow;
use crate::config::Config;

/// Events that may wait for a session; a full mailbox holds the engine's reader back. Two rounds
/// between the reader and the session: more would only be memory.
const EVENTS: usize = 256;
/// After this many events in a row replies and deadlines get their turn.
const STREAK: u32 = 128;

/// Turns of the scheduler that an update needs to its transport.
const ROUNDS: usize = 4;

/// A message to a session.
pub(crate) enum ToSession {
    /// A request of the client's.
    Request(Box<Asked>),
    /// The same conversation under one more id.
    AlsoKnownAs(acp::SessionId),
    /// Something of the engine's that was routed to nobody.
    Stray(Box<EngineEvent>),
    /// `session/cancel`
    Cancel,
    /// `session/cancel` for an id that is no session of ours: perhaps one of this session's children.
    CancelChild(String),
}

/// A request and where its answer goes.
pub(crate) struct Asked {
    /// The session id that it names; a session can have several.
    pub(crate) id: acp::SessionId,
    pub(crate) request: Request,
    pub(crate) responder: Responder<Value>,
}

/// A request that is not answered yet.
struct Open {
    id: acp::SessionId,
    responder: Responder<Value>,
    abort: AbortHandle,
}

/// What a session needs from its surroundings.
pub(crate) struct Surroundings {
    pub(crate) client: ConnectionTo<Client>,
    pub(crate) registry: mpsc::Sender<ToRegistry>,
    pub(crate) mailbox: mpsc::Receiver<ToSession>,
    pub(crate) approvals: Option<ApprovalBridge>,
    pub(crate) outflow: Outflow,
    pub(crate) config: Arc<Config>,
}

/// What a future of the actor's came to.
enum Arrival {
    Input(Input),
    Engine(Token, Result<EngineHandle, EngineError>),
    Nothing,
}

struct Actor {
    machine: Machine,
    acp_id: String,
    ids: Vec<acp::SessionId>,
    client: ConnectionTo<Client>,
    registry: mpsc::Sender<ToRegistry>,
    engine: Option<EngineHandle>,
    events: mpsc::Sender<EngineEvent>,
    arrivals: FuturesUnordered<BoxFuture<'static, Arrival>>,
    requests: HashMap<ReqId, Open>,
    /// The id that prompted last: questions are asked there.
    prompted: acp::SessionId,
    /// Held while this session finds out what its engine has.
    question: Option<Question>,
    /// Where this session's requests go when another one has its id.
    successor: Option<oneshot::Receiver<mpsc::Sender<ToSession>>>,
    asks: HashMap<Token, RequestCancellationHandle>,
    approvals: Option<ApprovalBridge>,
    external: HashMap<Token, AbortHandle>,
    deadlines: BTreeSet<(Instant, Token)>,
    timers: HashMap<Token, Instant>,
    outflow: Outflow,
    config: Arc<Config>,
    /// The last update, while the session is behind its engine.
    held: Held,
    next_req: u64,
    began: Instant,
    ended: bool,
}

/// Runs a session until it ends or the bridge does.
pub(crate) async fn run(seed: Seed, around: Surroundings) {
    let Surroundings { client, registry, mut mailbox, approvals, outflow, config } = around;
    let (events, mut event_rx) = mpsc::channel(EVENTS);
    let id = acp::SessionId::new(Arc::<str>::from(seed.acp_id.as_str()));
    let mut actor = Actor {
        acp_id: seed.acp_id.clone(),
        ids: vec![id.clone()],
        machine: Machine::new(seed),
        client,
        registry,
        engine: None,
        events,
        arrivals: FuturesUnordered::new(),
        requests: HashMap::new(),
        prompted: id,
        question: None,
        successor: None,
        asks: HashMap::new(),
        approvals,
        external: HashMap::new(),
        outflow: outflow.clone(),
        config,
        deadlines: BTreeSet::new(),
        timers: HashMap::new(),
        held: Held::default(),
        next_req: 1,
        began: Instant::now(),
        ended: false,
    };
    let mut effects = Vec::new();
    let mut streak = 0;
    let mut pressed = false;
    while !actor.ended {
        if pressed != outflow.is_pressed() {
            pressed = !pressed;
            actor.feed(Input::Pressure(pressed), &mut effects);
        }
        if streak >= STREAK {
            streak = 0;
            actor.catch_up(&mut effects);
        }
        let next = actor.deadlines.first().map(|(at, _)| *at);
        let input = tokio::select! {
            biased;
            message = mailbox.recv() => match message {
                Some(message) => actor.accept(message),
                None => Some(Input::Shutdown),
            },
            // A client that lags holds the engine back; requests, replies and deadlines go on.
            () = outflow.ready(), if outflow.is_pressed() => None,
            // What happens while a history is replayed is shown after it.
            Some(event) = event_rx.recv(), if !outflow.is_pressed() && !actor.machine.is_replaying() => {
                streak += 1;
                Some(Input::Engine(event))
            }
            Some(arrival) = actor.arrivals.next() => actor.arrived(arrival),
            () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                actor.due().map(Input::Timer)
            }
        };
        if let Some(input) = input {
            actor.feed(input, &mut effects);
        }
        // Nothing waits for what is not there yet.
        if event_rx.is_empty() || outflow.is_pressed() || actor.machine.is_replaying() {
            actor.release();
        }
    }
    actor.release();
    let successor = actor.successor.take();
    drop(actor);
    if let Some(successor) = successor {
        hand_on(mailbox, successor).await;
    }
}

/// What was sent here before the id went to another session goes there, too.
async fn hand_on(
    mut mailbox: mpsc::Receiver<ToSession>,
    successor: oneshot::Receiver<mpsc::Sender<ToSession>>,
) {
    let Ok(successor) = successor.await else { return };
    while let Some(message) = mailbox.recv().await {
        successor.send(message).await.ok();
    }
}

impl Actor {
    fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { ms: millis(self.began.elapsed()), unix_ms: millis(unix) }
    }

    fn feed(&mut self, input: Input, effects: &mut Vec<Effect>) {
        let now = self.now();
        self.machine.step(now, input, effects);
        for effect in effects.drain(..) {
            self.apply(effect);
        }
    }

    /// In a flood of events: what else is due gets in between.
    fn catch_up(&mut self, effects: &mut Vec<Effect>) {
        while let Some(Some(arrival)) = self.arrivals.next().now_or_never() {
            if let Some(input) = self.arrived(arrival) {
                self.feed(input, effects);
            }
        }
        while self.deadlines.first().is_some_and(|(at, _)| *at <= Instant::now()) {
            if let Some(token) = self.due() {
                self.feed(Input::Timer(token), effects);
            }
        }
    }

    fn due(&mut self) -> Option<Token> {
        let (_, token) = self.deadlines.pop_first()?;
        self.timers.remove(&token);
        Some(token)
    }

    fn arrived(&mut self, arrival: Arrival) -> Option<Input> {
        match arrival {
            Arrival::Input(input) => {
                match &input {
                    Input::Answer(token, _) => drop(self.asks.remove(token)),
                    Input::External(token, _) => drop(self.external.remove(token)),
                    _ => {}
                }
                Some(input)
            }
            Arrival::Engine(token, outcome) => {
                let outcome = outcome.map(|handle| {
                    let up = EngineUp { generation: handle.generation(), v4: self.v4_of(&handle) };
                    self.engine = Some(handle);
                    up
                });
                Some(Input::EngineReady(token, outcome))
            }
            Arrival::Nothing => None,
        }
    }

    /// What is known of that engine's V4 channel; this session finds out when nobody has.
    fn v4_of(&mut self, engine: &EngineHandle) -> V4Word {
        match engine.v4().claim() {
            Claim::Known(there) => V4Word::Known(there),
            Claim::Ask(question) => {
                self.question = Some(question);
                V4Word::FindOut
            }
            Claim::Wait(answer) => {
                let generation = engine.generation();
                self.arrivals.push(
                    async move {
                        match answer.known().await {
                            Some(there) => Arrival::Input(Input::V4Known { generation, there }),
                            None => Arrival::Nothing,
                        }
                    }
                    .boxed(),
                );
                V4Word::Awaited
            }
        }
    }

    fn accept(&mut self, message: ToSession) -> Option<Input> {
        match message {
            ToSession::Request(asked) => self.accept_request(*asked),
            ToSession::Cancel => Some(Input::Cancel),
            ToSession::CancelChild(id) => Some(Input::CancelChild(id)),
            ToSession::AlsoKnownAs(id) => {
                if !self.ids.contains(&id) {
                    self.ids.push(id);
                }
                None
            }
            ToSession::Stray(event) => Some(Input::Engine(*event)),
        }
    }

    fn accept_request(&mut self, asked: Asked) -> Option<Input> {
        let Asked { id, request, responder } = asked;
        if matches!(request, Request::Close) && self.ids.len() > 1 {
            // The conversation goes on under its other ids.
            self.ids.retain(|it| *it != id);
            if let Some(last) = self.ids.last().filter(|_| self.prompted == id) {
                self.prompted = last.clone();
            }
            answer(responder, &acp::CloseSessionResponse::new());
            return None;
        }
        if let Request::Prompt(blocks) = &request {
            self.echo(&id, blocks);
            self.prompted = id.clone();
        }
        let req = ReqId(self.next_req);
        self.next_req += 1;
        let cancellation = responder.cancellation();
        let (cancelled, abort) = abortable(async move { cancellation.cancelled().await });
        self.arrivals.push(
            async move {
                match cancelled.await {
                    Ok(()) => Arrival::Input(Input::CancelRequest(req)),
                    Err(_answered) => Arrival::Nothing,
                }
            }
            .boxed(),
        );
        self.requests.insert(req, Open { id, responder, abort });
        Some(Input::Request(req, request))
    }

    /// Shows a prompt to the other ids of the conversation, which will see its answer.
    fn echo(&mut self, by: &acp::SessionId, blocks: &[acp::ContentBlock]) {
        if self.ids.len() < 2 {
            return;
        }
        self.release();
        let name = acp::MessageId::new(format!("uprompt_{}", uuid::Uuid::new_v4()));
        for id in self.ids.iter().filter(|id| *id != by) {
            for block in blocks {
                let chunk = acp::ContentChunk::new(block.clone()).message_id(name.clone());
                let update = acp::SessionUpdate::UserMessageChunk(chunk);
                self.client
                    .send_notification(acp::SessionNotification::new(id.clone(), update))
                    .ok();
            }
        }
    }

    fn apply(&mut self, effect: Effect) {
        if !matches!(effect, Effect::Update(_) | Effect::Replay { .. }) {
            self.release();
        }
        match effect {
            Effect::Update(update) => {
                if let Some(before) = self.held.push(*update) {
                    self.send_update(before);
                }
            }
            Effect::Replay { req, update } => self.replay(req, *update),
            Effect::ChildUpdate { session, update } => {
                let id = acp::SessionId::new(Arc::<str>::from(session));
                // A client that is gone ends the whole bridge; there is nobody left to tell.
                self.client.send_notification(acp::SessionNotification::new(id, *update)).ok();
            }
            Effect::Signal { method, params } => self.signal(method, &params),
            Effect::Call { token, method, params } => self.call(token, method, &params),
            Effect::EnsureEngine { token } => self.ensure_engine(token),
            Effect::TellV4(found) => {
                if let (Some(question), Some(there)) = (self.question.take(), found) {
                    question.answer(there);
                }
            }
            Effect::KillEngine => {
                if let Some(engine) = self.engine.clone() {
                    tokio::spawn(async move { engine.shutdown().await });
                }
            }
            Effect::Attach(session) => {
                if let Some(engine) = &self.engine {
                    engine.attach(session, self.events.clone());
                }
            }
            Effect::Detach(session) => {
                if let Some(engine) = &self.engine {
                    engine.detach(session);
                }
            }
            Effect::Answer { id, result } => {
                if let Some(engine) = &self.engine {
                    engine.respond(id, Ok(result));
                }
            }
            Effect::Refuse { id, code, message } => {
                if let Some(engine) = &self.engine {
                    engine.respond(id, Err(RpcError::new(code, message)));
                }
            }
            Effect::Respond { req, result } => self.respond(req, result),
            Effect::AskPermission { token, mut request } => {
                request.session_id = self.prompted.clone();
                let sent = self.client.send_request(*request);
                self.asks.insert(token, sent.cancellation_handle());
                let answer = sent.block_task();
                self.arrivals.push(
                    async move {
                        Arrival::Input(Input::Answer(
                            token,
                            answer.await.map(ClientAnswer::Permission),
                        ))
                    }
                    .boxed(),
                );
            }
            Effect::AskForm { token, mut request } => {
                self.ask_where_prompted(&mut request);
                let sent = self.client.send_request(*request);
                self.asks.insert(token, sent.cancellation_handle());
                let answer = sent.block_task();
                self.arrivals.push(
                    async move {
                        Arrival::Input(Input::Answer(token, answer.await.map(ClientAnswer::Form)))
                    }
                    .boxed(),
                );
            }
            Effect::AskExternally { token, payload } => self.ask_externally(token, payload),
            Effect::CancelAsk(token) => {
                if let Some(abort) = self.external.remove(&token) {
                    abort.abort();
                }
                if let Some(handle) = self.asks.remove(&token) {
                    handle.cancel().ok();
                }
            }
            Effect::Timer { token, after } => {
                let at = Instant::now() + after;
                self.timers.insert(token, at);
                self.deadlines.insert((at, token));
            }
            Effect::CancelTimer(token) => {
                if let Some(at) = self.timers.remove(&token) {
                    self.deadlines.remove(&(at, token));
                }
            }
            Effect::Record(record) => {
                let by = record.anew.and_then(|req| self.requests.get(&req));
                let acp_id = by.map_or_else(|| self.acp_id.clone(), |it| it.id.0.to_string());
                self.tell_registry(ToRegistry::Record { acp_id, record });
            }
            Effect::Adopt { req, made } => self.adopt(req, made),
            Effect::Room { token } => self.await_room(token),
            Effect::FindSessions { token } => self.find_sessions(token),
            Effect::TakeOver(what) => self.take_over(*what),
            Effect::ReadQuota { req } => self.read_quota(req),
            Effect::Ended => self.ended = true,
        }
    }

    /// Asks by file. Dropping the question's future withdraws it.
    fn ask_externally(&mut self, token: Token, payload: Value) {
        let Some(approvals) = self.approvals.clone() else {
            let leave = Input::External(token, None);
            return self.arrivals.push(async move { Arrival::Input(leave) }.boxed());
        };
        let (asked, abort) = abortable(async move { approvals.ask(&payload).await });
        self.external.insert(token, abort);
        self.arrivals.push(
            async move {
                match asked.await {
                    Ok(verdict) => Arrival::Input(Input::External(token, Some(verdict))),
                    Err(_withdrawn) => Arrival::Nothing,
                }
            }
            .boxed(),
        );
    }

    /// Sends what was held back.
    fn release(&mut self) {
        if let Some(update) = self.held.release() {
            self.send_update(update);
        }
    }

    fn signal(&self, method: &str, params: &Value) {
        for id in &self.ids {
            let mut params = params.clone();
            if let Value::Object(map) = &mut params {
                map.insert("sessionId".to_owned(), Value::from(&*id.0));
            }
            let message = UntypedMessage { method: method.to_owned(), params };
            self.client.send_notification(message).ok();
        }
    }

    fn send_update(&self, mut update: acp::SessionUpdate) {
        if let acp::SessionUpdate::SessionInfoUpdate(info) = &mut update
            && info.title.is_value()
            && info.updated_at.is_undefined()
        {
            let time = listing::iso_time(self.now().unix_ms);
            *info = std::mem::take(info).updated_at(time);
        }
        let Some((last, others)) = self.ids.split_last() else { return };
        for id in others {
            self.client
                .send_notification(acp::SessionNotification::new(id.clone(), update.clone()))
                .ok();
        }
        // A client that is gone ends the whole bridge; there is nobody left to tell.
        self.client.send_notification(acp::SessionNotification::new(last.clone(), update)).ok();
    }

    fn call(&mut self, token: Token, method: &'static str, params: &Value) {
        let Some(engine) = &self.engine else {
            let lost = Input::Reply(token, Err(EngineError::Closed));
            self.arrivals.push(async move { Arrival::Input(lost) }.boxed());
            return;
        };
        let reply = engine.request(method, params);
        self.arrivals.push(async move { Arrival::Input(Input::Reply(token, reply.await)) }.boxed());
    }

    fn ensure_engine(&mut self, token: Token) {
        let (reply, outcome) = oneshot::channel();
        self.tell_registry(ToRegistry::Engine { cwd: self.machine.seed.cwd.clone(), reply });
        self.arrivals.push(
            async move { Arrival::Engine(token, outcome.await.unwrap_or(Err(EngineError::Closed))) }.boxed(),
        );
    }

    /// Reads what is known of plans; with the live check on this takes a moment.
    fn read_quota(&mut self, req: ReqId) {
        let (config, engine) = (self.config.clone(), self.engine.clone());
        self.arrivals.push(
            async move {
                let given = engine.as_ref().and_then(|engine| engine.provider_table());
                let found =
                    given.map(Path::to_owned).or_else(|| discovery::provider_table(&config));
                let page = quota::page(&config, found.as_deref()).await;
                Arrival::Input(Input::Quota(req, page))
            }
            .boxed(),
        );
    }

    fn respond(&mut self, req: ReqId, result: Result<Value, agent_client_protocol::Error>) {
        if let Some(open) = self.requests.remove(&req) {
            open.abort.abort();
            // The connection may be gone; then nobody waits for the answer.
            open.responder.respond_with_result(result).ok();
        }
    }

    fn adopt(&mut self, req: ReqId, made: Forked) {
        if let Some(Open { responder, abort, .. }) = self.requests.remove(&req) {
            abort.abort();
            let fork = Fork { responder, parent: self.acp_id.clone(), made };
            self.tell_registry(ToRegistry::Adopt(Box::new(fork)));
        }
    }

    fn find_sessions(&mut self, token: Token) {
        let (reply, found) = oneshot::channel();
        self.tell_registry(ToRegistry::Find { cwd: self.machine.seed.cwd.clone(), reply });
        self.arrivals.push(
            async move {
                let found = found.await.unwrap_or_else(|_gone| Err(AcpError::internal_error()));
                Arrival::Input(Input::SessionsFound(token, found))
            }
            .boxed(),
        );
    }

    /// Hands this session's id to another session, with everything that is not answered yet.
    fn take_over(&mut self, what: TakeOver) {
        let TakeOver { req, session, mcp, waiting } = what;
        let adopted = Request::Adopted { title: session.title.clone() };
        let mut requests = Vec::new();
        for (req, request) in std::iter::once((req, adopted)).chain(waiting) {
            if let Some(Open { id, responder, abort }) = self.requests.remove(&req) {
                abort.abort();
                requests.push(Asked { id, request, responder });
            }
        }
        let (reply, successor) = oneshot::channel();
        self.successor = Some(successor);
        let ids = self.ids.clone();
        self.tell_registry(ToRegistry::TakeOver(Box::new(Succession {
            ids,
            session,
            mcp,
            requests,
            reply,
        })));
    }

    /// A history goes to the id that asked for it; the others have it already.
    fn replay(&mut self, req: ReqId, update: acp::SessionUpdate) {
        if self.ids.len() < 2 {
            return self.apply(Effect::Update(Box::new(update)));
        }
        self.release();
        if let Some(open) = self.requests.get(&req) {
            let note = acp::SessionNotification::new(open.id.clone(), update);
            self.client.send_notification(note).ok();
        }
    }

    fn ask_where_prompted(&self, request: &mut acp::CreateElicitationRequest) {
        if let acp::ElicitationMode::Form(form) = &mut request.mode
            && let acp::ElicitationScope::Session(scope) = &mut form.scope
        {
            scope.session_id = self.prompted.clone();
        }
    }

    /// Comes back when the client has taken what it was sent.
    fn await_room(&mut self, token: Token) {
        let outflow = self.outflow.clone();
        self.arrivals.push(
            async move {
                // The connection has to see the updates before the gauge can tell of them.
                for _ in 0..ROUNDS {
                    tokio::task::yield_now().await;
                }
                outflow.ready().await;
                Arrival::Input(Input::Timer(token))
            }
            .boxed(),
        );
    }

    /// The registry's queue is deep and it never waits for a session, so this hardly ever fails;
    /// when it does the message goes as soon as there is room.
    fn tell_registry(&self, message: ToRegistry) {
        if let Err(mpsc::error::TrySendError::Full(message)) = self.registry.try_send(message) {
            let registry = self.registry.clone();
            tokio::spawn(async move { registry.send(message).await.ok() });
        }
    }
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
