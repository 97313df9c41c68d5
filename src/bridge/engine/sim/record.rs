//! PURE. Actions as messages and parts (section 3), the history that `session/messages` returns.

use super::legacy::result_value;
use super::player::{Action, Call, Lane};
use super::profile::Profile;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Writes the messages of one session.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// The running assistant message.
    current: Option<usize>,
    /// Where each call's part stands: message and part.
    calls: HashMap<String, (usize, usize)>,
}

/// What a user message is.
#[derive(Debug, Clone, Copy)]
pub(super) struct UserKind<'a> {
    pub(super) origin: &'a str,
    pub(super) kind: &'a str,
    pub(super) visible: bool,
}

impl UserKind<'_> {
    /// What a person typed.
    pub(super) const PROMPT: UserKind<'static> =
        UserKind { origin: "real_user", kind: "user_prompt", visible: true };
}

fn semantics(kind: UserKind<'_>) -> Value {
    let seen = if kind.visible { "visible" } else { "hidden" };
    json!({"origin": kind.origin, "kind": kind.kind, "uiVisibility": seen, "transcriptVisibility": seen})
}

/// A message of the user's side.
pub(super) fn user_message(
    profile: Profile,
    session: &str,
    id: &str,
    clock: u64,
    kind: UserKind<'_>,
    parts: &Value,
) -> Value {
    let mut info = Map::new();
    info.insert(profile.message_id_key().to_owned(), Value::from(id));
    info.insert("sessionId".to_owned(), Value::from(session));
    info.insert("role".to_owned(), Value::from("user"));
    info.insert("time".to_owned(), json!({"created": clock, "completed": clock}));
    info.insert("agent".to_owned(), Value::from("build"));
    if !kind.visible {
        info.insert("synthetic".to_owned(), Value::Bool(true));
        info.insert("visibility".to_owned(), Value::from("model-only"));
    }
    info.insert("semantics".to_owned(), semantics(kind));
    json!({"info": info, "parts": parts})
}

/// Returns a message's id, in either spelling.
pub(super) fn message_id(message: &Value) -> Option<&str> {
    let info = message.get("info")?;
    info.get("messageId").or_else(|| info.get("id"))?.as_str()
}

/// What is needed to write a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pen<'a> {
    pub(super) profile: Profile,
    pub(super) session_id: &'a str,
    pub(super) message_id: &'a str,
    pub(super) parent_id: &'a str,
    pub(super) clock: u64,
    /// Tokens of the request that ends: input and output.
    pub(super) tokens: (u64, u64),
}

impl Recorder {
    /// Forgets what runs; the next request begins a new message.
    pub(super) fn close(&mut self) {
        self.current = None;
        self.calls.clear();
    }

    /// Writes what the action adds to the history.
    pub(super) fn apply(&mut self, pen: Pen<'_>, messages: &mut Vec<Value>, action: &Action) {
        match action {
            Action::RequestStart => self.begin(pen, messages),
            Action::RequestEnd => self.end(pen, messages),
            Action::Open(lane) => {
                let kind = match lane {
                    Lane::Text => "text",
                    Lane::Thought => "reasoning",
                };
                self.part(messages, json!({"type": kind, "text": ""}));
            }
            Action::Piece(_, text) => {
                let last = self.parts(messages).and_then(|p| p.last_mut()).and_then(|p| p.get_mut("text"));
                if let Some(Value::String(so_far)) = last {
                    so_far.push_str(text);
                }
            }
            Action::Call(call) => {
                let mut part = Map::new();
                part.insert("type".to_owned(), Value::from("tool"));
                part.insert(pen.profile.call_id_key().to_owned(), Value::from(call.id.as_str()));
                part.insert("tool".to_owned(), Value::from(call.name.as_str()));
                part.insert("state".to_owned(), json!({"status": "pending", "input": call.input, "raw": call.input.to_string()}));
                if let Some(place) = self.part(messages, Value::Object(part)) {
                    self.calls.insert(call.id.clone(), place);
                }
            }
            Action::Started(call) => self.state(
                messages,
                call,
                json!({"status": "running", "input": call.input, "title": call.name, "startedAt": pen.clock}),
            ),
            Action::Result { call, outcome } => {
                let result = result_value(pen.profile, call, outcome);
                let mut metadata = Map::new();
                if let Some(display) = &outcome.display {
                    metadata.insert("display".to_owned(), display.clone());
                }
                if let Some(perf) = result.get("perf") {
                    metadata.insert("perf".to_owned(), perf.clone());
                }
                let state = json!({
                    "status": "completed", "input": call.input, "output": outcome.content,
                    "title": call.description.as_deref().unwrap_or(&call.name), "metadata": metadata,
                    "startedAt": pen.clock.saturating_sub(outcome.duration), "completedAt": pen.clock,
                });
                self.state(messages, call, state);
            }
            Action::Error { call, error } => self.state(
                messages,
                call,
                json!({"status": "error", "input": call.input, "error": error, "startedAt": pen.clock, "completedAt": pen.clock}),
            ),
            _ => {}
        }
    }

    /// Marks the running message as broken off or failed.
    pub(super) fn finish(
        &mut self,
        messages: &mut [Value],
        finish: &str,
        error: Option<&Value>,
        clock: u64,
    ) {
        if let Some(info) =
            self.current.and_then(|at| messages.get_mut(at)).and_then(|m| m.get_mut("info"))
            && let Some(info) = info.as_object_mut()
        {
            info.insert("finish".to_owned(), Value::from(finish));
            if let Some(Value::Object(time)) = info.get_mut("time") {
                time.insert("completed".to_owned(), Value::from(clock));
            }
            if let Some(error) = error {
                info.insert("error".to_owned(), error.clone());
            }
        }
        self.close();
    }

    fn begin(&mut self, pen: Pen<'_>, messages: &mut Vec<Value>) {
        let mut info = Map::new();
        info.insert(pen.profile.message_id_key().to_owned(), Value::from(pen.message_id));
        info.insert("sessionId".to_owned(), Value::from(pen.session_id));
        info.insert("role".to_owned(), Value::from("assistant"));
        info.insert("parentMessageId".to_owned(), Value::from(pen.parent_id));
        info.insert("time".to_owned(), json!({"created": pen.clock}));
        info.insert("agent".to_owned(), Value::from("build"));
        info.insert("cost".to_owned(), Value::from(0));
        info.insert(
            "tokens".to_owned(),
            json!({"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}),
        );
        let kind = UserKind { origin: "agent_runtime", kind: "assistant_response", visible: true };
        info.insert("semantics".to_owned(), semantics(kind));
        self.current = Some(messages.len());
        messages.push(json!({"info": info, "parts": [{"type": "step-start"}]}));
    }

    fn end(&mut self, pen: Pen<'_>, messages: &mut [Value]) {
        let tokens = json!({
            "input": pen.tokens.0, "output": pen.tokens.1, "reasoning": 0, "cache": {"read": 0, "write": 0},
            "total": pen.tokens.0 + pen.tokens.1,
        });
        self.part(messages, json!({"type": "step-finish", "reason": "stop", "tokens": tokens}));
        if let Some(Value::Object(info)) =
            self.current.and_then(|at| messages.get_mut(at)).and_then(|m| m.get_mut("info"))
        {
            info.insert("tokens".to_owned(), tokens);
            info.insert("finish".to_owned(), Value::from("stop"));
            if let Some(Value::Object(time)) = info.get_mut("time") {
                time.insert("completed".to_owned(), Value::from(pen.clock));
            }
        }
    }

    fn parts<'a>(&self, messages: &'a mut [Value]) -> Option<&'a mut Vec<Value>> {
        match messages.get_mut(self.current?)?.get_mut("parts")? {
            Value::Array(parts) => Some(parts),
            _ => None,
        }
    }

    fn part(&self, messages: &mut [Value], part: Value) -> Option<(usize, usize)> {
        let parts = self.parts(messages)?;
        parts.push(part);
        let at = parts.len() - 1;
        Some((self.current?, at))
    }

    fn state(&self, messages: &mut [Value], call: &Call, state: Value) {
        let place = self.calls.get(&call.id).copied();
        if let Some(part) =
            place.and_then(|(m, p)| messages.get_mut(m)?.get_mut("parts")?.get_mut(p))
            && let Some(part) = part.as_object_mut()
        {
            part.insert("state".to_owned(), state);
        }
    }
}
