//! `zcode-acp serve`: connects the bridge to standard input and output. Holds no logic of its own.
