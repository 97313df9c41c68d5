//! Messages as they came. The typed form of a `session/update` is tried first; what does not fit it
//! is kept whole, so that an update of a newer protocol is shown instead of lost. Requests keep
//! their params as JSON, with the fields in the agent's order.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{
    Error, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, UntypedMessage,
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::tui::model::AgentCommand;
use crate::tui::model::queue::{AgentItem, AgentQueue};
use crate::tui::model::status::Usage;
use crate::tui::msg::{AgentMsg, SessionFact};

/// A `session/update`, decoded as far as it can be.
#[derive(Debug, Clone)]
pub(super) struct AnyUpdate {
    /// The session it names; empty when it names none.
    pub(super) session_id: String,
    /// The update, typed when it fits.
    pub(super) update: Result<Box<acp::SessionUpdate>, Value>,
    /// What it tells about the session.
    pub(super) facts: Vec<SessionFact>,
    /// How much of the room for updates on their way it takes.
    pub(super) weight: usize,
}

/// Bytes of text that weigh as much as an update itself.
const WEIGHED: usize = 4096;

/// The weight of an update with these params.
pub(super) fn weight<'a>(params: impl IntoIterator<Item = &'a Value>) -> usize {
    fn bytes(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(bytes).sum(),
            Value::Object(fields) => fields.values().map(bytes).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }
    1 + params.into_iter().map(bytes).sum::<usize>() / WEIGHED
}

impl JsonRpcMessage for AnyUpdate {
    fn matches_method(method: &str) -> bool {
        method == "session/update"
    }

    fn method(&self) -> &'static str {
        "session/update"
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage, Error> {
        // Only ever received.
        Err(Error::internal_error())
    }

    fn parse_message(_method: &str, params: &Value) -> Result<Self, Error> {
        let weight = weight(params.as_object().into_iter().flat_map(serde_json::Map::values));
        Ok(Self { weight, ..Self::read(params) })
    }
}

impl JsonRpcNotification for AnyUpdate {}

impl AnyUpdate {
    /// Reads the params of a `session/update`; never fails.
    pub(super) fn read(params: &Value) -> Self {
        let session_id = ["sessionId", "session_id"]
            .iter()
            .find_map(|k| params.get(k).and_then(Value::as_str))
            .unwrap_or_default()
            .to_owned();
        let raw = params.get("update").unwrap_or(params);
        if let Some(update) = plain_chunk(raw) {
            let (update, facts) = (Ok(Box::new(update)), Vec::new());
            return Self { session_id, update, facts, weight: 1 };
        }
        match acp::SessionUpdate::deserialize(raw) {
            Ok(update) => {
                let facts = facts(raw);
                Self { session_id, update: Ok(Box::new(update)), facts, weight: 1 }
            }
            Err(error) => {
                tracing::debug!(%error, "an update does not fit the protocol");
                Self { session_id, update: Err(raw.clone()), facts: Vec::new(), weight: 1 }
            }
        }
    }

    /// What the loop is told.
    pub(super) fn into_messages(self) -> impl Iterator<Item = AgentMsg> {
        let Self { session_id, update, facts, .. } = self;
        let id = session_id.clone();
        let learned =
            facts.into_iter().map(move |fact| AgentMsg::Learned { session_id: id.clone(), fact });
        let update = match update {
            Ok(update) => AgentMsg::Updated { session_id, update },
            Err(update) => AgentMsg::UnknownUpdate { session_id, update },
        };
        learned.chain(std::iter::once(update))
    }
}

/// A piece of text and nothing besides, which nearly every update is. Made without the detour that
/// tells an update's kind apart, which copies the whole of it first.
fn plain_chunk(raw: &Value) -> Option<acp::SessionUpdate> {
    let fields = raw.as_object()?;
    let make = match fields.get("sessionUpdate")?.as_str()? {
        "agent_message_chunk" => acp::SessionUpdate::AgentMessageChunk,
        "agent_thought_chunk" => acp::SessionUpdate::AgentThoughtChunk,
        _ => return None,
    };
    let content = fields.get("content")?.as_object()?;
    let id = fields.get("messageId").map(Value::as_str);
    if fields.len() != 2 + usize::from(id.is_some())
        || content.len() != 2
        || content.get("type")?.as_str()? != "text"
    {
        return None;
    }
    let text = acp::TextContent::new(content.get("text")?.as_str()?);
    let chunk = acp::ContentChunk::new(acp::ContentBlock::Text(text));
    Some(make(match id {
        Some(id) => chunk.message_id(acp::MessageId::new(id?)),
        None => chunk,
    }))
}

/// What an update tells about the session rather than the conversation. Read from the JSON, so
/// that one bad entry of a list does not hide the others.
fn facts(raw: &Value) -> Vec<SessionFact> {
    let text = |v: &Value, k: &str| v.get(k).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |k: &str| raw.get(k).and_then(Value::as_array).cloned().unwrap_or_default();
    let fact = match raw.get("sessionUpdate").and_then(Value::as_str) {
        Some("available_commands_update") => SessionFact::Commands(
            list("availableCommands")
                .iter()
                .map(|c| AgentCommand {
                    name: text(c, "name").trim_start_matches('/').to_owned(),
                    description: text(c, "description"),
                    hint: c.get("input").map(|i| text(i, "hint")).unwrap_or_default(),
                })
                .filter(|c| !c.name.is_empty())
                .collect(),
        ),
        Some("config_option_update") => SessionFact::Options(list("configOptions")),
        Some("current_mode_update") => SessionFact::Mode(text(raw, "currentModeId")),
        Some("session_info_update") => {
            let title = raw.get("title").map(|title| title.as_str().unwrap_or_default().to_owned());
            let queue = raw.pointer("/_meta/zcode/queue").filter(|it| it.is_object());
            let title = title.map(SessionFact::Title);
            return title
                .into_iter()
                .chain(queue.map(|it| SessionFact::Queue(queued(it))))
                .collect();
        }
        Some("usage_update") => {
            let number = |k: &str| raw.get(k).and_then(Value::as_u64);
            let (Some(used), Some(size)) = (number("used"), number("size")) else {
                return Vec::new();
            };
            let cost = raw.get("cost").and_then(|c| {
                Some((c.get("amount")?.as_f64()?, c.get("currency")?.as_str()?.to_owned()))
            });
            SessionFact::Usage(Usage { used, size, cost })
        }
        Some("subagent_update") => {
            SessionFact::Child { session_id: text(raw, "sessionId"), title: text(raw, "title") }
        }
        _ => return Vec::new(),
    };
    vec![fact]
}

/// Why a message was not taken into the running turn, in words.
fn why_not(reason: Option<&str>) -> String {
    match reason {
        Some("guide.noToolBoundary") => "too late for the turn".to_owned(),
        Some("guide.turnInterrupted") => "its turn was stopped".to_owned(),
        Some("guide.attachmentsUnsupported") => "has attachments".to_owned(),
        Some(other) => other.to_owned(),
        None => "not taken in".to_owned(),
    }
}

/// The agent's queue, as the extension `_zcode/queue/*` describes it.
fn queued(view: &Value) -> AgentQueue {
    let text = |v: &Value, k: &str| v.get(k).and_then(Value::as_str).map(str::to_owned);
    let item = |it: &Value| {
        Some(AgentItem {
            id: text(it, "itemId")?,
            text: text(it, "text").unwrap_or_default(),
            note: match text(it, "state").as_deref() {
                Some("fellBack") => why_not(text(it, "reason").as_deref()),
                Some("submitting" | "steering") => "for the running turn".to_owned(),
                _ => String::new(),
            },
        })
    };
    AgentQueue {
        items: view
            .get("items")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(item)
            .collect(),
        auto_drain: view.get("autoDrain").and_then(Value::as_bool).unwrap_or(true),
        pause: text(view, "pauseReason"),
    }
}

/// A request of the agent, whatever it is.
#[derive(Debug, Clone)]
pub(super) struct AnyRequest {
    pub(super) method: String,
    pub(super) params: Value,
}

impl JsonRpcMessage for AnyRequest {
    fn matches_method(_method: &str) -> bool {
        true
    }

    fn method(&self) -> &str {
        &self.method
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage, Error> {
        UntypedMessage::new(&self.method, &self.params)
    }

    fn parse_message(method: &str, params: &Value) -> Result<Self, Error> {
        Ok(Self { method: method.to_owned(), params: params.clone() })
    }
}

impl JsonRpcRequest for AnyRequest {
    type Response = Value;
}

/// Our `initialize` params. What is claimed here is done in this directory's other files.
pub(super) fn initialize_params(logs_in_here: bool) -> Value {
    json!({
        "protocolVersion": 1,
        "clientInfo": {
            "name": "zcode-acp-tui",
            "title": "zcode-acp terminal",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "clientCapabilities": {
            "fs": {"readTextFile": true, "writeTextFile": true},
            "terminal": true,
            "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
            "plan": {},
            "subagents": {},
            "elicitation": {"form": {}},
            "auth": {"terminal": logs_in_here},
            "_meta": {
                "terminal_output": true,
                "subagent-transcript": true,
                // What agents look at that are older than `auth.terminal`.
                "terminal-auth": logs_in_here,
            },
        },
    })
}

/// The tool call of a permission request as an update, so that it has a card even when the agent
/// announced none.
pub(super) fn asked_tool_call(params: &Value) -> Option<AnyUpdate> {
    let call = params.get("toolCall")?.as_object()?;
    let mut update = call.clone();
    update.insert("sessionUpdate".to_owned(), "tool_call_update".into());
    let session_id = params.get("sessionId").cloned().unwrap_or_default();
    let any = AnyUpdate::read(&json!({"sessionId": session_id, "update": update}));
    any.update.is_ok().then_some(any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(update: &Value) -> AnyUpdate {
        AnyUpdate::read(&json!({"sessionId": "s", "update": update}))
    }

    #[test]
    fn what_does_not_fit_is_kept_whole() {
        let future = json!({"sessionUpdate": "future_thing", "x": 1});
        assert_eq!(read(&future).update.unwrap_err(), future);
        assert!(
            read(&json!({"sessionUpdate": "usage_update", "used": "many", "size": 1}))
                .update
                .is_err()
        );
        assert!(AnyUpdate::read(&Value::Null).update.is_err());
    }

    #[test]
    fn a_plain_piece_of_text_reads_as_the_protocol_says_and_nothing_else_is_taken_for_one() {
        for kind in ["agent_message_chunk", "agent_thought_chunk"] {
            for extra in [json!({}), json!({"messageId": "m"})] {
                let mut raw =
                    json!({"sessionUpdate": kind, "content": {"type": "text", "text": "a\nb"}});
                raw.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
                let plain = plain_chunk(&raw).unwrap();
                assert_eq!(plain, acp::SessionUpdate::deserialize(&raw).unwrap());
            }
        }
        for other in [
            json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "a"}}),
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "text": "a"}}),
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 1}}),
            json!({"sessionUpdate": "agent_message_chunk", "messageId": 1, "content": {"type": "text", "text": "a"}}),
            json!({"sessionUpdate": "agent_message_chunk", "_meta": {}, "content": {"type": "text", "text": "a"}}),
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a", "annotations": {}}}),
        ] {
            assert_eq!(plain_chunk(&other), None, "{other}");
        }
    }

    #[test]
    fn an_update_weighs_what_it_carries_and_the_same_at_both_ends_of_its_way() {
        let text = |bytes: usize| {
            json!({"sessionId": "s", "update": {"sessionUpdate": "tool_call",
            "toolCallId": "t", "title": "t", "content": [{"type": "content",
            "content": {"type": "text", "text": "x".repeat(bytes)}}]}})
        };
        let at_the_relay = |params: &Value| weight(params.as_object().unwrap().values());
        for (bytes, expected) in [(0, 1), (10, 1), (1 << 20, 257)] {
            let params = text(bytes);
            let update = AnyUpdate::parse_message("session/update", &params).unwrap();
            assert_eq!((update.weight, at_the_relay(&params)), (expected, expected), "{bytes}");
        }
    }

    #[test]
    fn one_bad_command_does_not_hide_the_others() {
        let any = read(&json!({"sessionUpdate": "available_commands_update",
            "availableCommands": [{"nam": "x"}, {"name": "/y", "description": "d", "input": {"hint": "h"}}]}));
        let [SessionFact::Commands(commands)] = any.facts.as_slice() else { panic!() };
        assert_eq!(commands.len(), 1);
        assert_eq!((commands[0].name.as_str(), commands[0].hint.as_str()), ("y", "h"));
    }

    #[test]
    fn our_own_initialize_fits_the_protocol() {
        let typed = acp::InitializeRequest::deserialize(&initialize_params(true)).unwrap();
        assert!(typed.client_capabilities.terminal);
        assert!(typed.client_capabilities.auth.terminal);
        assert!(typed.client_capabilities.elicitation.unwrap().form.is_some());
    }

    #[test]
    fn a_permission_request_makes_a_card() {
        let any = asked_tool_call(
            &json!({"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "rm"}}),
        )
        .unwrap();
        assert!(matches!(*any.update.unwrap(), acp::SessionUpdate::ToolCallUpdate(_)));
    }

    #[test]
    fn the_agents_queue_is_read_with_why_a_message_waits() {
        let any = read(
            &json!({"sessionUpdate": "session_info_update", "title": "t", "_meta": {"zcode": {"queue": {
            "autoDrain": false, "pauseReason": null, "items": [
                {"itemId": "q1", "text": "x", "state": "fellBack", "reason": "guide.noToolBoundary"},
                {"itemId": "q2", "text": "y", "state": "steering"}, {"text": "no id"}]}}}}),
        );
        let [SessionFact::Title(_), SessionFact::Queue(queue)] = any.facts.as_slice() else {
            panic!("{:?}", any.facts)
        };
        let notes: Vec<&str> = queue.items.iter().map(|it| it.note.as_str()).collect();
        assert_eq!(notes, ["too late for the turn", "for the running turn"]);
        assert!(!queue.auto_drain && queue.pause.is_none());
    }
}
