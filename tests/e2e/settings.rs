//! What the settings file does to the chat.

use std::fs;

use rustix::process::Signal;

use crate::terminal::Terminal;
use crate::world::World;

fn settings(world: &World, text: &str) {
    let dir = world.home().join(".config/zcode-acp");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.json"), text).unwrap();
}

/// Everything that the chat wrote until it had drawn its welcome.
fn written(world: &World) -> String {
    let mut t = Terminal::start(world, &["tui", "--demo", "--demo-pace", "0"], 100, 30);
    t.wait_for("Try one of these");
    t.signal(Signal::TERM);
    t.wait_exit();
    t.assert_restored();
    String::from_utf8_lossy(t.written()).into_owned()
}

#[test]
fn the_mouse_and_colours_can_be_left_to_the_terminal() {
    let world = World::new();
    let plain = written(&world);
    assert!(plain.contains("\x1b[?1002h") && plain.contains("38;2;"), "{plain:?}");
    settings(&world, r#"{"tui": {"mouse": false, "theme": "none"}}"#);
    let set = written(&world);
    assert!(!set.contains("\x1b[?1002h") && !set.contains("38;2;"), "{set:?}");
}

#[test]
fn a_model_that_is_not_there_is_told_on_the_screen_and_the_chat_goes_on() {
    let world = World::new();
    settings(&world, r#"{"session": {"model": "nonesuch"}}"#);
    let mut t = Terminal::start(&world, &["tui", "--demo", "--demo-pace", "0"], 100, 30);
    t.wait_for("The model asked for is not used");
    t.wait_for("nonesuch");
    t.keys("hello\r");
    t.wait_for("take two cells each");
    t.signal(Signal::TERM);
    t.wait_exit();
    let run = world.run(&["run", "--demo", "--demo-pace", "0", "hello"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{}", run.stderr);
    assert!(
        run.stderr.contains("nonesuch") && run.stderr.contains("choose one of"),
        "{}",
        run.stderr
    );
}
