//! PURE. To-do lists as ACP plans: the engine's `todos`, `todoGroups` and V4 `plan` state. A plan is
//! sent whole, and only when it changed (bridge behaviour 3.9). Called by [`super::Translator`].

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

/// The last plan that was sent.
#[derive(Debug, Default)]
pub struct Baseline {
    last: Option<Vec<acp::PlanEntry>>,
}

impl Baseline {
    /// The update for a list that differs from the last one. A first, empty list is no news.
    pub fn changed(&mut self, entries: Vec<acp::PlanEntry>) -> Option<acp::SessionUpdate> {
        let same = match &self.last {
            Some(last) => *last == entries,
            None => entries.is_empty(),
        };
        if same {
            return None;
        }
        Some(self.always(entries))
    }

    /// A list that says nothing of priorities (V4's) keeps those that are known.
    pub fn with_known_priorities(
        &self,
        source: &Value,
        mut entries: Vec<acp::PlanEntry>,
    ) -> Vec<acp::PlanEntry> {
        let items = source.get("items").and_then(Value::as_array);
        let silent = items.is_some_and(|it| it.iter().all(|item| item.get("priority").is_none()));
        let known = self.last.as_deref().filter(|_| silent).unwrap_or_default();
        for entry in &mut entries {
            if let Some(old) = known.iter().find(|old| old.content == entry.content) {
                entry.priority = old.priority.clone();
            }
        }
        entries
    }

    /// The update whatever was sent before: a client that loads a session may show an old plan.
    pub fn always(&mut self, entries: Vec<acp::PlanEntry>) -> acp::SessionUpdate {
        self.last = Some(entries.clone());
        acp::SessionUpdate::Plan(acp::Plan::new(entries))
    }
}

/// The entries of a snapshot (`todos`, else `todoGroups`), of V4's `plan` state (`items`), or of a
/// bare list.
pub fn entries(source: &Value) -> Vec<acp::PlanEntry> {
    let list = |key: &str| source.get(key).and_then(Value::as_array).filter(|l| !l.is_empty());
    if let Some(found) = source.as_array().or_else(|| list("items")).or_else(|| list("todos")) {
        return found.iter().filter_map(entry).collect();
    }
    let groups = list("todoGroups").map(Vec::as_slice).unwrap_or_default();
    let of_group = |group: &Value| {
        let todos = group.get("entries").or_else(|| group.get("todos"));
        let todos = todos.and_then(Value::as_array).cloned().unwrap_or_default();
        todos.iter().filter_map(entry).collect::<Vec<_>>()
    };
    groups.iter().flat_map(of_group).collect()
}

fn entry(from: &Value) -> Option<acp::PlanEntry> {
    let text = |key: &str| from.get(key).and_then(Value::as_str);
    let content = text("content").or_else(|| text("title"))?;
    let priority = match text("priority") {
        Some("high") => acp::PlanEntryPriority::High,
        Some("low") => acp::PlanEntryPriority::Low,
        _ => acp::PlanEntryPriority::Medium,
    };
    let status = match text("status") {
        Some("completed") => acp::PlanEntryStatus::Completed,
        Some("in_progress" | "inProgress") => acp::PlanEntryStatus::InProgress,
        _ => acp::PlanEntryStatus::Pending,
    };
    Some(acp::PlanEntry::new(content, priority, status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(source: &Value) -> Value {
        serde_json::to_value(entries(source)).unwrap()
    }

    #[test]
    fn a_list_without_priorities_keeps_the_known_ones() {
        let mut baseline = Baseline::default();
        let todos =
            entries(&json!({"todos": [{"content": "A", "status": "pending", "priority": "high"}]}));
        assert!(baseline.changed(todos).is_some());
        let rows = json!({"items": [{"content": "A", "status": "pending"}, {"content": "B"}]});
        let kept = baseline.with_known_priorities(&rows, entries(&rows));
        let priorities: Vec<_> = kept.iter().map(|it| it.priority.clone()).collect();
        assert_eq!(priorities, [acp::PlanEntryPriority::High, acp::PlanEntryPriority::Medium]);
        let same = json!({"items": [{"content": "A", "status": "pending"}]});
        let same = baseline.with_known_priorities(&same, entries(&same));
        assert!(baseline.changed(same).is_none());
    }

    #[test]
    fn every_source_of_todos_becomes_entries() {
        let want = json!([{"content": "a", "priority": "high", "status": "in_progress"}, {"content": "b", "priority": "medium", "status": "pending"}]);
        let todos = json!([{"content": "a", "priority": "high", "status": "in_progress"}, {"content": "b", "priority": "?", "status": "?"}, {"x": 1}]);
        for source in [
            todos.clone(),
            json!({"todos": todos}),
            json!({"todos": [], "todoGroups": [{"entries": [todos[0]]}, {"todos": [todos[1]]}, {}]}),
            json!({"items": [{"id": "1", "content": "a", "priority": "high", "status": "inProgress"}, {"content": "b"}]}),
        ] {
            assert_eq!(shown(&source), want, "{source}");
        }
        for source in [json!(null), json!({}), json!({"todos": 1, "todoGroups": {}})] {
            assert_eq!(shown(&source), json!([]));
        }
    }

    #[test]
    fn a_plan_is_sent_when_it_changed() {
        let mut baseline = Baseline::default();
        let list = |status: &str| entries(&json!([{"content": "a", "status": status}]));
        assert!(baseline.changed(Vec::new()).is_none(), "no plan yet");
        assert!(baseline.changed(list("pending")).is_some());
        assert!(baseline.changed(list("pending")).is_none());
        assert!(baseline.changed(list("completed")).is_some());
        assert!(baseline.changed(Vec::new()).is_some(), "emptied");
        assert!(baseline.changed(Vec::new()).is_none());
        let update = serde_json::to_value(baseline.always(list("pending"))).unwrap();
        assert_eq!(update["sessionUpdate"], "plan");
    }
}
