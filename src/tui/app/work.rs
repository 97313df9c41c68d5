//! What the model asks of the view and of the jobs beside the loop: scrolling, copying, exporting,
//! searching, and the texts on disk.

use std::path::{Path, PathBuf};

use super::{App, Dirty};
use crate::tui::model::transcript::source::{self, Chunk};
use crate::tui::model::{Overlay, PageContent};
use crate::tui::msg::{CopyWhat, Scroll};
use crate::tui::spill::SpillStore;
use crate::tui::view::transcript::Released;

impl App {
    pub(super) fn scroll(&mut self, scroll: &Scroll) {
        match *scroll {
            Scroll::Lines(rows) => self.views.shown.scroll_by(rows as isize),
            Scroll::Pages(pages) => self.views.shown.page(pages as isize),
            Scroll::Top => self.views.shown.to_top(),
            Scroll::Tail => self.views.shown.to_tail(),
            Scroll::PreviousPrompt => self.views.shown.to_previous_prompt(),
            Scroll::NextPrompt => self.views.shown.to_next_prompt(),
            Scroll::ExpandAll => self.views.expand_all(),
            Scroll::Press(x, y) => self.views.shown.press(x, y),
            Scroll::Drag(x, y) => self.views.shown.drag(x, y),
            Scroll::Release(x, y) => match self.views.shown.release(x, y) {
                Released::Click(Some(hit)) if hit.header => self.views.shown.toggle(hit.block),
                Released::Click(_) => {}
                Released::Selected => self.copy(CopyWhat::Marked, false),
            },
            Scroll::SelectBlock(forward) => self.views.shown.select_near(forward),
            Scroll::ToggleBlock => self.views.shown.toggle_selected(),
            Scroll::Unselect => {
                self.views.shown.clear_selection();
                self.views.shown.select(None);
            }
            Scroll::Show(block) => self.views.shown.to_block(block),
            Scroll::Within(ref way) => self.views.look_within(way),
            Scroll::Reset => {
                self.views.look_within(&[]);
                self.views.shown.reset();
                self.begin_spills();
            }
            Scroll::Find(ref needle) => {
                self.views.shown.find(needle);
                self.search_disk(needle);
            }
            Scroll::FoundOnDisk(ref blocks) => self.views.shown.found_on_disk(blocks),
            Scroll::NextMatch(forward) => self.views.shown.next_match(forward),
            Scroll::EndSearch => self.views.shown.end_search(),
        }
        self.dirty = Dirty::Now;
    }

    /// Long texts of the conversation that begins now go to files of their own.
    pub(super) fn begin_spills(&mut self) {
        self.conversations += 1;
        self.spills = SpillStore::new(spill_dir(&self.state_dir, self.conversations));
        self.model.transcript.keep_spills();
        let reader = self.spills.reader();
        self.views.shown.set_spill_reader(move |key| reader.read_page(key));
    }

    /// Starts copying; what came of it is told when it is known.
    pub(super) fn copy(&mut self, what: CopyWhat, to_file: bool) {
        let chunks = match what {
            CopyWhat::Page => self.page_text(),
            CopyWhat::Marked if self.views.shown.has_selection() => self
                .views
                .shown
                .selected_text(&self.model.transcript, &self.theme)
                .map(|text| vec![Chunk::Text(text)]),
            CopyWhat::Marked => source::marked(&self.model.transcript, self.model.selected),
            CopyWhat::Code => source::code(&self.model.transcript, self.model.selected),
            CopyWhat::Turn => source::turn_of(&self.model.transcript, self.model.selected),
        };
        match chunks {
            Some(chunks) => self.jobs.copy(chunks, self.spills.reader(), to_file),
            None => self.report("nothing to copy here yet"),
        }
    }

    /// The source of what the page shows.
    pub(super) fn page_text(&self) -> Option<Vec<Chunk>> {
        let Some(Overlay::Page(page)) = &self.model.overlay else { return None };
        match &page.content {
            PageContent::Help => None,
            PageContent::Markdown(text) => Some(vec![Chunk::Text(text.clone())]),
            PageContent::Text(text) => Some(vec![Chunk::Text(text.to_string())]),
            PageContent::Block(id) => source::chunks_of_block(&self.model.transcript, *id),
        }
    }

    pub(super) fn export(&mut self, path: &str) {
        let chunks = source::of_conversation(&self.model.transcript);
        if chunks.is_empty() {
            self.report("nothing to export yet");
            return;
        }
        let target = (!path.is_empty()).then(|| self.model.start.cwd.join(path));
        self.jobs.export(chunks, self.spills.reader(), target);
    }

    /// Looks for a text in what lies on disk, beside the loop.
    pub(super) fn search_disk(&mut self, needle: &str) {
        let transcript = &self.model.transcript;
        let texts = transcript.blocks().iter().flat_map(|block| {
            let spilled = source::spilled_of_block(transcript, block.id);
            spilled.into_iter().map(|(key, held)| (block.id, key, held))
        });
        self.jobs.search(needle, texts.collect(), self.spills.reader());
    }
}

/// Where the long texts of this run's `n`th conversation are kept.
pub(super) fn spill_dir(state_dir: &Path, n: u32) -> PathBuf {
    state_dir.join("tui").join(format!("spill-{}-{n}", std::process::id()))
}
