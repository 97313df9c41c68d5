//! Questions as forms and as permission requests: table tests and properties.
#![allow(clippy::needless_pass_by_value, reason = "test tables read better so")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn request(params: Value) -> EngineRequest {
    EngineRequest {
        id: json!(1),
        method: "interaction/requestUserInput".into(),
        session_id: None,
        request_id: Some("req_1".into()),
        params,
    }
}

fn database() -> Value {
    json!({"question": "Which database?", "header": "Database", "options": [
        {"value": "pg", "label": "PostgreSQL", "description": "relational"},
        {"value": "sqlite", "label": "SQLite", "preview": "select 1"}]})
}

fn tests_to_run() -> Value {
    json!({"question": "Which tests?", "multiSelect": true, "options": [{"label": "Unit"}, {"label": "E2E"}, {"label": "Perf"}]})
}

fn ask(questions: Vec<Value>) -> QuestionAsk {
    to_acp(&request(json!({"toolCallId": "c1", "questions": questions}))).unwrap()
}

fn accept(ask: &QuestionAsk, content: Value) -> Value {
    let answer = json!({"action": "accept", "content": content});
    let answer: acp::CreateElicitationResponse = serde_json::from_value(answer).unwrap();
    ask.from_form(Some(&answer.action))
}

#[test]
fn the_form_has_a_choice_and_a_free_field_per_question() {
    let got = serde_json::to_value(ask(vec![database(), tests_to_run()]).form("s1")).unwrap();
    assert_eq!(
        got,
        json!({"mode": "form", "sessionId": "s1", "toolCallId": "c1", "message": "The agent has 2 questions.",
        "requestedSchema": {"type": "object", "required": [], "properties": {
            "q_0": {"type": "string", "title": "Which database?", "description": "Database", "oneOf": [
                {"const": "PostgreSQL", "title": "PostgreSQL", "description": "relational"},
                {"const": "SQLite", "title": "SQLite", "description": "select 1"},
                {"const": "__skip__", "title": "Skip this question"}]},
            "q_0_other": {"type": "string", "title": "Something else (instead)"},
            "q_1": {"type": "array", "title": "Which tests?", "items": {"anyOf": [
                {"const": "Unit", "title": "Unit"}, {"const": "E2E", "title": "E2E"}, {"const": "Perf", "title": "Perf"}]}},
            "q_1_other": {"type": "string", "title": "Something else (added)"}}}})
    );
}

#[test]
fn form_answers_reach_the_engine_by_text_and_position() {
    let ask = ask(vec![database(), tests_to_run()]);
    for (content, answers) in [
        (
            json!({"q_0": "SQLite", "q_1": ["Unit", "Perf"]}),
            json!({"Which database?": "SQLite", "Which tests?": "Unit, Perf"}),
        ),
        (json!({"q_0": "sqlite"}), json!({"Which database?": "SQLite"})),
        (json!({"q_0": "__skip__", "q_1": []}), json!({})),
        (json!({"q_0": "Oracle"}), json!({})),
        (json!({"q_0": "SQLite", "q_0_other": " MyOwn "}), json!({"Which database?": "MyOwn"})),
        (json!({"q_0": "SQLite", "q_0_other": "  "}), json!({"Which database?": "SQLite"})),
        (
            json!({"q_1": ["Unit", "Unit", "bogus"], "q_1_other": "fuzz"}),
            json!({"Which tests?": "Unit, fuzz"}),
        ),
        (json!({"q_1": "E2E"}), json!({"Which tests?": "E2E"})),
        (json!({"q_1_other": "fuzz"}), json!({"Which tests?": "fuzz"})),
        (json!({}), json!({})),
    ] {
        let got = accept(&ask, content.clone());
        assert_eq!(
            (&got["action"], &got["content"]["answers"]),
            (&json!("accept"), &answers),
            "{content}"
        );
    }
    let got = accept(&ask, json!({"q_1": ["E2E"]}));
    assert_eq!(got["content"], json!({"answer_1": "E2E", "answers": {"Which tests?": "E2E"}}));
}

#[test]
fn decline_and_cancel_reach_the_engine_as_such() {
    let ask = ask(vec![database()]);
    for (answer, want) in [("decline", "decline"), ("cancel", "cancel"), ("future", "cancel")] {
        let answer: acp::CreateElicitationResponse =
            serde_json::from_value(json!({"action": answer})).unwrap();
        assert_eq!(ask.from_form(Some(&answer.action)), json!({"action": want}));
    }
    assert_eq!(ask.from_form(None), cancelled());
}

#[test]
fn older_engines_put_the_questions_into_the_input() {
    let ask = to_acp(&request(json!({"input": {"questions": [{"question": "Q", "options": ["a", {"value": "b"}, {"x": 1}]}]}}))).unwrap();
    let got = serde_json::to_value(ask.form("s")).unwrap();
    let options = got["requestedSchema"]["properties"]["q_0"]["oneOf"].as_array().unwrap();
    assert_eq!(
        options.iter().map(|o| o["title"].as_str().unwrap()).collect::<Vec<_>>(),
        ["a", "b", "Skip this question"]
    );
    assert_eq!(got["toolCallId"], "req_1");
}

#[test]
fn a_request_without_a_usable_question_is_not_shown() {
    for params in [
        json!({}),
        json!({"questions": []}),
        json!({"questions": [{"options": ["a"]}, {"question": "", "options": ["a"]}]}),
        json!({"questions": [{"question": "Q", "options": [{"x": 1}, {"label": " "}]}]}),
        json!({"questions": "x"}),
    ] {
        assert!(to_acp(&request(params.clone())).is_none(), "{params}");
    }
}

#[test]
fn positions_count_in_the_engines_list_and_many_questions_are_numbered() {
    let mut list = vec![json!({"bad": 1})];
    list.extend((1..12).map(|n| json!({"question": format!("Q{n}"), "options": ["a"]})));
    let ask = ask(list);
    let form = serde_json::to_value(ask.form("s")).unwrap();
    let fields = form["requestedSchema"]["properties"].as_object().unwrap();
    assert_eq!(fields.len(), 22);
    for n in 1..12 {
        assert_eq!(fields[&format!("q_{n}")]["title"], format!("{}. Q{n}", n + 1));
        assert!(fields.contains_key(&format!("q_{n}_other")));
    }
    assert_eq!(
        accept(&ask, json!({"q_11": "a"}))["content"],
        json!({"answer_11": "a", "answers": {"Q11": "a"}})
    );
}

#[test]
fn labels_that_look_like_our_own_words_are_ordinary_labels() {
    let ask =
        ask(vec![json!({"question": "Q", "options": ["__skip__", "x:yes", "x:yes", "skip"]})]);
    let form = serde_json::to_value(ask.form("s")).unwrap();
    let ids: Vec<&str> = form["requestedSchema"]["properties"]["q_0"]["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["const"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["option_0___skip__", "x:yes", "option_2_x:yes", "skip", "__skip__"]);
    assert_eq!(
        accept(&ask, json!({"q_0": "option_0___skip__"}))["content"]["answer_0"],
        "__skip__"
    );
    assert_eq!(accept(&ask, json!({"q_0": "__skip__"}))["content"], json!({"answers": {}}));
}

#[test]
fn the_message_does_not_repeat_the_question() {
    let got = to_acp(&request(
        json!({"prompt": "Q?", "questions": [{"question": "Q?", "options": ["a"]}]}),
    ))
    .unwrap();
    assert_eq!(got.message, "The agent has a question.");
}

fn mcp() -> Value {
    json!({"toolCallId": "c1", "toolName": "McpElicitation", "input": {"message": "lab-mcp needs some data"},
        "schema": {"interaction": "mcp_elicitation", "serverName": "lab-mcp", "requestedSchema": {"type": "object",
            "properties": {"name": {"type": "string", "title": "Your name"}, "colour": {"type": "string", "title": "Colour", "enum": ["red", "green"]},
                "age": {"type": "integer", "title": "Age"}, "sure": {"type": "boolean"}}, "required": ["name"]}}})
}

#[test]
fn an_mcp_servers_schema_becomes_the_form() {
    let ask = to_acp(&request(mcp())).unwrap();
    let form = serde_json::to_value(ask.form("s")).unwrap();
    assert_eq!(form["message"], "lab-mcp asks: lab-mcp needs some data");
    let schema = &form["requestedSchema"];
    assert_eq!(schema["required"], json!(["q_0"]));
    assert_eq!(schema["properties"]["q_0"], json!({"type": "string", "title": "Your name"}));
    assert_eq!(schema["properties"]["q_2"]["type"], "integer");
    assert_eq!(
        schema["properties"].as_object().unwrap().len(),
        4,
        "closed lists take nothing else"
    );
    let got = accept(&ask, json!({"q_0": "Ada", "q_1": "red", "q_2": 41, "q_3": "true"}));
    assert_eq!(
        got["content"]["answers"],
        json!({"Your name": "Ada", "Colour": "red", "Age": "41", "sure": "true"})
    );
}

#[test]
fn an_mcp_server_that_only_wants_a_yes_is_shown_by_either_way() {
    let mut params = mcp();
    for schema in [json!({"type": "object", "properties": {}}), json!({}), Value::Null] {
        params["schema"]["requestedSchema"] = schema;
        let ask = to_acp(&request(params.clone())).unwrap();
        let form = serde_json::to_value(ask.form("s")).unwrap();
        assert_eq!(form["message"], "lab-mcp asks: lab-mcp needs some data");
        assert_eq!(form["requestedSchema"]["properties"], json!({}));
        let yes = json!({"action": "accept", "content": {"answers": {}}});
        assert_eq!(accept(&ask, json!({})), yes);
        let Step::Ask(dialog) = ask.fallback().step("s1") else { panic!() };
        let dialog = serde_json::to_value(dialog).unwrap();
        assert_eq!(dialog["toolCall"]["title"], "lab-mcp asks: lab-mcp needs some data");
        assert_eq!(play(&ask, &["yes"]), (1, yes));
        assert_eq!(play(&ask, &["no"]), (1, declined()));
        assert_eq!(play(&ask, &["other"]), (1, cancelled()));
        assert_eq!(play(&ask, &[]), (1, cancelled()));
    }
    params["input"] = json!({});
    assert!(to_acp(&request(params)).is_none(), "nothing is said, so nothing can be agreed to");
}

#[test]
fn who_asks_is_said_whatever_the_servers_words_are() {
    let mut params = mcp();
    params["input"] = json!({});
    for (prompt, message) in [
        ("Who are you?", "lab-mcp asks: Who are you?"),
        ("Your name", "lab-mcp asks for your input."),
        ("", "lab-mcp asks for your input."),
    ] {
        params["prompt"] = json!(prompt);
        assert_eq!(to_acp(&request(params.clone())).unwrap().message, message);
    }
}

#[test]
fn an_mcp_question_list_keeps_the_schemas_rules() {
    let mut params = mcp();
    params["questions"] = json!([{"question": "Your name", "header": "name", "options": []},
        {"question": "Colour", "header": "colour", "options": [{"label": "Red", "value": "red"}]},
        {"question": "Age", "header": "age", "options": []}]);
    let ask = to_acp(&request(params)).unwrap();
    assert_eq!(
        accept(&ask, json!({"q_0": "Ada", "q_1": "Red"}))["content"]["answers"],
        json!({"Your name": "Ada", "Colour": "red"})
    );
    assert_eq!(accept(&ask, json!({"q_1": "Red"})), declined(), "a required answer is missing");
    assert_eq!(
        accept(&ask, json!({"q_0": "Ada", "q_2": "old"}))["content"]["answers"],
        json!({"Your name": "Ada"})
    );
}

fn pick(id: &str) -> acp::RequestPermissionOutcome {
    acp::RequestPermissionOutcome::Selected(acp::SelectedPermissionOutcome::new(id.to_owned()))
}

/// Plays the dialogs with the answers given; the number of dialogs and the reply.
fn play(ask: &QuestionAsk, answers: &[&str]) -> (usize, Value) {
    let mut fallback = ask.fallback();
    let mut answers = answers.iter();
    for shown in 0.. {
        match fallback.step("s1") {
            Step::Done(reply) => return (shown, reply),
            Step::Ask(_) => {
                let outcome = answers.next().map(|id| pick(id));
                if let Some(reply) = fallback.answer(outcome.as_ref()) {
                    return (shown + 1, reply);
                }
            }
        }
    }
    unreachable!()
}

#[test]
fn without_forms_each_question_is_a_permission_request() {
    let ask = ask(vec![database(), tests_to_run()]);
    let Step::Ask(first) = ask.fallback().step("s1") else { panic!() };
    let got = serde_json::to_value(first).unwrap();
    assert_eq!(got["toolCall"]["title"], "Which database?");
    assert_eq!(
        got["toolCall"]["content"][0]["content"]["text"],
        "**PostgreSQL**: relational\n\n**SQLite**: select 1"
    );
    assert_eq!(
        got["options"],
        json!([
        {"optionId": "PostgreSQL", "name": "PostgreSQL", "kind": "allow_once"}, {"optionId": "SQLite", "name": "SQLite", "kind": "allow_once"},
        {"optionId": "__skip__", "name": "Skip this question", "kind": "reject_once"}])
    );
    let (shown, reply) = play(&ask, &["SQLite", "Unit:yes", "E2E:no", "Perf:yes"]);
    assert_eq!(
        (shown, &reply["content"]["answers"]),
        (4, &json!({"Which database?": "SQLite", "Which tests?": "Unit, Perf"}))
    );
    assert_eq!(
        play(&ask, &["__skip__", "Unit:no", "E2E:no", "Perf:no"]).1["content"],
        json!({"answers": {}})
    );
}

#[test]
fn a_cancelled_dialog_ends_the_whole_request() {
    let ask = ask(vec![database(), tests_to_run()]);
    assert_eq!(play(&ask, &[]), (1, cancelled()));
    assert_eq!(play(&ask, &["PostgreSQL", "Unit:yes"]), (3, cancelled()));
}

#[test]
fn free_text_cannot_be_asked_by_permission_requests() {
    let free = json!({"question": "Why?", "options": []});
    assert_eq!(play(&ask(vec![free.clone()]), &[]), (0, declined()));
    assert_eq!(
        play(&ask(vec![free, database()]), &["PostgreSQL"]).1["content"],
        json!({"answer_1": "PostgreSQL", "answers": {"Which database?": "PostgreSQL"}})
    );
}

proptest! {
    /// Whatever the labels are, the label picked is the answer, by either way of asking.
    #[test]
    fn the_picked_label_is_the_answer(labels in proptest::collection::vec("(__skip__|skip|yes|no|[ab]{1,2}(:yes|:no)?)", 1..6), at in 0usize..6) {
        let ask = ask(vec![json!({"question": "Q", "options": labels})]);
        let at = at % labels.len();
        let form = serde_json::to_value(ask.form("s")).unwrap();
        let id = form["requestedSchema"]["properties"]["q_0"]["oneOf"][at]["const"].clone();
        prop_assert_eq!(&accept(&ask, json!({"q_0": &id}))["content"]["answer_0"], &json!(labels[at]));
        let id = id.as_str().unwrap();
        prop_assert_eq!(&play(&ask, &[id]).1["content"]["answer_0"], &json!(labels[at]));
    }
}
