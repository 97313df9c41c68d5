//! PURE. File edits as ACP diffs with locations: from the engine's `display` (structured patch,
//! engine protocol section 10) and from a tool's own input. Called by `tool`, `permission`
//! and `replay`.

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

use super::Target;

/// Diffs and the places they touch.
#[derive(Debug, Default)]
pub struct FileDiff {
    /// Diff items of a card.
    pub content: Vec<acp::ToolCallContent>,
    /// File and line of each hunk.
    pub locations: Vec<acp::ToolCallLocation>,
}

/// Diffs of a `{kind: "file_diff", filePath, structuredPatch}` display: one per hunk, because the
/// lines between hunks are not known. `None` when it is not a diff or names no usable path.
pub fn from_display(display: &Value, target: &Target) -> Option<FileDiff> {
    if display.get("kind").and_then(Value::as_str) != Some("file_diff") {
        return None;
    }
    let path = target.absolute(display.get("filePath").and_then(Value::as_str)?)?;
    let mut found = FileDiff::default();
    let hunks = display.get("structuredPatch").and_then(Value::as_array);
    for hunk in hunks.map(Vec::as_slice).unwrap_or_default() {
        let (old, new) = sides(hunk);
        let number = |key: &str| hunk.get(key).and_then(Value::as_u64);
        let is_new = old.is_empty() && number("oldLines").unwrap_or(0) == 0;
        found.content.push(diff(&path, (!is_new).then_some(old), new));
        let line = number("newStart").and_then(|n| u32::try_from(n).ok());
        found.locations.push(acp::ToolCallLocation::new(path.clone()).line(line));
    }
    if found.locations.is_empty() {
        found.locations.push(acp::ToolCallLocation::new(path));
    }
    Some(found)
}

/// Old and new text of one hunk.
fn sides(hunk: &Value) -> (String, String) {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    let lines = hunk.get("lines").and_then(Value::as_array);
    for line in lines.into_iter().flatten().filter_map(Value::as_str) {
        match line.split_at_checked(1) {
            Some(("-", rest)) => old.push(rest),
            Some(("+", rest)) => new.push(rest),
            // "\ No newline at end of file" is a remark, not a line.
            Some(("\\", _)) => {}
            Some((" ", rest)) => {
                old.push(rest);
                new.push(rest);
            }
            _ => {
                old.push(line);
                new.push(line);
            }
        }
    }
    (old.join("\n"), new.join("\n"))
}

/// Diffs that an edit tool's own input describes, before it has run.
pub fn from_input(input: &Value, target: &Target) -> Vec<acp::ToolCallContent> {
    let text = |value: &Value, keys: &[&str]| {
        keys.iter().find_map(|key| value.get(*key).and_then(Value::as_str)).map(str::to_owned)
    };
    let Some(path) = path_of(input).and_then(|p| target.absolute(p)) else {
        return Vec::new();
    };
    let replacement = |value: &Value| {
        let new = text(value, &["new_string", "newString", "new_str"])?;
        let old = text(value, &["old_string", "oldString", "old_str"]).filter(|o| !o.is_empty());
        Some(diff(&path, old, new))
    };
    if let Some(edits) = input.get("edits").and_then(Value::as_array) {
        return edits.iter().filter_map(replacement).collect();
    }
    if let Some(one) = replacement(input) {
        return vec![one];
    }
    text(input, &["content", "new_source"]).map(|new| diff(&path, None, new)).into_iter().collect()
}

/// The file that a tool's input names.
pub fn path_of(input: &Value) -> Option<&str> {
    ["file_path", "filePath", "notebook_path", "path"]
        .iter()
        .find_map(|key| input.get(*key).and_then(Value::as_str))
        .filter(|path| !path.is_empty())
}

fn diff(path: &str, old: Option<String>, new: String) -> acp::ToolCallContent {
    acp::ToolCallContent::Diff(acp::Diff::new(path.to_owned(), new).old_text(old))
}
