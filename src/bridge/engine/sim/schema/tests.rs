use super::*;
use serde_json::json;

/// A good example of every method's params.
fn good() -> Vec<(&'static str, Value)> {
    let ws = json!({"workspacePath": "/w", "workspaceKey": "/w"});
    let model = json!({"providerId": "p", "modelId": "m", "options": {"reasoningLevel": "max"}});
    let mcp = json!([
        {"name": "a", "command": "b", "args": ["c"], "env": [{"name": "K", "value": "v"}]},
        {"name": "h", "type": "http", "url": "http://x", "headers": []},
        {"name": "s", "type": "sse", "url": "http://x", "headers": [{"name": "K", "value": "v"}]},
    ]);
    vec![
        ("runtime/capabilities", json!({})),
        (
            "session/create",
            json!({"workspace": ws, "mode": "plan", "model": model, "persistence": "deferred", "thoughtLevel": "max", "titleGenerationEnabled": true, "mcpServers": mcp, "toolAllowlist": [], "toolDenylist": ["x"], "sessionId": "s", "parentSessionId": "p"}),
        ),
        ("session/resume", json!({"sessionId": "s", "workspace": ws, "mcpServers": mcp})),
        (
            "session/list",
            json!({"workspace": ws, "sessionIds": ["a"], "includeArchived": true, "limit": 10}),
        ),
        (
            "session/subscribe",
            json!({"sessionId": "s", "deliveryKind": "desktop-continuous", "includeSnapshot": false, "afterSeq": 0}),
        ),
        (
            "session/send",
            json!({"sessionId": "s", "content": "x", "attachments": [{"kind": "image", "mimeType": "image/png", "dataBase64": ""}]}),
        ),
        ("session/stop", json!({"sessionId": "s"})),
        ("session/read", json!({"sessionId": "s", "messageLimit": 1, "contentProfile": "index"})),
        ("session/messages", json!({"sessionId": "s", "afterMessageId": "m", "limit": 60})),
        ("session/events", json!({"sessionId": "s", "afterSeq": 3})),
        ("session/subagents", json!({"sessionId": "s", "endedLimit": 100})),
        ("session/usage", json!({"sessionId": "s"})),
        (
            "session/fork",
            json!({"sessionId": "s", "target": {"kind": "checkpoint", "checkpointId": "c"}}),
        ),
        ("session/compact", json!({"sessionId": "s", "instructions": "short"})),
        ("session/goal", json!({"sessionId": "s", "action": "set", "objective": "o"})),
        ("session/setMode", json!({"sessionId": "s", "mode": "guarded"})),
        ("session/setModel", json!({"sessionId": "s", "model": model})),
        ("session/setThoughtLevel", json!({"sessionId": "s", "thoughtLevel": "max"})),
        ("session/cancelBackgroundTask", json!({"sessionId": "s", "taskId": "t"})),
        ("session/close", json!({"sessionId": "s"})),
        ("session/steer", json!({"sessionId": "s", "content": "x"})),
        ("workspace/readPresentation", json!({"workspace": ws})),
        ("workspace/readState", json!({"workspace": ws})),
        ("workspace/updateProviderRegistry", json!({"workspace": ws, "registry": {}})),
        ("workspace/cancelGenerateText", json!({})),
        ("mcp/list", json!({"workspace": ws, "mode": "status"})),
        (
            "provider/updateAccountConfig",
            json!({"revision": 1, "basedOnZCodeBuiltinRevision": "r", "providers": {}, "states": {}}),
        ),
        ("v4/connection/flow", json!({"connectionId": "c", "state": "drained"})),
        (
            "v4/conversation/subscribe",
            json!({"topic": "t", "connectionId": "c", "clientMode": "desktop-continuous", "base": {"logEpoch": "e", "seq": 1}}),
        ),
        (
            "v4/conversation/resync",
            json!({"subscriptionId": "s", "topic": "t", "connectionId": "c", "base": null}),
        ),
        (
            "v4/conversation/unsubscribe",
            json!({"topic": "t", "subscriptionId": "s", "connectionId": "c"}),
        ),
        ("v4/conversation/rowsRange", json!({"sessionId": "s", "limit": 200})),
        (
            "v4/command",
            json!({"commandId": "c", "clientId": "x", "sessionId": "s", "type": "stop", "payload": {}, "issuedAt": 1}),
        ),
    ]
}

fn check(method: &str, params: &Value) -> Result<(), String> {
    check_params(Profile::V0169, method, params)
}

#[test]
fn every_method_has_an_example_that_fits() {
    let examples = good();
    for (method, _) in METHODS {
        assert!(examples.iter().any(|(m, _)| m == method), "{method}");
    }
    for (method, params) in &examples {
        assert_eq!(check(method, params), Ok(()), "{method}");
    }
}

#[test]
fn an_unknown_key_refuses_every_method() {
    for (method, mut params) in good() {
        params["surprise"] = json!(1);
        let message = check(method, &params).unwrap_err();
        assert!(message.contains("surprise: Unrecognized key"), "{method}: {message}");
    }
}

#[test]
fn a_missing_or_null_key_refuses_and_is_named() {
    for (method, params) in good() {
        for field in fields(Profile::V0169, method).unwrap() {
            if !field.required {
                continue;
            }
            let mut without = params.clone();
            without.as_object_mut().unwrap().remove(field.name);
            let message = check(method, &without).unwrap_err();
            assert!(message.contains(field.name), "{method}: {message}");
            if matches!(field.ty, Ty::Any | Ty::Nullable(_)) {
                continue;
            }
            without[field.name] = Value::Null;
            assert!(check(method, &without).is_err(), "{method}.{}", field.name);
        }
    }
}

#[test]
fn nested_values_are_as_strict() {
    let ws = json!({"workspacePath": "/w", "workspaceKey": "/w"});
    for (method, params, path) in [
        ("session/create", json!({"workspace": {"workspacePath": "/w"}}), "workspace.workspaceKey"),
        ("session/create", json!({"workspace": ws, "mode": "reckless"}), "mode"),
        ("session/create", json!({"workspace": ws, "model": {"modelId": "m"}}), "model.providerId"),
        (
            "session/create",
            json!({"workspace": ws, "mcpServers": [{"name": "a", "type": "http", "url": "u"}]}),
            "mcpServers.0.headers",
        ),
        (
            "session/create",
            json!({"workspace": ws, "mcpServers": [{"name": "a", "type": "stdio", "command": "c"}]}),
            "mcpServers.0.type",
        ),
        (
            "session/create",
            json!({"workspace": ws, "mcpServers": [{"name": "a", "command": "c", "args": [1], "env": []}]}),
            "mcpServers.0.args.0",
        ),
        ("session/send", json!({"sessionId": "s", "content": 1}), "content"),
        (
            "session/send",
            json!({"sessionId": "s", "content": "x", "attachments": [{"kind": "gif"}]}),
            "attachments.0.kind",
        ),
        (
            "session/fork",
            json!({"sessionId": "s", "target": {"kind": "checkpoint"}}),
            "target.checkpointId",
        ),
        ("session/setModel", json!({"sessionId": "s", "modelId": "m"}), "model"),
        ("session/subagents", json!({"sessionId": "s", "endedLimit": 101}), "endedLimit"),
        ("session/subscribe", json!({"sessionId": "s", "deliveryKind": "x"}), "deliveryKind"),
        ("v4/conversation/rowsRange", json!({"sessionId": "s", "limit": 201}), "limit"),
    ] {
        let message = check(method, &params).unwrap_err();
        assert!(message.contains(path), "{path}: {message}");
    }
}

#[test]
fn replies_are_strict_too() {
    let permission = "interaction/requestPermission";
    assert!(
        check_reply(permission, &json!({"decision": "allow", "permissionUpdates": []})).is_ok()
    );
    assert!(check_reply(permission, &json!({"decision": "maybe"})).is_err());
    assert!(check_reply(permission, &json!({"decision": "deny", "updatedInput": {}})).is_err());
    let preferences = "session/requestRuntimePreferences";
    assert!(check_reply(preferences, &json!({})).is_err());
    assert!(check_reply(preferences, &json!({"nativeSearchEnhancementsEnabled": false})).is_ok());
}
