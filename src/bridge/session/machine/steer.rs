//! PURE. Text for a turn that runs already: `_session/steering`, and a second `session/prompt` during a turn. Both are put
//! into the turn as guides, one after the other, and answered by the engine's verdict (`engine::v4::steer`). A prompt that
//! was merged rides on the turn and is answered with its end; one that the engine queued is answered with the end of the
//! turn it becomes; one that was refused waits here and runs as a turn of its own.

use std::collections::VecDeque;
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::revoked::Revoked;
use super::turn::{Queued, Stage};
use super::{Cont, Machine, ReqId, Token, invalid_params};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::TurnStarted;
use crate::bridge::engine::v4::commands::{self, Command, Refusal};
use crate::bridge::engine::v4::steer::{Guide, Limits, Outcome, Step, Verdict};
use crate::bridge::session::failure;
use crate::bridge::translate::prompt::{self, SendInput};

/// How long an idle engine may leave a prompt of ours in its queue.
pub(super) const IDLE_WITHIN: Duration = Duration::from_secs(5);
/// Nobody knows whether the engine took it.
const UNANSWERED: &str = "guide.unanswered";
/// How many texts may wait for their verdict.
const MAX_STEERS: usize = 64;

/// The `_meta.steering` of `initialize`.
pub(crate) fn advert() -> Value {
    json!({
        "supported": true, "method": "_session/steering", "tier": "extension", "boundary": "step",
        "idle": "promptRequired", "settlesOwnerTurn": false,
        "outcomes": ["injected", "queued", "promptRequired", "startedNewTurn", "failed"],
    })
}

/// Who asked.
#[derive(Debug, Clone, Copy)]
enum Asker {
    /// `_session/steering`; whether the client said what it does when no turn runs.
    Steering { req: ReqId, prompt_required: bool },
    /// A second `session/prompt`.
    Prompt { req: ReqId },
}

/// A text on its way.
#[derive(Debug)]
struct Job {
    id: u64,
    asker: Asker,
    input: SendInput,
    guide: Option<Guide>,
    /// The user cancelled since.
    cancelled: bool,
}

/// Where a prompt that was handed to the engine is worked on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// In our turn with this serial number.
    Turn(u64),
    /// In the engine's queue.
    Queue,
    /// Being taken out of the engine's queue, which does not run it.
    Leaving,
    /// In a turn that the engine started for it.
    Own(Option<String>),
}

/// A prompt with its verdict.
struct Asked {
    job: u64,
    req: ReqId,
    input: SendInput,
    commands: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Rider {
    /// What it was while it waited for its verdict.
    job: u64,
    /// The commands it was sent by.
    commands: Vec<String>,
    pub(super) req: ReqId,
    pub(super) input: SendInput,
    pub(super) verdict: Verdict,
    pub(super) seat: Seat,
}

/// Everything that waits for a verdict or for an end.
#[derive(Debug, Default)]
pub(crate) struct Steers {
    limits: Limits,
    jobs: VecDeque<Job>,
    pub(super) riders: Vec<Rider>,
    timer: Option<Token>,
    /// The engine is idle and has prompts of ours in its queue; until when that may be so.
    pub(super) idle: Option<Token>,
    /// The session's row is written: it showed an event, or is not new.
    persisted: bool,
}

impl Steers {
    pub(crate) fn new(limits: Limits, persisted: bool) -> Self {
        Self { limits, persisted, ..Self::default() }
    }
}

impl Machine {
    /// `_session/steering`
    pub(crate) fn steer_request(&mut self, req: ReqId, params: &Value) {
        let (input, prompt_required) = match steering_params(params) {
            Ok(parsed) => parsed,
            Err(reason) => return self.respond(req, Err(invalid_params(reason))),
        };
        let asker = Asker::Steering { req, prompt_required };
        if self.turn_takes_guides() {
            return self.add_steer(asker, input);
        }
        self.steer_idle(req, prompt_required, input);
    }

    fn steer_idle(&mut self, req: ReqId, prompt_required: bool, input: SendInput) {
        if prompt_required {
            let idle = json!({"outcome": "promptRequired", "reason": "noRunningTurn"});
            return self.respond(req, Ok(idle));
        }
        if self.turn.is_some() {
            // A turn is ending: the text begins the next one.
            return self.add_steer(Asker::Steering { req, prompt_required }, input);
        }
        self.respond(req, Ok(json!({"outcome": "startedNewTurn"})));
        self.start_turn(None, input);
    }

    /// A second prompt: true when it goes into the running turn instead of waiting for its end.
    pub(crate) fn guide_prompt(&mut self, req: ReqId, input: &SendInput) -> bool {
        let runs = self.turn.as_ref().is_some_and(|it| it.is_live() && !it.is_cancelled());
        let plain = input.is_text_only
            && input.attachments.is_empty()
            && !input.words.trim_start().starts_with('/');
        if !runs || !plain || !self.queue.is_empty() || !self.v4.is_known() {
            return false;
        }
        self.add_steer(Asker::Prompt { req }, input.clone());
        true
    }

    /// A turn runs or is about to: a guide makes sense.
    fn turn_takes_guides(&self) -> bool {
        let ours =
            self.turn.as_ref().is_some_and(|it| it.stage != Stage::Finishing && !it.is_cancelled());
        ours || (self.turn.is_none() && self.stream.foreign_runs())
    }

    fn add_steer(&mut self, asker: Asker, input: SendInput) {
        if self.steers.jobs.len() >= MAX_STEERS {
            let verdict = failed("guide.tooMany", "too many messages wait for the running turn");
            let job = Job { id: 0, asker, input, guide: None, cancelled: false };
            return self.steer_verdict(job, verdict);
        }
        let id = self.next;
        self.next += 1;
        self.steers.jobs.push_back(Job { id, asker, input, guide: None, cancelled: false });
        self.pump_steers();
    }

    /// Sends the next text once the engine has the one before it and the turn is there to take it.
    pub(crate) fn pump_steers(&mut self) {
        loop {
            let ready = self.steers.jobs.iter().position(|it| it.guide.is_none());
            let Some(at) = ready else { return };
            let before = self.steers.jobs.iter().take(at);
            if before
                .into_iter()
                .any(|it| it.guide.as_ref().is_some_and(|guide| !guide.is_accepted()))
            {
                return;
            }
            if !self.turn_takes_guides() {
                let waits = self.steers.jobs.get(at).is_some_and(|it| {
                    matches!(it.asker, Asker::Steering { prompt_required: false, .. })
                });
                if waits && self.turn.is_some() {
                    return;
                }
                let Some(job) = self.steers.jobs.remove(at) else { return };
                let verdict = Verdict { outcome: Outcome::PromptRequired, ..Verdict::default() };
                self.steer_verdict(job, verdict);
                continue;
            }
            let sent = self.turn.as_ref().is_none_or(super::Turn::is_live);
            if !sent || self.engine_sid().is_none() {
                return;
            }
            let (now, command_id) = (self.now.ms, self.command_id());
            let (guide, step) =
                Guide::new(self.steers.limits, self.steers.persisted, command_id, now);
            let Some(job) = self.steers.jobs.get_mut(at) else { return };
            job.guide = Some(guide);
            let id = job.id;
            self.steer_step(id, step);
        }
    }

    fn steer_step(&mut self, id: u64, step: Step) {
        match step {
            Step::Wait => self.arm_steer_timer(),
            Step::Send { command_id } => self.send_guide(id, command_id),
            Step::Settled(verdict) => {
                let Some(at) = self.steers.jobs.iter().position(|it| it.id == id) else { return };
                let Some(job) = self.steers.jobs.remove(at) else { return };
                self.steer_verdict(job, verdict);
                self.arm_steer_timer();
            }
        }
    }

    fn send_guide(&mut self, id: u64, command_id: String) {
        let Some(sid) = self.engine_sid().map(str::to_owned) else { return };
        let Some(job) = self.steers.jobs.iter().find(|it| it.id == id) else { return };
        let command = Command::Guide { text: job.input.content.clone() };
        let stamp =
            commands::Stamp { command_id, issued_at: self.now.unix_ms, base_revision: None };
        self.call("v4/command", commands::command(&sid, &stamp, &command), Cont::SteerSent { id });
    }

    pub(crate) fn on_steer_reply(&mut self, id: u64, reply: Result<Box<RawValue>, EngineError>) {
        let now = self.now.ms;
        let reply = reply.and_then(|raw| failure::parse(&raw));
        let Some(guide) = self.guide_of(id) else {
            return self.on_revoked_reply(id, reply.map(|answer| commands::reply(&answer)));
        };
        let step = match reply {
            Ok(answer) => guide.on_reply(&commands::reply(&answer), now),
            Err(error) => guide.on_error(&refusal_of(&error), now),
        };
        self.steer_step(id, step);
        self.pump_steers();
    }

    fn guide_of(&mut self, id: u64) -> Option<&mut Guide> {
        self.steers.jobs.iter_mut().find(|it| it.id == id)?.guide.as_mut()
    }

    /// Shows something to every guide that is under way.
    pub(crate) fn steers_see(&mut self, mut see: impl FnMut(&mut Guide) -> Step) {
        let jobs = self.steers.jobs.iter_mut();
        let steps: Vec<(u64, Step)> = jobs
            .filter_map(|it| Some((it.id, see(it.guide.as_mut()?))))
            .filter(|(_, step)| *step != Step::Wait)
            .collect();
        for (id, step) in steps {
            self.steer_step(id, step);
        }
    }

    /// An event of the session's came: its row is written.
    pub(crate) fn steers_see_event(&mut self) {
        if std::mem::replace(&mut self.steers.persisted, true) {
            return;
        }
        let ids: Vec<u64> =
            self.steers.jobs.iter().filter(|it| it.guide.is_some()).map(|it| it.id).collect();
        for id in ids {
            let command_id = self.command_id();
            if let Some(guide) = self.guide_of(id) {
                let step = guide.on_session_event(|| command_id);
                self.steer_step(id, step);
            }
        }
    }

    fn arm_steer_timer(&mut self) {
        let mut old = self.steers.timer.take();
        self.cancel_timer(&mut old);
        let due = self.steers.jobs.iter().filter_map(|it| it.guide.as_ref()?.deadline_ms()).min();
        if let Some(due) = due {
            let after = Duration::from_millis(due.saturating_sub(self.now.ms));
            self.steers.timer = Some(self.timer(after, Cont::SteerTimer));
        }
    }

    pub(crate) fn steer_timer(&mut self) {
        self.steers.timer = None;
        let now = self.now.ms;
        let ids: Vec<u64> =
            self.steers.jobs.iter().filter(|it| it.guide.is_some()).map(|it| it.id).collect();
        for id in ids {
            let command_id = self.command_id();
            if let Some(guide) = self.guide_of(id) {
                let step = guide.on_timer(now, || command_id);
                if step != Step::Wait {
                    self.steer_step(id, step);
                }
            }
        }
        self.arm_steer_timer();
        self.pump_steers();
    }

    fn steer_verdict(&mut self, job: Job, verdict: Verdict) {
        if job.cancelled && verdict.outcome != Outcome::Injected {
            return self.cancelled_verdict(&job, verdict);
        }
        if job.cancelled {
            self.revoked_is_settled(job.id);
        }
        let Job { id, asker, input, guide, .. } = job;
        match asker {
            Asker::Steering { req, prompt_required: false }
                if verdict.outcome == Outcome::PromptRequired =>
            {
                self.steer_idle(req, false, input);
            }
            Asker::Steering { req, .. } => self.respond(req, Ok(receipt(&verdict))),
            Asker::Prompt { req } => {
                let commands = guide.map(|it| it.command_ids().map(str::to_owned).collect());
                let commands = commands.unwrap_or_default();
                self.prompt_verdict(Asked { job: id, req, input, commands }, verdict);
            }
        }
    }

    /// What the user took back: it is answered with that, and is kept from running where the engine may have it.
    fn cancelled_verdict(&mut self, job: &Job, verdict: Verdict) {
        match verdict.outcome {
            // The engine said that it has it not.
            Outcome::PromptRequired => self.revoked_is_settled(job.id),
            Outcome::Failed if verdict.reason_code.as_deref() != Some(UNANSWERED) => {
                self.revoked_is_settled(job.id);
            }
            _ => self.revoke_job(job, verdict.pending_input_id.clone()),
        }
        match job.asker {
            Asker::Prompt { req } => {
                self.answer_rider(req, &verdict, Ok(acp::StopReason::Cancelled));
            }
            Asker::Steering { req, .. } => {
                let text = "the turn was cancelled before it took the message";
                let verdict = Verdict {
                    outcome: Outcome::Failed,
                    reason_code: Some("guide.turnInterrupted".to_owned()),
                    message: Some(text.to_owned()),
                    ..verdict
                };
                self.respond(req, Ok(receipt(&verdict)));
            }
        }
    }

    fn revoke_job(&mut self, job: &Job, item: Option<String>) {
        let Some(guide) = &job.guide else { return };
        let commands: Vec<String> = guide.command_ids().map(str::to_owned).collect();
        if commands.is_empty() {
            return;
        }
        let item = item.or_else(|| guide.pending_input_id().map(str::to_owned));
        let text = job.input.content.clone();
        self.revoke(Revoked::new(job.id, commands, item, text));
    }

    fn prompt_verdict(&mut self, asked: Asked, verdict: Verdict) {
        let Asked { job, req, input, commands } = asked;
        match verdict.outcome {
            Outcome::Injected => match self.turn.as_ref().map(|it| it.n) {
                Some(n) => {
                    self.ride(Rider { job, req, input, commands, verdict, seat: Seat::Turn(n) });
                }
                None => self.answer_rider(req, &verdict, Ok(acp::StopReason::EndTurn)),
            },
            Outcome::Queued | Outcome::StartedNewTurn => {
                self.ride(Rider { job, req, input, commands, verdict, seat: Seat::Queue });
            }
            Outcome::PromptRequired | Outcome::Failed => {
                self.queue.push_back(Queued { req, input });
                self.next_prompt();
            }
        }
    }

    fn ride(&mut self, rider: Rider) {
        self.steers.riders.push(rider);
        self.watch_the_queue();
    }

    /// Our turn ended: who rode on it is answered with its end, what was not merged learns it.
    pub(crate) fn steers_turn_over(
        &mut self,
        n: u64,
        result: &Result<acp::StopReason, agent_client_protocol::Error>,
    ) {
        let (here, others) = std::mem::take(&mut self.steers.riders)
            .into_iter()
            .partition(|it| it.seat == Seat::Turn(n));
        self.steers.riders = others;
        let here: Vec<Rider> = here;
        for rider in here {
            self.answer_rider(rider.req, &rider.verdict, result.clone());
        }
        if matches!(result, Ok(acp::StopReason::Cancelled)) {
            self.answer_cancelled_steers();
        }
        self.steers_see_end();
    }

    fn steers_see_end(&mut self) {
        let now = self.now.ms;
        self.steers_see(|it| it.on_turn_ended(now));
        self.arm_steer_timer();
        self.pump_steers();
        self.watch_the_queue();
    }

    /// The engine started a turn that we did not send: perhaps the one of a prompt in its queue.
    pub(crate) fn steers_see_start(&mut self, turn_id: Option<&str>, started: &TurnStarted) {
        self.watch_the_queue();
        if started.input_source.is_some() {
            return;
        }
        let named = |it: &Rider| {
            started.input_id.is_some() && it.verdict.pending_input_id == started.input_id
        };
        let in_queue = |it: &Rider| matches!(it.seat, Seat::Queue | Seat::Leaving);
        let waiting = |it: &&mut Rider| in_queue(it);
        let by_name = self.steers.riders.iter().position(|it| in_queue(it) && named(it));
        let rider = match by_name {
            Some(at) => self.steers.riders.get_mut(at),
            None => self.steers.riders.iter_mut().find(waiting),
        };
        if let Some(rider) = rider {
            rider.seat = Seat::Own(turn_id.map(str::to_owned));
        }
    }

    /// A turn that we did not send ended.
    pub(crate) fn steers_see_foreign_end(
        &mut self,
        turn_id: Option<&str>,
        reason: acp::StopReason,
    ) {
        let at = self.steers.riders.iter().position(|it| match &it.seat {
            Seat::Own(own) => own.is_none() || turn_id.is_none() || own.as_deref() == turn_id,
            Seat::Turn(_) | Seat::Queue | Seat::Leaving => false,
        });
        if let Some(at) = at {
            let rider = self.steers.riders.remove(at);
            self.answer_rider(rider.req, &rider.verdict, Ok(reason));
        }
        if self.turn.is_none() {
            self.steers_see_end();
        }
    }

    /// The user cancelled: what was not sent is dropped, and what waits in the engine's queue is taken out of it.
    pub(crate) fn cancel_steers(&mut self) {
        let jobs = std::mem::take(&mut self.steers.jobs);
        let (sent, unsent): (VecDeque<Job>, VecDeque<Job>) = jobs
            .into_iter()
            .map(|it| Job { cancelled: true, ..it })
            .partition(|it| it.guide.is_some());
        for job in &sent {
            self.revoke_job(job, None);
        }
        self.steers.jobs = sent;
        for job in unsent {
            self.steer_verdict(
                job,
                Verdict { outcome: Outcome::PromptRequired, ..Verdict::default() },
            );
        }
        self.steers_see(Guide::on_cancel);
        let (waiting, others) = std::mem::take(&mut self.steers.riders)
            .into_iter()
            .partition(|it| matches!(it.seat, Seat::Queue | Seat::Leaving));
        self.steers.riders = others;
        let waiting: Vec<Rider> = waiting;
        for rider in waiting {
            self.revoke_rider(rider);
        }
    }

    fn revoke_rider(&mut self, rider: Rider) {
        let Rider { job, req, input, commands, verdict, .. } = rider;
        self.answer_rider(req, &verdict, Ok(acp::StopReason::Cancelled));
        let item = verdict.pending_input_id;
        let text = input.content;
        self.revoke(Revoked::new(job, commands, item, text));
    }

    /// The cancelled turn is answered: who was cancelled with it does not wait for a verdict any longer.
    pub(crate) fn answer_cancelled_steers(&mut self) {
        let jobs = std::mem::take(&mut self.steers.jobs);
        let (cancelled, others): (VecDeque<Job>, VecDeque<Job>) =
            jobs.into_iter().partition(|it| it.cancelled);
        self.steers.jobs = others;
        for job in cancelled {
            let text = "the turn was cancelled before the engine said what became of the message";
            self.steer_verdict(job, failed(UNANSWERED, text));
        }
        self.arm_steer_timer();
    }

    /// `$/cancel_request` for a prompt that was put into the turn: true when it was one that still waits.
    pub(crate) fn cancel_guided(&mut self, req: ReqId) -> bool {
        let asks = |it: &Job| matches!(it.asker, Asker::Prompt { req: at } if at == req);
        if let Some(at) = self.steers.jobs.iter().position(asks)
            && let Some(job) = self.steers.jobs.remove(at)
        {
            let text = "it was cancelled before the engine said what became of it";
            self.steer_verdict(Job { cancelled: true, ..job }, failed(UNANSWERED, text));
            self.arm_steer_timer();
            self.pump_steers();
            return true;
        }
        let waits = |it: &Rider| it.req == req && matches!(it.seat, Seat::Queue | Seat::Leaving);
        let Some(at) = self.steers.riders.iter().position(waits) else { return false };
        let rider = self.steers.riders.remove(at);
        self.revoke_rider(rider);
        self.watch_the_queue();
        true
    }

    /// True while the engine runs a turn for a prompt that it queued.
    pub(crate) fn rider_has_own_turn(&self) -> bool {
        self.steers.riders.iter().any(|it| matches!(it.seat, Seat::Own(_)))
    }

    /// The engine is gone, its queue with it: prompts run again as turns of their own.
    pub(crate) fn lose_steers(&mut self) {
        for job in std::mem::take(&mut self.steers.jobs) {
            let verdict = failed("engine.lost", "the engine ended before it took the message");
            self.steer_verdict(job, verdict);
        }
        self.revoked.clear();
        for rider in std::mem::take(&mut self.steers.riders) {
            match rider.seat {
                Seat::Turn(_) => self.steers.riders.push(rider),
                Seat::Queue | Seat::Leaving | Seat::Own(_) => {
                    let text = "the engine ended before this prompt was worked on; send it again";
                    let error = agent_client_protocol::Error::new(
                        agent_client_protocol::ErrorCode::INTERNAL_ERROR,
                        text,
                    );
                    self.answer_rider(rider.req, &rider.verdict, Err(error));
                }
            }
        }
        let mut timers = [self.steers.timer.take(), self.steers.idle.take()];
        for timer in &mut timers {
            self.cancel_timer(timer);
        }
    }

    /// The bridge or the session ends: nobody is left without an answer.
    pub(crate) fn end_steers(&mut self) {
        for job in std::mem::take(&mut self.steers.jobs) {
            match job.asker {
                Asker::Steering { req, .. } => {
                    self.respond(
                        req,
                        Ok(receipt(&failed("session.closed", "the session was closed"))),
                    );
                }
                Asker::Prompt { req } => {
                    self.respond_with(req, &acp::PromptResponse::new(acp::StopReason::Cancelled));
                }
            }
        }
        for rider in std::mem::take(&mut self.steers.riders) {
            self.answer_rider(rider.req, &rider.verdict, Ok(acp::StopReason::Cancelled));
        }
    }

    pub(super) fn answer_rider(
        &mut self,
        req: ReqId,
        verdict: &Verdict,
        result: Result<acp::StopReason, agent_client_protocol::Error>,
    ) {
        match result {
            Err(error) => self.respond(req, Err(error)),
            Ok(reason) => {
                let mut meta = acp::Meta::new();
                meta.insert("steering".to_owned(), receipt(verdict));
                self.respond_with(req, &acp::PromptResponse::new(reason).meta(meta));
            }
        }
    }
}

fn failed(code: &str, message: &str) -> Verdict {
    Verdict {
        outcome: Outcome::Failed,
        reason_code: Some(code.to_owned()),
        message: Some(message.to_owned()),
        ..Verdict::default()
    }
}

/// The verdict as a client reads it.
fn receipt(verdict: &Verdict) -> Value {
    let mut map = Map::new();
    map.insert("outcome".to_owned(), json!(verdict.outcome.as_str()));
    let fields = [
        ("delivery", &verdict.delivery),
        ("steerState", &verdict.steer_state),
        ("pendingInputId", &verdict.pending_input_id),
        ("reason", &verdict.reason_code),
        ("detail", &verdict.message),
    ];
    for (key, value) in fields {
        if let Some(value) = value {
            map.insert(key.to_owned(), json!(value));
        }
    }
    Value::Object(map)
}

fn refusal_of(error: &EngineError) -> Refusal {
    if error.is_unknown_method() {
        return Refusal {
            reason_code: Some("engine.noSteering".to_owned()),
            message: Some("this engine cannot take messages into a running turn".to_owned()),
            foreign_key: false,
        };
    }
    Refusal {
        reason_code: Some("fault.command.executionFailed".to_owned()),
        message: Some(error.to_string()),
        foreign_key: error.is_foreign_key(),
    }
}

/// The text, and whether the client wants to hear that no turn runs.
fn steering_params(params: &Value) -> Result<(SendInput, bool), String> {
    let blocks = params.get("prompt").and_then(Value::as_array).filter(|it| !it.is_empty());
    let blocks = blocks.ok_or("prompt: a non-empty list of text blocks is expected")?;
    let blocks: Vec<acp::ContentBlock> = serde_json::from_value(Value::Array(blocks.clone()))
        .map_err(|error| format!("prompt: {error}"))?;
    let input = prompt::from_acp(&blocks).map_err(|error| error.to_string())?;
    if !input.is_text_only || !input.attachments.is_empty() {
        return Err("prompt: only text can be put into a running turn; send the rest as a prompt of its own".to_owned());
    }
    match params.pointer("/_meta/steering/idleBehavior") {
        None | Some(Value::Null) => Ok((input, false)),
        Some(Value::String(word)) if word == "promptRequired" => Ok((input, true)),
        Some(other) => Err(format!(
            "_meta.steering.idleBehavior: {other} is not known; use \"promptRequired\""
        )),
    }
}
