//! What the system says of a process: CPU time, memory, wake-ups, files, threads.

use std::fs;
use std::time::Instant;

/// One reading of a process, all threads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    /// CPU time in seconds, user and system.
    pub(crate) cpu: f64,
    /// The same of the main thread alone, which draws.
    pub(crate) main: f64,
    /// Times that a thread went to sleep by itself.
    pub(crate) sleeps: u64,
    /// Resident memory in MiB.
    pub(crate) rss: f64,
    /// The most it ever was.
    pub(crate) peak: f64,
    /// Open files.
    pub(crate) files: u64,
    /// Threads.
    pub(crate) threads: u64,
}

/// Reads `pid`; zeros when it is gone.
pub(crate) fn read(pid: u32) -> Reading {
    let mut reading = Reading::default();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let path = task.path();
        let text = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        let ns: f64 = text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or_default();
        reading.cpu += ns / 1e9;
        if task.file_name().to_str() == Some(&pid.to_string()) {
            reading.main = ns / 1e9;
        }
        reading.threads += 1;
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        reading.sleeps += field(&status, "voluntary_ctxt_switches:") as u64;
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    reading.rss = field(&status, "VmRSS:") / 1024.0;
    reading.peak = field(&status, "VmHWM:") / 1024.0;
    reading.files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().count() as u64;
    reading
}

fn field(status: &str, name: &str) -> f64 {
    let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or_default()
}

/// Nanoseconds on the clock that all processes of the machine share.
pub(crate) fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Milliseconds since then.
pub(crate) fn ms_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// The middle value.
pub(crate) fn median(values: &[f64]) -> f64 {
    crate::report::percentile(values, 0.5)
}
