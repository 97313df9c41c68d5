use proptest::prelude::*;
use serde_json::json;

use super::*;

struct Cut {
    id: &'static str,
    text: String,
    pieces: usize,
    hex: bool,
}

impl Cut {
    fn new(text: &str, pieces: usize) -> Self {
        Self { id: "lf_1", text: text.to_owned(), pieces, hex: false }
    }

    fn params(&self) -> Vec<String> {
        let bytes = self.text.as_bytes();
        let size = bytes.len().div_ceil(self.pieces).max(1);
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        let crc = crc32fast::hash(bytes);
        let value = if self.hex { json!(format!("{crc:08x}")) } else { json!(crc) };
        let cut = |(index, chunk): (usize, &&[u8])| {
            json!({"wireVersion": 3, "kind": "fragment", "topic": "t", "logicalFrameId": self.id, "fragmentIndex": index,
                   "fragmentCount": chunks.len(), "logicalBytes": bytes.len(),
                   "checksum": {"algorithm": "crc32", "value": value}, "dataBase64": STANDARD.encode(chunk)})
            .to_string()
        };
        chunks.iter().enumerate().map(cut).collect()
    }
}

fn push(
    fragments: &mut Fragments,
    params: &str,
    now_ms: u64,
) -> Result<Option<String>, FragmentError> {
    fragments.push(&serde_json::from_str(params).unwrap(), now_ms)
}

#[test]
fn fragments_become_the_frame_again_with_the_check_sum_as_number_or_hex() {
    for hex in [false, true] {
        let cut = Cut { hex, ..Cut::new("{\"text\":\"héllo wörld, 你好\"}", 4) };
        let mut fragments = Fragments::default();
        let mut last = None;
        for params in cut.params() {
            assert_eq!(last, None);
            last = push(&mut fragments, &params, 1).unwrap();
        }
        assert_eq!(last.as_deref(), Some(cut.text.as_str()));
        assert!(!fragments.clear());
    }
}

#[test]
fn a_wrong_check_sum_or_length_is_refused() {
    let cut = Cut::new("abcdef", 2).params();
    let spoil = |from: &str, to: &str| {
        let mut fragments = Fragments::default();
        let results: Vec<_> =
            cut.iter().map(|it| push(&mut fragments, &it.replace(from, to), 1)).collect();
        results.into_iter().next_back().unwrap()
    };
    let crc = format!("\"value\":{}", crc32fast::hash(b"abcdef"));
    assert_eq!(spoil(&crc, "\"value\":1"), Err(FragmentError::Mismatch("check sum")));
    assert_eq!(
        spoil("\"logicalBytes\":6", "\"logicalBytes\":7"),
        Err(FragmentError::Mismatch("length"))
    );
    assert_eq!(
        spoil("\"logicalBytes\":6", "\"logicalBytes\":4"),
        Err(FragmentError::TooLarge { fragments: 2, bytes: 6 })
    );
}

#[test]
fn fragments_in_any_order_and_twice_become_the_frame_again() {
    let cut = Cut::new("abcdefghi", 3);
    for order in [[2, 1, 0], [1, 2, 0], [0, 2, 1]] {
        let mut fragments = Fragments::default();
        let pieces = order.iter().flat_map(|at| [*at, *at]);
        let params = cut.params();
        let whole: Vec<_> =
            pieces.filter_map(|at| push(&mut fragments, &params[at], 1).unwrap()).collect();
        assert_eq!(whole, ["abcdefghi"], "{order:?}");
        // One that was on its way twice comes after the end.
        assert_eq!(push(&mut fragments, &params[1], 1), Ok(None));
        assert!(!fragments.clear(), "and begins nothing");
    }
}

#[test]
fn a_missing_fragment_is_seen_by_the_next_frame_and_the_rest_of_a_failed_one_is_passed_over() {
    let first = Cut::new("abcdefghi", 3).params();
    let second = Cut { id: "lf_2", ..Cut::new("jklmno", 2) }.params();
    let mut fragments = Fragments::default();
    assert_eq!(push(&mut fragments, &first[0], 1), Ok(None));
    assert_eq!(push(&mut fragments, &first[2], 1), Ok(None));
    assert_eq!(push(&mut fragments, &second[1], 1), Err(FragmentError::Incomplete));
    let spoilt = second[0].replace("\"dataBase64\":\"", "\"dataBase64\":\"?");
    assert_eq!(push(&mut fragments, &spoilt, 1), Err(FragmentError::Encoding));
    assert_eq!(push(&mut fragments, &second[1], 1), Ok(None), "no second complaint");
    // The engine sends it again.
    assert_eq!(push(&mut fragments, &second[0], 1), Ok(None));
    assert_eq!(push(&mut fragments, &second[1], 1), Ok(Some("jklmno".to_owned())));
    let far =
        second[1].replace("\"fragmentIndex\":1", "\"fragmentIndex\":7").replace("lf_2", "lf_3");
    assert_eq!(push(&mut fragments, &far, 1), Err(FragmentError::Misplaced { index: 7, count: 2 }));
}

#[test]
fn frames_without_names_of_their_own_are_told_apart() {
    let nameless = |text| Cut { id: "", ..Cut::new(text, 2) }.params();
    let (first, second) = (nameless("abcdef"), nameless("ghijkl"));
    let mut fragments = Fragments::default();
    for (piece, wanted) in [
        (&first[0], None),
        (&first[1], Some("abcdef")),
        (&second[0], None),
        (&second[1], Some("ghijkl")),
    ] {
        assert_eq!(push(&mut fragments, piece, 1), Ok(wanted.map(str::to_owned)));
    }
    assert_eq!(push(&mut fragments, &first[0], 1), Ok(None));
    assert_eq!(push(&mut fragments, &second[0], 1), Err(FragmentError::Incomplete));
    assert_eq!(push(&mut fragments, &second[1], 1), Ok(Some("ghijkl".to_owned())));
}

#[test]
fn a_frame_that_takes_longer_than_thirty_seconds_is_dropped() {
    let cut = Cut::new("abcdef", 2).params();
    let mut fragments = Fragments::default();
    assert_eq!(push(&mut fragments, &cut[0], 0), Ok(None));
    assert_eq!(push(&mut fragments, &cut[1], MAX_AGE_MS + 1), Err(FragmentError::Incomplete));
    assert_eq!(push(&mut fragments, &cut[0], 0), Ok(None), "sent again");
    assert!(!fragments.expire(MAX_AGE_MS));
    assert!(fragments.expire(MAX_AGE_MS + 1));
}

#[test]
fn too_many_fragments_or_bytes_are_refused_at_the_first_one() {
    for (count, bytes) in [(1025_u64, 10_u64), (2, MAX_BYTES + 1), (0, 0)] {
        let params = json!({"logicalFrameId": "x", "fragmentIndex": 0, "fragmentCount": count, "logicalBytes": bytes, "dataBase64": ""});
        let refused = push(&mut Fragments::default(), &params.to_string(), 0);
        assert_eq!(refused, Err(FragmentError::TooLarge { fragments: count, bytes }));
    }
}

#[test]
fn a_frame_that_begins_before_the_last_one_ended_is_kept_and_reported() {
    let first = Cut::new("abcdef", 2).params();
    let second = Cut { id: "lf_2", ..Cut::new("ghijkl", 2) }.params();
    let mut fragments = Fragments::default();
    assert_eq!(push(&mut fragments, &first[0], 0), Ok(None));
    assert_eq!(push(&mut fragments, &second[0], 0), Err(FragmentError::Incomplete));
    assert_eq!(push(&mut fragments, &second[1], 0), Ok(Some("ghijkl".to_owned())));
}

#[test]
fn a_check_sum_reads_in_every_spelling() {
    for value in [
        json!(0xfedc_ba98_u32),
        json!("fedcba98"),
        json!("0xFEDCBA98"),
        json!(i64::from(0xfedc_ba98_u32.cast_signed())),
    ] {
        assert_eq!(crc_value(&value), Some(0xfedc_ba98), "{value}");
    }
    assert_eq!(crc_value(&json!("no hex")), None);
}

proptest! {
    #[test]
    fn any_text_in_any_number_of_pieces_comes_back(text in "\\PC{1,200}", pieces in 1_usize..20) {
        let mut fragments = Fragments::default();
        let results: Vec<_> = Cut::new(&text, pieces).params().iter().map(|it| push(&mut fragments, it, 5).unwrap()).collect();
        let (last, before) = results.split_last().unwrap();
        prop_assert!(before.iter().all(Option::is_none));
        prop_assert_eq!(last.as_deref(), Some(text.as_str()));
    }
}
