//! What ZCode's sign-in state is and which channels can be used, for `login`, `doctor` and the
//! agent's `authMethods`. Pure.

use serde_json::Value;

use super::files::AccountFiles;
use super::providers::{self, Provider, providers};
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
    /// The providers of `config.json`, in file order, then the personal ones.
    pub channels: Vec<Channel>,
    /// Files that could not be used, each with the reason: what they hold is not known.
    pub unreadable: Vec<(String, String)>,
}

/// One provider of ZCode's files.
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

    /// What is to be said of files that could not be used, a line each.
    pub fn complaints(&self) -> impl Iterator<Item = String> {
        self.unreadable.iter().map(|(name, reason)| {
            format!("{name} cannot be used: {reason} (the ZCode app writes it anew)")
        })
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
    let signed_in = zcode.is_some() || !tokens.is_empty();
    let all = providers(files.config.as_ref(), files.personal.as_ref());
    SignIn {
        families: tokens.iter().map(|(family, _)| (*family).to_owned()).collect(),
        zcode: zcode.is_some(),
        encrypted: tokens.iter().map(|(_, token)| *token).chain(zcode).any(is_encrypted),
        channels: all.into_iter().map(|provider| channel(provider, signed_in)).collect(),
        unreadable: files.problems.clone(),
    }
}

fn channel(provider: Provider<'_>, signed_in: bool) -> Channel {
    let Provider { id, value, problem } = provider;
    let models = providers::models(value).len();
    let problem = problem
        .filter(|problem| !(signed_in && *problem == providers::NO_SIGN_IN))
        .or_else(|| (models == 0).then_some("no models"));
    let name = value.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    Channel { id: id.to_owned(), name: name.unwrap_or(id).to_owned(), models, problem }
}
