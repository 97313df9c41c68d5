//! Log set-up: tracing to a rotated file in the platform's state directory, never to standard
//! output. Called once by `main`.
