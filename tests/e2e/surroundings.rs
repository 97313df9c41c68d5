//! The chat in surroundings that are not the usual ones: other terminals, locales and colours, as
//! users of other programs reported them. See `tests/complaints.rs`.

use std::time::Duration;

use crate::terminal::{Terminal, say};
use crate::world::World;

const DEMO: &[&str] = &["tui", "--demo", "--demo-pace", "0"];

fn start(world: &World, columns: u16, rows: u16) -> Terminal<'_> {
    let mut terminal = Terminal::start(world, DEMO, columns, rows);
    terminal.wait_for("Try one of these");
    terminal.settle(Duration::from_millis(100));
    terminal
}

/// Says it and waits for the end of the turn.
fn ask(terminal: &mut Terminal<'_>, prompt: &str) {
    say(terminal, prompt);
    terminal.wait_for("tokens");
}

/// Quits; returns everything that was written.
fn end(mut terminal: Terminal<'_>) -> Vec<u8> {
    terminal.keys("\x03\x03");
    terminal.wait_exit();
    terminal.assert_restored();
    terminal.written().to_vec()
}

/// Waits for the whole of a frame: its last row is written last.
fn wait_drawn(terminal: &mut Terminal<'_>) {
    terminal.wait_for("Sim Large");
}

/// The sequences in some bytes: what follows `ESC [`, with its final byte.
fn sequences(bytes: &[u8]) -> Vec<(String, char)> {
    let text = String::from_utf8_lossy(bytes);
    let parts = text.split("\x1b[").skip(1);
    parts
        .filter_map(|part| {
            let at = part.find(|c: char| ('@'..='~').contains(&c))?;
            Some((part[..at].to_owned(), part[at..].chars().next()?))
        })
        .collect()
}

#[test]
fn in_gnu_screen_nothing_but_what_it_documents_is_written_and_a_redraw_changes_nothing() {
    let mut world = World::new();
    world.set("TERM", "screen");
    world.env.retain(|(name, _)| name != "COLORTERM");
    let mut terminal = start(&world, 80, 24);
    let first = terminal.written().len();
    ask(&mut terminal, "flood 8k");
    terminal.resize(60, 18);
    wait_drawn(&mut terminal);
    for (body, last) in sequences(&terminal.written()[first..]) {
        assert!(
            "HmKrST".contains(last) || matches!((body.as_str(), last), ("?25", 'h' | 'l')),
            "{body}{last}"
        );
        let is_256 = body.contains("8;5;") || !body.contains("8;");
        assert!(
            last != 'm' || (is_256 && !body.contains(':')),
            "a colour that it does not know: {body}"
        );
    }
    let before = terminal.screen();
    assert!(before.contains("tokens"), "{before}");
    terminal.keys("\x0c");
    terminal.settle(Duration::from_millis(300));
    assert_eq!(terminal.screen(), before);
    end(terminal);
}

#[test]
fn a_terminal_that_says_so_gets_whole_frames_whatever_it_is_called() {
    for (answer, whole) in [("\x1b[?2026;2$y", true), ("\x1b[?2026;0$y", false), ("", false)] {
        let mut world = World::new();
        world.set("TERM", "nobody-knows-it");
        let mut terminal = start(&world, 80, 24);
        terminal.keys(answer);
        terminal.settle(Duration::from_millis(100));
        let first = terminal.written().len();
        ask(&mut terminal, "echo hi");
        let written = end(terminal);
        let written = String::from_utf8_lossy(&written[first..]).into_owned();
        assert_eq!(written.contains("\x1b[?2026h"), whole, "{answer:?}");
        let (begun, ended) = ("\x1b[?2026h", "\x1b[?2026l");
        // Leaving turns it off once more.
        assert_eq!(written.matches(begun).count() + 1, written.matches(ended).count());
    }
}

#[test]
fn without_a_utf8_locale_only_letters_of_the_answer_are_not_ascii() {
    let mut world = World::new();
    world.set("LANG", "C");
    let mut terminal = start(&world, 80, 24);
    ask(&mut terminal, "bash");
    terminal.keys("\x1bOP");
    terminal.wait_for("Esc closes");
    terminal.keys("\x1b");
    terminal.wait_gone("Esc closes");
    assert!(terminal.shows("test 问候"), "letters stay: {}", terminal.screen());
    let text = String::from_utf8(end(terminal)).expect("whole characters");
    let odd: Vec<char> = text.chars().filter(|c| !c.is_ascii() && !c.is_alphabetic()).collect();
    // A sign in the output of a command is the command's.
    assert!(odd.iter().all(|c| *c == '👋'), "{odd:?}");
}

#[test]
fn where_no_colours_are_wanted_none_are_written() {
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "vt100")] {
        let mut world = World::new();
        world.env.retain(|(name, _)| name != "COLORTERM");
        world.set(name, value);
        let mut terminal = start(&world, 80, 24);
        ask(&mut terminal, "bash");
        for (body, last) in sequences(&end(terminal)) {
            let coloured = body.split(';').any(|code| {
                code.parse::<u32>().is_ok_and(|n| (30..=49).contains(&n) || (90..=107).contains(&n))
            });
            assert!(last != 'm' || !coloured, "{name}={value}: {body}m");
        }
    }
}

#[test]
fn a_paste_of_a_megabyte_is_one_chip_and_keys_live_on() {
    let world = World::new();
    let mut terminal = start(&world, 80, 24);
    let line = "a line of a paste, 一行文字, that goes on\n";
    let paste = line.repeat(1_024 * 1_024 / line.len());
    terminal.keys(&format!("\x1b[200~{paste}\x1b[201~"));
    terminal.wait_for("lines]");
    terminal.keys(" after");
    terminal.wait_for("lines] after");
    terminal.keys("\x03");
    terminal.wait_gone("lines]");
    assert!(!terminal.shows("tokens"), "nothing was sent");
    end(terminal);
}

#[test]
fn a_storm_of_sizes_ends_in_a_screen_like_one_that_was_never_resized() {
    let world = World::new();
    let mut terminal = start(&world, 80, 24);
    ask(&mut terminal, "hello");
    for n in 0..60_u16 {
        terminal.resize(20 + (n * 37) % 150, 5 + (n * 13) % 50);
        if n % 7 == 0 {
            terminal.settle(Duration::from_millis(10));
        }
    }
    for _ in 0..10 {
        // A pane that is zoomed and back before the program looks.
        terminal.resize(40, 12);
        terminal.resize(80, 24);
        wait_drawn(&mut terminal);
    }
    terminal.resize(20, 5);
    terminal.wait_for("too small");
    terminal.resize(80, 24);
    wait_drawn(&mut terminal);
    let before = terminal.screen();
    terminal.keys("\x0c");
    terminal.settle(Duration::from_millis(300));
    assert_eq!(terminal.screen(), before);
    assert!(before.contains("take two cells each"), "{before}");
    end(terminal);
}
