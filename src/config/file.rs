//! The settings file: `~/.config/zcode-acp/config.json`, shared with the TypeScript bridge. Pure
//! but for [`SettingsFile::read`]. Owns the table of known keys; says what is wrong with a file by
//! line and key, and hands out typed values of what is right. Called by `config::load`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Env;
use crate::small_file;

/// Largest settings file that is read; real ones have a few lines.
const MAX_BYTES: u64 = 1024 * 1024;

/// What a key may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flag,
    Count,
    Text,
    Texts,
    OneOf(&'static [&'static str]),
    /// Belongs to a part that this program does not have; taken as it is.
    Foreign,
}

/// The modes an engine has (engine protocol section 3, `session/setMode`).
pub(super) const MODES: [&str; 6] = ["plan", "build", "edit", "yolo", "guarded", "auto"];

/// Every known key. A key that ends in `.*` stands for all below it.
const KEYS: &[(&str, Kind)] = &[
    // Shared with the TypeScript bridge.
    ("session.mode", Kind::OneOf(&MODES)),
    ("session.showCompletionStatus", Kind::Flag),
    ("interaction.timeoutMs", Kind::Count),
    ("autoCompact.threshold", Kind::Count),
    ("debug", Kind::Flag),
    ("lang", Kind::Text),
    ("goal.maxTurns", Kind::Count),
    ("goal.mode", Kind::Text),
    ("workflow.mode", Kind::OneOf(&["disabled", "onDemand", "alwaysOn"])),
    ("tui.stats", Kind::Text),
    ("remote.*", Kind::Foreign),
    ("sandbox.*", Kind::Foreign),
    ("quota.*", Kind::Foreign),
    ("push.*", Kind::Foreign),
    // Ours.
    ("$schema", Kind::Text),
    ("session.model", Kind::Text),
    ("engine.disallowedTools", Kind::Texts),
    ("engine.automationTools", Kind::Flag),
    ("accounts.liveCheck", Kind::Flag),
    ("approvals.dir", Kind::Text),
    ("tui.theme", Kind::OneOf(&["auto", "dark", "light", "none"])),
    ("tui.mouse", Kind::Flag),
    ("tui.animations", Kind::Flag),
];

/// Every known key, for what documents them.
pub fn known_keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|(key, _)| *key)
}

/// Returns where the settings file is.
pub fn settings_path(env: &Env, home: &Path) -> PathBuf {
    env.path("XDG_CONFIG_HOME")
        .filter(|dir| dir.is_absolute())
        .unwrap_or_else(|| home.join(".config"))
        .join("zcode-acp")
        .join("config.json")
}

/// The settings that a file holds. Only keys of the right type are in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsFile {
    values: HashMap<String, Value>,
    /// What was wrong: `config.json line 3: session.mode: …`.
    pub warnings: Vec<String>,
}

impl SettingsFile {
    /// Reads the file; one that is not there is empty, one that cannot be read is a warning.
    pub fn read(path: &Path) -> Self {
        match small_file::read(path, MAX_BYTES) {
            Ok(text) => Self::parse(&path.display().to_string(), &text),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => Self::default(),
            Err(err) => Self {
                warnings: vec![format!("{}: {err}; using defaults", path.display())],
                ..Self::default()
            },
        }
    }

    /// Takes the right keys from a file's text. `name` is what warnings call the file.
    pub fn parse(name: &str, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut file = Self::default();
        if text.trim().is_empty() {
            return file;
        }
        let root = match serde_json::from_str::<Value>(text) {
            Ok(root) => root,
            Err(err) => {
                file.warnings.push(format!("{name} line {}: {err}; using defaults", err.line()));
                return file;
            }
        };
        if !root.is_object() {
            file.warnings.push(format!("{name} line 1: not an object; using defaults"));
            return file;
        }
        let lines = key_lines(text);
        let mut found = Vec::new();
        flatten("", &root, &mut found);
        for (key, value) in found {
            let line = lines.get(&key).copied().unwrap_or(1);
            match judge(&key, value) {
                Ok(()) => drop(file.values.insert(key, value.clone())),
                Err(problem) => file.warnings.push(format!("{name} line {line}: {key}: {problem}")),
            }
        }
        file
    }

    /// Returns a yes or no.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.values.get(key)?.as_bool()
    }

    /// Returns a whole number that is not negative.
    pub fn count(&self, key: &str) -> Option<u64> {
        self.values.get(key)?.as_u64()
    }

    /// Returns a text that is not empty.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key)?.as_str().filter(|text| !text.trim().is_empty())
    }

    /// Returns a list of texts.
    pub fn texts(&self, key: &str) -> Option<Vec<String>> {
        let items = self.values.get(key)?.as_array()?;
        Some(items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect())
    }
}

/// Lists `a.b.c` keys with their values; objects whose key is known (or foreign) are not entered.
fn flatten<'a>(prefix: &str, value: &'a Value, found: &mut Vec<(String, &'a Value)>) {
    let Some(object) = value.as_object() else { return };
    for (name, value) in object {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let section = KEYS.iter().any(|(known, kind)| {
            *kind != Kind::Foreign
                && known.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('.'))
        });
        if section && value.is_object() {
            flatten(&key, value, found);
        } else {
            found.push((key, value));
        }
    }
}

fn judge(key: &str, value: &Value) -> Result<(), String> {
    let known = KEYS.iter().find(|(known, _)| {
        *known == key
            || known.strip_suffix(".*").is_some_and(|section| {
                key.strip_prefix(section)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
    });
    let Some((_, kind)) = known else {
        let is_section = |known: &str| {
            known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.') && !rest.is_empty())
        };
        if KEYS.iter().any(|(known, _)| is_section(known)) {
            return Err("must be an object with settings in it; ignored".to_owned());
        }
        let hint = closest(key).map(|k| format!("; did you mean {k}?")).unwrap_or_default();
        return Err(format!("unknown key, ignored{hint}"));
    };
    let (ok, wanted) = match kind {
        Kind::Flag => (value.is_boolean(), "true or false".to_owned()),
        Kind::Count => (value.is_u64(), "a whole number, 0 or more".to_owned()),
        Kind::Text => (value.is_string(), "a text".to_owned()),
        Kind::Texts => (
            value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            "a list of texts".to_owned(),
        ),
        Kind::OneOf(words) => (
            value.as_str().is_some_and(|word| words.contains(&word)),
            format!("one of {}", words.join(", ")),
        ),
        Kind::Foreign => (true, String::new()),
    };
    if ok { Ok(()) } else { Err(format!("must be {wanted}; ignored")) }
}

/// Returns the known key that was probably meant.
fn closest(key: &str) -> Option<&'static str> {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let wanted = last(key);
    KEYS.iter()
        .map(|(known, _)| *known)
        .filter(|known| !known.ends_with('*'))
        .map(|known| (distance(&wanted, &last(known)), known))
        .min()
        .filter(|(distance, _)| *distance <= 2 && *distance < wanted.len())
        .map(|(_, known)| known)
}

/// Levenshtein distance, for short names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut left = i + 1;
        let mut next = vec![left];
        for ((cb, diagonal), above) in b.iter().zip(&row).zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(ca != *cb)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// Finds the line of every `a.b.c` key of a JSON text that has parsed already.
fn key_lines(text: &str) -> HashMap<String, usize> {
    let mut lines = HashMap::new();
    // One entry per open bracket: the key that led to it, `None` for array items.
    let mut path: Vec<Option<String>> = Vec::new();
    let mut pending: Option<String> = None; // last string seen, perhaps a key
    let mut key: Option<String> = None; // key whose value comes next
    let mut line = 1;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\n' => line += 1,
            '"' => {
                let mut string = String::new();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => string.extend(chars.next()),
                        c => string.push(c),
                    }
                }
                pending = Some(string);
            }
            ':' => {
                key = pending.take();
                let full: Vec<&str> =
                    path.iter().flatten().chain(key.as_ref()).map(String::as_str).collect();
                let _ = lines.entry(full.join(".")).or_insert(line);
            }
            '{' | '[' => path.push(key.take()),
            '}' | ']' => drop(path.pop()),
            ',' => key = None,
            _ => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(text: &str) -> Vec<String> {
        SettingsFile::parse("config.json", text).warnings
    }

    #[test]
    fn right_keys_are_taken_and_foreign_ones_accepted() {
        let file = SettingsFile::parse(
            "config.json",
            r#"{"session": {"mode": "plan", "showCompletionStatus": true},
                "interaction": {"timeoutMs": 5000}, "remote": {"enabled": true, "token": "t"},
                "engine": {"disallowedTools": ["A", "B"]}, "lang": "ja"}"#,
        );
        assert_eq!(file.warnings, Vec::<String>::new());
        assert_eq!(file.text("session.mode"), Some("plan"));
        assert_eq!(file.flag("session.showCompletionStatus"), Some(true));
        assert_eq!(file.count("interaction.timeoutMs"), Some(5000));
        assert_eq!(file.texts("engine.disallowedTools").unwrap(), ["A", "B"]);
    }

    #[test]
    fn a_wrong_value_names_line_and_key_and_spares_the_others() {
        let text = "{\n  \"session\": {\n    \"mode\": \"fast\"\n  },\n  \"debug\": \"yes\",\n  \"lang\": \"en\"\n}";
        let file = SettingsFile::parse("config.json", text);
        assert_eq!(
            file.warnings,
            [
                "config.json line 3: session.mode: must be one of plan, build, edit, yolo, guarded, auto; ignored",
                "config.json line 5: debug: must be true or false; ignored",
            ]
        );
        assert_eq!(file.text("lang"), Some("en"));
    }

    #[test]
    fn a_section_that_is_no_object_is_of_the_wrong_type_and_not_unknown() {
        for value in ["null", "5", "[]", "\"x\""] {
            for section in ["interaction", "tui", "session", "approvals"] {
                let found = warnings(&format!("{{\"{section}\":\n{value}}}"));
                let wanted = format!(
                    "config.json line 1: {section}: must be an object with settings in it; ignored"
                );
                assert_eq!(found, [wanted]);
            }
        }
        assert_eq!(warnings("{\"remote\": null, \"session\": {}}"), Vec::<String>::new());
        assert_eq!(warnings("{\"session\": {\"mode\": \"guarded\"}}"), Vec::<String>::new());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_in_the_files_place_is_a_warning_and_no_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        crate::small_file::make_pipe(&path);
        let warnings = SettingsFile::read(&path).warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("not a regular file"), "{warnings:?}");
    }

    #[test]
    fn an_unknown_key_is_a_warning_with_a_guess() {
        assert_eq!(
            warnings("{\"interaction\": {\n\"timeoutMS\": 1, \"zzzzzz\": 1}}"),
            [
                "config.json line 2: interaction.timeoutMS: unknown key, ignored; did you mean interaction.timeoutMs?",
                "config.json line 2: interaction.zzzzzz: unknown key, ignored",
            ]
        );
    }

    #[test]
    fn the_readme_has_every_key() {
        let readme = include_str!("../../README.md");
        for (key, kind) in
            KEYS.iter().filter(|(key, _)| DOCUMENTED.iter().any(|d| key.starts_with(d)))
        {
            assert!(*kind == Kind::Foreign || readme.contains(&format!("`{key}`")), "{key}");
        }
    }

    /// Sections whose keys do something here.
    const DOCUMENTED: [&str; 6] =
        ["session.", "interaction.", "autoCompact.", "engine.", "accounts.", "approvals."];

    #[test]
    fn a_file_that_is_too_large_or_no_file_is_one_warning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        std::fs::write(&path, " ".repeat(1024 * 1024 + 1)).unwrap();
        for (path, says) in [(path.as_path(), "larger than 1 MiB"), (dir.path(), "using defaults")]
        {
            let warnings = SettingsFile::read(path).warnings;
            assert!(warnings.len() == 1 && warnings[0].contains(says), "{warnings:?}");
        }
        assert_eq!(SettingsFile::read(&dir.path().join("none")), SettingsFile::default());
    }

    #[test]
    fn a_broken_file_is_one_warning_with_its_line() {
        let found = warnings("{\n\"debug\": yes\n}");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("config.json line 2: "), "{found:?}");
        assert_eq!(warnings("[1]").len(), 1);
        assert_eq!(warnings(" \n"), Vec::<String>::new());
        assert_eq!(warnings("\u{feff}{}"), Vec::<String>::new());
    }
}
