//! PURE. A set that remembers only the newest: what lets a session of any length keep bounded
//! memory. Used by cards and background tasks.

use std::collections::{HashSet, VecDeque};

/// The newest `limit` strings.
#[derive(Debug)]
pub(super) struct Recent {
    set: HashSet<String>,
    order: VecDeque<String>,
    limit: usize,
}

impl Recent {
    pub(super) fn new(limit: usize) -> Self {
        Self { set: HashSet::new(), order: VecDeque::new(), limit }
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.set.contains(key)
    }

    /// Forgets all but the newest `count`.
    pub(super) fn keep_newest(&mut self, count: usize) {
        let surplus = self.order.len().saturating_sub(count);
        for old in self.order.drain(..surplus) {
            self.set.remove(&old);
        }
        if surplus > 0 {
            self.set.shrink_to_fit();
            self.order.shrink_to_fit();
        }
    }

    pub(super) fn insert(&mut self, key: &str) {
        if !self.set.insert(key.to_owned()) {
            return;
        }
        self.order.push_back(key.to_owned());
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.set.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_are_remembered() {
        let mut recent = Recent::new(2);
        for key in ["a", "b", "b", "c"] {
            recent.insert(key);
        }
        assert_eq!(["a", "b", "c"].map(|k| recent.contains(k)), [false, true, true]);
        assert_eq!(recent.order.len(), 2);
        recent.keep_newest(1);
        assert_eq!(["a", "b", "c"].map(|k| recent.contains(k)), [false, false, true]);
        recent.keep_newest(5);
        assert!(recent.contains("c"));
    }
}
