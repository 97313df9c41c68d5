//! The subagents as a tree, and which of them is looked into. Data only; `update::agents` changes it, `view::agents` shows it.

use std::collections::HashMap;

use super::transcript::Transcript;
use super::transcript::block::{Block, BlockId, BlockKind, Subagent};

/// The open list of subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentList {
    /// The one that is selected; none means the first. A name, not a row: rows come while one looks.
    pub selected: Option<BlockId>,
}

/// A row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentRow {
    /// The subagent.
    pub block: BlockId,
    /// How many subagents are above it.
    pub depth: usize,
}

/// The subagent of a block.
pub fn agent_of(transcript: &Transcript, id: BlockId) -> Option<&Subagent> {
    match &transcript.block(id)?.kind {
        BlockKind::Subagent(agent) => Some(agent),
        _ => None,
    }
}

/// The subagents from the outermost to this one. Not only a subagent: what is inside of one has a way too.
pub fn way_to(transcript: &Transcript, id: BlockId) -> Vec<BlockId> {
    let mut way: Vec<BlockId> = ancestors(transcript, id)
        .filter(|block| matches!(block.kind, BlockKind::Subagent(_)))
        .map(|block| block.id)
        .collect();
    way.reverse();
    way
}

fn ancestors(transcript: &Transcript, id: BlockId) -> impl Iterator<Item = &Block> {
    let parent = |block: &&Block| block.parent.and_then(|id| transcript.block(id));
    std::iter::successors(transcript.block(id), parent)
}

/// Every subagent, each before its own, in order of arrival.
pub fn rows(transcript: &Transcript) -> Vec<AgentRow> {
    let mut below: HashMap<Option<BlockId>, Vec<BlockId>> = HashMap::new();
    for id in transcript.subagents() {
        let way = way_to(transcript, id);
        let above = way.len().checked_sub(2).and_then(|at| way.get(at)).copied();
        below.entry(above).or_default().push(id);
    }
    let mut rows = Vec::new();
    let mut stack: Vec<AgentRow> = Vec::new();
    let mut push = |stack: &mut Vec<AgentRow>, above: Option<BlockId>, depth: usize| {
        let found = below.remove(&above).unwrap_or_default();
        stack.extend(found.into_iter().rev().map(|block| AgentRow { block, depth }));
    };
    push(&mut stack, None, 0);
    while let Some(row) = stack.pop() {
        rows.push(row);
        push(&mut stack, Some(row.block), row.depth + 1);
    }
    rows
}

/// Which row is selected.
pub fn selected(list: &AgentList, rows: &[AgentRow]) -> usize {
    rows.iter().position(|row| Some(row.block) == list.selected).unwrap_or(0)
}

/// The subagent that a look into `id` means: itself, the one nested in a card, else the one it is in.
pub fn meant_by(transcript: &Transcript, id: BlockId) -> Option<BlockId> {
    if agent_of(transcript, id).is_some() {
        return Some(id);
    }
    let inside = transcript.below(Some(id)).iter().find(|id| agent_of(transcript, **id).is_some());
    inside.copied()
}
