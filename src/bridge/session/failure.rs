//! PURE. An engine's failure as an ACP error: the engine's own words, its code and data kept.
//! Called by the session machine and the registry.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error as AcpError, ErrorCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::bridge::engine::{EngineError, RpcError};
use crate::bridge::translate::error as turn_error;

/// Reads a reply; one that is no JSON value is a failure of the engine's.
pub(crate) fn parse(raw: &RawValue) -> Result<Value, EngineError> {
    serde_json::from_str(raw.get()).map_err(|e| broken("reply", &e.to_string()))
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
