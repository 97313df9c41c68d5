//! PURE. Token usage in its three channels: the context ring (`usage_update`, only with a reading),
//! the turn's own usage in the prompt's answer (the difference of two cumulative readings), and
//! `_meta.zcode.contextUsage`.

use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Cont, Machine};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;
use crate::bridge::session::interim::usage;

/// What is known about usage.
#[derive(Debug, Default)]
pub(crate) struct UsageBook {
    /// Cumulative reading before the running turn; `None` when it must be read.
    base: Option<Value>,
    /// Cumulative reading after it.
    after: Option<Value>,
    /// The engine has no `session/usage`.
    unknown_method: bool,
    /// The engine has no V4 commands.
    no_v4: bool,
    /// Last ring that was sent: used and size.
    ring: Option<(u64, u64)>,
    /// Tokens in the context now.
    used: Option<u64>,
    /// The window as the engine's events say it.
    event_size: Option<u64>,
}

impl UsageBook {
    pub(crate) fn new(fresh: bool) -> Self {
        Self { base: fresh.then(|| json!({})), ..Self::default() }
    }

    pub(crate) fn baseline_is_stale(&mut self) {
        self.base = None;
    }

    pub(crate) fn turn_over(&mut self) {
        self.base = self.after.take();
    }

    pub(crate) fn engine_knows_v4(&self) -> bool {
        !self.no_v4
    }

    pub(crate) fn engine_has_no_v4(&mut self) {
        self.no_v4 = true;
    }

    /// The next ring is sent even when it did not change.
    pub(crate) fn forget_ring(&mut self) {
        self.ring = None;
    }

    pub(crate) fn used(&self) -> Option<u64> {
        self.used
    }
}

impl Machine {
    /// Before a send: the engine serves in order, so the reading precedes the turn.
    pub(crate) fn read_usage_baseline(&mut self, sid: &str) {
        self.usage.after = None;
        if self.usage.base.is_none() && !self.usage.unknown_method {
            self.call("session/usage", json!({"sessionId": sid}), Cont::UsageBase);
        }
    }

    pub(crate) fn on_usage_baseline(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        self.usage.base = self.usage_reading(reply);
    }

    fn usage_reading(&mut self, reply: Result<Box<RawValue>, EngineError>) -> Option<Value> {
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(reading) => Some(reading),
            Err(error) => {
                self.usage.unknown_method |= error.is_unknown_method();
                None
            }
        }
    }

    /// Asks for the reading after the turn; false when there is nothing to wait for.
    pub(crate) fn read_usage_end(&mut self, n: u64) -> bool {
        let Some(sid) = self.engine_sid() else { return false };
        if self.usage.unknown_method {
            return false;
        }
        let params = json!({"sessionId": sid});
        self.call("session/usage", params, Cont::UsageEnd { n });
        true
    }

    pub(crate) fn on_usage_end(&mut self, n: u64, reply: Result<Box<RawValue>, EngineError>) {
        self.usage.after = self.usage_reading(reply);
        self.turn_is_over(n);
    }

    /// The turn's usage: the difference of the readings, else what the turn reported itself.
    pub(crate) fn turn_usage(&self, reported: Option<&Value>) -> Option<acp::Usage> {
        match (&self.usage.base, &self.usage.after) {
            (Some(base), Some(after)) => {
                usage::of_turn(base, after).or_else(|| usage::reported(reported?))
            }
            _ => usage::reported(reported?),
        }
    }

    pub(crate) fn context_usage_meta(&self) -> Option<acp::Meta> {
        let used = self.usage.used?;
        let size = self.ring_size()?;
        let mut meta = acp::Meta::new();
        meta.insert("zcode".to_owned(), json!({"contextUsage": {"used": used, "size": size}}));
        Some(meta)
    }

    fn ring_size(&self) -> Option<u64> {
        self.settings.context_window().or(self.usage.event_size).filter(|size| *size > 0)
    }

    pub(crate) fn on_usage_event(&mut self, used: Option<u64>, window: Option<u64>) {
        if let Some(window) = window.filter(|w| *w > 0) {
            self.usage.event_size = Some(window);
        }
        if let Some(used) = used {
            self.usage.used = Some(used);
        }
        self.show_ring();
    }

    pub(crate) fn take_ring(&mut self, snapshot: &Value) {
        let runtime = snapshot.get("runtime").and_then(|r| r.get("contextUsage"));
        let projection = snapshot.get("projection");
        let number =
            |v: Option<&Value>, key: &str| v.and_then(|v| v.get(key)).and_then(Value::as_u64);
        let used = number(runtime, "used").or_else(|| number(projection, "contextUsed"));
        let size = number(runtime, "size").or_else(|| number(projection, "contextWindow"));
        self.on_usage_event(used.filter(|u| *u > 0), size);
    }

    /// Sends the ring when it changed. Without a reading there is none.
    pub(crate) fn show_ring(&mut self) {
        let (Some(used), Some(size)) = (self.usage.used.filter(|u| *u > 0), self.ring_size())
        else {
            return;
        };
        if self.usage.ring == Some((used, size)) {
            return;
        }
        self.usage.ring = Some((used, size));
        self.update(acp::SessionUpdate::UsageUpdate(acp::UsageUpdate::new(used, size)));
    }
}
