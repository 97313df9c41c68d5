//! The keys of the README's table that lead out of the composer, on a terminal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::terminal::Terminal;
use crate::world::World;

#[test]
fn the_keys_of_the_readme_open_what_they_say() {
    let mut world = World::new();
    let editor = world.home().join("editor");
    fs::write(&editor, "#!/bin/sh\nprintf ' edited' >> \"$1\"\n").unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).unwrap();
    world.set("EDITOR", editor.to_str().unwrap());
    let mut t = Terminal::start(&world, &["tui", "--demo", "--demo-pace", "0"], 100, 40);
    t.wait_for("ask for something");
    t.keys("bash\r");
    t.wait_for("All 3 tests pass");
    t.wait_for("ask for something");
    // A tool's output in full, the keys, the prompts of before, the commands.
    for (keys, shows) in [
        ("\x14", "\"command\": \"cargo test\""),
        ("\x1bOP", "─ help ─"),
        ("\x12", "prompts of before"),
        ("/", "Shorten the conversation so far"),
    ] {
        t.keys(keys);
        t.wait_for(shows);
        t.keys("\x1b");
        t.wait_gone(shows);
    }
    t.keys("\x15"); // the slash
    t.wait_for("ask for something");
    t.keys("\x1b[Z");
    t.wait_for("· Edit ·");
    t.keys("draft");
    t.wait_for("❯ draft");
    t.keys("\x07");
    t.wait_for("❯ draft edited");
    t.keys("\x03\x03\x03");
    t.wait_exit();
    t.assert_restored();
}
