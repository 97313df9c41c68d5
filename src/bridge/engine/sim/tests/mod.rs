use super::*;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, BufReader, DuplexStream, Lines as TokioLines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

mod interactions;
mod legacy;
mod protocol;
mod scripts;
mod v4;

/// A host that drives an engine in this process.
pub(super) struct Host {
    lines: TokioLines<BufReader<ReadHalf<DuplexStream>>>,
    writer: Option<WriteHalf<DuplexStream>>,
    engine: JoinHandle<io::Result<i32>>,
    next_id: u64,
    /// Everything that came, in order.
    pub(super) seen: Vec<Value>,
    /// Lines that are no messages.
    pub(super) noise: usize,
    /// Whether questions are answered by themselves.
    pub(super) answers: bool,
}

pub(super) fn ws(path: &str) -> Value {
    json!({"workspacePath": path, "workspaceKey": path})
}

impl Host {
    pub(super) fn start(options: Options) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(theirs);
        let engine = tokio::spawn(async move { run(reader, writer, options).await });
        let (reader, writer) = tokio::io::split(ours);
        Self {
            lines: BufReader::new(reader).lines(),
            writer: Some(writer),
            engine,
            next_id: 0,
            seen: Vec::new(),
            noise: 0,
            answers: true,
        }
    }

    pub(super) async fn raw(&mut self, line: &str) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(line.as_bytes()).await.unwrap();
        writer.write_all(b"\n").await.unwrap();
    }

    pub(super) async fn send(&mut self, message: &Value) {
        self.raw(&message.to_string()).await;
    }

    /// Sends a request without waiting; returns its id.
    pub(super) async fn post(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"id": self.next_id, "method": method, "params": params})).await;
        self.next_id
    }

    /// Reads the next message; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            let read = timeout(Duration::from_hours(1), self.lines.next_line()).await;
            let line = read.expect("the engine fell silent").unwrap()?;
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                self.noise += 1;
                continue;
            };
            self.seen.push(message.clone());
            if message.get("id").is_some() && message.get("method").is_some() {
                self.answer(&message).await;
            }
            return Some(message);
        }
    }

    async fn answer(&mut self, request: &Value) {
        let result = match request["method"].as_str().unwrap() {
            "session/requestRuntimePreferences" => {
                json!({"nativeSearchEnhancementsEnabled": false})
            }
            _ if !self.answers => return,
            "interaction/requestPermission" => {
                let chosen = &request["params"]["options"][0]["response"];
                if chosen.is_null() { json!({"decision": "allow"}) } else { chosen.clone() }
            }
            "interaction/requestUserInput" => {
                json!({"action": "accept", "content": {"answer_0": "approve"}})
            }
            "interaction/requestProviderRuntimeHeaders" => json!({"headersApplied": true}),
            _ => {
                let error = json!({"code": -32601, "message": "unknown"});
                return self.send(&json!({"id": request["id"], "error": error})).await;
            }
        };
        self.send(&json!({"id": request["id"], "result": result})).await;
    }

    /// Reads until a message fits and returns it.
    pub(super) async fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        while let Some(message) = self.next().await {
            if fits(&message) {
                return message;
            }
        }
        panic!("the engine ended before: {what}; last: {:?}", self.seen.last());
    }

    pub(super) async fn reply(&mut self, id: u64) -> Value {
        self.until("reply", |m| m["id"] == id && m.get("method").is_none()).await
    }

    pub(super) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.post(method, params).await;
        self.reply(id).await
    }

    /// Calls and expects a result.
    pub(super) async fn ok(&mut self, method: &str, params: Value) -> Value {
        let reply = self.call(method, params).await;
        assert!(reply.get("result").is_some(), "{method}: {reply}");
        reply["result"].clone()
    }

    /// Calls and expects an error of that code; returns its message.
    pub(super) async fn refused(&mut self, method: &str, params: Value, code: i64) -> String {
        let reply = self.call(method, params).await;
        assert_eq!(reply["error"]["code"], code, "{method}: {reply}");
        reply["error"]["message"].as_str().unwrap().to_owned()
    }

    /// A new session that is subscribed to.
    pub(super) async fn session(&mut self) -> String {
        self.session_in("/tmp/nowhere").await
    }

    pub(super) async fn session_in(&mut self, path: &str) -> String {
        let made = self.ok("session/create", json!({"workspace": ws(path)})).await;
        let id = made["session"]["sessionId"].as_str().unwrap().to_owned();
        self.subscribe(&id).await;
        id
    }

    pub(super) async fn subscribe(&mut self, id: &str) {
        let params = json!({"sessionId": id, "deliveryKind": "desktop-continuous", "includeSnapshot": false});
        self.ok("session/subscribe", params).await;
    }

    /// Sends a prompt and reads until its turn is over; returns the reason.
    pub(super) async fn turn(&mut self, id: &str, text: &str) -> String {
        self.ok("session/send", json!({"sessionId": id, "content": text})).await;
        self.turn_over().await
    }

    pub(super) async fn turn_over(&mut self) -> String {
        let over = self
            .until("end of turn", |m| {
                m["method"] == "state.updated"
                    && m["params"]["reason"].as_str().is_some_and(|r| {
                        r.starts_with("prompt_") && r != "prompt_started"
                            || r == "session_compacted"
                    })
            })
            .await;
        over["params"]["reason"].as_str().unwrap().to_owned()
    }

    /// Payloads of a session's events of that type.
    pub(super) fn events(&self, kind: &str) -> Vec<&Value> {
        self.seen
            .iter()
            .filter(|m| m["method"] == "session/event" && m["params"]["type"] == kind)
            .map(|m| &m["params"]["payload"])
            .collect()
    }

    /// All message text that was streamed.
    pub(super) fn text(&self) -> String {
        let deltas = self.events("model.streaming");
        deltas
            .iter()
            .filter(|p| p["kind"] == "text_delta")
            .filter_map(|p| p["delta"].as_str())
            .collect()
    }

    /// Closes the input and returns the exit status.
    pub(super) async fn close(mut self) -> i32 {
        drop(self.writer.take().map(|mut w| tokio::spawn(async move { w.shutdown().await })));
        while self.next().await.is_some() {}
        self.engine.await.unwrap().unwrap()
    }
}
