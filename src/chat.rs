//! The `tui` subcommand: hands the terminal an agent (our bridge, or any other by `--agent`).
//! Wires parts together and holds no logic of its own.

use std::io::IsTerminal as _;

use crate::agents::{self, Pieces};
use crate::cli::TuiArgs;
use crate::config::{Config, DemoConfig, working_directory};
use crate::error::AppError;
use crate::process;
use crate::tui::model::{FirstSession, Start};
use crate::tui::terminal::traits;
use crate::tui::{self, TuiOptions};

/// What to type to see the demo engine at work.
const EXAMPLES: &[(&str, &str)] = &[
    ("hello", "thoughts, markdown with a table and code"),
    ("edit", "a file read and edited, with its diff"),
    ("bash", "a command with progress and colours"),
    ("permission", "something to allow or to reject"),
    ("plan", "a long plan to approve or send back"),
    ("questions", "a form to fill in"),
    ("subagent", "work handed to a subagent"),
    ("flood", "a lot of text at once"),
];

/// Runs the terminal chat until the user leaves.
pub fn run(config: Config, args: TuiArgs) -> Result<(), AppError> {
    process::hand_back_memory_above(128 * 1024);
    let cwd = working_directory(args.session.cwd.as_deref())?;
    let foreign = args.session.agent.as_deref();
    let is_demo = config.engine.demo.is_some();
    let start = Start {
        home: config.home.clone(),
        agent_label: match foreign {
            Some(command) => command.to_owned(),
            None if is_demo => "the demo engine".to_owned(),
            None => "ZCode".to_owned(),
        },
        examples: if is_demo && foreign.is_none() { examples() } else { Vec::new() },
        can_demo: !is_demo && foreign.is_none(),
        first: match args.session.id {
            Some(id) => FirstSession::Named(id),
            None if args.session.continue_last => FirstSession::Newest,
            None => FirstSession::New,
        },
        reduced_motion: !config.tui.animations,
        cwd: cwd.clone(),
        ..Start::default()
    };
    let demo = start.can_demo.then(|| {
        let mut config = config.clone();
        config.engine.demo = Some(DemoConfig::default());
        agents::bridge(config)
    });
    let options = TuiOptions {
        start,
        state_dir: config.state_dir.clone(),
        theme: traits::with_setting(
            traits::theme_spec(|name| config.env.str(name).map(str::to_owned)),
            config.tui.theme.as_deref(),
        ),
        fixed_background: matches!(config.tui.theme.as_deref(), Some("dark" | "light")),
        mouse: config.tui.mouse,
        env: config.env.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        demo,
        prompt: args.prompt,
    };
    let source = match foreign {
        Some(command) => agents::foreign(command, cwd, &config, Pieces::Joined)?.0,
        None => agents::bridge(config),
    };
    tui::run(source, options).map(drop).map_err(|err| {
        let failure = "the terminal cannot be used";
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            return AppError::failed(failure).caused_by(err);
        }
        AppError::usage(failure)
            .caused_by(err)
            .hint("tui needs a terminal for its input and output")
            .hint("without one: zcode-acp run \"PROMPT\" for scripts, zcode-acp serve for editors")
    })
}

fn examples() -> Vec<(String, String)> {
    EXAMPLES.iter().map(|(prompt, what)| ((*prompt).to_owned(), (*what).to_owned())).collect()
}
