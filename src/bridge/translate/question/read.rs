//! PURE. The engine's question lists, old and new, and an MCP server's schema.

use std::collections::HashSet;

use serde_json::Value;

use super::{Choice, Format, Question, QuestionAsk, SKIP};
use crate::bridge::engine::event::EngineRequest;

/// Clients sort fields by name, where `q_10` comes before `q_2`: above this many questions each is
/// shown with its number.
const NUMBERED_ABOVE: usize = 10;

pub(super) fn ask(request: &EngineRequest) -> Option<QuestionAsk> {
    let at = |pointer: &str| request.params.pointer(pointer);
    let text = |pointer: &str| at(pointer).and_then(Value::as_str).filter(|t| !t.is_empty());
    let schema = at("/schema/requestedSchema");
    let is_mcp = text("/schema/interaction") == Some("mcp_elicitation");
    let list = ["/questions", "/input/questions"]
        .iter()
        .find_map(|p| at(p).and_then(Value::as_array).filter(|l| !l.is_empty()));
    let mut questions: Vec<Question> = match (list, schema) {
        (Some(list), _) => list
            .iter()
            .enumerate()
            .filter_map(|(index, q)| question(index, q, is_mcp, schema))
            .collect(),
        (None, Some(schema)) => from_schema(schema),
        (None, None) => Vec::new(),
    };
    let said = text("/input/message").or_else(|| text("/prompt"));
    // A server that wants no data wants a yes or a no; without a word there is nothing to say yes to.
    let confirms = is_mcp && list.is_none() && questions.is_empty() && said.is_some();
    if questions.is_empty() && !confirms {
        return None;
    }
    let many = questions.len() > NUMBERED_ABOVE;
    for question in &mut questions {
        question.field = format!("q_{}", question.index);
        if many {
            question.label = format!("{}. {}", question.index + 1, question.text);
        }
    }
    // A form that repeats its only question above it shows it twice.
    let said = said.filter(|said| questions.iter().all(|q| q.text != *said));
    let server = text("/schema/serverName").filter(|_| is_mcp);
    let id = text("/toolCallId").or(request.request_id.as_deref());
    let name = if is_mcp { "McpElicitation" } else { "AskUserQuestion" };
    Some(QuestionAsk {
        tool_call_id: id.unwrap_or("question").to_owned(),
        tool_name: text("/toolName").unwrap_or(name).to_owned(),
        message: message(server, said, questions.len()),
        input: at("/input").cloned().unwrap_or(Value::Null),
        is_mcp,
        questions,
    })
}

/// What stands above the form. Who asks is always said: the words are the server's own and could
/// name anybody.
fn message(server: Option<&str>, said: Option<&str>, count: usize) -> String {
    match (server, said) {
        (Some(server), Some(said)) => format!("{server} asks: {said}"),
        (Some(server), None) => format!("{server} asks for your input."),
        (None, Some(said)) => said.to_owned(),
        (None, None) if count == 1 => "The agent has a question.".to_owned(),
        (None, None) => format!("The agent has {count} questions."),
    }
}

fn question(index: usize, from: &Value, is_mcp: bool, schema: Option<&Value>) -> Option<Question> {
    let text = |key: &str| from.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
    let question = text("question")?;
    let header = text("header");
    let list = from.get("options").and_then(Value::as_array);
    let options = choices(list.map(Vec::as_slice).unwrap_or_default(), is_mcp);
    // A list whose every entry is unusable is not a free question.
    if options.is_empty() && list.is_some_and(|l| !l.is_empty()) {
        return None;
    }
    let property = |name: &str| schema?.pointer("/properties")?.get(name);
    let kind = header.and_then(property).and_then(|p| p.get("type")?.as_str());
    let required = schema
        .and_then(|s| s.get("required")?.as_array())
        .is_some_and(|names| header.is_some_and(|h| names.iter().any(|n| n.as_str() == Some(h))));
    Some(Question {
        index,
        field: String::new(),
        text: question.to_owned(),
        label: question.to_owned(),
        header: header.map(str::to_owned),
        options,
        multi: from.get("multiSelect") == Some(&Value::Bool(true)) || kind == Some("array"),
        required,
        format: format(kind),
    })
}

/// The properties of a schema as questions, when the engine sent no list.
fn from_schema(schema: &Value) -> Vec<Question> {
    let required: HashSet<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(index, (name, property))| {
            let text = |key: &str| property.get(key).and_then(Value::as_str);
            let kind = text("type");
            let options = match (kind, schema_options(property)) {
                (Some("boolean"), None) => choices(&["true".into(), "false".into()], true),
                (_, Some(list)) => choices(&list, true),
                _ => Vec::new(),
            };
            let title = text("title").unwrap_or(name);
            Question {
                index,
                field: String::new(),
                text: title.to_owned(),
                label: title.to_owned(),
                header: text("description").map(str::to_owned),
                options,
                multi: kind == Some("array"),
                required: required.contains(name.as_str()),
                format: format(kind),
            }
        })
        .collect()
}

/// `enum`, `oneOf` or `anyOf`, of the property or of its items, as `{label, value}`.
fn schema_options(property: &Value) -> Option<Vec<Value>> {
    let from = property.get("items").unwrap_or(property);
    if let Some(values) = from.get("enum").and_then(Value::as_array) {
        let names = from.get("enumNames").and_then(Value::as_array);
        let label = |at: usize| names.and_then(|n| n.get(at)).cloned();
        return Some(
            values
                .iter()
                .enumerate()
                .map(|(at, v)| serde_json::json!({"value": v, "label": label(at).unwrap_or_else(|| v.clone())}))
                .collect(),
        );
    }
    let titled = from.get("oneOf").or_else(|| from.get("anyOf"))?.as_array()?;
    let option = |o: &Value| serde_json::json!({"value": o.get("const"), "label": o.get("title").or_else(|| o.get("const"))});
    Some(titled.iter().map(option).collect())
}

fn format(kind: Option<&str>) -> Format {
    match kind {
        Some("number") => Format::Number,
        Some("integer") => Format::Integer,
        _ => Format::Text,
    }
}

/// Options are objects or, on some builds, plain strings. Ids are the labels, changed only
/// where two are the same or one is the word for "skip".
fn choices(list: &[Value], answer_is_value: bool) -> Vec<Choice> {
    let mut found: Vec<Choice> = Vec::new();
    for option in list {
        let text = |key: &str| scalar(option.get(key)?);
        let label = scalar(option).or_else(|| text("label")).or_else(|| text("value"));
        let Some(label) = label.filter(|l| !l.trim().is_empty()) else {
            continue;
        };
        let mut id = label.clone();
        while id == SKIP || found.iter().any(|f| f.id == id) {
            id = format!("option_{}_{label}", found.len());
        }
        let preview = text("preview").filter(|p| !p.is_empty());
        let description = match (text("description"), preview) {
            (Some(words), Some(preview)) => Some(format!("{words}\n\n{preview}")),
            (words, preview) => words.or(preview),
        };
        let value = text("value");
        let answer = value.clone().filter(|_| answer_is_value);
        found.push(Choice {
            answer: answer.unwrap_or_else(|| label.clone()),
            value,
            id,
            label,
            description,
        });
    }
    found
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(n) => Some(n.to_string()),
        Value::Bool(b) => Some(b.to_string()),
        _ => None,
    }
}
