//! How well a few typed letters fit a name: the one matcher of the slash menu and the pickers.

/// Returns a score, higher is better, or `None` when the letters are not in the name in order.
/// A prefix beats a word start, that beats letters anywhere; case does not matter.
pub fn score(letters: &str, name: &str) -> Option<i64> {
    if letters.is_empty() {
        return Some(0);
    }
    let wanted = letters.to_lowercase();
    let name = name.to_lowercase();
    let length = i64::try_from(name.chars().count()).unwrap_or(i64::MAX / 4);
    if name.starts_with(&wanted) {
        return Some(10_000 - length);
    }
    if let Some(at) = name.find(&wanted) {
        let word_start = name.get(..at).and_then(|b| b.chars().next_back());
        let bonus = if word_start.is_some_and(|c| !c.is_alphanumeric()) { 2_000 } else { 0 };
        return Some(5_000 + bonus - length);
    }
    let mut total = 1_000 - length;
    let mut chars = name.chars().enumerate();
    let mut last: Option<usize> = None;
    for c in wanted.chars() {
        let (at, _) = chars.find(|(_, n)| *n == c)?;
        let gap = last.map_or(at, |l| at - l - 1);
        total -= i64::try_from(gap).unwrap_or(0) * 10;
        last = Some(at);
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_beats_a_word_start_beats_scattered_letters() {
        let s = |n| score("mo", n).unwrap();
        assert!(s("model") > s("new-mode"));
        assert!(s("new-mode") > s("memo"));
        assert!(s("memo") > s("m-x-o"));
        assert_eq!(score("xyz", "model"), None);
    }
}
