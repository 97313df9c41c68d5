//! The terminal chat with an agent that is a stranger to it: our own `serve`, by its command.

use std::time::Duration;

use crate::terminal::Terminal;
use crate::world::{BINARY, World};

#[test]
fn quitting_after_a_turn_ends_the_agent_and_its_engine() {
    let world = World::new();
    let agent = format!("'{BINARY}' serve --demo --demo-pace 0");
    let mut terminal = Terminal::start(&world, &["tui", "--agent", &agent], 100, 30);
    terminal.wait_for("ask for something");
    terminal.keys("hello\r");
    terminal.wait_for("take two cells each");
    terminal.wait_for("ask for something");
    for _ in 0..2 {
        terminal.keys("\x03");
        terminal.settle(Duration::from_millis(100));
    }
    let status = terminal.wait_exit();
    assert!(status.success(), "{status:?}");
    terminal.assert_restored();
    world.assert_no_orphans();
}
