//! PURE. What a tool's name and input tell: kind, title, locations (bridge behaviour 3.2, 3.3).

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

use super::super::{Target, diff, output};

/// Titles are cut to this many characters; a command is kept whole (its first line).
const SUMMARY: usize = 60;

/// The ACP kind of an engine tool.
pub fn kind(name: &str) -> acp::ToolKind {
    match name {
        "Bash" | "bash" | "Shell" | "shell" | "PowerShell" => acp::ToolKind::Execute,
        "Edit" | "edit" | "Write" | "write" | "MultiEdit" | "NotebookEdit" | "ApplyPatch"
        | "apply_patch" => acp::ToolKind::Edit,
        "Read" | "read" | "NotebookRead" | "ReadMcpResource" => acp::ToolKind::Read,
        "Grep" | "grep" | "Glob" | "glob" | "LS" | "ToolSearch" => acp::ToolKind::Search,
        "WebFetch" | "web_fetch" | "WebSearch" | "web_search" => acp::ToolKind::Fetch,
        "ExitPlanMode" | "EnterPlanMode" => acp::ToolKind::SwitchMode,
        _ => acp::ToolKind::Other,
    }
}

/// True for tools that run a command line.
pub fn is_shell(name: &str) -> bool {
    kind(name) == acp::ToolKind::Execute
}

/// True for tools that change files.
pub fn is_edit(name: &str) -> bool {
    kind(name) == acp::ToolKind::Edit
}

/// True for tools that start a subagent.
pub fn is_subagent(name: &str) -> bool {
    matches!(name, "Agent" | "Task" | "agent" | "task")
}

/// `<tool>: <summary of the input>`, or the tool's name alone.
pub fn title(name: Option<&str>, input: Option<&Value>) -> String {
    let name = name.unwrap_or("Tool");
    match input.and_then(summary) {
        Some(summary) => format!("{name}: {summary}"),
        None => name.to_owned(),
    }
}

/// What an input is about, on one line.
fn summary(input: &Value) -> Option<String> {
    match input {
        Value::Null => None,
        Value::String(text) => Some(cut(text)).filter(|t| !t.is_empty()),
        Value::Object(map) if map.is_empty() => None,
        Value::Object(map) => {
            let text =
                |key: &str| map.get(key).and_then(Value::as_str).filter(|t| !t.trim().is_empty());
            if let Some(command) = text("command") {
                return Some(one_line(command));
            }
            if let Some(list) = map.get("todos").and_then(Value::as_array) {
                return to_do(list);
            }
            // A plan is known by its heading; its markdown on one line says nothing.
            if let Some(heading) = text("plan").and_then(first_words) {
                return Some(cut(heading));
            }
            ["description", "query", "file_path", "path", "pattern", "url", "prompt"]
                .iter()
                .find_map(|key| text(key))
                .map_or_else(|| Some(cut(&input.to_string())), |found| Some(cut(found)))
        }
        other => Some(cut(&other.to_string())),
    }
}

/// How far a to-do list is, and what is being done: the list itself is the plan.
fn to_do(list: &[Value]) -> Option<String> {
    let is = |it: &Value, status: &str| it.get("status").and_then(Value::as_str) == Some(status);
    let done = list.iter().filter(|it| is(it, "completed")).count();
    let now = list.iter().find(|it| is(it, "in_progress"));
    let words = now.and_then(|it| it.get("content")).and_then(Value::as_str);
    let count = (!list.is_empty()).then(|| format!("{done} of {} done", list.len()))?;
    Some(words.map_or(count.clone(), |words| cut(&format!("{count} · {words}"))))
}

/// True for tools that write the to-do list.
pub(super) fn is_to_do(name: &str) -> bool {
    name.to_ascii_lowercase().contains("todo")
}

/// The first line that says something, without a heading's marks.
fn first_words(markdown: &str) -> Option<&str> {
    markdown.lines().map(|line| line.trim().trim_start_matches('#').trim()).find(|l| !l.is_empty())
}

/// The text on one line: line breaks would break a card's title.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cut as bridge behaviour 3.3 has it, without a mark: a client that cuts on its own adds one.
pub(super) fn cut(text: &str) -> String {
    one_line(text).chars().take(SUMMARY).collect()
}

/// The files that an input names, as absolute paths.
pub fn locations(name: Option<&str>, input: &Value, target: &Target) -> Vec<acp::ToolCallLocation> {
    let Some(path) = diff::path_of(input).and_then(|p| target.absolute(p)) else {
        return Vec::new();
    };
    let reads = name.is_some_and(|n| kind(n) == acp::ToolKind::Read);
    let line = reads.then(|| {
        let offset = input.get("offset").and_then(Value::as_u64).unwrap_or(1);
        u32::try_from(offset.max(1)).unwrap_or(u32::MAX)
    });
    vec![acp::ToolCallLocation::new(path).line(line)]
}

/// A tool's output as card content: what a tool prints is shown as it was printed, what it says
/// is text.
pub fn output_content(
    name: Option<&str>,
    text: &str,
    failed: bool,
) -> Option<acp::ToolCallContent> {
    let is_json = text.starts_with(['{', '[']);
    match name.map(kind).unwrap_or_default() {
        acp::ToolKind::Execute => output::fenced("console", text),
        _ if failed => output::fenced("", text),
        acp::ToolKind::Read | acp::ToolKind::Search => output::fenced("", text),
        _ if is_json => output::fenced("json", text),
        _ => output::plain(text),
    }
}

/// The child session that a call id of the form `tool_subagent_<uuid>_call_<hex>` belongs to.
pub(super) fn child_session(tool_call_id: &str) -> Option<String> {
    let rest = tool_call_id.strip_prefix("tool_subagent_")?;
    let (uuid, _) = rest.split_once("_call_")?;
    (!uuid.is_empty()).then(|| format!("sess_subagent_{uuid}"))
}

/// The value of the first complete summary key in a JSON text that is still being streamed.
pub(super) fn early_title(name: Option<&str>, partial: &str) -> Option<String> {
    let keys = ["\"command\"", "\"file_path\"", "\"path\"", "\"url\"", "\"pattern\""];
    let (at, key) = keys.iter().filter_map(|key| partial.find(key).map(|at| (at, key))).min()?;
    let rest = partial.get(at + key.len()..)?.trim_start().strip_prefix(':')?;
    let rest = rest.trim_start();
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let value = values.next()?.ok()?;
    let short = if *key == "\"command\"" { one_line(&value) } else { cut(&value) };
    Some(format!("{}: {short}", name.unwrap_or("Tool")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_card_is_titled_by_what_its_input_is_about() {
        for (name, input, title) in [
            ("Bash", json!({"command": "ls -la\npwd", "description": "x"}), "Bash: ls -la pwd"),
            (
                "ExitPlanMode",
                json!({"plan": "\n# Plan: greet\n\n1. x"}),
                "ExitPlanMode: Plan: greet",
            ),
            ("ExitPlanMode", json!({"plan": "##\n\n- one"}), "ExitPlanMode: - one"),
            ("Read", json!({"file_path": "/a/b"}), "Read: /a/b"),
            (
                "TodoWrite",
                json!({"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]}),
                "TodoWrite: 1 of 2 done · b",
            ),
            ("TodoWrite", json!({"todos": [{"content": "a"}]}), "TodoWrite: 0 of 1 done"),
            ("TodoWrite", json!({"todos": []}), "TodoWrite"),
            ("Odd", json!({"n": 1}), "Odd: {\"n\":1}"),
            ("Odd", json!({}), "Odd"),
            ("Odd", json!({"query": "q".repeat(80)}), &format!("Odd: {}", "q".repeat(60))),
            ("Bash", json!({"command": "c".repeat(80)}), &format!("Bash: {}", "c".repeat(80))),
        ] {
            assert_eq!(super::title(Some(name), Some(&input)), title);
        }
    }
}
