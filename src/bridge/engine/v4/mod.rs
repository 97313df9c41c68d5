//! The engine's V4 channel: frames, fragments, rows and state keys (engine protocol section 8).
//! The assembler is pure; the session machine decides what of it becomes ACP.
