//! `doctor` on a terminal that answers, on one that does not, and inside tmux.

use crate::terminal::Terminal;
use crate::world::{BINARY, World};

const ARGS: [&str; 4] = ["doctor", "--demo", "--demo-pace", "0"];

#[test]
fn doctor_asks_the_terminal_what_it_can_do() {
    let world = World::new();
    let mut t = Terminal::start(&world, &ARGS, 120, 60);
    t.wait_written("\x1b[c");
    t.keys("\x1b[?0u\x1b[?2026;2$y\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\\x1b[?62;22c");
    t.wait_for("synchronized output: no frame is seen half drawn");
    t.wait_for("kitty keyboard protocol");
    t.wait_for("#1e1e2e");
    t.wait_exit();
    t.assert_restored();
    assert!(!t.shows("62;22c"), "answers are not typed into the shell:\n{}", t.screen());
}

#[test]
fn a_terminal_that_answers_nothing_is_a_warning_with_what_to_use() {
    let world = World::new();
    let mut t = Terminal::start(&world, &ARGS, 120, 60);
    t.wait_for("the terminal answers no question");
    t.wait_for("use a current terminal");
    assert!(t.wait_exit().success());
    t.assert_restored();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests start tmux as a person would")]
fn inside_tmux_each_setting_that_hurts_comes_with_its_line() {
    let world = World::new();
    let tmux = |args: &[&str]| {
        let mut command = std::process::Command::new("tmux");
        command.args(["-L", "doctor", "-f", "tmux.conf"]).args(args).current_dir(world.cwd());
        command.env_clear().envs(world.env.iter().cloned()).env("TMUX_TMPDIR", world.home());
        command.output()
    };
    if tmux(&["-V"]).is_err() {
        eprintln!("there is no tmux here to look into");
        return;
    }
    let bad = "set -g set-clipboard off\nset -s escape-time 500\nset -s extended-keys off\nset -g focus-events off\n";
    std::fs::write(world.cwd().join("tmux.conf"), bad).unwrap();
    let shell = format!(
        "'{BINARY}' doctor --demo --no-probe --bundle report.md; tmux -L doctor wait-for -S done"
    );
    let started = tmux(&["new-session", "-d", "-x", "120", "-y", "60", &shell]).unwrap();
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let _done = tmux(&["wait-for", "done"]).unwrap();
    let _ended = tmux(&["kill-server"]).unwrap();
    let report = std::fs::read_to_string(world.cwd().join("report.md")).unwrap();
    for line in [
        "set -sg escape-time 10",
        "set -s extended-keys on",
        "set -g focus-events on",
        "set -s set-clipboard on",
    ] {
        assert!(report.contains(&format!("add to ~/.tmux.conf: {line}")), "{line}: {report}");
    }
}
