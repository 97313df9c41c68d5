//! PURE. Finds out that a frame is the one before moved up or down, so that the terminal can move
//! the rows itself and only what is new has to be written. Called by [`super::screen`].

use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher};
use std::ops::Range;

use ratatui::buffer::{Buffer, Cell};

/// Rows that a move must save to be worth its own bytes and its look.
const WORTH: usize = 6;
/// Columns at the right edge that are not looked at: the scrollbar stays while the text moves.
const EDGE: u16 = 2;

/// Rows that move together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shift {
    /// The region; what leaves it is lost, and what enters is blank.
    pub(super) region: Range<u16>,
    /// How far.
    pub(super) by: u16,
    /// Which way.
    pub(super) up: bool,
}

/// Looks for a move that turns much of `shown` into `next`.
pub(super) fn find(shown: &Buffer, next: &Buffer) -> Option<Shift> {
    if shown.area != next.area {
        return None;
    }
    // Most frames of a stream change a row or two. To see that is cheap; to name every row is not.
    let changed = (0..next.area.height).filter(|y| row(shown, *y) != row(next, *y));
    if changed.take(WORTH).count() < WORTH {
        return None;
    }
    let (old, new) = (signatures(shown), signatures(next));
    let changed = old.iter().zip(&new).filter(|(old, new)| old != new).count();
    if changed < WORTH {
        return None;
    }
    let best = (1..old.len())
        .flat_map(|by| [(by, true), (by, false)])
        .map(|(by, up)| (saved(&old, &new, by, up), by, up))
        .max_by_key(|((saved, _), by, _)| (*saved, usize::MAX - by))?;
    let ((saved, rows), by, up) = best;
    if saved < WORTH {
        return None;
    }
    // The rows before the move belong to the region as well.
    let (start, end) = if up { (rows.start, rows.end + by) } else { (rows.start - by, rows.end) };
    let row = |n: usize| u16::try_from(n).ok();
    Some(Shift { region: row(start)?..row(end)?, by: row(by)?, up })
}

/// The rows of `next` from the first to the last that `by` would bring, and how many more of them
/// would be right than are now.
fn saved(old: &[Option<u64>], new: &[Option<u64>], by: usize, up: bool) -> (usize, Range<usize>) {
    let from = |y: usize| if up { y.checked_add(by) } else { y.checked_sub(by) };
    let before = |y: usize| from(y).and_then(|y| old.get(y)).copied().flatten();
    let comes =
        |y: &usize| new.get(*y).copied().flatten().is_some_and(|row| before(*y) == Some(row));
    let Some(first) = (0..new.len()).find(comes) else { return (0, 0..0) };
    let last = (0..new.len()).rfind(comes).unwrap_or(first);
    let region = first..last + 1;
    let right = region.clone().filter(comes).count();
    let right_now = region
        .clone()
        .filter(|y| old.get(*y) == new.get(*y) && new.get(*y).is_some_and(Option::is_some));
    (right.saturating_sub(right_now.count()), region)
}

/// The cells of a row.
pub(super) fn row(buffer: &Buffer, y: u16) -> &[Cell] {
    let width = usize::from(buffer.area.width);
    let start = usize::from(y) * width;
    buffer.content.get(start..start + width).unwrap_or_default()
}

/// Moves the rows as the terminal does.
pub(super) fn apply(buffer: &mut Buffer, shift: &Shift) {
    let width = usize::from(buffer.area.width);
    let cells = usize::from(shift.region.start) * width..usize::from(shift.region.end) * width;
    let Some(region) = buffer.content.get_mut(cells) else { return };
    let distance = (usize::from(shift.by) * width).min(region.len());
    let blank = if shift.up {
        region.rotate_left(distance);
        region.len() - distance..region.len()
    } else {
        region.rotate_right(distance);
        0..distance
    };
    region.get_mut(blank).unwrap_or_default().fill(Cell::EMPTY);
}

/// What stands in each row, whatever its colours; `None` for a blank one, which proves nothing.
fn signatures(buffer: &Buffer) -> Vec<Option<u64>> {
    let width = usize::from(buffer.area.width);
    let seen = usize::from(buffer.area.width.saturating_sub(EDGE));
    let row = |cells: &[Cell]| {
        let cells = cells.get(..seen).unwrap_or_default();
        let mut hasher = BuildHasherDefault::<Fnv>::new().build_hasher();
        let mut blank = true;
        for cell in cells {
            let symbol = cell.symbol();
            blank &= symbol == " ";
            hasher.write(symbol.as_bytes());
        }
        (!blank).then(|| hasher.finish())
    };
    buffer.content.chunks(width.max(1)).map(row).collect()
}

/// FNV-1a: a row is a hundred single bytes, for which the standard hasher is slow.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A screen of 20 rows: a head, 16 rows of text from this line on, and two rows of a foot.
    fn screen(from: usize) -> Buffer {
        let mut lines = vec!["head                ".to_owned()];
        lines.extend((from..from + 16).map(|n| format!("{:<18}|#", format!("line {n}"))));
        lines.extend(["-".repeat(20), format!("{:<20}", "foot")]);
        Buffer::with_lines(lines)
    }

    #[test]
    fn text_that_moved_up_is_found_and_becomes_the_next_frame_but_for_the_new_rows() {
        let (mut shown, next) = (screen(100), screen(103));
        let shift = find(&shown, &next).unwrap();
        assert_eq!(shift, Shift { region: 1..17, by: 3, up: true });
        apply(&mut shown, &shift);
        let width = usize::from(next.area.width);
        assert_eq!(shown.content[..14 * width], next.content[..14 * width]);
        assert!(shown.content[14 * width..17 * width].iter().all(|cell| *cell == Cell::EMPTY));
        assert_eq!(shown.content[17 * width..], next.content[17 * width..]);
    }

    #[test]
    fn text_that_moved_down_is_found_as_well() {
        let (mut shown, next) = (screen(100), screen(95));
        let shift = find(&shown, &next).unwrap();
        assert_eq!(shift, Shift { region: 1..17, by: 5, up: false });
        apply(&mut shown, &shift);
        let width = usize::from(next.area.width);
        assert_eq!(shown.content[6 * width..17 * width], next.content[6 * width..17 * width]);
    }

    #[test]
    fn what_did_not_move_is_left_alone() {
        assert_eq!(find(&screen(1), &screen(1)), None);
        assert_eq!(find(&screen(1), &screen(500)), None);
        let blank = Buffer::empty(screen(1).area);
        assert_eq!(find(&blank, &screen(1)), None);
        let mut one_more = screen(1);
        one_more.set_string(0, 5, "another", ratatui::style::Style::new());
        assert_eq!(find(&screen(1), &one_more), None);
    }
}
