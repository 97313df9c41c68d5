//! PURE. Model lists: from a snapshot's `settings.model.available`, and, before an engine session
//! exists, from the provider configuration (engine protocol section 9). Keys are never read
//! further than to see that they are there.

use serde_json::Value;

use crate::accounts;

use super::{Level, ModelEntry, ModelRef, parse};

/// The order levels are shown in when the configuration gives them without one.
const RANKS: [&str; 12] = [
    "off", "disabled", "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra",
    "enabled", "on",
];

/// The models of a snapshot.
pub fn from_snapshot(snapshot: &Value) -> Vec<ModelEntry> {
    let list = snapshot.pointer("/settings/model/available").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(entry).collect()
}

fn entry(from: &Value) -> Option<ModelEntry> {
    let reference = ModelRef::from_value(from.get("ref").unwrap_or(from))?;
    let text = |key: &str| from.get(key).and_then(Value::as_str).map(str::to_owned);
    let reasoning = from.get("reasoning");
    let list = reasoning.and_then(|r| r.get("levels")?.as_array());
    let default = reasoning.and_then(|r| r.get("defaultLevel")?.as_str());
    Some(ModelEntry {
        label: text("label").unwrap_or_else(|| reference.model_id.clone()),
        provider_label: text("providerLabel"),
        description: text("description"),
        context_window: from.get("contextWindow").and_then(Value::as_u64).filter(|w| *w > 0),
        levels: list.map(|l| levels(l)).unwrap_or_default(),
        default_level: default.map(str::to_owned),
        disabled_reason: text("disabledReason"),
        reference,
    })
}

/// Levels are `{value, label}` or plain strings.
pub(super) fn levels(list: &[Value]) -> Vec<Level> {
    list.iter()
        .filter_map(|level| {
            let value = level.as_str().or_else(|| level.get("value")?.as_str())?;
            let label = level.get("label").and_then(Value::as_str);
            Some(Level {
                value: value.to_owned(),
                label: label.map_or_else(|| capitalised(value), str::to_owned),
            })
        })
        .collect()
}

/// The models of `config.json` and `provider_config.json`, in file order, personal ones last.
pub fn from_config(config: Option<&Value>, personal: Option<&Value>) -> Vec<ModelEntry> {
    let mut found = Vec::new();
    for provider in accounts::providers(config, personal) {
        if provider.problem.is_none() {
            models_of(provider.id, provider.value, &mut found);
        }
    }
    found
}

fn models_of(id: &str, provider: &Value, found: &mut Vec<ModelEntry>) {
    let name = provider.get("name").and_then(Value::as_str);
    for (model_id, model) in accounts::providers::models(provider) {
        let label = model.get("name").and_then(Value::as_str).unwrap_or(model_id);
        let window = model
            .pointer("/limit/context")
            .or_else(|| model.pointer("/config/properties/contextWindow"))
            .or_else(|| model.get("contextWindow"));
        let reasoning = model.get("reasoning");
        found.push(ModelEntry {
            label: label.to_owned(),
            provider_label: name.map(str::to_owned),
            description: model.get("description").and_then(Value::as_str).map(str::to_owned),
            context_window: window.and_then(Value::as_u64).filter(|w| *w > 0),
            levels: reasoning.map(variants).unwrap_or_default(),
            default_level: reasoning
                .and_then(|r| r.get("defaultVariant")?.as_str())
                .map(str::to_owned),
            disabled_reason: None,
            reference: ModelRef { provider_id: id.to_owned(), model_id: model_id.to_owned() },
        });
    }
}

/// `variants` is a list, or a map whose keys are the levels.
fn variants(reasoning: &Value) -> Vec<Level> {
    match reasoning.get("variants").or_else(|| reasoning.get("levels")) {
        Some(Value::Array(list)) => levels(list),
        Some(Value::Object(map)) => {
            let mut names: Vec<&String> = map.keys().collect();
            names.sort_by_key(|name| RANKS.iter().position(|r| r == name).unwrap_or(RANKS.len()));
            let list: Vec<Value> = names.into_iter().map(|n| Value::from(n.as_str())).collect();
            levels(&list)
        }
        _ => Vec::new(),
    }
}

/// `high` → `High`.
pub(super) fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// The provider's name for a user: the engine's, else the id without its technical prefix.
pub(super) fn provider_name(entry: &ModelEntry) -> String {
    entry
        .provider_label
        .clone()
        .unwrap_or_else(|| parse::bare_provider(&entry.reference.provider_id).to_owned())
}
