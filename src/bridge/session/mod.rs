//! Sessions: the registry of ACP session ids, and for each live session one actor around a pure
//! state machine (input → effects). Called by the ACP handlers in `bridge::agent`.

mod accounts;
mod actor;
mod alias;
pub(crate) mod failure;
mod listing;
pub(crate) mod machine;
mod merge;
mod providers;
pub(crate) mod registry;
mod succession;
