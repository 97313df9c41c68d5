//! `terminal/*`: commands that an agent has us run, inside the session's roots. Each runs in a
//! process group of its own; the group is gone when the terminal is released or the agent ends.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{oneshot, watch};

use super::Outbox;
use super::connection::respond;
use super::roots::Roots;
use crate::process::{Child, ChildSpec, Input, Output};
use crate::tui::msg::AgentMsg;

/// Output kept when the agent names no limit.
const DEFAULT_LIMIT: usize = 1024 * 1024;
/// Most output kept whatever the agent asks for.
const MAX_LIMIT: usize = 16 * 1024 * 1024;
/// How long a killed command may take to end by itself.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// How long output may still come after the command has ended (a background child holds the pipe).
const AFTERGLOW: Duration = Duration::from_millis(200);

/// The terminals of one connection.
pub(super) struct Terminals {
    roots: Roots,
    env: Vec<(OsString, OsString)>,
    to_loop: Outbox,
    made: u64,
    open: HashMap<String, Terminal>,
}

struct Terminal {
    state: watch::Receiver<State>,
    /// Dropping it ends the command.
    kill: Option<oneshot::Sender<()>>,
}

/// What a command has printed and how it ended.
#[derive(Debug, Default, Clone)]
struct State {
    output: String,
    truncated: bool,
    exit: Option<(Option<i32>, Option<String>)>,
}

impl State {
    fn exit_json(&self) -> Value {
        match &self.exit {
            Some((code, signal)) => json!({"exitCode": code, "signal": signal}),
            None => Value::Null,
        }
    }
}

impl Terminals {
    pub(super) fn new(roots: Roots, env: Vec<(OsString, OsString)>, to_loop: Outbox) -> Self {
        Self { roots, env, to_loop, made: 0, open: HashMap::new() }
    }

    /// Answers a `terminal/*` request, now or when the command has ended.
    pub(super) fn handle(&mut self, method: &str, params: &Value, responder: Responder<Value>) {
        if method == "terminal/create" {
            respond(responder, self.create(params));
            return;
        }
        let id = params.get("terminalId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(terminal) = self.open.get_mut(&id) else {
            let error = Error::new(-32002, "unknown terminal").data(json!({"terminalId": id}));
            respond(responder, Err(error));
            return;
        };
        match method {
            "terminal/output" => {
                let state = terminal.state.borrow();
                let mut answer = json!({"output": state.output, "truncated": state.truncated});
                if state.exit.is_some()
                    && let Some(object) = answer.as_object_mut()
                {
                    object.insert("exitStatus".to_owned(), state.exit_json());
                }
                drop(state);
                respond(responder, Ok(answer));
            }
            "terminal/wait_for_exit" => {
                let mut state = terminal.state.clone();
                tokio::spawn(async move {
                    let cancellation = responder.cancellation();
                    let result = tokio::select! {
                        ended = state.wait_for(|s| s.exit.is_some()) => match ended {
                            Ok(state) => Ok(state.exit_json()),
                            Err(_closed) => Err(Error::internal_error().data("the command is gone")),
                        },
                        () = cancellation.cancelled() => Err(Error::request_cancelled()),
                    };
                    respond(responder, result);
                });
            }
            "terminal/kill" => {
                drop(terminal.kill.take());
                respond(responder, Ok(json!({})));
            }
            "terminal/release" => {
                self.open.remove(&id);
                respond(responder, Ok(json!({})));
            }
            _ => respond(responder, Err(Error::method_not_found().data(method))),
        }
    }

    fn create(&mut self, params: &Value) -> Result<Value, Error> {
        let spec = self.spec(params)?;
        let child = Child::spawn(&spec).map_err(|e| {
            let program = spec.program.to_string_lossy().into_owned();
            Error::invalid_params().data(format!("`{program}` cannot be started: {e}"))
        })?;
        self.made += 1;
        let id = format!("terminal-{}", self.made);
        let limit = params
            .get("outputByteLimit")
            .and_then(Value::as_u64)
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(DEFAULT_LIMIT)
            .min(MAX_LIMIT);
        let (sender, state) = watch::channel(State::default());
        let (kill, killed) = oneshot::channel();
        self.open.insert(id.clone(), Terminal { state, kill: Some(kill) });
        let running =
            Running { id: id.clone(), child, state: sender, limit, to_loop: self.to_loop.clone() };
        tokio::spawn(running.follow(killed));
        Ok(json!({"terminalId": id}))
    }

    fn spec(&self, params: &Value) -> Result<ChildSpec, Error> {
        let invalid = |why: String| Error::invalid_params().data(why);
        let command = params
            .get("command")
            .and_then(Value::as_str)
            .filter(|c| !c.is_empty())
            .ok_or_else(|| invalid("command is missing".to_owned()))?;
        let strings = |v: Option<&Value>| -> Vec<String> {
            let list = v.and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let args = strings(params.get("args"));
        // Some agents give a whole command line where a program belongs; a shell reads it.
        let mut spec = if args.is_empty() && command.contains(char::is_whitespace) {
            let mut spec = ChildSpec::new("/bin/sh");
            spec.args = vec!["-c".into(), command.into()];
            spec
        } else {
            let mut spec = ChildSpec::new(command);
            spec.args = args.into_iter().map(Into::into).collect();
            spec
        };
        let cwd = match params.get("cwd").and_then(Value::as_str) {
            Some(cwd) => self.roots.resolve(Path::new(cwd)),
            None => self.roots.first(),
        };
        spec.cwd = Some(cwd.map_err(|e| invalid(e.to_string()))?);
        let extra = params.get("env").and_then(Value::as_array);
        if let Some(extra) = extra.filter(|e| !e.is_empty()) {
            let mut env = self.env.clone();
            for variable in extra {
                let text = |k: &str| variable.get(k).and_then(Value::as_str);
                if let (Some(name), Some(value)) = (text("name"), text("value")) {
                    env.retain(|(n, _)| n != name);
                    env.push((name.into(), value.into()));
                }
            }
            spec.env = Some(env);
        }
        spec.input = Input::Null;
        spec.output = Output::Merged;
        Ok(spec)
    }
}

/// A command that is being followed to its end.
struct Running {
    id: String,
    child: Child,
    state: watch::Sender<State>,
    limit: usize,
    to_loop: Outbox,
}

impl Running {
    async fn follow(mut self, mut killed: oneshot::Receiver<()>) {
        let stdout = self.child.stdout.take();
        let mut decoder = Utf8Tail::default();
        let mut status = None;
        let mut killing = false;
        if let Some(mut stdout) = stdout {
            let mut buf = vec![0u8; 16 * 1024];
            let mut glow = None;
            loop {
                let afterglow = async {
                    match glow {
                        Some(until) => tokio::time::sleep_until(until).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    read = stdout.read(&mut buf) => match read {
                        Ok(0) | Err(_) => break,
                        Ok(n) => self.printed(decoder.decode(buf.get(..n).unwrap_or_default())).await,
                    },
                    ended = self.child.wait(), if status.is_none() => {
                        status = ended.ok();
                        glow = Some(tokio::time::Instant::now() + AFTERGLOW);
                    }
                    // Killed, or the terminal was released: both drop the sender.
                    _ = &mut killed, if !killing => {
                        killing = true;
                        self.child.signal(Signal::TERM);
                        glow = Some(tokio::time::Instant::now() + KILL_GRACE);
                    }
                    () = afterglow => break,
                }
            }
        }
        let status = match status {
            Some(status) => Some(status),
            None if killing => self.child.terminate(Duration::ZERO).await,
            None => tokio::select! {
                ended = self.child.wait() => ended.ok(),
                _ = &mut killed => self.child.terminate(KILL_GRACE).await,
            },
        };
        self.ended(status).await;
    }

    async fn printed(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        let limit = self.limit;
        self.state.send_modify(|state| {
            state.output.push_str(&text);
            if state.output.len() > limit {
                state.truncated = true;
                let mut cut = state.output.len() - limit;
                while !state.output.is_char_boundary(cut) {
                    cut += 1;
                }
                state.output.drain(..cut);
            }
        });
        let message = AgentMsg::TerminalOutput { terminal_id: self.id.clone(), text };
        let _loop_is_gone = self.to_loop.send(message).await;
    }

    async fn ended(self, status: Option<ExitStatus>) {
        let code = status.and_then(|s| s.code());
        let signal = status.and_then(|s| s.signal()).map(|n| format!("SIG{n}"));
        self.state.send_modify(|state| state.exit = Some((code, signal.clone())));
        let message = AgentMsg::TerminalExited {
            terminal_id: self.id.clone(),
            code: code.map(i64::from),
            signal,
        };
        let _loop_is_gone = self.to_loop.send(message).await;
        // The state outlives the command for as long as the terminal is not released.
        self.state.closed().await;
    }
}

/// Decodes UTF-8 that is cut anywhere.
#[derive(Debug, Default)]
struct Utf8Tail(Vec<u8>);

impl Utf8Tail {
    fn decode(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let keep = match std::str::from_utf8(&self.0) {
            Err(e) if e.error_len().is_none() => self.0.len() - e.valid_up_to(),
            _ => 0,
        };
        let rest = self.0.split_off(self.0.len() - keep);
        let text = String::from_utf8_lossy(&self.0).into_owned();
        self.0 = rest;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_cut_between_two_reads_stay_whole() {
        let mut d = Utf8Tail::default();
        let bytes = "a你b".as_bytes();
        let mut out = String::new();
        for b in bytes {
            out += &d.decode(std::slice::from_ref(b));
        }
        assert_eq!(out, "a你b");
        assert_eq!(d.decode(b"\xffx"), "\u{fffd}x");
    }
}
