//! PURE. Background tasks (engine protocol section 6, bridge behaviour 3.8): a task goes on in the
//! card of the call that launched it, or gets a card of its own; every card ends with its task.

use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

use super::super::{Output, Target, output};
use super::{Cards, NewCard, Stage, facts};
use crate::bridge::engine::event::BackgroundTask;

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Running,
    Completed,
    Failed,
}

fn standing(status: &str) -> Standing {
    match status {
        "completed" | "success" => Standing::Completed,
        "failed" | "error" | "cancelled" | "canceled" | "timed_out" | "spawn_error" | "lost"
        | "killed" => Standing::Failed,
        _ => Standing::Running,
    }
}

impl Cards {
    /// One life-cycle event of a task.
    pub fn on_task(&mut self, task: &BackgroundTask, target: &Target, out: &mut Output) {
        if task.task_id.is_empty() || self.ended_tasks.contains(&task.task_id) {
            return;
        }
        let (card_id, is_taken_over) = match self.tasks.get(&task.task_id) {
            Some(id) => (id.clone(), false),
            None => self.card_for(task, target, out),
        };
        self.tasks.insert(task.task_id.clone(), card_id.clone());
        if let Some(child) = task.child_session_id.as_deref() {
            self.adopt(child, &card_id);
        }
        let Some(card) = self.open.get_mut(&card_id) else {
            self.forget(&task.task_id);
            return;
        };
        card.background = true;
        card.task = Some(task.task_id.clone());
        let split = [task.stdout_tail.as_deref(), task.stderr_tail.as_deref()];
        let tails = match task.output_tail.as_deref().filter(|t| !t.is_empty()) {
            Some(tail) => [Some(tail), None],
            None => split,
        };
        match standing(&task.status) {
            Standing::Running => {
                if is_taken_over {
                    card.mark_background(task_meta(task, None), out);
                }
                card.tails(tails, target, out);
            }
            ended => {
                let failed = ended == Standing::Failed;
                let content = card.last_output(tails, target, out);
                let mut meta = task_meta(task, Some(("completed", true)));
                if failed && task.status == "cancelled" {
                    meta = task_meta(task, Some(("cancelled", true)));
                }
                card.end_background(failed, meta, content, out);
                self.end(&card_id);
                self.forget(&task.task_id);
            }
        }
    }

    /// The client cancelled a task: its card ends now, whatever the engine still says.
    pub fn cancel_task(&mut self, task_id: &str, out: &mut Output) {
        let Some(card_id) = self.tasks.get(task_id).cloned() else {
            return;
        };
        if let Some(card) = self.open.get_mut(&card_id) {
            let mut meta = acp::Meta::new();
            let facts = json!({"taskId": task_id, "cancelled": true});
            meta.insert("backgroundTask".into(), facts);
            card.end_background(true, meta, output::plain("Cancelled."), out);
        }
        self.end(&card_id);
        self.forget(task_id);
    }

    /// Tasks that have not ended, in no order: task and card.
    pub fn running_tasks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tasks.iter().map(|(task, card)| (task.as_str(), card.as_str()))
    }

    /// The launch card (`true`) when it is still open, else a card of the task's own.
    fn card_for(
        &mut self,
        task: &BackgroundTask,
        target: &Target,
        out: &mut Output,
    ) -> (String, bool) {
        let launched_by = task.tool_call_id.as_deref().filter(|id| !id.is_empty());
        if let Some(id) = launched_by.filter(|id| self.open.contains_key(*id)) {
            return (id.to_owned(), true);
        }
        let id = format!("bg_{}", task.task_id);
        let words = task.description.as_deref().or(task.command.as_deref());
        let title = format!("[background] {}", words.map_or_else(|| "task".into(), facts::cut));
        let meta = task_meta(task, None);
        let new = NewCard { id: &id, title: Some(&title), meta: Some(&meta), ..NewCard::default() };
        self.make(new, Stage::Running, target, out);
        (id, false)
    }

    fn forget(&mut self, task_id: &str) {
        self.tasks.remove(task_id);
        self.ended_tasks.insert(task_id);
    }
}

/// `_meta.backgroundTask`.
fn task_meta(task: &BackgroundTask, fact: Option<(&str, bool)>) -> acp::Meta {
    let mut inner = acp::Meta::new();
    inner.insert("taskId".into(), json!(task.task_id));
    for (key, value) in [
        ("kind", &task.task_kind),
        ("agentId", &task.terminal_id),
        ("outputPath", &task.output_path),
        ("sourceToolCallId", &task.tool_call_id),
        ("childSessionId", &task.child_session_id),
    ] {
        if let Some(value) = value {
            inner.insert(key.into(), json!(value));
        }
    }
    if let Some(cancellable) = task.cancellable {
        inner.insert("cancellable".into(), json!(cancellable));
    }
    inner.insert("status".into(), json!(task.status));
    if let Some((key, value)) = fact {
        inner.insert(key.into(), json!(value));
    }
    let mut meta = acp::Meta::new();
    meta.insert("backgroundTask".into(), Value::Object(inner));
    meta
}
