//! PURE. Bytes that wait for the client to read them, in pieces. In one growing buffer they would
//! be copied over and over, and the allocator keeps what was once needed for the largest.

use std::collections::VecDeque;

/// A piece takes no further line from here on: with the line that ends it, it fits a pipe.
const FULL: usize = 32 * 1024;
/// An empty piece larger than this is given back.
const KEEP: usize = 64 * 1024;

/// A queue of bytes.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    pieces: VecDeque<Vec<u8>>,
    /// How much of the first piece is gone.
    sent: usize,
    /// An empty piece for the next lines.
    spare: Vec<u8>,
}

impl Unwritten {
    /// Where the next line is appended. A line stays in one piece, however long it is.
    pub(super) fn back(&mut self) -> &mut Vec<u8> {
        if self.pieces.back().is_none_or(|piece| piece.len() >= FULL) {
            self.pieces.push_back(std::mem::take(&mut self.spare));
        }
        // Just put there if there was none.
        self.pieces.back_mut().unwrap_or(&mut self.spare)
    }

    /// The bytes to be written next; `None` when there are none.
    pub(super) fn front(&self) -> Option<&[u8]> {
        self.pieces.front()?.get(self.sent..).filter(|rest| !rest.is_empty())
    }

    /// So many of them were written.
    pub(super) fn taken(&mut self, count: usize) {
        self.sent += count;
        if let Some(piece) = self.pieces.front_mut()
            && self.sent >= piece.len()
        {
            self.sent = 0;
            let mut piece = std::mem::take(piece);
            self.pieces.pop_front();
            if piece.capacity() <= KEEP {
                piece.clear();
                self.spare = piece;
            }
        }
    }

    /// Drops everything; returns how many bytes that was.
    pub(super) fn clear(&mut self) -> usize {
        let dropped: usize = self.pieces.drain(..).map(|piece| piece.len()).sum();
        dropped - std::mem::take(&mut self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_whatever_the_writes_take() {
        for step in [1, 7, 100_000] {
            let mut unwritten = Unwritten::default();
            let (mut put, mut got) = (Vec::new(), Vec::new());
            for line in 0..3_000_usize {
                let line = format!("{line} {}\n", "x".repeat(line % 50));
                unwritten.back().extend_from_slice(line.as_bytes());
                put.extend_from_slice(line.as_bytes());
                if line.len() % 3 == 0 {
                    let part = unwritten.front().unwrap();
                    let count = part.len().min(step);
                    got.extend_from_slice(&part[..count]);
                    unwritten.taken(count);
                }
            }
            while let Some(part) = unwritten.front() {
                let count = part.len().min(step);
                got.extend_from_slice(&part[..count]);
                unwritten.taken(count);
            }
            assert!(put == got, "in steps of {step}");
            assert_eq!(unwritten.clear(), 0);
        }
    }

    #[test]
    fn what_was_needed_for_a_flood_is_given_back() {
        let mut unwritten = Unwritten::default();
        for _ in 0..10_000 {
            unwritten.back().extend_from_slice(&[b'x'; 500]);
        }
        assert!(unwritten.pieces.iter().all(|piece| piece.capacity() <= KEEP));
        unwritten.taken(10);
        assert_eq!(unwritten.clear(), 5_000_000 - 10);
        unwritten.back().extend_from_slice(&vec![b'x'; 1 << 20]);
        unwritten.taken(1 << 20);
        assert!(unwritten.front().is_none());
        assert!(unwritten.spare.capacity() <= KEEP && unwritten.pieces.is_empty());
    }
}
