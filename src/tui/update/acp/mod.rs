//! ACP updates → the transcript.
//!
//! Owns the reading of `session/update`. Never fails: what it does not know becomes a plain card.
//! Called by the application for every update, live or replayed.

mod wording;

use std::fmt::Write as _;

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

use crate::tui::model::transcript::block::{
    BlockId, Notice, Plan, PlanEntry, Priority, Severity, StepStatus,
};
use crate::tui::model::transcript::body::{Body, DIFF_CAP, OUTPUT_CAP, SpillQueue};
use crate::tui::model::transcript::tool::{
    DiffPart, Exit, Location, ToolCall, ToolKind, ToolPart, ToolStatus,
};
use crate::tui::model::transcript::{Piece, Role, Transcript};

/// What became of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It is in the transcript.
    Shown,
    /// It is about the session, not the conversation: modes, options, commands, usage, titles.
    NotForTranscript,
}

/// Puts an update of the conversation's own session into the transcript.
pub fn apply(transcript: &mut Transcript, update: &acp::SessionUpdate, now_ms: u64) -> Applied {
    apply_within(transcript, None, update, now_ms)
}

/// Puts an update of a child session into the transcript, under that session's card.
pub fn apply_child(
    transcript: &mut Transcript,
    session_id: &str,
    update: &acp::SessionUpdate,
    now_ms: u64,
) -> Applied {
    let card = transcript.subagent(session_id, None, now_ms, |_| {});
    apply_within(transcript, Some((session_id, card)), update, now_ms)
}

/// Puts an update that did not parse into the transcript as a plain card.
pub fn apply_unknown(transcript: &mut Transcript, update: &Value, now_ms: u64) -> Applied {
    let name =
        update.get("sessionUpdate").and_then(Value::as_str).unwrap_or("update without a name");
    let json = serde_json::to_string_pretty(update).unwrap_or_default();
    transcript.unknown(name, json, now_ms);
    Applied::Shown
}

/// The child session an update came from, and its card.
type Child<'a> = Option<(&'a str, BlockId)>;

fn apply_within(
    transcript: &mut Transcript,
    child: Child<'_>,
    update: &acp::SessionUpdate,
    now_ms: u64,
) -> Applied {
    use acp::SessionUpdate as U;
    match update {
        U::UserMessageChunk(chunk) => message(transcript, child, Role::User, chunk, now_ms),
        U::AgentMessageChunk(chunk) => message(transcript, child, Role::Assistant, chunk, now_ms),
        U::AgentThoughtChunk(chunk) => message(transcript, child, Role::Thought, chunk, now_ms),
        U::ToolCall(call) => tool_call(transcript, child, call, now_ms),
        U::ToolCallUpdate(change) => tool_update(transcript, child, change, now_ms),
        // Nothing planned, and nothing that was.
        U::Plan(plan) if plan.entries.is_empty() && !transcript.has_plan("") => {}
        U::Plan(plan) => {
            transcript
                .set_plan(Plan { entries: entries(&plan.entries), ..Plan::default() }, now_ms);
        }
        U::PlanUpdate(change) => plan_update(transcript, &change.plan, now_ms),
        U::PlanRemoved(removed) => transcript.remove_plan(&removed.plan_id.0),
        U::Notice(notice) => {
            transcript.notice(None, to_notice(notice), now_ms);
        }
        U::CompactionUpdate(change) => compaction(transcript, change, now_ms),
        U::CompactionSummaryChunk(chunk) => {
            let id = chunk.compaction_id.0.to_string();
            let mut notice = compaction_notice(transcript, &id);
            notice.detail.push_str(&content_text(&chunk.content));
            transcript.notice(Some(&compaction_key(&id)), notice, now_ms);
        }
        U::SubagentUpdate(change) => subagent(transcript, child, change, now_ms),
        U::SessionMessage(message) => {
            session_message(transcript, child, message, now_ms);
        }
        U::SessionMessageChunk(chunk) => {
            let id = chunk.message_id.0.to_string();
            let text = content_text(&chunk.content);
            let piece = Piece {
                role: Role::Assistant,
                parent: child.map(|(_, card)| card),
                message_id: Some(&id),
                text: &text,
            };
            transcript.append(piece, now_ms);
        }
        U::AvailableCommandsUpdate(_)
        | U::CurrentModeUpdate(_)
        | U::ConfigOptionUpdate(_)
        | U::SessionInfoUpdate(_)
        | U::UsageUpdate(_) => return Applied::NotForTranscript,
        other => {
            let value = serde_json::to_value(other).unwrap_or_default();
            return apply_unknown(transcript, &value, now_ms);
        }
    }
    Applied::Shown
}

// ---- messages --------------------------------------------------------------------------------

fn message(
    transcript: &mut Transcript,
    child: Child<'_>,
    role: Role,
    chunk: &acp::ContentChunk,
    now_ms: u64,
) {
    let parent = parent_of(transcript, child, chunk.meta.as_ref(), now_ms);
    let message_id = chunk.message_id.as_ref().map(|id| id.0.to_string());
    if role == Role::User && chunk.meta.as_ref().is_some_and(|it| it.contains_key("zcode")) {
        // What a turn was guided with is no echo of its prompt.
        transcript.end_echo();
    }
    let piece = Piece { role, parent, message_id: message_id.as_deref(), text: "" };
    match &chunk.content {
        acp::ContentBlock::Text(text) => {
            if !text.text.is_empty() {
                let text = text.text.as_str();
                transcript.append(Piece { text, ..piece }, now_ms);
            }
        }
        other => {
            transcript.attach(piece, label(other), now_ms);
        }
    }
}

/// The card that an update belongs under: the one its metadata names, or its session's.
fn parent_of(
    transcript: &mut Transcript,
    child: Child<'_>,
    meta: Option<&acp::Meta>,
    now_ms: u64,
) -> Option<BlockId> {
    let above = child.map(|(_, card)| card);
    let named = meta
        .and_then(|meta| meta.get("claudeCode"))
        .and_then(|meta| meta.get("parentToolUseId"))
        .and_then(Value::as_str);
    match named {
        Some(id) => Some(transcript.tool(&scoped(child, id), above, now_ms, |_, _| {})),
        None => above,
    }
}

/// Tool ids are unique within a session only.
fn scoped(child: Child<'_>, id: &str) -> String {
    child.map_or_else(|| id.to_owned(), |(session, _)| format!("{session}/{id}"))
}

/// The text of a content block, or its label in brackets.
fn content_text(content: &acp::ContentBlock) -> String {
    match content {
        acp::ContentBlock::Text(text) => text.text.clone(),
        acp::ContentBlock::Resource(embedded) => match &embedded.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => text.text.clone(),
            _ => format!("[{}]", label(content)),
        },
        other => format!("[{}]", label(other)),
    }
}

/// One short name for content that is not text.
fn label(content: &acp::ContentBlock) -> String {
    match content {
        acp::ContentBlock::Text(text) => text.text.clone(),
        acp::ContentBlock::Image(image) => {
            format!("image {} {}", image.mime_type, size(image.data.len() / 4 * 3))
        }
        acp::ContentBlock::Audio(audio) => {
            format!("audio {} {}", audio.mime_type, size(audio.data.len() / 4 * 3))
        }
        acp::ContentBlock::ResourceLink(link) => {
            link.title.clone().unwrap_or_else(|| link.name.clone()).trim().to_owned()
        }
        acp::ContentBlock::Resource(embedded) => match &embedded.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => text.uri.clone(),
            acp::EmbeddedResourceResource::BlobResourceContents(blob) => blob.uri.clone(),
            _ => "resource".to_owned(),
        },
        _ => "content of an unknown kind".to_owned(),
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KB", bytes / 1024),
        _ => format!("{} MB", bytes / 1_048_576),
    }
}

// ---- tool calls ------------------------------------------------------------------------------

fn tool_call(transcript: &mut Transcript, child: Child<'_>, call: &acp::ToolCall, now_ms: u64) {
    terminal_meta(transcript, call.meta.as_ref());
    let parent = parent_of(transcript, child, call.meta.as_ref(), now_ms);
    let id = scoped(child, &call.tool_call_id.0);
    transcript.tool(&id, parent, now_ms, |card, spills| {
        card.placeholder = false;
        card.title.clone_from(&call.title);
        card.name.clone_from(&call.name);
        card.kind = kind(call.kind);
        set_status(card, call.status);
        if !call.locations.is_empty() {
            card.locations = locations(&call.locations);
        }
        if !call.content.is_empty() {
            set_parts(card, &call.content, spills);
        }
        set_input(card, call.raw_input.as_ref(), spills);
        set_output(card, call.raw_output.as_ref(), spills);
        embedded_terminal(card, call.meta.as_ref());
        card.background |= is_background(call.meta.as_ref());
    });
}

/// Whether a card's metadata names the task that goes on when the turn is over.
fn is_background(meta: Option<&acp::Meta>) -> bool {
    meta.and_then(|meta| meta.get("backgroundTask")).is_some_and(Value::is_object)
}

fn tool_update(
    transcript: &mut Transcript,
    child: Child<'_>,
    change: &acp::ToolCallUpdate,
    now_ms: u64,
) {
    terminal_meta(transcript, change.meta.as_ref());
    let parent = parent_of(transcript, child, change.meta.as_ref(), now_ms);
    let id = scoped(child, &change.tool_call_id.0);
    let fields = &change.fields;
    transcript.tool(&id, parent, now_ms, |card, spills| {
        if let Some(title) = &fields.title {
            card.title.clone_from(title);
            card.placeholder = false;
        }
        if let Some(name) = &fields.name {
            card.name = Some(name.clone());
        }
        if let Some(new) = fields.kind {
            card.kind = kind(new);
        }
        if let Some(status) = fields.status {
            set_status(card, status);
        }
        if let Some(new) = &fields.locations {
            card.locations = locations(new);
        }
        if let Some(content) = &fields.content {
            set_parts(card, content, spills);
        }
        set_input(card, fields.raw_input.as_ref(), spills);
        set_output(card, fields.raw_output.as_ref(), spills);
        embedded_terminal(card, change.meta.as_ref());
        card.background |= is_background(change.meta.as_ref());
    });
}

/// A card may name its terminal in metadata only.
fn embedded_terminal(card: &mut ToolCall, meta: Option<&acp::Meta>) {
    let Some(id) = ["terminal_info", "terminal_output"]
        .iter()
        .find_map(|name| meta?.get(*name)?.get("terminal_id")?.as_str())
    else {
        return;
    };
    let known =
        card.parts.iter().any(|part| matches!(part, ToolPart::Terminal(known) if known == id));
    if !known {
        card.parts.push(ToolPart::Terminal(id.to_owned()));
    }
}

/// `_meta.terminal_info`, `terminal_output` and `terminal_exit`: a terminal that the agent runs.
fn terminal_meta(transcript: &mut Transcript, meta: Option<&acp::Meta>) {
    let Some(meta) = meta else {
        return;
    };
    let id_of = |value: &Value| value.get("terminal_id").and_then(Value::as_str).map(str::to_owned);
    if let Some(info) = meta.get("terminal_info")
        && let Some(id) = id_of(info)
        && let Some(cwd) = info.get("cwd").and_then(Value::as_str)
    {
        transcript.terminal_cwd(&id, cwd);
    }
    if let Some(output) = meta.get("terminal_output")
        && let Some(id) = id_of(output)
        && let Some(data) = output.get("data").and_then(Value::as_str)
    {
        transcript.terminal_output(&id, data);
    }
    if let Some(exit) = meta.get("terminal_exit")
        && let Some(id) = id_of(exit)
    {
        let signal = exit.get("signal").and_then(Value::as_str);
        transcript.terminal_exit(
            &id,
            &Exit {
                code: exit.get("exit_code").and_then(Value::as_i64),
                signal: signal.map(str::to_owned),
            },
        );
    }
}

fn kind(kind: acp::ToolKind) -> ToolKind {
    match kind {
        acp::ToolKind::Read => ToolKind::Read,
        acp::ToolKind::Edit => ToolKind::Edit,
        acp::ToolKind::Delete => ToolKind::Delete,
        acp::ToolKind::Move => ToolKind::Move,
        acp::ToolKind::Search => ToolKind::Search,
        acp::ToolKind::Execute => ToolKind::Execute,
        acp::ToolKind::Think => ToolKind::Think,
        acp::ToolKind::Fetch => ToolKind::Fetch,
        acp::ToolKind::SwitchMode => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

/// A call that is over stays over: a late `pending` or `in_progress` changes nothing.
fn set_status(card: &mut ToolCall, status: acp::ToolCallStatus) {
    let new = match status {
        acp::ToolCallStatus::InProgress => ToolStatus::Running,
        acp::ToolCallStatus::Completed => ToolStatus::Completed,
        acp::ToolCallStatus::Failed => ToolStatus::Failed,
        _ => ToolStatus::Pending,
    };
    if new.is_final() || !card.status.is_final() {
        card.status = new;
    }
}

fn locations(locations: &[acp::ToolCallLocation]) -> Vec<Location> {
    locations
        .iter()
        .map(|location| Location { path: location.path.display().to_string(), line: location.line })
        .collect()
}

/// ACP content replaces what was there. Texts that continue theirs are continued.
fn set_parts(card: &mut ToolCall, content: &[acp::ToolCallContent], spills: &mut SpillQueue) {
    let mut old = std::mem::take(&mut card.parts).into_iter();
    for item in content {
        let before = old.next();
        // The child's own card stands under this one; its id says nothing to people.
        if matches!(item, acp::ToolCallContent::Session(_)) {
            continue;
        }
        card.parts.push(part(item, before, spills));
    }
}

fn part(
    item: &acp::ToolCallContent,
    before: Option<ToolPart>,
    spills: &mut SpillQueue,
) -> ToolPart {
    match item {
        acp::ToolCallContent::Content(content) => match &content.content {
            acp::ContentBlock::Text(_) | acp::ContentBlock::Resource(_) => {
                let text = content_text(&content.content);
                let mut body = match before {
                    Some(ToolPart::Text(body)) => body,
                    _ => Body::with_cap(OUTPUT_CAP),
                };
                body.replace(wording::report(&text), spills);
                ToolPart::Text(body)
            }
            other => ToolPart::Label(label(other)),
        },
        acp::ToolCallContent::Diff(diff) => {
            let side = |text: &str, spills: &mut SpillQueue| {
                let mut body = Body::with_cap(DIFF_CAP);
                body.append(text, spills);
                body
            };
            let path = diff.path.display().to_string();
            let (mut old, mut new) = match before {
                Some(ToolPart::Diff(known)) if known.path == path => (known.old, known.new),
                _ => (None, Body::with_cap(DIFF_CAP)),
            };
            match (&diff.old_text, &mut old) {
                (Some(text), Some(body)) => {
                    body.replace(text, spills);
                }
                (Some(text), None) => old = Some(side(text, spills)),
                (None, _) => old = None,
            }
            new.replace(&diff.new_text, spills);
            ToolPart::Diff(DiffPart { path, old, new })
        }
        acp::ToolCallContent::Terminal(terminal) => {
            ToolPart::Terminal(terminal.terminal_id.0.to_string())
        }
        other => ToolPart::Label(
            serde_json::to_value(other)
                .ok()
                .and_then(|value| {
                    let kind = value.get("type").and_then(Value::as_str)?;
                    let id = value.get("sessionId").and_then(Value::as_str);
                    Some(format!("{kind} {}", id.unwrap_or_default()).trim().to_owned())
                })
                .unwrap_or_else(|| "content of an unknown kind".to_owned()),
        ),
    }
}

fn set_input(card: &mut ToolCall, input: Option<&Value>, spills: &mut SpillQueue) {
    let Some(input) = input else {
        return;
    };
    if let Some(command) = command_of(input) {
        card.command = Some(command);
    }
    if let Some(title) = wording::title(&card.title, Some(input)) {
        card.title = title;
    }
    if let Some(text) = wording::input(input) {
        card.input.replace(&text, spills);
    }
}

/// The command line in a tool's input: a string, or a list of words.
fn command_of(input: &Value) -> Option<String> {
    let command = ["command", "cmd", "script"].iter().find_map(|name| input.get(name))?;
    match command {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(" "))
        }
        _ => None,
    }
}

fn set_output(card: &mut ToolCall, output: Option<&Value>, spills: &mut SpillQueue) {
    let Some(output) = output else {
        return;
    };
    let code =
        ["exitCode", "exit_code"].iter().find_map(|name| output.get(name)).and_then(Value::as_i64);
    if let Some(code) = code {
        card.exit = Some(Exit { code: Some(code), signal: None });
    }
    if let Some(reason) = ["error", "message"].iter().find_map(|name| output.get(name)) {
        card.error = match reason {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Object(fields) => {
                fields.get("message").and_then(Value::as_str).map(str::to_owned)
            }
            _ => card.error.take(),
        };
    }
    if let Some(text) = output_text(output) {
        card.output.replace(&text, spills);
    }
}

/// The part of `rawOutput` that a person wants to read.
fn output_text(output: &Value) -> Option<String> {
    match output {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Object(fields) => {
            let mut out = String::new();
            for name in ["output", "stdout", "stderr", "content", "text", "result"] {
                if let Some(Value::String(text)) = fields.get(name)
                    && !text.is_empty()
                {
                    if !out.is_empty() && !out.ends_with('\n') {
                        out.push('\n');
                    }
                    out.push_str(text);
                }
            }
            // Said to be empty: the envelope says no more.
            let is_said = |name: &&str| fields.get(*name).is_some_and(Value::is_string);
            if !out.is_empty() || ["output", "stdout", "content", "text"].iter().any(is_said) {
                return Some(out).filter(|out| !out.is_empty());
            }
            let only_reason = fields
                .iter()
                .all(|(name, _)| matches!(name.as_str(), "error" | "message" | "exitCode"));
            (!only_reason).then(|| serde_json::to_string_pretty(output).unwrap_or_default())
        }
        other => serde_json::to_string_pretty(other).ok(),
    }
}

// ---- plans, notices, compaction, subagents ---------------------------------------------------

fn entries(entries: &[acp::PlanEntry]) -> Vec<PlanEntry> {
    entries
        .iter()
        .map(|entry| PlanEntry {
            content: entry.content.clone(),
            status: match entry.status {
                acp::PlanEntryStatus::InProgress => StepStatus::InProgress,
                acp::PlanEntryStatus::Completed => StepStatus::Completed,
                _ => StepStatus::Pending,
            },
            priority: match entry.priority {
                acp::PlanEntryPriority::High => Priority::High,
                acp::PlanEntryPriority::Low => Priority::Low,
                _ => Priority::Medium,
            },
        })
        .collect()
}

fn plan_update(transcript: &mut Transcript, content: &acp::PlanUpdateContent, now_ms: u64) {
    let plan = match content {
        acp::PlanUpdateContent::Items(items) => Plan {
            id: items.plan_id.0.to_string(),
            entries: entries(&items.entries),
            ..Plan::default()
        },
        acp::PlanUpdateContent::File(file) => {
            Plan { id: file.plan_id.0.to_string(), uri: Some(file.uri.clone()), ..Plan::default() }
        }
        acp::PlanUpdateContent::Markdown(text) => Plan {
            id: text.plan_id.0.to_string(),
            markdown: Some(text.content.clone()),
            ..Plan::default()
        },
        other => {
            let value = serde_json::to_value(other).unwrap_or_default();
            apply_unknown(transcript, &value, now_ms);
            return;
        }
    };
    transcript.set_plan(plan, now_ms);
}

fn to_notice(notice: &acp::Notice) -> Notice {
    Notice {
        severity: match &notice.severity {
            acp::NoticeSeverity::Warning => Severity::Warning,
            acp::NoticeSeverity::Error => Severity::Error,
            _ => Severity::Info,
        },
        title: notice.title.clone(),
        detail: notice.description.clone().unwrap_or_default(),
        hint: None,
        running: false,
    }
}

fn compaction_key(id: &str) -> String {
    format!("compaction/{id}")
}

fn compaction_notice(transcript: &Transcript, id: &str) -> Notice {
    transcript.notice_of(&compaction_key(id)).cloned().unwrap_or(Notice {
        severity: Severity::Info,
        title: "compacting the context".to_owned(),
        detail: String::new(),
        hint: None,
        running: true,
    })
}

fn compaction(transcript: &mut Transcript, change: &acp::CompactionUpdate, now_ms: u64) {
    let id = change.compaction_id.0.to_string();
    let mut notice = compaction_notice(transcript, &id);
    let (title, severity, running) = match &change.status {
        acp::CompactionStatus::InProgress => ("compacting the context", Severity::Info, true),
        acp::CompactionStatus::Failed => ("compaction failed", Severity::Error, false),
        acp::CompactionStatus::Cancelled => ("compaction cancelled", Severity::Warning, false),
        _ => ("context compacted", Severity::Info, false),
    };
    title.clone_into(&mut notice.title);
    notice.severity = severity;
    notice.running = running;
    if let Some(summary) = change.summary.value() {
        notice.detail = summary.iter().map(content_text).collect();
    }
    if let Some(error) = change.error.value() {
        if !notice.detail.is_empty() {
            notice.detail.push('\n');
        }
        notice.detail.push_str(error);
    }
    transcript.notice(Some(&compaction_key(&id)), notice, now_ms);
}

fn subagent(
    transcript: &mut Transcript,
    child: Child<'_>,
    change: &acp::SubagentUpdate,
    now_ms: u64,
) {
    let parent = parent_of(transcript, child, change.meta.value(), now_ms);
    transcript.subagent(&change.session_id.0, parent, now_ms, |agent| {
        if let Some(title) = change.title.value() {
            agent.title.clone_from(title);
        }
        if let Some(description) = change.description.value() {
            agent.description.clone_from(description);
        }
        if let Some(can) = change.capabilities.value() {
            agent.cancellable = can.cancel.is_some();
        }
        match change.state.value() {
            Some(acp::StateUpdate::Idle(idle)) => {
                agent.running = false;
                agent.failure = idle.stop_reason.as_ref().and_then(failure);
            }
            Some(acp::StateUpdate::Running(_) | acp::StateUpdate::RequiresAction(_)) => {
                agent.running = true;
                agent.told = true;
            }
            _ => {}
        }
    });
}

/// Why a child session stopped, when not because it was done.
fn failure(reason: &acp::IdleStopReason) -> Option<String> {
    match reason {
        acp::IdleStopReason::EndTurn => None,
        acp::IdleStopReason::Error(error) => Some(
            error.error.as_ref().map_or_else(|| "failed".to_owned(), |error| error.message.clone()),
        ),
        other => {
            let value = serde_json::to_value(other).unwrap_or_default();
            let mut out = String::new();
            match value.get("stopReason").or(Some(&value)) {
                Some(Value::String(text)) => out.push_str(text),
                _ => {
                    // Writing to a String cannot fail.
                    let _infallible = write!(out, "{value}");
                }
            }
            Some(out)
        }
    }
}

fn session_message(
    transcript: &mut Transcript,
    child: Child<'_>,
    message: &acp::SessionMessage,
    now_ms: u64,
) {
    let Some(content) = message.content.value() else {
        return;
    };
    let text: String = content.iter().map(content_text).collect();
    let id = message.message_id.0.to_string();
    let piece = Piece {
        role: Role::Assistant,
        parent: child.map(|(_, card)| card),
        message_id: Some(&id),
        text: &text,
    };
    transcript.append(piece, now_ms);
}

#[cfg(test)]
mod tests;
