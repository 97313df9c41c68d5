//! Random interleavings: whatever happens in whatever order, every prompt gets exactly one answer,
//! every question of the engine's exactly one outcome per id, and nothing of a cancelled turn
//! follows its answer.

use proptest::prelude::*;

use super::*;
use crate::bridge::engine::event::TurnFailed;

#[derive(Debug, Clone)]
enum Act {
    Prompt,
    Resume,
    Tell,
    Cancel,
    Accept,
    Busy,
    Evict,
    Start,
    Text,
    Complete,
    Fail,
    Foreign,
    ForeignEnd,
    Ask(u8),
    Choose(u8),
    Die,
    Pass(u16),
    Gap,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Prompt),
        1 => Just(Act::Resume),
        1 => Just(Act::Tell),
        1 => Just(Act::Cancel),
        5 => Just(Act::Accept),
        1 => Just(Act::Busy),
        1 => Just(Act::Evict),
        5 => Just(Act::Start),
        5 => Just(Act::Text),
        4 => Just(Act::Complete),
        1 => Just(Act::Fail),
        1 => Just(Act::Foreign),
        1 => Just(Act::ForeignEnd),
        2 => (0..4u8).prop_map(Act::Ask),
        2 => (0..4u8).prop_map(Act::Choose),
        1 => Just(Act::Die),
        2 => (1..8_000u16).prop_map(Act::Pass),
        1 => Just(Act::Gap),
    ]
}

struct World {
    b: Bench,
    prompts: Vec<ReqId>,
    turn: u32,
    ids: u32,
    asked: Vec<WireId>,
}

impl World {
    fn open_send(&self) -> Option<Token> {
        self.b
            .calls
            .iter()
            .rev()
            .find(|(t, m, _)| *t != 0 && *m == "session/send")
            .map(|(t, ..)| *t)
    }

    fn answer_send(&mut self, reply: Result<Value, EngineError>) {
        if let Some(token) = self.open_send() {
            for call in &mut self.b.calls {
                if call.0 == token {
                    call.0 = 0;
                }
            }
            self.b.reply(token, reply);
        }
    }

    /// The engine hands out what it has of a history, and the client takes it.
    fn tell_history(&mut self) {
        let reads = self.b.calls.iter_mut().filter(|(t, m, _)| *t != 0 && *m == "session/messages");
        let tokens: Vec<Token> = reads.map(|it| std::mem::take(&mut it.0)).collect();
        for token in tokens {
            self.b.reply(token, Ok(json!({"messages": []})));
        }
        for room in std::mem::take(&mut self.b.rooms) {
            self.b.step(Input::Timer(room));
        }
    }

    fn run(&mut self, act: &Act) {
        let turn = format!("t{}", self.turn);
        match act {
            Act::Prompt => {
                let req = self.b.prompt("hello");
                self.prompts.push(req);
            }
            Act::Resume => {
                let req = self.b.prompt("/resume");
                self.prompts.push(req);
            }
            Act::Tell => self.tell_history(),
            Act::Cancel => self.b.step(Input::Cancel),
            Act::Accept => self.answer_send(Ok(json!({"accepted": true}))),
            Act::Busy => self.answer_send(Err(rpc(1308, "prompt is running"))),
            Act::Evict => self.answer_send(Err(rpc(-32004, "Session is not active: sess_1"))),
            Act::Start => {
                if self.b.count("session/send") > 0 {
                    self.turn += 1;
                    self.b.start(&format!("t{}", self.turn));
                }
            }
            Act::Text => self.b.text(&turn, "x"),
            Act::Complete => self.b.complete(&turn, "success"),
            Act::Fail => {
                let failed = TurnFailed {
                    error: json!({"message": "no", "retryable": false}),
                    ..TurnFailed::default()
                };
                self.b.event(&turn, SessionBody::TurnFailed(failed));
            }
            Act::Foreign => {
                let started = TurnStarted {
                    input_source: Some("background_task".into()),
                    ..TurnStarted::default()
                };
                self.b.event("bg", SessionBody::TurnStarted(started));
            }
            Act::ForeignEnd => self.b.complete("bg", "success"),
            Act::Ask(n) => {
                self.ids += 1;
                let id = format!("server-{}", self.ids);
                self.b.permission(&id, &format!("r{n}"));
                self.asked.push(json!(id));
            }
            Act::Choose(n) => {
                if let Some(token) = self.b.asks.iter().rev().nth(usize::from(*n)).copied() {
                    self.b.choose(token, "yes");
                }
            }
            Act::Die => {
                self.b.die();
                // Whatever the old process was asked is answered by its end; its questions are gone.
                self.answer_send(Err(EngineError::Closed));
                self.asked.retain(|id| self.b.answers.iter().any(|(a, _)| a == id));
            }
            Act::Pass(ms) => self.b.pass(u64::from(*ms)),
            Act::Gap => {
                let seq = self.b.seq + 3;
                self.b.event_at(seq, &turn, text_body("y"));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_prompt_gets_one_answer_and_every_question_one_outcome(acts in prop::collection::vec(act(), 1..80)) {
        let mut w = World { b: Bench::new(), prompts: Vec::new(), turn: 0, ids: 0, asked: Vec::new() };
        for act in &acts {
            w.run(act);
        }
        // A stop and some time end everything that is left, also on an engine that says nothing.
        w.b.step(Input::Cancel);
        for _ in 0..8 {
            w.answer_send(Ok(json!({"accepted": true})));
            w.b.pass(20_000);
        }
        for req in &w.prompts {
            prop_assert!(w.b.response(*req).is_some(), "unanswered: {req:?}");
        }
        prop_assert!(!w.b.machine.is_busy());
        for id in &w.asked {
            let n = w.b.answers.iter().filter(|(a, _)| a == id).count();
            prop_assert_eq!(n, 1, "{} was answered {} times", id, n);
        }
    }
}
