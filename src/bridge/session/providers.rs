//! Reads the provider files of ZCode's home for what a client is shown before an engine runs.
//! Read only; values that could be secrets never leave this module unparsed. Called by the registry.

use std::path::Path;

use serde_json::Value;

use crate::accounts::read_json;

/// The parsed files; `Null` where there is none.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProviderFiles {
    /// `v2/config.json`
    pub(crate) config: Value,
    /// `v2/provider_config.json`
    pub(crate) personal: Value,
}

/// Reads both files; one that is missing or torn counts as absent.
pub(crate) fn read(zcode_home: &Path) -> ProviderFiles {
    let file = |name: &str| {
        read_json(&zcode_home.join("v2").join(name)).ok().flatten().unwrap_or(Value::Null)
    };
    ProviderFiles { config: file("config.json"), personal: file("provider_config.json") }
}

/// Whether ZCode has an account or an enabled provider.
pub(crate) fn is_set_up(zcode_home: &Path) -> bool {
    let files = read(zcode_home);
    let enabled = |p: &Value| p.get("enabled").and_then(Value::as_bool) != Some(false);
    let configured = files
        .config
        .get("provider")
        .and_then(Value::as_object)
        .is_some_and(|all| all.values().any(enabled));
    let credentials = read_json(&zcode_home.join("v2").join("credentials.json"));
    let signed_in = credentials.ok().flatten().is_some_and(|c| {
        ["oauth:zai:access_token", "oauth:bigmodel:access_token", "zcodejwttoken"]
            .iter()
            .any(|key| c.get(key).is_some())
    });
    configured || signed_in
}
