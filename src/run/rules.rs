//! Which tools may run when nobody is there to ask: `--allow` and `--deny` rules. Pure.
//!
//! A rule is a tool's name (`Bash`, `Edit`, or an ACP kind such as `execute`), `*` for every tool,
//! or a name with a pattern for what the tool is to do: `Bash(git diff*)`, `Edit(src/**)`. Deny
//! beats allow, and what no rule speaks of is denied. A pattern that allows never lets a shell
//! operator through a `*`: `Bash(git *)` does not allow `git log; rm -rf .`. A pattern that denies
//! is read the other way, in the user's favour: it also matches a part of a compound command.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::printable;

/// What a tool is about to do, as far as rules can see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Action {
    /// The tool's name, and the ACP kind.
    pub names: Vec<String>,
    /// A command line.
    pub command: Option<String>,
    /// Files it touches, as they were named.
    pub paths: Vec<String>,
    /// Where these really are, links resolved; for the ones that are somewhere else.
    pub real_paths: Vec<PathBuf>,
    /// Somebody is asked to choose, not to permit: no rule can answer.
    pub is_question: bool,
    /// Anything else that patterns may speak of (a URL, a query).
    pub other: Option<String>,
    /// For people.
    pub title: String,
}

impl Action {
    /// Reads an ACP tool call (of a permission request, or a merge of its updates).
    pub(super) fn of(tool_call: &Value) -> Self {
        let text = |pointer: &str| tool_call.pointer(pointer).and_then(Value::as_str);
        let names = ["/name", "/_meta/claudeCode/toolName", "/_meta/zcode/toolName", "/kind"];
        let mut names: Vec<String> =
            names.iter().filter_map(|name| text(name)).map(str::to_owned).collect();
        names.dedup();
        let input = |keys: &[&str]| {
            keys.iter().find_map(|key| text(&format!("/rawInput/{key}"))).map(str::to_owned)
        };
        let mut paths: Vec<String> = tool_call
            .get("locations")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|location| location.get("path")?.as_str().map(str::to_owned))
            .collect();
        paths.extend(input(&["file_path", "filePath", "path", "notebook_path"]));
        let content = tool_call.get("content").and_then(Value::as_array);
        paths.extend(
            content
                .into_iter()
                .flatten()
                .filter_map(|part| part.get("path")?.as_str().map(str::to_owned)),
        );
        paths.sort_unstable();
        paths.dedup();
        let command = input(&["command", "cmd"]);
        Self {
            title: text("/title").or(command.as_deref()).unwrap_or("a tool").to_owned(),
            names,
            command,
            paths,
            real_paths: Vec::new(),
            is_question: text("/_meta/zcode/interaction") == Some("question"),
            other: input(&["url", "query", "pattern", "prompt"]),
        }
    }

    /// Looks up where the files really are: a link must not lead out of what a rule allows, nor
    /// into what one denies.
    pub(super) fn resolve(&mut self, cwd: &Path) {
        let whole = |path: &String| plain(&cwd.join(path));
        self.real_paths = self
            .paths
            .iter()
            .filter_map(|path| {
                let real = real(&cwd.join(path));
                (real != whole(path)).then_some(real)
            })
            .collect();
    }

    /// A rule that would allow exactly this, to be told to the user. `None`: what it is to do
    /// cannot be said in a rule, and to allow everything of the kind is nothing to suggest.
    pub(super) fn as_rule(&self) -> Option<String> {
        let name = self.names.first()?;
        match self.command.as_ref().or(self.paths.first()).or(self.other.as_ref()) {
            Some(subject) => {
                let plain = !subject.contains(['*', '?']) && printable::line(subject) == *subject;
                let one = self.command.is_some() || self.paths.len() < 2;
                let sayable = one && plain && self.real_paths.is_empty() && subject.len() <= 120;
                sayable.then(|| format!("{name}({subject})"))
            }
            None => Some(name.clone()),
        }
    }
}

/// One parsed rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    name: String,
    pattern: Option<String>,
}

/// All rules of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    cwd: PathBuf,
}

/// What the rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// A rule allows it and none denies it.
    Allow,
    /// A rule denies it.
    DenyByRule,
    /// No rule speaks of it.
    NoRule,
}

impl Rules {
    /// Parses the rules; `cwd` is what relative paths are relative to.
    pub(super) fn parse(allow: &[String], deny: &[String], cwd: &Path) -> Result<Self, String> {
        let parse = |rules: &[String]| -> Result<Vec<Rule>, String> {
            rules.iter().map(|rule| parse_rule(rule)).collect()
        };
        Ok(Self { allow: parse(allow)?, deny: parse(deny)?, cwd: cwd.to_path_buf() })
    }

    /// Whether there is no rule at all.
    pub(super) fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Decides.
    pub(super) fn decide(&self, action: &Action) -> Decision {
        if action.is_question {
            return Decision::NoRule;
        }
        if self.deny.iter().any(|rule| self.denies(rule, action)) {
            Decision::DenyByRule
        } else if self.allow.iter().any(|rule| self.allows(rule, action)) {
            Decision::Allow
        } else {
            Decision::NoRule
        }
    }

    fn denies(&self, rule: &Rule, action: &Action) -> bool {
        if !rule.names(action) {
            return false;
        }
        let Some(pattern) = &rule.pattern else { return true };
        let command = action.command.iter().any(|command| {
            glob(pattern, command, Star::Anything)
                || parts(command)
                    .flat_map(readings)
                    .any(|reading| glob(pattern, &reading, Star::Anything))
        });
        let path = action.paths.iter().any(|path| self.path_matches(pattern, path))
            || action.real_paths.iter().any(|path| self.really_matches(pattern, path));
        let other = action.other.iter().any(|other| glob(pattern, other, Star::Anything));
        command || path || other
    }

    fn allows(&self, rule: &Rule, action: &Action) -> bool {
        if !rule.names(action) {
            return false;
        }
        let Some(pattern) = &rule.pattern else { return true };
        if let Some(command) = &action.command {
            return glob(pattern, command.trim(), Star::NoShell);
        }
        // Every file must be allowed, not just one of them.
        if !action.paths.is_empty() {
            return action.paths.iter().all(|path| self.path_matches(pattern, path))
                && action.real_paths.iter().all(|path| self.really_matches(pattern, path));
        }
        action.other.iter().any(|other| glob(pattern, other, Star::Anything))
    }

    /// Compares both the path as seen from the working directory and the whole path, without `..`.
    fn path_matches(&self, pattern: &str, path: &str) -> bool {
        self.really_matches(pattern, &plain(&self.cwd.join(path)))
    }

    fn really_matches(&self, pattern: &str, whole: &Path) -> bool {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let inside = whole.strip_prefix(plain(&self.cwd)).ok();
        inside.is_some_and(|inside| glob(pattern, &inside.to_string_lossy(), Star::InDirectory))
            || glob(pattern, &whole.to_string_lossy(), Star::InDirectory)
    }
}

impl Rule {
    fn names(&self, action: &Action) -> bool {
        self.name == "*" || action.names.iter().any(|name| name.eq_ignore_ascii_case(&self.name))
    }
}

fn parse_rule(rule: &str) -> Result<Rule, String> {
    let rule = rule.trim();
    let (name, pattern) = match rule.split_once('(') {
        Some((name, rest)) => {
            let pattern = rest
                .strip_suffix(')')
                .ok_or_else(|| format!("the rule {rule:?} has no closing parenthesis"))?;
            (name.trim(), Some(pattern.to_owned()))
        }
        None => (rule, None),
    };
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '*');
    if name.is_empty() || !name.chars().all(fits) {
        return Err(format!("the rule {rule:?} has no tool name"));
    }
    Ok(Rule { name: name.to_owned(), pattern })
}

/// The path with its links resolved, as far as it exists; what is to be made has none.
fn real(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(found), Ok(rest)) =
            (std::fs::canonicalize(ancestor), path.strip_prefix(ancestor))
        {
            return plain(&found.join(rest));
        }
    }
    plain(path)
}

/// Resolves `.` and `..` by the text alone.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// The simple commands of a compound one, roughly; for denying, where too many parts do no harm.
fn parts(command: &str) -> impl Iterator<Item = &str> {
    command.split(is_shell_operator).map(str::trim).filter(|part| !part.is_empty())
}

/// Words that only begin a command.
const LEADING: &[&str] = &[
    "!", "if", "then", "elif", "else", "while", "until", "do", "time", "exec", "command", "builtin",
];
/// Programs that run another one, which is among their arguments.
const RUNNERS: &[&str] = &[
    "sudo", "doas", "env", "nohup", "nice", "ionice", "timeout", "xargs", "setsid", "stdbuf", "sh",
    "bash", "zsh", "dash", "ksh", "fish", "eval", "busybox", "find", "watch",
];

/// Every way in which a rule may name the command that a part runs: without what stands before it,
/// without its directory and quotes, blanks as single spaces.
fn readings(part: &str) -> Vec<String> {
    let words: Vec<String> = part
        .split_whitespace()
        .map(|word| word.trim_start_matches('!').replace(['"', '\''], ""))
        .collect();
    let mut out = Vec::new();
    let mut through = false;
    for (i, word) in words.iter().enumerate() {
        let name = word.rsplit('/').next().unwrap_or(word);
        let rest = words.get(i + 1..).unwrap_or_default();
        out.push(
            std::iter::once(name)
                .chain(rest.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(" "),
        );
        through |= RUNNERS.contains(&name);
        let assigns = word.split_once('=').is_some_and(|(variable, _)| {
            !variable.is_empty() && variable.chars().all(|c| c.is_alphanumeric() || c == '_')
        });
        if !through && !assigns && !name.is_empty() && !LEADING.contains(&name) {
            break;
        }
    }
    out
}

fn is_shell_operator(c: char) -> bool {
    matches!(
        c,
        ';' | '&' | '|' | '`' | '$' | '<' | '>' | '(' | ')' | '{' | '}' | '\n' | '\r' | '\\'
    )
}

/// What a `*` may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Star {
    /// Any characters.
    Anything,
    /// Any but shell operators.
    NoShell,
    /// Any but `/`; two stars stand for any.
    InDirectory,
}

/// A piece of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Literal(char),
    /// `?`
    One,
    /// `*`
    Star,
    /// `**`
    Stars,
    /// `**/`: nothing, or anything that ends with `/`.
    Directories,
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut chars = pattern.chars().peekable();
    let mut pieces = Vec::new();
    while let Some(c) = chars.next() {
        pieces.push(match c {
            '?' => Piece::One,
            '*' if chars.next_if_eq(&'*').is_none() => Piece::Star,
            '*' if chars.next_if_eq(&'/').is_some() => Piece::Directories,
            '*' => Piece::Stars,
            c => Piece::Literal(c),
        });
    }
    pieces
}

/// Whether the pattern matches the whole text. Linear in both, because the text is the model's.
fn glob(pattern: &str, text: &str, star: Star) -> bool {
    let text: Vec<char> = text.chars().collect();
    let may_be = |c: char, piece: Piece| match star {
        Star::NoShell => !is_shell_operator(c),
        Star::InDirectory => piece == Piece::Stars || c != '/',
        Star::Anything => true,
    };
    // ends[i]: the pattern so far can match the first i characters.
    let mut ends = vec![false; text.len() + 1];
    if let Some(empty) = ends.first_mut() {
        *empty = true;
    }
    for piece in pieces(pattern) {
        let mut next = Vec::with_capacity(ends.len());
        let mut before = false; // whether an earlier end can still be stretched to here
        let mut previous_end = false;
        for (i, end) in ends.iter().copied().enumerate() {
            let last = i.checked_sub(1).and_then(|i| text.get(i)).copied();
            next.push(match (piece, last) {
                (Piece::Literal(wanted), Some(c)) => previous_end && c == wanted,
                (Piece::One, Some(c)) => previous_end && may_be(c, piece),
                (Piece::Literal(_) | Piece::One, None) => false,
                (Piece::Star | Piece::Stars, last) => {
                    before = end || (before && last.is_some_and(|c| may_be(c, piece)));
                    before
                }
                (Piece::Directories, last) => {
                    let reached = end || (before && last == Some('/'));
                    before |= end;
                    reached
                }
            });
            previous_end = end;
        }
        ends = next;
    }
    ends.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decide(allow: &[&str], deny: &[&str], tool_call: &Value) -> Decision {
        let owned = |rules: &[&str]| rules.iter().map(|r| (*r).to_owned()).collect::<Vec<_>>();
        let rules = Rules::parse(&owned(allow), &owned(deny), Path::new("/p")).unwrap();
        rules.decide(&Action::of(tool_call))
    }

    fn bash(command: &str) -> Value {
        json!({"name": "Bash", "kind": "execute", "rawInput": {"command": command}})
    }

    fn edit(path: &str) -> Value {
        json!({"_meta": {"claudeCode": {"toolName": "Edit"}}, "kind": "edit", "locations": [{"path": path}]})
    }

    #[test]
    fn without_a_rule_nothing_is_allowed_and_deny_beats_allow() {
        assert_eq!(decide(&[], &[], &bash("ls")), Decision::NoRule);
        assert_eq!(decide(&["*"], &[], &bash("ls")), Decision::Allow);
        assert_eq!(decide(&["bash"], &[], &bash("ls")), Decision::Allow);
        assert_eq!(decide(&["execute"], &[], &bash("ls")), Decision::Allow);
        assert_eq!(decide(&["Edit"], &[], &bash("ls")), Decision::NoRule);
        assert_eq!(decide(&["*"], &["Bash"], &bash("ls")), Decision::DenyByRule);
    }

    #[test]
    fn a_star_that_allows_lets_no_shell_operator_through() {
        let allow = &["Bash(git *)"];
        assert_eq!(decide(allow, &[], &bash("git log --oneline")), Decision::Allow);
        for trick in [
            "git log; rm -rf .",
            "git log && rm x",
            "git log | sh",
            "git $(rm x)",
            "git `rm x`",
            "git log\nrm x",
            "git log > /etc/passwd",
            "sudo git log",
            "gitk",
        ] {
            assert_eq!(decide(allow, &[], &bash(trick)), Decision::NoRule, "{trick}");
        }
        // Written out by the user it is what the user wants.
        assert_eq!(decide(&["Bash(a | b)"], &[], &bash("a | b")), Decision::Allow);
    }

    #[test]
    fn a_pattern_that_denies_sees_into_compound_commands() {
        for command in [
            "rm -rf x",
            "ls; rm -rf x",
            "ls && rm -rf x",
            "echo $(rm -rf x)",
            "rm\t-rf x",
            "FOO=1 rm -rf x",
            "if true; then rm -rf x; fi",
            "! rm -rf x",
            "!rm x",
            "time rm -rf x",
            "sudo -u root rm -rf x",
            "sh -c \"rm -rf x\"",
            "find . -exec /bin/rm x",
            "'rm' x",
        ] {
            assert_eq!(
                decide(&["*"], &["Bash(rm *)"], &bash(command)),
                Decision::DenyByRule,
                "{command}"
            );
        }
        for other in ["echo farm x", "git commit -m 'rm x'", "FOO=rm ls"] {
            assert_eq!(decide(&["*"], &["Bash(rm *)"], &bash(other)), Decision::Allow, "{other}");
        }
    }

    #[test]
    fn a_link_leads_neither_out_of_a_rule_nor_around_one() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = std::fs::canonicalize(dir.path()).unwrap();
        for made in ["src", "etc"] {
            std::fs::create_dir(cwd.join(made)).unwrap();
        }
        std::os::unix::fs::symlink(cwd.join("etc"), cwd.join("src/link")).unwrap();
        let decide = |allow: &str, deny: &[String], path: &str| {
            let rules = Rules::parse(&[allow.to_owned()], deny, &cwd).unwrap();
            let mut action = Action::of(&edit(path));
            action.resolve(&cwd);
            rules.decide(&action)
        };
        assert_eq!(decide("Edit(src/**)", &[], "src/new"), Decision::Allow);
        assert_eq!(decide("Edit(src/**)", &[], "src/link/passwd"), Decision::NoRule);
        let deny = [format!("Edit({}/etc/**)", cwd.display())];
        assert_eq!(decide("*", &deny, "src/link/passwd"), Decision::DenyByRule);
    }

    #[test]
    fn every_file_of_a_change_counts_wherever_it_is_named() {
        let call = json!({"kind": "edit", "locations": [{"path": "src/ok"}],
            "content": [{"type": "diff", "path": "/etc/passwd", "newText": ""}]});
        assert_eq!(decide(&["edit(src/**)"], &[], &call), Decision::NoRule);
    }

    #[test]
    fn paths_are_compared_without_detours() {
        let allow = &["Edit(src/**)"];
        assert_eq!(decide(allow, &[], &edit("/p/src/a/b.rs")), Decision::Allow);
        assert_eq!(decide(allow, &[], &edit("src/a.rs")), Decision::Allow);
        assert_eq!(decide(allow, &[], &edit("/p/src/../secret")), Decision::NoRule);
        assert_eq!(decide(allow, &[], &edit("/q/src/a.rs")), Decision::NoRule);
        assert_eq!(decide(&["Edit(src/*)"], &[], &edit("src/a/b.rs")), Decision::NoRule);
        assert_eq!(decide(&["Edit(/q/**)"], &[], &edit("/q/a")), Decision::Allow);
        assert_eq!(decide(&["Edit(**/*.rs)"], &[], &edit("a.rs")), Decision::Allow);
        assert_eq!(decide(&["Edit(src/**/*.rs)"], &[], &edit("src/x/y/a.rs")), Decision::Allow);
        let two = json!({"kind": "edit", "locations": [{"path": "src/a"}, {"path": "b"}]});
        assert_eq!(decide(&["edit(src/**)"], &[], &two), Decision::NoRule);
    }

    #[test]
    fn a_rule_without_sense_is_refused() {
        for rule in ["", "Bash(ls", "(ls)", "a b"] {
            assert!(Rules::parse(&[rule.to_owned()], &[], Path::new("/")).is_err(), "{rule}");
        }
    }

    #[test]
    fn the_rule_that_is_suggested_allows_what_was_asked() {
        for call in
            [bash("cargo test"), bash("a | b"), edit("/p/src/a.rs"), json!({"kind": "fetch"})]
        {
            let rule = Action::of(&call).as_rule().unwrap();
            assert_eq!(decide(&[&rule], &[], &call), Decision::Allow, "{rule}");
        }
        // None would do, and a wider one is nothing to suggest.
        let mut long = bash(&"x".repeat(200));
        for command in ["rm *", "a\tb", "a\u{202e}b"] {
            assert_eq!(Action::of(&bash(command)).as_rule(), None, "{command}");
        }
        assert_eq!(Action::of(&long).as_rule(), None);
        long["rawInput"] = Value::Null;
        assert!(Action::of(&long).as_rule().is_some());
    }
}
