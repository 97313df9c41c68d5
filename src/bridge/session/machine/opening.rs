//! PURE. Getting a session loaded: `session/create` for a new one, `session/resume` for one that
//! the engine knows, then `session/subscribe`. One opening at a time, whoever asks; the askers wait
//! in the link and are served in order.

use agent_client_protocol::Error as AcpError;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::link::{Deaf, LinkState, OpenKind, Waiter};
use super::{Cont, Effect, EngineUp, Machine, Record, ReqId, Token, session_not_found};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;

/// How often a resume is sent before the engine counts as hung. Each try has its 15 s.
const RESUME_TRIES: u8 = 6;

impl Machine {
    /// Runs `waiter` as soon as the session is loaded, loading it when needed.
    pub(crate) fn with_link(&mut self, waiter: Waiter) {
        self.link.waiting.push(waiter);
        match self.link.state {
            LinkState::Up => self.serve_waiters(),
            LinkState::Opening => {}
            LinkState::Down => self.open_link(),
        }
    }

    fn open_link(&mut self) {
        self.link.state = LinkState::Opening;
        let token = self.token(Cont::Engine);
        self.emit(Effect::EnsureEngine { token });
    }

    pub(crate) fn on_engine_ready(&mut self, token: Token, outcome: Result<EngineUp, EngineError>) {
        if self.pending.remove(&token).is_none() || self.link.state != LinkState::Opening {
            return;
        }
        match outcome {
            Err(error) => self.opening_failed(&error),
            Ok(up) => {
                self.meet_engine(up);
                match (self.engine_sid().map(str::to_owned), self.link.workspace.is_some()) {
                    (None, _) => self.create(),
                    (Some(_), true) => self.resume(0),
                    (Some(sid), false) => {
                        self.call("session/list", json!({"sessionIds": [sid]}), Cont::Lookup);
                    }
                }
            }
        }
    }

    fn create(&mut self) {
        let mut params = json!({"workspace": self.link.workspace_ref(&self.seed.cwd)});
        if let Value::Object(map) = &mut params {
            self.settings.add_to_create(map);
            if !self.seed.mcp.is_empty() {
                map.insert("mcpServers".to_owned(), Value::Array(self.seed.mcp.clone()));
            }
        }
        self.call("session/create", params, Cont::Create);
    }

    pub(crate) fn on_created(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        let snapshot = match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(snapshot) => snapshot,
            Err(error) => return self.opening_failed(&error),
        };
        let Some(sid) = session_id(&snapshot) else {
            return self
                .opening_failed(&failure::broken("session/create", "no sessionId in the answer"));
        };
        self.link.bind(sid.clone());
        self.link.hydrated = true;
        self.link.fresh = true;
        self.emit(Effect::Attach(sid));
        self.adopt_snapshot(&snapshot);
        self.record();
        self.subscribe();
    }

    pub(crate) fn on_lookup(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        let found = reply.and_then(|raw| failure::parse(&raw));
        let sid = self.engine_sid().unwrap_or_default().to_owned();
        match found {
            Ok(list) => {
                let info = list.get("sessions").and_then(Value::as_array).and_then(|all| {
                    all.iter().find(|s| s.get("sessionId").and_then(Value::as_str) == Some(&sid))
                });
                let Some(info) = info else { return self.session_is_gone() };
                self.link.workspace = info.get("workspace").cloned().filter(Value::is_object);
                self.adopt_title(info);
                self.resume(0);
            }
            // An engine that cannot filter by id still resumes by id.
            Err(EngineError::Rpc(_)) => self.resume(0),
            Err(error) => self.opening_failed(&error),
        }
    }

    /// `lost` counts the tries before this one that nothing came of.
    pub(crate) fn resume(&mut self, lost: u8) {
        let Some(sid) = self.engine_sid().map(str::to_owned) else { return self.create() };
        self.emit(Effect::Attach(sid.clone()));
        let mut params =
            json!({"sessionId": sid, "workspace": self.link.workspace_ref(&self.seed.cwd)});
        if !self.seed.mcp.is_empty()
            && let Value::Object(map) = &mut params
        {
            map.insert("mcpServers".to_owned(), Value::Array(self.seed.mcp.clone()));
        }
        self.call("session/resume", params, Cont::Resume { lost });
    }

    pub(crate) fn on_resumed(&mut self, lost: u8, reply: Result<Box<RawValue>, EngineError>) {
        match reply.and_then(|raw| Ok((failure::parse(&raw)?, raw))) {
            Ok((snapshot, raw)) => {
                self.link.hydrated = false;
                self.keep_resumed(raw);
                self.adopt_snapshot(&snapshot);
                self.subscribe();
            }
            // A cold engine drops requests; one that reads a long history needs its time.
            Err(EngineError::Timeout { .. }) if lost + 1 < RESUME_TRIES => self.resume(lost + 1),
            Err(EngineError::Timeout { .. }) if self.link.deaf == Deaf::No => {
                // Silent for a minute and a half: it hangs. Its end is heard as an event.
                self.link.deaf = Deaf::Ending;
                self.emit(Effect::KillEngine);
            }
            Err(error) if failure::is_gone(&error) => self.session_is_gone(),
            Err(error) => self.opening_failed(&error),
        }
    }

    /// The engine that did not answer is gone: whoever waits gets another one.
    pub(crate) fn deaf_engine_ended(&mut self) {
        self.link.deaf = Deaf::Replaced;
        self.link.state = LinkState::Down;
        self.reopen_if_wanted();
    }

    /// The engine does not know the session. One that was made here and has nothing to lose is
    /// made again: its engine died before it was stored.
    fn session_is_gone(&mut self) {
        if self.link.fresh {
            if let Some(sid) = self.link.unbind() {
                self.emit(Effect::Detach(sid));
            }
            return self.create();
        }
        self.fail_waiters(&session_not_found(&self.seed.acp_id));
    }

    /// Neither `afterSeq` (0 would return the whole log) nor a snapshot (costs the engine O(n)).
    fn subscribe(&mut self) {
        let Some(sid) = self.engine_sid() else { return };
        let params = json!({"sessionId": sid, "deliveryKind": "desktop-continuous", "includeSnapshot": false});
        self.call("session/subscribe", params, Cont::Subscribe);
    }

    pub(crate) fn on_subscribed(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => {
                self.stream.start_at(answer.get("eventSeq").and_then(Value::as_u64));
                self.link.state = LinkState::Up;
                self.link.resubscribed = 0;
                self.link.deaf = Deaf::No;
                self.repair_settings();
                self.open_v4();
                self.serve_waiters();
                self.open_workspace_topic();
            }
            // Put away between the two steps: loaded again.
            Err(error) if error.is_not_active() && self.subscribes_again() => self.resume(0),
            // A cold engine drops requests.
            Err(EngineError::Timeout { .. }) if self.subscribes_again() => self.subscribe(),
            Err(error) => self.opening_failed(&error),
        }
    }

    /// True the first time in an opening.
    fn subscribes_again(&mut self) -> bool {
        self.link.resubscribed += 1;
        self.link.resubscribed == 1
    }

    fn adopt_snapshot(&mut self, snapshot: &Value) {
        let info = snapshot.get("session").unwrap_or(&Value::Null);
        if let Some(workspace) = info.get("workspace").filter(|w| w.is_object()) {
            self.link.workspace = Some(workspace.clone());
        }
        self.adopt_title(info);
        self.take_settings(snapshot);
        self.take_commands(snapshot);
        self.take_ring(snapshot);
    }

    fn opening_failed(&mut self, error: &EngineError) {
        let died = matches!(error, EngineError::Exited(_) | EngineError::Closed);
        if died && self.link.waiting.iter().any(|w| matches!(w, Waiter::Turn(_))) {
            // The engine died while it loaded the session: a prompt survives that, too.
            self.link.state = LinkState::Down;
            let others = std::mem::take(&mut self.link.waiting);
            self.link.waiting.extend(others.into_iter().filter(|w| !matches!(w, Waiter::Turn(_))));
            if self.recover_turn() {
                return;
            }
            if let Some(n) = self.turn.as_ref().map(|t| t.n) {
                self.link.waiting.push(Waiter::Turn(n));
            }
        }
        self.fail_waiters(&failure::to_acp(error));
    }

    fn fail_waiters(&mut self, error: &AcpError) {
        self.forget_resumed();
        self.link.state = LinkState::Down;
        self.link.resubscribed = 0;
        self.link.deaf = Deaf::No;
        for waiter in std::mem::take(&mut self.link.waiting) {
            match waiter {
                Waiter::Turn(n) => self.turn_failed_to_open(n, error.clone()),
                Waiter::Load { req, .. } => self.load_failed(req, error.clone()),
                Waiter::Open { req, .. }
                | Waiter::Earlier { req, .. }
                | Waiter::Model { req, .. } => {
                    self.respond(req, Err(error.clone()));
                }
                Waiter::Fork(wish) => self.respond(wish.req, Err(error.clone())),
                Waiter::Job(running) => self.respond(running.req, Err(error.clone())),
                Waiter::Setting(change) => self.setting_failed(&change, error.clone()),
            }
        }
        let unknown = error.code == agent_client_protocol::ErrorCode::RESOURCE_NOT_FOUND;
        let knows_none = self.engine_sid().is_none();
        if unknown && !knows_none && self.turn.is_none() && self.queue.is_empty() && !self.ended {
            // Nobody knows this id: keep no task for it.
            self.ended = true;
            self.emit(Effect::Ended);
        }
    }

    fn serve_waiters(&mut self) {
        for waiter in std::mem::take(&mut self.link.waiting) {
            if self.link.state != LinkState::Up {
                self.link.waiting.push(waiter);
                continue;
            }
            match waiter {
                Waiter::Turn(n) => self.turn_linked(n),
                Waiter::Load { req, limit } => self.load_history(req, limit),
                Waiter::Earlier { req, before, limit } => self.load_earlier(req, before, limit),
                Waiter::Open { req, how } => self.answer_open(req, how),
                Waiter::Setting(change) => self.apply_setting(change),
                Waiter::Model { req, by, name } => self.set_by_name(req, by, "model", &name),
                Waiter::Fork(wish) => self.call_fork(wish),
                Waiter::Job(running) => self.run_job(running),
            }
        }
        self.forget_resumed();
    }

    /// The session is no longer loaded (evicted, or its engine is gone): the next use resumes it.
    pub(crate) fn link_lost(&mut self) {
        self.forget_resumed();
        self.link.state = LinkState::Down;
        self.stream.reset();
        self.servers_unchecked();
        self.v4_unlinked();
    }

    /// Begins an opening for whoever waits, if there is anybody.
    pub(crate) fn reopen_if_wanted(&mut self) {
        if self.link.state == LinkState::Down && !self.link.waiting.is_empty() {
            self.open_link();
        }
    }

    /// Writes down what must survive this process.
    pub(crate) fn record(&mut self) {
        self.write_down(None);
    }

    /// Writes down that the id of this request stands for another session now.
    pub(crate) fn record_anew(&mut self, by: ReqId) {
        self.write_down(Some(by));
    }

    fn write_down(&mut self, anew: Option<ReqId>) {
        let record = Record {
            engine_sid: self.engine_sid().map(str::to_owned),
            model: self.settings.chosen_model(),
            thought: self.settings.chosen_thought(),
            anew,
        };
        self.emit(Effect::Record(record));
    }

    pub(crate) fn open_session(
        &mut self,
        req: ReqId,
        replay: bool,
        mcp: Vec<Value>,
        limit: Option<usize>,
    ) {
        if !mcp.is_empty() {
            let changed = self.seed.mcp != mcp;
            self.seed.mcp = mcp;
            // Servers are bound when the engine loads a session; a running turn keeps its own.
            if changed && self.link.state == LinkState::Up && self.turn.is_none() {
                self.link_lost();
            }
        }
        if self.engine_sid().is_none() {
            // A placeholder that was never used: nothing to load, nothing to replay.
            return self.answer_open(
                req,
                if replay { OpenKind::Load { meta: Value::Null } } else { OpenKind::Resume },
            );
        }
        self.with_link(if replay {
            Waiter::Load { req, limit }
        } else {
            Waiter::Open { req, how: OpenKind::Resume }
        });
    }

    pub(crate) fn open_fork(&mut self, req: ReqId) {
        self.with_link(Waiter::Open { req, how: OpenKind::Fork });
    }

    /// Ends the session for this client: a running turn first, then the engine's runtime.
    pub(crate) fn close(&mut self, req: ReqId) {
        self.on_cancel();
        self.end_steers();
        self.ended = true;
        self.settle_turn_asks();
        if let Some(turn) = self.turn.take() {
            self.answer_turn_cancelled(&turn);
        }
        let Some(sid) = self.engine_sid().map(str::to_owned) else {
            self.respond(req, Ok(json!({})));
            return self.emit(Effect::Ended);
        };
        if self.link.state == LinkState::Up {
            self.close_workspace_topic();
            self.call("session/close", json!({"sessionId": sid}), Cont::Close { req });
        } else {
            self.end_tasks_at_close();
            self.respond(req, Ok(json!({})));
            self.emit(Effect::Ended);
        }
    }

    pub(crate) fn on_closed(&mut self, req: ReqId, reply: Result<Box<RawValue>, EngineError>) {
        // The cards come before the answer, after which the client looks at nothing any more.
        self.end_tasks_at_close();
        match reply {
            Ok(_) => self.respond(req, Ok(json!({}))),
            Err(error) if failure::is_gone(&error) || error.is_not_active() => {
                self.respond(req, Ok(json!({})));
            }
            Err(error) => self.respond(req, Err(failure::to_acp(&error))),
        }
        if let Some(sid) = self.engine_sid().map(str::to_owned) {
            self.emit(Effect::Detach(sid));
        }
        self.emit(Effect::Ended);
    }
}

fn session_id(snapshot: &Value) -> Option<String> {
    let session = snapshot.get("session");
    session
        .and_then(|s| s.get("sessionId"))
        .or_else(|| snapshot.get("sessionId"))
        .and_then(Value::as_str)
        .map(str::to_owned)
}
