//! Checks of the engine: where it is, what runs it, whether it answers, and who may use what.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::report::{Check, Level};
use crate::accounts::{AccountFiles, Entitlement, Live, SignIn, Source, entitlements, sign_in};
use crate::bridge::engine::discovery::{self, Entry};
use crate::bridge::engine::event::EngineEvent;
use crate::bridge::engine::{Engine, EngineError};
use crate::config::Config;
use crate::printable;
use crate::process::{self, ChildSpec};

const GROUP: &str = "engine";
const ACCOUNTS: &str = "accounts";
/// How long the engine may take to start and answer; it may have a database to migrate.
const PROBE: Duration = Duration::from_secs(30);
/// Longest directory name under which the engine can bind its socket.
const MAX_TMPDIR: usize = 103 - 45 - 1;

pub(super) async fn checks(config: &Config, probe: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    if config.engine.demo.is_some() {
        checks.push(Check::ok(GROUP, "engine", "the built-in simulated one (--demo)"));
    } else {
        match discovery::locate(&config.env, &config.home) {
            Ok(entry) => {
                checks.push(found(&entry));
                if entry.script {
                    checks.push(node(config).await);
                }
            }
            Err(err) => checks.push(not_found(&err)),
        }
    }
    // What cannot be started needs no second line that says so.
    let startable = checks.iter().all(|check| check.level != Level::Problem);
    checks.push(tmpdir(config.env.str("TMPDIR")));
    if probe && startable {
        checks.push(answers(config, PROBE).await);
    }
    checks
}

fn found(entry: &Entry) -> Check {
    let path = entry.path.display();
    let runs = entry.script || rustix::fs::access(&entry.path, rustix::fs::Access::EXEC_OK).is_ok();
    if runs {
        return Check::ok(GROUP, "engine", format!("{path} ({})", entry.found_by));
    }
    Check::problem(
        GROUP,
        "engine",
        format!("{path} ({}) is not executable", entry.found_by),
        format!("chmod +x {path}, or set ZCODE_CJS to a zcode.cjs"),
    )
}

fn not_found(err: &EngineError) -> Check {
    match err {
        EngineError::NotFound { looked_for, hints } => {
            let text = format!("not found; looked for\n  {}", looked_for.join("\n  "));
            let fix = hints.first().map_or("install the ZCode desktop app", String::as_str);
            Check::problem(GROUP, "engine", text, fix)
        }
        other => Check::problem(GROUP, "engine", other.to_string(), "see above"),
    }
}

async fn node(config: &Config) -> Check {
    match discovery::find_node(&config.env, &config.home).await {
        Ok(path) => {
            let spec = ChildSpec { args: vec!["--version".into()], ..ChildSpec::new(&path) };
            let version = process::capture(&spec, Duration::from_secs(5)).await;
            judge_node(&path, version.as_deref().map(str::trim))
        }
        Err(err) => Check::problem(
            GROUP,
            "node",
            err.to_string(),
            "install Node 22 or newer, or set ZCODE_NODE to one",
        ),
    }
}

/// Node needs `node:sqlite` and `node:sea`, which came with 22.
fn judge_node(path: &Path, version: Option<&str>) -> Check {
    let major = version
        .and_then(|v| v.strip_prefix('v'))
        .and_then(|v| v.split('.').next())
        .and_then(|major| major.parse::<u32>().ok());
    let text = format!("{} {}", path.display(), version.unwrap_or("(tells no version)"));
    match major {
        Some(major) if major >= 22 => Check::ok(GROUP, "node", text),
        Some(_) => Check::problem(GROUP, "node", text, "the engine needs Node 22 or newer"),
        None => Check::warning(GROUP, "node", text, "set ZCODE_NODE to a real Node 22 or newer"),
    }
}

/// Whether files can be made in a directory, without making one.
pub(super) fn usable_dir(dir: &Path) -> std::io::Result<()> {
    if !std::fs::metadata(dir)?.is_dir() {
        return Err(std::io::Error::from(std::io::ErrorKind::NotADirectory));
    }
    let enter = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    Ok(rustix::fs::access(dir, enter)?)
}

/// The engine binds a socket below TMPDIR, whose path has a limit.
fn tmpdir(dir: Option<&str>) -> Check {
    match dir {
        None => Check::ok(GROUP, "TMPDIR", "not set, the system's is used"),
        Some(dir) if dir.len() > MAX_TMPDIR => Check::warning(
            GROUP,
            "TMPDIR",
            format!(
                "{} bytes, too long for the engine's socket; a short one is used instead",
                dir.len()
            ),
            "set TMPDIR to a shorter directory to keep the engine's files in one place",
        ),
        Some(dir) => match usable_dir(Path::new(dir)) {
            Ok(()) => Check::ok(GROUP, "TMPDIR", dir),
            Err(why) => Check::problem(
                GROUP,
                "TMPDIR",
                format!("{dir}: {why}; the engine cannot make its socket"),
                "set TMPDIR to a directory that is there and yours, or unset it",
            ),
        },
    }
}

/// Starts the engine and asks it something harmless.
pub(super) async fn answers(config: &Config, limit: Duration) -> Check {
    let began = Instant::now();
    let (events, mut unread) = mpsc::channel(64);
    let mut odd = None;
    let cwd = config.home.clone();
    let asked = async {
        let engine = Engine::start(config, &cwd, events).await?;
        let workspace = json!({"workspacePath": cwd, "workspaceKey": cwd});
        let answer = engine.request_value("session/list", json!({"workspace": workspace})).await;
        engine.shutdown().await;
        answer
    };
    // A mailbox that nobody reads would stop the engine's reader.
    let outcome = tokio::select! {
        biased;
        outcome = tokio::time::timeout(limit, asked) => outcome,
        () = async {
            while let Some(event) = unread.recv().await {
                note_odd(event, &mut odd);
            }
            std::future::pending::<()>().await;
        } => return Check::ok(GROUP, "protocol", "ended"),
    };
    while let Ok(event) = unread.try_recv() {
        note_odd(event, &mut odd);
    }
    let outcome = outcome.map_err(|_elapsed| limit);
    judge_answer(outcome, odd.as_deref(), began.elapsed())
}

/// Keeps the first line that is no protocol.
fn note_odd(event: EngineEvent, odd: &mut Option<String>) {
    if let EngineEvent::Malformed { reason } = event {
        odd.get_or_insert(reason);
    }
}

/// `Err` of the outer result is the time that passed in vain; `odd` is what was said that is no
/// protocol.
fn judge_answer(
    outcome: Result<Result<Value, EngineError>, Duration>,
    odd: Option<&str>,
    took: Duration,
) -> Check {
    let problem = |text: &str, fix: &str| {
        Check::problem(GROUP, "protocol", crate::redact::text(text).into_owned(), fix)
    };
    let (text, silent) = match outcome {
        Ok(Ok(list)) => {
            let count = list.get("sessions").and_then(|s| s.as_array()).map_or(0, Vec::len);
            let text =
                format!("answered after {} ms; {count} session(s) of this home", took.as_millis());
            return Check::ok(GROUP, "protocol", text);
        }
        Ok(Err(err @ EngineError::Spawn { .. })) => {
            return problem(
                &err.to_string(),
                "set ZCODE_BIN or ZCODE_CJS to an engine that this machine can run",
            );
        }
        Ok(Err(err)) => (err.to_string(), err.is_timeout()),
        Err(limit) => (format!("no answer within {} s", limit.as_secs_f32()), true),
    };
    if let Some(odd) = odd {
        return problem(
            &format!("what it says is not the engine's protocol: {odd}\n{text}"),
            "this is no ZCode engine, or one of another kind: set ZCODE_BIN or ZCODE_CJS to the one of the ZCode app",
        );
    }
    if silent {
        return problem(
            &text,
            "close other ZCode processes that may hold its database, then try again",
        );
    }
    problem(
        &text,
        "open the ZCode app once and let it finish; if that does not help, run this with --bundle and report it",
    )
}

pub(super) async fn accounts(config: &Config) -> Vec<Check> {
    if config.engine.demo.is_some() {
        return Vec::new();
    }
    let table = discovery::provider_table(config);
    let files = AccountFiles::read(&config.zcode_home, table.as_deref());
    let state = sign_in(&files);
    let live = Live::of(config, false).await;
    let mut checks = vec![signed_in(&state), live_check(live.as_ref())];
    checks.extend(files.problems.iter().map(|(name, problem)| broken(name, problem)));
    checks.extend(channels(&state));
    let answers = live.map(|live| live.answers).unwrap_or_default();
    checks.extend(entitlements(&files, &answers).iter().filter_map(plan));
    checks
}

/// A file of ZCode's that cannot be used. Without the ones that hold providers nothing works.
fn broken(name: &str, problem: &str) -> Check {
    let fix = "open the ZCode app, which writes this file anew";
    if name.ends_with("config.json") || name == "zcode-builtin.json" {
        Check::problem(ACCOUNTS, name, problem, fix)
    } else {
        Check::warning(ACCOUNTS, name, problem, fix)
    }
}

/// Whether the services were asked, and what kept them from answering.
fn live_check(live: Option<&Live>) -> Check {
    let name = "live check";
    match live {
        None => {
            Check::ok(ACCOUNTS, name, "off: plans are judged by ZCode's files, nothing is asked")
        }
        Some(live) if live.problems.is_empty() => {
            let text = format!("on: {} plan(s) answered for", live.answers.len());
            Check::ok(ACCOUNTS, name, text)
        }
        Some(live) => Check::warning(
            ACCOUNTS,
            name,
            format!("on, but\n  {}", live.problems.join("\n  ")),
            "until it works plans are judged by ZCode's files; accounts.liveCheck turns it off",
        ),
    }
}

fn signed_in(state: &SignIn) -> Check {
    let mut names = state.families.clone();
    if state.zcode {
        names.push("zcode".to_owned());
    }
    match (state.is_signed_in(), state.is_usable()) {
        (true, _) => {
            let how = if state.encrypted {
                " (tokens are encrypted: only ZCode can use them)"
            } else {
                ""
            };
            Check::ok(ACCOUNTS, "sign-in", format!("signed in: {}{how}", names.join(", ")))
        }
        (false, true) => Check::ok(
            ACCOUNTS,
            "sign-in",
            "not signed in; providers that need no sign-in are there",
        ),
        (false, false) => Check::problem(
            ACCOUNTS,
            "sign-in",
            "not signed in, and no provider can be used",
            "sign in in the ZCode app, or add a provider with an API key there (zcode-acp login says more)",
        ),
    }
}

fn channels(state: &SignIn) -> Option<Check> {
    let usable = state.channels.iter().filter(|channel| channel.problem.is_none()).count();
    if state.channels.is_empty() {
        return None;
    }
    let lines: Vec<String> = state
        .channels
        .iter()
        .map(|channel| match channel.problem {
            None => format!("{}: {} model(s)", printable::line(&channel.id), channel.models),
            Some(problem) => format!("{}: {problem}", printable::line(&channel.id)),
        })
        .collect();
    let text = format!("{usable} of {} usable\n  {}", state.channels.len(), lines.join("\n  "));
    Some(if usable > 0 || state.is_signed_in() {
        Check::ok(ACCOUNTS, "providers", text)
    } else {
        Check::problem(
            ACCOUNTS,
            "providers",
            text,
            "switch one on and give it a key in the ZCode app",
        )
    })
}

/// A plan that may be used, and what says so; a cache can be wrong by days.
fn plan(entitlement: &Entitlement) -> Option<Check> {
    if entitlement.source == Source::Nothing {
        return None;
    }
    let from = entitlement.source.words();
    let state = if entitlement.entitled { "usable" } else { "not valid" };
    Some(Check::ok(ACCOUNTS, &entitlement.account_id, format!("{state} ({from})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_judged_by_its_major_version() {
        let level = |version: Option<&str>| judge_node(Path::new("/n"), version).level;
        assert_eq!(level(Some("v22.1.0")), Level::Ok);
        assert_eq!(level(Some("v20.19.0")), Level::Problem);
        assert_eq!(level(Some("1.2 bun")), Level::Warning);
        assert_eq!(level(None), Level::Warning);
    }

    #[test]
    fn an_engine_that_babbles_is_told_from_one_that_is_busy() {
        let second = Duration::from_secs(1);
        let silent = judge_answer(Err(second), None, second);
        assert!(silent.fix.unwrap().contains("other ZCode processes"));
        for outcome in [Err(second), Ok(Err(EngineError::Closed))] {
            let odd = judge_answer(outcome, Some("not a JSON object: $ "), second);
            assert!(odd.text.contains("not a JSON object: $ "), "{odd:?}");
            assert!(odd.fix.unwrap().contains("no ZCode engine"));
        }
        let banner = judge_answer(Ok(Ok(json!({"sessions": []}))), Some("hello"), second);
        assert_eq!(banner.level, Level::Ok, "what comes before a good answer does no harm");
    }

    #[test]
    fn a_long_tmpdir_is_a_warning() {
        assert_eq!(tmpdir(None).level, Level::Ok);
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(tmpdir(dir.path().to_str()).level, Level::Ok);
        assert_eq!(tmpdir(Some(&"x".repeat(58))).level, Level::Warning);
    }

    #[test]
    fn without_sign_in_and_keys_there_is_a_problem() {
        assert_eq!(signed_in(&SignIn::default()).level, Level::Problem);
        let by_token = SignIn { families: vec!["zai".to_owned()], ..SignIn::default() };
        assert_eq!(signed_in(&by_token).level, Level::Ok);
        assert_eq!(channels(&SignIn::default()), None);
    }
}
