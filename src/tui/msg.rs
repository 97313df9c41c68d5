//! Everything that can happen ([`Msg`], facts in the past tense) and everything that may be asked
//! for ([`Cmd`], wishes in the imperative). Values only: the loop in `app` carries them.

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::v1::schema as acp;
use serde_json::Value;

use crate::tui::model::login::LoginProgram;
use crate::tui::model::mention::{Attachment, FileList};
use crate::tui::model::queue::AgentQueue;
use crate::tui::model::status::Usage;
use crate::tui::model::transcript::block::BlockId;
use crate::tui::model::{AgentCommand, Draft, Seek};
use crate::tui::terminal::input::TermEvent;

/// Something that happened.
#[derive(Debug)]
pub enum Msg {
    /// The terminal sent something.
    Term(TermEvent),
    /// The screen has this many columns and rows now.
    Resized(u16, u16),
    /// A deadline of the model has come, or an animation moves on.
    Ticked,
    /// A frame with everything in it is on the screen.
    Drawn,
    /// The program is told to end (signal, terminal gone): nothing is approved, the draft is kept.
    Hangup,
    /// The program that logs in ended, or why it did not log in.
    LoginEnded(Result<(), String>),
    /// The editor gave the draft back.
    Edited(String),
    /// A search moved to a match (which, of how many).
    Found(Option<(usize, usize)>),
    /// The selected block is another one.
    Selected(Option<BlockId>),
    /// A search in a page moved.
    PageSought(PageSought),
    /// The search in what lies on disk has ended.
    FoundOnDisk {
        /// What was looked for.
        query: String,
        /// Matches that only the disk has.
        matches: usize,
        /// The blocks they are in.
        blocks: Vec<BlockId>,
    },
    /// A text to read has been made.
    Paged {
        /// What it is.
        title: String,
        /// The text.
        text: Arc<str>,
    },
    /// The files below the session's directory were read.
    FilesListed(Arc<FileList>),
    /// A picture that was pasted by its path has been looked at.
    PictureLookedAt {
        /// How its path stands in the draft.
        word: String,
        /// Where it is.
        path: PathBuf,
        /// Whether it can be sent, or why not.
        result: Result<(), String>,
    },
    /// Something the application was asked to do went this way; shown in the status line.
    Reported(String),
    /// The agent's side said something.
    Agent(AgentMsg),
}

/// What the client task tells.
#[derive(Debug)]
pub enum AgentMsg {
    /// The answer to `initialize`.
    Initialized(Value),
    /// A session is open.
    Opened {
        /// Which opening this answers.
        opening: u64,
        /// Its id.
        session_id: String,
        /// The answer as it came.
        answer: Value,
        /// How it was opened.
        how: Opening,
    },
    /// A session could not be opened.
    OpenFailed {
        /// Which opening this answers.
        opening: u64,
        /// How it was tried.
        how: Opening,
        /// Why not.
        failure: Failure,
    },
    /// A `session/update` that this client knows.
    Updated {
        /// The session it names.
        session_id: String,
        /// The update.
        update: Box<acp::SessionUpdate>,
    },
    /// A `session/update` that tells about the session rather than the conversation.
    Learned {
        /// The session it names.
        session_id: String,
        /// What it tells.
        fact: SessionFact,
    },
    /// A `session/update` that it does not know, or not in this form.
    UnknownUpdate {
        /// The session it names.
        session_id: String,
        /// The update as it came.
        update: Value,
    },
    /// A prompt was answered.
    TurnEnded {
        /// The session.
        session_id: String,
        /// The answer as it came, or why there is none.
        result: Result<Value, Failure>,
    },
    /// The agent asks for permission.
    PermissionAsked {
        /// Names the request.
        ask: u64,
        /// The params as they came.
        params: Value,
    },
    /// The agent asks for a form to be filled in.
    FormAsked {
        /// Names the request.
        ask: u64,
        /// The params as they came.
        params: Value,
    },
    /// A request needs no answer any more: the agent took it back, or is gone.
    AskWithdrawn {
        /// Names the request.
        ask: u64,
    },
    /// Config options after one was set, or why it was not.
    OptionSet {
        /// What was to be set, for the message.
        what: String,
        /// The answer as it came.
        result: Result<Value, Failure>,
    },
    /// A mode was set, or why it was not.
    ModeSet {
        /// Which.
        mode: String,
        /// Whether it worked.
        result: Result<(), Failure>,
    },
    /// A page of the list of sessions.
    Sessions(Result<Value, Failure>),
    /// The login ended.
    LoggedIn(Result<(), Failure>),
    /// The answer to a guide.
    Steered {
        /// What was sent.
        text: String,
        /// The outcome, as the agent names it.
        result: Result<String, Failure>,
    },
    /// The agent's queue was changed, or why not.
    QueueChanged {
        /// What was asked for.
        change: QueueChange,
        /// Whether it worked.
        result: Result<(), Failure>,
    },
    /// What a prompt was to take along and could not, in words.
    NotAttached(Vec<String>),
    /// A terminal of ours printed something.
    TerminalOutput {
        /// Its id.
        terminal_id: String,
        /// What it printed.
        text: String,
    },
    /// A terminal's command ended.
    TerminalExited {
        /// Its id.
        terminal_id: String,
        /// Exit code, when it ended by itself.
        code: Option<i64>,
        /// Signal, when it was killed.
        signal: Option<String>,
    },
    /// The connection ended.
    Gone(Failure),
}

/// Something about the session rather than the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionFact {
    /// The agent's commands, all of them.
    Commands(Vec<AgentCommand>),
    /// The config options as they came, all of them.
    Options(Vec<Value>),
    /// The mode in effect.
    Mode(String),
    /// The session's title; empty when it was cleared.
    Title(String),
    /// A reading of the context's use.
    Usage(Usage),
    /// What waits in the agent's queue, all of it.
    Queue(AgentQueue),
    /// A child session and what it is called.
    Child {
        /// Its id.
        session_id: String,
        /// Its title, or empty.
        title: String,
    },
}

/// How a session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// A new one.
    New,
    /// An old one with its history replayed.
    Load(String),
    /// An old one, nothing replayed.
    Resume(String),
}

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failure {
    /// JSON-RPC error code; 0 when there was no answer at all.
    pub code: i64,
    /// The agent's message.
    pub message: String,
    /// More lines: `data`, the last lines of standard error.
    pub detail: Vec<String>,
    /// The error's `data` as it came.
    pub data: Value,
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Cmd {
    /// For the client task.
    Agent(AgentCmd),
    /// For the transcript's view.
    Scroll(Scroll),
    /// Append a prompt to the history file.
    StoreHistory(String),
    /// Write the draft to disk.
    StoreDraft(Draft),
    /// Edit this text in the user's editor.
    Edit(String),
    /// Log in by this program, which gets the terminal.
    LogIn(LoginProgram),
    /// Tell the user, who looks elsewhere.
    Notify(String),
    /// Write the conversation as markdown to this file.
    Export(String),
    /// Copy something; to a file when `to_file`.
    Copy {
        /// What.
        what: CopyWhat,
        /// Not to the clipboard.
        to_file: bool,
    },
    /// Read the files below the session's directory.
    ListFiles,
    /// Look whether a picture can be sent.
    LookAtPicture {
        /// How its path stands in the draft.
        word: String,
        /// Where it is.
        path: PathBuf,
    },
    /// Open the text of the page in the user's editor.
    EditPage,
    /// Start the demo agent in place of the one that is down.
    StartDemo,
    /// Draw every cell again.
    Redraw,
    /// Suspend the program.
    Suspend,
    /// End the program.
    Quit,
}

/// What is copied, always as its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyWhat {
    /// The selected text, else the selected block, else the last answer.
    Marked,
    /// The last code block of the selected block, else of the last answer with one.
    Code,
    /// The turn of the selected block, else the last one.
    Turn,
    /// What the page shows.
    Page,
}

/// Where a search in a page came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSought {
    /// First row shown, when the search moved it.
    pub scroll: Option<usize>,
    /// The row of the match.
    pub at: Option<usize>,
    /// Which row with a match it is, from 1, and how many there are so far.
    pub position: (usize, usize),
    /// Where it is still to go: what was looked through holds no match there.
    pub seek: Option<Seek>,
    /// How much of the page was looked through, in percent; none when all of it was.
    pub progress: Option<u8>,
}

/// For the client task.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentCmd {
    /// Open a session.
    Open {
        /// Counts the openings.
        opening: u64,
        /// How.
        how: Opening,
    },
    /// Send a prompt.
    Prompt {
        /// To which session.
        session_id: String,
        /// What.
        text: String,
        /// The files that go with it.
        files: Vec<Attachment>,
    },
    /// Guide the running turn.
    Steer {
        /// To which session.
        session_id: String,
        /// What.
        text: String,
        /// The files that go with it.
        files: Vec<Attachment>,
    },
    /// Change what waits in the agent's queue.
    Queue {
        /// Of which session.
        session_id: String,
        /// How.
        change: QueueChange,
    },
    /// Stop the turn. Overtakes everything else.
    Cancel {
        /// Of which session.
        session_id: String,
    },
    /// Answer a permission request; `None` is cancelled.
    AnswerPermission {
        /// Names the request.
        ask: u64,
        /// The option's id exactly as offered.
        option_id: Option<String>,
    },
    /// Answer a form.
    AnswerForm {
        /// Names the request.
        ask: u64,
        /// The answer.
        answer: FormAnswer,
    },
    /// Set a config option.
    SetOption {
        /// Of which session.
        session_id: String,
        /// Which.
        id: String,
        /// To what: a string or a boolean.
        value: Value,
    },
    /// Set the mode by the older method.
    SetMode {
        /// Of which session.
        session_id: String,
        /// Which.
        mode: String,
    },
    /// List sessions of this directory.
    ListSessions {
        /// Where to go on.
        cursor: Option<String>,
    },
    /// Log in.
    Authenticate {
        /// By which method.
        method: String,
    },
    /// Start the agent again.
    Restart,
}

/// A change of the agent's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueChange {
    /// Another text.
    Edit {
        /// The message's id.
        id: String,
        /// The text.
        text: String,
    },
    /// Take it out.
    Delete {
        /// The message's id.
        id: String,
    },
    /// Run it next.
    SendNow {
        /// The message's id.
        id: String,
    },
    /// Go on by itself when a turn ends, or not.
    AutoDrain(bool),
}

/// The answer to a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer {
    /// Filled in.
    Accept(serde_json::Map<String, Value>),
    /// Refused.
    Decline,
    /// Left.
    Cancel,
}

/// For the transcript's view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scroll {
    /// By lines; negative is up.
    Lines(i32),
    /// By pages; negative is up.
    Pages(i32),
    /// To the start.
    Top,
    /// To the end, and follow it.
    Tail,
    /// To the prompt above.
    PreviousPrompt,
    /// To the prompt below.
    NextPrompt,
    /// Expand or collapse everything.
    ExpandAll,
    /// The mouse button went down on this cell of the screen.
    Press(u16, u16),
    /// The mouse moved here with the button down.
    Drag(u16, u16),
    /// The mouse button was let go here.
    Release(u16, u16),
    /// Select the next (or previous) block.
    SelectBlock(bool),
    /// Fold or unfold the selected block, else the last card.
    ToggleBlock,
    /// Nothing is selected any more.
    Unselect,
    /// Show this block.
    Show(BlockId),
    /// Look for this text.
    Find(String),
    /// Go to the next (or previous) match.
    NextMatch(bool),
    /// These blocks have matches on disk.
    FoundOnDisk(Vec<BlockId>),
    /// The search is over.
    EndSearch,
    /// Show what the last of these subagents does; the conversation itself when there is none.
    Within(Vec<BlockId>),
    /// The conversation is another one.
    Reset,
}
