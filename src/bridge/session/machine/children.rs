//! PURE. Subagents as they work: a V4 topic for each running child, its text, thoughts and tools shown under the card that
//! started it, or in a session of its own for clients that show those. Children of children go the same way. Bounded; without
//! V4 there are only the parent's own events about its children.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use serde_json::json;
use serde_json::value::RawValue;

use super::v4::Resyncs;
use super::{Cont, Effect, Machine};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::ToolUpdated;
use crate::bridge::engine::v4::commands::{self, Command, Subscribe};
use crate::bridge::engine::v4::rows::{Fact, RowHead, SubagentChange};
use crate::bridge::engine::v4::state::{Subagent, Subagents};
use crate::bridge::engine::v4::topic::{Ack, History, Resync, Topic};
use crate::bridge::engine::v4::wire::RowsRange;
use crate::bridge::session::failure;
use crate::bridge::translate::{CardEnd, Output, Translator, rows};

/// How many children are followed at once.
const MAX_CHILDREN: usize = 100;
/// How many ended children are remembered, so that they are not followed again.
const MAX_ENDED: usize = 1024;
/// How deep children of children are followed.
const MAX_DEPTH: u8 = 3;
/// Failed resyncs after which a child's topic is left alone.
const MAX_TRIES: u8 = 3;
/// How long the last frames of an ended child are waited for.
const LAST_FRAMES: Duration = Duration::from_secs(1);

/// One child that runs.
#[derive(Debug)]
struct Child {
    topic: Topic,
    translator: Translator,
    /// The card that started it.
    parent_call: Option<String>,
    /// The session that card stands in; ours, or another child's.
    parent_session: Option<String>,
    agent_id: Option<String>,
    depth: u8,
    end: Option<CardEnd>,
    /// Its own turn has ended: nothing more comes.
    turn_over: bool,
    /// Subscriptions that failed; at [`MAX_TRIES`] the parent's own events about it are all there is.
    failures: u8,
    resyncs: Resyncs,
    /// The state key named it once, and would no more once it has ended. Some builds name those of the background alone.
    listed: bool,
}

impl Child {
    /// Its own rows tell what it does.
    fn is_heard(&self) -> bool {
        self.failures < MAX_TRIES
    }
}

/// The children of a session.
#[derive(Debug, Default)]
pub(crate) struct Children {
    running: HashMap<String, Child>,
    ended: HashSet<String>,
    /// A child's call, by the id it has on the parent's legacy channel.
    announced: HashSet<String>,
    /// The child's calls that were shown from rows.
    from_rows: HashSet<String>,
}

impl Children {
    /// The sessions of those that run, in a steady order.
    pub(crate) fn running_ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.running.keys().map(String::as_str).collect();
        ids.sort_unstable();
        ids
    }

    /// Its turn has ended and so has its card, or the child it is a child of is gone, whose rows would have told.
    fn is_over(&self, id: &str) -> bool {
        self.running.get(id).is_some_and(|it| {
            let orphan =
                it.parent_session.as_ref().is_some_and(|parent| !self.running.contains_key(parent));
            it.turn_over && (it.end.is_some() || orphan)
        })
    }

    /// The children of a child that have not ended.
    fn left_by(&self, parent: &str) -> Vec<String> {
        let left = |it: &Child| it.parent_session.as_deref() == Some(parent) && it.end.is_none();
        let mut ids: Vec<String> =
            self.running.iter().filter(|(_, it)| left(it)).map(|(id, _)| id.clone()).collect();
        ids.sort_unstable();
        ids
    }
}

/// What is known when a child is first heard of.
#[derive(Debug, Default)]
struct Seen<'a> {
    child: &'a str,
    parent_call: Option<&'a str>,
    /// The child it is a child of; `None` for one of ours.
    parent: Option<&'a str>,
    agent_id: Option<&'a str>,
    title: Option<&'a str>,
    kind: Option<&'a str>,
}

impl Machine {
    /// The state key `subagents` of our own topic.
    pub(crate) fn on_subagents(&mut self, state: &Subagents) {
        for it in &state.running {
            self.see_child(&seen_in_state(it));
            if let Some(child) = self.v4.children.running.get_mut(&it.child_session_id) {
                child.listed = true;
            }
        }
        let running = |id: &str| state.running.iter().any(|it| it.child_session_id == id);
        let mut over: Vec<(String, CardEnd)> = Vec::new();
        for (id, child) in &self.v4.children.running {
            if child.parent_session.is_none() && child.end.is_none() && !running(id) {
                let ended = state
                    .ended
                    .iter()
                    .flat_map(|it| &it.items)
                    .find(|it| it.child_session_id == *id);
                if child.listed || ended.is_some() {
                    over.push((id.clone(), end_of(ended.and_then(|it| it.status.as_deref()))));
                }
            }
        }
        for (id, end) in over {
            self.child_ended(&id, end);
        }
    }

    /// A `subagent` row of our own topic.
    pub(crate) fn on_subagent_row(&mut self, head: &RowHead, change: &SubagentChange) {
        self.subagent_row(None, head, change);
    }

    fn subagent_row(&mut self, parent: Option<&str>, head: &RowHead, change: &SubagentChange) {
        let Some(child) = head.child_session_id.as_deref() else { return };
        if matches!(change.status.as_str(), "running" | "waiting" | "blocked") {
            self.see_child(&Seen {
                child,
                parent_call: head.parent_tool_call_id.as_deref(),
                parent,
                agent_id: None,
                title: change.title.as_deref(),
                kind: change.subagent_type.as_deref(),
            });
        } else {
            self.child_ended(child, end_of(Some(&change.status)));
        }
    }

    fn see_child(&mut self, seen: &Seen<'_>) {
        if let Some(child) = self.v4.children.running.get_mut(seen.child) {
            if child.agent_id.is_none() {
                child.agent_id = seen.agent_id.map(str::to_owned);
            }
            if child.parent_call.is_none()
                && let Some(call) = seen.parent_call
            {
                child.parent_call = Some(call.to_owned());
                let translator = std::mem::take(&mut child.translator);
                child.translator = if self.seed.traits.subagents {
                    translator
                } else {
                    translator.nested_under(call)
                };
            }
            return;
        }
        let depth =
            seen.parent.and_then(|it| Some(self.v4.children.running.get(it)?.depth)).unwrap_or(0)
                + 1;
        let full = self.v4.children.running.len() >= MAX_CHILDREN || depth > MAX_DEPTH;
        if full || seen.child.is_empty() || self.v4.children.ended.contains(seen.child) {
            return;
        }
        let name = commands::conversation_topic(seen.child);
        let child = Child {
            topic: Topic::new(name.as_str(), History::Show),
            translator: self.child_translator(seen.parent_call),
            parent_call: seen.parent_call.map(str::to_owned),
            parent_session: seen.parent.map(str::to_owned),
            agent_id: seen.agent_id.map(str::to_owned),
            depth,
            end: None,
            turn_over: false,
            failures: 0,
            resyncs: Resyncs::default(),
            listed: false,
        };
        self.v4.children.running.insert(seen.child.to_owned(), child);
        self.emit(Effect::Attach(seen.child.to_owned()));
        let params = Subscribe::new(&name, self.v4.connection_id(), None, None);
        self.call("v4/conversation/subscribe", json!(params), Cont::V4Subscribe { topic: name });
        if self.seed.traits.subagents {
            self.introduce(seen);
        }
    }

    /// A child shown in its parent is nested under the card; one with a session of its own stands alone.
    fn child_translator(&self, parent_call: Option<&str>) -> Translator {
        let mut traits = self.seed.traits.clone();
        traits.subagent_transcript = traits.takes_marked_text();
        let translator = Translator::new(traits).in_directory(self.seed.cwd.to_string_lossy());
        match parent_call {
            Some(call) if !self.seed.traits.subagents => translator.nested_under(call),
            _ => translator,
        }
    }

    /// Says that a child exists, before anything of its own.
    fn introduce(&mut self, seen: &Seen<'_>) {
        let title = seen.title.or(seen.kind).unwrap_or("Subagent").to_owned();
        let update = acp::SubagentUpdate::new(seen.child.to_owned())
            .title(title)
            .capabilities(
                acp::SubagentSessionCapabilities::new()
                    .cancel(acp::SessionCancelCapabilities::new()),
            )
            .state(acp::StateUpdate::Running(acp::RunningStateUpdate::new()));
        // Which card started it, in the words that clients nest by.
        let update = match seen.parent_call {
            Some(call) => {
                let mut meta = acp::Meta::new();
                meta.insert("claudeCode".to_owned(), json!({"parentToolUseId": call}));
                update.meta(meta)
            }
            None => update,
        };
        self.for_parent(seen.parent, acp::SessionUpdate::SubagentUpdate(update));
        if let Some(call) = seen.parent_call {
            let link =
                acp::ToolCallContent::Session(acp::SessionReference::new(seen.child.to_owned()));
            let fields = acp::ToolCallUpdateFields::new().content(vec![link]);
            let update = acp::ToolCallUpdate::new(call.to_owned(), fields);
            self.for_parent(seen.parent, acp::SessionUpdate::ToolCallUpdate(update));
        }
    }

    fn for_parent(&mut self, parent: Option<&str>, update: acp::SessionUpdate) {
        match parent {
            Some(session) => self.emit(Effect::ChildUpdate {
                session: session.to_owned(),
                update: Box::new(update),
            }),
            None => self.update(update),
        }
    }

    pub(crate) fn on_child_subscribed(
        &mut self,
        name: &str,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        let Some(id) = name.strip_prefix("conversation/").map(str::to_owned) else { return };
        let answer = reply.and_then(|raw| failure::parse(&raw)).ok();
        let ack = answer.and_then(|it| serde_json::from_value::<Ack>(it.get("ack")?.clone()).ok());
        let now = self.now.ms;
        let Some(child) = self.v4.children.running.get_mut(&id) else { return };
        let Some(ack) = ack else { return self.leave_child(&id) };
        let mut facts = Vec::new();
        let resync = child.topic.subscribed(&ack, now, &mut facts);
        self.child_facts(&id, &facts);
        if let Some(reason) = resync {
            self.resync_child(&id, &reason);
        }
    }

    pub(crate) fn on_child_frame(&mut self, name: &str, params: &RawValue) {
        let Some(id) = name.strip_prefix("conversation/") else { return };
        let now = self.now.ms;
        let heard = self.v4.children.running.get_mut(id).filter(|it| it.is_heard());
        let Some(child) = heard else { return };
        let mut facts = Vec::new();
        let resync = child.topic.on_frame(params.get(), now, &mut facts);
        self.child_facts(id, &facts);
        if let Some(reason) = resync {
            self.resync_child(id, &reason);
        }
    }

    fn resync_child(&mut self, id: &str, reason: &Resync) {
        let now = self.now.ms;
        let Some(child) = self.v4.children.running.get_mut(id) else { return };
        if !matches!(reason, Resync::Hole { .. }) && !child.resyncs.may_ask(now) {
            let topic = std::mem::replace(&mut child.topic, Topic::new("", History::Show));
            self.unsubscribe(&topic);
            return self.leave_child(id);
        }
        let Some(child) = self.v4.children.running.get(id) else { return };
        if let Resync::Hole { before, picture } = reason {
            let topic = child.topic.name().to_owned();
            return self.ask_for_rows(id, topic, before, *picture);
        }
        let params = super::v4::resync_params(&child.topic, self.v4.connection_id(), reason);
        self.call(
            "v4/conversation/resync",
            json!(params),
            Cont::V4ResyncChild { child: id.to_owned() },
        );
    }

    /// A child's topic could not be asked for again: it is subscribed anew, a few times.
    pub(crate) fn on_child_resynced(
        &mut self,
        id: &str,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        let Some(child) = self.v4.children.running.get_mut(id) else { return };
        if let Ok(answer) = reply.and_then(|raw| failure::parse(&raw)) {
            let ack = answer.get("ack").cloned();
            if let Some(ack) = ack.and_then(|it| serde_json::from_value::<Ack>(it).ok()) {
                let mut facts = Vec::new();
                let resync = child.topic.resynced(&ack, self.now.ms, &mut facts);
                self.child_facts(id, &facts);
                if let Some(reason) = resync {
                    self.resync_child(id, &reason);
                }
            }
            return;
        }
        child.failures += 1;
        child.topic.unsubscribed();
        if !child.is_heard() {
            return self.leave_child(id);
        }
        let (name, base) = (child.topic.name().to_owned(), child.topic.base());
        let params = Subscribe::new(&name, self.v4.connection_id(), None, base);
        self.call("v4/conversation/subscribe", json!(params), Cont::V4Subscribe { topic: name });
    }

    pub(crate) fn on_child_rows(&mut self, name: &str, picture: u64, page: Option<RowsRange>) {
        let Some(id) = name.strip_prefix("conversation/") else { return };
        let now = self.now.ms;
        let Some(child) = self.v4.children.running.get_mut(id) else { return };
        let mut facts = Vec::new();
        let resync = child.topic.older_rows(picture, page, now, &mut facts);
        self.child_facts(id, &facts);
        if let Some(reason) = resync {
            self.resync_child(id, &reason);
        }
    }

    /// A child is not heard any more: what the parent's own channel says of it is shown again, its end too.
    fn leave_child(&mut self, id: &str) {
        let Some(child) = self.v4.children.running.get_mut(id) else { return };
        child.failures = MAX_TRIES;
        child.turn_over = true;
        if child.end.is_some() {
            self.close_child(id);
        }
    }

    fn child_facts(&mut self, id: &str, facts: &[Fact]) {
        for fact in facts {
            match fact {
                Fact::Subagent(head, change) => self.subagent_row(Some(id), head, change),
                Fact::Turn(_, turn) => {
                    if let Some(child) = self.v4.children.running.get_mut(id) {
                        child.turn_over = turn.state != "running";
                    }
                }
                _ => self.show_child_fact(id, fact),
            }
        }
        if self.v4.children.is_over(id) {
            self.close_child(id);
        }
    }

    fn show_child_fact(&mut self, id: &str, fact: &Fact) {
        let native = self.seed.traits.subagents;
        let Some(parent) = self.v4.children.running.get(id).map(|it| it.parent_call.clone()) else {
            return;
        };
        let Some(event) = rows::child_event(id, parent.as_deref().filter(|_| !native), fact) else {
            return;
        };
        if let Some(call) = rows::call_of(&event) {
            if !native && self.v4.children.announced.contains(call) {
                return;
            }
            self.v4.children.from_rows.insert(call.to_owned());
        }
        if let Some(turn) = self.turn.as_mut() {
            turn.last_event = self.now.ms;
        }
        self.translate_child(id, |translator, out| translator.on_event(&event, out));
    }

    fn translate_child(&mut self, id: &str, f: impl FnOnce(&mut Translator, &mut Output)) {
        let Some(child) = self.v4.children.running.get_mut(id) else { return };
        let mut output = Output::default();
        f(&mut child.translator, &mut output);
        for update in output.updates {
            if self.seed.traits.subagents {
                self.emit(Effect::ChildUpdate { session: id.to_owned(), update: Box::new(update) });
            } else {
                self.update(update);
            }
        }
    }

    /// A tool of a child's on our own legacy channel: true when the child's rows show it.
    pub(crate) fn is_shown_by_child(&mut self, tool: &ToolUpdated) -> bool {
        if tool.source.as_deref() != Some("subagent") {
            return false;
        }
        let children = &mut self.v4.children;
        let followed = tool.child_session_id.as_deref().is_some_and(|it| {
            let running = children.running.get(it);
            running.map_or_else(|| children.ended.contains(it), Child::is_heard)
        });
        if followed && self.seed.traits.subagents {
            return true;
        }
        let Some(own) = &tool.child_tool_call_id else { return false };
        if children.from_rows.contains(own) {
            return true;
        }
        if children.announced.len() >= 8 * MAX_ENDED {
            children.announced.clear();
        }
        children.announced.insert(own.clone());
        false
    }

    fn child_ended(&mut self, id: &str, end: CardEnd) {
        let Some(child) = self.v4.children.running.get_mut(id).filter(|it| it.end.is_none()) else {
            return;
        };
        child.end = Some(end);
        if child.turn_over {
            return self.close_child(id);
        }
        self.timer(LAST_FRAMES, Cont::ChildEnd { child: id.to_owned() });
    }

    pub(crate) fn close_child(&mut self, id: &str) {
        let Some(child) = self.v4.children.running.get(id) else { return };
        let end = child.end.unwrap_or(CardEnd::Completed);
        let parent = child.parent_session.clone();
        self.translate_child(id, |translator, out| translator.finish_turn(end, out));
        if self.seed.traits.subagents {
            let idle = acp::IdleStateUpdate::new().stop_reason(match end {
                CardEnd::Completed => Some(acp::IdleStopReason::EndTurn),
                CardEnd::Cancelled => Some(acp::IdleStopReason::Cancelled),
                CardEnd::Failed | CardEnd::EngineLost | CardEnd::Shutdown | CardEnd::Closed => None,
            });
            let update =
                acp::SubagentUpdate::new(id.to_owned()).state(acp::StateUpdate::Idle(idle));
            self.for_parent(parent.as_deref(), acp::SessionUpdate::SubagentUpdate(update));
        }
        self.drop_child(id);
        self.end_those_left_by(id, end);
    }

    /// Nobody tells of a grandchild's end once the child's own rows are not read any more: what the child waited for
    /// ended with it, and what runs in the background is over when its own turn is.
    fn end_those_left_by(&mut self, parent: &str, end: CardEnd) {
        for id in self.v4.children.left_by(parent) {
            let works = &self.v4.works;
            let in_background =
                works.iter().any(|it| it.child_session_id.as_deref() == Some(id.as_str()));
            if self.v4.children.is_over(&id) {
                self.close_child(&id);
            } else if !in_background {
                self.child_ended(&id, end);
            }
        }
    }

    /// The turn was cut short, and with it every child that does not work in the background: the engine need not say so
    /// of each, and a prompt is not answered while cards of its turn are open.
    pub(crate) fn close_children_of_turn(&mut self, end: CardEnd) {
        let in_background =
            |id: &str| self.v4.works.iter().any(|it| it.child_session_id.as_deref() == Some(id));
        let ids: Vec<String> = self
            .v4
            .children
            .running_ids()
            .into_iter()
            .filter(|id| !in_background(id))
            .map(str::to_owned)
            .collect();
        for id in ids {
            if let Some(child) = self.v4.children.running.get_mut(&id) {
                child.end.get_or_insert(end);
            }
            self.close_child(&id);
        }
    }

    fn drop_child(&mut self, id: &str) {
        let Some(child) = self.v4.children.running.remove(id) else { return };
        if self.v4.children.ended.len() >= MAX_ENDED {
            self.v4.children.ended.clear();
            self.v4.children.from_rows.clear();
        }
        self.v4.children.ended.insert(id.to_owned());
        self.unsubscribe(&child.topic);
    }

    /// The session was unloaded: its children are gone with it.
    pub(crate) fn forget_children(&mut self) {
        let ids: Vec<String> = self.v4.children.running.keys().cloned().collect();
        for id in ids {
            if let Some(child) = self.v4.children.running.get_mut(&id) {
                child.end = Some(CardEnd::EngineLost);
                child.topic.unsubscribed();
            }
            self.close_child(&id);
        }
        self.v4.children.ended.clear();
    }

    /// The user cancels one child.
    pub(crate) fn cancel_child(&mut self, id: &str) {
        let Some(child) = self.v4.children.running.get(id) else { return };
        let agent = child.agent_id.clone();
        let work = self.v4.works.iter().find(|it| it.child_session_id.as_deref() == Some(id));
        if let Some(work_id) = work.map(|it| it.work_id.clone()) {
            self.v4_command(&Command::CancelBackgroundWork { work_id }, |_| Cont::Ignore);
        } else if let (Some(task), Some(sid)) = (agent, self.engine_sid().map(str::to_owned)) {
            self.call(
                "session/cancelBackgroundTask",
                json!({"sessionId": sid, "taskId": task}),
                Cont::Ignore,
            );
        }
    }
}

fn seen_in_state(it: &Subagent) -> Seen<'_> {
    Seen {
        child: &it.child_session_id,
        parent_call: it.tool_call_id.as_deref(),
        parent: None,
        agent_id: it.agent_id.as_deref(),
        title: it.title.as_deref(),
        kind: it.subagent_type.as_deref(),
    }
}

fn end_of(status: Option<&str>) -> CardEnd {
    match status {
        Some("failed" | "lost") => CardEnd::Failed,
        Some("cancelled") => CardEnd::Cancelled,
        _ => CardEnd::Completed,
    }
}
