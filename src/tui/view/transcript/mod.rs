//! The conversation on the screen: which rows are visible, where they are, and what they show.
//!
//! Owns [`TranscriptView`]: scroll state, folds, selection and the caches. A frame lays out only
//! what it shows; its cost does not grow with the conversation. The place of a reader who scrolled
//! up is a block and a row of it, so nothing that arrives below or is measured above moves it.
//! Must not change the transcript. Called by the application loop.

mod card;
mod heights;
mod layout;
mod output;
pub(crate) mod rows;
mod scroll;
mod search;
mod select;

#[cfg(test)]
#[allow(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::string_slice,
    reason = "test texts are built plainly"
)]
mod tests;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::ansi::Row;
use super::highlight::Highlighter;
use super::pager::Pager;
use super::paper::Paper;
use super::theme::{Theme, ThemeSpec};
use crate::tui::model::permission::BodyPart;
use crate::tui::model::transcript::Transcript;
use crate::tui::model::transcript::block::{Block, BlockId, BlockKind};
use crate::tui::model::transcript::body::SpillKey;
use crate::tui::model::transcript::tool::ToolStatus;
pub(crate) use card::head;
pub(in crate::tui::view) use card::{one_line, step_look, thousands};
use heights::Heights;
use layout::{Env, Fold, Layout};
use rows::Slot;
use scroll::{Op, Place};
use search::Search;
pub use select::Released;
use select::Selection;

/// Columns left of the text: a glyph and a blank.
const GUTTER: u16 = 2;
/// Columns right of the text: a blank and the scrollbar.
const MARGIN: u16 = 2;
/// Lines kept in caches before those out of sight are dropped.
const MAX_KEPT: usize = 8_000;
/// Top-level blocks, and segments of one, that count as near what is in sight.
const NEAR: (usize, usize) = (8, 64);
/// Layouts kept before those out of sight are dropped.
const MAX_LAYOUTS: usize = 512;

/// What lies under a screen position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The block.
    pub block: BlockId,
    /// Whether it is the block's header, where a click folds and unfolds.
    pub header: bool,
}

/// Scroll state and caches of the conversation. Wishes are carried out by the next
/// [`TranscriptView::render`].
#[derive(Debug)]
pub struct TranscriptView {
    /// The block whose inside is shown; none for the conversation itself.
    within: Option<BlockId>,
    fold: Fold,
    heights: Heights,
    layouts: HashMap<usize, Layout>,
    code: Highlighter,
    width: usize,
    spec: Option<ThemeSpec>,
    following: bool,
    top: Place,
    ops: Vec<Op>,
    selected: Option<BlockId>,
    search: Option<Search>,
    needle: Option<String>,
    current: Option<BlockId>,
    /// Top-level blocks, and the revision of the last, when the reader scrolled away.
    seen: Option<(usize, u32)>,
    new_below: usize,
    area: Rect,
    hits: Vec<Option<Hit>>,
    /// What each row of the last frame shows.
    places: Vec<Option<Place>>,
    selection: Option<Selection>,
    /// The first and the last place of the last frame.
    visible: (Place, Place),
    /// Lines in caches, and how many there may be before some are dropped.
    kept: usize,
    keep: usize,
    /// What is shown in full on a page of its own.
    page: Option<(PageKey, Pager)>,
    /// What is asked, on paper.
    asked: Option<(Vec<BodyPart>, Paper)>,
    spilled: SpillReader,
}

/// Names what a page was made from.
#[derive(Debug, Clone)]
enum PageKey {
    /// A block at a revision.
    Block(BlockId, u32),
    /// A text.
    Text(Arc<str>),
}

/// Fetches a spilled text.
#[derive(Default)]
struct SpillReader(Option<Box<dyn Fn(SpillKey) -> Option<String>>>);

impl std::fmt::Debug for SpillReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "a reader" } else { "no reader" })
    }
}

impl Default for TranscriptView {
    fn default() -> Self {
        Self {
            within: None,
            fold: Fold::default(),
            heights: Heights::default(),
            layouts: HashMap::new(),
            code: Highlighter::off(),
            width: 0,
            spec: None,
            following: true,
            top: Place::default(),
            ops: Vec::new(),
            selected: None,
            search: None,
            needle: None,
            current: None,
            seen: None,
            new_below: 0,
            area: Rect::default(),
            hits: Vec::new(),
            places: Vec::new(),
            selection: None,
            visible: (Place::default(), Place::default()),
            kept: 0,
            keep: MAX_KEPT,
            page: None,
            asked: None,
            spilled: SpillReader::default(),
        }
    }
}

impl TranscriptView {
    /// Makes a view that follows the tail.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a view of what is nested in a block, a subagent's transcript: each of its blocks stands at the top level.
    pub fn of_inside(block: BlockId) -> Self {
        Self { within: Some(block), ..Self::default() }
    }

    /// The block whose inside is shown; none for the conversation itself.
    pub fn within(&self) -> Option<BlockId> {
        self.within
    }

    /// Another view takes this one's place on the screen; this one keeps its scroll state and folds.
    pub fn hand_over(&mut self, next: &mut Self) {
        next.code = std::mem::take(&mut self.code);
        next.spilled = std::mem::take(&mut self.spilled);
    }

    /// Gives the view what colours code. Without, code is plain.
    pub fn set_highlighter(&mut self, code: Highlighter) {
        self.code = code;
    }

    /// Draws the visible part of the conversation into `area`.
    pub fn render(
        &mut self,
        transcript: &Transcript,
        area: Rect,
        buf: &mut Buffer,
        theme: &Theme,
        now_ms: u64,
    ) {
        let area = area.intersection(buf.area);
        self.area = area;
        if area.width <= GUTTER + MARGIN || area.height == 0 {
            self.hits.clear();
            self.places.clear();
            return;
        }
        let env = Env {
            transcript,
            within: self.within,
            theme,
            width: usize::from(area.width - GUTTER - MARGIN),
            now_ms,
        };
        self.code.poll();
        self.measure(&env);
        for op in std::mem::take(&mut self.ops) {
            self.carry_out(&op, &env);
        }
        self.settle_top(&env);
        self.hits.clear();
        self.places.clear();
        self.draw(&env, buf);
        self.count_new(transcript);
        self.scrollbar(&env, buf);
        self.evict();
    }

    /// Takes in new blocks, a new width and a new theme.
    fn measure(&mut self, env: &Env<'_>) {
        let spec = Some(env.theme.spec);
        let changed = self.width != env.width || self.spec != spec;
        let gone = self.heights.len() > env.roots().len();
        if changed || gone {
            if self.spec != spec || gone {
                self.layouts.clear();
                self.kept = 0;
            }
            self.width = env.width;
            self.spec = spec;
            self.heights.clear();
            // Its points would be on other rows now.
            self.selection = None;
        }
        let known = self.heights.len();
        for id in env.roots().get(known..).unwrap_or_default() {
            let height =
                env.transcript.block(*id).map_or(1, |block| layout::estimate(block, env.width));
            self.heights.push(height);
        }
        let Some(last) = env.roots().last() else {
            return;
        };
        let at = self.heights.len() - 1;
        if !self.layouts.contains_key(&at)
            && let Some(block) = env.transcript.block(*last)
        {
            self.heights.set(at, layout::estimate(block, env.width));
        }
    }

    /// The layout of a top-level block, up to date.
    fn layout(&mut self, root: usize, env: &Env<'_>) -> Option<&mut Layout> {
        let block = env.transcript.block(*env.roots().get(root)?)?;
        let layout = self.layouts.entry(root).or_default();
        let before = layout.kept();
        if layout.sync(block, env, &self.fold, &mut self.code, root == 0) {
            self.heights.set(root, layout.height());
            self.kept = (self.kept + layout.kept()).saturating_sub(before);
        }
        Some(layout)
    }

    fn segments(&mut self, root: usize, env: &Env<'_>) -> usize {
        self.layout(root, env).map_or(0, |layout| layout.segments().len())
    }

    /// Rows of a segment, which is laid out for it.
    fn rows(&mut self, root: usize, segment: usize, env: &Env<'_>) -> u32 {
        if self.layout(root, env).is_none() {
            return 0;
        }
        let Some(layout) = self.layouts.get_mut(&root) else {
            return 0;
        };
        let (height, kept) = (layout.height(), layout.kept());
        let rows = layout.draw(segment, env, &self.fold, &mut self.code);
        self.kept = (self.kept + layout.kept()).saturating_sub(kept);
        if layout.height() != height {
            self.heights.set(root, layout.height());
        }
        rows
    }

    fn draw(&mut self, env: &Env<'_>, buf: &mut Buffer) {
        let area = self.area;
        let mut place = self.top;
        let mut y = area.y;
        self.visible = (place, place);
        while y < area.bottom() {
            let segments = self.segments(place.root, env);
            if place.segment >= segments {
                if place.root + 1 >= env.roots().len() {
                    break;
                }
                place = Place { root: place.root + 1, ..Place::default() };
                continue;
            }
            let rows = self.rows(place.root, place.segment, env);
            self.visible.1 = place;
            while place.line < rows && y < area.bottom() {
                self.draw_row(place, y, env, buf);
                place.line += 1;
                y += 1;
            }
            place.segment += 1;
            place.line = 0;
        }
        while self.hits.len() < usize::from(area.height) {
            self.hits.push(None);
        }
    }

    fn draw_row(&mut self, place: Place, y: u16, env: &Env<'_>, buf: &mut Buffer) {
        self.places.push(Some(place));
        let Some(segment) =
            self.layouts.get(&place.root).and_then(|layout| layout.segments().get(place.segment))
        else {
            return;
        };
        let gap = u32::from(segment.gap);
        let Some(line_at) = place.line.checked_sub(gap) else {
            self.hits.push(None);
            return;
        };
        let Some(block) = env.transcript.block(segment.block) else {
            return;
        };
        let indent = u16::from(segment.depth) * 2;
        let x = self.area.x + indent.min(self.area.width / 2);
        let text = Slot {
            x: x + GUTTER,
            y,
            width: (self.area.right() - MARGIN).saturating_sub(x + GUTTER),
        };
        let header = line_at == 0 && segment.is_card();
        let leads = place.segment == 0 || segment.is_card();
        if line_at == 0 && leads {
            let (glyph, style) = card::glyph(block, env.theme, env.now_ms);
            let gutter = Slot { x, y, width: GUTTER };
            rows::draw(buf, gutter, &Line::from(Span::styled(glyph, style)));
        }
        if self.selected == Some(segment.block) {
            let bar = Line::from(Span::styled(env.theme.glyphs.bar, env.theme.accent));
            let slot = Slot { x: x + 1, y, width: 1 };
            rows::draw(buf, slot, &bar);
        }
        let desk = layout::desk(env, &self.fold, segment);
        let live = if header && moves(&block.kind) {
            card::header(block, &desk, env.now_ms)
        } else {
            None
        };
        let cached = segment.lines().and_then(|lines| lines.get(line_at as usize));
        if let Some(line) = live.as_ref().or(cached) {
            rows::draw(buf, text, line);
        }
        self.hits.push(Some(Hit { block: segment.block, header }));
        if let Some(needle) = &self.needle {
            let style = if self.current == Some(segment.block) {
                env.theme.found_current
            } else {
                env.theme.found
            };
            rows::mark(buf, text, needle, style);
        }
        self.mark_selection(place, text, env.theme.selected, buf);
    }

    fn count_new(&mut self, transcript: &Transcript) {
        let roots = transcript.below(self.within);
        let rev_of = |at: Option<&BlockId>| {
            at.and_then(|id| transcript.block(*id)).map_or(0, |block| block.rev)
        };
        if self.following {
            self.seen = Some((roots.len(), rev_of(roots.last())));
            self.new_below = 0;
            return;
        }
        let (count, rev) = *self.seen.get_or_insert_with(|| (roots.len(), rev_of(roots.last())));
        let grown = count > 0 && rev_of(roots.get(count - 1)) != rev;
        self.new_below = roots.len().saturating_sub(count) + usize::from(grown);
    }

    fn scrollbar(&mut self, env: &Env<'_>, buf: &mut Buffer) {
        let view = u64::from(self.area.height);
        let total = self.heights.total();
        if total <= view {
            return;
        }
        let above = self.heights.before(self.top.root) + u64::from(self.row_in_root());
        let thumb = (view * view / total).clamp(1, view);
        let room = view - thumb;
        let at =
            if self.following { room } else { (above * room / (total - view).max(1)).min(room) };
        let x = self.area.right() - 1;
        let (glyph, style) = (env.theme.glyphs.thumb, env.theme.border);
        for row in at..at + thumb {
            let y = self.area.y + u16::try_from(row).unwrap_or(0);
            rows::draw_text(buf, (x, y), x + 1, glyph, style);
        }
    }

    /// Drops what is far out of sight. Sources stay in the model. What stays may double before this
    /// is done again, so that its cost is spread over the frames that made it necessary.
    fn evict(&mut self) {
        let too_many = self.layouts.len() > MAX_LAYOUTS;
        if self.kept <= self.keep && !too_many {
            return;
        }
        let (first, last) = self.visible;
        let newest = self.heights.len().saturating_sub(1);
        let (blocks, segments) = NEAR;
        let near = first.root.saturating_sub(blocks)..=last.root + blocks;
        self.kept = 0;
        self.layouts.retain(|root, layout| {
            if !near.contains(root) {
                layout.keep_only(0..0);
                return !too_many || *root == newest;
            }
            // One answer may be longer than everything else together.
            let count = layout.segments().len();
            let from = match root.cmp(&first.root) {
                Ordering::Less => count.saturating_sub(segments),
                Ordering::Equal => first.segment.saturating_sub(segments),
                Ordering::Greater => 0,
            };
            let to = match root.cmp(&last.root) {
                Ordering::Less => count,
                Ordering::Equal => last.segment + segments,
                Ordering::Greater => segments,
            };
            layout.keep_only(from..to);
            self.kept += layout.kept();
            true
        });
        self.keep = MAX_KEPT.max(self.kept * 2);
    }

    // ---- what the keys and the mouse do ------------------------------------------------------

    /// Whether the last row is kept in sight as text arrives.
    pub fn is_following(&self) -> bool {
        self.following
    }

    /// Blocks below the screen that came or grew since the reader scrolled away.
    pub fn new_below(&self) -> usize {
        self.new_below
    }

    /// What is at a screen position, as of the last frame.
    pub fn hit(&self, x: u16, y: u16) -> Option<Hit> {
        if !self.area.contains((x, y).into()) {
            return None;
        }
        *self.hits.get(usize::from(y - self.area.y))?
    }

    /// Whether a block is unfolded.
    pub fn is_expanded(&self, id: BlockId) -> bool {
        self.fold.is_open(id)
    }

    /// Marks a block as selected, for the keys that act on one block.
    pub fn select(&mut self, id: Option<BlockId>) {
        self.selected = id;
    }

    /// The selected block.
    pub fn selected(&self) -> Option<BlockId> {
        self.selected
    }

    /// Forgets the conversation but keeps what colours code: another one begins.
    pub fn reset(&mut self) {
        let code = std::mem::take(&mut self.code);
        *self = Self { code, ..Self::default() };
    }

    /// Gives the view what fetches spilled texts, for blocks that are shown in full.
    pub fn set_spill_reader(&mut self, read: impl Fn(SpillKey) -> Option<String> + 'static) {
        self.spilled = SpillReader(Some(Box::new(read)));
    }

    /// What colours code.
    pub(in crate::tui::view) fn code(&mut self) -> &mut Highlighter {
        &mut self.code
    }

    /// A block in full, for a page of its own. Made once until the block changes.
    pub(in crate::tui::view) fn block_paper(
        &mut self,
        transcript: &Transcript,
        id: BlockId,
        width: usize,
        theme: &Theme,
    ) -> (&mut Paper, &mut Highlighter) {
        let rev = transcript.block(id).map_or(0, |block| block.rev);
        let read = self.spilled.0.as_deref();
        let read = |key| read.and_then(|read| read(key));
        let is_known = |key: &PageKey| matches!(key, PageKey::Block(known, _) if *known == id);
        let known = self.page.take().filter(|(key, _)| is_known(key));
        let (key, pager) = self.page.insert(known.unwrap_or_else(|| {
            let pager = Pager::of_block(transcript, id, read);
            (PageKey::Block(id, rev), pager.unwrap_or_else(|| Pager::of_text("")))
        }));
        if !matches!(key, PageKey::Block(_, at) if *at == rev) {
            *key = PageKey::Block(id, rev);
            pager.update(transcript, id, read);
        }
        (pager.paper(width, theme), &mut self.code)
    }

    /// A text, for a page of its own. Made once.
    pub(in crate::tui::view) fn text_paper(
        &mut self,
        text: &Arc<str>,
        width: usize,
        theme: &Theme,
    ) -> (&mut Paper, &mut Highlighter) {
        let is_known =
            |key: &PageKey| matches!(key, PageKey::Text(known) if Arc::ptr_eq(known, text));
        let known = self.page.take().filter(|(key, _)| is_known(key));
        let (_, pager) = self.page.insert(
            known.unwrap_or_else(|| (PageKey::Text(Arc::clone(text)), Pager::of_text(&**text))),
        );
        (pager.paper(width, theme), &mut self.code)
    }

    /// What is asked, which `write` puts on paper once for a width. It is known by every byte of
    /// it: what is approved must never be an older question's text.
    pub(in crate::tui::view) fn asked(
        &mut self,
        body: &[BodyPart],
        width: usize,
        theme: &Theme,
        write: impl FnOnce(&mut Paper, &mut Highlighter),
    ) -> (&mut Paper, &mut Highlighter) {
        let is_known =
            |(known, paper): &(Vec<BodyPart>, Paper)| known == body && paper.fits(width, theme);
        let known = self.asked.take().filter(is_known);
        let (_, paper) = self.asked.insert(known.unwrap_or_else(|| {
            let mut paper = Paper::new(width, theme);
            write(&mut paper, &mut self.code);
            (body.to_vec(), paper)
        }));
        (paper, &mut self.code)
    }

    /// Looks for a text in everything, folded or not, goes to a match near the end of what is on
    /// the screen and marks all of them. An empty text marks nothing.
    pub fn find(&mut self, needle: &str) {
        self.ops.retain(|op| !matches!(op, Op::Find(_)));
        self.ops.push(Op::Find(needle.to_owned()));
    }

    /// Adds blocks whose text on disk has a match: the search stops at their cards too.
    pub fn found_on_disk(&mut self, blocks: &[BlockId]) {
        self.ops.push(Op::OnDisk(blocks.to_vec()));
    }

    /// Goes to the next or previous match.
    pub fn next_match(&mut self, forward: bool) {
        self.ops.push(Op::NextMatch(forward));
    }

    /// Ends the search; the screen stays where it is.
    pub fn end_search(&mut self) {
        self.search = None;
        self.needle = None;
        self.current = None;
    }

    /// Which match the search stands on, from 1, and how many there are.
    pub fn matches(&self) -> Option<(usize, usize)> {
        self.search.as_ref().map(Search::count)
    }
}

/// One row that says what a block is about.
pub(crate) fn summary_of(block: &Block, transcript: &Transcript, theme: &Theme) -> String {
    card::summary(block, transcript, theme).0
}

/// A printed row, wrapped.
pub(crate) fn printed_rows(row: &Row, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    output::row_lines(row, width, theme.text, theme)
}

/// Whether a card's header changes with the clock.
fn moves(kind: &BlockKind) -> bool {
    match kind {
        BlockKind::Tool(call) => call.status == ToolStatus::Running,
        BlockKind::Subagent(agent) => agent.running,
        BlockKind::Thought(message) => message.streaming,
        _ => false,
    }
}
