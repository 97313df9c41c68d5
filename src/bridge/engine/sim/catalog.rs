//! PURE. What the simulated installation offers: its models, modes and slash commands.

use super::profile::Profile;
use serde_json::{Value, json};

/// One model.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) id: &'static str,
    label: &'static str,
    description: &'static str,
    pub(super) context: u64,
    output: u64,
    /// Reasoning levels, and the default one.
    pub(super) levels: &'static [(&'static str, &'static str)],
    pub(super) default_level: Option<&'static str>,
}

/// All models, the default one first.
pub(super) static MODELS: &[Model] = &[
    Model {
        id: "sim-large",
        label: "Sim Large",
        description: "Scripted; thinks before it answers",
        context: 200_000,
        output: 32_000,
        levels: &[("low", "Low"), ("high", "High"), ("max", "Max")],
        default_level: Some("high"),
    },
    Model {
        id: "sim-flash",
        label: "Sim Flash",
        description: "Scripted; answers at once",
        context: 128_000,
        output: 16_000,
        levels: &[],
        default_level: None,
    },
    Model {
        id: "sim-wide",
        label: "Sim Wide",
        description: "Scripted; a context of a million tokens",
        context: 1_000_000,
        output: 64_000,
        levels: &[("high", "High"), ("max", "Max")],
        default_level: Some("max"),
    },
];

/// Returns the model of that id.
pub(super) fn model(id: &str) -> Option<&'static Model> {
    MODELS.iter().find(|m| m.id == id)
}

/// Returns the model that a selection names.
pub(super) fn selected(selection: Option<&Value>) -> Option<&'static Model> {
    model(selection?.get("modelId")?.as_str()?)
}

/// A selection of that model as the engine writes it.
pub(super) fn selection(profile: Profile, model: &Model, level: Option<&str>) -> Value {
    let mut out = json!({"providerId": profile.provider_id(), "modelId": model.id});
    if let (Some(map), Some(level)) = (out.as_object_mut(), level.or(model.default_level)) {
        map.insert("options".to_owned(), json!({"reasoningLevel": level}));
    }
    out
}

/// The levels of a model as `[{value, label}]`.
pub(super) fn levels(model: &Model) -> Value {
    model.levels.iter().map(|(value, label)| json!({"value": value, "label": label})).collect()
}

/// An entry of `settings.model.available`.
pub(super) fn available(profile: Profile, model: &Model) -> Value {
    let mut out = json!({
        "ref": {"providerId": profile.provider_id(), "modelId": model.id},
        "label": model.label,
        "providerLabel": "Simulated",
        "description": model.description,
        "contextWindow": model.context,
        "maxOutputTokens": model.output,
    });
    if let (Some(map), Some(default)) = (out.as_object_mut(), model.default_level) {
        map.insert(
            "reasoning".to_owned(),
            json!({"levels": levels(model), "defaultLevel": default}),
        );
    }
    out
}

/// The slash commands of a workspace.
pub(super) fn slash_commands() -> Value {
    json!([
        {"name": "init", "description": "Write a guide to this project for agents", "source": "builtin"},
        {"name": "review", "description": "Review what changed", "inputHint": "what to look at", "source": "builtin"},
        {"name": "demo", "description": "Play one of the simulator's scripts", "inputHint": "script name", "source": "custom"},
    ])
}
