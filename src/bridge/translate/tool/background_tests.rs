//! Background tasks: table tests.
#![allow(clippy::needless_pass_by_value, reason = "test tables read better so")]

use serde_json::{Value, json};

use super::super::tests::{bare, event, run, updates, zed};
use super::super::{CardEnd, Output, Translator};
use crate::bridge::engine::event::{BackgroundTask, SessionBody, SessionEvent, SessionUpdated};

fn task(payload: Value) -> SessionEvent {
    let mut found = event("session.updated", json!({}));
    let task: BackgroundTask = serde_json::from_value(payload.clone()).unwrap();
    found.body = SessionBody::Updated(SessionUpdated {
        task: Some(task),
        raw: payload,
        ..SessionUpdated::default()
    });
    found
}

fn tell(translator: &mut Translator, payload: Value) -> Vec<Value> {
    let mut out = Output::default();
    translator.on_event(&task(payload), &mut out);
    updates(&out)
}

fn launch(translator: &mut Translator) -> Vec<Value> {
    run(
        translator,
        &[
            (
                "tool.updated",
                json!({"kind": "scheduled", "toolCallId": "c1", "toolName": "Bash", "input": {"command": "make", "run_in_background": true}}),
            ),
            (
                "tool.updated",
                json!({"kind": "result", "toolCallId": "c1", "result": {"success": true, "content": "Command running in background with ID: exec_1"}}),
            ),
            ("tool.updated", json!({"kind": "batch", "toolCallIds": ["c1"], "errorCount": 0})),
        ],
    )
}

#[test]
fn a_task_goes_on_in_the_card_that_launched_it() {
    let mut translator = bare();
    let mut got = launch(&mut translator);
    for payload in [
        json!({"taskId": "exec_1", "toolCallId": "c1", "status": "running", "outputPath": "/tmp/o", "taskKind": "bash"}),
        json!({"taskId": "exec_1", "toolCallId": "c1", "status": "running", "outputTail": "line\n"}),
        json!({"taskId": "exec_1", "toolCallId": "c1", "status": "completed", "outputTail": "line\nbg-done\n"}),
        json!({"taskId": "exec_1", "toolCallId": "c1", "status": "completed", "outputTail": "again"}),
    ] {
        got.extend(tell(&mut translator, payload));
    }
    assert!(got.iter().all(|u| u["toolCallId"] == "c1"));
    assert_eq!(got.iter().filter(|u| u["sessionUpdate"] == "tool_call").count(), 1);
    let end = got.last().unwrap();
    assert_eq!(
        (&end["status"], &end["content"][0]["content"]["text"]),
        (&json!("completed"), &json!("```console\nline\nbg-done\n```"))
    );
    assert_eq!(end["_meta"]["backgroundTask"]["completed"], true);
    assert_eq!(got.iter().filter(|u| u["status"] == "completed").count(), 1);
    assert_eq!(translator.running_tasks().count(), 0);
}

#[test]
fn a_terminal_gets_the_launch_then_the_output_and_one_end() {
    let mut translator = zed();
    let mut got = launch(&mut translator);
    got.extend(tell(
        &mut translator,
        json!({"taskId": "exec_1", "toolCallId": "c1", "status": "running", "stdoutTail": "a\n"}),
    ));
    got.extend(tell(
        &mut translator,
        json!({"taskId": "exec_1", "toolCallId": "c1", "status": "failed", "stdoutTail": "a\nb\n"}),
    ));
    let data: String =
        got.iter().filter_map(|u| u.pointer("/_meta/terminal_output/data")?.as_str()).collect();
    assert_eq!(data, "Command running in background with ID: exec_1\r\na\nb\n");
    let exits: Vec<&Value> =
        got.iter().filter_map(|u| u.pointer("/_meta/terminal_exit/exit_code")).collect();
    assert_eq!(exits, [&json!(1)]);
    assert_eq!(got.last().unwrap()["status"], "failed");
}

#[test]
fn a_task_without_an_open_card_gets_one_of_its_own() {
    let mut translator = bare();
    let got = tell(
        &mut translator,
        json!({"taskId": "t1", "toolCallId": "gone", "status": "running", "description": "Run the tests"}),
    );
    assert_eq!(
        (&got[0]["toolCallId"], &got[0]["title"]),
        (&json!("bg_t1"), &json!("[background] Run the tests"))
    );
    assert_eq!(got.len(), 1);
    let meta = &got[0]["_meta"]["backgroundTask"];
    assert_eq!((&meta["taskId"], &meta["sourceToolCallId"]), (&json!("t1"), &json!("gone")));
    assert_eq!(
        tell(&mut translator, json!({"taskId": "t1", "status": "running"})),
        Vec::<Value>::new()
    );
    let end = tell(&mut translator, json!({"taskId": "t1", "status": "timed_out"}));
    assert_eq!((end.len(), &end[0]["status"]), (1, &json!("failed")));
}

#[test]
fn every_ending_has_its_status() {
    for (status, want) in [
        ("completed", "completed"),
        ("failed", "failed"),
        ("timed_out", "failed"),
        ("cancelled", "failed"),
        ("spawn_error", "failed"),
        ("lost", "failed"),
        ("error", "failed"),
    ] {
        let got = tell(&mut bare(), json!({"taskId": "t", "status": status}));
        assert_eq!(got.last().unwrap()["status"], want, "{status}");
    }
}

#[test]
fn a_task_known_before_its_launch_is_reported_keeps_the_card_open() {
    let mut translator = bare();
    run(
        &mut translator,
        &[("tool.updated", json!({"kind": "started", "toolCallId": "c1", "toolName": "Agent"}))],
    );
    tell(&mut translator, json!({"taskId": "agent_1", "toolCallId": "c1", "status": "running"}));
    run(
        &mut translator,
        &[(
            "tool.updated",
            json!({"kind": "result", "toolCallId": "c1", "result": {"content": "working"}}),
        )],
    );
    assert_eq!(translator.running_tasks().collect::<Vec<_>>(), [("agent_1", "c1")]);
    let end = tell(&mut translator, json!({"taskId": "agent_1", "status": "completed"}));
    assert_eq!((&end[0]["toolCallId"], &end[0]["status"]), (&json!("c1"), &json!("completed")));
}

#[test]
fn a_cancelled_task_ends_at_once_and_stays_ended() {
    let mut translator = bare();
    launch(&mut translator);
    tell(&mut translator, json!({"taskId": "exec_1", "toolCallId": "c1", "status": "running"}));
    let mut out = Output::default();
    translator.on_task_cancelled("exec_1", &mut out);
    translator.on_task_cancelled("exec_1", &mut out);
    let end = updates(&out);
    assert_eq!(
        (end.len(), &end[0]["status"], &end[0]["_meta"]["backgroundTask"]),
        (1, &json!("failed"), &json!({"taskId": "exec_1", "cancelled": true}))
    );
    assert_eq!(
        tell(
            &mut translator,
            json!({"taskId": "exec_1", "toolCallId": "c1", "status": "cancelled"})
        ),
        Vec::<Value>::new()
    );
}

#[test]
fn the_end_of_the_bridge_ends_every_task() {
    let mut translator = bare();
    launch(&mut translator);
    tell(&mut translator, json!({"taskId": "exec_1", "toolCallId": "c1", "status": "running"}));
    tell(&mut translator, json!({"taskId": "t2", "status": "running"}));
    let mut out = Output::default();
    translator.finish_turn(CardEnd::Completed, &mut out);
    assert!(out.is_empty());
    translator.finish_turn(CardEnd::Shutdown, &mut out);
    let got = updates(&out);
    assert_eq!(
        got.iter().map(|u| &u["_meta"]["backgroundTask"]["shutdown"]).collect::<Vec<_>>(),
        [&json!(true), &json!(true)]
    );
    assert!(got.iter().all(|u| u["status"] == "failed"));
    assert_eq!(translator.running_tasks().count(), 0);
}
