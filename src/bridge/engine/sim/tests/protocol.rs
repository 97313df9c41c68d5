use super::*;

#[tokio::test(start_paused = true)]
async fn the_envelope_is_strict() {
    let mut host = Host::start(Options::deterministic());
    for (line, id, code) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}"#,
            "invalid-message",
            -32600,
        ),
        (r#"{"id":1,"method":"session/list","extra":1}"#, "invalid-message", -32600),
        (r#"{"id":1.5,"method":"session/list"}"#, "invalid-message", -32600),
        (r#"{"id":1,"method":"session/list","params":[]}"#, "invalid-message", -32600),
        (r"[1,2]", "invalid-message", -32600),
        (r#"{"id":1,"method":"#, "parse-error", -32700),
    ] {
        host.raw(line).await;
        let reply = host.next().await.unwrap();
        assert_eq!(reply["id"], id, "{line}");
        assert_eq!(reply["error"]["code"], code, "{line}");
    }
    host.raw("   ").await;
    let listed = host.ok("session/list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]));
    assert_eq!(host.close().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_refused_key_is_named_by_its_path() {
    let mut host = Host::start(Options::deterministic());
    let bad =
        json!({"workspace": ws("/w"), "mcpServers": [{"name": "a", "command": "b", "args": []}]});
    let message = host.refused("session/create", bad, -32602).await;
    assert_eq!(message, "Invalid params — mcpServers.0.env: expected array");
    let message = host.refused("session/create", json!({}), -32602).await;
    assert!(message.contains("workspace: expected object"), "{message}");
    let message = host.refused("session/list", json!({"cursor": "x"}), -32602).await;
    assert!(message.contains("cursor: Unrecognized key"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn ids_come_back_with_their_type() {
    let mut host = Host::start(Options::deterministic());
    for id in [json!("seven"), json!(7), json!(-7)] {
        host.send(
            &json!({"id": id, "method": "session/list", "params": {}, "trace": {"traceId": "t"}}),
        )
        .await;
        assert_eq!(host.next().await.unwrap()["id"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_served_in_order_and_a_stop_overtakes() {
    let faults = vec![Fault::Slow("session/list".into(), 5_000)];
    let mut host = Host::start(Options { faults, ..Options::deterministic() });
    let session = host.session().await;
    let slow = host.post("session/list", json!({})).await;
    let behind = host.post("session/usage", json!({"sessionId": session})).await;
    let stop = host.post("session/stop", json!({"sessionId": session})).await;
    let mut order = Vec::new();
    while order.len() < 3 {
        order.push(host.next().await.unwrap()["id"].as_u64().unwrap());
    }
    assert_eq!(order, [stop, slow, behind]);
}

#[tokio::test(start_paused = true)]
async fn a_create_waits_for_the_preferences_and_checks_them() {
    let mut host = Host::start(Options::deterministic());
    host.answers = false;
    let id = host.post("session/create", json!({"workspace": ws("/w")})).await;
    let asked = host.next().await.unwrap();
    assert_eq!(asked["params"]["scope"], "runtime-materialization");
    assert!(asked["id"].as_str().unwrap().contains("server"));
    assert_eq!(host.next().await.unwrap()["id"], id);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_loaded_is_refused_until_it_is_resumed() {
    let mut host = Host::start(Options::deterministic());
    let session = host.session().await;
    host.turn(&session, "hello").await;
    host.ok("session/close", json!({"sessionId": session})).await;
    host.refused("session/messages", json!({"sessionId": session}), -32004).await;
    let send = json!({"sessionId": session, "content": "x"});
    assert!(host.refused("session/send", send, -32004).await.contains("Session is not active"));
    host.ok("session/resume", json!({"sessionId": session})).await;
    host.ok("session/messages", json!({"sessionId": session})).await;
    let unknown = host.refused("session/resume", json!({"sessionId": "sess_nope"}), -32603).await;
    assert!(unknown.contains("Session not found"), "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn a_second_send_is_refused_as_each_build_refuses_it() {
    for (profile, code) in [(Profile::V0169, -32010), (Profile::V015, 1308)] {
        let mut host = Host::start(Options { profile, pace: 1.0, ..Options::deterministic() });
        let session = host.session().await;
        host.ok("session/send", json!({"sessionId": session, "content": "long"})).await;
        host.refused("session/send", json!({"sessionId": session, "content": "x"}), code).await;
    }
    let mut host =
        Host::start(Options { profile: Profile::V0165, pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.ok("session/send", json!({"sessionId": session, "content": "hello"})).await;
    host.until("text", |m| m["params"]["payload"]["kind"] == "text_delta").await;
    host.ok("session/send", json!({"sessionId": session, "content": "swallowed"})).await;
    host.turn_over().await;
    assert_eq!(host.events("turn.steerQueued").len(), 1);
    let history = host.ok("session/messages", json!({"sessionId": session})).await.to_string();
    assert!(!history.contains("swallowed"));
}

#[tokio::test(start_paused = true)]
async fn removed_methods_are_unknown_in_the_builds_that_removed_them() {
    for (profile, method, known) in [
        (Profile::V0169, "session/steer", false),
        (Profile::V0169, "session/delete", false),
        (Profile::V0169, "initialize", false),
        (Profile::V015, "v4/command", false),
        (Profile::V015, "runtime/capabilities", false),
        (Profile::V0169, "runtime/capabilities", true),
    ] {
        let mut host = Host::start(Options { profile, ..Options::deterministic() });
        let reply = host.call(method, json!({})).await;
        assert_eq!(reply["error"]["code"] == -32601, !known, "{method}: {reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_outlive_the_engine_and_are_seen_by_another() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { store: Some(dir.path().to_owned()), ..Options::deterministic() };
    let mut host = Host::start(options.clone());
    let session = host.session().await;
    let listed = host.ok("session/list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]), "a session without an input has no row");
    host.turn(&session, "todo please").await;
    host.ok("session/setMode", json!({"sessionId": session, "mode": "plan"})).await;
    let mut second = Host::start(Options { seed: Some(2), ..options.clone() });
    let listed = second.ok("session/list", json!({"workspace": ws("/tmp/nowhere")})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], session);
    assert_eq!(listed["sessions"][0]["titleSource"], "generated");
    assert_eq!(host.close().await, 0);
    let resumed = second
        .ok("session/resume", json!({"sessionId": session, "workspace": ws("/tmp/nowhere")}))
        .await;
    assert_eq!(resumed["settings"]["mode"]["current"], "plan");
    assert_eq!(resumed["todos"].as_array().unwrap().len(), 4);
    assert!(resumed["messages"].as_array().unwrap().len() > 3);
    second.subscribe(&session).await;
    second.turn(&session, "hello").await;
    let seqs: Vec<u64> = second
        .seen
        .iter()
        .filter(|m| m["method"] == "session/event")
        .map(|m| m["params"]["seq"].as_u64().unwrap())
        .collect();
    assert!(seqs.windows(2).all(|w| w[1] == w[0] + 1), "{seqs:?}");
    assert!(seqs[0] > 20, "numbers go on after the restart: {}", seqs[0]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_needs_a_turn_that_changed_files() {
    let mut host = Host::start(Options::deterministic());
    let session = host.session().await;
    host.turn(&session, "hello").await;
    let fork = json!({"sessionId": session, "target": {"kind": "latestCheckpoint"}});
    let message = host.refused("session/fork", fork.clone(), -32603).await;
    assert!(message.contains("No workspace checkpoint is available yet."), "{message}");
    host.turn(&session, "edit something").await;
    let forked = host.ok("session/fork", fork).await;
    assert_eq!(forked["snapshot"]["session"]["sessionKind"], "fork");
    let id = forked["forkedSessionId"].as_str().unwrap().to_owned();
    host.subscribe(&id).await;
    assert_eq!(host.turn(&id, "hello").await, "prompt_completed");
}

#[tokio::test(start_paused = true)]
async fn the_engine_dies_where_it_is_told_to() {
    let faults = vec![Fault::DieAtStep(5)];
    let mut host = Host::start(Options { faults, ..Options::deterministic() });
    let session = host.session().await;
    host.ok("session/send", json!({"sessionId": session, "content": "hello"})).await;
    while host.next().await.is_some() {}
    assert_eq!(host.engine.await.unwrap().unwrap(), 9);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_input_is_drained_for_a_tenth_of_a_second() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.ok("session/send", json!({"sessionId": session, "content": "long"})).await;
    let began = Instant::now();
    assert_eq!(host.close().await, 0);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(99) && took < Duration::from_millis(400), "{took:?}");
}

#[test]
fn a_switch_that_is_not_known_is_refused_wherever_it_stands() {
    use clap::Parser as _;
    let options = |line: &str| {
        let line = ["zcode-acp", "sim-engine"].into_iter().chain(line.split(' '));
        let cli = crate::cli::Cli::try_parse_from(line).unwrap();
        let Some(crate::cli::Command::SimEngine(args)) = cli.command else { panic!("not it") };
        Options::from_cli(&args)
    };
    for (line, named) in [
        ("--pacce 0 app-server --stdio", "--pacce"),
        ("app-server --stdio --no-bach", "--no-bach"),
        ("-o no-bach app-server --stdio", "--no-bach"),
        ("--pace 0 app-server --stdio extra", "extra"),
        ("app-server --stdio --disallowed-tools", "--disallowed-tools"),
    ] {
        let refused = options(line).unwrap_err();
        assert!(refused.contains(named), "{line}: {refused}");
    }
    let taken = options("--pace 0 app-server --stdio --disallowed-tools X --no-batch").unwrap();
    assert!(!taken.legacy_batch);
}
