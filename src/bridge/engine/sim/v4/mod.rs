//! PURE. The V4 channel's wire side (section 8): a topic's rows and state keys, the deltas since the
//! last flush, and the frames that carry them (complete, in fragments, or the old shape).

pub(super) mod rows;

use super::wire::Wire;
use base64::Engine as _;
use serde_json::{Map, Value, json};

/// Rows in a snapshot's window.
const WINDOW: usize = 60;
/// Milliseconds between two flushes.
const FLUSH_MS: u64 = 30;
/// Deltas (in bytes of text) that are flushed without waiting.
const FLUSH_BYTES: usize = 16 * 1024;
/// Deltas held back for a saturated host; beyond them it gets a snapshot.
const HELD_BYTES: usize = 4 * 1024 * 1024;

/// Who listens to a topic.
#[derive(Debug, Clone)]
struct Subscription {
    id: String,
    connection: String,
}

/// One topic.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) epoch: String,
    /// Rows, by `rowId`, oldest first.
    rows: Vec<Value>,
    next_row: u64,
    state: Map<String, Value>,
    seq: u64,
    subscription: Option<Subscription>,
    ordinal: u64,
    sent_seq: u64,
    deltas: Vec<Value>,
    held_bytes: usize,
    flush_at: Option<u64>,
    /// The next frame is a snapshot of this delivery kind.
    snapshot_due: Option<&'static str>,
    held: bool,
}

impl Topic {
    pub(super) fn new(name: String, epoch: String) -> Self {
        Self {
            name,
            epoch,
            rows: Vec::new(),
            next_row: 1,
            state: Map::new(),
            seq: 0,
            subscription: None,
            ordinal: 0,
            sent_seq: 0,
            deltas: Vec::new(),
            held_bytes: 0,
            flush_at: None,
            snapshot_due: None,
            held: false,
        }
    }

    /// Adds a row of that kind and returns its id.
    pub(super) fn append(
        &mut self,
        wire_now: u64,
        clock: u64,
        kind: &str,
        turn_id: &str,
        rest: Value,
    ) -> u64 {
        let row_id = self.next_row;
        self.next_row += 1;
        let mut row = Map::new();
        row.insert("rowId".to_owned(), Value::from(row_id));
        row.insert("kind".to_owned(), Value::from(kind));
        row.insert("turnId".to_owned(), Value::from(turn_id));
        row.insert("createdAt".to_owned(), Value::from(clock));
        if let Value::Object(rest) = rest {
            row.extend(rest.into_iter().filter(|(_, v)| !v.is_null()));
        }
        let row = Value::Object(row);
        self.rows.push(row.clone());
        self.change(wire_now, 64, json!({"op": "row.appended", "row": row}));
        row_id
    }

    /// Appends to a text of a row: `text`, `inputText`, `output.text` or `summaryText`.
    pub(super) fn append_text(&mut self, wire_now: u64, row_id: u64, path: &str, append: &str) {
        let Some(row) = self.row_mut(row_id) else { return };
        let mut at = row;
        for key in path.split('.') {
            if at.is_null() {
                *at = json!({});
            }
            let Some(map) = at.as_object_mut() else { return };
            at = map.entry(key).or_insert(Value::Null);
        }
        match at {
            Value::String(text) => text.push_str(append),
            other => *other = Value::from(append),
        }
        if self.subscription.is_some()
            && self.snapshot_due.is_none()
            && let Some(Value::String(text)) =
                self.deltas.last_mut().and_then(|d| same_text(d, row_id, path))
        {
            text.push_str(append);
            self.held_bytes += append.len();
            self.limit_held();
            return;
        }
        self.change(
            wire_now,
            append.len(),
            json!({"op": "row.delta", "rowId": row_id, "path": path, "append": append}),
        );
    }

    /// Sets keys of a row and sends it whole.
    pub(super) fn set(&mut self, wire_now: u64, row_id: u64, keys: Value) {
        let Some(Value::Object(row)) = self.row_mut(row_id) else { return };
        if let Value::Object(keys) = keys {
            for (key, value) in keys {
                row.insert(key, value);
            }
        }
        let whole = Value::Object(row.clone());
        let size = 256;
        self.change(wire_now, size, json!({"op": "row.upserted", "row": whole}));
    }

    /// Removes the newest `count` rows.
    pub(super) fn remove_newest(&mut self, wire_now: u64, count: usize) {
        let kept = self.rows.len().saturating_sub(count);
        let gone = self.rows.split_off(kept);
        if let Some(first) = gone.first().map(id_of) {
            self.change(wire_now, 64, json!({"op": "row.removed", "fromRowId": first}));
        }
    }

    /// Whether the row is there.
    pub(super) fn has_row(&self, row_id: u64) -> bool {
        self.rows.binary_search_by_key(&row_id, id_of).is_ok()
    }

    /// Replaces a state key.
    pub(super) fn set_state(&mut self, wire_now: u64, key: &str, value: &Value) {
        if self.state.get(key) == Some(value) {
            return;
        }
        self.state.insert(key.to_owned(), value.clone());
        self.change(wire_now, 64, json!({"op": "state.updated", "patch": {key: value}}));
    }

    fn row_mut(&mut self, row_id: u64) -> Option<&mut Value> {
        let at = self.rows.binary_search_by_key(&row_id, id_of).ok()?;
        self.rows.get_mut(at)
    }

    fn change(&mut self, wire_now: u64, bytes: usize, delta: Value) {
        self.seq += 1;
        if self.subscription.is_none() || self.snapshot_due.is_some() {
            return;
        }
        self.held_bytes += bytes;
        self.deltas.push(delta);
        self.limit_held();
        self.flush_at.get_or_insert(wire_now + FLUSH_MS);
    }

    /// Gives up deltas of which too many are held back: a snapshot will do.
    fn limit_held(&mut self) {
        if self.held_bytes > HELD_BYTES {
            self.snapshot_due = Some("recovery");
            self.deltas = Vec::new();
        }
    }

    /// Begins a subscription; the first frame is due at once. Returns its id and how it begins.
    pub(super) fn subscribe(
        &mut self,
        wire: &mut Wire,
        connection: &str,
        base: Option<&Value>,
    ) -> (String, &'static str) {
        let id = wire.ids.named("sub");
        self.subscription =
            Some(Subscription { id: id.clone(), connection: connection.to_owned() });
        self.ordinal = 0;
        let mode = self.restart(wire.now, base, "initial");
        (id, mode)
    }

    /// Starts the subscription over: from a base that is still true, else from a snapshot.
    pub(super) fn restart(
        &mut self,
        now: u64,
        base: Option<&Value>,
        kind: &'static str,
    ) -> &'static str {
        self.deltas = Vec::new();
        self.held_bytes = 0;
        self.flush_at = Some(now);
        let current = base.is_some_and(|b| {
            b.get("logEpoch").and_then(Value::as_str) == Some(&self.epoch)
                && b.get("seq").and_then(Value::as_u64) == Some(self.seq)
        });
        self.sent_seq = self.seq;
        self.snapshot_due = if current { None } else { Some(kind) };
        if current { "resume" } else { "snapshot" }
    }

    /// Whether this is the topic's subscription.
    pub(super) fn is_subscribed(&self, id: &str) -> bool {
        self.subscription.as_ref().is_some_and(|s| s.id == id)
    }

    /// Ends the subscription.
    pub(super) fn unsubscribe(&mut self) {
        self.subscription = None;
        self.deltas = Vec::new();
        self.flush_at = None;
        self.snapshot_due = None;
    }

    /// Holds frames back, or goes on.
    pub(super) fn hold(&mut self, connection: &str, held: bool) {
        if self.subscription.as_ref().is_some_and(|s| s.connection == connection) {
            self.held = held;
        }
    }

    /// When a frame is due.
    pub(super) fn due(&self, paced: bool) -> Option<u64> {
        let at = self.flush_at.filter(|_| !self.held && self.subscription.is_some())?;
        let early = self.held_bytes >= FLUSH_BYTES || !paced || self.snapshot_due.is_some();
        Some(if early { at.saturating_sub(FLUSH_MS) } else { at })
    }

    /// Whether so much is held that a frame should go now.
    pub(super) fn is_large(&self) -> bool {
        self.held_bytes >= FLUSH_BYTES || self.snapshot_due.is_some()
    }

    /// Sends what is due.
    pub(super) fn flush(&mut self, wire: &mut Wire) {
        if self.held || self.flush_at.take().is_none() {
            return;
        }
        let Some(subscription) = self.subscription.clone() else { return };
        let (from, payload, kind) = match self.snapshot_due.take() {
            Some(kind) => {
                (self.seq, json!({"kind": "snapshot", "snapshot": self.snapshot()}), kind)
            }
            None if self.deltas.is_empty() => return,
            None => {
                let deltas = std::mem::take(&mut self.deltas);
                (self.sent_seq, json!({"kind": "deltas", "deltas": deltas}), "online")
            }
        };
        self.held_bytes = 0;
        self.deltas = Vec::new();
        self.ordinal += 1;
        let frame = json!({
            "topic": self.name,
            "subscriptionId": subscription.id,
            "fromSeq": from,
            "toSeq": self.seq,
            "sentAt": wire.clock(),
            "payload": payload,
        });
        self.sent_seq = self.seq;
        if (wire.loses_frame() && kind == "online") || wire.frames_are_over() {
            return;
        }
        self.send(wire, &subscription, kind, frame);
    }

    fn send(&self, wire: &mut Wire, subscription: &Subscription, delivery: &str, frame: Value) {
        let method = "v4/conversation/frame";
        if wire.options.old_frames {
            wire.notify(method, &json!({"topic": self.name, "frame": frame}));
            return;
        }
        let envelope = json!({
            "wireVersion": 3,
            "kind": "complete",
            "deliveryKind": delivery,
            "logicalFrameId": format!("frame_{}_{}", subscription.id, self.ordinal),
            "logicalFrameOrdinal": self.ordinal,
            "topic": self.name,
            "subscriptionId": subscription.id,
        });
        let Value::Object(mut envelope) = envelope else { return };
        let text = frame.to_string();
        let max = wire.options.frame_max;
        if text.len() <= max {
            envelope.insert("frame".to_owned(), frame);
            wire.notify(method, &Value::Object(envelope));
            return;
        }
        let pieces = fragments(text.as_bytes(), max, wire.spoils_fragments());
        let count = pieces.len();
        for (index, mut piece) in pieces.into_iter().enumerate() {
            let mut params = envelope.clone();
            params.insert("kind".to_owned(), Value::from("fragment"));
            params.insert("fragmentIndex".to_owned(), Value::from(index));
            params.insert("fragmentCount".to_owned(), Value::from(count));
            params.append(&mut piece);
            wire.notify(method, &Value::Object(params));
        }
    }

    fn snapshot(&self) -> Value {
        let skip = self.rows.len().saturating_sub(WINDOW);
        let mut out = Map::new();
        out.insert("logEpoch".to_owned(), Value::from(self.epoch.as_str()));
        out.insert(
            "rows".to_owned(),
            json!({"window": self.rows.iter().skip(skip).collect::<Vec<_>>(), "totalCount": self.rows.len(), "hasMore": skip > 0}),
        );
        out.extend(self.state.clone());
        Value::Object(out)
    }

    /// Older rows, for `v4/conversation/rowsRange`.
    pub(super) fn range(&self, before: Option<u64>, limit: usize, revision: u64) -> Value {
        let end =
            before.map_or(self.rows.len(), |id| self.rows.partition_point(|row| id_of(row) < id));
        let start = end.saturating_sub(limit);
        let rows: Vec<_> = self.rows.iter().take(end).skip(start).collect();
        json!({"rows": rows, "atSeq": self.seq, "atRevision": revision, "atLogEpoch": self.epoch, "hasMore": start > 0})
    }
}

fn id_of(row: &Value) -> u64 {
    row.get("rowId").and_then(Value::as_u64).unwrap_or_default()
}

/// Returns the text of a delta when it goes on at the same place.
fn same_text<'a>(delta: &'a mut Value, row_id: u64, path: &str) -> Option<&'a mut Value> {
    let same = delta.get("rowId").and_then(Value::as_u64) == Some(row_id)
        && delta.get("path").and_then(Value::as_str) == Some(path);
    if same { delta.get_mut("append") } else { None }
}

/// A frame's bytes in pieces of at most `max`, with what each fragment says of the whole; that is not true of `spoilt` ones.
fn fragments(bytes: &[u8], max: usize, spoilt: bool) -> Vec<Map<String, Value>> {
    let crc = crc32fast::hash(bytes);
    let mut bytes = bytes.to_vec();
    let middle = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(middle).filter(|_| spoilt) {
        *byte ^= 1;
    }
    // At most 1024 fragments make a frame.
    let size = max.max(bytes.len().div_ceil(1024)).max(1);
    bytes
        .chunks(size)
        .map(|chunk| {
            let mut map = Map::new();
            map.insert("logicalBytes".to_owned(), Value::from(bytes.len()));
            map.insert("checksum".to_owned(), json!({"algorithm": "crc32", "value": crc}));
            let data = base64::engine::general_purpose::STANDARD.encode(chunk);
            map.insert("dataBase64".to_owned(), Value::from(data));
            map
        })
        .collect()
}

#[cfg(test)]
mod tests;
