//! PURE. One side of a recorded wire, played to a live peer. What the peer says is matched to what
//! was said then, by method; ids are the peer's own, and texts that differ (a working directory, a
//! generated id) are replaced in what is played back.
//!
//! A message is played as soon as the last thing that came before it in the trace has come. A peer
//! that leaves something out is not waited for once it has gone further.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Which side is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Engine,
    Agent,
}

impl Side {
    /// Its wire, and the direction of what it says there.
    fn wire(self) -> (&'static str, &'static str) {
        match self {
            Self::Engine => ("engine", "in"),
            Self::Agent => ("acp", "out"),
        }
    }
}

/// A line of a trace; its message stays text until it is needed.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    t: u64,
    #[serde(borrow, default)]
    wire: Cow<'a, str>,
    #[serde(borrow, default)]
    dir: Cow<'a, str>,
    #[serde(borrow, default)]
    frame: Option<&'a RawValue>,
}

/// The messages of a side's wire: when, whether it was the side's own, and the message.
fn messages(
    text: &str,
    side: Side,
) -> impl Iterator<Item = Result<(u64, bool, &RawValue), String>> {
    let (wire, own) = side.wire();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.filter_map(move |(n, line)| match serde_json::from_str::<Line<'_>>(line) {
        Err(err) => Some(Err(format!("line {} is no trace: {err}", n + 1))),
        Ok(line) if line.wire != wire => None,
        Ok(line) => {
            let frame = line.frame.filter(|frame| frame.get().starts_with('{'))?;
            Some(Ok((line.t, line.dir == own, frame)))
        }
    })
}

/// Whether a trace can be played, without taking its messages apart.
pub(super) fn check(text: &str, side: Side) -> Result<(), String> {
    let mut any = false;
    for message in messages(text, side) {
        any |= message?.1;
    }
    if any { Ok(()) } else { Err(nothing_of(side)) }
}

fn nothing_of(side: Side) -> String {
    format!("nothing of the {} wire is in it", side.wire().0)
}

/// A message to send, and how long after the one before it was sent then.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    pub(super) after: Duration,
    pub(super) message: Value,
}

#[derive(Debug)]
struct Entry {
    at: u64,
    ours: bool,
    message: Value,
    /// Played, or received.
    done: bool,
}

/// The play so far.
#[derive(Debug)]
pub(super) struct Player {
    entries: Vec<Entry>,
    side: Side,
    /// Everything before has been played or put off.
    next: usize,
    /// Recorded ids of the peer's requests and the live ones.
    ids: HashMap<String, Value>,
    /// Recorded texts and what stands for them now.
    texts: HashMap<String, String>,
}

impl Player {
    /// Reads a trace; the other wire's lines are left out.
    pub(super) fn new(text: &str, side: Side) -> Result<Self, String> {
        let mut entries = Vec::new();
        for found in messages(text, side) {
            let (at, ours, frame) = found?;
            let message = serde_json::from_str(frame.get()).map_err(|err| err.to_string())?;
            entries.push(Entry { at, ours, message, done: false });
        }
        if entries.iter().all(|entry| !entry.ours) {
            return Err(nothing_of(side));
        }
        let (ids, texts) = (HashMap::new(), HashMap::new());
        Ok(Self { entries, side, next: 0, ids, texts })
    }

    /// What can be sent now.
    pub(super) fn next_step(&mut self) -> Option<Step> {
        while let Some(entry) = self.entries.get(self.next) {
            let at = self.next;
            if entry.ours && !entry.done {
                let answers = method(&entry.message).is_none().then(|| self.request_of(at));
                match answers {
                    // Its request has been passed over; it is answered when it comes.
                    Some(Some(request)) if !self.is_done(request) => {
                        if !self.passed(request) {
                            return None;
                        }
                    }
                    Some(_) => return Some(self.play(at)),
                    None => {
                        let before = self.entries.get(..at).unwrap_or_default();
                        let cue = before.iter().rposition(|e| !e.ours && id(&e.message).is_some());
                        if cue.is_some_and(|cue| !self.is_done(cue) && !self.passed(cue)) {
                            return None;
                        }
                        return Some(self.play(at));
                    }
                }
            }
            self.next += 1;
        }
        None
    }

    /// Takes a message of the peer; returns what is answered at once, out of turn.
    pub(super) fn take(&mut self, live: &Value) -> Vec<Value> {
        let Some(name) = method(live) else {
            let answered =
                self.find(|e| method(&e.message).is_none() && id(&e.message) == id(live));
            self.receive(answered, live);
            return Vec::new();
        };
        let asks = id(live).is_some();
        let same = |e: &Entry| method(&e.message) == Some(name) && id(&e.message).is_some() == asks;
        let found = self.find(same);
        self.receive(found, live);
        let (true, Some(live_id)) = (asks, id(live)) else { return Vec::new() };
        let again = || self.entries.iter().rposition(|e| !e.ours && same(e));
        let Some(request) = found.or_else(again) else {
            let error = json!({"code": -32601, "message": format!("{name} is not in the trace")});
            return vec![self.envelope(live_id, "error", error)];
        };
        let Some(answer) = self.answer_to(request) else { return Vec::new() };
        // In its turn it is played by `next_step`; what is late or asked again is answered now.
        if found.is_some() && answer >= self.next {
            return Vec::new();
        }
        let mut message = self.play(answer).message;
        if let Some(object) = message.as_object_mut() {
            object.insert("id".to_owned(), live_id.clone());
        }
        vec![message]
    }

    fn envelope(&self, id: &Value, key: &str, value: Value) -> Value {
        let mut message = Map::new();
        if self.side == Side::Agent {
            message.insert("jsonrpc".to_owned(), "2.0".into());
        }
        message.insert("id".to_owned(), id.clone());
        message.insert(key.to_owned(), value);
        Value::Object(message)
    }

    /// The first of the peer's messages that has not come and fits.
    fn find(&self, fits: impl Fn(&Entry) -> bool) -> Option<usize> {
        self.entries.iter().position(|entry| !entry.ours && !entry.done && fits(entry))
    }

    fn receive(&mut self, at: Option<usize>, live: &Value) {
        let Some(entry) = at.and_then(|at| self.entries.get_mut(at)) else { return };
        entry.done = true;
        learn(&entry.message, live, &mut self.texts);
        if let (Some(then), Some(now)) = (id(&entry.message), id(live)) {
            self.ids.insert(then.to_string(), now.clone());
        }
    }

    fn is_done(&self, at: usize) -> bool {
        self.entries.get(at).is_some_and(|entry| entry.done)
    }

    /// Whether the peer has said something that came later.
    fn passed(&self, at: usize) -> bool {
        self.entries.iter().skip(at + 1).any(|entry| !entry.ours && entry.done)
    }

    /// The peer's request that our answer at `at` belongs to.
    fn request_of(&self, at: usize) -> Option<usize> {
        let wanted = self.entries.get(at).and_then(|entry| id(&entry.message))?;
        self.entries.get(..at)?.iter().rposition(|entry| {
            !entry.ours && method(&entry.message).is_some() && id(&entry.message) == Some(wanted)
        })
    }

    /// Our answer to the peer's request at `at`.
    fn answer_to(&self, at: usize) -> Option<usize> {
        let wanted = self.entries.get(at).and_then(|entry| id(&entry.message))?;
        let answers = |entry: &Entry| {
            entry.ours && method(&entry.message).is_none() && id(&entry.message) == Some(wanted)
        };
        self.entries.iter().skip(at).position(answers).map(|after| at + after)
    }

    fn play(&mut self, at: usize) -> Step {
        let before = at.checked_sub(1).and_then(|at| self.entries.get(at)).map(|entry| entry.at);
        let Some(entry) = self.entries.get_mut(at) else {
            return Step { after: Duration::ZERO, message: Value::Null };
        };
        entry.done = true;
        let after = before.map_or(0, |before| entry.at.saturating_sub(before));
        let mut message = translated(&entry.message, &self.texts);
        if method(&message).is_none()
            && let Some(now) =
                id(&message).and_then(|then| self.ids.get(&then.to_string())).cloned()
            && let Some(object) = message.as_object_mut()
        {
            object.insert("id".to_owned(), now);
        }
        Step { after: Duration::from_millis(after), message }
    }
}

fn method(message: &Value) -> Option<&str> {
    message.get("method").and_then(Value::as_str)
}

fn id(message: &Value) -> Option<&Value> {
    message.get("id").filter(|id| !id.is_null())
}

/// Texts that stand at the same place and differ are names for the same thing.
fn learn(then: &Value, now: &Value, texts: &mut HashMap<String, String>) {
    match (then, now) {
        (Value::String(then), Value::String(now)) if then != now && then.len() > 3 => {
            texts.insert(then.clone(), now.clone());
        }
        (Value::Array(then), Value::Array(now)) => {
            then.iter().zip(now).for_each(|(then, now)| learn(then, now, texts));
        }
        (Value::Object(then), Value::Object(now)) => {
            for (key, then) in then.iter().filter(|(key, _)| *key != "id" && *key != "method") {
                if let Some(now) = now.get(key) {
                    learn(then, now, texts);
                }
            }
        }
        _ => {}
    }
}

fn translated(value: &Value, texts: &HashMap<String, String>) -> Value {
    match value {
        Value::String(text) => texts.get(text).unwrap_or(text).clone().into(),
        Value::Array(items) => items.iter().map(|item| translated(item, texts)).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| (key.clone(), translated(value, texts)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(lines: &[(&str, Value)]) -> String {
        let line = |(n, (dir, frame)): (usize, &(&str, Value))| {
            json!({"t": n * 10, "wire": "engine", "dir": dir, "frame": frame}).to_string() + "\n"
        };
        lines.iter().enumerate().map(line).collect()
    }

    fn a_turn() -> Player {
        let text = trace(&[
            ("out", json!({"id": 1, "method": "create", "params": {"cwd": "/then"}})),
            ("in", json!({"id": 1, "result": {"cwd": "/then", "session": "s"}})),
            ("out", json!({"id": 2, "method": "read"})),
            ("in", json!({"id": 2, "result": "state"})),
            ("out", json!({"id": 3, "method": "send"})),
            ("in", json!({"method": "event", "params": 1})),
            ("in", json!({"id": "q", "method": "ask"})),
            ("out", json!({"id": "q", "result": "yes"})),
            ("in", json!({"method": "event", "params": 2})),
            ("in", json!({"id": 3, "result": "done"})),
        ]);
        Player::new(&text, Side::Engine).unwrap()
    }

    fn steps(player: &mut Player) -> Vec<Value> {
        std::iter::from_fn(|| player.next_step()).map(|step| step.message).collect()
    }

    #[test]
    fn a_turn_is_played_as_its_cues_come_with_the_peers_ids_and_texts() {
        let mut player = a_turn();
        assert!(steps(&mut player).is_empty(), "the peer begins");
        player.take(&json!({"id": 70, "method": "create", "params": {"cwd": "/now"}}));
        assert_eq!(
            steps(&mut player),
            [json!({"id": 70, "result": {"cwd": "/now", "session": "s"}})]
        );
        player.take(&json!({"id": 71, "method": "read"}));
        assert_eq!(steps(&mut player), [json!({"id": 71, "result": "state"})]);
        player.take(&json!({"id": 72, "method": "send"}));
        assert_eq!(
            steps(&mut player),
            [json!({"method": "event", "params": 1}), json!({"id": "q", "method": "ask"})]
        );
        player.take(&json!({"id": "q", "result": "no"}));
        assert_eq!(
            steps(&mut player),
            [json!({"method": "event", "params": 2}), json!({"id": 72, "result": "done"})]
        );
    }

    #[test]
    fn what_the_peer_leaves_out_is_passed_over_and_answered_when_it_comes_late() {
        let mut player = a_turn();
        player.take(&json!({"id": 70, "method": "create", "params": {"cwd": "/then"}}));
        steps(&mut player);
        player.take(&json!({"id": 72, "method": "send"}));
        assert_eq!(steps(&mut player).len(), 2);
        assert_eq!(
            player.take(&json!({"id": 73, "method": "read"})),
            [json!({"id": 73, "result": "state"})]
        );
    }

    #[test]
    fn what_is_asked_again_is_answered_again_and_what_is_unknown_refused() {
        let mut player = a_turn();
        player.take(&json!({"id": 70, "method": "create", "params": {"cwd": "/then"}}));
        steps(&mut player);
        let again = player.take(&json!({"id": 71, "method": "create", "params": {"cwd": "/then"}}));
        assert_eq!(again[0]["id"], 71);
        let refused = player.take(&json!({"id": 72, "method": "nonsense"}));
        assert_eq!(refused[0]["error"]["code"], -32601);
        assert!(player.take(&json!({"method": "a notification"})).is_empty());
    }

    #[test]
    fn a_file_that_is_no_trace_is_said_so() {
        let is_none = |text: &str, side, why: &str| {
            assert!(Player::new(text, side).unwrap_err().contains(why), "{why}");
            assert!(check(text, side).unwrap_err().contains(why), "{why}");
        };
        is_none("{}\nnot json", Side::Engine, "line 2");
        is_none("5", Side::Engine, "line 1");
        is_none(&trace(&[]), Side::Agent, "acp");
        let theirs = trace(&[("out", json!({"id": 1, "method": "create"}))]);
        is_none(&theirs, Side::Engine, "nothing of the engine wire");
    }
}
