//! Screens below those people have: a split of a split on a phone. What is to be decided and every
//! answer stay reachable, and the screen says that there is more.

use super::list_tests::{nested, queued};
use super::tests::{asked, asking, keys, planned, ready, screen};
use super::*;
use crate::tui::msg::Msg;
use crate::tui::update::update;

const SIZES: [(u16, u16); 2] = [(30, 8), (20, 6)];

fn check(name: &str, mut make: impl FnMut() -> Model) {
    for size in SIZES {
        let text = screen(&mut make(), size);
        for row in text.lines().take(usize::from(size.1)) {
            assert!(width::cell_width(row) <= usize::from(size.0), "{name} {size:?}: {row:?}");
        }
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), text);
    }
}

/// Keys in a dialog that is on the screen and counts keys.
fn armed(mut model: Model, size: (u16, u16), typed: &str) -> Model {
    screen(&mut model, size);
    keys(&mut model, typed);
    model
}

#[test]
fn what_is_asked_is_drawn_in_few_rows_without_a_frame_around_it() {
    check("tiny_permission", || asked(3, "rm -rf build"));
    check("tiny_permission_long", || asked(3, &format!("echo {}; rm -rf x", "word ".repeat(40))));
    check("tiny_permission_full", || {
        armed(asked(3, &format!("echo {}; rm -rf x", "word ".repeat(40))), (30, 8), "<ctrl-t>")
    });
    check("tiny_form", asking);
    check("tiny_form_below", || armed(asking(), (30, 8), "<down><down><down>"));
    check("tiny_plan", planned);
    check("tiny_plan_note", || {
        let mut model = planned();
        update(&mut model, Msg::Drawn);
        model.now_ms += 1_000;
        keys(&mut model, "fsmaller steps, please");
        model
    });
}

#[test]
fn what_is_read_or_chosen_from_has_the_rows_of_the_rest() {
    let opened = |mut model: Model, typed: &str| {
        keys(&mut model, typed);
        model
    };
    check("tiny_welcome", ready);
    check("tiny_draft", || opened(ready(), "a draft that is longer than the row it is in"));
    check("tiny_help", || opened(ready(), "<f1>"));
    check("tiny_picker", || opened(ready(), "<alt-m>"));
    check("tiny_menu", || opened(ready(), "/m"));
    check("tiny_agents", || opened(nested(), "<alt-a>"));
    check("tiny_agent_inside", || opened(nested(), "<alt-a><down><ret>"));
    check("tiny_queue", || opened(queued(true), "<alt-q>"));
}

/// The rows of a screen without what marks its ends.
fn rows(model: &mut Model, size: (u16, u16)) -> Vec<String> {
    screen(model, size).lines().map(str::to_owned).collect()
}

#[test]
fn every_answer_and_all_of_a_command_is_reached_in_a_window_of_a_few_rows() {
    let words: Vec<String> = (0..40).map(|n| format!("word{n}")).collect();
    let command = format!("echo {}; rm -rf x", words.join(" "));
    for size in SIZES {
        let mut model = asked(3, &command);
        let mut seen = rows(&mut model, size).join("\n");
        assert!(seen.contains("N: "), "it says that there is more: {seen}");
        for _ in 0..60 {
            keys(&mut model, "<ctrl-n>");
            seen = seen + "\n" + &rows(&mut model, size).join("\n");
        }
        for word in &words {
            assert!(
                seen.split_whitespace().any(|w| w.trim_end_matches(';') == word),
                "{word} at {size:?}: {seen}"
            );
        }
        let end = rows(&mut model, size).join(" ");
        for part in ["rm", "-rf x", "Ctrl-P: back"] {
            assert!(end.contains(part), "{part} at {size:?}: {end}");
        }
        let mut answers = String::new();
        for _ in 0..3 {
            keys(&mut model, "<down>");
            answers += &rows(&mut model, size).join("\n");
        }
        for answer in ["1  Allow once", "2  Always allow", "3  Reject"] {
            assert!(answers.contains(&format!("▸ {answer}")), "{answer} at {size:?}: {answers}");
        }
        assert!(size.1 > 6 || answers.contains("↑ 2") && answers.contains("↓ 2"), "{answers}");
    }
}

#[test]
fn every_field_of_a_form_and_the_whole_plan_is_reached_in_a_window_of_a_few_rows() {
    for size in SIZES {
        let mut model = asking();
        let mut seen = rows(&mut model, size).join("\n");
        assert!(seen.contains("↓ "), "it says that there is more: {seen}");
        for _ in 0..12 {
            keys(&mut model, "<down>");
            seen = seen + "\n" + &rows(&mut model, size).join("\n");
        }
        for part in ["How should", "1 Safe", "slow", "2 Fast", "1 A", "2 B", "Submit", "Decline"] {
            assert!(seen.contains(part), "{part} at {size:?}: {seen}");
        }
        let mut model = planned();
        let first = rows(&mut model, size).join("\n");
        for answer in if size.0 < 30 {
            ["a Yes", "r No", "f Note"]
        } else {
            ["a Approve", "r Reject", "f Note"]
        } {
            assert!(first.contains(answer), "{answer} at {size:?}: {first}");
        }
        let mut steps = 0;
        for _ in 0..60 {
            keys(&mut model, "j");
            let text = rows(&mut model, size).join("\n");
            steps += usize::from(text.contains("a step of"));
        }
        assert!(steps > 40, "{steps}");
        assert!(rows(&mut model, size).join("\n").contains("end of the"), "at {size:?}");
    }
}

#[test]
fn a_window_too_small_for_anything_says_so() {
    let text = screen(&mut asked(3, "rm"), (19, 6));
    assert!(text.starts_with("too small"), "{text}");
}
