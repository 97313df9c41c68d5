//! The bridge with real files: answers, faults, time, withdrawal, privacy.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::*;
use crate::cli::{ApprovalsArgs, ApprovalsCommand};

fn private_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }
    dir
}

fn request() -> Value {
    json!({"requestId": "r", "toolName": "Bash", "input": {"command": "rm -rf build"}, "options": []})
}

async fn question_in(dir: &Path) -> String {
    loop {
        let found = Store::open(dir).unwrap().list().unwrap();
        if let Some(record) = found.first() {
            return record.id.clone();
        }
        tokio::task::yield_now().await;
    }
}

/// Asks, lets `answer` act on the question's path, returns the verdict.
async fn ask(answer: impl FnOnce(&Path)) -> (Verdict, tempfile::TempDir) {
    let dir = private_dir();
    let bridge = ApprovalBridge::open(dir.path()).unwrap();
    let asked = tokio::spawn(async move { bridge.ask(&request()).await });
    let id = question_in(dir.path()).await;
    answer(&dir.path().join(format!("{id}.json")));
    let verdict = tokio::time::timeout(Duration::from_secs(30), asked).await.unwrap().unwrap();
    (verdict, dir)
}

/// Changes the file as the documented way does: in place, not atomically.
fn set_status(path: &Path, status: &str) {
    let mut record: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    record["status"] = json!(status);
    fs::write(path, record.to_string()).unwrap();
}

#[tokio::test]
async fn the_file_has_the_documented_fields_and_is_private() {
    let (_, dir) = ask(|path| {
        let record: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let keys: Vec<&String> = record.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            ["id", "agent", "tool_name", "brief", "payload", "created", "status", "via", "note"]
        );
        assert_eq!(record["id"], path.file_stem().unwrap().to_str().unwrap());
        assert_eq!(record["agent"], "zcode");
        assert_eq!(record["tool_name"], "Bash");
        assert_eq!(record["brief"], r#"{"command":"rm -rf build"}"#);
        assert_eq!(record["payload"], request());
        assert_eq!(record["status"], "pending");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        set_status(path, "deny");
    })
    .await;
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file stays");
}

#[tokio::test]
async fn allow_allows_and_deny_denies() {
    assert_eq!(ask(|path| set_status(path, "allow")).await.0, Verdict::Allow);
    assert!(matches!(ask(|path| set_status(path, "deny")).await.0, Verdict::Deny(_)));
}

#[tokio::test(start_paused = true)]
async fn where_nothing_announces_changes_the_file_is_looked_at() {
    let dir = private_dir();
    let bridge = ApprovalBridge { watches: false, ..ApprovalBridge::open(dir.path()).unwrap() };
    let began = Instant::now();
    let asked = tokio::spawn(async move { bridge.ask(&request()).await });
    let id = question_in(dir.path()).await;
    set_status(&dir.path().join(format!("{id}.json")), "allow");
    assert_eq!(asked.await.unwrap(), Verdict::Allow);
    assert!(began.elapsed() <= POLL * 2, "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_answer_written_in_two_halves_is_waited_for() {
    let (verdict, _) = ask(|path| {
        let whole = fs::read_to_string(path).unwrap().replace("pending", "allow");
        fs::write(path, whole.get(..20).unwrap()).unwrap();
        fs::write(path, whole).unwrap();
    })
    .await;
    assert_eq!(verdict, Verdict::Allow);
}

#[tokio::test]
async fn every_fault_denies() {
    for fault in [
        (|path: &Path| fs::remove_file(path).unwrap()) as fn(&Path),
        |path| fs::write(path, "not json").unwrap(),
        |path| set_status(path, "perhaps"),
        |path| set_status(path, "ALLOW"),
        #[cfg(unix)]
        |path| {
            // A link to an "allow" that lies elsewhere.
            let elsewhere = path.with_extension("other");
            let text = fs::read_to_string(path).unwrap().replace("pending", "allow");
            fs::write(&elsewhere, text).unwrap();
            fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink(&elsewhere, path).unwrap();
        },
    ] {
        let (verdict, _) = ask(fault).await;
        assert!(matches!(verdict, Verdict::Deny(_)), "{verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_answering_denies_and_closes_the_file() {
    let dir = private_dir();
    let bridge = ApprovalBridge::open(dir.path()).unwrap();
    let began = Instant::now();
    let verdict = bridge.ask(&request()).await;
    assert!(matches!(verdict, Verdict::Deny(_)));
    assert!(began.elapsed() >= TIME_LIMIT);
    let record = Store::open(dir.path()).unwrap().list().unwrap().remove(0);
    assert_eq!(record.status, "deny");
}

#[tokio::test]
async fn a_withdrawn_question_can_no_longer_be_allowed() {
    let dir = private_dir();
    let bridge = ApprovalBridge::open(dir.path()).unwrap();
    let asked = tokio::spawn(async move { bridge.ask(&request()).await });
    let id = question_in(dir.path()).await;
    asked.abort();
    drop(asked.await);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.read(&id).unwrap().status, "deny");
    assert!(!store.answer(&id, "allow", "me", None).unwrap());
}

#[cfg(unix)]
#[test]
fn a_directory_that_others_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = private_dir();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(ApprovalBridge::open(dir.path()), Err(StoreError::NotPrivate { .. })));
}

#[test]
fn old_answers_are_swept_and_open_questions_stay() {
    let dir = private_dir();
    let store = Store::open(dir.path()).unwrap();
    for (id, status) in [("aaaaaaaaaaaa", "allow"), ("bbbbbbbbbbbb", "pending")] {
        let record = json!({"id": id, "agent": "zcode", "tool_name": "T", "brief": "", "payload": {},
            "created": 1.0, "status": status});
        fs::write(dir.path().join(format!("{id}.json")), record.to_string()).unwrap();
    }
    store.create(&request()).unwrap().settled();
    let ids: Vec<String> = store.list().unwrap().into_iter().map(|record| record.id).collect();
    assert!(!ids.contains(&"aaaaaaaaaaaa".to_owned()) && ids.contains(&"bbbbbbbbbbbb".to_owned()));
}

#[tokio::test]
async fn the_subcommand_lists_and_answers() {
    let (verdict, _) = ask(|path| {
        let config = Config::from_env(
            crate::config::Env::default(),
            "/nowhere".into(),
            &crate::config::SettingsFile::default(),
        );
        let dir = path.parent().unwrap().to_path_buf();
        let run = |command| {
            let mut out = Vec::new();
            let args = ApprovalsArgs { dir: Some(dir.clone()), json: false, command };
            super::run(&config, &args, &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        let listed = run(None).unwrap();
        assert!(listed.contains("Bash") && listed.contains("rm -rf build"), "{listed}");
        let id = path.file_stem().unwrap().to_str().unwrap().get(..4).unwrap().to_owned();
        run(Some(ApprovalsCommand::Allow { id: id.clone(), note: None })).unwrap();
        assert!(run(Some(ApprovalsCommand::Deny { id, note: None })).is_err(), "answered already");
        assert!(run(None).unwrap().contains("nothing is waiting"));
    })
    .await;
    assert_eq!(verdict, Verdict::Allow);
}

use crate::config::Config;
