//! PURE. V4 rows in the words of the legacy channel: each fact becomes the session event that says the same, so that one
//! translator serves both channels. [`Rows`] stands before it and joins them: texts and tool inputs by [`Fuse`], output by
//! its place, cards by their call. A tool's result is left to the legacy event, which knows more (exit code, diff); a result
//! that only the rows had is said at the turn's end. Called by the session machine.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use agent_client_protocol::v1::schema as acp;
use serde_json::{Map, Value, json};

use crate::bridge::engine::event::{
    SessionBody, SessionEvent, StreamKind, Streaming, ToolPhase, ToolUpdated,
};
use crate::bridge::engine::v4::fuse::{Fuse, LegacyKey, Shown, TextKind};
use crate::bridge::engine::v4::rows::{Extra, Fact, Piece, RowHead, RowKind, ToolChange};

/// Most calls that are remembered.
const MAX_TOOLS: usize = 1024;
/// Most turns that are remembered.
const MAX_TURNS: usize = 32;

/// Both channels of one session, joined.
#[derive(Debug, Default)]
pub struct Rows {
    fuse: Fuse,
    live: bool,
    /// The rows began in the middle of a turn: the legacy channel tells the rest of it alone.
    waiting: Waiting,
    /// Turns whose rows did not all come: the legacy channel tells them alone.
    missed: VecDeque<String>,
    /// Turns that the legacy channel has ended: it has said all of them.
    over: VecDeque<String>,
    tools: HashMap<String, Tool>,
    order: VecDeque<String>,
    /// The turn that the rows tell of while the legacy channel's turn runs, where they name it in their own way.
    told: Option<String>,
    /// The legacy channel has begun a turn that has not ended.
    runs: bool,
    /// Turns the legacy channel has named: a row's turn is one of them, or is not named.
    turns: VecDeque<String>,
}

/// Whether the legacy channel tells a turn alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Waiting {
    #[default]
    No,
    /// Until the turn's end.
    ForTheEnd,
    /// It has ended; rows of it may still come until the next one starts.
    ForTheNext,
}

/// What each channel has said of a call.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not one state")]
struct Tool {
    has_input: bool,
    rows_show_output: bool,
    /// The legacy channel has spoken of it.
    legacy: bool,
    ended: bool,
    /// The rows' result, until the legacy one comes or the turn ends.
    result: Option<Box<SessionEvent>>,
}

impl Rows {
    /// Says whether V4 frames flow. While they do not, the legacy channel is heard alone.
    pub fn set_live(&mut self, live: bool) {
        self.live = live;
    }

    /// Says whether rows may come, now or after a resync: only then are texts kept to be compared.
    pub fn expect(&mut self, expected: bool) {
        self.fuse.expect_rows(expected);
    }

    /// The rows' beginning of the running turn is not known, so that they could only be shown out of order, and they do not
    /// name it: the legacy channel tells this turn alone.
    pub fn wait_for_the_end(&mut self) {
        self.waiting = Waiting::ForTheEnd;
    }

    /// The rows miss the beginning of these turns, or a part of them: the legacy channel tells them alone. Where the rows
    /// name turns in their own way, the one that runs may be the last of them: of a later one it cannot be told then whether
    /// the legacy channel has come to it.
    pub fn miss(&mut self, turns: &[String]) {
        if self.runs && self.told.is_none() && !self.fuse.shares_turns() {
            self.told = turns.iter().rfind(|it| !it.is_empty()).cloned();
        }
        for turn in turns.iter().filter(|it| !it.is_empty()) {
            self.compare_turn(turn);
            if self.missed.contains(turn) {
                continue;
            }
            self.missed.push_back(turn.clone());
            if self.missed.len() > MAX_TURNS {
                self.missed.pop_front();
            }
        }
    }

    /// True for a turn that the legacy channel has begun.
    pub fn has_begun(&self, turn: &str) -> bool {
        self.turns.iter().any(|it| it == turn)
    }

    /// A row's turn that the legacy channel named too: both name them alike.
    fn compare_turn(&mut self, turn: &str) {
        if self.turns.iter().any(|it| it == turn) {
            self.fuse.turns_are_shared();
        }
    }

    /// The turn is over: the next one begins on both channels.
    pub fn turn_over(&mut self, turn_id: Option<&str>) {
        if self.waiting == Waiting::ForTheEnd {
            self.waiting = Waiting::ForTheNext;
        }
        if turn_id.is_some_and(|it| self.over.iter().any(|over| over == it)) {
            return;
        }
        self.runs = false;
        for turn in [turn_id.map(str::to_owned), self.told.take()].into_iter().flatten() {
            self.over.push_back(turn);
            if self.over.len() > MAX_TURNS {
                self.over.pop_front();
            }
        }
    }

    /// Of rows that name turns in their own way: true for the turn that they told of first since one began.
    pub fn tells_of(&mut self, turn: &str) -> bool {
        !self.fuse.shares_turns()
            && self.runs
            && self.told.get_or_insert_with(|| turn.to_owned()) == turn
    }

    /// True for rows that must not speak: of a turn that has ended, or of one whose beginning they missed.
    fn is_mute(&self, head: &RowHead) -> bool {
        self.waiting != Waiting::No
            || head
                .turn_id
                .as_ref()
                .is_some_and(|it| self.over.contains(it) || self.missed.contains(it))
    }

    /// Takes a legacy event; returns what of it is still to be shown.
    pub fn on_legacy<'e>(&mut self, event: &'e SessionEvent) -> Option<Cow<'e, SessionEvent>> {
        match &event.body {
            SessionBody::Streaming(stream) => self.on_stream(event, stream),
            SessionBody::Tool(tool) => Some(self.on_tool(event, tool)),
            SessionBody::TurnStarted(_) => {
                self.fuse.turn_begins();
                self.runs = true;
                if self.waiting == Waiting::ForTheNext {
                    self.waiting = Waiting::No;
                }
                if let Some(turn) = &event.turn_id {
                    if self.missed.contains(turn) {
                        self.fuse.turns_are_shared();
                    }
                    self.turns.push_back(turn.clone());
                    if self.turns.len() > MAX_TURNS {
                        self.turns.pop_front();
                    }
                }
                Some(Cow::Borrowed(event))
            }
            _ => Some(Cow::Borrowed(event)),
        }
    }

    fn on_stream<'e>(
        &mut self,
        event: &'e SessionEvent,
        stream: &Streaming,
    ) -> Option<Cow<'e, SessionEvent>> {
        let (kind, owner) = match stream.kind {
            StreamKind::TextDelta => (TextKind::Message, stream.message_id.as_deref()),
            StreamKind::ReasoningDelta => (TextKind::Thought, stream.message_id.as_deref()),
            StreamKind::ToolInputDelta => (TextKind::Input, stream.tool_call_id.as_deref()),
            _ => {
                if stream.input.is_some()
                    && let Some(call) = &stream.tool_call_id
                {
                    self.tool(call).has_input = true;
                }
                return Some(Cow::Borrowed(event));
            }
        };
        self.fuse.enter_turn(event.turn_id.as_deref());
        let shown = self.fuse.on_legacy(LegacyKey { kind, owner }, &stream.delta)?;
        let same_owner = kind == TextKind::Input || shown.owner.as_deref() == owner;
        if same_owner && shown.text.len() == stream.delta.len() {
            return Some(Cow::Borrowed(event));
        }
        let body = match kind {
            TextKind::Input => Streaming { delta: shown.text, ..stream.clone() },
            TextKind::Message | TextKind::Thought => {
                Streaming { delta: shown.text, message_id: shown.owner, ..stream.clone() }
            }
        };
        Some(Cow::Owned(SessionEvent { body: SessionBody::Streaming(body), ..event.clone() }))
    }

    fn on_tool<'e>(
        &mut self,
        event: &'e SessionEvent,
        tool: &ToolUpdated,
    ) -> Cow<'e, SessionEvent> {
        let live = self.live;
        let known = self.tool(&tool.tool_call_id);
        known.legacy = true;
        match &tool.phase {
            ToolPhase::Scheduled { input } => known.has_input |= input.is_some(),
            ToolPhase::Result { .. } | ToolPhase::Error { .. } => {
                known.ended = true;
                known.result = None;
            }
            ToolPhase::Progress(_) if live && known.rows_show_output => {
                let started = ToolUpdated { phase: ToolPhase::Started, ..tool.clone() };
                return Cow::Owned(SessionEvent {
                    body: SessionBody::Tool(started),
                    ..event.clone()
                });
            }
            _ => {}
        }
        Cow::Borrowed(event)
    }

    /// Takes a fact of the session's own topic; adds what it says that was not shown yet.
    pub fn on_fact(&mut self, session_id: &str, fact: &Fact, out: &mut Vec<SessionEvent>) {
        if let Fact::Text(head, _) | Fact::InputText(head, _) = fact {
            if let Some(turn) = &head.turn_id {
                self.compare_turn(turn);
            }
            self.fuse.enter_turn(head.turn_id.as_deref());
        }
        match fact {
            Fact::Text(head, _) | Fact::InputText(head, _) if self.is_mute(head) => {}
            Fact::Text(head, piece) => {
                let kind = if head.kind == RowKind::Reasoning {
                    TextKind::Thought
                } else {
                    TextKind::Message
                };
                let shown = self.fuse.on_row(&head.row_id, kind, head.message_id.as_deref(), piece);
                self.say(session_id, head, shown.map(|it| text_of(kind, it)), out);
            }
            Fact::InputText(head, piece) => {
                let Some(call) = &head.tool_call_id else { return };
                let shown = self.fuse.on_row(&head.row_id, TextKind::Input, Some(call), piece);
                self.say(session_id, head, shown.map(|it| input_piece(head, it.text)), out);
            }
            Fact::Rewritten(head, _) => self.fuse.mute_row(&head.row_id),
            Fact::Removed(heads) => {
                for head in heads {
                    self.fuse.mute_row(&head.row_id);
                    self.taken_back(session_id, head, out);
                }
            }
            Fact::Extra(head, extra) => {
                let over = head.turn_id.as_ref().is_some_and(|it| self.over.contains(it));
                // What begins now would never be seen to end.
                if !over || !is_open(&extra.state) {
                    let bodies = extra_bodies(head, extra);
                    out.extend(bodies.map(|it| self.event(session_id, head, it)));
                }
            }
            _ => self.on_tool_fact(session_id, fact, out),
        }
    }

    fn on_tool_fact(&mut self, session_id: &str, fact: &Fact, out: &mut Vec<SessionEvent>) {
        let Some(head) = tool_head(fact) else { return };
        let Some(call) = head.tool_call_id.clone() else { return };
        let ends = matches!(fact, Fact::Tool(_, change) if is_final(&change.status));
        if self.is_mute(head) && !ends {
            return;
        }
        let known = self.tool(&call);
        if known.ended {
            return;
        }
        match fact {
            Fact::Input(..) if std::mem::replace(&mut known.has_input, true) => return,
            Fact::Output(..) => known.rows_show_output = true,
            _ => {}
        }
        let Some(body) = tool_body(fact) else { return };
        let event = self.event(session_id, head, body);
        if ends {
            self.tool(&call).result = Some(Box::new(event));
        } else {
            out.push(event);
        }
    }

    /// The row of a call is gone. One that only the rows told of ends with that; the legacy channel ends its own.
    fn taken_back(&mut self, session_id: &str, head: &RowHead, out: &mut Vec<SessionEvent>) {
        let Some(call) = head.tool_call_id.as_deref() else { return };
        let Some(known) = self.tools.get_mut(call).filter(|it| !it.ended && !it.legacy) else {
            return;
        };
        known.ended = true;
        known.result = None;
        let body = tool(head, ToolPhase::Error { error: json!("taken back by the engine") });
        out.push(self.event(session_id, head, body));
    }

    /// The results that only the rows had; the turn (or every turn, for `None`) has ended.
    pub fn results(&mut self, turn_id: Option<&str>) -> Vec<SessionEvent> {
        let mut out = Vec::new();
        for call in &self.order {
            let Some(tool) = self.tools.get_mut(call) else { continue };
            let matches = |it: &SessionEvent| {
                turn_id.is_none() || it.turn_id.is_none() || it.turn_id.as_deref() == turn_id
            };
            if let Some(event) = tool.result.take_if(|it| matches(it)) {
                tool.ended = true;
                out.push(*event);
            }
        }
        out
    }

    fn say(
        &self,
        session_id: &str,
        head: &RowHead,
        body: Option<SessionBody>,
        out: &mut Vec<SessionEvent>,
    ) {
        if let Some(body) = body {
            out.push(self.event(session_id, head, body));
        }
    }

    fn event(&self, session_id: &str, head: &RowHead, body: SessionBody) -> SessionEvent {
        let turn_id = head.turn_id.clone().filter(|it| self.turns.contains(it));
        SessionEvent { session_id: session_id.to_owned(), seq: 0, turn_id, body }
    }

    fn tool(&mut self, call: &str) -> &mut Tool {
        if !self.tools.contains_key(call) {
            self.order.push_back(call.to_owned());
            if self.order.len() > MAX_TOOLS
                && let Some(oldest) = self.order.pop_front()
            {
                self.tools.remove(&oldest);
            }
        }
        self.tools.entry(call.to_owned()).or_default()
    }
}

/// What a fact of a child's topic says, in the words of the legacy channel. There is no other channel to join it with; its
/// calls are marked as a subagent's, under the card `parent`.
pub fn child_event(child: &str, parent: Option<&str>, fact: &Fact) -> Option<SessionEvent> {
    let (head, body): (&RowHead, SessionBody) = match fact {
        Fact::Text(head, piece) => {
            let kind =
                if head.kind == RowKind::Reasoning { TextKind::Thought } else { TextKind::Message };
            let shown = Shown { owner: head.message_id.clone(), text: piece.text.clone() };
            (head, text_of(kind, shown))
        }
        Fact::InputText(head, Piece { text, .. }) => (head, input_piece(head, text.clone())),
        _ => (tool_head(fact)?, tool_body(fact)?),
    };
    let body = match body {
        SessionBody::Tool(tool) => SessionBody::Tool(ToolUpdated {
            source: Some("subagent".to_owned()),
            parent_tool_call_id: parent.map(str::to_owned),
            child_session_id: Some(child.to_owned()),
            ..tool
        }),
        other => other,
    };
    Some(SessionEvent { session_id: child.to_owned(), seq: 0, turn_id: head.turn_id.clone(), body })
}

/// What the engine did to the conversation by itself, as a closed card, in the words of a replay.
pub fn marker_card(head: &RowHead, marker: &Value) -> Option<acp::SessionUpdate> {
    let title = match marker.get("type").and_then(Value::as_str)? {
        "compact" => "Conversation compacted",
        "checkpointRestored" => "Files restored from a checkpoint",
        _ => return None,
    };
    let call = acp::ToolCall::new(format!("marker_{}", head.row_id), title)
        .status(acp::ToolCallStatus::Completed);
    Some(acp::SessionUpdate::ToolCall(call))
}

/// The tool call an event is about.
pub fn call_of(event: &SessionEvent) -> Option<&str> {
    match &event.body {
        SessionBody::Tool(tool) => Some(&tool.tool_call_id),
        SessionBody::Streaming(stream) => stream.tool_call_id.as_deref(),
        _ => None,
    }
}

fn tool_head(fact: &Fact) -> Option<&RowHead> {
    match fact {
        Fact::Opened(head) if head.kind == RowKind::ToolCall => Some(head),
        Fact::Input(head, _) | Fact::Output(head, _) | Fact::Tool(head, _) => Some(head),
        _ => None,
    }
}

fn tool_body(fact: &Fact) -> Option<SessionBody> {
    Some(match fact {
        Fact::Opened(head) => tool(head, ToolPhase::Scheduled { input: None }),
        Fact::Input(head, input) => SessionBody::Streaming(Streaming {
            input: Some(input.clone()),
            ..streaming(StreamKind::ToolCall, head, String::new())
        }),
        Fact::Output(head, piece) => {
            tool(head, ToolPhase::Output { at: piece.at, text: piece.text.clone() })
        }
        Fact::Tool(head, change) => tool(head, tool_phase(change)?),
        _ => return None,
    })
}

fn tool_phase(change: &ToolChange) -> Option<ToolPhase> {
    match change.status.as_str() {
        "running" => Some(ToolPhase::Started),
        "success" => {
            let content = change.output.as_ref().or(change.output_preview.as_ref());
            Some(result_of(change, json!({"success": true, "content": content.map(output_text)})))
        }
        "error" | "cancelled" => {
            let cancelled =
                (change.status == "cancelled").then(|| json!("cancelled before it finished"));
            let error = change.error.clone().or(cancelled);
            // What it printed is said too.
            match (error, change.output.as_ref().map(output_text)) {
                (Some(error), Some(printed)) => {
                    let failed = json!({"success": false, "content": printed, "error": error});
                    Some(result_of(change, failed))
                }
                (error, printed) => {
                    let error = error.or(printed).unwrap_or_else(|| json!("the tool failed"));
                    Some(ToolPhase::Error { error })
                }
            }
        }
        _ => None,
    }
}

/// A result with the exit code, where the row has one.
fn result_of(change: &ToolChange, mut result: Value) -> ToolPhase {
    let code = change.output.as_ref().and_then(|it| it.get("exitCode")?.as_i64());
    if let (Some(code), Value::Object(map)) = (code, &mut result) {
        map.insert("perf".to_owned(), json!({ "exitCode": code }));
    }
    ToolPhase::Result { result, duration: None }
}

/// A hook or an artifact as a card of its own: it opens, and ends when its state does.
fn extra_bodies(head: &RowHead, extra: &Extra) -> impl Iterator<Item = SessionBody> {
    let (word, name) =
        if head.kind == RowKind::Hook { ("hook", "Hook") } else { ("artifact", "Artifact") };
    let head = RowHead {
        tool_call_id: Some(format!("{word}_{}", head.row_id)),
        tool_name: Some(name.to_owned()),
        ..head.clone()
    };
    let mut input = Map::new();
    for (key, value) in [("description", &extra.title), ("path", &extra.place)] {
        if let Some(value) = value {
            input.insert(key.to_owned(), json!(value));
        }
    }
    let opened = ToolPhase::Scheduled { input: Some(Value::Object(input)) };
    let now = match extra.state.as_str() {
        state if is_open(state) => ToolPhase::Started,
        "error" | "failed" | "blocked" | "cancelled" => {
            let said = extra.error.clone().or_else(|| extra.text.as_ref().map(|it| json!(it)));
            ToolPhase::Error { error: said.unwrap_or_else(|| json!(extra.state)) }
        }
        _ => ToolPhase::Result {
            result: json!({"success": true, "content": extra.text}),
            duration: None,
        },
    };
    [opened, now].into_iter().map(move |phase| tool(&head, phase))
}

/// A state that another one follows.
fn is_open(state: &str) -> bool {
    matches!(state, "running" | "pending" | "started" | "streaming" | "inProgress" | "in_progress")
}

/// Text where there is one; else the value as it is.
fn output_text(output: &Value) -> Value {
    output.get("text").unwrap_or(output).clone()
}

fn is_final(status: &str) -> bool {
    matches!(status, "success" | "error" | "cancelled")
}

fn tool(head: &RowHead, phase: ToolPhase) -> SessionBody {
    SessionBody::Tool(ToolUpdated {
        tool_call_id: head.tool_call_id.clone().unwrap_or_default(),
        tool_name: head.tool_name.clone(),
        parent_tool_call_id: head.parent_tool_call_id.clone(),
        source: None,
        child_session_id: None,
        child_tool_call_id: None,
        agent_id: None,
        agent_type: None,
        description: None,
        background: false,
        phase,
    })
}

fn text_of(kind: TextKind, shown: Shown) -> SessionBody {
    let stream_kind =
        if kind == TextKind::Thought { StreamKind::ReasoningDelta } else { StreamKind::TextDelta };
    SessionBody::Streaming(Streaming {
        kind: stream_kind,
        delta: shown.text,
        message_id: shown.owner,
        part_id: None,
        tool_call_id: None,
        tool_name: None,
        input: None,
        error: None,
        joins: Vec::new(),
    })
}

fn input_piece(head: &RowHead, text: String) -> SessionBody {
    SessionBody::Streaming(streaming(StreamKind::ToolInputDelta, head, text))
}

fn streaming(kind: StreamKind, head: &RowHead, delta: String) -> Streaming {
    Streaming {
        kind,
        delta,
        message_id: None,
        part_id: None,
        tool_call_id: head.tool_call_id.clone(),
        tool_name: head.tool_name.clone(),
        input: None,
        error: None,
        joins: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
