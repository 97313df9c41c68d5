//! PURE. The state keys of a conversation topic: a patch replaces each key it names whole. Only the parts this bridge uses
//! are typed; the rest stays JSON. Read by the session machine.

use serde::Deserialize;
use serde_json::Value;

use super::wire::present;

/// The keys of a `state.updated` patch or of a snapshot; absent means unchanged.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatePatch {
    /// What runs in the foreground, and errors and retries.
    #[serde(deserialize_with = "lenient")]
    pub control: Option<Control>,
    /// What a text sent now would become.
    #[serde(deserialize_with = "lenient")]
    pub input_routing: Option<InputRouting>,
    /// The title.
    #[serde(deserialize_with = "lenient")]
    pub meta: Option<Meta>,
    /// Mode, model, and in a `workspace-config` topic the slash commands.
    #[serde(deserialize_with = "present")]
    pub config: Option<Value>,
    /// The slash commands, where a `workspace-config` topic says them beside `config`.
    #[serde(deserialize_with = "present")]
    pub slash_commands: Option<Value>,
    /// The context ring (`contextWindow`) and cumulative counters, as sent.
    #[serde(deserialize_with = "present")]
    pub usage: Option<Value>,
    /// Inputs that wait.
    #[serde(deserialize_with = "lenient")]
    pub queue: Option<Queue>,
    /// Open permissions and questions.
    #[serde(deserialize_with = "present")]
    pub pending_interactions: Option<Value>,
    /// Work that goes on beside the turn.
    #[serde(deserialize_with = "lenient")]
    pub background_works: Option<Vec<BackgroundWork>>,
    /// The children.
    #[serde(deserialize_with = "lenient")]
    pub subagents: Option<Subagents>,
    /// The goal; `null` when it was cleared.
    #[serde(deserialize_with = "present")]
    pub goal: Option<Value>,
    /// The todo list (`items`), as sent.
    #[serde(deserialize_with = "present")]
    pub plan: Option<Value>,
}

/// State key `control`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Control {
    /// `idle`, `running`, …
    pub phase: Option<String>,
    /// A stop would do something.
    pub can_stop: Option<bool>,
    /// How far a stop got.
    pub stop_state: Option<String>,
    /// The last error, or `null`.
    pub last_error: Option<Value>,
    /// The model request that is being tried again, or `null`.
    pub api_retry: Option<Value>,
}

/// State key `inputRouting`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InputRouting {
    /// `startNow`, `enqueue`, `guide`, `reject` or `choice`.
    pub mode: Option<String>,
}

/// State key `meta`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// The title.
    pub title: Option<String>,
    /// `default`, `first_input`, `generated` or `custom`.
    pub title_source: Option<String>,
}

/// State key `queue`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Queue {
    /// The inputs, first to run first.
    pub items: Vec<QueueItem>,
    /// They run by themselves when the turn ends.
    pub auto_drain: Option<bool>,
    /// Why they do not.
    pub pause_reason: Option<String>,
}

/// One input that waits.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueItem {
    /// Its id, by whichever of its names.
    #[serde(flatten, deserialize_with = "queue_item_id")]
    pub queue_item_id: Option<String>,
    /// The `commandId` it was sent with.
    pub source_command_id: Option<String>,
    /// What it says.
    pub text: Option<String>,
    /// What was asked for and what it got.
    pub delivery: Option<Delivery>,
    /// How far a guide got.
    pub steer: Option<SteerState>,
}

/// Builds name the id differently, and some by more than one name at once.
fn queue_item_id<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Names {
        queue_item_id: Option<String>,
        item_id: Option<String>,
        pending_input_id: Option<String>,
        id: Option<String>,
    }
    let names = Names::deserialize(from)?;
    Ok(names.queue_item_id.or(names.item_id).or(names.pending_input_id).or(names.id))
}

/// The lane an input was asked to take and the one it was given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Delivery {
    /// `startNow`, `queue` or `guide`.
    pub requested: Option<String>,
    /// The same words.
    pub admitted: Option<String>,
    /// Why they differ.
    pub fallback_reason_code: Option<String>,
}

/// How far a guide got.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SteerState {
    /// `notRequested`, `submitting`, `steering`, `guided` or `fellBack`.
    pub state: Option<String>,
    /// Why it fell back.
    pub reason_code: Option<String>,
}

/// One work beside the turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackgroundWork {
    /// Its id, which is the legacy channel's `taskId`.
    pub work_id: String,
    /// `bash`, `subagent` or `workflow`.
    pub kind: Option<String>,
    /// What it does.
    pub title: Option<String>,
    /// `running`, `resultPending`, `failed` or `cancelled`.
    pub status: Option<String>,
    /// It can be ended.
    pub cancellable: Option<bool>,
    /// The subagent's session.
    pub child_session_id: Option<String>,
}

/// State key `subagents`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subagents {
    /// Every child this session has had.
    pub child_session_ids: Vec<String>,
    /// Those that run.
    pub running: Vec<Subagent>,
    /// Those that ended, on builds that keep them here.
    pub ended: Option<EndedSubagents>,
}

/// Children that ended.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct EndedSubagents {
    /// The newest of them.
    pub items: Vec<Subagent>,
}

/// One child, also as `session/subagents` lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subagent {
    /// Its session.
    pub child_session_id: String,
    /// Its agent id, which is also what cancels it.
    pub agent_id: Option<String>,
    /// The call that started it.
    pub tool_call_id: Option<String>,
    /// Its type.
    pub subagent_type: Option<String>,
    /// What it is to do.
    pub title: Option<String>,
    /// `running`, `waiting`, `blocked`, `success`, `failed`, `cancelled` or `lost`.
    pub status: Option<String>,
}

/// Reads a key: `null` clears it, and a shape that is not known is passed over, so that one odd key costs no other.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned + Default,
{
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => Some(T::default()),
        value => serde_json::from_value(value).ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_queue_item_is_known_by_any_of_its_names_and_by_several() {
        for names in [
            json!({"queueItemId": "q"}),
            json!({"itemId": "q"}),
            json!({"pendingInputId": "q"}),
            json!({"id": "q", "pendingInputId": "q", "itemId": "q"}),
            json!({"queueItemId": "q", "id": "other", "unknown": {"x": 1}}),
        ] {
            let item: QueueItem = serde_json::from_value(names.clone()).unwrap();
            assert_eq!(item.queue_item_id.as_deref(), Some("q"), "{names}");
        }
        assert_eq!(serde_json::from_value::<QueueItem>(json!({})).unwrap(), QueueItem::default());
    }
}
