//! What the system is told about this process's memory: what to hand back, and when. Owns nothing.
//! Called by the subcommands that live long, and by the watchdog.

/// Gives up the pages of the program's files that were touched so far, ours and the libraries'; what
/// is needed again is mapped again. The system maps sixteen pages around each one that is touched, so
/// a start (the command line, relocations, settings) leaves megabytes resident that nobody needs.
#[expect(unsafe_code, reason = "the standard library has no way to tell the system so")]
#[cfg(target_os = "linux")]
pub fn forget_code() {
    use std::ffi::{c_int, c_void};
    unsafe extern "C" {
        fn madvise(start: *mut c_void, length: usize, advice: c_int) -> c_int;
    }
    /// `MADV_DONTNEED` of sys/mman.h.
    const DONTNEED: c_int = 4;
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for (start, end) in unchanged(&maps) {
        let start = std::ptr::without_provenance_mut(start);
        // SAFETY: the kernel says that a file is mapped here, that nobody may write to it and that
        // no page of it was ever changed: each comes back from the file when it is touched.
        unsafe { madvise(start, end - start.addr(), DONTNEED) };
    }
}

/// Other systems count differently.
#[cfg(not(target_os = "linux"))]
pub fn forget_code() {}

/// The ranges of `/proc/self/smaps` where a file stands as it is on disk and cannot be written to.
#[cfg(target_os = "linux")]
fn unchanged(maps: &str) -> Vec<(usize, usize)> {
    let number = |text: &str| usize::from_str_radix(text, 16).ok();
    let range = |line: &str| -> Option<Option<(usize, usize)>> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let range = (number(start)?, number(end)?);
        let rights = fields.next()?;
        let is_file = fields.nth(3).is_some_and(|path| path.starts_with('/'));
        Some((is_file && matches!(rights, "r-xp" | "r--p")).then_some(range))
    };
    let mut current = None;
    let mut found = Vec::new();
    for line in maps.lines() {
        if let Some(candidate) = range(line) {
            current = candidate;
        } else if let Some(changed) = line.strip_prefix("Anonymous:") {
            found.extend(current.take().filter(|_| changed.trim() == "0 kB"));
        }
    }
    found
}

/// Makes the system's allocator hand every piece of memory above `bytes` back when it is freed. Left
/// alone, glibc takes the first freed megabyte as a sign that more of the kind will come, serves them
/// from its heaps from then on, and what is small and stays (the ends of the texts) nails them down:
/// two hundred outputs of a megabyte held 350 MiB that nothing used. What is handed back costs a page
/// fault for every 4 KiB when it is taken again, so whoever needs pieces of a size all the time says
/// more. Call it before there are threads.
#[expect(unsafe_code, reason = "the allocator has no other interface")]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn hand_back_memory_above(bytes: u32) {
    use std::ffi::c_int;
    unsafe extern "C" {
        fn mallopt(parameter: c_int, value: c_int) -> c_int;
    }
    /// `M_TRIM_THRESHOLD` of malloc.h: how much stays at the end of the heap.
    const TRIM_THRESHOLD: c_int = -1;
    /// `M_MMAP_THRESHOLD`: setting it also ends its growth.
    const MMAP_THRESHOLD: c_int = -3;
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    for parameter in [MMAP_THRESHOLD, TRIM_THRESHOLD] {
        // SAFETY: declared as in malloc.h; it changes nothing that is allocated. Where it is
        // refused, more memory is held and nothing else is different.
        unsafe { mallopt(parameter, bytes) };
    }
}

/// Other allocators do so by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn hand_back_memory_above(_bytes: u32) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn only_files_that_nobody_can_have_changed_are_forgotten() {
        let map = |range: &str, rights: &str, path: &str, changed: &str| {
            format!(
                "{range} {rights} 00000000 08:01 7 {path}\nRss: 64 kB\nAnonymous: {changed} kB\n"
            )
        };
        let maps = [
            map("1000-2000", "r--p", "/bin/x", "0"),
            map("2000-5000", "r-xp", "/bin/x", "0"),
            map("5000-6000", "r--p", "/bin/x", "4"), // relocated
            map("6000-7000", "rw-p", "/bin/x", "0"),
            map("7000-8000", "rw-p", "[heap]", "8"),
            map("8000-9000", "r-xp", "[vdso]", "0"),
            map("9000-a000", "r--p", "", "0"),
        ];
        assert_eq!(unchanged(&maps.concat()), [(0x1000, 0x2000), (0x2000, 0x5000)]);
        // Everything is there again afterwards.
        forget_code();
        assert_eq!(format!("{:?}", unchanged("")), "[]");
    }
}
