//! A search in a [`Paper`] that goes on from frame to frame.
//!
//! Owns how far it has come and what it found. A frame reads and looks through a bounded piece of
//! the text, from the top on, so that what was found stays where it is while more is read.

use ratatui::text::Line;

use super::super::code::Ink;
use super::super::highlight::Highlighter;
use super::super::markdown::stream::Brush;
use super::super::theme::Theme;
use super::{Paper, READ, Source};

/// A search under way.
#[derive(Debug, Default)]
pub(super) struct Quest {
    /// What is looked for, in lower case.
    needle: String,
    /// The part that is looked through next.
    next: usize,
    /// The rows that hold it.
    hits: Vec<usize>,
    /// Bytes that were looked through: a frame must not do more than it should.
    #[cfg(test)]
    pub(super) work: usize,
}

impl Quest {
    /// The parts from `at` on, which begin at `row`, are others now.
    pub(super) fn forget(&mut self, at: usize, row: usize) {
        if self.next > at {
            self.next = at;
            let kept = self.hits.partition_point(|hit| *hit < row);
            self.hits.truncate(kept);
        }
    }
}

/// How far a search has come.
#[derive(Debug, Clone, Copy)]
pub(in crate::tui::view) struct Found<'a> {
    /// The rows found so far, in order.
    pub(in crate::tui::view) hits: &'a [usize],
    /// All rows before this one were looked through.
    pub(in crate::tui::view) seen: usize,
    /// Nothing is left to look through.
    pub(in crate::tui::view) is_done: bool,
}

impl Paper {
    /// Looks for `needle`, which is in lower case: goes on where it was left, and takes in about
    /// `budget` bytes more.
    pub(in crate::tui::view) fn search(
        &mut self,
        needle: &str,
        budget: usize,
        theme: &Theme,
        code: &mut Highlighter,
    ) -> Found<'_> {
        if self.quest.needle != needle {
            self.quest = Quest { needle: needle.to_owned(), ..Quest::default() };
        }
        let mut left = if needle.is_empty() { 0 } else { budget };
        while left > 0 {
            let at = self.quest.next;
            let Some(part) = self.parts.get(at) else { break };
            let taken = match part.source {
                Source::Unread(number) => {
                    self.read_on(at, number);
                    READ / 4
                }
                _ if part.guessed => {
                    self.make(at, theme, code);
                    0
                }
                _ => self.look_through(at, theme),
            };
            #[cfg(test)]
            {
                self.quest.work += taken;
            }
            left = left.saturating_sub(taken.max(1));
        }
        let is_done = needle.is_empty() || self.quest.next >= self.parts.len();
        let seen = self.parts.get(self.quest.next).map_or(self.len, |part| part.first);
        Found { hits: &self.quest.hits, seen, is_done }
    }

    /// Looks through one part, whose rows are counted. Returns how many bytes it holds.
    fn look_through(&mut self, at: usize, theme: &Theme) -> usize {
        let quest = &mut self.quest;
        quest.next = at + 1;
        let Some(part) = self.parts.get_mut(at) else { return 0 };
        let mut taken = 0;
        if let Source::Read(number, rows) = &part.source {
            let Some(sheet) = self.sheets.get(*number) else { return 0 };
            let mut first = part.first;
            for n in rows.clone() {
                let found = sheet.hits(n, self.width, &quest.needle);
                quest.hits.extend(found.iter().map(|line| first + line));
                first += sheet.height(n, self.width);
                taken += sheet.row(n).text.len() + 1;
            }
            return taken;
        }
        let (first, width) = (part.first, self.width);
        let plain = part.plain.get_or_insert_with(|| match (&part.lines, &part.source) {
            (Some(lines), _) => lowered(lines),
            (None, Source::Change(change, range)) => {
                // Colours say nothing here.
                let mut code = Highlighter::off();
                let mut ink = Ink::new(&mut code);
                let sides = change.sides();
                lowered(&change.diff.lines(sides, range.clone(), width, theme, &mut ink))
            }
            (None, Source::Unit(number, unit, gap)) => {
                let mut code = Highlighter::off();
                let mut brush = Brush { width, theme, code: &mut code };
                let prose = self.proses.get(*number);
                prose.map_or_else(Vec::new, |prose| lowered(&prose.draw(unit, *gap, &mut brush).0))
            }
            (None, _) => Vec::new(),
        });
        for (line, row) in plain.iter().enumerate() {
            taken += row.len() + 1;
            if row.contains(&quest.needle) {
                quest.hits.push(first + line);
            }
        }
        taken
    }

    /// The search to its end.
    #[cfg(test)]
    pub(in crate::tui::view) fn hits(
        &mut self,
        needle: &str,
        theme: &Theme,
        code: &mut Highlighter,
    ) -> Vec<usize> {
        loop {
            let found = self.search(needle, usize::MAX, theme, code);
            if found.is_done {
                return if needle.is_empty() { Vec::new() } else { found.hits.to_vec() };
            }
        }
    }
}

fn lowered(lines: &[Line<'_>]) -> Vec<String> {
    lines.iter().map(|line| line.to_string().to_lowercase()).collect()
}
