//! Prompts that wait: here, for the running turn to end, and in the agent's own queue, where an agent
//! has one that it shows. A prompt leaves ours only when it is handed to the agent or taken back into
//! the draft, so none can get lost; what is in the agent's is the agent's, and is only changed by
//! asking it. Data only.

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

    /// Takes one prompt out, by its place from the front.
    pub fn take(&mut self, at: usize) -> Option<String> {
        let taken = self.waiting.remove(at);
        if self.waiting.is_empty() {
            self.held = false;
        }
        taken
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

/// The queue inside of the agent, as it last said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentQueue {
    /// What waits, the next one first.
    pub items: Vec<AgentItem>,
    /// It goes on by itself when a turn ends.
    pub auto_drain: bool,
    /// Why it does not.
    pub pause: Option<String>,
}

/// A message in the agent's queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentItem {
    /// What the agent calls it.
    pub id: String,
    /// What it says.
    pub text: String,
    /// What became of it, when it was meant for the running turn.
    pub note: String,
}

/// The open list of what is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueList {
    /// The selected row: ours first, then the agent's.
    pub selected: usize,
}

/// What is at a row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Here, at this place from the front.
    Here(usize),
    /// In the agent's queue.
    Agent(AgentItem),
}
