//! Every kind of block in every state, folded and unfolded, at the sizes people have. One table
//! says what there is; a snapshot per kind and size shows it page by page.

use super::*;
use crate::tui::model::transcript::block::{Notice, Severity};
use crate::tui::model::transcript::tool::Location;
use crate::tui::view::width::cell_width;

const SIZES: [(u16, u16); 4] = [(40, 12), (80, 24), (120, 40), (200, 60)];

/// A kind of block, and what puts it into a conversation in each of its states.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) fill: fn(&mut Transcript),
}

const KINDS: &[Kind] = &[
    Kind { name: "prompt", fill: prompts },
    Kind { name: "answer", fill: |t| answer(t, true) },
    Kind { name: "answer_streaming", fill: |t| answer(t, false) },
    Kind { name: "thought", fill: |t| thought(t, true) },
    Kind { name: "thought_streaming", fill: |t| thought(t, false) },
    Kind { name: "tool_read", fill: |t| tools(t, ToolKind::Read) },
    Kind { name: "tool_edit", fill: |t| tools(t, ToolKind::Edit) },
    Kind { name: "tool_delete", fill: |t| tools(t, ToolKind::Delete) },
    Kind { name: "tool_move", fill: |t| tools(t, ToolKind::Move) },
    Kind { name: "tool_search", fill: |t| tools(t, ToolKind::Search) },
    Kind { name: "tool_execute", fill: |t| tools(t, ToolKind::Execute) },
    Kind { name: "tool_think", fill: |t| tools(t, ToolKind::Think) },
    Kind { name: "tool_fetch", fill: |t| tools(t, ToolKind::Fetch) },
    Kind { name: "tool_mode", fill: |t| tools(t, ToolKind::SwitchMode) },
    Kind { name: "tool_other", fill: |t| tools(t, ToolKind::Other) },
    Kind { name: "diff", fill: diffs },
    Kind { name: "terminal", fill: terminal },
    Kind { name: "plan", fill: plans },
    Kind { name: "subagents", fill: subagents },
    Kind { name: "notice", fill: notices },
    Kind { name: "turn_end", fill: turn_ends },
    Kind { name: "unknown", fill: unknown },
];

fn unknown(t: &mut Transcript) {
    t.unknown("quantum_update", "{\n  \"a\": [1, 2],\n  \"b\": null\n}".to_owned(), 0);
}

fn prompts(t: &mut Transcript) {
    t.begin_turn("Fix the build, 请 ✅", vec![], 0);
    t.begin_turn(
        "Look at this:\n\n\tfn main() {}\n\nand tell me why it fails on a machine that has neither of them",
        vec!["image png 12 KB".to_owned(), "src/main.rs".to_owned()],
        0,
    );
    t.begin_turn("", vec!["image png 3 KB".to_owned()], 0);
    let long: Vec<String> = (1..=30).map(|n| format!("line {n} of a pasted log")).collect();
    t.begin_turn(&long.join("\n"), vec![], 0);
}

fn answer(t: &mut Transcript, settled: bool) {
    let text = "# Findings\n\nThe **build** fails since `serde` is missing; see [the guide](https://a.example/guide) \
        and https://b.example/x.\n\n1. add it\n2. run *all* tests\n   - unit\n   - [x] end to end\n\n> [!WARNING]\n> This \
        takes a while.\n\n```rust\nfn main() {\n    let name = \"中文\"; // a comment that is longer than a phone is wide\n}\n```\n\n\
        | crate | 版本 | note |\n|---|--:|---|\n| serde | 1.0 | derive, for everything that is stored |\n| tokio | 1.40 | 🚀 |\n\n---\n\nDone";
    let text = if settled { text.to_owned() } else { format!("{text}.\n\n```sh\ncargo te") };
    say(t, Role::Assistant, &text, 0);
    if settled {
        t.settle(1_000);
    }
}

fn thought(t: &mut Transcript, settled: bool) {
    say(t, Role::Thought, "First I look at the build.\nThen I read what it says, ", 0);
    say(t, Role::Thought, "which may take a while.\n\n- one\n- two, 中文 too", 63_000);
    if settled {
        t.settle(63_000);
        say(t, Role::Thought, "Short.", 64_000);
        t.settle(64_300);
    }
}

/// What a call of each kind is titled, takes and gives.
fn sample(kind: ToolKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        ToolKind::Read => (
            "Read src/main.rs",
            "{\n  \"path\": \"src/main.rs\"\n}",
            "fn main() {\n    run();\n}\n",
        ),
        ToolKind::Edit => ("Edit src/main.rs", "", ""),
        ToolKind::Delete => ("Delete target/old.txt", "", "deleted\n"),
        ToolKind::Move => ("Move a.rs to b.rs", "", "moved\n"),
        ToolKind::Search => (
            "Grep \"main\" in src",
            "{\n  \"pattern\": \"main\"\n}",
            "src/main.rs:1\nsrc/lib.rs:40\n",
        ),
        ToolKind::Execute => (
            "cargo test --all-features -- --nocapture",
            "",
            "   Compiling demo v0.1.0\n\u{1b}[1;32mtest\u{1b}[0m one ... \u{1b}[32mok\u{1b}[0m\ntest two ... ok\n\
             10%\r50%\r100%\ntest 三 ... ok\ntest four ... ok\ntest five ... ok\n\u{1b}[31merror\u{1b}[0m: it broke\n",
        ),
        ToolKind::Think => ("Consider the options", "", "Either will do.\n"),
        ToolKind::Fetch => ("Fetch https://a.example/docs", "", "<html>\n"),
        ToolKind::SwitchMode => ("Switch to Build", "", ""),
        ToolKind::Other => (
            "mcp: list_issues",
            "{\n  \"state\": \"open\",\n  \"first\": 20\n}",
            "[{\"id\": 1}, {\"id\": 2}]\n",
        ),
    }
}

fn tools(t: &mut Transcript, kind: ToolKind) {
    use ToolStatus::{Cancelled, Completed, Failed, Pending, Running};
    let (title, input, output) = sample(kind);
    for status in [Pending, Running, Completed, Failed, Cancelled] {
        t.tool(&format!("{status:?}"), None, 10_000, |card, spills| {
            card.placeholder = false;
            title.clone_into(&mut card.title);
            card.kind = kind;
            card.status = status;
            card.started_ms = 10_000;
            if status.is_final() {
                card.ended_ms = Some(14_200);
            }
            if kind == ToolKind::Execute {
                card.command = Some(title.to_owned());
            }
            card.input.append(input, spills);
            if matches!(kind, ToolKind::Read | ToolKind::Edit | ToolKind::Delete) {
                card.locations = vec![Location { path: "src/main.rs".to_owned(), line: Some(3) }];
            }
            if status == Failed {
                card.error = Some("permission denied: the file is read-only".to_owned());
                if kind == ToolKind::Execute {
                    card.exit = Some(Exit { code: Some(101), signal: None });
                }
            }
            if status == Pending || output.is_empty() {
                return;
            }
            let mut body = Body::with_cap(OUTPUT_CAP);
            body.append(output, spills);
            card.parts = vec![ToolPart::Text(body)];
        });
    }
}

fn diffs(t: &mut Transcript) {
    let old: String = (1..=40).map(|n| format!("    let value_{n} = {n};\n")).collect();
    let new = old
        .replace("value_10 = 10;", "value_10 = compute(10); // 变")
        .replace("    let value_30 = 30;\n", "");
    edit(t, "small", Some("fn main() {\n\trun();\n}\n"), "fn main() {\n\tstart(1);\n}\n", 0);
    edit(t, "hunks", Some(&old), &new, 0);
    edit(t, "created", None, "//! New.\n\nfn one() {}\n", 0);
    let gone = format!("{}\n", "word ".repeat(50));
    edit(t, "emptied", Some(&gone), "", 0);
}

fn terminal(t: &mut Transcript) {
    let lines: String = (1..=40).map(|n| format!("line {n}\n")).collect();
    t.terminal_output("long", &lines);
    t.terminal_output(
        "progress",
        "fetching\n 10%\r 50%\r\u{1b}[32m100%\u{1b}[0m done\n\u{1b}[2J\u{1b}]0;x\u{7}quiet\n",
    );
    t.terminal_output("wide", &format!("{}end of a long line\n", "x中".repeat(120)));
    for (n, id) in ["long", "progress", "wide"].into_iter().enumerate() {
        t.tool(id, None, n as u64, |card, _| {
            card.placeholder = false;
            card.title = format!("./run {id}");
            card.command = Some(format!("./run {id}"));
            card.kind = ToolKind::Execute;
            card.status = if n == 1 { ToolStatus::Running } else { ToolStatus::Completed };
            card.parts = vec![ToolPart::Terminal(id.to_owned())];
        });
    }
}

fn plans(t: &mut Transcript) {
    let mut steps = vec![
        step("Find the cause", StepStatus::Completed),
        step(
            "Repair what is broken in the module that reads the configuration of 模型",
            StepStatus::InProgress,
        ),
        step("Run the tests", StepStatus::Pending),
    ];
    steps[2].priority = Priority::High;
    t.set_plan(Plan { id: "a".into(), entries: steps, ..Plan::default() }, 0);
    let markdown = Some("## Steps\n\n1. look\n2. act\n".to_owned());
    t.set_plan(Plan { id: "b".into(), markdown, ..Plan::default() }, 0);
    let gone = vec![step("Never mind", StepStatus::Pending)];
    t.set_plan(Plan { id: "c".into(), entries: gone, removed: true, ..Plan::default() }, 0);
}

fn subagents(t: &mut Transcript) {
    let agent =
        Call { id: "task", title: "Explore the tests", kind: ToolKind::Think, ..Call::default() };
    let agent = call(t, &agent, 1_000);
    for n in 0..6 {
        let status = if n == 5 { ToolStatus::Running } else { ToolStatus::Completed };
        let title = format!("Read file {n}");
        let id = format!("child{n}");
        let child = Call {
            id: &id,
            parent: Some(agent),
            title: &title,
            kind: ToolKind::Read,
            status,
            output: "x\n",
        };
        call(t, &child, 2_000);
    }
    let child = |t: &mut Transcript, id: &str, failure: Option<&str>, running: bool| {
        let block = t.subagent(id, None, 3_000, |agent| {
            agent.title = format!("{id}: 检查 the docs");
            agent.description = "Reads every page and reports what is out of date.".to_owned();
            agent.running = running;
            agent.failure = failure.map(str::to_owned);
        });
        let piece = Piece {
            role: Role::Assistant,
            parent: Some(block),
            message_id: None,
            text: "I found **two** pages.",
        };
        t.append(piece, 4_000);
    };
    child(t, "works", None, true);
    child(t, "done", None, false);
    child(t, "failed", Some("the model refused: context is full"), false);
}

fn notices(t: &mut Transcript) {
    t.info("context compacted: 120k → 30k tokens", 0);
    let notice = Notice {
        severity: Severity::Warning,
        title: "the MCP server files did not start".to_owned(),
        detail: "exit 1\nnpm ERR! not found\n".to_owned(),
        hint: Some("see `doctor`".to_owned()),
        running: false,
    };
    t.notice(None, notice.clone(), 0);
    let long = (1..=12).map(|n| format!("frame {n}\n")).collect();
    let error = Notice {
        severity: Severity::Error,
        title: "the agent died".to_owned(),
        detail: long,
        hint: Some("start it again with /restart".to_owned()),
        running: false,
    };
    t.notice(None, error, 0);
    let running = Notice {
        severity: Severity::Info,
        title: "compacting the context".to_owned(),
        detail: String::new(),
        hint: None,
        running: true,
    };
    t.notice(Some("compact"), running, 0);
}

fn turn_ends(t: &mut Transcript) {
    for (n, (reason, tokens)) in [
        (None, Some(1_234_567)),
        (None, None),
        (Some("cancelled"), Some(900)),
        (Some("token limit: the answer is cut off"), None),
    ]
    .into_iter()
    .enumerate()
    {
        let now = n as u64 * 100_000;
        t.begin_turn("go", vec![], now);
        t.end_turn(reason.map(str::to_owned), tokens, now + 850 + n as u64 * 33_000);
    }
}

/// The whole conversation, page by page.
fn pages(screen: &mut Screen, t: &Transcript) -> String {
    screen.view.to_top();
    let mut out = vec![screen.draw(t)];
    loop {
        screen.view.page(1);
        let page = screen.draw(t);
        if out.last() == Some(&page) {
            break;
        }
        out.push(page);
    }
    // The beginning and the end of what is very long tell enough.
    if out.len() > 8 {
        out.splice(4..out.len() - 3, ["(more pages)".to_owned()]);
    }
    let pages: Vec<&str> = out.iter().map(|page| page.trim_end()).collect();
    pages.join("\n~~~~ next page\n")
}

#[test]
fn every_kind_of_block_in_every_state_at_every_size() {
    for kind in KINDS {
        show(kind);
    }
}

/// The blocks of a kind at every size, folded and unfolded.
pub(super) fn show(kind: &Kind) {
    let mut t = Transcript::new();
    (kind.fill)(&mut t);
    for (width, height) in SIZES {
        let mut screen = Screen::new(width, height);
        let folded = pages(&mut screen, &t);
        screen.view.expand_all(true);
        let unfolded = pages(&mut screen, &t);
        let text = if folded == unfolded {
            folded
        } else {
            format!("{folded}\n\n==== unfolded\n{unfolded}")
        };
        for row in text.lines() {
            assert!(cell_width(row) <= usize::from(width), "{} {width}: {row:?}", kind.name);
        }
        insta::assert_snapshot!(format!("{}_{width}x{height}", kind.name), text);
    }
}

#[test]
fn what_is_asked_is_put_on_paper_once_and_never_an_older_question() {
    let theme = Theme::default();
    let mut view = TranscriptView::new();
    let mut written = 0;
    let ask = |view: &mut TranscriptView, text: &str, width: usize, written: &mut usize| {
        let body = [BodyPart::Command(text.to_owned())];
        let (paper, _) = view.asked(&body, width, &theme, |paper, _| {
            *written += 1;
            paper.add(vec![Line::raw(text.to_owned())]);
        });
        let mut code = Highlighter::off();
        paper.rows(0..1, &theme, &mut code).next().map(ToString::to_string)
    };
    for _ in 0..5 {
        assert_eq!(ask(&mut view, "ls", 40, &mut written).as_deref(), Some("ls"));
    }
    assert_eq!(written, 1);
    assert_eq!(ask(&mut view, "rm", 40, &mut written).as_deref(), Some("rm"));
    assert_eq!(ask(&mut view, "rm", 60, &mut written).as_deref(), Some("rm"));
    assert_eq!(written, 3);
}
