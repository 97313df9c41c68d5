//! The README's tables against the program: what it documents exists, and what exists it documents.

use clap::CommandFactory as _;
use zcode_acp::cli::Cli;

const README: &str = include_str!("../../README.md");

#[test]
fn every_subcommand_is_in_the_readme() {
    for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        let row = README
            .lines()
            .any(|line| line.starts_with("| `") && line.contains(&format!("`{name}")));
        assert!(row || name == "help", "{name} has no row");
    }
}

#[test]
fn every_settings_key_of_ours_is_in_the_readme() {
    // Keys of the TypeScript bridge's other parts are taken and do nothing; the README says so.
    let idle = ["lang", "goal.maxTurns", "goal.mode", "workflow.mode", "tui.stats", "$schema"];
    for key in zcode_acp::config::known_keys().filter(|key| !key.ends_with(".*")) {
        let told = README.contains(&format!("| `{key}` |"));
        assert!(told != idle.contains(&key), "{key}: told {told}");
    }
}

#[test]
fn every_variable_of_the_readme_is_read_somewhere() {
    let table =
        README.lines().filter(|line| line.starts_with("| ") && line.matches(" | ").count() == 2);
    let mut code = String::new();
    let mut dirs = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => dirs.push(path),
                path => code.push_str(&std::fs::read_to_string(path).unwrap_or_default()),
            }
        }
    }
    let mut seen = 0;
    for line in table {
        let Some(cell) = line.split('|').nth(2) else { continue };
        let names = cell.split('`').skip(1).step_by(2);
        for name in names.filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')) {
            seen += 1;
            assert!(code.contains(&format!("\"{name}\"")), "{name} is not read");
        }
    }
    assert!(seen > 20, "the table was not found: {seen}");
}
