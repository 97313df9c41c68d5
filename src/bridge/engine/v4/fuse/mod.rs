//! PURE. Joins what the two channels say about a turn's texts, so that each byte is shown once, by whichever channel has
//! it first.
//!
//! A text (a message part, a thought part, a tool's input) is one [`Stream`] with a single emitted length. The channel that
//! is ahead shows its piece; the other one, when it gets there, is compared with what was shown and adds only what goes
//! beyond. So V4 rows (every 30 ms) lead while they flow, and the legacy events (every 250 ms or 2 KiB) take over in the
//! middle of a word when they stop, and the other way round. Both channels keep their own order, and a channel says all of
//! one text before the next one, so the joined order is right too.
//!
//! **Which row is which message part.** A row's `assistantResponseId` or `entityId` equals the legacy `assistantMessageId`
//! on the builds seen; the n-th text of a message is then the n-th on both sides. Once one pair of equal ids was seen, ids
//! alone decide. Until then (a build with two id spaces) texts are matched by kind and order, and the pairs are remembered.
//!
//! **When they disagree** (the follower's text is not what was shown), the follower is not heard any more for that text:
//! the stored message, read at the turn's end, settles what is missing. Nothing is shown twice.
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
    /// The part within the message.
    pub part: Option<&'a str>,
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
    turn: Option<String>,
    owners: Both<Option<String>>,
    shown_owner: Option<String>,
    part: Option<String>,
    row: Option<RowId>,
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
    /// The legacy text that is being written, for builds that do not name parts.
    open: Option<u64>,
    /// The newest ordinal each channel has claimed.
    claimed: Both<Option<u64>>,
    /// V4 ids and the legacy ids they stand for.
    aliases: HashMap<String, String>,
    same_ids: bool,
    /// The turn of the next piece.
    turn: Option<String>,
    same_turns: bool,
    rows_live: bool,
}

impl Fuse {
    /// Says whether V4 frames flow: only then is text kept for comparison.
    pub fn set_rows_live(&mut self, live: bool) {
        self.rows_live = live;
    }

    /// Says which turn the next pieces stand in, as their channel names it.
    pub fn enter_turn(&mut self, turn: Option<&str>) {
        if self.turn.as_deref() != turn {
            self.turn = turn.map(str::to_owned);
        }
    }

    /// Both channels name turns alike: from now on texts of different turns are never the same text.
    pub fn turns_are_shared(&mut self) {
        self.same_turns = true;
    }

    /// Takes a piece of a legacy text; returns what is to be shown of it.
    pub fn on_legacy(&mut self, key: LegacyKey<'_>, text: &str) -> Option<Shown> {
        if text.is_empty() {
            return None;
        }
        let ordinal = self.legacy_stream(key, text);
        self.open = Some(ordinal);
        self.advance(ordinal, Channel::Legacy, text)
    }

    /// Something else came on the legacy channel: text after it is another part, unless parts are named.
    pub fn break_legacy(&mut self) {
        self.open = None;
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
        let known = self.rows.get(row).copied().filter(|it| *it >= self.first);
        let ordinal = known.unwrap_or_else(|| self.row_stream(row, kind, owner, piece));
        self.advance(ordinal, Channel::Rows, &piece.text)
    }

    /// The row was written anew or is gone: it is not heard any more for its text.
    pub fn mute_row(&mut self, row: &RowId) {
        if let Some(ordinal) = self.rows.get(row).copied()
            && let Some(stream) = self.stream(ordinal)
        {
            stream.mute(Channel::Rows);
        }
    }

    fn advance(&mut self, ordinal: u64, channel: Channel, text: &str) -> Option<Shown> {
        let keep = self.rows_live;
        let stream = self.stream(ordinal)?;
        if *stream.muted.of(channel) {
            return None;
        }
        let fresh = if stream.leader == channel {
            text
        } else {
            let Some(fresh) = stream.ahead.consume(text) else {
                stream.mute(channel);
                stream.ahead = Ahead::default();
                return None;
            };
            if fresh.is_empty() {
                return None;
            }
            stream.leader = channel;
            fresh
        };
        if !*stream.muted.of(channel.other()) {
            stream.ahead.push(fresh, keep);
        }
        Some(Shown { owner: stream.shown_owner.clone(), text: fresh.to_owned() })
    }

    fn legacy_stream(&mut self, key: LegacyKey<'_>, text: &str) -> u64 {
        let is_same = |it: &Stream| {
            it.has(Channel::Legacy)
                && it.kind == key.kind
                && it.owner(Channel::Legacy) == key.owner
                && it.part.as_deref() == key.part
        };
        if let Some(open) = self.open
            && self.stream(open).is_some_and(|it| is_same(it))
        {
            return open;
        }
        if key.part.is_some() || key.kind == TextKind::Input {
            let found = self.streams.iter().rposition(is_same);
            if let Some(at) = found {
                return self.first + at as u64;
            }
        }
        let ordinal = self.claim(Channel::Legacy, key.kind, key.owner, text, true);
        if let Some(stream) = self.stream(ordinal) {
            stream.part = key.part.map(str::to_owned);
        }
        ordinal
    }

    fn row_stream(
        &mut self,
        row: &RowId,
        kind: TextKind,
        owner: Option<&str>,
        piece: &Piece,
    ) -> u64 {
        let whole = piece.at == 0;
        let ordinal = self.claim(Channel::Rows, kind, owner, &piece.text, whole);
        self.rows.insert(row.clone(), ordinal);
        if let Some(stream) = self.stream(ordinal) {
            stream.row = Some(row.clone());
        }
        ordinal
    }

    /// Finds the text that the other channel may have begun, or begins one. A channel that does not have a text from its
    /// beginning cannot be compared: the other one shows it alone.
    fn claim(
        &mut self,
        channel: Channel,
        kind: TextKind,
        owner: Option<&str>,
        text: &str,
        whole: bool,
    ) -> u64 {
        let owner = owner.filter(|it| !it.is_empty());
        let free = |it: &Stream| !it.has(channel) && it.kind == kind && self.may_be_of_turn(it);
        let by_id = owner.and_then(|id| {
            let mut found = self
                .streams
                .iter()
                .enumerate()
                .filter(|(_, it)| free(it) && it.owner(channel.other()) == Some(id));
            let first = found.next()?;
            // The first part that is alike: a channel may have missed the one before it.
            let alike = |it: &Stream| it.ahead.begins_like(text);
            let other = if alike(first.1) { None } else { found.find(|(_, it)| alike(it)) };
            Some(other.map_or(first.0, |(at, _)| at))
        });
        let found = by_id.or_else(|| {
            let ids_decide = kind == TextKind::Input || (self.same_ids && owner.is_some());
            if ids_decide { None } else { self.by_order(channel, kind, text) }
        });
        self.same_ids |= by_id.is_some() && kind != TextKind::Input;
        if let Some(at) = found {
            let ordinal = self.first + at as u64;
            let newest = self.claimed.of_mut(channel);
            *newest = (*newest).max(Some(ordinal));
            let mut pair = None;
            if let Some(stream) = self.streams.get_mut(at) {
                *stream.claimed.of_mut(channel) = true;
                *stream.owners.of_mut(channel) = owner.map(str::to_owned);
                *stream.muted.of_mut(channel) |= !whole;
                if let Both { legacy: Some(legacy), rows: Some(row) } = &stream.owners {
                    pair = (legacy != row).then(|| (row.clone(), legacy.clone()));
                }
            }
            if let Some((row, legacy)) = pair {
                self.remember_alias(row, legacy);
            }
            return ordinal;
        }
        self.begin(channel, kind, owner, whole)
    }

    /// False for a text of another turn than the one the next piece stands in.
    fn may_be_of_turn(&self, stream: &Stream) -> bool {
        let known = self.same_turns && self.turn.is_some() && stream.turn.is_some();
        !known || self.turn == stream.turn
    }

    /// The first text of this kind that only the other channel has, after the last one both have.
    fn by_order(&self, channel: Channel, kind: TextKind, text: &str) -> Option<usize> {
        let after = self.claimed.of(channel).map_or(0, |it| {
            usize::try_from((it + 1).saturating_sub(self.first)).unwrap_or(usize::MAX)
        });
        let mut candidates = self
            .streams
            .iter()
            .enumerate()
            .skip(after)
            .filter(|(_, it)| !it.has(channel) && it.kind == kind && self.may_be_of_turn(it));
        let first = candidates.next()?;
        if first.1.ahead.begins_like(text) {
            return Some(first.0);
        }
        // The first one says something else: this channel may have missed it.
        candidates
            .find(|(_, it)| !it.ahead.text.is_empty() && it.ahead.begins_like(text))
            .map(|(at, _)| at)
            .or(Some(first.0))
    }

    fn begin(&mut self, channel: Channel, kind: TextKind, owner: Option<&str>, whole: bool) -> u64 {
        let shown_owner =
            owner.map(|it| self.aliases.get(it).map_or(it, String::as_str).to_owned());
        let mut stream = Stream {
            kind,
            turn: self.turn.clone(),
            owners: Both::default(),
            shown_owner,
            part: None,
            row: None,
            claimed: Both::default(),
            muted: Both::default(),
            leader: channel,
            ahead: Ahead::default(),
        };
        *stream.owners.of_mut(channel) = owner.map(str::to_owned);
        *stream.claimed.of_mut(channel) = true;
        // Its beginning is not known, but the legacy channel has all of it.
        *stream.muted.of_mut(channel) = !whole;
        self.streams.push_back(stream);
        let ordinal = self.first + self.streams.len() as u64 - 1;
        *self.claimed.of_mut(channel) = Some(ordinal);
        let settled = self.streams.len().checked_sub(COMPARED + 1);
        if let Some(old) = settled.and_then(|at| self.streams.get_mut(at)) {
            old.ahead.forget_text();
        }
        if self.streams.len() > MAX_STREAMS
            && let Some(oldest) = self.streams.pop_front()
        {
            self.first += 1;
            if let Some(row) = oldest.row {
                self.rows.remove(&row);
            }
        }
        ordinal
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
