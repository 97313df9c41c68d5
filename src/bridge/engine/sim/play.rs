//! PURE. Plays one action: into the history, the legacy channel and the V4 rows, and whatever it
//! does beside that (questions, tasks, settings, files, faults).

use super::engine::Engine;
use super::interactions::{self, Ask, Asker, Place, Settled};
use super::legacy;
use super::player::{Action, Answer, Beat, Call, Child, Question, TaskSpec};
use super::record::{self, Pen, UserKind};
use super::session::{Notice, Runner, Session, Task};
use super::store::Stored;
use super::turns::context_after;
use super::v4::rows;
use super::wire::Wire;
use serde_json::{Map, Value, json};
use std::path::{Component, Path};
use std::sync::Arc;

impl Engine {
    /// Plays an action of the turn, or of the task of that id.
    pub(super) fn play(&mut self, id: &str, task: Option<&str>, beat: Beat) {
        let child = beat.child;
        match beat.action {
            Action::Pause => {}
            Action::Ask(question) => self.ask(id, task, child.as_deref(), &question),
            Action::Spawn(spec) => self.spawn(id, *spec),
            Action::Todos(todos) => self.todos(id, &todos),
            Action::Fail(error) => self.fail_turn(id, &error),
            Action::End(result) => self.end_turn(id, &result),
            Action::ApiRetry { attempt, step } => self.api_retry(id, attempt, &step),
            Action::PlanMode(on) => self.plan_mode(id, on),
            Action::Title(title) => self.set_title(id, &title, "generated"),
            Action::Fill(percent) => self.fill(id, percent),
            Action::Event { kind, payload } => {
                if let Some(session) = self.sessions.get_mut(id) {
                    session.event(&mut self.wire, &kind, payload);
                }
            }
            Action::Notify(message) => self.wire.message(&message),
            Action::Line(line) => self.wire.line(line),
            Action::Request { method, params } => {
                let ask = Ask {
                    method: &method,
                    session_id: id,
                    params,
                    asker: Asker::Nobody,
                    call: None,
                    elsewhere_after: None,
                    expires_after: Some(60_000),
                };
                self.interactions.ask(&mut self.wire, ask);
            }
            Action::Die(status) => self.exit = Some(status),
            Action::SeqGap(n) => {
                if let Some(session) = self.sessions.get_mut(id) {
                    session.stored.event_seq += n;
                }
            }
            Action::Evict => {
                if let Some(turn) = self.sessions.get_mut(id).and_then(|s| s.turn.as_mut()) {
                    turn.evict = true;
                }
            }
            action => self.play_stream(id, task, child.as_deref(), action),
        }
    }

    /// Actions that show in the channels.
    fn play_stream(&mut self, id: &str, task: Option<&str>, child: Option<&Child>, action: Action) {
        if let Action::ChildStart(child) = &action {
            self.child_start(id, child);
        }
        let own = child.is_none() && task.is_none();
        if own {
            if matches!(action, Action::RequestStart) {
                self.request_start(id);
            }
            self.note_turn(id, &action);
        }
        if let (Some(task), Action::Progress { stdout, stderr, .. }) = (task, &action)
            && child.is_none()
        {
            self.task_progress(id, task, stdout, stderr);
            return;
        }
        let action = match action {
            Action::Result { call, outcome } => {
                match self.write_file(id, &call, outcome.write.as_ref()) {
                    Ok(()) => Action::Result { call, outcome },
                    Err(error) => Action::Error { call, error },
                }
            }
            other => other,
        };
        self.emit(id, child, &action);
        match &action {
            Action::RequestEnd if own => self.request_end(id),
            Action::ChildEnd(child, status) => self.child_end(id, child, status),
            _ => {}
        }
    }

    /// Writes the action to the history, to the legacy channel and to the rows.
    pub(super) fn emit(&mut self, id: &str, child: Option<&Child>, action: &Action) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let message_id = session.turn.as_ref().map(|t| t.message.clone()).unwrap_or_default();
        let at =
            legacy::At { message_id: &message_id, now: self.wire.now, clock: self.wire.clock() };
        let mut events = Vec::new();
        session.legacy.apply(&self.wire.options, at, action, child, &mut events);
        for (kind, payload) in events {
            session.event(&mut self.wire, kind, payload);
        }
        let target = child.map_or(id, |c| c.session_id.as_str());
        let Some(session) = self.sessions.get_mut(target) else { return };
        write(session, &self.wire, action);
    }

    /// A model request begins: a new message, and the boundary at which guides are taken in.
    fn request_start(&mut self, id: &str) {
        let message = self.wire.ids.named("msg");
        let Some(turn) = self.sessions.get_mut(id).and_then(|s| s.turn.as_mut()) else { return };
        turn.message = message;
        turn.requests += 1;
        if turn.requests > 1 {
            self.take_in_guides(id);
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.api_retry = None;
        }
    }

    /// Counts what the turn did.
    fn note_turn(&mut self, id: &str, action: &Action) {
        let Some(turn) = self.sessions.get_mut(id).and_then(|s| s.turn.as_mut()) else { return };
        match action {
            Action::Open(lane) => turn.open_lane = Some(*lane),
            Action::Close(_) => turn.open_lane = None,
            Action::Piece(lane, text) => {
                turn.output_chars += text.len() as u64;
                turn.pending_chars += text.len() as u64;
                if *lane == super::player::Lane::Text {
                    turn.response.push_str(text);
                }
                if turn.guide_at.is_some_and(|at| at <= self.wire.now) {
                    turn.guide_at = None;
                    turn.runner.player.break_request();
                }
            }
            Action::InputStart(call) => {
                turn.tool_count += 1;
                turn.open_calls.push(Arc::clone(call));
            }
            Action::Result { call, outcome } => {
                turn.open_calls.retain(|c| c.id != call.id);
                turn.pending_chars += outcome.content.len() as u64;
                if let Some(path) =
                    outcome.display.as_ref().and_then(|d| d.get("filePath")).and_then(Value::as_str)
                {
                    turn.files.push(path.to_owned());
                }
            }
            Action::Error { call, .. } => turn.open_calls.retain(|c| c.id != call.id),
            _ => {}
        }
    }

    /// The model request ended: there is a reading of the context now.
    fn request_end(&mut self, id: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let window = session.window();
        let Some(turn) = session.turn.as_mut() else { return };
        let chars = std::mem::take(&mut turn.pending_chars);
        let used = context_after(session.stored.context_used, chars, window);
        session.stored.usage.input += used;
        session.stored.usage.cache_read += used * 4 / 5;
        session.stored.usage.output += chars / 4 + 1;
        session.stored.usage.requests += 1;
        self.usage_reading(id, used);
    }

    pub(super) fn usage_reading(&mut self, id: &str, used: u64) {
        let now = self.wire.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.stored.context_used = Some(used);
        let window = session.window();
        let payload = json!({
            "usage": {"inputTokens": used, "outputTokens": 0, "cacheReadTokens": used * 4 / 5},
            "contextWindow": window,
            "contextUsageBreakdown": [{"source": "system_prompt", "chars": 30_000}, {"source": "messages", "chars": used * 4}],
            "cacheHit": true,
        });
        session.event(&mut self.wire, "session.updated", payload);
        let usage = session.stored.usage;
        let state = json!({
            "contextWindow": {"usedTokens": used, "maxTokens": window, "autoCompactThresholdTokens": window * 9 / 10},
            "cumulative": {"inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": usage.input + usage.output},
        });
        session.topic.set_state(now, "usage", &state);
    }

    fn fill(&mut self, id: &str, percent: u64) {
        let Some(session) = self.sessions.get(id) else { return };
        let used = session.window() * percent.min(100) / 100;
        self.usage_reading(id, used);
    }

    fn api_retry(&mut self, id: &str, attempt: u64, step: &super::script::RetryStep) {
        let now = self.wire.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let message_id = session.turn.as_ref().map(|t| t.message.clone());
        let error = json!({"kind": "error", "assistantMessageId": message_id, "error": {"message": step.error, "retryable": true}});
        session.event(&mut self.wire, "model.streaming", error);
        let retry = json!({
            "kind": "api_retry", "attempt": attempt, "maxRetries": step.times.max(attempt) + 7,
            "retryDelayMs": step.delay, "errorStatus": step.status, "error": step.error,
        });
        session.api_retry = Some(retry.clone());
        session.event(&mut self.wire, "session.updated", retry.clone());
        let (turn_id, message_id, now_row, clock) = session.row_at(&self.wire);
        let at = rows::At { turn_id: &turn_id, message_id: &message_id, now: now_row, clock };
        rows::Rows::marker(
            &mut session.topic,
            at,
            &json!({"type": "retryNotice", "attempt": attempt, "error": step.error}),
        );
        let control = session.control();
        session.topic.set_state(now, "control", &control);
    }

    fn todos(&mut self, id: &str, todos: &[super::script::TodoStep]) {
        let now = self.wire.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.stored.todos = todos
            .iter()
            .map(|t| json!({"content": t.content, "status": t.status, "priority": t.priority.as_deref().unwrap_or("medium")}))
            .collect();
        let items: Vec<Value> = todos
            .iter()
            .zip(1_u64..)
            .map(|(t, n)| {
                let status = if t.status == "in_progress" { "inProgress" } else { &t.status };
                json!({"id": format!("todo_{n}"), "content": t.content, "status": status})
            })
            .collect();
        session.topic.set_state(now, "plan", &json!({ "items": items }));
    }

    /// Plan mode by the agent's own tool: only the flag shows it, the mode setting stays.
    fn plan_mode(&mut self, id: &str, on: bool) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.stored.plan_mode = on;
        if !on && session.stored.mode == "plan" {
            "build".clone_into(&mut session.stored.mode);
            let patch = json!({"mode": {"current": "build"}});
            session.state(&mut self.wire, "mode_changed", &patch);
        }
        let mode = session.mode().to_owned();
        session.event(&mut self.wire, "session.updated", json!({"mode": mode, "planEnabled": on}));
        self.v4_state(id);
    }

    pub(super) fn set_mode(&mut self, id: &str, mode: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        mode.clone_into(&mut session.stored.mode);
        session.stored.plan_mode = false;
        session.state(&mut self.wire, "mode_changed", &json!({"mode": {"current": mode}}));
        self.v4_state(id);
    }

    /// Asks the host, or answers by itself where the mode or a rule allows the call.
    fn ask(&mut self, id: &str, task: Option<&str>, child: Option<&Child>, question: &Question) {
        self.emit(id, child, &Action::Ask(question.clone()));
        let Some(session) = self.sessions.get_mut(id) else { return };
        if let Question::Permission { call, .. } = question {
            let rule = interactions::rule_of(call);
            if session.stored.mode == "yolo" || session.stored.allowed.contains(&rule) {
                self.answer_lane(id, task, &Answer::Allow { modified: None });
                return;
            }
        }
        let turn_id = session.turn.as_ref().map(|t| t.id.clone());
        let request_id = self.wire.ids.named("req");
        let place = Place { request_id, session_id: id, turn_id: turn_id.as_deref(), child };
        let (method, params) = interactions::request_of(self.wire.options.profile, place, question);
        let (call, elsewhere_after) = match question {
            Question::Permission { call, elsewhere_after, .. } => (call, *elsewhere_after),
            Question::Plan { call, .. } | Question::Questions { call, .. } => (call, None),
        };
        let asker = match task {
            None => Asker::Turn(id.to_owned()),
            Some(task) => Asker::Task(id.to_owned(), task.to_owned()),
        };
        let kind = if method.ends_with("Permission") {
            "permission.requested"
        } else {
            "userInput.requested"
        };
        let mirror = json!({"requestId": params.get("requestId"), "toolCallId": call.id, "toolName": call.name});
        session.event(&mut self.wire, kind, mirror);
        let ask = Ask {
            method,
            session_id: id,
            params,
            asker,
            call: Some(Arc::clone(call)),
            elsewhere_after,
            expires_after: None,
        };
        self.interactions.ask(&mut self.wire, ask);
        self.v4_state(id);
    }

    /// The host answered a question of a turn or task.
    pub(super) fn answered(&mut self, settled: Settled) {
        let Settled { interaction, result } = settled;
        let id = interaction.session_id.clone();
        let task = match &interaction.asker {
            Asker::Task(_, task) => Some(task.clone()),
            _ => None,
        };
        if interaction.method == "interaction/requestProviderRuntimeHeaders" {
            return self.headers_answered(&id, &result);
        }
        if let Err(problem) = &result {
            self.wire.note(format!("{}: {problem}", interaction.method));
        }
        let answer = interactions::answer_of(&interaction.method, &result);
        if let (Ok(value), Some(call), Some(session)) =
            (&result, &interaction.call, self.sessions.get_mut(&id))
            && value.get("permissionUpdates").is_some_and(|u| !u.is_null())
            && matches!(answer, Answer::Allow { .. })
        {
            session.stored.allowed.push(interactions::rule_of(call));
        }
        self.resolved(&id, &interaction, result.as_ref().ok());
        self.answer_lane(&id, task.as_deref(), &answer);
        self.v4_state(&id);
        if task.is_none() {
            self.after_action(&id);
        }
    }

    /// Tells every client that a question is settled.
    fn resolved(
        &mut self,
        id: &str,
        interaction: &interactions::Interaction,
        result: Option<&Value>,
    ) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let kind = if interaction.method.ends_with("Permission") {
            "permission.resolved"
        } else {
            "userInput.resolved"
        };
        let call = interaction.call.as_ref().map(|c| c.id.as_str());
        let decision = result.and_then(|r| r.get("decision").or_else(|| r.get("action")));
        let payload =
            json!({"requestId": interaction.request_id, "toolCallId": call, "decision": decision});
        session.event(&mut self.wire, kind, payload);
    }

    fn answer_lane(&mut self, id: &str, task: Option<&str>, answer: &Answer) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        match task {
            None => {
                if let Some(turn) = session.turn.as_mut() {
                    turn.runner.player.answer(answer);
                    turn.runner.due = self.wire.now;
                }
            }
            Some(task) => {
                if let Some(task) = session.tasks.iter_mut().find(|t| t.spec.task_id == task) {
                    task.runner.player.answer(answer);
                    task.runner.due = self.wire.now;
                    task.runner.fetch(&self.wire.options, &mut self.wire.ids, self.wire.now);
                }
            }
        }
    }

    /// Withdraws the questions of a turn that was broken off.
    pub(super) fn drop_questions(&mut self, id: &str) {
        for gone in self.interactions.drop_of(&Asker::Turn(id.to_owned())) {
            if gone.method == "interaction/requestProviderRuntimeHeaders" {
                let params = json!({"requestId": gone.request_id, "sessionId": id});
                self.wire.notify("interaction/providerRuntimeHeadersCancelled", &params);
            } else {
                self.resolved(id, &gone, None);
            }
        }
    }

    /// Asks for provider headers before a model request; false when this installation does not.
    pub(super) fn ask_headers(&mut self, id: &str) -> bool {
        let provider = self.wire.options.profile.provider_id();
        let ask = self.wire.options.ask_headers;
        let request_id = self.wire.ids.named("hdr");
        let Some(session) = self.sessions.get_mut(id) else { return false };
        let Some(turn) = session.turn.as_mut().filter(|_| ask) else { return false };
        // Asked once for each request: the answer leaves the mark that lets it pass.
        if turn.headers_granted {
            turn.headers_granted = false;
            return false;
        }
        turn.headers = Some(request_id.clone());
        let params = json!({
            "requestId": request_id, "sessionId": id, "workspace": session.stored.workspace,
            "modelSelection": session.stored.model, "providerId": provider, "reason": "model-request",
        });
        let ask = Ask {
            method: "interaction/requestProviderRuntimeHeaders",
            session_id: id,
            params,
            asker: Asker::Turn(id.to_owned()),
            call: None,
            elsewhere_after: None,
            expires_after: Some(180_000),
        };
        self.interactions.ask(&mut self.wire, ask);
        true
    }

    fn headers_answered(&mut self, id: &str, result: &Result<Value, String>) {
        let Some(turn) = self.sessions.get_mut(id).and_then(|s| s.turn.as_mut()) else { return };
        turn.headers = None;
        let refused = match result {
            Ok(value) if value.get("headersApplied").and_then(Value::as_bool) == Some(true) => None,
            Ok(value) => Some(
                value
                    .get("errorMessage")
                    .and_then(Value::as_str)
                    .unwrap_or("no headers")
                    .to_owned(),
            ),
            Err(problem) => Some(problem.clone()),
        };
        match refused {
            None => {
                turn.headers_granted = true;
                turn.runner.due = self.wire.now;
            }
            Some(message) => {
                let cause = json!({"code": -32031, "type": "ProviderRuntimeHeadersError", "message": message});
                let error = json!({"code": -32031, "type": "ModelRequestError", "message": message, "cause": cause, "retryable": false});
                self.fail_turn(id, &error);
            }
        }
    }

    /// Writes a file that the prompt asked for; only below the session's working directory, and
    /// never over something that the script does not know.
    fn write_file(
        &mut self,
        id: &str,
        call: &Call,
        file: Option<&super::player::WriteFile>,
    ) -> Result<(), String> {
        let Some(file) = file else { return Ok(()) };
        let cwd = self
            .sessions
            .get(id)
            .and_then(|s| s.stored.workspace.get("workspacePath")?.as_str().map(str::to_owned));
        let cwd = cwd.ok_or("the session has no working directory")?;
        self.wire.note(format!("{} writes {}", call.name, file.path));
        write_below(Path::new(&cwd), file)
    }

    fn child_start(&mut self, id: &str, child: &Arc<Child>) {
        let (clock, now) = (self.wire.clock(), self.wire.now);
        let profile = self.wire.options.profile;
        let message = self.wire.ids.named("msg");
        let parent = child.parent.as_ref().map_or(id, |p| p.session_id.as_str()).to_owned();
        let Some(owner) = self.sessions.get_mut(id) else { return };
        owner.stored.child_sessions.push(child.session_id.clone());
        let stored = Stored {
            id: child.session_id.clone(),
            workspace: owner.stored.workspace.clone(),
            parent: Some(parent.clone()),
            trace_id: owner.stored.trace_id.clone(),
            kind: "subagent".to_owned(),
            title: child.description.clone(),
            title_source: "generated".to_owned(),
            mode: owner.stored.mode.clone(),
            model: owner.stored.model.clone(),
            created_at: clock,
            updated_at: clock,
            messages: vec![record::user_message(
                profile,
                &child.session_id,
                &message,
                clock,
                UserKind { origin: "agent_runtime", kind: "user_prompt", visible: true },
                &json!([{"type": "text", "text": child.prompt}]),
            )],
            ..Stored::default()
        };
        let epoch = self.wire.ids.named("epoch");
        let mut session = Session::new(stored, true, now, epoch);
        session.is_played = true;
        self.sessions.insert(child.session_id.clone(), session);
        self.v4_subagents(id);
    }

    fn child_end(&mut self, id: &str, child: &Arc<Child>, status: &str) {
        let clock = self.wire.clock();
        if let Some(session) = self.sessions.get_mut(&child.session_id) {
            session.recorder.finish(&mut session.stored.messages, "stop", None, clock);
            session.topic.flush(&mut self.wire);
            session.is_played = false;
            session.last_used = self.wire.now;
        }
        self.save(&child.session_id);
        if let Some(owner) = self.sessions.get_mut(id) {
            owner.stored.ended_subagents.push(json!({
                "childSessionId": child.session_id, "agentId": child.agent_id, "toolCallId": child.parent_call,
                "subagentType": child.kind, "title": child.description, "endedAt": clock, "status": status,
            }));
        }
        self.v4_subagents(id);
    }

    /// Starts work beside the turn.
    fn spawn(&mut self, id: &str, mut spec: TaskSpec) {
        let (now, clock) = (self.wire.now, self.wire.clock());
        let player = std::mem::replace(
            &mut spec.player,
            super::player::Player::of_steps(Arc::from([]), None, super::player::Vars::default()),
        );
        let child = spec.child.clone();
        let mut runner = Runner::new(player);
        runner.due = now;
        runner.fetch(&self.wire.options, &mut self.wire.ids, now);
        if let Some(child) = &child {
            self.child_start(id, child);
            self.emit(id, None, &Action::ChildStart(Arc::clone(child)));
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        let ends_at_once = runner.next.is_none();
        let task_id = spec.task_id.clone();
        session.tasks.push(Task {
            spec,
            runner,
            started: clock,
            output: String::new(),
            errors: String::new(),
        });
        self.task_event(id, &task_id, "running");
        if ends_at_once {
            self.task_ended(id, &task_id, None);
        }
    }

    pub(super) fn tick_tasks(&mut self, id: &str) {
        let now = self.wire.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let due: Vec<String> = session
            .tasks
            .iter()
            .filter(|t| t.runner.next.is_some() && t.runner.due <= now)
            .map(|t| t.spec.task_id.clone())
            .collect();
        for task_id in due {
            let Some(session) = self.sessions.get_mut(id) else { return };
            let Some(task) = session.tasks.iter_mut().find(|t| t.spec.task_id == task_id) else {
                continue;
            };
            let Some(beat) = task.runner.next.take() else { continue };
            self.play(id, Some(&task_id), beat);
            let Some(session) = self.sessions.get_mut(id) else { return };
            let Some(task) = session.tasks.iter_mut().find(|t| t.spec.task_id == task_id) else {
                continue;
            };
            let more = task.runner.fetch(&self.wire.options, &mut self.wire.ids, now);
            if !more && !task.runner.player.is_waiting() {
                self.task_ended(id, &task_id, None);
            }
        }
    }

    fn task_progress(&mut self, id: &str, task_id: &str, stdout: &str, stderr: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(task) = session.tasks.iter_mut().find(|t| t.spec.task_id == task_id) else {
            return;
        };
        task.output.push_str(stdout);
        task.errors.push_str(stderr);
        self.task_event(id, task_id, "running");
    }

    /// A task's life cycle, as `session.updated`.
    pub(super) fn task_event(&mut self, id: &str, task_id: &str, status: &str) {
        let clock = self.wire.clock();
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(task) = session.tasks.iter().find(|t| t.spec.task_id == task_id) else { return };
        let mut payload = Map::new();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                payload.insert(key.to_owned(), value);
            }
        };
        put("taskId", Value::from(task_id));
        put("toolCallId", Value::from(task.spec.call.id.as_str()));
        put("toolName", Value::from(task.spec.call.name.as_str()));
        put("taskKind", Value::from(if task.spec.child.is_some() { "subagent" } else { "bash" }));
        put("status", Value::from(status));
        put("description", Value::from(task.spec.description.as_str()));
        put("command", json!(task.spec.command));
        put("childSessionId", json!(task.spec.child.as_ref().map(|c| c.session_id.as_str())));
        put("startedAt", Value::from(task.started));
        put("outputPath", Value::from(format!("/tmp/zcode-sim/{task_id}.output")));
        put("outputTail", Value::from(legacy::tail(&task.output)));
        put("stdoutTail", Value::from(legacy::tail(&task.output)));
        put("stderrTail", Value::from(legacy::tail(&task.errors)));
        put("cancellable", Value::from(status == "running"));
        put("terminalId", Value::from(task_id));
        if status == "running" {
            put("pid", Value::from(4343));
        } else {
            put("completedAt", Value::from(clock));
        }
        session.event(&mut self.wire, "session.updated", Value::Object(payload));
        self.v4_works(id);
    }

    /// A task is over: by itself, or with the status that ended it.
    pub(super) fn task_ended(&mut self, id: &str, task_id: &str, status: Option<&str>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(task) = session.tasks.iter().find(|t| t.spec.task_id == task_id) else { return };
        let status = status.unwrap_or(&task.spec.ends).to_owned();
        let child = task.spec.child.clone();
        if let Some(child) = child {
            let summary = task.spec.summary.clone();
            let word = match status.as_str() {
                "completed" => "success",
                "cancelled" => "cancelled",
                _ => "failed",
            };
            session.rows.summary(&mut session.topic, self.wire.now, &child, &summary);
            self.emit(id, None, &Action::ChildEnd(Arc::clone(&child), word.to_owned()));
            self.child_end(id, &child, word);
        }
        self.task_event(id, task_id, &status);
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(at) = session.tasks.iter().position(|t| t.spec.task_id == task_id) else { return };
        let task = session.tasks.remove(at);
        let asker = Asker::Task(id.to_owned(), task_id.to_owned());
        for gone in self.interactions.drop_of(&asker) {
            self.resolved(id, &gone, None);
        }
        self.v4_works(id);
        if let Some(steps) = task.spec.notification.filter(|_| status != "cancelled")
            && let Some(session) = self.sessions.get_mut(id)
        {
            let input = format!(
                "<task-notification>\n<task-id>{task_id}</task-id>\n<status>{status}</status>\n<summary>{}</summary>\n</task-notification>",
                task.spec.description
            );
            session.notices.push_back(Notice { input, steps });
            self.start_next(id);
        }
        self.save(id);
    }
}

/// Writes an action to a session's history and rows.
fn write(session: &mut Session, wire: &Wire, action: &Action) {
    let clock = wire.clock();
    let (mut turn_id, mut message_id, now, _) = session.row_at(wire);
    let parent_id = session.turn.as_ref().map(|t| t.user_message.clone()).unwrap_or_default();
    if session.stored.kind == "subagent" {
        turn_id = format!("turn_{}", session.stored.id);
        if matches!(action, Action::RequestStart) {
            session.stored.turn_count += 1;
        }
        message_id = format!("msg_{}_{}", session.stored.id, session.stored.turn_count);
    }
    let tokens = (session.stored.context_used.unwrap_or(11_500), 0);
    let pen = Pen {
        profile: wire.options.profile,
        session_id: &session.stored.id,
        message_id: &message_id,
        parent_id: &parent_id,
        clock,
        tokens,
    };
    session.recorder.apply(pen, &mut session.stored.messages, action);
    let at = rows::At { turn_id: &turn_id, message_id: &message_id, now, clock };
    session.rows.apply(&mut session.topic, at, action);
}

/// See [`Engine::write_file`].
fn write_below(cwd: &Path, file: &super::player::WriteFile) -> Result<(), String> {
    let relative = Path::new(&file.path);
    if !relative.components().all(|c| matches!(c, Component::Normal(_))) {
        return Err(format!("{} is not below the working directory", file.path));
    }
    let path = cwd.join(relative);
    let say = |e: std::io::Error| format!("{}: {e}", path.display());
    let parent = path.parent().unwrap_or(cwd);
    let existing = parent.ancestors().find(|p| p.exists()).unwrap_or(cwd);
    let (root, existing) =
        (cwd.canonicalize().map_err(say)?, existing.canonicalize().map_err(say)?);
    if !existing.starts_with(&root) || path.is_symlink() {
        return Err(format!("{} leads out of the working directory", file.path));
    }
    std::fs::create_dir_all(parent).map_err(say)?;
    match std::fs::read_to_string(&path) {
        Ok(text) if text != file.old && text != file.new => {
            Err(format!("{} exists and is not the simulator's: left alone", file.path))
        }
        Ok(_) => std::fs::write(&path, &file.new).map_err(say),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            std::fs::write(&path, &file.new).map_err(say)
        }
        Err(e) => Err(say(e)),
    }
}
