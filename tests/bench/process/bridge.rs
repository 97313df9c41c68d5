//! `serve` on pipes: start, a new session, the way of a prompt, questions, a cancel, streamed text,
//! floods, idleness.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Line, Setup};
use crate::inside;
use crate::probe::{Reading, median, ms_since, now_ns};
use crate::relay::{Passed, passed};
use crate::report::{Report, percentile};

const FAST: &str = "--pace 0";
/// A piece every five milliseconds.
const PACED: &str = "--pace 5 -o no-batch";
/// Bytes of one streamed piece of the flood script, about.
const PIECE: u64 = 84;

pub(crate) fn measure(report: &mut Report) {
    if report.wants("start") {
        start(report);
    }
    if report.wants("prompt") {
        prompt(report);
    }
    if report.wants("permission") {
        permission(report);
    }
    if report.wants("cancel") {
        cancel(report);
    }
    if report.wants("latency") {
        latency(report);
    }
    if report.wants("inside") {
        inside::measure(report);
    }
    if report.wants("batched") {
        batched(report);
    }
    if report.wants("flood") {
        flood(report);
    }
    if report.wants("sessions") {
        sessions(report);
    }
    if report.wants("load") {
        load(report);
    }
    if report.wants("soak") {
        soak(report);
    }
    if report.wants("idle bridge") {
        idle(report);
    }
}

fn start(report: &mut Report) {
    let setup = Setup { sim: FAST, relayed: false, ..Setup::default() };
    let runs = report.pick(20, 7);
    let times: Vec<f64> = (0..runs)
        .map(|_| {
            let mut client = Client::start(&setup);
            client.initialize();
            ms_since(client.started)
        })
        .collect();
    report.add(("start", "spawn to initialize, median"), median(&times), "ms", 8.0, 40.0);
}

fn is_call(passed: &Passed, method: &str) -> bool {
    passed.line.contains(&format!("\"method\":\"{method}\""))
}

fn prompt(report: &mut Report) {
    let setup = Setup { sim: FAST, relayed: true, ..Setup::default() };
    let (mut new, mut sends, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..report.pick(10, 4) {
        let mut client = Client::ready(&setup);
        let began = Instant::now();
        let session = client.new_session();
        new.push(ms_since(began));
        client.turn(&session, "hello");
        for _ in 0..3 {
            client.drain(Duration::from_millis(60));
            let asked = now_ns();
            let id = client.prompt(&session, "hello");
            let first = client.until_chunk();
            client.until_reply(id);
            let calls = passed(&client.engine_log(), "in");
            let sent = calls.iter().rfind(|p| is_call(p, "session/send")).unwrap();
            sends.push((sent.at - asked) as f64 / 1e6);
            chunks.push((first.at - asked) as f64 / 1e6);
        }
    }
    report.add(("session", "session/new, median"), median(&new), "ms", 1.0, 20.0);
    report.add(
        ("prompt", "warm prompt to the engine's session/send, median"),
        median(&sends),
        "ms",
        1.0,
        20.0,
    );
    report.add(
        ("prompt", "warm prompt to the first chunk, median"),
        median(&chunks),
        "ms",
        10.0,
        100.0,
    );
}

fn permission(report: &mut Report) {
    let mut client = Client::ready(&Setup { sim: FAST, relayed: true, ..Setup::default() });
    let session = client.new_session();
    for _ in 0..report.pick(20, 5) {
        client.turn(&session, "permission");
    }
    let out = passed(&client.engine_log(), "out");
    let inward = passed(&client.engine_log(), "in");
    let mut seen = std::collections::HashSet::new();
    let requests = out.iter().filter_map(|p| {
        if !is_call(p, "interaction/requestPermission") {
            return None;
        }
        let message: Value = serde_json::from_str(&p.line).ok()?;
        let name = message.pointer("/params/requestId")?.as_str()?.to_owned();
        seen.insert(name).then(|| (p.at, message["id"].to_string()))
    });
    let (mut down, mut up) = (Vec::new(), Vec::new());
    for ((at, id), (came, answered)) in requests.zip(&client.asked) {
        down.push(came.saturating_sub(at) as f64 / 1e6);
        let mark = format!("\"id\":{id}");
        let reply = inward.iter().find(|p| p.at >= *answered && p.line.contains(&mark));
        up.extend(reply.map(|p| (p.at - answered) as f64 / 1e6));
    }
    report.add(
        ("permission", "engine's request to the client, median"),
        median(&down),
        "ms",
        1.0,
        20.0,
    );
    report.add(
        ("permission", "client's answer to the engine, median"),
        median(&up),
        "ms",
        1.0,
        20.0,
    );
}

fn cancel(report: &mut Report) {
    let mut client = Client::ready(&Setup { sim: "", relayed: true, ..Setup::default() });
    let session = client.new_session();
    let mut extra = Vec::new();
    for _ in 0..report.pick(5, 2) {
        let id = client.prompt(&session, "long");
        client.until_chunk();
        let asked = now_ns();
        client.notify("session/cancel", &json!({"sessionId": session}));
        let answer = client.reply(id);
        // The engine's own part: from the stop it read to the last thing it said about the turn.
        let stop = passed(&client.engine_log(), "in");
        let stop = stop.iter().find(|p| p.at >= asked && p.line.contains("top\"")).map(|p| p.at);
        let out = passed(&client.engine_log(), "out");
        let ended = out.iter().filter(|p| p.at >= asked && p.at <= answer.at);
        let ended = ended
            .filter(|p| p.line.contains("turn.completed") || p.line.contains("turn.failed"))
            .map(|p| p.at)
            .next();
        let engine = stop.zip(ended).map_or(0, |(stop, ended)| ended.saturating_sub(stop));
        extra.push((answer.at - asked).saturating_sub(engine) as f64 / 1e6);
    }
    report.add(
        ("cancel", "cancel to the answer beyond the engine's own time, median"),
        median(&extra),
        "ms",
        10.0,
        200.0,
    );
}

/// When each streamed piece left the engine, with the characters up to its end.
fn emitted(log: &[Passed]) -> Vec<(u64, usize)> {
    let mut sum = 0;
    log.iter()
        .filter(|p| p.line.contains("\"text_delta\""))
        .filter_map(|p| {
            let message: Value = serde_json::from_str(&p.line).ok()?;
            sum += message.pointer("/params/payload/delta")?.as_str()?.chars().count();
            Some((p.at, sum))
        })
        .collect()
}

/// Milliseconds from each piece to the chunk that covers it.
fn delays(emits: &[(u64, usize)], lines: &[Line]) -> Vec<f64> {
    let mut sum = 0;
    let arrived: Vec<(u64, usize)> = lines
        .iter()
        .filter_map(|line| {
            sum += line.chunk()?.chars().count();
            Some((line.at, sum))
        })
        .collect();
    let mut at = 0;
    let mut delays = Vec::new();
    for (emitted, end) in emits {
        while arrived.get(at).is_some_and(|(_, covered)| covered < end) {
            at += 1;
        }
        let Some((came, _)) = arrived.get(at) else { break };
        delays.push((*came as f64 - *emitted as f64) / 1e6);
    }
    assert!(!emits.is_empty() && delays.len() == emits.len(), "text is missing");
    delays
}

/// What each piece took from the engine to the client, and the wake-ups a piece.
fn unbatched(setup: &Setup, pieces: u64) -> (Vec<f64>, f64) {
    let mut client = Client::ready(setup);
    let session = client.new_session();
    let before = client.probe();
    let lines = client.turn(&session, &format!("flood {}", pieces * PIECE));
    let after = client.probe();
    let emits = emitted(&passed(&client.engine_log(), "out"));
    let sleeps = (after.sleeps - before.sleeps) as f64 / emits.len() as f64;
    (delays(&emits, &lines), sleeps)
}

fn latency(report: &mut Report) {
    let pieces = report.pick(2000, 400);
    let (delays, sleeps) =
        unbatched(&Setup { sim: PACED, relayed: true, ..Setup::default() }, pieces);
    let (least, _) = unbatched(&Setup { sim: PACED, relayed: true, floor: true }, pieces);
    let p50 = percentile(&delays, 0.5);
    report.add(("latency", "unbatched delta, engine to client, p50"), p50, "ms", 0.1, 2.0);
    report.add(("latency", "the same, p99"), percentile(&delays, 0.99), "ms", 0.3, 20.0);
    report.add(
        ("latency", "p50 over that of an agent that only copies the text"),
        p50 / percentile(&least, 0.5),
        "x",
        1.5,
        6.0,
    );
    report.add(("latency", "wake-ups of the bridge a delta"), sleeps, "", 1.5, 3.0);
}

/// Milliseconds between the chunks of a turn as a model streams it.
fn gaps(sim: &'static str, script: &str) -> (f64, f64) {
    let mut client = Client::ready(&Setup { sim, relayed: false, ..Setup::default() });
    let session = client.new_session();
    let lines = client.turn(&session, script);
    let chunks: Vec<u64> =
        lines.iter().filter(|line| line.chunk().is_some()).map(|line| line.at).collect();
    let gaps: Vec<f64> = chunks.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    (percentile(&gaps, 0.5), percentile(&gaps, 0.95))
}

/// With the engine's own batching, the same turn through both channels: what counts is the richer one.
fn batched(report: &mut Report) {
    let script = report.pick("story", "markdown");
    let (p50, p95) = gaps("--pace 1", script);
    let (legacy, _) = gaps("--pace 1 --fault no-method:v4/conversation/subscribe", script);
    report.add(
        ("batched", "time between two chunks of a 55-token-a-second model, p50"),
        p50,
        "ms",
        40.0,
        300.0,
    );
    report.add(("batched", "the same, p95"), p95, "ms", 60.0, 400.0);
    report.add(
        ("batched", "p50 through V4 over p50 of the same turn through the old channel"),
        p50 / legacy,
        "x",
        0.25,
        0.8,
    );
}

/// CPU time of the bridge and memory for a flood of so many pieces.
fn flood_of(pieces: u64) -> (f64, f64, Reading) {
    let mut client =
        Client::ready(&Setup { sim: "--pace 0 -o no-batch", relayed: false, ..Setup::default() });
    let session = client.new_session();
    client.turn(&session, "hello");
    client.drain(Duration::from_millis(200));
    let before = client.probe();
    let id = client.prompt(&session, &format!("flood {}", pieces * PIECE));
    let mut chars = 0;
    let mut chunks = 0_u64;
    loop {
        let line = client.next_line();
        if let Some(text) = line.chunk() {
            chars += text.len() as u64;
            chunks += 1;
        } else if line.text.contains("stopReason") && line.text.contains(&format!("\"id\":{id}")) {
            break;
        }
    }
    assert!(chars >= pieces * PIECE, "text is missing: {chars} bytes");
    let after = client.probe();
    ((after.cpu - before.cpu) * 1e6 / pieces as f64, chunks as f64 / pieces as f64, after)
}

fn flood(report: &mut Report) {
    let (small, _, _) = flood_of(10_000);
    let (cost, merged, reading) = flood_of(report.pick(100_000, 40_000));
    report.add(("flood", "CPU of the bridge a delta"), cost, "µs", 3.7, 25.0);
    report.add(
        ("flood", "chunks a delta (adjacent ones may be merged under pressure)"),
        merged,
        "",
        1.0,
        1.0,
    );
    report.add(("flood", "resident memory after it"), reading.rss, "MiB", 12.0, 24.0);
    let pieces = report.pick(1_000_000, 80_000);
    let (large, _, reading) = flood_of(pieces);
    report.add(("flood", "resident memory after the largest one"), reading.rss, "MiB", 12.0, 24.0);
    // The engine says the whole text once more at the end, in one line.
    let line = (pieces * PIECE) as f64 / f64::from(1 << 20);
    report.add(("flood", "its peak memory over that text"), reading.peak / line, "x", 4.0, 6.2);
    report.add(("flood", "cost a delta, largest flood over 10,000"), large / small, "x", 1.1, 2.0);
}

fn sessions(report: &mut Report) {
    let mut client =
        Client::ready(&Setup { sim: "--pace 0.02", relayed: false, ..Setup::default() });
    let first = client.new_session();
    client.turn(&first, "hello");
    client.drain(Duration::from_millis(300));
    let before = client.probe();
    let count = report.pick(100, 30);
    let sessions: Vec<String> = (0..count)
        .map(|_| {
            let session = client.new_session();
            client.turn(&session, "hello");
            session
        })
        .collect();
    client.drain(Duration::from_millis(300));
    let each = |client: &Client| (client.probe().rss - before.rss) * 1024.0 / f64::from(count);
    let idle = each(&client);
    report.add(("sessions", "memory of an idle session that had a turn"), idle, "KiB", 64.0, 256.0);
    let turns: Vec<u64> =
        sessions.iter().take(10).map(|session| client.prompt(session, "flood 60k")).collect();
    let mut most = 0.0_f64;
    let mut open = turns.len();
    let mut seen = 0_u32;
    while open > 0 {
        let line = client.next_line();
        seen += 1;
        if seen.is_multiple_of(100) {
            most = most.max(each(&client));
        }
        open -= usize::from(line.text.contains("stopReason"));
    }
    report.add(
        ("sessions", "the same while ten of them stream, all memory counted"),
        most,
        "KiB",
        96.0,
        384.0,
    );
}

/// A long history, kept by one engine and read by the next: turns of half a megabyte.
fn load(report: &mut Report) {
    let store = tempfile::tempdir().unwrap();
    let sim = format!("--pace 0 --store {}", store.path().display());
    let setup = Setup { sim: Box::leak(sim.into_boxed_str()), relayed: true, ..Setup::default() };
    let mut client = Client::ready(&setup);
    let session = client.new_session();
    for _ in 0..report.pick(120, 16) {
        client.turn(&session, "flood 500000");
    }
    let home = client.leave();
    let mut client = Client::again(&setup, home);
    client.initialize();
    let params = json!({"sessionId": session, "cwd": client.cwd(), "mcpServers": []});
    let before = client.probe();
    let id = client.send("session/load", &params);
    let (first, cpu) = loop {
        let line = client.next_line();
        if line.text.contains("_message_chunk") {
            break (line.at, client.probe().cpu - before.cpu);
        }
    };
    client.until_reply(id);
    let peak = client.probe().peak;
    let log = passed(&client.engine_log(), "out");
    // The history is told from the first reply that has it, which is the longest line of all.
    let reply = log.iter().max_by_key(|p| p.line.len()).unwrap();
    let megabytes = reply.line.len() as f64 / f64::from(1 << 20);
    assert!(megabytes > 4.0, "the history's reply is missing");
    let late = first.saturating_sub(reply.at) as f64 / 1e6;
    report.add(("load", "first update after the engine's reply"), late, "ms", 100.0, 1000.0);
    report.add(("load", "CPU of the bridge to it"), cpu * 1e3, "ms", 150.0, 800.0);
    report.add(
        ("load", "peak memory beyond the idle bridge, over the largest line"),
        (peak - before.rss) / megabytes,
        "x",
        3.0,
        4.5,
    );
}

/// Every kind of turn over and over: what is left of them afterwards is nothing.
fn soak(report: &mut Report) {
    const TURNS: [&str; 9] = [
        "hello",
        "bash",
        "permission",
        "todos",
        "flood 200k",
        "markdown",
        "subagent",
        "edit",
        "fail",
    ];
    /// After so many rounds a session is closed and another one begun.
    const SESSION: u32 = 20;
    let mut client = Client::ready(&Setup { sim: FAST, relayed: false, ..Setup::default() });
    let rounds_of = |client: &mut Client, rounds: u32| {
        let mut session = client.new_session();
        for round in 1..=rounds {
            for text in TURNS {
                let id = client.prompt(&session, text);
                client.until_answer(id);
            }
            if round % SESSION == 0 || round == rounds {
                let id = client.send("session/close", &json!({"sessionId": session}));
                client.until_answer(id);
                session = client.new_session();
            }
        }
        client.drain(Duration::from_millis(300));
    };
    rounds_of(&mut client, report.pick(2 * SESSION, 8));
    let before = client.probe();
    let rounds = report.pick(50 * SESSION, 12);
    rounds_of(&mut client, rounds);
    let after = client.probe();
    let turns = f64::from(rounds) * TURNS.len() as f64;
    let grown = (after.rss - before.rss).max(0.0) * 1024.0 / turns;
    report.add(("soak", "memory that a turn leaves behind"), grown, "KiB", 0.5, 16.0);
    let (files, threads) = (after.files as f64, after.threads as f64);
    report.add(("soak", "files left open"), files - before.files as f64, "", 0.0, 0.0);
    report.add(("soak", "threads left"), threads - before.threads as f64, "", 0.0, 0.0);
}

fn idle(report: &mut Report) {
    let mut client = Client::ready(&Setup { sim: FAST, relayed: false, ..Setup::default() });
    let session = client.new_session();
    client.turn(&session, "hello");
    client.drain(Duration::from_secs(1));
    let secs = report.pick(10, 3);
    let before = client.probe();
    client.drain(Duration::from_secs(secs));
    let after = client.probe();
    let secs = secs as f64;
    report.add(("idle bridge", "CPU"), (after.cpu - before.cpu) * 1e3 / secs, "ms/s", 0.0, 1.0);
    report.add(
        ("idle bridge", "wake-ups"),
        (after.sleeps - before.sleeps) as f64 / secs,
        "/s",
        0.0,
        2.0,
    );
    report.add(("idle bridge", "resident memory"), after.rss, "MiB", 12.0, 24.0);
}
