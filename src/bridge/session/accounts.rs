//! Tells an engine which account plans may be used (`provider/updateAccountConfig`): before its
//! first session, and again when one of ZCode's account files changed. Looks at the files' times when
//! somebody is about to use the engine, never by a timer. Owned by the registry.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::accounts::{AccountFiles, Live, LiveAnswers, Stamp, update_params};
use crate::bridge::engine::{EngineError, EngineHandle};
use crate::config::Config;

/// What one engine was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// The files' times then.
    stamp: Stamp,
    /// The services' last good answers.
    live: LiveAnswers,
    /// This engine has no such method: nothing more to tell.
    pub(crate) needs_none: bool,
}

impl Told {
    /// Whether the files have changed since.
    pub(crate) fn is_stale(&self, config: &Config) -> bool {
        !self.needs_none && self.stamp != Stamp::of(&config.zcode_home)
    }

    /// What another engine, or this one later, goes by until the services answer again.
    pub(crate) fn live(&self) -> LiveAnswers {
        self.live.clone()
    }

    /// The same files, not to be told twice while the telling is under way.
    pub(crate) fn refresh_stamp(&mut self, config: &Config) {
        self.stamp = Stamp::of(&config.zcode_home);
    }
}

/// Asks the services (if the user turned that on) what they say of the plans.
pub(crate) async fn live_answers(config: &Config, before: LiveAnswers) -> LiveAnswers {
    match Live::of(config, false).await {
        Some(live) => {
            for problem in &live.problems {
                tracing::warn!(problem, "the live check of a plan failed");
            }
            live.after(&before)
        }
        None => LiveAnswers::new(),
    }
}

/// Tells the engine, and waits until it has taken it: a session made before would not know.
pub(crate) async fn tell(config: Arc<Config>, engine: EngineHandle, live: LiveAnswers) -> Told {
    let (told, sent) = send(&config, &engine, live);
    finish(told, sent).await
}

/// Sends at once, so that what is sent to the engine after this is served after it.
pub(crate) fn send(
    config: &Config,
    engine: &EngineHandle,
    live: LiveAnswers,
) -> (Told, Option<impl Future<Output = Result<Value, EngineError>> + Send + 'static>) {
    let files = AccountFiles::read(&config.zcode_home, engine.provider_table());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    engine.know_plans(live.clone());
    let params = update_params(&files, &live, now_ms);
    let told = Told { stamp: files.stamp, live, needs_none: params.is_none() };
    let sent = params.map(|params| engine.request_value("provider/updateAccountConfig", params));
    (told, sent)
}

/// Waits for the engine's word.
pub(crate) async fn finish(
    mut told: Told,
    sent: Option<impl Future<Output = Result<Value, EngineError>>>,
) -> Told {
    let Some(sent) = sent else { return told };
    match sent.await {
        Ok(_) => {}
        Err(error) if error.is_unknown_method() => told.needs_none = true,
        Err(error) => {
            tracing::warn!(%error, "the engine did not take the account plans; their models may be refused");
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::engine::RpcError;

    #[tokio::test]
    async fn an_engine_without_the_method_is_told_nothing_more_and_one_that_refuses_is() {
        let home = tempfile::tempdir().unwrap();
        let config = crate::config::test_config(crate::config::Env::default(), home.path());
        let v2 = config.zcode_home.join("v2");
        std::fs::create_dir_all(&v2).unwrap();
        std::fs::write(v2.join("setting.json"), "{}").unwrap();
        for (code, needs_none) in [(-32601, true), (-32603, false)] {
            let error = EngineError::Rpc(RpcError::new(code, "no"));
            let told = finish(Told::default(), Some(std::future::ready(Err(error)))).await;
            assert_eq!(told.needs_none, needs_none, "{code}");
            assert_eq!(told.is_stale(&config), !needs_none, "{code}");
        }
        let mut told = Told::default();
        told.refresh_stamp(&config);
        assert!(!told.is_stale(&config));
        std::fs::write(v2.join("credentials.json"), "{}").unwrap();
        assert!(told.is_stale(&config), "one of the files changed");
    }
}
