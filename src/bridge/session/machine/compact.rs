//! PURE. Compaction: asked for by a person, or due by itself above a threshold.

use serde_json::value::RawValue;

use super::{Machine, ReqId};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::SessionEvent;

/// A compaction that runs.
#[derive(Debug, Default)]
pub(crate) struct CompactState {}

impl CompactState {
    pub(crate) fn holds_prompts(&self) -> bool {
        false
    }
}

impl Machine {
    pub(crate) fn compact_turn_ended(&mut self, _event: &SessionEvent) {}
    pub(crate) fn compact_if_due(&mut self) {}
    pub(crate) fn on_compact_reply(
        &mut self,
        _req: Option<ReqId>,
        _feedback: bool,
        _reply: Result<Box<RawValue>, EngineError>,
    ) {
    }
    pub(crate) fn compact_is_late(&mut self) {}
}
