use super::*;
use proptest::prelude::*;

fn decode(bytes: &[u8]) -> Vec<TermEvent> {
    let mut d = Decoder::default();
    let mut out = d.feed(bytes);
    out.extend(d.pause());
    out
}

fn key(text: &str) -> TermEvent {
    TermEvent::Key(Key::parse(text).unwrap())
}

#[test]
fn keys_have_one_meaning_in_every_spelling() {
    for (bytes, name) in [
        (&b"\r"[..], "enter"),
        (b"\n", "ctrl-j"),
        (b"\x1b\r", "alt-enter"),
        (b"\x1b[13;2u", "shift-enter"),
        (b"\x1b[27;2;13~", "shift-enter"),
        (b"\x1b[Z", "shift-tab"),
        (b"\x1b[9;2u", "shift-tab"),
        (b"\x1b[27;2;9~", "shift-tab"),
        (b"\x03", "ctrl-c"),
        (b"\x1b[99;5u", "ctrl-c"),
        (b"\x1b[27;5;99~", "ctrl-c"),
        (b"\x01", "ctrl-a"),
        (b"\x10", "ctrl-p"),
        (b"\x15", "ctrl-u"),
        (b"\x1f", "ctrl-_"),
        (b"\x7f", "backspace"),
        (b"\x1b\x7f", "alt-backspace"),
        (b"\x1b[A", "up"),
        (b"\x1bOA", "up"),
        (b"\x1b[1;3D", "alt-left"),
        (b"\x1b[1;5C", "ctrl-right"),
        (b"\x1b[5~", "pageup"),
        (b"\x1b[3;5~", "ctrl-delete"),
        (b"\x1bOP", "f1"),
        (b"\x1b[11~", "f1"),
        (b"\x1b", "esc"),
        (b"\x1b[27u", "esc"),
        (b"\x1bb", "alt-b"),
    ] {
        assert_eq!(decode(bytes), vec![key(name)], "{bytes:?}");
    }
}

#[test]
fn escape_twice_is_two_keys_and_hides_no_arrow() {
    assert_eq!(decode(b"\x1b\x1b"), vec![key("esc"), key("esc")]);
    assert_eq!(decode(b"\x1b\x1b[A"), vec![key("esc"), key("up")]);
}

#[test]
fn answers_of_the_terminal_never_become_text() {
    let late =
        b"\x1b]11;rgb:1e1e/2020/3030\x1b\\\x1b[?62;22c\x1b[?2026;2$y\x1b[?0u\x1bP>|tmux 3.4\x1b\\x";
    let events = decode(late);
    assert_eq!(
        events,
        vec![
            TermEvent::Reply(Reply::Background(0x1e, 0x20, 0x30)),
            TermEvent::Reply(Reply::DeviceAttributes),
            TermEvent::Reply(Reply::Mode { mode: 2026, state: 2 }),
            TermEvent::Reply(Reply::KittyKeyboard),
            key("x"),
        ]
    );
}

#[test]
fn a_paste_keeps_its_lines_and_drops_reports_that_fell_into_it() {
    assert_eq!(
        decode(b"\x1b[200~ab\x1b[Icd\r\ne\rf\ng\x1b[<35;1;2Mh\x1b[201~x"),
        vec![TermEvent::Paste("abcd\ne\nf\ngh".into()), key("x")]
    );
}

#[test]
fn a_key_release_is_no_key() {
    assert_eq!(decode(b"\x1b[97;1:3u"), vec![]);
    assert_eq!(decode(b"\x1b[97;1:1u"), vec![key("a")]);
}

#[test]
fn broken_bytes_are_dropped_and_what_follows_is_kept() {
    assert_eq!(decode(b"\xffa\xe4b"), vec![key("a"), key("b")]);
    assert_eq!(decode(b"\x1b[12\x03"), vec![key("ctrl-c")]);
}

#[test]
fn the_wheel_and_the_left_button_are_seen_whatever_is_held() {
    let m = |kind| TermEvent::Mouse(Mouse { kind, x: 4, y: 6 });
    assert_eq!(decode(b"\x1b[<64;5;7M"), vec![m(MouseKind::WheelUp)]);
    assert_eq!(decode(b"\x1b[<69;5;7M"), vec![m(MouseKind::WheelDown)]);
    assert_eq!(
        decode(b"\x1b[<0;5;7M\x1b[<0;5;7m"),
        vec![m(MouseKind::Press), m(MouseKind::Release)]
    );
}

proptest! {
    #[test]
    fn splitting_the_bytes_anywhere_changes_nothing(
        text in "[a-z\u{4e00}-\u{4e20}\u{1f600}-\u{1f610}\r\n]{0,40}", cut in 0usize..200,
    ) {
        let mut bytes = b"\x1b[200~".to_vec();
        bytes.extend(text.as_bytes());
        bytes.extend(b"\x1b[201~");
        bytes.extend(text.as_bytes());
        bytes.extend(b"\x1b[1;5C\x1b[<64;5;7M");
        let whole = Decoder::default().feed(&bytes);
        let at = cut.min(bytes.len());
        let mut d = Decoder::default();
        let mut parts = d.feed(&bytes[..at]);
        parts.extend(d.feed(&bytes[at..]));
        prop_assert_eq!(whole, parts);
    }

    #[test]
    fn no_bytes_make_it_panic_or_stall(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut d = Decoder::default();
        for b in &bytes { d.feed(std::slice::from_ref(b)); }
        d.pause();
    }
}
