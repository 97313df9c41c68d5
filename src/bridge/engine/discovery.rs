//! Where the engine is, and which Node can run it (engine protocol section 2). Reads the file
//! system and, unless the user named a Node, asks candidates for their version; starts nothing
//! else. Called by [`super::Engine::start`] and `doctor`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::environment;
use super::error::EngineError;
use crate::config::{Config, DemoConfig, Env};
use crate::process::{self, ChildSpec};

/// The oldest Node that has what the engine needs (`node:sqlite`, `node:sea`).
const MIN_NODE: u32 = 22;
/// How long a candidate may take to tell its version.
const NODE_PROBE: Duration = Duration::from_secs(5);
/// Tools that ask the host over `automation/*`, which this bridge does not serve.
const CRON_TOOLS: [&str; 4] = ["CronCreate", "CronList", "CronUpdate", "CronDelete"];

/// An engine that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The native binary or the script.
    pub path: PathBuf,
    /// It needs Node.
    pub script: bool,
    /// In words, how it was found.
    pub found_by: String,
}

/// How to start an engine.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The child to start.
    pub spec: ChildSpec,
    /// The provider table that it is given.
    pub table: Option<PathBuf>,
}

/// Finds the engine and a Node for it and says how to start them.
pub async fn launch(config: &Config, cwd: &Path) -> Result<Launch, EngineError> {
    if let Some(trace) = &config.engine.replay {
        let args = vec!["replay".into(), std::path::absolute(trace).unwrap_or_default().into()];
        return Ok(Launch { spec: own_program(config, args, cwd)?, table: None });
    }
    if let Some(demo) = &config.engine.demo {
        return Ok(Launch { spec: demo_engine(config, demo, cwd)?, table: None });
    }
    let entry = locate(&config.env, &config.home)?;
    let node = if entry.script { Some(find_node(&config.env, &config.home).await?) } else { None };
    tracing::info!(engine = %entry.path.display(), found_by = entry.found_by, "engine");
    let table = environment::provider_table(config, &entry.path);
    let spec = ChildSpec {
        args: arguments(config, &entry, node.is_some()),
        env: Some(environment::for_engine(config, table.as_deref())),
        cwd: cwd.is_dir().then(|| cwd.to_owned()),
        ..ChildSpec::new(node.unwrap_or_else(|| entry.path.clone()))
    };
    Ok(Launch { spec, table })
}

/// The simulated engine: this very program under its hidden subcommand.
fn demo_engine(config: &Config, demo: &DemoConfig, cwd: &Path) -> Result<ChildSpec, EngineError> {
    let store = config.demo_dir(demo);
    let mut args: Vec<OsString> = vec!["sim-engine".into(), "--store".into(), store.into()];
    if let Some(profile) = &demo.profile {
        args.extend(["--profile".into(), profile.into()]);
    }
    if let Some(pace) = demo.pace {
        args.extend(["--pace".into(), pace.to_string().into()]);
    }
    args.extend(["app-server".into(), "--stdio".into()]);
    own_program(config, args, cwd)
}

/// This very program in an engine's place.
fn own_program(config: &Config, args: Vec<OsString>, cwd: &Path) -> Result<ChildSpec, EngineError> {
    let program = process::own_binary().ok_or_else(|| EngineError::Spawn {
        program: "the simulated engine".to_owned(),
        reason: "this program does not know its own path".to_owned(),
    })?;
    let env = config.env.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    Ok(ChildSpec {
        args,
        env: Some(env),
        cwd: cwd.is_dir().then(|| cwd.to_owned()),
        ..ChildSpec::new(program)
    })
}

/// The engine's arguments.
fn arguments(config: &Config, entry: &Entry, by_node: bool) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    if by_node {
        if !config.engine.keep_happy_eyeballs {
            args.push("--no-network-family-autoselection".into());
            args.push("--dns-result-order=ipv4first".into());
        }
        args.push(entry.path.clone().into());
    }
    args.extend(["app-server".into(), "--stdio".into()]);
    let cron =
        CRON_TOOLS.iter().filter(|_| !config.engine.automation_tools).map(|&tool| tool.to_owned());
    let mut tools: Vec<String> = config.engine.disallowed_tools.clone();
    tools.extend(cron);
    if !tools.is_empty() {
        args.extend(["--disallowed-tools".into(), tools.join(" ").into()]);
    }
    args
}

/// The provider table that the engine of these settings would be given, if there is an engine.
pub fn provider_table(config: &Config) -> Option<PathBuf> {
    let entry = locate(&config.env, &config.home).ok()?;
    environment::provider_table(config, &entry.path)
}

/// Finds the engine: `ZCODE_CJS`, `ZCODE_BIN`, `zcode` on `PATH`, the desktop app.
pub fn locate(env: &Env, home: &Path) -> Result<Entry, EngineError> {
    let mut looked_for = Vec::new();
    let mut named = false;
    for name in ["ZCODE_CJS", "ZCODE_BIN"] {
        let Some(path) = env.path(name) else {
            looked_for.push(format!("{name} (not set)"));
            continue;
        };
        named = true;
        let path = if path.components().count() == 1 {
            on_path(env, path.as_os_str()).unwrap_or(path)
        } else {
            path
        };
        if path.is_file() {
            return Ok(entry(path, format!("{name} is set")));
        }
        let why = if path.is_dir() {
            "a directory, not a file"
        } else if path.exists() {
            "not a regular file"
        } else {
            "no such file"
        };
        looked_for.push(format!("{name} = {} ({why})", path.display()));
    }
    // Whoever names an engine wants that one: another would be a surprise.
    if !named {
        if let Some(path) = on_path(env, OsStr::new("zcode")) {
            return Ok(entry(path, "zcode is on PATH".to_owned()));
        }
        looked_for.push("zcode on PATH".to_owned());
        for path in bundles(env, home) {
            if path.is_file() {
                return Ok(entry(path, "the ZCode desktop app is installed".to_owned()));
            }
            looked_for.push(path.display().to_string());
        }
    }
    let hints = vec![
        "Install the ZCode desktop app, or set ZCODE_CJS to the path of its zcode.cjs \
         (ZCODE_BIN for a native zcode binary)."
            .to_owned(),
        "To look around without an engine, use the demo: zcode-acp tui --demo".to_owned(),
    ];
    Err(EngineError::NotFound { looked_for, hints })
}

fn entry(path: PathBuf, found_by: String) -> Entry {
    // A link on PATH often leads to the script; the files beside it are what is wanted.
    let target = path.canonicalize().unwrap_or_else(|_| path.clone());
    if is_script(&path) {
        Entry { path, script: true, found_by }
    } else if is_script(&target) {
        Entry { path: target, script: true, found_by }
    } else {
        Entry { path, script: false, found_by }
    }
}

fn is_script(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ext| ["cjs", "mjs", "js"].iter().any(|js| ext.eq_ignore_ascii_case(js)))
}

/// Where the desktop app keeps its engine.
fn bundles(env: &Env, home: &Path) -> Vec<PathBuf> {
    const MAC: &str = "Applications/ZCode.app/Contents/Resources/glm/zcode.cjs";
    const REST: &str = "resources/glm/zcode.cjs";
    let mut places = vec![Path::new("/").join(MAC), home.join(MAC)];
    for root in
        ["/opt/ZCode", "/opt/zcode", "/usr/lib/zcode", "/usr/share/zcode", "/usr/local/share/zcode"]
    {
        places.push(Path::new(root).join(REST));
    }
    let data = env.path("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    for root in ["ZCode", "zcode"] {
        places.push(data.join(root).join(REST));
    }
    // An AppImage unpacked by hand or by its runtime.
    for root in ["squashfs-root", "Applications/squashfs-root", ".local/opt/ZCode"] {
        places.push(home.join(root).join(REST));
    }
    if let Some(local) = env.path("LOCALAPPDATA") {
        places.push(local.join("Programs").join("ZCode").join(REST));
    }
    places
}

/// The first executable file of that name on `PATH`.
fn on_path(env: &Env, name: &OsStr) -> Option<PathBuf> {
    let path = env.get("PATH")?;
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Finds a real Node of at least [`MIN_NODE`]. A Node that the user named is taken as it is: a
/// probe would delay the first request, and its failure would be seen at once anyway.
pub async fn find_node(env: &Env, home: &Path) -> Result<PathBuf, EngineError> {
    let mut looked_for = Vec::new();
    if let Some(named) = env.path("ZCODE_NODE") {
        let path = if named.components().count() == 1 {
            on_path(env, named.as_os_str()).unwrap_or(named)
        } else {
            named
        };
        if is_executable(&path) {
            return Ok(path);
        }
        looked_for.push(format!("Node: ZCODE_NODE = {} (not an executable file)", path.display()));
        return Err(no_node(looked_for));
    }
    looked_for.push("Node: ZCODE_NODE (not set)".to_owned());
    for path in node_candidates(env, home) {
        match node_version(&path).await {
            Ok(version) if version >= MIN_NODE => return Ok(path),
            Ok(version) => {
                looked_for.push(format!("Node: {} (version {version}, too old)", path.display()));
            }
            Err(reason) => looked_for.push(format!("Node: {} ({reason})", path.display())),
        }
    }
    looked_for.push(
        "Node on PATH, in the places of nvm, fnm, volta, mise, Homebrew and the system".to_owned(),
    );
    Err(no_node(looked_for))
}

fn no_node(looked_for: Vec<String>) -> EngineError {
    let hint = format!(
        "The ZCode engine needs Node {MIN_NODE} or newer (Bun does not do). \
         Install it, or set ZCODE_NODE to the path of a node binary."
    );
    EngineError::NotFound { looked_for, hints: vec![hint] }
}

/// Existing Node binaries, the most likely first, each once.
fn node_candidates(env: &Env, home: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = env
        .get("PATH")
        .map(|path| std::env::split_paths(path).map(|dir| dir.join("node")).collect())
        .unwrap_or_default();
    let or = |name: &str, default: &str| env.path(name).unwrap_or_else(|| home.join(default));
    found.extend(versions(&or("NVM_DIR", ".nvm").join("versions/node"), "bin/node"));
    for root in [
        or("FNM_DIR", ".local/share/fnm"),
        home.join(".fnm"),
        home.join("Library/Application Support/fnm"),
    ] {
        found.extend(versions(&root.join("node-versions"), "installation/bin/node"));
    }
    found.extend(versions(&or("VOLTA_HOME", ".volta").join("tools/image/node"), "bin/node"));
    found.extend(versions(
        &or("MISE_DATA_DIR", ".local/share/mise").join("installs/node"),
        "bin/node",
    ));
    found.extend(versions(&or("ASDF_DATA_DIR", ".asdf").join("installs/nodejs"), "bin/node"));
    for dir in [
        "/opt/homebrew/bin",
        "/home/linuxbrew/.linuxbrew/bin",
        "/usr/local/bin",
        "/usr/bin",
        "/snap/bin",
    ] {
        found.push(Path::new(dir).join("node"));
    }
    for root in ["Library/Application Support/Zed/node", ".local/share/zed/node"] {
        found.extend(versions(&home.join(root), "bin/node"));
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| {
        is_executable(path) && seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone()))
    });
    found
}

/// `<root>/<version>/<tail>` for every version directory, the newest first.
fn versions(root: &Path, tail: &str) -> Vec<PathBuf> {
    let mut found: Vec<(Vec<u32>, PathBuf)> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let numbers =
                name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
            (numbers.collect(), entry.path().join(tail))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Asks a Node for its major version.
async fn node_version(path: &Path) -> Result<u32, String> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if target
        .file_name()
        .is_some_and(|name| name.to_string_lossy().to_lowercase().starts_with("bun"))
    {
        return Err("this is Bun".to_owned());
    }
    let spec = ChildSpec { args: vec!["--version".into()], ..ChildSpec::new(path) };
    let said = process::capture(&spec, NODE_PROBE).await.ok_or("it does not run")?;
    // Bun says `1.3.0`, Node `v22.12.0`.
    let major =
        said.trim().strip_prefix('v').and_then(|version| version.split('.').next()?.parse().ok());
    major.ok_or_else(|| "this is not Node".to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn program(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn env(pairs: &[(&str, &Path)]) -> Env {
        pairs.iter().map(|(k, v)| (*k, v.as_os_str())).collect()
    }

    #[test]
    fn the_engine_is_found_in_the_documented_order() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let app = dir.path().join("home/.local/share/ZCode/resources/glm/zcode.cjs");
        program(&app, "");
        program(&at("bin/zcode"), "");
        program(&at("named/zcode.cjs"), "");
        program(&at("native/zcode"), "");
        let home = at("home");
        let all = [
            ("ZCODE_CJS", at("named/zcode.cjs")),
            ("ZCODE_BIN", at("native/zcode")),
            ("PATH", at("bin")),
        ];
        let mut expected = [
            (at("named/zcode.cjs"), true),
            (at("native/zcode"), false),
            (at("bin/zcode"), false),
            (app, true),
        ]
        .into_iter();
        for skip in 0..=all.len() {
            let env: Env = all.iter().skip(skip).map(|(k, v)| (*k, v.as_os_str())).collect();
            let found = locate(&env, &home).unwrap();
            assert_eq!((found.path, found.script), expected.next().unwrap());
        }
    }

    #[test]
    fn a_link_to_the_script_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().canonicalize().unwrap().join("lib/zcode.cjs");
        program(&script, "");
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(&script, dir.path().join("bin/zcode")).unwrap();
        let found = locate(&env(&[("PATH", &dir.path().join("bin"))]), dir.path()).unwrap();
        assert_eq!((found.path, found.script), (script, true));
    }

    #[test]
    fn a_named_engine_that_is_missing_is_not_replaced_by_another() {
        let dir = tempfile::tempdir().unwrap();
        program(&dir.path().join("bin/zcode"), "");
        let env = env(&[
            ("ZCODE_CJS", Path::new("/nonexistent/zcode.cjs")),
            ("PATH", &dir.path().join("bin")),
        ]);
        let error = locate(&env, dir.path()).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/zcode.cjs") && error.contains("ZCODE_BIN"), "{error}");
    }

    #[test]
    fn when_nothing_is_there_all_places_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        // The machine that runs this may have the app installed.
        if let Err(error) = locate(&Env::default(), dir.path()) {
            let text = error.to_string();
            for part in ["ZCODE_CJS", "ZCODE_BIN", "PATH", "/opt/ZCode", "ZCode.app", "--demo"] {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
    }

    #[tokio::test]
    async fn a_fit_node_is_chosen_and_others_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        program(&at("old/node"), "#!/bin/sh\necho v20.9.0\n");
        program(&at("bunbin/bun"), "#!/bin/sh\necho v22.0.0\n");
        std::fs::create_dir(at("shim")).unwrap();
        std::os::unix::fs::symlink(at("bunbin/bun"), at("shim/node")).unwrap();
        program(&at("odd/node"), "#!/bin/sh\necho 1.3.0\n");
        for version in ["v9.1.0", "v22.2.0", "v22.10.0"] {
            program(
                &at(&format!(".nvm/versions/node/{version}/bin/node")),
                &format!("#!/bin/sh\necho {version}\n"),
            );
        }
        let path = std::env::join_paths([at("old"), at("shim"), at("odd")]).unwrap();
        let env: Env = [("PATH", path)].into_iter().collect();
        let found = find_node(&env, dir.path()).await.unwrap();
        assert_eq!(found, at(".nvm/versions/node/v22.10.0/bin/node"));
    }

    #[tokio::test]
    async fn a_named_node_is_taken_without_asking_it() {
        let dir = tempfile::tempdir().unwrap();
        let node = dir.path().join("node");
        program(&node, "#!/bin/sh\ntouch \"$0.ran\"\n");
        assert_eq!(find_node(&env(&[("ZCODE_NODE", &node)]), dir.path()).await.unwrap(), node);
        assert!(!dir.path().join("node.ran").exists());
        let missing =
            find_node(&env(&[("ZCODE_NODE", Path::new("/nonexistent/node"))]), dir.path()).await;
        assert!(missing.unwrap_err().to_string().contains("ZCODE_NODE = /nonexistent/node"));
    }
}
