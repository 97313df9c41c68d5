//! PURE. What V4 says of a turn as a whole: the model requests that are tried again, and the header row that ends. Retries are
//! told once, whichever channel is first. An ended header whose `turn.completed` does not follow shows at once that this event
//! was lost: it is fetched by number, and when it cannot be had, the header's own state ends the prompt.

use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::turn::Stage;
use super::{Cont, Machine};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::{SessionUpdated, TurnFailed};
use crate::bridge::engine::v4::rows::TurnChange;
use crate::bridge::engine::v4::state::Control;
use crate::bridge::translate::notice;

/// How long the legacy channel may lag behind the header row: it flushes every 250 ms.
pub(super) const LAG: Duration = Duration::from_secs(1);

/// Errors and retries, as V4 tells them.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// The attempt the user was told of.
    told: Option<u64>,
    last_error: Option<Value>,
    /// The end state of our turn's header, while its event is awaited.
    ended: Option<(u64, String)>,
}

impl Machine {
    pub(crate) fn on_v4_control(&mut self, control: &Control) {
        self.v4.trouble.last_error = control.last_error.clone().filter(|it| !it.is_null());
        let Some(retry) = control.api_retry.as_ref().filter(|it| it.is_object()) else {
            return;
        };
        if self.turn.is_none() || !self.retry_is_news(retry) {
            return;
        }
        let (title, words) = notice::retry_words(retry);
        self.warn(&title, words.as_deref());
    }

    /// A retry on the legacy channel: true when V4 told it already.
    pub(crate) fn retry_was_told(&mut self, updated: &SessionUpdated) -> bool {
        updated.api_retry.as_ref().is_some_and(|it| !self.retry_is_news(it))
    }

    fn retry_is_news(&mut self, retry: &Value) -> bool {
        let attempt = retry.get("attempt").and_then(Value::as_u64);
        let known = attempt.is_some() && self.v4.trouble.told == attempt;
        self.v4.trouble.told = attempt;
        !known
    }

    /// A turn's header row changed.
    pub(crate) fn on_turn_row(&mut self, turn_id: Option<&str>, change: &TurnChange) {
        let ours = self.turn.as_ref().filter(|it| {
            it.stage == Stage::Running && turn_id.is_some() && it.turn_id.as_deref() == turn_id
        });
        let Some(n) = ours.map(|it| it.n) else {
            return self.on_foreign_header(turn_id, change);
        };
        if matches!(change.state.as_str(), "" | "running") {
            self.v4.trouble.ended = None;
            return;
        }
        self.v4.trouble.ended = Some((n, change.state.clone()));
        self.timer(LAG, Cont::EndIsMissing { n });
    }

    fn ended_as(&self, n: u64) -> Option<String> {
        let running = self.turn.as_ref().is_some_and(|it| it.n == n && it.stage == Stage::Running);
        let (of, state) = self.v4.trouble.ended.as_ref()?;
        (running && *of == n).then(|| state.clone())
    }

    /// The header ended and the event did not come: it was lost on the way.
    pub(crate) fn end_is_missing(&mut self, n: u64) {
        if self.ended_as(n).is_none() {
            return;
        }
        if self.engine_sid().is_some() && !self.ask_missing_events(Cont::MissingEnd { n }) {
            self.end_by_header(n);
        }
    }

    pub(crate) fn on_missing_end(&mut self, n: u64, reply: Result<Box<RawValue>, EngineError>) {
        self.on_probe_events(n, reply);
        self.end_by_header(n);
    }

    fn end_by_header(&mut self, n: u64) {
        let Some(state) = self.ended_as(n) else { return };
        self.v4.trouble.ended = None;
        let turn_id = self.turn.as_ref().and_then(|it| it.turn_id.clone());
        self.say_row_results(turn_id.as_deref());
        match state.as_str() {
            "completedInterrupted" => self.finish(Ok(acp::StopReason::Cancelled)),
            "failed" => {
                let unknown = || json!({"message": "the turn failed; the engine gave no reason"});
                let error = self.v4.trouble.last_error.clone().unwrap_or_else(unknown);
                self.our_turn_failed(&TurnFailed { error, ..TurnFailed::default() });
            }
            _ if self.turn.as_ref().is_some_and(super::Turn::is_cancelled) => {
                self.finish(Ok(acp::StopReason::Cancelled));
            }
            _ => self.fetch_last_reply(),
        }
    }

    /// A turn ended: the next one begins on both channels, with nothing told.
    pub(crate) fn rows_turn_over(&mut self, turn_id: Option<&str>) {
        self.v4.rows.turn_over(turn_id);
        self.v4.trouble.told = None;
    }
}
