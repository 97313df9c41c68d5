//! The pure parts measured from inside: what one streamed piece, one frame, one megabyte cost, and
//! that it does not grow with what came before.
//!
//! `cargo bench --bench pure -- [--short] [--gate] [--json FILE] [NAME…]`

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a measuring program: it fails by panicking and prints its table"
)]

mod bridge;
#[path = "../report.rs"]
mod report;
mod terminal;

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    report::main(|report| {
        bridge::measure(report);
        terminal::measure(report);
    })
}

/// Microseconds of one call, the best of three rounds: what the code costs, not what else runs.
pub(crate) fn best(rounds: u32, times: u64, mut work: impl FnMut()) -> f64 {
    let round = |work: &mut dyn FnMut()| {
        let began = Instant::now();
        for _ in 0..times {
            work();
        }
        began.elapsed().as_secs_f64() * 1e6 / times as f64
    };
    (0..rounds).map(|_| round(&mut work)).fold(f64::INFINITY, f64::min)
}
