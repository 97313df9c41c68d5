//! The engine side: finding and starting the engine, its line protocol, and the simulated engine.
//! Knows nothing of ACP. Called by `bridge::session`.

pub mod event;
pub mod sim;
pub mod v4;
