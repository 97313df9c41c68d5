//! What the terminal can show, as far as the environment tells. Pure: the variables are given.

use crate::tui::view::theme::{Background, ColorDepth, ThemeSpec};

/// Reads colours and character set from the environment's variables.
pub fn theme_spec(var: impl Fn(&str) -> Option<String>) -> ThemeSpec {
    ThemeSpec {
        depth: depth(&var),
        background: background(&var),
        utf8: utf8(&var),
        links: links(&var),
    }
}

/// The theme that the user set, over what the environment tells.
pub fn with_setting(spec: ThemeSpec, theme: Option<&str>) -> ThemeSpec {
    match theme {
        Some("dark") => ThemeSpec { background: Background::Dark, ..spec },
        Some("light") => ThemeSpec { background: Background::Light, ..spec },
        Some("none") => ThemeSpec { depth: ColorDepth::None, ..spec },
        _ => spec,
    }
}

fn depth(var: &impl Fn(&str) -> Option<String>) -> ColorDepth {
    let term = var("TERM").unwrap_or_default();
    if var("NO_COLOR").is_some() || term == "dumb" || term.starts_with("vt1") {
        return ColorDepth::None;
    }
    let color_term = var("COLORTERM").unwrap_or_default();
    let program = var("TERM_PROGRAM").unwrap_or_default();
    let direct = term.ends_with("-direct")
        || term.contains("kitty")
        || term.contains("ghostty")
        || term.contains("alacritty")
        || term.contains("wezterm");
    if matches!(color_term.as_str(), "truecolor" | "24bit")
        || direct
        || matches!(program.as_str(), "iTerm.app" | "WezTerm" | "vscode" | "ghostty")
    {
        return ColorDepth::TrueColor;
    }
    // Most terminals know 256 colours, and say so or are one of these.
    if term.contains("256") || term.starts_with("tmux") || term.starts_with("xterm") {
        ColorDepth::Indexed
    } else {
        ColorDepth::Ansi
    }
}

/// Whether links may be hidden behind their labels. Only for terminals that are known to take
/// OSC 8: elsewhere the address would be out of reach. What lies behind tmux or screen is not
/// known. `FORCE_HYPERLINK` decides either way.
fn links(var: &impl Fn(&str) -> Option<String>) -> bool {
    if let Some(forced) = var("FORCE_HYPERLINK") {
        return !matches!(forced.as_str(), "" | "0" | "false" | "no");
    }
    let term = var("TERM").unwrap_or_default();
    let is = |name: &str| var(name).is_some_and(|value| !value.is_empty());
    if is("TMUX") || is("STY") || term.starts_with("screen") || term.starts_with("tmux") {
        return false;
    }
    let by_term = ["kitty", "ghostty", "foot", "alacritty", "wezterm", "contour"];
    let program = var("TERM_PROGRAM").unwrap_or_default();
    let vte = var("VTE_VERSION").and_then(|version| version.parse().ok()).unwrap_or(0u32);
    by_term.iter().any(|name| term.contains(name))
        || matches!(program.as_str(), "iTerm.app" | "WezTerm" | "vscode" | "ghostty" | "kitty")
        || vte >= 5000
        || is("WT_SESSION")
        || is("KONSOLE_VERSION")
}

/// `COLORFGBG` is `foreground;background`, where 7 and 15 are light; the terminal's own answer to a
/// query beats it later.
fn background(var: &impl Fn(&str) -> Option<String>) -> Background {
    let last = var("COLORFGBG").and_then(|v| v.rsplit(';').next().map(str::to_owned));
    match last.as_deref() {
        Some("7" | "15") => Background::Light,
        _ => Background::Dark,
    }
}

/// A background that the terminal told, as light or dark.
pub fn background_of(red: u8, green: u8, blue: u8) -> Background {
    let luma = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    if luma > 140_000 { Background::Light } else { Background::Dark }
}

/// Whether the locale is UTF-8. Without any locale set (a bare ssh) terminals still are, nearly
/// all; only a locale that names another character set is believed.
fn utf8(var: &impl Fn(&str) -> Option<String>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| var(name));
    let Some(locale) = locale else { return true };
    match locale.split_once('.') {
        Some((_, charset)) => {
            let charset = charset.to_ascii_lowercase();
            charset.starts_with("utf-8") || charset.starts_with("utf8")
        }
        None => !matches!(locale.as_str(), "C" | "POSIX"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(vars: &[(&str, &str)]) -> ThemeSpec {
        theme_spec(|name| vars.iter().find(|(k, _)| *k == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn colours_follow_what_the_environment_says() {
        assert_eq!(spec(&[("TERM", "xterm-256color")]).depth, ColorDepth::Indexed);
        assert_eq!(
            spec(&[("TERM", "xterm"), ("COLORTERM", "truecolor")]).depth,
            ColorDepth::TrueColor
        );
        assert_eq!(spec(&[("TERM", "xterm-kitty"), ("NO_COLOR", "1")]).depth, ColorDepth::None);
        assert_eq!(spec(&[("TERM", "linux")]).depth, ColorDepth::Ansi);
        assert_eq!(spec(&[("TERM", "dumb")]).depth, ColorDepth::None);
    }

    #[test]
    fn only_a_locale_of_another_character_set_is_not_utf8() {
        assert!(spec(&[]).utf8);
        assert!(spec(&[("LANG", "de_DE.UTF-8")]).utf8);
        assert!(!spec(&[("LANG", "C")]).utf8);
        assert!(!spec(&[("LC_ALL", "ja_JP.eucJP"), ("LANG", "C.UTF-8")]).utf8);
    }

    #[test]
    fn a_set_theme_beats_the_environment() {
        let dark = spec(&[("COLORFGBG", "15;0"), ("COLORTERM", "truecolor")]);
        assert_eq!(with_setting(dark, Some("light")).background, Background::Light);
        assert_eq!(with_setting(dark, Some("none")).depth, ColorDepth::None);
        assert_eq!(with_setting(dark, None), dark);
    }

    #[test]
    fn links_are_for_terminals_that_are_known_to_take_them() {
        let table: &[(&[(&str, &str)], bool)] = &[
            (&[("TERM", "xterm-256color")], false),
            (&[("TERM", "xterm-kitty")], true),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], true),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")], false),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "6800")], true),
            (&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x,1,0")], false),
            (&[("TERM", "tmux-256color"), ("FORCE_HYPERLINK", "1")], true),
            (&[("TERM", "xterm-kitty"), ("FORCE_HYPERLINK", "0")], false),
        ];
        for (vars, expected) in table {
            assert_eq!(spec(vars).links, *expected, "{vars:?}");
        }
    }

    #[test]
    fn light_and_dark_are_told_apart() {
        assert_eq!(background_of(255, 255, 255), Background::Light);
        assert_eq!(background_of(30, 30, 46), Background::Dark);
        assert_eq!(spec(&[("COLORFGBG", "0;15")]).background, Background::Light);
    }
}
