//! PURE. One open card: what is known of it, and the updates that each stage becomes. A terminal
//! card follows the three-message convention (bridge behaviour 3.7): data, then the end, never
//! merged, because a client clears the terminal when they are.

use std::borrow::Cow;

use agent_client_protocol::v1::schema as acp;
use serde_json::{Value, json};

use super::super::{Output, Target, Want, diff, output, subagent};
use super::printed::Printed;
use super::{CardEnd, INPUT_LIMIT, NewCard, Stage, ToolProgress, facts, tool_meta};

/// Partial input is looked at for a title only this far.
const EARLY_TITLE: usize = 2048;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Diff,
    Output,
}

/// A call that has not ended.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not one state")]
pub(super) struct Card {
    id: acp::ToolCallId,
    name: Option<String>,
    parent: Option<String>,
    input: Option<Value>,
    /// Streamed input that is not complete yet.
    buffer: String,
    early_title: bool,
    own_title: bool,
    dirty: bool,
    running: bool,
    terminal: bool,
    shown: Shown,
    stdout: output::Tail,
    stderr: output::Tail,
    /// What its terminal was sent.
    printed: Printed,
    last: [String; 2],
    /// Bytes in `last` that were not shown yet.
    untold: usize,
    /// Goes on after its turn; ended by the task's own life cycle.
    pub(super) background: bool,
    /// The background task that runs in this card.
    pub(super) task: Option<String>,
    /// Cards are numbered in the order they were made.
    pub(super) ordinal: u64,
}

impl Card {
    /// Makes the card and announces it.
    pub(super) fn open(
        new: NewCard<'_>,
        stage: Stage,
        ordinal: u64,
        target: &Target,
        out: &mut Output,
    ) -> Self {
        let name = new.name.filter(|n| !n.is_empty());
        let input = new.input.filter(|i| !i.is_null());
        let parent = new.parent.or(target.parent_tool_call.as_deref());
        let terminal = target.traits.streams_terminal()
            && name.is_some_and(facts::is_shell)
            && new.content.is_none();
        let card = Self {
            id: acp::ToolCallId::new(new.id),
            name: name.map(str::to_owned),
            parent: parent.map(str::to_owned),
            input: input.cloned(),
            buffer: String::new(),
            early_title: false,
            own_title: new.title.is_some(),
            dirty: false,
            running: stage == Stage::Running,
            terminal,
            shown: Shown::Nothing,
            stdout: output::Tail::default(),
            stderr: output::Tail::default(),
            printed: Printed::default(),
            last: [String::new(), String::new()],
            untold: 0,
            background: false,
            task: None,
            ordinal,
        };
        let status = match stage {
            Stage::Pending => acp::ToolCallStatus::Pending,
            Stage::Running => acp::ToolCallStatus::InProgress,
        };
        let mut meta = card.meta();
        meta.extend(new.meta.cloned().unwrap_or_default());
        let mut content = new.content.map(<[_]>::to_vec).unwrap_or_default();
        if terminal {
            let info = json!({"terminal_id": new.id, "cwd": target.cwd});
            meta.insert("terminal_info".into(), info);
            content = vec![card.terminal_content()];
        } else if content.is_empty() {
            content = card.input_diff(target);
        }
        if name.is_some_and(facts::is_subagent) {
            meta.insert("subagent".into(), json!(true));
        }
        let title = new.title.map_or_else(|| facts::title(name, input), str::to_owned);
        let call = acp::ToolCall::new(card.id.clone(), title)
            .name(card.name.clone())
            .kind(name.map(facts::kind).unwrap_or_default())
            .status(status)
            .content(content)
            .locations(card.locations(target))
            .raw_input(card.raw_input())
            .meta(Some(meta).filter(|m| !m.is_empty()));
        out.push(acp::SessionUpdate::ToolCall(call));
        card
    }

    pub(super) fn is_running(&self) -> bool {
        self.running
    }

    /// Takes what an event knows beyond what was known. Told by [`Self::settle_input`].
    pub(super) fn learn(&mut self, new: NewCard<'_>) {
        if self.name.is_none()
            && let Some(name) = new.name.filter(|n| !n.is_empty())
        {
            self.name = Some(name.to_owned());
            self.dirty = true;
        }
        if self.parent.is_none()
            && let Some(parent) = new.parent
        {
            self.parent = Some(parent.to_owned());
            self.dirty = true;
        }
        if let Some(input) = new.input.filter(|i| !i.is_null())
            && self.input.as_ref() != Some(input)
        {
            self.input = Some(input.clone());
            self.buffer = String::new();
            self.dirty = true;
        }
    }

    /// A piece of the input's JSON text. Tells the title once it can be read, and nothing else:
    /// sending the growing input again and again would cost the square of its length.
    pub(super) fn stream_input(&mut self, piece: &str, target: &Target, out: &mut Output) {
        if self.input.is_some() || self.buffer.len() + piece.len() > INPUT_LIMIT {
            return;
        }
        self.buffer.push_str(piece);
        if self.early_title || self.own_title || self.buffer.len() > EARLY_TITLE {
            return;
        }
        if let Some(title) = facts::early_title(self.name.as_deref(), &self.buffer) {
            self.early_title = true;
            self.send(acp::ToolCallUpdateFields::new().title(title), target, out);
        }
    }

    /// Reads the streamed input when no other came, and tells the client what was learnt.
    pub(super) fn settle_input(&mut self, target: &Target, out: &mut Output) {
        if self.input.is_none()
            && !self.buffer.is_empty()
            && let Ok(input) = serde_json::from_str(&self.buffer)
        {
            self.input = Some(input);
            self.buffer = String::new();
            self.dirty = true;
        }
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let name = self.name.as_deref();
        let mut fields = acp::ToolCallUpdateFields::new()
            .name(self.name.clone())
            .kind(name.map(facts::kind))
            .raw_input(self.raw_input());
        if !self.own_title {
            fields = fields.title(facts::title(name, self.input.as_ref()));
        }
        let locations = self.locations(target);
        if !locations.is_empty() {
            fields = fields.locations(locations);
        }
        let diffs = self.input_diff(target);
        if !diffs.is_empty() && self.shown != Shown::Output {
            fields = fields.content(diffs);
        }
        self.send(fields, target, out);
    }

    /// The call runs.
    pub(super) fn start(&mut self, target: &Target, out: &mut Output) {
        if !std::mem::replace(&mut self.running, true) {
            let mut fields =
                acp::ToolCallUpdateFields::new().status(acp::ToolCallStatus::InProgress);
            // A permission dialog may have put the command in the terminal's place.
            if self.terminal {
                fields = fields.content(vec![self.terminal_content()]);
            }
            self.send(fields, target, out);
        }
    }

    /// More output of a running call.
    pub(super) fn progress(&mut self, progress: &ToolProgress, target: &Target, out: &mut Output) {
        self.settle_input(target, out);
        let tails = [progress.stdout_tail.as_deref(), progress.stderr_tail.as_deref()];
        self.tails(tails, target, out);
        if let [None, None] = tails
            && let Some(preview) = &progress.output_preview
        {
            let text = output::result_text(preview);
            self.tails([Some(&text), None], target, out);
        }
        self.start(target, out);
    }

    /// Shows cumulative tails: what is new of them in a terminal, their end elsewhere.
    pub(super) fn tails(&mut self, tails: [Option<&str>; 2], target: &Target, out: &mut Output) {
        let mut fresh = String::new();
        for (tail, seen) in tails.iter().zip([&mut self.stdout, &mut self.stderr]) {
            fresh.push_str(tail.map_or("", |tail| seen.advance(tail)));
        }
        if fresh.is_empty() {
            return;
        }
        if self.terminal {
            self.data(&fresh, target, out);
            self.start(target, out);
            return;
        }
        if self.shown == Shown::Diff {
            return;
        }
        for (tail, last) in tails.iter().zip(&mut self.last) {
            if let Some(tail) = tail {
                output::last_bytes(tail, 8192).clone_into(last);
            }
        }
        if let Some(block) = output::running(&[&self.last[0], &self.last[1]]) {
            self.shown = Shown::Output;
            let fields = acp::ToolCallUpdateFields::new().content(vec![block]);
            self.running = true;
            self.send(fields.status(acp::ToolCallStatus::InProgress), target, out);
        }
    }

    /// A piece of output at its place. A terminal gets it at once; elsewhere the output's end is
    /// shown again by the line or the kibibyte, because it replaces what was shown.
    pub(super) fn piece(&mut self, at: usize, text: &str, target: &Target, out: &mut Output) {
        let fresh = self.stdout.advance_at(at, text);
        if fresh.is_empty() {
            return;
        }
        if self.terminal {
            self.data(fresh, target, out);
            return self.start(target, out);
        }
        if self.shown == Shown::Diff {
            return;
        }
        let [last, _] = &mut self.last;
        last.push_str(fresh);
        self.untold += fresh.len();
        if self.shown == Shown::Output && !fresh.contains('\n') && self.untold < 1024 {
            return;
        }
        self.untold = 0;
        *last = output::last_bytes(last, 8192).to_owned();
        if let Some(block) = output::running(&[&self.last[0], &self.last[1]]) {
            self.shown = Shown::Output;
            self.running = true;
            let fields = acp::ToolCallUpdateFields::new().content(vec![block]);
            self.send(fields.status(acp::ToolCallStatus::InProgress), target, out);
        }
    }

    /// The result. Returns false when the call goes on in the background.
    pub(super) fn finish(
        &mut self,
        result: &Value,
        duration: Option<u64>,
        target: &Target,
        out: &mut Output,
    ) -> bool {
        let text = output::result_text(result);
        let is_command = self.name.as_deref().is_some_and(facts::is_shell)
            || result.pointer("/perf/detail/kind").and_then(Value::as_str) == Some("command");
        let code = if is_command { output::exit_code(result) } else { None };
        let failed = output::is_failure(result) || code.is_some_and(|c| c != 0);
        if !failed && self.is_launch(&text) {
            self.launch(&text, target, out);
            return false;
        }
        if self.terminal {
            self.rest_of_terminal(&text, target, out);
            self.exit(failed, code.unwrap_or(i64::from(failed)), target, out);
        } else {
            let raw = RawOutput { text: &text, code, duration, failed };
            self.report(result, &raw, target, out);
        }
        if !failed {
            self.ask_further(result, out);
        }
        true
    }

    /// The call failed outside the tool.
    pub(super) fn fail(&mut self, text: &str, target: &Target, out: &mut Output) {
        if self.terminal {
            self.rest_of_terminal(text, target, out);
            self.exit(true, 1, target, out);
            return;
        }
        // What it printed until then stays beside the words.
        let mut said = match self.shown {
            Shown::Output => output::joined([self.last[0].trim_end(), self.last[1].trim_end()]),
            Shown::Nothing | Shown::Diff => Cow::Borrowed(""),
        };
        said = Cow::Owned(output::joined([&said, text]).into_owned());
        let raw = RawOutput { text: &said, code: None, duration: None, failed: true };
        self.report(&Value::Null, &raw, target, out);
    }

    /// Ends the card without a result of its own, keeping what it shows.
    pub(super) fn settle(&mut self, failed: bool, target: &Target, out: &mut Output) {
        if self.terminal {
            self.exit(failed, i64::from(failed), target, out);
        } else {
            let fields = acp::ToolCallUpdateFields::new().status(status(failed));
            self.send(fields, target, out);
        }
    }

    /// Ends the card because its turn, engine or bridge ended.
    pub(super) fn close(&mut self, end: CardEnd, target: &Target, out: &mut Output) {
        let failed = end != CardEnd::Completed;
        if let Some(task) = &self.task {
            let mut meta = acp::Meta::new();
            let facts = json!({"taskId": task, end.word(): true});
            meta.insert("backgroundTask".into(), facts);
            self.end_background(failed, meta, None, out);
            return;
        }
        if self.terminal {
            self.exit(failed, i64::from(failed), target, out);
            return;
        }
        let mut fields = acp::ToolCallUpdateFields::new().status(status(failed));
        let words = match end {
            CardEnd::Completed => None,
            CardEnd::Cancelled => Some("Cancelled before it finished."),
            CardEnd::Failed => Some("The turn failed before it finished."),
            CardEnd::EngineLost => Some("The engine ended before it finished."),
            CardEnd::Shutdown => Some("Ended together with the bridge."),
            CardEnd::Closed => Some("Ended together with its session."),
        };
        if self.shown == Shown::Nothing
            && let Some(block) = words.and_then(output::plain)
        {
            fields = fields.content(vec![block]);
        }
        let mut meta = self.meta();
        meta.insert("zcode".into(), json!({"endedBy": end.word()}));
        self.send_with(fields, meta, out);
    }

    /// Ends a background card by its task's last status.
    pub(super) fn end_background(
        &mut self,
        failed: bool,
        mut meta: acp::Meta,
        content: Option<acp::ToolCallContent>,
        out: &mut Output,
    ) {
        let mut fields = acp::ToolCallUpdateFields::new().status(status(failed));
        meta.extend(self.meta());
        if self.terminal {
            fields = fields.content(vec![self.terminal_content()]);
            meta.insert("terminal_exit".into(), self.exit_meta(i64::from(failed)));
        } else if let Some(block) = content {
            fields = fields.content(vec![block]);
        }
        self.send_with(fields, meta, out);
    }

    /// The last output of a background card, when it has one to show. In a terminal it is sent here.
    pub(super) fn last_output(
        &mut self,
        tails: [Option<&str>; 2],
        target: &Target,
        out: &mut Output,
    ) -> Option<acp::ToolCallContent> {
        if self.terminal {
            self.tails(tails, target, out);
            return None;
        }
        let shown = |at: usize| tails.get(at).copied().flatten().unwrap_or_default();
        output::running(&[shown(0), shown(1)])
    }

    /// A sign of a background card's life.
    pub(super) fn mark_background(&mut self, mut meta: acp::Meta, out: &mut Output) {
        meta.extend(self.meta());
        let fields = acp::ToolCallUpdateFields::new().status(acp::ToolCallStatus::InProgress);
        self.send_with(fields, meta, out);
    }

    /// Background output is another stream than the launch's words: start it afresh.
    fn launch(&mut self, text: &str, target: &Target, out: &mut Output) {
        self.background = true;
        self.running = true;
        if self.terminal {
            if self.stdout.is_empty() && self.stderr.is_empty() && !text.is_empty() {
                self.data(&format!("{}\r\n", text.trim_end()), target, out);
            }
        } else if let Some(block) = output::plain(text) {
            self.shown = Shown::Output;
            let fields = acp::ToolCallUpdateFields::new()
                .status(acp::ToolCallStatus::InProgress)
                .content(vec![block]);
            self.send(fields, target, out);
        }
        self.stdout = output::Tail::default();
        self.stderr = output::Tail::default();
        self.printed = Printed::default();
    }

    fn is_launch(&self, text: &str) -> bool {
        let name = self.name.as_deref();
        let asked = self.input.as_ref().and_then(|i| i.get("run_in_background"));
        let can = name.is_none_or(|n| facts::is_shell(n) || facts::is_subagent(n));
        self.background
            || (can && asked == Some(&Value::Bool(true)))
            || (name.is_none_or(facts::is_shell)
                && text.trim_start().starts_with("Command running in background with ID"))
    }

    /// What the result says beyond what was printed.
    fn rest_of_terminal(&mut self, text: &str, target: &Target, out: &mut Output) {
        let rest = self.printed.missing(text);
        if !rest.trim().is_empty() {
            self.data(&rest, target, out);
        }
    }

    /// Message two of the convention: output alone, without a status or content.
    fn data(&mut self, text: &str, target: &Target, out: &mut Output) {
        self.printed.push(text);
        let key = target.traits.terminal_key();
        let mut meta = acp::Meta::new();
        meta.insert(key.into(), json!({"terminal_id": self.id, "data": text}));
        self.send_with(acp::ToolCallUpdateFields::new(), meta, out);
    }

    /// Message three: the end alone, without output.
    fn exit(&self, failed: bool, code: i64, _target: &Target, out: &mut Output) {
        let mut meta = self.meta();
        meta.insert("terminal_exit".into(), self.exit_meta(code));
        let fields = acp::ToolCallUpdateFields::new()
            .status(status(failed))
            .content(vec![self.terminal_content()]);
        self.send_with(fields, meta, out);
    }

    fn exit_meta(&self, code: i64) -> Value {
        json!({"terminal_id": self.id, "exit_code": code, "signal": null})
    }

    /// The end of a card without a terminal.
    fn report(&mut self, result: &Value, raw: &RawOutput<'_>, target: &Target, out: &mut Output) {
        let mut fields = acp::ToolCallUpdateFields::new().status(status(raw.failed));
        let display = result.get("display").and_then(|d| diff::from_display(d, target));
        if let Some(found) = display {
            fields = fields.locations(found.locations);
            if !found.content.is_empty() {
                fields = fields.content(found.content);
                self.shown = Shown::Diff;
            }
        } else {
            let content = self.result_content(raw, target);
            if !content.is_empty() {
                fields = fields.content(content);
            }
        }
        if !target.traits.martty {
            fields = fields.raw_output(raw.to_value());
        }
        let mut meta = self.meta();
        if self.name.as_deref().is_some_and(facts::is_subagent)
            && let Some(found) = subagent::from_result(raw.text)
        {
            meta.insert("subagent".into(), found.to_meta());
        }
        self.send_with(fields, meta, out);
    }

    fn result_content(&self, raw: &RawOutput<'_>, target: &Target) -> Vec<acp::ToolCallContent> {
        let name = self.name.as_deref().unwrap_or_default();
        let is_shell = facts::is_shell(name) || raw.code.is_some();
        if is_shell {
            return output::fenced("console", raw.text).into_iter().collect();
        }
        if raw.failed {
            let mut content = self.input_diff(target);
            content.extend(output::fenced("", raw.text));
            return content;
        }
        // The plan shows the list; that it was written is no news.
        let is_shown = self.shown == Shown::Diff || facts::is_to_do(name);
        if is_shown || !self.input_diff(target).is_empty() {
            return Vec::new();
        }
        let content = facts::output_content(self.name.as_deref(), raw.text, false);
        content.into_iter().collect()
    }

    /// What has to be read after a result, because the result does not carry it.
    fn ask_further(&self, result: &Value, out: &mut Output) {
        let name = self.name.as_deref();
        let has_display =
            result.pointer("/display/kind").and_then(Value::as_str) == Some("file_diff");
        if !has_display && name.is_none_or(facts::is_edit) {
            let tool_call_id = self.id.0.to_string();
            out.want(Want::EditDiff { tool_call_id });
        }
        if name.is_none_or(facts::is_to_do) {
            out.want(Want::Todos);
        }
        if matches!(name, Some("EnterPlanMode" | "ExitPlanMode")) {
            out.want(Want::Mode);
        }
    }

    fn input_diff(&self, target: &Target) -> Vec<acp::ToolCallContent> {
        let edits = self.name.as_deref().is_some_and(facts::is_edit);
        match &self.input {
            Some(input) if edits => diff::from_input(input, target),
            _ => Vec::new(),
        }
    }

    fn locations(&self, target: &Target) -> Vec<acp::ToolCallLocation> {
        let name = self.name.as_deref();
        self.input.as_ref().map(|input| facts::locations(name, input, target)).unwrap_or_default()
    }

    /// `rawInput` as an object: one client refuses anything else.
    fn raw_input(&self) -> Option<Value> {
        match self.input.as_ref()? {
            Value::Null => None,
            Value::Object(map) if map.is_empty() => None,
            Value::Object(map) => Some(Value::Object(map.clone())),
            other => Some(json!({ "input": other })),
        }
    }

    fn terminal_content(&self) -> acp::ToolCallContent {
        let id = acp::TerminalId::new(self.id.0.clone());
        acp::ToolCallContent::Terminal(acp::Terminal::new(id))
    }

    fn meta(&self) -> acp::Meta {
        tool_meta(self.name.as_deref(), self.parent.as_deref())
    }

    fn send(&self, fields: acp::ToolCallUpdateFields, _target: &Target, out: &mut Output) {
        self.send_with(fields, self.meta(), out);
    }

    fn send_with(&self, fields: acp::ToolCallUpdateFields, meta: acp::Meta, out: &mut Output) {
        let update = acp::ToolCallUpdate::new(self.id.clone(), fields)
            .meta(Some(meta).filter(|m| !m.is_empty()));
        out.push(acp::SessionUpdate::ToolCallUpdate(update));
    }
}

/// The parts of `rawOutput`.
struct RawOutput<'a> {
    text: &'a str,
    code: Option<i64>,
    duration: Option<u64>,
    failed: bool,
}

impl RawOutput<'_> {
    fn to_value(&self) -> Option<Value> {
        let mut map = acp::Meta::new();
        if !self.text.is_empty() {
            map.insert("content".into(), json!(output::raw_excerpt(self.text)));
        }
        if let Some(code) = self.code {
            map.insert("exitCode".into(), json!(code));
        }
        if let Some(duration) = self.duration {
            map.insert("durationMs".into(), json!(duration));
        }
        if self.failed {
            map.insert("success".into(), json!(false));
        }
        (!map.is_empty()).then_some(Value::Object(map))
    }
}

fn status(failed: bool) -> acp::ToolCallStatus {
    if failed { acp::ToolCallStatus::Failed } else { acp::ToolCallStatus::Completed }
}
