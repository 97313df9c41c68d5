//! PURE. Background tasks, the facts that come as `session.updated`, and what follows a tool's
//! result. Background work lives across prompts: its cards end with it, not with the turn.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Machine, ReqId};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::{BackgroundTask, SessionUpdated};
use crate::bridge::session::failure;

/// Tasks remembered at most; ended ones are forgotten at once.
const TASKS_MAX: usize = 512;

/// The tasks that run.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    running: BTreeMap<String, bool>,
}

impl Tasks {
    pub(crate) fn running(&self) -> impl Iterator<Item = &str> {
        self.running.keys().map(String::as_str)
    }

    pub(crate) fn running_subagents(&self) -> Vec<String> {
        self.running.iter().filter(|(_, subagent)| **subagent).map(|(id, _)| id.clone()).collect()
    }
}

impl Machine {
    pub(crate) fn on_updated(&mut self, updated: &SessionUpdated) {
        if let Some(task) = &updated.task {
            self.on_task(task);
        }
        if updated.context_used.is_some() || updated.context_window.is_some() {
            self.on_usage_event(updated.context_used, updated.context_window);
        }
        if updated.mode.is_some() || updated.plan_enabled.is_some() {
            self.mode_pushed(updated.mode.as_deref(), updated.plan_enabled);
        }
        if let Some(retry) = &updated.api_retry {
            let _ = retry;
        }
    }

    fn on_task(&mut self, task: &BackgroundTask) {
        if task.status == "running" {
            if self.tasks.running.len() < TASKS_MAX {
                let subagent = task.task_kind.as_deref() == Some("subagent");
                self.tasks.running.insert(task.task_id.clone(), subagent);
            }
        } else {
            self.tasks.running.remove(&task.task_id);
        }
    }

    pub(crate) fn lose_tasks(&mut self) {
        self.tasks.running.clear();
    }

    pub(crate) fn end_tasks_at_shutdown(&mut self) {
        self.tasks.running.clear();
    }

    pub(crate) fn cancel_task(&mut self, req: ReqId, task: String) {
        let Some(sid) = self.engine_sid() else { return };
        let params = json!({"sessionId": sid, "taskId": task});
        self.call("session/cancelBackgroundTask", params, super::Cont::CancelTask { req, task });
    }

    pub(crate) fn on_task_cancelled(
        &mut self,
        req: ReqId,
        task: &str,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => {
                if answer.get("cancelled").and_then(Value::as_bool) == Some(true) {
                    self.tasks.running.remove(task);
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
