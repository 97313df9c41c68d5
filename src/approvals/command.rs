//! The `approvals` subcommand: shows open questions and answers them.

use std::io::Write;
use std::path::PathBuf;

use serde_json::Value;

use super::TIME_LIMIT;
use super::store::{OPEN, Record, Store, StoreError};
use crate::cli::{ApprovalsArgs, ApprovalsCommand};
use crate::config::Config;
use crate::error::AppError;
use crate::printable;

/// Characters of a tool's input that the list shows; `show` has all of it.
const MAX_SHOWN: usize = 2000;
/// Digits of an id that have to be given.
const MIN_ID: usize = 4;
/// Why a question was closed by us.
const GONE: &str = "the program that asked was killed";

/// Runs the subcommand; `out` is standard output.
pub fn run(config: &Config, args: &ApprovalsArgs, out: &mut dyn Write) -> Result<(), AppError> {
    let dir = args.dir.clone().unwrap_or_else(|| config.default_approval_dir.clone());
    let store = Store::open(&dir).map_err(|err| {
        let name = dir.display();
        let hint = match err {
            StoreError::NotPrivate { problem: OPEN, .. } => format!("chmod 700 {name}"),
            StoreError::NotPrivate { .. } => "name a directory of your own with --dir".to_owned(),
            _ => format!("make it with: mkdir -p -m 700 {name}"),
        };
        AppError::failed(format!("cannot use {}", dir.display())).caused_by(err).hint(hint)
    })?;
    match &args.command {
        None => list(&store, args.json, out),
        Some(ApprovalsCommand::Show { id }) => show(&store, id, out),
        Some(ApprovalsCommand::Allow { id, note }) => {
            answer(&store, id, "allow", note.as_deref(), out)
        }
        Some(ApprovalsCommand::Deny { id, note }) => {
            answer(&store, id, "deny", note.as_deref(), out)
        }
    }
}

/// What lies in the directory.
struct Questions {
    open: Vec<Record>,
    /// Closed just now: whoever asked was killed.
    gone: Vec<Record>,
    /// Files that nobody can read.
    unreadable: Vec<PathBuf>,
}

fn look(store: &Store) -> Result<Questions, AppError> {
    let (mut records, unreadable) =
        store.list().map_err(|err| AppError::failed("cannot list the questions").caused_by(err))?;
    let gone = records.extract_if(.., |record| store.close_if_gone(record)).collect();
    records.retain(|record| record.is_open(TIME_LIMIT));
    Ok(Questions { open: records, gone, unreadable })
}

fn list(store: &Store, as_json: bool, out: &mut dyn Write) -> Result<(), AppError> {
    let Questions { open, gone, unreadable } = look(store)?;
    let written = if as_json {
        writeln!(out, "{}", serde_json::to_string(&open).unwrap_or_default())
    } else if open.is_empty() && unreadable.is_empty() {
        writeln!(out, "nothing is waiting for an answer")
    } else {
        open.iter().try_for_each(|record| {
            // Whoever allows it must have seen the whole of it.
            let (tool, input) = (printable::line(&record.tool_name), record.whole_input());
            let input = printable::line(&input);
            match input.char_indices().nth(MAX_SHOWN) {
                None => writeln!(out, "{}  {tool}  {input}", record.id),
                Some((cut, _)) => {
                    let more = input.chars().count() - MAX_SHOWN;
                    let begin = input.get(..cut).unwrap_or_default();
                    writeln!(
                        out,
                        "{}  {tool}  {begin}… {more} characters more: zcode-acp approvals show {}",
                        record.id, record.id
                    )
                }
            }
        })
    };
    if !as_json {
        for record in gone {
            let tool = printable::line(&record.tool_name);
            drop(writeln!(out, "{}  {tool}  closed as denied: {GONE}", record.id));
        }
        for path in unreadable {
            drop(writeln!(out, "cannot be read: {}", printable::line(&path.display().to_string())));
        }
    }
    written.map_err(|err| AppError::failed("cannot write").caused_by(err))
}

/// The one open question whose id begins so.
fn find(store: &Store, id: &str) -> Result<Record, AppError> {
    // An unset variable of a script must not answer whatever waits.
    if id.len() < MIN_ID {
        return Err(AppError::usage(format!("{id:?} is no id: at least {MIN_ID} digits of one")));
    }
    let Questions { open: mut matching, gone, .. } = look(store)?;
    matching.retain(|record| record.id.starts_with(id));
    match (matching.pop(), matching.is_empty()) {
        (Some(record), true) => Ok(record),
        (None, _) if gone.iter().any(|record| record.id.starts_with(id)) => {
            Err(AppError::failed(format!("{id} is closed as denied: {GONE}")))
        }
        (None, _) => Err(AppError::failed(format!("no open question {id}"))
            .hint("list them with: zcode-acp approvals")),
        _ => Err(AppError::usage(format!("{id} stands for more than one question"))),
    }
}

/// The whole question, a field a line, text as it would run.
fn show(store: &Store, id: &str, out: &mut dyn Write) -> Result<(), AppError> {
    let record = find(store, id)?;
    let payload: Value = serde_json::from_str(record.payload.get()).unwrap_or_default();
    let pretty = serde_json::to_string_pretty(&payload).unwrap_or_default();
    let lines: Vec<String> =
        pretty.lines().map(|line| printable::line(line).into_owned()).collect();
    writeln!(out, "{}  {}\n{}", record.id, printable::line(&record.tool_name), lines.join("\n"))
        .map_err(|err| AppError::failed("cannot write").caused_by(err))
}

fn answer(
    store: &Store,
    id: &str,
    status: &str,
    note: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), AppError> {
    let record = find(store, id)?;
    let answered = store
        .answer(&record.id, status, "zcode-acp approvals", note)
        .map_err(|err| AppError::failed("cannot answer").caused_by(err))?;
    if !answered {
        return Err(AppError::failed(format!("{} has been answered already", record.id)));
    }
    writeln!(out, "{} {status}: {}", record.id, printable::line(&record.tool_name))
        .map_err(|err| AppError::failed("cannot write").caused_by(err))
}
