//! PURE. Puts the fragments of a frame together again, within bounds: at most 1024 fragments, 16 MiB and 30 s for one
//! frame (engine protocol section 8). Whatever is wrong is a [`FragmentError`], and the topic then asks for a resync.
//! Called by [`super::topic`] with the clock of its caller.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use thiserror::Error;

use crate::bridge::engine::v4::wire::FrameParams;

/// Most fragments of one frame.
pub const MAX_FRAGMENTS: u64 = 1024;
/// Most bytes of one frame.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// Longest time from a frame's first fragment to its last, in milliseconds.
pub const MAX_AGE_MS: u64 = 30_000;

/// Why a frame could not be put together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FragmentError {
    /// A fragment without its place, count, length or data.
    #[error("a fragment lacks {0}")]
    Missing(&'static str),
    /// More than [`MAX_FRAGMENTS`] or [`MAX_BYTES`].
    #[error("a fragmented frame is too large ({fragments} fragments, {bytes} bytes)")]
    TooLarge {
        /// What it declares.
        fragments: u64,
        /// What it declares, or what came.
        bytes: u64,
    },
    /// A fragment that its frame has no place for.
    #[error("fragment {index} of {count} has no place")]
    Misplaced {
        /// Its place.
        index: u64,
        /// How many there are.
        count: u64,
    },
    /// A new frame began before the last one was complete, or its last fragment is overdue.
    #[error("a fragmented frame was not completed")]
    Incomplete,
    /// The data is not base64.
    #[error("a fragment's data is not base64")]
    Encoding,
    /// The bytes are not those that were sent.
    #[error("a fragmented frame's {0} does not match")]
    Mismatch(&'static str),
}

/// What the fragments of one frame have in common. A name alone may come again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    id: String,
    logical_bytes: Option<u64>,
    checksum: Option<u32>,
}

impl Name {
    fn of(params: &FrameParams<'_>) -> Self {
        let is_crc = |name: &str| name.eq_ignore_ascii_case("crc32");
        let crc = params.checksum.as_ref();
        let crc = crc.filter(|it| it.algorithm.as_deref().is_none_or(is_crc));
        Self {
            id: params.logical_frame_id.as_ref().map_or("", |it| it.as_str()).to_owned(),
            logical_bytes: params.logical_bytes,
            checksum: crc.and_then(|it| crc_value(&it.value)),
        }
    }
}

#[derive(Debug)]
struct Partial {
    name: Name,
    parts: Vec<Option<Vec<u8>>>,
    missing: usize,
    bytes: u64,
    logical_bytes: u64,
    since_ms: u64,
}

/// The frame that is being put together; a topic sends one at a time. Its fragments may come in any order, and twice.
#[derive(Debug, Default)]
pub struct Fragments {
    partial: Option<Partial>,
    /// The last frame that was complete, or failed: what still comes of it is no news.
    over: Option<(Name, Result<(), ()>)>,
}

impl Fragments {
    /// Takes one fragment; returns the frame's JSON text when it was the last one that was missing.
    pub fn push(
        &mut self,
        params: &FrameParams<'_>,
        now_ms: u64,
    ) -> Result<Option<String>, FragmentError> {
        let name = Name::of(params);
        let index = params.fragment_index.ok_or(FragmentError::Missing("its place"))?;
        if self.is_over(&name, index) {
            return Ok(None);
        }
        if self.expire(now_ms) {
            self.over = Some((name, Err(())));
            return Err(FragmentError::Incomplete);
        }
        let next = self.partial.take_if(|it| it.name != name).is_some();
        match self.take(&name, index, params, now_ms) {
            Err(error) => {
                self.partial = None;
                self.over = Some((name, Err(())));
                Err(error)
            }
            // The new frame is kept: what it carries still helps when the resync is answered by deltas.
            Ok(None) if next => Err(FragmentError::Incomplete),
            Ok(text) => {
                if text.is_some() {
                    self.over = Some((name, Ok(())));
                }
                Ok(text)
            }
        }
    }

    /// True for what is left of a frame that was complete, or that failed unless it begins anew.
    fn is_over(&self, name: &Name, index: u64) -> bool {
        let over = self.over.as_ref().filter(|(over, _)| over == name && self.partial.is_none());
        over.is_some_and(|(_, end)| end.is_ok() || index != 0)
    }

    /// Drops a frame whose last fragment is overdue; true when there was one. For the caller's timer or next frame.
    pub fn expire(&mut self, now_ms: u64) -> bool {
        self.partial.take_if(|it| now_ms.saturating_sub(it.since_ms) > MAX_AGE_MS).is_some()
    }

    /// Forgets an unfinished frame; true when there was one.
    pub fn clear(&mut self) -> bool {
        self.partial.take().is_some()
    }

    fn take(
        &mut self,
        name: &Name,
        index: u64,
        params: &FrameParams<'_>,
        now_ms: u64,
    ) -> Result<Option<String>, FragmentError> {
        if self.partial.is_none() {
            self.partial = Some(begin(name, params, now_ms)?);
        }
        let Some(partial) = self.partial.as_mut() else { return Ok(None) };
        put(partial, index, params)?;
        if partial.missing > 0 {
            return Ok(None);
        }
        self.partial.take().map(finish).transpose()
    }
}

fn begin(name: &Name, params: &FrameParams<'_>, now_ms: u64) -> Result<Partial, FragmentError> {
    let count = params.fragment_count.ok_or(FragmentError::Missing("its count"))?;
    let logical_bytes = params.logical_bytes.ok_or(FragmentError::Missing("its length"))?;
    if count == 0 || count > MAX_FRAGMENTS || logical_bytes > MAX_BYTES {
        return Err(FragmentError::TooLarge { fragments: count, bytes: logical_bytes });
    }
    let missing = usize::try_from(count).unwrap_or(usize::MAX);
    Ok(Partial {
        name: name.clone(),
        parts: vec![None; missing],
        missing,
        bytes: 0,
        logical_bytes,
        since_ms: now_ms,
    })
}

fn put(partial: &mut Partial, index: u64, params: &FrameParams<'_>) -> Result<(), FragmentError> {
    let count = partial.parts.len() as u64;
    let place = usize::try_from(index).ok().and_then(|at| partial.parts.get_mut(at));
    let part = place.ok_or(FragmentError::Misplaced { index, count })?;
    if part.is_some() {
        return Ok(());
    }
    let data = params.data_base64.as_ref().ok_or(FragmentError::Missing("its data"))?;
    let bytes = STANDARD.decode(data.as_str()).map_err(|_source| FragmentError::Encoding)?;
    partial.bytes += bytes.len() as u64;
    if partial.bytes > partial.logical_bytes {
        return Err(FragmentError::TooLarge { fragments: count, bytes: partial.bytes });
    }
    partial.missing -= 1;
    *part = Some(bytes);
    Ok(())
}

fn finish(partial: Partial) -> Result<String, FragmentError> {
    if partial.bytes != partial.logical_bytes {
        return Err(FragmentError::Mismatch("length"));
    }
    let bytes = partial.parts.into_iter().flatten().collect::<Vec<_>>().concat();
    if partial.name.checksum.is_some_and(|it| it != crc32fast::hash(&bytes)) {
        return Err(FragmentError::Mismatch("check sum"));
    }
    String::from_utf8(bytes).map_err(|_source| FragmentError::Encoding)
}

/// Reads a check sum: an integer (also a negative one, as 32 bits), or its hexadecimal text with or without `0x`.
fn crc_value(value: &Value) -> Option<u32> {
    if let Some(number) = value.as_i64() {
        return u32::try_from(number)
            .ok()
            .or_else(|| i32::try_from(number).ok().map(i32::cast_unsigned));
    }
    let text = value.as_str()?.trim();
    u32::from_str_radix(text.trim_start_matches("0x").trim_start_matches("0X"), 16).ok()
}

#[cfg(test)]
mod tests;
