use std::path::PathBuf;
use std::sync::Arc;

use super::tests::{agent_cmds, keys, send};
use super::*;
use crate::tui::model::mention::FileList;
use crate::tui::model::transcript::block::BlockKind;
use crate::tui::model::{Overlay, Start};
use crate::tui::msg::{AgentCmd, AgentMsg, Opening};
use serde_json::json;

fn ready(images: bool) -> Model {
    let mut model = Model::new(Start { cwd: "/w".into(), home: "/h".into(), ..Start::default() });
    model.composer_width = 70;
    model.now_ms = 10_000;
    let caps = json!({"agentCapabilities": {"promptCapabilities": {"image": images}}});
    send(&mut model, AgentMsg::Initialized(caps));
    let how = Opening::New;
    let answer = json!({});
    send(&mut model, AgentMsg::Opened { opening: 1, session_id: "s".into(), answer, how });
    model
}

fn list(model: &mut Model) {
    let mut files = FileList::default();
    for path in ["README.md", "src/main.rs", "src/lib.rs", "notes/a b.md"] {
        files.push(path.to_owned());
    }
    update(model, Msg::FilesListed(Arc::new(files)));
}

/// The text of the prompt that is sent, and the paths that go along.
fn sent(cmds: &[Cmd]) -> (String, Vec<PathBuf>) {
    match agent_cmds(cmds).as_slice() {
        [AgentCmd::Prompt { text, files, .. }] => {
            (text.clone(), files.iter().map(|file| file.path.clone()).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn paste(model: &mut Model, text: &str) -> Vec<Cmd> {
    update(model, Msg::Term(TermEvent::Paste(text.to_owned())))
}

#[test]
fn files_are_read_only_when_a_mention_is_typed() {
    let mut m = ready(false);
    let reads = |cmds: &[Cmd]| cmds.iter().filter(|c| **c == Cmd::ListFiles).count();
    assert_eq!(reads(&keys(&mut m, "me at home.de")), 0);
    assert_eq!(reads(&keys(&mut m, "me@home")), 0);
    assert_eq!(reads(&paste(&mut m, " @src/main.rs ")), 0);
    assert_eq!(reads(&keys(&mut m, "<space>@src")), 1, "once for a mention, not for each key");
    list(&mut m);
    assert_eq!(reads(&keys(&mut m, "/<space>@")), 1, "and anew for the next one");
}

#[test]
fn a_mention_is_chosen_with_a_few_letters_and_goes_with_the_prompt() {
    let mut m = ready(false);
    keys(&mut m, "see<space>@");
    assert!(!m.mentions.is_open(), "nothing to choose from yet");
    list(&mut m);
    keys(&mut m, "ma");
    assert!(m.mentions.is_open());
    keys(&mut m, "<tab>");
    assert_eq!(m.composer.text(), "see @src/main.rs ");
    assert!(!m.mentions.is_open());
    keys(&mut m, "and<space>@ab<ret>");
    let (text, files) = sent(&keys(&mut m, "<ret>"));
    assert_eq!(text, "see @src/main.rs and @notes/a b.md ");
    assert_eq!(files, [PathBuf::from("/w/src/main.rs"), "/w/notes/a b.md".into()]);
}

#[test]
fn escape_closes_the_menu_of_files_and_what_was_typed_stays_text() {
    let mut m = ready(false);
    keys(&mut m, "ask<space>@ma");
    list(&mut m);
    assert!(m.mentions.is_open());
    keys(&mut m, "<esc>");
    keys(&mut m, "r");
    assert!(!m.mentions.is_open(), "closed for this word");
    let (text, files) = sent(&keys(&mut m, "<ret>"));
    assert_eq!((text.as_str(), files.len()), ("ask @mar", 0));
    keys(&mut m, "@ma");
    assert!(m.mentions.is_open(), "but not for the next one");
}

#[test]
fn a_file_whose_path_was_typed_whole_needs_no_choosing() {
    let mut m = ready(false);
    keys(&mut m, "@src/lib.rs");
    list(&mut m);
    let (text, files) = sent(&keys(&mut m, "<space>please<ret>"));
    assert_eq!(text, "@src/lib.rs please");
    assert_eq!(files, [PathBuf::from("/w/src/lib.rs")]);
}

#[test]
fn a_mention_in_pasted_text_takes_nothing_along() {
    let mut m = ready(false);
    list(&mut m);
    paste(&mut m, "see @src/main.rs");
    assert_eq!(sent(&keys(&mut m, "<ret>")).1, Vec::<PathBuf>::new());
    // Nor does one that comes without brackets, faster than fingers.
    let mut m = ready(false);
    list(&mut m);
    for key in crate::tui::keymap::Key::sequence("see<space>@src/m") {
        m.now_ms += 1;
        update(&mut m, Msg::Term(TermEvent::Key(key)));
        assert!(!m.mentions.is_open() && !m.mentions.loading);
    }
}

#[test]
fn a_pasted_picture_becomes_a_chip_and_goes_with_the_prompt() {
    let mut m = ready(true);
    keys(&mut m, "what<space>is<space>");
    let cmds = paste(&mut m, "'/t/my shot.png'");
    let [Cmd::LookAtPicture { word, path }] = cmds.as_slice() else { panic!("{cmds:?}") };
    // Typing goes on before the picture was looked at.
    keys(&mut m, "?");
    let (word, path) = (word.clone(), path.clone());
    update(&mut m, Msg::PictureLookedAt { word, path, result: Ok(()) });
    assert_eq!(m.composer.text(), "what is [image my shot.png]?");
    assert_eq!(m.composer.caret(), m.composer.text().len());
    let draft = draft_of(&m);
    let (text, files) = sent(&keys(&mut m, "<ret>"));
    assert_eq!((text.as_str(), files), ("what is /t/my shot.png?", vec!["/t/my shot.png".into()]));
    // The draft that was left behind still has its picture.
    let again = Model::new(Start { draft: Some(draft), ..Start::default() });
    assert_eq!(again.mentions.in_text(&again.composer.expanded()).len(), 1);
}

#[test]
fn a_picture_that_cannot_be_sent_stays_text_and_says_why() {
    let mut m = ready(true);
    paste(&mut m, "/t/x.png");
    let result = Err("its content is no png, jpeg, gif or webp".to_owned());
    let (word, path) = ("/t/x.png".to_owned(), "/t/x.png".into());
    update(&mut m, Msg::PictureLookedAt { word, path, result });
    assert_eq!(m.composer.text(), "/t/x.png");
    assert!(m.toast.as_ref().is_some_and(|(said, _)| said.contains("no png")));
    let mut m = ready(false);
    assert_eq!(paste(&mut m, "/t/x.png"), []);
    assert!(m.toast.as_ref().is_some_and(|(said, _)| said.contains("takes no pictures")));
    assert_eq!(sent(&keys(&mut m, "<ret>")), ("/t/x.png".to_owned(), Vec::new()));
}

#[test]
fn a_mention_in_a_draft_that_was_left_is_one_again_after_a_restart() {
    let mut m = ready(false);
    keys(&mut m, "see<space>@ma");
    list(&mut m);
    keys(&mut m, "<tab>");
    let draft = draft_of(&m);
    assert_eq!(draft.mentions, ["src/main.rs"]);
    let start = Start { cwd: "/w".into(), draft: Some(draft), ..Start::default() };
    let mut m = Model::new(start);
    send(&mut m, AgentMsg::Initialized(json!({})));
    let how = Opening::New;
    let answer = json!({});
    send(&mut m, AgentMsg::Opened { opening: 1, session_id: "s".into(), answer, how });
    let (text, files) = sent(&keys(&mut m, "please<ret>"));
    assert_eq!(text, "see @src/main.rs please");
    assert_eq!(files, [PathBuf::from("/w/src/main.rs")]);
}

#[test]
fn a_picture_stands_by_its_name_in_the_transcript_and_comes_back_as_a_chip() {
    let mut m = ready(true);
    keys(&mut m, "look<space>");
    paste(&mut m, "/t/a.png");
    let looked = |m: &mut Model| {
        let (word, path) = ("/t/a.png".to_owned(), "/t/a.png".into());
        update(m, Msg::PictureLookedAt { word, path, result: Ok(()) })
    };
    looked(&mut m);
    let (text, files) = sent(&keys(&mut m, "<ret>"));
    assert_eq!((text.as_str(), files.len()), ("look /t/a.png", 1));
    let shown = m.transcript.blocks().iter().find_map(|block| match &block.kind {
        BlockKind::User(message) => Some(message.pictures.clone()),
        _ => None,
    });
    assert_eq!(shown, Some(vec![("/t/a.png".into(), "[image a.png]".into())]));
    // From the history, by its key and by its list.
    let wish = Cmd::LookAtPicture { word: "/t/a.png".into(), path: "/t/a.png".into() };
    assert!(keys(&mut m, "<up>").contains(&wish));
    looked(&mut m);
    assert_eq!(m.composer.text(), "look [image a.png]");
    keys(&mut m, "<ctrl-r>");
    let Some(Overlay::Picker(picker)) = &m.overlay else { panic!("no list") };
    assert_eq!(picker.selected_item().unwrap().label, "look [image a.png]");
}
