//! Errors as people see them: a kind (which decides the exit code), a cause and hints.
//! Made by the subcommands, printed by `main`.
