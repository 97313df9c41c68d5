//! The prompts of before, newest last, and where one is while going through them.
//! Data only; the application reads and appends the file below the state directory.

/// Prompts kept in memory and offered by the search.
const LIMIT: usize = 1000;

/// The prompts sent from this directory.
#[derive(Debug, Clone, Default)]
pub struct History {
    entries: Vec<String>,
    /// Index of the entry shown, and the draft that was there before.
    browsing: Option<(usize, String)>,
}

impl History {
    /// Starts from what was stored, oldest first.
    pub fn from_entries(mut entries: Vec<String>) -> Self {
        let surplus = entries.len().saturating_sub(LIMIT);
        entries.drain(..surplus);
        Self { entries, browsing: None }
    }

    /// All prompts, oldest first.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Adds a prompt; returns false for a repetition of the newest one, which is not stored twice.
    pub fn add(&mut self, prompt: &str) -> bool {
        self.browsing = None;
        if prompt.trim().is_empty() || self.entries.last().is_some_and(|last| last == prompt) {
            return false;
        }
        if self.entries.len() >= LIMIT {
            self.entries.remove(0);
        }
        self.entries.push(prompt.to_owned());
        true
    }

    /// Whether an entry is shown in place of the draft.
    pub fn is_browsing(&self) -> bool {
        self.browsing.is_some()
    }

    /// Forgets that an entry was shown: what is in the draft is the draft now.
    pub fn stop_browsing(&mut self) {
        self.browsing = None;
    }

    /// Returns the prompt before the one shown; `draft` is kept for the way back.
    pub fn older(&mut self, draft: &str) -> Option<String> {
        let at = self.browsing.as_ref().map_or(self.entries.len(), |(i, _)| *i);
        let index = at.checked_sub(1)?;
        let entry = self.entries.get(index)?.clone();
        match &mut self.browsing {
            Some((i, _)) => *i = index,
            None => self.browsing = Some((index, draft.to_owned())),
        }
        Some(entry)
    }

    /// Returns the prompt after the one shown, at last the draft that was there before.
    pub fn newer(&mut self) -> Option<String> {
        let (index, draft) = self.browsing.take()?;
        let Some(entry) = self.entries.get(index + 1).cloned() else { return Some(draft) };
        self.browsing = Some((index + 1, draft));
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_and_forth_ends_at_the_draft() {
        let mut h = History::from_entries(vec!["one".into(), "two".into()]);
        assert_eq!(h.older("draft").as_deref(), Some("two"));
        assert_eq!(h.older("two").as_deref(), Some("one"));
        assert_eq!(h.older("one"), None);
        assert_eq!(h.newer().as_deref(), Some("two"));
        assert_eq!(h.newer().as_deref(), Some("draft"));
        assert_eq!(h.newer(), None);
    }

    #[test]
    fn a_repeated_prompt_is_kept_once() {
        let mut h = History::default();
        assert!(h.add("a"));
        assert!(!h.add("a"));
        assert!(!h.add("  "));
        assert_eq!(h.entries(), ["a"]);
    }
}
