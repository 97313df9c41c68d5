use super::*;
use crate::bridge::engine::sim::script::Library;

#[test]
fn every_script_is_picked_by_its_name_and_its_keywords() {
    let library = Library::new(&[]).unwrap();
    for name in library.names() {
        assert_eq!(library.pick(&format!("/demo {name}")).unwrap().name, name);
        for keyword in library.named(name).unwrap().keywords.clone() {
            let picked = library.pick(&format!("Please, {keyword}!")).unwrap();
            assert_eq!(picked.name, name, "{keyword}");
        }
    }
}

#[test]
fn what_the_list_of_scripts_names_can_be_typed_as_it_stands_there() {
    let library = Library::new(&[]).unwrap();
    let menu = library.menu();
    let named = menu.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next());
    for name in named {
        assert_eq!(library.pick(name).unwrap().name, name);
    }
}

#[test]
fn anything_else_gets_the_menu() {
    let library = Library::new(&[]).unwrap();
    assert_eq!(library.pick("what is the weather").unwrap().name, "menu");
    assert!(library.menu().contains("`plan`") && library.menu().lines().count() > 20);
}

#[test]
fn a_broken_script_is_refused_with_its_place() {
    let problem =
        Library::new(&["[{\"name\": \"x\", \"steps\": [{\"sey\": 1}]}]".to_owned()]).unwrap_err();
    assert!(problem.starts_with("--script"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn every_script_runs_to_its_end_in_every_profile() {
    let names: Vec<String> = Library::new(&[]).unwrap().names().map(str::to_owned).collect();
    for profile in [Profile::V015, Profile::V0165, Profile::V0169] {
        for name in names.iter().filter(|n| *n != "die") {
            let mut host = Host::start(Options { profile, ..Options::deterministic() });
            let session = host.session().await;
            let reason = host.turn(&session, &format!("/demo {name}")).await;
            let fails = matches!(name.as_str(), "fail" | "transient");
            assert_eq!(reason == "prompt_failed", fails, "{name}: {reason}");
            let calls = |kind: &str| {
                host.events("tool.updated").iter().filter(|p| p["kind"] == kind).count()
            };
            let (scheduled, ended) = (calls("scheduled"), calls("result") + calls("error"));
            assert!(scheduled <= ended, "{name}: {scheduled} calls, {ended} ended");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_runs_with_the_same_seed_are_the_same() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut host = Host::start(Options { pace: 1.0, ..Options::deterministic() });
        let session = host.session().await;
        host.turn(&session, "subagent").await;
        runs.push(host.seen);
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn a_script_of_ones_own_comes_first() {
    let script =
        r#"{"name": "mine", "keywords": ["hello"], "steps": [{"say": "Mine: ${prompt}"}]}"#;
    let mut host =
        Host::start(Options { scripts: vec![script.into()], ..Options::deterministic() });
    let session = host.session().await;
    host.turn(&session, "hello").await;
    assert_eq!(host.text(), "Mine: hello");
}
