//! The command line as a whole: its definition is valid, and the help of every command ends with an example.

use clap::{CommandFactory, Parser};
use serde_json::json;

use super::*;
use crate::engine::event::{ModelFacts, Moment, Tokens};
use crate::engine::state::{Counters, LoopState, Phase, RunHeader, State, StateHead};

#[test]
fn the_arguments_are_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn every_help_says_what_and_ends_with_an_example() {
    for command in Arguments::command().get_subcommands().filter(|command| command.get_name() != "help") {
        let name = command.get_name();
        assert!(command.get_about().is_some(), "{name} has no help");
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.starts_with("Example"), "{name} has no example");
        for line in help.lines().filter(|line| line.trim_start().starts_with("loopctl ")) {
            let line = line.split(['|', '>', '#']).next().unwrap_or_default().replace("\\\"", "");
            let words = split(&line);
            assert!(Arguments::try_parse_from(&words).is_ok(), "the example of {name} is wrong: {words:?}");
        }
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{name}: {} has no help", argument.get_id());
        }
    }
}

#[test]
fn no_command_and_an_unknown_flag_are_wrong_arguments_and_help_is_not() {
    for (line, exit) in [
        ("loopctl resume", Exit::NoRun),
        ("loopctl nothing", Exit::NoRun),
        ("loopctl run x.json --no-such", Exit::NoRun),
        ("loopctl run x.json --timeout-ms 0", Exit::NoRun),
        ("loopctl run x.json --output xml", Exit::NoRun),
        ("loopctl --help", Exit::Completed),
        ("loopctl run --help", Exit::Completed),
        ("loopctl --version", Exit::Completed),
    ] {
        let error = Arguments::try_parse_from(line.split(' ')).unwrap_err();
        assert_eq!(report_arguments(error), exit, "{line}");
    }
}

#[test]
fn a_store_that_may_not_be_written_says_what_it_needs() {
    let surface = Surface { err_terminal: false, out_terminal: false, ..Surface::of_process() };
    let text = CommandError::from(crate::journal::StoreError::ReadOnly("denied".to_owned())).shown(&surface);
    assert!(text.contains("denied") && text.contains("must be writable for you, even to list runs"), "{text}");
}

#[test]
fn a_schema_is_offered_of_every_kind_that_has_one() {
    for kind in crate::language::schema::KINDS.into_iter().chain(["events"]) {
        let arguments = Arguments::try_parse_from(["loopctl", "schema", kind]).unwrap();
        let Command::Schema(schema) = arguments.command else { panic!() };
        assert_eq!(schema.kind, kind);
    }
    assert!(Arguments::try_parse_from(["loopctl", "schema", "nothing"]).is_err());
    let Command::Schema(schema) = Arguments::try_parse_from(["loopctl", "schema"]).unwrap().command else { panic!() };
    assert_eq!(schema.kind, "loop");
}

#[test]
fn run_and_prompt_take_the_same_flags_for_what_is_run() {
    let flags = |name: &str| {
        let arguments = Arguments::command();
        let command = arguments.find_subcommand(name).unwrap();
        let mut flags: Vec<_> = command
            .get_arguments()
            .map(|argument| (argument.get_id().to_string(), argument.get_help().unwrap().to_string()))
            .collect();
        flags.sort();
        flags
    };
    let (run, prompt) = (flags("run"), flags("prompt"));
    for flag in ["file", "fields", "input_file", "model", "script", "actions"] {
        let of = |flags: &[(String, String)]| flags.iter().find(|(id, _)| id == flag).cloned();
        assert!(of(&run).is_some() && of(&run) == of(&prompt), "{flag}");
    }
}

#[test]
fn the_exit_codes_are_those_of_the_table() {
    let codes = [Exit::Completed, Exit::Failed, Exit::NoRun, Exit::Paused, Exit::Cancelled].map(Exit::code);
    assert_eq!(codes, [0, 1, 2, 3, 130]);
}

/// The words of a shell line; double quotes group one.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A small state for the tests of the commands: a run after one iteration.
pub(super) fn state() -> State {
    let header = RunHeader {
        run_id: "run-1".to_owned(),
        session: None,
        loop_name: "refund-check".to_owned(),
        objective: "Decide about the ticket.".to_owned(),
        input: json!({"ticket_id": "TK-1"}).into(),
        model: ModelFacts { name: "small".to_owned(), ..ModelFacts::default() },
        at_ms: 1_769_941_800_000,
        timeout_ms: 300_000,
        ..RunHeader::default()
    };
    let tally = Counters {
        iterations: 1,
        tokens: Tokens { input: 100, output: 20, ..Tokens::default() },
        tool_calls_made: 1,
        ..Counters::default()
    };
    let head = StateHead {
        phase: Phase::Thinking { forced: None },
        header: std::sync::Arc::new(header),
        counters: tally,
        now: Moment { wall_ms: 1_769_941_804_200, active_ms: 4_200 },
        ..StateHead::default()
    };
    State::Loop(LoopState { head, ..LoopState::default() })
}

/// The same in this phase.
pub(super) fn in_phase(phase: Phase) -> State {
    let mut state = state();
    state.phase = phase;
    state
}
