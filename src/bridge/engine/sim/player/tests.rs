use super::*;

fn player(json: &str) -> Player {
    let script: Script = serde_json::from_str(json).unwrap();
    Player::new(&script, Vars { prompt: "p".into(), ..Vars::default() })
}

fn kinds(player: &mut Player) -> Vec<String> {
    let mut ids = Ids::new(Some(1));
    std::iter::from_fn(|| player.next(&mut ids))
        .map(|beat| {
            format!("{:?}", beat.action).chars().take_while(|c| c.is_alphanumeric()).collect()
        })
        .collect()
}

#[test]
fn a_tool_ends_the_request_that_called_it() {
    let mut player = player(
        r#"{"name": "t", "steps": [{"say": "a"}, {"tool": {"name": "Bash", "input": {}, "result": "ok"}}, {"say": "b"}]}"#,
    );
    assert_eq!(
        kinds(&mut player),
        [
            "RequestStart",
            "Open",
            "Piece",
            "Close",
            "InputStart",
            "InputPiece",
            "InputEnd",
            "Call",
            "RequestEnd",
            "Scheduled",
            "Started",
            "Result",
            "RequestStart",
            "Open",
            "Piece",
            "Close",
            "RequestEnd"
        ]
    );
}

#[test]
fn nothing_comes_until_the_answer_is_there() {
    let mut player = player(
        r#"{"name": "t", "steps": [{"tool": {"name": "Bash", "input": {}, "permission": {"reason": "r"}, "result": "ok"}}]}"#,
    );
    assert_eq!(kinds(&mut player).last().unwrap(), "Ask");
    assert!(player.is_waiting());
    player.answer(&Answer::Allow { modified: None });
    assert_eq!(kinds(&mut player), ["Started", "Result"]);
    assert!(!player.is_waiting());
}

#[test]
fn steps_are_repeated_as_often_as_asked() {
    let mut player =
        player(r#"{"name": "t", "steps": [{"repeat": {"times": 3, "steps": [{"say": "${i}"}]}}]}"#);
    let mut ids = Ids::new(Some(1));
    let said: String = std::iter::from_fn(|| player.next(&mut ids))
        .filter_map(|beat| if let Action::Piece(_, text) = beat.action { Some(text) } else { None })
        .collect();
    assert_eq!(said, "123");
}

#[test]
fn a_broken_request_goes_on_with_the_same_text() {
    let mut player = player(r#"{"name": "t", "steps": [{"say": "one two three"}]}"#);
    let mut ids = Ids::new(Some(1));
    for _ in 0..3 {
        player.next(&mut ids);
    }
    player.break_request();
    assert_eq!(
        kinds(&mut player),
        ["Close", "RequestEnd", "RequestStart", "Open", "Piece", "Piece", "Close", "RequestEnd"]
    );
}
