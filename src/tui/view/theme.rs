//! Colours and glyphs: the only file that names raw colours.
//!
//! Owns [`Theme`], a plain value made once from what the terminal can do. Must not ask the
//! terminal anything itself. Every view takes a `&Theme`.

use std::rc::Rc;

use ratatui::style::{Color, Modifier, Style};

use super::link::Links;

/// How many colours the terminal takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColorDepth {
    /// 24-bit colours.
    TrueColor,
    /// The 256-colour palette.
    Indexed,
    /// The 16 colours of the terminal's own theme.
    Ansi,
    /// None: `NO_COLOR`, or a terminal without colours. Bold, dim, underline and reverse remain.
    None,
}

/// The terminal's background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Background {
    /// Dark, or not known.
    Dark,
    /// Light.
    Light,
}

/// What a theme is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThemeSpec {
    /// How many colours.
    pub depth: ColorDepth,
    /// On which background.
    pub background: Background,
    /// Whether the locale is UTF-8; otherwise only ASCII glyphs are drawn.
    pub utf8: bool,
    /// Whether the terminal is known to take links (OSC 8).
    pub links: bool,
}

impl Default for ThemeSpec {
    fn default() -> Self {
        Self {
            depth: ColorDepth::TrueColor,
            background: Background::Dark,
            utf8: true,
            links: false,
        }
    }
}

/// Every style and glyph that the views use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    /// What it was made from; equal specs make equal themes, so this is a cache key.
    pub spec: ThemeSpec,
    /// Plain text.
    pub text: Style,
    /// Text of second rank: elapsed times, hints.
    pub dim: Style,
    /// Rules, boxes and gutters.
    pub border: Style,
    /// What draws the eye: the agent's mark, the selected entry.
    pub accent: Style,
    /// The person's prompt.
    pub user: Style,
    /// The person's mark.
    pub user_mark: Style,
    /// Thoughts.
    pub thought: Style,
    /// A card's title.
    pub title: Style,
    /// Headings, from level 1.
    pub heading: Style,
    /// Headings below level 2.
    pub subheading: Style,
    /// Code in a line.
    pub code: Style,
    /// Code in a block, where no syntax colour applies.
    pub code_block: Style,
    /// The language label of a block.
    pub code_label: Style,
    /// A link's label.
    pub link: Style,
    /// A link's address.
    pub url: Style,
    /// Quoted text.
    pub quote: Style,
    /// List markers.
    pub marker: Style,
    /// A table's header.
    pub table_header: Style,
    /// Done, well.
    pub success: Style,
    /// Needs care.
    pub warning: Style,
    /// Failed.
    pub error: Style,
    /// Under way.
    pub running: Style,
    /// Added lines.
    pub added: Style,
    /// The words of an added line that differ.
    pub added_word: Style,
    /// Removed lines.
    pub removed: Style,
    /// The words of a removed line that differ.
    pub removed_word: Style,
    /// Line numbers.
    pub line_number: Style,
    /// Hunk headers and fold marks.
    pub hunk: Style,
    /// A match of a search.
    pub found: Style,
    /// The match the search stands on.
    pub found_current: Style,
    /// The selected block or line.
    pub selected: Style,
    /// A control character made visible.
    pub escaped: Style,
    /// Syntax colours.
    pub syntax: SyntaxTheme,
    /// Glyphs.
    pub glyphs: &'static Glyphs,
    /// The links' addresses, where the terminal takes them.
    pub links: Option<Rc<Links>>,
}

/// Colours of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxTheme {
    /// Comments.
    pub comment: Style,
    /// Keywords and storage words.
    pub keyword: Style,
    /// Strings.
    pub string: Style,
    /// Numbers and constants.
    pub constant: Style,
    /// Functions.
    pub function: Style,
    /// Types and classes.
    pub type_name: Style,
    /// Tags, attributes, keys and macros.
    pub entity: Style,
    /// Operators and punctuation.
    pub punctuation: Style,
}

/// Glyphs, one cell wide unless their text is longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    /// Before the person's prompt.
    pub user: &'static str,
    /// Before the agent's text.
    pub assistant: &'static str,
    /// Before a thought.
    pub thought: &'static str,
    /// Something more is folded away.
    pub ellipsis: &'static str,
    /// Vertical rule at the left of quotes, code and output.
    pub bar: &'static str,
    /// The last row of a bar.
    pub bar_end: &'static str,
    /// Horizontal rule.
    pub rule: &'static str,
    /// A list item.
    pub bullet: &'static str,
    /// A step not begun.
    pub todo: &'static str,
    /// A step or call under way.
    pub doing: &'static str,
    /// A step or call done.
    pub done: &'static str,
    /// A call that failed.
    pub failed: &'static str,
    /// A call that was stopped.
    pub cancelled: &'static str,
    /// A folded block.
    pub folded: &'static str,
    /// An open block.
    pub unfolded: &'static str,
    /// Separates facts of one line.
    pub dot: &'static str,
    /// The thumb of the scrollbar.
    pub thumb: &'static str,
    /// Points up: more above.
    pub up: &'static str,
    /// Points down: new text below.
    pub down: &'static str,
    /// What to do next.
    pub arrow: &'static str,
    /// A notice.
    pub info: &'static str,
    /// A warning.
    pub warning: &'static str,
    /// Spinner frames.
    pub spinner: &'static [&'static str],
    /// Tool icons: read, edit, delete, move, search, execute, think, fetch, mode, other.
    pub tools: [&'static str; 10],
}

static UNICODE: Glyphs = Glyphs {
    user: "❯",
    assistant: "●",
    thought: "∴",
    ellipsis: "…",
    bar: "│",
    bar_end: "└",
    rule: "─",
    bullet: "•",
    todo: "○",
    doing: "◐",
    done: "✓",
    failed: "✗",
    cancelled: "⊘",
    folded: "▸",
    unfolded: "▾",
    dot: "·",
    thumb: "┃",
    up: "↑",
    down: "↓",
    arrow: "→",
    info: "ℹ",
    warning: "!",
    spinner: &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"],
    tools: ["◇", "±", "⌫", "→", "⌕", "$", "∴", "↯", "⇄", "◆"],
};

static ASCII: Glyphs = Glyphs {
    user: ">",
    assistant: "*",
    thought: "~",
    ellipsis: "...",
    bar: "|",
    bar_end: "`",
    rule: "-",
    bullet: "*",
    todo: "o",
    doing: "@",
    done: "+",
    failed: "x",
    cancelled: "/",
    folded: ">",
    unfolded: "v",
    dot: "-",
    thumb: "#",
    up: "^",
    down: "v",
    arrow: "->",
    info: "i",
    warning: "!",
    spinner: &["|", "/", "-", "\\"],
    tools: ["r", "e", "d", "m", "s", "$", "~", "f", "o", "t"],
};

/// A colour for each depth: 24-bit, the 256 palette, the 16 names.
#[derive(Clone, Copy)]
struct Ink(u32, u8, Color);

struct Palette {
    dim: Ink,
    border: Ink,
    accent: Ink,
    user: Ink,
    user_back: Ink,
    thought: Ink,
    heading: Ink,
    code: Ink,
    link: Ink,
    green: Ink,
    yellow: Ink,
    red: Ink,
    blue: Ink,
    added_back: Ink,
    added_word: Ink,
    removed_back: Ink,
    removed_word: Ink,
    found_back: Ink,
    current_back: Ink,
    found_text: Ink,
    selected_back: Ink,
    comment: Ink,
    keyword: Ink,
    string: Ink,
    constant: Ink,
    function: Ink,
    type_name: Ink,
    entity: Ink,
}

const DARK: Palette = Palette {
    dim: Ink(0x008b_909c, 245, Color::DarkGray),
    border: Ink(0x004a_4f5a, 239, Color::DarkGray),
    accent: Ink(0x007a_a2f7, 111, Color::LightBlue),
    user: Ink(0x00e6_e9ef, 255, Color::Reset),
    user_back: Ink(0x0026_2a33, 235, Color::Reset),
    thought: Ink(0x009a_a0ac, 247, Color::DarkGray),
    heading: Ink(0x00c0_caf5, 153, Color::LightCyan),
    code: Ink(0x00e0_af68, 179, Color::Yellow),
    link: Ink(0x007d_cfff, 117, Color::LightCyan),
    green: Ink(0x008f_c96b, 113, Color::Green),
    yellow: Ink(0x00e0_af68, 179, Color::Yellow),
    red: Ink(0x00f0_7480, 203, Color::LightRed),
    blue: Ink(0x007a_a2f7, 111, Color::LightBlue),
    added_back: Ink(0x0017_3322, 22, Color::Reset),
    added_word: Ink(0x0021_4a2f, 28, Color::Reset),
    removed_back: Ink(0x003d_1c22, 52, Color::Reset),
    removed_word: Ink(0x0070_2b36, 88, Color::Reset),
    found_back: Ink(0x005c_4a12, 58, Color::Yellow),
    current_back: Ink(0x00e0_af68, 179, Color::LightYellow),
    found_text: Ink(0x0010_1216, 233, Color::Black),
    selected_back: Ink(0x002e_3440, 237, Color::Reset),
    comment: Ink(0x007b_8494, 244, Color::DarkGray),
    keyword: Ink(0x00bb_9af7, 183, Color::LightMagenta),
    string: Ink(0x009e_ce6a, 149, Color::Green),
    constant: Ink(0x00ff_9e64, 215, Color::Yellow),
    function: Ink(0x007a_a2f7, 111, Color::LightBlue),
    type_name: Ink(0x002a_c3de, 44, Color::Cyan),
    entity: Ink(0x0073_daca, 80, Color::Cyan),
};

const LIGHT: Palette = Palette {
    dim: Ink(0x006a_707c, 242, Color::DarkGray),
    border: Ink(0x00b8_bdc7, 250, Color::Gray),
    accent: Ink(0x002a_5bc7, 26, Color::Blue),
    user: Ink(0x001f_242e, 234, Color::Reset),
    user_back: Ink(0x00ec_eef2, 255, Color::Reset),
    thought: Ink(0x0065_6b77, 242, Color::DarkGray),
    heading: Ink(0x001f_3a7a, 18, Color::Blue),
    code: Ink(0x008a_4b08, 94, Color::Red),
    link: Ink(0x0000_6699, 24, Color::Blue),
    green: Ink(0x002f_7d32, 28, Color::Green),
    yellow: Ink(0x008f_5e00, 94, Color::Red),
    red: Ink(0x00c0_2a37, 124, Color::Red),
    blue: Ink(0x002a_5bc7, 26, Color::Blue),
    added_back: Ink(0x00dd_f4e0, 194, Color::Reset),
    added_word: Ink(0x00ac_e2b5, 157, Color::Reset),
    removed_back: Ink(0x00fd_e5e7, 224, Color::Reset),
    removed_word: Ink(0x00f7_bcc1, 217, Color::Reset),
    found_back: Ink(0x00ff_e9a8, 229, Color::Yellow),
    current_back: Ink(0x00ff_c93c, 221, Color::LightYellow),
    found_text: Ink(0x001f_242e, 234, Color::Black),
    selected_back: Ink(0x00e2_e6ee, 254, Color::Reset),
    comment: Ink(0x006f_7682, 243, Color::DarkGray),
    keyword: Ink(0x007a_3eb1, 91, Color::Magenta),
    string: Ink(0x002f_7d32, 28, Color::Green),
    constant: Ink(0x00b0_4a00, 130, Color::Red),
    function: Ink(0x002a_5bc7, 26, Color::Blue),
    type_name: Ink(0x0000_6c80, 30, Color::Cyan),
    entity: Ink(0x000b_726a, 29, Color::Cyan),
};

/// Puts colours on styles at one depth.
#[derive(Clone, Copy)]
struct Brush(ColorDepth);

impl Brush {
    fn color(self, ink: Ink) -> Option<Color> {
        let Ink(rgb, indexed, ansi) = ink;
        match self.0 {
            ColorDepth::TrueColor => Some(Color::from_u32(rgb)),
            ColorDepth::Indexed => Some(Color::Indexed(indexed)),
            ColorDepth::Ansi => (ansi != Color::Reset).then_some(ansi),
            ColorDepth::None => None,
        }
    }

    fn fore(self, ink: Ink) -> Style {
        self.color(ink).map_or(Style::new(), |c| Style::new().fg(c))
    }

    fn back(self, style: Style, ink: Ink) -> Style {
        self.color(ink).map_or(style, |c| style.bg(c))
    }

    /// `ink`, or `modifier` where there are no colours.
    fn or(self, ink: Ink, modifier: Modifier) -> Style {
        match self.0 {
            ColorDepth::None => Style::new().add_modifier(modifier),
            _ => self.fore(ink),
        }
    }
}

impl Default for Theme {
    fn default() -> Self {
        Self::new(ThemeSpec::default())
    }
}

impl Theme {
    /// Makes the theme for what the terminal can do.
    pub fn new(spec: ThemeSpec) -> Self {
        let palette = match spec.background {
            Background::Dark => &DARK,
            Background::Light => &LIGHT,
        };
        let brush = Brush(spec.depth);
        let syntax = syntax(palette, brush);
        base(spec, palette, brush, syntax)
    }

    /// The spinner's frame at `now_ms`.
    pub fn spinner(&self, now_ms: u64) -> &'static str {
        let frames = self.glyphs.spinner;
        let at = usize::try_from(now_ms / SPINNER_MS).unwrap_or(0) % frames.len().max(1);
        frames.get(at).copied().unwrap_or(" ")
    }
}

/// Milliseconds of one spinner frame.
pub const SPINNER_MS: u64 = 120;

fn base(spec: ThemeSpec, p: &Palette, b: Brush, syntax: SyntaxTheme) -> Theme {
    let bold = Modifier::BOLD;
    let dim = b.or(p.dim, Modifier::DIM);
    let plain_diff = matches!(spec.depth, ColorDepth::Ansi | ColorDepth::None);
    let diff = |back: Ink, fore: Ink, mark: Modifier| {
        if plain_diff { b.fore(fore).add_modifier(mark) } else { b.back(Style::new(), back) }
    };
    // The palette's greens and reds are too strong to bear colours: words on them are plain.
    let word = |back: Ink, fore: Ink| match spec.depth {
        ColorDepth::Indexed => b.back(b.fore(p.user), back),
        _ => diff(back, fore, Modifier::REVERSED),
    };
    Theme {
        spec,
        text: Style::new(),
        dim,
        border: b.or(p.border, Modifier::DIM),
        accent: b.or(p.accent, bold),
        user: b.back(b.fore(p.user), p.user_back).add_modifier(bold),
        user_mark: b.or(p.accent, bold),
        thought: b.or(p.thought, Modifier::DIM).add_modifier(Modifier::ITALIC),
        title: Style::new().add_modifier(bold),
        heading: b.or(p.heading, Modifier::UNDERLINED).add_modifier(bold),
        subheading: b.fore(p.heading).add_modifier(bold),
        code: b.or(p.code, bold),
        code_block: Style::new(),
        code_label: dim.add_modifier(Modifier::ITALIC),
        link: b.fore(p.link).add_modifier(Modifier::UNDERLINED),
        url: dim,
        quote: b.or(p.thought, Modifier::ITALIC),
        marker: b.or(p.accent, Modifier::empty()),
        table_header: b.fore(p.heading).add_modifier(bold),
        success: b.or(p.green, bold),
        warning: b.or(p.yellow, bold),
        error: b.or(p.red, bold),
        running: b.or(p.blue, bold),
        added: diff(p.added_back, p.green, Modifier::empty()),
        added_word: word(p.added_word, p.green),
        removed: diff(p.removed_back, p.red, Modifier::empty()),
        removed_word: word(p.removed_word, p.red),
        line_number: b.or(p.dim, Modifier::DIM),
        hunk: b.or(p.link, Modifier::DIM),
        found: match spec.depth {
            ColorDepth::None => Style::new().add_modifier(Modifier::UNDERLINED),
            ColorDepth::Ansi => b.back(b.fore(p.found_text), p.found_back),
            _ => b.back(Style::new(), p.found_back),
        },
        found_current: match spec.depth {
            ColorDepth::None => Style::new().add_modifier(Modifier::REVERSED),
            _ => b.back(b.fore(p.found_text), p.current_back),
        },
        selected: match spec.depth {
            ColorDepth::None | ColorDepth::Ansi => Style::new().add_modifier(Modifier::REVERSED),
            _ => b.back(Style::new(), p.selected_back),
        },
        escaped: b.or(p.yellow, Modifier::REVERSED),
        syntax,
        glyphs: if spec.utf8 { &UNICODE } else { &ASCII },
        links: spec.links.then(Rc::default),
    }
}

fn syntax(p: &Palette, b: Brush) -> SyntaxTheme {
    SyntaxTheme {
        comment: b.or(p.comment, Modifier::DIM).add_modifier(Modifier::ITALIC),
        keyword: b.or(p.keyword, Modifier::BOLD),
        string: b.fore(p.string),
        constant: b.fore(p.constant),
        function: b.fore(p.function),
        type_name: b.fore(p.type_name),
        entity: b.fore(p.entity),
        punctuation: b.or(p.dim, Modifier::empty()),
    }
}

/// A colour that a program printed: a palette index, or red, green and blue.
pub fn terminal_color(codes: &[u16]) -> Color {
    let byte = |at: usize| codes.get(at).map_or(0, |code| (*code).min(255) as u8);
    match codes.len() {
        3 => Color::Rgb(byte(0), byte(1), byte(2)),
        _ => Color::Indexed(byte(0)),
    }
}

impl Theme {
    /// A printed style as far as this terminal can show it.
    pub fn printed(&self, style: Style) -> Style {
        Style {
            fg: style.fg.and_then(|color| self.fitting(color)),
            bg: style.bg.and_then(|color| self.fitting(color)),
            ..style
        }
    }

    fn fitting(&self, color: Color) -> Option<Color> {
        match (self.spec.depth, color) {
            (ColorDepth::None, _) => None,
            (ColorDepth::Indexed, Color::Rgb(r, g, b)) => Some(Color::Indexed(cube(r, g, b))),
            (ColorDepth::Ansi, Color::Rgb(r, g, b)) => Some(Color::Indexed(basic(r, g, b))),
            (ColorDepth::Ansi, Color::Indexed(index)) if index > 15 => {
                let (r, g, b) = uncube(index);
                Some(Color::Indexed(basic(r, g, b)))
            }
            _ => Some(color),
        }
    }
}

/// The nearest colour of the 6x6x6 cube.
fn cube(r: u8, g: u8, b: u8) -> u8 {
    let step = |v: u8| -> u8 {
        match v {
            0..48 => 0,
            48..115 => 1,
            _ => (v - 35) / 40,
        }
    };
    16 + 36 * step(r) + 6 * step(g) + step(b)
}

pub(super) fn uncube(index: u8) -> (u8, u8, u8) {
    if index >= 232 {
        let grey = 8 + (index - 232) * 10;
        return (grey, grey, grey);
    }
    let at = index.saturating_sub(16);
    let level = |step: u8| if step == 0 { 0 } else { 55 + step * 40 };
    (level(at / 36), level(at / 6 % 6), level(at % 6))
}

/// The nearest of the 16 colours: which channels are on, and whether brightly.
fn basic(r: u8, g: u8, b: u8) -> u8 {
    let most = r.max(g).max(b);
    if most < 64 {
        return 0;
    }
    let on = |v: u8, bit: u8| if v > most / 2 { bit } else { 0 };
    let bright = if most > 200 { 8 } else { 0 };
    on(r, 1) + on(g, 2) + on(b, 4) + bright
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_theme() -> impl Iterator<Item = Theme> {
        let depths =
            [ColorDepth::TrueColor, ColorDepth::Indexed, ColorDepth::Ansi, ColorDepth::None];
        depths.into_iter().flat_map(|depth| {
            [Background::Dark, Background::Light].map(|background| {
                Theme::new(ThemeSpec { depth, background, utf8: true, links: false })
            })
        })
    }

    #[test]
    fn no_color_means_no_colour_at_all() {
        let theme = Theme::new(ThemeSpec { depth: ColorDepth::None, ..ThemeSpec::default() });
        let dump = format!("{theme:?}");
        assert!(!dump.contains("Rgb") && !dump.contains("Indexed"), "{dump}");
        assert!(!dump.contains("fg") && !dump.contains("bg"), "{dump}");
    }

    #[test]
    fn a_changed_word_differs_from_its_line_in_every_theme() {
        for theme in every_theme() {
            assert_ne!(theme.added, theme.added_word, "{:?}", theme.spec);
            assert_ne!(theme.removed, theme.removed_word, "{:?}", theme.spec);
            assert_ne!(theme.found, theme.found_current, "{:?}", theme.spec);
        }
    }

    #[test]
    fn a_locale_without_utf8_gets_ascii_glyphs_only() {
        let theme = Theme::new(ThemeSpec { utf8: false, ..ThemeSpec::default() });
        assert!(format!("{:?}", theme.glyphs).is_ascii());
    }
}
