//! Checks of files and settings: directories, permissions, settings file, log, locale, variables.

use std::path::{Path, PathBuf};

use super::report::{Check, Level};
use crate::config::{Config, Env};
use crate::logging;

const GROUP: &str = "files";

/// Variables of ours that mean something; others that begin so are typing mistakes.
pub(super) const KNOWN_VARIABLES: &[&str] = &[
    "ZCODE_ACP_APPROVAL_BRIDGE",
    "ZCODE_ACP_APPROVAL_DIR",
    "ZCODE_ACP_AUTO_COMPACT_THRESHOLD",
    "ZCODE_ACP_CLIPBOARD",
    "ZCODE_ACP_DEBUG",
    "ZCODE_ACP_INTERACTION_TIMEOUT_MS",
    "ZCODE_ACP_LANG",
    "ZCODE_ACP_LIVE_ENTITLEMENT",
    "ZCODE_ACP_LOG",
    "ZCODE_ACP_MODE",
    "ZCODE_ACP_MODEL",
    "ZCODE_ACP_REDUCED_MOTION",
    "ZCODE_ACP_SHOW_COMPLETION_STATUS",
    "ZCODE_ACP_STATE_DIR",
    "ZCODE_ACP_STEER_FK_RETRY_MS",
    "ZCODE_ACP_STEER_PERSIST_MS",
];
/// Variables of the TypeScript bridge for parts that are not here.
const FOREIGN_VARIABLES: &[&str] = &[
    "ZCODE_ACP_BOOT_CREATE_SESSION",
    "ZCODE_ACP_GOAL_",
    "ZCODE_ACP_HUB_",
    "ZCODE_ACP_PROJECT_ROOTS",
    "ZCODE_ACP_PUSH_",
    "ZCODE_ACP_REMOTE",
    "ZCODE_ACP_RESUME_SESSION",
    "ZCODE_ACP_SANDBOX",
    "ZCODE_ACP_SKIP_MODEL_PROBE",
    "ZCODE_ACP_SPAWN_NONCE",
    "ZCODE_ACP_TAB_TITLE",
    "ZCODE_ACP_TUI_CLI_PID",
];

pub(super) fn checks(config: &Config) -> Vec<Check> {
    let state = state_dir(&config.state_dir);
    let has_state = state.level != Level::Problem;
    let mut checks = settings(config);
    checks.push(state);
    if config.engine.demo.is_none() {
        checks.push(zcode_home(config));
    }
    if has_state {
        checks.push(log(config)); // lies in it: one fault is told once
    }
    checks.extend(approvals(config));
    checks.extend(variables(&config.env));
    checks.push(locale(&config.env));
    checks
}

/// Every `zcode-acp` that is found by name; the first one is what editors start.
pub(super) fn programs_on_path(env: &Env, own: Option<&Path>) -> Option<Check> {
    let path = env.get("PATH")?;
    let found: Vec<PathBuf> = std::env::split_paths(path)
        .map(|dir| dir.join("zcode-acp"))
        .filter(|file| file.is_file())
        .collect();
    let first = found.first()?;
    let same = |a: &Path, b: &Path| a.canonicalize().ok() == b.canonicalize().ok();
    let text = found.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join("\n");
    Some(match own {
        Some(own) if !same(first, own) => Check::warning(
            "program",
            "on PATH",
            text,
            format!(
                "another program of this name comes first; give editors the whole path {}",
                own.display()
            ),
        ),
        _ => Check::ok("program", "on PATH", text),
    })
}

/// What is wrong with the file, with flags and variables, and who may write the file: each has
/// another remedy.
fn settings(config: &Config) -> Vec<Check> {
    let path = config.settings_path.display().to_string();
    let (in_file, elsewhere): (Vec<&str>, Vec<&str>) =
        config.warnings.iter().map(String::as_str).partition(|line| line.starts_with(&path));
    let mut checks = vec![if !in_file.is_empty() {
        Check::warning(GROUP, "settings", in_file.join("\n"), format!("mend {path}"))
    } else if config.settings_path.is_file() {
        match mode(&config.settings_path).filter(|mode| mode & 0o022 != 0) {
            Some(mode) => Check::warning(
                GROUP,
                "settings",
                format!("{path} can be written by others (mode {mode:o})"),
                format!("chmod 600 {path}"),
            ),
            None => Check::ok(GROUP, "settings", path),
        }
    } else {
        Check::ok(GROUP, "settings", format!("{path} (not there, defaults are used)"))
    }];
    if !elsewhere.is_empty() {
        let names: Vec<&str> =
            elsewhere.iter().filter_map(|line| line.split(['=', ' ']).next()).collect();
        let fix = format!("correct {}, or leave it out", names.join(" and "));
        checks.push(Check::warning(GROUP, "values", elsewhere.join("\n"), fix));
    }
    checks
}

fn state_dir(dir: &Path) -> Check {
    let name = dir.display().to_string();
    if let Err(err) = logging::private_dir(dir) {
        return Check::problem(
            GROUP,
            "state",
            format!("{name}: {err}"),
            "make the directory writable, or set ZCODE_ACP_STATE_DIR to another",
        );
    }
    match mode(dir) {
        Some(mode) if mode & 0o077 != 0 => Check::warning(
            GROUP,
            "state",
            format!("{name} is open to others (mode {mode:o})"),
            format!("chmod 700 {name}"),
        ),
        _ => Check::ok(GROUP, "state", name),
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    Some(std::fs::metadata(path).ok()?.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode(_path: &Path) -> Option<u32> {
    None
}

fn zcode_home(config: &Config) -> Check {
    let dir = &config.zcode_home;
    let name = dir.display().to_string();
    // The engine takes the parent directory, and only of a directory that is called so.
    if dir.file_name().is_some_and(|name| name != ".zcode") {
        return Check::warning(
            GROUP,
            "ZCode home",
            format!("{name}: the engine only knows directories named .zcode"),
            "let ZCODE_HOME end in /.zcode",
        );
    }
    match std::fs::read_dir(dir) {
        Ok(_) => Check::ok(GROUP, "ZCode home", name),
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Check::warning(
            GROUP,
            "ZCode home",
            format!("{name} is not there"),
            "start the ZCode app once; it makes the directory",
        ),
        Err(err) => Check::problem(
            GROUP,
            "ZCode home",
            format!("{name}: {err}"),
            "make it readable for you",
        ),
    }
}

fn log(config: &Config) -> Check {
    let dir = logging::log_dir(&config.state_dir);
    let bytes: u64 = std::fs::read_dir(&dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.metadata().ok())
        .map(|meta| meta.len())
        .sum();
    match logging::problem(&config.env) {
        Some(problem) => Check::warning(
            GROUP,
            "log",
            problem,
            "use off, error, warn, info, debug, trace, or target=level, …",
        ),
        None => match logging::private_dir(&dir).and_then(|()| super::engine::usable_dir(&dir)) {
            Ok(()) if !logging::is_ours_alone(&dir) => Check::problem(
                GROUP,
                "log",
                format!("others can write to {}; nothing is logged", dir.display()),
                format!("chmod 700 {}", dir.display()),
            ),
            Ok(()) => Check::ok(GROUP, "log", format!("{} ({} KiB)", dir.display(), bytes / 1024)),
            Err(err) => Check::problem(
                GROUP,
                "log",
                format!("{}: {err}; nothing is logged", dir.display()),
                "make it a directory that you can write, or set ZCODE_ACP_STATE_DIR to another",
            ),
        },
    }
}

fn approvals(config: &Config) -> Option<Check> {
    if config.env.flag("ZCODE_ACP_APPROVAL_BRIDGE") != Some(true) {
        return None;
    }
    let dir = config.default_approval_dir.display().to_string();
    Some(match &config.approval_dir {
        None => Check::warning(
            GROUP,
            "approvals",
            format!("{dir} is not there, so dialogs are used"),
            format!("mkdir -p -m 700 {dir}"),
        ),
        Some(path) => match crate::approvals::ApprovalBridge::open(path) {
            Ok(_) => Check::ok(GROUP, "approvals", format!("as files in {dir}")),
            Err(err) => {
                Check::problem(GROUP, "approvals", err.to_string(), format!("chmod 700 {dir}"))
            }
        },
    })
}

fn variables(env: &Env) -> Option<Check> {
    let unknown: Vec<&str> = env
        .iter()
        .filter_map(|(name, _)| name.to_str())
        .filter(|name| name.starts_with("ZCODE_ACP_") && !name.starts_with("ZCODE_ACP_TEST_"))
        .filter(|name| !KNOWN_VARIABLES.contains(name))
        .collect();
    let (foreign, wrong): (Vec<&str>, Vec<&str>) =
        unknown.into_iter().partition(|name| FOREIGN_VARIABLES.iter().any(|f| name.starts_with(f)));
    if !wrong.is_empty() {
        return Some(Check::warning(
            GROUP,
            "variables",
            format!("{} mean nothing", wrong.join(", ")),
            "look for a typing mistake; the README lists all variables",
        ));
    }
    (!foreign.is_empty()).then(|| {
        let text = format!("{}: for parts that this program does not have", foreign.join(", "));
        Check::ok(GROUP, "variables", text)
    })
}

fn locale(env: &Env) -> Check {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| Some((name, env.str(name)?)));
    let is_utf8 = |value: &str| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    };
    match set {
        Some((name, value)) if is_utf8(value) => {
            Check::ok(GROUP, "locale", format!("{name}={value}"))
        }
        // The system's own default on a Mac is UTF-8.
        None if cfg!(target_os = "macos") => Check::ok(GROUP, "locale", "the system's"),
        other => Check::warning(
            GROUP,
            "locale",
            other.map_or_else(|| "not set".to_owned(), |(name, value)| format!("{name}={value}")),
            "export LANG=C.UTF-8, or wide characters are drawn wrongly by tmux and ssh",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().copied().collect()
    }

    #[test]
    fn the_readme_has_every_variable() {
        let readme = include_str!("../../README.md");
        // The language is the desktop app's; nothing here is translated.
        for name in KNOWN_VARIABLES.iter().filter(|name| **name != "ZCODE_ACP_LANG") {
            assert!(readme.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn a_locale_without_utf8_is_a_warning() {
        assert_eq!(locale(&env(&[("LANG", "de_DE.UTF-8")])).level, Level::Ok);
        assert_eq!(locale(&env(&[("LANG", "C.utf8")])).level, Level::Ok);
        assert_eq!(locale(&env(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")])).level, Level::Warning);
    }

    #[test]
    fn a_variable_that_means_nothing_is_a_warning_and_a_foreign_one_is_not() {
        assert_eq!(variables(&env(&[("ZCODE_ACP_MODE", "plan")])), None);
        let wrong = variables(&env(&[("ZCODE_ACP_MODLE", "x")])).unwrap();
        assert_eq!(wrong.level, Level::Warning);
        assert!(wrong.text.contains("ZCODE_ACP_MODLE"));
        assert_eq!(variables(&env(&[("ZCODE_ACP_HUB_PORT", "1")])).unwrap().level, Level::Ok);
    }

    #[cfg(unix)]
    #[test]
    fn a_state_directory_open_to_others_is_a_warning_and_one_that_cannot_be_made_a_problem() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("state");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(state_dir(&open).level, Level::Warning);
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(state_dir(&open).level, Level::Ok);
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(state_dir(&file.join("state")).level, Level::Problem);
    }

    #[test]
    fn the_first_program_of_the_name_must_be_this_one() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("zcode-acp");
        std::fs::write(&program, "").unwrap();
        let path = env(&[("PATH", dir.path().to_str().unwrap())]);
        assert_eq!(programs_on_path(&path, Some(&program)).unwrap().level, Level::Ok);
        let other = dir.path().join("other");
        std::fs::write(&other, "").unwrap();
        assert_eq!(programs_on_path(&path, Some(&other)).unwrap().level, Level::Warning);
        assert_eq!(programs_on_path(&env(&[("PATH", "/nowhere")]), Some(&program)), None);
    }
}
