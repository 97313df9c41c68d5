//! PURE. The life of a turn: accepted, started, played action by action, stopped or ended, and what
//! follows it (titles, checkpoints, notification turns, the queue).

use super::engine::Engine;
use super::options::Fault;
use super::player::{Action, Player, Vars};
use super::record::{self, UserKind};
use super::script::{self, Script, Steps};
use super::session::{Notice, Phase, Runner, Session, Turn, TurnKind};
use super::store::Checkpoint;
use super::v4::rows;
use super::wire::Wire;
use serde_json::{Value, json};
use std::sync::Arc;

/// From the first input to the session's row in the database.
pub(super) const ROW_MS: u64 = 265;
/// From the row to the first event.
const FIRST_EVENT_MS: u64 = 100;
/// From a later input to its `turn.started`.
const START_MS: u64 = 40;
/// What a context holds before anything was said.
const BASE_TOKENS: u64 = 11_500;

/// An input that becomes a turn.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) text: String,
    pub(super) kind: TurnKind,
    pub(super) steps: Option<Steps>,
    /// The host's own id for it (`inputId`).
    pub(super) client_id: Option<String>,
    pub(super) query_id: Option<String>,
    pub(super) command_id: Option<String>,
    /// Parts beside the text (attachments).
    pub(super) files: Vec<Value>,
}

impl Input {
    /// An input of the engine's own.
    pub(super) fn internal(kind: TurnKind, text: String, steps: Steps) -> Self {
        Self {
            text,
            kind,
            steps: Some(steps),
            client_id: None,
            query_id: None,
            command_id: None,
            files: Vec::new(),
        }
    }
}

impl Session {
    /// When something is due.
    pub(super) fn due(&self, wire: &Wire) -> Option<u64> {
        let paced = wire.options.pace > 0.0;
        let turn = self.turn.as_ref().and_then(|turn| match turn.phase {
            Phase::Accepted | Phase::Ending(_) => Some(turn.due),
            Phase::Running if turn.headers.is_some() => None,
            Phase::Running => turn.runner.next.as_ref().map(|_| turn.runner.due),
        });
        let tasks =
            self.tasks.iter().filter(|t| t.runner.next.is_some()).map(|t| t.runner.due).min();
        let batch = if paced { self.legacy.due() } else { None };
        [turn, tasks, batch, self.topic.due(paced)].into_iter().flatten().min()
    }

    /// Where a V4 row of the running turn belongs.
    pub(super) fn row_at(&self, wire: &Wire) -> (String, String, u64, u64) {
        let (turn, message) = match &self.turn {
            Some(turn) => (turn.id.clone(), turn.message.clone()),
            None => ("turn_0".to_owned(), String::new()),
        };
        (turn, message, wire.now, wire.clock())
    }
}

impl Engine {
    /// Accepts an input: the turn starts a moment later.
    pub(super) fn accept(&mut self, id: &str, input: Input) {
        let now = self.wire.now;
        let clock = self.wire.clock();
        let profile = self.wire.options.profile;
        let Some(session) = self.sessions.get(id) else { return };
        let script = if input.steps.is_some() { None } else { self.library.pick(&input.text) };
        let vars = self.vars(session, &input.text, script.as_deref());
        let Some(session) = self.sessions.get_mut(id) else { return };
        let delay = match session.row_at {
            None => {
                let late = |f: &Fault| if let Fault::LateRow(ms) = f { Some(*ms) } else { None };
                let late = self.wire.options.fault(late).map_or(0, |ms| FIRST_EVENT_MS + ms);
                session.row_at = Some(now + self.wire.options.scaled(ROW_MS + late));
                ROW_MS + FIRST_EVENT_MS
            }
            Some(at) if at > now => FIRST_EVENT_MS + ROW_MS,
            Some(_) => START_MS,
        };
        let player = match (&input.steps, &script) {
            (Some(steps), _) => Player::of_steps(Arc::clone(steps), None, vars),
            (None, Some(script)) => Player::new(script, vars),
            (None, None) => Player::of_steps(Arc::from([]), None, vars),
        };
        if let Some(script) = &script {
            *session.stored.runs.entry(script.name.clone()).or_default() += 1;
        }
        let user_message = self.wire.ids.named("msg");
        let kind = match input.kind {
            TurnKind::Prompt => UserKind::PROMPT,
            TurnKind::Background => {
                UserKind { origin: "system", kind: "background_notification", visible: false }
            }
            TurnKind::Goal | TurnKind::Compact => {
                UserKind { origin: "system", kind: "system_reminder", visible: false }
            }
        };
        let mut parts = vec![json!({"type": "text", "text": input.text})];
        parts.extend(input.files);
        session.stored.messages.push(record::user_message(
            profile,
            id,
            &user_message,
            clock,
            kind,
            &Value::Array(parts),
        ));
        session.stored.turn_count += 1;
        session.stored.updated_at = clock;
        session.last_error = None;
        let turn = Turn {
            id: self.wire.ids.named("turn"),
            number: session.stored.turn_count,
            kind: input.kind,
            pending_chars: input.text.len() as u64,
            input: input.text,
            input_id: input.client_id,
            query_id: input.query_id,
            command_id: input.command_id,
            execution_id: self.wire.ids.named("exec_fg"),
            phase: Phase::Accepted,
            due: now + self.wire.options.scaled(delay),
            runner: Runner::new(player),
            started: clock,
            user_message,
            message: String::new(),
            response: String::new(),
            output_chars: 0,
            requests: 0,
            tool_count: 0,
            files: Vec::new(),
            open_lane: None,
            open_calls: Vec::new(),
            steps: 0,
            headers: None,
            headers_granted: false,
            evict: false,
            title: script.and_then(|s| s.title.clone()),
            guide_at: None,
        };
        session.turn = Some(turn);
        session.state(&mut self.wire, "prompt_started", &json!({"status": "running"}));
    }

    fn vars(&self, session: &Session, prompt: &str, script: Option<&Script>) -> Vars {
        let cwd =
            session.stored.workspace.get("workspacePath").and_then(Value::as_str).unwrap_or("/");
        let runs = script.and_then(|s| session.stored.runs.get(&s.name)).copied().unwrap_or(0);
        Vars {
            prompt: prompt.to_owned(),
            cwd: cwd.to_owned(),
            menu: self.library.menu(),
            n: script::number_in(prompt),
            attempt: runs + 1,
            write_files: script::asks_to_write(prompt),
            ..Vars::default()
        }
    }

    /// Does what is due in one session: at most one action of its turn and of each task.
    pub(super) fn tick_session(&mut self, id: &str) {
        let now = self.wire.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let due =
            session.turn.as_ref().map(|t| (t.phase, t.due, t.runner.due, t.headers.is_some()));
        match due {
            Some((Phase::Accepted, at, ..)) if at <= now => self.begin_turn(id),
            Some((Phase::Ending(result), at, ..)) if at <= now => self.end_turn(id, result),
            Some((Phase::Running, _, at, false)) if at <= now => self.play_turn(id),
            _ => {}
        }
        self.tick_tasks(id);
        let paced = self.wire.options.pace > 0.0;
        let Some(session) = self.sessions.get_mut(id) else { return };
        if paced
            && session.legacy.due().is_some_and(|at| at <= now)
            && let Some((kind, payload)) = session.legacy.flush(now)
        {
            session.event(&mut self.wire, kind, payload);
        }
        // Without waits, frames are cut when there is nothing left to play, or by size.
        let busy = !paced
            && session
                .turn
                .as_ref()
                .is_some_and(|t| t.phase == Phase::Running && t.runner.next.is_some());
        if session.topic.due(paced).is_some_and(|at| at <= now)
            && (!busy || session.topic.is_large())
        {
            session.topic.flush(&mut self.wire);
        }
    }

    fn begin_turn(&mut self, id: &str) {
        let now = self.wire.now;
        let clock = self.wire.clock();
        let Some(session) = self.sessions.get_mut(id) else { return };
        let first = session.stored.event_seq == 0;
        let Some(turn) = session.turn.as_mut() else { return };
        turn.phase = Phase::Running;
        turn.started = clock;
        turn.runner.due = now;
        turn.runner.fetch(&self.wire.options, &mut self.wire.ids, now);
        let mut payload = json!({
            "turnNumber": turn.number, "input": turn.input, "messageId": turn.user_message,
            "inputId": turn.input_id, "queryId": turn.query_id, "inputSource": turn.kind.input_source(),
            "inputVisibility": if turn.kind == TurnKind::Prompt { "user-visible" } else { "model-only" },
            "executionKind": if turn.kind == TurnKind::Compact { "compact" } else { "regular" },
            "foregroundExecutionId": turn.execution_id,
        });
        if let Some(map) = payload.as_object_mut() {
            map.retain(|_, v| !v.is_null());
        }
        let (kind, text) = (turn.kind, turn.input.clone());
        let command = turn.command_id.clone();
        if first {
            session.event(&mut self.wire, "session.created", json!({"sessionId": id}));
        }
        session.event(&mut self.wire, "turn.started", payload);
        if kind == TurnKind::Prompt && session.stored.title.is_empty() {
            let title = first_line(&text);
            self.set_title(id, &title, "first_input");
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        let origin = match kind {
            TurnKind::Prompt => "realUser",
            TurnKind::Background => "backgroundResult",
            TurnKind::Goal => "goalContinuation",
            TurnKind::Compact => "system",
        };
        let (turn_id, message_id, now, clock) = session.row_at(&self.wire);
        let at = rows::At { turn_id: &turn_id, message_id: &message_id, now, clock };
        let input = (kind == TurnKind::Prompt).then_some((text.as_str(), command.as_deref()));
        session.rows.begin(&mut session.topic, at, origin, input);
        self.v4_state(id);
        self.save(id);
        self.after_action(id);
    }

    fn play_turn(&mut self, id: &str) {
        let options = &self.wire.options;
        let die = options.fault(|f| if let Fault::DieAtStep(n) = f { Some(*n) } else { None });
        let hang = options.fault(|f| if let Fault::HangAtStep(n) = f { Some(*n) } else { None });
        let Some(turn) = self.sessions.get_mut(id).and_then(|s| s.turn.as_mut()) else { return };
        let Some(beat) = turn.runner.next.take() else { return };
        turn.steps += 1;
        if die == Some(turn.steps) {
            self.exit = Some(9);
            return;
        }
        if hang == Some(turn.steps) {
            self.hung = true;
            return;
        }
        if matches!(beat.action, Action::RequestStart)
            && beat.child.is_none()
            && self.ask_headers(id)
        {
            // The same action again once the host has answered.
            if let Some(turn) = self.sessions.get_mut(id).and_then(|s| s.turn.as_mut()) {
                turn.runner.next = Some(beat);
            }
            return;
        }
        self.play(id, None, beat);
        self.after_action(id);
    }

    /// Looks for the next action; without one the turn ends.
    pub(super) fn after_action(&mut self, id: &str) {
        let now = self.wire.now;
        let Some(turn) = self.sessions.get_mut(id).and_then(|s| s.turn.as_mut()) else { return };
        if turn.phase != Phase::Running || turn.headers.is_some() {
            return;
        }
        let more = turn.runner.fetch(&self.wire.options, &mut self.wire.ids, now);
        if !more && !turn.runner.player.is_waiting() {
            turn.phase = Phase::Ending("success");
            turn.due = now + self.wire.options.scaled(60);
        }
    }

    /// Breaks the turn off; it ends as cancelled a moment later. False when there is none to stop.
    pub(super) fn stop_turn(&mut self, id: &str) -> bool {
        let now = self.wire.now;
        let Some(turn) = self.sessions.get_mut(id).and_then(|s| s.turn.as_mut()) else {
            return false;
        };
        // Between the reply to the send and the turn's start a stop finds nothing to stop.
        if turn.phase != Phase::Running {
            return false;
        }
        turn.phase = Phase::Ending("cancelled");
        turn.due = now + self.wire.options.scaled(150);
        turn.runner.next = None;
        turn.headers = None;
        self.drop_questions(id);
        self.close_open(id, "Cancelled by the user");
        true
    }

    /// Closes what a broken-off turn left open.
    fn close_open(&mut self, id: &str, why: &str) {
        let Some(turn) = self.sessions.get_mut(id).and_then(|s| s.turn.as_mut()) else { return };
        let lane = turn.open_lane.take();
        let calls = std::mem::take(&mut turn.open_calls);
        if let Some(lane) = lane {
            self.emit(id, None, &Action::Close(lane));
        }
        for call in calls {
            self.emit(id, None, &Action::Error { call, error: why.to_owned() });
        }
    }

    /// Ends the turn with an error.
    pub(super) fn fail_turn(&mut self, id: &str, error: &Value) {
        self.close_open(id, "The turn failed");
        let clock = self.wire.clock();
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = session.turn.as_ref() else { return };
        let payload =
            json!({"error": error, "turnPhase": "model_request", "inputId": turn.input_id});
        let started = turn.started;
        session.last_error = Some(error.clone());
        session.stored.usage.errors += 1;
        session.recorder.finish(&mut session.stored.messages, "error", Some(error), clock);
        session.event(&mut self.wire, "turn.failed", payload);
        self.terminal(id, "failed", "error_during_execution", started);
        self.finish_rows(id, "failed");
        self.leave_turn(id, "prompt_failed", None);
    }

    /// Ends the turn with that result.
    pub(super) fn end_turn(&mut self, id: &str, result: &str) {
        let clock = self.wire.clock();
        let lose = self.wire.options.has_fault(&Fault::LoseCompleted);
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = session.turn.as_ref() else { return };
        let (started, kind, files) = (turn.started, turn.kind, turn.files.clone());
        let payload = completed(turn, session.stored.context_used, result, clock);
        let title = turn.title.clone();
        let finish = if result == "cancelled" { "cancelled" } else { "stop" };
        session.recorder.finish(&mut session.stored.messages, finish, None, clock);
        if kind == TurnKind::Compact {
            self.compacted(id, result);
        }
        self.checkpoint(id, files);
        let Some(session) = self.sessions.get_mut(id) else { return };
        if !lose {
            session.event(&mut self.wire, "turn.completed", payload);
        }
        self.terminal(id, if result == "success" { "completed" } else { result }, result, started);
        let state = if result == "success" { "completedSuccess" } else { "completedInterrupted" };
        self.finish_rows(id, state);
        let title = title.filter(|_| result == "success" && kind == TurnKind::Prompt);
        self.leave_turn(id, "prompt_completed", title);
    }

    fn terminal(&mut self, id: &str, status: &str, result: &str, started: u64) {
        if !self.wire.options.profile.turn_terminal() {
            return;
        }
        let duration = self.wire.clock().saturating_sub(started);
        if let Some(session) = self.sessions.get_mut(id) {
            let payload = json!({"kind": "turn.terminal", "status": status, "resultType": result, "durationMs": duration, "inputTokens": 0, "outputTokens": 0, "totalTokens": 0});
            session.event(&mut self.wire, "turn.terminal", payload);
        }
    }

    fn finish_rows(&mut self, id: &str, state: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let (turn_id, message_id, now, clock) = session.row_at(&self.wire);
        let at = rows::At { turn_id: &turn_id, message_id: &message_id, now, clock };
        let (started, files) =
            session.turn.as_ref().map_or((clock, Vec::new()), |t| (t.started, t.files.clone()));
        session.rows.end(&mut session.topic, at, state, started, &files);
    }

    /// A turn that changed files leaves a point to fork at.
    fn checkpoint(&mut self, id: &str, files: Vec<String>) {
        if files.is_empty() {
            return;
        }
        let checkpoint_id = self.wire.ids.named("checkpoint");
        let Some(session) = self.sessions.get_mut(id) else { return };
        let message_id = session.turn.as_ref().map(|t| t.message.clone()).unwrap_or_default();
        let payload =
            json!({"checkpointId": checkpoint_id, "scope": "turn", "fileCount": files.len()});
        session.stored.checkpoints.push(Checkpoint {
            id: checkpoint_id,
            message_id,
            turn: session.stored.turn_count,
            files,
            messages: session.stored.messages.len(),
        });
        session.event(&mut self.wire, "checkpoint.created", payload);
    }

    /// The lock is free again: whatever waits comes next.
    fn leave_turn(&mut self, id: &str, reason: &str, title: Option<String>) {
        let clock = self.wire.clock();
        let evict_all = self.wire.options.has_fault(&Fault::EvictAfterTurn);
        let Some(session) = self.sessions.get_mut(id) else { return };
        let turn = session.turn.take();
        session.api_retry = None;
        session.stored.updated_at = clock;
        session.swallowed = 0;
        let reason = match &turn {
            Some(turn) if turn.kind == TurnKind::Compact && reason == "prompt_completed" => {
                "session_compacted"
            }
            _ => reason,
        };
        session.state(&mut self.wire, reason, &json!({"status": "idle"}));
        self.fall_back_guides(id);
        if let Some(title) = title {
            self.generated_title(id, &title);
        }
        self.v4_state(id);
        self.save(id);
        if evict_all || turn.is_some_and(|t| t.evict) {
            return self.evict(id);
        }
        self.start_next(id);
    }

    /// Starts what waits for the lock: notifications first, then the queue.
    pub(super) fn start_next(&mut self, id: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.is_busy() {
            return;
        }
        if let Some(Notice { input, steps }) = session.notices.pop_front() {
            self.accept(id, Input::internal(TurnKind::Background, input, steps));
        } else if session.auto_drain && !session.queue.is_empty() {
            self.drain_queue(id);
        }
    }

    /// The engine's own title, unless the session has a better one.
    fn generated_title(&mut self, id: &str, title: &str) {
        let Some(session) = self.sessions.get(id) else { return };
        let replaceable = matches!(session.stored.title_source.as_str(), "default" | "first_input");
        if session.stored.title_generation && replaceable {
            self.set_title(id, title, "generated");
        }
    }

    /// Names the session.
    pub(super) fn set_title(&mut self, id: &str, title: &str, source: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let previous = std::mem::replace(&mut session.stored.title, title.to_owned());
        source.clone_into(&mut session.stored.title_source);
        let message = session.turn.as_ref().map(|t| t.user_message.clone());
        let payload = json!({"previousTitle": previous, "source": source, "title": title, "messageID": message});
        session.event(&mut self.wire, "session.titleUpdated", payload);
        let now = self.wire.now;
        session.topic.set_state(now, "meta", &json!({"title": title, "titleSource": source}));
    }
}

/// Payload of `turn.completed`.
fn completed(turn: &Turn, used: Option<u64>, result: &str, clock: u64) -> Value {
    let output = turn.output_chars / 4 + 1;
    let input = used.unwrap_or(BASE_TOKENS) * turn.requests.max(1);
    let cached = input * 4 / 5;
    let mut payload = json!({
        "response": turn.response,
        "tokenCount": input + output,
        "toolCallCount": turn.tool_count,
        "duration": clock.saturating_sub(turn.started),
        "resultType": result,
        "cacheStats": {"totalMessages": 2, "cachedMessages": 1, "lastCacheHit": true, "cacheReadTokens": cached},
        "inputId": turn.input_id,
        "usage": {
            "source": "provider", "modelRequestCount": turn.requests, "inputTokens": input, "outputTokens": output,
            "totalTokens": input + output, "cacheReadTokens": cached, "cacheWriteTokens": 0, "reasoningTokens": 0,
            "webFetchRequests": 0, "webSearchRequests": 0,
        },
    });
    if let Some(map) = payload.as_object_mut() {
        map.retain(|_, v| !v.is_null());
        if turn.requests == 0 {
            map.remove("usage");
        }
    }
    payload
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("New session");
    line.chars().take(60).collect()
}

/// The context's size after a request.
pub(super) fn context_after(before: Option<u64>, chars: u64, window: u64) -> u64 {
    (before.unwrap_or(BASE_TOKENS) + chars / 4).min(window)
}
