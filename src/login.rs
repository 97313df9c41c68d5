//! The `login` subcommand (and `--login`, `--setup`, which ACP clients start for terminal
//! authentication): what ZCode's own sign-in state is, which channels can be used, how to sign in.
//! ZCode signs in, this program only looks; it stores nothing and opens no browser.

use std::io::{BufRead, Write};

use crate::accounts::{
    AccountFiles, Entitlement, LiveAnswers, SignIn, entitlements, quota, sign_in,
};
use crate::bridge::engine::discovery;
use crate::config::Config;
use crate::error::{AppError, ErrorKind};
use crate::printable;

/// Shows the state. On a terminal it waits for the user to sign in and looks again.
///
/// Fails with code 6 while the engine has no way to a model.
pub fn run(
    config: &Config,
    input: Option<&mut dyn BufRead>,
    out: &mut dyn Write,
) -> Result<(), AppError> {
    let failed = |err| AppError::failed("cannot write").caused_by(err);
    let table = discovery::provider_table(config);
    let look = || {
        let files = AccountFiles::read(&config.zcode_home, table.as_deref());
        (sign_in(&files), entitlements(&files, &LiveAnswers::new()))
    };
    let (mut state, plans) = look();
    write!(out, "{}{}", page(&state, &plans), live_check(config)).map_err(failed)?;
    if let Some(input) = input {
        while !state.is_usable() {
            write!(out, "\nPress Enter when you have signed in (q and Enter to leave): ")
                .and_then(|()| out.flush())
                .map_err(failed)?;
            let mut line = String::new();
            let read = input.read_line(&mut line);
            if !matches!(read, Ok(n) if n > 0) || line.trim().eq_ignore_ascii_case("q") {
                break;
            }
            let (now, plans) = look();
            state = now;
            write!(out, "\n{}", page(&state, &plans)).map_err(failed)?;
        }
    }
    if state.is_usable() {
        return Ok(());
    }
    Err(AppError::new(ErrorKind::SignInNeeded, "not signed in"))
}

/// Whether anything is asked over the network; that is the user's choice, so it is said.
fn live_check(config: &Config) -> &'static str {
    if config.live_entitlement {
        "The live check is on: the services of your plans are asked whether they are valid.\n"
    } else {
        "The live check is off: nothing is asked over the network.\n"
    }
}

/// The state in words.
fn page(state: &SignIn, plans: &[Entitlement]) -> String {
    let mut lines: Vec<String> = state.complaints().collect();
    if state.is_signed_in() {
        let mut names = state.families.clone();
        if state.zcode {
            names.push("zcode".to_owned());
        }
        lines.push(format!("Signed in to ZCode: {}.", names.join(", ")));
        if state.encrypted {
            lines.push(
                "The tokens are encrypted by ZCode; the engine uses them, nobody else can."
                    .to_owned(),
            );
        }
    } else {
        lines.push("Not signed in to ZCode.".to_owned());
    }
    let usable = quota::plan_lines(plans);
    if !usable.is_empty() {
        lines.push("Plans:".to_owned());
        lines.extend(usable);
    }
    if !state.channels.is_empty() {
        lines.push("Providers:".to_owned());
        lines.extend(state.channels.iter().map(|channel| match channel.problem {
            None => format!("  {}: usable, {} model(s)", channel.name, channel.models),
            Some(problem) => format!("  {}: {problem}", channel.name),
        }));
    }
    if !state.is_usable() {
        lines.extend(
            [
                "",
                "To sign in, do one of these:",
                "  - open the ZCode app, sign in there, and choose a plan;",
                "  - or add a provider with an API key of your own in the app's model settings.",
                "zcode-acp uses what the app has; it never asks for a password or a key.",
            ]
            .map(str::to_owned),
        );
    }
    // Names are a file's text.
    lines.iter().map(|line| printable::line(line).into_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::Source;
    use crate::config::{Env, SettingsFile};

    fn config(home: &std::path::Path) -> Config {
        Config::from_env(Env::default(), home.to_path_buf(), &SettingsFile::default())
    }

    fn write_credentials(home: &std::path::Path) {
        let dir = home.join(".zcode/v2");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("credentials.json"), r#"{"zcodejwttoken": "enc:v1:tok-secret"}"#)
            .unwrap();
    }

    #[test]
    fn an_empty_home_is_code_6_and_says_how() {
        let home = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        let err = run(&config(home.path()), None, &mut out).unwrap_err();
        assert_eq!(err.kind.exit_code(), 6);
        assert!(String::from_utf8(out).unwrap().contains("open the ZCode app"));
    }

    #[test]
    fn a_name_in_a_file_does_not_act_on_the_terminal() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(".zcode/v2");
        std::fs::create_dir_all(&dir).unwrap();
        let file = r#"{"provider": {"p": {"name": "a\u001b[2J\u00ad\u061c\nb",
            "options": {"apiKey": "k"}, "models": {"m": {}}}}}"#;
        std::fs::write(dir.join("config.json"), file).unwrap();
        let mut out = Vec::new();
        run(&config(home.path()), None, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r"  a\u{1b}[2J\u{ad}\u{61c}\nb: usable"), "{text}");
    }

    #[test]
    fn plans_and_broken_files_are_told() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(".zcode/v2");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.json"), "{\"provider\": {").unwrap();
        std::fs::write(dir.join("credentials.json"), "[]").unwrap();
        let mut out = Vec::new();
        run(&config(home.path()), None, &mut out).unwrap_err();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("config.json cannot be used: EOF"), "{text}");
        assert!(text.contains("credentials.json cannot be used: not a JSON object"), "{text}");
        let plan = Entitlement {
            account_id: "account:zai-start-plan".to_owned(),
            config_id: "builtin:zai-start-plan".to_owned(),
            family: "zai".to_owned(),
            mode: "start-plan".to_owned(),
            model_ids: None,
            entitled: true,
            current: true,
            in_use: true,
            source: Source::PlanCache,
        };
        let other = Entitlement { entitled: false, family: "bigmodel".to_owned(), ..plan.clone() };
        let text = page(&SignIn::default(), &[plan, other]);
        assert!(
            text.contains("Plans:\n  zai start plan, in use (coding-plan-cache.json lists it"),
            "{text}"
        );
        assert!(!text.contains("bigmodel"), "{text}");
    }

    #[test]
    fn a_sign_in_is_told_without_its_token() {
        let home = tempfile::tempdir().unwrap();
        write_credentials(home.path());
        let mut out = Vec::new();
        run(&config(home.path()), None, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("Signed in to ZCode: zcode") && !text.contains("tok-secret"),
            "{text}"
        );
    }

    /// Signs in while the program waits for Enter.
    struct Person<'a>(&'a std::path::Path, bool);

    impl std::io::Read for Person<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            if self.1 {
                write_credentials(self.0);
            }
            self.1 = true;
            buf[0] = b'\n';
            Ok(1)
        }
    }

    #[test]
    fn on_a_terminal_it_looks_again_until_somebody_signed_in() {
        let home = tempfile::tempdir().unwrap();
        let mut out = Vec::new();
        let mut person = std::io::BufReader::with_capacity(1, Person(home.path(), false));
        run(&config(home.path()), Some(&mut person), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("Press Enter").count(), 2, "{text}");
        let mut leave = &b"q\n"[..];
        let empty = tempfile::tempdir().unwrap();
        let err = run(&config(empty.path()), Some(&mut leave), &mut Vec::new()).unwrap_err();
        assert_eq!(err.kind, ErrorKind::SignInNeeded);
    }
}
