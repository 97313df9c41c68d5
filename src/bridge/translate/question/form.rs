//! PURE. Questions as one elicitation form (fields `q_<i>` and `q_<i>_other`) and its answers.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema as acp;

use super::{Format, Question, QuestionAsk, SKIP};

type Content = BTreeMap<String, acp::ElicitationContentValue>;

pub(super) fn request(ask: &QuestionAsk, session: acp::SessionId) -> acp::CreateElicitationRequest {
    let mut schema = acp::ElicitationSchema::new();
    let mut required = Vec::new();
    for question in &ask.questions {
        schema = schema.property(question.field.clone(), field(ask, question), false);
        if question.required {
            required.push(question.field.clone());
        }
        if offers_other(ask, question) {
            let title =
                if question.multi { "Something else (added)" } else { "Something else (instead)" };
            let other = acp::StringPropertySchema::new().title(title.to_owned());
            schema = schema.property(format!("{}_other", question.field), other, false);
        }
    }
    schema.required = Some(required);
    let scope = acp::ElicitationSessionScope::new(session)
        .tool_call_id(acp::ToolCallId::new(ask.tool_call_id.clone()));
    acp::CreateElicitationRequest::new(
        acp::ElicitationFormMode::new(scope, schema),
        ask.message.clone(),
    )
}

/// An MCP server's list is closed; a question without options is free text already.
fn offers_other(ask: &QuestionAsk, question: &Question) -> bool {
    !ask.is_mcp && !question.options.is_empty()
}

fn field(ask: &QuestionAsk, question: &Question) -> acp::ElicitationPropertySchema {
    let mut options: Vec<acp::EnumOption> = question
        .options
        .iter()
        .map(|o| {
            acp::EnumOption::new(o.id.clone(), o.label.clone()).description(o.description.clone())
        })
        .collect();
    let title = question.label.clone();
    let header = question.header.clone();
    if question.multi && !options.is_empty() {
        return acp::MultiSelectPropertySchema::titled(options)
            .title(title)
            .description(header)
            .into();
    }
    if options.is_empty() {
        return match question.format {
            Format::Text => {
                acp::StringPropertySchema::new().title(title).description(header).into()
            }
            Format::Number => {
                acp::NumberPropertySchema::new().title(title).description(header).into()
            }
            Format::Integer => {
                acp::IntegerPropertySchema::new().title(title).description(header).into()
            }
        };
    }
    if !(ask.is_mcp && question.required) {
        options.push(acp::EnumOption::new(SKIP, "Skip this question"));
    }
    acp::StringPropertySchema::new().title(title).description(header).one_of(options).into()
}

/// The checked answer of one question; `None` leaves it open.
pub(super) fn answer(ask: &QuestionAsk, question: &Question, content: &Content) -> Option<String> {
    let given = strings(content.get(&question.field));
    if question.options.is_empty() {
        return question.free(given.first()?);
    }
    let other = offers_other(ask, question)
        .then(|| strings(content.get(&format!("{}_other", question.field))))
        .and_then(|texts| texts.into_iter().next())
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty());
    let picked = given
        .iter()
        .filter(|g| g.as_str() != SKIP)
        .filter_map(|g| question.find(g))
        .map(|choice| choice.answer.clone());
    if !question.multi {
        return other.or_else(|| picked.into_iter().next());
    }
    let mut all: Vec<String> = Vec::new();
    for answer in picked.chain(other) {
        if !all.contains(&answer) {
            all.push(answer);
        }
    }
    (!all.is_empty()).then(|| all.join(", "))
}

/// Any answer value as strings: clients send one string where a list is meant and the reverse.
fn strings(value: Option<&acp::ElicitationContentValue>) -> Vec<String> {
    match value {
        Some(acp::ElicitationContentValue::String(text)) => vec![text.clone()],
        Some(acp::ElicitationContentValue::Integer(n)) => vec![n.to_string()],
        Some(acp::ElicitationContentValue::Number(n)) => vec![n.to_string()],
        Some(acp::ElicitationContentValue::Boolean(b)) => vec![b.to_string()],
        Some(acp::ElicitationContentValue::StringArray(list)) => list.clone(),
        _ => Vec::new(),
    }
}
