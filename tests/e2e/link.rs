//! What links do to the chat: pastes whose brackets are lost, a multiplexer that lets go and takes up
//! again at another size, a terminal that is gone.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::terminal::{Terminal, say};
use crate::world::{BINARY, World};

const DEMO: &[&str] = &["tui", "--demo", "--demo-pace", "0"];

/// How long a test waits for what no bytes announce.
const PATIENCE: Duration = Duration::from_secs(20);

/// The draft as it is on disk, with what its chips stand for.
fn stored_draft(world: &World) -> Option<String> {
    let dirs = std::fs::read_dir(world.state().join("tui")).ok()?;
    let mut files = dirs.flatten().map(|dir| dir.path().join("draft.json"));
    let text = files.find_map(|file| std::fs::read_to_string(file).ok())?;
    let draft: Value = serde_json::from_str(&text).ok()?;
    let chips = draft["chips"].as_array().cloned().unwrap_or_default();
    let expand = |text: String, chip: &Value| {
        text.replacen(chip["label"].as_str().unwrap(), chip["content"].as_str().unwrap(), 1)
    };
    Some(chips.iter().fold(draft["text"].as_str()?.to_owned(), expand))
}

/// Waits until the draft on disk is this one.
fn wait_stored(world: &World, t: &mut Terminal<'_>, wanted: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let stored = stored_draft(world);
        if stored.as_deref() == Some(wanted) {
            return;
        }
        let at = stored
            .as_deref()
            .map(|stored| stored.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count());
        let len = stored.map(|stored| stored.len());
        assert!(Instant::now() < deadline, "{len:?} of {} bytes, alike up to {at:?}", wanted.len());
        t.settle(Duration::from_millis(20));
    }
}

#[test]
fn a_megabyte_pasted_without_brackets_is_a_draft_and_nothing_is_sent_or_lost() {
    let world = World::new();
    let mut t = Terminal::start(&world, DEMO, 80, 24);
    t.wait_for("ask for something");
    let lines = (0..20_000).map(|n| format!("{n:06} a line of a paste, 一行文字, that goes on\n"));
    let paste: String = lines.collect();
    assert!(paste.len() > 1_000_000, "{}", paste.len());
    // What ends its lines is no Enter: wherever the system cuts the stream, no line is a prompt.
    t.keys(&paste);
    t.wait_until("a screen with the paste in it", |screen| screen.contains("[pasted #1"));
    wait_stored(&world, &mut t, &paste);
    t.keys("the end");
    t.wait_for("the end");
    assert!(t.shows("GLM") || t.shows("Sim"), "the rest of the screen is there:\n{}", t.screen());
    wait_stored(&world, &mut t, &format!("{paste}the end"));
    assert!(!t.shows("tokens"), "nothing was sent:\n{}", t.screen());
    t.signal(rustix::process::Signal::TERM);
    t.wait_exit();
    t.assert_restored();
}

#[test]
fn a_terminal_that_is_gone_keeps_the_draft_and_leaves_nothing_running() {
    let world = World::new();
    let mut t = Terminal::start(&world, &["tui", "--demo"], 80, 24);
    t.wait_for("ask for something");
    say(&mut t, "long");
    t.wait_for("Step 1");
    t.keys("half a thought 你好");
    t.wait_for("half a thought");
    // Nobody asked for it to be kept: it is written because the terminal is lost.
    t.hang_up();
    world.assert_no_orphans();
    let mut t = Terminal::start(&world, DEMO, 100, 30);
    t.wait_for("half a thought 你好");
    t.signal(rustix::process::Signal::TERM);
    t.wait_exit();
}

/// The rows of a screen without the blanks at their ends.
fn rows(screen: &str) -> Vec<String> {
    let rows: Vec<String> = screen.lines().map(|row| row.trim_end().to_owned()).collect();
    let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |at| at + 1);
    rows[..used].to_vec()
}

/// A tmux server of its own.
struct Multiplexer<'a> {
    world: &'a World,
}

impl Multiplexer<'_> {
    #[expect(clippy::disallowed_methods, reason = "tests start tmux as a person would")]
    fn run(&self, args: &[&str]) -> Option<String> {
        let mut command = Command::new("tmux");
        command.args(["-u", "-L", "link", "-f", "/dev/null"]).args(args);
        command.env_clear().envs(self.world.env.iter().cloned());
        let output = command.env("TMUX_TMPDIR", self.world.home()).current_dir(self.world.cwd());
        output.output().ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn attach(&self, columns: u16, rows: u16) -> Terminal<'_> {
        let args = ["-u", "-L", "link", "-f", "/dev/null", "attach-session", "-t", "chat"];
        Terminal::start_program(self.world, "tmux", &args, columns, rows)
    }

    /// Lets go of the terminal. Its keys could be taken for a paste, since no hands type them.
    fn detach(&self) {
        self.run(&["detach-client", "-s", "chat"]).unwrap();
    }

    /// Waits until the client's screen is what the server holds, but for its status row.
    fn wait_true(&self, client: &mut Terminal<'_>) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let held = rows(&self.run(&["capture-pane", "-p", "-t", "chat"]).unwrap());
            let shown = rows(&client.screen());
            if !held.is_empty() && shown.len() >= held.len() && shown[..held.len()] == held[..] {
                return;
            }
            assert!(Instant::now() < deadline, "held:\n{held:#?}\nshown:\n{shown:#?}");
            client.settle(Duration::from_millis(20));
        }
    }
}

impl Drop for Multiplexer<'_> {
    fn drop(&mut self) {
        drop(self.run(&["kill-server"]));
    }
}

#[test]
fn a_stream_that_is_detached_from_and_attached_to_at_another_size_is_drawn_true_and_once() {
    let mut world = World::new();
    world.set("TMUX_TMPDIR", &world.home().display().to_string());
    world.set("TERM", "xterm-256color");
    world.set("LANG", "C.UTF-8");
    let tmux = Multiplexer { world: &world };
    if tmux.run(&["-V"]).is_none() {
        eprintln!("there is no tmux here to attach to");
        return;
    }
    let shell = format!("exec '{BINARY}' tui --demo --demo-pace 0.3 longtext");
    tmux.run(&["new-session", "-d", "-s", "chat", "-x", "80", "-y", "24", &shell]).unwrap();
    let mut first = tmux.attach(80, 24);
    first.wait_for("Chapter 2");
    tmux.detach();
    first.wait_exit();
    // It goes on alone; who comes back has a wider window.
    let mut second = tmux.attach(120, 40);
    second.wait_for("Chapter");
    tmux.detach();
    second.wait_exit();
    let mut third = tmux.attach(60, 20);
    third.wait_for("tokens");
    third.wait_for("ask for something");
    tmux.wait_true(&mut third);
    // Every chapter is there once, in order, at the size that it ended at.
    third.keys("\x1b[1;5H");
    third.wait_for("Chapter 1.");
    let mut seen: Vec<u32> = Vec::new();
    for _ in 0..40 {
        tmux.wait_true(&mut third);
        let numbers = rows(&third.screen())
            .iter()
            .filter_map(|row| {
                let rest = row.trim_start_matches(['●', ' ']).strip_prefix("Chapter ")?;
                rest.split_once('.')?.0.parse().ok()
            })
            .collect::<Vec<u32>>();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}\n{}", third.screen());
        seen.extend(numbers.into_iter().filter(|n| !seen.contains(n)).collect::<Vec<u32>>());
        if third.shows("tokens") {
            break;
        }
        let before = third.screen();
        third.keys("\x1b[6~");
        third.wait_until("another page", |screen| screen != before);
    }
    assert_eq!(seen, (1..=30).collect::<Vec<u32>>());
}
