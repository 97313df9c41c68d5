//! PURE. Mode, model and thought level: what is shown before an engine runs, what the engine says,
//! what the user chose, and how a change gets there and back.

use agent_client_protocol::Error as AcpError;
use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::link::OpenKind;
use super::{Machine, ReqId};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::StateUpdated;
use crate::bridge::session::providers::ProviderFiles;
use crate::config::SessionConfig;

/// A change that waits for the engine.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) req: ReqId,
}

/// The settings as they are shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    mode: Option<String>,
}

impl Settings {
    pub(crate) fn before_engine(config: &SessionConfig, _files: &ProviderFiles) -> Self {
        Self { mode: config.mode.clone() }
    }
    pub(crate) fn remember(&mut self, _model: Option<String>, _thought: Option<String>) {}
    pub(crate) fn add_to_create(&self, params: &mut Map<String, Value>) {
        if let Some(mode) = &self.mode {
            params.insert("mode".to_owned(), Value::String(mode.clone()));
        }
    }
    pub(crate) fn chosen_model(&self) -> Option<String> {
        None
    }
    pub(crate) fn chosen_thought(&self) -> Option<String> {
        None
    }
    pub(crate) fn context_window(&self) -> Option<u64> {
        None
    }
}

impl Machine {
    pub(crate) fn answer_new(&mut self, req: ReqId) {
        let response = acp::NewSessionResponse::new(self.seed.acp_id.clone());
        self.respond_with(req, &response);
        self.announce_commands();
    }
    pub(crate) fn answer_open(&mut self, req: ReqId, how: OpenKind) {
        match how {
            OpenKind::Resume => self.respond_with(req, &acp::ResumeSessionResponse::new()),
            OpenKind::Load { .. } => self.respond_with(req, &acp::LoadSessionResponse::new()),
            OpenKind::Fork => {
                let response = acp::ForkSessionResponse::new(self.seed.acp_id.clone());
                self.respond_with(req, &response);
            }
        }
        self.announce_commands();
    }
    pub(crate) fn take_settings(&mut self, _snapshot: &Value) {}
    pub(crate) fn repair_settings(&mut self) {}
    pub(crate) fn read_settings(&mut self) {}
    pub(crate) fn on_settings_read(&mut self, _reply: Result<Box<RawValue>, EngineError>) {}
    pub(crate) fn on_repaired(&mut self, _reply: Result<Box<RawValue>, EngineError>) {}
    pub(crate) fn on_state(&mut self, _state: &StateUpdated) {}
    pub(crate) fn mode_pushed(&mut self, _mode: Option<&str>, _plan: Option<bool>) {}
    pub(crate) fn plan_was_decided(&mut self) {}
    pub(crate) fn set_mode(&mut self, req: ReqId, _mode: String) {
        self.respond(req, Err(AcpError::method_not_found()));
    }
    pub(crate) fn set_option(&mut self, req: ReqId, _id: &str, _value: &Value) {
        self.respond(req, Err(AcpError::method_not_found()));
    }
    pub(crate) fn apply_setting(&mut self, _change: Change) {}
    pub(crate) fn on_setting_applied(
        &mut self,
        _change: Change,
        _reply: Result<Box<RawValue>, EngineError>,
    ) {
    }
    pub(crate) fn setting_failed(&mut self, change: &Change, error: AcpError) {
        self.respond(change.req, Err(error));
    }
}
