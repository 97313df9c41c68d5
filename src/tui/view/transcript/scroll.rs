//! Where the screen stands, and how it moves.
//!
//! Owns [`Place`] and the carrying out of scroll wishes. A place is a row of a segment of a
//! block; walking from it lays out only what is passed.

use super::TranscriptView;
use super::layout::Env;
use super::search::Search;
use crate::tui::model::transcript::block::{BlockId, BlockKind};

/// A row: of which top-level block, of which segment, which one, its gap counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) root: usize,
    pub(super) segment: usize,
    pub(super) line: u32,
}

/// A wish that the next frame carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    By(isize),
    Pages(isize),
    Top,
    Tail,
    Prompt(bool),
    Block(BlockId),
    Toggle(BlockId),
    All(bool),
    Find(String),
    NextMatch(bool),
    Select(bool),
    OnDisk(Vec<BlockId>),
}

impl TranscriptView {
    /// Scrolls by rows; negative is up.
    pub fn scroll_by(&mut self, rows: isize) {
        if let Some(Op::By(last)) = self.ops.last_mut() {
            *last = last.saturating_add(rows);
            return;
        }
        self.ops.push(Op::By(rows));
    }

    /// Scrolls by pages; negative is up.
    pub fn page(&mut self, pages: isize) {
        self.ops.push(Op::Pages(pages));
    }

    /// Goes to the first row.
    pub fn to_top(&mut self) {
        self.ops.push(Op::Top);
    }

    /// Goes to the last row and follows it.
    pub fn to_tail(&mut self) {
        self.ops.push(Op::Tail);
    }

    /// Goes to the previous prompt.
    pub fn to_previous_prompt(&mut self) {
        self.ops.push(Op::Prompt(false));
    }

    /// Goes to the next prompt.
    pub fn to_next_prompt(&mut self) {
        self.ops.push(Op::Prompt(true));
    }

    /// Brings a block to the top of the screen.
    pub fn to_block(&mut self, id: BlockId) {
        self.ops.push(Op::Block(id));
    }

    /// Folds or unfolds a block; its header stays where it is on the screen.
    pub fn toggle(&mut self, id: BlockId) {
        self.ops.push(Op::Toggle(id));
    }

    /// Unfolds every block, or folds every block.
    pub fn expand_all(&mut self, expanded: bool) {
        self.ops.push(Op::All(expanded));
    }

    /// Selects the next or previous block, the lowest one on the screen first, and brings it into
    /// sight.
    pub fn select_near(&mut self, forward: bool) {
        self.ops.push(Op::Select(forward));
    }

    /// Folds or unfolds the selected block, else the lowest card on the screen.
    pub fn toggle_selected(&mut self) {
        let lowest = || self.hits.iter().flatten().rev().find(|hit| hit.header);
        if let Some(id) = self.selected.or_else(|| lowest().map(|hit| hit.block)) {
            self.toggle(id);
        }
    }

    pub(super) fn carry_out(&mut self, op: &Op, env: &Env<'_>) {
        let page = isize::try_from(self.area.height.saturating_sub(2).max(1)).unwrap_or(1);
        match *op {
            Op::By(rows) => self.by(rows, env),
            Op::Pages(pages) => self.by(pages.saturating_mul(page), env),
            Op::Top => {
                self.following = false;
                self.top = Place::default();
            }
            Op::Tail => self.following = true,
            Op::Prompt(forward) => self.prompt(forward, env),
            Op::Block(id) => self.block_to_top(id, env),
            Op::Toggle(id) => self.toggle_now(id, env),
            Op::All(open) => {
                self.fold.all = open;
                self.fold.flipped.clear();
                for layout in self.layouts.values_mut() {
                    layout.invalidate();
                }
            }
            Op::OnDisk(ref blocks) => {
                if let Some(search) = &mut self.search {
                    search.add_on_disk(blocks);
                }
            }
            Op::Select(forward) => self.select_now(forward, env),
            Op::Find(ref needle) => self.look_for(needle, env),
            Op::NextMatch(forward) => {
                if let Some(search) = &mut self.search {
                    search.step(env.transcript, forward);
                    self.show_match(env);
                }
            }
        }
    }

    fn by(&mut self, rows: isize, env: &Env<'_>) {
        self.settle_top(env);
        let count = u32::try_from(rows.unsigned_abs()).unwrap_or(u32::MAX);
        if rows < 0 {
            self.following = false;
            self.top = self.up(self.top, count, env).0;
        } else if !self.following {
            self.top = self.down(self.top, count, env);
        }
    }

    fn prompt(&mut self, forward: bool, env: &Env<'_>) {
        self.settle_top(env);
        let roots = env.roots();
        let is_prompt = |at: &usize| {
            roots
                .get(*at)
                .and_then(|id| env.transcript.block(*id))
                .is_some_and(|block| matches!(block.kind, BlockKind::User(_)))
        };
        // The gap above a prompt belongs to it: standing there is standing at the prompt.
        let within = self.top.segment > 0 || self.top.line > 1;
        let found = if forward {
            (self.top.root + 1..roots.len()).find(is_prompt)
        } else {
            let end = self.top.root + usize::from(within);
            (0..end.min(roots.len())).rev().find(is_prompt)
        };
        match found {
            Some(root) => {
                self.following = false;
                self.top = Place { root, segment: 0, line: u32::from(root > 0) };
            }
            None if forward => self.following = true,
            None => {}
        }
    }

    /// The place of a block's first row, below its gap.
    fn place_of(&mut self, id: BlockId, env: &Env<'_>) -> Option<Place> {
        let mut top = env.transcript.block(id)?;
        while let Some(parent) = top.parent.filter(|_| top.parent != env.within) {
            top = env.transcript.block(parent)?;
        }
        let root = env.roots().binary_search(&top.id).ok()?;
        let layout = self.layout(root, env)?;
        let segment = layout.segments().iter().position(|segment| segment.block == id).unwrap_or(0);
        let gap = layout.segments().get(segment).is_some_and(|s| s.gap);
        Some(Place { root, segment, line: u32::from(gap) })
    }

    fn block_to_top(&mut self, id: BlockId, env: &Env<'_>) {
        if let Some(place) = self.place_of(id, env) {
            self.following = false;
            self.top = place;
        }
    }

    fn select_now(&mut self, forward: bool, env: &Env<'_>) {
        self.settle_top(env);
        let lowest = self.hits.iter().flatten().last().map(|hit| hit.block);
        let next = match self.selected {
            Some(id) => self.neighbour(id, forward, env),
            None => lowest.or_else(|| env.roots().last().copied()),
        };
        let Some(id) = next else {
            return;
        };
        self.selected = Some(id);
        let Some(place) = self.place_of(id, env) else {
            return;
        };
        let height = u32::from(self.area.height);
        let bottom = self.down(self.top, height.saturating_sub(2), env);
        if place < self.top {
            self.following = false;
            self.top = self.up(place, 1, env).0;
        } else if place > bottom {
            self.following = false;
            self.top = self.up(place, height / 2, env).0;
        }
    }

    /// The block drawn after or before another one; unselectable ones are passed.
    fn neighbour(&mut self, id: BlockId, forward: bool, env: &Env<'_>) -> Option<BlockId> {
        let place = self.place_of(id, env)?;
        let roots = env.roots().len();
        let mut root = place.root;
        let mut segment = Some(place.segment);
        loop {
            let count = self.segments(root, env);
            let order: Vec<usize> = match (segment, forward) {
                (Some(at), true) => (at + 1..count).collect(),
                (Some(at), false) => (0..at).rev().collect(),
                (None, true) => (0..count).collect(),
                (None, false) => (0..count).rev().collect(),
            };
            let segments = self.layouts.get(&root).map(super::layout::Layout::segments)?;
            let found = order
                .into_iter()
                .filter_map(|at| segments.get(at).map(|segment| segment.block))
                .filter(|block| *block != id)
                .find(|block| {
                    let kind = env.transcript.block(*block).map(|block| &block.kind);
                    !matches!(kind, None | Some(BlockKind::TurnEnd(_)))
                });
            if found.is_some() {
                return found;
            }
            segment = None;
            root = if forward { root + 1 } else { root.checked_sub(1)? };
            if root >= roots {
                return None;
            }
        }
    }

    fn toggle_now(&mut self, id: BlockId, env: &Env<'_>) {
        self.settle_top(env);
        let row = self.row_of(id, env);
        self.fold.toggle(id);
        for layout in self.layouts.values_mut() {
            layout.invalidate();
        }
        let Some(place) = self.place_of(id, env) else {
            return;
        };
        if let Some(row) = row {
            self.following = false;
            self.top = self.up(place, row, env).0;
        }
    }

    /// Which row of the screen a block's first row is on.
    fn row_of(&mut self, id: BlockId, env: &Env<'_>) -> Option<u32> {
        let target = self.place_of(id, env)?;
        let mut place = self.top;
        for row in 0..u32::from(self.area.height) {
            if place == target {
                return Some(row);
            }
            let next = self.down(place, 1, env);
            if next == place {
                break;
            }
            place = next;
        }
        None
    }

    fn look_for(&mut self, needle: &str, env: &Env<'_>) {
        if needle.is_empty() {
            self.end_search();
            return;
        }
        self.settle_top(env);
        let lowest = self.hits.iter().flatten().last().map(|hit| hit.block);
        let near = self.search.as_ref().and_then(Search::current);
        let near = near.map(|found| found.block).or(lowest);
        self.search = Some(Search::new(env.transcript, needle, near));
        self.show_match(env);
    }

    fn show_match(&mut self, env: &Env<'_>) {
        let Some(search) = &self.search else {
            return;
        };
        self.needle = Some(search.needle().to_owned());
        let Some(found) = search.current() else {
            self.current = None;
            return;
        };
        self.current = Some(found.block);
        self.match_to_sight(found.block, found.nth, found.offset, env);
    }

    fn match_to_sight(&mut self, id: BlockId, nth: usize, offset: usize, env: &Env<'_>) {
        let Some(block) = env.transcript.block(id) else {
            return;
        };
        let mut above = block.parent;
        let mut hiding = vec![id];
        while let Some(parent) = above {
            hiding.push(parent);
            above = env.transcript.block(parent).and_then(|block| block.parent);
        }
        for id in hiding {
            if !self.fold.is_open(id) {
                self.fold.toggle(id);
            }
        }
        for layout in self.layouts.values_mut() {
            layout.invalidate();
        }
        let Some(mut place) = self.place_of(id, env) else {
            return;
        };
        let needle = self.needle.clone().unwrap_or_default();
        let skip = self.enter_segment(&mut place, nth, offset, env);
        self.rows(place.root, place.segment, env);
        let row = self.row_with(place, skip, &needle);
        place.line = row;
        let third = u32::from(self.area.height) / 3;
        self.following = false;
        self.top = self.up(place, third, env).0;
    }

    /// Moves `place` to the segment that shows `offset`, when the block has several. Returns how
    /// many matches to skip in it.
    fn enter_segment(
        &mut self,
        place: &mut Place,
        nth: usize,
        offset: usize,
        env: &Env<'_>,
    ) -> usize {
        let Some(layout) = self.layout(place.root, env) else {
            return nth;
        };
        let segments = layout.segments();
        if segments.len() < 2 || segments.iter().all(|segment| segment.start().is_none()) {
            return nth;
        }
        let at = segments
            .iter()
            .rposition(|segment| segment.start().is_some_and(|start| start <= offset))
            .unwrap_or(0);
        let last = segments.len() - 1;
        let settled = segments.iter().filter(|segment| segment.start().is_some()).count();
        place.segment = at;
        if at + 1 == settled && settled <= last {
            // The match is in the last settled segment or in the end that still changes.
            self.rows(place.root, at, env);
            if self.row_with_any(*place).is_none() {
                place.segment = last;
            }
        }
        0
    }

    fn row_with_any(&self, place: Place) -> Option<u32> {
        let needle = self.needle.as_deref()?;
        let layout = self.layouts.get(&place.root)?;
        let lines = layout.segments().get(place.segment)?.lines()?;
        lines
            .iter()
            .position(|line| line.to_string().to_lowercase().contains(needle))
            .and_then(|at| u32::try_from(at).ok())
    }

    /// The row of a segment on which the match after `skip` others is.
    fn row_with(&self, place: Place, skip: usize, needle: &str) -> u32 {
        let Some(segment) =
            self.layouts.get(&place.root).and_then(|layout| layout.segments().get(place.segment))
        else {
            return place.line;
        };
        let mut left = skip;
        let mut found = place.line;
        let gap = u32::from(segment.gap);
        for (at, line) in segment.lines().into_iter().flat_map(|l| l.iter()).enumerate() {
            let count = line.to_string().to_lowercase().matches(needle).count();
            if count > 0 {
                found = gap + u32::try_from(at).unwrap_or(0);
                if count > left {
                    break;
                }
                left -= count;
            }
        }
        found
    }

    /// The place `count` rows above, and how many rows were missing.
    pub(super) fn up(&mut self, from: Place, count: u32, env: &Env<'_>) -> (Place, u32) {
        let mut place = from;
        let mut left = count;
        while left > 0 {
            if place.line >= left {
                place.line -= left;
                return (place, 0);
            }
            left -= place.line;
            place.line = 0;
            if place.segment > 0 {
                place.segment -= 1;
            } else if place.root > 0 {
                place.root -= 1;
                let segments = self.segments(place.root, env);
                if segments == 0 {
                    continue;
                }
                place.segment = segments - 1;
            } else {
                return (place, left);
            }
            place.line = self.rows(place.root, place.segment, env);
        }
        (place, 0)
    }

    /// The place `count` rows below, at most one past the last row.
    pub(super) fn down(&mut self, from: Place, count: u32, env: &Env<'_>) -> Place {
        let mut place = from;
        let mut left = count;
        loop {
            let rows = if place.segment < self.segments(place.root, env) {
                self.rows(place.root, place.segment, env)
            } else {
                0
            };
            if place.line.saturating_add(left) < rows {
                place.line += left;
                return place;
            }
            left -= rows.saturating_sub(place.line).min(left);
            if place.segment + 1 < self.segments(place.root, env) {
                place.segment += 1;
            } else if place.root + 1 < env.roots().len() {
                place.root += 1;
                place.segment = 0;
            } else {
                place.line = rows;
                return place;
            }
            place.line = 0;
        }
    }

    /// One past the last row.
    fn end(&mut self, env: &Env<'_>) -> Place {
        let Some(root) = env.roots().len().checked_sub(1) else {
            return Place::default();
        };
        let Some(segment) = self.segments(root, env).checked_sub(1) else {
            return Place { root, ..Place::default() };
        };
        Place { root, segment, line: self.rows(root, segment, env) }
    }

    /// Puts the top row where it belongs: the tail in sight when following, and never so low that
    /// rows stay empty.
    pub(super) fn settle_top(&mut self, env: &Env<'_>) {
        let height = u32::from(self.area.height);
        if !self.following {
            self.clamp_top(env);
            let below = self.down(self.top, height, env);
            let end = self.end(env);
            if below < end {
                return;
            }
            let exact = self.up(end, height, env);
            if exact.1 > 0 || self.top >= exact.0 {
                self.following = true;
            } else {
                return;
            }
        }
        let end = self.end(env);
        self.top = self.up(end, height, env).0;
    }

    /// A place may be gone: a block was folded, or the width changed.
    fn clamp_top(&mut self, env: &Env<'_>) {
        let last = env.roots().len().saturating_sub(1);
        self.top.root = self.top.root.min(last);
        let segments = self.segments(self.top.root, env);
        self.top.segment = self.top.segment.min(segments.saturating_sub(1));
        let rows = self.rows(self.top.root, self.top.segment, env);
        self.top.line = self.top.line.min(rows.saturating_sub(1));
    }

    /// Rows of the top block that are above the screen, as far as known.
    pub(super) fn row_in_root(&self) -> u32 {
        let layout = self.layouts.get(&self.top.root);
        layout.map_or(0, |layout| layout.above(self.top.segment) + self.top.line)
    }
}
