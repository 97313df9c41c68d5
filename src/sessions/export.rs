//! A session's updates as text: the same transcript that the chat shows, and its source.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

use crate::tui::model::transcript::{Transcript, source};
use crate::tui::update::acp as reducer;

/// The conversation as markdown.
pub(super) fn markdown(updates: &[Value]) -> String {
    let mut transcript = Transcript::default();
    for update in updates {
        let _shown = match serde_json::from_value::<acp::SessionUpdate>(update.clone()) {
            Ok(update) => reducer::apply(&mut transcript, &update, 0),
            Err(_) => reducer::apply_unknown(&mut transcript, update, 0),
        };
    }
    // Nothing is spilled to a disk here: there is no store.
    let chunks = source::of_conversation(&transcript);
    let mut text = source::assemble(&chunks, &mut |_| None);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Writes a file that was not there, for the user alone: a conversation may hold anything.
pub(super) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conversation_is_markdown_and_what_is_unknown_is_kept() {
        let chunk = |kind: &str, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        let text = markdown(&[
            chunk("user_message_chunk", "What is it?"),
            chunk("agent_message_chunk", "A **table"),
            chunk("agent_message_chunk", "**."),
            json!({"sessionUpdate": "something_new", "value": 7}),
        ]);
        assert!(text.contains("What is it?") && text.contains("A **table**."), "{text}");
        assert!(text.contains("something_new"), "{text}");
    }

    #[test]
    fn a_file_that_is_there_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("talk.md");
        write_new(&path, "a").unwrap();
        assert!(write_new(&path, "b").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a");
    }
}
