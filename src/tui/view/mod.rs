//! PURE. Model → cells. Knows ratatui, not ACP.
