//! DATA. Everything on the screen as plain values: transcript, composer, dialogs, status. No I/O, no ratatui.

pub mod transcript;
