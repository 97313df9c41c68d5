//! What a turn amounts to, gathered from its ACP updates. Pure: JSON in, facts out. Reads raw JSON,
//! so that any agent's updates are understood as far as they go. Called by `run`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Everything a run reports in the end.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The reply's text.
    pub text: String,
    /// Tool calls by id, each the merge of its updates.
    tools: BTreeMap<String, Value>,
    /// Model requests seen so far: a reply after tools is a new one.
    rounds: u64,
    in_reply: bool,
    /// Id of the message whose text came last.
    message: Option<String>,
    /// Whether something other than text came since.
    interrupted: bool,
    /// Tool calls that were denied, for people.
    pub denied: Vec<String>,
}

/// Stands between two messages of a reply.
pub(super) const PARAGRAPH: &str = "\n\n";

/// What an update means for the screen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News<'a> {
    /// Text of the reply, and whether another message begins with it.
    Text { begins: bool, text: &'a str },
    /// A tool call began, by its title.
    Tool(String),
    /// Nothing to show.
    Nothing,
}

impl Turn {
    /// Takes the `update` object of a `session/update`.
    pub(super) fn take<'a>(&mut self, update: &'a Value) -> News<'a> {
        let text = |key: &str| update.get(key).and_then(Value::as_str);
        match text("sessionUpdate") {
            Some("agent_message_chunk") => {
                self.reply();
                let content = update.get("content");
                let chunk = content.and_then(|c| c.get("text")).and_then(Value::as_str);
                let chunk = chunk.unwrap_or_default();
                let id = text("messageId");
                let other = id.is_some() && self.message.as_deref() != id;
                let begins = (other || self.interrupted)
                    && !self.text.is_empty()
                    && !self.text.ends_with('\n')
                    && !chunk.is_empty();
                if !chunk.is_empty() {
                    self.message = id.map(str::to_owned);
                    self.interrupted = false;
                }
                if begins {
                    self.text.push_str(PARAGRAPH);
                }
                self.text.push_str(chunk);
                News::Text { begins, text: chunk }
            }
            Some("agent_thought_chunk") => {
                self.reply();
                News::Nothing
            }
            Some("tool_call" | "tool_call_update") => {
                let Some(id) = text("toolCallId") else { return News::Nothing };
                if !self.in_reply && self.rounds == 0 {
                    self.rounds = 1;
                }
                self.in_reply = false;
                self.interrupted = true;
                let known = self.tools.contains_key(id);
                let tool = self.tools.entry(id.to_owned()).or_insert_with(|| json!({}));
                merge(tool, update);
                // Somebody else was asked, and said no.
                if update.pointer("/_meta/zcode/permission/decision").is_some_and(|it| it == "deny")
                {
                    let title = tool.get("title").and_then(Value::as_str).unwrap_or(id);
                    self.denied.push(title.to_owned());
                }
                if known {
                    return News::Nothing;
                }
                News::Tool(tool.get("title").and_then(Value::as_str).unwrap_or(id).to_owned())
            }
            _ => News::Nothing,
        }
    }

    fn reply(&mut self) {
        if !self.in_reply {
            self.rounds += 1;
        }
        self.in_reply = true;
    }

    /// Model requests so far, as far as updates show them.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// A tool call as known so far, with the fields of `newer` on top.
    pub(super) fn tool_with(&self, newer: &Value) -> Value {
        let id = newer.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        let mut tool = self.tools.get(id).cloned().unwrap_or_else(|| json!({}));
        merge(&mut tool, newer);
        tool
    }

    /// Files that completed tool calls changed, each once, sorted.
    pub(super) fn files_changed(&self) -> Vec<String> {
        let mut files = std::collections::BTreeSet::new();
        for tool in self.tools.values() {
            if tool.get("status").and_then(Value::as_str) != Some("completed") {
                continue;
            }
            let of = |key: &str| tool.get(key).and_then(Value::as_array).into_iter().flatten();
            let path = |value: &Value| value.get("path").and_then(Value::as_str).map(str::to_owned);
            files.extend(
                of("content")
                    .filter(|content| content.get("type").and_then(Value::as_str) == Some("diff"))
                    .filter_map(path),
            );
            if matches!(tool.get("kind").and_then(Value::as_str), Some("edit" | "delete" | "move"))
            {
                files.extend(of("locations").filter_map(path));
            }
        }
        files.into_iter().collect()
    }
}

/// Later fields replace earlier ones; `null` says nothing.
fn merge(tool: &mut Value, update: &Value) {
    let (Some(tool), Some(update)) = (tool.as_object_mut(), update.as_object()) else { return };
    for (key, value) in update {
        if !value.is_null() {
            drop(tool.insert(key.clone(), value.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(updates: &[Value]) -> Turn {
        let mut turn = Turn::default();
        for update in updates {
            let _news = turn.take(update);
        }
        turn
    }

    fn chunk(text: &str) -> Value {
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
    }

    #[test]
    fn the_reply_is_the_sum_of_its_chunks() {
        let turn = after(&[
            chunk("a"),
            json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "no"}}),
            json!({"sessionUpdate": "something_new", "content": 5}),
            json!("not even an object"),
            chunk("b"),
        ]);
        assert_eq!(turn.text, "ab");
    }

    #[test]
    fn messages_are_kept_apart() {
        let of = |id: &str, text: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"text": text}});
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "1"});
        assert_eq!(after(&[of("1", "a"), of("1", "b"), of("2", "c")]).text, "ab\n\nc");
        assert_eq!(after(&[chunk("a"), call.clone(), chunk("b")]).text, "a\n\nb");
        assert_eq!(after(&[of("1", "a\n"), of("2", "b")]).text, "a\nb");
        assert_eq!(after(&[call, chunk("a")]).text, "a");
    }

    #[test]
    fn a_reply_after_tools_is_another_model_request() {
        let call = |id: &str| json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": id});
        assert_eq!(after(&[chunk("a"), chunk("b")]).rounds(), 1);
        assert_eq!(after(&[call("1")]).rounds(), 1);
        assert_eq!(after(&[chunk("a"), call("1"), call("2"), chunk("b")]).rounds(), 2);
    }

    #[test]
    fn only_what_completed_edits_touched_counts_as_changed() {
        let tool = |id: &str, kind: &str, status: &str, path: &str| {
            json!({"sessionUpdate": "tool_call", "toolCallId": id, "kind": kind, "status": status,
                   "locations": [{"path": path}]})
        };
        let turn = after(&[
            tool("1", "edit", "in_progress", "/b"),
            tool("2", "read", "completed", "/r"),
            tool("3", "edit", "failed", "/f"),
            tool("4", "other", "completed", "/x"),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed", "title": null}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "4",
                   "content": [{"type": "diff", "path": "/a", "newText": "x"}]}),
        ]);
        assert_eq!(turn.files_changed(), ["/a", "/b"]);
    }
}
