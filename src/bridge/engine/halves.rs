//! PURE. Halves of characters: JavaScript cuts its texts between UTF-16 units, so a piece of streamed text can end with one
//! half of an emoji and the next piece begin with the other. Rust's texts cannot hold a half, and `serde_json` refuses the
//! whole line.
//!
//! [`mend`] makes every line readable: a half becomes U+FFFD, except at the cut side of a `delta` or `append`, where it is
//! kept as three noncharacters (which Unicode reserves for a program's own use). [`Joiner`] puts the two halves together
//! before anybody else sees the pieces. Called by `actor` for legacy events, by `v4::rows` for rows.

use std::borrow::Cow;

use super::event::{EngineEvent, SessionBody, StreamKind};

/// Ends a kept first half: two noncharacters of five bits each stand before it.
const FIRST: char = '\u{1FFFE}';
/// Begins a kept second half: two noncharacters of five bits each follow.
const SECOND: char = '\u{1FFFF}';
/// The first of the 32 noncharacters that carry five bits.
const DIGITS: u32 = 0xFDD0;
/// How many texts may wait for their other half.
const MAX_WAITING: usize = 64;

/// A line whose texts can all be read: borrowed unless it has a half without its partner.
pub(super) fn mend(line: &str) -> Cow<'_, str> {
    mend_by(line, kept)
}

/// The same for a line in which nothing is a piece of streamed text: every half becomes U+FFFD.
pub(crate) fn heal(line: &str) -> Cow<'_, str> {
    mend_by(line, |_, _, _| None)
}

fn mend_by(line: &str, kept: fn(&str, usize, u32) -> Option<[char; 3]>) -> Cow<'_, str> {
    let lone = lone_halves(line);
    if lone.is_empty() {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len() + 16);
    let mut done = 0;
    for (at, unit) in lone {
        out.push_str(line.get(done..at).unwrap_or_default());
        match kept(line, at, unit) {
            Some(mark) => out.extend(mark),
            None => out.push(char::REPLACEMENT_CHARACTER),
        }
        done = at + 6;
    }
    out.push_str(line.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// Where `\uD800`..`\uDFFF` stand without a partner, and which.
fn lone_halves(line: &str) -> Vec<(usize, u32)> {
    let bytes = line.as_bytes();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'\\', bytes.get(from..).unwrap_or_default()) {
        let at = from + at;
        from = at + 2;
        match unit(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(unit(bytes, at + 6), Some(0xDC00..=0xDFFF)) => {
                from = at + 12;
            }
            Some(half @ 0xD800..=0xDFFF) => {
                found.push((at, half));
                from = at + 6;
            }
            _ => {}
        }
    }
    found
}

/// The UTF-16 unit of the `\uXXXX` that stands at `at`.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
}

/// What stands for a half at the cut side of a piece of streamed text; `None` anywhere else.
fn kept(line: &str, at: usize, unit: u32) -> Option<[char; 3]> {
    let before = line.get(..at)?;
    let is_first = unit < 0xDC00;
    if is_first && !line.get(at + 6..)?.starts_with('"') {
        return None;
    }
    let opening = opening_quote(before)?;
    if !is_first && opening + 1 != at {
        return None;
    }
    let key = before.get(..opening)?.trim_end().strip_suffix(':')?.trim_end();
    if !["\"delta\"", "\"append\""].iter().any(|it| key.ends_with(it)) {
        return None;
    }
    let digit = |bits: u32| char::from_u32(DIGITS + (bits & 31));
    let (high, low) = (digit((unit & 0x3FF) >> 5)?, digit(unit)?);
    Some(if is_first { [high, low, FIRST] } else { [SECOND, high, low] })
}

/// The quote that opened the string which `before` ends in.
fn opening_quote(before: &str) -> Option<usize> {
    let bytes = before.as_bytes();
    memchr::memrchr_iter(b'"', bytes).find(|at| {
        let escapes = bytes.iter().take(*at).rev().take_while(|byte| **byte == b'\\').count();
        escapes % 2 == 0
    })
}

/// Takes a kept first half off the end of a piece.
fn take_first(piece: &mut String) -> Option<u32> {
    let mut rest = piece.strip_suffix(FIRST)?.chars();
    let low = rest.next_back().and_then(bits)?;
    let high = rest.next_back().and_then(bits)?;
    let length = rest.as_str().len();
    piece.truncate(length);
    Some(0xD800 + (high << 5) + low)
}

/// A piece's kept second half, and what follows it.
fn second(piece: &str) -> Option<(u32, &str)> {
    let mut rest = piece.strip_prefix(SECOND)?.chars();
    let high = rest.next().and_then(bits)?;
    let low = rest.next().and_then(bits)?;
    Some((0xDC00 + (high << 5) + low, rest.as_str()))
}

fn bits(digit: char) -> Option<u32> {
    u32::from(digit).checked_sub(DIGITS).filter(|bits| *bits < 32)
}

/// One text that comes in pieces: the half that its last piece ended with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Waiting(Option<u16>);

impl Waiting {
    /// Takes the next piece; returns what can be shown so far. A half whose partner does not come
    /// is U+FFFD.
    pub(super) fn join(&mut self, mut piece: String) -> String {
        if self.0.is_none() && !piece.starts_with(SECOND) && !piece.ends_with(FIRST) {
            return piece;
        }
        if piece.is_empty() {
            return piece;
        }
        let held = self.0.take();
        self.0 = take_first(&mut piece).and_then(|half| u16::try_from(half).ok());
        let (begin, rest) = match (held, second(&piece)) {
            (Some(held), Some((half, rest))) => {
                let code = 0x1_0000 + ((u32::from(held) - 0xD800) << 10) + (half - 0xDC00);
                (char::from_u32(code), rest)
            }
            (None, Some((_, rest))) => (Some(char::REPLACEMENT_CHARACTER), rest),
            (Some(_), None) => (Some(char::REPLACEMENT_CHARACTER), piece.as_str()),
            (None, None) => (None, piece.as_str()),
        };
        begin.into_iter().chain(rest.chars()).collect()
    }

    fn is_idle(self) -> bool {
        self.0.is_none()
    }
}

/// Which text a legacy piece belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    session: String,
    /// `None` for a part.
    kind: Option<StreamKind>,
    owner: Option<String>,
    field: Option<String>,
}

/// The legacy texts of an engine that wait for their other half; as good as always none.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    waiting: Vec<(Key, Waiting)>,
}

impl Joiner {
    /// Whether no text waits for the other half of a character.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Joins the halves in an event's piece of text.
    pub(super) fn join(&mut self, event: &mut EngineEvent) {
        let EngineEvent::Session(event) = event else { return };
        let (kind, owner, field, delta) = match &mut event.body {
            SessionBody::Streaming(it) => {
                let owner = match it.kind {
                    StreamKind::TextDelta | StreamKind::ReasoningDelta => &it.message_id,
                    StreamKind::ToolInputDelta => &it.tool_call_id,
                    _ => return,
                };
                (Some(it.kind), owner, None, &mut it.delta)
            }
            SessionBody::PartDelta(it) => (None, &it.part_id, it.field.as_ref(), &mut it.delta),
            _ => return,
        };
        if self.waiting.is_empty() && !delta.starts_with(SECOND) && !delta.ends_with(FIRST) {
            return;
        }
        let key = Key {
            session: event.session_id.clone(),
            kind,
            owner: owner.clone(),
            field: field.cloned(),
        };
        let known = self.waiting.iter().position(|(it, _)| *it == key);
        let mut state = known.map(|at| self.waiting.swap_remove(at).1).unwrap_or_default();
        *delta = state.join(std::mem::take(delta));
        if !state.is_idle() && self.waiting.len() < MAX_WAITING {
            self.waiting.push((key, state));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::bridge::engine::{codec, decode};

    fn delta(joiner: &mut Joiner, kind: &str, piece: &str) -> String {
        let line = format!(
            r#"{{"method":"session/event","params":{{"sessionId":"s","seq":1,"type":"model.streaming","payload":{{"kind":"{kind}","assistantMessageId":"m","delta":{piece}}}}}}}"#
        );
        let line = mend(&line);
        let codec::Frame::Notification { method, params } = codec::parse(&line) else {
            panic!("{line}")
        };
        let mut event = decode::notification(&method, params);
        joiner.join(&mut event);
        let EngineEvent::Session(event) = event else { panic!("{line}") };
        let SessionBody::Streaming(streaming) = event.body else { panic!("{line}") };
        streaming.delta
    }

    #[test]
    fn a_character_that_was_cut_in_two_is_whole_again() {
        let mut joiner = Joiner::default();
        assert_eq!(delta(&mut joiner, "text_delta", r#""a\ud83d""#), "a");
        assert_eq!(delta(&mut joiner, "reasoning_delta", r#""thought""#), "thought");
        assert_eq!(delta(&mut joiner, "text_delta", r#""""#), "");
        assert_eq!(delta(&mut joiner, "text_delta", r#""\uDE00b\ud83c""#), "\u{1F600}b");
        assert_eq!(delta(&mut joiner, "text_delta", r#""\udf89""#), "\u{1F389}");
        assert!(joiner.waiting.is_empty());
    }

    #[test]
    fn a_half_whose_partner_never_comes_is_a_replacement_character() {
        let mut joiner = Joiner::default();
        assert_eq!(delta(&mut joiner, "text_delta", r#""\ude00b""#), "\u{fffd}b");
        assert_eq!(delta(&mut joiner, "text_delta", r#""\ud83d""#), "");
        assert_eq!(delta(&mut joiner, "text_delta", r#""c""#), "\u{fffd}c");
        assert_eq!(
            delta(&mut joiner, "text_delta", r#""x\ud83d\ud83d\ude00\ude00y""#),
            "x\u{fffd}\u{1F600}\u{fffd}y"
        );
    }

    #[test]
    fn a_line_with_a_half_in_any_other_place_is_read_with_the_rest_whole() {
        for (text, read) in [
            (r"a\ud83d", "a\u{fffd}"),
            (r"\ude00b", "\u{fffd}b"),
            (r#"\ud83d\ude00 \\ud83d \" é"#, "\u{1F600} \\ud83d \" é"),
            (r#"\"\ude00"#, "\"\u{fffd}"),
        ] {
            let line = format!(r#"{{"id":"server-1","method":"m","params":{{"x":"{text}"}}}}"#);
            let value: Value = serde_json::from_str(&mend(&line)).unwrap();
            assert_eq!(value["params"]["x"], json!(read), "{text}");
        }
    }

    #[test]
    fn a_line_without_halves_is_not_copied() {
        for line in [r#"{"a":"\u00e9\ud83d\ude00\\ud83d\n"}"#, "{}", r#"{"a":"\"#, r#"{"a":"\ud8"#]
        {
            assert!(matches!(mend(line), Cow::Borrowed(_)), "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn mending_keeps_whatever_was_whole(text in "\\PC{0,60}") {
            let json = serde_json::to_string(&text).unwrap();
            proptest::prop_assert_eq!(&*mend(&json), json.as_str());
        }

        #[test]
        fn mended_text_always_parses(text in "[a-z\\\\\"\u{e9}]{0,8}", units in proptest::collection::vec(0xD7F0_u32..0xE010, 0..6)) {
            let mut json = serde_json::to_string(&text).unwrap();
            json.pop();
            let escapes: String = units.into_iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat();
            let json = format!("{json}{escapes}\"");
            proptest::prop_assert!(serde_json::from_str::<String>(&mend(&json)).is_ok(), "{}", json);
        }

        #[test]
        fn a_text_cut_anywhere_is_put_together_again(text in "[a-z\u{1F300}-\u{1F5FF}\u{e9}]{0,12}", cuts in proptest::collection::vec(0_usize..30, 0..5)) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(units.len())).chain([0, units.len()]).collect();
            cuts.sort_unstable();
            let (mut joiner, mut row, mut shown, mut of_row) = (Joiner::default(), Waiting::default(), String::new(), String::new());
            for cut in cuts.windows(2) {
                let piece = units[cut[0]..cut[1]].iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat();
                shown.push_str(&delta(&mut joiner, "text_delta", &format!("\"{piece}\"")));
                let line = format!(r#"{{"append" : "{piece}"}}"#);
                let op: Value = serde_json::from_str(&mend(&line)).unwrap();
                of_row.push_str(&row.join(op["append"].as_str().unwrap().to_owned()));
            }
            proptest::prop_assert_eq!(&shown, &text);
            proptest::prop_assert_eq!(&of_row, &text);
        }
    }
}
