//! PURE. Questions as permission requests, one at a time, for clients without forms. Option ids
//! are the choices' own (their labels, made unique; bridge behaviour 5.4) and are looked up whole,
//! so that no label can be mistaken for an answer of another kind.

use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

use super::super::{output, tool};
use super::{Choice, Question, QuestionAsk, SKIP, cancelled, declined};

const YES: &str = "yes";
const NO: &str = "no";

/// The id of a button about one choice of several.
fn either(choice: &Choice, which: &str) -> String {
    format!("{}:{which}", choice.id)
}

/// What the session has to do next.
#[derive(Debug, Clone)]
pub enum Step {
    /// Show this dialog and hand its outcome to [`Fallback::answer`].
    Ask(Box<acp::RequestPermissionRequest>),
    /// Reply this to the engine.
    Done(Value),
}

/// The state of the dialogs.
#[derive(Debug, Clone)]
pub struct Fallback {
    ask: QuestionAsk,
    at: usize,
    /// Which option of a multi-select question is asked about.
    option: usize,
    picked: Vec<String>,
    answers: Vec<Option<String>>,
}

impl Fallback {
    pub(super) fn new(ask: QuestionAsk) -> Self {
        Self { ask, at: 0, option: 0, picked: Vec::new(), answers: Vec::new() }
    }

    /// The dialog to show now, or the reply when all questions are through. Free-text questions
    /// cannot be asked this way and stay open; when there are no others the request is declined.
    pub fn step(&mut self, session: impl Into<acp::SessionId>) -> Step {
        while let Some(question) = self.ask.questions.get(self.at) {
            if question.options.is_empty() {
                self.answers.push(None);
                self.at += 1;
                continue;
            }
            return Step::Ask(Box::new(self.dialog(question, session.into())));
        }
        if self.ask.questions.is_empty() {
            return Step::Ask(Box::new(self.confirmation(session.into())));
        }
        if self.ask.questions.iter().all(|q| q.options.is_empty()) {
            return Step::Done(declined());
        }
        Step::Done(self.ask.reply(std::mem::take(&mut self.answers)))
    }

    /// Takes the outcome of the dialog; a reply ends the matter, else [`Self::step`] goes on.
    /// A cancelled or lost dialog cancels the whole request: no further dialogs.
    pub fn answer(&mut self, outcome: Option<&acp::RequestPermissionOutcome>) -> Option<Value> {
        let Some(acp::RequestPermissionOutcome::Selected(chosen)) = outcome else {
            return Some(cancelled());
        };
        let id: &str = &chosen.option_id.0;
        let Some(question) = self.ask.questions.get(self.at) else {
            return Some(match (self.ask.questions.is_empty(), id) {
                (true, YES) => self.ask.reply(Vec::new()),
                (true, NO) => declined(),
                _ => cancelled(),
            });
        };
        if !question.multi {
            let picked = question.options.iter().find(|choice| choice.id == id);
            let answer = picked.map(|choice| choice.answer.clone());
            self.next_question(answer);
            return None;
        }
        if let Some(choice) = question.options.get(self.option).filter(|it| id == either(it, YES)) {
            self.picked.push(choice.answer.clone());
        }
        self.option += 1;
        if self.option >= question.options.len() {
            let picked = std::mem::take(&mut self.picked);
            self.next_question((!picked.is_empty()).then(|| picked.join(", ")));
        }
        None
    }

    fn next_question(&mut self, answer: Option<String>) {
        self.answers.push(answer);
        self.at += 1;
        self.option = 0;
    }

    /// A request without a question is a yes or a no to what it says.
    fn confirmation(&self, session: acp::SessionId) -> acp::RequestPermissionRequest {
        let fields = acp::ToolCallUpdateFields::new()
            .title(self.ask.message.clone())
            .status(acp::ToolCallStatus::Pending);
        let call = acp::ToolCallUpdate::new(self.ask.tool_call_id.clone(), fields)
            .meta(tool::tool_meta(Some(&self.ask.tool_name), None));
        let allow = acp::PermissionOptionKind::AllowOnce;
        let reject = acp::PermissionOptionKind::RejectOnce;
        let options = vec![
            acp::PermissionOption::new(YES, "Yes", allow),
            acp::PermissionOption::new(NO, "No", reject),
        ];
        acp::RequestPermissionRequest::new(session, call, options)
    }

    fn dialog(
        &self,
        question: &Question,
        session: acp::SessionId,
    ) -> acp::RequestPermissionRequest {
        let allow = acp::PermissionOptionKind::AllowOnce;
        let reject = acp::PermissionOptionKind::RejectOnce;
        let mut title = question.text.clone();
        let mut lines = Vec::new();
        let mut options = Vec::new();
        let asked = question.options.get(self.option).filter(|_| question.multi);
        if let Some(choice) = asked {
            title = format!("{title} — {}?", choice.label);
            lines.extend(choice.description.clone());
            let (yes, no) = (either(choice, YES), either(choice, NO));
            options.push(acp::PermissionOption::new(yes, format!("Yes: {}", choice.label), allow));
            options.push(acp::PermissionOption::new(no, "No", reject));
        } else {
            for choice in &question.options {
                let id = choice.id.clone();
                options.push(acp::PermissionOption::new(id, choice.label.clone(), allow));
                let described = choice.description.as_ref();
                lines.extend(described.map(|words| format!("**{}**: {words}", choice.label)));
            }
            options.push(acp::PermissionOption::new(SKIP, "Skip this question", reject));
        }
        let content: Vec<_> = output::plain(&lines.join("\n\n")).into_iter().collect();
        let mut fields =
            acp::ToolCallUpdateFields::new().title(title).status(acp::ToolCallStatus::Pending);
        if !content.is_empty() {
            fields = fields.content(content);
        }
        // A client that answers permissions by rules must know that this is none.
        let mut meta = tool::tool_meta(Some(&self.ask.tool_name), None);
        meta.insert("zcode".into(), json!({"interaction": "question"}));
        let call = acp::ToolCallUpdate::new(self.ask.tool_call_id.clone(), fields).meta(meta);
        acp::RequestPermissionRequest::new(session, call, options)
    }
}
