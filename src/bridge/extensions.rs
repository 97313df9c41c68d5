//! The table of extension methods: each under the name that the TypeScript bridge's clients already
//! send, and under `_zcode/…`, which is the one advertised. Called by `agent`; carried out by the
//! session machine.

/// Name as the machine knows it, the older name on the wire.
const TABLE: &[(&str, &str)] = &[
    ("cancelBackgroundTask", "session/cancelBackgroundTask"),
    ("load_earlier", "session/load_earlier"),
    ("compact", "session/compact"),
    ("goal", "session/goal"),
    ("setModel", "session/setModel"),
    ("setMode", "session/setMode"),
    ("setThoughtLevel", "session/setThoughtLevel"),
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
    fn other_methods_are_not_ours() {
        for method in ["lab/unknown", "_lab/x", "session/prompt", "_zcode/", "_zcode/nothing"] {
            assert_eq!(name_of(method), None, "{method}");
        }
    }
}
