//! PURE. Model → cells. Knows ratatui, not ACP. [`draw`] is called by the loop for every frame.

pub mod ansi;
pub mod code;
pub mod diff;
pub mod highlight;
pub mod link;
pub mod markdown;
pub mod theme;
pub mod transcript;
pub mod width;

mod agents;
mod ascii;
mod composer;
mod dialog;
mod dock;
mod form;
mod help;
mod hints;
mod layout;
mod page;
mod pager;
mod paper;
mod picker;
mod plan;
mod queue;
mod sheet;
mod status;
mod welcome;
mod widgets;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::tui::model::{AskKind, Body, Model, Overlay, Phase};
use crate::tui::msg::PageSought;
use layout::Layout;
use theme::Theme;
use transcript::TranscriptView;

/// Screens smaller than this get a line that says so.
const SMALLEST: (u16, u16) = (20, 6);

/// What the loop needs to know of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drawn {
    /// Cell of the caret; `None` hides the cursor.
    pub caret: Option<(u16, u16)>,
    /// Columns of the composer's text.
    pub composer_width: usize,
    /// Where the transcript is.
    pub transcript: Rect,
    /// What is asked or read: how far it scrolls.
    pub body: Body,
    /// Whether the front dialog was drawn in full view.
    pub dialog_shown: bool,
    /// Where a search in a page came to.
    pub sought: Option<PageSought>,
    /// A page is not yet read as far as one went in it: the next frame goes on.
    pub unfinished: bool,
}

/// Draws the whole screen into `buf`, whose cells are empty.
pub fn draw(model: &Model, view: &mut TranscriptView, theme: &Theme, buf: &mut Buffer) -> Drawn {
    let drawn = draw_all(model, view, theme, buf);
    if !theme.spec.utf8 {
        ascii::degrade(buf);
    }
    drawn
}

fn draw_all(model: &Model, view: &mut TranscriptView, theme: &Theme, buf: &mut Buffer) -> Drawn {
    let screen = buf.area;
    if screen.width < SMALLEST.0 || screen.height < SMALLEST.1 {
        return too_small(screen, theme, buf);
    }
    let is_tiny = widgets::is_tiny(screen);
    let layout = Layout::of(model, screen, |asked, columns| match asked {
        AskKind::Permission(permission) => {
            dialog::height(permission, columns, is_tiny, theme, view)
        }
        AskKind::Form(form) => form::height(form, columns, is_tiny, theme, view),
        AskKind::Plan(_) => 0,
    });
    let mut drawn = Drawn { transcript: layout.transcript, ..Drawn::default() };
    draw_main(model, view, theme, &layout, buf);
    dock::draw(model, theme, layout.dock, buf);
    queue::rows(model, theme, layout.queue, buf);
    composer::menu(model, theme, layout.menu, buf);
    status::top_rule(model, view, theme, layout.top_rule, buf);
    let caret = composer::draw(model, theme, layout.composer, buf);
    drawn.composer_width = composer::text_width(layout.composer);
    status::bottom_rule(model, theme, layout.bottom_rule, buf);
    status::line(model, theme, layout.status, buf);
    drawn.caret = Some(caret);
    draw_ask(model, view, theme, &layout, &mut drawn, buf);
    match &model.overlay {
        Some(Overlay::Page(page)) => {
            let shown = page::draw(model, page, view, theme, layout.page, buf);
            drawn.sought = shown.sought;
            drawn.unfinished = shown.unfinished;
            if page.focused {
                drawn.body = shown.body;
                drawn.caret = None;
            }
            drawn.dialog_shown &= layout.page_is_beside;
        }
        Some(Overlay::Picker(picker)) => {
            drawn.caret = picker::draw(picker, theme, layout.body, buf);
            drawn.dialog_shown = false;
        }
        Some(Overlay::Agents(list)) => {
            agents::draw(model, *list, theme, layout.body, buf);
            drawn.caret = None;
            drawn.dialog_shown = false;
        }
        Some(Overlay::Queue(list)) => {
            queue::draw(model, *list, theme, layout.body, buf);
            drawn.caret = None;
            drawn.dialog_shown = false;
        }
        None => {}
    }
    drawn
}

/// Draws what the agent waits for an answer to.
fn draw_ask(
    model: &Model,
    view: &mut TranscriptView,
    theme: &Theme,
    layout: &Layout,
    drawn: &mut Drawn,
    buf: &mut Buffer,
) {
    let Some(ask) = model.asks.first() else { return };
    let (caret, body) = match (&ask.kind, layout.dialog, layout.side) {
        (AskKind::Permission(permission), Some(area), _) => {
            drawn.body = dialog::draw(model, ask, permission, view, theme, area, buf);
            drawn.dialog_shown = true;
            return;
        }
        (AskKind::Form(form), _, Some(area)) => {
            form::draw(model, ask, form, view, theme, area, buf)
        }
        (AskKind::Plan(plan), _, Some(area)) => {
            plan::draw(model, ask, plan, view, theme, area, buf)
        }
        _ => return,
    };
    // Until its keys count, the caret is where typing goes.
    if model.is_armed() {
        drawn.caret = caret;
    }
    drawn.body = body;
    drawn.dialog_shown = true;
}

fn draw_main(
    model: &Model,
    view: &mut TranscriptView,
    theme: &Theme,
    layout: &Layout,
    buf: &mut Buffer,
) {
    let mut area = layout.transcript;
    if !model.path.is_empty() && area.height > 2 {
        agents::way(model, theme, Rect { height: 1, ..area }, buf);
        area = Rect { y: area.y + 1, height: area.height - 1, ..area };
    }
    match &model.phase {
        Phase::Down(trouble) if model.transcript.is_empty() => {
            welcome::trouble(model, trouble, theme, area, buf);
        }
        _ if model.transcript.is_empty() => welcome::draw(model, theme, area, buf),
        _ => view.render(&model.transcript, area, buf, theme, model.now_ms),
    }
}

fn too_small(screen: Rect, theme: &Theme, buf: &mut Buffer) -> Drawn {
    let text = format!(
        "too small: {}x{}, needs {}x{}",
        screen.width, screen.height, SMALLEST.0, SMALLEST.1
    );
    for (y, row) in (screen.y..screen.bottom()).zip(width::wrap(&text, usize::from(screen.width))) {
        buf.set_string(screen.x, y, row, theme.warning);
    }
    Drawn { composer_width: usize::from(screen.width), ..Drawn::default() }
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod list_tests;
#[cfg(test)]
#[allow(clippy::format_collect, reason = "test texts are built plainly")]
mod page_tests;
#[cfg(test)]
mod report_tests;
#[cfg(test)]
mod style_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tiny_tests;
