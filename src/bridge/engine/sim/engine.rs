//! PURE (but for the store). The engine: lines in, lines out, and a clock that is told to it. Serves
//! requests one at a time and in order, lets stops overtake, and plays what is due.

use super::interactions::{Ask, Asker, Interactions, Settled};
use super::options::{Fault, Options, Startup};
use super::schema;
use super::script::Library;
use super::session::Session;
use super::store::Store;
use super::wire::{Reply, RpcError, Wire};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// How long an idle session stays loaded.
const IDLE_MS: u64 = 10 * 60 * 1_000;
/// How many sessions stay loaded.
const RESIDENT: usize = 256;
/// How long after the end of input the engine still works.
const DRAIN_MS: u64 = 100;
/// How long preferences are waited for.
const PREFERENCES_MS: u64 = 15_000;

/// A request that waits or is being served.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
}

impl Request {
    /// A string among the params; empty when absent.
    pub(super) fn str(&self, key: &str) -> &str {
        self.params.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// What the request at the head of the queue waits for.
#[derive(Debug)]
enum Serving {
    /// Its slowness.
    Until(Request, u64),
    /// The host's preferences.
    Preferences(Request, String),
}

/// The engine.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) wire: Wire,
    pub(super) store: Store,
    pub(super) library: Library,
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) interactions: Interactions,
    /// Session ids whose `interaction/requestProviderRuntimeHeaders` was refused, by request.
    pub(super) commands: HashMap<String, Value>,
    pub(super) saturated: HashSet<String>,
    pub(super) exit: Option<i32>,
    /// Nothing is done any more, whatever comes.
    pub(super) hung: bool,
    queue: VecDeque<Request>,
    serving: Option<Serving>,
    eof_at: Option<u64>,
    startup: VecDeque<(u64, Value)>,
}

impl Engine {
    /// Opens the store and reads the scripts.
    pub(super) fn new(options: Options, epoch_ms: u64) -> Result<Self, String> {
        let store = Store::open(options.store.as_deref())
            .map_err(|e| format!("cannot open the session store: {e}"))?;
        let library = Library::new(&options.scripts)?;
        let startup = startup(&options);
        Ok(Self {
            wire: Wire::new(options, epoch_ms),
            store,
            library,
            sessions: BTreeMap::new(),
            interactions: Interactions::default(),
            commands: HashMap::new(),
            saturated: HashSet::new(),
            exit: None,
            hung: false,
            queue: VecDeque::new(),
            serving: None,
            eof_at: None,
            startup,
        })
    }

    /// Takes in a line.
    pub(super) fn line(&mut self, line: &[u8], now: u64) {
        self.wire.now = now;
        if self.hung || line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(Value::Object(map)) => self.message(map),
            Ok(_) => self.invalid("expected an object"),
            Err(e) => {
                let error = RpcError::new(-32700, format!("Parse error: {e}"));
                self.wire.reply(&Value::from("parse-error"), Err(error));
            }
        }
        self.serve();
    }

    /// The host closed its end.
    pub(super) fn end_of_input(&mut self, now: u64) {
        self.wire.now = now;
        if !self.wire.options.has_fault(&Fault::IgnoreEof) {
            self.eof_at.get_or_insert(now + DRAIN_MS);
        }
    }

    /// When something is due, in ms since the start.
    pub(super) fn due(&self) -> Option<u64> {
        if self.hung {
            return None;
        }
        let serving = match &self.serving {
            Some(Serving::Until(_, at)) => Some(*at),
            _ => None,
        };
        let sessions = self.sessions.values().filter_map(|s| s.due(&self.wire)).min();
        let startup = self.startup.front().map(|(at, _)| *at);
        [serving, sessions, startup, self.eof_at, self.interactions.due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what is due, at most one action of each script.
    pub(super) fn tick(&mut self, now: u64) {
        self.wire.now = now;
        while let Some((_, state)) = self.startup.pop_front_if(|(at, _)| *at <= now) {
            self.wire.notify("startup/storageState", &state);
        }
        for settled in self.interactions.tick(&mut self.wire) {
            self.settled(settled);
        }
        let ids: Vec<String> = self
            .sessions
            .iter()
            .filter(|(_, s)| s.due(&self.wire).is_some_and(|at| at <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in ids {
            self.tick_session(&id);
        }
        if self.hung {
            return;
        }
        self.serve();
        if self.eof_at.is_some_and(|at| at <= now) {
            self.exit.get_or_insert(0);
        }
    }

    fn invalid(&mut self, why: &str) {
        let error = RpcError::new(-32600, format!("Invalid message — {why}"));
        self.wire.reply(&Value::from("invalid-message"), Err(error));
    }

    /// Sorts a message by the keys it has; unknown ones refuse it.
    fn message(&mut self, mut map: Map<String, Value>) {
        let allowed: &[&str] = if map.contains_key("method") {
            &["id", "method", "params", "trace"]
        } else if map.contains_key("error") {
            &["id", "error"]
        } else {
            &["id", "result"]
        };
        if let Some(key) = map.keys().find(|k| !allowed.contains(&k.as_str())) {
            let why = format!("{key}: Unrecognized key");
            return self.invalid(&why);
        }
        let id = map.remove("id");
        if id.as_ref().is_some_and(|id| !(id.is_string() || id.is_i64() || id.is_u64())) {
            return self.invalid("id: expected string or integer");
        }
        match (map.remove("method"), id) {
            (Some(Value::String(method)), id) => {
                let params = map.remove("params").unwrap_or_else(|| json!({}));
                if !params.is_object() {
                    return self.invalid("params: expected object");
                }
                match id {
                    Some(id) => self.request(Request { id, method, params }),
                    None => self.notification(method, params),
                }
            }
            (Some(_), _) => self.invalid("method: expected string"),
            (None, Some(id)) => self.response(&id, map),
            (None, None) => self.invalid("id: expected string or integer"),
        }
    }

    fn request(&mut self, request: Request) {
        let cold = self
            .wire
            .options
            .fault(|f| if let Fault::ColdStart(ms) = f { Some(*ms) } else { None });
        if cold.is_some_and(|ms| self.wire.now < ms) {
            self.wire.note(format!("cold start: dropped {}", request.method));
            return;
        }
        let overtakes =
            matches!(request.method.as_str(), "session/stop" | "workspace/cancelGenerateText")
                || request.method.starts_with("mcp/ui");
        if overtakes {
            let reply = self.checked(&request).and_then(|()| self.dispatch(&request));
            self.wire.reply(&request.id, reply);
        } else {
            self.queue.push_back(request);
        }
    }

    /// Some builds take stop and close without an id; other notifications mean nothing.
    fn notification(&mut self, method: String, params: Value) {
        if matches!(method.as_str(), "session/stop" | "session/close" | "v4/connection/flow") {
            let request = Request { id: Value::Null, method, params };
            if let Err(error) = self.checked(&request).and_then(|()| self.dispatch(&request)) {
                self.wire.note(format!("{}: {}", request.method, error.message));
            }
        }
    }

    fn response(&mut self, id: &Value, mut map: Map<String, Value>) {
        let response = match (map.remove("result"), map.remove("error")) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => {
                let text = error.get("message").and_then(Value::as_str).unwrap_or("refused");
                Err(text.to_owned())
            }
            _ => return self.invalid("expected result or error"),
        };
        if let Some(settled) = self.interactions.settle(id, response) {
            self.settled(settled);
        }
    }

    /// Serves the queue until something has to be waited for.
    fn serve(&mut self) {
        loop {
            match self.serving.take() {
                Some(Serving::Until(request, at)) if at <= self.wire.now => {
                    self.answer(request);
                }
                Some(waiting) => {
                    self.serving = Some(waiting);
                    return;
                }
                None => {}
            }
            if self.serving.is_some() {
                continue;
            }
            let Some(request) = self.queue.pop_front() else { return };
            let slow = self.wire.options.fault(|f| match f {
                Fault::Slow(method, ms) if *method == request.method => Some(*ms),
                _ => None,
            });
            match slow {
                Some(ms) => self.serving = Some(Serving::Until(request, self.wire.now + ms)),
                None => self.answer(request),
            }
        }
    }

    /// Answers a request, or starts what it needs first.
    fn answer(&mut self, request: Request) {
        if let Err(error) = self.checked(&request) {
            self.wire.reply(&request.id, Err(error));
            return;
        }
        let asks = matches!(request.method.as_str(), "session/create" | "session/resume")
            && self.wire.options.profile.has_v4();
        if !asks {
            return self.finish_request(&request);
        }
        match self.target_of(&request) {
            Err(error) => self.wire.reply(&request.id, Err(error)),
            Ok(session_id) => {
                let params = json!({"sessionId": session_id, "scope": "runtime-materialization"});
                self.interactions.ask(
                    &mut self.wire,
                    Ask {
                        method: "session/requestRuntimePreferences",
                        session_id: &session_id,
                        params,
                        asker: Asker::Serving,
                        call: None,
                        elsewhere_after: None,
                        expires_after: Some(PREFERENCES_MS),
                    },
                );
                self.serving = Some(Serving::Preferences(request, session_id));
            }
        }
    }

    /// Dispatches and replies; what must follow the reply at once (a first frame) is sent after it.
    fn finish_request(&mut self, request: &Request) {
        let reply = self.dispatch(request);
        let frame_first = self.wire.options.frame_first;
        if frame_first {
            self.flush_subscribed(request);
        }
        self.wire.reply(&request.id, reply);
        if !frame_first {
            self.flush_subscribed(request);
        }
    }

    fn flush_subscribed(&mut self, request: &Request) {
        if matches!(request.method.as_str(), "v4/conversation/subscribe" | "v4/conversation/resync")
        {
            let id =
                request.str("topic").strip_prefix("conversation/").unwrap_or_default().to_owned();
            if let Some(session) = self.sessions.get_mut(&id) {
                session.topic.flush(&mut self.wire);
            }
        }
    }

    /// Method known in this build, params as its schema wants them.
    fn checked(&self, request: &Request) -> Result<(), RpcError> {
        let method = request.method.as_str();
        let options = &self.wire.options;
        let known =
            schema::fields(options.profile, method).is_some() || method.starts_with("mcp/ui");
        let removed = options.faults.iter().any(|f| matches!(f, Fault::NoMethod(m) if m == method));
        if !known || removed || !options.profile.has_method(method) {
            return Err(RpcError::new(-32601, format!("Method not found: {method}")));
        }
        schema::check_params(options.profile, method, &request.params).map_err(RpcError::invalid)
    }

    /// The host answered, another client did, or time ran out.
    fn settled(&mut self, settled: Settled) {
        match &settled.interaction.asker {
            Asker::Serving => self.preferences(&settled),
            Asker::Nobody => {}
            Asker::Turn(_) | Asker::Task(..) => self.answered(settled),
        }
    }

    fn preferences(&mut self, settled: &Settled) {
        let Some(Serving::Preferences(request, session_id)) = self.serving.take() else { return };
        match &settled.result {
            Err(problem) if problem.starts_with("Invalid params") => {
                self.wire.reply(&request.id, Err(RpcError::invalid(problem.clone())));
            }
            // A host that does not know the question is tolerated, one that is silent too.
            _ => {
                let mut request = request;
                if let Some(map) = request.params.as_object_mut() {
                    map.insert("sessionId".to_owned(), Value::from(session_id));
                }
                self.finish_request(&request);
            }
        }
        self.serve();
    }

    /// Writes a session; a failure is noted, not fatal.
    pub(super) fn save(&mut self, id: &str) {
        let counter = self.wire.ids.counter();
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.stored.id_counter = counter;
        if session.row_at.is_none() {
            return;
        }
        if let Err(e) = self.store.save(&session.stored) {
            self.wire.note(format!("cannot write session {id}: {e}"));
        }
    }

    /// Unloads sessions that were idle for long, and the oldest ones beyond the cap.
    pub(super) fn evict_idle(&mut self) {
        let now = self.wire.now;
        let mut idle: Vec<(u64, String)> = self
            .sessions
            .iter()
            .filter(|(_, s)| s.turn.is_none() && s.tasks.is_empty() && s.notices.is_empty())
            // A subagent lives as long as the turn or task that plays it.
            .filter(|(_, s)| !s.is_played)
            .map(|(id, s)| (s.last_used, id.clone()))
            .collect();
        idle.sort_unstable();
        let over = self.sessions.len().saturating_sub(RESIDENT);
        for (at, (used, id)) in idle.into_iter().enumerate() {
            if at < over || used + IDLE_MS <= now {
                self.evict(&id);
            }
        }
    }

    /// Unloads a session; its subscriptions end with it.
    pub(super) fn evict(&mut self, id: &str) {
        self.save(id);
        self.sessions.remove(id);
    }

    /// Makes a reply that says "not in this state".
    pub(super) fn invalid_state(message: &str) -> Reply {
        Err(RpcError::internal(
            "INVALID_STATE_TRANSITION",
            format!("INVALID_STATE_TRANSITION: {message}"),
        ))
    }
}

/// Returns the loaded session, which is in use now.
pub(super) fn active<'a>(
    sessions: &'a mut BTreeMap<String, Session>,
    now: u64,
    id: &str,
) -> Result<&'a mut Session, RpcError> {
    match sessions.get_mut(id) {
        Some(session) => {
            session.last_used = now;
            Ok(session)
        }
        None => Err(RpcError::new(-32004, format!("Session is not active: {id}"))),
    }
}

/// What a migrating engine says while it starts.
fn startup(options: &Options) -> VecDeque<(u64, Value)> {
    let (ends, error) = match options.startup {
        Startup::Silent => return VecDeque::new(),
        Startup::Migrate => ("ready", None),
        Startup::Fail => ("failed", Some("SCHEMA_MISMATCH")),
    };
    let phases = ["checking", "migrating", "migrating", "committing", ends];
    phases
        .iter()
        .zip(1_u64..)
        .map(|(phase, sequence)| {
            let mut state = json!({
                "schemaVersion": 1, "attemptId": "attempt_1", "sequence": sequence, "databaseId": "db_sim",
                "databaseKind": "main", "phase": phase, "elapsedMs": options.scaled((sequence - 1) * 400),
            });
            if let Some(map) = state.as_object_mut() {
                if *phase == "migrating" {
                    map.insert("completed".to_owned(), Value::from(sequence * 40));
                    map.insert("total".to_owned(), Value::from(120));
                }
                if let (Some(error), "failed") = (error, *phase) {
                    map.insert("errorCode".to_owned(), Value::from(error));
                }
            }
            (options.scaled((sequence - 1) * 400), state)
        })
        .collect()
}
