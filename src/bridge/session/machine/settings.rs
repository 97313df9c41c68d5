//! PURE. Mode, model and thought level: what is shown before an engine runs, what the engine says,
//! what the user chose, and how a change gets there and back. Options and modes are always told
//! together, and only when they changed.

use std::time::Duration;

use agent_client_protocol::Error as AcpError;
use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::link::{LinkState, OpenKind, Waiter};
use super::{Cont, Machine, ReqId, invalid_params};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::StateUpdated;
use crate::bridge::session::failure;
use crate::bridge::session::providers::ProviderFiles;
use crate::bridge::translate::config_options::{self, Change as Wish};
use crate::config::SessionConfig;

/// The mode that ZCode's own user would get.
const DEFAULT_MODE: &str = "build";
/// The engine leaves plan mode a little after the plan was approved.
const AFTER_PLAN: Duration = Duration::from_secs(1);

/// Who asked for a change, which decides the form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedBy {
    /// `session/set_mode`
    Mode,
    /// `session/set_config_option`
    Option,
    /// An extension method.
    Extension,
    /// A slash command: answered like a prompt.
    Command,
}

/// A change that waits for the engine.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) req: ReqId,
    by: AskedBy,
    wish: Wish,
}

/// The settings as they are shown, and what was chosen by hand.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    now: config_options::Settings,
    /// The engine has spoken: `now` is its word, not a guess from files.
    confirmed: bool,
    /// A model of the settings that nothing known so far has; the engine may know it.
    unmet: Option<String>,
    mode: Option<String>,
    model: Option<String>,
    thought: Option<String>,
}

impl Settings {
    /// What can be known before an engine runs.
    pub(crate) fn before_engine(files: &ProviderFiles) -> Self {
        let models = config_options::from_config(Some(&files.config), Some(&files.personal));
        Self { now: config_options::Settings::new(models, DEFAULT_MODE), ..Self::default() }
    }

    /// Takes what an installation is known to offer, in a snapshot's shape.
    pub(crate) fn expect_snapshot(&mut self, snapshot: &Value) {
        self.now.apply_snapshot(snapshot);
        self.confirmed = true;
    }

    /// Takes what flags and settings ask for. Returns what cannot be, for the user; a model that
    /// may still turn out to be there is looked for again when the engine has spoken.
    pub(crate) fn prefer(&mut self, config: &SessionConfig) -> Option<String> {
        // A mode that no engine knows would make it refuse every new session.
        if let Some(Ok(wish)) = config.mode.as_deref().map(|mode| self.now.parse_mode(mode)) {
            self.choose(&wish);
        }
        self.unmet.clone_from(&config.model);
        if self.confirmed {
            return self.meet_model();
        }
        if let Some(Ok(wish)) = self.unmet.as_deref().map(|model| self.now.parse_model(model)) {
            self.unmet = None;
            self.choose(&wish);
        }
        None
    }

    /// Looks for the model that the settings ask for among the engine's own. Returns what to tell
    /// the user when it is not there.
    fn meet_model(&mut self) -> Option<String> {
        let model = self.unmet.take()?;
        match self.now.parse_model(&model) {
            Ok(wish) => {
                self.choose(&wish);
                None
            }
            Err(error) => Some(format!("The model asked for is not used: {error}")),
        }
    }

    /// Takes what was chosen in an earlier process.
    pub(crate) fn remember(&mut self, model: Option<String>, thought: Option<String>) {
        if let Some(Ok(wish)) = model.as_deref().map(|model| self.now.parse_model(model)) {
            self.now.apply(&wish);
        }
        self.model = model.or(self.model.take());
        if let Some(level) = thought.filter(|level| !level.is_empty()) {
            self.now.apply(&Wish::Thought(level.clone()));
            self.thought = Some(level);
        }
    }

    fn choose(&mut self, wish: &Wish) {
        self.now.apply(wish);
        match wish {
            Wish::Model(reference) => {
                self.model = Some(reference.value());
                self.thought = None;
            }
            Wish::Mode(mode) => self.mode = Some(mode.clone()),
            Wish::Thought(level) => self.thought = Some(level.clone()),
            Wish::Nothing => {}
        }
    }

    /// Only what somebody chose: the rest is the engine's own default.
    pub(crate) fn add_to_create(&self, params: &mut Map<String, Value>) {
        if let Some(mode) = &self.mode {
            params.insert("mode".to_owned(), json!(mode));
        }
        if let (Some(_), Some(model)) = (&self.model, self.now.model()) {
            params.insert("model".to_owned(), self.now.selection(model));
        }
        if let Some(level) = &self.thought {
            params.insert("thoughtLevel".to_owned(), json!(level));
        }
    }

    pub(crate) fn chosen_model(&self) -> Option<String> {
        self.model.clone()
    }

    pub(crate) fn chosen_thought(&self) -> Option<String> {
        self.thought.clone()
    }

    pub(crate) fn context_window(&self) -> Option<u64> {
        self.now.context_window()
    }

    pub(crate) fn shown(&self) -> &config_options::Settings {
        &self.now
    }
}

impl Machine {
    pub(crate) fn answer_new(&mut self, req: ReqId) {
        let response = acp::NewSessionResponse::new(self.seed.acp_id.clone())
            .modes(self.settings.now.modes())
            .config_options(self.settings.now.options());
        self.shown_settings = Some(self.settings.now.clone());
        self.respond_with(req, &response);
        self.tell_remark();
        self.announce_commands();
        self.announce_commands_again();
    }

    /// What was wrong with the request, told after its answer.
    fn tell_remark(&mut self) {
        if let Some(remark) = self.seed.remark.take() {
            self.warn(&remark, None);
        }
    }

    pub(crate) fn answer_open(&mut self, req: ReqId, how: OpenKind) {
        let (modes, options) = (self.settings.now.modes(), self.settings.now.options());
        self.shown_settings = Some(self.settings.now.clone());
        match how {
            OpenKind::Resume => {
                let response =
                    acp::ResumeSessionResponse::new().modes(modes).config_options(options);
                self.respond_with(req, &response);
            }
            OpenKind::Load { meta } => {
                let mut zcode = acp::Meta::new();
                if meta.is_object() {
                    zcode.insert("zcode".to_owned(), json!({"replayMeta": meta}));
                }
                let response = acp::LoadSessionResponse::new()
                    .modes(modes)
                    .config_options(options)
                    .meta(Some(zcode).filter(|m| !m.is_empty()));
                self.respond_with(req, &response);
            }
            OpenKind::Fork => {
                let response = acp::ForkSessionResponse::new(self.seed.acp_id.clone())
                    .modes(modes)
                    .config_options(options);
                self.respond_with(req, &response);
            }
        }
        self.tell_remark();
        self.announce_commands();
        self.announce_commands_again();
    }

    pub(crate) fn take_settings(&mut self, snapshot: &Value) {
        self.settings.now.apply_snapshot(snapshot);
        self.settings.confirmed = true;
        self.meet_wanted_model(snapshot);
        self.announce_settings();
    }

    /// Once an engine has told its models, the settings' own choice is one of them or is refused
    /// aloud. A choice that is met here is set by [`Self::repair_settings`].
    fn meet_wanted_model(&mut self, snapshot: &Value) {
        if self.settings.unmet.is_none() || snapshot.pointer("/settings/model").is_none() {
            return;
        }
        let current = self.settings.now.model().cloned();
        if let Some(problem) = self.settings.meet_model() {
            self.warn(&problem, None);
        } else if let Some(current) = current {
            // What is chosen is not yet what the engine runs with.
            self.settings.now.apply(&Wish::Model(current));
        }
    }

    /// Tells mode, options and commands to an id that stood for another session until now.
    pub(crate) fn tell_all_settings(&mut self) {
        self.shown_settings = Some(self.settings.now.clone());
        for update in self.settings.now.updates() {
            self.update(update);
        }
        self.tell_remark();
        self.tell_commands();
    }

    /// Tells the client what changed since it was last told. Nothing before its first answer.
    fn announce_settings(&mut self) {
        self.ring_follows_model();
        let Some(shown) = &self.shown_settings else { return };
        let (options, modes) = (
            shown.options() != self.settings.now.options(),
            shown.shown_mode() != self.settings.now.shown_mode(),
        );
        if options || modes {
            let [option_update, mode_update] = self.settings.now.updates();
            self.update(option_update);
            if modes {
                self.update(mode_update);
            }
            self.shown_settings = Some(self.settings.now.clone());
        }
    }

    /// After a resume: the user's own choice again, or a model that exists when theirs is gone.
    /// The calls go out before the prompt that waits, and the engine serves in order.
    pub(crate) fn repair_settings(&mut self) {
        let Some(sid) = self.engine_sid().map(str::to_owned) else { return };
        let chosen = self.settings.model.as_deref().and_then(|model| {
            match self.settings.now.parse_model(model) {
                Ok(Wish::Model(reference)) => Some(reference),
                _ => None,
            }
        });
        let wish = match chosen {
            Some(reference)
                if self.settings.now.model().is_none_or(|now| !now.same(&reference)) =>
            {
                Some(Wish::Model(reference))
            }
            _ => self.settings.now.repair(),
        };
        if let Some(wish) = wish {
            self.settings.now.apply(&wish);
            if let Some((method, params)) = self.settings.now.request(&sid, &wish) {
                self.call(method, params, Cont::Repaired);
            }
        }
        if let Some(level) = self.settings.thought.clone()
            && self.settings.now.thought() != Some(level.as_str())
            && let Ok(wish) = self.settings.now.parse_thought(&level)
            && let Some((method, params)) = self.settings.now.request(&sid, &wish)
        {
            self.settings.now.apply(&wish);
            self.call(method, params, Cont::Repaired);
        }
    }

    pub(crate) fn on_repaired(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        // A repair that is refused leaves the session as it was; the prompt says what is wrong.
        if let Ok(snapshot) = reply.and_then(|raw| failure::parse(&raw)) {
            self.take_settings(&snapshot);
        }
    }

    pub(crate) fn read_settings(&mut self) {
        if self.link.state == LinkState::Up {
            self.read_state(Cont::Settings);
        }
    }

    pub(crate) fn on_settings_read(&mut self, reply: Result<Box<RawValue>, EngineError>) {
        if let Ok(snapshot) = reply.and_then(|raw| failure::parse(&raw)) {
            self.take_settings(&snapshot);
        }
    }

    pub(crate) fn on_state(&mut self, state: &StateUpdated) {
        if state.session_id.is_some() && state.session_id.as_deref() != self.engine_sid() {
            return;
        }
        self.settings.now.apply_patch(&state.patch);
        self.announce_settings();
        if let Some(reason) = &state.reason {
            self.compact_reason(reason);
        }
    }

    pub(crate) fn mode_pushed(&mut self, mode: Option<&str>, plan: Option<bool>) {
        self.settings.now.apply_plan(mode, plan);
        self.announce_settings();
    }

    pub(crate) fn plan_was_decided(&mut self) {
        self.timer(AFTER_PLAN, Cont::SettingsLater);
    }

    pub(crate) fn set_mode(&mut self, req: ReqId, mode: &str) {
        let wish = self.settings.now.parse_mode(mode).map_err(|e| e.to_string());
        self.change(req, AskedBy::Mode, wish);
    }

    pub(crate) fn set_option(
        &mut self,
        req: ReqId,
        id: &str,
        value: &acp::SessionConfigOptionValue,
    ) {
        if let (config_options::MODEL, Some(name)) = (id, value.as_value_id()) {
            return self.set_by_name(req, AskedBy::Option, "model", &name.0);
        }
        let wish = self.settings.now.parse(id, value).map_err(|e| e.to_string());
        self.change(req, AskedBy::Option, wish);
    }

    /// `setMode`, `setModel` and `setThoughtLevel` as extensions and as commands.
    pub(crate) fn set_by_name(&mut self, req: ReqId, by: AskedBy, name: &str, value: &str) {
        let wish = match name {
            "mode" => self.settings.now.parse_mode(value),
            "model" => self.settings.now.parse_model(value),
            _ => self.settings.now.parse_thought(value),
        };
        if name == "model"
            && wish.is_err()
            && !self.settings.confirmed
            && self.link.state != LinkState::Up
        {
            // The files do not have it, but they are not all that an engine knows.
            return self.with_link(Waiter::Model { req, by, name: value.to_owned() });
        }
        self.change(req, by, wish.map_err(|e| e.to_string()));
    }

    /// Goes back to the model's own thought level.
    pub(crate) fn reset_thought(&mut self, req: ReqId) {
        let usual = self.settings.now.usual_thought();
        self.set_by_name(req, AskedBy::Extension, "thought", &usual);
    }

    fn change(&mut self, req: ReqId, by: AskedBy, wish: Result<Wish, String>) {
        let wish = match wish {
            Ok(wish) => wish,
            Err(text) => return self.respond(req, Err(invalid_params(text))),
        };
        let change = Change { req, by, wish };
        if self.engine_sid().is_none() && self.link.state == LinkState::Down {
            // Not made yet: the choice goes into its creation.
            self.settings.choose(&change.wish);
            self.record();
            return self.answer_change(&change);
        }
        self.with_link(Waiter::Setting(change));
    }

    pub(crate) fn apply_setting(&mut self, change: Change) {
        let Some(sid) = self.engine_sid() else { return };
        match self.settings.now.request(sid, &change.wish) {
            Some((method, params)) => {
                self.call(method, params, Cont::Setting(change));
            }
            None => self.answer_change(&change),
        }
    }

    pub(crate) fn on_setting_applied(
        &mut self,
        change: Change,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(snapshot) => {
                self.settings.now.apply_snapshot(&snapshot);
                self.settings.choose(&change.wish);
                self.record();
                self.answer_change(&change);
            }
            Err(error) if error.is_not_active() => {
                self.link_lost();
                self.with_link(Waiter::Setting(change));
            }
            Err(error) => self.setting_failed(&change, failure::to_acp(&error)),
        }
    }

    fn answer_change(&mut self, change: &Change) {
        let options = self.settings.now.options();
        match change.by {
            AskedBy::Mode => self.respond_with(change.req, &acp::SetSessionModeResponse::new()),
            AskedBy::Option | AskedBy::Extension => {
                self.respond_with(change.req, &acp::SetSessionConfigOptionResponse::new(options));
            }
            AskedBy::Command => {
                let text = match &change.wish {
                    Wish::Model(_) => format!(
                        "Model: {}",
                        self.settings
                            .now
                            .model()
                            .map(config_options::ModelRef::value)
                            .unwrap_or_default()
                    ),
                    Wish::Mode(mode) => format!("Mode: {mode}"),
                    Wish::Thought(level) => format!("Thought level: {level}"),
                    Wish::Nothing => "Nothing to change.".to_owned(),
                };
                self.finish_command(change.req, &text);
            }
        }
        self.announce_settings();
    }

    pub(crate) fn setting_failed(&mut self, change: &Change, error: AcpError) {
        self.respond(change.req, Err(error));
    }
}
