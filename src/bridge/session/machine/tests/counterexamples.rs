//! Turns that the property of [`super::channels`] once failed for, each with the input it was found with.

use super::channels::{Chaos, Said, Told, is_shown_once_whole_and_in_order};

/// A list of small numbers, one letter each.
fn list(letters: &str) -> impl Iterator<Item = u8> {
    letters.bytes().map(|it| it - b'a')
}

fn thought(message: usize, text: &str) -> Said {
    Said::Text { thought: true, message, text: text.to_owned() }
}

fn text(message: usize, text: &str) -> Said {
    Said::Text { thought: false, message, text: text.to_owned() }
}

fn call(name: &str, output: &str) -> Said {
    Said::Call { name: name.to_owned(), output: output.to_owned() }
}

/// The user's turn, told alone.
fn holds(said: Vec<Said>, chaos: &Chaos) {
    is_shown_once_whole_and_in_order(&[Told { foreign: false, said }], chaos).unwrap();
}

#[test]
fn pages_that_come_after_a_new_log_began_are_not_taken_for_its_own() {
    let turn = vec![thought(1, " "), thought(2, "é")];
    let chaos = Chaos {
        cuts: list("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb").map(usize::from).collect(),
        acts: list("aaaaaaaauuaaauaaaaaaaaaaaaaaaaaaaaaaauaaaaaauaauaaaqaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        faults: list("aaaaaaaaaacddcaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        own_ids: false,
        name_parts: false,
        picture_after: 0,
        window: 1,
        frames_end_at: None,
        ..Chaos::default()
    };
    holds(turn, &chaos);
}

#[test]
fn a_picture_that_waits_for_pages_is_dropped_when_a_new_log_begins() {
    let turn = vec![thought(1, " ✓éaa"), call("call_1", "a"), thought(3, " "), thought(4, "a")];
    let chaos = Chaos {
        cuts: list("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb").map(usize::from).collect(),
        acts: list("aaaaaauuaaaaaaaaaaaaaaaaaaaaaaaaaaaauauaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaauaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        faults: list("aaaaaaaacbaaabaaaaaaaaaaaaaaaaaaaaaacabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        own_ids: false,
        name_parts: false,
        picture_after: 0,
        window: 1,
        frames_end_at: None,
        ..Chaos::default()
    };
    holds(turn, &chaos);
}

#[test]
fn what_was_shown_from_the_old_log_is_not_shown_again_from_the_new_one() {
    let turn = vec![
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
        ..Chaos::default()
    };
    holds(turn, &chaos);
}

#[test]
fn two_resyncs_that_name_different_logs_show_no_text_twice() {
    let turn = vec![
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
        ..Chaos::default()
    };
    holds(turn, &chaos);
}

#[test]
fn a_row_that_grew_while_the_log_changed_is_not_told_from_its_beginning_again() {
    let turn = vec![thought(1, "a"), thought(2, "✓✓  aa "), thought(3, "✓"), thought(4, " éa  ")];
    let chaos = Chaos {
        cuts: list("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb").map(usize::from).collect(),
        acts: list("aaaauauaaaaaaaaaaaaauaaauaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        faults: list("aaaaaaabbbbbcbbaaaaacaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        own_ids: false,
        name_parts: false,
        picture_after: 0,
        window: 1,
        frames_end_at: None,
        ..Chaos::default()
    };
    holds(turn, &chaos);
}

/// Turns one after the other.
fn hold(turns: Vec<(bool, Vec<Said>)>, chaos: &Chaos) {
    let turns: Vec<Told> =
        turns.into_iter().map(|(foreign, said)| Told { foreign, said }).collect();
    is_shown_once_whole_and_in_order(&turns, chaos).unwrap();
}

#[test]
fn rows_of_a_turn_that_has_not_begun_are_not_shown_as_cards_of_the_one_before_it() {
    let turns = vec![
        (
            false,
            vec![
                thought(1, " ééaa✓é ✓ ✓aééa✓"),
                thought(2, "✓✓ééé ✓ aé✓ ééa"),
                call("call_2", "a"),
                call("call_3", "é"),
                thought(5, "✓aaé "),
                call("call_5", "✓"),
                call("call_6", "é"),
                thought(8, "✓ a éé✓aaéééaaa"),
            ],
        ),
        (false, vec![thought(1, " a✓✓✓  ✓aé é✓ a✓"), thought(2, "éaé✓é✓✓aé")]),
        (false, vec![thought(1, "✓ a"), call("call_1", "a"), call("call_2", "✓")]),
        (true, vec![call("call_0", "a")]),
    ];
    let chaos = Chaos {
        cuts: list("bbbbbbbbbcbfdcfebihdefdddhiifc").map(usize::from).collect(),
        acts: list("kkkkakakkaaaaaakkakakkaakaakakkaaakakkaaaaaaaakkakkauaakkuakkkkkkakaaaaakaaaaakakkkkebblwhkmfmprgepietrkmocasjirwexvaalpessarhihltsrxrccusoqkbdufuexbq").collect(),
        faults: list("hcajlwtalaallabavpxeiiorefoorcaponikoeqfdtmxumuwbivqrrvpbnjtragixmbbjubnfcfexqpsddnohjcmrqxtxrpxkjbllsnxsqqmmdnakqcvgpuneclwvsvfskvnvqdnsmhvqfolmirnmn").collect(),
        own_ids: true,
        name_parts: true,
        pages_fail: true,
        window: 1,
        ..Chaos::default()
    };
    hold(turns, &chaos);
}

#[test]
fn rows_of_an_engines_own_turn_that_come_before_its_start_are_left_to_the_events() {
    let chaos = Chaos { acts: vec![0, 0, 10], faults: vec![9], ..Chaos::default() };
    let turns =
        vec![(false, vec![thought(1, " ")]), (true, vec![thought(1, "ab"), thought(2, "b")])];
    hold(turns, &chaos);
}

#[test]
fn rows_that_name_turns_in_their_own_way_are_not_shown_as_cards_of_the_turn_before_them() {
    let turns = vec![
        (false, vec![call("call_0", "✓"), thought(2, "✓")]),
        (false, vec![thought(1, "a ééa a✓aa ✓✓a✓")]),
        (true, vec![call("call_0", "a")]),
    ];
    let chaos = Chaos {
        cuts: list("bbbbbbbbbbbbbbbbbbbbbbbbbbbbdg").map(usize::from).collect(),
        acts: list("eaeeeeeeaaeeaaaeeeeeeeeeeeeaeeaeaaeeeeaeaeeaeaeaeaeaaeeeeaaaaaaaaaaaaaaaaaaaaaaaaaaaadaaaaaaaaaaaaaaddeeeeaeeeeeueueaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaau").collect(),
        faults: list("aaaaaaaaaaaaaajolkexnwtrunjljelfakhfvvrwhtaghkldfirhtmkjtgavlqrchmsowrpgbhicksrmmidcsoanggpkdfvucmjcawdxwortlxkvenndafplchlkelhdvsqxqchcveparoarukovqu").collect(),
        own_turns: true,
        picture_after: 53,
        outage: Some((35, 31)),
        lean: 1,
        ..Chaos::default()
    };
    hold(turns, &chaos);
}

#[test]
fn a_card_of_the_next_turn_is_not_closed_with_the_last_one_whose_events_are_all_late() {
    let turns =
        vec![(false, vec![thought(1, "é ✓ éa✓a aaéaa ")]), (true, vec![call("call_0", "✓")])];
    let chaos = Chaos {
        cuts: list("bbbbbbbbbbbbbbbbbbbbbbbbbcbedc").map(usize::from).collect(),
        acts: list("eaeaeaeaeaeaaaeeaeeaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaeaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaauaaauaaa").collect(),
        faults: vec![0],
        lean: 1,
        ..Chaos::default()
    };
    hold(turns, &chaos);
}

#[test]
fn a_text_of_a_turn_that_has_ended_is_never_paired_by_order() {
    let turns = vec![
        (false, vec![text(1, " "), thought(2, "✓✓a é✓é✓a ✓ a éa")]),
        (
            false,
            vec![
                thought(1, " é  a éé ééa✓ é ✓✓✓✓✓"),
                thought(2, "a✓é a✓✓aéaé✓ é✓"),
                thought(3, "✓✓a éa ✓ éaéa✓  é✓✓"),
                thought(4, "✓✓ aé éaaé ✓é a ✓aa✓ "),
                thought(5, "✓é✓a✓"),
                call("call_5", " "),
                thought(7, "✓éa✓ ✓é a  ééa✓✓"),
                thought(8, "a é"),
                thought(9, "✓✓ é é✓é"),
            ],
        ),
        (false, vec![thought(1, "éé é✓✓"), text(2, "é")]),
    ];
    let chaos = Chaos {
        cuts: list("bgdccgbebfgfebfedddbfcfbbchfdf").map(usize::from).collect(),
        acts: list("aakakkaukkkkauauaaakkkkakaakkkkaaakaakauakuaaaaaakkuakkaakaabaeckukaubkkckkkkkuakbkaakkkckuccbuuukkakbkuckbuacbuukbckkkkebkkkckauakaaabuaaaaaaaaaaaaaa").collect(),
        faults: list("aaaaaaaaaaabaaaaaabbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabacbbaaacaaaaaaaaaaaaaa").collect(),
        own_turns: true,
        ..Chaos::default()
    };
    hold(turns, &chaos);
}

#[test]
fn rows_of_a_turn_that_the_events_have_not_come_to_wait_for_them_after_a_new_log_began() {
    let turns = [
        Told {
            foreign: false,
            said: vec![
                thought(1, "aéaaa✓✓✓é✓"),
                call("call_1", "✓"),
                thought(3, "éaé é✓ééaé é a✓aééa a✓é"),
                call("call_3", "a"),
                thought(5, "éaa é a aé ✓aaaé  ✓é✓éé"),
            ],
        },
        Told {
            foreign: false,
            said: vec![
                thought(1, "é   "),
                thought(2, "é a✓ aa✓ ✓a"),
                thought(3, "a éaaaééa✓é✓ éa a"),
                thought(4, "   ✓ é  aa   "),
                thought(5, "é✓a ✓✓✓é✓ééééé "),
                thought(6, "aaaé"),
                thought(7, "✓✓éa✓a ✓aé✓  é ✓a✓aaa"),
            ],
        },
        Told { foreign: true, said: vec![thought(1, "✓")] },
    ];
    let chaos = Chaos {
        cuts: list("biegccceggicbbfgdcfebgdghbbecd").map(usize::from).collect(),
        acts: list("aaaaqaqqaaaaaqaaaaaaaaaaaaaaqiaaaaaaaaaqaaaqaaaaaaaqaaaaaaaaaaaaaaaaaaaaaaaaqabcaaahacbuaqaaaaaaaaaaaqaaaaaaaaaaqaaqqaaaaaaaaaaaaaaaaaaaaaaaqaaaaaqaaa").collect(),
        faults: list("aaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabaaaaaaaaabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").collect(),
        own_turns: true,
        lean: 2,
        ..Chaos::default()
    };
    is_shown_once_whole_and_in_order(&turns, &chaos).unwrap();
}
