//! The registry's part of ids that move: a conversation under one more id, a thread that goes on with
//! another session (`/resume`), and ids that the client closed. Called by the registry.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::Error as AcpError;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::actor::{Asked, ToSession};
use super::failure;
use super::listing::{self, Directory, Listed};
use super::machine::{Request, session_not_found};
use super::registry::{Entry, OpenRequest, Registry, ToRegistry, answer, reject, unix_ms};

/// A thread's ids, and the session that they stand for from now on.
pub(crate) struct Succession {
    /// The ids.
    pub(crate) ids: Vec<acp::SessionId>,
    /// The session.
    pub(crate) session: Listed,
    /// The thread's servers, for a session that nobody has open.
    pub(crate) mcp: Vec<Value>,
    /// What is to be answered there; the command `/resume` first.
    pub(crate) requests: Vec<Asked>,
    /// Where the thread's later requests go.
    pub(crate) reply: oneshot::Sender<mpsc::Sender<ToSession>>,
}

/// Answers for a closed session: closing it again changes nothing.
pub(super) fn refuse_closed(id: &str, request: &Request, responder: Responder<Value>) {
    if matches!(request, Request::Close) {
        return answer(responder, &acp::CloseSessionResponse::new());
    }
    reject(responder, session_not_found(id));
}

impl Registry {
    /// The same conversation under one more id.
    pub(super) fn share(&mut self, known: &str, id: &str) {
        let Some(entry) = self.sessions.get(known) else { return };
        let name = acp::SessionId::new(Arc::<str>::from(id));
        super::registry::tell(&entry.mailbox, ToSession::AlsoKnownAs(name));
        let copy = Entry {
            mailbox: entry.mailbox.clone(),
            engine_sid: entry.engine_sid.clone(),
            mcp: entry.mcp.clone(),
            cwd: entry.cwd.clone(),
        };
        self.sessions.insert(id.to_owned(), copy);
    }

    /// The id of an open session that is this session of the engine's.
    pub(super) fn open_as(&self, engine_sid: &str) -> Option<String> {
        let mut open = self.sessions.iter().filter(|(_, it)| !it.mailbox.is_closed());
        open.find(|(_, it)| it.engine_sid.as_deref() == Some(engine_sid)).map(|(id, _)| id.clone())
    }

    /// Looks up the user's sessions for a thread in this directory.
    pub(super) fn find_sessions(
        &mut self,
        cwd: PathBuf,
        reply: oneshot::Sender<Result<Vec<Listed>, AcpError>>,
    ) {
        let ids = self.ids_of_sessions();
        let (to_us, engine) = oneshot::channel();
        self.with_engine(&cwd, to_us);
        tokio::spawn(async move {
            let listed =
                match engine.await.unwrap_or(Err(crate::bridge::engine::EngineError::Closed)) {
                    Ok(engine) => engine.request_value("session/list", json!({})).await,
                    Err(error) => Err(error),
                };
            let found = match listed {
                Ok(answer) => {
                    let here = Directory::new(&cwd);
                    let all = answer.get("sessions").and_then(Value::as_array);
                    Ok(listing::listed(all.map_or(&[], Vec::as_slice), &ids, |it| here.is(it)))
                }
                Err(error) => Err(failure::to_acp(&error)),
            };
            // A thread that has ended meanwhile needs no list.
            reply.send(found).ok();
        });
    }

    /// Gives a thread's ids to whoever has the session, or to a new machine for it.
    pub(super) fn succeed(&mut self, succession: Succession) {
        let Succession { ids, session, mcp, requests, reply } = succession;
        let sid = session.engine_sid;
        for id in &ids {
            let id: &str = &id.0;
            let open = self.open_as(&sid).filter(|other| other != id);
            let Some(cwd) = self.sessions.remove(id).map(|entry| entry.cwd) else { continue };
            if let Some(other) = open {
                self.share(&other, id);
                continue;
            }
            let mut seed = self.seed(id, cwd);
            let choice = self.aliases.choice_of(&sid, unix_ms()).unwrap_or_default();
            seed.settings.remember(choice.model, choice.thought);
            seed.engine_sid = Some(sid.clone());
            seed.workspace.clone_from(&session.workspace);
            seed.mcp.clone_from(&mcp);
            seed.adopts = true;
            self.start_session(seed);
        }
        for Asked { id, request, responder } in requests {
            self.hand_to_session(&id.0, request, responder);
        }
        if let Some(entry) = ids.first().and_then(|id| self.sessions.get(&*id.0)) {
            reply.send(entry.mailbox.clone()).ok();
        }
    }

    /// True for a request that must not bring a session back which the client has closed: that
    /// takes `session/load`, `session/resume` or, for a copy of it, `session/fork`.
    pub(super) fn is_refused(&self, id: &str, request: &Request) -> bool {
        self.closed.contains_key(id)
            && !matches!(request, Request::Open { .. } | Request::Fork { .. })
    }

    /// The client closes this id.
    pub(super) fn note_closed(&mut self, id: &str) {
        let Some(entry) = self.sessions.get(id) else { return };
        self.closed.insert(id.to_owned(), entry.mailbox.downgrade());
        let shared = self
            .sessions
            .iter()
            .any(|(other, it)| other != id && it.mailbox.same_channel(&entry.mailbox));
        if shared {
            // The conversation goes on under its other ids.
            self.sessions.remove(id);
        }
    }

    /// A closed session is opened again. While it still ends, the request waits for that.
    pub(super) fn reopens(
        &mut self,
        request: OpenRequest,
        responder: Responder<Value>,
    ) -> Option<(OpenRequest, Responder<Value>)> {
        let closed = self.closed.get(&request.id).and_then(mpsc::WeakSender::upgrade);
        let is_there = |it: &mpsc::Sender<ToSession>| {
            self.sessions.get(&request.id).is_some_and(|entry| entry.mailbox.same_channel(it))
        };
        let Some(ending) = closed.filter(|it| !it.is_closed() && is_there(it)) else {
            self.closed.remove(&request.id);
            return Some((request, responder));
        };
        let itself = self.itself.clone();
        tokio::spawn(async move {
            ending.closed().await;
            itself.send(ToRegistry::Open(request, responder)).await.ok();
        });
        None
    }
}
