//! A prompt as the content blocks that an agent takes: the text as it was written, then what goes
//! with it. Files must lie inside the session's roots; a picture may lie anywhere, because the user
//! gave it by its path. What an agent does not take, or cannot be read, is named.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::roots::Roots;
use crate::tui::attachment;
use crate::tui::model::mention::{Attachment, name_of};

/// What a prompt may hold together, in bytes of content.
const TOGETHER: usize = 16 * 1024 * 1024;

/// What an agent takes in a prompt beside text and links.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Takes {
    images: bool,
    texts: bool,
}

impl Takes {
    /// Reads the answer to `initialize`.
    pub(super) fn of(answer: &Value) -> Self {
        let can = |what: &str| {
            let path = format!("/agentCapabilities/promptCapabilities/{what}");
            answer.pointer(&path).and_then(Value::as_bool) == Some(true)
        };
        Self { images: can("image"), texts: can("embeddedContext") }
    }
}

/// The blocks of a prompt, and what it had to go without, in words.
pub(super) fn blocks(
    text: &str,
    files: &[Attachment],
    roots: &Roots,
    takes: Takes,
) -> (Vec<Value>, Vec<String>) {
    let mut blocks = vec![json!({"type": "text", "text": text})];
    let mut without = Vec::new();
    let mut room = TOGETHER;
    for file in files {
        match block(file, roots, takes, &mut room) {
            Ok(block) => blocks.push(block),
            Err(why) => without.push(format!("{} ({why})", name_of(&file.path))),
        }
    }
    (blocks, without)
}

fn block(
    file: &Attachment,
    roots: &Roots,
    takes: Takes,
    room: &mut usize,
) -> Result<Value, String> {
    let path = if file.is_picture {
        file.path.clone()
    } else {
        roots.resolve(&file.path).map_err(|error| error.to_string())?
    };
    let uri = uri(&path);
    let mut fits = |bytes: usize| match room.checked_sub(bytes) {
        Some(left) => {
            *room = left;
            true
        }
        None => false,
    };
    let picture = if takes.images {
        attachment::picture(&path)
    } else {
        Err("the agent takes no pictures".to_owned())
    };
    match picture {
        Ok(picture) if fits(picture.bytes.len()) => {
            let data = STANDARD.encode(&picture.bytes);
            return Ok(
                json!({"type": "image", "mimeType": picture.mime, "data": data, "uri": uri}),
            );
        }
        Ok(_) if file.is_picture => return Err("the prompt holds enough already".to_owned()),
        Err(why) if file.is_picture => return Err(why),
        Ok(_) | Err(_) => {}
    }
    if takes.texts
        && let Some(text) = attachment::text(&path)
        && fits(text.len())
    {
        return Ok(
            json!({"type": "resource", "resource": {"uri": uri, "mimeType": "text/plain", "text": text}}),
        );
    }
    let meta = std::fs::metadata(&path).map_err(|error| error.to_string())?;
    Ok(json!({"type": "resource_link", "name": name_of(&path), "uri": uri, "size": meta.len()}))
}

/// The path as a `file:` address.
fn uri(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut out = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            out.push(char::from(*byte));
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema as acp;
    use serde::Deserialize as _;

    use super::*;

    fn of(dir: &Path, name: &str, is_picture: bool, caps: &Value) -> Result<Value, String> {
        let path = dir.join(name);
        let file = Attachment { token: format!("@{name}"), path, is_picture };
        let answer = json!({"agentCapabilities": {"promptCapabilities": caps}});
        let (blocks, mut without) = blocks("t", &[file], &Roots::new(dir), Takes::of(&answer));
        for block in &blocks {
            acp::ContentBlock::deserialize(block).unwrap();
        }
        blocks.get(1).cloned().ok_or_else(|| without.remove(0))
    }

    #[test]
    fn a_file_goes_as_what_the_agent_takes() {
        let dir = tempfile::tempdir().unwrap();
        let dir = &std::fs::canonicalize(dir.path()).unwrap();
        std::fs::write(dir.join("a b.txt"), "hello").unwrap();
        std::fs::write(dir.join("p.png"), b"\x89PNG\r\n\x1a\n").unwrap();
        let all = json!({"image": true, "embeddedContext": true});
        let text = of(dir, "a b.txt", false, &all).unwrap();
        assert_eq!(text["resource"]["text"], "hello");
        assert!(text["resource"]["uri"].as_str().unwrap().ends_with("/a%20b.txt"));
        let link = of(dir, "a b.txt", false, &json!({})).unwrap();
        assert_eq!(
            (&link["type"], &link["name"], &link["size"]),
            (&"resource_link".into(), &"a b.txt".into(), &5.into())
        );
        let picture = of(dir, "p.png", false, &all).unwrap();
        assert_eq!(
            (&picture["mimeType"], &picture["data"]),
            (&"image/png".into(), &"iVBORw0KGgo=".into())
        );
        assert_eq!(of(dir, "p.png", false, &json!({})).unwrap()["type"], "resource_link");
    }

    #[test]
    fn nothing_outside_of_the_session_goes_but_a_picture_that_was_given() {
        let outside = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("p.png"), b"\x89PNG\r\n\x1a\n").unwrap();
        std::fs::write(outside.path().join("secret.png"), "key").unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("out")).unwrap();
        let all = json!({"image": true, "embeddedContext": true});
        assert!(of(dir.path(), "out/p.png", false, &all).unwrap_err().contains("outside"));
        assert!(of(dir.path(), "out/secret.png", true, &all).unwrap_err().contains("no png"));
        assert_eq!(of(dir.path(), "out/p.png", true, &all).unwrap()["type"], "image");
        assert!(of(dir.path(), "out/p.png", true, &json!({})).unwrap_err().contains("no pictures"));
    }
}
