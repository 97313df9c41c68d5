//! The terminal itself: modes and their restoration, bytes in, cells out. The only part of the
//! program that writes to the screen. Used by `app`.
//!
//! - [`guard`]: raw mode, alternate screen and the other modes; leaving them in the right order.
//! - [`input`]: bytes to events (pure).
//! - [`query`]: the same questions, with a wait for the answers.
//! - [`reader`]: the thread that reads the bytes.
//! - [`traits`]: what it can show, from the environment (pure).
//! - [`screen`]: cells to bytes, only what changed (pure but for the one write); `scroll` finds
//!   rows that only moved.

pub mod guard;
pub mod input;
pub mod query;
pub mod reader;
pub mod screen;
mod scroll;
pub mod traits;
