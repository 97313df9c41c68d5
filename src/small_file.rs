//! Reads small files that others write: settings, accounts, tables. Whatever lies at the path, the
//! read ends: a pipe nobody writes to, a device or a file without end is an error, not a wait.
//! Called by everything that reads a file at a fixed place.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Flags for opening a file that is to be written: a link at its place is not followed, and a pipe
/// is not waited for.
pub const NO_LINK: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()).cast_signed();

/// The text of a regular file of at most `max_bytes` bytes, without a byte order mark.
///
/// # Errors
///
/// As the system says, and when it is no regular file, too large, or no UTF-8.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<String> {
    let file = open(path, OFlags::NOCTTY)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let too_large = || io::Error::other(format!("larger than {}", size(max_bytes)));
    if meta.len() > max_bytes {
        return Err(too_large());
    }
    // It may grow meanwhile.
    let mut text = String::new();
    let read = file.take(max_bytes.saturating_add(1)).read_to_string(&mut text)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > max_bytes {
        return Err(too_large());
    }
    if text.starts_with('\u{feff}') {
        drop(text.drain(..'\u{feff}'.len_utf8()));
    }
    Ok(text)
}

/// Opens whatever lies at the path for reading, without a wait: a pipe would be waited for until
/// somebody writes to it. `flags` come on top.
///
/// # Errors
///
/// As the system says.
pub fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = i32::try_from((flags | OFlags::NONBLOCK).bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn size(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    if bytes >= MIB { format!("{} MiB", bytes / MIB) } else { format!("{bytes} bytes") }
}

/// Makes a pipe that nobody writes to.
#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::unwrap_used, reason = "this is test code, which fails by panicking")]
pub(crate) fn make_pipe(path: &Path) {
    let access = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, access, 0).unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_regular_file_is_read_without_its_mark() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "\u{feff}text").unwrap();
        assert_eq!(read(&path, 7).unwrap(), "text");
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        assert_eq!(read(&dir.path().join("link"), 7).unwrap(), "text");
        assert_eq!(read(&path, 6).unwrap_err().to_string(), "larger than 6 bytes");
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read(&path, 9).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(&dir.path().join("none"), 9).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_a_device_and_a_directory_are_errors_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        make_pipe(&pipe);
        for path in [pipe.as_path(), Path::new("/dev/zero"), dir.path()] {
            assert_eq!(read(path, 9).unwrap_err().to_string(), "not a regular file", "{path:?}");
        }
    }
}
