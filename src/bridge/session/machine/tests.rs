//! Tables over the machine: given inputs, expected effects.
