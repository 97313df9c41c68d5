//! The terminal chat: a ratatui ACP client. It drives whatever agent it is handed; it never
//! imports the bridge.

pub mod model;
pub mod update;
pub mod view;
