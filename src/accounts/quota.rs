//! What is known of plans and their quota, in words: for the `quota` subcommand and the `/quota`
//! command. Reads ZCode's files; asks the services only where the user turned that on.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{AccountFiles, Entitlement, Live, LiveAnswers, SignIn, entitlements, sign_in};
use crate::config::Config;
use crate::printable;

/// The whole text. `table` is the engine's built-in provider table.
pub async fn page(config: &Config, table: Option<&Path>) -> String {
    if config.engine.demo.is_some() {
        return "The simulated engine needs no plan and uses none.\n".to_owned();
    }
    let live = Live::of(config, true).await;
    let files = AccountFiles::read(&config.zcode_home, table);
    let none = LiveAnswers::new();
    let plans = entitlements(&files, live.as_ref().map_or(&none, |live| &live.answers));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = u64::try_from(now).unwrap_or(u64::MAX);
    words(&sign_in(&files), &plans, live.as_ref(), now)
}

/// The plans that may be used, a line each, and what says so of each.
pub fn plan_lines(plans: &[Entitlement]) -> Vec<String> {
    plans
        .iter()
        .filter(|plan| plan.entitled)
        .map(|plan| {
            let used = if plan.in_use { ", in use" } else { "" };
            let name = format!("{} {}", plan.family, plan.mode.replace('-', " "));
            format!("  {}{used} ({})", printable::line(&name), plan.source.words())
        })
        .collect()
}

fn words(state: &SignIn, plans: &[Entitlement], live: Option<&Live>, now_ms: u64) -> String {
    let mut text: String = state.complaints().map(|line| line + "\n").collect();
    let listed = plan_lines(plans);
    if listed.is_empty() {
        text.push_str("No plan is known to be usable.\n");
    } else {
        text.push_str("Plans:\n");
        text.extend(listed.into_iter().map(|line| line + "\n"));
    }
    if !state.channels.is_empty() {
        text.push_str("Providers:\n");
        for channel in &state.channels {
            let _ = writeln!(
                text,
                "  {}: {}",
                printable::line(&channel.name),
                channel.problem.unwrap_or("usable")
            );
        }
    }
    match live {
        Some(live) => {
            if let Some(limits) = &live.limits {
                text.push_str(&limits.to_text(now_ms));
            }
            for problem in &live.problems {
                let _ = writeln!(text, "Not asked, or in vain: {problem}");
            }
        }
        None => text.push_str(
            "What is left of a plan only its service knows. It is asked with your own key when you set\n\
             \"accounts\": {\"liveCheck\": true} (or ZCODE_ACP_LIVE_ENTITLEMENT=1); until then nothing goes\n\
             to the network.\n",
        ),
    }
    // Names of plans and providers are a file's or a service's text.
    printable::text(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Channel;

    #[test]
    fn the_page_tells_what_files_tell_and_that_no_more_is_asked() {
        let channel = |name: &str, problem| Channel {
            id: name.to_owned(),
            name: name.to_owned(),
            models: 1,
            problem,
        };
        let channels = vec![channel("good", None), channel("b\u{9b}2J\nad", Some("no key"))];
        let unreadable = vec![("config.json".to_owned(), "EOF".to_owned())];
        let text = words(&SignIn { channels, unreadable, ..SignIn::default() }, &[], None, 0);
        let text = text.strip_prefix("config.json cannot be used: EOF").unwrap();
        let text = text.split_once('\n').unwrap().1;
        assert!(text.starts_with("No plan is known"), "{text}");
        assert!(text.contains("good: usable") && text.contains(r"b\u{9b}2J\nad: no key"), "{text}");
        assert!(text.contains("nothing goes\nto the network"), "{text}");
    }
}
