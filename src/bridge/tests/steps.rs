//! A scripted turn that is hit at every one of its steps: the engine dies, or the client goes. What
//! is left of real processes then, and of a bridge that is killed, is looked at end to end.

use super::*;

/// Goes on with the turn until `steps` messages have come; what the last of them asks is left open.
/// False when the turn ended before.
async fn go(desk: &mut Desk, turn: u64, steps: usize) -> bool {
    for _ in 0..steps {
        desk.agree();
        if desk.answers.contains_key(&turn) {
            return false;
        }
        desk.step().await;
    }
    !desk.answers.contains_key(&turn)
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_dies_at_any_step_of_a_turn_leaves_nothing_open_and_nothing_lost() {
    for script in ["permission", "subagent"] {
        let mut steps = 0;
        loop {
            let mut desk = Desk::new(paced()).await;
            let session = desk.open().await;
            let turn = desk.prompt(&session, script);
            let runs = go(&mut desk, turn, steps).await;
            let said = desk.text(&session);
            desk.player.kill();
            while !desk.answers.contains_key(&turn) {
                desk.step().await;
                desk.agree();
            }
            assert!(desk.text(&session).starts_with(&said), "{script}, step {steps}");
            assert_eq!(desk.open_cards(&session), HashSet::new(), "{script}, step {steps}");
            let next = desk.turn(&session, "echo alive").await;
            assert_eq!(next, "end_turn", "{script}, step {steps}");
            assert!(desk.text(&session).contains("alive"), "{script}, step {steps}");
            desk.end().await;
            if !runs {
                break;
            }
            steps += 1;
        }
        assert!(steps > 5, "{script} has {steps} steps");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_at_any_step_of_a_turn_ends_the_bridge_and_approves_nothing() {
    let (mut steps, mut left_open) = (0, 0);
    loop {
        let mut desk = Desk::new(paced()).await;
        let session = desk.open().await;
        let turn = desk.prompt(&session, "permission");
        let runs = go(&mut desk, turn, steps).await;
        let open = !desk.asks.is_empty();
        desk.leave().await;
        if open {
            left_open += 1;
            let lines = desk.player.lines(0);
            let answers = lines
                .iter()
                .filter(|(dir, frame)| dir == "out" && frame.pointer("/result/decision").is_some());
            let given: Vec<_> = answers.map(|(_, frame)| &frame["result"]["decision"]).collect();
            assert_eq!(given, ["deny"], "step {steps}");
        }
        // Checks that every question of the engine's got an answer.
        desk.end().await;
        if !runs {
            break;
        }
        steps += 1;
    }
    assert!(steps > 5 && left_open > 0, "{steps} steps, {left_open} with a question");
}
