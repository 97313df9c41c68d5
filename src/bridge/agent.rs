//! The ACP agent: the handlers of the SDK's connection. Each one only validates and hands the
//! request with its responder to the registry, then returns, because the SDK dispatches one message
//! at a time and a handler that waits for the client would wait for ever.

use std::fmt;
use std::sync::Arc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema as acp;
use agent_client_protocol::v1::{Dispatch, Responder};
use agent_client_protocol::{
    Agent, Client, ConnectTo, Error as AcpError, Handled, JsonRpcRequest, UntypedMessage,
    on_receive_dispatch, on_receive_notification, on_receive_request,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::engine::Engine;
use super::extensions;
use super::servers::WithServers;
use super::session::machine::{Request, invalid_params, steering_advert};
use super::session::registry::{self, Channels, OpenRequest, Starter, ToRegistry};
use super::stdio::Outflow;
use super::translate::ClientTraits;
use crate::config::Config;

/// The one method by which a client signs in without a terminal: ZCode's own sign-in is used.
pub(crate) const AUTH_AGENT: &str = "zcode-credentials";
/// The method that runs `zcode-acp login` in the client's terminal.
const AUTH_TERMINAL: &str = "zcode-login";

/// The bridge as a value: connect it to a transport (`serve`) or to a client in this process.
#[derive(Clone)]
pub struct BridgeAgent {
    config: Arc<Config>,
    starter: Starter,
    outflow: Outflow,
    stop: watch::Receiver<bool>,
}

impl fmt::Debug for BridgeAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgeAgent").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Makes the agent. Nothing is started before it is connected, and no engine before it is needed.
pub fn agent(config: Arc<Config>) -> BridgeAgent {
    let starter: Starter = Arc::new(|config, cwd, events| {
        Box::pin(async move { Engine::start(&config, &cwd, events).await })
    });
    BridgeAgent { config, starter, outflow: Outflow::new(), stop: watch::channel(false).1 }
}

impl BridgeAgent {
    /// Lets the sessions hold the engine back while the client lags by this gauge.
    #[must_use]
    pub fn metered(mut self, outflow: Outflow) -> Self {
        self.outflow = outflow;
        self
    }

    /// Has engines started in another way: tests play theirs in this process.
    #[cfg(test)]
    pub(crate) fn started_by(mut self, starter: Starter) -> Self {
        self.starter = starter;
        self
    }

    /// Ends every session and the engine when the value becomes true.
    #[must_use]
    pub fn stopped_by(mut self, stop: watch::Receiver<bool>) -> Self {
        self.stop = stop;
        self
    }
}

type Registry = mpsc::Sender<ToRegistry>;

/// A handler: hands the registry what `$make` makes of the request and its responder.
macro_rules! handing {
    ($registry:ident, $request:ty, $make:expr) => {
        async move |request: $request,
                    responder: Responder<<$request as JsonRpcRequest>::Response>,
                    _cx| {
            hand_over(&$registry, $make(request, responder.erase_to_json())).await;
            Ok(())
        }
    };
}

impl ConnectTo<Client> for BridgeAgent {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<(), AcpError> {
        let (inbox, inbox_rx) = mpsc::channel(registry::INBOX);
        let Self { config, starter, outflow, stop } = self;
        let channels = Channels { itself: inbox.clone(), inbox: inbox_rx, stop, outflow, starter };
        let all: [Registry; 13] = std::array::from_fn(|_| inbox.clone());
        let [init, auth, new, load, resume, list, close, fork, prompt, mode, option, stop, other] =
            all;
        drop(inbox);
        Agent
            .v1()
            .name("zcode-acp")
            .on_receive_request(
                async move |request: acp::InitializeRequest,
                            responder: Responder<acp::InitializeResponse>,
                            _cx| {
                    let traits = Box::new(ClientTraits::from_initialize(&request));
                    hand_over(&init, ToRegistry::Client(traits)).await;
                    responder.respond(initialize(&request))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                handing!(auth, acp::AuthenticateRequest, ToRegistry::Authenticate),
                on_receive_request!(),
            )
            .on_receive_request(
                handing!(new, WithServers<acp::NewSessionRequest>, ToRegistry::New),
                on_receive_request!(),
            )
            .on_receive_request(
                handing!(load, WithServers<acp::LoadSessionRequest>, to_load),
                on_receive_request!(),
            )
            .on_receive_request(
                handing!(resume, WithServers<acp::ResumeSessionRequest>, to_resume),
                on_receive_request!(),
            )
            .on_receive_request(
                handing!(list, acp::ListSessionsRequest, ToRegistry::List),
                on_receive_request!(),
            )
            .on_receive_request(
                handing!(close, acp::CloseSessionRequest, to_close),
                on_receive_request!(),
            )
            .on_receive_request(
                handing!(fork, WithServers<acp::ForkSessionRequest>, ToRegistry::Fork),
                on_receive_request!(),
            )
            .on_receive_request(
                handing!(prompt, acp::PromptRequest, to_prompt),
                on_receive_request!(),
            )
            .on_receive_request(
                handing!(mode, acp::SetSessionModeRequest, to_set_mode),
                on_receive_request!(),
            )
            .on_receive_request(
                handing!(option, acp::SetSessionConfigOptionRequest, to_set_option),
                on_receive_request!(),
            )
            .on_receive_notification(
                async move |cancel: acp::CancelNotification, _cx| {
                    hand_over(&stop, ToRegistry::Cancel(cancel.session_id.0.to_string())).await;
                    Ok(())
                },
                on_receive_notification!(),
            )
            .on_receive_dispatch(
                async move |message: Dispatch<UntypedMessage, UntypedMessage>, _cx| match message {
                    Dispatch::Request(request, responder) => {
                        match extension(request.method(), request.params()) {
                            Some(Ok(asked)) => {
                                hand_over(&other, asked.into_message(responder)).await;
                                Ok(Handled::Yes)
                            }
                            Some(Err(error)) => {
                                responder.respond_with_error(error)?;
                                Ok(Handled::Yes)
                            }
                            None => Ok(Handled::No {
                                message: Dispatch::Request(request, responder),
                                retry: false,
                            }),
                        }
                    }
                    message => Ok(Handled::No { message, retry: false }),
                },
                on_receive_dispatch!(),
            )
            .connect_with(client, async move |connection| {
                registry::run(config, connection, channels).await;
                Ok(())
            })
            .await
    }
}

/// Hands one message to the registry. Its queue is deep and it never waits for the client, so this
/// is at once; when the registry is gone the dropped responder answers by itself.
async fn hand_over(registry: &Registry, message: ToRegistry) {
    registry.send(message).await.ok();
}

fn to_session(id: &acp::SessionId, what: Request, responder: Responder<Value>) -> ToRegistry {
    ToRegistry::Session(id.0.to_string(), what, responder)
}

fn to_load(
    request: WithServers<acp::LoadSessionRequest>,
    responder: Responder<Value>,
) -> ToRegistry {
    let WithServers { request, problems } = request;
    let open = OpenRequest {
        problems,
        id: request.session_id.0.to_string(),
        cwd: request.cwd,
        mcp: request.mcp_servers,
        replay: true,
        limit: replay_limit(request.meta.as_ref()),
    };
    ToRegistry::Open(open, responder)
}

fn to_resume(
    request: WithServers<acp::ResumeSessionRequest>,
    responder: Responder<Value>,
) -> ToRegistry {
    let WithServers { request, problems } = request;
    let open = OpenRequest {
        problems,
        id: request.session_id.0.to_string(),
        cwd: request.cwd,
        mcp: request.mcp_servers,
        replay: false,
        limit: None,
    };
    ToRegistry::Open(open, responder)
}

fn to_close(request: acp::CloseSessionRequest, responder: Responder<Value>) -> ToRegistry {
    let acp::CloseSessionRequest { session_id, .. } = request;
    to_session(&session_id, Request::Close, responder)
}

fn to_prompt(request: acp::PromptRequest, responder: Responder<Value>) -> ToRegistry {
    to_session(&request.session_id, Request::Prompt(request.prompt), responder)
}

fn to_set_mode(request: acp::SetSessionModeRequest, responder: Responder<Value>) -> ToRegistry {
    let acp::SetSessionModeRequest { session_id, mode_id, .. } = request;
    to_session(&session_id, Request::SetMode(mode_id.0.to_string()), responder)
}

fn to_set_option(
    request: acp::SetSessionConfigOptionRequest,
    responder: Responder<Value>,
) -> ToRegistry {
    let what = Request::SetOption { id: request.config_id.0.to_string(), value: request.value };
    to_session(&request.session_id, what, responder)
}

/// `_meta.zcode.limit` of `session/load`: only the last messages.
fn replay_limit(meta: Option<&acp::Meta>) -> Option<usize> {
    let limit = meta?.get("zcode")?.get("limit")?.as_u64()?;
    usize::try_from(limit.min(500)).ok()
}

/// What an extension method asks for.
enum Asked {
    /// Something of a session.
    Session(String, Request),
    /// `usage_stats`, which is the account's and names no session.
    UsageStats,
}

impl Asked {
    fn into_message(self, responder: Responder<Value>) -> ToRegistry {
        match self {
            Self::Session(id, what) => ToRegistry::Session(id, what, responder),
            Self::UsageStats => ToRegistry::UsageStats(responder),
        }
    }
}

/// An untyped request: an extension method, or nothing of ours.
fn extension(method: &str, params: &Value) -> Option<Result<Asked, AcpError>> {
    let name = extensions::name_of(method)?;
    if name == extensions::USAGE_STATS {
        return Some(Ok(Asked::UsageStats));
    }
    let Some(id) = params.get("sessionId").and_then(Value::as_str) else {
        return Some(Err(invalid_params(format!("{method}: sessionId is missing"))));
    };
    let what = Request::Extension { name, params: params.clone() };
    Some(Ok(Asked::Session(id.to_owned(), what)))
}

/// The answer to `initialize`: what this agent can do, without asking any engine.
fn initialize(request: &acp::InitializeRequest) -> acp::InitializeResponse {
    let sessions = acp::SessionCapabilities::new()
        .list(acp::SessionListCapabilities::new())
        .resume(acp::SessionResumeCapabilities::new())
        .close(acp::SessionCloseCapabilities::new())
        .fork(acp::SessionForkCapabilities::new());
    let capabilities = acp::AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(acp::PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(acp::McpCapabilities::new().http(true).sse(true))
        .session_capabilities(sessions);
    let mut meta = acp::Meta::new();
    meta.insert(
        "zcode".to_owned(),
        json!({"extensionMethods": extensions::advertised(), "queue": {}}),
    );
    meta.insert("steering".to_owned(), steering_advert());
    acp::InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(
            acp::Implementation::new("zcode-acp", env!("CARGO_PKG_VERSION"))
                .title("ZCode".to_owned()),
        )
        .auth_methods(auth_methods(request))
        .meta(meta)
}

/// Always one method that needs nothing of the client; the terminal one only where it can be run.
fn auth_methods(request: &acp::InitializeRequest) -> Vec<acp::AuthMethod> {
    let stored = acp::AuthMethodAgent::new(AUTH_AGENT, "ZCode sign-in").description(
        "Uses the account or the keys that ZCode is set up with on this machine.".to_owned(),
    );
    let mut methods = vec![acp::AuthMethod::Agent(stored)];
    let caps = &request.client_capabilities;
    let legacy = caps.meta.as_ref().and_then(|m| m.get("terminal-auth")).and_then(Value::as_bool)
        == Some(true);
    if caps.auth.terminal {
        let login = acp::AuthMethodTerminal::new(AUTH_TERMINAL, "Sign in from the terminal")
            .description("Runs `zcode-acp --login`.".to_owned())
            .args(vec!["--login".to_owned()]);
        methods.push(acp::AuthMethod::Terminal(login));
    } else if legacy {
        let command = std::env::current_exe()
            .map_or_else(|_| "zcode-acp".to_owned(), |p| p.to_string_lossy().into_owned());
        let mut meta = acp::Meta::new();
        let run =
            json!({"label": "zcode-acp login", "command": command, "args": ["login"], "env": {}});
        meta.insert("terminal-auth".to_owned(), run);
        let login = acp::AuthMethodAgent::new(AUTH_TERMINAL, "Sign in from the terminal")
            .description("Runs `zcode-acp login`.".to_owned())
            .meta(meta);
        methods.push(acp::AuthMethod::Agent(login));
    }
    methods
}
