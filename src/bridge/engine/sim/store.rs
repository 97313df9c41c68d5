//! Where sessions persist: one JSON file a session in a directory that several processes may use at
//! once. Files are replaced whole, by rename, so a reader never sees half of one.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// What a session remembers over a restart.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Stored {
    pub(super) id: String,
    pub(super) workspace: Value,
    pub(super) parent: Option<String>,
    pub(super) trace_id: String,
    /// `interactive`, `fork` or `subagent`.
    pub(super) kind: String,
    pub(super) title: String,
    pub(super) title_source: String,
    pub(super) title_generation: bool,
    pub(super) mode: String,
    /// Plan mode that the agent entered by itself; `mode` stays what the user chose.
    pub(super) plan_mode: bool,
    pub(super) model: Option<Value>,
    pub(super) thought_level: Option<String>,
    pub(super) created_at: u64,
    pub(super) updated_at: u64,
    pub(super) archived_at: Option<u64>,
    pub(super) todos: Vec<Value>,
    pub(super) goal: Option<Goal>,
    pub(super) usage: Usage,
    /// What the context holds; no reading before the first model request.
    pub(super) context_used: Option<u64>,
    pub(super) checkpoints: Vec<Checkpoint>,
    pub(super) event_seq: u64,
    pub(super) revision: u64,
    pub(super) turn_count: u64,
    pub(super) id_counter: u64,
    pub(super) ended_subagents: Vec<Value>,
    pub(super) child_sessions: Vec<String>,
    /// How often each script ran here.
    pub(super) runs: BTreeMap<String, u64>,
    /// Tools that the user allowed for good.
    pub(super) allowed: Vec<String>,
    pub(super) messages: Vec<Value>,
}

/// A session's goal.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Goal {
    pub(super) objective: String,
    /// `active`, `paused` or `completed`.
    pub(super) status: String,
}

/// Counters over a session's whole life.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Usage {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) reasoning: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    pub(super) requests: u64,
    pub(super) errors: u64,
}

/// A state of the workspace that a session can be forked at.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Checkpoint {
    pub(super) id: String,
    pub(super) message_id: String,
    pub(super) turn: u64,
    pub(super) files: Vec<String>,
    /// How many messages there were.
    pub(super) messages: usize,
}

/// The sessions' place: a directory, or memory when there is none.
#[derive(Debug)]
pub(super) struct Store {
    dir: Option<PathBuf>,
    memory: BTreeMap<String, Stored>,
    writes: u64,
}

impl Store {
    /// Opens a store; the directory is made when it is missing.
    pub(super) fn open(dir: Option<&Path>) -> std::io::Result<Self> {
        if let Some(dir) = dir {
            // What was said to the demo is nobody else's business either.
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        Ok(Self { dir: dir.map(Path::to_owned), memory: BTreeMap::new(), writes: 0 })
    }

    /// Writes a session.
    pub(super) fn save(&mut self, session: &Stored) -> std::io::Result<()> {
        let Some(dir) = &self.dir else {
            self.memory.insert(session.id.clone(), session.clone());
            return Ok(());
        };
        self.writes += 1;
        let name = file_name(&session.id);
        let scratch = dir.join(format!(".{name}.{}.{}", std::process::id(), self.writes));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&scratch)?;
        let bytes = serde_json::to_vec(session)?;
        let written =
            file.write_all(&bytes).and_then(|()| std::fs::rename(&scratch, dir.join(&name)));
        if written.is_err() {
            std::fs::remove_file(&scratch).unwrap_or_default();
        }
        written
    }

    /// Reads a session; `None` when there is none, or its file makes no sense.
    pub(super) fn load(&self, id: &str) -> Option<Stored> {
        match &self.dir {
            None => self.memory.get(id).cloned(),
            Some(dir) => read(&dir.join(file_name(id))),
        }
    }

    /// All sessions, without those that cannot be read.
    pub(super) fn list(&self) -> Vec<Stored> {
        let Some(dir) = &self.dir else { return self.memory.values().cloned().collect() };
        let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
        entries
            .filter_map(Result::ok)
            .filter(|e| {
                let name = e.file_name();
                let name = name.to_string_lossy();
                name.ends_with(".json") && !name.starts_with('.')
            })
            .filter_map(|e| read(&e.path()))
            .collect()
    }
}

/// Largest session that is read.
const MAX_BYTES: u64 = 512 * 1024 * 1024;

fn read(path: &Path) -> Option<Stored> {
    serde_json::from_str(&crate::small_file::read(path, MAX_BYTES).ok()?).ok()
}

/// A file name that holds any id: what is unusual in it is written as `%xx`.
fn file_name(id: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02x}").unwrap_or_default();
        }
    }
    out.push_str(".json");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_session_is_read_by_another_store_on_the_same_directory() {
        let dir = tempfile::tempdir().unwrap();
        let mut one = Store::open(Some(dir.path())).unwrap();
        let two = Store::open(Some(dir.path())).unwrap();
        one.save(&Stored { id: "sess/../a b".into(), title: "t".into(), ..Stored::default() })
            .unwrap();
        assert_eq!(two.load("sess/../a b").unwrap().title, "t");
        assert_eq!(two.list().len(), 1);
        assert!(two.load("other").is_none());
    }

    #[test]
    fn a_torn_file_is_skipped_and_no_scratch_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(Some(dir.path())).unwrap();
        std::fs::write(dir.path().join("bad.json"), "{\"id\":").unwrap();
        store.save(&Stored { id: "good".into(), ..Stored::default() }).unwrap();
        assert_eq!(store.list().len(), 1);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
