//! The program that an engine's actor owns: a child process with its pipes. In tests also an engine
//! that is played in this process, so that a paused clock rules everything. Used by `actor` alone.

use std::io;
use std::pin::Pin;
use std::process::ExitStatus;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;

#[cfg(test)]
use super::played::{Played, PlayedInput};
use crate::process::Child;

/// A running engine, however it runs.
pub(super) enum Program {
    Child(Box<Child>),
    #[cfg(test)]
    Played(Played),
}

/// The way into it.
pub(super) enum Input {
    Pipe(pipe::Sender),
    #[cfg(test)]
    Played(PlayedInput),
}

/// What comes out of it.
pub(super) enum Output {
    Pipe(pipe::Receiver),
    #[cfg(test)]
    Played(tokio::io::DuplexStream),
}

impl Program {
    /// Hands out the two ends, once.
    pub(super) fn take_ends(&mut self) -> (Option<Input>, Option<Output>) {
        match self {
            Self::Child(child) => {
                (child.stdin.take().map(Input::Pipe), child.stdout.take().map(Output::Pipe))
            }
            #[cfg(test)]
            Self::Played(played) => played.take_ends(),
        }
    }

    /// Waits for its end. Cancel safe.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Child(child) => child.wait().await,
            #[cfg(test)]
            Self::Played(played) => played.wait().await,
        }
    }

    /// Its newest lines of standard error; with `patience`, once no more can come or it is over.
    pub(super) async fn last_words(&self, limit: usize, patience: Duration) -> Vec<String> {
        match self {
            Self::Child(child) => {
                let mut stderr = child.stderr();
                if !patience.is_zero() {
                    tokio::time::timeout(patience, stderr.closed()).await.ok();
                }
                stderr.lines(limit)
            }
            #[cfg(test)]
            Self::Played(_) => vec!["the played engine's last words".to_owned()],
        }
    }

    /// Ends it and everything it started within about `grace`.
    pub(super) async fn terminate(&mut self, grace: Duration) {
        match self {
            Self::Child(child) => drop(child.terminate(grace).await),
            #[cfg(test)]
            Self::Played(played) => played.end().await,
        }
    }
}

impl Input {
    /// Writes what it takes at once.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => pipe.try_write(bytes),
            #[cfg(test)]
            Self::Played(input) => input.try_write(bytes),
        }
    }

    /// Resolves when more may be written.
    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => pipe.writable().await,
            #[cfg(test)]
            Self::Played(input) => input.writable().await,
        }
    }
}

impl AsyncRead for Output {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            #[cfg(test)]
            Self::Played(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}
