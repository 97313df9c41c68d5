//! PURE. A byte stream cut into lines, whatever the cuts of the reads are. Owns the bytes between
//! reads; the lines are borrowed from it. Called by the engine's actor and by `bridge::stdio`.

use std::borrow::Cow;

/// What one read may bring: as much as a pipe holds.
const READ: usize = 64 * 1024;
/// An idle buffer larger than this is given back. Room for a read behind the beginning of a line;
/// and small enough to come from the heap, which shrinks again only as long as nothing larger than
/// its threshold (128 KiB) is freed over and over.
const KEEP: usize = 120 * 1024;

/// Splits a byte stream into lines. Owns the bytes between reads.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    buffer: Vec<u8>,
    /// Start of the first line not yet taken.
    start: usize,
    /// Up to here there is no line break (from `start`).
    scanned: usize,
    /// The current line was too long: its rest is skipped.
    skipping: bool,
}

/// One line, or news of one that was too long.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Without its line break.
    Bytes(&'a [u8]),
    /// Longer than the limit; skipped.
    TooLong,
}

impl LineBuffer {
    /// The place where a read appends.
    pub(crate) fn space(&mut self) -> &mut Vec<u8> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.scanned = 0;
            self.start = 0;
            if self.buffer.capacity() > KEEP {
                self.buffer.shrink_to(KEEP);
            }
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        self.buffer.reserve(READ);
        &mut self.buffer
    }

    /// Takes the next whole line; blank ones are passed over.
    pub(crate) fn next_line(&mut self, limit: usize) -> Option<Line<'_>> {
        let (begin, end) = loop {
            let rest = self.buffer.get(self.scanned..).unwrap_or_default();
            let Some(at) = memchr::memchr(b'\n', rest) else {
                self.scanned = self.buffer.len();
                if self.scanned - self.start > limit {
                    self.skipping = true;
                    self.start = self.scanned;
                }
                return None;
            };
            let (begin, end) = (self.start, self.scanned + at);
            self.start = end + 1;
            self.scanned = end + 1;
            if std::mem::take(&mut self.skipping) || end - begin > limit {
                return Some(Line::TooLong);
            }
            if !trim(self.buffer.get(begin..end).unwrap_or_default()).is_empty() {
                break (begin, end);
            }
        };
        self.buffer.get(begin..end).map(|line| Line::Bytes(trim(line)))
    }

    /// Takes what stands after the last line break, at the end of the stream.
    pub(crate) fn last_line(&mut self) -> Option<Vec<u8>> {
        let line = trim(self.buffer.get(self.start..).unwrap_or_default()).to_vec();
        self.start = self.buffer.len();
        self.scanned = self.start;
        (!line.is_empty() && !self.skipping).then_some(line)
    }
}

/// A line as text. Looked at as a whole first: the tolerant way costs ten times as much.
pub(crate) fn text(line: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

/// Cuts white space, a carriage return and a byte-order mark.
fn trim(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]], limit: usize) -> Vec<Option<Vec<u8>>> {
        let mut buffer = LineBuffer::default();
        let mut out = Vec::new();
        for piece in pieces {
            buffer.space().extend_from_slice(piece);
            while let Some(line) = buffer.next_line(limit) {
                out.push(match line {
                    Line::Bytes(bytes) => Some(bytes.to_vec()),
                    Line::TooLong => None,
                });
            }
        }
        out.extend(buffer.last_line().map(Some));
        out
    }

    #[test]
    fn lines_survive_every_cut_blank_lines_crlf_and_a_byte_order_mark() {
        let text = "\u{feff}{\"a\":\"é\"}\r\n\n  \n{\"b\":1}\nlast".as_bytes();
        let expected: Vec<_> =
            ["{\"a\":\"é\"}", "{\"b\":1}", "last"].map(|l| Some(l.as_bytes().to_vec())).into();
        for cut in 0..=text.len() {
            assert_eq!(lines(&[&text[..cut], &text[cut..]], 100), expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(lines(&bytes, 100), expected);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
        let pieces: [&[u8]; 4] = [b"short\n0123456789", b"0123456789", b"012\nnext\n", b"end"];
        let expected =
            [Some(b"short".to_vec()), None, Some(b"next".to_vec()), Some(b"end".to_vec())];
        assert_eq!(lines(&pieces, 12), expected);
        assert_eq!(lines(&[b"0123456789ABCDEF\nok\n"], 12), [None, Some(b"ok".to_vec())]);
    }

    const LIMIT: usize = 256 << 20;

    #[test]
    fn a_line_of_64_mebibytes_survives() {
        let mut buffer = LineBuffer::default();
        let mut piece = vec![b'x'; 1 << 20];
        for _ in 0..64 {
            buffer.space().extend_from_slice(&piece);
            assert_eq!(buffer.next_line(LIMIT), None);
        }
        piece.clear();
        buffer.space().push(b'\n');
        assert!(
            matches!(buffer.next_line(LIMIT), Some(Line::Bytes(line)) if line.len() == 64 << 20)
        );
        assert!(buffer.space().capacity() <= 2 * KEEP, "the large buffer is given back");
    }

    proptest::proptest! {
        #[test]
        fn no_cut_changes_the_lines(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300), cut in 0_usize..300) {
            let cut = cut.min(bytes.len());
            let whole = lines(&[&bytes], 1000);
            proptest::prop_assert_eq!(lines(&[&bytes[..cut], &bytes[cut..]], 1000), whole);
        }
    }
}
