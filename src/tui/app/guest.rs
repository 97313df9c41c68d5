//! Guests of the terminal: programs that have it for a while, such as the user's editor, and the
//! shell after Ctrl-Z. The agent's side goes on meanwhile; nothing is drawn.

use std::io;
use std::path::PathBuf;

use super::{App, Dirty};
use crate::tui::editor;
use crate::tui::model::transcript::source;
use crate::tui::msg::Msg;
use crate::tui::terminal::reader::Reader;

impl App {
    /// Leaves the terminal to the shell, stops the whole process group, and comes back on `fg`.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        if self.editing.is_some() {
            // The editor has the terminal, and is stopped with us.
            rustix::process::kill_current_process_group(rustix::process::Signal::STOP)?;
            return Ok(());
        }
        if let Some(reader) = self.reader.take() {
            reader.stop();
        }
        self.guard.suspend();
        // The group, not only this process: a wrapper that started us must stop with us.
        rustix::process::kill_current_process_group(rustix::process::Signal::STOP)?;
        self.take_back()
    }

    /// Hands the terminal to the user's editor. The agent's side goes on meanwhile.
    pub(super) fn edit(&mut self, text: &str, is_draft: bool) {
        if self.editing.is_some() {
            return;
        }
        let file = match editor::write(&self.state_dir.join("tui"), text) {
            Ok(file) => file,
            Err(error) => return self.report(&format!("the text could not be written: {error}")),
        };
        if let Some(reader) = self.reader.take() {
            reader.stop();
        }
        self.guard.suspend();
        match editor::start(&self.editor, &file) {
            Ok(child) => self.editing = Some(Editing { child, file, is_draft }),
            Err(error) => {
                std::fs::remove_file(&file).ok();
                if let Err(error) = self.take_back() {
                    tracing::error!(%error, "the terminal could not be taken back");
                }
                self.report(&format!("{} could not be started: {error}", self.editor));
            }
        }
    }

    /// Opens the text of the page in the editor; what is changed there changes nothing here.
    pub(super) fn edit_page(&mut self) {
        match self.page_text() {
            Some(chunks) => {
                let reader = self.spills.reader();
                let text = source::assemble(&chunks, &mut |key| reader.read(key));
                self.edit(&text, false);
            }
            None => self.report("this page has no text of its own"),
        }
    }

    /// The editor has ended.
    pub(super) fn edited(
        &mut self,
        status: io::Result<std::process::ExitStatus>,
    ) -> io::Result<()> {
        let Some(editing) = self.editing.take() else { return Ok(()) };
        self.take_back()?;
        let text = std::fs::read_to_string(&editing.file);
        std::fs::remove_file(&editing.file).ok();
        match (status, text) {
            (Ok(status), Ok(text)) if status.success() => {
                if editing.is_draft {
                    self.carry(Msg::Edited(text), Dirty::Now);
                }
            }
            (Ok(status), Ok(_)) => {
                self.report(&format!("the editor ended with {status}: nothing is changed"));
            }
            (Err(error), _) | (_, Err(error)) => {
                self.report(&format!("the edited text could not be read: {error}"));
            }
        }
        Ok(())
    }

    /// Takes the terminal again after a program had it.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        let modes = self.guard.resume()?;
        self.screen.send_ahead(&modes);
        self.synchronized = false;
        if let Some(input) = &self.input {
            self.reader = Some(Reader::start(input.clone())?);
        }
        self.redraw();
        self.resized();
        Ok(())
    }
}

/// The editor that has the terminal.
pub(super) struct Editing {
    child: tokio::process::Child,
    file: PathBuf,
    is_draft: bool,
}

/// Waits for the editor; for ever when there is none.
pub(super) async fn wait(editing: &mut Option<Editing>) -> io::Result<std::process::ExitStatus> {
    match editing {
        Some(editing) => editing.child.wait().await,
        None => std::future::pending().await,
    }
}
