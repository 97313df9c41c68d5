//! One block in full, or any long text: every row of it, with a search of its own.
//!
//! Owns [`Pager`]. It holds the whole text, of which the transcript may keep only a part; what was
//! spilled is read through a function that the caller gives. Rows are made once for a width.

use std::rc::Rc;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::ansi::{self, Output};
use super::diff::{self, Diff, Sides};
use super::markdown;
use super::theme::{Theme, ThemeSpec};
use super::transcript::rows::{self, Slot};
use super::transcript::{printed_rows, title_of};
use crate::tui::model::transcript::Transcript;
use crate::tui::model::transcript::block::{BlockId, BlockKind};
use crate::tui::model::transcript::body::{Body, SpillKey};
use crate::tui::model::transcript::source;
use crate::tui::model::transcript::tool::{ToolCall, ToolPart};

/// Bytes of one text that are laid out; the file on disk has the rest.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// A stretch of the text and how it is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Section {
    Heading(String),
    Markdown(String),
    Plain(String),
    Command(String),
    Printed(String),
    Change { path: String, old: Option<String>, new: String },
}

/// The rows made for one width and theme.
type Made = (usize, ThemeSpec, Rc<[Line<'static>]>);

/// A text to page through.
#[derive(Debug, Clone)]
pub struct Pager {
    title: String,
    sections: Vec<Section>,
    made: Option<Made>,
    top: usize,
    height: usize,
    needle: String,
    found: Option<usize>,
}

impl Pager {
    /// Opens a text as it is.
    pub fn of_text(title: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(title.into(), vec![Section::Plain(text.into())])
    }

    /// Opens a markdown text.
    pub fn of_markdown(title: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(title.into(), vec![Section::Markdown(text.into())])
    }

    /// Opens a block in full. `read` fetches what was spilled to disk; where it cannot, what
    /// memory holds is shown with a mark for the rest.
    pub fn of_block(
        transcript: &Transcript,
        id: BlockId,
        mut read: impl FnMut(SpillKey) -> Option<String>,
    ) -> Option<Self> {
        let block = transcript.block(id)?;
        let title = title_of(block);
        let sections = match &block.kind {
            BlockKind::Assistant(message) => vec![Section::Markdown(message.text.clone())],
            BlockKind::Tool(call) => tool(transcript, call, &mut read),
            BlockKind::Plan(plan) if plan.markdown.is_some() => {
                vec![Section::Markdown(plan.markdown.clone().unwrap_or_default())]
            }
            _ => vec![Section::Plain(source::of_block(transcript, id)?)],
        };
        Some(Self::new(title, sections))
    }

    fn new(title: String, sections: Vec<Section>) -> Self {
        Self { title, sections, made: None, top: 0, height: 1, needle: String::new(), found: None }
    }

    /// What the text is.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Draws the rows that fit.
    pub fn render(&mut self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let area = area.intersection(buf.area);
        if area.width == 0 || area.height == 0 {
            return;
        }
        let lines = self.lines(usize::from(area.width), theme);
        self.height = usize::from(area.height);
        self.top = self.top.min(lines.len().saturating_sub(self.height));
        let shown = lines.iter().enumerate().skip(self.top);
        for (y, (at, line)) in (area.y..area.bottom()).zip(shown) {
            let slot = Slot { x: area.x, y, width: area.width };
            rows::draw(buf, slot, line);
            if !self.needle.is_empty() {
                let current = self.found == Some(at);
                let style = if current { theme.found_current } else { theme.found };
                rows::mark(buf, slot, &self.needle, style);
            }
        }
    }

    /// Every row at `width` cells, made once.
    pub fn lines(&mut self, width: usize, theme: &Theme) -> Rc<[Line<'static>]> {
        if let Some((made, spec, lines)) = &self.made
            && *made == width
            && *spec == theme.spec
        {
            return Rc::clone(lines);
        }
        let mut out = Vec::new();
        for section in &self.sections {
            section.lines(width, theme, &mut out);
        }
        let lines: Rc<[Line<'static>]> = out.into();
        self.made = Some((width, theme.spec, Rc::clone(&lines)));
        lines
    }

    /// The first row on the screen, from 0, and how many rows there are.
    pub fn position(&self) -> (usize, usize) {
        (self.top, self.len())
    }

    fn len(&self) -> usize {
        self.made.as_ref().map_or(0, |(_, _, lines)| lines.len())
    }

    /// Scrolls by rows; negative is up.
    pub fn scroll_by(&mut self, rows: isize) {
        let most = self.len().saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(rows).min(most);
    }

    /// Scrolls by pages; negative is up.
    pub fn page(&mut self, pages: isize) {
        let page = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        self.scroll_by(pages.saturating_mul(page));
    }

    /// Goes to the first row.
    pub fn to_top(&mut self) {
        self.top = 0;
    }

    /// Goes to the last row.
    pub fn to_end(&mut self) {
        self.scroll_by(isize::MAX);
    }

    /// Looks for a text, from the top row on. Returns whether it is there.
    pub fn find(&mut self, needle: &str) -> bool {
        self.needle = needle.to_lowercase();
        self.found = None;
        !self.needle.is_empty() && self.go(self.top, true)
    }

    /// Goes to the next or previous row with a match, around the end.
    pub fn next_match(&mut self, forward: bool) -> bool {
        let count = self.len().max(1);
        let here = self.found.unwrap_or(self.top);
        let from = if forward { here + 1 } else { here + count - 1 };
        self.go(from % count, forward)
    }

    fn go(&mut self, from: usize, forward: bool) -> bool {
        let Some((_, _, lines)) = &self.made else {
            return false;
        };
        let count = lines.len();
        let matches = |at: &usize| {
            lines
                .get(*at)
                .is_some_and(|line| line.to_string().to_lowercase().contains(&self.needle))
        };
        let mut order = (0..count)
            .map(|n| if forward { (from + n) % count } else { (from + count - n) % count });
        let Some(at) = order.find(matches) else {
            return false;
        };
        self.found = Some(at);
        let visible = self.top..self.top + self.height;
        if !visible.contains(&at) {
            self.top = at.saturating_sub(self.height / 3);
            self.scroll_by(0);
        }
        true
    }
}

impl Section {
    fn lines(&self, width: usize, theme: &Theme, out: &mut Vec<Line<'static>>) {
        match self {
            Self::Heading(text) => {
                if !out.is_empty() {
                    out.push(Line::default());
                }
                out.extend(markdown::plain(&ansi::visible(text), width, theme.title));
            }
            Self::Markdown(text) => out.extend(markdown::render(text, width, theme)),
            Self::Plain(text) => {
                out.extend(markdown::plain(&ansi::prose(text), width, theme.text));
            }
            Self::Command(text) => {
                for line in ansi::reveal(text) {
                    let spans = line.into_iter().map(|(text, marked)| {
                        Span::styled(text, if marked { theme.escaped } else { theme.code_block })
                    });
                    out.extend(markdown::wrap_line(&spans.collect(), width));
                }
            }
            Self::Printed(text) => {
                let mut output = Output::new(usize::MAX);
                output.feed(text.trim_end_matches('\n'));
                for row in output.rows() {
                    out.extend(printed_rows(&row, width, theme));
                }
            }
            Self::Change { path, old, new } => {
                let sides = Sides { old: old.as_deref().unwrap_or_default(), new };
                let diff = Diff::new(sides);
                out.push(diff::header(path, &diff, old.is_none(), width, theme));
                out.extend(diff.lines(sides, 0..diff.len(width), width, theme));
            }
        }
    }
}

/// Everything a tool call holds.
fn tool(
    transcript: &Transcript,
    call: &ToolCall,
    read: &mut impl FnMut(SpillKey) -> Option<String>,
) -> Vec<Section> {
    let mut out = Vec::new();
    if let Some(command) = &call.command {
        out.push(Section::Heading("Command".to_owned()));
        out.push(Section::Command(command.clone()));
    }
    if let Some(reason) = &call.error {
        out.push(Section::Heading("Error".to_owned()));
        out.push(Section::Plain(reason.clone()));
    }
    for part in &call.parts {
        match part {
            ToolPart::Text(body) => {
                out.push(Section::Heading("Output".to_owned()));
                out.push(Section::Printed(whole(body, read)));
            }
            ToolPart::Terminal(id) => {
                if let Some(terminal) = transcript.terminal(id) {
                    out.push(Section::Heading("Terminal".to_owned()));
                    out.push(Section::Printed(whole(&terminal.output, read)));
                }
            }
            ToolPart::Diff(part) => {
                out.push(Section::Heading("Change".to_owned()));
                out.push(Section::Change {
                    path: part.path.clone(),
                    old: part.old.as_ref().map(|old| whole(old, read)),
                    new: whole(&part.new, read),
                });
            }
            ToolPart::Label(label) => out.push(Section::Plain(format!("[{label}]"))),
        }
    }
    let raw = whole(&call.output, read);
    let said = call.parts.iter().any(|part| match part {
        ToolPart::Text(body) => body.head().trim() == raw.trim(),
        _ => false,
    });
    if !raw.is_empty() && !said {
        let name = if call.has_content() { "Raw output" } else { "Output" };
        out.push(Section::Heading(name.to_owned()));
        out.push(Section::Printed(raw));
    }
    if !call.input.is_empty() {
        out.push(Section::Heading("Input".to_owned()));
        out.push(Section::Plain(whole(&call.input, read)));
    }
    out
}

fn whole(body: &Body, read: &mut impl FnMut(SpillKey) -> Option<String>) -> String {
    if let Some(text) = body.whole() {
        return text.to_owned();
    }
    if let Some(mut text) = body.spill().and_then(read) {
        let mut cut = text.len().saturating_sub(MAX_TEXT);
        while !text.is_char_boundary(cut) {
            cut += 1;
        }
        if cut > 0 {
            text = format!("… {cut} bytes above\n{}", text.split_off(cut));
        }
        return text;
    }
    format!("{}\n… {} bytes are not kept …\n{}", body.head(), body.dropped(), body.tail())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spilled_output_is_shown_whole_and_searched() {
        let mut transcript = Transcript::new();
        transcript.keep_spills();
        let text: String = (0..40_000).fold(String::new(), |text, n| text + &format!("line {n}\n"));
        transcript.terminal_output("term", &text);
        let id = transcript.tool("t", None, 0, |card, _| {
            card.title = "seq".to_owned();
            card.parts = vec![ToolPart::Terminal("term".to_owned())];
        });
        let disk: String = transcript.take_spills().into_iter().map(|write| write.text).collect();
        assert_eq!(disk, text);
        let mut pager = Pager::of_block(&transcript, id, |_| Some(disk.clone())).unwrap();
        let area = Rect::new(0, 0, 40, 10);
        let mut buf = Buffer::empty(area);
        let theme = Theme::default();
        pager.render(area, &mut buf, &theme);
        assert_eq!(pager.position(), (0, 40_001));
        assert!(pager.find("LINE 31234"));
        pager.render(area, &mut buf, &theme);
        let (top, _) = pager.position();
        assert!((31_225..=31_235).contains(&top), "{top}");
        assert!(!pager.find("nowhere"));
        pager.to_end();
        pager.page(-1);
        pager.render(area, &mut buf, &theme);
        assert!(pager.position().0 > 39_900);
    }
}
