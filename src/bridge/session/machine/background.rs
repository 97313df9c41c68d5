//! PURE. Background tasks, the facts that come as `session.updated`, and what follows a tool's
//! result. Background work lives across prompts: its cards end with it, not with the turn.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Machine, ReqId};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::{BackgroundTask, SessionUpdated};
use crate::bridge::session::failure;
use crate::bridge::translate::CardEnd;

/// Tasks remembered at most; ended ones are forgotten at once.
const TASKS_MAX: usize = 512;

/// The tasks that run.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    running: BTreeMap<String, bool>,
}

impl Tasks {
    pub(crate) fn running_subagents(&self) -> Vec<String> {
        self.running.iter().filter(|(_, subagent)| **subagent).map(|(id, _)| id.clone()).collect()
    }
}

impl Machine {
    /// What a `session.updated` changes beyond what is shown of it.
    pub(crate) fn on_updated(&mut self, updated: &SessionUpdated) {
        if let Some(task) = &updated.task {
            self.note_task(task);
        }
        if updated.mode.is_some() || updated.plan_enabled.is_some() {
            self.mode_pushed(updated.mode.as_deref(), updated.plan_enabled);
        }
    }

    fn note_task(&mut self, task: &BackgroundTask) {
        if task.status != "running" {
            self.tasks.running.remove(&task.task_id);
        } else if self.tasks.running.len() < TASKS_MAX {
            let subagent = task.task_kind.as_deref() == Some("subagent");
            self.tasks.running.insert(task.task_id.clone(), subagent);
        }
    }

    /// The tasks ended with their engine.
    pub(crate) fn lose_tasks(&mut self) {
        self.tasks.running.clear();
        self.close_cards(CardEnd::EngineLost);
    }

    /// The tasks end with the bridge, whose engine ends with it.
    pub(crate) fn end_tasks_at_shutdown(&mut self) {
        self.tasks.running.clear();
        self.close_cards(CardEnd::Shutdown);
    }

    /// The tasks ended with the engine's runtime of this session, which the client closed.
    pub(crate) fn end_tasks_at_close(&mut self) {
        self.tasks.running.clear();
        self.close_cards(CardEnd::Closed);
    }

    pub(crate) fn cancel_task(&mut self, req: ReqId, by_command: bool, task: String) {
        let Some(sid) = self.engine_sid() else { return };
        let params = json!({"sessionId": sid, "taskId": task});
        self.call(
            "session/cancelBackgroundTask",
            params,
            super::Cont::CancelTask { req, by_command, task },
        );
    }

    pub(crate) fn on_task_cancelled(
        &mut self,
        req: ReqId,
        by_command: bool,
        task: &str,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => {
                if answer.get("cancelled").and_then(Value::as_bool) == Some(true) {
                    self.tasks.running.remove(task);
                    self.translate(|t, out| t.on_task_cancelled(task, out));
                }
                if by_command {
                    let text = if answer.get("cancelled").and_then(Value::as_bool) == Some(true) {
                        "The task was cancelled."
                    } else {
                        "The task could not be cancelled."
                    };
                    return self.finish_command(req, text);
                }
                let mut kept = answer;
                if let Value::Object(map) = &mut kept {
                    map.remove("snapshot");
                }
                self.respond(req, Ok(kept));
            }
            Err(error) => self.respond(req, Err(failure::to_acp(&error))),
        }
    }
}
