//! PURE. The meaning of a notification: method and raw params to [`EngineEvent`]. Never fails: a
//! field of a wrong type counts as missing, an unknown event is [`SessionBody::Unknown`].
//!
//! Reads every spelling that engine builds use (engine protocol sections 4, 10 and 11). The hot
//! path, `model.streaming`, goes from text to typed fields without a JSON tree between. Called by
//! `actor`, and by the session side for events that come inside a result (`events: […]`).

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::event::{
    BackgroundTask, EngineEvent, InteractionMirror, PartDelta, SessionBody, SessionEvent,
    SessionUpdated, StreamKind, Streaming, ToolPhase, ToolProgress, ToolUpdated,
};
use super::halves::Joiner;

/// Reads a notification.
pub(super) fn notification(method: &str, params: Option<&RawValue>) -> EngineEvent {
    let Some(params) = params else { return EngineEvent::Other { method: method.to_owned() } };
    match method {
        "session/event" => event(params),
        "v4/conversation/frame" => frame(params),
        "startup/storageState" => EngineEvent::Storage(salvage(value(params))),
        _ if method == "state.updated" || type_of(params).as_deref() == Some("state.updated") => {
            EngineEvent::State(Box::new(salvage(value(params))))
        }
        _ => EngineEvent::Other { method: method.to_owned() },
    }
}

/// Reads one event that came inside a result (`session/subscribe`, `session/events`).
pub fn session_event(raw: &RawValue) -> Option<SessionEvent> {
    let mut event = event(raw);
    Joiner::default().join(&mut event);
    match event {
        EngineEvent::Session(event) => Some(*event),
        _ => None,
    }
}

/// Text that is borrowed when it has no escapes (inside an `Option` serde does so only for a type
/// of its own).
#[derive(Deserialize, Default)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    fn owned(self) -> String {
        self.0.into_owned()
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "sessionId", borrow, default)]
    session_id: Option<Text<'a>>,
    #[serde(default)]
    seq: Option<u64>,
    #[serde(rename = "turnId", borrow, default)]
    turn_id: Option<Text<'a>>,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
}

/// A whole line of the stream, of which there are more than of all others: read in one pass, where
/// the general way passes over its text three times; borrowed, since most continue a text whose
/// ids are known.
pub(super) struct StreamingLine<'a> {
    session_id: Cow<'a, str>,
    seq: u64,
    turn_id: Option<Text<'a>>,
    fields: StreamFields<'a>,
}

/// Reads a line of the stream. `None` sends it the general way, which is always right: for any
/// other line and for one that is odd in any way.
pub(super) fn streaming_line(line: &str) -> Option<StreamingLine<'_>> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(default)]
        id: Option<IgnoredAny>,
        #[serde(borrow)]
        method: Cow<'a, str>,
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(rename = "sessionId", borrow, default)]
        session_id: Option<Text<'a>>,
        #[serde(default)]
        seq: Option<u64>,
        #[serde(rename = "turnId", borrow, default)]
        turn_id: Option<Text<'a>>,
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        payload: StreamPayload<'a>,
    }
    /// The type stands before the payload, behind a few ids.
    const HEAD: usize = 512;
    let head = line.as_bytes().get(..HEAD.min(line.len())).unwrap_or_default();
    if !line.starts_with('{') || memchr::memmem::find(head, b"\"model.streaming\"").is_none() {
        return None;
    }
    let line: Line<'_> = serde_json::from_str(line).ok()?;
    let params = line.params;
    if line.id.is_some() || line.method != "session/event" || params.kind != "model.streaming" {
        return None;
    }
    let fields = stream_fields(params.payload);
    Some(StreamingLine {
        session_id: params.session_id.map(|it| it.0).unwrap_or_default(),
        seq: params.seq.unwrap_or_default(),
        turn_id: params.turn_id,
        fields,
    })
}

impl StreamingLine<'_> {
    /// The event that the line tells.
    pub(super) fn into_event(self) -> SessionEvent {
        let (streaming, inner_turn) = self.fields.into_owned();
        SessionEvent {
            session_id: self.session_id.into_owned(),
            seq: self.seq,
            turn_id: self.turn_id.map(Text::owned).or(inner_turn),
            body: SessionBody::Streaming(streaming),
        }
    }

    /// Appends this line's piece to an event whose text it continues. Returns false, and changes
    /// nothing, when it does not: another text, a number left out, or more than `limit` bytes.
    pub(super) fn continues(&self, event: &mut SessionEvent, limit: usize) -> bool {
        use StreamKind::{ReasoningDelta, TextDelta, ToolInputDelta};
        let SessionBody::Streaming(text) = &mut event.body else { return false };
        let same = |ours: &Option<Text<'_>>, theirs: &Option<String>| {
            ours.as_ref().map(|it| &*it.0) == theirs.as_deref()
        };
        let fields = &self.fields;
        let turn_id = self.turn_id.as_ref().or(fields.turn_id.as_ref());
        let numbered = self.seq == if event.seq == 0 { 0 } else { event.seq + 1 };
        let joins = numbered
            && fields.kind == text.kind
            && matches!(fields.kind, TextDelta | ReasoningDelta | ToolInputDelta)
            && self.session_id == event.session_id
            && turn_id.map(|it| &*it.0) == event.turn_id.as_deref()
            && same(&fields.message_id, &text.message_id)
            && same(&fields.part_id, &text.part_id)
            && same(&fields.tool_call_id, &text.tool_call_id)
            && same(&fields.tool_name, &text.tool_name)
            && fields.input == text.input
            && fields.error == text.error
            && text.delta.len() + fields.delta.0.len() <= limit;
        if joins {
            if event.seq != 0 {
                text.joins.push(text.delta.len());
                event.seq = self.seq;
            }
            text.delta.push_str(&fields.delta.0);
        }
        joins
    }
}

fn event(params: &RawValue) -> EngineEvent {
    let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(params.get()) else {
        return odd_event(&value(params));
    };
    let session_id = envelope.session_id.map(Text::owned).unwrap_or_default();
    let turn_id = envelope.turn_id.map(Text::owned);
    let (body, inner_turn) = match (&*envelope.kind, envelope.payload) {
        ("model.streaming", Some(payload)) => streaming(payload),
        ("state.updated", payload) => {
            let mut state: super::event::StateUpdated =
                salvage(payload.map(value).unwrap_or_default());
            state.session_id.get_or_insert(session_id);
            return EngineEvent::State(Box::new(state));
        }
        (kind, payload) => {
            let payload = payload.map(value).unwrap_or_default();
            let turn = text(&payload, &["turnId"]);
            (body(kind, payload), turn)
        }
    };
    EngineEvent::Session(Box::new(SessionEvent {
        session_id,
        seq: envelope.seq.unwrap_or_default(),
        turn_id: turn_id.or(inner_turn),
        body,
    }))
}

/// An envelope whose fields are not of the usual types.
fn odd_event(params: &Value) -> EngineEvent {
    let Some(kind) = text(params, &["type", "kind"]) else {
        return EngineEvent::Malformed { reason: "a session/event without a type".to_owned() };
    };
    let payload = params.get("payload").cloned().unwrap_or_default();
    let turn_id = text(params, &["turnId"]).or_else(|| text(&payload, &["turnId"]));
    EngineEvent::Session(Box::new(SessionEvent {
        session_id: text(params, &["sessionId"]).unwrap_or_default(),
        seq: params.get("seq").and_then(number).unwrap_or_default(),
        turn_id,
        body: body(&kind, payload),
    }))
}

fn frame(params: &RawValue) -> EngineEvent {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, default)]
        topic: Option<Text<'a>>,
        #[serde(borrow, default)]
        frame: Option<&'a RawValue>,
    }
    let head = serde_json::from_str::<Head<'_>>(params.get()).ok();
    let topic = head.and_then(|head| {
        // The oldest builds name the topic only inside.
        let inner = |frame: &RawValue| text(&value(frame), &["topic"]);
        head.topic.map(Text::owned).or_else(|| head.frame.and_then(inner))
    });
    EngineEvent::Frame { topic: topic.unwrap_or_default(), params: params.to_owned() }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct StreamPayload<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(rename = "type", borrow)]
    kind_too: Option<Text<'a>>,
    #[serde(borrow)]
    delta: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    assistant_message_id: Option<Text<'a>>,
    // One field for each spelling: an alias would refuse an event that has both.
    #[serde(borrow)]
    message_id: Option<Text<'a>>,
    #[serde(rename = "messageID", borrow)]
    message_id_too: Option<Text<'a>>,
    #[serde(borrow)]
    part_id: Option<Text<'a>>,
    #[serde(rename = "partID", borrow)]
    part_id_too: Option<Text<'a>>,
    #[serde(borrow)]
    tool_call_id: Option<Text<'a>>,
    #[serde(rename = "toolCallID", borrow)]
    tool_call_id_too: Option<Text<'a>>,
    #[serde(borrow)]
    call_id: Option<Text<'a>>,
    #[serde(rename = "callID", borrow)]
    call_id_too: Option<Text<'a>>,
    #[serde(borrow)]
    tool_name: Option<Text<'a>>,
    #[serde(borrow)]
    turn_id: Option<Text<'a>>,
    input: Option<Value>,
    error: Option<Value>,
}

fn streaming(raw: &RawValue) -> (SessionBody, Option<String>) {
    let Ok(p) = serde_json::from_str::<StreamPayload<'_>>(raw.get()) else {
        let payload = value(raw);
        let turn = text(&payload, &["turnId"]);
        return (body("model.streaming", payload), turn);
    };
    let (streaming, turn) = stream_fields(p).into_owned();
    (SessionBody::Streaming(streaming), turn)
}

/// The payload's fields in one spelling.
struct StreamFields<'a> {
    kind: StreamKind,
    delta: Text<'a>,
    message_id: Option<Text<'a>>,
    part_id: Option<Text<'a>>,
    tool_call_id: Option<Text<'a>>,
    tool_name: Option<Text<'a>>,
    turn_id: Option<Text<'a>>,
    input: Option<Value>,
    error: Option<Value>,
}

fn stream_fields(p: StreamPayload<'_>) -> StreamFields<'_> {
    StreamFields {
        kind: stream_kind(&p.kind.or(p.kind_too).unwrap_or_default().0),
        delta: p.delta.or(p.text).unwrap_or_default(),
        message_id: p.assistant_message_id.or(p.message_id).or(p.message_id_too),
        part_id: p.part_id.or(p.part_id_too),
        tool_call_id: p.tool_call_id.or(p.call_id).or(p.call_id_too).or(p.tool_call_id_too),
        tool_name: p.tool_name,
        turn_id: p.turn_id,
        input: p.input,
        error: p.error,
    }
}

impl StreamFields<'_> {
    /// The event's payload, and the turn that it names.
    fn into_owned(self) -> (Streaming, Option<String>) {
        let owned = |text: Option<Text<'_>>| text.map(Text::owned);
        let streaming = Streaming {
            kind: self.kind,
            delta: self.delta.owned(),
            message_id: owned(self.message_id),
            part_id: owned(self.part_id),
            tool_call_id: owned(self.tool_call_id),
            tool_name: owned(self.tool_name),
            input: self.input,
            error: self.error,
            joins: Vec::new(),
        };
        (streaming, owned(self.turn_id))
    }
}

fn stream_kind(kind: &str) -> StreamKind {
    match kind {
        "start" => StreamKind::Start,
        "finish" => StreamKind::Finish,
        "error" => StreamKind::Error,
        "text_start" => StreamKind::TextStart,
        "text_delta" => StreamKind::TextDelta,
        "text_end" => StreamKind::TextEnd,
        "reasoning_start" => StreamKind::ReasoningStart,
        "reasoning_delta" => StreamKind::ReasoningDelta,
        "reasoning_end" => StreamKind::ReasoningEnd,
        "tool_input_start" => StreamKind::ToolInputStart,
        "tool_input_delta" => StreamKind::ToolInputDelta,
        "tool_input_end" => StreamKind::ToolInputEnd,
        "tool_call" => StreamKind::ToolCall,
        _ => StreamKind::Unknown,
    }
}

/// Reads a payload by the event's type.
fn body(kind: &str, payload: Value) -> SessionBody {
    match kind {
        "turn.started" => SessionBody::TurnStarted(salvage(payload)),
        "turn.completed" => SessionBody::TurnCompleted(salvage(payload)),
        "turn.failed" => SessionBody::TurnFailed(salvage(payload)),
        "turn.terminal" => SessionBody::TurnTerminal(payload),
        "turn.steerQueued" => SessionBody::SteerQueued(salvage(payload)),
        "turn.steerDrained" => SessionBody::SteerDrained(salvage(payload)),
        "model.streaming" => SessionBody::Streaming(odd_streaming(&payload)),
        "part.delta" => SessionBody::PartDelta(part_delta(&payload)),
        "tool.updated" => SessionBody::Tool(tool(payload)),
        "session.updated" => SessionBody::Updated(updated(payload)),
        "session.titleUpdated" => SessionBody::Title(salvage(payload)),
        "rewind.triggered" => SessionBody::Rewind(payload),
        "permission.requested"
        | "permission.resolved"
        | "userInput.requested"
        | "userInput.resolved" => SessionBody::Interaction(InteractionMirror {
            resolved: kind.ends_with(".resolved"),
            user_input: kind.starts_with("userInput"),
            request_id: text(&payload, &["requestId", "requestID", "id"]),
            tool_call_id: text(&payload, CALL_ID),
        }),
        _ => SessionBody::Unknown { kind: kind.to_owned() },
    }
}

/// Every spelling of a tool call's id.
const CALL_ID: &[&str] = &["toolCallId", "callId", "callID", "toolCallID"];

fn odd_streaming(p: &Value) -> Streaming {
    Streaming {
        kind: stream_kind(&text(p, &["kind", "type"]).unwrap_or_default()),
        delta: text(p, &["delta", "text"]).unwrap_or_default(),
        message_id: text(p, &["assistantMessageId", "messageId", "messageID"]),
        part_id: text(p, &["partId", "partID"]),
        tool_call_id: text(p, CALL_ID),
        tool_name: text(p, &["toolName", "tool"]),
        input: present(p, "input"),
        error: present(p, "error"),
        joins: Vec::new(),
    }
}

fn part_delta(p: &Value) -> PartDelta {
    PartDelta {
        message_id: text(p, &["messageId", "messageID"]),
        part_id: text(p, &["partId", "partID"]),
        field: text(p, &["field"]),
        delta: text(p, &["delta"]).unwrap_or_default(),
    }
}

fn tool(mut payload: Value) -> ToolUpdated {
    let phase = match text(&payload, &["kind", "type"]).as_deref() {
        Some("scheduled") => ToolPhase::Scheduled { input: take(&mut payload, "input") },
        Some("started") => ToolPhase::Started,
        Some("progress") => ToolPhase::Progress(salvage::<ToolProgress>(payload.clone())),
        Some("result") => ToolPhase::Result {
            duration: payload
                .get("duration")
                .or_else(|| payload.get("durationMs"))
                .and_then(number),
            result: take(&mut payload, "result").unwrap_or_default(),
        },
        Some("error") => {
            ToolPhase::Error { error: take(&mut payload, "error").unwrap_or_default() }
        }
        Some("batch") => ToolPhase::Batch {
            tool_call_ids: salvage_list(payload.get("toolCallIds")),
            error_count: payload.get("errorCount").and_then(number).unwrap_or_default(),
        },
        _ => ToolPhase::Other,
    };
    ToolUpdated {
        tool_call_id: text(&payload, CALL_ID).unwrap_or_default(),
        tool_name: text(&payload, &["toolName", "tool"]),
        parent_tool_call_id: text(&payload, &["parentToolCallId"]),
        source: text(&payload, &["source"]),
        child_session_id: text(&payload, &["childSessionId"]),
        child_tool_call_id: text(&payload, &["childToolCallId", "childToolCallID"]),
        agent_id: text(&payload, &["agentId"]),
        agent_type: text(&payload, &["agentType"]),
        description: text(&payload, &["description"]),
        background: payload.get("background").and_then(Value::as_bool).unwrap_or_default(),
        phase,
    }
}

fn updated(payload: Value) -> SessionUpdated {
    let task = text(&payload, &["taskId"]).map(|_| salvage::<BackgroundTask>(payload.clone()));
    let retry = payload.get("apiRetry").filter(|retry| retry.is_object());
    let is_retry = text(&payload, &["kind", "type"]).as_deref() == Some("api_retry");
    SessionUpdated {
        task,
        context_used: payload
            .get("usage")
            .and_then(|usage| usage.get("inputTokens"))
            .and_then(number),
        context_window: payload.get("contextWindow").and_then(number),
        api_retry: if is_retry { Some(payload.clone()) } else { retry.cloned() },
        mode: text(&payload, &["mode"]),
        plan_enabled: payload.get("planEnabled").and_then(Value::as_bool),
        raw: payload,
    }
}

/// Raw text to a tree.
fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Makes a `T` of what fits: fields that are null or of a wrong type count as missing.
fn salvage<T: DeserializeOwned + Default>(value: Value) -> T {
    let Value::Object(fields) = value else { return T::default() };
    let fields: Map<String, Value> =
        fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
    // The whole text of a turn may be in it: not copied for the case that something does not fit.
    let fields = Value::Object(fields);
    T::deserialize(&fields).unwrap_or_else(|_| {
        let Value::Object(fields) = fields else { return T::default() };
        let fits = |key: &String, value: &Value| {
            T::deserialize(&Value::Object(Map::from_iter([(key.clone(), value.clone())]))).is_ok()
        };
        let fitting: Map<String, Value> = fields.into_iter().filter(|(k, v)| fits(k, v)).collect();
        T::deserialize(&Value::Object(fitting)).unwrap_or_default()
    })
}

fn salvage_list(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The first of the keys that holds text (or a number, which some builds use for ids).
fn text(value: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| match value.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

fn type_of(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    serde_json::from_str::<Typed<'_>>(params.get()).ok().map(|typed| typed.kind.into_owned())
}

fn present(value: &Value, key: &str) -> Option<Value> {
    value.get(key).filter(|value| !value.is_null()).cloned()
}

fn take(value: &mut Value, key: &str) -> Option<Value> {
    value.get_mut(key).map(Value::take).filter(|value| !value.is_null())
}

/// A count: an integer, or a float or text that holds one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range just before"
)]
fn number(value: &Value) -> Option<u64> {
    let float = |f: f64| (0.0..9.0e15).contains(&f).then_some(f as u64);
    value
        .as_u64()
        .or_else(|| value.as_f64().and_then(float))
        .or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests;
