//! PURE. Engine facts to ACP facts and back: no I/O, no clock, no runtime. One file per family.
//!
//! [`Translator`] is the state that one session's stream needs (which cards are open, how much of
//! a message was sent, the last plan and ring); everything else here is a plain function. Ids and
//! times come in as arguments. Called by the session machine, which decides *which* events belong
//! to the user's turn; this module only maps them. Tested by tables, properties and transcripts.

pub mod client;
pub mod command;
pub mod config_options;
pub mod diff;
pub mod error;
pub mod mcp;
pub mod notice;
pub mod output;
pub mod permission;
pub mod plan;
pub mod plan_approval;
pub mod prompt;
pub mod question;
mod recent;
pub mod replay;
pub mod rows;
pub mod session_pick;
pub mod stop_reason;
pub mod subagent;
pub mod text;
pub mod title;
pub mod tool;
pub mod usage;

pub use client::{ClientTraits, Signals};
pub use tool::CardEnd;

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

use crate::bridge::engine::event::{
    SessionBody, SessionEvent, SessionUpdated, StreamKind, ToolUpdated,
};
use text::{Source, TextKind};

/// A follow-up read that the session has to do, because the event itself does not carry the fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Read `session/messages` and hand the tool part's `state.metadata.display` to
    /// [`Translator::on_edit_display`].
    EditDiff {
        /// The card that waits for its diff.
        tool_call_id: String,
    },
    /// Read the to-do list (again after 600 ms when unchanged) for [`Translator::on_todos`].
    Todos,
    /// The mode may have changed: read the settings again.
    Mode,
}

/// What one engine event became, in order.
#[derive(Debug, Default)]
pub struct Output {
    /// Updates for the client.
    pub updates: Vec<acp::SessionUpdate>,
    /// Reads for the session.
    pub wants: Vec<Want>,
}

impl Output {
    /// Adds an update.
    pub fn push(&mut self, update: acp::SessionUpdate) {
        self.updates.push(update);
    }

    /// Adds a follow-up read, once.
    pub fn want(&mut self, want: Want) {
        if !self.wants.contains(&want) {
            self.wants.push(want);
        }
    }

    /// True when there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.updates.is_empty() && self.wants.is_empty()
    }
}

/// Where a session's updates go: the client's abilities and the place the session works in.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// What the client can show.
    pub traits: ClientTraits,
    /// The session's working directory; relative paths of tools are resolved against it.
    pub cwd: Option<String>,
    /// Set for a subagent's own stream: the card of the parent session that it nests under.
    pub parent_tool_call: Option<String>,
}

impl Target {
    /// An absolute path for one a tool named; `None` when it is relative and no directory is known,
    /// because ACP wants absolute paths only.
    pub fn absolute(&self, path: &str) -> Option<String> {
        let bytes = path.as_bytes();
        let has_drive =
            bytes.get(1) == Some(&b':') && bytes.first().is_some_and(u8::is_ascii_alphabetic);
        if path.starts_with(['/', '\\']) || has_drive {
            return Some(path.to_owned());
        }
        let cwd = self.cwd.as_deref()?.trim_end_matches('/');
        let path = path.strip_prefix("./").unwrap_or(path);
        (!path.is_empty()).then(|| format!("{cwd}/{path}"))
    }
}

/// Turns one session's events into ACP updates. Memory is bounded whatever the session's length;
/// the work per streamed piece is constant.
#[derive(Debug, Default)]
pub struct Translator {
    target: Target,
    texts: text::Texts,
    cards: tool::Cards,
    plan: plan::Baseline,
    meter: usage::Meter,
    title: title::Title,
}

impl Translator {
    /// A translator for one session and the client it is shown to.
    pub fn new(traits: ClientTraits) -> Self {
        Self { target: Target { traits, ..Target::default() }, ..Self::default() }
    }

    /// Sets the working directory that relative tool paths are resolved against.
    #[must_use]
    pub fn in_directory(mut self, cwd: impl Into<String>) -> Self {
        self.target.cwd = Some(cwd.into());
        self
    }

    /// Makes every card a child of this card (a subagent's own stream shown in its parent).
    #[must_use]
    pub fn nested_under(mut self, tool_call_id: impl Into<String>) -> Self {
        self.target.parent_tool_call = Some(tool_call_id.into());
        self
    }

    /// What the client can show.
    pub fn traits(&self) -> &ClientTraits {
        &self.target.traits
    }

    /// Replaces the client's abilities (another client attached).
    pub fn set_traits(&mut self, traits: ClientTraits) {
        self.target.traits = traits;
    }

    /// Maps one event. Unknown events map to nothing.
    pub fn on_event(&mut self, event: &SessionEvent, out: &mut Output) {
        let turn = event.turn_id.as_deref();
        match &event.body {
            SessionBody::TurnStarted(_) => {
                self.texts.begin_turn();
                self.cards.begin_turn();
            }
            SessionBody::Streaming(stream) => match stream.kind {
                StreamKind::TextDelta | StreamKind::ReasoningDelta => {
                    let kind = if stream.kind == StreamKind::TextDelta {
                        TextKind::Message
                    } else {
                        TextKind::Thought
                    };
                    let id = text::Address::new(stream.message_id.as_deref(), turn);
                    self.text(id, kind, Source::Stream, &stream.delta, out);
                }
                _ => {
                    if self.cards.on_stream(stream, &self.target, out) {
                        self.texts.break_message();
                    }
                }
            },
            SessionBody::PartDelta(part) => {
                let kind = match part.field.as_deref() {
                    None | Some("text") => TextKind::Message,
                    Some("reasoning") => TextKind::Thought,
                    Some(_) => return,
                };
                let id = text::Address::new(part.message_id.as_deref(), turn);
                self.text(id, kind, Source::Part, &part.delta, out);
            }
            SessionBody::Tool(tool) => self.on_tool(tool, out),
            SessionBody::Updated(updated) => self.on_updated(updated, event.seq, out),
            SessionBody::Title(title) => out.updates.extend(self.title.on_engine(title)),
            SessionBody::TurnCompleted(done) => {
                if let Some(Value::String(response)) = &done.response
                    && !self.texts.turn_has_text()
                {
                    let id = text::Address::new(None, turn);
                    self.text(id, TextKind::Message, Source::Stream, response, out);
                }
            }
            _ => {}
        }
    }

    fn on_updated(&mut self, updated: &SessionUpdated, seq: u64, out: &mut Output) {
        if let Some(task) = &updated.task {
            self.cards.on_task(task, &self.target, out);
        }
        if let Some(used) = updated.context_used {
            let reading = usage::reading_event(used, updated.context_window, &updated.raw);
            self.on_usage_reading(reading, out);
        }
        if let Some(status) = &updated.api_retry {
            let (title, words) = notice::retry_words(status);
            let id = format!("retry_{seq}");
            let traits = &self.target.traits;
            let severity = notice::Severity::Warning;
            out.push(notice::notice(traits, severity, &title, words.as_deref(), &id));
        }
        if updated.mode.is_some() || updated.plan_enabled.is_some() {
            out.want(Want::Mode);
        }
    }

    fn on_tool(&mut self, tool: &ToolUpdated, out: &mut Output) {
        if self.cards.on_tool(tool, &self.target, out) {
            self.texts.break_message();
        }
    }

    /// Maps one piece of text that came another way (V4 rows). Deduplicated by message and length.
    pub fn text(
        &mut self,
        address: text::Address<'_>,
        kind: TextKind,
        source: Source,
        delta: &str,
        out: &mut Output,
    ) {
        if self.target.parent_tool_call.is_some() && !self.target.traits.subagent_transcript {
            return;
        }
        self.texts.delta(address, kind, source, delta, &self.target, out);
    }

    /// Completes the text of one stored assistant message (`session/messages`): what was streamed
    /// already is not sent again.
    pub fn on_stored_message(&mut self, message: &Value, out: &mut Output) {
        self.texts.stored(message, &self.target, out);
    }

    /// True when the running turn has produced message text.
    pub fn turn_has_text(&self) -> bool {
        self.texts.turn_has_text()
    }

    /// Makes sure that a card exists for a call that is about to be asked about (permission,
    /// question, plan), so that the dialog refers to something the client knows.
    pub fn ensure_card(&mut self, card: tool::NewCard<'_>, out: &mut Output) {
        if self.cards.ensure(card, &self.target, out) {
            self.texts.break_message();
        }
    }

    /// Adds the diff of an edit that was read after its result.
    pub fn on_edit_display(&mut self, tool_call_id: &str, display: &Value, out: &mut Output) {
        self.cards.on_edit_display(tool_call_id, display, &self.target, out);
    }

    /// Ends every card that is still open in this turn; cards of background work stay open.
    pub fn finish_turn(&mut self, end: CardEnd, out: &mut Output) {
        self.cards.close_open(end, &self.target, out);
    }

    /// The client cancelled a background task: its card ends now.
    pub fn on_task_cancelled(&mut self, task_id: &str, out: &mut Output) {
        self.cards.cancel_task(task_id, out);
    }

    /// Background tasks that have not ended: task and card.
    pub fn running_tasks(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cards.running_tasks()
    }

    /// A reading of the to-do list (a snapshot, V4's `plan` state or a bare list). True when it had
    /// changed.
    pub fn on_todos(&mut self, source: &Value, out: &mut Output) -> bool {
        let entries = self.plan.with_known_priorities(source, plan::entries(source));
        let update = self.plan.changed(entries);
        let changed = update.is_some();
        out.updates.extend(update);
        changed
    }

    /// The same for a client that loads the session: told even when it is empty.
    pub fn on_todos_loaded(&mut self, source: &Value, out: &mut Output) {
        out.push(self.plan.always(plan::entries(source)));
    }

    /// A reading of what the context holds.
    pub fn on_usage_reading(&mut self, reading: usage::Reading, out: &mut Output) {
        out.updates.extend(self.meter.take(reading));
    }

    /// The model in use holds this much ([`config_options::Settings::context_window`]).
    pub fn on_model_window(&mut self, window: Option<u64>, out: &mut Output) {
        out.updates.extend(self.meter.set_window(window));
    }

    /// The ring, for repeating it and for the prompt's response.
    pub fn meter(&self) -> &usage::Meter {
        &self.meter
    }

    /// The session's title.
    pub fn title_mut(&mut self) -> &mut title::Title {
        &mut self.title
    }

    /// The number of calls that have not ended (background work left out).
    pub fn open_cards(&self) -> usize {
        self.cards.open_count()
    }

    /// The id of a call that is running, for a sign of life in a long silence.
    pub fn running_card(&self) -> Option<&str> {
        self.cards.running()
    }
}

#[cfg(test)]
mod tests;
