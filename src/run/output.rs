//! What a run writes: the reply to standard output in the chosen format, everything else to
//! standard error. Called by the client of `run`.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::client::{EndedBy, Report};
use super::rules::{Action, Decision};
use super::turn::{News, PARAGRAPH};
use crate::error::{AppError, ErrorKind};

/// What standard output carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// The reply's text, as it streams.
    #[default]
    Text,
    /// One JSON line for every ACP update, and a last one with the result.
    Ndjson,
    /// One JSON object at the end.
    Json,
}

/// Writes while the turn goes on.
pub(super) struct Reporter<'a> {
    format: Format,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// Whether standard error is a terminal that wants to see progress.
    progress: bool,
    ends_with_newline: bool,
}

impl std::fmt::Debug for Reporter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reporter").field("format", &self.format).finish_non_exhaustive()
    }
}

impl<'a> Reporter<'a> {
    /// Makes one; `progress` says whether `err` is a terminal.
    pub(super) fn new(
        format: Format,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
        progress: bool,
    ) -> Self {
        Self { format, out, err, progress, ends_with_newline: true }
    }

    /// Writes an update; fails when nobody reads any more.
    pub(super) fn update(&mut self, params: &Value, news: &News<'_>) -> io::Result<()> {
        match (self.format, news) {
            (Format::Ndjson, _) => {
                writeln!(self.out, "{params}")?;
                self.out.flush()
            }
            (Format::Text, News::Text { begins, text }) => {
                if *begins {
                    self.out.write_all(PARAGRAPH.as_bytes())?;
                }
                if let Some(last) = text.chars().last() {
                    self.ends_with_newline = last == '\n';
                }
                self.out.write_all(text.as_bytes())?;
                self.out.flush()
            }
            (_, News::Tool(title)) => {
                self.progress(&format!("· {title}"));
                Ok(())
            }
            (Format::Text | Format::Json, _) => Ok(()),
        }
    }

    /// Says that something was not allowed, and which rule would have.
    pub(super) fn denied(&mut self, action: &Action, decision: Decision) {
        let text = match decision {
            Decision::DenyByRule => format!("denied by a rule: {}", printable(&action.title)),
            Decision::NoRule | Decision::Allow => format!(
                "denied, no rule allows it: {} (--allow '{}')",
                printable(&action.title),
                printable(&action.as_rule())
            ),
        };
        self.line(&text);
    }

    fn progress(&mut self, text: &str) {
        if self.progress {
            let text = printable(text);
            self.line(&text);
        }
    }

    fn line(&mut self, text: &str) {
        // Progress must not run into a reply that has no line end yet.
        if self.progress && !self.ends_with_newline && self.format == Format::Text {
            drop(writeln!(self.out)); // a closed output is noticed by the next update
            self.ends_with_newline = true;
        }
        drop(writeln!(self.err, "{text}")); // nobody reads standard error: nothing to say to nobody
    }

    /// Writes the end and decides the exit code.
    pub(super) fn finish(&mut self, report: &Report) -> Result<(), AppError> {
        let outcome = outcome(report);
        let written = match self.format {
            Format::Text if self.ends_with_newline => Ok(()),
            Format::Text => writeln!(self.out),
            Format::Ndjson => writeln!(self.out, "{}", json!({"result": result(report, &outcome)})),
            Format::Json => writeln!(self.out, "{}", result(report, &outcome)),
        };
        let written = written.and_then(|()| self.out.flush());
        outcome?;
        written.map_err(|err| AppError::failed("cannot write the reply").caused_by(err))
    }
}

fn result(report: &Report, outcome: &Result<(), AppError>) -> Value {
    json!({
        "sessionId": report.session,
        "stopReason": report.stop_reason,
        "text": report.turn.text,
        "usage": report.usage,
        "filesChanged": report.turn.files_changed(),
        "denied": report.turn.denied,
        "exitCode": outcome.as_ref().err().map_or(0, |err| err.kind.exit_code()),
    })
}

/// The run's result by the documented exit codes.
fn outcome(report: &Report) -> Result<(), AppError> {
    let fail = |kind, text: &str| Err(AppError::new(kind, text));
    match report.ended_by {
        Some(EndedBy::Interrupt) => return fail(ErrorKind::Interrupted, "interrupted"),
        Some(EndedBy::Timeout) => return fail(ErrorKind::Timeout, "the time is up"),
        Some(EndedBy::MaxTurns) => {
            return fail(ErrorKind::Failed, "stopped: more model requests than --max-turns");
        }
        Some(EndedBy::OutputClosed) => return fail(ErrorKind::Failed, "nobody reads the reply"),
        None => {}
    }
    match report.stop_reason.as_str() {
        "cancelled" => fail(ErrorKind::Cancelled, "the turn was cancelled"),
        "refusal" => fail(ErrorKind::Refused, "the model refused"),
        "max_tokens" => fail(ErrorKind::Failed, "the model reached its token limit"),
        "max_turn_requests" => fail(ErrorKind::Failed, "the engine reached its limit of requests"),
        _ if report.failure.is_some() => {
            fail(ErrorKind::Failed, report.failure.as_deref().unwrap_or_default())
        }
        _ if !report.turn.denied.is_empty() => {
            let count = report.turn.denied.len();
            fail(ErrorKind::Refused, &format!("{count} tool call(s) were denied"))
        }
        _ => Ok(()),
    }
}

/// Control and bidirectional characters made visible: a title is the model's text.
fn printable(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars()
        .map(|c| if hidden(c) { c.escape_unicode().to_string() } else { c.to_string() })
        .collect()
}
