//! The page as a whole, and the report that may be posted.

mod faults;

use std::fs;

use serde_json::Value;

use super::*;
use crate::config::{Env, SettingsFile};

fn config(home: &Path, env: &[(&str, &str)]) -> Config {
    let env: Env = env.iter().copied().collect();
    let file = SettingsFile::read(&home.join(".config/zcode-acp/config.json"));
    Config::from_env(env, home.to_path_buf(), &file)
}

fn doctor(config: &Config, args: &DoctorArgs) -> (Result<(), AppError>, String) {
    let mut out = Vec::new();
    let outcome = run(config, args, &mut out);
    (outcome, String::from_utf8(out).unwrap())
}

#[test]
fn without_an_engine_the_page_says_where_it_looked_and_the_code_is_1() {
    let home = tempfile::tempdir().unwrap();
    let config = config(home.path(), &[("PATH", "/nowhere")]);
    let (outcome, text) = doctor(&config, &DoctorArgs::default());
    assert_eq!(outcome.unwrap_err().kind.exit_code(), 1);
    assert!(text.contains("PROBLEM") && text.contains("ZCODE_CJS"), "{text}");
}

#[test]
fn the_json_page_has_a_level_and_a_fix_for_every_fault() {
    let home = tempfile::tempdir().unwrap();
    let config = config(home.path(), &[("PATH", "/nowhere"), ("LANG", "C")]);
    let (_, text) = doctor(&config, &DoctorArgs { json: true, ..DoctorArgs::default() });
    let page: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(page["ok"], false);
    for check in page["checks"].as_array().unwrap() {
        assert_eq!(check["level"] == "ok", check.get("fix").is_none(), "{check}");
    }
}

#[test]
fn a_name_in_a_file_neither_acts_on_the_terminal_nor_makes_a_line_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let v2 = home.path().join(".zcode/v2");
    fs::create_dir_all(&v2).unwrap();
    let id = "evil\\u001b]0;x\\u0007\\u202e\\n  ok  all is well\\u3164";
    let file = format!(r#"{{"provider": {{"{id}": {{"models": {{"m": {{}}}}}}}}}}"#);
    fs::write(v2.join("config.json"), file).unwrap();
    let (_, text) = doctor(&config(home.path(), &[("PATH", "/nowhere")]), &DoctorArgs::default());
    let escaped = r"evil\u{1b}]0;x\u{7}\u{202e}\n  ok  all is well\u{3164}";
    assert!(text.lines().any(|line| line.contains(escaped)), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{3164}']), "{text}");
}

#[test]
fn an_engine_that_answers_is_ok_and_one_that_does_not_is_a_problem() {
    let home = tempfile::tempdir().unwrap();
    let engine = home.path().join("zcode");
    let check = |script: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::write(&engine, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
        let env = [("PATH", "/usr/bin:/bin"), ("ZCODE_BIN", engine.to_str().unwrap())];
        let config = config(home.path(), &env);
        let (_, text) = doctor(&config, &DoctorArgs { json: true, ..DoctorArgs::default() });
        let page: Value = serde_json::from_str(&text).unwrap();
        let checks = page["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "protocol").unwrap()
    };
    let answer = r#"read l; id=$(echo "$l" | sed 's/.*"id":\([^,}]*\).*/\1/'); echo "{\"id\":$id,\"result\":{\"sessions\":[]}}"; cat"#;
    assert_eq!(check(answer)["level"], "ok");
    let dead = check("echo no database >&2; exit 7");
    assert_eq!(dead["level"], "problem");
    assert!(dead["text"].as_str().unwrap().contains("no database"), "{dead}");
}

#[test]
fn the_report_tells_no_setting_and_no_variable_that_is_not_known() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(".config/zcode-acp");
    fs::create_dir_all(&dir).unwrap();
    let settings = r#"{"session": {"mode": "plan", "other": "planted"}, "tui": {"mouse": false},
        "push": {"corp": "planted", "list": ["planted"]}, "unknown": "planted"}"#;
    let env = [
        ("PATH", "/nowhere"),
        ("ZCODE_ACP_MODE", "plan"),
        ("ZCODE_ACP_PUSH_CORP", "planted"),
        ("ZCODE_ACP_NEW", "planted"),
        ("ZCODE_NEW", "planted"),
        ("SSH_AUTH_SOCK", "planted"),
    ];
    for (text, has) in [(settings, "\"mouse\": false"), ("{planted", "8 bytes that are no JSON")] {
        fs::write(dir.join("config.json"), text).unwrap();
        let path = home.path().join("report.md");
        let _page = doctor(
            &config(home.path(), &env),
            &DoctorArgs { bundle: Some(path.clone()), no_probe: true, ..DoctorArgs::default() },
        );
        let report = fs::read_to_string(&path).unwrap();
        assert!(!report.contains("planted"), "{report}");
        assert!(report.contains(has) && report.contains("ZCODE_ACP_MODE=plan"), "{report}");
        assert!(report.contains("ZCODE_ACP_PUSH_CORP is set"), "{report}");
        fs::remove_file(&path).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_report_takes_the_end_of_a_regular_log_and_waits_for_no_pipe() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("state/log");
    fs::create_dir_all(&log).unwrap();
    fs::write(log.join("zcode-acp.2026-01-01.log"), "early ".repeat(20_000) + "last").unwrap();
    fs::write(home.path().join("elsewhere"), "precious").unwrap();
    let link = log.join("zcode-acp.2026-01-03.log");
    std::os::unix::fs::symlink(home.path().join("elsewhere"), link).unwrap();
    crate::small_file::make_pipe(&log.join("zcode-acp.2026-01-02.log"));
    let state = home.path().join("state");
    let env = [("PATH", "/nowhere"), ("ZCODE_ACP_STATE_DIR", state.to_str().unwrap())];
    let config = config(home.path(), &env);
    let path = home.path().join("report.md");
    let args = DoctorArgs { bundle: Some(path.clone()), no_probe: true, ..DoctorArgs::default() };
    let _page = doctor(&config, &args);
    let report = fs::read_to_string(&path).unwrap();
    assert!(report.contains("early last") && !report.contains("precious"), "{report}");
    assert!(report.len() < 70_000, "{}", report.len());
}

#[test]
fn the_report_has_no_secret_and_no_user_name_and_overwrites_nothing() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(".config/zcode-acp");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.json"), r#"{"remote": {"token": "tok-secret-1"}, "lang": "en"}"#)
        .unwrap();
    let state = home.path().join("state");
    fs::create_dir_all(state.join("log")).unwrap();
    fs::write(
        state.join("log/zcode-acp.2026-01-01.log"),
        "Authorization: Bearer tok-secret-2\nfine",
    )
    .unwrap();
    let env = [
        ("PATH", "/nowhere"),
        ("ZCODE_ACP_STATE_DIR", state.to_str().unwrap()),
        ("ZCODE_ACP_REMOTE_TOKEN", "tok-secret-3"),
        ("ANTHROPIC_API_KEY", "tok-secret-4"),
        ("ZCODE_ACP_MODE", "plan"),
    ];
    let config = config(home.path(), &env);
    let path = home.path().join("report.md");
    let args = || DoctorArgs { bundle: Some(path.clone()), ..DoctorArgs::default() };
    let _first = doctor(&config, &args());
    let report = fs::read_to_string(&path).unwrap();
    assert!(!report.contains("tok-secret"), "{report}");
    assert!(!report.contains(home.path().to_str().unwrap()), "{report}");
    assert!(report.contains("ZCODE_ACP_MODE=plan") && report.contains("fine"), "{report}");
    let (second, _) = doctor(&config, &args());
    assert!(second.unwrap_err().to_string().contains("cannot write"));
}
