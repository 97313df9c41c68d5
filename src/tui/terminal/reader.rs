//! The thread that reads the terminal. It blocks in the kernel while nothing is typed; only after
//! an unfinished escape sequence does it wait with a limit, to tell the Escape key from a sequence.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

use super::input::{Decoder, TermEvent};
use crate::tui::keymap::{Key, KeyCode};

/// How long what follows a lone escape may take before it is the key. Terminals and multiplexers
/// write a sequence at once, and stopping an agent must not wait.
const ESCAPE_WAIT_NANOS: i64 = 10_000_000;
/// How long the rest of a sequence that has begun may take: a slow link may tear it.
const TORN_WAIT_NANOS: i64 = 40_000_000;

/// Characters of one read from which on they were not typed.
const BURST: usize = 64;

/// What the thread tells.
#[derive(Debug)]
pub enum Input {
    /// An event, and when its bytes were read.
    Event(TermEvent, Instant),
    /// The terminal is gone.
    Eof,
}

/// The running reader; dropping it ends the thread.
#[derive(Debug)]
pub struct Reader {
    stop: Option<OwnedFd>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Reader {
    /// Starts reading standard input into `to`.
    pub fn start(to: mpsc::Sender<Input>) -> io::Result<Self> {
        // Not inherited by children: one that held the writing end would keep the thread here.
        let (wake, stop) = std::io::pipe()?;
        let (wake, stop) = (OwnedFd::from(wake), OwnedFd::from(stop));
        let thread = std::thread::Builder::new()
            .name("terminal-input".to_owned())
            .stack_size(256 * 1024)
            .spawn(move || read_loop(&wake, &to))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Ends the thread and waits for it, so that nobody else's input is read.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::warn!("the input thread panicked");
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.end();
    }
}

fn read_loop(wake: &OwnedFd, to: &mpsc::Sender<Input>) {
    let stdin = rustix::stdio::stdin();
    let mut decoder = Decoder::default();
    let mut buf = vec![0u8; 64 * 1024];
    loop {
        let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
        let nanos = if decoder.holds_escape() { ESCAPE_WAIT_NANOS } else { TORN_WAIT_NANOS };
        let limit = Timespec { tv_sec: 0, tv_nsec: nanos };
        let timeout = decoder.is_waiting().then_some(&limit);
        match poll(&mut fds, timeout) {
            Ok(0) => {
                if !send_all(to, decoder.pause()) {
                    return;
                }
                continue;
            }
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => break,
        }
        let [input, stop] = fds;
        if !stop.revents().is_empty() {
            return;
        }
        if input.revents().is_empty() {
            continue;
        }
        match rustix::io::read(stdin, &mut buf) {
            Ok(0) => break,
            Ok(n) => {
                let events = joined(decoder.feed(buf.get(..n).unwrap_or_default()));
                if !send_all(to, events) {
                    return;
                }
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => break,
        }
    }
    let _nobody_listens_any_more = to.blocking_send(Input::Eof);
}

/// Joins long runs of text, which no hands write in one read: a paste without brackets, whose lines
/// are no prompts and whose characters must not be taken in one by one. An Enter at the end of a
/// single line stays the key: programs that type for people end with it.
fn joined(events: Vec<TermEvent>) -> Vec<TermEvent> {
    let mut out = Vec::with_capacity(events.len());
    let mut run: Vec<TermEvent> = Vec::new();
    for event in events {
        if text_of(&event).is_some() {
            run.push(event);
        } else {
            end_run(&mut run, &mut out);
            out.push(event);
        }
    }
    end_run(&mut run, &mut out);
    out
}

fn end_run(run: &mut Vec<TermEvent>, out: &mut Vec<TermEvent>) {
    if run.len() < BURST {
        out.append(run);
        return;
    }
    let mut text: String = run.iter().filter_map(text_of).collect();
    let last = run.pop();
    run.clear();
    let is_one_line = text.find('\n') == Some(text.len() - 1);
    if is_one_line {
        text.pop();
    }
    out.push(TermEvent::Burst(text));
    if is_one_line {
        out.extend(last);
    }
}

/// What a key writes, line ends included.
fn text_of(event: &TermEvent) -> Option<char> {
    let TermEvent::Key(key) = event else { return None };
    match key.code {
        KeyCode::Enter if *key == Key::plain(KeyCode::Enter) => Some('\n'),
        KeyCode::Tab if *key == Key::plain(KeyCode::Tab) => Some('\t'),
        _ if *key == Key::ctrl('j') => Some('\n'),
        _ => key.text(),
    }
}

fn send_all(to: &mpsc::Sender<Input>, events: Vec<TermEvent>) -> bool {
    let now = Instant::now();
    events.into_iter().all(|event| to.blocking_send(Input::Event(event, now)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &str) -> Vec<TermEvent> {
        joined(Decoder::default().feed(bytes.as_bytes()))
    }

    #[test]
    fn a_long_run_of_text_is_one_burst_and_other_keys_stand_between() {
        let line = "a line of 文字 and\tmore of it\r";
        let text = line.repeat(40);
        let whole = text.replace('\r', "\n");
        assert_eq!(read(&text), [TermEvent::Burst(whole.clone())]);
        let up = TermEvent::Key(Key::plain(KeyCode::Up));
        let both = read(&format!("{text}\x1b[A{text}"));
        assert_eq!(both, [TermEvent::Burst(whole.clone()), up, TermEvent::Burst(whole)]);
    }

    #[test]
    fn what_hands_can_write_stays_keys_and_so_does_the_enter_after_one_line() {
        assert_eq!(read("yes please\r").len(), 11);
        let line = "w".repeat(BURST);
        let enter = TermEvent::Key(Key::plain(KeyCode::Enter));
        assert_eq!(read(&format!("{line}\r")), [TermEvent::Burst(line), enter]);
        // Input methods take back what they wrote: the order stays.
        let telex = "hie\x7f\x7fi\u{1ec3}n".repeat(20);
        assert!(read(&telex).iter().all(|event| matches!(event, TermEvent::Key(_))));
    }
}
