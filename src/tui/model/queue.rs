//! Prompts that wait for the running turn to end. A prompt leaves the queue only when it is handed
//! to the agent or taken back into the draft, so none can get lost. Data only.

use std::collections::VecDeque;

/// Prompts waiting, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    waiting: VecDeque<String>,
    held: bool,
}

impl Queue {
    /// Adds a prompt at the end.
    pub fn push(&mut self, prompt: String) {
        self.waiting.push_back(prompt);
    }

    /// Puts a prompt back to the front: the agent did not take it.
    pub fn push_front(&mut self, prompt: String) {
        self.waiting.push_front(prompt);
    }

    /// Takes the prompt that is next, held or not.
    pub fn pop_next(&mut self) -> Option<String> {
        let next = self.waiting.pop_front();
        if self.waiting.is_empty() {
            self.held = false;
        }
        next
    }

    /// Takes the newest prompt back for editing.
    pub fn take_last(&mut self) -> Option<String> {
        let last = self.waiting.pop_back();
        if self.waiting.is_empty() {
            self.held = false;
        }
        last
    }

    /// Keeps the queue from being sent by itself (after an interrupt) until the user says so.
    pub fn hold(&mut self) {
        self.held = !self.waiting.is_empty();
    }

    /// Lets the queue go on by itself.
    pub fn release(&mut self) {
        self.held = false;
    }

    /// Whether the queue waits for the user rather than for the turn.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The prompts, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().map(String::as_str)
    }
}
