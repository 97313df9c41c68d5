//! PURE. Slash commands: the list a client is offered, and the ones that the bridge runs itself.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Cont, Machine, ReqId};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;
use crate::bridge::translate::prompt::SendInput;

/// The engine's own commands, as last read.
#[derive(Debug, Default)]
pub(crate) struct CommandList {
    engine: Vec<Value>,
}

impl Machine {
    pub(crate) fn announce_commands(&mut self) {}
    pub(crate) fn take_commands(&mut self, snapshot: &Value) {
        if let Some(list) = snapshot.get("slashCommands").and_then(Value::as_array) {
            self.commands.engine.clone_from(list);
        }
    }
    pub(crate) fn read_commands(&mut self) {
        let params = json!({"workspace": self.link.workspace_ref(&self.seed.cwd)});
        self.call("workspace/readPresentation", params, Cont::Presentation);
    }
    pub(crate) fn on_presentation(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        if let Ok(answer) = reply.and_then(|raw| failure::parse(&raw)) {
            self.take_commands(&answer);
            self.announce_commands();
        }
    }
    pub(crate) fn run_command(&mut self, _req: ReqId, _input: &SendInput) -> bool {
        false
    }
}
