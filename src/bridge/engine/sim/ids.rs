//! PURE (but for randomness when no seed is given). Mints ids in the engine's spelling.

use std::fmt::Write as _;

/// Where ids come from.
#[derive(Debug, Clone)]
pub(super) struct Ids {
    seed: Option<u64>,
    counter: u64,
}

impl Ids {
    /// With a seed, ids count up and are the same in every run.
    pub(super) fn new(seed: Option<u64>) -> Self {
        Self { seed, counter: 0 }
    }

    /// A UUID in text.
    pub(super) fn uuid(&mut self) -> String {
        self.counter += 1;
        match self.seed {
            None => uuid::Uuid::new_v4().to_string(),
            Some(seed) => {
                let mut bytes = [0_u8; 16];
                let (high, low) = bytes.split_at_mut(8);
                high.copy_from_slice(&(seed << 16).to_be_bytes());
                low.copy_from_slice(&self.counter.to_be_bytes());
                uuid::Uuid::from_bytes(bytes).to_string()
            }
        }
    }

    /// `<prefix>_<uuid>`.
    pub(super) fn named(&mut self, prefix: &str) -> String {
        format!("{prefix}_{}", self.uuid())
    }

    /// `call_<hex>`.
    pub(super) fn call(&mut self) -> String {
        let uuid = self.uuid();
        let mut out = String::from("call_");
        for piece in uuid.split('-') {
            // Writing to a string does not fail.
            write!(out, "{piece}").unwrap_or_default();
        }
        out
    }

    /// How many were minted.
    pub(super) fn counter(&self) -> u64 {
        self.counter
    }

    /// Continues after ids that an earlier run gave to a stored session.
    pub(super) fn continue_after(&mut self, counter: u64) {
        self.counter = self.counter.max(counter);
    }
}
