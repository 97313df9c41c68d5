//! PURE. The engine's queue of inputs as `_zcode/queue/*`: seen, edited, deleted, sent now, and whether it runs by itself.
//! The state comes by V4; every change is told to the client in `_meta.zcode.queue` of a `session_info_update`.

use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::{Error as AcpError, ErrorCode};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Cont, Machine, ReqId, invalid_params};
use crate::bridge::engine::EngineError;
use crate::bridge::engine::v4::commands::{self, Command, Reply};
use crate::bridge::engine::v4::state::{BackgroundWork, Queue, QueueItem};
use crate::bridge::session::failure;

/// How often a change is decided anew because the session's state moved on.
const MAX_TRIES: u8 = 2;

impl Machine {
    pub(crate) fn queue_request(&mut self, req: ReqId, name: &str, params: &Value) {
        if name == "queue/list" {
            return self.respond(req, Ok(self.queue_view()));
        }
        let command = match queue_command(name, params) {
            Ok(command) => command,
            Err(reason) => return self.respond(req, Err(invalid_params(reason))),
        };
        if !self.v4.is_known() {
            let text = "this engine has no queue that can be changed";
            return self.respond(req, Err(AcpError::new(ErrorCode::INTERNAL_ERROR, text)));
        }
        self.change_queue(req, &command, 0);
    }

    fn change_queue(&mut self, req: ReqId, command: &Command, tries: u8) {
        let kept = Box::new(command.clone());
        self.v4_command(command, |_| Cont::QueueCommand { req, command: kept, tries });
    }

    /// `_zcode/state`: what the engine says of the session beside its messages, as last heard by V4.
    pub(crate) fn state_request(&mut self, req: ReqId) {
        let work = |it: &BackgroundWork| {
            json!({
                "workId": it.work_id, "kind": it.kind, "title": it.title, "status": it.status,
                "cancellable": it.cancellable, "childSessionId": it.child_session_id,
            })
        };
        let state = json!({
            "live": self.v4.is_live(),
            "queue": self.queue_view(),
            "goal": self.v4.goal,
            "workspace": self.v4.workspace.config,
            "backgroundWorks": self.v4.works.iter().map(work).collect::<Vec<_>>(),
            "subagents": self.v4.children.running_ids(),
        });
        self.respond(req, Ok(state));
    }

    pub(crate) fn on_queue_command(
        &mut self,
        req: ReqId,
        command: &Command,
        tries: u8,
        reply: Result<Box<RawValue>, EngineError>,
    ) {
        let answer = match reply.and_then(|raw| failure::parse(&raw)) {
            Ok(answer) => answer,
            Err(error) => return self.respond(req, Err(failure::to_acp(&error))),
        };
        self.revision = answer.get("revisionAtDecision").and_then(Value::as_u64).or(self.revision);
        match commands::reply(&answer) {
            Reply::Accepted { .. } | Reply::Duplicate => {
                self.queue_was_changed(command);
                self.respond(req, Ok(json!({})));
            }
            // Decided on a state that had just changed: the answer names the one to decide on.
            Reply::Refused(refusal) if tries < MAX_TRIES && is_stale(&refusal) => {
                self.change_queue(req, command, tries + 1);
            }
            Reply::Refused(refusal) => {
                let text = refusal.message.unwrap_or_else(|| "the engine refused it".to_owned());
                let error = AcpError::new(ErrorCode::INTERNAL_ERROR, text)
                    .data(json!({"reason": refusal.reason_code}));
                self.respond(req, Err(error));
            }
        }
    }

    /// The engine did it. Its own word of the new state comes later by V4, on some builds not at all.
    fn queue_was_changed(&mut self, command: &Command) {
        let queue = &mut self.v4.queue;
        let is_it = |it: &QueueItem, id: &str| it.queue_item_id.as_deref() == Some(id);
        match command {
            Command::SetAutoDrain { enabled } => queue.auto_drain = Some(*enabled),
            Command::DeleteQueueItem { item_id } => queue.items.retain(|it| !is_it(it, item_id)),
            Command::EditQueueItem { item_id, text } => {
                for item in queue.items.iter_mut().filter(|it| is_it(it, item_id)) {
                    item.text = Some(text.clone());
                }
            }
            _ => return,
        }
        self.queue_changed();
    }

    fn queue_view(&self) -> Value {
        let queue = &self.v4.queue;
        let item = |it: &QueueItem| {
            json!({
                "itemId": it.queue_item_id, "text": it.text,
                "delivery": it.delivery.as_ref().and_then(|it| it.admitted.clone()),
                "state": it.steer.as_ref().and_then(|it| it.state.clone()),
                "reason": it.steer.as_ref().and_then(|it| it.reason_code.clone()),
            })
        };
        json!({
            "items": queue.items.iter().map(item).collect::<Vec<_>>(),
            "autoDrain": queue.auto_drain.unwrap_or(true),
            "pauseReason": queue.pause_reason,
            "waiting": self.queue.len(),
        })
    }

    /// The engine's queue changed: tell the client, once per change.
    pub(crate) fn queue_changed(&mut self) {
        self.look_after_queued();
        let view = self.queue_view();
        if self.v4.queue_told.as_ref() == Some(&view)
            || (self.v4.queue_told.is_none() && is_plain(&self.v4.queue))
        {
            return;
        }
        self.v4.queue_told = Some(view.clone());
        let mut meta = acp::Meta::new();
        meta.insert("zcode".to_owned(), json!({"queue": view}));
        let update = acp::SessionInfoUpdate::new().meta(meta);
        self.update(acp::SessionUpdate::SessionInfoUpdate(update));
    }
}

/// Empty, and running by itself: nothing to tell of.
fn is_plain(queue: &Queue) -> bool {
    queue.items.is_empty() && queue.auto_drain != Some(false) && queue.pause_reason.is_none()
}

pub(super) fn is_stale(refusal: &commands::Refusal) -> bool {
    let code = refusal.reason_code.as_deref();
    matches!(code, Some("guard.revisionMismatch" | "guard.baseRevisionRequired"))
}

fn queue_command(name: &str, params: &Value) -> Result<Command, String> {
    let text = |key: &str| {
        let found = params.get(key).and_then(Value::as_str).filter(|it| !it.is_empty());
        found.map(str::to_owned).ok_or(format!("{name}: {key} is missing"))
    };
    match name {
        "queue/edit" => {
            Ok(Command::EditQueueItem { item_id: text("itemId")?, text: text("text")? })
        }
        "queue/delete" => Ok(Command::DeleteQueueItem { item_id: text("itemId")? }),
        "queue/send_now" => Ok(Command::SendQueuedNow { item_id: text("itemId")? }),
        "queue/auto_drain" => {
            let enabled = params.get("enabled").and_then(Value::as_bool);
            Ok(Command::SetAutoDrain {
                enabled: enabled.ok_or("queue/auto_drain: enabled is missing")?,
            })
        }
        _ => Err(format!("{name} is not known")),
    }
}
