//! PURE. `AskUserQuestion` and MCP elicitation (engine protocol section 5): as one form, or as one
//! permission request per question to clients without forms. Answers are checked against what was
//! asked before the engine hears them. Called by the session machine.

mod fallback;
mod form;
mod read;

use agent_client_protocol::v1::schema as acp;
use serde_json::{Map, Value, json};

use super::tool;
use crate::bridge::engine::event::EngineRequest;

pub use fallback::{Fallback, Step};

/// The choice that leaves a question open.
const SKIP: &str = "__skip__";

/// A request for the user's input, ready to be shown; keeps what is needed to answer it.
#[derive(Debug, Clone)]
pub struct QuestionAsk {
    tool_call_id: String,
    tool_name: String,
    message: String,
    input: Value,
    /// An MCP server asks: its lists are closed and its answers are values.
    is_mcp: bool,
    questions: Vec<Question>,
}

/// One question.
#[derive(Debug, Clone)]
struct Question {
    /// The position in the engine's list, which its answer is numbered by.
    index: usize,
    /// The name of the form field.
    field: String,
    text: String,
    /// What the form calls it.
    label: String,
    header: Option<String>,
    options: Vec<Choice>,
    multi: bool,
    required: bool,
    format: Format,
}

/// What a free answer has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Number,
    Integer,
}

/// One offered answer.
#[derive(Debug, Clone)]
struct Choice {
    /// Unique within its question, and never [`SKIP`].
    id: String,
    label: String,
    /// What the engine hears.
    answer: String,
    /// The engine's own name for it, which a client may send back.
    value: Option<String>,
    description: Option<String>,
}

/// Reads the request; `None` when it holds nothing that can be asked (answer [`declined`]).
pub fn to_acp(request: &EngineRequest) -> Option<QuestionAsk> {
    read::ask(request)
}

/// The reply for a user who does not want to answer.
pub fn declined() -> Value {
    json!({"action": "decline"})
}

/// The reply for a cancelled turn, a lost client or a failed dialog.
pub fn cancelled() -> Value {
    json!({"action": "cancel"})
}

impl QuestionAsk {
    /// The card that has to exist before the dialog names it.
    pub fn card(&self) -> tool::NewCard<'_> {
        tool::NewCard {
            id: &self.tool_call_id,
            name: Some(&self.tool_name),
            input: Some(&self.input),
            title: Some(&self.message),
            ..tool::NewCard::default()
        }
    }

    /// One form with every question.
    pub fn form(&self, session: impl Into<acp::SessionId>) -> acp::CreateElicitationRequest {
        form::request(self, session.into())
    }

    /// The engine's reply for the form's answer; `None` is a client that failed or is gone.
    pub fn from_form(&self, action: Option<&acp::ElicitationAction>) -> Value {
        match action {
            Some(acp::ElicitationAction::Accept(accepted)) => {
                let empty = std::collections::BTreeMap::new();
                let content = accepted.content.as_ref().unwrap_or(&empty);
                let answers = self.questions.iter().map(|q| form::answer(self, q, content));
                self.reply(answers.collect())
            }
            Some(acp::ElicitationAction::Decline) => declined(),
            _ => cancelled(),
        }
    }

    /// The permission requests for a client without forms.
    pub fn fallback(&self) -> Fallback {
        Fallback::new(self.clone())
    }

    /// The accept reply: by question text and by position. Questions left open have no entry; an
    /// MCP server's required question left open declines, because the server would refuse it.
    fn reply(&self, answers: Vec<Option<String>>) -> Value {
        let mut by_text = Map::new();
        let mut content = Map::new();
        for (question, answer) in self.questions.iter().zip(answers) {
            match answer {
                Some(answer) => {
                    content.insert(format!("answer_{}", question.index), json!(answer));
                    by_text.insert(question.text.clone(), json!(answer));
                }
                None if question.required => return declined(),
                None => {}
            }
        }
        content.insert("answers".into(), Value::Object(by_text));
        json!({"action": "accept", "content": content})
    }
}

impl Question {
    fn find(&self, given: &str) -> Option<&Choice> {
        let by = |wanted: fn(&Choice) -> Option<&str>| {
            self.options.iter().find(move |o| wanted(o) == Some(given))
        };
        by(|o| Some(&o.id))
            .or_else(|| by(|o| Some(&o.label)))
            .or_else(|| by(|o| o.value.as_deref()))
    }

    /// A free answer in the form the question wants; `None` when it is empty or not of that form.
    fn free(&self, given: &str) -> Option<String> {
        let given = given.trim();
        let fits = match self.format {
            Format::Text => !given.is_empty(),
            Format::Number => given.parse::<f64>().is_ok_and(f64::is_finite),
            Format::Integer => given.parse::<i64>().is_ok(),
        };
        fits.then(|| given.to_owned())
    }
}

#[cfg(test)]
mod tests;
