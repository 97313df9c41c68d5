//! Sessions: the registry of ACP session ids, and for each live session one actor around a pure
//! state machine (input → effects). Called by the ACP handlers in `bridge::agent`.

mod actor;
mod alias;
pub(crate) mod failure;
#[allow(clippy::unnecessary_wraps, reason = "the last mappings move to the translation layer next")]
mod interim;
mod listing;
#[allow(
    dead_code,
    clippy::unused_self,
    clippy::needless_pass_by_value,
    reason = "settings, commands and compaction are filled in next"
)]
pub(crate) mod machine;
#[allow(dead_code, reason = "read by the settings, which are filled in next")]
mod providers;
pub(crate) mod registry;
