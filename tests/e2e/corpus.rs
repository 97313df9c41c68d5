//! Fuzzing with a stored corpus: every line that an engine says in `tests/golden`, as it is and
//! damaged in a thousand ways, through codec, translator and the assembler of the richer channel.
//! Nothing fails, and what comes out can be written. Add a line that once broke something to
//! `tests/golden/corpus.jsonl`.

use std::path::PathBuf;

use serde_json::Value;
use zcode_acp::bridge::engine::event::EngineEvent;
use zcode_acp::bridge::engine::read_notification;
use zcode_acp::bridge::engine::v4::topic::{Ack, History, Topic};
use zcode_acp::bridge::translate::{ClientTraits, Output, Translator};

/// Damaged forms of each line.
const FORMS: usize = 12;
/// Longer lines are taken as they are: damage to them costs more than it finds.
const LONG: usize = 16 * 1024;
/// Bytes that mean something.
const SIGNS: &[u8] = b"\"{}[],:0\\ue\xff";

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }
}

/// Every line from an engine, case by case.
fn corpus() -> Vec<Vec<String>> {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(&golden).unwrap().flatten().map(|entry| entry.path()).collect();
    cases.sort();
    let spoken = |case: &PathBuf| {
        let text = std::fs::read_to_string(case.join("engine.jsonl")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|line| Some(line.get("from")?.to_string())).collect()
    };
    let mut cases: Vec<Vec<String>> = cases.iter().map(spoken).collect();
    let odd = std::fs::read_to_string(golden.join("corpus.jsonl")).unwrap();
    cases.push(odd.lines().map(str::to_owned).collect());
    assert!(cases.iter().map(Vec::len).sum::<usize>() > 300, "the corpus was not found");
    cases
}

/// The line with one thing wrong: a byte, a piece lost, doubled or taken from another line, a
/// value of another type.
fn damaged(line: &str, other: &str, dice: &mut Dice) -> String {
    let mut bytes = line.as_bytes().to_vec();
    let (a, b) = (dice.roll(bytes.len()), dice.roll(bytes.len()));
    let (from, to) = (a.min(b), a.max(b));
    match dice.roll(6) {
        0 => bytes[a] = SIGNS[dice.roll(SIGNS.len())],
        1 => drop(bytes.drain(from..to)),
        2 => {
            let piece = bytes[from..to].to_vec();
            bytes.splice(to..to, piece);
        }
        3 => {
            let other = other.as_bytes();
            let (c, d) = (dice.roll(other.len()), dice.roll(other.len()));
            bytes.splice(from..to, other[c.min(d)..c.max(d)].iter().copied());
        }
        4 => bytes.truncate(a),
        _ => {
            let mut value: Value = serde_json::from_str(line).unwrap_or_default();
            retype(&mut value, dice);
            return value.to_string();
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Puts something else where a value was.
fn retype(value: &mut Value, dice: &mut Dice) {
    const ELSE: [&str; 8] =
        ["null", "[]", "{}", "-1", "1e300", "\"\"", "\"\\u0000\u{202e}é\"", "[[{}]]"];
    let inner: Vec<&mut Value> = match value {
        Value::Object(map) => map.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    let at = dice.roll(inner.len() + 1);
    match inner.into_iter().nth(at) {
        Some(inner) => retype(inner, dice),
        None => *value = serde_json::from_str(ELSE[dice.roll(ELSE.len())]).unwrap(),
    }
}

/// What takes the lines in, as a session does.
struct Session {
    translator: Translator,
    topic: Topic,
    output: Output,
    facts: usize,
    updates: usize,
}

impl Session {
    fn new() -> Self {
        // As the recorded engine, which counts its ids, names them.
        let mut topic =
            Topic::new("conversation/sess_00000000-0001-0000-0000-000000000001", History::Skip);
        let ack = Ack {
            subscription_id: "sub_00000000-0001-0000-0000-000000000005".to_owned(),
            mode: Some("snapshot".to_owned()),
            log_epoch: None,
        };
        drop(topic.subscribed(&ack, 1, &mut Vec::new()));
        let translator = Translator::new(ClientTraits::default());
        Self { translator, topic, output: Output::default(), facts: 0, updates: 0 }
    }

    fn take(&mut self, line: &str) {
        match read_notification(line) {
            Some(EngineEvent::Session(event)) => {
                self.translator.on_event(&event, &mut self.output);
                for update in self.output.updates.drain(..) {
                    serde_json::to_string(&update).unwrap();
                    self.updates += 1;
                }
                self.output.wants.clear();
            }
            Some(EngineEvent::Frame { params, .. }) => {
                let mut facts = Vec::new();
                drop(self.topic.on_frame(params.get(), 1, &mut facts));
                self.facts += facts.len();
            }
            _ => {}
        }
    }
}

#[test]
fn no_line_of_the_corpus_however_damaged_makes_anything_fail() {
    let corpus = corpus();
    let mut dice = Dice(20_261_130);
    let (mut updates, mut facts, mut broken_updates) = (0, 0, 0);
    for case in &corpus {
        let (mut whole, mut broken) = (Session::new(), Session::new());
        for line in case {
            whole.take(line);
            for _ in 0..if line.len() > LONG { 1 } else { FORMS } {
                let other = &case[dice.roll(case.len())];
                broken.take(&damaged(line, other, &mut dice));
            }
            // Between the damage what is whole goes on, so that all states are reached.
            broken.take(line);
        }
        updates += whole.updates;
        facts += whole.facts;
        broken_updates += broken.updates;
    }
    assert!(updates > 100 && facts > 300, "not understood: {updates} updates, {facts} facts");
    assert!(broken_updates >= updates / 2, "the damage leaves {broken_updates} of {updates}");
}

#[test]
fn damage_in_the_middle_does_not_lose_what_follows() {
    let mut dice = Dice(7);
    for case in corpus() {
        let mut session = Session::new();
        for line in case.iter().filter(|line| line.len() < LONG) {
            session.take(&damaged(line, "{\"method\":\"session/event\"}", &mut dice));
        }
        let before = session.updates;
        session.take(
            r#"{"method":"session/event","params":{"sessionId":"s","seq":1,"type":"model.streaming","payload":{"kind":"text_delta","delta":"still here","assistantMessageId":"new","partId":"new"}}}"#,
        );
        assert_eq!(session.updates, before + 1);
    }
}
