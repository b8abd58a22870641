//! Values of which parts may be missing: what a workflow answers, and what is gathered of an item.

use serde_json::{Map, Value};

use loopctl_lang::program::reference::{Field, Scope, Unresolved, UnresolvedKind};

/// A value of the context, with null in the place of each text or path that needs a name without a value.
///
/// # Errors
/// When a value may be in a text that can't be read, or a text can't be made of its values.
pub(super) fn or_null(field: &Field, scope: &Scope<'_>) -> Result<Value, Unresolved> {
    match field {
        Field::Array(items) => items.iter().filter_map(|item| entry(item, scope).transpose()).collect(),
        Field::Object(members) => {
            let entries = members.iter().filter_map(|(key, member)| {
                let value = entry(member, scope).transpose()?;
                Some(value.map(|value| (key.clone(), value)))
            });
            entries.collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        Field::Literal(_) | Field::Template(_) | Field::Path(_) | Field::Optional(_) => match field.resolve(scope) {
            Ok(value) => Ok(value),
            Err(why) if scope.is_fault(&why) => Err(why),
            Err(_) => Ok(Value::Null),
        },
    }
}

/// The same as a member or an entry; none for an `@x.y?` without a value.
///
/// # Errors
/// As for a value.
pub(super) fn entry(field: &Field, scope: &Scope<'_>) -> Result<Option<Value>, Unresolved> {
    match field {
        Field::Optional(path) => scope.optional_copied(path),
        field => or_null(field, scope).map(Some),
    }
}

/// What is said of a text or a path without a value.
pub(super) fn unresolved_sentence(unresolved: &Unresolved) -> String {
    let begin = match unresolved.kind {
        UnresolvedKind::Missing | UnresolvedKind::BelowText => "a value is missing",
        UnresolvedKind::Broken => "a value can't be read",
        UnresolvedKind::Refused => "a text can't be made",
    };
    format!("{begin}: {unresolved}")
}
