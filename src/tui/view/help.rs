//! The help page: the keymap's own table and our commands, so that neither can drift.

use ratatui::text::{Line, Span};

use super::theme::Theme;
use super::{widgets, width};
use crate::tui::keymap::{BINDINGS, Context, Key};
use crate::tui::model::Model;
use crate::tui::model::menu;

/// Columns of the keys.
const KEYS: usize = 24;

/// The lines of the help page.
pub(super) fn lines(model: &Model, columns: u16, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let sections = [
        (Context::Global, "Everywhere"),
        (Context::Composer, "Writing"),
        (Context::Permission, "A permission is asked"),
        (Context::Form, "A form is asked"),
        (Context::Plan, "A plan waits for approval"),
        (Context::PlanNote, "Saying what should change in a plan"),
        (Context::Picker, "A list"),
        (Context::Page, "A page"),
        (Context::Search, "Searching"),
        (Context::Agents, "The subagents"),
        (Context::Queue, "The queue"),
        (Context::Menu, "The command menu"),
        (Context::Mention, "The menu of files (@)"),
    ];
    for (context, title) in sections {
        section(&mut out, title, theme);
        for b in BINDINGS.iter().filter(|b| b.context == context) {
            let keys: Vec<String> =
                b.keys.split(' ').filter_map(Key::parse).map(|k| k.to_string()).collect();
            row(&mut out, &keys.join(" "), b.help, columns, theme);
        }
    }
    section(&mut out, "Commands", theme);
    for command in &model.session.commands {
        row(&mut out, &format!("/{}", command.name), &command.description, columns, theme);
    }
    for command in menu::LOCAL {
        row(&mut out, &format!("/{}", command.name), command.help, columns, theme);
    }
    out
}

fn section(out: &mut Vec<Line<'static>>, title: &str, theme: &Theme) {
    if !out.is_empty() {
        out.push(Line::default());
    }
    out.push(Line::styled(title.to_owned(), theme.heading));
}

fn row(out: &mut Vec<Line<'static>>, keys: &str, help: &str, columns: u16, theme: &Theme) {
    let key_columns = KEYS.min(usize::from(columns) / 2);
    if width::cell_width(keys) > key_columns {
        out.extend(widgets::wrapped(keys, columns, theme.accent));
    }
    let lead = if width::cell_width(keys) > key_columns { "" } else { keys };
    let room = usize::from(columns).saturating_sub(key_columns + 1).max(8);
    for (i, text) in width::wrap(help, room).into_iter().enumerate() {
        let left = width::fit(if i == 0 { lead } else { "" }, key_columns, "…");
        out.push(Line::from(vec![
            Span::styled(left, theme.accent),
            Span::styled(format!(" {text}"), theme.text),
        ]));
    }
}
