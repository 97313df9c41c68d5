//! PURE. `interaction/requestPermission` to `session/request_permission` and back (engine protocol
//! section 5). Fails closed: whatever is not a clear "allow" of an offered option is a deny, and
//! never in the shape of a user-input reply. Called by the session machine.

use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

use super::{Target, diff, output, tool};
use crate::bridge::engine::event::EngineRequest;

/// One engine request, ready to be shown; keeps what is needed to answer it.
#[derive(Debug, Clone)]
pub struct PermissionAsk {
    tool_call_id: String,
    tool_name: Option<String>,
    input: Value,
    parent: Option<String>,
    title: String,
    content: Vec<acp::ToolCallContent>,
    locations: Vec<acp::ToolCallLocation>,
    risk: Option<String>,
    options: Vec<Choice>,
}

/// One of the engine's options.
#[derive(Debug, Clone)]
struct Choice {
    id: String,
    name: String,
    description: Option<String>,
    kind: acp::PermissionOptionKind,
    /// What the engine wants to hear when this is chosen.
    response: Option<Value>,
}

/// The reply that denies: no answer, a cancelled turn, a lost client.
pub fn denied() -> Value {
    json!({"decision": "deny"})
}

/// The reply that denies and tells the model why.
pub fn denied_because(reason: &str) -> Value {
    json!({"decision": "deny", "reason": reason})
}

/// Reads a request. A request without a tool call gets its `requestId` as the card's id.
pub fn to_acp(request: &EngineRequest, target: &Target) -> PermissionAsk {
    let params = &request.params;
    let text = |key: &str| params.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
    let origin = params.get("origin").unwrap_or(&Value::Null);
    let origin_text = |key: &str| origin.get(key).and_then(Value::as_str);
    let tool_name = text("toolName").map(str::to_owned);
    let input = params.get("input").cloned().unwrap_or(Value::Null);
    let id = text("toolCallId").or(request.request_id.as_deref());
    let mut title = tool::title(tool_name.as_deref(), Some(&input));
    if origin_text("kind") == Some("subagent") {
        let who = origin_text("agentType").unwrap_or("subagent");
        title = format!("[{who}] {title}");
    }
    PermissionAsk {
        tool_call_id: id.unwrap_or("permission").to_owned(),
        title,
        content: content(tool_name.as_deref(), params, &input, target),
        locations: tool::locations(tool_name.as_deref(), &input, target),
        risk: text("riskLevel").map(str::to_owned),
        parent: origin_text("parentToolCallId").map(str::to_owned),
        options: choices(params.get("options")),
        tool_name,
        input,
    }
}

impl PermissionAsk {
    /// The card that has to exist before the dialog names it.
    pub fn card(&self) -> tool::NewCard<'_> {
        tool::NewCard {
            id: &self.tool_call_id,
            name: self.tool_name.as_deref(),
            input: Some(&self.input),
            parent: self.parent.as_deref(),
            title: None,
            content: None,
            meta: None,
        }
    }

    /// The dialog.
    pub fn request(&self, session: impl Into<acp::SessionId>) -> acp::RequestPermissionRequest {
        let raw_input = match &self.input {
            Value::Null => None,
            Value::Object(_) => Some(self.input.clone()),
            other => Some(json!({ "input": other })),
        };
        let fields = acp::ToolCallUpdateFields::new()
            .title(self.title.clone())
            .name(self.tool_name.clone())
            .kind(self.tool_name.as_deref().map(tool::kind))
            .status(acp::ToolCallStatus::Pending)
            .content(self.content.clone())
            .locations((!self.locations.is_empty()).then(|| self.locations.clone()))
            .raw_input(raw_input);
        let mut meta = tool::tool_meta(self.tool_name.as_deref(), self.parent.as_deref());
        if let Some(risk) = &self.risk {
            meta.insert("zcode".into(), json!({"riskLevel": risk}));
        }
        let call = acp::ToolCallUpdate::new(self.tool_call_id.clone(), fields)
            .meta(Some(meta).filter(|m| !m.is_empty()));
        let options = self.options.iter().map(Choice::to_acp).collect();
        acp::RequestPermissionRequest::new(session, call, options)
    }

    /// What a client is told that was not asked: somebody else said no.
    pub fn denied_update(&self, reason: &str) -> acp::SessionUpdate {
        let denied = json!({"permission": {"decision": "deny", "reason": reason}});
        let mut meta = acp::Meta::new();
        meta.insert("zcode".into(), denied);
        let update =
            acp::ToolCallUpdate::new(self.tool_call_id.clone(), acp::ToolCallUpdateFields::new());
        acp::SessionUpdate::ToolCallUpdate(update.meta(meta))
    }

    /// The engine's reply for the client's outcome; `None` is a client that failed or is gone.
    pub fn answer(&self, outcome: Option<&acp::RequestPermissionOutcome>) -> Value {
        let Some(acp::RequestPermissionOutcome::Selected(chosen)) = outcome else {
            return denied();
        };
        let id: &str = &chosen.option_id.0;
        match self.options.iter().find(|option| option.id == id) {
            Some(option) => option.reply(),
            None => denied(),
        }
    }
}

impl Choice {
    fn reply(&self) -> Value {
        if let Some(response) = &self.response {
            return response.clone();
        }
        match self.kind {
            acp::PermissionOptionKind::AllowOnce | acp::PermissionOptionKind::AllowAlways => {
                json!({"decision": "allow"})
            }
            _ => denied(),
        }
    }

    fn to_acp(&self) -> acp::PermissionOption {
        let option = acp::PermissionOption::new(self.id.clone(), self.name.clone(), self.kind);
        let mut meta = acp::Meta::new();
        if let Some(description) = &self.description {
            meta.insert("zcode".into(), json!({ "description": description }));
        }
        option.meta(Some(meta).filter(|m| !m.is_empty()))
    }
}

/// The engine's options in their order, each with an id of its own. An empty list gets "allow
/// once" and "reject once", and a list without a way to say no gets one.
fn choices(options: Option<&Value>) -> Vec<Choice> {
    let list = options.and_then(Value::as_array);
    let mut found: Vec<Choice> = Vec::new();
    for option in list.map(Vec::as_slice).unwrap_or_default() {
        let text = |key: &str| option.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
        let given =
            text("optionId").map_or_else(|| format!("option_{}", found.len()), str::to_owned);
        let mut id = given.clone();
        let mut copy = 2;
        while found.iter().any(|f| f.id == id) {
            id = format!("{given}_{copy}");
            copy += 1;
        }
        let response = option.get("response").filter(|r| decision(r).is_some()).cloned();
        found.push(Choice {
            name: text("name").unwrap_or(&id).to_owned(),
            description: text("description").map(str::to_owned),
            kind: kind(text("kind").unwrap_or(&given), response.as_ref()),
            response,
            id,
        });
    }
    let mut add = |id: &str, name: &str, kind| {
        if !found.iter().any(|f| f.id == id) {
            found.push(Choice {
                id: id.to_owned(),
                name: name.to_owned(),
                description: None,
                kind,
                response: None,
            });
        }
    };
    if list.is_none_or(Vec::is_empty) {
        add("allow_once", "Allow once", acp::PermissionOptionKind::AllowOnce);
    }
    if !found.iter().any(|f| is_reject(f.kind)) {
        found.push(Choice {
            id: free_id(&found, "reject_once"),
            name: "Reject".to_owned(),
            description: None,
            kind: acp::PermissionOptionKind::RejectOnce,
            response: None,
        });
    }
    found
}

fn free_id(taken: &[Choice], wanted: &str) -> String {
    let mut id = wanted.to_owned();
    while taken.iter().any(|t| t.id == id) {
        id.push('_');
    }
    id
}

fn is_reject(kind: acp::PermissionOptionKind) -> bool {
    !matches!(kind, acp::PermissionOptionKind::AllowOnce | acp::PermissionOptionKind::AllowAlways)
}

/// The decision of a `response` object, when it is one the engine takes.
fn decision(response: &Value) -> Option<&str> {
    let word = response.get("decision")?.as_str()?;
    ["allow", "deny", "escalate", "modify"].contains(&word).then_some(word)
}

/// One of the four ACP kinds. What the option *does* (its response) decides over what it is
/// called, so that a client that picks "reject" by kind never approves; the unknown is a reject.
fn kind(word: &str, response: Option<&Value>) -> acp::PermissionOptionKind {
    let word = word.to_ascii_lowercase();
    let lasting = ["always", "project", "session", "permanent", "never"]
        .iter()
        .any(|part| word.contains(part))
        // The bare word of older engines is their "always"; one that says what it does is taken by that.
        || (word == "allow" && response.is_none())
        || response.is_some_and(|r| {
            r.get("permissionUpdates").and_then(Value::as_array).is_some_and(|u| !u.is_empty())
        });
    let allows = match response.and_then(decision) {
        Some(decision) => matches!(decision, "allow" | "modify"),
        None => ["allow", "approve", "accept", "yes"].iter().any(|p| word.starts_with(p)),
    };
    match (allows, lasting) {
        (true, false) => acp::PermissionOptionKind::AllowOnce,
        (true, true) => acp::PermissionOptionKind::AllowAlways,
        (false, false) => acp::PermissionOptionKind::RejectOnce,
        (false, true) => acp::PermissionOptionKind::RejectAlways,
    }
}

/// Everything that is asked for, whole: the engine's reason, then the command, diff or input.
fn content(
    name: Option<&str>,
    params: &Value,
    input: &Value,
    target: &Target,
) -> Vec<acp::ToolCallContent> {
    let mut content = Vec::new();
    let reason = params.get("reason").and_then(Value::as_str);
    content.extend(reason.and_then(output::plain));
    let command = input.get("command").and_then(Value::as_str);
    if let Some(command) = command.filter(|_| name.is_none_or(tool::is_shell)) {
        content.extend(output::fenced("sh", command));
        return content;
    }
    let diffs =
        if name.is_some_and(tool::is_edit) { diff::from_input(input, target) } else { Vec::new() };
    if diffs.is_empty() {
        match input {
            Value::Null => {}
            Value::String(text) => content.extend(output::fenced("", text)),
            other => {
                let pretty = serde_json::to_string_pretty(other).unwrap_or_default();
                content.extend(output::fenced("json", &pretty));
            }
        }
    }
    content.extend(diffs);
    content
}

#[cfg(test)]
mod tests;
