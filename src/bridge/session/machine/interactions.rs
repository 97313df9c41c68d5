//! PURE. What the engine asks the user: tool permissions, plans, questions. One dialog and exactly
//! one outcome per request, however often it is announced; fails closed when the client is gone,
//! answers nonsense, lets the deadline pass or cancels.

use std::collections::{HashMap, HashSet, VecDeque};

use agent_client_protocol::Error as AcpError;
use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

use super::{ClientAnswer, Cont, Effect, Machine, Token};
use crate::approvals;
use crate::bridge::engine::event::{EngineRequest, InteractionMirror, ToolUpdated, WireId};
use crate::bridge::translate::permission::{self, PermissionAsk};
use crate::bridge::translate::plan_approval::{self, PlanAsk, Verdict};
use crate::bridge::translate::question::{self, Fallback, QuestionAsk, Step};

/// Outcomes remembered for late announcements.
const REMEMBERED: usize = 64;
/// Protocol ids remembered for one open question; the engine announces it about once a second.
const IDS_MAX: usize = 4096;
/// Subagent sessions whose questions are routed here.
const CHILDREN_MAX: usize = 256;

/// What is being asked.
#[derive(Debug)]
enum Dialog {
    Permission(PermissionAsk),
    Plan {
        ask: PlanAsk,
        step: PlanStep,
    },
    /// As a form, or one button dialog after the other.
    Question {
        ask: Box<QuestionAsk>,
        buttons: Option<Box<Fallback>>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlanStep {
    Form,
    Buttons,
    Feedback,
}

/// One open request.
#[derive(Debug)]
struct Ask {
    ids: VecDeque<WireId>,
    dialog: Dialog,
    shown: Option<Token>,
    deadline: Option<Token>,
    tool_call: Option<String>,
}

/// The open and the lately settled requests.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    open: HashMap<String, Ask>,
    settled: VecDeque<(String, Value)>,
    children: HashSet<String>,
}

impl Asks {
    pub(crate) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }
}

impl Dialog {
    /// The outcome when nobody decided.
    fn refusal(&self) -> Value {
        match self {
            Self::Permission(_) => permission::denied(),
            Self::Plan { .. } | Self::Question { .. } => plan_approval::cancelled(),
        }
    }
}

impl Machine {
    pub(crate) fn on_engine_request(&mut self, request: &EngineRequest) {
        let permission = match request.method.as_str() {
            "interaction/requestPermission" => true,
            "interaction/requestUserInput" => false,
            other => {
                let message = format!("Method not found: {other}");
                return self.emit(Effect::Refuse { id: request.id.clone(), code: -32601, message });
            }
        };
        let key = key_of(request);
        if let Some((_, result)) = self.asks.settled.iter().find(|(k, _)| *k == key) {
            let result = result.clone();
            return self.emit(Effect::Answer { id: request.id.clone(), result });
        }
        if let Some(ask) = self.asks.open.get_mut(&key) {
            if ask.ids.len() >= IDS_MAX {
                ask.ids.pop_front();
            }
            ask.ids.push_back(request.id.clone());
            return;
        }
        let dialog = if permission {
            Dialog::Permission(permission::to_acp(request, &self.target))
        } else if plan_approval::is_plan_approval(request) {
            let step = if self.seed.traits.plan_form { PlanStep::Form } else { PlanStep::Buttons };
            Dialog::Plan { ask: plan_approval::to_acp(request), step }
        } else {
            let Some(ask) = question::to_acp(request) else {
                let result = question::declined();
                return self.emit(Effect::Answer { id: request.id.clone(), result });
            };
            let buttons = (!self.seed.traits.elicitation_form).then(|| Box::new(ask.fallback()));
            Dialog::Question { ask: Box::new(ask), buttons }
        };
        let tool_call = request.params.get("toolCallId").and_then(Value::as_str);
        let ask = Ask {
            ids: VecDeque::from([request.id.clone()]),
            dialog,
            shown: None,
            deadline: None,
            tool_call: tool_call.map(str::to_owned),
        };
        self.asks.open.insert(key.clone(), ask);
        let stopping = self.turn.as_ref().is_some_and(super::Turn::is_cancelled);
        if stopping || self.ended {
            return self.refuse_ask(&key);
        }
        if let Some(after) = self.seed.ask_timeout {
            let token = self.timer(after, Cont::AskTimeout { request: key.clone() });
            if let Some(ask) = self.asks.open.get_mut(&key) {
                ask.deadline = Some(token);
            }
        }
        if permission && self.seed.external_approvals {
            return self.ask_externally(&key, request);
        }
        self.show_ask(&key);
    }

    fn ask_externally(&mut self, key: &str, request: &EngineRequest) {
        let token = self.token(Cont::Ask { request: key.to_owned() });
        self.emit(Effect::AskExternally { token, payload: request.params.clone() });
        if let Some(ask) = self.asks.open.get_mut(key) {
            ask.shown = Some(token);
        }
    }

    /// Someone outside decided on a permission; `None` leaves the decision to the client's dialog.
    pub(crate) fn on_external(&mut self, token: Token, verdict: Option<approvals::Verdict>) {
        let Some(Cont::Ask { request: key }) = self.pending.remove(&token) else { return };
        match verdict {
            Some(approvals::Verdict::Allow) => self.settle(&key, json!({"decision": "allow"})),
            Some(approvals::Verdict::Deny(reason)) => {
                self.tell_denied(&key, &reason);
                self.settle(&key, permission::denied_because(&reason));
            }
            None => self.show_ask(&key),
        }
    }

    /// Tells the client, which was not asked, that a tool was denied, and why.
    fn tell_denied(&mut self, key: &str, reason: &str) {
        let Some(mut ask) = self.asks.open.remove(key) else { return };
        if let Dialog::Permission(dialog) = &mut ask.dialog {
            self.translate(|t, out| t.ensure_card(dialog.card(), out));
            self.update(dialog.denied_update(reason));
        }
        self.asks.open.insert(key.to_owned(), ask);
    }

    /// Shows the request's dialog, or its next one; the card it is about comes first.
    fn show_ask(&mut self, key: &str) {
        let Some(mut ask) = self.asks.open.remove(key) else { return };
        let token = self.token(Cont::Ask { request: key.to_owned() });
        let session = acp::SessionId::new(self.seed.acp_id.clone());
        match &mut ask.dialog {
            Dialog::Permission(dialog) => {
                self.translate(|t, out| t.ensure_card(dialog.card(), out));
                let request = Box::new(dialog.request(session));
                self.emit(Effect::AskPermission { token, request });
            }
            Dialog::Plan { ask: dialog, step } => {
                if *step != PlanStep::Feedback {
                    self.translate(|t, out| t.ensure_card(dialog.card(), out));
                }
                match step {
                    PlanStep::Form => {
                        let request = Box::new(dialog.form(session));
                        self.emit(Effect::AskForm { token, request });
                    }
                    PlanStep::Feedback => {
                        let request = Box::new(dialog.feedback_form(session));
                        self.emit(Effect::AskForm { token, request });
                    }
                    PlanStep::Buttons => {
                        let request = Box::new(dialog.permission(session, &self.seed.traits));
                        self.emit(Effect::AskPermission { token, request });
                    }
                }
            }
            Dialog::Question { ask: dialog, buttons } => {
                self.translate(|t, out| t.ensure_card(dialog.card(), out));
                match buttons.as_mut().map(|b| b.step(session.clone())) {
                    None => {
                        let request = Box::new(dialog.form(session));
                        self.emit(Effect::AskForm { token, request });
                    }
                    Some(Step::Ask(request)) => self.emit(Effect::AskPermission { token, request }),
                    Some(Step::Done(result)) => {
                        self.forget(token);
                        self.asks.open.insert(key.to_owned(), ask);
                        return self.settle(key, result);
                    }
                }
            }
        }
        ask.shown = Some(token);
        self.asks.open.insert(key.to_owned(), ask);
    }

    pub(crate) fn on_answer(&mut self, token: Token, answer: &Result<ClientAnswer, AcpError>) {
        let key = match self.pending.remove(&token) {
            Some(Cont::Ask { request }) => request,
            Some(Cont::Pick) => return self.on_picked(answer),
            _ => return,
        };
        let Some(ask) = self.asks.open.get_mut(&key) else { return };
        ask.shown = None;
        let outcome = match answer {
            Ok(ClientAnswer::Permission(response)) => Some(&response.outcome),
            _ => None,
        };
        let action = match answer {
            Ok(ClientAnswer::Form(response)) => Some(&response.action),
            _ => None,
        };
        let result = match &mut ask.dialog {
            Dialog::Permission(dialog) => Some(dialog.answer(outcome)),
            Dialog::Plan { step, .. } => match step {
                // A client that declared forms and cannot show this one gets buttons.
                PlanStep::Form if answer.is_err() => {
                    *step = PlanStep::Buttons;
                    None
                }
                PlanStep::Form => Some(plan_approval::from_form(action)),
                PlanStep::Feedback => Some(plan_approval::from_feedback(action)),
                PlanStep::Buttons => match plan_approval::from_permission(outcome) {
                    Verdict::Reply(result) => Some(result),
                    Verdict::AskFeedback => {
                        *step = PlanStep::Feedback;
                        None
                    }
                },
            },
            Dialog::Question { buttons: Some(buttons), .. } => buttons.answer(outcome),
            Dialog::Question { ask, buttons } if answer.is_err() => {
                *buttons = Some(Box::new(ask.fallback()));
                None
            }
            Dialog::Question { ask, .. } => Some(ask.from_form(action)),
        };
        match result {
            Some(result) => self.settle(&key, result),
            None => self.show_ask(&key),
        }
    }

    /// The one outcome of a request: to every id it was announced under.
    fn settle(&mut self, key: &str, result: Value) {
        let Some(mut ask) = self.asks.open.remove(key) else { return };
        if let Some(token) = ask.shown.take() {
            self.forget(token);
            self.emit(Effect::CancelAsk(token));
        }
        self.cancel_timer(&mut ask.deadline);
        let approved = matches!(ask.dialog, Dialog::Plan { .. })
            && result.get("action").and_then(Value::as_str) == Some("accept");
        for id in ask.ids {
            self.emit(Effect::Answer { id, result: result.clone() });
        }
        let is_permission = matches!(ask.dialog, Dialog::Permission(_));
        self.tell_ask_settled(is_permission, ask.tool_call.as_deref());
        if self.asks.settled.len() >= REMEMBERED {
            self.asks.settled.pop_front();
        }
        self.asks.settled.push_back((key.to_owned(), result));
        if let Some(turn) = self.turn.as_mut() {
            turn.last_event = self.now.ms;
        }
        if approved {
            self.plan_was_decided();
        }
    }

    fn refuse_ask(&mut self, key: &str) {
        if let Some(refusal) = self.asks.open.get(key).map(|ask| ask.dialog.refusal()) {
            self.settle(key, refusal);
        }
    }

    pub(crate) fn ask_timed_out(&mut self, key: &str) {
        if let Some(ask) = self.asks.open.get_mut(key) {
            ask.deadline = None;
        }
        self.refuse_ask(key);
    }

    /// A cancel answers everything that is open, at once.
    pub(crate) fn settle_turn_asks(&mut self) {
        let mut keys: Vec<String> = self.asks.open.keys().cloned().collect();
        keys.sort();
        for key in keys {
            self.refuse_ask(&key);
        }
    }

    /// The engine that asked is gone: take the dialogs back, there is nobody to answer.
    pub(crate) fn drop_asks_of_dead_engine(&mut self) {
        for (_, mut ask) in std::mem::take(&mut self.asks.open) {
            if let Some(token) = ask.shown.take() {
                self.forget(token);
                self.emit(Effect::CancelAsk(token));
            }
            self.cancel_timer(&mut ask.deadline);
        }
        self.asks.settled.clear();
        self.asks.children.clear();
    }

    /// A mirror of an interaction. Resolved while our dialog is open: another client answered, so
    /// the dialog goes; the late refusal has no effect on a settled request and leaves none open.
    pub(crate) fn on_mirror(&mut self, mirror: &InteractionMirror) {
        if !mirror.resolved {
            return;
        }
        let by_id =
            mirror.request_id.as_ref().filter(|id| self.asks.open.contains_key(*id)).cloned();
        if let Some(key) = by_id {
            self.refuse_ask(&key);
        }
    }

    /// Questions of a subagent's session come here too.
    pub(crate) fn note_child(&mut self, tool: &ToolUpdated) {
        let Some(child) = tool.child_session_id.as_ref() else { return };
        if self.asks.children.len() < CHILDREN_MAX && self.asks.children.insert(child.clone()) {
            self.emit(Effect::Attach(child.clone()));
        }
    }
}

/// What stays the same over re-announcements.
fn key_of(request: &EngineRequest) -> String {
    let tool_call = request.params.get("toolCallId").and_then(Value::as_str);
    match (&request.request_id, tool_call) {
        (Some(id), _) => id.clone(),
        (None, Some(id)) => format!("{}#{id}", request.method),
        (None, None) => format!("{}#{}", request.method, request.id),
    }
}
