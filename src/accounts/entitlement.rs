//! Which account providers (`account:*`) may be used, and what the engine is told of it. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::files::AccountFiles;
use super::{is_encrypted, providers};

/// The one plan for which the user's own key may be handed to the user's own engine.
const OWN_KEY_MODE: &str = "individual-coding-plan";

/// Answers of a live check, by configuration id; empty when none was made.
pub type LiveAnswers = BTreeMap<String, bool>;

/// Where an answer comes from; `doctor` says so, because a cache can be stale by days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The account's service, just now.
    Live,
    /// A provider of `config.json` that is on and has a key.
    OwnKey,
    /// `coding-plan-cache.json`; a plan that has ended stays listed there for days.
    PlanCache,
    /// `setting.json`: the plan is selected in the desktop app.
    Selected,
    /// Nothing speaks for it.
    Nothing,
}

impl Source {
    /// The source in words, and how far it can be trusted.
    pub fn words(self) -> &'static str {
        match self {
            Self::Live => "its service says so, asked just now",
            Self::OwnKey => "config.json has a key for it",
            Self::PlanCache => {
                "coding-plan-cache.json lists it; a plan that ended can stay there for days"
            }
            Self::Selected => "setting.json has it selected",
            Self::Nothing => "nothing speaks for it",
        }
    }
}

/// One account provider of the built-in table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entitlement {
    /// `account:<family>-<mode>`, the engine's name.
    pub account_id: String,
    /// `builtin:<family>-…`, the files' name.
    pub config_id: String,
    /// `bigmodel` or `zai`.
    pub family: String,
    /// `individual-coding-plan`, `start-plan`, `team-coding-plan` …
    pub mode: String,
    /// Models the table lists for it.
    pub model_ids: Option<Value>,
    /// Whether it may be used.
    pub entitled: bool,
    /// Whether the desktop app has it selected (or nothing else of its family): the engine's word.
    pub current: bool,
    /// Whether it is known to be the one of its family that is used: selected, or the only one. No
    /// more than one of a family.
    pub in_use: bool,
    /// What `entitled` rests on.
    pub source: Source,
}

/// Decides for every account provider of the built-in table.
pub fn entitlements(files: &AccountFiles, live: &LiveAnswers) -> Vec<Entitlement> {
    let mut found: Vec<Entitlement> = rules(files).map(|rule| decide(&rule, files, live)).collect();
    for i in 0..found.len() {
        let Some(family) = found.get(i).map(|e| e.family.clone()) else { continue };
        let elsewhere =
            found.iter().any(|e| e.family == family && e.entitled && selected(files, &e.config_id));
        if let Some(entitlement) = found.get_mut(i) {
            let chosen = selected(files, &entitlement.config_id);
            entitlement.current = entitlement.entitled && (chosen || !elsewhere);
        }
    }
    mark_used(&mut found, files);
    found
}

fn mark_used(all: &mut [Entitlement], files: &AccountFiles) {
    for i in 0..all.len() {
        let Some(plan) = all.get(i).filter(|plan| plan.entitled) else { continue };
        let mut rivals = all.iter().filter(|e| e.family == plan.family && e.entitled);
        let used = match rivals.clone().find(|e| selected(files, &e.config_id)) {
            Some(chosen) => chosen.account_id == plan.account_id,
            None => rivals.all(|e| e.account_id == plan.account_id),
        };
        if let Some(plan) = all.get_mut(i) {
            plan.in_use = used;
        }
    }
}

struct Rule<'a> {
    account_id: &'a str,
    family: &'a str,
    mode: &'a str,
    model_ids: Option<&'a Value>,
}

fn rules(files: &AccountFiles) -> impl Iterator<Item = Rule<'_>> {
    files
        .table
        .as_ref()
        .and_then(|(_, table)| {
            // Newer tables have the rules below `config`, the runtime copy has them at the top.
            table
                .pointer("/config/providerConfigRules/providerRules")
                .or_else(|| table.pointer("/providerConfigRules/providerRules"))
        })
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|rule| {
            let config = rule.get("config")?;
            let access = config.get("access")?;
            (access.get("type")?.as_str()? == "zhipu-account").then_some(())?;
            Some(Rule {
                account_id: rule.get("providerId")?.as_str()?,
                family: access.get("accountType")?.as_str()?,
                mode: access.get("mode")?.as_str()?,
                model_ids: config.get("builtinModelIds"),
            })
        })
}

/// The files' name of a plan.
fn config_id(family: &str, mode: &str) -> String {
    if mode == OWN_KEY_MODE {
        format!("builtin:{family}-coding-plan")
    } else {
        format!("builtin:{family}-{mode}")
    }
}

fn decide(rule: &Rule<'_>, files: &AccountFiles, live: &LiveAnswers) -> Entitlement {
    let config_id = config_id(rule.family, rule.mode);
    let (entitled, source) = if let Some(answer) = live.get(&config_id) {
        (*answer, Source::Live)
    } else if is_on_with_key(files, &config_id) {
        (true, Source::OwnKey)
    } else if cached(files, &config_id) {
        (true, Source::PlanCache)
    } else if selected(files, &config_id) {
        (true, Source::Selected)
    } else {
        (false, Source::Nothing)
    };
    Entitlement {
        account_id: rule.account_id.to_owned(),
        config_id,
        family: rule.family.to_owned(),
        mode: rule.mode.to_owned(),
        model_ids: rule.model_ids.cloned(),
        entitled,
        current: false,
        in_use: false,
        source,
    }
}

/// Whether the plan's provider is on and has a key, which speaks for the plan.
fn is_on_with_key(files: &AccountFiles, config_id: &str) -> bool {
    files
        .providers()
        .any(|(id, provider)| id == config_id && providers::problem(id, provider).is_none())
}

/// The key of a provider that is not switched off. Encrypted values count as a key that we do not have.
fn own_key<'a>(files: &'a AccountFiles, config_id: &str) -> Option<&'a str> {
    let (_, provider) = files.providers().find(|(id, _)| *id == config_id)?;
    (provider.get("enabled").and_then(Value::as_bool) != Some(false)).then_some(())?;
    provider
        .pointer("/options/apiKey")
        .and_then(Value::as_str)
        .map(str::trim)
        .filter(|key| !key.is_empty())
}

fn cached(files: &AccountFiles, config_id: &str) -> bool {
    files
        .plan_cache
        .as_ref()
        .and_then(|cache| cache.get("entryStatus")?.get("items")?.get(config_id)?.get("status"))
        .and_then(Value::as_str)
        == Some("available")
}

fn selected(files: &AccountFiles, config_id: &str) -> bool {
    let keys = files.setting.as_ref().and_then(|s| s.get("modelProviderFamilySelectedKeys"));
    keys.and_then(Value::as_object).is_some_and(|keys| {
        keys.values().filter_map(Value::as_str).any(|value| contains_id(value, config_id))
    })
}

/// `builtin:zai-start-plan` is in `x/builtin:zai-start-plan/y`, not in `builtin:zai-start-plan-2`.
fn contains_id(value: &str, id: &str) -> bool {
    value.match_indices(id).any(|(at, _)| {
        let after = value.get(at + id.len()..).unwrap_or_default();
        !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
    })
}

/// The parameters of `provider/updateAccountConfig`; `None` when there is no table to go by.
///
/// `now_ms` (milliseconds since the epoch) makes the revision.
pub fn update_params(files: &AccountFiles, live: &LiveAnswers, now_ms: u64) -> Option<Value> {
    let (path, table) = files.table.as_ref()?;
    let revision = match table.get("revision") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "0".to_owned(),
    };
    let digest = Sha256::digest(path.to_string_lossy().as_bytes());
    let all = entitlements(files, live);
    let states: Map<String, Value> = all
        .iter()
        .map(|e| {
            let availability = if e.entitled { "available" } else { "unavailable" };
            let state =
                json!({"availability": availability, "entitled": e.entitled, "current": e.current});
            (e.account_id.clone(), state)
        })
        .collect();
    let providers: Map<String, Value> = all
        .into_iter()
        .map(|e| {
            let access = json!({"type": "zhipu-account", "entitled": e.entitled});
            let ids = e.model_ids.map(|ids| ("builtinModelIds".to_owned(), ids));
            let provider = ids.into_iter().chain([("access".to_owned(), access)]).collect();
            (e.account_id, Value::Object(provider))
        })
        .collect();
    Some(json!({
        "revision": format!("account:zcode-acp:{now_ms}"),
        "basedOnZCodeBuiltinRevision": format!("zcode-builtin:{revision}:{digest:x}"),
        "providers": providers,
        "states": states,
    }))
}

/// The answer to the engine's `interaction/requestProviderRuntimeHeaders` for a provider.
///
/// Hands out the user's own key for the user's own individual coding plan, and nothing else: start,
/// team and off-peak plans need a captcha or another identity, which this program does not have.
pub fn header_answer(files: &AccountFiles, live: &LiveAnswers, provider_id: &str) -> Value {
    match key_for(files, live, provider_id) {
        Ok(key) => json!({"headersApplied": true, "requestAuth": {"apiKey": key}}),
        Err(message) => json!({"headersApplied": false, "errorMessage": message}),
    }
}

fn key_for<'a>(
    files: &'a AccountFiles,
    live: &LiveAnswers,
    provider_id: &str,
) -> Result<&'a str, String> {
    let all = entitlements(files, live);
    // A key is handed out under the account's own name only: a built-in provider has its key itself.
    let mut plans = all.iter().filter(|plan| plan.account_id.starts_with("account:"));
    let Some(plan) = plans.find(|plan| plan.account_id == provider_id) else {
        return Err(format!(
            "{provider_id} needs a sign-in that zcode-acp does not hold: pick another model, or use this one in the ZCode app"
        ));
    };
    if plan.mode != OWN_KEY_MODE {
        return Err(format!(
            "the {} of {} works in the ZCode app only: pick a model of another provider, or add an API key in the app",
            plan.mode.replace('-', " "),
            plan.family
        ));
    }
    if !plan.entitled {
        return Err(format!(
            "no coding plan of {} was found: sign in or renew it in the ZCode app, then start a new session",
            plan.family
        ));
    }
    match own_key(files, &plan.config_id) {
        Some(key) if !is_encrypted(key) => Ok(key),
        Some(_) => Err(format!(
            "the key of {} is encrypted by the ZCode app: add it as an API key of your own in the app's provider settings",
            plan.config_id
        )),
        None => Err(format!(
            "there is no API key for {}: open the ZCode app once with this plan selected, or add the key in its provider settings",
            plan.config_id
        )),
    }
}
