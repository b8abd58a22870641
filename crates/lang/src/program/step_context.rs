//! What a loop that is a step of a workflow takes of the workflow's context. The input of its run holds these values, so
//! that the run stands alone.

use serde_json::{Map, Value};

use super::reference::{RESERVED, Scope};
use super::{LoopProgram, Tool};

/// The names that only a system prompt can use.
const OF_PROMPT: [&str; 4] = ["objective", "tools", "today", "dialect_instructions"];

/// The names of the context that a loop uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepContext {
    /// Names of values.
    names: Vec<String>,
    /// Members of `input`.
    inputs: Vec<String>,
    /// Whether `input` is used as a whole.
    all_inputs: bool,
}

impl StepContext {
    /// What the texts and tools of a loop use.
    pub fn of(program: &LoopProgram) -> Self {
        let mut context = Self::default();
        for variable in program.objective.variables() {
            context.add(&variable.path, true);
        }
        let of_prompt = |path: &[String]| path.first().is_some_and(|name| OF_PROMPT.contains(&name.as_str()));
        let prompt = program.system_prompt.iter().flat_map(|text| text.variables());
        for variable in prompt.filter(|variable| !of_prompt(&variable.path)) {
            context.add(&variable.path, true);
        }
        for variable in program.tools.iter().flat_map(Tool::variables) {
            // Other names are those of the calls.
            context.add(&variable.path, false);
        }
        context
    }

    fn add(&mut self, path: &[String], in_text: bool) {
        let add = |names: &mut Vec<String>, name: &String| {
            if !names.contains(name) {
                names.push(name.clone());
            }
        };
        match path {
            [input] if input == "input" => self.all_inputs = true,
            [input, name, ..] if input == "input" => add(&mut self.inputs, name),
            [name, ..] if in_text && !RESERVED.contains(&name.as_str()) => add(&mut self.names, name),
            _ => {}
        }
    }

    /// The members of the run's input that it uses; none when it uses all of it.
    pub fn inputs(&self) -> Option<&[String]> {
        (!self.all_inputs).then_some(&self.inputs)
    }

    /// The input of the step's run: the values of the names that have one.
    pub fn input(&self, scope: &Scope<'_>) -> Value {
        let value = |path: &[String]| scope.lookup(path).ok().map(std::borrow::Cow::into_owned);
        let mut input = Map::new();
        for name in &self.names {
            if let Some(value) = value(std::slice::from_ref(name)) {
                input.insert(name.clone(), value);
            }
        }
        if self.all_inputs {
            input.extend(value(&["input".to_owned()]).map(|value| ("input".to_owned(), value)));
        } else if !self.inputs.is_empty() {
            let of_input = |name: &String| Some((name.clone(), value(&["input".to_owned(), name.clone()])?));
            let members: Map<String, Value> = self.inputs.iter().filter_map(of_input).collect();
            input.insert("input".to_owned(), Value::Object(members));
        }
        Value::Object(input)
    }
}
