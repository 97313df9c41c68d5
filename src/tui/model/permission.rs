//! A permission request: what is asked, what can be answered, and whether its keys count yet.
//! Read leniently from JSON: whatever an agent sends, something readable is asked. Data only.

use serde_json::Value;

use crate::printable::{self, Unseen};

/// Fields of an input that hold the text before and after a change, by the names that agents use.
const EDITED: [&str; 7] =
    ["old_string", "new_string", "content", "old_str", "new_str", "oldText", "newText"];

/// What an option means, for its colour and for what is selected first. The answer is always the
/// agent's own option id; nothing is derived from this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// Once.
    AllowOnce,
    /// From now on.
    AllowAlways,
    /// Not this time.
    RejectOnce,
    /// Never.
    RejectAlways,
    /// Something that we do not know.
    Other,
}

/// One answer that the agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    /// What is sent back.
    pub id: String,
    /// What is shown.
    pub name: String,
    /// What it means.
    pub kind: OptionKind,
}

/// A part of what is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPart {
    /// A command line, whole.
    Command(String),
    /// A change of a file.
    Diff {
        /// The file.
        path: String,
        /// Its text before; `None` for a new file.
        old: Option<String>,
        /// Its text afterwards.
        new: String,
    },
    /// What the agent says about it: markdown.
    Text(String),
    /// Code or a command's text out of a fence.
    Code(String),
    /// The input's fields that nothing above shows, a line each.
    Fields(String),
    /// A file or folder that it is about.
    Path(String),
}

/// What a permission request shows and offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// What the tool call is called, whole.
    pub title: String,
    /// What kind of thing it is, in a word or two: nothing that the body shows again.
    pub what: String,
    /// How risky the agent holds it to be, or empty.
    pub risk: String,
    /// The whole input as it came, for the full view; empty when there is none.
    pub input: String,
    /// The tool call that it belongs to.
    pub tool_call_id: String,
    /// What is asked, in the order to be shown.
    pub body: Vec<BodyPart>,
    /// The answers.
    pub options: Vec<PermissionOption>,
    /// The row that is selected: 0 is the first option.
    pub selected: usize,
    /// The user has moved the selection; Enter counts only then.
    pub moved: bool,
}

impl Permission {
    /// Reads `session/request_permission` params.
    pub fn read(params: &Value) -> Self {
        let none = Value::Null;
        let call = params.get("toolCall").or_else(|| params.get("tool_call")).unwrap_or(&none);
        let title = ["title", "name", "kind"]
            .iter()
            .filter_map(|k| call.get(k).and_then(Value::as_str))
            .find(|s| !s.trim().is_empty())
            .unwrap_or("the agent asks for permission")
            .to_owned();
        let id = call.get("toolCallId").or_else(|| call.get("tool_call_id"));
        let options: Vec<_> = params
            .get("options")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(read_option)
            .collect();
        let body = read_body(call, &title);
        let risk = call.pointer("/_meta/zcode/riskLevel").and_then(Value::as_str);
        let input = call.get("rawInput").filter(|i| !i.is_null());
        Self {
            tool_call_id: id.and_then(Value::as_str).unwrap_or_default().to_owned(),
            what: what(call, &title, &body),
            risk: risk.unwrap_or_default().to_owned(),
            input: input.map(pretty).unwrap_or_default(),
            body,
            selected: safe_option(&options),
            moved: false,
            title,
            options,
        }
    }

    /// The option that a number key chooses, counted from 1.
    pub fn numbered(&self, digit: char) -> Option<&PermissionOption> {
        let n = usize::try_from(digit.to_digit(10)?).ok()?;
        self.options.get(n.checked_sub(1)?)
    }

    /// Moves the selection and remembers that the user did.
    pub fn move_by(&mut self, by: isize) {
        let count = self.options.len();
        if count == 0 {
            return;
        }
        self.selected = match (self.selected < count, by > 0) {
            (false, true) => 0,
            (false, false) => count - 1,
            (true, true) => (self.selected + 1) % count,
            (true, false) => (self.selected + count - 1) % count,
        };
        self.moved = true;
    }

    /// The option that Enter takes: only one that the user moved to.
    pub fn accepted(&self) -> Option<&PermissionOption> {
        self.moved.then(|| self.options.get(self.selected)).flatten()
    }
}

/// The row selected first: a refusal when there is one, never an approval.
fn safe_option(options: &[PermissionOption]) -> usize {
    let at = |kind| options.iter().position(|o: &PermissionOption| o.kind == kind);
    at(OptionKind::RejectOnce).or_else(|| at(OptionKind::RejectAlways)).unwrap_or(options.len())
}

fn read_option(value: &Value) -> Option<PermissionOption> {
    let id = value.get("optionId").or_else(|| value.get("option_id"))?.as_str()?.to_owned();
    let kind = match value.get("kind").and_then(Value::as_str) {
        Some("allow_once") => OptionKind::AllowOnce,
        Some("allow_always") => OptionKind::AllowAlways,
        Some("reject_once") => OptionKind::RejectOnce,
        Some("reject_always") => OptionKind::RejectAlways,
        _ => OptionKind::Other,
    };
    let name = value.get("name").and_then(Value::as_str).filter(|n| !n.is_empty());
    Some(PermissionOption { name: name.unwrap_or(&id).to_owned(), id, kind })
}

/// The kind of thing that is asked. The title says it, unless it only repeats the body.
fn what(call: &Value, title: &str, body: &[BodyPart]) -> String {
    let (who, rest) = match title.strip_prefix('[').and_then(|t| t.split_once("] ")) {
        Some((who, rest)) => (format!("[{who}] "), rest),
        None => (String::new(), title),
    };
    let repeats = body.iter().any(|part| match part {
        BodyPart::Command(text) | BodyPart::Path(text) => rest.contains(text.as_str()),
        BodyPart::Diff { path, .. } => rest.contains(path.as_str()),
        BodyPart::Text(text) => rest == text,
        BodyPart::Code(_) | BodyPart::Fields(_) => false,
    });
    if !repeats {
        return title.to_owned();
    }
    if let Some(name) = call.get("name").and_then(Value::as_str).filter(|n| !n.trim().is_empty()) {
        return format!("{who}{name}");
    }
    let has_command = body.iter().any(|p| matches!(p, BodyPart::Command(_)));
    let word = match call.get("kind").and_then(Value::as_str) {
        Some("execute") => "run a command",
        Some("edit") => "change a file",
        Some("delete") => "delete",
        Some("move") => "move",
        Some("read") => "read",
        Some("search") => "search",
        Some("fetch") => "fetch",
        _ if has_command => "run a command",
        _ => rest,
    };
    format!("{who}{word}")
}

fn read_body(call: &Value, title: &str) -> Vec<BodyPart> {
    let mut body = Vec::new();
    let input = call.get("rawInput");
    let command = input.and_then(|i| i.get("command")).and_then(|c| match c {
        Value::String(s) => Some(s.clone()),
        Value::Array(words) => {
            Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    });
    body.extend(command.map(BodyPart::Command));
    let content = call.get("content").and_then(Value::as_array).into_iter().flatten();
    for part in content.flat_map(read_content) {
        if !repeats(&body, &part, title) {
            body.push(part);
        }
    }
    for place in call.get("locations").and_then(Value::as_array).into_iter().flatten() {
        if let Some(path) = place.get("path").and_then(Value::as_str)
            && !body.iter().any(|p| shows_path(p, path))
        {
            body.push(BodyPart::Path(path.to_owned()));
        }
    }
    // The whole input is reachable, whatever the title says of it; nothing of it is said twice.
    match input {
        Some(Value::Object(fields)) => body.extend(read_fields(fields, &body)),
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => body.push(BodyPart::Text(text.clone())),
        Some(other) => body.push(BodyPart::Fields(pretty(other))),
    }
    if body.is_empty() {
        body.push(BodyPart::Text(title.to_owned()));
    }
    body
}

/// The fields that nothing above shows; a description is a sentence, and reads as one.
fn read_fields(fields: &serde_json::Map<String, Value>, body: &[BodyPart]) -> Vec<BodyPart> {
    let mut parts = Vec::new();
    let mut lines = Vec::new();
    for (key, value) in fields {
        match value {
            Value::Null => {}
            Value::String(text) if is_shown(body, text) => {}
            Value::Array(_) if key == "command" => {}
            Value::String(text) if EDITED.contains(&key.as_str()) && is_in_diff(body, text) => {}
            Value::String(text) if key == "description" => parts.push(BodyPart::Text(text.clone())),
            Value::String(text) => lines.push(format!("{key}: {text}")),
            other => lines.push(format!("{key}: {}", pretty(other))),
        }
    }
    if !lines.is_empty() {
        parts.push(BodyPart::Fields(lines.join("\n")));
    }
    parts
}

fn pretty(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// Whether the body shows this text of the input whole.
fn is_shown(body: &[BodyPart], text: &str) -> bool {
    let trimmed = text.trim();
    body.iter().any(|part| match part {
        BodyPart::Command(shown)
        | BodyPart::Code(shown)
        | BodyPart::Text(shown)
        | BodyPart::Fields(shown) => shown.trim() == trimmed,
        BodyPart::Path(_) => shows_path(part, text),
        BodyPart::Diff { old, new, .. } => {
            shows_path(part, text) || new == text || old.as_deref() == Some(text)
        }
    })
}

/// Whether a diff shows this text among its lines.
fn is_in_diff(body: &[BodyPart], text: &str) -> bool {
    body.iter().any(|part| match part {
        BodyPart::Diff { old, new, .. } => {
            new.contains(text) || old.as_ref().is_some_and(|old| old.contains(text))
        }
        _ => false,
    })
}

/// Whether a part names this path, be it from the root or from somewhere below it.
fn shows_path(part: &BodyPart, path: &str) -> bool {
    let (BodyPart::Path(shown) | BodyPart::Diff { path: shown, .. }) = part else { return false };
    let ends = |long: &str, short: &str| {
        !short.is_empty()
            && long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    ends(shown, path) || ends(path, shown)
}

/// Whether a part says only what is there already.
fn repeats(body: &[BodyPart], part: &BodyPart, title: &str) -> bool {
    match part {
        BodyPart::Text(text) | BodyPart::Code(text) => {
            let bare = text.trim().trim_matches('`');
            let says_title = bare == title || title.split_once(": ").is_some_and(|t| t.1 == bare);
            is_shown(body, text) || is_shown(body, bare) || says_title && !body.is_empty()
        }
        _ => false,
    }
}

fn read_content(item: &Value) -> Vec<BodyPart> {
    let text = |v: &Value, k: &str| v.get(k).and_then(Value::as_str).map(str::to_owned);
    match item.get("type").and_then(Value::as_str) {
        Some("diff") => vec![BodyPart::Diff {
            path: text(item, "path").unwrap_or_default(),
            old: text(item, "oldText"),
            new: text(item, "newText").unwrap_or_default(),
        }],
        Some("content") => {
            let Some(block) = item.get("content") else { return Vec::new() };
            let found = text(block, "text")
                .or_else(|| block.get("resource").and_then(|r| text(r, "text")))
                .or_else(|| text(block, "uri"));
            found.map(|t| split_fences(&t)).unwrap_or_default()
        }
        Some("text") => text(item, "text").map(|t| split_fences(&t)).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Takes fenced code out of a text, so that it is compared and shown as what it is.
fn split_fences(text: &str) -> Vec<BodyPart> {
    let mut parts = Vec::new();
    let mut prose = String::new();
    let mut code: Option<(String, String)> = None;
    let close = |prose: &mut String, parts: &mut Vec<BodyPart>| {
        let text = std::mem::take(prose);
        if !text.trim().is_empty() {
            parts.push(BodyPart::Text(text.trim_matches('\n').to_owned()));
        }
    };
    for line in text.lines() {
        let bare = line.trim_start();
        match &mut code {
            Some((fence, inside))
                if bare.trim_end().starts_with(fence.as_str())
                    && bare.trim_end().chars().all(|c| c == '`' || c == '~') =>
            {
                parts.push(BodyPart::Code(std::mem::take(inside)));
                code = None;
            }
            Some((_, inside)) => {
                if !inside.is_empty() {
                    inside.push('\n');
                }
                inside.push_str(line);
            }
            None if bare.starts_with("```") || bare.starts_with("~~~") => {
                close(&mut prose, &mut parts);
                let mark = bare.chars().next().unwrap_or('`');
                let fence: String = bare.chars().take_while(|c| *c == mark).collect();
                code = Some((fence, String::new()));
            }
            None => {
                prose.push_str(line);
                prose.push('\n');
            }
        }
    }
    if let Some((_, inside)) = code {
        parts.push(BodyPart::Code(inside));
    }
    close(&mut prose, &mut parts);
    parts
}

/// Makes everything visible that could hide a part of a command: control and format characters
/// become their code points, long runs of spaces are counted.
pub fn reveal(text: &str) -> String {
    use std::fmt::Write as _;
    const LONG_RUN: usize = 12;
    let mut out = String::with_capacity(text.len());
    let mut spaces = 0usize;
    let flush = |out: &mut String, spaces: &mut usize| {
        if *spaces > LONG_RUN {
            let _infallible = write!(out, " ⟨{spaces} spaces⟩ ");
        } else {
            out.extend(std::iter::repeat_n(' ', *spaces));
        }
        *spaces = 0;
    };
    let mut last = None;
    for c in text.chars() {
        let before = last.replace(c);
        if c == ' ' {
            spaces += 1;
            continue;
        }
        flush(&mut out, &mut spaces);
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("⟨tab⟩"),
            '\r' => out.push_str("⟨CR⟩"),
            '\u{1b}' => out.push_str("⟨ESC⟩"),
            c if is_hidden(c, before) => {
                let _infallible = write!(out, "⟨U+{:04X}⟩", u32::from(c));
            }
            c => out.push(c),
        }
    }
    flush(&mut out, &mut spaces);
    out
}

/// What is to be approved shows every class but pictures, which [`reveal`] looks at one by one.
const WRITTEN_OUT: [Unseen; 10] = [
    Unseen::Control,
    Unseen::Separator,
    Unseen::Bidi,
    Unseen::ZeroWidth,
    Unseen::Joiner,
    Unseen::Selector,
    Unseen::Filler,
    Unseen::Tag,
    Unseen::SoftHyphen,
    Unseen::Blank,
];

/// Whether a character could hide something where it stands after `last`.
fn is_hidden(c: char, last: Option<char>) -> bool {
    match Unseen::of(c) {
        Some(Unseen::Picture) => !last.is_some_and(|last| printable::can_be_joined(last, c)),
        _ => Unseen::is_in(c, &WRITTEN_OUT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(options: &Value) -> Permission {
        Permission::read(&json!({"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "rm",
            "rawInput": {"command": "rm -rf build"}}, "options": options}))
    }

    #[test]
    fn nothing_that_approves_is_selected_first() {
        let p = ask(&json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                            {"optionId": "n", "name": "No", "kind": "reject_once"}]));
        assert_eq!(p.selected, 1);
        assert!(p.accepted().is_none(), "Enter alone takes nothing");
        let only_allow = ask(&json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]));
        assert_eq!(only_allow.selected, 1, "past the end: no row is selected");
        assert!(only_allow.accepted().is_none());
    }

    #[test]
    fn option_ids_are_kept_exactly_as_offered() {
        let p = ask(&json!([{"optionId": "allow-always ü", "name": "", "kind": "odd"}]));
        assert_eq!(p.numbered('1').unwrap().id, "allow-always ü");
        assert_eq!(p.numbered('1').unwrap().kind, OptionKind::Other);
        assert!(p.numbered('0').is_none() && p.numbered('2').is_none());
    }

    #[test]
    fn the_whole_command_is_in_the_body() {
        let long = format!("echo {}; rm -rf x", "a".repeat(5000));
        let p = Permission::read(
            &json!({"toolCall": {"title": "echo aaa…", "rawInput": {"command": long}}}),
        );
        assert_eq!(p.body, vec![BodyPart::Command(long)]);
    }

    #[test]
    fn nothing_is_said_twice_and_nothing_is_left_out() {
        let p = Permission::read(
            &json!({"toolCall": {"toolCallId": "c", "name": "Bash", "title": "Bash: rm -rf x",
            "_meta": {"zcode": {"riskLevel": "high"}}, "rawInput": {"command": "rm -rf x", "description": "Clean up", "timeout": 5},
            "content": [{"type": "content", "content": {"type": "text", "text": "It **deletes**.\n```sh\nrm -rf x\n```"}}]}}),
        );
        assert_eq!((p.what.as_str(), p.risk.as_str()), ("Bash", "high"));
        let text = |s: &str| BodyPart::Text(s.to_owned());
        let want = [
            BodyPart::Command("rm -rf x".into()),
            text("It **deletes**."),
            text("Clean up"),
            BodyPart::Fields("timeout: 5".into()),
        ];
        assert_eq!(p.body, want);
        let p = Permission::read(
            &json!({"toolCall": {"title": "Edit: /w/a.rs", "kind": "edit", "locations": [{"path": "/w/a.rs"}],
            "rawInput": {"file_path": "a.rs", "old_string": "x", "new_string": "y", "replace_all": true},
            "content": [{"type": "diff", "path": "/w/a.rs", "oldText": "x", "newText": "y"}]}}),
        );
        assert_eq!(p.what, "change a file");
        assert_eq!(p.body.len(), 2, "{:?}", p.body);
        assert_eq!(p.body[1], BodyPart::Fields("replace_all: true".into()));
    }

    #[test]
    fn code_that_is_not_the_command_is_shown_without_its_fence() {
        let p = Permission::read(&json!({"toolCall": {"title": "T", "rawInput": {"command": "a"},
            "content": [{"type": "text", "text": "see\n````md\n```\nb\n```\n````\nend"}]}}));
        let want = [
            BodyPart::Command("a".into()),
            BodyPart::Text("see".into()),
            BodyPart::Code("```\nb\n```".into()),
            BodyPart::Text("end".into()),
        ];
        assert_eq!(p.body, want);
    }

    #[test]
    fn snake_case_and_missing_fields_still_ask_something() {
        let p = Permission::read(
            &json!({"tool_call": {"tool_call_id": "c", "title": "T"}, "options": [{"option_id": "a", "name": "A"}]}),
        );
        assert_eq!((p.title.as_str(), p.tool_call_id.as_str(), p.options.len()), ("T", "c", 1));
        assert!(!Permission::read(&Value::Null).body.is_empty());
    }

    #[test]
    fn hidden_characters_are_shown() {
        let shown = reveal("a\u{202e}b\u{200b}c\rd\te\u{1b}[2J");
        assert_eq!(shown, "a⟨U+202E⟩b⟨U+200B⟩c⟨CR⟩d⟨tab⟩e⟨ESC⟩[2J");
        assert_eq!(reveal(&format!("x{}y", " ".repeat(300))), "x ⟨300 spaces⟩ y");
    }

    #[test]
    fn no_class_of_unseen_characters_gets_into_what_is_approved() {
        let classes = "\u{1}\u{9b}\u{2028}\u{202e}\u{2066}\u{200b}\u{feff}\u{200d}\u{fe00}\u{180b}\u{3164}\u{115f}\u{e0041}\u{e0100}\u{ad}\u{a0}\u{202f}\u{2800}\u{3000}";
        for c in classes.chars() {
            for text in [format!("a{c}b"), format!("👩{c}🔬"), format!("模{c}型")] {
                let shown = reveal(&text);
                assert!(!shown.contains(c), "{c:?} in {shown}");
                assert!(shown.contains(&format!("⟨U+{:04X}⟩", u32::from(c))), "{c:?} in {shown}");
            }
        }
        // A selector that makes a picture of a sign stays; one that has nothing to choose is shown.
        assert_eq!(reveal("⚠\u{fe0f} 1\u{fe0f}"), "⚠\u{fe0f} 1\u{fe0f}");
        assert_eq!(reveal("rm\u{fe0f} -rf"), "rm⟨U+FE0F⟩ -rf");
        assert_eq!(reveal("⚠\u{fe0f}\u{fe0f}"), "⚠\u{fe0f}⟨U+FE0F⟩");
    }

    #[test]
    fn moving_wraps_and_makes_enter_count() {
        let mut p = ask(&json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                                {"optionId": "n", "name": "No", "kind": "reject_once"}]));
        p.move_by(1);
        assert_eq!(p.accepted().unwrap().id, "y");
        p.move_by(-1);
        assert_eq!(p.accepted().unwrap().id, "n");
    }
}
