use super::tests::{agent_cmds, keys, prompt, ready, send};
use super::*;
use crate::tui::model::login::{AuthMethod, LoginProgram};
use crate::tui::model::transcript::block::BlockKind;
use crate::tui::model::{Ability, FirstSession, Phase, Start};
use crate::tui::msg::{AgentCmd, AgentMsg, Failure, Opening};
use serde_json::json;

fn refused() -> Failure {
    Failure { code: -32000, message: "Authentication required".into(), ..Failure::default() }
}

fn method(id: &str, program: Option<LoginProgram>) -> AuthMethod {
    AuthMethod { id: id.into(), name: id.into(), program, ..AuthMethod::default() }
}

#[test]
fn a_prompt_refused_for_a_login_is_sent_again_after_it_with_what_was_written_since() {
    let mut m = ready();
    m.agent.auth_methods = vec![method("key", None)];
    keys(&mut m, "first<ret>");
    keys(&mut m, "half");
    send(&mut m, AgentMsg::TurnEnded { session_id: "s".into(), result: Err(refused()) });
    assert!(matches!(m.phase, Phase::NeedsLogin(_)));
    assert_eq!(m.composer.text(), "half");
    assert_eq!(m.queue.iter().collect::<Vec<_>>(), ["first"]);
    keys(&mut m, "<space>more<ret>");
    let login = agent_cmds(&keys(&mut m, "<ret>"));
    assert_eq!(login, [AgentCmd::Authenticate { method: "key".into() }]);
    send(&mut m, AgentMsg::LoggedIn(Err(refused())));
    assert_eq!(m.queue.len(), 2, "a login that fails loses nothing");
    let cmds = send(&mut m, AgentMsg::LoggedIn(Ok(())));
    assert_eq!(agent_cmds(&cmds), [prompt("first")]);
    assert_eq!(m.queue.iter().collect::<Vec<_>>(), ["half more"]);
}

#[test]
fn a_session_that_needed_a_login_is_the_one_that_is_opened_after_it() {
    let first = FirstSession::Named("old".into());
    let mut m = Model::new(Start { first, ..Start::default() });
    let answer = json!({"agentCapabilities": {"loadSession": true}, "authMethods": [
        {"id": "key", "name": "Key"}, {"id": "own", "name": "Own", "type": "terminal"}]});
    send(&mut m, AgentMsg::Initialized(answer));
    let how = Opening::Load("old".into());
    send(&mut m, AgentMsg::OpenFailed { opening: 1, how: how.clone(), failure: refused() });
    assert!(matches!(m.phase, Phase::NeedsLogin(_)));
    let cmds = send(&mut m, AgentMsg::LoggedIn(Ok(())));
    assert_eq!(agent_cmds(&cmds), [AgentCmd::Open { opening: 2, how }]);
}

#[test]
fn the_ways_to_log_in_are_read_with_the_program_that_each_needs() {
    let mut m = Model::new(Start::default());
    let answer = json!({"authMethods": [
        {"id": "key", "name": "Key", "description": "from the environment"},
        {"id": "own", "name": "Own", "type": "terminal", "args": ["--login", 7], "env": {"A": "b", "C": 1}},
        {"id": "old", "_meta": {"terminal-auth": {"label": "x", "command": "/bin/other", "args": ["login"]}}},
        {"name": "nameless"}]});
    send(&mut m, AgentMsg::Initialized(answer));
    let own = LoginProgram {
        command: None,
        args: vec!["--login".into()],
        env: vec![("A".into(), "b".into())],
    };
    let old = LoginProgram {
        command: Some("/bin/other".into()),
        args: vec!["login".into()],
        env: Vec::new(),
    };
    let methods = &m.agent.auth_methods;
    assert_eq!(methods.len(), 3);
    assert_eq!((methods[0].about.as_str(), &methods[0].program), ("from the environment", &None));
    assert_eq!(methods[1].about, "runs the agent's own program --login");
    assert_eq!(methods[1].program, Some(own));
    assert_eq!(
        (methods[2].name.as_str(), methods[2].about.as_str()),
        ("old", "runs /bin/other login")
    );
    assert_eq!(methods[2].program, Some(old));
}

#[test]
fn a_login_that_is_a_program_starts_the_agent_again_and_goes_on_with_the_prompt() {
    let mut m = ready();
    m.agent.abilities.push(Ability::Resume);
    let program = LoginProgram { args: vec!["--login".into()], ..LoginProgram::default() };
    m.agent.auth_methods = vec![method("own", Some(program.clone()))];
    keys(&mut m, "/login<ret>");
    keys(&mut m, "first<ret>");
    let running = keys(&mut m, "/login<ret>");
    assert!(running.is_empty(), "not while a turn runs: {running:?}");
    send(&mut m, AgentMsg::TurnEnded { session_id: "s".into(), result: Err(refused()) });
    let cmds = keys(&mut m, "<ret>");
    assert!(cmds.contains(&Cmd::LogIn(program)), "never by `authenticate`: {cmds:?}");
    update(&mut m, Msg::LoginEnded(Err("the login ended with exit status: 1".into())));
    assert!(matches!(m.phase, Phase::NeedsLogin(_)));
    assert_eq!(m.queue.iter().collect::<Vec<_>>(), ["first"], "a login that fails loses nothing");
    let cmds = update(&mut m, Msg::LoginEnded(Ok(())));
    assert_eq!(agent_cmds(&cmds), [AgentCmd::Restart]);
    let answer = json!({"agentCapabilities": {"sessionCapabilities": {"resume": {}}}});
    let cmds = send(&mut m, AgentMsg::Initialized(answer));
    let how = Opening::Resume("s".into());
    let AgentCmd::Open { opening, .. } = agent_cmds(&cmds)[0] else { panic!("{cmds:?}") };
    let opened = AgentMsg::Opened { opening, session_id: "s".into(), answer: json!({}), how };
    assert_eq!(agent_cmds(&send(&mut m, opened)), [prompt("first")]);
}

#[test]
fn an_agent_that_lost_the_session_is_never_taken_for_one_that_knows_it() {
    let mut m = ready();
    keys(&mut m, "first<ret>");
    let ended = json!({"stopReason": "end_turn"});
    send(&mut m, AgentMsg::TurnEnded { session_id: "s".into(), result: Ok(ended) });
    send(&mut m, AgentMsg::Gone(Failure::default()));
    keys(&mut m, "<ret>");
    let cmds = send(&mut m, AgentMsg::Initialized(json!({})));
    let how = Opening::New;
    assert!(matches!(&agent_cmds(&cmds)[0], AgentCmd::Open { how: Opening::New, .. }));
    assert_eq!(m.session.id, None, "what the new session says first is its own");
    let told = m.transcript.blocks().iter().any(|block| {
        matches!(&block.kind, BlockKind::Notice(notice) if notice.title.contains("a new one was started"))
    });
    assert!(told);
    let AgentCmd::Open { opening, .. } = agent_cmds(&cmds)[0] else { panic!("{cmds:?}") };
    let opened = AgentMsg::Opened { opening, session_id: "t".into(), answer: json!({}), how };
    send(&mut m, opened);
    assert_eq!(m.session.id.as_deref(), Some("t"));
}
