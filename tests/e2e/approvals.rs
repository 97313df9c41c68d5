//! Approvals by file over two processes: one asks, the other answers, and one of them is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::world::{Run, World, files_in};

/// A world whose tool permissions go to the directory that is returned.
fn asking() -> (World, PathBuf) {
    let mut world = World::new();
    let dir = world.home().join(".zcode-acp/pending");
    fs::create_dir_all(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    world.set("ZCODE_ACP_APPROVAL_BRIDGE", "1");
    (world, dir)
}

/// Starts a turn that needs a permission and waits until it is asked for.
fn ask(world: &World, dir: &Path) -> (Child, PathBuf) {
    let before = files_in(dir);
    let mut command = world.command(&["run", "--demo", "--demo-pace", "0", "permission"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    loop {
        let is_question = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "json");
        let pending =
            |path: &PathBuf| !before.contains(path) && status(path).as_deref() == Some("pending");
        if let Some(file) =
            files_in(dir).into_iter().find(|path| is_question(path) && pending(path))
        {
            return (child, file);
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended unasked: {}", world.log());
        std::thread::yield_now();
    }
}

fn status(file: &Path) -> Option<String> {
    let record: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    record["status"].as_str().map(str::to_owned)
}

fn id(file: &Path) -> &str {
    file.file_stem().unwrap().to_str().unwrap()
}

#[test]
fn a_tool_is_allowed_from_another_process() {
    let (world, dir) = asking();
    let (child, file) = ask(&world, &dir);
    let listed = world.run(&["approvals"]);
    assert!(listed.stdout.contains(id(&file)) && listed.stdout.contains("rm -rf"), "{listed:?}");
    assert_eq!(world.run(&["approvals", "allow", &id(&file)[..4]]).code, Some(0));
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(files_in(&dir), [file], "nothing but the answered question stays");
}

#[test]
fn a_question_whose_asker_was_killed_is_closed_by_the_next_look() {
    let (world, dir) = asking();
    let (mut killed, file) = ask(&world, &dir);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let listed = world.run(&["approvals"]).stdout;
    let line =
        format!("{}  Bash  closed as denied: the program that asked was killed\n", id(&file));
    assert!(listed.contains("nothing is waiting") && listed.contains(&line), "{listed}");
    assert_eq!(status(&file).as_deref(), Some("deny"));
    assert_eq!(files_in(&dir), std::slice::from_ref(&file));
    let refused = world.run(&["approvals", "allow", id(&file)]);
    assert_eq!(refused.code, Some(1), "{refused:?}");

    // One that is asked at the same time is none of those.
    let (mut killed, dead) = ask(&world, &dir);
    let (child, file) = {
        killed.kill().unwrap();
        killed.wait().unwrap();
        ask(&world, &dir)
    };
    assert_eq!(status(&dead).as_deref(), Some("deny"), "closed by the next question");
    let answer = world.run(&["approvals", "deny", id(&file)]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4));
    world.assert_no_orphans();
}
