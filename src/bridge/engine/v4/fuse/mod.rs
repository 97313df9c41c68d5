//! PURE. Joins what the two channels say about a turn's texts, so that each byte is shown once, by whichever channel has
//! it first.
//!
//! A text (a message's words, its thoughts, a tool's input) is one [`Stream`] with a single emitted length. The channel that
//! is ahead shows its piece; the other one, when it gets there, is compared with what was shown and adds only what goes
//! beyond. So V4 rows (every 30 ms) lead while they flow, and the legacy events (every 250 ms or 2 KiB) take over in the
//! middle of a word when they stop, and the other way round. Both channels keep their own order, and a channel says all of
//! one text before the next one, so the joined order is right too.
//!
//! **Parts make no difference.** All words of a message are one text, in however many parts the legacy channel or rows the V4
//! channel cuts them: both say them in the same order, and a client joins them by the message's id.
//!
//! **Which message of one channel is which of the other.** A row's `assistantResponseId` or `entityId` equals the legacy
//! `assistantMessageId` on the builds seen. Once one pair of equal ids was seen, ids alone decide. Until then (a build with
//! two id spaces) texts are matched by kind and order, and the pairs are remembered. A channel that names no messages at all
//! tells the texts of a turn as one; it is led from message to message by the other one.
//!
//! **When they disagree**, rows are not heard any more for that text. What the legacy channel says is always shown: it alone
//! numbers what it says, so nothing of it is missing. In doubt a word stands there twice rather than not at all.
//!
//! Called by the session machine. Bounded: [`MAX_STREAMS`] texts, [`MAX_AHEAD`] bytes of comparison each.

use std::collections::{HashMap, VecDeque};

use crate::bridge::engine::v4::rows::Piece;
use crate::bridge::engine::v4::wire::RowId;

/// Most texts that are remembered; an older one is not heard of any more.
const MAX_STREAMS: usize = 512;
/// How many of the newest texts are kept to compare with.
const COMPARED: usize = 16;
/// Most bytes that are kept to compare with; beyond, lengths alone decide.
const MAX_AHEAD: usize = 256 * 1024;
/// Most pairs of ids that are remembered.
const MAX_ALIASES: usize = 512;

/// What kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextKind {
    /// Of the message.
    Message,
    /// A thought.
    Thought,
    /// A tool's input, as JSON text.
    Input,
}

/// The two channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Channel {
    Legacy,
    Rows,
}

impl Channel {
    fn other(self) -> Self {
        match self {
            Self::Legacy => Self::Rows,
            Self::Rows => Self::Legacy,
        }
    }
}

/// Where a legacy piece stands.
#[derive(Debug, Clone, Copy)]
pub struct LegacyKey<'a> {
    /// What kind of text.
    pub kind: TextKind,
    /// The message, or the tool call for [`TextKind::Input`].
    pub owner: Option<&'a str>,
}

/// Where a piece of either channel stands.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    channel: Channel,
    kind: TextKind,
    owner: Option<&'a str>,
}

/// What is to be shown of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The message (or the tool call) it is shown under; the same for both channels.
    pub owner: Option<String>,
    /// The part that was not shown yet.
    pub text: String,
}

/// One text, as both channels have it.
#[derive(Debug)]
struct Stream {
    kind: TextKind,
    /// The turn, as each channel names it.
    turns: Both<Option<String>>,
    /// Which of the turns that have no name, for the legacy channel.
    serial: u64,
    owners: Both<Option<String>>,
    shown_owner: Option<String>,
    rows: Vec<RowId>,
    claimed: Both<bool>,
    muted: Both<bool>,
    leader: Channel,
    ahead: Ahead,
}

/// A pair with one value per channel.
#[derive(Debug, Clone, Default)]
struct Both<T> {
    legacy: T,
    rows: T,
}

impl<T> Both<T> {
    fn of(&self, channel: Channel) -> &T {
        match channel {
            Channel::Legacy => &self.legacy,
            Channel::Rows => &self.rows,
        }
    }

    fn of_mut(&mut self, channel: Channel) -> &mut T {
        match channel {
            Channel::Legacy => &mut self.legacy,
            Channel::Rows => &mut self.rows,
        }
    }
}

impl Stream {
    fn has(&self, channel: Channel) -> bool {
        *self.claimed.of(channel)
    }

    fn owner(&self, channel: Channel) -> Option<&str> {
        self.owners.of(channel).as_deref()
    }

    fn is_muted(&self, channel: Channel) -> bool {
        *self.muted.of(channel)
    }

    fn mute(&mut self, channel: Channel) {
        *self.muted.of_mut(channel) = true;
    }
}

/// What the leader showed beyond where the follower is.
#[derive(Debug, Default)]
struct Ahead {
    text: VecDeque<u8>,
    /// Bytes after `text` that were not kept.
    blind: usize,
}

impl Ahead {
    fn push(&mut self, text: &str, keep: bool) {
        if keep && self.blind == 0 && self.text.len() + text.len() <= MAX_AHEAD {
            self.text.extend(text.as_bytes());
        } else {
            self.blind += text.len();
        }
    }

    /// Compares with the follower's piece; returns what of it goes beyond, or `None` when they differ.
    fn consume<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let known = self.text.len().min(text.len());
        let same = self.text.iter().take(known).eq(text.as_bytes().iter().take(known));
        if !same {
            return None;
        }
        self.text.drain(..known);
        let rest = text.get(known..)?;
        let skip = self.blind.min(rest.len());
        self.blind -= skip;
        Some(rest.get(rest.ceil_char_boundary(skip)..).unwrap_or_default())
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.blind == 0
    }

    /// Keeps the length alone.
    fn forget_text(&mut self) {
        self.blind += std::mem::take(&mut self.text).len();
    }

    /// True when a follower whose first piece this is may be the same text.
    fn begins_like(&self, text: &str) -> bool {
        let known = self.text.len().min(text.len());
        self.text.iter().take(known).eq(text.as_bytes().iter().take(known))
    }
}

/// The joined texts of one session.
#[derive(Debug, Default)]
pub struct Fuse {
    streams: VecDeque<Stream>,
    /// Ordinal of the first remembered stream.
    first: u64,
    rows: HashMap<RowId, u64>,
    /// The text that each channel is at.
    open: Both<Option<u64>>,
    /// V4 ids and the legacy ids they stand for.
    aliases: HashMap<String, String>,
    same_ids: bool,
    /// The turn of the next piece.
    turn: Option<String>,
    /// Turns that the legacy channel began.
    serial: u64,
    same_turns: bool,
    rows_expected: bool,
}

impl Fuse {
    /// Says whether rows may come, now or later: only then is text kept for comparison.
    pub fn expect_rows(&mut self, expected: bool) {
        self.rows_expected = expected;
    }

    /// Says which turn the next pieces stand in, as their channel names it.
    pub fn enter_turn(&mut self, turn: Option<&str>) {
        if self.turn.as_deref() != turn {
            self.turn = turn.map(str::to_owned);
        }
    }

    /// A turn began on the legacy channel: where turns have no names, texts before it are of another one.
    pub fn turn_begins(&mut self) {
        self.serial += 1;
    }

    /// Both channels name turns alike: from now on texts of different turns are never the same text.
    pub fn turns_are_shared(&mut self) {
        self.same_turns = true;
    }

    /// True once [`Self::turns_are_shared`] was said.
    pub fn shares_turns(&self) -> bool {
        self.same_turns
    }

    /// Takes a piece of a legacy text; returns what is to be shown of it.
    pub fn on_legacy(&mut self, key: LegacyKey<'_>, text: &str) -> Option<Shown> {
        if text.is_empty() {
            return None;
        }
        let owner = key.owner.filter(|it| !it.is_empty());
        let at = Place { channel: Channel::Legacy, kind: key.kind, owner };
        let ordinal = self.known(at).unwrap_or_else(|| self.claim(at, text));
        self.advance(ordinal, at, text)
    }

    /// Takes a piece of a row's text; returns what is to be shown of it. `owner` is the message (or the tool call).
    pub fn on_row(
        &mut self,
        row: &RowId,
        kind: TextKind,
        owner: Option<&str>,
        piece: &Piece,
    ) -> Option<Shown> {
        if piece.text.is_empty() {
            return None;
        }
        let owner = owner.filter(|it| !it.is_empty());
        let at = Place { channel: Channel::Rows, kind, owner };
        let by_row = self.rows.get(row).copied().filter(|it| *it >= self.first);
        let ordinal = by_row.unwrap_or_else(|| self.row_begins(row, at, piece));
        let shown = self.advance(ordinal, at, &piece.text);
        if let Some(led) = self.open.rows.filter(|it| *it != ordinal) {
            self.row_stands_in(row, led);
        }
        shown
    }

    /// The row was written anew or is gone: it is not heard any more for its text.
    pub fn mute_row(&mut self, row: &RowId) {
        if let Some(ordinal) = self.rows.get(row).copied()
            && let Some(stream) = self.stream(ordinal)
        {
            stream.mute(Channel::Rows);
        }
    }

    fn row_begins(&mut self, row: &RowId, at: Place<'_>, piece: &Piece) -> u64 {
        let ordinal = self.known(at).unwrap_or_else(|| self.claim(at, &piece.text));
        self.row_stands_in(row, ordinal);
        if let Some(stream) = self.stream(ordinal) {
            // Its beginning is not known, but the legacy channel has all of it.
            *stream.muted.of_mut(Channel::Rows) |= piece.at != 0;
        }
        ordinal
    }

    fn row_stands_in(&mut self, row: &RowId, ordinal: u64) {
        self.rows.insert(row.clone(), ordinal);
        if let Some(stream) = self.stream(ordinal) {
            stream.rows.push(row.clone());
        }
    }

    fn advance(&mut self, ordinal: u64, at: Place<'_>, text: &str) -> Option<Shown> {
        let (channel, keep) = (at.channel, self.rows_expected);
        *self.open.of_mut(channel) = Some(ordinal);
        let stream = self.stream(ordinal)?;
        if stream.is_muted(channel) {
            return None;
        }
        let mut fresh = text;
        if stream.leader != channel {
            match stream.ahead.consume(text) {
                Some("") => return None,
                Some(beyond) => fresh = beyond,
                None => {
                    stream.ahead = Ahead::default();
                    stream.mute(Channel::Rows);
                    if channel == Channel::Rows {
                        return None;
                    }
                }
            }
        }
        if let Some(next) = self.led_on(ordinal, at, fresh) {
            return self.advance(next, at, fresh);
        }
        let stream = self.stream(ordinal)?;
        stream.leader = channel;
        if !stream.is_muted(channel.other()) {
            stream.ahead.push(fresh, keep);
        }
        Some(Shown { owner: stream.shown_owner.clone(), text: fresh.to_owned() })
    }

    /// The text this channel has of that owner already.
    fn known(&self, at: Place<'_>) -> Option<u64> {
        let is_it = |it: &Stream| {
            it.has(at.channel)
                && it.kind == at.kind
                && it.owner(at.channel) == at.owner
                && *it.turns.of(at.channel) == self.turn
                && (at.channel == Channel::Rows || self.turn.is_some() || it.serial == self.serial)
        };
        let place = |ordinal: u64| usize::try_from(ordinal.checked_sub(self.first)?).ok();
        let open = self
            .open
            .of(at.channel)
            .filter(|it| place(*it).and_then(|at| self.streams.get(at)).is_some_and(is_it));
        open.or_else(|| Some(self.first + self.streams.iter().rposition(is_it)? as u64))
    }

    /// Where a channel that names no messages goes on once it has said all that the other one had of a message.
    fn led_on(&mut self, ordinal: u64, at: Place<'_>, text: &str) -> Option<u64> {
        let stays = |it: &Stream| !it.ahead.is_empty();
        if at.owner.is_some()
            || at.kind == TextKind::Input
            || self.stream(ordinal).is_none_or(|it| stays(it))
        {
            return None;
        }
        let after = usize::try_from((ordinal + 1).checked_sub(self.first)?).ok()?;
        let (found, next) = self
            .streams
            .iter()
            .enumerate()
            .skip(after)
            .find(|(_, it)| self.is_free(it, at) && it.kind == at.kind)?;
        if !next.ahead.begins_like(text) {
            return None;
        }
        Some(self.take(found, at))
    }

    /// Finds the text that the other channel may have begun, or begins one.
    fn claim(&mut self, at: Place<'_>, text: &str) -> u64 {
        let by_id = at.owner.and_then(|id| {
            let is_it =
                |it: &Stream| self.is_free(it, at) && it.owner(at.channel.other()) == Some(id);
            self.streams.iter().position(is_it)
        });
        self.same_ids |= by_id.is_some() && at.kind != TextKind::Input;
        let found = by_id.or_else(|| self.by_order(at, text));
        if let Some(found) = found {
            return self.take(found, at);
        }
        self.joined(at, text).unwrap_or_else(|| self.begin(at))
    }

    /// True for a text of that kind and turn which only the other channel has.
    fn is_free(&self, stream: &Stream, at: Place<'_>) -> bool {
        stream.has(at.channel.other())
            && !stream.has(at.channel)
            && stream.kind == at.kind
            && self.may_be_of_turn(stream, at.channel)
    }

    /// False for a text of another turn than the one the next piece stands in.
    fn may_be_of_turn(&self, stream: &Stream, channel: Channel) -> bool {
        let theirs = stream.turns.of(channel.other());
        let known = self.same_turns && self.turn.is_some() && theirs.is_some();
        !known || self.turn == *theirs
    }

    /// The first text of this kind and turn that only the other channel has, after the last one both have, unless it says
    /// something else: then this channel may have missed it, and the next one that is alike is it. One whose words were not
    /// kept proves nothing.
    fn by_order(&self, at: Place<'_>, text: &str) -> Option<usize> {
        if at.kind == TextKind::Input {
            return None;
        }
        let ids_decide = self.same_ids && at.owner.is_some();
        let both =
            |it: &Stream| it.kind == at.kind && it.has(Channel::Legacy) && it.has(Channel::Rows);
        let after = self.streams.iter().rposition(both).map_or(0, |it| it + 1);
        let mut candidates = self.streams.iter().enumerate().skip(after).filter(|(_, it)| {
            let decided = ids_decide && it.owner(at.channel.other()).is_some();
            self.is_free(it, at) && !decided && it.serial == self.serial
        });
        let alike = |it: &Stream| !it.ahead.text.is_empty() && it.ahead.begins_like(text);
        candidates.find(|(_, it)| alike(it)).map(|it| it.0)
    }

    /// The other channel names no messages, and is ahead with the words of the last one both have: this is what follows there.
    fn joined(&mut self, at: Place<'_>, text: &str) -> Option<u64> {
        at.owner?;
        let both =
            |it: &Stream| it.kind == at.kind && it.has(Channel::Legacy) && it.has(Channel::Rows);
        let found = self.streams.iter().rposition(both)?;
        let stream = self.streams.get(found)?;
        let theirs = at.channel.other();
        let follows = stream.owner(theirs).is_none()
            && stream.leader == theirs
            && !stream.ahead.is_empty()
            && stream.ahead.begins_like(text)
            && self.may_be_of_turn(stream, at.channel);
        follows.then(|| self.take(found, at))
    }

    /// From here on this channel has that text too.
    fn take(&mut self, found: usize, at: Place<'_>) -> u64 {
        let (turn, serial) = (self.turn.clone(), self.serial);
        let mut pair = None;
        if let Some(stream) = self.streams.get_mut(found) {
            *stream.claimed.of_mut(at.channel) = true;
            *stream.owners.of_mut(at.channel) = at.owner.map(str::to_owned);
            *stream.turns.of_mut(at.channel) = turn;
            if at.channel == Channel::Legacy {
                stream.serial = serial;
            }
            if let Both { legacy: Some(legacy), rows: Some(row) } = &stream.owners {
                pair = (legacy != row).then(|| (row.clone(), legacy.clone()));
            }
        }
        if let Some((row, legacy)) = pair {
            self.remember_alias(row, legacy);
        }
        self.first + found as u64
    }

    fn begin(&mut self, at: Place<'_>) -> u64 {
        let shown_owner =
            at.owner.map(|it| self.aliases.get(it).map_or(it, String::as_str).to_owned());
        let mut stream = Stream {
            kind: at.kind,
            turns: Both::default(),
            serial: self.serial,
            owners: Both::default(),
            shown_owner,
            rows: Vec::new(),
            claimed: Both::default(),
            muted: Both::default(),
            leader: at.channel,
            ahead: Ahead::default(),
        };
        stream.turns.of_mut(at.channel).clone_from(&self.turn);
        *stream.owners.of_mut(at.channel) = at.owner.map(str::to_owned);
        *stream.claimed.of_mut(at.channel) = true;
        self.streams.push_back(stream);
        let settled = self.streams.len().checked_sub(COMPARED + 1);
        if let Some(old) = settled.and_then(|at| self.streams.get_mut(at)) {
            old.ahead.forget_text();
        }
        if self.streams.len() > MAX_STREAMS
            && let Some(oldest) = self.streams.pop_front()
        {
            self.first += 1;
            for row in oldest.rows {
                self.rows.remove(&row);
            }
        }
        self.first + self.streams.len() as u64 - 1
    }

    fn remember_alias(&mut self, row: String, legacy: String) {
        if self.aliases.len() >= MAX_ALIASES {
            self.aliases.clear();
        }
        self.aliases.insert(row, legacy);
    }

    fn stream(&mut self, ordinal: u64) -> Option<&mut Stream> {
        let at = usize::try_from(ordinal.checked_sub(self.first)?).ok()?;
        self.streams.get_mut(at)
    }
}

#[cfg(test)]
mod tests;
