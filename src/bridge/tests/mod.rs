//! The whole bridge in one process: an ACP client, the agent over the SDK's in-memory channel, and
//! the simulated engine over pipes in memory, under a paused clock. A wait of minutes takes no time,
//! a deadlock fails at once, and every run is the same.
//!
//! Every test ends by [`Desk::end`], which checks that every request of every engine was answered.

mod channel;
mod children;
mod closing;
mod extensions;
mod faults;
mod queue;
mod resume;
mod rows;
mod soak;
mod steps;
mod stopping;
mod storm;
mod switches;
mod turns;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::{ConnectionTo, Dispatch, Responder};
use agent_client_protocol::{
    Agent, Channel, Client, ConnectTo, Error as AcpError, Handled, UntypedMessage,
    on_receive_dispatch,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::engine::played::Player;
use super::engine::sim::{Fault, Options, Startup};
use crate::config::{Config, Env, test_config};

/// Longer than anything may stay silent; virtual time, so that it passes at once.
const SILENCE: Duration = Duration::from_hours(2);

/// What the client has not looked at yet.
const INBOX: usize = 4096;

/// What reaches the client.
enum Came {
    Update(String, Value),
    Ask(Ask),
    Answer(u64, Result<Value, AcpError>),
    Other,
}

/// A question of the agent's.
struct Ask {
    method: String,
    params: Value,
    responder: Responder<Value>,
}

impl Ask {
    fn session(&self) -> &str {
        self.params["sessionId"].as_str().unwrap()
    }

    fn select(self, option: &str) {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        self.responder.respond(outcome).unwrap();
    }

    /// The option of that kind.
    fn option(&self, kind: &str) -> String {
        let options = self.params["options"].as_array().unwrap();
        let found = options.iter().find(|o| o["kind"] == kind);
        found.unwrap_or_else(|| panic!("{kind}: {options:?}"))["optionId"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

/// A client with its bridge and its engines.
struct Desk {
    connection: ConnectionTo<Agent>,
    inbox: mpsc::Receiver<Came>,
    to_inbox: mpsc::Sender<Came>,
    hang_up: Option<oneshot::Sender<()>>,
    bridge: JoinHandle<()>,
    player: Player,
    dir: tempfile::TempDir,
    next: u64,
    updates: Vec<(String, Value)>,
    answers: HashMap<u64, Result<Value, AcpError>>,
    asks: Vec<Ask>,
}

/// Real-looking pace on the virtual clock, ids that are the same every time.
fn paced() -> Options {
    Options { pace: 1.0, ..Options::deterministic() }
}

fn with_faults(faults: &[&str]) -> Options {
    let faults = faults.iter().map(|f| f.parse::<Fault>().unwrap()).collect();
    Options { faults, ..paced() }
}

impl Desk {
    async fn new(options: Options) -> Self {
        Self::with(move |_| options.clone(), |_| {}).await
    }

    /// `options` are those of the n-th engine; all engines share one store.
    async fn with(
        options: impl Fn(usize) -> Options + Send + Sync + 'static,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        Self::greeted(options, change, json!({"protocolVersion": 1})).await
    }

    /// For a client that says this in `initialize`.
    async fn greeted(
        options: impl Fn(usize) -> Options + Send + Sync + 'static,
        change: impl FnOnce(&mut Config),
        initialize: Value,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let (store, traces, home) = (path("store"), path("traces"), path("home"));
        path("cwd");
        let mut config = test_config(Env::default(), &home);
        config.zcode_home = home.join(".zcode");
        change(&mut config);
        let player = Player::new(
            move |n| Options {
                store: Some(store.clone()),
                // Every engine has ids of its own.
                seed: Some(1 + 100_000 * n as u64),
                ..options(n)
            },
            traces,
        );
        let (connection, inbox, to_inbox, hang_up, bridge) = connect(config, &player).await;
        let mut desk = Self {
            connection,
            inbox,
            to_inbox,
            hang_up: Some(hang_up),
            bridge,
            player,
            dir,
            next: 0,
            updates: Vec::new(),
            answers: HashMap::new(),
            asks: Vec::new(),
        };
        desk.ok("initialize", initialize).await;
        desk
    }

    fn cwd(&self) -> PathBuf {
        self.dir.path().join("cwd")
    }

    /// Sends a request; its answer comes into the inbox in its place among the updates.
    fn post(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let (id, inbox) = (self.next, self.to_inbox.clone());
        let message = UntypedMessage { method: method.to_owned(), params };
        self.connection
            .send_request(message)
            .on_receiving_result(async move |result| {
                inbox.send(Came::Answer(id, result)).await.ok();
                Ok(())
            })
            .unwrap();
        id
    }

    fn tell(&self, method: &str, params: Value) {
        let message = UntypedMessage { method: method.to_owned(), params };
        self.connection.send_notification(message).unwrap();
    }

    fn cancel(&self, session: &str) {
        self.tell("session/cancel", json!({"sessionId": session}));
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.post("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Takes what comes next; a silence of hours is a deadlock.
    async fn step(&mut self) {
        let came = timeout(SILENCE, self.inbox.recv()).await;
        let came = came.unwrap_or_else(|_| panic!("silence; last: {:?}", self.updates.last()));
        match came.expect("the connection ended") {
            Came::Update(session, update) => self.updates.push((session, update)),
            Came::Ask(ask) => self.asks.push(ask),
            Came::Answer(id, result) => {
                assert!(self.answers.insert(id, result).is_none(), "answered twice");
            }
            Came::Other => {}
        }
    }

    async fn answer(&mut self, id: u64) -> Result<Value, AcpError> {
        while !self.answers.contains_key(&id) {
            self.step().await;
        }
        self.answers[&id].clone()
    }

    async fn ok(&mut self, method: &str, params: Value) -> Value {
        let id = self.post(method, params);
        self.answer(id).await.unwrap_or_else(|e| panic!("{method}: {e:?}"))
    }

    async fn refused(&mut self, method: &str, params: Value) -> AcpError {
        let id = self.post(method, params.clone());
        match self.answer(id).await {
            Err(error) => error,
            Ok(answer) => panic!("{method} {params}: {answer}"),
        }
    }

    async fn open(&mut self) -> String {
        let params = json!({"cwd": self.cwd(), "mcpServers": []});
        let made = self.ok("session/new", params).await;
        made["sessionId"].as_str().unwrap().to_owned()
    }

    async fn stop_reason(&mut self, id: u64) -> String {
        let answer = self.answer(id).await.unwrap_or_else(|e| panic!("{e:?}"));
        answer["stopReason"].as_str().unwrap().to_owned()
    }

    /// Prompts and waits for the end.
    async fn turn(&mut self, session: &str, text: &str) -> String {
        let id = self.prompt(session, text);
        self.stop_reason(id).await
    }

    async fn ask(&mut self) -> Ask {
        while self.asks.is_empty() {
            self.step().await;
        }
        self.asks.remove(0)
    }

    /// Agrees to whatever has been asked, with the first option; a form is declined.
    fn agree(&mut self) {
        while let Some(ask) = self.asks.pop() {
            match ask.params["options"].as_array().and_then(|options| options.first()) {
                Some(option) => {
                    let option = option["optionId"].as_str().unwrap().to_owned();
                    ask.select(&option);
                }
                None => ask.responder.respond(json!({"action": "decline"})).unwrap(),
            }
        }
    }

    /// Waits until an update of the session says so.
    async fn until(&mut self, session: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut at = 0;
        loop {
            while let Some((id, update)) = self.updates.get(at) {
                if id == session && fits(update) {
                    return update.clone();
                }
                at += 1;
            }
            self.step().await;
        }
    }

    /// Lets that much virtual time pass, and takes what comes in it.
    async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while tokio::time::timeout_at(end, self.step()).await.is_ok() {}
    }

    /// The message text of a session so far.
    fn text(&self, session: &str) -> String {
        self.chunks(session, "agent_message_chunk").concat()
    }

    fn chunks(&self, session: &str, kind: &str) -> Vec<&str> {
        let of = self.updates.iter().filter(|(id, u)| id == session && u["sessionUpdate"] == kind);
        of.filter_map(|(_, u)| u["content"]["text"].as_str()).collect()
    }

    /// Tool calls of the session that have not come to an end.
    fn open_cards(&self, session: &str) -> HashSet<String> {
        let mut open = HashSet::new();
        for (_, update) in self.updates.iter().filter(|(id, _)| id == session) {
            let Some(id) = update["toolCallId"].as_str() else { continue };
            match update["status"].as_str() {
                Some("completed" | "failed") => drop(open.remove(id)),
                Some(_) => drop(open.insert(id.to_owned())),
                None => {}
            }
        }
        open
    }

    /// Requests of that method which the engines got.
    fn calls(&self, method: &str) -> usize {
        let lines = (0..self.player.started()).flat_map(|n| self.player.lines(n));
        lines.filter(|(dir, frame)| dir == "out" && frame["method"] == method).count()
    }

    /// The client hangs up; returns when the bridge has ended.
    async fn leave(&mut self) {
        if self.hang_up.take().is_none() {
            return;
        }
        timeout(SILENCE, &mut self.bridge).await.expect("the bridge ends").unwrap();
    }

    /// The client that hung up is there again, with another bridge on the same home.
    async fn come_back(&mut self) {
        self.asks.clear();
        self.leave().await;
        let home = self.dir.path().join("home");
        let mut config = test_config(Env::default(), &home);
        config.zcode_home = home.join(".zcode");
        let (connection, inbox, to_inbox, hang_up, bridge) = connect(config, &self.player).await;
        self.connection = connection;
        (self.inbox, self.to_inbox) = (inbox, to_inbox);
        (self.hang_up, self.bridge) = (Some(hang_up), bridge);
        self.ok("initialize", json!({"protocolVersion": 1})).await;
    }

    /// Ends everything, and checks that nothing of any engine's was left unanswered.
    async fn end(mut self) {
        for ask in self.asks.drain(..) {
            drop(ask);
        }
        self.leave().await;
        for engine in 0..self.player.started() {
            let lines = self.player.lines(engine);
            let answered: HashSet<String> = lines
                .iter()
                .filter(|(dir, frame)| dir == "out" && frame.get("method").is_none())
                .map(|(_, frame)| frame["id"].to_string())
                .collect();
            let asked = lines.iter().filter(|(dir, frame)| {
                dir == "in" && frame.get("method").is_some() && frame.get("id").is_some()
            });
            for (_, frame) in asked.filter(|_| !self.player.was_killed(engine)) {
                assert!(answered.contains(&frame["id"].to_string()), "unanswered: {frame}");
            }
        }
    }
}

type Connected = (
    ConnectionTo<Agent>,
    mpsc::Receiver<Came>,
    mpsc::Sender<Came>,
    oneshot::Sender<()>,
    JoinHandle<()>,
);

async fn connect(config: Config, player: &Player) -> Connected {
    let starting = player.clone();
    let agent = super::agent(Arc::new(config)).started_by(Arc::new(move |_, _, events| {
        let started = starting.start(events);
        Box::pin(async move { started })
    }));
    let (sender, inbox) = mpsc::channel(INBOX);
    let (hang_up, hung_up) = oneshot::channel::<()>();
    let (ready, connection) = oneshot::channel();
    let to_inbox = sender.clone();
    let (ours, theirs) = Channel::duplex();
    let bridge = tokio::spawn(async move {
        agent.connect_to(theirs).await.ok();
    });
    tokio::spawn(async move {
        let connected = Client.v1().name("a test").on_receive_dispatch(
            async move |message: Dispatch<UntypedMessage, UntypedMessage>, _cx| {
                match message {
                    Dispatch::Notification(note) => {
                        sender.send(came(&note)).await.ok();
                    }
                    Dispatch::Request(request, responder) => {
                        let UntypedMessage { method, params } = request;
                        let ask = Came::Ask(Ask { method, params, responder });
                        sender.send(ask).await.ok();
                    }
                    message @ Dispatch::Response(..) => {
                        return Ok(Handled::No { message, retry: false });
                    }
                }
                Ok(Handled::Yes)
            },
            on_receive_dispatch!(),
        );
        let talk = connected.connect_with(ours, async |connection: ConnectionTo<Agent>| {
            ready.send(connection).ok();
            hung_up.await.ok();
            Ok(())
        });
        talk.await.ok();
    });
    (connection.await.unwrap(), inbox, to_inbox, hang_up, bridge)
}

fn came(note: &UntypedMessage) -> Came {
    if note.method != "session/update" {
        return Came::Other;
    }
    let session = note.params["sessionId"].as_str().unwrap().to_owned();
    Came::Update(session, note.params["update"].clone())
}
