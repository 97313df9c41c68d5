//! Settings, config options and what clients set: table tests.

use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

use super::*;

fn available() -> Value {
    json!([
        {"ref": {"providerId": "lab", "modelId": "large"}, "label": "Lab Large", "providerLabel": "Lab", "contextWindow": 200_000,
            "reasoning": {"levels": [{"value": "low", "label": "Low"}, {"value": "high", "label": "High"}], "defaultLevel": "high"}},
        {"ref": {"providerId": "lab", "modelId": "small"}, "label": "Lab Small", "providerLabel": "Lab", "contextWindow": 64_000},
        {"ref": {"providerId": "acme", "modelId": "vendor/think"}, "label": "Think", "providerLabel": "Acme",
            "reasoning": {"levels": [{"value": "max", "label": "Max"}, {"value": "low", "label": "Low"}]}},
        {"ref": {"providerId": "acme", "modelId": "gone"}, "label": "Gone", "providerLabel": "Acme", "disabledReason": "no key"}])
}

fn snapshot() -> Value {
    json!({"settings": {"model": {"current": {"providerId": "lab", "modelId": "large", "options": {"reasoningLevel": "low"}}, "available": available()},
        "thoughtLevel": {"enabled": true, "current": "low", "defaultLevel": "high"}, "mode": {"current": "build"}}})
}

fn settings() -> Settings {
    let mut settings = Settings::new(Vec::new(), "build");
    settings.apply_snapshot(&snapshot());
    settings
}

fn shown(settings: &Settings) -> Value {
    serde_json::to_value(settings.options()).unwrap()
}

fn current(settings: &Settings) -> [String; 3] {
    let shown = shown(settings);
    [0, 1, 2].map(|at| shown[at]["currentValue"].as_str().unwrap().to_owned())
}

fn reference(provider: &str, model: &str) -> ModelRef {
    ModelRef { provider_id: provider.into(), model_id: model.into() }
}

#[test]
fn options_are_complete_and_grouped_by_provider() {
    let got = shown(&settings());
    assert_eq!(
        got[0],
        json!({"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "lab/large", "options": [
        {"group": "lab", "name": "Lab", "options": [{"value": "lab/large", "name": "Lab Large"}, {"value": "lab/small", "name": "Lab Small"}]},
        {"group": "acme", "name": "Acme", "options": [{"value": "acme/vendor/think", "name": "Think"}]}]})
    );
    assert_eq!(
        got[1]["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|o| o["value"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["plan", "build", "edit", "yolo"]
    );
    assert_eq!(
        got[2],
        json!({"id": "thought", "name": "Thought level", "category": "thought_level", "type": "select", "currentValue": "low",
        "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]})
    );
}

#[test]
fn every_current_value_is_among_the_options_whatever_the_engine_says() {
    for change in [
        json!({}),
        json!({"model": {"current": {"providerId": "lost", "modelId": "m"}}}),
        json!({"model": {"current": {"providerId": "acme", "modelId": "gone"}}}),
        json!({"mode": {"current": "guarded"}, "thoughtLevel": {"current": "bogus"}}),
        json!({"mode.current": "future", "model.current": {"providerId": "lab", "modelId": "small"}}),
    ] {
        for mut settings in [settings(), Settings::new(Vec::new(), "build")] {
            settings.apply_patch(&change);
            for option in shown(&settings).as_array().unwrap() {
                let flat: Vec<&Value> = option["options"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .flat_map(|o| {
                        o["options"].as_array().map_or_else(
                            || vec![&o["value"]],
                            |l| l.iter().map(|o| &o["value"]).collect(),
                        )
                    })
                    .collect();
                assert!(flat.contains(&&option["currentValue"]), "{change} {option}");
            }
            let modes = serde_json::to_value(settings.modes()).unwrap();
            assert!(
                modes["availableModes"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|m| m["id"] == modes["currentModeId"])
            );
            assert_eq!(modes["currentModeId"], shown(&settings)[1]["currentValue"]);
        }
    }
}

#[test]
fn a_read_with_the_current_model_alone_keeps_the_list() {
    let mut settings = settings();
    settings.apply_snapshot(&json!({"settings": {"model": {"current": {"providerId": "lab", "modelId": "small"},
        "available": [{"ref": {"providerId": "lab", "modelId": "small"}, "label": "Lab Small", "contextWindow": 65_000}]}}}));
    assert_eq!(current(&settings), ["lab/small", "build", "default"]);
    assert_eq!(settings.context_window(), Some(65_000));
    assert!(settings.parse_model("lab/large").is_ok());
}

#[test]
fn a_patch_changes_only_what_it_names() {
    let mut settings = settings();
    settings.apply_patch(&json!({"mode": {"current": "edit"}}));
    assert_eq!(current(&settings), ["lab/large", "edit", "low"]);
    settings.apply_patch(&json!({"thoughtLevel": {"current": "high"}}));
    assert_eq!(current(&settings), ["lab/large", "edit", "high"]);
    settings.apply_patch(&json!({"status": "running"}));
    assert_eq!(current(&settings), ["lab/large", "edit", "high"]);
}

#[test]
fn the_plan_mode_of_the_agent_is_shown_over_the_engines_setting() {
    let mut settings = settings();
    settings.apply_plan(None, Some(true));
    settings.apply_patch(&json!({"mode": {"current": "edit"}}));
    assert_eq!(settings.shown_mode(), "plan");
    settings.apply_plan(Some("build"), Some(false));
    assert_eq!(settings.shown_mode(), "build");
    settings.apply_plan(None, Some(true));
    settings.apply(&Change::Mode("yolo".into()));
    assert_eq!(settings.shown_mode(), "yolo", "the user's choice ends it");
}

#[test]
fn the_thought_level_is_clamped_to_the_model() {
    let mut settings = settings();
    settings.apply(&Change::Model(reference("acme", "vendor/think")));
    assert_eq!(current(&settings)[2], "low", "the level exists there too");
    settings.apply(&Change::Thought("max".into()));
    settings.apply(&Change::Model(reference("lab", "large")));
    assert_eq!(current(&settings)[2], "high", "its default");
    settings.apply(&Change::Model(reference("lab", "small")));
    assert_eq!(current(&settings)[2], "default");
}

#[test]
fn changes_become_engine_requests_with_the_level_a_model_needs() {
    let settings = settings();
    let small = settings.request("s", &Change::Model(reference("lab", "small"))).unwrap();
    assert_eq!(
        small,
        (
            "session/setModel",
            json!({"sessionId": "s", "model": {"providerId": "lab", "modelId": "small"}, "persistAsWorkspaceLastUsed": false})
        )
    );
    assert_eq!(
        settings.selection(&reference("acme", "vendor/think"))["options"],
        json!({"reasoningLevel": "low"})
    );
    let mode = settings.request("s", &Change::Mode("plan".into())).unwrap();
    assert_eq!(mode, ("session/setMode", json!({"sessionId": "s", "mode": "plan"})));
    let thought = settings.request("s", &Change::Thought("high".into())).unwrap();
    assert_eq!(
        thought,
        ("session/setThoughtLevel", json!({"sessionId": "s", "thoughtLevel": "high"}))
    );
    assert_eq!(settings.request("s", &Change::Nothing), None);
}

#[test]
fn an_account_model_without_levels_still_gets_one() {
    let mut settings = Settings::new(Vec::new(), "build");
    settings.apply_snapshot(&json!({"settings": {"model": {"available": [
        {"ref": {"providerId": "account:zai-individual-coding-plan", "modelId": "GLM-5.3"}, "label": "GLM-5.3"}]}}}));
    let selection = settings.selection(&reference("builtin:zai-coding-plan", "GLM-5.3"));
    assert_eq!(
        selection,
        json!({"providerId": "account:zai-individual-coding-plan", "modelId": "GLM-5.3", "options": {"reasoningLevel": "max"}})
    );
}

#[test]
fn models_are_found_under_every_spelling() {
    let settings = settings();
    for (value, want) in [
        ("lab/large", Some(("lab", "large"))),
        ("lab\\large", Some(("lab", "large"))),
        ("custom:lab:large", Some(("lab", "large"))),
        ("custom:l%61b:large", Some(("lab", "large"))),
        ("large", Some(("lab", "large"))),
        ("LAB SMALL", Some(("lab", "small"))),
        ("acme/vendor/think", Some(("acme", "vendor/think"))),
        ("vendor/think", Some(("acme", "vendor/think"))),
        (" lab/small ", Some(("lab", "small"))),
        ("acme/gone", None),
        ("lab/none", None),
        ("", None),
        ("default", None),
    ] {
        let got = settings.parse_model(value).ok();
        assert_eq!(got, want.map(|(p, m)| Change::Model(reference(p, m))), "{value}");
    }
}

#[test]
fn both_spellings_of_an_account_provider_are_one() {
    for (one, other, want) in [
        ("builtin:zai-coding-plan", "account:zai-individual-coding-plan", true),
        ("builtin:zai-start-plan", "account:zai-start-plan", true),
        ("builtin:zai-coding-plan", "builtin:bigmodel-coding-plan", false),
        ("builtin:zai-coding-plan", "account:zai-start-plan", false),
        ("zai", "builtin:zai", false),
        ("x", "x", true),
    ] {
        assert_eq!(parse::same_provider(one, other), want, "{one} {other}");
    }
}

#[test]
fn what_was_not_offered_is_refused_with_what_can_be_had() {
    let settings = settings();
    let value = |v: &str| acp::SessionConfigOptionValue::value_id(v.to_owned());
    assert_eq!(settings.parse("no-such", &value("x")), Err(OptionError::Unknown("no-such".into())));
    assert_eq!(
        settings.parse("mode", &acp::SessionConfigOptionValue::boolean(true)),
        Err(OptionError::Type("mode".into()))
    );
    let error = settings.parse("mode", &value("no-such-mode")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"no-such-mode\" is not a value of mode. Choose one of: plan, build, edit, yolo."
    );
    assert_eq!(i32::from(error.to_acp().code), -32602);
    assert!(settings.parse("thought", &value("max")).is_err(), "a level of another model");
    assert_eq!(settings.parse("thought", &value("HIGH")), Ok(Change::Thought("high".into())));
    assert_eq!(settings.parse("mode", &value("Plan")), Ok(Change::Mode("plan".into())));
    assert_eq!(settings.parse("mode", &value("auto")), Ok(Change::Mode("auto".into())));
}

#[test]
fn a_vanished_model_is_repaired_and_a_good_one_is_not() {
    let mut settings = settings();
    assert_eq!(settings.repair(), None);
    for gone in [
        json!({"providerId": "lost", "modelId": "m"}),
        json!({"providerId": "acme", "modelId": "gone"}),
    ] {
        settings.apply_patch(&json!({"model": {"current": gone}}));
        assert_eq!(settings.repair(), Some(Change::Model(reference("lab", "large"))));
    }
    assert_eq!(Settings::new(Vec::new(), "build").repair(), None);
}

#[test]
fn a_session_without_a_model_gets_one_even_when_all_are_called_unusable() {
    let entry = |id: &str| json!({"ref": {"providerId": "lab", "modelId": id}, "label": id, "disabledReason": "model_unavailable"});
    let available = [entry("large"), entry("small")];
    let mut settings = Settings::default();
    settings.apply_snapshot(&json!({"settings": {"model": {"available": available}}}));
    assert_eq!(settings.repair(), Some(Change::Model(reference("lab", "large"))));
    let current = json!({"providerId": "lab", "modelId": "small"});
    settings.apply_snapshot(
        &json!({"settings": {"model": {"available": available, "current": current}}}),
    );
    assert_eq!(settings.repair(), Some(Change::Model(reference("lab", "small"))));
}

#[test]
fn before_the_engine_knows_the_session_the_configuration_is_the_list() {
    let config = json!({"provider": {
        "builtin:zai-coding-plan": {"enabled": true, "name": "Z.ai", "options": {"apiKey": "k"}, "models": {
            "GLM": {"name": "GLM 5", "limit": {"context": 200_000}, "reasoning": {"variants": {"max": {}, "low": {}}, "defaultVariant": "max"}}}},
        "builtin:nokey": {"enabled": true, "options": {}, "models": {"x": {}}},
        "builtin:off": {"options": {"apiKey": "k"}, "models": {"x": {}}},
        "custom": {"options": {"apiKey": "k"}, "models": {"a": {}, "b": {"enabled": false}}},
        "local": {"options": {"baseURL": "http://localhost:1234/v1"}, "models": ["c"]},
        "sick": {"systemDisabledReason": "revoked", "options": {"apiKey": "k"}, "models": {"x": {}}},
        "hidden": {"options": {"apiKey": "k"}, "models": {"x": {}}}}});
    let personal = json!({"providers": {"hidden": {"enabled": false},
        "mine": {"apiKeyRequired": false, "models": [{"id": "d", "config": {"properties": {"contextWindow": 9}}}]}}});
    let models = from_config(Some(&config), Some(&personal));
    let ids: Vec<String> = models.iter().map(|m| m.reference.value()).collect();
    assert_eq!(ids, ["builtin:zai-coding-plan/GLM", "custom/a", "local/c", "mine/d"]);
    assert_eq!(models[3].context_window, Some(9));
    let settings = Settings::new(models, "build");
    assert_eq!(current(&settings), ["builtin:zai-coding-plan/GLM", "build", "max"]);
    let levels: Vec<String> = settings.current_levels().iter().map(|l| l.label.clone()).collect();
    assert_eq!(levels, ["Low", "Max"]);
    assert_eq!(settings.context_window(), Some(200_000));
    for bad in [json!(null), json!({"provider": 1}), json!({"provider": {"x": 1}})] {
        assert_eq!(from_config(Some(&bad), None), []);
    }
}

#[test]
fn an_older_engines_own_levels_are_used_when_no_model_declares_any() {
    let mut settings = Settings::new(Vec::new(), "build");
    settings.apply_snapshot(&json!({"settings": {"model": {"current": {"providerId": "p", "modelId": "m"}},
        "thoughtLevel": {"defaultLevel": "high", "available": [{"value": "low"}, {"value": "high", "label": "High"}]}}}));
    assert_eq!(current(&settings), ["p/m", "build", "high"]);
    assert_eq!(settings.parse_thought("low"), Ok(Change::Thought("low".into())));
}

#[test]
fn one_provider_needs_no_groups_and_none_has_a_placeholder() {
    let mut settings = Settings::new(Vec::new(), "build");
    assert_eq!(
        shown(&settings)[0]["options"],
        json!([{"value": "default", "name": "Engine default"}])
    );
    assert_eq!(settings.parse_model("default"), Ok(Change::Nothing));
    settings.apply_patch(&json!({"model": {"current": {"providerId": "p", "modelId": "m"}}}));
    assert_eq!(shown(&settings)[0]["options"], json!([{"value": "p/m", "name": "m"}]));
}
