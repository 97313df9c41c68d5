//! Addresses of links, and the numbers that their cells carry.
//!
//! Owns [`Links`]. An escape must never get into a cell, where it would count as text. So a
//! link's cells carry its number in the underline colour, which nothing else here uses: it takes
//! no width, survives wrapping and cutting, and takes part in the comparison of two frames.
//! `terminal::screen` turns it into OSC 8 around the run. Only terminals that are known to take
//! links get any, see `terminal::traits`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use ratatui::style::Color;

/// Addresses that are kept; later ones are shown as text.
const MAX_LINKS: usize = 20_000;
/// Bytes of an address that terminals take.
const MAX_ADDRESS: usize = 2_000;
/// What may be opened by a click.
const SCHEMES: &[&str] = &["https://", "http://", "mailto:"];

/// The addresses seen so far.
#[derive(Debug, Default)]
pub struct Links {
    known: RefCell<Known>,
}

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<Rc<str>, usize>,
    addresses: Vec<Rc<str>>,
}

impl PartialEq for Links {
    /// Addresses do not change how anything looks.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Links {}

impl Links {
    /// The underline colour that stands for an address; `None` for one that must not be a link.
    pub fn tag(&self, address: &str) -> Option<Color> {
        let is_fine = address.len() <= MAX_ADDRESS
            && SCHEMES.iter().any(|scheme| address.starts_with(scheme))
            && address.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        if !is_fine {
            return None;
        }
        let mut known = self.known.borrow_mut();
        let number = match known.numbers.get(address) {
            Some(number) => *number,
            None if known.addresses.len() >= MAX_LINKS => return None,
            None => {
                let number = known.addresses.len();
                let address: Rc<str> = address.into();
                known.addresses.push(Rc::clone(&address));
                known.numbers.insert(address, number);
                number
            }
        };
        let [.., high, middle, low] = u32::try_from(number).ok()?.to_be_bytes();
        Some(Color::Rgb(high, middle, low))
    }

    /// The number and the address that an underline colour stands for.
    pub fn address(&self, tag: Color) -> Option<(usize, Rc<str>)> {
        let Color::Rgb(high, middle, low) = tag else { return None };
        let number = u32::from_be_bytes([0, high, middle, low]) as usize;
        self.known.borrow().addresses.get(number).map(|address| (number, Rc::clone(address)))
    }
}

/// Where a text names an address: the bytes of the first one.
pub fn bare_address(text: &str) -> Option<std::ops::Range<usize>> {
    let start = ["https://", "http://"].iter().filter_map(|scheme| text.find(scheme)).min()?;
    let rest = text.get(start..)?;
    let is_end = |c: char| c.is_whitespace() || !c.is_ascii() || matches!(c, '<' | '>' | '"' | '`');
    let cut = rest.find(is_end).unwrap_or(rest.len());
    let mut address = rest.get(..cut)?;
    // What ends the sentence does not belong to the address; nor does a bracket opened before it.
    loop {
        let unpaired = address.ends_with(')') && !address.contains('(');
        if !unpaired && !address.ends_with(['.', ',', ';', ':', '!', '?', '\'', '*', '_']) {
            break;
        }
        address = address.get(..address.len() - 1)?;
    }
    (address.len() > "https://".len()).then(|| start..start + address.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_number_and_nothing_unsafe_gets_one() {
        let links = Links::default();
        let a = links.tag("https://a.example/x").unwrap();
        let b = links.tag("https://b.example").unwrap();
        assert_ne!(a, b);
        assert_eq!(links.tag("https://a.example/x"), Some(a));
        assert_eq!(links.address(a).unwrap().1.as_ref(), "https://a.example/x");
        for bad in ["file:///etc/passwd", "https://a\x1b\\", "javascript:x", "https://a b"] {
            assert_eq!(links.tag(bad), None, "{bad:?}");
        }
        assert_eq!(links.address(Color::Reset), None);
        assert_eq!(links.address(Color::Rgb(9, 9, 9)), None);
    }

    #[test]
    fn addresses_are_found_in_prose_without_its_punctuation() {
        let found =
            |text: &str| bare_address(text).and_then(|range| text.get(range)).map(str::to_owned);
        assert_eq!(found("see https://a.example/b.").as_deref(), Some("https://a.example/b"));
        assert_eq!(found("(http://a.example)").as_deref(), Some("http://a.example"));
        assert_eq!(found("https://a.example/x_(y)").as_deref(), Some("https://a.example/x_(y)"));
        assert_eq!(found("请看https://a.example，好"), Some("https://a.example".to_owned()));
        assert_eq!(found("https:// nothing"), None);
    }
}
