use super::*;

fn deltas(host: &Host) -> Vec<String> {
    let streamed = host.events("model.streaming");
    streamed
        .iter()
        .filter(|p| p["kind"] == "text_delta")
        .map(|p| p["delta"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn text_is_batched_by_time_and_its_first_piece_comes_at_once() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.turn(&session, "hello").await;
    let batched = deltas(&host);
    assert!(batched[0].len() < 24, "{:?}", batched[0]);
    assert!(batched[1].len() > 30, "{:?}", batched[1]);
    let times: Vec<u64> = host
        .seen
        .iter()
        .filter(|m| m["params"]["payload"]["kind"] == "text_delta")
        .map(|m| m["params"]["timestamp"].as_u64().unwrap())
        .collect();
    let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps[..gaps.len() - 1].iter().all(|g| (240..=300).contains(g)), "{gaps:?}");

    let mut host = Host::start(Options { legacy_batch: false, ..Options::deterministic() });
    let session = host.session().await;
    host.turn(&session, "hello").await;
    assert_eq!(deltas(&host).concat(), batched.concat());
    assert!(deltas(&host).len() > 4 * batched.len());
}

#[tokio::test(start_paused = true)]
async fn without_waits_batches_are_cut_by_size() {
    let mut host = Host::start(Options::deterministic());
    let session = host.session().await;
    host.turn(&session, "flood 100k").await;
    let sizes: Vec<usize> = deltas(&host).iter().map(String::len).collect();
    assert!(sizes.iter().sum::<usize>() >= 100 * 1024);
    assert!(sizes.iter().all(|s| *s < 2 * 1024 + 200) && sizes.len() < 70, "{}", sizes.len());
}

#[tokio::test(start_paused = true)]
async fn streamed_text_equals_the_stored_message() {
    let mut host = Host::start(Options::deterministic());
    let session = host.session().await;
    host.turn(&session, "hello").await;
    let history = host.ok("session/messages", json!({"sessionId": session})).await;
    let stored: String = history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["info"]["role"] == "assistant")
        .flat_map(|m| m["parts"].as_array().unwrap().clone())
        .filter(|p| p["type"] == "text")
        .map(|p| p["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(stored, host.text());
    assert_eq!(host.events("turn.completed")[0]["response"], stored);
}

#[tokio::test(start_paused = true)]
async fn where_the_turn_id_and_the_message_id_stand_depends_on_the_build() {
    for (profile, on_envelope, key) in [
        (Profile::V0169, true, "messageId"),
        (Profile::V0165, false, "id"),
        (Profile::V015, false, "id"),
    ] {
        let mut host = Host::start(Options { profile, ..Options::deterministic() });
        let session = host.session().await;
        host.turn(&session, "hello").await;
        let started =
            host.seen.iter().find(|m| m["params"]["type"] == "turn.started").unwrap().clone();
        assert_eq!(started["params"].get("turnId").is_some(), on_envelope);
        assert_eq!(started["params"]["payload"].get("turnId").is_some(), !on_envelope);
        assert_eq!(host.events("turn.terminal").len(), usize::from(!on_envelope));
        let history = host.ok("session/messages", json!({"sessionId": session})).await;
        assert!(history["messages"][0]["info"].get(key).is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_command_is_told_by_its_exit_code() {
    for (profile, success, pointer) in [
        (Profile::V0169, true, "/result/perf/detail/command/exitCode"),
        (Profile::V0165, false, "/result/perf/exitCode"),
    ] {
        let mut host = Host::start(Options { profile, ..Options::deterministic() });
        let session = host.session().await;
        host.turn(&session, "exit code").await;
        let updates = host.events("tool.updated");
        let result = updates.iter().find(|p| p["kind"] == "result").unwrap();
        assert_eq!(result["result"]["success"], success);
        assert_eq!(result.pointer(pointer).unwrap(), 101);
        assert!(result.get("toolName").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn an_edits_diff_stands_in_the_message_only_and_nothing_is_written_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let mut host = Host::start(Options::deterministic());
    let session = host.session_in(path).await;
    host.turn(&session, "edit the greeting").await;
    let updates = host.events("tool.updated");
    assert!(updates.iter().all(|p| p["result"].get("display").is_none()));
    let history = host.ok("session/messages", json!({"sessionId": session})).await.to_string();
    assert!(
        history.contains("structuredPatch")
            && history.contains("-    println!(\\\"old greeting, {name}\\\");")
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    host.turn(&session, "edit for real").await;
    let written = std::fs::read_to_string(dir.path().join("zcode-demo/hello.rs")).unwrap();
    assert!(written.contains("你好"));
    std::fs::write(dir.path().join("zcode-demo/hello.rs"), "mine").unwrap();
    host.turn(&session, "edit for real").await;
    assert_eq!(std::fs::read_to_string(dir.path().join("zcode-demo/hello.rs")).unwrap(), "mine");
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_link_out_of_the_working_directory_is_not_followed() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(other.path(), dir.path().join("zcode-demo")).unwrap();
    let mut host = Host::start(Options::deterministic());
    let session = host.session_in(dir.path().to_str().unwrap()).await;
    host.turn(&session, "edit for real").await;
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
    assert!(host.events("tool.updated").iter().any(|p| p["kind"] == "error"));
}

#[tokio::test(start_paused = true)]
async fn a_background_task_ends_with_a_turn_of_the_engines_own() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.turn(&session, "background build").await;
    host.turn_over().await;
    let started = host.events("turn.started");
    assert_eq!(started.len(), 2);
    assert_eq!(started[1]["inputSource"], "background_task");
    assert_eq!(started[1]["inputVisibility"], "model-only");
    let statuses: Vec<_> = host
        .events("session.updated")
        .iter()
        .filter(|p| p.get("taskId").is_some())
        .map(|p| p["status"].clone())
        .collect();
    assert_eq!(statuses.first().unwrap(), "running");
    assert_eq!(statuses.last().unwrap(), "completed");
    assert!(host.text().contains("finished"));
}

#[tokio::test(start_paused = true)]
async fn a_background_agent_can_be_cancelled() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.turn(&session, "background agent 3").await;
    let listed = host.ok("session/subagents", json!({"sessionId": session})).await;
    let running = listed["running"].as_array().unwrap().clone();
    assert_eq!(running.len(), 3);
    let task = running[0]["agentId"].clone();
    let params = json!({"sessionId": session, "taskId": task});
    assert_eq!(host.ok("session/cancelBackgroundTask", params.clone()).await["cancelled"], true);
    assert_eq!(host.ok("session/cancelBackgroundTask", params).await["cancelled"], false);
    host.turn_over().await;
    host.turn_over().await;
    let listed = host.ok("session/subagents", json!({"sessionId": session, "endedLimit": 2})).await;
    assert_eq!(listed["ended"]["total"], 3);
    assert_eq!(listed["ended"]["items"].as_array().unwrap().len(), 2);
    let child = listed["childSessionIds"][0].clone();
    let send = json!({"sessionId": child, "content": "x"});
    assert!(host.refused("session/send", send, -32010).await.contains("read-only"));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_fails_once_is_fine_the_second_time() {
    let mut host = Host::start(Options::deterministic());
    let session = host.session().await;
    assert_eq!(host.turn(&session, "transient").await, "prompt_failed");
    assert_eq!(host.turn(&session, "transient").await, "prompt_completed");
    assert_eq!(host.turn(&session, "retry").await, "prompt_completed");
    let retries =
        host.events("session.updated").iter().filter(|p| p["kind"] == "api_retry").count();
    assert_eq!(retries, 2);
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_turn_starts_is_lost_and_one_afterwards_ends_it() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.ok("session/send", json!({"sessionId": session, "content": "long"})).await;
    host.ok("session/stop", json!({"sessionId": session})).await;
    host.until("start", |m| m["params"]["type"] == "turn.started").await;
    host.until("text", |m| m["params"]["payload"]["kind"] == "text_delta").await;
    host.ok("session/stop", json!({"sessionId": session})).await;
    assert_eq!(host.turn_over().await, "prompt_completed");
    assert_eq!(host.events("turn.completed")[0]["resultType"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn compaction_runs_as_a_turn_and_empties_the_ring() {
    let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
    let session = host.session().await;
    host.turn(&session, "usage").await;
    let full = host.ok("session/read", json!({"sessionId": session})).await;
    assert!(full["runtime"]["contextUsage"]["used"].as_u64().unwrap() > 180_000);
    let accepted = host.ok("session/compact", json!({"sessionId": session})).await;
    assert_eq!(accepted["compact"]["state"], "accepted");
    let again = host.ok("session/compact", json!({"sessionId": session})).await;
    assert_eq!(again["compact"]["state"], "already_running");
    host.refused("session/send", json!({"sessionId": session, "content": "x"}), -32010).await;
    assert_eq!(host.turn_over().await, "session_compacted");
    let read = host.ok("session/read", json!({"sessionId": session})).await;
    assert!(read["runtime"]["contextUsage"]["used"].as_u64().unwrap() < 20_000);
    let history = host.ok("session/messages", json!({"sessionId": session})).await.to_string();
    assert!(history.contains("compact_summary"));
}

#[tokio::test(start_paused = true)]
async fn goals_work_by_themselves_unless_plan_mode_is_on() {
    let mut host = Host::start(Options::deterministic());
    let session = host.session().await;
    host.ok("session/setMode", json!({"sessionId": session, "mode": "plan"})).await;
    let goal =
        |action: &str| json!({"sessionId": session, "action": action, "objective": "tidy up"});
    assert_eq!(host.ok("session/goal", goal("set")).await["startedTurn"], false);
    host.ok("session/setMode", json!({"sessionId": session, "mode": "build"})).await;
    assert_eq!(host.ok("session/goal", goal("set")).await["startedTurn"], true);
    host.turn_over().await;
    assert_eq!(host.events("turn.started")[0]["inputSource"], "goal-continuation");
    let shown = host.ok("session/goal", json!({"sessionId": session, "action": "show"})).await;
    assert_eq!(shown["response"], "Goal (active): tidy up");
}

#[tokio::test(start_paused = true)]
async fn no_reading_of_the_context_exists_before_the_first_model_request() {
    let mut host = Host::start(Options::deterministic());
    let session = host.session().await;
    let read = host.ok("session/read", json!({"sessionId": session})).await;
    assert!(read["runtime"].get("contextUsage").is_none());
    host.turn(&session, "hello").await;
    let read = host.ok("session/read", json!({"sessionId": session})).await;
    assert!(read["runtime"]["contextUsage"]["used"].as_u64().unwrap() > 10_000);
    assert_eq!(read["settings"]["model"]["available"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gap_is_filled_from_the_log() {
    let faults = vec![Fault::DropEvents(7)];
    let mut host = Host::start(Options { faults, ..Options::deterministic() });
    let session = host.session().await;
    host.turn(&session, "hello").await;
    let shown: Vec<u64> = host.seen.iter().filter_map(|m| m["params"]["seq"].as_u64()).collect();
    assert!(!shown.contains(&7));
    let events =
        host.ok("session/events", json!({"sessionId": session, "afterSeq": 6, "limit": 1})).await;
    assert_eq!(events["events"][0]["seq"], 7);
}

#[tokio::test(start_paused = true)]
async fn a_hydrating_history_grows() {
    let dir = tempfile::tempdir().unwrap();
    let store = Some(dir.path().to_owned());
    let mut host = Host::start(Options { store: store.clone(), ..Options::deterministic() });
    let session = host.session().await;
    host.turn(&session, "todos").await;
    host.close().await;
    let faults = vec![Fault::HydrationReads(2)];
    let mut host = Host::start(Options { store, faults, ..Options::deterministic() });
    host.ok("session/resume", json!({"sessionId": session})).await;
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let read = host.ok("session/messages", json!({"sessionId": session})).await;
        sizes.push(read["messages"].as_array().unwrap().len());
    }
    assert!(sizes[0] < sizes[1] && sizes[1] < sizes[2] && sizes[2] == sizes[3], "{sizes:?}");
}
