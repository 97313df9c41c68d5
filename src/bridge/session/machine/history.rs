//! PURE. Reads behind the stream: the history for `session/load` (told from the first reply that has it), the diff of an edit (its result
//! does not carry it) and the to-do list (written some time after the tool's result).

use std::collections::BTreeSet;
use std::time::Duration;

use agent_client_protocol::Error as AcpError;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::link::{OpenKind, Waiter};
use super::{Cont, Effect, Machine, ReqId, Token, Want, invalid_params};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;
use crate::bridge::translate::replay::{Growth, Replay, ReplayError, Wanted};

/// The engine writes to-dos a little after the result.
const TODOS_AGAIN: Duration = Duration::from_millis(600);
/// A read that brings nothing new, this long after the one before, means that the history is whole.
/// Until then it is told as far as it is known. Nothing says it earlier: a resumed session announces
/// no end of its hydration, `runtime` and `projection` are stored figures that do not count messages,
/// and a prefix can end where a turn does, so that it looks whole itself (engine protocol, section
/// 10: two reads in a row that do not grow, 300 ms apart). The answer to the resume is the first one.
const SETTLE_GAP: Duration = Duration::from_millis(300);
/// However much is still coming, the load is answered after this long.
const SETTLE_WITHIN: u64 = 30_000;

/// Reads that are under way for the live stream. At most one of each kind.
#[derive(Debug, Default)]
pub(crate) struct FollowUps {
    diffs: BTreeSet<String>,
    diffs_wanted: BTreeSet<String>,
    todos: Option<Token>,
    todos_dirty: bool,
    todos_again: Option<Token>,
    replaying: usize,
    /// The answer to a resume, while somebody waits who wants the history that is in it.
    resumed: Option<Box<RawValue>>,
}

/// How much history is told before the client is waited for (bytes of the engine's text).
const PORTION: usize = 128 * 1024;

/// A history that is being read and told.
#[derive(Debug)]
pub(crate) struct Loading {
    req: ReqId,
    wanted: Wanted,
    since: u64,
    retried: bool,
    /// What is known of it.
    replay: Option<Replay>,
    /// It grows no more.
    settled: bool,
}

impl Machine {
    pub(crate) fn on_want(&mut self, want: Want) {
        match want {
            Want::EditDiff { tool_call_id } => {
                self.follow.diffs_wanted.insert(tool_call_id);
                self.read_diffs();
            }
            Want::Todos if self.v4.tells_plan && self.v4.is_live() => {}
            Want::Todos => {
                if self.follow.todos.is_some() {
                    self.follow.todos_dirty = true;
                } else {
                    self.read_todos(false);
                }
            }
            Want::Mode => self.read_settings(),
        }
    }

    fn read_diffs(&mut self) {
        if !self.follow.diffs.is_empty() || self.follow.diffs_wanted.is_empty() {
            return;
        }
        let Some(sid) = self.engine_sid() else { return };
        let mut params = json!({"sessionId": sid, "limit": 60});
        if let (Some(anchor), Value::Object(map)) =
            (self.turn.as_ref().and_then(|t| t.anchor.as_ref()), &mut params)
        {
            map.insert("afterMessageId".to_owned(), json!(anchor));
        }
        self.follow.diffs = std::mem::take(&mut self.follow.diffs_wanted);
        self.call("session/messages", params, Cont::Diffs);
    }

    pub(crate) fn on_diffs(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        let wanted = std::mem::take(&mut self.follow.diffs);
        if let Ok(answer) = reply.and_then(|raw| failure::parse_whole(&raw)) {
            let messages = answer.get("messages").and_then(Value::as_array);
            let parts =
                messages.into_iter().flatten().filter_map(|m| m.get("parts")?.as_array()).flatten();
            for part in parts {
                let id = part.get("callId").or_else(|| part.get("callID")).and_then(Value::as_str);
                let display = part.get("state").and_then(|s| s.get("metadata")?.get("display"));
                if let (Some(id), Some(display)) = (id.filter(|id| wanted.contains(*id)), display) {
                    self.translate(|t, out| t.on_edit_display(id, display, out));
                }
            }
        }
        self.read_diffs();
    }

    pub(crate) fn read_todos(&mut self, again: bool) {
        if again {
            self.follow.todos_again = None;
        }
        if self.follow.todos.is_some() {
            return;
        }
        let Some(token) = self.read_state(Cont::Todos) else { return };
        self.follow.todos = Some(token);
        self.follow.todos_dirty = false;
        if !again && self.follow.todos_again.is_none() {
            let timer = self.timer(TODOS_AGAIN, Cont::TodosAgain);
            self.follow.todos_again = Some(timer);
        }
    }

    pub(crate) fn on_todos(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        self.follow.todos = None;
        if let Ok(snapshot) = reply.and_then(|raw| failure::parse(&raw)) {
            self.take_ring(&snapshot);
            let changed = self.translate(|t, out| t.on_todos(&snapshot, out));
            if changed {
                let mut again = self.follow.todos_again.take();
                self.cancel_timer(&mut again);
            }
        }
        if std::mem::take(&mut self.follow.todos_dirty) {
            self.read_todos(false);
        }
    }

    /// Begins `session/load`.
    pub(crate) fn load_history(&mut self, req: ReqId, limit: Option<usize>) {
        let turn_active = self.turn.is_some() || self.stream.foreign_runs();
        self.load(req, Wanted { limit, before: None, turn_active });
    }

    /// `load_earlier`: the page of history before a cursor.
    pub(crate) fn load_earlier(&mut self, req: ReqId, before: String, limit: usize) {
        self.load(req, Wanted { limit: Some(limit), before: Some(before), turn_active: false });
    }

    fn load(&mut self, req: ReqId, wanted: Wanted) {
        let since = self.now.ms;
        let mut loading =
            Loading { req, wanted, since, retried: false, replay: None, settled: false };
        let resumed = self.follow.resumed.take();
        loading.replay = resumed
            .and_then(|snapshot| Replay::new(snapshot.into(), loading.wanted.clone()).ok())
            .filter(|replay| replay.total() > 0);
        if loading.replay.is_some() {
            self.tell_history(loading, Growth::Some);
        } else {
            self.read_history(loading);
        }
    }

    /// Keeps the answer to a resume for whoever loads the session: it has the history in it.
    pub(crate) fn keep_resumed(&mut self, snapshot: Box<RawValue>) {
        let loads = self.link.waiting.iter().any(|waiter| matches!(waiter, Waiter::Load { .. }));
        self.follow.resumed = loads.then_some(snapshot);
    }

    /// Nobody is left who would need it.
    pub(crate) fn forget_resumed(&mut self) {
        self.follow.resumed = None;
    }

    /// Reads the history, or what may have been added to what is known of it.
    pub(crate) fn read_history(&mut self, loading: Loading) {
        let Some(sid) = self.engine_sid() else { return };
        let params = match loading.replay.as_ref().and_then(Replay::anchor) {
            Some(anchor) => json!({"sessionId": sid, "afterMessageId": anchor}),
            None => json!({"sessionId": sid}),
        };
        self.call("session/messages", params, Cont::History(Box::new(loading)));
    }

    pub(crate) fn on_history(
        &mut self,
        mut loading: Loading,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        let raw = match reply {
            Ok(raw) => raw,
            // A failed read is not an empty history.
            Err(_) if !loading.retried => {
                loading.retried = true;
                return self.read_history(loading);
            }
            Err(error) => return self.load_failed(loading.req, failure::to_acp(&error)),
        };
        // What a turn adds is told as it happens, and an engine that runs one has read everything.
        let begun =
            !loading.wanted.turn_active && (self.turn.is_some() || self.stream.foreign_runs());
        let growth = match &mut loading.replay {
            Some(_) if begun => Ok(Growth::None),
            Some(replay) => replay.absorb(raw.into()),
            None => Replay::new(raw.into(), loading.wanted.clone()).map(|replay| {
                loading.replay = Some(replay);
                Growth::Some
            }),
        };
        match growth {
            Ok(growth) => self.tell_history(loading, growth),
            Err(error @ ReplayError::CursorExpired) => {
                self.load_failed(loading.req, invalid_params(error.to_string()));
            }
            Err(error) => {
                self.load_failed(loading.req, AcpError::internal_error().data(error.to_string()));
            }
        }
    }

    fn tell_history(&mut self, mut loading: Loading, growth: Growth) {
        let late = self.now.ms.saturating_sub(loading.since) >= SETTLE_WITHIN;
        loading.settled = growth == Growth::None || late || self.link.hydrated;
        self.link.hydrated |= loading.settled;
        // A part of it, or a turn that runs, can be told when its end is known.
        let in_parts = loading.wanted.limit.is_none() && !loading.wanted.turn_active;
        if loading.settled || in_parts {
            self.follow.replaying += 1;
            self.replay_on(loading);
        } else {
            self.read_later(loading);
        }
    }

    fn read_later(&mut self, loading: Loading) {
        self.timer(SETTLE_GAP, Cont::HistoryAgain(Box::new(loading)));
    }

    /// Tells the next part. A client that reads slowly is waited for between two parts, so that a
    /// history of any length needs little memory beside the engine's text.
    pub(crate) fn replay_on(&mut self, mut loading: Loading) {
        let mut told = 0;
        while told < PORTION {
            let next = loading.replay.as_mut().and_then(|replay| replay.next(&self.target));
            let Some((size, updates)) = next else { return self.replayed(loading) };
            told += size;
            let req = loading.req;
            let told =
                updates.into_iter().map(|update| Effect::Replay { req, update: Box::new(update) });
            self.out.extend(told);
        }
        let token = self.token(Cont::ReplayOn(Box::new(loading)));
        self.emit(Effect::Room { token });
    }

    /// True while events have to wait so that they do not come between old messages.
    pub(crate) fn is_replaying(&self) -> bool {
        self.follow.replaying > 0
    }

    /// All that is known was told.
    fn replayed(&mut self, mut loading: Loading) {
        self.follow.replaying = self.follow.replaying.saturating_sub(1);
        if !loading.settled {
            if let Some(replay) = &mut loading.replay {
                replay.forget_told();
            }
            return self.read_later(loading);
        }
        let meta = loading.replay.as_ref().map_or(Value::Null, Replay::meta);
        if loading.wanted.before.is_some() {
            return self.respond(loading.req, Ok(json!({"replayMeta": meta})));
        }
        self.read_tail(loading.req, meta);
    }

    /// What stands beside the messages: to-dos and the ring, told before the answer.
    fn read_tail(&mut self, req: ReqId, meta: Value) {
        self.read_state(Cont::LoadTail { req, meta });
    }

    /// Reads how the session stands: settings, to-dos, the ring, whether a turn runs. Without the conversation, which an
    /// engine would send along. `None` when there is no session to read.
    pub(crate) fn read_state(&mut self, cont: Cont) -> Option<Token> {
        let params = json!({"sessionId": self.engine_sid()?, "messageLimit": 1});
        Some(self.call("session/read", params, cont))
    }

    pub(crate) fn on_load_tail(
        &mut self,
        req: ReqId,
        meta: Value,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        if let Ok(snapshot) = reply.and_then(|raw| failure::parse(&raw)) {
            self.translate(|t, out| t.on_todos_loaded(&snapshot, out));
            self.take_ring(&snapshot);
        }
        self.show_ring_again();
        if self.is_adopting(req) {
            self.adopted(req);
        } else if !self.was_cancelled(req) {
            self.answer_open(req, OpenKind::Load { meta });
        }
    }
}
