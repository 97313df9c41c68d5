//! Tables over the machine: given inputs, expected effects. [`Bench`] plays the engine's side of
//! the bookkeeping (create, subscribe, readings), so that a test names only what it is about.

mod asks;
mod channels;
mod counterexamples;
mod foreign;
mod golden;
mod lifecycle;
mod opening;
mod pick;
mod random;
mod revoked;
mod signals;
mod steering;
mod stopping;
mod v4;
mod workspace;

use std::collections::HashMap;

use agent_client_protocol::Error as AcpError;
use agent_client_protocol::v1::schema as acp;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::bridge::engine::RpcError;
use crate::bridge::engine::event::{
    EngineRequest, SessionBody, SessionEvent, SteerQueued, StreamKind, Streaming, TurnCompleted,
    TurnStarted,
};
use crate::bridge::engine::session_event;

pub(super) const SID: &str = "sess_1";

/// A machine with an engine that does what it should, until a test takes over.
pub(super) struct Bench {
    pub(super) machine: Machine,
    pub(super) now: u64,
    seq: u64,
    next_req: u64,
    /// Calls that no rule answered, oldest first.
    pub(super) calls: Vec<(Token, &'static str, Value)>,
    pub(super) timers: HashMap<Token, u64>,
    pub(super) asks: Vec<Token>,
    pub(super) cancelled_asks: Vec<Token>,
    pub(super) updates: Vec<acp::SessionUpdate>,
    pub(super) responses: Vec<(ReqId, Result<Value, AcpError>)>,
    pub(super) answers: Vec<(WireId, Value)>,
    pub(super) killed: bool,
    /// Portions of a history that wait for the client.
    pub(super) rooms: Vec<Token>,
    pub(super) forks: Vec<Forked>,
    pub(super) signals: Vec<(&'static str, Value)>,
    pub(super) child_updates: Vec<(String, acp::SessionUpdate)>,
    /// The engine has a topic for the workspace, which the test answers itself.
    pub(super) workspace_topic: bool,
    /// The session from before that `/resume` finds.
    pub(super) earlier: Listed,
    pub(super) records: Vec<Record>,
    pub(super) detached: Vec<String>,
    /// Methods that the test answers itself.
    pub(super) by_hand: Vec<&'static str>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut Seed)) -> Self {
        let mut seed = Seed {
            steer_limits: crate::bridge::engine::v4::steer::Limits::default(),
            acp_id: "acp-1".into(),
            nonce: "n".into(),
            cwd: "/w".into(),
            engine_sid: None,
            workspace: None,
            mcp: Vec::new(),
            traits: ClientTraits::default(),
            settings: Settings::default(),
            remark: None,
            ask_timeout: None,
            compact_above: None,
            completion_status: false,
            external_approvals: false,
            adopts: false,
        };
        change(&mut seed);
        Self {
            machine: Machine::new(seed),
            now: 1_000,
            seq: 0,
            next_req: 0,
            calls: Vec::new(),
            timers: HashMap::new(),
            asks: Vec::new(),
            cancelled_asks: Vec::new(),
            updates: Vec::new(),
            responses: Vec::new(),
            answers: Vec::new(),
            killed: false,
            rooms: Vec::new(),
            forks: Vec::new(),
            signals: Vec::new(),
            child_updates: Vec::new(),
            workspace_topic: false,
            earlier: Listed {
                engine_sid: SID.into(),
                id: "acp-0".into(),
                title: Some("Before".into()),
                updated_at: 0,
                workspace: Some(json!({"workspacePath": "/w", "workspaceKey": "/w"})),
                cwd: "/w".into(),
                is_here: true,
                is_running: false,
            },
            records: Vec::new(),
            detached: Vec::new(),
            by_hand: Vec::new(),
        }
    }

    pub(super) fn step(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.machine.step(Now { ms: self.now, unix_ms: self.now }, input, &mut effects);
        for effect in effects {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Update(update) | Effect::Replay { update, .. } => self.updates.push(*update),
            Effect::ChildUpdate { session, update } => self.child_updates.push((session, *update)),
            Effect::Call { token, method, params } => self.called(token, method, params),
            Effect::EnsureEngine { token } => {
                self.step(Input::EngineReady(
                    token,
                    Ok(EngineUp { generation: 1, v4: V4Word::Awaited }),
                ));
            }
            Effect::KillEngine => self.killed = true,
            Effect::Answer { id, result } => self.answers.push((id, result)),
            Effect::Respond { req, result } => self.responses.push((req, result)),
            Effect::AskPermission { token, .. } | Effect::AskForm { token, .. } => {
                self.asks.push(token);
            }
            Effect::CancelAsk(token) => self.cancelled_asks.push(token),
            Effect::Timer { token, after } => {
                let after = u64::try_from(after.as_millis()).unwrap();
                self.timers.insert(token, self.now + after);
            }
            Effect::CancelTimer(token) => {
                self.timers.remove(&token);
            }
            Effect::Signal { method, params } => self.signals.push((method, params)),
            Effect::Room { token } => self.rooms.push(token),
            Effect::ReadQuota { req } => self.step(Input::Quota(req, "plans\n".to_owned())),
            Effect::Adopt { made, .. } => self.forks.push(made),
            Effect::FindSessions { token } => {
                let found = Ok(vec![self.earlier.clone()]);
                self.step(Input::SessionsFound(token, found));
            }
            Effect::TakeOver(what) => self.take_over(*what),
            Effect::Record(record) => self.records.push(record),
            Effect::Detach(session) => self.detached.push(session),
            _ => {}
        }
    }

    /// Does what the registry does: another machine has the session, under the same id.
    fn take_over(&mut self, what: TakeOver) {
        let TakeOver { req, session, mcp, waiting } = what;
        let seed = Seed {
            engine_sid: Some(session.engine_sid),
            workspace: session.workspace,
            mcp,
            adopts: true,
            ..self.machine.seed.clone()
        };
        let next = self.machine.next;
        self.machine = Machine { next, ..Machine::new(seed) };
        self.timers.clear();
        self.step(Input::Request(req, Request::Adopted { title: session.title }));
        for (req, request) in waiting {
            self.step(Input::Request(req, request));
        }
    }

    fn called(&mut self, token: Token, method: &'static str, params: Value) {
        let answer = match method {
            "v4/conversation/subscribe" if is_workspace(&params) && !self.workspace_topic => {
                self.calls.push((0, method, params));
                return self.reply(token, Err(rpc(-32602, "unknown topic")));
            }
            _ if self.by_hand.contains(&method) => None,
            "session/create" | "session/resume" => {
                Some(json!({"session": {"sessionId": SID}, "settings": {}}))
            }
            "session/subscribe" => {
                Some(json!({"sessionId": SID, "eventSeq": self.seq, "events": []}))
            }
            "session/usage" => Some(json!({"totalTokens": 0, "inputTokens": 0, "outputTokens": 0})),
            "session/list" => Some(
                json!({"sessions": [{"sessionId": SID, "workspace": {"workspacePath": "/w", "workspaceKey": "/w"}}]}),
            ),
            // The last reply of a turn without text: nothing was stored.
            "session/messages" if params["limit"] == 60 => Some(json!({"messages": []})),
            "v4/command" => Some(json!({"commandId": "c", "status": "accepted"})),
            "session/close" | "session/stop" | "workspace/readPresentation" | "session/read" => {
                Some(json!({}))
            }
            _ => None,
        };
        match answer {
            Some(answer) => {
                self.calls.push((0, method, params));
                self.reply(token, Ok(answer));
            }
            None => self.calls.push((token, method, params)),
        }
    }

    pub(super) fn reply(&mut self, token: Token, reply: Result<Value, EngineError>) {
        let reply = reply.map(|value| RawValue::from_string(value.to_string()).unwrap());
        self.step(Input::Reply(token, reply));
    }

    /// The newest unanswered call of a method.
    pub(super) fn open_call(&self, method: &str) -> Token {
        self.calls.iter().rev().find(|(t, m, _)| *t != 0 && *m == method).expect("no such call").0
    }

    pub(super) fn params(&self, method: &str) -> Value {
        self.calls.iter().rev().find(|(_, m, _)| *m == method).expect("no such call").2.clone()
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.calls.iter().filter(|(_, m, _)| *m == method).count()
    }

    pub(super) fn request(&mut self, request: Request) -> ReqId {
        self.next_req += 1;
        let req = ReqId(self.next_req);
        self.step(Input::Request(req, request));
        req
    }

    pub(super) fn prompt(&mut self, text: &str) -> ReqId {
        self.request(Request::Prompt(vec![acp::ContentBlock::from(text.to_owned())]))
    }

    /// The engine accepts the newest send.
    pub(super) fn accept(&mut self) {
        let token = self.open_call("session/send");
        self.reply(token, Ok(json!({"accepted": true})));
    }

    pub(super) fn input_id(&self) -> String {
        self.params("session/send")["inputId"].as_str().unwrap().to_owned()
    }

    pub(super) fn event(&mut self, turn: &str, body: SessionBody) {
        self.seq += 1;
        let seq = self.seq;
        self.event_at(seq, turn, body);
    }

    pub(super) fn event_at(&mut self, seq: u64, turn: &str, body: SessionBody) {
        self.seq = self.seq.max(seq);
        let event = SessionEvent { session_id: SID.into(), seq, turn_id: Some(turn.into()), body };
        self.step(Input::Engine(EngineEvent::Session(Box::new(event))));
    }

    pub(super) fn start(&mut self, turn: &str) {
        let input_id = Some(self.input_id());
        self.event(
            turn,
            SessionBody::TurnStarted(TurnStarted { input_id, ..TurnStarted::default() }),
        );
    }

    pub(super) fn text(&mut self, turn: &str, text: &str) {
        self.event(turn, text_body(text));
    }

    pub(super) fn complete(&mut self, turn: &str, result: &str) {
        self.event(turn, completed(result));
    }

    /// A prompt that runs under this turn id.
    pub(super) fn running(&mut self, turn: &str) -> ReqId {
        let req = self.prompt("hello");
        self.accept();
        self.start(turn);
        req
    }

    /// Lets time pass; deadlines fire in order.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while let Some((token, at)) = self
            .timers
            .iter()
            .map(|(t, at)| (*t, *at))
            .filter(|(_, at)| *at <= end)
            .min_by_key(|(t, at)| (*at, *t))
        {
            self.timers.remove(&token);
            self.now = self.now.max(at);
            self.step(Input::Timer(token));
        }
        self.now = end;
    }

    pub(super) fn response(&self, req: ReqId) -> Option<&Result<Value, AcpError>> {
        let all: Vec<_> = self.responses.iter().filter(|(r, _)| *r == req).collect();
        assert!(all.len() <= 1, "{req:?} was answered {} times", all.len());
        all.first().map(|(_, result)| result)
    }

    pub(super) fn stop_reason(&self, req: ReqId) -> Option<String> {
        let result = self.response(req)?.as_ref().expect("an error");
        Some(result["stopReason"].as_str().unwrap().to_owned())
    }

    pub(super) fn shown(&self) -> String {
        let text = |u: &acp::SessionUpdate| match u {
            acp::SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
                acp::ContentBlock::Text(text) => Some(text.text.clone()),
                _ => None,
            },
            _ => None,
        };
        self.updates.iter().filter_map(text).collect()
    }

    pub(super) fn permission(&mut self, id: &str, request: &str) {
        let params = json!({"requestId": request, "sessionId": SID, "toolCallId": "call_1", "toolName": "Bash",
            "input": {"command": "ls"}, "options": [
                {"optionId": "yes", "kind": "allow_once", "name": "Allow", "response": {"decision": "allow", "reason": "once"}},
                {"optionId": "no", "kind": "deny", "name": "Deny"}]});
        let request = EngineRequest {
            id: json!(id),
            method: "interaction/requestPermission".into(),
            session_id: Some(SID.into()),
            request_id: Some(request.into()),
            params,
        };
        self.step(Input::Engine(EngineEvent::Request(Box::new(request))));
    }

    pub(super) fn choose(&mut self, token: Token, option: &str) {
        let chosen = acp::SelectedPermissionOutcome::new(option.to_owned());
        let response =
            acp::RequestPermissionResponse::new(acp::RequestPermissionOutcome::Selected(chosen));
        self.step(Input::Answer(token, Ok(ClientAnswer::Permission(response))));
    }

    pub(super) fn die(&mut self) {
        self.step(Input::Engine(EngineEvent::Exited(Box::default())));
    }
}

fn is_workspace(params: &Value) -> bool {
    params["topic"].as_str().is_some_and(|it| it.starts_with("workspace-config/"))
}

pub(super) fn text_body(text: &str) -> SessionBody {
    SessionBody::Streaming(Streaming {
        kind: StreamKind::TextDelta,
        delta: text.into(),
        message_id: Some("m1".into()),
        part_id: None,
        tool_call_id: None,
        tool_name: None,
        input: None,
        error: None,
        joins: Vec::new(),
    })
}

pub(super) fn read_event(event: &Value) -> SessionEvent {
    let raw = serde_json::value::to_raw_value(event).unwrap();
    session_event(&raw).expect("an event")
}

/// Joins the pieces that follow, as the engine's side does with what came together; returns how many.
pub(super) fn join_all(event: &mut SessionEvent, following: &[Value]) -> usize {
    following.iter().take_while(|next| join(event, &read_event(next))).count()
}

/// Joins the next piece of a text to this one; false when it is none.
fn join(event: &mut SessionEvent, next: &SessionEvent) -> bool {
    let (SessionBody::Streaming(held), SessionBody::Streaming(more)) =
        (&mut event.body, &next.body)
    else {
        return false;
    };
    let ids = |it: &Streaming| (it.message_id.clone(), it.part_id.clone(), it.tool_call_id.clone());
    let is_piece = matches!(
        held.kind,
        StreamKind::TextDelta | StreamKind::ReasoningDelta | StreamKind::ToolInputDelta
    );
    let joins = is_piece && held.kind == more.kind && ids(held) == ids(more);
    if joins {
        held.joins.push(held.delta.len());
        held.delta.push_str(&more.delta);
        event.seq = next.seq;
    }
    joins
}

pub(super) fn completed(result: &str) -> SessionBody {
    SessionBody::TurnCompleted(TurnCompleted {
        result_type: Some(result.into()),
        response: Some(json!("")),
        ..TurnCompleted::default()
    })
}

pub(super) fn rpc(code: i64, message: &str) -> EngineError {
    EngineError::Rpc(RpcError::new(code, message))
}

/// A second prompt that the engine put into its queue as `q1`; the turn it waited for has ended.
fn queued_behind_an_ended_turn(b: &mut Bench) -> ReqId {
    b.running_v4();
    let second = b.prompt("also this");
    let id = b.accept_command();
    let queued = SteerQueued {
        pending_input_id: Some("q1".into()),
        delivery: Some("queue".into()),
        intent: Some(json!({"sourceCommandId": id})),
        ..SteerQueued::default()
    };
    b.event("t1", SessionBody::SteerQueued(queued));
    b.complete("t1", "success");
    second
}
