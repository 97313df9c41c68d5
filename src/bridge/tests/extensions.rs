//! Every extension method under all its names against the simulated engine, with params that make
//! sense and with params that do not.

use super::*;
use crate::bridge::extensions;

/// A method by its own name: params that work (without the session), and params that do not, each
/// with a word of the refusal.
struct Case {
    name: &'static str,
    works: Value,
    refused: Vec<(Value, &'static str)>,
}

fn case(name: &'static str, works: Value, refused: &[(Value, &'static str)]) -> Case {
    Case { name, works, refused: refused.to_vec() }
}

fn cases() -> Vec<Case> {
    vec![
        // Before the compaction, after which there is nothing to fork from.
        case("fork", json!({}), &[]),
        case("state", json!({}), &[]),
        case(
            "load_earlier",
            json!({"before": "$cursor", "limit": 5}),
            &[
                (json!({"before": "no-such-cursor"}), "cursor"),
                (json!({}), "before"),
                (json!({"before": 7}), "before"),
                (json!({"before": "  "}), "before"),
            ],
        ),
        case(
            "setModel",
            json!({"modelId": "account:zai-individual-coding-plan/sim-flash"}),
            &[
                (json!({}), "model"),
                (json!({"modelId": ["a"]}), "model"),
                (json!({"modelId": "no/such-model"}), "model"),
            ],
        ),
        case(
            "setMode",
            json!({"mode": "plan"}),
            &[
                (json!({}), "mode"),
                (json!({"mode": {"x": 1}}), "mode"),
                (json!({"mode": "no-such-mode"}), "mode"),
            ],
        ),
        case("set_mode", json!({"modeId": "build"}), &[(json!({"modeId": 3}), "mode")]),
        case(
            "setThoughtLevel",
            json!({}),
            &[
                (json!({"thoughtLevel": "no-such-level"}), "thought"),
                (json!({"thoughtLevel": 4}), "thought"),
            ],
        ),
        case(
            "set_config_option",
            json!({"configId": "mode", "value": "build"}),
            &[
                (json!({"configId": "mode"}), "value"),
                (json!({"value": "build"}), "configId"),
                (json!({"configId": "nothing", "value": "x"}), "nothing"),
            ],
        ),
        case(
            "goal",
            json!({"action": "show", "objective": "left over from a form"}),
            &[
                (json!({"action": "dance"}), "param"),
                (json!({"action": "set"}), "param"),
                (json!({"action": "replace", "objective": ""}), "param"),
            ],
        ),
        case(
            "cancelBackgroundTask",
            json!({"taskId": "no-such-task"}),
            &[(json!({}), "param"), (json!({"taskId": 1}), "param")],
        ),
        case("compact", json!({"instructions": "keep the table"}), &[]),
        case("queue/list", json!({}), &[]),
        case("queue/edit", json!({}), &[(json!({}), "")]),
        case("queue/delete", json!({}), &[(json!({}), "")]),
        case("queue/send_now", json!({}), &[(json!({}), "")]),
        case("queue/auto_drain", json!({"enabled": true}), &[(json!({"enabled": "yes"}), "")]),
        case("steering", json!({}), &[(json!({}), "")]),
    ]
}

/// Methods whose success another test has; here only their refusals.
const REFUSALS_ONLY: [&str; 4] = ["queue/edit", "queue/delete", "queue/send_now", "steering"];

fn named(params: &Value, session: &str) -> Value {
    let mut params = params.clone();
    params["sessionId"] = json!(session);
    params
}

#[tokio::test(start_paused = true)]
async fn every_extension_works_under_all_its_names() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo one").await, "end_turn");
    // A change of files, which is what a fork starts from.
    assert_eq!(desk.turn(&session, "create").await, "end_turn");
    for case in cases() {
        if REFUSALS_ONLY.contains(&case.name) {
            continue;
        }
        let mut works = named(&case.works, &session);
        if works["before"] == "$cursor" {
            let load = json!({"sessionId": session, "cwd": desk.cwd(), "mcpServers": [],
                              "_meta": {"zcode": {"limit": 1}}});
            let loaded = desk.ok("session/load", load).await;
            works["before"] = loaded["_meta"]["zcode"]["replayMeta"]["cursor"].clone();
        }
        for spelling in extensions::spellings(case.name) {
            // The typed handlers of the standard methods are tested elsewhere.
            if ["session/fork", "session/set_mode", "session/set_config_option"]
                .contains(&spelling.as_str())
            {
                continue;
            }
            let answer = desk.ok(&spelling, works.clone()).await;
            assert!(answer.is_object(), "{spelling}: {answer}");
            // A key that nobody knows passes.
            works["fromTheFuture"] = json!(true);
        }
    }
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn every_extension_refuses_bad_params_by_the_right_code() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo one").await, "end_turn");
    for case in cases() {
        for spelling in extensions::spellings(case.name) {
            if ["session/fork", "session/set_mode", "session/set_config_option"]
                .contains(&spelling.as_str())
            {
                continue;
            }
            for (params, word) in &case.refused {
                let error = desk.refused(&spelling, named(params, &session)).await;
                assert_eq!(i32::from(error.code), -32602, "{spelling} {params}: {error:?}");
                let text = format!("{} {:?}", error.message, error.data);
                assert!(text.contains(word), "{spelling} {params}: {text}");
            }
            for params in [json!({}), json!({"sessionId": 5}), json!({"sessionId": null})] {
                let error = desk.refused(&spelling, params.clone()).await;
                assert_eq!(i32::from(error.code), -32602, "{spelling} {params}: {error:?}");
            }
            let error = desk.refused(&spelling, named(&case.works, "no-such-session")).await;
            assert_eq!(i32::from(error.code), -32002, "{spelling}: {error:?}");
        }
    }
    // Still alive and well.
    assert_eq!(desk.turn(&session, "echo two").await, "end_turn");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn every_name_of_the_table_has_its_case() {
    let tested: HashSet<&str> = cases().iter().map(|case| case.name).collect();
    for name in extensions::names().filter(|name| *name != extensions::USAGE_STATS) {
        assert!(tested.contains(name), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn usage_stats_needs_no_session_and_no_engine() {
    let mut desk = Desk::new(paced()).await;
    for spelling in extensions::spellings(extensions::USAGE_STATS) {
        for params in [json!({}), json!({"sessionId": "whatever"})] {
            let told = desk.ok(&spelling, params).await;
            assert_eq!(told["glm"]["kind"], "unavailable");
        }
    }
    assert_eq!(desk.player.started(), 0);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_thought_level_goes_back_to_the_models_own() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo one").await, "end_turn");
    let level = |answer: &Value| {
        let options = answer["configOptions"].as_array().unwrap();
        let thought = options.iter().find(|o| o["category"] == "thought_level").unwrap();
        thought["currentValue"].as_str().unwrap().to_owned()
    };
    let usual = level(&desk.ok("session/setThoughtLevel", json!({"sessionId": session})).await);
    let options = desk
        .ok("session/setThoughtLevel", json!({"sessionId": session, "thoughtLevel": "max"}))
        .await;
    assert_ne!(level(&options), usual);
    let back = desk.ok("_zcode/setThoughtLevel", json!({"sessionId": session})).await;
    assert_eq!(level(&back), usual);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_mcp_command_asks_for_the_status_of_the_sessions_own_servers() {
    let mut desk = Desk::new(paced()).await;
    let servers = json!([{"name": "mine", "command": "/bin/cat", "args": [], "env": []}]);
    let made = desk.ok("session/new", json!({"cwd": desk.cwd(), "mcpServers": servers})).await;
    let session = made["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(desk.turn(&session, "/mcp").await, "end_turn");
    assert!(desk.text(&session).contains("mine"), "{}", desk.text(&session));
    let asked = desk.player.lines(0).into_iter().find(|(_, frame)| frame["method"] == "mcp/list");
    let params = asked.expect("mcp/list is asked").1["params"].clone();
    assert_eq!(params["mode"], "status");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_session_that_was_evicted_loads_it_first() {
    let mut desk = Desk::new(with_faults(&["evict"])).await;
    let session = desk.open().await;
    // A change of files, which is what a fork starts from.
    assert_eq!(desk.turn(&session, "create").await, "end_turn");
    let cwd = desk.cwd();
    for (method, params) in [
        ("session/fork", json!({"sessionId": session, "cwd": cwd, "mcpServers": []})),
        ("_zcode/fork", json!({"sessionId": session})),
    ] {
        let resumed = desk.calls("session/resume");
        let made = desk.ok(method, params).await;
        let fork = made["sessionId"].as_str().unwrap().to_owned();
        assert_ne!(fork, session, "{method}");
        assert!(desk.calls("session/resume") > resumed, "{method}: it was not loaded");
        assert_eq!(desk.turn(&fork, "echo in the fork").await, "end_turn", "{method}");
        assert!(desk.text(&fork).contains("in the fork"), "{method}");
    }
    assert_eq!(desk.turn(&session, "echo in the first one").await, "end_turn");
    desk.end().await;
}
