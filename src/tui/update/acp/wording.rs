//! What agents write for machines, put for people: titles that quote JSON, inputs with `\n` in them, a subagent's numbers.
//!
//! Owns wording only: what was sent is kept wherever it can be read as it is. Called for tool calls as they come in.

use std::fmt::Write as _;

use serde_json::Value;

/// The title of a card. Agents cut an input that they have no words for to a line of JSON after the tool's name; the
/// first question or other text of that input says more.
pub(super) fn title(title: &str, input: Option<&Value>) -> Option<String> {
    let (name, rest) = title.split_once(": ")?;
    let said = rest.starts_with(['{', '[']).then_some(input?)?;
    let text = ["question", "title", "name", "description"]
        .iter()
        .find_map(|key| first(said, Some(key)))
        .or_else(|| first(said, None))?;
    Some(format!("{name}: {}", text.trim()))
}

/// The first text at any depth, under this key or under any.
fn first<'a>(value: &'a Value, key: Option<&str>) -> Option<&'a str> {
    let text = |it: &'a Value| it.as_str().filter(|it| !it.trim().is_empty());
    match value {
        Value::Object(fields) => fields
            .iter()
            .find_map(|(name, it)| text(it).filter(|_| key.is_none_or(|key| key == name)))
            .or_else(|| fields.values().find_map(|it| first(it, key))),
        Value::Array(items) => items
            .iter()
            .find_map(|it| text(it).filter(|_| key.is_none()).or_else(|| first(it, key))),
        _ => None,
    }
}

/// A tool's input: JSON, but texts of several lines are shown as lines under their names. `None`: there is no input.
pub(super) fn input(input: &Value) -> Option<String> {
    let is_long = |it: &Value| it.as_str().is_some_and(|it| it.trim_end().contains('\n'));
    match input {
        Value::Null => None,
        Value::Object(fields) if fields.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) if fields.values().any(is_long) => {
            let mut out = String::new();
            for (name, value) in fields {
                let _ = match value.as_str() {
                    Some(text) if is_long(value) => writeln!(out, "{name}:\n{}\n", text.trim_end()),
                    Some(text) => writeln!(out, "{name}: {text}"),
                    None => {
                        let json = serde_json::to_string_pretty(value).unwrap_or_default();
                        writeln!(out, "{name}: {json}")
                    }
                };
            }
            Some(out.trim_end().to_owned())
        }
        other => serde_json::to_string_pretty(other).ok(),
    }
}

/// A subagent's report without its last lines, `agentId: …` and `<usage>…</usage>`, which are for the program that
/// started it. Its card has these facts.
pub(super) fn report(text: &str) -> &str {
    let cut = || {
        let body = text.trim_end().strip_suffix("</usage>")?;
        let (head, usage) = body.rsplit_once("<usage>")?;
        if usage.contains("\n\n") {
            return None;
        }
        let head = head.trim_end();
        let (before, id) = head.rsplit_once('\n').unwrap_or(("", head));
        id.starts_with("agentId: ").then(|| before.trim_end())
    };
    cut().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_title_that_quotes_its_input_says_the_first_question_of_it() {
        let asked = json!({"questions": [{"header": "Language", "question": "Which language?"}]});
        let cut = "AskUserQuestion: {\"questions\":[{\"header\":\"Lang";
        assert_eq!(title(cut, Some(&asked)).as_deref(), Some("AskUserQuestion: Which language?"));
        let other = json!({"depth": 3, "items": ["one", "two"]});
        assert_eq!(title("Sort: {\"depth\":3", Some(&other)).as_deref(), Some("Sort: one"));
        for (title_, input) in [
            ("Bash: ls", Some(json!({"command": "ls"}))),
            ("Bash: {a,b}", None),
            ("Count: [1,2]", Some(json!({"of": [1, 2]}))),
            ("Read", Some(json!({"a": "b"}))),
        ] {
            assert_eq!(title(title_, input.as_ref()), None, "{title_}");
        }
    }

    #[test]
    fn an_input_with_texts_of_several_lines_is_shown_as_lines() {
        let plan = json!({"plan": "# Plan\n\n1. \"Read\"\n", "depth": 2, "by": "me"});
        assert_eq!(
            input(&plan).as_deref(),
            Some("plan:\n# Plan\n\n1. \"Read\"\n\ndepth: 2\nby: me")
        );
        let short = json!({"path": "a.rs"});
        assert_eq!(input(&short).as_deref(), Some("{\n  \"path\": \"a.rs\"\n}"));
        assert_eq!((input(&json!({})), input(&Value::Null)), (None, None));
    }

    #[test]
    fn only_the_numbers_at_the_end_of_a_subagents_report_are_left_out() {
        let numbers =
            "agentId: agent_1 (for resuming)\n<usage>total_tokens: 7\ntool_uses: 2</usage>";
        assert_eq!(report(&format!("Found it.\n\n{numbers}\n")), "Found it.");
        assert_eq!(report(numbers), "");
        for whole in
            ["plain", "<usage>x</usage>", "agentId: 1\nand more <usage>x</usage> text", "a\nb"]
        {
            assert_eq!(report(whole), whole);
        }
    }
}
