//! The file approval bridge: tool permissions as files that another program (or a person over ssh)
//! answers, instead of a dialog in the ACP client.
//!
//! One file per question, `<12 hex>.json`, private and written atomically; whoever changes its
//! `status` to `allow` or `deny` decides. Everything else, time, faults, a cancelled turn, is a
//! deny. Called by `bridge::session` (asks) and by the `approvals` subcommand (lists, answers).

mod asker;
mod command;
mod store;
mod watch;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

pub use command::run;
pub use store::{Record, StoreError};

use store::Store;
use watch::Watch;

/// How long a question stays open before it counts as denied.
pub const TIME_LIMIT: Duration = Duration::from_mins(5);
/// How often the file is looked at, whatever announces changes.
const POLL: Duration = Duration::from_secs(1);
/// Looks at an unreadable file before it counts as a fault; its writer may be half way through.
const PATIENCE: u32 = 3;

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Somebody wrote `allow`.
    Allow,
    /// Somebody wrote `deny`, or nobody and nothing could decide; the text says which.
    Deny(String),
}

/// Asks by file. Cheap to clone; one for all sessions.
#[derive(Debug, Clone)]
pub struct ApprovalBridge {
    store: Store,
    time_limit: Duration,
    /// False where changes are not announced (tests play that); then the file is looked at.
    watches: bool,
}

impl ApprovalBridge {
    /// Takes a directory that must exist, be the user's and be closed to others' writing:
    /// whoever can write there can approve.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self { store: Store::open(dir)?, time_limit: TIME_LIMIT, watches: true })
    }

    /// Writes the question and waits for the answer. Dropping the future withdraws the question.
    ///
    /// `payload` is the engine's permission request, unchanged.
    pub async fn ask(&self, payload: &Value) -> Verdict {
        // Watched before it is written, so that no answer is missed.
        let mut watch = if self.watches { Watch::new(self.store.dir()) } else { Watch::none() };
        let pending = match self.store.create(payload) {
            Ok(pending) => pending,
            Err(err) => return Verdict::Deny(format!("the question could not be written: {err}")),
        };
        let deadline = Instant::now() + self.time_limit;
        let mut unreadable = 0;
        loop {
            match self.store.answer_of(pending.id()) {
                Ok(answer) => {
                    unreadable = 0;
                    match answer.status.as_str() {
                        "pending" => {}
                        "allow" => {
                            pending.settled();
                            return Verdict::Allow;
                        }
                        "deny" => {
                            pending.settled();
                            let note = answer.note.as_ref().and_then(Value::as_str);
                            let note = note.map(str::trim).filter(|note| !note.is_empty());
                            return Verdict::Deny(note.unwrap_or("denied").to_owned());
                        }
                        other => return Verdict::Deny(format!("unknown answer {other:?}")),
                    }
                }
                Err(err @ StoreError::NotPrivate { .. }) => {
                    return Verdict::Deny(format!("nobody can be trusted to have answered: {err}"));
                }
                Err(err) => {
                    unreadable += 1;
                    if unreadable >= PATIENCE {
                        return Verdict::Deny(format!("the answer could not be read: {err}"));
                    }
                }
            }
            // Not every change is announced (a network drive, a bind mount, another name of the
            // file), and a person waits: while a question is open it is looked at each second too.
            let next = deadline.min(Instant::now() + POLL);
            tokio::select! {
                () = watch.changed() => {}
                () = tokio::time::sleep_until(next) => {
                    if Instant::now() >= deadline {
                        return Verdict::Deny("nobody answered in time".to_owned());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
