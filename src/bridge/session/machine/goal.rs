//! PURE. Goals: `session/goal` by command and by extension.

use serde_json::value::RawValue;

use super::{Machine, ReqId};
use crate::bridge::engine::EngineError;

impl Machine {
    pub(crate) fn on_goal_reply(
        &mut self,
        _req: ReqId,
        _feedback: bool,
        _reply: Result<Box<RawValue>, EngineError>,
    ) {
    }
}
