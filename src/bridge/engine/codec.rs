//! PURE. Bytes from the engine to frames. Never fails: what is not a message is a value that says
//! why (engine protocol section 1). What a notification means is `decode`'s matter.
//!
//! The envelope is read once, borrowed; params and results stay raw text, so that a result of
//! 60 MB costs one pass and no tree.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::RpcError;
use super::event::WireId;

/// Longest accepted line. The largest seen is a `session/read` reply of 15 MB; a history of 60 MB
/// must survive.
pub(super) const MAX_LINE: usize = 256 * 1024 * 1024;
/// How much of a refused line is quoted.
const QUOTE: usize = 120;
/// An idle buffer larger than this is given back.
const KEEP: usize = 256 * 1024;

/// Splits a byte stream into lines. Owns the bytes between reads.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
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
pub(super) enum Line<'a> {
    /// Without its line break.
    Bytes(&'a [u8]),
    /// Longer than the limit; skipped.
    TooLong,
}

impl LineBuffer {
    /// The place where a read appends.
    pub(super) fn space(&mut self) -> &mut Vec<u8> {
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
        self.buffer.reserve(64 * 1024);
        &mut self.buffer
    }

    /// Takes the next whole line; blank ones are passed over.
    pub(super) fn next_line(&mut self, limit: usize) -> Option<Line<'_>> {
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
    pub(super) fn last_line(&mut self) -> Option<Vec<u8>> {
        let line = trim(self.buffer.get(self.start..).unwrap_or_default()).to_vec();
        self.start = self.buffer.len();
        self.scanned = self.start;
        (!line.is_empty() && !self.skipping).then_some(line)
    }
}

/// Cuts white space, a carriage return and a byte-order mark.
fn trim(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii()
}

/// One message from the engine.
#[derive(Debug)]
pub(super) enum Frame<'a> {
    /// The engine asks.
    Request {
        /// To be echoed.
        id: WireId,
        /// What it asks.
        method: Cow<'a, str>,
        /// Raw params.
        params: Option<&'a RawValue>,
    },
    /// The engine answers.
    Response {
        /// One of ours, or `invalid-message` and the like.
        id: WireId,
        /// The raw result (`null` when absent), or the error.
        outcome: Result<&'a RawValue, RpcError>,
    },
    /// The engine tells.
    Notification {
        /// What.
        method: Cow<'a, str>,
        /// Raw params.
        params: Option<&'a RawValue>,
    },
    /// Not a message.
    Malformed {
        /// Why; quotes the beginning of the line.
        reason: String,
    },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Reads one line.
pub(super) fn parse(line: &str) -> Frame<'_> {
    let envelope: Envelope<'_> = match serde_json::from_str(line) {
        Ok(envelope) => envelope,
        Err(error) => return malformed(line, &error.to_string()),
    };
    let id = match envelope.id.map(|raw| serde_json::from_str::<Value>(raw.get())) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(error)) => return malformed(line, &error.to_string()),
    };
    match (id, envelope.method) {
        (Some(id), Some(method)) => Frame::Request { id, method, params: envelope.params },
        (None, Some(method)) => Frame::Notification { method, params: envelope.params },
        (Some(id), None) => {
            let outcome = match envelope.error {
                Some(error) => Err(rpc_error(error)),
                None => Ok(envelope.result.unwrap_or(RawValue::NULL)),
            };
            Frame::Response { id, outcome }
        }
        (None, None) => malformed(line, "neither id nor method"),
    }
}

/// Reads an error member in every form engines use: a code as number or text, `detail` for `data`.
fn rpc_error(raw: &RawValue) -> RpcError {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let Value::Object(mut fields) = value else {
        let message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        return RpcError::new(-32603, message);
    };
    let code =
        fields.get("code").and_then(|code| code.as_i64().or_else(|| code.as_str()?.parse().ok()));
    let message =
        fields.get("message").and_then(Value::as_str).unwrap_or("unknown engine error").to_owned();
    let data =
        fields.remove("data").or_else(|| fields.remove("detail")).filter(|data| !data.is_null());
    RpcError { code: code.unwrap_or(-32603), message, data }
}

fn malformed<'a>(line: &str, reason: &str) -> Frame<'a> {
    let quote: String = line.chars().take(QUOTE).collect();
    Frame::Malformed { reason: format!("{reason}: {quote}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn a_line_of_64_mebibytes_survives() {
        let mut buffer = LineBuffer::default();
        let mut piece = vec![b'x'; 1 << 20];
        for _ in 0..64 {
            buffer.space().extend_from_slice(&piece);
            assert_eq!(buffer.next_line(MAX_LINE), None);
        }
        piece.clear();
        buffer.space().push(b'\n');
        assert!(
            matches!(buffer.next_line(MAX_LINE), Some(Line::Bytes(line)) if line.len() == 64 << 20)
        );
        assert!(buffer.space().capacity() <= 2 * KEEP, "the large buffer is given back");
    }

    #[test]
    fn frames_are_told_apart_by_their_keys() {
        let Frame::Request { id, method, params } =
            parse(r#"{"id":"server-1","method":"m","params":{"a":1}}"#)
        else {
            panic!("request")
        };
        assert_eq!(
            (id, &*method, params.map(RawValue::get)),
            (json!("server-1"), "m", Some(r#"{"a":1}"#))
        );
        assert!(matches!(parse(r#"{"method":"m"}"#), Frame::Notification { params: None, .. }));
        assert!(matches!(parse(r#"{"id":null,"method":"m"}"#), Frame::Notification { .. }));
        let Frame::Response { id, outcome } = parse(r#"{"id":5,"result":{"x":[1]}}"#) else {
            panic!("response")
        };
        assert_eq!((id, outcome.unwrap().get()), (json!(5), r#"{"x":[1]}"#));
        let Frame::Response { outcome, .. } = parse(r#"{"id":5}"#) else { panic!("response") };
        assert_eq!(outcome.unwrap().get(), "null");
    }

    #[test]
    fn errors_are_read_in_every_form() {
        for (raw, code, message, data) in [
            (
                r#"{"code":-32010,"message":"busy","data":{"r":1}}"#,
                -32010,
                "busy",
                Some(json!({"r":1})),
            ),
            (r#"{"code":"1308","message":"busy"}"#, 1308, "busy", None),
            (
                r#"{"code":"E_NAME","message":"busy","detail":"d"}"#,
                -32603,
                "busy",
                Some(json!("d")),
            ),
            (r#""just text""#, -32603, "just text", None),
            (r"{}", -32603, "unknown engine error", None),
        ] {
            let line = format!(r#"{{"id":1,"error":{raw}}}"#);
            let Frame::Response { outcome, .. } = parse(&line) else { panic!("{raw}") };
            assert_eq!(
                outcome.unwrap_err(),
                RpcError { code, message: message.into(), data },
                "{raw}"
            );
        }
    }

    #[test]
    fn garbage_is_a_value() {
        for line in [
            "",
            "hello",
            "[1,2]",
            "42",
            "null",
            "{}",
            "{\"id\":}",
            "{\"method\":5}",
            "\u{0}\u{1}",
            "{\"result\":1}",
        ] {
            assert!(matches!(parse(line), Frame::Malformed { .. }), "{line:?}");
        }
        let long = "é".repeat(10_000);
        let Frame::Malformed { reason } = parse(&long) else { panic!("malformed") };
        assert!(reason.len() < 1_000);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_fail(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300), cut in 0_usize..300) {
            let cut = cut.min(bytes.len());
            for line in lines(&[&bytes[..cut], &bytes[cut..]], 64).into_iter().flatten() {
                let _frame = parse(&String::from_utf8_lossy(&line));
            }
        }
    }
}
