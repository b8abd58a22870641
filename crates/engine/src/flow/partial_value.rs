//! Values of which parts may be missing: what a workflow answers, and what is gathered of an item.

use serde_json::Value;

use loopctl_lang::program::reference::{Field, Scope};

/// A value of the context, with null in the place of each text or path that needs a name without a value.
pub(super) fn or_null(field: &Field, scope: &Scope<'_>) -> Value {
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
pub(super) fn entry(field: &Field, scope: &Scope<'_>) -> Option<Value> {
    match field {
        Field::Optional(_) => field.resolve(scope).ok(),
        field => Some(or_null(field, scope)),
    }
}
