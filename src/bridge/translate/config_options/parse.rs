//! PURE. What a client sets, in any of the spellings that clients and older bridges use, checked
//! against what was offered.

use agent_client_protocol::v1::schema as acp;

use super::options::{DEFAULT, MODE, MODEL, THOUGHT};
use super::{ModelRef, Settings};

/// Modes the engine takes; `guarded` only from its newer builds, which say no themselves.
const MODES: [&str; 6] = ["plan", "build", "edit", "yolo", "guarded", "auto"];

/// A checked wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Use this model.
    Model(ModelRef),
    /// Use this mode.
    Mode(String),
    /// Use this thought level.
    Thought(String),
    /// The placeholder of an option that has nothing to choose from was chosen.
    Nothing,
}

/// Why a wish cannot be granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// There is no such option.
    #[error("There is no option {0:?}. Options are model, mode and thought.")]
    Unknown(String),
    /// The value is not one of the option's.
    #[error("{value:?} is not a value of {option}. Choose one of: {offered}.")]
    Value {
        /// The option.
        option: &'static str,
        /// What was asked for.
        value: String,
        /// What can be had, cut to a readable length.
        offered: String,
    },
    /// The value has another type than the option.
    #[error("Option {0} takes a string.")]
    Type(String),
}

impl OptionError {
    /// The error a client gets: invalid params.
    pub fn to_acp(&self) -> acp::Error {
        let mut error = acp::Error::invalid_params();
        error.message = self.to_string();
        error
    }
}

impl Settings {
    /// Reads `session/set_config_option`.
    pub fn parse(
        &self,
        id: &str,
        value: &acp::SessionConfigOptionValue,
    ) -> Result<Change, OptionError> {
        let text = || {
            let value = value.as_value_id().map(|v| v.0.to_string());
            value.ok_or_else(|| OptionError::Type(id.to_owned()))
        };
        match id {
            MODEL => self.parse_model(&text()?),
            MODE => self.parse_mode(&text()?),
            THOUGHT | "thought_level" | "thoughtLevel" | "reasoning_effort" | "effort" => {
                self.parse_thought(&text()?)
            }
            other => Err(OptionError::Unknown(other.to_owned())),
        }
    }

    /// A model: `provider/model`, `provider\model`, `custom:<url-encoded provider>:<model>`, a
    /// bare model id or its label.
    pub fn parse_model(&self, value: &str) -> Result<Change, OptionError> {
        let wanted = value.trim();
        if wanted == DEFAULT && self.model.is_none() {
            return Ok(Change::Nothing);
        }
        let usable = || self.models.iter().filter(|m| m.disabled_reason.is_none());
        let by_value = usable().find(|m| m.reference.value() == wanted);
        let qualified = || {
            let wanted = qualified(wanted);
            let exact = wanted.iter().find_map(|w| usable().find(|m| m.reference == *w));
            exact.or_else(|| wanted.iter().find_map(|w| usable().find(|m| m.reference.same(w))))
        };
        let bare = || {
            let provider = self.model.as_ref().map(|m| &m.provider_id);
            let named = |m: &&super::ModelEntry| {
                m.reference.model_id.eq_ignore_ascii_case(wanted)
                    || m.label.eq_ignore_ascii_case(wanted)
            };
            let mine = usable().filter(named).find(|m| Some(&m.reference.provider_id) == provider);
            mine.or_else(|| usable().find(named))
        };
        match by_value.or_else(qualified).or_else(bare) {
            Some(entry) => Ok(Change::Model(entry.reference.clone())),
            None if self.model.as_ref().is_some_and(|m| m.value() == wanted) => Ok(Change::Nothing),
            None => Err(refused("model", value, usable().map(|m| m.reference.value()))),
        }
    }

    /// A mode by its id or name.
    pub fn parse_mode(&self, value: &str) -> Result<Change, OptionError> {
        let wanted = value.trim().to_ascii_lowercase();
        if MODES.contains(&wanted.as_str()) {
            return Ok(Change::Mode(wanted));
        }
        let listed = self.listed_modes();
        match listed.iter().find(|(id, ..)| id.eq_ignore_ascii_case(&wanted)) {
            Some((id, ..)) => Ok(Change::Mode((*id).to_owned())),
            None => Err(refused("mode", value, listed.iter().map(|(id, ..)| (*id).to_owned()))),
        }
    }

    /// The level that the model in use has when none is chosen.
    pub fn usual_thought(&self) -> String {
        let entry = self.model.as_ref().and_then(|model| self.entry(model));
        let usual = entry.and_then(|entry| entry.clamp_level(None));
        usual.filter(|_| !self.current_levels().is_empty()).unwrap_or_else(|| DEFAULT.to_owned())
    }

    /// A thought level of the model in use.
    pub fn parse_thought(&self, value: &str) -> Result<Change, OptionError> {
        let wanted = value.trim();
        let levels = self.current_levels();
        if levels.is_empty() && wanted == DEFAULT {
            return Ok(Change::Nothing);
        }
        let found = levels.iter().find(|l| l.value == wanted).or_else(|| {
            levels.iter().find(|l| {
                l.value.eq_ignore_ascii_case(wanted) || l.label.eq_ignore_ascii_case(wanted)
            })
        });
        match found {
            Some(level) => Ok(Change::Thought(level.value.clone())),
            None => Err(refused("thought", value, levels.iter().map(|l| l.value.clone()))),
        }
    }
}

fn refused(
    option: &'static str,
    value: &str,
    offered: impl Iterator<Item = String>,
) -> OptionError {
    const SHOWN: usize = 12;
    let all: Vec<String> = offered.collect();
    let mut text = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if all.is_empty() {
        "none".clone_into(&mut text);
    } else if all.len() > SHOWN {
        text.push_str(", …");
    }
    OptionError::Value { option, value: value.to_owned(), offered: text }
}

/// The readings of a provider-qualified value. A model id may hold slashes itself.
fn qualified(value: &str) -> Vec<ModelRef> {
    let reading = |provider: &str, model: &str| ModelRef {
        provider_id: provider.to_owned(),
        model_id: model.to_owned(),
    };
    if let Some((provider, model)) = value.split_once('\\') {
        return vec![reading(provider, model)];
    }
    let mut found = Vec::new();
    if let Some((provider, model)) =
        value.strip_prefix("custom:").and_then(|rest| rest.split_once(':'))
    {
        let provider = url_decode(provider);
        found.push(reading(&provider, model));
        found.push(reading(&format!("custom:{provider}"), model));
    }
    for (at, _) in value.match_indices('/') {
        if let Some((provider, model)) = value.split_at_checked(at) {
            found.push(reading(provider, model.trim_start_matches('/')));
        }
    }
    found
}

fn url_decode(text: &str) -> String {
    super::super::prompt::percent_decode(text)
}

/// `builtin:zai-coding-plan` (configuration) and `account:zai-individual-coding-plan` (registry)
/// are two spellings of one provider.
pub(super) fn same_provider(one: &str, other: &str) -> bool {
    one == other || matches!((family(one), family(other)), (Some(a), Some(b)) if a == b)
}

fn family(provider: &str) -> Option<(&str, &str)> {
    let rest = provider.strip_prefix("builtin:").or_else(|| provider.strip_prefix("account:"))?;
    for plan in ["coding-plan", "start-plan"] {
        if let Some(family) = rest.strip_suffix(plan) {
            let family = family.strip_suffix("individual-").unwrap_or(family);
            return Some((family.trim_end_matches('-'), plan));
        }
    }
    Some((rest, ""))
}

/// A provider's id without its technical prefix.
pub(super) fn bare_provider(provider: &str) -> &str {
    ["builtin:", "account:", "custom:"]
        .iter()
        .find_map(|prefix| provider.strip_prefix(prefix))
        .unwrap_or(provider)
}
