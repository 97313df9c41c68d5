//! What the status line tells: usage, modes and config options as the agent gave them.
//! Read leniently from JSON, because an agent's unknown kind of option must not hide the others.

use serde_json::Value;

/// How much of the context is used.
#[derive(Debug, Clone, PartialEq)]
pub struct Usage {
    /// Tokens in the context.
    pub used: u64,
    /// Tokens that fit.
    pub size: u64,
    /// What the session has cost so far, as amount and currency.
    pub cost: Option<(f64, String)>,
}

impl Usage {
    /// Returns used over size in percent, or `None` when the agent gave no size.
    pub fn percent(&self) -> Option<u64> {
        (self.size > 0).then(|| self.used.saturating_mul(100) / self.size)
    }
}

/// One value of an option or one mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What is shown.
    pub name: String,
    /// More about it, or empty.
    pub description: String,
    /// The group it stands in, or empty.
    pub group: String,
}

/// What kind of setting an option is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// One of several values.
    Select {
        /// The value in effect.
        current: String,
        /// What can be chosen.
        choices: Vec<Choice>,
    },
    /// On or off.
    Switch(bool),
}

/// A setting of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigOption {
    /// What is sent.
    pub id: String,
    /// What is shown.
    pub name: String,
    /// `mode`, `model`, `thought_level` or another; empty when the agent gave none.
    pub category: String,
    /// More about it.
    pub description: String,
    /// Its values.
    pub setting: Setting,
}

impl ConfigOption {
    /// The name of the value in effect.
    pub fn current_name(&self) -> String {
        match &self.setting {
            Setting::Switch(on) => if *on { "on" } else { "off" }.to_owned(),
            Setting::Select { current, choices } => choices
                .iter()
                .find(|c| c.value == *current)
                .map_or_else(|| current.clone(), |c| c.name.clone()),
        }
    }
}

/// What the agent lets one choose, and what is in effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// All options in the agent's order.
    pub options: Vec<ConfigOption>,
    /// The older way to give modes: used only when no option has the category `mode`.
    pub modes: Vec<Choice>,
    /// The mode in effect by the older way.
    pub current_mode: String,
}

impl Settings {
    /// Takes `modes` and `configOptions` from an answer to `session/new`, `load` or `resume`.
    pub fn read_answer(&mut self, answer: &Value) {
        if let Some(options) = answer.get("configOptions").and_then(Value::as_array) {
            self.set_options(options);
        }
        if let Some(modes) = answer.get("modes") {
            self.current_mode = text(modes, "currentModeId");
            let list = modes.get("availableModes").and_then(Value::as_array);
            self.modes = list.into_iter().flatten().filter_map(|m| choice(m, "id", "")).collect();
        }
    }

    /// Replaces the options by a complete new list.
    pub fn set_options(&mut self, options: &[Value]) {
        self.options = options.iter().filter_map(read_option).collect();
    }

    /// The mode has changed; both ways of telling it are kept in step.
    pub fn set_mode(&mut self, mode: &str) {
        mode.clone_into(&mut self.current_mode);
        for option in &mut self.options {
            if option.category == "mode"
                && let Setting::Select { current, .. } = &mut option.setting
            {
                mode.clone_into(current);
            }
        }
    }

    /// Returns the option that stands for a category, by category or, failing that, by id.
    pub fn of_category(&self, category: &str) -> Option<&ConfigOption> {
        self.options
            .iter()
            .find(|o| o.category == category)
            .or_else(|| self.options.iter().find(|o| o.category.is_empty() && o.id == category))
    }

    /// The modes to choose from and the one in effect, whichever way they were given.
    pub fn mode_choices(&self) -> (Vec<Choice>, String) {
        match self.of_category("mode").map(|o| &o.setting) {
            Some(Setting::Select { current, choices }) => (choices.clone(), current.clone()),
            _ => (self.modes.clone(), self.current_mode.clone()),
        }
    }

    /// The name of the mode in effect, or empty.
    pub fn mode_name(&self) -> String {
        let (choices, current) = self.mode_choices();
        choices.into_iter().find(|c| c.value == current).map_or(current, |c| c.name)
    }
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn choice(value: &Value, id_key: &str, group: &str) -> Option<Choice> {
    let id = value.get(id_key)?.as_str()?.to_owned();
    let name = text(value, "name");
    Some(Choice {
        name: if name.is_empty() { id.clone() } else { name },
        value: id,
        description: text(value, "description"),
        group: group.to_owned(),
    })
}

fn read_option(value: &Value) -> Option<ConfigOption> {
    let setting = match value.get("type").and_then(Value::as_str)? {
        "boolean" => Setting::Switch(value.get("currentValue")?.as_bool()?),
        "select" => Setting::Select {
            current: text(value, "currentValue"),
            choices: value
                .get("options")?
                .as_array()?
                .iter()
                .flat_map(|entry| match entry.get("options").and_then(Value::as_array) {
                    Some(inner) => {
                        let group = text(entry, "name");
                        inner.iter().filter_map(|c| choice(c, "value", &group)).collect()
                    }
                    None => choice(entry, "value", "").into_iter().collect::<Vec<_>>(),
                })
                .collect(),
        },
        _ => return None,
    };
    let id = value.get("id")?.as_str()?.to_owned();
    let name = text(value, "name");
    Some(ConfigOption {
        name: if name.is_empty() { id.clone() } else { name },
        category: text(value, "category"),
        description: text(value, "description"),
        id,
        setting,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_are_read_with_groups_and_an_unknown_kind_hides_no_other() {
        let mut s = Settings::default();
        s.read_answer(&json!({"configOptions": [
            {"id": "x", "type": "slider", "currentValue": 3},
            {"id": "m", "name": "Model", "category": "model", "type": "select", "currentValue": "b",
             "options": [{"group": "g", "name": "Cloud", "options": [{"value": "b", "name": "Big"}]},
                         {"value": "t", "name": "Tiny"}]},
            {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": true}]}));
        let model = s.of_category("model").unwrap();
        assert_eq!(model.current_name(), "Big");
        let Setting::Select { choices, .. } = &model.setting else { panic!() };
        assert_eq!(choices[0].group, "Cloud");
        assert_eq!(s.options[1].current_name(), "on");
    }

    #[test]
    fn modes_given_both_ways_stay_in_step() {
        let mut s = Settings::default();
        s.read_answer(&json!({
            "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]},
            "configOptions": [{"id": "mode", "category": "mode", "name": "Mode", "type": "select", "currentValue": "ask",
                "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}]}]}));
        s.set_mode("code");
        assert_eq!((s.mode_name().as_str(), s.current_mode.as_str()), ("Code", "code"));
    }

    #[test]
    fn a_usage_without_a_size_has_no_percent() {
        assert_eq!(Usage { used: 5, size: 0, cost: None }.percent(), None);
        assert_eq!(Usage { used: 50_000, size: 200_000, cost: None }.percent(), Some(25));
    }
}
