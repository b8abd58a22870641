//! What a workflow answers.

use serde_json::Value;

use super::advance::Advance;
use super::state::FlowState;
use crate::engine::state::State;
use crate::program::Program;
use crate::program::flow::{Flow, FlowOutput};
use crate::program::reference::{Field, Scope};

/// What the run answers.
pub(super) fn output(program: &Program, flow: &Flow, state: &State, flow_state: &FlowState) -> Value {
    let keys = &flow_state.root.keys;
    match &flow.output {
        None => Value::Object(keys.clone()),
        Some(FlowOutput::Key(key)) => keys.get(key).cloned().unwrap_or(Value::Null),
        Some(FlowOutput::Field(field)) => {
            let names = [keys, &*state.header.files];
            Advance::of(program, flow, state, flow_state).with_scope(&names, |_, scope| or_null(field, scope))
        }
    }
}

/// A value of the context, with null in the place of each text or path that needs a name without a value.
fn or_null(field: &Field, scope: &Scope<'_>) -> Value {
    match field {
        Field::Array(items) => items.iter().map(|item| or_null(item, scope)).collect(),
        Field::Object(members) => {
            Value::Object(members.iter().map(|(key, member)| (key.clone(), or_null(member, scope))).collect())
        }
        Field::Literal(_) | Field::Template(_) | Field::Path(_) => field.resolve(scope).unwrap_or(Value::Null),
    }
}
