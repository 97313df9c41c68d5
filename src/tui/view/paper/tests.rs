use super::*;

fn long_change(lines: usize) -> (String, String) {
    let old = (0..lines).map(|n| format!("let a{n} = \"one\"; // 注 {n}\n")).collect();
    let new = (0..lines).map(|n| format!("let b{n} = \"two\"; // 注 {}\n", n * 7)).collect();
    (old, new)
}

#[test]
fn a_long_diff_is_drawn_and_coloured_only_where_one_looks() {
    let theme = Theme::default();
    let (old, new) = long_change(10_000);
    for width in [80, 120] {
        let mut code = Highlighter::inline();
        let mut paper = Paper::new(width, &theme);
        paper.add_change("a.rs".to_owned(), Some(&old), &new, &theme);
        assert_eq!((paper.made, code.coloured()), (0, 0));
        assert!(paper.len() > 10_000, "{}", paper.len());
        let tail = paper.len() - 40..paper.len();
        assert_eq!(paper.rows(tail.clone(), &theme, &mut code).count(), 40);
        assert!(paper.made <= 3 * STRETCH, "{} rows were made", paper.made);
        assert!(code.coloured() <= 4_000, "{} lines were coloured", code.coloured());
        // Another frame makes nothing.
        let made = paper.made;
        assert_eq!(paper.rows(tail, &theme, &mut code).count(), 40);
        assert_eq!(paper.made, made);
    }
}

/// Rows from the top on, as they are drawn.
fn all_rows(paper: &mut Paper, theme: &Theme) -> Vec<String> {
    let mut code = Highlighter::off();
    paper.reach(usize::MAX, theme, &mut code);
    let len = paper.len();
    paper.rows(0..len, theme, &mut code).map(ToString::to_string).collect()
}

#[test]
fn a_text_of_sixteen_megabytes_is_read_and_drawn_only_as_far_as_one_looks() {
    let theme = Theme::default();
    let mut code = Highlighter::off();
    let line = |n: usize| format!("{n:>7} \x1b[32mok\x1b[0m {}\n", "words ".repeat(n % 30));
    let text: String = (0..160_000).map(line).collect();
    assert!(text.len() > 15 << 20, "{}", text.len());
    let mut paper = Paper::new(100, &theme);
    paper.add_sheet(Sheet::printed(text.clone()));
    let first = paper.rows(0..40, &theme, &mut code).next().unwrap().to_string();
    assert!(first.contains("0 ok"), "{first}");
    assert!(paper.made <= 2 * STRETCH, "{} rows were made", paper.made);
    assert!(paper.sheets[0].len() < 5_000, "{} rows were read", paper.sheets[0].len());
    let guess = paper.len();
    assert!(!paper.reach(40, &theme, &mut code), "the rest is a guess");
    // The end is there when one goes there, and no more is drawn for it.
    assert!(paper.reach(usize::MAX, &theme, &mut code));
    let all = paper.len();
    assert!(all.abs_diff(guess) < all / 3, "guessed {guess}, has {all}");
    let last = paper.rows(all - 40..all, &theme, &mut code).last().unwrap().to_string();
    assert!(last.contains("words"), "{last}");
    assert!(paper.made <= 4 * STRETCH, "{} rows were made", paper.made);
    let hits = paper.hits(" 155555 ok", &theme, &mut code);
    assert_eq!(hits.len(), 1);
    let found = paper.rows(hits[0]..hits[0] + 1, &theme, &mut code).next().unwrap().to_string();
    assert!(found.contains("155555"), "{found}");
    // However far one scrolls, what is drawn is bounded.
    for first in (0..30_000).step_by(90) {
        paper.rows(first..first + 90, &theme, &mut code).for_each(drop);
    }
    let drawn = paper.parts.iter().filter(|part| part.lines.is_some()).count();
    assert!(drawn <= 2 * KEPT, "{drawn} stretches are drawn");
}

#[test]
fn a_text_that_grows_while_it_is_read_has_the_rows_of_the_whole() {
    let theme = Theme::default();
    let mut code = Highlighter::off();
    let line = |n: usize| match n % 5 {
        0 => format!("{}\n", "long words ".repeat(12)),
        1 => format!("progress {n}\r"),
        2 => format!("\x1b[2A\x1b[Kover {n}\n\n\n"),
        3 => format!("中文 {n}\n\n"),
        _ => format!("line {n}"),
    };
    let text: String = (0..2_000).map(line).collect();
    let mut whole = Paper::new(40, &theme);
    whole.add_sheet(Sheet::printed(text.clone()));
    whole.add(vec![Line::from("below")]);
    let mut grown = Paper::new(40, &theme);
    grown.add_sheet(Sheet::printed(String::new()));
    grown.add(vec![Line::from("below")]);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let at = rest.floor_char_boundary(rest.len().min(501));
        let (piece, after) = rest.split_at(at);
        grown.extend_sheet(0, piece);
        let first = grown.len() / 2;
        grown.rows(first..first + 30, &theme, &mut code).for_each(drop);
        rest = after;
    }
    assert_eq!(all_rows(&mut grown, &theme), all_rows(&mut whole, &theme));
}

#[test]
fn a_long_answer_is_drawn_only_where_one_looks_and_as_it_is_in_one_piece() {
    let theme = Theme::default();
    let mut code = Highlighter::off();
    let section = |n: usize| {
        format!(
            "## Part {n}\n\nSome **bold** words {n} and `code`, more than one row of them.\n\n- an item\n- another\n\n```rust\nlet a{n} = 1;\n```\n\n| a | b |\n|---|---|\n| {n} | 中 |\n\n"
        )
    };
    let text: String = (0..300).map(section).collect();
    let mut paper = Paper::new(50, &theme);
    paper.add_long_markdown(&text);
    paper.rows(0..40, &theme, &mut code).for_each(drop);
    assert!(paper.made < 80, "{} rows were made", paper.made);
    let once = markdown::render(&text, 50, &theme);
    let once: Vec<String> = once.iter().map(ToString::to_string).collect();
    assert_eq!(all_rows(&mut paper, &theme), once);
    // The same, as it comes.
    let mut grown = Paper::new(50, &theme);
    grown.add_long_markdown("");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(rest.len().min(37)));
        grown.extend_markdown(0, piece);
        rest = after;
    }
    assert_eq!(all_rows(&mut grown, &theme), once);
    // What is settled is not drawn again when more comes.
    let made = grown.made;
    grown.extend_markdown(0, "One more paragraph.\n\n");
    assert!(all_rows(&mut grown, &theme).len() > once.len());
    assert!(grown.made - made < 20, "{} rows were made", grown.made - made);
}

#[test]
fn scrolling_line_by_line_makes_every_row_once() {
    let theme = Theme::default();
    let (old, new) = long_change(400);
    let mut code = Highlighter::off();
    let mut paper = Paper::new(80, &theme);
    paper.add_change("a.rs".to_owned(), Some(&old), &new, &theme);
    for first in (0..paper.len() - 40).rev() {
        assert_eq!(paper.rows(first..first + 40, &theme, &mut code).count(), 40);
    }
    assert_eq!(paper.made, paper.len() - 1, "the header was there at once");
}

#[test]
fn rows_are_where_they_were_counted_and_are_found_undrawn() {
    let theme = Theme::default();
    let mut code = Highlighter::off();
    let wide = "x中".repeat(90);
    let new: String = (0..600).map(|n| format!("{wide} {n}\n")).collect();
    let mut paper = Paper::new(50, &theme);
    paper.add_change("a".to_owned(), None, &new, &theme);
    let hits = paper.hits(" 599", &theme, &mut code);
    assert_eq!(hits.len(), 1);
    assert_eq!(paper.made, 0, "a search draws nothing");
    let row = paper.rows(hits[0]..hits[0] + 1, &theme, &mut code).next().unwrap();
    assert!(row.to_string().contains(" 599"), "{row}");
    let len = paper.len();
    assert_eq!(paper.rows(0..len, &theme, &mut code).count(), len);
}

#[test]
fn a_piece_of_a_search_looks_through_no_more_than_it_should_and_finds_what_the_whole_does() {
    let theme = Theme::default();
    let mut code = Highlighter::off();
    let text: String = (0..100_000).map(|n| format!("{n} \x1b[32mneedle\x1b[0m 中文\n")).collect();
    let (old, new) = long_change(4_000);
    let mut paper = Paper::new(60, &theme);
    paper.add(vec![Line::from("a needle above")]);
    paper.add_sheet(Sheet::printed(text));
    paper.add_change("a.rs".to_owned(), Some(&old), &new, &theme);
    paper.add_long_markdown(&"A paragraph with a **needle** in it.\n\n".repeat(500));
    let (mut before, mut pieces) = (0, 0);
    loop {
        let found = paper.search("needle", 64 * 1024, &theme, &mut code);
        assert!(found.hits.is_sorted() && found.hits.iter().all(|hit| *hit < found.seen));
        let is_done = found.is_done;
        let work = paper.quest.work - before;
        assert!(work <= 64 * 1024 + READ, "{work} bytes in one piece");
        before = paper.quest.work;
        pieces += 1;
        if is_done {
            break;
        }
    }
    assert!(pieces > 20, "{pieces} pieces");
    let hits = paper.hits("needle", &theme, &mut code);
    assert_eq!(hits.len(), 1 + 100_000 + 500);
    assert_eq!(paper.quest.work, before, "it is not looked through again");
    for hit in [hits[0], hits[50_000], hits[100_001], hits[100_500]] {
        let row = paper.rows(hit..hit + 1, &theme, &mut code).next().unwrap().to_string();
        assert!(row.contains("needle"), "{hit}: {row}");
    }
}
