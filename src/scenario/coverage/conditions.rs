//! Both sides of the conditions in texts: those of a loop, which are rendered at its start, and those of its tools, which
//! are rendered for each call.

use std::collections::BTreeSet;

use serde_json::Value;

use super::map::CoveragePart;
use super::points::{CoverageKind, CoverageOutcome, CoveragePoint};
use crate::engine::event::Started;
use crate::engine::timestamp::rfc3339;
use crate::program::Tool;
use crate::program::bind::run_input::RunInput;
use crate::program::flow::StepAction;
use crate::program::reference::{Scope, Secrets};
use crate::program::template::Template;
use loopctl_lang::program::json_texts::JsonRule;

/// Stands for secrets, which a played run has none of.
struct NoSecrets;

impl Secrets for NoSecrets {
    fn secret(&self, _: &str) -> Result<String, String> {
        Ok(String::new())
    }
}

/// A text with conditions, and its place.
struct PlacedText<'p> {
    template: &'p Template,
    pointer: String,
    /// What precedes the conditions in their names.
    of: String,
}

/// Both sides of all conditions of a part.
pub(super) fn of(part: &CoveragePart, found: &mut Vec<CoveragePoint>) {
    let tools = part.program.offered().map(|tool| (tool, part.tool(&tool.name)));
    let steps = part.steps.iter().filter_map(|placed| match &part.step(&placed.address)?.1.action {
        StepAction::Call(call) => Some((&call.tool, placed.pointer.clone())),
        _ => None,
    });
    let of_tools = tools.chain(steps).flat_map(|(tool, pointer)| texts_of(tool, &pointer));
    for text in texts(part).into_iter().chain(of_tools) {
        for number in 0..text.template.conditions().len() {
            found.extend([true, false].map(|holds| text.point(part, number, holds)));
        }
    }
}

/// The conditions that the start of a run judges.
pub(super) fn at_start(part: &CoveragePart, started: &Started, at_ms: i64, reached: &mut BTreeSet<CoveragePoint>) {
    let program = &part.program;
    let now = rfc3339(at_ms);
    let names = program.step().and(started.input.as_object());
    let scope = Scope {
        context: names.as_slice(),
        now: &now,
        run_id: &started.run_id,
        extra: &[
            ("objective", &started.objective),
            ("tools", "tools"),
            ("today", now.get(..10).unwrap_or_default()),
            ("dialect_instructions", "instructions"),
        ],
        secrets: Some(&NoSecrets),
        ..Scope::of_input(program.input_of(&started.input), JsonRule::PRESENT.into())
    };
    texts(part).iter().for_each(|text| text.judge(part, &scope, reached));
}

/// A call that was made.
pub(super) struct JudgedCall<'c> {
    pub tool: &'c Tool,
    /// The JSON pointer of its declaration, or of its step.
    pub pointer: String,
    pub input: &'c Value,
    /// The run's input.
    pub run_input: &'c RunInput,
    pub run_id: &'c str,
    /// When it returned, in milliseconds since 1970.
    pub at_ms: i64,
}

/// The conditions that a call judges.
pub(super) fn in_call(part: &CoveragePart, call: &JudgedCall<'_>, reached: &mut BTreeSet<CoveragePoint>) {
    let now = rfc3339(call.at_ms);
    let scope = Scope {
        arguments: call.input,
        lists: Some(&call.run_input.lists),
        now: &now,
        run_id: call.run_id,
        secrets: Some(&NoSecrets),
        ..Scope::of_input(part.program.input_of(&call.run_input.value), JsonRule::PRESENT.into())
    };
    texts_of(call.tool, &call.pointer).iter().for_each(|text| text.judge(part, &scope, reached));
}

/// The texts of a loop.
fn texts(part: &CoveragePart) -> Vec<PlacedText<'_>> {
    let Some(program) = part.program.as_loop() else { return Vec::new() };
    let text = |template, name: &str| PlacedText { template, pointer: part.property(name), of: String::new() };
    let prompt = program.system_prompt.as_ref().map(|template| text(template, "system_prompt"));
    std::iter::once(text(&program.objective, "objective")).chain(prompt).collect()
}

fn texts_of<'t>(tool: &'t Tool, pointer: &str) -> Vec<PlacedText<'t>> {
    let with_conditions = tool.templates().into_iter().filter(|template| !template.is_literal());
    let text = |(at, template)| PlacedText {
        template,
        pointer: pointer.to_owned(),
        of: if at == 0 { format!(" in {}", tool.name) } else { format!(" in {} ({})", tool.name, at + 1) },
    };
    with_conditions.enumerate().map(text).collect()
}

impl PlacedText<'_> {
    fn point(&self, part: &CoveragePart, number: usize, holds: bool) -> CoveragePoint {
        let all = self.template.conditions();
        let asked = all.get(number).copied().unwrap_or_default();
        // The same value may be asked for more than once.
        let before = all.iter().take(number).filter(|earlier| **earlier == asked).count();
        let again = if before == 0 { String::new() } else { format!(" (again, {})", before + 1) };
        let name = format!("{asked}{again}{}", self.of);
        let outcome = if holds { CoverageOutcome::IsTrue } else { CoverageOutcome::IsFalse };
        part.point(self.pointer.clone(), CoverageKind::Condition, name, outcome)
    }

    fn judge(&self, part: &CoveragePart, scope: &Scope<'_>, reached: &mut BTreeSet<CoveragePoint>) {
        let judged = self.template.judged(scope).into_iter();
        reached.extend(judged.map(|condition| self.point(part, condition.number, condition.holds)));
    }
}
