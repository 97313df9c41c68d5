//! The conversation on the screen.

use std::collections::HashSet;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use super::theme::Theme;
use crate::tui::model::transcript::Transcript;
use crate::tui::model::transcript::block::BlockId;

/// What lies under a screen position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The block.
    pub block: BlockId,
    /// Whether it is the block's header, where a click folds and unfolds.
    pub header: bool,
}

/// Scroll state and caches of the conversation. Scroll wishes are carried out by the next
/// [`TranscriptView::render`].
#[derive(Debug, Default)]
pub struct TranscriptView {
    expanded: HashSet<BlockId>,
}

impl TranscriptView {
    /// Makes a view that follows the tail.
    pub fn new() -> Self {
        Self::default()
    }

    /// Draws the visible part of the conversation into `area`.
    pub fn render(
        &mut self,
        transcript: &Transcript,
        area: Rect,
        buf: &mut Buffer,
        theme: &Theme,
        _now_ms: u64,
    ) {
        let mut lines: Vec<Line<'static>> = Vec::new();
        for id in transcript.roots() {
            let text = crate::tui::model::transcript::source::of_block(transcript, *id)
                .unwrap_or_default();
            lines.extend(super::markdown::render(&text, usize::from(area.width), theme));
            lines.push(Line::default());
        }
        let skip = lines.len().saturating_sub(usize::from(area.height));
        for (y, line) in (area.y..area.bottom()).zip(lines.into_iter().skip(skip)) {
            line.render(Rect { y, height: 1, ..area }, buf);
        }
    }

    /// Scrolls by rows; negative is up.
    pub fn scroll_by(&mut self, _rows: isize) {}

    /// Scrolls by pages; negative is up.
    pub fn page(&mut self, _pages: isize) {}

    /// Goes to the first row.
    pub fn to_top(&mut self) {}

    /// Goes to the last row and follows it.
    pub fn to_tail(&mut self) {}

    /// Goes to the previous prompt.
    pub fn to_previous_prompt(&mut self) {}

    /// Goes to the next prompt.
    pub fn to_next_prompt(&mut self) {}

    /// Brings a block to the top of the screen.
    pub fn to_block(&mut self, _id: BlockId) {}

    /// Whether the last row is kept in sight as text arrives.
    pub fn is_following(&self) -> bool {
        true
    }

    /// Blocks below the screen that came or grew since the person scrolled away.
    pub fn new_below(&self) -> usize {
        0
    }

    /// What is at a screen position, as of the last frame.
    pub fn hit(&self, _x: u16, _y: u16) -> Option<Hit> {
        None
    }

    /// Folds or unfolds a block.
    pub fn toggle(&mut self, id: BlockId) {
        if !self.expanded.remove(&id) {
            self.expanded.insert(id);
        }
    }

    /// Unfolds every block, or folds every block.
    pub fn expand_all(&mut self, _expanded: bool) {}

    /// Marks a block as selected, for the keys that act on one block.
    pub fn select(&mut self, _id: Option<BlockId>) {}

    /// The selected block.
    pub fn selected(&self) -> Option<BlockId> {
        None
    }
}
