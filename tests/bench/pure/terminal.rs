//! The terminal's pure parts: update → transcript → cells, printed output, diffs.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use agent_client_protocol::v1::schema as acp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;
use zcode_acp::tui::model::transcript::{Piece, Role, Transcript};
use zcode_acp::tui::update::acp::{apply, apply_child};
use zcode_acp::tui::view::ansi::Output;
use zcode_acp::tui::view::code::Ink;
use zcode_acp::tui::view::diff::{Diff, Sides};
use zcode_acp::tui::view::highlight::Highlighter;
use zcode_acp::tui::view::markdown;
use zcode_acp::tui::view::theme::Theme;
use zcode_acp::tui::view::transcript::TranscriptView;

use crate::report::{Report, percentile};
use crate::{best, thread_time};

const AREA: Rect = Rect { x: 0, y: 0, width: 120, height: 34 };

const PIECES: [&str; 8] = [
    "## A heading\n\n",
    "Some **bold** words, ",
    "and `code` in prose.\n\n",
    "- an item\n- another\n\n",
    "```rust\nlet a = 1;\n",
    "let b = a + 1;\n```\n\n",
    "The quick brown fox ",
    "jumps over the dog.\n\n",
];

pub(crate) fn measure(report: &mut Report) {
    if report.wants("markdown") {
        one_shot(report);
    }
    if report.wants("stream") {
        stream(report);
    }
    if report.wants("thought") {
        thought(report);
    }
    if report.wants("frame") {
        frame(report);
    }
    if report.wants("ansi") {
        ansi(report);
    }
    if report.wants("diff") {
        diff(report);
    }
    if report.wants("subagents") {
        subagents(report);
    }
}

struct Screen {
    transcript: Transcript,
    view: TranscriptView,
    theme: Theme,
    area: Rect,
    cells: Buffer,
}

impl Screen {
    fn new() -> Self {
        let (transcript, view) = (Transcript::new(), TranscriptView::new());
        let cells = Buffer::empty(AREA);
        Self { transcript, view, theme: Theme::default(), area: AREA, cells }
    }

    /// A conversation of so many blocks: prompts and answers in turn.
    fn with_blocks(count: usize) -> Self {
        let mut screen = Self::new();
        for n in 0..count / 2 {
            screen.transcript.begin_turn("please go on", Vec::new(), n as u64);
            let text = format!("# Part {n}\n\n{}", PIECES.concat());
            let piece =
                Piece { role: Role::Assistant, parent: None, message_id: None, text: &text };
            screen.transcript.append(piece, n as u64);
            screen.transcript.settle(n as u64);
        }
        screen
    }

    fn say(&mut self, text: &str) {
        self.stream(acp::SessionUpdate::AgentMessageChunk, text);
    }

    fn stream(&mut self, kind: fn(acp::ContentChunk) -> acp::SessionUpdate, text: &str) {
        let content = acp::ContentBlock::Text(acp::TextContent::new(text.to_owned()));
        let update = kind(acp::ContentChunk::new(content));
        apply(&mut self.transcript, &update, 1);
    }

    /// Milliseconds of one frame.
    fn draw(&mut self) -> f64 {
        self.cells.resize(self.area);
        let began = Instant::now();
        self.cells.reset();
        self.view.render(&self.transcript, self.area, &mut self.cells, &self.theme, 1);
        black_box(&self.cells);
        began.elapsed().as_secs_f64() * 1e3
    }
}

fn one_shot(report: &mut Report) {
    let text = PIECES.concat().repeat(50);
    let kilobytes = text.len() as f64 / 1024.0;
    let theme = Theme::default();
    let cost = best(3, 3, || drop(black_box(markdown::render(&text, 100, &theme))));
    report.add(
        ("markdown", "one-shot rendering, a kilobyte"),
        cost / kilobytes,
        "µs",
        100.0,
        1000.0,
    );
}

/// What one long message may be made of: the piece for each number.
type Shape = (&'static str, fn(usize) -> String);

const SHAPES: [Shape; 6] = [
    ("mixed markdown", |n| PIECES[n % PIECES.len()].to_owned()),
    ("a paragraph without line feeds", |n| format!("word {n} and so on ")),
    ("an open code fence", |n| match n {
        0 => "```rust\n".to_owned(),
        n => format!("let a{n} = {n};\n"),
    }),
    ("a line without end in a fence", |n| match n {
        0 => "```\n".to_owned(),
        n => format!("{n:016x}"),
    }),
    ("an open table", |n| match n {
        0 => "| a | b |\n|---|---|\n".to_owned(),
        n => format!("| {n} | cell {n} |\n"),
    }),
    ("one list", |n| format!("- item number {n}\n")),
];

/// Streams one message and draws after every fourth piece, as a busy terminal does. Counts the
/// processor's time of this thread: what else runs does not show.
struct Streaming {
    screen: Screen,
    shape: Shape,
    at: usize,
}

impl Streaming {
    fn new(mut screen: Screen, shape: Shape) -> Self {
        screen.transcript.begin_turn("go", Vec::new(), 0);
        Self { screen, shape, at: 0 }
    }

    /// Microseconds a piece.
    fn run(&mut self, pieces: usize) -> f64 {
        let began = thread_time();
        for _ in 0..pieces {
            self.screen.say(&(self.shape.1)(self.at));
            if self.at.is_multiple_of(4) {
                self.screen.draw();
            }
            self.at += 1;
        }
        (thread_time() - began) * 1e6 / pieces as f64
    }

    /// The best of three stretches, each long enough to pass every size an open block may have.
    fn cost(&mut self) -> f64 {
        (0..3).map(|_| self.run(1_600)).fold(f64::INFINITY, f64::min)
    }
}

fn stream(report: &mut Report) {
    for shape in SHAPES {
        let mut streaming = Streaming::new(Screen::new(), shape);
        // Beyond what any open block may hold.
        streaming.run(1_200);
        let early = streaming.cost();
        streaming.run(report.pick(60_000, 16_000));
        let late = streaming.cost();
        let name = |what: &str| format!("{}: {what}", shape.0);
        report.add(("stream", &name("a chunk to cells")), early, "µs", 300.0, 3000.0);
        report.add(("stream", &name("late over early")), late / early, "x", 1.2, 1.5);
    }
    let cost = |blocks| Streaming::new(Screen::with_blocks(blocks), SHAPES[0]).cost();
    let few = cost(20);
    for blocks in [2_000, 20_000] {
        let name = format!("under {blocks} blocks, over under 20");
        report.add(("stream", &name), cost(blocks) / few, "x", 1.2, 1.5);
    }
    let mut screen = Screen::new();
    screen.transcript.begin_turn("go", Vec::new(), 0);
    let began = Instant::now();
    for n in 0..20_000 {
        screen.say(PIECES[n % PIECES.len()]);
    }
    screen.draw();
    let all = began.elapsed().as_secs_f64() * 1e3;
    report.add(("stream", "20,000 chunks applied, then one frame"), all, "ms", 200.0, 2000.0);
}

/// A long thought streams on: what a chunk and its frame cost must not follow from its length.
fn thought(report: &mut Report) {
    let mut screen = Screen::new();
    screen.transcript.begin_turn("go", Vec::new(), 0);
    let think = |screen: &mut Screen| {
        screen.stream(acp::SessionUpdate::AgentThoughtChunk, "line after line\nof a thought ");
    };
    let cost = |screen: &mut Screen| {
        let run = |screen: &mut Screen| {
            let began = thread_time();
            for _ in 0..200 {
                think(screen);
                screen.draw();
            }
            (thread_time() - began) * 1e6 / 200.0
        };
        (0..5).map(|_| run(screen)).fold(f64::INFINITY, f64::min)
    };
    (0..2_000).for_each(|_| think(&mut screen));
    let early = cost(&mut screen);
    (0..200_000).for_each(|_| think(&mut screen));
    let late = cost(&mut screen);
    report.add(("thought", "a chunk and its frame"), early, "µs", 300.0, 3000.0);
    report.add(("thought", "after 200,000 lines, over early"), late / early, "x", 1.2, 1.5);
}

fn frame(report: &mut Report) {
    for (blocks, target) in [(2_000, 2.0), (20_000, 3.0)] {
        let mut screen = Screen::with_blocks(blocks);
        let first = screen.draw();
        let mut frames = Vec::new();
        for n in 0..100 {
            screen.say(PIECES[n % PIECES.len()]);
            screen.view.scroll_by(if n < 50 { -3 } else { 3 });
            frames.push(screen.draw());
        }
        let p95 = percentile(&frames, 0.95);
        report.add(("frame", &format!("{blocks} blocks: a frame, p95")), p95, "ms", target, 30.0);
        report.add(
            ("frame", &format!("{blocks} blocks: the first frame")),
            first,
            "ms",
            50.0,
            500.0,
        );
        screen.area.width = 90;
        let resized = screen.draw();
        report.add(
            ("frame", &format!("{blocks} blocks: after a resize")),
            resized,
            "ms",
            50.0,
            500.0,
        );
    }
}

fn ansi(report: &mut Report) {
    let mut text = String::new();
    while text.len() < 1 << 20 {
        writeln!(text, "\x1b[32m   Compiling\x1b[0m crate-{} v1.2.3 (src/lib.rs)\r", text.len())
            .unwrap();
    }
    let cost = best(3, 2, || {
        let mut output = Output::new(2_000);
        output.feed(&text);
        black_box(output.len());
    });
    report.add(("ansi", "a megabyte of coloured output, read"), cost / 1e3, "ms", 50.0, 500.0);
}

fn diff(report: &mut Report) {
    let mut old = String::new();
    let mut new = String::new();
    for n in 0..10_000 {
        writeln!(old, "let value_{n} = compute({n});").unwrap();
        if n % 10 == 0 {
            writeln!(new, "let value_{n} = compute_better({n});").unwrap();
        } else {
            writeln!(new, "let value_{n} = compute({n});").unwrap();
        }
    }
    let sides = Sides { path: "a.rs", old: &old, new: &new };
    let mut code = Highlighter::inline();
    let theme = Theme::default();
    let cost = best(3, 1, || drop(black_box(Diff::new(sides))));
    report.add(("diff", "10,000 lines compared"), cost / 1e3, "ms", 30.0, 300.0);
    let diff = Diff::new(sides);
    // 80 cells: one above the other; 160: beside each other. Colours come from another thread.
    for width in [80, 160] {
        let len = diff.len(width);
        let mut plain = Highlighter::off();
        let mut frame = |first: usize| {
            let mut ink = Ink::new(&mut plain);
            let began = thread_time();
            drop(black_box(diff.lines(sides, first..first + 40, width, &theme, &mut ink)));
            (thread_time() - began) * 1e3
        };
        let frames: Vec<f64> = (0..len - 40).step_by(37).map(&mut frame).collect();
        let p95 = percentile(&frames, 0.95);
        let name = format!("{width} cells: a screen of it drawn while one scrolls, p95");
        report.add(("diff", &name), p95, "ms", 3.0, 30.0);
        // What is far down costs what is at the top costs.
        let part = |frames: &[f64]| percentile(frames, 0.5);
        let (top, end) = frames.split_at(frames.len() / 2);
        let name = format!("{width} cells: its second half over its first");
        report.add(("diff", &name), part(end) / part(top), "x", 1.2, 1.8);
    }
    let cost = best(3, 10, || {
        let mut ink = Ink::new(&mut code);
        drop(black_box(diff.lines(sides, 200..240, 160, &theme, &mut ink)));
    });
    report.add(("diff", "a coloured screen of it drawn again"), cost / 1e3, "ms", 3.0, 30.0);
}

/// Subagents that all work: what a piece of text of one of them and its frame cost must not follow from how many
/// there are.
fn subagents(report: &mut Report) {
    let cost = |count: usize| {
        let mut screen = Screen::new();
        screen.transcript.begin_turn("go", Vec::new(), 0);
        for n in 0..count {
            let child = json!({"sessionUpdate": "subagent_update", "sessionId": format!("child{n}"),
                "title": format!("Task {n}"), "state": {"state": "running"}, "capabilities": {}});
            apply(&mut screen.transcript, &serde_json::from_value(child).unwrap(), 0);
        }
        let round = |screen: &mut Screen| {
            let began = thread_time();
            for n in 0..400 {
                let content = acp::ContentBlock::Text(acp::TextContent::new(PIECES[n % 8]));
                let update = acp::SessionUpdate::AgentMessageChunk(acp::ContentChunk::new(content));
                apply_child(&mut screen.transcript, &format!("child{}", n % count), &update, 1);
                screen.draw();
            }
            (thread_time() - began) * 1e6 / 400.0
        };
        (0..5).map(|_| round(&mut screen)).fold(f64::INFINITY, f64::min)
    };
    let few = cost(10);
    let many = cost(100);
    report.add(
        ("subagents", "100 at work: a piece of text and its frame"),
        many,
        "µs",
        300.0,
        3000.0,
    );
    // Ten do not fill the screen.
    report.add(("subagents", "100 at work, over 10"), many / few, "x", 3.0, 5.0);
    let most = cost(1_000);
    report.add(("subagents", "1,000 at work, over 100"), most / many, "x", 1.2, 1.8);
}
