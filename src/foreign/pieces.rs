//! PURE. Pieces of text that came together, joined: a client that shows them need not take in each.
//!
//! Owns [`Pieces`]. Only what was there to be read at once is joined, so nothing is ever held back,
//! and only adjacent pieces of one message and one kind, so nothing changes its place. Called by
//! the reader of another agent's output.

use std::borrow::Cow;

use agent_client_protocol::{RawJsonRpcMessage, RawJsonRpcNotification, RawJsonRpcParams};
use serde::Deserialize;
use serde_json::{Value, json};

/// Bytes of text after which what follows is a message of its own.
const ENOUGH: usize = 4096;

/// What is joined so far.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    session: String,
    kind: &'static str,
    message: Option<String>,
    text: String,
    /// Bytes of the lines that it came in.
    bytes: usize,
}

impl Pieces {
    /// Takes a line that is a piece of text and nothing besides. When it does not go on from what
    /// is held, that is returned first. `Err` when the line is something else.
    pub(super) fn take(&mut self, line: &[u8]) -> Result<Option<Whole>, ()> {
        let piece: Line<'_> = serde_json::from_slice(line).map_err(drop)?;
        let kind = piece.kind().ok_or(())?;
        let Params { session_id, update } = piece.params;
        if let Some(held) = &mut self.held
            && held.kind == kind
            && held.text.len() < ENOUGH
            && held.session == session_id
            && held.message.as_deref() == update.message_id.as_deref()
        {
            held.text.push_str(&update.content.text);
            held.bytes += line.len();
            return Ok(None);
        }
        let next = Held {
            session: session_id.into_owned(),
            kind,
            message: update.message_id.map(Cow::into_owned),
            text: update.content.text.into_owned(),
            bytes: line.len(),
        };
        Ok(self.held.replace(next).map(Held::into_whole))
    }

    /// Gives out what is held.
    pub(super) fn end(&mut self) -> Option<Whole> {
        self.held.take().map(Held::into_whole)
    }
}

/// A message, and the bytes of the lines that it came in.
pub(super) type Whole = (RawJsonRpcMessage, usize);

impl Held {
    fn into_whole(self) -> Whole {
        let mut update = json!({
            "sessionUpdate": self.kind,
            "content": {"type": "text", "text": self.text},
        });
        if let (Some(message), Some(update)) = (self.message, update.as_object_mut()) {
            update.insert("messageId".to_owned(), message.into());
        }
        let params =
            [("sessionId".to_owned(), Value::from(self.session)), ("update".to_owned(), update)];
        let params = Some(RawJsonRpcParams::Object(params.into_iter().collect()));
        let method = "session/update".into();
        let message = RawJsonRpcNotification { method, params };
        (RawJsonRpcMessage::Notification(message), self.bytes)
    }
}

/// A line with a piece of text. Whatever else is in it makes it another message.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    update: Update<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow, rename = "sessionUpdate")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    message_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    content: Content<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

impl Line<'_> {
    /// Its kind, when it is what its fields make it look like.
    fn kind(&self) -> Option<&'static str> {
        let is_text = self.jsonrpc == "2.0"
            && self.method == "session/update"
            && self.params.update.content.kind == "text";
        ["agent_message_chunk", "agent_thought_chunk"]
            .into_iter()
            .find(|kind| is_text && self.params.update.kind == *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(session: &str, kind: &str, message: Option<&str>, text: &str) -> Vec<u8> {
        let mut update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        if let Some(message) = message {
            update["messageId"] = message.into();
        }
        let params = json!({"sessionId": session, "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string().into()
    }

    fn of(line: &[u8]) -> RawJsonRpcMessage {
        serde_json::from_slice(line).unwrap()
    }

    #[test]
    fn adjacent_pieces_of_one_message_are_one_and_nothing_changes_its_place() {
        let (say, think) = ("agent_message_chunk", "agent_thought_chunk");
        let lines = [
            line("s", say, None, "a\n\"b\" "),
            line("s", say, None, "中"),
            line("s", think, None, "hm"),
            line("s", say, None, "c"),
            line("s", say, Some("m"), "d"),
            line("s", say, Some("m"), "e"),
            line("t", say, Some("m"), "f"),
        ];
        let mut pieces = Pieces::default();
        let mut out: Vec<Whole> = Vec::new();
        for line in &lines {
            out.extend(pieces.take(line).unwrap());
        }
        out.extend(pieces.end());
        assert_eq!(pieces.end(), None);
        let expected = [
            line("s", say, None, "a\n\"b\" 中"),
            line("s", think, None, "hm"),
            line("s", say, None, "c"),
            line("s", say, Some("m"), "de"),
            line("t", say, Some("m"), "f"),
        ];
        let expected: Vec<RawJsonRpcMessage> = expected.iter().map(|line| of(line)).collect();
        let bytes: usize = out.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(out.into_iter().map(|(message, _)| message).collect::<Vec<_>>(), expected);
        assert_eq!(bytes, lines.iter().map(Vec::len).sum::<usize>());
    }

    #[test]
    fn what_is_more_than_a_piece_of_text_is_left_alone() {
        let text = json!({"type": "text", "text": "a"});
        let update = |update: Value| {
            let params = json!({"sessionId": "s", "update": update});
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
        };
        let mut odd = update(json!({"sessionUpdate": "agent_message_chunk", "content": text}));
        odd["id"] = 1.into();
        for other in [
            odd,
            update(json!({"sessionUpdate": "user_message_chunk", "content": text})),
            update(json!({"sessionUpdate": "agent_message_chunk", "content": text, "_meta": {}})),
            update(
                json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "text": "a"}}),
            ),
            update(
                json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a", "annotations": null}}),
            ),
            json!({"jsonrpc": "2.0", "method": "session/other", "params": {}}),
        ] {
            assert_eq!(Pieces::default().take(other.to_string().as_bytes()), Err(()), "{other}");
        }
    }

    #[test]
    fn a_message_does_not_grow_without_end() {
        let mut pieces = Pieces::default();
        let mut count = 0;
        for _ in 0..1_000 {
            let line = line("s", "agent_message_chunk", None, &"x".repeat(100));
            count += usize::from(pieces.take(&line).unwrap().is_some());
        }
        assert_eq!(count, 1_000 * 100 / (ENOUGH + 4));
    }
}
