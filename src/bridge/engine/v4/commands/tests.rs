use super::*;

fn stamp() -> Stamp {
    Stamp { command_id: "c1".to_owned(), issued_at: 1_789_545_167_275, base_revision: Some(7) }
}

#[test]
fn a_guide_is_sent_with_exactly_the_keys_of_the_schema() {
    let params = command("s1", &stamp(), &Command::Guide { text: "go left".to_owned() });
    let want = json!({"commandId": "c1", "clientId": "zcode-acp", "sessionId": "s1", "type": "sendText",
                      "payload": {"text": "go left", "requestedDelivery": "guide"}, "issuedAt": 1_789_545_167_275_u64});
    assert_eq!(params, want);
}

#[test]
fn only_commands_that_need_a_revision_carry_one() {
    let revision = |it: &Command| command("s1", &stamp(), it).get("baseRevision").cloned();
    assert_eq!(revision(&Command::Stop { expected: None }), None);
    assert_eq!(revision(&Command::CancelBackgroundWork { work_id: "w".to_owned() }), None);
    assert_eq!(revision(&Command::Rename { title: "t".to_owned() }), None);
    assert_eq!(revision(&Command::DeleteQueueItem { item_id: "q".to_owned() }), Some(json!(7)));
    assert_eq!(revision(&Command::SetAutoDrain { enabled: false }), Some(json!(7)));
}

#[test]
fn a_stop_names_its_execution_only_when_it_is_known() {
    let payload = |expected| command("s", &stamp(), &Command::Stop { expected })["payload"].clone();
    assert_eq!(payload(None), json!({}));
    assert_eq!(payload(Some("e1".to_owned())), json!({"expectedForegroundExecutionId": "e1"}));
}

#[test]
fn subscribe_and_resync_leave_out_what_is_not_given_but_keep_a_null_base() {
    let subscribe =
        serde_json::to_value(Subscribe::new("conversation/s", "conn", None, None)).unwrap();
    assert_eq!(
        subscribe,
        json!({"topic": "conversation/s", "connectionId": "conn", "clientMode": "desktop-continuous"})
    );
    let base = Base { log_epoch: "e".to_owned(), seq: 4 };
    let again = serde_json::to_value(Subscribe::new(
        "t",
        "conn",
        Some(json!({"workspacePath": "/w"})),
        Some(base),
    ))
    .unwrap();
    assert_eq!(again["base"], json!({"logEpoch": "e", "seq": 4}));
    assert_eq!(again["workspace"], json!({"workspacePath": "/w"}));
    let resync = ResyncParams {
        subscription_id: "sub".to_owned(),
        topic: "t".to_owned(),
        connection_id: "conn".to_owned(),
        base: None,
        force_snapshot: false,
    };
    let resync = serde_json::to_value(resync).unwrap();
    assert_eq!(
        resync,
        json!({"subscriptionId": "sub", "topic": "t", "connectionId": "conn", "base": null})
    );
}

#[test]
fn a_rows_range_asks_for_one_to_two_hundred_rows() {
    let range = |limit| {
        serde_json::to_value(RowsRangeParams::new("s", Some(RowId::Number(9)), limit)).unwrap()
    };
    assert_eq!(range(1000), json!({"sessionId": "s", "beforeRowId": 9, "limit": 200}));
    assert_eq!(range(0)["limit"], json!(1));
}

#[test]
fn every_word_but_accepted_and_duplicate_is_a_refusal() {
    let accepted = json!({"commandId": "c", "status": "accepted", "result": {"type": "inputAccepted", "delivery": "queue"}});
    assert_eq!(reply(&accepted), Reply::Accepted { started: false, input_id: None });
    assert_eq!(
        reply(&json!({"status": "accepted", "result": {"delivery": "startNow"}})),
        Reply::Accepted { started: true, input_id: None }
    );
    assert_eq!(reply(&json!({"status": "duplicate"})), Reply::Duplicate);
    for status in [json!("rejected"), json!("failed"), json!("anything"), Value::Null] {
        assert!(matches!(reply(&json!({"status": status})), Reply::Refused(_)), "{status}");
    }
}

#[test]
fn the_reason_and_the_foreign_key_text_are_found_wherever_they_stand() {
    let places = [
        json!({"status": "rejected", "reasonCode": "fault.command.executionFailed", "message": "FOREIGN KEY constraint failed"}),
        json!({"status": "failed", "result": {"reasonCode": "fault.command.executionFailed", "message": "FOREIGN KEY constraint failed"}}),
        json!({"status": "failed", "error": {"code": "fault.command.executionFailed", "message": "SqliteError: FOREIGN KEY constraint failed"}}),
    ];
    for place in places {
        let Reply::Refused(refusal) = reply(&place) else { panic!("{place}") };
        assert_eq!(
            refusal.reason_code.as_deref(),
            Some("fault.command.executionFailed"),
            "{place}"
        );
        assert!(refusal.message.is_some_and(|it| it.contains("FOREIGN KEY")), "{place}");
        assert!(refusal.foreign_key, "{place}");
    }
    let deep = json!({"status": "failed", "result": {"causes": [{"text": "foreign key constraint failed"}]}});
    assert!(refusal(&deep).foreign_key);
    assert!(!refusal(&json!({"status": "rejected", "message": "busy"})).foreign_key);
}
