//! Search over everything in the conversation, folded or not.
//!
//! Owns [`Search`]: the matches in the sources of all blocks, found when the text that is looked
//! for or the conversation changes, never per frame.

use crate::tui::model::transcript::block::BlockId;
use crate::tui::model::transcript::{Transcript, source};

/// Matches beyond this are counted no more.
const MAX_FOUND: usize = 10_000;

/// The offset of a match that is on disk only.
const ON_DISK: usize = usize::MAX;

/// A match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) block: BlockId,
    /// Matches in the same block before it.
    pub(super) nth: usize,
    /// Its byte in the block's source.
    pub(super) offset: usize,
}

/// A search that is going on.
#[derive(Debug, Default)]
pub(super) struct Search {
    needle: String,
    found: Vec<Found>,
    at: usize,
    revision: u64,
    /// Blocks with matches that only their text on disk has.
    on_disk: Vec<BlockId>,
}

impl Search {
    /// Looks for `needle`, whatever its case. Stands on the last match at or before `near`,
    /// since the reader looks at the end more often than at the start.
    pub(super) fn new(transcript: &Transcript, needle: &str, near: Option<BlockId>) -> Self {
        let mut search = Self { needle: needle.to_lowercase(), ..Self::default() };
        search.look(transcript);
        let before = |found: &Found| near.is_none_or(|near| found.block <= near);
        search.at = search.found.iter().rposition(before).unwrap_or(0);
        search
    }

    fn look(&mut self, transcript: &Transcript) {
        self.revision = transcript.revision();
        self.found.clear();
        if self.needle.is_empty() {
            return;
        }
        for block in transcript.blocks() {
            let text = source::of_block(transcript, block.id).unwrap_or_default().to_lowercase();
            let matches = text.match_indices(&self.needle).enumerate();
            self.found.extend(matches.map(|(nth, (offset, _))| Found {
                block: block.id,
                nth,
                offset,
            }));
            if self.found.len() >= MAX_FOUND {
                self.found.truncate(MAX_FOUND);
                break;
            }
        }
        self.merge();
    }

    /// Stops at these blocks as well.
    pub(super) fn add_on_disk(&mut self, blocks: &[BlockId]) {
        let here = self.current();
        self.on_disk = blocks.to_vec();
        self.merge();
        self.at = here.and_then(|here| self.found.iter().position(|f| *f == here)).unwrap_or(0);
    }

    /// A block's match on disk comes after those that memory has of it.
    fn merge(&mut self) {
        self.found.retain(|found| found.offset != ON_DISK);
        let stops = self.on_disk.iter();
        self.found.extend(stops.map(|block| Found { block: *block, nth: 0, offset: ON_DISK }));
        self.found.sort_by_key(|found| (found.block, found.offset));
        self.found.dedup();
    }

    /// Goes to the next or previous match, around the end.
    pub(super) fn step(&mut self, transcript: &Transcript, forward: bool) {
        let here = self.current();
        if self.revision != transcript.revision() {
            self.look(transcript);
            if let Some(here) = here {
                self.at = self.found.iter().position(|found| *found == here).unwrap_or(0);
            }
        }
        let count = self.found.len();
        if count > 0 {
            let by = if forward { 1 } else { count - 1 };
            self.at = (self.at + by) % count;
        }
    }

    /// The match it stands on.
    pub(super) fn current(&self) -> Option<Found> {
        self.found.get(self.at).copied()
    }

    /// Which match it stands on, from 1, and how many there are.
    pub(super) fn count(&self) -> (usize, usize) {
        let total = self.found.len();
        ((self.at + 1).min(total), total)
    }

    /// What is looked for, in lower case.
    pub(super) fn needle(&self) -> &str {
        &self.needle
    }
}
