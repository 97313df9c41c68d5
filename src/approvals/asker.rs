//! Whether whoever asked is still there. The question's file has no field for it, so a lock beside
//! it says so: `.<id>.asker`, held as long as the question waits. The system frees the lock when its
//! holder is killed; the file that is left says that there was one. Called by the store.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::small_file;

/// Longest name of a machine.
const MAX_NAME: u64 = 256;

/// A question's asker, as long as this lives.
#[derive(Debug)]
pub(super) struct Asker {
    path: PathBuf,
    _locked: File,
}

impl Asker {
    /// Says that somebody waits for the answer; `None` where files cannot be locked.
    pub(super) fn stand(dir: &Path, id: &str) -> Option<Self> {
        let path = path(dir, id);
        let temporary = dir.join(format!(".{id}.{}.tmp", std::process::id()));
        let made = locked(&temporary).and_then(|file| {
            // It gets its name once it is locked: nobody ever finds it open.
            std::fs::rename(&temporary, &path)?;
            Ok(Self { path: path.clone(), _locked: file })
        });
        made.map_err(|err| {
            drop(std::fs::remove_file(&temporary)); // may not be there
            tracing::debug!(%err, "whether this question is still asked cannot be seen by others");
        })
        .ok()
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path)); // another process may have swept it
    }
}

/// Whether there was an asker of this machine and is none any more. What cannot be known is no.
pub(super) fn is_gone(dir: &Path, id: &str) -> bool {
    let Ok(mut file) = small_file::open(&path(dir, id), OFlags::NOFOLLOW) else { return false };
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let mut name = String::new();
    let read = (&mut file).take(MAX_NAME).read_to_string(&mut name);
    // Over a network drive another machine's locks may not be seen.
    read.is_ok() && name == machine() && matches!(file.try_lock_shared(), Ok(()))
}

/// Removes what a killed asker left.
pub(super) fn forget(dir: &Path, id: &str) {
    if is_gone(dir, id) {
        drop(std::fs::remove_file(path(dir, id))); // another process may be first
    }
}

/// `.0123456789ab.asker` → `0123456789ab`.
pub(super) fn id_of(name: &str) -> Option<&str> {
    name.strip_prefix('.')?.strip_suffix(".asker")
}

fn path(dir: &Path, id: &str) -> PathBuf {
    dir.join(format!(".{id}.asker"))
}

fn locked(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let mut file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(machine().as_bytes())?;
    file.try_lock().map_err(|err| match err {
        TryLockError::Error(err) => err,
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
    })?;
    Ok(file)
}

/// A name for the system that keeps the locks: the running kernel's.
fn machine() -> String {
    let boot = small_file::read(Path::new("/proc/sys/kernel/random/boot_id"), MAX_NAME);
    boot.map_or_else(|_| std::env::consts::OS.to_owned(), |id| id.trim().to_owned())
}
