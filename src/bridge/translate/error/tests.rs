//! Failures: table tests.

use serde_json::{Value, json};

use super::*;

fn failed(error: Value) -> Failure {
    turn_failed(&TurnFailed { error, ..TurnFailed::default() })
}

#[test]
fn the_engines_words_are_kept_from_wherever_they_stand() {
    for (error, want) in [
        (json!("plain words"), "plain words"),
        (json!({"code": 1308, "message": "prompt is running"}), "prompt is running"),
        (
            json!({"type": "TurnError", "message": "Turn execution failed", "detail": "slow down", "cause": {"message": "slow down", "cause": {"message": "HTTP 429: slow down"}}}),
            "Turn execution failed: slow down: HTTP 429: slow down",
        ),
        (
            json!({"message": "Turn execution failed", "cause": {"message": "socket closed", "detail": "first line\nsecond"}}),
            "Turn execution failed: socket closed (first line)",
        ),
        (json!({"type": "ModelProtocolError"}), "ModelProtocolError"),
        (json!({}), "The turn failed and the engine gave no reason"),
        (json!(null), "The turn failed and the engine gave no reason"),
    ] {
        assert_eq!(failed(error.clone()).message, want, "{error}");
    }
}

#[test]
fn what_the_provider_says_about_trying_again_decides() {
    for (error, want) in [
        (json!({"message": "x", "retryable": true}), true),
        (json!({"message": "connection reset", "retryable": false}), false),
        (json!({"message": "x", "cause": {"context": {"retryable": true}}}), true),
        (json!({"message": "x", "cause": {"context": {"statusCode": 503}}}), true),
        (json!({"message": "timeout", "cause": {"context": {"statusCode": 400}}}), false),
        (json!({"message": "x", "cause": {"context": {"responseStatus": 429}}}), true),
        (json!({"message": "x", "cause": {"code": "ECONNRESET"}}), true),
        (json!({"message": "read ETIMEDOUT"}), true),
        (json!({"message": "the service is temporarily unavailable"}), true),
        (json!({"message": "quota exceeded, please retry tomorrow"}), false),
        (json!({"message": "Unknown tool"}), false),
        (json!({"message": "Reasoning level is required"}), false),
    ] {
        assert_eq!(failed(error.clone()).is_transient, want, "{error}");
    }
}

#[test]
fn account_and_quota_errors_say_what_to_do() {
    for (error, hint) in [
        (json!({"message": "quota exhausted for plan X"}), "no quota left"),
        (json!({"message": "x", "cause": {"context": {"statusCode": 401}}}), "Sign in again"),
        (
            json!({"message": "x", "cause": {"context": {"statusCode": 403}}}),
            "may not use this model",
        ),
        (json!({"message": "Select a model before continuing"}), "/model"),
        (json!({"message": "Reasoning level is required for a/b"}), "/thought"),
        (json!({"message": "maximum context length exceeded"}), "/compact"),
        (json!({"message": "历史任务使用的模型已不可用"}), "/model"),
    ] {
        let message = failed(error.clone()).message;
        let (words, said) = message.split_once('\n').unwrap();
        assert!(said.contains(hint), "{error}: {said}");
        assert!(message.starts_with(error["message"].as_str().unwrap()), "{words}");
    }
}

#[test]
fn the_data_holds_the_innermost_facts_and_nothing_secret() {
    let failure = failed(
        json!({"type": "TurnError", "code": "UNKNOWN_ERROR", "message": "Turn execution failed", "cause": {
        "code": "rate_limit", "type": "ModelProtocolError", "message": "slow down", "context": {"statusCode": 429, "reason": "rate",
            "providerCode": 1302, "retryable": true, "requestHeaders": {"authorization": "Bearer sk-1"},
            "responseBodySummary": {"responseHeaders": {"retry-after": "3", "set-cookie": "s"}}}}}),
    );
    assert_eq!(failure.retry_after_ms, Some(3000));
    assert_eq!(
        failure.data,
        json!({"type": "zcode_turn_failed", "code": "rate_limit", "errorType": "ModelProtocolError", "reason": "rate",
        "providerCode": "1302", "statusCode": 429, "retryable": true, "retryAfterMs": 3000, "details": "Turn execution failed: slow down"})
    );
    let error = failure.to_acp();
    assert_eq!(
        (i32::from(error.code), error.message.as_str()),
        (-32603, "Turn execution failed: slow down")
    );
}

#[test]
fn a_cancelled_turn_and_a_broken_engine_are_told_apart() {
    let turn = TurnFailed {
        error: json!({"message": "x"}),
        result_type: Some("cancelled".into()),
        input_id: None,
    };
    assert!(turn_failed(&turn).is_cancelled);
    assert!(failed(json!({"message": "x", "cause": {"code": "ERR_INVALID_STATE", "message": "database is not open"}})).is_engine_lost);
    let plain = failed(json!({"message": "x"}));
    assert!(!plain.is_cancelled && !plain.is_engine_lost);
}

#[test]
fn a_chain_without_an_end_is_cut() {
    let mut error = json!({"message": "last"});
    for n in 0..50 {
        error = json!({"message": format!("m{n}"), "cause": error});
    }
    assert_eq!(failed(error).message.matches(": ").count(), DEPTH);
}
