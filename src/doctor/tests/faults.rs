//! Each fault made on purpose, one at a time, on a machine where everything else is well: the page has
//! exactly one line that is not ok, and that line says what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::*;
use crate::config::{Env, SettingsFile};

/// Plays the engine for one question.
const ANSWER: &str = r#"read l; id=$(echo "$l" | sed 's/.*"id":\([^,}]*\).*/\1/'); echo "{\"id\":$id,\"result\":{\"sessions\":[]}}"; cat"#;

/// A healthy machine, to be damaged.
struct Machine {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut machine = Self { dir, env: Vec::new() };
        machine.set("PATH", "/usr/bin:/bin");
        machine.set("LANG", "C.UTF-8");
        machine.set("ZCODE_BIN", machine.script("zcode", ANSWER).to_str().unwrap().to_owned());
        machine.set("ZCODE_ACP_STATE_DIR", machine.path("state").to_str().unwrap().to_owned());
        let config =
            json!({"provider": {"own": {"options": {"apiKey": "k"}, "models": {"m": {}}}}});
        machine.write(".zcode/v2/config.json", &config.to_string());
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.into()));
    }

    fn unset(&mut self, name: &str) {
        self.env.retain(|(known, _)| known != name);
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn script(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        self.chmod(name, 0o755);
        path
    }

    fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn directory(&self, name: &str, mode: u32) -> String {
        fs::create_dir_all(self.path(name)).unwrap();
        self.chmod(name, mode);
        self.path(name).to_str().unwrap().to_owned()
    }

    fn config(&self) -> Config {
        let env: Env = self.env.iter().cloned().collect();
        let file = SettingsFile::read(&self.path(".config/zcode-acp/config.json"));
        Config::from_env(env, self.dir.path().to_path_buf(), &file)
    }

    /// The lines that are not ok, as `level name: text → fix`.
    fn faults(&self) -> Vec<String> {
        let mut out = Vec::new();
        let args = DoctorArgs { json: true, ..DoctorArgs::default() };
        let outcome = run(&self.config(), &args, &mut out);
        let page: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(page["ok"].as_bool(), Some(outcome.is_ok()));
        let checks = page["checks"].as_array().unwrap().clone();
        let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
        let bad = checks.iter().filter(|check| check["level"] != "ok");
        bad.map(|check| {
            let [level, name, words, fix] =
                ["level", "name", "text", "fix"].map(|key| text(check, key));
            format!("{level} {name}: {words} → {fix}")
        })
        .collect()
    }
}

/// What was done to the machine, and what the one bad line must begin with and contain.
type Fault = (&'static str, fn(&mut Machine), &'static str, &'static [&'static str]);

const FAULTS: &[Fault] = &[
    (
        "no engine is installed",
        |m| m.unset("ZCODE_BIN"),
        "problem engine: not found",
        &["ZCODE_CJS", "→ "],
    ),
    (
        "the engine that is named is not there",
        |m| m.set("ZCODE_BIN", "/no/such/engine"),
        "problem engine: not found",
        &["/no/such/engine"],
    ),
    (
        "Node is too old",
        |m| {
            let node = m.script(
                "node",
                &format!("[ \"$1\" = --version ] && echo v18.0.0 && exit\n{ANSWER}"),
            );
            m.write("zcode.cjs", "");
            m.unset("ZCODE_BIN");
            m.set("ZCODE_NODE", node.to_str().unwrap());
            m.set("ZCODE_CJS", m.path("zcode.cjs").to_str().unwrap().to_owned());
        },
        "problem node: ",
        &["v18.0.0", "22 or newer"],
    ),
    (
        "there is no Node",
        |m| {
            m.write("zcode.cjs", "");
            m.unset("ZCODE_BIN");
            m.set("ZCODE_NODE", "/no/such/node");
            m.set("ZCODE_CJS", m.path("zcode.cjs").to_str().unwrap().to_owned());
        },
        "problem node: ",
        &["/no/such/node", "install Node 22 or newer"],
    ),
    (
        "the engine is not executable",
        |m| m.chmod("zcode", 0o644),
        "problem engine: ",
        &["zcode (ZCODE_BIN is set) is not executable", "chmod +x "],
    ),
    (
        "the engine cannot be run on this machine",
        |m| m.write("zcode", "#!/no/such/interpreter\n"),
        "problem protocol: cannot start",
        &["an engine that this machine can run"],
    ),
    (
        "the engine's script is a directory",
        |m| {
            let dir = m.directory("app", 0o755);
            m.unset("ZCODE_BIN");
            m.set("ZCODE_CJS", dir);
        },
        "problem engine: not found",
        &["app (a directory, not a file)"],
    ),
    (
        "the engine ends at once",
        |m| drop(m.script("zcode", "echo the database is locked >&2; exit 7")),
        "problem protocol: ",
        &["the database is locked", "--bundle"],
    ),
    (
        "what the engine says is no protocol",
        |m| drop(m.script("zcode", "echo hello; exit 0")),
        "problem protocol: what it says is not the engine's protocol: not a JSON object: ",
        &["hello", "→ this is no ZCode engine"],
    ),
    (
        "the provider configuration is of another kind",
        |m| {
            m.write(".zcode/v2/credentials.json", r#"{"zcodejwttoken": "t"}"#);
            m.write(".zcode/v2/config.json", "[]");
        },
        "problem config.json: not a JSON object",
        &["open the ZCode app"],
    ),
    (
        "the provider configuration is broken",
        |m| {
            m.write(".zcode/v2/credentials.json", r#"{"zcodejwttoken": "t"}"#);
            m.write(".zcode/v2/config.json", r#"{"provider": {"#);
        },
        "problem config.json: EOF",
        &["line 1", "open the ZCode app"],
    ),
    (
        "the personal providers are broken",
        |m| m.write(".zcode/v2/provider_config.json", "no"),
        "problem provider_config.json: ",
        &["open the ZCode app"],
    ),
    (
        "the plan cache is broken",
        |m| m.write(".zcode/v2/coding-plan-cache.json", "no"),
        "warning coding-plan-cache.json: ",
        &["open the ZCode app"],
    ),
    (
        "nobody is signed in and there is no key",
        |m| m.write(".zcode/v2/config.json", "{}"),
        "problem sign-in: not signed in",
        &["sign in in the ZCode app"],
    ),
    (
        "TMPDIR is not there",
        |m| m.set("TMPDIR", "/no/such/tmp"),
        "problem TMPDIR: /no/such/tmp",
        &["set TMPDIR"],
    ),
    (
        "TMPDIR is too long",
        |m| {
            let long = m.directory(&"t".repeat(60), 0o700);
            m.set("TMPDIR", long);
        },
        "warning TMPDIR: ",
        &["too long", "shorter"],
    ),
    (
        "the state directory is open to others",
        |m| drop(m.directory("state", 0o755)),
        "warning state: ",
        &["open to others", "chmod 700"],
    ),
    (
        "the state directory cannot be made",
        |m| m.write("state", "a file"),
        "problem state: ",
        &["ZCODE_ACP_STATE_DIR"],
    ),
    (
        "the log cannot be written",
        |m| {
            drop(m.directory("state", 0o700));
            m.write("state/log", "a file");
        },
        "problem log: ",
        &["nothing is logged"],
    ),
    (
        "the log's directory is open to others",
        |m| {
            drop(m.directory("state", 0o700));
            drop(m.directory("state/log", 0o777));
        },
        "problem log: others can write to ",
        &["nothing is logged", "chmod 700 "],
    ),
    (
        "the log's filter is wrong",
        |m| m.set("ZCODE_ACP_LOG", "a=b=c"),
        "warning log: ZCODE_ACP_LOG=a=b=c",
        &["off, error"],
    ),
    (
        "the settings file is broken",
        |m| m.write(".config/zcode-acp/config.json", "{\n\"debug\": yes}"),
        "warning settings: ",
        &["config.json line 2", "mend "],
    ),
    (
        "the settings file can be written by others",
        |m| {
            m.write(".config/zcode-acp/config.json", "{}");
            m.chmod(".config/zcode-acp/config.json", 0o666);
        },
        "warning settings: ",
        &["can be written by others (mode 666)", "chmod 600"],
    ),
    (
        "a variable's number is none",
        |m| m.set("ZCODE_ACP_INTERACTION_TIMEOUT_MS", "abc"),
        "warning values: ZCODE_ACP_INTERACTION_TIMEOUT_MS=abc",
        &["→ correct ZCODE_ACP_INTERACTION_TIMEOUT_MS, or leave it out"],
    ),
    (
        "a variable's mode is none",
        |m| m.set("ZCODE_ACP_MODE", "bogus"),
        "warning values: ZCODE_ACP_MODE=bogus",
        &["guarded", "→ correct ZCODE_ACP_MODE, or leave it out"],
    ),
    (
        "a variable is misspelt",
        |m| m.set("ZCODE_ACP_MODLE", "plan"),
        "warning variables: ZCODE_ACP_MODLE",
        &["typing mistake"],
    ),
    (
        "the locale is not UTF-8",
        |m| m.set("LANG", "C"),
        "warning locale: LANG=C",
        &["export LANG=C.UTF-8"],
    ),
    (
        "ZCode's directory has another name",
        |m| {
            let dir = m.directory("elsewhere", 0o700);
            m.write(
                "elsewhere/v2/config.json",
                &fs::read_to_string(m.path(".zcode/v2/config.json")).unwrap(),
            );
            m.set("ZCODE_HOME", dir);
        },
        "warning ZCode home: ",
        &["/.zcode"],
    ),
    (
        "approvals go to a directory that is not there",
        |m| {
            m.set("ZCODE_ACP_APPROVAL_BRIDGE", "1");
            m.set("ZCODE_ACP_APPROVAL_DIR", "/no/such/pending");
        },
        "warning approvals: /no/such/pending is not there",
        &["mkdir -p -m 700"],
    ),
    (
        "approvals can be given by everybody",
        |m| {
            let dir = m.directory("pending", 0o777);
            m.set("ZCODE_ACP_APPROVAL_BRIDGE", "1");
            m.set("ZCODE_ACP_APPROVAL_DIR", dir);
        },
        "problem approvals: ",
        &["chmod 700"],
    ),
    (
        "the live check cannot ask",
        |m| {
            m.write(".zcode/v2/credentials.json", r#"{"oauth:zai:access_token": "enc:v1:x"}"#);
            m.set("ZCODE_ACP_LIVE_ENTITLEMENT", "1");
        },
        "warning live check: on, but",
        &["encrypted", "accounts.liveCheck turns it off"],
    ),
];

#[test]
fn a_healthy_machine_has_no_bad_line() {
    assert_eq!(Machine::new().faults(), Vec::<String>::new());
}

#[test]
fn each_fault_made_on_purpose_is_one_bad_line_with_what_to_do() {
    for (what, damage, begins, contains) in FAULTS {
        let mut machine = Machine::new();
        damage(&mut machine);
        let faults = machine.faults();
        assert_eq!(faults.len(), 1, "{what}: {faults:#?}");
        let line = &faults[0];
        assert!(line.starts_with(begins), "{what}: {line}");
        for part in *contains {
            assert!(line.contains(part), "{what}: no {part:?} in {line}");
        }
    }
}

#[test]
fn without_an_engine_the_directory_for_its_files_is_looked_at_all_the_same() {
    let mut machine = Machine::new();
    machine.unset("ZCODE_BIN");
    machine.set("TMPDIR", "/no/such/tmp");
    let faults = machine.faults();
    assert_eq!(faults.len(), 2, "{faults:#?}");
    assert!(faults[1].starts_with("problem TMPDIR: /no/such/tmp"), "{faults:#?}");
}

#[tokio::test]
async fn an_engine_that_hangs_is_a_problem_after_the_limit() {
    let machine = Machine::new();
    let _hangs = machine.script("zcode", "exec sleep 100");
    let check = engine::answers(&machine.config(), Duration::from_millis(300)).await;
    assert_eq!(check.level, report::Level::Problem);
    assert!(check.text.contains("no answer within 0.3 s"), "{check:?}");
    assert!(check.fix.unwrap().contains("other ZCode processes"));
}

#[test]
fn a_page_about_a_strangers_directory_names_no_secret() {
    let machine = Machine::new();
    machine.write(
        ".zcode/v2/credentials.json",
        r#"{"oauth:zai:access_token": "tok-secret-in-the-clear"}"#,
    );
    let mut out = Vec::new();
    run(&machine.config(), &DoctorArgs::default(), &mut out).unwrap();
    let page = String::from_utf8(out).unwrap();
    assert!(page.contains("signed in: zai") && !page.contains("tok-secret"), "{page}");
}
