//! The live check: asks the account's own services which plans are valid and what is left of them.
//! Off unless the user turned it on. Uses only tokens that lie in ZCode's files in the clear, sends
//! each to the service it is for, and keeps, logs and shows none. What to ask and what an answer
//! means is pure; [`Live::ask`] is the one place that sends. Called by the registry, `doctor`, `quota`.

use std::time::Duration;

use serde_json::Value;

use super::entitlement::LiveAnswers;
use super::files::AccountFiles;
use super::http::Get;
use super::limits::{self, Limits};
use super::{FAMILIES, is_encrypted};
use crate::config::{Config, Env};

/// How long all requests together may take.
const ALL: Duration = Duration::from_secs(6);
/// What the start plan's service is told; it wants the version of an app.
const APP_VERSION: &str = env!("CARGO_PKG_VERSION");

/// What came of a live check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    /// Whether plans are valid, by configuration id.
    pub answers: LiveAnswers,
    /// What is left of the coding plan, when its service said so.
    pub limits: Option<Limits>,
    /// What could not be asked or answered, for people.
    pub problems: Vec<String>,
    /// Plans that were asked about in vain.
    unanswered: Vec<String>,
}

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum About {
    /// The coding plan with this configuration id.
    Subscriptions(String),
    /// The start plans.
    StartPlan,
    /// What is left.
    Limits,
}

impl Live {
    /// Asks, if the settings say so. `with_limits` asks for what is left of the plan as well.
    pub async fn of(config: &Config, with_limits: bool) -> Option<Self> {
        if !config.live_entitlement || config.engine.demo.is_some() {
            return None;
        }
        let files = AccountFiles::read(&config.zcode_home, None);
        Some(Self::ask(&files, &config.env, with_limits).await)
    }

    /// Asks everything in parallel.
    async fn ask(files: &AccountFiles, env: &Env, with_limits: bool) -> Self {
        let mut live = Self::default();
        let mut wanted = plan_questions(files, env, &mut live.problems);
        if with_limits {
            wanted.extend(limits_question(files, env).map(|get| (About::Limits, get)));
        }
        let asked = wanted.iter().map(|(_, get)| async move {
            tokio::time::timeout(ALL, get.send(env))
                .await
                .unwrap_or_else(|_elapsed| Err("no answer in time".to_owned()))
        });
        let answers = futures::future::join_all(asked).await;
        for ((about, get), answer) in wanted.iter().zip(answers) {
            let understood = answer.and_then(|(code, body)| body_of(code, &body));
            if let Err(problem) = understood.and_then(|body| live.take(about, &body)) {
                live.problems.push(format!("{}: {problem}", host(&get.url)));
                live.missed(about);
            }
        }
        live
    }

    fn take(&mut self, about: &About, body: &Value) -> Result<(), String> {
        match about {
            About::Subscriptions(id) => {
                let valid = body.get("data").and_then(Value::as_array).ok_or("no list of plans")?;
                self.answers.insert(id.clone(), valid.iter().any(is_coding_plan));
            }
            About::StartPlan => {
                let plans = body.pointer("/data/plans").and_then(Value::as_array);
                let plans = plans.ok_or("no list of plans")?;
                for family in FAMILIES {
                    let active = plans.iter().any(|plan| is_start_plan(plan, family));
                    self.answers.insert(start_plan(family), active);
                }
            }
            About::Limits => self.limits = Some(limits::parse(body)?),
        }
        Ok(())
    }

    fn missed(&mut self, about: &About) {
        match about {
            About::Subscriptions(id) => self.unanswered.push(id.clone()),
            About::StartPlan => self.unanswered.extend(FAMILIES.map(start_plan)),
            About::Limits => {}
        }
    }

    /// The answers to go by: where a service failed, the last good one of this process.
    pub fn after(self, before: &LiveAnswers) -> LiveAnswers {
        let kept =
            self.unanswered.into_iter().filter_map(|id| Some((id.clone(), *before.get(&id)?)));
        let mut all: LiveAnswers = kept.collect();
        all.extend(self.answers);
        all
    }
}

/// What to ask about plans; a token that cannot be used is a problem.
fn plan_questions(
    files: &AccountFiles,
    env: &Env,
    problems: &mut Vec<String>,
) -> Vec<(About, Get)> {
    let mut wanted = Vec::new();
    for family in FAMILIES {
        match token(files, &format!("oauth:{family}:access_token")) {
            None => {}
            Some(Err(problem)) => problems.push(format!("{family}: {problem}")),
            Some(Ok(token)) => {
                let url = format!("{}/api/biz/subscription/list", business_host(env, family));
                let headers = vec![format!("Authorization: {token}")];
                let about = About::Subscriptions(format!("builtin:{family}-coding-plan"));
                wanted.push((about, Get { url, headers }));
            }
        }
    }
    match token(files, "zcodejwttoken") {
        None => {}
        Some(Err(problem)) => problems.push(format!("start plan: {problem}")),
        Some(Ok(token)) => match device(files) {
            Some(device) => {
                let headers = vec![
                    format!("Authorization: Bearer {token}"),
                    format!("X-Device-Mid: {device}"),
                ];
                wanted.push((About::StartPlan, Get { url: balance_url(env), headers }));
            }
            None => problems.push("start plan: telemetry-state.json names no device".to_owned()),
        },
    }
    wanted
}

/// What is left is asked with the key of the coding plan, which is the one it is counted by.
fn limits_question(files: &AccountFiles, env: &Env) -> Option<Get> {
    let (id, provider) = files.providers().find(|(id, provider)| {
        id.ends_with("-coding-plan")
            && id.starts_with("builtin:")
            && provider.get("enabled").and_then(Value::as_bool) != Some(false)
    })?;
    let key = provider.pointer("/options/apiKey").and_then(Value::as_str).map(str::trim)?;
    if key.is_empty() || is_encrypted(key) {
        return None;
    }
    let zai = id.contains("zai");
    let host = match env.str(if zai { "ZAI_BUSINESS_BASE_URL" } else { "BIGMODEL_API_BASE_URL" }) {
        Some(host) => host.trim_end_matches('/').to_owned(),
        None if zai => "https://api.z.ai".to_owned(),
        None => "https://open.bigmodel.cn".to_owned(),
    };
    let headers = vec![format!("Authorization: Bearer {key}")];
    Some(Get { url: format!("{host}/api/monitor/usage/quota/limit"), headers })
}

/// A token that is there, or why it cannot be used.
fn token<'a>(files: &'a AccountFiles, name: &str) -> Option<Result<&'a str, &'static str>> {
    let token = files.credentials.as_ref()?.get(name)?.as_str()?.trim();
    match token {
        "" => None,
        token if is_encrypted(token) => {
            Some(Err("the token is encrypted by the ZCode app, which alone can open it"))
        }
        token => Some(Ok(token)),
    }
}

fn device(files: &AccountFiles) -> Option<&str> {
    files.telemetry.as_ref()?.get("deviceMid")?.as_str().filter(|mid| !mid.is_empty())
}

fn business_host(env: &Env, family: &str) -> String {
    let (variable, default) = if family == "zai" {
        ("ZAI_BUSINESS_BASE_URL", "https://api.z.ai")
    } else {
        ("BIGMODEL_API_BASE_URL", "https://bigmodel.cn")
    };
    env.str(variable).unwrap_or(default).trim_end_matches('/').to_owned()
}

fn balance_url(env: &Env) -> String {
    let default = "https://zcode.z.ai/api/v1/zcode-plan/billing/balance";
    let base = env.str("ZCODE_PLAN_BALANCE_URL").unwrap_or(default);
    let mark = if base.contains('?') { '&' } else { '?' };
    format!("{base}{mark}app_version={APP_VERSION}")
}

/// Without the user and the password that an address may have.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// The body of a good answer. What the service says of a failure is not repeated: it may quote.
fn body_of(code: u16, body: &[u8]) -> Result<Value, String> {
    match code {
        200..=299 => {}
        401 | 403 => return Err("the sign-in has expired: open the ZCode app once".to_owned()),
        429 => return Err("asked too often; try again later".to_owned()),
        code => return Err(format!("HTTP {code}")),
    }
    let body: Value = serde_json::from_slice(body).map_err(|err| format!("no JSON: {err}"))?;
    let code = body.get("code").filter(|code| !code.is_null());
    let number = code.map(|code| code.as_i64().or_else(|| code.as_str()?.parse().ok()));
    let refused = body.get("success").and_then(Value::as_bool) == Some(false);
    match number {
        Some(Some(401 | 1001)) => {
            Err("the sign-in has expired: open the ZCode app once".to_owned())
        }
        Some(code) if code != Some(0) && code != Some(200) => Err(format!(
            "refused with code {}",
            code.map_or_else(|| "?".to_owned(), |c| c.to_string())
        )),
        _ if refused => Err("refused".to_owned()),
        _ => Ok(body),
    }
}

fn is_coding_plan(item: &Value) -> bool {
    let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
    let coding = ["productId", "productName"]
        .iter()
        .any(|key| text(key).to_ascii_lowercase().contains("coding"));
    coding
        && text("status") == "VALID"
        && item.get("inCurrentPeriod").and_then(Value::as_bool) == Some(true)
}

/// An active start plan; one that names the other family is that family's.
fn is_start_plan(plan: &Value, family: &str) -> bool {
    let text =
        |key: &str| plan.get(key).and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    let names = [text("plan_id"), text("name")];
    let others = FAMILIES.iter().filter(|other| **other != family);
    text("status") == "active"
        && names.iter().any(|name| name.contains("start-plan"))
        && !others.into_iter().any(|other| names.iter().any(|name| name.contains(other)))
}

fn start_plan(family: &str) -> String {
    format!("builtin:{family}-start-plan")
}

#[cfg(test)]
mod tests;
