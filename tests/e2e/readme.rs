//! The README's tables against the program: what it documents exists, and what exists it documents.

use clap::CommandFactory as _;
use zcode_acp::cli::Cli;

const README: &str = include_str!("../../README.md");

#[test]
fn every_subcommand_is_in_the_readme() {
    for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        let row = README
            .lines()
            .any(|line| line.starts_with("| `") && line.contains(&format!("`{name}")));
        assert!(row || name == "help", "{name} has no row");
    }
}

#[test]
fn every_settings_key_of_ours_is_in_the_readme() {
    // Keys of the TypeScript bridge's other parts are taken and do nothing; the README says so.
    let idle = ["lang", "goal.maxTurns", "goal.mode", "workflow.mode", "tui.stats", "$schema"];
    for key in zcode_acp::config::known_keys().filter(|key| !key.ends_with(".*")) {
        let told = README.contains(&format!("| `{key}` |"));
        assert!(told != idle.contains(&key), "{key}: told {told}");
    }
}

#[test]
fn every_variable_of_the_readme_is_read_somewhere() {
    let table =
        README.lines().filter(|line| line.starts_with("| ") && line.matches(" | ").count() == 2);
    let mut code = String::new();
    let mut dirs = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => dirs.push(path),
                path => code.push_str(&std::fs::read_to_string(path).unwrap_or_default()),
            }
        }
    }
    let mut seen = 0;
    for line in table {
        let Some(cell) = line.split('|').nth(2) else { continue };
        let names = cell.split('`').skip(1).step_by(2);
        for name in names.filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_')) {
            seen += 1;
            assert!(code.contains(&format!("\"{name}\"")), "{name} is not read");
        }
    }
    assert!(seen > 20, "the table was not found: {seen}");
}

/// Variables of the family that are read and need no row: those of the build, of the engine itself,
/// and of parts that are not here.
const NO_ROW: &[&str] = &[
    "ZCODE_ACP_BUILD_COMMIT",
    "ZCODE_ACP_COMMIT",
    "ZCODE_ACP_PROFILE",
    "ZCODE_ACP_LANG",
    "ZCODE_BASE_URL",
    "ZCODE_BUILTIN_PROVIDER_CONFIG_FILE",
    "ZCODE_DATA_BASE_DIR",
    "ZCODE_PERSONAL_PROVIDER_CONFIG_FILE",
];

#[test]
fn every_variable_that_is_read_is_in_the_readme_and_known_to_doctor() {
    let doctor = include_str!("../../src/doctor/files.rs");
    let (_, lists) = doctor.split_once("const KNOWN_VARIABLES").unwrap();
    let (known, rest) = lists.split_once("];").unwrap();
    let (foreign, _) = rest.split_once("];").unwrap();
    let mut seen = 0;
    for (path, text) in sources("src") {
        let path = path.to_str().unwrap();
        if path.contains("/tests") || path.contains("/sim/") || path.ends_with("doctor/files.rs") {
            continue;
        }
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for name in text.split('"').skip(1).step_by(2).filter(|name| is_variable(name)) {
            let quoted = format!("\"{name}\"");
            if NO_ROW.contains(&name) || foreign.contains(&quoted) {
                continue;
            }
            seen += 1;
            assert!(README.contains(&format!("`{name}`")), "{name} of {path} is not documented");
            let ours = name.starts_with("ZCODE_ACP_");
            assert!(!ours || known.contains(&quoted), "doctor calls {name} a typing mistake");
        }
    }
    assert!(seen > 20, "{seen}");
}

fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
    name.starts_with("ZCODE_") && !name.ends_with('_') && name.chars().all(is_part)
}

/// What the README documents, by its own words, and the tests that hold it. Settings and variables
/// that only fill a field are in one table of their own, `SETTINGS` of `config/load.rs`.
const PROMISES: &[(&str, &[&str])] = &[
    // Exit codes.
    ("exit 0", &["a_reply_is_code_0_and_alone_on_stdout"]),
    (
        "exit 1",
        &[
            "a_failed_turn_is_code_1",
            "without_an_engine_the_page_says_where_it_looked_and_the_code_is_1",
        ],
    ),
    (
        "exit 2",
        &["wrong_arguments_are_code_2", "a_wrong_command_line_is_code_2_and_leaves_stdout_alone"],
    ),
    ("exit 3", &["a_turn_that_the_other_side_cancels_is_code_3"]),
    ("exit 4", &["a_permission_needs_a_rule_and_a_denial_is_code_4_and_said"]),
    ("exit 5", &["no_engine_is_code_5_and_says_where_it_looked"]),
    (
        "exit 6",
        &[
            "a_sign_in_that_is_needed_is_code_6_and_says_how",
            "an_empty_home_is_code_6_and_says_how",
        ],
    ),
    ("exit 124", &["time_up_is_code_124_and_nothing_is_left_behind"]),
    ("exit 130", &["an_interrupt_cancels_the_turn_and_is_code_130"]),
    // Keys.
    ("Enter", &["enter_sends_and_a_second_prompt_waits_for_the_end_of_the_turn"]),
    ("Ctrl-J, Alt-Enter, Shift-Enter", &["every_new_line_key_makes_a_line_and_sends_nothing"]),
    (
        "Esc",
        &[
            "escape_stops_once_keeps_the_draft_and_holds_the_queue",
            "escape_leaves_a_form_with_cancel_and_the_turn_runs_on",
            "the_keys_of_the_readme_open_what_they_say",
        ],
    ),
    ("Ctrl-X", &["a_guide_that_is_taken_in_stands_where_it_was_taken_in"]),
    (
        "Alt-Q",
        &[
            "the_queue_is_a_list_with_its_keys",
            "a_prompt_that_is_deleted_here_can_be_brought_back",
            "messages_of_the_agents_are_changed_by_asking_it",
        ],
    ),
    (
        "Alt-A, Alt-O",
        &[
            "a_look_into_a_nested_subagent_knows_the_way_back",
            "one_subagent_is_cancelled_by_its_own_session",
        ],
    ),
    (
        "`@`",
        &[
            "a_file_that_is_mentioned_goes_along_with_its_text",
            "a_mention_is_chosen_with_a_few_letters_and_goes_with_the_prompt",
        ],
    ),
    (
        "a pasted or dropped path of a picture",
        &[
            "a_pasted_picture_becomes_a_chip_and_goes_with_the_prompt",
            "a_picture_that_cannot_be_sent_stays_text_and_says_why",
        ],
    ),
    ("`/`", &["the_keys_of_the_readme_open_what_they_say"]),
    ("Alt-L", &["the_steps_of_a_plan_stay_in_sight_above_the_composer"]),
    ("Shift-Tab", &["the_keys_of_the_readme_open_what_they_say"]),
    ("Ctrl-T", &["the_keys_of_the_readme_open_what_they_say"]),
    (
        "Ctrl-R, Up, Down",
        &[
            "history_is_gone_through_and_the_draft_comes_back",
            "the_keys_of_the_readme_open_what_they_say",
        ],
    ),
    (
        "Ctrl-G",
        &[
            "the_keys_of_the_readme_open_what_they_say",
            "the_editor_is_the_one_that_the_environment_names",
        ],
    ),
    (
        "F1",
        &[
            "the_keys_of_the_readme_open_what_they_say",
            "a_list_is_filtered_and_the_help_is_the_keymap",
        ],
    ),
    (
        "Ctrl-C twice, Ctrl-D on an empty draft",
        &["ctrl_c_clears_the_draft_then_twice_quits", "ctrl_d_quits_only_on_an_empty_draft"],
    ),
    // Settings and variables that do more than fill a field.
    ("session.mode", &["the_file_beats_the_environment_and_both_beat_the_default"]),
    (
        "session.model",
        &[
            "a_model_that_only_the_engine_knows_is_set_before_the_prompt_is_sent",
            "a_model_that_is_not_there_is_told_on_the_screen_and_the_chat_goes_on",
        ],
    ),
    (
        "session.showCompletionStatus",
        &["who_asked_for_it_is_told_at_the_end_of_each_turn_what_it_took"],
    ),
    (
        "accounts.liveCheck",
        &[
            "nothing_is_asked_unless_the_user_turned_it_on",
            "with_the_live_check_on_the_services_word_beats_the_files_and_quota_has_figures",
        ],
    ),
    (
        "ZCODE_ACP_STEER_PERSIST_MS",
        &["the_environment_sets_how_long_a_guide_waits_for_the_sessions_first_event"],
    ),
    ("ZCODE_ACP_STEER_FK_RETRY_MS", &["the_environment_sets_how_long_a_guide_is_tried_again"]),
    ("BIGMODEL_API_BASE_URL", &["each_service_gets_its_own_token_and_its_word_counts"]),
    ("ZAI_BUSINESS_BASE_URL", &["each_service_gets_its_own_token_and_its_word_counts"]),
    ("ZCODE_PLAN_BALANCE_URL", &["each_service_gets_its_own_token_and_its_word_counts"]),
    ("ZCODE_ACP_APPROVAL_BRIDGE", &["the_approval_bridge_needs_its_switch_and_its_directory"]),
    ("approvals.dir", &["the_approval_bridge_needs_its_switch_and_its_directory"]),
    ("ZCODE_CJS", &["the_engine_is_found_in_the_documented_order"]),
    ("ZCODE_BIN", &["the_engine_is_found_in_the_documented_order"]),
    ("ZCODE_NODE", &["a_named_node_is_taken_without_asking_it"]),
    (
        "ZCODE_HOME",
        &["zcode_home_becomes_the_engines_base_directory", "directories_follow_the_environment"],
    ),
    (
        "tui.theme",
        &["the_chat_is_set_by_the_file", "the_mouse_and_colours_can_be_left_to_the_terminal"],
    ),
    ("COLORFGBG", &["light_and_dark_are_told_apart"]),
    ("tui.mouse", &["the_mouse_and_colours_can_be_left_to_the_terminal"]),
    (
        "ZCODE_ACP_CLIPBOARD",
        &["a_copy_of_a_long_output_is_whole", "the_way_follows_the_surroundings"],
    ),
    ("VISUAL", &["the_editor_is_the_one_that_the_environment_names"]),
    ("EDITOR", &["the_editor_is_the_one_that_the_environment_names"]),
    ("TMPDIR", &["only_a_tmpdir_that_is_too_long_is_replaced"]),
    ("XDG_STATE_HOME", &["directories_follow_the_environment"]),
    ("ZCODE_ACP_LOG", &["a_bare_level_means_this_program_and_nonsense_is_reported"]),
    ("ZCODE_ACP_STATE_DIR", &["directories_follow_the_environment"]),
    ("NO_COLOR", &["colours_follow_what_the_environment_says"]),
    ("COLORTERM", &["colours_follow_what_the_environment_says"]),
    ("TERM", &["colours_follow_what_the_environment_says"]),
    ("LC_ALL", &["only_a_locale_of_another_character_set_is_not_utf8"]),
    ("LC_CTYPE", &["only_a_locale_of_another_character_set_is_not_utf8"]),
    ("LANG", &["only_a_locale_of_another_character_set_is_not_utf8"]),
    // Files.
    (
        "~/.config/zcode-acp/config.json",
        &["a_broken_settings_file_stops_nothing_and_is_reported_by_line_and_key"],
    ),
    (
        "log/zcode-acp.<date>.log",
        &["only_the_user_can_read_the_log", "a_silent_start_touches_no_disk"],
    ),
    (
        "tui/",
        &["a_draft_survives_a_kill", "a_newcomers_first_steps_in_an_empty_home_end_as_documented"],
    ),
    ("demo/", &["sessions_are_listed_shown_exported_and_closed"]),
    (
        "~/.zcode/v2/acp-lazy-sessions.json",
        &["a_record_survives_another_process", "nothing_is_left_behind_but_the_file"],
    ),
    ("~/.zcode-acp/pending/<12 hex>.json", &["the_file_has_the_documented_fields_and_is_private"]),
];

/// The rows of the table that begins with this head, cells trimmed.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    let rows: Vec<Vec<&str>> = README
        .lines()
        .skip_while(|line| *line != head)
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(!rows.is_empty(), "the README has no table {head}");
    rows
}

fn quoted(cell: &'static str) -> impl Iterator<Item = &'static str> {
    cell.split('`').skip(1).step_by(2)
}

/// Everything that the README promises by name.
fn documented() -> Vec<String> {
    let codes = README.lines().find(|line| line.starts_with("Exit codes: 0 done")).unwrap();
    let numbers = codes.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let mut all: Vec<String> = numbers.map(|number| format!("exit {number}")).collect();
    all.extend(table("| key | does |").iter().map(|row| row[0].to_owned()));
    for row in table("| key | variable | meaning, default |") {
        all.extend(quoted(row[0]).chain(quoted(row[1])).map(str::to_owned));
    }
    all.extend(
        table("| file | what |").iter().filter_map(|row| quoted(row[0]).next()).map(str::to_owned),
    );
    assert!(all.len() > 60, "{all:?}");
    all
}

#[test]
fn everything_the_readme_documents_has_a_test_that_exists() {
    let code = all_code();
    let table = include_str!("../../src/config/load.rs");
    let (_, filled) = table.split_once("const SETTINGS: &[Setting]").unwrap();
    let (filled, _) = filled.split_once("];").unwrap();
    for name in documented() {
        let tests =
            PROMISES.iter().find(|(promised, _)| *promised == name).map(|(_, tests)| *tests);
        let is_filled = filled.contains(&format!("\"{name}\""));
        assert!(tests.is_some() || is_filled, "{name} is documented and has no test");
        for test in tests.into_iter().flatten() {
            assert!(code.contains(&format!("fn {test}(")), "{name}: there is no test {test}");
        }
    }
    for (promised, _) in PROMISES {
        assert!(documented().iter().any(|name| name == promised), "{promised} is not documented");
    }
}

#[test]
fn every_threat_of_the_readme_is_held_by_tests_that_exist() {
    let code = all_code();
    for row in table("| threat | what holds it | shown by |") {
        let tests: Vec<&str> = quoted(row[2]).collect();
        assert!(!tests.is_empty(), "{}", row[0]);
        for test in tests {
            assert!(code.contains(&format!("fn {test}(")), "{}: there is no test {test}", row[0]);
        }
    }
}

/// All of the program and its tests.
fn all_code() -> String {
    ["src", "tests"].into_iter().flat_map(sources).map(|(_, text)| text).collect()
}

/// The sources below a directory.
fn sources(below: &str) -> Vec<(std::path::PathBuf, String)> {
    let (mut found, mut dirs) = (Vec::new(), vec![]);
    dirs.push(std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(below));
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => dirs.push(path),
                path if path.extension().is_some_and(|ext| ext == "rs") => {
                    let text = std::fs::read_to_string(&path).unwrap();
                    found.push((path, text));
                }
                _ => {}
            }
        }
    }
    found
}
