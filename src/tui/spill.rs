//! Private files for what is too big to keep in memory.
//!
//! Owns one directory (0700) with one file (0600) per spilled text, all gone when it is dropped.
//! Must not decide what is spilled: the transcript does. Called by the application loop.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::model::transcript::body::{SpillKey, SpillWrite};
use crate::small_file::NO_LINK;

/// Bytes of one text that are read at once.
const MAX_READ: u64 = 64 * 1024 * 1024;
/// Bytes of one text that a page shows.
const PAGE_READ: u64 = 16 * 1024 * 1024;
/// Bytes that are searched between two looks at whether the search goes on.
const SEARCH_BLOCK: u64 = 256 * 1024;

/// The files of one run.
#[derive(Debug)]
pub struct SpillStore {
    dir: PathBuf,
    made: bool,
}

impl SpillStore {
    /// Names the directory, which must be this run's own; touches nothing yet.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, made: false }
    }

    /// Appends what the transcript handed over.
    ///
    /// # Errors
    /// When the directory or a file cannot be written; the texts' ends stay in memory.
    pub fn carry_out(&mut self, writes: Vec<SpillWrite>) -> io::Result<()> {
        if writes.is_empty() {
            return Ok(());
        }
        if !self.made {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            self.made = true;
        }
        for write in writes {
            let mut file = fs::OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .custom_flags(NO_LINK)
                .open(self.file(write.key))?;
            file.write_all(write.text.as_bytes())?;
        }
        Ok(())
    }

    /// What reads the files, for the pager.
    pub fn reader(&self) -> SpillReader {
        SpillReader { dir: self.dir.clone() }
    }

    fn file(&self, key: SpillKey) -> PathBuf {
        file_in(&self.dir, key)
    }
}

fn file_in(dir: &Path, key: SpillKey) -> PathBuf {
    dir.join(format!("{}.txt", key.0))
}

/// Reads spilled texts.
#[derive(Debug, Clone)]
pub struct SpillReader {
    dir: PathBuf,
}

impl SpillReader {
    /// Reads a text, or of a huge one its last part.
    pub fn read(&self, key: SpillKey) -> Option<String> {
        self.read_end(key, MAX_READ)
    }

    /// Reads as much of a text as a page shows.
    pub fn read_page(&self, key: SpillKey) -> Option<String> {
        self.read_end(key, PAGE_READ)
    }

    fn read_end(&self, key: SpillKey, most: u64) -> Option<String> {
        let mut file = fs::File::open(file_in(&self.dir, key)).ok()?;
        let left_out = file.metadata().ok()?.len().saturating_sub(most);
        file.seek(SeekFrom::Start(left_out)).ok()?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).ok()?;
        // Without a copy where it is what it should be, which nearly everything is.
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        if left_out > 0 {
            return Some(format!("[… {left_out} bytes above are left out …]\n{text}"));
        }
        Some(text)
    }

    /// Counts the matches of `needle` (in lower case) in a text, block by block of bounded size.
    /// `go_on` is asked between blocks; `None` when it says no or the file is gone.
    pub fn count(&self, key: SpillKey, needle: &str, go_on: &dyn Fn() -> bool) -> Option<usize> {
        let mut file = fs::File::open(file_in(&self.dir, key)).ok()?;
        let mut carried = String::new();
        let mut bytes = Vec::new();
        let mut count = 0;
        loop {
            if !go_on() {
                return None;
            }
            let mut block = (&mut file).take(SEARCH_BLOCK);
            if block.read_to_end(&mut bytes).ok()? == 0 {
                return Some(count + carried.matches(needle).count());
            }
            // A character that the block's end cuts waits for the next one.
            let whole = match std::str::from_utf8(&bytes) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Ok(_) | Err(_) => bytes.len(),
            };
            let rest = bytes.split_off(whole);
            carried.push_str(&String::from_utf8_lossy(&bytes).to_lowercase());
            bytes = rest;
            // So does a match: what is counted ends at the last line end.
            if let Some(end) = carried.rfind('\n') {
                let after = carried.split_off(end + 1);
                count += carried.matches(needle).count();
                carried = after;
            }
        }
    }
}

impl Drop for SpillStore {
    fn drop(&mut self) {
        if self.made {
            // Nothing can be done about a directory that will not go; it holds private files only.
            fs::remove_dir_all(&self.dir).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_private_in_order_and_gone_at_the_end() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("spill");
        let mut store = SpillStore::new(dir.clone());
        assert!(!dir.exists());
        let write = |text: &str| SpillWrite { key: SpillKey(1), text: text.to_owned() };
        store.carry_out(vec![write("a"), write("b")]).unwrap();
        store.carry_out(vec![write("c")]).unwrap();
        assert_eq!(store.reader().read(SpillKey(1)).as_deref(), Some("abc"));
        assert_eq!(store.reader().read(SpillKey(2)), None);
        let count = |needle: &str| store.reader().count(SpillKey(1), needle, &|| true);
        assert_eq!(count("abc"), Some(1));
        assert_eq!(store.reader().count(SpillKey(1), "a", &|| false), None);
        let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&dir.join("1.txt")), 0o600);
        drop(store);
        assert!(!dir.exists());
    }
}
