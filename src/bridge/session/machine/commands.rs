//! PURE. Slash commands: the list a client is offered (the bridge's own and the engine's), and the
//! ones that the bridge carries out itself. Everything else that begins with a slash, a path for
//! example, is an ordinary prompt and goes to the engine as it is.

use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::extensions::{Job, RunningJob};
use super::settings::AskedBy;
use super::{Cont, Effect, Machine, ReqId};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;
use crate::bridge::translate::command::{self, Command};
use crate::bridge::translate::notice;
use crate::bridge::translate::prompt::SendInput;

/// The engine's commands, as last read.
#[derive(Debug, Default)]
pub(crate) struct CommandList {
    engine: Vec<Value>,
    announced: Option<acp::SessionUpdate>,
}

impl CommandList {
    fn engine_has(&self, name: &str) -> bool {
        self.engine.iter().any(|c| {
            let listed = c.get("name").and_then(Value::as_str);
            listed.is_some_and(|listed| listed.trim_start_matches('/') == name)
        })
    }
}

impl Machine {
    pub(crate) fn announce_commands(&mut self) {
        if self.shown_settings.is_none() {
            return;
        }
        let update = command::available(&self.commands.engine);
        if self.commands.announced.as_ref() != Some(&update) {
            self.commands.announced = Some(update.clone());
            self.update(update);
        }
    }

    /// The commands, whether or not they were told before.
    pub(crate) fn tell_commands(&mut self) {
        self.repeat_commands();
        self.announce_commands();
    }

    pub(crate) fn repeat_commands(&mut self) {
        if let Some(update) = self.commands.announced.clone() {
            self.update(update);
        }
    }

    pub(crate) fn take_commands(&mut self, source: &Value) {
        if let Some(list) = source.get("slashCommands").and_then(Value::as_array) {
            self.commands.engine.clone_from(list);
        }
    }

    pub(crate) fn read_commands(&mut self) {
        let params = json!({"workspace": self.link.workspace_ref(&self.seed.cwd)});
        self.call("workspace/readPresentation", params, Cont::Presentation);
    }

    pub(crate) fn on_presentation(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        if let Ok(answer) = reply.and_then(|raw| failure::parse(&raw)) {
            self.take_commands(&answer);
        }
        self.announce_commands();
    }

    /// Carries a command out; false when the prompt is for the engine.
    pub(crate) fn run_command(&mut self, req: ReqId, input: &SendInput) -> bool {
        if !input.is_text_only {
            return false;
        }
        let Some(command) = command::parse(&input.words, |name| self.commands.engine_has(name))
        else {
            return false;
        };
        let job = match command {
            Command::Compact(instructions) => Job::Compact { instructions },
            Command::Goal(goal) => Job::Goal(goal.into()),
            Command::Fork => Job::Fork,
            Command::Mcp => Job::Mcp,
            Command::Workflows => Job::Workflows,
            Command::Resume(wanted) => {
                self.resume_command(req, wanted);
                return true;
            }
            Command::Tasks(Some(task)) => Job::CancelTask { task },
            Command::Tasks(None) => {
                let text = self.describe_tasks();
                self.finish_command(req, &text);
                return true;
            }
            Command::Quota => {
                self.emit(Effect::ReadQuota { req });
                return true;
            }
            Command::Model(value) => return self.setting_command(req, "model", value),
            Command::Mode(value) => return self.setting_command(req, "mode", value),
            Command::Thought(value) => return self.setting_command(req, "thought", value),
            Command::Help => {
                let text = command::help(&command::available(&self.commands.engine));
                self.finish_command(req, &text);
                return true;
            }
            Command::Unavailable(name) => {
                self.finish_command(req, &command::unavailable(&name));
                return true;
            }
        };
        self.start_job(RunningJob { req, by_command: true, job, healed: false });
        true
    }

    fn setting_command(&mut self, req: ReqId, name: &str, value: Option<String>) -> bool {
        if let Some(value) = value {
            self.set_by_name(req, AskedBy::Command, name, &value);
        } else {
            let text = self.describe_setting(name);
            self.finish_command(req, &text);
        }
        true
    }

    /// The command's words and the prompt's end.
    pub(crate) fn finish_command(&mut self, req: ReqId, text: &str) {
        let id = format!("cmd_{}_{}", self.seed.nonce, self.next);
        self.next += 1;
        self.update(notice::reply(text, &id));
        self.respond_with(req, &acp::PromptResponse::new(acp::StopReason::EndTurn));
    }

    /// As it stands, not as prose: the figures are in columns.
    pub(crate) fn finish_quota(&mut self, req: ReqId, page: &str) {
        self.finish_command(req, &format!("```text\n{page}```"));
    }

    fn describe_setting(&self, name: &str) -> String {
        let options = self.settings.shown().options();
        let Some(option) = options.iter().find(|o| &*o.id.0 == name) else {
            return format!("There is no {name} to choose.");
        };
        let value = serde_json::to_value(option).unwrap_or_default();
        let current =
            value.get("currentValue").and_then(Value::as_str).unwrap_or("none").to_owned();
        let mut values = Vec::new();
        collect_values(value.get("options"), &mut values);
        format!("{}: {current}\nCan be: {}", option.name, values.join(", "))
    }

    fn describe_tasks(&self) -> String {
        let lines: Vec<String> = self
            .translator
            .running_tasks()
            .map(|(task, card)| format!("- {task} ({card})"))
            .collect();
        if lines.is_empty() { "No background tasks run.".to_owned() } else { lines.join("\n") }
    }
}

fn collect_values(options: Option<&Value>, into: &mut Vec<String>) {
    for option in options.and_then(Value::as_array).into_iter().flatten() {
        match option.get("value").and_then(Value::as_str) {
            Some(value) => into.push(value.to_owned()),
            None => collect_values(option.get("options"), into),
        }
    }
}
