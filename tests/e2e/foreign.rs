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

/// An agent that opens no session before its own login, run on the terminal, was given the code.
const LOCKED: &str = r#"#!/bin/sh
test "$1" = base || exit 9
if test "$2" = --login; then
  printf '%s? ' "$LOGIN_QUESTION"
  read -r code
  test "$code" != stop || kill -INT $$
  test "$code" = sesame || { echo "no such code: $code"; exit 3; }
  : > "$HOME/token"
  exit 0
fi
while read -r line; do
  printf '%s\n' "$line" >> "$HOME/wire"
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*'"auth":{"terminal":true}'*) answer='"result":{"protocolVersion":1,"authMethods":[{"id":"own","name":"Own","type":"terminal","args":["--login"],"env":{"LOGIN_QUESTION":"the code"}}]}' ;;
    *'"session/new"'*) if test -f "$HOME/token"; then answer='"result":{"sessionId":"s"}'; else answer='"error":{"code":-32000,"message":"Authentication required"}'; fi ;;
    *'"session/prompt"'*) answer='"result":{"stopReason":"end_turn"}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;

/// Starts the locked agent and writes a prompt that has to wait for the login.
fn locked<'a>(world: &'a World, name: &str) -> Terminal<'a> {
    let agent = world.home().join(name);
    fs::write(&agent, LOCKED).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let command = format!("{} base", agent.display());
    let mut terminal = Terminal::start(world, &["tui", "--agent", &command], 80, 24);
    terminal.wait_for("log in first");
    terminal.keys("what is this");
    terminal.wait_for("what is this");
    terminal.settle(Duration::from_millis(100));
    terminal.keys("\r");
    terminal.wait_for("queued 1: what is this");
    terminal
}

/// Waits until the shell's screen has a text for the `nth` time: what was there before is shown
/// again as soon as the chat leaves it, and what is typed until the guest reads is lost.
fn wait_for_nth(terminal: &mut Terminal<'_>, text: &str, nth: usize) {
    terminal.wait_until(text, |screen| screen.matches(text).count() == nth);
}

/// Enter on the empty draft: the login has the terminal, for the `nth` time.
fn begin_login(terminal: &mut Terminal<'_>, nth: usize) {
    terminal.settle(Duration::from_millis(100));
    terminal.keys("\r");
    wait_for_nth(terminal, "the code?", nth);
    assert!(!terminal.is_drawn_by_us(), "the login is on the shell's screen");
}

#[test]
fn an_agents_own_login_gets_the_terminal_and_the_held_prompt_goes_on() {
    let world = World::new();
    let mut terminal = locked(&world, "agent");
    begin_login(&mut terminal, 1);
    terminal.keys("open\r");
    terminal.wait_for("no such code: open");
    wait_for_nth(&mut terminal, "Press Enter to go back", 1);
    terminal.keys("\r");
    terminal.wait_for("not logged in: the login ended with exit status: 3");
    assert!(terminal.is_drawn_by_us() && terminal.shows("queued 1: what is this"));

    begin_login(&mut terminal, 2);
    // For the login, which ends of it; the chat goes on.
    terminal.keys("\x03");
    wait_for_nth(&mut terminal, "Press Enter to go back", 2);
    terminal.keys("\r");
    terminal.wait_for("not logged in: the login ended with signal: 2");

    begin_login(&mut terminal, 3);
    terminal.keys("sesame\r");
    terminal.wait_for("ask for something");
    assert!(terminal.is_drawn_by_us());
    let wire = fs::read_to_string(world.home().join("wire")).unwrap();
    let prompts: Vec<&str> = wire.lines().filter(|l| l.contains("session/prompt")).collect();
    assert!(matches!(prompts.as_slice(), [one] if one.contains("what is this")), "{wire}");
    assert!(!wire.contains("\"authenticate\""), "that is not for it: {wire}");
    assert_eq!(wire.matches("\"initialize\"").count(), 2, "the agent was started again");
    terminal.keys("\x03\x03");
    terminal.wait_exit();
    terminal.assert_restored();
    world.assert_no_orphans();
}

#[test]
fn a_ctrl_c_that_reaches_us_after_its_login_was_left_ends_nothing() {
    let world = World::new();
    let mut terminal = locked(&world, "agent");
    begin_login(&mut terminal, 1);
    // Ended as by a Ctrl-C of which we have not heard yet.
    terminal.keys("stop\r");
    wait_for_nth(&mut terminal, "Press Enter to go back", 1);
    terminal.keys("\r");
    terminal.wait_for("not logged in: the login ended with signal: 2");
    terminal.signal(rustix::process::Signal::INT);
    begin_login(&mut terminal, 2);
    terminal.keys("sesame\r");
    terminal.wait_for("ask for something");
    // The next one is meant for us.
    terminal.signal(rustix::process::Signal::INT);
    terminal.wait_exit();
    terminal.assert_restored();
    world.assert_no_orphans();
}

#[test]
fn a_signal_while_a_login_has_the_terminal_ends_both() {
    let world = World::new();
    let mut terminal = locked(&world, "agent");
    begin_login(&mut terminal, 1);
    terminal.signal(rustix::process::Signal::TERM);
    terminal.wait_exit();
    terminal.assert_restored();
    world.assert_no_orphans();
}
