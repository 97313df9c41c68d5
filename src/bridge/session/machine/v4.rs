//! PURE. The session on the V4 channel: probed once for each engine process, subscribed to its own topic, asked again when
//! frames are missing, and given up when the engine does not know it or keeps failing. What the rows say goes the
//! same way as the legacy events (`stream`), joined by `translate::rows` so that nothing is shown twice.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::link::LinkState;
use super::{Cont, Effect, EngineUp, Machine, Token, V4Word};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::{SessionBody, SessionEvent, StateUpdated, TitleUpdated};
use crate::bridge::engine::v4::commands::{
    self, Command, Flow, FlowParams, MAX_ROWS_RANGE, ResyncParams, RowsRangeParams, Stamp,
    Subscribe, Unsubscribe,
};
use crate::bridge::engine::v4::rows::Fact;
use crate::bridge::engine::v4::state::{BackgroundWork, Meta, Queue, StatePatch};
use crate::bridge::engine::v4::topic::{Ack, History, Resync, Topic};
use crate::bridge::engine::v4::wire::{RowId, RowsRange};
use crate::bridge::session::failure;
use crate::bridge::translate::rows::{self, Rows};
use crate::bridge::translate::usage;

/// Resyncs within [`RESYNC_WINDOW`] after which the channel is left alone until the next loading.
const RESYNC_LIMIT: u32 = 8;
/// Milliseconds that failed resyncs are counted for.
const RESYNC_WINDOW: u64 = 30_000;
/// How many titles are remembered.
const TITLES: usize = 8;
/// How long a resync may stay unanswered by frames.
const RESYNC_PATIENCE: Duration = Duration::from_secs(10);

/// How often a topic was asked for again lately: an engine whose frames are all broken must not be asked for ever.
#[derive(Debug, Default)]
pub(super) struct Resyncs {
    count: u32,
    since: u64,
}

impl Resyncs {
    /// Counts one more; false when it is one too many.
    pub(super) fn may_ask(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.since) > RESYNC_WINDOW {
            *self = Self { count: 0, since: now };
        }
        self.count += 1;
        self.count <= RESYNC_LIMIT
    }
}

/// The V4 side of a session.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not one state")]
pub(crate) struct V4 {
    connection_id: String,
    pub(crate) main: Option<Topic>,
    pub(crate) rows: Rows,
    /// `v4/connection/flow` is unknown to this engine.
    absent: bool,
    /// It was answered: commands work.
    known: bool,
    /// It was answered before the session was loaded.
    told_early: bool,
    /// Other sessions wait for what is found out here.
    finds_out: bool,
    saturated: bool,
    resyncs: Resyncs,
    patience: Option<Token>,
    /// State keys as they were last said.
    pub(crate) queue: Queue,
    /// The queue as the client was told it.
    pub(crate) queue_told: Option<Value>,
    pub(crate) works: Vec<BackgroundWork>,
    pub(crate) goal: Value,
    pub(crate) workspace: super::workspace::Workspace,
    pub(crate) children: super::children::Children,
    /// The legacy channel, which is earlier, tells the ring itself.
    pub(crate) legacy_ring: bool,
    /// The last titles that the legacy channel told: the same ones are no news.
    legacy_titles: VecDeque<String>,
    /// The to-do list comes by V4: it need not be read.
    pub(crate) tells_plan: bool,
    /// What `control` last said of errors and retries.
    pub(crate) trouble: super::turn_rows::Trouble,
    facts: Vec<Fact>,
    events: Vec<SessionEvent>,
}

impl V4 {
    pub(crate) fn new(nonce: &str) -> Self {
        Self { connection_id: format!("zcode-acp-{nonce}"), ..Self::default() }
    }

    /// True while frames flow and nothing of them is missing.
    pub(crate) fn is_live(&self) -> bool {
        self.main.as_ref().is_some_and(|it| !it.is_stale())
    }

    /// True when the engine has answered on this channel.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    pub(crate) fn connection_id(&self) -> &str {
        &self.connection_id
    }
}

impl Machine {
    /// An engine is there. The first session that one gets asks at once, before it is loaded itself, so that the answer is
    /// there when it (or another one that began at the same time) could subscribe.
    pub(crate) fn meet_engine(&mut self, up: EngineUp) {
        if self.link.generation != up.generation {
            self.link.generation = up.generation;
            (self.v4.absent, self.v4.known, self.v4.finds_out) = (false, false, false);
            self.usage.meet_engine();
        }
        self.v4.told_early = false;
        match up.v4 {
            V4Word::FindOut => {
                self.v4.finds_out = true;
                self.drain_v4();
            }
            V4Word::Known(there) => self.on_v4_known(up.generation, there),
            V4Word::Awaited => {}
        }
    }

    /// What another session found out of the engine.
    pub(crate) fn on_v4_known(&mut self, generation: u64, there: bool) {
        if generation == self.link.generation && !there && !self.v4.absent {
            self.v4_is_absent();
        }
    }

    fn v4_is_absent(&mut self) {
        self.v4.absent = true;
        self.usage.engine_has_no_v4();
        self.v4_lost();
    }

    /// Says that this connection takes frames, which an engine without the channel refuses.
    fn drain_v4(&mut self) {
        let flow =
            FlowParams { connection_id: self.v4.connection_id.clone(), state: Flow::Drained };
        self.call("v4/connection/flow", json!(flow), Cont::V4Flow);
    }

    /// The session was loaded: ask for its topic. Both requests go at once, so that the prompt that follows is already seen
    /// by the subscription. Where nobody has found out yet, an engine without V4 refuses both.
    pub(crate) fn open_v4(&mut self) {
        if !self.v4_may_be_there() {
            return;
        }
        self.v4.saturated = false;
        if !std::mem::take(&mut self.v4.told_early) {
            self.drain_v4();
        }
        self.subscribe_v4();
    }

    /// Nothing has shown yet that this engine lacks the channel.
    pub(crate) fn v4_may_be_there(&self) -> bool {
        !self.v4.absent && self.usage.engine_knows_v4()
    }

    pub(crate) fn on_v4_flow(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        self.v4.known = reply.is_ok();
        let absent = reply.is_err_and(|error| error.is_unknown_method());
        if std::mem::take(&mut self.v4.finds_out) {
            let found = if absent { Some(false) } else { self.v4.known.then_some(true) };
            self.emit(Effect::TellV4(found));
        }
        if absent {
            self.v4_is_absent();
        } else {
            self.v4.told_early = self.v4.known && self.link.state == LinkState::Opening;
        }
    }

    fn subscribe_v4(&mut self) {
        let Some(sid) = self.engine_sid().map(str::to_owned) else { return };
        let name = commands::conversation_topic(&sid);
        if self.v4.main.as_ref().is_none_or(|it| it.name() != name) {
            self.v4.main = Some(Topic::new(name.as_str(), History::Skip));
        }
        self.v4.rows.expect(true);
        let base = self.v4.main.as_ref().and_then(Topic::base);
        let params =
            Subscribe::new(&name, &self.v4.connection_id, self.link.workspace.clone(), base);
        self.call("v4/conversation/subscribe", json!(params), Cont::V4Subscribe { topic: name });
    }

    pub(crate) fn on_v4_subscribed(
        &mut self,
        name: &str,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        let Some(topic) = self.v4.main.as_mut().filter(|it| it.name() == name) else {
            return self.on_child_subscribed(name, reply);
        };
        let answer = match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => answer,
            Err(error) => {
                self.v4.absent |= error.is_unknown_method();
                return self.v4_lost();
            }
        };
        let ack: Ack = answer
            .get("ack")
            .cloned()
            .and_then(|it| serde_json::from_value(it).ok())
            .unwrap_or_default();
        let mut facts = std::mem::take(&mut self.v4.facts);
        let resync = topic.subscribed(&ack, self.now.ms, &mut facts);
        self.take_facts(facts);
        self.after_frame(resync);
    }

    /// A turn started although the topic is not subscribed (the engine refused it before the session was stored).
    pub(crate) fn retry_v4(&mut self) {
        if !self.v4.absent
            && self.v4.main.is_none()
            && self.link.state == LinkState::Up
            && self.v4.resyncs.may_ask(self.now.ms)
        {
            self.subscribe_v4();
        }
    }

    /// The session is no longer loaded: its subscriptions are gone, what is known is kept.
    pub(crate) fn v4_unlinked(&mut self) {
        if let Some(topic) = self.v4.main.as_mut() {
            topic.unsubscribed();
        }
        self.v4.rows.set_live(false);
        self.forget_children();
        let mut patience = self.v4.patience.take();
        self.cancel_timer(&mut patience);
    }

    /// The channel is given up; the legacy channel goes on where the rows stopped.
    fn v4_lost(&mut self) {
        if let Some(topic) = self.v4.main.take() {
            self.unsubscribe(&topic);
        }
        self.v4_unlinked();
        self.v4.rows.expect(false);
    }

    /// Nobody listens to the topic any more: the engine need not send its frames.
    pub(super) fn unsubscribe(&mut self, topic: &Topic) {
        let Some(subscription) = topic.subscription_id() else { return };
        let params = Unsubscribe {
            topic: topic.name().to_owned(),
            subscription_id: subscription.to_owned(),
            connection_id: self.v4.connection_id.clone(),
        };
        self.call("v4/conversation/unsubscribe", json!(params), Cont::Ignore);
    }

    pub(crate) fn on_frame(&mut self, topic: &str, params: &RawValue) {
        let mut facts = std::mem::take(&mut self.v4.facts);
        let Some(main) = self.v4.main.as_mut().filter(|it| it.name() == topic) else {
            self.v4.facts = facts;
            if !self.on_workspace_frame(topic, params) {
                self.on_child_frame(topic, params);
            }
            return;
        };
        let resync = main.on_frame(params.get(), self.now.ms, &mut facts);
        self.take_facts(facts);
        self.after_frame(resync);
    }

    fn after_frame(&mut self, resync: Option<Resync>) {
        if let Some(reason) = resync {
            self.resync(&reason);
        }
        let live = self.v4.is_live();
        self.v4.rows.set_live(live);
        if live {
            let mut patience = self.v4.patience.take();
            self.cancel_timer(&mut patience);
        }
    }

    fn resync(&mut self, reason: &Resync) {
        if let Resync::Hole { before, picture } = reason {
            let Some(sid) = self.engine_sid().map(str::to_owned) else { return };
            let topic = commands::conversation_topic(&sid);
            self.patience();
            return self.ask_for_rows(&sid, topic, before, *picture);
        }
        let may_ask = self.v4.resyncs.may_ask(self.now.ms);
        let Some(topic) = self.v4.main.as_ref().filter(|_| may_ask) else {
            return self.v4_lost();
        };
        let params = resync_params(topic, &self.v4.connection_id, reason);
        self.call("v4/conversation/resync", json!(params), Cont::V4Resync);
        self.patience();
    }

    fn patience(&mut self) {
        if self.v4.patience.is_none() {
            self.v4.patience = Some(self.timer(RESYNC_PATIENCE, Cont::V4Patience));
        }
    }

    /// Asks for the rows before the oldest one of a picture.
    pub(crate) fn ask_for_rows(
        &mut self,
        session: &str,
        topic: String,
        before: &RowId,
        picture: u64,
    ) {
        let params = RowsRangeParams::new(session, Some(before.clone()), MAX_ROWS_RANGE);
        self.call("v4/conversation/rowsRange", json!(params), Cont::V4Rows { topic, picture });
    }

    pub(crate) fn on_v4_rows(
        &mut self,
        name: &str,
        picture: u64,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        let page = reply.ok().and_then(|raw| serde_json::from_str::<RowsRange>(raw.get()).ok());
        let now = self.now.ms;
        let mut facts = std::mem::take(&mut self.v4.facts);
        let Some(main) = self.v4.main.as_mut().filter(|it| it.name() == name) else {
            self.v4.facts = facts;
            return self.on_child_rows(name, picture, page);
        };
        let resync = main.older_rows(picture, page, now, &mut facts);
        self.take_facts(facts);
        self.after_frame(resync);
    }

    pub(crate) fn on_v4_resynced(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => {
                let ack = answer
                    .get("ack")
                    .cloned()
                    .and_then(|it| serde_json::from_value::<Ack>(it).ok());
                if let (Some(ack), Some(topic)) = (ack, self.v4.main.as_mut()) {
                    let mut facts = std::mem::take(&mut self.v4.facts);
                    let resync = topic.resynced(&ack, self.now.ms, &mut facts);
                    self.take_facts(facts);
                    self.after_frame(resync);
                }
            }
            // An engine that forgot the subscription: begin a new one.
            Err(EngineError::Rpc { .. }) if self.v4.main.is_some() => {
                if let Some(topic) = self.v4.main.as_mut() {
                    topic.unsubscribed();
                }
                self.v4.rows.set_live(false);
                self.subscribe_v4();
            }
            Err(_) => self.v4_lost(),
        }
    }

    /// A resync was asked for and no usable frame came.
    pub(crate) fn v4_patience_is_over(&mut self) {
        self.v4.patience = None;
        if !self.v4.is_live() {
            self.v4_lost();
        }
    }

    /// The client lags or has caught up: the engine holds frames back or sends again.
    pub(crate) fn on_pressure(&mut self, pressed: bool) {
        if self.v4.main.as_ref().is_none_or(|it| it.subscription_id().is_none())
            || self.v4.saturated == pressed
        {
            return;
        }
        self.v4.saturated = pressed;
        let state = if pressed { Flow::Saturated } else { Flow::Drained };
        let params = FlowParams { connection_id: self.v4.connection_id.clone(), state };
        self.call("v4/connection/flow", json!(params), Cont::Ignore);
    }

    fn take_facts(&mut self, mut facts: Vec<Fact>) {
        let mut plan = None;
        for fact in facts.drain(..) {
            if let Fact::State(patch) = &fact
                && let Some(list) = patch.plan.as_ref().filter(|it| it.is_object())
            {
                plan = Some(list.clone());
            }
            self.on_fact(&fact);
        }
        // Of several lists in one frame only the last is still true.
        if let Some(plan) = plan {
            let items = plan.get("items").and_then(Value::as_array);
            self.v4.tells_plan |= items.is_some_and(|it| !it.is_empty());
            self.translate(|t, out| t.on_todos(&plan, out));
        }
        self.v4.facts = facts;
    }

    fn on_fact(&mut self, fact: &Fact) {
        match fact {
            Fact::State(patch) => self.on_v4_state(patch),
            Fact::Snapshot { initial, hole, running, unsaid, nameless } => {
                self.v4.rows.miss(unsaid);
                let begun = self.turn.as_ref().is_some_and(|it| it.turn_id.is_some())
                    || self.stream.foreign_runs();
                if *nameless && (*hole || (*initial && (*running || begun))) {
                    self.v4.rows.wait_for_the_end();
                }
            }
            Fact::Turn(head, change) => self.on_turn_row(head.turn_id.as_deref(), change),
            Fact::UserInput(head, said) => {
                if let Some(command) = &said.source_command_id {
                    if said.guided {
                        self.steers_see(|it| it.on_guided_row(command));
                    }
                    self.revoked_see_row(command, said.guided, head.turn_id.as_deref());
                }
            }
            Fact::Subagent(head, change) => self.on_subagent_row(head, change),
            // One that was asked for here is answered here.
            Fact::Marker(head, marker) if !self.compact.is_running() => {
                if let Some(card) = rows::marker_card(head, marker) {
                    self.update(card);
                }
            }
            _ => {
                let Some(sid) = self.engine_sid().map(str::to_owned) else { return };
                if !self.rows_may_speak(fact) {
                    return;
                }
                let mut events = std::mem::take(&mut self.v4.events);
                self.v4.rows.on_fact(&sid, fact, &mut events);
                for event in events.drain(..) {
                    self.deliver_row(&event);
                }
                self.v4.events = events;
            }
        }
    }

    /// False for rows of a turn whose start the events have not told, while another one runs or none: they would be shown as
    /// that one's, or not at all. The events tell such a turn alone.
    fn rows_may_speak(&mut self, fact: &Fact) -> bool {
        let Some(head) = fact.head().filter(|it| it.kind.speaks()) else { return true };
        let Some(turn) = &head.turn_id else {
            return self.turn.is_some() || self.stream.foreign_runs();
        };
        if self.v4.rows.has_begun(turn) || self.v4.rows.tells_of(turn) {
            return true;
        }
        self.v4.rows.miss(std::slice::from_ref(turn));
        false
    }

    fn on_v4_state(&mut self, patch: &StatePatch) {
        if let Some(queue) = &patch.queue {
            self.v4.queue.clone_from(queue);
            self.steers_see(|it| it.on_queue(&queue.items));
            self.revoked_see_queue(&queue.items);
            self.queue_changed();
            self.watch_the_queue();
        }
        if !self.v4.legacy_ring
            && let Some(reading) = patch.usage.as_ref().and_then(usage::reading_v4)
        {
            self.translate(|t, out| t.on_usage_reading(reading, out));
        }
        if let Some(meta) = &patch.meta {
            self.on_v4_title(meta);
        }
        if let Some(control) = &patch.control {
            self.on_v4_control(control);
        }
        if let Some(subagents) = &patch.subagents {
            self.on_subagents(subagents);
        }
        if let Some(works) = &patch.background_works {
            self.v4.works.clone_from(works);
        }
        if let Some(goal) = &patch.goal {
            self.v4.goal.clone_from(goal);
        }
    }

    /// The legacy channel told a title.
    pub(super) fn note_legacy_title(&mut self, title: &str) {
        let titles = &mut self.v4.legacy_titles;
        titles.push_back(title.to_owned());
        if titles.len() > TITLES {
            titles.pop_front();
        }
    }

    /// The title, where the legacy channel has not told it.
    fn on_v4_title(&mut self, meta: &Meta) {
        let Some(sid) = self.engine_sid().map(str::to_owned) else { return };
        let title = meta.title.clone().filter(|it| !it.is_empty());
        let chosen = meta.title_source.as_deref().is_some_and(|it| it != "default");
        let is_news = |it: &String| !self.v4.legacy_titles.contains(it);
        if let Some(title) = title.filter(|it| chosen && is_news(it)) {
            let body =
                SessionBody::Title(TitleUpdated { title, source: meta.title_source.clone() });
            let event = SessionEvent { session_id: sid, seq: 0, turn_id: None, body };
            self.translate(|t, out| t.on_event(&event, out));
        }
    }

    /// What only the rows had of the tools of a turn that ends.
    pub(crate) fn say_row_results(&mut self, turn_id: Option<&str>) {
        for event in self.v4.rows.results(turn_id) {
            self.deliver_row(&event);
        }
    }

    /// Sends a `v4/command`; the reply comes back under `cont`. Returns the command's id.
    pub(crate) fn v4_command(
        &mut self,
        command: &Command,
        cont: impl FnOnce(String) -> Cont,
    ) -> Option<String> {
        let sid = self.engine_sid()?.to_owned();
        let stamp = Stamp {
            command_id: self.command_id(),
            issued_at: self.now.unix_ms,
            base_revision: self.revision,
        };
        let params = commands::command(&sid, &stamp, command);
        self.call("v4/command", params, cont(stamp.command_id.clone()));
        Some(stamp.command_id)
    }

    /// Remembers the state revision, which some commands have to name.
    pub(crate) fn note_revision(&mut self, state: &StateUpdated) {
        if state.session_id.is_none() || state.session_id.as_deref() == self.engine_sid() {
            self.revision = state.revision.as_ref().and_then(Value::as_u64).or(self.revision);
        }
    }

    /// A fresh id for a command.
    pub(crate) fn command_id(&mut self) -> String {
        let n = self.next;
        self.next += 1;
        format!("{}-{n}", self.seed.nonce)
    }
}

pub(crate) fn resync_params(topic: &Topic, connection_id: &str, reason: &Resync) -> ResyncParams {
    let by_pieces = matches!(reason, Resync::Gap { .. });
    ResyncParams {
        subscription_id: topic.subscription_id().unwrap_or_default().to_owned(),
        topic: topic.name().to_owned(),
        connection_id: connection_id.to_owned(),
        base: if by_pieces { topic.base() } else { None },
        force_snapshot: !by_pieces,
    }
}
