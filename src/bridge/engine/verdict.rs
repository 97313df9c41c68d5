//! Whether an engine process has the V4 channel: asked once for each process, by whichever session
//! is the first to need it, and known to all the others. Held by the engine's handle; asked and told
//! by the sessions' actors.

use std::sync::Arc;

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unasked,
    Asked,
    Known(bool),
}

/// What one process is known to have.
#[derive(Debug, Clone)]
pub struct Verdict(Arc<watch::Sender<State>>);

/// What is to be done about it.
#[derive(Debug)]
pub enum Claim {
    /// Nobody has asked: whoever holds this does.
    Ask(Question),
    /// Somebody has, and the answer is not there yet.
    Wait(Answer),
    /// It has the channel, or has not.
    Known(bool),
}

/// The right to ask. Dropped without an answer it goes to the next who needs to know.
#[derive(Debug)]
pub struct Question(Verdict);

/// The answer to a question that somebody else asked.
#[derive(Debug)]
pub struct Answer(watch::Receiver<State>);

impl Default for Verdict {
    fn default() -> Self {
        Self(Arc::new(watch::channel(State::Unasked).0))
    }
}

impl Verdict {
    /// Asks for the verdict, or for the right to find it out.
    pub fn claim(&self) -> Claim {
        let mut before = State::Unasked;
        self.0.send_if_modified(|state| {
            before = *state;
            if before == State::Unasked {
                *state = State::Asked;
            }
            before == State::Unasked
        });
        match before {
            State::Unasked => Claim::Ask(Question(self.clone())),
            State::Asked => Claim::Wait(Answer(self.0.subscribe())),
            State::Known(there) => Claim::Known(there),
        }
    }
}

impl Question {
    /// Tells everybody.
    pub fn answer(self, there: bool) {
        self.0.0.send_replace(State::Known(there));
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.0.0.send_if_modified(|state| {
            let unanswered = *state == State::Asked;
            if unanswered {
                *state = State::Unasked;
            }
            unanswered
        });
    }
}

impl Answer {
    /// Waits for it; `None` when whoever asked got none, or the engine is gone.
    pub async fn known(mut self) -> Option<bool> {
        match self.0.wait_for(|state| *state != State::Asked).await.ok().map(|state| *state) {
            Some(State::Known(there)) => Some(there),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_asks_and_the_others_get_the_answer() {
        let verdict = Verdict::default();
        let Claim::Ask(question) = verdict.claim() else { panic!("nobody has asked yet") };
        let Claim::Wait(early) = verdict.clone().claim() else { panic!("one question is enough") };
        question.answer(false);
        assert_eq!(early.known().await, Some(false));
        assert!(matches!(verdict.claim(), Claim::Known(false)));
    }

    #[tokio::test]
    async fn a_question_without_an_answer_goes_to_the_next() {
        let verdict = Verdict::default();
        let first = verdict.claim();
        let Claim::Wait(early) = verdict.claim() else { panic!("one question is enough") };
        drop(first);
        assert_eq!(early.known().await, None);
        let Claim::Ask(second) = verdict.claim() else { panic!("it is asked again") };
        second.answer(true);
        assert!(matches!(verdict.claim(), Claim::Known(true)));
    }

    #[tokio::test]
    async fn nobody_waits_for_an_engine_that_is_gone() {
        let verdict = Verdict::default();
        let Claim::Ask(question) = verdict.claim() else { panic!("nobody has asked yet") };
        let Claim::Wait(early) = verdict.claim() else { panic!("one question is enough") };
        drop((question, verdict));
        assert_eq!(early.known().await, None);
    }
}
