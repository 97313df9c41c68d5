use super::*;

fn tmux(change: impl FnOnce(&mut Tmux)) -> Surroundings {
    let mut tmux = Tmux {
        hands_over: true,
        client: Some(Client { name: "/dev/pts/3".to_owned(), takes: true, is_local: false }),
        ..Tmux::default()
    };
    change(&mut tmux);
    Surroundings { multiplexer: Multiplexer::Tmux(tmux), ..Surroundings::default() }
}

fn here(tools: &[Tool]) -> Surroundings {
    Surroundings { tools: tools.to_vec(), ..Surroundings::default() }
}

const FILE: Step = Step::File;
const PLAIN: Step = Step::Osc52(Wrap::Plain);

fn buffer() -> Step {
    Step::TmuxBuffer(Some("/dev/pts/3".to_owned()))
}

#[test]
fn the_way_follows_the_surroundings() {
    let remote = Surroundings { remote: true, ..here(&[Tool::Pbcopy]) };
    let alone = Step::TmuxBuffer(None);
    let table: Vec<(&str, Surroundings, Plan)> = vec![
        (
            "a Mac on its desk",
            here(&[Tool::Pbcopy]),
            vec![vec![Step::Native(Tool::Pbcopy)], vec![PLAIN], vec![FILE]],
        ),
        (
            "Apple's terminal without pbcopy",
            Surroundings { deaf: true, ..here(&[]) },
            vec![vec![FILE]],
        ),
        ("no tool here", here(&[]), vec![vec![PLAIN], vec![FILE]]),
        ("over ssh the far clipboard is nobody's", remote, vec![vec![PLAIN], vec![FILE]]),
        (
            "under mosh",
            Surroundings { remote: true, mosh: true, ..here(&[]) },
            vec![vec![PLAIN, FILE], vec![FILE]],
        ),
        ("tmux, attached over ssh", tmux(|_| ()), vec![vec![buffer()], vec![FILE]]),
        (
            "tmux with set-clipboard off still hands a buffer over",
            tmux(|t| t.set_clipboard = SetClipboard::Off),
            vec![vec![buffer()], vec![FILE]],
        ),
        (
            "tmux whose client takes none, passthrough off",
            tmux(|t| t.client.as_mut().unwrap().takes = false),
            vec![vec![alone.clone()], vec![FILE]],
        ),
        (
            "tmux whose client takes none, passthrough on",
            tmux(|t| {
                t.client.as_mut().unwrap().takes = false;
                t.passthrough = true;
            }),
            vec![vec![alone.clone(), Step::Osc52(Wrap::Tmux)], vec![FILE]],
        ),
        (
            "old tmux, set-clipboard on and no passthrough: plain",
            tmux(|t| {
                t.hands_over = false;
                t.set_clipboard = SetClipboard::On;
            }),
            vec![vec![alone.clone(), PLAIN], vec![FILE]],
        ),
        (
            "old tmux with set-clipboard external drops what we send",
            tmux(|t| t.hands_over = false),
            vec![vec![alone.clone()], vec![FILE]],
        ),
        ("tmux that nobody looks at", tmux(|t| t.client = None), vec![vec![alone], vec![FILE]]),
        (
            "a tmux that cannot be asked",
            Surroundings { multiplexer: Multiplexer::MuteTmux, ..here(&[]) },
            vec![vec![PLAIN], vec![FILE]],
        ),
        (
            "screen over ssh",
            Surroundings { multiplexer: Multiplexer::Screen, remote: true, ..here(&[]) },
            vec![vec![Step::Osc52(Wrap::Screen)], vec![FILE]],
        ),
        (
            "a file is wished for",
            Surroundings { wish: Some(Wish::File), ..here(&[Tool::Xclip]) },
            vec![vec![FILE]],
        ),
    ];
    for (name, around, expected) in table {
        assert_eq!(plan(&around, 100), expected, "{name}");
    }
}

#[test]
fn a_local_client_of_tmux_gets_the_system_clipboard_too() {
    let mut around = tmux(|t| t.client.as_mut().unwrap().is_local = true);
    around.tools = vec![Tool::Pbcopy];
    assert_eq!(plan(&around, 10), [vec![buffer(), Step::Native(Tool::Pbcopy)], vec![FILE]]);
}

#[test]
fn what_is_too_long_for_osc_52_is_not_sent_by_it() {
    assert_eq!(plan(&here(&[]), 75_000), [vec![PLAIN], vec![FILE]]);
    assert_eq!(plan(&here(&[]), 75_001), [vec![FILE]]);
    assert_eq!(plan(&tmux(|_| ()), 10_000_000), [vec![buffer()], vec![FILE]]);
}

#[test]
fn osc_52_carries_utf8_as_base64_through_whatever_lies_between() {
    let text = "中文 한국어 ✓";
    let plain = osc52(text, Wrap::Plain);
    let payload = plain.strip_prefix("\x1b]52;c;").and_then(|p| p.strip_suffix('\x07')).unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(payload).unwrap();
    assert_eq!(bytes, text.as_bytes());
    assert_eq!(osc52("a", Wrap::Tmux), "\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\");
    let long = osc52(&"x".repeat(900), Wrap::Screen);
    let chunks: Vec<&str> = long.split("\x1b\\").filter(|c| !c.is_empty()).collect();
    assert!(chunks.len() > 4);
    let joined: String = chunks.iter().map(|c| c.strip_prefix("\x1bP").unwrap()).collect();
    assert_eq!(joined, osc52(&"x".repeat(900), Wrap::Plain));
    assert!(chunks.iter().all(|chunk| chunk.len() <= SCREEN_CHUNK + 2));
}

#[test]
fn tmux_is_understood_in_every_version() {
    for (version, expected) in
        [("3.4", true), ("3.2a", true), ("next-3.6", true), ("3.1c", false), ("2.9", false)]
    {
        assert_eq!(at_least_3_2(version), expected, "{version}");
    }
    let told = "3.5a\t/dev/ttys004\t256,clipboard,title\texternal\toff\n";
    let read = read_tmux(told, Some("SSH_CONNECTION=10.0.0.2 5 10.0.0.1 22\n"));
    let client = |is_local| Client { name: "/dev/ttys004".to_owned(), takes: true, is_local };
    assert_eq!(read.client, Some(client(false)));
    assert!(read.hands_over && !read.passthrough);
    assert_eq!(read_tmux(told, Some("-SSH_CONNECTION\n")).client, Some(client(true)));
    assert_eq!(read_tmux(told, None).client, Some(client(true)));
    assert_eq!(read_tmux("3.4\t\t\ton\tall", None).client, None);
}

#[test]
fn only_what_happened_is_told() {
    let file = Path::new("/state/copied.txt");
    let told = |done: &[Step], around: &Surroundings| tell("3 lines", done, around, file);
    let here = here(&[]);
    assert_eq!(told(&[PLAIN], &here), "3 lines sent by OSC 52 to the terminal");
    assert_eq!(told(&[FILE], &here), "3 lines taken by no clipboard: written to /state/copied.txt");
    assert_eq!(
        told(&[buffer()], &tmux(|_| ())),
        "3 lines copied to the tmux buffer and by OSC 52 to the terminal on /dev/pts/3"
    );
    let nobody = tmux(|t| t.client = None);
    assert!(told(&[Step::TmuxBuffer(None)], &nobody).ends_with("no client is attached"));
    assert_eq!(told(&[], &here), "3 lines not copied");
    assert_eq!(size_of("one"), "3 characters");
    assert_eq!(size_of("a\nb\n"), "2 lines");
}

#[test]
fn mosh_is_found_among_the_processes_above() {
    let table = "    1     0 systemd\n  10     1 /usr/bin/mosh-server\n 20  10 bash\n 30  20 zcode-acp\n 40 1 sh\n";
    assert!(mosh_above(table, 30));
    assert!(!mosh_above(table, 40));
    assert!(!mosh_above("", 30));
}

#[tokio::test]
async fn a_text_that_nothing_takes_is_in_a_private_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let clipboard = Clipboard::new(&[("TERM".into(), "dumb".into())], dir.path());
    let told = clipboard.carry_out(&Surroundings { deaf: true, ..here(&[]) }, "你好\nb").await;
    let file = dir.path().join("copied.txt");
    assert!(told.contains("taken by no clipboard"), "{told}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "你好\nb");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_program_that_fails_is_told_and_the_next_way_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let clipboard = Clipboard::new(&[], dir.path());
    let around = Surroundings { wish: Some(Wish::Native), ..here(&[Tool::Xsel]) };
    let told = clipboard.carry_out(&around, "text").await;
    // Whether or not xsel is installed, it cannot reach a display here.
    assert!(told.contains("written to") && told.contains("xsel: "), "{told}");
}
