//! Checks of the terminal that this runs in (asked by its own queries), and of tmux around it, with the
//! line that mends each.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use super::report::Check;
use crate::config::Env;
use crate::process::{self, ChildSpec};
use crate::tui::terminal::input::Reply;
use crate::tui::terminal::query;

const GROUP: &str = "terminal";
/// How long the terminal may take to answer; over a slow link a round trip has its place in it.
const ANSWERS: Duration = Duration::from_millis(1500);
/// Its number as a private mode.
const SYNCHRONIZED_OUTPUT: u16 = 2026;

pub(super) async fn checks(env: &Env) -> Vec<Check> {
    let mut checks = Vec::new();
    if !std::io::stdout().is_terminal() {
        checks.push(Check::ok(GROUP, "terminal", "not one (output goes to a file or a pipe)"));
        return checks;
    }
    checks.push(kind(env));
    checks.push(colors(env));
    if let Ok(replies) = query::ask(ANSWERS) {
        checks.extend(answers(&replies));
    }
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout()) {
        checks.push(size_check(size.ws_col, size.ws_row));
    }
    checks.push(clipboard(env));
    if env.get("TMUX").is_some() {
        let mut options = BTreeMap::new();
        for name in TMUX_OPTIONS {
            // Some are options of the server, some of sessions, some of windows.
            for scope in ["-gv", "-sv", "-gwv"] {
                let args = ["show-options", scope, name].map(Into::into).to_vec();
                let spec = ChildSpec { args, ..ChildSpec::new("tmux") };
                if let Some(value) = process::capture(&spec, Duration::from_secs(2)).await
                    && !value.trim().is_empty()
                {
                    drop(options.insert((*name).to_owned(), value.trim().to_owned()));
                    break;
                }
            }
        }
        checks.extend(tmux(&options));
    }
    checks
}

fn kind(env: &Env) -> Check {
    let term = env.str("TERM").unwrap_or_default();
    let program = env.str("TERM_PROGRAM").map(|p| format!(" in {p}")).unwrap_or_default();
    let remote = if env.get("SSH_CONNECTION").is_some() { ", over ssh" } else { "" };
    match term {
        "" | "dumb" => Check::problem(
            GROUP,
            "TERM",
            if term.is_empty() { "not set" } else { "dumb" },
            "set TERM to what your terminal is, for example xterm-256color",
        ),
        term => Check::ok(GROUP, "TERM", format!("{term}{program}{remote}")),
    }
}

fn colors(env: &Env) -> Check {
    if env.get("NO_COLOR").is_some() {
        return Check::ok(GROUP, "colour", "off (NO_COLOR is set)");
    }
    let term = env.str("TERM").unwrap_or_default();
    match env.str("COLORTERM") {
        Some("truecolor" | "24bit") => Check::ok(GROUP, "colour", "24 bits"),
        _ if term.contains("direct") => Check::ok(GROUP, "colour", "24 bits"),
        _ if term.contains("256") => Check::ok(
            GROUP,
            "colour",
            "256 colours; export COLORTERM=truecolor if the terminal has more",
        ),
        _ => Check::warning(
            GROUP,
            "colour",
            "16 colours",
            "use a TERM with -256color, or export COLORTERM=truecolor if the terminal has it",
        ),
    }
}

/// What the terminal said of itself.
fn answers(replies: &[Reply]) -> Vec<Check> {
    if replies.is_empty() {
        return vec![Check::warning(
            GROUP,
            "answers",
            "the terminal answers no question; everything works, with plain keys",
            "use a current terminal (kitty, Ghostty, WezTerm, iTerm2, foot, Alacritty, Windows Terminal)",
        )];
    }
    let synchronized = replies.iter().any(
        |reply| matches!(reply, Reply::Mode { mode: SYNCHRONIZED_OUTPUT, state } if matches!(state, 1 | 2)),
    );
    let frames = if synchronized {
        "synchronized output: no frame is seen half drawn"
    } else {
        "no synchronized output: only what changed is drawn, a large change may be seen in parts"
    };
    let keys = if replies.contains(&Reply::KittyKeyboard) {
        "kitty keyboard protocol: Shift+Enter makes a new line"
    } else {
        "plain keys: Shift+Enter may be the same as Enter; Ctrl+J and Alt+Enter make a new line"
    };
    let mut checks = vec![Check::ok(GROUP, "frames", frames), Check::ok(GROUP, "keys", keys)];
    checks.extend(replies.iter().find_map(|reply| match reply {
        Reply::Background(r, g, b) => {
            Some(Check::ok(GROUP, "background", format!("#{r:02x}{g:02x}{b:02x}")))
        }
        _ => None,
    }));
    checks
}

fn size_check(columns: u16, rows: u16) -> Check {
    let text = format!("{columns}x{rows}");
    if columns < 40 || rows < 12 {
        Check::warning(GROUP, "size", text, "make it at least 40x12")
    } else {
        Check::ok(GROUP, "size", text)
    }
}

/// How copying reaches the clipboard from here.
fn clipboard(env: &Env) -> Check {
    let text = match (env.get("TMUX").is_some(), env.get("SSH_CONNECTION").is_some()) {
        (true, _) => "through tmux (see its set-clipboard below)",
        (false, true) => "through the terminal (OSC 52), which must allow it",
        (false, false) => "through the terminal (OSC 52)",
    };
    Check::ok(GROUP, "clipboard", text)
}

const TMUX_OPTIONS: &[&str] = &[
    "default-terminal",
    "escape-time",
    "extended-keys",
    "focus-events",
    "set-clipboard",
    "allow-passthrough",
    "terminal-features",
];

/// What tmux's options mean for a program inside it.
fn tmux(options: &BTreeMap<String, String>) -> Vec<Check> {
    let get = |name: &str| options.get(name).map_or("", String::as_str);
    let set = |line: &str| format!("add to ~/.tmux.conf: {line}");
    let mut checks = Vec::new();
    let escape: u64 = get("escape-time").parse().unwrap_or(0);
    if escape > 50 {
        let text = format!("escape-time is {escape} ms: Esc answers late");
        checks.push(Check::warning(GROUP, "tmux keys", text, set("set -sg escape-time 10")));
    }
    if !matches!(get("extended-keys"), "on" | "always") {
        checks.push(Check::warning(
            GROUP,
            "tmux keys",
            "extended-keys is off: Shift+Enter is the same as Enter (Alt+Enter and Ctrl+J still make a new line)",
            set("set -s extended-keys on"),
        ));
    }
    if get("focus-events") == "off" {
        let text = "focus-events is off: notifications cannot tell whether you are looking";
        checks.push(Check::warning(GROUP, "tmux focus", text, set("set -g focus-events on")));
    }
    if get("set-clipboard") == "off" {
        let text = "set-clipboard is off: what is copied stays in tmux";
        checks.push(Check::warning(GROUP, "tmux clipboard", text, set("set -s set-clipboard on")));
    }
    if !get("terminal-features").is_empty() && !get("terminal-features").contains("RGB") {
        let text = "tmux does not know that the terminal has 24-bit colour";
        checks.push(Check::warning(
            GROUP,
            "tmux colour",
            text,
            set("set -as terminal-features ',*:RGB'"),
        ));
    }
    if !get("default-terminal").is_empty() && !get("default-terminal").contains("256color") {
        let text = format!("default-terminal is {}", get("default-terminal"));
        checks.push(Check::warning(
            GROUP,
            "tmux colour",
            text,
            set("set -g default-terminal tmux-256color"),
        ));
    }
    if checks.is_empty() {
        checks.push(Check::ok(GROUP, "tmux", "its settings are fine"));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::super::report::Level;
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().copied().collect()
    }

    #[test]
    fn a_terminal_that_cannot_be_drawn_on_is_a_problem() {
        assert_eq!(kind(&env(&[("TERM", "dumb")])).level, Level::Problem);
        assert_eq!(kind(&env(&[])).level, Level::Problem);
        assert_eq!(kind(&env(&[("TERM", "xterm")])).level, Level::Ok);
        assert_eq!(size_check(39, 50).level, Level::Warning);
        assert_eq!(size_check(40, 12).level, Level::Ok);
    }

    #[test]
    fn what_the_terminal_says_of_itself_is_told() {
        let silent = answers(&[]);
        assert_eq!((silent.len(), silent[0].level), (1, Level::Warning));
        let text = |replies: &[Reply]| {
            answers(replies).iter().map(|check| check.text.clone()).collect::<Vec<_>>().join("\n")
        };
        let old = text(&[Reply::Mode { mode: 2026, state: 0 }, Reply::DeviceAttributes]);
        assert!(old.contains("no synchronized") && old.contains("plain keys"), "{old}");
        let new = text(&[
            Reply::KittyKeyboard,
            Reply::Mode { mode: 2026, state: 2 },
            Reply::Background(30, 30, 46),
            Reply::DeviceAttributes,
        ]);
        assert!(new.starts_with("synchronized") && new.contains("kitty"), "{new}");
        assert!(new.contains("#1e1e2e"), "{new}");
    }

    #[test]
    fn colours_are_told_by_the_usual_variables() {
        assert_eq!(colors(&env(&[("COLORTERM", "truecolor")])).text, "24 bits");
        assert_eq!(colors(&env(&[("TERM", "xterm-256color")])).level, Level::Ok);
        assert_eq!(colors(&env(&[("TERM", "xterm")])).level, Level::Warning);
        assert!(
            colors(&env(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")])).text.contains("off")
        );
    }

    #[test]
    fn each_tmux_setting_that_hurts_comes_with_the_line_that_mends_it() {
        let options = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let bad = options(&[
            ("escape-time", "500"),
            ("extended-keys", "off"),
            ("focus-events", "off"),
            ("set-clipboard", "off"),
            ("default-terminal", "screen"),
            ("terminal-features", "xterm*:clipboard"),
        ]);
        let checks = tmux(&bad);
        assert_eq!(checks.len(), 6);
        assert!(
            checks.iter().all(|check| check.fix.as_ref().is_some_and(|fix| fix.contains("set -")))
        );
        let good = options(&[
            ("escape-time", "10"),
            ("extended-keys", "on"),
            ("focus-events", "on"),
            ("set-clipboard", "external"),
            ("default-terminal", "tmux-256color"),
            ("terminal-features", "*:RGB"),
        ]);
        assert_eq!(tmux(&good), [Check::ok(GROUP, "tmux", "its settings are fine")]);
    }
}
