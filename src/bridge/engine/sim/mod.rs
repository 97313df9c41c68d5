//! The simulated engine: a faithful engine without a model, run as a child process over the real
//! pipe (`zcode-acp sim-engine`). For the demo, the tests and bug reports.
