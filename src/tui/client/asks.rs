//! The requests that wait for the user. Each is answered exactly once: by the user, by "cancelled"
//! when it is left or taken back, or by the SDK's own error when the connection ends.

use std::collections::HashMap;

use agent_client_protocol::v1::Responder;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};

use super::connection::respond;
use crate::tui::msg::FormAnswer;

/// The requests that are open.
#[derive(Default)]
pub(super) struct Asks {
    made: u64,
    open: HashMap<u64, Open>,
    withdrawals: FuturesUnordered<BoxFuture<'static, u64>>,
}

struct Open {
    responder: Responder<Value>,
    permission: bool,
}

impl Asks {
    /// Keeps a request and returns its name towards the loop.
    pub(super) fn keep(&mut self, responder: Responder<Value>, permission: bool) -> u64 {
        self.made += 1;
        let ask = self.made;
        let cancellation = responder.cancellation();
        self.withdrawals.push(Box::pin(async move {
            cancellation.cancelled().await;
            ask
        }));
        self.open.insert(ask, Open { responder, permission });
        ask
    }

    /// Answers a permission request with an option exactly as offered, or "cancelled".
    pub(super) fn answer_permission(&mut self, ask: u64, option_id: Option<String>) {
        let outcome = match option_id {
            Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
            None => cancelled(true),
        };
        self.answer(ask, outcome);
    }

    /// Answers a form.
    pub(super) fn answer_form(&mut self, ask: u64, answer: FormAnswer) {
        let value = match answer {
            FormAnswer::Accept(content) => json!({"action": "accept", "content": content}),
            FormAnswer::Decline => json!({"action": "decline"}),
            FormAnswer::Cancel => cancelled(false),
        };
        self.answer(ask, value);
    }

    /// Waits for the agent to take a request back; answers it "cancelled" and returns its name.
    /// Pends for ever while nothing is open, so it can stand in a `select!`.
    pub(super) async fn next_withdrawn(&mut self) -> Option<u64> {
        loop {
            match self.withdrawals.next().await {
                Some(ask) => {
                    let Some(permission) = self.open.get(&ask).map(|o| o.permission) else {
                        continue;
                    };
                    self.answer(ask, cancelled(permission));
                    return Some(ask);
                }
                None => std::future::pending::<()>().await,
            }
        }
    }

    fn answer(&mut self, ask: u64, value: Value) {
        if let Some(open) = self.open.remove(&ask) {
            respond(open.responder, Ok(value));
        }
    }
}

impl Drop for Asks {
    /// Leaving in any way is "cancelled", never an approval.
    fn drop(&mut self) {
        for (_, open) in self.open.drain() {
            respond(open.responder, Ok(cancelled(open.permission)));
        }
    }
}

fn cancelled(permission: bool) -> Value {
    if permission {
        json!({"outcome": {"outcome": "cancelled"}})
    } else {
        json!({"action": "cancel"})
    }
}
