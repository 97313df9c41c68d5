//! PURE. Settings as ACP config options and modes. Both are always complete: a client replaces
//! its whole list by what it gets.

use agent_client_protocol::v1::schema as acp;

use super::{ModelEntry, Settings, catalog};

/// The modes a user can choose: id, name, description.
const MODES: [(&str, &str, &str); 4] = [
    ("plan", "Plan", "Reads and plans; changes nothing before you approve the plan"),
    ("build", "Build", "Asks before it edits files or runs commands"),
    ("edit", "Edit", "Edits files without asking; asks before it runs commands"),
    ("yolo", "Yolo", "Never asks: every edit and command is done at once"),
];
/// Modes that are shown only while the engine is in them.
const OTHER_MODES: [(&str, &str, &str); 2] = [
    ("auto", "Auto", "The engine decides when to ask"),
    ("guarded", "Guarded", "Asks for everything that the engine judges risky"),
];
/// The value of a list that has nothing to choose from.
pub(super) const DEFAULT: &str = "default";

/// Ids of the options.
pub(crate) const MODEL: &str = "model";
pub(super) const MODE: &str = "mode";
pub(super) const THOUGHT: &str = "thought";

impl Settings {
    /// The complete list of config options, in the order of their weight.
    pub fn options(&self) -> Vec<acp::SessionConfigOption> {
        let (model, models) = self.model_options();
        let (level, levels) = self.level_options();
        let modes: Vec<_> = self
            .listed_modes()
            .into_iter()
            .map(|(id, name, words)| {
                let words = (!words.is_empty()).then(|| words.to_owned());
                acp::SessionConfigSelectOption::new(id.to_owned(), name).description(words)
            })
            .collect();
        let mode = self.shown_mode().to_owned();
        vec![
            acp::SessionConfigOption::select(MODEL, "Model", model, models)
                .category(acp::SessionConfigOptionCategory::Model),
            acp::SessionConfigOption::select(MODE, "Mode", mode, modes)
                .category(acp::SessionConfigOptionCategory::Mode),
            acp::SessionConfigOption::select(THOUGHT, "Thought level", level, levels)
                .category(acp::SessionConfigOptionCategory::ThoughtLevel),
        ]
    }

    /// The same modes under ACP's older name.
    pub fn modes(&self) -> acp::SessionModeState {
        let modes = self
            .listed_modes()
            .into_iter()
            .map(|(id, name, words)| {
                let words = (!words.is_empty()).then(|| words.to_owned());
                acp::SessionMode::new(id.to_owned(), name).description(words)
            })
            .collect();
        acp::SessionModeState::new(self.shown_mode().to_owned(), modes)
    }

    /// Both announcements, options first: one editor ignores modes when options exist.
    pub fn updates(&self) -> [acp::SessionUpdate; 2] {
        [
            acp::SessionUpdate::ConfigOptionUpdate(acp::ConfigOptionUpdate::new(self.options())),
            acp::SessionUpdate::CurrentModeUpdate(acp::CurrentModeUpdate::new(
                self.shown_mode().to_owned(),
            )),
        ]
    }

    /// The modes to show: the known ones, and the current one when it is another.
    pub(super) fn listed_modes(&self) -> Vec<(&str, String, &'static str)> {
        let known =
            |(id, name, words): (&'static str, &str, &'static str)| (id, name.to_owned(), words);
        let mut listed: Vec<(&str, String, &'static str)> = MODES.into_iter().map(known).collect();
        let current = self.shown_mode();
        if !listed.iter().any(|(id, ..)| *id == current) {
            let other = OTHER_MODES.into_iter().find(|(id, ..)| *id == current);
            listed.push(other.map_or_else(|| (current, catalog::capitalised(current), ""), known));
        }
        listed
    }

    fn model_options(&self) -> (String, acp::SessionConfigSelectOptions) {
        let current = self.model.as_ref();
        let shown: Vec<&ModelEntry> = self
            .models
            .iter()
            .filter(|m| m.disabled_reason.is_none() || current.is_some_and(|c| m.reference.same(c)))
            .collect();
        let value = match current {
            Some(current) => {
                let listed = self.entry(current).map(|m| &m.reference);
                listed.unwrap_or(current).value()
            }
            None => DEFAULT.to_owned(),
        };
        let mut groups: Vec<(String, String, Vec<acp::SessionConfigSelectOption>)> = Vec::new();
        for entry in shown {
            let provider = &entry.reference.provider_id;
            let option = select_option(entry);
            if let Some((_, _, options)) = groups.iter_mut().find(|(id, ..)| id == provider) {
                options.push(option);
            } else {
                let name = catalog::provider_name(entry);
                groups.push((provider.clone(), name, vec![option]));
            }
        }
        let is_listed =
            |(_, _, options): &(String, String, Vec<acp::SessionConfigSelectOption>)| {
                options.iter().any(|o| *o.value.0 == *value)
            };
        if !groups.iter().any(is_listed) {
            let (id, provider, name) = current.map_or((DEFAULT, DEFAULT, "Engine default"), |c| {
                (
                    c.provider_id.as_str(),
                    super::parse::bare_provider(&c.provider_id),
                    c.model_id.as_str(),
                )
            });
            let option = acp::SessionConfigSelectOption::new(value.clone(), name.to_owned());
            match groups.iter_mut().find(|(known, ..)| known == id) {
                Some((_, _, options)) => options.push(option),
                None => groups.push((id.to_owned(), provider.to_owned(), vec![option])),
            }
        }
        if groups.len() == 1 {
            let flat = groups.into_iter().flat_map(|(_, _, options)| options).collect();
            return (value, acp::SessionConfigSelectOptions::Ungrouped(flat));
        }
        let grouped = groups
            .into_iter()
            .map(|(id, name, options)| acp::SessionConfigSelectGroup::new(id, name, options))
            .collect();
        (value, acp::SessionConfigSelectOptions::Grouped(grouped))
    }

    fn level_options(&self) -> (String, Vec<acp::SessionConfigSelectOption>) {
        let levels = self.current_levels();
        if levels.is_empty() {
            let only = acp::SessionConfigSelectOption::new(DEFAULT, "Default")
                .description("This model has no thought levels to choose from".to_owned());
            return (DEFAULT.to_owned(), vec![only]);
        }
        let mut options: Vec<_> = levels
            .iter()
            .map(|l| acp::SessionConfigSelectOption::new(l.value.clone(), l.label.clone()))
            .collect();
        let first = levels.first().map(|l| l.value.clone()).unwrap_or_default();
        let current = self.thought.clone().unwrap_or(first);
        if !levels.iter().any(|l| l.value == current) {
            options.push(acp::SessionConfigSelectOption::new(
                current.clone(),
                catalog::capitalised(&current),
            ));
        }
        (current, options)
    }
}

fn select_option(entry: &ModelEntry) -> acp::SessionConfigSelectOption {
    let words = match (&entry.disabled_reason, &entry.description) {
        (Some(reason), _) => Some(format!("Not available: {reason}")),
        (None, words) => words.clone(),
    };
    acp::SessionConfigSelectOption::new(entry.reference.value(), entry.label.clone())
        .description(words)
}
