//! End to end: the real binary, started as people and editors start it, on a terminal of its own or
//! on pipes, against the simulated engine over the real pipe.
//!
//! Nothing here sleeps: a test waits for what it wants to see, by name, and on a time-out prints
//! the screen and the log.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "all of this is test code, which fails by panicking"
)]
#![allow(dead_code, reason = "the terminal's tests come with the terminal")]

mod accounts;
mod approvals;
mod cli;
mod corpus;
mod doctor;
mod endurance;
mod files;
mod foreign;
mod keys;
mod link;
mod listing;
mod modes;
mod packaging;
mod readme;
mod replay;
mod resume;
mod run;
mod secrets;
mod serve;
mod sessions;
mod settings;
mod steering;
mod surroundings;
mod terminal;
mod tui;
mod walk;
mod watchdog;
mod world;
