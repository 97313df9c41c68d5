//! PURE. The session's event stream: order and completeness (sequence numbers, gaps), which turn an
//! event belongs to, and what is shown of it. The only place where translations of live events are
//! asked for; the work per event is constant.

use std::collections::VecDeque;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Cont, Machine, Token};
use crate::bridge::engine::event::{
    EngineEvent, SessionBody, SessionEvent, SteerDrained, SteerQueued, TurnStarted,
};
use crate::bridge::engine::{EngineError, session_event};
use crate::bridge::translate::CardEnd;
use crate::bridge::translate::stop_reason::{self, Ending};

/// How long missing events are waited for before the stream goes on without them.
const GAP_WITHIN: Duration = Duration::from_secs(5);
/// How many ended turns are remembered for their stragglers.
const REMEMBERED: usize = 16;
/// How many events are held back at most while a gap is filled.
const HELD_MAX: usize = 20_000;

/// A turn that the engine runs for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) turn_id: Option<String>,
    pub(crate) source: Option<String>,
}

/// Events that wait for the ones missing before them.
#[derive(Debug)]
struct Gap {
    call: Token,
    deadline: Option<Token>,
    held: Vec<SessionEvent>,
}

/// What the stream remembers; bounded.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    last_seq: Option<u64>,
    gap: Option<Gap>,
    foreign: Option<Foreign>,
    muted_turns: VecDeque<String>,
    muted_inputs: VecDeque<String>,
}

impl StreamState {
    pub(crate) fn start_at(&mut self, seq: Option<u64>) {
        self.last_seq = seq;
        self.gap = None;
    }

    pub(crate) fn reset(&mut self) {
        self.last_seq = None;
        self.gap = None;
        self.foreign = None;
    }

    pub(crate) fn last_seq(&self) -> Option<u64> {
        self.last_seq
    }

    pub(crate) fn foreign_runs(&self) -> bool {
        self.foreign.is_some()
    }

    /// The turn that the engine runs for itself, where it is named.
    pub(crate) fn foreign_turn(&self) -> Option<&str> {
        self.foreign.as_ref()?.turn_id.as_deref()
    }

    pub(crate) fn foreign_is_over(&mut self) {
        self.foreign = None;
    }

    /// Stragglers of this turn are not shown any more.
    pub(crate) fn mute<'a>(
        &mut self,
        turn_id: Option<String>,
        inputs: impl Iterator<Item = &'a str>,
    ) {
        match turn_id {
            Some(id) => remember(&mut self.muted_turns, id),
            None => inputs.for_each(|id| remember(&mut self.muted_inputs, id.to_owned())),
        }
    }

    pub(crate) fn mute_turn(&mut self, turn_id: Option<&str>) {
        if let Some(id) = turn_id.filter(|_| !self.is_muted(turn_id)) {
            remember(&mut self.muted_turns, id.to_owned());
        }
    }

    pub(crate) fn foreign_started(&mut self, foreign: Foreign) {
        self.foreign = Some(foreign);
    }

    fn is_muted(&self, turn_id: Option<&str>) -> bool {
        turn_id.is_some_and(|id| self.muted_turns.iter().any(|t| t == id))
    }
}

fn remember(list: &mut VecDeque<String>, id: String) {
    if list.len() >= REMEMBERED {
        list.pop_front();
    }
    list.push_back(id);
}

impl Machine {
    pub(crate) fn on_engine(&mut self, event: EngineEvent) {
        match event {
            EngineEvent::Session(event) => self.on_session_event(*event),
            EngineEvent::State(state) => {
                self.note_revision(&state);
                self.on_state(&state);
            }
            EngineEvent::Request(request) => self.on_engine_request(&request),
            EngineEvent::Exited(exit) => self.engine_lost(Some(&exit)),
            EngineEvent::Storage(storage) => self.on_storage(&storage),
            EngineEvent::Frame { topic, params } => self.on_frame(&topic, &params),
            EngineEvent::Other { .. } | EngineEvent::Malformed { .. } => {}
        }
    }

    fn on_session_event(&mut self, mut event: SessionEvent) {
        if self.engine_sid() != Some(event.session_id.as_str()) {
            return;
        }
        if let Some(gap) = self.stream.gap.as_mut() {
            if gap.held.len() < HELD_MAX {
                gap.held.push(event);
                return;
            }
            self.close_gap(Vec::new());
            return self.on_session_event(event);
        }
        if event.seq != 0 {
            if let Some(last) = self.stream.last_seq {
                if event.seq <= last {
                    return;
                }
                if event.first_seq() > last + 1 {
                    return self.open_gap(last, event);
                }
                event.skip_seen(last);
            }
            self.stream.last_seq = Some(event.seq);
        }
        self.deliver(&event);
    }

    /// Asks for the events after the last one by number. Returns whether there is anybody to ask,
    /// and a number to ask from.
    pub(crate) fn ask_missing_events(&mut self, cont: Cont) -> bool {
        let (Some(sid), Some(seq)) = (self.engine_sid(), self.stream.last_seq()) else {
            return false;
        };
        let params = json!({"sessionId": sid, "afterSeq": seq});
        self.call("session/events", params, cont);
        true
    }

    fn open_gap(&mut self, last: u64, event: SessionEvent) {
        let Some(sid) = self.engine_sid() else { return };
        let params = json!({"sessionId": sid, "afterSeq": last});
        let call = self.call("session/events", params, Cont::Gap);
        let deadline = self.timer(GAP_WITHIN, Cont::GapDeadline);
        self.stream.gap = Some(Gap { call, deadline: Some(deadline), held: vec![event] });
    }

    pub(crate) fn on_gap_reply(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        let events = reply.map(|raw| read_events(&raw)).unwrap_or_default();
        self.close_gap(events);
    }

    pub(crate) fn gap_is_late(&mut self) {
        self.close_gap(Vec::new());
    }

    fn close_gap(&mut self, mut events: Vec<SessionEvent>) {
        let Some(mut gap) = self.stream.gap.take() else { return };
        self.forget(gap.call);
        self.cancel_timer(&mut gap.deadline);
        events.append(&mut gap.held);
        self.deliver_missing(events);
    }

    /// Delivers events that came out of order, each once.
    pub(crate) fn deliver_missing(&mut self, mut events: Vec<SessionEvent>) {
        events.sort_by_key(|e| e.seq);
        for mut event in events {
            if event.seq != 0 {
                if let Some(last) = self.stream.last_seq {
                    if event.seq <= last {
                        continue;
                    }
                    event.skip_seen(last);
                }
                self.stream.last_seq = Some(event.seq);
            }
            self.deliver(&event);
        }
    }

    fn deliver(&mut self, event: &SessionEvent) {
        if let Some(turn) = self.turn.as_mut() {
            turn.last_event = self.now.ms;
            turn.probes = 0;
            turn.deaf_probes = 0;
        }
        self.foreign_watch.saw_event(self.now.ms);
        self.steers_see_event();
        let turn_id = event.turn_id.as_deref();
        match &event.body {
            SessionBody::TurnStarted(started) => {
                self.retry_v4();
                self.turn_started(event, started);
            }
            SessionBody::TurnCompleted(done) => {
                self.say_row_results(turn_id);
                self.rows_turn_over(turn_id);
                if self.ends_ours(turn_id, done.input_id.as_deref()) {
                    self.show(event);
                    self.our_turn_completed(done);
                } else {
                    self.foreign_ended(event);
                }
            }
            SessionBody::TurnFailed(failed) => {
                self.say_row_results(turn_id);
                self.rows_turn_over(turn_id);
                if self.ends_ours(turn_id, failed.input_id.as_deref()) {
                    self.our_turn_failed(failed);
                } else {
                    self.foreign_ended(event);
                }
            }
            SessionBody::Updated(updated) => {
                self.v4.legacy_ring |= updated.context_used.is_some();
                self.on_updated(updated);
                if self.retry_was_told(updated) {
                    return;
                }
                self.translate(|t, out| t.on_event(event, out));
            }
            SessionBody::Interaction(mirror) => self.on_mirror(mirror),
            SessionBody::SteerQueued(steer) => {
                self.steers_see(|it| it.on_steer_queued(steer));
                self.revoked_see_queued(steer);
                self.steer_queued(steer);
            }
            SessionBody::SteerDrained(steer) => {
                self.steers_see(|it| it.on_steer_drained(steer));
                self.revoked_see_drained(steer, steer.target_turn_id.is_some());
                self.steer_drained(steer);
            }
            SessionBody::Tool(tool) => {
                self.note_child(tool);
                if self.is_shown_by_child(tool) {
                    return;
                }
                self.show(event);
            }
            SessionBody::Title(title) => {
                self.note_legacy_title(&title.title);
                self.show(event);
            }
            _ => self.show(event),
        }
    }

    /// Translates an event unless its turn is over for the client.
    fn show(&mut self, event: &SessionEvent) {
        if self.stream.is_muted(event.turn_id.as_deref())
            || self.turn_is_muted(event.turn_id.as_deref())
        {
            return;
        }
        if let Some(event) = self.v4.rows.on_legacy(event) {
            self.translate(|t, out| t.on_event(&event, out));
        }
    }

    /// Shows what a V4 row said before the legacy channel did. What belongs to no turn that runs is old.
    pub(crate) fn deliver_row(&mut self, event: &SessionEvent) {
        let turn_id = event.turn_id.as_deref();
        let runs = self.turn.is_some() || self.stream.foreign.is_some();
        if (turn_id.is_none() && !runs)
            || self.stream.is_muted(turn_id)
            || self.turn_is_muted(turn_id)
        {
            return;
        }
        if let Some(turn) = self.turn.as_mut() {
            turn.last_event = self.now.ms;
            turn.probes = 0;
            turn.deaf_probes = 0;
        }
        self.foreign_watch.saw_event(self.now.ms);
        self.translate(|t, out| t.on_event(event, out));
    }

    /// True for what still comes of a turn whose prompt was answered `cancelled` already.
    fn turn_is_muted(&self, turn_id: Option<&str>) -> bool {
        self.turn.as_ref().is_some_and(|t| {
            t.is_cancelled()
                && t.req.is_none()
                && (turn_id.is_none() || t.turn_id.as_deref() == turn_id)
        })
    }

    fn turn_started(&mut self, event: &SessionEvent, started: &TurnStarted) {
        let turn_id = event.turn_id.as_deref();
        self.is_blank = false;
        if self.revoked_starts(turn_id, started) {
            return;
        }
        if self.is_ours_starting(started) {
            self.our_turn_started(turn_id, started);
            return self.show(event);
        }
        if turn_id.is_some() && self.turn.as_ref().is_some_and(|t| t.turn_id.as_deref() == turn_id)
        {
            return;
        }
        let cancelled =
            started.input_id.as_ref().is_some_and(|id| self.stream.muted_inputs.contains(id));
        if cancelled && let Some(id) = turn_id {
            remember(&mut self.stream.muted_turns, id.to_owned());
        }
        self.stream.foreign =
            Some(Foreign { turn_id: event.turn_id.clone(), source: started.input_source.clone() });
        self.watch_foreign();
        if cancelled {
            return self.fire_stop();
        }
        self.steers_see_start(turn_id, started);
        if self.turn.as_ref().is_none_or(|t| t.turn_id.is_none()) {
            self.show(event);
        }
    }

    fn foreign_ended(&mut self, event: &SessionEvent) {
        let ends = match (&self.stream.foreign, event.turn_id.as_deref()) {
            (Some(Foreign { turn_id: Some(ours), .. }), Some(theirs)) => ours == theirs,
            (Some(_), _) => true,
            (None, _) => false,
        };
        let ours_runs = self.turn.as_ref().is_some_and(|t| t.turn_id.is_some());
        if !ours_runs {
            self.show(event);
            self.close_cards(CardEnd::Completed);
        }
        if let SessionBody::TurnFailed(failed) = &event.body
            && !self.stream.is_muted(event.turn_id.as_deref())
        {
            self.foreign_failed(failed);
        }
        if ends {
            self.stream.foreign = None;
            self.unwatch_foreign();
        }
        let reason = match &event.body {
            SessionBody::TurnCompleted(done) => match stop_reason::of(done) {
                Ending::Stop(reason) => reason,
                Ending::Error => acp::StopReason::EndTurn,
            },
            _ => acp::StopReason::EndTurn,
        };
        self.steers_see_foreign_end(event.turn_id.as_deref(), reason);
        self.compact_turn_ended(event);
        self.foreign_turn_ended();
    }

    /// The engine took our prompt as a guide for a turn of its own, or into its queue. Some builds
    /// name a queued input anew; then its text says whose it is.
    fn steer_queued(&mut self, steer: &SteerQueued) {
        let Some(turn) = self.turn.as_mut().filter(|t| t.is_live() && t.turn_id.is_none()) else {
            return;
        };
        if let Some(id) = steer.input_id.as_ref().filter(|id| **id != turn.input_id) {
            let says = steer.input.as_ref().and_then(serde_json::Value::as_str);
            let ours = turn.steered.is_none() && says == Some(turn.input.content.as_str());
            if !ours || steer.is_command() {
                return;
            }
            turn.renamed = Some(id.clone());
        }
        turn.steered = Some(steer.pending_input_id.clone().unwrap_or_default());
    }

    fn steer_drained(&mut self, steer: &SteerDrained) {
        let Some(turn) = self.turn.as_mut() else { return };
        let Some(pending) = turn.steered.as_ref() else { return };
        if !steer.pending_input_ids.is_empty() && !steer.pending_input_ids.contains(pending) {
            return;
        }
        // Merged: that turn is ours from here on.
        turn.steered = None;
        turn.turn_id = steer
            .target_turn_id
            .clone()
            .or_else(|| self.stream.foreign.as_ref().and_then(|f| f.turn_id.clone()));
        if turn.turn_id.is_some() {
            self.stream.foreign = None;
        }
    }
}

/// Reads the `events` of a reply; what cannot be read is left out.
pub(crate) fn read_events(answer: &RawValue) -> Vec<SessionEvent> {
    #[derive(serde::Deserialize)]
    struct Events<'a> {
        #[serde(borrow, default)]
        events: Vec<&'a RawValue>,
    }
    let events =
        serde_json::from_str::<Events<'_>>(answer.get()).map(|e| e.events).unwrap_or_default();
    events.into_iter().filter_map(session_event).collect()
}
