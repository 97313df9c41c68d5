//! PURE. Tool output: from the engine's result values to text, from text to card content, from
//! cumulative tails to pieces, and the exit code (engine protocol section 10). Called by `tool`.

use std::borrow::Cow;

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

/// Card content is cut to this many bytes (head and tail kept): a client holds every card.
const CONTENT_LIMIT: usize = 256 * 1024;
/// What a running command shows is its end.
const RUNNING_LIMIT: usize = 8 * 1024;
/// `rawOutput` repeats the text only this far.
const RAW_LIMIT: usize = 2000;
/// A result with one of these keys says by them what it has to say …
const SAYING: [&str; 5] = ["content", "stdout", "stderr", "error", "message"];
/// … and these are about it, so that one with no others says nothing.
const ABOUT: [&str; 10] = [
    "success",
    "perf",
    "display",
    "duration",
    "truncated",
    "originalBytes",
    "returnedBytes",
    "budgetStrategy",
    "exitCode",
    "isError",
];
/// How much of a sent tail is kept to find where the next one goes on.
const WINDOW: usize = 4096;

/// The text of a result: a string as it is, else what it printed and why it failed, else the JSON of a shape that says
/// neither. A result with an empty content is an empty text, whatever else it tells.
pub fn result_text(result: &Value) -> Cow<'_, str> {
    let map = match result {
        Value::Null => return Cow::Borrowed(""),
        Value::String(text) => return Cow::Borrowed(text),
        Value::Object(map) => map,
        other => return Cow::Owned(other.to_string()),
    };
    let content = match map.get("content") {
        Some(content) => content_text(content),
        None => joined(
            ["stdout", "stderr"]
                .map(|key| map.get(key).and_then(Value::as_str).unwrap_or_default()),
        ),
    };
    let failed = map.get("success") == Some(&Value::Bool(false));
    if failed || content.trim().is_empty() {
        let keys = ["error", "message"];
        let error =
            keys.iter().find_map(|key| map.get(*key).map(error_text).filter(|it| !it.is_empty()));
        if let Some(error) = error {
            return Cow::Owned(joined([&content, &error]).into_owned());
        }
    }
    // A success whose text is there and empty has nothing to say, whatever stands beside it.
    let silent = !failed && map.keys().any(|key| SAYING.contains(&key.as_str()));
    let known = |key: &str| SAYING.contains(&key) || ABOUT.contains(&key);
    if content.is_empty() && !silent && !map.keys().all(|key| known(key)) {
        return Cow::Owned(result.to_string());
    }
    content
}

/// Two texts one below the other; one that has the other in it stands for both.
pub fn joined([above, below]: [&str; 2]) -> Cow<'_, str> {
    if below.trim().is_empty() || above.contains(below.trim_end()) {
        return Cow::Borrowed(above);
    }
    if above.trim().is_empty() || below.contains(above.trim_end()) {
        return Cow::Borrowed(below);
    }
    Cow::Owned(format!("{}\n{below}", above.trim_end()))
}

/// `content` is a string, or content blocks as MCP tools return them.
fn content_text(content: &Value) -> Cow<'_, str> {
    match content {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks
                .iter()
                .filter_map(|b| b.as_str().or_else(|| b.get("text").and_then(Value::as_str)))
                .collect();
            if texts.is_empty() && !blocks.is_empty() {
                Cow::Owned(content.to_string())
            } else {
                Cow::Owned(texts.join("\n"))
            }
        }
        other => Cow::Owned(other.to_string()),
    }
}

/// The words of an error value.
pub fn error_text(error: &Value) -> Cow<'_, str> {
    match error {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        Value::Object(map) => ["message", "detail", "error", "type"]
            .iter()
            .find_map(|key| map.get(*key).and_then(Value::as_str))
            .map_or_else(|| Cow::Owned(error.to_string()), Cow::Borrowed),
        other => Cow::Owned(other.to_string()),
    }
}

/// The exit code of a finished command, in the order of section 10; `None` when nothing says it.
pub fn exit_code(result: &Value) -> Option<i64> {
    let at = |pointer: &str| result.pointer(pointer);
    if let Some(code) = at("/perf/exitCode").and_then(Value::as_i64) {
        return Some(code);
    }
    if let Some(code) = at("/perf/detail/command/exitCode").and_then(Value::as_i64) {
        return Some(code);
    }
    let failed = at("/perf/detail/command/status").and_then(Value::as_str) == Some("failed");
    if failed || result.get("success") == Some(&Value::Bool(false)) {
        return Some(1);
    }
    let whole = result.as_str().or_else(|| at("/content")?.as_str())?;
    whole.strip_prefix("Exit code ")?.parse().ok()
}

/// True when the result itself says that the tool failed.
pub fn is_failure(result: &Value) -> bool {
    result.get("success") == Some(&Value::Bool(false))
        || result.get("isError") == Some(&Value::Bool(true))
}

/// A text block for a card, cut to what a card may hold. `None` for empty text, which must not
/// replace what is there.
pub fn plain(text: &str) -> Option<acp::ToolCallContent> {
    let text = text.trim_end();
    (!text.is_empty()).then(|| block(shorten(text, CONTENT_LIMIT).into_owned()))
}

/// The same inside a code fence that the text cannot close.
pub fn fenced(language: &str, text: &str) -> Option<acp::ToolCallContent> {
    let text = text.trim_end();
    if text.is_empty() {
        return None;
    }
    let text = shorten(text, CONTENT_LIMIT);
    let fence = "`".repeat(longest_run(&text, '`').max(2) + 1);
    Some(block(format!("{fence}{language}\n{text}\n{fence}")))
}

/// What a running command has printed so far: the end of it.
pub fn running(tails: &[&str]) -> Option<acp::ToolCallContent> {
    let mut text = String::new();
    for tail in tails.iter().filter(|t| !t.is_empty()) {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(last_bytes(tail, RUNNING_LIMIT));
    }
    fenced("console", &text)
}

/// The words for `rawOutput`, short.
pub fn raw_excerpt(text: &str) -> Cow<'_, str> {
    shorten(text, RAW_LIMIT)
}

fn block(text: String) -> acp::ToolCallContent {
    acp::ToolCallContent::from(acp::ContentBlock::Text(acp::TextContent::new(text)))
}

fn longest_run(text: &str, wanted: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// The end of `text`, at most `limit` bytes, from a character boundary on.
pub fn last_bytes(text: &str, limit: usize) -> &str {
    let at = text.ceil_char_boundary(text.len().saturating_sub(limit));
    text.get(at..).unwrap_or_default()
}

/// `text` with its middle left out when it is longer than `limit` bytes.
pub fn shorten(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let head = text.get(..text.floor_char_boundary(limit / 2)).unwrap_or_default();
    let tail = last_bytes(text, limit / 2);
    let left_out = text.len() - head.len() - tail.len();
    Cow::Owned(format!("{head}\n… {left_out} bytes left out …\n{tail}"))
}

/// Where a stream of cumulative snapshots ("tails") stands. Each snapshot repeats what was
/// there before, possibly with its beginning cut off.
#[derive(Debug, Default, Clone)]
pub struct Tail {
    len: usize,
    window: String,
}

impl Tail {
    /// True when nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The part of a new snapshot that was not there before.
    pub fn advance<'a>(&mut self, snapshot: &'a str) -> &'a str {
        let from = self.end_in(snapshot).unwrap_or(0);
        let fresh = snapshot.get(from..).unwrap_or_default();
        if !fresh.is_empty() {
            self.len = snapshot.len();
            last_bytes(snapshot, WINDOW).clone_into(&mut self.window);
        }
        fresh
    }

    /// The part of a piece at byte `at` of the whole that was not there before.
    pub fn advance_at<'a>(&mut self, at: usize, piece: &'a str) -> &'a str {
        let skip = self.len.saturating_sub(at).min(piece.len());
        let fresh = piece.get(piece.ceil_char_boundary(skip)..).unwrap_or_default();
        if !fresh.is_empty() {
            self.len = self.len.max(at) + fresh.len();
            self.window.push_str(fresh);
            if self.window.len() > 2 * WINDOW {
                self.window = last_bytes(&self.window, WINDOW).to_owned();
            }
        }
        fresh
    }

    /// Where what was seen ends in `text`: as a prefix, else by its longest overlap.
    fn end_in(&self, text: &str) -> Option<usize> {
        if self.window.is_empty() {
            return Some(0);
        }
        let start = self.len - self.window.len();
        if text.get(start..self.len) == Some(self.window.as_str()) {
            return Some(self.len);
        }
        if let Some(at) = text.rfind(&self.window) {
            return Some(at + self.window.len());
        }
        // The snapshot begins inside the window: the longest end of the window it starts with.
        (0..self.window.len())
            .filter_map(|at| self.window.get(at..))
            .find(|end| text.starts_with(end))
            .map(str::len)
    }
}
