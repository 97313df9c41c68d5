//! Where everything goes. The composer and the status line keep their rows; what is asked takes
//! what it needs of the rest; the transcript has what remains.

use ratatui::layout::Rect;

use crate::tui::model::menu;
use crate::tui::model::{AskKind, Model, Overlay, SIDE_BY_SIDE};

use super::{composer, dock, status};

/// Rows of the slash menu.
const MENU_ROWS: u16 = 8;
/// Rows of queued prompts.
const QUEUE_ROWS: u16 = 3;
/// Below this height the rule under the composer is left out.
const ROOMY: u16 = 16;
/// Below this height what is asked or read has every row but one of the draft's.
const LOW: u16 = 10;

/// The areas of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Everything above the queue, the menu and the composer.
    pub(super) body: Rect,
    pub(super) transcript: Rect,
    pub(super) dialog: Option<Rect>,
    /// The pane of a form.
    pub(super) side: Option<Rect>,
    /// Where a page goes.
    pub(super) page: Rect,
    pub(super) page_is_beside: bool,
    /// The steps of a plan.
    pub(super) dock: Rect,
    pub(super) queue: Rect,
    pub(super) menu: Rect,
    pub(super) top_rule: Rect,
    pub(super) composer: Rect,
    pub(super) bottom_rule: Rect,
    pub(super) status: Rect,
}

impl Layout {
    /// Divides the screen. `dialog_rows` says how many rows a permission or a
    /// confirmation would like.
    pub(super) fn of(
        model: &Model,
        screen: Rect,
        dialog_rows: impl FnOnce(&AskKind, u16) -> u16,
    ) -> Self {
        let mut bottom = screen.bottom();
        let mut take = |rows: u16| {
            let rows = rows.min(bottom.saturating_sub(screen.y));
            bottom -= rows;
            Rect::new(screen.x, bottom, screen.width, rows)
        };
        let covered = !model.asks.is_empty() || model.overlay.is_some();
        let taken = screen.height < LOW && covered;
        // What is said for a moment has its row also then.
        let status = take(u16::from(!taken || status::message(model).is_some()));
        let bottom_rule = take(u16::from(screen.height >= ROOMY));
        let rows = if taken { 1 } else { composer::height(model, screen) };
        let composer = take(rows);
        let top_rule = take(u16::from(!taken));
        let spare = screen.height.saturating_sub(rows + if screen.height < LOW { 4 } else { 6 });
        let menu_rows =
            if menu::is_open(model) { menu::rows(model).len() } else { model.mentions.height() };
        let menu_rows = u16::try_from(menu_rows).unwrap_or(MENU_ROWS).min(MENU_ROWS).min(spare);
        let menu = take(menu_rows);
        // The list shows them all.
        let listed = matches!(model.overlay, Some(Overlay::Queue(_)));
        let waiting = if listed { 0 } else { model.waiting() };
        let queued = u16::try_from(waiting).unwrap_or(QUEUE_ROWS).min(QUEUE_ROWS);
        let queue = take(queued.min(spare.saturating_sub(menu_rows) / 2));
        let dock = take(dock::height(model, screen));
        let body = Rect::new(screen.x, screen.y, screen.width, bottom.saturating_sub(screen.y));
        let wide = screen.width >= SIDE_BY_SIDE;
        // The same column that tells the mouse whose the wheel is.
        let left = body.width / 2;
        let beside = Rect { x: body.x + left, width: body.width - left, ..body };
        let asked = model.asks.first().map(|ask| &ask.kind);
        let form = matches!(asked, Some(AskKind::Form(_) | AskKind::Plan(_)));
        let mut side = form.then_some(if wide { beside } else { body });
        let page_open = matches!(model.overlay, Some(Overlay::Page(_)));
        let split = wide && (form || page_open);
        let mut transcript = if split { Rect { width: left, ..body } } else { body };
        let short = match asked {
            Some(AskKind::Permission(_)) => true,
            Some(AskKind::Form(form)) => form.is_confirmation() && !wide,
            _ => false,
        };
        let dialog = match asked {
            Some(asked) if short => {
                let wanted = dialog_rows(asked, transcript.width);
                // A little of the conversation stays in sight, so that one sees what it is about.
                // On a low screen what is asked needs every row.
                let most = match transcript.height {
                    0..14 => transcript.height,
                    height => height - 3,
                };
                let rows = wanted.clamp(3, most.max(3)).min(transcript.height);
                transcript.height -= rows;
                Some(Rect { y: transcript.bottom(), height: rows, ..transcript })
            }
            _ => None,
        };
        if form && short {
            side = dialog;
        }
        let page = if wide { beside } else { body };
        Self {
            body,
            transcript,
            dialog,
            side,
            page,
            page_is_beside: wide && !form,
            dock,
            queue,
            menu,
            top_rule,
            composer,
            bottom_rule,
            status,
        }
    }
}
