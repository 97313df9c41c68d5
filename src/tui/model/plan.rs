//! A plan to review: the text, approve, reject, and a note that goes back with a rejection. Data only.
//!
//! It is an elicitation form of one shape: a choice of two, one of which approves, and perhaps a
//! text beside it. Every other form stays a form. Nothing approves but Enter on "Approve", which
//! never has the focus at first; a note is never sent along with an approval.

use super::composer::Composer;
use super::form::{self, Field, FieldKind};
use serde_json::{Map, Value};

/// What has the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanFocus {
    /// The plan: keys scroll it.
    Text,
    /// The answer that approves.
    Approve,
    /// The answer that rejects.
    Reject,
    /// What should change, as it is being written.
    Note,
}

/// A plan that waits for its answer.
#[derive(Debug, Clone)]
pub struct PlanReview {
    /// What the agent says of it, in a line; may be empty.
    pub heading: String,
    /// The plan, as markdown.
    pub text: String,
    /// What has the focus.
    pub focus: PlanFocus,
    /// What should change; `None` when the agent takes no note.
    pub note: Option<Composer>,
    /// Sending back was tried without a word.
    pub note_missing: bool,
    /// What the agent calls its answers: approve, reject.
    pub labels: [String; 2],
    choice: String,
    values: [String; 2],
    note_key: String,
}

impl PlanReview {
    /// Reads `elicitation/create` params; `None` when it is another form.
    pub fn read(params: &Value) -> Option<Self> {
        let mut choice = None;
        let mut note = None;
        for field in form::fields(params) {
            match &field.kind {
                FieldKind::One { options, .. } if options.len() == 2 && choice.is_none() => {
                    choice = Some(field);
                }
                FieldKind::Text { max: None, min: None, .. }
                    if note.is_none() && !field.required =>
                {
                    note = Some(field.key);
                }
                _ => return None,
            }
        }
        let Field { key, description, kind: FieldKind::One { options, .. }, .. } = choice? else {
            return None;
        };
        let approves: Vec<bool> = options
            .iter()
            .map(|o| ["approve", "accept"].iter().any(|w| o.value.to_lowercase().starts_with(w)))
            .collect();
        let (([true, false], [yes, no]) | ([false, true], [no, yes])) =
            (approves.as_slice(), options.as_slice())
        else {
            return None;
        };
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        let (heading, text) = match (message.lines().count(), description.is_empty()) {
            (_, true) => (String::new(), message.to_owned()),
            (0 | 1, false) => (message.trim_end_matches('.').to_owned(), description),
            (_, false) => (String::new(), format!("{message}\n\n{description}")),
        };
        Some(Self {
            heading,
            text,
            focus: PlanFocus::Text,
            note: note.is_some().then(Composer::default),
            note_missing: false,
            labels: [yes.title.clone(), no.title.clone()],
            choice: key,
            values: [yes.value.clone(), no.value.clone()],
            note_key: note.unwrap_or_default(),
        })
    }

    /// Moves the focus to the next (or previous) place, around the ends.
    pub fn move_focus(&mut self, forward: bool) {
        let mut order = vec![PlanFocus::Text, PlanFocus::Approve, PlanFocus::Reject];
        if self.note.is_some() {
            order.push(PlanFocus::Note);
        }
        let at = order.iter().position(|f| *f == self.focus).unwrap_or(0);
        let by = if forward { 1 } else { order.len() - 1 };
        self.focus_on(order.get((at + by) % order.len()).copied().unwrap_or(PlanFocus::Text));
    }

    /// Puts the focus somewhere; on the note only where one is taken.
    pub fn focus_on(&mut self, focus: PlanFocus) {
        self.note_missing = false;
        if focus != PlanFocus::Note || self.note.is_some() {
            self.focus = focus;
        }
    }

    /// The note that is being written, when it has the focus.
    pub fn note_mut(&mut self) -> Option<&mut Composer> {
        self.note.as_mut().filter(|_| self.focus == PlanFocus::Note)
    }

    /// Whether something was written that an approval or a plain rejection would leave out.
    pub fn has_note(&self) -> bool {
        self.note.as_ref().is_some_and(|n| !n.text().trim().is_empty())
    }

    /// The answer that Enter gives now, or `None`: the plan itself answers nothing, and sending
    /// back needs a word.
    pub fn answer(&mut self) -> Option<Map<String, Value>> {
        let [approve, reject] = &self.values;
        let mut answers = Map::new();
        match self.focus {
            PlanFocus::Text => return None,
            PlanFocus::Approve => {
                answers.insert(self.choice.clone(), approve.clone().into());
            }
            PlanFocus::Reject => {
                answers.insert(self.choice.clone(), reject.clone().into());
            }
            PlanFocus::Note => {
                let words = self.note.as_ref().map(Composer::expanded).unwrap_or_default();
                if words.trim().is_empty() {
                    self.note_missing = true;
                    return None;
                }
                answers.insert(self.choice.clone(), reject.clone().into());
                answers.insert(self.note_key.clone(), words.into());
            }
        }
        Some(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params(properties: &Value) -> Value {
        json!({"mode": "form", "message": "Review this plan.",
            "requestedSchema": {"type": "object", "properties": properties, "required": ["approval"]}})
    }

    fn plan() -> PlanReview {
        let approval = json!({"type": "string", "description": "# Plan\n\n1. do", "oneOf": [
            {"const": "approve", "title": "Approve"}, {"const": "reject", "title": "Reject and keep planning"}]});
        PlanReview::read(&params(&json!({"approval": approval, "feedback": {"type": "string"}})))
            .unwrap()
    }

    #[test]
    fn other_forms_stay_forms() {
        for properties in [
            json!({"a": {"type": "string", "enum": ["x", "y"]}}),
            json!({"a": {"type": "string", "enum": ["approve", "reject", "later"]}}),
            json!({"a": {"type": "string", "enum": ["approve", "reject"]}, "n": {"type": "integer"}}),
            json!({"a": {"type": "string", "enum": ["approve", "accept"]}}),
            json!({"t": {"type": "string"}}),
            json!({}),
        ] {
            assert!(PlanReview::read(&params(&properties)).is_none(), "{properties}");
        }
    }

    #[test]
    fn nothing_approves_at_first_and_a_note_never_goes_with_an_approval() {
        let mut p = plan();
        assert_eq!((p.heading.as_str(), p.text.as_str()), ("Review this plan", "# Plan\n\n1. do"));
        assert_eq!(p.answer(), None);
        p.focus_on(PlanFocus::Note);
        assert_eq!(p.answer(), None);
        assert!(p.note_missing);
        p.note_mut().unwrap().insert("smaller steps");
        assert!(p.has_note());
        let back = json!({"approval": "reject", "feedback": "smaller steps"});
        assert_eq!(p.answer().map(Value::Object), Some(back));
        p.focus_on(PlanFocus::Approve);
        assert_eq!(p.answer().map(Value::Object), Some(json!({"approval": "approve"})));
        p.focus_on(PlanFocus::Reject);
        assert_eq!(p.answer().map(Value::Object), Some(json!({"approval": "reject"})));
    }

    #[test]
    fn the_focus_goes_around() {
        let mut p = plan();
        let seen: Vec<_> = (0..4)
            .map(|_| {
                p.move_focus(true);
                p.focus
            })
            .collect();
        let around = [PlanFocus::Approve, PlanFocus::Reject, PlanFocus::Note, PlanFocus::Text];
        assert_eq!(seen, around);
        p.move_focus(false);
        assert_eq!(p.focus, PlanFocus::Note);
    }
}
