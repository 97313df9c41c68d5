//! `fs/read_text_file` and `fs/write_text_file`, inside the session's roots.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::connection::respond;
use super::roots::Roots;
use crate::small_file;

/// Largest file that is read for an agent.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The files an agent may touch.
#[derive(Debug)]
pub(super) struct Files {
    roots: Roots,
}

impl Files {
    pub(super) fn new(roots: Roots) -> Self {
        Self { roots }
    }

    /// Answers the request from a thread that may block.
    pub(super) fn handle(&self, method: &str, params: Value, responder: Responder<Value>) {
        let roots = self.roots.clone();
        let write = method == "fs/write_text_file";
        tokio::task::spawn_blocking(move || {
            let result =
                if write { write_file(&roots, &params) } else { read_file(&roots, &params) };
            respond(responder, result);
        });
    }
}

fn path_of(params: &Value) -> Result<&Path, Error> {
    let path = params.get("path").and_then(Value::as_str);
    path.map(Path::new).ok_or_else(|| Error::invalid_params().data("path is missing"))
}

fn to_error(path: &Path, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        Error::new(-32002, "resource not found").data(json!({"uri": path.display().to_string()}))
    } else {
        Error::invalid_params().data(json!({"path": path, "details": error.to_string()}))
    }
}

fn read_file(roots: &Roots, params: &Value) -> Result<Value, Error> {
    let path = path_of(params)?;
    let text = (|| {
        let real = roots.resolve(path)?;
        let mut file = regular(small_file::open(&real, OFlags::empty())?)?;
        let size = file.metadata()?.len();
        if size > MAX_FILE {
            return Err(io::Error::other(format!("the file has {size} bytes, which is too large")));
        }
        let mut text = String::new();
        (&mut file).take(MAX_FILE).read_to_string(&mut text)?;
        Ok(text)
    })()
    .map_err(|e| to_error(path, &e))?;
    let number =
        |k: &str| params.get(k).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    Ok(json!({"content": cut(&text, number("line"), number("limit"))}))
}

/// A pipe would be waited for, a device has no end.
fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("no regular file")) }
}

/// Lines from `line` (counted from 1), at most `limit`, with their line ends.
fn cut(text: &str, line: Option<usize>, limit: Option<usize>) -> String {
    if line.is_none() && limit.is_none() {
        return text.to_owned();
    }
    text.split_inclusive('\n')
        .skip(line.unwrap_or(1).saturating_sub(1))
        .take(limit.unwrap_or(usize::MAX))
        .collect()
}

fn write_file(roots: &Roots, params: &Value) -> Result<Value, Error> {
    let path = path_of(params)?;
    let content = params
        .get("content")
        .and_then(Value::as_str)
        .ok_or_else(|| Error::invalid_params().data("content is missing"))?;
    (|| {
        let real = roots.resolve(path)?;
        if let Some(parent) = real.parent() {
            std::fs::create_dir_all(parent)?;
        }
        // Between the look and the write a link might have been put there.
        let real = roots.resolve(&real)?;
        // A pipe that nobody reads would be waited for.
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).custom_flags(small_file::NO_LINK);
        let mut file = regular(options.open(real)?)?;
        file.set_len(0)?;
        file.write_all(content.as_bytes())
    })()
    .map_err(|e| to_error(path, &e))?;
    Ok(json!({}))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileTypeExt as _;

    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(cut("a\nb\nc\n", Some(1), Some(2)), "a\nb\n");
        assert_eq!(cut("a\nb\nc\n", Some(3), None), "c\n");
        assert_eq!(cut("a\nb", None, None), "a\nb");
        assert_eq!(cut("a\nb", Some(9), Some(1)), "");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_or_a_device_is_neither_read_nor_written() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::new(dir.path());
        let pipe = dir.path().join("pipe");
        small_file::make_pipe(&pipe);
        for path in [pipe.as_path(), dir.path()] {
            let params = json!({"path": path, "content": "x"});
            assert!(read_file(&roots, &params).is_err(), "{path:?}");
            assert!(write_file(&roots, &params).is_err(), "{path:?}");
        }
        assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    }

    #[test]
    fn a_file_is_written_and_read_inside_the_root_only() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::new(dir.path());
        let path = dir.path().join("new/a.txt");
        let params = json!({"path": path, "content": "one\ntwo\n", "line": 2});
        write_file(&roots, &params).unwrap();
        assert_eq!(read_file(&roots, &params).unwrap()["content"], "two\n");
        let outside = json!({"path": "/etc/passwd"});
        assert!(read_file(&roots, &outside).is_err());
        let missing = json!({"path": dir.path().join("nope")});
        assert_eq!(i32::from(read_file(&roots, &missing).unwrap_err().code), -32002);
    }
}
