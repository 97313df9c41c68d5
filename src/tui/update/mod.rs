//! PURE. (Model, Msg) → Model and commands. No I/O, no drawing.

pub mod acp;
