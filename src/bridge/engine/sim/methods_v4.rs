//! PURE. The methods of section 8: flow, subscriptions, rows and commands; the state keys; guides
//! and the queue.

use super::engine::{Engine, Request, active};
use super::methods::session_goal;
use super::options::Fault;
use super::schema;
use super::session::{Phase, QueueItem, Session, TurnKind};
use super::turns::Input;
use super::v4::rows::{At, Rows};
use super::wire::{Reply, RpcError};
use serde_json::{Value, json};

/// How long a guide waits before it breaks into running text.
const GUIDE_MS: u64 = 600;

impl Engine {
    pub(super) fn v4(&mut self, method: &str, request: &Request) -> Reply {
        if self.wire.v4_is_broken() {
            return Err(RpcError::internal("V4_CHANNEL_CLOSED", "The channel is closed"));
        }
        match method {
            "connection/flow" => Ok(self.flow(request)),
            "conversation/subscribe" => self.v4_subscribe(request),
            "conversation/resync" => self.v4_resync(request),
            "conversation/unsubscribe" => {
                let subscription = request.str("subscriptionId");
                if let Some(session) = self.topic_session(request.str("topic"))
                    && session.topic.is_subscribed(subscription)
                {
                    session.topic.unsubscribe();
                }
                Ok(json!({}))
            }
            "conversation/rowsRange" => {
                let before = request.params.get("beforeRowId").and_then(Value::as_u64);
                let limit = request.params.get("limit").and_then(Value::as_u64).unwrap_or(60);
                let session = active(&mut self.sessions, self.wire.now, request.str("sessionId"))?;
                Ok(session.topic.range(
                    before,
                    usize::try_from(limit).unwrap_or(200),
                    session.stored.revision,
                ))
            }
            "command" => self.command(request),
            other => Err(RpcError::new(-32601, format!("Method not found: v4/{other}"))),
        }
    }

    fn flow(&mut self, request: &Request) -> Value {
        let connection = request.str("connectionId");
        let held = request.str("state") == "saturated";
        if held {
            self.saturated.insert(connection.to_owned());
        } else {
            self.saturated.remove(connection);
        }
        for session in self.sessions.values_mut() {
            session.topic.hold(connection, held);
            if request.str("state") == "closed" {
                session.topic.unsubscribe();
            }
        }
        json!({})
    }

    fn topic_session(&mut self, topic: &str) -> Option<&mut Session> {
        self.sessions.get_mut(topic.strip_prefix("conversation/")?)
    }

    fn v4_subscribe(&mut self, request: &Request) -> Reply {
        let topic = request.str("topic").to_owned();
        if topic.starts_with("workspace-config/") || topic.starts_with("sessions-index/") {
            return Ok(self.workspace_topic(&topic));
        }
        let Some(id) = topic.strip_prefix("conversation/") else {
            return Err(RpcError::invalid(format!(
                "Invalid params — topic: unknown topic {topic}"
            )));
        };
        let connection = request.str("connectionId");
        let held = self.saturated.contains(connection);
        if !self.sessions.contains_key(id) {
            return Err(RpcError::new(-32004, format!("Session is not active: {id}")));
        }
        self.v4_state(id);
        let Some(session) = self.sessions.get_mut(id) else { return Self::invalid_state("gone") };
        let base = request.params.get("base");
        let (subscription, mode) = session.topic.subscribe(&mut self.wire, connection, base);
        session.topic.hold(connection, held);
        Ok(
            json!({"ack": {"subscriptionId": subscription, "mode": mode, "logEpoch": session.topic.epoch}}),
        )
    }

    /// Topics that belong to no conversation: one snapshot, then silence.
    fn workspace_topic(&mut self, topic: &str) -> Value {
        let subscription = self.wire.ids.named("sub");
        let snapshot = if topic.starts_with("workspace-config/") {
            json!({"config": {"slashCommands": super::catalog::slash_commands()}})
        } else {
            let sessions: Vec<Value> = self.sessions.values().map(Session::info).collect();
            json!({ "sessions": sessions })
        };
        let frame = json!({
            "topic": topic, "subscriptionId": subscription, "fromSeq": 0, "toSeq": 0, "sentAt": self.wire.clock(),
            "payload": {"kind": "snapshot", "snapshot": snapshot},
        });
        let params = if self.wire.options.old_frames {
            json!({"topic": topic, "frame": frame})
        } else {
            json!({
                "wireVersion": 3, "kind": "complete", "deliveryKind": "initial",
                "logicalFrameId": format!("frame_{subscription}_1"), "logicalFrameOrdinal": 1,
                "topic": topic, "subscriptionId": subscription, "frame": frame,
            })
        };
        self.wire.notify("v4/conversation/frame", &params);
        json!({"ack": {"subscriptionId": subscription, "mode": "snapshot", "logEpoch": "epoch_workspace"}})
    }

    fn v4_resync(&mut self, request: &Request) -> Reply {
        let subscription = request.str("subscriptionId").to_owned();
        let now = self.wire.now;
        let force = request.params.get("forceSnapshot").and_then(Value::as_bool) == Some(true);
        let base = request.params.get("base").filter(|b| !b.is_null() && !force).cloned();
        let topic = request.str("topic").to_owned();
        let Some(session) =
            self.topic_session(&topic).filter(|s| s.topic.is_subscribed(&subscription))
        else {
            return Err(RpcError::internal("SUBSCRIPTION_NOT_FOUND", "No such subscription"));
        };
        let mode = session.topic.restart(now, base.as_ref(), "recovery");
        Ok(
            json!({"ack": {"subscriptionId": subscription, "mode": mode, "logEpoch": session.topic.epoch}}),
        )
    }

    fn command(&mut self, request: &Request) -> Reply {
        let id = request.str("sessionId").to_owned();
        let command = request.str("commandId").to_owned();
        let kind = request.str("type").to_owned();
        let payload = request.params.get("payload").cloned().unwrap_or_default();
        schema::check_command(&kind, &payload).map_err(RpcError::invalid)?;
        if let Some(earlier) = self.commands.get(&command) {
            let mut reply = earlier.clone();
            if let Some(map) = reply.as_object_mut() {
                map.insert("status".to_owned(), Value::from("duplicate"));
            }
            return Ok(reply);
        }
        active(&mut self.sessions, self.wire.now, &id)?;
        let needs_base = !matches!(
            kind.as_str(),
            "sendText"
                | "stop"
                | "compact"
                | "cancelBackgroundWork"
                | "resolveInteraction"
                | "renameSession"
        );
        let revision = self.sessions.get(&id).map_or(0, |s| s.stored.revision);
        let base = request.params.get("baseRevision").and_then(Value::as_u64);
        let outcome = match base {
            None if needs_base => {
                Err(("guard.baseRevisionRequired", format!("{kind} needs baseRevision")))
            }
            Some(base) if base != revision && needs_base => {
                Err(("guard.revisionMismatch", "Session state revision mismatch".to_owned()))
            }
            _ => self.run_command(&id, &command, &kind, &payload),
        };
        let mut reply = json!({"commandId": command, "revisionAtDecision": revision});
        if let Some(map) = reply.as_object_mut() {
            match outcome {
                Ok(result) => {
                    map.insert("status".to_owned(), Value::from("accepted"));
                    map.insert("result".to_owned(), result);
                }
                Err((code, message)) => {
                    map.insert("status".to_owned(), Value::from("rejected"));
                    map.insert("reasonCode".to_owned(), Value::from(code));
                    map.insert("message".to_owned(), Value::from(message));
                }
            }
        }
        self.commands.insert(command, reply.clone());
        Ok(reply)
    }

    fn run_command(
        &mut self,
        id: &str,
        command: &str,
        kind: &str,
        payload: &Value,
    ) -> Result<Value, Refusal> {
        let text = |key: &str| payload.get(key).and_then(Value::as_str).unwrap_or_default();
        match kind {
            "sendText" => self.send_text(id, command, payload),
            "stop" => self
                .v4_stop(id, payload.get("expectedForegroundExecutionId").and_then(Value::as_str)),
            "cancelBackgroundWork" => {
                let reply = self
                    .cancel_task(id, text("workId"))
                    .map_err(|e| ("fault.command.executionFailed", e.message))?;
                Ok(json!({"type": "backgroundWorkCancelled", "cancelled": reply.get("cancelled")}))
            }
            "resolveInteraction" => {
                let request_id = text("requestId").to_owned();
                let response = payload
                    .get("response")
                    .or_else(|| payload.get("result"))
                    .cloned()
                    .unwrap_or_else(|| json!({}));
                let Some(interaction) = self.interactions.resolve(&request_id) else {
                    return Err(("guard.interactionNotFound", "No such interaction".to_owned()));
                };
                let result = schema::check_reply(&interaction.method, &response).map(|()| response);
                self.answered(super::interactions::Settled { interaction, result });
                Ok(json!({"type": "interactionResolved"}))
            }
            "switchModelConfig" | "setModel" => {
                let selection = payload
                    .get("modelSelection")
                    .or_else(|| payload.get("model"))
                    .unwrap_or(payload);
                let model = self
                    .checked_model(selection)
                    .map_err(|e| ("guard.modelUnavailable", e.message))?;
                self.set_model(id, model);
                self.v4_state(id);
                Ok(json!({"type": "modelSwitched"}))
            }
            "switchCollaborationMode" => {
                let mode = payload
                    .get("mode")
                    .or_else(|| payload.get("collaborationMode"))
                    .and_then(Value::as_str);
                self.set_mode(id, mode.unwrap_or("build"));
                Ok(json!({"type": "modeSwitched"}))
            }
            "renameSession" => {
                self.set_title(id, text("title"), "custom");
                self.save(id);
                Ok(json!({"type": "sessionRenamed"}))
            }
            "compact" => {
                if self.sessions.get(id).is_some_and(Session::is_busy) {
                    return Err((
                        "guard.busy",
                        "Cannot compact while a prompt is running".to_owned(),
                    ));
                }
                let words = payload
                    .get("instructions")
                    .and_then(Value::as_str)
                    .unwrap_or("compact the conversation");
                self.start_compact(id, words)
                    .map_err(|e| ("fault.command.executionFailed", e.message))?;
                Ok(json!({"type": "compactAccepted"}))
            }
            "pauseGoal" => {
                self.pause_goal(id);
                Ok(json!({"type": "goalPaused"}))
            }
            "resumeGoal" => {
                if let Some(goal) = self.sessions.get_mut(id).and_then(|s| s.stored.goal.as_mut()) {
                    "active".clone_into(&mut goal.status);
                }
                self.v4_state(id);
                Ok(json!({"type": "goalResumed"}))
            }
            _ => self.queue_command(id, kind, payload),
        }
    }

    fn v4_stop(&mut self, id: &str, expected: Option<&str>) -> Result<Value, Refusal> {
        let running =
            self.sessions.get(id).and_then(|s| s.turn.as_ref()).map(|t| t.execution_id.clone());
        if let (Some(expected), Some(running)) = (expected, &running)
            && expected != running
        {
            return Err((
                "guard.executionMismatch",
                "Another execution is in the foreground".to_owned(),
            ));
        }
        if !self.wire.options.has_fault(&Fault::IgnoreV4Stop) {
            self.stop_turn(id);
            self.pause_goal(id);
            self.v4_state(id);
        }
        Ok(json!({"type": "stopAccepted", "executionId": running}))
    }

    fn send_text(&mut self, id: &str, command: &str, payload: &Value) -> Result<Value, Refusal> {
        let text = payload.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        let wanted = payload
            .get("requestedDelivery")
            .and_then(Value::as_str)
            .unwrap_or("startNow")
            .to_owned();
        let now = self.wire.now;
        let persisted = self.sessions.get(id).and_then(|s| s.row_at).is_some_and(|at| at <= now);
        if !persisted && wanted != "startNow" {
            return Err((
                "fault.command.executionFailed",
                "FOREIGN KEY constraint failed".to_owned(),
            ));
        }
        let busy = self.sessions.get(id).is_some_and(Session::is_busy);
        if !busy {
            let input = Input {
                text,
                kind: TurnKind::Prompt,
                steps: None,
                client_id: None,
                query_id: None,
                command_id: Some(command.to_owned()),
                files: super::methods::attachments(payload.get("attachments")),
            };
            self.accept(id, input);
            return Ok(json!({"type": "inputAccepted", "delivery": "startNow"}));
        }
        self.enqueue(id, command, &text, &wanted, payload.get("attachments").is_some());
        // What the reply says of the delivery is not the verdict.
        Ok(json!({"type": "inputAccepted", "delivery": "queue"}))
    }

    fn enqueue(&mut self, id: &str, command: &str, text: &str, wanted: &str, attachments: bool) {
        let clock = self.wire.clock();
        let now = self.wire.now;
        let item_id = self.wire.ids.named("queue");
        let forced = self
            .wire
            .options
            .fault(|f| if let Fault::GuideFallsBack(why) = f { Some(why.clone()) } else { None });
        let guide_ms = self.wire.options.scaled(GUIDE_MS);
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(turn) = session.turn.as_mut() else { return };
        let is_guide = wanted == "guide";
        let reason = if !is_guide {
            None
        } else if attachments {
            Some("guide.attachmentsUnsupported".to_owned())
        } else if matches!(turn.phase, Phase::Ending("cancelled")) {
            Some("guide.turnInterrupted".to_owned())
        } else if matches!(turn.phase, Phase::Ending(_)) || turn.kind != TurnKind::Prompt {
            Some("guide.noToolBoundary".to_owned())
        } else {
            forced
        };
        let admitted = if is_guide && reason.is_none() { "guide" } else { "queue" };
        if admitted == "guide" {
            turn.guide_at = Some(now + guide_ms);
        }
        let steer = match (is_guide, &reason) {
            (false, _) => "notRequested",
            (true, Some(_)) => "fellBack",
            (true, None) => "steering",
        };
        let target = turn.id.clone();
        session.queue.push(QueueItem {
            id: item_id.clone(),
            command_id: command.to_owned(),
            text: text.to_owned(),
            requested: wanted.to_owned(),
            admitted: admitted.to_owned(),
            steer,
            reason: reason.clone(),
            created: clock,
        });
        let payload = if self.wire.options.profile.steer_payloads() {
            json!({
                "pendingInputId": item_id, "input": text, "inputPreview": text.chars().take(80).collect::<String>(),
                "inputSize": text.len(), "commandKind": "sendText",
                "delivery": if is_guide { "guide" } else { "queue" },
                "targetTurnId": target, "queueLength": session.queue.len(),
                "intent": {"sourceCommandId": command, "delivery": {"requested": wanted, "admitted": "guide"}},
            })
        } else {
            json!({})
        };
        // A downgrade shows in the V4 queue only, not here.
        let mut payload = payload;
        if !is_guide && let Some(intent) = payload.pointer_mut("/intent/delivery/admitted") {
            *intent = Value::from("queue");
        }
        session.event(&mut self.wire, "turn.steerQueued", payload);
        self.v4_state(id);
    }

    /// A model request begins: guides that wait are merged into the turn.
    pub(super) fn take_in_guides(&mut self, id: &str) {
        let clock = self.wire.clock();
        let profile = self.wire.options.profile;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let (guides, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut session.queue).into_iter().partition(|q| q.admitted == "guide");
        session.queue = rest;
        if guides.is_empty() {
            return;
        }
        let mut drained = Vec::new();
        let mut ids = Vec::new();
        for guide in &guides {
            let message = self.wire.ids.named("msg");
            let (turn_id, message_id, now, clock_row) = session.row_at(&self.wire);
            let at = At { turn_id: &turn_id, message_id: &message_id, now, clock: clock_row };
            Rows::guided(&mut session.topic, at, &guide.text, &guide.command_id);
            session.stored.messages.push(super::record::user_message(
                profile,
                id,
                &message,
                clock,
                super::record::UserKind::PROMPT,
                &json!([{"type": "text", "text": guide.text}]),
            ));
            drained.push(json!({
                "pendingInputId": guide.id, "messageId": message, "text": guide.text, "delivery": "guide",
                "intent": {"sourceCommandId": guide.command_id, "delivery": {"requested": "guide", "admitted": "guide"}},
            }));
            ids.push(message);
        }
        let turn_id = session.turn.as_ref().map(|t| t.id.clone());
        let payload = if profile.steer_payloads() {
            json!({
                "pendingInputIds": guides.iter().map(|g| g.id.as_str()).collect::<Vec<_>>(),
                "targetTurnId": turn_id, "injectedMessageIds": ids, "drainedInputs": drained,
            })
        } else {
            json!({})
        };
        session.event(&mut self.wire, "turn.steerDrained", payload);
        // The item shows as guided once before it leaves the queue.
        let shown: Vec<QueueItem> =
            guides.iter().map(|g| QueueItem { steer: "guided", ..g.clone() }).collect();
        let rest = std::mem::replace(&mut session.queue, shown);
        self.v4_state(id);
        if let Some(session) = self.sessions.get_mut(id) {
            session.queue = rest;
            if let Some(turn) = session.turn.as_mut() {
                turn.guide_at = None;
                for guide in &guides {
                    turn.runner.player.inject(format!(
                        "\n> {}\n\nUnderstood, I take that in from here on.\n\n",
                        guide.text
                    ));
                }
            }
        }
        self.v4_state(id);
    }

    /// The turn ended before its guides were taken in: they wait as ordinary inputs.
    pub(super) fn fall_back_guides(&mut self, id: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for item in session.queue.iter_mut().filter(|q| q.admitted == "guide") {
            "queue".clone_into(&mut item.admitted);
            item.steer = "fellBack";
            item.reason = Some("guide.noToolBoundary".to_owned());
        }
    }

    /// The next queued input becomes a turn.
    pub(super) fn drain_queue(&mut self, id: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.queue.is_empty() {
            return;
        }
        let item = session.queue.remove(0);
        if self.wire.options.profile.steer_payloads() {
            let payload = json!({
                "pendingInputIds": [item.id], "injectedMessageIds": [],
                "drainedInputs": [{
                    "pendingInputId": item.id, "text": item.text, "delivery": "queue",
                    "intent": {"sourceCommandId": item.command_id, "delivery": {"requested": item.requested, "admitted": "queue"}},
                }],
            });
            session.event(&mut self.wire, "turn.steerDrained", payload);
        }
        let input = Input {
            text: item.text,
            kind: TurnKind::Prompt,
            steps: None,
            client_id: None,
            query_id: None,
            command_id: Some(item.command_id),
            files: Vec::new(),
        };
        self.accept(id, input);
        self.v4_state(id);
    }

    fn queue_command(&mut self, id: &str, kind: &str, payload: &Value) -> Result<Value, Refusal> {
        let Some(session) = self.sessions.get_mut(id) else {
            return Err(("fault.command.executionFailed", "gone".to_owned()));
        };
        if kind == "setAutoDrain" {
            let on = ["enabled", "autoDrain", "value"]
                .iter()
                .find_map(|k| payload.get(k))
                .and_then(Value::as_bool);
            session.auto_drain =
                on.ok_or(("guard.invalidPayload", "enabled: expected boolean".to_owned()))?;
            session.stored.revision += 1;
            self.v4_state(id);
            self.start_next(id);
            return Ok(json!({"type": "autoDrainSet"}));
        }
        let wanted = ["itemId", "queueItemId", "pendingInputId", "id"]
            .iter()
            .find_map(|k| payload.get(k))
            .and_then(Value::as_str);
        let at = session.queue.iter().position(|q| Some(q.id.as_str()) == wanted);
        let at = at.ok_or(("guard.queueItemNotFound", "No such queue item".to_owned()))?;
        session.stored.revision += 1;
        match kind {
            "deleteQueueItem" => drop(session.queue.remove(at)),
            "editQueueItem" => {
                let text = payload.get("text").and_then(Value::as_str);
                let text =
                    text.ok_or(("guard.invalidPayload", "text: expected string".to_owned()))?;
                if let Some(item) = session.queue.get_mut(at) {
                    text.clone_into(&mut item.text);
                }
            }
            _ => {
                let item = session.queue.remove(at);
                session.queue.insert(0, item);
                if session.is_busy() {
                    self.stop_turn(id);
                } else {
                    self.drain_queue(id);
                }
            }
        }
        self.v4_state(id);
        Ok(json!({"type": "queueChanged"}))
    }

    /// Brings the state keys of a session's topic up to date.
    pub(super) fn v4_state(&mut self, id: &str) {
        let now = self.wire.now;
        let pending = self.interactions.pending_of(id);
        let Some(session) = self.sessions.get_mut(id) else { return };
        let control = session.control();
        let mode = if session.is_busy() { "choice" } else { "startNow" };
        let meta =
            json!({"title": session.stored.title, "titleSource": session.stored.title_source});
        let config = json!({
            "mode": session.mode(), "modelSelection": session.stored.model, "thoughtLevel": session.stored.thought_level,
            "revision": session.stored.revision,
        });
        let items: Vec<Value> = session.queue.iter().map(queue_item).collect();
        let queue = json!({"items": items, "autoDrain": session.auto_drain});
        let goal = session_goal(&session.stored);
        for (key, value) in [
            ("control", control),
            ("inputRouting", json!({ "mode": mode })),
            ("meta", meta),
            ("config", config),
            ("queue", queue),
            ("pendingInteractions", Value::Array(pending)),
            ("goal", goal),
        ] {
            session.topic.set_state(now, key, &value);
        }
    }

    /// The `backgroundWorks` key.
    pub(super) fn v4_works(&mut self, id: &str) {
        let now = self.wire.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let works: Vec<Value> = session
            .tasks
            .iter()
            .map(|t| {
                let kind = if t.spec.child.is_some() { "subagent" } else { "bash" };
                json!({
                    "workId": t.spec.task_id, "kind": kind, "title": t.spec.description, "status": "running",
                    "cancellable": true, "childSessionId": t.spec.child.as_ref().map(|c| c.session_id.as_str()),
                })
            })
            .collect();
        session.topic.set_state(now, "backgroundWorks", &Value::Array(works));
        self.v4_subagents(id);
    }

    /// The `subagents` key.
    pub(super) fn v4_subagents(&mut self, id: &str) {
        let now = self.wire.now;
        let Some(session) = self.sessions.get_mut(id) else { return };
        let value = session.subagents(20, "");
        session.topic.set_state(now, "subagents", &value);
    }

    /// Compaction is through: a summary takes the place of what was said.
    pub(super) fn compacted(&mut self, id: &str, result: &str) {
        if result != "success" {
            return;
        }
        let (clock, profile) = (self.wire.clock(), self.wire.options.profile);
        let message = self.wire.ids.named("msg");
        let Some(session) = self.sessions.get_mut(id) else { return };
        let kind =
            super::record::UserKind { origin: "system", kind: "compact_summary", visible: true };
        let text = "This session is being continued from a previous conversation. What was said so far, in short: the simulator was tried out.";
        let parts = json!([{"type": "compaction", "auto": false}, {"type": "text", "text": text, "synthetic": true}]);
        session
            .stored
            .messages
            .push(super::record::user_message(profile, id, &message, clock, kind, &parts));
        let (turn_id, message_id, now, clock) = session.row_at(&self.wire);
        let at = At { turn_id: &turn_id, message_id: &message_id, now, clock };
        Rows::marker(&mut session.topic, at, &json!({"type": "compact", "auto": false}));
        self.usage_reading(id, 14_200);
    }
}

/// Reason code and message.
type Refusal = (&'static str, String);

impl Session {
    /// The `control` state key.
    pub(super) fn control(&self) -> Value {
        let phase = match &self.turn {
            None if self.last_error.is_some() => "error",
            None => "idle",
            Some(t) if t.phase == Phase::Ending("cancelled") => "stopping",
            Some(t) if t.runner.player.is_waiting() => "waiting",
            Some(_) => "running",
        };
        json!({
            "phase": phase,
            "canStop": self.is_busy() && phase != "stopping",
            "stopState": if phase == "stopping" { "stopping" } else { "none" },
            "activeWorks": self.turn.iter().map(|t| json!({"executionId": t.execution_id, "turnId": t.id, "kind": "foreground"})).collect::<Vec<_>>(),
            "lastError": self.last_error,
            "apiRetry": self.api_retry,
        })
    }
}

fn queue_item(item: &QueueItem) -> Value {
    let mut delivery = json!({"requested": item.requested, "admitted": item.admitted});
    let mut steer = json!({"state": item.steer});
    if let Some(reason) = &item.reason {
        if let Some(map) = delivery.as_object_mut() {
            map.insert("fallbackReasonCode".to_owned(), Value::from(reason.as_str()));
        }
        if let Some(map) = steer.as_object_mut() {
            map.insert("reasonCode".to_owned(), Value::from(reason.as_str()));
        }
    }
    json!({
        "pendingInputId": item.id, "sourceCommandId": item.command_id, "text": item.text,
        "delivery": delivery, "steer": steer, "createdAt": item.created,
    })
}
