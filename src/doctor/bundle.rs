//! A report that is safe to post: the page, the settings, variables and the end of the log, with
//! secrets removed and the user's directories shortened. Called by `doctor --bundle`.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use super::report::Page;
use crate::config::Config;
use crate::{logging, redact};

/// Bytes of the newest log file that go into the report.
const LOG_TAIL: usize = 64 * 1024;
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
        let ours = name.starts_with("ZCODE_ACP_") || TELLING.contains(&&*name);
        if ours && !redact::is_secret_name(&name) {
            let _ = writeln!(text, "{name}={}", value.to_string_lossy());
        } else if name.starts_with("ZCODE_") || name.starts_with("TMUX") || name.starts_with("SSH_")
        {
            let _ = writeln!(text, "{name} is set");
        }
    }
    if let Ok(settings) = crate::small_file::read(&config.settings_path, 1024 * 1024) {
        let _ = writeln!(text, "\n## settings\n\n{settings}");
    }
    let _ = writeln!(text, "\n## end of the log\n\n{}", log_tail(config));
    shorten(config, &redact::text(&text))
}

fn log_tail(config: &Config) -> String {
    let mut files: Vec<_> = std::fs::read_dir(logging::log_dir(&config.state_dir))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort(); // by date
    let Some(newest) = files.last() else { return "there is none".to_owned() };
    let bytes = std::fs::read(newest).unwrap_or_default();
    let tail = bytes.get(bytes.len().saturating_sub(LOG_TAIL)..).unwrap_or_default();
    String::from_utf8_lossy(tail).into_owned()
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
