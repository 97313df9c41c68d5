//! PURE. A client's MCP servers to the engine's strict entries (engine protocol section 3). One
//! bad entry would fail the whole `session/create`, so each is checked alone and a bad one is
//! named. Called by the session machine.

use std::collections::HashSet;

use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

/// What the engine is sent, and what it is not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpServers {
    /// `mcpServers` of create and resume; leave the key out when empty.
    pub entries: Vec<Value>,
    /// The servers that are left out.
    pub problems: Vec<McpProblem>,
}

/// A server that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpProblem {
    /// Its name.
    pub name: String,
    /// What is wrong, for the user.
    pub reason: String,
}

impl McpServers {
    /// The user's words about what was left out; `None` when nothing was.
    pub fn remark(&self) -> Option<String> {
        let lines: Vec<String> = self
            .problems
            .iter()
            .map(|p| format!("MCP server {:?} is left out: {}.", p.name, p.reason))
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// The params without the entries of `mcpServers` that are no servers at all, when there are such,
/// and their names. Nothing of an entry but its name is repeated: it may hold secrets.
pub fn readable(params: &Value) -> (Option<Value>, Vec<McpProblem>) {
    let Some(servers) = params.get("mcpServers").and_then(Value::as_array) else {
        return (None, Vec::new());
    };
    let mut problems = Vec::new();
    let mut kept = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        if serde_json::from_value::<acp::McpServer>(server.clone()).is_ok() {
            kept.push(server.clone());
            continue;
        }
        let name = server.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.map_or_else(|| format!("number {}", at + 1), str::to_owned);
        problems.push(McpProblem { name, reason: shape_problem(server).to_owned() });
    }
    if problems.is_empty() {
        return (None, problems);
    }
    let mut params = params.clone();
    if let Value::Object(map) = &mut params {
        map.insert("mcpServers".to_owned(), Value::Array(kept));
    }
    (Some(params), problems)
}

/// What is missing from an entry, as far as its kind tells.
fn shape_problem(server: &Value) -> &'static str {
    let has = |key: &str, is: fn(&Value) -> bool| server.get(key).is_some_and(is);
    match server.get("type").and_then(Value::as_str) {
        _ if !server.is_object() => "it is not an object",
        Some("http" | "sse") if !has("url", Value::is_string) => "it has no url",
        Some("http" | "sse") => "its headers are not a list of names and values",
        Some("stdio") | None if !has("command", Value::is_string) => "it has no command",
        Some("stdio") | None if !has("args", Value::is_array) => "its args are not a list",
        Some("stdio") | None => "its env is not a list of names and values",
        Some(_) => "its type is none of stdio, http and sse",
    }
}

/// Checks and translates the servers; `problems` is what was found wrong before.
pub fn to_engine(servers: &[acp::McpServer], problems: Vec<McpProblem>) -> McpServers {
    let mut found = McpServers { problems, ..McpServers::default() };
    let mut names = HashSet::new();
    for server in servers {
        let (name, result) = match server {
            acp::McpServer::Stdio(s) => (&s.name, stdio(s)),
            acp::McpServer::Http(s) => (&s.name, remote(&s.name, "http", &s.url, &s.headers)),
            acp::McpServer::Sse(s) => (&s.name, remote(&s.name, "sse", &s.url, &s.headers)),
            acp::McpServer::Acp(s) => {
                (&s.name, Err("the engine takes no servers over ACP".to_owned()))
            }
            _ => {
                let reason = "its kind of connection is not known".to_owned();
                found.problems.push(McpProblem { name: String::new(), reason });
                continue;
            }
        };
        let result = match result {
            Ok(_) if name.trim().is_empty() => Err("it has no name".to_owned()),
            Ok(_) if !names.insert(name.clone()) => Err("another one has the same name".to_owned()),
            other => other,
        };
        match result {
            Ok(entry) => found.entries.push(entry),
            Err(reason) => found.problems.push(McpProblem { name: name.clone(), reason }),
        }
    }
    found
}

fn stdio(server: &acp::McpServerStdio) -> Result<Value, String> {
    let command = server.command.to_str().ok_or("its command is not UTF-8")?;
    if command.trim().is_empty() {
        return Err("it has no command".to_owned());
    }
    for variable in &server.env {
        if variable.name.is_empty()
            || variable.name.contains(['=', '\0'])
            || variable.value.contains('\0')
        {
            return Err(format!("its environment variable {:?} is not a valid one", variable.name));
        }
    }
    let env: Vec<Value> =
        server.env.iter().map(|v| json!({"name": v.name, "value": v.value})).collect();
    Ok(json!({"name": server.name, "command": command, "args": server.args, "env": env}))
}

fn remote(name: &str, kind: &str, url: &str, headers: &[acp::HttpHeader]) -> Result<Value, String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|r| r.split(['/', '?', '#']).next()).unwrap_or_default();
    if host.is_empty() || url.contains(char::is_whitespace) {
        return Err("its URL is not an http or https URL".to_owned());
    }
    for header in headers {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if header.name.is_empty()
            || !header.name.chars().all(is_token)
            || header.value.contains(['\r', '\n', '\0'])
        {
            return Err(format!("its header {:?} is not a valid one", header.name));
        }
    }
    let headers: Vec<Value> =
        headers.iter().map(|h| json!({"name": h.name, "value": h.value})).collect();
    Ok(json!({"name": name, "type": kind, "url": url, "headers": headers}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(servers: Value) -> McpServers {
        to_engine(&serde_json::from_value::<Vec<acp::McpServer>>(servers).unwrap(), Vec::new())
    }

    #[test]
    fn entries_that_are_no_servers_are_named_and_their_secrets_are_not() {
        let params = json!({"cwd": "/w", "mcpServers": [{"name": "a", "env": [{"name": "K", "value": "secret"}]},
            {"name": "b", "command": "x", "args": [], "env": []}, {"type": "http", "headers": []}, 5,
            {"type": "ws", "name": "w", "url": "secret"}, {"name": "d", "command": "x", "env": "secret"}]});
        let (rest, problems) = readable(&params);
        let rest = rest.unwrap();
        assert_eq!((rest["mcpServers"].as_array().unwrap().len(), &rest["cwd"]), (1, &json!("/w")));
        let remark = McpServers { entries: Vec::new(), problems }.remark().unwrap();
        let lines: Vec<&str> = remark.lines().collect();
        assert_eq!(
            lines,
            [
                "MCP server \"a\" is left out: it has no command.",
                "MCP server \"number 3\" is left out: it has no url.",
                "MCP server \"number 4\" is left out: it is not an object.",
                "MCP server \"w\" is left out: its type is none of stdio, http and sse.",
                "MCP server \"d\" is left out: its args are not a list.",
            ]
        );
        assert_eq!(readable(&rest), (None, Vec::new()));
        assert_eq!(readable(&json!({"mcpServers": 5})), (None, Vec::new()));
    }

    #[test]
    fn good_servers_become_strict_entries() {
        let got = read(json!([
            {"name": "fs", "command": "/bin/fs", "args": ["-v"], "env": [{"name": "A", "value": "1", "_meta": {"x": 1}}], "_meta": {}},
            {"type": "http", "name": "web", "url": "https://x/mcp", "headers": [{"name": "Authorization", "value": "Bearer t"}]},
            {"type": "sse", "name": "ev", "url": "http://localhost:1/s", "headers": []}]));
        assert_eq!(got.problems, []);
        assert_eq!(
            got.entries,
            [
                json!({"name": "fs", "command": "/bin/fs", "args": ["-v"], "env": [{"name": "A", "value": "1"}]}),
                json!({"name": "web", "type": "http", "url": "https://x/mcp", "headers": [{"name": "Authorization", "value": "Bearer t"}]}),
                json!({"name": "ev", "type": "sse", "url": "http://localhost:1/s", "headers": []})
            ]
        );
        assert_eq!(got.remark(), None);
    }

    #[test]
    fn a_bad_server_is_named_and_the_good_ones_stay() {
        let got = read(json!([
            {"name": "good", "command": "x", "args": [], "env": []},
            {"name": "good", "command": "y", "args": [], "env": []},
            {"name": " ", "command": "x", "args": [], "env": []},
            {"name": "empty", "command": " ", "args": [], "env": []},
            {"name": "env", "command": "x", "args": [], "env": [{"name": "A=B", "value": ""}]},
            {"type": "http", "name": "ftp", "url": "ftp://x", "headers": []},
            {"type": "http", "name": "nohost", "url": "https:///x", "headers": []},
            {"type": "http", "name": "header", "url": "https://x", "headers": [{"name": "Bad Name", "value": "secret"}]}]));
        assert_eq!(got.entries.len(), 1);
        let names: Vec<&str> = got.problems.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["good", " ", "empty", "env", "ftp", "nohost", "header"]);
        let remark = got.remark().unwrap();
        assert!(
            remark.contains("MCP server \"ftp\" is left out: its URL is not an http or https URL.")
        );
        assert!(!remark.contains("secret"));
    }
}
