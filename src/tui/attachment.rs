//! Files as they go with a prompt: pictures, known by their content and not by their name, and
//! small texts. Reads regular files only, whose size is bounded. Blocks: called by the jobs and by
//! the client, never by the loop.

use std::io::Read as _;
use std::path::Path;

use crate::small_file;

/// Largest picture that is sent.
const PICTURE: u64 = 5 * 1024 * 1024;
/// Largest text that is sent along rather than named.
const TEXT: u64 = 32 * 1024;

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    /// Its type, by its content.
    pub(super) mime: &'static str,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
}

/// Reads a picture, or says in words why it is none that can be sent.
pub(super) fn picture(path: &Path) -> Result<Picture, String> {
    let bytes = read(path, PICTURE)?;
    let mime = kind(&bytes).ok_or("its content is no png, jpeg, gif or webp")?;
    Ok(Picture { mime, bytes })
}

/// Reads a small text; none when it is large, or no text.
pub(super) fn text(path: &Path) -> Option<String> {
    let text = String::from_utf8(read(path, TEXT).ok()?).ok()?;
    (!text.contains('\0')).then_some(text)
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let told = |error: std::io::Error| format!("it could not be read ({error})");
    let file = small_file::open(path, rustix::fs::OFlags::empty()).map_err(told)?;
    let meta = file.metadata().map_err(told)?;
    if !meta.is_file() {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(told)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        let size = meta.len().max(most + 1);
        return Err(format!("it has {} KB, at most {} are sent", size / 1024, most / 1024));
    }
    Ok(bytes)
}

/// The type of a picture by its first bytes.
fn kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_known_by_its_content_and_bounded_in_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jpg");
        std::fs::write(&path, b"\x89PNG\r\n\x1a\nrest").unwrap();
        assert_eq!(picture(&path).unwrap().mime, "image/png");
        std::fs::write(&path, "a secret text").unwrap();
        assert!(picture(&path).unwrap_err().contains("no png"));
        std::fs::File::create(&path).unwrap().set_len(PICTURE + 1).unwrap();
        assert!(picture(&path).unwrap_err().contains("at most 5120"));
        assert!(picture(dir.path()).unwrap_err().contains("no file"));
        assert!(picture(&dir.path().join("none")).is_err());
    }

    #[test]
    fn only_a_small_text_is_a_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        for (bytes, is_text) in
            [(b"hello".to_vec(), true), (vec![0, 1], false), (vec![b'a'; 40_000], false)]
        {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(text(&path).is_some(), is_text);
        }
    }
}
