//! PURE. Engine facts to ACP facts and back: no I/O, no clock, no runtime. One file per family.
//! Called by the session machine, tested by tables and golden transcripts.
