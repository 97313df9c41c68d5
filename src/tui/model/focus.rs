//! Where the focus is: what a key means depends on it, and what the hints may promise. Data only.

use super::plan::PlanFocus;
use super::{AskKind, Model, Overlay, menu};
use crate::tui::keymap::Context;

impl Model {
    /// Where the focus is.
    pub fn focus(&self) -> Context {
        match &self.overlay {
            Some(Overlay::Picker(_)) => return Context::Picker,
            Some(Overlay::Page(page)) if page.focused => return Context::Page,
            Some(Overlay::Agents(_)) => return Context::Agents,
            Some(Overlay::Queue(_)) => return Context::Queue,
            _ => {}
        }
        if self.is_armed() {
            match self.asks.first().map(|a| &a.kind) {
                Some(AskKind::Permission(_)) => return Context::Permission,
                Some(AskKind::Form(_)) => return Context::Form,
                Some(AskKind::Plan(plan)) if plan.focus == PlanFocus::Note => {
                    return Context::PlanNote;
                }
                Some(AskKind::Plan(_)) => return Context::Plan,
                None => {}
            }
        }
        if self.search.is_some() {
            Context::Search
        } else if menu::is_open(self) {
            Context::Menu
        } else if self.mentions.is_open() {
            Context::Mention
        } else {
            Context::Composer
        }
    }

    /// Whether the key that stops a turn stops it now: it first closes what is open, leaves what is
    /// edited and leads out of a subagent.
    pub fn would_stop(&self) -> bool {
        self.focus() == Context::Composer
            && self.overlay.is_none()
            && self.editing.is_none()
            && self.path.is_empty()
            && !self.history.is_browsing()
    }
}
