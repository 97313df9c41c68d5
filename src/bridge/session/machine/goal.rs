//! PURE. Goals: `session/goal` by command and by extension. The engine runs the goal's turns by
//! itself; they are shown as turns of its own.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Cont, Machine};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;
use crate::bridge::translate::command;

/// What to do with the goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoalAction {
    /// `show`, `set`, `replace`, `pause`, `resume` or `clear`.
    pub(crate) action: &'static str,
    /// For `set` and `replace`.
    pub(crate) objective: Option<String>,
}

impl GoalAction {
    /// Reads the params of the extension method.
    pub(crate) fn from_params(params: &Value) -> Option<Self> {
        let objective =
            params.get("objective").and_then(Value::as_str).filter(|t| !t.trim().is_empty());
        let action = match params.get("action").and_then(Value::as_str).unwrap_or("show") {
            "show" | "status" => "show",
            "set" => "set",
            "replace" => "replace",
            "pause" => "pause",
            "resume" => "resume",
            "clear" | "stop" => "clear",
            _ => return None,
        };
        if !matches!(action, "set" | "replace") {
            // Forms send their empty or old text along.
            return Some(Self { action, objective: None });
        }
        Some(Self { action, objective: Some(objective?.to_owned()) })
    }
}

impl From<command::GoalAction> for GoalAction {
    fn from(goal: command::GoalAction) -> Self {
        let (action, objective) = goal.params();
        Self { action, objective: objective.map(str::to_owned) }
    }
}

impl Machine {
    pub(crate) fn call_goal(&mut self, goal: &GoalAction) {
        let Some(sid) = self.engine_sid() else { return };
        let mut params = json!({"sessionId": sid, "action": goal.action});
        if let (Some(objective), Value::Object(map)) = (&goal.objective, &mut params) {
            map.insert("objective".to_owned(), json!(objective));
        }
        self.call("session/goal", params, Cont::Goal);
    }

    pub(crate) fn on_goal_reply(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        if self.job_is_tried_again(&reply) {
            return;
        }
        let result = match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => {
                self.take_settings(answer.get("snapshot").unwrap_or(&Value::Null));
                Ok(answer.get("response").and_then(Value::as_str).unwrap_or("Done.").to_owned())
            }
            Err(error) => Err(failure::to_acp(&error)),
        };
        self.job_done(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_set_with_an_objective_and_shown_without() {
        assert!(GoalAction::from_params(&json!({"action": "set"})).is_none());
        assert!(GoalAction::from_params(&json!({"action": "explode"})).is_none());
        assert!(GoalAction::from_params(&json!({"action": "show"})).is_some());
        assert!(GoalAction::from_params(&json!({"action": "set", "objective": "x"})).is_some());
    }
}
