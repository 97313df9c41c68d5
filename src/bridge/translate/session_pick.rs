//! PURE. Choosing another session to go on with (`/resume`, bridge behaviour 7.1): a form with the
//! one field `session` for clients that have forms, else a permission request with a button for each
//! session. Nothing chosen, in whatever way, is `None`. Called by the session machine.

use agent_client_protocol::v1::schema as acp;

/// The card that the buttons hang on.
const CARD: &str = "resume_pick";
const TITLE: &str = "Go on with which session?";
/// The field of the form.
const FIELD: &str = "session";
/// The button that chooses none.
const NONE: &str = "cancel";

/// One session that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The id that clients know it by.
    pub id: String,
    /// Its title and its age.
    pub label: String,
}

/// The choices of these sessions: id, title and when they last changed (ms since 1970). Those that
/// look alike are told apart by the beginning of their ids.
pub fn choices<'a>(
    sessions: impl Iterator<Item = (&'a str, Option<&'a str>, u64)>,
    now_ms: u64,
) -> Vec<Choice> {
    let mut all: Vec<Choice> = sessions
        .map(|(id, title, at)| Choice { id: id.to_owned(), label: label(title, at, now_ms) })
        .collect();
    let labels: Vec<String> = all.iter().map(|choice| choice.label.clone()).collect();
    for choice in &mut all {
        if labels.iter().filter(|label| **label == choice.label).count() > 1 {
            let start: String = choice.id.chars().take(13).collect();
            choice.label = format!("{} · {start}", choice.label);
        }
    }
    all
}

/// A title with its age.
pub fn label(title: Option<&str>, updated_at: u64, now_ms: u64) -> String {
    let minutes = now_ms.saturating_sub(updated_at) / 60_000;
    let age = match minutes {
        0 => "just now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..1_440 => format!("{} h ago", minutes / 60),
        _ => format!("{} d ago", minutes / 1_440),
    };
    format!("{} · {age}", title.unwrap_or("Untitled"))
}

/// The form.
pub fn form(
    session: impl Into<acp::SessionId>,
    choices: &[Choice],
) -> acp::CreateElicitationRequest {
    let options = choices.iter().map(|it| acp::EnumOption::new(it.id.clone(), it.label.clone()));
    let field = acp::StringPropertySchema::new()
        .title("Session".to_owned())
        .one_of(options.collect::<Vec<_>>());
    let schema = acp::ElicitationSchema::new().property(FIELD, field, true);
    let scope = acp::ElicitationSessionScope::new(session);
    acp::CreateElicitationRequest::new(acp::ElicitationFormMode::new(scope, schema), TITLE)
}

/// The card that has to be there before the buttons.
pub fn card() -> acp::SessionUpdate {
    let call = acp::ToolCall::new(CARD, TITLE)
        .kind(acp::ToolKind::Other)
        .status(acp::ToolCallStatus::Pending);
    acp::SessionUpdate::ToolCall(call)
}

/// The buttons.
pub fn permission(
    session: impl Into<acp::SessionId>,
    choices: &[Choice],
) -> acp::RequestPermissionRequest {
    let fields = acp::ToolCallUpdateFields::new()
        .title(TITLE.to_owned())
        .kind(acp::ToolKind::Other)
        .status(acp::ToolCallStatus::Pending);
    let call = acp::ToolCallUpdate::new(CARD, fields);
    let (go_on, leave) =
        (acp::PermissionOptionKind::AllowOnce, acp::PermissionOptionKind::RejectOnce);
    let mut options: Vec<acp::PermissionOption> = choices
        .iter()
        .map(|it| acp::PermissionOption::new(it.id.clone(), it.label.clone(), go_on))
        .collect();
    options.push(acp::PermissionOption::new(NONE, "None of these", leave));
    acp::RequestPermissionRequest::new(session, call, options)
}

/// The card's end: what was chosen, if anything.
pub fn settled(chosen: Option<&str>) -> acp::SessionUpdate {
    let (status, words) = match chosen {
        Some(label) => (acp::ToolCallStatus::Completed, label),
        None => (acp::ToolCallStatus::Failed, "No session was chosen."),
    };
    let text = acp::ContentBlock::Text(acp::TextContent::new(words));
    let fields = acp::ToolCallUpdateFields::new()
        .status(status)
        .content(vec![acp::ToolCallContent::Content(acp::Content::new(text))]);
    acp::SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new(CARD, fields))
}

/// Which session the form's answer chooses. Some clients send what was typed: the title counts, too.
pub fn from_form(action: Option<&acp::ElicitationAction>, choices: &[Choice]) -> Option<usize> {
    let Some(acp::ElicitationAction::Accept(accepted)) = action else { return None };
    let acp::ElicitationContentValue::String(text) = accepted.content.as_ref()?.get(FIELD)? else {
        return None;
    };
    let text = text.trim();
    choices
        .iter()
        .position(|it| it.id == text)
        .or_else(|| choices.iter().position(|it| it.label == text))
}

/// Which session the pressed button chooses.
pub fn from_permission(
    outcome: Option<&acp::RequestPermissionOutcome>,
    choices: &[Choice],
) -> Option<usize> {
    let Some(acp::RequestPermissionOutcome::Selected(chosen)) = outcome else { return None };
    choices.iter().position(|it| it.id == *chosen.option_id.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const HOUR: u64 = 3_600_000;

    fn two() -> Vec<Choice> {
        let sessions = [("sess_1", Some("Fix the parser"), 9 * HOUR), ("sess_2", None, 0)];
        choices(sessions.into_iter(), 10 * HOUR)
    }

    fn action(answer: Value) -> acp::ElicitationAction {
        serde_json::from_value::<acp::CreateElicitationResponse>(answer).unwrap().action
    }

    #[test]
    fn a_session_is_shown_by_its_title_and_its_age() {
        for (ago, words) in [
            (0, "just now"),
            (59_999, "just now"),
            (60_000, "1 min ago"),
            (59 * 60_000, "59 min ago"),
            (HOUR, "1 h ago"),
            (23 * HOUR, "23 h ago"),
            (24 * HOUR, "1 d ago"),
            (90 * 24 * HOUR, "90 d ago"),
        ] {
            assert_eq!(
                label(Some("T"), 1_000 * HOUR * 24 - ago, 1_000 * HOUR * 24),
                format!("T · {words}")
            );
        }
        // A clock that went back.
        assert_eq!(label(None, 9, 1), "Untitled · just now");
    }

    #[test]
    fn sessions_that_look_alike_are_told_apart() {
        let same = [
            ("sess_aaaa-1111-x", Some("T"), 0),
            ("sess_bbbb-2222-y", Some("T"), 0),
            ("c", Some("U"), 0),
        ];
        let labels: Vec<String> =
            choices(same.into_iter(), 0).into_iter().map(|it| it.label).collect();
        assert_eq!(
            labels,
            ["T · just now · sess_aaaa-111", "T · just now · sess_bbbb-222", "U · just now"]
        );
    }

    #[test]
    fn the_form_has_the_one_field_with_a_value_for_each_session() {
        let got = serde_json::to_value(form("s", &two())).unwrap();
        assert_eq!(
            got,
            json!({"mode": "form", "sessionId": "s", "message": TITLE, "requestedSchema": {"type": "object",
                "required": ["session"], "properties": {"session": {"type": "string", "title": "Session", "oneOf": [
                    {"const": "sess_1", "title": "Fix the parser · 1 h ago"},
                    {"const": "sess_2", "title": "Untitled · 10 h ago"}]}}}})
        );
    }

    #[test]
    fn the_buttons_are_the_sessions_and_one_for_none() {
        let got = serde_json::to_value(permission("s", &two())).unwrap();
        assert_eq!(got["toolCall"]["toolCallId"], "resume_pick");
        let kinds: Vec<(&str, &str)> = got["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it["optionId"].as_str().unwrap(), it["kind"].as_str().unwrap()))
            .collect();
        assert_eq!(
            kinds,
            [("sess_1", "allow_once"), ("sess_2", "allow_once"), ("cancel", "reject_once")]
        );
    }

    #[test]
    fn only_a_session_of_the_list_can_be_chosen() {
        let all = two();
        let chosen = |content: Value| {
            from_form(Some(&action(json!({"action": "accept", "content": content}))), &all)
        };
        assert_eq!(chosen(json!({"session": "sess_2"})), Some(1));
        assert_eq!(chosen(json!({"session": " Fix the parser · 1 h ago "})), Some(0));
        for nothing in [
            json!({"session": "sess_3"}),
            json!({"session": ["sess_1"]}),
            json!({"session": ""}),
            json!({}),
        ] {
            assert_eq!(chosen(nothing.clone()), None, "{nothing}");
        }
        for refusal in
            [json!({"action": "decline"}), json!({"action": "cancel"}), json!({"action": "accept"})]
        {
            assert_eq!(from_form(Some(&action(refusal.clone())), &all), None, "{refusal}");
        }
        assert_eq!(from_form(None, &all), None);
        let pressed = |id: &str| {
            let chosen = acp::SelectedPermissionOutcome::new(id.to_owned());
            from_permission(Some(&acp::RequestPermissionOutcome::Selected(chosen)), &all)
        };
        assert_eq!(pressed("sess_1"), Some(0));
        assert_eq!((pressed("cancel"), pressed("sess_9")), (None, None));
        assert_eq!(from_permission(Some(&acp::RequestPermissionOutcome::Cancelled), &all), None);
        assert_eq!(from_permission(None, &all), None);
    }

    #[test]
    fn the_card_ends_either_way() {
        let end = |chosen| serde_json::to_value(settled(chosen)).unwrap()["status"].clone();
        assert_eq!((end(Some("x")), end(None)), (json!("completed"), json!("failed")));
        assert_eq!(serde_json::to_value(card()).unwrap()["toolCallId"], "resume_pick");
    }
}
