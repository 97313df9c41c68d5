use super::*;

fn is_permission(message: &Value) -> bool {
    message["method"] == "interaction/requestPermission"
}

#[tokio::test(start_paused = true)]
async fn an_open_permission_is_announced_again_every_second_under_a_new_id() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    host.answers = false;
    let session = host.session().await;
    host.ok("session/send", json!({"sessionId": session, "content": "permission"})).await;
    let first = host.until("permission", is_permission).await;
    let asked = Instant::now();
    let second = host.until("permission again", is_permission).await;
    let third = host.until("permission again", is_permission).await;
    let waited = asked.elapsed();
    assert!(
        waited >= Duration::from_millis(1_990) && waited <= Duration::from_millis(2_050),
        "{waited:?}"
    );
    assert_eq!(first["params"], third["params"]);
    assert_ne!(first["id"], second["id"]);
    // An answer on any of the ids counts, and only once.
    let allow = first["params"]["options"][0]["response"].clone();
    host.send(&json!({"id": first["id"], "result": allow})).await;
    host.send(&json!({"id": third["id"], "result": {"decision": "deny"}})).await;
    assert_eq!(host.turn_over().await, "prompt_completed");
    let requests = host.seen.iter().filter(|m| is_permission(m)).count();
    assert_eq!(requests, 3);
    assert!(host.events("tool.updated").iter().any(|p| p["kind"] == "result"));
    assert_eq!(host.events("permission.resolved").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_permission_reply_denies() {
    for reply in [
        json!({"result": {"decision": "allow", "surprise": 1}}),
        json!({"result": {"action": "accept"}}),
        json!({"result": {"decision": "deny", "reason": "no"}}),
        json!({"error": {"code": -32603, "message": "gone"}}),
    ] {
        let mut host = Host::start(Options::deterministic());
        host.answers = false;
        let session = host.session().await;
        host.ok("session/send", json!({"sessionId": session, "content": "permission"})).await;
        let mut reply = reply;
        reply["id"] = host.until("permission", is_permission).await["id"].clone();
        host.send(&reply).await;
        host.turn_over().await;
        assert!(host.events("tool.updated").iter().all(|p| p["kind"] != "result"), "{reply}");
        assert!(host.text().contains("nothing was deleted"), "{}", host.text());
    }
}

#[tokio::test(start_paused = true)]
async fn always_keeps_its_rule_only_in_the_permission_updates() {
    for (option, asked_again) in [(1, false), (0, true)] {
        let mut host = Host::start(Options::deterministic());
        host.answers = false;
        let session = host.session().await;
        host.ok("session/send", json!({"sessionId": session, "content": "permission"})).await;
        let asked = host.until("permission", is_permission).await;
        let chosen = asked["params"]["options"][option]["response"].clone();
        host.send(&json!({"id": asked["id"], "result": chosen})).await;
        host.turn_over().await;
        host.answers = true;
        host.turn(&session, "permission").await;
        assert_eq!(
            host.seen.iter().filter(|m| is_permission(m)).count(),
            1 + usize::from(asked_again)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_goes_on_differently_after_each_answer() {
    for (answer, says) in [
        (json!({"action": "accept", "content": {"answer_0": "approve"}}), "The plan is approved"),
        (json!({"action": "decline"}), "off the table"),
        (json!({"action": "cancel"}), "off the table"),
        (json!({"action": "accept", "content": {"answer_0": "shorter!"}}), "shorter!"),
    ] {
        let mut host = Host::start(Options::deterministic());
        host.answers = false;
        let session = host.session().await;
        host.ok("session/send", json!({"sessionId": session, "content": "plan"})).await;
        let asked = host.until("plan", |m| m["method"] == "interaction/requestUserInput").await;
        assert_eq!(asked["params"]["schema"]["interaction"], "plan_approval");
        assert!(asked["params"]["input"]["plan"].as_str().unwrap().lines().count() > 50);
        host.answers = true;
        host.send(&json!({"id": asked["id"], "result": answer})).await;
        host.turn_over().await;
        assert!(host.text().contains(says), "{answer}: {}", host.text());
    }
}

#[tokio::test(start_paused = true)]
async fn answers_come_by_question_text_or_by_place() {
    let mut host = Host::start(Options::deterministic());
    host.answers = false;
    let session = host.session().await;
    host.ok("session/send", json!({"sessionId": session, "content": "questions"})).await;
    let asked = host.until("questions", |m| m["method"] == "interaction/requestUserInput").await;
    let questions = asked["params"]["questions"].as_array().unwrap().clone();
    assert_eq!(questions.len(), 3);
    assert_eq!(questions[1]["multiSelect"], true);
    let first = questions[0]["question"].as_str().unwrap();
    let content = json!({"answers": {first: "中文"}, "answer_0": "中文", "answer_1": "fmt, test"});
    host.send(&json!({"id": asked["id"], "result": {"action": "accept", "content": content}}))
        .await;
    host.turn_over().await;
    let text = host.text();
    assert!(
        text.contains("**中文**") && text.contains("**fmt, test**") && text.contains("(skipped)"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn another_client_can_answer() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    host.answers = false;
    let session = host.session().await;
    host.turn(&session, "elsewhere").await;
    assert_eq!(host.events("permission.resolved").len(), 1);
    assert!(host.events("tool.updated").iter().any(|p| p["kind"] == "result"));
}

#[tokio::test(start_paused = true)]
async fn refused_provider_headers_fail_the_turn_with_their_reason() {
    let mut host = Host::start(Options { ask_headers: true, ..Options::deterministic() });
    let session = host.session().await;
    assert_eq!(host.turn(&session, "bash").await, "prompt_completed");
    let asked = |m: &Value| m["method"] == "interaction/requestProviderRuntimeHeaders";
    assert_eq!(host.seen.iter().filter(|m| asked(m)).count(), 2, "once for each model request");
    host.answers = false;
    host.ok("session/send", json!({"sessionId": session, "content": "hello"})).await;
    let request = host.until("headers", asked).await;
    let refusal = json!({"headersApplied": false, "errorMessage": "sign in first"});
    host.send(&json!({"id": request["id"], "result": refusal})).await;
    assert_eq!(host.turn_over().await, "prompt_failed");
    assert_eq!(host.events("turn.failed")[0]["error"]["message"], "sign in first");
}

#[tokio::test(start_paused = true)]
async fn a_stop_withdraws_open_questions() {
    let mut host = Host::start(Options::deterministic());
    host.answers = false;
    let session = host.session().await;
    host.ok("session/send", json!({"sessionId": session, "content": "permission"})).await;
    let asked = host.until("permission", is_permission).await;
    host.ok("session/stop", json!({"sessionId": session})).await;
    host.turn_over().await;
    assert_eq!(host.events("turn.completed")[0]["resultType"], "cancelled");
    assert_eq!(host.events("permission.resolved")[0]["requestId"], asked["params"]["requestId"]);
    // A late answer is nobody's.
    host.send(&json!({"id": asked["id"], "result": {"decision": "allow"}})).await;
    host.ok("session/list", json!({})).await;
    assert!(host.events("tool.updated").iter().all(|p| p["kind"] != "result"));
}
