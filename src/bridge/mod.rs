//! The ACP agent. Owns the engines and the sessions; its only public item is the agent value that
//! `serve` connects to standard input and output, and that `tui` and `run` connect in-process.

mod agent;
pub mod engine;
mod extensions;
mod servers;
pub mod session;
pub mod stdio;
pub mod translate;

pub use agent::{BridgeAgent, agent};

#[cfg(test)]
mod tests;
