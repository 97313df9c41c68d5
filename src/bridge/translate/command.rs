//! PURE. Slash commands: read from a prompt's text, and the list that is advertised (bridge
//! behaviour 7.1). What is neither the bridge's nor known not to work here is the engine's, or
//! ordinary text. Called by the session machine.

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

/// A command that the bridge carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Shorten the conversation, with a focus when given.
    Compact(Option<String>),
    /// Work towards a goal.
    Goal(GoalAction),
    /// Continue in a copy of the session.
    Fork,
    /// Go on with another session in an empty thread, by id when given.
    Resume(Option<String>),
    /// Use another model; the list when none is named.
    Model(Option<String>),
    /// Use another mode; the list when none is named.
    Mode(Option<String>),
    /// Use another thought level; the list when none is named.
    Thought(Option<String>),
    /// The MCP servers and how they stand.
    Mcp,
    /// The saved workflows and their runs.
    Workflows,
    /// What is known of plans and their quota.
    Quota,
    /// Background tasks; `Some` cancels the one named.
    Tasks(Option<String>),
    /// What commands there are.
    Help,
    /// A command of the desktop app that cannot work here, by name.
    Unavailable(String),
}

/// What `/goal` is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoalAction {
    /// Tell how it stands.
    Show,
    /// Set (or replace) it.
    Set(String),
    /// Pause it.
    Pause,
    /// Go on with it.
    Resume,
    /// Forget it.
    Clear,
}

impl GoalAction {
    /// `action` and `objective` of `session/goal`.
    pub fn params(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Show => ("show", None),
            Self::Set(objective) => ("set", Some(objective)),
            Self::Pause => ("pause", None),
            Self::Resume => ("resume", None),
            Self::Clear => ("clear", None),
        }
    }
}

/// Commands of the desktop app that have no meaning for an ACP client.
const UNAVAILABLE: [&str; 8] =
    ["plugins", "login", "logout", "new", "locale", "expert", "effort", "rewind"];

/// The bridge's own commands: name, description, hint for the argument.
const OWN: [(&str, &str, Option<&str>); 10] = [
    ("compact", "Shorten the conversation so far", Some("what to keep in focus (optional)")),
    (
        "goal",
        "Work towards a goal until it is reached",
        Some("objective, or: status, pause, resume, clear"),
    ),
    ("fork", "Continue in a copy of this session", None),
    ("resume", "Go on with an earlier session of this directory", Some("session id (optional)")),
    ("model", "Use another model", Some("model")),
    ("mode", "Use another mode", Some("plan, build, edit, yolo or auto")),
    ("thought", "Use another thought level", Some("level")),
    ("mcp", "Show the MCP servers and how they stand", None),
    ("quota", "Show plans, providers and what is known of their quota", None),
    ("tasks", "Show background tasks, or cancel one", Some("cancel <task id> (optional)")),
];

/// Reads a prompt's words. `None` is an ordinary prompt: also an unknown command, a path, and a
/// command of the engine's own (`is_engine_command`) that is not the bridge's.
pub fn parse(words: &str, is_engine_command: impl Fn(&str) -> bool) -> Option<Command> {
    let line = words.trim().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = name.to_lowercase();
    let rest = rest.trim();
    let argument = || (!rest.is_empty()).then(|| rest.to_owned());
    Some(match name.as_str() {
        "compact" => Command::Compact(argument()),
        "goal" => Command::Goal(goal(rest)),
        "auto" if !is_engine_command("auto") => Command::Goal(goal(rest)),
        "help" if !is_engine_command("help") => Command::Help,
        "fork" => Command::Fork,
        "resume" => Command::Resume(argument()),
        "model" => Command::Model(argument()),
        "mode" => Command::Mode(argument()),
        "thought" => Command::Thought(argument()),
        "mcp" => Command::Mcp,
        "workflows" => Command::Workflows,
        "quota" => Command::Quota,
        "tasks" => {
            let id = rest.strip_prefix("cancel").unwrap_or(rest).trim();
            Command::Tasks((!id.is_empty()).then(|| id.to_owned()))
        }
        other if UNAVAILABLE.contains(&other) && !is_engine_command(other) => {
            Command::Unavailable(name)
        }
        _ => return None,
    })
}

/// A word is a subcommand only when it stands alone, so that an objective may begin with it.
fn goal(rest: &str) -> GoalAction {
    match rest.to_lowercase().as_str() {
        "" | "status" | "show" => GoalAction::Show,
        "pause" => GoalAction::Pause,
        "resume" => GoalAction::Resume,
        "stop" | "clear" => GoalAction::Clear,
        _ => GoalAction::Set(rest.to_owned()),
    }
}

/// The advertised list in words.
pub fn help(available: &acp::SessionUpdate) -> String {
    let acp::SessionUpdate::AvailableCommandsUpdate(list) = available else {
        return String::new();
    };
    let mut lines = vec!["Commands:".to_owned()];
    for command in &list.available_commands {
        let hint = match &command.input {
            Some(acp::AvailableCommandInput::Unstructured(input)) => format!(" <{}>", input.hint),
            _ => String::new(),
        };
        lines.push(format!("- `/{}{hint}`: {}", command.name, command.description));
    }
    lines.join("\n")
}

/// What the user is told about a command that cannot work here.
pub fn unavailable(name: &str) -> String {
    format!("/{name} belongs to the ZCode app and is not available here.")
}

/// The list to advertise: the bridge's commands, then the engine's (`{name, description,
/// inputHint?}`, from the session or `workspace/readPresentation`), each name once.
pub fn available(engine: &[Value]) -> acp::SessionUpdate {
    let mut commands: Vec<acp::AvailableCommand> =
        OWN.iter().map(|(name, words, hint)| command(name, words, *hint)).collect();
    for from in engine {
        let text = |key: &str| from.get(key).and_then(Value::as_str).map(str::trim);
        let name = from.as_str().or_else(|| text("name")).unwrap_or_default();
        let name = name.trim_start_matches('/');
        let is_word = !name.is_empty() && !name.contains(char::is_whitespace);
        if !is_word || commands.iter().any(|c| c.name == name) || UNAVAILABLE.contains(&name) {
            continue;
        }
        let words =
            text("description").filter(|d| !d.is_empty()).unwrap_or("A command of the engine");
        commands.push(command(name, words, text("inputHint").filter(|h| !h.is_empty())));
    }
    acp::SessionUpdate::AvailableCommandsUpdate(acp::AvailableCommandsUpdate::new(commands))
}

fn command(name: &str, words: &str, hint: Option<&str>) -> acp::AvailableCommand {
    let input = hint.map(|hint| {
        acp::AvailableCommandInput::Unstructured(acp::UnstructuredCommandInput::new(hint))
    });
    acp::AvailableCommand::new(name, words).input(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_bridges_commands_are_read_with_their_arguments() {
        let text = |t: &str| Some(t.to_owned());
        for (words, want) in [
            ("/compact", Some(Command::Compact(None))),
            (
                "  /Compact  keep the API\nnotes ",
                Some(Command::Compact(text("keep the API\nnotes"))),
            ),
            ("/goal", Some(Command::Goal(GoalAction::Show))),
            ("/goal PAUSE", Some(Command::Goal(GoalAction::Pause))),
            ("/goal stop", Some(Command::Goal(GoalAction::Clear))),
            ("/goal stop the leak", Some(Command::Goal(GoalAction::Set("stop the leak".into())))),
            ("/fork", Some(Command::Fork)),
            ("/resume sess_1", Some(Command::Resume(text("sess_1")))),
            ("/model\tGLM", Some(Command::Model(text("GLM")))),
            ("/mode", Some(Command::Mode(None))),
            ("/thought high", Some(Command::Thought(text("high")))),
            ("/mcp", Some(Command::Mcp)),
            ("/quota", Some(Command::Quota)),
            ("/workflows", Some(Command::Workflows)),
            ("/workflow tidy up", None),
            ("/tasks", Some(Command::Tasks(None))),
            ("/tasks cancel exec_1", Some(Command::Tasks(text("exec_1")))),
            ("/help", Some(Command::Help)),
            ("/auto tidy up", Some(Command::Goal(GoalAction::Set("tidy up".into())))),
            ("/login", Some(Command::Unavailable("login".into()))),
            ("/init", None),
            ("/lab-review x", None),
            ("/etc/hosts is what?", None),
            ("/", None),
            ("hello /compact", None),
            ("", None),
        ] {
            assert_eq!(parse(words, |_| false), want, "{words}");
        }
        for words in ["/new x", "/help", "/auto"] {
            assert_eq!(parse(words, |_| true), None, "the engine has {words}");
        }
    }

    #[test]
    fn help_names_every_advertised_command() {
        let text = help(&available(&[json!({"name": "lab-review", "description": "Review"})]));
        assert!(text.contains("- `/lab-review`: Review"), "{text}");
        assert!(text.contains("- `/compact <what to keep in focus (optional)>`: "), "{text}");
    }

    #[test]
    fn the_advertised_list_merges_both_without_slashes_or_doubles() {
        let engine = [
            json!({"name": "/lab-review", "description": "Review", "inputHint": "path"}),
            json!({"name": "compact", "description": "other"}),
            json!({"name": "init"}),
            json!("plain"),
            json!({"name": "two words"}),
            json!({}),
            json!({"name": "login", "description": "x"}),
        ];
        let update = serde_json::to_value(available(&engine)).unwrap();
        let list = update["availableCommands"].as_array().unwrap();
        let names: Vec<&str> = list.iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "compact",
                "goal",
                "fork",
                "resume",
                "model",
                "mode",
                "thought",
                "mcp",
                "quota",
                "tasks",
                "lab-review",
                "init",
                "plain"
            ]
        );
        assert_eq!(
            list[10],
            json!({"name": "lab-review", "description": "Review", "input": {"hint": "path"}})
        );
        assert_eq!(list[11], json!({"name": "init", "description": "A command of the engine"}));
    }
}
