//! The alias file: which engine session an ACP session id stands for, beyond this process.
//!
//! `<zcode home>/v2/acp-lazy-sessions.json`, an object of ACP id to record, in the form the other
//! public bridge writes, so that ids survive a change of bridge. Several bridges share it: every
//! write locks its directory, reads it again, merges, writes a temporary file and renames it.
//! Failures are reported to the caller, who logs them; a session never fails because of this file.
//! Called by the registry, which saves many changes at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::small_file;

/// Largest file read; a record has a few hundred bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Records of sessions that were never used end after this long.
const UNUSED_FOR: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Temporary files older than this are leftovers of a crash.
const LEFTOVER: Duration = Duration::from_hours(1);

/// What is known about one ACP id.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Alias {
    /// The session's directory.
    pub(crate) cwd: String,
    /// The engine's session, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) zcode_sid: Option<String>,
    /// Milliseconds since 1970.
    pub(crate) created_at: u64,
    /// What the user chose in this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model_choice: Option<ModelChoice>,
    /// Fields of other bridges and versions, kept as they are.
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// A choice that is applied again after a resume.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ModelChoice {
    /// The option value of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The thought level; empty when it was reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thought: Option<String>,
    /// Milliseconds since 1970; the newest choice wins.
    pub(crate) at: u64,
}

/// The file and what this process last knew of it.
#[derive(Debug)]
pub(crate) struct AliasFile {
    path: PathBuf,
    known: BTreeMap<String, Alias>,
    changed: BTreeSet<String>,
}

impl AliasFile {
    /// The file below ZCode's directory; nothing is read yet.
    pub(crate) fn new(zcode_home: &Path) -> Self {
        Self {
            path: zcode_home.join("v2").join("acp-lazy-sessions.json"),
            known: BTreeMap::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Looks an id up, reading the file again when this process does not know it.
    pub(crate) fn find(&mut self, acp_id: &str, now_ms: u64) -> Option<Alias> {
        if !self.known.contains_key(acp_id) {
            self.known.extend(read(&self.path, now_ms));
        }
        self.known.get(acp_id).cloned()
    }

    /// The newest choice made under any id of an engine session.
    pub(crate) fn choice_of(&self, engine_sid: &str, now_ms: u64) -> Option<ModelChoice> {
        let stored = read(&self.path, now_ms);
        let all = stored.values().chain(self.known.values());
        let of = all.filter(|it| it.zcode_sid.as_deref() == Some(engine_sid));
        of.filter_map(|it| it.model_choice.clone()).max_by_key(|choice| choice.at)
    }

    /// The ACP ids that stand for an engine session, oldest first.
    pub(crate) fn ids_of(&mut self, now_ms: u64) -> BTreeMap<String, String> {
        for (id, alias) in read(&self.path, now_ms) {
            self.known.entry(id).or_insert(alias);
        }
        let mut oldest: BTreeMap<String, (u64, String)> = BTreeMap::new();
        for (id, alias) in &self.known {
            let Some(sid) = &alias.zcode_sid else { continue };
            let entry = (alias.created_at, id.clone());
            match oldest.get(sid) {
                Some(first) if *first <= entry => {}
                _ => {
                    oldest.insert(sid.clone(), entry);
                }
            }
        }
        oldest.into_iter().map(|(sid, (_, id))| (sid, id)).collect()
    }

    /// Adds or replaces a record; [`AliasFile::save`] writes it.
    pub(crate) fn set(&mut self, acp_id: &str, alias: Alias) {
        self.known.insert(acp_id.to_owned(), alias);
        self.changed.insert(acp_id.to_owned());
    }

    /// Writes what changed, merged with what others wrote. Records that this process knows and the
    /// file lost (it was torn) come back.
    ///
    /// # Errors
    /// The system's, when the file cannot be written; the records are kept in memory all the same.
    pub(crate) fn save(&mut self, now_ms: u64) -> io::Result<()> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let changed = std::mem::take(&mut self.changed);
        let dir = self.path.parent().ok_or_else(|| io::Error::other("no directory"))?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        // Held until the new file is in its place.
        let _lock = lock(dir);
        let mut all = read(&self.path, now_ms);
        for (id, alias) in &self.known {
            if changed.contains(id) || (!all.contains_key(id) && is_kept(alias, now_ms)) {
                all.insert(id.clone(), alias.clone());
            }
        }
        write(&self.path, dir, &all)
    }
}

/// Keeps other bridges from writing at the same time. They hold it for a millisecond, and the
/// system frees it when its holder dies. Where directories cannot be locked the last writer wins.
fn lock(dir: &Path) -> Option<File> {
    let dir = File::open(dir).ok()?;
    dir.lock().ok()?;
    Some(dir)
}

fn is_kept(alias: &Alias, now_ms: u64) -> bool {
    alias.zcode_sid.is_some() || alias.created_at.saturating_add(UNUSED_FOR) > now_ms
}

/// Reads what can be read; a torn or foreign file counts as empty, a torn record is left out.
fn read(path: &Path, now_ms: u64) -> BTreeMap<String, Alias> {
    let Ok(text) = small_file::read(path, MAX_BYTES) else { return BTreeMap::new() };
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(&text) else {
        return BTreeMap::new();
    };
    map.into_iter()
        .filter_map(|(id, value)| Some((id, serde_json::from_value::<Alias>(value).ok()?)))
        .filter(|(_, alias)| is_kept(alias, now_ms))
        .collect()
}

fn write(path: &Path, dir: &Path, all: &BTreeMap<String, Alias>) -> io::Result<()> {
    sweep(dir);
    let text = serde_json::to_string_pretty(all).map_err(io::Error::other)?;
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let name = format!("acp-lazy-sessions.json.tmp-{}-{unique}", std::process::id());
    let temporary = dir.join(name);
    let written = create_private(&temporary).and_then(|mut file| file.write_all(text.as_bytes()));
    let renamed = written.and_then(|()| std::fs::rename(&temporary, path));
    if renamed.is_err() {
        std::fs::remove_file(&temporary).ok();
    }
    renamed
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<std::fs::File> {
    std::fs::OpenOptions::new().write(true).create_new(true).open(path)
}

/// Removes temporary files that a crash left behind.
fn sweep(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with("acp-lazy-sessions.json.tmp-") {
            continue;
        }
        let age = entry
            .metadata()
            .and_then(|m| m.modified())
            .ok()
            .and_then(|t| SystemTime::now().duration_since(t).ok());
        if age.is_some_and(|age| age > LEFTOVER) {
            std::fs::remove_file(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn alias(cwd: &str, sid: Option<&str>, at: u64) -> Alias {
        Alias {
            cwd: cwd.into(),
            zcode_sid: sid.map(Into::into),
            created_at: at,
            ..Alias::default()
        }
    }

    impl AliasFile {
        fn put(&mut self, acp_id: &str, alias: Alias, now_ms: u64) -> io::Result<()> {
            self.set(acp_id, alias);
            self.save(now_ms)
        }
    }

    fn home() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_record_survives_another_process() {
        let home = home();
        AliasFile::new(home.path()).put("a", alias("/w", Some("sess_1"), 5), 10).unwrap();
        let found = AliasFile::new(home.path()).find("a", 10).unwrap();
        assert_eq!(found.zcode_sid.as_deref(), Some("sess_1"));
        assert_eq!(found.cwd, "/w");
    }

    #[test]
    fn two_bridges_do_not_lose_each_others_records() {
        let home = home();
        let (mut one, mut two) = (AliasFile::new(home.path()), AliasFile::new(home.path()));
        one.put("a", alias("/w", None, 5), 10).unwrap();
        two.put("b", alias("/w", None, 5), 10).unwrap();
        one.put("c", alias("/w", None, 5), 10).unwrap();
        let mut fresh = AliasFile::new(home.path());
        assert!(["a", "b", "c"].iter().all(|id| fresh.find(id, 10).is_some()));
    }

    #[test]
    fn unused_records_end_after_thirty_days_and_used_ones_never() {
        let home = home();
        let mut file = AliasFile::new(home.path());
        file.put("unused", alias("/w", None, 5), 10).unwrap();
        file.put("used", alias("/w", Some("s"), 5), 10).unwrap();
        let mut later = AliasFile::new(home.path());
        assert!(later.find("unused", 5 + UNUSED_FOR).is_none());
        assert!(later.find("used", 5 + UNUSED_FOR).is_some());
    }

    #[test]
    fn fields_of_other_bridges_are_kept() {
        let home = home();
        let path = home.path().join("v2/acp-lazy-sessions.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = json!({"x": {"cwd": "/w", "createdAt": 1, "zcodeSid": "s", "sandbox": {"on": true},
            "modelChoice": {"model": "p\\m", "at": 3}}, "torn": 7});
        std::fs::write(&path, text.to_string()).unwrap();
        let mut file = AliasFile::new(home.path());
        file.put("y", alias("/w", None, 5), 10).unwrap();
        let after: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(after["x"]["sandbox"]["on"], true);
        assert_eq!(after["x"]["modelChoice"]["model"], "p\\m");
        assert!(after.get("y").is_some());
    }

    #[test]
    fn a_torn_file_counts_as_empty_and_is_replaced() {
        let home = home();
        let path = home.path().join("v2/acp-lazy-sessions.json");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{\"a\": {").unwrap();
        let mut file = AliasFile::new(home.path());
        assert!(file.find("a", 1).is_none());
        file.put("b", alias("/w", None, 5), 10).unwrap();
        assert!(AliasFile::new(home.path()).find("b", 10).is_some());
    }

    #[test]
    fn a_torn_file_gets_back_what_this_process_knows() {
        let home = home();
        let path = home.path().join("v2/acp-lazy-sessions.json");
        let mut file = AliasFile::new(home.path());
        file.put("a", alias("/w", Some("s"), 5), 10).unwrap();
        std::fs::write(&path, "{\"a\": {").unwrap();
        file.put("b", alias("/w", None, 5), 10).unwrap();
        let mut fresh = AliasFile::new(home.path());
        assert!(fresh.find("a", 10).is_some() && fresh.find("b", 10).is_some());
    }

    #[test]
    fn bridges_that_write_at_the_same_time_lose_nothing() {
        let home = home();
        std::thread::scope(|scope| {
            for bridge in 0..4 {
                let home = home.path();
                scope.spawn(move || {
                    let mut file = AliasFile::new(home);
                    for n in 0..25 {
                        file.put(&format!("{bridge}-{n}"), alias("/w", None, 5), 10).unwrap();
                    }
                });
            }
        });
        let all = read(&home.path().join("v2/acp-lazy-sessions.json"), 10);
        assert_eq!(all.len(), 100);
    }

    #[test]
    fn of_several_ids_the_oldest_stands_for_the_engine_session() {
        let home = home();
        let mut file = AliasFile::new(home.path());
        file.put("new", alias("/w", Some("s"), 9), 10).unwrap();
        file.put("old", alias("/w", Some("s"), 2), 10).unwrap();
        assert_eq!(file.ids_of(10).get("s").map(String::as_str), Some("old"));
    }

    #[test]
    fn of_several_ids_the_newest_choice_counts() {
        let home = home();
        let with = |at: u64, model: &str| Alias {
            model_choice: Some(ModelChoice { model: Some(model.to_owned()), thought: None, at }),
            ..alias("/w", Some("s"), 1)
        };
        let mut file = AliasFile::new(home.path());
        file.put("a", with(5, "old"), 10).unwrap();
        file.put("b", with(9, "new"), 10).unwrap();
        file.put("c", Alias { zcode_sid: Some("other".into()), ..with(99, "not ours") }, 10)
            .unwrap();
        file.put("d", alias("/w", Some("s"), 1), 10).unwrap();
        let choice = AliasFile::new(home.path()).choice_of("s", 10).unwrap();
        assert_eq!((choice.model.as_deref(), choice.at), (Some("new"), 9));
        assert_eq!(AliasFile::new(home.path()).choice_of("nobody", 10), None);
    }

    #[test]
    fn nothing_is_left_behind_but_the_file() {
        let home = home();
        AliasFile::new(home.path()).put("a", alias("/w", None, 5), 10).unwrap();
        let names: Vec<_> = std::fs::read_dir(home.path().join("v2"))
            .unwrap()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert_eq!(names, ["acp-lazy-sessions.json"]);
    }
}
