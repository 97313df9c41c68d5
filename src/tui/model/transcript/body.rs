//! Text of any size in bounded memory: what is kept, what went to disk, and in what order.
//!
//! Owns [`Body`] and the queue of [`SpillWrite`]s. Must not touch the disk: the writes are facts
//! that the application loop carries out (see `tui::spill`). Called by the transcript model.

/// Names one spilled text. The application loop maps it to a private file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpillKey(pub u64);

/// One append to a spilled text. Writes of one key must be carried out in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillWrite {
    /// The text that grows.
    pub key: SpillKey,
    /// What is appended.
    pub text: String,
}

/// The writes that wait for the application loop, and the counter that names new texts.
#[derive(Debug, Default)]
pub struct SpillQueue {
    next: u64,
    /// Whether someone carries the writes out; else they are forgotten.
    kept: bool,
    waiting: Vec<SpillWrite>,
}

impl SpillQueue {
    fn new_key(&mut self) -> SpillKey {
        self.next += 1;
        SpillKey(self.next)
    }

    fn push(&mut self, key: SpillKey, text: &str) {
        if !self.kept {
            return;
        }
        if let Some(last) = self.waiting.last_mut()
            && last.key == key
        {
            last.text.push_str(text);
            return;
        }
        self.waiting.push(SpillWrite { key, text: text.to_owned() });
    }

    /// Keeps writes for [`SpillQueue::take`] from now on.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Hands over the waiting writes.
    pub fn take(&mut self) -> Vec<SpillWrite> {
        std::mem::take(&mut self.waiting)
    }
}

/// Bytes of a tool's text that stay in memory before the rest goes to disk.
pub const OUTPUT_CAP: usize = 128 * 1024;
/// Bytes of one side of a diff that stay in memory; a diff needs both sides whole.
pub const DIFF_CAP: usize = 2 * 1024 * 1024;
/// What is kept at the front of a text that outgrew its cap.
const HEAD: usize = 16 * 1024;
/// What is kept of an evicted text: enough for the collapsed card.
const EVICTED: usize = 2 * 1024;

/// A text that only grows at its end or is replaced as a whole.
///
/// Up to its cap it is kept whole. Beyond, the whole text is spilled, and memory holds its first
/// bytes ([`Body::head`]) and its last ([`Body::tail`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    head: String,
    tail: String,
    dropped: u64,
    newlines: u64,
    total: u64,
    cap: usize,
    epoch: u32,
    generation: u32,
    spill: Option<SpillKey>,
}

impl Body {
    /// Makes an empty text that is kept whole up to `cap` bytes.
    pub fn with_cap(cap: usize) -> Self {
        Self { cap, ..Self::default() }
    }

    /// Appends `text`, in time proportional to `text`.
    pub fn append(&mut self, text: &str, spills: &mut SpillQueue) {
        if text.is_empty() {
            return;
        }
        self.total += text.len() as u64;
        self.newlines += text.bytes().filter(|b| *b == b'\n').count() as u64;
        if let Some(key) = self.spill {
            spills.push(key, text);
            self.tail.push_str(text);
            self.trim_tail();
            return;
        }
        self.head.push_str(text);
        if self.head.len() > self.cap {
            self.spill_now(spills);
            self.tail = self.head.split_off(floor(&self.head, HEAD.min(self.cap)));
            self.trim_tail();
            self.head.shrink_to_fit();
        }
    }

    /// Makes the text equal to `text`. When `text` continues what is there, only the rest is
    /// appended, so that a cumulative sender costs no more than one that sends deltas.
    /// Returns whether anything changed.
    pub fn replace(&mut self, text: &str, spills: &mut SpillQueue) -> bool {
        if let Some(rest) = self.continuation(text) {
            self.append(rest, spills);
            return !rest.is_empty();
        }
        let epoch = self.epoch.wrapping_add(1);
        let generation = self.generation.wrapping_add(1);
        *self = Self { cap: self.cap, epoch, generation, ..Self::default() };
        self.append(text, spills);
        true
    }

    fn continuation<'a>(&self, text: &'a str) -> Option<&'a str> {
        let total = usize::try_from(self.total).ok()?;
        let (known, rest) = text.split_at_checked(total)?;
        (known.starts_with(self.head.as_str()) && known.ends_with(self.tail.as_str()))
            .then_some(rest)
    }

    fn spill_now(&mut self, spills: &mut SpillQueue) {
        let key = spills.new_key();
        spills.push(key, &self.head);
        self.spill = Some(key);
    }

    /// Trims at twice the size, so that the cost is spread over the bytes that came in.
    fn trim_tail(&mut self) {
        if self.tail.len() <= self.cap {
            return;
        }
        let mut cut = floor(&self.tail, self.tail.len() - self.cap / 2);
        if let Some((before, _)) = self
            .tail
            .get(cut..)
            .and_then(|rest| rest.get(..floor(rest, 4096)))
            .and_then(|near| near.split_once('\n'))
        {
            cut += before.len() + 1;
        }
        self.tail.drain(..cut);
        // Room that one huge piece took is not needed again.
        if self.tail.capacity() > self.cap * 2 {
            self.tail.shrink_to_fit();
        }
        self.dropped += cut as u64;
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Puts the text on disk and keeps only its last bytes. Returns how many bytes were freed.
    pub fn evict(&mut self, spills: &mut SpillQueue) -> usize {
        let before = self.resident();
        if before <= EVICTED * 2 {
            return 0;
        }
        if self.spill.is_none() {
            self.spill_now(spills);
        }
        let mut kept = std::mem::take(&mut self.tail);
        let head = std::mem::take(&mut self.head);
        if kept.is_empty() {
            kept = head;
        }
        let cut = ceil(&kept, kept.len().saturating_sub(EVICTED));
        self.tail = kept.split_off(cut);
        self.dropped = self.total - self.tail.len() as u64;
        self.epoch = self.epoch.wrapping_add(1);
        before - self.resident()
    }

    /// The first bytes; the whole text when [`Body::is_whole`].
    pub fn head(&self) -> &str {
        &self.head
    }

    /// The last bytes; the head when the text is whole.
    pub fn tail(&self) -> &str {
        if self.spill.is_some() { &self.tail } else { &self.head }
    }

    /// The whole text, when it is all in memory.
    pub fn whole(&self) -> Option<&str> {
        self.spill.is_none().then_some(self.head.as_str())
    }

    /// Whether memory holds all of it.
    pub fn is_whole(&self) -> bool {
        self.spill.is_none()
    }

    /// Bytes that exist on disk only.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Where the whole text was spilled to, once it was.
    pub fn spill(&self) -> Option<SpillKey> {
        self.spill
    }

    /// Length in bytes, counting what is on disk.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Lines, counting what is on disk; a last line without a line feed counts.
    pub fn lines(&self) -> u64 {
        let open = self.tail().as_bytes().last().is_some_and(|b| *b != b'\n');
        self.newlines + u64::from(open)
    }

    /// Changes when [`Body::tail`] is no longer a continuation of what it was.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Changes when the text is another one, not the same with more at its end.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// What came after the first `known` bytes, as long as memory holds all of it.
    pub fn since(&self, known: u64) -> Option<&str> {
        let new = usize::try_from(self.total.checked_sub(known)?).ok()?;
        let held = self.tail();
        held.get(held.len().checked_sub(new)?..)
    }

    /// Bytes held in memory.
    pub fn resident(&self) -> usize {
        self.head.len() + self.tail.len()
    }
}

/// The last char boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The first char boundary at or after `at`.
fn ceil(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_text_stays_whole_and_counts_lines() {
        let mut spills = SpillQueue::default();
        spills.keep();
        let mut body = Body::with_cap(OUTPUT_CAP);
        body.append("a\nb", &mut spills);
        assert_eq!(body.whole(), Some("a\nb"));
        assert_eq!(body.lines(), 2);
        assert!(spills.take().is_empty());
    }

    #[test]
    fn everything_that_outgrows_the_cap_is_on_disk_in_order() {
        let mut spills = SpillQueue::default();
        spills.keep();
        let mut body = Body::with_cap(64 * 1024);
        let mut all = String::new();
        let mut disk = String::new();
        for n in 0..40_000 {
            let line = format!("line {n} 中\n");
            all.push_str(&line);
            body.append(&line, &mut spills);
            for write in spills.take() {
                disk.push_str(&write.text);
            }
            assert!(body.resident() <= 64 * 1024 + HEAD + 64);
        }
        assert_eq!(disk, all);
        assert!(all.starts_with(body.head()) && all.ends_with(body.tail()));
        assert_eq!(body.lines(), 40_000);
        assert_eq!(
            body.dropped(),
            body.len() - body.resident() as u64,
            "what is missing is what was dropped"
        );
    }

    #[test]
    fn what_is_new_is_had_from_memory_and_another_text_is_no_continuation() {
        let mut spills = SpillQueue::default();
        let mut body = Body::with_cap(OUTPUT_CAP);
        let mut known = 0;
        for n in 0..30_000 {
            let line = format!("line {n} 中\n");
            body.append(&line, &mut spills);
            assert_eq!(body.since(known), Some(line.as_str()));
            known = body.len();
        }
        assert_eq!(body.since(known), Some(""));
        assert_eq!((body.since(0), body.since(known + 1)), (None, None));
        let generation = body.generation();
        body.replace("other", &mut spills);
        assert_ne!(body.generation(), generation);
    }

    #[test]
    fn memory_keeps_no_room_for_what_is_only_on_disk() {
        let mut spills = SpillQueue::default();
        spills.keep();
        let huge = "a line of output\n".repeat(1 << 16);
        let mut body = Body::with_cap(OUTPUT_CAP);
        for _ in 0..3 {
            body.append(&huge, &mut spills);
            let room = body.head.capacity() + body.tail.capacity();
            assert!(room <= OUTPUT_CAP * 2 + HEAD, "{room} bytes held");
        }
        let disk: usize = spills.take().iter().map(|write| write.text.len()).sum();
        assert_eq!(disk, huge.len() * 3);
    }

    #[test]
    fn a_cumulative_sender_only_appends() {
        let mut spills = SpillQueue::default();
        spills.keep();
        let mut body = Body::with_cap(OUTPUT_CAP);
        assert!(body.replace("one\n", &mut spills));
        let epoch = body.epoch();
        assert!(body.replace("one\ntwo\n", &mut spills));
        assert_eq!(body.epoch(), epoch);
        assert!(!body.replace("one\ntwo\n", &mut spills));
        assert!(body.replace("other", &mut spills));
        assert_ne!(body.epoch(), epoch);
        assert_eq!(body.whole(), Some("other"));
    }

    #[test]
    fn an_evicted_text_keeps_its_end_and_its_copy_on_disk() {
        let mut spills = SpillQueue::default();
        spills.keep();
        let mut body = Body::with_cap(OUTPUT_CAP);
        let text = "0123456789 ünï\n".repeat(5000);
        body.append(&text, &mut spills);
        assert!(body.evict(&mut spills) > 50_000);
        assert!(body.resident() <= EVICTED);
        let disk: String = spills.take().into_iter().map(|w| w.text).collect();
        assert_eq!(disk, text);
        assert!(text.ends_with(body.tail()));
        assert_eq!(body.evict(&mut spills), 0);
    }
}
