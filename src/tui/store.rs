//! What is kept on disk between two runs in one directory: the draft with the queue, and the
//! prompts of before. Private files below the state directory; a file that cannot be read or
//! written costs nothing but what is in it.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::model::Draft;
use super::model::composer::Chip;
use crate::small_file::{self, NO_LINK};

/// Prompts kept in the file; it is cut back to these when it has twice as many.
const HISTORY_LIMIT: usize = 1000;
/// Largest file that is read; a draft may hold what was pasted.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The files of one working directory.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
    cwd: PathBuf,
}

impl Store {
    /// Names the files for `cwd` below `state_dir`; touches nothing yet.
    pub fn new(state_dir: &Path, cwd: &Path) -> Self {
        let digest = Sha256::digest(cwd.as_os_str().as_encoded_bytes());
        let name: String = digest.iter().take(8).fold(String::new(), |mut name, byte| {
            use std::fmt::Write as _;
            let _infallible = write!(name, "{byte:02x}");
            name
        });
        Self { dir: state_dir.join("tui").join(name), cwd: cwd.to_owned() }
    }

    /// Reads the prompts sent from here, oldest first.
    pub fn history(&self) -> Vec<String> {
        let Ok(text) = small_file::read(&self.history_file(), MAX_BYTES) else { return Vec::new() };
        let mut prompts: Vec<String> =
            text.lines().filter_map(|line| serde_json::from_str::<String>(line).ok()).collect();
        if prompts.len() > 2 * HISTORY_LIMIT {
            prompts.drain(..prompts.len() - HISTORY_LIMIT);
            let kept: Vec<String> = prompts.iter().map(|p| json!(p).to_string() + "\n").collect();
            if let Err(error) = write_private(&self.history_file(), kept.concat().as_bytes()) {
                tracing::warn!(%error, "the history could not be cut back");
            }
        }
        prompts
    }

    /// Appends a prompt.
    pub fn add_history(&self, prompt: &str) -> io::Result<()> {
        self.make_dir()?;
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .custom_flags(NO_LINK)
            .open(self.history_file())?;
        // One write, so that two terminals in one directory do not mix their lines.
        file.write_all((json!(prompt).to_string() + "\n").as_bytes())
    }

    /// Reads the draft that was left here.
    pub fn draft(&self) -> Option<Draft> {
        let value: Value =
            serde_json::from_str(&small_file::read(&self.draft_file(), MAX_BYTES).ok()?).ok()?;
        let text = |v: &Value, k: &str| v.get(k).and_then(Value::as_str).map(str::to_owned);
        let list = |k: &str| value.get(k).and_then(Value::as_array).cloned().unwrap_or_default();
        let texts = |k: &str| -> Vec<String> {
            list(k).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let draft = Draft {
            text: text(&value, "text")?,
            chips: list("chips")
                .iter()
                .filter_map(|c| {
                    Some(Chip { label: text(c, "label")?, content: text(c, "content")? })
                })
                .collect(),
            queue: texts("queue"),
            mentions: texts("mentions"),
        };
        (draft != Draft::default()).then_some(draft)
    }

    /// Writes the draft; an empty one removes the file.
    pub fn set_draft(&self, draft: &Draft) -> io::Result<()> {
        if *draft == Draft::default() {
            return match fs::remove_file(self.draft_file()) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            };
        }
        self.make_dir()?;
        let chips: Vec<Value> =
            draft.chips.iter().map(|c| json!({"label": c.label, "content": c.content})).collect();
        let value = json!({"cwd": self.cwd, "text": draft.text, "chips": chips, "queue": draft.queue,
            "mentions": draft.mentions});
        write_private(&self.draft_file(), value.to_string().as_bytes())
    }

    fn make_dir(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)
    }

    fn history_file(&self) -> PathBuf {
        self.dir.join("history.jsonl")
    }

    fn draft_file(&self) -> PathBuf {
        self.dir.join("draft.json")
    }
}

/// Writes beside the file and renames, so that a kill in between leaves the old one whole.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600).custom_flags(NO_LINK);
    let mut file = options.open(&beside)?;
    file.write_all(bytes)?;
    drop(file);
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn draft_and_history_come_back_in_the_same_directory_only() {
        let dir = tempfile::tempdir().unwrap();
        let here = Store::new(dir.path(), Path::new("/a"));
        let draft = Draft {
            text: "x [pasted #1: 99 lines]".into(),
            chips: vec![Chip { label: "[pasted #1: 99 lines]".into(), content: "long".into() }],
            queue: vec!["next".into()],
            mentions: vec!["src/main.rs".into()],
        };
        here.set_draft(&draft).unwrap();
        here.add_history("one\ntwo").unwrap();
        here.add_history("three").unwrap();
        assert_eq!(here.draft(), Some(draft));
        assert_eq!(here.history(), ["one\ntwo", "three"]);
        assert_eq!(Store::new(dir.path(), Path::new("/b")).draft(), None);
        let mode = fs::metadata(here.draft_file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        here.set_draft(&Draft::default()).unwrap();
        assert_eq!(here.draft(), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_is_not_waited_for_and_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let s = Store::new(dir.path(), Path::new("/a"));
        s.make_dir().unwrap();
        small_file::make_pipe(&s.history_file());
        small_file::make_pipe(&s.draft_file());
        assert!(s.history().is_empty() && s.draft().is_none());
        assert!(s.add_history("x").is_err());

        let precious = dir.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        fs::remove_file(s.history_file()).unwrap();
        for file in [s.history_file(), s.draft_file().with_extension("new")] {
            std::os::unix::fs::symlink(&precious, file).unwrap();
        }
        assert!(s.add_history("x").is_err());
        assert!(s.set_draft(&Draft { text: "x".into(), ..Draft::default() }).is_err());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    }

    #[test]
    fn a_torn_file_costs_only_what_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let s = Store::new(dir.path(), Path::new("/a"));
        s.add_history("ok").unwrap();
        fs::write(s.history_file(), "\"ok\"\n\"torn").unwrap();
        fs::write(s.draft_file(), "{\"text\": ").unwrap();
        assert_eq!(s.history(), ["ok"]);
        assert_eq!(s.draft(), None);
    }
}
