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

fn main() -> ExitCode {
    report::main(|report| {
        bridge::measure(report);
        terminal::measure(report);
    })
}

/// Seconds of processor that this thread has taken.
pub(crate) fn thread_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Microseconds of processor of one call, the best of three rounds: what the code costs, not what
/// else runs.
pub(crate) fn best(rounds: u32, times: u64, mut work: impl FnMut()) -> f64 {
    let round = |work: &mut dyn FnMut()| {
        let began = thread_time();
        for _ in 0..times {
            work();
        }
        (thread_time() - began) * 1e6 / times as f64
    };
    (0..rounds).map(|_| round(&mut work)).fold(f64::INFINITY, f64::min)
}
