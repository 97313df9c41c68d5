//! PURE. How long a request may take, and from when its clock runs.
//!
//! The engine serves requests one at a time, in order; a few overtake (engine protocol section 1).
//! A slow first request must not use up the time of those behind it: a clock starts when the
//! engine could have started the request. Called by `actor`.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// The limit for a method.
pub(super) fn limit(method: &str) -> Duration {
    let seconds = match method {
        // Cold starts of 10 s and more are on record.
        "session/create" | "session/fork" | "session/messages" | "v4/conversation/rowsRange" => 60,
        // Engines before 0.16.9 answer when the whole compaction is over.
        "session/compact" => 330,
        "session/read" | "session/events" | "session/send" | "session/goal" | "mcp/list" => 20,
        // Tried twice.
        "session/subscribe"
        | "session/stop"
        | "session/close"
        | "runtime/capabilities"
        | "provider/updateAccountConfig" => 10,
        // Resuming is tried several times.
        "session/resume"
        | "session/setMode"
        | "session/setModel"
        | "session/setThoughtLevel"
        | "session/cancelBackgroundTask"
        | "v4/command"
        | "v4/connection/flow" => 15,
        _ => 30,
    };
    Duration::from_secs(seconds)
}

/// Whether the engine serves a method beside its queue.
pub(super) fn overtakes(method: &str) -> bool {
    matches!(method, "session/stop" | "workspace/cancelGenerateText")
        || method.starts_with("mcp/ui")
}

/// The running clocks, by request id.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    limits: HashMap<u64, Duration>,
    deadlines: HashMap<u64, Instant>,
    /// Requests in the order the engine serves them; only the first one's clock runs.
    queue: VecDeque<u64>,
}

impl Clocks {
    /// A request was sent.
    pub(super) fn sent(&mut self, id: u64, method: &str, now: Instant) {
        let limit = limit(method);
        if overtakes(method) {
            self.deadlines.insert(id, now + limit);
            return;
        }
        self.limits.insert(id, limit);
        self.queue.push_back(id);
        if self.queue.len() == 1 {
            self.start_first(now);
        }
    }

    /// A request was answered, or given up.
    pub(super) fn done(&mut self, id: u64, now: Instant) {
        self.deadlines.remove(&id);
        if self.limits.remove(&id).is_none() {
            return;
        }
        let was_first = self.queue.front() == Some(&id);
        self.queue.retain(|&queued| queued != id);
        if was_first {
            self.start_first(now);
        }
    }

    /// The engine shows that it is at work on something that comes before every request (its
    /// database migration): the first clock starts again.
    pub(super) fn held_up(&mut self, now: Instant) {
        self.start_first(now);
    }

    /// The next moment something runs out.
    pub(super) fn next(&self) -> Option<Instant> {
        self.deadlines.values().min().copied()
    }

    /// What has run out.
    pub(super) fn expired(&self, now: Instant) -> Vec<u64> {
        self.deadlines.iter().filter(|(_, deadline)| **deadline <= now).map(|(id, _)| *id).collect()
    }

    fn start_first(&mut self, now: Instant) {
        if let Some(id) = self.queue.front()
            && let Some(limit) = self.limits.get(id)
        {
            self.deadlines.insert(*id, now + *limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn a_clock_starts_when_the_request_before_it_is_answered() {
        let start = Instant::now();
        let mut clocks = Clocks::default();
        clocks.sent(1, "session/create", start);
        clocks.sent(2, "session/read", start);
        assert_eq!(clocks.next(), Some(start + 60 * S));
        clocks.done(1, start + 12 * S);
        assert_eq!(clocks.next(), Some(start + 32 * S));
        assert!(clocks.expired(start + 31 * S).is_empty());
        assert_eq!(clocks.expired(start + 32 * S), [2]);
        clocks.done(2, start + 32 * S);
        assert_eq!(clocks.next(), None);
    }

    #[test]
    fn a_stop_has_a_clock_of_its_own() {
        let start = Instant::now();
        let mut clocks = Clocks::default();
        clocks.sent(1, "session/create", start);
        clocks.sent(2, "session/stop", start);
        assert_eq!(clocks.next(), Some(start + 10 * S));
        clocks.done(2, start + S);
        assert_eq!(clocks.next(), Some(start + 60 * S));
    }

    #[test]
    fn an_answer_out_of_order_does_not_restart_the_first_clock() {
        let start = Instant::now();
        let mut clocks = Clocks::default();
        clocks.sent(1, "session/create", start);
        clocks.sent(2, "session/read", start);
        clocks.done(2, start + 5 * S);
        assert_eq!(clocks.next(), Some(start + 60 * S));
    }

    #[test]
    fn a_migration_holds_the_clock() {
        let start = Instant::now();
        let mut clocks = Clocks::default();
        clocks.sent(1, "session/create", start);
        clocks.held_up(start + 50 * S);
        assert_eq!(clocks.next(), Some(start + 110 * S));
    }
}
