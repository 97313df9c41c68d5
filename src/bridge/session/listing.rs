//! `session/list`: the engine's sessions as ACP lists them, filtered by directory and paged, and
//! those that `/resume` offers. Pure but for the spelling of directories.

use std::collections::BTreeMap;
use std::path::Path;

use agent_client_protocol::v1::schema as acp;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use crate::bridge::translate::title;

/// Sessions on one page.
const PAGE: usize = 50;

/// One page of the list.
#[derive(Debug, PartialEq)]
pub(crate) struct Page {
    pub(crate) sessions: Vec<acp::SessionInfo>,
    pub(crate) next: Option<String>,
}

/// Where a page begins: behind this session, in the order newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    updated_at: u64,
    sid: String,
}

impl Cursor {
    /// Reads a cursor that [`Page::next`] gave out.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let plain = String::from_utf8(bytes).ok()?;
        let (at, sid) = plain.strip_prefix("1:")?.split_once(':')?;
        Some(Self { updated_at: at.parse().ok()?, sid: sid.to_owned() })
    }

    fn write(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(format!("1:{}:{}", self.updated_at, self.sid))
    }

    fn is_before(&self, at: u64, sid: &str) -> bool {
        at < self.updated_at || (at == self.updated_at && sid > self.sid.as_str())
    }
}

/// A session of the engine's, for a thread that may go on with it (`/resume`).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Listed {
    pub(crate) engine_sid: String,
    /// The id that clients know it by.
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    /// Milliseconds since 1970.
    pub(crate) updated_at: u64,
    /// As the engine has it, for the resume.
    pub(crate) workspace: Option<Value>,
    /// The directory of its workspace.
    pub(crate) cwd: String,
    /// That is the thread's own directory.
    pub(crate) is_here: bool,
    /// A turn runs in it.
    pub(crate) is_running: bool,
}

/// The user's sessions, newest first; `here` tells the thread's own directory.
pub(crate) fn listed(
    sessions: &[Value],
    ids: &BTreeMap<String, String>,
    here: impl Fn(&str) -> bool,
) -> Vec<Listed> {
    let mut found: Vec<Listed> = sessions
        .iter()
        .filter_map(|session| {
            let (updated_at, sid, info) = entry(session, ids, &|_| true)?;
            let cwd = info.cwd.to_string_lossy().into_owned();
            let status = session.get("status").and_then(Value::as_str);
            Some(Listed {
                engine_sid: sid.to_owned(),
                id: info.session_id.0.to_string(),
                title: session.get("title").and_then(Value::as_str).and_then(title::normalise),
                updated_at,
                workspace: session.get("workspace").cloned().filter(Value::is_object),
                is_here: here(&cwd),
                is_running: matches!(status, Some("running" | "waiting")),
                cwd,
            })
        })
        .collect();
    found.sort_by(|a, b| {
        b.updated_at.cmp(&a.updated_at).then_with(|| a.engine_sid.cmp(&b.engine_sid))
    });
    found
}

/// Makes a page from the engine's `sessions`. `ids` maps engine ids to the ids clients know.
pub(crate) fn page(
    sessions: &[Value],
    ids: &BTreeMap<String, String>,
    keep: impl Fn(&str) -> bool,
    cursor: Option<&Cursor>,
) -> Page {
    let mut found: Vec<(u64, &str, acp::SessionInfo)> =
        sessions.iter().filter_map(|s| entry(s, ids, &keep)).collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let mut rest = found
        .into_iter()
        .filter(|(at, sid, _)| cursor.is_none_or(|c| c.is_before(*at, sid)))
        .peekable();
    let mut sessions = Vec::new();
    let mut last = None;
    while sessions.len() < PAGE {
        let Some((updated_at, sid, info)) = rest.next() else { break };
        last = Some(Cursor { updated_at, sid: sid.to_owned() });
        sessions.push(info);
    }
    let next = rest.peek().and(last).map(|cursor| cursor.write());
    Page { sessions, next }
}

fn entry<'a>(
    session: &'a Value,
    ids: &BTreeMap<String, String>,
    keep: &impl Fn(&str) -> bool,
) -> Option<(u64, &'a str, acp::SessionInfo)> {
    let text = |key: &str| session.get(key).and_then(Value::as_str);
    // Children of subagents and the like are not conversations of the user's.
    if !matches!(text("sessionKind"), None | Some("interactive" | "fork")) {
        return None;
    }
    let sid = text("sessionId")?;
    let cwd = session.get("workspace")?.get("workspacePath")?.as_str()?;
    if !keep(cwd) {
        return None;
    }
    let updated_at = session
        .get("updatedAt")
        .or_else(|| session.get("createdAt"))
        .and_then(Value::as_u64)
        .unwrap_or(0);
    let id = ids.get(sid).map_or(sid, String::as_str).to_owned();
    let name = text("title").filter(|t| !t.trim().is_empty()).map(str::to_owned);
    let info = acp::SessionInfo::new(id, cwd).title(name).updated_at(iso_time(updated_at));
    Some((updated_at, sid, info))
}

/// Milliseconds since 1970 as ISO 8601, UTC.
pub(crate) fn iso_time(ms: u64) -> String {
    let seconds = i64::try_from(ms / 1_000).unwrap_or(0);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The civil calendar, counted from 1 March of year 0 so that leap days come last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

/// A directory that is looked for, whatever its spelling.
pub(crate) struct Directory {
    spelling: String,
    fold_case: bool,
}

impl Directory {
    /// Links and dots are resolved where the directory is there. Case counts only where the file
    /// system says so; a directory that is not there may have been written in another case.
    pub(crate) fn new(path: &Path) -> Self {
        let fold_case = cfg!(any(target_os = "macos", windows)) || !path.is_dir();
        Self { spelling: spelling(path, fold_case), fold_case }
    }

    /// Whether this is the directory.
    pub(crate) fn is(&self, path: &str) -> bool {
        spelling(Path::new(path), self.fold_case) == self.spelling
    }
}

/// One spelling for all: without links, dots and a last slash, and composed (macOS hands out
/// decomposed names).
fn spelling(path: &Path, fold_case: bool) -> String {
    let resolved = std::fs::canonicalize(path).unwrap_or_else(|_| path.components().collect());
    let composed: String = resolved.to_string_lossy().nfc().collect();
    if fold_case { composed.to_lowercase() } else { composed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(n: u64) -> Value {
        json!({"sessionId": format!("s{n:03}"), "sessionKind": "interactive", "title": format!("t{n}"),
            "workspace": {"workspacePath": "/w"}, "updatedAt": n})
    }

    #[test]
    fn pages_cover_every_session_once_newest_first() {
        let all: Vec<Value> = (0..120).map(session).collect();
        let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = page(&all, &BTreeMap::new(), |_| true, cursor.as_ref());
            seen.extend(page.sessions.iter().map(|s| s.session_id.0.to_string()));
            pages += 1;
            match page.next {
                Some(next) => cursor = Some(Cursor::parse(&next).unwrap()),
                None => break,
            }
        }
        let want: Vec<String> = (0..120).rev().map(|n| format!("s{n:03}")).collect();
        assert_eq!((seen, pages), (want, 3));
    }

    #[test]
    fn children_are_left_out_and_forks_are_listed() {
        let mut child = session(1);
        child["sessionKind"] = json!("subagent");
        let mut fork = session(2);
        fork["sessionKind"] = json!("fork");
        let page = page(&[child, fork], &BTreeMap::new(), |_| true, None);
        assert_eq!(page.sessions.len(), 1);
    }

    #[test]
    fn what_can_be_gone_on_with_is_listed_newest_first_with_what_speaks_against_it() {
        let (mut running, mut elsewhere, mut child) = (session(3), session(4), session(5));
        running["status"] = json!("running");
        elsewhere["workspace"] = json!({"workspacePath": "/elsewhere"});
        child["sessionKind"] = json!("subagent");
        let ids = BTreeMap::from([("s003".to_owned(), "acp-id".to_owned())]);
        let found =
            listed(&[session(1), running, elsewhere, child, json!({})], &ids, |it| it == "/w");
        let brief: Vec<(&str, bool, bool)> =
            found.iter().map(|it| (it.id.as_str(), it.is_here, it.is_running)).collect();
        assert_eq!(brief, [("s004", false, false), ("acp-id", true, true), ("s001", true, false)]);
        assert_eq!((found[1].engine_sid.as_str(), found[1].title.as_deref()), ("s003", Some("t3")));
        assert_eq!(found[2].workspace, Some(json!({"workspacePath": "/w"})));
    }

    #[test]
    fn sessions_come_under_the_id_that_clients_know() {
        let ids = BTreeMap::from([("s001".to_owned(), "acp-id".to_owned())]);
        let page = page(&[session(1)], &ids, |_| true, None);
        assert_eq!(page.sessions[0].session_id.0.as_ref(), "acp-id");
    }

    #[test]
    fn a_cursor_of_somebody_else_is_refused() {
        for bad in ["", "x", "MTox", "OTk6MTpz"] {
            assert_eq!(Cursor::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_are_written_as_iso_8601() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_996_799_999, "2026-11-29T23:59:59.999Z"),
        ] {
            assert_eq!(iso_time(ms), text);
        }
    }

    #[test]
    fn a_directory_is_known_by_every_spelling() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("gr\u{f6}\u{df}e");
        std::fs::create_dir(&real).unwrap();
        let wanted = Directory::new(&real);
        let text = real.to_str().unwrap();
        let decomposed: String = text.nfd().collect();
        assert_ne!(text, decomposed);
        for same in [text.to_owned(), format!("{text}/"), format!("{text}/."), decomposed.clone()] {
            assert!(wanted.is(&same), "{same}");
        }
        assert!(Directory::new(Path::new(&decomposed)).is(text));
        assert!(!wanted.is(dir.path().to_str().unwrap()));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_names_the_directory_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(Directory::new(&link).is(real.to_str().unwrap()));
        assert!(Directory::new(&real).is(link.to_str().unwrap()));
    }

    #[test]
    fn case_matters_where_two_directories_could_differ_by_it() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("Work");
        std::fs::create_dir(&real).unwrap();
        let lower = real.to_str().unwrap().to_lowercase();
        assert!(Directory::new(Path::new(&lower)).is(real.to_str().unwrap()));
        if cfg!(target_os = "linux") {
            assert!(!Directory::new(&real).is(&lower));
        }
        assert!(Directory::new(Path::new("/")).is("/"));
    }
}
