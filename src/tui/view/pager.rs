//! One block in full, or any long text, as rows of a [`Paper`].
//!
//! Owns what a page of a block is made of: the command, the output, the changes, the input. It
//! shows the whole text, of which the transcript may keep only a part; what was spilled is read
//! through a function that the caller gives. When a block grows that is looked at, only what is new
//! is read. Scrolling and searching are [`super::page`]'s.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use ratatui::text::{Line, Span};

use super::ansi;
use super::markdown;
use super::paper::Paper;
use super::sheet::Sheet;
use super::theme::Theme;
use crate::tui::model::transcript::Transcript;
use crate::tui::model::transcript::block::{BlockId, BlockKind};
use crate::tui::model::transcript::body::{Body, SpillKey};
use crate::tui::model::transcript::source;
use crate::tui::model::transcript::tool::{DiffPart, ToolCall, ToolPart, ToolStatus};

/// Fetches a spilled text.
type Read<'a> = dyn FnMut(SpillKey) -> Option<String> + 'a;

/// What a block is made of, by reference: to be drawn, or compared with what is drawn.
#[derive(Debug)]
enum Piece<'a> {
    Heading(&'static str),
    /// A message of the agent, and its epoch.
    Markdown(&'a str, u32),
    Command(&'a str),
    /// A text that does not grow.
    Plain(Cow<'a, str>),
    /// What was printed.
    Printed(&'a Body),
    /// A text of any size, as it is.
    Input(&'a Body),
    Change(&'a DiffPart),
}

/// What a piece was when it was taken, to tell whether it is the same, or the same with more.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    /// Kind and, of what does not grow, the text.
    name: u64,
    generation: u32,
    len: u64,
}

impl Piece<'_> {
    fn origin(&self) -> Origin {
        let mut hasher = DefaultHasher::new();
        std::mem::discriminant(self).hash(&mut hasher);
        let (mut generation, mut len) = (0, 0);
        match self {
            Self::Heading(text) => hasher.write(text.as_bytes()),
            Self::Command(text) => text.hash(&mut hasher),
            Self::Plain(text) => text.hash(&mut hasher),
            Self::Markdown(text, epoch) => (generation, len) = (*epoch, text.len() as u64),
            Self::Printed(body) | Self::Input(body) => {
                (generation, len) = (body.generation(), body.len());
            }
            Self::Change(part) => {
                let known = |body: &Body| (body.generation(), body.len());
                (part.path.as_str(), part.old.as_ref().map(known)).hash(&mut hasher);
                known(&part.new).hash(&mut hasher);
            }
        }
        Origin { name: hasher.finish(), generation, len }
    }
}

/// A stretch of the text and how it is drawn.
#[derive(Debug)]
enum Section {
    Heading(&'static str),
    /// The paper's next markdown text, and what it is before there is a paper.
    Markdown(String),
    Command(String),
    /// The paper's next sheet.
    Sheet,
    Change {
        path: String,
        old: Option<String>,
        new: String,
    },
}

/// A text to page through.
#[derive(Debug)]
pub(super) struct Pager {
    sections: Vec<Section>,
    origins: Vec<Origin>,
    /// The sheets of the sections, while no paper has them.
    sheets: Vec<Sheet>,
    made: Option<Paper>,
}

impl Pager {
    /// Opens a text as it is.
    pub(super) fn of_text(text: impl Into<String>) -> Self {
        Self::new(vec![Piece::Plain(Cow::Owned(text.into()))], &mut |_| None)
    }

    /// Opens a block in full. `read` fetches what was spilled to disk; where it cannot, what
    /// memory holds is shown with a mark for the rest.
    pub(super) fn of_block(
        transcript: &Transcript,
        id: BlockId,
        mut read: impl FnMut(SpillKey) -> Option<String>,
    ) -> Option<Self> {
        Some(Self::new(pieces(transcript, id)?, &mut read))
    }

    fn new(pieces: Vec<Piece<'_>>, read: &mut Read<'_>) -> Self {
        let origins = pieces.iter().map(Piece::origin).collect();
        let mut sheets = Vec::new();
        let sections = pieces.into_iter().map(|piece| section(piece, &mut sheets, read)).collect();
        Self { sections, origins, sheets, made: None }
    }

    /// Takes in that the block has changed. What only grew is read on; anything else is opened anew.
    pub(super) fn update(
        &mut self,
        transcript: &Transcript,
        id: BlockId,
        mut read: impl FnMut(SpillKey) -> Option<String>,
    ) {
        let Some(pieces) = pieces(transcript, id) else { return };
        if !self.grow(&pieces) {
            *self = Self::new(pieces, &mut read);
        }
    }

    /// Adds what is new; false when the block is not what it was with more at the ends of its texts.
    fn grow(&mut self, pieces: &[Piece<'_>]) -> bool {
        let origins: Vec<Origin> = pieces.iter().map(Piece::origin).collect();
        let grows = |(new, known): (&Origin, &Origin)| {
            new.name == known.name && new.generation == known.generation && new.len >= known.len
        };
        let mut more = Vec::new();
        if origins.len() != self.origins.len() || !origins.iter().zip(&self.origins).all(grows) {
            return false;
        }
        for (piece, known) in pieces.iter().zip(&self.origins) {
            let new = match piece {
                Piece::Printed(body) | Piece::Input(body) => body.since(known.len),
                Piece::Markdown(text, _) => {
                    usize::try_from(known.len).ok().and_then(|known| text.get(known..))
                }
                _ => Some(""),
            };
            let Some(new) = new else { return false };
            more.push(new);
        }
        self.origins = origins;
        let (mut sheet, mut text) = (0, 0);
        for (section, more) in self.sections.iter_mut().zip(more) {
            match section {
                Section::Sheet => {
                    match (&mut self.made, self.sheets.get_mut(sheet)) {
                        _ if more.is_empty() => {}
                        (Some(paper), _) => paper.extend_sheet(sheet, more),
                        (None, Some(sheet)) => sheet.extend(more),
                        (None, None) => {}
                    }
                    sheet += 1;
                }
                Section::Markdown(known) => {
                    if !more.is_empty() {
                        known.push_str(more);
                        if let Some(paper) = &mut self.made {
                            paper.extend_markdown(text, more);
                        }
                    }
                    text += 1;
                }
                Section::Heading(_) | Section::Command(_) | Section::Change { .. } => {}
            }
        }
        true
    }

    /// Its rows at `width` cells, made as far as one looks.
    pub(super) fn paper(&mut self, width: usize, theme: &Theme) -> &mut Paper {
        let mut known = self.made.take();
        if known.as_ref().is_none_or(|paper| !paper.fits(width, theme)) {
            if let Some(paper) = &mut known {
                self.sheets = paper.take_sheets();
            }
            let mut paper = Paper::new(width, theme);
            let mut sheets = std::mem::take(&mut self.sheets).into_iter();
            for section in &self.sections {
                section.write(&mut sheets, width, theme, &mut paper);
            }
            known = Some(paper);
        }
        self.made.insert(known.unwrap_or_default())
    }
}

fn section(piece: Piece<'_>, sheets: &mut Vec<Sheet>, read: &mut Read<'_>) -> Section {
    let sheet = match piece {
        Piece::Heading(text) => return Section::Heading(text),
        Piece::Markdown(text, _) => return Section::Markdown(text.to_owned()),
        Piece::Command(text) => return Section::Command(text.to_owned()),
        Piece::Change(part) => {
            return Section::Change {
                path: part.path.clone(),
                old: part.old.as_ref().map(|old| whole(old, read)),
                new: whole(&part.new, read),
            };
        }
        Piece::Plain(text) => Sheet::plain(text.into_owned()),
        Piece::Input(body) => Sheet::plain(whole(body, read)),
        Piece::Printed(body) => Sheet::printed(whole(body, read)),
    };
    sheets.push(sheet);
    Section::Sheet
}

impl Section {
    fn write(
        &self,
        sheets: &mut impl Iterator<Item = Sheet>,
        width: usize,
        theme: &Theme,
        paper: &mut Paper,
    ) {
        let mut out = Vec::new();
        match self {
            Self::Heading(text) => {
                if !paper.is_empty() {
                    out.push(Line::default());
                }
                out.extend(markdown::plain(text, width, theme.title));
            }
            Self::Markdown(text) => return paper.add_long_markdown(text),
            Self::Command(text) => out.extend(command(text, width, theme)),
            Self::Sheet => return sheets.by_ref().take(1).for_each(|sheet| paper.add_sheet(sheet)),
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

/// What a block is made of.
fn pieces(transcript: &Transcript, id: BlockId) -> Option<Vec<Piece<'_>>> {
    let block = transcript.block(id)?;
    Some(match &block.kind {
        BlockKind::Assistant(message) => vec![Piece::Markdown(&message.text, message.epoch)],
        BlockKind::Tool(call) => tool(transcript, call),
        BlockKind::Plan(plan) if plan.markdown.is_some() => {
            vec![Piece::Markdown(plan.markdown.as_deref().unwrap_or_default(), block.rev)]
        }
        _ => vec![Piece::Plain(Cow::Owned(source::of_block(transcript, id)?))],
    })
}

/// Everything a tool call holds.
fn tool<'a>(transcript: &'a Transcript, call: &'a ToolCall) -> Vec<Piece<'a>> {
    let mut out = Vec::new();
    if let Some(command) = &call.command {
        out.extend([Piece::Heading("Command"), Piece::Command(command)]);
    }
    if let Some(reason) = &call.error {
        out.extend([Piece::Heading("Error"), Piece::Plain(Cow::Borrowed(reason))]);
    }
    for part in &call.parts {
        match part {
            ToolPart::Text(body) => out.extend([Piece::Heading("Output"), Piece::Printed(body)]),
            ToolPart::Terminal(id) => {
                if let Some(terminal) = transcript.terminal(id) {
                    out.extend([Piece::Heading("Terminal"), Piece::Printed(&terminal.output)]);
                }
            }
            ToolPart::Diff(part) => {
                let was_applied =
                    !matches!(call.status, ToolStatus::Failed | ToolStatus::Cancelled);
                let heading = if was_applied { "Change" } else { "Change, not applied" };
                out.extend([Piece::Heading(heading), Piece::Change(part)]);
            }
            ToolPart::Label(label) => out.push(Piece::Plain(Cow::Owned(format!("[{label}]")))),
        }
    }
    let raw = &call.output;
    let said = call.parts.iter().any(|part| match part {
        ToolPart::Text(body) => repeats(raw, body),
        _ => false,
    });
    if !raw.is_empty() && !said {
        let name = if call.has_content() { "Raw output" } else { "Output" };
        out.extend([Piece::Heading(name), Piece::Printed(raw)]);
    }
    if !call.input.is_empty() {
        out.extend([Piece::Heading("Input"), Piece::Input(&call.input)]);
    }
    out
}

/// Whether one text is the other once more, as far as memory tells.
fn repeats(one: &Body, other: &Body) -> bool {
    match (one.whole(), other.whole()) {
        (Some(one), Some(other)) => one.trim() == other.trim(),
        _ => one.len() == other.len() && one.head() == other.head() && one.tail() == other.tail(),
    }
}

fn whole(body: &Body, read: &mut Read<'_>) -> String {
    if let Some(text) = body.whole() {
        return text.to_owned();
    }
    body.spill().and_then(read).unwrap_or_else(|| {
        format!("{}\n… {} bytes are not kept …\n{}", body.head(), body.dropped(), body.tail())
    })
}

#[cfg(test)]
mod tests {
    use super::super::highlight::Highlighter;
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
        let paper = pager.paper(40, &theme);
        assert_eq!(paper.len(), 40_001);
        let hits = paper.hits("line 31234", &theme, &mut code);
        assert_eq!(hits, [31_235]);
        let row = paper.rows(31_235..31_236, &theme, &mut code).next().unwrap();
        assert_eq!(row.to_string(), "line 31234");
        assert!(paper.hits("nowhere", &theme, &mut code).is_empty());
    }

    #[test]
    fn the_page_of_a_running_command_reads_only_what_is_new() {
        let mut transcript = Transcript::new();
        transcript.keep_spills();
        let theme = Theme::default();
        let mut code = Highlighter::off();
        let mut disk = String::new();
        let id = transcript.tool("t", None, 0, |card, _| {
            card.title = "build".to_owned();
            card.command = Some("make".to_owned());
            card.parts = vec![ToolPart::Terminal("term".to_owned())];
        });
        transcript.terminal_output("term", "line 0\n");
        let mut pager = Pager::of_block(&transcript, id, |_| None).unwrap();
        let mut reads = 0;
        for n in 1..=20_000 {
            transcript.terminal_output("term", &format!("line {n}\n"));
            disk.extend(transcript.take_spills().into_iter().map(|write| write.text));
            pager.update(&transcript, id, |_| {
                reads += 1;
                Some(disk.clone())
            });
            if n % 100 == 0 {
                let paper = pager.paper(60, &theme);
                let before = paper.made;
                paper.reach(usize::MAX, &theme, &mut code);
                let end = paper.len();
                let last = paper.rows(end - 20..end, &theme, &mut code).last().unwrap().to_string();
                assert_eq!(last, format!("line {n}"));
                assert!(paper.made - before <= 512, "{} rows were made", paper.made - before);
            }
        }
        assert_eq!(reads, 0, "what memory holds is not read from disk");
        assert_eq!(pager.paper(60, &theme).hits("line 12345", &theme, &mut code).len(), 1);
        // Another width reads nothing again either, and another text is opened anew.
        assert_eq!(pager.paper(30, &theme).hits("line 19999", &theme, &mut code).len(), 1);
        transcript.tool("t", None, 0, |card, _| card.parts.clear());
        pager.update(&transcript, id, |_| None);
        assert!(pager.paper(30, &theme).hits("line", &theme, &mut code).is_empty());
    }
}
