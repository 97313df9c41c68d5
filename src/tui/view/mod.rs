//! PURE. Model → cells. Knows ratatui, not ACP.

pub mod diff;
pub mod markdown;
pub mod theme;
pub mod transcript;
pub mod width;
