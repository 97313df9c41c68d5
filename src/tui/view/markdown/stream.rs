//! Markdown that arrives in pieces: what is settled is drawn once, the end is drawn again.
//!
//! Owns [`Stream`], the incremental cut of a growing source into [`Unit`]s, and the mending of an
//! unfinished end, so that half a marker does not flicker. Called by the transcript view.

use std::hash::{DefaultHasher, Hash, Hasher};

use ratatui::text::Line;

use super::super::ansi;
use super::super::highlight::Highlighter;
use super::super::theme::Theme;
use super::render::{self, Part, Pen};
use super::scan::{Kind, Piece, Scanner, is_delimiter};

/// Lines of code that are drawn, cached and evicted together.
const PART_LINES: usize = 64;

/// A stretch of the source that is drawn on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    piece: Piece,
    part: Option<Part>,
}

impl Unit {
    /// Whether a blank row goes before it.
    pub(crate) fn gap(&self) -> bool {
        self.piece.gap && self.part.is_none_or(|part| part.from == 0)
    }

    /// Bytes of source it covers, for an estimate of its height.
    pub(crate) fn len(&self) -> usize {
        self.part.map_or(self.piece.end - self.piece.start, |part| part.to - part.from)
    }

    /// Where it begins in its source.
    pub(crate) fn start(&self) -> usize {
        self.piece.start
            + self.part.map_or(0, |part| match &self.piece.kind {
                Kind::Fence(fence) => fence.body + part.from,
                _ => 0,
            })
    }

    /// One past its last byte in its source.
    pub(crate) fn end(&self) -> usize {
        match self.part {
            Some(_) => self.start() + self.len(),
            None => self.piece.end,
        }
    }

    /// The same stretch of a source that begins so many bytes earlier.
    pub(crate) fn moved(mut self, by: usize) -> Self {
        self.piece.start += by;
        self.piece.end += by;
        self
    }

    /// Lines it is sure to have: code is not joined as prose is.
    pub(crate) fn is_code(&self) -> bool {
        self.part.is_some()
    }
}

/// The name of a text for the highlighter, from what makes it unique.
pub(crate) fn key_of(owner: impl Hash, start: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (owner, start).hash(&mut hasher);
    hasher.finish()
}

/// What drawing takes besides the source.
#[derive(Debug)]
pub(crate) struct Brush<'a> {
    pub(crate) width: usize,
    pub(crate) theme: &'a Theme,
    pub(crate) code: &'a mut Highlighter,
}

/// Lines, and whether some of their colours are still to come.
pub(crate) type Drawn = (Vec<Line<'static>>, bool);

/// The end of a source that is not settled, as it is drawn.
#[derive(Debug)]
pub(crate) enum Tail {
    /// The source up to this byte. An open fence may be long: it is not copied.
    AsItIs(usize),
    /// A copy with half markers hidden or closed.
    Mended(String),
}

impl Default for Tail {
    fn default() -> Self {
        Self::AsItIs(0)
    }
}

/// Cuts a growing source into units.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Bytes of the message that were read.
    seen: usize,
    /// The source with unseen characters made visible, once it differs from the message.
    clean: Option<String>,
    scanner: Scanner,
    /// The fence whose lines are being cut into parts: its start, and the next part.
    fence: Option<(usize, Part)>,
    owner: u64,
}

impl Stream {
    /// Begins a stream. `owner` makes its highlighter keys its own.
    pub(crate) fn new(owner: u64) -> Self {
        Self { owner, ..Self::default() }
    }

    /// Reads what is new in `message` and appends the units that are settled now.
    pub(crate) fn advance(&mut self, message: &str, out: &mut Vec<Unit>) {
        self.read(message);
        let src = self.clean.as_deref().unwrap_or(message);
        let mut pieces = Vec::new();
        self.scanner.feed(src, &mut pieces);
        for piece in pieces {
            let source = src.get(piece.start..piece.end).unwrap_or_default();
            cut(piece, source, true, &mut self.fence, out);
        }
        if let Some((piece, end)) = self.scanner.open_fence() {
            let piece = Piece { end, ..piece.clone() };
            let source = src.get(piece.start..end).unwrap_or_default();
            cut(piece, source, false, &mut self.fence, out);
        }
    }

    /// The source that units are cut from: the message, with unseen characters made visible.
    pub(crate) fn source<'a>(&'a self, message: &'a str) -> &'a str {
        self.clean.as_deref().unwrap_or(message)
    }

    /// How many bytes of the source are settled.
    pub(crate) fn settled(&self) -> usize {
        self.scanner.settled()
    }

    fn read(&mut self, message: &str) {
        let new = message.get(self.seen..).unwrap_or_default();
        self.seen = message.len();
        let cleaned = ansi::prose(new);
        match &mut self.clean {
            Some(clean) => clean.push_str(&cleaned),
            None if cleaned == new => {}
            None => {
                let known = message.len() - new.len();
                let mut clean = message.get(..known).unwrap_or_default().to_owned();
                clean.push_str(&cleaned);
                self.clean = Some(clean);
            }
        }
    }

    /// The units of what is not settled, with the source they belong to. `mended` hides half
    /// markers while more is to come.
    pub(crate) fn tail(&self, message: &str, mended: bool) -> (Tail, Vec<Unit>) {
        let src = self.clean.as_deref().unwrap_or(message);
        let base = self.scanner.settled();
        let rest = src.get(base..).unwrap_or_default();
        let tail = match (mended, self.scanner.open_fence()) {
            (false, _) => Tail::AsItIs(src.len()),
            (true, Some((_, lines))) => Tail::AsItIs(whole_code(src, lines)),
            (true, None) => Tail::Mended(mend(rest)),
        };
        let text = self.tail_text(message, &tail);
        let mut pieces = Vec::new();
        self.scanner.rebased(base).finish(text, &mut pieces);
        let mut units = Vec::new();
        let mut fence = self.fence.map(|(start, part)| (start.wrapping_sub(base), part));
        for piece in pieces {
            let source = text.get(piece.start..piece.end).unwrap_or_default();
            cut(piece, source, true, &mut fence, &mut units);
        }
        (tail, units)
    }

    fn tail_text<'a>(&'a self, message: &'a str, tail: &'a Tail) -> &'a str {
        match tail {
            Tail::AsItIs(end) => {
                self.source(message).get(self.scanner.settled()..*end).unwrap_or_default()
            }
            Tail::Mended(text) => text,
        }
    }

    /// Draws a settled unit.
    pub(crate) fn draw(&self, message: &str, unit: &Unit, brush: &mut Brush<'_>) -> Drawn {
        let src = self.clean.as_deref().unwrap_or(message);
        draw(src, unit, key_of(self.owner, unit.piece.start), brush)
    }

    /// Draws a unit of the tail.
    pub(crate) fn draw_tail(
        &self,
        message: &str,
        tail: &Tail,
        unit: &Unit,
        brush: &mut Brush<'_>,
    ) -> Drawn {
        let base = self.scanner.settled();
        let text = self.tail_text(message, tail);
        draw(text, unit, key_of(self.owner, base + unit.piece.start), brush)
    }
}

fn draw(src: &str, unit: &Unit, key: u64, brush: &mut Brush<'_>) -> Drawn {
    let mut pen = Pen { theme: brush.theme, code: brush.code, pending: false };
    let lines = match (&unit.piece.kind, unit.part) {
        (Kind::Fence(fence), Some(part)) => {
            let source = src.get(unit.piece.start..unit.piece.end).unwrap_or_default();
            render::fence_part(source, fence, part, brush.width, key, &mut pen)
        }
        _ => render::piece(src, &unit.piece, brush.width, key, &mut pen),
    };
    (lines, pen.pending)
}

/// Turns a piece into units: a fence becomes parts, anything else is one. `closed` says that no
/// more of the fence comes, so that a last short part is made too.
fn cut(
    piece: Piece,
    source: &str,
    closed: bool,
    progress: &mut Option<(usize, Part)>,
    out: &mut Vec<Unit>,
) {
    let Kind::Fence(fence) = &piece.kind else {
        out.push(Unit { piece, part: None });
        return;
    };
    let body = if closed {
        render::body_of(source, fence)
    } else {
        source.get(fence.body..).unwrap_or_default()
    };
    let mut part = match progress.take() {
        Some((start, part)) if start == piece.start => part,
        _ => Part { from: 0, to: 0, first_line: 0 },
    };
    let mut lines = 0;
    let mut to = part.from;
    for line in body.get(part.from..).unwrap_or_default().split_inclusive('\n') {
        to += line.len();
        lines += 1;
        if lines == PART_LINES {
            out.push(Unit { piece: piece.clone(), part: Some(Part { to, ..part }) });
            part = Part { from: to, to, first_line: part.first_line + lines };
            lines = 0;
        }
    }
    if !closed {
        *progress = Some((piece.start, part));
    } else if to > part.from || part.from == 0 {
        out.push(Unit { piece, part: Some(Part { to, ..part }) });
    }
}

/// How much of an open fence, whose complete lines end at `lines`, is drawn: all that is code for
/// sure. A last line of marks may be half of its end; of one too long no more is looked at than
/// is drawn.
fn whole_code(src: &str, lines: usize) -> usize {
    let last = src.get(lines..).unwrap_or_default();
    if last.len() > render::LINE_CAP {
        return src.ceil_char_boundary(lines + render::LINE_CAP + 1);
    }
    let bare = last.trim();
    let half = !bare.is_empty() && bare.bytes().all(|b| matches!(b, b'`' | b'~'));
    if half { lines } else { src.len() }
}

/// Hides what is only half there at the end of a stream, outside of fences.
fn mend(rest: &str) -> String {
    let cut = rest.rfind('\n').map_or(0, |at| at + 1);
    let (before, last) = rest.split_at_checked(cut).unwrap_or((rest, ""));
    if is_half_marker(last) {
        return hold_table(before).to_owned();
    }
    if last.trim_start().starts_with('|') {
        return hold_table(before).to_owned();
    }
    let mut text = hold_table(rest).to_owned();
    close_inline(&mut text);
    text
}

/// A line that may still become a heading, a rule, a list item, a fence or a table row.
fn is_half_marker(line: &str) -> bool {
    let bare = line.trim();
    if bare.is_empty() || bare.len() > 12 {
        return false;
    }
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let after = bare.get(digits..).unwrap_or_default();
    if (1..=3).contains(&digits) {
        return matches!(after, "" | "." | ")");
    }
    bare.bytes().all(|b| {
        matches!(b, b'-' | b'=' | b'#' | b'*' | b'+' | b'>' | b'`' | b'~' | b'|' | b'_' | b':')
    })
}

/// A table's header is held until the row of dashes below it is complete.
fn hold_table(text: &str) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = body.rfind('\n').map_or(0, |at| at + 1);
    let line = body.get(start..).unwrap_or_default();
    let row = line.trim_start().starts_with('|') && !is_delimiter(line);
    if !row {
        return text;
    }
    let above = text.get(..start).unwrap_or_default();
    let paragraph_begins =
        above.is_empty() || above.trim_end_matches([' ', '\t']).ends_with("\n\n");
    if paragraph_begins || !above.lines().next_back().unwrap_or_default().contains('|') {
        above
    } else {
        text
    }
}

/// Closes code, bold and struck text that is open at the end, and drops half a link's address.
fn close_inline(text: &mut String) {
    let start = text.rfind("\n\n").map_or(0, |at| at + 2);
    let last = text.get(start..).unwrap_or_default();
    let ticks = last.matches('`').count();
    if ticks % 2 == 1 && !last.contains("``") {
        if text.ends_with('`') {
            text.pop();
        } else {
            text.push('`');
        }
        return;
    }
    if let Some(at) = last.rfind("](")
        && !last.get(at..).unwrap_or_default().contains(')')
        && let Some(open) = last.get(..at).unwrap_or_default().rfind('[')
    {
        let label = last.get(open + 1..at).unwrap_or_default().to_owned();
        text.truncate(start + open);
        text.push_str(&label);
        return;
    }
    let trimmed = text.trim_end_matches('*').len();
    let stars = text.len() - trimmed;
    if stars > 0
        && (text.is_empty() || text.get(..trimmed).is_some_and(|t| t.ends_with([' ', '\n'])))
    {
        text.truncate(trimmed);
    }
    for mark in ["**", "~~"] {
        let last = text.get(start..).unwrap_or_default();
        if last.matches(mark).count() % 2 == 1 {
            if text.ends_with([' ', '\n']) {
                let kept = text.trim_end().len();
                text.truncate(kept);
            }
            if text.ends_with('*') && !text.ends_with("**") {
                text.push('*');
            } else {
                text.push_str(mark);
            }
        }
    }
}
