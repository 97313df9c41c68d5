//! What is known of the account's plans and of what is left of them, for a client that asks
//! (`account/usage_stats`), in the shape that clients of other bridges know. Asks the services only
//! where the user turned that on. Called by `bridge::session`.

use std::path::Path;

use serde_json::{Value, json};

use super::limits::{Limits, Window};
use super::{AccountFiles, Entitlement, Live, LiveAnswers, SignIn, entitlements, sign_in};
use crate::config::Config;

/// The answer to `account/usage_stats`. `table` is the engine's built-in provider table, without
/// which no plan has a name.
pub async fn usage_stats(config: &Config, table: Option<&Path>) -> Value {
    let live = if config.engine.demo.is_some() { None } else { Live::of(config, true).await };
    let files = AccountFiles::read(&config.zcode_home, table);
    let none = LiveAnswers::new();
    let plans = entitlements(&files, live.as_ref().map_or(&none, |live| &live.answers));
    stats(&sign_in(&files), &plans, live.as_ref().and_then(|live| live.limits.as_ref()))
}

fn stats(state: &SignIn, plans: &[Entitlement], limits: Option<&Limits>) -> Value {
    let plans: Vec<Value> = plans
        .iter()
        .filter(|plan| plan.entitled)
        .map(|plan| {
            json!({"id": plan.account_id, "family": plan.family, "mode": plan.mode,
                   "current": plan.in_use})
        })
        .collect();
    let providers: Vec<Value> = state
        .channels
        .iter()
        .map(|channel| {
            json!({"id": channel.id, "name": channel.name, "models": channel.models,
                   "usable": channel.problem.is_none(), "problem": channel.problem})
        })
        .collect();
    let glm = limits.map_or_else(
        || json!({"kind": "unavailable", "items": []}),
        |limits| {
            let items: Vec<Value> = limits.windows.iter().map(item).collect();
            json!({"kind": "success", "level": limits.level, "items": items})
        },
    );
    json!({
        "glm": glm,
        "opencode": {"kind": "unavailable", "windows": []},
        "ollama": {"kind": "unavailable", "windows": []},
        "_meta": {"zcode": {"plans": plans, "providers": providers}},
    })
}

fn item(window: &Window) -> Value {
    let key = match window.label.as_str() {
        "5h" => "token_5h".to_owned(),
        "Week" => "token_week".to_owned(),
        other => other.to_lowercase(),
    };
    let mut item = json!({"key": key, "label": window.label, "usedPercent": window.used_percent});
    if let (Some(at), Value::Object(map)) = (window.resets_ms, &mut item) {
        map.insert("nextResetTime".to_owned(), json!(at));
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Channel;

    #[tokio::test]
    async fn without_a_live_check_nothing_is_known_and_no_key_gets_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".zcode/v2")).unwrap();
        let file = json!({"provider": {"mine": {"name": "Mine", "enabled": true,
            "options": {"apiKey": "sk-very-secret"}, "models": {"m": {}}}}});
        std::fs::write(dir.path().join(".zcode/v2/config.json"), file.to_string()).unwrap();
        let config = crate::config::test_config(crate::config::Env::default(), dir.path());
        let told = usage_stats(&config, None).await;
        assert_eq!(told["glm"], json!({"kind": "unavailable", "items": []}));
        assert_eq!(told["_meta"]["zcode"]["providers"][0]["id"], "mine");
        assert!(!told.to_string().contains("very-secret"), "{told}");
    }

    #[test]
    fn windows_have_the_keys_that_clients_know_and_a_bad_provider_says_why() {
        let window = |label: &str, resets_ms| Window {
            label: label.to_owned(),
            used_percent: 45,
            resets_ms,
        };
        let limits = Limits {
            level: "pro".into(),
            windows: vec![window("5h", Some(7)), window("Week", None), window("MCP", None)],
        };
        let channel =
            Channel { id: "p".into(), name: "P".into(), models: 0, problem: Some("no key") };
        let state = SignIn { channels: vec![channel], ..SignIn::default() };
        let told = stats(&state, &[], Some(&limits));
        assert_eq!(
            told["glm"],
            json!({"kind": "success", "level": "pro", "items": [
                {"key": "token_5h", "label": "5h", "usedPercent": 45, "nextResetTime": 7},
                {"key": "token_week", "label": "Week", "usedPercent": 45},
                {"key": "mcp", "label": "MCP", "usedPercent": 45}]})
        );
        let provider = &told["_meta"]["zcode"]["providers"][0];
        assert_eq!((&provider["usable"], &provider["problem"]), (&json!(false), &json!("no key")));
    }
}
