//! PURE. `/workflows`: the saved workflows of the directory and how their last runs stand. Two readings, then a text.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Cont, Machine};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;

/// How many runs are told.
const RUNS: u8 = 10;

impl Machine {
    pub(crate) fn read_workflows(&mut self) {
        let workspace = self.link.workspace_ref(&self.seed.cwd);
        self.call("workflows/list", json!({ "workspace": workspace }), Cont::Workflows);
    }

    pub(crate) fn on_workflows(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(list) => {
                let workspace = self.link.workspace_ref(&self.seed.cwd);
                let params = json!({"workspace": workspace, "limit": RUNS});
                self.call("workflows/runs", params, Cont::WorkflowRuns { list });
            }
            Err(error) if error.is_unknown_method() => {
                self.job_done(Ok("This engine has no workflows.".to_owned()));
            }
            Err(error) => self.job_done(Err(failure::to_acp(&error))),
        }
    }

    /// Without its runs the list is told all the same.
    pub(crate) fn on_workflow_runs(
        &mut self,
        list: &Value,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        let runs = reply.and_then(|raw| failure::parse(&raw)).unwrap_or_default();
        self.job_done(Ok(describe(list, &runs)));
    }
}

fn describe(list: &Value, runs: &Value) -> String {
    let each = |from: &Value, key: &str| {
        from.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let text = |of: &Value, key: &str| {
        of.get(key).and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned)
    };
    let mut lines = Vec::new();
    for it in each(list, "workflows") {
        let scope = text(&it, "scope").map_or_else(String::new, |scope| format!(" ({scope})"));
        let words = text(&it, "description").map_or_else(String::new, |words| format!(": {words}"));
        lines.push(format!("- {}{scope}{words}", text(&it, "name").unwrap_or_default()));
    }
    for it in each(list, "invalid") {
        let reason = text(&it, "reason").unwrap_or_else(|| "it cannot be read".to_owned());
        lines.push(format!("- {} cannot be used: {reason}", text(&it, "path").unwrap_or_default()));
    }
    if lines.is_empty() {
        lines.push("No saved workflows.".to_owned());
    } else {
        lines.insert(0, "Workflows:".to_owned());
    }
    let runs = each(runs, "runs");
    if !runs.is_empty() {
        lines.push("\nLast runs:".to_owned());
    }
    for it in runs {
        let name = text(&it, "name").or_else(|| text(&it, "runId")).unwrap_or_default();
        lines.push(format!("- {name}: {}", text(&it, "status").unwrap_or_default()));
    }
    lines.join("\n")
}
