//! The terminal's modes: set at the start, and put back in the right order however we end.
//!
//! Order of leaving: our modes off, the keyboard protocol popped, input that was still on its way
//! read and dropped (it would be typed into the shell otherwise), alternate screen left, cursor
//! shown, and last the terminal settings of our first snapshot.

use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{self, OptionalActions, Termios};

/// Alternate screen, paste brackets, focus reports.
const ENTER: &str = "\x1b[?1049h\x1b[?7l\x1b[?2004h\x1b[?1004h\x1b[?25l";
/// Mouse buttons, drags and wheel, with wide coordinates.
const MOUSE: &str = "\x1b[?1002h\x1b[?1006h";
/// Asks what is safe to use: keyboard protocol, synchronized output, the background,
/// and a question that every
/// terminal answers. Nothing waits for the answers.
pub(super) const QUERIES: &str = "\x1b[?u\x1b[?2026$p\x1b]11;?\x1b\\\x1b[c";
const MODES_OFF: &str = "\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[?2026l";
const LEAVE: &str = "\x1b[0m\x1b[?7h\x1b[?1049l\x1b[?25h";
const KEYBOARD_PUSH: &str = "\x1b[>1u";
const KEYBOARD_POP: &str = "\x1b[<u";
/// How long input on its way is waited for when the modes are off.
const DRAIN: Duration = Duration::from_millis(40);

/// The settings before we touched them; also what the panic hook restores.
static ORIGINAL: OnceLock<Termios> = OnceLock::new();
static ENTERED: AtomicBool = AtomicBool::new(false);
static KEYBOARD: AtomicBool = AtomicBool::new(false);

/// The terminal in our modes; dropping it puts everything back.
#[derive(Debug)]
pub struct TerminalGuard {
    mouse: bool,
}

impl TerminalGuard {
    /// Takes the terminal over, the mouse only if `mouse`. Fails when standard input or output is
    /// none.
    /// What puts the screen in our modes is returned: it goes out with the first frame.
    pub fn enter(mouse: bool) -> io::Result<(Self, String)> {
        let original = termios::tcgetattr(rustix::stdio::stdin())?;
        // Only the first snapshot counts: a later one might be of our own raw mode.
        let _already_kept = ORIGINAL.set(original);
        install_panic_hook();
        let guard = Self { mouse };
        let modes = guard.resume()?;
        Ok((guard, modes))
    }

    /// Takes the terminal again, after [`TerminalGuard::suspend`]. Returns what is to be written
    /// ahead of the next frame.
    pub fn resume(&self) -> io::Result<String> {
        let Some(original) = ORIGINAL.get() else { return Ok(String::new()) };
        let mut raw = original.clone();
        raw.make_raw();
        termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
        ENTERED.store(true, Ordering::SeqCst);
        Ok(format!("{ENTER}{}{QUERIES}", if self.mouse { MOUSE } else { "" }))
    }

    /// The terminal said that it knows the keyboard protocol: use it, once.
    pub fn use_keyboard_protocol(&self) -> io::Result<()> {
        if KEYBOARD.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(KEYBOARD_PUSH.as_bytes())?;
        out.flush()
    }

    /// Hands the terminal back as it was.
    pub fn suspend(&self) {
        restore();
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts everything back, once. Errors have nowhere to go: the terminal may be gone already.
fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout().lock();
    let pop = if KEYBOARD.swap(false, Ordering::SeqCst) { KEYBOARD_POP } else { "" };
    let _terminal_may_be_gone = write!(out, "{MODES_OFF}{pop}").and_then(|()| out.flush());
    drain();
    let _terminal_may_be_gone = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
    if let Some(original) = ORIGINAL.get() {
        let _terminal_may_be_gone =
            termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, original);
    }
}

/// Reads and drops what arrives while the terminal still sends reports of the modes just ended.
fn drain() {
    let stdin = rustix::stdio::stdin();
    let deadline = std::time::Instant::now() + DRAIN;
    let mut buf = [0u8; 4096];
    while let Some(left) = deadline.checked_duration_since(std::time::Instant::now()) {
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let timeout =
            rustix::event::Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut fds, Some(&timeout)) {
            Ok(n) if n > 0 => match rustix::io::read(stdin, &mut buf) {
                Ok(n) if n > 0 => {}
                _ => return,
            },
            _ => return,
        }
    }
}

fn install_panic_hook() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

/// Columns and rows of the terminal.
pub fn size() -> (u16, u16) {
    match termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}
