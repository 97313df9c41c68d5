use super::tests::{agent_cmds, keys, prompt, ready, send};
use super::*;
use crate::tui::model::{FirstSession, Phase, Start};
use crate::tui::msg::{AgentCmd, AgentMsg, Failure, Opening};
use serde_json::json;

fn refused() -> Failure {
    Failure { code: -32000, message: "Authentication required".into(), ..Failure::default() }
}

#[test]
fn a_prompt_refused_for_a_login_is_sent_again_after_it_with_what_was_written_since() {
    let mut m = ready();
    m.agent.auth_methods = vec![("key".into(), "Key".into(), String::new())];
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
    assert_eq!(m.agent.auth_methods.len(), 1, "a program's own login is not for authenticate");
    let how = Opening::Load("old".into());
    send(&mut m, AgentMsg::OpenFailed { opening: 1, how: how.clone(), failure: refused() });
    assert!(matches!(m.phase, Phase::NeedsLogin(_)));
    let cmds = send(&mut m, AgentMsg::LoggedIn(Ok(())));
    assert_eq!(agent_cmds(&cmds), [AgentCmd::Open { opening: 2, how }]);
}
