//! What a workflow without an `input` takes, when it is a tool: the names of `@input` that its steps use.

use serde_json::Value;

use crate::compile::tool::InputNames;
use crate::language::step::Properties;
use crate::language::workflow::Definition;
use crate::language::{LoopProperties, Step};
use crate::program::Tool;
use crate::program::flow::{FlowStep, StepAction, each_step};
use crate::program::reference::{Field, as_path, each_text};
use crate::program::schema::Schema;
use crate::program::template::Variable;

/// The schema of the names. A run needs those that a step takes which always runs: a step of the workflow without a
/// `filter`, in a workflow without a `condition`. It can do without the others.
pub(super) fn of(document: &Value, definition: &Definition, steps: &[FlowStep]) -> Schema {
    let mut taken = TakenInputs::default();
    for pointer in [
        "/definition/condition",
        "/definition/actions",
        "/definition/on_failure",
        "/definition/output",
        "/definition/concurrency/key",
    ] {
        let Some(written) = document.pointer(pointer) else { continue };
        taken.texts(written, false);
    }
    let mut visit = |step: &FlowStep| match &step.action {
        StepAction::Call(call) => taken.tool(&call.tool),
        StepAction::React(react) => match react.program.step().and_then(|context| context.inputs()) {
            Some(names) => names.iter().for_each(|name| taken.names.add(name, false)),
            None => taken.whole = true,
        },
        _ => {}
    };
    each_step(steps, &mut visit);
    if definition.condition.is_none() {
        definition.actions.iter().filter(|step| step.filter.is_none()).for_each(|step| taken.always(step));
    }
    if taken.whole { Schema::any() } else { taken.names.schema() }
}

#[derive(Default)]
struct TakenInputs {
    names: InputNames,
    /// Whether the input is used as a whole.
    whole: bool,
}

impl TakenInputs {
    fn take(&mut self, variable: &Variable, is_required: bool) {
        match variable.path.as_slice() {
            [input] if input == "input" => self.whole = true,
            [input, name, ..] if input == "input" => self.names.add(name, is_required && !variable.optional),
            _ => {}
        }
    }

    /// The names in the texts of a written value.
    fn texts(&mut self, written: &Value, is_required: bool) {
        each_text(written, &mut String::new(), &mut |at, text| {
            if at.ends_with("/hasKey") && as_path(text).is_none() {
                let path = as_path(&format!("@{text}")).unwrap_or_default();
                return self.take(&Variable { path, range: 0..0, optional: true }, false);
            }
            if let Ok(field) = Field::compile(&Value::from(text)) {
                field.each_variable(&mut |_, variable| self.take(variable, is_required));
            }
        });
    }

    fn tool(&mut self, tool: &Tool) {
        tool.variables().iter().for_each(|variable| self.take(variable, false));
    }

    /// What a step needs that always runs.
    fn always(&mut self, step: &Step) {
        let texts: Vec<Value> = match &step.properties {
            Properties::Loop(properties) => match &**properties {
                LoopProperties::React(react) => [Some(&react.objective), react.system_prompt.as_ref()]
                    .into_iter()
                    .flatten()
                    .cloned()
                    .map(Value::from)
                    .collect(),
                LoopProperties::Foreach(foreach) => vec![foreach.items_path.clone().into()],
            },
            // Which of its steps run depends on the conditions.
            Properties::Choose(_) => Vec::new(),
            _ => serde_json::to_value(&step.properties).into_iter().collect(),
        };
        texts.iter().for_each(|text| self.texts(text, true));
    }
}
