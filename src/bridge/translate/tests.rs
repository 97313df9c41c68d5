//! Shared by the tests of this module: engine JSON in, ACP JSON out.
#![allow(
    clippy::needless_pass_by_value,
    clippy::string_slice,
    clippy::format_collect,
    reason = "test tables read better so"
)]

use serde_json::{Value, json};

use super::*;
use crate::bridge::engine::event::{PartDelta, Streaming, ToolPhase, TurnCompleted, TurnStarted};

/// A session event from its `type` and payload, as the engine's lines have them.
pub(super) fn event(kind: &str, payload: Value) -> SessionEvent {
    let text = |key: &str| payload.get(key).and_then(Value::as_str).map(str::to_owned);
    let body = match kind {
        "model.streaming" => SessionBody::Streaming(Streaming {
            kind: stream_kind(payload["kind"].as_str().unwrap()),
            delta: text("delta").unwrap_or_default(),
            message_id: text("assistantMessageId"),
            part_id: text("partId"),
            tool_call_id: text("toolCallId"),
            tool_name: text("toolName"),
            input: payload.get("input").cloned(),
            error: None,
            joins: Vec::new(),
        }),
        "part.delta" => {
            SessionBody::PartDelta(serde_json::from_value::<PartDelta>(payload.clone()).unwrap())
        }
        "turn.started" => SessionBody::TurnStarted(
            serde_json::from_value::<TurnStarted>(payload.clone()).unwrap(),
        ),
        "turn.completed" => SessionBody::TurnCompleted(
            serde_json::from_value::<TurnCompleted>(payload.clone()).unwrap(),
        ),
        "tool.updated" => SessionBody::Tool(ToolUpdated {
            child_tool_call_id: None,
            tool_call_id: text("toolCallId").unwrap_or_default(),
            tool_name: text("toolName"),
            parent_tool_call_id: text("parentToolCallId"),
            source: text("source"),
            child_session_id: text("childSessionId"),
            agent_id: text("agentId"),
            agent_type: text("agentType"),
            description: text("description"),
            background: payload["background"] == json!(true),
            phase: match payload["kind"].as_str().unwrap() {
                "scheduled" => ToolPhase::Scheduled { input: payload.get("input").cloned() },
                "started" => ToolPhase::Started,
                "progress" => ToolPhase::Progress(serde_json::from_value(payload.clone()).unwrap()),
                "result" => ToolPhase::Result {
                    result: payload["result"].clone(),
                    duration: payload["duration"].as_u64(),
                },
                "error" => ToolPhase::Error { error: payload["error"].clone() },
                "batch" => ToolPhase::Batch {
                    tool_call_ids: serde_json::from_value(payload["toolCallIds"].clone()).unwrap(),
                    error_count: payload["errorCount"].as_u64().unwrap_or(0),
                },
                _ => ToolPhase::Other,
            },
        }),
        other => SessionBody::Unknown { kind: other.to_owned() },
    };
    SessionEvent { session_id: "sess_1".into(), seq: 1, turn_id: Some("turn_1".into()), body }
}

fn stream_kind(kind: &str) -> StreamKind {
    match kind {
        "text_delta" => StreamKind::TextDelta,
        "reasoning_delta" => StreamKind::ReasoningDelta,
        "tool_input_start" => StreamKind::ToolInputStart,
        "tool_input_delta" => StreamKind::ToolInputDelta,
        "tool_input_end" => StreamKind::ToolInputEnd,
        "tool_call" => StreamKind::ToolCall,
        _ => StreamKind::Unknown,
    }
}

/// Runs events through a translator and gives the updates as JSON.
pub(super) fn run(translator: &mut Translator, events: &[(&str, Value)]) -> Vec<Value> {
    let mut out = Output::default();
    for (kind, payload) in events {
        translator.on_event(&event(kind, payload.clone()), &mut out);
    }
    updates(&out)
}

/// The updates as JSON.
pub(super) fn updates(out: &Output) -> Vec<Value> {
    out.updates.iter().map(|u| serde_json::to_value(u).unwrap()).collect()
}

/// A translator in `/w` for a client without abilities.
pub(super) fn bare() -> Translator {
    Translator::new(ClientTraits::default()).in_directory("/w")
}

/// A translator in `/w` for a client that shows streamed terminals.
pub(super) fn zed() -> Translator {
    let traits = ClientTraits { terminal_output: true, ..ClientTraits::default() };
    Translator::new(traits).in_directory("/w")
}
