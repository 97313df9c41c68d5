//! The loop: one owner of the model. Takes everything that has happened, changes the model, carries
//! out what that asks for, and draws when something changed.
//!
//! Input comes before output: keys are taken between any two messages of the agent, and a frame
//! that a key asked for is not delayed by the pace of streamed text. Without messages, deadlines
//! and animations the loop sleeps in the kernel.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};

use super::agent_source::AgentSource;
use super::client::{ClientHandle, ClientOptions, Order, Parcel};
use super::clipboard::Clipboard;
use super::editor;
use super::jobs::Jobs;
use super::model::transcript::block::BlockId;
use super::model::transcript::source::{self, Chunk};
use super::model::{Model, Overlay, PageContent, Start};
use super::msg::{AgentCmd, Cmd, CopyWhat, Msg, Scroll};
use super::spill::SpillStore;
use super::store::Store;
use super::terminal::guard::{self, TerminalGuard};
use super::terminal::input::{Reply, TermEvent};
use super::terminal::reader::{Input, Reader};
use super::terminal::screen::Screen;
use super::terminal::traits;
use super::update::update;
use super::view::highlight::Highlighter;
use super::view::theme::{Theme, ThemeSpec};
use super::view::transcript::{Released, TranscriptView};
use super::view::{self, Drawn};

/// Shortest time between two frames: a key that comes right after a frame of streamed text is on
/// the screen within half a tick of a 60 Hz display.
const FRAME: Duration = Duration::from_millis(8);
/// Time between two frames while only text streams.
const STREAM_FRAME: Duration = Duration::from_millis(33);
/// Time between two steps of an animation.
const ANIMATION: Duration = Duration::from_millis(320);
/// Messages of the agent that are taken before keys are looked for again.
const BATCH: usize = 256;
/// Events of the terminal that may wait.
const INPUT: usize = 1024;
/// Answers of the terminal tell that it can set this mode.
const SYNCHRONIZED_OUTPUT: u16 = 2026;

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
    let env = std::mem::take(&mut options.env);
    let mut app = App::new(guard, store, options, &env);
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
    view: TranscriptView,
    /// The views of what is around the subagent that is looked into, where one comes back to.
    around: Vec<TranscriptView>,
    theme: Theme,
    fixed_background: bool,
    screen: Screen,
    demo: Option<AgentSource>,
    began: Instant,
    last_frame: Instant,
    dirty: Dirty,
    synchronized: bool,
    title: String,
    exit: Option<Exit>,
    expanded: bool,
    commands: Option<mpsc::Sender<Order>>,
    reader: Option<Reader>,
    input: Option<mpsc::Sender<Input>>,
    drawn: Drawn,
    state_dir: PathBuf,
    spills: SpillStore,
    jobs: Jobs,
    editor: String,
    editing: Option<Editing>,
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
        env: &[(OsString, OsString)],
    ) -> Self {
        let TuiOptions { start, theme, fixed_background, demo, prompt, state_dir, .. } = options;
        let (columns, rows) = guard::size();
        let mut model = Model::new(start);
        model.size = (columns, rows);
        if let Some(prompt) = prompt {
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
            view: TranscriptView::new(),
            around: Vec::new(),
            theme,
            fixed_background,
            screen,
            demo,
            began: now,
            last_frame: now.checked_sub(FRAME).unwrap_or(now),
            dirty: Dirty::Now,
            synchronized: false,
            title: String::new(),
            exit: None,
            expanded: false,
            commands: None,
            reader: None,
            input: None,
            drawn: Drawn::default(),
            spills: SpillStore::new(spill_dir(&state_dir, 0)),
            jobs: Jobs::new(Clipboard::new(env, &state_dir.join("tui"))),
            editor: editor::named(env),
            editing: None,
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
        self.view.set_highlighter(Highlighter::spawn(move || wake.notify_one())?);
        self.begin_spills();
        let Some(mut done) = self.jobs.results() else { return Ok(Exit::Left) };
        let (input_tx, mut input) = mpsc::channel(INPUT);
        self.reader = Some(Reader::start(input_tx.clone())?);
        self.input = Some(input_tx);
        let mut agent_is_there = true;
        loop {
            while let Ok(event) = input.try_recv() {
                self.take_input(event);
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
                Some(()) = signals.interrupt.recv() => self.hangup(),
                Some(()) = signals.stop.recv() => self.suspend()?,
                () = hurry.notified(), if paced => {}
                parcel = messages.recv(), if agent_is_there && !paced => match parcel {
                    Some(parcel) => self.take(Msg::Agent(parcel.message), Dirty::Stream),
                    None => agent_is_there = false,
                },
                Some(done) = done.recv() => self.take(done, Dirty::Now),
                status = wait(&mut self.editing) => self.edited(status)?,
                () = colours.notified() => self.dirty = self.dirty.max(Dirty::Stream),
                () = sleep => {}
            }
        }
    }

    /// The instant that a time of the model stands for.
    fn at(&self, ms: u64) -> Instant {
        self.began + Duration::from_millis(ms)
    }

    fn frame_due(&self) -> Option<Instant> {
        if self.editing.is_some() {
            return None;
        }
        match self.dirty {
            Dirty::Now => Some(self.last_frame + FRAME),
            Dirty::Stream => Some(self.last_frame + STREAM_FRAME),
            Dirty::No if self.model.is_animated() => Some(self.last_frame + ANIMATION),
            Dirty::No => None,
        }
    }

    /// Whether a frame of streamed text is due: what else is streamed until then is taken with it.
    fn is_paced(&self) -> bool {
        self.dirty == Dirty::Stream && self.frame_due().is_some()
    }

    fn next_wake(&self) -> Option<Instant> {
        let deadline = self.model.deadline().map(|ms| self.at(ms));
        [self.frame_due(), deadline].into_iter().flatten().min()
    }

    fn take_input(&mut self, input: Input) {
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
                Some(source) => self.order(Order::Replace(source)),
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
            Cmd::Edit(draft) => self.edit(&draft, true),
            Cmd::EditPage => match self.page_text() {
                Some(chunks) => {
                    let reader = self.spills.reader();
                    let text = source::assemble(&chunks, &mut |key| reader.read(key));
                    self.edit(&text, false);
                }
                None => self.report("this page has no text of its own"),
            },
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

    fn scroll(&mut self, scroll: &Scroll) {
        match *scroll {
            Scroll::Lines(rows) => self.view.scroll_by(rows as isize),
            Scroll::Pages(pages) => self.view.page(pages as isize),
            Scroll::Top => self.view.to_top(),
            Scroll::Tail => self.view.to_tail(),
            Scroll::PreviousPrompt => self.view.to_previous_prompt(),
            Scroll::NextPrompt => self.view.to_next_prompt(),
            Scroll::ExpandAll => {
                self.expanded = !self.expanded;
                self.view.expand_all(self.expanded);
            }
            Scroll::Press(x, y) => self.view.press(x, y),
            Scroll::Drag(x, y) => self.view.drag(x, y),
            Scroll::Release(x, y) => match self.view.release(x, y) {
                Released::Click(Some(hit)) if hit.header => self.view.toggle(hit.block),
                Released::Click(_) => {}
                Released::Selected => self.copy(CopyWhat::Marked, false),
            },
            Scroll::SelectBlock(forward) => self.view.select_near(forward),
            Scroll::ToggleBlock => self.view.toggle_selected(),
            Scroll::Unselect => {
                self.view.clear_selection();
                self.view.select(None);
            }
            Scroll::Show(block) => self.view.to_block(block),
            Scroll::Within(ref way) => self.look_within(way),
            Scroll::Reset => {
                self.look_within(&[]);
                self.view.reset();
                self.begin_spills();
            }
            Scroll::Find(ref needle) => {
                self.view.find(needle);
                self.search_disk(needle);
            }
            Scroll::FoundOnDisk(ref blocks) => self.view.found_on_disk(blocks),
            Scroll::NextMatch(forward) => self.view.next_match(forward),
            Scroll::EndSearch => self.view.end_search(),
        }
        self.dirty = Dirty::Now;
    }

    /// Shows the inside of the last of these subagents. The views on the way there keep their places.
    fn look_within(&mut self, way: &[BlockId]) {
        let inside = way.last().copied();
        if self.view.within() == inside {
            return;
        }
        let known = self.around.iter().position(|view| view.within() == inside);
        let mut next = match (known, inside) {
            (Some(at), _) => self.around.remove(at),
            (None, Some(block)) => TranscriptView::of_inside(block),
            (None, None) => TranscriptView::new(),
        };
        self.view.hand_over(&mut next);
        if known.is_none() {
            next.expand_all(self.expanded);
        }
        self.around.push(std::mem::replace(&mut self.view, next));
        self.around.retain(|view| view.within().is_none_or(|block| way.contains(&block)));
    }

    /// Long texts of the conversation that begins now go to files of their own.
    fn begin_spills(&mut self) {
        self.conversations += 1;
        self.spills = SpillStore::new(spill_dir(&self.state_dir, self.conversations));
        self.model.transcript.keep_spills();
        let reader = self.spills.reader();
        self.view.set_spill_reader(move |key| reader.read(key));
    }

    fn draw(&mut self) -> io::Result<()> {
        self.model.now_ms = self.model.now_ms.max(ms_since(self.began, Instant::now()));
        let drawn = view::draw(&self.model, &mut self.view, &self.theme, self.screen.buffer());
        let mut out = io::stdout().lock();
        self.screen.flush(&mut out, drawn.caret, self.synchronized)?;
        drop(out);
        self.model.composer_width = drawn.composer_width;
        self.model.body = drawn.body;
        self.drawn = drawn;
        self.dirty = Dirty::No;
        self.last_frame = Instant::now();
        if drawn.dialog_shown && self.model.asks.first().is_some_and(|a| a.drawn_ms.is_none()) {
            self.take(Msg::Drawn, Dirty::No);
        }
        let found = self.view.matches();
        if self.model.search.as_ref().is_some_and(|search| search.position != found) {
            self.take(Msg::Found(found), Dirty::Now);
        }
        if self.model.selected != self.view.selected() {
            self.take(Msg::Selected(self.view.selected()), Dirty::No);
        }
        if let Some(sought) = drawn.sought {
            self.take(Msg::PageSought(sought), Dirty::No);
        }
        self.set_title()
    }

    /// The window's title, written only when it changes.
    fn set_title(&mut self) -> io::Result<()> {
        let session = &self.model.session.title;
        let name = if session.is_empty() {
            self.model.start.cwd.file_name().unwrap_or_default().to_string_lossy().into_owned()
        } else {
            session.clone()
        };
        let mark = if !self.model.asks.is_empty() {
            "? "
        } else if self.model.turn.since_ms().is_some() {
            "* "
        } else {
            ""
        };
        let text: String = format!("{mark}{name} - zcode-acp")
            .chars()
            .filter(|c| !c.is_control())
            .take(120)
            .collect();
        if text == self.title {
            return Ok(());
        }
        self.title = text;
        let mut out = io::stdout().lock();
        write!(out, "\x1b]2;{}\x07", self.title)?;
        out.flush()
    }

    fn replied(&mut self, reply: &Reply) {
        match reply {
            Reply::KittyKeyboard => {
                if let Err(error) = self.guard.use_keyboard_protocol() {
                    tracing::debug!(%error, "the keyboard protocol was not set");
                }
            }
            Reply::Mode { mode: SYNCHRONIZED_OUTPUT, state: 1 | 2 } => self.synchronized = true,
            Reply::Background(red, green, blue) => {
                let background = traits::background_of(*red, *green, *blue);
                if background != self.theme.spec.background && !self.fixed_background {
                    let links = self.theme.links.take();
                    let theme = Theme::new(ThemeSpec { background, ..self.theme.spec });
                    self.theme = Theme { links, ..theme };
                    self.dirty = Dirty::Now;
                }
            }
            Reply::Mode { .. } | Reply::DeviceAttributes => {}
        }
    }

    fn resized(&mut self) {
        let (columns, rows) = guard::size();
        if (columns, rows) != self.model.size {
            self.screen.reset(columns, rows);
            self.take(Msg::Resized(columns, rows), Dirty::Now);
        }
    }

    fn redraw(&mut self) {
        let (columns, rows) = guard::size();
        self.screen.reset(columns, rows);
        self.dirty = Dirty::Now;
    }

    fn hangup(&mut self) {
        self.exit = Some(Exit::Hangup);
        self.take(Msg::Hangup, Dirty::No);
    }

    /// Leaves the terminal to the shell, stops the whole process group, and comes back on `fg`.
    fn suspend(&mut self) -> io::Result<()> {
        if self.editing.is_some() {
            // The editor has the terminal, and is stopped with us.
            rustix::process::kill_current_process_group(rustix::process::Signal::STOP)?;
            return Ok(());
        }
        if let Some(reader) = self.reader.take() {
            reader.stop();
        }
        self.guard.suspend();
        // The group, not only this process: a wrapper that started us must stop with us.
        rustix::process::kill_current_process_group(rustix::process::Signal::STOP)?;
        self.take_back()
    }

    /// Told only when the window is not looked at: OSC 9 where it is known, and the bell.
    fn notify(text: &str) {
        let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
        let mut out = io::stdout().lock();
        let written = write!(out, "\x1b]9;zcode-acp: {text}\x07\x07").and_then(|()| out.flush());
        if let Err(error) = written {
            tracing::debug!(%error, "the notification was not written");
        }
    }

    /// Starts copying; what came of it is told when it is known.
    fn copy(&mut self, what: CopyWhat, to_file: bool) {
        let chunks = match what {
            CopyWhat::Page => self.page_text(),
            CopyWhat::Marked if self.view.has_selection() => self
                .view
                .selected_text(&self.model.transcript, &self.theme)
                .map(|text| vec![Chunk::Text(text)]),
            CopyWhat::Marked => source::marked(&self.model.transcript, self.model.selected),
            CopyWhat::Code => source::code(&self.model.transcript, self.model.selected),
            CopyWhat::Turn => source::turn_of(&self.model.transcript, self.model.selected),
        };
        match chunks {
            Some(chunks) => self.jobs.copy(chunks, self.spills.reader(), to_file),
            None => self.report("nothing to copy here yet"),
        }
    }

    /// The source of what the page shows.
    fn page_text(&self) -> Option<Vec<Chunk>> {
        let Some(Overlay::Page(page)) = &self.model.overlay else { return None };
        match &page.content {
            PageContent::Help => None,
            PageContent::Markdown(text) => Some(vec![Chunk::Text(text.clone())]),
            PageContent::Text(text) => Some(vec![Chunk::Text(text.to_string())]),
            PageContent::Block(id) => source::chunks_of_block(&self.model.transcript, *id),
        }
    }

    fn export(&mut self, path: &str) {
        let chunks = source::of_conversation(&self.model.transcript);
        if chunks.is_empty() {
            self.report("nothing to export yet");
            return;
        }
        let target = (!path.is_empty()).then(|| self.model.start.cwd.join(path));
        self.jobs.export(chunks, self.spills.reader(), target);
    }

    /// Looks for a text in what lies on disk, beside the loop.
    fn search_disk(&mut self, needle: &str) {
        let transcript = &self.model.transcript;
        let texts = transcript.blocks().iter().flat_map(|block| {
            let spilled = source::spilled_of_block(transcript, block.id);
            spilled.into_iter().map(|(key, held)| (block.id, key, held))
        });
        self.jobs.search(needle, texts.collect(), self.spills.reader());
    }

    /// Hands the terminal to the user's editor. The agent's side goes on meanwhile.
    fn edit(&mut self, text: &str, is_draft: bool) {
        if self.editing.is_some() {
            return;
        }
        let file = match editor::write(&self.state_dir.join("tui"), text) {
            Ok(file) => file,
            Err(error) => return self.report(&format!("the text could not be written: {error}")),
        };
        if let Some(reader) = self.reader.take() {
            reader.stop();
        }
        self.guard.suspend();
        match editor::start(&self.editor, &file) {
            Ok(child) => self.editing = Some(Editing { child, file, is_draft }),
            Err(error) => {
                std::fs::remove_file(&file).ok();
                if let Err(error) = self.take_back() {
                    tracing::error!(%error, "the terminal could not be taken back");
                }
                self.report(&format!("{} could not be started: {error}", self.editor));
            }
        }
    }

    /// The editor has ended.
    fn edited(&mut self, status: io::Result<std::process::ExitStatus>) -> io::Result<()> {
        let Some(editing) = self.editing.take() else { return Ok(()) };
        self.take_back()?;
        let text = std::fs::read_to_string(&editing.file);
        std::fs::remove_file(&editing.file).ok();
        match (status, text) {
            (Ok(status), Ok(text)) if status.success() => {
                if editing.is_draft {
                    self.carry(Msg::Edited(text), Dirty::Now);
                }
            }
            (Ok(status), Ok(_)) => {
                self.report(&format!("the editor ended with {status}: nothing is changed"));
            }
            (Err(error), _) | (_, Err(error)) => {
                self.report(&format!("the edited text could not be read: {error}"));
            }
        }
        Ok(())
    }

    /// Takes the terminal again after a program had it.
    fn take_back(&mut self) -> io::Result<()> {
        let modes = self.guard.resume()?;
        self.screen.send_ahead(&modes);
        self.synchronized = false;
        if let Some(input) = &self.input {
            self.reader = Some(Reader::start(input.clone())?);
        }
        self.redraw();
        self.resized();
        Ok(())
    }
}

/// The editor that has the terminal.
struct Editing {
    child: tokio::process::Child,
    file: PathBuf,
    is_draft: bool,
}

/// Waits for the editor; for ever when there is none.
async fn wait(editing: &mut Option<Editing>) -> io::Result<std::process::ExitStatus> {
    match editing {
        Some(editing) => editing.child.wait().await,
        None => std::future::pending().await,
    }
}

/// Where the long texts of this run's `n`th conversation are kept.
fn spill_dir(state_dir: &std::path::Path, n: u32) -> PathBuf {
    state_dir.join("tui").join(format!("spill-{}-{n}", std::process::id()))
}

fn ms_since(began: Instant, at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(began).as_millis()).unwrap_or(u64::MAX)
}
