//! One life of an agent after the other: connect, `initialize`, carry out orders, until it ends.
//!
//! Orders are carried out in order and none waits for an answer inline, so a stop is on its way at
//! once however much the agent sends. Answers come back through the same channel as updates, after
//! every update that was sent before them.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, UntypedMessage};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::asks::Asks;
use super::attach::{self, Takes};
use super::files::Files;
use super::relay::{Flow, OnWay, Relay};
use super::roots::Roots;
use super::terminals::Terminals;
use super::wire::{self, AnyRequest, AnyUpdate};
use super::{ClientOptions, Order, Outbox};
use crate::tui::agent_source::{AgentSource, Said};
use crate::tui::model::mention::Attachment;
use crate::tui::msg::{AgentCmd, AgentMsg, Failure, Opening, QueueChange};

/// How long an agent may take to answer `initialize`.
const INITIALIZE_LIMIT: Duration = Duration::from_mins(1);
/// Requests of the agent that wait to be looked at.
const INCOMING: usize = 64;

type Incoming = (AnyRequest, Responder<Value>);

/// How a life ended.
enum End {
    /// The loop is gone.
    Quit,
    /// The agent is.
    Gone(Failure),
    /// It is to be started again.
    Restart,
    /// Another is to take its place.
    Replace(AgentSource),
}

/// Serves agents until the loop drops its end.
pub(super) async fn serve(
    mut source: AgentSource,
    options: ClientOptions,
    mut orders: mpsc::Receiver<Order>,
    to_loop: Outbox,
) {
    loop {
        match life(&mut source, &options, &mut orders, &to_loop).await {
            End::Quit => return,
            End::Restart => {}
            End::Replace(other) => source = other,
            End::Gone(failure) => {
                if to_loop.send(AgentMsg::Gone(failure)).await.is_err() {
                    return;
                }
                // Nothing but a new start makes sense now; other orders have nobody to go to.
                loop {
                    match orders.recv().await {
                        None => return,
                        Some(Order::Do(AgentCmd::Restart)) => break,
                        Some(Order::Replace(other)) => {
                            source = other;
                            break;
                        }
                        Some(Order::Do(_)) => {}
                    }
                }
            }
        }
    }
}

async fn life(
    source: &mut AgentSource,
    options: &ClientOptions,
    orders: &mut mpsc::Receiver<Order>,
    to_loop: &Outbox,
) -> End {
    let flow = Arc::new(Flow::default());
    let relay = Relay { started: source.start(), flow: flow.clone() };
    let (incoming_tx, incoming) = mpsc::channel::<Incoming>(INCOMING);
    let said = source.said();
    let logs_in_here = source.command().is_some();
    let updates = to_loop.clone();
    let outcome = Client
        .v1()
        .name("zcode-acp-tui")
        .on_receive_notification(
            async move |update: AnyUpdate, _cx| {
                let mut way = Some(OnWay::new(&flow, update.weight));
                let mut messages = update.into_messages().peekable();
                while let Some(message) = messages.next() {
                    let way = if messages.peek().is_none() { way.take() } else { None };
                    if updates.stream(message, way).await.is_err() {
                        break;
                    }
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: AnyRequest, responder: Responder<Value>, _cx| {
                // A dropped responder answers with an error by itself.
                let _main_task_is_over = incoming_tx.send((request, responder)).await;
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(relay, async |cx: ConnectionTo<Agent>| {
            let mut conversation = Conversation {
                asks: Asks::default(),
                takes: Takes::default(),
                roots: Roots::new(&options.cwd),
                files: Files::new(Roots::new(&options.cwd)),
                terminals: Terminals::new(
                    Roots::new(&options.cwd),
                    options.env.clone(),
                    to_loop.clone(),
                ),
                logs_in_here,
                cx,
                options,
                to_loop,
            };
            Ok(conversation.run(orders, incoming, &said).await)
        })
        .await;
    match outcome {
        Ok(end) => end,
        Err(error) => End::Gone(failure(&error)),
    }
}

/// What one connection needs to answer and to ask.
struct Conversation<'a> {
    cx: ConnectionTo<Agent>,
    options: &'a ClientOptions,
    to_loop: &'a Outbox,
    asks: Asks,
    takes: Takes,
    roots: Roots,
    files: Files,
    terminals: Terminals,
    /// The agent's own login can be run on the terminal.
    logs_in_here: bool,
}

impl Conversation<'_> {
    async fn run(
        &mut self,
        orders: &mut mpsc::Receiver<Order>,
        mut incoming: mpsc::Receiver<Incoming>,
        said: &Said,
    ) -> End {
        let cx = self.cx.clone();
        let initialize = self.request("initialize", &wire::initialize_params(self.logs_in_here));
        let mut initialize = std::pin::pin!(tokio::time::timeout(INITIALIZE_LIMIT, initialize));
        let mut initialized = false;
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    None => return End::Quit,
                    Some(Order::Replace(source)) => return End::Replace(source),
                    Some(Order::Do(AgentCmd::Restart)) => return End::Restart,
                    Some(Order::Do(command)) => self.carry_out(command),
                },
                answer = &mut initialize, if !initialized => {
                    initialized = true;
                    let message = match answer {
                        Ok(Ok(answer)) => {
                            self.takes = Takes::of(&answer);
                            AgentMsg::Initialized(answer)
                        }
                        // An agent that ended says so itself, with its last words.
                        Ok(Err(_)) if cx.is_incoming_closed() => continue,
                        Ok(Err(failure)) => return End::Gone(failure),
                        Err(_elapsed) => return End::Gone(Failure {
                            message: format!("no answer to initialize within {} s", INITIALIZE_LIMIT.as_secs()),
                            detail: said(),
                            ..Failure::default()
                        }),
                    };
                    if self.to_loop.send(message).await.is_err() {
                        return End::Quit;
                    }
                },
                Some((request, responder)) = incoming.recv() => self.answer(request, responder).await,
                Some(ask) = self.asks.next_withdrawn() => {
                    if self.to_loop.send(AgentMsg::AskWithdrawn { ask }).await.is_err() {
                        return End::Quit;
                    }
                }
                // The transport's own error, which knows more, ends the whole in a moment.
                () = cx.incoming_closed() => {
                    tokio::time::sleep(Duration::from_secs(3)).await;
                    return End::Gone(Failure { message: "the agent closed the connection".into(), ..Failure::default() });
                }
            }
        }
    }

    /// Sends a request now; the returned future is its answer.
    fn request(
        &self,
        method: &str,
        params: &Value,
    ) -> impl Future<Output = Result<Value, Failure>> + Send + 'static {
        let sent =
            UntypedMessage::new(method, params).map(|m| self.cx.send_request(m).block_task());
        async move { sent.map_err(|e| failure(&e))?.await.map_err(|e| failure(&e)) }
    }

    /// Sends a request and, when its answer has come, tells the loop what `make` makes of it.
    fn ask_agent(
        &self,
        method: &str,
        params: &Value,
        make: impl FnOnce(Result<Value, Failure>) -> AgentMsg + Send + 'static,
    ) {
        let answer = self.request(method, params);
        let to_loop = self.to_loop.clone();
        tokio::spawn(async move {
            let result = answer.await;
            // A connection that ended is told once, with more to it.
            if matches!(&result, Err(f) if f.data.get("reason").and_then(Value::as_str) == Some("incoming_transport_closed"))
            {
                return;
            }
            let _loop_is_gone = to_loop.send(make(result)).await;
        });
    }

    fn carry_out(&mut self, command: AgentCmd) {
        match command {
            AgentCmd::Open { opening, how } => self.open(opening, how),
            AgentCmd::Prompt { session_id, text, files } => {
                let prompt = self.blocks(&text, &files);
                let params = json!({"sessionId": session_id, "prompt": prompt});
                self.ask_agent("session/prompt", &params, |result| AgentMsg::TurnEnded {
                    session_id,
                    result,
                });
            }
            AgentCmd::Steer { session_id, text, files } => {
                let params = json!({"sessionId": session_id, "prompt": self.blocks(&text, &files),
                    "_meta": {"steering": {"idleBehavior": "promptRequired"}}});
                self.ask_agent("_session/steering", &params, |result| AgentMsg::Steered {
                    text,
                    result: result.map(|r| {
                        r.get("outcome").and_then(Value::as_str).unwrap_or_default().to_owned()
                    }),
                });
            }
            AgentCmd::Queue { session_id, change } => {
                let (method, params) = queue_request(&session_id, &change);
                self.ask_agent(method, &params, |result| AgentMsg::QueueChanged {
                    change,
                    result: result.map(drop),
                });
            }
            AgentCmd::Cancel { session_id } => {
                let sent = UntypedMessage::new("session/cancel", json!({"sessionId": session_id}))
                    .and_then(|m| self.cx.send_notification(m));
                if let Err(error) = sent {
                    tracing::warn!(%error, "the stop could not be sent");
                }
            }
            AgentCmd::AnswerPermission { ask, option_id } => {
                self.asks.answer_permission(ask, option_id);
            }
            AgentCmd::AnswerForm { ask, answer } => self.asks.answer_form(ask, answer),
            AgentCmd::SetOption { session_id, id, value } => {
                let mut params = json!({"sessionId": session_id, "configId": id, "value": value});
                if value.is_boolean()
                    && let Some(object) = params.as_object_mut()
                {
                    object.insert("type".to_owned(), "boolean".into());
                }
                self.ask_agent("session/set_config_option", &params, |result| {
                    AgentMsg::OptionSet { what: id, result }
                });
            }
            AgentCmd::SetMode { session_id, mode } => {
                let params = json!({"sessionId": session_id, "modeId": mode});
                self.ask_agent("session/set_mode", &params, |result| AgentMsg::ModeSet {
                    mode,
                    result: result.map(drop),
                });
            }
            AgentCmd::ListSessions { cursor } => {
                let mut params = json!({"cwd": self.options.cwd});
                if let (Some(cursor), Some(object)) = (cursor, params.as_object_mut()) {
                    object.insert("cursor".to_owned(), cursor.into());
                }
                self.ask_agent("session/list", &params, AgentMsg::Sessions);
            }
            AgentCmd::Authenticate { method } => {
                let params = json!({"methodId": method});
                self.ask_agent("authenticate", &params, |r| AgentMsg::LoggedIn(r.map(drop)));
            }
            // Ends the life; dealt with where the orders are read.
            AgentCmd::Restart => {}
        }
    }

    /// A prompt's blocks. Its files are read here and now, so that nothing sent later overtakes it;
    /// they are small, and keys and frames have another thread.
    fn blocks(&self, text: &str, files: &[Attachment]) -> Vec<Value> {
        let (blocks, without) = attach::blocks(text, files, &self.roots, self.takes);
        if !without.is_empty() {
            let to_loop = self.to_loop.clone();
            tokio::spawn(async move {
                let _loop_is_gone = to_loop.send(AgentMsg::NotAttached(without)).await;
            });
        }
        blocks
    }

    fn open(&self, opening: u64, how: Opening) {
        let mut params = json!({"cwd": self.options.cwd, "mcpServers": []});
        let (method, id) = match &how {
            Opening::New => ("session/new", None),
            Opening::Load(id) => ("session/load", Some(id.clone())),
            Opening::Resume(id) => ("session/resume", Some(id.clone())),
        };
        if let (Some(id), Some(object)) = (&id, params.as_object_mut()) {
            object.insert("sessionId".to_owned(), id.clone().into());
        }
        self.ask_agent(method, &params, move |result| match result {
            Ok(answer) => {
                let named = answer.get("sessionId").and_then(Value::as_str).map(str::to_owned);
                match id.or(named) {
                    Some(session_id) => AgentMsg::Opened { opening, session_id, answer, how },
                    None => AgentMsg::OpenFailed {
                        opening,
                        how,
                        failure: Failure {
                            code: -32603,
                            message: "the agent gave the session no id".to_owned(),
                            ..Failure::default()
                        },
                    },
                }
            }
            Err(failure) => AgentMsg::OpenFailed { opening, how, failure },
        });
    }

    /// Looks at a request of the agent. Each gets exactly one answer, here or later.
    async fn answer(&mut self, request: AnyRequest, responder: Responder<Value>) {
        let AnyRequest { method, params } = request;
        let message = match method.as_str() {
            "session/request_permission" => {
                for message in
                    wire::asked_tool_call(&params).into_iter().flat_map(AnyUpdate::into_messages)
                {
                    let _loop_is_gone = self.to_loop.send(message).await;
                }
                AgentMsg::PermissionAsked { ask: self.asks.keep(responder, true), params }
            }
            "elicitation/create" if params.get("mode").and_then(Value::as_str) == Some("form") => {
                AgentMsg::FormAsked { ask: self.asks.keep(responder, false), params }
            }
            "elicitation/create" => {
                let error = Error::invalid_params().data("only form elicitation is supported");
                respond(responder, Err(error));
                return;
            }
            "fs/read_text_file" | "fs/write_text_file" => {
                self.files.handle(&method, params, responder);
                return;
            }
            name if name.starts_with("terminal/") => {
                self.terminals.handle(&method, &params, responder);
                return;
            }
            _ => {
                respond(responder, Err(Error::method_not_found().data(method)));
                return;
            }
        };
        let _loop_is_gone = self.to_loop.send(message).await;
    }
}

fn queue_request(session_id: &str, change: &QueueChange) -> (&'static str, Value) {
    match change {
        QueueChange::Edit { id, text } => {
            ("_zcode/queue/edit", json!({"sessionId": session_id, "itemId": id, "text": text}))
        }
        QueueChange::Delete { id } => {
            ("_zcode/queue/delete", json!({"sessionId": session_id, "itemId": id}))
        }
        QueueChange::SendNow { id } => {
            ("_zcode/queue/send_now", json!({"sessionId": session_id, "itemId": id}))
        }
        QueueChange::AutoDrain(on) => {
            ("_zcode/queue/auto_drain", json!({"sessionId": session_id, "enabled": on}))
        }
    }
}

/// Answers a request; the connection may be gone, then nobody waits.
pub(super) fn respond(responder: Responder<Value>, result: Result<Value, Error>) {
    if let Err(error) = responder.respond_with_result(result) {
        tracing::debug!(%error, "an answer could not be sent");
    }
}

/// Reads an error of the SDK or the agent.
pub(super) fn failure(error: &Error) -> Failure {
    let data = error.data.clone().unwrap_or_default();
    let mut detail = Vec::new();
    match &data {
        Value::String(text) => detail.extend(text.lines().map(str::to_owned)),
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::Array(lines) => {
                        detail.extend(lines.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    // What the message says already is not said again.
                    Value::String(text) if error.message.contains(text.trim()) => {}
                    Value::String(text) => detail.push(format!("{key}: {text}")),
                    Value::Null => {}
                    other => detail.push(format!("{key}: {other}")),
                }
            }
        }
        _ => {}
    }
    Failure { code: i64::from(i32::from(error.code)), message: error.message.clone(), detail, data }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_the_message_of_an_error_says_is_not_said_again_below_it() {
        let data = json!({"details": "the engine ended (exit status: 9)", "kind": "engine_exited"});
        let error = Error::new(-32603, "the engine ended (exit status: 9)").data(data);
        assert_eq!(failure(&error).detail, ["kind: engine_exited"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_never_answers_initialize_is_told_with_what_it_says() {
        let silent = || {
            Agent.v1().on_receive_request(
                async move |_request: AnyRequest, responder: Responder<Value>, _cx| {
                    std::future::pending::<()>().await;
                    responder.respond(Value::Null)
                },
                agent_client_protocol::on_receive_request!(),
            )
        };
        let said = Arc::new(|| vec!["waiting for the licence".to_owned()]);
        let source = AgentSource::new(silent).quoted_by(said);
        let (_orders, orders_rx) = mpsc::channel(1);
        let (to_loop, mut messages) = mpsc::channel(16);
        let options = ClientOptions { cwd: "/".into(), env: Vec::new() };
        let outbox = Outbox { messages: to_loop, hurry: Arc::default() };
        let serving = tokio::spawn(serve(source, options, orders_rx, outbox));
        let told = tokio::time::timeout(INITIALIZE_LIMIT * 2, messages.recv()).await;
        let told = told.map(|parcel| parcel.map(|parcel| parcel.message));
        let Ok(Some(AgentMsg::Gone(failure))) = told else { panic!("{told:?}") };
        assert!(failure.message.contains("no answer to initialize"), "{failure:?}");
        assert_eq!(failure.detail, ["waiting for the licence"]);
        serving.abort();
    }
}
