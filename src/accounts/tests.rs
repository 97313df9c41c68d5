//! Tables over made-up files.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;

const KEY: &str = "0123456789abcdef0123456789abcdef.AbCdEfGhIjKlMnOp";

fn table() -> Value {
    let rule = |id: &str, family: &str, mode: &str| {
        json!({"providerId": id, "config": {"builtinModelIds": ["glm-5.3"],
            "access": {"type": "zhipu-account", "accountType": family, "mode": mode}}})
    };
    json!({"revision": 7, "config": {"providerConfigRules": {"providerRules": [
        rule("account:zai-individual-coding-plan", "zai", "individual-coding-plan"),
        rule("account:zai-start-plan", "zai", "start-plan"),
        rule("account:bigmodel-individual-coding-plan", "bigmodel", "individual-coding-plan"),
        {"providerId": "other", "config": {"access": {"type": "api-key"}}},
        {"providerId": "broken"},
    ]}}})
}

fn files(config: Value, cache: Value, setting: Value) -> AccountFiles {
    AccountFiles {
        config: Some(config),
        plan_cache: Some(cache),
        setting: Some(setting),
        table: Some((PathBuf::from("/a/zcode-builtin.json"), table())),
        ..AccountFiles::default()
    }
}

fn with_key(key: &str) -> Value {
    json!({"provider": {"builtin:zai-coding-plan": {"enabled": true, "options": {"apiKey": key}}}})
}

fn sources(files: &AccountFiles) -> Vec<(String, bool, Source)> {
    entitlements(files, &LiveAnswers::new())
        .into_iter()
        .map(|e| (e.config_id, e.entitled, e.source))
        .collect()
}

#[test]
fn each_local_signal_entitles_and_is_named() {
    let cache =
        json!({"entryStatus": {"items": {"builtin:zai-start-plan": {"status": "available"}}}});
    let setting = json!({"modelProviderFamilySelectedKeys": {"bigmodel": "x:builtin:bigmodel-coding-plan:y"}});
    assert_eq!(
        sources(&files(with_key(KEY), cache, setting)),
        [
            ("builtin:zai-coding-plan".to_owned(), true, Source::OwnKey),
            ("builtin:zai-start-plan".to_owned(), true, Source::PlanCache),
            ("builtin:bigmodel-coding-plan".to_owned(), true, Source::Selected),
        ]
    );
}

#[test]
fn nothing_speaks_for_a_plan_that_is_off_ended_or_only_similar() {
    let config = json!({"provider": {
        "builtin:zai-coding-plan": {"enabled": false, "options": {"apiKey": KEY}},
        "builtin:bigmodel-coding-plan": {"enabled": true, "options": {"apiKey": " "}},
    }});
    let cache =
        json!({"entryStatus": {"items": {"builtin:zai-start-plan": {"status": "expired"}}}});
    let setting =
        json!({"modelProviderFamilySelectedKeys": {"zai": "builtin:zai-start-plan-2", "n": 1}});
    assert!(sources(&files(config, cache, setting)).iter().all(|(_, entitled, _)| !entitled));
    assert!(sources(&AccountFiles::default()).is_empty());
}

#[test]
fn a_live_answer_overrules_the_files() {
    let live = LiveAnswers::from([("builtin:zai-coding-plan".to_owned(), false)]);
    let found = entitlements(&files(with_key(KEY), json!({}), json!({})), &live);
    assert_eq!((found[0].entitled, found[0].source), (false, Source::Live));
}

#[test]
fn the_engine_is_told_in_its_own_words() {
    let params =
        update_params(&files(with_key(KEY), json!({}), json!({})), &LiveAnswers::new(), 99);
    assert_eq!(
        params.unwrap(),
        json!({
            "revision": "account:zcode-acp:99",
            "basedOnZCodeBuiltinRevision": format!("zcode-builtin:7:{PATH_SHA256}"),
            "providers": {
                "account:zai-individual-coding-plan":
                    {"builtinModelIds": ["glm-5.3"], "access": {"type": "zhipu-account", "entitled": true}},
                "account:zai-start-plan":
                    {"builtinModelIds": ["glm-5.3"], "access": {"type": "zhipu-account", "entitled": false}},
                "account:bigmodel-individual-coding-plan":
                    {"builtinModelIds": ["glm-5.3"], "access": {"type": "zhipu-account", "entitled": false}},
            },
            "states": {
                "account:zai-individual-coding-plan":
                    {"availability": "available", "entitled": true, "current": true},
                "account:zai-start-plan":
                    {"availability": "unavailable", "entitled": false, "current": false},
                "account:bigmodel-individual-coding-plan":
                    {"availability": "unavailable", "entitled": false, "current": false},
            },
        })
    );
    assert_eq!(update_params(&AccountFiles::default(), &LiveAnswers::new(), 0), None);
}

#[test]
fn the_users_own_key_goes_to_the_users_own_coding_plan_only() {
    let answer = |files: &AccountFiles, id: &str| header_answer(files, &LiveAnswers::new(), id);
    let own = files(with_key(KEY), json!({}), json!({}));
    assert_eq!(
        answer(&own, "account:zai-individual-coding-plan"),
        json!({"headersApplied": true, "requestAuth": {"apiKey": KEY}})
    );
    let cached = json!({"entryStatus": {"items": {"builtin:bigmodel-coding-plan": {"status": "available"}}}});
    let cases = [
        (&own, "account:zai-start-plan", "ZCode app only"),
        (&own, "account:bigmodel-individual-coding-plan", "no coding plan"),
        (&own, "somebody-else", "does not hold"),
        (
            &files(with_key("enc:v1:AAAA"), json!({}), json!({})),
            "account:zai-individual-coding-plan",
            "encrypted",
        ),
        (
            &files(json!({}), cached, json!({})),
            "account:bigmodel-individual-coding-plan",
            "no API key",
        ),
    ];
    for (files, id, says) in cases {
        let answer = answer(files, id);
        assert_eq!(answer["headersApplied"], false, "{id}");
        let message = answer["errorMessage"].as_str().unwrap();
        assert!(message.contains(says), "{id}: {message}");
        assert!(!message.contains("AAAA") && !message.contains(KEY));
    }
}

#[test]
fn the_sign_in_state_tells_channels_apart() {
    let state = sign_in(&AccountFiles {
        credentials: Some(json!({"oauth:zai:access_token": "enc:v1:x", "zcodejwttoken": ""})),
        config: Some(json!({"provider": {
            "a": {"name": "A", "options": {"apiKey": "k"}, "models": {"m": {}}},
            "b": {"enabled": false, "options": {"apiKey": "k"}, "models": {"m": {}}},
            "c": {"models": {"m": {}}},
            "d": {"options": {"apiKey": "k"}},
        }})),
        ..AccountFiles::default()
    });
    assert_eq!(state.families, ["zai"]);
    assert!(state.encrypted && !state.zcode && state.is_signed_in() && state.is_usable());
    let problems: Vec<_> = state.channels.iter().map(|c| (c.name.as_str(), c.problem)).collect();
    assert_eq!(
        problems,
        [
            ("A", None),
            ("b", Some("switched off")),
            ("c", Some("no API key")),
            ("d", Some("no models"))
        ]
    );
    assert!(!sign_in(&AccountFiles::default()).is_usable());
}

#[test]
fn the_sign_in_state_is_the_same_answer_for_every_home() {
    let models = json!({"m": {}});
    let state = |config: Value, personal: Value, credentials: Value| {
        sign_in(&AccountFiles {
            credentials: Some(credentials),
            config: Some(config),
            personal: Some(personal),
            ..AccountFiles::default()
        })
        .is_usable()
    };
    let own = |id: &str, provider: Value| {
        let mut provider = provider;
        provider["models"] = models.clone();
        json!({"provider": {id: provider}})
    };
    let none = || json!({});
    let key = json!({"options": {"apiKey": "k"}});
    for (what, usable, config, personal, credentials) in [
        (
            "local",
            true,
            own("x", json!({"options": {"baseURL": "http://localhost:1"}})),
            none(),
            none(),
        ),
        (
            "needs no key",
            true,
            own("x", json!({"options": {"apiKeyRequired": false}})),
            none(),
            none(),
        ),
        ("personal only", true, none(), own("x", key.clone()), none()),
        ("keyless built-in", false, own("builtin:x", json!({"enabled": true})), none(), none()),
        ("empty entry", false, json!({"provider": {"x": {}}}), none(), none()),
        ("empty token", false, none(), none(), json!({"zcodejwttoken": ""})),
        ("no token", false, none(), none(), json!({"zcodejwttoken": null})),
        ("token", true, none(), none(), json!({"zcodejwttoken": "enc:v1:x"})),
        ("hidden", false, own("x", key.clone()), own("x", json!({"enabled": false})), none()),
        ("built-in not on", false, own("builtin:x", key.clone()), none(), none()),
        (
            "account without sign-in",
            false,
            none(),
            own("account:x", json!({"enabled": true})),
            none(),
        ),
    ] {
        assert_eq!(state(config, personal, credentials), usable, "{what}");
    }
}

#[test]
fn one_plan_of_a_family_is_in_use_at_most() {
    let cache = json!({"entryStatus": {"items": {
        "builtin:zai-coding-plan": {"status": "available"},
        "builtin:zai-start-plan": {"status": "available"},
        "builtin:bigmodel-coding-plan": {"status": "available"}}}});
    let used = |setting: Value| -> Vec<String> {
        let all = entitlements(&files(json!({}), cache.clone(), setting), &LiveAnswers::new());
        assert_eq!(all.len(), 3);
        let used = all.into_iter().filter(|plan| plan.entitled && plan.in_use);
        used.map(|plan| plan.config_id).collect()
    };
    assert_eq!(used(json!({})), ["builtin:bigmodel-coding-plan"], "which of two is not known");
    let selected = |value: &str| json!({"modelProviderFamilySelectedKeys": {"zai": value}});
    assert_eq!(
        used(selected("builtin:zai-start-plan")),
        ["builtin:zai-start-plan", "builtin:bigmodel-coding-plan"]
    );
    let both = used(selected("builtin:zai-start-plan,builtin:zai-coding-plan"));
    assert_eq!(both, ["builtin:zai-coding-plan", "builtin:bigmodel-coding-plan"]);
}

#[test]
fn a_built_in_provider_speaks_for_its_plan_only_when_it_is_on() {
    let not_on = json!({"provider": {"builtin:zai-coding-plan": {"options": {"apiKey": KEY}}}});
    let files = files(not_on, json!({}), json!({}));
    assert_eq!(sources(&files)[0], ("builtin:zai-coding-plan".to_owned(), false, Source::Nothing));
}

#[test]
fn files_are_read_with_care_and_never_shown() {
    let home = tempfile::tempdir().unwrap();
    let v2 = home.path().join("v2");
    std::fs::create_dir(&v2).unwrap();
    std::fs::write(v2.join("config.json"), format!("\u{feff}{}", with_key(KEY))).unwrap();
    std::fs::write(v2.join("setting.json"), "{\"apiKey\": \"sk-oops").unwrap();
    std::fs::create_dir(v2.join("credentials.json")).unwrap();
    let files = AccountFiles::read(home.path(), None);
    assert_eq!(files.providers().count(), 1);
    let problems: Vec<&str> = files.problems.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(problems, ["credentials.json", "setting.json"]);
    let shown = format!("{files:?}");
    assert!(!shown.contains(KEY) && !shown.contains("sk-oops"), "{shown}");
    assert_eq!(files.stamp, Stamp::of(home.path()));
    std::fs::remove_file(v2.join("setting.json")).unwrap();
    assert_ne!(files.stamp, Stamp::of(home.path()));
}

/// SHA-256 of `/a/zcode-builtin.json`, by another program.
const PATH_SHA256: &str = "143c74038ba3f7fd4bd9f6c70d2f0ac6490c8ca9f8cd9113eeb15dfc68b742e4";
