//! What the engine side answers by itself to requests about accounts (engine protocol section 5).
//! Reads ZCode's own configuration at the moment of the question, and hands a key only to the
//! user's own engine; never logs, stores or shows one. Called by `actor`.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::config::Config;

/// How requests for provider headers are answered.
#[derive(Debug, Clone)]
pub struct Policy {
    config_file: PathBuf,
}

impl Policy {
    /// Answers from the user's `config.json`.
    pub fn new(config: &Config) -> Self {
        Self { config_file: config.zcode_home.join("v2").join("config.json") }
    }

    /// The reply to `interaction/requestProviderRuntimeHeaders`.
    pub(super) fn provider_headers(&self, params: &Value) -> Value {
        let selected =
            params.get("modelSelection").and_then(|selection| selection.get("providerId"));
        let provider =
            params.get("providerId").or(selected).and_then(Value::as_str).unwrap_or_default();
        let text = std::fs::read_to_string(&self.config_file).unwrap_or_default();
        let settings = serde_json::from_str(&text).unwrap_or_default();
        match plan_key(provider, &settings) {
            Ok(key) => json!({ "headersApplied": true, "requestAuth": { "apiKey": key } }),
            Err(message) => json!({ "headersApplied": false, "errorMessage": message }),
        }
    }
}

/// The user's own key for an individual coding plan, by the account's or the configuration's
/// spelling of the provider. Everything else needs an identity that only the desktop app has.
fn plan_key(provider: &str, settings: &Value) -> Result<String, String> {
    let account =
        provider.strip_prefix("account:").and_then(|id| id.strip_suffix("-individual-coding-plan"));
    let builtin = provider.strip_prefix("builtin:").and_then(|id| id.strip_suffix("-coding-plan"));
    let Some(family) = account.or(builtin).filter(|family| matches!(*family, "bigmodel" | "zai"))
    else {
        return Err(format!(
            "The provider {provider} needs a sign-in that only the ZCode desktop app can give. \
             Choose another model, or add a provider with an API key of its own to ZCode."
        ));
    };
    let entry =
        settings.get("provider").and_then(|all| all.get(format!("builtin:{family}-coding-plan")));
    let enabled = entry.is_some_and(|entry| entry.get("enabled") != Some(&Value::Bool(false)));
    let key = entry.and_then(|entry| entry.pointer("/options/apiKey")).and_then(Value::as_str);
    key.filter(|key| enabled && !key.is_empty() && !key.starts_with("enc:"))
        .map(str::to_owned)
        .ok_or_else(|| {
            format!(
                "ZCode's config.json holds no usable API key for the {family} coding plan. \
             Open the ZCode desktop app, sign in and enable the plan, then try again."
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(enabled: bool, key: &str) -> Value {
        json!({"provider": {"builtin:zai-coding-plan": {"enabled": enabled, "options": {"apiKey": key}}}})
    }

    #[test]
    fn an_individual_plan_gets_the_users_own_key_under_both_spellings() {
        for provider in ["account:zai-individual-coding-plan", "builtin:zai-coding-plan"] {
            assert_eq!(plan_key(provider, &settings(true, "k")), Ok("k".to_owned()), "{provider}");
        }
    }

    #[test]
    fn without_material_it_says_what_to_do_and_never_shows_a_key() {
        for (provider, settings) in [
            ("account:zai-start-plan", settings(true, "secret")),
            ("account:zai-team-coding-plan", settings(true, "secret")),
            ("account:bigmodel-individual-coding-plan", settings(true, "secret")),
            ("account:zai-individual-coding-plan", settings(false, "secret")),
            ("account:zai-individual-coding-plan", settings(true, "")),
            ("account:zai-individual-coding-plan", settings(true, "enc:v1:secret")),
            ("", Value::Null),
        ] {
            let message = plan_key(provider, &settings).unwrap_err();
            assert!(
                message.contains("ZCode") && !message.contains("secret"),
                "{provider}: {message}"
            );
        }
    }
}
