//! Tables for each net, and properties over generated JSON.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn check(input: &str, expected: &str) {
    assert_eq!(text(input), expected);
}

#[test]
fn json_fields_lose_their_value_and_stay_json() {
    check(r#"{"apiKey":"abc","n":1}"#, r#"{"apiKey":"[redacted]","n":1}"#);
    check(r#"{"api_key" : "a\"b\\","n":1}"#, r#"{"api_key" : "[redacted]","n":1}"#);
    check(
        r#"{"result":{"headersApplied":true,"requestAuth":{"apiKey":"x","headers":{"A":"}"}}}}"#,
        r#"{"result":{"headersApplied":true,"requestAuth":"[redacted]"}}"#,
    );
    check(
        r#"{"mcpServers":[{"name":"m","headers":[{"name":"Authorization","value":"v"}],"env":[]}]}"#,
        r#"{"mcpServers":[{"name":"m","headers":"[redacted]","env":"[redacted]"}]}"#,
    );
    check(r#"{"accessToken":12345,"x":null}"#, r#"{"accessToken":[redacted],"x":null}"#);
}

#[test]
fn escaped_json_inside_a_string_is_seen_through() {
    check(
        r#"{"text":"{\"apiKey\":\"abc\",\"n\":1}"}"#,
        r#"{"text":"{\"apiKey\":\"[redacted]\",\"n\":1}"}"#,
    );
    check(
        r#"{"text":"{\"headers\":{\"X\":\"abc\"},\"n\":1}"}"#,
        r#"{"text":"{\"headers\":\"[redacted]\",\"n\":1}"}"#,
    );
}

#[test]
fn headers_variables_and_debug_output_lose_their_value() {
    check("Authorization: Bearer abc.def\nHost: x", "Authorization: [redacted]\nHost: x");
    check("x-api-key: abc, next", "x-api-key: [redacted], next");
    check("ANTHROPIC_API_KEY=abc FOO=1", "ANTHROPIC_API_KEY=[redacted] FOO=1");
    check("ZCODE_ACP_REMOTE_TOKEN='a b' X=1", "ZCODE_ACP_REMOTE_TOKEN='[redacted]' X=1");
    check("Auth { api_key: Some(\"abc\"), n: 1 }", "Auth { api_key: Some(\"[redacted]\"), n: 1 }");
    check("https://h/p?access_token=abc&x=1", "https://h/p?access_token=[redacted]&x=1");
    check(
        "https://h/?key=abc&x=1 and ?a=1&sig=abc",
        "https://h/?key=[redacted]&x=1 and ?a=1&sig=[redacted]",
    );
    check(
        r#"{"u":"https://h/?x=1\u0026key=abc"}"#,
        r#"{"u":"https://h/?x=1\u0026key=[redacted]"}"#,
    );
    check(
        "passphrase=abc ZCODE_ACP_PUSH_BARK_KEY=abc",
        "passphrase=[redacted] ZCODE_ACP_PUSH_BARK_KEY=[redacted]",
    );
    check("--password hunter2", "--password hunter2"); // no separator: not told apart from prose
}

#[test]
fn a_value_before_an_escaped_quote_leaves_the_quote_escaped() {
    check(
        r#"{"t":"see \"https://h/?token=abc\" now"}"#,
        r#"{"t":"see \"https://h/?token=[redacted]\" now"}"#,
    );
    check(r#"{"t":"\"Authorization: Basic abc\""}"#, r#"{"t":"\"Authorization: [redacted]\""}"#);
}

#[test]
fn secrets_are_known_by_their_shape() {
    check("curl -u, Basic dXNlcjpwYXNzd29yZA== ok", "curl -u, Basic [redacted] ok");
    check("hf_AbCdEfGhIjKlMnOpQrSt npm_0123456789abcdefgh", "[redacted] [redacted]");
    check("got enc:v1:AbC+/= there", "got [redacted] there");
    check("with bearer AbC123-xyz now", "with bearer [redacted] now");
    check("key sk-ant-0123456789abcdef.", "key [redacted]");
    check("push to https://me:pw@host/x ", "push to https://me:[redacted]@host/x ");
    check("0123456789abcdef0123456789abcdef.AbCdEfGhIjKlMnOp ok", "[redacted] ok");
    check(
        "a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b",
        "a [redacted] b",
    );
}

#[test]
fn ordinary_text_is_left_alone_and_not_copied() {
    for line in [
        r#"{"usage":{"inputTokens":1,"totalTokens":2,"tokens":3},"maxTokens":4}"#,
        "the bearer of this letter; sk-8 is short; token budget 5",
        "a basic understanding; key=value, code: 5; if (a && key == 1) {}",
        r#"{"progressToken":"p1","token":null}"#,
        "----- BEGIN OF TEXT -----",
        "日本語 eyJ 🙂",
        "",
    ] {
        assert!(matches!(text(line), Cow::Borrowed(_)), "{line} became {}", text(line));
    }
}

#[test]
fn redacting_twice_changes_nothing_more() {
    let once = text(r#"{"headers":{"a":"b"},"apiKey":"x","t":"Authorization: Basic zzz"}"#);
    assert_eq!(text(&once), once);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~\\n\\t\u{e9}\u{4e2d}]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,6}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_survived(input in "\\PC{0,80}") {
        drop(text(&input));
    }

    #[test]
    fn any_near_miss_is_survived(input in "(apiKey|headers|Bearer|enc:v1:|[\"\\\\:={}\\[\\] ]|sk-){0,14}") {
        let once = text(&input).into_owned();
        drop(text(&once));
    }

    #[test]
    fn a_secret_in_a_secret_field_never_survives(
        before in any_json(),
        after in any_json(),
        name in prop::sample::select(vec!["apiKey", "Authorization", "x-api-key", "refresh_token", "requestAuth", "headers", "zcodejwttoken"]),
        secret in "S3cr3t[ -~]{0,20}!",
        nested in any::<bool>(),
        wrapped in any::<bool>(),
    ) {
        let value = if nested { json!({"a": [secret.clone()], "b": {"c": secret}}) } else { json!(secret) };
        let object = json!({"before": before, name: value, "after": after});
        let line = if wrapped { json!({"text": object.to_string()}).to_string() } else { object.to_string() };
        let clean = text(&line);
        prop_assert!(!clean.contains("S3cr3t"), "{line}\n{clean}");
        let parsed: Value = serde_json::from_str(&clean)
            .map_err(|err| TestCaseError::fail(format!("{err}: {line}\n{clean}")))?;
        if !wrapped {
            prop_assert_eq!(parsed.get(name).is_some(), true);
        }
    }
}
