//! A user who presses anything, while the agent does anything, on a screen of any size: nothing
//! panics, nothing is drawn outside, no approval is given by a key that approves nothing.

use proptest::prelude::*;
use serde_json::json;

use super::tests::{ready, tell};
use super::*;
use crate::tui::keymap::Key;
use crate::tui::model::mention::FileList;
use crate::tui::model::transcript::{Piece, Role};
use crate::tui::msg::{AgentCmd, AgentMsg, Cmd, Msg, Scroll, SessionFact};
use crate::tui::terminal::input::{Mouse, MouseKind, TermEvent};
use crate::tui::update::update;

/// Every key of the table, and what is written with.
const KEYS: &str = "/ G N a alt-/ alt-lt alt-_ alt-a alt-b alt-c alt-enter alt-f alt-h alt-i alt-j alt-k alt-l \
    alt-left alt-m alt-n alt-p alt-pagedown alt-pageup alt-q alt-r alt-right alt-s alt-t alt-u alt-up alt-v alt-w \
    alt-x b backspace c ctrl-/ ctrl-_ ctrl-a ctrl-b ctrl-c ctrl-d ctrl-down ctrl-e ctrl-end ctrl-f ctrl-g ctrl-h \
    ctrl-home ctrl-j ctrl-k ctrl-l ctrl-left ctrl-n ctrl-o ctrl-p ctrl-r ctrl-right ctrl-s ctrl-t ctrl-u ctrl-up \
    ctrl-x ctrl-y ctrl-z d delete down e end enter esc f f1 g home j k left n pagedown pageup q r right s \
    shift-down shift-enter shift-tab shift-up space tab up x y 1 2 3 @ 你 ✅";

#[derive(Debug, Clone)]
enum Act {
    Key(usize),
    Paste(String),
    Mouse(u8, u16, u16),
    Size(u16, u16),
    Wait(u64),
    Agent(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => any::<usize>().prop_map(Act::Key),
        1 => "[a-z@/\\n 中]{0,40}".prop_map(Act::Paste),
        1 => Just(Act::Paste("line\n".repeat(300))),
        2 => (0u8..5, 0u16..210, 0u16..70).prop_map(|(kind, x, y)| Act::Mouse(kind, x, y)),
        1 => (1u16..205, 1u16..65).prop_map(|(columns, rows)| Act::Size(columns, rows)),
        2 => (0u64..3_000).prop_map(Act::Wait),
        5 => (0u8..14).prop_map(Act::Agent),
    ]
}

/// Something that an agent does.
fn agent(model: &mut Model, what: u8, n: u64) {
    let session_id = "s".to_owned();
    let piece = |role, text| Piece { role, parent: None, message_id: None, text };
    let now = model.now_ms;
    match what {
        0 => drop(
            model.transcript.append(piece(Role::Assistant, "some **text**\n\n```rust\nlet x"), now),
        ),
        1 => drop(model.transcript.append(piece(Role::Thought, "hm\nhm 中文"), now)),
        2 | 3 => {
            let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "rm", "rawInput": {"command": "rm -rf ⚠️"}},
                "options": [{"optionId": "y", "name": "Allow", "kind": "allow_once"}, {"optionId": "n", "name": "Deny", "kind": "reject_once"}]});
            tell(model, AgentMsg::PermissionAsked { ask: n, params });
        }
        4 => {
            let params = json!({"sessionId": "s", "mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {
                "a": {"type": "string", "oneOf": [{"const": "x", "title": "X"}, {"const": "y", "title": "Y"}]},
                "b": {"type": "boolean"}, "c": {"type": "string"}, "d": {"type": "integer", "minimum": 1}}}});
            tell(model, AgentMsg::FormAsked { ask: n, params });
        }
        5 => {
            let params = json!({"sessionId": "s", "mode": "form", "message": "Review", "requestedSchema": {"type": "object",
                "properties": {"approval": {"type": "string", "title": "Plan", "description": "# Plan\n- a\n- b", "oneOf": [{"const": "approve", "title": "Approve"}, {"const": "reject", "title": "Reject"}]},
                               "feedback": {"type": "string", "title": "Feedback"}}, "required": ["approval"]}});
            tell(model, AgentMsg::FormAsked { ask: n, params });
        }
        6 => tell(
            model,
            AgentMsg::TurnEnded { session_id, result: Ok(json!({"stopReason": "end_turn"})) },
        ),
        7 => {
            let ask = model.asks.first().map_or(0, |ask| ask.id);
            tell(model, AgentMsg::AskWithdrawn { ask });
        }
        8 => {
            let fact =
                SessionFact::Child { session_id: format!("kid{}", n % 3), title: "kid".into() };
            tell(model, AgentMsg::Learned { session_id, fact });
        }
        9 => {
            let id = model.transcript.subagent(&format!("kid{}", n % 3), None, now, |agent| {
                agent.title = "检查".to_owned();
                agent.cancellable = true;
            });
            let text = "inside\n";
            let piece = Piece { role: Role::Assistant, parent: Some(id), message_id: None, text };
            model.transcript.append(piece, now);
        }
        10 => {
            let mut files = FileList::default();
            files.push("src/main.rs".to_owned());
            update(model, Msg::FilesListed(std::sync::Arc::new(files)));
        }
        11 => model.transcript.terminal_output("t", "\u{1b}[31mred\r10%\n\u{1b}[2J"),
        12 => tell(model, AgentMsg::Gone(crate::tui::msg::Failure::default())),
        _ => {
            let answer = json!({"sessions": [{"sessionId": "old", "cwd": "/", "title": "旧"}], "nextCursor": "x"});
            tell(model, AgentMsg::Sessions(Ok(answer)));
        }
    }
}

fn carry(view: &mut TranscriptView, scroll: &Scroll) {
    match *scroll {
        Scroll::Lines(rows) => view.scroll_by(rows as isize),
        Scroll::Pages(pages) => view.page(pages as isize),
        Scroll::Top => view.to_top(),
        Scroll::Tail => view.to_tail(),
        Scroll::PreviousPrompt => view.to_previous_prompt(),
        Scroll::NextPrompt => view.to_next_prompt(),
        Scroll::ExpandAll => view.expand_all(true),
        Scroll::Press(x, y) => view.press(x, y),
        Scroll::Drag(x, y) => view.drag(x, y),
        Scroll::Release(x, y) => drop(view.release(x, y)),
        Scroll::SelectBlock(forward) => view.select_near(forward),
        Scroll::ToggleBlock => view.toggle_selected(),
        Scroll::Unselect => {
            view.clear_selection();
            view.select(None);
        }
        Scroll::Show(block) => view.to_block(block),
        Scroll::Within(ref way) => {
            *view =
                way.last().map_or_else(TranscriptView::new, |id| TranscriptView::of_inside(*id));
        }
        Scroll::Reset => view.reset(),
        Scroll::Find(ref needle) => view.find(needle),
        Scroll::FoundOnDisk(ref blocks) => view.found_on_disk(blocks),
        Scroll::NextMatch(forward) => view.next_match(forward),
        Scroll::EndSearch => view.end_search(),
    }
}

proptest! {
    // Long runs, so fewer of them than usual; `PROPTEST_CASES` makes more.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 8,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_is_pressed_nothing_panics_and_only_a_key_for_it_approves(
        acts in proptest::collection::vec(act(), 1..120),
        utf8 in any::<bool>(),
    ) {
        let names: Vec<&str> = KEYS.split_whitespace().collect();
        let theme = Theme::new(theme::ThemeSpec { utf8, ..theme::ThemeSpec::default() });
        let mut model = ready();
        let mut view = TranscriptView::new();
        model.size = (80, 24);
        for (n, act) in (1u64..).zip(acts) {
            let mut pressed = None;
            let cmds = match act {
                Act::Key(at) => {
                    let name = names[at % names.len()];
                    pressed = Some(name);
                    model.now_ms += 60;
                    let keys = Key::sequence(&format!("<{name}>"));
                    keys.into_iter()
                        .flat_map(|key| update(&mut model, Msg::Term(TermEvent::Key(key))))
                        .collect()
                }
                Act::Paste(text) => update(&mut model, Msg::Term(TermEvent::Paste(text))),
                Act::Mouse(kind, x, y) => {
                    use MouseKind::{Drag, Press, Release, WheelDown, WheelUp};
                    let kind = [Press, Drag, Release, WheelUp, WheelDown][usize::from(kind)];
                    update(&mut model, Msg::Term(TermEvent::Mouse(Mouse { kind, x, y })))
                }
                Act::Size(columns, rows) => update(&mut model, Msg::Resized(columns, rows)),
                Act::Wait(ms) => {
                    model.now_ms += ms;
                    update(&mut model, Msg::Ticked)
                }
                Act::Agent(what) => {
                    agent(&mut model, what, n);
                    Vec::new()
                }
            };
            for cmd in &cmds {
                match cmd {
                    Cmd::Scroll(scroll) => carry(&mut view, scroll),
                    Cmd::Agent(AgentCmd::AnswerPermission { option_id: Some(id), .. }) if id == "y" => {
                        prop_assert!(matches!(pressed, Some("1" | "enter")), "{pressed:?} allowed it");
                    }
                    _ => {}
                }
            }
            let (columns, rows) = model.size;
            let mut buf = Buffer::empty(Rect::new(0, 0, columns, rows));
            let drawn = draw(&model, &mut view, &theme, &mut buf);
            model.composer_width = drawn.composer_width;
            model.body = drawn.body;
            if let Some((x, y)) = drawn.caret {
                prop_assert!(x < columns && y < rows, "the caret is at {x},{y} of {columns}x{rows}");
            }
            if drawn.dialog_shown {
                update(&mut model, Msg::Drawn);
            }
        }
    }
}

#[test]
fn every_list_and_page_is_drawn_on_the_smallest_screens() {
    for keys in [
        "<alt-m>",
        "<ctrl-r>",
        "<f1>",
        "<alt-a>",
        "<alt-q>",
        "<ctrl-s>x",
        "/",
        "<alt-t>",
        "<alt-s>",
    ] {
        for columns in [30, 31, 100, 200] {
            for rows in [8, 9, 10, 12] {
                let mut model = ready();
                agent(&mut model, 9, 1);
                super::tests::keys(&mut model, "go<ret>next<ret>");
                super::tests::keys(&mut model, keys);
                model.size = (columns, rows);
                let mut buf = Buffer::empty(Rect::new(0, 0, columns, rows));
                draw(&model, &mut TranscriptView::new(), &Theme::default(), &mut buf);
            }
        }
    }
}
