//! What a workflow answers.

use serde_json::Value;

use super::advance::Advance;
use crate::state::FlowState;
use loopctl_lang::program::flow::{FlowOutput, FlowProgram};
use loopctl_lang::program::reference::{Field, Scope};

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

/// A value of the context, with null in the place of each text or path that needs a name without a value.
fn or_null(field: &Field, scope: &Scope<'_>) -> Value {
    match field {
        Field::Array(items) => items.iter().filter_map(|item| entry(item, scope)).collect(),
        Field::Object(members) => {
            let members = members.iter().filter_map(|(key, member)| Some((key.clone(), entry(member, scope)?)));
            Value::Object(members.collect())
        }
        Field::Literal(_) | Field::Template(_) | Field::Path(_) | Field::Optional(_) => {
            field.resolve(scope).unwrap_or(Value::Null)
        }
    }
}

/// The same as a member or an entry; none for an `@x.y?` without a value.
fn entry(field: &Field, scope: &Scope<'_>) -> Option<Value> {
    match field {
        Field::Optional(_) => field.resolve(scope).ok(),
        field => Some(or_null(field, scope)),
    }
}
