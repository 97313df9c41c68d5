//! The views of the conversation: the one that is shown, and those of what is around it while a
//! subagent is looked into, which keep their places until one comes back to them.

use crate::tui::model::transcript::block::BlockId;
use crate::tui::view::transcript::TranscriptView;

/// The view that is shown and those around it.
pub(super) struct Views {
    /// What is on the screen.
    pub(super) shown: TranscriptView,
    around: Vec<TranscriptView>,
    expanded: bool,
}

impl Default for Views {
    fn default() -> Self {
        Self { shown: TranscriptView::new(), around: Vec::new(), expanded: false }
    }
}

impl Views {
    /// Unfolds every card, or folds them all again: here, around, and in the insides looked into
    /// later.
    pub(super) fn expand_all(&mut self) {
        self.expanded = !self.expanded;
        for view in self.around.iter_mut().chain([&mut self.shown]) {
            view.expand_all(self.expanded);
        }
    }

    /// Shows the inside of the last of these subagents, the conversation itself when there is none.
    /// The views on the way there keep their places; those beside the way are forgotten.
    pub(super) fn look_within(&mut self, way: &[BlockId]) {
        let inside = way.last().copied();
        if self.shown.within() == inside {
            return;
        }
        let known = self.around.iter().position(|view| view.within() == inside);
        let mut next = match (known, inside) {
            (Some(at), _) => self.around.remove(at),
            (None, Some(block)) => TranscriptView::of_inside(block),
            (None, None) => TranscriptView::new(),
        };
        self.shown.hand_over(&mut next);
        if known.is_none() {
            next.expand_all(self.expanded);
        }
        self.around.push(std::mem::replace(&mut self.shown, next));
        self.around.retain(|view| view.within().is_none_or(|block| way.contains(&block)));
    }
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;

    use super::*;
    use crate::tui::model::transcript::{Piece, Role, Transcript};
    use crate::tui::view::theme::Theme;

    fn say(transcript: &mut Transcript, parent: Option<BlockId>, text: &str) {
        for n in 0..40 {
            let text = format!("{text} {n}");
            let id = format!("{text} {n}");
            let piece = Piece { role: Role::Assistant, parent, message_id: Some(&id), text: &text };
            transcript.append(piece, 0);
        }
    }

    fn rows(views: &mut Views, transcript: &Transcript) -> String {
        let area = Rect::new(0, 0, 40, 8);
        let mut buf = Buffer::empty(area);
        views.shown.render(transcript, area, &mut buf, &Theme::default(), 0);
        buf.content.iter().map(ratatui::buffer::Cell::symbol).collect()
    }

    fn agent(transcript: &mut Transcript, name: &str, above: Option<BlockId>) -> BlockId {
        let id = transcript.subagent(name, above, 0, |agent| name.clone_into(&mut agent.title));
        say(transcript, Some(id), name);
        id
    }

    #[test]
    fn whoever_comes_back_from_a_subagent_is_where_he_was_and_only_the_way_is_kept() {
        let mut t = Transcript::new();
        say(&mut t, None, "main");
        let kid = agent(&mut t, "kid", None);
        let grandkid = agent(&mut t, "grandkid", Some(kid));
        let other = agent(&mut t, "other", None);
        let mut views = Views::default();
        rows(&mut views, &t);
        views.shown.scroll_by(-40);
        let above = rows(&mut views, &t);
        assert!(above.contains("main"), "{above}");

        views.look_within(&[kid]);
        rows(&mut views, &t);
        views.shown.scroll_by(-30);
        let inside = rows(&mut views, &t);
        assert!(inside.contains("kid 2") && !inside.contains("main"), "{inside}");

        views.look_within(&[kid, grandkid]);
        assert!(rows(&mut views, &t).contains("grandkid 39"), "a new view is at its end");
        views.look_within(&[kid]);
        assert_eq!(rows(&mut views, &t), inside);
        views.look_within(&[]);
        assert_eq!(rows(&mut views, &t), above);
        assert!(views.around.is_empty(), "what is not on the way is forgotten");

        views.look_within(&[other]);
        assert!(rows(&mut views, &t).contains("other 39"));
        views.look_within(&[kid]);
        assert!(rows(&mut views, &t).contains("kid"), "from one straight to another");
        assert_eq!(views.around.len(), 1, "the way back to the conversation alone");
        views.look_within(&[]);
        assert_eq!(rows(&mut views, &t), above);
    }

    #[test]
    fn what_is_unfolded_inside_is_unfolded_around_too() {
        let mut t = Transcript::new();
        let kid = t.subagent("kid", None, 0, |_| {});
        let thought = Piece {
            role: Role::Thought,
            parent: None,
            message_id: None,
            text: "first\nsecond\nthird\n",
        };
        t.append(thought, 0);
        t.settle(0);
        let mut views = Views::default();
        assert!(!rows(&mut views, &t).contains("second"));
        views.look_within(&[kid]);
        views.expand_all();
        views.look_within(&[]);
        assert!(rows(&mut views, &t).contains("second"));
        views.expand_all();
        assert!(!rows(&mut views, &t).contains("second"));
    }
}
