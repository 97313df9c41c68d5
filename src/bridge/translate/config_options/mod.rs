//! PURE. Models, modes and thought levels as ACP config options and modes, kept in sync, and what
//! a client sets back to engine requests (bridge behaviour 6.8, 6.9, 3.11). Called by the session
//! machine, which owns one [`Settings`] per session.

mod catalog;
mod options;
mod parse;

use serde_json::{Value, json};

pub use catalog::{from_config, from_snapshot};
pub(crate) use options::MODEL;
pub use parse::{Change, OptionError};

/// A model of a provider, as the engine names them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelRef {
    /// The provider.
    pub provider_id: String,
    /// The model, within its provider.
    pub model_id: String,
}

impl ModelRef {
    /// Reads `{providerId, modelId}`.
    pub fn from_value(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key)?.as_str().filter(|t| !t.is_empty());
        Some(Self {
            provider_id: text("providerId")?.to_owned(),
            model_id: text("modelId")?.to_owned(),
        })
    }

    /// The value of the model option: `<provider>/<model>`.
    pub fn value(&self) -> String {
        format!("{}/{}", self.provider_id, self.model_id)
    }

    /// True for the same model under either spelling of its provider.
    pub fn same(&self, other: &Self) -> bool {
        self.model_id == other.model_id
            && parse::same_provider(&self.provider_id, &other.provider_id)
    }
}

/// A thought level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// What the engine is told.
    pub value: String,
    /// What the user reads.
    pub label: String,
}

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    /// Its name for the engine.
    pub reference: ModelRef,
    /// Its name for the user.
    pub label: String,
    /// The provider's name for the user.
    pub provider_label: Option<String>,
    /// More words.
    pub description: Option<String>,
    /// Tokens it can hold.
    pub context_window: Option<u64>,
    /// The thought levels it declares.
    pub levels: Vec<Level>,
    /// The level it uses when none is chosen.
    pub default_level: Option<String>,
    /// Why it cannot be chosen.
    pub disabled_reason: Option<String>,
}

impl ModelEntry {
    /// The wanted level when the model has it, else its default, else its first. Account models
    /// that declare no level want one all the same.
    pub fn clamp_level(&self, wanted: Option<&str>) -> Option<String> {
        let has = |level: &str| self.levels.iter().any(|l| l.value == level);
        let chosen = wanted
            .filter(|w| has(w))
            .or(self.default_level.as_deref().filter(|d| has(d)))
            .or(self.levels.first().map(|l| l.value.as_str()));
        if chosen.is_none() && self.reference.provider_id.starts_with("account:") {
            return Some("max".to_owned());
        }
        chosen.map(str::to_owned)
    }
}

/// What a session is set to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    models: Vec<ModelEntry>,
    model: Option<ModelRef>,
    thought: Option<String>,
    /// Levels of the engine's own list, for models that declare none.
    levels: Vec<Level>,
    mode: String,
    /// Plan mode that the agent entered by itself: shown whatever `mode` says.
    plan: bool,
}

impl Settings {
    /// The settings of a session that the engine does not know yet.
    pub fn new(models: Vec<ModelEntry>, mode: impl Into<String>) -> Self {
        let model =
            models.iter().find(|m| m.disabled_reason.is_none()).map(|m| m.reference.clone());
        let mut settings = Self { models, model, mode: mode.into(), ..Self::default() };
        settings.clamp();
        settings
    }

    /// Takes a snapshot (create, resume, fork, read, set). A list of one model is what a read
    /// gives, and does not replace a longer one.
    pub fn apply_snapshot(&mut self, snapshot: &Value) {
        let models = from_snapshot(snapshot);
        let is_partial = models.len() == 1 && self.models.len() > 1;
        if !is_partial && !models.is_empty() {
            self.models = models;
        } else if is_partial {
            for fresh in models {
                match self.models.iter_mut().find(|m| m.reference == fresh.reference) {
                    Some(known) => *known = fresh,
                    None => self.models.push(fresh),
                }
            }
        }
        if let Some(settings) = snapshot.get("settings") {
            self.apply_patch(settings);
            let level = |key: &str| settings.pointer(&format!("/thoughtLevel/{key}"));
            if let Some(list) = level("available").and_then(Value::as_array) {
                self.levels = catalog::levels(list);
            }
            if self.thought.is_none() {
                self.thought = level("defaultLevel").and_then(Value::as_str).map(str::to_owned);
            }
        }
        self.clamp();
    }

    /// Takes the fields that a `state.updated` patch (or a snapshot's `settings`) has.
    pub fn apply_patch(&mut self, patch: &Value) {
        let at = |key: &str| {
            let nested = patch.get(key).and_then(|v| v.get("current"));
            nested.or_else(|| patch.get(format!("{key}.current")))
        };
        if let Some(model) = at("model") {
            if let Some(reference) = ModelRef::from_value(model) {
                self.model = Some(reference);
            }
            let level = model.pointer("/options/reasoningLevel").and_then(Value::as_str);
            if let Some(level) = level {
                self.thought = Some(level.to_owned());
            }
        }
        if let Some(level) = at("thoughtLevel").and_then(Value::as_str) {
            self.thought = Some(level.to_owned());
        }
        if let Some(mode) = at("mode").and_then(Value::as_str) {
            mode.clone_into(&mut self.mode);
        }
        self.clamp();
    }

    /// Takes `session.updated {mode, planEnabled}`.
    pub fn apply_plan(&mut self, mode: Option<&str>, plan_enabled: Option<bool>) {
        if let Some(plan) = plan_enabled {
            self.plan = plan;
        }
        if let Some(mode) = mode {
            mode.clone_into(&mut self.mode);
        }
    }

    /// Takes a change that was accepted, or that waits for the engine session to be made.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Model(reference) => self.model = Some(reference.clone()),
            Change::Mode(mode) => {
                mode.clone_into(&mut self.mode);
                self.plan = mode == "plan" && self.plan;
            }
            Change::Thought(level) => self.thought = Some(level.clone()),
            Change::Nothing => {}
        }
        self.clamp();
    }

    /// The mode to show: `plan` while the agent plans, whatever the engine's settings say.
    pub fn shown_mode(&self) -> &str {
        if self.plan { "plan" } else { &self.mode }
    }

    /// The model in use.
    pub fn model(&self) -> Option<&ModelRef> {
        self.model.as_ref()
    }

    /// The thought level in use.
    pub fn thought(&self) -> Option<&str> {
        self.thought.as_deref()
    }

    /// Tokens the model in use can hold, as the model list says.
    pub fn context_window(&self) -> Option<u64> {
        self.entry(self.model.as_ref()?)?.context_window
    }

    /// The model to switch to when the current one is gone (a resumed session whose provider
    /// vanished): the first that can be chosen. `None` when nothing has to be repaired.
    pub fn repair(&self) -> Option<Change> {
        let usable = |m: &&ModelEntry| m.disabled_reason.is_none();
        let current = self.model.as_ref().and_then(|model| self.entry(model));
        if current.as_ref().is_some_and(usable) || self.models.is_empty() {
            return None;
        }
        // The engine calls all of them unusable when it only misses the session's own: one that it
        // may refuse is better than a turn that must fail.
        let any = || current.as_ref().copied().or(self.models.first());
        let first = self.models.iter().find(usable).or_else(any)?;
        Some(Change::Model(first.reference.clone()))
    }

    /// `modelSelection` for a model, with the level it needs.
    pub fn selection(&self, reference: &ModelRef) -> Value {
        let entry = self.entry(reference);
        let reference = entry.map_or(reference, |e| &e.reference);
        let level = match entry {
            Some(entry) => entry.clamp_level(self.thought()),
            None => self.thought.clone(),
        };
        let mut selection =
            json!({"providerId": reference.provider_id, "modelId": reference.model_id});
        if let (Some(level), Some(map)) = (level, selection.as_object_mut()) {
            map.insert("options".into(), json!({ "reasoningLevel": level }));
        }
        selection
    }

    /// The engine request that makes a change; `None` for a change of nothing.
    pub fn request(&self, session_id: &str, change: &Change) -> Option<(&'static str, Value)> {
        Some(match change {
            Change::Model(reference) => (
                "session/setModel",
                json!({"sessionId": session_id, "model": self.selection(reference), "persistAsWorkspaceLastUsed": false}),
            ),
            Change::Mode(mode) => {
                ("session/setMode", json!({"sessionId": session_id, "mode": mode}))
            }
            Change::Thought(level) => {
                ("session/setThoughtLevel", json!({"sessionId": session_id, "thoughtLevel": level}))
            }
            Change::Nothing => return None,
        })
    }

    fn entry(&self, reference: &ModelRef) -> Option<&ModelEntry> {
        let exact = self.models.iter().find(|m| m.reference == *reference);
        exact.or_else(|| self.models.iter().find(|m| m.reference.same(reference)))
    }

    /// The levels that the model in use can have.
    fn current_levels(&self) -> &[Level] {
        let declared = self.models.iter().any(|m| !m.levels.is_empty());
        match self.model.as_ref().and_then(|m| self.entry(m)) {
            Some(entry) if declared => &entry.levels,
            _ => &self.levels,
        }
    }

    /// A level of the previous model is not shown for the next one.
    fn clamp(&mut self) {
        if let Some(entry) = self.model.as_ref().and_then(|m| self.entry(m))
            && !entry.levels.is_empty()
        {
            self.thought = entry.clamp_level(self.thought());
        }
    }
}

#[cfg(test)]
mod tests;
