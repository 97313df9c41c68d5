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
