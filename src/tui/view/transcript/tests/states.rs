//! The states that blocks rarely have: odd titles, broken markdown, endings by signal, what is too
//! long. Shown like [`super::kinds`], page by page.

use super::kinds::{Kind, show};
use super::*;
use crate::tui::model::transcript::block::{Notice, Severity};

const STATES: &[Kind] = &[
    Kind { name: "markdown_marks", fill: marks },
    Kind { name: "markdown_tables", fill: tables },
    Kind { name: "markdown_cut", fill: cut },
    Kind { name: "prompt_odd", fill: odd_prompts },
    Kind { name: "tool_titles", fill: titles },
    Kind { name: "tool_parts", fill: parts },
    Kind { name: "tool_output", fill: outputs },
    Kind { name: "diff_odd", fill: odd_diffs },
    Kind { name: "terminal_ends", fill: terminal_ends },
    Kind { name: "background", fill: in_the_background },
    Kind { name: "plan_ends", fill: plan_ends },
    Kind { name: "subagent_odd", fill: odd_subagents },
    Kind { name: "notice_long", fill: long_notices },
    Kind { name: "thought_long", fill: long_thoughts },
    Kind { name: "unknown_long", fill: long_unknown },
    Kind { name: "turn_end_long", fill: long_turn_ends },
];

fn marks(t: &mut Transcript) {
    let text = "# One\n## Two\n### Three 三\n#### Four\n\nA line  \nbroken by hand, ~~gone~~, `code with ` ticks`, \
        ***both***, \\*not\\*, a<br>tag, H~2~O, x^2^, $a_b$ and &amp; ⚠️ ❤️ 👩‍🔬 🇩🇪.\n\n- one\n  - two\n    - three, which is long \
        enough to be wrapped on a phone\n      1. deep\n\n9. nine\n10. ten\n11. eleven\n\n> quoted\n> > twice 引用\n>\n> - in it\n\n    \
        indented code\n\n```\nno language\n```\n\n~~~~python\nprint(\"中\")\n~~~~\n\n![a picture](https://a.example/p.png) \
        [titled](https://a.example \"t\") <https://b.example>\n\nA note[^1].\n\n[^1]: the foot\n\n<details>\n<summary>More</summary>\nhidden\n</details>\n\n\
        https://a.example/a/very/long/way/that/has/no/blank/in/it/and/goes/on/and/on/until/it/is/longer/than/any/phone.html?q=1\n\n***\n\nTerm\n: what it means\n";
    say(t, Role::Assistant, text, 0);
    t.settle(1_000);
}

fn tables(t: &mut Transcript) {
    let text = "| left | centre | right | 中文 | a column with a long name |\n|:---|:---:|---:|---|---|\n\
        | a | b | 1 | 汉字很多的一个单元格 | words enough to be wrapped more than once in a narrow pane |\n\
        | `x \\| y` | **bold** | 22,000 | ⚠️ | https://a.example/long/path/without/a/blank |\n| | | | | |\n\n\
        | one |\n|---|\n| 👩‍👩‍👧‍👦 family |\n\n| a | b |\n|---|---|\n| short row |\n| one | two | three |\n";
    say(t, Role::Assistant, text, 0);
    t.settle(1_000);
}

fn cut(t: &mut Transcript) {
    for text in [
        "A fence that never ends:\n\n```rust\nfn main() {\n",
        "A **bold that never ends, a [link](https://a.exa",
        "| a | b |\n|---|---|\n| 1 |",
        "- a list\n  - that st",
    ] {
        say(t, Role::Assistant, text, 0);
        t.settle(1_000);
    }
}

fn odd_prompts(t: &mut Transcript) {
    t.begin_turn("", vec![], 0);
    t.begin_turn("a\u{202e}b\u{200b}c\u{1b}[2Jd\u{7}", vec![], 0);
    t.begin_turn("一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十", vec![], 0);
    t.begin_turn(
        &"nospace".repeat(30),
        vec!["a/very/long/path/".repeat(8), "模型.md".to_owned()],
        0,
    );
}

fn card(
    t: &mut Transcript,
    id: &str,
    change: impl FnOnce(&mut crate::tui::model::transcript::tool::ToolCall),
) {
    t.tool(id, None, 10_000, |card, _| {
        card.placeholder = false;
        card.status = ToolStatus::Completed;
        card.ended_ms = Some(13_000);
        change(card);
    });
}

fn titles(t: &mut Transcript) {
    let set = |title: &'static str| {
        move |card: &mut crate::tui::model::transcript::tool::ToolCall| {
            title.clone_into(&mut card.title);
        }
    };
    card(
        t,
        "wide",
        set(
            "読み込み中の設定ファイルをすべて検査してから不要なものを取り除き、結果を一覧にして書き出す",
        ),
    );
    card(t, "lines", set("first line\nsecond line"));
    card(t, "hidden", set("rm \u{202e}x\u{200b}\u{1b}[31m"));
    card(t, "emoji", set("⚠️ check 👩‍🔬 ❤️"));
    card(t, "ticks", set("`ls -la`"));
    card(t, "nothing", |_| {});
    card(t, "command", |card| {
        card.kind = ToolKind::Execute;
        card.command = Some("for f in *; do\n  echo $f\ndone".to_owned());
    });
    t.tool("early", None, 10_000, |_, _| {});
    card(t, "signal", |card| {
        card.title = "./run".to_owned();
        card.kind = ToolKind::Execute;
        card.status = ToolStatus::Failed;
        card.exit = Some(Exit { code: None, signal: Some("SIGKILL".to_owned()) });
    });
    card(t, "replayed", |card| {
        card.title = "from a history".to_owned();
        card.replayed = true;
    });
}

fn parts(t: &mut Transcript) {
    let body = |text: &str, cap: usize| {
        let mut body = Body::with_cap(cap);
        body.append(text, &mut crate::tui::model::transcript::body::SpillQueue::default());
        body
    };
    card(t, "labels", |card| {
        card.title = "Screenshot".to_owned();
        card.parts = vec![
            ToolPart::Label("image/png 12 KB".to_owned()),
            ToolPart::Label(format!("resource file:///{}report.pdf", "deep/".repeat(12))),
            ToolPart::Text(body("and a text", OUTPUT_CAP)),
        ];
    });
    card(t, "fenced", |card| {
        card.title = "fenced".to_owned();
        card.parts = vec![ToolPart::Text(body("```console\n$ ls\na  b\n```\n", OUTPUT_CAP))];
    });
    card(t, "blank", |card| {
        card.title = "blank lines".to_owned();
        card.parts = vec![ToolPart::Text(body("\n\nlast but two\n\n\n", OUTPUT_CAP))];
    });
    card(t, "raw", |card| {
        card.title = "raw output".to_owned();
        card.output = body("{\n  \"ok\": true\n}", OUTPUT_CAP);
        card.input = body(&(0..60).map(|n| format!("line {n}\n")).collect::<String>(), OUTPUT_CAP);
    });
    card(t, "reason", |card| {
        card.title = "failed at length".to_owned();
        card.status = ToolStatus::Failed;
        card.error = Some((1..=9).map(|n| format!("reason {n}\n")).collect());
    });
}

fn outputs(t: &mut Transcript) {
    let line = format!(
        "{}\u{1b}[31mend\u{1b}[0m\n",
        (0..16_000).map(|n| format!("{n:>6}")).collect::<String>()
    );
    let many: String = (1..=35_000).map(|n| format!("{n}\n")).collect();
    let wrapped = format!("\u{1b}[32m{}\u{1b}[0m|\n", "g".repeat(36));
    let acts = "a\u{1b}[2J\u{1b}[H\u{1b}[?1049l\u{1b}]0;x\u{7}b\u{1b}(0c\u{8}d\tT\u{9b}31me\u{0}\u{7f}f\u{202e}g\n";
    for (id, text) in
        [("one line", line.as_str()), ("seq 35000", &many), ("wrap", &wrapped), ("acts", acts)]
    {
        let output =
            Call { id, title: id, status: ToolStatus::Completed, output: text, ..Call::default() };
        call(t, &output, 64_500);
    }
}

fn numbered(word: &str, count: usize) -> String {
    (0..count).map(|n| format!("{word}{n} ")).collect()
}

fn odd_diffs(t: &mut Transcript) {
    edit(t, "crlf", Some("a\r\nb\r\n"), "a\r\nc\r\n", 0);
    edit(t, "end", Some("a\nb"), "a\nb\n", 0);
    edit(t, "same", Some("a\n"), "a\n", 0);
    edit(t, "empty", None, "", 0);
    edit(t, "tabs", Some("\tif x:\n\t\ty()\n"), "\tif 变量:\n\t\ty(\u{202e}1)\n", 0);
    edit(t, "long", Some(&numbered("word", 300)), &numbered("other", 300), 0);
    for (id, status) in [("failed", ToolStatus::Failed), ("cancelled", ToolStatus::Cancelled)] {
        edit(t, id, Some("old\n"), "new\n", 0);
        t.tool(id, None, 0, |card, _| card.status = status);
    }
    edit(t, "huge", Some(&"x\n".repeat(1_100_000)), &"y\n".repeat(1_100_000), 0);
    edit(t, "elsewhere", Some("a\n"), "b\n", 0);
    t.tool("elsewhere", None, 0, |card, _| card.title = "apply the patch".to_owned());
}

fn terminal_ends(t: &mut Transcript) {
    for (id, output, exit) in [
        ("quiet", "", Some(Exit { code: Some(0), signal: None })),
        ("bad", "no such file\n", Some(Exit { code: Some(2), signal: None })),
        ("killed", "half a li", Some(Exit { code: None, signal: Some("SIGTERM".to_owned()) })),
        ("running", "", None),
    ] {
        t.terminal_output(id, output);
        t.tool(id, None, 62_000, |card, _| {
            card.placeholder = false;
            card.title = format!("./run {id}");
            card.kind = ToolKind::Execute;
            card.status = match &exit {
                None => ToolStatus::Running,
                Some(exit) if exit.is_success() => ToolStatus::Completed,
                Some(_) => ToolStatus::Failed,
            };
            card.parts = vec![ToolPart::Terminal(id.to_owned())];
        });
        if let Some(exit) = exit {
            t.terminal_exit(id, &exit);
        }
    }
}

fn in_the_background(t: &mut Transcript) {
    t.begin_turn("build it", vec![], 0);
    for (id, title) in [
        ("build", "cargo build --release"),
        ("构建", "构建所有的东西 --with-a-name-that-is-too-long-for-a-phone --and-more"),
        ("done", "cargo fmt"),
    ] {
        card(t, id, |card| {
            card.kind = ToolKind::Execute;
            card.title = title.to_owned();
            card.status = ToolStatus::Running;
            card.background = id != "done";
        });
    }
    t.end_turn(None, Some(1_200), 9_000);
}

fn plan_ends(t: &mut Transcript) {
    let mut low = step("A step of little weight", StepStatus::Pending);
    low.priority = Priority::Low;
    let done = vec![
        step("Find it", StepStatus::Completed),
        step("Mend it\nand test it", StepStatus::Completed),
    ];
    for (id, entries) in [("done", done), ("low", vec![low]), ("none", vec![])] {
        t.set_plan(Plan { id: id.into(), entries, ..Plan::default() }, 0);
    }
    let uri = Some("file:///home/u/plans/a-plan.md".to_owned());
    t.set_plan(Plan { id: "uri".into(), uri, ..Plan::default() }, 0);
}

fn odd_subagents(t: &mut Transcript) {
    let many =
        Call { id: "many", title: "Ask a hundred", kind: ToolKind::Think, ..Call::default() };
    let many = call(t, &many, 1_000);
    for n in 0..100 {
        let (id, title) = (format!("c{n}"), format!("child {n} 号"));
        let child = Call {
            id: &id,
            parent: Some(many),
            title: &title,
            kind: ToolKind::Search,
            ..Call::default()
        };
        call(t, &child, 2_000);
    }
    t.subagent("4f2a-untitled", None, 3_000, |agent| agent.running = true);
    t.subagent("gone", None, 3_000, |agent| {
        agent.title = "with a long reason".to_owned();
        agent.running = false;
        agent.ended_ms = Some(9_000);
        agent.failure = Some((1..=8).map(|n| format!("cause {n}: 模型 gave up\n")).collect());
    });
}

fn long_notices(t: &mut Transcript) {
    for (severity, title, detail, hint) in [
        (
            Severity::Error,
            "the model refused: 上下文窗口已满，请压缩对话后再试，或者换一个窗口更大的模型 and then go on",
            "",
            Some("type /compact, or choose another model with Alt-M and send it again"),
        ),
        (
            Severity::Warning,
            "a line\nand another \u{1b}[31m\u{202e}",
            "a detail without a line end, which is longer than a phone is wide, with https://a.example/x",
            None,
        ),
    ] {
        let notice = Notice {
            severity,
            title: title.to_owned(),
            detail: detail.to_owned(),
            hint: hint.map(str::to_owned),
            running: false,
        };
        t.notice(None, notice, 0);
    }
}

fn long_thoughts(t: &mut Transcript) {
    say(t, Role::Thought, &format!("{}\u{202e}\n", "考え中 thinking about it ".repeat(20)), 0);
    t.settle(900);
    say(t, Role::Thought, &"one line without an end ".repeat(30), 64_000);
}

fn long_unknown(t: &mut Transcript) {
    let rows: Vec<String> =
        (0..20).map(|n| format!("  \"k{n}\": \"{}\"", "value ".repeat(10).trim())).collect();
    t.unknown(
        "a_kind_of_update_with_a_name_that_is_long",
        format!("{{\n{}\n}}", rows.join(",\n")),
        0,
    );
}

fn long_turn_ends(t: &mut Transcript) {
    for (n, reason) in [
        "refused: 该请求违反了使用政策，因此没有得到处理 and more words than fit",
        "cancelled\nby hand",
    ]
    .into_iter()
    .enumerate()
    {
        t.begin_turn("go", vec![], n as u64 * 10_000_000);
        t.end_turn(Some(reason.to_owned()), Some(3), n as u64 * 10_000_000 + 7_384_000);
    }
}

#[test]
fn the_states_that_blocks_rarely_have_at_every_size() {
    for kind in STATES {
        show(kind);
    }
}

#[test]
fn a_line_cut_inside_a_colour_shows_no_part_of_its_sequence() {
    for behind in 0..12 {
        // The folded card looks at the last eight kilobytes: somewhere in a sequence.
        let line = format!("{}\u{1b}[38;5;208m{}", "a".repeat(9_000), "b".repeat(8_192 - behind));
        let mut t = Transcript::new();
        let output =
            Call { title: "x", status: ToolStatus::Completed, output: &line, ..Call::default() };
        call(&mut t, &output, 0);
        let text = Screen::new(80, 12).draw(&t);
        assert!(text.contains("bbbb"), "{behind}: {text}");
        assert!(!text.contains("208m") && !text.contains("8m"), "{behind}: {text}");
    }
}
