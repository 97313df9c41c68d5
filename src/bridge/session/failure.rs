//! PURE. An engine's failure as an ACP error: the engine's own words, its code and data kept.
//! Called by the session machine and the registry.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error as AcpError, ErrorCode};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::bridge::engine::{EngineError, RpcError};
use crate::bridge::translate::error as turn_error;

/// Reads a reply without the conversation in it: a snapshot brings the whole one with it, and nobody
/// reads it there. A reply that is no JSON value is a failure of the engine's.
pub(crate) fn parse(raw: &RawValue) -> Result<Value, EngineError> {
    match serde_json::from_str(raw.get()) {
        Ok(Lean(fields)) => Ok(Value::Object(fields)),
        Err(_) => parse_whole(raw),
    }
}

/// Reads a reply, messages included.
pub(crate) fn parse_whole(raw: &RawValue) -> Result<Value, EngineError> {
    serde_json::from_str(raw.get()).map_err(|e| broken("reply", &e.to_string()))
}

/// An object without its `messages`, its `snapshot` without those.
struct Lean(Map<String, Value>);

impl<'de> Deserialize<'de> for Lean {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Lean;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Lean, A::Error> {
                let mut fields = Map::new();
                while let Some(key) = from.next_key::<String>()? {
                    let value = match key.as_str() {
                        "messages" => {
                            from.next_value::<IgnoredAny>()?;
                            continue;
                        }
                        "snapshot" => {
                            let inner = from.next_value::<Option<Lean>>()?;
                            inner.map_or(Value::Null, |it| Value::Object(it.0))
                        }
                        _ => from.next_value()?,
                    };
                    fields.insert(key, value);
                }
                Ok(Lean(fields))
            }
        }
        from.deserialize_map(Fields)
    }
}

/// The engine's code for account models without an account (engine protocol section 1).
const ACCOUNTS_NOT_CONFIGURED: i64 = -32018;

/// A reply that makes no sense.
pub(crate) fn broken(method: &'static str, what: &str) -> EngineError {
    EngineError::Unreadable { method, reason: what.to_owned() }
}

/// True when the engine does not know the session at all (as opposed to: has not loaded it).
pub(crate) fn is_gone(error: &EngineError) -> bool {
    error.is_session_unknown()
}

/// The error a client sees.
pub(crate) fn to_acp(error: &EngineError) -> AcpError {
    match error {
        EngineError::Rpc(RpcError { code, message, data }) => {
            let mut detail = json!({"engineCode": code});
            if let (Some(data), Value::Object(map)) = (data, &mut detail) {
                map.insert("engineData".to_owned(), data.clone());
            }
            let kind = if *code == ACCOUNTS_NOT_CONFIGURED
                || turn_error::needs_sign_in(&message.to_lowercase())
            {
                ErrorCode::AUTH_REQUIRED
            } else {
                ErrorCode::INTERNAL_ERROR
            };
            AcpError::new(kind, message.clone()).data(detail)
        }
        other => {
            let text = other.to_string();
            let mut data = json!({"details": text, "kind": kind(other)});
            if let (EngineError::NotFound { looked_for, hints }, Value::Object(map)) =
                (other, &mut data)
            {
                map.insert("lookedFor".to_owned(), json!(looked_for));
                map.insert("hints".to_owned(), json!(hints));
            }
            AcpError::new(ErrorCode::INTERNAL_ERROR, text).data(data)
        }
    }
}

/// For clients that tell failures apart (`run` by its exit code).
fn kind(error: &EngineError) -> &'static str {
    match error {
        EngineError::NotFound { .. } => "engine_not_found",
        EngineError::Spawn { .. } => "engine_not_started",
        EngineError::Exited { .. } => "engine_exited",
        _ => "engine",
    }
}

/// The same error in the SDK's type.
pub(crate) fn from_schema(error: acp::Error) -> AcpError {
    AcpError::new(i32::from(error.code), error.message).data(error.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_without_the_conversation_in_it_whatever_its_form() {
        for (reply, read) in [
            (
                json!({"a": [1], "messages": [{"big": 1}], "snapshot": {"messages": [2], "session": {"messages": 3}}}),
                json!({"a": [1], "snapshot": {"session": {"messages": 3}}}),
            ),
            (json!({"snapshot": null}), json!({"snapshot": null})),
            (json!({"snapshot": [1], "messages": []}), json!({"snapshot": [1], "messages": []})),
            (json!([1]), json!([1])),
            (json!("text"), json!("text")),
            (Value::Null, Value::Null),
        ] {
            let raw = RawValue::from_string(reply.to_string()).unwrap();
            assert_eq!(parse(&raw).unwrap(), read);
            assert_eq!(parse_whole(&raw).unwrap(), reply);
        }
    }

    #[test]
    fn an_engine_that_lacks_a_sign_in_is_told_as_auth_required() {
        let code = |code: i64, message: &str| {
            let error = RpcError { code, message: message.to_owned(), data: None };
            to_acp(&EngineError::Rpc(error)).code
        };
        assert_eq!(code(-32000, "You are not signed in"), ErrorCode::AUTH_REQUIRED);
        assert_eq!(code(-32018, "Account provider runtime"), ErrorCode::AUTH_REQUIRED);
        assert_eq!(code(-32603, "Invalid API key"), ErrorCode::INTERNAL_ERROR);
        let turn = crate::bridge::translate::error::of_value(
            &json!({"message": "no coding plan of zai was found: sign in or renew it in the ZCode app"}),
        );
        assert_eq!(from_schema(turn.to_acp()).code, ErrorCode::AUTH_REQUIRED);
        let key = crate::bridge::translate::error::of_value(&json!({"message": "invalid api key"}));
        assert_eq!(from_schema(key.to_acp()).code, ErrorCode::INTERNAL_ERROR);
    }
}
