//! Screens at the sizes people have: a phone, a classic terminal, a window, a wall.

use super::*;
use crate::tui::keymap::Key;
use crate::tui::model::{FirstSession, Start};
use crate::tui::msg::{AgentMsg, Failure, Msg, Opening};
use crate::tui::terminal::input::TermEvent;
use crate::tui::update::update;
use ratatui::layout::Rect;
use serde_json::json;

const SIZES: [(u16, u16); 4] = [(40, 12), (80, 24), (120, 40), (200, 60)];

fn start() -> Start {
    Start {
        cwd: "/home/u/src/模型/project".into(),
        home: "/home/u".into(),
        agent_label: "ZCode".into(),
        examples: vec![
            ("hello".into(), "a tour".into()),
            ("plan".into(), "a plan to approve".into()),
        ],
        can_demo: true,
        reduced_motion: true,
        first: FirstSession::New,
        ..Start::default()
    }
}

pub(super) fn tell(model: &mut Model, msg: AgentMsg) {
    update(model, Msg::Agent(msg));
}

pub(super) fn ready() -> Model {
    let mut model = Model::new(start());
    model.now_ms = 1_000;
    tell(
        &mut model,
        AgentMsg::Initialized(
            json!({"agentInfo": {"name": "zcode", "title": "ZCode", "version": "0.1.0"}}),
        ),
    );
    let answer = json!({"configOptions": [
        {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "m", "options": [{"value": "m", "name": "GLM 4.6 大"}, {"value": "t", "name": "Tiny", "description": "fast"}]},
        {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "b", "options": [{"value": "b", "name": "Build"}, {"value": "p", "name": "Plan"}]}]});
    tell(
        &mut model,
        AgentMsg::Opened { opening: 1, session_id: "s".into(), answer, how: Opening::New },
    );
    let usage = crate::tui::model::status::Usage { used: 123_000, size: 200_000, cost: None };
    tell(
        &mut model,
        AgentMsg::Learned {
            session_id: "s".into(),
            fact: crate::tui::msg::SessionFact::Usage(usage),
        },
    );
    model
}

pub(super) fn keys(model: &mut Model, text: &str) {
    for key in Key::sequence(text) {
        model.now_ms += 50;
        update(model, Msg::Term(TermEvent::Key(key)));
    }
}

pub(super) fn screen(model: &mut Model, size: (u16, u16)) -> String {
    let mut buf = Buffer::empty(Rect::new(0, 0, size.0, size.1));
    model.size = size;
    let theme = Theme::default();
    let inside = model.path.last().copied();
    let mut view = inside.map_or_else(TranscriptView::new, TranscriptView::of_inside);
    let drawn = draw(model, &mut view, &theme, &mut buf);
    model.composer_width = drawn.composer_width;
    if drawn.dialog_shown {
        update(model, Msg::Drawn);
        model.now_ms += 1_000;
        buf.reset();
        draw(model, &mut view, &theme, &mut buf);
    }
    model.body = drawn.body;
    text_of(&buf, drawn.caret)
}

/// The cells as text, wide ones once; the caret as a note below.
fn text_of(buf: &Buffer, caret: Option<(u16, u16)>) -> String {
    let mut out = String::new();
    for y in 0..buf.area.height {
        let mut row = String::new();
        let mut skip = 0;
        for x in 0..buf.area.width {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buf[(x, y)].symbol();
            skip = width::cell_width(symbol).saturating_sub(1);
            row.push_str(if symbol.is_empty() { " " } else { symbol });
        }
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out + &format!("caret: {caret:?}\n")
}

fn check(name: &str, make: impl FnMut() -> Model) {
    for (size, text) in screens(name, make) {
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), text);
    }
}

/// The screens at all sizes; no row is wider than its screen.
pub(super) fn screens(name: &str, mut make: impl FnMut() -> Model) -> Vec<((u16, u16), String)> {
    let mut out = Vec::new();
    for size in SIZES {
        let text = screen(&mut make(), size);
        for row in text.lines().take(usize::from(size.1)) {
            assert!(width::cell_width(row) <= usize::from(size.0), "{name} {size:?}: {row:?}");
        }
        out.push((size, text));
    }
    out
}

pub(super) fn asked(options: usize, command: &str) -> Model {
    let mut model = ready();
    keys(&mut model, "clean up<ret>");
    let all = [
        ("once", "Allow once", "allow_once"),
        ("always", "Always allow", "allow_always"),
        ("no", "Reject", "reject_once"),
    ];
    let options: Vec<_> = all
        .iter()
        .take(options)
        .map(|(id, name, kind)| json!({"optionId": id, "name": name, "kind": kind}))
        .collect();
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c", "title": command, "rawInput": {"command": command}}, "options": options});
    tell(&mut model, AgentMsg::PermissionAsked { ask: 1, params });
    model
}

#[test]
fn the_welcome_says_what_it_is_and_what_to_type() {
    check("welcome", ready);
}

#[test]
fn a_permission_shows_the_whole_command_and_every_answer() {
    check("permission", || asked(3, "rm -rf build"));
}

#[test]
fn a_long_command_scrolls_and_hides_nothing() {
    let long = format!("echo {}\u{202e}; rm -rf x", "word ".repeat(200));
    check("permission_long", || asked(3, &long));
}

pub(super) fn planned() -> Model {
    let mut model = ready();
    keys(&mut model, "make a plan<ret>");
    let plan = format!("# Plan\n\n{}", "- a step of the plan\n".repeat(40));
    let params = json!({"sessionId": "s", "mode": "form", "message": "Review this plan.", "requestedSchema": {"type": "object",
        "properties": {"approval": {"type": "string", "title": "Plan", "description": plan, "oneOf": [{"const": "approve", "title": "Approve"}, {"const": "reject", "title": "Reject and keep planning"}]},
                       "feedback": {"type": "string", "title": "Feedback"}}, "required": ["approval"]}});
    tell(&mut model, AgentMsg::FormAsked { ask: 1, params });
    model
}

#[test]
fn a_plan_fills_its_pane_above_one_row_of_answers() {
    check("plan", planned);
}

#[test]
fn what_should_change_in_a_plan_is_written_below_it() {
    check("plan_note", || {
        let mut model = planned();
        update(&mut model, Msg::Drawn);
        model.now_ms += 1_000;
        keys(&mut model, "fsmaller steps, please, and begin with the tests of 模型");
        model
    });
}

#[test]
fn words_beside_an_approval_are_said_to_be_left_out() {
    let mut model = planned();
    update(&mut model, Msg::Drawn);
    model.now_ms += 1_000;
    keys(&mut model, "fsmaller<esc>a");
    let text = screen(&mut model, (80, 24));
    assert!(text.contains("Approving leaves these words out"), "{text}");
}

#[test]
fn a_permission_says_what_why_how_risky_and_for_whom_once() {
    check("permission_why", || {
        let mut model = ready();
        keys(&mut model, "clean up<ret>");
        let params = json!({"sessionId": "s", "options": [
                {"optionId": "y", "name": "Allow once", "kind": "allow_once"}, {"optionId": "n", "name": "Deny", "kind": "reject_once"}],
            "toolCall": {"toolCallId": "c", "name": "Bash", "kind": "execute", "title": "[explorer] Bash: rm -rf target && echo 清理完成",
            "_meta": {"zcode": {"riskLevel": "high"}}, "rawInput": {"command": "rm -rf target && echo 清理完成", "description": "Remove the build", "timeout": 5000},
            "content": [{"type": "content", "content": {"type": "text", "text": "Deletes files **below target**.\n```sh\nrm -rf target && echo 清理完成\n```"}}]}});
        tell(&mut model, AgentMsg::PermissionAsked { ask: 1, params });
        model
    });
}

pub(super) fn asking() -> Model {
    let mut model = ready();
    keys(&mut model, "ask me<ret>");
    let params = json!({"sessionId": "s", "mode": "form", "message": "How should I proceed?", "requestedSchema": {"type": "object", "properties": {
            "strategy": {"type": "string", "title": "Strategy", "oneOf": [{"const": "safe", "title": "Safe", "description": "slow"}, {"const": "fast", "title": "Fast"}], "default": "safe"},
            "targets": {"type": "array", "title": "Targets", "minItems": 1, "maxItems": 2, "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}},
            "tests": {"type": "boolean", "title": "Run tests", "default": true}, "n": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["strategy", "targets"]}});
    tell(&mut model, AgentMsg::FormAsked { ask: 1, params });
    model
}

#[test]
fn a_form_shows_every_kind_of_field() {
    check("form", asking);
}

#[test]
fn no_engine_shows_where_was_looked_and_offers_the_demo() {
    check("no_engine", || {
        let mut model = Model::new(start());
        tell(&mut model, AgentMsg::Initialized(json!({})));
        let failure = Failure {
            code: -32603,
            message: "no ZCode engine was found".into(),
            data: json!({"lookedFor": ["/Applications/ZCode.app", "zcode on PATH"], "hints": ["install ZCode, or set ZCODE_ENGINE"]}),
            ..Failure::default()
        };
        tell(&mut model, AgentMsg::OpenFailed { opening: 1, how: Opening::New, failure });
        model
    });
}

#[test]
fn queued_prompts_and_the_menu_are_in_sight() {
    check("queue_and_menu", || {
        let mut model = ready();
        keys(&mut model, "go<ret>first queued<ret>第二<ret>/m");
        model
    });
}

#[test]
fn a_list_is_filtered_and_the_help_is_the_keymap() {
    check("picker", || {
        let mut model = ready();
        keys(&mut model, "<alt-m>");
        model
    });
    check("help", || {
        let mut model = ready();
        keys(&mut model, "<f1>");
        model
    });
}

/// A model with a plan of many steps.
fn with_steps() -> Model {
    use crate::tui::model::transcript::block::{Plan, PlanEntry, Priority, StepStatus};
    let mut model = ready();
    keys(&mut model, "go<ret>");
    let entries = (1..=12).map(|n| PlanEntry {
        content: format!(
            "step {n} of the plan, with 中文 in it and words enough to be cut on a phone"
        ),
        status: match n {
            1..=4 => StepStatus::Completed,
            5 => StepStatus::InProgress,
            _ => StepStatus::Pending,
        },
        priority: Priority::Medium,
    });
    model.transcript.set_plan(Plan { entries: entries.collect(), ..Plan::default() }, 0);
    model.transcript.info("working on it", 0);
    model
}

#[test]
fn the_steps_of_a_plan_stay_in_sight_above_the_composer() {
    check("dock_folded", with_steps);
    check("dock_open", || {
        let mut model = with_steps();
        keys(&mut model, "<alt-l>");
        model
    });
}

#[test]
fn a_plan_that_is_done_needs_no_dock() {
    use crate::tui::model::transcript::block::{Plan, StepStatus};
    let mut model = with_steps();
    let size = (80, 24);
    assert!(screen(&mut model, size).contains("▸ Plan 4/12"));
    let (_, plan) = model.transcript.latest_plan().unwrap();
    let mut entries = plan.entries.clone();
    for entry in &mut entries {
        entry.status = StepStatus::Completed;
    }
    model.transcript.set_plan(Plan { entries, ..Plan::default() }, 0);
    assert!(!screen(&mut model, size).contains("▸ Plan"));
}

/// An MCP server that asks whether something may be done, with nothing to fill in.
fn confirmation() -> Model {
    use crate::tui::model::transcript::{Piece, Role};
    let mut model = ready();
    model.transcript.begin_turn("close what is done", vec![], 500);
    let text = "Two tickets are done: 4711 and 4712.";
    let piece = Piece { role: Role::Assistant, parent: None, message_id: None, text };
    model.transcript.append(piece, 600);
    let params = json!({"sessionId": "s", "mode": "form",
        "message": "tickets asks: Delete the ticket 4711 and everything that hangs on it? This cannot be undone.",
        "requestedSchema": {"type": "object", "properties": {}}});
    tell(&mut model, AgentMsg::FormAsked { ask: 1, params });
    model
}

#[test]
fn a_confirmation_shows_all_of_the_question_and_enter_alone_confirms_nothing() {
    check("confirmation", confirmation);
    for (typed, accepted) in [("<ret>", false), ("<up><ret>", true)] {
        let mut model = confirmation();
        let text = screen(&mut model, (80, 24));
        assert!(text.contains("▸ Decline") && text.contains("Two tickets"), "{text}");
        let effects: Vec<_> = Key::sequence(typed)
            .into_iter()
            .flat_map(|key| update(&mut model, Msg::Term(TermEvent::Key(key))))
            .collect();
        let said = format!("{effects:?}");
        assert_eq!(said.contains("Accept"), accepted, "{typed:?}: {said}");
        assert!(said.contains("Accept") || said.contains("Decline"), "{said}");
    }
}

/// A conversation that is longer than any screen.
fn long() -> Model {
    use crate::tui::model::transcript::{Piece, Role};
    let mut model = ready();
    for n in 0..40 {
        model.transcript.begin_turn(&format!("question {n}"), vec![], n);
        let text = format!("Answer {n} has a needle in it.\n\n```rust\nlet needle = {n};\n```\n");
        let piece = Piece { role: Role::Assistant, parent: None, message_id: None, text: &text };
        model.transcript.append(piece, n);
        model.transcript.end_turn(None, Some(1_000 + n), n + 2_000);
    }
    model
}

/// What the loop does with the view, and how it looks then.
fn check_view(
    name: &str,
    act: impl Fn(&mut Model, &mut TranscriptView, &mut dyn FnMut(&mut Model, &mut TranscriptView)),
) {
    for size in SIZES {
        let mut model = long();
        model.size = size;
        let mut view = TranscriptView::new();
        let theme = Theme::default();
        let mut buf = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        let mut caret = None;
        let mut frame = |model: &mut Model, view: &mut TranscriptView| {
            buf.reset();
            caret = draw(model, view, &theme, &mut buf).caret;
        };
        frame(&mut model, &mut view);
        act(&mut model, &mut view, &mut frame);
        frame(&mut model, &mut view);
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), text_of(&buf, caret));
    }
}

#[test]
fn a_reader_who_scrolled_up_sees_that_more_has_come() {
    check_view("new_below", |model, view, frame| {
        view.page(-1);
        frame(model, view);
        model.transcript.begin_turn("one more question", vec![], 3_000);
        model.transcript.info("and a notice", 3_000);
    });
}

#[test]
fn a_search_says_where_it_stands() {
    check_view("search", |model, view, frame| {
        model.search = Some(crate::tui::model::Search::default());
        keys(model, "needle");
        view.find("needle");
        frame(model, view);
        view.next_match(false);
        frame(model, view);
        if let Some(search) = &mut model.search {
            search.position = view.matches();
        }
    });
}

#[test]
fn a_selected_block_is_marked() {
    check_view("selected", |model, view, frame| {
        view.select_near(false);
        frame(model, view);
        view.select_near(false);
        frame(model, view);
        view.toggle_selected();
        model.selected = view.selected();
    });
}

#[test]
fn a_tiny_window_with_long_output_and_a_permission_is_drawn_once_and_rests() {
    use crate::tui::model::transcript::body::{Body, OUTPUT_CAP};
    use crate::tui::model::transcript::tool::{ToolPart, ToolStatus};
    let mut model = asked(3, "rm -rf build");
    let output: String = (1..=500).map(|n| n.to_string() + "\n").collect();
    model.transcript.tool("long", None, 0, |card, spills| {
        let mut body = Body::with_cap(OUTPUT_CAP);
        body.append(&output, spills);
        card.parts = vec![ToolPart::Text(body)];
        card.status = ToolStatus::Running;
    });
    model.size = (40, 12);
    let mut view = TranscriptView::new();
    let mut frame = || {
        let mut buf = Buffer::empty(Rect::new(0, 0, 40, 12));
        draw(&model, &mut view, &Theme::default(), &mut buf);
        buf
    };
    let first = frame();
    assert_eq!(first, frame(), "nothing changed");
    let text = text_of(&first, None);
    for answer in ["Allow once", "Always allow", "Reject", "rm -rf build"] {
        assert!(text.contains(answer), "{text}");
    }
}

#[test]
fn answering_a_command_taller_than_the_screen_moves_no_reader() {
    use crate::tui::model::transcript::{Piece, Role};
    let mut model = long();
    model.size = (80, 24);
    let mut view = TranscriptView::new();
    let mut top = |model: &Model, scroll: isize| {
        let mut buf = Buffer::empty(Rect::new(0, 0, 80, 24));
        view.scroll_by(scroll);
        draw(model, &mut view, &Theme::default(), &mut buf);
        let text = text_of(&buf, None);
        let cut = |row: &str| row.chars().take(70).collect::<String>().trim_end().to_owned();
        text.lines().take(2).map(cut).collect::<Vec<String>>()
    };
    top(&model, 0);
    let place = top(&model, -60);
    assert!(place.iter().any(|row| !row.trim().is_empty()), "{place:?}");
    let command = "echo one &&\n".repeat(100);
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "run", "rawInput": {"command": command}},
        "options": [{"optionId": "y", "name": "Allow", "kind": "allow_once"}]});
    tell(&mut model, AgentMsg::PermissionAsked { ask: 1, params });
    assert_eq!(top(&model, 0), place, "the question moved it");
    model.asks.clear();
    assert_eq!(top(&model, 0), place, "the answer moved it");
    for n in 0..30 {
        let text = format!("```rust\nlet x = {n};\n```\n\n| a | b |\n|---|---|\n| {n} | 2 |\n\n");
        let piece = Piece { role: Role::Assistant, parent: None, message_id: None, text: &text };
        model.transcript.append(piece, n);
        assert_eq!(top(&model, 0), place, "new text moved it");
    }
}

#[test]
fn a_long_draft_keeps_its_caret_in_sight() {
    check("draft", || {
        let mut model = ready();
        model.composer.set_text(&"你好 hello ".repeat(60));
        model
    });
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    let text = screen(&mut ready(), (18, 5));
    assert!(text.starts_with("too small"), "{text}");
}

#[test]
fn no_size_makes_drawing_panic() {
    for columns in (0..140).step_by(7) {
        for rows in (0..50).step_by(3) {
            let mut noted = planned();
            keys(&mut noted, "fword");
            for mut model in [ready(), asked(3, "rm -rf build"), asked(0, ""), planned(), noted] {
                screen(&mut model, (columns, rows));
            }
        }
    }
}
