//! Golden transcripts: the machine against the simulated engine, over a pipe in memory and on a
//! clock that runs by itself. `tests/golden/<case>/engine.jsonl` holds every line in both
//! directions, `acp.jsonl` what the client was sent. `UPDATE_EXPECT=1` writes them anew.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::value::RawValue;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::time::Instant;

use super::*;
use crate::bridge::engine::event::{EngineRequest, StateUpdated};
use crate::bridge::engine::sim::{self, Options};
use crate::bridge::engine::{RpcError, session_event};
use crate::bridge::session::listing;

/// Longer than any script plays; the clock is virtual.
const LIMIT: Duration = Duration::from_mins(10);
/// After the answer: what still comes of background work.
const AFTER: Duration = Duration::from_secs(8);

struct Stage {
    machine: Machine,
    began: Instant,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    timers: Vec<(Instant, Token)>,
    calls: HashMap<u64, Token>,
    /// Lists of sessions that `/resume` waits for.
    lists: HashMap<u64, Token>,
    engine_log: Vec<Value>,
    acp_log: Vec<Value>,
    answered: bool,
}

impl Stage {
    fn new(traits: ClientTraits) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (engine_reads, engine_writes) = tokio::io::split(theirs);
        tokio::spawn(sim::run(engine_reads, engine_writes, Options::deterministic()));
        let (reader, writer) = tokio::io::split(ours);
        let seed = Seed { traits, ..Bench::new().machine.seed.clone() };
        Self {
            machine: Machine::new(seed),
            began: Instant::now(),
            lines: BufReader::new(reader).lines(),
            writer,
            timers: Vec::new(),
            calls: HashMap::new(),
            lists: HashMap::new(),
            engine_log: Vec::new(),
            acp_log: Vec::new(),
            answered: false,
        }
    }

    async fn write(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        self.engine_log.push(json!({"to": message}));
    }

    async fn feed(&mut self, first: Input) {
        let mut inputs = VecDeque::from([first]);
        let mut effects = Vec::new();
        while let Some(input) = inputs.pop_front() {
            let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap();
            let now = Now { ms, unix_ms: 1_795_000_000_000 + ms };
            self.machine.step(now, input, &mut effects);
            for effect in std::mem::take(&mut effects) {
                inputs.extend(self.apply(effect).await);
            }
        }
    }

    /// Carries an effect out; questions are answered at once with their first option.
    async fn apply(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Update(update) | Effect::Replay { update, .. } => {
                self.acp_log.push(json!({"update": *update}));
            }
            Effect::EnsureEngine { token } => {
                return Some(Input::EngineReady(
                    token,
                    Ok(EngineUp { generation: 1, v4: V4Word::FindOut }),
                ));
            }
            Effect::Call { token, method, params } => {
                let id = 10_000_000 + token;
                self.calls.insert(id, token);
                self.write(json!({"id": id, "method": method, "params": params})).await;
            }
            Effect::Answer { id, result } => self.write(json!({"id": id, "result": result})).await,
            Effect::Refuse { id, code, message } => {
                self.write(json!({"id": id, "error": {"code": code, "message": message}})).await;
            }
            Effect::Respond { result, .. } => {
                self.answered = true;
                self.acp_log.push(match result {
                    Ok(value) => json!({"result": value}),
                    Err(error) => json!({"error": error}),
                });
            }
            Effect::AskPermission { token, request } => {
                let first = request.options[0].option_id.clone();
                self.acp_log.push(json!({"permission": *request}));
                let chosen = acp::RequestPermissionOutcome::Selected(
                    acp::SelectedPermissionOutcome::new(first),
                );
                let answer = ClientAnswer::Permission(acp::RequestPermissionResponse::new(chosen));
                return Some(Input::Answer(token, Ok(answer)));
            }
            Effect::AskForm { token, request } => {
                self.acp_log.push(json!({"form": *request}));
                let answer = ClientAnswer::Form(acp::CreateElicitationResponse::new(
                    acp::ElicitationAction::Decline,
                ));
                return Some(Input::Answer(token, Ok(answer)));
            }
            Effect::FindSessions { token } => {
                let id = 20_000_000 + token;
                self.lists.insert(id, token);
                self.write(json!({"id": id, "method": "session/list", "params": {}})).await;
            }
            Effect::TakeOver(what) => return Some(self.take_over(*what)),
            Effect::Timer { token, after } => self.timers.push((Instant::now() + after, token)),
            Effect::CancelTimer(token) => self.timers.retain(|(_, t)| *t != token),
            _ => {}
        }
        None
    }

    async fn line(&mut self, line: &str) {
        let message: Value = serde_json::from_str(line).unwrap();
        self.engine_log.push(json!({"from": message}));
        let method = message.get("method").and_then(Value::as_str);
        let params = message.get("params").cloned().unwrap_or_default();
        let raw = || RawValue::from_string(params.to_string()).unwrap();
        let event = match (method, message.get("id")) {
            (None, Some(id)) => {
                if let Some(token) = id.as_u64().and_then(|id| self.lists.remove(&id)) {
                    let all = message["result"]["sessions"].as_array().unwrap();
                    let found = listing::listed(all, &BTreeMap::new(), |cwd| cwd == "/w");
                    return Box::pin(self.feed(Input::SessionsFound(token, Ok(found)))).await;
                }
                let Some(token) = id.as_u64().and_then(|id| self.calls.remove(&id)) else { return };
                let reply = match message.get("error") {
                    Some(error) => Err(EngineError::Rpc(
                        serde_json::from_value::<RpcError>(error.clone()).unwrap(),
                    )),
                    None => Ok(RawValue::from_string(message["result"].to_string()).unwrap()),
                };
                return self.feed(Input::Reply(token, reply)).await;
            }
            (Some("session/requestRuntimePreferences"), Some(id)) => {
                let preferences = json!({"nativeSearchEnhancementsEnabled": false, "memoryEnabled": false,
                    "askUserQuestionAutoResolutionEnabled": false});
                return self.write(json!({"id": id, "result": preferences})).await;
            }
            (Some(method), Some(id)) => {
                let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
                EngineEvent::Request(Box::new(EngineRequest {
                    id: id.clone(),
                    method: method.to_owned(),
                    session_id: text("sessionId"),
                    request_id: text("requestId"),
                    params: params.clone(),
                }))
            }
            (Some("session/event"), None) => match session_event(&raw()) {
                Some(event) => EngineEvent::Session(Box::new(event)),
                None => return,
            },
            (Some("v4/conversation/frame"), None) => {
                let topic = params["topic"].as_str().unwrap_or_default().to_owned();
                EngineEvent::Frame { topic, params: raw() }
            }
            (Some(method), None) if method.starts_with("state") => EngineEvent::State(Box::new(
                serde_json::from_value::<StateUpdated>(params).unwrap_or_default(),
            )),
            _ => return,
        };
        self.feed(Input::Engine(event)).await;
    }

    /// One turn of the world: a line of the engine's or a deadline, whichever comes first.
    async fn turn(&mut self, until: Instant) -> bool {
        let next = self.timers.iter().min().copied();
        let at = next.map_or(until, |(at, _)| at.min(until));
        tokio::select! {
            biased;
            line = self.lines.next_line() => match line.unwrap() {
                Some(line) => self.line(&line).await,
                None => return false,
            },
            () = tokio::time::sleep_until(at) => {
                if at >= until {
                    return false;
                }
                if let Some((at, token)) = next {
                    self.timers.retain(|timer| *timer != (at, token));
                    self.feed(Input::Timer(token)).await;
                }
            }
        }
        true
    }

    /// Does what the registry does: another machine has the session, under the same id.
    fn take_over(&mut self, what: TakeOver) -> Input {
        let TakeOver { req, session, mcp, .. } = what;
        self.machine = Machine::new(Seed {
            nonce: "m".into(),
            engine_sid: Some(session.engine_sid),
            workspace: session.workspace,
            mcp,
            adopts: true,
            ..self.machine.seed.clone()
        });
        // Replies to the first machine are nobody's any more.
        self.calls.clear();
        self.timers.clear();
        Input::Request(req, Request::Adopted { title: session.title })
    }

    async fn play(&mut self, prompt: &str) {
        let blocks = vec![acp::ContentBlock::from(prompt.to_owned())];
        self.feed(Input::Request(ReqId(1), Request::Prompt(blocks))).await;
        let limit = Instant::now() + LIMIT;
        while !self.answered && self.turn(limit).await {}
        assert!(self.answered, "{prompt}: no answer; the client got {:#?}", self.acp_log);
        let after = Instant::now() + AFTER;
        while self.turn(after).await {}
    }
}

fn check(case: &str, file: &str, lines: &[Value]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(case).join(file);
    let mut text = String::new();
    for line in lines {
        text.push_str(&line.to_string());
        text.push('\n');
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    for (n, (want, got)) in want.lines().zip(text.lines()).enumerate() {
        assert_eq!(
            want,
            got,
            "{case}/{file}, line {}: run with UPDATE_EXPECT=1 when this is meant",
            n + 1
        );
    }
    assert_eq!(
        want.lines().count(),
        text.lines().count(),
        "{case}/{file}: another number of lines"
    );
}

async fn golden(case: &str, prompt: &str, traits: ClientTraits) {
    let mut stage = Stage::new(traits);
    tokio::time::timeout(LIMIT * 2, stage.play(prompt)).await.unwrap();
    check(case, "acp.jsonl", &stage.acp_log);
    check(case, "engine.jsonl", &stage.engine_log);
}

macro_rules! cases {
    ($($name:ident: $prompt:literal, $traits:expr;)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            golden(stringify!($name), $prompt, $traits).await;
        }
    )*};
}

/// A session from before, then a new thread that goes on with it.
async fn resumed(case: &str, command: &str, traits: ClientTraits) {
    let mut stage = Stage::new(traits);
    stage.play("edit").await;
    stage.machine = Machine::new(Seed { nonce: "t".into(), ..stage.machine.seed.clone() });
    (stage.answered, stage.timers) = (false, Vec::new());
    stage.acp_log.clear();
    stage.engine_log.clear();
    stage.play(command).await;
    check(case, "acp.jsonl", &stage.acp_log);
    check(case, "engine.jsonl", &stage.engine_log);
}

#[tokio::test(start_paused = true)]
async fn a_thread_goes_on_with_a_session_chosen_by_a_button() {
    let case = "a_thread_goes_on_with_a_session_chosen_by_a_button";
    resumed(case, "/resume", ClientTraits::default()).await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_stays_empty_when_the_form_is_declined() {
    resumed("a_thread_stays_empty_when_the_form_is_declined", "/resume", forms()).await;
}

fn forms() -> ClientTraits {
    ClientTraits {
        elicitation_form: true,
        plan_form: true,
        notices: true,
        terminal_output: true,
        ..ClientTraits::default()
    }
}

cases! {
    a_greeting: "hello", ClientTraits::default();
    a_command_with_colours: "bash", ClientTraits::default();
    a_command_in_a_terminal: "bash", forms();
    an_edit_with_its_diff: "edit", ClientTraits::default();
    a_permission_allowed: "permission", ClientTraits::default();
    a_plan_approved_by_a_button: "plan", ClientTraits::default();
    a_plan_declined_in_a_form: "plan", forms();
    questions_by_buttons: "questions", ClientTraits::default();
    a_todo_list: "todos", ClientTraits::default();
    a_subagent: "subagent", ClientTraits::default();
    background_work: "background", ClientTraits::default();
    a_failing_turn: "fail", ClientTraits::default();
    a_failure_that_passes: "transient", forms();
}
