//! PURE. Token usage in its three channels: the context ring (kept by the translator, shown only
//! with a reading), the turn's own usage in the prompt's answer (the difference of two cumulative
//! readings), and `_meta.zcode.contextUsage`.

use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Cont, Machine};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;
use crate::bridge::translate::{notice, usage};

/// What is known about usage, and about what the engine can say of it.
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

    /// Another engine may know other methods.
    pub(crate) fn meet_engine(&mut self) {
        (self.unknown_method, self.no_v4) = (false, false);
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
        let delta = match (&self.usage.base, &self.usage.after) {
            (Some(base), Some(after)) => usage::turn_delta(Some(base), after),
            _ => None,
        };
        delta.or_else(|| usage::from_turn(reported?))
    }

    /// The line at the end of a turn that went well, for who asked for it
    /// (`session.showCompletionStatus`).
    pub(crate) fn tell_completion(&mut self, reason: acp::StopReason, usage: Option<&acp::Usage>) {
        if !self.seed.completion_status || reason != acp::StopReason::EndTurn {
            return;
        }
        let words = usage.map_or_else(
            || "The turn is done.".to_owned(),
            |usage| {
                let cached = usage.cached_read_tokens.filter(|n| *n > 0);
                let cached = cached.map_or_else(String::new, |n| format!(", {n} from the cache"));
                let (read, written) = (usage.input_tokens, usage.output_tokens);
                format!("The turn is done: {read} tokens read{cached}, {written} written.")
            },
        );
        let id = format!("turninfo_{}_{}", self.seed.nonce, self.next);
        self.next += 1;
        let update = notice::notice(&self.seed.traits, notice::Severity::Info, &words, None, &id);
        self.update(update);
    }

    pub(crate) fn context_usage_meta(&self) -> Option<acp::Meta> {
        let reading = self.translator.meter().context_usage()?;
        let mut meta = acp::Meta::new();
        meta.insert("zcode".to_owned(), json!({"contextUsage": reading}));
        Some(meta)
    }

    /// The ring of a snapshot, if it has a reading.
    pub(crate) fn take_ring(&mut self, snapshot: &Value) {
        if let Some(reading) = usage::reading(snapshot) {
            self.translate(|t, out| t.on_usage_reading(reading, out));
        }
    }

    /// The ring's size follows the model in use.
    pub(crate) fn ring_follows_model(&mut self) {
        let window = self.settings.context_window();
        self.translate(|t, out| t.on_model_window(window, out));
    }

    /// The ring again, for a client that loads the session.
    pub(crate) fn show_ring_again(&mut self) {
        if let Some(update) = self.translator.meter().again() {
            self.update(update);
        }
    }
}
