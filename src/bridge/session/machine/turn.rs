//! PURE. One prompt's life: queued, opened, sent (again while the engine is busy), streamed, ended.
//!
//! A prompt ends on the terminal event of *its* turn, known by turn id and by the `inputId` it was
//! sent with; turns that the engine runs for itself (notifications, goals, compaction) are shown
//! and never end it. Exactly one answer leaves for every prompt, whatever happens.

use std::time::Duration;

use agent_client_protocol::Error as AcpError;
use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::link::{LinkState, Waiter};
use super::recovery::REPLY_TRIES;
use super::stop::Stop;
use super::{Cont, Effect, Machine, ReqId, Token, invalid_params};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::{TurnCompleted, TurnFailed, TurnStarted};
use crate::bridge::session::failure;
use crate::bridge::translate::prompt::{self, SendInput};
use crate::bridge::translate::stop_reason::{self, Ending};
use crate::bridge::translate::{CardEnd, error as turn_error};

/// How long a busy engine is asked again; longer while we see that a turn of its own runs.
const BUSY_BUDGET: u64 = 30_000;
const BUSY_BUDGET_FOREIGN: u64 = 180_000;
/// Waits between two attempts at a busy engine.
const BUSY_STEPS: [u64; 4] = [150, 300, 500, 1_000];
/// How long an engine that has just started may not know the session's model, and how often it is asked again.
const MODEL_BUDGET: u64 = 10_000;
const MODEL_STEP: u64 = 500;
/// Waits before a failed turn is tried again (six attempts in all).
const RETRY_STEPS: [u64; 5] = [1_000, 2_000, 4_000, 4_000, 4_000];
/// How often one prompt survives the death of its engine.
const MAX_RECOVERIES: u8 = 2;
/// How long a prompt that waited in the engine's queue may be neither there nor running.
const DROPPED_AFTER: Duration = Duration::from_millis(700);
/// How long an ended prompt waits for its usage reading.
const FINISH_WITHIN: Duration = Duration::from_secs(3);

/// A prompt that waits for the one before it.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) req: ReqId,
    pub(crate) input: SendInput,
}

/// Where a prompt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The session is being loaded.
    Opening,
    /// `session/send` is under way.
    Sending,
    /// The engine is busy; it is asked again at a deadline, or when a foreign turn ends.
    Busy,
    /// Accepted: the engine works.
    Running,
    /// Failed for a passing reason; tried again at a deadline.
    Backoff,
    /// Ended; its last readings are awaited.
    Finishing,
}

/// The prompt that is being worked on.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "`turn_id` is the engine's word")]
pub(crate) struct Turn {
    /// Serial number: an input that names another turn is stale.
    pub(crate) n: u64,
    /// The request to answer; `None` once answered.
    pub(crate) req: Option<ReqId>,
    pub(crate) input: SendInput,
    pub(crate) stage: Stage,
    pub(crate) input_id: String,
    /// The engine's id of the turn, once it started.
    pub(crate) turn_id: Option<String>,
    pub(crate) execution_id: Option<String>,
    /// The user message: history after it belongs to this turn.
    pub(crate) anchor: Option<String>,
    /// When it began (ms since 1970).
    pub(crate) began_unix: u64,
    /// When the last event of the session came (ms).
    pub(crate) last_event: u64,
    pub(crate) stop: Option<Stop>,
    pub(crate) silence: Option<Token>,
    pub(crate) deadline: Option<Token>,
    pub(crate) probes: u32,
    pub(crate) deaf_probes: u8,
    /// The queue entry, when the engine took the prompt as a guide for another turn, or into its queue.
    pub(crate) steered: Option<String>,
    /// The engine's own name for the input of a prompt that it queued.
    pub(crate) renamed: Option<String>,
    attempt: usize,
    recoveries: u8,
    resumed: bool,
    busy_since: Option<u64>,
    modelless_since: Option<u64>,
    busy_tries: usize,
    outcome: Option<Outcome>,
    /// It ended for the engine, and its cards with it.
    cards_are_closed: bool,
    /// Why it ended although nothing came of it.
    gave_up: Option<Value>,
    reported_usage: Option<Value>,
}

/// What the prompt will be answered with.
#[derive(Debug)]
struct Outcome {
    result: Result<acp::StopReason, AcpError>,
}

impl Turn {
    /// True once the user asked for an end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.stop.is_some()
    }

    /// What the engine may call its input.
    fn names(&self) -> impl Iterator<Item = &str> {
        let names = [Some(&self.input_id), self.renamed.as_ref(), self.steered.as_ref()];
        names.into_iter().flatten().map(String::as_str)
    }

    /// True when the engine's name for an input means this prompt.
    pub(super) fn is_input(&self, id: &str) -> bool {
        self.names().any(|name| name == id)
    }

    /// True while it waits in the engine's queue, as far as is known.
    fn waits_in_queue(&self) -> bool {
        self.steered.is_some()
            && self.turn_id.is_none()
            && self.stage == Stage::Running
            && !self.is_cancelled()
    }

    /// True while the engine may send things that belong to it.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.stage, Stage::Sending | Stage::Running)
    }
}

/// True when the end of a turn carries no text of its own.
fn says_nothing(response: Option<&Value>) -> bool {
    response.is_none_or(|it| it.as_str().is_none_or(|text| text.trim().is_empty()))
}

impl Machine {
    pub(crate) fn on_prompt(&mut self, req: ReqId, blocks: &[acp::ContentBlock]) {
        let input = match prompt::from_acp(blocks) {
            Ok(input) => input,
            Err(error) => return self.respond(req, Err(invalid_params(error.to_string()))),
        };
        self.take_prompt(req, input);
    }

    pub(crate) fn take_prompt(&mut self, req: ReqId, input: SendInput) {
        if self.guide_prompt(req, &input) {
            return;
        }
        self.queue.push_back(Queued { req, input });
        self.next_prompt();
    }

    /// Starts the next waiting prompt if none is being worked on.
    pub(crate) fn next_prompt(&mut self) {
        while self.may_begin() {
            let Some(Queued { req, input }) = self.queue.pop_front() else { return };
            if self.run_command(req, &input) {
                continue;
            }
            self.start_turn(Some(req), input);
        }
    }

    /// One thing at a time: prompts, commands, and a history that is told for `/resume`.
    fn may_begin(&self) -> bool {
        self.turn.is_none()
            && self.job.is_none()
            && !self.compact.is_running()
            && self.adopting.is_empty()
    }

    pub(crate) fn start_turn(&mut self, req: Option<ReqId>, input: SendInput) {
        self.is_blank = false;
        let n = self.next;
        self.next += 1;
        self.title_from_prompt(&input.words);
        self.turn = Some(Turn {
            n,
            req,
            input,
            stage: Stage::Opening,
            input_id: format!("in-{}-{n}", self.seed.nonce),
            turn_id: None,
            execution_id: None,
            anchor: None,
            began_unix: self.now.unix_ms,
            last_event: self.now.ms,
            stop: None,
            silence: None,
            deadline: None,
            probes: 0,
            deaf_probes: 0,
            steered: None,
            renamed: None,
            attempt: 0,
            recoveries: 0,
            resumed: false,
            busy_since: None,
            modelless_since: None,
            busy_tries: 0,
            outcome: None,
            cards_are_closed: false,
            gave_up: None,
            reported_usage: None,
        });
        self.with_link(Waiter::Turn(n));
    }

    fn turn_is(&self, n: u64, stage: Stage) -> bool {
        self.turn.as_ref().is_some_and(|t| t.n == n && t.stage == stage)
    }

    /// The session is loaded: send.
    pub(crate) fn turn_linked(&mut self, n: u64) {
        if self.turn_is(n, Stage::Opening) {
            self.send();
        }
    }

    pub(crate) fn turn_failed_to_open(&mut self, n: u64, error: AcpError) {
        if self.turn_is(n, Stage::Opening) {
            self.end_now(Err(error));
        }
    }

    fn send(&mut self) {
        let Some(sid) = self.engine_sid().map(str::to_owned) else { return };
        self.read_usage_baseline(&sid);
        let now = self.now.ms;
        let Some(turn) = self.turn.as_mut() else { return };
        turn.stage = Stage::Sending;
        turn.turn_id = None;
        turn.execution_id = None;
        turn.last_event = now;
        let n = turn.n;
        let mut params =
            json!({"sessionId": sid, "content": turn.input.content, "inputId": turn.input_id});
        if !turn.input.attachments.is_empty()
            && let Value::Object(map) = &mut params
        {
            map.insert("attachments".to_owned(), Value::Array(turn.input.attachments.clone()));
        }
        self.call("session/send", params, Cont::Send { n });
    }

    pub(crate) fn on_sent(&mut self, n: u64, reply: Result<Box<RawValue>, EngineError>) {
        if !self.turn_is(n, Stage::Sending) {
            return;
        }
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) if answer.get("accepted").and_then(Value::as_bool) == Some(false) => {
                let error = failure::broken("session/send", "the prompt was not accepted");
                self.end_now(Err(failure::to_acp(&error)));
            }
            Ok(_) => self.turn_accepted(),
            Err(error) if error.is_busy() => self.wait_while_busy(),
            Err(error) if error.is_model_unavailable() => self.wait_for_the_model(&error),
            Err(error) if error.is_not_active() => self.resume_and_send(&error),
            Err(EngineError::Exited(_) | EngineError::Closed) => self.engine_lost(None),
            Err(error @ EngineError::Timeout { .. }) => self.send_is_unanswered(&error),
            Err(error) => self.end_now(Err(failure::to_acp(&error))),
        }
    }

    fn send_is_unanswered(&mut self, error: &EngineError) {
        let sid = self.engine_sid().map(str::to_owned);
        if let (Some(sid), Some(turn)) = (sid, self.turn.as_ref()) {
            self.stream.mute(None, turn.names());
            self.stop_unanswered_send(&sid);
        }
        self.end_now(Err(failure::to_acp(error)));
    }

    fn turn_accepted(&mut self) {
        let Some(turn) = self.turn.as_mut() else { return };
        turn.stage = Stage::Running;
        turn.busy_since = None;
        turn.busy_tries = 0;
        let cancelled = turn.is_cancelled();
        self.watch_silence();
        self.check_servers();
        self.pump_steers();
        if cancelled {
            self.fire_stop();
        }
    }

    /// Not loaded any more: resume and send once more, then give the engine's own reason.
    fn resume_and_send(&mut self, error: &EngineError) {
        self.link_lost();
        let Some(turn) = self.turn.as_mut() else { return };
        if turn.is_cancelled() {
            return self.end_now(Ok(acp::StopReason::Cancelled));
        }
        if turn.resumed {
            return self.end_now(Err(failure::to_acp(error)));
        }
        turn.resumed = true;
        turn.stage = Stage::Opening;
        let n = turn.n;
        self.with_link(Waiter::Turn(n));
    }

    /// A cold engine says the same of a model that it will know in a moment and of one that is gone.
    fn wait_for_the_model(&mut self, error: &EngineError) {
        let now = self.now.ms;
        let Some(turn) = self.turn.as_mut() else { return };
        if turn.is_cancelled() {
            return self.end_now(Ok(acp::StopReason::Cancelled));
        }
        let since = *turn.modelless_since.get_or_insert(now);
        if now.saturating_sub(since) >= MODEL_BUDGET {
            return self.end_now(Err(failure::to_acp(error)));
        }
        self.send_after(MODEL_STEP, Stage::Busy);
    }

    fn wait_while_busy(&mut self) {
        let (now, foreign) = (self.now.ms, self.stream.foreign_runs());
        let Some(turn) = self.turn.as_mut() else { return };
        if turn.is_cancelled() {
            return self.end_now(Ok(acp::StopReason::Cancelled));
        }
        let since = *turn.busy_since.get_or_insert(now);
        let budget = if foreign { BUSY_BUDGET_FOREIGN } else { BUSY_BUDGET };
        if now.saturating_sub(since) >= budget {
            let text = "the engine is still busy with another turn of this session; try again when it is done";
            return self.end_now(Err(AcpError::new(
                agent_client_protocol::ErrorCode::INTERNAL_ERROR,
                text,
            )
            .data(json!({"type": "busy", "waitedMs": now.saturating_sub(since)}))));
        }
        let step = BUSY_STEPS.get(turn.busy_tries).or(BUSY_STEPS.last()).copied().unwrap_or(500);
        turn.busy_tries += 1;
        self.send_after(step, Stage::Busy);
    }

    /// Sends again after that many milliseconds, unless something wakes the turn before.
    fn send_after(&mut self, wait: u64, stage: Stage) {
        let Some(n) = self.turn.as_ref().map(|turn| turn.n) else { return };
        let token = self.timer(Duration::from_millis(wait), Cont::SendAgain { n, stage });
        if let Some(turn) = self.turn.as_mut() {
            turn.stage = stage;
            turn.deadline = Some(token);
        }
    }

    pub(crate) fn send_again_now(&mut self, n: u64, stage: Stage) {
        if self.turn_is(n, stage) {
            self.send_again();
        }
    }

    /// A turn of the engine's own ended: the lock is free now.
    pub(crate) fn foreign_turn_ended(&mut self) {
        self.usage.baseline_is_stale();
        if self.turn.as_ref().is_some_and(|t| t.stage == Stage::Busy) {
            self.send_again();
        }
        self.look_after_queued();
    }

    /// A prompt that the engine took into its queue starts when it leaves it, except where the
    /// engine drops it with the turn it waited behind.
    pub(crate) fn look_after_queued(&mut self) {
        if !self.may_be_dropped() {
            return;
        }
        let Some(turn) = self.turn.as_mut().filter(|t| t.deadline.is_none()) else { return };
        let n = turn.n;
        let token = self.timer(DROPPED_AFTER, Cont::Dropped { n });
        if let Some(turn) = self.turn.as_mut() {
            turn.deadline = Some(token);
        }
    }

    fn may_be_dropped(&self) -> bool {
        let Some(turn) = self.turn.as_ref().filter(|t| t.waits_in_queue()) else { return false };
        let is_it = |id: &Option<String>| id.as_ref().is_some_and(|id| turn.is_input(id));
        !self.stream.foreign_runs()
            && !self.v4.queue.items.iter().any(|item| is_it(&item.queue_item_id))
    }

    /// Neither queued nor started: the prompt is still ours to deliver.
    pub(crate) fn send_dropped(&mut self, n: u64) {
        let Some(turn) = self.turn.as_mut().filter(|t| t.n == n) else { return };
        turn.deadline = None;
        if self.may_be_dropped()
            && let Some(turn) = self.turn.as_mut()
        {
            turn.steered = None;
            turn.renamed = None;
            self.send_again();
        }
    }

    fn send_again(&mut self) {
        let mut deadline = self.turn.as_mut().and_then(|t| t.deadline.take());
        self.cancel_timer(&mut deadline);
        if self.link.state == LinkState::Up {
            self.send();
        } else if let Some(turn) = self.turn.as_mut() {
            turn.stage = Stage::Opening;
            let n = turn.n;
            self.with_link(Waiter::Turn(n));
        }
    }

    /// True when a turn that starts now is the prompt we sent.
    pub(crate) fn is_ours_starting(&self, started: &TurnStarted) -> bool {
        let Some(turn) = self.turn.as_ref().filter(|t| t.is_live() && t.turn_id.is_none()) else {
            return false;
        };
        match (&started.input_source, &started.input_id) {
            (_, Some(id)) => turn.is_input(id),
            (None, None) => true,
            (Some(_), None) => false,
        }
    }

    pub(crate) fn our_turn_started(&mut self, turn_id: Option<&str>, started: &TurnStarted) {
        let mut deadline = self.turn.as_mut().and_then(|t| t.deadline.take());
        self.cancel_timer(&mut deadline);
        let Some(turn) = self.turn.as_mut() else { return };
        turn.steered = None;
        turn.turn_id = turn_id.map(str::to_owned);
        turn.execution_id.clone_from(&started.foreground_execution_id);
        turn.anchor.clone_from(&started.message_id);
        if turn.stage == Stage::Sending {
            self.turn_accepted();
        } else if turn.is_cancelled() {
            // A stop that came before the real start is lost on the engine: say it again.
            self.fire_stop();
        }
    }

    /// True when a terminal event ends our prompt.
    pub(crate) fn ends_ours(&self, turn_id: Option<&str>, input_id: Option<&str>) -> bool {
        let Some(turn) = self.turn.as_ref().filter(|t| t.is_live()) else { return false };
        if let (Some(ours), Some(theirs)) = (turn.turn_id.as_deref(), turn_id) {
            return ours == theirs;
        }
        if let Some(id) = input_id {
            return turn.is_input(id);
        }
        // An engine that names no turns: its own turns are told apart by their start.
        turn.stage == Stage::Running && !self.stream.foreign_runs()
    }

    pub(crate) fn our_turn_completed(&mut self, done: &TurnCompleted) {
        self.link.fresh = false;
        let Some(turn) = self.turn.as_mut() else { return };
        turn.reported_usage.clone_from(&done.usage);
        if turn.is_cancelled() {
            return self.finish(Ok(acp::StopReason::Cancelled));
        }
        if let Some(remark) = stop_reason::remark(done) {
            self.warn(&remark, None);
        }
        match stop_reason::of(done) {
            Ending::Error => {
                let problem =
                    turn_error::of_value(&json!("the turn ended with an error in the engine"));
                self.finish(Err(failure::from_schema(problem.to_acp())));
            }
            Ending::Stop(acp::StopReason::EndTurn)
                if says_nothing(done.response.as_ref()) && !self.translator.turn_has_text() =>
            {
                // A turn of the engine's own may begin meanwhile: its cards are not ours to close.
                if let Some(turn) = self.turn.as_mut() {
                    turn.cards_are_closed = true;
                }
                self.close_cards(CardEnd::Completed);
                // One that says it has no answer is believed by what is stored, at once.
                self.read_last_reply(if done.response.is_none() { 1 } else { REPLY_TRIES });
            }
            Ending::Stop(reason) => self.finish(Ok(reason)),
        }
    }

    pub(crate) fn our_turn_failed(&mut self, failed: &TurnFailed) {
        let problem = turn_error::turn_failed(failed);
        let Some(turn) = self.turn.as_ref() else { return };
        if turn.is_cancelled() || problem.is_cancelled {
            return self.finish(Ok(acp::StopReason::Cancelled));
        }
        if problem.is_engine_lost && turn.recoveries < MAX_RECOVERIES {
            // Its end is what starts the recovery.
            return self.emit(Effect::KillEngine);
        }
        match RETRY_STEPS.get(turn.attempt) {
            Some(step) if problem.is_transient => {
                let wait = problem.retry_after_ms.unwrap_or(*step).clamp(*step, 30_000);
                self.retry_later(wait, &problem);
            }
            None if problem.is_transient => self.give_up(&problem),
            _ => self.finish(Err(failure::from_schema(problem.to_acp()))),
        }
    }

    /// Every try failed for a reason that passes: that is said, and the session stays usable. Programs read it in the
    /// answer's `_meta.zcode.failure`.
    fn give_up(&mut self, problem: &turn_error::Failure) {
        self.close_cards(CardEnd::Failed);
        let tries = RETRY_STEPS.len() + 1;
        let title = format!(
            "The request failed {tries} times. Send it again later; the session can go on."
        );
        self.warn(&title, Some(&problem.message));
        if let Some(turn) = self.turn.as_mut() {
            turn.gave_up = Some(json!({"message": problem.message, "data": problem.data}));
        }
        self.finish(Ok(acp::StopReason::EndTurn));
    }

    fn retry_later(&mut self, wait: u64, problem: &turn_error::Failure) {
        self.close_cards(CardEnd::Failed);
        let Some(turn) = self.turn.as_mut() else { return };
        turn.attempt += 1;
        turn.turn_id = None;
        turn.renamed = None;
        let (n, attempt) = (turn.n, turn.attempt);
        turn.input_id = format!("in-{}-{n}-{attempt}", self.seed.nonce);
        let mut silence = turn.silence.take();
        self.cancel_timer(&mut silence);
        let title = format!(
            "The turn failed; trying again in {} s ({attempt} of {}).",
            wait.div_ceil(1_000),
            RETRY_STEPS.len()
        );
        self.warn(&title, Some(&problem.message));
        self.send_after(wait, Stage::Backoff);
    }

    /// The engine died under this prompt. True when the prompt will be sent again.
    pub(crate) fn recover_turn(&mut self) -> bool {
        let Some(turn) = self.turn.as_mut() else { return false };
        if turn.is_cancelled()
            || turn.recoveries >= MAX_RECOVERIES
            || turn.stage == Stage::Finishing
        {
            return false;
        }
        turn.recoveries += 1;
        turn.stage = Stage::Opening;
        turn.turn_id = None;
        turn.steered = None;
        turn.renamed = None;
        turn.busy_since = None;
        turn.probes = 0;
        turn.deaf_probes = 0;
        let (n, recoveries) = (turn.n, turn.recoveries);
        turn.input_id = format!("in-{}-{n}-r{recoveries}", self.seed.nonce);
        let (mut silence, mut deadline) = (turn.silence.take(), turn.deadline.take());
        self.cancel_timer(&mut silence);
        self.cancel_timer(&mut deadline);
        self.warn(
            "The engine stopped in the middle of the turn.",
            Some("It is started again and the prompt is sent once more."),
        );
        self.with_link(Waiter::Turn(n));
        true
    }

    /// Ends the prompt after its last readings.
    pub(crate) fn finish(&mut self, result: Result<acp::StopReason, AcpError>) {
        let end = match &result {
            Ok(acp::StopReason::Cancelled) => CardEnd::Cancelled,
            Ok(_) => CardEnd::Completed,
            Err(_) => CardEnd::Failed,
        };
        self.settle_turn_asks();
        if self.turn.as_ref().is_none_or(|turn| !turn.cards_are_closed) {
            self.close_cards(end);
        }
        let Some(turn) = self.turn.as_mut() else { return };
        turn.outcome = Some(Outcome { result });
        turn.stage = Stage::Finishing;
        let n = turn.n;
        let (mut silence, mut deadline) = (turn.silence.take(), turn.deadline.take());
        self.cancel_timer(&mut silence);
        self.cancel_timer(&mut deadline);
        self.cancel_stop_timers();
        if self.link.state == LinkState::Up && self.read_usage_end(n) {
            let token = self.timer(FINISH_WITHIN, Cont::FinishBy { n });
            if let Some(turn) = self.turn.as_mut() {
                turn.deadline = Some(token);
            }
        } else {
            self.turn_is_over(n);
        }
    }

    /// Ends the prompt at once.
    pub(crate) fn end_now(&mut self, result: Result<acp::StopReason, AcpError>) {
        let Some(turn) = self.turn.as_mut() else { return };
        turn.outcome = Some(Outcome { result });
        turn.stage = Stage::Finishing;
        let n = turn.n;
        let (mut silence, mut deadline) = (turn.silence.take(), turn.deadline.take());
        self.cancel_timer(&mut silence);
        self.cancel_timer(&mut deadline);
        self.cancel_stop_timers();
        self.settle_turn_asks();
        self.close_cards(CardEnd::Completed);
        self.turn_is_over(n);
    }

    /// Every reading is there (or late): answer, and let the next prompt begin.
    pub(crate) fn turn_is_over(&mut self, n: u64) {
        if !self.turn_is(n, Stage::Finishing) {
            return;
        }
        let Some(mut turn) = self.turn.take() else { return };
        let mut deadline = turn.deadline.take();
        self.cancel_timer(&mut deadline);
        if turn.is_cancelled() {
            self.stream.mute(turn.turn_id.clone(), turn.names());
        }
        let gave_up = turn.gave_up.take();
        let ended_well = gave_up.is_none()
            && matches!(&turn.outcome, Some(Outcome { result: Ok(acp::StopReason::EndTurn) }));
        let result =
            turn.outcome.as_ref().map_or(Ok(acp::StopReason::EndTurn), |o| o.result.clone());
        if let Some(req) = turn.req.take() {
            let usage = self.turn_usage(turn.reported_usage.as_ref());
            match turn.outcome.map(|o| o.result) {
                Some(Err(error)) => self.respond(req, Err(error)),
                Some(Ok(reason)) => {
                    if gave_up.is_none() {
                        self.tell_completion(reason, usage.as_ref());
                    }
                    self.answer_prompt_with(req, reason, usage, gave_up);
                }
                None => self.answer_prompt(req, acp::StopReason::EndTurn, usage),
            }
        }
        self.usage.turn_over();
        self.rows_turn_over(turn.turn_id.as_deref());
        self.steers_turn_over(n, &result);
        if ended_well {
            self.compact_if_due();
        }
        self.next_prompt();
    }

    fn answer_prompt(&mut self, req: ReqId, reason: acp::StopReason, usage: Option<acp::Usage>) {
        self.answer_prompt_with(req, reason, usage, None);
    }

    fn answer_prompt_with(
        &mut self,
        req: ReqId,
        reason: acp::StopReason,
        usage: Option<acp::Usage>,
        failure: Option<Value>,
    ) {
        let mut meta = self.context_usage_meta();
        if let Some(failure) = failure {
            let zcode = meta.get_or_insert_default().entry("zcode").or_insert_with(|| json!({}));
            if let Value::Object(zcode) = zcode {
                zcode.insert("failure".to_owned(), failure);
            }
        }
        let response = acp::PromptResponse::new(reason).usage(usage).meta(meta);
        self.respond_with(req, &response);
    }

    /// Answers a prompt whose turn is still being stopped.
    pub(crate) fn answer_cancelled_early(&mut self) {
        let Some(req) = self.turn.as_mut().and_then(|t| t.req.take()) else { return };
        self.settle_turn_asks();
        self.close_cards(CardEnd::Cancelled);
        self.answer_prompt(req, acp::StopReason::Cancelled, None);
        self.answer_cancelled_steers();
    }

    pub(crate) fn answer_turn_cancelled(&mut self, turn: &Turn) {
        if let Some(req) = turn.req {
            self.answer_prompt(req, acp::StopReason::Cancelled, None);
        }
    }

    pub(crate) fn cancel_everything_queued(&mut self) {
        for queued in std::mem::take(&mut self.queue) {
            self.answer_prompt(queued.req, acp::StopReason::Cancelled, None);
        }
    }

    pub(crate) fn close_cards(&mut self, end: CardEnd) {
        if end != CardEnd::Completed {
            self.close_children_of_turn(end);
        }
        self.translate(|t, out| t.finish_turn(end, out));
    }
}
