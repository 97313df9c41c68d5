use std::time::{Duration, Instant};

use ratatui::buffer::CellWidth;

use super::*;

mod bytes;
mod kinds;
mod reports;
mod select;
mod states;
use crate::tui::model::transcript::block::{Plan, PlanEntry, Priority, StepStatus};
use crate::tui::model::transcript::body::{Body, DIFF_CAP, OUTPUT_CAP};
use crate::tui::model::transcript::tool::{DiffPart, Exit, ToolKind, ToolPart};
use crate::tui::model::transcript::{Piece, Role};

fn say(transcript: &mut Transcript, role: Role, text: &str, now: u64) -> BlockId {
    let piece = Piece { role, parent: None, message_id: None, text };
    transcript.append(piece, now)
}

struct Call<'a> {
    id: &'a str,
    parent: Option<BlockId>,
    title: &'a str,
    kind: ToolKind,
    status: ToolStatus,
    output: &'a str,
}

impl Default for Call<'_> {
    fn default() -> Self {
        Self {
            id: "t",
            parent: None,
            title: "",
            kind: ToolKind::Execute,
            status: ToolStatus::Running,
            output: "",
        }
    }
}

fn call(transcript: &mut Transcript, call: &Call<'_>, now: u64) -> BlockId {
    transcript.tool(call.id, call.parent, now, |card, spills| {
        card.placeholder = false;
        call.title.clone_into(&mut card.title);
        card.kind = call.kind;
        card.status = call.status;
        if !call.output.is_empty() {
            let mut body = Body::with_cap(OUTPUT_CAP);
            body.append(call.output, spills);
            card.parts = vec![ToolPart::Text(body)];
        }
    })
}

fn edit(transcript: &mut Transcript, id: &str, old: Option<&str>, new: &str, now: u64) -> BlockId {
    transcript.tool(id, None, now, |card, spills| {
        card.placeholder = false;
        "Edit src/main.rs".clone_into(&mut card.title);
        card.kind = ToolKind::Edit;
        card.status = ToolStatus::Completed;
        let mut body = |text: &str| {
            let mut body = Body::with_cap(DIFF_CAP);
            body.append(text, spills);
            body
        };
        let old = old.map(&mut body);
        let new = body(new);
        card.parts = vec![ToolPart::Diff(DiffPart { path: "src/main.rs".to_owned(), old, new })];
    })
}

struct Screen {
    view: TranscriptView,
    theme: Theme,
    area: Rect,
    now: u64,
}

impl Screen {
    fn new(width: u16, height: u16) -> Self {
        Self {
            view: TranscriptView::new(),
            theme: Theme::default(),
            area: Rect::new(0, 0, width, height),
            now: 65_000,
        }
    }

    fn buffer(&mut self, transcript: &Transcript) -> Buffer {
        let mut buf = Buffer::empty(self.area);
        self.view.render(transcript, self.area, &mut buf, &self.theme, self.now);
        buf
    }

    fn draw(&mut self, transcript: &Transcript) -> String {
        let buf = self.buffer(transcript);
        let mut rows: Vec<String> = Vec::new();
        for y in 0..self.area.height {
            let mut row = String::new();
            let mut x = 0;
            while x < self.area.width {
                row.push_str(buf[(x, y)].symbol());
                x += buf[(x, y)].cell_width().max(1);
            }
            rows.push(row.trim_end().to_owned());
        }
        rows.join("\n")
    }
}

fn step(content: &str, status: StepStatus) -> PlanEntry {
    PlanEntry { content: content.to_owned(), status, priority: Priority::Medium }
}

/// A bit of everything.
fn conversation() -> Transcript {
    let mut t = Transcript::new();
    t.begin_turn(
        "Fix the build, 请 ✅\nand tell me why",
        vec!["image png 12 KB".to_owned()],
        1_000,
    );
    say(&mut t, Role::Thought, "First I look.\nThen I act.", 2_000);
    say(&mut t, Role::Thought, "\nThen I test.", 5_000);
    say(
        &mut t,
        Role::Assistant,
        "I will look at **main** first:\n\n- read `main.rs`\n- run the tests\n",
        6_000,
    );
    call(
        &mut t,
        &Call {
            id: "read",
            title: "Read src/main.rs",
            kind: ToolKind::Read,
            status: ToolStatus::Completed,
            output: "fn main() {}\n// two\n",
            ..Call::default()
        },
        7_000,
    );
    let run = call(
        &mut t,
        &Call {
            id: "run",
            title: "`cargo test --all-features -- --nocapture`",
            status: ToolStatus::Failed,
            output: "one\ntwo\nthree\nfour\nfive\nsix\n\u{1b}[31merror\u{1b}[0m: it broke\n",
            ..Call::default()
        },
        10_000,
    );
    t.tool("run", None, 14_200, |card, _| {
        card.started_ms = 10_000;
        card.ended_ms = Some(14_200);
        card.exit = Some(Exit { code: Some(101), signal: None });
    });
    assert_eq!(t.tool_block("run"), Some(run));
    edit(
        &mut t,
        "edit",
        Some("fn main() {\n    run();\n}\n"),
        "fn main() {\n    start(1);\n}\n",
        15_000,
    );
    t.set_plan(
        Plan {
            entries: vec![
                step("Find the cause", StepStatus::Completed),
                step("Repair the thing that is broken in the module", StepStatus::InProgress),
                step("Run the tests", StepStatus::Pending),
            ],
            ..Plan::default()
        },
        16_000,
    );
    let agent = call(
        &mut t,
        &Call { id: "task", title: "Explore the tests", kind: ToolKind::Think, ..Call::default() },
        20_000,
    );
    for n in 0..5 {
        call(
            &mut t,
            &Call {
                id: &format!("child{n}"),
                parent: Some(agent),
                title: &format!("Read file {n}"),
                kind: ToolKind::Read,
                status: ToolStatus::Completed,
                output: "x\n",
            },
            21_000,
        );
    }
    t.info("context compacted", 22_000);
    t.error("the agent died", "signal 9", Some("start it again with /restart".to_owned()), 23_000);
    t.unknown("quantum_update", "{\n  \"a\": 1\n}".to_owned(), 24_000);
    say(
        &mut t,
        Role::Assistant,
        "Done:\n\n```rust\nfn main() {}\n```\n\n| a | 中文 |\n|---|---|\n| 1 | 2 |\n",
        25_000,
    );
    t.end_turn(Some("cancelled".to_owned()), Some(12_345), 61_000);
    t
}

#[test]
fn a_conversation_at_40x12() {
    insta::assert_snapshot!(Screen::new(40, 12).draw(&conversation()));
}

#[test]
fn a_conversation_at_80x24() {
    insta::assert_snapshot!(Screen::new(80, 24).draw(&conversation()));
}

#[test]
fn a_conversation_at_120x40() {
    let t = conversation();
    let mut screen = Screen::new(120, 40);
    screen.view.to_top();
    insta::assert_snapshot!(screen.draw(&t));
}

#[test]
fn a_conversation_at_200x60_unfolded() {
    let t = conversation();
    let mut screen = Screen::new(200, 100);
    screen.view.expand_all(true);
    insta::assert_snapshot!(screen.draw(&t));
}

#[test]
fn every_block_at_40_wide() {
    insta::assert_snapshot!(Screen::new(40, 100).draw(&conversation()));
}

#[test]
fn without_utf8_and_colours_it_is_still_readable() {
    let mut screen = Screen::new(60, 30);
    screen.theme = Theme::new(ThemeSpec {
        depth: super::super::theme::ColorDepth::None,
        utf8: false,
        ..ThemeSpec::default()
    });
    insta::assert_snapshot!(screen.draw(&conversation()));
}

#[test]
fn a_running_turn_shows_clocks_and_live_thoughts() {
    let mut t = Transcript::new();
    t.begin_turn("go", vec![], 1_000);
    call(
        &mut t,
        &Call {
            id: "run",
            title: "make all",
            output: "compiling\n[  5%]\r[ 10%]",
            ..Call::default()
        },
        2_000,
    );
    t.tool("later", None, 2_500, |card, _| "waits for approval".clone_into(&mut card.title));
    say(&mut t, Role::Thought, &"thinking about it all the time ".repeat(20), 3_000);
    let mut screen = Screen::new(60, 16);
    let first = screen.draw(&t);
    insta::assert_snapshot!(first);
    screen.now += 61_000;
    let later = screen.draw(&t);
    assert!(first.contains("1m 03s") && later.contains("2m 04s"), "{later}");
    assert_eq!(first.lines().count(), later.lines().count());
}

#[test]
fn control_sequences_in_output_never_reach_a_cell() {
    let mut t = Transcript::new();
    call(
        &mut t,
        &Call {
            title: "evil \u{1b}[2J\u{202e}title",
            output: "a\u{1b}[2J\u{1b}[H\u{1b}[?1049l\u{1b}]0;x\u{7}b\n",
            ..Call::default()
        },
        0,
    );
    say(&mut t, Role::Assistant, "x\u{1b}]52;c;aGk=\u{7}y \u{1b}[2J", 0);
    let buf = Screen::new(60, 20).buffer(&t);
    for cell in &buf.content {
        assert!(!cell.symbol().chars().any(char::is_control), "{:?}", cell.symbol());
    }
}

#[test]
fn colours_of_output_survive_wrapping_at_the_edge() {
    let red = Theme::default()
        .printed(ratatui::style::Style::new().fg(ratatui::style::Color::Indexed(1)));
    for before in 60..82 {
        let mut t = Transcript::new();
        let line = format!("{}\u{1b}[31mredred\u{1b}[0m tail", "x".repeat(before));
        call(&mut t, &Call { output: &line, title: "t", ..Call::default() }, 0);
        let mut screen = Screen::new(80, 10);
        let text = screen.draw(&t);
        assert!(!text.contains("[31m") && !text.contains("[0m"), "{text}");
        let buf = screen.buffer(&t);
        let coloured = buf.content.iter().filter(|cell| Some(cell.fg) == red.fg);
        let coloured: String = coloured.map(ratatui::buffer::Cell::symbol).collect();
        assert_eq!(coloured, "redred", "{before} cells before it");
    }
}

fn long(blocks: usize) -> Transcript {
    let mut t = Transcript::new();
    for n in 0..blocks / 4 {
        let now = n as u64 * 1000;
        t.begin_turn(&format!("question {n} with 中文"), vec![], now);
        say(
            &mut t,
            Role::Assistant,
            &format!("Answer **{n}**:\n\n- one\n- two\n\n```rust\nlet x = {n};\n```\n"),
            now + 1,
        );
        call(
            &mut t,
            &Call {
                id: &format!("t{n}"),
                title: "cargo test",
                status: ToolStatus::Completed,
                output: "line one\nline two\nline three\n",
                ..Call::default()
            },
            now + 2,
        );
        t.end_turn(None, Some(100), now + 900);
    }
    t
}

#[test]
fn the_tail_is_followed_and_a_scrolled_reader_stays() {
    let mut t = long(200);
    let mut screen = Screen::new(60, 20);
    screen.draw(&t);
    assert!(screen.view.is_following());
    screen.view.scroll_by(-7);
    let before = screen.draw(&t);
    assert!(!screen.view.is_following());
    t.begin_turn("more", vec![], 0);
    for n in 0..300 {
        say(&mut t, Role::Assistant, &format!("word {n} | a | b |\n\n"), 0);
        let now = screen.draw(&t);
        let rows = |text: &str| -> Vec<String> {
            text.split('\n')
                .map(|row| row.chars().take(56).collect::<String>().trim_end().to_owned())
                .collect()
        };
        assert_eq!(rows(&before), rows(&now), "moved after {n}");
    }
    assert_eq!(screen.view.new_below(), 2);
    screen.view.to_tail();
    assert!(screen.draw(&t).contains("word 299"));
    assert_eq!(screen.view.new_below(), 0);
}

#[test]
fn wheel_steps_move_as_far_as_they_say() {
    let t = long(400);
    let mut screen = Screen::new(60, 20);
    let mut before = screen.draw(&t);
    for _ in 0..200 {
        screen.view.scroll_by(-3);
        let now = screen.draw(&t);
        let strip = |text: &str| -> Vec<String> {
            text.split('\n')
                .map(|row| row.chars().take(56).collect::<String>().trim_end().to_owned())
                .collect()
        };
        let (old, new) = (strip(&before), strip(&now));
        assert_eq!(old[..17], new[3..], "a step of three");
        before = now;
    }
    screen.view.to_top();
    assert!(screen.draw(&t).contains("question 0"));
    screen.view.page(1);
    screen.draw(&t);
    screen.view.page(-1);
    assert!(screen.draw(&t).contains("question 0"));
}

#[test]
fn prompts_are_reached_one_by_one() {
    let t = long(80);
    let mut screen = Screen::new(60, 12);
    screen.draw(&t);
    for n in (10..=19).rev() {
        screen.view.to_previous_prompt();
        let text = screen.draw(&t);
        let first = text.lines().next().unwrap();
        // The last one may be too near the end to reach the top.
        assert!(n == 19 || first.contains(&format!("question {n}")), "{n}: {text}");
    }
    screen.view.to_next_prompt();
    let text = screen.draw(&t);
    assert!(text.lines().next().unwrap().contains("question 11"), "{text}");
}

#[test]
fn a_toggled_card_keeps_its_header_in_place() {
    let mut t = Transcript::new();
    let output: String = (0..400).map(|n| format!("{n}\n")).collect();
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(call(
            &mut t,
            &Call {
                id: &format!("t{n}"),
                title: &format!("card {n}"),
                status: ToolStatus::Completed,
                output: &output,
                ..Call::default()
            },
            0,
        ));
    }
    let mut screen = Screen::new(60, 30);
    let before = screen.draw(&t);
    let row = before.lines().position(|row| row.contains("card 17")).unwrap();
    let y = u16::try_from(row).unwrap();
    let hit = screen.view.hit(10, y).unwrap();
    assert_eq!(hit, Hit { block: ids[17], header: true });
    screen.view.toggle(hit.block);
    let after = screen.draw(&t);
    assert!(after.lines().nth(row).unwrap().contains("card 17"), "{after}");
    assert!(screen.view.is_expanded(ids[17]));
    screen.view.toggle(hit.block);
    assert_eq!(screen.draw(&t), before);
}

#[test]
fn a_resize_keeps_the_place_and_every_width_draws() {
    let t = conversation();
    let mut screen = Screen::new(100, 20);
    screen.draw(&t);
    screen.view.to_previous_prompt();
    assert!(screen.draw(&t).contains("Fix the build"));
    for width in (1..140).rev().chain(1..140) {
        for height in [0, 1, 2, 7] {
            screen.area = Rect::new(0, 0, width, height);
            screen.draw(&t);
        }
    }
    screen.area = Rect::new(0, 0, 100, 20);
    assert!(screen.draw(&t).contains("Fix the build"));
}

#[test]
fn a_hundred_children_cost_one_card() {
    let mut t = Transcript::new();
    let parent = call(&mut t, &Call { id: "p", title: "swarm", ..Call::default() }, 0);
    let mut screen = Screen::new(80, 24);
    let start = Instant::now();
    for round in 0..10 {
        for n in 0..100 {
            call(
                &mut t,
                &Call {
                    id: &format!("c{n}"),
                    parent: Some(parent),
                    title: &format!("child {n} round {round}"),
                    ..Call::default()
                },
                0,
            );
            screen.draw(&t);
        }
    }
    assert!(start.elapsed() < Duration::from_secs(10));
    let text = screen.draw(&t);
    assert!(text.contains("97 earlier") && text.contains("child 99 round 9"), "{text}");
}

/// Median time of a frame, in nanoseconds, while the tail streams.
fn frame_cost(blocks: usize) -> u128 {
    let mut t = long(blocks);
    t.begin_turn("go on", vec![], 0);
    let mut screen = Screen::new(120, 40);
    screen.draw(&t);
    let mut buf = Buffer::empty(screen.area);
    let mut times: Vec<u128> = (0..60)
        .map(|n| {
            say(&mut t, Role::Assistant, &format!("word{n} *more* text\n"), 0);
            let start = Instant::now();
            screen.view.render(&t, screen.area, &mut buf, &screen.theme, 0);
            start.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

#[test]
fn a_frame_costs_the_same_after_twenty_thousand_blocks() {
    let few = frame_cost(1_000).max(200_000);
    let many = frame_cost(20_000);
    assert!(many < few * 4, "{few} ns at 1,000 blocks, {many} ns at 20,000");
}

#[test]
fn a_flood_is_appended_in_constant_time_per_piece() {
    let mut t = Transcript::new();
    t.begin_turn("go", vec![], 0);
    let start = Instant::now();
    for n in 0..200_000 {
        say(&mut t, Role::Assistant, if n % 20 == 0 { "word\n\n" } else { "some text " }, 0);
    }
    assert!(start.elapsed() < Duration::from_secs(4));
    let mut screen = Screen::new(120, 40);
    screen.draw(&t);
    assert!(screen.view.kept < MAX_KEPT * 2);
}

#[test]
fn thirty_five_thousand_lines_in_one_update_draw_their_end() {
    let mut t = Transcript::new();
    let output: String = (1..=35_000).map(|n| format!("{n}\n")).collect();
    let id = call(
        &mut t,
        &Call {
            title: "seq 35000",
            output: &output,
            status: ToolStatus::Completed,
            ..Call::default()
        },
        0,
    );
    let mut screen = Screen::new(80, 24);
    let start = Instant::now();
    let text = screen.draw(&t);
    assert!(start.elapsed() < Duration::from_millis(500));
    assert!(text.contains("35000") && text.contains("34,995 lines above"), "{text}");
    screen.view.toggle(id);
    let text = screen.draw(&t);
    assert!(text.contains("seq 35000"), "{text}");
}

#[test]
fn caches_are_bounded_while_everything_is_passed() {
    let t = long(8_000);
    let mut screen = Screen::new(80, 40);
    screen.draw(&t);
    for _ in 0..600 {
        screen.view.page(-1);
        screen.draw(&t);
        assert!(screen.view.kept <= MAX_KEPT * 2);
        assert!(screen.view.layouts.len() <= MAX_LAYOUTS + 64);
    }
}

#[test]
fn of_one_long_answer_only_what_is_near_the_screen_is_kept_and_its_rows_are_counted() {
    let mut t = Transcript::new();
    t.begin_turn("go", vec![], 0);
    let mut screen = Screen::new(80, 40);
    let mut most = 0;
    for n in 0..12_000 {
        say(&mut t, Role::Assistant, &format!("Paragraph {n}.\n\n"), 0);
        screen.draw(&t);
        most = most.max(screen.view.kept);
        let layout = &screen.view.layouts[&1];
        let lines = layout.segments().iter().filter(|segment| segment.lines().is_some());
        assert!(n % 500 != 0 || lines.count() <= layout.kept() + 1);
    }
    assert!(most <= MAX_KEPT + 40, "{most}");
    assert!(screen.view.kept < MAX_KEPT, "nothing was dropped");
    let layout = &screen.view.layouts[&1];
    let rows: u32 = layout.segments().iter().map(super::layout::Segment::rows).sum();
    assert_eq!((layout.height(), layout.above(layout.segments().len())), (rows, rows));
    assert_eq!(layout.above(2), {
        let two = &layout.segments()[..2];
        two[0].rows() + two[1].rows()
    });
}

#[test]
fn a_search_finds_what_is_folded_and_walks_through_it() {
    let mut t = long(40);
    let output: String = (0..300).map(|n| format!("row {n}\n")).collect();
    call(
        &mut t,
        &Call {
            id: "big",
            title: "list",
            kind: ToolKind::Read,
            status: ToolStatus::Completed,
            output: &output,
            ..Call::default()
        },
        0,
    );
    t.begin_turn("last", vec![], 0);
    let mut screen = Screen::new(60, 20);
    screen.draw(&t);
    screen.view.find("ROW 123");
    let text = screen.draw(&t);
    assert_eq!(screen.view.matches(), Some((1, 1)));
    assert!(text.contains("row 123"), "{text}");
    let buf = screen.buffer(&t);
    let marked =
        buf.content.iter().filter(|cell| cell.bg == screen.theme.found_current.bg.unwrap());
    assert_eq!(marked.count(), "row 123".len());
    screen.view.find("question");
    let text = screen.draw(&t);
    assert_eq!(screen.view.matches(), Some((10, 10)));
    assert!(text.contains("question 9"), "{text}");
    screen.view.next_match(false);
    let text = screen.draw(&t);
    assert!(text.contains("question 8"), "{text}");
    screen.view.next_match(true);
    screen.view.next_match(true);
    let text = screen.draw(&t);
    assert!(text.contains("question 0"), "{text}");
    screen.view.end_search();
    assert_eq!(screen.view.matches(), None);
}

#[test]
fn a_match_far_down_a_long_answer_is_brought_into_sight() {
    let mut t = Transcript::new();
    t.begin_turn("go", vec![], 0);
    for n in 0..600 {
        say(&mut t, Role::Assistant, &format!("paragraph {n} of many\n\n"), 0);
    }
    say(&mut t, Role::Assistant, "the end has a needle", 0);
    let mut screen = Screen::new(60, 20);
    screen.draw(&t);
    for wanted in ["paragraph 321 ", "needle", "paragraph 5 "] {
        screen.view.find(wanted);
        let text = screen.draw(&t);
        assert!(text.contains(wanted.trim()), "{wanted}: {text}");
    }
}
