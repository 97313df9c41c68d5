//! Puts flags, the settings file, the environment and the defaults together. Called by `main`, and
//! by tests through [`Config::from_env`].

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::file::{MODES, SettingsFile, settings_path};
use super::{Config, DemoConfig, EngineConfig, Env, SessionConfig, TuiConfig};
use crate::cli::{Command, EngineArgs, GlobalArgs};
use crate::error::AppError;

/// How long a guide waits for the session's first event; the engine needs about a third of a second.
const STEER_PERSIST: Duration = Duration::from_secs(3);
/// How long a guide is retried when the session is not in the engine's database yet.
const STEER_FK_RETRY: Duration = Duration::from_secs(2);

impl Config {
    /// Reads the settings file and puts everything together. Fails only without a home directory.
    pub fn load(env: Env, global: &GlobalArgs, command: &Command) -> Result<Self, AppError> {
        let home = home(&env).ok_or_else(|| {
            AppError::failed("cannot find your home directory").hint("set HOME to it")
        })?;
        let file = SettingsFile::read(&settings_path(&env, &home));
        let mut config = Self::from_env(env, home, &file);
        config.trace.clone_from(&global.trace);
        match command {
            Command::Tui(args) => {
                config.take_engine_flags(&args.engine);
                config.take_session_flags(
                    args.session.model.as_deref(),
                    args.session.mode.as_deref(),
                );
            }
            Command::Run(args) => {
                config.take_engine_flags(&args.engine);
                config.take_session_flags(
                    args.session.model.as_deref(),
                    args.session.mode.as_deref(),
                );
            }
            Command::Doctor(args) => config.take_engine_flags(&args.engine),
            Command::Serve(args) => config.take_engine_flags(&args.engine),
            Command::Sessions(args) => config.take_engine_flags(&args.engine),
            Command::Login
            | Command::Quota
            | Command::Replay(_)
            | Command::Completions { .. }
            | Command::Man
            | Command::Approvals(_)
            | Command::SimEngine(_)
            | Command::Watchdog(_) => {}
        }
        Ok(config)
    }

    /// Puts settings file, environment and defaults together, without flags. Touches no disk but
    /// to see whether the approval directory exists.
    pub fn from_env(env: Env, home: PathBuf, file: &SettingsFile) -> Self {
        let mut warnings = file.warnings.clone();
        let mut number = |key: &str, name: &str| match (file.count(key), env.str(name)) {
            (Some(n), _) => Some(n),
            (None, Some(word)) => word.trim().parse::<u64>().map_or_else(
                |err| {
                    warnings.push(format!("{name}={word}: {err}; using the default"));
                    None
                },
                Some,
            ),
            (None, None) => None,
        };
        let interaction = number("interaction.timeoutMs", "ZCODE_ACP_INTERACTION_TIMEOUT_MS");
        let threshold = number("autoCompact.threshold", "ZCODE_ACP_AUTO_COMPACT_THRESHOLD");
        let persist = number("", "ZCODE_ACP_STEER_PERSIST_MS");
        let retry = number("", "ZCODE_ACP_STEER_FK_RETRY_MS");
        if let Some(mode) =
            env.str("ZCODE_ACP_MODE").filter(|_| file.text("session.mode").is_none())
            && !MODES.contains(&mode.trim())
        {
            warnings.push(format!("ZCODE_ACP_MODE={mode}: {}", unknown_mode()));
        }
        let flag = |key: &str, name: &str| file.flag(key).or_else(|| env.flag(name));
        let text = |key: &str, name: &str| {
            file.text(key).or_else(|| env.str(name)).map(|t| t.trim().to_owned())
        };
        let (approval_dir, default_approval_dir) = approval_dir(&env, &home, file);
        Self {
            zcode_home: env.path("ZCODE_HOME").unwrap_or_else(|| home.join(".zcode")),
            state_dir: state_dir(&env, &home),
            engine: EngineConfig {
                demo: None,
                replay: None,
                disallowed_tools: file
                    .texts("engine.disallowedTools")
                    .unwrap_or_else(|| words(env.str("ZCODE_DISALLOWED_TOOLS"))),
                automation_tools: flag("engine.automationTools", "ZCODE_ENABLE_AUTOMATION_TOOLS")
                    == Some(true),
                keep_happy_eyeballs: env.flag("ZCODE_KEEP_HAPPY_EYEBALLS") == Some(true),
            },
            session: SessionConfig {
                mode: text("session.mode", "ZCODE_ACP_MODE"),
                model: text("session.model", "ZCODE_ACP_MODEL").or_else(|| {
                    // The TypeScript bridge pins a model by two variables, and only by both.
                    let (provider, model) = (env.str("ZCODE_PROVIDER")?, env.str("ZCODE_MODEL")?);
                    Some(format!("{provider}/{model}"))
                }),
                show_completion_status: flag(
                    "session.showCompletionStatus",
                    "ZCODE_ACP_SHOW_COMPLETION_STATUS",
                ),
                auto_compact_threshold: threshold.filter(|n| *n > 0),
            },
            tui: TuiConfig {
                theme: file.text("tui.theme").filter(|theme| *theme != "auto").map(str::to_owned),
                mouse: file.flag("tui.mouse").unwrap_or(true),
                animations: file
                    .flag("tui.animations")
                    .unwrap_or_else(|| env.flag("ZCODE_ACP_REDUCED_MOTION") != Some(true)),
            },
            interaction_timeout: interaction.filter(|n| *n > 0).map(Duration::from_millis),
            steer_persist: persist.map_or(STEER_PERSIST, Duration::from_millis),
            steer_fk_retry: retry.map_or(STEER_FK_RETRY, Duration::from_millis),
            approval_dir,
            default_approval_dir,
            live_entitlement: flag("accounts.liveCheck", "ZCODE_ACP_LIVE_ENTITLEMENT")
                == Some(true),
            debug: flag("debug", "ZCODE_ACP_DEBUG") == Some(true),
            trace: None,
            settings_path: settings_path(&env, &home),
            warnings,
            home,
            env,
        }
    }

    fn take_engine_flags(&mut self, args: &EngineArgs) {
        self.engine.replay.clone_from(&args.replay);
        if args.demo {
            self.engine.demo = Some(DemoConfig {
                profile: args.demo_profile.clone(),
                pace: args.demo_pace,
                store: args.demo_store.clone(),
            });
        }
    }

    fn take_session_flags(&mut self, model: Option<&str>, mode: Option<&str>) {
        if let Some(model) = model {
            self.session.model = Some(model.to_owned());
        }
        if let Some(mode) = mode {
            if !MODES.contains(&mode) {
                self.warnings.push(format!("--mode {mode}: {}", unknown_mode()));
            }
            self.session.mode = Some(mode.to_owned());
        }
    }
}

fn unknown_mode() -> String {
    format!("must be one of {}; ignored", MODES.join(", "))
}

fn home(env: &Env) -> Option<PathBuf> {
    env.path("HOME")
        .or_else(|| directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_path_buf()))
}

/// The platform's place for state: logs, drafts, demo sessions.
fn state_dir(env: &Env, home: &Path) -> PathBuf {
    if let Some(dir) = env.path("ZCODE_ACP_STATE_DIR") {
        return dir;
    }
    if cfg!(target_os = "macos") {
        return home.join("Library/Application Support/zcode-acp");
    }
    env.path("XDG_STATE_HOME")
        .filter(|dir| dir.is_absolute())
        .unwrap_or_else(|| home.join(".local/state"))
        .join("zcode-acp")
}

/// The directory must exist already: a bridge that nobody watches would deny everything.
fn approval_dir(env: &Env, home: &Path, file: &SettingsFile) -> (Option<PathBuf>, PathBuf) {
    let dir = match file.text("approvals.dir") {
        Some(dir) => from_home(home, PathBuf::from(dir)),
        None => match env.path("ZCODE_ACP_APPROVAL_DIR") {
            Some(dir) => from_home(home, dir),
            None => home.join(".zcode-acp/pending"),
        },
    };
    let on = env.flag("ZCODE_ACP_APPROVAL_BRIDGE") == Some(true) && dir.is_dir();
    (on.then(|| dir.clone()), dir)
}

/// `~` and `~/…` are the home directory: no shell has seen the value if it was quoted.
fn from_home(home: &Path, path: PathBuf) -> PathBuf {
    match path.strip_prefix("~") {
        Ok(rest) if rest.as_os_str().is_empty() => home.to_path_buf(),
        Ok(rest) => home.join(rest),
        Err(_) => path,
    }
}

fn words(list: Option<&str>) -> Vec<String> {
    list.unwrap_or_default()
        .split([',', ' ', '\t', '\n'])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(file: &str, env: &[(&str, &str)]) -> Config {
        let file = SettingsFile::parse("config.json", file);
        Config::from_env(env.iter().copied().collect(), PathBuf::from("/home/u"), &file)
    }

    #[test]
    fn the_file_beats_the_environment_and_both_beat_the_default() {
        let none = config("", &[]);
        assert_eq!(none.session.mode, None);
        assert_eq!(none.interaction_timeout, None);
        let env = [("ZCODE_ACP_MODE", "build"), ("ZCODE_ACP_INTERACTION_TIMEOUT_MS", "7")];
        let by_env = config("", &env);
        assert_eq!(by_env.session.mode.as_deref(), Some("build"));
        assert_eq!(by_env.interaction_timeout, Some(Duration::from_millis(7)));
        let by_file = config(r#"{"session":{"mode":"plan"},"interaction":{"timeoutMs":0}}"#, &env);
        assert_eq!(by_file.session.mode.as_deref(), Some("plan"));
        assert_eq!(by_file.interaction_timeout, None);
    }

    #[test]
    fn the_chat_is_set_by_the_file() {
        assert_eq!(config("", &[]).tui, TuiConfig::default());
        assert!(!config("", &[("ZCODE_ACP_REDUCED_MOTION", "1")]).tui.animations);
        let set = config(r#"{"tui":{"theme":"light","mouse":false,"animations":false}}"#, &[]);
        let want = TuiConfig { theme: Some("light".to_owned()), mouse: false, animations: false };
        assert_eq!(set.tui, want);
        assert_eq!(config(r#"{"tui":{"theme":"auto"}}"#, &[]).tui.theme, None);
        let wrong = config(r#"{"tui":{"theme":"pink"}}"#, &[]);
        assert_eq!((wrong.tui.theme, wrong.warnings.len()), (None, 1));
    }

    #[test]
    fn a_flag_beats_the_file() {
        let mut config = config(r#"{"session":{"mode":"plan","model":"a/b"}}"#, &[]);
        config.take_session_flags(None, Some("edit"));
        assert_eq!(config.session.mode.as_deref(), Some("edit"));
        assert_eq!(config.session.model.as_deref(), Some("a/b"));
    }

    #[test]
    fn the_provider_pin_needs_both_variables() {
        assert_eq!(config("", &[("ZCODE_PROVIDER", "p")]).session.model, None);
        let pinned = config("", &[("ZCODE_PROVIDER", "p"), ("ZCODE_MODEL", "m")]);
        assert_eq!(pinned.session.model.as_deref(), Some("p/m"));
    }

    #[test]
    fn directories_follow_the_environment() {
        let plain = config("", &[]);
        assert_eq!(plain.zcode_home, Path::new("/home/u/.zcode"));
        assert_eq!(plain.settings_path, Path::new("/home/u/.config/zcode-acp/config.json"));
        let moved = config(
            "",
            &[("ZCODE_HOME", "/z"), ("XDG_CONFIG_HOME", "/c"), ("ZCODE_ACP_STATE_DIR", "/s")],
        );
        assert_eq!(moved.zcode_home, Path::new("/z"));
        assert_eq!(moved.settings_path, Path::new("/c/zcode-acp/config.json"));
        assert_eq!(moved.state_dir, Path::new("/s"));
        // A relative XDG directory is invalid by its specification.
        let relative = config("", &[("XDG_CONFIG_HOME", "c")]);
        assert_eq!(relative.settings_path, plain.settings_path);
        if !cfg!(target_os = "macos") {
            assert_eq!(plain.state_dir, Path::new("/home/u/.local/state/zcode-acp"));
            let state = |dir| config("", &[("XDG_STATE_HOME", dir)]).state_dir;
            assert_eq!(state("/x"), Path::new("/x/zcode-acp"));
            assert_eq!(state("x"), plain.state_dir);
        }
    }

    #[test]
    fn the_approval_bridge_needs_its_switch_and_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        let on = ("ZCODE_ACP_APPROVAL_BRIDGE", "1");
        assert_eq!(config("", &[("ZCODE_ACP_APPROVAL_DIR", path)]).approval_dir, None);
        assert_eq!(config("", &[on]).approval_dir, None);
        assert_eq!(config("", &[on, ("ZCODE_ACP_APPROVAL_DIR", "/nowhere")]).approval_dir, None);
        let config = config("", &[on, ("ZCODE_ACP_APPROVAL_DIR", path)]);
        assert_eq!(config.approval_dir.as_deref(), Some(dir.path()));
    }

    #[test]
    fn a_tilde_is_the_home_directory_in_the_file_and_in_the_variable() {
        for (given, wanted) in
            [("~", "/home/u"), ("~/x", "/home/u/x"), ("/a/~/b", "/a/~/b"), ("~u/x", "~u/x")]
        {
            let by_file = config(&format!(r#"{{"approvals":{{"dir":"{given}"}}}}"#), &[]);
            assert_eq!(by_file.default_approval_dir, Path::new(wanted));
            let by_env = config("", &[("ZCODE_ACP_APPROVAL_DIR", given)]);
            assert_eq!(by_env.default_approval_dir, Path::new(wanted));
        }
    }

    #[test]
    fn a_mode_that_no_engine_has_is_a_warning_that_names_its_variable() {
        let bogus = config("", &[("ZCODE_ACP_MODE", "bogus")]);
        assert_eq!(bogus.warnings.len(), 1);
        assert!(bogus.warnings[0].starts_with("ZCODE_ACP_MODE=bogus: must be"), "{bogus:?}");
        let by_file = config(r#"{"session":{"mode":"guarded"}}"#, &[("ZCODE_ACP_MODE", "bogus")]);
        assert_eq!(
            by_file.warnings,
            Vec::<String>::new(),
            "the file wins, the variable is not read"
        );
        assert_eq!(by_file.session.mode.as_deref(), Some("guarded"));
        assert_eq!(config("", &[("ZCODE_ACP_MODE", "guarded")]).warnings, Vec::<String>::new());
    }

    /// Key and its JSON value, variable and its value, what to look at, what must be there.
    type Setting = (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        fn(&Config) -> String,
        &'static str,
    );

    const SETTINGS: &[Setting] = &[
        (
            "session.mode",
            "\"plan\"",
            "ZCODE_ACP_MODE",
            "plan",
            |c| show(c.session.mode.as_ref()),
            "plan",
        ),
        (
            "session.model",
            "\"p/m\"",
            "ZCODE_ACP_MODEL",
            "p/m",
            |c| show(c.session.model.as_ref()),
            "p/m",
        ),
        (
            "session.showCompletionStatus",
            "true",
            "ZCODE_ACP_SHOW_COMPLETION_STATUS",
            "1",
            |c| show(c.session.show_completion_status.as_ref()),
            "true",
        ),
        (
            "interaction.timeoutMs",
            "7000",
            "ZCODE_ACP_INTERACTION_TIMEOUT_MS",
            "7000",
            |c| format!("{:?}", c.interaction_timeout),
            "Some(7s)",
        ),
        (
            "autoCompact.threshold",
            "90",
            "ZCODE_ACP_AUTO_COMPACT_THRESHOLD",
            "90",
            |c| show(c.session.auto_compact_threshold.as_ref()),
            "90",
        ),
        (
            "engine.disallowedTools",
            "[\"A\", \"B\"]",
            "ZCODE_DISALLOWED_TOOLS",
            "A B",
            |c| c.engine.disallowed_tools.join(" "),
            "A B",
        ),
        (
            "engine.automationTools",
            "true",
            "ZCODE_ENABLE_AUTOMATION_TOOLS",
            "1",
            |c| c.engine.automation_tools.to_string(),
            "true",
        ),
        (
            "accounts.liveCheck",
            "true",
            "ZCODE_ACP_LIVE_ENTITLEMENT",
            "1",
            |c| c.live_entitlement.to_string(),
            "true",
        ),
        (
            "approvals.dir",
            "\"/p\"",
            "ZCODE_ACP_APPROVAL_DIR",
            "/p",
            |c| c.default_approval_dir.display().to_string(),
            "/p",
        ),
        ("debug", "true", "ZCODE_ACP_DEBUG", "1", |c| c.debug.to_string(), "true"),
        (
            "tui.animations",
            "false",
            "ZCODE_ACP_REDUCED_MOTION",
            "1",
            |c| c.tui.animations.to_string(),
            "false",
        ),
        (
            "",
            "",
            "ZCODE_KEEP_HAPPY_EYEBALLS",
            "1",
            |c| c.engine.keep_happy_eyeballs.to_string(),
            "true",
        ),
        ("", "", "ZCODE_ACP_STEER_PERSIST_MS", "50", |c| format!("{:?}", c.steer_persist), "50ms"),
        (
            "",
            "",
            "ZCODE_ACP_STEER_FK_RETRY_MS",
            "60",
            |c| format!("{:?}", c.steer_fk_retry),
            "60ms",
        ),
    ];

    fn show<T: ToString>(value: Option<&T>) -> String {
        value.map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn every_documented_setting_takes_effect_from_the_file_and_from_its_variable() {
        for (key, json, name, word, look, wanted) in SETTINGS {
            assert_ne!(look(&config("", &[])), *wanted, "{name} is not the default");
            assert_eq!(look(&config("", &[(name, word)])), *wanted, "{name}");
            if let Some((section, key)) = key.split_once('.') {
                let file = format!("{{\"{section}\": {{\"{key}\": {json}}}}}");
                assert_eq!(look(&config(&file, &[])), *wanted, "{section}.{key}");
            } else if !key.is_empty() {
                assert_eq!(look(&config(&format!("{{\"{key}\": {json}}}"), &[])), *wanted, "{key}");
            }
        }
    }

    #[test]
    fn a_number_that_is_none_is_a_warning() {
        let config = config("", &[("ZCODE_ACP_AUTO_COMPACT_THRESHOLD", "lots")]);
        assert_eq!(config.session.auto_compact_threshold, None);
        assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    }

    #[test]
    fn lists_of_tools_are_split_by_commas_and_spaces() {
        let config = config("", &[("ZCODE_DISALLOWED_TOOLS", "A, B C,,D")]);
        assert_eq!(config.engine.disallowed_tools, ["A", "B", "C", "D"]);
    }
}
