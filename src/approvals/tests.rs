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
        let (found, _) = Store::open(dir).unwrap().list().unwrap();
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
    let record = Store::open(dir.path()).unwrap().list().unwrap().0.remove(0);
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

#[tokio::test]
async fn a_directory_that_is_opened_to_others_meanwhile_decides_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let (verdict, _) = ask(|path| {
        let dir = path.parent().unwrap();
        fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
        set_status(path, "allow");
    })
    .await;
    assert!(matches!(verdict, Verdict::Deny(_)), "{verdict:?}");
}

#[tokio::test]
async fn an_answer_needs_the_status_alone_and_is_seen_however_it_is_written() {
    let (verdict, _) = ask(|path| fs::write(path, r#"{"status": "allow"}"#).unwrap()).await;
    assert_eq!(verdict, Verdict::Allow);
    let (verdict, _dir) = ask(|path| {
        // By another name of the file, outside of what is watched.
        let elsewhere = path.parent().unwrap().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let other = elsewhere.join("name");
        fs::hard_link(path, &other).unwrap();
        set_status(&other, "allow");
    })
    .await;
    assert_eq!(verdict, Verdict::Allow);
    let (verdict, _) = ask(|path| {
        use std::io::Write as _;
        let text = fs::read_to_string(path).unwrap().replace("pending", "allow");
        let mut file = fs::File::create(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        std::mem::forget(file); // its writer keeps it open
    })
    .await;
    assert_eq!(verdict, Verdict::Allow);
}

#[test]
fn old_questions_are_swept_and_one_that_nobody_waits_for_is_not_open() {
    let dir = private_dir();
    let store = Store::open(dir.path()).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let an_hour_ago = now.as_secs_f64() - 3600.0;
    for (id, status, created) in [
        ("aaaaaaaaaaaa", "allow", 1.0),
        ("bbbbbbbbbbbb", "pending", 1.0),
        ("cccccccccccc", "pending", an_hour_ago),
    ] {
        let record = json!({"id": id, "agent": "zcode", "tool_name": "T", "brief": "", "payload": {},
            "created": created, "status": status});
        fs::write(dir.path().join(format!("{id}.json")), record.to_string()).unwrap();
    }
    let asked = store.create(&request()).unwrap();
    let (records, _) = store.list().unwrap();
    let open: Vec<(&str, bool)> =
        records.iter().map(|r| (r.id.as_str(), r.is_open(TIME_LIMIT))).collect();
    assert_eq!(open, [("cccccccccccc", false), (asked.id(), true)]);
    asked.settled();
}

#[test]
fn an_answer_leaves_the_rest_of_the_file_as_it_was() {
    let dir = private_dir();
    let store = Store::open(dir.path()).unwrap();
    let text = r#"{"id":"aaaaaaaaaaaa","agent":"zcode","tool_name":"T","brief":"","created":1,
        "payload":{"n":12345678901234567890123},"status":"pending","mine":"kept"}"#;
    fs::write(dir.path().join("aaaaaaaaaaaa.json"), text).unwrap();
    assert!(store.answer("aaaaaaaaaaaa", "deny", "me", Some("no")).unwrap());
    let after = fs::read_to_string(dir.path().join("aaaaaaaaaaaa.json")).unwrap();
    for kept in [r#""created":1,"#, "12345678901234567890123", r#""mine":"kept""#, r#""deny""#] {
        assert!(after.contains(kept), "{kept} in {after}");
    }
}

/// Runs the subcommand on a directory.
fn command(
    dir: &Path,
    command: Option<ApprovalsCommand>,
) -> Result<String, crate::error::AppError> {
    let config = Config::from_env(
        crate::config::Env::default(),
        "/nowhere".into(),
        &crate::config::SettingsFile::default(),
    );
    let mut out = Vec::new();
    let args = ApprovalsArgs { dir: Some(dir.to_path_buf()), json: false, command };
    super::run(&config, &args, &mut out).map(|()| String::from_utf8(out).unwrap())
}

#[tokio::test]
async fn the_subcommand_lists_and_answers() {
    let (verdict, _) = ask(|path| {
        let dir = path.parent().unwrap();
        let listed = command(dir, None).unwrap();
        assert!(listed.contains("Bash") && listed.contains("rm -rf build"), "{listed}");
        let id = path.file_stem().unwrap().to_str().unwrap().get(..4).unwrap().to_owned();
        command(dir, Some(ApprovalsCommand::Allow { id: id.clone(), note: None })).unwrap();
        let again = command(dir, Some(ApprovalsCommand::Deny { id, note: None }));
        assert!(again.is_err(), "answered already");
        assert!(command(dir, None).unwrap().contains("nothing is waiting"));
    })
    .await;
    assert_eq!(verdict, Verdict::Allow);
}

/// What a question and its asker look like after the asker was killed: the file lies there, the
/// lock is free.
fn killed(dir: &Path) -> String {
    let store = Store::open(dir).unwrap();
    let asked = store.create(&request()).unwrap();
    let id = asked.id().to_owned();
    let beside = dir.join(format!(".{id}.asker"));
    let (question, asker) = (fs::read(dir.join(format!("{id}.json"))), fs::read(&beside));
    drop(asked);
    fs::write(dir.join(format!("{id}.json")), question.unwrap()).unwrap();
    fs::write(&beside, asker.unwrap()).unwrap();
    id
}

#[test]
fn a_question_whose_asker_was_killed_is_closed_and_one_that_is_asked_is_not() {
    let dir = private_dir();
    let id = killed(dir.path());
    let asked = Store::open(dir.path()).unwrap().create(&request()).unwrap();
    // The next question sweeps before it is asked.
    let record = Store::open(dir.path()).unwrap().read(&id).unwrap();
    assert_eq!((record.status.as_str(), record.via.as_deref()), ("deny", Some("zcode-acp")));
    assert!(!dir.path().join(format!(".{id}.asker")).exists());
    let listed = command(dir.path(), None).unwrap();
    assert!(listed.contains(asked.id()) && !listed.contains(&id), "{listed}");
    assert!(dir.path().join(format!(".{}.asker", asked.id())).exists());
    drop(asked);

    let id = killed(dir.path());
    let allow = ApprovalsCommand::Allow { id: id.clone(), note: None };
    let refused = command(dir.path(), Some(allow)).unwrap_err().to_string();
    assert!(refused.contains("was killed"), "{refused}");
    assert!(command(dir.path(), None).unwrap().contains("nothing is waiting"));

    let id = killed(dir.path());
    let listed = command(dir.path(), None).unwrap();
    assert!(listed.contains(&format!("{id}  Bash  closed as denied")), "{listed}");
}

#[test]
fn an_asker_of_another_machine_or_of_another_program_is_not_judged() {
    let dir = private_dir();
    for asker in [Some("another machine"), None] {
        let id = killed(dir.path());
        let beside = dir.path().join(format!(".{id}.asker"));
        match asker {
            Some(name) => fs::write(&beside, name).unwrap(),
            None => fs::remove_file(&beside).unwrap(),
        }
        assert!(command(dir.path(), None).unwrap().contains(&id), "{asker:?}");
        let allow = ApprovalsCommand::Allow { id, note: None };
        command(dir.path(), Some(allow)).unwrap();
    }
}

#[test]
fn nothing_is_hidden_from_whoever_is_to_allow_it() {
    let dir = private_dir();
    let store = Store::open(dir.path()).unwrap();
    let line = format!("echo {}; rm -rf ~", "a".repeat(420));
    let asked = store
        .create(&json!({"toolName": "Bash\u{1b}[8m\u{ad}", "input": {"command": line}}))
        .unwrap();
    let record = store.read(asked.id()).unwrap();
    assert!(record.brief.ends_with('…') && record.brief.chars().count() == 400);
    let listed = command(dir.path(), None).unwrap();
    assert!(listed.contains("; rm -rf ~"), "{listed}");
    assert!(!listed.contains('\u{1b}') && !listed.contains('\u{ad}'), "{listed:?}");
    asked.settled();
    // What is too long for a list says so, and where all of it is.
    let long = store.create(&json!({"toolName": "Write", "input": "x".repeat(3000)})).unwrap();
    let listed = command(dir.path(), None).unwrap();
    let show = format!("characters more: zcode-acp approvals show {}", long.id());
    assert!(listed.contains(&show), "{listed}");
    let shown = command(dir.path(), Some(ApprovalsCommand::Show { id: long.id().to_owned() }));
    assert!(shown.unwrap().contains(&"x".repeat(3000)));
    long.settled();
}

#[test]
fn an_id_that_is_not_there_answers_nothing() {
    let dir = private_dir();
    let asked = Store::open(dir.path()).unwrap().create(&request()).unwrap();
    for id in ["", asked.id().get(..3).unwrap()] {
        let answer = ApprovalsCommand::Allow { id: id.to_owned(), note: None };
        let refused = command(dir.path(), Some(answer)).unwrap_err();
        assert_eq!(refused.kind, crate::error::ErrorKind::Usage);
    }
    assert!(command(dir.path(), None).unwrap().contains(asked.id()));
    asked.settled();
}

use crate::config::Config;
