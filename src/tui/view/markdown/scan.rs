//! Where markdown may be cut: a scanner for top-level pieces that never changes its mind.
//!
//! Owns [`Scanner`]. It reads each line once, so feeding a stream costs time proportional to the
//! stream. A piece it has closed stays as it is whatever follows; that is why settled text need
//! not be parsed again. It decides blocks only: what is inside a piece is the parser's business.

use std::sync::Arc;

/// What a piece is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Paragraphs and whatever the parser makes of them.
    Text,
    /// A fenced code block.
    Fence(Fence),
    /// One item of a list.
    Item(Marker),
    /// Lines that begin with `>`.
    Quote,
    /// A thematic break.
    Rule,
    /// A table; the header's source when it continues one that was cut for its length.
    Table(Option<Arc<str>>),
    /// The rest of a paragraph too long to be kept open: plain text.
    Overflow,
}

/// How a fence opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    mark: u8,
    len: usize,
    indent: usize,
    /// Bytes from the piece's start to its first line of code.
    pub(super) body: usize,
}

/// The marker of a list item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    /// The number to show; `None` for a bullet.
    pub(super) number: Option<u64>,
    /// The character that ends or is the marker: items of different ones are different lists.
    symbol: u8,
    /// Columns before the item's content.
    pub(super) indent: usize,
    /// Bytes before the item's content on its first line.
    pub(super) skip: usize,
}

/// A cut-out of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// What it is.
    pub(super) kind: Kind,
    /// First byte.
    pub(super) start: usize,
    /// One past the last byte.
    pub(super) end: usize,
    /// Whether a blank row goes before it.
    pub(super) gap: bool,
}

/// A paragraph or item longer than this is cut, so that a stream without line feeds stays cheap.
const MAX_OPEN: usize = 8 * 1024;
/// Table rows before a table is cut and continued under the same header.
const MAX_ROWS: usize = 80;

/// The scanner's state between lines.
#[derive(Debug, Clone, Default)]
pub(super) struct Scanner {
    /// First byte not yet read.
    at: usize,
    /// Up to here there is no line feed after `at`: a long line is searched once.
    searched: usize,
    open: Option<Open>,
    /// Whether a blank line was read since the last text.
    blank: bool,
    /// Whether any piece was closed.
    begun: bool,
    /// The list that the next item may continue.
    list: Option<(u8, Option<u64>)>,
}

/// Bytes of one item: it may nest deeply, and what follows a cut has lost its indentation.
const MAX_ITEM: usize = 64 * 1024;

impl Open {
    fn limit(&self) -> usize {
        match self.piece.kind {
            Kind::Fence(_) => usize::MAX,
            Kind::Item(_) => MAX_ITEM,
            _ => MAX_OPEN,
        }
    }
}

#[derive(Debug, Clone)]
struct Open {
    piece: Piece,
    lines: usize,
    /// A fence inside an item.
    inner: Option<(u8, usize)>,
    /// Where the second line of a table's header ends.
    header_end: usize,
}

impl Scanner {
    /// Reads the complete lines of `src` that are new, and appends the pieces they close.
    pub(super) fn feed(&mut self, src: &str, out: &mut Vec<Piece>) {
        loop {
            self.overflow(src, out);
            let from = self.searched.max(self.at);
            let Some(found) = src.get(from..).and_then(line_feed) else {
                self.searched = src.len();
                return;
            };
            let line = src.get(self.at..from + found).unwrap_or_default();
            self.line(src, line, line.len() + 1, out);
        }
    }

    /// Closes everything, counting a last line without line feed as complete.
    pub(super) fn finish(mut self, src: &str, out: &mut Vec<Piece>) {
        self.feed(src, out);
        if let Some(rest) = src.get(self.at..)
            && !rest.is_empty()
        {
            self.line(src, rest, rest.len(), out);
        }
        self.close(self.at, out);
    }

    /// First byte that no closed piece covers.
    pub(super) fn settled(&self) -> usize {
        self.open.as_ref().map_or(self.at, |open| open.piece.start)
    }

    /// The open fence, when one is open, and where its complete lines end.
    pub(super) fn open_fence(&self) -> Option<(&Piece, usize)> {
        let open = self.open.as_ref()?;
        matches!(open.piece.kind, Kind::Fence(_)).then_some((&open.piece, self.at))
    }

    /// The same state for the source without its first `base` bytes, all of them settled.
    pub(super) fn rebased(&self, base: usize) -> Self {
        let mut it = self.clone();
        it.at = it.at.saturating_sub(base);
        it.searched = it.searched.saturating_sub(base);
        if let Some(open) = &mut it.open {
            open.piece.start = open.piece.start.saturating_sub(base);
            open.piece.end = open.piece.end.saturating_sub(base);
            open.header_end = open.header_end.saturating_sub(base);
        }
        it
    }

    fn line(&mut self, src: &str, line: &str, len: usize, out: &mut Vec<Piece>) {
        let start = self.at;
        let end = start + len;
        let line = line.strip_suffix('\r').unwrap_or(line);
        if !self.continues(src, line, (start, end), out) {
            self.begin(line, start, end, out);
        }
        self.at = end;
        if let Some(open) = &self.open
            && open.inner.is_none()
            && end - open.piece.start > open.limit()
        {
            self.close(end, out);
        }
    }

    /// Whether the line belongs to what is open. Closes what it does not belong to.
    fn continues(
        &mut self,
        src: &str,
        line: &str,
        (start, end): (usize, usize),
        out: &mut Vec<Piece>,
    ) -> bool {
        let blank = line.trim().is_empty();
        let Some(open) = &mut self.open else {
            return false;
        };
        match &open.piece.kind {
            Kind::Fence(fence) => {
                if closes(line, fence.mark, fence.len) {
                    self.close(end, out);
                }
                return true;
            }
            Kind::Item(marker) => {
                // Models nest with fewer blanks than the specification asks for.
                let inside = blank || indent_of(line) >= marker.indent.min(2);
                if let Some((mark, len)) = open.inner {
                    if inside {
                        if closes(line, mark, len) {
                            open.inner = None;
                        }
                        open.lines += 1;
                        return true;
                    }
                } else if blank {
                    self.blank = true;
                    return true;
                } else if inside {
                    open.inner = opens_fence(line).map(|fence| (fence.mark, fence.len));
                    open.lines += 1;
                    self.blank = false;
                    return true;
                } else if !self.blank && !starts_block(line, true) && !goes_on(marker, line) {
                    open.lines += 1;
                    return true;
                }
            }
            Kind::Quote => {
                if !blank && (is_quote(line) || !starts_block(line, true)) {
                    open.lines += 1;
                    return true;
                }
            }
            Kind::Table(_) => {
                if !blank && !starts_block(line, false) {
                    open.lines += 1;
                    if open.lines > MAX_ROWS {
                        self.cut_table(src, end, out);
                    }
                    return true;
                }
            }
            Kind::Text | Kind::Overflow => {
                if !blank && !starts_block(line, true) {
                    open.lines += 1;
                    if open.lines == 2 && is_delimiter(line) {
                        open.piece.kind = Kind::Table(None);
                        open.header_end = end;
                    }
                    return true;
                }
                // A line of dashes under a paragraph makes it a heading.
                if !blank && open.lines > 0 && is_underline(line) {
                    open.lines += 1;
                    return true;
                }
            }
            Kind::Rule => {}
        }
        self.close(start, out);
        false
    }

    fn begin(&mut self, line: &str, start: usize, end: usize, out: &mut Vec<Piece>) {
        if line.trim().is_empty() {
            self.blank = true;
            return;
        }
        let list = self.list.take();
        let mut gap = self.begun;
        let kind = if let Some(mut fence) = opens_fence(line) {
            fence.body = end - start;
            Kind::Fence(fence)
        } else if is_rule(line) {
            Kind::Rule
        } else if is_quote(line) {
            Kind::Quote
        } else if let Some(mut marker) = marker_of(line) {
            gap = gap && self.blank;
            if let Some((symbol, number)) = list
                && symbol == marker.symbol
            {
                marker.number = marker.number.and(number.map(|number| number + 1));
            }
            self.list = Some((marker.symbol, marker.number));
            Kind::Item(marker)
        } else {
            Kind::Text
        };
        self.blank = false;
        self.begun = true;
        let alone = matches!(kind, Kind::Rule) || is_heading(line);
        let inner = match &kind {
            Kind::Item(marker) => {
                line.get(marker.skip..).and_then(opens_fence).map(|fence| (fence.mark, fence.len))
            }
            _ => None,
        };
        self.open =
            Some(Open { piece: Piece { kind, start, end, gap }, lines: 1, inner, header_end: end });
        if alone {
            self.close(end, out);
        }
    }

    fn close(&mut self, end: usize, out: &mut Vec<Piece>) {
        if let Some(mut open) = self.open.take()
            && open.piece.start < end
        {
            open.piece.end = end;
            out.push(open.piece);
        }
    }

    fn cut_table(&mut self, src: &str, end: usize, out: &mut Vec<Piece>) {
        let Some(open) = self.open.take() else {
            return;
        };
        let header = match &open.piece.kind {
            Kind::Table(Some(header)) => header.clone(),
            _ => src.get(open.piece.start..open.header_end).unwrap_or_default().into(),
        };
        out.push(Piece { end, ..open.piece });
        self.open = Some(Open {
            piece: Piece { kind: Kind::Table(Some(header)), start: end, end, gap: false },
            lines: 0,
            inner: None,
            header_end: end,
        });
    }

    /// Cuts a line that grows without end. Where it is cut depends on the source alone.
    fn overflow(&mut self, src: &str, out: &mut Vec<Piece>) {
        loop {
            let in_fence =
                matches!(self.open.as_ref().map(|open| &open.piece.kind), Some(Kind::Fence(_)));
            let Some(rest) = src.get(self.at..) else {
                return;
            };
            if in_fence
                || rest.len() <= MAX_OPEN
                || line_feed(rest).is_some_and(|at| at <= MAX_OPEN)
            {
                return;
            }
            let cut = cut_of(rest);
            let line = rest.get(..cut).unwrap_or_default();
            if self.open.is_some() {
                let at = self.at;
                if !self.continues(src, line, (at, at + cut), out) {
                    self.begin(line, at, at + cut, out);
                }
            } else {
                self.begin(line, self.at, self.at + cut, out);
            }
            self.at += cut;
            self.close(self.at, out);
            self.begun = true;
            self.open = Some(Open {
                piece: Piece { kind: Kind::Overflow, start: self.at, end: self.at, gap: false },
                lines: 0,
                inner: None,
                header_end: self.at,
            });
        }
    }
}

/// The byte at which a line longer than [`MAX_OPEN`] is cut: after a space when one is near.
fn cut_of(rest: &str) -> usize {
    let mut limit = MAX_OPEN;
    while !rest.is_char_boundary(limit) {
        limit -= 1;
    }
    let head = rest.get(..limit).unwrap_or(rest);
    match head.rfind(' ') {
        Some(at) if at + 256 > limit => at + 1,
        _ => limit,
    }
}

fn line_feed(text: &str) -> Option<usize> {
    text.find('\n')
}

fn indent_of(line: &str) -> usize {
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

fn closes(line: &str, mark: u8, len: usize) -> bool {
    let bare = line.trim();
    indent_of(line) < 8 && bare.len() >= len && bare.bytes().all(|byte| byte == mark)
}

fn opens_fence(line: &str) -> Option<Fence> {
    let indent = indent_of(line);
    let bare = line.trim_start();
    let mark = *bare.as_bytes().first()?;
    if !matches!(mark, b'`' | b'~') {
        return None;
    }
    let len = bare.bytes().take_while(|byte| *byte == mark).count();
    let info = bare.get(len..).unwrap_or_default();
    // Inline code may begin a paragraph: its backticks come again on the same line.
    let inline = mark == b'`' && info.contains('`');
    (len >= 3 && !inline).then_some(Fence { mark, len, indent, body: 0 })
}

impl Fence {
    /// Whether a line closes it.
    pub(super) fn is_end(&self, line: &str) -> bool {
        closes(line.trim_end(), self.mark, self.len)
    }

    /// Takes off the indentation that the fence itself has.
    pub(super) fn dedent<'a>(&self, line: &'a str) -> &'a str {
        dedent(line, self.indent)
    }
}

/// Takes off at most `columns` columns of blanks.
pub(super) fn dedent(line: &str, columns: usize) -> &str {
    let mut rest = line;
    let mut left = columns;
    while left > 0 {
        if let Some(after) = rest.strip_prefix(' ') {
            rest = after;
            left -= 1;
        } else if let Some(after) = rest.strip_prefix('\t') {
            rest = after;
            left = left.saturating_sub(4);
        } else {
            break;
        }
    }
    rest
}

fn is_quote(line: &str) -> bool {
    indent_of(line) < 4 && line.trim_start().starts_with('>')
}

fn is_heading(line: &str) -> bool {
    let bare = line.trim_start();
    let level = bare.bytes().take_while(|byte| *byte == b'#').count();
    let after = bare.as_bytes().get(level);
    indent_of(line) < 4 && (1..=6).contains(&level) && matches!(after, None | Some(b' ' | b'\t'))
}

fn is_rule(line: &str) -> bool {
    let mut marks = line.bytes().filter(|byte| !matches!(byte, b' ' | b'\t'));
    let Some(mark) = marks.next().filter(|mark| b"-*_".contains(mark)) else {
        return false;
    };
    let mut count = 1;
    for byte in marks {
        if byte != mark {
            return false;
        }
        count += 1;
    }
    count >= 3 && indent_of(line) < 4
}

/// `---` or `===` under a paragraph.
fn is_underline(line: &str) -> bool {
    let bare = line.trim();
    indent_of(line) < 4
        && !bare.is_empty()
        && (bare.bytes().all(|byte| byte == b'-') || bare.bytes().all(|byte| byte == b'='))
}

/// The row under a table's header.
pub(super) fn is_delimiter(line: &str) -> bool {
    let bare = line.trim();
    bare.contains('-')
        && bare.contains('|')
        && bare.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ' | b'\t'))
}

/// Whether a line begins a block of its own even without a blank line before it.
/// `in_paragraph`: list items that could be prose do not interrupt one.
fn starts_block(line: &str, in_paragraph: bool) -> bool {
    if opens_fence(line).is_some() || is_heading(line) || is_quote(line) || is_rule(line) {
        return true;
    }
    marker_of(line).is_some_and(|marker| {
        let empty = line.trim().len() <= 2;
        !(in_paragraph && (empty || marker.number.is_some_and(|number| number != 1)))
    })
}

/// Whether a line is the next item of an item's list. A number that may not interrupt a paragraph
/// still does this.
fn goes_on(marker: &Marker, line: &str) -> bool {
    marker_of(line).is_some_and(|next| next.symbol == marker.symbol)
}

fn marker_of(line: &str) -> Option<Marker> {
    let indent = indent_of(line);
    if indent >= 4 {
        return None;
    }
    let bare = line.trim_start();
    let lead = line.len() - bare.len();
    let bytes = bare.as_bytes();
    let first = *bytes.first()?;
    let (symbol, width, number) = if matches!(first, b'-' | b'*' | b'+') {
        (first, 1, None)
    } else {
        let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let symbol = *bytes.get(digits)?;
        if !(1..=9).contains(&digits) || !matches!(symbol, b'.' | b')') {
            return None;
        }
        let number = bare.get(..digits)?.parse().ok()?;
        (symbol, digits + 1, Some(number))
    };
    let after = bare.get(width..)?;
    if !after.is_empty() && !after.starts_with([' ', '\t']) {
        return None;
    }
    let blanks = indent_of(after);
    // Five blanks or more are one blank and indented code.
    let blanks = if blanks == 0 || blanks > 4 { 1 } else { blanks };
    let skip = lead + width + after.len() - dedent(after, blanks).len();
    Some(Marker { number, symbol, indent: indent + width + blanks, skip })
}

/// Cuts all of `src` into pieces.
pub(super) fn pieces(src: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    Scanner::default().finish(src, &mut out);
    out
}
