//! The forms of output, and the final report of a run in each of them.

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::exit::Exit;
use super::failure::CommandError;
use super::limits::raising_flags;
use super::next::{NextCommands, remedy_for_replies};
use super::surface::Surface;
use crate::engine::state::State;
use crate::program::Program;
use crate::trace::look::wrap;
use crate::trace::text::{Pieces, text_of_pretty};
use crate::trace::{Look, Redaction, RunResult, Shown, Tone, escape, events, result};

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
            surface.print(&format!("{}\n", in_words(&text, surface.out.width)))?;
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
mod tests;
