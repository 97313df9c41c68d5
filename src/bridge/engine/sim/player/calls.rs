//! PURE. Tool calls of every kind, as actions: their input as the model writes it, the question
//! before them, their progress and how they end.

use super::super::ids::Ids;
use super::super::script::{
    AskStep, BackgroundStep, EditStep, PlanStep, Step, SubagentStep, Text, TodoStep, ToolStep,
};
use super::{Action, Answer, Beat, Child, Player, Question, TaskSpec, Waiting};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A tool call.
#[derive(Debug, Clone)]
pub(in super::super) struct Call {
    pub(in super::super) id: String,
    pub(in super::super) name: String,
    pub(in super::super) input: Value,
    pub(in super::super) description: Option<String>,
    pub(in super::super) background: bool,
}

/// How a call ended.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Outcome {
    pub(in super::super) content: String,
    pub(in super::super) success: Option<bool>,
    pub(in super::super) exit: Option<i64>,
    pub(in super::super) display: Option<Value>,
    pub(in super::super) duration: u64,
    pub(in super::super) write: Option<WriteFile>,
}

/// A file that the prompt asked to have written.
#[derive(Debug, Clone)]
pub(in super::super) struct WriteFile {
    pub(in super::super) path: String,
    pub(in super::super) old: String,
    pub(in super::super) new: String,
}

impl Outcome {
    pub(super) fn plain(content: String, duration: u64) -> Self {
        Self { content, duration, ..Self::default() }
    }
}

/// What the Agent tool returns for a subagent that ended.
pub(super) fn agent_report(child: &Child, summary: &str, tokens: u64, duration_ms: u64) -> String {
    format!(
        "{summary}\n\nagentId: {}\n<usage>total_tokens: {tokens}\ntool_uses: 2\nduration_ms: {duration_ms}</usage>",
        child.agent_id
    )
}

impl Player {
    fn new_call(
        &self,
        name: &str,
        input: Value,
        description: Option<String>,
        ids: &mut Ids,
    ) -> Arc<Call> {
        let id = match self.child() {
            Some(child) => {
                // The shape by which a host can tell a subagent's tools from the session's own.
                format!("tool_{}_{}", child.session_id.trim_start_matches("sess_"), ids.call())
            }
            None => ids.call(),
        };
        let background =
            input.get("run_in_background").and_then(Value::as_bool).unwrap_or_default();
        Arc::new(Call { id, name: name.to_owned(), input, description, background })
    }

    /// The model writes the call's input.
    fn write_input(&mut self, call: &Arc<Call>) {
        self.begin_request();
        self.beat(60, Action::InputStart(Arc::clone(call)));
        let text = call.input.to_string();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let cut =
                rest.char_indices().map(|(at, _)| at).find(|at| *at >= 24).unwrap_or(rest.len());
            let (piece, tail) = rest.split_at(cut);
            self.beat(25, Action::InputPiece(Arc::clone(call), piece.to_owned()));
            rest = tail;
        }
        self.beat(0, Action::InputEnd(Arc::clone(call)));
        self.beat(0, Action::Call(Arc::clone(call)));
    }

    pub(super) fn tool(&mut self, step: &ToolStep, ids: &mut Ids) {
        let call = self.call_of(step, ids);
        self.write_input(&call);
        self.end_request();
        self.run(&call, step);
    }

    pub(super) fn together(&mut self, steps: &[ToolStep], ids: &mut Ids) {
        let calls: Vec<_> = steps.iter().map(|step| self.call_of(step, ids)).collect();
        for call in &calls {
            self.write_input(call);
        }
        self.end_request();
        for call in &calls {
            self.beat(0, Action::Scheduled(Arc::clone(call)));
        }
        for call in &calls {
            self.beat(0, Action::Started(Arc::clone(call)));
        }
        for (call, step) in calls.iter().zip(steps) {
            self.finish(call, step);
        }
        self.beat(0, Action::Batch(calls.iter().map(|c| c.id.clone()).collect()));
    }

    fn call_of(&self, step: &ToolStep, ids: &mut Ids) -> Arc<Call> {
        let input = self.vars.fill_value(&Value::Object(step.input.clone()));
        self.new_call(&step.name, input, step.description.clone(), ids)
    }

    /// Schedules the call and asks, or runs it.
    fn run(&mut self, call: &Arc<Call>, step: &ToolStep) {
        if !step.bare {
            self.beat(10, Action::Scheduled(Arc::clone(call)));
        }
        if let Some(ask) = &step.permission {
            let question = Question::Permission {
                call: Arc::clone(call),
                reason: self.vars.fill(&ask.reason),
                risk: ask.risk.clone(),
                elsewhere_after: ask.elsewhere_after,
            };
            self.beat(40, Action::Ask(question));
            self.waiting =
                Some(Waiting::Permission { call: Arc::clone(call), step: Box::new(step.clone()) });
            return;
        }
        self.start_and_finish(call, step);
    }

    fn start_and_finish(&mut self, call: &Arc<Call>, step: &ToolStep) {
        if !step.bare {
            self.beat(10, Action::Started(Arc::clone(call)));
        }
        self.finish(call, step);
    }

    fn finish(&mut self, call: &Arc<Call>, step: &ToolStep) {
        let mut spent = step.takes;
        for progress in &step.progress {
            spent += progress.after;
            self.beat(
                progress.after,
                Action::Progress {
                    call: Arc::clone(call),
                    stdout: self.vars.fill(&progress.stdout),
                    stderr: self.vars.fill(&progress.stderr),
                },
            );
        }
        let action = match &step.error {
            Some(error) => {
                Action::Error { call: Arc::clone(call), error: self.vars.fill(&error.joined()) }
            }
            None => Action::Result {
                call: Arc::clone(call),
                outcome: Box::new(self.outcome(step, spent)),
            },
        };
        self.beat(step.takes.max(20), action);
        if let Some(steps) = &step.granted {
            let child = self.child();
            self.push(Arc::clone(steps), child);
        }
    }

    fn outcome(&self, step: &ToolStep, duration: u64) -> Outcome {
        Outcome {
            content: self.vars.fill(&step.result.joined()),
            success: step.success,
            exit: step.exit,
            display: step.display.as_ref().map(|d| self.vars.fill_value(d)),
            duration,
            write: step.write.clone(),
        }
    }

    pub(super) fn edit(&mut self, step: &EditStep, ids: &mut Ids) {
        let (old, new) = (step.old.joined(), step.new.joined());
        let path = format!("{}/{}", self.vars.cwd.trim_end_matches('/'), step.path);
        let mut input = Map::new();
        input.insert("file_path".to_owned(), Value::String(path.clone()));
        input.insert("old_string".to_owned(), Value::String(old.clone()));
        input.insert("new_string".to_owned(), Value::String(new.clone()));
        let tool = ToolStep {
            name: "Edit".to_owned(),
            input,
            permission: step.permission.clone(),
            takes: 120,
            result: Text::One(format!("The file {path} has been updated.")),
            display: Some(file_diff(&path, &old, &new)),
            denied: step.denied.clone(),
            granted: step.granted.clone(),
            write: self.vars.write_files.then(|| WriteFile { path: step.path.clone(), old, new }),
            ..ToolStep::default()
        };
        self.tool(&tool, ids);
    }

    pub(super) fn after_permission(&mut self, call: &Arc<Call>, step: &ToolStep, answer: &Answer) {
        match answer {
            Answer::Allow { modified } => {
                let call = match modified {
                    Some(input) => Arc::new(Call { input: input.clone(), ..Call::clone(call) }),
                    None => Arc::clone(call),
                };
                self.start_and_finish(&call, step);
            }
            other => {
                let reason = match other {
                    Answer::Deny { reason } if !reason.is_empty() => reason.clone(),
                    _ => "The user does not want to proceed with this tool use.".to_owned(),
                };
                self.beat(
                    10,
                    Action::Error {
                        call: Arc::clone(call),
                        error: format!("Permission denied: {reason}"),
                    },
                );
                let child = self.child();
                match &step.denied {
                    Some(steps) => self.push(Arc::clone(steps), child),
                    None => self.push(say("All right, I leave that out."), child),
                }
            }
        }
    }

    pub(super) fn plan(&mut self, step: &PlanStep, ids: &mut Ids) {
        let plan = self.vars.fill(&step.plan.joined());
        let call = self.new_call("ExitPlanMode", json!({ "plan": plan }), None, ids);
        self.write_input(&call);
        self.end_request();
        self.beat(10, Action::Scheduled(Arc::clone(&call)));
        self.beat(30, Action::Ask(Question::Plan { call: Arc::clone(&call), plan }));
        self.waiting = Some(Waiting::Plan { call, step: Box::new(step.clone()) });
    }

    pub(super) fn after_plan(&mut self, call: &Arc<Call>, step: &PlanStep, answer: &Answer) {
        let child = self.child();
        let (next, result) = match answer {
            Answer::Accept { content } => match content.get("answer_0").and_then(Value::as_str) {
                Some("approve") => {
                    (Arc::clone(&step.approved), Ok("User has approved the plan.".to_owned()))
                }
                Some(feedback) => {
                    feedback.clone_into(&mut self.vars.answer);
                    (
                        Arc::clone(&step.feedback),
                        Err(format!("The user wants changes to the plan: {feedback}")),
                    )
                }
                None => (Arc::clone(&step.rejected), Err("The plan was not approved.".to_owned())),
            },
            _ => (Arc::clone(&step.rejected), Err("The user rejected the plan.".to_owned())),
        };
        self.beat(0, Action::Started(Arc::clone(call)));
        match result {
            Ok(content) => {
                let outcome = Box::new(Outcome::plain(content, 10));
                self.beat(20, Action::Result { call: Arc::clone(call), outcome });
                self.beat(0, Action::PlanMode(false));
            }
            Err(error) => self.beat(20, Action::Error { call: Arc::clone(call), error }),
        }
        self.push(next, child);
    }

    pub(super) fn ask(&mut self, step: &AskStep, ids: &mut Ids) {
        let questions: Vec<Value> = step.questions.iter().map(question).collect();
        let name = if step.elicitation.is_some() { "McpElicitation" } else { "AskUserQuestion" };
        let call = self.new_call(name, json!({ "questions": questions }), None, ids);
        self.write_input(&call);
        self.end_request();
        self.beat(10, Action::Scheduled(Arc::clone(&call)));
        let step = Arc::new(step.clone());
        let question = Question::Questions { call: Arc::clone(&call), step: Arc::clone(&step) };
        self.beat(30, Action::Ask(question));
        self.waiting = Some(Waiting::Questions { call, step });
    }

    pub(super) fn after_questions(
        &mut self,
        call: &Arc<Call>,
        step: &Arc<AskStep>,
        answer: &Answer,
    ) {
        let child = self.child();
        self.beat(0, Action::Started(Arc::clone(call)));
        let Answer::Accept { content } = answer else {
            let error = "The user declined to answer.".to_owned();
            self.beat(20, Action::Error { call: Arc::clone(call), error });
            self.push(Arc::clone(&step.declined), child);
            return;
        };
        self.vars.answers = answer_list(step, content);
        let outcome =
            Box::new(Outcome::plain(format!("User has answered:\n{}", self.vars.answers), 10));
        self.beat(20, Action::Result { call: Arc::clone(call), outcome });
        self.push(Arc::clone(&step.answered), child);
    }

    pub(super) fn todos(&mut self, todos: &[TodoStep], ids: &mut Ids) {
        let entries: Vec<Value> = todos
            .iter()
            .map(|t| json!({"content": t.content, "status": t.status, "activeForm": t.content}))
            .collect();
        let call = self.new_call("TodoWrite", json!({ "todos": entries }), None, ids);
        self.write_input(&call);
        self.end_request();
        self.beat(10, Action::Scheduled(Arc::clone(&call)));
        self.beat(10, Action::Started(Arc::clone(&call)));
        let outcome =
            Box::new(Outcome::plain("Todos have been modified successfully.".to_owned(), 5));
        self.beat(20, Action::Result { call, outcome });
        // Written a moment after the result: hosts must read twice.
        self.beat(200, Action::Todos(todos.to_vec()));
    }

    /// The model calls Agent; returns the call and the subagent that it made.
    pub(super) fn launch(
        &mut self,
        agent: &SubagentStep,
        ids: &mut Ids,
    ) -> (Arc<Call>, Arc<Child>) {
        let description = self.vars.fill(&agent.description);
        let prompt = self.vars.fill(&agent.prompt.joined());
        let mut input =
            json!({"description": description, "prompt": prompt, "subagent_type": agent.kind});
        if agent.background
            && let Some(map) = input.as_object_mut()
        {
            map.insert("run_in_background".to_owned(), Value::Bool(true));
        }
        let call = self.new_call("Agent", input, Some(description.clone()), ids);
        self.write_input(&call);
        self.end_request();
        self.beat(10, Action::Scheduled(Arc::clone(&call)));
        let uuid = ids.uuid();
        let child = Arc::new(Child {
            session_id: format!("sess_subagent_{uuid}"),
            agent_id: format!("agent_{uuid}"),
            kind: agent.kind.clone(),
            description,
            prompt,
            parent_call: call.id.clone(),
            parent: self.child(),
        });
        (call, child)
    }

    pub(super) fn background_agent(&mut self, agent: &SubagentStep, ids: &mut Ids) {
        let (call, child) = self.launch(agent, ids);
        self.beat(0, Action::Started(Arc::clone(&call)));
        let output = format!("/tmp/zcode-sim/{}.output", child.agent_id);
        let text = format!(
            "Async agent launched successfully.\nagentId: {}\nThe agent is working in the background.\noutput_file: {output}",
            child.agent_id
        );
        let outcome = Box::new(Outcome::plain(text, 20));
        self.beat(20, Action::Result { call: Arc::clone(&call), outcome });
        let mut vars = self.vars.clone();
        vars.n = None;
        let spec = TaskSpec {
            task_id: child.agent_id.clone(),
            call,
            description: child.description.clone(),
            command: None,
            ends: "completed".to_owned(),
            notification: agent.notification.clone(),
            summary: self.vars.fill(&agent.summary.joined()),
            player: Self::of_steps(Arc::clone(&agent.steps), Some(Arc::clone(&child)), vars),
            child: Some(child),
        };
        self.beat(0, Action::Spawn(Box::new(spec)));
    }

    pub(super) fn background(&mut self, task: &BackgroundStep, ids: &mut Ids) {
        let command = self.vars.fill(&task.command);
        let input =
            json!({"command": command, "description": task.description, "run_in_background": true});
        let call = self.new_call("Bash", input, Some(task.description.clone()), ids);
        self.write_input(&call);
        self.end_request();
        self.beat(10, Action::Scheduled(Arc::clone(&call)));
        self.beat(10, Action::Started(Arc::clone(&call)));
        let task_id = ids.named("exec");
        let text = format!("Command running in background with ID: {task_id}");
        self.beat(
            20,
            Action::Result { call: Arc::clone(&call), outcome: Box::new(Outcome::plain(text, 20)) },
        );
        let mut player = Self::of_steps(Arc::from([]), None, self.vars.clone());
        for progress in &task.progress {
            player.pending.push_back(Beat {
                wait: progress.after,
                child: None,
                action: Action::Progress {
                    call: Arc::clone(&call),
                    stdout: progress.stdout.clone(),
                    stderr: progress.stderr.clone(),
                },
            });
        }
        let spec = TaskSpec {
            task_id,
            call,
            child: None,
            description: task.description.clone(),
            command: Some(command),
            ends: task.ends.clone(),
            notification: Some(Arc::clone(&task.notification)),
            summary: String::new(),
            player,
        };
        self.beat(0, Action::Spawn(Box::new(spec)));
    }
}

fn say(text: &str) -> super::Steps {
    Arc::from([Step::Say(Text::One(text.to_owned()))])
}

/// A question as the engine writes it on the wire.
pub(in super::super) fn question(step: &super::super::script::QuestionStep) -> Value {
    let mut out =
        json!({"question": step.question, "header": step.header, "options": step.options});
    if step.multi_select
        && let Some(map) = out.as_object_mut()
    {
        map.insert("multiSelect".to_owned(), Value::Bool(true));
    }
    out
}

/// The answers as a markdown list; `answers` by text and `answer_<n>` both count.
fn answer_list(step: &AskStep, content: &Value) -> String {
    let mut out = String::new();
    for (i, question) in step.questions.iter().enumerate() {
        let by_text = content.get("answers").and_then(|a| a.get(&question.question));
        let by_place = content.get(format!("answer_{i}"));
        let answer = by_text.or(by_place).and_then(Value::as_str).unwrap_or("(skipped)");
        out.push_str("- ");
        out.push_str(&question.question);
        out.push_str(" → **");
        out.push_str(answer);
        out.push_str("**\n");
    }
    out
}

/// One hunk with three lines of context.
fn file_diff(path: &str, old: &str, new: &str) -> Value {
    const CONTEXT: usize = 3;
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let prefix = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - prefix;
    let suffix =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let start = prefix.saturating_sub(CONTEXT);
    let tail = suffix.min(CONTEXT);
    let mut lines: Vec<String> = Vec::new();
    lines.extend(old.iter().take(prefix).skip(start).map(|l| format!(" {l}")));
    lines.extend(old.iter().take(old.len() - suffix).skip(prefix).map(|l| format!("-{l}")));
    lines.extend(new.iter().take(new.len() - suffix).skip(prefix).map(|l| format!("+{l}")));
    lines.extend(old.iter().skip(old.len() - suffix).take(tail).map(|l| format!(" {l}")));
    let count = |all: usize| all - suffix - start + tail;
    json!({
        "kind": "file_diff",
        "filePath": path,
        "structuredPatch": [{
            "oldStart": start + 1,
            "oldLines": count(old.len()),
            "newStart": start + 1,
            "newLines": count(new.len()),
            "lines": lines,
        }],
    })
}
