//! The engine's V4 channel (engine protocol section 8), pure: text in, facts out, no I/O and no clock of its own.
//!
//! [`wire`] types the frames, [`fragments`] puts split ones together, [`topic`] keeps one topic's state and says what
//! changed, [`fuse`] joins what both channels say about one turn, [`commands`] builds what is sent and reads the answers,
//! and [`steer`] follows one guide to its verdict. The session machine decides what of it becomes ACP.

pub mod commands;
pub mod fragments;
pub mod fuse;
pub mod rows;
pub mod state;
pub mod steer;
pub mod topic;
pub mod wire;
