//! The run against a scripted agent over the in-memory channel, and its arguments.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_client_protocol::v1::{ConnectionTo, Dispatch};
use agent_client_protocol::{
    Agent, Client, ConnectTo, Error as AcpError, Handled, UntypedMessage, on_receive_dispatch,
};
use serde_json::{Value, json};

use super::*;
use crate::cli::SessionArgs;
use crate::error::ErrorKind;

/// What a script returns to refuse a request.
const REFUSED: &str = "refused";

/// Answers requests by a function and can talk back while a prompt runs.
fn agent(
    script: impl Fn(&str, &Value, &ConnectionTo<Client>) -> Option<Value> + Send + Sync + 'static,
) -> impl ConnectTo<Client> {
    let (cancel, cancelled) = tokio::sync::watch::channel(false);
    Agent.v1().on_receive_dispatch(
        async move |message: Dispatch<UntypedMessage, UntypedMessage>,
                    connection: ConnectionTo<Client>| {
            match message {
                Dispatch::Request(request, responder) => {
                    let answer = script(request.method(), request.params(), &connection);
                    if answer == Some(json!(REFUSED)) {
                        responder.respond_with_error(AcpError::invalid_params())?;
                    } else if let Some(answer) = answer {
                        responder.respond(answer)?;
                    } else {
                        // The turn lasts until it is cancelled.
                        let mut cancelled = cancelled.clone();
                        connection.spawn(async move {
                            cancelled.wait_for(|is| *is).await.ok();
                            responder.respond(json!({"stopReason": "cancelled"}))
                        })?;
                    }
                    Ok(Handled::Yes)
                }
                Dispatch::Notification(_) => {
                    cancel.send(true).ok();
                    Ok(Handled::Yes)
                }
                message @ Dispatch::Response(..) => Ok(Handled::No { message, retry: false }),
            }
        },
        on_receive_dispatch!(),
    )
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a script returns")]
fn basics(method: &str) -> Option<Value> {
    match method {
        "initialize" => Some(json!({"protocolVersion": 1, "agentCapabilities":
            {"loadSession": true, "sessionCapabilities": {"resume": {}, "list": {}}}})),
        "session/new" => Some(json!({"sessionId": "s1", "configOptions": [
            {"id": "m", "category": "model", "type": "select", "currentValue": "a/one",
             "options": [{"value": "a/one", "name": "One"}, {"value": "b/two", "name": "Two"}]}]})),
        "session/prompt" => Some(json!({"stopReason": "end_turn"})),
        _ => Some(json!({})),
    }
}

fn say(connection: &ConnectionTo<Client>, update: &Value) {
    let params = json!({"sessionId": "s1", "update": update});
    connection.send_notification(UntypedMessage::new("session/update", params).unwrap()).unwrap();
}

fn chunk(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn a_plan() -> Plan {
    Plan {
        prompt: "hello".to_owned(),
        cwd: "/".into(),
        session: Which::New,
        model: None,
        mode: None,
        rules: Rules::default(),
        max_turns: None,
        timeout: None,
    }
}

struct Ran {
    outcome: Result<(), AppError>,
    out: String,
    err: String,
}

impl Ran {
    fn code(&self) -> u8 {
        self.outcome.as_ref().err().map_or(0, |err| err.kind.exit_code())
    }
}

async fn ran(
    agent: impl ConnectTo<Client>,
    plan: Plan,
    format: Format,
    interrupts: mpsc::Receiver<()>,
) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut reporter = Reporter::new(format, &mut out, &mut err, false);
    let work = async {
        let report = drive(StartedAgent::new(agent), plan, &mut reporter, interrupts).await;
        reporter.finish(report)
    };
    let outcome = tokio::time::timeout(Duration::from_mins(1), work).await.expect("it hangs");
    Ran { outcome, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

fn no_interrupts() -> mpsc::Receiver<()> {
    mpsc::channel(1).1
}

fn talkative(method: &str, _params: &Value, connection: &ConnectionTo<Client>) -> Option<Value> {
    if method == "session/prompt" {
        say(connection, &chunk("Hello,"));
        say(connection, &json!({"sessionUpdate": "brand_new", "x": 1}));
        say(
            connection,
            &json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit a", "kind": "edit",
            "status": "completed", "content": [{"type": "diff", "path": "/a", "newText": ""}]}),
        );
        say(connection, &chunk("world"));
        return Some(json!({"stopReason": "end_turn", "usage": {"totalTokens": 5}}));
    }
    basics(method)
}

#[tokio::test]
async fn text_is_the_reply_and_a_line_end() {
    let ran = ran(agent(talkative), a_plan(), Format::Text, no_interrupts()).await;
    assert_eq!((ran.code(), ran.out.as_str(), ran.err.as_str()), (0, "Hello,\n\nworld\n", ""));
}

#[tokio::test]
async fn json_is_one_object_with_all_there_is_to_know() {
    let ran = ran(agent(talkative), a_plan(), Format::Json, no_interrupts()).await;
    assert_eq!(
        serde_json::from_str::<Value>(&ran.out).unwrap(),
        json!({"sessionId": "s1", "stopReason": "end_turn", "text": "Hello,\n\nworld", "denied": [],
               "usage": {"totalTokens": 5}, "filesChanged": ["/a"], "error": null, "exitCode": 0})
    );
}

#[tokio::test]
async fn ndjson_is_every_update_as_it_came_and_the_result() {
    let ran = ran(agent(talkative), a_plan(), Format::Ndjson, no_interrupts()).await;
    let lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[1]["update"], json!({"sessionUpdate": "brand_new", "x": 1}));
    assert_eq!(lines[4]["result"]["text"], "Hello,\n\nworld");
}

#[tokio::test]
async fn stop_reasons_and_errors_have_their_documented_codes() {
    for (answer, code) in [
        (json!("cancelled"), 3),
        (json!("refusal"), 4),
        (json!("max_tokens"), 1),
        (json!("end_turn"), 0),
        // Nothing is known to have gone well.
        (json!("exhausted"), 1),
        (Value::Null, 1),
    ] {
        let stop = answer.clone();
        let agent = agent(move |method, _, _| match method {
            "session/prompt" => Some(json!({"stopReason": stop})),
            _ => basics(method),
        });
        let ran = ran(agent, a_plan(), Format::Text, no_interrupts()).await;
        assert_eq!(ran.code(), code, "{answer}");
    }
}

#[tokio::test]
async fn a_turn_that_ended_with_every_try_failed_is_code_1_with_its_reason() {
    let failure = json!({"zcode": {"failure": {"message": "the provider is overloaded"}}});
    let agent = agent(move |method, _, _| match method {
        "session/prompt" => Some(json!({"stopReason": "end_turn", "_meta": failure.clone()})),
        _ => basics(method),
    });
    let ran = ran(agent, a_plan(), Format::Text, no_interrupts()).await;
    assert_eq!(ran.code(), 1);
    assert!(format!("{:?}", ran.outcome).contains("the provider is overloaded"));
}

#[tokio::test(start_paused = true)]
async fn time_up_cancels_the_turn_and_is_code_124() {
    let agent = agent(|method, _, connection| match method {
        "session/prompt" => {
            say(connection, &chunk("so far"));
            None
        }
        _ => basics(method),
    });
    let plan = Plan { timeout: Some(Duration::from_secs(5)), ..a_plan() };
    let ran = ran(agent, plan, Format::Json, no_interrupts()).await;
    assert_eq!(ran.code(), 124);
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(result["stopReason"], "cancelled", "the agent was asked to stop and did");
    assert_eq!(result["text"], "so far");
}

#[tokio::test]
async fn an_interrupt_cancels_first_and_is_code_130() {
    let (interrupt, interrupts) = mpsc::channel(1);
    let agent = agent(move |method, _, _| match method {
        "session/prompt" => {
            interrupt.try_send(()).unwrap();
            None
        }
        _ => basics(method),
    });
    let ran = ran(agent, a_plan(), Format::Json, interrupts).await;
    assert_eq!(ran.code(), 130);
    assert!(ran.out.contains("\"cancelled\""), "{}", ran.out);
}

#[tokio::test]
async fn too_many_model_requests_cancel_the_turn() {
    let agent = agent(|method, _, connection| match method {
        "session/prompt" => {
            for round in 0..3 {
                say(connection, &chunk("x"));
                say(
                    connection,
                    &json!({"sessionUpdate": "tool_call", "toolCallId": round.to_string()}),
                );
            }
            None
        }
        _ => basics(method),
    });
    let plan = Plan { max_turns: Some(2), ..a_plan() };
    assert_eq!(ran(agent, plan, Format::Text, no_interrupts()).await.code(), 1);
}

/// An agent that asks for a permission and says what it was told.
fn asking(asked: Arc<AtomicUsize>) -> impl ConnectTo<Client> {
    let params = json!({"sessionId": "s1", "toolCall": {"toolCallId": "t", "title": "rm -rf x", "kind": "execute",
        "name": "Bash", "rawInput": {"command": "rm -rf x"}},
        "options": [{"optionId": "always", "kind": "allow_always", "name": "Always"},
                    {"optionId": "yes", "kind": "allow_once", "name": "Yes"},
                    {"optionId": "no", "kind": "reject_once", "name": "No"}]});
    asking_with(params, asked)
}

/// Asks this in each turn, counts it, and says which option was chosen.
fn asking_with(params: Value, asked: Arc<AtomicUsize>) -> impl ConnectTo<Client> {
    agent(move |method, _, connection| {
        if method != "session/prompt" {
            return basics(method);
        }
        asked.fetch_add(1, Ordering::SeqCst);
        let request = UntypedMessage::new("session/request_permission", params.clone()).unwrap();
        let sent = connection.send_request(request);
        let back = connection.clone();
        connection
            .spawn(async move {
                let answer = sent.block_task().await?;
                say(&back, &chunk(answer["outcome"]["optionId"].as_str().unwrap_or("none")));
                back.send_notification(UntypedMessage::new("done", json!({}))?)
            })
            .unwrap();
        None
    })
}

fn allowing(rules: &[&str]) -> Rules {
    let allow: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    Rules::parse(&allow, &[], Path::new("/")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn permissions_follow_the_rules_and_a_denial_is_said_and_is_code_4() {
    let rules = allowing;
    // The scripted turn never ends by itself, so time ends it; what it said is what counts.
    let limits = || Plan { timeout: Some(Duration::from_secs(1)), ..a_plan() };
    let asked = Arc::new(AtomicUsize::new(0));
    let denied = ran(asking(asked.clone()), limits(), Format::Text, no_interrupts()).await;
    assert_eq!(denied.out, "no\n");
    assert!(denied.err.contains("--allow 'Bash(rm -rf x)'"), "{}", denied.err);
    let plan = Plan { rules: rules(&["Bash(rm *)"]), ..limits() };
    let allowed = ran(asking(asked.clone()), plan, Format::Text, no_interrupts()).await;
    assert_eq!((allowed.out.as_str(), allowed.err.as_str()), ("yes\n", ""));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_by_no_rule() {
    // Two ways to say yes are a choice; the bridge's own questions are marked.
    let many = json!([{"optionId": "a", "name": "Postgres", "kind": "allow_once"},
        {"optionId": "b", "name": "SQLite", "kind": "allow_once"},
        {"optionId": "skip", "name": "Skip", "kind": "reject_once"}]);
    let one = json!([{"optionId": "a", "name": "Postgres", "kind": "allow_once"},
        {"optionId": "skip", "name": "Skip", "kind": "reject_once"}]);
    for (options, meta) in [(many, json!({})), (one, json!({"zcode": {"interaction": "question"}}))]
    {
        let request = json!({"sessionId": "s1", "options": options, "toolCall": {
            "toolCallId": "q", "title": "Which database?", "_meta": meta}});
        let plan =
            Plan { rules: allowing(&["*"]), timeout: Some(Duration::from_secs(5)), ..a_plan() };
        let agent = asking_with(request, Arc::default());
        let ran = ran(agent, plan, Format::Text, no_interrupts()).await;
        assert_eq!(ran.out, "skip\n");
        assert!(ran.err.contains("nobody is here to answer: Which database?"), "{}", ran.err);
    }
}

#[tokio::test]
async fn a_result_is_written_whatever_became_of_the_prompt() {
    for (format, pointer) in [(Format::Json, ""), (Format::Ndjson, "/result")] {
        let agent = agent(|method, _, connection| match method {
            "session/prompt" => {
                say(connection, &chunk("so far"));
                Some(json!(REFUSED))
            }
            _ => basics(method),
        });
        let ran = ran(agent, a_plan(), format, no_interrupts()).await;
        assert_eq!(ran.code(), 1);
        let last: Value = serde_json::from_str(ran.out.lines().last().unwrap()).unwrap();
        let result = last.pointer(pointer).unwrap();
        assert_eq!((&result["text"], &result["exitCode"]), (&json!("so far"), &json!(1)));
        assert!(result["error"].is_string() && result["stopReason"].is_null(), "{result}");
    }
}

#[tokio::test]
async fn what_somebody_else_denied_is_code_4() {
    let agent = agent(|method, _, connection| match method {
        "session/prompt" => {
            say(
                connection,
                &json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "rm"}),
            );
            say(
                connection,
                &json!({"sessionUpdate": "tool_call_update", "toolCallId": "t",
                "_meta": {"zcode": {"permission": {"decision": "deny", "reason": "no"}}}}),
            );
            Some(json!({"stopReason": "end_turn"}))
        }
        _ => basics(method),
    });
    let ran = ran(agent, a_plan(), Format::Json, no_interrupts()).await;
    assert_eq!(ran.code(), 4);
    assert!(ran.out.contains(r#""denied":["rm"]"#), "{}", ran.out);
}

#[test]
fn a_denied_tool_is_code_4_even_when_the_turn_went_on() {
    let mut turn = turn::Turn::default();
    turn.denied.push("rm".to_owned());
    let report = client::Report {
        stop_reason: Some("end_turn".to_owned()),
        turn,
        ..client::Report::default()
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let failure =
        Reporter::new(Format::Text, &mut out, &mut err, false).finish(report).unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Refused);
}

#[tokio::test]
async fn a_model_is_chosen_by_value_name_or_last_part_and_the_agent_judges_others() {
    // The agent may have more models than it lists before it has done anything.
    for (wanted, value, expected) in [
        ("b/two", "b/two", 0),
        ("Two", "b/two", 0),
        ("two", "b/two", 0),
        ("c/three", "c/three", 0),
        ("four", REFUSED, 2),
    ] {
        let chosen = Arc::new(AtomicUsize::new(0));
        let seen = chosen.clone();
        let agent = agent(move |method, params, _| {
            if method == "session/set_config_option" {
                if params["value"] == "four" {
                    return Some(json!(REFUSED));
                }
                assert_eq!((&params["configId"], &params["value"]), (&json!("m"), &json!(value)));
                seen.fetch_add(1, Ordering::SeqCst);
            }
            basics(method)
        });
        let plan = Plan { model: Some(wanted.to_owned()), ..a_plan() };
        let ran = ran(agent, plan, Format::Text, no_interrupts()).await;
        assert_eq!(ran.code(), expected, "{wanted}");
        assert_eq!(chosen.load(Ordering::SeqCst), usize::from(expected == 0));
    }
}

#[tokio::test]
async fn the_newest_session_of_the_directory_is_continued_over_all_pages() {
    let agent = agent(|method, params, _| match method {
        "session/list" if params["cursor"] == "2" => Some(json!({"sessions": [
            {"sessionId": "new", "cwd": "/", "updatedAt": "2026-02-01T00:00:00Z"}]})),
        "session/list" => Some(json!({"nextCursor": "2", "sessions": [
            {"sessionId": "old", "cwd": "/", "updatedAt": "2026-01-01T00:00:00Z"},
            {"sessionId": "elsewhere", "cwd": "/tmp", "updatedAt": "2026-03-01T00:00:00Z"}]})),
        "session/resume" => {
            assert_eq!(params["sessionId"], "new");
            Some(json!({}))
        }
        "session/prompt" => {
            assert_eq!(params["sessionId"], "new");
            Some(json!({"stopReason": "end_turn"}))
        }
        _ => basics(method),
    });
    let plan = Plan { session: Which::Newest, ..a_plan() };
    let ran = ran(agent, plan, Format::Json, no_interrupts()).await;
    assert_eq!(ran.code(), 0, "{:?}", ran.outcome);
}

fn args(prompt: &[&str]) -> RunArgs {
    RunArgs { prompt: prompt.iter().map(|word| (*word).to_owned()).collect(), ..RunArgs::default() }
}

#[test]
fn the_prompt_comes_from_arguments_and_standard_input() {
    let prompt = |words: &[&str], stdin: &str, tty| {
        plan(&args(words), &mut stdin.as_bytes(), tty).map(|plan| plan.prompt)
    };
    assert_eq!(prompt(&["a"], "unread", false).unwrap(), "a");
    assert_eq!(prompt(&[], "piped\n", false).unwrap(), "piped\n");
    assert_eq!(prompt(&["Review:", "-"], "diff", false).unwrap(), "Review:\ndiff");
    for wrong in [prompt(&[], "", true), prompt(&[], " \n", false), prompt(&["-"], "", false)] {
        assert_eq!(wrong.unwrap_err().kind, ErrorKind::Usage);
    }
}

#[test]
fn a_prompt_that_is_too_long_is_refused_whole() {
    let mut endless = std::io::Read::take(std::io::repeat(b'x'), MAX_PROMPT + 1);
    let refused = plan(&args(&["-"]), &mut endless, false).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Usage);
    assert!(refused.message.contains("32 MiB"), "{}", refused.message);
}

#[test]
fn a_directory_that_is_not_there_is_a_usage_error() {
    let args = RunArgs {
        session: SessionArgs { cwd: Some("/no/such/place".into()), ..SessionArgs::default() },
        ..args(&["x"])
    };
    assert_eq!(plan(&args, &mut &b""[..], true).unwrap_err().kind, ErrorKind::Usage);
}
