//! PURE. A stored conversation as ACP updates, in order and one message at a time (bridge behaviour
//! 6.5). The engine's reply stays one text: messages are looked at in place and only the one that
//! is being shown becomes a value tree, so that a huge history needs little memory beside itself.
//! Called by the session machine for `session/load` and `session/load_earlier`.

mod message;
mod plumbing;

use std::collections::HashMap;
use std::ops::{Deref, Range};

use agent_client_protocol::v1::schema as acp;
use base64::Engine as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Target;

/// `limit` is clamped to this.
const LIMIT: usize = 500;

/// Which part of the history is wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The last so many messages, from a turn's start on; 0 is none, `None` is all.
    pub limit: Option<usize>,
    /// Only messages before this one ([`Replay::meta`]'s cursor).
    pub before: Option<String>,
    /// The session's last turn is still running.
    pub turn_active: bool,
}

/// Why a history cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The engine's reply is not a list of messages.
    #[error("The engine's message list cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The cursor does not fit this history.
    #[error("The cursor is expired; load the session again.")]
    CursorExpired,
}

/// A part of a stored conversation, over the engine's reply as one text.
#[derive(Debug)]
pub struct Replay<S> {
    reply: S,
    messages: Vec<Entry>,
    start: usize,
    end: usize,
    /// The next message to tell.
    next: usize,
    /// Where the last turn that is told begins.
    wanted: Wanted,
}

#[derive(Debug)]
struct Entry {
    span: Range<usize>,
    id: Option<String>,
    starts_turn: bool,
}

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow, default)]
    messages: Vec<&'a RawValue>,
}

impl<S: Deref<Target = str>> Replay<S> {
    /// Reads the reply of `session/messages` (or a snapshot). A message that comes twice keeps its
    /// first place and its latest content; one that cannot be read is left out.
    pub fn new(reply: S, wanted: Wanted) -> Result<Self, ReplayError> {
        let messages = entries(&reply)?;
        let end = match &wanted.before {
            Some(cursor) => position(cursor, &messages)?,
            None => messages.len(),
        };
        let start = match wanted.limit.map(|limit| limit.min(LIMIT)) {
            None => 0,
            Some(0) => end,
            Some(limit) => turn_start(&messages, end.saturating_sub(limit)),
        };
        Ok(Self { reply, messages, start, end, next: start, wanted })
    }

    /// The next message's size in the reply and its updates, oldest first; `None` after the last.
    pub fn next(&mut self, target: &Target) -> Option<(usize, Vec<acp::SessionUpdate>)> {
        let at = self.next;
        let entry = self.messages.get(at).filter(|_| at < self.end)?;
        self.next += 1;
        let place = message::Place { index: at, is_earlier: self.wanted.before.is_some() };
        let text = self.reply.get(entry.span.clone()).unwrap_or_default();
        let updates = match serde_json::from_str::<Value>(text) {
            Ok(value) => message::updates(&value, place, target),
            Err(_) => Vec::new(),
        };
        Some((text.len(), updates))
    }

    /// Messages in all, after doubles were joined.
    pub fn total(&self) -> usize {
        self.messages.len()
    }

    /// The id of the newest message: the anchor that later reads start from.
    pub fn anchor(&self) -> Option<&str> {
        self.messages.iter().rev().find_map(|m| m.id.as_deref())
    }

    /// `replayMeta`: what was shown and how to get what is before it.
    pub fn meta(&self) -> Value {
        let turns = |from: usize, to: usize| {
            let shown = self.messages.get(from..to).unwrap_or_default();
            shown.iter().filter(|m| m.starts_turn).count()
        };
        let total_turns = turns(0, self.messages.len());
        let cursor = self.messages.get(self.start).filter(|_| self.start > 0).map(|first| {
            let cursor =
                json!({"v": 1, "id": first.id, "index": self.start, "totalTurns": total_turns});
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(cursor.to_string())
        });
        // With nothing shown the cursor is the end itself.
        let cursor = cursor.or_else(|| {
            (self.start == self.messages.len() && self.start > 0).then(|| {
                let cursor = json!({"v": 1, "index": self.start, "totalTurns": total_turns});
                base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(cursor.to_string())
            })
        });
        json!({
            "cursor": cursor,
            "hasMore": self.start > 0,
            "replayedMessages": self.end - self.start,
            "replayedTurns": turns(self.start, self.end),
            "totalMessages": self.messages.len(),
            "totalTurns": total_turns,
            "turnActive": self.wanted.turn_active,
        })
    }
}

/// Finds the messages in the reply's text.
fn entries(reply: &str) -> Result<Vec<Entry>, ReplayError> {
    let base = reply.as_ptr().addr();
    let found: Reply<'_> = serde_json::from_str(reply)?;
    let mut messages: Vec<Entry> = Vec::with_capacity(found.messages.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    for raw in found.messages {
        let Ok(head) = serde_json::from_str::<plumbing::Head>(raw.get()) else {
            continue;
        };
        // A raw value is a piece of the text it was read from.
        let begin = raw.get().as_ptr().addr() - base;
        let entry = Entry {
            span: begin..begin + raw.get().len(),
            id: head.info.id().map(str::to_owned),
            starts_turn: head.info.starts_turn(),
        };
        let known = entry.id.as_ref().and_then(|id| places.get(id)).copied();
        if let Some(known) = known.and_then(|at| messages.get_mut(at)) {
            *known = entry;
            continue;
        }
        if let Some(id) = &entry.id {
            places.insert(id.clone(), messages.len());
        }
        messages.push(entry);
    }
    Ok(messages)
}

/// The nearest turn start at or before a message.
fn turn_start(messages: &[Entry], at: usize) -> usize {
    (0..=at).rev().find(|at| messages.get(*at).is_some_and(|m| m.starts_turn)).unwrap_or(0)
}

/// Where a cursor points. A history that shrank or changed there has outlived it.
fn position(cursor: &str, messages: &[Entry]) -> Result<usize, ReplayError> {
    let expired = || ReplayError::CursorExpired;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(cursor)
        .map_err(|_bad| expired())?;
    let cursor: Value = serde_json::from_slice(&bytes).map_err(|_bad| expired())?;
    let index = cursor.get("index").and_then(Value::as_u64).and_then(|i| usize::try_from(i).ok());
    let index = index.filter(|i| *i <= messages.len()).ok_or_else(expired)?;
    let id = cursor.get("id").and_then(Value::as_str);
    match messages.get(index) {
        Some(message) if id.is_some() && message.id.as_deref() != id => Err(expired()),
        _ => Ok(index),
    }
}

#[cfg(test)]
mod tests;
