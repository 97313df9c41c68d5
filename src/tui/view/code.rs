//! A line of code → styled rows: syntax colours, tabs, and the cut at the edge.
//!
//! Owns the meeting of a source line with its [`Run`]s. Colours go by bytes of the source, and
//! what is drawn may be longer (tabs, escapes), so the line is cut first and made visible piece by
//! piece. Called by fences and diffs; must not know what either means.

use ratatui::style::Style;
use ratatui::text::Span;
use unicode_segmentation::UnicodeSegmentation;

use super::ansi;
use super::highlight::{Class, Highlighter, Run};
use super::theme::Theme;
use super::width::{cell_width, is_plain, split_at_width};

/// What colours code while something is drawn.
#[derive(Debug)]
pub struct Ink<'a> {
    /// Where colours come from.
    pub code: &'a mut Highlighter,
    /// Whether some were still missing.
    pub pending: bool,
}

impl<'a> Ink<'a> {
    /// Ink that has missed nothing yet.
    pub fn new(code: &'a mut Highlighter) -> Self {
        Self { code, pending: false }
    }
}

/// The style of a class of code.
pub(super) fn style_of(class: Class, theme: &Theme) -> Style {
    let syntax = &theme.syntax;
    match class {
        Class::Plain => theme.code_block,
        Class::Comment => syntax.comment,
        Class::Keyword => syntax.keyword,
        Class::Text => syntax.string,
        Class::Constant => syntax.constant,
        Class::Function => syntax.function,
        Class::Type => syntax.type_name,
        Class::Entity => syntax.entity,
        Class::Punctuation => syntax.punctuation,
    }
}

/// Cuts a line where its class or its mark changes, and makes each piece visible. `marks` covers
/// the bytes that are shown, in order: where each stretch ends, and what is to be said of it.
pub(super) fn pieces<M: Copy>(
    line: &str,
    runs: &[Run],
    marks: &[(usize, M)],
    style: impl Fn(Class, M) -> Style,
) -> Vec<(String, Style)> {
    let mut out: Vec<(String, Style)> = Vec::new();
    let mut runs = runs.iter().peekable();
    let (mut at, mut column) = (0, 0);
    for (end, mark) in marks {
        while at < *end {
            while runs.next_if(|run| run.end as usize <= at).is_some() {}
            let (stop, class) = match runs.peek() {
                Some(run) => ((run.end as usize).min(*end), run.class),
                None => (*end, Class::Plain),
            };
            let text = ansi::visible_from(line.get(at..stop).unwrap_or_default(), &mut column);
            let style = style(class, *mark);
            match out.last_mut() {
                Some((last, known)) if *known == style => last.push_str(&text),
                _ => out.push((text.into_owned(), style)),
            }
            at = stop;
        }
    }
    out
}

/// A row of code, and the cells that it takes.
pub(super) type CodeRow = (Vec<Span<'static>>, usize);

/// Cuts pieces into rows of at most `room` cells; code is not broken at words. There is always
/// one row.
pub(super) fn rows(pieces: &[(String, Style)], room: usize) -> Vec<CodeRow> {
    let mut out = Vec::new();
    let (mut row, mut used) = (Vec::new(), 0);
    for (text, style) in pieces {
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (fits, after) = split_at_width(rest, room.saturating_sub(used));
            if fits.is_empty() && used > 0 {
                out.push((std::mem::take(&mut row), used));
                used = 0;
                continue;
            }
            let (fits, after) = if fits.is_empty() { first_of(after) } else { (fits, after) };
            used = (used + cell_width(fits)).min(room);
            row.push(Span::styled(fits.to_owned(), *style));
            rest = after;
        }
    }
    out.push((row, used));
    out
}

/// A glyph wider than the row is given the row rather than lost.
fn first_of(text: &str) -> (&str, &str) {
    let first = text.graphemes(true).next().map_or(text.len(), str::len);
    text.split_at_checked(first).unwrap_or((text, ""))
}

/// How many rows a line takes, without drawing it.
pub(super) fn count_rows(line: &str, room: usize) -> usize {
    let room = room.max(1);
    if is_plain(line) {
        return line.len().div_ceil(room).max(1);
    }
    let shown = ansi::visible(line);
    let (mut rest, mut count) = (shown.as_ref(), 0);
    loop {
        let (fits, after) = split_at_width(rest, room);
        rest = if fits.is_empty() && !after.is_empty() { first_of(after).1 } else { after };
        count += 1;
        if rest.is_empty() {
            return count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(line: &str) -> Vec<(String, Style)> {
        pieces(line, &[], &[(line.len(), ())], |_, ()| Style::new())
    }

    #[test]
    fn colours_stay_on_their_words_behind_tabs_and_escapes() {
        let theme = Theme::default();
        let runs = [
            Run { end: 1, class: Class::Plain },
            Run { end: 4, class: Class::Keyword },
            Run { end: 8, class: Class::Plain },
            Run { end: 9, class: Class::Constant },
        ];
        let line = "\tlet\u{200b} 1";
        let made = pieces(line, &runs, &[(line.len(), ())], |class, ()| style_of(class, &theme));
        let keyword = made.iter().find(|(_, style)| *style == theme.syntax.keyword).unwrap();
        assert_eq!(keyword.0, "let");
        assert!(made.iter().any(|(text, style)| text == "1" && *style == theme.syntax.constant));
        let text: String = made.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(text, ansi::visible(line));
    }

    #[test]
    fn rows_are_counted_as_they_are_drawn() {
        for line in ["", "a", "abcdefgh", "中文中文中文", "\ta\tb", "e\u{301}x👩‍🔬 yes ⚠️", "x\u{7}y"]
        {
            for room in 1..12 {
                let drawn = rows(&plain(line), room);
                assert_eq!(count_rows(line, room), drawn.len(), "{line:?} in {room}");
            }
        }
    }
}
