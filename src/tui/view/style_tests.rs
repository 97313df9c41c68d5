//! What the snapshots of text do not show: the colours and attributes of the cells, in every depth
//! of colour and on both backgrounds. A letter below each cell names its style.

use std::fmt::Write as _;

use super::tests::{keys, ready, tell};
use super::*;
use crate::tui::model::status::Usage;
use crate::tui::model::transcript::block::{Notice, Severity};
use crate::tui::model::transcript::body::{Body, DIFF_CAP, OUTPUT_CAP};
use crate::tui::model::transcript::tool::{DiffPart, ToolKind, ToolPart, ToolStatus};
use crate::tui::model::transcript::{Piece, Role, Transcript};
use crate::tui::msg::{AgentMsg, SessionFact};
use ratatui::buffer::Cell;
use ratatui::style::Color;
use theme::{Background, ColorDepth, ThemeSpec};

const DEPTHS: [(&str, ColorDepth); 4] = [
    ("true", ColorDepth::TrueColor),
    ("256", ColorDepth::Indexed),
    ("16", ColorDepth::Ansi),
    ("none", ColorDepth::None),
];
const GROUNDS: [(&str, Background); 2] = [("dark", Background::Dark), ("light", Background::Light)];

fn themes() -> impl Iterator<Item = (String, Theme)> {
    DEPTHS.into_iter().flat_map(|(depth_name, depth)| {
        GROUNDS.into_iter().map(move |(ground, background)| {
            let spec = ThemeSpec { depth, background, ..ThemeSpec::default() };
            (format!("{depth_name}_{ground}"), Theme::new(spec))
        })
    })
}

/// A cell's style in words; empty for a plain one.
fn style_of(cell: &Cell) -> String {
    let mut words = Vec::new();
    if cell.fg != Color::Reset {
        words.push(format!("on {:?}", cell.fg).replacen("on ", "", 1));
    }
    if cell.bg != Color::Reset {
        words.push(format!("on {:?}", cell.bg));
    }
    if !cell.modifier.is_empty() {
        words.push(format!("{:?}", cell.modifier));
    }
    words.join(" ")
}

/// A screen by its name.
type Named = (&'static str, fn() -> Model);

/// Rows of text, each with the letters of its styles below, and what the letters mean.
fn styled(buf: &Buffer, area: Rect) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut known: Vec<String> = Vec::new();
    let mut out = String::new();
    for y in area.y..area.bottom() {
        let (mut text, mut letters) = (String::new(), String::new());
        let mut skip = 0;
        for x in area.x..area.right() {
            let cell = &buf[(x, y)];
            let style = style_of(cell);
            letters.push(if style.is_empty() {
                ' '
            } else {
                let at = known.iter().position(|it| *it == style).unwrap_or_else(|| {
                    known.push(style);
                    known.len() - 1
                });
                char::from(LETTERS[at])
            });
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = width::cell_width(cell.symbol()).saturating_sub(1);
            text.push_str(if cell.symbol().is_empty() { " " } else { cell.symbol() });
        }
        let (text, letters) = (text.trim_end(), letters.trim_end());
        let _infallible = writeln!(out, "{text}");
        if !letters.is_empty() {
            let _infallible = writeln!(out, "{letters}");
        }
    }
    out.push('\n');
    for (letter, style) in LETTERS.iter().zip(&known) {
        let _infallible = writeln!(out, "{} {style}", char::from(*letter));
    }
    out
}

fn body(
    text: &str,
    cap: usize,
    spills: &mut crate::tui::model::transcript::body::SpillQueue,
) -> Body {
    let mut body = Body::with_cap(cap);
    body.append(text, spills);
    body
}

fn tool(
    t: &mut Transcript,
    id: &str,
    status: ToolStatus,
    part: impl FnOnce(&mut crate::tui::model::transcript::body::SpillQueue) -> ToolPart,
) {
    t.tool(id, None, 0, |card, spills| {
        card.placeholder = false;
        id.clone_into(&mut card.title);
        card.kind = if id.starts_with("Edit") { ToolKind::Edit } else { ToolKind::Execute };
        card.status = status;
        card.parts = vec![part(spills)];
    });
}

/// Everything that has a colour of its own.
fn colourful() -> Transcript {
    let mut t = Transcript::new();
    t.begin_turn("make it so", vec!["main.rs".to_owned()], 0);
    let piece = |role, text| Piece { role, parent: None, message_id: None, text };
    t.append(piece(Role::Thought, "First I think."), 0);
    let answer = "# Title\n\n**bold** *it* `code` ~~no~~ [a](https://b.c)\n\n> quoted\n\n\
        ```rust\n// say\nfn f(n: u32) -> &str {\n    \"x\" // 1\n}\n```\n\n| a | b |\n|---|---|\n| needle | 2 |\n";
    t.append(piece(Role::Assistant, answer), 0);
    t.settle(0);
    let (old, new) = ("let a = 1;\nlet b = 2;\n", "let a = 10;\nlet c = \"x\";\n");
    tool(&mut t, "Edit x.rs", ToolStatus::Completed, |spills| {
        let old = Some(body(old, DIFF_CAP, spills));
        ToolPart::Diff(DiffPart { path: "x.rs".to_owned(), old, new: body(new, DIFF_CAP, spills) })
    });
    tool(&mut t, "run", ToolStatus::Failed, |spills| {
        let text = "\u{1b}[31merror\u{1b}[0m: \u{1b}[1;38;5;208mwarm\u{1b}[0m \u{1b}[48;2;1;2;3mdeep\u{1b}[0m \u{1b}[7mturned\u{1b}[0m\n";
        ToolPart::Text(body(text, OUTPUT_CAP, spills))
    });
    for (severity, title) in
        [(Severity::Info, "known"), (Severity::Warning, "mind this"), (Severity::Error, "it broke")]
    {
        let hint = Some("do this".to_owned());
        let notice = Notice {
            severity,
            title: title.to_owned(),
            detail: String::new(),
            hint,
            running: false,
        };
        t.notice(None, notice, 0);
    }
    t.end_turn(Some("cancelled".to_owned()), Some(12), 2_000);
    t
}

#[test]
fn everything_has_its_colour_in_every_depth_and_on_both_backgrounds() {
    let t = colourful();
    for (name, theme) in themes() {
        let area = Rect::new(0, 0, 56, 60);
        let mut view = TranscriptView::new();
        view.set_highlighter(highlight::Highlighter::inline());
        let mut draw = || {
            let mut buf = Buffer::empty(area);
            view.render(&t, area, &mut buf, &theme, 0);
            view.find("needle");
            buf
        };
        draw();
        let buf = draw();
        insta::assert_snapshot!(format!("colours_{name}"), styled(&buf, area));
    }
}

#[test]
fn a_wide_diff_has_its_colours_on_both_sides() {
    let t = colourful();
    for (name, theme) in themes().filter(|(name, _)| name.ends_with("dark")) {
        let area = Rect::new(0, 0, 120, 60);
        let mut buf = Buffer::empty(area);
        let mut view = TranscriptView::new();
        view.set_highlighter(highlight::Highlighter::inline());
        view.render(&t, area, &mut buf, &theme, 0);
        let text = |y| (0..120).map(|x| buf[(x, y)].symbol()).collect::<String>();
        let first = (0..60).find(|y| text(*y).contains("Edit x.rs")).unwrap();
        let rows = Rect::new(0, first, 120, 5);
        insta::assert_snapshot!(format!("wide_diff_{name}"), styled(&buf, rows));
    }
}

#[test]
fn the_ring_is_coloured_by_how_full_the_context_is() {
    let mut out = String::new();
    for (name, theme) in themes() {
        for percent in [0, 10, 49, 50, 74, 75, 89, 90, 100] {
            let mut model = ready();
            let usage = Usage { used: percent * 1_000, size: 100_000, cost: None };
            let fact = SessionFact::Usage(usage);
            tell(&mut model, AgentMsg::Learned { session_id: "s".into(), fact });
            model.size = (60, 14);
            let mut buf = Buffer::empty(Rect::new(0, 0, 60, 14));
            draw(&model, &mut TranscriptView::new(), &theme, &mut buf);
            let cells: Vec<&Cell> = (50..60).map(|x| &buf[(x, 13)]).collect();
            let text: String = cells.iter().map(|cell| cell.symbol()).collect();
            let ring = cells.iter().find(|cell| cell.symbol() != " ").unwrap();
            let _infallible = writeln!(out, "{name:<11} {:<8} {}", text.trim(), style_of(ring));
        }
    }
    insta::assert_snapshot!("ring", out);
}

#[test]
fn without_utf8_no_sign_of_ours_is_left_on_any_screen() {
    let theme = Theme::new(ThemeSpec { utf8: false, ..ThemeSpec::default() });
    let screens: [Named; 6] = [
        ("welcome", ready),
        ("running", || {
            let mut model = ready();
            keys(&mut model, "go<ret>next<ret>");
            model
        }),
        ("help", || {
            let mut model = ready();
            keys(&mut model, "<f1>");
            model
        }),
        ("menu", || {
            let mut model = ready();
            keys(&mut model, "/");
            model
        }),
        ("models", || {
            let mut model = ready();
            keys(&mut model, "<alt-m>");
            model
        }),
        ("colourful", || {
            let mut model = ready();
            model.transcript = colourful();
            model
        }),
    ];
    for (name, make) in screens {
        for size in [(40, 12), (80, 24), (120, 40)] {
            let mut model = make();
            model.size = size;
            let mut buf = Buffer::empty(Rect::new(0, 0, size.0, size.1));
            draw(&model, &mut TranscriptView::new(), &theme, &mut buf);
            for cell in &buf.content {
                let ours = |c: char| !c.is_ascii() && !c.is_alphanumeric();
                assert!(!cell.symbol().chars().any(ours), "{name} {size:?}: {:?}", cell.symbol());
            }
        }
    }
}
