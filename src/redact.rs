//! Redaction of wire lines and free text: pure functions that take secrets out before anything is
//! logged, traced or bundled. Called by `logging`, the traces and `doctor`.
