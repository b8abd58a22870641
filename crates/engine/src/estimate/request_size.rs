//! How long requests can be, in tokens. A tokenizer that reads bytes never makes more tokens of a text than it has bytes:
//! lengths are counted in bytes, and taken for tokens.

use serde_json::{Map, Value};

use crate::prompt::{self, Facts};
use crate::request_length;
use loopctl_lang::language::react::{Dialect, StuckAction};
use loopctl_lang::program::json_texts::JsonRule;
use loopctl_lang::program::reference::{PathStep, Scope};
use loopctl_lang::program::template::{Template, ValueUse};
use loopctl_lang::program::{LoopProgram, ProgramHead, Schema};

/// What a provider adds to each request and to each message: roles, marks, the frame of the tools.
pub(super) const FRAME: u64 = 1_000;
/// What a provider, and the schema of a turn, add to the declaration of a tool.
const TOOL_FRAME: u64 = 200;
/// What the engine writes around a report, and what it says of an unreadable reply.
const REPORT_FRAME: u64 = 2_000;
/// What a provider adds to a reply that is sent back, and the engine, when it cuts it.
const REPLY_FRAME: u64 = 1_000;
/// The most that notes of removed messages take with the list of the memory.
const STAND_IN: u64 = 40_000;
/// The bytes of a character, at most, with what escapes it in a report.
const CHARACTER_BYTES: u64 = 5;
/// The messages before the first iteration, at most.
const OPENING_MESSAGES: u64 = 4;
/// The length of a moment, of a date, and of a run's id.
const SHORT_NAME: u64 = 200;
/// The length of an input without a value.
const NO_INPUT: u64 = 2;
/// A moment and a run, for texts that show them.
const SAMPLE_NOW: &str = "2026-01-01T00:00:00.000Z";
const SAMPLE_RUN: &str = "00000000-0000-0000-0000-000000000000";

/// What is known of the values that a text takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextValues<'v> {
    /// The run's input.
    Given(&'v Value),
    /// The most bytes of a value.
    Sizes(ValueSizes),
}

/// The most bytes of the values that a text takes; none when nothing bounds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ValueSizes {
    /// Of a value of the run's input.
    pub input: Option<u64>,
    /// Of the arguments of a call, and of the keys of a workflow.
    pub other: Option<u64>,
}

impl ValueSizes {
    /// The same for what is called with values of either kind.
    pub fn mixed(self) -> Self {
        let larger = self.input.zip(self.other).map(|(one, other)| one.max(other));
        Self { input: larger, other: larger }
    }
}

impl ValueSizes {
    /// The same for what is called with values of the run alone, and none of its input.
    pub fn others(self) -> Self {
        Self { input: self.other, ..self }
    }

    /// Those of a run whose input nobody knows. One that takes none has none.
    pub fn unknown(head: &ProgramHead) -> Self {
        let takes_none = |schema: &Schema| schema.is_closed() && schema.properties().is_empty();
        let input = head.input.as_ref().filter(|schema| takes_none(schema)).map(|_| NO_INPUT);
        Self { input, other: None }
    }
}

impl TextValues<'_> {
    /// The most bytes of a value.
    pub fn sizes(self, other: Option<u64>) -> ValueSizes {
        match self {
            Self::Given(input) => ValueSizes { input: Some(length(&input.to_string())), other },
            Self::Sizes(sizes) => ValueSizes { input: sizes.input, other },
        }
    }
}

/// The most bytes of the first request of a loop; none when nothing bounds what its texts take.
pub(super) fn opening(program: &LoopProgram, known: TextValues<'_>) -> Option<u64> {
    // Nobody knows how many tokens a provider makes of a picture.
    if program.step.is_none() && has_files(program) {
        return None;
    }
    let text = match known {
        TextValues::Given(input) => rendered(program, input),
        TextValues::Sizes(sizes) => unrendered(program, sizes),
    }?;
    Some(text.saturating_add(declared(program)).saturating_add(FRAME))
}

fn has_files(program: &LoopProgram) -> bool {
    let schema = program.input.as_ref();
    schema.is_some_and(|schema| !loopctl_lang::program::input_file::places(schema.source()).is_empty())
}

/// The length of the system prompt with this input; none when it lacks a value, and the run can't start.
fn rendered(program: &LoopProgram, input: &Value) -> Option<u64> {
    let names = program.step.as_ref().and_then(|_| input.as_object());
    let nothing = Map::new();
    let names = [names.unwrap_or(&nothing)];
    let scope = Scope {
        context: &names,
        now: SAMPLE_NOW,
        run_id: SAMPLE_RUN,
        ..Scope::of_input(program.input_of(input), JsonRule::PRESENT.into())
    };
    let objective = program.objective.render(&scope).ok()?;
    system(program, input, &objective).map(|text| length(&text).saturating_add(SHORT_NAME))
}

fn system(program: &LoopProgram, input: &Value, objective: &str) -> Option<String> {
    let (today, now, run_id) = (SAMPLE_NOW.get(..10)?, SAMPLE_NOW, SAMPLE_RUN);
    prompt::system(program, &Facts { objective, input, today, now, run_id, json: JsonRule::PRESENT.into() }).ok()
}

/// The most bytes of the system prompt, with values that are not known yet.
fn unrendered(program: &LoopProgram, sizes: ValueSizes) -> Option<u64> {
    let objective = text(&program.objective, &[], sizes)?;
    let rest = match &program.system_prompt {
        None => length(&system(program, &Value::Null, "")?),
        Some(template) => {
            // The tools and the words of the dialect are as long as in the prompt of the engine, or shorter.
            let own = declared(program).saturating_add(FRAME);
            let extra = [
                ("objective", objective),
                ("tools", own),
                ("today", SHORT_NAME),
                ("dialect_instructions", own.saturating_add(answer(program)).saturating_add(FRAME)),
            ];
            return text(template, &extra, sizes);
        }
    };
    Some(objective.saturating_add(rest))
}

fn answer(program: &LoopProgram) -> u64 {
    program.answer.as_ref().map_or(0, |schema| length(schema.text()))
}

/// The declarations of the tools, and the schema that constrains a reply.
fn declared(program: &LoopProgram) -> u64 {
    let most = program.most_offered();
    let frames = u64::try_from(program.offered().count().min(most)).unwrap_or(u64::MAX).saturating_mul(TOOL_FRAME);
    let declared = u64::try_from(request_length::most_declared_bytes(program)).unwrap_or(u64::MAX);
    // A provider reads them as they are declared, and within the schema of a turn.
    declared.saturating_add(frames).saturating_mul(2).saturating_add(FRAME)
}

/// The most bytes that a template renders to; none when nothing bounds a value in it. `extra`: the sizes of names that only it
/// can use.
pub(super) fn text(template: &Template, extra: &[(&str, u64)], sizes: ValueSizes) -> Option<u64> {
    let own = length(template.source());
    if template.is_literal() {
        return Some(own);
    }
    let is_repeated = template.source().contains("#each");
    let of = |found: &ValueUse| {
        let first = found.path.first().map_or("", |step| match step {
            PathStep::Name(name) => name.as_str(),
            PathStep::Entry => "",
        });
        let is_whole = found.path.len() == 1;
        match extra.iter().find(|(known, _)| *known == first).filter(|_| is_whole) {
            Some((_, size)) => Some(*size),
            None if is_whole && matches!(first, "now" | "__run_id") => Some(SHORT_NAME),
            None if first == "input" => sizes.input,
            None => sizes.other,
        }
    };
    let mut printed = template.uses().iter().filter(|found| found.is_printed).peekable();
    if is_repeated && printed.peek().is_some() {
        return None;
    }
    printed.try_fold(own, |sum, found| Some(sum.saturating_add(of(found)?)))
}

/// What each iteration adds to the next request, at most.
pub(super) fn growth(program: &LoopProgram, max_tokens: u64) -> u64 {
    let properties = &program.properties;
    let most = u64::try_from(properties.max_observation_chars).unwrap_or(u64::MAX);
    let report = most.saturating_mul(CHARACTER_BYTES).saturating_add(REPORT_FRAME).saturating_add(remembered(program));
    let reports = report.saturating_mul(calls_per_turn(program));
    let hint = match properties.on_stuck.action {
        StuckAction::RetryWithHint => properties.on_stuck.hint.as_deref().map_or(FRAME, length),
        StuckAction::Fail | StuckAction::Escalate => 0,
    };
    // A reply that was not taken is answered with what is wrong, and with an example of the tools.
    let refused = declared(program);
    max_tokens.saturating_add(REPLY_FRAME).saturating_add(reports.saturating_add(hint).max(refused))
}

/// The notes of what a tool's declaration keeps in memory.
fn remembered(program: &LoopProgram) -> u64 {
    const NOTE: u64 = 2_000;
    let most = program.tools.iter().map(|tool| tool.remember.len()).max().unwrap_or(0);
    NOTE.saturating_mul(u64::try_from(most).unwrap_or(u64::MAX))
}

/// The most calls of a turn. The dialect `json` has one.
pub(super) fn calls_per_turn(program: &LoopProgram) -> u64 {
    match program.properties.dialect {
        Dialect::Json => 1,
        Dialect::ToolCalls | Dialect::Tags | Dialect::FinalAnswer => {
            u64::from(program.properties.max_tool_calls_per_turn)
        }
    }
}

/// The most tokens of the request of this number, from 1: the opening, and what the iterations before it added.
pub(super) fn of_iteration(program: &LoopProgram, opening: Option<u64>, growth: u64, iteration: u64) -> Option<u64> {
    let before = iteration.saturating_sub(1);
    // A message of the model and at least one report make an iteration. The last call is sent as it is.
    let history = program.properties.history.as_ref();
    // What `keep_last` keeps behind the opening stays, whatever `max_messages` says.
    let kept = history.and_then(|history| {
        let stay = u64::from(history.keep_last).saturating_add(OPENING_MESSAGES);
        Some(u64::from(history.max_messages?).max(stay))
    });
    let kept = kept.map_or(u64::MAX, |most| (most / 2).saturating_add(2));
    let grown = growth.saturating_mul(before.min(kept));
    let stand_in = if before > 0 { STAND_IN.min(grown) } else { 0 };
    // The frame of the notice of the last call.
    Some(opening?.saturating_add(grown).saturating_add(stand_in).saturating_add(FRAME))
}

/// The length of a text in bytes.
pub(super) fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}
