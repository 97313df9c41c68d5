//! The rows of one top-level block with everything nested in it, made when they are needed.
//!
//! Owns [`Layout`]: a list of segments, each drawn once for a width and kept until its source, the
//! width or the theme changes. A streaming answer settles segment by segment; only its unsettled
//! end is drawn again.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::rc::Rc;

use ratatui::text::Line;

use super::super::code::Ink;
use super::super::highlight::Highlighter;
use super::super::markdown::stream::{Brush, Stream, Tail, Unit, key_of};
use super::super::theme::Theme;
use super::super::width::cell_width;
use super::card::{self, Desk};
use super::heights::Heights;
use crate::tui::model::transcript::Transcript;
use crate::tui::model::transcript::block::{Block, BlockId, BlockKind, Message};

/// Which blocks are unfolded.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// Whether blocks are unfolded unless flipped.
    pub(super) all: bool,
    pub(super) flipped: HashSet<BlockId>,
}

impl Fold {
    pub(super) fn is_open(&self, id: BlockId) -> bool {
        self.all != self.flipped.contains(&id)
    }

    pub(super) fn toggle(&mut self, id: BlockId) {
        if !self.flipped.remove(&id) {
            self.flipped.insert(id);
        }
    }
}

/// What laying out takes.
#[derive(Debug)]
pub(super) struct Env<'a> {
    pub(super) transcript: &'a Transcript,
    /// The block whose children are the top-level blocks here; none for the conversation itself.
    pub(super) within: Option<BlockId>,
    pub(super) theme: &'a Theme,
    /// Cells of text, gutter and scrollbar aside.
    pub(super) width: usize,
    pub(super) now_ms: u64,
}

impl<'a> Env<'a> {
    /// The top-level blocks, oldest first.
    pub(super) fn roots(&self) -> &'a [BlockId] {
        self.transcript.below(self.within)
    }
}

#[derive(Debug)]
enum Kind {
    /// A whole block.
    Whole,
    /// A settled stretch of an answer.
    Settled(Unit),
    /// A stretch of an answer's unsettled end.
    Tail(Unit),
}

/// Rows that are drawn, kept and dropped together.
#[derive(Debug)]
pub(super) struct Segment {
    /// The block it shows.
    pub(super) block: BlockId,
    /// Levels below the top-level block.
    pub(super) depth: u8,
    /// Whether a blank row goes before it.
    pub(super) gap: bool,
    kind: Kind,
    rev: u32,
    open: bool,
    lines: Option<Rc<[Line<'static>]>>,
    /// Rows without the gap; a guess while there are no lines.
    height: u32,
    /// The highlighter's version when colours were still missing.
    awaits: Option<u64>,
}

impl Segment {
    /// Rows with the gap.
    pub(super) fn rows(&self) -> u32 {
        self.height + u32::from(self.gap)
    }

    /// Whether its first row is a header that depends on the clock.
    pub(super) fn is_card(&self) -> bool {
        matches!(self.kind, Kind::Whole)
    }

    /// Whether it is a stretch of a code block.
    pub(super) fn is_code(&self) -> bool {
        matches!(&self.kind, Kind::Settled(unit) | Kind::Tail(unit) if unit.is_code())
    }

    /// The rows, once drawn.
    pub(super) fn lines(&self) -> Option<&Rc<[Line<'static>]>> {
        self.lines.as_ref()
    }

    /// Whether it shows the source from `start()` on, and where that is.
    pub(super) fn start(&self) -> Option<usize> {
        match &self.kind {
            Kind::Settled(unit) => Some(unit.start()),
            Kind::Whole | Kind::Tail(_) => None,
        }
    }
}

/// The rows of a top-level block. What a frame costs does not grow with the number of segments.
#[derive(Debug, Default)]
pub(super) struct Layout {
    segments: Vec<Segment>,
    /// Rows of each segment with its gap.
    heights: Heights,
    /// Segments that hold lines, the unsettled end aside, and how many lines they hold.
    drawn: BTreeSet<usize>,
    kept: usize,
    rev: Option<u32>,
    width: usize,
    stream: Option<Stream>,
    /// How many segments are settled.
    settled: usize,
    tail: Tail,
    epoch: u32,
}

impl Layout {
    /// The segments, in order.
    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The source that an answer's segments are cut from.
    pub(super) fn source<'a>(&'a self, message: &'a str) -> &'a str {
        self.stream.as_ref().map_or(message, |stream| stream.source(message))
    }

    /// A segment of an answer and the bytes of the source that it shows.
    pub(super) fn stretch(&self, at: usize, message: &str) -> Option<(&Segment, Range<usize>)> {
        let segment = self.segments.get(at)?;
        let source = self.source(message);
        let range = match (&segment.kind, &self.stream) {
            (Kind::Settled(unit), _) => unit.start()..unit.end(),
            (Kind::Tail(unit), Some(stream)) => {
                let base = stream.settled();
                base + unit.start()..base + unit.end()
            }
            _ => 0..source.len(),
        };
        // The end of a stream is mended for drawing, and may be longer than what has come.
        let end = range.end.min(source.len());
        Some((segment, range.start.min(end)..end))
    }

    /// Rows of all segments, as far as known.
    pub(super) fn height(&self) -> u32 {
        u32::try_from(self.heights.total()).unwrap_or(u32::MAX)
    }

    /// Rows of the segments before one of them, as far as known.
    pub(super) fn above(&self, segment: usize) -> u32 {
        u32::try_from(self.heights.before(segment)).unwrap_or(u32::MAX)
    }

    /// Forgets what it knows of the block, but not the settled source.
    pub(super) fn invalidate(&mut self) {
        self.rev = None;
    }

    /// Drops the lines of all segments but these; heights stay.
    pub(super) fn keep_only(&mut self, near: Range<usize>) {
        let Self { segments, drawn, kept, .. } = self;
        drawn.retain(|at| {
            let stays = near.contains(at);
            if !stays && let Some(segment) = segments.get_mut(*at) {
                *kept -= segment.lines.take().map_or(0, |lines| lines.len());
            }
            stays
        });
    }

    /// Lines that are kept, those of the unsettled end aside.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    fn push(&mut self, segment: Segment) {
        self.heights.push(segment.rows());
        self.segments.push(segment);
    }

    /// Brings the list of segments up to date. `first` says that nothing is above.
    /// Returns whether anything changed.
    pub(super) fn sync(
        &mut self,
        root: &Block,
        env: &Env<'_>,
        fold: &Fold,
        code: &mut Highlighter,
        first: bool,
    ) -> bool {
        if self.rev == Some(root.rev) && self.width == env.width {
            return false;
        }
        if self.width != env.width {
            self.width = env.width;
            self.keep_only(0..0);
        }
        self.rev = Some(root.rev);
        match &root.kind {
            BlockKind::Assistant(message) => self.message(root, message, env, code, first),
            _ => self.cards(root, env, fold, first),
        }
        true
    }

    fn message(
        &mut self,
        root: &Block,
        message: &Message,
        env: &Env<'_>,
        code: &mut Highlighter,
        first: bool,
    ) {
        if self.stream.is_none() || self.epoch != message.epoch {
            self.stream = Some(Stream::new(key_of(root.id, message.epoch as usize)));
            self.epoch = message.epoch;
            self.keep_only(0..0);
            self.settled = 0;
        }
        let Some(stream) = &mut self.stream else {
            return;
        };
        self.segments.truncate(self.settled);
        self.heights.truncate(self.settled);
        let mut units = Vec::new();
        stream.advance(&message.text, &mut units);
        let (tail, rest) = stream.tail(&message.text, message.streaming);
        for unit in units {
            let gap = if self.segments.is_empty() { !first } else { unit.gap() };
            let height = guess(unit.len(), unit.is_code(), env.width);
            self.push(Segment {
                block: root.id,
                depth: 0,
                gap,
                kind: Kind::Settled(unit),
                rev: root.rev,
                open: true,
                lines: None,
                height,
                awaits: None,
            });
        }
        self.settled = self.segments.len();
        self.tail = tail;
        for unit in rest {
            let Some(stream) = &self.stream else {
                return;
            };
            let mut brush = Brush { width: env.width, theme: env.theme, code };
            let (lines, pending) = stream.draw_tail(&message.text, &self.tail, &unit, &mut brush);
            let gap = if self.segments.is_empty() { !first } else { unit.gap() };
            self.push(Segment {
                block: root.id,
                depth: 0,
                gap,
                kind: Kind::Tail(unit),
                rev: root.rev,
                open: true,
                height: rows_of(&lines),
                lines: Some(lines.into()),
                awaits: pending.then(|| code.version()),
            });
        }
    }

    /// A card and, when it is unfolded, the cards nested in it.
    fn cards(&mut self, root: &Block, env: &Env<'_>, fold: &Fold, first: bool) {
        let mut old = std::mem::take(&mut self.segments).into_iter();
        self.heights.truncate(0);
        self.drawn.clear();
        self.kept = 0;
        let mut stack = vec![(root.id, 0u8)];
        while let Some((id, depth)) = stack.pop() {
            let Some(block) = env.transcript.block(id) else {
                continue;
            };
            let open = fold.is_open(id);
            let known = old.next().filter(|segment| {
                segment.block == id && segment.rev == block.rev && segment.open == open
            });
            let gap = if self.segments.is_empty() { !first } else { open };
            let segment = known.unwrap_or(Segment {
                block: id,
                depth,
                gap,
                kind: Kind::Whole,
                rev: block.rev,
                open,
                lines: None,
                height: 3,
                awaits: None,
            });
            if let Some(lines) = &segment.lines {
                self.kept += lines.len();
                self.drawn.insert(self.segments.len());
            }
            self.push(segment);
            if open {
                let below = block.children.iter().rev();
                stack.extend(below.map(|child| (*child, depth.saturating_add(1))));
            }
        }
        self.settled = self.segments.len();
    }

    /// Makes the lines of a segment. Returns its rows.
    pub(super) fn draw(
        &mut self,
        at: usize,
        env: &Env<'_>,
        fold: &Fold,
        code: &mut Highlighter,
    ) -> u32 {
        let Some(segment) = self.segments.get_mut(at) else {
            return 0;
        };
        let stale = segment.awaits.is_some_and(|version| version != code.version());
        if segment.lines.is_some() && !stale {
            return segment.rows();
        }
        let Some(block) = env.transcript.block(segment.block) else {
            return segment.rows();
        };
        let (lines, pending) = match (&segment.kind, &self.stream, &block.kind) {
            (Kind::Settled(unit), Some(stream), BlockKind::Assistant(message)) => {
                let mut brush = Brush { width: env.width, theme: env.theme, code };
                stream.draw(&message.text, unit, &mut brush)
            }
            (Kind::Tail(unit), Some(stream), BlockKind::Assistant(message)) => {
                let mut brush = Brush { width: env.width, theme: env.theme, code };
                stream.draw_tail(&message.text, &self.tail, unit, &mut brush)
            }
            _ => {
                let desk = desk(env, fold, segment);
                let mut ink = Ink::new(code);
                let lines = card::lines(block, &desk, env.now_ms, &mut ink);
                (lines, ink.pending)
            }
        };
        segment.height = rows_of(&lines);
        if at < self.settled {
            self.kept += lines.len();
            self.kept -= segment.lines.as_ref().map_or(0, |lines| lines.len());
            self.drawn.insert(at);
        }
        segment.lines = Some(lines.into());
        segment.awaits = pending.then(|| code.version());
        self.heights.set(at, segment.rows());
        segment.rows()
    }
}

/// What drawing a segment's card takes.
pub(super) fn desk<'a>(env: &Env<'a>, fold: &Fold, segment: &Segment) -> Desk<'a> {
    let indent = usize::from(segment.depth) * 2;
    Desk {
        transcript: env.transcript,
        theme: env.theme,
        width: env.width.saturating_sub(indent).max(4),
        expanded: fold.is_open(segment.block),
    }
}

/// Whether a span of a row is the line number of a diff: a number or blanks, then a sign.
pub(super) fn is_line_number(line: &Line<'_>, at: usize, theme: &Theme) -> bool {
    let sign = line.spans.get(at + 1).map(|span| span.content.as_ref());
    line.spans.get(at).is_some_and(|span| {
        line.style.patch(span.style) == theme.line_number
            && span.content.ends_with(' ')
            && span.content.bytes().all(|b| b == b' ' || b.is_ascii_digit())
            && matches!(sign, Some("+ " | "- " | "  "))
    })
}

/// The half of a row of a diff drawn side by side, else the row.
pub(super) fn half_of<'a>(line: &'a Line<'static>, right: bool, theme: &Theme) -> Line<'a> {
    let numbers: Vec<usize> =
        (0..line.spans.len()).filter(|at| is_line_number(line, *at, theme)).collect();
    let bar = |at: usize| line.spans.get(at).is_some_and(|s| s.content == theme.glyphs.bar);
    // The second number comes right after the bar between the halves.
    let Some(middle) = numbers.get(1).map(|at| at.saturating_sub(1)).filter(|at| bar(*at)) else {
        return line.clone();
    };
    let blank = |spans: &[ratatui::text::Span<'_>]| {
        let cells: usize = spans.iter().map(|span| cell_width(&span.content)).sum();
        ratatui::text::Span::styled(" ".repeat(cells.saturating_sub(2)), theme.line_number)
    };
    let (left, rest) = line.spans.split_at_checked(middle + 1).unwrap_or((&line.spans, &[]));
    let spans = if right {
        let sign = ratatui::text::Span::raw("  ");
        [blank(left), sign].into_iter().chain(rest.iter().cloned()).collect()
    } else {
        left.get(..middle).unwrap_or_default().to_vec()
    };
    Line { spans, ..line.clone() }
}

fn rows_of(lines: &[Line<'_>]) -> u32 {
    u32::try_from(lines.len()).unwrap_or(u32::MAX)
}

/// Rows that so many bytes may take.
fn guess(bytes: usize, code: bool, width: usize) -> u32 {
    let per_row = if code { 28 } else { width.max(1) };
    u32::try_from(bytes / per_row + 1).unwrap_or(u32::MAX)
}

/// Rows that a block which was never drawn may take, with its gap.
pub(super) fn estimate(block: &Block, width: usize) -> u32 {
    match &block.kind {
        BlockKind::User(m) => guess(m.text.len(), false, width).min(21) + 1,
        BlockKind::Assistant(m) => guess(m.text.len(), false, width) + 1,
        BlockKind::Thought(_) | BlockKind::TurnEnd(_) => 2,
        BlockKind::Tool(_) => 5,
        BlockKind::Plan(plan) => u32::try_from(plan.entries.len()).unwrap_or(0) + 2,
        BlockKind::Notice(_) | BlockKind::Subagent(_) => 3,
        BlockKind::Unknown(_) => 8,
    }
}
