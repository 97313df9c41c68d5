//! PURE. Tool cards: created at the first event of any kind for an id, exactly once; updated;
//! ended exactly once. Late events of an ended card are ignored. Called by [`super::Translator`]
//! and, for names, titles and kinds, by `permission` and `replay`.

mod background;
mod card;
mod facts;
mod printed;

use std::collections::{HashMap, VecDeque};

use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

use super::recent::Recent;
use super::{Output, Target, diff, output};
use crate::bridge::engine::event::{StreamKind, Streaming, ToolPhase, ToolProgress, ToolUpdated};
use card::Card;
pub use facts::{is_edit, is_shell, is_subagent, kind, locations, output_content, title};

/// How many ended calls are remembered, so that late events do not open them again.
const REMEMBERED: usize = 4096;
/// How many of earlier turns.
const EARLIER: usize = 256;
/// How many subagent sessions are remembered with the card they run under.
const CHILDREN: usize = 512;
/// Streamed input beyond this is dropped: the whole input comes with the call anyway.
const INPUT_LIMIT: usize = 8 * 1024 * 1024;

/// Why open cards are closed without a result of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardEnd {
    /// The turn completed; the result was lost or never sent.
    Completed,
    /// The turn was cancelled.
    Cancelled,
    /// The turn failed.
    Failed,
    /// The engine is gone.
    EngineLost,
    /// The bridge ends, background work with it.
    Shutdown,
    /// The client closed the session, and the engine its background work.
    Closed,
}

impl CardEnd {
    fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::EngineLost => "engineLost",
            Self::Shutdown => "shutdown",
            Self::Closed => "closed",
        }
    }
}

/// What is known of a call when its card is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewCard<'a> {
    /// The call.
    pub id: &'a str,
    /// The engine's tool name.
    pub name: Option<&'a str>,
    /// The call's input.
    pub input: Option<&'a Value>,
    /// The card it runs inside.
    pub parent: Option<&'a str>,
    /// A title in place of the usual one.
    pub title: Option<&'a str>,
    /// Content in place of the usual one.
    pub content: Option<&'a [acp::ToolCallContent]>,
    /// More `_meta`.
    pub meta: Option<&'a acp::Meta>,
}

/// The session's cards.
#[derive(Debug)]
pub struct Cards {
    open: HashMap<String, Card>,
    /// Cards made so far; the newest has the highest number.
    made: u64,
    ended: Recent,
    /// Subagent session to the card it runs under.
    children: HashMap<String, String>,
    children_order: VecDeque<String>,
    /// Running background task to its card.
    tasks: HashMap<String, String>,
    ended_tasks: Recent,
}

impl Default for Cards {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            made: 0,
            ended: Recent::new(REMEMBERED),
            children: HashMap::new(),
            children_order: VecDeque::new(),
            tasks: HashMap::new(),
            ended_tasks: Recent::new(REMEMBERED),
        }
    }
}

impl Cards {
    /// A turn begins: of the calls before it little more is to come.
    pub fn begin_turn(&mut self) {
        self.ended.keep_newest(EARLIER);
        self.ended_tasks.keep_newest(EARLIER);
    }

    /// A tool kind of `model.streaming`. Returns true when a card was made.
    pub fn on_stream(&mut self, stream: &Streaming, target: &Target, out: &mut Output) -> bool {
        let Some(id) = stream.tool_call_id.as_deref().filter(|id| !id.is_empty()) else {
            return false;
        };
        if self.ended.contains(id) {
            return false;
        }
        let new = NewCard {
            id,
            name: stream.tool_name.as_deref(),
            input: stream.input.as_ref(),
            ..NewCard::default()
        };
        match stream.kind {
            StreamKind::ToolInputStart => self.make(new, Stage::Pending, target, out),
            StreamKind::ToolInputDelta => {
                let made = self.make(new, Stage::Pending, target, out);
                if let Some(card) = self.open.get_mut(id) {
                    card.stream_input(&stream.delta, target, out);
                }
                made
            }
            StreamKind::ToolInputEnd | StreamKind::ToolCall => {
                let made = self.make(new, Stage::Pending, target, out);
                if let Some(card) = self.open.get_mut(id) {
                    card.learn(new);
                    card.settle_input(target, out);
                }
                made
            }
            _ => false,
        }
    }

    /// `tool.updated`. Returns true when a card was made.
    pub fn on_tool(&mut self, tool: &ToolUpdated, target: &Target, out: &mut Output) -> bool {
        if let ToolPhase::Batch { tool_call_ids, error_count } = &tool.phase {
            self.on_batch(tool_call_ids, *error_count, target, out);
            return false;
        }
        let id = tool.tool_call_id.as_str();
        if id.is_empty() || self.ended.contains(id) {
            return false;
        }
        let parent = self.parent_of(tool);
        let new = NewCard {
            id,
            name: tool.tool_name.as_deref(),
            input: match &tool.phase {
                ToolPhase::Scheduled { input } => input.as_ref(),
                _ => None,
            },
            parent: parent.as_deref(),
            title: None,
            content: None,
            meta: None,
        };
        let stage = match tool.phase {
            ToolPhase::Scheduled { .. } => Stage::Pending,
            ToolPhase::Other => return false,
            _ => Stage::Running,
        };
        let made = self.make(new, stage, target, out);
        if let Some(child) = tool.child_session_id.as_deref()
            && tool.source.as_deref() != Some("subagent")
        {
            self.adopt(child, id);
        }
        let Some(card) = self.open.get_mut(id) else {
            return made;
        };
        card.background |= tool.background;
        if !made {
            card.learn(new);
        }
        match &tool.phase {
            ToolPhase::Scheduled { .. } => card.settle_input(target, out),
            ToolPhase::Started => {
                card.settle_input(target, out);
                card.start(target, out);
            }
            ToolPhase::Progress(progress) => card.progress(progress, target, out),
            ToolPhase::Output { at, text } => {
                card.settle_input(target, out);
                card.piece(*at, text, target, out);
            }
            ToolPhase::Result { result, duration } => {
                card.settle_input(target, out);
                if card.finish(result, *duration, target, out) {
                    self.end(id);
                }
            }
            ToolPhase::Error { error } => {
                card.settle_input(target, out);
                card.fail(&output::error_text(error), target, out);
                self.end(id);
            }
            ToolPhase::Batch { .. } | ToolPhase::Other => {}
        }
        made
    }

    /// Makes a card for a call that is about to be asked about. Returns true when it was made.
    pub fn ensure(&mut self, new: NewCard<'_>, target: &Target, out: &mut Output) -> bool {
        if new.id.is_empty() || self.ended.contains(new.id) {
            return false;
        }
        let made = self.make(new, Stage::Pending, target, out);
        if !made && let Some(card) = self.open.get_mut(new.id) {
            card.learn(new);
            card.settle_input(target, out);
        }
        made
    }

    /// The diff of an edit, read after its result.
    pub fn on_edit_display(&self, id: &str, display: &Value, target: &Target, out: &mut Output) {
        let Some(found) = diff::from_display(display, target) else {
            return;
        };
        if !self.ended.contains(id) && !self.open.contains_key(id) {
            return;
        }
        let mut fields = acp::ToolCallUpdateFields::new().locations(found.locations);
        if !found.content.is_empty() {
            fields = fields.content(found.content);
        }
        let update = acp::ToolCallUpdate::new(id.to_owned(), fields).meta(parent_meta(target));
        out.push(acp::SessionUpdate::ToolCallUpdate(update));
    }

    /// Ends every open card; background work only when nothing goes on without the turn.
    pub fn close_open(&mut self, end: CardEnd, target: &Target, out: &mut Output) {
        let all = matches!(end, CardEnd::Shutdown | CardEnd::Closed | CardEnd::EngineLost);
        let mut ids: Vec<String> = self
            .open
            .iter()
            .filter(|(_, card)| all || !card.background)
            .map(|(id, _)| id.clone())
            .collect();
        ids.sort_by_key(|id| self.open.get(id).map(|card| card.ordinal));
        for id in ids {
            if let Some(card) = self.open.get_mut(&id) {
                card.close(end, target, out);
            }
            self.end(&id);
        }
    }

    /// Open cards that are not background work.
    pub fn open_count(&self) -> usize {
        self.open.values().filter(|card| !card.background).count()
    }

    /// The newest running card.
    pub fn running(&self) -> Option<&str> {
        self.open
            .iter()
            .filter(|(_, card)| card.is_running() && !card.background)
            .max_by_key(|(_, card)| card.ordinal)
            .map(|(id, _)| id.as_str())
    }

    fn make(&mut self, new: NewCard<'_>, stage: Stage, target: &Target, out: &mut Output) -> bool {
        if self.open.contains_key(new.id) {
            return false;
        }
        let card = Card::open(new, stage, self.made, target, out);
        self.made += 1;
        self.open.insert(new.id.to_owned(), card);
        true
    }

    fn end(&mut self, id: &str) {
        if let Some(task) = self.open.remove(id).and_then(|card| card.task) {
            self.tasks.remove(&task);
            self.ended_tasks.insert(&task);
        }
        self.ended.insert(id);
    }

    /// A batch tells only that its calls have ended; it knows no content.
    fn on_batch(&mut self, ids: &[String], errors: u64, target: &Target, out: &mut Output) {
        for id in ids {
            if let Some(card) = self.open.get_mut(id).filter(|card| !card.background) {
                card.settle(errors > 0, target, out);
                self.end(id);
            }
        }
    }

    fn adopt(&mut self, child: &str, card: &str) {
        if self.children.insert(child.to_owned(), card.to_owned()).is_none() {
            self.children_order.push_back(child.to_owned());
            if self.children_order.len() > CHILDREN
                && let Some(oldest) = self.children_order.pop_front()
            {
                self.children.remove(&oldest);
            }
        }
    }

    /// The card a subagent's call runs inside: named, or by its child session.
    fn parent_of(&self, tool: &ToolUpdated) -> Option<String> {
        if let Some(parent) = &tool.parent_tool_call_id {
            return Some(parent.clone());
        }
        let named = tool.child_session_id.clone();
        let child = named.or_else(|| facts::child_session(&tool.tool_call_id))?;
        let parent = self.children.get(&child)?;
        (parent != &tool.tool_call_id).then(|| parent.clone())
    }
}

/// The status a card is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Pending,
    Running,
}

/// `_meta` of updates that belong under a card of the parent session.
pub fn parent_meta(target: &Target) -> Option<acp::Meta> {
    let parent = target.parent_tool_call.as_deref()?;
    Some(tool_meta(None, Some(parent)))
}

/// `_meta.claudeCode` with the tool's name and its parent card, the spelling editors know.
pub fn tool_meta(name: Option<&str>, parent: Option<&str>) -> acp::Meta {
    let mut inner = acp::Meta::new();
    if let Some(name) = name {
        inner.insert("toolName".into(), json!(name));
    }
    if let Some(parent) = parent {
        inner.insert("parentToolUseId".into(), json!(parent));
    }
    let mut meta = acp::Meta::new();
    if !inner.is_empty() {
        meta.insert("claudeCode".into(), Value::Object(inner));
    }
    meta
}

/// A sign of life on the card of a call that is silent.
pub fn still_running(id: &str) -> acp::SessionUpdate {
    let fields = acp::ToolCallUpdateFields::new().status(acp::ToolCallStatus::InProgress);
    acp::SessionUpdate::ToolCallUpdate(acp::ToolCallUpdate::new(id.to_owned(), fields))
}

#[cfg(test)]
mod background_tests;
#[cfg(test)]
mod tests;
