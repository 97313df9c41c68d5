//! PURE. How a simulated engine runs: version, pace, store, determinism, scripts and faults; and
//! the hidden subcommand's arguments. Made by `sim-engine` and by tests.

use super::profile::Profile;
use crate::cli::SimEngineArgs;
use std::path::PathBuf;

/// Settings of one simulated engine.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "switches, each of its own")]
pub struct Options {
    /// Which engine version is played.
    pub profile: Profile,
    /// Multiplies every wait of scripts and channels: 1.0 looks real, 0.0 never sleeps.
    pub pace: f64,
    /// Where sessions persist; `None` keeps them in memory only.
    pub store: Option<PathBuf>,
    /// Ids count up from this seed instead of being random.
    pub seed: Option<u64>,
    /// Wall-clock time of the start in ms; `None` takes the real time.
    pub epoch_ms: Option<u64>,
    /// Streaming text is batched as the real engine does (250 ms or 2 KiB).
    pub legacy_batch: bool,
    /// V4 frames above this many bytes are sent in fragments.
    pub frame_max: usize,
    /// Older frame shape `{topic, frame}`.
    pub old_frames: bool,
    /// The first V4 frame comes before the reply to its subscribe.
    pub frame_first: bool,
    /// Ask for provider headers before every model request.
    pub ask_headers: bool,
    /// Announce an ordinary start (`startup/storageState` ready) or a migration.
    pub startup: Startup,
    /// Further scripts (JSON), tried before the built-in ones.
    pub scripts: Vec<String>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// What the engine says about its database when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Startup {
    /// Nothing.
    #[default]
    Silent,
    /// A migration with progress, then ready.
    Migrate,
    /// A migration that fails.
    Fail,
}

/// Something that goes wrong on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The process dies when the n-th script action of any turn is due.
    DieAtStep(u64),
    /// The process hangs when the n-th script action of any turn is due: it lives, reads and says
    /// nothing any more.
    HangAtStep(u64),
    /// A line that is no message comes before every n-th notification.
    Garbage(u64),
    /// Every n-th `session/event` is lost; its sequence number stays used.
    DropEvents(u64),
    /// `turn.completed` never comes (the broadcast `prompt_completed` does).
    LoseCompleted,
    /// The method answers this many ms late.
    Slow(String, u64),
    /// `session/stop` does nothing.
    IgnoreStop,
    /// V4 stop does nothing either.
    IgnoreV4Stop,
    /// Every n-th V4 frame is lost.
    DropFrames(u64),
    /// Every session is evicted when its turn ends.
    EvictAfterTurn,
    /// The first n reads of `session/messages` after a resume return a growing prefix.
    HydrationReads(u64),
    /// Requests are dropped unanswered for this many ms after the start.
    ColdStart(u64),
    /// The method is unknown.
    NoMethod(String),
    /// Guides fall back to the queue with this reason code.
    GuideFallsBack(String),
    /// A new session's row is written only this many ms after its first event.
    LateRow(u64),
    /// The V4 channel breaks after its n-th frame: no frame comes any more, and its methods fail.
    V4Breaks(u64),
    /// V4 frames stop after the n-th one, and nothing else shows it.
    V4FallsSilent(u64),
    /// A byte of every n-th V4 frame in fragments is not what its checksum says.
    SpoilFragments(u64),
    /// The end of input is ignored.
    IgnoreEof,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            pace: 1.0,
            store: None,
            seed: None,
            epoch_ms: None,
            legacy_batch: true,
            frame_max: 256 * 1024,
            old_frames: false,
            frame_first: false,
            ask_headers: false,
            startup: Startup::default(),
            scripts: Vec::new(),
            faults: Vec::new(),
        }
    }
}

impl Options {
    /// As fast as possible, nothing on disk, ids and clock fixed: what tests want.
    pub fn deterministic() -> Self {
        Self { pace: 0.0, seed: Some(1), epoch_ms: Some(1_790_000_000_000), ..Self::default() }
    }

    /// Scales a wait by the pace.
    pub fn scaled(&self, ms: u64) -> u64 {
        if self.pace <= 0.0 {
            return 0;
        }
        #[expect(clippy::cast_precision_loss, reason = "waits are far below 2^52 ms")]
        let ms = ms as f64 * self.pace;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "finite and positive"
        )]
        let whole = ms.round().min(86_400_000.0) as u64;
        whole
    }

    /// Scales a protocol interval: the pace can only shorten it.
    pub fn interval(&self, ms: u64) -> u64 {
        self.scaled(ms).min(ms)
    }

    /// Returns the first fault that `pick` knows.
    pub fn fault<T>(&self, pick: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        self.faults.iter().find_map(pick)
    }

    /// Returns whether the fault is switched on.
    pub fn has_fault(&self, fault: &Fault) -> bool {
        self.faults.contains(fault)
    }

    /// Reads the arguments of the hidden subcommand.
    pub fn from_cli(args: &SimEngineArgs) -> Result<Self, String> {
        // What follows the named ones is the real engine's command line, or a switch written without `-o`.
        let switches = args.options.iter().map(|o| format!("--{o}"));
        let mut options = Self::from_args(switches.chain(args.rest.iter().cloned()))?;
        if let Some(profile) = &args.profile {
            options.profile = profile.parse()?;
        }
        if let Some(pace) = args.pace {
            options.pace = pace;
        }
        if let Some(store) = &args.store {
            options.store = Some(store.clone());
        }
        for fault in &args.faults {
            options.set("--fault", Some(fault), &mut std::iter::empty())?;
        }
        Ok(options)
    }

    /// Reads switches as they stand on a command line (`--pace 0`, `--fault=die:3`).
    ///
    /// `app-server` and `--stdio` are accepted and mean nothing, so that the command line of the
    /// real engine can simply follow.
    pub fn from_args<I>(args: I) -> Result<Self, String>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let mut options = Self::default();
        let mut args = args.into_iter().map(Into::into);
        while let Some(arg) = args.next() {
            let (name, inline) = match arg.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (arg, None),
            };
            options.set(&name, inline.as_deref(), &mut args)?;
        }
        Ok(options)
    }

    fn set(
        &mut self,
        name: &str,
        inline: Option<&str>,
        rest: &mut impl Iterator<Item = String>,
    ) -> Result<(), String> {
        let mut value = || {
            inline
                .map(str::to_owned)
                .or_else(|| rest.next())
                .ok_or_else(|| format!("{name} needs a value"))
        };
        match name {
            "app-server" | "--stdio" => {}
            "--disallowed-tools" => drop(value()?),
            "--profile" => self.profile = value()?.parse()?,
            "--pace" => self.pace = number(name, &value()?)?,
            "--store" => self.store = Some(PathBuf::from(value()?)),
            "--seed" => self.seed = Some(number(name, &value()?)?),
            "--epoch-ms" => self.epoch_ms = Some(number(name, &value()?)?),
            "--deterministic" => {
                self.seed.get_or_insert(1);
                self.epoch_ms.get_or_insert(1_790_000_000_000);
            }
            "--no-batch" => self.legacy_batch = false,
            "--frame-max" => self.frame_max = number::<usize>(name, &value()?)?.max(64),
            "--old-frames" => self.old_frames = true,
            "--frame-first" => self.frame_first = true,
            "--ask-headers" => self.ask_headers = true,
            "--startup" => {
                self.startup = match value()?.as_str() {
                    "migrate" => Startup::Migrate,
                    "fail" => Startup::Fail,
                    "silent" | "ready" => Startup::Silent,
                    other => {
                        return Err(format!("--startup {other:?}: use silent, migrate or fail"));
                    }
                }
            }
            "--script" => {
                let path = value()?;
                let text =
                    std::fs::read_to_string(&path).map_err(|e| format!("--script {path}: {e}"))?;
                self.scripts.push(text);
            }
            "--fault" => {
                for one in value()?.split(',').filter(|f| !f.is_empty()) {
                    self.faults.push(one.parse()?);
                }
            }
            other => return Err(format!("unknown argument {other:?}")),
        }
        Ok(())
    }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|e| format!("{name} {text:?}: {e}"))
}

impl std::str::FromStr for Fault {
    type Err = String;

    /// `die:3`, `hang:3`, `garbage:5`, `drop-events:7`, `lose-completed`, `slow:session/read:1500`,
    /// `ignore-stop`, `ignore-v4-stop`, `drop-frames:4`, `evict`, `hydration:3`, `cold-start:500`,
    /// `no-method:mcp/list`, `guide-falls-back:guide.noToolBoundary`, `late-row:600`, `v4-breaks:9`,
    /// `v4-falls-silent:9`, `spoil-fragments:2`, `ignore-eof`.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let (name, rest) = s.split_once(':').unwrap_or((s, ""));
        let n = || if rest.is_empty() { Ok(1) } else { number::<u64>(name, rest) };
        Ok(match name {
            "die" => Self::DieAtStep(n()?),
            "hang" => Self::HangAtStep(n()?),
            "garbage" => Self::Garbage(n()?),
            "drop-events" => Self::DropEvents(n()?),
            "lose-completed" => Self::LoseCompleted,
            "slow" => {
                let (method, ms) = rest.rsplit_once(':').ok_or("slow:<method>:<ms>")?;
                Self::Slow(method.to_owned(), number(name, ms)?)
            }
            "ignore-stop" => Self::IgnoreStop,
            "ignore-v4-stop" => Self::IgnoreV4Stop,
            "drop-frames" => Self::DropFrames(n()?),
            "evict" => Self::EvictAfterTurn,
            "hydration" => Self::HydrationReads(n()?),
            "cold-start" => Self::ColdStart(n()?),
            "no-method" => Self::NoMethod(rest.to_owned()),
            "guide-falls-back" if rest.is_empty() => {
                Self::GuideFallsBack("guide.noToolBoundary".to_owned())
            }
            "guide-falls-back" => Self::GuideFallsBack(rest.to_owned()),
            "late-row" => Self::LateRow(n()?),
            "v4-breaks" => Self::V4Breaks(n()?),
            "v4-falls-silent" => Self::V4FallsSilent(n()?),
            "spoil-fragments" => Self::SpoilFragments(n()?),
            "ignore-eof" => Self::IgnoreEof,
            other => return Err(format!("unknown fault {other:?}")),
        })
    }
}
