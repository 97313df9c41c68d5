//! The few shapes that several views draw: a titled frame, a rule with labels, a line of spans.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget as _;

use super::theme::Theme;
use super::transcript::rows::{self, Slot};
use super::width;

/// Below this height frames have no sides and every row counts.
const LOW: u16 = 10;
/// Below this width they have none either.
const NARROW: u16 = 30;

/// Whether the screen has no room for frames around what is asked or read.
pub(super) fn is_tiny(screen: Rect) -> bool {
    screen.height < LOW || screen.width < NARROW
}

/// What of an area is inside its frame.
pub(super) fn inside(area: Rect, screen: Rect) -> Rect {
    let side = if is_tiny(screen) { 0 } else { 2 };
    Rect::new(
        area.x + side,
        area.y + 1,
        area.width.saturating_sub(2 * side),
        area.height.saturating_sub(2),
    )
}

/// Empties an area. A wide glyph that reaches into it from the left goes as a whole: half of it would
/// hide the area's first cell.
pub(super) fn clear(area: Rect, buf: &mut Buffer) {
    for y in area.y..area.bottom() {
        if let Some(left) = area.x.checked_sub(1).and_then(|x| buf.cell_mut((x, y)))
            && width::cell_width(left.symbol()) > 1
        {
            left.set_symbol(" ");
        }
        for x in area.x..area.right() {
            if let Some(cell) = buf.cell_mut((x, y)) {
                cell.reset();
            }
        }
    }
}

/// Writes a text that is cut to the width; returns the cells it took.
pub(super) fn put(buf: &mut Buffer, x: u16, y: u16, text: &str, room: u16, style: Style) -> u16 {
    let cut = width::truncate(text, usize::from(room), "…");
    buf.set_string(x, y, &cut, style);
    u16::try_from(width::cell_width(&cut)).unwrap_or(room)
}

/// Writes a line of spans that is cut to the width.
pub(super) fn put_line(buf: &mut Buffer, x: u16, y: u16, room: u16, line: &Line<'_>) {
    let area = Rect::new(x, y, room, 1).intersection(buf.area);
    if line.spans.iter().map(|span| width::cell_width(&span.content)).sum::<usize>()
        <= usize::from(area.width)
    {
        line.render(area, buf);
        return;
    }
    let spans = line
        .spans
        .iter()
        .map(|span| Span::styled(span.content.as_ref(), line.style.patch(span.style)));
    put_spans(buf, area.x, area.y, area.width, spans.collect());
}

/// Draws a rounded frame with a title and a note at the bottom; returns its inside.
pub(super) fn frame(
    area: Rect,
    title: &str,
    note: &str,
    style: Style,
    theme: &Theme,
    buf: &mut Buffer,
) -> Rect {
    clear(area, buf);
    if area.width < 4 || area.height < 3 {
        return area;
    }
    let corners = if theme.spec.utf8 { ["╭", "╮", "╰", "╯"] } else { ["+", "+", "+", "+"] };
    let (across, down) = if theme.spec.utf8 { ("─", "│") } else { ("-", "|") };
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    if is_tiny(buf.area) {
        let line = across.repeat(usize::from(area.width));
        buf.set_string(area.x, area.y, &line, style);
        buf.set_string(area.x, bottom, &line, style);
    } else {
        let line = across.repeat(usize::from(area.width - 2));
        buf.set_string(area.x, area.y, format!("{}{line}{}", corners[0], corners[1]), style);
        buf.set_string(area.x, bottom, format!("{}{line}{}", corners[2], corners[3]), style);
        for y in area.y + 1..bottom {
            buf.set_string(area.x, y, down, style);
            buf.set_string(right, y, down, style);
        }
    }
    let lead = lead(buf.area);
    let room = usize::from(area.width.saturating_sub(2 * lead + 2));
    if !title.is_empty() {
        let text = width::truncate(title, room, "…");
        buf.set_string(area.x + lead, area.y, format!(" {text} "), style.patch(theme.title));
    }
    if !note.is_empty() {
        let text = width::truncate(note, room, "…");
        buf.set_string(area.x + lead, bottom, format!(" {text} "), theme.dim);
    }
    inside(area, buf.area)
}

/// Cells of a frame before its title and its hints.
fn lead(screen: Rect) -> u16 {
    if is_tiny(screen) { 0 } else { 2 }
}

/// Writes what can be pressed into the bottom of a frame: as many hints as fit whole, in order.
pub(super) fn frame_hints(area: Rect, hints: &[String], theme: &Theme, buf: &mut Buffer) {
    frame_foot(area, hints, "", theme, buf);
}

/// The same, with a note at the right that comes before any hint: what is out of sight.
pub(super) fn frame_foot(
    area: Rect,
    hints: &[String],
    note: &str,
    theme: &Theme,
    buf: &mut Buffer,
) {
    if area.width < 4 || area.height < 3 {
        return;
    }
    let lead = lead(buf.area);
    let mut room = usize::from(area.width.saturating_sub(2 * lead + 2));
    let y = area.bottom() - 1;
    if !note.is_empty() {
        let cells = width::cell_width(note).min(room);
        room = room.saturating_sub(cells + 3);
        let x = area.right().saturating_sub(lead + 2 + u16::try_from(cells).unwrap_or(0));
        put(buf, x, y, &format!(" {note} "), area.right().saturating_sub(x), theme.accent);
    }
    let text = fitting(hints, room);
    if !text.is_empty() {
        buf.set_string(area.x + lead, y, format!(" {text} "), theme.dim);
    }
}

/// Writes a note into the right end of a frame's top.
pub(super) fn frame_head(area: Rect, note: &str, theme: &Theme, buf: &mut Buffer) {
    let cells = u16::try_from(width::cell_width(note)).unwrap_or(u16::MAX);
    if cells > 0 && cells.saturating_add(2) < area.width {
        let x = area.right() - cells - 2;
        put(buf, x, area.y, &format!(" {note} "), cells + 2, theme.accent);
    }
}

/// How much of a list is out of sight above and below; empty when all of it is in sight.
pub(super) fn out_of_sight(above: usize, below: usize, theme: &Theme) -> String {
    let up = (above > 0).then(|| format!("{} {above}", theme.glyphs.up));
    let down = (below > 0).then(|| format!("{} {below}", theme.glyphs.down));
    up.into_iter().chain(down).collect::<Vec<_>>().join(" ")
}

/// Joins hints while they fit; the first is cut when it is too long alone.
pub(super) fn fitting(hints: &[String], room: usize) -> String {
    let mut text = String::new();
    for hint in hints {
        let gap = if text.is_empty() { "" } else { " · " };
        let longer = format!("{text}{gap}{hint}");
        if width::cell_width(&longer) > room {
            break;
        }
        text = longer;
    }
    match hints.first() {
        Some(first) if text.is_empty() => width::truncate(first, room, "…"),
        _ => text,
    }
}

/// Draws a rule across an area with spans at its left and right; what does not fit is left out.
pub(super) fn rule(
    area: Rect,
    left: Vec<Span<'_>>,
    right: Vec<Span<'_>>,
    theme: &Theme,
    buf: &mut Buffer,
) {
    if area.height == 0 {
        return;
    }
    let across = if theme.spec.utf8 { "─" } else { "-" };
    // Cell by cell: to cut a text of as many into its glyphs costs more than the rest of the frame.
    for x in area.x..area.right() {
        if let Some(cell) = buf.cell_mut((x, area.y)) {
            cell.set_symbol(across).set_style(theme.border);
        }
    }
    let measure =
        |spans: &[Span<'_>]| -> usize { spans.iter().map(|s| width::cell_width(&s.content)).sum() };
    let mut x = area.x + 1;
    let room = usize::from(area.width.saturating_sub(4));
    let right_width = measure(&right);
    let left_width = measure(&left);
    if left_width > 0 {
        let fits = left_width.min(room);
        let mut spans = vec![Span::raw(" ")];
        spans.extend(left);
        put_spans(buf, x, area.y, u16::try_from(fits + 1).unwrap_or(0), spans);
        x += u16::try_from(fits + 1).unwrap_or(0);
        buf.set_string(x, area.y, " ", Style::new());
    }
    if right_width > 0 && left_width + right_width + 4 <= room {
        let start = area.right().saturating_sub(u16::try_from(right_width + 3).unwrap_or(0));
        let mut spans = vec![Span::raw(" ")];
        spans.extend(right);
        spans.push(Span::raw(" "));
        put_spans(buf, start, area.y, u16::try_from(right_width + 2).unwrap_or(0), spans);
    }
}

fn put_spans(buf: &mut Buffer, mut x: u16, y: u16, room: u16, spans: Vec<Span<'_>>) {
    let end = x + room;
    for span in spans {
        let left = end.saturating_sub(x);
        x += put(buf, x, y, &span.content, left, span.style);
    }
}

/// Writes lines into an area from a first line on; returns how many lines there are below it.
pub(super) fn lines(area: Rect, all: &[Line<'_>], first: usize, buf: &mut Buffer) -> usize {
    let shown = usize::from(area.height);
    for (y, line) in (area.y..area.bottom()).zip(all.iter().skip(first)) {
        put_line(buf, area.x, y, area.width, line);
    }
    all.len().saturating_sub(first + shown)
}

/// Writes rows into an area, from its top on.
pub(super) fn rows<'a>(area: Rect, all: impl Iterator<Item = &'a Line<'static>>, buf: &mut Buffer) {
    for (y, line) in (area.y..area.bottom()).zip(all) {
        rows::draw(buf, Slot { x: area.x, y, width: area.width }, line);
    }
}

/// Writes one row.
pub(super) fn row(area: Rect, line: &Line<'_>, buf: &mut Buffer) {
    rows::draw(buf, Slot { x: area.x, y: area.y, width: area.width }, line);
}

/// Wraps plain text to lines of one style.
pub(super) fn wrapped(text: &str, columns: u16, style: Style) -> Vec<Line<'static>> {
    width::wrap(text, usize::from(columns.max(2)))
        .into_iter()
        .map(|row| Line::styled(row.to_owned(), style))
        .collect()
}
