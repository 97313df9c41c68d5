//! PURE. Prompts that were handed to the engine and wait in its queue. An engine that has nothing to do runs them by itself;
//! when it does not, they do not wait for ever: a queue that is paused answers the prompt with that, and out of a queue that
//! is not, the prompt is taken back and run from here.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error as AcpError, ErrorCode};
use serde_json::value::RawValue;

use super::steer::{IDLE_WITHIN, Seat};
use super::turn::Queued;
use super::{Cont, Machine, ReqId};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::v4::commands::{self, Command, Reply};
use crate::bridge::session::failure;

impl Machine {
    /// Begins to count once nothing runs while prompts of ours wait in the engine's queue.
    pub(crate) fn watch_the_queue(&mut self) {
        let waits = self.steers.riders.iter().any(|it| it.seat == Seat::Queue);
        if !waits || !self.engine_is_idle() {
            let mut idle = self.steers.idle.take();
            return self.cancel_timer(&mut idle);
        }
        if self.steers.idle.is_none() {
            self.steers.idle = Some(self.timer(IDLE_WITHIN, Cont::QueueIsIdle));
        }
    }

    fn engine_is_idle(&self) -> bool {
        self.turn.is_none() && !self.stream.foreign_runs() && !self.compact.is_running()
    }

    pub(crate) fn queue_is_idle(&mut self) {
        self.steers.idle = None;
        if !self.engine_is_idle() {
            return;
        }
        let paused =
            self.v4.queue.auto_drain == Some(false) || self.v4.queue.pause_reason.is_some();
        if paused {
            return self.answer_paused();
        }
        let waiting = self.steers.riders.iter_mut().filter(|it| it.seat == Seat::Queue);
        let mut leaving = Vec::new();
        for rider in waiting {
            rider.seat = Seat::Leaving;
            leaving.push((rider.req, rider.verdict.pending_input_id.clone()));
        }
        for (req, item) in leaving {
            // One that the engine shows no entry of was dropped: there is nothing to take out.
            match item {
                Some(item_id) => {
                    let command = Command::DeleteQueueItem { item_id };
                    self.v4_command(&command, |_| Cont::TakenOut { req });
                }
                None => self.run_from_here(req),
            }
        }
    }

    /// The queue is paused on purpose: the prompts stay in it, and their askers learn so.
    fn answer_paused(&mut self) {
        let (waiting, others) = std::mem::take(&mut self.steers.riders)
            .into_iter()
            .partition(|it| it.seat == Seat::Queue);
        self.steers.riders = others;
        let waiting: Vec<super::steer::Rider> = waiting;
        for mut rider in waiting {
            rider.verdict.reason_code = Some("queue.paused".to_owned());
            let text = "the engine's queue is paused: the message stays in it until it is sent";
            rider.verdict.message = Some(text.to_owned());
            self.answer_rider(rider.req, &rider.verdict, Ok(acp::StopReason::EndTurn));
        }
        let more = "Send it now, or let the queue go on by itself (_zcode/queue/send_now, _zcode/queue/auto_drain).";
        self.warn("The message waits in the engine's queue, which is paused", Some(more));
    }

    pub(crate) fn on_taken_out(&mut self, req: ReqId, reply: Result<Box<RawValue>, EngineError>) {
        let accepted = reply.and_then(|raw| failure::parse(&raw)).is_ok_and(|answer| {
            matches!(commands::reply(&answer), Reply::Accepted { .. } | Reply::Duplicate)
        });
        if accepted {
            return self.run_from_here(req);
        }
        let Some(at) = self.leaving(req) else { return };
        let rider = self.steers.riders.remove(at);
        let text = "the engine keeps this prompt in its queue and does not run it: look at the queue, or send it again";
        let error = AcpError::new(ErrorCode::INTERNAL_ERROR, text);
        self.answer_rider(rider.req, &rider.verdict, Err(error));
    }

    /// A prompt that the engine does not run becomes a turn of its own, sent from here.
    fn run_from_here(&mut self, req: ReqId) {
        let Some(at) = self.leaving(req) else { return };
        let rider = self.steers.riders.remove(at);
        self.queue.push_back(Queued { req: rider.req, input: rider.input });
        self.next_prompt();
    }

    /// The rider, unless its turn began after all or it was answered meanwhile.
    fn leaving(&self, req: ReqId) -> Option<usize> {
        self.steers.riders.iter().position(|it| it.req == req && it.seat == Seat::Leaving)
    }
}
