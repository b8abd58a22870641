//! Faults that only follow from another one.

use crate::diagnostic::{Diagnostic, codes};

/// Leaves out that an action never uses a parameter, where another fault says that its placeholder is written in a wrong
/// way.
pub fn without_consequences(faults: &mut Vec<Diagnostic>) {
    let causes: Vec<Diagnostic> = faults.iter().filter(|fault| is_cause(fault)).cloned().collect();
    faults.retain(|fault| fault.code != codes::UNUSED_PARAMETER || !causes.iter().any(|cause| explains(cause, fault)));
}

fn is_cause(fault: &Diagnostic) -> bool {
    matches!(fault.code, codes::PLAIN_VARIABLE | codes::QUOTED_PLACEHOLDER | codes::BAD_QUERY)
}

/// Whether the cause is a fault of the same action, and its fix or its help takes the parameter.
fn explains(cause: &Diagnostic, unused: &Diagnostic) -> bool {
    let Some((action, name)) = unused.path.split_once("/parameters/properties/") else { return false };
    let is_inside = cause.path.strip_prefix(action).is_some_and(|rest| rest.starts_with('/'));
    let meant = cause.suggestion.as_ref().map(|suggestion| &*suggestion.replacement).or(cause.help.as_deref());
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let takes = meant.is_some_and(|meant| meant.split(|c| !is_word(c)).any(|word| word == name));
    cause.place.file == unused.place.file && is_inside && takes
}
