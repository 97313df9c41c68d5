//! The `sessions` subcommand: lists, shows, exports and closes sessions. An ACP client like every
//! other, over the bridge in this process: what it knows, the agent told it.

mod client;
mod export;

use std::io::Write;

use serde_json::{Value, json};

use crate::agents;
use crate::cli::{SessionsArgs, SessionsCommand, TranscriptFormat};
use crate::config::{Config, working_directory};
use crate::error::AppError;
use crate::printable;
use client::Session;

/// Carries the command out.
pub fn run(config: Config, args: &SessionsArgs, out: &mut dyn Write) -> Result<(), AppError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| AppError::failed("cannot start the runtime").caused_by(err))?;
    let cwd = working_directory(args.cwd.as_deref())?;
    let agent = agents::bridge(config).start();
    let command = args.command.clone().unwrap_or(SessionsCommand::List { all: false, json: false });
    match command {
        SessionsCommand::List { all, json } => {
            let only = (!all).then_some(cwd.as_path());
            let sessions = runtime.block_on(client::list(agent, only))?;
            let text = if json {
                format!("{}\n", sessions.iter().map(Session::to_json).collect::<Value>())
            } else {
                table(&sessions, all)
            };
            write(out, &text)
        }
        SessionsCommand::Show { id } => {
            let updates = runtime.block_on(client::load(agent, &id, &cwd))?;
            // For people; a program takes the export.
            write(out, &printable::text(&export::markdown(&updates)))
        }
        SessionsCommand::Export { id, format, output } => {
            let updates = runtime.block_on(client::load(agent, &id, &cwd))?;
            let text = match format {
                TranscriptFormat::Markdown => export::markdown(&updates),
                TranscriptFormat::Json => {
                    let object = json!({"sessionId": id, "cwd": cwd, "updates": updates});
                    format!("{object:#}\n")
                }
            };
            match output {
                None => write(out, &text),
                Some(path) => {
                    export::write_new(&path, &text)
                        .map_err(|err| AppError::cannot_write_new(&path, err))?;
                    write(out, &format!("wrote {}\n", path.display()))
                }
            }
        }
        SessionsCommand::Close { id } => {
            runtime.block_on(client::close(agent, &id, &cwd))?;
            write(out, &format!("closed {id}\n"))
        }
    }
}

fn write(out: &mut dyn Write, text: &str) -> Result<(), AppError> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // `sessions show … | head`: who reads no more has enough.
        Err(err) if err.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|err| AppError::failed("cannot write").caused_by(err)),
    }
}

/// One line a session, newest first.
fn table(sessions: &[Session], with_directory: bool) -> String {
    if sessions.is_empty() {
        return "no sessions\n".to_owned();
    }
    let mut text = String::new();
    for session in sessions {
        let when = session.updated_at.get(..16).unwrap_or(&session.updated_at).replace('T', " ");
        let title = session.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = printable::line(&title);
        let title = if title.trim().is_empty() { "(no title)" } else { title.trim() };
        let directory = if with_directory { format!("  {}", session.cwd) } else { String::new() };
        text.extend([session.id.as_str(), "  ", &when, "  ", title, &directory, "\n"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_one_line_a_session_whatever_the_title_holds() {
        let session = Session {
            id: "sess_1".to_owned(),
            title: "two\nlines\x1b[31m".to_owned(),
            updated_at: "2026-01-02T03:04:05Z".to_owned(),
            cwd: "/w".to_owned(),
        };
        let untitled =
            Session { title: String::new(), updated_at: "now".to_owned(), ..session.clone() };
        assert_eq!(
            table(&[session, untitled], true),
            "sess_1  2026-01-02 03:04  two lines\\u{1b}[31m  /w\nsess_1  now  (no title)  /w\n"
        );
        assert_eq!(table(&[], false), "no sessions\n");
    }
}
