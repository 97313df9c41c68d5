//! PURE. Text as a model streams it: pieces of about a token, cut at character borders.

use super::{Action, Beat, Lane, Player};

/// Milliseconds between two pieces at pace 1.0.
const PIECE_MS: u64 = 18;

/// Text that is being streamed.
#[derive(Debug)]
pub(super) struct Stream {
    lane: Lane,
    source: Source,
    open: bool,
}

#[derive(Debug)]
enum Source {
    Text { text: String, at: usize },
    Flood { left: u64, line: u64 },
}

impl Source {
    fn next(&mut self) -> Option<String> {
        match self {
            Self::Text { text, at } => {
                let rest = text.get(*at..).filter(|rest| !rest.is_empty())?;
                let piece = rest.get(..piece_len(rest)).unwrap_or(rest).to_owned();
                *at += piece.len();
                Some(piece)
            }
            Self::Flood { left: 0, .. } => None,
            Self::Flood { left, line } => {
                *line += 1;
                let mut text = format!(
                    "{line:>6}  the quick brown fox jumps over the lazy dog 敏捷的棕色狐狸\n"
                );
                let room = usize::try_from(*left).unwrap_or(usize::MAX);
                while text.len() > room {
                    text.pop();
                }
                if text.is_empty() {
                    "\n".clone_into(&mut text);
                }
                *left = left.saturating_sub(text.len() as u64);
                Some(text)
            }
        }
    }

    fn wait(&self) -> u64 {
        match self {
            Self::Text { .. } => PIECE_MS,
            Self::Flood { .. } => 1,
        }
    }
}

/// Returns the length of the next piece: a word with the white space before it, a run of signs, or
/// one wide character; never more than 16 bytes beyond the first character.
fn piece_len(text: &str) -> usize {
    let mut seen_word = false;
    for (at, c) in text.char_indices() {
        let wide = !c.is_ascii() && c.is_alphanumeric();
        if at > 0 && (at > 16 || wide || (seen_word && !c.is_alphanumeric())) {
            return at;
        }
        if wide {
            return at + c.len_utf8();
        }
        seen_word |= c.is_alphanumeric();
    }
    text.len()
}

impl Player {
    pub(super) fn say(&mut self, lane: Lane, text: &str) {
        let text = self.vars.fill(text);
        if text.is_empty() {
            return;
        }
        self.begin_request();
        self.stream = Some(Stream { lane, source: Source::Text { text, at: 0 }, open: false });
    }

    pub(super) fn flood(&mut self, bytes: u64) {
        let left = self.vars.n.unwrap_or(bytes);
        self.begin_request();
        self.stream =
            Some(Stream { lane: Lane::Text, source: Source::Flood { left, line: 0 }, open: false });
    }

    /// Returns the next piece of what is being streamed.
    pub(super) fn next_piece(&mut self) -> Option<Beat> {
        let stream = self.stream.as_mut()?;
        let lane = stream.lane;
        let (wait, action) = if stream.open {
            if let Some(piece) = stream.source.next() {
                (stream.source.wait(), Action::Piece(lane, piece))
            } else {
                self.stream = None;
                (0, Action::Close(lane))
            }
        } else {
            stream.open = true;
            (30, Action::Open(lane))
        };
        Some(Beat { wait, child: self.child(), action })
    }

    /// Ends the request in the middle of the text; the rest follows in the next one.
    pub(super) fn break_now(&mut self) {
        self.break_request = false;
        let Some(stream) = self.stream.as_mut() else { return };
        let lane = stream.lane;
        if std::mem::take(&mut stream.open) {
            self.beat(0, Action::Close(lane));
        }
        self.end_request();
        self.begin_request();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<String> {
        let mut source = Source::Text { text: text.to_owned(), at: 0 };
        std::iter::from_fn(|| source.next()).collect()
    }

    #[test]
    fn pieces_join_to_the_text_and_cut_no_character() {
        let text = "Hello, **world**! 你好，世界 👩‍👩‍👧 done\n\n| a | b |\n";
        let pieces = pieces(text);
        assert_eq!(pieces.concat(), text);
        assert!(pieces.len() > 10, "{pieces:?}");
        assert!(pieces.iter().all(|p| p.len() <= 24), "{pieces:?}");
    }

    #[test]
    fn a_flood_is_as_long_as_asked() {
        let mut source = Source::Flood { left: 10_000, line: 0 };
        let total: usize = std::iter::from_fn(|| source.next()).map(|p| p.len()).sum();
        assert!((10_000..10_010).contains(&total), "{total}");
    }
}
