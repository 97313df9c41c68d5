use proptest::prelude::*;

use super::stream::{Brush, Stream, Tail};
use super::*;

fn shown(lines: &[Line<'_>]) -> Vec<String> {
    lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

fn render_text(src: &str, width: usize) -> String {
    shown(&render(src, width, &Theme::default())).join("\n")
}

/// What a stream shows after its last piece.
fn streamed(pieces: &[&str], width: usize, mended: bool) -> Vec<String> {
    let theme = Theme::default();
    let mut code = Highlighter::off();
    let mut stream = Stream::new(0);
    let mut message = String::new();
    let mut units = Vec::new();
    for piece in pieces {
        message.push_str(piece);
        stream.advance(&message, &mut units);
        // What is drawn in between must not change what comes out.
        stream.tail(&message, true);
    }
    let mut brush = Brush { width, theme: &theme, code: &mut code };
    let mut lines: Vec<Line<'static>> = Vec::new();
    for unit in &units {
        if unit.gap() && !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(stream.draw(&message, unit, &mut brush).0);
    }
    let (tail, units) = stream.tail(&message, mended);
    for unit in &units {
        if unit.gap() && !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(stream.draw_tail(&message, &tail, unit, &mut brush).0);
    }
    shown(&lines)
}

const SAMPLE: &str = "# Title\n\nA paragraph with **bold**, `code`, ~~gone~~ and a [link](https://a.example/x).\nSecond line of it.\n\n\
- one\n- two with text that is long enough to wrap at forty cells for sure\n  - nested\n  - [x] done\n  - [ ] open\n\n  more of two\n- three\n\n\
1. first\n   ```rust\n   fn a() {}\n\n   fn b() {}\n   ```\n1. second\n1. third\n\n\
> quoted text\n> - in a list\n>\n> end\n\n\
> [!WARNING]\n> careful\n\n\
```python\ndef f():\n    return \"中文\"\n\n\nprint(f())\n```\n\n\
| 名前 | value | n |\n|---|:-:|--:|\n| 中文 | `a` | 1 |\n| 한국어 🚀 | longer text | 22 |\n\n---\n\nHeading\n=======\nlast words ✅";

#[test]
fn everything_has_its_place_at_40() {
    insta::assert_snapshot!(render_text(SAMPLE, 40));
}

#[test]
fn everything_has_its_place_at_80() {
    insta::assert_snapshot!(render_text(SAMPLE, 80));
}

#[test]
fn every_line_fits_at_every_width() {
    for width in 4..100 {
        for line in render(SAMPLE, width, &Theme::default()) {
            let cells = super::super::width::cell_width(&line.to_string());
            assert!(cells <= width, "{cells} > {width}: {line}");
        }
    }
}

#[test]
fn a_stream_ends_as_the_whole_begins_at_every_split() {
    let whole = shown(&render(SAMPLE, 40, &Theme::default()));
    for (cut, _) in SAMPLE.char_indices() {
        let (a, b) = SAMPLE.split_at(cut);
        assert_eq!(streamed(&[a, b], 40, false), whole, "cut at {cut}");
    }
    let chars: Vec<String> = SAMPLE.chars().map(String::from).collect();
    let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
    assert_eq!(streamed(&chars, 40, false), whole);
}

#[test]
fn half_markers_are_not_shown_while_more_is_to_come() {
    let table = [
        ("word **bo", "word bo"),
        ("word **", "word"),
        ("use `co", "use co"),
        ("see [docs](https://a", "see docs"),
        ("text\n-", "text"),
        ("text\n\n#", "text"),
        ("a\n\n| x | y |\n", "a"),
        ("a\n\n| x | y |\n|--", "a"),
        ("```rust\nlet x\n``", "│ rust\n│ let x"),
    ];
    for (src, expected) in table {
        assert_eq!(streamed(&[src], 40, true).join("\n").trim_end(), expected, "{src:?}");
    }
}

#[test]
fn nothing_but_the_unsettled_end_is_kept_open() {
    let mut stream = Stream::new(0);
    let mut units = Vec::new();
    let mut message = String::new();
    let mut longest = 0;
    for n in 0..2000 {
        message.push_str(&format!("paragraph {n} with some words\n\n```rust\nlet a = {n};\n```\n"));
        stream.advance(&message, &mut units);
        longest = longest.max(match stream.tail(&message, true).0 {
            Tail::AsItIs(end) => end - stream.settled(),
            Tail::Mended(text) => text.len(),
        });
    }
    assert!(longest < 100, "{longest}");
    assert_eq!(units.len(), 4000);
}

#[test]
fn a_line_without_end_is_cut_and_loses_nothing() {
    let word = "x".repeat(100_000);
    let lines = shown(&render(&word, 80, &Theme::default()));
    assert_eq!(lines.concat(), word);
    let start = std::time::Instant::now();
    let mut stream = Stream::new(0);
    let mut units = Vec::new();
    let mut message = String::new();
    for _ in 0..1000 {
        message.push_str(&"y".repeat(100));
        stream.advance(&message, &mut units);
        stream.tail(&message, true);
    }
    assert!(start.elapsed().as_secs() < 5);
}

#[test]
fn of_a_line_without_end_in_a_fence_no_more_is_looked_at_than_is_drawn() {
    let mut stream = Stream::new(0);
    let mut units = Vec::new();
    let mut message = "```\n".to_owned();
    for _ in 0..1000 {
        message.push_str(&"中y".repeat(100));
        stream.advance(&message, &mut units);
        let Tail::AsItIs(end) = stream.tail(&message, true).0 else { panic!("a fence is copied") };
        assert!(end < 20_000 && message.is_char_boundary(end), "{end}");
    }
    let shown = streamed(&[&message], 80, true);
    assert!(shown.last().unwrap().ends_with("the line goes on"), "{:?}", shown.last());
    assert!(shown.len() < 300);
}

#[test]
fn a_fence_that_streams_settles_in_parts() {
    let mut stream = Stream::new(0);
    let mut units = Vec::new();
    let mut message = "```rust\n".to_owned();
    for n in 0..1000 {
        message.push_str(&format!("let x = {n};\n"));
        stream.advance(&message, &mut units);
        assert!(stream.tail(&message, true).1.len() <= 1);
    }
    assert_eq!(units.len(), 1000 / 64);
}

#[test]
fn long_tables_are_cut_under_the_same_header() {
    let mut src = "| a | b |\n|---|---|\n".to_owned();
    for n in 0..200 {
        src.push_str(&format!("| {n} | x |\n"));
    }
    let text = render_text(&src, 40);
    assert_eq!(text.matches("│ a").count(), 3, "{text}");
    assert!(text.contains("│ 199"));
}

fn markdown() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("- ".to_owned()),
        Just("1. ".to_owned()),
        Just("  ".to_owned()),
        Just("    ".to_owned()),
        Just("```\n".to_owned()),
        Just("```rust\n".to_owned()),
        Just("> ".to_owned()),
        Just("| a | b |\n".to_owned()),
        Just("|---|---|\n".to_owned()),
        Just("# ".to_owned()),
        Just("---\n".to_owned()),
        Just("===\n".to_owned()),
        Just("**".to_owned()),
        Just("`".to_owned()),
        Just("[x](y)".to_owned()),
        Just("\r\n".to_owned()),
        Just("中文 ".to_owned()),
        Just("👩‍🔬".to_owned()),
        Just("$$".to_owned()),
        Just("<b>".to_owned()),
        "[a-z ]{1,12}",
    ];
    proptest::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_stream_ends_as_the_whole_begins(src in markdown(), seed in any::<u64>()) {
        // `\r\n` may be split between its two characters; it is one line end all the same.
        let src = src.replace("\r\n", "\n");
        let mut pieces = Vec::new();
        let mut from = 0;
        let mut state = seed | 1;
        for (at, _) in src.char_indices() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if state >> 61 == 0 {
                pieces.push(&src[from..at]);
                from = at;
            }
        }
        pieces.push(&src[from..]);
        prop_assert_eq!(streamed(&pieces, 30, false), shown(&render(&src, 30, &Theme::default())));
    }

    #[test]
    fn no_line_is_too_wide_and_mending_never_panics(src in markdown(), width in 2usize..60) {
        for line in render(&src, width, &Theme::default()) {
            let cells = super::super::width::cell_width(&line.to_string());
            prop_assert!(cells <= width.max(4), "{} > {}: {}", cells, width, line);
        }
        streamed(&[&src], width, true);
    }
}

#[test]
fn numbered_items_without_blanks_between_them_are_items() {
    let text = render_text("1. one\n   - under\n2. two\n3. three\nlazy\n\n- a\n7. b", 40);
    assert_eq!(text, "1. one\n   • under\n2. two\n3. three lazy\n\n• a 7. b");
}
