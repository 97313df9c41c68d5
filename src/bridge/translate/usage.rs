//! PURE. Usage in its three channels (engine protocol section 3 and 10): the ring (`usage_update`:
//! what the context holds now), the turn's tokens in the prompt's response, and the engine's own
//! enrichment under `_meta.zcode.contextUsage`. A cumulative number never poses as occupancy, and
//! a cost that is not known is left out. Called by [`super::Translator`] and the session machine.

use agent_client_protocol::v1::schema as acp;
use serde_json::{Map, Value, json};

/// What the context holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Tokens in the context.
    pub used: u64,
    /// Tokens it can hold, when the reading says so.
    pub size: Option<u64>,
    /// The engine's enrichment (`cache`, `breakdown`, …) for `_meta.zcode.contextUsage`.
    pub extra: Option<Value>,
}

/// Reads a snapshot. `used` is `runtime.contextUsage.used`, else `projection.contextUsed` (where 0
/// means that nothing was read yet); `size` is the runtime's, else the projection's.
pub fn reading(snapshot: &Value) -> Option<Reading> {
    let number = |pointer: &str| snapshot.pointer(pointer).and_then(Value::as_u64);
    let positive = |pointer: &str| number(pointer).filter(|n| *n > 0);
    let used =
        number("/runtime/contextUsage/used").or_else(|| positive("/projection/contextUsed"))?;
    let size =
        positive("/runtime/contextUsage/size").or_else(|| positive("/projection/contextWindow"));
    Some(Reading { used, size, extra: enrichment(snapshot.pointer("/runtime/contextUsage")) })
}

/// Reads V4's `usage` state.
pub fn reading_v4(usage: &Value) -> Option<Reading> {
    let window = usage.get("contextWindow").filter(|w| w.is_object())?;
    let number = |key: &str| window.get(key).and_then(Value::as_u64);
    Some(Reading {
        used: number("usedTokens")?,
        size: number("maxTokens").filter(|n| *n > 0),
        extra: enrichment(Some(window)),
    })
}

/// Reads a `session.updated` usage payload; `used` is its `usage.inputTokens`.
pub fn reading_event(used: u64, window: Option<u64>, raw: &Value) -> Reading {
    let mut extra = Map::new();
    for (from, to) in [("contextUsageBreakdown", "breakdown"), ("cacheHit", "cacheHit")] {
        if let Some(value) = raw.get(from).filter(|v| !v.is_null()) {
            extra.insert(to.into(), value.clone());
        }
    }
    Reading {
        used,
        size: window.filter(|n| *n > 0),
        extra: (!extra.is_empty()).then_some(Value::Object(extra)),
    }
}

/// Everything but the numbers that the ring has, and never a cost of zero.
fn enrichment(from: Option<&Value>) -> Option<Value> {
    let map: Map<String, Value> = from?
        .as_object()?
        .iter()
        .filter(|(key, value)| {
            !["used", "size", "usedTokens", "maxTokens", "cost"].contains(&key.as_str())
                && !value.is_null()
        })
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    (!map.is_empty()).then_some(Value::Object(map))
}

/// The ring of one session.
#[derive(Debug, Default)]
pub struct Meter {
    /// What the model list says about the model in use; outranks every reading's size.
    window: Option<u64>,
    last: Option<(u64, u64)>,
    read: Option<Reading>,
}

impl Meter {
    /// The model in use holds this much. Gives an update when there is a reading to redraw.
    pub fn set_window(&mut self, window: Option<u64>) -> Option<acp::SessionUpdate> {
        if self.window == window {
            return None;
        }
        self.window = window;
        let read = self.read.take()?;
        self.take(read)
    }

    /// A reading; the update when it says something new.
    pub fn take(&mut self, reading: Reading) -> Option<acp::SessionUpdate> {
        let size = self.window.or(reading.size).or(self.last.map(|(_, size)| size));
        let is_first = self.last.is_none();
        // Before the first model request the engine may say 0, which is no reading.
        if is_first && reading.used == 0 {
            return None;
        }
        let now = (reading.used, size?);
        let extra = reading.extra.clone();
        let news = self.last != Some(now)
            || (extra.is_some() && self.read.as_ref().map(|r| &r.extra) != Some(&extra));
        self.last = Some(now);
        self.read = Some(reading);
        news.then(|| {
            let mut meta = acp::Meta::new();
            if let Some(extra) = extra {
                meta.insert("zcode".into(), json!({ "contextUsage": extra }));
            }
            let update =
                acp::UsageUpdate::new(now.0, now.1).meta(Some(meta).filter(|m| !m.is_empty()));
            acp::SessionUpdate::UsageUpdate(update)
        })
    }

    /// The last ring again, for a client that loads the session.
    pub fn again(&self) -> Option<acp::SessionUpdate> {
        let (used, size) = self.last?;
        Some(acp::SessionUpdate::UsageUpdate(acp::UsageUpdate::new(used, size)))
    }

    /// `_meta.zcode.contextUsage` for the prompt's response.
    pub fn context_usage(&self) -> Option<Value> {
        let (used, size) = self.last?;
        let mut map = match self.read.as_ref().and_then(|r| r.extra.clone()) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        };
        map.insert("used".into(), json!(used));
        map.insert("size".into(), json!(size));
        Some(Value::Object(map))
    }
}

/// The turn's tokens: the difference of two `session/usage` replies. `before` may be missing for a
/// session's first turn.
pub fn turn_delta(before: Option<&Value>, after: &Value) -> Option<acp::Usage> {
    let number = |from: &Value, key: &str| from.get(key).and_then(Value::as_u64);
    let delta = |key: &str| {
        let end = number(after, key)?;
        let start = before.and_then(|b| number(b, key)).unwrap_or(0);
        Some(end.saturating_sub(start))
    };
    let input = delta("inputTokens")?;
    let output = delta("outputTokens").unwrap_or(0);
    let total = delta("totalTokens").unwrap_or(input + output);
    if total == 0 && input == 0 && output == 0 {
        return None;
    }
    let counts = Counts {
        total,
        input,
        output,
        thought: delta("reasoningTokens"),
        read: delta("cacheReadTokens"),
        write: delta("cacheCreationTokens").or_else(|| delta("cacheWriteTokens")),
    };
    Some(counts.to_acp())
}

/// The turn's tokens as `turn.completed` has them, when `session/usage` cannot be read.
pub fn from_turn(usage: &Value) -> Option<acp::Usage> {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    let input = number("inputTokens")?;
    let output = number("outputTokens").unwrap_or(0);
    let counts = Counts {
        total: number("totalTokens").unwrap_or(input + output),
        input,
        output,
        thought: number("reasoningTokens"),
        read: number("cacheReadTokens"),
        write: number("cacheWriteTokens").or_else(|| number("cacheCreationTokens")),
    };
    Some(counts.to_acp())
}

struct Counts {
    total: u64,
    input: u64,
    output: u64,
    thought: Option<u64>,
    read: Option<u64>,
    write: Option<u64>,
}

impl Counts {
    /// The engine's input tokens hold the cached ones; ACP's do not.
    fn to_acp(&self) -> acp::Usage {
        let cached = self.read.unwrap_or(0) + self.write.unwrap_or(0);
        acp::Usage::new(self.total, self.input.saturating_sub(cached), self.output)
            .thought_tokens(self.thought)
            .cached_read_tokens(self.read)
            .cached_write_tokens(self.write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(update: Option<acp::SessionUpdate>) -> Option<(u64, u64)> {
        let value = serde_json::to_value(update?).unwrap();
        assert_eq!(value["sessionUpdate"], "usage_update");
        assert_eq!(value.get("cost"), None);
        Some((value["used"].as_u64().unwrap(), value["size"].as_u64().unwrap()))
    }

    #[test]
    fn the_ring_takes_its_numbers_in_the_order_of_trust() {
        for (snapshot, want) in [
            (
                json!({"runtime": {"contextUsage": {"used": 612, "size": 200}}, "projection": {"contextUsed": 9, "contextWindow": 8}}),
                Some((612, Some(200))),
            ),
            (
                json!({"projection": {"contextUsed": 9, "contextWindow": 8, "totalTokenCount": 99}}),
                Some((9, Some(8))),
            ),
            (json!({"runtime": {"contextUsage": {"used": 0}}}), Some((0, None))),
            (json!({"projection": {"contextUsed": 0, "contextWindow": 8}}), None),
            (json!({"projection": {"totalTokenCount": 99}}), None),
            (json!({}), None),
        ] {
            assert_eq!(reading(&snapshot).map(|r| (r.used, r.size)), want, "{snapshot}");
        }
        let v4 = json!({"contextWindow": {"usedTokens": 5, "maxTokens": 7, "breakdown": [1]}});
        assert_eq!(
            reading_v4(&v4),
            Some(Reading { used: 5, size: Some(7), extra: Some(json!({"breakdown": [1]})) })
        );
        assert_eq!(reading_v4(&json!({"contextWindow": null})), None);
    }

    #[test]
    fn a_ring_is_sent_once_per_reading_and_redrawn_for_another_model() {
        let mut meter = Meter::default();
        let read = |used, size| Reading { used, size, extra: None };
        assert_eq!(ring(meter.take(read(0, Some(100)))), None, "nothing was read yet");
        assert_eq!(ring(meter.take(read(5, None))), None, "no size is known");
        assert_eq!(ring(meter.take(read(5, Some(100)))), Some((5, 100)));
        assert_eq!(ring(meter.take(read(5, Some(100)))), None);
        assert_eq!(ring(meter.set_window(Some(64))), Some((5, 64)));
        assert_eq!(ring(meter.set_window(Some(64))), None);
        assert_eq!(
            ring(meter.take(read(6, Some(999)))),
            Some((6, 64)),
            "the model list outranks the reading"
        );
        assert_eq!(ring(meter.take(read(0, None))), Some((0, 64)), "compacted away");
        assert_eq!(meter.context_usage(), Some(json!({"used": 0, "size": 64})));
        assert_eq!(ring(meter.again()), Some((0, 64)));
        assert_eq!(ring(Meter::default().again()), None);
    }

    #[test]
    fn the_engines_enrichment_rides_along() {
        let mut meter = Meter::default();
        let snapshot = json!({"runtime": {"contextUsage": {"used": 5, "size": 10, "cost": {"amount": 0}, "cache": {"hitRate": 0.5}}}});
        let update = serde_json::to_value(meter.take(reading(&snapshot).unwrap())).unwrap();
        assert_eq!(
            update["_meta"],
            json!({"zcode": {"contextUsage": {"cache": {"hitRate": 0.5}}}})
        );
        let event = reading_event(
            6,
            Some(0),
            &json!({"contextUsageBreakdown": [{"source": "x", "chars": 1}], "cacheHit": true}),
        );
        assert_eq!(
            (event.size, event.extra),
            (None, Some(json!({"breakdown": [{"source": "x", "chars": 1}], "cacheHit": true})))
        );
    }

    #[test]
    fn a_turns_tokens_are_the_difference_of_two_totals() {
        let at = |n: u64| {
            json!({"totalTokens": 1234 * n, "inputTokens": 1100 * n, "outputTokens": 134 * n,
            "reasoningTokens": 45 * n, "cacheReadTokens": 800 * n, "cacheCreationTokens": 90 * n})
        };
        let want = json!({"totalTokens": 1234, "inputTokens": 210, "outputTokens": 134, "thoughtTokens": 45, "cachedReadTokens": 800, "cachedWriteTokens": 90});
        for (before, after) in [(None, at(1)), (Some(at(1)), at(2)), (Some(at(2)), at(3))] {
            let got = turn_delta(before.as_ref(), &after);
            assert_eq!(serde_json::to_value(got).unwrap(), want);
        }
        assert_eq!(turn_delta(Some(&at(1)), &at(1)), None, "no model request");
        assert_eq!(turn_delta(None, &json!({})), None);
        let turn = json!({"inputTokens": 1100, "outputTokens": 134, "reasoningTokens": 45, "cacheReadTokens": 800, "cacheWriteTokens": 90});
        assert_eq!(serde_json::to_value(from_turn(&turn)).unwrap(), want);
        assert_eq!(from_turn(&json!({})), None);
    }
}
