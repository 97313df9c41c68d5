//! Cards from engine events: table tests and properties.
#![allow(
    clippy::needless_pass_by_value,
    clippy::string_slice,
    clippy::format_collect,
    reason = "test tables read better so"
)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::tests::{bare, event, run, updates, zed};
use super::super::{CardEnd, ClientTraits, Output, Translator, Want};

fn tool(kind: &str, id: &str, extra: Value) -> (&'static str, Value) {
    let mut payload = json!({"kind": kind, "toolCallId": id});
    for (key, value) in extra.as_object().unwrap() {
        payload[key] = value.clone();
    }
    ("tool.updated", payload)
}

fn stream(kind: &str, id: &str, extra: Value) -> (&'static str, Value) {
    ("model.streaming", tool(kind, id, extra).1)
}

/// The last value of a key over a card's updates.
fn last<'a>(updates: &'a [Value], key: &str) -> &'a Value {
    updates.iter().rev().find_map(|u| u.get(key)).unwrap_or(&Value::Null)
}

fn statuses(updates: &[Value]) -> Vec<&str> {
    updates
        .iter()
        .filter_map(|u| {
            u["status"].as_str().or((u["sessionUpdate"] == "tool_call").then_some("pending"))
        })
        .collect()
}

#[test]
fn a_read_is_announced_started_and_completed() {
    let got = run(
        &mut bare(),
        &[
            tool(
                "scheduled",
                "c1",
                json!({"toolName": "Read", "input": {"file_path": "/w/src/main.rs", "offset": 3}}),
            ),
            tool("started", "c1", json!({"toolName": "Read"})),
            tool(
                "result",
                "c1",
                json!({"result": {"success": true, "content": "fn main() {"}, "duration": 12}),
            ),
        ],
    );
    assert_eq!(
        got,
        vec![
            json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Read: /w/src/main.rs", "name": "Read", "kind": "read",
            "locations": [{"path": "/w/src/main.rs", "line": 3}], "rawInput": {"file_path": "/w/src/main.rs", "offset": 3},
            "_meta": {"claudeCode": {"toolName": "Read"}}}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress",
            "_meta": {"claudeCode": {"toolName": "Read"}}}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "```\nfn main() {\n```"}}],
            "rawOutput": {"content": "fn main() {", "durationMs": 12}, "_meta": {"claudeCode": {"toolName": "Read"}}}),
        ]
    );
}

#[test]
fn a_card_is_made_at_the_first_event_of_any_kind() {
    for (first, status) in [
        (tool("started", "c1", json!({"toolName": "Glob"})), "in_progress"),
        (tool("progress", "c1", json!({"toolName": "Glob"})), "in_progress"),
        (tool("result", "c1", json!({"result": "x"})), "in_progress"),
        (tool("error", "c1", json!({"error": "x"})), "in_progress"),
        (tool("scheduled", "c1", json!({"toolName": "Glob"})), "pending"),
        (stream("tool_input_start", "c1", json!({"toolName": "Glob"})), "pending"),
        (
            stream("tool_call", "c1", json!({"toolName": "Glob", "input": {"pattern": "*"}})),
            "pending",
        ),
    ] {
        let got = run(&mut bare(), std::slice::from_ref(&first));
        assert_eq!(got[0]["sessionUpdate"], "tool_call", "{first:?}");
        assert_eq!(statuses(&got)[0], status, "{first:?}");
        assert_eq!(got.iter().filter(|u| u["sessionUpdate"] == "tool_call").count(), 1);
    }
}

#[test]
fn an_omitted_input_is_taken_from_the_model_stream() {
    let whole = [
        stream("tool_call", "c1", json!({"toolName": "Bash", "input": {"command": "make"}})),
        tool("scheduled", "c1", json!({"toolName": "Bash", "inputOmitted": true})),
    ];
    let got = run(&mut bare(), &whole);
    assert_eq!(got.len(), 1, "the schedule says nothing new");
    assert_eq!(got[0]["rawInput"], json!({"command": "make"}));

    let pieces = [
        stream("tool_input_start", "c2", json!({"toolName": "Bash"})),
        stream("tool_input_delta", "c2", json!({"delta": "{\"command\": \"ma"})),
        stream("tool_input_delta", "c2", json!({"delta": "ke\", \"x\": [1"})),
        stream("tool_input_delta", "c2", json!({"delta": "]}"})),
        tool("scheduled", "c2", json!({"toolName": "Bash", "inputOmitted": true})),
    ];
    let got = run(&mut bare(), &pieces);
    assert_eq!(got[0]["title"], "Bash");
    assert_eq!(got[1]["title"], "Bash: make", "the title is told as soon as it can be read");
    assert_eq!(last(&got, "rawInput"), &json!({"command": "make", "x": [1]}));
    assert_eq!(got.len(), 3, "pieces of input are not repeated");
}

#[test]
fn a_tool_name_that_comes_late_corrects_the_card() {
    let got = run(
        &mut bare(),
        &[
            tool("started", "c1", json!({})),
            tool("started", "c1", json!({"toolName": "Grep"})),
            tool("result", "c1", json!({"result": {"content": "a:1"}})),
        ],
    );
    assert_eq!((got[0]["title"].as_str(), &got[0]["kind"]), (Some("Tool"), &Value::Null));
    assert_eq!(
        (last(&got, "title"), last(&got, "kind"), last(&got, "name")),
        (&json!("Grep"), &json!("search"), &json!("Grep"))
    );
    assert_eq!(got.last().unwrap()["_meta"]["claudeCode"]["toolName"], "Grep");
}

#[test]
fn the_exit_code_decides_over_success() {
    for (result, status) in [
        (json!({"success": true, "content": "x", "perf": {"exitCode": 2}}), "failed"),
        (
            json!({"success": true, "content": "x", "perf": {"detail": {"command": {"exitCode": 3}}}}),
            "failed",
        ),
        (
            json!({"success": true, "content": "x", "perf": {"detail": {"command": {"status": "failed"}}}}),
            "failed",
        ),
        (json!({"success": false, "error": "x"}), "failed"),
        (json!({"success": true, "content": "Exit code 3"}), "failed"),
        (json!("Exit code 4"), "failed"),
        (json!({"success": true, "content": "Exit code 3\n"}), "completed"),
        (json!({"success": false, "content": "x", "perf": {"exitCode": 0}}), "failed"),
        (json!({"success": true, "content": "Exit code 0"}), "completed"),
        (json!({"success": true}), "completed"),
        (json!(null), "completed"),
    ] {
        let got = run(
            &mut bare(),
            &[tool("result", "c1", json!({"toolName": "Bash", "result": result}))],
        );
        assert_eq!(last(&got, "status"), status, "{result}");
    }
}

#[test]
fn an_exit_code_in_the_text_of_another_tool_is_no_failure() {
    let got = run(
        &mut bare(),
        &[tool("result", "c1", json!({"toolName": "Read", "result": {"content": "Exit code 3"}}))],
    );
    assert_eq!(last(&got, "status"), "completed");
}

#[test]
fn failures_carry_the_engines_words() {
    for (phase, words) in [
        (
            tool(
                "error",
                "c1",
                json!({"toolName": "WebFetch", "error": "getaddrinfo ENOTFOUND x"}),
            ),
            "getaddrinfo ENOTFOUND x",
        ),
        (
            tool(
                "error",
                "c1",
                json!({"toolName": "WebFetch", "error": {"message": "boom", "code": 1}}),
            ),
            "boom",
        ),
        (
            tool(
                "result",
                "c1",
                json!({"toolName": "Read", "result": {"success": false, "error": "File does not exist"}}),
            ),
            "File does not exist",
        ),
        (
            tool(
                "result",
                "c1",
                json!({"toolName": "Read", "result": {"success": false, "error": {"message": "no"}, "content": "y"}}),
            ),
            "y\nno",
        ),
    ] {
        let got = run(&mut bare(), &[phase]);
        assert_eq!(last(&got, "status"), "failed");
        assert_eq!(last(&got, "content")[0]["content"]["text"], format!("```\n{words}\n```"));
    }
}

#[test]
fn a_fence_is_longer_than_any_in_the_text() {
    let got = run(
        &mut bare(),
        &[tool(
            "result",
            "c1",
            json!({"toolName": "Read", "result": {"content": "````\nx\n````"}}),
        )],
    );
    assert_eq!(last(&got, "content")[0]["content"]["text"], "`````\n````\nx\n````\n`````");
}

#[test]
fn events_after_the_end_change_nothing() {
    let mut translator = bare();
    run(
        &mut translator,
        &[tool("result", "c1", json!({"toolName": "Read", "result": {"content": "x"}}))],
    );
    let late = run(
        &mut translator,
        &[
            tool("batch", "", json!({"toolCallIds": ["c1"], "errorCount": 1})),
            tool("started", "c1", json!({})),
            tool("error", "c1", json!({"error": "late"})),
            stream("tool_call", "c1", json!({"input": {"a": 1}})),
        ],
    );
    assert_eq!(late, Vec::<Value>::new());
}

#[test]
fn a_batch_ends_only_the_open_cards_it_names() {
    let got = run(
        &mut bare(),
        &[
            tool("started", "c1", json!({"toolName": "Read"})),
            tool("started", "c2", json!({"toolName": "Read"})),
            tool("batch", "", json!({"toolCallIds": ["c1", "unknown"], "errorCount": 0})),
        ],
    );
    assert_eq!(got.len(), 3);
    assert_eq!((&got[2]["toolCallId"], &got[2]["status"]), (&json!("c1"), &json!("completed")));
}

#[test]
fn an_edit_shows_its_diff_first_from_the_input_then_from_the_engine() {
    let input = json!({"file_path": "src/a.rs", "old_string": "old", "new_string": "new"});
    let mut translator = bare();
    let mut out = Output::default();
    for (kind, payload) in [
        tool("scheduled", "c1", json!({"toolName": "Edit", "input": input})),
        tool(
            "result",
            "c1",
            json!({"result": {"success": true, "content": "The file has been updated."}}),
        ),
    ] {
        translator.on_event(&event(kind, payload), &mut out);
    }
    assert_eq!(out.wants, [Want::EditDiff { tool_call_id: "c1".into() }]);
    let display = json!({"kind": "file_diff", "filePath": "/w/src/a.rs", "structuredPatch": [
        {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" ctx", "-old", "+new", "\\ No newline at end of file"]}]});
    translator.on_edit_display("c1", &display, &mut out);
    translator.on_edit_display("c1", &json!({"kind": "other"}), &mut out);
    translator.on_edit_display("unknown", &display, &mut out);
    let got = updates(&out);
    assert_eq!(got.len(), 3);
    assert_eq!(
        got[0]["content"],
        json!([{"type": "diff", "path": "/w/src/a.rs", "oldText": "old", "newText": "new"}])
    );
    assert_eq!(got[0]["locations"], json!([{"path": "/w/src/a.rs"}]));
    assert_eq!(got[1].get("content"), None, "the diff stays");
    assert_eq!(
        got[2]["content"],
        json!([{"type": "diff", "path": "/w/src/a.rs", "oldText": "ctx\nold", "newText": "ctx\nnew"}])
    );
    assert_eq!(got[2]["locations"], json!([{"path": "/w/src/a.rs", "line": 1}]));
}

#[test]
fn a_result_that_carries_its_diff_needs_no_reading() {
    let display = json!({"kind": "file_diff", "filePath": "/w/n.md", "structuredPatch": [
        {"oldStart": 0, "oldLines": 0, "newStart": 1, "newLines": 1, "lines": ["+hello"]}]});
    let mut translator = bare();
    let mut out = Output::default();
    let (kind, payload) = tool(
        "result",
        "c1",
        json!({"toolName": "Write", "result": {"content": "ok", "display": display}}),
    );
    translator.on_event(&event(kind, payload), &mut out);
    assert_eq!(out.wants, []);
    assert_eq!(
        updates(&out)[1]["content"],
        json!([{"type": "diff", "path": "/w/n.md", "newText": "hello"}])
    );
}

#[test]
fn a_failed_edit_keeps_the_diff_beside_the_error() {
    let got = run(
        &mut bare(),
        &[
            tool(
                "scheduled",
                "c1",
                json!({"toolName": "Write", "input": {"file_path": "/w/a", "content": "x"}}),
            ),
            tool("result", "c1", json!({"result": {"success": false, "error": "read-only"}})),
        ],
    );
    let content = last(&got, "content");
    assert_eq!(
        (&content[0]["type"], &content[1]["content"]["text"]),
        (&json!("diff"), &json!("```\nread-only\n```"))
    );
}

#[test]
fn todo_and_plan_mode_tools_ask_for_a_reading() {
    for (name, want) in
        [("TodoWrite", vec![Want::Todos]), ("EnterPlanMode", vec![Want::Mode]), ("Read", vec![])]
    {
        let mut out = Output::default();
        let (kind, payload) = tool("result", "c1", json!({"toolName": name, "result": "ok"}));
        bare().on_event(&event(kind, payload), &mut out);
        assert_eq!(out.wants, want, "{name}");
    }
}

#[test]
fn a_running_command_shows_its_output_and_ends_with_all_of_it() {
    let got = run(
        &mut bare(),
        &[
            tool("started", "c1", json!({"toolName": "Bash"})),
            tool("progress", "c1", json!({"stdoutTail": "a\n"})),
            tool("progress", "c1", json!({"stdoutTail": "a\n"})),
            tool("progress", "c1", json!({"stdoutTail": "a\nb\n", "stderrTail": "warn\n"})),
            tool(
                "result",
                "c1",
                json!({"result": {"content": "a\nb\nwarn\n", "perf": {"exitCode": 0}}, "duration": 5}),
            ),
        ],
    );
    let shown: Vec<&str> =
        got.iter().filter_map(|u| u["content"][0]["content"]["text"].as_str()).collect();
    assert_eq!(
        shown,
        ["```console\na\n```", "```console\na\nb\nwarn\n```", "```console\na\nb\nwarn\n```"]
    );
    assert_eq!(
        last(&got, "rawOutput"),
        &json!({"content": "a\nb\nwarn\n", "exitCode": 0, "durationMs": 5})
    );
}

fn terminal_data(updates: &[Value]) -> String {
    updates.iter().filter_map(|u| u.pointer("/_meta/terminal_output/data")?.as_str()).collect()
}

#[test]
fn a_terminal_is_announced_fed_and_ended_in_separate_messages() {
    let got = run(
        &mut zed(),
        &[
            tool("scheduled", "c1", json!({"toolName": "Bash", "input": {"command": "make"}})),
            tool("started", "c1", json!({})),
            tool("progress", "c1", json!({"stdoutTail": "one\n"})),
            tool("progress", "c1", json!({"stdoutTail": "one\ntwo\n"})),
            tool(
                "result",
                "c1",
                json!({"result": {"content": "one\ntwo\nend\n", "perf": {"exitCode": 3}}}),
            ),
        ],
    );
    assert_eq!(got[0]["_meta"]["terminal_info"], json!({"terminal_id": "c1", "cwd": "/w"}));
    assert_eq!(got[0]["content"], json!([{"type": "terminal", "terminalId": "c1"}]));
    assert_eq!(got[1]["content"], got[0]["content"], "back in its place after a permission dialog");
    assert_eq!(terminal_data(&got), "one\ntwo\nend\n");
    for data in got.iter().filter(|u| u.pointer("/_meta/terminal_output").is_some()) {
        let keys: Vec<&String> = data.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["sessionUpdate", "toolCallId", "_meta"]);
    }
    assert_eq!(
        got.last().unwrap(),
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed",
        "content": [{"type": "terminal", "terminalId": "c1"}],
        "_meta": {"claudeCode": {"toolName": "Bash"}, "terminal_exit": {"terminal_id": "c1", "exit_code": 3, "signal": null}}})
    );
}

#[test]
fn what_a_result_adds_to_two_streams_is_shown_and_nothing_twice() {
    for (stdout, stderr, result, expected) in [
        ("a\n", "warn\n", "a\nend\n", "a\nwarn\nend\n"),
        ("a\n", "warn\n", "a\nend\nwarn\n", "a\nwarn\nend\n"),
        ("a\n", "warn\n", "warn\na\nend\n", "a\nwarn\nend\n"),
        ("a\n", "warn\n", "a\nwarn\n", "a\nwarn\n"),
        ("a\nb\n", "warn\n", "a\nwarn\nb\nend\n", "a\nb\nwarn\nend\n"),
    ] {
        let got = run(
            &mut zed(),
            &[
                tool("started", "c1", json!({"toolName": "Bash"})),
                tool("progress", "c1", json!({"stdoutTail": stdout, "stderrTail": stderr})),
                tool("result", "c1", json!({"result": {"content": result}})),
            ],
        );
        assert_eq!(terminal_data(&got), expected, "{result:?}");
    }
}

#[test]
fn a_result_that_says_nothing_shows_nothing_of_itself() {
    let about = json!({"truncated": false, "originalBytes": 0, "returnedBytes": 0, "budgetStrategy": "none"});
    for result in [
        json!({"success": true, "content": "", "perf": {"exitCode": 0}, "extra": 1}),
        json!({"success": true, "content": [], "isError": false}),
        json!({"stdout": "", "stderr": "", "exitCode": 0, "interrupted": false}),
        json!({"success": true, "truncated": about["truncated"], "originalBytes": 0}),
    ] {
        for mut translator in [bare(), zed()] {
            let end = tool("result", "c1", json!({"toolName": "Bash", "result": result}));
            let got =
                run(&mut translator, &[tool("started", "c1", json!({"toolName": "Bash"})), end]);
            let end = got.last().unwrap();
            assert_eq!(end["status"], "completed", "{result}");
            assert_eq!(end.pointer("/content/0/content/text"), None, "{result}");
            assert_eq!(terminal_data(&got), "", "{result}");
        }
    }
    // One that speaks by other keys is shown as it is; one of the command's streams as text.
    for (result, words) in [
        (json!({"success": true, "files": ["a"]}), "files"),
        (json!({"stdout": "out\n", "stderr": "err\n", "exitCode": 0}), "out\nerr"),
    ] {
        let got =
            run(&mut bare(), &[tool("result", "c1", json!({"toolName": "X", "result": result}))]);
        assert!(
            last(&got, "content").to_string().contains(&json!(words).to_string()[1..4]),
            "{got:?}"
        );
    }
}

#[test]
fn what_a_command_printed_stays_beside_the_words_of_its_failure() {
    for (end, words) in [
        (json!({"error": "timed out after 120 s"}), ["one", "timed out after 120 s"]),
        (
            json!({"result": {"success": false, "content": "one\ntwo", "error": "killed"}}),
            ["two", "killed"],
        ),
    ] {
        let kind = if end.get("error").is_some() { "error" } else { "result" };
        for mut translator in [bare(), zed()] {
            let got = run(
                &mut translator,
                &[
                    tool("started", "c1", json!({"toolName": "Bash"})),
                    tool("progress", "c1", json!({"stdoutTail": "one\n"})),
                    tool(kind, "c1", end.clone()),
                ],
            );
            let shown = last(&got, "content").to_string() + &terminal_data(&got);
            for word in words {
                assert!(shown.contains(word), "{word}: {shown}");
            }
            assert_eq!(shown.matches("one").count(), 1, "{shown}");
        }
    }
}

#[test]
fn the_card_of_a_to_do_list_says_how_far_it_is_and_leaves_the_list_to_the_plan() {
    let list = json!({"todos": [{"content": "Read", "status": "completed"}, {"content": "Write", "status": "in_progress"}]});
    let got = run(
        &mut bare(),
        &[
            tool("scheduled", "c1", json!({"toolName": "TodoWrite", "input": list})),
            tool(
                "result",
                "c1",
                json!({"result": {"success": true, "content": "Todos have been modified."}}),
            ),
        ],
    );
    assert_eq!(got[0]["title"], "TodoWrite: 1 of 2 done · Write");
    assert_eq!(last(&got, "content"), &Value::Null);
    assert_eq!(last(&got, "status"), "completed");
}

#[test]
fn a_short_command_sends_its_output_once() {
    let got = run(
        &mut zed(),
        &[
            tool("started", "c1", json!({"toolName": "Bash"})),
            tool("result", "c1", json!({"result": {"content": "hi\n"}})),
        ],
    );
    assert_eq!(terminal_data(&got), "hi\n");
    assert_eq!(got.last().unwrap()["_meta"]["terminal_exit"]["exit_code"], 0);
}

#[test]
fn a_tail_whose_beginning_was_cut_goes_on_where_the_last_one_ended() {
    let mut translator = zed();
    let long: String = (0..2000).map(|i| format!("line {i}\n")).collect();
    let (head, tail) = (&long[..9000], &long[4000..]);
    let got = run(
        &mut translator,
        &[
            tool("started", "c1", json!({"toolName": "Bash"})),
            tool("progress", "c1", json!({"stdoutTail": head})),
            tool("progress", "c1", json!({"stdoutTail": tail})),
        ],
    );
    assert_eq!(terminal_data(&got), long);
}

#[test]
fn jetbrains_gets_the_data_under_its_own_key() {
    let traits = ClientTraits { terminal_output_delta: true, ..ClientTraits::default() };
    let got = run(
        &mut Translator::new(traits),
        &[
            tool("started", "c1", json!({"toolName": "Bash"})),
            tool("progress", "c1", json!({"stdoutTail": "x"})),
        ],
    );
    assert_eq!(got[1]["_meta"]["terminal_output_delta"], json!({"terminal_id": "c1", "data": "x"}));
}

#[test]
fn martty_gets_no_raw_output_because_it_hides_content() {
    let traits = ClientTraits { martty: true, ..ClientTraits::default() };
    let got = run(
        &mut Translator::new(traits),
        &[tool("result", "c1", json!({"toolName": "Grep", "result": "x"}))],
    );
    assert_eq!(last(&got, "rawOutput"), &Value::Null);
}

#[test]
fn a_subagents_tools_nest_under_its_card() {
    let got = run(
        &mut bare(),
        &[
            tool(
                "started",
                "agent",
                json!({"toolName": "Agent", "childSessionId": "sess_subagent_u1"}),
            ),
            tool(
                "scheduled",
                "a",
                json!({"toolName": "Read", "source": "subagent", "parentToolCallId": "agent"}),
            ),
            tool(
                "started",
                "b",
                json!({"toolName": "Read", "source": "subagent", "childSessionId": "sess_subagent_u1"}),
            ),
            tool("started", "tool_subagent_u1_call_ff", json!({"toolName": "Read"})),
        ],
    );
    assert_eq!(got[0]["_meta"], json!({"claudeCode": {"toolName": "Agent"}, "subagent": true}));
    for update in &got[1..] {
        assert_eq!(update["_meta"]["claudeCode"]["parentToolUseId"], "agent", "{update}");
    }
}

#[test]
fn a_subagents_result_tells_its_usage() {
    let text =
        "Done\nagentId: agent_1\n<usage>subagent_tokens: 10 tool_uses: 2 duration_ms: 30</usage>";
    let got = run(
        &mut bare(),
        &[tool("result", "c1", json!({"toolName": "Agent", "result": {"content": text}}))],
    );
    assert_eq!(
        last(&got, "_meta")["subagent"],
        json!({"agentId": "agent_1", "tokens": 10, "toolUses": 2, "durationMs": 30})
    );
    assert_eq!(last(&got, "content")[0]["content"]["text"], text);
}

#[test]
fn a_background_launch_stays_open_when_the_turn_ends() {
    for mut translator in [bare(), zed()] {
        let mut got = run(
            &mut translator,
            &[
                tool(
                    "scheduled",
                    "c1",
                    json!({"toolName": "Bash", "input": {"command": "sleep", "run_in_background": true}}),
                ),
                tool(
                    "result",
                    "c1",
                    json!({"background": true, "result": {"content": "Command running in background with ID: exec_1"}}),
                ),
            ],
        );
        let mut out = Output::default();
        translator.finish_turn(CardEnd::Completed, &mut out);
        got.extend(updates(&out));
        assert!(!statuses(&got).contains(&"completed"), "{got:?}");
        assert_eq!(translator.open_cards(), 0);
        translator.finish_turn(CardEnd::Shutdown, &mut out);
        let end = updates(&out);
        assert_eq!((&end[0]["status"], end.len()), (&json!("failed"), 1));
    }
}

#[test]
fn a_turns_end_closes_its_open_cards_in_order() {
    for (end, status, word) in [
        (CardEnd::Completed, "completed", "completed"),
        (CardEnd::Cancelled, "failed", "cancelled"),
        (CardEnd::EngineLost, "failed", "engineLost"),
    ] {
        let mut translator = bare();
        run(
            &mut translator,
            &[
                tool("started", "c2", json!({"toolName": "Read"})),
                tool("started", "c1", json!({"toolName": "Read"})),
            ],
        );
        let mut out = Output::default();
        translator.finish_turn(end, &mut out);
        translator.finish_turn(end, &mut out);
        let got = updates(&out);
        assert_eq!(got.iter().map(|u| &u["toolCallId"]).collect::<Vec<_>>(), ["c2", "c1"]);
        assert_eq!(
            (&got[0]["status"], &got[0]["_meta"]["zcode"]["endedBy"]),
            (&json!(status), &json!(word))
        );
    }
}

#[test]
fn relative_paths_without_a_directory_are_left_out() {
    let got = run(
        &mut Translator::new(ClientTraits::default()),
        &[tool(
            "scheduled",
            "c1",
            json!({"toolName": "Edit", "input": {"file_path": "a.rs", "old_string": "a", "new_string": "b"}}),
        )],
    );
    assert_eq!((got[0].get("locations"), got[0].get("content")), (None, None));
}

fn any_phase() -> impl Strategy<Value = (&'static str, Value)> {
    let id = (0u8..4).prop_map(|n| format!("c{n}"));
    let name = prop_oneof![Just(None), Just(Some("Bash")), Just(Some("Edit")), Just(Some("Agent"))];
    (0u8..9, id, name, "[a-z\\n]{0,12}").prop_map(|(which, id, name, text)| {
        let mut extra = json!({});
        if let Some(name) = name {
            extra["toolName"] = json!(name);
        }
        let kind = [
            "scheduled",
            "started",
            "progress",
            "result",
            "error",
            "batch",
            "tool_call",
            "tool_input_delta",
            "raw",
        ][usize::from(which)];
        match kind {
            "scheduled" | "tool_call" => {
                extra["input"] = json!({"command": text, "file_path": "/f", "new_string": "n"});
            }
            "progress" => extra["stdoutTail"] = json!(text),
            "result" => extra["result"] = json!({"content": text}),
            "error" => extra["error"] = json!(text),
            "batch" => extra["toolCallIds"] = json!([id]),
            "tool_input_delta" => extra["delta"] = json!(text),
            _ => {}
        }
        if which == 6 || which == 7 { stream(kind, &id, extra) } else { tool(kind, &id, extra) }
    })
}

proptest! {
    /// Whatever comes in whatever order: one announcement per card, one final status, which is the
    /// last, nothing after it, and no update before the announcement.
    #[test]
    fn every_card_is_announced_once_and_ended_once(
        events in proptest::collection::vec(any_phase(), 0..60),
        terminal in any::<bool>(),
    ) {
        let mut translator = if terminal { zed() } else { bare() };
        let mut got = run(&mut translator, &events);
        let mut out = Output::default();
        translator.finish_turn(CardEnd::Cancelled, &mut out);
        translator.finish_turn(CardEnd::Shutdown, &mut out);
        got.extend(updates(&out));
        for id in ["c0", "c1", "c2", "c3"] {
            let of: Vec<&Value> = got.iter().filter(|u| u["toolCallId"] == id).collect();
            let Some(first) = of.first() else { continue };
            prop_assert_eq!(&first["sessionUpdate"], "tool_call");
            prop_assert_eq!(of.iter().filter(|u| u["sessionUpdate"] == "tool_call").count(), 1);
            let finals: Vec<usize> = of.iter().enumerate()
                .filter(|(_, u)| u["status"] == "completed" || u["status"] == "failed")
                .map(|(at, _)| at).collect();
            prop_assert_eq!(&finals, &vec![of.len() - 1]);
            let exits = of.iter().filter(|u| u.pointer("/_meta/terminal_exit").is_some()).count();
            let infos = of.iter().filter(|u| u.pointer("/_meta/terminal_info").is_some()).count();
            prop_assert_eq!(exits, infos);
        }
    }
}
