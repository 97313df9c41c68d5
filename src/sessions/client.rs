//! The ACP client of `sessions`: a few requests, and the updates of a loaded session. Answers
//! nothing that would let anything run.

use std::path::Path;

use agent_client_protocol::v1::{ConnectionTo, Dispatch, Responder};
use agent_client_protocol::{
    Agent, Client, Error as AcpError, Handled, UntypedMessage, on_receive_dispatch,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::agents::StartedAgent;
use crate::error::{AppError, ErrorKind};

/// Pages of a list that are read.
const MAX_PAGES: usize = 200;
/// Updates that may wait; the agent is held back above this.
const INBOX: usize = 256;

/// A session, as the agent lists it.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) updated_at: String,
    pub(super) cwd: String,
}

impl Session {
    fn of(value: &Value) -> Self {
        let text =
            |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            id: text("sessionId"),
            title: text("title"),
            updated_at: text("updatedAt"),
            cwd: text("cwd"),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"sessionId": self.id, "title": self.title, "updatedAt": self.updated_at, "cwd": self.cwd})
    }
}

/// Lists sessions, of one directory or of all, newest first.
pub(super) async fn list(
    agent: StartedAgent,
    cwd: Option<&Path>,
) -> Result<Vec<Session>, AppError> {
    talk(agent, async |talk: &mut Talk| {
        let mut sessions = Vec::new();
        let mut cursor = Value::Null;
        for _ in 0..MAX_PAGES {
            let mut params = serde_json::Map::new();
            params.extend(cwd.map(|cwd| ("cwd".to_owned(), json!(cwd))));
            if !cursor.is_null() {
                params.insert("cursor".to_owned(), cursor);
            }
            let page = talk.request("session/list", Value::Object(params)).await?;
            let listed = page.get("sessions").and_then(Value::as_array);
            sessions.extend(listed.into_iter().flatten().map(Session::of));
            cursor = page.get("nextCursor").cloned().unwrap_or_default();
            if cursor.is_null() {
                break;
            }
        }
        sessions.sort_by(|a, b| b.updated_at.cmp(&a.updated_at));
        Ok(sessions)
    })
    .await
}

/// Loads a session and returns its updates, oldest first.
pub(super) async fn load(
    agent: StartedAgent,
    id: &str,
    cwd: &Path,
) -> Result<Vec<Value>, AppError> {
    talk(agent, async |talk: &mut Talk| {
        let params = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
        let _answer = talk.request("session/load", params).await?;
        talk.take_waiting();
        Ok(std::mem::take(&mut talk.updates))
    })
    .await
}

/// Closes a session in the engine; its history stays.
pub(super) async fn close(agent: StartedAgent, id: &str, cwd: &Path) -> Result<(), AppError> {
    talk(agent, async |talk: &mut Talk| {
        let params = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
        let _answer = talk.request("session/resume", params).await?;
        let _answer = talk.request("session/close", json!({"sessionId": id})).await?;
        Ok(())
    })
    .await
}

struct Talk {
    connection: ConnectionTo<Agent>,
    inbox: mpsc::Receiver<UntypedMessage>,
    updates: Vec<Value>,
    taken: crate::agents::TakenBy,
}

impl Talk {
    async fn request(&mut self, method: &str, params: Value) -> Result<Value, AppError> {
        let message = UntypedMessage::new(method, params).map_err(|err| failure(&err))?;
        let mut answer = std::pin::pin!(self.connection.send_request(message).block_task());
        loop {
            tokio::select! {
                biased;
                Some(note) = self.inbox.recv() => {
                    take(&mut self.updates, note);
                    self.taken.tell(1);
                }
                answer = answer.as_mut() => return answer.map_err(|err| failure(&err)),
            }
        }
    }

    /// What was sent before an answer has been received before it.
    fn take_waiting(&mut self) {
        while let Ok(note) = self.inbox.try_recv() {
            take(&mut self.updates, note);
        }
    }
}

fn take(updates: &mut Vec<Value>, note: UntypedMessage) {
    let (method, mut params) = note.into_parts();
    if method == "session/update"
        && let Some(update) = params.get_mut("update")
    {
        updates.push(update.take());
    }
}

async fn talk<T>(
    agent: StartedAgent,
    main: impl AsyncFnOnce(&mut Talk) -> Result<T, AppError>,
) -> Result<T, AppError> {
    let (sender, inbox) = mpsc::channel(INBOX);
    let StartedAgent { agent, taken } = agent;
    let mut outcome = None;
    let connected = Client
        .v1()
        .name("zcode-acp sessions")
        .on_receive_dispatch(
            async move |message: Dispatch<UntypedMessage, UntypedMessage>, _cx| match message {
                Dispatch::Notification(note) => {
                    sender.send(note).await.ok();
                    Ok(Handled::Yes)
                }
                Dispatch::Request(request, responder) => {
                    refuse(&request, responder);
                    Ok(Handled::Yes)
                }
                message @ Dispatch::Response(..) => Ok(Handled::No { message, retry: false }),
            },
            on_receive_dispatch!(),
        )
        .connect_with(agent, async |connection: ConnectionTo<Agent>| {
            let mut talk = Talk { connection, inbox, updates: Vec::new(), taken };
            let hello = json!({
                "protocolVersion": 1,
                "clientCapabilities": {},
                "clientInfo": {"name": "zcode-acp sessions", "version": env!("CARGO_PKG_VERSION")},
            });
            outcome = Some(match talk.request("initialize", hello).await {
                Ok(_) => main(&mut talk).await,
                Err(err) => Err(err),
            });
            Ok(())
        })
        .await;
    match (outcome, connected) {
        (Some(outcome), _) => outcome,
        (None, Err(err)) => Err(failure(&err)),
        (None, Ok(())) => Err(AppError::failed("the agent closed the connection")),
    }
}

/// A session that goes on elsewhere may ask; nobody is here to answer.
fn refuse(request: &UntypedMessage, responder: Responder<Value>) {
    let answered = match request.method() {
        "session/request_permission" => {
            responder.respond(json!({"outcome": {"outcome": "cancelled"}}))
        }
        "elicitation/create" => responder.respond(json!({"action": "cancel"})),
        _ => responder.respond_with_error(AcpError::method_not_found()),
    };
    if let Err(err) = answered {
        tracing::debug!(%err, "the agent no longer waits for an answer");
    }
}

fn failure(err: &AcpError) -> AppError {
    let data = err.data.clone().unwrap_or_default();
    let details = data.get("details").or(Some(&data)).and_then(Value::as_str);
    let kind = match (i32::from(err.code), data.get("kind").and_then(Value::as_str)) {
        (-32000, _) => ErrorKind::SignInNeeded,
        (_, Some("engine_not_found" | "engine_not_started")) => ErrorKind::NoEngine,
        _ => ErrorKind::Failed,
    };
    let text = match details {
        Some(details) if details != err.message => format!("{}: {details}", err.message),
        _ => err.message.clone(),
    };
    let error = AppError::new(kind, text);
    match kind {
        ErrorKind::SignInNeeded => error.hint("see how with: zcode-acp login"),
        ErrorKind::NoEngine => error.hint("find out more with: zcode-acp doctor"),
        _ => error,
    }
}
