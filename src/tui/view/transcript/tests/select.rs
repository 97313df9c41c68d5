//! What the mouse and the keys select, and what is copied of it.

use super::*;

/// Drags from the first cell of `from` to the last one of `to`, as they stand on the screen.
fn drag(screen: &mut Screen, t: &Transcript, from: &str, to: &str) -> Option<String> {
    let (x, y, _) = find(screen, t, from);
    let (to_x, to_y, cells) = find(screen, t, to);
    screen.view.press(x, y);
    screen.view.drag(to_x + cells - 1, to_y);
    if screen.view.release(to_x + cells - 1, to_y) != Released::Selected {
        return None;
    }
    screen.view.selected_text(t, &screen.theme)
}

fn find(screen: &mut Screen, t: &Transcript, needle: &str) -> (u16, u16, u16) {
    let buf = screen.buffer(t);
    for y in 0..screen.area.height {
        let mut row = String::new();
        let mut columns = Vec::new();
        let mut x = 0;
        while x < screen.area.width {
            columns.push((row.len(), x));
            row.push_str(buf[(x, y)].symbol());
            x += buf[(x, y)].cell_width().max(1);
        }
        if let Some(at) = row.find(needle) {
            let x = columns.iter().find(|(byte, _)| *byte == at).unwrap().1;
            let cells = u16::try_from(super::super::super::width::cell_width(needle)).unwrap();
            return (x, y, cells);
        }
    }
    panic!("{needle:?} is not on the screen");
}

fn answer(text: &str) -> Transcript {
    let mut t = Transcript::new();
    t.begin_turn("go", vec![], 0);
    say(&mut t, Role::Assistant, text, 0);
    t
}

#[test]
fn prose_is_copied_as_its_markdown_without_the_line_ends_of_wrapping() {
    let source = "The **quick** brown fox jumps over the `lazy dog` and runs away from it all.\n\n- one [link](https://a.example/x)\n- two 中文 items\n";
    let t = answer(source);
    let mut screen = Screen::new(40, 20);
    let all = drag(&mut screen, &t, "The quick", "items").unwrap();
    assert_eq!(all, source.trim_end());
    let some = drag(&mut screen, &t, "brown", "away").unwrap();
    assert_eq!(some, "brown fox jumps over the `lazy dog` and runs away");
    assert_eq!(drag(&mut screen, &t, "quick", "quick").unwrap(), "quick");
    assert_eq!(drag(&mut screen, &t, "中文", "中文").unwrap(), "中文");
    // The bullet belongs to the item when the drag begins on it.
    assert_eq!(drag(&mut screen, &t, "• two", "items").unwrap(), "- two 中文 items");
}

#[test]
fn code_is_copied_as_it_was_written_however_it_wraps() {
    let code = "    let name = \"a long string that does not fit this narrow screen at all\";\n\n    call(name);\n";
    let t = answer(&format!("Do this:\n\n```rust\n{code}```\n\nThen that.\n"));
    let mut screen = Screen::new(36, 24);
    let copied = drag(&mut screen, &t, "let name", "call(name);").unwrap();
    assert_eq!(copied, code.trim());
    let (x, y, _) = find(&mut screen, &t, "let name");
    screen.view.press(x - 4, y);
    screen.view.drag(x + 7, y);
    let copied = screen.view.selected_text(&t, &screen.theme);
    assert_eq!(copied.as_deref(), Some("    let name"), "its indentation comes with it");
    // Across the fence's edge the fence comes with it.
    let copied = drag(&mut screen, &t, "Do this", "Then that.").unwrap();
    assert_eq!(copied, format!("Do this:\n\n```rust\n{code}```\n\nThen that."));
}

#[test]
fn a_drag_upward_selects_the_same_as_one_downward() {
    let t = answer("alpha beta gamma\n\ndelta\n");
    let mut screen = Screen::new(40, 12);
    let (x, y, _) = find(&mut screen, &t, "beta");
    let (to_x, to_y, cells) = find(&mut screen, &t, "delta");
    screen.view.press(to_x + cells - 1, to_y);
    screen.view.drag(x, y);
    assert_eq!(screen.view.release(x, y), Released::Selected);
    let text = screen.view.selected_text(&t, &screen.theme);
    assert_eq!(text.as_deref(), Some("beta gamma\n\ndelta"));
}

#[test]
fn output_is_copied_without_bars_and_long_lines_are_whole_again() {
    let mut t = Transcript::new();
    let long = "word ".repeat(20);
    let output = format!("first\n{}\nlast 한국어 line\n", long.trim_end());
    let id = call(
        &mut t,
        &Call { title: "make", output: &output, status: ToolStatus::Completed, ..Call::default() },
        0,
    );
    let mut screen = Screen::new(40, 20);
    screen.view.toggle(id);
    let copied = drag(&mut screen, &t, "first", "한국어").unwrap();
    assert_eq!(copied, format!("first\n{}\nlast 한국어", long.trim_end()));
}

#[test]
fn a_diff_is_copied_without_numbers_and_one_side_at_a_time() {
    let mut t = Transcript::new();
    edit(&mut t, "e", Some("fn main() {\n    run();\n}\n"), "fn main() {\n    start(1);\n}\n", 0);
    let mut screen = Screen::new(60, 20);
    let copied = drag(&mut screen, &t, "fn main", "start(1);").unwrap();
    assert_eq!(copied, "fn main() {\n    run();\n    start(1);");
    let mut screen = Screen::new(140, 20);
    let copied = drag(&mut screen, &t, "start(1);", "start(1);").unwrap();
    assert_eq!(copied, "start(1);");
}

#[test]
fn a_selection_over_several_blocks_is_their_sources() {
    let t = conversation();
    let mut screen = Screen::new(80, 120);
    let copied = drag(&mut screen, &t, "why", "look at main").unwrap();
    assert_eq!(
        copied,
        "why\n[image png 12 KB]\n\nthought · 3.0s · 3 lines\n\nI will look at **main"
    );
}

#[test]
fn the_selection_stays_on_its_text_while_the_screen_scrolls() {
    let mut t = answer(&"filler line\n\n".repeat(30));
    say(&mut t, Role::Assistant, "the needle is here\n\nx\n\ny\n\nz\n", 0);
    let mut screen = Screen::new(40, 12);
    let text = drag(&mut screen, &t, "needle", "here");
    screen.view.scroll_by(-3);
    let buf = screen.buffer(&t);
    assert_eq!(screen.view.selected_text(&t, &screen.theme), text);
    let marked = buf.content.iter().filter(|cell| {
        let style = screen.theme.selected;
        style.bg.is_some_and(|bg| cell.bg == bg)
            || cell.modifier.contains(style.add_modifier) && !style.add_modifier.is_empty()
    });
    assert_eq!(marked.count(), "needle is here".len());
    screen.area.width = 50;
    screen.draw(&t);
    assert!(!screen.view.has_selection());
}

#[test]
fn a_press_without_a_move_is_a_click() {
    let t = conversation();
    let mut screen = Screen::new(80, 100);
    let (x, y, _) = find(&mut screen, &t, "Read src/main.rs");
    screen.view.press(x, y);
    let Released::Click(Some(hit)) = screen.view.release(x, y) else { panic!() };
    assert!(hit.header);
    assert!(!screen.view.has_selection());
}

#[test]
fn blocks_are_selected_one_by_one_and_kept_in_sight() {
    let t = conversation();
    let mut screen = Screen::new(60, 10);
    screen.draw(&t);
    let mut seen = Vec::new();
    for _ in 0..30 {
        screen.view.select_near(false);
        let text = screen.draw(&t);
        let id = screen.view.selected().unwrap();
        let name = format!("{:?}", t.block(id).unwrap().kind);
        seen.push((id, name.clone()));
        assert!(screen.view.hits.iter().flatten().any(|hit| hit.block == id), "{name}: {text}");
    }
    let mut order: Vec<BlockId> = seen.iter().map(|(id, _)| *id).collect();
    order.dedup();
    assert!(order.windows(2).all(|pair| pair[1] < pair[0]), "{seen:?}");
    assert_eq!(order.last(), t.roots().first());
    screen.view.select_near(true);
    screen.draw(&t);
    assert_eq!(screen.view.selected(), t.roots().get(1).copied());
    screen.view.toggle_selected();
    screen.draw(&t);
    assert!(screen.view.is_expanded(t.roots()[1]));
}
