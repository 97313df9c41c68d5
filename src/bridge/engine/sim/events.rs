//! PURE. A session's legacy event log: numbering, the envelope, who hears of it, and what a late
//! subscriber is told.

use super::wire::Wire;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Events kept for `session/events` and for gap fills.
const KEPT: usize = 20_000;

/// The events of one session.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    /// As written: most are never looked at again.
    kept: VecDeque<(u64, Box<str>)>,
    /// The delivery kind of the subscriber; `None` while nobody listens.
    pub(super) subscriber: Option<String>,
}

/// Where an event belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) session: &'a str,
    pub(super) trace: &'a str,
    pub(super) turn: Option<&'a str>,
}

impl EventLog {
    /// Adds an event under the next number and sends it to the subscriber.
    pub(super) fn push(
        &mut self,
        wire: &mut Wire,
        seq: &mut u64,
        at: Origin<'_>,
        kind: &str,
        payload: Value,
    ) {
        *seq += 1;
        let profile = wire.options.profile;
        let mut payload = payload;
        let mut event = json!({
            "eventId": format!("evt_{}_{seq}", at.session),
            "sessionId": at.session,
            "seq": *seq,
            "traceId": at.trace,
            "timestamp": wire.clock(),
            "type": kind,
        });
        let Some(map) = event.as_object_mut() else { return };
        if let Some(turn) = at.turn {
            if profile.turn_id_on_envelope() {
                map.insert("turnId".to_owned(), Value::from(turn));
            } else if let Some(inner) = payload.as_object_mut() {
                inner.insert("turnId".to_owned(), Value::from(turn));
            }
        }
        map.insert("payload".to_owned(), payload);
        if let Some(delivery) = &self.subscriber {
            map.insert("deliveryKind".to_owned(), Value::from(delivery.as_str()));
        }
        let text = event.to_string();
        if self.subscriber.is_some() && !wire.loses_event(*seq) {
            wire.notify_text("session/event", &text);
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((*seq, text.into_boxed_str()));
    }

    /// Events after that number, oldest first, at most `limit`.
    pub(super) fn after(&self, seq: u64, limit: usize) -> Value {
        let from = self.kept.partition_point(|(n, _)| *n <= seq);
        let texts = self.kept.iter().skip(from).take(limit);
        texts.filter_map(|(_, text)| serde_json::from_str::<Value>(text).ok()).collect()
    }
}
