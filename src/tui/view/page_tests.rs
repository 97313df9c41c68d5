//! Pages of a size that no frame can take in: searching them, going to their end.

use super::tests::{keys, ready};
use super::*;
use crate::tui::model::transcript::tool::ToolPart;
use crate::tui::model::{Page, PageContent};
use crate::tui::msg::Msg;
use crate::tui::update::update;

/// A page of a text, as the loop draws it.
struct Window {
    model: Model,
    view: TranscriptView,
    drawn: Drawn,
    text: String,
}

impl Window {
    fn of(text: String) -> Self {
        let mut model = ready();
        model.size = (80, 24);
        model.overlay = Some(Overlay::Page(Page {
            title: "build".to_owned(),
            content: PageContent::Text(text.into()),
            scroll: 0,
            focused: true,
            find: None,
        }));
        let mut window = Self {
            model,
            view: TranscriptView::new(),
            drawn: Drawn::default(),
            text: String::new(),
        };
        window.frame();
        window
    }

    /// A frame, and what the loop tells the model after it. Returns whether it asks for another.
    fn frame(&mut self) -> bool {
        let mut buf = Buffer::empty(Rect::new(0, 0, 80, 24));
        self.drawn = draw(&self.model, &mut self.view, &Theme::default(), &mut buf);
        self.model.body = self.drawn.body;
        self.text = (0..24)
            .map(|y| (0..80).map(|x| buf[(x, y)].symbol().to_owned()).collect::<String>() + "\n")
            .collect();
        let sought = self.drawn.sought;
        if let Some(sought) = sought {
            update(&mut self.model, Msg::PageSought(sought));
        }
        self.drawn.unfinished || sought.is_some_and(|sought| sought.progress.is_some())
    }

    /// Frames until none asks for another.
    fn rest(&mut self) -> usize {
        let mut frames = 1;
        while self.frame() {
            frames += 1;
            assert!(frames < 1_000, "it never rests: {}", self.text);
        }
        frames
    }
}

fn sixteen_megabytes() -> String {
    (0..400_000).map(|n| format!("{n:>7} compiling a crate with a name\n")).collect()
}

#[test]
fn a_search_in_sixteen_megabytes_takes_many_frames_shows_how_far_it_is_and_stops_at_esc() {
    let mut window = Window::of(sixteen_megabytes());
    keys(&mut window.model, "/999<space>comp");
    assert!(window.frame(), "one frame is not enough");
    assert!(
        window.text.contains("    999 compiling"),
        "what is found early is shown at once: {}",
        window.text
    );
    assert!(window.text.contains("% read") && window.text.contains("Esc stops"), "{}", window.text);
    let frames = window.rest();
    assert!(frames > 15, "{frames} frames for 16 MB");
    assert!(window.text.contains("line 1 of 400 ·"), "{}", window.text);
    // The next one is known: no frame looks through anything again.
    keys(&mut window.model, "<ret>n");
    assert!(!window.frame());
    assert!(window.text.contains("line 2 of 400 ·"), "{}", window.text);
    // What is nowhere is looked for to the end, unless one says stop.
    keys(&mut window.model, "<esc>/nowhere");
    assert!(window.frame() && window.frame());
    assert!(window.text.contains("0 so far"), "{}", window.text);
    keys(&mut window.model, "<esc>");
    assert!(!window.frame(), "it goes on after Esc");
    assert!(matches!(window.model.overlay, Some(Overlay::Page(_))), "the page stays open");
    keys(&mut window.model, "/nowhere");
    window.rest();
    assert!(window.text.contains("nothing found"), "{}", window.text);
}

#[test]
fn the_match_before_the_first_is_the_last_once_all_is_read() {
    let mut window = Window::of(sixteen_megabytes());
    keys(&mut window.model, "/7<space>comp<ret>");
    window.frame();
    keys(&mut window.model, "N");
    assert!(window.frame());
    assert!(!window.text.contains("399997"), "it is not known yet: {}", window.text);
    window.rest();
    assert!(window.text.contains(" 399997 compiling"), "{}", window.text);
    assert!(window.text.contains("line 40000 of 40000"), "{}", window.text);
}

#[test]
fn the_end_of_sixteen_megabytes_is_gone_to_in_frames_that_answer_keys_meanwhile() {
    let mut window = Window::of(sixteen_megabytes());
    keys(&mut window.model, "G");
    assert!(window.frame(), "one frame is not enough");
    assert!(window.text.contains("reading…"), "{}", window.text);
    keys(&mut window.model, "g");
    assert!(!window.frame(), "back at the top nothing is to be read");
    assert!(window.text.contains("      0 compiling"), "{}", window.text);
    keys(&mut window.model, "G");
    assert!(window.rest() > 15);
    assert!(window.text.contains(" 399999 compiling"), "{}", window.text);
    assert!(!window.text.contains("reading"), "{}", window.text);
}

#[test]
fn a_search_goes_on_while_the_command_it_looks_through_prints() {
    let mut window = Window::of(String::new());
    keys(&mut window.model, "<esc>go<ret>");
    window.model.transcript.tool("t", None, 0, |card, _| {
        card.title = "make".to_owned();
        card.parts = vec![ToolPart::Terminal("t".to_owned())];
    });
    let mut n = 0;
    for round in 0..20 {
        let more: String = (0..50)
            .map(|_| {
                n += 1;
                format!("line {n}\n")
            })
            .collect();
        window.model.transcript.terminal_output("t", &more);
        if round == 3 {
            keys(&mut window.model, "<ctrl-t>/line<space>1");
        }
        window.frame();
    }
    window.rest();
    let expected = (1..=1_000).filter(|n| n.to_string().starts_with('1')).count();
    assert!(window.text.contains(&format!("of {expected} ·")), "{expected}: {}", window.text);
}

#[test]
fn the_status_says_the_mode_once() {
    let mut model = ready();
    keys(&mut model, "/status<ret>");
    let Some(Overlay::Page(Page { content: PageContent::Markdown(text), .. })) = &model.overlay
    else {
        panic!("no status");
    };
    assert_eq!(text.to_lowercase().matches("**mode**").count(), 1, "{text}");
}
