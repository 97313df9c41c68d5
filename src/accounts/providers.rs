//! PURE. Which providers of ZCode's files can be used, and why another cannot: the one answer that
//! the model list, `login`, `authenticate`, `quota`, `doctor`, `account/usage_stats` and the environment
//! of older engines go by. Keys are never read further than to see that they are there.

use serde_json::Value;

const OFF: &str = "switched off";
const NOT_ON: &str = "not switched on";
const DISABLED: &str = "disabled by ZCode";
const NO_KEY: &str = "no API key";
/// Of an account's own provider, when nobody is signed in.
pub(super) const NO_SIGN_IN: &str = "needs a sign-in";

/// One provider of ZCode's files.
#[derive(Debug, Clone, Copy)]
pub struct Provider<'a> {
    /// Its id.
    pub id: &'a str,
    /// What the file says of it.
    pub value: &'a Value,
    /// `None` when it can be selected, else why not.
    pub problem: Option<&'static str>,
}

/// The providers of `config.json` in file order, then those that only `provider_config.json` has. The
/// latter can switch one of the former off, and stands in for one that cannot be used.
pub fn providers<'a>(config: Option<&'a Value>, personal: Option<&'a Value>) -> Vec<Provider<'a>> {
    let own = personal.map(entries).unwrap_or_default();
    let mut found: Vec<Provider<'a>> = config
        .map(entries)
        .unwrap_or_default()
        .into_iter()
        .map(|(id, value)| {
            let hidden = own.iter().any(|(other, value)| *other == id && is_off(value));
            let problem = if hidden { Some(OFF) } else { problem(id, value) };
            Provider { id, value, problem }
        })
        .collect();
    for (id, value) in own {
        let provider = Provider { id, value, problem: problem(id, value) };
        match found.iter_mut().find(|known| known.id == id) {
            Some(known) if known.problem.is_some() && provider.problem.is_none() => {
                *known = provider;
            }
            // An entry that only switches something is no provider.
            None if option(value, "apiKey").is_some()
                || option(value, "baseURL").is_some()
                || !models(value).is_empty() =>
            {
                found.push(provider);
            }
            _ => {}
        }
    }
    found
}

/// The list is a map by id, under either name, or an array whose items have one.
fn entries(file: &Value) -> Vec<(&str, &Value)> {
    let list = ["provider", "providers"].iter().find_map(|key| file.get(*key));
    match list {
        Some(Value::Object(map)) => map.iter().map(|(id, value)| (id.as_str(), value)).collect(),
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| {
                let id = item.get("id").or_else(|| item.get("providerId"))?.as_str()?;
                Some((id, item))
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn is_off(provider: &Value) -> bool {
    provider.get("enabled") == Some(&Value::Bool(false))
}

/// A built-in provider needs to be switched on and to have a key; another one only not to be
/// switched off, and to have a key, not to need one, or to run on this machine.
pub(super) fn problem(id: &str, provider: &Value) -> Option<&'static str> {
    let reason = provider.get("systemDisabledReason").and_then(Value::as_str);
    let has_key = text(provider, "apiKey").is_some();
    if is_off(provider) {
        Some(OFF)
    } else if reason.is_some_and(|reason| !reason.is_empty()) {
        Some(DISABLED)
    } else if id.starts_with("builtin:") {
        if provider.get("enabled") != Some(&Value::Bool(true)) {
            return Some(NOT_ON);
        }
        (!has_key).then_some(NO_KEY)
    } else if has_key
        || option(provider, "apiKeyRequired") == Some(&Value::Bool(false))
        || text(provider, "baseURL").is_some_and(is_local)
    {
        None
    } else if id.starts_with("account:") {
        Some(NO_SIGN_IN)
    } else {
        Some(NO_KEY)
    }
}

/// An option of a provider, wherever the file has it.
pub fn option<'a>(provider: &'a Value, key: &str) -> Option<&'a Value> {
    let below = |section: &str| provider.get(section).and_then(|options| options.get(key));
    below("options").or_else(|| below("config")).or_else(|| provider.get(key))
}

/// An option that is a text and not empty.
pub fn text<'a>(provider: &'a Value, key: &str) -> Option<&'a str> {
    option(provider, key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// Whether an address is of this machine.
fn is_local(url: &str) -> bool {
    let Some((_, rest)) = url.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if let Some(v6) = host.strip_prefix('[') {
        return v6.split(']').next() == Some("::1");
    }
    let host = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let v4 = host.parse::<std::net::Ipv4Addr>();
    host == "localhost"
        || host.ends_with(".localhost")
        || v4.is_ok_and(|v4| v4.is_loopback() || v4.is_unspecified())
}

/// The models of a provider that are not switched off, in file order.
pub fn models(provider: &Value) -> Vec<(&str, &Value)> {
    let listed = provider.get("models").or_else(|| provider.pointer("/config/models"));
    let mut found: Vec<(&str, &Value)> = match listed {
        Some(Value::Object(map)) => map.iter().map(|(id, model)| (id.as_str(), model)).collect(),
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(|model| {
                let id = model
                    .as_str()
                    .or_else(|| model.get("id")?.as_str())
                    .or_else(|| model.get("modelId")?.as_str())?;
                Some((id, model))
            })
            .collect(),
        _ => Vec::new(),
    };
    found.retain(|(_, model)| !is_off(model));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_reason_not_to_use_a_provider_is_told_apart() {
        let key = json!({"options": {"apiKey": "k"}});
        let at = |url: &str| json!({"options": {"baseURL": url}});
        for (id, provider, wanted) in [
            ("own", key.clone(), None),
            ("own", json!({"options": {"apiKey": " "}}), Some(NO_KEY)),
            ("own", json!({"enabled": false, "options": {"apiKey": "k"}}), Some(OFF)),
            (
                "own",
                json!({"systemDisabledReason": "x", "options": {"apiKey": "k"}}),
                Some(DISABLED),
            ),
            ("own", json!({"options": {"apiKeyRequired": false}}), None),
            ("own", json!({"apiKeyRequired": false}), None),
            ("own", at("http://localhost:11434/v1"), None),
            ("own", at("http://127.1.2.3"), None),
            ("own", at("http://[::1]:80/"), None),
            ("own", at("http://u@box.localhost"), None),
            ("own", at("https://evil.example/?x=//localhost"), Some(NO_KEY)),
            ("own", at("https://localhost.evil.example"), Some(NO_KEY)),
            ("own", json!({}), Some(NO_KEY)),
            ("builtin:x", key.clone(), Some(NOT_ON)),
            ("builtin:x", json!({"enabled": true}), Some(NO_KEY)),
            ("builtin:x", json!({"enabled": true, "options": {"apiKey": "k"}}), None),
            ("account:x", json!({}), Some(NO_SIGN_IN)),
        ] {
            assert_eq!(problem(id, &provider), wanted, "{id} {provider}");
        }
    }

    #[test]
    fn personal_providers_come_last_hide_and_stand_in() {
        let config = json!({"provider": {
            "a": {"options": {"apiKey": "k"}},
            "b": {"options": {"apiKey": "k"}},
            "c": {},
        }});
        let personal = json!({"providers": [
            {"id": "b", "enabled": false},
            {"id": "c", "options": {"apiKey": "k"}},
            {"id": "d", "models": ["m", {"id": "off", "enabled": false}], "options": {"apiKey": "k"}},
            {"id": "account:z", "enabled": false},
        ]});
        let all = providers(Some(&config), Some(&personal));
        let told: Vec<_> = all.iter().map(|p| (p.id, p.problem)).collect();
        assert_eq!(told, [("a", None), ("b", Some(OFF)), ("c", None), ("d", None)]);
        assert_eq!(models(all[3].value).iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["m"]);
        assert!(providers(None, None).is_empty());
    }
}
