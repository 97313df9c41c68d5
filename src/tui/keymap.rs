//! Keys and what they mean: one table of bindings that dispatch, the help text and the tests all read.
//!
//! Pure data. `terminal::input` makes [`Key`]s from bytes, `update::keys` asks [`action`] what a key
//! means where the focus is, `view::help` prints [`BINDINGS`].

use std::fmt;

/// A key without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// A printable character, upper case when shifted.
    Char(char),
    /// Return.
    Enter,
    /// Escape.
    Esc,
    /// Tabulator.
    Tab,
    /// Erase to the left.
    Backspace,
    /// Erase under the caret.
    Delete,
    /// Insert.
    Insert,
    /// Arrow.
    Up,
    /// Arrow.
    Down,
    /// Arrow.
    Left,
    /// Arrow.
    Right,
    /// Start of line.
    Home,
    /// End of line.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Function key, 1 to 24.
    F(u8),
}

/// A key press.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Which key.
    pub code: KeyCode,
    /// Control was held.
    pub ctrl: bool,
    /// Alt (or Option, or a leading escape) was held.
    pub alt: bool,
    /// Shift was held; never set for characters, whose case says it.
    pub shift: bool,
}

impl Key {
    /// A key without modifiers.
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }

    /// A control character.
    pub const fn ctrl(c: char) -> Self {
        Self { code: KeyCode::Char(c), ctrl: true, alt: false, shift: false }
    }

    /// Returns the character that this key writes, if it writes one.
    pub fn text(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c) if !self.ctrl && !self.alt && !c.is_control() => Some(c),
            _ => None,
        }
    }

    /// Reads the notation of the table: `ctrl-j`, `alt-enter`, `shift-tab`, `pageup`, `x`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut key = Self::plain(KeyCode::Esc);
        let mut rest = text;
        loop {
            if let Some(r) = rest.strip_prefix("ctrl-") {
                key.ctrl = true;
                rest = r;
            } else if let Some(r) = rest.strip_prefix("alt-") {
                key.alt = true;
                rest = r;
            } else if let Some(r) = rest.strip_prefix("shift-") {
                key.shift = true;
                rest = r;
            } else {
                break;
            }
        }
        key.code = code_named(rest)?;
        Some(key)
    }

    /// Reads a typed sequence as tests write it: `hi<ret><esc><ctrl-c>`; `<lt>` is `<`.
    pub fn sequence(text: &str) -> Vec<Self> {
        let mut keys = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if c == '<'
                && let Some((name, after)) = rest.get(1..).and_then(|r| r.split_once('>'))
                && let Some(key) = Self::parse(name)
            {
                keys.push(key);
                rest = after;
                continue;
            }
            keys.push(Self::plain(KeyCode::Char(c)));
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
        keys
    }
}

fn code_named(name: &str) -> Option<KeyCode> {
    Some(match name {
        "enter" | "ret" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "backspace" | "bs" => KeyCode::Backspace,
        "delete" | "del" => KeyCode::Delete,
        "insert" => KeyCode::Insert,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        "space" => KeyCode::Char(' '),
        "lt" => KeyCode::Char('<'),
        _ => {
            let mut chars = name.chars();
            let first = chars.next()?;
            let rest = chars.as_str();
            if rest.is_empty() {
                KeyCode::Char(first)
            } else if first == 'f' {
                KeyCode::F(rest.parse().ok().filter(|n| (1..=24).contains(n))?)
            } else {
                return None;
            }
        }
    })
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (held, name) in [(self.ctrl, "Ctrl-"), (self.alt, "Alt-"), (self.shift, "Shift-")] {
            if held {
                f.write_str(name)?;
            }
        }
        match self.code {
            KeyCode::Char(' ') => f.write_str("Space"),
            KeyCode::Char(c) if self.ctrl || self.alt => write!(f, "{}", c.to_ascii_uppercase()),
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(n) => write!(f, "F{n}"),
            KeyCode::PageUp => f.write_str("PgUp"),
            KeyCode::PageDown => f.write_str("PgDn"),
            KeyCode::Up => f.write_str("↑"),
            KeyCode::Down => f.write_str("↓"),
            KeyCode::Left => f.write_str("←"),
            KeyCode::Right => f.write_str("→"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// Where the focus is. A key is looked up in the focused context, then in [`Context::Global`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    /// Everywhere, unless the focused context says otherwise.
    Global,
    /// Writing the prompt.
    Composer,
    /// The slash menu is open above the composer.
    Menu,
    /// The menu of files is open above the composer.
    Mention,
    /// A permission request whose keys are armed.
    Permission,
    /// A form (plan approval, questions) whose keys are armed.
    Form,
    /// A plan to approve whose keys are armed; its text or one of its answers has the focus.
    Plan,
    /// What should change in a plan is being written.
    PlanNote,
    /// A list to choose from.
    Picker,
    /// A scrollable page: help, a tool card in full.
    Page,
    /// Searching the transcript.
    Search,
    /// The list of subagents.
    Agents,
    /// The list of queued prompts.
    Queue,
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send the prompt, or queue it while a turn runs.
    Send,
    /// Guide the running turn with the draft, where the agent can.
    Steer,
    /// Start a new line in the draft.
    NewLine,
    /// Stop the turn; close what is open first.
    Interrupt,
    /// Clear the draft; twice on an empty one quits.
    ClearOrQuit,
    /// Quit when the draft is empty, else delete forward.
    EndOfInput,
    /// Hand the terminal back to the shell until `fg`.
    Suspend,
    /// Draw everything again.
    Redraw,
    /// Show the keys.
    Help,
    /// Caret movement.
    Left,
    /// Caret movement.
    Right,
    /// Caret movement.
    WordLeft,
    /// Caret movement.
    WordRight,
    /// Caret up a row; from the first row, the previous prompt of the history.
    Up,
    /// Caret down a row; from the last row, the next prompt of the history.
    Down,
    /// Caret to the start of the row.
    LineStart,
    /// Caret to the end of the row.
    LineEnd,
    /// Caret to the start of the draft.
    DraftStart,
    /// Caret to the end of the draft.
    DraftEnd,
    /// Delete the character before the caret.
    DeleteBack,
    /// Delete the character under the caret.
    DeleteForward,
    /// Delete the word before the caret.
    DeleteWordBack,
    /// Delete the word after the caret.
    DeleteWordForward,
    /// Cut to the start of the line.
    CutToStart,
    /// Cut to the end of the line.
    CutToEnd,
    /// Insert what was cut last.
    Yank,
    /// Undo the last edit.
    Undo,
    /// Redo what was undone.
    Redo,
    /// Older prompt.
    HistoryPrevious,
    /// Newer prompt.
    HistoryNext,
    /// Search the prompts of before.
    HistorySearch,
    /// Take the last queued prompt back into the draft.
    EditQueued,
    /// Show what a pasted chip stands for.
    ExpandPaste,
    /// Edit the draft in `$VISUAL` or `$EDITOR`.
    Editor,
    /// Scroll the transcript one page up.
    PageUp,
    /// Scroll the transcript one page down.
    PageDown,
    /// Scroll the transcript to its start.
    Top,
    /// Scroll the transcript to its end and follow it.
    Tail,
    /// Scroll to the prompt above.
    PreviousPrompt,
    /// Scroll to the prompt below.
    NextPrompt,
    /// Expand or collapse all cards and thoughts.
    ExpandAll,
    /// Open the last tool card (or what is asked) in full.
    Detail,
    /// Search the transcript.
    Search,
    /// Next mode.
    NextMode,
    /// Choose a model.
    PickModel,
    /// Choose how much the model thinks.
    PickThought,
    /// Choose a session to go on with.
    PickSession,
    /// Move the selection up.
    SelectUp,
    /// Move the selection down.
    SelectDown,
    /// Take the selection.
    Accept,
    /// Complete the selection without running it.
    Complete,
    /// Mark or unmark the selection.
    Toggle,
    /// Next field.
    NextField,
    /// Previous field.
    PreviousField,
    /// Move to the answer that approves.
    Approve,
    /// Move to the answer that rejects.
    Reject,
    /// Write what should change.
    Note,
    /// Scroll what is asked up.
    BodyUp,
    /// Scroll what is asked down.
    BodyDown,
    /// Close this.
    Close,
    /// Copy the selected text, else the selected block, else the last answer.
    Copy,
    /// Copy a code block.
    CopyCode,
    /// Copy a whole turn.
    CopyTurn,
    /// Select the block above.
    SelectBlockUp,
    /// Select the block below.
    SelectBlockDown,
    /// Fold or unfold the selected block.
    ToggleBlock,
    /// Unfold or fold the steps of the plan above the composer.
    ToggleDock,
    /// Go to the next match.
    NextMatch,
    /// Go to the match before.
    PreviousMatch,
    /// List the subagents.
    Agents,
    /// Show what the selected subagent does.
    OpenAgent,
    /// Cancel a subagent alone.
    CancelAgent,
    /// List what is queued.
    Queue,
    /// Edit the selected prompt.
    EditItem,
    /// Delete the selected prompt.
    DeleteItem,
    /// Send the selected prompt now.
    SendNow,
    /// Have the agent's queue go on by itself, or not.
    AutoDrain,
}

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// Where it holds.
    pub context: Context,
    /// Keys in [`Key::parse`] notation, separated by spaces; the first is the one shown in hints.
    pub keys: &'static str,
    /// What it does.
    pub action: Action,
    /// What the help says.
    pub help: &'static str,
}

const fn bind(context: Context, keys: &'static str, action: Action, help: &'static str) -> Binding {
    Binding { context, keys, action, help }
}

/// Every binding, in the order of the help text.
pub const BINDINGS: &[Binding] = &[
    bind(Context::Composer, "enter", Action::Send, "send (queue while a turn runs)"),
    bind(Context::Composer, "ctrl-j alt-enter shift-enter ctrl-enter", Action::NewLine, "new line"),
    bind(Context::Composer, "ctrl-x", Action::Steer, "guide the running turn (agents that can)"),
    bind(Context::Composer, "up", Action::Up, "up a row, then older prompts"),
    bind(Context::Composer, "down", Action::Down, "down a row, then newer prompts"),
    bind(Context::Composer, "ctrl-p", Action::HistoryPrevious, "older prompt"),
    bind(Context::Composer, "ctrl-n", Action::HistoryNext, "newer prompt"),
    bind(Context::Composer, "ctrl-r", Action::HistorySearch, "search older prompts"),
    bind(Context::Composer, "alt-up", Action::EditQueued, "edit the last queued prompt"),
    bind(Context::Composer, "left ctrl-b", Action::Left, "left"),
    bind(Context::Composer, "right ctrl-f", Action::Right, "right"),
    bind(Context::Composer, "alt-left ctrl-left alt-b", Action::WordLeft, "a word left"),
    bind(Context::Composer, "alt-right ctrl-right alt-f", Action::WordRight, "a word right"),
    bind(Context::Composer, "home ctrl-a", Action::LineStart, "start of the line"),
    bind(Context::Composer, "end ctrl-e", Action::LineEnd, "end of the line"),
    bind(Context::Composer, "alt-<", Action::DraftStart, "start of the draft"),
    bind(Context::Composer, "alt->", Action::DraftEnd, "end of the draft"),
    bind(Context::Composer, "backspace ctrl-h shift-backspace", Action::DeleteBack, "delete back"),
    bind(Context::Composer, "delete", Action::DeleteForward, "delete forward"),
    bind(
        Context::Composer,
        "ctrl-w alt-backspace ctrl-backspace",
        Action::DeleteWordBack,
        "delete the word before",
    ),
    bind(
        Context::Composer,
        "alt-d alt-delete ctrl-delete",
        Action::DeleteWordForward,
        "delete the word after",
    ),
    bind(Context::Composer, "ctrl-u", Action::CutToStart, "cut to the start of the line"),
    bind(Context::Composer, "ctrl-k", Action::CutToEnd, "cut to the end of the line"),
    bind(Context::Composer, "ctrl-y", Action::Yank, "insert what was cut"),
    bind(Context::Composer, "ctrl-_ ctrl-/", Action::Undo, "undo"),
    bind(Context::Composer, "alt-_ alt-/", Action::Redo, "redo"),
    bind(Context::Composer, "alt-v", Action::ExpandPaste, "show what a pasted chip holds"),
    bind(Context::Composer, "ctrl-g", Action::Editor, "edit the draft in your editor"),
    bind(Context::Composer, "ctrl-d", Action::EndOfInput, "quit when the draft is empty"),
    bind(Context::Menu, "up ctrl-p", Action::SelectUp, "choose"),
    bind(Context::Menu, "down ctrl-n", Action::SelectDown, "choose"),
    bind(Context::Menu, "enter", Action::Accept, "run the command"),
    bind(Context::Menu, "tab", Action::Complete, "complete the command"),
    bind(Context::Menu, "esc", Action::Close, "close the menu"),
    bind(Context::Mention, "up ctrl-p", Action::SelectUp, "choose"),
    bind(Context::Mention, "down ctrl-n", Action::SelectDown, "choose"),
    bind(Context::Mention, "enter tab", Action::Accept, "take the file into the prompt"),
    bind(Context::Mention, "esc", Action::Close, "close the menu"),
    bind(Context::Permission, "up", Action::SelectUp, "choose an answer (or press its number)"),
    bind(Context::Permission, "down", Action::SelectDown, "choose an answer"),
    bind(Context::Permission, "enter", Action::Accept, "give the answer moved to"),
    bind(Context::Permission, "shift-up ctrl-p", Action::BodyUp, "scroll what is asked"),
    bind(Context::Permission, "shift-down ctrl-n", Action::BodyDown, "scroll what is asked"),
    bind(Context::Permission, "ctrl-t", Action::Detail, "see what is asked in full"),
    bind(Context::Permission, "esc", Action::Close, "answer cancelled"),
    bind(Context::Form, "up", Action::SelectUp, "row above"),
    bind(Context::Form, "down", Action::SelectDown, "row below"),
    bind(Context::Form, "tab", Action::NextField, "next field"),
    bind(Context::Form, "shift-tab", Action::PreviousField, "field before"),
    bind(Context::Form, "space", Action::Toggle, "choose or mark (in a text: a space)"),
    bind(Context::Form, "enter", Action::Accept, "choose and go on; on Submit: send"),
    bind(Context::Form, "ctrl-j alt-enter shift-enter", Action::NewLine, "new line in a text"),
    bind(
        Context::Form,
        "pageup ctrl-p shift-up",
        Action::BodyUp,
        "scroll the text above the fields",
    ),
    bind(Context::Form, "pagedown ctrl-n shift-down", Action::BodyDown, "scroll it down"),
    bind(Context::Form, "esc", Action::Close, "leave without an answer (cancelled)"),
    bind(Context::Plan, "down j ctrl-n", Action::BodyDown, "scroll the plan"),
    bind(Context::Plan, "up k ctrl-p", Action::BodyUp, "scroll the plan"),
    bind(Context::Plan, "pagedown space", Action::PageDown, "a page down"),
    bind(Context::Plan, "pageup b", Action::PageUp, "a page up"),
    bind(Context::Plan, "home g", Action::Top, "to the plan's start"),
    bind(Context::Plan, "end G", Action::Tail, "to the plan's end"),
    bind(Context::Plan, "a", Action::Approve, "move to Approve"),
    bind(Context::Plan, "r", Action::Reject, "move to Reject"),
    bind(Context::Plan, "f", Action::Note, "write what should change"),
    bind(Context::Plan, "tab right", Action::NextField, "next answer"),
    bind(Context::Plan, "shift-tab left", Action::PreviousField, "answer before"),
    bind(Context::Plan, "enter", Action::Accept, "give the answer moved to"),
    bind(Context::Plan, "esc", Action::Close, "leave without an answer (cancelled)"),
    bind(Context::PlanNote, "enter", Action::Accept, "send the plan back with these words"),
    bind(Context::PlanNote, "ctrl-j alt-enter shift-enter", Action::NewLine, "new line"),
    bind(Context::PlanNote, "pagedown", Action::PageDown, "scroll the plan"),
    bind(Context::PlanNote, "pageup", Action::PageUp, "scroll the plan"),
    bind(Context::PlanNote, "tab", Action::NextField, "back to the plan; the words stay"),
    bind(Context::PlanNote, "shift-tab", Action::PreviousField, "to Reject"),
    bind(Context::PlanNote, "esc", Action::Close, "back to the plan; the words stay"),
    bind(Context::Picker, "up ctrl-p", Action::SelectUp, "choose"),
    bind(Context::Picker, "down ctrl-n", Action::SelectDown, "choose"),
    bind(Context::Picker, "pageup", Action::PageUp, "a page up"),
    bind(Context::Picker, "pagedown", Action::PageDown, "a page down"),
    bind(Context::Picker, "enter", Action::Accept, "take it"),
    bind(Context::Picker, "esc", Action::Close, "leave as it is"),
    bind(Context::Page, "up k", Action::BodyUp, "scroll up"),
    bind(Context::Page, "down j enter", Action::BodyDown, "scroll down"),
    bind(Context::Page, "pageup b", Action::PageUp, "a page up"),
    bind(Context::Page, "pagedown space f", Action::PageDown, "a page down"),
    bind(Context::Page, "home g", Action::Top, "to the start"),
    bind(Context::Page, "end G", Action::Tail, "to the end"),
    bind(Context::Page, "/", Action::Search, "search this page"),
    bind(Context::Page, "n", Action::NextMatch, "next match"),
    bind(Context::Page, "N", Action::PreviousMatch, "match before"),
    bind(Context::Page, "y c", Action::Copy, "copy the whole text"),
    bind(Context::Page, "e", Action::Editor, "open the text in your editor"),
    bind(Context::Page, "esc q", Action::Close, "close"),
    bind(Context::Search, "enter ctrl-n down", Action::SelectDown, "next match"),
    bind(Context::Search, "ctrl-p up shift-enter", Action::SelectUp, "match before"),
    bind(Context::Search, "esc", Action::Close, "end the search"),
    bind(Context::Agents, "up k ctrl-p", Action::SelectUp, "choose"),
    bind(Context::Agents, "down j ctrl-n", Action::SelectDown, "choose"),
    bind(Context::Agents, "home g", Action::Top, "to the first"),
    bind(Context::Agents, "end G", Action::Tail, "to the last"),
    bind(Context::Agents, "enter", Action::Accept, "look into it"),
    bind(Context::Agents, "x", Action::CancelAgent, "cancel it alone"),
    bind(Context::Agents, "esc q", Action::Close, "close"),
    bind(Context::Queue, "up k ctrl-p", Action::SelectUp, "choose"),
    bind(Context::Queue, "down j ctrl-n", Action::SelectDown, "choose"),
    bind(Context::Queue, "enter e", Action::EditItem, "edit it in the draft"),
    bind(Context::Queue, "d delete", Action::DeleteItem, "delete it"),
    bind(Context::Queue, "s", Action::SendNow, "send it now"),
    bind(Context::Queue, "a", Action::AutoDrain, "the agent's queue goes on by itself, or not"),
    bind(Context::Queue, "esc q", Action::Close, "close"),
    bind(Context::Global, "esc", Action::Interrupt, "stop the turn (the draft stays)"),
    bind(Context::Global, "ctrl-c", Action::ClearOrQuit, "clear the draft; twice quits"),
    bind(Context::Global, "pageup", Action::PageUp, "scroll up"),
    bind(Context::Global, "pagedown", Action::PageDown, "scroll down"),
    bind(Context::Global, "ctrl-home alt-pageup", Action::Top, "to the first message"),
    bind(Context::Global, "ctrl-end alt-pagedown", Action::Tail, "to the last message, and follow"),
    bind(Context::Global, "alt-p ctrl-up", Action::PreviousPrompt, "to the prompt above"),
    bind(Context::Global, "alt-n ctrl-down", Action::NextPrompt, "to the prompt below"),
    bind(Context::Global, "ctrl-o", Action::ExpandAll, "expand or collapse cards and thoughts"),
    bind(Context::Global, "alt-k", Action::SelectBlockUp, "select the block above"),
    bind(Context::Global, "alt-j", Action::SelectBlockDown, "select the block below"),
    bind(Context::Global, "alt-i", Action::ToggleBlock, "fold or unfold the selected block"),
    bind(
        Context::Global,
        "ctrl-t",
        Action::Detail,
        "the selected block, last card or answer in full",
    ),
    bind(Context::Global, "alt-l", Action::ToggleDock, "unfold or fold the plan's steps"),
    bind(Context::Global, "alt-c", Action::Copy, "copy the selection, else the last answer"),
    bind(Context::Global, "alt-x", Action::CopyCode, "copy its last code block"),
    bind(Context::Global, "alt-u", Action::CopyTurn, "copy its whole turn"),
    bind(Context::Global, "ctrl-s alt-s", Action::Search, "search the transcript"),
    bind(Context::Global, "alt-a", Action::Agents, "the subagents: look into one, cancel one"),
    bind(
        Context::Global,
        "alt-o",
        Action::OpenAgent,
        "look into the selected subagent (Esc: back)",
    ),
    bind(Context::Global, "alt-w", Action::CancelAgent, "cancel the subagent that is shown"),
    bind(Context::Global, "alt-q", Action::Queue, "what is queued: edit, delete, send now"),
    bind(Context::Global, "shift-tab", Action::NextMode, "next mode"),
    bind(Context::Global, "alt-m", Action::PickModel, "choose a model"),
    bind(Context::Global, "alt-t", Action::PickThought, "choose how much it thinks"),
    bind(Context::Global, "alt-r", Action::PickSession, "choose a session to resume"),
    bind(Context::Global, "f1 alt-h", Action::Help, "this help"),
    bind(Context::Global, "ctrl-l", Action::Redraw, "draw the screen again"),
    bind(Context::Global, "ctrl-z", Action::Suspend, "suspend (fg comes back)"),
];

/// Returns what `key` does when `context` has the focus.
pub fn action(context: Context, key: Key) -> Option<Action> {
    find(context, key).or_else(|| find(Context::Global, key))
}

fn find(context: Context, key: Key) -> Option<Action> {
    BINDINGS
        .iter()
        .filter(|b| b.context == context)
        .find(|b| b.keys.split(' ').filter_map(Key::parse).any(|k| k == key))
        .map(|b| b.action)
}

/// Returns the key to show in a hint for an action.
pub fn hint(context: Context, action: Action) -> Option<Key> {
    BINDINGS
        .iter()
        .find(|b| b.context == context && b.action == action)
        .and_then(|b| b.keys.split(' ').next())
        .and_then(Key::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_in_the_table_can_be_read() {
        for b in BINDINGS {
            for k in b.keys.split(' ') {
                assert!(Key::parse(k).is_some(), "{k} in {b:?}");
            }
            assert!(!b.help.is_empty());
        }
    }

    #[test]
    fn no_context_binds_a_key_twice() {
        for (i, a) in BINDINGS.iter().enumerate() {
            for b in BINDINGS.iter().skip(i + 1).filter(|b| b.context == a.context) {
                for k in a.keys.split(' ') {
                    assert!(!b.keys.split(' ').any(|x| x == k), "{k}: {a:?} and {b:?}");
                }
            }
        }
    }

    #[test]
    fn every_composer_function_has_a_key_that_a_plain_terminal_sends() {
        let newline = BINDINGS.iter().find(|b| b.action == Action::NewLine).unwrap();
        assert!(newline.keys.starts_with("ctrl-j"), "the shown key must work without a protocol");
    }

    #[test]
    fn sequences_read_as_typed() {
        let keys = Key::sequence("hi<ret><ctrl-c><lt>");
        assert_eq!(keys.len(), 5);
        assert_eq!(keys[2], Key::plain(KeyCode::Enter));
        assert_eq!(keys[3], Key::ctrl('c'));
        assert_eq!(keys[4], Key::plain(KeyCode::Char('<')));
    }

    #[test]
    fn the_focused_context_wins_over_the_global_one() {
        let esc = Key::plain(KeyCode::Esc);
        assert_eq!(action(Context::Composer, esc), Some(Action::Interrupt));
        assert_eq!(action(Context::Permission, esc), Some(Action::Close));
    }
}
