//! Who is signed in and which plans may be used: read from ZCode's own files, computed purely.
//!
//! Reads a handful of small files and writes, logs and keeps nothing. Values that ZCode encrypted
//! (`enc:v1:…`) are never opened. A key leaves this module in two ways only: as the answer to the
//! user's own engine that asks for it ([`header_answer`]), and to the service that it is for, when the
//! user turned the live check on ([`Live`]). Called by `bridge::session` (what to tell an engine), by
//! the engine's header policy, and by `login`, `doctor` and `quota`.

mod entitlement;
mod files;
mod http;
mod limits;
mod live;
pub mod providers;
pub mod quota;
mod sign_in;
mod usage;

pub use entitlement::{
    Entitlement, LiveAnswers, Source, entitlements, header_answer, update_params,
};
pub use files::{AccountFiles, Stamp, read_json};
pub use limits::{Limits, Window};
pub use live::Live;
pub use providers::{Provider, providers};
pub use sign_in::{Channel, SignIn, sign_in};
pub use usage::usage_stats;

/// The two account families and where each signs in.
pub const FAMILIES: [&str; 2] = ["bigmodel", "zai"];

/// Whether a stored value is ZCode's own ciphertext, which is not ours to open.
pub fn is_encrypted(value: &str) -> bool {
    value.starts_with("enc:v1:")
}

#[cfg(test)]
mod tests;
