//! The `approvals` subcommand: shows open questions and answers them.

use std::io::Write;

use serde_json::json;

use super::store::{Record, Store};
use crate::cli::{ApprovalsArgs, ApprovalsCommand};
use crate::config::Config;
use crate::error::AppError;

/// Runs the subcommand; `out` is standard output.
pub fn run(config: &Config, args: &ApprovalsArgs, out: &mut dyn Write) -> Result<(), AppError> {
    let dir = args.dir.clone().unwrap_or_else(|| config.default_approval_dir.clone());
    let store = Store::open(&dir).map_err(|err| {
        AppError::failed(format!("cannot use {}", dir.display()))
            .caused_by(err)
            .hint(format!("make it with: mkdir -p -m 700 {}", dir.display()))
    })?;
    match &args.command {
        None => list(&store, args.json, out),
        Some(ApprovalsCommand::Allow { id, note }) => {
            answer(&store, id, "allow", note.as_deref(), out)
        }
        Some(ApprovalsCommand::Deny { id, note }) => {
            answer(&store, id, "deny", note.as_deref(), out)
        }
    }
}

fn pending(store: &Store) -> Result<Vec<Record>, AppError> {
    let mut records =
        store.list().map_err(|err| AppError::failed("cannot list the questions").caused_by(err))?;
    records.retain(|record| record.status == "pending");
    Ok(records)
}

fn list(store: &Store, as_json: bool, out: &mut dyn Write) -> Result<(), AppError> {
    let records = pending(store)?;
    let written = if as_json {
        writeln!(out, "{}", json!(records))
    } else if records.is_empty() {
        writeln!(out, "nothing is waiting for an answer")
    } else {
        records.iter().try_for_each(|record| {
            writeln!(out, "{}  {}  {}", record.id, record.tool_name, shown(&record.brief))
        })
    };
    written.map_err(|err| AppError::failed("cannot write").caused_by(err))
}

/// Control characters could hide a part of a command from whoever is about to allow it.
fn shown(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() || is_invisible(c) {
                c.escape_unicode().to_string()
            } else {
                c.into()
            }
        })
        .collect()
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn answer(
    store: &Store,
    id: &str,
    status: &str,
    note: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), AppError> {
    let matching: Vec<Record> =
        pending(store)?.into_iter().filter(|record| record.id.starts_with(id)).collect();
    let record = match matching.as_slice() {
        [record] => record,
        [] => {
            return Err(AppError::failed(format!("no open question {id}"))
                .hint("list them with: zcode-acp approvals"));
        }
        _ => return Err(AppError::usage(format!("{id} stands for more than one question"))),
    };
    let answered = store
        .answer(&record.id, status, "zcode-acp approvals", note)
        .map_err(|err| AppError::failed("cannot answer").caused_by(err))?;
    if !answered {
        return Err(AppError::failed(format!("{} has been answered already", record.id)));
    }
    writeln!(out, "{} {status}: {}", record.id, record.tool_name)
        .map_err(|err| AppError::failed("cannot write").caused_by(err))
}
