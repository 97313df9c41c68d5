//! PURE. Message and thought text: `agent_message_chunk` and `agent_thought_chunk` with message
//! ids, each byte sent once although it can come by several paths (engine protocol section 4:
//! `model.streaming`, `part.delta`, V4 rows, the stored message). Called by [`super::Translator`].

use std::collections::{HashMap, VecDeque};

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

use super::{Output, Target, tool};

/// How many messages of a turn are remembered. A stored message older than this is never read again.
const REMEMBERED: usize = 1024;
/// How many of earlier turns: nothing more is to come of them.
const EARLIER: usize = 64;

/// Which of the two texts of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// The answer.
    Message,
    /// The model's reasoning.
    Thought,
}

/// The path a piece of text came by. Each path repeats the whole text of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `model.streaming`.
    Stream,
    /// `part.delta`.
    Part,
    /// Rows of the V4 channel.
    Rows,
}

/// What is known about the message a piece belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Address<'a> {
    message: Option<&'a str>,
    turn: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// A message id when the engine gave one, and the turn to fall back to.
    pub fn new(message: Option<&'a str>, turn: Option<&'a str>) -> Self {
        Self { message: message.filter(|m| !m.is_empty()), turn: turn.filter(|t| !t.is_empty()) }
    }
}

/// Bytes seen per path, and sent, of one text.
#[derive(Debug, Default, Clone, Copy)]
struct Track {
    stream: usize,
    part: usize,
    rows: usize,
    sent: usize,
}

impl Track {
    /// The part of `delta` that no path has delivered yet.
    fn fresh<'a>(&mut self, source: Source, delta: &'a str) -> &'a str {
        let seen = match source {
            Source::Stream => &mut self.stream,
            Source::Part => &mut self.part,
            Source::Rows => &mut self.rows,
        };
        let start = *seen;
        *seen += delta.len();
        let skip = self.sent.saturating_sub(start).min(delta.len());
        let fresh = tail_from(delta, skip);
        self.sent = self.sent.max(*seen);
        fresh
    }
}

/// `text` from byte `at`, moved on to the next character boundary.
fn tail_from(text: &str, at: usize) -> &str {
    let at = text.ceil_char_boundary(at);
    text.get(at..).unwrap_or_default()
}

#[derive(Debug)]
struct Entry {
    id: acp::MessageId,
    thought_id: acp::MessageId,
    message: Track,
    thought: Track,
}

/// What was sent of the latest messages.
#[derive(Debug, Default)]
pub struct Texts {
    entries: HashMap<String, Entry>,
    order: VecDeque<String>,
    /// Counts the pieces of a turn whose engine names no message, so that text after a tool call
    /// is a new message.
    segment: u32,
    turn_sent: bool,
    /// The path that delivered text without a message id in this turn: the others are ignored,
    /// because nothing ties them together.
    unnamed: Option<Source>,
}

impl Texts {
    /// A turn begins.
    pub fn begin_turn(&mut self) {
        self.segment = 0;
        self.turn_sent = false;
        self.unnamed = None;
        let surplus = self.order.len().saturating_sub(EARLIER);
        for old in self.order.drain(..surplus) {
            self.entries.remove(&old);
        }
    }

    /// Something else was shown: unnamed text after it is another message.
    pub fn break_message(&mut self) {
        if self.unnamed.is_some() {
            self.segment += 1;
        }
    }

    /// True when message text was sent in this turn.
    pub fn turn_has_text(&self) -> bool {
        self.turn_sent
    }

    /// One piece.
    pub fn delta(
        &mut self,
        address: Address<'_>,
        kind: TextKind,
        source: Source,
        delta: &str,
        target: &Target,
        out: &mut Output,
    ) {
        if delta.is_empty() {
            return;
        }
        match (self.unnamed, address.message) {
            (Some(owner), _) if owner != source => return,
            (None, None) => self.unnamed = Some(source),
            _ => {}
        }
        let fallback;
        let key = if let Some(id) = address.message {
            id
        } else {
            fallback = format!("turn_{}_{}", address.turn.unwrap_or("0"), self.segment);
            &fallback
        };
        let entry = entry(&mut self.entries, &mut self.order, key);
        let fresh = match kind {
            TextKind::Message => entry.message.fresh(source, delta),
            TextKind::Thought => entry.thought.fresh(source, delta),
        };
        if fresh.is_empty() {
            return;
        }
        self.turn_sent |= kind == TextKind::Message;
        out.push(chunk(entry, kind, fresh, target));
    }

    /// A whole stored message: sends what is missing of its text and reasoning.
    pub fn stored(&mut self, message: &Value, target: &Target, out: &mut Output) {
        let info = message.get("info").unwrap_or(&Value::Null);
        if info.get("role").and_then(Value::as_str) != Some("assistant") || self.unnamed.is_some() {
            return;
        }
        let Some(id) = message_id(info) else { return };
        let parts = message.get("parts").and_then(Value::as_array);
        for kind in [TextKind::Thought, TextKind::Message] {
            let whole = stored_text(parts.map(Vec::as_slice).unwrap_or_default(), kind);
            let entry = entry(&mut self.entries, &mut self.order, id);
            let track = match kind {
                TextKind::Message => &mut entry.message,
                TextKind::Thought => &mut entry.thought,
            };
            let fresh = tail_from(&whole, track.sent.min(whole.len()));
            track.sent = track.sent.max(whole.len());
            if !fresh.is_empty() {
                self.turn_sent |= kind == TextKind::Message;
                out.push(chunk(entry, kind, fresh, target));
            }
        }
    }
}

/// The id of a stored message: `id` on some builds, `messageId` on others.
pub fn message_id(info: &Value) -> Option<&str> {
    ["messageId", "id"]
        .iter()
        .find_map(|key| info.get(*key).and_then(Value::as_str))
        .filter(|id| !id.is_empty())
}

/// The visible text, or the reasoning, of a stored message's parts.
fn stored_text(parts: &[Value], kind: TextKind) -> String {
    let wanted = match kind {
        TextKind::Message => "text",
        TextKind::Thought => "reasoning",
    };
    let mut whole = String::new();
    for part in parts {
        let hidden = |key: &str| part.get(key).and_then(Value::as_bool).unwrap_or(false);
        if part.get("type").and_then(Value::as_str) == Some(wanted)
            && !hidden("synthetic")
            && !hidden("ignored")
        {
            let text = part.get("text").or_else(|| part.get("content"));
            whole.push_str(text.and_then(Value::as_str).unwrap_or_default());
        }
    }
    whole
}

#[expect(clippy::expect_used, reason = "what is missing is put there just before")]
fn entry<'a>(
    entries: &'a mut HashMap<String, Entry>,
    order: &mut VecDeque<String>,
    key: &str,
) -> &'a mut Entry {
    if !entries.contains_key(key) {
        if order.len() >= REMEMBERED
            && let Some(oldest) = order.pop_front()
        {
            entries.remove(&oldest);
        }
        order.push_back(key.to_owned());
        let entry = Entry {
            id: acp::MessageId::new(key),
            thought_id: acp::MessageId::new(format!("thought_{key}")),
            message: Track::default(),
            thought: Track::default(),
        };
        entries.insert(key.to_owned(), entry);
    }
    entries.get_mut(key).expect("it is there")
}

fn chunk(entry: &Entry, kind: TextKind, text: &str, target: &Target) -> acp::SessionUpdate {
    let content = acp::ContentBlock::Text(acp::TextContent::new(text));
    let id = match kind {
        TextKind::Message => entry.id.clone(),
        TextKind::Thought => entry.thought_id.clone(),
    };
    let chunk = acp::ContentChunk::new(content).message_id(id).meta(tool::parent_meta(target));
    match kind {
        TextKind::Message => acp::SessionUpdate::AgentMessageChunk(chunk),
        TextKind::Thought => acp::SessionUpdate::AgentThoughtChunk(chunk),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bare, run, updates};
    use super::super::{ClientTraits, Output, Translator};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn stream(kind: &str, id: Option<&str>, delta: &str) -> (&'static str, Value) {
        let mut payload = json!({"kind": kind, "delta": delta});
        if let Some(id) = id {
            payload["assistantMessageId"] = json!(id);
        }
        ("model.streaming", payload)
    }

    fn part(id: &str, field: &str, delta: &str) -> (&'static str, Value) {
        ("part.delta", json!({"messageId": id, "partId": "p", "field": field, "delta": delta}))
    }

    /// Text per message id, in the order of the ids' first chunks.
    fn texts(updates: &[Value], kind: &str) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        for update in updates.iter().filter(|u| u["sessionUpdate"] == kind) {
            let id = update["messageId"].as_str().unwrap_or("").to_owned();
            let text = update["content"]["text"].as_str().unwrap();
            match found.last_mut() {
                Some((last, whole)) if *last == id => whole.push_str(text),
                _ => found.push((id, text.to_owned())),
            }
        }
        found
    }

    #[test]
    fn of_earlier_turns_only_the_newest_messages_are_remembered() {
        let mut translator = bare();
        for turn in 0..300 {
            run(&mut translator, &[("turn.started", json!({}))]);
            for n in 0..3 {
                run(&mut translator, &[stream("text_delta", Some(&format!("m{turn}.{n}")), "x")]);
            }
        }
        let texts = &translator.texts;
        assert_eq!(
            (texts.entries.len(), texts.order.len()),
            (super::EARLIER + 3, super::EARLIER + 3)
        );
        // A stored message of this turn still adds nothing to what was streamed.
        let mut out = Output::default();
        let stored = json!({"info": {"messageId": "m299.0", "role": "assistant"}, "parts": [{"type": "text", "text": "x"}]});
        translator.on_stored_message(&stored, &mut out);
        assert_eq!(updates(&out), Vec::<Value>::new());
    }

    #[test]
    fn text_and_thoughts_become_chunks_with_ids() {
        let got = run(
            &mut bare(),
            &[
                stream("reasoning_delta", Some("m1"), "Hm."),
                stream("text_delta", Some("m1"), "Hello"),
                stream("text_delta", Some("m1"), ""),
            ],
        );
        assert_eq!(
            got,
            vec![
                json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Hm."}, "messageId": "thought_m1"}),
                json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hello"}, "messageId": "m1"}),
            ]
        );
    }

    #[test]
    fn the_second_path_of_a_text_adds_only_what_is_new() {
        let got = run(
            &mut bare(),
            &[
                stream("text_delta", Some("m1"), "Grüße "),
                part("m1", "text", "Grü"),
                part("m1", "text", "ße an alle"),
                stream("text_delta", Some("m1"), "an alle!"),
                part("m1", "reasoning", "why"),
            ],
        );
        assert_eq!(texts(&got, "agent_message_chunk"), [("m1".into(), "Grüße an alle!".into())]);
        assert_eq!(texts(&got, "agent_thought_chunk"), [("thought_m1".into(), "why".into())]);
    }

    #[test]
    fn text_without_message_ids_is_a_new_message_after_a_tool_call() {
        let got = run(
            &mut bare(),
            &[
                stream("text_delta", None, "before"),
                ("tool.updated", json!({"kind": "started", "toolCallId": "c1"})),
                stream("text_delta", None, "after"),
                part("m9", "text", "before"),
            ],
        );
        let want = [
            ("turn_turn_1_0".to_owned(), "before".to_owned()),
            ("turn_turn_1_1".into(), "after".into()),
        ];
        assert_eq!(texts(&got, "agent_message_chunk"), want);
    }

    #[test]
    fn a_stored_message_completes_what_was_streamed() {
        let mut translator = bare();
        run(&mut translator, &[stream("text_delta", Some("m1"), "Hello ")]);
        let stored = json!({"info": {"id": "m1", "role": "assistant"}, "parts": [
            {"type": "reasoning", "text": "thinking"}, {"type": "text", "text": "Hello "},
            {"type": "text", "text": "hidden", "synthetic": true}, {"type": "text", "text": "world"}]});
        let mut out = Output::default();
        translator.on_stored_message(&stored, &mut out);
        translator.on_stored_message(&stored, &mut out);
        translator.on_stored_message(
            &json!({"info": {"id": "u", "role": "user"}, "parts": [{"type": "text", "text": "x"}]}),
            &mut out,
        );
        let got = updates(&out);
        assert_eq!(texts(&got, "agent_message_chunk"), [("m1".into(), "world".into())]);
        assert_eq!(texts(&got, "agent_thought_chunk"), [("thought_m1".into(), "thinking".into())]);
    }

    #[test]
    fn a_response_is_shown_only_when_nothing_was_streamed() {
        let done = ("turn.completed", json!({"resultType": "success", "response": "All done."}));
        let started = ("turn.started", json!({}));
        let got = run(&mut bare(), &[started.clone(), done.clone()]);
        assert_eq!(
            texts(&got, "agent_message_chunk"),
            [("turn_turn_1_0".into(), "All done.".into())]
        );
        let got = run(&mut bare(), &[started, stream("text_delta", Some("m1"), "All"), done]);
        assert_eq!(texts(&got, "agent_message_chunk"), [("m1".into(), "All".into())]);
    }

    #[test]
    fn a_subagents_text_is_shown_only_to_clients_that_ask_for_it() {
        let piece = [stream("text_delta", Some("m1"), "inner")];
        let mut quiet = Translator::new(ClientTraits::default()).nested_under("call_p");
        assert!(run(&mut quiet, &piece).is_empty());
        let traits = ClientTraits { subagent_transcript: true, ..ClientTraits::default() };
        let got = run(&mut Translator::new(traits).nested_under("call_p"), &piece);
        assert_eq!(got[0]["_meta"], json!({"claudeCode": {"parentToolUseId": "call_p"}}));
    }

    proptest! {
        /// However two paths cut and interleave the same text, the chunks joined are the text.
        #[test]
        fn chunks_joined_are_the_text(
            text in "\\PC{0,80}",
            cuts in proptest::collection::vec((any::<bool>(), 0usize..12), 0..60),
        ) {
            let mut translator = bare();
            let mut out = Output::default();
            let mut at = [0usize; 2];
            let steps = cuts.into_iter().chain([(true, usize::MAX), (false, usize::MAX)]);
            for (first, len) in steps {
                let from = at[usize::from(first)];
                let to = text.ceil_char_boundary(from.saturating_add(len).min(text.len()));
                let piece = text.get(from..to).unwrap();
                at[usize::from(first)] = to;
                let (kind, payload) = if first { stream("text_delta", Some("m"), piece) } else { part("m", "text", piece) };
                translator.on_event(&super::super::tests::event(kind, payload), &mut out);
            }
            let joined: String = texts(&updates(&out), "agent_message_chunk").into_iter().map(|(_, t)| t).collect();
            prop_assert_eq!(joined, text);
        }
    }
}
