//! What reaches the terminal: bytes of a stream, frame by frame, read by a terminal's model.

use super::*;
use crate::tui::terminal::screen::Screen as Cells;
use crate::tui::view::width::needs_anchor;

const TEXT: &[&str] = &[
    "Line {n} of *many* with `code` and 中文字符 in it\n",
    "- item {n} ✅ done ⚠\u{fe0f} careful\n",
    "\n",
    "| a {n} | 한국어 |\n|---|---|\n| 1 | 👩‍🔬 |\n\n",
    "```rust\nfn f{n}() { println!(\"{n}\"); }\n```\n",
    "Plain words that are long enough to wrap in a narrow pane of tmux, number {n}.\n\n",
];

fn pieces() -> Vec<String> {
    let lines: Vec<String> =
        (0..2_000).map(|n| TEXT[n % TEXT.len()].replace("{n}", &n.to_string())).collect();
    // Pieces end anywhere, as they do on the wire.
    let all: Vec<char> = lines.concat().chars().collect();
    all.chunks(37).map(|piece| piece.iter().collect()).collect()
}

/// Streams an answer into a terminal of this size.
fn stream(width: u16, height: u16) -> (vt100::Parser, Transcript) {
    stream_with(width, height, &pieces(), |t, piece| {
        say(t, Role::Assistant, piece, 0);
    })
}

/// Streams into a terminal of this size. Checks every frame; returns the terminal.
fn stream_with(
    width: u16,
    height: u16,
    pieces: &[String],
    mut add: impl FnMut(&mut Transcript, &str),
) -> (vt100::Parser, Transcript) {
    let mut t = Transcript::new();
    t.begin_turn("go", vec![], 0);
    let mut screen = Screen::new(width, height);
    let mut cells = Cells::new(width, height);
    let mut terminal = vt100::Parser::new(height, width, 0);
    let mut out = Vec::new();
    for (n, piece) in pieces.iter().enumerate() {
        add(&mut t, piece);
        if n % 7 != 0 {
            continue;
        }
        out.clear();
        screen.view.render(&t, screen.area, cells.buffer(), &screen.theme, 0);
        cells.flush(&mut out, Some((0, height - 1)), false).unwrap();
        // Rows that only moved are moved by the terminal, before anything is written.
        let moved = out.windows(3).position(|w| w == b"\x1b[r").map_or(0, |at| at + 3);
        check_move(&out[..moved], height);
        terminal.process(&out[..moved]);
        let before = looks_of(&terminal);
        let mut written = check(&out[moved..], n == 0);
        written.retain(|at| !is_spilled_on(terminal.screen(), *at));
        terminal.process(&out[moved..]);
        let after = looks_of(&terminal);
        for (x, y) in written {
            let at = usize::from(y) * usize::from(width) + usize::from(x);
            assert!(
                n == 0 || before[at] != after[at],
                "written though it was there: {} in {:?}",
                after[at],
                String::from_utf8_lossy(&out),
            );
        }
    }
    t.settle(0);
    screen.view.render(&t, screen.area, cells.buffer(), &screen.theme, 0);
    out.clear();
    cells.flush(&mut out, Some((0, height - 1)), false).unwrap();
    terminal.process(&out);
    (terminal, t)
}

/// A frame may begin with one move of rows, which leaves some of them on the screen, and with
/// nothing else: set the margins, scroll, put the margins back.
fn check_move(bytes: &[u8], height: u16) {
    if bytes.is_empty() {
        return;
    }
    let text = std::str::from_utf8(bytes).unwrap();
    let parts: Vec<&str> = text.split("\x1b[").collect();
    let ["", "0m", margins, scroll, "r"] = parts.as_slice() else { panic!("{text:?}") };
    let (top, bottom) = margins.strip_suffix('r').unwrap().split_once(';').unwrap();
    let (top, bottom): (u16, u16) = (top.parse().unwrap(), bottom.parse().unwrap());
    let by: u16 = scroll.trim_end_matches(['S', 'T']).parse().unwrap();
    assert!(0 < top && top < bottom && bottom <= height, "{text:?}");
    assert!(by <= bottom - top, "a move of everything is a clear: {text:?}");
}

/// Cells that a terminal may have given to a symbol. A terminal's model may have kept only the first
/// character of a joined one.
fn reach(symbol: &str) -> u16 {
    let chars = symbol.chars().count();
    let unsure = needs_anchor(symbol) && (chars > 1 || symbol >= "\u{2600}");
    if symbol.contains('\u{200d}') {
        return 8;
    }
    u16::try_from(if unsure { 2 * chars } else { 1 }).unwrap()
}

/// Whether a symbol that terminals measure differently, left of this cell, may have reached it.
fn is_spilled_on(screen: &vt100::Screen, (x, y): (u16, u16)) -> bool {
    (x.saturating_sub(16)..x).any(|left| {
        let symbol = screen.cell(y, left).map_or("", |cell| cell.contents());
        left + reach(symbol) > x
    })
}

/// No clearing, no line feed, and the cursor placed after every cell whose width terminals may see
/// otherwise. Returns the cells that were written, but for those that such a cell may have spilled
/// into.
fn check(bytes: &[u8], first: bool) -> Vec<(u16, u16)> {
    let text = std::str::from_utf8(bytes).unwrap();
    for forbidden in ["\x1b[2J", "\x1b[3J", "\x1b[J", "\x1b[K", "\x1bM", "\x1bc", "\n", "\r", "\t"]
    {
        // Of a screen that is not known the blank ends of rows are cleared.
        let is_fine = first && forbidden == "\x1b[K";
        assert!(is_fine || !text.contains(forbidden), "{forbidden:?} in {text:?}");
    }
    let mut rest = text;
    let (mut x, mut y) = (0u16, 0u16);
    let mut placed = false;
    let mut last = "";
    let mut written = Vec::new();
    let mut spill_until = (0u16, 0u16);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("\x1b[") {
            let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap();
            let (body, kind) = (&after[..end], &after[end..=end]);
            match kind {
                "H" => {
                    let (row, column) = body.split_once(';').unwrap();
                    y = row.parse::<u16>().unwrap() - 1;
                    x = column.parse::<u16>().unwrap() - 1;
                    placed = true;
                }
                "m" | "K" => {}
                "h" | "l" => assert!(matches!(body, "?25"), "{body}"),
                other => panic!("unexpected sequence {other:?}"),
            }
            rest = &after[end + 1..];
            continue;
        }
        let run = rest.find('\x1b').unwrap_or(rest.len());
        let graphemes: Vec<&str> =
            unicode_segmentation::UnicodeSegmentation::graphemes(&rest[..run], true).collect();
        for symbol in graphemes {
            // A run of one symbol (a rule) may go on: nothing else is shifted by it.
            assert!(placed || last == symbol, "written without a known place: {symbol:?}");
            last = symbol;
            if y != spill_until.1 || x >= spill_until.0 {
                written.push((x, y));
            }
            let cells = u16::try_from(crate::tui::view::width::cell_width(symbol)).unwrap();
            x += cells;
            if needs_anchor(symbol) {
                placed = false;
                spill_until = (x - cells + reach(symbol), y);
            }
        }
        rest = &rest[run..];
    }
    written
}

fn rows_of(terminal: &vt100::Parser, width: u16) -> Vec<String> {
    terminal.screen().rows(0, width).map(|row| row.trim_end().to_owned()).collect()
}

/// What every cell looks like; one that was never written looks like a written blank.
fn looks_of(terminal: &vt100::Parser) -> Vec<String> {
    let screen = terminal.screen();
    let (rows, columns) = screen.size();
    let cells = (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x)));
    let look = |(y, x)| {
        let cell = screen.cell(y, x).unwrap();
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let colours = (cell.fgcolor(), cell.bgcolor());
        let flags = (cell.bold(), cell.dim(), cell.italic(), cell.underline(), cell.inverse());
        let half = if cell.is_wide_continuation() { "half" } else { "" };
        format!("{y},{x} {text:?}{half} {colours:?} {flags:?}")
    };
    cells.map(look).collect()
}

#[test]
fn a_stream_of_two_thousand_lines_only_writes_what_changed_and_ends_as_drawn_at_once() {
    for (width, height) in [(80, 24), (40, 12), (80, 12), (200, 60)] {
        let (streamed, t) = stream(width, height);
        let mut screen = Screen::new(width, height);
        let mut cells = Cells::new(width, height);
        screen.view.render(&t, screen.area, cells.buffer(), &screen.theme, 0);
        let mut out = Vec::new();
        cells.flush(&mut out, Some((0, height - 1)), false).unwrap();
        let mut once = vt100::Parser::new(height, width, 0);
        once.process(&out);
        assert_eq!(rows_of(&streamed, width), rows_of(&once, width), "{width}x{height}");
        assert_eq!(looks_of(&streamed), looks_of(&once), "{width}x{height}");
        assert_eq!(streamed.screen().scrollback(), 0);
    }
}

#[test]
fn a_command_that_prints_more_than_the_screen_has_never_clears_it() {
    let lines: Vec<String> = (0..1_000)
        .map(|n| format!("\u{1b}[3{}m{n}\u{1b}[0m compiled 模块 ✅ {n}\r\n", n % 8))
        .collect();
    for (width, height) in [(80, 24), (40, 12)] {
        let printed = |t: &mut Transcript, piece: &str| {
            t.terminal_output("c", piece);
            t.tool("c", None, 0, |card, _| {
                card.placeholder = false;
                "make".clone_into(&mut card.title);
                card.kind = ToolKind::Execute;
                card.status = ToolStatus::Running;
                card.parts = vec![ToolPart::Terminal("c".to_owned())];
            });
        };
        let (terminal, t) = stream_with(width, height, &lines, printed);
        assert!(terminal.screen().contents().contains("999 compiled 模块"), "{width}");
        // Unfolded it is taller than the screen, and scrolls like any text.
        let mut screen = Screen::new(width, height);
        screen.view.expand_all(true);
        assert!(screen.draw(&t).contains("999 compiled 模块"));
    }
}

/// Pieces of rows, whose width this program, a multiplexer and a terminal may see differently.
fn doubtful() -> impl proptest::prelude::Strategy<Value = String> {
    use proptest::prelude::*;
    let piece = prop_oneof![
        "[a-z ]{1,6}",
        Just("中文".to_owned()),
        Just("한".to_owned()),
        Just("⚠\u{fe0f}".to_owned()),
        Just("⚠".to_owned()),
        Just("👩‍🔬".to_owned()),
        Just("👍🏽".to_owned()),
        Just("🇩🇪".to_owned()),
        Just("e\u{301}".to_owned()),
        Just("✅".to_owned()),
    ];
    proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

proptest::proptest! {
    /// The terminal's model here takes joined symbols apart and knows no variation selectors, as
    /// some terminals do: its widths are other ones than ours.
    #[test]
    fn a_width_that_is_seen_differently_smears_neither_its_row_nor_the_next(
        frames in proptest::collection::vec(proptest::collection::vec(doubtful(), 5), 1..5),
    ) {
        ends_stay(&frames);
    }
}

#[test]
fn a_run_of_one_symbol_that_is_taken_for_wider_reaches_nothing_behind_it() {
    let row = format!("👩‍🔬中文👩‍🔬 a 👩‍🔬aa a{}", "👍🏽".repeat(3));
    ends_stay(&[vec![String::new()], vec![row]]);
}

/// Draws the frames and looks that what stands at the end of each row stays there.
fn ends_stay(frames: &[Vec<String>]) {
    let mut cells = Cells::new(30, 5);
    let mut terminal = vt100::Parser::new(5, 30, 0);
    for rows in frames {
        for (y, text) in (0_u16..).zip(rows) {
            let line = Line::raw(crate::tui::view::width::truncate(text, 24, ""));
            let slot = Slot { x: 0, y, width: 26 };
            super::super::rows::draw(cells.buffer(), slot, &line);
            cells.buffer().set_string(28, y, format!("{y}|"), ratatui::style::Style::new());
        }
        let mut out = Vec::new();
        cells.flush(&mut out, None, false).unwrap();
        terminal.process(&out);
        for (y, _) in (0_u16..).zip(rows) {
            let end: String = (28..30)
                .filter_map(|x| Some(terminal.screen().cell(y, x)?.contents().to_owned()))
                .collect();
            assert_eq!(end, format!("{y}|"), "{rows:?}");
        }
    }
}

#[test]
fn a_frame_in_which_nothing_changed_writes_nothing() {
    let t = conversation();
    let mut screen = Screen::new(80, 24);
    let mut cells = Cells::new(80, 24);
    let mut frame = || {
        let mut out = Vec::new();
        screen.view.render(&t, screen.area, cells.buffer(), &screen.theme, 65_000);
        cells.flush(&mut out, Some((0, 23)), false).unwrap();
        out.len()
    };
    assert!(frame() > 0);
    assert_eq!((frame(), frame()), (0, 0));
}

#[test]
fn a_streaming_frame_is_small() {
    let mut t = answer_so_far();
    let mut screen = Screen::new(200, 60);
    let mut cells = Cells::new(200, 60);
    let mut sizes = Vec::new();
    for n in 0..400 {
        say(&mut t, Role::Assistant, &format!("word{n} and more. "), 0);
        let mut out = Vec::new();
        screen.view.render(&t, screen.area, cells.buffer(), &screen.theme, 0);
        cells.flush(&mut out, None, false).unwrap();
        sizes.push(out.len());
    }
    sizes.remove(0);
    sizes.sort_unstable();
    // One frame in eleven moves every row up, since a paragraph began a new one.
    assert!(sizes[sizes.len() * 85 / 100] < 400, "{:?}", &sizes[sizes.len() * 80 / 100..]);
    assert!(*sizes.last().unwrap() < 2 * 1024, "{:?}", sizes.last());
}

fn answer_so_far() -> Transcript {
    let mut t = long(40);
    t.begin_turn("go on", vec![], 0);
    t
}
