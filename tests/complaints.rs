//! What users of other terminal agents report about drawing, and what holds it here: each public
//! report of flicker and scrolling (1 to 18), memory (27 to 29), large output (30 to 38) and wide
//! text (39 to 48) with the tests that cover it, or the reason why it cannot happen.

use std::path::Path;

/// What holds a complaint.
enum Held {
    /// These tests.
    By(&'static [&'static str]),
    /// The design: there is nothing that could fail.
    Because(&'static str),
}

use Held::{Because, By};

const STREAM: &str =
    "a_stream_of_two_thousand_lines_only_writes_what_changed_and_ends_as_drawn_at_once";

const COMPLAINTS: &[(u32, &str, Held)] = &[
    (
        1,
        "clears the screen for frames taller than the pane",
        By(&[
            STREAM,
            "a_command_that_prints_more_than_the_screen_has_never_clears_it",
            "no_frame_clears_the_screen",
        ]),
    ),
    (
        2,
        "megabytes of repaints",
        By(&[STREAM, "a_streaming_frame_is_small", "only_the_changed_cells_are_written"]),
    ),
    (3, "thousands of scroll events a second in tmux", By(&[STREAM])),
    (
        4,
        "jumps to the top while output arrives",
        By(&["the_tail_is_followed_and_a_scrolled_reader_stays"]),
    ),
    (
        6,
        "corrupt under GNU screen",
        By(&[
            "in_gnu_screen_nothing_but_what_it_documents_is_written_and_a_redraw_changes_nothing",
            STREAM,
            "text_that_runs_through_the_screen_is_moved_by_the_terminal_and_ends_equal",
            "a_resize_keeps_the_place_and_every_width_draws",
        ]),
    ),
    (
        7,
        "the cursor jumps about",
        By(&["while_a_spinner_runs_the_cursor_rests_at_the_caret_and_is_neither_hidden_nor_shown"]),
    ),
    (
        8,
        "synchronized output decided by TERM",
        By(&["a_terminal_that_says_so_gets_whole_frames_whatever_it_is_called"]),
    ),
    (
        9,
        "redraws without end",
        By(&["a_frame_in_which_nothing_changed_writes_nothing", "an_idle_model_has_nothing_due"]),
    ),
    (
        10,
        "tiny windows loop",
        By(&["a_tiny_window_with_long_output_and_a_permission_is_drawn_once_and_rests"]),
    ),
    (
        11,
        "the wheel duplicates the composer",
        By(&["the_wheel_while_text_streams_moves_three_rows_and_leaves_one_composer"]),
    ),
    (
        12,
        "the cursor flickers",
        By(&[
            "while_a_spinner_runs_the_cursor_rests_at_the_caret_and_is_neither_hidden_nor_shown",
            "a_frame_that_changes_nothing_writes_nothing",
        ]),
    ),
    (
        13,
        "a zoomed pane loses the last message",
        By(&["a_pane_that_is_split_and_zoomed_keeps_every_number_once_and_the_last_message"]),
    ),
    (
        14,
        "a zoomed pane repeats or drops lines",
        By(&[
            "a_pane_that_is_split_and_zoomed_keeps_every_number_once_and_the_last_message",
            "a_stream_that_is_detached_from_and_attached_to_at_another_size_is_drawn_true_and_once",
        ]),
    ),
    (
        15,
        "no scrollback in Zellij",
        Because("scrolling is inside the program; the scrollback is not used"),
    ),
    (
        16,
        "cannot scroll at an approval",
        By(&[
            "the_transcript_scrolls_while_something_is_asked",
            "the_transcript_pages_while_a_permission_waits_below_a_plan_of_300_lines",
        ]),
    ),
    (
        17,
        "a wheel step teleports",
        By(&[
            "wheel_steps_move_as_far_as_they_say",
            "the_wheel_while_text_streams_moves_three_rows_and_leaves_one_composer",
        ]),
    ),
    (
        18,
        "new output drags a scrolled view",
        By(&[
            "the_tail_is_followed_and_a_scrolled_reader_stays",
            "a_toggled_card_keeps_its_header_in_place",
            "answering_a_command_taller_than_the_screen_moves_no_reader",
        ]),
    ),
    (
        27,
        "gigabytes after hours of output",
        By(&[
            "two_thousand_outputs_of_a_megabyte_stay_within_memory_and_lose_nothing",
            "caches_are_bounded_while_everything_is_passed",
        ]),
    ),
    (
        28,
        "reopening a session costs gigabytes",
        By(&[
            "everything_that_outgrows_the_cap_is_on_disk_in_order",
            "an_evicted_text_keeps_its_end_and_its_copy_on_disk",
        ]),
    ),
    (
        29,
        "an index of the home directory",
        By(&[
            "files_are_read_only_when_a_mention_is_typed",
            "no_link_leads_out_and_the_number_is_bounded",
        ]),
    ),
    (30, "35,000 lines hang it", By(&["thirty_five_thousand_lines_in_one_update_draw_their_end"])),
    (
        31,
        "raw control sequences reach the screen",
        By(&[
            "control_sequences_in_output_never_reach_a_cell",
            "no_control_character_ever_comes_out",
        ]),
    ),
    (
        32,
        "a long diff crawls",
        By(&[
            "ten_thousand_changed_lines_open_at_once",
            "a_long_diff_is_drawn_and_coloured_only_where_one_looks",
            "scrolling_line_by_line_makes_every_row_once",
        ]),
    ),
    (
        33,
        "progress shown as garbage",
        By(&["overwritten_progress_shows_its_last_state_however_it_is_split"]),
    ),
    (34, "a carriage return split over two updates", By(&["how_output_is_split_does_not_matter"])),
    (36, "a hundred subagents crawl", By(&["a_hundred_children_cost_one_card"])),
    (
        37,
        "expanding everything freezes",
        By(&["five_hundred_cards_of_two_thousand_lines_unfold_at_once"]),
    ),
    (
        38,
        "pieces of SGR are visible at the edge",
        By(&["colours_of_output_survive_wrapping_at_the_edge"]),
    ),
    (
        39,
        "CJK garbled without a UTF-8 locale",
        By(&[
            "without_utf8_and_colours_it_is_still_readable",
            "without_utf8_no_sign_of_ours_is_left_on_any_screen",
            "without_a_utf8_locale_only_letters_of_the_answer_are_not_ascii",
        ]),
    ),
    (
        40,
        "CJK tables misaligned",
        By(&[
            "columns_of_mixed_scripts_stay_aligned_at_every_width",
            "everything_has_its_place_at_40",
            "everything_has_its_place_at_80",
        ]),
    ),
    (
        42,
        "copied CJK is mojibake",
        By(&[
            "osc_52_carries_utf8_as_base64_through_whatever_lies_between",
            "prose_is_copied_as_its_markdown_without_the_line_ends_of_wrapping",
        ]),
    ),
    (
        45,
        "the cursor is parked away from the caret, and input methods draw there",
        By(&[
            "while_a_spinner_runs_the_cursor_rests_at_the_caret_and_is_neither_hidden_nor_shown",
            "a_long_draft_keeps_its_caret_in_sight",
        ]),
    ),
    (
        47,
        "padding by characters, not cells",
        By(&[
            "names_of_wide_symbols_shift_nothing_in_the_status_lines",
            "cutting_counts_cells_and_marks_the_cut",
            "every_cell_is_as_wide_as_it_was_measured",
        ]),
    ),
    (
        48,
        "symbols of doubtful width shift what follows",
        By(&[
            "a_frame_around_doubtful_symbols_has_a_straight_border",
            "a_width_that_is_seen_differently_smears_neither_its_row_nor_the_next",
            "an_unsure_width_is_followed_by_a_placed_cursor",
            "a_wide_symbol_that_the_terminal_takes_for_narrow_leaves_nothing_of_before",
        ]),
    ),
    (
        58,
        "the copy goes to the machine that tmux was started on",
        By(&[
            "the_way_follows_the_surroundings",
            "a_local_client_of_tmux_gets_the_system_clipboard_too",
        ]),
    ),
    (
        59,
        "copied, it says, and nothing was",
        By(&[
            "only_what_happened_is_told",
            "a_program_that_fails_is_told_and_the_next_way_is_taken",
        ]),
    ),
    (60, "a hard-coded wrap for tmux", By(&["the_way_follows_the_surroundings"])),
    (
        64,
        "no clipboard under mosh",
        By(&[
            "mosh_is_found_among_the_processes_above",
            "a_text_that_nothing_takes_is_in_a_private_file",
        ]),
    ),
    (
        65,
        "a wrapped address cannot be used",
        By(&[
            "an_address_of_two_hundred_characters_is_whole_on_a_phone",
            "where_links_are_taken_the_label_carries_the_address_over_every_row",
            "a_link_in_a_cell_is_a_link_where_they_are_taken_and_shows_its_address_elsewhere",
        ]),
    ),
];

fn sources(dir: &Path, out: &mut String) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, out)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push_str(&std::fs::read_to_string(path)?);
        }
    }
    Ok(())
}

#[test]
fn every_complaint_about_drawing_is_held_by_a_test_or_a_reason() {
    let mut all = String::new();
    for dir in ["src", "tests/e2e"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(dir), &mut all).unwrap();
    }
    for (number, what, held) in COMPLAINTS {
        match held {
            By(tests) => {
                for test in *tests {
                    let exists = all.contains(&format!("fn {test}("));
                    assert!(exists, "{number} ({what}): there is no test {test}");
                }
            }
            Because(reason) => assert!(!reason.is_empty(), "{number} ({what})"),
        }
    }
}
