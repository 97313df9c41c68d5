//! PURE. One subscribed topic: which frames belong to it, whether they continue what is known, and what they change.
//!
//! Frames may come before the reply to their subscribe, out of order, twice, cut into fragments, for an old subscription
//! or not at all; each of these ends either in facts or in a [`Resync`] that the session asks for. Called by the session
//! machine, which owns the clock and the requests.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::bridge::engine::halves;
use crate::bridge::engine::v4::fragments::{FragmentError, Fragments};
use crate::bridge::engine::v4::rows::{Fact, Rows};
use crate::bridge::engine::v4::state::StatePatch;
use crate::bridge::engine::v4::wire::{
    Frame, FrameParams, Op, Payload, Row, RowId, RowWindow, RowsRange, SnapshotRows,
};

/// Most frames (and their bytes) that are kept for a subscription whose reply has not come.
const MAX_EARLY: usize = 256;
const MAX_EARLY_BYTES: usize = 32 * 1024 * 1024;
/// Most pages that are asked for to fill one hole.
const MAX_PAGES: usize = 16;

/// What to make of the rows of a topic's first picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// They are known from elsewhere (replay): remember them, say nothing.
    Skip,
    /// They are news (a child's topic).
    Show,
}

/// Where a topic stands in its log; given when subscribing again or asking for a resync.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Base {
    /// The log.
    pub log_epoch: String,
    /// The last sequence number that was taken in.
    pub seq: u64,
}

/// The `ack` of a subscribe or resync.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ack {
    /// The subscription.
    pub subscription_id: String,
    /// `snapshot` or `resume`.
    pub mode: Option<String>,
    /// The log.
    pub log_epoch: Option<String>,
}

/// Why a topic has to be asked for again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Resync {
    /// Frames are missing.
    #[error("V4 frames are missing: {expected} was due, {got} came")]
    Gap {
        /// The sequence number it should have continued.
        expected: u64,
        /// The one it continued.
        got: u64,
    },
    /// A frame could not be put together.
    #[error(transparent)]
    Fragment(#[from] FragmentError),
    /// A frame could not be read.
    #[error("a V4 frame could not be read: {0}")]
    Unreadable(String),
    /// A piece came for a row that never began.
    #[error("a V4 row's beginning is missing")]
    UnknownRow,
    /// More came before the reply to the subscribe than is kept.
    #[error("too many V4 frames came before the subscription was confirmed")]
    EarlyOverflow,
    /// A picture shows the newest rows only: the ones before this row are to be asked for as pages.
    #[error("V4 rows are missing before the picture's first one")]
    Hole {
        /// The oldest row that is there.
        before: RowId,
        /// Which picture asks: pages for another one are of no use.
        picture: u64,
    },
}

/// A picture that waits for the rows between it and what is known.
#[derive(Debug)]
struct Picture {
    serial: u64,
    window: Vec<Row>,
    state: Box<StatePatch>,
    seq: Option<u64>,
    pages: usize,
}

/// One topic.
#[derive(Debug)]
pub struct Topic {
    name: String,
    history: History,
    subscription: Option<String>,
    epoch: Option<String>,
    seq: Option<u64>,
    resyncing: bool,
    shown: bool,
    early: VecDeque<String>,
    early_bytes: usize,
    early_lost: bool,
    fragments: Fragments,
    rows: Rows,
    pending: Option<Picture>,
    /// Pictures that have waited for pages.
    pictures: u64,
    /// Rows before this one were read as of that sequence number: pieces up to it are in them already.
    paged: Option<(RowId, u64)>,
}

impl Topic {
    /// Begins a topic; register it before the subscribe is sent, because frames may come first.
    pub fn new(name: impl Into<String>, history: History) -> Self {
        Self {
            name: name.into(),
            history,
            subscription: None,
            epoch: None,
            seq: None,
            resyncing: false,
            shown: false,
            early: VecDeque::new(),
            early_bytes: 0,
            early_lost: false,
            fragments: Fragments::default(),
            rows: Rows::default(),
            pending: None,
            pictures: 0,
            paged: None,
        }
    }

    /// Returns the topic's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the live subscription.
    pub fn subscription_id(&self) -> Option<&str> {
        self.subscription.as_deref()
    }

    /// Returns where the topic stands, for a resync or a new subscribe.
    pub fn base(&self) -> Option<Base> {
        Some(Base { log_epoch: self.epoch.clone()?, seq: self.seq? })
    }

    /// True while what is known may be stale: nothing has come yet, or a resync is under way.
    pub fn is_stale(&self) -> bool {
        self.subscription.is_none() || self.resyncing || self.seq.is_none()
    }

    /// Takes the reply to a subscribe, and the frames that came before it.
    pub fn subscribed(&mut self, ack: &Ack, now_ms: u64, out: &mut Vec<Fact>) -> Option<Resync> {
        if ack.mode.as_deref() != Some("resume") {
            self.seq = None;
        }
        self.take_epoch(ack.log_epoch.as_deref());
        self.subscription = Some(ack.subscription_id.clone());
        self.resyncing = false;
        self.pending = None;
        self.fragments = Fragments::default();
        self.play_early(now_ms, out)
    }

    fn play_early(&mut self, now_ms: u64, out: &mut Vec<Fact>) -> Option<Resync> {
        self.early_bytes = 0;
        let early = std::mem::take(&mut self.early);
        let mut resync = std::mem::take(&mut self.early_lost).then_some(Resync::EarlyOverflow);
        for params in early {
            resync = self.on_frame(&params, now_ms, out).or(resync);
        }
        resync
    }

    /// Takes the reply to a resync; its frames follow. A picture of another log that waited for pages is dropped, and the
    /// frames that waited with it are taken.
    pub fn resynced(&mut self, ack: &Ack, now_ms: u64, out: &mut Vec<Fact>) -> Option<Resync> {
        if !ack.subscription_id.is_empty() {
            self.subscription = Some(ack.subscription_id.clone());
        }
        let waited = self.pending.is_some();
        let other = self.take_epoch(ack.log_epoch.as_deref());
        if waited && other { self.play_early(now_ms, out) } else { None }
    }

    /// The subscription is gone (engine lost, session evicted); what is known is kept for the next one.
    pub fn unsubscribed(&mut self) {
        self.subscription = None;
        self.resyncing = false;
        self.pending = None;
        self.fragments = Fragments::default();
        self.early.clear();
        self.early_bytes = 0;
        self.early_lost = false;
    }

    /// Takes the params of one `v4/conversation/frame`. A returned [`Resync`] is to be asked for at once.
    pub fn on_frame(&mut self, params: &str, now_ms: u64, out: &mut Vec<Fact>) -> Option<Resync> {
        if self.subscription.is_none() || self.pending.is_some() {
            self.keep_early(params);
            return None;
        }
        match self.take_params(params, now_ms, out) {
            Ok(()) => None,
            Err(resync) => {
                let again =
                    self.resyncing && matches!(resync, Resync::Gap { .. } | Resync::UnknownRow);
                self.resyncing = true;
                // Frames that were under way when the resync was asked for are no news.
                (!again).then_some(resync)
            }
        }
    }

    fn take_params(
        &mut self,
        params: &str,
        now_ms: u64,
        out: &mut Vec<Fact>,
    ) -> Result<(), Resync> {
        let params: FrameParams<'_> = serde_json::from_str(params)
            .map_err(|source| Resync::Unreadable(source.to_string()))?;
        if params.subscription_id.as_ref().is_some_and(|it| !self.is_ours(it.as_str())) {
            return Ok(());
        }
        if params.kind.as_ref().is_some_and(|it| it.as_str() == "fragment") {
            let Some(text) = self.fragments.push(&params, now_ms)? else { return Ok(()) };
            return self.take_frame(&halves::mend(&text), out);
        }
        let incomplete = self.fragments.clear();
        let frame = params
            .frame
            .map(RawValue::get)
            .ok_or_else(|| Resync::Unreadable("it holds no frame".to_owned()))?;
        self.take_frame(frame, out)?;
        // A complete frame in the middle of a split one: the split one will not be completed.
        if incomplete && !self.resyncing { Err(FragmentError::Incomplete.into()) } else { Ok(()) }
    }

    fn take_frame(&mut self, frame: &str, out: &mut Vec<Fact>) -> Result<(), Resync> {
        let frame: Frame<'_> =
            serde_json::from_str(frame).map_err(|source| Resync::Unreadable(source.to_string()))?;
        if frame.subscription_id.as_ref().is_some_and(|it| !self.is_ours(it.as_str())) {
            return Ok(());
        }
        let Some(payload) = frame.payload else { return Ok(()) };
        if let Some(snapshot) = payload.snapshot {
            return self.take_snapshot(snapshot.get(), frame.to_seq, out);
        }
        if payload.kind.as_ref().is_some_and(|it| it.as_str() != "deltas") {
            return Ok(());
        }
        self.take_deltas(payload, frame.from_seq, frame.to_seq, out)
    }

    fn take_snapshot(
        &mut self,
        snapshot: &str,
        to_seq: Option<u64>,
        out: &mut Vec<Fact>,
    ) -> Result<(), Resync> {
        let unreadable = |source: serde_json::Error| Resync::Unreadable(source.to_string());
        let picture: SnapshotRows = serde_json::from_str(snapshot).map_err(unreadable)?;
        let state: StatePatch = serde_json::from_str(snapshot).map_err(unreadable)?;
        let first = self.take_epoch(picture.log_epoch.as_deref())
            || self.seq.is_none() && self.rows.is_empty();
        let seq = to_seq.or(picture.seq).or(self.seq).or(Some(0));
        let RowWindow { window, has_more } = picture.rows;
        // The first picture of a new log repeats what was shown from the old one under other ids.
        let quiet = first && (self.shown || self.history == History::Skip);
        if !quiet
            && self.rows.misses(&window, has_more)
            && let Some(before) = window.first().map(|it| it.row_id.clone())
        {
            self.pictures += 1;
            let serial = self.pictures;
            self.pending = Some(Picture { serial, window, state: Box::new(state), seq, pages: 0 });
            return Err(Resync::Hole { before, picture: serial });
        }
        let picture = Picture { serial: 0, window, state: Box::new(state), seq, pages: 0 };
        self.take_picture(picture, first, quiet, out);
        Ok(())
    }

    fn take_picture(&mut self, picture: Picture, first: bool, quiet: bool, out: &mut Vec<Fact>) {
        self.seq = picture.seq;
        self.resyncing = false;
        self.shown = true;
        let mut unsaid = Vec::new();
        let mut nameless = false;
        if quiet {
            unsaid.extend(picture.window.iter().filter_map(|it| it.turn_id.clone()));
            unsaid.dedup();
            nameless = picture.window.last().is_some_and(|it| it.turn_id.is_none());
        }
        let running = picture.window.iter().any(Row::is_running);
        let hole = quiet && !first;
        out.push(Fact::Snapshot { initial: first, hole, running, unsaid, nameless });
        self.rows.replace(picture.window, false, quiet, out);
        out.push(Fact::State(picture.state));
    }

    /// Takes a page of the rows that a [`Resync::Hole`] asked for, or `None` when they cannot be had: the picture is then
    /// remembered and nothing of its rows is said. The frames that came meanwhile follow. A page for a picture that no
    /// longer waits is passed over.
    pub fn older_rows(
        &mut self,
        serial: u64,
        page: Option<RowsRange>,
        now_ms: u64,
        out: &mut Vec<Fact>,
    ) -> Option<Resync> {
        let mut picture = self.pending.take_if(|it| it.serial == serial)?;
        let mut complete = false;
        if let Some(page) = page.filter(|_| picture.pages < MAX_PAGES) {
            picture.pages += 1;
            let first = picture.window.first().map(|it| it.row_id.clone());
            let mut rows = page.rows;
            rows.retain(|it| first.as_ref().is_none_or(|first| it.row_id < *first));
            let got_some = !rows.is_empty();
            if self.paged.is_none() || picture.pages == 1 {
                self.paged = first.zip(page.at_seq);
            }
            rows.append(&mut picture.window);
            picture.window = rows;
            if got_some && self.rows.misses(&picture.window, page.has_more) {
                let before = picture.window.first().map(|it| it.row_id.clone())?;
                self.pending = Some(picture);
                return Some(Resync::Hole { before, picture: serial });
            }
            complete = got_some || !page.has_more;
        }
        // Where nobody else has the rows, those of the picture are better than none.
        let quiet = !complete && self.history == History::Skip;
        self.take_picture(picture, false, quiet, out);
        self.play_early(now_ms, out)
    }

    fn take_deltas(
        &mut self,
        payload: Payload<'_>,
        from: Option<u64>,
        to: Option<u64>,
        out: &mut Vec<Fact>,
    ) -> Result<(), Resync> {
        let Some(seq) = self.seq else {
            return Err(Resync::Gap { expected: 0, got: from.unwrap_or(0) });
        };
        if let Some(from) = from.filter(|it| *it != seq) {
            if to.is_some_and(|it| it <= seq) {
                return Ok(());
            }
            return Err(Resync::Gap { expected: seq, got: from });
        }
        self.resyncing = false;
        if self.paged.as_ref().is_some_and(|(_, at)| seq >= *at) {
            self.paged = None;
        }
        let mut complete = true;
        for op in payload.deltas {
            match op {
                Op::Delta { row_id, .. } if self.is_in_page(&row_id, to) => {}
                Op::Delta { row_id, path, append } => {
                    complete &= self.rows.delta(&row_id, &path, append.into_owned(), out);
                }
                Op::Row(row) => self.rows.upsert(*row, false, out),
                Op::Removed(row_id) => self.rows.remove_from(&row_id, out),
                Op::State(patch) => out.push(Fact::State(patch)),
                Op::Unknown => {}
            }
        }
        self.seq = to.or(Some(seq));
        if complete { Ok(()) } else { Err(Resync::UnknownRow) }
    }

    /// Takes over the name of the log; true when it is another one, of which nothing is known.
    fn take_epoch(&mut self, epoch: Option<&str>) -> bool {
        let Some(epoch) = epoch else { return false };
        let other = self.epoch.as_deref().is_some_and(|it| it != epoch);
        self.epoch = Some(epoch.to_owned());
        if other {
            self.rows.clear();
            self.seq = None;
            self.pending = None;
            self.paged = None;
        }
        other
    }

    /// True for a piece that a page of older rows had already.
    fn is_in_page(&self, row_id: &RowId, to: Option<u64>) -> bool {
        self.paged.as_ref().is_some_and(|(before, at)| row_id < before && to <= Some(*at))
    }

    fn is_ours(&self, subscription: &str) -> bool {
        self.subscription.as_deref() == Some(subscription)
    }

    fn keep_early(&mut self, params: &str) {
        if self.early.len() >= MAX_EARLY || self.early_bytes + params.len() > MAX_EARLY_BYTES {
            self.early_lost = true;
            return;
        }
        self.early_bytes += params.len();
        self.early.push_back(params.to_owned());
    }
}

#[cfg(test)]
mod tests;
