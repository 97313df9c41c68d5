//! PURE. Stopping a turn so that it really stops, in bounded time.
//!
//! The V4 stop ends the whole foreground execution and is tried first. Where the engine does not
//! know it, refuses it or is late (it queues behind slow reads), `session/stop` follows, which
//! overtakes the queue. A turn that ignores both is ended the hard way: close, resume, subscribe.
//! The prompt is answered at the turn's own end, or after a short while without it.

use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use serde_json::json;
use serde_json::value::RawValue;

use super::link::LinkState;
use super::turn::Stage;
use super::{Cont, Effect, Machine, ReqId, Token};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::v4::commands::{self, Command, Reply};
use crate::bridge::session::failure;

/// The V4 stop has not been answered: it waits behind something slow.
const SLOW_STOP: Duration = Duration::from_millis(800);
/// The prompt is answered `cancelled` although its turn still runs.
const ANSWER_BY: Duration = Duration::from_millis(2_500);
/// The turn ignores every stop.
const HARD_STOP: Duration = Duration::from_secs(6);

/// A stop that is under way.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    slow: Option<Token>,
    answer: Option<Token>,
    hard: Option<Token>,
    legacy_sent: bool,
    closing: bool,
    /// When the first stop was sent (ms).
    since: u64,
    /// The engine answered one of them.
    heard: bool,
}

impl Machine {
    pub(crate) fn on_cancel(&mut self) {
        self.cancel_steers();
        self.cancel_everything_queued();
        self.cancel_job();
        self.cancel_adoptions();
        self.settle_turn_asks();
        let Some(turn) = self.turn.as_mut() else {
            // Nobody waits, but the engine may be running a turn of its own.
            if self.stream.foreign_runs() {
                self.fire_stop();
            }
            return;
        };
        if turn.is_cancelled() {
            return;
        }
        let stage = turn.stage;
        match stage {
            Stage::Opening | Stage::Busy | Stage::Backoff => {
                // It may wait behind another prompt of the user's, which runs as a turn of its own.
                if self.rider_has_own_turn() {
                    self.fire_stop();
                }
                self.end_now(Ok(acp::StopReason::Cancelled));
            }
            Stage::Finishing => {}
            Stage::Sending | Stage::Running => {
                turn.stop = Some(Stop { since: self.now.ms, ..Stop::default() });
                if stage == Stage::Running {
                    self.fire_stop();
                }
                self.arm_stop_deadlines();
            }
        }
    }

    /// `$/cancel_request`: the prompt alone; a queued one is dropped, the running one stopped.
    pub(crate) fn on_cancel_request(&mut self, req: ReqId) {
        if self.turn.as_ref().is_some_and(|t| t.req == Some(req)) {
            let waiting = std::mem::take(&mut self.queue);
            self.on_cancel();
            self.queue.extend(waiting);
            return self.next_prompt();
        }
        if self.job.as_ref().is_some_and(|job| job.req == req) {
            self.cancel_job();
            return self.next_prompt();
        }
        if self.is_adopting(req) {
            self.cancel_adoption(req);
            return self.next_prompt();
        }
        if self.cancel_guided(req) {
            return;
        }
        if let Some(at) = self.queue.iter().position(|q| q.req == req) {
            self.queue.remove(at);
            self.respond_with(req, &acp::PromptResponse::new(acp::StopReason::Cancelled));
        }
    }

    fn arm_stop_deadlines(&mut self) {
        let Some(n) = self.turn.as_ref().map(|t| t.n) else { return };
        let answer = self.timer(ANSWER_BY, Cont::StopAnswer { n });
        let hard = self.timer(HARD_STOP, Cont::StopHard { n });
        if let Some(stop) = self.turn.as_mut().and_then(|t| t.stop.as_mut()) {
            stop.answer = Some(answer);
            stop.hard = Some(hard);
        }
    }

    /// Sends the stop. Also used again when a cancelled turn starts after all.
    pub(crate) fn fire_stop(&mut self) {
        if self.engine_sid().is_none() {
            return;
        }
        if !self.usage.engine_knows_v4() {
            return self.legacy_stop(true);
        }
        let execution = self.turn.as_ref().and_then(|t| t.execution_id.clone());
        self.aim_stop(execution);
        let slow = self.timer(SLOW_STOP, Cont::StopSlow);
        let mut old = match self.turn.as_mut().and_then(|t| t.stop.as_mut()) {
            Some(stop) => stop.slow.replace(slow),
            None => None,
        };
        self.cancel_timer(&mut old);
    }

    fn aim_stop(&mut self, expected: Option<String>) {
        let aimed = expected.is_some();
        self.v4_command(&Command::Stop { expected }, |_| Cont::StopV4 { aimed });
    }

    pub(crate) fn on_v4_stop(&mut self, aimed: bool, reply: Result<Box<RawValue>, EngineError>) {
        let mut slow = self.turn.as_mut().and_then(|t| t.stop.as_mut()).and_then(|s| s.slow.take());
        self.cancel_timer(&mut slow);
        if matches!(reply, Ok(_) | Err(EngineError::Rpc(_)))
            && let Some(stop) = self.turn.as_mut().and_then(|t| t.stop.as_mut())
        {
            stop.heard = true;
        }
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => {
                if let Reply::Refused(_) = commands::reply(&answer) {
                    // The execution has another id by now; ours still runs, so whatever runs is it.
                    if aimed && self.turn.as_ref().is_some_and(super::Turn::is_live) {
                        self.aim_stop(None);
                    }
                    self.legacy_stop(false);
                }
            }
            Err(error) if error.is_unknown_method() => {
                self.usage.engine_has_no_v4();
                self.legacy_stop(true);
            }
            Err(EngineError::Exited(_) | EngineError::Closed) => {}
            Err(_) => self.legacy_stop(false),
        }
    }

    pub(crate) fn stop_is_slow(&mut self) {
        self.legacy_stop(false);
    }

    fn legacy_stop(&mut self, again: bool) {
        let Some(sid) = self.engine_sid().map(str::to_owned) else { return };
        let turn_runs = self.turn.as_ref().is_some_and(super::Turn::is_live);
        if !turn_runs && !self.stream.foreign_runs() {
            return;
        }
        if let Some(stop) = self.turn.as_mut().and_then(|t| t.stop.as_mut()) {
            if stop.legacy_sent && !again {
                return;
            }
            stop.legacy_sent = true;
        }
        let cont = match self.turn.as_ref() {
            Some(turn) => Cont::StopLegacy { n: turn.n },
            None => Cont::Ignore,
        };
        self.call("session/stop", json!({"sessionId": sid}), cont);
    }

    /// The older stop overtakes every other request: an engine that answers neither it nor the V4 stop in its time, nor
    /// the close that followed, and shows no event meanwhile, hangs. It is ended, so that the next prompt gets another.
    pub(crate) fn on_legacy_stop(&mut self, n: u64, reply: &Result<Box<RawValue>, EngineError>) {
        let Some(turn) = self.turn.as_mut().filter(|t| t.n == n && t.is_live()) else { return };
        let silent = turn.last_event;
        let Some(stop) = turn.stop.as_mut() else { return };
        if !matches!(reply, Err(EngineError::Timeout { .. })) {
            stop.heard = true;
        } else if stop.closing && !stop.heard && silent <= stop.since {
            self.emit(Effect::KillEngine);
        }
    }

    /// `session/send` got no answer: the engine may have taken the prompt, which nobody waits for any more. The stop says
    /// at the same time whether it hears anything.
    pub(crate) fn stop_unanswered_send(&mut self, sid: &str) {
        self.call("session/stop", json!({"sessionId": sid}), Cont::StopUnanswered);
    }

    pub(crate) fn on_unanswered_stopped(&mut self, reply: &Result<Box<RawValue>, EngineError>) {
        if matches!(reply, Err(EngineError::Timeout { .. })) && self.link.state == LinkState::Up {
            self.emit(Effect::KillEngine);
        }
    }

    pub(crate) fn answer_by_deadline(&mut self, n: u64) {
        if self.turn.as_ref().is_some_and(|t| t.n == n && t.is_cancelled()) {
            self.answer_cancelled_early();
        }
    }

    /// The turn ignores every stop: close the session, which ends the generation, and load it again.
    pub(crate) fn stop_the_hard_way(&mut self, n: u64) {
        let Some(sid) = self.engine_sid().map(str::to_owned) else { return };
        let Some(turn) = self.turn.as_mut().filter(|t| t.n == n && t.is_live()) else { return };
        if let Some(stop) = turn.stop.as_mut() {
            if stop.closing {
                return;
            }
            stop.closing = true;
        }
        for task in self.tasks.running_subagents() {
            let params = json!({"sessionId": sid, "taskId": task});
            self.call("session/cancelBackgroundTask", params, Cont::Ignore);
        }
        self.answer_cancelled_early();
        self.call("session/close", json!({"sessionId": sid}), Cont::HardClosed { n });
    }

    pub(crate) fn on_hard_closed(&mut self, n: u64) {
        if !self.turn.as_ref().is_some_and(|t| t.n == n && t.is_live()) {
            return;
        }
        if self.link.state == LinkState::Up {
            self.link_lost();
        }
        self.end_now(Ok(acp::StopReason::Cancelled));
        self.reopen_if_wanted();
    }

    pub(crate) fn cancel_stop_timers(&mut self) {
        let Some(stop) = self.turn.as_mut().and_then(|t| t.stop.as_mut()) else { return };
        let mut tokens = [stop.slow.take(), stop.answer.take(), stop.hard.take()];
        for token in &mut tokens {
            self.cancel_timer(token);
        }
    }
}
