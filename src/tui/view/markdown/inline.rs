//! One piece of markdown → wrapped lines, through tui-markdown.
//!
//! Owns the style sheet, the wrapping of styled lines and what tui-markdown leaves undone: links,
//! and marks that a chat means as they stand. Tables are laid out by [`super::table`].

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use tui_markdown::{AlertKind, Options, StyleSheet};

use super::super::link;
use super::super::theme::Theme;
use super::super::width::wrap;

/// The theme as tui-markdown wants it.
#[derive(Debug, Clone)]
struct Sheet {
    heading: Style,
    subheading: Style,
    code: Style,
    link: Style,
    dim: Style,
    quote: Style,
    marker: Style,
    table_header: Style,
    border: Style,
}

impl Sheet {
    fn new(theme: &Theme) -> Self {
        Self {
            heading: theme.heading,
            subheading: theme.subheading,
            code: theme.code,
            link: theme.link,
            dim: theme.dim,
            quote: theme.quote,
            marker: theme.marker,
            table_header: theme.table_header,
            border: theme.border,
        }
    }
}

impl StyleSheet for Sheet {
    fn heading(&self, level: u8) -> Style {
        if level <= 1 { self.heading } else { self.subheading }
    }
    fn code(&self) -> Style {
        self.code
    }
    fn link(&self) -> Style {
        self.link
    }
    fn blockquote(&self) -> Style {
        self.quote
    }
    fn heading_meta(&self) -> Style {
        self.dim
    }
    fn metadata_block(&self) -> Style {
        self.dim
    }
    fn heading_marker(&self, _level: u8) -> &'static str {
        ""
    }
    fn code_block_fence(&self) -> &'static str {
        ""
    }
    fn html(&self) -> Style {
        self.dim
    }
    fn math_inline(&self) -> Style {
        self.code
    }
    fn math_display(&self) -> Style {
        self.code
    }
    fn footnote_ref(&self) -> Style {
        self.marker
    }
    fn footnote_def(&self) -> Style {
        self.dim
    }
    fn definition_term(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }
    fn definition_description(&self) -> Style {
        Style::new()
    }
    fn alert(&self, _kind: AlertKind) -> Style {
        self.marker
    }
    fn table_header(&self) -> Style {
        self.table_header
    }
    fn table_cell(&self) -> Style {
        Style::new()
    }
    fn table_border(&self) -> Style {
        self.border
    }
    fn list_marker(&self) -> Style {
        self.marker
    }
    fn image_alt(&self) -> Style {
        self.link
    }
}

/// Renders paragraphs and what else a piece holds. Every line fits `width`.
pub(super) fn text(src: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let guarded = guard(src);
    let options = Options::new(Sheet::new(theme));
    let rendered = tui_markdown::from_str_with_options(&guarded, &options);
    let mut out = Vec::new();
    for line in rendered.lines {
        let line = tidy_links(line, theme);
        let line = bare_links(line, theme);
        out.extend(wrap_line(&line, width));
    }
    if out.iter().all(|line| line.spans.iter().all(|span| span.content.trim().is_empty())) {
        // A link definition on its own draws nothing; its source is better than silence.
        return plain(src.trim_end(), width, theme.dim);
    }
    out
}

/// Text without markup, wrapped.
pub(crate) fn plain(src: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    wrap(src, width).into_iter().map(|row| Line::styled(row.to_owned(), style)).collect()
}

/// tui-markdown takes `~x~` and `^x^` for subscript and superscript and drops the marks. A chat
/// means them as they stand: `~5 to ~10`, `2^10`. Code spans are left alone.
fn guard(src: &str) -> String {
    if !src.contains(['~', '^']) {
        return src.to_owned();
    }
    let mut out = String::with_capacity(src.len() + 16);
    let mut rest = src;
    while let Some(at) = rest.find(['`', '~', '^', '\\']) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let mark = from.chars().next().unwrap_or_default();
        let run = from.chars().take_while(|c| *c == mark).count();
        let mut used = run;
        match mark {
            '`' => {
                let tick = from.get(..run).unwrap_or_default();
                let after = from.get(run..).unwrap_or_default();
                if let Some(len) = code_end(after, tick) {
                    used = run + len;
                }
                out.push_str(from.get(..used).unwrap_or_default());
            }
            '\\' => {
                used = 1 + from.chars().nth(1).map_or(0, char::len_utf8);
                out.push_str(from.get(..used).unwrap_or_default());
            }
            '~' if run == 2 => out.push_str("~~"),
            _ => {
                for _ in 0..run {
                    out.push('\\');
                    out.push(mark);
                }
            }
        }
        rest = from.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Where a code span ends: after the next run of exactly as many backticks.
fn code_end(after: &str, tick: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = after.get(at..)?;
        let found = rest.find('`')?;
        let run = rest.get(found..)?.bytes().take_while(|b| *b == b'`').count();
        at += found + run;
        if run == tick.len() {
            return Some(at);
        }
    }
}

/// Drops an address that repeats its label, and dims the others.
fn tidy_links<'a>(line: Line<'a>, theme: &Theme) -> Line<'a> {
    if !line.spans.iter().any(|span| span.content == " (") {
        return line;
    }
    let mut out: Vec<Span<'a>> = Vec::with_capacity(line.spans.len());
    let mut spans = line.spans.into_iter().peekable();
    let mut label = String::new();
    let mut label_from = 0;
    while let Some(span) = spans.next() {
        let opens = span.content == " ("
            && !label.is_empty()
            && spans.peek().is_some_and(|next| is_link(next.style, theme));
        if opens {
            let url = spans.next().map(|span| span.content).unwrap_or_default();
            let closing = spans.next();
            let same = url.strip_prefix("mailto:").unwrap_or(&url) == label;
            let tag = theme.links.as_ref().and_then(|links| links.tag(&url));
            for span in out.iter_mut().skip(label_from) {
                span.style.underline_color = tag;
            }
            if !same && tag.is_none() {
                out.push(Span::styled(" (", theme.url));
                out.push(Span::styled(url, theme.url));
                out.extend(closing.map(|span| Span::styled(span.content, theme.url)));
            }
            label.clear();
            continue;
        }
        if is_link(span.style, theme) {
            if label.is_empty() {
                label_from = out.len();
            }
            label.push_str(&span.content);
        } else {
            label.clear();
        }
        out.push(span);
    }
    Line { spans: out, ..line }
}

/// Makes addresses that stand in the text links.
fn bare_links<'a>(line: Line<'a>, theme: &Theme) -> Line<'a> {
    let Some(links) = &theme.links else {
        return line;
    };
    if !line.spans.iter().any(|span| span.content.contains("://")) {
        return line;
    }
    let mut out: Vec<Span<'a>> = Vec::with_capacity(line.spans.len() + 2);
    for span in line.spans {
        let mut rest = span.content.as_ref();
        if span.style.underline_color.is_some() {
            out.push(span);
            continue;
        }
        while let Some(range) = link::bare_address(rest) {
            let (before, from) = rest.split_at_checked(range.start).unwrap_or((rest, ""));
            let (address, after) = from.split_at_checked(range.len()).unwrap_or((from, ""));
            let mut style = span.style;
            style.underline_color = links.tag(address);
            out.push(Span::styled(before.to_owned(), span.style));
            out.push(Span::styled(address.to_owned(), style));
            rest = after;
        }
        out.push(Span::styled(rest.to_owned(), span.style));
    }
    Line { spans: out, ..line }
}

fn is_link(style: Style, theme: &Theme) -> bool {
    style.fg == theme.link.fg && style.add_modifier.contains(theme.link.add_modifier)
}

/// Wraps a styled line. Styles stay with their text.
pub(crate) fn wrap_line(line: &Line<'_>, width: usize) -> Vec<Line<'static>> {
    let mut flat = String::new();
    let mut runs: Vec<(usize, Style)> = Vec::with_capacity(line.spans.len());
    for span in &line.spans {
        flat.push_str(&span.content);
        runs.push((flat.len(), line.style.patch(span.style)));
    }
    let base = flat.as_ptr() as usize;
    let mut run = 0;
    wrap(&flat, width)
        .into_iter()
        .map(|row| {
            let from = row.as_ptr() as usize - base;
            slice_runs(row, from, &runs, &mut run)
        })
        .collect()
}

/// The spans of a row that begins at byte `from` of the text that `runs` describes.
/// `run` is where the last row ended, since rows come in order.
fn slice_runs(row: &str, from: usize, runs: &[(usize, Style)], run: &mut usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut at = from;
    let end = from + row.len();
    while at < end {
        let Some((until, style)) = runs.get(*run) else {
            break;
        };
        if *until <= at {
            *run += 1;
            continue;
        }
        let stop = (*until).min(end);
        let text = row.get(at - from..stop - from).unwrap_or_default();
        spans.push(Span::styled(text.to_owned(), *style));
        at = stop;
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::super::super::theme::ThemeSpec;
    use super::*;

    fn shown(src: &str, width: usize) -> Vec<String> {
        text(src, width, &Theme::default()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn marks_that_people_mean_literally_stay() {
        assert_eq!(shown("costs ~5 to ~10, 2^10^", 40), ["costs ~5 to ~10, 2^10^"]);
        assert_eq!(shown("~a~ and `~b~` and ~~gone~~", 40), ["~a~ and ~b~ and gone"]);
    }

    #[test]
    fn an_address_is_shown_once() {
        assert_eq!(shown("<https://a.example>", 40), ["https://a.example"]);
        assert_eq!(shown("[docs](https://a.example) (x)", 40), ["docs (https://a.example) (x)"]);
    }

    #[test]
    fn where_links_are_taken_the_label_carries_the_address_over_every_row() {
        let theme = Theme::new(ThemeSpec { links: true, ..ThemeSpec::default() });
        let lines = text("[the long docs](https://a.example/d) at https://b.example.", 9, &theme);
        let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["the long", "docs at", "https://b", ".example."]);
        let links = theme.links.as_ref().unwrap();
        let linked: Vec<(String, String)> = lines
            .iter()
            .flat_map(|line| &line.spans)
            .filter_map(|span| {
                let (_, address) = links.address(span.style.underline_color?)?;
                Some((span.content.to_string(), address.to_string()))
            })
            .collect();
        let expected = [
            ("the long", "https://a.example/d"),
            ("docs", "https://a.example/d"),
            ("https://b", "https://b.example"),
            (".example", "https://b.example"),
        ];
        let expected = expected.map(|(text, address)| (text.to_owned(), address.to_owned()));
        assert_eq!(linked, expected);
    }

    #[test]
    fn a_link_definition_alone_shows_its_source() {
        assert_eq!(shown("[a]: https://a.example", 40), ["[a]: https://a.example"]);
    }
}
