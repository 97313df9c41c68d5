//! When a frame is due, and what goes out with it: the cells, the window's title, notifications;
//! and what the terminal itself answers.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use super::{App, Dirty, ms_since};
use crate::tui::msg::Msg;
use crate::tui::terminal::guard;
use crate::tui::terminal::input::Reply;
use crate::tui::terminal::traits;
use crate::tui::view;
use crate::tui::view::theme::{Theme, ThemeSpec};

/// Shortest time between two frames: a key that comes right after a frame of streamed text is on
/// the screen within half a tick of a 60 Hz display.
pub(super) const FRAME: Duration = Duration::from_millis(8);
/// Time between two frames while only text streams.
const STREAM_FRAME: Duration = Duration::from_millis(33);
/// Time between two steps of an animation.
const ANIMATION: Duration = Duration::from_millis(320);
/// Answers of the terminal tell that it can set this mode.
const SYNCHRONIZED_OUTPUT: u16 = 2026;

impl App {
    pub(super) fn frame_due(&self) -> Option<Instant> {
        if self.guest.is_some() {
            return None;
        }
        match self.dirty {
            Dirty::Now => Some(self.last_frame + FRAME),
            Dirty::Stream => Some(self.last_frame + STREAM_FRAME),
            Dirty::No if self.model.is_animated() => Some(self.last_frame + ANIMATION),
            Dirty::No => None,
        }
    }

    /// Whether a frame of streamed text is due: what else is streamed until then is taken with it.
    pub(super) fn is_paced(&self) -> bool {
        self.dirty == Dirty::Stream && self.frame_due().is_some()
    }

    pub(super) fn next_wake(&self) -> Option<Instant> {
        let deadline = self.model.deadline().map(|ms| self.at(ms));
        [self.frame_due(), deadline].into_iter().flatten().min()
    }

    pub(super) fn draw(&mut self) -> io::Result<()> {
        self.model.now_ms = self.model.now_ms.max(ms_since(self.began, Instant::now()));
        let drawn =
            view::draw(&self.model, &mut self.views.shown, &self.theme, self.screen.buffer());
        let mut out = io::stdout().lock();
        self.screen.flush(&mut out, drawn.caret, self.synchronized)?;
        drop(out);
        self.model.composer_width = drawn.composer_width;
        self.model.body = drawn.body;
        self.drawn = drawn;
        self.dirty = Dirty::No;
        self.last_frame = Instant::now();
        if drawn.dialog_shown && self.model.asks.first().is_some_and(|a| a.drawn_ms.is_none()) {
            self.take(Msg::Drawn, Dirty::No);
        }
        let found = self.views.shown.matches();
        if self.model.search.as_ref().is_some_and(|search| search.position != found) {
            self.take(Msg::Found(found), Dirty::Now);
        }
        if self.model.selected != self.views.shown.selected() {
            self.take(Msg::Selected(self.views.shown.selected()), Dirty::No);
        }
        if let Some(sought) = drawn.sought {
            let next = if sought.progress.is_some() { Dirty::Now } else { Dirty::No };
            self.take(Msg::PageSought(sought), next);
        }
        if drawn.unfinished {
            self.dirty = Dirty::Now;
        }
        self.set_title()
    }

    /// The window's title, written only when it changes.
    pub(super) fn set_title(&mut self) -> io::Result<()> {
        let session = &self.model.session.title;
        let name = if session.is_empty() {
            self.model.start.cwd.file_name().unwrap_or_default().to_string_lossy().into_owned()
        } else {
            session.clone()
        };
        let mark = if !self.model.asks.is_empty() {
            "? "
        } else if self.model.turn.since_ms().is_some() {
            "* "
        } else {
            ""
        };
        let text: String = format!("{mark}{name} - zcode-acp")
            .chars()
            .filter(|c| !c.is_control())
            .take(120)
            .collect();
        if text == self.title {
            return Ok(());
        }
        self.title = text;
        let mut out = io::stdout().lock();
        write!(out, "\x1b]2;{}\x07", self.title)?;
        out.flush()
    }

    pub(super) fn replied(&mut self, reply: &Reply) {
        match reply {
            Reply::KittyKeyboard => {
                if let Err(error) = self.guard.use_keyboard_protocol() {
                    tracing::debug!(%error, "the keyboard protocol was not set");
                }
            }
            Reply::Mode { mode: SYNCHRONIZED_OUTPUT, state: 1 | 2 } => self.synchronized = true,
            Reply::Background(red, green, blue) => {
                let background = traits::background_of(*red, *green, *blue);
                if background != self.theme.spec.background && !self.fixed_background {
                    let links = self.theme.links.take();
                    let theme = Theme::new(ThemeSpec { background, ..self.theme.spec });
                    self.theme = Theme { links, ..theme };
                    self.dirty = Dirty::Now;
                }
            }
            Reply::Mode { .. } | Reply::DeviceAttributes => {}
        }
    }

    pub(super) fn resized(&mut self) {
        // Even to the size that is known: a pane that was made small and large again in between
        // has lost what was drawn.
        self.redraw();
        let (columns, rows) = guard::size();
        if (columns, rows) != self.model.size {
            self.take(Msg::Resized(columns, rows), Dirty::Now);
        }
    }

    pub(super) fn redraw(&mut self) {
        let (columns, rows) = guard::size();
        self.screen.reset(columns, rows);
        self.dirty = Dirty::Now;
    }

    /// Told only when the window is not looked at: OSC 9 where it is known, and the bell.
    pub(super) fn notify(text: &str) {
        let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
        let mut out = io::stdout().lock();
        let written = write!(out, "\x1b]9;zcode-acp: {text}\x07\x07").and_then(|()| out.flush());
        if let Err(error) = written {
            tracing::debug!(%error, "the notification was not written");
        }
    }
}
