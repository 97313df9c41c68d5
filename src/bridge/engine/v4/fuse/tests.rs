use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::bridge::engine::v4::rows::{Fact, RowKind};
use crate::bridge::engine::v4::topic::{Ack, History, Topic};

fn key(kind: TextKind, owner: &str) -> LegacyKey<'_> {
    LegacyKey { kind, owner: Some(owner) }
}

fn row(fuse: &mut Fuse, id: u64, owner: &str, at: usize, text: &str) -> Option<String> {
    let piece = Piece { at, text: text.to_owned() };
    fuse.on_row(&RowId::Number(id), TextKind::Message, Some(owner), &piece).map(|it| it.text)
}

fn legacy(fuse: &mut Fuse, owner: &str, text: &str) -> Option<String> {
    fuse.on_legacy(key(TextKind::Message, owner), text).map(|it| it.text)
}

fn live() -> Fuse {
    let mut fuse = Fuse::default();
    fuse.expect_rows(true);
    fuse
}

#[test]
fn whichever_channel_is_ahead_shows_and_the_other_adds_only_what_goes_beyond() {
    let mut fuse = live();
    assert_eq!(legacy(&mut fuse, "m", "He").as_deref(), Some("He"));
    assert_eq!(row(&mut fuse, 1, "m", 0, "Hello").as_deref(), Some("llo"));
    assert_eq!(row(&mut fuse, 1, "m", 5, " wor").as_deref(), Some(" wor"));
    assert_eq!(legacy(&mut fuse, "m", "llo w"), None);
    assert_eq!(legacy(&mut fuse, "m", "orld!").as_deref(), Some("ld!"));
    assert_eq!(row(&mut fuse, 1, "m", 9, "ld!"), None);
}

#[test]
fn the_engine_without_rows_costs_no_memory_and_changes_nothing() {
    let mut fuse = Fuse::default();
    for _ in 0..1000 {
        assert_eq!(legacy(&mut fuse, "m", "piece").as_deref(), Some("piece"));
    }
    assert!(fuse.streams.iter().all(|it| it.ahead.text.is_empty()));
}

#[test]
fn rows_that_come_back_after_a_pause_are_skipped_by_length() {
    let mut fuse = live();
    row(&mut fuse, 1, "m", 0, "one ");
    fuse.expect_rows(false);
    assert_eq!(legacy(&mut fuse, "m", "one two ").as_deref(), Some("two "));
    fuse.expect_rows(true);
    assert_eq!(row(&mut fuse, 1, "m", 4, "two three").as_deref(), Some("three"));
}

#[test]
fn a_text_whose_beginning_the_rows_missed_is_shown_by_the_legacy_channel_alone() {
    let mut fuse = live();
    assert_eq!(row(&mut fuse, 1, "m", 10, "tail"), None);
    assert_eq!(legacy(&mut fuse, "m", "beginning tail").as_deref(), Some("beginning tail"));
    assert_eq!(row(&mut fuse, 1, "m", 14, "!"), None);
    assert_eq!(legacy(&mut fuse, "m", "!").as_deref(), Some("!"));
}

#[test]
fn rows_that_say_something_else_are_not_heard_for_that_text_and_events_always_are() {
    let mut fuse = live();
    assert_eq!(legacy(&mut fuse, "m", "abc").as_deref(), Some("abc"));
    assert_eq!(row(&mut fuse, 1, "m", 0, "xyz and more"), None);
    assert_eq!(row(&mut fuse, 1, "m", 12, "still"), None);
    assert_eq!(legacy(&mut fuse, "m", "def").as_deref(), Some("def"));
    let mut fuse = live();
    assert_eq!(row(&mut fuse, 1, "m", 0, "abc").as_deref(), Some("abc"));
    assert_eq!(legacy(&mut fuse, "m", "xyz").as_deref(), Some("xyz"));
    assert_eq!(row(&mut fuse, 1, "m", 3, "def"), None);
    assert_eq!(legacy(&mut fuse, "m", " and more").as_deref(), Some(" and more"));
}

#[test]
fn a_text_that_no_row_begins_like_is_never_taken_for_one() {
    let mut fuse = live();
    assert_eq!(row(&mut fuse, 1, "r1", 0, "abc").as_deref(), Some("abc"));
    assert_eq!(legacy(&mut fuse, "m0", "xyz").as_deref(), Some("xyz"), "whose row did not come");
    assert_eq!(legacy(&mut fuse, "m1", "abcd").as_deref(), Some("d"));
    assert_eq!(row(&mut fuse, 1, "r1", 3, "de").as_deref(), Some("e"));
}

#[test]
fn a_text_that_comes_before_the_last_pair_is_never_paired_by_order() {
    let mut fuse = live();
    assert_eq!(row(&mut fuse, 1, "r1", 0, "same").as_deref(), Some("same"));
    assert_eq!(row(&mut fuse, 2, "r2", 0, "other").as_deref(), Some("other"));
    assert_eq!(legacy(&mut fuse, "m2", "other"), None, "the pair");
    assert_eq!(legacy(&mut fuse, "m3", "same").as_deref(), Some("same"), "said again, later");
}

#[test]
fn a_text_of_an_ended_turn_is_never_paired_by_order() {
    let mut fuse = live();
    fuse.turn_begins();
    assert_eq!(legacy(&mut fuse, "m1", "abc").as_deref(), Some("abc"));
    fuse.turn_begins();
    assert_eq!(row(&mut fuse, 1, "r2", 0, "abc").as_deref(), Some("abc"), "another turn's");
    assert_eq!(legacy(&mut fuse, "m2", "abcd").as_deref(), Some("d"));
}

#[test]
fn a_message_whose_thought_was_paired_is_shown_under_the_same_id() {
    let mut fuse = live();
    assert!(fuse.on_legacy(key(TextKind::Thought, "m1"), "hm").is_some());
    let piece = |text: &str| Piece { at: 0, text: text.to_owned() };
    let thought = fuse.on_row(&RowId::Number(1), TextKind::Thought, Some("r1"), &piece("hm"));
    assert_eq!(thought, None);
    let shown = fuse.on_row(&RowId::Number(2), TextKind::Message, Some("r1"), &piece("well"));
    assert_eq!(shown, Some(Shown { owner: Some("m1".to_owned()), text: "well".to_owned() }));
}

#[test]
fn a_channel_that_names_no_messages_is_not_led_to_one_that_says_something_else() {
    let none = LegacyKey { kind: TextKind::Message, owner: None };
    let mut fuse = live();
    assert!(row(&mut fuse, 1, "m1", 0, "one").is_some());
    assert!(row(&mut fuse, 2, "m2", 0, "xyz").is_some());
    let shown = fuse.on_legacy(none, "one two").unwrap();
    assert_eq!((shown.owner.as_deref(), shown.text.as_str()), (Some("m1"), " two"));
    assert_eq!(row(&mut fuse, 2, "m2", 3, "!").as_deref(), Some("!"), "its row goes on");
}

#[test]
fn once_ids_were_seen_to_be_equal_they_alone_decide() {
    let mut fuse = live();
    assert!(legacy(&mut fuse, "m1", "first").is_some());
    assert_eq!(row(&mut fuse, 1, "m1", 0, "first"), None);
    assert!(legacy(&mut fuse, "m2", "alike").is_some());
    assert_eq!(row(&mut fuse, 2, "m3", 0, "alike too").as_deref(), Some("alike too"));
    assert_eq!(legacy(&mut fuse, "m3", "alike too!").as_deref(), Some("!"));
}

#[test]
fn an_old_text_whose_words_are_not_kept_any_more_is_known_by_its_length() {
    let mut fuse = live();
    for it in 0..40 {
        assert!(row(&mut fuse, it, &format!("m{it}"), 0, "ten bytes.").is_some());
    }
    assert_eq!(legacy(&mut fuse, "m0", "ten bytes. And more.").as_deref(), Some(" And more."));
}

#[test]
fn a_message_that_begins_where_the_other_channel_stands_has_a_name_of_its_own() {
    let none = LegacyKey { kind: TextKind::Message, owner: None };
    let mut fuse = live();
    assert!(fuse.on_legacy(none, "one").is_some());
    assert_eq!(row(&mut fuse, 1, "m1", 0, "one"), None);
    let piece = Piece { at: 0, text: "two".to_owned() };
    let shown = fuse.on_row(&RowId::Number(2), TextKind::Message, Some("m2"), &piece);
    assert_eq!(shown, Some(Shown { owner: Some("m2".to_owned()), text: "two".to_owned() }));
    assert_eq!(fuse.on_legacy(none, "two"), None);
}

#[test]
fn a_row_that_was_written_anew_is_not_heard_any_more() {
    let mut fuse = live();
    assert_eq!(row(&mut fuse, 1, "m", 0, "one two").as_deref(), Some("one two"));
    fuse.mute_row(&RowId::Number(1));
    assert_eq!(row(&mut fuse, 1, "m", 7, " three"), None);
    assert_eq!(legacy(&mut fuse, "m", "one two four").as_deref(), Some(" four"));
}

#[test]
fn rows_that_cut_a_text_where_the_events_do_not_show_it_once() {
    let mut fuse = live();
    assert_eq!(row(&mut fuse, 1, "m", 0, "one ").as_deref(), Some("one "));
    assert_eq!(row(&mut fuse, 2, "m", 0, "two").as_deref(), Some("two"));
    assert_eq!(legacy(&mut fuse, "m", "one two three").as_deref(), Some(" three"));
    assert_eq!(row(&mut fuse, 2, "m", 3, " three ").as_deref(), Some(" "));
}

#[test]
fn a_channel_that_names_no_messages_is_led_by_the_other_one() {
    let none = LegacyKey { kind: TextKind::Message, owner: None };
    let said = |fuse: &mut Fuse, text: &str| fuse.on_legacy(none, text).map(|it| it.text);
    let mut fuse = live();
    // Rows ahead by two messages.
    assert_eq!(row(&mut fuse, 1, "m1", 0, "one ").as_deref(), Some("one "));
    assert_eq!(row(&mut fuse, 2, "m2", 0, "two ").as_deref(), Some("two "));
    assert_eq!(said(&mut fuse, "one two thr").as_deref(), Some("thr"));
    // Events ahead by one.
    assert_eq!(row(&mut fuse, 2, "m2", 4, "three ").as_deref(), Some("ee "));
    assert_eq!(said(&mut fuse, "ee four five").as_deref(), Some("four five"));
    assert_eq!(row(&mut fuse, 3, "m3", 0, "four "), None);
    assert_eq!(row(&mut fuse, 4, "m4", 0, "five six").as_deref(), Some(" six"));
    assert_eq!(said(&mut fuse, " six seven").as_deref(), Some(" seven"));
}

#[test]
fn texts_without_a_name_end_with_their_turn() {
    let none = LegacyKey { kind: TextKind::Message, owner: None };
    let mut fuse = live();
    fuse.turn_begins();
    assert!(fuse.on_legacy(none, "one").is_some());
    let piece = |text: &str| Piece { at: 0, text: text.to_owned() };
    let kind = TextKind::Message;
    assert_eq!(fuse.on_row(&RowId::Number(1), kind, None, &piece("one")), None);
    fuse.turn_begins();
    assert!(fuse.on_legacy(none, "two").is_some());
    assert_eq!(fuse.streams.len(), 2);
}

#[test]
fn two_id_spaces_are_matched_by_order_and_share_the_legacy_id() {
    let mut fuse = live();
    legacy(&mut fuse, "msg_1", "aaa");
    assert_eq!(row(&mut fuse, 1, "resp_1", 0, "aaabb").as_deref(), Some("bb"));
    let next = fuse.on_row(
        &RowId::Number(2),
        TextKind::Message,
        Some("resp_1"),
        &Piece { at: 0, text: "ccc".into() },
    );
    assert_eq!(next, Some(Shown { owner: Some("msg_1".to_owned()), text: "ccc".to_owned() }));
}

#[test]
fn a_tools_input_is_matched_by_the_call_alone() {
    let mut fuse = live();
    let input =
        |fuse: &mut Fuse, call: &str, text: &str| fuse.on_legacy(key(TextKind::Input, call), text);
    assert!(input(&mut fuse, "call_1", "{\"a\":").is_some());
    let piece = Piece { at: 0, text: "{\"a\":1}".to_owned() };
    let shown = fuse.on_row(&RowId::Number(1), TextKind::Input, Some("call_2"), &piece).unwrap();
    assert_eq!(shown.text, "{\"a\":1}", "another call");
    let shown = fuse.on_row(&RowId::Number(2), TextKind::Input, Some("call_1"), &piece).unwrap();
    assert_eq!(shown.text, "1}");
    assert_eq!(input(&mut fuse, "call_1", "1}"), None);
}

#[test]
fn memory_is_bounded_however_many_texts_there_are() {
    let mut fuse = live();
    for it in 0..2_000_u64 {
        row(&mut fuse, it, &format!("m{it}"), 0, &"x".repeat(100));
    }
    assert!(fuse.streams.len() <= MAX_STREAMS && fuse.rows.len() <= MAX_STREAMS);
    let kept: usize = fuse.streams.iter().map(|it| it.ahead.text.len()).sum();
    assert!(kept <= (COMPARED + 1) * 100, "{kept}");
}

/// What the model truly said: parts of messages, in order.
#[derive(Debug, Clone)]
struct Part {
    thought: bool,
    message: usize,
    text: String,
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (any::<bool>(), 0_usize..3, "[a-d é✓]{1,30}");
    proptest::collection::vec(part, 1..8).prop_map(|parts| {
        let mut message = 0;
        let mut last = None;
        let mut out: Vec<Part> = Vec::new();
        for (thought, step, text) in parts {
            message += usize::from(step == 0 || last == Some(thought));
            last = Some(thought);
            out.push(Part { thought, message, text });
        }
        out
    })
}

/// How the two channels are cut, lost and interleaved.
#[derive(Debug, Clone)]
struct Chaos {
    cuts: Vec<usize>,
    turns: Vec<bool>,
    faults: Vec<u8>,
    own_ids: bool,
    rows_die_at: Option<usize>,
    legacy_dies_at: Option<usize>,
}

fn chaos() -> impl Strategy<Value = Chaos> {
    let lists = (
        proptest::collection::vec(1_usize..9, 40),
        proptest::collection::vec(any::<bool>(), 200),
        proptest::collection::vec(0_u8..10, 200),
    );
    let deaths = (any::<bool>(), proptest::option::of(0_usize..40));
    (lists, any::<bool>(), deaths).prop_map(|((cuts, turns, faults), own_ids, (which, at))| Chaos {
        cuts,
        turns,
        faults,
        own_ids,
        rows_die_at: at.filter(|_| which),
        legacy_dies_at: at.filter(|_| !which),
    })
}

fn cut_text(text: &str, cuts: &mut impl Iterator<Item = usize>) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut rest = chars.as_slice();
    let mut out = Vec::new();
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(cuts.next().unwrap_or(3).min(rest.len()));
        out.push(piece.iter().collect());
        rest = tail;
    }
    out
}

/// Both channels into one fuse; what comes out is a list of (thought, text).
struct Rig {
    fuse: Fuse,
    topic: Topic,
    said: Vec<(bool, String)>,
}

impl Rig {
    fn new() -> Self {
        let mut topic = Topic::new("t", History::Skip);
        let mut out = Vec::new();
        let ack =
            Ack { subscription_id: "s".to_owned(), mode: None, log_epoch: Some("e".to_owned()) };
        topic.subscribed(&ack, 0, &mut out);
        topic.on_frame(
            &frame(0, 0, &json!({"kind": "snapshot", "snapshot": {"rows": {"window": []}}})),
            0,
            &mut out,
        );
        Self { fuse: live(), topic, said: Vec::new() }
    }

    fn legacy(&mut self, part: &Part, piece: &str) {
        let kind = if part.thought { TextKind::Thought } else { TextKind::Message };
        let shown = self.fuse.on_legacy(key(kind, &format!("m{}", part.message)), piece);
        self.say(part.thought, shown);
    }

    /// One frame; a resync that it asks for is answered by `picture` at once.
    fn rows(&mut self, params: &str, picture: &str) {
        let mut facts = Vec::new();
        if self.topic.on_frame(params, 0, &mut facts).is_some() {
            self.fuse.expect_rows(false);
            assert_eq!(self.topic.on_frame(picture, 0, &mut facts), None);
            self.fuse.expect_rows(true);
        }
        for fact in facts {
            let Fact::Text(head, piece) = fact else { continue };
            let thought = head.kind == RowKind::Reasoning;
            let kind = if thought { TextKind::Thought } else { TextKind::Message };
            let shown = self.fuse.on_row(&head.row_id, kind, head.message_id.as_deref(), &piece);
            self.say(thought, shown);
        }
    }

    fn say(&mut self, thought: bool, shown: Option<Shown>) {
        let Some(shown) = shown else { return };
        match self.said.last_mut() {
            Some((same, text)) if *same == thought => text.push_str(&shown.text),
            _ => self.said.push((thought, shown.text)),
        }
    }
}

fn frame(from: u64, to: u64, payload: &Value) -> String {
    json!({"topic": "t", "subscriptionId": "s", "frame": {"subscriptionId": "s", "fromSeq": from, "toSeq": to, "payload": payload}})
        .to_string()
}

/// The V4 channel as the engine would send it: one operation per frame, and the picture after each.
fn row_frames(parts: &[Part], chaos: &Chaos) -> Vec<(String, String)> {
    let mut cuts = chaos.cuts.iter().copied().cycle();
    let (mut rows, mut frames): (Vec<Value>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    let mut seq = 0;
    for (index, part) in parts.iter().enumerate() {
        let id =
            if chaos.own_ids { format!("r{}", part.message) } else { format!("m{}", part.message) };
        let kind = if part.thought { "reasoning" } else { "assistantText" };
        let row = |text: &str| json!({"rowId": index + 1, "turnId": "t", "kind": kind, "text": text, "state": "streaming", "assistantResponseId": id});
        rows.push(row(""));
        let mut so_far = String::new();
        let mut ops = vec![(json!({"op": "row.appended", "row": row("")}), String::new())];
        ops.extend(cut_text(&part.text, &mut cuts).into_iter().map(|it| {
            (json!({"op": "row.delta", "rowId": index + 1, "path": "text", "append": it}), it)
        }));
        for (op, piece) in ops {
            so_far.push_str(&piece);
            rows[index] = row(&so_far);
            let picture = json!({"kind": "snapshot", "snapshot": {"rows": {"window": rows}, "logEpoch": "e"}});
            frames.push((
                frame(seq, seq + 1, &json!({"kind": "deltas", "deltas": [op]})),
                frame(seq + 1, seq + 1, &picture),
            ));
            seq += 1;
        }
    }
    frames
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// The property: both channels with random cuts, frames lost, doubled and swapped, one channel dying anywhere,
    /// in any interleaving; what is shown is what was said, once and in order.
    #[test]
    fn both_channels_together_say_each_text_once_and_in_order(parts in parts(), chaos in chaos()) {
        let mut rig = Rig::new();
        let mut frames = row_frames(&parts, &chaos).into_iter().enumerate();
        let mut cuts = chaos.cuts.iter().rev().copied().cycle();
        let pieces: Vec<(usize, String)> = parts.iter().enumerate()
            .flat_map(|(index, part)| cut_text(&part.text, &mut cuts).into_iter().map(move |it| (index, it))).collect();
        let mut pieces = pieces.into_iter().enumerate();
        let (mut turns, mut faults) = (chaos.turns.iter().copied().cycle(), chaos.faults.iter().copied().cycle());
        let (mut swapped, mut last): (Option<String>, Option<(String, String)>) = (None, None);
        let (mut rows_open, mut legacy_open) = (true, true);
        while rows_open || legacy_open {
            if turns.next().unwrap() && rows_open {
                let Some((at, (params, picture))) = frames.next() else { rows_open = false; continue };
                if chaos.rows_die_at.is_some_and(|it| at >= it) { rows_open = false; rig.fuse.expect_rows(false); continue; }
                match faults.next().unwrap() {
                    0 => {}
                    1 => { rig.rows(&params, &picture); rig.rows(&params, &picture); }
                    2 => swapped = Some(params.clone()),
                    _ => rig.rows(&params, &picture),
                }
                if let Some(late) = swapped.take_if(|it| *it != params) { rig.rows(&late, &picture); }
                last = Some((params, picture));
            } else if legacy_open {
                let Some((at, (index, piece))) = pieces.next() else { legacy_open = false; continue };
                if chaos.legacy_dies_at.is_some_and(|it| at >= it) { legacy_open = false; continue; }
                rig.legacy(&parts[index], &piece);
            }
        }
        if chaos.rows_die_at.is_none() && let Some((_, picture)) = last {
            // The next frame of the engine's shows the gap at the latest.
            rig.rows(&frame(u64::MAX - 1, u64::MAX, &json!({"kind": "deltas", "deltas": []})), &picture);
        }
        let mut want: Vec<(bool, String)> = Vec::new();
        for part in &parts {
            match want.last_mut() {
                Some((same, text)) if *same == part.thought => text.push_str(&part.text),
                _ => want.push((part.thought, part.text.clone())),
            }
        }
        prop_assert_eq!(rig.said, want);
    }
}
