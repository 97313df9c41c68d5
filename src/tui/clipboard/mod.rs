//! Where copied text goes, and how that is told.
//!
//! Owns every clipboard effect. What to try is decided by [`plan`], a pure function of what is
//! known about the surroundings; [`Clipboard::copy`] looks around, tries, and says what happened.
//! Must not choose what is copied. Called by the application loop, off its own turn.
//!
//! The native clipboard is reached through the system's own programs. A library in their place
//! (arboard) would bring an X11 and a Wayland client into every build, and on X11 the text would
//! be gone with this process: `xclip` and `wl-copy` stay behind to serve it.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;

use crate::process::{self, ChildSpec};
use crate::small_file::NO_LINK;

/// Bytes of base64 that terminals are known to take in one OSC 52; larger ones are cut or dropped.
const OSC52_CAP: usize = 100_000;
/// How long a program may take to answer or to take the text.
const LIMIT: Duration = Duration::from_secs(3);
/// Bytes that GNU screen takes in one device control string.
const SCREEN_CHUNK: usize = 240;
/// Forces one way: `osc52`, `native`, `tmux` or `file`.
const WISH: &str = "ZCODE_ACP_CLIPBOARD";

/// A program that sets the native clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// macOS.
    Pbcopy,
    /// Wayland.
    WlCopy,
    /// X11.
    Xclip,
    /// X11.
    Xsel,
}

impl Tool {
    fn command(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Pbcopy => ("pbcopy", &[]),
            Self::WlCopy => ("wl-copy", &[]),
            Self::Xclip => ("xclip", &["-selection", "clipboard"]),
            Self::Xsel => ("xsel", &["--clipboard", "--input"]),
        }
    }
}

/// What the environment forces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// OSC 52 only.
    Osc52,
    /// The system's clipboard only.
    Native,
    /// The tmux buffer only.
    Tmux,
    /// A file only.
    File,
}

/// tmux's `set-clipboard`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetClipboard {
    /// Neither tmux nor programs in it reach the terminal's clipboard.
    Off,
    /// tmux does; what programs in it send is dropped.
    #[default]
    External,
    /// Both do.
    On,
}

/// A terminal that looks at a tmux session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Client {
    /// tmux's name for it.
    pub name: String,
    /// tmux believes that the terminal takes a clipboard.
    pub takes: bool,
    /// It was attached on this machine, not over ssh.
    pub is_local: bool,
}

/// What tmux tells about itself and the client that looks at us.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tmux {
    /// Its version is 3.2 or later: `load-buffer -w` hands the text to a client's terminal.
    pub hands_over: bool,
    /// The client that was used last; nobody may be attached.
    pub client: Option<Client>,
    /// `set-clipboard`.
    pub set_clipboard: SetClipboard,
    /// `allow-passthrough`.
    pub passthrough: bool,
}

/// How far we are inside tmux.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Multiplexer {
    /// None that we know of.
    #[default]
    None,
    /// GNU screen.
    Screen,
    /// tmux, which answered.
    Tmux(Tmux),
    /// tmux, which cannot be asked: its socket is out of reach.
    MuteTmux,
}

/// What is known about where the text may go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// What the environment forces.
    pub wish: Option<Wish>,
    /// The user sits at another machine.
    pub remote: bool,
    /// The terminal is reached through mosh, whose older versions drop OSC 52.
    pub mosh: bool,
    /// The terminal is known to ignore OSC 52.
    pub deaf: bool,
    /// What lies between us and the terminal.
    pub multiplexer: Multiplexer,
    /// Programs that set this machine's clipboard, the best first.
    pub tools: Vec<Tool>,
}

/// How an OSC 52 gets past what lies between us and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrap {
    /// As it is.
    Plain,
    /// In tmux's passthrough.
    Tmux,
    /// In GNU screen's device control strings.
    Screen,
}

/// One thing to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Fill tmux's buffer; with a client, its terminal's clipboard too.
    TmuxBuffer(Option<String>),
    /// Send the terminal an OSC 52.
    Osc52(Wrap),
    /// Run a program.
    Native(Tool),
    /// Write a private file.
    File,
}

/// What to try: the steps of a group are all carried out; a later group only when nothing of the
/// earlier ones worked.
pub type Plan = Vec<Vec<Step>>;

/// Decides what to try for a text of `bytes` bytes.
pub fn plan(around: &Surroundings, bytes: usize) -> Plan {
    let fits = bytes.div_ceil(3) * 4 <= OSC52_CAP;
    let native = around.tools.first().copied().map(Step::Native);
    let mut plan: Plan = match around.wish {
        Some(Wish::File) => Vec::new(),
        Some(Wish::Native) => vec![native.into_iter().collect()],
        Some(Wish::Osc52) => vec![vec![Step::Osc52(wrap(&around.multiplexer))]],
        Some(Wish::Tmux) => vec![vec![Step::TmuxBuffer(client(&around.multiplexer))]],
        None => usual(around, native),
    };
    if around.mosh && around.wish.is_none() {
        for group in &mut plan {
            if group.contains(&Step::Osc52(Wrap::Plain)) {
                group.push(Step::File);
            }
        }
    }
    if !fits {
        for group in &mut plan {
            group.retain(|step| !matches!(step, Step::Osc52(_)));
        }
    }
    plan.push(vec![Step::File]);
    plan.retain(|group| !group.is_empty());
    plan
}

fn usual(around: &Surroundings, native: Option<Step>) -> Plan {
    let osc52 = |wrap| (!around.deaf).then_some(Step::Osc52(wrap));
    match &around.multiplexer {
        Multiplexer::Tmux(tmux) => vec![in_tmux(tmux, native)],
        Multiplexer::MuteTmux => vec![vec![Step::Osc52(Wrap::Plain)]],
        Multiplexer::Screen if around.remote => vec![vec![Step::Osc52(Wrap::Screen)]],
        Multiplexer::Screen => {
            vec![native.into_iter().collect(), osc52(Wrap::Screen).into_iter().collect()]
        }
        Multiplexer::None if around.remote => vec![osc52(Wrap::Plain).into_iter().collect()],
        Multiplexer::None => {
            vec![native.into_iter().collect(), osc52(Wrap::Plain).into_iter().collect()]
        }
    }
}

/// In tmux the text goes to the terminal of the client that is attached now, which need not be
/// the one that tmux was started from. A terminal on this machine may ignore what tmux sends it,
/// so its system clipboard is set as well.
fn in_tmux(tmux: &Tmux, native: Option<Step>) -> Vec<Step> {
    let Some(client) = &tmux.client else {
        return vec![Step::TmuxBuffer(None)];
    };
    let mut steps = Vec::new();
    if tmux.hands_over && client.takes {
        steps.push(Step::TmuxBuffer(Some(client.name.clone())));
    } else {
        steps.push(Step::TmuxBuffer(None));
        if tmux.passthrough {
            steps.push(Step::Osc52(Wrap::Tmux));
        } else if !tmux.hands_over && tmux.set_clipboard == SetClipboard::On {
            steps.push(Step::Osc52(Wrap::Plain));
        }
    }
    if client.is_local {
        steps.extend(native);
    }
    steps
}

fn wrap(multiplexer: &Multiplexer) -> Wrap {
    match multiplexer {
        Multiplexer::Screen => Wrap::Screen,
        Multiplexer::Tmux(tmux) if tmux.set_clipboard != SetClipboard::On && tmux.passthrough => {
            Wrap::Tmux
        }
        _ => Wrap::Plain,
    }
}

fn client(multiplexer: &Multiplexer) -> Option<String> {
    match multiplexer {
        Multiplexer::Tmux(tmux) if tmux.hands_over => {
            tmux.client.as_ref().map(|client| client.name.clone())
        }
        _ => None,
    }
}

/// The bytes of an OSC 52 that sets the clipboard to `text`.
pub fn osc52(text: &str, wrap: Wrap) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    let plain = format!("\x1b]52;c;{encoded}\x07");
    match wrap {
        Wrap::Plain => plain,
        Wrap::Tmux => format!("\x1bPtmux;{}\x1b\\", plain.replace('\x1b', "\x1b\x1b")),
        Wrap::Screen => {
            let mut out = String::with_capacity(plain.len() + plain.len() / SCREEN_CHUNK * 4 + 4);
            let mut rest = plain.as_str();
            while !rest.is_empty() {
                let cut = rest.len().min(SCREEN_CHUNK);
                let (chunk, after) = rest.split_at_checked(cut).unwrap_or((rest, ""));
                out.push_str("\x1bP");
                out.push_str(chunk);
                out.push_str("\x1b\\");
                rest = after;
            }
            out
        }
    }
}

/// What the environment tells once and for all.
#[derive(Debug, Clone, Default)]
struct Facts {
    wish: Option<Wish>,
    remote: bool,
    deaf: bool,
    screen: bool,
    /// The pane we are in.
    tmux: Option<String>,
    /// Programs that would fit the desktop.
    fitting: Vec<Tool>,
    path: OsString,
}

impl Facts {
    fn read(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| {
            var(name).map(|v| v.to_string_lossy().into_owned()).filter(|v| !v.is_empty())
        };
        let term = text("TERM").unwrap_or_default();
        let is = |name: &str| text(name).is_some();
        Self {
            wish: text(WISH).and_then(|wish| match wish.to_ascii_lowercase().as_str() {
                "osc52" => Some(Wish::Osc52),
                "native" => Some(Wish::Native),
                "tmux" => Some(Wish::Tmux),
                "file" => Some(Wish::File),
                _ => None,
            }),
            remote: is("SSH_CONNECTION") || is("SSH_TTY") || is("SSH_CLIENT"),
            deaf: matches!(term.as_str(), "dumb" | "linux")
                || text("TERM_PROGRAM").is_some_and(|program| program == "Apple_Terminal"),
            screen: is("STY") && !is("TMUX"),
            tmux: is("TMUX").then(|| text("TMUX_PANE").unwrap_or_default()),
            fitting: [
                (Tool::Pbcopy, cfg!(target_os = "macos")),
                (Tool::WlCopy, is("WAYLAND_DISPLAY")),
                (Tool::Xclip, is("DISPLAY")),
                (Tool::Xsel, is("DISPLAY")),
            ]
            .into_iter()
            .filter(|(_, fits)| *fits)
            .map(|(tool, _)| tool)
            .collect(),
            path: var("PATH").unwrap_or_default(),
        }
    }

    fn tools(&self) -> Vec<Tool> {
        let on_path =
            |name: &str| std::env::split_paths(&self.path).any(|dir| dir.join(name).is_file());
        self.fitting.iter().copied().filter(|tool| on_path(tool.command().0)).collect()
    }
}

/// The one owner of the clipboard.
#[derive(Debug, Clone)]
pub struct Clipboard {
    facts: Facts,
    file: PathBuf,
}

impl Clipboard {
    /// Remembers what `env` tells. A text that nothing takes goes into a file in `dir`.
    pub fn new(env: &[(OsString, OsString)], dir: &Path) -> Self {
        let var = |name: &str| env.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone());
        Self { facts: Facts::read(var), file: dir.join("copied.txt") }
    }

    /// Copies `text` and says what happened.
    pub async fn copy(&self, text: &str) -> String {
        let around = self.look_around().await;
        self.carry_out(&around, text).await
    }

    /// Writes `text` to the file, whatever else there is.
    pub fn to_file(&self, text: &str) -> String {
        match self.write_file(text) {
            Ok(()) => format!("{} written to {}", size_of(text), self.file.display()),
            Err(error) => format!("{} was not written: {error}", self.file.display()),
        }
    }

    async fn look_around(&self) -> Surroundings {
        let facts = &self.facts;
        let multiplexer = match &facts.tmux {
            Some(pane) => match ask_tmux(pane).await {
                Some(tmux) => Multiplexer::Tmux(tmux),
                None => Multiplexer::MuteTmux,
            },
            None if facts.screen => Multiplexer::Screen,
            None => Multiplexer::None,
        };
        let bare = multiplexer == Multiplexer::None;
        Surroundings {
            wish: facts.wish,
            remote: facts.remote,
            mosh: bare && facts.wish.is_none() && is_under_mosh().await,
            deaf: facts.deaf,
            multiplexer,
            tools: facts.tools(),
        }
    }

    async fn carry_out(&self, around: &Surroundings, text: &str) -> String {
        let what = size_of(text);
        let mut done = Vec::new();
        let mut failed = Vec::new();
        for group in plan(around, text.len()) {
            for step in group {
                match self.carry_out_step(&step, text).await {
                    Ok(()) => done.push(step),
                    Err(error) => failed.push(format!("{}: {error}", name_of(&step))),
                }
            }
            if !done.is_empty() {
                break;
            }
        }
        let told = tell(&what, &done, around, &self.file);
        if failed.is_empty() { told } else { format!("{told} ({})", failed.join("; ")) }
    }

    async fn carry_out_step(&self, step: &Step, text: &str) -> io::Result<()> {
        match step {
            Step::TmuxBuffer(client) => {
                let mut args: Vec<OsString> = vec!["load-buffer".into()];
                if let Some(client) = client {
                    args.extend(["-w".into(), "-t".into(), client.into()]);
                }
                args.push("-".into());
                run("tmux", args, text).await
            }
            Step::Native(tool) => {
                let (program, args) = tool.command();
                run(program, args.iter().map(OsString::from).collect(), text).await
            }
            Step::Osc52(wrap) => {
                let mut out = io::stdout().lock();
                out.write_all(osc52(text, *wrap).as_bytes())?;
                out.flush()
            }
            Step::File => self.write_file(text),
        }
    }

    fn write_file(&self, text: &str) -> io::Result<()> {
        if let Some(dir) = self.file.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(NO_LINK)
            .open(&self.file)?;
        file.write_all(text.as_bytes())
    }
}

async fn run(program: &str, args: Vec<OsString>, text: &str) -> io::Result<()> {
    let spec = ChildSpec { args, ..ChildSpec::new(program) };
    let status = process::feed(&spec, text.as_bytes(), LIMIT).await?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

/// What the steps that worked did, in words. OSC 52 has no answer: it is sent, not copied.
fn tell(what: &str, done: &[Step], around: &Surroundings, file: &Path) -> String {
    let parts: Vec<String> = done
        .iter()
        .map(|step| match step {
            Step::TmuxBuffer(Some(client)) => {
                format!("copied to the tmux buffer and by OSC 52 to the terminal on {client}")
            }
            Step::TmuxBuffer(None) => match &around.multiplexer {
                Multiplexer::Tmux(Tmux { client: None, .. }) => {
                    "copied to the tmux buffer; no client is attached".to_owned()
                }
                _ if done.len() > 1 => "copied to the tmux buffer".to_owned(),
                _ => "copied to the tmux buffer only: the terminal takes no clipboard from tmux"
                    .to_owned(),
            },
            Step::Osc52(_) if around.multiplexer == Multiplexer::MuteTmux => {
                "sent by OSC 52 into tmux, which could not be asked whether it passes it on"
                    .to_owned()
            }
            Step::Osc52(Wrap::Tmux) => "sent by OSC 52 through tmux to the terminal".to_owned(),
            Step::Osc52(Wrap::Screen) => "sent by OSC 52 through screen to the terminal".to_owned(),
            Step::Osc52(Wrap::Plain) if around.mosh => {
                "sent by OSC 52 (older mosh drops it)".to_owned()
            }
            Step::Osc52(Wrap::Plain) => "sent by OSC 52 to the terminal".to_owned(),
            Step::Native(tool) => format!("copied to the clipboard by {}", tool.command().0),
            Step::File if done.len() > 1 => format!("written to {}", file.display()),
            Step::File if around.wish == Some(Wish::File) => {
                format!("written to {}", file.display())
            }
            Step::File => format!("taken by no clipboard: written to {}", file.display()),
        })
        .collect();
    if parts.is_empty() {
        return format!("{what} not copied");
    }
    format!("{what} {}", parts.join(", and "))
}

fn name_of(step: &Step) -> &'static str {
    match step {
        Step::TmuxBuffer(_) => "tmux",
        Step::Osc52(_) => "OSC 52",
        Step::Native(tool) => tool.command().0,
        Step::File => "file",
    }
}

/// `3 lines`, or `12 characters` of one line.
fn size_of(text: &str) -> String {
    let lines = text.lines().count();
    let (count, what) =
        if lines > 1 { (lines, "line") } else { (text.chars().count(), "character") };
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

async fn ask_tmux(pane: &str) -> Option<Tmux> {
    const FORMAT: &str = "#{version}\t#{client_name}\t#{client_termfeatures}\t#{set-clipboard}\t#{allow-passthrough}";
    let ask = |args: &[&str]| ChildSpec {
        args: args.iter().map(OsString::from).collect(),
        ..ChildSpec::new("tmux")
    };
    let about = ask(&["display-message", "-p", "-t", pane, FORMAT]);
    let told = process::capture(&about, LIMIT).await?;
    let ssh = process::capture(&ask(&["show-environment", "SSH_CONNECTION"]), LIMIT).await;
    Some(read_tmux(&told, ssh.as_deref()))
}

/// Reads tmux's answers. `ssh` is its line about the variable that it takes over from every client
/// that attaches.
fn read_tmux(told: &str, ssh: Option<&str>) -> Tmux {
    let mut fields = told.trim_end_matches('\n').split('\t');
    let mut field = || fields.next().unwrap_or_default().trim();
    let (version, client, features, set_clipboard, passthrough) =
        (field(), field(), field(), field(), field());
    Tmux {
        hands_over: at_least_3_2(version),
        client: (!client.is_empty()).then(|| Client {
            name: client.to_owned(),
            takes: features.split(',').any(|feature| feature == "clipboard"),
            is_local: ssh.is_none_or(|line| !line.starts_with("SSH_CONNECTION=")),
        }),
        set_clipboard: match set_clipboard {
            "on" | "2" => SetClipboard::On,
            "off" | "0" => SetClipboard::Off,
            _ => SetClipboard::External,
        },
        passthrough: matches!(passthrough, "on" | "all" | "1" | "2"),
    }
}

/// `3.4`, `3.2a`, `next-3.6`.
fn at_least_3_2(version: &str) -> bool {
    let number = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let (major, rest) = number.split_once('.').unwrap_or((number, ""));
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (major.parse().unwrap_or(0u32), minor.parse().unwrap_or(0u32)) >= (3, 2)
}

/// Whether a `mosh-server` is among the processes above us. It leaves no mark in the environment.
async fn is_under_mosh() -> bool {
    let spec = ChildSpec {
        args: ["-A", "-o", "pid=,ppid=,comm="].map(OsString::from).to_vec(),
        ..ChildSpec::new("ps")
    };
    let table = process::capture(&spec, LIMIT).await.unwrap_or_default();
    mosh_above(&table, std::process::id())
}

fn mosh_above(table: &str, pid: u32) -> bool {
    let row = |wanted: u32| {
        table.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let pid: u32 = words.next()?.parse().ok()?;
            let parent: u32 = words.next()?.parse().ok()?;
            (pid == wanted).then(|| (parent, words.next().unwrap_or_default().to_owned()))
        })
    };
    let mut at = pid;
    for _ in 0..16 {
        let Some((parent, name)) = row(at) else { return false };
        if name.rsplit('/').next().is_some_and(|name| name.starts_with("mosh-server")) {
            return true;
        }
        at = parent;
    }
    false
}

#[cfg(test)]
mod tests;
