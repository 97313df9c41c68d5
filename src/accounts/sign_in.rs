//! What ZCode's sign-in state is and which channels can be used, for `login`, `doctor` and the
//! agent's `authMethods`. Pure.

use serde_json::Value;

use super::files::AccountFiles;
use super::{FAMILIES, is_encrypted};

/// The sign-in state, without any secret in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignIn {
    /// Families with an access token (`zai`, `bigmodel`).
    pub families: Vec<String>,
    /// Whether ZCode's own session token is there.
    pub zcode: bool,
    /// Whether the tokens are encrypted, so that only ZCode itself can use them.
    pub encrypted: bool,
    /// The providers of `config.json`, in file order.
    pub channels: Vec<Channel>,
}

/// One provider of `config.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Its id.
    pub id: String,
    /// Its name for people; the id when it has none.
    pub name: String,
    /// Models it offers.
    pub models: usize,
    /// `None` when it can be used, else why not.
    pub problem: Option<&'static str>,
}

impl SignIn {
    /// Whether anyone is signed in.
    pub fn is_signed_in(&self) -> bool {
        self.zcode || !self.families.is_empty()
    }

    /// Whether the engine has any way to reach a model.
    pub fn is_usable(&self) -> bool {
        self.is_signed_in() || self.channels.iter().any(|channel| channel.problem.is_none())
    }
}

/// Reads the state off the files.
pub fn sign_in(files: &AccountFiles) -> SignIn {
    let token = |name: &str| {
        files
            .credentials
            .as_ref()
            .and_then(|credentials| credentials.get(name))
            .and_then(Value::as_str)
            .filter(|token| !token.trim().is_empty())
    };
    let tokens: Vec<(&str, &str)> = FAMILIES
        .iter()
        .filter_map(|family| Some((*family, token(&format!("oauth:{family}:access_token"))?)))
        .collect();
    let zcode = token("zcodejwttoken");
    SignIn {
        families: tokens.iter().map(|(family, _)| (*family).to_owned()).collect(),
        zcode: zcode.is_some(),
        encrypted: tokens.iter().map(|(_, token)| *token).chain(zcode).any(is_encrypted),
        channels: files.providers().map(|(id, provider)| channel(id, provider)).collect(),
    }
}

fn channel(id: &str, provider: &Value) -> Channel {
    let text = |key: &str| provider.get(key).and_then(Value::as_str).unwrap_or_default();
    let models = provider.get("models").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    let has_key = provider
        .pointer("/options/apiKey")
        .and_then(Value::as_str)
        .is_some_and(|key| !key.trim().is_empty());
    let problem = if provider.get("enabled").and_then(Value::as_bool) == Some(false) {
        Some("switched off")
    } else if !text("systemDisabledReason").is_empty() {
        Some("disabled by ZCode")
    } else if models == 0 {
        Some("no models")
    } else if !has_key && !id.starts_with("account:") {
        Some("no API key")
    } else {
        None
    };
    let name = text("name");
    let name = if name.is_empty() { id } else { name };
    Channel { id: id.to_owned(), name: name.to_owned(), models, problem }
}
