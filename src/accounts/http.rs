//! One HTTP GET, by the system's `curl`. Called by [`super::live`], and only when the user turned
//! the live check on.
//!
//! Why a program and not a crate: a TLS stack inside would be the largest dependency of a program
//! that makes no request by default, would need a C compiler for the static build, and would not know
//! the user's proxies and certificates. macOS and every distribution ship `curl`. Everything secret
//! goes to it by standard input, because other users can read a program's arguments; the user's own
//! `.curlrc`, which could turn on a trace, is not read; redirects are not followed.

use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::config::Env;
use crate::process::{self, ChildSpec};

/// How long one request may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Largest answer that is read; the real ones are a few kilobytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// What curl needs of the environment: to be found, to reach the network, to know certificates.
const VARIABLES: [&str; 12] = [
    "PATH",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "SystemRoot",
];

/// A request. Its headers hold secrets, so `Debug` shows the address only.
pub(super) struct Get {
    /// Address, without secrets.
    pub(super) url: String,
    /// Header lines.
    pub(super) headers: Vec<String>,
}

impl fmt::Debug for Get {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Get {
    /// Asks. The error is for people and holds nothing of the request but its host.
    pub(super) async fn send(&self, env: &Env) -> Result<(u16, Vec<u8>), String> {
        let config = self.config().ok_or("the token cannot be sent in a header")?;
        let spec = ChildSpec {
            args: ["-q", "--config", "-"].map(OsString::from).to_vec(),
            env: Some(
                VARIABLES
                    .iter()
                    .filter_map(|name| Some(((*name).into(), env.get(name)?.to_owned())))
                    .collect(),
            ),
            ..ChildSpec::new("curl")
        };
        let grace = LIMIT + Duration::from_millis(500);
        let (status, mut out) = process::exchange(&spec, config.as_bytes(), grace, MAX_BYTES + 16)
            .await
            .map_err(|err| match err.kind() {
                std::io::ErrorKind::NotFound => "curl is not installed".to_owned(),
                _ => err.to_string(),
            })?;
        if !status.success() {
            return Err(failure(status.code()));
        }
        let end = out.iter().rposition(|b| *b == b'\n').ok_or("curl wrote no status")?;
        let code = out.split_off(end);
        let code = std::str::from_utf8(&code).ok().and_then(|code| code.trim().parse().ok());
        Ok((code.ok_or("curl wrote no status")?, out))
    }

    /// The request in curl's own words. `None` when a header would break out of its line.
    fn config(&self) -> Option<String> {
        let plain = |text: &str| text.chars().all(|c| matches!(c, ' '..='~'));
        if !plain(&self.url) || !self.headers.iter().all(|header| plain(header)) {
            return None;
        }
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        // Plain HTTP only where the user's own override says so.
        let protocols = if self.url.starts_with("http://") { "=http" } else { "=https" };
        let mut config = format!(
            "url = \"{}\"\nproto = \"{protocols}\"\nmax-time = {}\nmax-filesize = {MAX_BYTES}\nsilent\n",
            quoted(&self.url),
            LIMIT.as_secs()
        );
        for header in &self.headers {
            let _ = writeln!(config, "header = \"{}\"", quoted(header));
        }
        config.push_str("write-out = \"\\n%{http_code}\"\n");
        Some(config)
    }
}

/// curl's exit codes that people meet.
fn failure(code: Option<i32>) -> String {
    match code {
        Some(6) => "its name cannot be resolved".to_owned(),
        Some(7) => "it cannot be reached".to_owned(),
        Some(28) => format!("no answer within {} s", LIMIT.as_secs()),
        Some(35 | 51 | 58 | 60 | 77) => "no safe connection (TLS) to it".to_owned(),
        Some(63) => "its answer is too large".to_owned(),
        Some(code) => format!("curl ended with code {code}"),
        None => "curl was ended by a signal".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_cannot_break_out_of_its_line() {
        let get = |header: &str| Get { url: "https://h/".into(), headers: vec![header.into()] };
        for bad in ["A: b\nurl = \"file:///etc/passwd\"", "A: b\r", "A: \u{e9}"] {
            assert_eq!(get(bad).config(), None, "{bad:?}");
        }
        let config = get("A: \"\\\"").config().unwrap();
        assert!(config.contains("header = \"A: \\\"\\\\\\\"\"\n"), "{config}");
        assert!(config.contains("proto = \"=https\""), "{config}");
        assert!(config.contains("max-time = 5\n") && !config.contains("location"), "{config}");
        assert!(!format!("{:?}", get("A: secret")).contains("secret"));
    }
}
