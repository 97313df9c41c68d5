//! The program measured from outside: a child on pipes (as an editor starts it) and on a
//! pseudo-terminal that counts bytes (as a person does), against the simulated engine and an agent
//! that floods. Prints a table; with `--gate` it fails when a figure is far beyond its target.
//!
//! `cargo bench --bench process -- [--short] [--gate] [--json FILE] [NAME…]`
//!
//! This very executable also plays the parts around the program: between bridge and simulated
//! engine as a relay that notes when each line passed (`app-server …`), as the agent that floods the
//! terminal (`flood-agent`), as the least of all agents (`serve`), and as what becomes the program and notes when (`timed-exec …`).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a measuring program: it fails by panicking, prints its table and starts children"
)]

mod bridge;
mod client;
mod flood_agent;
mod floor;
mod inside;
mod probe;
mod pty;
mod relay;
#[path = "../report.rs"]
mod report;
mod terminal;

use std::process::ExitCode;

/// Names another build of the program to be measured.
const OTHER: &str = "ZCODE_ACP_BENCH_BINARY";

/// The program that is measured.
fn binary() -> String {
    std::env::var(OTHER).unwrap_or_else(|_| env!("CARGO_BIN_EXE_zcode-acp").to_owned())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("app-server") => {
            return std::env::var_os(inside::QUIET)
                .map_or_else(relay::run, |note| inside::run_engine(note.as_ref()));
        }
        Some("flood-agent") => return flood_agent::run(),
        Some("serve") => return floor::run(),
        Some("timed-exec") => return pty::timed_exec(&args[1..]),
        _ => {}
    }
    report::main(|report| {
        bridge::measure(report);
        terminal::measure(report);
    })
}
