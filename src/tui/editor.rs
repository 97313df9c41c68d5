//! The user's editor: which one it is, and the private file it is given.
//!
//! Must not touch the terminal's modes: the application loop hands the terminal over before
//! [`start`] and takes it back after the editor's end.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::process::{self, ChildSpec};

/// Used when the user names none.
const FALLBACK: &str = "vi";

/// The user's editor: `VISUAL`, else `EDITOR`, else `vi`. It may hold arguments.
pub fn named(env: &[(OsString, OsString)]) -> String {
    let var = |name: &str| {
        let value = env.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        value.and_then(|value| value.to_str()).map(str::trim).filter(|value| !value.is_empty())
    };
    var("VISUAL").or_else(|| var("EDITOR")).unwrap_or(FALLBACK).to_owned()
}

/// Writes `text` into a new private file in `dir`.
///
/// # Errors
/// When the directory or the file cannot be written.
pub fn write(dir: &Path, text: &str) -> io::Result<PathBuf> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let file = dir.join(format!("edit-{}.md", uuid::Uuid::new_v4().simple()));
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)?
        .write_all(text.as_bytes())?;
    Ok(file)
}

/// Starts the editor on the terminal. The shell takes its name apart, as other programs let it.
///
/// # Errors
/// When it cannot be started.
pub fn start(editor: &str, file: &Path) -> io::Result<tokio::process::Child> {
    let script = format!("{editor} \"$@\"");
    let args = [OsString::from("-c"), script.into(), editor.into(), file.into()];
    process::foreground(&ChildSpec { args: args.to_vec(), ..ChildSpec::new("/bin/sh") })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_editor_is_the_one_that_the_environment_names() {
        let named = |vars: &[(&str, &str)]| {
            let env: Vec<_> = vars.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
            super::named(&env)
        };
        assert_eq!(named(&[("EDITOR", "nano"), ("VISUAL", "code --wait")]), "code --wait");
        assert_eq!(named(&[("EDITOR", "nano"), ("VISUAL", " ")]), "nano");
        assert_eq!(named(&[]), "vi");
    }

    #[tokio::test]
    async fn an_editor_with_arguments_changes_the_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = write(&dir.path().join("tui"), "hello\n").unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let mut child = start("sed -i.bak s/hello/你好/", &file).unwrap();
        assert!(child.wait().await.unwrap().success());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "你好\n");
    }
}
