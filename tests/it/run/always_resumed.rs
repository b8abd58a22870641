//! R2: the whole suite, played by processes that die after every single event and are resumed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Tests that can't give the same in pieces, and why.
const NOT_IN_PIECES: &[(&str, &str)] = &[
    ("bad_replies::the_text_of_a_refused_reply_is_shown_to_people_as_data_and_cut", LIVE_VIEW),
    ("budget::a_warning_is_given_once_and_a_resumed_run_does_not_give_it_again", LIVE_VIEW),
    ("budget::tools_of_one_turn_that_ask_a_model_do_not_pass_the_budget_together", TOGETHER),
    ("builtins::progress_is_shown_while_the_run_goes_on", LIVE_VIEW),
    ("call_order::a_call_that_waits_for_approval_holds_back_those_behind_it", TOGETHER),
    (
        "call_order::by_default_reads_that_stand_beside_each_other_are_made_together_and_the_rest_in_the_models_order",
        TOGETHER,
    ),
    (
        "call_order::sub_runs_of_a_loop_that_only_reads_are_made_together_and_those_of_another_one_in_their_order",
        TOGETHER,
    ),
    ("call_order::together_makes_all_calls_at_once_and_reports_them_in_the_models_order", TOGETHER),
    (
        "calls_in_flight::a_call_of_which_a_human_says_that_it_failed_is_not_made_again_and_the_model_reads_why",
        ASKED_ITSELF,
    ),
    (
        "calls_in_flight::a_call_under_way_when_its_process_is_killed_is_uncertain_before_and_after_the_resume",
        ASKED_ITSELF,
    ),
    ("calls_in_flight::an_entry_has_the_times_at_which_its_call_was_asked_for_decided_and_made", READ_AGAIN),
    ("cascades::llm_actions_and_loops_that_one_turn_mixes_pass_the_budget_by_one_call_at_most", TOGETHER),
    ("cascades::one_run_calls_a_thousand_loops", "each of a thousand runs would be several processes"),
    ("continued::a_run_that_waits_for_its_model_is_retried_too", AWAY),
    ("decision_record::a_decision_is_in_each_form_of_the_trace_and_among_the_events", LIVE_VIEW),
    ("decision_record::a_model_reads_what_a_human_said_about_a_call_of_unknown_outcome", ASKED_ITSELF),
    ("dialects::a_response_that_the_model_of_tags_invents_is_cut_and_not_remembered", READ_AGAIN),
    ("dialects_native::a_kill_in_the_middle_of_a_turn_repeats_only_what_was_not_finished", TOGETHER),
    ("dialects_native::one_that_fails_touches_no_other_and_too_many_are_not_made", TOGETHER),
    ("dialects_native::what_servers_write_otherwise_is_survived", TOGETHER),
    ("events::a_text_makes_no_second_line_and_steers_nothing", LIVE_VIEW),
    ("events::runs_that_end_in_other_ways_keep_to_the_schema", LIVE_VIEW),
    ("events::the_streams_of_a_run_and_its_resumes_make_one_trace", LIVE_VIEW),
    ("events::the_trace_is_rebuilt_from_the_events_alone", LIVE_VIEW),
    ("held_out::argo::loops_dag_runs_a_before_all_items_and_c_after_them", TOGETHER),
    ("history::a_history_over_context_tokens_is_summed_up_by_the_model_and_the_run_goes_on", LIVE_VIEW),
    ("hostile_arguments::an_argument_appears_literally_wherever_it_is_passed_on", LONG),
    ("hostile_texts::what_a_tool_gives_back_is_one_message_whatever_it_says", LONG),
    ("models::a_run_speaks_over_one_connection_and_every_request_begins_with_the_one_before", CONNECTION),
    ("models::anthropics_protocol_carries_a_run_to_its_end", CONNECTION),
    ("postgres_tool::a_process_that_is_killed_in_a_write_leaves_an_uncertain_call", ASKED_ITSELF),
    ("postgres_tool::what_a_call_sets_does_not_reach_the_next_one", CONNECTION),
    ("provider_limits::a_run_whose_quota_is_spent_pauses_where_the_document_says_so", AWAY),
    ("refused_replies::reasoning_that_a_server_only_counts_is_why_an_empty_reply_was_cut_off", LIVE_VIEW),
    ("refused_replies::the_hints_of_an_agent_in_circles_are_in_every_form_of_the_trace", LIVE_VIEW),
    ("refused_replies::twenty_refused_replies_are_shown_once_each_and_so_is_what_the_model_reads_of_them", LIVE_VIEW),
    ("reruns::a_new_id_is_the_name_of_the_loop_and_eight_signs_and_sorts_by_time", "who plays it gives each run an id"),
    ("retries::a_run_whose_model_stays_away_pauses_and_goes_on_when_it_is_resumed", AWAY),
    ("secrets::no_secret_is_in_any_output_or_file_of_a_run_that_uses_them", LIVE_VIEW),
    ("seeds_cms::cms_orchestrator_has_an_entry_that_waits", LIVE_VIEW),
    ("seeds_cms::cms_orchestrator_takes_entities_into_memory", LIVE_VIEW),
    ("seeds_deep_research::deep_research_reports_rounds_and_tokens", LIVE_VIEW),
    ("seeds_loomflow::loomflow_warns_of_its_budget_once", LIVE_VIEW),
    ("signals", "signals go to one process; what is asked of a human there is the test's own"),
    ("streaming::a_reply_that_is_asked_for_again_makes_its_parts_void", LIVE_VIEW),
    ("streaming::a_secret_in_pieces_of_any_size_is_never_printed", LIVE_VIEW),
    ("streaming::parts_of_replies_are_printed_only_when_they_are_asked_for_and_there_are_any", LIVE_VIEW),
    ("streaming::reasoning_counts_as_tokens_and_is_not_printed", LIVE_VIEW),
    ("stuck::a_polling_tool_within_a_cycle_is_no_circle_while_it_has_news", ASKED),
    ("stuck::an_alternation_without_anything_new_fires_and_one_with_news_does_not", ASKED),
    ("subloops::the_time_of_the_run_bounds_the_called_one_which_ends_with_it", CALLED_FIRST),
    ("tool_retry::a_listener_hears_of_each_attempt_and_of_one_call", LIVE_VIEW),
    ("window::a_later_run_of_the_process_knows_the_window_before_its_first_request", LEARNED),
    ("window::an_llm_action_asks_for_a_shorter_reply_once_its_model_has_shown_its_window", LEARNED),
    ("workflow_documents::a_csv_file_is_a_list_of_objects_a_json_file_its_value_and_a_text_a_text", LIVE_VIEW),
    (
        "workflow_humans::a_form_ends_when_its_time_is_over",
        "the form is open for a millisecond: who resumes the run sees it expired",
    ),
    ("workflow_tools::a_call_that_does_not_wait_gives_the_run_which_is_one_of_its_own", OWN),
    ("workflows::the_start_of_a_step_shows_the_input_that_its_texts_give", LIVE_VIEW),
    ("workflows::a_step_of_which_a_human_says_that_its_call_failed_fails_and_runs_again_on_request_only", ASKED_ITSELF),
];

const LIVE_VIEW: &str = "notices come after an event is durable: the process dies in between";
const ASKED: &str = "a human is asked about a call that is not idempotent, and circles are counted from there";
const CALLED_FIRST: &str = "the called run is ended first: who dies then has a little time again, and sees it ended";
const CONNECTION: &str = "each process has a connection of its own";
const TOGETHER: &str = "calls of one turn are counted: those under way together when the process dies are made again";
const OWN: &str =
    "nothing waits for a run that was started with `wait: false`: after a kill it is resumed by its own id";
const ASKED_ITSELF: &str = "the test kills a process during a call, and decides itself what became of the call";
const READ_AGAIN: &str = "a call that is made again says so to the model, and has the time at which it was made again";
const LEARNED: &str = "what a process has learned of its model is not in the journal: the next one learns it again";
const AWAY: &str = "a run whose model is away goes on with any resume: who resumes it at once sees no pause";
const LONG: &str = "hundreds of calls in one run: more than a thousand processes, each with a longer history";

/// When nothing was said for so long, what still runs hangs. A single process is given up sooner.
const QUIET: Duration = Duration::from_secs(300);

/// What a suite says, line by line, until it ends. One that hangs is killed: whether it did.
fn listen(suite: &mut Child) -> (Vec<String>, bool) {
    let lines = BufReader::new(suite.stdout.take().expect("a pipe")).lines();
    let (sender, receiver) = channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut said = Vec::new();
    loop {
        match receiver.recv_timeout(QUIET) {
            Ok(line) => said.push(line),
            Err(RecvTimeoutError::Disconnected) => return (said, false),
            Err(RecvTimeoutError::Timeout) => {
                suite.kill().expect("it is there");
                return (said, true);
            }
        }
    }
}

#[test]
#[ignore = "nightly: the tests of `run` once more, in pieces"]
fn the_suite_gives_the_same_when_every_process_dies_after_every_event() {
    let mut suite = Command::new(std::env::current_exe().expect("this program"));
    suite.arg("run::").env("LOOPCTL_ALWAYS_RESUME", "1").stdout(Stdio::piped());
    for (test, reason) in NOT_IN_PIECES {
        println!("not in pieces: {test}: {reason}");
        suite.args(["--skip", test]);
    }
    let mut suite = suite.spawn().expect("it starts");
    let (said, hung) = listen(&mut suite);
    let status = suite.wait().expect("it ends");
    let of = |ending: &str| -> Vec<&str> {
        said.iter().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(ending)).collect()
    };
    let passed = of(" ... ok");
    let late = of(" has been running for over 60 seconds");
    let stuck: Vec<_> =
        late.iter().filter(|name| !said.iter().any(|l| l.starts_with(&format!("test {name} ...")))).collect();
    println!("{} tests in pieces", passed.len());
    assert!(!hung, "these hang: {stuck:?}");
    assert!(status.success(), "{}", said.join("\n"));
    assert!(passed.len() >= 480, "{} tests tested too little", passed.len());
}
