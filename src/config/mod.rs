//! Settings: flags, the settings file and environment variables become one immutable [`Config`].
//! The only reader of environment variables. Made once by `main`, then passed as a value.
//!
//! For each setting a flag beats the file, the file beats the environment, the environment beats
//! the default. A broken file never stops anything: what is wrong becomes a warning.

mod file;
mod load;

pub use file::{SettingsFile, known_keys, settings_path};

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::AppError;

/// A snapshot of the environment, so that everything that depends on it can be tested with values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<OsString, OsString>);

impl Env {
    /// Takes the process's environment as it is now.
    pub fn from_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// Returns the variable; an empty value counts as unset.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|v| !v.is_empty())
    }

    /// Returns the variable as text; unset when empty or not UTF-8.
    pub fn str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// Returns the variable as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// Returns whether the variable is a yes (anything but `0`, `false`, `off`, `no`, empty).
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.str(name).map(|v| {
            !matches!(v.trim().to_ascii_lowercase().as_str(), "0" | "false" | "off" | "no")
        })
    }

    /// All variables, for a child's environment.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(k, v)| (k.as_os_str(), v.as_os_str()))
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Env {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(iter: T) -> Self {
        Self(iter.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }
}

/// Everything that was decided before the program began.
#[derive(Debug, Clone)]
pub struct Config {
    /// The environment at start.
    pub env: Env,
    /// The user's home directory.
    pub home: PathBuf,
    /// ZCode's own directory (`$ZCODE_HOME`, else `~/.zcode`): read, hardly ever written.
    pub zcode_home: PathBuf,
    /// Where this program keeps its own state (logs, drafts, demo sessions), mode 0700.
    pub state_dir: PathBuf,
    /// Which engine to start and how.
    pub engine: EngineConfig,
    /// Defaults for new sessions.
    pub session: SessionConfig,
    /// How the terminal chat looks and behaves.
    pub tui: TuiConfig,
    /// How long a question to the user may stay open; `None` waits for ever.
    pub interaction_timeout: Option<Duration>,
    /// `ZCODE_ACP_STEER_PERSIST_MS`: how long a guide waits for the session's first event.
    pub steer_persist: Duration,
    /// `ZCODE_ACP_STEER_FK_RETRY_MS`: how long a guide is retried on the persistence race.
    pub steer_fk_retry: Duration,
    /// Where tool approvals go as files (`ZCODE_ACP_APPROVAL_BRIDGE=1` and the directory exists).
    pub approval_dir: Option<PathBuf>,
    /// Where they would go (`ZCODE_ACP_APPROVAL_DIR`, `~/.zcode-acp/pending`), on or not.
    pub default_approval_dir: PathBuf,
    /// Ask the account's services which plans are valid (`ZCODE_ACP_LIVE_ENTITLEMENT`); off unless
    /// the user turned it on.
    pub live_entitlement: bool,
    /// `debug`, `ZCODE_ACP_DEBUG`: log what is of interest when something is looked for.
    pub debug: bool,
    /// Where both wires are recorded (`--trace FILE`).
    pub trace: Option<PathBuf>,
    /// The settings file that was looked for.
    pub settings_path: PathBuf,
    /// What was wrong with the settings; each names file, line and key. For the log and `doctor`.
    pub warnings: Vec<String>,
}

/// Which engine to start and how.
#[derive(Debug, Clone, Default)]
pub struct EngineConfig {
    /// Run the simulated engine instead of the real one.
    pub demo: Option<DemoConfig>,
    /// Play what the engine said in this trace instead.
    pub replay: Option<PathBuf>,
    /// Tools that the engine is told not to offer (`ZCODE_DISALLOWED_TOOLS`).
    pub disallowed_tools: Vec<String>,
    /// Keep the Cron tools (`ZCODE_ENABLE_AUTOMATION_TOOLS`).
    pub automation_tools: bool,
    /// Leave Node's address-family races on (`ZCODE_KEEP_HAPPY_EYEBALLS`).
    pub keep_happy_eyeballs: bool,
}

/// How the simulated engine runs.
#[derive(Debug, Clone, Default)]
pub struct DemoConfig {
    /// Which engine version it plays (`0.15`, `0.16.5`, `0.16.9`); `None` is the newest.
    pub profile: Option<String>,
    /// Pace of its streams: 1.0 looks real, 0 is as fast as possible.
    pub pace: Option<f64>,
    /// Where its sessions persist; `None` is below the state directory.
    pub store: Option<PathBuf>,
}

/// Defaults for new sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionConfig {
    /// Mode asked for (`ZCODE_ACP_MODE`, `session.mode`); never `yolo` unless it says so.
    pub mode: Option<String>,
    /// Model asked for (`ZCODE_ACP_MODEL`, or `ZCODE_PROVIDER` with `ZCODE_MODEL`).
    pub model: Option<String>,
    /// A line at the end of each turn (`session.showCompletionStatus`).
    pub show_completion_status: Option<bool>,
    /// Compact by itself above this many tokens; 0 or `None` is off.
    pub auto_compact_threshold: Option<u64>,
}

/// How the terminal chat looks and behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuiConfig {
    /// `tui.theme`: `dark`, `light` or `none` (no colour); `None` is what the terminal says.
    pub theme: Option<String>,
    /// `tui.mouse`: wheel and clicks are ours; off, the terminal selects text by itself.
    pub mouse: bool,
    /// `tui.animations` (and not `ZCODE_ACP_REDUCED_MOTION`).
    pub animations: bool,
}

impl Default for TuiConfig {
    fn default() -> Self {
        Self { theme: None, mouse: true, animations: true }
    }
}

impl Config {
    /// Where the demo keeps its sessions.
    #[must_use]
    pub fn demo_dir(&self, demo: &DemoConfig) -> PathBuf {
        demo.store.clone().unwrap_or_else(|| self.state_dir.join("demo"))
    }

    /// The directory whose `v2` has the file that says which session of a client is which of the
    /// engine's: ZCode's own for ZCode's own sessions, and never for played ones.
    #[must_use]
    pub fn alias_dir(&self) -> PathBuf {
        match (&self.engine.demo, &self.engine.replay) {
            (Some(demo), _) => self.demo_dir(demo),
            (None, Some(_)) => self.state_dir.join("replay"),
            (None, None) => self.zcode_home.clone(),
        }
    }
}

/// The directory as an absolute path without links, so that it has one name everywhere.
///
/// # Errors
/// Usage, when it is no directory that is there.
pub fn working_directory(asked: Option<&Path>) -> Result<PathBuf, AppError> {
    let asked = asked.unwrap_or_else(|| Path::new("."));
    std::fs::canonicalize(asked)
        .ok()
        .filter(|dir| dir.is_dir())
        .ok_or_else(|| AppError::usage(format!("{} is no directory", asked.display())))
}

/// Settings for tests: this environment, everything below `home`, the rest at its default.
#[cfg(test)]
pub(crate) fn test_config(env: Env, home: &std::path::Path) -> Config {
    Config {
        env,
        home: home.to_owned(),
        zcode_home: home.join(".zcode"),
        state_dir: home.join("state"),
        engine: EngineConfig::default(),
        session: SessionConfig::default(),
        tui: TuiConfig::default(),
        interaction_timeout: None,
        steer_persist: Duration::from_secs(3),
        steer_fk_retry: Duration::from_secs(2),
        approval_dir: None,
        default_approval_dir: home.join("pending"),
        live_entitlement: false,
        debug: false,
        trace: None,
        settings_path: home.join("settings.json"),
        warnings: Vec::new(),
    }
}
