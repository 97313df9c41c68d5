//! The watchdog as its owner starts it: what happens when the owner is gone without a word, and
//! when it has said farewell.

use std::io::{Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::world::World;

/// A group whose leader and child both ignore TERM. It has begun when this returns, and its output
/// ends when all of it is gone.
#[expect(
    clippy::disallowed_methods,
    reason = "the test plays an engine that was started elsewhere"
)]
fn stubborn_group() -> Child {
    let script = "trap '' TERM; (trap '' TERM; echo up; sleep 20) & sleep 20; wait";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut up = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    child
}

fn watchdog(world: &World, group: &Child) -> Child {
    let mut command = world.command(&["watchdog", "--group", &group.id().to_string()]);
    command.stdin(Stdio::piped()).process_group(0).spawn().unwrap()
}

#[test]
fn when_the_owner_is_gone_the_whole_group_is_ended_within_five_seconds() {
    let world = World::new();
    let mut group = stubborn_group();
    let mut watchdog = watchdog(&world, &group);
    let start = Instant::now();
    drop(watchdog.stdin.take());
    let mut rest = String::new();
    group.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(group.wait().unwrap().signal(), Some(9));
    assert!(watchdog.wait().unwrap().success());
}

/// Kibibytes of code that are resident in a process.
#[cfg(target_os = "linux")]
fn resident_code(pid: u32) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut is_code = false;
    let mut sum = 0;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next()) {
            (Some("Rss:"), Some(size)) if is_code => sum += size.parse::<usize>().unwrap(),
            (Some(range), Some(rights)) if range.contains('-') => is_code = rights == "r-xp",
            _ => {}
        }
    }
    sum
}

#[test]
#[cfg(target_os = "linux")]
fn a_watchdog_that_waits_holds_next_to_no_code() {
    let world = World::new();
    let mut group = stubborn_group();
    let mut watchdog = watchdog(&world, &group);
    // On the way to where it waits four and a half megabytes were touched.
    let deadline = Instant::now() + Duration::from_secs(20);
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", watchdog.id())).unwrap();
    while !state().contains(") S ") || resident_code(watchdog.id()) > 2048 {
        assert!(Instant::now() < deadline, "{} KiB", resident_code(watchdog.id()));
        std::thread::yield_now();
    }
    drop(watchdog.stdin.take());
    assert!(watchdog.wait().unwrap().success());
    group.wait().unwrap();
}

#[test]
fn after_a_farewell_the_group_is_left_alone() {
    let world = World::new();
    let mut group = stubborn_group();
    let mut watchdog = watchdog(&world, &group);
    watchdog.stdin.take().unwrap().write_all(b".").unwrap();
    assert!(watchdog.wait().unwrap().success());
    assert!(group.try_wait().unwrap().is_none());
    // Its owner ends it, here by hand.
    let leader = rustix::process::Pid::from_child(&group);
    rustix::process::kill_process_group(leader, rustix::process::Signal::KILL).unwrap();
    assert_eq!(group.wait().unwrap().signal(), Some(9));
}

#[test]
fn a_group_that_is_none_is_refused() {
    let world = World::new();
    for group in ["0", "1"] {
        assert_eq!(world.run(&["watchdog", "--group", group]).code, Some(1));
    }
}
