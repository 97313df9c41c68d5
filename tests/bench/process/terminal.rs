//! `tui` on a pseudo-terminal of 120x40: the first frame, idleness, streamed text, floods and keys.

use std::time::{Duration, Instant};

use crate::probe::median;
use crate::pty::Terminal;
use crate::report::{Report, percentile};

const SIZE: (u16, u16) = (120, 40);

pub(crate) fn measure(report: &mut Report) {
    if report.wants("first frame") {
        first_frame(report);
    }
    if report.wants("idle terminal") {
        idle(report);
    }
    if report.wants("stream") {
        stream(report);
    }
    if report.wants("spinner") {
        spinner(report);
    }
    if report.wants("pour") {
        pour(report, 20_000, 0.4, 5.0);
        if !report.short {
            pour(report, 200_000, 1.5, 20.0);
        }
    }
}

fn first_frame(report: &mut Report) {
    let (mut first, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..report.pick(20, 7) {
        let mut terminal = Terminal::start(&["tui", "--demo"], SIZE);
        let shown = terminal.until_true("the composer", |screen| {
            screen.lines().filter(|l| !l.trim().is_empty()).count() > 4
        });
        first.push((terminal.first.unwrap() - terminal.started).as_secs_f64() * 1e3);
        whole.push((shown - terminal.started).as_secs_f64() * 1e3);
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
fn stream(report: &mut Report) {
    let mut terminal = Terminal::flooded(SIZE);
    let secs: u64 = report.pick(600, 9);
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
    report.add(("stream", "100 chunks/s: CPU at first"), first, "% of a core", 3.0, 15.0);
    report.add(("stream", "100 chunks/s: CPU at the end"), last, "% of a core", 3.0, 15.0);
    report.add(
        ("stream", "100 chunks/s: bytes to the terminal"),
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
fn pour(report: &mut Report, chunks: u32, target: f64, gate: f64) {
    let name = |what: &str| format!("{chunks} chunks at once: {what}");
    let mut terminal = Terminal::flooded(SIZE);
    terminal.prompt(&format!("flood {chunks}"));
    let began = Instant::now();
    let done = terminal.until("DONE-2");
    let drawn = (done - began).as_secs_f64();
    terminal.pass(Duration::from_secs(1));
    report.add(("pour", &name("drawn to the end")), drawn, "s", target, gate);
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

    // Keys while it pours, then Esc.
    let mut terminal = Terminal::flooded(SIZE);
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
    let pressed = Instant::now();
    terminal.send("\x1b");
    let ended = terminal.until("STOPPED-2");
    report.add(
        ("pour", &name("Esc to the agent's answer on the screen")),
        (ended - pressed).as_secs_f64() * 1e3,
        "ms",
        50.0,
        1000.0,
    );
    assert!(!terminal.screen().is_empty());
}
