//! PURE. The workspace's own topic on the V4 channel: its slash commands, and the rest of its configuration as the engine
//! keeps it. The registry hands its frames to every session, for several of them may stand in one workspace and each has a
//! subscription of its own. Without the topic the commands are read by the legacy method, once for each loading.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::v4::Resyncs;
use super::{Cont, Machine};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::v4::commands::{self, Subscribe};
use crate::bridge::engine::v4::rows::Fact;
use crate::bridge::engine::v4::topic::{Ack, History, Resync, Topic};
use crate::bridge::session::failure;

/// Failed resyncs after which the topic is left alone.
const MAX_TRIES: u8 = 3;

/// The topic, as one session hears it.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    topic: Option<Topic>,
    /// The engine process that it was subscribed in.
    generation: u64,
    failures: u8,
    resyncs: Resyncs,
    /// The topic told the commands: they need not be read.
    tells_commands: bool,
    /// Its configuration as last said.
    pub(crate) config: Value,
}

impl Machine {
    /// Asks for the topic, unless this engine sends it already. Its commands come by it from now on.
    pub(crate) fn open_workspace_topic(&mut self) {
        let generation = self.link.generation;
        let known = &self.v4.workspace;
        if known.generation == generation && known.topic.is_some() {
            if !known.tells_commands {
                self.read_commands();
            }
            return;
        }
        let workspace = self.link.workspace_ref(&self.seed.cwd);
        let key = workspace.get("workspaceKey").and_then(Value::as_str).unwrap_or_default();
        if !self.v4_may_be_there() || key.is_empty() {
            return self.read_commands();
        }
        let topic = Topic::new(commands::workspace_topic(key), History::Show);
        self.v4.workspace =
            Workspace { topic: Some(topic), generation, ..std::mem::take(&mut self.v4.workspace) };
        self.v4.workspace.tells_commands = false;
        self.v4.workspace.failures = 0;
        self.subscribe_workspace();
    }

    fn subscribe_workspace(&mut self) {
        let Some(name) = self.v4.workspace.topic.as_ref().map(|it| it.name().to_owned()) else {
            return;
        };
        let workspace = self.link.workspace_ref(&self.seed.cwd);
        let params = Subscribe::new(&name, self.v4.connection_id(), Some(workspace), None);
        self.call("v4/conversation/subscribe", json!(params), Cont::V4Workspace);
    }

    pub(crate) fn on_workspace_subscribed(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        let answer = reply.and_then(|raw| failure::parse(&raw)).ok();
        let ack = answer.and_then(|it| serde_json::from_value::<Ack>(it.get("ack")?.clone()).ok());
        let Some(ack) = ack else { return self.leave_workspace() };
        let now = self.now.ms;
        let Some(topic) = self.v4.workspace.topic.as_mut() else { return };
        let mut facts = Vec::new();
        let resync = topic.subscribed(&ack, now, &mut facts);
        self.workspace_facts(&facts);
        self.resync_workspace(resync.as_ref());
    }

    /// A frame of the topic came: true when it is one of ours.
    pub(crate) fn on_workspace_frame(&mut self, name: &str, params: &RawValue) -> bool {
        let now = self.now.ms;
        let Some(topic) = self.v4.workspace.topic.as_mut().filter(|it| it.name() == name) else {
            return false;
        };
        let mut facts = Vec::new();
        let resync = topic.on_frame(params.get(), now, &mut facts);
        self.workspace_facts(&facts);
        self.resync_workspace(resync.as_ref());
        true
    }

    fn resync_workspace(&mut self, reason: Option<&Resync>) {
        let Some(reason) = reason else { return };
        if !self.v4.workspace.resyncs.may_ask(self.now.ms) {
            self.close_workspace_topic();
            return self.leave_workspace();
        }
        let Some(topic) = &self.v4.workspace.topic else { return };
        let params = super::v4::resync_params(topic, self.v4.connection_id(), reason);
        self.call("v4/conversation/resync", json!(params), Cont::V4ResyncWorkspace);
    }

    pub(crate) fn on_workspace_resynced(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        let answer = reply.and_then(|raw| failure::parse(&raw)).ok();
        let ack = answer.and_then(|it| serde_json::from_value::<Ack>(it.get("ack")?.clone()).ok());
        let known = &mut self.v4.workspace;
        let Some(topic) = known.topic.as_mut() else { return };
        if let Some(ack) = ack {
            let mut facts = Vec::new();
            let resync = topic.resynced(&ack, self.now.ms, &mut facts);
            self.workspace_facts(&facts);
            return self.resync_workspace(resync.as_ref());
        }
        topic.unsubscribed();
        known.failures += 1;
        if known.failures >= MAX_TRIES {
            return self.leave_workspace();
        }
        self.subscribe_workspace();
    }

    /// The engine does not offer the topic, or keeps failing: the legacy method has the commands.
    fn leave_workspace(&mut self) {
        self.v4.workspace.topic = None;
        self.v4.workspace.tells_commands = false;
        self.read_commands();
    }

    fn workspace_facts(&mut self, facts: &[Fact]) {
        for fact in facts {
            let Fact::State(patch) = fact else { continue };
            let config = patch.config.as_ref().filter(|it| it.is_object());
            if let Some(config) = config {
                self.v4.workspace.config.clone_from(config);
            }
            // Most builds say it inside `config`, some beside it.
            let inside = config.and_then(|it| it.get("slashCommands"));
            let list = inside.or(patch.slash_commands.as_ref()).filter(|it| it.is_array());
            if let Some(list) = list {
                self.v4.workspace.tells_commands = true;
                self.take_commands(&json!({ "slashCommands": list }));
            }
        }
        if facts.iter().any(|it| matches!(it, Fact::State(_))) {
            if self.v4.workspace.tells_commands {
                self.announce_commands();
            } else {
                self.read_commands();
            }
        }
    }

    /// Nobody listens to the topic any more, while its engine goes on.
    pub(crate) fn close_workspace_topic(&mut self) {
        if let Some(topic) = self.v4.workspace.topic.take() {
            self.unsubscribe(&topic);
        }
    }
}
