//! Which terminal modes a stream of bytes leaves on: private modes, the keyboard stack, key
//! reporting, scroll region. A test must see every one of them, so this reads the bytes itself.

use std::collections::BTreeSet;

/// Modes that are on after some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// `CSI ? n h` without its `l`; 25 stands for a hidden cursor.
    private: BTreeSet<u32>,
    /// `CSI > flags u` without its `CSI < u`.
    keyboard_stack: i64,
    /// `CSI > 4 ; n m` (xterm's modifyOtherKeys) without its reset.
    modify_other_keys: bool,
    /// `CSI t ; b r` without `CSI r`.
    scroll_region: bool,
    /// Attributes other than plain.
    styled: bool,
}

impl Modes {
    pub(crate) fn after(bytes: &[u8]) -> Self {
        let mut modes = Self::default();
        let mut at = 0;
        while let Some(start) = bytes[at..].windows(2).position(|w| w == b"\x1b[") {
            let body = at + start + 2;
            let Some(len) = bytes[body..].iter().position(|b| (0x40..=0x7e).contains(b)) else {
                break;
            };
            modes.take(&String::from_utf8_lossy(&bytes[body..body + len]), bytes[body + len]);
            at = body + len + 1;
        }
        modes
    }

    fn take(&mut self, parameters: &str, last: u8) {
        let numbers = |text: &str| -> Vec<u32> {
            text.split([';', ':']).map(|n| n.parse().unwrap_or(0)).collect()
        };
        match (parameters.chars().next(), last) {
            (Some('?'), b'h' | b'l') => {
                for number in numbers(&parameters[1..]) {
                    // The cursor and wrapping are on by nature; all others are off.
                    let by_nature = matches!(number, 25 | 7);
                    if (last == b'h') == by_nature {
                        self.private.remove(&number);
                    } else {
                        self.private.insert(number);
                    }
                }
            }
            (Some('>'), b'u') => self.keyboard_stack += 1,
            (Some('<'), b'u') => {
                let count = numbers(&parameters[1..])[0].max(1);
                self.keyboard_stack = (self.keyboard_stack - i64::from(count)).max(0);
            }
            (Some('>'), b'm') => {
                let numbers = numbers(&parameters[1..]);
                if numbers[0] == 4 {
                    self.modify_other_keys = numbers.get(1).is_some_and(|level| *level > 0);
                }
            }
            (None, b'r') => self.scroll_region = false,
            (Some('0'..='9'), b'r') => self.scroll_region = true,
            (None | Some('0'..='9'), b'm') => {
                self.styled = numbers(parameters)
                    .last()
                    .is_some_and(|n| *n != 0 && *n != 39 && *n != 49 && *n != 59);
            }
            _ => {}
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

#[test]
fn modes_left_on_are_seen() {
    let clean = |bytes: &[u8]| Modes::after(bytes).is_clean();
    assert!(clean(b"\x1b[?1049h\x1b[?25l\x1b[?2004h hello \x1b[?2004l\x1b[?25h\x1b[?1049l"));
    assert!(!clean(b"\x1b[?1049h\x1b[?1049l\x1b[?25l"));
    assert!(!clean(b"\x1b[?1000;1006h\x1b[?1000l"));
    assert!(clean(b"\x1b[>1u\x1b[<u") && !clean(b"\x1b[>1u\x1b[>1u\x1b[<1u"));
    assert!(clean(b"\x1b[>4;2m\x1b[>4;0m") && !clean(b"\x1b[>4;2m"));
    assert!(clean(b"\x1b[2;5r\x1b[r") && !clean(b"\x1b[2;5r"));
    assert!(clean(b"\x1b[1;31mred\x1b[0m") && clean(b"\x1b[31mred\x1b[m") && !clean(b"\x1b[7m"));
}
