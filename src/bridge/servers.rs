//! A request with MCP servers, of which every one is looked at by itself: a malformed entry would
//! make the whole request unreadable, without a word about which one it was. It is left out and
//! named instead. Called by `agent`.

use agent_client_protocol::{Error as AcpError, JsonRpcMessage, JsonRpcRequest, UntypedMessage};
use serde_json::Value;

use super::translate::mcp::{self, McpProblem};

/// A request and what was left out of its `mcpServers`.
#[derive(Debug, Clone)]
pub(crate) struct WithServers<T> {
    pub(crate) request: T,
    pub(crate) problems: Vec<McpProblem>,
}

impl<T: JsonRpcMessage> JsonRpcMessage for WithServers<T> {
    fn matches_method(method: &str) -> bool {
        T::matches_method(method)
    }

    fn method(&self) -> &str {
        self.request.method()
    }

    fn to_untyped_message(&self) -> Result<UntypedMessage, AcpError> {
        self.request.to_untyped_message()
    }

    fn parse_message(method: &str, params: &Value) -> Result<Self, AcpError> {
        let (readable, problems) = mcp::readable(params);
        let request = T::parse_message(method, readable.as_ref().unwrap_or(params))?;
        Ok(Self { request, problems })
    }
}

impl<T: JsonRpcRequest> JsonRpcRequest for WithServers<T> {
    type Response = T::Response;
}
