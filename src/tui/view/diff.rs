//! Two texts → the lines of a diff.

use ratatui::text::Line;

use super::theme::Theme;
use super::width;

/// Renders the change from `old` to `new` of the file `path` at `width` cells.
pub fn render(
    path: &str,
    old: Option<&str>,
    new: &str,
    width: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let diff = similar::TextDiff::from_lines(old.unwrap_or_default(), new);
    let mut lines = vec![Line::styled(path.to_owned(), theme.title)];
    for change in diff.iter_all_changes() {
        let style = match change.tag() {
            similar::ChangeTag::Insert => theme.added,
            similar::ChangeTag::Delete => theme.removed,
            similar::ChangeTag::Equal => theme.text,
        };
        let text = format!("{}{}", change.tag(), change.value().trim_end());
        lines.push(Line::styled(width::truncate(&text, width, "…"), style));
    }
    lines
}
