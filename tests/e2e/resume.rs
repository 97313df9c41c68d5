//! `/resume` over the wire: a thread of one process goes on with a session of another one's.

use serde_json::{Value, json};

use crate::serve::Editor;
use crate::world::World;

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

fn said(messages: &[Value], kind: &str) -> String {
    let updates = messages.iter().map(|message| &message["params"]["update"]);
    let of = updates.filter(|update| update["sessionUpdate"] == kind);
    of.filter_map(|update| update["content"]["text"].as_str()).collect()
}

#[test]
fn a_thread_goes_on_with_a_session_of_an_earlier_run_and_keeps_it() {
    let world = World::new();
    let run = world.run(&["run", "--demo", "--demo-pace", "0", "--format", "json", "hello"]);
    let result: Value = serde_json::from_str(&run.stdout).unwrap();
    let reply = result["text"].as_str().unwrap();
    let serve = ["serve", "--demo", "--demo-pace", "0"];
    let mut editor = Editor::start(&world, &serve);
    let thread = editor.open(&world);
    let resume = json!({"jsonrpc": "2.0", "id": "r", "method": "session/prompt", "params": prompt(&thread, "/resume")});
    editor.send(&resume);
    let mut told = Vec::new();
    let answer = loop {
        let message = editor.receive();
        if message["method"] == "session/request_permission" {
            assert_eq!(message["params"]["toolCall"]["toolCallId"], "resume_pick");
            let option = &message["params"]["options"][0];
            let chosen =
                json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}});
            editor.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": chosen}));
        }
        if message["id"] == "r" {
            break message;
        }
        told.push(message);
    };
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(said(&told, "user_message_chunk"), "hello");
    assert!(said(&told, "agent_message_chunk").starts_with(reply), "{told:#?}");
    let (answer, _) = editor.ask("session/prompt", &prompt(&thread, "echo and on"));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(editor.end().success());
    // The thread's id stands for that session from now on, also in another process.
    let mut editor = Editor::start(&world, &serve);
    editor.open(&world);
    let load = json!({"sessionId": thread, "cwd": world.cwd(), "mcpServers": []});
    let (answer, told) = editor.ask("session/load", &load);
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(said(&told, "user_message_chunk"), "helloecho and on");
    assert!(editor.end().success());
    world.assert_no_orphans();
}
