//! PURE. What is done when something does not come: a silent turn (its terminal event was lost, or
//! the engine hangs), a dead engine, and the session's title, which comes from three places.
//!
//! Silence alone proves nothing. After a while without events the missing ones are fetched by
//! number; two idle readings with no event between them end a turn whose end was lost. That is also the
//! only thing that finds a hung engine while nobody cancels: a model may think, and a tool may run, for
//! longer than any deadline, so that only readings that are not answered count against it.

use std::time::Duration;

use agent_client_protocol::Error as AcpError;
use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::link::{Deaf, LinkState};
use super::turn::{Stage, Turn};
use super::{Cont, Effect, Machine};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::event::{EngineExit, StorageState, TurnFailed};
use crate::bridge::session::failure;
use crate::bridge::translate::{CardEnd, error as turn_error, notice};

/// Silence before the first look; doubles up to four times this.
pub(super) const SILENCE: u64 = 15_000;
/// Between the two idle readings.
pub(super) const SECOND_LOOK: Duration = Duration::from_millis(1_500);
/// Looks that got no answer at all before the engine counts as hung.
pub(super) const DEAF_LIMIT: u8 = 4;
/// The last reply may not be stored yet.
pub(super) const REPLY_TRIES: u8 = 4;
const REPLY_GAP: Duration = Duration::from_millis(400);

impl Machine {
    pub(crate) fn watch_silence(&mut self) {
        let Some(turn) = self.turn.as_ref().filter(|t| t.silence.is_none()) else { return };
        let n = turn.n;
        let token = self.timer(Duration::from_millis(SILENCE), Cont::Silence { n });
        if let Some(turn) = self.turn.as_mut() {
            turn.silence = Some(token);
        }
    }

    pub(crate) fn silence_deadline(&mut self, n: u64) {
        let (now, asking) = (self.now.ms, self.asks.any_open());
        let Some(turn) = self.turn.as_mut().filter(|t| t.n == n && t.stage == Stage::Running)
        else {
            return;
        };
        turn.silence = None;
        let quiet = now.saturating_sub(turn.last_event);
        let wanted = SILENCE << turn.probes.min(2);
        let wait = if asking { SILENCE } else { wanted.saturating_sub(quiet) };
        if wait > 0 {
            let token = self.timer(Duration::from_millis(wait), Cont::Silence { n });
            if let Some(turn) = self.turn.as_mut() {
                turn.silence = Some(token);
            }
            return;
        }
        turn.probes += 1;
        self.look_for_the_end(n);
        self.watch_silence();
    }

    /// First what was lost by number, then whether anything runs at all.
    fn look_for_the_end(&mut self, n: u64) {
        self.ask_missing_events(Cont::ProbeEvents { n });
        self.probe_read(n, false);
    }

    fn probe_read(&mut self, n: u64, second: bool) {
        let seen = self.turn.as_ref().map_or(0, |t| t.last_event);
        self.read_state(Cont::ProbeRead { n, seen, second });
    }

    pub(crate) fn on_probe_events(&mut self, n: u64, reply: Result<Box<RawValue>, EngineError>) {
        if self.turn.as_ref().is_none_or(|t| t.n != n) {
            return;
        }
        if let Ok(answer) = reply {
            self.deliver_missing(super::stream::read_events(&answer));
        }
    }

    pub(crate) fn on_probe_read(
        &mut self,
        n: u64,
        seen: u64,
        second: bool,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        let Some(turn) = self.turn.as_mut().filter(|t| t.n == n && t.stage == Stage::Running)
        else {
            return;
        };
        match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(snapshot) => {
                turn.deaf_probes = 0;
                if turn.last_event != seen {
                    return;
                }
                if !is_idle(&snapshot) {
                    return self.sign_of_life();
                }
                if second {
                    return self.end_was_lost();
                }
                self.timer(SECOND_LOOK, Cont::SecondLook { n, seen });
            }
            Err(EngineError::Timeout { .. }) => {
                turn.deaf_probes += 1;
                if turn.deaf_probes >= DEAF_LIMIT {
                    self.emit(Effect::KillEngine);
                }
            }
            Err(error) if error.is_not_active() => self.session_evicted_under_turn(),
            Err(_) => {}
        }
    }

    pub(crate) fn second_look(&mut self, n: u64, seen: u64) {
        if self
            .turn
            .as_ref()
            .is_some_and(|t| t.n == n && t.last_event == seen && t.stage == Stage::Running)
        {
            self.probe_read(n, true);
        }
    }

    fn end_was_lost(&mut self) {
        let Some(turn) = self.turn.as_ref() else { return };
        if turn.is_cancelled() {
            return self.finish(Ok(acp::StopReason::Cancelled));
        }
        // What ended is the turn that the prompt waits behind: it has not run yet.
        if turn.turn_id.is_none() && self.stream.foreign_runs() {
            return self.foreign_end_was_lost();
        }
        self.fetch_last_reply();
    }

    /// Shows what was stored of the last reply and was not streamed, then ends the prompt.
    pub(crate) fn fetch_last_reply(&mut self) {
        self.read_last_reply(1);
    }

    pub(super) fn read_last_reply(&mut self, attempt: u8) {
        let (Some(sid), Some(turn)) = (self.engine_sid().map(str::to_owned), self.turn.as_ref())
        else {
            return;
        };
        let n = turn.n;
        let mut params = json!({"sessionId": sid, "limit": 60});
        if let (Some(anchor), Value::Object(map)) = (&turn.anchor, &mut params) {
            map.insert("afterMessageId".to_owned(), json!(anchor));
        }
        self.call("session/messages", params, Cont::LastReply { n, attempt });
    }

    pub(crate) fn on_last_reply(
        &mut self,
        n: u64,
        attempt: u8,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        let Some(turn) = self.turn.as_ref().filter(|t| t.n == n && t.stage == Stage::Running)
        else {
            return;
        };
        let anchored = turn.anchor.is_some();
        let messages = match reply.and_then(|raw| failure::parse_whole(&raw)) {
            Ok(answer) => {
                answer.get("messages").and_then(Value::as_array).cloned().unwrap_or_default()
            }
            Err(_) => Vec::new(),
        };
        // A turn whose start was lost, too, is known by its prompt.
        let begin = if anchored { Some(0) } else { stored_prompt(&messages, turn) };
        for message in messages.iter().skip(begin.unwrap_or(messages.len())) {
            if role(message) == Some("assistant") {
                self.translate(|t, out| t.on_stored_message(message, out));
            }
        }
        let found = self.translator.turn_has_text();
        if !found && anchored && attempt < REPLY_TRIES && self.turn_saw_nothing() {
            self.timer(REPLY_GAP, Cont::LastReplyAgain { n, attempt });
            return;
        }
        self.finish(Ok(acp::StopReason::EndTurn));
    }

    fn turn_saw_nothing(&self) -> bool {
        self.translator.open_cards() == 0
    }

    pub(crate) fn last_reply_again(&mut self, n: u64, attempt: u8) {
        if self.turn.as_ref().is_some_and(|t| t.n == n && t.stage == Stage::Running) {
            self.read_last_reply(attempt + 1);
        }
    }

    fn session_evicted_under_turn(&mut self) {
        self.link_lost();
        self.lose_steers();
        self.close_cards(CardEnd::Failed);
        if !self.recover_turn() {
            let error = AcpError::new(
                agent_client_protocol::ErrorCode::INTERNAL_ERROR,
                "the engine dropped this session in the middle of the turn",
            );
            self.end_now(Err(error));
        }
    }

    /// The engine process is gone. Whoever needs one gets a new one; a running prompt is sent again.
    pub(crate) fn engine_lost(&mut self, exit: Option<&EngineExit>) {
        if self.link.deaf == Deaf::Ending {
            return self.deaf_engine_ended();
        }
        // Every attached session hears of the end, and an opening hears of it by its replies.
        if self.link.state != LinkState::Up {
            return;
        }
        self.link_lost();
        self.lose_steers();
        self.drop_asks_of_dead_engine();
        self.lose_tasks();
        let Some((n, stage, cancelled)) =
            self.turn.as_ref().map(|t| (t.n, t.stage, t.is_cancelled()))
        else {
            return;
        };
        if stage == Stage::Finishing {
            return self.turn_is_over(n);
        }
        if cancelled {
            return self.end_now(Ok(acp::StopReason::Cancelled));
        }
        if !self.recover_turn() {
            let error = exit
                .map_or(EngineError::Closed, |exit| EngineError::Exited(Box::new(exit.clone())));
            self.end_now(Err(failure::to_acp(&error)));
        }
    }

    pub(crate) fn foreign_failed(&mut self, failed: &TurnFailed) {
        let problem = turn_error::turn_failed(failed);
        if !problem.is_cancelled {
            self.warn("A turn of the engine's own failed.", Some(&problem.message));
        }
    }

    pub(crate) fn on_storage(&mut self, storage: &StorageState) {
        if storage.phase == "failed" {
            let code = storage.error_code.as_deref().unwrap_or("unknown reason");
            let text = format!("The engine could not bring its database up to date ({code}).");
            self.warn(&text, None);
        } else if matches!(storage.phase.as_str(), "migrating" | "waiting_for_lock")
            && self.link.state == LinkState::Opening
            && !self.link.told_migration
        {
            self.link.told_migration = true;
            self.warn(
                "The engine is bringing its database up to date; this can take a while.",
                None,
            );
        }
    }

    pub(crate) fn title_from_prompt(&mut self, words: &str) {
        if self.names_itself {
            self.names_itself = false;
            let update = self.translator.title_mut().on_prompt(words);
            self.out.extend(update.map(Box::new).map(Effect::Update));
        }
    }

    /// Takes the title that the engine lists and tells it to a client that has none.
    pub(crate) fn adopt_title(&mut self, info: &Value) {
        if self.names_itself || self.translator.title_mut().current().is_some() {
            return;
        }
        let text =
            |key: &str| info.get(key).and_then(Value::as_str).filter(|t| !t.trim().is_empty());
        if let Some(title) = text("title") {
            self.translator.title_mut().adopt(title, text("titleSource"));
            let shown = self.translator.title_mut().current().map(str::to_owned);
            let update = acp::SessionInfoUpdate::new().title(shown);
            self.update(acp::SessionUpdate::SessionInfoUpdate(update));
        }
    }

    /// Something that the user should know and that is no answer.
    pub(crate) fn warn(&mut self, title: &str, detail: Option<&str>) {
        let id = format!("{}_{}", self.seed.nonce, self.next);
        self.next += 1;
        let update =
            notice::notice(&self.seed.traits, notice::Severity::Warning, title, detail, &id);
        self.update(update);
    }
}

/// Where the prompt of this turn stands: the last thing that the user said, in these words and since
/// the turn began. An earlier prompt of the same words is another turn's.
fn stored_prompt(messages: &[Value], turn: &Turn) -> Option<usize> {
    let at = messages.iter().rposition(|m| role(m) == Some("user") && says(m).is_some())?;
    let message = messages.get(at)?;
    let created = message.pointer("/info/time/created").and_then(Value::as_u64)?;
    let ours = says(message) == Some(turn.input.content.as_str());
    (ours && created >= turn.began_unix).then_some(at)
}

/// What a visible message of the user's says.
fn says(message: &Value) -> Option<&str> {
    let hidden = message.pointer("/info/semantics/transcriptVisibility").and_then(Value::as_str);
    let parts = message.get("parts").and_then(Value::as_array)?;
    let text = parts.iter().find_map(|part| part.get("text").and_then(Value::as_str));
    text.filter(|_| hidden != Some("hidden"))
}

fn role(message: &Value) -> Option<&str> {
    message.get("info").and_then(|i| i.get("role")).and_then(Value::as_str)
}

/// One idle reading; proves nothing by itself.
pub(super) fn is_idle(snapshot: &Value) -> bool {
    let status = snapshot.get("projection").and_then(|p| p.get("status")).and_then(Value::as_str);
    let active = snapshot.get("runtime").and_then(|r| r.get("activeTurnId"));
    matches!(status, Some("idle" | "completed" | "error")) && !active.is_some_and(Value::is_string)
}
