//! PURE. Words that the user took back by a cancel while the engine had them, or might have them: they
//! are taken out of its queue as soon as their entry is known, and a turn that the engine starts for
//! them all the same is not shown and is stopped. Whatever was cancelled never runs later, in whichever order the command's
//! reply, the queue, the events and the reply to the stop come.

use std::collections::VecDeque;

use serde_json::Value;
use serde_json::value::RawValue;

use super::stream::Foreign;
use super::{Cont, Machine};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::{SteerDrained, SteerQueued, TurnStarted};
use crate::bridge::engine::v4::commands::{self, Command, Reply};
use crate::bridge::engine::v4::state::QueueItem;
use crate::bridge::session::failure;

/// How many are remembered; older ones have long been settled.
const MAX_REVOKED: usize = 64;
/// How often one is taken out again because the session's state moved on.
const MAX_TRIES: u8 = 4;

/// One text.
#[derive(Debug)]
pub(super) struct Revoked {
    /// Of the guide it was sent with.
    job: u64,
    /// The commands it was sent by.
    commands: Vec<String>,
    /// Its entry in the engine's queue, once known.
    item: Option<String>,
    text: String,
    /// A deletion is under way.
    leaving: bool,
    tries: u8,
    /// It left the queue to become a turn.
    drained: bool,
}

impl Revoked {
    pub(super) fn new(job: u64, commands: Vec<String>, item: Option<String>, text: String) -> Self {
        Self { job, commands, item, text, leaving: false, tries: 0, drained: false }
    }

    fn is_named(&self, name: &str) -> bool {
        self.item.as_deref() == Some(name) || self.commands.iter().any(|it| it == name)
    }
}

/// All of them; bounded.
#[derive(Debug, Default)]
pub(crate) struct RevokedList(VecDeque<Revoked>);

impl RevokedList {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn find(&mut self, fits: impl Fn(&Revoked) -> bool) -> Option<&mut Revoked> {
        self.0.iter_mut().find(|it| fits(it))
    }

    fn forget(&mut self, gone: impl Fn(&Revoked) -> bool) {
        self.0.retain(|it| !gone(it));
    }
}

impl Machine {
    pub(super) fn revoke(&mut self, revoked: Revoked) {
        let job = revoked.job;
        let list = &mut self.revoked;
        if let Some(known) = list.find(|it| it.job == job) {
            known.item = known.item.take().or(revoked.item);
        } else {
            if list.0.len() >= MAX_REVOKED {
                list.0.pop_front();
            }
            list.0.push_back(revoked);
        }
        // The queue may have shown it already.
        let items = std::mem::take(&mut self.v4.queue.items);
        self.revoked_see_queue(&items);
        self.v4.queue.items = items;
        self.take_out_revoked(job);
    }

    /// It was merged into the turn that was cancelled, or the engine never took it.
    pub(super) fn revoked_is_settled(&mut self, job: u64) {
        self.revoked.forget(|it| it.job == job);
    }

    /// The reply to its command, after its asker was answered.
    pub(super) fn on_revoked_reply(&mut self, job: u64, reply: Result<Reply, EngineError>) {
        match reply {
            Ok(Reply::Refused(_)) => self.revoked_is_settled(job),
            Ok(Reply::Accepted { input_id, .. }) => {
                if let Some(it) = self.revoked.find(|it| it.job == job) {
                    it.item = it.item.take().or(input_id);
                }
                self.take_out_revoked(job);
            }
            // Without an answer the engine may have it.
            Ok(Reply::Duplicate) | Err(_) => {}
        }
    }

    pub(super) fn revoked_see_queued(&mut self, steer: &SteerQueued) {
        let source = steer.intent.as_ref().and_then(|it| it.get("sourceCommandId")?.as_str());
        let Some(source) = source else { return };
        if let Some(it) = self.revoked.find(|it| it.is_named(source)) {
            it.item = steer.pending_input_id.clone().or(it.item.take());
            let job = it.job;
            self.take_out_revoked(job);
        }
    }

    pub(super) fn revoked_see_queue(&mut self, items: &[QueueItem]) {
        for item in items {
            let (Some(id), source) = (&item.queue_item_id, item.source_command_id.as_deref())
            else {
                continue;
            };
            let mine = |it: &Revoked| it.is_named(id) || source.is_some_and(|at| it.is_named(at));
            if let Some(it) = self.revoked.find(mine) {
                it.item = Some(id.clone());
                let job = it.job;
                self.take_out_revoked(job);
            }
        }
    }

    /// Inputs left the queue: into a turn that runs, or to become one.
    pub(super) fn revoked_see_drained(&mut self, steer: &SteerDrained, runs: bool) {
        let drained = |it: &Revoked| {
            let source = |input: &Value| {
                let source = input.pointer("/intent/sourceCommandId").and_then(Value::as_str);
                source.is_some_and(|id| it.is_named(id))
            };
            steer.pending_input_ids.iter().any(|id| it.is_named(id))
                || steer.drained_inputs.iter().flatten().any(source)
        };
        if runs {
            return self.revoked.forget(drained);
        }
        for it in self.revoked.0.iter_mut().filter(|it| drained(it)) {
            it.drained = true;
        }
    }

    fn take_out_revoked(&mut self, job: u64) {
        let Some(it) = self.revoked.find(|it| it.job == job) else { return };
        let Some(item_id) = it.item.clone().filter(|_| !it.leaving && it.tries < MAX_TRIES) else {
            return;
        };
        it.leaving = true;
        it.tries += 1;
        let command = Command::DeleteQueueItem { item_id };
        self.v4_command(&command, |_| Cont::RevokedTakenOut { job });
    }

    pub(crate) fn on_revoked_taken_out(
        &mut self,
        job: u64,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        let Some(it) = self.revoked.find(|it| it.job == job) else { return };
        it.leaving = false;
        let Ok(answer) = reply.and_then(|raw| failure::parse(&raw)) else { return };
        self.revision = answer.get("revisionAtDecision").and_then(Value::as_u64).or(self.revision);
        match commands::reply(&answer) {
            Reply::Accepted { .. } | Reply::Duplicate => self.revoked_is_settled(job),
            Reply::Refused(refusal) if super::queue::is_stale(&refusal) => {
                self.take_out_revoked(job);
            }
            // No longer in the queue: a turn of its own is what comes, if anything.
            Reply::Refused(_) => {}
        }
    }

    /// True when the engine starts a turn for such a text: it is not shown, and stopped.
    pub(super) fn revoked_starts(&mut self, turn_id: Option<&str>, started: &TurnStarted) -> bool {
        if started.input_source.is_some() || self.revoked.0.is_empty() {
            return false;
        }
        let names_ours = started.input_id.as_deref();
        if let (Some(id), Some(turn)) = (names_ours, self.turn.as_ref())
            && turn.is_input(id)
        {
            return false;
        }
        let text = started.input.as_ref().and_then(Value::as_str);
        // Without a name, words that were sent anew are those of the new prompt.
        let anew = names_ours.is_none()
            && self.turn.as_ref().is_some_and(|it| text == Some(it.input.content.as_str()));
        let says_it = |it: &Revoked| text == Some(it.text.as_str());
        let is_it = |it: &Revoked| {
            names_ours.is_some_and(|id| it.is_named(id))
                || (it.drained && (text.is_none() || says_it(it)))
                || (!anew && says_it(it))
        };
        let Some(at) = self.revoked.0.iter().position(is_it) else { return false };
        self.revoked.0.remove(at);
        self.stream.mute_turn(turn_id);
        self.stream.foreign_started(Foreign { turn_id: turn_id.map(str::to_owned), source: None });
        self.watch_foreign();
        self.stop_revoked(started.foreground_execution_id.clone());
        true
    }

    /// A row names the turn of such a text before its start is told.
    pub(super) fn revoked_see_row(&mut self, command: &str, guided: bool, turn_id: Option<&str>) {
        if self.revoked.find(|it| it.is_named(command)).is_none() {
            return;
        }
        if guided {
            return self.revoked.forget(|it| it.is_named(command));
        }
        self.stream.mute_turn(turn_id);
        if let Some(it) = self.revoked.find(|it| it.is_named(command)) {
            it.drained = true;
        }
    }

    /// Aimed at that execution alone: the user's next prompt may be on its way.
    fn stop_revoked(&mut self, expected: Option<String>) {
        self.v4_command(&Command::Stop { expected }, |_| Cont::Ignore);
    }
}
