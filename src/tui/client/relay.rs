//! Between the agent and the SDK: lets only so many updates be on their way to the loop at once.
//! The SDK's queues have no bound, so the bound is here; the agent is told what was taken and can
//! hold back itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_client_protocol::{Client, ConnectTo, Error, RawJsonRpcMessage, Role, TransportFrame};
use tokio::sync::Notify;

use crate::join::join;
use crate::tui::agent_source::StartedAgent;

/// Updates between the relay and the loop.
const IN_FLIGHT: usize = 256;

/// Counts the updates that are on their way to the loop.
#[derive(Debug, Default)]
pub(super) struct Flow {
    on_way: AtomicUsize,
    eased: Notify,
}

impl Flow {
    /// An update has reached the loop's channel.
    pub(super) fn arrived(&self) {
        if self.on_way.fetch_sub(1, Ordering::Relaxed) == IN_FLIGHT {
            self.eased.notify_one();
        }
    }

    async fn depart(&self) {
        self.on_way.fetch_add(1, Ordering::Relaxed);
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
        let outward = |frame: &TransportFrame| {
            let TransportFrame::Single(RawJsonRpcMessage::Notification(notification)) = frame
            else {
                return None;
            };
            taken.tell(1);
            (&*notification.method == "session/update").then(|| flow.depart())
        };
        join(agent, client, outward, |_| ()).await
    }
}
