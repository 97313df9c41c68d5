//! Says when something in a directory changed: by inotify on Linux, elsewhere (and when inotify
//! refuses) not at all. A hint only: the caller looks for itself, too. Called by the approval bridge.

use std::path::Path;

#[cfg(target_os = "linux")]
use tokio::net::unix::pipe::Receiver;

/// A watched directory.
#[derive(Debug)]
pub(super) struct Watch {
    #[cfg(target_os = "linux")]
    events: Option<Receiver>,
}

impl Watch {
    #[cfg(target_os = "linux")]
    pub(super) fn new(dir: &Path) -> Self {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        let open = || {
            let fd = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
            let events = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::DELETE;
            let _ = add_watch(&fd, dir, events).ok()?;
            // Not a pipe, but read like one; `AsyncFd` would need unsafe code.
            Receiver::from_owned_fd_unchecked(fd).ok()
        };
        Self { events: open() }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new(_dir: &Path) -> Self {
        Self {}
    }

    /// Announces nothing.
    pub(super) fn none() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            events: None,
        }
    }

    /// Waits for the next change; for ever where none is announced.
    #[cfg(target_os = "linux")]
    pub(super) async fn changed(&mut self) {
        let Some(events) = &self.events else { return std::future::pending().await };
        let mut buffer = [0_u8; 4096];
        match events.readable().await {
            // What changed does not matter; the caller reads its own file.
            Ok(()) => while events.try_read(&mut buffer).is_ok_and(|n| n > 0) {},
            Err(err) => {
                tracing::warn!(%err, "the directory can no longer be watched");
                self.events = None;
            }
        }
    }

    /// Waits for the next change; for ever where none is announced.
    #[cfg(not(target_os = "linux"))]
    pub(super) async fn changed(&mut self) {
        std::future::pending().await
    }
}
