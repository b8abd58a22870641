//! What every store must do: the cases that a store of one's own must pass, as those of this crate do.
//!
//! ```
//! use loopctl::journal::conformance;
//! use loopctl::journal::memory::MemoryJournal;
//!
//! for (name, case) in conformance::CASES {
//!     println!("{name}");
//!     case(&MemoryJournal::new());
//! }
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a case panics when the store fails it"
)]

mod administration;
mod answer_tokens;
mod audit;
mod basics;
mod decisions;
mod ledger;
mod lines;
mod lists;
mod outside_events;
mod queue;
mod reads;
mod rows;
mod schedules;

use serde_json::Value;

use super::*;

/// A case: it panics when the store, which must be new, fails it.
pub type Case = fn(&dyn Journal);

/// All cases, each with its name. They run on no runtime.
pub const CASES: &[(&str, Case)] = &[
    ("long_texts_come_back_to_each_run_that_named_them", basics::long_texts_come_back_to_each_run_that_named_them),
    (
        "only_the_next_event_is_taken_and_a_refused_one_leaves_nothing",
        basics::only_the_next_event_is_taken_and_a_refused_one_leaves_nothing,
    ),
    (
        "events_of_one_decision_are_written_together_and_the_last_one_may_be_refused",
        basics::events_of_one_decision_are_written_together_and_the_last_one_may_be_refused,
    ),
    ("the_same_id_is_the_same_run_or_a_conflict", basics::the_same_id_is_the_same_run_or_a_conflict),
    ("of_a_hundred_who_make_one_run_at_once_one_makes_it", basics::of_a_hundred_who_make_one_run_at_once_one_makes_it),
    ("of_many_who_begin_with_one_key_at_once_one_begins", basics::of_many_who_begin_with_one_key_at_once_one_begins),
    (
        "a_run_has_one_driver_and_each_lease_a_higher_number",
        basics::a_run_has_one_driver_and_each_lease_a_higher_number,
    ),
    (
        "an_old_lease_writes_nothing_confirms_nothing_and_gives_nothing_back",
        basics::an_old_lease_writes_nothing_confirms_nothing_and_gives_nothing_back,
    ),
    ("what_is_not_there_is_said_to_be_not_there", basics::what_is_not_there_is_said_to_be_not_there),
    ("a_list_shows_the_newest_first_with_their_standing", basics::a_list_shows_the_newest_first_with_their_standing),
    (
        "a_session_remembers_what_came_with_an_event_and_the_last_word_counts",
        basics::a_session_remembers_what_came_with_an_event_and_the_last_word_counts,
    ),
    ("a_run_without_a_session_leaves_no_memory", basics::a_run_without_a_session_leaves_no_memory),
    (
        "an_end_is_asked_for_once_and_the_first_reason_stays",
        basics::an_end_is_asked_for_once_and_the_first_reason_stays,
    ),
    ("many_runs_that_append_at_once_lose_nothing", basics::many_runs_that_append_at_once_lose_nothing),
    (
        "a_token_is_found_by_its_run_and_its_hash_together",
        answer_tokens::a_token_is_found_by_its_run_and_its_hash_together,
    ),
    ("a_token_is_used_up_with_its_event_or_not_at_all", answer_tokens::a_token_is_used_up_with_its_event_or_not_at_all),
    ("a_token_of_another_run_is_not_used_up", answer_tokens::a_token_of_another_run_is_not_used_up),
    (
        "tokens_that_are_issued_again_leave_the_earlier_ones_valid_up_to_a_number",
        answer_tokens::tokens_that_are_issued_again_leave_the_earlier_ones_valid_up_to_a_number,
    ),
    ("a_decision_waits_for_the_driver_one_for_each_step", decisions::a_decision_waits_for_the_driver_one_for_each_step),
    ("a_decision_is_taken_with_its_event_or_not_at_all", decisions::a_decision_is_taken_with_its_event_or_not_at_all),
    (
        "a_run_that_pauses_before_its_decision_is_taken_is_claimed",
        decisions::a_run_that_pauses_before_its_decision_is_taken_is_claimed,
    ),
    (
        "an_event_is_kept_once_for_its_organisation_and_for_its_time",
        outside_events::an_event_is_kept_once_for_its_organisation_and_for_its_time,
    ),
    ("an_organisation_has_a_bounded_number_of_events", outside_events::an_organisation_has_a_bounded_number_of_events),
    (
        "the_runs_that_wait_for_an_event_are_found_by_its_name_and_woken",
        outside_events::the_runs_that_wait_for_an_event_are_found_by_its_name_and_woken,
    ),
    (
        "an_event_that_is_queued_for_a_run_is_kept_for_no_other_one",
        outside_events::an_event_that_is_queued_for_a_run_is_kept_for_no_other_one,
    ),
    (
        "what_is_queued_of_an_event_says_whether_it_was_marked_for_its_run",
        outside_events::what_is_queued_of_an_event_says_whether_it_was_marked_for_its_run,
    ),
    ("the_last_posted_pause_only_grows", answer_tokens::the_last_posted_pause_only_grows),
    ("a_list_holds_what_it_is_asked_for", lists::a_list_holds_what_it_is_asked_for),
    (
        "what_waits_for_a_human_is_listed_also_while_its_run_is_under_way",
        lists::what_waits_for_a_human_is_listed_also_while_its_run_is_under_way,
    ),
    ("reports_count_the_rows_that_lists_show", lists::reports_count_the_rows_that_lists_show),
    (
        "several_statuses_at_once_are_listed_exactly_as_they_are_shown",
        lists::several_statuses_at_once_are_listed_exactly_as_they_are_shown,
    ),
    (
        "a_run_is_found_by_its_organisation_and_its_id_together",
        lists::a_run_is_found_by_its_organisation_and_its_id_together,
    ),
    (
        "the_runs_that_a_run_called_are_counted_with_those_that_they_called",
        lists::the_runs_that_a_run_called_are_counted_with_those_that_they_called,
    ),
    ("a_callback_is_pending_until_it_is_noted_otherwise", lists::a_callback_is_pending_until_it_is_noted_otherwise),
    (
        "the_end_of_a_run_that_continued_is_posted_whatever_is_noted_of_its_earlier_end",
        lists::the_end_of_a_run_that_continued_is_posted_whatever_is_noted_of_its_earlier_end,
    ),
    (
        "runs_that_nobody_drives_are_claimed_by_their_owners_the_oldest_first",
        queue::runs_that_nobody_drives_are_claimed_by_their_owners_the_oldest_first,
    ),
    ("of_many_who_claim_at_once_each_run_has_one_driver", queue::of_many_who_claim_at_once_each_run_has_one_driver),
    (
        "a_waiting_run_is_claimed_when_something_is_due_and_one_that_waits_for_its_model_when_it_is_to_ask_again",
        queue::a_waiting_run_is_claimed_when_something_is_due_and_one_that_waits_for_its_model_when_it_is_to_ask_again,
    ),
    (
        "read_only_copies_are_never_claimed_and_are_other_runs_than_those_of_their_id",
        queue::read_only_copies_are_never_claimed_and_are_other_runs_than_those_of_their_id,
    ),
    (
        "the_lease_is_released_with_the_last_event_or_not_at_all",
        queue::the_lease_is_released_with_the_last_event_or_not_at_all,
    ),
    ("heads_show_how_far_runs_are", queue::heads_show_how_far_runs_are),
    (
        "a_callback_is_its_driver_s_first_and_is_put_off_as_long_as_it_says",
        queue::a_callback_is_its_driver_s_first_and_is_put_off_as_long_as_it_says,
    ),
    (
        "only_runs_that_ended_long_ago_are_pruned_with_those_that_they_called",
        administration::only_runs_that_ended_long_ago_are_pruned_with_those_that_they_called,
    ),
    ("runs_are_pruned_in_batches_the_oldest_first", administration::runs_are_pruned_in_batches_the_oldest_first),
    ("runs_are_pruned_by_their_loops", administration::runs_are_pruned_by_their_loops),
    (
        "named_runs_and_the_memory_of_a_session_are_deleted",
        administration::named_runs_and_the_memory_of_a_session_are_deleted,
    ),
    (
        "imported_runs_are_pruned_as_cancelled_ones_also_when_they_had_not_ended",
        administration::imported_runs_are_pruned_as_cancelled_ones_also_when_they_had_not_ended,
    ),
    ("runs_are_found_by_when_they_ended", lists::runs_are_found_by_when_they_ended),
    (
        "runs_that_need_somebody_are_counted_as_a_list_of_them_shows",
        lists::runs_that_need_somebody_are_counted_as_a_list_of_them_shows,
    ),
    ("a_key_is_free_again_when_its_run_is_pruned", administration::a_key_is_free_again_when_its_run_is_pruned),
    ("a_worker_lists_itself_with_what_it_has", administration::a_worker_lists_itself_with_what_it_has),
    ("what_a_copy_needs_is_read_as_it_was_written", administration::what_a_copy_needs_is_read_as_it_was_written),
    (
        "a_run_of_a_schedule_is_known_by_its_time_and_not_by_its_id",
        schedules::a_run_of_a_schedule_is_known_by_its_time_and_not_by_its_id,
    ),
    (
        "a_schedule_is_known_since_it_was_first_served_as_it_is",
        schedules::a_schedule_is_known_since_it_was_first_served_as_it_is,
    ),
    ("what_a_clock_that_was_ahead_wrote_does_not_count", schedules::what_a_clock_that_was_ahead_wrote_does_not_count),
    (
        "the_last_time_of_a_schedule_is_known_after_its_runs_are_pruned",
        schedules::the_last_time_of_a_schedule_is_known_after_its_runs_are_pruned,
    ),
    ("a_row_shows_what_its_events_came_to", rows::a_row_shows_what_its_events_came_to),
    (
        "a_row_of_an_older_version_is_completed_once_and_by_its_own_status",
        rows::a_row_of_an_older_version_is_completed_once_and_by_its_own_status,
    ),
    ("runs_are_found_by_their_objective_and_input", rows::runs_are_found_by_their_objective_and_input),
    (
        "a_run_that_is_about_nothing_has_no_title_and_a_whole_row",
        rows::a_run_that_is_about_nothing_has_no_title_and_a_whole_row,
    ),
    ("a_row_names_the_schedule_that_started_it", rows::a_row_names_the_schedule_that_started_it),
    (
        "runs_of_a_line_have_places_in_the_order_in_which_they_joined_it",
        lines::runs_of_a_line_have_places_in_the_order_in_which_they_joined_it,
    ),
    ("a_run_that_can_continue_has_its_place", lines::a_run_that_can_continue_has_its_place),
    (
        "a_run_that_continues_after_its_end_joins_its_line_anew",
        lines::a_run_that_continues_after_its_end_joins_its_line_anew,
    ),
    (
        "a_run_that_does_not_wait_is_refused_or_may_be_driven",
        lines::a_run_that_does_not_wait_is_refused_or_may_be_driven,
    ),
    (
        "of_many_that_do_not_wait_one_starts_and_the_others_leave_nothing",
        lines::of_many_that_do_not_wait_one_starts_and_the_others_leave_nothing,
    ),
    ("of_many_that_join_a_line_at_once_one_is_first", lines::of_many_that_join_a_line_at_once_one_is_first),
    ("a_run_reads_as_it_was_written", reads::a_run_reads_as_it_was_written),
    (
        "a_part_of_a_run_ends_with_the_event_that_comes_to_its_bound",
        reads::a_part_of_a_run_ends_with_the_event_that_comes_to_its_bound,
    ),
    ("texts_of_any_kind_come_back_as_they_are", reads::texts_of_any_kind_come_back_as_they_are),
    ("a_line_is_written_with_its_event_or_not_at_all", audit::a_line_is_written_with_its_event_or_not_at_all),
    (
        "lines_are_found_by_what_they_say_and_stay_when_their_run_is_pruned",
        audit::lines_are_found_by_what_they_say_and_stay_when_their_run_is_pruned,
    ),
    (
        "a_loop_is_switched_off_and_on_again_with_a_line_of_it",
        audit::a_loop_is_switched_off_and_on_again_with_a_line_of_it,
    ),
    (
        "what_is_reserved_and_what_was_spent_is_never_more_than_the_most",
        ledger::what_is_reserved_and_what_was_spent_is_never_more_than_the_most,
    ),
    ("money_is_held_as_tokens_are", ledger::money_is_held_as_tokens_are),
    ("shares_of_a_rate_are_taken_in_turns_and_given_back", ledger::shares_of_a_rate_are_taken_in_turns_and_given_back),
    (
        "a_new_day_begins_with_nothing_spent_and_what_is_reserved_stays",
        ledger::a_new_day_begins_with_nothing_spent_and_what_is_reserved_stays,
    ),
    (
        "what_was_spent_leaves_a_rolling_window_part_by_part",
        ledger::what_was_spent_leaves_a_rolling_window_part_by_part,
    ),
    (
        "what_a_driver_reserved_is_given_back_when_its_lease_is_over",
        ledger::what_a_driver_reserved_is_given_back_when_its_lease_is_over,
    ),
    (
        "an_account_without_a_time_counts_what_is_under_way_and_is_no_limit",
        ledger::an_account_without_a_time_counts_what_is_under_way_and_is_no_limit,
    ),
    ("a_clock_that_was_ahead_stops_nobody_for_long", ledger::a_clock_that_was_ahead_stops_nobody_for_long),
    (
        "the_accounts_with_the_largest_shares_are_listed_when_there_are_more",
        ledger::the_accounts_with_the_largest_shares_are_listed_when_there_are_more,
    ),
    ("sums_that_are_too_large_are_cut", ledger::sums_that_are_too_large_are_cut),
    ("of_many_who_reserve_at_once_as_many_as_fit_do", ledger::of_many_who_reserve_at_once_as_many_as_fit_do),
];

/// A run to be created, with this id.
pub fn new_run(id: &str) -> NewRun {
    NewRun {
        run_id: id.to_owned(),
        loop_name: "triage".to_owned(),
        session: Some("ada".to_owned()),
        org: None,
        token: None,
        callback_url: None,
        parent_run_id: None,
        identity: "document+input".to_owned(),
        start_key: None,
        at_ms: 1_000,
        event: "first".to_owned(),
        texts: Vec::new(),
        scheduled: None,
        status_record: None,
        search_text: None,
        title: None,
        audit: None,
        line: None,
    }
}

/// Event `seq` of a run.
pub fn event(id: &str, fence: u64, seq: u64) -> Append {
    Append::new(id.to_owned(), fence, seq, format!("event {seq} of {id}"))
}

/// Awaits a future on a runtime of its own.
pub fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Creates a run and returns the fence of its lease.
pub fn begin(journal: &dyn Journal, id: &str) -> u64 {
    match wait(journal.create(new_run(id))).unwrap() {
        Created::New(lease) => lease.fence,
        other => panic!("not new: {other:?}"),
    }
}
