//! The ways to log in that an agent offers. Data only.

/// A way to log in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthMethod {
    /// What the agent calls it.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// More of it, or empty.
    pub about: String,
    /// The program that logs in on the terminal; without one the agent does it by itself.
    pub program: Option<LoginProgram>,
}

/// A login that is a program of its own, to be run on the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoginProgram {
    /// The program, where it is another one than the agent's own command.
    pub command: Option<String>,
    /// What is added to the agent's own arguments; all there are for another program.
    pub args: Vec<String>,
    /// What is added to the environment.
    pub env: Vec<(String, String)>,
}
