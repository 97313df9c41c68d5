//! PURE. What a terminal card has printed, and what of a final output it has not: the result of a command holds its
//! streams whole, in part, merged line by line, cut at an end, or none of them, while a terminal can only be added to.
//! Compared by whole lines, as they look. Used by `card`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// So many bytes of what was printed are kept as text …
const TEXT_LIMIT: usize = 64 * 1024;
/// … and so many different lines from before them as check sums.
const LINES_LIMIT: usize = 8 * 1024;
/// Lines that may be parts of printed ones, as those at a cut are, are searched for; so many at most.
const SEARCHES: usize = 8;

/// What was printed, of old output only the check sums of its lines.
#[derive(Debug, Default)]
pub(super) struct Printed {
    text: String,
    older: HashMap<u64, u32>,
    /// More was printed than is remembered.
    forgot: bool,
}

impl Printed {
    /// More was printed.
    pub(super) fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        if self.text.len() < 2 * TEXT_LIMIT {
            return;
        }
        let from = self.text.floor_char_boundary(self.text.len() - TEXT_LIMIT);
        let head = self.text.get(..from).unwrap_or_default();
        let cut = head.rfind('\n').map_or(from, |at| at + 1);
        if self.older.len() > LINES_LIMIT {
            self.older = HashMap::new();
            self.forgot = true;
        }
        for line in self.text.get(..cut).unwrap_or_default().lines() {
            *self.older.entry(sum_of(line)).or_default() += 1;
        }
        self.text.drain(..cut);
    }

    /// The lines of a final output that are not there yet, as they are to be printed.
    pub(super) fn missing<'a>(&self, whole: &'a str) -> Cow<'a, str> {
        if self.text.is_empty() {
            return Cow::Borrowed(whole);
        }
        if let Some(rest) = whole.strip_prefix(&self.text).filter(|_| self.older.is_empty()) {
            return Cow::Borrowed(rest);
        }
        let mut left = self.older.clone();
        for line in self.text.lines() {
            *left.entry(sum_of(line)).or_default() += 1;
        }
        let lines: Vec<&str> = whole.split_inclusive('\n').collect();
        let mut shown: Vec<bool> = lines.iter().map(|line| take(&mut left, line)).collect();
        if self.forgot
            && let Some(first) = lines
                .iter()
                .zip(&shown)
                .position(|(line, shown)| *shown && !look_of(line).is_empty())
        {
            shown.iter_mut().take(first).for_each(|it| *it = true);
        }
        self.find_parts(&lines, &mut shown);
        Cow::Owned(self.joined(&lines, &shown))
    }

    /// Marks lines that stand inside printed ones, as what a cut left of a line does.
    fn find_parts(&self, lines: &[&str], shown: &mut [bool]) {
        let unknown = lines.iter().zip(shown).filter(|(_, shown)| !**shown);
        for (line, shown) in unknown.take(SEARCHES) {
            let line = line.trim_end();
            *shown = !line.trim_start().is_empty() && self.text.contains(line);
        }
    }

    /// The lines that are to be printed, from where the terminal's cursor stands on.
    fn joined(&self, lines: &[&str], shown: &[bool]) -> String {
        let open = self.text.rsplit('\n').next().unwrap_or_default();
        let mut out = String::new();
        for (line, _) in lines.iter().zip(shown).filter(|(_, shown)| !**shown) {
            if out.is_empty() && !open.is_empty() {
                if let Some(rest) = line.strip_prefix(open) {
                    out.push_str(rest);
                    continue;
                }
                out.push('\n');
            }
            out.push_str(line);
        }
        out
    }
}

/// True when such a line was printed; a line that was printed twice is there twice.
fn take(left: &mut HashMap<u64, u32>, line: &str) -> bool {
    let count = left.get_mut(&sum_of(line)).filter(|it| **it > 0);
    count.map(|it| *it -= 1).is_some()
}

fn sum_of(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    look_of(line).hash(&mut hasher);
    hasher.finish()
}

/// A line as it looks at the end: what was written last over it, without colours.
fn look_of(line: &str) -> Cow<'_, str> {
    let line = line.trim_end();
    let line = line.rsplit('\r').find(|it| !it.is_empty()).unwrap_or_default();
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut parts = line.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // The sequence ends with its first letter.
        let end = part.find(|c: char| ('@'..='~').contains(&c)).map_or(part.len(), |at| at + 1);
        out.push_str(part.get(end..).unwrap_or_default());
    }
    out.truncate(out.trim_end().len());
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(pieces: &[&str]) -> Printed {
        let mut printed = Printed::default();
        for piece in pieces {
            printed.push(piece);
        }
        printed
    }

    #[test]
    fn only_lines_that_are_not_there_are_printed() {
        for (before, whole, wanted) in [
            ("", "a\nb\n", "a\nb\n"),
            ("a\n", "a\nb\n", "b\n"),
            ("a\nb", "a\nbc\nd\n", "c\nd\n"),
            ("a\nb", "a\nb", ""),
            ("a\nb\n", "a\nb", ""),
            // Two streams, merged otherwise than they came; one that was not streamed.
            ("a\nb\nwarn\n", "a\nwarn\nb\nend\n", "end\n"),
            ("a\nwarn\nb\n", "a\nb\n\nend", "\nend"),
            ("b\n", "warn\na\nb\nc\n", "warn\na\nc\n"),
            // As often as it is there.
            ("ok\n", "ok\nok\nok\n", "ok\nok\n"),
            // Cut at the front, in the middle of a line.
            ("first line\nsecond\nwarn\n", "line\nsecond\nend\n", "end\n"),
            // The cursor stands in the line that goes on, or in another one.
            ("warn\nhalf a", "half a line\n", " line\n"),
            ("a\npartial", "a\nother\n", "\nother\n"),
            // As it looks.
            ("\r 20%\r 100%\n", " 100%\ndone\n", "done\n"),
            ("\u{1b}[32mok\u{1b}[0m\n", "ok\nend\n", "end\n"),
            ("a\r\nb\r\n", "a\nb\nc\n", "c\n"),
        ] {
            assert_eq!(printed(&[before]).missing(whole), wanted, "{before:?} {whole:?}");
        }
    }

    #[test]
    fn of_long_output_only_what_is_new_is_printed_and_little_is_kept() {
        let mut printed = Printed::default();
        let lines: Vec<String> =
            (0..5_000).map(|n| format!("line {n} {}\n", "x".repeat(60))).collect();
        for line in &lines {
            printed.push(line);
        }
        printed.push("warn\n");
        assert!(printed.text.len() <= 2 * TEXT_LIMIT);
        let whole = lines.concat() + "end\n";
        assert_eq!(printed.missing(&whole), "end\n");
        for n in 0..40_000 {
            printed.push(&format!("{n} {}\n", "y".repeat(60)));
        }
        assert!(printed.older.len() <= 2 * LINES_LIMIT, "{}", printed.older.len());
        let last = format!("39999 {}\n", "y".repeat(60));
        assert_eq!(printed.missing(&(lines.concat() + &last + "end\n")), "end\n");
    }

    proptest! {
        #[test]
        fn every_line_of_the_final_output_is_there_at_the_end(
            pieces in proptest::collection::vec("[ab\n\r ]{0,6}", 0..8),
            whole in "[ab\n ]{0,24}",
        ) {
            let mut printed = Printed::default();
            for piece in &pieces {
                printed.push(piece);
            }
            let shown = pieces.concat() + &printed.missing(&whole);
            for line in whole.lines() {
                prop_assert!(shown.contains(line.trim_end()), "{line:?} in {shown:?}");
            }
        }
    }
}
