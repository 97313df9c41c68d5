//! Whole frames as a terminal gets them: what users of other terminals reported about the cursor,
//! the wheel and symbols of doubtful width, tried here. See `tests/complaints.rs`.

use super::tests::{asked, keys, ready, tell};
use super::*;
use crate::tui::keymap::Key;
use crate::tui::model::transcript::block::{Plan, PlanEntry, Priority, StepStatus};
use crate::tui::model::transcript::{Piece, Role};
use crate::tui::msg::{AgentMsg, Cmd, Msg, Opening, Scroll, SessionFact};
use crate::tui::terminal::input::{Mouse, MouseKind, TermEvent};
use crate::tui::terminal::screen::Screen as Cells;
use crate::tui::update::update;
use serde_json::json;

/// A terminal that is drawn to, frame by frame.
struct Tty {
    cells: Cells,
    terminal: vt100::Parser,
    view: TranscriptView,
    theme: Theme,
    size: (u16, u16),
}

impl Tty {
    fn new(columns: u16, rows: u16) -> Self {
        Self {
            cells: Cells::new(columns, rows),
            terminal: vt100::Parser::new(rows, columns, 0),
            view: TranscriptView::new(),
            theme: Theme::default(),
            size: (columns, rows),
        }
    }

    /// Draws a frame; returns what was written and where the caret belongs.
    fn frame(&mut self, model: &mut Model) -> (String, Option<(u16, u16)>) {
        model.size = self.size;
        let drawn = draw(model, &mut self.view, &self.theme, self.cells.buffer());
        model.composer_width = drawn.composer_width;
        model.body = drawn.body;
        let mut out = Vec::new();
        self.cells.flush(&mut out, drawn.caret, false).unwrap();
        self.terminal.process(&out);
        if drawn.dialog_shown {
            update(model, Msg::Drawn);
        }
        (String::from_utf8(out).unwrap(), drawn.caret)
    }

    fn rows(&self) -> Vec<String> {
        self.terminal.screen().rows(0, self.size.0).collect()
    }

    /// What the loop does with what the model asks of the view.
    fn carry(&mut self, cmds: Vec<Cmd>) {
        for cmd in cmds {
            match cmd {
                Cmd::Scroll(Scroll::Lines(rows)) => self.view.scroll_by(rows as isize),
                Cmd::Scroll(Scroll::Pages(pages)) => self.view.page(pages as isize),
                _ => {}
            }
        }
    }

    /// What stands in the last column of a row.
    fn edge(&self, row: u16) -> String {
        let cell = self.terminal.screen().cell(row, self.size.0 - 1);
        cell.map(|cell| cell.contents().to_owned()).unwrap_or_default()
    }
}

fn stream(model: &mut Model, text: &str) {
    let piece = Piece { role: Role::Assistant, parent: None, message_id: None, text };
    model.transcript.append(piece, model.now_ms);
}

#[test]
fn while_a_spinner_runs_the_cursor_rests_at_the_caret_and_is_neither_hidden_nor_shown() {
    let mut model = ready();
    model.start.reduced_motion = false;
    keys(&mut model, "go<ret>");
    let mut tty = Tty::new(80, 24);
    let mut spun = 0;
    for n in 0..200 {
        match n % 5 {
            0 => stream(&mut model, &format!("line {n} of 中文 and more\n\n")),
            1 if n < 60 => keys(&mut model, "你"),
            _ => {}
        }
        model.now_ms += 160;
        let (written, caret) = tty.frame(&mut model);
        let (x, y) = caret.expect("the composer has the caret");
        assert_eq!(tty.terminal.screen().cursor_position(), (y, x), "frame {n}");
        assert!(n == 0 || !written.contains("\x1b[?25"), "frame {n}: {written:?}");
        spun += usize::from(n % 5 > 1 && !written.is_empty());
    }
    assert!(spun > 20, "the spinner did not run");
}

#[test]
fn the_wheel_while_text_streams_moves_three_rows_and_leaves_one_composer() {
    let mut model = ready();
    keys(&mut model, "count<ret>");
    for n in 0..200 {
        stream(&mut model, &format!("number {n}\n\n"));
    }
    let mut tty = Tty::new(60, 20);
    tty.frame(&mut model);
    let first = |tty: &Tty| -> i64 {
        let number = |row: &String| {
            row.trim_start_matches(['●', ' ']).strip_prefix("number ")?.trim().parse().ok()
        };
        // Below a blank row is a number: twice its count, and the blank, is a place.
        let rows = tty.rows();
        let (at, number): (usize, i64) =
            rows.iter().enumerate().find_map(|(at, row)| Some((at, number(row)?))).unwrap();
        2 * number - i64::try_from(at).unwrap()
    };
    let mut place = first(&tty);
    for n in 0..30 {
        stream(&mut model, &format!("number {}\n\n", 200 + n));
        let wheel = Mouse { kind: MouseKind::WheelUp, x: 10, y: 5 };
        let cmds = update(&mut model, Msg::Term(TermEvent::Mouse(wheel)));
        tty.carry(cmds);
        tty.frame(&mut model);
        let now = first(&tty);
        assert!((0..=3).contains(&(place - now)), "step {n}: from {place} to {now}");
        // The first step begins at an end that has moved on.
        assert!(n == 0 || place - now == 3, "step {n}: from {place} to {now}");
        place = now;
        let rows = tty.rows();
        let composers = rows.iter().filter(|row| row.starts_with("❯ write the next")).count();
        assert_eq!(composers, 1, "{rows:#?}");
    }
}

#[test]
fn the_transcript_pages_while_a_permission_waits_below_a_plan_of_300_lines() {
    let mut model = asked(3, "make release");
    let entry = |n: u32| PlanEntry {
        content: format!("step {n}"),
        status: StepStatus::Pending,
        priority: Priority::Medium,
    };
    let plan = Plan { entries: (0..300).map(entry).collect(), ..Plan::default() };
    model.transcript.set_plan(plan, 0);
    let mut tty = Tty::new(80, 24);
    tty.frame(&mut model);
    model.now_ms += 1_000;
    let lowest = |tty: &Tty| {
        let step = |row: &String| {
            row.trim_start_matches(['○', ' ']).strip_prefix("step ")?.trim().parse::<u32>().ok()
        };
        tty.rows().iter().filter_map(step).min().unwrap()
    };
    tty.frame(&mut model);
    let mut before = lowest(&tty);
    for _ in 0..10 {
        let key = Key::sequence("<pageup>").remove(0);
        let cmds = update(&mut model, Msg::Term(TermEvent::Key(key)));
        tty.carry(cmds);
        tty.frame(&mut model);
        let now = lowest(&tty);
        assert!(now < before, "from {before} to {now}");
        before = now;
        assert!(tty.rows().iter().any(|row| row.contains("Allow once")), "{:#?}", tty.rows());
    }
}

/// Symbols that applications, multiplexers and terminals measure differently.
const DOUBTFUL: [&str; 12] =
    ["✅", "❌", "⭐", "🚀", "⚠", "⚠\u{fe0f}", "♻\u{fe0f}", "❤\u{fe0f}", "👩‍🔬", "🇩🇪", "💰", "🔢"];

#[test]
fn a_frame_around_doubtful_symbols_has_a_straight_border() {
    for (columns, rows) in [(40, 12), (80, 24)] {
        for symbol in DOUBTFUL {
            let mut model = asked(3, &format!("echo '{symbol}' {symbol}x{symbol} 模型"));
            let mut tty = Tty::new(columns, rows);
            tty.frame(&mut model);
            model.now_ms += 1_000;
            // Other symbols were there before: nothing of them may stay.
            tty.frame(&mut model);
            let top = tty.rows().iter().position(|row| row.starts_with('╭')).unwrap();
            let bottom = tty.rows().iter().position(|row| row.starts_with('╰')).unwrap();
            for row in top..=bottom {
                let row = u16::try_from(row).unwrap();
                assert!(
                    ["╮", "│", "╯"].contains(&tty.edge(row).as_str()),
                    "{symbol}: {:#?}",
                    tty.rows()
                );
            }
        }
    }
}

#[test]
fn names_of_wide_symbols_shift_nothing_in_the_status_lines() {
    let named = |name: &str| {
        let mut model = ready();
        let answer = json!({"configOptions": [
            {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "m",
             "options": [{"value": "m", "name": name}]}]});
        let opened =
            AgentMsg::Opened { opening: 1, session_id: "s".into(), answer, how: Opening::New };
        tell(&mut model, opened);
        let fact = SessionFact::Title(name.to_owned());
        tell(&mut model, AgentMsg::Learned { session_id: "s".into(), fact });
        model
    };
    for size in [(40, 12), (80, 24)] {
        let mut plain = Tty::new(size.0, size.1);
        plain.frame(&mut named("plain"));
        let ring = |tty: &Tty| {
            let row = size.1 - 1;
            (0..size.0).rev().find(|x| {
                tty.terminal.screen().cell(row, *x).is_some_and(|cell| cell.contents() == "%")
            })
        };
        assert!(ring(&plain).is_some());
        for symbol in DOUBTFUL {
            let mut tty = Tty::new(size.0, size.1);
            tty.frame(&mut named(&format!("{symbol} 模型 {symbol}")));
            assert_eq!(ring(&tty), ring(&plain), "{symbol}: {:#?}", tty.rows());
            let rule = (0..size.1).find(|y| tty.rows()[usize::from(*y)].contains("模型 ")).unwrap();
            assert_eq!(tty.edge(rule), "─", "{symbol}: {:#?}", tty.rows());
        }
    }
}

#[test]
fn a_question_that_is_longer_than_a_phone_is_wide_is_read_whole() {
    let mut model = ready();
    keys(&mut model, "go<ret>");
    let question = "Which database should the project use for 模型?";
    let params = json!({"sessionId": "s", "mode": "form", "message": "", "requestedSchema": {"type": "object",
        "properties": {"q": {"type": "string", "title": question, "oneOf": [{"const": "a", "title": "SQLite"}]}}}});
    tell(&mut model, AgentMsg::FormAsked { ask: 1, params });
    let mut tty = Tty::new(40, 12);
    tty.frame(&mut model);
    model.now_ms += 1_000;
    tty.frame(&mut model);
    let text: Vec<String> =
        tty.rows().iter().map(|row| row.trim_matches(['│', ' ']).to_owned()).collect();
    assert!(text.join(" ").contains(question), "{text:#?}");
    assert!(tty.rows().iter().any(|row| row.contains("Esc cancels")), "{:#?}", tty.rows());
}

#[test]
fn the_ring_stands_apart_from_what_is_left_of_it_at_every_width() {
    for columns in 30..120 {
        let mut tty = Tty::new(columns, 12);
        let mut model = ready();
        model.start.cwd = "/home/u/a/directory/of/plain/letters".into();
        tty.frame(&mut model);
        let row = tty.rows().pop().unwrap();
        let (left, _) = row.split_once('◑').unwrap();
        assert!(left.ends_with(' '), "{columns}: {row:?}");
    }
}
