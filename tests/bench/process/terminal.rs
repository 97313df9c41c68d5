//! `tui` on a pseudo-terminal of 120x40 and of 200x60: the first frame, idleness, streamed text,
//! floods, keys, many blocks, much output and old sessions. `LONG=1` streams for ten minutes.

use std::time::{Duration, Instant};

use crate::flood_agent;
use crate::probe::{median, now_ns};
use crate::pty::Terminal;
use crate::report::{Report, percentile};

const SIZE: (u16, u16) = (120, 40);
const SIZES: [(u16, u16); 2] = [SIZE, (200, 60)];
/// Streams for ten minutes instead of one.
const LONG: &str = "LONG";

pub(crate) fn measure(report: &mut Report) {
    if report.wants("first frame") {
        first_frame(report);
    }
    if report.wants("idle terminal") {
        idle(report);
    }
    if report.wants("stream") {
        for size in SIZES {
            stream(report, size);
        }
    }
    if report.wants("spinner") {
        spinner(report);
    }
    if report.wants("pour") {
        for size in SIZES {
            pour(report, size, 20_000, (0.4, 5.0));
            if !report.short {
                pour(report, size, 200_000, (1.5, 20.0));
            }
        }
    }
    if report.wants("blocks") {
        blocks(report);
    }
    if report.wants("output") {
        output(report);
    }
    if report.wants("pages") {
        for size in [SIZE, (240, 60)] {
            change_page(report, size);
        }
        output_page(report);
    }
    if report.wants("subagents") {
        subagents(report);
    }
    if report.wants("old sessions") {
        old_sessions(report);
    }
}

fn first_frame(report: &mut Report) {
    let (mut first, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..report.pick(20, 7) {
        let mut terminal = Terminal::start(&["tui", "--demo"], SIZE);
        let shown = terminal.until_true("the composer", |screen| {
            screen.lines().filter(|l| !l.trim().is_empty()).count() > 4
        });
        let execed = terminal.execed();
        first.push((terminal.first.unwrap() - execed).as_secs_f64() * 1e3);
        whole.push((shown - execed).as_secs_f64() * 1e3);
    }
    report.add(("first frame", "exec to the first byte, median"), median(&first), "ms", 4.0, 25.0);
    report.add(
        ("first frame", "exec to the welcome screen, median"),
        median(&whole),
        "ms",
        4.0,
        40.0,
    );
}

fn idle(report: &mut Report) {
    let mut terminal = Terminal::start(&["tui", "--demo"], SIZE);
    terminal.pass(Duration::from_secs(2));
    let (bytes, before) = (terminal.bytes, terminal.probe());
    let secs = report.pick(10, 3);
    terminal.pass(Duration::from_secs(secs));
    let after = terminal.probe();
    let secs = secs as f64;
    report.add(
        ("idle terminal", "bytes written"),
        (terminal.bytes - bytes) as f64 / secs,
        "/s",
        0.0,
        0.0,
    );
    report.add(("idle terminal", "CPU"), (after.cpu - before.cpu) * 1e3 / secs, "ms/s", 0.0, 1.0);
    report.add(
        ("idle terminal", "wake-ups"),
        (after.sleeps - before.sleeps) as f64 / secs,
        "/s",
        1.0,
        3.0,
    );
}

/// A hundred chunks a second.
fn stream(report: &mut Report, size: (u16, u16)) {
    let name = |what: &str| format!("{}x{}, 100 chunks/s: {what}", size.0, size.1);
    let mut terminal = Terminal::flooded(size);
    let long = if std::env::var_os(LONG).is_some() { 600 } else { 60 };
    let secs: u64 = report.pick(long, 9);
    let part = Duration::from_secs(report.pick(10, 3));
    terminal.prompt(&format!("pace {} 10", secs * 100));
    let share = |terminal: &mut Terminal| {
        let (before, bytes, began) = (terminal.probe().cpu, terminal.bytes, Instant::now());
        terminal.pass(part);
        let secs = began.elapsed().as_secs_f64();
        (
            (terminal.probe().cpu - before) / secs * 100.0,
            (terminal.bytes - bytes) as f64 / secs / 1e3,
        )
    };
    let (first, first_bytes) = share(&mut terminal);
    terminal.pass(Duration::from_secs(secs).saturating_sub(part * 2));
    let (last, last_bytes) = share(&mut terminal);
    terminal.until("DONE-2");
    report.add(("stream", &name("CPU at first")), first, "% of a core", 3.0, 15.0);
    report.add(("stream", &name("CPU at the end")), last, "% of a core", 3.0, 15.0);
    report.add(
        ("stream", &name("bytes to the terminal")),
        first_bytes.max(last_bytes),
        "KB/s",
        40.0,
        80.0,
    );
}

fn spinner(report: &mut Report) {
    let mut terminal = Terminal::flooded(SIZE);
    terminal.prompt("wait");
    terminal.pass(Duration::from_secs(2));
    let (before, bytes) = (terminal.probe(), terminal.bytes);
    let secs = report.pick(10, 4);
    terminal.pass(Duration::from_secs(secs));
    let after = terminal.probe();
    let secs = secs as f64;
    report.add(
        ("spinner", "bytes to the terminal"),
        (terminal.bytes - bytes) as f64 / secs,
        "/s",
        200.0,
        600.0,
    );
    report.add(
        ("spinner", "CPU"),
        (after.cpu - before.cpu) * 100.0 / secs,
        "% of a core",
        0.5,
        3.0,
    );
}

/// So many chunks at once; keys are pressed meanwhile.
fn pour(report: &mut Report, size: (u16, u16), chunks: u32, (target, gate): (f64, f64)) {
    let name = |what: &str| format!("{}x{}, {chunks} chunks at once: {what}", size.0, size.1);
    let mut terminal = Terminal::flooded(size);
    terminal.prompt(&format!("flood {chunks}"));
    let began = Instant::now();
    let done = terminal.until("DONE-2");
    let drawn = (done - began).as_secs_f64();
    terminal.pass(Duration::from_secs(1));
    report.add(("pour", &name("drawn to the end")), drawn, "s", target, gate);
    let alone = flood_agent::alone(chunks).as_secs_f64();
    report.add(("pour", &name("over the agent's own time")), drawn / alone, "x", 2.0, 8.0);
    report.add(("pour", &name("peak memory")), terminal.probe().peak, "MiB", 48.0, 96.0);

    // What a key costs afterwards.
    let before = terminal.probe().cpu;
    for key in "hello".chars() {
        terminal.send(&key.to_string());
        terminal.pass(Duration::from_millis(100));
    }
    let key = (terminal.probe().cpu - before) * 1e3 / 5.0;
    report.add(("pour", &name("CPU of a key afterwards")), key, "ms", 1.0, 5.0);
    let before = terminal.probe().cpu;
    for _ in 0..5 {
        terminal.send("\x1b[5~");
        terminal.pass(Duration::from_millis(100));
    }
    let page = (terminal.probe().cpu - before) * 1e3 / 5.0;
    report.add(("pour", &name("CPU of a page up afterwards")), page, "ms", 5.0, 25.0);

    keys_in_a_flood(report, size, &name);
}

/// Keys while it pours, then Esc.
fn keys_in_a_flood(report: &mut Report, size: (u16, u16), name: &dyn Fn(&str) -> String) {
    let mut terminal = Terminal::flooded(size);
    terminal.prompt("flood 100000000");
    terminal.pass(Duration::from_millis(300));
    let mut delays = Vec::new();
    let mut typed = String::new();
    for key in "quickly-typed-words-in-a-flood".chars().take(report.pick(30, 12)) {
        typed.push(key);
        let pressed = Instant::now();
        terminal.send(&key.to_string());
        let wanted = typed.clone();
        let shown = terminal.until_true("a typed key", |screen| screen.contains(&wanted));
        delays.push((shown - pressed).as_secs_f64() * 1e3);
        terminal.pass(Duration::from_millis(23));
    }
    report.add(
        ("pour", &name("a key on the screen meanwhile, p95")),
        percentile(&delays, 0.95),
        "ms",
        16.0,
        150.0,
    );
    terminal.send("\x15");
    terminal.pass(Duration::from_millis(100));
    let mut reached = Vec::new();
    for prompt in 2..2 + report.pick(9, 5) {
        if prompt > 2 {
            terminal.prompt("flood 100000000");
            terminal.pass(Duration::from_millis(300));
        }
        let pressed = now_ns() as f64;
        terminal.send("\x1b");
        let answer = format!("STOPPED-{prompt} at ");
        terminal.until_true(&answer, |screen| {
            screen.split(&answer).nth(1).is_some_and(|rest| rest.contains('.'))
        });
        reached.push((terminal.number_after(&answer) - pressed) / 1e6);
        terminal.pass(Duration::from_millis(300));
    }
    let esc = median(&reached);
    report.add(
        ("pour", &name("Esc meanwhile, until the agent has read it")),
        esc,
        "ms",
        20.0,
        200.0,
    );
}

/// Many blocks: a frame in which one scrolls, and another width.
fn blocks(report: &mut Report) {
    for (count, target) in [(2_000, 2.0), (20_000, 3.0)] {
        let name = |what: &str| format!("{count} blocks: {what}");
        let mut terminal = Terminal::flooded(SIZE);
        terminal.prompt(&format!("blocks {count}"));
        terminal.until("DONE-2");
        terminal.pass(Duration::from_millis(500));
        let mut frames = Vec::new();
        for n in 0..40 {
            let before = terminal.probe().cpu;
            terminal.send(if n < 20 { "\x1b[5~" } else { "\x1b[6~" });
            terminal.pass(Duration::from_millis(40));
            frames.push((terminal.probe().cpu - before) * 1e3);
        }
        let p95 = percentile(&frames, 0.95);
        report.add(("blocks", &name("CPU of a page and its frame, p95")), p95, "ms", target, 15.0);
        let mut redrawn = Vec::new();
        for columns in [90, 140, 70, 120, 100] {
            terminal.resize((columns, 40));
            let began = Instant::now();
            let done = terminal.until_true("a frame", |_| true);
            redrawn.push((done - began).as_secs_f64() * 1e3);
            terminal.pass(Duration::from_millis(100));
        }
        report.add(
            ("blocks", &name("redrawn after a resize")),
            median(&redrawn),
            "ms",
            50.0,
            250.0,
        );
    }
}

/// Commands of a megabyte of output each: memory has an end, the disk has the rest.
fn output(report: &mut Report) {
    let count: u64 = report.pick(2_000, 200);
    let name = |what: &str| format!("{count} commands of 1 MB: {what}");
    let mut terminal = Terminal::flooded(SIZE);
    terminal.prompt(&format!("tools {count} 1024"));
    terminal.until("DONE-2");
    terminal.pass(Duration::from_secs(1));
    let reading = terminal.probe();
    report.add(("output", &name("peak memory")), reading.peak, "MiB", 128.0, 128.0);
    // The pager reads the disk: each output must be there from its first line to its last.
    let mut whole = vec![false; count as usize];
    for text in terminal.kept() {
        let Some(n) = text.strip_prefix("FIRST-").and_then(|rest| rest.lines().next()) else {
            continue;
        };
        if text.len() >= 1 << 20 && text.ends_with(&format!("\nLAST-{n}\n")) {
            whole[n.parse::<usize>().unwrap()] = true;
        }
    }
    let lost = whole.iter().filter(|whole| !**whole).count();
    report.add(("output", &name("lost to the pager")), lost as f64, "outputs", 0.0, 0.0);
}

/// What each of so many page keys and its frame cost the thread that draws, at the 95th percentile,
/// and how long it took until the terminal had it. Colours come from another thread, later.
fn paged(report: &mut Report, terminal: &mut Terminal, name: &dyn Fn(&str) -> String) {
    let (mut costs, mut times) = (Vec::new(), Vec::new());
    for _ in 0..report.pick(60, 15) {
        let (before, pressed) = (terminal.probe().main, Instant::now());
        terminal.send("\x1b[6~");
        let shown = terminal.until_true("a frame", |_| true);
        times.push((shown - pressed).as_secs_f64() * 1e3);
        terminal.pass(Duration::from_millis(40));
        costs.push((terminal.probe().main - before) * 1e3);
    }
    let (cost, time) = (percentile(&costs, 0.95), percentile(&times, 0.95));
    report.add(("pages", &name("CPU of a page and its frame, p95")), cost, "ms", 4.0, 30.0);
    report.add(("pages", &name("a page on the screen, p95")), time, "ms", 16.0, 150.0);
}

/// Opens the page of the last card; returns how long that took and its CPU, in milliseconds.
fn open_page(terminal: &mut Terminal, shows: &str) -> (f64, f64) {
    terminal.pass(Duration::from_secs(1));
    let (before, pressed) = (terminal.probe().cpu, Instant::now());
    terminal.send("\x14");
    let shown = terminal.until(shows);
    terminal.pass(Duration::from_millis(200));
    ((shown - pressed).as_secs_f64() * 1e3, (terminal.probe().cpu - before) * 1e3)
}

/// A changed file of ten thousand lines in full; on the wider screen both sides stand beside each other.
fn change_page(report: &mut Report, size: (u16, u16)) {
    let name = |what: &str| format!("{}x{}, 10,000 changed lines: {what}", size.0, size.1);
    let mut terminal = Terminal::flooded(size);
    terminal.prompt("change 10000");
    terminal.until("DONE-2");
    let (opened, cpu) = open_page(&mut terminal, "lines · / finds");
    report.add(("pages", &name("opened")), opened, "ms", 100.0, 1000.0);
    report.add(("pages", &name("opened, CPU")), cpu, "ms", 100.0, 1000.0);
    paged(report, &mut terminal, &name);
}

/// An output of sixteen megabytes in full.
fn output_page(report: &mut Report) {
    let name = |what: &str| format!("an output of 16 MB: {what}");
    let mut terminal = Terminal::flooded(SIZE);
    terminal.prompt("tools 1 16300");
    terminal.until("DONE-2");
    let (opened, cpu) = open_page(&mut terminal, "lines · / finds");
    report.add(("pages", &name("opened")), opened, "ms", 100.0, 1000.0);
    report.add(("pages", &name("opened, CPU")), cpu, "ms", 100.0, 1000.0);
    paged(report, &mut terminal, &name);
    let pressed = Instant::now();
    terminal.send("\x1b[1;5F");
    let end = terminal.until("LAST-0");
    let end = (end - pressed).as_secs_f64() * 1e3;
    report.add(("pages", &name("its end")), end, "ms", 500.0, 5000.0);
    report.add(("pages", &name("peak memory")), terminal.probe().peak, "MiB", 192.0, 256.0);
}

/// A hundred subagents that all work at once, and as many again for how the cost grows.
fn subagents(report: &mut Report) {
    let secs = report.pick(10, 3);
    let share = |count: u64| {
        let mut terminal = Terminal::flooded(SIZE);
        terminal.prompt(&format!("children {count} {}", secs + 3));
        terminal.pass(Duration::from_secs(2));
        let (before, bytes, frames) = (terminal.probe().cpu, terminal.bytes, terminal.pieces);
        terminal.pass(Duration::from_secs(secs));
        let secs = secs as f64;
        let cpu = (terminal.probe().cpu - before) / secs * 100.0;
        let bytes = (terminal.bytes - bytes) as f64 / secs / 1e3;
        let frames = (terminal.pieces - frames) as f64 / secs;
        (cpu, bytes, frames)
    };
    let (few, _, _) = share(25);
    let (cpu, bytes, frames) = share(100);
    let name = |what: &str| format!("100 at once, ten pieces of text a second each: {what}");
    report.add(("subagents", &name("CPU")), cpu, "% of a core", 5.0, 200.0);
    report.add(("subagents", &name("CPU, over that of 25")), cpu / few, "x", 4.0, 6.0);
    report.add(("subagents", &name("bytes to the terminal")), bytes, "KB/s", 40.0, 80.0);
    report.add(("subagents", &name("writes to the terminal")), frames, "/s", 35.0, 70.0);
}

/// A list of ten thousand old sessions, and one of them opened.
fn old_sessions(report: &mut Report) {
    let mut terminal = Terminal::flooded(SIZE);
    terminal.send("/resume");
    terminal.until("/resume");
    terminal.pass(Duration::from_millis(300));
    let pressed = Instant::now();
    terminal.send("\r");
    let shown = terminal.until("Session number");
    let list = (shown - pressed).as_secs_f64() * 1e3;
    report.add(("old sessions", "a list of 10,000"), list, "ms", 100.0, 500.0);
    terminal.send("\x1b");
    terminal.pass(Duration::from_millis(300));
    let megabytes = report.pick(60, 20);
    terminal.prompt(&format!("/resume big-{megabytes}"));
    let answers = |screen: &str| screen.contains("BEGAN at") || screen.contains("Answer ");
    terminal.until_true("the first screen", answers);
    let first = now_ns();
    terminal.until("LOADED");
    let all = now_ns();
    terminal.send("\x1b[1;5H");
    terminal.until("BEGAN at");
    let began = terminal.number_after("BEGAN at ");
    let name = |what: &str| format!("{megabytes} MB opened: {what}");
    let (first, all) = ((first as f64 - began) / 1e6, (all as f64 - began) / 1e6);
    report.add(("old sessions", &name("data to the first screen")), first, "ms", 300.0, 1500.0);
    report.add(("old sessions", &name("data to the last of it")), all, "ms", 5000.0, 30_000.0);
    report.add(("old sessions", &name("peak memory")), terminal.probe().peak, "MiB", 256.0, 400.0);
}
