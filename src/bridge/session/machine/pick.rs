//! PURE. `/resume`: an empty thread goes on with a session from before (bridge behaviour 7.1).
//!
//! The thread that asks looks the sessions up, has one chosen and ends; the registry gives its id to
//! whoever has that session (another thread of this client, or a new machine), which tells the
//! history, answers the command and writes the binding down. Until then nothing has changed, so that
//! a refusal, a cancel or a lost client leaves everything as it was.

use agent_client_protocol::Error as AcpError;
use agent_client_protocol::v1::schema as acp;
use serde_json::json;

use super::extensions::{Job, RunningJob};
use super::link::{LinkState, Waiter};
use super::{ClientAnswer, Cont, Effect, Machine, ReqId, Request, TakeOver, Token};
use crate::bridge::session::listing::Listed;
use crate::bridge::translate::Translator;
use crate::bridge::translate::session_pick::{self, Choice};

/// Sessions offered.
const OFFERED: usize = 10;
const ELSEWHERE: &str =
    "Start a new thread and send /resume there, or open one from your client's session list";

/// A choice that is open.
#[derive(Debug)]
pub(crate) struct Picking {
    sessions: Vec<Listed>,
    choices: Vec<Choice>,
    /// As buttons, for a client without forms or one that could not show it.
    by_buttons: bool,
    shown: Option<Token>,
    deadline: Option<Token>,
}

impl Machine {
    /// The command. It needs the engine's list and no session of its own.
    pub(crate) fn resume_command(&mut self, req: ReqId, wanted: Option<String>) {
        let job = Job::Resume { wanted };
        self.job = Some(RunningJob { req, by_command: true, job, healed: false });
        let token = self.token(Cont::SessionsFound);
        self.emit(Effect::FindSessions { token });
    }

    pub(crate) fn on_sessions_found(&mut self, token: Token, found: Result<Vec<Listed>, AcpError>) {
        if self.pending.remove(&token).is_none() {
            return;
        }
        let Some(Job::Resume { wanted }) = self.job.as_ref().map(|job| job.job.clone()) else {
            return;
        };
        let sessions = match found {
            Ok(sessions) => sessions,
            Err(error) => return self.job_done(Err(error)),
        };
        if !self.is_blank {
            return self.job_done(Ok(self.not_here(&sessions)));
        }
        match wanted {
            Some(id) => match self.wanted_session(&id, &sessions) {
                Ok(session) => self.take_over(session),
                Err(text) => self.job_done(Ok(text)),
            },
            None => self.offer(sessions),
        }
    }

    fn can_be_offered(&self, session: &Listed) -> bool {
        session.is_here
            && !session.is_running
            && self.engine_sid() != Some(session.engine_sid.as_str())
    }

    /// The session of this id, or why it cannot be gone on with.
    fn wanted_session(&self, id: &str, sessions: &[Listed]) -> Result<Listed, String> {
        let found = sessions.iter().find(|it| it.id == id || it.engine_sid == id);
        let Some(session) = found else {
            return Err(format!(
                "There is no session `{id}`. Send /resume alone to choose from the sessions of this directory."
            ));
        };
        if !session.is_here {
            return Err(format!(
                "The session `{id}` belongs to {}. Open a thread in that directory and send /resume {id} there.",
                session.cwd
            ));
        }
        if session.is_running {
            return Err(format!(
                "A turn is running in the session `{id}`. Wait for its end or stop it, then send /resume {id} again."
            ));
        }
        if self.engine_sid() == Some(session.engine_sid.as_str()) {
            return Err("This thread is that session already.".to_owned());
        }
        Ok(session.clone())
    }

    /// What a thread with a conversation of its own is told.
    fn not_here(&self, sessions: &[Listed]) -> String {
        let lines: Vec<String> = sessions
            .iter()
            .filter(|it| self.can_be_offered(it))
            .take(OFFERED)
            .map(|it| format!("\n- {} (`{}`)", it.title.as_deref().unwrap_or("Untitled"), it.id))
            .collect();
        let why = "This thread has a conversation of its own, and only an empty one can go on with another session.";
        let end = if lines.is_empty() { "." } else { ":" };
        format!("{why} {ELSEWHERE}{end}{}", lines.concat())
    }

    fn offer(&mut self, sessions: Vec<Listed>) {
        let sessions: Vec<Listed> =
            sessions.into_iter().filter(|it| self.can_be_offered(it)).take(OFFERED).collect();
        if sessions.is_empty() {
            let text = "There is no other session of this directory to go on with.";
            return self.job_done(Ok(text.to_owned()));
        }
        let named = sessions.iter().map(|it| (it.id.as_str(), it.title.as_deref(), it.updated_at));
        let choices = session_pick::choices(named, self.now.unix_ms);
        let deadline = self.seed.ask_timeout.map(|after| self.timer(after, Cont::PickTimeout));
        let by_buttons = !self.seed.traits.elicitation_form;
        self.picking = Some(Picking { sessions, choices, by_buttons, shown: None, deadline });
        self.show_choice();
    }

    fn show_choice(&mut self) {
        let token = self.token(Cont::Pick);
        let session = acp::SessionId::new(self.seed.acp_id.clone());
        let Some(picking) = self.picking.as_mut() else { return };
        picking.shown = Some(token);
        if picking.by_buttons {
            let request = Box::new(session_pick::permission(session, &picking.choices));
            self.update(session_pick::card());
            self.emit(Effect::AskPermission { token, request });
        } else {
            let request = Box::new(session_pick::form(session, &picking.choices));
            self.emit(Effect::AskForm { token, request });
        }
    }

    pub(crate) fn on_picked(&mut self, answer: &Result<ClientAnswer, AcpError>) {
        let Some(picking) = self.picking.as_mut() else { return };
        picking.shown = None;
        let chosen = match answer {
            Ok(ClientAnswer::Form(response)) => {
                session_pick::from_form(Some(&response.action), &picking.choices)
            }
            Ok(ClientAnswer::Permission(response)) => {
                session_pick::from_permission(Some(&response.outcome), &picking.choices)
            }
            // A client that declared forms and cannot show this one gets buttons.
            Err(_) if !picking.by_buttons => {
                picking.by_buttons = true;
                return self.show_choice();
            }
            Err(_) => None,
        };
        self.end_choice(chosen);
    }

    pub(crate) fn pick_timed_out(&mut self) {
        if let Some(picking) = self.picking.as_mut() {
            picking.deadline = None;
        }
        self.end_choice(None);
    }

    fn end_choice(&mut self, chosen: Option<usize>) {
        let Some(session) = self.close_choice(chosen) else {
            let text = "No session was chosen; this thread stays as it is.";
            return self.job_done(Ok(text.to_owned()));
        };
        if self.is_blank {
            self.take_over(session);
        } else {
            // A turn began while the choice was open.
            self.job_done(Ok(self.not_here(&[])));
        }
    }

    /// Takes the choice back, when it is still open.
    pub(crate) fn close_choice(&mut self, chosen: Option<usize>) -> Option<Listed> {
        let mut picking = self.picking.take()?;
        self.cancel_timer(&mut picking.deadline);
        if let Some(token) = picking.shown.take() {
            self.forget(token);
            self.emit(Effect::CancelAsk(token));
        }
        if picking.by_buttons {
            let label = chosen.and_then(|at| picking.choices.get(at)).map(|it| it.label.as_str());
            self.update(session_pick::settled(label));
        }
        chosen.and_then(|at| picking.sessions.get(at)).cloned()
    }

    /// Ends this machine: its id goes to whoever has the session, with all that waits here.
    fn take_over(&mut self, session: Listed) {
        if self.link.state == LinkState::Opening {
            let text = "This thread is still being set up; send /resume again in a moment.";
            return self.job_done(Ok(text.to_owned()));
        }
        let Some(running) = self.job.take() else { return };
        if self.link.state == LinkState::Up {
            self.close_workspace_topic();
        }
        if let Some(own) = self.link.unbind() {
            // Made for a setting or a command, and without a turn: nothing is lost with it.
            self.call("session/close", json!({"sessionId": own}), Cont::Ignore);
            self.emit(Effect::Detach(own));
        }
        let waiting = std::mem::take(&mut self.queue);
        let waiting = waiting.into_iter().map(|it| (it.req, Request::Queued(it.input))).collect();
        let mcp = self.seed.mcp.clone();
        self.ended = true;
        self.emit(Effect::TakeOver(Box::new(TakeOver { req: running.req, session, mcp, waiting })));
        self.emit(Effect::Ended);
    }

    /// This session is gone on with under the id that asks: its history, how it stands, and the
    /// answer to the command.
    pub(crate) fn adopt(&mut self, req: ReqId, title: Option<String>) {
        self.adopting.push((req, title));
        self.with_link(Waiter::Load { req, limit: None });
    }

    /// True when a load is the second half of `/resume`.
    pub(crate) fn is_adopting(&self, req: ReqId) -> bool {
        self.adopting.iter().any(|(it, _)| *it == req)
    }

    fn end_adoption(&mut self, req: ReqId) -> Option<String> {
        let at = self.adopting.iter().position(|(it, _)| *it == req)?;
        self.adopting.swap_remove(at).1
    }

    pub(crate) fn adopted(&mut self, req: ReqId) {
        let listed = self.end_adoption(req);
        self.bind(req, listed.as_deref());
        let name = match self.translator.title_mut().current() {
            Some(title) => format!("“{title}”"),
            None => "an untitled session".to_owned(),
        };
        self.finish_command(req, &format!("This thread goes on with {name}."));
        self.next_prompt();
    }

    /// The id stands for this session from here on, and its client is told how it stands.
    fn bind(&mut self, req: ReqId, listed: Option<&str>) {
        self.is_blank = false;
        self.record_anew(req);
        self.tell_all_settings();
        let title = self.translator.title_mut();
        // A machine that was made for this told the title when the engine named it.
        let is_told = std::mem::take(&mut self.seed.adopts) && title.current().is_some();
        if let Some(listed) = listed.filter(|_| title.current().is_none()) {
            title.adopt(listed, None);
        }
        let title = title.current().map(str::to_owned);
        if let Some(title) = title.filter(|_| !is_told) {
            let update = acp::SessionInfoUpdate::new().title(title);
            self.update(acp::SessionUpdate::SessionInfoUpdate(update));
        }
    }

    /// The session could not be loaded: a machine that was made for it is an empty thread again.
    pub(crate) fn load_failed(&mut self, req: ReqId, error: AcpError) {
        if self.is_adopting(req) {
            self.end_adoption(req);
            if self.seed.adopts {
                self.be_blank_again(req);
            }
            self.respond(req, Err(error));
            return self.next_prompt();
        }
        if !self.was_cancelled(req) {
            self.respond(req, Err(error));
        }
    }

    /// True for the load of a `/resume` that was answered by a cancel.
    pub(crate) fn was_cancelled(&mut self, req: ReqId) -> bool {
        let at = self.unwanted.iter().position(|it| *it == req);
        at.map(|at| self.unwanted.swap_remove(at)).is_some()
    }

    /// A cancel while the session is loaded leaves the thread empty; while its history is told the
    /// thread has it already, and only the command ends.
    pub(crate) fn cancel_adoption(&mut self, req: ReqId) {
        let listed = self.end_adoption(req);
        if self.link.state == LinkState::Up {
            self.bind(req, listed.as_deref());
            self.unwanted.push(req);
        } else if self.seed.adopts {
            self.be_blank_again(req);
        }
        self.respond_with(req, &acp::PromptResponse::new(acp::StopReason::Cancelled));
    }

    pub(crate) fn cancel_adoptions(&mut self) {
        while let Some((req, _)) = self.adopting.last() {
            self.cancel_adoption(*req);
        }
    }

    fn be_blank_again(&mut self, req: ReqId) {
        if let Some(sid) = self.engine_sid().map(str::to_owned) {
            self.emit(Effect::Detach(sid));
        }
        // What comes of an opening that is under way is nobody's any more.
        self.pending.retain(|_, cont| !cont.opens());
        self.link_lost();
        self.link.waiting.retain(|it| !matches!(it, Waiter::Load { req: it, .. } if *it == req));
        self.link.unbind();
        self.v4.main = None;
        self.translator =
            Translator::new(self.seed.traits.clone()).in_directory(self.seed.cwd.to_string_lossy());
        self.usage = super::usage::UsageBook::new(true);
        (self.seed.engine_sid, self.seed.workspace) = (None, None);
        (self.is_blank, self.names_itself, self.seed.adopts) = (true, true, false);
        self.record_anew(req);
        self.reopen_if_wanted();
    }
}
