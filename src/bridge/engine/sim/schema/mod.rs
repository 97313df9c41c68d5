//! PURE. The strict params schemas of every method (sections 3 and 8), as one table, and the
//! checker that names the path of what is wrong. An unknown, missing or wrong-typed key refuses
//! the whole request.

use super::profile::Profile;
use serde_json::{Map, Value};

/// What a value may be.
#[derive(Debug)]
pub(super) enum Ty {
    Any,
    Str,
    Bool,
    /// An integer within these bounds.
    Int(i64, i64),
    /// An object of any keys.
    Open,
    Enum(&'static [&'static str]),
    Obj(&'static [Field]),
    /// An array of at most so many.
    Arr(&'static Self, usize),
    /// The object's shape is chosen by its tag's value; `None` is "tag absent".
    Tagged(&'static str, &'static [(Option<&'static str>, &'static [Field])]),
    Nullable(&'static Self),
}

/// One key of an object.
#[derive(Debug)]
pub(super) struct Field {
    name: &'static str,
    ty: &'static Ty,
    required: bool,
}

const fn req(name: &'static str, ty: &'static Ty) -> Field {
    Field { name, ty, required: true }
}

const fn opt(name: &'static str, ty: &'static Ty) -> Field {
    Field { name, ty, required: false }
}

static STR: Ty = Ty::Str;
static BOOL: Ty = Ty::Bool;
static ANY: Ty = Ty::Any;
static OPEN: Ty = Ty::Open;
static COUNT: Ty = Ty::Int(0, i64::MAX);
static LIMIT: Ty = Ty::Int(1, 1_000_000);
static HUNDRED: Ty = Ty::Int(1, 100);
static ROWS: Ty = Ty::Int(1, 200);
static STRINGS: Ty = Ty::Arr(&Ty::Str, usize::MAX);
static IDS: Ty = Ty::Arr(&Ty::Str, 64);

static WS: Ty = Ty::Obj(&[
    req("workspacePath", &STR),
    req("workspaceKey", &STR),
    opt("workspaceIdentity", &ANY),
    opt("remoteSessionId", &STR),
]);
static MODEL: Ty = Ty::Obj(&[
    req("providerId", &STR),
    req("modelId", &STR),
    opt("options", &Ty::Obj(&[opt("reasoningLevel", &Ty::Str)])),
]);
static MODE: Ty = Ty::Enum(&["plan", "build", "edit", "yolo", "guarded", "auto"]);
static PAIRS: Ty = Ty::Arr(&Ty::Obj(&[req("name", &Ty::Str), req("value", &Ty::Str)]), usize::MAX);
const REMOTE_MCP: &[Field] = &[
    req("name", &STR),
    req("type", &Ty::Enum(&["http", "sse"])),
    req("url", &STR),
    req("headers", &PAIRS),
];
static MCP: Ty = Ty::Arr(
    &Ty::Tagged(
        "type",
        &[
            (
                None,
                &[
                    req("name", &STR),
                    req("command", &STR),
                    req("args", &STRINGS),
                    req("env", &PAIRS),
                ],
            ),
            (Some("http"), REMOTE_MCP),
            (Some("sse"), REMOTE_MCP),
        ],
    ),
    usize::MAX,
);
static ATTACHMENTS: Ty = Ty::Arr(
    &Ty::Obj(&[
        req("kind", &Ty::Enum(&["image", "pdf", "video", "file", "audio"])),
        opt("filename", &Ty::Str),
        opt("mimeType", &Ty::Str),
        opt("sizeBytes", &COUNT),
        opt("localPath", &Ty::Str),
        opt("dataBase64", &Ty::Str),
        opt("textContent", &Ty::Str),
    ]),
    usize::MAX,
);
static DELIVERY: Ty = Ty::Enum(&["desktop-continuous", "web-remote-replayable"]);
static FORK_TARGET: Ty = Ty::Tagged(
    "kind",
    &[
        (Some("latestCheckpoint"), &[req("kind", &STR)]),
        (Some("checkpoint"), &[req("kind", &STR), req("checkpointId", &STR)]),
        (Some("message"), &[req("kind", &STR), req("messageId", &STR)]),
        (Some("turn"), &[req("kind", &STR), req("turnIndex", &COUNT)]),
    ],
);
static V4_BASE: Ty = Ty::Obj(&[req("logEpoch", &Ty::Any), req("seq", &COUNT)]);

const SESSION: &[Field] = &[req("sessionId", &STR)];
const SEND: &[Field] = &[
    req("sessionId", &STR),
    req("content", &STR),
    opt("inputId", &STR),
    opt("queryId", &STR),
    opt("attachments", &ATTACHMENTS),
    opt("modelSelection", &MODEL),
    opt("toolDenylist", &STRINGS),
    opt("expectedRevision", &COUNT),
];

/// Every method with its params. The first entry whose method fits counts; see [`fields`].
static METHODS: &[(&str, &[Field])] = &[
    ("runtime/capabilities", &[]),
    (
        "session/create",
        &[
            req("workspace", &WS),
            opt("mode", &MODE),
            opt("model", &MODEL),
            opt("persistence", &Ty::Enum(&["immediate", "deferred"])),
            opt("thoughtLevel", &STR),
            opt("titleGenerationEnabled", &BOOL),
            opt("mcpServers", &MCP),
            opt("toolAllowlist", &STRINGS),
            opt("toolDenylist", &STRINGS),
            opt("sessionId", &STR),
            opt("parentSessionId", &STR),
        ],
    ),
    (
        "session/resume",
        &[
            req("sessionId", &STR),
            opt("workspace", &WS),
            opt("thoughtLevel", &STR),
            opt("mcpServers", &MCP),
            opt("toolAllowlist", &STRINGS),
            opt("toolDenylist", &STRINGS),
        ],
    ),
    (
        "session/list",
        &[
            opt("workspace", &WS),
            opt("sessionIds", &IDS),
            opt("includeArchived", &BOOL),
            opt("limit", &LIMIT),
        ],
    ),
    (
        "session/subscribe",
        &[
            req("sessionId", &STR),
            req("deliveryKind", &DELIVERY),
            opt("includeSnapshot", &BOOL),
            opt("afterSeq", &COUNT),
        ],
    ),
    ("session/send", SEND),
    ("session/stop", SESSION),
    (
        "session/read",
        &[
            req("sessionId", &STR),
            opt("deliveryKind", &DELIVERY),
            opt("messageLimit", &COUNT),
            opt("afterSeq", &COUNT),
            opt("contentProfile", &Ty::Enum(&["full", "index"])),
        ],
    ),
    (
        "session/messages",
        &[req("sessionId", &STR), opt("afterMessageId", &STR), opt("limit", &LIMIT)],
    ),
    ("session/events", &[req("sessionId", &STR), opt("afterSeq", &COUNT), opt("limit", &LIMIT)]),
    (
        "session/subagents",
        &[req("sessionId", &STR), opt("endedCursor", &STR), opt("endedLimit", &HUNDRED)],
    ),
    ("session/usage", SESSION),
    ("session/fork", &[req("sessionId", &STR), opt("target", &FORK_TARGET)]),
    ("session/compact", &[req("sessionId", &STR), opt("inputId", &STR), opt("instructions", &STR)]),
    (
        "session/goal",
        &[
            req("sessionId", &STR),
            req("action", &Ty::Enum(&["show", "set", "replace", "pause", "resume", "clear"])),
            opt("objective", &STR),
            opt("inputId", &STR),
        ],
    ),
    ("session/setMode", &[req("sessionId", &STR), req("mode", &MODE)]),
    (
        "session/setModel",
        &[req("sessionId", &STR), req("model", &MODEL), opt("persistAsWorkspaceLastUsed", &BOOL)],
    ),
    (
        "session/setThoughtLevel",
        &[
            req("sessionId", &STR),
            req("thoughtLevel", &STR),
            opt("persistAsWorkspaceLastUsed", &BOOL),
        ],
    ),
    ("session/cancelBackgroundTask", &[req("sessionId", &STR), req("taskId", &STR)]),
    ("session/close", &[req("sessionId", &STR), opt("expectedPersistence", &STR)]),
    ("session/steer", &[req("sessionId", &STR), req("content", &STR)]),
    ("workspace/readPresentation", &[req("workspace", &WS)]),
    ("workspace/readState", &[req("workspace", &WS)]),
    ("workspace/updateProviderRegistry", &[req("workspace", &WS), req("registry", &OPEN)]),
    ("workspace/cancelGenerateText", &[opt("requestId", &STR)]),
    (
        "mcp/list",
        &[
            req("workspace", &WS),
            opt("mcpServers", &MCP),
            opt("mode", &Ty::Enum(&["connect", "status"])),
        ],
    ),
    (
        "provider/updateAccountConfig",
        &[
            req("revision", &ANY),
            req("basedOnZCodeBuiltinRevision", &ANY),
            req("providers", &OPEN),
            req("states", &OPEN),
        ],
    ),
    (
        "v4/connection/flow",
        &[req("connectionId", &STR), req("state", &Ty::Enum(&["drained", "saturated", "closed"]))],
    ),
    (
        "v4/conversation/subscribe",
        &[
            req("topic", &STR),
            req("connectionId", &STR),
            req("clientMode", &DELIVERY),
            opt("workspace", &WS),
            opt("base", &V4_BASE),
        ],
    ),
    (
        "v4/conversation/resync",
        &[
            req("subscriptionId", &STR),
            req("topic", &STR),
            req("connectionId", &STR),
            req("base", &Ty::Nullable(&V4_BASE)),
            opt("forceSnapshot", &BOOL),
        ],
    ),
    (
        "v4/conversation/unsubscribe",
        &[req("topic", &STR), req("subscriptionId", &STR), req("connectionId", &STR)],
    ),
    (
        "v4/conversation/rowsRange",
        &[req("sessionId", &STR), opt("beforeRowId", &COUNT), req("limit", &ROWS)],
    ),
    (
        "v4/command",
        &[
            req("commandId", &STR),
            req("clientId", &STR),
            req("sessionId", &STR),
            req("type", &STR),
            req("payload", &OPEN),
            req("issuedAt", &COUNT),
            opt("baseRevision", &COUNT),
            opt("baseLogEpoch", &ANY),
        ],
    ),
];

/// Params of `session/setModel` on 0.15, which also took the model's bare id.
const OLD_SET_MODEL: &[Field] = &[
    req("sessionId", &STR),
    opt("modelId", &STR),
    opt("model", &MODEL),
    opt("persistAsWorkspaceLastUsed", &BOOL),
];

/// Payloads of `v4/command`, by its `type`. `None`: no source settles the keys, any object will do.
static COMMANDS: &[(&str, Option<&[Field]>)] = &[
    (
        "sendText",
        Some(&[
            req("text", &STR),
            opt("requestedDelivery", &Ty::Enum(&["startNow", "queue", "guide"])),
            opt("heldQueueDisposition", &STR),
            opt("attachments", &ATTACHMENTS),
            opt("modelSelection", &MODEL),
            opt("mode", &MODE),
        ]),
    ),
    ("stop", Some(&[opt("expectedForegroundExecutionId", &STR)])),
    ("cancelBackgroundWork", Some(&[req("workId", &STR)])),
    ("deleteQueueItem", None),
    ("editQueueItem", None),
    ("sendQueuedNow", None),
    ("setAutoDrain", None),
    ("resolveInteraction", None),
    ("switchModelConfig", None),
    ("switchCollaborationMode", None),
    ("pauseGoal", None),
    ("resumeGoal", None),
    ("renameSession", Some(&[req("title", &STR)])),
    ("compact", Some(&[opt("instructions", &STR)])),
];

/// The shapes of replies to the engine's own requests that are checked strictly.
static REPLIES: &[(&str, &[Field])] = &[
    (
        "session/requestRuntimePreferences",
        &[
            req("nativeSearchEnhancementsEnabled", &BOOL),
            opt("memoryEnabled", &BOOL),
            opt("askUserQuestionAutoResolutionEnabled", &BOOL),
        ],
    ),
    (
        "interaction/requestPermission",
        &[
            req("decision", &Ty::Enum(&["allow", "deny", "escalate", "modify"])),
            opt("reason", &STR),
            opt("modifiedInput", &OPEN),
            opt("permissionUpdates", &ANY),
        ],
    ),
    (
        "interaction/requestUserInput",
        &[
            req("action", &Ty::Enum(&["accept", "decline", "cancel"])),
            opt("content", &OPEN),
            opt("reason", &STR),
        ],
    ),
    (
        "interaction/requestProviderRuntimeHeaders",
        &[
            req("headersApplied", &BOOL),
            opt("requestAuth", &Ty::Obj(&[opt("apiKey", &Ty::Str), opt("headers", &Ty::Open)])),
            opt("errorMessage", &STR),
        ],
    ),
];

fn lookup(table: &'static [(&str, &[Field])], name: &str) -> Option<&'static [Field]> {
    table.iter().find(|(known, _)| *known == name).map(|(_, fields)| *fields)
}

/// Returns the params of a method; `None` when no build ever had it.
pub(super) fn fields(profile: Profile, method: &str) -> Option<&'static [Field]> {
    if method == "session/setModel" && profile == Profile::V015 {
        return Some(OLD_SET_MODEL);
    }
    lookup(METHODS, method)
}

/// Checks a request's params.
///
/// `Ok(())` when they fit; `Err` is the message of the -32602 reply.
pub(super) fn check_params(profile: Profile, method: &str, params: &Value) -> Result<(), String> {
    let Some(fields) = fields(profile, method) else { return Ok(()) };
    check_named(fields, params)
}

/// Checks the payload of a `v4/command`; an unknown type is an error too.
pub(super) fn check_command(kind: &str, payload: &Value) -> Result<(), String> {
    let (_, fields) = COMMANDS
        .iter()
        .find(|(known, _)| *known == kind)
        .ok_or_else(|| format!("Invalid params — type: unknown command {kind:?}"))?;
    match fields.and_then(|fields| object(fields, payload, "payload")) {
        None => Ok(()),
        Some(problem) => Err(format!("Invalid params — {problem}")),
    }
}

/// Checks what the host answered to a request of the engine's.
pub(super) fn check_reply(method: &str, result: &Value) -> Result<(), String> {
    match lookup(REPLIES, method) {
        Some(fields) => check_named(fields, result),
        None => Ok(()),
    }
}

fn check_named(fields: &'static [Field], value: &Value) -> Result<(), String> {
    match object(fields, value, "") {
        None => Ok(()),
        Some(problem) => Err(format!("Invalid params — {problem}")),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn expected(path: &str, what: &str) -> String {
    if path.is_empty() { format!("expected {what}") } else { format!("{path}: expected {what}") }
}

fn object(fields: &[Field], value: &Value, path: &str) -> Option<String> {
    let Value::Object(map) = value else { return Some(expected(path, "object")) };
    for field in fields {
        let here = join(path, field.name);
        match map.get(field.name) {
            Some(inner) => {
                if let Some(problem) = problem(field.ty, inner, &here) {
                    return Some(problem);
                }
            }
            None if field.required => return Some(expected(&here, field.ty.name())),
            None => {}
        }
    }
    let unknown = map.keys().find(|key| fields.iter().all(|f| f.name != key.as_str()))?;
    Some(format!("{}: Unrecognized key", join(path, unknown)))
}

impl Ty {
    fn name(&self) -> &'static str {
        match self {
            Self::Any => "value",
            Self::Str | Self::Enum(_) => "string",
            Self::Bool => "boolean",
            Self::Int(..) => "integer",
            Self::Open | Self::Obj(_) | Self::Tagged(..) => "object",
            Self::Arr(..) => "array",
            Self::Nullable(inner) => inner.name(),
        }
    }
}

fn problem(ty: &Ty, value: &Value, path: &str) -> Option<String> {
    let fits = match ty {
        Ty::Any => true,
        Ty::Str => value.is_string(),
        Ty::Bool => value.is_boolean(),
        Ty::Int(low, high) => value.as_i64().is_some_and(|n| (*low..=*high).contains(&n)),
        Ty::Open => value.is_object(),
        Ty::Enum(words) => match value.as_str() {
            Some(word) if words.contains(&word) => true,
            Some(_) => return Some(format!("{path}: expected one of {}", words.join("|"))),
            None => false,
        },
        Ty::Obj(fields) => return object(fields, value, path),
        Ty::Arr(inner, max) => {
            let Value::Array(items) = value else { return Some(expected(path, "array")) };
            if items.len() > *max {
                return Some(format!("{path}: expected at most {max} items"));
            }
            return items
                .iter()
                .enumerate()
                .find_map(|(i, item)| problem(inner, item, &join(path, &i.to_string())));
        }
        Ty::Tagged(tag, shapes) => {
            let Value::Object(map) = value else { return Some(expected(path, "object")) };
            return tagged(tag, shapes, map, value, path);
        }
        Ty::Nullable(inner) => {
            return if value.is_null() { None } else { problem(inner, value, path) };
        }
    };
    if fits { None } else { Some(expected(path, ty.name())) }
}

fn tagged(
    tag: &str,
    shapes: &'static [(Option<&'static str>, &'static [Field])],
    map: &Map<String, Value>,
    value: &Value,
    path: &str,
) -> Option<String> {
    let chosen = map.get(tag).and_then(Value::as_str);
    if let Some((_, fields)) = shapes.iter().find(|(name, _)| *name == chosen) {
        return object(fields, value, path);
    }
    let known: Vec<_> = shapes.iter().filter_map(|(name, _)| *name).collect();
    Some(format!("{}: expected one of {}", join(path, tag), known.join("|")))
}

#[cfg(test)]
mod tests;
