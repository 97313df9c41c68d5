//! PURE. Extension methods of a session, and `session/fork`.

use agent_client_protocol::Error as AcpError;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::link::Waiter;
use super::{Cont, Effect, Machine, ReqId};
use crate::bridge::engine::EngineError;
use crate::bridge::session::failure;

impl Machine {
    pub(crate) fn on_extension(&mut self, req: ReqId, name: &'static str, params: &Value) {
        self.with_link(Waiter::Extension { req, name, params: params.clone() });
    }

    pub(crate) fn run_extension(&mut self, req: ReqId, name: &'static str, params: &Value) {
        match name {
            "cancelBackgroundTask" => self.cancel_task(req, params),
            _ => self.respond(req, Err(AcpError::method_not_found())),
        }
    }

    pub(crate) fn fork(&mut self, req: ReqId) {
        if self.engine_sid().is_none() {
            let error =
                super::invalid_params("this session has no history yet: there is nothing to fork");
            return self.respond(req, Err(error));
        }
        self.with_link(Waiter::Fork(req));
    }

    pub(crate) fn call_fork(&mut self, req: ReqId) {
        let Some(sid) = self.engine_sid() else { return };
        let params = json!({"sessionId": sid});
        self.call("session/fork", params, Cont::Fork { req });
    }

    pub(crate) fn on_forked(&mut self, req: ReqId, reply: Result<Box<RawValue>, EngineError>) {
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => {
                let Some(engine_sid) =
                    answer.get("forkedSessionId").and_then(Value::as_str).map(str::to_owned)
                else {
                    let error = failure::broken("session/fork", "no forkedSessionId in the answer");
                    return self.respond(req, Err(failure::to_acp(&error)));
                };
                let workspace = answer
                    .pointer("/snapshot/session/workspace")
                    .cloned()
                    .or_else(|| self.link.workspace.clone());
                self.emit(Effect::Adopt { req, engine_sid, workspace });
            }
            Err(error) => self.respond(req, Err(failure::to_acp(&error))),
        }
    }

    pub(crate) fn on_mcp_list(&mut self, req: ReqId, reply: Result<Box<RawValue>, EngineError>) {
        let result = reply.and_then(|raw| failure::parse(&raw)).map_err(|e| failure::to_acp(&e));
        self.respond(req, result);
    }
}
