//! What a run writes: the reply to standard output in the chosen format, everything else to
//! standard error. Called by the client of `run`.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::client::{EndedBy, Report};
use super::rules::{Action, Decision};
use super::turn::{News, PARAGRAPH};
use crate::error::{AppError, ErrorKind};
use crate::printable;

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
    /// Makes the reply's text harmless where standard output is a terminal.
    printer: Option<printable::Printer>,
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
        Self { format, out, err, progress, ends_with_newline: true, printer: None }
    }

    /// Standard output is a terminal: what would act on it is shown instead.
    pub(super) fn on_terminal(mut self) -> Self {
        self.printer = Some(printable::Printer::new());
        self
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
                let text = match &mut self.printer {
                    Some(printer) => printer.push(text),
                    None => (*text).into(),
                };
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
            Decision::DenyByRule => format!("denied by a rule: {}", printable::line(&action.title)),
            _ if action.is_question => {
                format!("nobody is here to answer: {}", printable::line(&action.title))
            }
            Decision::NoRule | Decision::Allow => {
                let rule = action.as_rule().map(|rule| format!(" (--allow {})", quoted(&rule)));
                let title = printable::line(&action.title);
                format!("denied, no rule allows it: {title}{}", rule.unwrap_or_default())
            }
        };
        self.line(&text);
    }

    fn progress(&mut self, text: &str) {
        if self.progress {
            let text = printable::line(text);
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
    pub(super) fn finish(&mut self, mut report: Report) -> Result<(), AppError> {
        let outcome = outcome(&mut report);
        let report = &report;
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
        "error": outcome.as_ref().err().map(|err| err.message.clone()),
        "exitCode": outcome.as_ref().err().map_or(0, |err| err.kind.exit_code()),
    })
}

/// The run's result by the documented exit codes.
fn outcome(report: &mut Report) -> Result<(), AppError> {
    let fail = |kind, text: &str| Err(AppError::new(kind, text));
    if let Some(error) = report.error.take() {
        return Err(error);
    }
    match report.ended_by {
        Some(EndedBy::Interrupt) => return fail(ErrorKind::Interrupted, "interrupted"),
        Some(EndedBy::Timeout) => return fail(ErrorKind::Timeout, "the time is up"),
        Some(EndedBy::MaxTurns) => {
            return fail(ErrorKind::Failed, "stopped: more model requests than --max-turns");
        }
        Some(EndedBy::OutputClosed) => return fail(ErrorKind::Failed, "nobody reads the reply"),
        None => {}
    }
    match report.stop_reason.as_deref().unwrap_or_default() {
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
        "end_turn" => Ok(()),
        "" => fail(ErrorKind::Failed, "the agent does not say how the turn ended"),
        other => {
            fail(ErrorKind::Failed, &format!("the turn ended for a reason unknown here: {other}"))
        }
    }
}

/// One word for a shell, whatever is in it: it is the model's text, and gets pasted.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_shown_what_would_act_on_it() {
        let update = json!({});
        let news = News::Text { begins: false, text: "a\u{1b}]0;pwned\u{7}\n\tb" };
        for (on_terminal, expected) in
            [(false, "a\u{1b}]0;pwned\u{7}\n\tb"), (true, "a\\u{1b}]0;pwned\\u{7}\n\tb")]
        {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut reporter = Reporter::new(Format::Text, &mut out, &mut err, false);
            if on_terminal {
                reporter = reporter.on_terminal();
            }
            reporter.update(&update, &news).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn a_suggested_rule_is_one_word_of_a_shell() {
        let line = "echo '; touch pwned; echo '";
        let action = Action::of(&json!({"kind": "execute", "rawInput": {"command": line}}));
        let (mut out, mut err) = (Vec::new(), Vec::new());
        Reporter::new(Format::Text, &mut out, &mut err, false).denied(&action, Decision::NoRule);
        let said = String::from_utf8(err).unwrap();
        let words = said.trim_end().split_once("(--allow ").unwrap().1.strip_suffix(')').unwrap();
        assert_eq!(words, r"'execute(echo '\''; touch pwned; echo '\'')'");
    }
}
