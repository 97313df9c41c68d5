//! PURE. A failed turn as an ACP error (bridge behaviour 4.8): the engine's own words from
//! wherever they stand in its nested causes, what the user can do about it, and whether trying
//! again can help. Called by the session machine.

use agent_client_protocol::v1::schema as acp;
use serde_json::{Map, Value, json};

use crate::bridge::engine::event::TurnFailed;

/// Causes are followed this deep.
const DEPTH: usize = 6;
/// Of `detail` the first line is shown, cut.
const DETAIL: usize = 160;

/// Codes of failures that pass.
const CODES: [&str; 9] = [
    "model_request_failed",
    "rate_limit",
    "timeout",
    "econnreset",
    "etimedout",
    "enotfound",
    "eai_again",
    "econnrefused",
    "fetch_failed",
];
/// Words of failures that pass.
const WORDS: [&str; 14] = [
    "network",
    "connection",
    "timeout",
    "timed out",
    "econnreset",
    "enotfound",
    "etimedout",
    "fetch failed",
    "socket hang up",
    "overloaded",
    "temporarily unavailable",
    "service unavailable",
    "try again",
    "please retry",
];

/// What a failure means.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// For the user: the engine's words, and what to do.
    pub message: String,
    /// Trying again can help.
    pub is_transient: bool,
    /// The engine was told to stop; not a failure.
    pub is_cancelled: bool,
    /// The engine itself is broken (storage closed, process lost): start it anew.
    pub is_engine_lost: bool,
    /// Milliseconds that the provider asks to wait.
    pub retry_after_ms: Option<u64>,
    /// `data` of the ACP error.
    pub data: Value,
}

impl Failure {
    /// The error a prompt is answered with.
    pub fn to_acp(&self) -> acp::Error {
        // A client offers its sign-in only on this code.
        let mut error = if needs_sign_in(&self.message.to_lowercase()) {
            acp::Error::auth_required()
        } else {
            acp::Error::internal_error()
        };
        error.message.clone_from(&self.message);
        error.data = Some(self.data.clone());
        error
    }
}

/// Reads `turn.failed`.
pub fn turn_failed(turn: &TurnFailed) -> Failure {
    let mut failure = of_value(&turn.error);
    failure.is_cancelled |= turn.result_type.as_deref() == Some("cancelled");
    failure
}

/// Reads an error value: a string, or an object with nested causes.
pub fn of_value(error: &Value) -> Failure {
    let chain = chain(error);
    let text = words(&chain);
    let lower = text.to_lowercase();
    let facts = Facts::read(&chain);
    let hint = hint(&facts, &lower);
    let message = match hint {
        Some(hint) => format!("{text}\n{hint}"),
        None => text.clone(),
    };
    Failure {
        is_transient: facts.is_transient(&lower, hint.is_some()),
        is_cancelled: facts.has_code(&["cancelled", "aborted", "turn_cancelled"]),
        is_engine_lost: facts.has_code(&["err_invalid_state"])
            || ["database is not open", "storage is closed", "storage closed"]
                .iter()
                .any(|w| lower.contains(w)),
        retry_after_ms: facts.retry_after_ms,
        data: facts.data(&text),
        message,
    }
}

/// Whether an engine's words (in lower case) mean that nobody is signed in. A key that a provider
/// refuses is another matter: signing in to ZCode does not mend it.
pub fn needs_sign_in(lower: &str) -> bool {
    [
        "not signed in",
        "sign in first",
        "sign in or renew",
        "login required",
        "login expired",
        "not logged in",
        "please log in",
        "account provider runtime not configured",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

/// The error and its causes, outermost first.
fn chain(error: &Value) -> Vec<&Value> {
    let mut found = vec![error];
    let mut at = error;
    while let Some(cause) = at.get("cause").filter(|c| !c.is_null()) {
        found.push(cause);
        if found.len() > DEPTH {
            break;
        }
        at = cause;
    }
    found
}

/// The messages of the chain, each said once. The outermost is often only "Turn execution
/// failed", so the inner ones follow it.
fn words(chain: &[&Value]) -> String {
    let mut text = String::new();
    for link in chain {
        let of = |key: &str| {
            link.get(key).and_then(Value::as_str).map(str::trim).filter(|t| !t.is_empty())
        };
        let named = || of("type").or_else(|| of("code"));
        let message =
            link.as_str().or_else(|| of("message")).or_else(|| of("underlyingErrorMessage"));
        let Some(message) = message.or_else(|| if text.is_empty() { named() } else { None }) else {
            continue;
        };
        if !text.contains(message) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(message);
        }
        let detail =
            of("underlyingErrorMessage").or_else(|| of("detail")).and_then(|d| d.lines().next());
        if let Some(detail) = detail.map(|d| d.chars().take(DETAIL).collect::<String>())
            && !text.contains(&detail)
        {
            let rest_says_it =
                chain.iter().any(|l| l.get("message").and_then(Value::as_str) == Some(&detail));
            if !rest_says_it {
                text.push_str(" (");
                text.push_str(&detail);
                text.push(')');
            }
        }
    }
    if text.is_empty() {
        "The turn failed and the engine gave no reason".clone_into(&mut text);
    }
    text
}

/// What the chain says beside its words; the innermost value wins.
#[derive(Debug, Default)]
struct Facts {
    codes: Vec<String>,
    kind: Option<String>,
    reason: Option<String>,
    status: Option<u64>,
    provider_code: Option<String>,
    retryable: Option<bool>,
    retry_after_ms: Option<u64>,
}

impl Facts {
    fn read(chain: &[&Value]) -> Self {
        let mut facts = Self::default();
        for link in chain {
            let context = link.get("context").or_else(|| link.get("attribution"));
            let at =
                |key: &str| link.get(key).or_else(|| context?.get(key)).filter(|v| !v.is_null());
            let text = |key: &str| match at(key)? {
                Value::String(text) => Some(text.clone()),
                Value::Number(n) => Some(n.to_string()),
                _ => None,
            };
            facts.codes.extend(text("code"));
            facts.kind = text("type").or(facts.kind);
            facts.reason = text("reason").or(facts.reason);
            facts.provider_code = text("providerCode").or(facts.provider_code);
            let status =
                ["statusCode", "responseStatus", "status"].iter().find_map(|k| at(k)?.as_u64());
            facts.status = status.or(facts.status);
            facts.retryable = at("retryable").and_then(Value::as_bool).or(facts.retryable);
            let after = at("retryAfterMs").and_then(Value::as_u64).or_else(|| {
                let headers = context?.pointer("/responseBodySummary/responseHeaders")?;
                let seconds = headers.get("retry-after")?;
                let seconds = seconds.as_u64().or_else(|| seconds.as_str()?.trim().parse().ok())?;
                seconds.checked_mul(1000)
            });
            facts.retry_after_ms = after.or(facts.retry_after_ms);
        }
        facts
    }

    fn has_code(&self, wanted: &[&str]) -> bool {
        self.codes.iter().any(|code| wanted.contains(&code.to_lowercase().as_str()))
    }

    /// What the provider says about trying again decides; then its status; then codes and words.
    /// A failure that the user has to repair is never tried again.
    fn is_transient(&self, lower: &str, needs_the_user: bool) -> bool {
        if let Some(retryable) = self.retryable {
            return retryable;
        }
        match self.status {
            Some(408 | 425 | 429 | 500..=599) => return true,
            Some(400..=499) => return false,
            _ => {}
        }
        if needs_the_user {
            return false;
        }
        self.has_code(&CODES) || WORDS.iter().any(|w| lower.contains(w))
    }

    fn data(&self, text: &str) -> Value {
        let mut data = Map::new();
        data.insert("type".into(), json!("zcode_turn_failed"));
        let code = self.codes.iter().rev().find(|c| *c != "UNKNOWN_ERROR").or(self.codes.first());
        for (key, value) in [
            ("code", code),
            ("errorType", self.kind.as_ref()),
            ("reason", self.reason.as_ref()),
            ("providerCode", self.provider_code.as_ref()),
        ] {
            if let Some(value) = value {
                data.insert(key.into(), json!(value));
            }
        }
        if let Some(status) = self.status {
            data.insert("statusCode".into(), json!(status));
        }
        if let Some(retryable) = self.retryable {
            data.insert("retryable".into(), json!(retryable));
        }
        if let Some(ms) = self.retry_after_ms {
            data.insert("retryAfterMs".into(), json!(ms));
        }
        // One editor shows `details` of an internal error beside its message.
        data.insert("details".into(), json!(text));
        Value::Object(data)
    }
}

/// What the user can do, when the words tell.
fn hint(facts: &Facts, lower: &str) -> Option<&'static str> {
    let says = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    if says(&[
        "insufficient balance",
        "quota",
        "balance",
        "payment required",
        "credit",
        "arrears",
        "余额",
        "额度",
        "欠费",
    ]) || facts.status == Some(402)
    {
        return Some(
            "The account has no quota left. Check the plan or top it up in ZCode, or choose another model with /model.",
        );
    }
    if says(&[
        "unauthorized",
        "invalid api key",
        "invalid_api_key",
        "api key is",
        "authentication",
        "not signed in",
        "login expired",
        "token expired",
    ]) || facts.status == Some(401)
    {
        return Some(
            "Sign in again in the ZCode app, or check this provider's API key in its settings.",
        );
    }
    if says(&["not entitled", "no permission", "forbidden"]) || facts.status == Some(403) {
        return Some("The account may not use this model. Choose another one with /model.");
    }
    if says(&[
        "select a model before",
        "no longer available",
        "已不可用",
        "model unavailable",
        "model not found",
        "provider_not_configured",
        "provider registry",
    ]) {
        return Some("Choose a model that is available with /model.");
    }
    if says(&["reasoning level is required"]) {
        return Some(
            "Choose a thought level with /thought, or choose the model again with /model.",
        );
    }
    if says(&[
        "context length",
        "context window",
        "prompt is too long",
        "maximum context",
        "too many tokens",
    ]) {
        return Some(
            "The conversation is too long for this model. Shorten it with /compact, or choose a model with a larger window.",
        );
    }
    None
}

#[cfg(test)]
mod tests;
