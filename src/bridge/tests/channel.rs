//! The V4 channel of a whole bridge: every race and downgrade that the simulated engine can play, against the same turn told
//! by an engine without faults.

use super::*;

/// What a session showed, in order: texts joined while they go on, cards by their title.
pub(super) fn transcript(desk: &Desk, session: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for (_, update) in desk.updates.iter().filter(|(id, _)| id == session) {
        let kind = update["sessionUpdate"].as_str().unwrap().to_owned();
        match kind.as_str() {
            "agent_message_chunk" | "agent_thought_chunk" => {
                let text = update["content"]["text"].as_str().unwrap();
                match out.last_mut() {
                    Some((last, so_far)) if *last == kind => so_far.push_str(text),
                    _ => out.push((kind, text.to_owned())),
                }
            }
            "tool_call" => out.push((kind, update["title"].as_str().unwrap().to_owned())),
            _ => {}
        }
    }
    out
}

/// The same prompt to an engine without faults.
pub(super) async fn told_well(text: &str) -> Vec<(String, String)> {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, text).await, "end_turn");
    let told = transcript(&desk, &session);
    assert!(told.len() > 2, "{told:?}");
    desk.end().await;
    told
}

async fn is_live(desk: &mut Desk, session: &str) -> bool {
    let state = desk.ok("_zcode/state", json!({"sessionId": session})).await;
    state["live"].as_bool().unwrap()
}

fn resyncs(desk: &Desk) -> Vec<Value> {
    calls(desk, "v4/conversation/resync")
}

/// Params of every request of that method, in order.
fn calls(desk: &Desk, method: &str) -> Vec<Value> {
    let lines = (0..desk.player.started()).flat_map(|n| desk.player.lines(n));
    let calls = lines.filter(|(dir, frame)| dir == "out" && frame["method"] == method);
    calls.map(|(_, mut frame)| frame["params"].take()).collect()
}

/// The guides that were sent, as `(commandId, text)`.
fn guides(desk: &Desk) -> Vec<(String, String)> {
    let sent = calls(desk, "v4/command").into_iter().filter(|it| it["type"] == "sendText");
    let word = |it: &Value, at: &str| it.pointer(at).and_then(Value::as_str).unwrap().to_owned();
    sent.map(|it| (word(&it, "/commandId"), word(&it, "/payload/text"))).collect()
}

fn steering(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}],
        "_meta": {"steering": {"idleBehavior": "promptRequired"}}})
}

impl Desk {
    fn steer(&mut self, session: &str, text: &str) -> u64 {
        self.post("_session/steering", steering(session, text))
    }

    /// Steps until the session's text says so.
    pub(super) async fn until_text(&mut self, session: &str, what: &str) {
        while !self.text(session).contains(what) {
            self.step().await;
        }
    }

    /// Steps until the engine has got so many requests of that method.
    async fn until_called(&mut self, method: &str, times: usize) {
        while self.calls(method) < times {
            self.pass(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn frames_that_are_lost_are_asked_for_again_and_nothing_is_missing_or_doubled() {
    let whole = told_well("tools").await;
    for every in [2, 3, 5] {
        let mut desk = Desk::new(with_faults(&[&format!("drop-frames:{every}")])).await;
        let session = desk.open().await;
        assert_eq!(desk.turn(&session, "tools").await, "end_turn");
        assert_eq!(transcript(&desk, &session), whole, "every {every}th frame lost");
        assert!(!resyncs(&desk).is_empty(), "every {every}th frame lost");
        desk.end().await;
    }
    // Where few are lost, the channel stays.
    let mut desk = Desk::new(with_faults(&["drop-frames:9"])).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "tools").await, "end_turn");
    let gaps = resyncs(&desk);
    assert!(gaps.iter().all(|it| it["base"]["seq"].is_u64()), "from where it stands: {gaps:?}");
    assert!(is_live(&mut desk, &session).await);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_fragment_that_fails_its_checksum_brings_a_new_picture_and_no_broken_text() {
    let whole = told_well("tools").await;
    for (frame_max, every) in [(256, 7), (512, 3), (512, 1)] {
        let options = with_faults(&[&format!("spoil-fragments:{every}")]);
        let mut desk = Desk::new(Options { frame_max, ..options }).await;
        let session = desk.open().await;
        assert_eq!(desk.turn(&session, "tools").await, "end_turn");
        assert_eq!(transcript(&desk, &session), whole, "{frame_max} bytes, every {every}th");
        let asked = resyncs(&desk);
        assert!(
            asked.iter().any(|it| it["forceSnapshot"] == true && it["base"].is_null()),
            "{frame_max} bytes, every {every}th: {asked:?}"
        );
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn frames_in_fragments_tell_the_same_turn() {
    let whole = told_well("tools").await;
    let mut desk = Desk::new(Options { frame_max: 128, ..paced() }).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "tools").await, "end_turn");
    assert_eq!(transcript(&desk, &session), whole);
    assert!(resyncs(&desk).is_empty() && is_live(&mut desk, &session).await);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_breaks_in_mid_turn_leaves_the_turn_to_the_events() {
    let whole = told_well("tools").await;
    for fault in ["v4-breaks", "v4-falls-silent"] {
        for after in [1, 2, 4, 8, 16, 32] {
            let case = format!("{fault} after {after} frames");
            let mut desk = Desk::new(with_faults(&[&format!("{fault}:{after}")])).await;
            let session = desk.open().await;
            let began = Instant::now();
            assert_eq!(desk.turn(&session, "tools").await, "end_turn", "{case}");
            assert!(began.elapsed() < Duration::from_mins(1), "{case}: {:?}", began.elapsed());
            assert_eq!(transcript(&desk, &session), whole, "{case}");
            assert!(desk.open_cards(&session).is_empty(), "{case}");
            // The session goes on, and a cancel still stops.
            assert_eq!(desk.turn(&session, "echo still here").await, "end_turn", "{case}");
            assert!(desk.text(&session).contains("still here"), "{case}");
            let id = desk.prompt(&session, "slow");
            desk.until(&session, |u| u["title"].to_string().contains("sleep 1")).await;
            desk.cancel(&session);
            let began = Instant::now();
            assert_eq!(desk.stop_reason(id).await, "cancelled", "{case}");
            assert!(began.elapsed() <= Duration::from_secs(3), "{case}: {:?}", began.elapsed());
            desk.end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_without_the_channel_is_asked_for_it_once_for_all_sessions() {
    let whole = told_well("tools").await;
    let mut desk = Desk::new(Options { profile: "0.15".parse().unwrap(), ..paced() }).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "tools").await, "end_turn");
    assert_eq!(transcript(&desk, &session), whole);
    let asked = |desk: &Desk| {
        let lines = desk.player.lines(0).into_iter().filter(|(dir, _)| dir == "out");
        lines.filter(|(_, it)| it["method"].to_string().contains("v4/")).count()
    };
    assert_eq!(asked(&desk), 1);
    // Nobody asks again; a second prompt waits for its turn.
    let other = desk.open().await;
    assert_eq!(desk.turn(&other, "echo other").await, "end_turn");
    let running = desk.prompt(&session, "story");
    desk.until_text(&session, "Chapter").await;
    let second = desk.prompt(&session, "echo second");
    assert_eq!(desk.stop_reason(running).await, "end_turn");
    let answer = desk.answer(second).await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    assert!(answer["_meta"]["steering"].is_null(), "{answer}");
    assert_eq!(asked(&desk), 1);
    assert!(!is_live(&mut desk, &session).await);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn sessions_that_begin_together_ask_once_and_a_new_engine_is_asked_anew() {
    let old = |_| Options { profile: "0.15".parse().unwrap(), ..paced() };
    let mut desk = Desk::with(old, |_| {}).await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(desk.open().await);
    }
    let asked = |desk: &Desk, engine: usize| {
        let lines = desk.player.lines(engine).into_iter().filter(|(dir, _)| dir == "out");
        lines.filter(|(_, it)| it["method"].to_string().contains("v4/")).count()
    };
    let prompts: Vec<u64> = sessions.iter().map(|it| desk.prompt(it, "echo together")).collect();
    for id in prompts {
        assert_eq!(desk.stop_reason(id).await, "end_turn");
    }
    assert_eq!(asked(&desk, 0), 1);
    desk.player.kill();
    let prompts: Vec<u64> = sessions.iter().map(|it| desk.prompt(it, "echo again")).collect();
    for id in prompts {
        assert_eq!(desk.stop_reason(id).await, "end_turn");
    }
    assert_eq!((desk.player.started(), asked(&desk, 1)), (2, 1));
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_replaced_by_a_newer_one_gets_the_channel() {
    let newer = |n| match n {
        0 => Options { profile: "0.15".parse().unwrap(), ..paced() },
        _ => paced(),
    };
    let mut desk = Desk::with(newer, |_| {}).await;
    let session = desk.open().await;
    assert_eq!(desk.turn(&session, "echo old").await, "end_turn");
    assert!(!is_live(&mut desk, &session).await);
    desk.player.kill();
    assert_eq!(desk.turn(&session, "echo new").await, "end_turn");
    assert!(is_live(&mut desk, &session).await);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn steering_an_engine_that_cannot_says_so() {
    let mut desk = Desk::new(Options { profile: "0.15".parse().unwrap(), ..paced() }).await;
    let session = desk.open().await;
    let id = desk.prompt(&session, "story");
    desk.until_text(&session, "Chapter").await;
    let verdict = desk.ok("_session/steering", steering(&session, "echo steered")).await;
    assert_eq!(verdict["outcome"], "failed", "{verdict}");
    assert!(verdict["reason"].is_string() && verdict["detail"].is_string(), "{verdict}");
    assert_eq!(desk.stop_reason(id).await, "end_turn");
    assert!(!desk.text(&session).contains("steered"));
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_lacks_only_the_flow_of_the_channel_is_served_by_events() {
    let whole = told_well("tools").await;
    for method in ["v4/connection/flow", "v4/conversation/subscribe"] {
        let mut desk = Desk::new(with_faults(&[&format!("no-method:{method}")])).await;
        let session = desk.open().await;
        assert_eq!(desk.turn(&session, "tools").await, "end_turn", "{method}");
        assert_eq!(transcript(&desk, &session), whole, "{method}");
        assert!(!is_live(&mut desk, &session).await, "{method}");
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn frames_of_the_old_shape_and_frames_that_come_first_are_heard_all_the_same() {
    let whole = told_well("tools").await;
    for (old_frames, frame_first) in [(true, false), (false, true), (true, true)] {
        let mut desk = Desk::new(Options { old_frames, frame_first, ..paced() }).await;
        let session = desk.open().await;
        assert_eq!(desk.turn(&session, "tools").await, "end_turn");
        assert_eq!(transcript(&desk, &session), whole, "old {old_frames}, first {frame_first}");
        assert!(is_live(&mut desk, &session).await, "old {old_frames}, first {frame_first}");
        assert!(resyncs(&desk).is_empty());
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_guide_that_falls_back_is_queued_with_its_reason_and_runs_afterwards() {
    for reason in ["guide.noToolBoundary", "guide.turnInterrupted", "guide.attachmentsUnsupported"]
    {
        let mut desk = Desk::new(with_faults(&[&format!("guide-falls-back:{reason}")])).await;
        let session = desk.open().await;
        let id = desk.prompt(&session, "story");
        desk.until_text(&session, "Chapter").await;
        let verdict = desk.ok("_session/steering", steering(&session, "echo fell back")).await;
        assert_eq!(verdict["outcome"], "queued", "{verdict}");
        assert_eq!(verdict["reason"], reason, "{verdict}");
        assert_eq!(verdict["steerState"], "fellBack", "{verdict}");
        assert_eq!(desk.stop_reason(id).await, "end_turn");
        desk.until_text(&session, "fell back").await;
        desk.pass(Duration::from_secs(5)).await;
        assert!(desk.open_cards(&session).is_empty());
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_prompt_whose_guide_falls_back_is_answered_with_the_end_of_its_own_turn() {
    let mut desk = Desk::new(with_faults(&["guide-falls-back"])).await;
    let session = desk.open().await;
    let first = desk.prompt(&session, "story");
    desk.until_text(&session, "Chapter").await;
    let second = desk.prompt(&session, "echo the second one");
    let answer = desk.answer(second).await.unwrap();
    assert!(desk.answers.contains_key(&first), "the first turn ends first");
    assert_eq!(answer["stopReason"], "end_turn");
    assert_eq!(answer["_meta"]["steering"]["outcome"], "queued", "{answer}");
    assert_eq!(answer["_meta"]["steering"]["reason"], "guide.noToolBoundary", "{answer}");
    assert!(desk.text(&session).contains("the second one"));
    assert_eq!(desk.calls("session/send"), 1, "the engine's queue ran it");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_prompt_is_guided_into_the_turn_and_answered_with_its_end() {
    let mut desk = Desk::new(paced()).await;
    let session = desk.open().await;
    let first = desk.prompt(&session, "slow");
    desk.until_text(&session, "Step 2").await;
    let second = desk.prompt(&session, "say banana");
    let answer = desk.answer(second).await.unwrap();
    assert!(desk.answers.contains_key(&first), "it ends with the turn");
    assert_eq!(desk.stop_reason(first).await, "end_turn");
    assert_eq!(answer["stopReason"], "end_turn");
    assert_eq!(answer["_meta"]["steering"]["outcome"], "injected", "{answer}");
    assert_eq!(answer["_meta"]["steering"]["delivery"], "guide", "{answer}");
    let text = desk.text(&session);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("banana") < at("Step 40"), "it was taken into the running turn");
    assert_eq!(desk.calls("session/send"), 1);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_prompt_that_is_refused_as_a_guide_runs_after_the_turn() {
    // The row that a guide needs is never there in time.
    let change = |config: &mut Config| config.steer_fk_retry = Duration::ZERO;
    let mut desk = Desk::with(|_| with_faults(&["late-row:60000"]), change).await;
    let session = desk.open().await;
    let first = desk.prompt(&session, "story");
    desk.until_text(&session, "Chapter").await;
    let second = desk.prompt(&session, "echo afterwards");
    assert_eq!(desk.stop_reason(first).await, "end_turn");
    assert_eq!(desk.stop_reason(second).await, "end_turn");
    assert!(desk.text(&session).contains("afterwards"));
    assert_eq!(desk.calls("session/send"), 2, "as a prompt of its own");
    desk.end().await;
}

/// Steers in the same breath as the first prompt of a new session; returns the verdict and how long it took.
async fn steer_at_once(desk: &mut Desk) -> (Value, Duration) {
    let session = desk.open().await;
    let id = desk.prompt(&session, "slow");
    desk.until_called("session/send", 1).await;
    let began = Instant::now();
    let steer = desk.steer(&session, "say banana");
    let verdict = desk.answer(steer).await.unwrap();
    let took = began.elapsed();
    desk.cancel(&session);
    assert_eq!(desk.stop_reason(id).await, "cancelled");
    (verdict, took)
}

#[tokio::test(start_paused = true)]
async fn a_guide_waits_for_the_sessions_first_event_and_needs_one_try_then() {
    let mut desk = Desk::new(paced()).await;
    let (verdict, _) = steer_at_once(&mut desk).await;
    assert_eq!(verdict["outcome"], "injected", "{verdict}");
    assert_eq!(guides(&desk).len(), 1);
    let lines = desk.player.lines(0);
    let at = |what: &dyn Fn(&(String, Value)) -> bool| lines.iter().position(what).unwrap();
    let event = at(&|(dir, it)| dir == "in" && it["method"] == "session/event");
    let guide = at(&|(dir, it)| dir == "out" && it["params"]["type"] == "sendText");
    assert!(event < guide, "the first event is waited for");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_row_that_is_late_is_tried_again_under_new_ids_until_it_is_there() {
    let mut desk = Desk::new(with_faults(&["late-row:600"])).await;
    let (verdict, took) = steer_at_once(&mut desk).await;
    assert_eq!(verdict["outcome"], "injected", "{verdict}");
    // At once, and 100, 300 and 700 ms later.
    let sent = guides(&desk);
    assert_eq!(sent.len(), 4, "{sent:?}");
    let ids: HashSet<&str> = sent.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids.len(), 4, "each try has an id of its own: {sent:?}");
    assert!(took < Duration::from_secs(6), "{took:?}");
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_row_that_never_comes_ends_the_tries_in_bounded_time_with_the_engines_words() {
    // Time for tries, and how many fit into it.
    for (limit, tries) in [(None, 5), (Some(4000), 8), (Some(250), 2), (Some(0), 1)] {
        let change = move |config: &mut Config| {
            if let Some(ms) = limit {
                config.steer_fk_retry = Duration::from_millis(ms);
            }
        };
        let mut desk = Desk::with(|_| with_faults(&["late-row:60000"]), change).await;
        let (verdict, took) = steer_at_once(&mut desk).await;
        assert_eq!(verdict["outcome"], "failed", "{verdict}");
        assert_eq!(verdict["reason"], "fault.command.executionFailed", "{verdict}");
        assert!(verdict["detail"].to_string().contains("FOREIGN KEY"), "{verdict}");
        assert_eq!(guides(&desk).len(), tries, "{limit:?}");
        assert!(took < Duration::from_secs(5), "{took:?}");
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_the_first_event_is_as_long_as_it_was_set() {
    // The first event comes 365 ms after the prompt; this wait is over before, and the row is tried for.
    let change = |config: &mut Config| config.steer_persist = Duration::from_millis(50);
    let mut desk = Desk::with(|_| paced(), change).await;
    let (verdict, _) = steer_at_once(&mut desk).await;
    assert_eq!(verdict["outcome"], "injected", "{verdict}");
    let sent = guides(&desk);
    assert!(sent.len() > 1, "the row was not there at first: {sent:?}");
    let lines = desk.player.lines(0);
    let at = |what: &dyn Fn(&(String, Value)) -> bool| lines.iter().position(what).unwrap();
    let event = at(&|(dir, it)| dir == "in" && it["method"] == "session/event");
    let guide = at(&|(dir, it)| dir == "out" && it["params"]["type"] == "sendText");
    assert!(guide < event);
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_came_before_the_start_is_said_again_after_it() {
    for profile in ["0.15", "0.16.5", "0.16.9"] {
        let options = Options { profile: profile.parse().unwrap(), ..paced() };
        let mut desk = Desk::new(options).await;
        let session = desk.open().await;
        assert_eq!(desk.turn(&session, "echo warm").await, "end_turn");
        let id = desk.prompt(&session, "slow");
        desk.until_called("session/send", 2).await;
        // Accepted; the turn starts 40 ms later.
        desk.pass(Duration::from_millis(10)).await;
        desk.cancel(&session);
        assert_eq!(desk.stop_reason(id).await, "cancelled", "{profile}");
        desk.pass(Duration::from_secs(8)).await;
        let lines = desk.player.lines(0);
        let starts =
            |(dir, it): &(String, Value)| dir == "in" && it["params"]["type"] == "turn.started";
        let start = lines.iter().rposition(starts).unwrap();
        let is_stop = |(dir, it): &&(String, Value)| {
            dir == "out" && (it["method"] == "session/stop" || it["params"]["type"] == "stop")
        };
        let before = lines[..start].iter().filter(is_stop).count();
        let after = lines[start..].iter().filter(is_stop).count();
        assert!(before > 0 && after > 0, "{profile}: {before} before, {after} after");
        let ended = |(dir, it): &(String, Value)| {
            dir == "in" && it["params"]["payload"]["resultType"] == "cancelled"
        };
        assert!(lines[start..].iter().any(ended), "{profile}: the engine goes on");
        assert!(!desk.text(&session).contains("Step"), "{profile}");
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_lost_end_of_a_queued_prompts_own_turn_answers_the_prompt() {
    // With rows it is seen at once; without them the silence is looked into.
    for (faults, limit) in [
        (&["lose-completed", "guide-falls-back"][..], 60),
        (&["lose-completed", "guide-falls-back", "v4-falls-silent:60"], 240),
    ] {
        let mut desk = Desk::new(with_faults(faults)).await;
        let session = desk.open().await;
        let began = Instant::now();
        let first = desk.prompt(&session, "story");
        desk.until_text(&session, "Chapter").await;
        let second = desk.prompt(&session, "echo the second one");
        assert_eq!(desk.stop_reason(first).await, "end_turn", "{faults:?}");
        assert_eq!(desk.stop_reason(second).await, "end_turn", "{faults:?}");
        assert!(desk.text(&session).contains("the second one"), "{faults:?}");
        assert!(began.elapsed() < Duration::from_secs(limit), "{faults:?}: {:?}", began.elapsed());
        assert_eq!(desk.turn(&session, "echo the third").await, "end_turn", "{faults:?}");
        desk.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_behind_a_foreign_turn_whose_end_was_lost_is_answered() {
    for profile in ["0.16.5", "0.16.9"] {
        let options =
            Options { profile: profile.parse().unwrap(), ..with_faults(&["lose-completed"]) };
        let mut desk = Desk::new(options).await;
        let session = desk.open().await;
        assert_eq!(desk.turn(&session, "background").await, "end_turn", "{profile}");
        let own =
            |u: &Value| u["sessionUpdate"] == "tool_call_update" && u["status"] == "completed";
        desk.until(&session, own).await;
        let began = Instant::now();
        // While the engine's own turn runs, whose end nobody tells.
        desk.pass(Duration::from_millis(200)).await;
        assert_eq!(desk.turn(&session, "echo after it").await, "end_turn", "{profile}");
        assert!(desk.text(&session).contains("after it"), "{profile}");
        assert!(began.elapsed() < Duration::from_mins(2), "{profile}: {:?}", began.elapsed());
        assert!(desk.open_cards(&session).is_empty(), "{profile}");
        desk.end().await;
    }
}
