//! The command line as a script sees it: exit codes, what goes to which stream, what is touched.

use std::fs;

use crate::world::{World, files_in};

#[test]
fn the_version_names_program_and_build() {
    let world = World::new();
    for args in [&["--version"][..], &["serve", "--version"], &["tui", "-V"]] {
        let run = world.run(args);
        assert_eq!(run.code, Some(0));
        let start = concat!("zcode-acp ", env!("CARGO_PKG_VERSION"), " (");
        assert!(run.stdout.starts_with(start), "{}", run.stdout);
    }
}

#[test]
fn a_wrong_command_line_is_code_2_and_leaves_stdout_alone() {
    let world = World::new();
    for args in
        [&["tui", "--nonsense"][..], &["no-such-command"], &["tui", "--demo", "--agent", "x"]]
    {
        let run = world.run(args);
        assert_eq!(run.code, Some(2), "{args:?}");
        assert_eq!(run.stdout, "");
        assert!(!run.stderr.is_empty());
    }
}

#[test]
fn help_is_on_stdout_and_touches_no_disk() {
    let world = World::new();
    let run = world.run(&["--help"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.contains("tui --demo"), "{}", run.stdout);
    assert!(files_in(&world.state()).is_empty() && files_in(&world.home()).is_empty());
}

#[test]
fn a_broken_settings_file_stops_nothing_and_is_reported_by_line_and_key() {
    let world = World::new();
    let dir = world.home().join(".config/zcode-acp");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.json"), "{\n\"session\": {\"mode\": \"fast\"}}").unwrap();
    let pending = world.home().join("pending");
    fs::create_dir(&pending).unwrap();
    let run = world.run(&["approvals", "--dir", pending.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "nothing is waiting for an answer\n"));
    assert!(world.log().contains("config.json line 2: session.mode"), "{}", world.log());
}

#[test]
fn a_directory_that_is_not_there_is_code_1_with_a_way_out() {
    let world = World::new();
    let run = world.run(&["approvals"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("mkdir"), "{}", run.stderr);
}
