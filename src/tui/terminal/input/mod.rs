//! Bytes from the terminal to events. Pure: a [`Decoder`] holds what is not complete yet and never
//! blocks; the reader thread in `terminal::reader` feeds it and tells it when a pause is over.
//!
//! Our own decoder, because what a terminal may send is more than keys: late answers to queries
//! must not appear as text, focus reports may fall into a paste, `CSI 27;m;k~` and `CSI k;m u` are
//! two spellings of one key, and a multi-byte character may be split over two reads.

use crate::tui::keymap::{Key, KeyCode};

/// Something that the terminal sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermEvent {
    /// A key press.
    Key(Key),
    /// A bracketed paste; line ends are `\n` whatever the terminal sent.
    Paste(String),
    /// Text and line ends that came all at once without the brackets of a paste: more than hands
    /// write in the time.
    Burst(String),
    /// A mouse button or wheel.
    Mouse(Mouse),
    /// The window got or lost the focus.
    Focus(bool),
    /// The answer to one of our queries.
    Reply(Reply),
}

/// A mouse event; cells count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mouse {
    /// What happened.
    pub kind: MouseKind,
    /// Column.
    pub x: u16,
    /// Row.
    pub y: u16,
}

/// What the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseKind {
    /// Left button pressed.
    Press,
    /// Moved with the left button held.
    Drag,
    /// Left button released.
    Release,
    /// Wheel up.
    WheelUp,
    /// Wheel down.
    WheelDown,
}

/// An answer to a query of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The terminal knows the kitty keyboard protocol (`CSI ? flags u`).
    KittyKeyboard,
    /// State of a private mode (`CSI ? mode ; state $ y`): 1 and 2 mean that it can be set.
    Mode {
        /// Number of the mode.
        mode: u16,
        /// 0 unknown, 1 set, 2 reset, 3 and 4 fixed.
        state: u16,
    },
    /// Primary device attributes: every terminal answers this, so earlier queries are settled.
    DeviceAttributes,
    /// The background colour, 8 bits a channel (OSC 11).
    Background(u8, u8, u8),
}

const PASTE_END: &[u8] = b"\x1b[201~";
/// An unfinished sequence longer than this is no sequence; a paste has no limit.
const MAX_SEQUENCE: usize = 4096;

/// Turns bytes into events and keeps what is incomplete.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

enum Step {
    /// Consumed so many bytes, with an event or without.
    Done(usize, Option<TermEvent>),
    /// A bracketed paste begins after so many bytes.
    PasteStart(usize),
    /// Needs more bytes.
    More,
}

impl Decoder {
    /// Whether bytes are held back that a pause would settle (a lone escape).
    pub fn is_waiting(&self) -> bool {
        self.paste.is_none() && !self.pending.is_empty()
    }

    /// Whether all that is held back is an escape, which may be the key.
    pub fn holds_escape(&self) -> bool {
        self.paste.is_none() && self.pending == [0x1b]
    }

    /// Takes bytes and returns the events that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<TermEvent> {
        self.pending.extend_from_slice(bytes);
        let mut out = Vec::new();
        let mut at = 0;
        loop {
            if self.paste.is_some() {
                let rest = self.pending.split_off(at);
                self.pending.clear();
                at = 0;
                match self.feed_paste(rest) {
                    Some(event) => out.push(event),
                    None => break,
                }
                continue;
            }
            let rest = self.pending.get(at..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            match step(rest) {
                Step::Done(n, event) => {
                    at += n.max(1);
                    out.extend(event);
                }
                Step::PasteStart(n) => {
                    at += n;
                    self.paste = Some(Vec::new());
                }
                Step::More if rest.len() > MAX_SEQUENCE => at = self.pending.len(),
                Step::More => break,
            }
        }
        self.pending.drain(..at.min(self.pending.len()));
        out
    }

    /// Says that nothing followed: a held escape is the Escape key, a torn sequence is dropped.
    pub fn pause(&mut self) -> Vec<TermEvent> {
        if self.paste.is_some() || self.pending.is_empty() {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.pending);
        match held.as_slice() {
            [0x1b] => vec![TermEvent::Key(Key::plain(KeyCode::Esc))],
            [0x1b, 0x1b] => vec![TermEvent::Key(Key::plain(KeyCode::Esc)); 2],
            [0x1b, c @ (b'[' | b'O' | b']' | b'P')] => {
                let alt = Key { alt: true, ..Key::plain(KeyCode::Char(char::from(*c))) };
                vec![TermEvent::Key(alt)]
            }
            _ => Vec::new(),
        }
    }

    /// Collects paste bytes; returns the paste when its end has come, the rest stays pending.
    fn feed_paste(&mut self, rest: Vec<u8>) -> Option<TermEvent> {
        let buf = self.paste.as_mut()?;
        // The end mark may be split over two reads: search from a little before the new bytes.
        let from = buf.len().saturating_sub(PASTE_END.len());
        buf.extend(rest);
        let end = find(buf.get(from..).unwrap_or_default(), PASTE_END)? + from;
        let mut body = self.paste.take()?;
        self.pending = body.split_off(end).split_off(PASTE_END.len());
        Some(TermEvent::Paste(clean_paste(&body)))
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

/// Makes a paste text: CR and CRLF are line ends, and reports that fell into it are taken out.
fn clean_paste(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        if let Some(after) =
            rest.strip_prefix("\x1b[I").or_else(|| rest.strip_prefix("\x1b[O")).or_else(|| {
                rest.strip_prefix("\x1b[<").and_then(|r| {
                    let end = r.find(['M', 'm'])?;
                    let (digits, after) = r.split_at_checked(end)?;
                    let ok = digits.bytes().all(|b| b.is_ascii_digit() || b == b';');
                    ok.then(|| after.get(1..)).flatten()
                })
            })
        {
            rest = after;
            continue;
        }
        match c {
            '\r' => {
                out.push('\n');
                if let Some(after) = rest.strip_prefix("\r\n") {
                    rest = after;
                    continue;
                }
            }
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    out
}

fn step(bytes: &[u8]) -> Step {
    match bytes {
        [] => Step::More,
        [0x1b, rest @ ..] => escape(rest),
        [b, ..] if *b < 0x20 || *b == 0x7f => Step::Done(1, Some(TermEvent::Key(control(*b)))),
        _ => character(bytes),
    }
}

/// A control byte is a key whatever keyboard protocol was agreed on.
fn control(byte: u8) -> Key {
    match byte {
        0x00 => Key::ctrl(' '),
        0x08 => Key::ctrl('h'),
        0x09 => Key::plain(KeyCode::Tab),
        0x0d => Key::plain(KeyCode::Enter),
        0x1b => Key::plain(KeyCode::Esc),
        0x7f => Key::plain(KeyCode::Backspace),
        0x01..=0x1a => Key::ctrl(char::from(byte + 0x60)),
        other => Key::ctrl(char::from(other + 0x40)),
    }
}

fn character(bytes: &[u8]) -> Step {
    let need = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 1,
    };
    let Some(chunk) = bytes.get(..need) else {
        // Wait for the rest only while it can still become a character.
        let ok = bytes.iter().skip(1).all(|b| b & 0xc0 == 0x80);
        return if ok { Step::More } else { Step::Done(1, None) };
    };
    match std::str::from_utf8(chunk).ok().and_then(|s| s.chars().next()) {
        Some(c) => Step::Done(need, Some(TermEvent::Key(Key::plain(KeyCode::Char(c))))),
        None => Step::Done(1, None),
    }
}

/// `rest` is what follows ESC.
fn escape(rest: &[u8]) -> Step {
    match rest {
        [] => Step::More,
        [b'[', body @ ..] => csi(body),
        [b'O', body @ ..] => ss3(body),
        [b']' | b'P' | b'_' | b'^' | b'X', body @ ..] => string_sequence(rest, body),
        // ESC ESC is Escape; the second one may begin a sequence of its own.
        [0x1b, ..] => Step::Done(1, Some(TermEvent::Key(Key::plain(KeyCode::Esc)))),
        _ => match step(rest) {
            Step::Done(n, Some(TermEvent::Key(key))) => {
                Step::Done(n + 1, Some(TermEvent::Key(Key { alt: true, ..key })))
            }
            Step::Done(n, _) => Step::Done(n + 1, None),
            _ => Step::More,
        },
    }
}

fn ss3(body: &[u8]) -> Step {
    let Some(last) = body.first() else { return Step::More };
    let key = match last {
        b'A'..=b'D' | b'H' | b'F' => letter_key(*last),
        b'P'..=b'S' => Some(KeyCode::F(last - b'P' + 1)),
        b'M' => Some(KeyCode::Enter),
        _ => None,
    };
    Step::Done(3, key.map(|code| TermEvent::Key(Key::plain(code))))
}

/// OSC, DCS, APC, PM and SOS: swallowed to their end, except the one answer that we asked for.
fn string_sequence(rest: &[u8], body: &[u8]) -> Step {
    let bel = body.iter().position(|b| *b == 0x07).map(|i| (i, 1));
    let st = find(body, b"\x1b\\").map(|i| (i, 2));
    let end = [bel, st].into_iter().flatten().min();
    let Some((at, len)) = end else { return Step::More };
    let text = String::from_utf8_lossy(body.get(..at).unwrap_or_default()).into_owned();
    let reply = (rest.first() == Some(&b']')).then(|| background(&text)).flatten();
    Step::Done(2 + at + len, reply.map(TermEvent::Reply))
}

/// `11;rgb:RRRR/GGGG/BBBB`.
fn background(text: &str) -> Option<Reply> {
    let mut parts = text.strip_prefix("11;rgb:")?.split('/');
    let mut channel = || {
        let hex = parts.next()?;
        u8::from_str_radix(hex.get(..2)?, 16).ok()
    };
    Some(Reply::Background(channel()?, channel()?, channel()?))
}

/// `body` is what follows `ESC [`.
fn csi(body: &[u8]) -> Step {
    // The old X10 report has three raw bytes that look like nothing else.
    if body.first() == Some(&b'M') {
        return if body.len() < 4 { Step::More } else { Step::Done(6, None) };
    }
    let Some(end) = body.iter().position(|b| (0x40..=0x7e).contains(b)) else {
        return match body.iter().position(|b| *b < 0x20 || *b == 0x7f) {
            // A control byte inside breaks the sequence off; it is a key itself.
            Some(at) => Step::Done(2 + at, None),
            None => Step::More,
        };
    };
    let last = body.get(end).copied().unwrap_or_default();
    let params = String::from_utf8_lossy(body.get(..end).unwrap_or_default()).into_owned();
    let used = 2 + end + 1;
    if last == b'~' && params == "200" {
        return Step::PasteStart(used);
    }
    // `CSI [ A` to `CSI [ E` are the function keys of the Linux console.
    if last == b'[' && params.is_empty() {
        return match body.get(1) {
            None => Step::More,
            Some(c @ b'A'..=b'E') => {
                Step::Done(used + 1, Some(TermEvent::Key(Key::plain(KeyCode::F(c - b'A' + 1)))))
            }
            Some(_) => Step::Done(used, None),
        };
    }
    Step::Done(used, csi_event(&params, last))
}

fn csi_event(params: &str, last: u8) -> Option<TermEvent> {
    if let Some(rest) = params.strip_prefix('<') {
        return mouse(rest, last == b'M').map(TermEvent::Mouse);
    }
    if let Some(rest) = params.strip_prefix('?') {
        let reply = match last {
            b'u' => Reply::KittyKeyboard,
            b'c' => Reply::DeviceAttributes,
            b'y' => {
                let (mode, state) = rest.strip_suffix('$')?.split_once(';')?;
                Reply::Mode { mode: mode.parse().ok()?, state: state.parse().ok()? }
            }
            _ => return None,
        };
        return Some(TermEvent::Reply(reply));
    }
    let mut fields = params.split(';');
    let first = fields.next().unwrap_or_default();
    let second = fields.next().unwrap_or_default();
    let third = fields.next().unwrap_or_default();
    match last {
        b'I' if params.is_empty() => Some(TermEvent::Focus(true)),
        b'O' if params.is_empty() => Some(TermEvent::Focus(false)),
        b'Z' => Some(TermEvent::Key(Key { shift: true, ..Key::plain(KeyCode::Tab) })),
        b'A'..=b'D' | b'H' | b'F' => {
            letter_key(last).and_then(|code| with_modifiers(code, second)).map(TermEvent::Key)
        }
        b'P' | b'Q' | b'S' => {
            with_modifiers(KeyCode::F(last - b'P' + 1), second).map(TermEvent::Key)
        }
        b'u' => unicode_key(first, second).map(TermEvent::Key),
        b'~' if first == "27" => unicode_key(third, second).map(TermEvent::Key),
        b'~' => {
            let code = tilde_key(first.parse().ok()?)?;
            with_modifiers(code, second).map(TermEvent::Key)
        }
        _ => None,
    }
}

fn letter_key(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        _ => return None,
    })
}

fn tilde_key(n: u16) -> Option<KeyCode> {
    Some(match n {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(u8::try_from(n - 10).ok()?),
        17..=21 => KeyCode::F(u8::try_from(n - 11).ok()?),
        23..=24 => KeyCode::F(u8::try_from(n - 12).ok()?),
        _ => return None,
    })
}

/// `modifiers` is `1 + bits`, with `:event` after it in the kitty protocol; a release is no key.
fn with_modifiers(code: KeyCode, modifiers: &str) -> Option<Key> {
    let (bits, event) = modifiers.split_once(':').unwrap_or((modifiers, "1"));
    if event == "3" {
        return None;
    }
    let bits = bits.parse::<u16>().unwrap_or(1).saturating_sub(1);
    Some(Key {
        code,
        shift: bits & 1 != 0 && !matches!(code, KeyCode::Char(_)),
        alt: bits & (2 | 32) != 0,
        ctrl: bits & 4 != 0,
    })
}

/// A key by its code point, as both `CSI k;m u` and `CSI 27;m;k ~` give it.
fn unicode_key(codepoint: &str, modifiers: &str) -> Option<Key> {
    let mut alternates = codepoint.split(':');
    let base: u32 = alternates.next()?.parse().ok()?;
    let shifted = alternates.next().and_then(|s| s.parse::<u32>().ok());
    let code = match base {
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        57399..=57408 => KeyCode::Char(char::from_u32(base - 57399 + u32::from('0'))?),
        // Lone modifiers and media keys are reported here; they write nothing.
        57344..=63743 => return None,
        _ => {
            let shift =
                modifiers.split(':').next()?.parse::<u16>().unwrap_or(1).saturating_sub(1) & 1;
            let plain = char::from_u32(base)?;
            let c = match shifted.and_then(char::from_u32) {
                Some(c) if shift != 0 => c,
                _ if shift != 0 => plain.to_uppercase().next().unwrap_or(plain),
                _ => plain,
            };
            KeyCode::Char(c)
        }
    };
    let mut key = with_modifiers(code, modifiers)?;
    if key.ctrl
        && let KeyCode::Char(c) = key.code
    {
        // Control keys have one spelling, with or without the protocol.
        key.code = KeyCode::Char(c.to_ascii_lowercase());
    }
    Some(key)
}

fn mouse(params: &str, press: bool) -> Option<Mouse> {
    let mut n = params.split(';').map(|p| p.parse::<u16>().ok());
    let (button, x, y) = (n.next()??, n.next()??, n.next()??);
    let kind = match (button & !0b1_1100, press) {
        (64, true) => MouseKind::WheelUp,
        (65, true) => MouseKind::WheelDown,
        (0, true) => MouseKind::Press,
        (32, _) => MouseKind::Drag,
        (0, false) => MouseKind::Release,
        _ => return None,
    };
    Some(Mouse { kind, x: x.saturating_sub(1), y: y.saturating_sub(1) })
}

#[cfg(test)]
mod tests;
