//! Permission requests and answers: table tests.

use serde_json::{Value, json};

use super::*;

fn ask(params: Value) -> PermissionAsk {
    let request = EngineRequest {
        id: json!("server-1"),
        method: "interaction/requestPermission".into(),
        session_id: Some("sess_1".into()),
        request_id: Some("req_1".into()),
        params,
    };
    let target = Target { cwd: Some("/w".into()), ..Target::default() };
    to_acp(&request, &target)
}

fn shown(ask: &PermissionAsk) -> Value {
    serde_json::to_value(ask.request("s1")).unwrap()
}

fn choose(ask: &PermissionAsk, id: &str) -> Value {
    let chosen = acp::SelectedPermissionOutcome::new(id.to_owned());
    ask.answer(Some(&acp::RequestPermissionOutcome::Selected(chosen)))
}

#[test]
fn the_dialog_shows_the_whole_request_and_every_option() {
    let ask = ask(
        json!({"toolCallId": "c1", "toolName": "Bash", "reason": "it deletes files", "riskLevel": "high",
        "input": {"command": "rm -rf build\nmake"}, "options": [
            {"optionId": "opt_once", "kind": "allow_once", "name": "Allow once", "description": "this time only"},
            {"optionId": "opt_deny", "kind": "deny"}]}),
    );
    assert_eq!(
        shown(&ask),
        json!({"sessionId": "s1",
        "toolCall": {"toolCallId": "c1", "title": "Bash: rm -rf build make", "name": "Bash", "kind": "execute", "status": "pending",
            "content": [{"type": "content", "content": {"type": "text", "text": "it deletes files"}},
                {"type": "content", "content": {"type": "text", "text": "```sh\nrm -rf build\nmake\n```"}}],
            "rawInput": {"command": "rm -rf build\nmake"},
            "_meta": {"claudeCode": {"toolName": "Bash"}, "zcode": {"riskLevel": "high"}}},
        "options": [
            {"optionId": "opt_once", "name": "Allow once", "kind": "allow_once", "_meta": {"zcode": {"description": "this time only"}}},
            {"optionId": "opt_deny", "name": "opt_deny", "kind": "reject_once"}]})
    );
}

#[test]
fn the_chosen_options_response_is_echoed_exactly() {
    let response = json!({"decision": "allow", "reason": "Approved for project", "permissionUpdates": [{"type": "addRules"}], "future": 1});
    let ask = ask(json!({"toolCallId": "c1", "options": [
        {"optionId": "p", "kind": "allow_always", "response": response},
        {"optionId": "d", "kind": "deny", "response": {"decision": "deny", "reason": "Rejected by user"}}]}));
    assert_eq!(choose(&ask, "p"), response);
    assert_eq!(choose(&ask, "d"), json!({"decision": "deny", "reason": "Rejected by user"}));
}

#[test]
fn without_a_response_the_kind_decides() {
    for (kind, acp_kind, decision) in [
        ("allow_once", "allow_once", "allow"),
        ("allow", "allow_always", "allow"),
        ("allow_always", "allow_always", "allow"),
        ("allow_project", "allow_always", "allow"),
        ("allow_session", "allow_always", "allow"),
        ("deny", "reject_once", "deny"),
        ("deny_once", "reject_once", "deny"),
        ("reject_always", "reject_always", "deny"),
        ("teleport", "reject_once", "deny"),
        ("disallow", "reject_once", "deny"),
    ] {
        let ask = ask(
            json!({"toolCallId": "c1", "options": [{"optionId": "x", "kind": kind, "name": "X"}]}),
        );
        assert_eq!(shown(&ask)["options"][0]["kind"], acp_kind, "{kind}");
        assert_eq!(choose(&ask, "x"), json!({"decision": decision}), "{kind}");
    }
}

#[test]
fn what_an_option_does_decides_over_what_it_is_called() {
    for (kind, response, want) in [
        ("teleport", json!({"decision": "allow"}), "allow_once"),
        ("allow", json!({"decision": "allow"}), "allow_once"),
        ("allow_once", json!({"decision": "deny"}), "reject_once"),
        ("allow_once", json!({"decision": "allow", "permissionUpdates": [{}]}), "allow_always"),
        ("ask_admin", json!({"decision": "escalate"}), "reject_once"),
        ("allow_once", json!({"decision": "modify", "modifiedInput": {}}), "allow_once"),
    ] {
        let ask = ask(
            json!({"toolCallId": "c1", "options": [{"optionId": "x", "kind": kind, "response": response}]}),
        );
        assert_eq!(shown(&ask)["options"][0]["kind"], want, "{kind} {response}");
    }
}

#[test]
fn a_malformed_response_is_not_echoed() {
    for response in [json!("allow"), json!({}), json!({"decision": "yes"}), json!(null)] {
        let ask = ask(
            json!({"toolCallId": "c1", "options": [{"optionId": "x", "kind": "deny", "response": response}]}),
        );
        assert_eq!(choose(&ask, "x"), denied());
    }
}

#[test]
fn everything_but_an_offered_option_is_a_deny() {
    let ask =
        ask(json!({"toolCallId": "c1", "options": [{"optionId": "x", "kind": "allow_once"}]}));
    assert_eq!(ask.answer(None), denied());
    assert_eq!(ask.answer(Some(&acp::RequestPermissionOutcome::Cancelled)), denied());
    assert_eq!(choose(&ask, "nope"), denied());
}

#[test]
fn an_empty_option_list_can_still_be_answered() {
    for options in [json!([]), json!(null), json!("x")] {
        let ask = ask(json!({"toolCallId": "c1", "options": options}));
        let kinds: Vec<String> = shown(&ask)["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|o| o["kind"].as_str().unwrap().into())
            .collect();
        assert_eq!(kinds, ["allow_once", "reject_once"]);
        assert_eq!(choose(&ask, "allow_once"), json!({"decision": "allow"}));
        assert_eq!(choose(&ask, "reject_once"), denied());
    }
}

#[test]
fn there_is_always_a_way_to_say_no() {
    let ask = ask(
        json!({"toolCallId": "c1", "options": [{"optionId": "reject_once", "kind": "allow_once"}]}),
    );
    let options = shown(&ask)["options"].clone();
    assert_eq!(
        (&options[1]["optionId"], &options[1]["kind"]),
        (&json!("reject_once_"), &json!("reject_once"))
    );
    assert_eq!(choose(&ask, "reject_once_"), denied());
    assert_eq!(choose(&ask, "reject_once"), json!({"decision": "allow"}));
}

#[test]
fn options_with_the_same_or_no_id_stay_apart() {
    let ask = ask(json!({"toolCallId": "c1", "options": [
        {"optionId": "x", "kind": "allow_once"}, {"optionId": "x", "kind": "deny"}, {"kind": "deny", "name": "No"}]}));
    let ids: Vec<Value> =
        shown(&ask)["options"].as_array().unwrap().iter().map(|o| o["optionId"].clone()).collect();
    assert_eq!(ids, ["x", "x_2", "option_2"]);
    assert_eq!(choose(&ask, "x_2"), denied());
}

#[test]
fn an_edit_shows_its_diff_and_files_as_absolute_paths() {
    let ask = ask(json!({"toolCallId": "c1", "toolName": "Edit",
        "input": {"file_path": "a.txt", "old_string": "a", "new_string": "b"}, "options": []}));
    let call = &shown(&ask)["toolCall"];
    assert_eq!(
        call["content"],
        json!([{"type": "diff", "path": "/w/a.txt", "oldText": "a", "newText": "b"}])
    );
    assert_eq!(call["locations"], json!([{"path": "/w/a.txt"}]));
}

#[test]
fn other_tools_show_their_input_as_json() {
    let ask = ask(
        json!({"toolCallId": "c1", "toolName": "mcp__db__query", "input": {"sql": "drop"}, "options": []}),
    );
    assert_eq!(
        shown(&ask)["toolCall"]["content"][0]["content"]["text"],
        "```json\n{\n  \"sql\": \"drop\"\n}\n```"
    );
}

#[test]
fn a_subagents_request_is_labelled_and_nested() {
    let ask = ask(
        json!({"toolCallId": "c1", "toolName": "Bash", "input": {"command": "ls"}, "options": [],
        "origin": {"kind": "subagent", "agentType": "explore", "parentToolCallId": "call_p"}}),
    );
    let call = &shown(&ask)["toolCall"];
    assert_eq!(call["title"], "[explore] Bash: ls");
    assert_eq!(call["_meta"]["claudeCode"]["parentToolUseId"], "call_p");
    assert_eq!(ask.card().parent, Some("call_p"));
}

#[test]
fn a_request_without_a_tool_call_uses_its_request_id() {
    assert_eq!(shown(&ask(json!({"toolName": "Bash"})))["toolCall"]["toolCallId"], "req_1");
}
