//! The command line: clap types only. Parsed by `main`, turned into a `Config` by `config`.
