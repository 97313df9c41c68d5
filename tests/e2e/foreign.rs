//! The terminal chat with an agent that is a stranger to it: our own `serve`, by its command.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
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

/// An agent of a few lines that writes down what it is sent.
const RECORDER: &str = r#"#!/bin/sh
while read -r line; do
  printf '%s\n' "$line" >> "$HOME/wire"
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"image":true,"embeddedContext":true}}}' ;;
    *'"session/new"'*) result='{"sessionId":"s"}' ;;
    *'"session/prompt"'*) result='{"stopReason":"end_turn"}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[test]
fn a_file_that_is_mentioned_goes_along_with_its_text() {
    let world = World::new();
    let agent = world.home().join("agent");
    fs::write(&agent, RECORDER).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(world.cwd().join("src")).unwrap();
    fs::write(world.cwd().join("src/main.rs"), "fn main() {}\n").unwrap();
    fs::write(world.home().join("shot.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    let mut terminal =
        Terminal::start(&world, &["tui", "--agent", agent.to_str().unwrap()], 80, 24);
    terminal.wait_for("ask for something");
    // What comes all at once is a paste, and its `@` no mention.
    terminal.keys("see it ");
    terminal.settle(Duration::from_millis(100));
    terminal.keys("@");
    terminal.wait_for("src/main.rs");
    terminal.keys("m");
    terminal.wait_for("❯ see it @m");
    terminal.keys("\t");
    terminal.wait_for("❯ see it @src/main.rs");
    terminal.keys("\x1b[200~~/shot.png\x1b[201~");
    terminal.wait_for("[image shot.png]");
    terminal.keys("\r");
    terminal.wait_for("ask for something");
    let wire = fs::read_to_string(world.home().join("wire")).unwrap();
    let sent = wire.lines().find(|line| line.contains("session/prompt")).unwrap();
    let sent: serde_json::Value = serde_json::from_str(sent).unwrap();
    let prompt = &sent["params"]["prompt"];
    let shot = world.home().join("shot.png");
    assert_eq!(prompt[0]["text"], format!("see it @src/main.rs {}", shot.display()));
    assert_eq!(prompt[1]["resource"]["text"], "fn main() {}\n", "{prompt}");
    assert_eq!(
        (&prompt[2]["type"], &prompt[2]["mimeType"]),
        (&"image".into(), &"image/png".into())
    );
    terminal.keys("\x03\x03");
    terminal.wait_exit();
    terminal.assert_restored();
}
