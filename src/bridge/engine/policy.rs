//! What the engine side answers by itself to requests about accounts (engine protocol section 5).
//! Reads ZCode's own files at the moment of the question and hands a key only to the user's own
//! engine; never logs, stores or shows one. Called by `actor`.

use std::path::PathBuf;

use serde_json::Value;

use crate::accounts::{AccountFiles, LiveAnswers, header_answer};

/// How requests for provider headers are answered.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// ZCode's own directory.
    pub zcode_home: PathBuf,
    /// The provider table that the engine was given.
    pub table: Option<PathBuf>,
    /// What the accounts' services said of plans, when they were asked.
    pub live: LiveAnswers,
}

impl Policy {
    /// The reply to `interaction/requestProviderRuntimeHeaders`.
    pub(super) fn provider_headers(&self, params: &Value) -> Value {
        let text = |at: &str| params.pointer(at)?.as_str().filter(|id| !id.is_empty());
        let provider = text("/providerId").or_else(|| text("/modelSelection/providerId"));
        let files = AccountFiles::read(&self.zcode_home, self.table.as_deref());
        header_answer(&files, &self.live, provider.unwrap_or("this provider"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_provider_is_read_from_either_place_and_a_key_comes_from_the_users_files_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("v2")).unwrap();
        let config = r#"{"provider": {"builtin:zai-coding-plan": {"enabled": true, "options": {"apiKey": "k"}}}}"#;
        std::fs::write(dir.path().join("v2/config.json"), config).unwrap();
        let table = dir.path().join("table.json");
        let rule = r#"{"providerId": "account:zai-individual-coding-plan", "config": {"access":
            {"type": "zhipu-account", "accountType": "zai", "mode": "individual-coding-plan"}}}"#;
        std::fs::write(
            &table,
            format!(r#"{{"config": {{"providerConfigRules": {{"providerRules": [{rule}]}}}}}}"#),
        )
        .unwrap();
        let policy =
            Policy { zcode_home: dir.path().to_owned(), table: Some(table), ..Policy::default() };
        let id = "account:zai-individual-coding-plan";
        for params in [
            json!({"providerId": id}),
            json!({"modelSelection": {"providerId": id}}),
            json!({"providerId": null, "modelSelection": {"providerId": id}}),
            json!({"providerId": "", "modelSelection": {"providerId": id}}),
        ] {
            let answer = policy.provider_headers(&params);
            assert_eq!(answer, json!({"headersApplied": true, "requestAuth": {"apiKey": "k"}}));
        }
        for params in [
            json!({"providerId": "account:zai-start-plan"}),
            // The files' name of the same plan is not the account's.
            json!({"providerId": "builtin:zai-coding-plan"}),
            json!({}),
        ] {
            let answer = policy.provider_headers(&params);
            assert_eq!(answer["headersApplied"], json!(false));
            assert!(answer["errorMessage"].as_str().is_some_and(|text| !text.is_empty()));
        }
    }
}
