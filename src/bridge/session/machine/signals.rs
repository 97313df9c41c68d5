//! PURE. What clients are told beside the conversation: whether a turn runs and which question was
//! decided (for those that know these notifications), that a silent turn is alive, that the
//! commands are there, and which MCP servers did not start.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Cont, Effect, Machine};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;
use crate::bridge::translate::{Signals as Dialect, tool};

/// Clients with idle deadlines (about 300 s) see life at least this often.
const LIFE_EVERY: u64 = 55_000;
/// Some clients drop what comes with the answer to `session/new`; they get the commands once more.
const COMMANDS_AGAIN: Duration = Duration::from_millis(300);
/// Servers connect beside the first turn; those still connecting are looked at again, so often.
const SERVERS_AGAIN: Duration = Duration::from_secs(4);
const SERVER_LOOKS: u8 = 3;

/// What was told.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    running: bool,
    life: u64,
    servers_checked: bool,
}

impl Machine {
    fn signal(&mut self, words: (&'static str, &'static str), params: Value) {
        let method = match self.seed.traits.signals {
            Dialect::None => return,
            Dialect::Standard => words.0,
            Dialect::Legacy => words.1,
        };
        self.emit(Effect::Signal { method, params });
    }

    /// After every input: a turn began or ended.
    pub(crate) fn tell_turn_state(&mut self) {
        let running = self.turn.is_some();
        if running != self.signals.running {
            self.signals.running = running;
            self.signal(("_zcode/turn_state", "$/zcode/turnState"), json!({ "running": running }));
        }
    }

    /// A question has its outcome: other windows take its dialog away.
    pub(crate) fn tell_ask_settled(&mut self, is_permission: bool, tool_call_id: Option<&str>) {
        let kind = if is_permission { "permission" } else { "elicitation" };
        let mut params = json!({ "kind": kind });
        if let (Some(id), Value::Object(map)) = (tool_call_id, &mut params) {
            map.insert("toolCallId".to_owned(), json!(id));
        }
        self.signal(("_zcode/ask_settled", "$/zcode/ask_settled"), params);
    }

    /// The engine says that a silent turn goes on: the client sees something of it.
    pub(crate) fn sign_of_life(&mut self) {
        let Some(turn) = self.turn.as_ref() else { return };
        let since = turn.last_event.max(self.signals.life);
        if self.now.ms.saturating_sub(since) < LIFE_EVERY {
            return;
        }
        self.signals.life = self.now.ms;
        match self.translator.running_card().map(tool::still_running) {
            Some(update) => self.update(update),
            None => self.show_ring_again(),
        }
    }

    /// The commands once more, a moment after a session was opened.
    pub(crate) fn announce_commands_again(&mut self) {
        self.timer(COMMANDS_AGAIN, Cont::CommandsAgain);
    }

    /// Once for every loading of the session: how its servers came up. Asked behind the prompt.
    pub(crate) fn check_servers(&mut self) {
        if !self.seed.mcp.is_empty() && !std::mem::replace(&mut self.signals.servers_checked, true)
        {
            self.read_servers(1);
        }
    }

    pub(crate) fn servers_unchecked(&mut self) {
        self.signals.servers_checked = false;
    }

    pub(crate) fn read_servers(&mut self, look: u8) {
        let workspace = self.link.workspace_ref(&self.seed.cwd);
        let params =
            json!({"workspace": workspace, "mode": "status", "mcpServers": self.seed.mcp.clone()});
        self.call("mcp/list", params, Cont::Servers { look });
    }

    pub(crate) fn on_servers(&mut self, look: u8, reply: Result<Box<RawValue>, EngineError>) {
        let Ok(answer) = reply.and_then(|raw| failure::parse(&raw)) else { return };
        let mut failed = Vec::new();
        let mut connecting = false;
        for name in self.seed.mcp.iter().filter_map(|s| s.get("name").and_then(Value::as_str)) {
            let Some(status) = answer.get("statuses").and_then(|all| all.get(name)) else {
                continue;
            };
            let text = |key: &str| status.get(key).and_then(Value::as_str);
            match text("status") {
                Some("connecting" | "pending" | "starting") => connecting = true,
                Some("failed" | "error" | "disconnected") => {
                    let reason = text("error").or_else(|| text("failureKind"));
                    failed.push(format!("{name}: {}", reason.unwrap_or("it did not start")));
                }
                _ => {}
            }
        }
        if connecting && look < SERVER_LOOKS {
            self.timer(SERVERS_AGAIN, Cont::ServersAgain { look: look + 1 });
        } else if !failed.is_empty() {
            self.warn("MCP servers that could not be used:", Some(&failed.join("\n")));
        }
    }
}
