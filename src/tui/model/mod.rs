//! DATA. Everything on the screen as plain values: transcript, draft, dialogs, status. No I/O, no
//! ratatui, no protocol types. `update` changes it, `view` reads it, the application loop owns it.

pub mod agents;
pub mod composer;
mod focus;
pub mod form;
pub mod fuzzy;
pub mod history;
pub mod login;
pub mod mention;
pub mod menu;
pub mod permission;
pub mod picker;
pub mod plan;
pub mod queue;
pub mod status;
pub mod transcript;
pub mod width;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use agents::AgentList;
use composer::Composer;
use form::Form;
use history::History;
use mention::Mentions;
use permission::Permission;
use picker::Picker;
use plan::PlanReview;
use queue::{AgentItem, AgentQueue, Place, Queue, QueueList};
use status::{Settings, Usage};
use transcript::Transcript;
use transcript::block::BlockId;

/// How long nothing may be typed before the keys of a dialog count.
pub const ARM_AFTER_MS: u64 = 425;
/// How long a second Ctrl-C may take to quit.
pub const QUIT_WINDOW_MS: u64 = 1500;
/// How long a short message stays in the status line.
pub const TOAST_MS: u64 = 4000;

/// What was decided before the first frame.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The session's working directory.
    pub cwd: PathBuf,
    /// The user's home, for shortening paths.
    pub home: PathBuf,
    /// What the agent is called until it says so itself.
    pub agent_label: String,
    /// What to type to see something, for the welcome screen: a prompt and what it shows.
    pub examples: Vec<(String, String)>,
    /// Whether a demo agent can be offered when there is no engine.
    pub can_demo: bool,
    /// Prompts sent from here before, oldest first.
    pub history: Vec<String>,
    /// The draft that was left here.
    pub draft: Option<Draft>,
    /// Which session to begin with.
    pub first: FirstSession,
    /// Spinners and clocks stand still.
    pub reduced_motion: bool,
}

/// Which session to begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FirstSession {
    /// A new one.
    #[default]
    New,
    /// This one.
    Named(String),
    /// The newest of the directory.
    Newest,
    /// The newest of the directory, whose list has been asked for.
    NewestOfList,
}

/// What is kept on disk between two runs in one directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// The text with its chips' labels.
    pub text: String,
    /// The chips.
    pub chips: Vec<composer::Chip>,
    /// Prompts that were waiting.
    pub queue: Vec<String>,
    /// The files that they mention, from the directory on.
    pub mentions: Vec<String>,
}

/// How far the agent is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Phase {
    /// It was started and has not answered yet.
    #[default]
    Starting,
    /// It has answered; a session is being opened.
    Opening,
    /// A session is open.
    Ready,
    /// It asks to log in first.
    NeedsLogin(String),
    /// It cannot be used; Enter on an empty draft tries again.
    Down(Trouble),
}

/// Why there is no session, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trouble {
    /// What happened, in a line.
    pub title: String,
    /// More: where was looked, what the agent said last.
    pub lines: Vec<String>,
    /// What to do.
    pub hints: Vec<String>,
    /// No engine was found: the demo is offered.
    pub no_engine: bool,
}

/// Something that an agent may be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// Load a session with its history.
    Load,
    /// Resume a session without its history.
    Resume,
    /// List sessions.
    List,
    /// Take pictures in a prompt.
    Image,
    /// Be guided while a turn runs.
    Steer,
    /// Change what waits in its own queue.
    Queue,
}

/// What the agent says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentFacts {
    /// Name to show.
    pub name: String,
    /// Version, or empty.
    pub version: String,
    /// What it can do.
    pub abilities: Vec<Ability>,
    /// Ways to log in.
    pub auth_methods: Vec<login::AuthMethod>,
}

impl AgentFacts {
    /// Whether it can do this.
    pub fn can(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }
}

/// A command that the agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// Its name without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may follow it, or empty.
    pub hint: String,
}

/// The session that is shown.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// Its id; `None` until the agent has opened it.
    pub id: Option<String>,
    /// Its title, or empty.
    pub title: String,
    /// Commands the agent offers in it.
    pub commands: Vec<AgentCommand>,
    /// Modes and options.
    pub settings: Settings,
    /// Last reading of the context's use.
    pub usage: Option<Usage>,
    /// What waits inside of the agent, where it says so.
    pub queue: Option<AgentQueue>,
    /// Titles of child sessions by id.
    pub children: HashMap<String, String>,
}

/// Whether a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Turn {
    /// Nothing runs.
    #[default]
    Idle,
    /// The agent works.
    Running {
        /// When it began.
        since_ms: u64,
    },
    /// It was asked to stop and has not answered yet.
    Cancelling {
        /// When the turn began.
        since_ms: u64,
        /// When the stop was asked for.
        asked_ms: u64,
    },
}

impl Turn {
    /// When the turn began, if one runs.
    pub fn since_ms(self) -> Option<u64> {
        match self {
            Self::Idle => None,
            Self::Running { since_ms } | Self::Cancelling { since_ms, .. } => Some(since_ms),
        }
    }
}

/// Something the agent waits for an answer to.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Names it towards the client task.
    pub id: u64,
    /// The session it belongs to.
    pub session_id: String,
    /// What is asked.
    pub kind: AskKind,
    /// When it was first on the screen as the front one.
    pub drawn_ms: Option<u64>,
    /// First line shown of a long body.
    pub scroll: usize,
}

/// From this width on, forms, plans and pages stand beside the transcript instead of over it.
pub const SIDE_BY_SIDE: u16 = 100;

impl Ask {
    /// Whether its pane covers this column of a screen so wide. A permission request leaves the
    /// wheel to the transcript that it is about.
    pub fn stands_at(&self, column: u16, columns: u16) -> bool {
        !matches!(self.kind, AskKind::Permission(_))
            && (columns < SIDE_BY_SIDE || column >= columns / 2)
    }
}

/// How a body that scrolls was drawn last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Body {
    /// The first line beyond which nothing new comes into sight.
    pub most: usize,
    /// Rows in sight.
    pub rows: usize,
}

impl Body {
    /// Where a scroll from `first` by `rows` ends: never beyond what there is.
    pub fn scrolled(self, first: usize, rows: isize) -> usize {
        first.min(self.most).saturating_add_signed(rows).min(self.most)
    }

    /// Rows that a page key moves.
    pub fn page(self) -> isize {
        isize::try_from(self.rows.saturating_sub(1).max(1)).unwrap_or(1)
    }
}

/// What is asked.
#[derive(Debug, Clone)]
pub enum AskKind {
    /// May the agent do this?
    Permission(Permission),
    /// A plan to approve or to send back.
    Plan(Box<PlanReview>),
    /// A form to fill in.
    Form(Box<Form>),
}

/// What covers the transcript or stands beside it.
#[derive(Debug, Clone)]
pub enum Overlay {
    /// A list to choose from.
    Picker(Picker),
    /// A page to read.
    Page(Page),
    /// The subagents.
    Agents(AgentList),
    /// What is queued, here and in the agent.
    Queue(QueueList),
}

/// A page to read.
#[derive(Debug, Clone)]
pub struct Page {
    /// What the frame says.
    pub title: String,
    /// What it shows.
    pub content: PageContent,
    /// First line shown.
    pub scroll: usize,
    /// Keys go to the page: it covers everything, or it was opened last.
    pub focused: bool,
    /// A search in it.
    pub find: Option<PageFind>,
}

/// A search in a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageFind {
    /// What is looked for.
    pub query: String,
    /// The keys still write it.
    pub typing: bool,
    /// Where to look with the next frame.
    pub seek: Option<Seek>,
    /// The row of the match.
    pub at: Option<usize>,
    /// Which row with a match, from 1, and how many there are; none before the first look.
    pub position: Option<(usize, usize)>,
    /// How much was looked through, in percent, while that is not all.
    pub progress: Option<u8>,
}

/// Where a search goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// From the first row on the screen, downward.
    Here,
    /// Below the match.
    Next,
    /// Above the match.
    Previous,
}

/// What a page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageContent {
    /// The keys and commands.
    Help,
    /// Markdown.
    Markdown(String),
    /// Plain text, shown as it is.
    Text(Arc<str>),
    /// A block of the transcript in full.
    Block(BlockId),
}

/// A search in the transcript.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// What is looked for.
    pub query: String,
    /// Which match is shown, and how many there are.
    pub position: Option<(usize, usize)>,
    /// Matches that only texts on disk have, once they were read.
    pub on_disk: Option<usize>,
}

/// The slash menu above the composer.
#[derive(Debug, Clone, Default)]
pub struct Menu {
    /// Row that is selected.
    pub selected: usize,
    /// The user moved the selection.
    pub moved: bool,
    /// The draft for which it was closed by hand.
    pub dismissed: Option<String>,
}

/// Tells a paste without brackets from typing: many characters that come faster than fingers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Burst {
    /// When the last character came.
    pub last_ms: u64,
    /// How many came one right after the other.
    pub run: u32,
    /// A line end came inside the run.
    pub multi_line: bool,
    /// What came last was a piece that no hands write; the rest of it may be slow to come.
    pub pasted: bool,
    /// An Enter that waits to see whether more text follows, until then.
    pub held_enter_until: Option<u64>,
}

/// Everything on the screen.
#[derive(Debug, Default)]
pub struct Model {
    /// What was decided before the first frame.
    pub start: Start,
    /// The clock: milliseconds since the start.
    pub now_ms: u64,
    /// Columns and rows of the screen.
    pub size: (u16, u16),
    /// Columns of the composer's text, as drawn last.
    pub composer_width: usize,
    /// What is asked or read, as drawn last.
    pub body: Body,
    /// The terminal window has the focus.
    pub focused: bool,
    /// How far the agent is.
    pub phase: Phase,
    /// What the agent is.
    pub agent: AgentFacts,
    /// The session shown.
    pub session: Session,
    /// The conversation.
    pub transcript: Transcript,
    /// The draft.
    pub composer: Composer,
    /// Prompts of before.
    pub history: History,
    /// Prompts waiting for the turn's end.
    pub queue: Queue,
    /// The message of the agent's queue that the draft is a new text for.
    pub editing: Option<AgentItem>,
    /// Whether a turn runs.
    pub turn: Turn,
    /// The turn now running was sent with this text; given back when it could not be delivered.
    pub in_flight: Option<String>,
    /// What the agent waits for, oldest first; the first one is shown.
    pub asks: Vec<Ask>,
    /// The subagents that are looked into, the outermost first; empty in the conversation itself.
    pub path: Vec<BlockId>,
    /// What lies over the transcript.
    pub overlay: Option<Overlay>,
    /// A search that is going on.
    pub search: Option<Search>,
    /// The selected block of the conversation.
    pub selected: Option<BlockId>,
    /// Whether the dock shows the steps of the plan, not only how far it is.
    pub dock_open: bool,
    /// The slash menu.
    pub menu: Menu,
    /// Files that the draft speaks of.
    pub mentions: Mentions,
    /// Paste detection.
    pub burst: Burst,
    /// A short message and when it goes.
    pub toast: Option<(String, u64)>,
    /// Until when a second Ctrl-C quits.
    pub quit_until: Option<u64>,
    /// When something was typed last.
    pub last_input_ms: u64,
    /// The draft as it was last written to disk (its version and the queue's length).
    pub saved_draft: (u64, usize),
    /// When the draft must be written.
    pub save_due_ms: Option<u64>,
    /// Counts the sessions opened, so that a late answer of an earlier one is known.
    pub opened: u64,
    /// The program ends.
    pub quitting: bool,
}

impl Model {
    /// Makes the model of the first frame.
    pub fn new(mut start: Start) -> Self {
        let mut model = Self { focused: true, ..Self::default() };
        model.history = History::from_entries(std::mem::take(&mut start.history));
        if let Some(draft) = start.draft.take() {
            for chip in draft.chips.iter().filter(|chip| chip.label.starts_with("[image ")) {
                model.mentions.take(mention::Attachment {
                    token: chip.content.clone(),
                    path: chip.content.clone().into(),
                    is_picture: true,
                });
            }
            model.composer.restore_draft(draft.text, draft.chips);
            for path in draft.mentions {
                model.mentions.take(mention::Attachment::of_file(&path, &start.cwd));
            }
            for prompt in draft.queue {
                model.queue.push(prompt);
            }
            model.queue.hold();
        }
        model.saved_draft = (model.composer.version(), model.queue.len());
        model.agent.name.clone_from(&start.agent_label);
        model.transcript = Transcript::held_in(&start.cwd);
        model.start = start;
        model
    }

    /// Whether the front ask is on the screen and nothing was typed for a moment, so that its
    /// keys count.
    pub fn is_armed(&self) -> bool {
        self.arm_at().is_some_and(|at| self.now_ms >= at)
    }

    /// When the keys of the front ask will count, if nothing is typed until then.
    pub fn arm_at(&self) -> Option<u64> {
        let drawn = self.asks.first()?.drawn_ms?;
        Some(drawn.max(self.last_input_ms) + ARM_AFTER_MS)
    }

    /// The front ask as a form, if it is one.
    pub fn front_form(&self) -> Option<&Form> {
        match &self.asks.first()?.kind {
            AskKind::Form(form) => Some(form),
            AskKind::Permission(_) | AskKind::Plan(_) => None,
        }
    }

    /// Whether something on the screen changes with the clock alone.
    pub fn is_animated(&self) -> bool {
        !self.start.reduced_motion
            && (self.turn != Turn::Idle && self.asks.is_empty()
                || matches!(self.phase, Phase::Starting | Phase::Opening)
                || self.transcript.is_animated())
    }

    /// The next time at which something must happen without any message, spinners aside.
    pub fn deadline(&self) -> Option<u64> {
        let arm = self.arm_at().filter(|at| *at > self.now_ms);
        let toast = self.toast.as_ref().map(|(_, until)| *until);
        [arm, toast, self.quit_until, self.save_due_ms, self.burst.held_enter_until]
            .into_iter()
            .flatten()
            .min()
    }

    /// What waits in the agent's own queue.
    pub fn agent_items(&self) -> &[AgentItem] {
        self.session.queue.as_ref().map_or(&[], |queue| &queue.items)
    }

    /// How many prompts wait, here and in the agent.
    pub fn waiting(&self) -> usize {
        self.queue.len() + self.agent_items().len()
    }

    /// What is at a row of the list of what is queued.
    pub fn queued_at(&self, row: usize) -> Option<Place> {
        match row.checked_sub(self.queue.len()) {
            None => Some(Place::Here(row)),
            Some(at) => self.agent_items().get(at).cloned().map(Place::Agent),
        }
    }

    /// Shows a short message in the status line.
    pub fn say(&mut self, text: impl Into<String>) {
        self.toast = Some((text.into(), self.now_ms + TOAST_MS));
    }
}
