//! PURE. Questions of the engine's that are open or were answered lately.
//!
//! The engine announces an unanswered question again about every second under a new protocol id
//! and the same `requestId` (engine protocol section 5). Here it becomes one question: forwarded
//! once, answered on every id, and answered again from memory when it comes back late. Called by
//! `actor`.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::error::RpcError;
use super::event::WireId;

/// How long an answer is remembered for late announcements.
const REMEMBER: Duration = Duration::from_mins(2);
/// Ids remembered for one question (an hour of announcements is 3,600; old ones lapse unharmed).
const MAX_IDS: usize = 4096;

pub(super) type Answer = Result<Value, RpcError>;

/// What to do with an announcement.
#[derive(Debug, PartialEq)]
pub(super) enum Announced {
    /// New: forward it.
    New,
    /// Being asked already: nothing to do.
    Again,
    /// Answered already: give this answer.
    Answered(Answer),
}

#[derive(Debug)]
struct Question {
    session_id: String,
    ids: Vec<WireId>,
    answered: Option<(Answer, Instant)>,
}

/// The questions by `requestId`.
#[derive(Debug, Default)]
pub(super) struct Interactions(HashMap<String, Question>);

impl Interactions {
    /// The engine announces a question.
    pub(super) fn announced(
        &mut self,
        request_id: &str,
        session_id: &str,
        id: &WireId,
        now: Instant,
    ) -> Announced {
        self.0.retain(|_, q| q.answered.as_ref().is_none_or(|(_, at)| now - *at < REMEMBER));
        let Some(question) = self.0.get_mut(request_id) else {
            let question = Question {
                session_id: session_id.to_owned(),
                ids: vec![id.clone()],
                answered: None,
            };
            self.0.insert(request_id.to_owned(), question);
            return Announced::New;
        };
        if let Some((answer, _)) = &question.answered {
            return Announced::Answered(answer.clone());
        }
        if question.ids.len() >= MAX_IDS {
            question.ids.remove(0);
        }
        question.ids.push(id.clone());
        Announced::Again
    }

    /// We answer on `id`: returns every id that the answer has to go to, the newest first.
    pub(super) fn answered(&mut self, id: &WireId, answer: &Answer, now: Instant) -> Vec<WireId> {
        let Some(question) = self.0.values_mut().find(|question| question.ids.contains(id)) else {
            return vec![id.clone()];
        };
        if question.answered.is_some() {
            return Vec::new();
        }
        question.answered = Some((answer.clone(), now));
        question.ids.iter().rev().cloned().collect()
    }

    /// Another client answered: there will be no more announcements.
    pub(super) fn resolved(&mut self, request_id: &str) {
        if self.0.get(request_id).is_some_and(|question| question.answered.is_none()) {
            self.0.remove(request_id);
        }
    }

    /// The session has a new owner, or none: its open questions count as new when they come again.
    pub(super) fn forget_session(&mut self, session_id: &str) {
        self.0
            .retain(|_, question| question.answered.is_some() || question.session_id != session_id);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_question_is_forwarded_once_and_answered_on_every_id() {
        let now = Instant::now();
        let mut open = Interactions::default();
        assert_eq!(open.announced("r", "s", &json!("server-1"), now), Announced::New);
        assert_eq!(open.announced("r", "s", &json!("server-2"), now), Announced::Again);
        assert_eq!(open.announced("other", "s", &json!("server-3"), now), Announced::New);
        let answer = Ok(json!({"decision": "deny"}));
        assert_eq!(
            open.answered(&json!("server-1"), &answer, now),
            [json!("server-2"), json!("server-1")]
        );
        assert_eq!(open.answered(&json!("server-1"), &answer, now), [Value::Null; 0], "only once");
        let later = now + Duration::from_secs(30);
        assert_eq!(
            open.announced("r", "s", &json!("server-4"), later),
            Announced::Answered(answer)
        );
        let much_later = now + Duration::from_mins(10);
        assert_eq!(open.announced("r", "s", &json!("server-5"), much_later), Announced::New);
    }

    #[test]
    fn an_unknown_id_is_answered_as_it_is() {
        let mut open = Interactions::default();
        assert_eq!(open.answered(&json!(9), &Ok(json!({})), Instant::now()), [json!(9)]);
    }

    #[test]
    fn a_new_owner_is_asked_again_and_an_answer_is_kept() {
        let now = Instant::now();
        let mut open = Interactions::default();
        open.announced("r", "s", &json!(1), now);
        open.announced("done", "s", &json!(2), now);
        open.answered(&json!(2), &Ok(json!({})), now);
        open.forget_session("s");
        assert_eq!(open.announced("r", "s", &json!(3), now), Announced::New);
        assert_eq!(open.announced("done", "s", &json!(4), now), Announced::Answered(Ok(json!({}))));
    }

    #[test]
    fn what_another_client_answered_is_forgotten() {
        let now = Instant::now();
        let mut open = Interactions::default();
        open.announced("r", "s", &json!(1), now);
        open.resolved("r");
        assert!(open.0.is_empty());
    }
}
