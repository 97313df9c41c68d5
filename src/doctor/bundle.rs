//! A report that is safe to post: the page, the settings, variables and the end of the log, with
//! secrets removed and the user's directories shortened. Called by `doctor --bundle`.

use std::fmt::Write as _;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde_json::Value;

use super::files;
use super::report::Page;
use crate::config::Config;
use crate::{logging, redact, small_file};

/// Bytes of the newest log file that go into the report.
const LOG_TAIL: u64 = 64 * 1024;
/// Variables whose value may be told; of others only the name.
const TELLING: &[&str] = &[
    "TERM",
    "COLORTERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "NO_COLOR",
    "ZCODE_CJS",
    "ZCODE_BIN",
    "ZCODE_NODE",
    "ZCODE_HOME",
    "ZCODE_MODEL",
    "ZCODE_PROVIDER",
];

pub(super) fn text(config: &Config, page: &Page) -> String {
    let mut text = format!(
        "# zcode-acp report\n\n{} on {}-{}\n\n## doctor\n\n",
        crate::cli::VERSION,
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    text.push_str(&page.to_text(false));
    text.push_str("\n## variables\n\n");
    for (name, value) in config.env.iter() {
        let name = name.to_string_lossy();
        let known = files::KNOWN_VARIABLES.contains(&&*name) || TELLING.contains(&&*name);
        if known && !redact::is_secret_name(&name) {
            let _ = writeln!(text, "{name}={}", value.to_string_lossy());
        } else if name.starts_with("ZCODE_") || name.starts_with("TMUX") || name.starts_with("SSH_")
        {
            let _ = writeln!(text, "{name} is set");
        }
    }
    if let Ok(settings) = small_file::read(&config.settings_path, 1024 * 1024) {
        let _ = writeln!(text, "\n## settings\n\n{}", known_settings(&settings));
    }
    let _ = writeln!(text, "\n## end of the log\n\n{}", log_tail(config));
    shorten(config, &redact::text(&text))
}

/// The settings that we know. What others keep in the file (addresses, keys) is named only.
fn known_settings(text: &str) -> String {
    match serde_json::from_str(text) {
        Ok(settings) => format!("{:#}", told(settings, "")),
        Err(_) => format!("{} bytes that are no JSON", text.len()),
    }
}

fn told(value: Value, path: &str) -> Value {
    match value {
        Value::Object(object) => object
            .into_iter()
            .map(|(key, value)| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let value = told(value, &path);
                (key, value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        value if crate::config::known_keys().any(|known| known == path) => value,
        _ => "(not told)".into(),
    }
}

fn log_tail(config: &Config) -> String {
    let mut files: Vec<_> = std::fs::read_dir(logging::log_dir(&config.state_dir))
        .into_iter()
        .flatten()
        .flatten()
        // Another kind of file would be waited for, or has no end.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .collect();
    files.sort(); // by date
    let Some(newest) = files.last() else { return "there is none".to_owned() };
    match end_of(newest, LOG_TAIL) {
        Ok(tail) => String::from_utf8_lossy(&tail).into_owned(),
        Err(err) => format!("it cannot be read: {err}"),
    }
}

/// The last bytes of a file.
fn end_of(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = small_file::open(path, rustix::fs::OFlags::NOFOLLOW)?;
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Takes the user's name out of paths.
fn shorten(config: &Config, text: &str) -> String {
    let home = config.home.to_string_lossy();
    if home.len() > 1 { text.replace(&*home, "~") } else { text.to_owned() }
}

/// Writes a new file that only the user can read.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
