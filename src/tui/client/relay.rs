//! Between the agent and the SDK: lets only so many updates be on their way to the loop at once.
//! The SDK's queues have no bound, so the bound is here; the agent is told what was taken and can
//! hold back itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_client_protocol::{
    Client, ConnectTo, ConnectionDriver, Error, RawJsonRpcMessage, Role, TransportFrame,
};
use futures::StreamExt as _;
use tokio::sync::Notify;

use crate::tui::agent_source::{StartedAgent, TakenBy};

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
        let (client, client_driver) = client.into_channel_and_future();
        let (agent, agent_driver) = ConnectTo::<Client>::into_channel_and_future(agent);
        let (agent_rx, agent_tx) = agent.into_parts();
        let (client_rx, client_tx) = client.into_parts();
        let to_client = pump(agent_rx, client_tx, &taken, &self.flow);
        let to_agent = async move {
            let mut client_rx = client_rx;
            while let Some(frame) = client_rx.next().await {
                if agent_tx.unbounded_send(frame).is_err() {
                    break;
                }
            }
        };
        let agent_side = drive(agent_driver);
        let client_side = drive(client_driver);
        let mut copies = std::pin::pin!(async { futures::future::join(to_client, to_agent).await });
        let mut agent_side = std::pin::pin!(agent_side);
        let mut client_side = std::pin::pin!(client_side);
        let mut agent_done = false;
        let mut copied = false;
        loop {
            tokio::select! {
                done = &mut client_side => return done,
                done = &mut agent_side, if !agent_done => {
                    done?;
                    agent_done = true;
                }
                _ = &mut copies, if !copied => copied = true,
            }
            if agent_done && copied {
                return Ok(());
            }
        }
    }
}

async fn drive(driver: Option<ConnectionDriver>) -> Result<(), Error> {
    match driver {
        Some(driver) => driver.await,
        None => std::future::pending().await,
    }
}

async fn pump(
    mut from: futures::channel::mpsc::UnboundedReceiver<TransportFrame>,
    to: futures::channel::mpsc::UnboundedSender<TransportFrame>,
    taken: &TakenBy,
    flow: &Flow,
) {
    while let Some(frame) = from.next().await {
        let mut counted = false;
        if let TransportFrame::Single(RawJsonRpcMessage::Notification(notification)) = &frame {
            taken.tell(1);
            counted = &*notification.method == "session/update";
        }
        if to.unbounded_send(frame).is_err() {
            break;
        }
        if counted {
            flow.depart().await;
        }
    }
}
