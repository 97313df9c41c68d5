//! What a check found, and the page of all of them as text and JSON. Pure.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::printable;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    Warning,
    Problem,
}

/// One line of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub group: &'static str,
    pub name: String,
    pub level: Level,
    pub text: String,
    /// The one thing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    pub(super) fn ok(group: &'static str, name: &str, text: impl Into<String>) -> Self {
        Self { group, name: name.to_owned(), level: Level::Ok, text: text.into(), fix: None }
    }

    pub(super) fn warning(
        group: &'static str,
        name: &str,
        text: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { level: Level::Warning, fix: Some(fix.into()), ..Self::ok(group, name, text) }
    }

    pub(super) fn problem(
        group: &'static str,
        name: &str,
        text: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { level: Level::Problem, fix: Some(fix.into()), ..Self::ok(group, name, text) }
    }
}

/// All checks in order.
#[derive(Debug)]
pub(super) struct Page {
    pub checks: Vec<Check>,
}

impl Page {
    pub(super) fn problems(&self) -> usize {
        self.checks.iter().filter(|check| check.level == Level::Problem).count()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"ok": self.problems() == 0, "version": crate::cli::VERSION, "checks": self.checks})
    }

    pub(super) fn to_text(&self, color: bool) -> String {
        let mut text = String::new();
        let mut group = "";
        let width = self.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
        for check in &self.checks {
            if check.group != group {
                let newline = if group.is_empty() { "" } else { "\n" };
                let _ = writeln!(text, "{newline}{}", paint(color, "1", check.group));
                group = check.group;
            }
            let mark = match check.level {
                Level::Ok => paint(color, "32", "ok     "),
                Level::Warning => paint(color, "33", "warning"),
                Level::Problem => paint(color, "31", "PROBLEM"),
            };
            let mut lines = check.text.lines().map(printable::line);
            let first = lines.next().unwrap_or_default();
            let _ = writeln!(text, "  {mark}  {:width$}  {first}", printable::line(&check.name));
            for line in lines.filter(|line| !line.is_empty()) {
                let _ = writeln!(text, "           {:width$}  {line}", "");
            }
            if let Some(fix) = &check.fix {
                let _ = writeln!(text, "           {:width$}  → {}", "", printable::line(fix));
            }
        }
        text
    }
}

fn paint(color: bool, code: &str, text: &str) -> String {
    if color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
