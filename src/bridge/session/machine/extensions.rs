//! PURE. Extension methods and the jobs that slash commands start: one at a time, while prompts
//! wait. A job is answered as it was asked, as a method's result or as text of a prompt.

use agent_client_protocol::Error as AcpError;
use agent_client_protocol::v1::schema as acp;
use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::goal::GoalAction;
use super::link::Waiter;
use super::settings::AskedBy;
use super::{Cont, Effect, Forked, Machine, ReqId, invalid_params};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;

/// Messages of one earlier page, when the client does not say.
const EARLIER: u64 = 50;

/// Something to do with the engine that is not a turn of the user's.
#[derive(Debug, Clone)]
pub(crate) enum Job {
    /// `/compact`
    Compact {
        /// What to keep.
        instructions: Option<String>,
    },
    /// `/goal`
    Goal(GoalAction),
    /// `/fork`
    Fork,
    /// `/mcp`
    Mcp,
    /// `/resume`
    Resume {
        /// The session asked for; else one is chosen.
        wanted: Option<String>,
    },
    /// `/workflows`
    Workflows,
    /// `session/cancelBackgroundTask`
    CancelTask {
        /// Which.
        task: String,
    },
}

/// The job that runs, and how it is answered.
#[derive(Debug)]
pub(crate) struct RunningJob {
    pub(crate) req: ReqId,
    pub(crate) by_command: bool,
    pub(crate) job: Job,
    /// The session was loaded again for it.
    pub(crate) healed: bool,
}

/// A fork that a client asked for.
#[derive(Debug)]
pub(crate) struct ForkWish {
    pub(crate) req: ReqId,
    mcp: Vec<Value>,
    remark: Option<String>,
    healed: bool,
}

impl Machine {
    pub(crate) fn on_extension(&mut self, req: ReqId, name: &'static str, params: &Value) {
        let text =
            |key: &str| params.get(key).and_then(Value::as_str).filter(|t| !t.trim().is_empty());
        let job = match name {
            "steering" => return self.steer_request(req, params),
            "state" => return self.state_request(req),
            "queue/list" | "queue/edit" | "queue/delete" | "queue/send_now"
            | "queue/auto_drain" => {
                return self.queue_request(req, name, params);
            }
            "cancelBackgroundTask" => {
                text("taskId").map(|task| Job::CancelTask { task: task.to_owned() })
            }
            "compact" => {
                Some(Job::Compact { instructions: text("instructions").map(str::to_owned) })
            }
            "goal" => GoalAction::from_params(params).map(Job::Goal),
            "load_earlier" => {
                let Some(before) = text("before") else {
                    return self
                        .respond(req, Err(invalid_params("load_earlier: before is missing")));
                };
                if self.engine_sid().is_none() {
                    return self.respond(
                        req,
                        Err(invalid_params("load_earlier: this session has no history")),
                    );
                }
                let limit = params.get("limit").and_then(Value::as_u64).unwrap_or(EARLIER);
                let limit = usize::try_from(limit.clamp(1, 500)).unwrap_or(500);
                return self.with_link(Waiter::Earlier { req, before: before.to_owned(), limit });
            }
            // The standard method wants a directory too; who sends none has the parent's.
            "fork" => return self.fork(req, Vec::new(), None),
            "setModel" => {
                return self.set_named(req, "model", text("modelId").or_else(|| text("model")));
            }
            "setMode" | "set_mode" => {
                return self.set_named(req, "mode", text("mode").or_else(|| text("modeId")));
            }
            "setThoughtLevel" => {
                let level = params.get("thoughtLevel").or_else(|| params.get("level"));
                return match level {
                    None | Some(Value::Null) => self.reset_thought(req),
                    Some(level) => self.set_named(req, "thought", level.as_str()),
                };
            }
            "set_config_option" => return self.set_option_by_extension(req, params),
            _ => return self.respond(req, Err(AcpError::method_not_found())),
        };
        match job {
            Some(job) => self.start_job(RunningJob { req, by_command: false, job, healed: false }),
            None => self.respond(
                req,
                Err(invalid_params(format!("{name}: a param is missing or has no meaning"))),
            ),
        }
    }

    fn set_option_by_extension(&mut self, req: ReqId, params: &Value) {
        let id = params.get("configId").and_then(Value::as_str);
        let value = acp::SessionConfigOptionValue::deserialize(params);
        if let (Some(id), Ok(value)) = (id, value) {
            return self.set_option(req, id, &value);
        }
        let text = "set_config_option: configId or value is missing";
        self.respond(req, Err(invalid_params(text)));
    }

    fn set_named(&mut self, req: ReqId, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.set_by_name(req, AskedBy::Extension, name, value),
            None => self.respond(req, Err(invalid_params(format!("the {name} to set is missing")))),
        }
    }

    /// Runs a job once the session is loaded. Cancelling a task waits for nobody.
    pub(crate) fn start_job(&mut self, running: RunningJob) {
        if self.engine_sid().is_none()
            && !matches!(running.job, Job::Goal(_) | Job::Mcp | Job::Workflows)
        {
            let text = "this session has no history yet";
            return if running.by_command {
                self.finish_command(running.req, "Nothing to do: this session has no history yet.");
            } else {
                self.respond(running.req, Err(invalid_params(text)));
            };
        }
        self.with_link(Waiter::Job(running));
    }

    pub(crate) fn run_job(&mut self, running: RunningJob) {
        if let Job::CancelTask { task } = &running.job {
            let task = task.clone();
            return self.cancel_task(running.req, running.by_command, task);
        }
        if self.job.is_some() || self.compact.is_running() {
            let text = "another command of this session is still running";
            return self.respond(
                running.req,
                Err(AcpError::new(agent_client_protocol::ErrorCode::INTERNAL_ERROR, text)),
            );
        }
        let job = running.job.clone();
        self.job = Some(running);
        match job {
            Job::Compact { instructions } => self.start_compact(instructions.as_deref()),
            Job::Goal(goal) => self.call_goal(&goal),
            Job::Fork => {
                let Some(sid) = self.engine_sid() else { return };
                let params = json!({"sessionId": sid});
                self.call("session/fork", params, Cont::ForkJob);
            }
            Job::Mcp => {
                let workspace = self.link.workspace_ref(&self.seed.cwd);
                let mut params = json!({"workspace": workspace, "mode": "status"});
                // Without them the engine tells of the workspace's own servers alone.
                if let (false, Value::Object(map)) = (self.seed.mcp.is_empty(), &mut params) {
                    map.insert("mcpServers".to_owned(), Value::Array(self.seed.mcp.clone()));
                }
                self.call("mcp/list", params, Cont::McpList);
            }
            Job::Workflows => self.read_workflows(),
            // These do not come here.
            Job::Resume { .. } | Job::CancelTask { .. } => {}
        }
    }

    /// The job ended: answer who asked, and let the next prompt begin.
    pub(crate) fn job_done(&mut self, result: Result<String, AcpError>) {
        let Some(running) = self.job.take() else { return };
        match result {
            Ok(text) if running.by_command => self.finish_command(running.req, &text),
            Ok(text) => self.respond(running.req, Ok(json!({"response": text}))),
            Err(error) => self.respond(running.req, Err(error)),
        }
        self.next_prompt();
    }

    /// A cancel while a command works.
    pub(crate) fn cancel_job(&mut self) {
        let Some(running) = self.job.take() else { return };
        self.close_choice(None);
        if running.by_command {
            self.respond_with(running.req, &acp::PromptResponse::new(acp::StopReason::Cancelled));
        } else {
            self.respond(running.req, Err(AcpError::request_cancelled()));
        }
        if self.compact.is_running() {
            self.fire_stop();
        }
    }

    pub(crate) fn fork(&mut self, req: ReqId, mcp: Vec<Value>, remark: Option<String>) {
        if self.engine_sid().is_none() {
            let error = invalid_params("this session has no history yet: there is nothing to fork");
            return self.respond(req, Err(error));
        }
        self.with_link(Waiter::Fork(Box::new(ForkWish { req, mcp, remark, healed: false })));
    }

    pub(crate) fn call_fork(&mut self, wish: Box<ForkWish>) {
        let Some(sid) = self.engine_sid() else { return };
        let params = json!({"sessionId": sid});
        self.call("session/fork", params, Cont::Fork(wish));
    }

    pub(crate) fn on_forked(&mut self, wish: ForkWish, reply: Result<Box<RawValue>, EngineError>) {
        if is_not_loaded(&reply) && !wish.healed {
            self.link_lost();
            return self.with_link(Waiter::Fork(Box::new(ForkWish { healed: true, ..wish })));
        }
        let ForkWish { req, mcp, remark, .. } = wish;
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => {
                let Some(engine_sid) = forked_id(&answer) else {
                    let error = failure::broken("session/fork", "no forkedSessionId in the answer");
                    return self.respond(req, Err(failure::to_acp(&error)));
                };
                let workspace = answer.pointer("/snapshot/session/workspace").cloned();
                let workspace = workspace.or_else(|| self.link.workspace.clone());
                let made = Forked { engine_sid, workspace, mcp, remark };
                self.emit(Effect::Adopt { req, made });
            }
            Err(error) => self.respond(req, Err(failure::to_acp(&error))),
        }
    }

    /// The engine had put the session away: it is loaded again, and the job tried once more.
    pub(crate) fn job_is_tried_again(
        &mut self,
        reply: &Result<Box<RawValue>, EngineError>,
    ) -> bool {
        if !is_not_loaded(reply) {
            return false;
        }
        let Some(running) = self.job.take_if(|job| !job.healed) else { return false };
        self.link_lost();
        self.with_link(Waiter::Job(RunningJob { healed: true, ..running }));
        true
    }

    pub(crate) fn on_fork_job(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        if self.job_is_tried_again(&reply) {
            return;
        }
        let result = match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => match forked_id(&answer) {
                Some(id) => Ok(format!("Forked. Open the new session `{id}` to continue there.")),
                None => Ok("Forked.".to_owned()),
            },
            Err(error) => Err(failure::to_acp(&error)),
        };
        self.job_done(result);
    }

    pub(crate) fn on_mcp_list(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        let result = match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => Ok(describe_servers(answer.get("statuses"))),
            Err(error) => Err(failure::to_acp(&error)),
        };
        self.job_done(result);
    }
}

fn is_not_loaded(reply: &Result<Box<RawValue>, EngineError>) -> bool {
    reply.as_ref().is_err_and(EngineError::is_not_active)
}

fn forked_id(answer: &Value) -> Option<String> {
    answer.get("forkedSessionId").and_then(Value::as_str).map(str::to_owned)
}

fn describe_servers(statuses: Option<&Value>) -> String {
    let servers = statuses.and_then(Value::as_object);
    let lines: Vec<String> = servers
        .into_iter()
        .flatten()
        .map(|(name, status)| {
            let text = |key: &str| status.get(key).and_then(Value::as_str);
            let tools = status.get("toolCount").and_then(Value::as_u64).unwrap_or(0);
            let error = text("error").map(|e| format!(": {e}")).unwrap_or_default();
            format!("- {name}: {} ({tools} tools){error}", text("status").unwrap_or("unknown"))
        })
        .collect();
    if lines.is_empty() { "No MCP servers.".to_owned() } else { lines.join("\n") }
}
