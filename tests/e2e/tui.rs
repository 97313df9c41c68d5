//! The chat on a real terminal against the simulated engine: the flows of the first milestone, and
//! every way to end it.

use std::time::Duration;

use rustix::process::Signal;

use crate::terminal::{Terminal, say};
use crate::world::World;

/// A little more than the dialogs wait for before their keys count.
const ARMED: Duration = Duration::from_millis(600);
const DEMO: &[&str] = &["tui", "--demo", "--demo-pace", "0"];

fn demo(world: &World) -> Terminal<'_> {
    let mut terminal = Terminal::start(world, DEMO, 100, 30);
    terminal.wait_for("Try one of these");
    terminal
}

#[test]
fn a_reply_streams_and_the_terminal_is_clean_afterwards() {
    let world = World::new();
    let mut t = demo(&world);
    say(&mut t, "hello");
    t.wait_for("tokens");
    t.keys("\x04");
    assert!(t.wait_exit().success());
    t.assert_restored();
    world.assert_no_orphans();
}

#[test]
fn a_permission_is_asked_and_answered_by_its_number_once_it_is_armed() {
    let world = World::new();
    let mut t = demo(&world);
    say(&mut t, "permission");
    t.wait_for("1-3 answer");
    t.keys("1");
    t.wait_gone("1-3 answer");
    t.wait_for("tokens");
    t.keys("\x04");
    t.wait_exit();
    t.assert_restored();
}

#[test]
fn a_plan_is_rejected_with_feedback_and_then_approved() {
    let world = World::new();
    let mut t = demo(&world);
    say(&mut t, "plan");
    t.wait_for("f Feedback");
    t.wait_for("Esc cancels");
    t.keys("f");
    t.wait_for("What should change?");
    t.keys("more tests please");
    t.wait_for("❯ more tests please");
    t.settle(ARMED);
    t.keys("\r");
    // The agent revises the plan and asks again.
    t.wait_gone("What should change?");
    t.wait_for("more tests please");
    t.wait_for("f Feedback");
    t.wait_for("Esc cancels");
    t.keys("a");
    t.wait_for("Enter approves");
    t.settle(Duration::from_millis(80));
    t.keys("\r");
    t.wait_for("tokens");
    t.keys("\x03\x03");
    t.wait_exit();
    t.assert_restored();
}

#[test]
fn escape_stops_a_stream_and_the_draft_stays() {
    let world = World::new();
    let mut t = Terminal::start(&world, &["tui", "--demo"], 100, 30);
    t.wait_for("Try one of these");
    say(&mut t, "long");
    t.wait_for("working");
    t.keys("my draft");
    t.wait_for("my draft");
    t.keys("\x1b");
    t.wait_for("stopped");
    assert!(t.shows("my draft"));
    t.signal(Signal::TERM);
    t.wait_exit();
    t.assert_restored();
    world.assert_no_orphans();
}

#[test]
fn every_signal_restores_the_terminal_and_leaves_nothing_running() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let world = World::new();
        let mut t = demo(&world);
        say(&mut t, "permission");
        t.wait_for("Deny");
        t.signal(signal);
        t.wait_exit();
        t.assert_restored();
        world.assert_no_orphans();
    }
}

#[test]
fn a_panic_restores_the_terminal_and_leaves_nothing_running() {
    let world = World::new();
    let mut t = demo(&world);
    say(&mut t, "permission");
    t.wait_for("Deny");
    t.keys("\x1b");
    t.wait_for("tokens");
    say(&mut t, "/panic for a test");
    assert_eq!(t.wait_exit().exit_code(), 101);
    t.assert_restored();
    world.assert_no_orphans();
}

#[test]
fn a_draft_survives_a_kill() {
    let world = World::new();
    let mut t = demo(&world);
    t.keys("half a thought 你好");
    t.wait_for("half a thought");
    let draft = || {
        let dirs = std::fs::read_dir(world.state().join("tui"));
        dirs.into_iter().flatten().flatten().any(|dir| dir.path().join("draft.json").exists())
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !draft() {
        assert!(std::time::Instant::now() < deadline, "the draft was never written");
        t.settle(Duration::from_millis(50));
    }
    t.signal(Signal::KILL);
    t.wait_exit();
    let mut t = Terminal::start(&world, DEMO, 100, 30);
    t.wait_for("half a thought 你好");
    t.signal(Signal::TERM);
    t.wait_exit();
}

#[test]
fn keys_typed_before_the_engine_is_there_are_kept() {
    let world = World::new();
    let mut t = Terminal::start(&world, DEMO, 100, 30);
    t.keys("echo early bird");
    t.wait_for("echo early bird");
    t.settle(Duration::from_millis(80));
    t.keys("\r");
    t.wait_for("tokens");
    t.signal(Signal::TERM);
    t.wait_exit();
}

#[test]
fn a_resize_in_mid_stream_draws_the_new_size() {
    let world = World::new();
    let mut t = Terminal::start(&world, &["tui", "--demo"], 100, 30);
    t.wait_for("Try one of these");
    say(&mut t, "long");
    t.wait_for("working");
    for (columns, rows) in [(40, 12), (120, 40), (60, 20)] {
        t.resize(columns, rows);
        t.wait_for("working");
    }
    t.signal(Signal::TERM);
    t.wait_exit();
    t.assert_restored();
}

#[test]
fn an_agent_that_dies_is_shown_with_its_last_words() {
    let world = World::new();
    let mut t = Terminal::start(
        &world,
        &["tui", "--agent", "sh -c 'echo no license today >&2; exit 3'"],
        100,
        30,
    );
    t.wait_for("no license today");
    t.wait_for("exit status: 3");
    t.wait_for("Enter starts the agent again");
    t.keys("\x04");
    t.wait_exit();
    t.assert_restored();
}

#[test]
fn a_prompt_given_on_the_command_line_is_brought_back_by_the_arrow() {
    let world = World::new();
    let args = ["tui", "--demo", "--demo-pace", "0", "echo from outside"];
    let mut t = Terminal::start(&world, &args, 80, 24);
    t.wait_for("tokens");
    t.keys("\x1b[A");
    t.wait_until("the prompt in the draft", |screen| {
        screen.lines().filter(|line| line.starts_with("❯ echo from outside")).count() == 2
    });
    t.signal(Signal::TERM);
    t.wait_exit();
    t.assert_restored();
}
