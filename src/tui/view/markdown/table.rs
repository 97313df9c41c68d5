//! A table of markdown → rows that fit.
//!
//! Owns the columns: as wide as their text where there is room, wrapped cells where they stay
//! readable, one `header: value` list per row otherwise. What is in a cell is [`inline`]'s, links
//! included, and is measured by the one width function.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::theme::Theme;
use super::super::width::cell_width;
use super::inline;

/// Cells of a column, without its frame, below which a table is shown as records.
const MIN_COLUMN: usize = 6;
/// Wide enough for any line: a cell is measured before it is wrapped.
const UNWRAPPED: usize = usize::MAX / 4;

/// Where the text of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Middle,
    Right,
}

struct Table {
    header: Vec<String>,
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn read(src: &str) -> Self {
        let mut lines = src.lines().filter(|line| !line.trim().is_empty());
        let header = lines.next().map(cells).unwrap_or_default();
        let marks = lines.next().map(cells).unwrap_or_default();
        let align = (0..header.len()).map(|at| align_of(marks.get(at))).collect();
        let rows = lines.map(cells).collect();
        Self { header, align, rows }
    }
}

fn align_of(mark: Option<&String>) -> Align {
    let mark = mark.map_or("", String::as_str);
    match (mark.starts_with(':'), mark.ends_with(':')) {
        (true, true) => Align::Middle,
        (false, true) => Align::Right,
        _ => Align::Left,
    }
}

/// Renders a table. Every line fits `width`.
pub(super) fn render(src: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let table = Table::read(src);
    let columns = table.header.len();
    if columns == 0 {
        return inline::text(src.trim_end(), width, theme);
    }
    let natural: Vec<usize> = (0..columns)
        .map(|at| {
            let cells = table.rows.iter().filter_map(|row| row.get(at));
            let cells = cells.chain(table.header.get(at));
            cells.map(|cell| natural_width(cell, theme)).max().unwrap_or_default()
        })
        .collect();
    // A frame left of each column, one at the end, and a blank at either side of the text.
    let frame = 3 * columns + 1;
    let wanted: usize = natural.iter().sum();
    if wanted + frame <= width {
        return Grid { table: &table, widths: natural, theme, divided: false }.lines();
    }
    match shared(&natural, width.saturating_sub(frame)) {
        Some(widths) => Grid { table: &table, widths, theme, divided: true }.lines(),
        None => records(&table, width, theme),
    }
}

/// Column widths that fit: narrow columns keep theirs, the wide ones share what is left.
fn shared(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..natural.len()).collect();
    order.sort_by_key(|at| natural.get(*at).copied());
    let mut widths = natural.to_vec();
    let mut left = room;
    for (done, at) in order.iter().enumerate() {
        let share = left / (natural.len() - done);
        let width = widths.get_mut(*at)?;
        if *width > share {
            if share < MIN_COLUMN {
                return None;
            }
            *width = share;
        }
        left -= *width;
    }
    Some(widths)
}

struct Grid<'a> {
    table: &'a Table,
    widths: Vec<usize>,
    theme: &'a Theme,
    /// Whether a rule goes between rows, as where they are several lines high.
    divided: bool,
}

impl Grid<'_> {
    fn lines(&self) -> Vec<Line<'static>> {
        let mut out = vec![self.rule(["┌", "┬", "┐"])];
        self.row(&self.table.header, self.theme.table_header, &mut out);
        out.push(self.rule(["├", "┼", "┤"]));
        for (n, row) in self.table.rows.iter().enumerate() {
            if n > 0 && self.divided {
                out.push(self.rule(["├", "┼", "┤"]));
            }
            self.row(row, Style::new(), &mut out);
        }
        out.push(self.rule(["└", "┴", "┘"]));
        out
    }

    fn rule(&self, [left, middle, right]: [&str; 3]) -> Line<'static> {
        let utf8 = self.theme.spec.utf8;
        let (across, [left, middle, right]) =
            if utf8 { ("─", [left, middle, right]) } else { ("-", ["+"; 3]) };
        let bars: Vec<String> = self.widths.iter().map(|cells| across.repeat(cells + 2)).collect();
        Line::styled(format!("{left}{}{right}", bars.join(middle)), self.theme.border)
    }

    fn row(&self, cells: &[String], style: Style, out: &mut Vec<Line<'static>>) {
        let theme = self.theme;
        let bar = Span::styled(theme.glyphs.bar, theme.border);
        let made: Vec<Vec<Line<'static>>> = self
            .widths
            .iter()
            .enumerate()
            .map(|(at, width)| cells.get(at).map_or_else(Vec::new, |c| cell(c, *width, theme)))
            .collect();
        let height = made.iter().map(Vec::len).max().unwrap_or(1).max(1);
        for n in 0..height {
            let mut spans = Vec::new();
            let columns = made.iter().zip(&self.widths).zip(&self.table.align);
            for ((lines, width), align) in columns {
                spans.push(bar.clone());
                let empty = Line::default();
                let line = lines.get(n).unwrap_or(&empty);
                let rest = width.saturating_sub(line_width(line));
                let before = match align {
                    Align::Left => 0,
                    Align::Middle => rest / 2,
                    Align::Right => rest,
                };
                spans.push(Span::styled(" ".repeat(before + 1), style));
                let texts = line.spans.iter().map(|span| {
                    Span::styled(span.content.clone(), style.patch(line.style.patch(span.style)))
                });
                spans.extend(texts);
                spans.push(Span::styled(" ".repeat(rest - before + 1), style));
            }
            spans.push(bar.clone());
            out.push(Line::from(spans));
        }
    }
}

/// A table row by row, for screens too narrow for its columns.
fn records(table: &Table, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    for row in &table.rows {
        if !out.is_empty() {
            out.push(Line::default());
        }
        for (at, value) in row.iter().enumerate() {
            let name = table.header.get(at).cloned().unwrap_or_default();
            let source =
                if name.is_empty() { value.clone() } else { format!("**{name}:** {value}") };
            out.extend(inline::text(&source, width, theme));
        }
    }
    if out.is_empty() {
        out = inline::text(&table.header.join(" · "), width, theme);
    }
    out
}

/// The cells of a table row; an escaped pipe is part of its cell.
fn cells(row: &str) -> Vec<String> {
    let bare = row.trim();
    let bare = bare.strip_prefix('|').unwrap_or(bare);
    let bare = if bare.ends_with("\\|") { bare } else { bare.strip_suffix('|').unwrap_or(bare) };
    let mut out = vec![String::new()];
    let mut escaped = false;
    for c in bare.chars() {
        match (c, escaped, out.last_mut()) {
            ('|', false, _) => out.push(String::new()),
            ('|', true, Some(cell)) => {
                cell.pop();
                cell.push('|');
            }
            (_, _, Some(cell)) => cell.push(c),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    out.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn line_width(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| cell_width(&span.content)).sum()
}

/// Whether nothing in a cell is markup.
fn is_bare(cell: &str) -> bool {
    !cell
        .contains(['*', '_', '`', '[', '!', '<', '&', '\\', '~', '^', '$', ':', '#', '>', '+', '-'])
        && !cell.starts_with(|c: char| c.is_ascii_digit() || c == '=')
}

fn natural_width(source: &str, theme: &Theme) -> usize {
    if is_bare(source) {
        return cell_width(source);
    }
    cell(source, UNWRAPPED, theme).iter().map(line_width).max().unwrap_or_default()
}

/// The lines of a cell.
fn cell(source: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    if is_bare(source) {
        return inline::plain(source, width, Style::new());
    }
    inline::text(&only_inline(source), width, theme)
}

/// A cell holds no blocks: what would begin a heading, a list, a quote or a fence is escaped.
fn only_inline(cell: &str) -> String {
    let digits = cell.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = cell.split_at_checked(digits).unwrap_or(("", cell));
    let begins = match rest.chars().next() {
        Some('.' | ')') => digits > 0,
        Some('#' | '>' | '+' | '-' | '=') => digits == 0,
        Some('*' | '_') => rest.starts_with("* ") || rest.chars().all(|c| "*_ ".contains(c)),
        Some('`' | '~') => rest.starts_with("```") && rest.matches("```").count() == 1,
        _ => false,
    };
    if begins { format!("{number}\\{rest}") } else { cell.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::super::theme::ThemeSpec;
    use super::*;

    fn shown(src: &str, width: usize, theme: &Theme) -> Vec<String> {
        let lines = render(src, width, theme);
        for line in &lines {
            assert!(line_width(line) <= width, "{line} in {width}");
        }
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_table_too_narrow_for_columns_becomes_records() {
        let src = "| name | 값 |\n|---|---|\n| one \\| two | 中文 |\n| x | y |";
        let lines = shown(src, 12, &Theme::default());
        assert_eq!(lines, ["name: one |", "two", "값: 中文", "", "name: x", "값: y"]);
    }

    #[test]
    fn columns_of_mixed_scripts_stay_aligned_at_every_width() {
        let src = "| 名前 | value | 한국어 |\n|---|:-:|--:|\n| 中文字符 mixed | a 🚀 b | 1 |\n| 👩‍🔬 ⚠️ | `code | x` | 한국어 텍스트 |";
        for width in 30..90 {
            let lines = render(src, width, &Theme::default());
            let first = line_width(&lines[0]);
            assert!(lines.iter().all(|line| line_width(line) == first), "{width}: {lines:?}");
            assert!(first <= width);
        }
        let lines = shown("| 名 | n |\n|---|--:|\n| 中文 | 7 |", 40, &Theme::default());
        let expected =
            ["┌──────┬───┐", "│ 名   │ n │", "├──────┼───┤", "│ 中文 │ 7 │", "└──────┴───┘"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_link_in_a_cell_is_a_link_where_they_are_taken_and_shows_its_address_elsewhere() {
        let src = "| what | where |\n|---|---|\n| docs | [the guide](https://a.example/guide) |\n| more | https://b.example |";
        let plain = shown(src, 60, &Theme::default());
        assert!(plain[3].contains("the guide (https://a.example/guide)"), "{plain:?}");
        let theme = Theme::new(ThemeSpec { links: true, ..ThemeSpec::default() });
        for width in [60, 24] {
            let lines = render(src, width, &theme);
            let links = theme.links.as_ref().unwrap();
            let mut linked: Vec<(String, String)> = Vec::new();
            for span in lines.iter().flat_map(|line| &line.spans) {
                if let Some((_, address)) =
                    span.style.underline_color.and_then(|c| links.address(c))
                {
                    linked.push((span.content.to_string(), address.to_string()));
                }
            }
            let text = |address: &str| -> String {
                let of = linked.iter().filter(|(_, to)| to == address);
                of.map(|(text, _)| text.replace(' ', "")).collect()
            };
            assert_eq!(text("https://a.example/guide"), "theguide", "{width}");
            assert_eq!(text("https://b.example"), "https://b.example", "{width}");
            assert!(!shown(src, width, &theme).concat().contains("a.example"));
        }
    }

    #[test]
    fn what_would_begin_a_block_is_text_in_a_cell() {
        let src = "| # | - a |\n|---|---|\n| 1. one | > x |\n| | + y |\n| `a` | *b* |";
        let lines = shown(src, 40, &Theme::default());
        assert_eq!(lines[1], "│ #      │ - a │");
        assert_eq!(lines[3], "│ 1. one │ > x │");
        assert_eq!(lines[4], "│        │ + y │");
        assert_eq!(lines[5], "│ a      │ b   │");
    }

    #[test]
    fn frames_are_ascii_where_glyphs_must_be() {
        let theme = Theme::new(ThemeSpec { utf8: false, ..ThemeSpec::default() });
        let lines = shown("| a | b |\n|---|---|\n| 1 | 2 |", 40, &theme);
        assert_eq!(lines, ["+---+---+", "| a | b |", "+---+---+", "| 1 | 2 |", "+---+---+"]);
    }
}
