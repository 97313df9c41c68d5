//! PURE. Plan approval (`ExitPlanMode`): as a form to clients that render markdown there, as a
//! permission request to the others (engine protocol section 5). Approval needs the explicit
//! choice "approve"; words typed beside any choice go to the model and keep it planning, and a
//! lost answer cancels. Called by the session machine.

use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

use super::{ClientTraits, output, tool};
use crate::bridge::engine::event::EngineRequest;

const APPROVE: &str = "approve";
const REJECT: &str = "reject";
const WITH_FEEDBACK: &str = "reject_with_feedback";
const MESSAGE: &str = "Review this implementation plan.";
const TITLE: &str = "Plan for approval";

/// True when this user-input request asks for a plan's approval.
pub fn is_plan_approval(request: &EngineRequest) -> bool {
    let at = |pointer: &str| request.params.pointer(pointer).and_then(Value::as_str);
    request.method == "interaction/requestUserInput"
        && (at("/schema/interaction") == Some("plan_approval")
            || (at("/schema/interaction").is_none() && at("/toolName") == Some("ExitPlanMode")))
}

/// A plan that waits for approval.
#[derive(Debug, Clone)]
pub struct PlanAsk {
    tool_call_id: String,
    plan: String,
    content: Vec<acp::ToolCallContent>,
}

/// What a permission answer leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The engine's reply.
    Reply(Value),
    /// The user wants to say why: show [`PlanAsk::feedback_form`].
    AskFeedback,
}

/// Reads the request.
pub fn to_acp(request: &EngineRequest) -> PlanAsk {
    let at = |pointer: &str| request.params.pointer(pointer).and_then(Value::as_str);
    let plan = at("/input/plan").or_else(|| at("/plan")).unwrap_or_default();
    let id = at("/toolCallId").or(request.request_id.as_deref());
    PlanAsk {
        tool_call_id: id.unwrap_or("plan_approval").to_owned(),
        plan: plan.to_owned(),
        content: output::plain(plan).into_iter().collect(),
    }
}

impl PlanAsk {
    /// The plan's markdown, whole.
    pub fn plan(&self) -> &str {
        &self.plan
    }

    /// The card that shows the plan; it has to exist before the dialog.
    pub fn card(&self) -> tool::NewCard<'_> {
        tool::NewCard {
            id: &self.tool_call_id,
            name: Some("ExitPlanMode"),
            title: Some(TITLE),
            content: Some(&self.content),
            ..tool::NewCard::default()
        }
    }

    /// The form: choice first, words second (clients sort the fields by name).
    pub fn form(&self, session: impl Into<acp::SessionId>) -> acp::CreateElicitationRequest {
        let approval = acp::StringPropertySchema::new()
            .title("Plan".to_owned())
            .description(self.plan.clone())
            .one_of(vec![
                acp::EnumOption::new(APPROVE, "Approve"),
                acp::EnumOption::new(REJECT, "Reject and keep planning"),
            ]);
        let schema = acp::ElicitationSchema::new().property("approval", approval, true).property(
            "feedback",
            feedback_field(),
            false,
        );
        self.elicitation(session, schema, MESSAGE)
    }

    /// The second form for clients that show the plan as a permission request.
    pub fn feedback_form(
        &self,
        session: impl Into<acp::SessionId>,
    ) -> acp::CreateElicitationRequest {
        let schema = acp::ElicitationSchema::new().property("feedback", feedback_field(), false);
        self.elicitation(session, schema, "What should change in the plan?")
    }

    /// The permission request, with the plan as content. Feedback needs a form to type it in.
    pub fn permission(
        &self,
        session: impl Into<acp::SessionId>,
        traits: &ClientTraits,
    ) -> acp::RequestPermissionRequest {
        let fields = acp::ToolCallUpdateFields::new()
            .title(TITLE.to_owned())
            .kind(acp::ToolKind::SwitchMode)
            .status(acp::ToolCallStatus::Pending)
            .content(self.content.clone());
        let call = acp::ToolCallUpdate::new(self.tool_call_id.clone(), fields)
            .meta(tool::tool_meta(Some("ExitPlanMode"), None));
        let reject = acp::PermissionOptionKind::RejectOnce;
        let allow = acp::PermissionOptionKind::AllowOnce;
        let mut options = vec![
            acp::PermissionOption::new(APPROVE, "Approve", allow),
            acp::PermissionOption::new(REJECT, "Reject and keep planning", reject),
        ];
        if traits.elicitation_form {
            options.push(acp::PermissionOption::new(
                WITH_FEEDBACK,
                "Reject with feedback…",
                reject,
            ));
        }
        acp::RequestPermissionRequest::new(session, call, options)
    }

    fn elicitation(
        &self,
        session: impl Into<acp::SessionId>,
        schema: acp::ElicitationSchema,
        message: &str,
    ) -> acp::CreateElicitationRequest {
        let scope = acp::ElicitationSessionScope::new(session)
            .tool_call_id(acp::ToolCallId::new(self.tool_call_id.clone()));
        acp::CreateElicitationRequest::new(acp::ElicitationFormMode::new(scope, schema), message)
    }
}

fn feedback_field() -> acp::StringPropertySchema {
    acp::StringPropertySchema::new()
        .title("Feedback".to_owned())
        .description("Words here are sent to the agent, which keeps planning.".to_owned())
}

/// The engine's reply for the form's answer; `None` is a client that failed or is gone.
pub fn from_form(action: Option<&acp::ElicitationAction>) -> Value {
    match action {
        Some(acp::ElicitationAction::Accept(accepted)) => {
            let field = |key: &str| match accepted.content.as_ref()?.get(key)? {
                acp::ElicitationContentValue::String(text) => {
                    Some(text.trim()).filter(|t| !t.is_empty())
                }
                _ => None,
            };
            match (field("approval"), field("feedback")) {
                (_, Some(words)) => feedback(words),
                (Some(APPROVE), None) => approved(),
                _ => declined(),
            }
        }
        Some(acp::ElicitationAction::Decline) => declined(),
        _ => cancelled(),
    }
}

/// The engine's reply for the feedback form: without words it is a plain rejection.
pub fn from_feedback(action: Option<&acp::ElicitationAction>) -> Value {
    match from_form(action) {
        reply if reply == approved() || reply == cancelled() => declined(),
        reply => reply,
    }
}

/// What the permission answer means.
pub fn from_permission(outcome: Option<&acp::RequestPermissionOutcome>) -> Verdict {
    let Some(acp::RequestPermissionOutcome::Selected(chosen)) = outcome else {
        return Verdict::Reply(cancelled());
    };
    match &*chosen.option_id.0 {
        APPROVE => Verdict::Reply(approved()),
        WITH_FEEDBACK => Verdict::AskFeedback,
        _ => Verdict::Reply(declined()),
    }
}

/// The reply for a cancelled turn, a lost client or a failed dialog.
pub fn cancelled() -> Value {
    json!({"action": "cancel"})
}

fn approved() -> Value {
    json!({"action": "accept", "content": {"answer_0": APPROVE}})
}

fn declined() -> Value {
    json!({"action": "decline"})
}

/// Any other answer than the approval is read as feedback, so feedback must never be that word.
fn feedback(words: &str) -> Value {
    let is_the_word = words.eq_ignore_ascii_case(APPROVE);
    let words = if is_the_word { format!("Feedback: {words}") } else { words.to_owned() };
    json!({"action": "accept", "content": {"answer_0": words}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> PlanAsk {
        to_acp(&request(
            json!({"toolCallId": "c1", "schema": {"interaction": "plan_approval"}, "input": {"plan": "# Plan\n\n1. do"}}),
        ))
    }

    fn request(params: Value) -> EngineRequest {
        EngineRequest {
            id: json!(1),
            method: "interaction/requestUserInput".into(),
            session_id: None,
            request_id: Some("r".into()),
            params,
        }
    }

    fn action(value: Value) -> acp::ElicitationAction {
        serde_json::from_value::<acp::CreateElicitationResponse>(value).unwrap().action
    }

    #[test]
    fn plan_requests_are_told_from_questions() {
        for (params, want) in [
            (json!({"schema": {"interaction": "plan_approval"}}), true),
            (json!({"toolName": "ExitPlanMode"}), true),
            (
                json!({"schema": {"interaction": "mcp_elicitation"}, "toolName": "ExitPlanMode"}),
                false,
            ),
            (json!({"toolName": "AskUserQuestion"}), false),
        ] {
            assert_eq!(is_plan_approval(&request(params.clone())), want, "{params}");
        }
    }

    #[test]
    fn the_form_carries_the_whole_plan_and_two_fields_in_reading_order() {
        let got = serde_json::to_value(ask().form("s1")).unwrap();
        assert_eq!(
            got,
            json!({"mode": "form", "sessionId": "s1", "toolCallId": "c1", "message": MESSAGE,
            "requestedSchema": {"type": "object", "required": ["approval"], "properties": {
                "approval": {"type": "string", "title": "Plan", "description": "# Plan\n\n1. do", "oneOf": [
                    {"const": "approve", "title": "Approve"}, {"const": "reject", "title": "Reject and keep planning"}]},
                "feedback": {"type": "string", "title": "Feedback", "description": "Words here are sent to the agent, which keeps planning."}}}})
        );
    }

    #[test]
    fn form_answers_map_to_the_engines_replies() {
        let declined = json!({"action": "decline"});
        let words = |w: &str| json!({"action": "accept", "content": {"answer_0": w}});
        for (answer, want) in [
            (json!({"action": "accept", "content": {"approval": "approve"}}), words("approve")),
            (
                json!({"action": "accept", "content": {"approval": "approve", "feedback": "  "}}),
                words("approve"),
            ),
            (
                json!({"action": "accept", "content": {"approval": "approve", "feedback": "add tests"}}),
                words("add tests"),
            ),
            (
                json!({"action": "accept", "content": {"approval": "reject", "feedback": " use sqlite 请改 "}}),
                words("use sqlite 请改"),
            ),
            (
                json!({"action": "accept", "content": {"approval": "reject", "feedback": "approve"}}),
                words("Feedback: approve"),
            ),
            (
                json!({"action": "accept", "content": {"feedback": "only words"}}),
                words("only words"),
            ),
            (json!({"action": "accept", "content": {"approval": "reject"}}), declined.clone()),
            (json!({"action": "accept", "content": {"approval": "Approve"}}), declined.clone()),
            (json!({"action": "accept", "content": {"approval": true}}), declined.clone()),
            (json!({"action": "accept"}), declined.clone()),
            (json!({"action": "decline"}), declined.clone()),
            (json!({"action": "cancel"}), json!({"action": "cancel"})),
            (json!({"action": "future"}), json!({"action": "cancel"})),
        ] {
            assert_eq!(from_form(Some(&action(answer.clone()))), want, "{answer}");
        }
        assert_eq!(from_form(None), json!({"action": "cancel"}));
    }

    #[test]
    fn other_clients_get_the_plan_as_content_of_a_permission_request() {
        let traits = ClientTraits::default();
        let got = serde_json::to_value(ask().permission("s1", &traits)).unwrap();
        assert_eq!(got["toolCall"]["content"][0]["content"]["text"], "# Plan\n\n1. do");
        assert_eq!(got["toolCall"]["kind"], "switch_mode");
        let kinds: Vec<&Value> =
            got["options"].as_array().unwrap().iter().map(|o| &o["kind"]).collect();
        assert_eq!(kinds, ["allow_once", "reject_once"]);
        let traits = ClientTraits { elicitation_form: true, ..traits };
        let got = serde_json::to_value(ask().permission("s1", &traits)).unwrap();
        assert_eq!(
            got["options"][2],
            json!({"optionId": "reject_with_feedback", "name": "Reject with feedback…", "kind": "reject_once"})
        );
    }

    #[test]
    fn permission_answers_approve_only_by_the_approve_option() {
        let pick = |id: &'static str| {
            let chosen = acp::SelectedPermissionOutcome::new(id);
            from_permission(Some(&acp::RequestPermissionOutcome::Selected(chosen)))
        };
        assert_eq!(pick("approve"), Verdict::Reply(approved()));
        assert_eq!(pick("reject"), Verdict::Reply(declined()));
        assert_eq!(pick("reject_with_feedback"), Verdict::AskFeedback);
        assert_eq!(pick("other"), Verdict::Reply(declined()));
        assert_eq!(
            from_permission(Some(&acp::RequestPermissionOutcome::Cancelled)),
            Verdict::Reply(cancelled())
        );
        assert_eq!(from_permission(None), Verdict::Reply(cancelled()));
    }

    #[test]
    fn the_feedback_form_can_never_approve() {
        for (answer, want) in [
            (
                json!({"action": "accept", "content": {"feedback": "approve"}}),
                json!({"action": "accept", "content": {"answer_0": "Feedback: approve"}}),
            ),
            (json!({"action": "accept", "content": {"approval": "approve"}}), declined()),
            (json!({"action": "accept", "content": {"feedback": ""}}), declined()),
            (json!({"action": "cancel"}), declined()),
        ] {
            assert_eq!(from_feedback(Some(&action(answer.clone()))), want, "{answer}");
        }
        assert_eq!(from_feedback(None), declined());
    }
}
