//! PURE. What the bridge itself has to say: a notice to clients that have notices, a thought to the
//! others, so that the agent's answer stays the agent's. Called by the session machine.

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

use super::ClientTraits;

/// How grave it is.
pub use acp::NoticeSeverity as Severity;

/// One notice. `id` names the message for clients that get a thought.
pub fn notice(
    traits: &ClientTraits,
    severity: Severity,
    title: &str,
    description: Option<&str>,
    id: &str,
) -> acp::SessionUpdate {
    if traits.notices {
        let description = description.map(str::to_owned);
        let notice = acp::Notice::new(severity, title.to_owned()).description(description);
        return acp::SessionUpdate::Notice(notice);
    }
    let text = match description {
        Some(description) => format!("{title}\n{description}\n"),
        None => format!("{title}\n"),
    };
    let content = acp::ContentBlock::Text(acp::TextContent::new(text));
    let chunk =
        acp::ContentChunk::new(content).message_id(acp::MessageId::new(format!("notice_{id}")));
    acp::SessionUpdate::AgentThoughtChunk(chunk)
}

/// What the bridge answers to a command: ordinary agent text in a message of its own.
pub fn reply(text: &str, id: &str) -> acp::SessionUpdate {
    let content = acp::ContentBlock::Text(acp::TextContent::new(text));
    let chunk = acp::ContentChunk::new(content).message_id(acp::MessageId::new(id));
    acp::SessionUpdate::AgentMessageChunk(chunk)
}

/// The engine's retry status (`api_retry`) in words: title and description.
pub fn retry_words(status: &Value) -> (String, Option<String>) {
    let number = |key: &str| status.get(key).and_then(Value::as_u64);
    let count = match (number("attempt"), number("maxRetries")) {
        (Some(attempt), Some(max)) => format!(" ({attempt} of {max})"),
        (Some(attempt), None) => format!(" ({attempt})"),
        _ => String::new(),
    };
    let delay = match number("retryDelayMs") {
        Some(ms) if ms >= 100 => format!(" in {}.{} s", ms / 1000, ms % 1000 / 100),
        _ => String::new(),
    };
    let error = status.get("error").map(super::output::error_text).filter(|t| !t.is_empty());
    let code = number("errorStatus").map(|s| format!("HTTP {s}"));
    let words = match (code, error) {
        (Some(code), Some(error)) => Some(format!("{code}: {error}")),
        (code, error) => code.or(error.map(std::borrow::Cow::into_owned)),
    };
    (format!("The model request failed; trying again{delay}{count}"), words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn clients_without_notices_get_a_thought() {
        let traits = ClientTraits { notices: true, ..ClientTraits::default() };
        let got = notice(&traits, Severity::Warning, "Title", Some("More"), "n1");
        assert_eq!(
            serde_json::to_value(got).unwrap(),
            json!({"sessionUpdate": "notice", "severity": "warning", "title": "Title", "description": "More"})
        );
        let got = notice(&ClientTraits::default(), Severity::Warning, "Title", Some("More"), "n1");
        assert_eq!(
            serde_json::to_value(got).unwrap(),
            json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Title\nMore\n"}, "messageId": "notice_n1"})
        );
    }

    #[test]
    fn a_retry_is_told_with_what_is_known() {
        for (status, title, words) in [
            (
                json!({"attempt": 2, "maxRetries": 5, "retryDelayMs": 4500, "errorStatus": 429, "error": "slow down"}),
                "The model request failed; trying again in 4.5 s (2 of 5)",
                Some("HTTP 429: slow down"),
            ),
            (json!({"attempt": 1}), "The model request failed; trying again (1)", None),
            (json!({}), "The model request failed; trying again", None),
        ] {
            assert_eq!(retry_words(&status), (title.to_owned(), words.map(str::to_owned)));
        }
    }
}
