//! The table of extension methods: each under the name that the TypeScript bridge's clients already
//! send, and under `_zcode/…`, which is the one advertised. Called by `agent`; carried out by the
//! session machine.

/// The one that names no session.
pub(crate) const USAGE_STATS: &str = "usage_stats";

/// Name as the machine knows it, the older name on the wire.
const TABLE: &[(&str, &str)] = &[
    ("cancelBackgroundTask", "session/cancelBackgroundTask"),
    ("load_earlier", "session/load_earlier"),
    ("fork", "session/fork"),
    ("compact", "session/compact"),
    ("goal", "session/goal"),
    ("setModel", "session/setModel"),
    ("setMode", "session/setMode"),
    ("setThoughtLevel", "session/setThoughtLevel"),
    ("set_mode", "session/set_mode"),
    ("set_config_option", "session/set_config_option"),
    (USAGE_STATS, "account/usage_stats"),
    ("steering", "session/steering"),
    ("state", "zcode/state"),
    ("queue/list", "zcode/queue/list"),
    ("queue/edit", "zcode/queue/edit"),
    ("queue/delete", "zcode/queue/delete"),
    ("queue/send_now", "zcode/queue/send_now"),
    ("queue/auto_drain", "zcode/queue/auto_drain"),
];

/// The extension that a method names, if it is one of ours.
pub(crate) fn name_of(method: &str) -> Option<&'static str> {
    let ours = method.strip_prefix("_zcode/");
    TABLE
        .iter()
        .find(|(name, older)| {
            ours == Some(name) || method == *older || method.strip_prefix('_') == Some(older)
        })
        .map(|(name, _)| *name)
}

/// The methods as `initialize` advertises them.
pub(crate) fn advertised() -> Vec<String> {
    TABLE.iter().map(|(name, _)| format!("_zcode/{name}")).collect()
}

/// Every name of the table, as the machine knows it.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

/// Every name that a method has on the wire.
#[cfg(test)]
pub(crate) fn spellings(name: &str) -> Vec<String> {
    let older = TABLE.iter().find(|(known, _)| *known == name).map(|(_, older)| *older);
    let older = older.into_iter().flat_map(|older| [older.to_owned(), format!("_{older}")]);
    older.chain([format!("_zcode/{name}")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_extension_is_known_under_all_its_names() {
        for (name, older) in TABLE {
            assert_eq!(name_of(older), Some(*name));
            assert_eq!(name_of(&format!("_{older}")), Some(*name));
            assert_eq!(name_of(&format!("_zcode/{name}")), Some(*name));
        }
    }

    #[test]
    fn the_readme_tells_of_every_method() {
        let readme = include_str!("../../README.md");
        for method in advertised() {
            assert!(readme.contains(&format!("`{method}`")), "{method}");
        }
    }

    #[test]
    fn the_readme_promises_the_older_names_that_there_are() {
        let readme = include_str!("../../README.md");
        let line = readme.lines().find(|line| line.contains("Their older names")).unwrap();
        for (_, older) in TABLE {
            let family = if older.starts_with("zcode/queue/") {
                "`zcode/queue/…`".to_owned()
            } else if older.starts_with("session/") {
                "`session/…`".to_owned()
            } else {
                format!("`{older}`")
            };
            assert!(line.contains(&family), "{older}");
        }
        for none in ["zcode/setMode", "zcode/fork", "session/queue/list", "zcode/usage_stats"] {
            assert_eq!(name_of(none), None, "{none}");
        }
    }

    #[test]
    fn other_methods_are_not_ours() {
        for method in ["lab/unknown", "_lab/x", "session/prompt", "_zcode/", "_zcode/nothing"] {
            assert_eq!(name_of(method), None, "{method}");
        }
    }
}
