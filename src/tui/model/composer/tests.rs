use super::*;
use proptest::prelude::*;

fn with(text: &str) -> Composer {
    let mut c = Composer::default();
    c.set_text(text);
    c
}

#[test]
fn word_motion_stops_where_the_script_changes() {
    let mut c = with("Hello你好World");
    c.word_left();
    assert_eq!(c.caret(), "Hello你好".len());
    c.word_left();
    assert_eq!(c.caret(), "Hello".len());
    c.word_left();
    assert_eq!(c.caret(), 0);
    c.word_right();
    assert_eq!(c.caret(), "Hello".len());
}

#[test]
fn down_reaches_the_end_of_a_cjk_draft() {
    let mut c = with("你好世界\n第二行文字\n第三行");
    c.draft_start();
    assert!(c.down(40) && c.down(40) && !c.down(40));
    c.line_end();
    assert_eq!(c.caret(), c.text().len());
}

#[test]
fn the_goal_column_survives_a_short_row() {
    let mut c = with("abcdef\nx\nabcdef");
    c.set_caret(5);
    assert!(c.down(40) && c.down(40));
    assert_eq!(c.caret_in(&c.rows(40)), Caret { row: 2, column: 5 });
}

#[test]
fn graphemes_are_deleted_whole() {
    let mut c = with("a👩‍👩‍👧‍👦");
    c.delete_back();
    assert_eq!(c.text(), "a");
    let mut c = with("e\u{301}");
    c.delete_back();
    assert!(c.is_empty());
}

#[test]
fn a_large_paste_is_a_chip_that_is_sent_in_full_and_deleted_as_one() {
    let big = "line\n".repeat(50);
    let mut c = with("see ");
    c.paste(&big);
    assert_eq!(c.text(), "see [pasted #1: 50 lines]");
    assert_eq!(c.expanded(), format!("see {big}"));
    c.left();
    assert_eq!(c.caret(), 4);
    c.right();
    c.delete_back();
    assert_eq!(c.text(), "see ");
    assert!(c.undo());
    assert!(c.expand_chip());
    assert_eq!(c.text(), format!("see {big}"));
}

#[test]
fn typing_is_undone_word_by_word_and_redone() {
    let mut c = Composer::default();
    for ch in "one two".chars() {
        c.insert(&ch.to_string());
    }
    c.undo();
    assert_eq!(c.text(), "one ");
    c.undo();
    c.undo();
    assert_eq!(c.text(), "");
    while c.redo() {}
    assert_eq!(c.text(), "one two");
}

#[test]
fn what_was_cut_can_be_put_back() {
    let mut c = with("one two\nthree");
    c.cut_to_start();
    assert_eq!(c.text(), "one two\n");
    c.yank();
    c.yank();
    assert_eq!(c.text(), "one two\nthreethree");
}

#[test]
fn rows_break_after_spaces_and_keep_every_byte() {
    let c = with("hello brave new world");
    let texts: Vec<_> = c.rows(11).iter().map(|r| c.text().get(r.bytes.clone()).unwrap()).collect();
    assert_eq!(texts, ["hello ", "brave new ", "world"]);
}

proptest! {
    #[test]
    fn the_caret_is_always_on_a_boundary(
        text in "[a-z \n\u{301}\u{4e00}-\u{4e05}\u{1f469}\u{200d}]{0,30}",
        ops in proptest::collection::vec(0u8..14, 0..40),
        width in 2usize..20,
    ) {
        let mut c = with(&text);
        for op in ops {
            match op {
                0 => c.left(), 1 => c.right(), 2 => c.word_left(), 3 => c.word_right(),
                4 => { c.up(width); } 5 => { c.down(width); } 6 => c.delete_back(),
                7 => c.delete_forward(), 8 => c.delete_word_back(), 9 => c.insert("\u{301}"),
                10 => c.cut_to_end(), 11 => c.yank(), 12 => { c.undo(); } _ => { c.redo(); }
            }
            let ok = c.caret() == c.text().len()
                || c.text().grapheme_indices(true).any(|(i, _)| i == c.caret());
            prop_assert!(ok, "{:?} at {}", c.text(), c.caret());
            let rows = c.rows(width);
            let joined: String = rows.iter().map(|r| c.text().get(r.bytes.clone()).unwrap()).collect();
            prop_assert_eq!(joined, c.text().replace('\n', ""));
        }
    }
}
