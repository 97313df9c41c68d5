//! One block in full, or any long text, as rows of a [`Paper`].
//!
//! Owns what a page of a block is made of: the command, the output, the changes, the input. It
//! holds the whole text, of which the transcript may keep only a part; what was spilled is read
//! through a function that the caller gives. Scrolling and searching are [`super::page`]'s.

use ratatui::text::{Line, Span};

use super::ansi::{self, Output};
use super::highlight::Highlighter;
use super::markdown;
use super::paper::Paper;
use super::theme::Theme;
use super::transcript::printed_rows;
use crate::tui::model::transcript::Transcript;
use crate::tui::model::transcript::block::{BlockId, BlockKind};
use crate::tui::model::transcript::body::{Body, SpillKey};
use crate::tui::model::transcript::source;
use crate::tui::model::transcript::tool::{ToolCall, ToolPart, ToolStatus};

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

/// A text to page through.
#[derive(Debug)]
pub(super) struct Pager {
    sections: Vec<Section>,
    made: Option<Paper>,
}

impl Pager {
    /// Opens a text as it is.
    pub(super) fn of_text(text: impl Into<String>) -> Self {
        Self::new(vec![Section::Plain(text.into())])
    }

    /// Opens a block in full. `read` fetches what was spilled to disk; where it cannot, what
    /// memory holds is shown with a mark for the rest.
    pub(super) fn of_block(
        transcript: &Transcript,
        id: BlockId,
        mut read: impl FnMut(SpillKey) -> Option<String>,
    ) -> Option<Self> {
        let block = transcript.block(id)?;
        let sections = match &block.kind {
            BlockKind::Assistant(message) => vec![Section::Markdown(message.text.clone())],
            BlockKind::Tool(call) => tool(transcript, call, &mut read),
            BlockKind::Plan(plan) if plan.markdown.is_some() => {
                vec![Section::Markdown(plan.markdown.clone().unwrap_or_default())]
            }
            _ => vec![Section::Plain(source::of_block(transcript, id)?)],
        };
        Some(Self::new(sections))
    }

    fn new(sections: Vec<Section>) -> Self {
        Self { sections, made: None }
    }

    /// Its rows at `width` cells, made once.
    pub(super) fn paper(
        &mut self,
        width: usize,
        theme: &Theme,
        code: &mut Highlighter,
    ) -> &mut Paper {
        let known = self.made.take().filter(|paper| paper.fits(width, theme));
        self.made.insert(known.unwrap_or_else(|| {
            let mut paper = Paper::new(width, theme);
            for section in &self.sections {
                section.write(width, theme, code, &mut paper);
            }
            paper
        }))
    }
}

impl Section {
    fn write(&self, width: usize, theme: &Theme, code: &mut Highlighter, paper: &mut Paper) {
        let mut out = Vec::new();
        match self {
            Self::Heading(text) => {
                if paper.len() > 0 {
                    out.push(Line::default());
                }
                out.extend(markdown::plain(&ansi::visible(text), width, theme.title));
            }
            Self::Markdown(text) => return paper.add_markdown(text, theme, code),
            Self::Plain(text) => {
                out.extend(markdown::plain(&ansi::prose(text), width, theme.text));
            }
            Self::Command(text) => out.extend(command(text, width, theme)),
            Self::Printed(text) => {
                let mut output = Output::new(usize::MAX);
                output.feed(text.trim_end_matches('\n'));
                for row in output.rows() {
                    out.extend(printed_rows(&row, width, theme));
                }
            }
            Self::Change { path, old, new } => {
                return paper.add_change(path.clone(), old.as_deref(), new, theme);
            }
        }
        paper.add(out);
    }
}

/// A command, with everything in it that could hide spelt out.
fn command(text: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    for line in ansi::reveal(text) {
        let spans = line.into_iter().map(|(text, marked)| {
            Span::styled(text, if marked { theme.escaped } else { theme.code_block })
        });
        out.extend(markdown::wrap_line(&spans.collect(), width));
    }
    out
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
                let was_applied =
                    !matches!(call.status, ToolStatus::Failed | ToolStatus::Cancelled);
                let heading = if was_applied { "Change" } else { "Change, not applied" };
                out.push(Section::Heading(heading.to_owned()));
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
        let theme = Theme::default();
        let mut code = Highlighter::off();
        let paper = pager.paper(40, &theme, &mut code);
        assert_eq!(paper.len(), 40_001);
        let hits = paper.hits("line 31234", &theme);
        assert_eq!(hits, [31_235]);
        let row = paper.rows(31_235..31_236, &theme, &mut code).next().unwrap();
        assert_eq!(row.to_string(), "line 31234");
        assert!(paper.hits("nowhere", &theme).is_empty());
    }
}
