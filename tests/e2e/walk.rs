//! A newcomer's walk through the README: every command line that stands in it, in its order, in an
//! empty home, as typed. First without an engine, where each must say what to do, then with one.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::accounts::world_with_engine;
use crate::terminal::Terminal;
use crate::world::{BINARY, Run, World};

const README: &str = include_str!("../../README.md");

/// The lines of the README's unmarked code blocks that begin with a program.
fn command_lines() -> Vec<&'static str> {
    let mut lines = Vec::new();
    let mut inside = false;
    for line in README.lines() {
        if let Some(mark) = line.strip_prefix("```") {
            inside = !inside && mark.is_empty();
        } else if inside && ["zcode-acp ", "cargo ", "git "].iter().any(|p| line.starts_with(p)) {
            lines.push(line);
        }
    }
    lines
}

/// Lets the shell find the program by its name.
fn install(world: &mut World) {
    let bin = world.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(BINARY, bin.join("zcode-acp")).unwrap();
    world.set("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
}

#[expect(clippy::disallowed_methods, reason = "tests type into a shell as a person does")]
fn shell(world: &World, line: &str) -> Run {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).env_clear().envs(world.env.iter().cloned());
    Run::of(command.current_dir(world.cwd()).stdin(Stdio::null()).output().unwrap())
}

#[test]
fn every_command_line_of_the_readme_works_as_typed() {
    let lines = command_lines();
    assert!(lines.len() >= 5, "the blocks were not found: {lines:?}");
    let (mut empty, mut full) = (World::new(), world_with_engine());
    install(&mut empty);
    install(&mut full);
    for line in lines {
        let line = line.split("  #").next().unwrap_or(line).trim();
        if let Some(arguments) = line.strip_prefix("cargo run --release -- ") {
            let arguments: Vec<&str> = arguments.split(' ').collect();
            let mut t = Terminal::start(&empty, &arguments, 100, 30);
            t.wait_for("ask for something");
            t.keys("hello\r");
            t.wait_for("take two cells each");
            t.keys("\x03");
            t.settle(Duration::from_millis(100));
            t.keys("\x03");
            assert!(t.wait_exit().success(), "{line}");
            t.assert_restored();
        } else if line != "cargo test" && !line.starts_with("cargo bench") {
            let lost = shell(&empty, line);
            assert_eq!(lost.code, Some(5), "{line}: {}", lost.stderr);
            assert!(lost.stderr.contains("zcode-acp doctor"), "{line}: {}", lost.stderr);
            let run = shell(&full, line);
            assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
            assert!(!run.stdout.trim().is_empty(), "{line}");
        }
    }
    empty.assert_no_orphans();
    full.assert_no_orphans();
}

/// Each subcommand of the README's table in an empty home: its exit code, and what it says.
const FIRST_STEPS: &[(&str, i32, &str)] = &[
    ("zcode-acp --version", 0, "zcode-acp 0."),
    ("zcode-acp --help", 0, "tui --demo"),
    ("zcode-acp </dev/null", 0, ""),
    ("zcode-acp serve --demo </dev/null", 0, ""),
    ("zcode-acp tui </dev/null", 2, "zcode-acp run"),
    ("zcode-acp run --demo --demo-pace 0 hello", 0, "Hello"),
    ("zcode-acp doctor", 1, "PROBLEM  engine      not found"),
    ("zcode-acp doctor --json --no-probe", 1, "\"level\":\"problem\""),
    ("zcode-acp doctor --demo --bundle report.md", 0, "wrote report.md"),
    ("zcode-acp login", 6, "open the ZCode app"),
    ("zcode-acp approvals", 1, "mkdir -p -m 700"),
    ("mkdir -p -m 700 ~/.zcode-acp/pending && zcode-acp approvals", 0, "nothing is waiting"),
    ("zcode-acp sessions", 5, "ZCODE_CJS"),
    ("zcode-acp sessions --demo", 0, "A tour of markdown"),
    ("zcode-acp quota", 0, "No plan is known"),
    ("zcode-acp run --demo --demo-pace 0 --trace trace.jsonl hello", 0, "Hello"),
    ("zcode-acp run --replay trace.jsonl hello", 0, "Hello"),
    ("zcode-acp replay trace.jsonl </dev/null", 0, ""),
    // What cannot be recorded or played is said before anything is begun.
    ("zcode-acp run --demo --trace /nowhere/trace.jsonl hello", 2, "cannot record the wires"),
    (
        "ln -s report.md link && zcode-acp run --demo --trace link hello",
        2,
        "cannot record the wires",
    ),
    ("zcode-acp run --replay nowhere.jsonl hello", 2, "cannot read nowhere.jsonl"),
    ("zcode-acp completions bash | bash -n", 0, ""),
    ("zcode-acp completions zsh", 0, "#compdef zcode-acp"),
    ("zcode-acp completions fish", 0, "complete -c zcode-acp"),
    ("zcode-acp man", 0, ".TH zcode-acp 1"),
];

#[test]
fn a_newcomers_first_steps_in_an_empty_home_end_as_documented() {
    let mut world = World::new();
    install(&mut world);
    for (line, code, says) in FIRST_STEPS {
        let run = shell(&world, line);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(run.code, Some(*code), "{line}: {all}");
        assert!(all.contains(says), "{line}: {all}");
        assert!(!all.contains("panicked"), "{line}: {all}");
    }
    // Nothing of ZCode's was touched, and what all this left behind is private.
    assert!(!world.home().join(".zcode").exists(), "the demo writes into ZCode's directory");
    let mut dirs = vec![world.state(), world.home().join(".zcode-acp")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            assert_eq!(
                meta.permissions().mode() & 0o077,
                0,
                "{} is open to others",
                path.display()
            );
            if meta.is_dir() {
                dirs.push(path);
            }
        }
    }
    world.assert_no_orphans();
}
