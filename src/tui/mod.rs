//! The terminal chat: a ratatui ACP client. It drives whatever agent it is handed; it never
//! imports the bridge.
//!
//! ```text
//! keys ── terminal ──┐                       ┌── client ── ACP ── agent (any)
//!                    ├→ app: update(Model) ←─┤   (own thread)
//! signals, clock ────┘   └→ view → cells     └─→ carries out commands
//! ```
//! The loop in [`app`] owns the [`model`]; [`update`] changes it, [`view`] draws it, both are pure.

pub mod agent_source;
pub mod app;
mod attachment;
pub mod client;
pub mod clipboard;
pub mod editor;
pub mod jobs;
pub mod keymap;
mod listing;
pub mod model;
pub mod msg;
pub mod spill;
pub mod store;
pub mod terminal;
pub mod update;
pub mod view;

pub use agent_source::AgentSource;
pub use app::{Exit, TuiOptions, run};
