//! The `completions` and `man` subcommands: the command line's definition in other words.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::AppError;

/// Writes the completions of a shell.
pub fn completions(shell: Shell, out: &mut dyn Write) -> Result<(), AppError> {
    // The generator panics on a closed output, a buffer does not close.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "zcode-acp", &mut text);
    out.write_all(&text).map_err(|err| AppError::failed("cannot write").caused_by(err))
}

/// Writes the manual page: the program's, then each subcommand's options.
pub fn man(out: &mut dyn Write) -> Result<(), AppError> {
    let mut text = Vec::new();
    let mut command = Cli::command();
    command.build();
    let failed = |err| AppError::failed("cannot write").caused_by(err);
    clap_mangen::Man::new(command.clone()).render(&mut text).map_err(failed)?;
    for subcommand in
        command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help")
    {
        let name = subcommand.get_name().to_uppercase();
        writeln!(text, ".SH {name}").map_err(failed)?;
        clap_mangen::Man::new(subcommand.clone())
            .render_options_section(&mut text)
            .map_err(failed)?;
    }
    out.write_all(&text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_completes_the_subcommands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut out = Vec::new();
            completions(shell, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("doctor") && text.contains("approvals"), "{shell}");
        }
    }

    #[test]
    fn the_manual_page_has_every_visible_subcommand_and_no_hidden_one() {
        let mut out = Vec::new();
        man(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for name in ["RUN", "DOCTOR", "SERVE", "TUI", "LOGIN"] {
            assert!(text.contains(&format!(".SH {name}\n")), "{name}");
        }
        assert!(!text.contains("WATCHDOG"));
    }
}
