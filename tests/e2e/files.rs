//! Whatever lies where a file is expected: a pipe that nobody writes to, a device without end, a
//! directory, a link, nothing. Each command ends by itself, says what is wrong, and spoils nothing.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::world::{Run, World};

const DEMO: [&str; 4] = ["run", "--demo", "--demo-pace", "0"];

fn pipe(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let access = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, access, 0).unwrap();
}

/// Everything that is no file one can read, and a file that is too large.
fn odd_places(world: &World) -> Vec<PathBuf> {
    let dir = world.cwd();
    pipe(&dir.join("pipe"));
    fs::create_dir(dir.join("directory")).unwrap();
    fs::File::create(dir.join("huge")).unwrap().set_len(1 << 40).unwrap();
    fs::write(dir.join("bytes"), b"\xff\xfe{").unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.join("zero")).unwrap();
    ["pipe", "directory", "huge", "bytes", "zero", "missing"].map(|name| dir.join(name)).to_vec()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_trace_that_cannot_be_read_is_code_2_at_once() {
    let world = World::new();
    for path in odd_places(&world) {
        for args in [
            &["replay", text(&path)][..],
            &["serve", "--replay", text(&path)],
            &["run", "--replay", text(&path), "hello"],
        ] {
            let run = world.run(args);
            assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}: {run:?}");
            assert!(run.stderr.contains("cannot read"), "{args:?}: {run:?}");
        }
    }
    world.assert_no_orphans();
}

/// A file that is to stay as it is, and a link to it.
fn precious(world: &World) -> (PathBuf, PathBuf) {
    let (file, link) = (world.cwd().join("precious"), world.cwd().join("link"));
    fs::write(&file, "precious").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    (file, link)
}

#[test]
fn what_is_written_goes_to_a_new_or_a_regular_file_and_through_no_link() {
    let world = World::new();
    let (file, link) = precious(&world);
    pipe(&world.cwd().join("pipe"));
    let told = |run: &Run, code| {
        assert_eq!(run.code, Some(code), "{run:?}");
        assert!(run.stderr.contains("cannot "), "{run:?}");
    };
    let elsewhere = world.cwd().join("no/such/directory");
    for path in [&link, &world.cwd().join("pipe"), &world.cwd(), &elsewhere, Path::new("/dev/full")]
    {
        told(&world.run(&[&DEMO[..], &["--trace", text(path), "hello"]].concat()), 2);
        told(&world.run(&["doctor", "--demo", "--no-probe", "--bundle", text(path)]), 1);
    }
    assert_eq!(world.run(&[&DEMO[..], &["hello"]].concat()).code, Some(0));
    let listed = world.run(&["sessions", "--demo", "list"]).stdout;
    let id = listed.split_whitespace().next().unwrap().to_owned();
    for path in [&link, &file, &world.cwd().join("pipe"), &world.cwd(), &elsewhere] {
        told(&world.run(&["sessions", "--demo", "export", &id, "-o", text(path)]), 1);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn a_fixed_place_that_holds_anything_stops_no_turn() {
    for place in [
        "home/.config/zcode-acp/config.json",
        "home/.zcode/v2/acp-lazy-sessions.json",
        "home/.zcode/v2/config.json",
        "home/.zcode/v2/provider_config.json",
        "home/.zcode/v2/credentials.json",
        "state/log/zcode-acp.9999-01-01.log",
    ] {
        let world = World::new();
        for odd in odd_places(&world) {
            let path = world.home().parent().unwrap().join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _before = fs::remove_file(&path);
            match odd.file_name().and_then(|name| name.to_str()) {
                Some("pipe") => pipe(&path),
                Some("missing") => {}
                _ => std::os::unix::fs::symlink(&odd, &path).unwrap(),
            }
            let run = world.run(&[&DEMO[..], &["hello"]].concat());
            assert_eq!(run.code, Some(0), "{place}: {odd:?}: {run:?}");
            let report = world.cwd().join("report.md");
            let run = world.run(&["doctor", "--no-probe", "--demo", "--bundle", text(&report)]);
            assert!(run.stdout.contains("wrote "), "{place}: {odd:?}: {run:?}");
            fs::remove_file(report).unwrap();
        }
    }
}

#[test]
fn a_prompt_without_end_is_code_2_in_bounded_memory() {
    let world = World::new();
    let mut command = world.command(&["run", "--demo"]);
    let run = Run::of(command.stdin(fs::File::open("/dev/zero").unwrap()).output().unwrap());
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("longer than 32 MiB"), "{run:?}");
    let mut command = world.command(&["run", "--demo"]);
    let run = Run::of(command.stdin(fs::File::open(world.cwd()).unwrap()).output().unwrap());
    assert_eq!(run.code, Some(2), "{run:?}");
}
