//! Turns that the property of [`super::channels`] once failed for, each with the input it was found with.

use super::channels::{Chaos, Said, is_shown_once_whole_and_in_order};

/// A list of small numbers, one letter each.
fn list(letters: &str) -> impl Iterator<Item = u8> {
    letters.bytes().map(|it| it - b'a')
}

fn thought(message: usize, text: &str) -> Said {
    Said::Text { thought: true, message, text: text.to_owned() }
}

fn call(name: &str, output: &str) -> Said {
    Said::Call { name: name.to_owned(), output: output.to_owned() }
}

#[test]
fn pages_that_come_after_a_new_log_began_are_not_taken_for_its_own() {
    let turn = [thought(1, " "), thought(2, "é")];
    let chaos = Chaos {
        cuts: list("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb").map(usize::from).collect(),
        acts: list("aaaaaaaauuaaauaaaaaaaaaaaaaaaaaaaaaaauaaaaaauaauaaaqaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        faults: list("aaaaaaaaaacddcaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        own_ids: false,
        name_parts: false,
        picture_after: 0,
        window: 1,
        frames_end_at: None,
        pages_fail: false,
        lean: 0,
    };
    is_shown_once_whole_and_in_order(&turn, &chaos).unwrap();
}

#[test]
fn a_picture_that_waits_for_pages_is_dropped_when_a_new_log_begins() {
    let turn = [thought(1, " ✓éaa"), call("call_1", "a"), thought(3, " "), thought(4, "a")];
    let chaos = Chaos {
        cuts: list("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb").map(usize::from).collect(),
        acts: list("aaaaaauuaaaaaaaaaaaaaaaaaaaaaaaaaaaauauaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaauaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        faults: list("aaaaaaaacbaaabaaaaaaaaaaaaaaaaaaaaaacabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        own_ids: false,
        name_parts: false,
        picture_after: 0,
        window: 1,
        frames_end_at: None,
        pages_fail: false,
        lean: 0,
    };
    is_shown_once_whole_and_in_order(&turn, &chaos).unwrap();
}

#[test]
fn what_was_shown_from_the_old_log_is_not_shown_again_from_the_new_one() {
    let turn = [
        thought(1, "é"),
        thought(2, "a "),
        call("call_2", "é aéaéé éééaa éa"),
        thought(4, "   aé"),
        thought(5, "aa✓"),
        thought(6, "aaaééé ✓é "),
        thought(7, "✓✓é  é a✓aaaéééé é aa a✓"),
    ];
    let chaos = Chaos {
        cuts: list("bbbbbbbbbbbbbbbbbbbbbbbcdbbgib").map(usize::from).collect(),
        acts: list("aaaaaauueqciaucaqaaaaahaaaauaauaauaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        faults: list("aaaaaaaabacddcddaddddaaabaacaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        own_ids: false,
        name_parts: false,
        picture_after: 0,
        window: 2,
        frames_end_at: None,
        pages_fail: false,
        lean: 0,
    };
    is_shown_once_whole_and_in_order(&turn, &chaos).unwrap();
}

#[test]
fn two_resyncs_that_name_different_logs_show_no_text_twice() {
    let turn = [
        call("call_0", " "),
        thought(2, " "),
        thought(3, " ✓a "),
        thought(4, " a✓ ✓a✓ aa ✓é  é✓a"),
        thought(5, "a"),
        thought(6, "✓"),
        thought(7, "é"),
    ];
    let chaos = Chaos {
        cuts: list("bbbbgeidbbbdeigbbbbbbbbbbbbbbb").map(usize::from).collect(),
        acts: list("aaaaauulaappebaaaaaaaabuaauaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        faults: list("aaaaaaabbbbbbcbabaaaaaacaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        own_ids: false,
        name_parts: false,
        picture_after: 0,
        window: 1,
        frames_end_at: None,
        pages_fail: false,
        lean: 0,
    };
    is_shown_once_whole_and_in_order(&turn, &chaos).unwrap();
}

#[test]
fn a_row_that_grew_while_the_log_changed_is_not_told_from_its_beginning_again() {
    let turn = [thought(1, "a"), thought(2, "✓✓  aa "), thought(3, "✓"), thought(4, " éa  ")];
    let chaos = Chaos {
        cuts: list("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb").map(usize::from).collect(),
        acts: list("aaaauauaaaaaaaaaaaaauaaauaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        faults: list("aaaaaaabbbbbcbbaaaaacaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        own_ids: false,
        name_parts: false,
        picture_after: 0,
        window: 1,
        frames_end_at: None,
        pages_fail: false,
        lean: 0,
    };
    is_shown_once_whole_and_in_order(&turn, &chaos).unwrap();
}
