//! What a command ends with when it fails: a kind (which decides the exit code), a message and
//! hints that say what to do. Made by the subcommands, printed once by `main`.

use std::fmt;

use crate::printable;

/// The documented exit codes of every subcommand.
///
/// Kept in one place because scripts rely on them; the README's table is checked against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// 1: it was tried and failed.
    Failed,
    /// 2: the command line asks for something that makes no sense.
    Usage,
    /// 3: the turn was cancelled by the other side.
    Cancelled,
    /// 4: the model refused, or a permission that the turn needed was denied.
    Refused,
    /// 5: no engine was found, or it does not start.
    NoEngine,
    /// 6: the engine needs a sign-in first.
    SignInNeeded,
    /// 124: a time limit that the user gave has passed (as `timeout(1)` has it).
    Timeout,
    /// 130: ended by the user or by a signal.
    Interrupted,
}

impl ErrorKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 8] = [
        Self::Failed,
        Self::Usage,
        Self::Cancelled,
        Self::Refused,
        Self::NoEngine,
        Self::SignInNeeded,
        Self::Timeout,
        Self::Interrupted,
    ];

    /// Returns the process's exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Cancelled => 3,
            Self::Refused => 4,
            Self::NoEngine => 5,
            Self::SignInNeeded => 6,
            Self::Timeout => 124,
            Self::Interrupted => 130,
        }
    }
}

/// A command's failure, for people.
#[derive(Debug, thiserror::Error)]
pub struct AppError {
    /// Decides the exit code.
    pub kind: ErrorKind,
    /// One line, lower case, no final dot.
    pub message: String,
    /// What the user can do about it, one step a line.
    pub hints: Vec<String>,
    /// The cause, printed below the message when it adds something.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl AppError {
    /// Makes an error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new(), source: None }
    }

    /// Makes a plain failure (exit code 1).
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Makes a usage error (exit code 2).
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// A file that was to be made could not be.
    pub fn cannot_write_new(path: &std::path::Path, err: std::io::Error) -> Self {
        let hint = match err.kind() {
            std::io::ErrorKind::AlreadyExists => "name a file that is not there yet",
            _ => "name a file in a directory that you can write to",
        };
        Self::failed(format!("cannot write {}", path.display())).caused_by(err).hint(hint)
    }

    /// Adds something that the user can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }
}

impl fmt::Display for AppError {
    /// Writes the whole report: message, chain of causes, hints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Engines and models have their part in what is said.
        f.write_str(&printable::text(&self.message))?;
        let mut said = self.message.clone();
        let mut cause = self.source.as_deref().map(|e| e as &dyn std::error::Error);
        while let Some(err) = cause {
            let text = err.to_string();
            // An error that only wraps another one says the same.
            if text != said {
                write!(f, "\n  because: {}", printable::text(&text))?;
                said = text;
            }
            cause = err.source();
        }
        for hint in &self.hints {
            write!(f, "\n  → {}", printable::text(hint))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_documented_code() {
        let codes: Vec<u8> = ErrorKind::ALL.iter().map(|k| k.exit_code()).collect();
        assert_eq!(codes, [1, 2, 3, 4, 5, 6, 124, 130]);
    }

    #[test]
    fn the_readme_has_every_code() {
        let readme = include_str!("../README.md");
        let line = readme.lines().find(|line| line.starts_with("Exit codes: 0 done")).unwrap();
        for kind in ErrorKind::ALL {
            assert!(line.contains(&format!(" {} ", kind.exit_code())), "{kind:?}");
        }
    }

    #[test]
    fn a_report_names_the_cause_and_the_way_out() {
        let err = AppError::failed("cannot read the settings")
            .caused_by(std::io::Error::other("disk on fire"))
            .hint("put it out");
        assert_eq!(
            err.to_string(),
            "cannot read the settings\n  because: disk on fire\n  → put it out"
        );
    }

    #[test]
    fn a_report_never_acts_on_the_terminal() {
        let err = AppError::failed("no model \u{1b}]0;x\u{7}")
            .caused_by(std::io::Error::other("two\nlines\u{202e}"))
            .hint("say\u{9b}1m so");
        let text = err.to_string();
        assert_eq!(
            text,
            "no model \\u{1b}]0;x\\u{7}\n  because: two\nlines\\u{202e}\n  → say\\u{9b}1m so"
        );
    }

    #[test]
    fn a_cause_that_only_wraps_another_is_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Wrapper(#[from] std::io::Error);
        let err = AppError::failed("cannot write")
            .caused_by(Wrapper(std::io::Error::other("disk on fire")));
        assert_eq!(err.to_string().matches("disk on fire").count(), 1, "{err}");
    }
}
