//! PURE. A session's title (bridge behaviour 6.6): the first prompt's first line until the engine
//! has made a better one; a title that the user gave is never replaced by a made one. Called by
//! [`super::Translator`] and the session machine.

use agent_client_protocol::v1::schema as acp;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::bridge::engine::event::TitleUpdated;

/// Titles are cut to this many characters.
const LENGTH: usize = 80;

/// What is known of a title.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Title {
    current: Option<String>,
    pinned: bool,
}

impl Title {
    /// The title, when there is one.
    pub fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// A title that the session already had (list, resume, load); `source` as the engine names it.
    pub fn adopt(&mut self, title: &str, source: Option<&str>) {
        self.current = normalise(title);
        self.pinned = source == Some("custom");
    }

    /// The first prompt of a fresh session names it, until something better comes.
    pub fn on_prompt(&mut self, words: &str) -> Option<acp::SessionUpdate> {
        if self.current.is_some() {
            return None;
        }
        self.set(from_prompt(words)?)
    }

    /// The user named the session.
    pub fn on_user(&mut self, title: &str) -> Option<acp::SessionUpdate> {
        self.pinned = true;
        self.set(normalise(title)?)
    }

    /// The engine's title: made ones replace the provisional, the user's own always counts.
    pub fn on_engine(&mut self, update: &TitleUpdated) -> Option<acp::SessionUpdate> {
        let title = normalise(&update.title)?;
        match update.source.as_deref() {
            Some("custom") => self.pinned = true,
            Some("generated") if !self.pinned => {}
            _ => return None,
        }
        self.set(title)
    }

    fn set(&mut self, title: String) -> Option<acp::SessionUpdate> {
        if self.current.as_ref() == Some(&title) {
            return None;
        }
        self.current = Some(title.clone());
        let update = acp::SessionInfoUpdate::new().title(title);
        Some(acp::SessionUpdate::SessionInfoUpdate(update))
    }
}

/// The first line of a prompt that says something, cut.
pub fn from_prompt(words: &str) -> Option<String> {
    words.lines().find_map(normalise)
}

/// One line, trimmed, cut to [`LENGTH`]; `None` when nothing is left.
pub fn normalise(title: &str) -> Option<String> {
    let line = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut left = LENGTH;
    // What people see as one character is kept or left out as a whole.
    let fits = |grapheme: &&str| {
        let length = grapheme.chars().count();
        let fits = length <= left;
        left = left.saturating_sub(length);
        fits
    };
    let cut: String = line.graphemes(true).take_while(fits).collect();
    (!cut.is_empty()).then(|| cut.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(title: &str, source: &str) -> TitleUpdated {
        TitleUpdated { title: title.into(), source: Some(source.into()) }
    }

    #[test]
    fn the_first_prompt_names_a_session_once() {
        let mut title = Title::default();
        assert!(title.on_prompt(" \n\n  Fix   the bug\nmore").is_some());
        assert_eq!(title.current(), Some("Fix the bug"));
        assert!(title.on_prompt("Another").is_none());
        assert!(Title::default().on_prompt(" \n ").is_none());
    }

    #[test]
    fn a_made_title_replaces_the_provisional_one_and_a_users_title_wins() {
        let mut title = Title::default();
        title.on_prompt("first words");
        for (update, want) in [
            (engine("x", "default"), "first words"),
            (engine("y", "first_input"), "first words"),
            (engine("Fix the\nlogin bug", "generated"), "Fix the login bug"),
            (engine("", "custom"), "Fix the login bug"),
            (engine("我的标题", "custom"), "我的标题"),
            (engine("Generated again", "generated"), "我的标题"),
            (engine("Renamed", "custom"), "Renamed"),
        ] {
            title.on_engine(&update);
            assert_eq!(title.current(), Some(want), "{update:?}");
        }
        assert!(title.on_user("Mine").is_some());
        assert!(title.on_user("Mine").is_none(), "told once");
    }

    #[test]
    fn an_adopted_custom_title_is_pinned() {
        let mut title = Title::default();
        title.adopt("Kept", Some("custom"));
        assert!(title.on_engine(&engine("Made", "generated")).is_none());
        title.adopt("Old", Some("first_input"));
        assert!(title.on_engine(&engine("Made", "generated")).is_some());
    }

    #[test]
    fn long_titles_are_cut_between_characters() {
        assert_eq!(normalise(&"é".repeat(100)).unwrap().chars().count(), LENGTH);
        let family = "👩‍👩‍👧‍👦";
        assert_eq!(normalise(&family.repeat(20)).unwrap(), family.repeat(11), "7 scalars each");
    }
}
