//! PURE. What of a stored message is for the user, and what is between the engine and the model
//! (bridge behaviour 1.7).

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

/// Reads the part of a message that tells what it is, and no further: it stands before the parts,
/// which are long. `None` when it makes no sense.
pub(super) fn info(message: &str) -> Option<Info> {
    let mut found = None;
    let mut json = serde_json::Deserializer::from_str(message);
    // It ends in an error where it stops before the end; what was found counts.
    let ended = Search(&mut found).deserialize(&mut json);
    found.or_else(|| ended.is_ok().then(Info::default))
}

struct Search<'a>(&'a mut Option<Info>);

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<(), A::Error> {
        while let Some(key) = from.next_key::<Cow<'_, str>>()? {
            if key == "info" {
                *self.0 = Some(from.next_value()?);
                return Ok(());
            }
            from.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Info {
    pub(super) id: Option<String>,
    pub(super) message_id: Option<String>,
    pub(super) role: String,
    pub(super) synthetic: bool,
    pub(super) visibility: Option<String>,
    pub(super) semantics: Option<Semantics>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Semantics {
    pub(super) kind: Option<String>,
    pub(super) ui_visibility: Option<String>,
    pub(super) transcript_visibility: Option<String>,
}

impl Info {
    pub(super) fn id(&self) -> Option<&str> {
        let id = self.message_id.as_deref().or(self.id.as_deref());
        id.filter(|id| !id.is_empty())
    }

    pub(super) fn kind(&self) -> Option<&str> {
        self.semantics.as_ref()?.kind.as_deref()
    }

    /// Not for the user's eyes.
    pub(super) fn is_hidden(&self) -> bool {
        let semantics = self.semantics.as_ref();
        let says = |visibility: Option<&Option<String>>, words: &[&str]| {
            let word = visibility.and_then(|v| v.as_deref());
            word.is_some_and(|word| words.contains(&word))
        };
        self.synthetic
            || says(Some(&self.visibility), &["model-only", "hidden"])
            || says(semantics.map(|s| &s.ui_visibility), &["hidden", "debug"])
            || says(semantics.map(|s| &s.transcript_visibility), &["hidden"])
    }

    /// A message of the user's own.
    pub(super) fn starts_turn(&self) -> bool {
        self.role == "user"
            && !self.is_hidden()
            && matches!(self.kind(), None | Some("user_prompt" | "slash_command"))
    }
}

/// A user-role text that is not the user's: shown as one closed card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Collapsed {
    pub(super) kind: &'static str,
    pub(super) title: String,
}

/// Recognises plumbing by its text, for builds that do not mark it.
pub(super) fn collapsed(text: &str) -> Option<Collapsed> {
    let text = text.trim_start();
    if text.starts_with("This session is being continued from a previous conversation") {
        return Some(Collapsed {
            kind: "context-handoff",
            title: "Summary of the earlier conversation".into(),
        });
    }
    if let Some(rest) = text.strip_prefix("Called the ") {
        let (tool, input) = rest.split_once(" tool with the following input:")?;
        if tool.contains(char::is_whitespace) {
            return None;
        }
        let mut input = serde_json::Deserializer::from_str(input).into_iter::<serde_json::Value>();
        let first = input.find_map(Result::ok).and_then(|v| {
            let map = v.as_object()?.clone();
            map.values().find_map(|v| v.as_str().map(str::to_owned))
        });
        let title = match first {
            Some(first) => format!("{tool} · {first}"),
            None => tool.to_owned(),
        };
        return Some(Collapsed { kind: "tool-transcript", title: cut(&title) });
    }
    if text.starts_with("<task-notification>") {
        let summary = text
            .split_once("<summary>")
            .and_then(|(_, rest)| rest.split_once("</summary>"))
            .map(|(summary, _)| decode(summary.trim()))
            .filter(|s| !s.is_empty());
        return Some(Collapsed {
            kind: "task-notification",
            title: cut(summary.as_deref().unwrap_or("Background task")),
        });
    }
    None
}

/// The user's words without the reminders that the engine put between them.
pub(super) fn without_reminders(text: &str) -> Cow<'_, str> {
    const OPEN: &str = "<system-reminder>";
    const CLOSE: &str = "</system-reminder>";
    let mut left = Cow::Borrowed(text);
    while let Some((before, rest)) = left.split_once(OPEN) {
        let after = rest.split_once(CLOSE).map_or("", |(_, after)| after);
        left = Cow::Owned(format!("{before}{after}"));
    }
    for tool in ["TodoWrite", "Read"] {
        let nudge = format!("The {tool} tool hasn't been used recently.");
        while let Some((before, rest)) = left.split_once(&nudge) {
            let Some((_, rest)) = rest.split_once("gentle reminder") else {
                break;
            };
            // To the end of that sentence.
            let after = rest.split_once(['.', '\n']).map_or("", |(_, after)| after);
            left = Cow::Owned(format!("{before}{after}"));
        }
    }
    if left.len() == text.len() {
        return left;
    }
    Cow::Owned(left.trim().to_owned())
}

/// Titles are cut to 60 characters on one line.
pub(super) fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(60).collect()
}

fn decode(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}
