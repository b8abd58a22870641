//! What a workflow answers.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::advance::Advance;
use super::partial_value::{or_null, unresolved_sentence};
use super::progress::StepFault;
use loopctl_lang::program::flow::FlowOutput;

/// The code of a run whose steps have ended, and whose answer can't be made.
const BAD_OUTPUT: &str = "bad_output";

impl Advance<'_> {
    /// What the run answers, with the keys that its steps wrote.
    ///
    /// # Errors
    /// Why the answer can't be made; the address of the step is empty.
    pub fn output(&mut self, keys: &Map<String, Value>) -> Result<Value, StepFault> {
        match &self.program.output {
            None => Ok(Value::Object(keys.clone())),
            Some(FlowOutput::Key(key)) => Ok(keys.get(key).cloned().unwrap_or(Value::Null)),
            Some(FlowOutput::Field(field)) => {
                let header = Arc::clone(&self.header);
                let names = [keys, header.files.names()];
                self.with_scope(&names, |_, scope| or_null(field, scope)).map_err(|why| {
                    let message = format!("the workflow's `output` can't be made: {}", unresolved_sentence(&why));
                    StepFault::new(BAD_OUTPUT, message, "")
                })
            }
        }
    }
}

/// Whether a failure is that of the answer, and of no step.
pub(super) fn is_of_output(fault: &StepFault) -> bool {
    fault.code == BAD_OUTPUT && fault.step.is_empty()
}
