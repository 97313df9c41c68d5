//! Fifty sessions at once with random cancels, answers, dying engines and a client that leaves in the
//! middle and comes back: no prompt is left unanswered, and none of the engines' requests. Seeded, so
//! that a failure repeats.

use super::*;

const SESSIONS: usize = 50;
const ROUNDS: usize = 2;
const TEXTS: [&str; 10] = [
    "echo hello",
    "bash",
    "permission",
    "permissions",
    "questions",
    "plan",
    "slow",
    "fail",
    "transient",
    "subagent",
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// In one of the ways that clients answer, the bad ones too.
fn decide(dice: &mut Dice, ask: Ask) {
    let options = ask.params["options"].as_array().cloned().unwrap_or_default();
    match dice.roll(6) {
        0 => ask.responder.respond(json!({"outcome": {"outcome": "cancelled"}})).unwrap(),
        1 => ask.responder.respond_with_error(AcpError::internal_error()).unwrap(),
        2 => ask.responder.respond(json!({"what": "is this"})).unwrap(),
        _ if options.is_empty() => ask.responder.respond(json!({"action": "decline"})).unwrap(),
        _ => {
            let option = options[dice.roll(options.len())]["optionId"].as_str().unwrap().to_owned();
            ask.select(&option);
        }
    }
}

/// Prompts every session so many times, and decides, cancels and kills while they run. Returns the
/// kills and the cancels.
async fn rage(
    desk: &mut Desk,
    dice: &mut Dice,
    sessions: &[String],
    rounds: usize,
) -> (usize, usize) {
    let mut open: HashMap<u64, (String, usize)> = HashMap::new();
    for session in sessions {
        let id = desk.prompt(session, TEXTS[dice.roll(TEXTS.len())]);
        open.insert(id, (session.clone(), 1));
    }
    let (mut kills, mut cancels) = (0, 0);
    while !open.is_empty() {
        desk.step().await;
        for ask in std::mem::take(&mut desk.asks) {
            decide(dice, ask);
        }
        if dice.roll(60) == 0 {
            cancels += 1;
            desk.cancel(&sessions[dice.roll(SESSIONS)]);
        }
        if kills < 2 && dice.roll(400) == 0 {
            kills += 1;
            desk.player.kill();
        }
        let done: Vec<u64> =
            open.keys().filter(|id| desk.answers.contains_key(id)).copied().collect();
        for id in done {
            let (session, round) = open.remove(&id).unwrap();
            if let Ok(answer) = &desk.answers[&id] {
                let reason = answer["stopReason"].as_str().unwrap();
                assert!(
                    ["end_turn", "cancelled", "max_turn_requests"].contains(&reason),
                    "{answer}"
                );
            }
            if round < rounds {
                let id = desk.prompt(&session, TEXTS[dice.roll(TEXTS.len())]);
                open.insert(id, (session, round + 1));
            }
        }
    }
    (kills, cancels)
}

async fn storm(seed: u64) {
    let mut dice = Dice(seed);
    let mut desk = Desk::new(paced()).await;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(desk.open().await);
    }
    let (kills, cancels) = rage(&mut desk, &mut dice, &sessions, ROUNDS).await;
    assert!(kills == 2 && cancels > 5, "seed {seed} shows nothing: {kills} {cancels}");
    for session in &sessions {
        let open = desk.open_cards(session);
        assert!(open.is_empty(), "seed {seed}, {session}: {open:?}");
    }
    // Away in the middle of it all and back, twice; what was open died with the connection.
    for lost in 0..2 {
        for session in &sessions {
            desk.prompt(session, TEXTS[dice.roll(TEXTS.len())]);
        }
        desk.pass(Duration::from_millis(700 + 1_000 * lost)).await;
        desk.come_back().await;
        desk.updates.clear();
        for session in &sessions {
            let method = ["session/resume", "session/load"][dice.roll(2)];
            let open = json!({"sessionId": session, "cwd": desk.cwd(), "mcpServers": []});
            desk.ok(method, open).await;
        }
    }
    rage(&mut desk, &mut dice, &sessions, 1).await;
    for session in &sessions {
        desk.prompt(session, TEXTS[dice.roll(TEXTS.len())]);
    }
    desk.pass(Duration::from_millis(1_500)).await;
    desk.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_storm_over_fifty_sessions_leaves_no_prompt_and_no_request_unanswered() {
    for seed in [20_261_130, 7] {
        storm(seed).await;
    }
}
