//! PURE. The shapes of V4 frames as they stand on the wire, read tolerantly: every field is optional, unknown operations,
//! kinds and keys are passed over. Used by [`super::topic`] alone.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A row's id: it grows along the topic. A number on every build seen; text is accepted too.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RowId {
    /// The usual form.
    Number(u64),
    /// What another build may use.
    Text(Box<str>),
}

impl std::fmt::Display for RowId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(id) => id.fmt(f),
            Self::Text(id) => id.fmt(f),
        }
    }
}

impl Default for RowId {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// A JSON text that is borrowed from the line whenever it holds no escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Text<'_> {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'de> Visitor<'de> for Borrowing {
            type Value = Cow<'de, str>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
            fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text))
            }
        }
        deserializer.deserialize_str(Borrowing).map(Text)
    }
}

/// Params of `v4/conversation/frame`: the current shapes and the older one (`{topic, frame}`).
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FrameParams<'a> {
    /// `complete` or `fragment`; absent in the older shape.
    #[serde(borrow)]
    pub kind: Option<Text<'a>>,
    /// `initial`, `online` or `recovery`.
    #[serde(borrow)]
    pub delivery_kind: Option<Text<'a>>,
    /// What the fragments of one frame share.
    #[serde(borrow)]
    pub logical_frame_id: Option<Text<'a>>,
    /// The topic.
    #[serde(borrow)]
    pub topic: Option<Text<'a>>,
    /// The subscription it was sent for.
    #[serde(borrow)]
    pub subscription_id: Option<Text<'a>>,
    /// The frame, unless this is a fragment.
    #[serde(borrow)]
    pub frame: Option<&'a RawValue>,
    /// Place of this fragment, from 0.
    pub fragment_index: Option<u64>,
    /// How many there are.
    pub fragment_count: Option<u64>,
    /// Bytes of the whole frame.
    pub logical_bytes: Option<u64>,
    /// `{algorithm: "crc32", value}`.
    pub checksum: Option<Checksum>,
    /// This fragment's bytes.
    #[serde(borrow)]
    pub data_base64: Option<Text<'a>>,
}

/// A fragment's check sum.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Checksum {
    /// `crc32` is the only one known.
    pub algorithm: Option<String>,
    /// An integer, or its hexadecimal text.
    pub value: Value,
}

/// One logical frame.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Frame<'a> {
    /// The subscription it belongs to.
    #[serde(borrow)]
    pub subscription_id: Option<Text<'a>>,
    /// It continues after this sequence number …
    pub from_seq: Option<u64>,
    /// … up to and with this one.
    pub to_seq: Option<u64>,
    /// What it carries.
    #[serde(borrow)]
    pub payload: Option<Payload<'a>>,
}

/// What a frame carries; told apart by the parts that are there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Payload<'a> {
    /// `snapshot` or `deltas`.
    #[serde(borrow)]
    pub kind: Option<Text<'a>>,
    /// The snapshot, as text: it is read once for its rows and once for its state keys.
    #[serde(borrow)]
    pub snapshot: Option<&'a RawValue>,
    /// The operations, in order.
    #[serde(borrow, deserialize_with = "lenient_ops")]
    pub deltas: Vec<Op<'a>>,
}

/// The rows of a snapshot.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotRows {
    /// The rows themselves.
    pub rows: RowWindow,
    /// The epoch of the log that `seq` counts in.
    pub log_epoch: Option<String>,
    /// The sequence number this is a picture of.
    pub seq: Option<u64>,
}

/// The tail of a topic's rows.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RowWindow {
    /// The newest rows, oldest first.
    #[serde(deserialize_with = "lenient_rows")]
    pub window: Vec<Row>,
    /// There are older ones.
    pub has_more: bool,
}

/// Result of `v4/conversation/rowsRange`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RowsRange {
    /// Older rows, oldest first.
    #[serde(deserialize_with = "lenient_rows")]
    pub rows: Vec<Row>,
    /// There are still older ones.
    pub has_more: bool,
    /// The sequence number they were read at.
    pub at_seq: Option<u64>,
}

/// One operation of a deltas payload.
#[derive(Debug, PartialEq)]
pub enum Op<'a> {
    /// `row.delta`: the hot path, read without an intermediate value.
    Delta {
        /// The row that grows.
        row_id: RowId,
        /// `text`, `inputText`, `output.text` or `summaryText`.
        path: Cow<'a, str>,
        /// The piece.
        append: Cow<'a, str>,
    },
    /// `row.appended` and `row.upserted`: a whole row.
    Row(Box<Row>),
    /// `row.removed`: that row and all later ones.
    Removed(RowId),
    /// `state.updated`: each key replaced whole.
    State(Box<super::state::StatePatch>),
    /// Anything else.
    Unknown,
}

impl<'de: 'a, 'a> Deserialize<'de> for Op<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Flat<'b> {
            #[serde(borrow)]
            op: Option<Text<'b>>,
            row_id: Option<RowId>,
            #[serde(borrow)]
            path: Option<Text<'b>>,
            #[serde(borrow)]
            append: Option<Text<'b>>,
            row: Option<Box<Row>>,
            from_row_id: Option<RowId>,
            patch: Option<Box<super::state::StatePatch>>,
        }
        let flat = Flat::deserialize(deserializer)?;
        Ok(
            match (
                flat.op.as_ref().map_or("", |it| it.as_str()),
                flat.row_id,
                flat.row,
                flat.from_row_id,
                flat.patch,
            ) {
                ("row.delta", Some(row_id), ..) => Self::Delta {
                    row_id,
                    path: flat.path.map_or(Cow::Borrowed("text"), |it| it.0),
                    append: flat.append.unwrap_or_default().0,
                },
                ("row.appended" | "row.upserted", _, Some(row), ..) => Self::Row(row),
                ("row.removed", row_id, _, from, _) => {
                    from.or(row_id).map_or(Self::Unknown, Self::Removed)
                }
                ("state.updated", .., Some(patch)) => Self::State(patch),
                _ => Self::Unknown,
            },
        )
    }
}

/// A row of any kind. Which fields are there depends on `kind`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct Row {
    /// Its id.
    pub row_id: RowId,
    /// The turn it stands in.
    pub turn_id: Option<String>,
    /// `turnHeader`, `userInput`, `assistantText`, `reasoning`, `toolCall`, `subagent`, `timelineMarker`, …
    pub kind: String,
    /// Text of the text kinds.
    pub text: Option<String>,
    /// State of `turnHeader`, `assistantText` and `reasoning`.
    pub state: Option<String>,
    /// `realUser`, `backgroundResult`, `goalContinuation`, …
    pub origin: Option<String>,
    /// A user input that was taken into a running turn.
    pub guided: Option<bool>,
    /// The `commandId` a user input came with.
    pub source_command_id: Option<String>,
    /// The assistant message, as some builds name it.
    pub assistant_response_id: Option<String>,
    /// The assistant message, as others do.
    pub entity_id: Option<String>,
    /// The tool call, by whichever spelling.
    pub tool_call_id: Option<String>,
    // The other spellings have fields of their own, empty once the row is read: an alias would
    // refuse a row that has two of them.
    #[serde(rename = "toolCallID")]
    tool_call_id_too: Option<String>,
    call_id: Option<String>,
    #[serde(rename = "callID")]
    call_id_too: Option<String>,
    /// The tool.
    pub tool_name: Option<String>,
    /// State of `toolCall` and `subagent`.
    pub status: Option<String>,
    /// A tool's input as it is written (JSON text).
    pub input_text: Option<String>,
    /// A tool's whole input.
    pub input: Option<Value>,
    /// A tool's output: `{text, …}`.
    pub output: Option<Value>,
    /// Why it failed.
    pub error: Option<Value>,
    /// A preview of the output of tools that have no text.
    pub output_preview: Option<Value>,
    /// The call goes on in the background.
    pub backgrounded: Option<bool>,
    /// The background work it became.
    pub work_id: Option<String>,
    /// The call that started a subagent, or that this one runs inside.
    pub parent_tool_call_id: Option<String>,
    /// A subagent's type.
    pub subagent_type: Option<String>,
    /// What a subagent has to say so far.
    pub summary_text: Option<String>,
    /// A subagent's session.
    pub child_session_id: Option<String>,
    /// Title of a subagent, a hook or an artifact.
    pub title: Option<String>,
    /// What a hook or an artifact is called on builds that give it no title.
    pub name: Option<String>,
    /// Where an artifact lies: a file …
    pub path: Option<String>,
    /// … or an address.
    pub url: Option<String>,
    /// What a hook has to say.
    pub message: Option<String>,
    /// Of a `timelineMarker`: `{type, …}`.
    pub marker: Option<Value>,
    /// Milliseconds since the epoch, of a `turnHeader`.
    pub started_at: Option<u64>,
    /// Milliseconds since the epoch, of a `turnHeader`.
    pub ended_at: Option<u64>,
    /// What the turn changed, of a `turnHeader`.
    pub file_changes: Option<Value>,
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The derived function, which `remote` makes an inherent one.
        let mut row = Self::deserialize(deserializer)?;
        let others = [row.call_id.take(), row.call_id_too.take(), row.tool_call_id_too.take()];
        row.tool_call_id = row.tool_call_id.or_else(|| others.into_iter().flatten().next());
        Ok(row)
    }
}

impl Row {
    /// True for a turn that runs and for a row that is being written.
    pub fn is_running(&self) -> bool {
        let state = self.state.as_deref().or(self.status.as_deref());
        self.kind != "subagent"
            && matches!(state, Some("running" | "streaming" | "inputStreaming" | "pendingApproval"))
    }

    /// Returns the text of a tool's output, if it has one.
    pub fn output_text(&self) -> Option<&str> {
        let output = self.output.as_ref()?;
        output.as_str().or_else(|| output.get("text")?.as_str())
    }

    /// Returns the id of the assistant message a text row belongs to.
    pub fn message_id(&self) -> Option<&str> {
        self.assistant_response_id.as_deref().or(self.entity_id.as_deref())
    }
}

/// Reads operations one by one; one that does not parse becomes [`Op::Unknown`] and the rest is kept.
fn lenient_ops<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Op<'de>>, D::Error> {
    let raw: Vec<&'de RawValue> = Vec::deserialize(deserializer)?;
    Ok(raw.into_iter().map(|it| serde_json::from_str(it.get()).unwrap_or(Op::Unknown)).collect())
}

/// Reads rows one by one and leaves out what is not a row.
fn lenient_rows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Row>, D::Error> {
    let raw: Vec<Box<RawValue>> = Vec::deserialize(deserializer)?;
    Ok(raw.into_iter().filter_map(|it| serde_json::from_str(it.get()).ok()).collect())
}

/// Keeps `null` as a value: a key that is there with `null` was cleared, a key that is not there did not change.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
