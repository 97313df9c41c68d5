//! `zcode-acp`: the ZCode coding engine as an ACP agent, and a terminal chat on top of it.
//!
//! Two halves that meet only at an ACP connection:
//!
//! - [`bridge`] is an ACP *agent*. It owns engines (child processes that speak JSON lines) and
//!   turns engine events into ACP.
//! - [`tui`] is an ACP *client*. It turns ACP into a model and the model into terminal cells. It
//!   never imports the bridge: the bridge is handed to it as a value, and any other agent can be.
//!
//! Reading order: [`cli`] (what can be asked), [`config`] (with which settings), then the
//! subcommands ([`serve`], `tui`), then [`bridge`] from `engine` outwards, then [`tui`].

pub mod accounts;
pub mod agents;
pub mod approvals;
pub mod cli;
pub mod config;
pub mod error;
pub mod foreign;
pub mod join;
pub mod logging;
pub mod printable;
pub mod process;
pub mod redact;
pub mod small_file;
pub mod trace;

pub mod bridge;
pub mod tui;

pub mod chat;
pub mod doctor;
pub mod login;
pub mod manual;
pub mod quota;
pub mod replay;
pub mod run;
pub mod serve;
pub mod sessions;
