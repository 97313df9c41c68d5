//! Pieces → lines: fences, items and quotes here, everything else through [`super::inline`].

use std::hash::{DefaultHasher, Hash, Hasher};

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::code;
use super::super::highlight::{Highlighter, Run};
use super::super::theme::Theme;
use super::super::width::{cell_width, truncate};
use super::scan::{Fence, Kind, Marker, Piece, dedent, pieces};
use super::{inline, table};

/// Nesting beyond this is drawn as plain text.
const MAX_DEPTH: usize = 10;
/// Cells that must be left beside a marker; else it is drawn as it was written.
const MIN_INNER: usize = 4;
/// Bytes of one line of code that are drawn; the pager has the rest.
pub(super) const LINE_CAP: usize = 16 * 1024;

/// What rendering needs besides the source.
pub(super) struct Pen<'a> {
    pub(super) theme: &'a Theme,
    pub(super) code: &'a mut Highlighter,
    /// Whether some code is still to get its colours.
    pub(super) pending: bool,
}

/// The lines of a piece. `key` names it for the highlighter and stays the same as it grows.
pub(super) fn piece(
    src: &str,
    piece: &Piece,
    width: usize,
    key: u64,
    pen: &mut Pen<'_>,
) -> Vec<Line<'static>> {
    nested(src, piece, width, (key, 0), pen)
}

fn nested(
    src: &str,
    piece: &Piece,
    width: usize,
    (key, depth): (u64, usize),
    pen: &mut Pen<'_>,
) -> Vec<Line<'static>> {
    let source = src.get(piece.start..piece.end).unwrap_or_default();
    let width = width.max(1);
    let theme = pen.theme;
    match &piece.kind {
        Kind::Fence(fence) => fence_lines(source, fence, width, key, pen),
        Kind::Item(marker) if depth < MAX_DEPTH => item(source, marker, width, (key, depth), pen),
        Kind::Quote if depth < MAX_DEPTH => quote(source, width, (key, depth), pen),
        Kind::Item(_) | Kind::Quote | Kind::Overflow => {
            inline::plain(source.trim_end(), width, theme.text)
        }
        Kind::Rule => vec![Line::styled(theme.glyphs.rule.repeat(width), theme.border)],
        Kind::Table(header) => {
            let head = header.as_deref().unwrap_or_default();
            table::render(&format!("{head}{source}"), width, theme)
        }
        Kind::Text => inline::text(source.trim_end(), width, theme),
    }
}

/// All of a source, block after block.
fn document(
    src: &str,
    width: usize,
    (key, depth): (u64, usize),
    pen: &mut Pen<'_>,
) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    for (n, piece) in pieces(src).iter().enumerate() {
        if piece.gap && !out.is_empty() {
            out.push(Line::default());
        }
        out.extend(nested(src, piece, width, (child_key(key, n), depth), pen));
    }
    out
}

fn child_key(key: u64, n: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, n).hash(&mut hasher);
    hasher.finish()
}

fn item(
    source: &str,
    marker: &Marker,
    width: usize,
    (key, depth): (u64, usize),
    pen: &mut Pen<'_>,
) -> Vec<Line<'static>> {
    let theme = pen.theme;
    let mut label = marker
        .number
        .map_or_else(|| format!("{} ", theme.glyphs.bullet), |number| format!("{number}. "));
    let mut body = String::with_capacity(source.len());
    for (n, line) in source.split_inclusive('\n').enumerate() {
        body.push_str(if n == 0 {
            line.get(marker.skip..).unwrap_or_default()
        } else {
            dedent(line, marker.indent)
        });
    }
    let mut style = theme.marker;
    for (task, sign) in [("[ ] ", "[ ] "), ("[x] ", "[x] "), ("[X] ", "[x] ")] {
        if let Some(rest) = body.strip_prefix(task) {
            if sign == "[x] " {
                style = theme.success;
            }
            label = if marker.number.is_some() { label + sign } else { sign.to_owned() };
            body = rest.to_owned();
            break;
        }
    }
    let indent = cell_width(&label);
    if width < indent + MIN_INNER {
        return inline::plain(source.trim(), width, theme.text);
    }
    let inner = width - indent;
    let lines = document(&body, inner, (key, depth + 1), pen);
    prefixed(lines, &Span::styled(label, style), &Span::raw(" ".repeat(indent)))
}

fn quote(
    source: &str,
    width: usize,
    (key, depth): (u64, usize),
    pen: &mut Pen<'_>,
) -> Vec<Line<'static>> {
    let theme = pen.theme;
    if width < 2 + MIN_INNER {
        return inline::plain(source.trim(), width, theme.text);
    }
    let mut body = String::with_capacity(source.len());
    for line in source.split_inclusive('\n') {
        let bare = line.trim_start_matches([' ', '\t']);
        let bare = bare.strip_prefix('>').unwrap_or(bare);
        body.push_str(bare.strip_prefix(' ').unwrap_or(bare));
    }
    let mut lines = Vec::new();
    let mut bar = theme.border;
    if let Some((name, style, rest)) = alert(&body, theme) {
        lines.push(Line::styled(truncate(name, width - 2, theme.glyphs.ellipsis), style));
        bar = style;
        body = rest.to_owned();
    }
    let inner = width.saturating_sub(2).max(1);
    lines.extend(document(&body, inner, (key, depth + 1), pen));
    for line in &mut lines {
        for span in &mut line.spans {
            span.style = theme.quote.patch(span.style);
        }
    }
    let bar = Span::styled(format!("{} ", theme.glyphs.bar), bar);
    prefixed(lines, &bar, &bar)
}

/// `[!NOTE]` and its kin at the top of a quote.
fn alert<'a>(body: &'a str, theme: &Theme) -> Option<(&'static str, Style, &'a str)> {
    let (first, rest) = body.split_once('\n').unwrap_or((body, ""));
    let (name, style) = match first.trim().to_ascii_uppercase().as_str() {
        "[!NOTE]" => ("Note", theme.accent),
        "[!TIP]" => ("Tip", theme.success),
        "[!IMPORTANT]" => ("Important", theme.accent),
        "[!WARNING]" => ("Warning", theme.warning),
        "[!CAUTION]" => ("Caution", theme.error),
        _ => return None,
    };
    Some((name, style, rest))
}

fn prefixed(
    lines: Vec<Line<'static>>,
    first: &Span<'static>,
    others: &Span<'static>,
) -> Vec<Line<'static>> {
    if lines.is_empty() {
        return vec![Line::from(first.clone())];
    }
    lines
        .into_iter()
        .enumerate()
        .map(|(n, mut line)| {
            let prefix = if n == 0 { first } else { others };
            line.spans.insert(0, prefix.clone());
            line
        })
        .collect()
}

fn fence_lines(
    source: &str,
    fence: &Fence,
    width: usize,
    key: u64,
    pen: &mut Pen<'_>,
) -> Vec<Line<'static>> {
    let body = body_of(source, fence);
    let part = Part { from: 0, to: body.len(), first_line: 0 };
    fence_part(source, fence, part, width, key, pen)
}

/// Some lines of a fence, by bytes of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) first_line: usize,
}

/// Draws some lines of a fence; the first ones with the language above them.
pub(super) fn fence_part(
    source: &str,
    fence: &Fence,
    part: Part,
    width: usize,
    key: u64,
    pen: &mut Pen<'_>,
) -> Vec<Line<'static>> {
    let theme = pen.theme;
    let lang = label(source, fence);
    let body = body_of(source, fence);
    let mut out = Vec::new();
    if part.from == 0 {
        out.extend(code_label(&lang, width, theme));
    }
    let colours = pen.code.lines_of(key, &lang, body, |line| fence.dedent(line));
    let text = body.get(part.from..part.to).unwrap_or_default();
    let lines = text.split_inclusive('\n').count();
    pen.pending |= colours.awaited && colours.lines.len() < part.first_line + lines;
    for (n, line) in text.split_inclusive('\n').enumerate() {
        let line = fence.dedent(line).trim_end_matches(['\n', '\r']);
        let runs = colours.lines.get(part.first_line + n).map_or(&[][..], Vec::as_slice);
        code_line(line, runs, width, theme, &mut out);
    }
    if body.is_empty() {
        out.push(code_row(Vec::new(), theme));
    }
    out
}

/// The language a fence names.
pub(super) fn label(source: &str, fence: &Fence) -> String {
    source
        .get(..fence.body)
        .unwrap_or(source)
        .trim()
        .trim_start_matches(['`', '~'])
        .split([' ', ',', '{'])
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// The row that names the language.
fn code_label(label: &str, width: usize, theme: &Theme) -> Option<Line<'static>> {
    (!label.is_empty()).then(|| {
        Line::from_iter([
            Span::styled(format!("{} ", theme.glyphs.bar), theme.border),
            Span::styled(
                truncate(label, width.saturating_sub(2), theme.glyphs.ellipsis),
                theme.code_label,
            ),
        ])
    })
}

/// What is between the markers of a fence; its own indentation is still there.
pub(super) fn body_of<'a>(source: &'a str, fence: &Fence) -> &'a str {
    let body = source.get(fence.body..).unwrap_or_default();
    let whole = body.strip_suffix('\n').unwrap_or(body);
    let last = whole.rfind('\n').map_or(0, |at| at + 1);
    let line = whole.get(last..).unwrap_or_default();
    if fence.is_end(line) { body.get(..last).unwrap_or_default() } else { body }
}

fn code_line(text: &str, runs: &[Run], width: usize, theme: &Theme, out: &mut Vec<Line<'static>>) {
    let mut cut = text.len().min(LINE_CAP);
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    let inner = width.saturating_sub(2).max(1);
    let pieces = code::pieces(text, runs, &[(cut, ())], |class, ()| code::style_of(class, theme));
    out.extend(code::rows(&pieces, inner).into_iter().map(|(spans, _)| code_row(spans, theme)));
    if cut < text.len() {
        // Not how far: of a line that still grows only this much is looked at.
        let note = format!("{} the line goes on", theme.glyphs.ellipsis);
        out.push(code_row(vec![Span::styled(note, theme.dim)], theme));
    }
}

fn code_row(mut spans: Vec<Span<'static>>, theme: &Theme) -> Line<'static> {
    spans.insert(0, Span::styled(format!("{} ", theme.glyphs.bar), theme.border));
    Line::from(spans)
}
