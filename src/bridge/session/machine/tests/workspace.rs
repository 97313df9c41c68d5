//! The workspace's topic: commands from V4 where it is there, by the legacy method where it is not.

use serde_json::{Value, json};

use super::*;

const TOPIC: &str = "workspace-config//w";

fn commands_of(b: &Bench) -> Vec<String> {
    let last = b.updates.iter().rev().find_map(|it| match it {
        acp::SessionUpdate::AvailableCommandsUpdate(it) => Some(it),
        _ => None,
    });
    last.into_iter().flat_map(|it| &it.available_commands).map(|it| it.name.clone()).collect()
}

fn frame(b: &mut Bench, from: u64, to: u64, payload: &Value) {
    let params = json!({"wireVersion": 3, "kind": "complete", "topic": TOPIC, "subscriptionId": "sub_w",
        "frame": {"subscriptionId": "sub_w", "fromSeq": from, "toSeq": to, "payload": payload}});
    let params = RawValue::from_string(params.to_string()).unwrap();
    b.step(Input::Engine(EngineEvent::Frame { topic: TOPIC.into(), params }));
}

fn open() -> Bench {
    let mut b = Bench::v4_with(|_| {});
    b.workspace_topic = true;
    b.request(Request::New);
    b.prompt("hello");
    let (token, _, params) =
        b.calls.iter().rev().find(|it| it.1 == "v4/conversation/subscribe").cloned().unwrap();
    assert_eq!(params["topic"], TOPIC);
    assert!(params["workspace"].is_object());
    b.close(token);
    b.reply(
        token,
        Ok(json!({"ack": {"subscriptionId": "sub_w", "mode": "snapshot", "logEpoch": "w"}})),
    );
    b.answer_v4();
    b
}

fn picture(names: &[&str]) -> Value {
    let list: Vec<Value> = names.iter().map(|it| json!({"name": it, "description": "d"})).collect();
    json!({"config": {"slashCommands": list, "theme": "dark"}})
}

#[test]
fn commands_come_from_the_workspaces_topic_and_change_with_it() {
    let mut b = open();
    frame(&mut b, 0, 0, &json!({"kind": "snapshot", "snapshot": picture(&["review"])}));
    assert!(commands_of(&b).contains(&"review".to_owned()), "{:?}", commands_of(&b));
    let patch = json!({"op": "state.updated", "patch": picture(&["review", "ship"])});
    frame(&mut b, 0, 1, &json!({"kind": "deltas", "deltas": [patch]}));
    assert!(commands_of(&b).contains(&"ship".to_owned()));
    assert_eq!(b.count("workspace/readPresentation"), 0);
    let req = b.request(Request::Extension { name: "state", params: json!({}) });
    assert_eq!(b.response(req).unwrap().as_ref().unwrap()["workspace"]["theme"], "dark");
}

#[test]
fn a_gap_in_the_workspaces_topic_is_asked_for() {
    let mut b = open();
    frame(&mut b, 0, 0, &json!({"kind": "snapshot", "snapshot": picture(&["review"])}));
    let patch = json!({"op": "state.updated", "patch": picture(&["late"])});
    frame(&mut b, 3, 4, &json!({"kind": "deltas", "deltas": [patch]}));
    let resync = b.params("v4/conversation/resync");
    assert_eq!((&resync["topic"], &resync["base"]["seq"]), (&json!(TOPIC), &json!(0)));
    frame(&mut b, 4, 4, &json!({"kind": "snapshot", "snapshot": picture(&["late"])}));
    assert!(commands_of(&b).contains(&"late".to_owned()));
}

#[test]
fn without_the_topic_the_commands_are_read_once_by_the_legacy_method() {
    let mut b = Bench::v4();
    b.prompt("hello");
    b.answer_v4();
    assert_eq!(b.count("workspace/readPresentation"), 1);
}

#[test]
fn a_topic_that_says_no_commands_leaves_them_to_the_legacy_method() {
    let mut b = open();
    assert_eq!(b.count("workspace/readPresentation"), 0);
    frame(&mut b, 0, 0, &json!({"kind": "snapshot", "snapshot": {}}));
    assert_eq!(b.count("workspace/readPresentation"), 1);
}

#[test]
fn a_session_that_closes_leaves_the_topic() {
    let mut b = open();
    frame(&mut b, 0, 0, &json!({"kind": "snapshot", "snapshot": picture(&["review"])}));
    b.request(Request::Close);
    assert_eq!(b.params("v4/conversation/unsubscribe")["topic"], TOPIC);
}

#[test]
fn a_workspace_topic_whose_pictures_are_all_broken_is_asked_for_a_few_times_and_left() {
    let mut b = open();
    for _ in 0..50 {
        frame(&mut b, 0, 0, &json!({"kind": "snapshot", "snapshot": "broken"}));
    }
    assert_eq!(b.count("v4/conversation/resync"), 8);
    assert_eq!(b.params("v4/conversation/unsubscribe")["topic"], TOPIC);
    assert_eq!(b.count("workspace/readPresentation"), 1, "the commands are read instead");
}
