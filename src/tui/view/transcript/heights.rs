//! Heights of all blocks, or of all stretches of one, known or guessed, with sums in logarithmic
//! time.
//!
//! Owns [`Heights`], a binary indexed tree: the scrollbar needs the sum above the screen and the
//! sum of all, at a cost that does not grow with the conversation or with one long answer.

/// Heights in order, with prefix sums.
#[derive(Debug, Default)]
pub(super) struct Heights {
    values: Vec<u32>,
    /// Node `n` (from 1) sums the `n & -n` values that end at it.
    tree: Vec<u64>,
}

impl Heights {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.tree.clear();
    }

    pub(super) fn push(&mut self, height: u32) {
        let at = self.values.len() + 1;
        let mut sum = u64::from(height);
        let low = at & at.wrapping_neg();
        let mut step = 1;
        while step < low {
            sum += self.tree.get(at - step - 1).copied().unwrap_or_default();
            step *= 2;
        }
        self.values.push(height);
        self.tree.push(sum);
    }

    /// Forgets all but the first `len`. A node sums what ends at it, so none that stays changes.
    pub(super) fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.tree.truncate(len);
    }

    pub(super) fn set(&mut self, at: usize, height: u32) {
        let Some(value) = self.values.get_mut(at) else {
            return;
        };
        let (old, new) = (u64::from(*value), u64::from(height));
        *value = height;
        if old == new {
            return;
        }
        let mut node = at + 1;
        while let Some(sum) = self.tree.get_mut(node - 1) {
            *sum = *sum + new - old;
            node += node & node.wrapping_neg();
        }
    }

    /// Sum of the heights before `at`.
    pub(super) fn before(&self, at: usize) -> u64 {
        let mut node = at.min(self.values.len());
        let mut sum = 0;
        while node > 0 {
            sum += self.tree.get(node - 1).copied().unwrap_or_default();
            node -= node & node.wrapping_neg();
        }
        sum
    }

    pub(super) fn total(&self) -> u64 {
        self.before(self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_agree_with_adding_up() {
        let mut heights = Heights::default();
        let mut plain: Vec<u32> = Vec::new();
        for n in 0..200u32 {
            heights.push(n % 7);
            plain.push(n % 7);
            let at = (n as usize * 13) % plain.len();
            heights.set(at, n);
            plain[at] = n;
            for cut in [0, at, plain.len()] {
                let sum: u64 = plain[..cut].iter().map(|h| u64::from(*h)).sum();
                assert_eq!(heights.before(cut), sum);
            }
        }
        for len in (0..200).rev().step_by(7) {
            heights.truncate(len);
            plain.truncate(len);
            heights.push(3);
            plain.push(3);
            assert_eq!(heights.total(), plain.iter().map(|h| u64::from(*h)).sum::<u64>());
        }
    }
}
