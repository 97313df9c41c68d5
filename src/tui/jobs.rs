//! Work that must not hold up a frame: reading long texts from disk, clipboard programs, exports.
//!
//! Owns the channel on which results come back as messages. Every job is bounded; a search that a
//! newer one makes needless stops. Called by the application loop.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::clipboard::Clipboard;
use super::model::transcript::block::BlockId;
use super::model::transcript::body::SpillKey;
use super::model::transcript::source::{self, Chunk};
use super::msg::Msg;
use super::spill::SpillReader;
use super::{attachment, listing};

/// Results that may wait for the loop.
const RESULTS: usize = 32;

/// Starts jobs.
#[derive(Debug)]
pub struct Jobs {
    clipboard: Clipboard,
    results: mpsc::Sender<Msg>,
    inbox: Option<mpsc::Receiver<Msg>>,
    /// Counts the searches; the older ones stop.
    search: Arc<AtomicU64>,
}

impl Jobs {
    /// Makes the owner of the jobs. Nothing is started yet.
    pub fn new(clipboard: Clipboard) -> Self {
        let (results, inbox) = mpsc::channel(RESULTS);
        Self { clipboard, results, inbox: Some(inbox), search: Arc::default() }
    }

    /// Where the results come; given once.
    pub fn results(&mut self) -> Option<mpsc::Receiver<Msg>> {
        self.inbox.take()
    }

    /// Copies a text, to the clipboard or to a file.
    pub fn copy(&self, chunks: Vec<Chunk>, reader: SpillReader, to_file: bool) {
        let clipboard = self.clipboard.clone();
        let results = self.results.clone();
        spawn(async move {
            let told = match beside(move || whole(&chunks, &reader)).await {
                Some(text) if to_file => clipboard.to_file(&text),
                Some(text) => clipboard.copy(&text).await,
                None => "not copied: the text could not be read".to_owned(),
            };
            tell(&results, Msg::Reported(told)).await;
        });
    }

    /// Writes a text to a new file, or hands it back to be shown.
    pub fn export(&self, chunks: Vec<Chunk>, reader: SpillReader, target: Option<PathBuf>) {
        let results = self.results.clone();
        spawn(async move {
            let made = beside(move || {
                let text = whole(&chunks, &reader);
                match target {
                    Some(target) => Msg::Reported(write(&target, &text)),
                    None => Msg::Paged { title: "conversation".to_owned(), text: text.into() },
                }
            });
            if let Some(msg) = made.await {
                tell(&results, msg).await;
            }
        });
    }

    /// Lists the files below a directory.
    pub fn list_files(&self, dir: PathBuf) {
        let results = self.results.clone();
        spawn(async move {
            let files = beside(move || listing::files(&dir)).await.unwrap_or_default();
            tell(&results, Msg::FilesListed(Arc::new(files))).await;
        });
    }

    /// Looks whether a picture can be sent.
    pub fn look_at(&self, word: String, path: PathBuf) {
        let results = self.results.clone();
        spawn(async move {
            let file = path.clone();
            let looked = beside(move || attachment::picture(&file).map(drop)).await;
            let result = looked.unwrap_or_else(|| Err("it could not be read".to_owned()));
            tell(&results, Msg::PictureLookedAt { word, path, result }).await;
        });
    }

    /// Counts the matches that only the disk has: each text comes with its block and with what
    /// memory, which was searched already, holds of it.
    pub fn search(
        &self,
        query: &str,
        texts: Vec<(BlockId, SpillKey, String)>,
        reader: SpillReader,
    ) {
        let mine = self.search.fetch_add(1, Ordering::SeqCst) + 1;
        if texts.is_empty() || query.is_empty() {
            return;
        }
        let newest = Arc::clone(&self.search);
        let results = self.results.clone();
        let query = query.to_owned();
        spawn(async move {
            let found = beside(move || {
                let go_on = || newest.load(Ordering::SeqCst) == mine;
                let needle = query.to_lowercase();
                let (mut matches, mut blocks) = (0, Vec::new());
                for (block, key, held) in texts {
                    if !go_on() {
                        return None;
                    }
                    let in_all = reader.count(key, &needle, &go_on).unwrap_or(0);
                    let known = held.to_lowercase().matches(&needle).count();
                    if in_all > known {
                        matches += in_all - known;
                        blocks.push(block);
                    }
                }
                Some(Msg::FoundOnDisk { query, matches, blocks })
            });
            if let Some(Some(msg)) = found.await {
                tell(&results, msg).await;
            }
        });
    }
}

fn whole(chunks: &[Chunk], reader: &SpillReader) -> String {
    source::assemble(chunks, &mut |key| reader.read(key))
}

fn write(target: &Path, text: &str) -> String {
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => format!("written to {}", target.display()),
        Err(error) => format!("{} was not written: {error}", target.display()),
    }
}

/// Runs what blocks on a thread of its own.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

async fn tell(results: &mpsc::Sender<Msg>, msg: Msg) {
    if results.send(msg).await.is_err() {
        tracing::debug!("a job ended after the loop");
    }
}

fn spawn(job: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(job));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::model::transcript::body::SpillWrite;
    use crate::tui::spill::SpillStore;

    fn jobs(dir: &Path) -> (Jobs, SpillStore, mpsc::Receiver<Msg>) {
        let mut store = SpillStore::new(dir.join("spill"));
        let text: String = (0..50_000).fold(String::new(), |text, n| text + &format!("Row {n}\n"));
        store.carry_out(vec![SpillWrite { key: SpillKey(1), text }]).unwrap();
        let env = [("ZCODE_ACP_CLIPBOARD".into(), "file".into())];
        let mut jobs = Jobs::new(Clipboard::new(&env, dir));
        let inbox = jobs.results().unwrap();
        (jobs, store, inbox)
    }

    fn chunks() -> Vec<Chunk> {
        vec![
            Chunk::Text("before\n".to_owned()),
            Chunk::Spilled { key: SpillKey(1), held: "held".to_owned() },
        ]
    }

    #[tokio::test]
    async fn what_lies_on_disk_is_found_and_the_older_search_stops() {
        let dir = tempfile::tempdir().unwrap();
        let (jobs, store, mut inbox) = jobs(dir.path());
        let texts = || vec![(BlockId(7), SpillKey(1), "Row 49999".to_owned())];
        jobs.search("row", texts(), store.reader());
        jobs.search("ROW 4999", texts(), store.reader());
        let Some(Msg::FoundOnDisk { query, matches, blocks }) = inbox.recv().await else {
            panic!()
        };
        assert_eq!((query.as_str(), matches, blocks), ("ROW 4999", 10, vec![BlockId(7)]));
        assert!(inbox.try_recv().is_err());
    }

    #[tokio::test]
    async fn an_export_holds_what_lies_on_disk_and_never_overwrites() {
        let dir = tempfile::tempdir().unwrap();
        let (jobs, store, mut inbox) = jobs(dir.path());
        let target = dir.path().join("out.md");
        for expected in ["written to", "was not written"] {
            jobs.export(chunks(), store.reader(), Some(target.clone()));
            let Some(Msg::Reported(told)) = inbox.recv().await else { panic!() };
            assert!(told.contains(expected), "{told}");
        }
        let text = std::fs::read_to_string(&target).unwrap();
        assert!(text.starts_with("before\nRow 0\n") && text.ends_with("Row 49999"));
        jobs.export(chunks(), store.reader(), None);
        let Some(Msg::Paged { text, .. }) = inbox.recv().await else { panic!() };
        assert!(text.ends_with("Row 49999"));
    }

    #[tokio::test]
    async fn a_copy_of_a_long_output_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (jobs, store, mut inbox) = jobs(dir.path());
        jobs.copy(chunks(), store.reader(), false);
        let Some(Msg::Reported(told)) = inbox.recv().await else { panic!() };
        assert!(told.starts_with("50001 lines written to"), "{told}");
        let text = std::fs::read_to_string(dir.path().join("copied.txt")).unwrap();
        assert!(text.ends_with("Row 49999"));
    }
}
