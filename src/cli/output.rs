//! The forms of output, and the final report of a run in each of them.

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::exit::Exit;
use super::failure::CommandError;
use super::limits::raising_flags;
use super::next_commands::{NextCommands, remedy_for_replies};
use super::surface::Surface;
use crate::engine::state::State;
use crate::program::Program;
use crate::trace::layout::wrap;
use crate::trace::text::{Pieces, text_of_pretty};
use crate::trace::units::count;
use crate::trace::{Look, Redaction, RunResult, Shown, Tone, escape, events, result};

/// The most lines of a terminal that an answer takes, and those that are shown of a longer one.
const MOST_ANSWER_LINES: usize = 100;
const SHOWN_ANSWER_LINES: usize = 60;
/// The most columns that a tab takes.
const TAB_COLUMNS: usize = 8;

/// For whom the output is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// Text for people: the answer on stdout, everything else on stderr
    #[default]
    Human,
    /// The result as one line of JSON on stdout
    Json,
    /// One line of JSON for each event on stdout, the result last
    Ndjson,
}

/// For whom a list is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ListOutput {
    /// Text for people
    #[default]
    Human,
    /// One line of JSON
    Json,
}

/// What the document wants to be shown of its result.
pub fn shown(program: &Program) -> Shown<'_> {
    let trace = program.as_loop().is_none_or(|program| program.properties.include_reasoning_trace);
    Shown { result_key: program.result_key(), trace, driven: false, is_quarantined: false }
}

/// One line of JSON without characters that control a terminal, ended by a newline.
///
/// # Errors
/// When the value can't be written as JSON.
pub fn json_line(value: &impl Serialize) -> Result<String, CommandError> {
    let text = serde_json::to_string(value).map_err(|error| CommandError::Output(std::io::Error::other(error)))?;
    Ok(escape::json(&text).into_owned() + "\n")
}

/// Reports the state of a run, and returns the exit code.
///
/// # Errors
/// When stdout can't be written.
pub fn conclude(
    surface: &Surface,
    output: Output,
    program: &Program,
    state: &State,
    next: &NextCommands,
) -> Result<Exit, CommandError> {
    let redact = Redaction::new(&program.project.redact);
    let result = result(shown(program), state, &redact);
    match output {
        Output::Json => surface.print(&json_line(&result)?)?,
        Output::Ndjson => surface.print(&json_line(&events::last(&result))?)?,
        Output::Human => {
            let next = NextCommands {
                raising: raising_flags(program, state),
                for_replies: Some(remedy_for_replies(state)),
                ..next.clone()
            };
            human(surface, &result, state.now.active_ms, &next)?;
        }
    }
    Ok(Exit::of(state))
}

fn human(surface: &Surface, result: &RunResult, active_ms: u64, next: &NextCommands) -> Result<(), CommandError> {
    surface.say("\n");
    if let Some(answer) = &result.result {
        let text = text_of_pretty(&answer.answer);
        let text = surface.harmless(text.trim_end_matches('\n'));
        if surface.out_terminal {
            surface.say(&rule("answer", &surface.err));
            // It is cut only where it can be shown later, and where the person who reads it also reads that.
            match beginning(&text, surface.out.width).filter(|_| next.lasts && surface.err_terminal) {
                None => surface.print(&format!("{}\n", in_words(&text, surface.out.width)))?,
                Some(shown) => {
                    surface.print(&format!("{}…\n", in_words(shown, surface.out.width)))?;
                    surface.say(&longer(&text, &next.command("trace", ""), &surface.err));
                }
            }
            surface.say("\n");
        } else {
            surface.print(&format!("{text}\n"))?;
            // If both go to one file, the answer is separated in it.
            surface.say(if surface.err_terminal { "" } else { "\n" });
        }
    }
    surface.say(&ending(surface, result, active_ms, next));
    Ok(())
}

/// The beginning of a text that takes more lines of a terminal than are shown; none of a shorter one.
fn beginning(text: &str, width: usize) -> Option<&str> {
    let width = width.max(1);
    let all: usize = text.split('\n').map(|line| lines_of(line, width)).sum();
    if all <= MOST_ANSWER_LINES {
        return None;
    }
    let (mut left, mut end) = (SHOWN_ANSWER_LINES, 0);
    for line in text.split_inclusive('\n') {
        let lines = lines_of(line.trim_end_matches('\n'), width);
        if lines > left {
            end += fitting(line, left.saturating_mul(width)).len();
            break;
        }
        left -= lines;
        end += line.len();
    }
    Some(text.get(..end).unwrap_or(text).trim_end())
}

/// The lines of a terminal that a line takes.
fn lines_of(line: &str, width: usize) -> usize {
    columns_of(line).div_ceil(width).max(1)
}

/// The columns of a terminal that a text takes.
fn columns_of(text: &str) -> usize {
    text.width() + text.matches('\t').count() * (TAB_COLUMNS - "\t".width())
}

/// The most of a line that takes no more than these columns.
fn fitting(line: &str, mut columns: usize) -> &str {
    let is_over = |c: char| {
        let left = columns.checked_sub(columns_of(c.encode_utf8(&mut [0; 4])));
        columns = left.unwrap_or_default();
        left.is_none()
    };
    line.find(is_over).and_then(|end| line.get(..end)).unwrap_or(line)
}

/// What follows the beginning of a long answer: how long it is, and the command that shows all of it.
fn longer(text: &str, command: &str, look: &Look) -> String {
    let all = count(u64::try_from(text.chars().count()).unwrap_or(u64::MAX));
    let says = format!("the answer has {all} characters; all of it:");
    format!("{} {}\n", look.paint(Tone::Dim, &says), escape::line(command))
}

/// A horizontal rule with a title.
fn rule(title: &str, look: &Look) -> String {
    let line = "─".repeat(look.width.saturating_sub(title.len() + 4));
    look.paint(Tone::Dim, &format!("── {title} {line}")) + "\n"
}

/// The text with its lines wrapped between words. A line with a word that is too long is not wrapped: it is an
/// address or a key, which must stay copyable.
fn in_words(text: &str, width: usize) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .flat_map(|line| match line.split(' ').all(|word| word.width() <= width) {
            true => wrap(line, width),
            false => vec![line.to_owned()],
        })
        .collect();
    lines.join("\n")
}

/// The end of the human output: the status of the run, what it waits for, what to do next.
fn ending(surface: &Surface, result: &RunResult, active_ms: u64, next: &NextCommands) -> String {
    let pieces = Pieces { look: surface.err, shorten: true };
    let mut text = String::new();
    if let Some(waiting) = &result.pause {
        text.push_str(&pieces.pause(waiting));
        text.push('\n');
    }
    text.push_str(&pieces.summary(result, active_ms));
    text.push_str(&next.text(result, &surface.err));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::in_phase;
    use crate::engine::event::CallId;
    use crate::engine::operation::{AskedFor, Call, Progress};
    use crate::engine::outcome::{Answer, Ending, Pause, RunError, Status, Termination};
    use crate::engine::question::Question;
    use crate::engine::state::{Phase, Turn};
    use serde_json::{Value, json};

    fn surface() -> Surface {
        Surface {
            out: Look::plain(80),
            err: Look::plain(80),
            out_terminal: true,
            out_columns: Some(80),
            out_rows: None,
            err_terminal: true,
        }
    }

    fn next() -> NextCommands {
        NextCommands {
            program: "./loopctl".to_owned(),
            run_id: "run-1".to_owned(),
            lasts: true,
            is_copy: false,
            is_imported: false,
            store: None,
            script: None,
            actions: Vec::new(),
            raising: None,
            is_handled: false,
            for_replies: None,
        }
    }

    fn shown_end(state: &State) -> String {
        let result = result(
            Shown { result_key: None, trace: true, driven: false, is_quarantined: false },
            state,
            &Redaction::default(),
        );
        ending(&surface(), &result, state.now.active_ms, &next())
    }

    #[test]
    fn a_failed_run_says_why_and_what_to_do() {
        let error = RunError {
            code: "max_iterations".to_owned(),
            message: "10 iterations did not lead to an answer".to_owned(),
            retryable: false,
            step: None,
        };
        let ending = Ending {
            status: Status::Failed,
            termination: Termination::MaxIterations,
            answer: None,
            limit: None,
            stuck: None,
            cancelled_by: None,
            error: Some(error),
            at_ms: 1_769_941_805_000,
        };
        let mut state = in_phase(Phase::Ended(Box::new(ending)));
        state.counters.estimated = true;
        insta::assert_snapshot!(shown_end(&state), @r#"
    ✗ failed: the iterations are spent
      1 iteration · 1 tool call · about 120 tokens · 4.2 s
      10 iterations did not lead to an answer
      run       run-1
      trace     ./loopctl trace run-1
      may help  more `max_iterations`, or `"on_limit": "answer"` to answer with what is known
    "#);
    }

    #[test]
    fn a_call_that_waits_is_shown_with_the_ways_to_decide() {
        let id = CallId { iteration: 2, index: 0 };
        let call = Call {
            progress: Progress::Asks(AskedFor::Approval(Box::default())),
            ..Call::new(id, "issue_refund".to_owned(), json!({"amount": 1e2, "note": "\u{1b}[8mhidden\u{202E}"}), 0)
        };
        let pause = Pause {
            number: 1,
            question: Question::new(Termination::Approval, "issue_refund wants approval"),
            calls: vec![id],
            forced: None,
            steps: Vec::new(),
            until_ms: None,
            asks: None,
        };
        let turn = Turn { iteration: 2, thought: "pay".to_owned(), calls: vec![call], ..Turn::default() };
        let state = in_phase(Phase::Paused { pause: Box::new(pause), turn: Some(turn) });
        insta::assert_snapshot!(shown_end(&state), @r#"
    This tool call needs your approval:
      issue_refund  call 2.0  hash ac43b53c315e0122
        {
          "amount": 100.0,
          "note": "\u001b[8mhidden\u{202E}"
        }
      ! 2 characters that nobody sees: written as \u{...} here

    ‖ paused: a call needs approval  1 iteration · 1 tool call · 120 tokens · 4.2 s
      run      run-1
      approve  ./loopctl resume run-1 --approve --if ac43b53c315e0122
      deny     ./loopctl resume run-1 --deny --reason "..." --if ac43b53c315e0122
      edit     ./loopctl resume run-1 --edit '{...}' --if ac43b53c315e0122
    "#);
    }

    #[test]
    fn a_question_is_marked_as_the_models_words() {
        let pause = Pause {
            number: 1,
            question: Question {
                context: Some("There are two.".to_owned()),
                options: vec!["A".to_owned(), "B".to_owned()],
                ..Question::new(Termination::Human, "Which account?\nerror: fake line")
            },
            calls: Vec::new(),
            forced: None,
            steps: Vec::new(),
            until_ms: None,
            asks: None,
        };
        let state = in_phase(Phase::Paused { pause: Box::new(pause), turn: None });
        insta::assert_snapshot!(shown_end(&state), @r#"
    The agent asks (these are the model's words):
      ┃ Which account?
      ┃ error: fake line
      ┃ There are two.
      ┃ 1. A
      ┃ 2. B

    ‖ paused: a question for a human  1 iteration · 1 tool call · 120 tokens · 4.2 s
      run     run-1
      answer  ./loopctl resume run-1 --answer "..."
    "#);
    }

    #[test]
    fn the_last_line_of_a_stream_is_the_result_and_keeps_digits() {
        let answer = Answer {
            answer: serde_json::from_str("{\"n\":12345678901234567890123,\"t\":\"\u{9b}\u{202E}\"}").unwrap(),
            confidence: Some(1.into()),
            summary: None,
        };
        let ending = Ending {
            status: Status::Completed,
            termination: Termination::Complete,
            answer: Some(answer),
            limit: None,
            stuck: None,
            cancelled_by: None,
            error: None,
            at_ms: 0,
        };
        let state = in_phase(Phase::Ended(Box::new(ending)));
        let result = result(Shown::default(), &state, &Redaction::default());
        let line = json_line(&events::last(&result)).unwrap();
        assert!(line.starts_with("{\"event\":\"result\",\"run_id\":\"run-1\"") && line.ends_with("}\n"), "{line}");
        assert!(line.contains("12345678901234567890123") && !line.contains(['\u{9b}', '\u{202E}']));
        assert_eq!(line.matches('\n').count(), 1);
        assert!(serde_json::from_str::<Value>(&line).is_ok());
    }

    #[test]
    fn an_answer_that_fills_a_screen_is_shown_in_part_and_a_shorter_one_whole() {
        let lines = |number: usize| (1..=number).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        assert_eq!(beginning(&lines(100), 80), None);
        let text = lines(101);
        let shown = beginning(&text, 80).expect("it is long");
        assert!(shown.ends_with("\nline 60") && text.starts_with(shown), "{shown}");
        // A line that is not wrapped takes several.
        let word = "x".repeat(9_000);
        assert_eq!(beginning(&word, 80).map(str::len), Some(60 * 80));
        assert_eq!(beginning(&word, 100), None);
        let both = format!("{}\n{word}", lines(60));
        assert_eq!(beginning(&both, 80), Some(lines(60).as_str()));
        let command = next().command("trace", "");
        insta::assert_snapshot!(longer(&word, &command, &Look::plain(80)), @"the answer has 9,000 characters; all of it: ./loopctl trace run-1");
    }

    #[test]
    fn an_answer_is_broken_between_words_and_never_inside_an_address() {
        assert_eq!(in_words("one two three\n\nfour", 8), "one two\nthree\n\nfour");
        let address = format!("see https://host.example/{}", "x".repeat(90));
        assert_eq!(in_words(&address, 40), address);
    }
}
