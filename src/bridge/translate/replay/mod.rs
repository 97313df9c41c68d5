//! PURE. A stored conversation as ACP updates, in order and one message at a time (bridge behaviour
//! 6.5). The engine's reply stays one text: messages are looked at in place and only the one that
//! is being shown becomes a value tree, so that a huge history needs little memory beside itself.
//!
//! A session that was just resumed hands out a growing beginning of its history. That beginning is
//! told at once; later reads ([`Replay::absorb`]) bring what was missing, and need the end only.
//! Called by the session machine for `session/load` and `session/load_earlier`.

mod message;
mod plumbing;

use std::collections::HashMap;
use std::ops::Range;

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

/// A part of a stored conversation, over the engine's replies as they came.
#[derive(Debug)]
pub struct Replay {
    replies: Vec<Box<str>>,
    messages: Vec<Entry>,
    start: usize,
    end: usize,
    /// The next message to tell.
    next: usize,
    /// The last message as it was told, when it has grown since.
    unfinished: Option<(usize, Entry)>,
    wanted: Wanted,
}

#[derive(Debug, Clone)]
struct Entry {
    /// In which reply it stands, and where.
    reply: usize,
    span: Range<usize>,
    id: Option<String>,
    starts_turn: bool,
}

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow, default)]
    messages: Vec<&'a RawValue>,
}

/// What a later reply says of a history ([`Replay::absorb`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The same end as before.
    None,
    /// There are more messages, or the last one was not finished.
    Some,
    /// Less than was there already: a read that failed.
    Lost,
}

impl Replay {
    /// Reads the reply of `session/messages` (or a snapshot). A message that comes twice keeps its
    /// first place and its latest content; one that cannot be read is left out.
    pub fn new(reply: Box<str>, wanted: Wanted) -> Result<Self, ReplayError> {
        let messages = entries(&reply, 0)?;
        let mut replay = Self {
            replies: vec![reply],
            messages,
            start: 0,
            end: 0,
            next: 0,
            unfinished: None,
            wanted,
        };
        replay.find_bounds()?;
        replay.next = replay.start;
        Ok(replay)
    }

    fn find_bounds(&mut self) -> Result<(), ReplayError> {
        let messages = &self.messages;
        self.end = match &self.wanted.before {
            Some(cursor) => position(cursor, messages)?,
            None => messages.len(),
        };
        self.start = match self.wanted.limit.map(|limit| limit.min(LIMIT)) {
            None => 0,
            Some(0) => self.end,
            Some(limit) => turn_start(messages, self.end.saturating_sub(limit)),
        };
        Ok(())
    }

    /// The message after which to ask for the end of the history again; `None`: ask for all of it.
    pub fn anchor(&self) -> Option<&str> {
        self.messages.last()?.id.as_ref()?;
        self.messages.iter().rev().nth(1)?.id.as_deref()
    }

    /// Takes a later read of the history in: its end, if [`Self::anchor`] was asked for, else all
    /// of it. What it brings is told by [`Self::next`]: the messages that are new, and what the
    /// last one, if it was told, has more.
    pub fn absorb(&mut self, reply: Box<str>) -> Result<Growth, ReplayError> {
        let found = entries(&reply, self.replies.len())?;
        let known = self.messages.len();
        let grown = match self.anchor() {
            Some(_) => self.extend(found, &reply),
            None => self.replace(found, &reply),
        };
        self.replies.push(reply);
        // Nothing was told yet of a part: which part it is depends on the end.
        let untold = self.next == self.start && self.wanted.limit.is_some();
        if grown != Growth::None || self.messages.len() != known {
            self.find_bounds()?;
        }
        if untold {
            self.next = self.start;
        }
        Ok(grown)
    }

    /// All messages again.
    fn replace(&mut self, found: Vec<Entry>, reply: &str) -> Growth {
        if found.len() < self.messages.len() {
            return Growth::Lost;
        }
        let last = self.messages.len().checked_sub(1);
        let changed = last.is_some_and(|at| {
            let now = found.get(at).and_then(|entry| reply.get(entry.span.clone()));
            now != self.messages.get(at).map(|entry| self.text(entry))
        });
        let grown = changed || found.len() > self.messages.len();
        for (at, entry) in found.into_iter().enumerate() {
            match self.messages.get_mut(at) {
                None => self.messages.push(entry),
                Some(before) if at >= self.next => *before = entry,
                Some(_) if Some(at) == last && changed => self.tell_again(at, entry),
                Some(_) => {}
            }
        }
        if grown { Growth::Some } else { Growth::None }
    }

    /// The last message and what follows it.
    fn extend(&mut self, found: Vec<Entry>, reply: &str) -> Growth {
        let last = self.messages.len().saturating_sub(1);
        let places: HashMap<String, usize> = (self.messages.iter().enumerate())
            .filter_map(|(at, entry)| Some((entry.id.clone()?, at)))
            .collect();
        let (mut grown, mut seen) = (false, false);
        for entry in found {
            match entry.id.as_ref().and_then(|id| places.get(id).copied()) {
                None => {
                    grown = true;
                    self.messages.push(entry);
                }
                Some(at) if at == last => {
                    seen = true;
                    let now = reply.get(entry.span.clone()).unwrap_or_default();
                    if self.messages.get(at).is_some_and(|before| self.text(before) != now) {
                        grown = true;
                        self.tell_again(at, entry);
                    }
                }
                // Its latest content, unless it was told.
                Some(at) if at >= self.next => self.tell_again(at, entry),
                Some(_) => {}
            }
        }
        match (grown, seen) {
            (true, _) => Growth::Some,
            (false, true) => Growth::None,
            (false, false) => Growth::Lost,
        }
    }

    /// A message has changed.
    fn tell_again(&mut self, at: usize, now: Entry) {
        let was_told = at < self.next;
        let Some(entry) = self.messages.get_mut(at) else { return };
        let before = std::mem::replace(entry, now);
        if was_told {
            self.unfinished.get_or_insert((at, before));
        }
    }

    /// True when all that is known was told.
    pub fn is_told(&self) -> bool {
        self.next >= self.end && self.unfinished.is_none()
    }

    /// Gives the text back that was told, but for the last message, which may still grow.
    pub fn forget_told(&mut self) {
        if !self.is_told() || self.end != self.messages.len() {
            return;
        }
        let last = self.messages.last().map(|entry| Box::<str>::from(self.text(entry)));
        if let (Some(entry), Some(text)) = (self.messages.last_mut(), &last) {
            (entry.reply, entry.span) = (0, 0..text.len());
        }
        self.replies = last.into_iter().collect();
    }

    fn text(&self, entry: &Entry) -> &str {
        let reply = self.replies.get(entry.reply);
        reply.and_then(|it| it.get(entry.span.clone())).unwrap_or_default()
    }

    fn updates(&self, at: usize, entry: &Entry, target: &Target) -> Vec<acp::SessionUpdate> {
        let place = message::Place { index: at, is_earlier: self.wanted.before.is_some() };
        match serde_json::from_str::<Value>(self.text(entry)) {
            Ok(value) => message::updates(&value, place, target),
            Err(_) => Vec::new(),
        }
    }

    /// The next message's size in the reply and its updates, oldest first; `None` after the last.
    pub fn next(&mut self, target: &Target) -> Option<(usize, Vec<acp::SessionUpdate>)> {
        if let Some((at, before)) = self.unfinished.take() {
            let now = self.messages.get(at)?;
            let told = self.updates(at, &before, target);
            let updates = message::rest(told, self.updates(at, now, target));
            return Some((now.span.len(), updates));
        }
        let at = self.next;
        let entry = self.messages.get(at).filter(|_| at < self.end)?;
        let updates = self.updates(at, entry, target);
        let size = entry.span.len();
        self.next += 1;
        Some((size, updates))
    }

    /// Messages in all, after doubles were joined.
    pub fn total(&self) -> usize {
        self.messages.len()
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
fn entries(reply: &str, number: usize) -> Result<Vec<Entry>, ReplayError> {
    let base = reply.as_ptr().addr();
    let found: Reply<'_> = serde_json::from_str(reply)?;
    let mut messages: Vec<Entry> = Vec::with_capacity(found.messages.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    for raw in found.messages {
        let Some(info) = plumbing::info(raw.get()) else { continue };
        // A raw value is a piece of the text it was read from.
        let begin = raw.get().as_ptr().addr() - base;
        let entry = Entry {
            reply: number,
            span: begin..begin + raw.get().len(),
            id: info.id().map(str::to_owned),
            starts_turn: info.starts_turn(),
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
