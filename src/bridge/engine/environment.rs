//! The engine's environment (engine protocol sections 2, 9 and 10): ours, with the provider table
//! added, harmful variables removed, and a `TMPDIR` that its socket fits into. Reads ZCode's files,
//! never writes or logs them. Called by `discovery`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::config::{Config, Env};
use crate::{accounts, redact};

/// A socket path may have 103 bytes; the engine appends `/znr-<uuid>.sock`, 46 of them.
const MAX_TMPDIR: usize = 103 - 46;

/// The model of a provider that lists none.
const DEFAULT_MODEL: &str = "GLM-5.3";

/// The whole environment for a real engine.
pub(super) fn for_engine(config: &Config, table: Option<&Path>) -> Vec<(OsString, OsString)> {
    let mut vars = Vars(config.env.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect());
    // The TypeScript bridge's hub and its messages have secrets that are no engine's business.
    vars.0.retain(|(name, _)| !name.to_str().is_some_and(is_secret_of_a_bridge));
    let home = &config.zcode_home;
    if let Some(table) = table {
        vars.set("ZCODE_BUILTIN_PROVIDER_CONFIG_FILE", table);
    }
    let personal = home.join("v2/provider_config.json");
    if personal.is_file() {
        vars.set("ZCODE_PERSONAL_PROVIDER_CONFIG_FILE", personal);
    }
    if table.is_some() {
        // Read as the engine's service origin, where it breaks the signing of every request.
        vars.remove("ZCODE_BASE_URL");
    } else {
        credentials(&mut vars, &config.env, home);
    }
    if let Some(base) = data_base_dir(&config.env) {
        vars.set("ZCODE_DATA_BASE_DIR", base);
    }
    if let Some(short) = short_tmpdir(&config.env) {
        vars.set("TMPDIR", short);
    }
    vars.0
}

fn is_secret_of_a_bridge(name: &str) -> bool {
    name.starts_with("ZCODE_ACP_PUSH_")
        || (name.starts_with("ZCODE_ACP_") && redact::is_secret_name(name))
}

struct Vars(Vec<(OsString, OsString)>);

impl Vars {
    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.remove(name);
        self.0.push((name.into(), value.into()));
    }

    fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }
}

/// The provider table for an engine: the one that ships with it, else the one that the user named,
/// else the newest that the desktop app unpacked. An engine without any is one from before 3.12.
pub fn provider_table(config: &Config, entry: &Path) -> Option<PathBuf> {
    let named = config.env.path("ZCODE_BUILTIN_PROVIDER_CONFIG_FILE").filter(|file| file.is_file());
    table_beside(entry).or(named).or_else(|| newest_runtime_table(&config.zcode_home))
}

/// The provider table that ships with an engine; engines that have one need to be told of it.
fn table_beside(entry: &Path) -> Option<PathBuf> {
    let entry = entry.canonicalize().ok()?;
    let dir = entry.parent()?;
    let places = [
        Some(dir.join("provider/zcode-builtin.json")),
        dir.parent().map(|up| up.join("config/provider/zcode-builtin.json")),
    ];
    places.into_iter().flatten().find(|file| file.is_file())
}

/// The newest copy that the desktop app unpacked: `v2/runtime/provider/*/*/*/zcode-builtin.json`.
fn newest_runtime_table(zcode_home: &Path) -> Option<PathBuf> {
    let mut dirs = vec![zcode_home.join("v2/runtime/provider")];
    for _ in 0..3 {
        let below = dirs.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
        dirs = below.map(|entry| entry.path()).collect();
    }
    let files = dirs.into_iter().map(|dir| dir.join("zcode-builtin.json"));
    files
        .filter(|file| file.is_file())
        .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file)))
        .max()
        .map(|(_, file)| file)
}

/// Engines before desktop 3.12 take the model's key, address and name from the environment: those of
/// the first provider that can be selected, or of the one that `ZCODE_PROVIDER` names. What the user
/// set there himself stays.
fn credentials(vars: &mut Vars, env: &Env, zcode_home: &Path) {
    let file = |name: &str| {
        accounts::read_json(&zcode_home.join("v2").join(name)).unwrap_or_else(|problem| {
            tracing::warn!(name, problem, "a provider file cannot be used");
            None
        })
    };
    let (config, personal) = (file("config.json"), file("provider_config.json"));
    let mut all = accounts::providers(config.as_ref(), personal.as_ref()).into_iter();
    let pinned = env.str("ZCODE_PROVIDER");
    let Some(provider) = all.find(|provider| match pinned {
        Some(id) => provider.id == id,
        None => provider.problem.is_none(),
    }) else {
        if let Some(id) = pinned {
            tracing::warn!(id, "ZCODE_PROVIDER names a provider that is not configured");
        }
        return;
    };
    let option = |name: &str| accounts::providers::text(provider.value, name);
    let models = accounts::providers::models(provider.value);
    let wanted = [
        ("ANTHROPIC_API_KEY", option("apiKey").filter(|key| !accounts::is_encrypted(key))),
        ("ZCODE_BASE_URL", option("baseURL")),
        ("ZCODE_MODEL", Some(models.first().map_or(DEFAULT_MODEL, |(id, _)| *id))),
    ];
    for (name, value) in wanted {
        if let Some(value) = value.filter(|_| env.get(name).is_none()) {
            vars.set(name, value);
        }
    }
}

/// `ZCODE_HOME` in the engine's own terms: the directory that holds `.zcode`.
fn data_base_dir(env: &Env) -> Option<PathBuf> {
    let home = env.path("ZCODE_HOME")?;
    if home.file_name() != Some(OsStr::new(".zcode")) {
        tracing::warn!(home = %home.display(), "ZCODE_HOME does not end in .zcode: the engine keeps its own place");
        return None;
    }
    home.parent().map(Path::to_owned)
}

/// A private short directory, when the engine's socket would not fit below the one that is set.
fn short_tmpdir(env: &Env) -> Option<PathBuf> {
    let current = ["TMPDIR", "TMP", "TEMP"].into_iter().find_map(|name| env.get(name))?;
    let length = current.as_bytes().len() - usize::from(current.as_bytes().ends_with(b"/"));
    if length <= MAX_TMPDIR {
        return None;
    }
    let made = private_dir(&PathBuf::from(format!(
        "/tmp/zcode-acp-{}",
        rustix::process::geteuid().as_raw()
    )))
    .or_else(|| {
        private_dir(&PathBuf::from(format!("/tmp/zcode-acp-{}", uuid::Uuid::new_v4().simple())))
    });
    if made.is_none() {
        tracing::warn!("TMPDIR is too long for the engine's socket, and no short one can be made");
    }
    made
}

/// Makes (or takes over) a directory that only we can enter.
fn private_dir(dir: &Path) -> Option<PathBuf> {
    // Fails when it is there already; whose it is, is looked at below.
    std::fs::DirBuilder::new().mode(0o700).create(dir).ok();
    let found = std::fs::symlink_metadata(dir).ok()?;
    let ours = found.is_dir()
        && found.uid() == rustix::process::geteuid().as_raw()
        && found.mode() & 0o777 == 0o700;
    ours.then(|| dir.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn value<'a>(vars: &'a [(OsString, OsString)], name: &str) -> Option<&'a str> {
        vars.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.to_str())
    }

    struct Machine {
        dir: tempfile::TempDir,
        entry: PathBuf,
    }

    impl Machine {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().canonicalize().unwrap().join("app/resources/glm/zcode.cjs");
            write(&path, "");
            Self { entry: path, dir }
        }

        fn vars(&self, env: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
            let config = crate::config::test_config(env.iter().copied().collect(), self.dir.path());
            for_engine(&config, provider_table(&config, &self.entry).as_deref())
        }

        fn file(&self, name: &str, text: &str) -> String {
            let path = self.dir.path().canonicalize().unwrap().join(name);
            write(&path, text);
            path.to_str().unwrap().to_owned()
        }
    }

    const CONFIG: &str = r#"{"provider": {
        "off": {"enabled": false, "options": {"apiKey": "no", "baseURL": "no"}, "models": {"no": {}}},
        "on": {"options": {"apiKey": "key", "baseURL": "https://model.example"}, "models": {"first": {}, "second": {}}}
    }}"#;

    #[test]
    fn a_bridges_own_secrets_are_not_handed_to_the_engine() {
        let names = ["ZCODE_ACP_REMOTE_TOKEN", "ZCODE_ACP_PUSH_SECRET", "ZCODE_ACP_PUSH_CORP"];
        let mut env: Vec<(&str, &str)> = names.iter().map(|name| (*name, "x")).collect();
        env.extend([("GITHUB_TOKEN", "users own"), ("ZCODE_ACP_LOG", "info")]);
        let vars = Machine::new().vars(&env);
        for name in names {
            assert_eq!(value(&vars, name), None, "{name}");
        }
        assert_eq!(value(&vars, "GITHUB_TOKEN"), Some("users own"));
        assert_eq!(value(&vars, "ZCODE_ACP_LOG"), Some("info"));
    }

    #[test]
    fn an_engine_with_a_provider_table_is_told_of_it_and_gets_no_key() {
        let machine = Machine::new();
        let table = machine.file("app/resources/config/provider/zcode-builtin.json", "{}");
        let personal = machine.file(".zcode/v2/provider_config.json", "{}");
        machine.file(".zcode/v2/config.json", CONFIG);
        let vars = machine.vars(&[
            ("ZCODE_BASE_URL", "https://x"),
            ("KEPT", "1"),
            ("ZCODE_BUILTIN_PROVIDER_CONFIG_FILE", "old"),
        ]);
        assert_eq!(value(&vars, "ZCODE_BUILTIN_PROVIDER_CONFIG_FILE"), Some(&*table));
        assert!(
            value(&vars, "ZCODE_PERSONAL_PROVIDER_CONFIG_FILE")
                .unwrap()
                .ends_with("provider_config.json")
        );
        assert!(Path::new(&personal).is_file());
        assert_eq!(value(&vars, "ZCODE_BASE_URL"), None);
        assert_eq!(value(&vars, "ANTHROPIC_API_KEY"), None);
        assert_eq!(value(&vars, "KEPT"), Some("1"));
    }

    #[test]
    fn the_newest_unpacked_table_is_the_second_choice() {
        let machine = Machine::new();
        let old = machine.file(".zcode/v2/runtime/provider/a/b/1/zcode-builtin.json", "{}");
        let past = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
        std::fs::File::options().write(true).open(old).unwrap().set_modified(past).unwrap();
        machine.file(".zcode/v2/runtime/provider/a/c/2/zcode-builtin.json", "{}");
        let vars = machine.vars(&[("ZCODE_BASE_URL", "https://x")]);
        assert!(
            value(&vars, "ZCODE_BUILTIN_PROVIDER_CONFIG_FILE")
                .unwrap()
                .ends_with("a/c/2/zcode-builtin.json")
        );
        assert_eq!(value(&vars, "ZCODE_BASE_URL"), None);
    }

    #[test]
    fn an_older_engine_gets_the_first_enabled_provider_and_the_users_own_values_win() {
        let machine = Machine::new();
        machine.file(".zcode/v2/config.json", CONFIG);
        let vars = machine.vars(&[("ZCODE_MODEL", "mine"), ("ANTHROPIC_API_KEY", "")]);
        assert_eq!(value(&vars, "ANTHROPIC_API_KEY"), Some("key"));
        assert_eq!(value(&vars, "ZCODE_BASE_URL"), Some("https://model.example"));
        assert_eq!(value(&vars, "ZCODE_MODEL"), Some("mine"));
    }

    #[test]
    fn an_older_engine_never_gets_a_provider_that_cannot_be_selected() {
        let machine = Machine::new();
        let bom = "\u{feff}";
        let text = r#"{"provider": {
            "ended": {"systemDisabledReason": "x", "options": {"apiKey": "no"}, "models": {"no": {}}},
            "builtin:not-on": {"options": {"apiKey": "no"}, "models": {"no": {}}},
            "builtin:keyless": {"enabled": true, "models": {"no": {}}},
            "good": {"options": {"apiKey": "key-1", "baseURL": "https://one"}},
            "second": {"options": {"apiKey": "key-2", "baseURL": "https://two"}, "models": {"m2": {}}}
        }}"#;
        machine.file(".zcode/v2/config.json", &format!("{bom}{text}"));
        let given = |env: &[(&str, &str)]| {
            let vars = machine.vars(env);
            ["ANTHROPIC_API_KEY", "ZCODE_BASE_URL", "ZCODE_MODEL"]
                .map(|name| value(&vars, name).map(str::to_owned).unwrap_or_default())
        };
        assert_eq!(given(&[]), ["key-1", "https://one", "GLM-5.3"]);
        assert_eq!(given(&[("ZCODE_PROVIDER", "second")]), ["key-2", "https://two", "m2"]);
        assert_eq!(given(&[("ZCODE_PROVIDER", "unknown")]), ["", "", ""]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_in_the_providers_place_gives_nothing_and_no_wait() {
        let machine = Machine::new();
        machine.file(".zcode/v2/other", "");
        crate::small_file::make_pipe(&machine.dir.path().join(".zcode/v2/config.json"));
        assert_eq!(value(&machine.vars(&[]), "ANTHROPIC_API_KEY"), None);
    }

    #[test]
    fn only_a_tmpdir_that_is_too_long_is_replaced() {
        let machine = Machine::new();
        for (length, replaced) in [(57, false), (58, true), (200, true)] {
            let long = format!("/{}", "t".repeat(length - 1));
            let vars = machine.vars(&[("TMPDIR", &long)]);
            let now = value(&vars, "TMPDIR").unwrap();
            assert_eq!(now != long, replaced, "{length}");
            if replaced {
                let found = std::fs::metadata(now).unwrap();
                assert_eq!(found.mode() & 0o777, 0o700);
                assert!(now.len() <= MAX_TMPDIR);
            }
        }
        assert_eq!(value(&machine.vars(&[]), "TMPDIR"), None);
        let edge = format!("/{}/", "t".repeat(56));
        assert_eq!(
            value(&machine.vars(&[("TMPDIR", &edge)]), "TMPDIR"),
            Some(&*edge),
            "a slash at the end does not count"
        );
    }

    #[test]
    fn a_directory_of_others_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        let mut access = std::fs::metadata(&open).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut access, 0o777);
        std::fs::set_permissions(&open, access).unwrap();
        assert_eq!(private_dir(&open), None);
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
        assert_eq!(private_dir(&dir.path().join("link")), None);
    }

    #[test]
    fn zcode_home_becomes_the_engines_base_directory() {
        let env = |home: &str| [("ZCODE_HOME", home)].into_iter().collect::<Env>();
        assert_eq!(data_base_dir(&env("/data/.zcode")), Some(PathBuf::from("/data")));
        assert_eq!(data_base_dir(&env("/data/other")), None);
    }
}
