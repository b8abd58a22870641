//! The schema of one turn in the dialect `json`, to which a provider constrains the replies of a model: it has the shape
//! of the tools' schemas. What a schema says beyond shape (bounds, patterns, conditions) is left to our own validation.

mod shape;
mod strict;

use std::sync::Once;

use serde_json::{Value, json};

use super::selected_tools::SelectedTools;
use super::{Builtin, LoopProgram, Schema, Tool, ToolKind};
use shape::Shapes;
use strict::ShapeLimits;

pub use shape::{LostKeyword, lost_keywords};
pub use strict::StrictTurn;

/// The most characters of a thought.
const MAX_THOUGHT: u32 = 1_000;
/// The most bytes of a schema that is sent.
const MAX_BYTES: usize = 64 << 10;

/// The schema of a turn, made once for a program.
#[derive(Debug)]
pub struct TurnSchema {
    /// The schema in the forms that providers take; none when it is too large even without the inputs of the tools.
    pub forms: Option<TurnForms>,
    /// The tools whose inputs are left open, because the schema would be too large with them.
    pub open_inputs: Vec<String>,
    /// Whether what is left out was logged.
    pub reported: Once,
}

/// The schema of a turn as JSON, in several forms.
#[derive(Debug)]
pub struct TurnForms {
    /// One branch for each tool, which ties its name to its input.
    pub branches: Box<str>,
    /// One object for all tools: the servers of OpenAI, Anthropic and Google take no branches at the top.
    pub flat: Box<str>,
    /// The same in OpenAI's strict mode; none where an object or a value is open.
    pub strict: Option<StrictTurn>,
    /// Whether `flat` is of Anthropic's subset.
    pub is_closed: bool,
}

impl TurnSchema {
    /// The schema of a program's turns, with the tools that are offered.
    pub fn of(program: &LoopProgram, selected: Option<&SelectedTools>) -> Self {
        let mut open_inputs = Vec::new();
        let mut inputs: Vec<(&str, Value)> = Vec::new();
        for tool in program.offered_of(selected) {
            let input = input(program, tool).unwrap_or_else(|| {
                open_inputs.push(tool.name.clone());
                open_input()
            });
            inputs.push((&tool.name, input));
        }
        let mut forms = TurnForms::of(&inputs);
        let open_length = open_input().to_string().len();
        let mut lengths: Vec<usize> = inputs.iter().map(|(_, input)| input.to_string().len()).collect();
        while !forms.fits() {
            // The forms are made again when enough is gone, and not for each input: there may be a thousand of them.
            let mut excess = forms.length().saturating_sub(MAX_BYTES);
            let before = open_inputs.len();
            while excess > 0 {
                let largest = inputs.iter_mut().zip(&mut lengths).filter(|(_, length)| **length > open_length);
                let Some(((name, input), length)) = largest.max_by_key(|(_, length)| **length) else { break };
                open_inputs.push((*name).to_owned());
                *input = open_input();
                excess = excess.saturating_sub(length.saturating_sub(open_length));
                *length = 0;
            }
            if open_inputs.len() == before {
                break;
            }
            forms = TurnForms::of(&inputs);
        }
        Self { forms: Some(forms).filter(TurnForms::fits), open_inputs, reported: Once::new() }
    }
}

impl TurnForms {
    fn of(inputs: &[(&str, Value)]) -> Self {
        let branch = |(name, input): &(&str, Value)| {
            let thought = json!({ "type": "string", "maxLength": MAX_THOUGHT });
            turn(&thought, &json!({ "type": "string", "const": name }), input)
        };
        let branches: Vec<Value> = inputs.iter().map(branch).collect();
        let flat = flat(inputs.iter().map(|(name, input)| (*name, input.clone())));
        let limits = ShapeLimits::of(&flat);
        Self {
            branches: json!({ "anyOf": branches }).to_string().into(),
            strict: limits.may_be_strict().then(|| StrictTurn::of(inputs)),
            is_closed: limits.is_closed(),
            flat: flat.to_string().into(),
        }
    }

    /// The forms of an answer that is an object; none for another one, and for one that is too large.
    pub fn of_answer(schema: &Schema) -> Option<Self> {
        let mut shapes = Shapes::default();
        let shape = shapes.shape(schema.source());
        if !shapes.is_whole() || shape.get("type").is_none_or(|kind| kind != "object") {
            return None;
        }
        let limits = ShapeLimits::of(&shape);
        let text: Box<str> = shape.to_string().into();
        let forms = Self {
            branches: text.clone(),
            strict: limits.may_be_strict().then(|| StrictTurn::of_answer(&shape)),
            is_closed: limits.is_closed(),
            flat: text,
        };
        Some(forms).filter(Self::fits)
    }

    fn fits(&self) -> bool {
        self.length() <= MAX_BYTES
    }

    fn length(&self) -> usize {
        self.branches.len().max(self.flat.len())
    }
}

/// The turn as one object for all tools.
fn flat<'a>(inputs: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let (names, inputs): (Vec<&str>, Vec<Value>) = inputs.unzip();
    let action = json!({ "type": "string", "enum": names });
    turn(&json!({ "type": "string" }), &action, &json!({ "anyOf": inputs }))
}

/// The object of a turn.
fn turn(thought: &Value, action: &Value, input: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "thought": thought, "action": action, "action_input": input },
        "required": ["thought", "action", "action_input"],
        "additionalProperties": false
    })
}

/// Any input: that of a tool whose schema is too large.
fn open_input() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": true })
}

/// The shape of a tool's input; the answer of `__complete__` has that of `answer_schema`. None when it is too large.
fn input(program: &LoopProgram, tool: &Tool) -> Option<Value> {
    let mut shapes = Shapes::default();
    let mut input = shapes.shape(tool.parameters.source());
    if let (ToolKind::Builtin(Builtin::Complete), Some(answer)) = (&tool.kind, &program.answer)
        && let Some(slot) = input.pointer_mut("/properties/answer")
    {
        *slot = shapes.shape(answer.source());
    }
    if let Some(members) = input.as_object_mut() {
        // A call's input is always an object.
        members.insert("type".to_owned(), Value::from("object"));
    }
    shapes.is_whole().then_some(input)
}
