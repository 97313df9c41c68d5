//! Entry point: parse, start logging, run the command, print the error, exit code.

fn main() {}
