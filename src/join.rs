//! An agent and a client of one process joined, with something done for each frame that passes.
//! Owns the way between two connections and nothing that is said on it. Used by the gauge of
//! in-process clients, by `--trace`, and by the terminal's own bound on what is on its way.

use std::future::Future;
use std::pin::pin;

use agent_client_protocol::{ConnectTo, Error, Role, TransportFrame};
use futures::StreamExt as _;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender};
use futures::future::{Either, OptionFuture, join as both, pending, ready};

/// The way that frames take to one side.
pub(crate) type Way = UnboundedSender<TransportFrame>;

/// Runs both sides until the client's has ended, or the agent's has and everything it said has
/// passed. Each frame to the client is shown to `outward` before it passes; what that returns is
/// awaited before the next one, and it can put frames of its own before it. Each frame to the agent is shown to `inward`.
///
/// # Errors
/// The first error of either side.
pub async fn join<C: Role, P: Future<Output = ()>>(
    agent: impl ConnectTo<C>,
    client: impl ConnectTo<C::Counterpart>,
    mut outward: impl FnMut(&TransportFrame, &Way) -> Option<P>,
    mut inward: impl FnMut(&TransportFrame),
) -> Result<(), Error> {
    let (agent, agent_driver) = agent.into_channel_and_future();
    let (client, client_driver) = client.into_channel_and_future();
    let (agent_rx, agent_tx) = agent.into_parts();
    let (client_rx, client_tx) = client.into_parts();
    let mut copies = pin!(both(
        pass(agent_rx, client_tx, &mut outward),
        pass(client_rx, agent_tx, |frame, _way| {
            inward(frame);
            None::<std::future::Ready<()>>
        }),
    ));
    // A side without work of its own is a pair of channels: its end is theirs.
    let mut agent_side = pin!(agent_driver.map_or(Either::Right(ready(Ok(()))), Either::Left));
    let mut client_side = pin!(client_driver.map_or(Either::Right(pending()), Either::Left));
    let (mut agent_done, mut copied) = (false, false);
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

async fn pass<P: Future<Output = ()>>(
    mut from: UnboundedReceiver<TransportFrame>,
    to: Way,
    mut look: impl FnMut(&TransportFrame, &Way) -> Option<P>,
) {
    while let Some(frame) = from.next().await {
        let after = OptionFuture::from(look(&frame, &to));
        if to.unbounded_send(frame).is_err() {
            break;
        }
        after.await;
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::{Channel, UntypedRole};

    use super::*;

    fn frame(text: &str) -> TransportFrame {
        TransportFrame::parse_json(&format!(r#"{{"jsonrpc":"2.0","method":"{text}"}}"#))
    }

    #[tokio::test]
    async fn frames_pass_both_ways_are_shown_and_wait_for_what_was_asked() {
        let (agent, agent_end) = Channel::duplex();
        let (client, client_end) = Channel::duplex();
        let (go, gate) = tokio::sync::watch::channel(false);
        let shown = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let seen = shown.clone();
        let work = tokio::spawn(async move {
            let outward = |_: &TransportFrame, _: &Way| {
                let mut gate = gate.clone();
                Some(async move { drop(gate.wait_for(|open| *open).await) })
            };
            let inward = |_: &TransportFrame| {
                seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            };
            join::<UntypedRole, _>(agent_end, client_end, outward, inward).await
        });
        let (mut client_rx, client_tx) = client.into_parts();
        let (mut agent_rx, agent_tx) = agent.into_parts();
        agent_tx.unbounded_send(frame("first")).unwrap();
        agent_tx.unbounded_send(frame("second")).unwrap();
        client_tx.unbounded_send(frame("back")).unwrap();
        client_rx.next().await.unwrap();
        agent_rx.next().await.unwrap();
        assert!(futures::FutureExt::now_or_never(client_rx.next()).is_none(), "it waits");
        go.send_replace(true);
        client_rx.next().await.unwrap();
        assert_eq!(shown.load(std::sync::atomic::Ordering::Relaxed), 1);
        drop((client_tx, agent_tx));
        work.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_ends_ends_it_and_says_how() {
        struct Failing;
        impl ConnectTo<UntypedRole> for Failing {
            async fn connect_to(self, _agent: impl ConnectTo<UntypedRole>) -> Result<(), Error> {
                Err(Error::internal_error())
            }
        }
        let (_agent, agent_end) = Channel::duplex();
        let nothing = |_: &TransportFrame, _: &Way| None::<std::future::Ready<()>>;
        let outcome = join::<UntypedRole, _>(agent_end, Failing, nothing, |_| ()).await;
        assert!(outcome.is_err());
    }
}
