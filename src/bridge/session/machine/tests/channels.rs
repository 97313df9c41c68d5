//! The session machine on both channels at once. Turns (the user's, and the engine's own between them) are told twice, by legacy
//! events and by V4 frames, each cut at random; frames are lost, doubled, swapped, split and spoilt, or change their shape,
//! pictures come late, unasked, reach back too little or belong to a new log, events are lost and fetched again, rows are split where the events are not, and one channel may
//! be far ahead, fall silent for a while or for good. What the client was shown is then compared with what the model said: every
//! text under its own message, every card once and in its place, nothing twice and nothing missing.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// What the model did, in order.
#[derive(Clone)]
pub(super) enum Said {
    Text { thought: bool, message: usize, text: String },
    Call { name: String, output: String },
}

/// As the source of a test.
impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text { thought: true, message, text } => {
                write!(f, "thought({message}, {text:?})")
            }
            Self::Text { message, text, .. } => write!(f, "text({message}, {text:?})"),
            Self::Call { name, output } => write!(f, "call({name:?}, {output:?})"),
        }
    }
}

/// One turn.
#[derive(Debug, Clone)]
pub(super) struct Told {
    /// The engine began it by itself.
    pub(super) foreign: bool,
    pub(super) said: Vec<Said>,
}

/// The user's turns, with some of the engine's own between them.
fn turns(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Told>> {
    let told = (proptest::bool::weighted(0.3), turn());
    proptest::collection::vec(told, count).prop_map(|turns| {
        let told = turns.into_iter().enumerate();
        told.map(|(at, (foreign, said))| Told { foreign: foreign && at > 0, said }).collect()
    })
}

fn turn() -> impl Strategy<Value = Vec<Said>> {
    // Few letters, so that texts repeat and begin alike.
    let part = (0_u8..5, 0_usize..3, "[ab é✓]{1,24}");
    proptest::collection::vec(part, 1..10).prop_map(|parts| {
        let (mut message, mut last, mut out) = (0, None, Vec::new());
        for (at, (kind, step, text)) in parts.into_iter().enumerate() {
            if kind == 4 {
                out.push(Said::Call { name: format!("call_{at}"), output: text });
                last = None;
                message += 1;
                continue;
            }
            let thought = kind < 2;
            message += usize::from(step == 0 || last == Some(thought));
            last = Some(thought);
            out.push(Said::Text { thought, message, text });
        }
        out
    })
}

#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "switches, each of its own")]
pub(super) struct Chaos {
    pub(super) cuts: Vec<usize>,
    pub(super) acts: Vec<u8>,
    pub(super) faults: Vec<u8>,
    pub(super) own_ids: bool,
    pub(super) name_parts: bool,
    /// The picture that begins the subscription comes after so many acts.
    pub(super) picture_after: usize,
    /// Rows a picture shows at most.
    pub(super) window: usize,
    pub(super) frames_end_at: Option<usize>,
    /// Every frame is lost from that operation on, so many of them.
    pub(super) outage: Option<(usize, usize)>,
    /// Rows name turns in their own way.
    pub(super) own_turns: bool,
    /// Texts of which rows make two, by their place in the turn: a bit each.
    pub(super) split_rows: u8,
    /// The events name no messages.
    pub(super) nameless_events: bool,
    /// The rows name no messages.
    pub(super) nameless_rows: bool,
    pub(super) pages_fail: bool,
    pub(super) lean: u8,
}

/// As the source of a test.
impl std::fmt::Debug for Chaos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letters =
            |list: &[u8]| -> String { list.iter().map(|it| char::from(b'a' + it)).collect() };
        let cuts: Vec<u8> = self.cuts.iter().map(|it| u8::try_from(*it).unwrap()).collect();
        writeln!(f, "Chaos {{ cuts: list({:?}).map(usize::from).collect(),", letters(&cuts))?;
        writeln!(f, "acts: list({:?}).collect(),", letters(&self.acts))?;
        writeln!(f, "faults: list({:?}).collect(),", letters(&self.faults))?;
        let flags = [
            ("own_ids", self.own_ids),
            ("name_parts", self.name_parts),
            ("own_turns", self.own_turns),
            ("nameless_events", self.nameless_events),
            ("nameless_rows", self.nameless_rows),
            ("pages_fail", self.pages_fail),
        ];
        for (name, _) in flags.into_iter().filter(|it| it.1) {
            write!(f, "{name}: true, ")?;
        }
        write!(f, "picture_after: {}, window: {}, ", self.picture_after, self.window)?;
        write!(f, "frames_end_at: {:?}, outage: {:?}, ", self.frames_end_at, self.outage)?;
        write!(f, "split_rows: {}, lean: {}, ..Chaos::default() }}", self.split_rows, self.lean)
    }
}

impl Default for Chaos {
    fn default() -> Self {
        Self {
            cuts: vec![1],
            acts: vec![0, 10],
            faults: vec![9],
            own_ids: false,
            name_parts: false,
            picture_after: 0,
            window: 60,
            frames_end_at: None,
            outage: None,
            own_turns: false,
            split_rows: 0,
            nameless_events: false,
            nameless_rows: false,
            pages_fail: false,
            lean: 0,
        }
    }
}

fn chaos() -> impl Strategy<Value = Chaos> {
    let lists = (
        proptest::collection::vec(1_usize..9, 30),
        proptest::collection::vec(0_u8..24, 150),
        proptest::collection::vec(0_u8..30, 150),
    );
    let flags = (any::<bool>(), any::<bool>(), proptest::bool::weighted(0.2));
    let sizes = (
        prop_oneof![3 => Just(0_usize), 1 => 1_usize..60],
        prop_oneof![2 => Just(60_usize), 1 => 1_usize..4],
        proptest::option::weighted(0.2, 0_usize..40),
        0_u8..3,
    );
    let more = (
        proptest::option::weighted(0.2, (0_usize..60, 5_usize..60)),
        proptest::bool::weighted(0.2),
        prop_oneof![3 => Just(0_u8), 1 => any::<u8>()],
        prop_oneof![6 => Just((false, false)), 1 => Just((true, false)), 1 => Just((false, true)), 1 => Just((true, true))],
    );
    (lists, flags, sizes, more).prop_map(
        |((cuts, acts, faults), (own_ids, name_parts, pages_fail), sizes, more)| {
            let (picture_after, window, frames_end_at, lean) = sizes;
            let (outage, own_turns, split_rows, (nameless_events, nameless_rows)) = more;
            // Rows that share neither turns nor messages with the events cannot be told from those of another turn.
            let own_turns = own_turns && !own_ids && !nameless_events && !nameless_rows;
            Chaos {
                cuts,
                acts,
                faults,
                own_ids,
                name_parts,
                picture_after,
                window,
                frames_end_at,
                outage,
                own_turns,
                split_rows,
                nameless_events,
                nameless_rows,
                pages_fail,
                lean,
            }
        },
    )
}

fn cut(text: &str, cuts: &mut impl Iterator<Item = usize>) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut rest = chars.as_slice();
    let mut out = Vec::new();
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(cuts.next().unwrap().min(rest.len()));
        out.push(piece.iter().collect());
        rest = tail;
    }
    out
}

fn input_of(name: &str) -> String {
    json!({ "file_path": format!("/w/{name}") }).to_string()
}

/// The legacy side: payloads in order, as the engine numbers them.
fn legacy_events(n: usize, turn: &[Said], chaos: &Chaos) -> Vec<(&'static str, Value)> {
    let mut cuts = chaos.cuts.iter().rev().copied().cycle();
    let mut out = Vec::new();
    for (at, said) in turn.iter().enumerate() {
        match said {
            Said::Text { thought, message, text } => {
                let kind = if *thought { "reasoning_delta" } else { "text_delta" };
                let part = chaos.name_parts.then(|| format!("p{at}"));
                let owner = (!chaos.nameless_events).then(|| format!("m{n}_{message}"));
                out.extend(cut(text, &mut cuts).into_iter().map(|it| {
                    ("model.streaming", json!({"kind": kind, "delta": it, "assistantMessageId": owner, "partId": part}))
                }));
            }
            Said::Call { name, output } => {
                let head =
                    |kind: &str| json!({"kind": kind, "toolCallId": name, "toolName": "Read"});
                let with = |kind: &str, key: &str, value: Value| {
                    let mut it = head(kind);
                    it[key] = value;
                    it
                };
                out.push(("model.streaming", head("tool_input_start")));
                out.extend(
                    cut(&input_of(name), &mut cuts).into_iter().map(|it| {
                        ("model.streaming", with("tool_input_delta", "delta", json!(it)))
                    }),
                );
                let input: Value = serde_json::from_str(&input_of(name)).unwrap();
                out.push(("model.streaming", with("tool_call", "input", input.clone())));
                out.push(("tool.updated", with("scheduled", "input", input)));
                out.push(("tool.updated", head("started")));
                let result = json!({"success": true, "content": output});
                out.push(("tool.updated", with("result", "result", result)));
            }
        }
    }
    out
}

/// The V4 side of turn `n`: operations in order, and the rows after each, which stand after those of the turns before.
fn row_ops(n: usize, turn: &[Said], chaos: &Chaos, before: &[Value]) -> Vec<(Value, Vec<Value>)> {
    let mut cuts = chaos.cuts.iter().copied().cycle();
    let turn_id = format!("{}{n}", if chaos.own_turns { "x" } else { "t" });
    let first = before.len() + 1;
    let header = |state: &str| json!({"rowId": first, "turnId": turn_id, "kind": "turnHeader", "state": state});
    let mut rows = before.to_vec();
    rows.push(header("running"));
    let mut out = vec![(json!({"op": "row.appended", "row": header("running")}), rows.clone())];
    for (at, said) in as_rows_have_it(turn, chaos).iter().enumerate() {
        let id = first + at + 1;
        let mut grow = |rows: &mut Vec<Value>,
                        row: Value,
                        path: &str,
                        text: &str,
                        out: &mut Vec<(Value, Vec<Value>)>| {
            let mut so_far = String::new();
            for piece in cut(text, &mut cuts) {
                so_far.push_str(&piece);
                let mut row = row.clone();
                match path {
                    "output.text" => row["output"] = json!({ "text": so_far }),
                    _ => row[path] = json!(so_far),
                }
                *rows.last_mut().unwrap() = row;
                out.push((
                    json!({"op": "row.delta", "rowId": id, "path": path, "append": piece}),
                    rows.clone(),
                ));
            }
        };
        let upsert = |rows: &mut Vec<Value>, row: Value, out: &mut Vec<(Value, Vec<Value>)>| {
            *rows.last_mut().unwrap() = row.clone();
            out.push((json!({"op": "row.upserted", "row": row}), rows.clone()));
        };
        match said {
            Said::Text { thought, message, text } => {
                let kind = if *thought { "reasoning" } else { "assistantText" };
                let word = if chaos.own_ids { "r" } else { "m" };
                let owner = (!chaos.nameless_rows).then(|| format!("{word}{n}_{message}"));
                let row = |text: &str, state: &str| json!({"rowId": id, "turnId": turn_id, "kind": kind, "text": text, "state": state, "assistantResponseId": owner});
                rows.push(row("", "streaming"));
                out.push((
                    json!({"op": "row.appended", "row": row("", "streaming")}),
                    rows.clone(),
                ));
                grow(&mut rows, row("", "streaming"), "text", text, &mut out);
                upsert(&mut rows, row(text, "complete"), &mut out);
            }
            Said::Call { name, output } => {
                let row = |status: &str| json!({"rowId": id, "turnId": turn_id, "kind": "toolCall", "toolCallId": name, "toolName": "Read", "status": status});
                rows.push(row("inputStreaming"));
                out.push((
                    json!({"op": "row.appended", "row": row("inputStreaming")}),
                    rows.clone(),
                ));
                grow(&mut rows, row("inputStreaming"), "inputText", &input_of(name), &mut out);
                let mut running = row("running");
                running["inputText"] = json!(input_of(name));
                running["input"] = serde_json::from_str(&input_of(name)).unwrap();
                upsert(&mut rows, running.clone(), &mut out);
                grow(&mut rows, running.clone(), "output.text", output, &mut out);
                let mut done = running;
                done["status"] = json!("success");
                done["output"] = json!({ "text": output });
                upsert(&mut rows, done, &mut out);
            }
        }
    }
    rows[first - 1] = header("completedSuccess");
    out.push((json!({"op": "row.upserted", "row": rows[first - 1]}), rows.clone()));
    out
}

/// The same turn with some texts in two rows; only where the events name no parts, which rows keep to.
fn as_rows_have_it(turn: &[Said], chaos: &Chaos) -> Vec<Said> {
    let mut out = Vec::new();
    for (at, said) in turn.iter().enumerate() {
        let splits = !chaos.name_parts && chaos.split_rows >> (at % 8) & 1 == 1;
        match said {
            Said::Text { thought, message, text } if splits && text.chars().count() > 1 => {
                let half = text.char_indices().nth(text.chars().count() / 2).unwrap().0;
                let (one, two) = text.split_at(half);
                for text in [one, two] {
                    let (thought, message, text) = (*thought, *message, text.to_owned());
                    out.push(Said::Text { thought, message, text });
                }
            }
            said => out.push(said.clone()),
        }
    }
    out
}

struct World {
    b: Bench,
    chaos: Chaos,
    legacy: Vec<Value>,
    next_event: usize,
    ops: Vec<(Value, Vec<Value>)>,
    next_op: usize,
    /// Operations that were sent in frames, lost ones too.
    seq: u64,
    subscriptions: usize,
    epoch: usize,
    pictured: bool,
    swapped: Option<String>,
    log: Vec<String>,
    prompts: Vec<ReqId>,
}

impl World {
    fn new(chaos: &Chaos) -> Self {
        let mut b = Bench::new();
        b.by_hand = vec!["v4/command", "session/messages"];
        Self {
            b,
            chaos: chaos.clone(),
            legacy: Vec::new(),
            next_event: 0,
            ops: Vec::new(),
            next_op: 0,
            seq: 0,
            subscriptions: 0,
            epoch: 0,
            pictured: false,
            swapped: None,
            log: Vec::new(),
            prompts: Vec::new(),
        }
    }

    /// The engine begins turn `n`.
    fn begin(&mut self, n: usize, told: &Told) {
        let (mut started, mut completed) =
            (json!({}), json!({"resultType": "success", "response": ""}));
        if told.foreign {
            started["inputSource"] = json!("background_task");
        } else {
            // Nobody sends the next prompt before the last one was answered.
            for _ in 0..5 {
                if self.prompts.last().is_none_or(|it| self.b.response(*it).is_some()) {
                    break;
                }
                while self.answer(9) {}
                self.b.pass(1_000);
            }
            let req = self.b.prompt("hello");
            self.prompts.push(req);
            self.b.accept();
            let input = self.b.input_id();
            started["inputId"] = json!(input);
            completed["inputId"] = json!(input);
        }
        self.log.push(format!("turn {n}"));
        let mut events = vec![("turn.started", started)];
        events.extend(legacy_events(n, &told.said, &self.chaos));
        events.push(("turn.completed", completed));
        for (kind, payload) in events {
            let seq = self.legacy.len() + 1;
            self.legacy.push(json!({"sessionId": SID, "seq": seq, "type": kind, "turnId": format!("t{n}"), "payload": payload}));
        }
        let before = self.ops.last().map(|it| it.1.clone()).unwrap_or_default();
        self.ops.extend(row_ops(n, &told.said, &self.chaos, &before));
    }

    fn event(&mut self, fault: u8) {
        let Some(mut event) = self.legacy.get(self.next_event).map(read_event) else { return };
        let is_last = self.next_event + 1 == self.legacy.len();
        self.next_event += 1;
        if fault % 2 == 1 {
            self.next_event += join_all(&mut event, &self.legacy[self.next_event..]);
        }
        if fault != 0 || is_last {
            self.log.push(format!("{event:?}"));
            let twice = if fault == 24 { 2 } else { 1 };
            for event in vec![Box::new(event); twice] {
                self.b.step(Input::Engine(EngineEvent::Session(event)));
            }
        }
    }

    fn shift(&self, value: &Value) -> Value {
        let (mut value, shift) = (value.clone(), 1000 * self.epoch as u64);
        for at in ["/rowId", "/row/rowId"] {
            if let Some(id) = value.pointer_mut(at) {
                *id = json!(id.as_u64().unwrap() + shift);
            }
        }
        value
    }

    fn send(&mut self, frame: &str) {
        self.log.push(frame.to_owned());
        let topic = format!("conversation/{SID}");
        let params = RawValue::from_string(frame.to_owned()).unwrap();
        self.b.step(Input::Engine(EngineEvent::Frame { topic, params }));
    }

    fn framed(&self, from: u64, to: u64, payload: &Value) -> String {
        let sub = format!("sub_{}", self.subscriptions);
        json!({"wireVersion": 3, "kind": "complete", "topic": format!("conversation/{SID}"), "subscriptionId": sub,
            "frame": {"subscriptionId": sub, "fromSeq": from, "toSeq": to, "payload": payload}})
        .to_string()
    }

    fn frame(&mut self, fault: u8, ops: usize) {
        if !self.pictured || self.chaos.frames_end_at.is_some_and(|it| self.next_op >= it) {
            return;
        }
        // What is lost is lost in a burst, so that whole rows are missing.
        let ops = if fault == 0 { 12 * ops } else { ops };
        let end = (self.next_op + ops).min(self.ops.len());
        let deltas: Vec<Value> =
            self.ops[self.next_op..end].iter().map(|(op, _)| self.shift(op)).collect();
        if deltas.is_empty() {
            return;
        }
        self.next_op = end;
        let to = self.seq + deltas.len() as u64;
        let frame = self.framed(self.seq, to, &json!({"kind": "deltas", "deltas": deltas}));
        self.seq = to;
        let late = self.swapped.take();
        let out = self.chaos.outage.is_some_and(|(at, so_many)| (at..at + so_many).contains(&end));
        match fault {
            _ if out => {}
            0 => {}
            1 => {
                self.send(&frame);
                self.send(&frame);
            }
            2 => self.swapped = Some(frame),
            3 | 24..=27 => self.split(&frame, fault),
            28 => {
                let value: Value = serde_json::from_str(&frame).unwrap();
                self.send(&json!({"topic": value["topic"], "frame": value["frame"]}).to_string());
            }
            // The engine sends a picture of itself.
            29 => self.picture(),
            _ => self.send(&frame),
        }
        if let Some(late) = late {
            self.send(&late);
        }
    }

    /// In fragments: whole (3), backwards and twice (24), one lost (25), with a wrong check sum (26), or the last one late (27).
    fn split(&mut self, frame: &str, fault: u8) {
        use base64::Engine as _;
        let value: Value = serde_json::from_str(frame).unwrap();
        let text = value["frame"].to_string();
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(text.len().div_ceil(3)).collect();
        let sum = crc32fast::hash(text.as_bytes()) ^ u32::from(fault == 26);
        let piece = |(index, chunk): (usize, &&[u8])| {
            let data = base64::engine::general_purpose::STANDARD.encode(chunk);
            json!({"wireVersion": 3, "kind": "fragment", "topic": value["topic"], "subscriptionId": value["subscriptionId"],
                "logicalFrameId": format!("lf{}", self.seq), "fragmentIndex": index, "fragmentCount": chunks.len(), "logicalBytes": text.len(),
                "dataBase64": data, "checksum": {"algorithm": "crc32", "value": sum}}).to_string()
        };
        let mut pieces: Vec<String> = chunks.iter().enumerate().map(piece).collect();
        match fault {
            24 => pieces = pieces.iter().rev().flat_map(|it| [it.clone(), it.clone()]).collect(),
            25 => drop(pieces.remove(self.next_op % pieces.len())),
            27 => self.swapped = pieces.pop(),
            _ => {}
        }
        for piece in pieces {
            self.send(&piece);
        }
    }

    fn picture(&mut self) {
        let rows: Vec<Value> = match self.next_op.checked_sub(1) {
            Some(at) => self.ops[at].1.iter().map(|it| self.shift(it)).collect(),
            None => Vec::new(),
        };
        let skip = rows.len().saturating_sub(self.chaos.window);
        let snapshot = json!({"rows": {"window": rows[skip..], "hasMore": skip > 0}, "logEpoch": format!("e{}", self.epoch)});
        let frame =
            self.framed(self.seq, self.seq, &json!({"kind": "snapshot", "snapshot": snapshot}));
        self.pictured = true;
        self.send(&frame);
    }

    /// Answers the oldest open call that the engine of this world knows.
    fn answer(&mut self, fault: u8) -> bool {
        let known = [
            "v4/connection/flow",
            "v4/conversation/subscribe",
            "v4/conversation/resync",
            "v4/conversation/rowsRange",
            "session/events",
            "session/messages",
        ];
        let Some(at) = self
            .b
            .calls
            .iter()
            .position(|(token, method, _)| *token != 0 && known.contains(method))
        else {
            return false;
        };
        let (token, method, params) = self.b.calls[at].clone();
        self.b.calls[at].0 = 0;
        self.log.push(format!("answer {method} {fault}"));
        match method {
            "v4/conversation/subscribe" => {
                self.subscriptions += 1;
                // The subscription of the beginning is as old as the session.
                self.epoch += usize::from(self.subscriptions > 1 && fault.is_multiple_of(2));
                let ack = json!({"ack": {"subscriptionId": format!("sub_{}", self.subscriptions), "mode": "snapshot", "logEpoch": format!("e{}", self.epoch)}});
                self.b.reply(token, Ok(ack));
                self.picture();
            }
            "v4/conversation/resync" if fault == 0 => {
                self.b.reply(token, Err(rpc(-32602, "unknown subscription")));
            }
            "v4/conversation/resync" => {
                self.epoch += usize::from(fault == 1);
                let sub = format!("sub_{}", self.subscriptions);
                self.b.reply(token, Ok(json!({"ack": {"subscriptionId": sub, "mode": "snapshot", "logEpoch": format!("e{}", self.epoch)}})));
                self.picture();
            }
            "v4/conversation/rowsRange" => {
                let before = params["beforeRowId"].as_u64().unwrap();
                let rows: Vec<Value> = self.ops[self.next_op.saturating_sub(1)]
                    .1
                    .iter()
                    .map(|it| self.shift(it))
                    .filter(|it| it["rowId"].as_u64().unwrap() < before)
                    .collect();
                let skip = rows.len().saturating_sub(1);
                let page = json!({"rows": rows[skip..], "hasMore": skip > 0, "atSeq": self.seq});
                let failed = self.chaos.pages_fail;
                self.b.reply(token, if failed { Err(rpc(-32603, "no rows")) } else { Ok(page) });
            }
            "session/events" => {
                let after = usize::try_from(params["afterSeq"].as_u64().unwrap()).unwrap();
                let events = self.legacy.get(after..self.next_event).unwrap_or_default().to_vec();
                self.b.reply(token, Ok(json!({ "events": events })));
            }
            _ => self.b.reply(token, Ok(json!({}))),
        }
        true
    }

    fn run(&mut self, turns: &[Told]) {
        let (mut acts, mut faults) = (
            self.chaos.acts.clone().into_iter().cycle(),
            self.chaos.faults.clone().into_iter().cycle(),
        );
        let mut n = 0;
        for (at, told) in turns.iter().enumerate() {
            self.begin(at, told);
            while self.next_event + 1 < self.legacy.len() {
                n += 1;
                let (act, fault) = (acts.next().unwrap(), faults.next().unwrap());
                // One channel may be the slower one throughout.
                let (rows, events) = [(10, 20), (4, 20), (16, 20)][usize::from(self.chaos.lean)];
                match act {
                    it if it < rows => self.frame(fault, 1 + usize::from(act % 3)),
                    it if it < events => self.event(fault),
                    _ if n >= self.chaos.picture_after => {
                        self.answer(fault);
                    }
                    _ => {}
                }
                if n > 2_000 {
                    self.event(9);
                }
            }
            self.event(9);
        }
        // The end: what was lost is fetched, and the frames that are late come after it.
        while self.answer(9) {}
        for _ in 0..80 {
            self.frame(9, 3);
            while self.answer(9) {}
        }
        self.b.pass(3_000);
        while self.answer(9) {}
        self.b.pass(3_000);
    }
}

/// What the client saw, in order: kind, message or call, text.
fn shown(updates: &[acp::SessionUpdate], own_ids: bool) -> Vec<(char, String, String)> {
    let mut out: Vec<(char, String, String)> = Vec::new();
    let mut piece = |kind: char, id: String, text: String| {
        let id = if own_ids { id.replace('r', "m") } else { id };
        match out.last_mut() {
            Some((k, same, so_far)) if kind != 'c' && *k == kind && *same == id => {
                so_far.push_str(&text);
            }
            _ => out.push((kind, id, text)),
        }
    };
    for update in updates {
        let value = serde_json::to_value(update).unwrap();
        let text = || value["content"]["text"].as_str().unwrap().to_owned();
        let id = || {
            value["messageId"]
                .as_str()
                .unwrap_or_default()
                .trim_start_matches("thought_")
                .to_owned()
        };
        match value["sessionUpdate"].as_str().unwrap() {
            "agent_message_chunk" => piece('m', id(), text()),
            "agent_thought_chunk" => piece('t', id(), text()),
            "tool_call" => {
                piece('c', value["toolCallId"].as_str().unwrap().to_owned(), String::new());
            }
            _ => {}
        }
    }
    out
}

fn wanted(turns: &[Told]) -> Vec<(char, String, String)> {
    let mut out: Vec<(char, String, String)> = Vec::new();
    for (n, told) in turns.iter().enumerate() {
        for said in &told.said {
            match said {
                Said::Text { thought, message, text } => {
                    let (kind, id) = (if *thought { 't' } else { 'm' }, format!("m{n}_{message}"));
                    match out.last_mut() {
                        Some((k, same, so_far)) if *k == kind && *same == id => {
                            so_far.push_str(text);
                        }
                        _ => out.push((kind, id, text.clone())),
                    }
                }
                Said::Call { name, .. } => out.push(('c', name.clone(), String::new())),
            }
        }
    }
    out
}

/// The state in which the client has each card at the end, and how often it was told that it ended.
fn cards(updates: &[acp::SessionUpdate]) -> HashMap<String, (Value, usize)> {
    let mut cards: HashMap<String, (Value, usize)> = HashMap::new();
    for update in updates {
        let value = serde_json::to_value(update).unwrap();
        if !matches!(value["sessionUpdate"].as_str(), Some("tool_call" | "tool_call_update")) {
            continue;
        }
        let (card, ends) =
            cards.entry(value["toolCallId"].as_str().unwrap().to_owned()).or_default();
        *ends += usize::from(matches!(value["status"].as_str(), Some("completed" | "failed")));
        for (key, value) in value.as_object().unwrap() {
            card[key] = value.clone();
        }
    }
    cards
}

/// Plays the turns and compares what was shown with what was said.
pub(super) fn is_shown_once_whole_and_in_order(
    turns: &[Told],
    chaos: &Chaos,
) -> Result<(), TestCaseError> {
    let turns = with_calls_of_their_own(turns);
    let mut w = World::new(chaos);
    w.run(&turns);
    for req in w.prompts.clone() {
        prop_assert_eq!(w.b.stop_reason(req), Some("end_turn".to_owned()));
    }
    let (mut shown, mut wanted) = (shown(&w.b.updates, chaos.own_ids), wanted(&turns));
    if chaos.nameless_events || chaos.nameless_rows {
        // Where one message ends and the next begins cannot be seen.
        (shown, wanted) = (without_names(shown), without_names(wanted));
    }
    prop_assert_eq!(shown, wanted, "{}", w.log.join("\n"));
    let cards = cards(&w.b.updates);
    for said in turns.iter().flat_map(|it| &it.said) {
        let Said::Call { name, output } = said else { continue };
        let (card, ends) = &cards[name];
        prop_assert_eq!(*ends, 1, "{} ended so often", name);
        prop_assert_eq!(card["status"].as_str(), Some("completed"));
        prop_assert_eq!(
            &card["rawInput"]["file_path"],
            &json!(format!("/w/{name}")),
            "{:?}\n{}",
            w.b.updates.iter().map(|it| json!(it).to_string()).collect::<Vec<_>>(),
            w.log.join("\n")
        );
        prop_assert!(
            card["content"].to_string().contains(output.trim()),
            "{}: {}: {}",
            output,
            card,
            w.log.join("\n")
        );
    }
    Ok(())
}

fn without_names(told: Vec<(char, String, String)>) -> Vec<(char, String, String)> {
    let mut out: Vec<(char, String, String)> = Vec::new();
    for (kind, id, text) in told {
        match out.last_mut() {
            Some((same, _, so_far)) if kind != 'c' && *same == kind => so_far.push_str(&text),
            _ => out.push((kind, if kind == 'c' { id } else { String::new() }, text)),
        }
    }
    out
}

/// Calls of different turns never have the same name.
fn with_calls_of_their_own(turns: &[Told]) -> Vec<Told> {
    let mut turns = turns.to_vec();
    for (n, told) in turns.iter_mut().enumerate() {
        for said in &mut told.said {
            if let Said::Call { name, .. } = said {
                *name = format!("t{n}_{name}");
            }
        }
    }
    turns
}

/// How many turns are tried; `PROPTEST_CASES` asks for more.
fn config(otherwise: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|it| it.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(otherwise),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_turn_told_by_two_faulty_channels_is_shown_once_whole_and_in_order(turn in turns(1..2), chaos in chaos()) {
        is_shown_once_whole_and_in_order(&turn, &chaos)?;
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn turns_told_by_two_faulty_channels_are_shown_once_whole_and_in_order(turns in turns(2..5), chaos in chaos()) {
        is_shown_once_whole_and_in_order(&turns, &chaos)?;
    }
}
