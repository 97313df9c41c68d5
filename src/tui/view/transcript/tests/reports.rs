//! What users of other terminals reported, tried here; see `tests/complaints.rs`.

use super::*;
use crate::tui::terminal::screen::Screen as Cells;

/// The numbers that rows of a screen begin with.
fn numbers(text: &str) -> Vec<u32> {
    let rows = text.lines().map(|row| row.trim_start_matches(['●', ' ']));
    rows.filter_map(|row| row.split_whitespace().next()?.parse().ok()).collect()
}

#[test]
fn a_pane_that_is_split_and_zoomed_keeps_every_number_once_and_the_last_message() {
    let mut t = Transcript::new();
    t.begin_turn("count to 200", vec![], 0);
    let mut screen = Screen::new(80, 24);
    let mut cells = Cells::new(80, 24);
    let mut terminal = vt100::Parser::new(24, 80, 0);
    let mut frame = |screen: &mut Screen, terminal: &mut vt100::Parser, t: &Transcript| {
        let Rect { width, height, .. } = screen.area;
        if terminal.screen().size() != (height, width) {
            terminal.screen_mut().set_size(height, width);
            cells.reset(width, height);
        }
        let mut out = Vec::new();
        screen.view.render(t, screen.area, cells.buffer(), &screen.theme, 0);
        cells.flush(&mut out, None, false).unwrap();
        terminal.process(&out);
        terminal.screen().contents()
    };
    for n in 1..=200 {
        say(&mut t, Role::Assistant, &format!("{n} is a number\n\n"), 0);
        if n % 10 == 0 {
            let (width, height) = if n % 20 == 0 { (80, 24) } else { (41, 11) };
            screen.area = Rect::new(0, 0, width, height);
        }
        let shown = numbers(&frame(&mut screen, &mut terminal, &t));
        assert_eq!(shown.last(), Some(&n));
        assert!(shown.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{shown:?}");
    }
    t.settle(0);
    // All of them are there to scroll through, each once.
    screen.view.to_top();
    let mut all: Vec<u32> = Vec::new();
    while all.last() != Some(&200) {
        let shown = numbers(&frame(&mut screen, &mut terminal, &t));
        assert!(shown.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{shown:?}");
        let known = all.last().copied().unwrap_or_default();
        let before = all.len();
        all.extend(shown.into_iter().filter(|n| *n > known));
        assert!(all.len() > before, "stuck at {known}");
        screen.view.scroll_by(6);
    }
    assert!(all.into_iter().eq(1..=200));
}

#[test]
fn five_hundred_cards_of_two_thousand_lines_unfold_at_once() {
    let output: String = (0..2_000).map(|n| format!("line {n}\n")).collect();
    let mut t = Transcript::new();
    for n in 0..500 {
        let id = format!("c{n}");
        call(&mut t, &Call { id: &id, title: "make", output: &output, ..Call::default() }, 0);
    }
    let mut screen = Screen::new(80, 24);
    screen.draw(&t);
    let start = Instant::now();
    for all in [true, false, true] {
        screen.view.expand_all(all);
        let text = screen.draw(&t);
        assert!(text.contains("line 1999"), "{text}");
        assert!(screen.view.kept <= 4 * 600, "{} rows were made", screen.view.kept);
    }
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn an_address_of_two_hundred_characters_is_whole_on_a_phone() {
    let address = format!("https://a.example/{}", "path/".repeat(37));
    let mut t = Transcript::new();
    say(&mut t, Role::Assistant, &format!("See {address} for more"), 0);
    let mut screen = Screen::new(40, 24);
    let joined: String =
        screen.draw(&t).lines().map(|row| row.trim().trim_start_matches("● ")).collect();
    assert!(joined.contains(&address), "{joined}");
    screen.theme = Theme::new(ThemeSpec { links: true, ..ThemeSpec::default() });
    let buf = screen.buffer(&t);
    let links = screen.theme.links.as_ref().unwrap();
    let linked: String = buf
        .content
        .iter()
        .filter(|cell| links.address(cell.underline_color).is_some_and(|(_, to)| *to == *address))
        .map(ratatui::buffer::Cell::symbol)
        .collect();
    assert_eq!(linked, address, "every cell of it leads there");
}

#[test]
fn a_command_that_its_card_is_titled_by_is_not_said_again() {
    let mut t = Transcript::new();
    t.tool("t", None, 0, |card, spills| {
        card.placeholder = false;
        "cargo test".clone_into(&mut card.title);
        card.kind = ToolKind::Execute;
        card.command = Some("cargo test".to_owned());
        let mut body = Body::with_cap(OUTPUT_CAP);
        body.append("```sh\ncargo test\n```", spills);
        card.parts = vec![ToolPart::Text(body)];
    });
    let mut screen = Screen::new(60, 8);
    for all in [false, true] {
        screen.view.expand_all(all);
        let text = screen.draw(&t);
        assert_eq!(text.matches("cargo test").count(), 1, "{text}");
        assert!(!text.contains("above"), "{text}");
    }
    // Where the header has no room for it, it is below in full.
    screen.area = Rect::new(0, 0, 30, 8);
    assert_eq!(screen.draw(&t).matches("cargo test").count(), 2);
}

#[test]
fn a_fence_around_output_is_neither_shown_nor_counted() {
    let mut t = Transcript::new();
    call(&mut t, &Call { title: "ls", output: "```\none\n```", ..Call::default() }, 0);
    let text = Screen::new(60, 8).draw(&t);
    assert!(text.contains("│ one") && !text.contains("above") && !text.contains("```"), "{text}");
}

#[test]
fn a_change_that_did_not_come_about_is_not_shown_as_if_it_had() {
    for (status, told) in [
        (ToolStatus::Failed, true),
        (ToolStatus::Cancelled, true),
        (ToolStatus::Completed, false),
        (ToolStatus::Running, false),
    ] {
        let mut t = Transcript::new();
        let id = edit(&mut t, "e", Some("a\n"), "b\n", 0);
        t.tool("e", None, 0, |card, _| card.status = status);
        let mut screen = Screen::new(60, 10);
        let text = screen.draw(&t);
        assert_eq!(text.contains("+1 -1 not applied"), told, "{text}");
        let theme = Theme::default();
        let (paper, code) = screen.view.block_paper(&t, id, 60, &theme);
        let page: Vec<String> = paper.rows(0..9, &theme, code).map(ToString::to_string).collect();
        assert_eq!(page.join("\n").contains("Change, not applied"), told, "{page:?}");
    }
}

#[test]
fn a_long_line_that_is_cut_in_a_card_says_so() {
    let mut t = Transcript::new();
    let output = format!("begin {}end", "word ".repeat(200));
    let status = ToolStatus::Completed;
    call(&mut t, &Call { title: "t", status, output: &output, ..Call::default() }, 0);
    let mut screen = Screen::new(60, 12);
    let text = screen.draw(&t);
    assert!(text.contains("… the line begins above") && text.contains("end"), "{text}");
    screen.view.expand_all(true);
    screen.area = Rect::new(0, 0, 60, 30);
    let text = screen.draw(&t);
    assert!(!text.contains("above") && text.contains("begin"), "{text}");
}

#[test]
fn paths_are_shown_from_the_sessions_directory_on_and_commands_as_they_run() {
    let mut t = Transcript::held_in(std::path::Path::new("/home/u/模型"));
    for (id, kind, title) in [
        ("r", ToolKind::Read, "Read /home/u/模型/src/main.rs"),
        ("o", ToolKind::Search, "Grep x in /home/u/模型-other/y"),
        ("x", ToolKind::Execute, "cat /home/u/模型/src/main.rs"),
    ] {
        let status = ToolStatus::Completed;
        call(&mut t, &Call { id, title, kind, status, ..Call::default() }, 0);
    }
    t.tool("r", None, 0, |card, _| {
        let path = "/home/u/模型/src/main.rs".to_owned();
        card.locations =
            vec![crate::tui::model::transcript::tool::Location { path, line: Some(3) }];
    });
    let mut screen = Screen::new(60, 12);
    screen.view.expand_all(true);
    let text = screen.draw(&t);
    for shown in [
        "◇ Read src/main.rs",
        "│ src/main.rs:3",
        "Grep x in /home/u/模型-other/y",
        "$ cat /home/u/模型/src/main.rs",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
}

#[test]
fn a_path_is_shortened_only_where_one_begins() {
    let t = Transcript::held_in(std::path::Path::new("/w/p/"));
    for (text, shown) in [
        ("Read /w/p/a.rs", "Read a.rs"),
        ("Move /w/p/a to /w/p/b", "Move a to b"),
        ("List /w/p", "List /w/p"),
        ("List /w/p/", "List /w/p/"),
        ("Read /x/w/p/a.rs", "Read /x/w/p/a.rs"),
        ("(/w/p/a)", "(a)"),
    ] {
        assert_eq!(t.shortened(text), shown);
    }
    let root = Transcript::held_in(std::path::Path::new("/"));
    assert_eq!(root.shortened("Read /etc/x"), "Read /etc/x");
}

#[test]
fn a_picture_in_a_prompt_is_shown_by_its_name() {
    let mut t = Transcript::new();
    let id = t.begin_turn("what is /t/a/屏幕.png here", vec![], 0);
    t.label_pictures(id, vec![("/t/a/屏幕.png".into(), "[image 屏幕.png]".into())]);
    let text = Screen::new(60, 4).draw(&t);
    assert!(text.contains("❯ what is [image 屏幕.png] here"), "{text}");
}
