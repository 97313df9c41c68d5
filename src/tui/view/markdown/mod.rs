//! Markdown → lines.

use ratatui::text::Line;

use super::theme::Theme;
use super::width;

/// Renders `src` at `width` cells. Every line fits.
pub fn render(src: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    width::wrap(src, width)
        .into_iter()
        .map(|row| Line::styled(row.to_owned(), theme.text))
        .collect()
}
