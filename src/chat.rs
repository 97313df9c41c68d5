//! The `tui` subcommand: hands the terminal an agent (our bridge, or any other by `--agent`).
//! Wires parts together and holds no logic of its own.

use crate::cli::TuiArgs;
use crate::config::Config;
use crate::error::AppError;
use crate::tui;

/// Runs the terminal chat until the user leaves.
pub fn run(config: Config, args: TuiArgs) -> Result<(), AppError> {
    let Some(command) = args.agent else {
        return Err(AppError::failed("this build has no terminal chat for the engine yet"));
    };
    let cwd = args.cwd.unwrap_or_else(|| std::env::current_dir().unwrap_or_default());
    let options = tui::TuiOptions {
        start: tui::model::Start {
            cwd: cwd.clone(),
            home: config.home,
            agent_label: command.clone(),
            resume: args.session,
            ..tui::model::Start::default()
        },
        state_dir: config.state_dir,
        theme: tui::view::theme::ThemeSpec::default(),
        demo: None,
        prompt: args.prompt,
    };
    tui::run(tui::agent_command(&command, cwd), options)
        .map(drop)
        .map_err(|e| AppError::failed(e.to_string()))
}
