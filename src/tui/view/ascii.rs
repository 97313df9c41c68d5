//! The screen of a terminal without UTF-8: every sign that is not a letter gets one of ASCII that
//! says the same. Letters stay: no other letter says what they say.

use ratatui::buffer::Buffer;

/// Rewrites the cells of a whole frame.
pub(super) fn degrade(buf: &mut Buffer) {
    for cell in &mut buf.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        let mut chars = cell.symbol().chars();
        if let (Some(c), None) = (chars.next(), chars.next())
            && let Some(sign) = sign(c)
        {
            cell.set_symbol(sign);
        }
    }
}

fn sign(c: char) -> Option<&'static str> {
    Some(match c {
        '…' | '∴' => "~",
        '·' | '–' | '—' | '─' | '━' | '‐' | '‑' | '−' => "-",
        '│' | '┃' | '║' | '⏎' | '¦' => "|",
        '╭' | '╮' | '╰' | '╯' | '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '±' | '✓'
        | '✔' | '☑' => "+",
        '→' | '›' | '»' | '❯' | '▸' | '▶' | '⇒' | '⇄' | '⟩' => ">",
        '←' | '‹' | '«' | '⌫' | '⟨' => "<",
        '↑' | '▴' | '▲' => "^",
        '↓' | '▾' | '▼' | '↯' => "v",
        '•' | '●' | '◆' | '■' | '★' | '⏺' => "*",
        '○' | '◇' | '□' | '☐' | '◌' | '⌕' => "o",
        '◔' | '◐' | '◑' | '◕' | '◉' => "@",
        '✗' | '✘' | '×' | '☒' => "x",
        '⊘' => "/",
        'ℹ' => "i",
        '“' | '”' | '„' => "\"",
        '‘' | '’' => "'",
        '█' | '▓' | '▒' | '░' => "#",
        _ => return None,
    })
}
