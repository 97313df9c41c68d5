//! PURE. Actions as events of the legacy channel (section 4), with its batching: the first piece of
//! a text at once, then every 250 ms or 2 KiB; a tool's input every 750 ms or 4 KiB.

use super::options::Options;
use super::player::{Action, Call, Child, Lane, Outcome};
use super::profile::Profile;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The longest tail of a command's output that progress events carry.
const TAIL: usize = 8 * 1024;

/// An event that is due: its type and payload.
pub(super) type Event = (&'static str, Value);

/// What the sink must know of the turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'a> {
    /// The running assistant message.
    pub(super) message_id: &'a str,
    /// Milliseconds since the engine's start.
    pub(super) now: u64,
    /// Wall clock in ms.
    pub(super) clock: u64,
}

/// Text that waits for its batch.
#[derive(Debug)]
struct Batch {
    head: Map<String, Value>,
    text: String,
    /// When it is due, at the latest.
    due: u64,
    limit: usize,
    every: u64,
}

/// Output of a running call so far.
#[derive(Debug, Default)]
struct Tails {
    stdout: String,
    stderr: String,
    started: u64,
}

/// The legacy channel of one session.
#[derive(Debug, Default)]
pub(super) struct Legacy {
    batch: Option<Batch>,
    part: u64,
    tails: HashMap<String, Tails>,
}

impl Legacy {
    /// When the batch is due.
    pub(super) fn due(&self) -> Option<u64> {
        self.batch.as_ref().filter(|b| !b.text.is_empty()).map(|b| b.due)
    }

    /// Returns what the batch holds, as an event.
    pub(super) fn flush(&mut self, now: u64) -> Option<Event> {
        let batch = self.batch.as_mut().filter(|b| !b.text.is_empty())?;
        batch.due = now + batch.every;
        let mut payload = batch.head.clone();
        payload.insert("delta".to_owned(), Value::String(std::mem::take(&mut batch.text)));
        Some(("model.streaming", Value::Object(payload)))
    }

    /// Adds the action's events to `out`.
    pub(super) fn apply(
        &mut self,
        options: &Options,
        at: At<'_>,
        action: &Action,
        child: Option<&Child>,
        out: &mut Vec<Event>,
    ) {
        if child.is_some() {
            self.apply_child(options.profile, at, action, child, out);
            return;
        }
        match action {
            Action::Piece(_, text) | Action::InputPiece(_, text) => {
                self.piece(options, at.now, text, out);
            }
            other => {
                out.extend(self.flush(at.now));
                self.apply_own(options, at, other, out);
            }
        }
    }

    fn piece(&mut self, options: &Options, now: u64, text: &str, out: &mut Vec<Event>) {
        let Some(batch) = self.batch.as_mut() else { return };
        let first = batch.due == u64::MAX;
        batch.text.push_str(text);
        // Without waits nothing falls due by time: only size and the text's end count.
        let timed = options.pace > 0.0;
        if first
            || !options.legacy_batch
            || batch.text.len() >= batch.limit
            || (timed && now >= batch.due)
        {
            out.extend(self.flush(now));
        }
    }

    fn open(&mut self, options: &Options, head: Value, every: u64, limit: usize) {
        let head = if let Value::Object(map) = head { map } else { Map::new() };
        let every = if options.pace > 0.0 { options.interval(every) } else { every };
        self.batch = Some(Batch { head, text: String::new(), due: u64::MAX, limit, every });
    }

    fn apply_own(&mut self, options: &Options, at: At<'_>, action: &Action, out: &mut Vec<Event>) {
        let mut stream = |payload: Value| out.push(("model.streaming", payload));
        match action {
            Action::RequestStart => {
                stream(json!({"kind": "start", "assistantMessageId": at.message_id}));
            }
            Action::RequestEnd => {
                stream(
                    json!({"kind": "finish", "assistantMessageId": at.message_id, "done": true}),
                );
            }
            Action::Open(lane) => {
                self.part += 1;
                let part = format!("part_{}", self.part);
                let name = lane_name(*lane);
                stream(
                    json!({"kind": format!("{name}_start"), "assistantMessageId": at.message_id, "partId": part}),
                );
                let head = json!({"kind": format!("{name}_delta"), "assistantMessageId": at.message_id, "partId": part});
                self.open(options, head, 250, 2 * 1024);
            }
            Action::Close(lane) => {
                let part = format!("part_{}", self.part);
                stream(
                    json!({"kind": format!("{}_end", lane_name(*lane)), "assistantMessageId": at.message_id, "partId": part}),
                );
                self.batch = None;
            }
            Action::InputStart(call) => {
                stream(json!({
                    "kind": "tool_input_start", "toolCallId": call.id, "toolName": call.name,
                    "assistantMessageId": at.message_id,
                }));
                let head = json!({"kind": "tool_input_delta", "toolCallId": call.id});
                self.open(options, head, 750, 4 * 1024);
            }
            Action::InputEnd(call) => {
                stream(json!({"kind": "tool_input_end", "toolCallId": call.id}));
                self.batch = None;
            }
            Action::Call(call) => stream(json!({
                "kind": "tool_call", "toolCallId": call.id, "toolName": call.name, "input": call.input,
                "assistantMessageId": at.message_id,
            })),
            other => self.tool(options.profile, at, other, None, out),
        }
    }

    /// Of a subagent only its tools show here.
    fn apply_child(
        &mut self,
        profile: Profile,
        at: At<'_>,
        action: &Action,
        child: Option<&Child>,
        out: &mut Vec<Event>,
    ) {
        self.tool(profile, at, action, child, out);
    }

    fn tool(
        &mut self,
        profile: Profile,
        at: At<'_>,
        action: &Action,
        child: Option<&Child>,
        out: &mut Vec<Event>,
    ) {
        let payload = match action {
            Action::Scheduled(call) => {
                let mut payload = base(call, child, "scheduled");
                payload.insert("toolName".to_owned(), Value::from(call.name.as_str()));
                if child.is_some() {
                    payload.insert("input".to_owned(), call.input.clone());
                } else {
                    payload.insert("inputOmitted".to_owned(), Value::Bool(true));
                    payload.insert("inputRef".to_owned(), Value::from("model_stream"));
                    payload.insert(
                        "inputByteLength".to_owned(),
                        Value::from(call.input.to_string().len()),
                    );
                    payload.insert("assistantMessageId".to_owned(), Value::from(at.message_id));
                }
                payload
            }
            Action::Started(call) => {
                self.tails.insert(call.id.clone(), Tails { started: at.now, ..Tails::default() });
                let mut payload = base(call, child, "started");
                payload.insert("toolName".to_owned(), Value::from(call.name.as_str()));
                payload.insert("startedAt".to_owned(), Value::from(at.clock));
                payload
            }
            Action::Progress { call, stdout, stderr } => {
                self.progress(at, call, child, stdout, stderr)
            }
            Action::Result { call, outcome } => {
                self.tails.remove(&call.id);
                let mut payload = base(call, child, "result");
                payload.insert("result".to_owned(), result_value(profile, call, outcome));
                payload.insert("duration".to_owned(), Value::from(outcome.duration));
                payload
            }
            Action::Error { call, error } => {
                self.tails.remove(&call.id);
                let mut payload = base(call, child, "error");
                payload.insert("error".to_owned(), json!({"message": error, "type": "ToolError"}));
                payload
            }
            Action::Batch(ids) => {
                let batch = json!({"kind": "batch", "toolCallIds": ids, "successCount": ids.len(), "errorCount": 0});
                out.push(("tool.updated", batch));
                return;
            }
            _ => return,
        };
        out.push(("tool.updated", Value::Object(payload)));
    }

    fn progress(
        &mut self,
        at: At<'_>,
        call: &Call,
        child: Option<&Child>,
        stdout: &str,
        stderr: &str,
    ) -> Map<String, Value> {
        let tails = self.tails.entry(call.id.clone()).or_default();
        tails.stdout.push_str(stdout);
        tails.stderr.push_str(stderr);
        let mut payload = base(call, child, "progress");
        payload.insert("elapsedMs".to_owned(), Value::from(at.now - tails.started));
        payload.insert("pid".to_owned(), Value::from(4242));
        payload.insert("stdoutTail".to_owned(), Value::from(tail(&tails.stdout)));
        payload.insert("stderrTail".to_owned(), Value::from(tail(&tails.stderr)));
        payload.insert("stdoutBytes".to_owned(), Value::from(tails.stdout.len()));
        payload
    }
}

/// The keys that every stage of a call has.
fn base(call: &Call, child: Option<&Child>, kind: &str) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("kind".to_owned(), Value::from(kind));
    map.insert("toolCallId".to_owned(), Value::from(call.id.as_str()));
    if let Some(text) = &call.description {
        map.insert("description".to_owned(), Value::from(text.as_str()));
    }
    if call.background {
        map.insert("background".to_owned(), Value::Bool(true));
    }
    if let Some(child) = child {
        map.insert("source".to_owned(), Value::from("subagent"));
        map.insert("parentToolCallId".to_owned(), Value::from(child.parent_call.as_str()));
        map.insert("agentId".to_owned(), Value::from(child.agent_id.as_str()));
        map.insert("agentType".to_owned(), Value::from(child.kind.as_str()));
        map.insert("childSessionId".to_owned(), Value::from(child.session_id.as_str()));
        map.insert("childToolCallId".to_owned(), Value::from(call.id.as_str()));
    }
    map
}

fn lane_name(lane: Lane) -> &'static str {
    match lane {
        Lane::Text => "text",
        Lane::Thought => "reasoning",
    }
}

/// The end of a text, cut at a character border.
pub(super) fn tail(text: &str) -> &str {
    let mut from = text.len().saturating_sub(TAIL);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..).unwrap_or(text)
}

/// The `result` of a call as the build writes it.
pub(super) fn result_value(profile: Profile, call: &Call, outcome: &Outcome) -> Value {
    let failed_by_exit = outcome.exit.is_some_and(|code| code != 0);
    let success = outcome.success.unwrap_or(!failed_by_exit || profile.success_despite_exit_code());
    let bytes = outcome.content.len();
    let mut result = json!({
        "success": success,
        "content": outcome.content,
        "truncated": false,
        "originalBytes": bytes,
        "returnedBytes": bytes,
    });
    let Some(map) = result.as_object_mut() else { return result };
    if !success {
        map.insert("error".to_owned(), Value::from(outcome.content.as_str()));
    }
    if let Some(code) = outcome.exit {
        let command = json!({
            "name": call.input.get("command").and_then(Value::as_str).and_then(|c| c.split_whitespace().next()),
            "exitCode": code,
            "status": if failed_by_exit { "failed" } else { "completed" },
            "timedOut": false,
            "runMs": outcome.duration,
            "outputBytes": bytes,
        });
        let perf = if profile.success_despite_exit_code() {
            json!({"totalMs": outcome.duration, "detail": {"kind": "command", "command": command}})
        } else {
            json!({"totalMs": outcome.duration, "exitCode": code})
        };
        map.insert("perf".to_owned(), perf);
    }
    // Edits carry no diff here; it is in the message's tool part.
    if let Some(display) =
        outcome.display.as_ref().filter(|d| d.get("kind") != Some(&Value::from("file_diff")))
    {
        map.insert("display".to_owned(), display.clone());
    }
    result
}
