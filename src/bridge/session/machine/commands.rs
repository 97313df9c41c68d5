//! PURE. Slash commands: the list a client is offered (the bridge's own and the engine's), and the
//! ones that the bridge carries out itself. Everything else that begins with a slash, a path for
//! example, is an ordinary prompt and goes to the engine as it is.

use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::extensions::{Job, RunningJob};
use super::goal::GoalAction;
use super::settings::AskedBy;
use super::{Cont, Machine, ReqId};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;
use crate::bridge::session::interim::notice;
use crate::bridge::translate::prompt::SendInput;

/// The bridge's own commands: name, description, hint for the argument.
const OWN: &[(&str, &str, Option<&str>)] = &[
    ("compact", "Summarise the conversation to free context", Some("what to keep (optional)")),
    (
        "goal",
        "Set, show, pause, resume or clear the goal the agent works towards",
        Some("objective, or: status, pause, resume, clear"),
    ),
    ("fork", "Fork this session at its latest checkpoint", None),
    ("model", "Show or change the model", Some("provider/model")),
    ("mode", "Show or change the mode", Some("plan, build, edit, yolo")),
    ("thought", "Show or change the thought level", Some("level")),
    ("mcp", "List the MCP servers and their state", None),
    ("tasks", "List the background tasks that run", None),
];

/// Commands of ZCode's own terminal that have no meaning here.
const ELSEWHERE: &[&str] =
    &["plugins", "login", "logout", "new", "locale", "expert", "effort", "help", "resume"];

/// The engine's commands, as last read.
#[derive(Debug, Default)]
pub(crate) struct CommandList {
    engine: Vec<Value>,
    announced: Option<Vec<acp::AvailableCommand>>,
}

impl Machine {
    pub(crate) fn announce_commands(&mut self) {
        if self.shown_settings.is_none() {
            return;
        }
        let list = self.commands.list();
        if self.commands.announced.as_ref() == Some(&list) {
            return;
        }
        self.commands.announced = Some(list.clone());
        self.update(acp::SessionUpdate::AvailableCommandsUpdate(
            acp::AvailableCommandsUpdate::new(list),
        ));
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
        let Some((name, rest)) = parse(&input.words) else { return false };
        let job = match name.as_str() {
            "compact" => {
                Job::Compact { instructions: Some(rest.to_owned()).filter(|t| !t.is_empty()) }
            }
            "goal" | "auto" => Job::Goal(GoalAction::from_words(rest)),
            "fork" => Job::Fork,
            "mcp" => Job::Mcp,
            "model" | "mode" | "thought" if rest.is_empty() => {
                let text = self.describe_setting(&name);
                self.finish_command(req, &text);
                return true;
            }
            "model" | "mode" | "thought" => {
                self.set_by_name(req, AskedBy::Command, &name, rest);
                return true;
            }
            "tasks" => {
                let text = self.describe_tasks();
                self.finish_command(req, &text);
                return true;
            }
            other if ELSEWHERE.contains(&other) && !self.commands.engine_has(other) => {
                let text =
                    format!("/{other} is not available here; the editor or the terminal has it.");
                self.finish_command(req, &text);
                return true;
            }
            _ => return false,
        };
        self.start_job(RunningJob { req, by_command: true, job });
        true
    }

    /// The command's words and the prompt's end.
    pub(crate) fn finish_command(&mut self, req: ReqId, text: &str) {
        let id = format!("cmd-{}-{}", self.seed.nonce, self.next);
        self.next += 1;
        self.update(notice::reply(text, &id));
        self.respond_with(req, &acp::PromptResponse::new(acp::StopReason::EndTurn));
    }

    fn describe_setting(&self, name: &str) -> String {
        let settings = self.settings.shown();
        let options = settings.options();
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
        let lines: Vec<String> = self.tasks.running().map(|id| format!("- {id}")).collect();
        if lines.is_empty() { "No background tasks run.".to_owned() } else { lines.join("\n") }
    }
}

impl CommandList {
    fn engine_has(&self, name: &str) -> bool {
        self.engine.iter().any(|c| command_name(c) == Some(name))
    }

    fn list(&self) -> Vec<acp::AvailableCommand> {
        let mut list: Vec<acp::AvailableCommand> = OWN
            .iter()
            .map(|(name, about, hint)| {
                command((*name).to_owned(), (*about).to_owned(), hint.map(str::to_owned))
            })
            .collect();
        for entry in &self.engine {
            let Some(name) = command_name(entry) else { continue };
            if list.iter().any(|known| known.name == name) || ELSEWHERE.contains(&name) {
                continue;
            }
            let text =
                |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let hint = Some(text("inputHint")).filter(|h| !h.is_empty());
            list.push(command(name.to_owned(), text("description"), hint));
        }
        list
    }
}

fn command_name(entry: &Value) -> Option<&str> {
    let name = entry.get("name").and_then(Value::as_str)?.trim_start_matches('/');
    (!name.is_empty()).then_some(name)
}

fn command(name: String, description: String, hint: Option<String>) -> acp::AvailableCommand {
    let input = hint.map(|hint| {
        acp::AvailableCommandInput::Unstructured(acp::UnstructuredCommandInput::new(hint))
    });
    acp::AvailableCommand::new(name, description).input(input)
}

fn collect_values(options: Option<&Value>, into: &mut Vec<String>) {
    for option in options.and_then(Value::as_array).into_iter().flatten() {
        match option.get("value").and_then(Value::as_str) {
            Some(value) => into.push(value.to_owned()),
            None => collect_values(option.get("options"), into),
        }
    }
}

/// `/name rest`: the name in lower case, the rest trimmed. A path is no command.
fn parse(words: &str) -> Option<(String, &str)> {
    let text = words.trim();
    let body = text.strip_prefix('/')?;
    let end = body.find(char::is_whitespace).unwrap_or(body.len());
    let (name, rest) = body.split_at(end);
    let plain = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'));
    plain.then(|| (name.to_ascii_lowercase(), rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_word_behind_a_slash() {
        assert_eq!(parse("  /Compact keep the API \n"), Some(("compact".into(), "keep the API")));
        assert_eq!(parse("/mcp"), Some(("mcp".into(), "")));
    }

    #[test]
    fn paths_and_ordinary_text_are_no_commands() {
        for text in ["/usr/bin/env is missing", "see /compact", "/", "", "/ compact", "/a.b"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_list_has_each_name_once_and_no_slashes() {
        let engine = vec![
            json!({"name": "compact", "description": "x"}),
            json!({"name": "/review", "description": "y", "inputHint": "z"}),
        ];
        let list = CommandList { engine, announced: None }.list();
        let names: Vec<_> = list.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names.iter().filter(|n| **n == "compact").count(), 1);
        assert!(names.contains(&"review") && names.iter().all(|n| !n.starts_with('/')));
    }
}
