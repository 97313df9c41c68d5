//! PURE. The end of a turn that the engine runs for itself, when it does not come. Prompts may wait behind such a turn (in the
//! engine's queue, or as the turn itself), so its end is looked for like that of a prompt: the events by number first, then
//! whether the session runs anything at all; two idle readings with no event between them end it. A V4 header row that ended
//! while `turn.completed` did not follow shows the loss at once. Nothing here polls: each look has a deadline of silence.

use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;

use super::recovery::{DEAF_LIMIT, SECOND_LOOK, SILENCE, is_idle};
use super::turn::Stage;
use super::turn_rows::LAG;
use super::{Cont, Effect, Machine, Token};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::v4::rows::TurnChange;
use crate::bridge::session::failure;
use crate::bridge::translate::CardEnd;

/// How far the look for its end has come.
#[derive(Debug, Default)]
pub(crate) struct ForeignWatch {
    timer: Option<Token>,
    /// When the session last showed an event (ms).
    last_event: u64,
    looks: u32,
    deaf: u8,
}

impl ForeignWatch {
    pub(crate) fn saw_event(&mut self, now: u64) {
        self.last_event = now;
        self.looks = 0;
        self.deaf = 0;
    }
}

impl Machine {
    /// A foreign turn began, or goes on: its end is due some time after the last event.
    pub(crate) fn watch_foreign(&mut self) {
        if self.foreign_watch.timer.is_some() || !self.stream.foreign_runs() {
            return;
        }
        let now = self.now.ms;
        let quiet = now.saturating_sub(self.foreign_watch.last_event);
        let wait = (SILENCE << self.foreign_watch.looks.min(2)).saturating_sub(quiet).max(1);
        let token = self.timer(Duration::from_millis(wait), Cont::ForeignSilence);
        self.foreign_watch.timer = Some(token);
    }

    /// No foreign turn runs any more.
    pub(crate) fn unwatch_foreign(&mut self) {
        let mut timer = self.foreign_watch.timer.take();
        self.cancel_timer(&mut timer);
        self.foreign_watch.saw_event(self.now.ms);
    }

    pub(crate) fn foreign_is_silent(&mut self) {
        self.foreign_watch.timer = None;
        if !self.stream.foreign_runs() {
            return;
        }
        if self.asks.any_open() {
            self.foreign_watch.last_event = self.now.ms;
        }
        let quiet = self.now.ms.saturating_sub(self.foreign_watch.last_event);
        if quiet >= SILENCE << self.foreign_watch.looks.min(2) {
            self.foreign_watch.looks += 1;
            self.look_for_foreign_end();
        }
        self.watch_foreign();
    }

    fn look_for_foreign_end(&mut self) {
        self.ask_missing_events(Cont::ForeignEvents { ended: None });
        self.read_foreign(false);
    }

    fn read_foreign(&mut self, second: bool) {
        let seen = self.foreign_watch.last_event;
        self.read_state(Cont::ForeignRead { seen, second });
    }

    /// Events that were fetched by number; `ended` is the turn whose header row has ended.
    pub(crate) fn on_foreign_events(
        &mut self,
        ended: Option<&str>,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        if let Ok(answer) = reply {
            self.deliver_missing(super::stream::read_events(&answer));
        }
        if ended.is_some() && self.stream.foreign_turn() == ended {
            self.foreign_end_was_lost();
        }
    }

    pub(crate) fn on_foreign_read(
        &mut self,
        seen: u64,
        second: bool,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        if !self.stream.foreign_runs() || self.foreign_watch.last_event != seen {
            return;
        }
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(snapshot) => {
                self.foreign_watch.deaf = 0;
                if !is_idle(&snapshot) {
                    return;
                }
                if second {
                    return self.foreign_end_was_lost();
                }
                self.timer(SECOND_LOOK, Cont::ForeignSecondLook { seen });
            }
            Err(EngineError::Timeout { .. }) => {
                self.foreign_watch.deaf += 1;
                if self.foreign_watch.deaf >= DEAF_LIMIT {
                    self.emit(Effect::KillEngine);
                }
            }
            Err(error) if error.is_not_active() && self.turn.is_none() => {
                // The engine dropped the session, and its queue with it.
                self.foreign_end_was_lost();
                self.link_lost();
                self.lose_steers();
            }
            Err(_) => {}
        }
    }

    pub(crate) fn foreign_second_look(&mut self, seen: u64) {
        if self.stream.foreign_runs() && self.foreign_watch.last_event == seen {
            self.read_foreign(true);
        }
    }

    /// The header row of a foreign turn ended: its event follows within the lag, or was lost.
    pub(crate) fn on_foreign_header(&mut self, turn_id: Option<&str>, change: &TurnChange) {
        let ended = !matches!(change.state.as_str(), "" | "running");
        if let Some(turn) = turn_id.filter(|it| ended && self.stream.foreign_turn() == Some(it)) {
            self.timer(LAG, Cont::ForeignEndIsMissing { turn: turn.to_owned() });
        }
    }

    pub(crate) fn foreign_end_is_missing(&mut self, turn: String) {
        if self.stream.foreign_turn() != Some(turn.as_str()) {
            return;
        }
        if !self.ask_missing_events(Cont::ForeignEvents { ended: Some(turn) }) {
            self.foreign_end_was_lost();
        }
    }

    /// It is over, and nobody said so: what waited for it goes on.
    pub(crate) fn foreign_end_was_lost(&mut self) {
        let turn_id = self.stream.foreign_turn().map(str::to_owned);
        self.say_row_results(turn_id.as_deref());
        self.rows_turn_over(turn_id.as_deref());
        self.stream.foreign_is_over();
        self.unwatch_foreign();
        if self.turn.as_ref().is_none_or(|it| it.turn_id.is_none()) {
            self.close_cards(CardEnd::Completed);
        }
        self.steers_see_foreign_end(turn_id.as_deref(), acp::StopReason::EndTurn);
        // What the engine has of our own prompt is looked for from now on.
        if let Some(turn) = self.turn.as_mut().filter(|it| it.stage == Stage::Running) {
            turn.last_event = self.now.ms;
            turn.probes = 0;
        }
        self.foreign_turn_ended();
    }
}
