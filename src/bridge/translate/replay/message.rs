//! PURE. One stored message as updates. Tool cards come with their final state.

use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

use super::super::{Target, diff, output, subagent, text, tool};
use super::plumbing::{self, Collapsed};

/// Where a message stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Its position, which ids are made of where the engine gave none.
    pub(super) index: usize,
    /// It belongs to an earlier page, which clients put before what they have.
    pub(super) is_earlier: bool,
}

pub(super) fn updates(message: &Value, place: Place, target: &Target) -> Vec<acp::SessionUpdate> {
    let info = message.get("info").unwrap_or(&Value::Null);
    let head: plumbing::Info = serde_json::from_value(info.clone()).unwrap_or_default();
    let id = text::message_id(info).map_or_else(|| format!("hist_{}", place.index), str::to_owned);
    let parts = message.get("parts").and_then(Value::as_array);
    let teller = Teller { id, place, target, parts: parts.map(Vec::as_slice).unwrap_or_default() };
    match (head.role.as_str(), head.kind()) {
        (_, Some("compact_summary")) => teller.summary(info),
        (_, Some("timeline_event")) if !head.is_hidden() => teller.timeline(),
        _ if head.is_hidden() => Vec::new(),
        ("user", None | Some("user_prompt" | "slash_command")) => teller.user(),
        ("assistant", None | Some("assistant_response")) => teller.assistant(),
        ("user", Some("background_notification" | "subagent_notification" | "shared_context")) => {
            teller.card(&Collapsed { kind: "task-notification", title: "Background task".into() })
        }
        _ => Vec::new(),
    }
}

/// What a message that was told as `told` has to say beyond that now.
pub(super) fn rest(
    told: Vec<acp::SessionUpdate>,
    now: Vec<acp::SessionUpdate>,
) -> Vec<acp::SessionUpdate> {
    let mut told = told.into_iter();
    now.into_iter()
        .filter_map(|update| match told.next() {
            Some(before) if before == update => None,
            Some(before) => Some(beyond(&before, update)),
            None => Some(update),
        })
        .collect()
}

fn beyond(before: &acp::SessionUpdate, now: acp::SessionUpdate) -> acp::SessionUpdate {
    use acp::SessionUpdate as It;
    match (before, now) {
        (It::AgentMessageChunk(before), It::AgentMessageChunk(now)) => {
            It::AgentMessageChunk(longer(before, now))
        }
        (It::AgentThoughtChunk(before), It::AgentThoughtChunk(now)) => {
            It::AgentThoughtChunk(longer(before, now))
        }
        (It::ToolCall(before), It::ToolCall(now)) if before.tool_call_id == now.tool_call_id => {
            It::ToolCallUpdate(now.into())
        }
        (_, now) => now,
    }
}

/// Text that only grew is told from where it ended.
fn longer(before: &acp::ContentChunk, mut now: acp::ContentChunk) -> acp::ContentChunk {
    if let (acp::ContentBlock::Text(before), acp::ContentBlock::Text(now)) =
        (&before.content, &mut now.content)
        && let Some(more) = now.text.strip_prefix(&before.text)
    {
        now.text = more.to_owned();
    }
    now
}

struct Teller<'a> {
    id: String,
    place: Place,
    target: &'a Target,
    parts: &'a [Value],
}

impl Teller<'_> {
    fn user(&self) -> Vec<acp::SessionUpdate> {
        if let Some(collapsed) = plumbing::collapsed(&self.whole_text()) {
            return self.card(&collapsed);
        }
        let mut told = Vec::new();
        for part in self.parts {
            match kind(part) {
                "text" if is_shown(part) => {
                    let words = plumbing::without_reminders(part_text(part));
                    if !words.trim().is_empty() {
                        let block =
                            acp::ContentBlock::Text(acp::TextContent::new(words.into_owned()));
                        told.push(acp::SessionUpdate::UserMessageChunk(
                            self.chunk(block, &self.id),
                        ));
                    }
                }
                "file" => {
                    if let Some(block) = file(part) {
                        told.push(acp::SessionUpdate::UserMessageChunk(
                            self.chunk(block, &self.id),
                        ));
                    }
                }
                _ => {}
            }
        }
        told
    }

    fn assistant(&self) -> Vec<acp::SessionUpdate> {
        let mut told = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            let words = part_text(part);
            let block = || acp::ContentBlock::Text(acp::TextContent::new(words));
            match kind(part) {
                "text" if is_shown(part) && !words.is_empty() => {
                    let chunk = self.chunk(block(), &self.id);
                    told.push(acp::SessionUpdate::AgentMessageChunk(chunk));
                }
                "reasoning" if !words.is_empty() => {
                    let chunk = self.chunk(block(), &format!("thought_{}", self.id));
                    told.push(acp::SessionUpdate::AgentThoughtChunk(chunk));
                }
                "tool" => told.push(acp::SessionUpdate::ToolCall(self.tool(at, part))),
                "timeline" | "compaction" => told.extend(self.marker(at, part)),
                _ => {}
            }
        }
        told
    }

    fn timeline(&self) -> Vec<acp::SessionUpdate> {
        let marked = self.parts.iter().enumerate();
        marked.filter_map(|(at, part)| self.marker(at, part)).collect()
    }

    /// A compact summary: one closed card with the whole text.
    fn summary(&self, info: &Value) -> Vec<acp::SessionUpdate> {
        let title = info.pointer("/summary/title").and_then(Value::as_str);
        self.card(&Collapsed {
            kind: "compact",
            title: plumbing::cut(title.unwrap_or("Conversation compacted")),
        })
    }

    fn card(&self, collapsed: &Collapsed) -> Vec<acp::SessionUpdate> {
        let text = self.whole_text();
        let call = acp::ToolCall::new(format!("histfold_{}", self.id), collapsed.title.clone())
            .status(acp::ToolCallStatus::Completed)
            .content(output::plain(&text).into_iter().collect())
            .meta(self.meta(json!({"collapsed": true, "kind": collapsed.kind})));
        vec![acp::SessionUpdate::ToolCall(call)]
    }

    /// A point of the session's life: compacted, forked, goal checked.
    fn marker(&self, at: usize, part: &Value) -> Option<acp::SessionUpdate> {
        let kind = part.get("timelineType").and_then(Value::as_str);
        let title = match kind.unwrap_or("context_compaction") {
            "context_compaction" => "Conversation compacted",
            "session_fork" => "Session forked",
            "goal_verification" => "Goal checked",
            _ => return None,
        };
        let call = acp::ToolCall::new(format!("histmark_{}_{at}", self.id), title)
            .status(acp::ToolCallStatus::Completed)
            .meta(self.meta(json!({"collapsed": true, "kind": "timeline"})));
        Some(acp::SessionUpdate::ToolCall(call))
    }

    fn tool(&self, at: usize, part: &Value) -> acp::ToolCall {
        let text = |key: &str| part.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
        let state = part.get("state").unwrap_or(&Value::Null);
        let name = text("tool");
        let id = text("callId").or_else(|| text("callID")).or_else(|| text("id"));
        let id = id.map_or_else(|| format!("histtool_{}_{at}", self.id), str::to_owned);
        let input = state.get("input").filter(|i| i.as_object().is_some_and(|m| !m.is_empty()));
        let is_shell = name.is_some_and(tool::is_shell);
        let status = Self::status(state, is_shell);
        let display = state.pointer("/metadata/display");
        let found = display.and_then(|d| diff::from_display(d, self.target));
        let mut content = Vec::new();
        let mut locations =
            input.map(|i| tool::locations(name, i, self.target)).unwrap_or_default();
        if let Some(found) = found {
            content = found.content;
            locations = found.locations;
        } else if let Some(input) = input.filter(|_| name.is_some_and(tool::is_edit)) {
            content = diff::from_input(input, self.target);
        }
        let failed = status == acp::ToolCallStatus::Failed;
        let words = match state.get("error").filter(|_| failed) {
            Some(error) => output::error_text(error),
            None => state.get("output").map(output::result_text).unwrap_or_default(),
        };
        if content.is_empty() || failed {
            content.extend(tool::output_content(name, &words, failed));
        }
        let mut meta = tool::tool_meta(name, self.target.parent_tool_call.as_deref());
        if let Some(found) =
            subagent::from_result(&words).filter(|_| name.is_some_and(tool::is_subagent))
        {
            meta.insert("subagent".into(), found.to_meta());
        }
        if self.place.is_earlier {
            meta.insert("zcode".into(), json!({"earlierPage": true}));
        }
        acp::ToolCall::new(id, tool::title(name, input))
            .name(name.map(str::to_owned))
            .kind(name.map(tool::kind).unwrap_or_default())
            .status(status)
            .content(content)
            .locations(locations)
            .raw_input(input.cloned())
            .meta(Some(meta).filter(|m| !m.is_empty()))
    }

    /// The state as it was stored; a client settles what a turn left open when the history has ended.
    fn status(state: &Value, is_shell: bool) -> acp::ToolCallStatus {
        let metadata = state.get("metadata").unwrap_or(&Value::Null);
        match state.get("status").and_then(Value::as_str) {
            Some("running") => acp::ToolCallStatus::InProgress,
            Some("pending") => acp::ToolCallStatus::Pending,
            Some("error" | "failed" | "cancelled") => acp::ToolCallStatus::Failed,
            _ => {
                let code = metadata.get("exitCode").and_then(Value::as_i64);
                let code = code.or_else(|| output::exit_code(metadata));
                let code = code.or_else(|| output::exit_code(state.get("output")?));
                if is_shell && code.is_some_and(|c| c != 0) {
                    acp::ToolCallStatus::Failed
                } else {
                    acp::ToolCallStatus::Completed
                }
            }
        }
    }

    fn chunk(&self, block: acp::ContentBlock, id: &str) -> acp::ContentChunk {
        let earlier = self.place.is_earlier.then(|| self.meta(Value::Null));
        let meta = earlier.or_else(|| tool::parent_meta(self.target));
        acp::ContentChunk::new(block).message_id(acp::MessageId::new(id)).meta(meta)
    }

    fn meta(&self, facts: Value) -> acp::Meta {
        let mut inner = match facts {
            Value::Object(map) => map,
            _ => acp::Meta::new(),
        };
        if self.place.is_earlier {
            inner.insert("earlierPage".into(), json!(true));
        }
        let mut meta = acp::Meta::new();
        meta.insert("zcode".into(), Value::Object(inner));
        meta
    }

    fn whole_text(&self) -> String {
        let texts = self.parts.iter().filter(|p| kind(p) == "text").map(part_text);
        texts.filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

fn kind(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn part_text(part: &Value) -> &str {
    let text = part.get("text").or_else(|| part.get("content"));
    text.and_then(Value::as_str).unwrap_or_default()
}

fn is_shown(part: &Value) -> bool {
    let set = |key: &str| part.get(key) == Some(&Value::Bool(true));
    !set("synthetic") && !set("ignored")
}

/// An attachment: an image when its data is there, else a link.
fn file(part: &Value) -> Option<acp::ContentBlock> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    let url = text("url")?;
    let mime = text("mime").or_else(|| text("mimeType"));
    let name = text("filename").unwrap_or("attachment");
    if let Some((head, data)) =
        url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
    {
        let mime = mime.unwrap_or(head);
        return mime
            .starts_with("image/")
            .then(|| acp::ContentBlock::Image(acp::ImageContent::new(data, mime)));
    }
    let link = acp::ResourceLink::new(name, url).mime_type(mime.map(str::to_owned));
    Some(acp::ContentBlock::ResourceLink(link))
}
