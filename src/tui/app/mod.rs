//! The loop: one owner of the model. Takes everything that has happened, changes the model, carries
//! out what that asks for, and draws when something changed.
//!
//! Input comes before output: keys are taken between any two messages of the agent, and a frame
//! that a key asked for is not delayed by the pace of streamed text. Without messages, deadlines
//! and animations the loop sleeps in the kernel.
//!
//! - [`frame`]: when a frame is due, and what goes out with it.
//! - [`work`]: what the model asks of the view, of the jobs beside the loop and of the disk.
//! - [`guest`]: programs that have the terminal for a while.
//! - [`views`]: the views of the conversation and of the subagents that are looked into.

mod frame;
mod guest;
mod views;
mod work;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};

use super::agent_source::{AgentCommand, AgentSource};
use super::client::{ClientHandle, ClientOptions, Order, Parcel};
use super::clipboard::Clipboard;
use super::editor;
use super::jobs::Jobs;
use super::model::{Model, Start};
use super::msg::{AgentCmd, Cmd, Msg};
use super::spill::SpillStore;
use super::store::Store;
use super::terminal::guard::{self, TerminalGuard};
use super::terminal::input::TermEvent;
use super::terminal::reader::{Input, Reader};
use super::terminal::screen::Screen;
use super::update::update;
use super::view::Drawn;
use super::view::highlight::Highlighter;
use super::view::theme::{Theme, ThemeSpec};
use views::Views;

/// Messages of the agent that are taken before keys are looked for again.
const BATCH: usize = 256;
/// Events of the terminal that may wait.
const INPUT: usize = 1024;

/// What the chat needs to know.
#[derive(Debug)]
pub struct TuiOptions {
    /// What was decided before the first frame; draft and history are read by [`run`].
    pub start: Start,
    /// Where drafts and history are kept.
    pub state_dir: PathBuf,
    /// What the terminal can show.
    pub theme: ThemeSpec,
    /// The user chose the background; the terminal's own answer does not count.
    pub fixed_background: bool,
    /// Wheel and clicks are taken; otherwise the terminal's own selection works.
    pub mouse: bool,
    /// The environment, for the commands that an agent has us run.
    pub env: Vec<(OsString, OsString)>,
    /// The agent that `/demo` starts, when there is one.
    pub demo: Option<AgentSource>,
    /// A prompt to send as soon as the session is open.
    pub prompt: Option<String>,
}

/// How the chat ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The user left.
    Left,
    /// A signal or the terminal's end.
    Hangup,
}

/// Runs the chat on the terminal until the user leaves. Draws before it starts the agent.
pub fn run(source: AgentSource, mut options: TuiOptions) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the terminal is changed: a signal that comes with the first frame must find us.
    let mut signals = {
        let _entered = runtime.enter();
        Signals::new()?
    };
    let (guard, modes) = TerminalGuard::enter(options.mouse)?;
    let store = Store::new(&options.state_dir, &options.start.cwd);
    options.start.history = store.history();
    options.start.draft = store.draft();
    let cwd = options.start.cwd.clone();
    let env = options.env.clone();
    let mut app = App::new(guard, store, options, source.command().cloned());
    app.screen.send_ahead(&modes);
    app.draw()?;
    let client = ClientHandle::start(source, ClientOptions { cwd, env })?;
    let (outcome, client) = runtime.block_on(app.serve(client, &mut signals));
    // The terminal first: whatever the agent takes to end, the user has the shell back.
    drop(app);
    client.end();
    outcome
}

/// Signals that the loop takes in.
struct Signals {
    resized: Signal,
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    stop: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
        })
    }
}

struct App {
    guard: TerminalGuard,
    store: Store,
    model: Model,
    views: Views,
    theme: Theme,
    fixed_background: bool,
    screen: Screen,
    demo: Option<AgentSource>,
    /// What starts the agent, and so its login.
    agent: Option<AgentCommand>,
    env: Vec<(OsString, OsString)>,
    began: Instant,
    last_frame: Instant,
    dirty: Dirty,
    synchronized: bool,
    title: String,
    exit: Option<Exit>,
    commands: Option<mpsc::Sender<Order>>,
    reader: Option<Reader>,
    input: Option<mpsc::Sender<Input>>,
    drawn: Drawn,
    state_dir: PathBuf,
    spills: SpillStore,
    jobs: Jobs,
    editor: String,
    guest: Option<guest::Guest>,
    /// The terminal was taken back before the Ctrl-C that ended its guest had reached us.
    late_interrupt: Option<std::time::Instant>,
    /// Conversations shown so far: each has spilled texts of its own.
    conversations: u32,
}

/// Whether a frame is due, and how soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dirty {
    No,
    /// Streamed text: at its own pace.
    Stream,
    /// Something that a hand is waiting for.
    Now,
}

impl App {
    fn new(
        guard: TerminalGuard,
        store: Store,
        options: TuiOptions,
        agent: Option<AgentCommand>,
    ) -> Self {
        let TuiOptions { start, theme, fixed_background, demo, prompt, state_dir, env, .. } =
            options;
        let (columns, rows) = guard::size();
        let mut model = Model::new(start);
        model.size = (columns, rows);
        if let Some(prompt) = prompt {
            // As if it had been typed: the arrow brings it back.
            if model.history.add(&prompt)
                && let Err(error) = store.add_history(&prompt)
            {
                tracing::warn!(%error, "the history could not be written");
            }
            model.queue.release();
            model.queue.push_front(prompt);
        }
        let now = Instant::now();
        let theme = Theme::new(theme);
        let mut screen = Screen::new(columns, rows);
        screen.set_links(theme.links.clone());
        Self {
            guard,
            store,
            model,
            views: Views::default(),
            theme,
            fixed_background,
            screen,
            demo,
            agent,
            began: now,
            last_frame: now.checked_sub(frame::FRAME).unwrap_or(now),
            dirty: Dirty::Now,
            synchronized: false,
            title: String::new(),
            exit: None,
            commands: None,
            reader: None,
            input: None,
            drawn: Drawn::default(),
            spills: SpillStore::new(work::spill_dir(&state_dir, 0)),
            jobs: Jobs::new(Clipboard::new(&env, &state_dir.join("tui"))),
            editor: editor::named(&env),
            guest: None,
            late_interrupt: None,
            env,
            state_dir,
            conversations: 0,
        }
    }

    async fn serve(
        &mut self,
        mut client: ClientHandle,
        signals: &mut Signals,
    ) -> (io::Result<Exit>, ClientHandle) {
        self.commands = Some(client.commands.clone());
        let hurry = Arc::clone(&client.hurry);
        let outcome = self.run(&mut client.messages, &hurry, signals).await;
        self.commands = None;
        (outcome, client)
    }

    async fn run(
        &mut self,
        messages: &mut mpsc::Receiver<Parcel>,
        hurry: &Notify,
        signals: &mut Signals,
    ) -> io::Result<Exit> {
        let colours = Arc::new(Notify::new());
        let wake = Arc::clone(&colours);
        self.views.shown.set_highlighter(Highlighter::spawn(move || wake.notify_one())?);
        self.begin_spills();
        let Some(mut done) = self.jobs.results() else { return Ok(Exit::Left) };
        let (input_tx, mut input) = mpsc::channel(INPUT);
        self.reader = Some(Reader::start(input_tx.clone())?);
        self.input = Some(input_tx);
        let mut agent_is_there = true;
        loop {
            let mut typed = 0;
            // So many that a flood of them does not keep the screen from being drawn.
            while typed < BATCH
                && let Ok(event) = input.try_recv()
            {
                self.take_input(event);
                typed += 1;
            }
            let mut taken = 0;
            while taken < BATCH
                && let Ok(parcel) = messages.try_recv()
            {
                self.take(Msg::Agent(parcel.message), Dirty::Stream);
                taken += 1;
            }
            if let Some(exit) = self.exit {
                return Ok(exit);
            }
            let now = Instant::now();
            if self.model.deadline().is_some_and(|at| self.at(at) <= now) {
                self.take(Msg::Ticked, Dirty::Now);
            }
            if self.frame_due().is_some_and(|at| at <= now) {
                self.draw()?;
            }
            if taken == BATCH {
                // More is waiting; only keys and frames may come in between.
                tokio::task::yield_now().await;
                continue;
            }
            let paced = self.is_paced();
            let wake = self.next_wake();
            let sleep = async {
                match wake {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(event) = input.recv() => self.take_input(event),
                Some(()) = signals.resized.recv() => self.resized(),
                Some(()) = signals.terminate.recv() => self.hangup(),
                Some(()) = signals.hangup.recv() => self.hangup(),
                Some(()) = signals.interrupt.recv() => self.interrupted(),
                Some(()) = signals.stop.recv() => self.suspend()?,
                () = hurry.notified(), if paced => {}
                parcel = messages.recv(), if agent_is_there && !paced => match parcel {
                    Some(parcel) => self.take(Msg::Agent(parcel.message), Dirty::Stream),
                    None => agent_is_there = false,
                },
                Some(done) = done.recv() => self.take(done, Dirty::Now),
                status = guest::wait(&mut self.guest) => self.guest_ended(status)?,
                () = colours.notified() => self.dirty = self.dirty.max(Dirty::Stream),
                () = sleep => {}
            }
        }
    }

    /// The instant that a time of the model stands for.
    fn at(&self, ms: u64) -> Instant {
        self.began + Duration::from_millis(ms)
    }

    fn take_input(&mut self, input: Input) {
        if self.is_leaving() {
            return self.taken_leave();
        }
        match input {
            Input::Eof => self.hangup(),
            Input::Event(TermEvent::Reply(reply), _) => self.replied(&reply),
            Input::Event(event, at) => {
                // The key's own time tells typing from pasting, however late it is looked at.
                self.model.now_ms = ms_since(self.began, at).max(self.model.now_ms);
                self.carry(Msg::Term(event), Dirty::Now);
            }
        }
    }

    fn take(&mut self, msg: Msg, dirty: Dirty) {
        self.model.now_ms = ms_since(self.began, Instant::now());
        self.carry(msg, dirty);
    }

    fn carry(&mut self, msg: Msg, dirty: Dirty) {
        self.dirty = self.dirty.max(dirty);
        for cmd in update(&mut self.model, msg) {
            self.carry_out(cmd);
        }
        let writes = self.model.transcript.take_spills();
        if let Err(error) = self.spills.carry_out(writes) {
            tracing::warn!(%error, "a long output could not be kept on disk");
        }
    }

    fn carry_out(&mut self, cmd: Cmd) {
        match cmd {
            Cmd::Agent(AgentCmd::Restart) => self.order(Order::Do(AgentCmd::Restart)),
            Cmd::Agent(command) => self.order(Order::Do(command)),
            Cmd::StartDemo => match self.demo.take() {
                Some(source) => {
                    self.agent = source.command().cloned();
                    self.order(Order::Replace(source));
                }
                None => self.report("the demo agent is running already"),
            },
            Cmd::Scroll(scroll) => self.scroll(&scroll),
            Cmd::StoreHistory(prompt) => {
                if let Err(error) = self.store.add_history(&prompt) {
                    tracing::warn!(%error, "the history could not be written");
                }
            }
            Cmd::StoreDraft(draft) => {
                if let Err(error) = self.store.set_draft(&draft) {
                    tracing::warn!(%error, "the draft could not be written");
                }
            }
            Cmd::Notify(text) => Self::notify(&text),
            Cmd::Copy { what, to_file } => self.copy(what, to_file),
            Cmd::Export(path) => self.export(&path),
            Cmd::LogIn(program) => self.log_in(&program),
            Cmd::Edit(draft) => self.edit(&draft, true),
            Cmd::EditPage => self.edit_page(),
            Cmd::ListFiles => self.jobs.list_files(self.model.start.cwd.clone()),
            Cmd::LookAtPicture { word, path } => self.jobs.look_at(word, path),
            Cmd::Redraw => self.redraw(),
            Cmd::Suspend => {
                if let Err(error) = self.suspend() {
                    tracing::warn!(%error, "the terminal could not be handed back");
                }
            }
            Cmd::Quit => self.exit = Some(self.exit.unwrap_or(Exit::Left)),
        }
    }

    fn order(&mut self, order: Order) {
        let Some(commands) = &self.commands else { return };
        if let Err(error) = commands.try_send(order) {
            tracing::error!(%error, "the client does not take commands");
            self.report("the agent's side does not answer: Ctrl-C twice quits");
        }
    }

    fn report(&mut self, text: &str) {
        self.carry(Msg::Reported(text.to_owned()), Dirty::Now);
    }

    fn hangup(&mut self) {
        self.dismiss_guest();
        self.exit = Some(Exit::Hangup);
        self.take(Msg::Hangup, Dirty::No);
    }
}

fn ms_since(began: Instant, at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(began).as_millis()).unwrap_or(u64::MAX)
}
