//! `sessions` and `quota` from a shell.

use serde_json::Value;

use crate::world::{Run, World};

fn sessions(world: &World, args: &[&str]) -> Run {
    world.run(&[&["sessions", "--demo", "--demo-pace", "0"], args].concat())
}

#[test]
fn sessions_are_listed_shown_exported_and_closed() {
    let world = World::new();
    assert_eq!(sessions(&world, &[]).stdout, "no sessions\n");
    let run = world.run(&["run", "--demo", "--demo-pace", "0", "--format", "json", "hello"]);
    let result: Value = serde_json::from_str(&run.stdout).unwrap();
    let id = result["sessionId"].as_str().unwrap();
    let list = sessions(&world, &["list", "--json"]);
    let listed: Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{}", list.stdout);
    assert!(sessions(&world, &[]).stdout.contains(listed[0]["sessionId"].as_str().unwrap()));
    let show = sessions(&world, &["show", id]);
    assert_eq!(show.code, Some(0), "{}", show.stderr);
    let reply = result["text"].as_str().unwrap().lines().next().unwrap();
    assert!(show.stdout.contains("hello") && show.stdout.contains(reply), "{}", show.stdout);
    let file = world.cwd().join("talk.json").to_str().unwrap().to_owned();
    let export = ["export", id, "--format", "json", "-o", &file];
    assert_eq!(sessions(&world, &export).code, Some(0));
    let talk: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(talk["updates"].as_array().is_some_and(|updates| updates.len() > 2));
    assert_eq!(sessions(&world, &export).code, Some(1), "a file that is there stays");
    let close = sessions(&world, &["close", id]);
    assert_eq!((close.code, close.stdout), (Some(0), format!("closed {id}\n")), "{}", close.stderr);
    let unknown = sessions(&world, &["show", "no-such-session"]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stdout);
    world.assert_no_orphans();
}

#[test]
fn quota_says_what_is_known_and_what_is_not() {
    let world = World::new();
    let run = world.run(&["quota"]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.stdout.contains("No plan") && run.stdout.contains("nothing goes\nto the network"),
        "{}",
        run.stdout
    );
}
