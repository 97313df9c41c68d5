//! The command line: clap types only. Owns names, help texts and value checks; does nothing.
//! Parsed by `main`, read by the subcommands.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The version line: version, commit and build profile.
pub const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("ZCODE_ACP_COMMIT"),
    ", ",
    env!("ZCODE_ACP_PROFILE"),
    " build)"
);

/// The ZCode coding engine as a standard ACP agent, and a terminal chat on top of it.
#[derive(Debug, Parser)]
#[command(
    name = "zcode-acp",
    version = VERSION,
    // Editors ask `zcode-acp serve --version`; each subcommand answers by the program's name.
    propagate_version = true,
    about,
    long_about = "Drives the ZCode coding engine that is installed and signed in on this machine, with your own plan.\n\n\
        In a terminal it is a chat. Started by an editor (or with `serve`) it is an ACP agent over standard input and \
        output. No subcommand means `tui` when both standard input and output are terminals, else `serve`.",
    after_help = "Try it without an engine:  zcode-acp tui --demo\n\
        Find out what is wrong:    zcode-acp doctor\n\
        Settings: ~/.config/zcode-acp/config.json; a flag beats the file, the file beats the environment.",
    max_term_width = 100
)]
pub struct Cli {
    /// What to do; absent means `tui` on a terminal, else `serve`.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options that every subcommand takes.
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// Options that every subcommand takes.
#[derive(Debug, Clone, Default, Args)]
pub struct GlobalArgs {
    /// Record the engine's wire and the ACP wire to FILE; secrets removed.
    #[arg(long, global = true, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Sign in, or see how to (what ACP clients start for "terminal" authentication).
    #[arg(long, global = true, hide = true)]
    pub login: bool,
    /// The same as --login, by the name that some clients use.
    #[arg(long, global = true, hide = true)]
    pub setup: bool,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Chat in this terminal.
    #[command(display_name = "zcode-acp")]
    Tui(TuiArgs),
    /// Serve one ACP client (an editor) over standard input and output.
    #[command(display_name = "zcode-acp")]
    Serve(ServeArgs),
    /// Run one turn without a screen; the reply goes to standard output.
    #[command(display_name = "zcode-acp", after_help = RUN_HELP)]
    Run(RunArgs),
    /// Show whether ZCode is signed in and which providers work; say how to sign in.
    #[command(display_name = "zcode-acp")]
    Login,
    /// Check engine, accounts, files and terminal; say what to do about each fault.
    #[command(display_name = "zcode-acp")]
    Doctor(DoctorArgs),
    /// Show tool permissions that wait as files, and answer them from here.
    #[command(display_name = "zcode-acp")]
    Approvals(ApprovalsArgs),
    /// List, show, export and close sessions.
    #[command(display_name = "zcode-acp")]
    Sessions(SessionsArgs),
    /// Show which plans and providers there are and what is known of their quota.
    #[command(display_name = "zcode-acp")]
    Quota,
    /// Play one side of a trace (see --trace) on standard input and output.
    #[command(display_name = "zcode-acp")]
    Replay(ReplayArgs),
    /// Print shell completions, to be sourced or installed.
    #[command(display_name = "zcode-acp")]
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    #[command(display_name = "zcode-acp")]
    Man,
    /// Play the engine: line protocol on standard input and output.
    #[command(hide = true, display_name = "zcode-acp")]
    SimEngine(SimEngineArgs),
    /// Wait for a parent to die, then end a process group.
    #[command(hide = true, display_name = "zcode-acp")]
    Watchdog(WatchdogArgs),
}

/// Which engine to drive.
#[derive(Debug, Clone, Default, Args)]
pub struct EngineArgs {
    /// Use the built-in simulated engine: no account, no model, no network.
    #[arg(long)]
    pub demo: bool,
    /// Engine version the demo plays: 0.15, 0.16.5 or 0.16.9.
    #[arg(long, value_name = "VERSION", requires = "demo", hide_short_help = true)]
    pub demo_profile: Option<String>,
    /// Pace of the demo: 1 looks real, 0 is as fast as possible.
    #[arg(long, value_name = "FACTOR", requires = "demo", hide_short_help = true)]
    pub demo_pace: Option<f64>,
    /// Where the demo keeps its sessions.
    #[arg(long, value_name = "DIR", requires = "demo", hide_short_help = true)]
    pub demo_store: Option<PathBuf>,
    /// Instead of an engine, play what it said in this trace (see --trace).
    #[arg(long, value_name = "FILE", conflicts_with = "demo", hide_short_help = true)]
    pub replay: Option<PathBuf>,
}

/// The agent and the session that a chat or a run has.
#[derive(Debug, Clone, Default, Args)]
pub struct SessionArgs {
    /// Drive any other ACP agent: the command that starts it.
    #[arg(long, value_name = "COMMAND", conflicts_with = "demo")]
    pub agent: Option<String>,
    /// Working directory of the session.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Go on with this session.
    #[arg(long = "session", value_name = "ID", conflicts_with = "continue_last")]
    pub id: Option<String>,
    /// Go on with the newest session of the working directory.
    #[arg(long = "continue")]
    pub continue_last: bool,
    /// Model to begin with.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Mode to begin with.
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
}

/// Options of `tui`.
#[derive(Debug, Clone, Default, Args)]
pub struct TuiArgs {
    /// Which engine to drive.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Whom to talk to, where, and with what.
    #[command(flatten)]
    pub session: SessionArgs,
    /// Prompt to send at once.
    #[arg(value_name = "PROMPT")]
    pub prompt: Option<String>,
}

/// Options of `serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Which engine to drive.
    #[command(flatten)]
    pub engine: EngineArgs,
}

const RUN_HELP: &str = "\
Rules: Bash, Edit, execute, * name tools; Bash(git diff*) or Edit(src/**) say what for. Deny beats allow; a
permission that no rule allows is denied and said on standard error.

Exit codes: 0 done, 1 failed, 2 usage, 3 cancelled, 4 refused or denied, 5 no engine, 6 sign-in needed,
124 time is up, 130 interrupted.";

/// Options of `run`.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// The prompt; several are joined by line ends, `-` is standard input [default: `-`].
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
    /// Which engine to drive.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Whom to talk to, where, and with what.
    #[command(flatten)]
    pub session: SessionArgs,
    /// What standard output carries.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: crate::run::Format,
    /// Let matching tools run; may be given more than once.
    #[arg(long, value_name = "RULE")]
    pub allow: Vec<String>,
    /// Do not let matching tools run, whatever --allow says.
    #[arg(long, value_name = "RULE")]
    pub deny: Vec<String>,
    /// Cancel the turn after so many model requests.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_turns: Option<u64>,
    /// Cancel the turn after so many seconds (exit code 124).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<f64>,
}

/// A time in seconds that can be waited for.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|err| format!("{err}"))?;
    if seconds > 0.0 && seconds < 1e9 { Ok(seconds) } else { Err("must be more than 0".to_owned()) }
}

/// Options of `doctor`.
#[derive(Debug, Clone, Default, Args)]
pub struct DoctorArgs {
    /// Write the page as JSON.
    #[arg(long)]
    pub json: bool,
    /// Also write a report to FILE, with secrets removed, that is safe to post.
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// Do not start the engine.
    #[arg(long)]
    pub no_probe: bool,
    /// Which engine to check.
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Options of `approvals`.
#[derive(Debug, Clone, Default, Args)]
pub struct ApprovalsArgs {
    /// Directory of the questions [default: `$ZCODE_ACP_APPROVAL_DIR`, else `~/.zcode-acp/pending`].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// List as JSON.
    #[arg(long)]
    pub json: bool,
    /// Absent: list what waits for an answer.
    #[command(subcommand)]
    pub command: Option<ApprovalsCommand>,
}

/// How to answer.
#[derive(Debug, Clone, Subcommand)]
pub enum ApprovalsCommand {
    /// Show all of a question.
    Show {
        /// The question, or the first digits of it.
        id: String,
    },
    /// Let the tool run.
    Allow {
        /// The question, or the first digits of it.
        id: String,
        /// A word to keep with the answer.
        #[arg(long)]
        note: Option<String>,
    },
    /// Do not let the tool run.
    Deny {
        /// The question, or the first digits of it.
        id: String,
        /// Why not; the model is told.
        #[arg(long)]
        note: Option<String>,
    },
}

/// Options of `sessions`.
#[derive(Debug, Clone, Default, Args)]
pub struct SessionsArgs {
    /// Which engine has the sessions.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Sessions of this directory [default: the working directory].
    #[arg(long, global = true, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Absent: list them.
    #[command(subcommand)]
    pub command: Option<SessionsCommand>,
}

/// What to do with sessions.
#[derive(Debug, Clone, Subcommand)]
pub enum SessionsCommand {
    /// List the sessions of the directory, newest first.
    List {
        /// Of every directory.
        #[arg(long)]
        all: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a session's conversation as markdown.
    Show {
        /// The session.
        id: String,
    },
    /// Write a session's conversation.
    Export {
        /// The session.
        id: String,
        /// As what.
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: TranscriptFormat,
        /// To this file, which must not be there yet, instead of standard output.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Close a session in the engine; its history stays.
    Close {
        /// The session.
        id: String,
    },
}

/// What a conversation is written as.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum TranscriptFormat {
    /// As the chat shows it.
    #[default]
    Markdown,
    /// Every ACP update.
    Json,
}

/// Options of `replay`.
#[derive(Debug, Clone, Args)]
pub struct ReplayArgs {
    /// The trace.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Whose part is played.
    #[arg(long = "as", value_enum, default_value_t, value_name = "SIDE")]
    pub side: ReplaySide,
    /// Pace: 1 is as it was, 0 is as fast as possible.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.0, value_parser = pace)]
    pub pace: f64,
    /// An engine's own arguments, taken and ignored.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub ignored: Vec<String>,
}

/// A factor that time can be multiplied by.
fn pace(text: &str) -> Result<f64, String> {
    let factor: f64 = text.parse().map_err(|err| format!("{err}"))?;
    if (0.0..=100.0).contains(&factor) {
        Ok(factor)
    } else {
        Err("must be from 0 to 100".to_owned())
    }
}

/// A side of the bridge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ReplaySide {
    /// The engine's, for the bridge (`serve --replay FILE` starts it).
    #[default]
    Engine,
    /// The agent's, for any ACP client.
    Agent,
}

/// Options of `sim-engine`.
#[derive(Debug, Clone, Default, Args)]
pub struct SimEngineArgs {
    /// Engine version to play: 0.15, 0.16.5 or 0.16.9.
    #[arg(long, value_name = "VERSION")]
    pub profile: Option<String>,
    /// Pace: 1 looks real, 0 is as fast as possible.
    #[arg(long, value_name = "FACTOR")]
    pub pace: Option<f64>,
    /// Where sessions persist.
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// What goes wrong on purpose, for example `die:3`, `slow:session/read:1500`, `lose-completed`.
    #[arg(long = "fault", value_name = "FAULT")]
    pub faults: Vec<String>,
    /// Further switches, for example `-o seed=1 -o no-batch -o script=FILE`.
    #[arg(short = 'o', long = "option", value_name = "NAME[=VALUE]")]
    pub options: Vec<String>,
    /// The real engine's own arguments; an unknown one is refused.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub rest: Vec<String>,
}

/// Options of `watchdog`.
#[derive(Debug, Clone, Args)]
pub struct WatchdogArgs {
    /// The process group to end.
    #[arg(long)]
    pub group: i32,
}

impl Cli {
    /// Returns the command to run, given whether standard input and output are both terminals.
    pub fn command_or_default(&mut self, on_terminal: bool) -> Command {
        if self.global.login || self.global.setup {
            return Command::Login;
        }
        match self.command.take() {
            Some(command) => command,
            None if on_terminal => Command::Tui(TuiArgs::default()),
            None => Command::Serve(ServeArgs::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_bare_command_chats_on_a_terminal_and_serves_elsewhere() {
        let mut cli = parse("zcode-acp").unwrap();
        assert!(matches!(cli.command_or_default(true), Command::Tui(_)));
        assert!(matches!(cli.command_or_default(false), Command::Serve(_)));
    }

    #[test]
    fn clients_that_add_a_flag_for_signing_in_get_the_login() {
        for line in ["zcode-acp --login", "zcode-acp serve --setup", "zcode-acp serve --login"] {
            let mut cli = parse(line).unwrap();
            assert!(matches!(cli.command_or_default(false), Command::Login), "{line}");
        }
    }

    #[test]
    fn the_demo_and_another_agent_exclude_each_other() {
        assert!(parse("zcode-acp tui --demo").is_ok());
        assert!(parse("zcode-acp tui --demo --agent x").is_err());
        assert!(parse("zcode-acp tui --demo-pace 0").is_err());
    }

    #[test]
    fn the_simulated_engine_takes_the_real_engines_arguments() {
        let cli =
            parse("zcode-acp sim-engine --pace 0 app-server --stdio --disallowed-tools X").unwrap();
        let Some(Command::SimEngine(args)) = cli.command else { panic!("not sim-engine") };
        assert_eq!(args.pace, Some(0.0));
        assert_eq!(args.rest.len(), 4);
    }

    #[test]
    fn every_subcommand_tells_the_version_by_the_programs_name() {
        for command in Cli::command().get_subcommands() {
            if command.get_name() != "help" {
                let line = format!("zcode-acp {} --version", command.get_name());
                let told = parse(&line).unwrap_err().to_string();
                assert!(
                    told.starts_with(concat!("zcode-acp ", env!("CARGO_PKG_VERSION"))),
                    "{told}"
                );
            }
        }
    }

    #[test]
    fn help_hides_what_is_not_for_people() {
        let help = Cli::command().render_long_help().to_string();
        assert!(!help.contains("sim-engine") && !help.contains("watchdog"), "{help}");
        assert!(help.contains("doctor"));
    }
}
