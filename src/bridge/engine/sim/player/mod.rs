//! PURE. Runs a script: a stack of steps that yields one timed [`Action`] after the other and waits
//! where the host has to answer. Knows nothing of channels, rows or messages.

mod calls;
mod stream;

use super::ids::Ids;
use super::script::{AskStep, PlanStep, Script, Step, Steps, SubagentStep, TodoStep, ToolStep};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use stream::Stream;

pub(super) use calls::{Call, Outcome, WriteFile, question};

/// Which kind of text is streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Text,
    Thought,
}

/// A subagent that actions belong to.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) session_id: String,
    pub(super) agent_id: String,
    pub(super) kind: String,
    pub(super) description: String,
    pub(super) prompt: String,
    /// The call in the parent that launched it.
    pub(super) parent_call: String,
    /// The subagent it was launched by, when that was one.
    pub(super) parent: Option<Arc<Self>>,
}

/// Work that goes on beside the turn.
#[derive(Debug)]
pub(super) struct TaskSpec {
    pub(super) task_id: String,
    pub(super) call: Arc<Call>,
    pub(super) child: Option<Arc<Child>>,
    pub(super) description: String,
    pub(super) command: Option<String>,
    pub(super) ends: String,
    pub(super) notification: Option<Steps>,
    pub(super) summary: String,
    pub(super) player: Player,
}

/// What the host is asked.
#[derive(Debug, Clone)]
pub(super) enum Question {
    Permission {
        call: Arc<Call>,
        reason: String,
        risk: Option<String>,
        elsewhere_after: Option<u64>,
    },
    Plan {
        call: Arc<Call>,
        plan: String,
    },
    Questions {
        call: Arc<Call>,
        step: Arc<AskStep>,
    },
}

/// What the host answered.
#[derive(Debug)]
pub(super) enum Answer {
    Allow { modified: Option<Value> },
    Deny { reason: String },
    Accept { content: Value },
    Decline,
    Cancel,
}

/// One thing that a turn does.
#[derive(Debug)]
pub(super) enum Action {
    Pause,
    RequestStart,
    RequestEnd,
    Open(Lane),
    Piece(Lane, String),
    Close(Lane),
    InputStart(Arc<Call>),
    InputPiece(Arc<Call>, String),
    InputEnd(Arc<Call>),
    Call(Arc<Call>),
    Scheduled(Arc<Call>),
    Started(Arc<Call>),
    Progress { call: Arc<Call>, stdout: String, stderr: String },
    Result { call: Arc<Call>, outcome: Box<Outcome> },
    Error { call: Arc<Call>, error: String },
    Batch(Vec<String>),
    Ask(Question),
    Todos(Vec<TodoStep>),
    PlanMode(bool),
    Fail(Value),
    ApiRetry { attempt: u64, step: super::script::RetryStep },
    Event { kind: String, payload: Value },
    Row { kind: String, fields: Value },
    RowsRemoved(usize),
    Notify(Value),
    Line(String),
    Request { method: String, params: Value },
    Fill(u64),
    Title(String),
    ChildStart(Arc<Child>),
    ChildEnd(Arc<Child>, String),
    Spawn(Box<TaskSpec>),
    Die(i32),
    SeqGap(u64),
    Evict,
    End(String),
}

/// An action, how long to wait before it, and the subagent it belongs to.
#[derive(Debug)]
pub(super) struct Beat {
    pub(super) wait: u64,
    pub(super) child: Option<Arc<Child>>,
    pub(super) action: Action,
}

/// What texts may refer to as `${name}`.
#[derive(Debug, Clone, Default)]
pub(super) struct Vars {
    pub(super) prompt: String,
    pub(super) cwd: String,
    pub(super) menu: String,
    /// The prompt's number.
    pub(super) n: Option<u64>,
    /// How often this script has run in this session, this run included.
    pub(super) attempt: u64,
    /// The prompt asks that files be written.
    pub(super) write_files: bool,
    pub(super) answer: String,
    pub(super) answers: String,
    pub(super) round: u64,
}

impl Vars {
    /// Fills in every `${name}`.
    fn fill(&self, text: &str) -> String {
        if !text.contains("${") {
            return text.to_owned();
        }
        let n = self.n.map_or_else(|| "12".to_owned(), |n| n.to_string());
        let round = self.round.to_string();
        [
            ("${prompt}", &self.prompt),
            ("${cwd}", &self.cwd),
            ("${menu}", &self.menu),
            ("${n}", &n),
            ("${i}", &round),
            ("${answer}", &self.answer),
            ("${answers}", &self.answers),
        ]
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|v| self.fill_value(v)).collect(),
            Value::Object(map) => {
                map.iter().map(|(k, v)| (k.clone(), self.fill_value(v))).collect()
            }
            other => other.clone(),
        }
    }
}

/// Steps that are being run.
#[derive(Debug)]
struct Frame {
    steps: Steps,
    at: usize,
    /// Runs left after this one, for `repeat`.
    again: u64,
    child: Option<Arc<Child>>,
    /// What comes when the steps are through, in the child's parent.
    after: VecDeque<Beat>,
}

/// How the turn goes on after the answer.
#[derive(Debug)]
enum Waiting {
    Permission { call: Arc<Call>, step: Box<ToolStep> },
    Plan { call: Arc<Call>, step: Box<PlanStep> },
    Questions { call: Arc<Call>, step: Arc<AskStep> },
}

/// A running script.
#[derive(Debug)]
pub(super) struct Player {
    frames: Vec<Frame>,
    pending: VecDeque<Beat>,
    stream: Option<Stream>,
    waiting: Option<Waiting>,
    request_open: bool,
    break_request: bool,
    vars: Vars,
}

impl Player {
    /// Starts a script.
    pub(super) fn new(script: &Script, vars: Vars) -> Self {
        Self::of_steps(Arc::clone(&script.steps), None, vars)
    }

    /// Starts steps, in a subagent or not.
    pub(super) fn of_steps(steps: Steps, child: Option<Arc<Child>>, vars: Vars) -> Self {
        let frame = Frame { steps, at: 0, again: 0, child, after: VecDeque::new() };
        Self {
            frames: vec![frame],
            pending: VecDeque::new(),
            stream: None,
            waiting: None,
            request_open: false,
            break_request: false,
            vars,
        }
    }

    /// Returns the next action; `None` at the end, or while an answer is awaited.
    pub(super) fn next(&mut self, ids: &mut Ids) -> Option<Beat> {
        loop {
            if self.break_request && self.stream.is_some() && self.pending.is_empty() {
                self.break_now();
            }
            if let Some(beat) = self.pending.pop_front() {
                return Some(beat);
            }
            if self.waiting.is_some() {
                return None;
            }
            if let Some(beat) = self.next_piece() {
                return Some(beat);
            }
            let step = self.next_step();
            match step {
                Some(step) => self.expand(&step, ids),
                None if self.pending.is_empty() => {
                    if self.frames.is_empty() && self.request_open {
                        self.end_request();
                    } else if self.frames.is_empty() {
                        return None;
                    }
                }
                None => {}
            }
        }
    }

    /// Whether the script waits for the host.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether a model request streams now.
    pub(super) fn is_streaming(&self) -> bool {
        self.request_open
    }

    /// Ends the running model request at the next piece of text, so that a guide can be taken in.
    pub(super) fn break_request(&mut self) {
        self.break_request = true;
    }

    /// Says something as soon as the request begins that is due next.
    /// To be called when that request's start was just returned.
    pub(super) fn inject(&mut self, text: String) {
        self.beat(30, Action::Open(Lane::Text));
        self.beat(30, Action::Piece(Lane::Text, text));
        self.beat(0, Action::Close(Lane::Text));
    }

    /// Goes on after the host's answer.
    pub(super) fn answer(&mut self, answer: &Answer) {
        match self.waiting.take() {
            Some(Waiting::Permission { call, step }) => self.after_permission(&call, &step, answer),
            Some(Waiting::Plan { call, step }) => self.after_plan(&call, &step, answer),
            Some(Waiting::Questions { call, step }) => self.after_questions(&call, &step, answer),
            None => {}
        }
    }

    fn child(&self) -> Option<Arc<Child>> {
        self.frames.last().and_then(|f| f.child.clone())
    }

    fn push(&mut self, steps: Steps, child: Option<Arc<Child>>) {
        self.frames.push(Frame { steps, at: 0, again: 0, child, after: VecDeque::new() });
    }

    fn beat(&mut self, wait: u64, action: Action) {
        let child = self.child();
        self.pending.push_back(Beat { wait, child, action });
    }

    fn begin_request(&mut self) {
        if !self.request_open {
            self.request_open = true;
            self.beat(180, Action::RequestStart);
        }
    }

    fn end_request(&mut self) {
        if std::mem::take(&mut self.request_open) {
            self.beat(20, Action::RequestEnd);
        }
    }

    /// Pops frames that are through and returns the next step.
    fn next_step(&mut self) -> Option<Step> {
        let frame = self.frames.last_mut()?;
        if let Some(step) = frame.steps.get(frame.at) {
            frame.at += 1;
            return Some(step.clone());
        }
        if frame.again > 0 {
            frame.again -= 1;
            frame.at = 0;
            self.vars.round += 1;
            return self.next_step();
        }
        if frame.child.is_some() && self.request_open {
            // A subagent's own request ends before its caller goes on.
            self.end_request();
        }
        if let Some(frame) = self.frames.pop() {
            self.pending.extend(frame.after);
        }
        None
    }

    fn expand(&mut self, step: &Step, ids: &mut Ids) {
        match step {
            Step::Think(text) => self.say(Lane::Thought, &text.joined()),
            Step::Say(text) => self.say(Lane::Text, &text.joined()),
            Step::Menu => self.say(Lane::Text, "${menu}"),
            Step::Flood { bytes } => self.flood(*bytes),
            Step::Wait(ms) => self.beat(*ms, Action::Pause),
            Step::Tool(tool) => self.tool(tool, ids),
            Step::Together(tools) => self.together(tools, ids),
            Step::Edit(edit) => self.edit(edit, ids),
            Step::Plan(plan) => self.plan(plan, ids),
            Step::Ask(ask) => self.ask(ask, ids),
            Step::Todos(todos) => self.todos(todos, ids),
            Step::Subagent(agent) => self.subagent(agent, ids),
            Step::Background(task) => self.background(task, ids),
            Step::Repeat { times, steps } if *times > 0 => {
                let child = self.child();
                self.vars.round = 1;
                self.push(Arc::clone(steps), child);
                if let Some(frame) = self.frames.last_mut() {
                    frame.again = times - 1;
                }
            }
            Step::Repeat { .. } => {}
            Step::Retry(retry) => {
                for attempt in 1..=retry.times {
                    self.begin_request();
                    self.beat(120, Action::ApiRetry { attempt, step: retry.clone() });
                    self.beat(retry.delay, Action::Pause);
                }
            }
            Step::FailFirst { times, error } => {
                if self.vars.attempt <= *times {
                    self.begin_request();
                    self.beat(150, Action::Fail(error.clone()));
                }
            }
            Step::Fail(error) => {
                self.begin_request();
                self.beat(150, Action::Fail(error.clone()));
            }
            plain => self.expand_plain(plain),
        }
    }

    /// Steps that are one action each.
    fn expand_plain(&mut self, step: &Step) {
        let action = match step {
            Step::Event { kind, payload } => {
                Action::Event { kind: kind.clone(), payload: self.vars.fill_value(payload) }
            }
            Step::Row { kind, fields } => {
                Action::Row { kind: kind.clone(), fields: self.vars.fill_value(fields) }
            }
            Step::RowsRemoved(count) => Action::RowsRemoved(*count),
            Step::Notify(message) => Action::Notify(self.vars.fill_value(message)),
            Step::Line(line) => Action::Line(line.clone()),
            Step::Request { method, params } => {
                Action::Request { method: method.clone(), params: self.vars.fill_value(params) }
            }
            Step::Fill(percent) => Action::Fill(*percent),
            Step::Title(title) => Action::Title(self.vars.fill(title)),
            Step::PlanMode(on) => Action::PlanMode(*on),
            Step::Die(status) => Action::Die(*status),
            Step::SeqGap(n) => Action::SeqGap(*n),
            Step::Evict => Action::Evict,
            Step::End(result) => {
                self.end_request();
                Action::End(result.clone())
            }
            _ => return,
        };
        self.beat(0, action);
    }

    fn subagent(&mut self, agent: &SubagentStep, ids: &mut Ids) {
        if agent.background {
            for _ in 0..agent.count.map_or(1, |count| self.vars.n.unwrap_or(count)).clamp(1, 200) {
                self.background_agent(agent, ids);
            }
            return;
        }
        let (call, child) = self.launch(agent, ids);
        self.beat(0, Action::Started(Arc::clone(&call)));
        self.beat(10, Action::ChildStart(Arc::clone(&child)));
        let summary = self.vars.fill(&agent.summary.joined());
        let parent = self.child();
        let outcome = Outcome::plain(calls::agent_report(&child, &summary, 40_904, 10_559), 10_559);
        let after = VecDeque::from([
            Beat {
                wait: 40,
                child: parent.clone(),
                action: Action::ChildEnd(child.clone(), "success".to_owned()),
            },
            Beat {
                wait: 20,
                child: parent,
                action: Action::Result { call, outcome: Box::new(outcome) },
            },
        ]);
        self.push(Arc::clone(&agent.steps), Some(child));
        if let Some(frame) = self.frames.last_mut() {
            frame.after = after;
        }
    }
}

#[cfg(test)]
mod tests;
