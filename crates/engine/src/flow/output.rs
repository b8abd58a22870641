//! What a workflow answers.

use serde_json::Value;

use super::advance::Advance;
use super::partial_value::or_null;
use crate::state::FlowState;
use loopctl_lang::program::flow::{FlowOutput, FlowProgram};

/// What the run answers.
pub(super) fn output(program: &FlowProgram, state: &FlowState) -> Value {
    let keys = &state.progress.root.keys;
    match &program.output {
        None => Value::Object(keys.clone()),
        Some(FlowOutput::Key(key)) => keys.get(key).cloned().unwrap_or(Value::Null),
        Some(FlowOutput::Field(field)) => {
            let names = [keys, state.header.files.names()];
            Advance::of(program, state).with_scope(&names, |_, scope| or_null(field, scope))
        }
    }
}
