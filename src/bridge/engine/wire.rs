//! PURE. Outgoing frames as text: exactly the keys that the engine's strict schema allows, no
//! `jsonrpc` key, one line each (engine protocol section 1). Called by `actor` and `handle`.

use serde::Serialize;
use serde_json::Value;

use super::error::RpcError;
use super::event::WireId;

#[derive(Serialize)]
struct Request<'a, P> {
    id: u64,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Notification<'a, P> {
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Success<'a> {
    id: &'a WireId,
    result: &'a Value,
}

#[derive(Serialize)]
struct Failure<'a> {
    id: &'a WireId,
    error: &'a RpcError,
}

/// A request of ours.
pub(super) fn request(id: u64, method: &str, params: impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(&Request { id, method, params })
}

/// A notification of ours.
pub(super) fn notification(method: &str, params: impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(&Notification { method, params })
}

/// Our reply to a request of the engine's.
pub(super) fn reply(id: &WireId, outcome: &Result<Value, RpcError>) -> String {
    let text = match outcome {
        Ok(result) => serde_json::to_string(&Success { id, result }),
        Err(error) => serde_json::to_string(&Failure { id, error }),
    };
    // A `Value` always has a text; the fallback keeps the function total.
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frames_have_exactly_the_allowed_keys() {
        assert_eq!(
            request(7, "session/read", json!({"sessionId": "s"})).unwrap(),
            r#"{"id":7,"method":"session/read","params":{"sessionId":"s"}}"#
        );
        assert_eq!(notification("x", json!({})).unwrap(), r#"{"method":"x","params":{}}"#);
        assert_eq!(reply(&json!("server-1"), &Ok(json!({}))), r#"{"id":"server-1","result":{}}"#);
        assert_eq!(
            reply(&json!(3), &Err(RpcError::new(-32601, "no"))),
            r#"{"id":3,"error":{"code":-32601,"message":"no"}}"#
        );
    }

    #[test]
    fn text_with_line_breaks_stays_one_line() {
        let line = request(1, "m", json!({"content": "a\nb\r\u{2028}"})).unwrap();
        assert!(!line.contains('\n') && !line.contains('\r'));
    }
}
