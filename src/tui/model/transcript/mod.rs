//! The conversation as data: blocks that keep their source, in order of arrival.
//!
//! Owns the blocks, their nesting and the maps from the agent's ids to them. Every operation
//! costs time proportional to what it adds, never to what is there. Must not hold lines, colours
//! or widths, nor do I/O. Filled by `update::acp` and by the application; read by the view.

pub mod block;
pub mod body;
pub mod source;
pub mod tool;

use std::collections::HashMap;

use block::{
    Block, BlockId, BlockKind, Message, Notice, Plan, Severity, Subagent, TurnEnd, Unknown,
};
use body::{Body, OUTPUT_CAP, SpillQueue, SpillWrite};
use tool::{Exit, Terminal, ToolCall, ToolPart, ToolStatus};

/// Bytes of tool text in memory before the oldest are left to the disk.
const RESIDENT_BUDGET: usize = 24 * 1024 * 1024;
/// How many siblings back a message id still joins its block.
const JOIN_REACH: usize = 4;
/// Children may nest this deep; deeper ones are shown at this depth.
const MAX_DEPTH: u8 = 6;

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The person.
    User,
    /// The agent.
    Assistant,
    /// The agent, thinking.
    Thought,
}

/// The conversation.
#[derive(Debug, Default)]
pub struct Transcript {
    blocks: Vec<Block>,
    roots: Vec<BlockId>,
    tools: HashMap<String, BlockId>,
    plans: HashMap<String, BlockId>,
    subagents: HashMap<String, BlockId>,
    notices: HashMap<String, BlockId>,
    terminals: HashMap<String, (Terminal, Vec<BlockId>)>,
    /// The message that still grows, for the conversation itself and for each parent.
    open: HashMap<Option<BlockId>, BlockId>,
    running: Vec<BlockId>,
    turn: u32,
    turn_started_ms: Option<u64>,
    /// The prompt shown ahead of the agent's echo, and how much of the echo has come.
    echo: Option<(BlockId, usize)>,
    replaying: bool,
    /// The session's directory with a slash at its end; empty while it is not known.
    directory: String,
    spills: SpillQueue,
    resident: usize,
    evicted_to: usize,
    rev: u64,
}

/// Whether a path may go on with it: what follows is then not the start of one.
fn is_of_a_path(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~')
}

impl Transcript {
    /// Makes an empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty conversation that is held in this directory.
    pub fn held_in(directory: &std::path::Path) -> Self {
        let directory = directory.to_string_lossy();
        let directory = directory.trim_end_matches('/');
        // The root is the start of every path: taking it off would say less, not more.
        let directory = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        Self { directory, ..Self::default() }
    }

    /// A text with the paths below the session's directory from that directory on.
    pub fn shortened<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        if self.directory.is_empty() || !text.contains(&self.directory) {
            return text.into();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(&self.directory) {
            let (before, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
            out.push_str(before);
            let begins = before.chars().next_back().is_none_or(|c| !is_of_a_path(c));
            let tail = after.get(self.directory.len()..).unwrap_or_default();
            if !begins || tail.is_empty() {
                out.push_str(&self.directory);
            }
            rest = tail;
        }
        out.push_str(rest);
        out.into()
    }

    /// Grows with every change: equal values mean an equal screen, spinners and clocks aside.
    pub fn revision(&self) -> u64 {
        self.rev
    }

    /// The top-level blocks, oldest first.
    pub fn roots(&self) -> &[BlockId] {
        &self.roots
    }

    /// What is nested in a block, oldest first; the top-level blocks when there is none.
    pub fn below(&self, block: Option<BlockId>) -> &[BlockId] {
        match block {
            Some(id) => self.block(id).map_or(&[], |block| &block.children),
            None => &self.roots,
        }
    }

    /// The block named `id`.
    pub fn block(&self, id: BlockId) -> Option<&Block> {
        self.blocks.get(id.0 as usize)
    }

    /// Every block, oldest first.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The output of the terminal that the agent named `id`.
    pub fn terminal(&self, id: &str) -> Option<&Terminal> {
        self.terminals.get(id).map(|(terminal, _)| terminal)
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether anything on the screen depends on the clock.
    pub fn is_animated(&self) -> bool {
        !self.running.is_empty()
    }

    /// The turn under way, or the last one.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// When the turn under way began.
    pub fn turn_started_ms(&self) -> Option<u64> {
        self.turn_started_ms
    }

    /// The newest plan, for a dock.
    pub fn latest_plan(&self) -> Option<(BlockId, &Plan)> {
        self.plans.values().max().and_then(|id| match &self.block(*id)?.kind {
            BlockKind::Plan(plan) if !plan.removed => Some((*id, plan)),
            _ => None,
        })
    }

    /// The block of the tool call that the agent named `id`.
    pub fn tool_block(&self, id: &str) -> Option<BlockId> {
        self.tools.get(id).copied()
    }

    /// Says that the caller carries out [`Transcript::take_spills`]. Without, what does not fit
    /// memory is lost but for its beginning and its end.
    pub fn keep_spills(&mut self) {
        self.spills.keep();
    }

    /// Hands over what must be appended to private files. Call it once per loop turn.
    pub fn take_spills(&mut self) -> Vec<SpillWrite> {
        self.spills.take()
    }

    // ---- turns -------------------------------------------------------------------------------

    /// Shows the person's prompt and begins a turn.
    pub fn begin_turn(&mut self, text: &str, attachments: Vec<String>, now_ms: u64) -> BlockId {
        self.close_message(None, now_ms);
        self.turn += 1;
        self.turn_started_ms = Some(now_ms);
        let mut message = Message { attachments, ended_ms: now_ms, ..Message::default() };
        message.push(text);
        let id = self.push(None, BlockKind::User(message), now_ms);
        self.echo = Some((id, 0));
        id
    }

    /// Shows these words of a prompt, which are paths of pictures, by their labels.
    pub fn label_pictures(&mut self, id: BlockId, pictures: Vec<(String, String)>) {
        if let Some(BlockKind::User(message)) =
            self.blocks.get_mut(id.0 as usize).map(|block| &mut block.kind)
        {
            message.pictures = pictures;
        }
    }

    /// Ends the turn: nothing streams or runs any more. `reason` says why when it is not the
    /// plain end.
    pub fn end_turn(&mut self, reason: Option<String>, tokens: Option<u64>, now_ms: u64) {
        self.settle_but(Self::outlives_the_turn, now_ms);
        self.echo = None;
        let Some(started) = self.turn_started_ms.take() else {
            return;
        };
        let end = TurnEnd { reason, elapsed_ms: now_ms.saturating_sub(started), tokens };
        self.push(None, BlockKind::TurnEnd(end), now_ms);
    }

    /// Closes every open message and cancels every call that still runs.
    pub fn settle(&mut self, now_ms: u64) {
        self.settle_but(|_, _| false, now_ms);
    }

    fn settle_but(&mut self, stays: impl Fn(&Self, BlockId) -> bool, now_ms: u64) {
        let scopes: Vec<Option<BlockId>> = self.open.keys().copied().collect();
        for scope in scopes {
            if !scope.is_some_and(|id| stays(self, id)) {
                self.close_message(scope, now_ms);
            }
        }
        let (staying, over): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.running).into_iter().partition(|id| stays(self, *id));
        self.running = staying;
        for id in over {
            match self.blocks.get_mut(id.0 as usize).map(|b| &mut b.kind) {
                Some(BlockKind::Tool(tool)) => {
                    tool.status = ToolStatus::Cancelled;
                    tool.ended_ms = Some(now_ms);
                }
                Some(BlockKind::Subagent(agent)) => {
                    agent.running = false;
                    agent.ended_ms = Some(now_ms);
                }
                _ => {}
            }
            self.touch(id);
        }
    }

    /// Whether it is a subagent that was said to run or works in the background, or inside one.
    fn outlives_the_turn(&self, id: BlockId) -> bool {
        let mut at = self.block(id);
        while let Some(block) = at {
            let goes_on = match &block.kind {
                BlockKind::Subagent(agent) => agent.running && agent.told,
                BlockKind::Tool(call) => call.is_in_background(),
                _ => false,
            };
            if goes_on {
                return true;
            }
            at = block.parent.and_then(|parent| self.block(parent));
        }
        false
    }

    /// Every subagent, in order of arrival.
    pub fn subagents(&self) -> Vec<BlockId> {
        let mut all: Vec<BlockId> = self.subagents.values().copied().collect();
        all.sort_unstable();
        all
    }

    /// The block of the child session named `id`.
    pub fn subagent_block(&self, id: &str) -> Option<BlockId> {
        self.subagents.get(id).copied()
    }

    /// How many subagents work.
    pub fn running_subagents(&self) -> usize {
        let is_agent = |id: &&BlockId| {
            matches!(self.block(**id).map(|block| &block.kind), Some(BlockKind::Subagent(_)))
        };
        self.running.iter().filter(is_agent).count()
    }

    /// Marks what comes next as history: its times mean nothing.
    pub fn begin_replay(&mut self) {
        self.replaying = true;
        self.echo = None;
    }

    /// Ends a replay and settles what it left open.
    pub fn end_replay(&mut self, now_ms: u64) {
        self.settle(now_ms);
        self.replaying = false;
    }

    // ---- messages ----------------------------------------------------------------------------

    /// Appends a piece of a message. Pieces join the message that is open in `parent`, or the one
    /// with their id; whatever else comes between starts a new one.
    pub fn append(&mut self, piece: Piece<'_>, now_ms: u64) -> BlockId {
        if let Some(id) = self.swallow_echo(&piece) {
            return id;
        }
        if let Some(id) = self.target(&piece) {
            if let Some(message) = self.message_mut(id) {
                message.push(piece.text);
                message.ended_ms = now_ms;
                if message.message_id.is_none() {
                    message.message_id = piece.message_id.map(str::to_owned);
                }
            }
            self.touch(id);
            return id;
        }
        self.close_message(piece.parent, now_ms);
        if piece.role == Role::User && piece.parent.is_none() {
            self.turn += 1;
        }
        let mut message = Message {
            streaming: true,
            message_id: piece.message_id.map(str::to_owned),
            ended_ms: now_ms,
            ..Message::default()
        };
        message.push(piece.text);
        let kind = match piece.role {
            Role::User => BlockKind::User(message),
            Role::Assistant => BlockKind::Assistant(message),
            Role::Thought => BlockKind::Thought(message),
        };
        let id = self.push(piece.parent, kind, now_ms);
        self.open.insert(piece.parent, id);
        id
    }

    /// Adds something that is not text to the message that `piece` would join.
    pub fn attach(&mut self, piece: Piece<'_>, label: String, now_ms: u64) -> BlockId {
        let id = self.append(piece, now_ms);
        if let Some(message) = self.message_mut(id)
            && !message.attachments.contains(&label)
        {
            message.attachments.push(label);
        }
        self.touch(id);
        id
    }

    /// An agent may send the prompt back in pieces; the prompt is on the screen already.
    fn swallow_echo(&mut self, piece: &Piece<'_>) -> Option<BlockId> {
        let (id, seen) = self.echo?;
        if piece.parent.is_some() {
            return None;
        }
        if piece.role != Role::User {
            self.echo = None;
            return None;
        }
        let rest = self.message_mut(id)?.text.get(seen..)?;
        if rest.starts_with(piece.text) {
            self.echo = Some((id, seen + piece.text.len()));
            return Some(id);
        }
        self.echo = None;
        None
    }

    /// What the person says from now on is no echo of the prompt.
    pub fn end_echo(&mut self) {
        self.echo = None;
    }

    fn target(&self, piece: &Piece<'_>) -> Option<BlockId> {
        let open = self.open.get(&piece.parent).copied();
        if let Some(id) = open
            && let Some((role, message)) = self.message(id)
            && role == piece.role
            && (piece.message_id.is_none()
                || message.message_id.is_none()
                || message.message_id.as_deref() == piece.message_id)
        {
            return Some(id);
        }
        let wanted = piece.message_id?;
        let siblings = match piece.parent {
            Some(parent) => &self.block(parent)?.children,
            None => &self.roots,
        };
        for id in siblings.iter().rev().take(JOIN_REACH) {
            let (role, message) = self.message(*id)?;
            if role == piece.role && message.message_id.as_deref() == Some(wanted) {
                return Some(*id);
            }
            if role == Role::User {
                return None;
            }
        }
        None
    }

    fn message(&self, id: BlockId) -> Option<(Role, &Message)> {
        match &self.block(id)?.kind {
            BlockKind::User(m) => Some((Role::User, m)),
            BlockKind::Assistant(m) => Some((Role::Assistant, m)),
            BlockKind::Thought(m) => Some((Role::Thought, m)),
            _ => None,
        }
    }

    fn message_mut(&mut self, id: BlockId) -> Option<&mut Message> {
        match &mut self.blocks.get_mut(id.0 as usize)?.kind {
            BlockKind::User(m) | BlockKind::Assistant(m) | BlockKind::Thought(m) => Some(m),
            _ => None,
        }
    }

    fn close_message(&mut self, scope: Option<BlockId>, now_ms: u64) {
        let Some(id) = self.open.remove(&scope) else {
            return;
        };
        if let Some(message) = self.message_mut(id) {
            message.streaming = false;
            message.ended_ms = message.ended_ms.max(message.ended_ms.min(now_ms));
        }
        self.touch(id);
    }

    // ---- tools -------------------------------------------------------------------------------

    /// Changes the tool call named `id`, making it first when it is not known yet: an update may
    /// overtake the call, and a child may overtake its parent.
    pub fn tool(
        &mut self,
        id: &str,
        parent: Option<BlockId>,
        now_ms: u64,
        change: impl FnOnce(&mut ToolCall, &mut SpillQueue),
    ) -> BlockId {
        let block_id = if let Some(known) = self.tools.get(id) {
            *known
        } else {
            self.close_message(parent, now_ms);
            let call = ToolCall {
                id: id.to_owned(),
                output: Body::with_cap(OUTPUT_CAP),
                input: Body::with_cap(OUTPUT_CAP),
                started_ms: now_ms,
                placeholder: true,
                replayed: self.replaying,
                ..ToolCall::default()
            };
            let new = self.push(parent, BlockKind::Tool(Box::new(call)), now_ms);
            self.tools.insert(id.to_owned(), new);
            new
        };
        let mut spills = std::mem::take(&mut self.spills);
        if let Some(Block { kind: BlockKind::Tool(call), .. }) =
            self.blocks.get_mut(block_id.0 as usize)
        {
            let before = call.resident();
            change(call, &mut spills);
            self.resident = (self.resident + call.resident()).saturating_sub(before);
            let is_final = call.status.is_final();
            if is_final {
                call.ended_ms.get_or_insert(now_ms);
            } else {
                call.ended_ms = None;
            }
            let terminals: Vec<String> = call
                .parts
                .iter()
                .filter_map(|part| match part {
                    ToolPart::Terminal(id) => Some(id.clone()),
                    _ => None,
                })
                .collect();
            self.set_running(block_id, !is_final);
            for terminal in terminals {
                let users = &mut self.terminal_entry(&terminal).1;
                if !users.contains(&block_id) {
                    users.push(block_id);
                }
            }
        }
        self.spills = spills;
        self.touch(block_id);
        self.keep_within_budget();
        block_id
    }

    fn set_running(&mut self, id: BlockId, running: bool) {
        let at = self.running.iter().position(|other| *other == id);
        match (running, at) {
            (true, None) => self.running.push(id),
            (false, Some(at)) => {
                self.running.swap_remove(at);
            }
            _ => {}
        }
    }

    /// Appends what a terminal printed. The cards that show it need not exist yet.
    pub fn terminal_output(&mut self, id: &str, text: &str) {
        let mut spills = std::mem::take(&mut self.spills);
        let (terminal, users) = self.terminal_entry(id);
        let before = terminal.output.resident();
        terminal.output.append(text, &mut spills);
        let after = terminal.output.resident();
        let users = users.clone();
        self.resident = (self.resident + after).saturating_sub(before);
        self.spills = spills;
        for user in users {
            self.touch(user);
        }
        self.keep_within_budget();
    }

    /// Says where a terminal runs.
    pub fn terminal_cwd(&mut self, id: &str, cwd: &str) {
        self.terminal_entry(id).0.cwd = Some(cwd.to_owned());
    }

    /// Says how a terminal's command ended.
    pub fn terminal_exit(&mut self, id: &str, exit: &Exit) {
        let (terminal, users) = self.terminal_entry(id);
        terminal.exit = Some(exit.clone());
        for user in users.clone() {
            if let Some(BlockKind::Tool(call)) =
                self.blocks.get_mut(user.0 as usize).map(|b| &mut b.kind)
            {
                call.exit = Some(exit.clone());
            }
            self.touch(user);
        }
    }

    fn terminal_entry(&mut self, id: &str) -> &mut (Terminal, Vec<BlockId>) {
        self.terminals.entry(id.to_owned()).or_insert_with(|| {
            let terminal = Terminal { output: Body::with_cap(OUTPUT_CAP), ..Terminal::default() };
            (terminal, Vec::new())
        })
    }

    /// Leaves the oldest finished texts to the disk once memory holds too much. Each block is
    /// passed once, so the cost is spread over the blocks.
    fn keep_within_budget(&mut self) {
        while self.resident > RESIDENT_BUDGET && self.evicted_to < self.blocks.len() {
            let at = self.evicted_to;
            let mut spills = std::mem::take(&mut self.spills);
            let mut freed = 0;
            let mut shown = Vec::new();
            if let Some(block) = self.blocks.get_mut(at)
                && let BlockKind::Tool(call) = &mut block.kind
            {
                for part in &mut call.parts {
                    match part {
                        ToolPart::Text(body) => freed += body.evict(&mut spills),
                        ToolPart::Diff(diff) => {
                            freed += diff.new.evict(&mut spills);
                            freed += diff.old.as_mut().map_or(0, |old| old.evict(&mut spills));
                        }
                        ToolPart::Terminal(id) => shown.push(id.clone()),
                        ToolPart::Label(_) => {}
                    }
                }
                freed += call.output.evict(&mut spills);
                freed += call.input.evict(&mut spills);
                block.rev = block.rev.wrapping_add(1);
            }
            for id in shown {
                if let Some((terminal, _)) = self.terminals.get_mut(&id) {
                    freed += terminal.output.evict(&mut spills);
                }
            }
            self.spills = spills;
            self.resident = self.resident.saturating_sub(freed);
            self.evicted_to += 1;
        }
    }

    // ---- the rest ----------------------------------------------------------------------------

    /// Shows or changes the plan named `plan.id`. A plan is one block per turn, so that a later
    /// turn's plan is not drawn far above.
    pub fn set_plan(&mut self, plan: Plan, now_ms: u64) -> BlockId {
        let known = self
            .plans
            .get(&plan.id)
            .copied()
            .filter(|id| self.block(*id).is_some_and(|b| b.turn == self.turn));
        if let Some(id) = known {
            if let Some(block) = self.blocks.get_mut(id.0 as usize) {
                block.kind = BlockKind::Plan(plan);
            }
            self.touch(id);
            return id;
        }
        self.close_message(None, now_ms);
        let key = plan.id.clone();
        let id = self.push(None, BlockKind::Plan(plan), now_ms);
        self.plans.insert(key, id);
        id
    }

    /// Whether there is such a plan.
    pub fn has_plan(&self, plan_id: &str) -> bool {
        self.plans.contains_key(plan_id)
    }

    /// Marks a plan as taken back.
    pub fn remove_plan(&mut self, plan_id: &str) {
        let Some(id) = self.plans.get(plan_id).copied() else {
            return;
        };
        if let Some(BlockKind::Plan(plan)) = self.blocks.get_mut(id.0 as usize).map(|b| &mut b.kind)
        {
            plan.removed = true;
        }
        self.touch(id);
    }

    /// Shows a notice. With a `key`, a later notice of the same key takes its place.
    pub fn notice(&mut self, key: Option<&str>, notice: Notice, now_ms: u64) -> BlockId {
        if let Some(id) = key.and_then(|key| self.notices.get(key)).copied() {
            if let Some(block) = self.blocks.get_mut(id.0 as usize) {
                block.kind = BlockKind::Notice(notice);
            }
            self.touch(id);
            return id;
        }
        self.close_message(None, now_ms);
        let id = self.push(None, BlockKind::Notice(notice), now_ms);
        if let Some(key) = key {
            self.notices.insert(key.to_owned(), id);
        }
        id
    }

    /// The notice of `key`.
    pub fn notice_of(&self, key: &str) -> Option<&Notice> {
        match &self.block(*self.notices.get(key)?)?.kind {
            BlockKind::Notice(notice) => Some(notice),
            _ => None,
        }
    }

    /// Shows something to know.
    pub fn info(&mut self, title: impl Into<String>, now_ms: u64) -> BlockId {
        let notice = Notice {
            severity: Severity::Info,
            title: title.into(),
            detail: String::new(),
            hint: None,
            running: false,
        };
        self.notice(None, notice, now_ms)
    }

    /// Shows a failure: what happened, its detail, and what to do.
    pub fn error(
        &mut self,
        title: impl Into<String>,
        detail: impl Into<String>,
        hint: Option<String>,
        now_ms: u64,
    ) -> BlockId {
        let notice = Notice {
            severity: Severity::Error,
            title: title.into(),
            detail: detail.into(),
            hint,
            running: false,
        };
        self.notice(None, notice, now_ms)
    }

    /// Shows an update that this client does not know.
    pub fn unknown(&mut self, name: &str, json: String, now_ms: u64) -> BlockId {
        self.close_message(None, now_ms);
        let unknown = Unknown { name: name.to_owned(), json };
        self.push(None, BlockKind::Unknown(unknown), now_ms)
    }

    /// Changes the child session named `session_id`, making it when it is new.
    pub fn subagent(
        &mut self,
        session_id: &str,
        parent: Option<BlockId>,
        now_ms: u64,
        change: impl FnOnce(&mut Subagent),
    ) -> BlockId {
        let id = if let Some(id) = self.subagents.get(session_id) {
            *id
        } else {
            self.close_message(parent, now_ms);
            let agent = Subagent {
                session_id: session_id.to_owned(),
                running: true,
                started_ms: now_ms,
                ..Subagent::default()
            };
            let id = self.push(parent, BlockKind::Subagent(agent), now_ms);
            self.subagents.insert(session_id.to_owned(), id);
            id
        };
        let mut running = false;
        if let Some(BlockKind::Subagent(agent)) =
            self.blocks.get_mut(id.0 as usize).map(|b| &mut b.kind)
        {
            change(agent);
            running = agent.running;
            if running {
                agent.ended_ms = None;
            } else {
                agent.ended_ms.get_or_insert(now_ms);
            }
        }
        self.set_running(id, running);
        self.touch(id);
        id
    }

    fn push(&mut self, parent: Option<BlockId>, kind: BlockKind, now_ms: u64) -> BlockId {
        let id = BlockId(u32::try_from(self.blocks.len()).unwrap_or(u32::MAX));
        let depth = parent
            .and_then(|parent| self.block(parent))
            .map_or(0, |above| (above.depth + 1).min(MAX_DEPTH));
        self.blocks.push(Block {
            id,
            parent,
            depth,
            turn: self.turn,
            created_ms: now_ms,
            rev: 0,
            kind,
            children: Vec::new(),
        });
        match parent.and_then(|parent| self.blocks.get_mut(parent.0 as usize)) {
            Some(above) => above.children.push(id),
            None => self.roots.push(id),
        }
        self.touch(id);
        id
    }

    /// Notes a change of the block, and of everything above it, since a card shows its children.
    fn touch(&mut self, id: BlockId) {
        self.rev += 1;
        let mut at = Some(id);
        while let Some(block) = at.and_then(|id| self.blocks.get_mut(id.0 as usize)) {
            block.rev = block.rev.wrapping_add(1);
            at = block.parent;
        }
    }
}

/// A piece of a message, as it came.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// Who speaks.
    pub role: Role,
    /// The tool call or subagent it belongs to.
    pub parent: Option<BlockId>,
    /// The message it is a piece of, when the agent says so.
    pub message_id: Option<&'a str>,
    /// Its text.
    pub text: &'a str,
}
