//! Takes secrets out of text. Pure. Called by the log, traces, `doctor` reports and anything else
//! that leaves this process for a file or a screen.
//!
//! Two nets, because each has holes of its own: *names* (`apiKey`, `Authorization`, `headers` …
//! and their values, in JSON, in escaped JSON, in headers, in `key=value` text) and *shapes*
//! (`enc:v1:…`, `Bearer …`, `sk-…`, JSON web tokens, PEM blocks, passwords in URLs). A value that
//! is dropped from JSON is replaced by a JSON string, so a redacted line still parses.

use std::borrow::Cow;

/// What stands where a secret was.
pub const MARK: &str = "[redacted]";

/// Names (lower case, without `_` and `-`) whose value is a secret.
const SECRET_NAMES: &[&str] = &[
    "authorization",
    "proxyauthorization",
    "cookie",
    "setcookie",
    "requestauth",
    "headers",
    "env",
    "credentials",
    "passwd",
    "zcodejwttoken",
    "captcha",
    "captchaverifyparam",
    "xdevicemid",
    "devicemid",
];
/// A name that ends so (lower case, without `_` and `-`) has a secret value.
const SECRET_ENDINGS: &[&str] = &[
    "apikey",
    "token",
    "secret",
    "password",
    "passphrase",
    "privatekey",
    "accesskey",
    "secretkey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "authkey",
    "barkkey",
    "jwt",
];
/// Names whose value is a secret in the query of a URL, and elsewhere is prose.
const QUERY_NAMES: &[&str] =
    &["key", "sig", "signature", "auth", "code", "pass", "pwd", "ticket", "otp"];
/// Names that only look secret.
const HARMLESS_NAMES: &[&str] = &["progresstoken", "nexttoken", "continuationtoken", "pagetoken"];
/// Words that start a secret, and how many secret characters must follow at least.
const SHAPES: &[(&str, usize)] = &[
    ("enc:v1:", 1),
    ("sk-", 16),
    ("sk_", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghs_", 16),
    ("ghu_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xapp-", 10),
    ("hf_", 16),
    ("npm_", 16),
    ("pypi-", 16),
    ("gsk_", 16),
    ("xai-", 16),
    ("nvapi-", 16),
    ("rk_live_", 16),
    ("ya29.", 16),
    ("SG.", 20),
    ("AKIA", 16),
    ("AIza", 30),
    ("eyJ", 20),
];

/// Returns the text without its secrets; borrowed when there is none.
pub fn text(input: &str) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let mut copied = 0; // input up to here is in `out`
    let mut at = 0;
    while let Some(rest) = input.get(at..).filter(|rest| !rest.is_empty()) {
        match secret_at(input, at, rest) {
            Some(Secret { start, end, json }) => {
                let out = out.get_or_insert_with(|| String::with_capacity(input.len()));
                out.push_str(input.get(copied..start).unwrap_or_default());
                out.push_str(json.before);
                out.push_str(MARK);
                out.push_str(json.before);
                copied = end;
                at = end;
            }
            None => at += word_len(rest),
        }
    }
    match out {
        None => Cow::Borrowed(input),
        Some(mut out) => {
            out.push_str(input.get(copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

/// Whether a variable, header or field of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    // Long names are text, not names.
    if name.is_empty() || name.len() > 80 {
        return false;
    }
    let folded: String =
        name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect();
    let folded = folded.as_str();
    SECRET_NAMES.contains(&folded)
        || (SECRET_ENDINGS.iter().any(|ending| folded.ends_with(ending))
            && !HARMLESS_NAMES.contains(&folded))
}

/// A stretch of the input to leave out.
struct Secret {
    start: usize,
    end: usize,
    json: Quotes,
}

/// Quotes to put around the mark, where the value was a whole JSON object or array.
struct Quotes {
    before: &'static str,
}

const BARE: Quotes = Quotes { before: "" };

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Length of the name-like word (or the one other character) that the text begins with.
fn word_len(rest: &str) -> usize {
    match rest.find(|c| !is_name_char(c)) {
        None => rest.len(),
        Some(0) => rest.chars().next().map_or(1, char::len_utf8),
        Some(n) => n,
    }
}

/// Finds a secret that begins with the word at `at`.
fn secret_at(input: &str, at: usize, rest: &str) -> Option<Secret> {
    let first = rest.chars().next()?;
    if first == '-' && rest.starts_with("-----BEGIN ") {
        return pem_block(at, rest);
    }
    if first == ':' && rest.starts_with("://") {
        return url_password(at, rest);
    }
    if !is_name_char(first) {
        return None;
    }
    let word = rest.get(..word_len(rest))?;
    shape(at, rest, word).or_else(|| named_value(input, at, word))
}

fn pem_block(at: usize, rest: &str) -> Option<Secret> {
    let head = rest.get(..rest.find("-----").map(|_| rest.len().min(64))?).unwrap_or(rest);
    if !head.contains("PRIVATE KEY") {
        return None;
    }
    let end = rest.find("-----END ").and_then(|from| {
        let tail = rest.get(from + 9..)?;
        Some(from + 9 + tail.find("-----")? + 5)
    });
    Some(Secret { start: at, end: at + end.unwrap_or(rest.len()), json: BARE })
}

/// `://user:password@host`: the password.
fn url_password(at: usize, rest: &str) -> Option<Secret> {
    let host = rest.get(3..)?;
    let end = host.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '\\'))?;
    let authority = host.get(..end)?;
    let (user, _) = authority.rsplit_once('@')?;
    let colon = user.find(':')?;
    let start = at + 3 + colon + 1;
    Some(Secret { start, end: at + 3 + user.len(), json: BARE })
}

/// A word that is a secret by its looks.
fn shape(at: usize, rest: &str, word: &str) -> Option<Secret> {
    if word.eq_ignore_ascii_case("bearer") {
        let value = rest.get(word.len()..)?;
        let token = value.trim_start_matches(' ');
        let start = at + word.len() + (value.len() - token.len());
        let len = secret_len(token);
        // "bearer of news" is no token.
        return (value.len() > token.len() && len >= 8 && looks_random(token.get(..len)?))
            .then_some(Secret { start, end: start + len, json: BARE });
    }
    if word.eq_ignore_ascii_case("basic") {
        let token = rest.get(word.len()..)?.strip_prefix(' ')?;
        let len = secret_len(token);
        let start = at + word.len() + 1;
        return is_base64(token.get(..len)?).then_some(Secret {
            start,
            end: start + len,
            json: BARE,
        });
    }
    for (prefix, least) in SHAPES {
        if let Some(tail) = rest.strip_prefix(prefix) {
            let len = secret_len(tail);
            if len >= *least {
                return Some(Secret { start: at, end: at + prefix.len() + len, json: BARE });
            }
        }
    }
    // Provider keys of the form <32 hex>.<16 letters>.
    if word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit()) {
        let tail = rest.get(32..)?.strip_prefix('.')?;
        let len = word_len(tail);
        if len >= 12 && tail.get(..len)?.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Some(Secret { start: at, end: at + 33 + len, json: BARE });
        }
    }
    None
}

/// Length of the token that the text begins with.
fn secret_len(text: &str) -> usize {
    text.find(|c: char| {
        !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '/' | '=' | '~' | ':'))
    })
    .unwrap_or(text.len())
}

fn looks_random(token: &str) -> bool {
    token.bytes().any(|b| b.is_ascii_digit() || b.is_ascii_uppercase() || b == b'-')
        || token.len() >= 24
}

/// Whether this is user and password as HTTP encodes them; "basic understanding" is not.
fn is_base64(token: &str) -> bool {
    let digits = token.bytes().any(|b| b.is_ascii_digit());
    token.len() >= 12 && (token.ends_with('=') || (token.len() >= 20 && digits))
}

/// `?key=` and the like in a URL; `&` may be escaped, as some write it in JSON.
fn is_in_query(input: &str, at: usize, word: &str) -> bool {
    let before = input.get(..at).unwrap_or_default();
    let name = if before.ends_with('\\') { word.strip_prefix("u0026") } else { Some(word) };
    let name = name.filter(|name| name.len() < word.len() || before.ends_with(['?', '&', ';']));
    name.is_some_and(|name| QUERY_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name)))
        && input.get(at + word.len()..).is_some_and(|rest| rest.starts_with('='))
}

/// `name: value` in any of its spellings, where the name says secret.
fn named_value(input: &str, at: usize, word: &str) -> Option<Secret> {
    if !is_secret_name(word) && !is_in_query(input, at, word) {
        return None;
    }
    // Headers and environments are lists; the words alone are prose.
    let only_lists = word.eq_ignore_ascii_case("headers") || word.eq_ignore_ascii_case("env");
    let mut pos = at + word.len();
    let closing = quote_at(input, pos);
    pos += closing.len();
    pos = skip_spaces(input, pos);
    let separator = input.get(pos..)?.chars().next().filter(|c| matches!(c, ':' | '='))?;
    pos = skip_spaces(input, pos + separator.len_utf8());
    // Rust's debug output of an optional value.
    if let Some(after) = input.get(pos..).and_then(|s| s.strip_prefix("Some(")) {
        pos = input.len() - after.len();
    }
    let value = input.get(pos..)?;
    if only_lists && closing.is_empty() && !value.starts_with(['{', '[']) {
        return None;
    }
    let opening = quote_at(input, pos);
    if !opening.is_empty() {
        let start = pos + opening.len();
        return quoted(input, start, opening);
    }
    match value.chars().next()? {
        // Outside JSON `env {` may be prose; a named object after a separator is a value.
        '{' | '[' => Some(Secret {
            start: pos,
            end: pos + nested_len(value),
            json: Quotes { before: json_quote(closing) },
        }),
        _ => bare(pos, value, word),
    }
}

/// The quote at a place, with the backslashes that escape it (JSON inside a JSON string).
fn quote_at(input: &str, at: usize) -> &str {
    let rest = input.get(at..).unwrap_or_default();
    let backslashes = rest.len() - rest.trim_start_matches('\\').len();
    match rest.as_bytes().get(backslashes) {
        Some(b'"' | b'\'') => rest.get(..=backslashes).unwrap_or_default(),
        _ => "",
    }
}

/// The quote to put around the mark so that JSON stays JSON at this depth of escaping.
fn json_quote(closing: &str) -> &'static str {
    match closing {
        "\"" => "\"",
        "\\\"" => "\\\"",
        "\\\\\\\"" => "\\\\\\\"",
        _ => "",
    }
}

fn skip_spaces(input: &str, at: usize) -> usize {
    let rest = input.get(at..).unwrap_or_default();
    at + (rest.len() - rest.trim_start_matches([' ', '\t']).len())
}

/// From `start` to the quote of the same depth.
fn quoted(input: &str, start: usize, quote: &str) -> Option<Secret> {
    let rest = input.get(start..)?;
    let mark = quote.chars().last()?;
    let depth = quote.len() - 1;
    let mut backslashes = 0;
    let mut end = rest.len();
    for (i, c) in rest.char_indices() {
        match c {
            '\\' => backslashes += 1,
            c if c == mark && closes(backslashes, depth) => {
                end = i - backslashes.min(depth);
                break;
            }
            _ => backslashes = 0,
        }
    }
    (end > 0).then_some(Secret { start, end: start + end, json: BARE })
}

/// Whether a quote after so many backslashes closes a string whose opening quote had `depth`.
///
/// Each level of JSON inside JSON doubles the backslashes and adds one before a quote, so this
/// undoes level by level. A quote that already ends a string further out closes as well.
fn closes(mut backslashes: usize, mut depth: usize) -> bool {
    while depth > 0 {
        if backslashes.is_multiple_of(2) {
            return true;
        }
        backslashes /= 2;
        depth /= 2;
    }
    backslashes.is_multiple_of(2)
}

/// Length of the bracketed value that the text begins with; all of it when it is cut off.
fn nested_len(value: &str) -> usize {
    let mut depth = 0_usize;
    let mut in_string: Option<usize> = None; // backslashes before its opening quote
    let mut backslashes = 0;
    for (i, c) in value.char_indices() {
        match (c, in_string) {
            ('\\', _) => {
                backslashes += 1;
                continue;
            }
            ('"', None) => in_string = Some(backslashes),
            ('"', Some(opening)) if closes(backslashes, opening) => in_string = None,
            ('{' | '[', None) => depth += 1,
            ('}' | ']', None) => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return i + c.len_utf8();
                }
            }
            _ => {}
        }
        backslashes = 0;
    }
    value.len()
}

/// A value without quotes: to the end of the word, of the header line for headers.
fn bare(start: usize, value: &str, name: &str) -> Option<Secret> {
    let header = ["authorization", "cookie"].iter().any(|n| name.to_ascii_lowercase().ends_with(n));
    let end = value
        .find(|c: char| {
            matches!(c, '\n' | '\r' | '"')
                || (!header
                    && (c.is_whitespace() || matches!(c, ',' | ';' | '&' | '}' | ')' | ']')))
        })
        .unwrap_or(value.len());
    let word = value.get(..end)?;
    // A backslash before a quote is the quote's, where this stands inside a JSON string.
    let quoted = value.get(end..).is_some_and(|rest| rest.starts_with('"'));
    let word = if quoted { word.trim_end_matches('\\') } else { word };
    let end = word.len();
    let nothing = matches!(word, "" | "null" | "true" | "false" | "None" | MARK);
    (!nothing).then_some(Secret { start, end: start + end, json: BARE })
}

#[cfg(test)]
mod tests;
