//! PURE. Compaction: asked for by a person, or due by itself above a threshold. The engine works on
//! it in a turn of its own; prompts wait until that turn ends, and a cancel ends the wait.

use std::time::Duration;

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error as AcpError, ErrorCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Cont, Machine, Token};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::{SessionBody, SessionEvent};
use crate::bridge::session::failure;

/// However long it works, prompts go on after this.
const WITHIN: Duration = Duration::from_mins(5);
/// The engine said that it is done; its turn should end at once.
const SETTLE: Duration = Duration::from_secs(3);

/// How a compaction ended, as far as the engine said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
}

/// A compaction that runs.
#[derive(Debug)]
struct Running {
    id: String,
    deadline: Option<Token>,
    outcome: Option<Outcome>,
}

/// Whether one runs.
#[derive(Debug, Default)]
pub(crate) struct CompactState {
    running: Option<Running>,
}

impl CompactState {
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }
}

impl Machine {
    /// Starts one; the command or extension that asked is answered at its end.
    pub(crate) fn start_compact(&mut self, instructions: Option<&str>) {
        let Some(sid) = self.engine_sid().map(str::to_owned) else { return };
        let id = format!("compact-{}-{}", self.seed.nonce, self.next);
        let mut params = json!({"sessionId": sid, "inputId": id});
        if let (Some(text), Value::Object(map)) = (instructions, &mut params) {
            map.insert("instructions".to_owned(), json!(text));
        }
        let deadline = self.timer(WITHIN, Cont::CompactDeadline);
        self.compact.running =
            Some(Running { id: id.clone(), deadline: Some(deadline), outcome: None });
        self.show_compaction(&id, acp::CompactionStatus::InProgress);
        self.call("session/compact", params, Cont::Compact);
    }

    pub(crate) fn on_compact_reply(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        if self.job_is_tried_again(&reply) {
            if let Some(mut running) = self.compact.running.take() {
                self.cancel_timer(&mut running.deadline);
                self.show_compaction(&running.id, acp::CompactionStatus::Cancelled);
            }
            return;
        }
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => {
                self.take_ring(answer.get("snapshot").unwrap_or(&Value::Null));
                // Older engines answer when all is done, with words.
                if answer.pointer("/compact/state").is_none() {
                    let text = answer
                        .get("response")
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned();
                    self.compact_over(Ok(if text.is_empty() {
                        "The conversation was compacted.".to_owned()
                    } else {
                        text
                    }));
                }
            }
            Err(error) => self.compact_over(Err(failure::to_acp(&error))),
        }
    }

    /// `state.updated` says how it went, which the end of its turn does not.
    pub(crate) fn compact_reason(&mut self, reason: &str) {
        let Some(running) = self.compact.running.as_mut() else { return };
        let outcome = match reason {
            "session_compacted" | "compact_completed" => Outcome::Done,
            "compact_failed" | "compact_cancelled" | "compaction_failed" => Outcome::Failed,
            _ => return,
        };
        running.outcome = Some(outcome);
        let mut old = running.deadline.take();
        self.cancel_timer(&mut old);
        let deadline = self.timer(SETTLE, Cont::CompactDeadline);
        if let Some(running) = self.compact.running.as_mut() {
            running.deadline = Some(deadline);
        }
    }

    /// A turn of the engine's own ended while one runs.
    pub(crate) fn compact_turn_ended(&mut self, event: &SessionEvent) {
        let Some(running) = self.compact.running.as_ref() else { return };
        let failed = matches!(event.body, SessionBody::TurnFailed(_))
            || running.outcome == Some(Outcome::Failed);
        let cancelled = matches!(&event.body, SessionBody::TurnCompleted(done) if done.result_type.as_deref() == Some("cancelled"));
        if failed || cancelled {
            let text = if cancelled {
                "the compaction was cancelled"
            } else {
                "the compaction failed; the conversation is as it was"
            };
            return self.compact_over(Err(AcpError::new(ErrorCode::INTERNAL_ERROR, text)));
        }
        self.compact_over(Ok("The conversation was compacted.".to_owned()));
    }

    pub(crate) fn compact_is_late(&mut self) {
        let Some(running) = self.compact.running.as_mut() else { return };
        running.deadline = None;
        match running.outcome {
            Some(Outcome::Done) => {
                self.compact_over(Ok("The conversation was compacted.".to_owned()));
            }
            Some(Outcome::Failed) => {
                self.compact_over(Err(AcpError::new(
                    ErrorCode::INTERNAL_ERROR,
                    "the compaction failed",
                )));
            }
            None => self.compact_over(Err(AcpError::new(
                ErrorCode::INTERNAL_ERROR,
                "the compaction did not end in time; it may still be running",
            ))),
        }
    }

    pub(crate) fn compact_over(&mut self, result: Result<String, AcpError>) {
        let Some(mut running) = self.compact.running.take() else { return };
        self.cancel_timer(&mut running.deadline);
        let status = if result.is_ok() {
            acp::CompactionStatus::Completed
        } else {
            acp::CompactionStatus::Failed
        };
        self.show_compaction(&running.id, status);
        if result.is_ok() {
            self.read_settings();
        }
        self.job_done(result);
        self.next_prompt();
    }

    fn show_compaction(&mut self, id: &str, status: acp::CompactionStatus) {
        if self.seed.traits.compaction {
            let update = acp::CompactionUpdate::new(id.to_owned(), status);
            self.update(acp::SessionUpdate::CompactionUpdate(update));
        }
    }

    /// After a turn that ended well: compacts when the context is over the threshold.
    pub(crate) fn compact_if_due(&mut self) {
        let Some(limit) = self.seed.compact_above else { return };
        let over = self
            .translator
            .meter()
            .context_usage()
            .is_some_and(|c| c.get("used").and_then(Value::as_u64) >= Some(limit));
        if over && !self.compact.is_running() && self.queue.is_empty() && self.job.is_none() {
            self.start_compact(None);
        }
    }
}
