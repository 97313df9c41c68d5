//! Everything that the simulated engine can be told to do differently is played to a whole bridge by some test. The list is read
//! from the simulator's own source, so that a new switch without a test fails here. The plain ones are played below.

use super::channel::{told_well, transcript};
use super::*;

const OPTIONS: &str = include_str!("../engine/sim/options.rs");

/// The words that options.rs understands: `--switch` of the command line, and faults.
fn switches() -> Vec<String> {
    let lines = OPTIONS.lines().map(str::trim_start).filter(|line| line.starts_with('"'));
    let mut found = Vec::new();
    for line in lines.filter(|line| line.contains("=>")) {
        let pattern = line.split("=>").next().unwrap();
        let words = pattern.split('"').skip(1).step_by(2).map(str::to_owned);
        found.extend(words.filter(|word| !word.is_empty()));
    }
    found
}

/// Where whole bridges are tested: in this process, and as programs.
fn tests() -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    for dir in ["src/bridge/tests", "tests/e2e"] {
        for entry in std::fs::read_dir(root.join(dir)).unwrap() {
            text += &std::fs::read_to_string(entry.unwrap().path()).unwrap();
        }
    }
    text
}

#[test]
fn every_switch_of_the_simulated_engine_is_used_by_a_test_of_a_whole_bridge() {
    let (switches, tests) = (switches(), tests());
    assert!(switches.len() > 30, "{switches:?}");
    let plain = [
        // Words of the real engine's command line, which mean nothing here.
        "app-server",
        "--stdio",
        "--disallowed-tools",
        // The values of `--startup`, and the clock and ids that every test here has fixed.
        "silent",
        "migrate",
        "fail",
        "--epoch-ms",
        "ready",
        "--deterministic",
    ];
    let unused: Vec<&String> = switches
        .iter()
        .filter(|it| !plain.contains(&it.as_str()))
        .filter(|it| {
            // As a field of the options, or on a command line.
            if let Some(name) = it.strip_prefix("--") {
                let field = match name {
                    "no-batch" => "legacy_batch".to_owned(),
                    "script" => "scripts".to_owned(),
                    "fault" => "faults".to_owned(),
                    name => name.replace('-', "_"),
                };
                !tests.contains(&format!("{field}:"))
                    && !tests.contains(&format!("{field},"))
                    && !tests.contains(it.as_str())
            } else {
                let ends = ['"', ':'].map(|end| format!("\"{it}{end}"));
                !ends.iter().any(|word| tests.contains(word))
            }
        })
        .collect();
    assert!(unused.is_empty(), "used by no test: {unused:?}");
}

#[tokio::test(start_paused = true)]
async fn lines_that_are_no_messages_and_events_that_are_not_batched_tell_the_same_turn() {
    let whole = told_well("tools").await;
    for options in [
        with_faults(&["garbage:3"]),
        with_faults(&["garbage"]),
        Options { legacy_batch: false, ..paced() },
    ] {
        let mut desk = Desk::new(options).await;
        let session = desk.open().await;
        assert_eq!(desk.turn(&session, "tools").await, "end_turn");
        assert_eq!(transcript(&desk, &session), whole);
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_engine_is_waited_for_and_holds_no_cancel_up() {
    let mut desk = Desk::new(with_faults(&["slow:session/create:12000"])).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo at last").await, "end_turn");
    assert!(desk.text(&session).contains("at last"));
    desk.end().await;
    let mut desk = Desk::new(with_faults(&["slow:session/read:4000"])).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "slow");
    desk.until(&session, |u| u["sessionUpdate"] == "tool_call").await;
    desk.cancel(&session);
    let began = Instant::now();
    assert_eq!(desk.stop_reason(id).await, "cancelled");
    assert!(began.elapsed() <= Duration::from_secs(3), "{:?}", began.elapsed());
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_evicted_after_each_turn_goes_on_without_its_history() {
    let mut desk = Desk::new(with_faults(&["evict"])).await;
    let session = desk.open().await;
    for word in ["one", "two", "three"] {
        assert_eq!(desk.turn(&session, &format!("echo {word}")).await, "end_turn");
    }
    let text = desk.text(&session);
    for word in ["one", "two", "three"] {
        assert_eq!(text.matches(word).count(), 1, "{text}");
    }
    assert_eq!(desk.calls("session/create"), 1);
    assert!(desk.calls("session/resume") >= 2);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_history_that_is_still_being_read_in_is_waited_for_and_told_whole() {
    let mut desk = Desk::new(with_faults(&["hydration:3"])).await;
    let session = desk.open().await;
    for word in ["one", "two", "three"] {
        assert_eq!(desk.turn(&session, &format!("echo {word}")).await, "end_turn");
    }
    desk.ok("session/close", json!({"sessionId": session})).await;
    let said = desk.updates.len();
    let params = json!({"sessionId": session, "cwd": desk.cwd(), "mcpServers": []});
    desk.ok("session/load", params).await;
    let told: String = desk.updates[said..]
        .iter()
        .filter(|(_, u)| u["sessionUpdate"] == "user_message_chunk")
        .filter_map(|(_, u)| u["content"]["text"].as_str())
        .collect();
    assert_eq!(told, "echo oneecho twoecho three");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_drops_requests_while_it_starts_is_asked_again() {
    let options = |n| if n == 0 { paced() } else { with_faults(&["cold-start:2000"]) };
    let mut desk = Desk::with(options, |_| {}).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo one").await, "end_turn");
    desk.player.kill();
    desk.pass(Duration::from_secs(1)).await;
    assert_eq!(desk.turn(&session, "echo two").await, "end_turn");
    assert!(desk.text(&session).contains("two"));
    assert!(desk.calls("session/resume") >= 2, "the first one was dropped");
    // What was dropped stays unanswered, on purpose.
    desk.leave().await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_ignores_the_end_of_its_input_does_not_hold_the_bridge() {
    let mut desk = Desk::new(with_faults(&["ignore-eof"])).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo hello").await, "end_turn");
    let began = Instant::now();
    desk.leave().await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn headers_that_nobody_has_fail_the_turn_with_what_to_do_and_not_the_session() {
    let mut desk = Desk::new(Options { ask_headers: true, ..paced() }).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "hello");
    let error = desk.answer(id).await.expect_err("there is nobody to sign the request");
    assert!(!error.message.is_empty(), "{error:?}");
    assert!(desk.open_cards(&session).is_empty());
    desk.ok("_zcode/state", json!({"sessionId": session})).await;
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_migration_at_the_start_is_told_and_a_failed_one_too() {
    for (startup, words) in [
        (Startup::Migrate, "bringing its database up to date"),
        (Startup::Fail, "could not bring its database up to date (SCHEMA_MISMATCH)"),
    ] {
        // Nothing is created before the database is there.
        let options = Options { startup, ..with_faults(&["slow:session/create:3000"]) };
        let mut desk = Desk::new(options).await;
        let session = desk.open().await;
        let id = desk.prompt(&session, "echo hello");
        desk.answer(id).await.ok();
        let told = desk.updates.iter().filter(|(_, u)| u.to_string().contains(words));
        assert_eq!(told.count(), 1, "{startup:?}: {:?}", desk.updates);
        desk.end().await;
    }
}
