//! The files of the approval bridge: names, fields, private atomic writes, careful reads.
//! Knows nothing of waiting. Called by the bridge side and by the subcommand.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::asker::{self, Asker};
use crate::small_file;

/// Largest file that is read; a whole edited file can be in a payload.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Characters of the input that `brief` shows.
const MAX_BRIEF: usize = 400;
/// Answered questions are kept so long, for whoever answered them, then swept.
const KEPT: Duration = Duration::from_hours(24);
/// What is wrong with a directory that can be mended.
pub(super) const OPEN: &str = "others can write to it";

/// One question as it lies in its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// 12 hexadecimal digits, also the file's name.
    pub id: String,
    /// Always `zcode` when we write it.
    pub agent: String,
    /// Name of the tool that wants to run.
    pub tool_name: String,
    /// The tool's input as one line.
    pub brief: String,
    /// The engine's permission request, unchanged.
    pub payload: Box<RawValue>,
    /// Seconds since the epoch.
    pub created: f64,
    /// `pending`, `allow` or `deny`.
    pub status: String,
    /// Who answered, if they say so.
    #[serde(default)]
    pub via: Option<String>,
    /// A word from whoever answered; with a deny it is told to the model.
    #[serde(default)]
    pub note: Option<String>,
}

/// What an answered file says. Whoever answers may have written nothing but the status.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Answer {
    pub(super) status: String,
    #[serde(default)]
    pub(super) note: Option<Value>,
}

/// Why a question could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory is somebody else's, or open to others' writing.
    #[error("{} is not private: {problem}", dir.display())]
    NotPrivate {
        /// The directory.
        dir: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The file is a link, a device or too large.
    #[error("{} is not a plain file of bearable size", .0.display())]
    NotPlain(PathBuf),
    /// The file is no such record.
    #[error("not an approval record: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A directory of questions.
#[derive(Debug, Clone)]
pub(super) struct Store {
    dir: PathBuf,
}

impl Store {
    /// Takes a directory. A link to one is followed now and never again.
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        let store = Self { dir: std::fs::canonicalize(dir)? };
        store.check()?;
        Ok(store)
    }

    /// Whether the directory still is the user's alone.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let dir = &self.dir;
        let meta = std::fs::symlink_metadata(dir)?;
        let not_private = |problem| StoreError::NotPrivate { dir: dir.clone(), problem };
        if !meta.is_dir() {
            return Err(not_private("it is no directory"));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            if meta.uid() != rustix::process::geteuid().as_raw() {
                return Err(not_private("it belongs to another user"));
            }
            if meta.mode() & 0o022 != 0 {
                return Err(not_private(OPEN));
            }
        }
        Ok(())
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// Writes a new question.
    pub(super) fn create(&self, payload: &Value) -> Result<Pending, StoreError> {
        self.sweep();
        let id: String = uuid::Uuid::new_v4().simple().to_string().chars().take(12).collect();
        let input = payload.get("input").cloned().unwrap_or(Value::Null);
        let record = Record {
            id,
            agent: "zcode".to_owned(),
            tool_name: payload
                .get("toolName")
                .and_then(Value::as_str)
                .unwrap_or("unknown")
                .to_owned(),
            brief: brief(&serde_json::to_string(&input)?),
            payload: serde_json::value::to_raw_value(payload)?,
            created: now().as_secs_f64(),
            status: "pending".to_owned(),
            via: None,
            note: None,
        };
        let asker = Asker::stand(&self.dir, &record.id);
        self.write(&record.id, &serde_json::to_vec(&record)?)?;
        Ok(Pending { store: self.clone(), id: record.id, open: true, _asker: asker })
    }

    /// Reads one question.
    pub(super) fn read(&self, id: &str) -> Result<Record, StoreError> {
        Ok(serde_json::from_slice(&self.bytes(id)?)?)
    }

    /// Reads what was answered so far, in a directory that is still private.
    pub(super) fn answer_of(&self, id: &str) -> Result<Answer, StoreError> {
        self.check()?;
        Ok(serde_json::from_slice(&self.bytes(id)?)?)
    }

    fn bytes(&self, id: &str) -> Result<Vec<u8>, StoreError> {
        let file = open_plain(&self.path(id))?;
        let mut bytes = Vec::new();
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// All questions that can be read, oldest first, and the files that cannot.
    pub(super) fn list(&self) -> Result<(Vec<Record>, Vec<PathBuf>), StoreError> {
        let (mut records, mut unreadable) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            if let Some(id) = name.to_str().and_then(id_of) {
                match self.read(id) {
                    Ok(record) if record.id == id => records.push(record),
                    // Gone by now.
                    Err(StoreError::Io(err)) if err.kind() == io::ErrorKind::NotFound => {}
                    _ => unreadable.push(self.path(id)),
                }
            }
        }
        records.sort_by(|a, b| a.created.total_cmp(&b.created));
        Ok((records, unreadable))
    }

    /// Answers a question, if it is still open. Returns whether it was.
    pub(super) fn answer(
        &self,
        id: &str,
        status: &str,
        via: &str,
        note: Option<&str>,
    ) -> Result<bool, StoreError> {
        // Whatever else is in the file stays as it is, to the letter.
        let bytes = self.bytes(id)?;
        let mut fields: RawFields = serde_json::from_slice(&bytes)?;
        if serde_json::from_slice::<Record>(&bytes)?.status != "pending" {
            return Ok(false);
        }
        let news = [("status", json!(status)), ("via", json!(via)), ("note", json!(note))];
        for (key, value) in news {
            fields.insert(key.to_owned(), serde_json::value::to_raw_value(&value)?);
        }
        self.write(id, &serde_json::to_vec(&fields)?)?;
        Ok(true)
    }

    /// Writes beside the file and renames, so that nobody reads half of it.
    fn write(&self, id: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.path(id);
        let temporary = self.dir.join(format!(".{id}.{}.tmp", std::process::id()));
        let result = write_new(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, &path));
        if result.is_err() {
            drop(std::fs::remove_file(&temporary)); // may not be there
        }
        Ok(result?)
    }

    /// Closes a question whose asker was killed. Returns whether it was such a one.
    pub(super) fn close_if_gone(&self, record: &Record) -> bool {
        if record.status != "pending" || !asker::is_gone(&self.dir, &record.id) {
            return false;
        }
        let closed = self.answer(&record.id, "deny", "zcode-acp", Some("whoever asked is gone"));
        match closed {
            Ok(_) => asker::forget(&self.dir, &record.id),
            Err(err) => tracing::warn!(id = record.id, %err, "a question could not be closed"),
        }
        true
    }

    /// Removes questions of long ago, closes those whose asker was killed.
    fn sweep(&self) {
        let long_ago = now().saturating_sub(KEPT).as_secs_f64();
        for record in self.list().unwrap_or_default().0 {
            if record.created < long_ago {
                drop(std::fs::remove_file(self.path(&record.id))); // another process may be first
            } else {
                self.close_if_gone(&record);
            }
        }
        for entry in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let id = name.to_str().and_then(asker::id_of);
            if let Some(id) = id.filter(|id| !self.path(id).exists()) {
                asker::forget(&self.dir, id);
            }
        }
    }
}

type RawFields = std::collections::BTreeMap<String, Box<RawValue>>;

impl Record {
    /// Whether an answer still counts. Whoever asked waits no longer than the limit, and one that
    /// was killed has left its question behind.
    pub(super) fn is_open(&self, limit: Duration) -> bool {
        self.status == "pending" && self.created + limit.as_secs_f64() > now().as_secs_f64()
    }

    /// All that the tool is to do, as one line.
    pub(super) fn whole_input(&self) -> String {
        let payload: Map<String, Value> =
            serde_json::from_str(self.payload.get()).unwrap_or_default();
        payload.get("input").map_or_else(|| self.brief.clone(), Value::to_string)
    }
}

/// The input's beginning; a mark says that it goes on.
fn brief(input: &str) -> String {
    if input.chars().count() <= MAX_BRIEF {
        return input.to_owned();
    }
    input.chars().take(MAX_BRIEF - 1).chain(['…']).collect()
}

/// `0123456789ab.json` → `0123456789ab`.
fn id_of(name: &str) -> Option<&str> {
    let id = name.strip_suffix(".json")?;
    (id.len() == 12 && id.bytes().all(|b| b.is_ascii_hexdigit())).then_some(id)
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true); // never through a link that lies there
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}

fn open_plain(path: &Path) -> Result<std::fs::File, StoreError> {
    // A link must not lead us away.
    let file = small_file::open(path, rustix::fs::OFlags::NOFOLLOW)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > MAX_BYTES {
        return Err(StoreError::NotPlain(path.to_path_buf()));
    }
    Ok(file)
}

/// A question that waits. Dropped before it is settled, it is closed as denied, so that nobody
/// answers a question that nobody asks any more.
#[derive(Debug)]
pub(super) struct Pending {
    store: Store,
    id: String,
    open: bool,
    /// Dropped after the question is closed.
    _asker: Option<Asker>,
}

impl Pending {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn settled(mut self) {
        self.open = false;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.open
            && let Err(err) = self.store.answer(
                &self.id,
                "deny",
                "zcode-acp",
                Some("withdrawn: the turn ended or the time was up"),
            )
        {
            tracing::warn!(id = self.id, %err, "an approval file could not be closed");
        }
    }
}
