//! Text of others (models, files, services, engines) on a terminal: what would act on the terminal,
//! or hide or reorder what people read, is written out as an escape. Pure; the one place that knows
//! which characters those are. Called by every command that prints for people; what goes to a pipe
//! or into JSON stays as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

/// One line: a name, a title, a command. Line ends and tabs are written out too.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    Printer { last: None, keeps_lines: false }.push(text)
}

/// Text of many lines, which keeps its line ends and tabs.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    Printer::new().push(text)
}

/// [`text`] for text that comes in pieces: a character that joins two others may be the first of a
/// piece.
#[derive(Debug, Clone)]
pub struct Printer {
    last: Option<char>,
    keeps_lines: bool,
}

impl Default for Printer {
    fn default() -> Self {
        Self::new()
    }
}

impl Printer {
    /// At the beginning of a text.
    #[must_use]
    pub fn new() -> Self {
        Self { last: None, keeps_lines: true }
    }

    /// The next piece, as it may be printed.
    pub fn push<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        let plain = |c: char| !is_hidden(c) && !is_joiner(c) && !c.is_control();
        if piece.chars().all(plain) {
            self.last = piece.chars().next_back().or(self.last);
            return Cow::Borrowed(piece);
        }
        let mut out = String::with_capacity(piece.len() + 16);
        let mut chars = piece.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\n' | '\t' if self.keeps_lines => out.push(c),
                // A line end of other systems; at the end of a piece its other half is still to come.
                '\r' if self.keeps_lines && matches!(chars.peek(), None | Some('\n')) => {}
                '\n' | '\t' | '\r' => out.extend(c.escape_default()),
                c if is_joiner(c) && self.last.is_some_and(|last| can_be_joined(last, c)) => {
                    out.push(c);
                }
                c if is_joiner(c) || is_hidden(c) || c.is_control() => {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "{}", c.escape_unicode());
                    self.last = None;
                    continue;
                }
                c => out.push(c),
            }
            self.last = Some(c);
        }
        Cow::Owned(out)
    }
}

/// What a character does without being seen. One table for all that show text of others: each says
/// which of these it writes out, so that none forgets a character that another knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unseen {
    /// C0, DEL and C1.
    Control,
    /// Begins a line where nobody expects it.
    Separator,
    /// Reorders what stands around it.
    Bidi,
    /// Takes no room: word joiners, marks of annotations, formats of scripts.
    ZeroWidth,
    /// Joins or parts letters; many scripts and every second emoji need it.
    Joiner,
    /// Chooses between text and picture: what emoji are made with.
    Picture,
    /// Chooses another shape of what stands before it.
    Selector,
    /// Looks like a blank and counts as a letter.
    Filler,
    /// Carries a text of its own that nothing shows.
    Tag,
    /// A hyphen that is there only at the end of a line.
    SoftHyphen,
    /// A blank that is not the blank.
    Blank,
}

impl Unseen {
    /// What `c` is of these; `None` for what is seen, the blank and the rest of ASCII.
    #[must_use]
    pub fn of(c: char) -> Option<Self> {
        Some(match c {
            ' '..='~' => return None,
            '\0'..='\u{9f}' => Self::Control,
            '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{2800}'
            | '\u{3000}' => Self::Blank,
            '\u{ad}' => Self::SoftHyphen,
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => Self::Bidi,
            '\u{2028}' | '\u{2029}' => Self::Separator,
            '\u{200c}' | '\u{200d}' => Self::Joiner,
            '\u{fe0e}' | '\u{fe0f}' => Self::Picture,
            '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0d}' => Self::Selector,
            '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => Self::Filler,
            '\u{34f}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' => Self::ZeroWidth,
            '\u{e0000}'..='\u{e0fff}' => Self::Tag,
            _ => return None,
        })
    }

    /// Whether `c` is one of those in `classes`.
    #[must_use]
    pub fn is_in(c: char, classes: &[Self]) -> bool {
        Self::of(c).is_some_and(|class| classes.contains(&class))
    }
}

/// What is written out wherever text is printed; joiners and picture selectors only where they
/// have nothing to join.
const WRITTEN_OUT: [Unseen; 7] = [
    Unseen::Separator,
    Unseen::Bidi,
    Unseen::ZeroWidth,
    Unseen::Selector,
    Unseen::Filler,
    Unseen::Tag,
    Unseen::SoftHyphen,
];

/// Characters that change or hide what surrounds them without being seen.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    Unseen::is_in(c, &WRITTEN_OUT)
}

fn is_joiner(c: char) -> bool {
    Unseen::is_in(c, &[Unseen::Joiner, Unseen::Picture])
}

/// Whether a joiner or picture selector does something where it stands. Between letters of ASCII
/// it has nothing to do but to hide; `1️⃣` is a picture of a digit.
#[must_use]
pub fn can_be_joined(last: char, joiner: char) -> bool {
    let selects = matches!(joiner, '\u{fe0e}' | '\u{fe0f}');
    let repeated = is_joiner(last) && (selects || !matches!(last, '\u{fe0e}' | '\u{fe0f}'));
    (!last.is_ascii() && !repeated) || (selects && matches!(last, '0'..='9' | '#' | '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_acts_on_the_terminal_or_hides() {
        let mut unsafe_ones: Vec<char> = ('\0'..' ').chain('\u{7f}'..'\u{a0}').collect();
        unsafe_ones.extend("\u{ad}\u{61c}\u{115f}\u{180e}\u{200b}\u{200c}\u{200d}\u{200e}".chars());
        unsafe_ones.extend("\u{202a}\u{202e}\u{2066}\u{2069}\u{2060}\u{3164}\u{ffa0}".chars());
        unsafe_ones.extend("\u{feff}\u{fe00}\u{fe0f}\u{e0001}\u{e0041}\u{e0100}\u{2028}".chars());
        for c in unsafe_ones {
            let given = format!("a{c}b");
            let shown = line(&given);
            assert!(!shown.contains(c) && shown.starts_with("a\\"), "{c:?}: {shown}");
            let kept = matches!(c, '\n' | '\t');
            assert_eq!(text(&given).contains(c), kept, "{c:?}");
        }
        assert_eq!(line("x\u{1b}[2J\u{202e}\n"), "x\\u{1b}[2J\\u{202e}\\n");
    }

    #[test]
    fn every_unseen_character_is_in_one_class_and_what_is_seen_in_none() {
        use Unseen::{Bidi, Blank, Control, Filler, Joiner, Picture, Selector, Separator};
        let table: [(Unseen, &str); 11] = [
            (Control, "\0\u{1b}\n\t\r\u{7f}\u{80}\u{85}\u{9b}\u{9f}"),
            (Separator, "\u{2028}\u{2029}"),
            (
                Bidi,
                "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}",
            ),
            (
                Unseen::ZeroWidth,
                "\u{34f}\u{17b4}\u{180e}\u{200b}\u{2060}\u{2064}\u{206a}\u{feff}\u{fffa}\u{1bca1}\u{1d173}",
            ),
            (Joiner, "\u{200c}\u{200d}"),
            (Picture, "\u{fe0e}\u{fe0f}"),
            (Selector, "\u{180b}\u{180f}\u{fe00}\u{fe0d}"),
            (Filler, "\u{115f}\u{1160}\u{3164}\u{ffa0}"),
            (Unseen::Tag, "\u{e0001}\u{e0020}\u{e007f}\u{e0100}\u{e01ef}"),
            (Unseen::SoftHyphen, "\u{ad}"),
            (Blank, "\u{a0}\u{1680}\u{2000}\u{200a}\u{202f}\u{205f}\u{2800}\u{3000}"),
        ];
        for (class, characters) in table {
            for c in characters.chars() {
                assert_eq!(Unseen::of(c), Some(class), "{c:?}");
            }
        }
        for c in " aZ~0é中한👩☎♀️·—…".chars().filter(|c| *c != '\u{fe0f}') {
            assert_eq!(Unseen::of(c), None, "{c:?}");
        }
    }

    #[test]
    fn ordinary_text_of_any_script_stays_as_it_is() {
        for plain in ["", "GLM-5 «ok» – fine", "模型", "می‌خواهم", "👩‍💻 ❤️‍🔥 1️⃣ ☎︎", "e\u{301}"]
        {
            assert_eq!(line(plain), plain);
            assert_eq!(text(plain), plain);
        }
        assert!(matches!(line("plain"), Cow::Borrowed("plain")));
        assert_eq!(text("a\r\n\tb\rc"), "a\n\tb\\rc");
    }

    #[test]
    fn a_joiner_alone_or_in_a_row_is_written_out() {
        assert_eq!(line("\u{200d}é"), "\\u{200d}é");
        assert_eq!(line("é\u{200d}\u{200d}\u{200d}é"), "é\u{200d}\\u{200d}\\u{200d}é");
        assert_eq!(line("é\u{fe0f}\u{fe0f}"), "é\u{fe0f}\\u{fe0f}");
    }

    #[test]
    fn text_in_pieces_is_shown_as_text_in_one() {
        let whole = "👩‍💻\r\nx\u{200d}\u{1b}[0m ❤️‍🔥";
        let mut printer = Printer::new();
        let mut buffer = [0; 4];
        let pieces: String =
            whole.chars().map(|c| printer.push(c.encode_utf8(&mut buffer)).into_owned()).collect();
        assert_eq!(pieces, text(whole));
    }
}
