//! PURE. What the result text of a subagent tool tells about the subagent (engine protocol
//! section 6): its id and its usage lines. Called by `tool` and `replay`.

use serde_json::{Value, json};

/// Facts read from a subagent's result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubagentResult {
    /// The subagent.
    pub agent_id: Option<String>,
    /// It goes on in the background.
    pub background: bool,
    /// Tokens it used.
    pub tokens: Option<u64>,
    /// Tools it called.
    pub tool_uses: Option<u64>,
    /// Milliseconds it took.
    pub duration_ms: Option<u64>,
}

impl SubagentResult {
    /// The value of `_meta.subagent`.
    pub fn to_meta(&self) -> Value {
        let mut map = serde_json::Map::new();
        if let Some(id) = &self.agent_id {
            map.insert("agentId".into(), json!(id));
        }
        if self.background {
            map.insert("background".into(), json!(true));
        }
        for (key, value) in [
            ("tokens", self.tokens),
            ("toolUses", self.tool_uses),
            ("durationMs", self.duration_ms),
        ] {
            if let Some(value) = value {
                map.insert(key.into(), json!(value));
            }
        }
        Value::Object(map)
    }
}

/// Reads the facts; `None` when the text names neither an agent nor its tokens.
pub fn from_result(text: &str) -> Option<SubagentResult> {
    let agent_id = after(text, "agentId")
        .map(|rest| rest.trim_start_matches(['"', ':', ' ']))
        .map(|rest| take(rest, |c| c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .filter(|id| !id.is_empty())
        .map(str::to_owned);
    let usage = after(text, "<usage>").unwrap_or(text);
    let number = |key: &str| {
        let rest = after(usage, key)?.trim_start_matches(['"', ':', ' ']);
        take(rest, |c| c.is_ascii_digit()).parse().ok()
    };
    let tokens = number("subagent_tokens").or_else(|| number("total_tokens"));
    if agent_id.is_none() && tokens.is_none() {
        return None;
    }
    let background =
        ["background", "async_launched", "backgroundTaskId"].iter().any(|word| text.contains(word));
    Some(SubagentResult {
        agent_id,
        background,
        tokens,
        tool_uses: number("tool_uses"),
        duration_ms: number("duration_ms"),
    })
}

fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark).map(|(_, rest)| rest)
}

fn take(text: &str, wanted: impl Fn(char) -> bool) -> &str {
    text.split(|c| !wanted(c)).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_id_and_usage_lines_are_read_from_the_result() {
        let text = "Found it.\nagentId: agent_12ab (for resuming)\n<usage>subagent_tokens: 1200 tool_uses: 3 duration_ms: 4500</usage>";
        let got = from_result(text).unwrap();
        assert_eq!(
            got.to_meta(),
            json!({"agentId": "agent_12ab", "tokens": 1200, "toolUses": 3, "durationMs": 4500})
        );
    }

    #[test]
    fn a_background_launch_is_marked() {
        let got = from_result("async_launched agentId: agent_9\noutput_file: /tmp/x").unwrap();
        assert_eq!(got.to_meta(), json!({"agentId": "agent_9", "background": true}));
    }

    #[test]
    fn a_text_without_either_says_nothing() {
        for text in ["", "done in background", "agentId: ", "tool_uses: 3"] {
            assert_eq!(from_result(text), None, "{text}");
        }
    }
}
