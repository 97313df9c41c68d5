//! PURE. Follows one guide (text put into the running turn) from its command to the engine's verdict.
//!
//! The command's own reply is not the verdict: it says `queue` even for a guide that is taken in. The verdict is read from
//! `turn.steerQueued`, `turn.steerDrained` and the V4 queue, whichever comes, matched by the command's id. Guides of one
//! session are followed one after the other by the session machine, which owns the clock, the ids and the requests.

use std::collections::VecDeque;

use crate::bridge::engine::event::{SteerDrained, SteerQueued};
use crate::bridge::engine::v4::commands::{Refusal, Reply};
use crate::bridge::engine::v4::state::QueueItem;

/// How long to wait between tries while the session's row is not written yet, in milliseconds; the last one again and again
/// where more time was set.
const FK_BACKOFF_MS: [u64; 4] = [100, 200, 400, 800];
/// How long a guide may be without verdict after it was accepted, in milliseconds. The turn's end settles most of them; this
/// is for turns that go on without a boundary, where the text does wait in the engine.
const VERDICT_MS: u64 = 120_000;

/// How long the queue may take to say why a guide was not merged, once its turn has ended, in milliseconds.
const ENDED_MS: u64 = 500;

/// The time limits; settable from the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest wait for the session's first event before the first try (`ZCODE_ACP_STEER_PERSIST_MS`).
    pub persist_ms: u64,
    /// Time for tries after the row was missing (`ZCODE_ACP_STEER_FK_RETRY_MS`).
    pub fk_retry_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { persist_ms: 3000, fk_retry_ms: 2000 }
    }
}

/// The verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Which of the five.
    pub outcome: Outcome,
    /// `guide` or `queue`: the lane it ended in.
    pub delivery: Option<String>,
    /// The engine's `steer.state`.
    pub steer_state: Option<String>,
    /// The queue entry.
    pub pending_input_id: Option<String>,
    /// Why it is not `injected`.
    pub reason_code: Option<String>,
    /// The engine's own words.
    pub message: Option<String>,
}

/// The outcomes that `_session/steering` knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Merged into the running turn.
    Injected,
    /// It waits in the queue and runs afterwards.
    Queued,
    /// No turn was running and nothing was sent.
    PromptRequired,
    /// No turn was running and it started one.
    StartedNewTurn,
    /// The engine refused it.
    #[default]
    Failed,
}

impl Outcome {
    /// Returns the word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Queued => "queued",
            Self::PromptRequired => "promptRequired",
            Self::StartedNewTurn => "startedNewTurn",
            Self::Failed => "failed",
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing until the next input; [`Guide::deadline_ms`] says when to come back at the latest.
    Wait,
    /// Send the guide under this command id.
    Send {
        /// A fresh one.
        command_id: String,
    },
    /// Done.
    Settled(Verdict),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// The session has shown no event yet.
    Persisting,
    /// Sent, no reply yet.
    Sent,
    /// The row was missing; the next try is due at the deadline.
    Backoff,
    /// Accepted; the verdict is awaited.
    Accepted,
    Settled,
}

/// One guide.
#[derive(Debug)]
pub struct Guide {
    phase: Phase,
    limits: Limits,
    deadline_ms: u64,
    tries: usize,
    first_fault_ms: Option<u64>,
    command_ids: VecDeque<String>,
    pending_input_id: Option<String>,
    steer_state: Option<String>,
    ended: bool,
}

impl Guide {
    /// Begins a guide. `persisted` is true when the session has shown an event or was resumed.
    pub fn new(limits: Limits, persisted: bool, command_id: String, now_ms: u64) -> (Self, Step) {
        let mut guide = Self {
            phase: Phase::Persisting,
            limits,
            deadline_ms: now_ms.saturating_add(limits.persist_ms),
            tries: 0,
            first_fault_ms: None,
            command_ids: VecDeque::new(),
            pending_input_id: None,
            steer_state: None,
            ended: false,
        };
        let step = if persisted { guide.send(command_id) } else { Step::Wait };
        (guide, step)
    }

    /// Returns when [`Self::on_timer`] is due, if nothing comes before.
    pub fn deadline_ms(&self) -> Option<u64> {
        (!matches!(self.phase, Phase::Sent | Phase::Settled)).then_some(self.deadline_ms)
    }

    /// True when the engine has it: the next one may be sent without overtaking it.
    pub fn is_accepted(&self) -> bool {
        matches!(self.phase, Phase::Accepted | Phase::Settled)
    }

    /// Returns the ids of its tries.
    pub fn command_ids(&self) -> impl Iterator<Item = &str> {
        self.command_ids.iter().map(String::as_str)
    }

    /// Returns its entry in the queue, once known.
    pub fn pending_input_id(&self) -> Option<&str> {
        self.pending_input_id.as_deref()
    }

    /// True when this command is one of this guide's tries.
    pub fn is_mine(&self, command_id: &str) -> bool {
        self.command_ids.iter().any(|it| it == command_id)
    }

    /// The session's first event came: its row is written.
    pub fn on_session_event(&mut self, command_id: impl FnOnce() -> String) -> Step {
        if self.phase == Phase::Persisting { self.send(command_id()) } else { Step::Wait }
    }

    /// The time of [`Self::deadline_ms`] has come.
    pub fn on_timer(&mut self, now_ms: u64, command_id: impl FnOnce() -> String) -> Step {
        if self.deadline_ms().is_none_or(|it| now_ms < it) {
            return Step::Wait;
        }
        match self.phase {
            Phase::Persisting | Phase::Backoff => self.send(command_id()),
            Phase::Accepted if self.ended => self.settle(self.queued("guide.noToolBoundary")),
            Phase::Accepted => self.settle(self.queued("guide.noVerdict")),
            Phase::Sent | Phase::Settled => Step::Wait,
        }
    }

    /// The command was answered.
    pub fn on_reply(&mut self, reply: &Reply, now_ms: u64) -> Step {
        if self.phase != Phase::Sent {
            return Step::Wait;
        }
        match reply {
            Reply::Accepted { started: true, input_id } => self.settle(Verdict {
                outcome: Outcome::StartedNewTurn,
                delivery: Some("startNow".to_owned()),
                pending_input_id: input_id.clone(),
                ..Verdict::default()
            }),
            Reply::Accepted { started: false, .. } | Reply::Duplicate => {
                self.phase = Phase::Accepted;
                self.deadline_ms = now_ms.saturating_add(VERDICT_MS);
                if self.ended { self.on_turn_ended(now_ms) } else { Step::Wait }
            }
            Reply::Refused(refusal) if refusal.foreign_key && !self.ended => {
                self.fault(refusal, now_ms)
            }
            Reply::Refused(refusal) => self.refused(refusal),
        }
    }

    /// The command could not be sent or was answered by an error.
    pub fn on_error(&mut self, refusal: &Refusal, now_ms: u64) -> Step {
        if self.phase == Phase::Sent && refusal.foreign_key && !self.ended {
            return self.fault(refusal, now_ms);
        }
        if self.phase == Phase::Settled { Step::Wait } else { self.refused(refusal) }
    }

    /// `turn.steerQueued`: which lane an input was given.
    pub fn on_steer_queued(&mut self, event: &SteerQueued) -> Step {
        let intent = event.intent.as_ref();
        let source = intent.and_then(|it| it.get("sourceCommandId")?.as_str());
        if !source.is_some_and(|it| self.is_mine(it)) || self.phase == Phase::Settled {
            return Step::Wait;
        }
        self.pending_input_id = event.pending_input_id.clone().or(self.pending_input_id.take());
        let admitted = intent.and_then(|it| it.pointer("/delivery/admitted")?.as_str());
        let reason = intent.and_then(|it| it.pointer("/delivery/fallbackReasonCode")?.as_str());
        match event.delivery.as_deref().or(admitted) {
            // The guide lane is not the verdict: a turn without a boundary gives it up again.
            Some("queue") => self.settle(self.queued(reason.unwrap_or("guide.notAdmitted"))),
            _ => Step::Wait,
        }
    }

    /// `turn.steerDrained`: inputs were merged into the running turn.
    pub fn on_steer_drained(&mut self, event: &SteerDrained) -> Step {
        let by_entry =
            self.pending_input_id.as_ref().is_some_and(|it| event.pending_input_ids.contains(it));
        let named = |input: &serde_json::Value| {
            let source =
                input.pointer("/intent/sourceCommandId").and_then(serde_json::Value::as_str);
            source.is_some_and(|it| self.is_mine(it))
        };
        let mine = event.drained_inputs.iter().flatten().find(|it| named(it));
        if !by_entry && mine.is_none() || self.phase == Phase::Settled {
            return Step::Wait;
        }
        let entry = mine.and_then(|it| it.get("pendingInputId")?.as_str()).map(str::to_owned);
        self.pending_input_id = entry.or(self.pending_input_id.take());
        let lane = mine.and_then(|it| it.get("delivery")?.as_str());
        if event.target_turn_id.is_none() && lane == Some("queue") {
            // It leaves the queue to become a turn of its own.
            return self.settle(self.queued("guide.noToolBoundary"));
        }
        self.settle(self.injected())
    }

    /// The V4 queue, whole. The only channel that shows a downgrade.
    pub fn on_queue(&mut self, items: &[QueueItem]) -> Step {
        let mine = items
            .iter()
            .find(|it| it.source_command_id.as_deref().is_some_and(|id| self.is_mine(id)));
        let Some(item) = mine.filter(|_| self.phase != Phase::Settled) else { return Step::Wait };
        self.pending_input_id = item.queue_item_id.clone().or(self.pending_input_id.take());
        let delivery = item.delivery.as_ref();
        let fallback = delivery.and_then(|it| it.fallback_reason_code.as_deref());
        let steer = item.steer.as_ref();
        self.steer_state = steer.and_then(|it| it.state.clone()).or(self.steer_state.take());
        match steer.and_then(|it| it.state.as_deref()) {
            Some("guided") => self.settle(self.injected()),
            Some("fellBack") => {
                let reason = steer.and_then(|it| it.reason_code.as_deref()).or(fallback);
                self.settle(self.queued(reason.unwrap_or("guide.fellBack")))
            }
            Some("notRequested")
                if delivery.is_some_and(|it| it.admitted.as_deref() == Some("queue")) =>
            {
                self.settle(self.queued(fallback.unwrap_or("guide.notAdmitted")))
            }
            _ => Step::Wait,
        }
    }

    /// A user input that says it was taken into the turn (a V4 row).
    pub fn on_guided_row(&mut self, source_command_id: &str) -> Step {
        if self.phase == Phase::Settled || !self.is_mine(source_command_id) {
            return Step::Wait;
        }
        self.settle(self.injected())
    }

    /// The turn ended without a verdict. An accepted guide is then in the engine's queue; one that was not accepted yet
    /// stays with us.
    pub fn on_turn_ended(&mut self, now_ms: u64) -> Step {
        self.ended = true;
        match self.phase {
            Phase::Persisting | Phase::Backoff => self.settle(Verdict {
                outcome: Outcome::PromptRequired,
                reason_code: Some("noRunningTurn".to_owned()),
                ..Verdict::default()
            }),
            Phase::Accepted => {
                self.deadline_ms = self.deadline_ms.min(now_ms.saturating_add(ENDED_MS));
                Step::Wait
            }
            Phase::Sent | Phase::Settled => Step::Wait,
        }
    }

    /// The user cancelled the turn: the engine keeps an accepted guide, but does not merge it any more.
    pub fn on_cancel(&mut self) -> Step {
        match self.phase {
            Phase::Persisting | Phase::Backoff => self.refused(&Refusal {
                reason_code: Some("guide.turnInterrupted".to_owned()),
                ..Refusal::default()
            }),
            Phase::Sent | Phase::Accepted | Phase::Settled => Step::Wait,
        }
    }

    fn send(&mut self, command_id: String) -> Step {
        self.phase = Phase::Sent;
        self.command_ids.push_back(command_id.clone());
        Step::Send { command_id }
    }

    fn fault(&mut self, refusal: &Refusal, now_ms: u64) -> Step {
        let since = *self.first_fault_ms.get_or_insert(now_ms);
        let Some(pause) = FK_BACKOFF_MS.get(self.tries).or(FK_BACKOFF_MS.last()) else {
            return self.refused(refusal);
        };
        let due = now_ms.saturating_add(*pause);
        if due.saturating_sub(since) > self.limits.fk_retry_ms {
            return self.refused(refusal);
        }
        self.tries += 1;
        self.phase = Phase::Backoff;
        self.deadline_ms = due;
        Step::Wait
    }

    fn refused(&mut self, refusal: &Refusal) -> Step {
        self.settle(Verdict {
            outcome: Outcome::Failed,
            reason_code: refusal.reason_code.clone(),
            message: refusal.message.clone(),
            ..Verdict::default()
        })
    }

    fn injected(&self) -> Verdict {
        Verdict {
            outcome: Outcome::Injected,
            delivery: Some("guide".to_owned()),
            steer_state: Some("guided".to_owned()),
            pending_input_id: self.pending_input_id.clone(),
            ..Verdict::default()
        }
    }

    fn queued(&self, reason: &str) -> Verdict {
        Verdict {
            outcome: Outcome::Queued,
            delivery: Some("queue".to_owned()),
            steer_state: self.steer_state.clone(),
            pending_input_id: self.pending_input_id.clone(),
            reason_code: Some(reason.to_owned()),
            message: None,
        }
    }

    fn settle(&mut self, verdict: Verdict) -> Step {
        self.phase = Phase::Settled;
        Step::Settled(verdict)
    }
}

#[cfg(test)]
mod tests;
