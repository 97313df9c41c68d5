//! PURE. The way out: what the engine writes, in order, and what it needs to write it (options,
//! clock, ids). Faults of the wire itself are played here.

use super::ids::Ids;
use super::options::{Fault, Options};
use serde_json::{Value, json};

/// A refusal.
#[derive(Debug, Clone)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// -32602
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// -32603 with a stable business code in `data.code`.
    pub(super) fn internal(code: &str, message: impl Into<String>) -> Self {
        let data = json!({"name": "Error", "code": code, "stack": "Error\n    at simulated"});
        Self { code: -32603, message: message.into(), data: Some(data) }
    }
}

/// What a method answers.
pub(super) type Reply = Result<Value, RpcError>;

/// The outbox and the engine's surroundings.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) options: Options,
    pub(super) ids: Ids,
    /// Milliseconds since the start.
    pub(super) now: u64,
    epoch_ms: u64,
    out: Vec<String>,
    out_bytes: usize,
    log: Vec<String>,
    server_id: u64,
    notified: u64,
    frames: u64,
    fragmented: u64,
}

impl Wire {
    pub(super) fn new(options: Options, epoch_ms: u64) -> Self {
        let ids = Ids::new(options.seed);
        Self {
            options,
            ids,
            now: 0,
            epoch_ms,
            out: Vec::new(),
            out_bytes: 0,
            log: Vec::new(),
            server_id: 0,
            notified: 0,
            frames: 0,
            fragmented: 0,
        }
    }

    /// Wall-clock time in ms.
    pub(super) fn clock(&self) -> u64 {
        self.epoch_ms + self.now
    }

    /// Takes what is to be written, a line each, without line ends.
    pub(super) fn take(&mut self) -> Vec<String> {
        self.out_bytes = 0;
        std::mem::take(&mut self.out)
    }

    /// Bytes that wait to be written.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.out_bytes
    }

    /// Takes what belongs on standard error.
    pub(super) fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Notes something for standard error.
    pub(super) fn note(&mut self, text: String) {
        self.log.push(text);
    }

    /// A line as it stands.
    pub(super) fn line(&mut self, line: String) {
        self.out_bytes += line.len() + 1;
        self.out.push(line);
    }

    pub(super) fn message(&mut self, message: &Value) {
        self.line(message.to_string());
    }

    pub(super) fn reply(&mut self, id: &Value, reply: Reply) {
        let message = match reply {
            Ok(result) => json!({"id": id, "result": result}),
            Err(error) => {
                let mut body = json!({"code": error.code, "message": error.message});
                if let (Some(map), Some(data)) = (body.as_object_mut(), error.data) {
                    map.insert("data".to_owned(), data);
                }
                json!({"id": id, "error": body})
            }
        };
        self.message(&message);
    }

    /// Sends a request and returns its id.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> String {
        self.server_id += 1;
        let id = format!("server-{}", self.server_id);
        self.message(&json!({"id": id, "method": method, "params": params}));
        id
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.notify_text(method, &params.to_string());
    }

    /// Sends a notification whose params are written already.
    pub(super) fn notify_text(&mut self, method: &str, params: &str) {
        self.notified += 1;
        let garbage =
            self.options.fault(|f| if let Fault::Garbage(n) = f { Some(*n) } else { None });
        if garbage.is_some_and(|n| n > 0 && self.notified.is_multiple_of(n)) {
            self.line("[engine] this line is no message {".to_owned());
        }
        self.line(format!(r#"{{"method":"{method}","params":{params}}}"#));
    }

    /// Whether this event is one of those that a fault loses.
    pub(super) fn loses_event(&self, seq: u64) -> bool {
        let every =
            self.options.fault(|f| if let Fault::DropEvents(n) = f { Some(*n) } else { None });
        every.is_some_and(|n| n > 0 && seq.is_multiple_of(n))
    }

    /// Whether this frame is one of those that a fault loses.
    pub(super) fn loses_frame(&mut self) -> bool {
        self.frames += 1;
        let every =
            self.options.fault(|f| if let Fault::DropFrames(n) = f { Some(*n) } else { None });
        every.is_some_and(|n| n > 0 && self.frames.is_multiple_of(n))
    }

    /// Whether no frame leaves any more.
    pub(super) fn frames_are_over(&self) -> bool {
        let silent =
            self.options.fault(|f| if let Fault::V4FallsSilent(n) = f { Some(*n) } else { None });
        self.v4_is_broken() || silent.is_some_and(|n| self.frames > n)
    }

    /// Whether the V4 channel is broken by now.
    pub(super) fn v4_is_broken(&self) -> bool {
        let after =
            self.options.fault(|f| if let Fault::V4Breaks(n) = f { Some(*n) } else { None });
        after.is_some_and(|n| self.frames > n)
    }

    /// Whether this frame, which goes in fragments, is one of those that a fault spoils.
    pub(super) fn spoils_fragments(&mut self) -> bool {
        self.fragmented += 1;
        let every =
            self.options.fault(|f| if let Fault::SpoilFragments(n) = f { Some(*n) } else { None });
        every.is_some_and(|n| n > 0 && self.fragmented.is_multiple_of(n))
    }
}
