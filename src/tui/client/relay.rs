//! Between the agent and the SDK: lets only so many updates be on their way to the loop at once.
//! The SDK's queues have no bound, so the bound is here; the agent is told what was taken and can
//! hold back itself. It also shows a guide where it was taken in: the answer that says so goes another
//! way than the updates around it, so an update of our own is put between them here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_client_protocol::{
    Client, ConnectTo, Error, RawJsonRpcId, RawJsonRpcMessage, RawJsonRpcNotification,
    RawJsonRpcParams, RawJsonRpcResponse, Role, TransportFrame,
};
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::channel::mpsc::UnboundedReceiver;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::wire;
use crate::join::{Way, join};
use crate::tui::agent_source::StartedAgent;

/// The request that guides a running turn.
const STEERING: &str = "_session/steering";
/// Weight of the updates between the relay and the loop: so many small ones, or some megabytes.
const IN_FLIGHT: usize = 1024;

/// Weighs the updates that are on their way to the loop.
#[derive(Debug, Default)]
pub(super) struct Flow {
    on_way: AtomicUsize,
    eased: Notify,
}

/// An update on its way; dropped when the loop has taken it.
#[derive(Debug)]
pub(super) struct OnWay {
    flow: Arc<Flow>,
    weight: usize,
}

impl OnWay {
    /// Takes over from the relay, which has weighed the same update.
    pub(super) fn new(flow: &Arc<Flow>, weight: usize) -> Self {
        Self { flow: Arc::clone(flow), weight }
    }

    /// Whether so much is on its way that the loop should not wait for its next frame.
    pub(super) fn is_crowded(&self) -> bool {
        self.flow.on_way.load(Ordering::Relaxed) >= IN_FLIGHT / 2
    }
}

impl Drop for OnWay {
    fn drop(&mut self) {
        let before = self.flow.on_way.fetch_sub(self.weight, Ordering::Relaxed);
        if before >= IN_FLIGHT && before - self.weight < IN_FLIGHT {
            self.flow.eased.notify_one();
        }
    }
}

impl Flow {
    fn count(&self, weight: usize) {
        self.on_way.fetch_add(weight, Ordering::Relaxed);
    }

    async fn depart(&self, weight: usize) {
        self.count(weight);
        while self.on_way.load(Ordering::Relaxed) >= IN_FLIGHT {
            self.eased.notified().await;
        }
    }
}

/// An agent whose updates are let through as fast as they are handled.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) started: StartedAgent,
    pub(super) flow: Arc<Flow>,
}

impl ConnectTo<Client> for Relay {
    async fn connect_to(
        self,
        client: impl ConnectTo<<Client as Role>::Counterpart>,
    ) -> Result<(), Error> {
        let StartedAgent { agent, taken } = self.started;
        let flow = &self.flow;
        let (guides_tx, guides) = futures::channel::mpsc::unbounded();
        let mut guides = Guides { asked: guides, open: Vec::new() };
        let outward = |frame: &TransportFrame, to: &Way| {
            if let Some(shown) = guides.taken_in(frame) {
                flow.count(weight_of(&shown));
                // A way that is closed ends with the frame that follows.
                to.unbounded_send(shown).ok();
            }
            let TransportFrame::Single(RawJsonRpcMessage::Notification(notification)) = frame
            else {
                return None;
            };
            taken.tell(1);
            (&*notification.method == "session/update").then(|| flow.depart(weight_of(frame)))
        };
        let inward = |frame: &TransportFrame| {
            if let Some(guide) = Guide::of(frame) {
                guides_tx.unbounded_send(guide).ok();
            }
        };
        join(agent, client, outward, inward).await
    }
}

/// What an update weighs, as the client will weigh it when it reads it.
fn weight_of(frame: &TransportFrame) -> usize {
    match frame {
        TransportFrame::Single(RawJsonRpcMessage::Notification(RawJsonRpcNotification {
            params: Some(RawJsonRpcParams::Object(params)),
            ..
        })) => wire::weight(params.values()),
        _ => wire::weight([]),
    }
}

/// A guide for the running turn that has no answer yet.
#[derive(Debug)]
struct Guide {
    id: RawJsonRpcId,
    session_id: Value,
    content: Value,
}

impl Guide {
    fn of(frame: &TransportFrame) -> Option<Self> {
        let TransportFrame::Single(RawJsonRpcMessage::Request(request)) = frame else {
            return None;
        };
        if &*request.method != STEERING {
            return None;
        }
        let params = serde_json::to_value(request.params.as_ref()?).ok()?;
        Some(Self {
            id: request.id.clone(),
            session_id: params.get("sessionId")?.clone(),
            content: params.pointer("/prompt/0")?.clone(),
        })
    }

    /// What was said, as an update that stands where it was taken in.
    fn shown(&self) -> Option<TransportFrame> {
        let update = json!({
            "sessionUpdate": "user_message_chunk", "content": self.content,
            "messageId": format!("guide-{}", self.id), "_meta": {"zcode": {"guided": true}},
        });
        let message = json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": self.session_id, "update": update}});
        serde_json::from_value(message).ok().map(TransportFrame::Single)
    }
}

/// The guides that have no answer yet.
#[derive(Debug)]
struct Guides {
    asked: UnboundedReceiver<Guide>,
    open: Vec<Guide>,
}

impl Guides {
    /// The update to show before this frame, when it is the answer to a guide that was taken in.
    fn taken_in(&mut self, frame: &TransportFrame) -> Option<TransportFrame> {
        let TransportFrame::Single(RawJsonRpcMessage::Response(response)) = frame else {
            return None;
        };
        while let Some(Some(guide)) = self.asked.next().now_or_never() {
            self.open.push(guide);
        }
        let (id, outcome) = match response {
            RawJsonRpcResponse::Result { id, result } => (id, result.get("outcome")),
            RawJsonRpcResponse::Error { id, .. } => (id, None),
        };
        let at = self.open.iter().position(|guide| guide.id == *id)?;
        let guide = self.open.swap_remove(at);
        if outcome.and_then(Value::as_str) == Some("injected") { guide.shown() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(message: Value) -> TransportFrame {
        TransportFrame::Single(serde_json::from_value(message).unwrap())
    }

    fn update(text: &str) -> TransportFrame {
        frame(json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}}))
    }

    fn request(id: u64) -> TransportFrame {
        frame(json!({"jsonrpc": "2.0", "id": id, "method": STEERING,
            "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "left"}]}}))
    }

    fn answer(id: u64, outcome: &str) -> TransportFrame {
        frame(json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}))
    }

    /// What the client is given of these frames, as the kinds of update.
    fn pumped(asked: &[u64], frames: Vec<TransportFrame>) -> Vec<String> {
        let (guides_tx, guides) = futures::channel::mpsc::unbounded();
        for id in asked {
            guides_tx.unbounded_send(Guide::of(&request(*id)).unwrap()).unwrap();
        }
        let mut guides = Guides { asked: guides, open: Vec::new() };
        let mut given = Vec::new();
        for frame in frames {
            given.extend(guides.taken_in(&frame));
            given.push(frame);
        }
        let name = |frame: TransportFrame| {
            let TransportFrame::Single(message) = frame else { return "malformed".to_owned() };
            let value = serde_json::to_value(&message).unwrap();
            let update = &value["params"]["update"];
            match update["sessionUpdate"].as_str() {
                Some(kind) => format!("{kind}: {}", update["content"]["text"].as_str().unwrap()),
                None => "answer".to_owned(),
            }
        };
        given.into_iter().map(name).collect()
    }

    #[test]
    fn a_guide_stands_between_what_came_before_it_and_what_follows_from_it() {
        let frames = vec![update("before"), answer(7, "injected"), update("after")];
        let got = pumped(&[7], frames);
        let want = [
            "agent_message_chunk: before",
            "user_message_chunk: left",
            "answer",
            "agent_message_chunk: after",
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn a_guide_that_was_not_taken_in_is_not_shown() {
        for outcome in ["queued", "promptRequired", "startedNewTurn", "failed"] {
            assert_eq!(pumped(&[7], vec![answer(7, outcome)]), ["answer"], "{outcome}");
        }
        assert_eq!(pumped(&[7], vec![answer(8, "injected")]), ["answer"], "not its answer");
    }
}
