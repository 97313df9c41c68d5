//! The `quota` subcommand: which plans and providers there are, by ZCode's own files. What is left
//! of a plan only its service knows, and this program makes no request: it says so.

use std::io::Write;

use crate::accounts::{AccountFiles, Entitlement, LiveAnswers, SignIn, entitlements, sign_in};
use crate::config::Config;
use crate::error::AppError;

/// Writes the page.
pub fn run(config: &Config, out: &mut dyn Write) -> Result<(), AppError> {
    let files = AccountFiles::read(&config.zcode_home, None);
    let plans = entitlements(&files, &LiveAnswers::new());
    out.write_all(page(&sign_in(&files), &plans).as_bytes())
        .map_err(|err| AppError::failed("cannot write").caused_by(err))
}

fn page(state: &SignIn, plans: &[Entitlement]) -> String {
    let mut lines = Vec::new();
    let entitled: Vec<&Entitlement> = plans.iter().filter(|plan| plan.entitled).collect();
    if entitled.is_empty() {
        lines.push("No plan is known to be usable.".to_owned());
    } else {
        lines.push("Plans:".to_owned());
        lines.extend(entitled.iter().map(|plan| {
            let current = if plan.current { ", in use" } else { "" };
            format!("  {} {}{current}", plan.family, plan.mode)
        }));
    }
    if !state.channels.is_empty() {
        lines.push("Providers:".to_owned());
        lines.extend(state.channels.iter().map(|channel| match channel.problem {
            None => format!("  {}: usable", channel.name),
            Some(problem) => format!("  {}: {problem}", channel.name),
        }));
    }
    lines.push(
        "What is left of a plan: see the ZCode app. No file of ZCode tells it, and this program"
            .to_owned(),
    );
    lines.push(
        "makes no request to the network. A turn that fails for lack of quota says so.".to_owned(),
    );
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Channel;

    #[test]
    fn the_page_tells_what_files_tell_and_that_no_more_is_known() {
        let channel = |name: &str, problem| Channel {
            id: name.to_owned(),
            name: name.to_owned(),
            models: 1,
            problem,
        };
        let channels = vec![channel("good", None), channel("bad", Some("no key"))];
        let text = page(&SignIn { channels, ..SignIn::default() }, &[]);
        assert!(text.starts_with("No plan is known"), "{text}");
        assert!(text.contains("good: usable") && text.contains("bad: no key"), "{text}");
        assert!(text.contains("makes no request"), "{text}");
    }
}
