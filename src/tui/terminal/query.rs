//! Asks the terminal what it can do and waits a moment for the answers. For `doctor`; the chat asks
//! the same, and waits for nothing.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{self, OptionalActions, Termios};

use super::guard::QUERIES;
use super::input::{Decoder, Reply, TermEvent};

/// The terminal's settings, put back when dropped.
struct Raw(Termios);

impl Raw {
    fn enter() -> io::Result<Self> {
        let original = termios::tcgetattr(rustix::stdio::stdin())?;
        let mut raw = original.clone();
        raw.make_raw();
        termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self(original))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // What is still on its way would be typed into the shell.
        let flush = OptionalActions::Flush;
        let _terminal_may_be_gone = termios::tcsetattr(rustix::stdio::stdin(), flush, &self.0);
    }
}

/// The answers that came within the limit, up to the one that every terminal gives last. Fails when
/// standard input or output is no terminal.
pub fn ask(limit: Duration) -> io::Result<Vec<Reply>> {
    let _raw = Raw::enter()?;
    let mut out = io::stdout().lock();
    out.write_all(QUERIES.as_bytes())?;
    out.flush()?;
    drop(out);
    let deadline = Instant::now() + limit;
    let (mut decoder, mut replies) = (Decoder::default(), Vec::new());
    while let Some(left) = deadline.checked_duration_since(Instant::now()) {
        let stdin = rustix::stdio::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(0),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        if poll(&mut fds, Some(&timeout))? == 0 {
            break;
        }
        let mut buffer = [0_u8; 1024];
        let read = rustix::io::read(stdin, &mut buffer)?;
        let events = decoder.feed(buffer.get(..read).unwrap_or_default());
        replies.extend(events.into_iter().filter_map(|event| match event {
            TermEvent::Reply(reply) => Some(reply),
            _ => None,
        }));
        if read == 0 || replies.contains(&Reply::DeviceAttributes) {
            break;
        }
    }
    Ok(replies)
}
