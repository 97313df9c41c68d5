//! PURE. What the engine asks its host and waits for: permissions, plans, questions, provider
//! headers and preferences. An open permission or question is announced again every second under a
//! new protocol id and the same `requestId` until one of its ids is answered.

use super::player::{Answer, Call, Child, Question};
use super::profile::Profile;
use super::schema;
use super::wire::Wire;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How long after an announcement the next one follows. The pace does not change it.
const AGAIN_MS: u64 = 1_000;

/// Who waits for the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asker {
    /// The session's turn.
    Turn(String),
    /// A task of the session.
    Task(String, String),
    /// The request that is being served (`session/create`, `session/resume`).
    Serving,
    /// Nobody: the answer is only checked.
    Nobody,
}

/// An open request of the engine's.
#[derive(Debug)]
pub(super) struct Interaction {
    pub(super) request_id: String,
    pub(super) session_id: String,
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) asker: Asker,
    /// The call it is about.
    pub(super) call: Option<Arc<Call>>,
    ids: Vec<String>,
    /// When it is announced again; `None`: never.
    again: Option<u64>,
    /// When another client answers it.
    elsewhere: Option<u64>,
    /// When the engine gives up.
    expires: Option<u64>,
}

/// What became of an interaction.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) interaction: Interaction,
    /// The host's result; `Err` when it sent an error, something invalid, or nothing in time.
    pub(super) result: Result<Value, String>,
}

/// All open requests.
#[derive(Debug, Default)]
pub(super) struct Interactions {
    open: Vec<Interaction>,
}

impl Interactions {
    /// Asks; returns the `requestId`.
    pub(super) fn ask(&mut self, wire: &mut Wire, ask: Ask<'_>) -> String {
        let request_id = match ask.params.get("requestId").and_then(Value::as_str) {
            Some(id) => id.to_owned(),
            None => wire.ids.named("req"),
        };
        let id = wire.request(ask.method, &ask.params);
        let repeats =
            matches!(ask.method, "interaction/requestPermission" | "interaction/requestUserInput");
        self.open.push(Interaction {
            request_id: request_id.clone(),
            session_id: ask.session_id.to_owned(),
            method: ask.method.to_owned(),
            params: ask.params,
            asker: ask.asker,
            call: ask.call,
            ids: vec![id],
            again: repeats.then_some(wire.now + AGAIN_MS),
            elsewhere: ask.elsewhere_after.map(|ms| wire.now + ms),
            expires: ask.expires_after.map(|ms| wire.now + ms),
        });
        request_id
    }

    /// Takes in a response. `None`: its id belongs to nothing that is open.
    pub(super) fn settle(
        &mut self,
        id: &Value,
        response: Result<Value, String>,
    ) -> Option<Settled> {
        let id = id.as_str()?;
        let at = self.open.iter().position(|i| i.ids.iter().any(|known| known == id))?;
        let interaction = self.open.remove(at);
        let result = response
            .and_then(|value| schema::check_reply(&interaction.method, &value).map(|()| value));
        Some(Settled { interaction, result })
    }

    /// Settles the interaction of that request id by other means.
    pub(super) fn resolve(&mut self, request_id: &str) -> Option<Interaction> {
        let at = self.open.iter().position(|i| i.request_id == request_id)?;
        Some(self.open.remove(at))
    }

    /// Drops the interactions that a session's turn (or a task) waits for.
    pub(super) fn drop_of(&mut self, asker: &Asker) -> Vec<Interaction> {
        let (gone, kept) =
            std::mem::take(&mut self.open).into_iter().partition(|i| i.asker == *asker);
        self.open = kept;
        gone
    }

    /// When something is due.
    pub(super) fn due(&self) -> Option<u64> {
        self.open.iter().flat_map(|i| [i.again, i.elsewhere, i.expires]).flatten().min()
    }

    /// Announces again what is due, and returns what another client answered or what expired.
    pub(super) fn tick(&mut self, wire: &mut Wire) -> Vec<Settled> {
        let now = wire.now;
        for open in &mut self.open {
            if open.again.is_some_and(|at| at <= now) {
                let id = wire.request(&open.method, &open.params);
                open.ids.push(id);
                open.again = Some(now + AGAIN_MS);
            }
        }
        let due =
            |i: &Interaction| [i.elsewhere, i.expires].into_iter().flatten().any(|at| at <= now);
        let (gone, kept) = std::mem::take(&mut self.open).into_iter().partition(due);
        self.open = kept;
        gone.into_iter()
            .map(|interaction: Interaction| {
                let result = if interaction.elsewhere.is_some_and(|at| at <= now) {
                    Ok(json!({"decision": "allow", "action": "accept"}))
                } else {
                    Err("request timed out".to_owned())
                };
                Settled { interaction, result }
            })
            .collect()
    }

    /// The open permissions and questions of a session, as a projection shows them.
    pub(super) fn pending_of(&self, session_id: &str) -> Vec<Value> {
        self.open
            .iter()
            .filter(|i| i.session_id == session_id && i.again.is_some())
            .map(|i| i.params.clone())
            .collect()
    }
}

/// What is asked of whom.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    pub(super) method: &'a str,
    pub(super) session_id: &'a str,
    pub(super) params: Value,
    pub(super) asker: Asker,
    pub(super) call: Option<Arc<Call>>,
    pub(super) elsewhere_after: Option<u64>,
    pub(super) expires_after: Option<u64>,
}

/// What the question says about where it comes from.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) request_id: String,
    pub(super) session_id: &'a str,
    pub(super) turn_id: Option<&'a str>,
    pub(super) child: Option<&'a Child>,
}

/// Method and params of a question.
pub(super) fn request_of(
    profile: Profile,
    place: Place<'_>,
    question: &Question,
) -> (&'static str, Value) {
    let mut params = Map::new();
    let call = match question {
        Question::Permission { call, .. }
        | Question::Plan { call, .. }
        | Question::Questions { call, .. } => call,
    };
    params.insert("requestId".to_owned(), Value::from(place.request_id));
    params.insert("sessionId".to_owned(), Value::from(place.session_id));
    if let Some(turn) = place.turn_id {
        params.insert("turnId".to_owned(), Value::from(turn));
    }
    params.insert("toolCallId".to_owned(), Value::from(call.id.as_str()));
    let modern = profile.option_responses();
    let method = match question {
        Question::Permission { reason, risk, .. } => {
            params.insert("toolName".to_owned(), Value::from(call.name.as_str()));
            params.insert("reason".to_owned(), Value::from(reason.as_str()));
            if let Some(risk) = risk {
                params.insert("riskLevel".to_owned(), Value::from(risk.as_str()));
            }
            params.insert("input".to_owned(), call.input.clone());
            params.insert("options".to_owned(), options(call, modern));
            if let Some(child) = place.child {
                params.insert("origin".to_owned(), origin(child));
            }
            "interaction/requestPermission"
        }
        Question::Plan { plan, .. } => {
            params.insert(
                "schema".to_owned(),
                json!({"interaction": "plan_approval", "toolName": "ExitPlanMode"}),
            );
            params.insert("input".to_owned(), json!({ "plan": plan }));
            if modern {
                params.insert("toolName".to_owned(), Value::from("ExitPlanMode"));
                params.insert(
                    "questions".to_owned(),
                    json!([{
                        "header": "Plan", "question": "Review this implementation plan.",
                        "options": [{"label": "Approve", "value": "approve"}],
                    }]),
                );
            }
            "interaction/requestUserInput"
        }
        Question::Questions { step, .. } => {
            let questions: Vec<Value> =
                step.questions.iter().map(super::player::question).collect();
            match &step.elicitation {
                Some(elicitation) => {
                    let mut schema = json!({"interaction": "mcp_elicitation"});
                    if let (Some(map), Some(extra)) =
                        (schema.as_object_mut(), elicitation.as_object())
                    {
                        map.extend(extra.clone());
                    }
                    params.insert("schema".to_owned(), schema);
                    params.insert("toolName".to_owned(), Value::from("McpElicitation"));
                }
                None => drop(params.insert("toolName".to_owned(), Value::from("AskUserQuestion"))),
            }
            if modern {
                params.insert("questions".to_owned(), Value::Array(questions));
            } else {
                params.insert("input".to_owned(), json!({ "questions": questions }));
            }
            "interaction/requestUserInput"
        }
    };
    (method, Value::Object(params))
}

fn origin(child: &Child) -> Value {
    json!({
        "kind": "subagent", "agentId": child.agent_id, "agentType": child.kind,
        "childSessionId": child.session_id, "description": child.description,
        "parentToolCallId": child.parent_call,
    })
}

/// What a permission can be answered with.
fn options(call: &Call, with_responses: bool) -> Value {
    let rule = rule_of(call);
    let name = format!("Always allow {rule}");
    if !with_responses {
        return json!([
            {"optionId": "allow", "kind": "allow_once", "name": "Allow once"},
            {"optionId": "allow_always", "kind": "allow_always", "name": name},
            {"optionId": "deny", "kind": "deny", "name": "Deny"},
        ]);
    }
    json!([
        {"optionId": "allow_once", "kind": "allow_once", "name": "Allow once", "response": {"decision": "allow"}},
        {
            "optionId": "allow_always", "kind": "allow_always", "name": name,
            "description": "For this session",
            "response": {
                "decision": "allow",
                "permissionUpdates": [{
                    "type": "addRules", "behavior": "allow", "destination": "session",
                    "rules": [{"toolName": call.name, "ruleContent": rule}],
                }],
            },
        },
        {
            "optionId": "deny", "kind": "deny_once", "name": "Deny",
            "response": {"decision": "deny", "reason": "The user denied this tool use."},
        },
    ])
}

/// What "always" covers: the tool, for commands its first word too.
pub(super) fn rule_of(call: &Call) -> String {
    let word =
        call.input.get("command").and_then(Value::as_str).and_then(|c| c.split_whitespace().next());
    match word {
        Some(word) => format!("{}({word}:*)", call.name),
        None => call.name.clone(),
    }
}

/// A host's result as the answer that the script goes on with. Fails closed.
pub(super) fn answer_of(method: &str, result: &Result<Value, String>) -> Answer {
    let value = match result {
        Ok(value) => value,
        Err(problem) if method == "interaction/requestPermission" => {
            return Answer::Deny { reason: problem.clone() };
        }
        Err(_) => return Answer::Cancel,
    };
    let word = |key: &str| value.get(key).and_then(Value::as_str);
    if method == "interaction/requestPermission" {
        return match word("decision") {
            Some("allow") => Answer::Allow { modified: None },
            Some("modify") => Answer::Allow { modified: value.get("modifiedInput").cloned() },
            _ => Answer::Deny { reason: word("reason").unwrap_or_default().to_owned() },
        };
    }
    match word("action") {
        Some("accept") => {
            Answer::Accept { content: value.get("content").cloned().unwrap_or_else(|| json!({})) }
        }
        Some("decline") => Answer::Decline,
        _ => Answer::Cancel,
    }
}
