//! The `run` subcommand: one turn without a screen, through the same bridge as everything else.
//! Reads the prompt, wires agent, rules and output together, decides the exit code.

mod client;
mod output;
mod rules;
mod turn;

use std::io::{IsTerminal, Read};
use std::time::Duration;

use tokio::sync::mpsc;

pub use output::Format;

use crate::agents::{self, Pieces, StartedAgent};
use crate::cli::RunArgs;
use crate::config::{Config, working_directory};
use crate::error::{AppError, ErrorKind};
use client::{Plan, Which, drive};
use output::Reporter;
use rules::Rules;

/// Longest prompt taken from standard input.
const MAX_PROMPT: u64 = 32 * 1024 * 1024;

/// Runs one turn; returns when it is over and everything it started has ended.
pub fn run(mut config: Config, args: &RunArgs) -> Result<(), AppError> {
    let mut plan = plan(args, &mut std::io::stdin().lock(), std::io::stdin().is_terminal())?;
    if args.session.agent.is_none() {
        // Set by name, so that a model of the settings which is not there ends the run aloud.
        plan.model.clone_from(&config.session.model);
    }
    if !plan.rules.is_empty() {
        // Rules decide alone: nobody else is asked who could say otherwise.
        config.approval_dir = None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| AppError::failed("cannot start the runtime").caused_by(err))?;
    let Some(command) = &args.session.agent else {
        let agent = agents::bridge(config).start();
        let hint = "see how with: zcode-acp login";
        return runtime.block_on(turn(agent, plan, args.format)).map_err(sign_in(hint));
    };
    let (mut source, last_words) =
        agents::foreign(command, plan.cwd.clone(), &config, Pieces::AsTheyCome)?;
    let hint = "sign in with that agent's own command, or by /login in zcode-acp tui --agent";
    runtime.block_on(turn(source.start(), plan, args.format)).map_err(sign_in(hint)).map_err(
        |err| match last_words.borrow().as_ref() {
            Some(words) => AppError::new(err.kind, words.clone()),
            None => err,
        },
    )
}

/// Adds what to do to the error of an agent that wants a sign-in.
fn sign_in(hint: &'static str) -> impl Fn(AppError) -> AppError {
    move |err| match err.kind {
        ErrorKind::SignInNeeded => err.hint(hint),
        _ => err,
    }
}

async fn turn(agent: StartedAgent, plan: Plan, format: Format) -> Result<(), AppError> {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    let progress = err.is_terminal();
    let shown = out.is_terminal();
    let mut reporter = Reporter::new(format, &mut out, &mut err, progress);
    if shown {
        reporter = reporter.on_terminal();
    }
    let report = drive(agent, plan, &mut reporter, interrupts()).await;
    reporter.finish(report)
}

/// Every signal that asks us to end, from now on.
fn interrupts() -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel(4);
    let _task = tokio::spawn(async move {
        loop {
            let _name = crate::serve::ended_by_signal().await;
            if sender.send(()).await.is_err() {
                break;
            }
        }
    });
    receiver
}

/// Makes the plan of the arguments; reads standard input when the prompt is there.
fn plan(args: &RunArgs, stdin: &mut dyn Read, on_terminal: bool) -> Result<Plan, AppError> {
    let cwd = working_directory(args.session.cwd.as_deref())?;
    let mut prompt = String::new();
    let from_stdin = args.prompt.is_empty() || args.prompt.iter().any(|word| word == "-");
    if from_stdin {
        if args.prompt.is_empty() && on_terminal {
            return Err(AppError::usage("there is no prompt")
                .hint("zcode-acp run \"your prompt\"")
                .hint("or pipe it in: git diff | zcode-acp run \"Review this:\" -"));
        }
        let length = stdin
            .take(MAX_PROMPT + 1)
            .read_to_string(&mut prompt)
            .map_err(|err| AppError::usage("cannot read the prompt").caused_by(err))?;
        // Half of what was meant is worse than nothing.
        if u64::try_from(length).unwrap_or(u64::MAX) > MAX_PROMPT {
            return Err(AppError::usage("the prompt is longer than 32 MiB"));
        }
    }
    let words: Vec<&str> = args
        .prompt
        .iter()
        .map(|word| if word == "-" { prompt.as_str() } else { word.as_str() })
        .collect();
    let text = if words.is_empty() { prompt } else { words.join("\n") };
    if text.trim().is_empty() {
        return Err(AppError::usage("the prompt is empty"));
    }
    let session = match (&args.session.id, args.session.continue_last) {
        (Some(id), _) => Which::Id(id.clone()),
        (None, true) => Which::Newest,
        (None, false) => Which::New,
    };
    Ok(Plan {
        prompt: text,
        rules: Rules::parse(&args.allow, &args.deny, &cwd).map_err(AppError::usage)?,
        cwd,
        session,
        model: args.session.model.clone(),
        mode: args.session.mode.clone(),
        max_turns: args.max_turns,
        timeout: args.timeout.map(Duration::from_secs_f64),
    })
}

#[cfg(test)]
mod tests;
