//! PURE. Lines from the engine to frames. Never fails: what is not a message is a value that says
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

/// Borrowed inside the `Option`, which serde does only for a type of its own.
#[derive(Deserialize)]
#[serde(transparent)]
struct Method<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Method<'a>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Reads one line.
pub(super) fn parse(line: &str) -> Frame<'_> {
    // A list would be read as an envelope with its fields in order.
    if !line.starts_with('{') {
        return malformed(line, "not a JSON object");
    }
    let envelope: Envelope<'_> = match serde_json::from_str(line) {
        Ok(envelope) => envelope,
        Err(error) => return malformed(line, &error.to_string()),
    };
    let id = match envelope.id.map(|raw| serde_json::from_str::<Value>(raw.get())) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(error)) => return malformed(line, &error.to_string()),
    };
    match (id, envelope.method.map(|method| method.0)) {
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
            "[1]",
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
        fn no_text_makes_it_fail(line in ".{0,200}") {
            let _frame = parse(&line);
        }
    }
}
