use proptest::prelude::*;

use super::*;

fn rows(pieces: &[&str]) -> Vec<String> {
    let mut output = Output::new(1000);
    for piece in pieces {
        output.feed(piece);
    }
    output.rows().map(|row| row.text.clone()).collect()
}

#[test]
fn overwritten_progress_shows_its_last_state_however_it_is_split() {
    let whole = "10%\r20%\r100%\ndone\r\n";
    for cut in 0..=whole.len() {
        let (a, b) = whole.split_at(cut);
        assert_eq!(rows(&[a, b]), ["100%", "done"], "cut at {cut}");
    }
    assert_eq!(rows(&["abcdef\rxy"]), ["xycdef"]);
    assert_eq!(rows(&["abcdef\r\u{1b}[Kxy"]), ["xy"]);
    assert_eq!(rows(&["中文字\rabc"]), ["abc 字"]);
}

#[test]
fn a_carriage_return_alone_at_the_end_keeps_the_row() {
    assert_eq!(rows(&["50%\r"]), ["50%"]);
}

#[test]
fn several_progress_bars_are_redrawn_in_place() {
    assert_eq!(rows(&["a 1\nb 1\n\u{1b}[2Aa 2\u{1b}[K\nb 2\u{1b}[K\n"]), ["a 2", "b 2"]);
}

#[test]
fn dangerous_sequences_leave_nothing() {
    let text = "a\u{1b}[2J\u{1b}[H\u{1b}[?1049h\u{1b}]0;x\u{7}b\u{1b}]52;c;aGk=\u{1b}\\c\u{9b}31md\u{1b}Pq\u{1b}\\e\u{7}";
    assert_eq!(rows(&[text]), ["abcde"]);
    let pieces: Vec<String> = text.chars().map(String::from).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    assert_eq!(rows(&pieces), ["abcde"]);
}

#[test]
fn an_unfinished_control_string_does_not_eat_the_lines_after_it() {
    assert_eq!(rows(&["\u{1b}]0;title\nnext\n"]), ["", "next"]);
}

#[test]
fn colours_are_kept_and_end_where_they_end() {
    let mut output = Output::new(10);
    output.feed("a\u{1b}[1;31mred\u{1b}[0m b\u{1b}[38;5;200mx\u{1b}[48;2;1;2;3my");
    let row = output.rows().next().unwrap().into_owned();
    assert_eq!(row.text, "ared bxy");
    let ends: Vec<usize> = row.runs.iter().map(|(end, _)| *end).collect();
    assert_eq!(ends, [1, 4, 6, 7, 8]);
    assert!(row.runs[1].1.add_modifier.contains(Modifier::BOLD));
    assert_eq!(row.runs[2].1, Style::new());
}

#[test]
fn tabs_and_backspaces_do_what_they_do() {
    assert_eq!(rows(&["a\tb"]), ["a       b"]);
    assert_eq!(rows(&["ab\u{8}c"]), ["ac"]);
    assert_eq!(rows(&["中\t|"]), ["中      |"]);
}

#[test]
fn only_the_last_rows_are_kept_and_the_rest_is_counted() {
    let mut output = Output::new(100);
    let text: String = (1..=35_000).map(|n| format!("{n}\n")).collect();
    output.feed(&text);
    assert_eq!(output.rows().next_back().unwrap().text, "35000");
    assert_eq!(output.len() as u64 + output.dropped(), 35_000);
    assert!(output.len() <= 100);
}

#[test]
fn a_long_row_overwritten_again_and_again_stays_cheap() {
    let mut output = Output::new(10);
    output.feed(&"x".repeat(100_000));
    output.feed("\r");
    let start = std::time::Instant::now();
    output.feed(&"y".repeat(100_000));
    assert!(start.elapsed().as_millis() < 2_000);
    assert_eq!(output.rows().next().unwrap().text.len(), 100_000);
}

#[test]
fn nothing_in_a_command_can_hide() {
    let lines = reveal(&format!("rm\u{202e} x{}; \u{200b}y\r\u{1b}[2K\tz", " ".repeat(300)));
    let text: String = lines[0].iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(text, "rm<U+202E> x<300 blanks>; <U+200B>y^M^[[2K^Iz");
    assert!(lines[0].iter().any(|(text, marked)| text == "<U+202E>" && *marked));
    assert_eq!(reveal("a 👩‍🔬 b"), [[("a 👩‍🔬 b".to_owned(), false)]]);
}

#[test]
fn a_command_shows_every_class_of_unseen_characters_and_prose_those_that_deceive() {
    let shown = |text: &str| -> String {
        reveal(text).into_iter().flatten().map(|(text, _)| text).collect()
    };
    let both = "\u{2028}\u{2029}\u{202e}\u{2066}\u{61c}\u{200b}\u{2060}\u{feff}\u{3164}\u{115f}\u{ffa0}\u{e0041}\u{e0100}";
    for c in both.chars() {
        let spelt = format!("<U+{:04X}>", u32::from(c));
        for text in [format!("a{c}b"), format!("中{c}文")] {
            assert!(shown(&text).contains(&spelt), "{c:?}: {}", shown(&text));
            assert!(prose(&text).contains(&spelt), "{c:?}: {}", prose(&text));
        }
    }
    for c in
        "\u{ad}\u{fe00}\u{180b}\u{a0}\u{202f}\u{2800}\u{3000}\u{200d}\u{200c}\u{9b}\u{85}".chars()
    {
        let text = format!("a{c}b");
        assert!(
            shown(&text).contains(&format!("<U+{:04X}>", u32::from(c))),
            "{c:?}: {}",
            shown(&text)
        );
    }
    assert_eq!(shown("⚠\u{fe0f} rm\u{fe0f}"), "⚠\u{fe0f} rm<U+FE0F>");
    // What people write in prose stays as it is.
    assert_eq!(
        prose("Silben\u{ad}trennung\u{a0}hier ⚠\u{fe0f} 　全角"),
        "Silben\u{ad}trennung\u{a0}hier ⚠\u{fe0f} 　全角"
    );
}

#[test]
fn prose_keeps_its_lines_and_shows_what_is_unseen() {
    assert_eq!(prose("a\r\nb\tc"), "a\nb\tc");
    assert_eq!(prose("x\u{1b}[31my"), "x^[[31my");
    assert_eq!(visible("a\tb\u{202e}"), "a   b<U+202E>");
}

fn piece() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        Just("\r".to_owned()),
        Just("\n".to_owned()),
        Just("\u{8}".to_owned()),
        Just("\t".to_owned()),
        Just("\u{1b}[".to_owned()),
        Just("\u{1b}]".to_owned()),
        Just("\u{7}".to_owned()),
        Just("31;1m".to_owned()),
        Just("2A".to_owned()),
        Just("K".to_owned()),
        Just("5C".to_owned()),
        Just("中👩‍🔬e\u{301}".to_owned()),
        "\\PC{0,6}",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(parts, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_control_character_ever_comes_out(text in piece()) {
        let mut output = Output::new(100);
        output.feed(&text);
        for row in output.rows() {
            prop_assert!(!row.text.chars().any(|c| c.is_control() || is_hidden(c)), "{:?}", row.text);
            for (end, _) in &row.runs {
                prop_assert!(row.text.is_char_boundary(*end));
            }
        }
    }

    #[test]
    fn how_output_is_split_does_not_matter(text in piece(), seed in any::<u64>()) {
        let mut whole = Output::new(100);
        whole.feed(&text);
        let mut split = Output::new(100);
        let mut state = seed | 1;
        let mut piece = String::new();
        for c in text.graphemes(true) {
            piece.push_str(c);
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if state >> 62 == 0 {
                split.feed(&piece);
                piece.clear();
            }
        }
        split.feed(&piece);
        let text_of = |output: &Output| -> Vec<String> {
            output.rows().map(|row| row.text.clone()).collect()
        };
        prop_assert_eq!(text_of(&whole), text_of(&split));
    }
}
