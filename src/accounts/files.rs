//! Reads ZCode's account files. A file that is missing, too large or no JSON is absent, and says
//! why. Called by the accounts of the bridge and by the reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;

use crate::small_file;

/// Largest file read; the real ones are a few kilobytes.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// What the files said at one moment. Holds secrets: never logged, so `Debug` shows names only.
#[derive(Clone, Default)]
pub struct AccountFiles {
    /// `v2/credentials.json`: sign-in state.
    pub credentials: Option<Value>,
    /// `v2/config.json`: providers and the user's own keys.
    pub config: Option<Value>,
    /// `v2/provider_config.json`: the user's personal providers, and which are switched off.
    pub personal: Option<Value>,
    /// `v2/setting.json`: what is selected.
    pub setting: Option<Value>,
    /// `v2/coding-plan-cache.json`: plans as they were some time ago.
    pub plan_cache: Option<Value>,
    /// `v2/telemetry-state.json`: the device's id, which the start plan's service wants.
    pub telemetry: Option<Value>,
    /// The engine's built-in provider table and where it lies.
    pub table: Option<(PathBuf, Value)>,
    /// What could not be used: file name and reason.
    pub problems: Vec<(String, String)>,
    /// For telling whether anything changed since.
    pub stamp: Stamp,
}

impl std::fmt::Debug for AccountFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountFiles")
            .field("credentials", &self.credentials.is_some())
            .field("config", &self.config.is_some())
            .field("personal", &self.personal.is_some())
            .field("setting", &self.setting.is_some())
            .field("plan_cache", &self.plan_cache.is_some())
            .field("table", &self.table.as_ref().map(|(path, _)| path))
            .field("problems", &self.problems)
            .finish_non_exhaustive()
    }
}

/// When the files were last changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamp(BTreeMap<&'static str, SystemTime>);

/// The files whose change is news for the engine.
const WATCHED: [&str; 4] =
    ["credentials.json", "config.json", "setting.json", "coding-plan-cache.json"];

impl Stamp {
    /// Looks at the files' times only.
    pub fn of(zcode_home: &Path) -> Self {
        let time = |name: &&'static str| {
            let meta = std::fs::metadata(zcode_home.join("v2").join(name)).ok()?;
            Some((*name, meta.modified().ok()?))
        };
        Self(WATCHED.iter().filter_map(time).collect())
    }
}

impl AccountFiles {
    /// Reads everything below ZCode's directory, and the built-in table that the engine is given.
    pub fn read(zcode_home: &Path, table: Option<&Path>) -> Self {
        let mut files = Self { stamp: Stamp::of(zcode_home), ..Self::default() };
        let v2 = zcode_home.join("v2");
        files.credentials = files.take(&v2.join("credentials.json"));
        files.config = files.take(&v2.join("config.json"));
        files.personal = files.take(&v2.join("provider_config.json"));
        files.setting = files.take(&v2.join("setting.json"));
        files.plan_cache = files.take(&v2.join("coding-plan-cache.json"));
        files.telemetry = files.take(&v2.join("telemetry-state.json"));
        if let Some(path) = table {
            files.table = files.take(path).map(|value| (path.to_path_buf(), value));
        }
        files
    }

    fn take(&mut self, path: &Path) -> Option<Value> {
        match read_json(path) {
            Ok(value) => value,
            Err(problem) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                self.problems.push((name, problem));
                None
            }
        }
    }

    /// The providers of `config.json` alone, in file order.
    pub fn providers(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.config
            .as_ref()
            .and_then(|config| config.get("provider"))
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(id, provider)| (id.as_str(), provider))
    }
}

/// Reads a file of ZCode's; `None` when it is not there, the error says what is wrong with it.
pub fn read_json(path: &Path) -> Result<Option<Value>, String> {
    let text = match small_file::read(path, MAX_BYTES) {
        Ok(text) => text,
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err.to_string()),
    };
    // The message of a syntax error names a place and never quotes the text.
    let value: Value = serde_json::from_str(&text).map_err(|err| err.to_string())?;
    if value.is_object() { Ok(Some(value)) } else { Err("not a JSON object".to_owned()) }
}
