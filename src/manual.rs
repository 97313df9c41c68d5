//! The `completions` and `man` subcommands: the command line's definition in other words.

use std::io::Write;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::AppError;

/// Writes the completions of a shell.
pub fn completions(shell: Shell, out: &mut dyn Write) -> Result<(), AppError> {
    // The generator panics on a closed output, a buffer does not close.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut visible(&Cli::command()), "zcode-acp", &mut text);
    out.write_all(&text).map_err(|err| AppError::failed("cannot write").caused_by(err))
}

/// The command without what is not for people: the generators offer hidden subcommands and flags, too.
fn visible(command: &Command) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    // Names must live as long as the program, which ends once they are written.
    Command::new(&*command.get_name().to_owned().leak())
        .version(crate::cli::VERSION)
        .propagate_version(true)
        .about(about)
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().filter(|it| !it.is_hide_set()).map(visible))
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
    use clap::ValueEnum as _;

    use super::*;

    fn completions_of(shell: Shell) -> String {
        let mut out = Vec::new();
        completions(shell, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_shell_completes_the_subcommands() {
        for shell in Shell::value_variants() {
            let text = completions_of(*shell);
            for command in Cli::command().get_subcommands().filter(|it| !it.is_hide_set()) {
                assert!(text.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
            // Elvish and PowerShell have `--format`, fish `-l format`.
            for word in ["max-turns", "trace", "bundle", "ndjson", "deny", "no-probe"] {
                let values = *shell != Shell::Elvish && *shell != Shell::PowerShell;
                assert!(text.contains(word) || (word == "ndjson" && !values), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn no_shell_completes_what_is_not_for_people() {
        for shell in Shell::value_variants() {
            let text = completions_of(*shell);
            for hidden in ["sim-engine", "sim__engine", "watchdog", "-login", "-setup", "setup"] {
                assert!(!text.contains(hidden), "{shell}: {hidden}");
            }
            assert!(!text.contains("-l login") && !text.contains("ignored"), "{shell}");
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
