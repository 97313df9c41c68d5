//! PURE (but for the store). The methods of section 3: sessions made, found, read and set.

use super::catalog;
use super::engine::{Engine, Request, active};
use super::options::Fault;
use super::profile::{BusySend, Profile};
use super::record;
use super::session::{self, Phase, Session, TurnKind};
use super::store::{Goal, Stored};
use super::turns::Input;
use super::wire::{Reply, RpcError};
use serde_json::{Value, json};
use std::sync::Arc;

impl Engine {
    /// Serves a request whose params fit.
    pub(super) fn dispatch(&mut self, request: &Request) -> Reply {
        self.evict_idle();
        let method = request.method.as_str();
        if let Some(v4) = method.strip_prefix("v4/") {
            return self.v4(v4, request);
        }
        match method {
            "runtime/capabilities" => Ok(json!({"independentPlanState": true})),
            "session/create" => self.create(request),
            "session/resume" => self.resume(request),
            "session/list" => Ok(self.list(&request.params)),
            "session/fork" => self.fork(request),
            "session/close" => Ok(self.close(request.str("sessionId"))),
            "session/stop" => Ok(self.stop(request.str("sessionId"))),
            "session/send" => self.send(request),
            "session/steer" => self.steer(request),
            "session/compact" => self.compact(request),
            "session/goal" => self.goal(request),
            "session/setMode" | "session/setModel" | "session/setThoughtLevel" => {
                self.configure(request)
            }
            "session/cancelBackgroundTask" => {
                self.cancel_task(request.str("sessionId"), request.str("taskId"))
            }
            "session/subscribe" | "session/read" | "session/messages" | "session/events"
            | "session/usage" | "session/subagents" => self.read(request),
            "workspace/readPresentation" => Ok(json!({
                "workspace": request.params.get("workspace"), "mode": "build", "slashCommands": catalog::slash_commands(),
            })),
            "workspace/readState" => {
                Ok(json!({"workspace": request.params.get("workspace"), "mode": "build"}))
            }
            "mcp/list" => Ok(self.mcp_list(request)),
            "provider/updateAccountConfig" => {
                let count = request
                    .params
                    .get("providers")
                    .and_then(Value::as_object)
                    .map_or(0, serde_json::Map::len);
                Ok(
                    json!({"receivedRevision": request.params.get("revision"), "providerCount": count, "status": "ready"}),
                )
            }
            "workspace/cancelGenerateText" | "workspace/updateProviderRegistry" => Ok(json!({})),
            other => Err(RpcError::new(-32601, format!("Method not found: {other}"))),
        }
    }

    /// Which session a create or resume is about; refuses what cannot work before anything is asked.
    pub(super) fn target_of(&mut self, request: &Request) -> Result<String, RpcError> {
        let id = request.str("sessionId");
        if request.method == "session/resume" {
            let known = self.sessions.contains_key(id) || self.store.load(id).is_some();
            return if known {
                Ok(id.to_owned())
            } else {
                Err(RpcError::internal("SESSION_NOT_FOUND", format!("Session not found: {id}")))
            };
        }
        if id.is_empty() {
            return Ok(self.wire.ids.named("sess"));
        }
        if self.sessions.contains_key(id) || self.store.load(id).is_some() {
            return Err(RpcError::invalid(format!(
                "Invalid params — sessionId: session {id} exists already"
            )));
        }
        Ok(id.to_owned())
    }

    fn create(&mut self, request: &Request) -> Reply {
        let id = match request.str("sessionId") {
            "" => self.wire.ids.named("sess"),
            id => id.to_owned(),
        };
        let clock = self.wire.clock();
        let profile = self.wire.options.profile;
        let params = &request.params;
        let model = if let Some(model) = params.get("model") {
            self.checked_model(model)?
        } else {
            let first = catalog::MODELS.first();
            first.map_or(Value::Null, |m| catalog::selection(profile, m, None))
        };
        let level = params.get("thoughtLevel").and_then(Value::as_str).map(str::to_owned);
        let stored = Stored {
            id: id.clone(),
            workspace: params.get("workspace").cloned().unwrap_or_default(),
            parent: params.get("parentSessionId").and_then(Value::as_str).map(str::to_owned),
            trace_id: self.wire.ids.named("trace"),
            kind: "interactive".to_owned(),
            title_source: "default".to_owned(),
            title_generation: params
                .get("titleGenerationEnabled")
                .and_then(Value::as_bool)
                .unwrap_or(true),
            mode: params.get("mode").and_then(Value::as_str).unwrap_or("build").to_owned(),
            model: Some(model),
            thought_level: level,
            created_at: clock,
            updated_at: clock,
            ..Stored::default()
        };
        let immediate = params.get("persistence").and_then(Value::as_str) == Some("immediate");
        let epoch = self.wire.ids.named("epoch");
        let session = Session::new(stored, immediate, self.wire.now, epoch);
        let snapshot = session.snapshot(&self.wire, true, None, &[]);
        self.sessions.insert(id.clone(), session);
        self.save(&id);
        self.v4_state(&id);
        Ok(snapshot)
    }

    fn resume(&mut self, request: &Request) -> Reply {
        let id = request.str("sessionId").to_owned();
        if !self.sessions.contains_key(&id) {
            let stored = self.store.load(&id).ok_or_else(|| {
                RpcError::internal("SESSION_NOT_FOUND", format!("Session not found: {id}"))
            })?;
            self.wire.ids.continue_after(stored.id_counter);
            let epoch = self.wire.ids.named("epoch");
            let mut session = Session::new(stored, true, self.wire.now, epoch);
            let reads = self
                .wire
                .options
                .fault(|f| if let Fault::HydrationReads(n) = f { Some(*n) } else { None });
            session.hydrating = reads.unwrap_or(0);
            session.hydration_reads = session.hydrating;
            session.event(&mut self.wire, "session.resumed", json!({"sessionId": id}));
            self.sessions.insert(id.clone(), session);
            self.v4_state(&id);
        }
        let pending = self.interactions.pending_of(&id);
        let level = request.params.get("thoughtLevel").and_then(Value::as_str).map(str::to_owned);
        let now = self.wire.now;
        let session = self
            .sessions
            .get_mut(&id)
            .ok_or_else(|| RpcError::new(-32004, "Session is not active"))?;
        session.last_used = now;
        if level.is_some() {
            session.stored.thought_level = level;
        }
        Ok(session.snapshot(&self.wire, true, None, &pending))
    }

    fn list(&mut self, params: &Value) -> Value {
        let wanted: Option<Vec<&str>> = params
            .get("sessionIds")
            .and_then(Value::as_array)
            .map(|ids| ids.iter().filter_map(Value::as_str).collect());
        let path = params.pointer("/workspace/workspacePath").and_then(Value::as_str);
        let archived = params.get("includeArchived").and_then(Value::as_bool).unwrap_or(false);
        let limit =
            params.get("limit").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let mut all: Vec<(u64, Value)> = self
            .store
            .list()
            .iter()
            .filter(|s| archived || s.archived_at.is_none())
            .filter(|s| wanted.as_ref().is_none_or(|ids| ids.contains(&s.id.as_str())))
            .filter(|s| {
                path.is_none_or(|p| {
                    s.workspace.get("workspacePath").and_then(Value::as_str) == Some(p)
                })
            })
            .map(|s| match self.sessions.get(&s.id) {
                Some(loaded) => (loaded.stored.updated_at, loaded.info()),
                None => (s.updated_at, session::info(s, "idle")),
            })
            .collect();
        all.sort_by_key(|(updated, _)| std::cmp::Reverse(*updated));
        all.truncate(limit.unwrap_or(usize::MAX));
        json!({"sessions": all.into_iter().map(|(_, info)| info).collect::<Vec<_>>()})
    }

    fn fork(&mut self, request: &Request) -> Reply {
        let id = request.str("sessionId").to_owned();
        let forked = self.wire.ids.named("sess");
        let trace = self.wire.ids.named("trace");
        let epoch = self.wire.ids.named("epoch");
        let clock = self.wire.clock();
        let session = active(&mut self.sessions, self.wire.now, &id)?;
        if session.is_busy() {
            return Err(RpcError::new(-32010, "Cannot fork while a prompt is running"));
        }
        let target = request.params.get("target");
        let text =
            |key: &str| target.and_then(|t| t.get(key)).and_then(Value::as_str).unwrap_or_default();
        let messages = &session.stored.messages;
        let (keep, checkpoint) = match text("kind") {
            "message" => {
                let at =
                    messages.iter().position(|m| record::message_id(m) == Some(text("messageId")));
                (at.map(|at| at + 1), None)
            }
            "turn" => {
                let turn =
                    target.and_then(|t| t.get("turnIndex")).and_then(Value::as_u64).unwrap_or(0);
                let is_prompt = |m: &Value| {
                    m.pointer("/semantics/kind")
                        .or_else(|| m.pointer("/info/semantics/kind"))
                        .and_then(Value::as_str)
                        == Some("user_prompt")
                };
                let next = messages
                    .iter()
                    .enumerate()
                    .filter(|(_, m)| is_prompt(m))
                    .map(|(i, _)| i)
                    .nth(usize::try_from(turn).unwrap_or(usize::MAX).saturating_add(1));
                (Some(next.unwrap_or(messages.len())), None)
            }
            kind => {
                let wanted = text("checkpointId");
                let mut points = session.stored.checkpoints.iter().rev();
                let point = points.find(|c| kind != "checkpoint" || c.id == wanted);
                (point.map(|p| p.messages), point.cloned())
            }
        };
        let Some(keep) = keep else {
            return Self::invalid_state(if text("kind") == "message" {
                "The message is not in this session."
            } else {
                "No workspace checkpoint is available yet."
            });
        };
        let stored = Stored {
            id: forked.clone(),
            parent: Some(id.clone()),
            kind: "fork".to_owned(),
            trace_id: trace,
            created_at: clock,
            updated_at: clock,
            messages: messages.iter().take(keep).cloned().collect(),
            ended_subagents: Vec::new(),
            child_sessions: Vec::new(),
            event_seq: 0,
            goal: None,
            ..session.stored.clone()
        };
        let files = checkpoint.as_ref().map_or(0, |c| c.files.len());
        let fork = Session::new(stored, true, self.wire.now, epoch);
        let snapshot = fork.snapshot(&self.wire, true, None, &[]);
        self.sessions.insert(forked.clone(), fork);
        self.save(&forked);
        self.v4_state(&forked);
        let mut reply = json!({
            "forkedSessionId": forked, "parentSessionId": id,
            "response": format!("copied {keep} messages and restored {files} file"),
            "snapshot": snapshot,
        });
        if let (Some(point), Some(map)) = (checkpoint, reply.as_object_mut()) {
            map.insert("targetCheckpointId".to_owned(), Value::from(point.id));
            map.insert("targetMessageId".to_owned(), Value::from(point.message_id));
        }
        Ok(reply)
    }

    /// Ends the runtime; the history stays.
    fn close(&mut self, id: &str) -> Value {
        if !self.sessions.contains_key(id) {
            return json!({"closed": false});
        }
        if self.stop_turn(id) {
            self.end_turn(id, "cancelled");
        }
        if let Some(session) = self.sessions.get_mut(id) {
            let tasks: Vec<String> = session.tasks.iter().map(|t| t.spec.task_id.clone()).collect();
            for task in tasks {
                self.task_ended(id, &task, Some("cancelled"));
            }
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.event(&mut self.wire, "session.closed", json!({"sessionId": id}));
            session.topic.flush(&mut self.wire);
        }
        self.evict(id);
        json!({"closed": true})
    }

    fn stop(&mut self, id: &str) -> Value {
        if self.wire.options.has_fault(&Fault::IgnoreStop) {
            return json!({});
        }
        let streaming = self
            .sessions
            .get(id)
            .and_then(|s| s.turn.as_ref())
            .is_some_and(|t| t.runner.player.is_streaming());
        if !streaming || self.wire.options.profile.stop_ends_streaming() {
            self.stop_turn(id);
        }
        self.pause_goal(id);
        json!({})
    }

    pub(super) fn pause_goal(&mut self, id: &str) {
        if let Some(goal) = self.sessions.get_mut(id).and_then(|s| s.stored.goal.as_mut())
            && goal.status == "active"
        {
            "paused".clone_into(&mut goal.status);
            self.v4_state(id);
        }
    }

    fn send(&mut self, request: &Request) -> Reply {
        let id = request.str("sessionId").to_owned();
        let params = &request.params;
        if params.get("attachments").is_some() && self.wire.options.profile == Profile::V015 {
            return Err(RpcError::invalid("Invalid params — attachments: Unrecognized key"));
        }
        let model = match params.get("modelSelection") {
            Some(model) => Some(self.checked_model(model)?),
            None => None,
        };
        let busy_send = self.wire.options.profile.busy_send();
        let busy = busy_error(self.wire.options.profile);
        let modern = self.wire.options.profile.has_v4();
        let session = active(&mut self.sessions, self.wire.now, &id)?;
        if session.stored.kind == "subagent" {
            let data = Some(json!({"reasonCode": "guard.subagentReadOnly"}));
            return Err(RpcError {
                data,
                ..RpcError::new(-32010, "Subagent sessions are read-only")
            });
        }
        if let Some(expected) = params.get("expectedRevision").and_then(Value::as_u64)
            && expected != session.stored.revision
        {
            return Err(RpcError::new(-32009, "Session state revision mismatch"));
        }
        if request.str("content").trim().is_empty() && params.get("attachments").is_none() {
            return Err(RpcError::invalid("Invalid params — content: expected non-empty string"));
        }
        if let Some(turn) = &session.turn {
            let finishing = matches!(turn.phase, Phase::Ending(_));
            if busy_send != BusySend::SwallowAsSteer || finishing {
                return Err(busy);
            }
            session.swallowed += 1;
            session.event(&mut self.wire, "turn.steerQueued", json!({}));
            return Ok(json!({"accepted": true}));
        }
        if let Some(model) = model {
            session.stored.model = Some(model);
        }
        if session.stored.model.is_none() {
            return Err(RpcError::internal("MODEL_REQUIRED", "Select a model before continuing"));
        }
        let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
        let input = Input {
            text: request.str("content").to_owned(),
            kind: TurnKind::Prompt,
            steps: None,
            client_id: text("inputId"),
            query_id: text("queryId"),
            command_id: None,
            files: attachments(params.get("attachments")),
        };
        self.accept(&id, input);
        let revision = self.sessions.get(&id).map_or(0, |s| s.stored.revision);
        Ok(if modern {
            json!({"sessionId": id, "accepted": true, "stateRevision": revision})
        } else {
            json!({"accepted": true})
        })
    }

    /// 0.15 only: what is said now is said to the running turn.
    fn steer(&mut self, request: &Request) -> Reply {
        let id = request.str("sessionId").to_owned();
        let session = active(&mut self.sessions, self.wire.now, &id)?;
        if !session.is_busy() {
            return Self::invalid_state("No prompt is running.");
        }
        session.event(&mut self.wire, "turn.steerQueued", json!({}));
        if let Some(turn) = session.turn.as_mut() {
            turn.runner.player.break_request();
        }
        session.event(&mut self.wire, "turn.steerDrained", json!({}));
        Ok(json!({"accepted": true}))
    }

    fn compact(&mut self, request: &Request) -> Reply {
        let id = request.str("sessionId").to_owned();
        let background = self.wire.options.profile.compact_in_background();
        if !background && request.params.get("inputId").is_some() {
            return Err(RpcError::invalid("Invalid params — inputId: Unrecognized key"));
        }
        let pending = self.interactions.pending_of(&id);
        let session = active(&mut self.sessions, self.wire.now, &id)?;
        match session.turn.as_ref().map(|t| t.kind) {
            Some(TurnKind::Compact) => {
                let operation = format!("compact_{}", session.operation);
                let snapshot = session.snapshot(&self.wire, false, Some(1), &pending);
                return Ok(
                    json!({"response": "", "snapshot": snapshot, "compact": {"state": "already_running", "operationId": operation}}),
                );
            }
            Some(_) => {
                return Err(RpcError::new(-32010, "Cannot compact while a prompt is running"));
            }
            None => {}
        }
        if !background {
            self.compacted(&id, "success");
            let session = active(&mut self.sessions, self.wire.now, &id)?;
            session.state(&mut self.wire, "session_compacted", &json!({"status": "idle"}));
            let snapshot = self.snapshot_of(&id, &pending)?;
            return Ok(
                json!({"response": "The conversation was compacted.", "snapshot": snapshot}),
            );
        }
        let text = request
            .params
            .get("instructions")
            .and_then(Value::as_str)
            .unwrap_or("compact the conversation");
        self.start_compact(&id, text)?;
        let session = active(&mut self.sessions, self.wire.now, &id)?;
        let operation = format!("compact_{}", session.operation);
        let snapshot = self.snapshot_of(&id, &pending)?;
        Ok(
            json!({"response": "", "snapshot": snapshot, "compact": {"state": "accepted", "operationId": operation}}),
        )
    }

    /// Starts the turn that compacts.
    pub(super) fn start_compact(&mut self, id: &str, text: &str) -> Result<(), RpcError> {
        let steps = self
            .library
            .named("compact-turn")
            .map_or_else(|| Arc::from([]), |s| Arc::clone(&s.steps));
        let session = active(&mut self.sessions, self.wire.now, id)?;
        session.operation += 1;
        session.state(&mut self.wire, "compact_started", &json!({"status": "running"}));
        self.accept(id, Input::internal(TurnKind::Compact, text.to_owned(), steps));
        Ok(())
    }

    fn goal(&mut self, request: &Request) -> Reply {
        let id = request.str("sessionId").to_owned();
        let action = request.str("action");
        let pending = self.interactions.pending_of(&id);
        let steps =
            self.library.named("goal-turn").map_or_else(|| Arc::from([]), |s| Arc::clone(&s.steps));
        let session = active(&mut self.sessions, self.wire.now, &id)?;
        if session.is_busy() && action != "pause" {
            return Err(RpcError::new(-32010, "Cannot manage goals while a prompt is running"));
        }
        let objective = request.params.get("objective").and_then(Value::as_str);
        let mut starts = false;
        let response = match (action, session.stored.goal.as_mut()) {
            ("set" | "replace", _) => {
                let Some(objective) = objective.filter(|o| !o.trim().is_empty()) else {
                    return Err(RpcError::invalid("Invalid params — objective: expected string"));
                };
                session.stored.goal =
                    Some(Goal { objective: objective.to_owned(), status: "active".to_owned() });
                starts = session.mode() != "plan";
                format!("Goal set: {objective}")
            }
            ("clear", Some(_)) => {
                session.stored.goal = None;
                "Goal cleared.".to_owned()
            }
            ("show", Some(goal)) => format!("Goal ({}): {}", goal.status, goal.objective),
            ("pause", Some(goal)) => {
                "paused".clone_into(&mut goal.status);
                "Goal paused.".to_owned()
            }
            ("resume", Some(goal)) => {
                "active".clone_into(&mut goal.status);
                starts = session.mode() != "plan";
                "Goal resumed.".to_owned()
            }
            _ => "No goal is set.".to_owned(),
        };
        if action != "show" {
            session.state(
                &mut self.wire,
                "goal_set",
                &json!({"goal": session_goal(&session.stored)}),
            );
        }
        let text = session.stored.goal.as_ref().map(|g| g.objective.clone()).unwrap_or_default();
        if starts {
            self.accept(&id, Input::internal(TurnKind::Goal, text, steps));
        }
        self.v4_state(&id);
        self.save(&id);
        let snapshot = self.snapshot_of(&id, &pending)?;
        Ok(json!({"response": response, "snapshot": snapshot, "startedTurn": starts}))
    }

    /// Checks a model selection against what the installation offers.
    pub(super) fn checked_model(&self, selection: &Value) -> Result<Value, RpcError> {
        let text = |key: &str| selection.get(key).and_then(Value::as_str).unwrap_or_default();
        let (provider, id) = (text("providerId"), text("modelId"));
        let known =
            catalog::model(id).filter(|_| provider == self.wire.options.profile.provider_id());
        let Some(model) = known else {
            return Err(RpcError::internal(
                "MODEL_UNAVAILABLE",
                format!("Provider Registry 中不存在 Model: {provider}/{id}"),
            ));
        };
        let level = selection.pointer("/options/reasoningLevel").and_then(Value::as_str);
        match level {
            // Account models want a level though they declare none.
            Some("max") if model.levels.is_empty() && provider.starts_with("account:") => {
                Ok(selection.clone())
            }
            None if !model.levels.is_empty() => {
                Err(RpcError::invalid(format!("Reasoning level is required for {provider}/{id}")))
            }
            Some(level) if !model.levels.iter().any(|(value, _)| *value == level) => {
                Err(RpcError::invalid(format!(
                    "Reasoning level {level} is not supported by {provider}/{id}"
                )))
            }
            _ => Ok(selection.clone()),
        }
    }

    fn configure(&mut self, request: &Request) -> Reply {
        let id = request.str("sessionId").to_owned();
        active(&mut self.sessions, self.wire.now, &id)?;
        let pending = self.interactions.pending_of(&id);
        match request.method.as_str() {
            "session/setMode" => self.set_mode(&id, request.str("mode")),
            "session/setModel" => {
                let model = match request.params.get("model") {
                    Some(model) => self.checked_model(model)?,
                    None => match catalog::model(request.str("modelId")) {
                        Some(model) => catalog::selection(self.wire.options.profile, model, None),
                        None => {
                            return Err(RpcError::invalid(
                                "Invalid params — model: expected object",
                            ));
                        }
                    },
                };
                self.set_model(&id, model);
            }
            _ => {
                let level = request.str("thoughtLevel").to_owned();
                let session = active(&mut self.sessions, self.wire.now, &id)?;
                let Some(model) = catalog::selected(session.stored.model.as_ref()) else {
                    return Err(RpcError::invalid(
                        "Select a model before choosing reasoning effort",
                    ));
                };
                if !model.levels.iter().any(|(value, _)| *value == level) {
                    return Err(RpcError::invalid(format!(
                        "Reasoning level {level} is not supported by {}",
                        model.id
                    )));
                }
                session.stored.thought_level = Some(level.clone());
                session.state(
                    &mut self.wire,
                    "thought_level_changed",
                    &json!({"thoughtLevel": {"current": level}}),
                );
            }
        }
        self.v4_state(&id);
        self.save(&id);
        self.snapshot_of(&id, &pending)
    }

    fn snapshot_of(&self, id: &str, pending: &[Value]) -> Reply {
        let session = self
            .sessions
            .get(id)
            .ok_or_else(|| RpcError::new(-32004, format!("Session is not active: {id}")))?;
        Ok(session.snapshot(&self.wire, false, Some(1), pending))
    }

    pub(super) fn set_model(&mut self, id: &str, selection: Value) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.stored.thought_level =
            selection.pointer("/options/reasoningLevel").and_then(Value::as_str).map(str::to_owned);
        session.state(&mut self.wire, "model_changed", &json!({"model": {"current": selection}}));
        session.stored.model = Some(selection);
    }

    /// Ends a background task of a session.
    pub(super) fn cancel_task(&mut self, id: &str, task_id: &str) -> Reply {
        let session = active(&mut self.sessions, self.wire.now, id)?;
        if !session.tasks.iter().any(|t| t.spec.task_id == task_id) {
            return Ok(
                json!({"cancelled": false, "reason": "not_found", "status": "lost", "taskId": task_id}),
            );
        }
        self.task_ended(id, task_id, Some("cancelled"));
        if let Some(session) = self.sessions.get_mut(id) {
            session.state(&mut self.wire, "background_task_cancelled", &json!({}));
        }
        Ok(json!({"cancelled": true, "status": "cancelled", "taskId": task_id}))
    }

    fn mcp_list(&self, request: &Request) -> Value {
        let clock = self.wire.clock();
        let mut statuses = serde_json::Map::new();
        for server in
            request.params.get("mcpServers").and_then(Value::as_array).into_iter().flatten()
        {
            let name = server.get("name").and_then(Value::as_str).unwrap_or_default();
            let transport = server.get("type").and_then(Value::as_str).unwrap_or("stdio");
            let status = json!({"status": "connected", "transport": transport, "toolCount": 3, "updatedAt": clock});
            statuses.insert(name.to_owned(), status);
        }
        json!({ "statuses": statuses })
    }

    /// Methods that only look at a loaded session.
    fn read(&mut self, request: &Request) -> Reply {
        let id = request.str("sessionId").to_owned();
        let params = &request.params;
        let number = |key: &str| params.get(key).and_then(Value::as_u64);
        let limit = |key: &str| number(key).and_then(|n| usize::try_from(n).ok());
        let pending = self.interactions.pending_of(&id);
        active(&mut self.sessions, self.wire.now, &id)?;
        let Some(session) = self.sessions.get_mut(&id) else { return Self::invalid_state("gone") };
        Ok(match request.method.as_str() {
            "session/subscribe" => {
                session.log.subscriber = Some(request.str("deliveryKind").to_owned());
                let events = number("afterSeq")
                    .map_or_else(|| json!([]), |seq| session.log.after(seq, usize::MAX));
                let mut reply = json!({"sessionId": id, "eventSeq": session.stored.event_seq, "events": events});
                if params.get("includeSnapshot").and_then(Value::as_bool) == Some(true)
                    && let Some(map) = reply.as_object_mut()
                {
                    map.insert(
                        "snapshot".to_owned(),
                        session.snapshot(&self.wire, false, None, &pending),
                    );
                }
                reply
            }
            "session/read" => session.snapshot(&self.wire, false, limit("messageLimit"), &pending),
            "session/messages" => session.history(request.str("afterMessageId"), limit("limit")),
            "session/events" => {
                let events = session
                    .log
                    .after(number("afterSeq").unwrap_or(0), limit("limit").unwrap_or(usize::MAX));
                json!({ "events": events })
            }
            "session/usage" => {
                let usage = session.stored.usage;
                json!({
                    "sessionId": id, "totalTokens": usage.input + usage.output, "inputTokens": usage.input,
                    "outputTokens": usage.output, "reasoningTokens": usage.reasoning,
                    "cacheCreationTokens": usage.cache_write, "cacheReadTokens": usage.cache_read,
                    "modelRequestCount": usage.requests, "modelErrorCount": usage.errors, "inputBaselineBySource": {},
                })
            }
            _ => session.subagents(limit("endedLimit").unwrap_or(20), request.str("endedCursor")),
        })
    }
}

impl Session {
    /// `session/messages`: after a message (all when it is unknown), the newest `limit`, and only a
    /// growing prefix while it hydrates.
    fn history(&mut self, after: &str, limit: Option<usize>) -> Value {
        let all = self.stored.messages.as_slice();
        let visible = if self.hydrating > 0 {
            let done = self.hydration_reads - self.hydrating + 1;
            self.hydrating -= 1;
            let share = usize::try_from(done).unwrap_or(0) * all.len()
                / usize::try_from(self.hydration_reads + 1).unwrap_or(1);
            all.get(..share).unwrap_or(all)
        } else {
            all
        };
        let from = visible
            .iter()
            .position(|m| record::message_id(m) == Some(after))
            .map_or(0, |at| at + 1);
        let rest = visible.get(from..).unwrap_or_default();
        let skip = limit.map_or(0, |n| rest.len().saturating_sub(n));
        json!({"messages": rest.iter().skip(skip).collect::<Vec<_>>()})
    }

    /// `session/subagents`.
    pub(super) fn subagents(&self, limit: usize, cursor: &str) -> Value {
        let running: Vec<Value> = self
            .tasks
            .iter()
            .filter_map(|t| t.spec.child.as_ref().map(|c| (t, c)))
            .map(|(t, c)| {
                let status = if t.runner.player.is_waiting() { "blocked" } else { "running" };
                json!({
                    "childSessionId": c.session_id, "agentId": c.agent_id, "toolCallId": c.parent_call,
                    "subagentType": c.kind, "title": c.description, "startedAt": t.started, "status": status,
                })
            })
            .collect();
        let skip = cursor.parse::<usize>().unwrap_or(0);
        let ended = &self.stored.ended_subagents;
        let items: Vec<&Value> = ended.iter().rev().skip(skip).take(limit).collect();
        let more = skip + items.len() < ended.len();
        let mut page = json!({"total": ended.len(), "items": items});
        if let (true, Some(map)) = (more, page.as_object_mut()) {
            map.insert("nextCursor".to_owned(), Value::from((skip + limit).to_string()));
        }
        json!({
            "revision": self.stored.revision, "childSessionIds": self.stored.child_sessions,
            "running": running, "ended": page,
        })
    }
}

/// A goal as hosts see it.
pub(super) fn session_goal(stored: &Stored) -> Value {
    stored
        .goal
        .as_ref()
        .map_or(Value::Null, |g| json!({"objective": g.objective, "status": g.status}))
}

fn busy_error(profile: Profile) -> RpcError {
    match profile.busy_send() {
        BusySend::Refuse32010 => {
            RpcError::new(-32010, "A prompt is already running for this session")
        }
        _ => RpcError::new(1308, "prompt is running"),
    }
}

/// Attachments as message parts.
pub(super) fn attachments(list: Option<&Value>) -> Vec<Value> {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .map(|item| {
            let mime =
                item.get("mimeType").and_then(Value::as_str).unwrap_or("application/octet-stream");
            let url = match item.get("localPath").and_then(Value::as_str) {
                Some(path) => format!("file://{path}"),
                None => format!("data:{mime};base64,"),
            };
            json!({"type": "file", "mime": mime, "filename": item.get("filename"), "url": url})
        })
        .collect()
}
