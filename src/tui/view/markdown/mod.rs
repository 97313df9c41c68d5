//! Markdown → lines, once for a source that is known and piece by piece for one that streams.
//!
//! Owns the cut into pieces ([`scan`]), their drawing ([`mod@render`], [`inline`], [`table`]) and the
//! unsettled end of a stream ([`stream`]). What a stream shows in the end is what the whole would have shown.

mod inline;
mod render;
mod scan;
pub(crate) mod stream;
mod table;

#[cfg(test)]
#[allow(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::string_slice,
    reason = "test texts are built plainly"
)]
mod tests;

use ratatui::text::Line;

use super::ansi;
use super::code::Ink;
use super::highlight::Highlighter;
use super::theme::Theme;

pub(crate) use inline::{plain, wrap_line};

/// Renders `src` at `width` cells. Every line fits. Code is not coloured; see [`render_with`].
pub fn render(src: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    render_with(src, width, theme, &mut Highlighter::off())
}

/// Renders `src` with the colours of code that `code` has.
pub fn render_with(
    src: &str,
    width: usize,
    theme: &Theme,
    code: &mut Highlighter,
) -> Vec<Line<'static>> {
    render_inked(src, width, theme, &mut Ink::new(code))
}

/// As [`render_with`]; `ink` learns whether colours are still to come.
pub(crate) fn render_inked(
    src: &str,
    width: usize,
    theme: &Theme,
    ink: &mut Ink<'_>,
) -> Vec<Line<'static>> {
    let src = ansi::prose(src);
    let mut pen = render::Pen { theme, code: ink.code, pending: false };
    let mut out = Vec::new();
    for piece in scan::pieces(&src) {
        if piece.gap && !out.is_empty() {
            out.push(Line::default());
        }
        let key = stream::key_of(&src, piece.start);
        out.extend(render::piece(&src, &piece, width, key, &mut pen));
    }
    ink.pending |= pen.pending;
    out
}
