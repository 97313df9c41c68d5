//! A list to choose from with type-to-filter: models, modes, thought levels, sessions, prompts.
//! Data only.

use super::fuzzy;

/// What is chosen from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickerKind {
    /// The values of a config option, by its id.
    Option(String),
    /// A mode by the older way.
    Mode,
    /// The values of any option: choosing one opens its own picker.
    Settings,
    /// A session to go on with.
    Session,
    /// A prompt of before.
    History,
    /// How to log in.
    Auth,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Item {
    /// What the choice means to the agent.
    pub id: String,
    /// What is shown.
    pub label: String,
    /// More about it, dim.
    pub detail: String,
    /// Whether it is in effect.
    pub current: bool,
}

/// An open list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picker {
    /// What is chosen from.
    pub kind: PickerKind,
    /// What the frame says.
    pub title: String,
    /// What was typed to filter.
    pub filter: String,
    /// Row of the visible ones that is selected.
    pub selected: usize,
    /// Rows are still on their way.
    pub loading: bool,
    /// Where the next page starts, when there is one.
    pub next_cursor: Option<String>,
    items: Vec<Item>,
    visible: Vec<usize>,
}

impl Picker {
    /// Opens a list with the row in effect selected.
    pub fn new(kind: PickerKind, title: impl Into<String>, items: Vec<Item>) -> Self {
        let mut picker = Self {
            kind,
            title: title.into(),
            filter: String::new(),
            selected: 0,
            loading: false,
            next_cursor: None,
            items,
            visible: Vec::new(),
        };
        picker.refilter();
        let current = picker.visible_items().position(|i| i.current);
        picker.selected = current.unwrap_or_default();
        picker
    }

    /// Adds rows that came later; the selection stays on its row.
    pub fn extend(&mut self, items: impl IntoIterator<Item = Item>) {
        let kept = self.selected_item().map(|i| i.id.clone());
        self.items.extend(items);
        self.refilter();
        let at = kept.and_then(|id| self.visible_items().position(|i| i.id == id));
        self.selected = at.unwrap_or(self.selected);
    }

    /// The rows that pass the filter.
    pub fn visible_items(&self) -> impl ExactSizeIterator<Item = &Item> {
        let none = const {
            &Item { id: String::new(), label: String::new(), detail: String::new(), current: false }
        };
        self.visible.iter().map(move |i| self.items.get(*i).unwrap_or(none))
    }

    /// The selected row.
    pub fn selected_item(&self) -> Option<&Item> {
        self.visible.get(self.selected).and_then(|i| self.items.get(*i))
    }

    /// How many rows there are, filtered or not.
    pub fn total(&self) -> usize {
        self.items.len()
    }

    /// Moves the selection by so many rows and stops at the ends.
    pub fn move_by(&mut self, by: isize) {
        let last = self.visible.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    /// Adds to the filter.
    pub fn type_text(&mut self, text: &str) {
        self.filter.push_str(text);
        self.refilter();
        self.selected = 0;
    }

    /// Takes the last character of the filter away.
    pub fn erase(&mut self) {
        self.filter.pop();
        self.refilter();
        self.selected = 0;
    }

    fn refilter(&mut self) {
        let mut scored: Vec<(i64, usize)> = self
            .items
            .iter()
            .enumerate()
            .filter_map(|(i, item)| {
                let label = fuzzy::score(&self.filter, &item.label);
                let other = fuzzy::score(&self.filter, &item.detail)
                    .max(fuzzy::score(&self.filter, &item.id))
                    .map(|s| s - 50);
                label.max(other).map(|s| (s, i))
            })
            .collect();
        if !self.filter.is_empty() {
            scored.sort_by_key(|(s, i)| (std::cmp::Reverse(*s), *i));
        }
        self.visible = scored.into_iter().map(|(_, i)| i).collect();
        self.selected = self.selected.min(self.visible.len().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str) -> Item {
        Item { id: id.into(), label: id.into(), ..Item::default() }
    }

    #[test]
    fn typing_filters_and_rows_that_come_later_keep_the_selection() {
        let mut p = Picker::new(PickerKind::Session, "t", vec![item("alpha"), item("beta")]);
        p.move_by(1);
        p.extend([item("gamma")]);
        assert_eq!(p.selected_item().unwrap().id, "beta");
        p.type_text("gm");
        assert_eq!(p.selected_item().unwrap().id, "gamma");
        p.type_text("zz");
        assert!(p.selected_item().is_none());
    }
}
