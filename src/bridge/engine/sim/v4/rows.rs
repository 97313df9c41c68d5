//! PURE. Actions as V4 rows: which row a piece of text, a call or a subagent belongs to.

use super::super::player::{Action, Call, Child, Lane, Outcome};
use super::Topic;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Where the running turn's rows stand.
#[derive(Debug, Default)]
pub(in super::super) struct Rows {
    header: Option<u64>,
    text: Option<u64>,
    calls: HashMap<String, u64>,
    children: HashMap<String, u64>,
}

/// What a row must know of its turn.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct At<'a> {
    pub(in super::super) turn_id: &'a str,
    pub(in super::super) message_id: &'a str,
    pub(in super::super) now: u64,
    pub(in super::super) clock: u64,
}

impl Rows {
    /// Makes the rows of a stored history.
    pub(in super::super) fn restore(topic: &mut Topic, messages: &[Value]) -> Self {
        let text_of =
            |part: &Value| part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        for message in messages {
            let Some(info) = message.get("info") else { continue };
            let created = info.pointer("/time/created").and_then(Value::as_u64).unwrap_or_default();
            let is_user = info.get("role").and_then(Value::as_str) == Some("user");
            let hidden = info.pointer("/semantics/transcriptVisibility").and_then(Value::as_str)
                == Some("hidden");
            if hidden {
                continue;
            }
            let turn =
                super::super::record::message_id(message).unwrap_or("turn_restored").to_owned();
            for part in message.get("parts").and_then(Value::as_array).into_iter().flatten() {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                let (row, rest) = match kind {
                    "text" if is_user => {
                        ("userInput", json!({"text": text_of(part), "origin": "realUser"}))
                    }
                    "text" => {
                        ("assistantText", json!({"text": text_of(part), "state": "complete"}))
                    }
                    "reasoning" => {
                        ("reasoning", json!({"text": text_of(part), "state": "complete"}))
                    }
                    "tool" => ("toolCall", restored_call(part)),
                    _ => continue,
                };
                topic.append(0, created, row, &turn, rest);
            }
        }
        Self::default()
    }

    /// A turn begins.
    pub(in super::super) fn begin(
        &mut self,
        topic: &mut Topic,
        at: At<'_>,
        origin: &str,
        input: Option<(&str, Option<&str>)>,
    ) {
        let header = json!({"origin": origin, "state": "running", "startedAt": at.clock});
        *self = Self {
            header: Some(topic.append(at.now, at.clock, "turnHeader", at.turn_id, header)),
            ..Self::default()
        };
        if let Some((text, command)) = input {
            let row = json!({"text": text, "origin": origin, "sourceCommandId": command});
            topic.append(at.now, at.clock, "userInput", at.turn_id, row);
        }
    }

    /// A guide was taken in.
    pub(in super::super) fn guided(topic: &mut Topic, at: At<'_>, text: &str, command: &str) {
        let row =
            json!({"text": text, "origin": "realUser", "guided": true, "sourceCommandId": command});
        topic.append(at.now, at.clock, "userInput", at.turn_id, row);
    }

    /// The turn is over. `state`: `completedSuccess`, `completedInterrupted` or `failed`.
    pub(in super::super) fn end(
        &mut self,
        topic: &mut Topic,
        at: At<'_>,
        state: &str,
        started: u64,
        files: &[String],
    ) {
        let text_state = if state == "failed" { "failed" } else { "interrupted" };
        if let Some(row) = self.text.take() {
            topic.set(at.now, row, json!({ "state": text_state }));
        }
        for (_, row) in self.calls.drain() {
            topic.set(at.now, row, json!({"status": "cancelled"}));
        }
        if let Some(row) = self.header.take() {
            let mut keys = json!({"state": state, "endedAt": at.clock, "activeMs": at.clock.saturating_sub(started)});
            if let (false, Some(map)) = (files.is_empty(), keys.as_object_mut()) {
                map.insert("fileChanges".to_owned(), json!({ "files": files }));
            }
            topic.set(at.now, row, keys);
        }
    }

    /// A marker of something that is no message.
    pub(in super::super) fn marker(topic: &mut Topic, at: At<'_>, marker: &Value) {
        topic.append(at.now, at.clock, "timelineMarker", at.turn_id, json!({ "marker": marker }));
    }

    /// What the action changes.
    pub(in super::super) fn apply(&mut self, topic: &mut Topic, at: At<'_>, action: &Action) {
        match action {
            Action::Open(lane) => {
                let kind = match lane {
                    Lane::Text => "assistantText",
                    Lane::Thought => "reasoning",
                };
                let row =
                    json!({"text": "", "state": "streaming", "assistantResponseId": at.message_id});
                self.text = Some(topic.append(at.now, at.clock, kind, at.turn_id, row));
            }
            Action::Piece(_, text) => {
                if let Some(row) = self.text {
                    topic.append_text(at.now, row, "text", text);
                }
            }
            Action::Close(_) => {
                if let Some(row) = self.text.take() {
                    topic.set(at.now, row, json!({"state": "complete"}));
                }
            }
            Action::InputStart(call) => self.call(topic, at, call),
            Action::InputPiece(call, piece) => {
                if let Some(row) = self.calls.get(&call.id) {
                    topic.append_text(at.now, *row, "inputText", piece);
                }
            }
            Action::Call(call) => self.set(topic, at, call, json!({"input": call.input})),
            Action::Ask(question) => {
                use super::super::player::Question;
                let (Question::Permission { call, .. }
                | Question::Plan { call, .. }
                | Question::Questions { call, .. }) = question;
                self.set(topic, at, call, json!({"status": "pendingApproval"}));
            }
            Action::Started(call) => {
                self.set(topic, at, call, json!({"status": "running", "startedAt": at.clock}));
            }
            Action::Progress { call, stdout, stderr } => {
                if let Some(row) = self.calls.get(&call.id) {
                    topic.append_text(at.now, *row, "output.text", &format!("{stdout}{stderr}"));
                }
            }
            Action::Result { call, outcome } => self.result(topic, at, call, outcome),
            Action::Error { call, error } => {
                self.set(
                    topic,
                    at,
                    call,
                    json!({"status": "error", "error": {"message": error}, "endedAt": at.clock}),
                );
                self.calls.remove(&call.id);
            }
            Action::Row { kind, fields } => {
                topic.append(at.now, at.clock, kind, at.turn_id, fields.clone());
            }
            Action::RowsRemoved(count) => self.take_back(topic, at.now, *count),
            Action::ChildStart(child) => self.child(topic, at, child),
            Action::ChildEnd(child, status) => {
                if let Some(row) = self.children.remove(&child.session_id) {
                    topic.set(at.now, row, json!({"status": status, "endedAt": at.clock}));
                }
            }
            _ => {}
        }
    }

    fn take_back(&mut self, topic: &mut Topic, now: u64, count: usize) {
        topic.remove_newest(now, count);
        self.text = self.text.filter(|row| topic.has_row(*row));
        self.header = self.header.filter(|row| topic.has_row(*row));
        self.calls.retain(|_, row| topic.has_row(*row));
        self.children.retain(|_, row| topic.has_row(*row));
    }

    /// Text that a subagent reports to its parent's row.
    pub(in super::super) fn summary(&self, topic: &mut Topic, now: u64, child: &Child, text: &str) {
        if let Some(row) = self.children.get(&child.session_id) {
            topic.append_text(now, *row, "summaryText", text);
        }
    }

    fn call(&mut self, topic: &mut Topic, at: At<'_>, call: &Call) {
        let row = json!({
            "toolCallId": call.id, "toolName": call.name, "status": "inputStreaming", "inputText": "",
            "assistantResponseId": at.message_id, "description": call.description,
        });
        let id = topic.append(at.now, at.clock, "toolCall", at.turn_id, row);
        self.calls.insert(call.id.clone(), id);
    }

    fn set(&mut self, topic: &mut Topic, at: At<'_>, call: &Call, keys: Value) {
        if let Some(row) = self.calls.get(&call.id) {
            topic.set(at.now, *row, keys);
        }
    }

    fn result(&mut self, topic: &mut Topic, at: At<'_>, call: &Call, outcome: &Outcome) {
        let failed = outcome.success == Some(false) || outcome.exit.is_some_and(|code| code != 0);
        let mut output = json!({"text": outcome.content});
        if let Some(map) = output.as_object_mut() {
            if let Some(code) = outcome.exit {
                map.insert("exitCode".to_owned(), Value::from(code));
            }
            if let Some(display) = &outcome.display {
                map.insert("display".to_owned(), display.clone());
            }
        }
        let mut keys = json!({
            "status": if failed { "error" } else { "success" }, "output": output, "endedAt": at.clock,
        });
        if let (true, Some(map)) = (call.background, keys.as_object_mut()) {
            map.insert("backgrounded".to_owned(), Value::Bool(true));
        }
        self.set(topic, at, call, keys);
        self.calls.remove(&call.id);
    }

    fn child(&mut self, topic: &mut Topic, at: At<'_>, child: &Child) {
        let row = json!({
            "parentToolCallId": child.parent_call, "subagentType": child.kind, "status": "running",
            "summaryText": "", "childSessionId": child.session_id, "title": child.description,
        });
        let id = topic.append(at.now, at.clock, "subagent", at.turn_id, row);
        self.children.insert(child.session_id.clone(), id);
    }
}

fn restored_call(part: &Value) -> Value {
    let state = part.get("state").cloned().unwrap_or(Value::Null);
    let id = part.get("callId").or_else(|| part.get("callID")).cloned().unwrap_or(Value::Null);
    let status = match state.get("status").and_then(Value::as_str) {
        Some("completed") => "success",
        Some("error") => "error",
        _ => "cancelled",
    };
    let input = state.get("input").cloned().unwrap_or_else(|| json!({}));
    json!({
        "toolCallId": id, "toolName": part.get("tool"), "status": status, "inputText": input.to_string(),
        "input": input, "output": state.get("output").map(|text| json!({ "text": text })),
        "error": state.get("error").map(|text| json!({ "message": text })),
    })
}
