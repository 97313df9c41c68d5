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
    /// The next fragment is not the one that came.
    #[error("fragment {got} came where {expected} was due")]
    OutOfOrder {
        /// The place that was due.
        expected: u64,
        /// The place that came.
        got: u64,
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

#[derive(Debug)]
struct Partial {
    id: String,
    count: u64,
    next: u64,
    logical_bytes: u64,
    checksum: Option<u32>,
    bytes: Vec<u8>,
    since_ms: u64,
}

/// The frame that is being put together; a topic sends one at a time.
#[derive(Debug, Default)]
pub struct Fragments {
    partial: Option<Partial>,
}

impl Fragments {
    /// Takes one fragment; returns the frame's JSON text when it was the last one.
    pub fn push(
        &mut self,
        params: &FrameParams<'_>,
        now_ms: u64,
    ) -> Result<Option<String>, FragmentError> {
        let id = params.logical_frame_id.as_ref().map_or("", |it| it.as_str());
        let index = params.fragment_index.ok_or(FragmentError::Missing("its place"))?;
        if index == 0 {
            let interrupted = self.partial.take().is_some_and(|it| it.id != id);
            self.partial = Some(begin(id, params, now_ms)?);
            if interrupted {
                // The new frame is kept: what it carries still helps when the resync is answered by deltas.
                self.append(params)?;
                return Err(FragmentError::Incomplete);
            }
        }
        let partial =
            self.partial.as_ref().ok_or(FragmentError::OutOfOrder { expected: 0, got: index })?;
        let (expected, late) = (partial.next, now_ms.saturating_sub(partial.since_ms) > MAX_AGE_MS);
        if partial.id != id || expected != index || late {
            self.partial = None;
            return Err(if late {
                FragmentError::Incomplete
            } else {
                FragmentError::OutOfOrder { expected, got: index }
            });
        }
        self.append(params)
    }

    /// Drops a frame whose last fragment is overdue; true when there was one. For the caller's timer or next frame.
    pub fn expire(&mut self, now_ms: u64) -> bool {
        self.partial.take_if(|it| now_ms.saturating_sub(it.since_ms) > MAX_AGE_MS).is_some()
    }

    /// Forgets an unfinished frame (a new subscription began); true when there was one.
    pub fn clear(&mut self) -> bool {
        self.partial.take().is_some()
    }

    fn append(&mut self, params: &FrameParams<'_>) -> Result<Option<String>, FragmentError> {
        let Some(partial) = self.partial.as_mut() else { return Err(FragmentError::Incomplete) };
        let appended = append_data(partial, params);
        if let Err(error) = appended {
            self.partial = None;
            return Err(error);
        }
        if partial.next < partial.count {
            return Ok(None);
        }
        self.partial.take().map(finish).transpose()
    }
}

fn begin(id: &str, params: &FrameParams<'_>, now_ms: u64) -> Result<Partial, FragmentError> {
    let count = params.fragment_count.ok_or(FragmentError::Missing("its count"))?;
    let logical_bytes = params.logical_bytes.ok_or(FragmentError::Missing("its length"))?;
    if count == 0 || count > MAX_FRAGMENTS || logical_bytes > MAX_BYTES {
        return Err(FragmentError::TooLarge { fragments: count, bytes: logical_bytes });
    }
    let crc = params
        .checksum
        .as_ref()
        .filter(|it| it.algorithm.as_deref().is_none_or(|name| name.eq_ignore_ascii_case("crc32")));
    Ok(Partial {
        id: id.to_owned(),
        count,
        next: 0,
        logical_bytes,
        checksum: crc.and_then(|it| crc_value(&it.value)),
        bytes: Vec::new(),
        since_ms: now_ms,
    })
}

fn append_data(partial: &mut Partial, params: &FrameParams<'_>) -> Result<(), FragmentError> {
    let data = params.data_base64.as_ref().ok_or(FragmentError::Missing("its data"))?;
    STANDARD
        .decode_vec(data.as_str(), &mut partial.bytes)
        .map_err(|_source| FragmentError::Encoding)?;
    let bytes = partial.bytes.len() as u64;
    if bytes > partial.logical_bytes {
        return Err(FragmentError::TooLarge { fragments: partial.count, bytes });
    }
    partial.next += 1;
    Ok(())
}

fn finish(partial: Partial) -> Result<String, FragmentError> {
    if partial.bytes.len() as u64 != partial.logical_bytes {
        return Err(FragmentError::Mismatch("length"));
    }
    if partial.checksum.is_some_and(|it| it != crc32fast::hash(&partial.bytes)) {
        return Err(FragmentError::Mismatch("check sum"));
    }
    String::from_utf8(partial.bytes).map_err(|_source| FragmentError::Encoding)
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
