//! PURE. Scripts: what a turn of the simulated engine does, as data, and which one a prompt picks.
//! The built-in ones live in `assets/sim/`; tests and bug reports add their own by `--script`.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Steps, shared between the library and the players that run them.
pub(super) type Steps = Arc<[Step]>;

/// One turn as data.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Script {
    /// How `/demo <name>` finds it.
    pub(super) name: String,
    /// Words or phrases that pick it, lower case; CJK ones match anywhere.
    #[serde(default)]
    pub(super) keywords: Vec<String>,
    /// One line for the list of what can be typed; empty hides the script.
    #[serde(default)]
    pub(super) help: String,
    /// The title that the engine generates after the session's first turn.
    #[serde(default)]
    pub(super) title: Option<String>,
    /// What happens.
    pub(super) steps: Steps,
}

/// Text as one string or as lines.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Text {
    One(String),
    Lines(Vec<String>),
}

impl Default for Text {
    fn default() -> Self {
        Self::One(String::new())
    }
}

impl Text {
    /// The whole text.
    pub(super) fn joined(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Lines(lines) => lines.join("\n"),
        }
    }
}

/// One thing that happens in a turn.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum Step {
    /// Thought text, streamed.
    Think(Text),
    /// Message text, streamed.
    Say(Text),
    /// Silence, in ms.
    Wait(u64),
    /// One tool call.
    Tool(Box<ToolStep>),
    /// Several tool calls of one model request.
    Together(Vec<ToolStep>),
    /// An Edit call with its diff.
    Edit(Box<EditStep>),
    /// A plan to approve.
    Plan(Box<PlanStep>),
    /// Questions to the user.
    Ask(Box<AskStep>),
    /// The todo list as it is now.
    Todos(Vec<TodoStep>),
    /// A subagent.
    Subagent(Box<SubagentStep>),
    /// A Bash command in the background.
    Background(Box<BackgroundStep>),
    /// The turn fails with this error.
    Fail(Value),
    /// The turn fails so many times in this session, then goes on.
    FailFirst { times: u64, error: Value },
    /// The model request fails and is retried by the engine.
    Retry(RetryStep),
    /// A lot of text; the size is the prompt's number, else this many bytes.
    Flood { bytes: u64 },
    /// A `session/event` as it stands.
    Event {
        #[serde(rename = "type")]
        kind: String,
        payload: Value,
    },
    /// A row that only V4 has, of a kind that no other step makes (`hookInvocation`, `artifact`).
    Row { kind: String, fields: Value },
    /// The newest rows are taken back.
    RowsRemoved(usize),
    /// A whole message as it stands, any notification.
    Notify(Value),
    /// A line as it stands, whether it is a message or not.
    Line(String),
    /// A request that no host knows.
    Request { method: String, params: Value },
    /// The context is now filled to this many percent of its window.
    Fill(u64),
    /// The engine's own title for the session.
    Title(String),
    /// Plan mode, entered or left by the agent's own tool.
    PlanMode(bool),
    /// The same steps again; `${i}` counts from 1.
    Repeat { times: u64, steps: Steps },
    /// The process ends at once with this status.
    Die(i32),
    /// Sequence numbers are skipped.
    SeqGap(u64),
    /// The session is evicted from memory when the turn ends.
    Evict,
    /// The turn ends with this result type.
    End(String),
    /// The list of what can be typed.
    Menu,
}

/// A tool call.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ToolStep {
    pub(super) name: String,
    pub(super) input: Map<String, Value>,
    pub(super) description: Option<String>,
    pub(super) permission: Option<PermissionStep>,
    pub(super) progress: Vec<ProgressStep>,
    /// Milliseconds until the result, after the progress.
    pub(super) takes: u64,
    pub(super) result: Text,
    /// Exit status, for commands.
    pub(super) exit: Option<i64>,
    pub(super) success: Option<bool>,
    pub(super) display: Option<Value>,
    /// Ends with an `error` event instead of a result.
    pub(super) error: Option<Text>,
    /// No `scheduled` and `started` events (some builds leave them out).
    pub(super) bare: bool,
    /// Goes on here when the permission was refused.
    pub(super) denied: Option<Steps>,
    /// Goes on here when the call has run.
    pub(super) granted: Option<Steps>,
    /// What is written when the call runs; never from data, only for an edit that was asked for.
    #[serde(skip)]
    pub(super) write: Option<super::player::WriteFile>,
}

/// The question before a tool runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PermissionStep {
    pub(super) reason: String,
    pub(super) risk: Option<String>,
    /// Another client answers after this many ms.
    pub(super) elsewhere_after: Option<u64>,
}

/// Some output of a running tool.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ProgressStep {
    pub(super) after: u64,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A file edit; written below the working directory only when the prompt asks for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EditStep {
    /// Relative to the session's working directory.
    pub(super) path: String,
    pub(super) old: Text,
    pub(super) new: Text,
    #[serde(default)]
    pub(super) permission: Option<PermissionStep>,
    #[serde(default)]
    pub(super) denied: Option<Steps>,
    #[serde(default)]
    pub(super) granted: Option<Steps>,
}

/// A plan and how the turn goes on after each answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PlanStep {
    pub(super) plan: Text,
    pub(super) approved: Steps,
    pub(super) rejected: Steps,
    /// `${answer}` is the feedback.
    pub(super) feedback: Steps,
}

/// Questions and how the turn goes on.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AskStep {
    pub(super) questions: Vec<QuestionStep>,
    /// `${answers}` is a list of them.
    pub(super) answered: Steps,
    pub(super) declined: Steps,
    /// An MCP server asks: `{serverName, requestedSchema}`.
    #[serde(default)]
    pub(super) elicitation: Option<Value>,
}

/// One question.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct QuestionStep {
    pub(super) question: String,
    pub(super) header: String,
    #[serde(default)]
    pub(super) options: Vec<Value>,
    #[serde(default)]
    pub(super) multi_select: bool,
}

/// One entry of the todo list.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TodoStep {
    pub(super) content: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) priority: Option<String>,
}

/// A subagent and its own turn.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SubagentStep {
    pub(super) kind: String,
    pub(super) description: String,
    pub(super) prompt: Text,
    pub(super) steps: Steps,
    /// What it reports to the caller.
    pub(super) summary: Text,
    #[serde(default)]
    pub(super) background: bool,
    /// How many of them (the prompt's number wins), for background ones.
    #[serde(default)]
    pub(super) count: Option<u64>,
    /// The turn that the engine starts when a background one has ended.
    #[serde(default)]
    pub(super) notification: Option<Steps>,
}

/// A command in the background.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BackgroundStep {
    pub(super) command: String,
    pub(super) description: String,
    #[serde(default)]
    pub(super) progress: Vec<ProgressStep>,
    /// `completed`, `failed`, `timed_out`, …
    pub(super) ends: String,
    /// The turn that the engine starts afterwards.
    pub(super) notification: Steps,
}

/// A model request that fails and is tried again.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RetryStep {
    pub(super) times: u64,
    pub(super) delay: u64,
    pub(super) status: u64,
    pub(super) error: String,
}

macro_rules! builtin {
    ($($file:literal),* $(,)?) => {
        &[$(($file, include_str!(concat!("../../../../assets/sim/", $file)))),*]
    };
}

const BUILTIN: &[(&str, &str)] = builtin![
    "showcase.json",
    "edit.json",
    "bash.json",
    "permission.json",
    "plan.json",
    "questions.json",
    "todos.json",
    "subagent.json",
    "background.json",
    "failures.json",
    "stress.json",
    "session.json",
];

/// All scripts that an engine knows.
#[derive(Debug, Clone)]
pub(super) struct Library {
    scripts: Vec<Arc<Script>>,
}

impl Library {
    /// Reads the extra scripts, then the built-in ones.
    pub(super) fn new(extra: &[String]) -> Result<Self, String> {
        let mut scripts = Vec::new();
        let named =
            extra.iter().map(|text| ("--script", text.as_str())).chain(BUILTIN.iter().copied());
        for (file, text) in named {
            let parsed: OneOrMany =
                serde_json::from_str(text).map_err(|e| format!("{file}: {e}"))?;
            match parsed {
                OneOrMany::Many(many) => scripts.extend(many.into_iter().map(Arc::new)),
                OneOrMany::One(one) => scripts.push(Arc::new(*one)),
            }
        }
        Ok(Self { scripts })
    }

    /// Returns the script of that name.
    pub(super) fn named(&self, name: &str) -> Option<Arc<Script>> {
        self.scripts.iter().find(|s| s.name == name).cloned()
    }

    /// Returns the script that the prompt asks for: `/demo <name>` and `demo:<name>` first, else the
    /// keyword that stands earliest (the longest of them), else the menu.
    pub(super) fn pick(&self, prompt: &str) -> Option<Arc<Script>> {
        let lower = prompt.to_lowercase();
        let words = words(&lower);
        let explicit = match words.as_slice() {
            ["demo" | "sim", name, ..] => self.named(name),
            _ => None,
        };
        if explicit.is_some() {
            return explicit;
        }
        let mut best: Option<(usize, usize, &Arc<Script>)> = None;
        for script in &self.scripts {
            for keyword in &script.keywords {
                let Some(at) = find_keyword(&lower, &words, keyword) else { continue };
                let longer = |b: &(usize, usize, _)| at < b.0 || (at == b.0 && keyword.len() > b.1);
                if best.as_ref().is_none_or(longer) {
                    best = Some((at, keyword.len(), script));
                }
            }
        }
        best.map(|(_, _, script)| Arc::clone(script)).or_else(|| self.named("menu"))
    }

    /// The list of what can be typed, as markdown.
    pub(super) fn menu(&self) -> String {
        let mut out = String::new();
        for script in self.scripts.iter().filter(|s| !s.help.is_empty()) {
            out.push_str("- `");
            out.push_str(&script.name);
            out.push_str("`: ");
            out.push_str(&script.help);
            out.push('\n');
        }
        out
    }

    /// Names of all scripts.
    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.scripts.iter().map(|s| s.name.as_str())
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    Many(Vec<Script>),
    One(Box<Script>),
}

fn words(lower: &str) -> Vec<&str> {
    lower
        .split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'))
        .filter(|w| !w.is_empty())
        .collect()
}

/// Returns at which word the keyword stands; phrases match word by word.
fn find_keyword(lower: &str, prompt: &[&str], keyword: &str) -> Option<usize> {
    if !keyword.is_ascii() {
        return lower.contains(keyword).then_some(0);
    }
    let wanted = words(keyword);
    if wanted.is_empty() {
        return None;
    }
    prompt.windows(wanted.len()).position(|window| window == wanted.as_slice())
}

/// Returns the first whole number in the prompt, with `k` and `m` understood.
pub(super) fn number_in(prompt: &str) -> Option<u64> {
    prompt.split(|c: char| !c.is_ascii_alphanumeric()).find_map(|word| {
        let lower = word.to_ascii_lowercase();
        let (digits, unit) = match lower.strip_suffix(['k', 'm']) {
            Some(digits) if lower.ends_with('k') => (digits.to_owned(), 1 << 10),
            Some(digits) => (digits.to_owned(), 1 << 20),
            None => (lower, 1),
        };
        digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit))
    })
}

/// Returns whether the prompt asks in so many words that files be written.
pub(super) fn asks_to_write(prompt: &str) -> bool {
    let lower = prompt.to_lowercase();
    let words = words(&lower);
    words
        .windows(2)
        .any(|w| matches!(w, ["for", "real"] | ["to", "disk"] | ["write", "it" | "file"]))
        || words.contains(&"really")
        || ["写入", "真的"].iter().any(|w| lower.contains(w))
}
