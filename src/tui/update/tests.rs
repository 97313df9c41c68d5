use super::*;
use crate::tui::keymap::Key;
use crate::tui::model::{Ability, AgentCommand, AskKind, Overlay, Phase, Start, Turn};
use crate::tui::msg::{AgentCmd, AgentMsg, Failure, FormAnswer, Opening, Scroll, SessionFact};
use serde_json::{Value, json};

/// A model with an open session, and a clock that tests move.
pub(super) fn ready() -> Model {
    let mut model = Model::new(Start::default());
    model.size = (80, 24);
    model.composer_width = 70;
    model.now_ms = 10_000;
    send(&mut model, AgentMsg::Initialized(json!({"agentInfo": {"name": "a"}})));
    send(
        &mut model,
        AgentMsg::Opened {
            opening: 1,
            session_id: "s".into(),
            answer: json!({}),
            how: Opening::New,
        },
    );
    assert_eq!(model.phase, Phase::Ready);
    model
}

pub(super) fn send(model: &mut Model, msg: AgentMsg) -> Vec<Cmd> {
    update(model, Msg::Agent(msg))
}

/// Types keys at a human pace (50 ms apart).
pub(super) fn keys(model: &mut Model, text: &str) -> Vec<Cmd> {
    let mut cmds = Vec::new();
    for key in Key::sequence(text) {
        model.now_ms += 50;
        cmds.extend(update(model, Msg::Term(TermEvent::Key(key))));
    }
    cmds
}

pub(super) fn agent_cmds(cmds: &[Cmd]) -> Vec<AgentCmd> {
    cmds.iter()
        .filter_map(|c| match c {
            Cmd::Agent(a) => Some(a.clone()),
            _ => None,
        })
        .collect()
}

pub(super) fn prompt(text: &str) -> AgentCmd {
    AgentCmd::Prompt { session_id: "s".into(), text: text.into(), files: Vec::new() }
}

pub(super) fn end_turn(model: &mut Model, stop: &str) -> Vec<Cmd> {
    send(
        model,
        AgentMsg::TurnEnded { session_id: "s".into(), result: Ok(json!({"stopReason": stop})) },
    )
}

fn ask(model: &mut Model, id: u64) {
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c", "title": "rm -rf build", "rawInput": {"command": "rm -rf build"}},
        "options": [{"optionId": "once", "name": "Allow once", "kind": "allow_once"},
                    {"optionId": "no", "name": "Reject", "kind": "reject_once"}]});
    send(model, AgentMsg::PermissionAsked { ask: id, params });
}

/// Draws, and waits until the keys count.
fn arm(model: &mut Model) {
    update(model, Msg::Drawn);
    model.now_ms += 500;
}

fn form(model: &mut Model, id: u64) {
    let params = json!({"sessionId": "s", "mode": "form", "message": "# Plan", "requestedSchema": {"type": "object",
        "properties": {"decision": {"type": "string", "oneOf": [{"const": "yes", "title": "Approve"}, {"const": "no", "title": "Reject"}]},
                       "feedback": {"type": "string"}}, "required": ["decision"]}});
    send(model, AgentMsg::FormAsked { ask: id, params });
}

#[test]
fn enter_sends_and_a_second_prompt_waits_for_the_end_of_the_turn() {
    let mut m = ready();
    assert_eq!(agent_cmds(&keys(&mut m, "hi<ret>")), [prompt("hi")]);
    assert!(m.composer.is_empty());
    assert_eq!(agent_cmds(&keys(&mut m, "next<ret>")), []);
    assert_eq!(m.queue.len(), 1);
    assert_eq!(agent_cmds(&end_turn(&mut m, "end_turn")), [prompt("next")]);
    assert!(m.queue.is_empty());
}

#[test]
fn keys_typed_before_the_agent_is_ready_are_sent_when_it_is() {
    let mut m = Model::new(Start::default());
    m.now_ms = 1000;
    assert_eq!(agent_cmds(&keys(&mut m, "early<ret>")), []);
    send(&mut m, AgentMsg::Initialized(json!({})));
    let cmds = send(
        &mut m,
        AgentMsg::Opened {
            opening: 1,
            session_id: "s".into(),
            answer: json!({}),
            how: Opening::New,
        },
    );
    assert_eq!(agent_cmds(&cmds), [prompt("early")]);
}

#[test]
fn every_new_line_key_makes_a_line_and_sends_nothing() {
    for key in ["<ctrl-j>", "<alt-enter>", "<shift-enter>", "<ctrl-enter>"] {
        let mut m = ready();
        assert_eq!(agent_cmds(&keys(&mut m, &format!("a{key}b"))), []);
        assert_eq!(m.composer.text(), "a\nb", "{key}");
    }
}

#[test]
fn escape_stops_once_keeps_the_draft_and_holds_the_queue() {
    let mut m = ready();
    keys(&mut m, "go<ret>one<ret>draft");
    let stop = AgentCmd::Cancel { session_id: "s".into() };
    assert_eq!(agent_cmds(&keys(&mut m, "<esc>")), [stop]);
    assert!(matches!(m.turn, Turn::Cancelling { .. }));
    assert_eq!(agent_cmds(&keys(&mut m, "<esc>")), [], "one stop only");
    assert_eq!(agent_cmds(&end_turn(&mut m, "end_turn")), [], "the queue waits for the user");
    assert_eq!((m.composer.text(), m.queue.len()), ("draft", 1));
    keys(&mut m, "<ctrl-u>");
    assert_eq!(agent_cmds(&keys(&mut m, "<ret>")), [prompt("one")]);
}

#[test]
fn ctrl_c_clears_the_draft_then_twice_quits() {
    let mut m = ready();
    keys(&mut m, "draft<ctrl-c>");
    assert!(m.composer.is_empty() && !m.quitting);
    assert_eq!(m.history.entries(), ["draft"]);
    let cmds = keys(&mut m, "<ctrl-c><ctrl-c>");
    assert!(cmds.contains(&Cmd::Quit));
    let mut m = ready();
    assert!(!keys(&mut m, "<ctrl-c>").contains(&Cmd::Quit));
    m.now_ms += 5000;
    update(&mut m, Msg::Ticked);
    assert!(!keys(&mut m, "<ctrl-c>").contains(&Cmd::Quit), "too late to be the second");
}

#[test]
fn ctrl_d_quits_only_on_an_empty_draft() {
    let mut m = ready();
    assert!(!keys(&mut m, "x<ctrl-d>").contains(&Cmd::Quit));
    assert!(keys(&mut m, "<ctrl-u><ctrl-d>").contains(&Cmd::Quit));
}

#[test]
fn typing_while_a_permission_appears_answers_nothing_and_loses_nothing() {
    let mut m = ready();
    keys(&mut m, "go<ret>yes ");
    ask(&mut m, 1);
    update(&mut m, Msg::Drawn);
    let cmds = keys(&mut m, "1 please 2<ret>");
    assert_eq!(agent_cmds(&cmds), []);
    assert_eq!(m.composer.text(), "yes 1 please 2");
    assert_eq!(m.asks.len(), 1);
}

#[test]
fn an_armed_number_answers_with_the_id_as_offered() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    ask(&mut m, 7);
    arm(&mut m);
    let yes = AgentCmd::AnswerPermission { ask: 7, option_id: Some("once".into()) };
    assert_eq!(agent_cmds(&keys(&mut m, "1")), [yes]);
    assert!(m.asks.is_empty());
}

#[test]
fn keys_do_not_count_before_the_dialog_was_drawn() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    ask(&mut m, 1);
    m.now_ms += 5000;
    assert_eq!(agent_cmds(&keys(&mut m, "1")), []);
    assert_eq!(m.composer.text(), "1");
}

#[test]
fn space_and_enter_never_answer_by_accident() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    ask(&mut m, 1);
    for key in ["<space>", "<ret>", "<space>", "<ret>"] {
        arm(&mut m);
        assert_eq!(agent_cmds(&keys(&mut m, key)), [], "{key}");
    }
    arm(&mut m);
    keys(&mut m, "<down>");
    arm(&mut m);
    let answer = agent_cmds(&keys(&mut m, "<ret>"));
    assert_eq!(answer, [AgentCmd::AnswerPermission { ask: 1, option_id: Some("once".into()) }]);
}

#[test]
fn leaving_a_dialog_in_any_way_answers_cancelled() {
    let no = AgentCmd::AnswerPermission { ask: 1, option_id: None };
    let mut m = ready();
    keys(&mut m, "go<ret>");
    ask(&mut m, 1);
    arm(&mut m);
    assert_eq!(agent_cmds(&keys(&mut m, "<esc>")), std::slice::from_ref(&no));
    let mut m = ready();
    keys(&mut m, "go<ret>");
    ask(&mut m, 1);
    let cmds = update(&mut m, Msg::Hangup);
    assert_eq!(agent_cmds(&cmds), std::slice::from_ref(&no));
    assert!(cmds.contains(&Cmd::Quit));
    let mut m = ready();
    keys(&mut m, "go<ret>");
    ask(&mut m, 1);
    // Not armed: Escape is still the turn's, and a stopped turn answers what it asked.
    let stop = AgentCmd::Cancel { session_id: "s".into() };
    assert_eq!(agent_cmds(&keys(&mut m, "<esc>")), [stop, no]);
}

#[test]
fn a_second_request_waits_its_turn_and_needs_its_own_quiet_moment() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    ask(&mut m, 1);
    ask(&mut m, 2);
    arm(&mut m);
    assert_eq!(agent_cmds(&keys(&mut m, "11")).len(), 1, "the second key answers nothing");
    assert_eq!(m.asks[0].id, 2);
    send(&mut m, AgentMsg::AskWithdrawn { ask: 2 });
    assert!(m.asks.is_empty());
}

#[test]
fn the_transcript_scrolls_while_something_is_asked() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    ask(&mut m, 1);
    arm(&mut m);
    assert!(keys(&mut m, "<pageup>").contains(&Cmd::Scroll(Scroll::Pages(-1))));
    assert!(m.is_armed(), "scrolling is no typing");
}

#[test]
fn a_plan_is_approved_or_rejected_with_feedback() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    form(&mut m, 3);
    arm(&mut m);
    let cmds = agent_cmds(&keys(&mut m, "<ret><ret><ret>"));
    let content = json!({"decision": "yes"}).as_object().unwrap().clone();
    assert_eq!(cmds, [AgentCmd::AnswerForm { ask: 3, answer: FormAnswer::Accept(content) }]);
    form(&mut m, 4);
    arm(&mut m);
    let cmds = agent_cmds(&keys(&mut m, "2<tab>not 1 yet<ret><ret>"));
    let content = json!({"decision": "no", "feedback": "not 1 yet"}).as_object().unwrap().clone();
    assert_eq!(cmds, [AgentCmd::AnswerForm { ask: 4, answer: FormAnswer::Accept(content) }]);
}

#[test]
fn escape_leaves_a_form_with_cancel_and_the_turn_runs_on() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    form(&mut m, 3);
    arm(&mut m);
    let cancel = AgentCmd::AnswerForm { ask: 3, answer: FormAnswer::Cancel };
    assert_eq!(agent_cmds(&keys(&mut m, "<esc>")), [cancel]);
    assert!(matches!(m.turn, Turn::Running { .. }));
}

#[test]
fn an_unbracketed_paste_of_lines_sends_nothing() {
    let mut m = ready();
    let mut cmds = Vec::new();
    for key in Key::sequence("first line<ret>second<ret>third<ret>") {
        m.now_ms += 1;
        cmds.extend(update(&mut m, Msg::Term(TermEvent::Key(key))));
    }
    m.now_ms += 100;
    cmds.extend(update(&mut m, Msg::Ticked));
    assert_eq!(agent_cmds(&cmds), []);
    assert_eq!(m.composer.text(), "first line\nsecond\nthird\n");
}

#[test]
fn enter_in_the_same_read_as_the_text_before_it_still_sends() {
    let mut m = ready();
    let mut cmds = Vec::new();
    for key in Key::sequence("hello<ret>") {
        cmds.extend(update(&mut m, Msg::Term(TermEvent::Key(key))));
    }
    m.now_ms += 100;
    cmds.extend(update(&mut m, Msg::Ticked));
    assert_eq!(agent_cmds(&cmds), [prompt("hello")]);
}

#[test]
fn fast_backspaces_and_letters_of_an_input_method_keep_their_order() {
    let mut m = ready();
    for key in Key::sequence("hie<bs><bs>iển") {
        m.now_ms += 2;
        update(&mut m, Msg::Term(TermEvent::Key(key)));
    }
    assert_eq!(m.composer.text(), "hiển");
}

#[test]
fn a_command_of_the_agent_that_it_does_not_list_is_sent_as_typed() {
    let mut m = ready();
    assert_eq!(agent_cmds(&keys(&mut m, "/perm<ret>")), [prompt("/perm")]);
}

#[test]
fn our_commands_run_and_do_not_reach_the_agent() {
    let mut m = ready();
    assert_eq!(agent_cmds(&keys(&mut m, "/help<ret>")), []);
    assert!(m.overlay.is_some() && m.composer.is_empty());
    keys(&mut m, "<esc>");
    assert!(keys(&mut m, "/qui<ret>").contains(&Cmd::Quit));
}

#[test]
fn a_list_to_choose_from_stands_in_for_the_agents_command_where_there_is_one() {
    let learn = |m: &mut Model, fact: SessionFact| {
        send(m, AgentMsg::Learned { session_id: "s".into(), fact });
    };
    let theirs = ["model", "resume", "status"].map(|name| AgentCommand {
        name: name.into(),
        description: "theirs".into(),
        hint: String::new(),
    });
    let prompts =
        |cmds: &[Cmd]| cmds.iter().any(|cmd| matches!(cmd, Cmd::Agent(AgentCmd::Prompt { .. })));
    let mut m = ready();
    learn(&mut m, SessionFact::Commands(theirs.to_vec()));
    // Nothing to choose from: the agent's own command.
    assert!(prompts(&keys(&mut m, "/model<ret>")));
    let mut m = ready();
    learn(&mut m, SessionFact::Commands(theirs.to_vec()));
    let model = json!({"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "a",
        "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]});
    learn(&mut m, SessionFact::Options(vec![model]));
    keys(&mut m, "/mod");
    let rows = crate::tui::model::menu::rows(&m);
    assert_eq!(rows.iter().filter(|row| row.name == "model").count(), 1, "{rows:?}");
    assert!(!prompts(&keys(&mut m, "el<ret>")));
    assert!(matches!(&m.overlay, Some(Overlay::Picker(_))));
    keys(&mut m, "<esc>");
    // What is only the agent's to know stays the agent's.
    assert!(prompts(&keys(&mut m, "/status<ret>")));
}

#[test]
fn a_dead_agent_keeps_what_was_typed_and_enter_starts_it_again() {
    let mut m = ready();
    keys(&mut m, "go<ret>one<ret>");
    ask(&mut m, 1);
    let gone = Failure {
        message: "ended with exit status: 1".into(),
        detail: vec!["boom".into()],
        ..Failure::default()
    };
    send(&mut m, AgentMsg::Gone(gone));
    assert!(matches!(&m.phase, Phase::Down(t) if t.lines.contains(&"boom".to_owned())));
    assert!(m.asks.is_empty() && m.turn == Turn::Idle);
    assert_eq!(m.queue.len(), 1);
    assert_eq!(agent_cmds(&keys(&mut m, "<ret>")), [AgentCmd::Restart]);
    let caps = json!({"agentCapabilities": {"sessionCapabilities": {"resume": {}}}});
    let cmds = send(&mut m, AgentMsg::Initialized(caps));
    assert_eq!(
        agent_cmds(&cmds),
        [AgentCmd::Open { opening: 2, how: Opening::Resume("s".into()) }]
    );
}

#[test]
fn a_session_that_cannot_be_opened_is_said_and_a_new_one_started() {
    let mut m = ready();
    m.agent.abilities.push(crate::tui::model::Ability::Load);
    keys(&mut m, "/resume old<ret>");
    let failure = Failure { code: -32002, message: "not found".into(), ..Failure::default() };
    let cmds = send(
        &mut m,
        AgentMsg::OpenFailed { opening: 2, how: Opening::Load("old".into()), failure },
    );
    assert_eq!(agent_cmds(&cmds), [AgentCmd::Open { opening: 3, how: Opening::New }]);
    assert!(!m.transcript.is_empty(), "it is said");
}

#[test]
fn no_engine_says_where_was_looked() {
    let mut m = Model::new(Start { can_demo: true, ..Start::default() });
    send(&mut m, AgentMsg::Initialized(json!({})));
    let failure = Failure {
        code: -32603,
        message: "no engine".into(),
        data: json!({"lookedFor": ["/a", "/b"]}),
        ..Failure::default()
    };
    send(&mut m, AgentMsg::OpenFailed { opening: 1, how: Opening::New, failure });
    let Phase::Down(trouble) = &m.phase else { panic!() };
    assert!(trouble.no_engine);
    assert_eq!(trouble.lines, ["/a", "/b"]);
    m.now_ms = 9_000;
    assert!(keys(&mut m, "/demo<ret>").contains(&Cmd::StartDemo));
}

#[test]
fn the_draft_is_written_a_moment_after_it_changed() {
    let mut m = ready();
    keys(&mut m, "x");
    let due = m.deadline().unwrap();
    m.now_ms = due;
    let cmds = update(&mut m, Msg::Ticked);
    assert!(matches!(cmds.as_slice(), [Cmd::StoreDraft(d)] if d.text == "x"));
    assert_eq!(m.deadline(), None, "and then nothing is due");
}

#[test]
fn a_history_whose_last_call_never_ended_leaves_nothing_that_moves() {
    let mut m = Model::new(Start::default());
    m.start.first = crate::tui::model::FirstSession::Named("s".into());
    send(&mut m, AgentMsg::Initialized(json!({"agentCapabilities": {"loadSession": true}})));
    for (id, status) in [("a", "in_progress"), ("b", "pending")] {
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "Bash: ls", "status": status});
        let update = serde_json::from_value(update).unwrap();
        send(&mut m, AgentMsg::Updated { session_id: "s".into(), update: Box::new(update) });
    }
    assert!(m.is_animated(), "while it is read");
    let how = Opening::Load("s".into());
    send(&mut m, AgentMsg::Opened { opening: 1, session_id: "s".into(), answer: json!({}), how });
    assert_eq!(m.phase, Phase::Ready);
    assert!(!m.transcript.is_empty());
    assert!(!m.is_animated(), "no turn runs");
    assert_eq!(m.deadline(), None);
}

#[test]
fn an_idle_model_has_nothing_due() {
    let m = ready();
    assert_eq!(m.deadline(), None);
    assert!(!m.is_animated());
}

#[test]
fn history_is_gone_through_and_the_draft_comes_back() {
    let mut m = ready();
    keys(&mut m, "one<ret>");
    end_turn(&mut m, "end_turn");
    keys(&mut m, "draft<up>");
    assert_eq!(m.composer.text(), "one");
    keys(&mut m, "<down>");
    assert_eq!(m.composer.text(), "draft");
}

#[test]
fn a_queued_prompt_is_taken_back_for_editing() {
    let mut m = ready();
    keys(&mut m, "go<ret>queued<ret><up>");
    assert_eq!((m.composer.text(), m.queue.len()), ("queued", 0));
}

#[test]
fn a_guide_that_is_not_taken_becomes_a_prompt() {
    let mut m = ready();
    m.agent.abilities.push(crate::tui::model::Ability::Steer);
    keys(&mut m, "go<ret>");
    let cmds = agent_cmds(&keys(&mut m, "left<ctrl-x>"));
    assert_eq!(
        cmds,
        [AgentCmd::Steer { session_id: "s".into(), text: "left".into(), files: Vec::new() }]
    );
    send(&mut m, AgentMsg::Steered { text: "left".into(), result: Ok("promptRequired".into()) });
    assert_eq!(m.queue.len(), 1);
    assert_eq!(agent_cmds(&end_turn(&mut m, "end_turn")), [prompt("left")]);
}

fn guided() -> Model {
    let mut m = ready();
    m.agent.abilities.push(crate::tui::model::Ability::Steer);
    keys(&mut m, "go<ret>left<ctrl-x>");
    m
}

#[test]
fn a_guide_that_is_taken_in_stands_where_it_was_taken_in() {
    let mut m = guided();
    let blocks = m.transcript.blocks().len();
    let said = json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "left"},
        "messageId": "guide-1", "_meta": {"zcode": {"guided": true}}});
    let update = Box::new(serde_json::from_value(said).unwrap());
    send(&mut m, AgentMsg::Updated { session_id: "s".into(), update });
    send(&mut m, AgentMsg::Steered { text: "left".into(), result: Ok("injected".into()) });
    assert_eq!((m.transcript.blocks().len(), m.queue.len()), (blocks + 1, 0));
    assert_eq!(agent_cmds(&end_turn(&mut m, "end_turn")), []);
}

#[test]
fn a_guide_that_the_agent_queued_is_not_sent_a_second_time() {
    let mut m = guided();
    send(&mut m, AgentMsg::Steered { text: "left".into(), result: Ok("queued".into()) });
    assert!(m.queue.is_empty());
    assert_eq!(agent_cmds(&end_turn(&mut m, "end_turn")), []);
}

#[test]
fn a_guide_that_is_refused_comes_back_and_says_so() {
    let mut m = guided();
    send(&mut m, AgentMsg::Steered { text: "left".into(), result: Ok("failed".into()) });
    assert_eq!(m.queue.len(), 1);
    assert!(m.toast.as_ref().is_some_and(|it| it.0.contains("not taken as a guide")));
}

#[test]
fn a_paste_never_answers_a_dialog() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    ask(&mut m, 1);
    arm(&mut m);
    let cmds = update(&mut m, Msg::Term(TermEvent::Paste("1\n".into())));
    assert_eq!(agent_cmds(&cmds), []);
    assert_eq!(m.composer.text(), "1\n");
    assert!(!m.is_armed());
}

#[test]
fn updates_of_a_session_that_was_left_are_not_shown() {
    let mut m = ready();
    let unknown = |id: &str| AgentMsg::UnknownUpdate {
        session_id: id.into(),
        update: json!({"sessionUpdate": "x"}),
    };
    send(&mut m, unknown("other"));
    assert!(m.transcript.is_empty());
    send(&mut m, unknown("s"));
    assert!(!m.transcript.is_empty());
}

#[test]
fn a_permission_of_a_child_session_is_asked_too() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    let params = json!({"sessionId": "child", "toolCall": {"title": "x"}, "options": []});
    send(&mut m, AgentMsg::PermissionAsked { ask: 1, params });
    assert_eq!(m.asks[0].session_id, "child");
    assert!(matches!(m.asks[0].kind, AskKind::Permission(_)));
}

fn plan(model: &mut Model, id: u64) {
    let params = json!({"sessionId": "s", "mode": "form", "message": "Review this plan.", "requestedSchema": {"type": "object",
        "properties": {"approval": {"type": "string", "description": "# Plan", "oneOf": [{"const": "approve", "title": "Approve"}, {"const": "reject", "title": "Reject"}]},
                       "feedback": {"type": "string"}}, "required": ["approval"]}});
    send(model, AgentMsg::FormAsked { ask: id, params });
}

fn accepted(ask: u64, answers: &serde_json::Value) -> AgentCmd {
    AgentCmd::AnswerForm { ask, answer: FormAnswer::Accept(answers.as_object().unwrap().clone()) }
}

#[test]
fn a_plan_needs_a_move_and_enter_and_words_only_ever_reject() {
    for (typed, answers) in [
        ("a<ret>", json!({"approval": "approve"})),
        ("<tab><ret>", json!({"approval": "approve"})),
        ("r<ret>", json!({"approval": "reject"})),
        ("fsmaller<ret>", json!({"approval": "reject", "feedback": "smaller"})),
        ("fa<ctrl-j>r<ret>", json!({"approval": "reject", "feedback": "a\nr"})),
        ("fsmaller<esc>a<ret>", json!({"approval": "approve"})),
    ] {
        let mut m = ready();
        keys(&mut m, "go<ret>");
        plan(&mut m, 4);
        arm(&mut m);
        assert_eq!(agent_cmds(&keys(&mut m, typed)), [accepted(4, &answers)], "{typed}");
        assert!(m.asks.is_empty());
    }
    for typed in ["<ret>", " <ret>y<ret>1<ret>", "f<ret><ret>", "jkG<ret>"] {
        let mut m = ready();
        keys(&mut m, "go<ret>");
        plan(&mut m, 4);
        arm(&mut m);
        assert_eq!(agent_cmds(&keys(&mut m, typed)), [], "{typed}");
        assert_eq!(m.asks.len(), 1);
        assert!(m.composer.is_empty(), "{typed}: the plan has the whole keyboard");
    }
}

#[test]
fn a_plan_is_left_with_cancelled_but_a_note_only_closes() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    plan(&mut m, 4);
    arm(&mut m);
    assert_eq!(agent_cmds(&keys(&mut m, "fwords<esc>")), []);
    let left = AgentCmd::AnswerForm { ask: 4, answer: FormAnswer::Cancel };
    assert_eq!(agent_cmds(&keys(&mut m, "<esc>")), [left]);
}

#[test]
fn a_plan_scrolls_no_further_than_it_goes() {
    let mut m = ready();
    keys(&mut m, "go<ret>");
    plan(&mut m, 4);
    arm(&mut m);
    m.body = crate::tui::model::Body { most: 30, rows: 11 };
    for (typed, scroll) in [
        ("j", 1),
        ("<pagedown>", 11),
        ("G", 30),
        ("jj", 30),
        ("k", 29),
        (" <pageup>", 20),
        ("g", 0),
    ] {
        keys(&mut m, typed);
        assert_eq!(m.asks[0].scroll, scroll, "{typed}");
    }
    let wheel = crate::tui::terminal::input::Mouse {
        kind: crate::tui::terminal::input::MouseKind::WheelDown,
        x: 5,
        y: 5,
    };
    update(&mut m, Msg::Term(TermEvent::Mouse(wheel)));
    assert_eq!(m.asks[0].scroll, 3, "the pane covers the screen");
    m.size = (120, 40);
    let cmds = update(&mut m, Msg::Term(TermEvent::Mouse(wheel)));
    assert_eq!(m.asks[0].scroll, 3, "the transcript is beside it");
    assert!(matches!(cmds.as_slice(), [Cmd::Scroll(Scroll::Lines(3))]));
}

#[test]
fn the_first_page_of_sessions_is_there_at_once_and_a_filter_looks_through_those_to_come() {
    let mut m = ready();
    m.agent.abilities.push(Ability::List);
    let list = |cursor: Option<&str>| AgentCmd::ListSessions { cursor: cursor.map(str::to_owned) };
    assert_eq!(agent_cmds(&keys(&mut m, "/resume<ret>")), [list(None)]);
    let page = |from: usize, next: Option<&str>| {
        let session =
            |n: usize| json!({"sessionId": format!("s{n}"), "title": format!("Session {n}")});
        let sessions: Vec<Value> = (from..from + 50).map(session).collect();
        AgentMsg::Sessions(Ok(json!({"sessions": sessions, "nextCursor": next})))
    };
    let rows = |m: &Model| match &m.overlay {
        Some(Overlay::Picker(picker)) => (picker.total(), picker.visible_items().len()),
        _ => panic!(),
    };
    assert_eq!(agent_cmds(&send(&mut m, page(0, Some("a")))), [], "nobody has looked further yet");
    assert_eq!(rows(&m), (50, 50));
    // Little passes what is typed: page after page is asked for, one at a time.
    assert_eq!(agent_cmds(&keys(&mut m, "1")), [list(Some("a"))]);
    assert_eq!(agent_cmds(&keys(&mut m, "49")), []);
    assert_eq!(agent_cmds(&send(&mut m, page(50, Some("b")))), [list(Some("b"))]);
    assert_eq!(agent_cmds(&send(&mut m, page(100, Some("c")))), [list(Some("c"))]);
    let empty = AgentMsg::Sessions(Ok(json!({"sessions": [], "nextCursor": "d"})));
    assert_eq!(agent_cmds(&send(&mut m, empty)), [], "a list without end is not read to its end");
    assert_eq!(agent_cmds(&send(&mut m, page(150, None))), []);
    assert_eq!(rows(&m), (200, 1));
}

#[test]
fn a_paste_without_brackets_in_pieces_is_one_chip_and_sends_nothing() {
    let mut m = ready();
    let send_burst =
        |m: &mut Model, text: &str| update(m, Msg::Term(TermEvent::Burst(text.to_owned())));
    let piece = "a line of a paste\n".repeat(100);
    let mut sent = Vec::new();
    for n in 0..20 {
        m.now_ms += 5;
        // A piece ends anywhere: here before a line end, which comes alone.
        sent.extend(send_burst(&mut m, piece.trim_end()));
        m.now_ms += 1;
        if n == 19 {
            break;
        }
        sent.extend(update(
            &mut m,
            Msg::Term(TermEvent::Key(Key::plain(crate::tui::keymap::KeyCode::Enter))),
        ));
    }
    assert!(agent_cmds(&sent).is_empty(), "{sent:?}");
    assert!(m.composer.text().starts_with("[pasted #1: 2000 lines]"), "{}", m.composer.text());
    // The Enter key, after a moment.
    m.now_ms += 500;
    let cmds = keys(&mut m, "<ret>");
    let [AgentCmd::Prompt { text, .. }] = &agent_cmds(&cmds)[..] else { panic!("{cmds:?}") };
    assert_eq!(text.trim_end(), [piece.trim_end(); 20].join("\n"));
}

#[test]
fn the_few_characters_that_a_slow_link_tears_off_a_paste_belong_to_its_chip() {
    let mut m = ready();
    let piece = "a line of a paste\n".repeat(100);
    for _ in 0..3 {
        update(&mut m, Msg::Term(TermEvent::Burst(piece.clone())));
        // Too few to be a piece of their own, and later than fast typing is.
        m.now_ms += 40;
        for key in Key::sequence("010") {
            update(&mut m, Msg::Term(TermEvent::Key(key)));
        }
        m.now_ms += 40;
    }
    assert!(m.composer.text().starts_with("[pasted #1: 301 lines]"), "{}", m.composer.text());
    assert!(!m.composer.text().contains("010"), "{}", m.composer.text());
    assert_eq!(m.composer.expanded(), [piece.as_str(); 3].join("010") + "010");
    // Whoever writes after it writes beside it.
    m.now_ms += 100;
    keys(&mut m, "and");
    assert!(m.composer.text().ends_with("]and"), "{}", m.composer.text());
}

#[test]
fn the_last_answer_is_shown_in_full_where_there_is_no_card() {
    use crate::tui::model::PageContent;
    use crate::tui::model::transcript::{Piece, Role};
    let mut m = ready();
    keys(&mut m, "<ctrl-t>");
    assert!(m.overlay.is_none() && m.toast.is_some(), "there is nothing yet");
    let piece = Piece { role: Role::Assistant, parent: None, message_id: None, text: "an answer" };
    let id = m.transcript.append(piece, 0);
    keys(&mut m, "<ctrl-t>");
    let Some(Overlay::Page(page)) = &m.overlay else { panic!("no page") };
    assert_eq!((page.title.as_str(), &page.content), ("answer", &PageContent::Block(id)));
}
