//! Cells to bytes. Keeps what is on the screen and writes only the cells that differ, in one write
//! a frame, with the cursor put at the caret at the end of each.
//!
//! After a cell whose width terminals disagree about, the cursor is placed anew, so that one wrong
//! width never shifts what follows; nothing relies on where the cursor is after the last column.

use std::fmt::Write as _;
use std::io::Write;
use std::rc::Rc;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use super::scroll;
use crate::tui::view::link::Links;
use crate::tui::view::width;

/// What is on the screen, and what is being drawn.
#[derive(Debug)]
pub struct Screen {
    shown: Buffer,
    next: Buffer,
    /// Every cell must be written: the screen's content is not known.
    stale: bool,
    caret: Option<(u16, u16)>,
    /// What goes out before the next frame, in the same write.
    ahead: String,
    out: String,
    links: Option<Rc<Links>>,
}

/// The style that the terminal has at the moment.
#[derive(PartialEq, Eq, Clone, Copy)]
struct Pen {
    fg: Color,
    bg: Color,
    underline: Color,
    modifier: Modifier,
}

const PLAIN: Pen = Pen {
    fg: Color::Reset,
    bg: Color::Reset,
    underline: Color::Reset,
    modifier: Modifier::empty(),
};

impl Screen {
    /// Makes a screen of this size whose content is not known.
    pub fn new(columns: u16, rows: u16) -> Self {
        let area = Rect::new(0, 0, columns, rows);
        Self {
            shown: Buffer::empty(area),
            next: Buffer::empty(area),
            stale: true,
            caret: None,
            ahead: String::new(),
            out: String::new(),
            links: None,
        }
    }

    /// The area to draw in.
    pub fn area(&self) -> Rect {
        self.next.area
    }

    /// The size changed, or something else wrote to the screen: everything is written next.
    pub fn reset(&mut self, columns: u16, rows: u16) {
        let ahead = std::mem::take(&mut self.ahead);
        *self = Self { links: self.links.take(), ahead, ..Self::new(columns, rows) };
    }

    /// Sends this ahead of the next frame, in the same write: a terminal that is set up and drawn
    /// by one write shows the picture at once.
    pub fn send_ahead(&mut self, sequences: &str) {
        self.ahead.push_str(sequences);
    }

    /// Says what the numbers of links in cells stand for; without, there are no links.
    pub fn set_links(&mut self, links: Option<Rc<Links>>) {
        self.links = links;
    }

    /// The cells to draw the next frame into, empty at first.
    pub fn buffer(&mut self) -> &mut Buffer {
        &mut self.next
    }

    /// Writes what changed. `synchronized` wraps the frame so that the terminal shows it at once.
    /// Returns how many bytes were written; 0 when nothing changed.
    pub fn flush(
        &mut self,
        to: &mut impl Write,
        caret: Option<(u16, u16)>,
        synchronized: bool,
    ) -> std::io::Result<usize> {
        self.out.clear();
        let scrolled = self.scroll();
        let cells = self.encode_cells() || scrolled;
        let moved = caret != self.caret;
        if !cells && !moved && self.ahead.is_empty() {
            self.finish();
            return Ok(0);
        }
        match caret {
            Some((x, y)) => {
                let _infallible = write!(self.out, "\x1b[{};{}H", y + 1, x + 1);
                if self.caret.is_none() {
                    self.out.push_str("\x1b[?25h");
                }
            }
            None if self.caret.is_some() || self.stale => self.out.push_str("\x1b[?25l"),
            None => {}
        }
        self.caret = caret;
        if synchronized && cells {
            self.out.insert_str(0, "\x1b[?2026h");
            self.out.push_str("\x1b[?2026l");
        }
        self.finish();
        if !self.ahead.is_empty() {
            self.out.insert_str(0, &self.ahead);
            self.ahead.clear();
        }
        to.write_all(self.out.as_bytes())?;
        to.flush()?;
        Ok(self.out.len())
    }

    /// Has the terminal move the rows that only moved. The margins are put back at once; setting
    /// them moves the cursor, which is placed anew by whatever is written next.
    fn scroll(&mut self) -> bool {
        let Some(shift) = (!self.stale).then(|| scroll::find(&self.shown, &self.next)).flatten()
        else {
            return false;
        };
        let scroll::Shift { region, by, up } = &shift;
        let way = if *up { 'S' } else { 'T' };
        // What enters the region has the terminal's present background.
        let _infallible = write!(
            self.out,
            "\x1b[0m\x1b[{};{}r\x1b[{by}{way}\x1b[r",
            region.start + 1,
            region.end
        );
        scroll::apply(&mut self.shown, &shift);
        true
    }

    fn finish(&mut self) {
        std::mem::swap(&mut self.shown, &mut self.next);
        self.next.reset();
        self.stale = false;
    }

    /// Appends the changed cells to `out`; returns whether there were any.
    fn encode_cells(&mut self) -> bool {
        let area = self.next.area;
        let mut pen = PLAIN;
        let mut began = false;
        // The link that the terminal has open.
        let mut link: Option<usize> = None;
        for y in 0..area.height {
            if !self.stale && scroll::row(&self.next, y) == scroll::row(&self.shown, y) {
                continue;
            }
            // Column where the terminal's cursor surely is; `None` when it must be placed.
            let mut at: Option<u16> = None;
            let mut covered = 0u16;
            let mut run: Option<(u16, &str)> = None;
            // Cells left of this column may hold what a symbol of unsure width, there now or
            // before, has spilled into them: they are written whatever they hold.
            let mut spilled = 0u16;
            // Of a row that is not known the blank end is cleared, not written.
            let end = if self.stale { self.blank_end(y) } else { area.width };
            for x in 0..area.width {
                let (Some(new), Some(old)) = (self.next.cell((x, y)), self.shown.cell((x, y)))
                else {
                    continue;
                };
                if new != old {
                    spilled = spilled.max(x.saturating_add(reach(old.symbol())));
                }
                if covered > 0 {
                    covered -= 1;
                    continue;
                }
                if x == end {
                    set_link(&mut self.out, &mut link, None);
                    if !began || pen != PLAIN {
                        self.out.push_str("\x1b[0m");
                    }
                    (began, pen) = (true, PLAIN);
                    let _infallible = write!(self.out, "\x1b[{};{}H\x1b[K", y + 1, x + 1);
                    break;
                }
                let cells = cell_width(new).clamp(1, area.width - x);
                covered = cells - 1;
                // A wide cell whose second half was drawn over, or the reverse, differs as well.
                let same = !self.stale && new == old && self.halves_same(x, y, cells);
                if same && x >= spilled {
                    at = None;
                    continue;
                }
                if !began {
                    began = true;
                    // The style left by others is not known.
                    self.out.push_str("\x1b[0m");
                }
                let symbol = if new.symbol().is_empty() { " " } else { new.symbol() };
                // Within a run of one symbol (a rule) a wrong width shifts nothing else.
                if at != Some(x) && run != Some((x, symbol)) {
                    let _infallible = write!(self.out, "\x1b[{};{}H", y + 1, x + 1);
                }
                let here = self.links.as_ref().and_then(|links| links.address(new.underline_color));
                set_link(&mut self.out, &mut link, here.as_ref());
                pen = set_pen(&mut self.out, pen, new, here.is_some());
                // A terminal that takes a wide symbol for a narrow one would leave what was in
                // its second cell.
                if cells > 1
                    && width::needs_anchor(symbol)
                    && (self.stale || !self.is_blank(x + 1, y, cells - 1))
                {
                    let blanks = " ".repeat(usize::from(cells));
                    let _infallible = write!(self.out, "{blanks}\x1b[{};{}H", y + 1, x + 1);
                }
                self.out.push_str(symbol);
                let end = x + cells;
                let unsure = width::needs_anchor(symbol);
                // Only of single narrow ones: what is taken for wider adds up over a run.
                let narrow = cells == 1 && symbol.chars().nth(1).is_none();
                run = narrow.then_some((end, symbol));
                if unsure {
                    spilled = spilled.max(x.saturating_add(reach(symbol)));
                }
                let sure = end < area.width && !unsure;
                at = sure.then_some(end);
            }
        }
        set_link(&mut self.out, &mut link, None);
        if began && pen != PLAIN {
            self.out.push_str("\x1b[0m");
        }
        began
    }

    /// The column from which on the next frame's row is plain blanks.
    fn blank_end(&self, y: u16) -> u16 {
        let is_blank = |x: &u16| self.next.cell((*x, y)).is_some_and(|cell| *cell == Cell::EMPTY);
        let blanks = (0..self.next.area.width).rev().take_while(is_blank).count();
        self.next.area.width - u16::try_from(blanks).unwrap_or(0)
    }

    /// Whether these cells of the screen hold plain blanks.
    fn is_blank(&self, x: u16, y: u16, cells: u16) -> bool {
        (x..x.saturating_add(cells)).all(|x| {
            self.shown
                .cell((x, y))
                .is_some_and(|cell| cell.symbol() == " " && cell.bg == Color::Reset)
        })
    }

    fn halves_same(&self, x: u16, y: u16, cells: u16) -> bool {
        (1..cells).all(|i| {
            self.shown.cell((x + i, y)).is_none_or(|old| {
                self.next.cell((x + i, y)).is_none_or(|new| new.symbol() == old.symbol())
            })
        })
    }
}

/// How many cells a terminal may have given to `symbol`, whatever it should have given.
fn reach(symbol: &str) -> u16 {
    let chars = symbol.chars().count();
    let cells = width::cell_width(symbol);
    // Box drawing and the like is one cell or the terminal is unusable anyway.
    let unsure = width::needs_anchor(symbol) && (cells > 1 || chars > 1 || symbol >= "\u{2600}");
    let widest = if unsure { 2 * chars } else { cells };
    u16::try_from(widest).unwrap_or(u16::MAX)
}

fn cell_width(cell: &Cell) -> u16 {
    u16::try_from(width::cell_width(cell.symbol())).unwrap_or(1)
}

/// Opens, changes or closes a link. The number joins the pieces of one link that wraps.
fn set_link(out: &mut String, open: &mut Option<usize>, want: Option<&(usize, Rc<str>)>) {
    if *open == want.map(|(number, _)| *number) {
        return;
    }
    match want {
        Some((number, address)) => {
            let _infallible = write!(out, "\x1b]8;id=z{number};{address}\x1b\\");
        }
        None => out.push_str("\x1b]8;;\x1b\\"),
    }
    *open = want.map(|(number, _)| *number);
}

fn set_pen(out: &mut String, pen: Pen, cell: &Cell, is_link: bool) -> Pen {
    // A link's number is no colour.
    let underline = if is_link { Color::Reset } else { cell.underline_color };
    let want = Pen { fg: cell.fg, bg: cell.bg, underline, modifier: cell.modifier };
    if want == pen {
        return pen;
    }
    let gone = pen.modifier - want.modifier;
    let mut from = pen;
    out.push_str("\x1b[");
    let mut first = true;
    let mut part = |out: &mut String, text: &str| {
        if !std::mem::take(&mut first) {
            out.push(';');
        }
        out.push_str(text);
    };
    if !gone.is_empty() {
        part(out, "0");
        from = PLAIN;
    }
    for (flag, code) in [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::SLOW_BLINK, "5"),
        (Modifier::RAPID_BLINK, "6"),
        (Modifier::REVERSED, "7"),
        (Modifier::HIDDEN, "8"),
        (Modifier::CROSSED_OUT, "9"),
    ] {
        if (want.modifier - from.modifier).contains(flag) {
            part(out, code);
        }
    }
    if want.fg != from.fg {
        part(out, &color_code(want.fg, 30, 38, "39"));
    }
    if want.bg != from.bg {
        part(out, &color_code(want.bg, 40, 48, "49"));
    }
    if want.underline != from.underline {
        part(out, &color_code(want.underline, 0, 58, "59"));
    }
    out.push('m');
    want
}

fn color_code(color: Color, base: u16, extended: u16, reset: &str) -> String {
    let index = match color {
        Color::Reset => return reset.to_owned(),
        Color::Rgb(r, g, b) => return format!("{extended};2;{r};{g};{b}"),
        Color::Indexed(i) => return format!("{extended};5;{i}"),
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 8,
        Color::LightRed => 9,
        Color::LightGreen => 10,
        Color::LightYellow => 11,
        Color::LightBlue => 12,
        Color::LightMagenta => 13,
        Color::LightCyan => 14,
        Color::White => 15,
    };
    match (base, index) {
        // Underline colours have no short form.
        (0, i) => format!("{extended};5;{i}"),
        (base, i) if i < 8 => (base + i).to_string(),
        (base, i) => (base + 60 + i - 8).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Style;

    fn frame(screen: &mut Screen, rows: &[(&str, Style)]) -> String {
        for (y, (text, style)) in rows.iter().enumerate() {
            let y = u16::try_from(y).unwrap();
            screen.buffer().set_string(0, y, *text, *style);
        }
        let mut out = Vec::new();
        screen.flush(&mut out, Some((0, 0)), false).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn parsed(bytes: &str, columns: u16, rows: u16) -> vt100::Parser {
        let mut parser = vt100::Parser::new(rows, columns, 0);
        parser.process(bytes.as_bytes());
        parser
    }

    #[test]
    fn a_frame_that_changes_nothing_writes_nothing() {
        let mut s = Screen::new(10, 2);
        assert!(!frame(&mut s, &[("hello", Style::new())]).is_empty());
        assert_eq!(frame(&mut s, &[("hello", Style::new())]), "");
    }

    #[test]
    fn the_first_frame_clears_the_blank_end_of_each_row_and_goes_out_with_what_sets_the_terminal_up()
     {
        let mut s = Screen::new(80, 24);
        s.send_ahead("\x1b[?1049h");
        let rows =
            [("  hello", Style::new()), ("red", Style::new().bg(Color::Red)), ("中", Style::new())];
        let out = frame(&mut s, &rows);
        assert!(out.starts_with("\x1b[?1049h\x1b[0m") && out.len() < 700, "{out:?}");
        let mut terminal = vt100::Parser::new(24, 80, 0);
        terminal.process("x".repeat(80 * 24).as_bytes());
        terminal.process(out.replace("\x1b[?1049h", "").as_bytes());
        assert_eq!(terminal.screen().contents().trim_end(), "  hello\nred\n中");
        assert_eq!(terminal.screen().cell(1, 3).unwrap().bgcolor(), vt100::Color::Default);
        assert_eq!(frame(&mut s, &rows), "", "it is known what is on the screen");
    }

    #[test]
    fn only_the_changed_cells_are_written() {
        let mut s = Screen::new(80, 24);
        frame(&mut s, &[("hello world", Style::new())]);
        let second = frame(&mut s, &[("hello wOrld", Style::new())]);
        assert_eq!(second, "\x1b[0m\x1b[1;8HO\x1b[1;1H");
    }

    #[test]
    fn what_is_written_reads_back_as_drawn_with_wide_characters_replaced() {
        let mut s = Screen::new(12, 2);
        let first =
            frame(&mut s, &[("你好 world", Style::new().fg(Color::Red)), ("ab", Style::new())]);
        let second = frame(&mut s, &[("a你x world", Style::new().bold()), ("", Style::new())]);
        let p = parsed(&(first + &second), 12, 2);
        assert_eq!(p.screen().contents().trim_end(), "a你x world");
        assert!(p.screen().cell(0, 0).unwrap().bold());
        assert_eq!(p.screen().cell(0, 0).unwrap().fgcolor(), vt100::Color::Default);
    }

    #[test]
    fn text_that_runs_through_the_screen_is_moved_by_the_terminal_and_ends_equal() {
        let rows = |from: usize| -> Vec<String> {
            let text = (from..from + 20).map(|n| format!("{:<30}", format!("line {n} of a text")));
            std::iter::once(format!("{:<30}", "head"))
                .chain(text)
                .chain([format!("{:<30}", "foot")])
                .collect()
        };
        let mut s = Screen::new(30, 22);
        let mut all = String::new();
        for (n, from) in (0..40).chain([37, 20, 55]).enumerate() {
            let lines = rows(from);
            let lines: Vec<_> = lines.iter().map(|l| (l.as_str(), Style::new())).collect();
            let bytes = frame(&mut s, &lines);
            all += &bytes;
            let screen = parsed(&all, 30, 22);
            let contents = screen.screen().contents();
            let found: Vec<&str> = contents.lines().map(str::trim_end).collect();
            let wanted: Vec<&str> = lines.iter().map(|(l, _)| l.trim_end()).collect();
            assert_eq!(found, wanted, "from {from}");
            if (1..40).contains(&n) {
                assert!(bytes.len() < 90, "one new row is written: {bytes:?}");
            }
        }
    }

    #[test]
    fn no_frame_clears_the_screen() {
        let mut s = Screen::new(20, 3);
        let mut all = String::new();
        for i in 0..20 {
            all += &frame(&mut s, &[(&format!("line {i}"), Style::new())]);
        }
        assert!(!all.contains("\x1b[2J") && !all.contains("\x1b[3J"));
    }

    #[test]
    fn what_an_unsure_symbol_may_spill_into_is_written_again() {
        let mut s = Screen::new(20, 1);
        frame(&mut s, &[("          ", Style::new())]);
        let out = frame(&mut s, &[("🇪🇺        ", Style::new())]);
        let p = parsed(&out, 20, 1);
        assert_eq!(p.screen().contents().trim_end(), "🇪🇺");
        assert!(out.contains("🇪🇺\x1b[1;3H  "), "{out:?}");
    }

    /// Some terminals (tmux 3.3) give each half of a flag a cell of its own. The half must go when
    /// the flag goes, though the cell below it looks blank before and after.
    #[test]
    fn what_an_unsure_symbol_had_spilled_into_is_written_when_it_goes() {
        let mut s = Screen::new(12, 1);
        frame(&mut s, &[("a 🇪🇺 b", Style::new())]);
        let out = frame(&mut s, &[("a      c", Style::new())]);
        assert!(out.contains("\x1b[1;3H    ") || out.contains("\x1b[1;3H     "), "{out:?}");
        let mut s = Screen::new(12, 1);
        frame(&mut s, &[("a 🇪🇺 b", Style::new())]);
        let out = frame(&mut s, &[("a中      c", Style::new())]);
        assert!(out.contains("中\x1b[1;4H   "), "{out:?}");
    }

    #[test]
    fn a_wide_symbol_that_the_terminal_takes_for_narrow_leaves_nothing_of_before() {
        let mut s = Screen::new(20, 1);
        let first = frame(&mut s, &[("careful", Style::new())]);
        let second = frame(&mut s, &[("a⚠\u{fe0f}|      ", Style::new())]);
        let p = parsed(&(first + &second), 20, 1);
        assert_eq!(p.screen().contents().trim_end(), "a⚠\u{fe0f} |");
    }

    #[test]
    fn links_go_around_their_cells_and_take_no_width() {
        let links = Rc::new(Links::default());
        let tag = links.tag("https://a.example/long").unwrap();
        let mut s = Screen::new(12, 2);
        s.set_links(Some(Rc::clone(&links)));
        let linked = Style { underline_color: Some(tag), ..Style::new() };
        s.buffer().set_string(2, 0, "label", linked);
        s.buffer().set_string(7, 0, " ok", Style::new());
        s.buffer().set_string(0, 1, "more", linked);
        let mut out = Vec::new();
        s.flush(&mut out, None, false).unwrap();
        let out = String::from_utf8(out).unwrap();
        let open = "\x1b]8;id=z0;https://a.example/long\x1b\\";
        assert!(out.contains(&format!("{open}label\x1b]8;;\x1b\\ ok")), "{out:?}");
        assert_eq!(out.matches(open).count(), 2, "{out:?}");
        assert_eq!(out.matches("\x1b]8;;").count(), 2, "{out:?}");
        assert!(!out.contains("58;2"), "the number is not sent as a colour: {out:?}");
        let p = parsed(&out, 12, 2);
        let rows: Vec<String> = p.screen().rows(0, 12).collect();
        assert_eq!(
            rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>(),
            ["  label ok", "more"]
        );
        // The same label with another address is written again.
        let other = links.tag("https://b.example").unwrap();
        s.buffer().set_string(2, 0, "label", Style { underline_color: Some(other), ..linked });
        s.buffer().set_string(7, 0, " ok", Style::new());
        s.buffer().set_string(0, 1, "more", linked);
        let mut out = Vec::new();
        s.flush(&mut out, None, false).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("https://b.example\x1b\\label"));
    }

    #[test]
    fn an_unsure_width_is_followed_by_a_placed_cursor() {
        let mut s = Screen::new(20, 1);
        let out = frame(&mut s, &[("⚠\u{fe0f}|x", Style::new())]);
        let after = out.split('\u{fe0f}').nth(1).unwrap();
        assert!(after.starts_with("\x1b[1;"), "{out:?}");
    }
}
